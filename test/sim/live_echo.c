/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Both nodes send each other all kinds of liveness requests, mostly echoes of many packets. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live_sim.h"
#include "mad/session.h"

#define US         1000ull
#define MS         1000000ull
#define LID(node)  ((uint16_t)(0x11 + (node)))
#define GUID(node) (UINT64_C(0x0002C90300000000) + (node))

/* --- addresses --- */

static union gid
gid_of(const struct live_script *ls, unsigned int node)
{
	const struct sim_node *n = &ls->sim->node[node];

	return ls->encap == ENCAP_ROCEV2_IPV4 ? n->gid : n->gid6;
}

struct mad_peer
live_peer(const struct live_script *ls, unsigned int from)
{
	return (struct mad_peer){
		.av = { .encap = ls->encap, .sgid = gid_of(ls, from), .dgid = gid_of(ls, !from),
			.slid = LID(from), .dlid = LID(!from), .grh = ls->grh,
			.smac = { 2, 0, 0, 0, 0, (uint8_t)from },
			.dmac = { 2, 0, 0, 0, 0, (uint8_t)!from }, .vlan = PATH_NO_VLAN, },
		.qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF, .neighbour = PATH_NO_NEIGHBOUR,
	};
}

static const struct port_attr *
live_echo_port_of(void *arg, uint16_t port)
{
	const struct live_node *n = arg;

	return port == 0 ? &n->port : NULL;
}

/* --- requests --- */

static uint32_t
live_echo_random_length(struct sim *s)
{
	switch (sim_below(s, 6)) {
	case 0:
		return sim_below(s, LIVE_AREA + 1);
	case 1: /* a multiple of the segment size, plus or minus one byte */
		return 216 * (1 + sim_below(s, 80)) - 9 + sim_below(s, 3);
	case 2:
		return sim_below(s, LIVE_ECHO_MAX);
	default:
		return sim_below(s, 5000);
	}
}

static struct live_flow *
flow_create(struct live_script *ls, unsigned int from, enum live_mode mode)
{
	struct live_flow *f = calloc(1, sizeof(*f));
	struct sim *s = ls->sim;
	uint8_t *data;

	if (f == NULL)
		abort();
	f->script = ls;
	f->from = from;
	f->index = ls->asked++;
	f->req = (struct live_request){
		.mode = mode,
		.identifier = (uint16_t)sim_rand(s),
		.sequence = (uint16_t)f->index,
		.originate = (uint32_t)sim_rand(s),
	};
	if (mode == LIVE_MODE_ECHO)
		f->req.len = live_echo_random_length(s);
	f->body = malloc(16 + (size_t)f->req.len);
	data = malloc(f->req.len + 1);
	if (f->body == NULL || data == NULL)
		abort();
	for (uint32_t i = 0; i < f->req.len; i++)
		data[i] = (uint8_t)(i * 31 + (i >> 8) + f->index);
	f->req.data = data;
	f->next = ls->flows;
	ls->flows = f;
	return f;
}

static void
flow_free(struct live_flow *f)
{
	free((void *)(uintptr_t)f->req.data);
	free(f->body);
	free(f->got);
	free(f);
}

static int
read_body(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct live_flow *f = arg;

	memcpy(buf, f->body + offset, len);
	return 0;
}

static int
live_echo_take(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct live_flow *f = arg;

	if (offset != f->len)
		sim_fail(f->script->sim, "request %u: data at %llu, not %llu", f->index,
			(unsigned long long)offset, (unsigned long long)f->len);
	if (f->len + len > f->size) {
		f->size = 2 * (f->len + len);
		f->got = realloc(f->got, f->size);
		if (f->got == NULL)
			abort();
	}
	memcpy(f->got + f->len, data, len);
	f->len += len;
	return 0;
}

/* --- check of answers --- */

/* The receive time lies between the request and now; midnight may be in between. */
static void
judge_stamps(const struct live_flow *f, const struct live_reply *r)
{
	struct live_script *ls = f->script;
	uint32_t asked = (uint32_t)((ls->midnight + f->asked / MS) % LIVE_MS_PER_DAY);
	uint32_t waited = (uint32_t)((ls->sim->now - f->asked) / MS) + 1;

	if (!ls->clock) {
		if (!(r->receive & r->transmit & LIVE_STAMP_NONSTANDARD))
			sim_fail(ls->sim, "request %u: a time nobody knows", f->index);
	} else if (r->receive != r->transmit || r->receive >= LIVE_MS_PER_DAY ||
		(r->receive + LIVE_MS_PER_DAY - asked) % LIVE_MS_PER_DAY > waited) {
		sim_fail(ls->sim, "request %u: stamps %u and %u, asked at %u, waited %u", f->index,
			r->receive, r->transmit, asked, waited);
	}
}

static void
judge_answer(const struct live_flow *f, const struct mad_result *result)
{
	struct live_script *ls = f->script;
	const uint8_t *data = f->len != 0 ? f->got : result->mad + VENDOR_OFF_DATA;
	struct live_reply r;

	live_check(&f->req, result->mad, data, f->len != 0 ? f->len : VENDOR_AREA, &r);
	if (r.error != NULL)
		sim_fail(ls->sim, "request %u: %s", f->index, r.error);
	else if (f->req.mode == LIVE_MODE_TIMESTAMP)
		judge_stamps(f, &r);
	else if (f->req.mode == LIVE_MODE_LIDGUID &&
		(r.guid != GUID(!f->from) || r.lid != (ls->encap == ENCAP_IB ? LID(!f->from) : 0)))
		sim_fail(ls->sim, "request %u: of another port", f->index);
	else if (f->req.mode == LIVE_MODE_SYSSTAT_CPU &&
		(f->len != 0 && f->len != strlen(ls->cpu_text) + 1))
		sim_fail(ls->sim, "request %u: %llu bytes of text", f->index,
			(unsigned long long)f->len);
	else if (f->req.mode == LIVE_MODE_SYSSTAT_CPU &&
		strcmp((const char *)data, ls->cpu_text) != 0)
		sim_fail(ls->sim, "request %u: another text", f->index);
}

static void
live_echo_done(void *arg, const struct mad_result *r)
{
	struct live_flow *f = arg;
	struct live_script *ls = f->script;

	sim_trace(ls->sim, "request %u of node %u: %s", f->index, f->from, mad_end_name(r->end));
	if (f->done)
		sim_fail(ls->sim, "request %u has two ends", f->index);
	f->done = true;
	f->ok = r->end == MAD_END_OK;
	ls->under_way--;
	if (ls->lenient)
		return;
	if (f->ok)
		judge_answer(f, r);
	else if (ls->strict || (r->end != MAD_END_TIMEOUT && r->end != MAD_END_ABORTED))
		sim_fail(ls->sim, "request %u, mode %d, %u bytes: %s, status 0x%x, RMPP %u",
			f->index, f->req.mode, f->req.len, mad_end_name(r->end), r->status,
			r->rmpp_status);
}

void
live_script_ask(struct live_script *ls, unsigned int from, enum live_mode mode)
{
	struct live_flow *f = flow_create(ls, from, mode);
	uint8_t mad[MAD_LEN];
	bool many = live_build(&f->req, mad, f->body);
	struct mad_call call = {
		.to = live_peer(ls, from),
		.protocol = MAD_RMPP,
		.data_offset = VENDOR_OFF_DATA,
		.mad = mad,
		.resp_time = ls->mad_limits.resp_time,
		.taker = { .arg = f, .data = live_echo_take, .done = live_echo_done },
	};

	if (many) {
		call.flags = MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE;
		call.source = (struct mad_source){
			.arg = f,
			.length = 8 + (uint64_t)f->req.len,
			.read = read_body,
		};
	} else if (mode == LIVE_MODE_SYSSTAT_CPU) {
		call.flags = MAD_METHOD_MULTI_RESPONSE;
	}
	f->asked = ls->sim->now;
	sim_trace(ls->sim, "request %u of node %u: mode %d, %u bytes", f->index, from, mode,
		f->req.len);
	if (mad_call(ls->node[from].mad, &call, f->asked, NULL) == 0)
		ls->under_way++;
	else
		f->done = true; /* no free session: this request is not sent */
}

/* --- the guest --- */

static enum verdict
live_echo_receive(struct sim_node *n, const struct packet *pkt)
{
	struct live_script *ls = n->sim->guest_arg;

	return mad_receive(ls->node[n->id].mad, pkt, n->sim->now);
}

static bool
live_echo_run(struct sim_node *n)
{
	struct live_script *ls = n->sim->guest_arg;
	struct live_node *ln = &ls->node[n->id];
	uint64_t now = n->sim->now;

	if (ls->clock && now >= ln->clock_due) {
		live_set_clock(ln->live, now,
			(uint32_t)((ls->midnight + now / MS) % LIVE_MS_PER_DAY));
		ln->clock_due = now + 100 * MS;
	}
	mad_run(ln->mad, now, n->burst);
	return mad_pending(ln->mad);
}

static uint64_t
live_echo_next(const struct sim_node *n)
{
	(void)n;
	return UINT64_MAX; /* timers are on the node's wheel */
}

static void
live_echo_sent(struct sim_node *from, const struct packet *pkt, bool lost)
{
	(void)from;
	(void)pkt;
	(void)lost;
}

static void
live_echo_end(struct sim *s)
{
	struct live_script *ls = s->guest_arg;
	struct live_flow *f;

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		mad_worker_destroy(ls->node[i].mad);
		live_destroy(ls->node[i].live);
	}
	while ((f = ls->flows) != NULL) {
		ls->flows = f->next;
		flow_free(f);
	}
	free(ls);
}

static const struct sim_guest guest = { live_echo_receive, live_echo_run, live_echo_next,
	live_echo_sent, live_echo_end };

/* --- set-up --- */

static void
live_echo_random_limits(struct live_script *ls)
{
	struct sim *s = ls->sim;

	ls->mad_limits = mad_limits_default;
	ls->mad_limits.max_sessions = ls->mad_limits.max_sessions_per_peer = 128;
	ls->mad_limits.max_bytes = ls->mad_limits.max_bytes_per_peer = 16u << 20;
	ls->mad_limits.rmpp_window = (uint16_t)(1 + sim_below(s, 64));
	ls->mad_limits.rmpp_send_max = (uint16_t)(1 + sim_below(s, 200));
	ls->mad_limits.resp_time = 8;
	ls->limits = live_limits_default;
	ls->limits.rate = 0;
}

struct live_script *
live_script_create(struct sim *s)
{
	static const enum encap encaps[] = { ENCAP_ROCEV2_IPV4, ENCAP_ROCEV2_IPV6, ENCAP_ROCEV1,
		ENCAP_IB };
	struct live_script *ls = calloc(1, sizeof(*ls));

	if (ls == NULL)
		abort();
	script_create(s);
	script_nodes(s);
	ls->sim = s;
	ls->encap = encaps[sim_below(s, 4)];
	ls->grh = ls->encap != ENCAP_IB || sim_below(s, 2);
	ls->clock = sim_below(s, 4) != 0;
	/* sometimes midnight is near */
	ls->midnight = sim_below(s, 2)
		? sim_below(s, LIVE_MS_PER_DAY)
		: LIVE_MS_PER_DAY - 1 - sim_below(s, 4) - (uint32_t)(s->now / MS);
	ls->num_cpus = sim_below(s, 3) ? sim_below(s, LIVE_CPUS_MAX) : 1;
	ls->planned = 5 + sim_below(s, 60);
	ls->at_once = 1 + sim_below(s, 30);
	ls->step = 5 * US + sim_below(s, 200 * US);
	live_echo_random_limits(ls);
	return ls;
}

static void
start_node(struct live_script *ls, unsigned int i)
{
	struct sim_node *n = &ls->sim->node[i];
	struct live_node *ln = &ls->node[i];
	struct mad_worker_config mc = {
		.workers = 1,
		.hash_key = ls->sim->seed,
		.hz = SIM_SECOND,
		.alloc = &n->alloc,
		.rng = &n->rng,
		.wheel = n->wheel,
		.tx = &n->tx.sink,
		.port = live_echo_port_of,
		.port_arg = ln,
		.limits = ls->mad_limits,
	};
	struct live_config lc = {
		.alloc = &n->alloc,
		.rng = &n->rng,
		.hz = SIM_SECOND,
		.limits = ls->limits,
		.port = live_echo_port_of,
		.port_arg = ln,
		.cpu = ls->cpu,
		.num_cpus = ls->num_cpus,
	};

	ln->script = ls;
	ln->node = n;
	ln->port = (struct port_attr){
		.up = true,
		.ib = ls->encap == ENCAP_IB,
		.lid = LID(i),
		.guid = GUID(i),
		.vlan = PATH_NO_VLAN,
		.subnet_timeout = 6,
		.pkey = { 0xFFFF },
		.num_pkeys = 1,
	};
	snprintf(lc.host, sizeof(lc.host), "node%u", i);
	lc.mad = ln->mad = mad_worker_create(&mc);
	if (ln->mad == NULL)
		abort();
	ln->live = live_create(&lc);
	if (ln->live == NULL)
		abort();
}

void
live_script_start(struct live_script *ls)
{
	char *p = ls->cpu_text;

	for (unsigned int i = 0; i < ls->num_cpus; i++) {
		snprintf(ls->cpu[i].model, sizeof(ls->cpu[i].model), " CPU %u", i);
		snprintf(ls->cpu[i].mhz, sizeof(ls->cpu[i].mhz), " %u.000", 1000 + i);
		p += sprintf(p, "cpu %u: model  CPU %u MHZ  %u.000\n", i, i, 1000 + i);
	}
	for (unsigned int i = 0; i < SIM_NODES; i++)
		start_node(ls, i);
	ls->sim->guest = &guest;
	ls->sim->guest_arg = ls;
}

/* --- the end --- */

static bool
idle(struct sim *s)
{
	const struct live_script *ls = s->guest_arg;
	uint64_t used, total;

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		mad_worker_memory(ls->node[i].mad, &used, &total);
		if (used != 0)
			return false;
	}
	return ls->under_way == 0;
}

void
live_script_finish(struct live_script *ls)
{
	struct sim *s = ls->sim;

	if (!sim_run(s, s->now + 1000 * SIM_SECOND, idle) && !s->failed)
		sim_fail(s, "%u requests under way, or memory held, when the time was up",
			ls->under_way);
}

/* --- the scenario --- */

static void
live_echo_turn(struct sim *s, void *arg)
{
	static const enum live_mode modes[] = { LIVE_MODE_ECHO, LIVE_MODE_ECHO, LIVE_MODE_ECHO,
		LIVE_MODE_ECHO, LIVE_MODE_TIMESTAMP, LIVE_MODE_LIDGUID, LIVE_MODE_IBPING,
		LIVE_MODE_SYSSTAT_PING, LIVE_MODE_SYSSTAT_HOST, LIVE_MODE_SYSSTAT_CPU };
	struct live_script *ls = arg;

	if (ls->under_way < ls->at_once) {
		live_script_ask(ls, sim_below(s, SIM_NODES), modes[sim_below(s, 10)]);
		ls->planned--;
	}
	if (ls->planned > 0)
		sim_at(s, s->now + 1 + sim_below(s, (uint32_t)(2 * ls->step)), live_echo_turn, ls);
}

static bool
all_asked(struct sim *s)
{
	const struct live_script *ls = s->guest_arg;

	return ls->planned == 0;
}

/*
 * With no or little loss every request is answered. With a bad network or too many requests,
 * requests may time out, but no answer has a wrong byte, and all memory is freed.
 */
void
scenario_echo(struct sim *s)
{
	static const unsigned int worst[] = { 0, 200, 200, 2000 };
	struct live_script *ls = live_script_create(s);
	unsigned int how = sim_below(s, 4);

	if (how != 0)
		script_bad_network(s, worst[how]);
	ls->strict = how != 3;
	if (sim_below(s, 4) == 0) {
		ls->limits.rate = 1000;
		ls->limits.burst = 1 + sim_below(s, 5);
		ls->strict = false;
	}
	live_script_start(ls);
	sim_at(s, s->now, live_echo_turn, ls);
	if (!sim_run(s, s->now + 1000 * SIM_SECOND, all_asked) && !s->failed)
		sim_fail(s, "nothing happens any more");
	live_script_finish(ls);
}
