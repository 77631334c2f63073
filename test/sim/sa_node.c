/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* QP1 of a node: workers of lib/mad with the SA or its client, and a virtual store thread. */

#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "mad/session.h"
#include "sa_sim.h"

#define TICK (20 * 1000000ull) /* of the store thread, idle */

static uint64_t
sa_node_grace_start(void *arg)
{
	struct sa_side *side = arg;

	return side->sim->now + side->node->grace_delay;
}

static bool
sa_node_grace_done(void *arg, uint64_t token)
{
	struct sa_side *side = arg;

	return side->sim->now >= token;
}

static const struct port_attr *
sa_node_port_of(void *arg, uint16_t port)
{
	struct sa_side *side = arg;

	return port == 0 ? &side->port : NULL;
}

/* --- the store's thread --- */

static void
wake(struct sim *s, void *arg)
{
	(void)s;
	(void)arg; /* after every event all nodes have a turn */
}

static void
sa_node_finish(struct sa_side *side, struct sa_write *write)
{
	struct sim *s = side->sim;
	uint64_t at = s->now + sim_below(s, 1 + (uint32_t)side->store_latency / 4);

	if (side->num_done == 2 * SA_WRITES)
		abort();
	side->done[side->num_done++] = (struct sa_done){ write, at };
	sim_at(s, at, wake, NULL);
}

static uint64_t
sa_node_lease_seconds(struct sa_side *side)
{
	uint64_t steady = side->sim->now / SIM_SECOND;

	return lease_clock_read(&side->leases, steady - side->set_back, steady);
}

static void
store_event(struct sim *s, void *arg)
{
	struct sa_side *side = arg;
	unsigned int n = side->num_writes;

	side->store_busy = false;
	if (side->store == NULL || side->down || n == 0)
		return;
	if (n > 1 && sim_below(s, 2))
		n = 1 + sim_below(s, n);
	sa_write_execute(side->sa, side->writes, n, sa_node_lease_seconds(side));
	for (unsigned int i = 0; i < n; i++)
		sa_node_finish(side, side->writes[i]);
	side->num_writes -= n;
	memmove(side->writes, side->writes + n, side->num_writes * sizeof(side->writes[0]));
	store_reclaim(side->store);
	if (side->num_writes > 0) {
		side->store_busy = true;
		sim_at(s, s->now + 1 + sim_below(s, (uint32_t)side->store_latency), store_event,
			side);
	}
}

static bool
sa_node_submit(void *arg, struct sa_write *write)
{
	struct sa_lcore *l = arg;
	struct sa_side *side = l->side;
	struct sim *s = side->sim;

	if (side->num_writes == SA_WRITES || sim_chance(s, side->refuse))
		return false;
	side->writes[side->num_writes++] = write;
	if (!side->store_busy) {
		side->store_busy = true;
		sim_at(s, s->now + 1 + sim_below(s, (uint32_t)side->store_latency), store_event,
			side);
	}
	return true;
}

static void
sa_node_tick(struct sim *s, void *arg)
{
	struct sa_side *side = arg;

	side->ticking = false;
	if (side->store == NULL || side->down)
		return;
	store_reclaim(side->store);
	sa_expire(side->sa, sa_node_lease_seconds(side));
	side->ticking = true;
	sim_at(s, s->now + side->expire_step, sa_node_tick, side);
}

/* --- the client receives Reports --- */

static enum mad_outcome
sa_node_report(void *arg, struct mad_request *req)
{
	struct sa_side *side = arg;

	side->sim->sa->reports++;
	memcpy(req->reply + MAD_HEADER_LEN, req->mad + MAD_HEADER_LEN, MAD_LEN - MAD_HEADER_LEN);
	return sim_below(side->sim, 8) == 0 ? MAD_SILENT : MAD_ANSWER;
}

static void
add_ears(struct sa_lcore *l)
{
	static const struct mad_method methods[] = { { MAD_REPORT, 0 }, { 0, 0 } };
	struct mad_agent a = {
		.mgmt_class = MAD_CLASS_SUBN_ADM,
		.class_version = 1,
		.name = "reports",
		.protocol = MAD_SA1,
		.data_offset = SA1_OFF_DATA,
		.methods = methods,
		.request = sa_node_report,
		.arg = l->side,
	};

	if (mad_agent_add(l->mad, &a) < 0)
		abort();
	a.class_version = 2;
	a.protocol = MAD_RMPP;
	a.data_offset = SA2_OFF_DATA;
	if (mad_agent_add(l->mad, &a) < 0)
		abort();
}

/* --- start and stop --- */

static void
start_lcore(struct sa_side *side, unsigned int id)
{
	struct sa_lcore *l = &side->lcore[id];
	struct sim_node *n = side->node;
	struct mad_worker_config mc = {
		.id = id,
		.workers = side->lcores,
		.hash_key = side->hash_key,
		.hz = SIM_SECOND,
		.alloc = &n->alloc,
		.rng = &n->rng,
		.tx = &n->tx.sink,
		.port = sa_node_port_of,
		.port_arg = side,
		.limits = side->limits,
	};
	struct sa_worker_config wc = { .id = id, .submit = sa_node_submit, .submit_arg = l };

	memset(l, 0, sizeof(*l));
	l->side = side;
	l->id = id;
	l->wheel = timer_wheel_create(&n->alloc, 1024, side->sim->now);
	mc.wheel = l->wheel;
	l->mad = mad_worker_create(&mc);
	if (l->wheel == NULL || l->mad == NULL)
		abort();
	if (!side->server) {
		add_ears(l);
		l->client = sa_client_create(l->mad, &n->alloc, SA_QUERIES_MAX);
		if (l->client == NULL)
			abort();
		return;
	}
	wc.mad = l->mad;
	wc.reader = l->reader = store_reader(side->store, id);
	l->sa = sa_worker_create(side->sa, &wc);
	if (l->sa == NULL)
		abort();
}

static void
start_store(struct sa_side *side)
{
	struct sim *s = side->sim;
	struct sa_model *m = s->sa->model;
	struct store_config sc = {
		.tables = sa_num_tables,
		.indexes = sa_indexes,
		.num_indexes = sa_num_indexes,
		.readers = side->lcores + 1,
		.alloc = &side->node->alloc,
		.backend = sa_model_backend(m),
		.max_old_bytes = side->max_old_bytes,
		.max_versions = side->max_versions,
		.grace = { sa_node_grace_start, sa_node_grace_done, side },
	};
	struct sa_config ac = sa_config_default;
	struct error err = { 0 };

	side->store = store_create(&sc, &err);
	if (side->store == NULL) {
		sim_fail(s, "store_create: %s", err.text);
		return;
	}
	ac.store = side->store;
	ac.hz = SIM_SECOND;
	ac.alloc = &side->node->alloc;
	ac.rng = &side->node->rng;
	ac.workers = side->lcores;
	ac.trust = side->trust;
	ac.sm_key = SA_SM_KEY;
	ac.master_sm_lid = 0;
	ac.gid_prefix = UINT64_C(0xFE80000000000000);
	ac.resp_time = side->limits.resp_time;
	ac.max_writes = SA_WRITES / side->lcores;
	/* small, so that creation is fast */
	ac.max_result_bytes = 1u << 20;
	ac.max_queries = SA_SESSIONS;
	ac.max_transfers = SA_SESSIONS;
	ac.path_ports = 256;
	ac.path_switches = 64;
	ac.path_links = 4096;
	ac.path_routes = 16;
	ac.notice_retries = 3;
	ac.notice_interval_ms = 20;
	ac.notices_max = 32;
	side->sa = sa_create(&ac, &err);
	if (side->sa == NULL)
		sim_fail(s, "sa_create: %s", err.text);
}

void
sa_side_init(struct sa_side *side, struct sim *s, unsigned int node)
{
	side->sim = s;
	side->node = &s->node[node];
	side->server = node == SA_SERVER;
	side->expire_step = TICK;
	side->hash_key = sim_rand(s);
	side->lcores = 1 + sim_below(s, SA_LCORES_MAX);
	side->node->sa = side;
}

void
sa_side_start(struct sa_side *side)
{
	if (side->server)
		start_store(side);
	for (unsigned int i = 0; i < side->lcores && !side->sim->failed; i++)
		start_lcore(side, i);
	side->down = false;
	if (side->server && !side->ticking) {
		side->ticking = true;
		sim_at(side->sim, side->sim->now + side->expire_step, sa_node_tick, side);
	}
	sim_trace(side->sim, "node %u is up", side->node->id);
}

void
sa_side_stop(struct sa_side *side)
{
	side->down = true;
	for (unsigned int i = 0; i < side->lcores; i++) {
		struct sa_lcore *l = &side->lcore[i];

		/* sessions that end here call the SA and the client, so those still exist */
		if (l->mad != NULL)
			mad_worker_destroy(l->mad);
		if (l->client != NULL)
			sa_client_destroy(l->client);
		if (l->sa != NULL)
			sa_worker_destroy(l->sa);
		if (l->wheel != NULL)
			timer_wheel_destroy(l->wheel);
		memset(l, 0, sizeof(*l));
	}
	if (side->sa != NULL)
		sa_destroy(side->sa);
	if (side->store != NULL)
		store_destroy(side->store);
	side->sa = NULL;
	side->store = NULL;
	side->num_writes = side->num_done = 0;
}

static void
stop_event(struct sim *s, void *arg)
{
	struct sa_side *side = arg;

	(void)s;
	for (struct sa_flow *f = s->sa->flows; f != NULL && !side->server; f = f->next)
		sa_flow_orphan(f);
	sa_side_stop(side);
}

static void
start_event(struct sim *s, void *arg)
{
	struct sa_side *side = arg;

	if (!s->failed && s->now >= side->down_until)
		sa_side_start(side);
}

/* May be called by a function of the node, which continues, but nothing is sent any more. */
void
sa_side_restart(struct sa_side *side, uint64_t pause)
{
	struct sim *s = side->sim;

	if (side->down)
		return;
	sim_trace(s, "node %u goes down", side->node->id);
	side->down = true;
	side->restarts++;
	side->down_until = s->now + pause + 2;
	sim_at(s, s->now + 1, stop_event, side);
	sim_at(s, side->down_until, start_event, side);
}

/* --- a turn --- */

/* Record changes of session states as seen after each step. */
static void
sa_node_look(struct sa_lcore *l)
{
	struct coverage *c = l->side->sim->coverage;
	struct mad_session_info info;
	bool found[SA_SESSIONS] = { false };
	uint32_t cursor = 0;

	while (mad_session_next(l->mad, &cursor, l->side->sim->now, &info)) {
		uint32_t i = (uint32_t)info.handle - 1;
		struct mad_handle_state *seen = &l->seen[i % SA_SESSIONS];
		uint8_t state = coverage_mad_state_of(info.state);

		if (seen->handle != info.handle) {
			if (seen->handle != 0)
				coverage_mad_state(c, seen->group, seen->state, MAD_STATE_FREE);
			seen->handle = info.handle;
			seen->state = MAD_STATE_FREE;
		}
		seen->group = (uint8_t)((info.class_version == 2) * 2 + info.requester);
		if (seen->state != state)
			coverage_mad_state(c, seen->group, seen->state, state);
		seen->state = state;
		found[i % SA_SESSIONS] = true;
	}
	for (unsigned int i = 0; i < SA_SESSIONS; i++)
		if (l->seen[i].handle != 0 && !found[i]) {
			coverage_mad_state(c, l->seen[i].group, l->seen[i].state, MAD_STATE_FREE);
			l->seen[i].handle = 0;
		}
}

enum verdict
sa_side_receive(struct sa_side *side, const struct packet *pkt)
{
	unsigned int owner = mad_owner(side->hash_key, side->lcores, pkt);
	enum verdict v;

	if (owner >= side->lcores) {
		sim_fail(side->sim, "mad_owner says worker %u of %u", owner, side->lcores);
		return VERDICT_QPN_UNKNOWN;
	}
	v = mad_receive(side->lcore[owner].mad, pkt, side->sim->now);
	if (side->watched)
		sa_node_look(&side->lcore[owner]);
	return v;
}

static void
sa_node_take_done(struct sa_side *side)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < side->num_done; i++) {
		struct sa_done d = side->done[i];

		if (d.at > side->sim->now)
			side->done[kept++] = d;
		else
			sa_write_done(side->lcore[sa_write_worker(d.write)].sa, d.write,
				side->sim->now);
	}
	side->num_done = kept;
}

/* A slow server reads a few records at a time, so that its clients need KeepAlives. */
static bool
run_queries(struct sa_side *side, struct sa_lcore *l)
{
	uint64_t now = side->sim->now;

	if (side->slice == 0) {
		sa_run(l->sa, now, side->slice_budget);
		return sa_pending(l->sa);
	}
	if (now < l->slice_at || !sa_pending(l->sa))
		return false;
	sa_run(l->sa, now, side->slice_budget);
	l->slice_at = now + side->slice;
	sim_at(side->sim, l->slice_at, wake, NULL);
	return false;
}

bool
sa_side_run(struct sa_side *side)
{
	bool busy = false;

	if (side->down)
		return false;
	if (side->num_done > 0)
		sa_node_take_done(side);
	for (unsigned int i = 0; i < side->lcores && !side->down; i++) {
		struct sa_lcore *l = &side->lcore[i];

		timer_wheel_run(l->wheel, side->sim->now);
		if (side->watched)
			sa_node_look(l);
		if (l->sa != NULL)
			busy |= run_queries(side, l);
		mad_run(l->mad, side->sim->now, side->node->burst);
		timer_wheel_sent(l->wheel, side->sim->now);
		if (side->watched)
			sa_node_look(l);
		busy |= mad_pending(l->mad);
	}
	return busy;
}

uint64_t
sa_side_next(const struct sa_side *side)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < side->lcores && !side->down; i++) {
		uint64_t t = timer_wheel_next(side->lcore[i].wheel);

		if (t < next)
			next = t;
	}
	return next;
}

/* --- everything is freed --- */

static unsigned int
sessions(const struct sa_side *side)
{
	struct mad_session_info info;
	unsigned int n = 0;

	for (unsigned int i = 0; i < side->lcores; i++) {
		uint32_t cursor = 0;

		while (mad_session_next(side->lcore[i].mad, &cursor, side->sim->now, &info))
			n++;
	}
	return n;
}

bool
sa_side_idle(const struct sa_side *side)
{
	return !side->down && side->num_writes == 0 && side->num_done == 0 && sessions(side) == 0;
}

void
sa_side_check_idle(struct sa_side *side)
{
	struct sim *s = side->sim;
	struct store_stats st;
	uint64_t used, total;

	if (side->down || s->failed)
		return;
	for (unsigned int i = 0; i < side->lcores; i++) {
		struct mad_session_info info;
		uint32_t cursor = 0;

		if (mad_session_next(side->lcore[i].mad, &cursor, s->now, &info))
			sim_fail(s, "node %u: session in state %s of tid 0x%llx never ends",
				side->node->id, info.state, (unsigned long long)info.tid);
		mad_worker_memory(side->lcore[i].mad, &used, &total);
		if (used != 0)
			sim_fail(s, "node %u: %llu bytes of sessions are never given back",
				side->node->id, (unsigned long long)used);
	}
	if (!side->server || s->failed)
		return;
	s->now += side->node->grace_delay + 1;
	store_reclaim(side->store);
	store_stats(side->store, &st);
	if (st.versions_held != 0)
		sim_fail(s, "%llu versions are held for ever",
			(unsigned long long)st.versions_held);
	if (st.old_bytes != 0)
		sim_fail(s, "%llu bytes of old versions are never given back",
			(unsigned long long)st.old_bytes);
	sa_model_check_store(s->sa->model, store_current(side->lcore[0].reader));
}
