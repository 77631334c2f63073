/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

const struct rc_congestion usual_congestion = {
	.dcqcn = true,
	.g = 256,
	.alpha_timer = 55,
	.increase_timer = 55,
	.byte_counter = 10000000,
	.fast_recovery = 5,
	.rate_ai = 40,
	.rate_hai = 400,
	.min_rate = 10,
	.max_rate = 8000,
	.cut_interval = 4,
};

#define SCRIPTED_QPN 0x456

/* --- the wire --- */

static void
pair_parse(const struct sent *s, const struct node *from, struct packet *pkt)
{
	enum encap encap = from->pair->config.encap;
	enum verdict why;

	if (!wire_parse(encap, s->frame + 14, s->len - 14, pkt, &why))
		fail_msg("%s", verdict_infos[why].name);
	pkt->port = s->port;
	pkt->rx_time = from->pair->now;
	pkt->mbuf = NULL;
}

static void
name_packet(struct sent *s, const struct packet *pkt)
{
	static const char *const naks[] = { "NAK-SEQ", "NAK-INV", "NAK-ACC", "NAK-OP" };
	const char *what = pkt->op->name;

	if (pkt->opcode == RC_ACK) {
		if (AETH_KIND(pkt->syndrome) == AETH_ACK)
			what = "ACK";
		else if (AETH_KIND(pkt->syndrome) == AETH_RNR_NAK)
			what = "RNR";
		else if (pkt->syndrome >= 0x60 && pkt->syndrome <= 0x63)
			what = naks[pkt->syndrome & 3];
	}
	snprintf(s->text, sizeof(s->text), "%s %u", what, pkt->psn);
}

static uint8_t *
pair_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct node *n = (struct node *)sink;
	struct sent *s = &n->sent[n->sent_count];

	assert_true(n->sent_count < PAIR_SENT);
	assert_true(path->header_len + len + path->trailer_len <= sizeof(s->frame));
	if (n->room == 0)
		return NULL;
	n->path = path;
	n->reserved = len;
	memset(s->frame, 0xEE, path->header_len + len + path->trailer_len);
	return s->frame + path->header_len;
}

static void
pair_commit(struct tx_sink *sink)
{
	struct node *n = (struct node *)sink;
	struct sent *s = &n->sent[n->sent_count++];
	struct packet pkt;

	n->room--;
	s->port = n->path->av.port;
	s->len = path_finish(n->path, s->frame + n->path->header_len, n->reserved, 0);
	pair_parse(s, n, &pkt);
	name_packet(s, &pkt);
}

unsigned int
transmit(struct node *n)
{
	unsigned int sent = 0, k;

	if (n->w == NULL)
		return 0;
	while ((k = rc_run(n->w, n->pair->now, 1000)) != 0)
		sent += k;
	timer_wheel_sent(n->wheel, n->pair->now);
	return sent;
}

static bool
pair_is_lost(struct node *n, uint32_t psn)
{
	unsigned int i;

	for (i = 0; i < n->lost_count; i++) {
		if (n->lost[i] == psn) {
			n->lost[i] = n->lost[--n->lost_count];
			return true;
		}
	}
	return false;
}

void
deliver(struct node *n)
{
	struct node *to = n->peer;
	struct packet pkt;

	while (n->delivered < n->sent_count) {
		pair_parse(&n->sent[n->delivered++], n, &pkt);
		if (!pair_is_lost(n, pkt.psn) && (n->dead >> pkt.port & 1) == 0 && to->w != NULL)
			to->verdict = rc_receive(to->w, &pkt, n->pair->now);
	}
}

void
exchange(struct pair *p)
{
	do {
		transmit(&p->a);
		deliver(&p->a);
		transmit(&p->b);
		deliver(&p->b);
	} while (transmit(&p->a) + transmit(&p->b) != 0);
}

void
lose(struct node *n, uint32_t psn)
{
	assert_true(n->lost_count < PAIR_LOST);
	n->lost[n->lost_count++] = psn;
}

void
pass(struct pair *p, uint64_t ns)
{
	timer_wheel_sent(p->a.wheel, p->now);
	if (p->b.w != NULL)
		timer_wheel_sent(p->b.wheel, p->now);
	p->now += ns;
	timer_wheel_run(p->a.wheel, p->now);
	if (p->b.w != NULL)
		timer_wheel_run(p->b.wheel, p->now);
}

void
expect_sent(struct node *n, const char *first, ...)
{
	unsigned int i = 0, from = n->seen;
	const char *want;
	va_list ap;

	va_start(ap, first);
	for (want = first; want != NULL; want = va_arg(ap, const char *), i++) {
		if (from + i >= n->sent_count)
			fail_msg("expected \"%s\", nothing was sent", want);
		assert_string_equal(n->sent[from + i].text, want);
	}
	va_end(ap);
	if (from + i < n->sent_count)
		fail_msg("\"%s\" was sent, nothing expected", n->sent[from + i].text);
	n->looked = from;
	n->seen = n->sent_count;
}

void
expect_run(struct node *n, const char *name, uint32_t first, uint32_t last)
{
	char want[40];
	uint32_t psn;

	n->looked = n->seen;
	for (psn = first; psn <= last; psn++) {
		snprintf(want, sizeof(want), "%s %u", name, psn);
		if (n->seen >= n->sent_count)
			fail_msg("expected \"%s\", nothing was sent", want);
		assert_string_equal(n->sent[n->seen++].text, want);
	}
}

struct packet
sent_packet(const struct node *n, unsigned int i)
{
	struct packet pkt;

	assert_true(n->looked + i < n->seen);
	pair_parse(&n->sent[n->looked + i], n, &pkt);
	return pkt;
}

/* --- the test answers in place of b --- */

enum verdict
answer(struct pair *p, const struct wire_headers *headers, const uint8_t *payload, uint32_t len)
{
	struct wire_headers h = *headers;
	const struct path *path = &p->b.back;
	struct sent s = { .port = path->av.port };
	struct packet pkt;
	uint32_t at;

	if (h.pkey == 0)
		h.pkey = 0xFFFF;
	h.dest_qpn = p->a.qpn;
	h.pad = wire_pad(len);
	at = path->header_len + wire_build(s.frame + path->header_len, &h);
	if (len != 0)
		memcpy(s.frame + at, payload, len);
	s.len = path_finish(path, s.frame + path->header_len, at + len + h.pad - path->header_len,
		0);
	s.frame[s.len - 1] ^= p->damage;
	pair_parse(&s, &p->b, &pkt);
	return rc_receive(p->a.w, &pkt, p->now);
}

enum verdict
ack_credits(struct pair *p, uint32_t psn, uint32_t msn, uint8_t code)
{
	return answer(p,
		&(struct wire_headers){
			.opcode = RC_ACK,
			.psn = psn,
			.msn = msn,
			.syndrome = AETH_ACK | code,
		},
		NULL, 0);
}

enum verdict
ack(struct pair *p, uint32_t psn)
{
	return ack_credits(p, psn, 0, AETH_NO_CREDITS);
}

enum verdict
nak(struct pair *p, uint8_t syndrome, uint32_t psn)
{
	return answer(p,
		&(struct wire_headers){
			.opcode = RC_ACK,
			.psn = psn,
			.syndrome = syndrome,
		},
		NULL, 0);
}

enum verdict
read_response(struct pair *p, uint8_t opcode, uint32_t psn, uint32_t at, uint32_t len)
{
	return answer(p,
		&(struct wire_headers){
			.opcode = opcode,
			.psn = psn,
			.syndrome = AETH_ACK | AETH_NO_CREDITS,
		},
		p->b.bytes + at, len);
}

/* --- work requests and completions --- */

void
make_wr(struct node *n, struct send_wr *wr, struct sge *sge, enum wr_opcode opcode, uint64_t wr_id,
	uint32_t len)
{
	*sge = (struct sge){ n->va, len, n->key };
	*wr = (struct send_wr){
		.wr_id = wr_id,
		.opcode = opcode,
		.send_flags = SEND_SIGNALED,
		.num_sge = 1,
		.sg_list = sge,
		.remote_addr = n->peer->va,
		.rkey = n->peer->key,
	};
}

void
post_flags(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t len, uint32_t flags)
{
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	make_wr(n, &wr, &sge, opcode, wr_id, len);
	wr.send_flags = flags;
	if (rc_post_send(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

void
post(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t len)
{
	post_flags(n, opcode, wr_id, len, SEND_SIGNALED);
}

void
post_recv(struct node *n, uint64_t wr_id, uint32_t len)
{
	struct sge sge = { n->va, len, n->key };
	struct recv_wr wr = { .wr_id = wr_id, .num_sge = 1, .sg_list = &sge };
	struct error err = { "" };

	if (rc_post_recv(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

static struct wc
take_wc(struct node *n, uint32_t cq, uint64_t wr_id, enum wc_status status)
{
	struct wc wc;

	if (rc_cq_poll(n->dev, cq, &wc, 1) != 1)
		fail_msg("no completion for work request %u", (unsigned int)wr_id);
	assert_int_equal(wc.wr_id, wr_id);
	assert_string_equal(wc_status_name(wc.status), wc_status_name(status));
	assert_int_equal(wc.qp_num, n->qpn);
	return wc;
}

struct wc
expect_wc(struct node *n, uint64_t wr_id, enum wc_status status)
{
	return take_wc(n, n->send_cq, wr_id, status);
}

struct wc
expect_recv(struct node *n, uint64_t wr_id, enum wc_status status)
{
	return take_wc(n, n->recv_cq, wr_id, status);
}

void
expect_no_wc(struct node *n)
{
	struct wc wc;

	assert_int_equal(rc_cq_poll(n->dev, n->send_cq, &wc, 1), 0);
	assert_int_equal(rc_cq_poll(n->dev, n->recv_cq, &wc, 1), 0);
}

static bool
pair_next_event(struct node *n, struct event *ev)
{
	while (n->event_next < n->event_count) {
		*ev = n->events[n->event_next++];
		if (ev->type != EVENT_COMM_EST && ev->type != EVENT_CQ_COMPLETION &&
			ev->type != EVENT_QP_ERROR)
			return true;
	}
	return false;
}

void
expect_event(struct node *n, enum event_type type)
{
	struct event ev;

	if (!pair_next_event(n, &ev))
		fail_msg("no event %s", event_type_name(type));
	assert_string_equal(event_type_name(ev.type), event_type_name(type));
}

void
expect_no_event(struct node *n)
{
	struct event ev;

	if (pair_next_event(n, &ev))
		fail_msg("event %s", event_type_name(ev.type));
}

struct rc_qp_info
info_of(const struct node *n)
{
	struct rc_qp_info info;

	assert_int_equal(rc_qp_query(n->w, n->qpn, &info), 0);
	return info;
}

enum qp_state
state_of(const struct node *n)
{
	return info_of(n).attr.qp_state;
}

struct rc_counters
counters_of(const struct node *n)
{
	return info_of(n).counters;
}

/* --- set-up --- */

static void
pair_take_event(void *arg, const struct event *ev)
{
	struct node *n = arg;

	assert_true(n->event_count < sizeof(n->events) / sizeof(n->events[0]));
	n->events[n->event_count++] = *ev;
}

static void
take_violation(void *arg, const struct packet *pkt, uint32_t src_qpn)
{
	struct node *n = arg;

	assert_int_equal(pkt->dest_qpn, n->qpn);
	n->violations++;
	n->violation_from = src_qpn;
}

void
init_attr(const struct node *n, struct qp_init_attr *init)
{
	const struct pair_config *c = &n->pair->config;

	*init = (struct qp_init_attr){
		.qp_type = QPT_RC,
		.pd = n->pd,
		.send_cq = n->send_cq,
		.recv_cq = n->recv_cq,
		.srq = RC_NO_SRQ,
		.cap = { .max_send_wr = c->send_wr, .max_recv_wr = 64, .max_send_sge = 4,
			.max_recv_sge = 4, .max_inline_data = 64, },
		.sq_sig_all = c->sig_all,
		.ack_per_packet = c->ack_per_packet,
		.flow_control = c->flow_control,
		.migreq = c->migreq,
	};
}

struct av
av_of(const struct node *n, uint16_t port)
{
	uint8_t self = n == &n->pair->a ? 1 : 2, other = 3 - self, net = (uint8_t)port;

	return (struct av){
		.encap = n->pair->config.encap,
		.port = port,
		.vlan = PATH_NO_VLAN,
		.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [14] = net, [15] = self },
		.dgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [14] = net, [15] = other },
		.smac = { 2, 0, 0, 0, net, self },
		.dmac = { 2, 0, 0, 0, net, other },
		.slid = (uint16_t)(16 * port + self),
		.dlid = (uint16_t)(16 * port + other),
	};
}

struct qp_attr
qp_attr_of(const struct node *n)
{
	const struct pair_config *c = &n->pair->config;

	return (struct qp_attr){
		.qp_access_flags = MEM_ACCESS_REMOTE,
		.pkey = 0xFFFF,
		.av = av_of(n, 0),
		.neighbour = PATH_NO_NEIGHBOUR,
		.path_mtu = c->pmtu,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.min_rnr_timer = 12,
		.max_rd_atomic = c->rd_atomic,
		.max_dest_rd_atomic = c->rd_atomic,
		.rq_psn = c->psn,
		.sq_psn = c->psn,
		.dest_qp_num = n->peer->qpn,
		.alt.av = av_of(n, 1),
		.alt.neighbour = PATH_NO_NEIGHBOUR,
		.alt.pkey = 0xFFFF,
		.alt.port = 1,
		.alt.timeout = c->timeout,
	};
}

int
modify_attr(struct node *n, const struct qp_attr *attr, uint32_t mask, struct error *err)
{
	return rc_qp_modify(n->w, n->qpn, attr, mask, err);
}

int
modify(struct node *n, enum qp_state state, uint32_t mask, struct error *err)
{
	struct qp_attr attr = qp_attr_of(n);

	attr.qp_state = state;
	return modify_attr(n, &attr, mask, err);
}

void
must_modify(struct node *n, enum qp_state state, uint32_t mask)
{
	struct error err = { "" };

	if (modify(n, state, mask, &err) != 0)
		fail_msg("%s", err.text);
}

static void
pair_node_memory(struct node *n)
{
	struct mem_config mc = {
		.max_pd = 4,
		.max_mr = 16,
		.max_mw = 16,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.grace = n->pair->config.grace,
	};
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE | MEM_ACCESS_MW_BIND,
		.length = PAIR_MEM,
		.va = n->va,
		.backing = MEM_EXTERNAL,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct error err = { "" };
	uint32_t i, seed = n == &n->pair->a ? 3 : 11;

	n->mem = mem_create(&mc);
	assert_non_null(n->mem);
	assert_int_equal(mem_pd_alloc(n->mem, &n->pd, &err), 0);
	n->bytes = aligned_alloc(4096, PAIR_MEM);
	assert_non_null(n->bytes);
	for (i = 0; i < PAIR_MEM; i++)
		n->bytes[i] = (uint8_t)(i * seed + (i >> 8));
	mr.pd = n->pd;
	mr.base = n->bytes;
	if (mem_mr_register(n->mem, &mr, &info, &err) != 0)
		fail_msg("%s", err.text);
	n->key = info.key;
}

static void
pair_node_create(struct node *n)
{
	const struct pair_config *c = &n->pair->config;
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = c->workers,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = {
		.event = pair_take_event,
		.event_arg = n,
		.tx = &n->sink,
		.violation = take_violation,
		.violation_arg = n,
	};
	struct qp_init_attr init;
	struct error err = { "" };

	dc.limits.max_qp = c->max_qp;
	dc.limits.window = c->window;
	dc.limits.ack_interval = c->ack_interval;
	dc.limits.min_ack_timeout = c->min_ack_timeout;
	if (c->congestion.dcqcn)
		dc.limits.congestion = c->congestion;
	dc.mem = n->mem;
	n->dev = rc_dev_create(&dc);
	assert_non_null(n->dev);
	n->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	wc.wheel = n->wheel;
	n->w = rc_worker_create(n->dev, &wc);
	assert_non_null(n->w);
	assert_int_equal(rc_cq_create(n->dev, c->cq_depth, &n->send_cq, &err), 0);
	assert_int_equal(rc_cq_create(n->dev, c->cq_depth, &n->recv_cq, &err), 0);
	init_attr(n, &init);
	if (rc_qp_create(n->w, &init, &n->qpn, &err) != 0)
		fail_msg("%s", err.text);
}

static void
pair_node_destroy(struct node *n)
{
	rc_worker_destroy(n->w);
	rc_dev_destroy(n->dev);
	timer_wheel_destroy(n->wheel);
	mem_destroy(n->mem);
	free(n->bytes);
	free(n->sent);
}

#define DEFAULT(field, value)                                                                      \
	do {                                                                                       \
		if (p->config.field == 0)                                                          \
			p->config.field = (value);                                                 \
	} while (0)

struct pair *
pair_create(const struct pair_config *config)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct node *n;

	assert_non_null(p);
	p->config = *config;
	DEFAULT(psn, FIRST_PSN);
	DEFAULT(pmtu, 256);
	DEFAULT(timeout, p->config.no_timer ? 0 : 14);
	DEFAULT(rd_atomic, 4);
	DEFAULT(send_wr, 64);
	DEFAULT(cq_depth, 128);
	DEFAULT(max_qp, 64);
	DEFAULT(workers, 2);
	DEFAULT(window, 1024);
	DEFAULT(ack_interval, 64);
	for (n = &p->a; n <= &p->b; n++) {
		n->sink = (struct tx_sink){ pair_reserve, pair_commit, tx_send_in_parts };
		n->pair = p;
		n->peer = n == &p->a ? &p->b : &p->a;
		n->room = UINT32_MAX;
		n->va = n == &p->a ? 0x100000000 : 0x200000000;
		n->sent = calloc(PAIR_SENT, sizeof(*n->sent));
		assert_non_null(n->sent);
		pair_node_memory(n);
		if (n == &p->a || !p->config.scripted)
			pair_node_create(n);
		else
			n->qpn = SCRIPTED_QPN;
	}
	if (p->config.scripted) {
		struct av av = av_of(&p->b, 0);

		path_init(&p->b.back, &av, p->b.qpn, p->a.qpn);
	}
	for (n = &p->a; n <= &p->b && !p->config.init_only; n++) {
		if (n->w == NULL)
			continue;
		must_modify(n, QPS_INIT, MASK_INIT);
		must_modify(n, QPS_RTR, MASK_RTR);
		must_modify(n, QPS_RTS, MASK_RTS);
	}
	return p;
}

void
pair_destroy(struct pair *p)
{
	pair_node_destroy(&p->a);
	pair_node_destroy(&p->b);
	free(p);
}

int
pair_setup(void **state)
{
	*state = pair_create(&(struct pair_config){ .retry_cnt = 7, .rnr_retry = 7 });
	return 0;
}

int
scripted_setup(void **state)
{
	*state = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.scripted = true,
	});
	return 0;
}

int
pair_teardown(void **state)
{
	if (*state != NULL)
		pair_destroy(*state);
	return 0;
}
