/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timer_wheel.h"
#include "peer.h"

uint8_t pattern[4096];

#define REMOTE (MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_ATOMIC)

/* --- the sink --- */

static uint32_t
be24(const uint8_t *b)
{
	return (uint32_t)b[0] << 16 | b[1] << 8 | b[2];
}

static void
name_answer(struct answer *a)
{
	static const char *const nak[] = { "NAK-SEQ", "NAK-INV", "NAK-ACC", "NAK-OP" };
	const char *what = "?";

	switch (a->opcode) {
	case RC_READ_RESP_FIRST:
		what = "FIRST";
		break;
	case RC_READ_RESP_MIDDLE:
		what = "MIDDLE";
		break;
	case RC_READ_RESP_LAST:
		what = "LAST";
		break;
	case RC_READ_RESP_ONLY:
		what = "ONLY";
		break;
	case RC_ATOMIC_ACK:
		what = "ATOMIC";
		break;
	case RC_ACK:
		if (AETH_KIND(a->syndrome) == AETH_ACK)
			what = "ACK";
		else if (AETH_KIND(a->syndrome) == AETH_RNR_NAK)
			what = "RNR";
		else if (a->syndrome >= 0x60 && a->syndrome <= 0x63)
			what = nak[a->syndrome & 3];
		break;
	}
	snprintf(a->text, sizeof(a->text), "%s %u", what, a->psn);
}

static uint8_t *
peer_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct peer *p = (struct peer *)sink;

	(void)path;
	assert_true(len <= sizeof(p->frame));
	if (p->sink_room == 0)
		return NULL;
	memset(p->frame, 0xEE, sizeof(p->frame));
	p->frame_len = len;
	return p->frame;
}

static void
peer_sink_commit(struct tx_sink *sink)
{
	struct peer *p = (struct peer *)sink;
	struct answer *a = &p->answers[p->answer_count++];
	const uint8_t *b = p->frame;
	uint32_t at = 12, i;

	p->sink_room--;
	assert_true(p->answer_count <= PEER_ANSWERS);
	memset(a, 0, sizeof(*a));
	a->opcode = b[0];
	assert_int_equal(b[1] & 0xC0, p->config.migreq ? 0x40 : 0);
	assert_int_equal(b[2] << 8 | b[3], 0xFFFF);
	assert_int_equal(be24(b + 5), PEER_QPN);
	assert_int_equal(p->frame_len % 4, 0);
	a->psn = be24(b + 9);
	if (opcodes[a->opcode].headers & HDR_AETH) {
		a->syndrome = b[at];
		a->msn = be24(b + at + 1);
		at += 4;
	}
	if (opcodes[a->opcode].headers & HDR_ATOMICACK) {
		for (i = 0; i < 8; i++)
			a->orig = a->orig << 8 | b[at + i];
		at += 8;
	}
	a->len = p->frame_len - at - (b[1] >> 4 & 3);
	assert_true(a->len <= MTU);
	memcpy(a->data, b + at, a->len);
	for (i = at + a->len; i < p->frame_len; i++)
		assert_int_equal(b[i], 0); /* padding */
	name_answer(a);
}

static void
peer_take_event(void *arg, const struct event *ev)
{
	struct peer *p = arg;

	assert_true(p->event_count < PEER_EVENTS);
	p->events[p->event_count++] = *ev;
}

/* --- set-up --- */

uint32_t
peer_register(struct peer *p, uint64_t va, uint32_t offset, uint32_t len, uint32_t access)
{
	struct mem_mr_attr attr = {
		.pd = p->pd,
		.access = access,
		.length = len,
		.va = va,
		.backing = MEM_EXTERNAL,
		.base = p->bytes + offset,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct error err = { "" };

	if (mem_mr_register(p->mem, &attr, &info, &err) != 0)
		fail_msg("%s", err.text);
	return info.key;
}

uint32_t
peer_window(struct peer *p, uint32_t at, uint32_t len, uint32_t access)
{
	struct mem_bind bind = {
		.mr_key = p->key,
		.pd = p->pd,
		.qpn = p->qpn,
		.access = access,
		.va = PEER_VA + at,
		.length = len,
	};
	struct error err = { "" };
	uint64_t token;
	uint32_t key;

	assert_int_equal(mem_mw_alloc(p->mem, p->pd, MEM_MW_TYPE_2, &bind.mw_key, &err), 0);
	bind.new_key = (bind.mw_key & ~0xFFu) | ((bind.mw_key + 1) & 0xFF);
	assert_int_equal(mem_mw_bind(p->mem, &bind, &key, &token), 0);
	return key;
}

void
peer_init_attr(const struct peer *p, struct qp_init_attr *init)
{
	*init = (struct qp_init_attr){
		.qp_type = QPT_RC,
		.pd = p->pd,
		.send_cq = p->send_cq,
		.recv_cq = p->recv_cq,
		.srq = p->config.srq ? p->srqn : RC_NO_SRQ,
		.cap = { .max_send_wr = 4, .max_recv_wr = p->config.recv_wr, .max_send_sge = 1,
			.max_recv_sge = 4, },
		.ack_per_packet = p->config.ack_per_packet,
		.flow_control = p->config.flow_control,
		.migreq = p->config.migreq ? MIGREQ_1 : MIGREQ_OF_LINK,
	};
}

void
peer_to_rtr(struct peer *p, uint32_t qpn)
{
	struct qp_attr attr = {
		.qp_state = QPS_INIT,
		.qp_access_flags = p->config.access,
		.pkey = 0xFFFF,
		.path_mtu = MTU,
		.dest_qp_num = PEER_QPN,
		.rq_psn = p->config.psn,
		.max_dest_rd_atomic = p->config.rd_atomic,
		.min_rnr_timer = p->config.rnr_timer,
		.neighbour = PATH_NO_NEIGHBOUR,
		.av = { .encap = ENCAP_ROCEV2_IPV4, .vlan = PATH_NO_VLAN,
			.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 1 },
			.dgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 2 },
			.smac = { 2, 0, 0, 0, 0, 1 }, .dmac = { 2, 0, 0, 0, 0, 2 }, },
	};
	struct error err = { "" };

	if (rc_qp_modify(p->w, qpn, &attr,
		    QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
		    &err) != 0)
		fail_msg("%s", err.text);
	attr.qp_state = QPS_RTR;
	if (rc_qp_modify(p->w, qpn, &attr,
		    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
			    QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
		    &err) != 0)
		fail_msg("%s", err.text);
}

uint32_t
peer_qp(struct peer *p, const struct qp_init_attr *init)
{
	struct error err = { "" };
	uint32_t qpn;

	if (rc_qp_create(p->w, init, &qpn, &err) != 0)
		fail_msg("%s", err.text);
	peer_to_rtr(p, qpn);
	return qpn;
}

struct peer *
peer_create(const struct peer_config *config)
{
	struct peer *p = calloc(1, sizeof(*p));
	struct mem_config mc = {
		.max_pd = 4,
		.max_mr = 16,
		.max_mw = 16,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 2,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = { .event = peer_take_event, .icrc_unchecked = true };
	struct qp_init_attr init;
	struct error err = { "" };
	unsigned int i;

	assert_non_null(p);
	p->config = *config;
	if (p->config.access == 0)
		p->config.access = REMOTE;
	if (p->config.rd_atomic == 0)
		p->config.rd_atomic = 4;
	else if (p->config.rd_atomic == 255)
		p->config.rd_atomic = 0;
	if (p->config.rnr_timer == 0)
		p->config.rnr_timer = 12;
	if (p->config.recv_wr == 0)
		p->config.recv_wr = 16;
	if (p->config.cq_depth == 0)
		p->config.cq_depth = 64;
	p->sink = (struct tx_sink){ peer_sink_reserve, peer_sink_commit, tx_send_in_parts };
	p->sink_room = UINT32_MAX;

	dc.limits.max_qp = 16;
	p->mem = mem_create(&mc);
	assert_non_null(p->mem);
	dc.mem = p->mem;
	p->dev = rc_dev_create(&dc);
	assert_non_null(p->dev);
	p->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	wc.wheel = p->wheel;
	wc.tx = &p->sink;
	wc.event_arg = p;
	p->w = rc_worker_create(p->dev, &wc);
	assert_non_null(p->w);
	assert_int_equal(mem_pd_alloc(p->mem, &p->pd, &err), 0);
	assert_int_equal(rc_cq_create(p->dev, p->config.cq_depth, &p->recv_cq, &err), 0);
	assert_int_equal(rc_cq_create(p->dev, 64, &p->send_cq, &err), 0);
	p->bytes = aligned_alloc(4096, PEER_MEM);
	assert_non_null(p->bytes);
	for (i = 0; i < PEER_MEM; i++)
		p->bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(0xA5 ^ i * 13);
	p->key = peer_register(p, PEER_VA, 0, PEER_MEM,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_MW_BIND | REMOTE);
	if (p->config.srq)
		assert_int_equal(rc_srq_create(p->w, p->pd, 8, 4, &p->srqn, &err), 0);
	peer_init_attr(p, &init);
	p->qpn = peer_qp(p, &init);
	return p;
}

void
peer_destroy(struct peer *p)
{
	rc_worker_destroy(p->w);
	rc_dev_destroy(p->dev);
	timer_wheel_destroy(p->wheel);
	mem_destroy(p->mem);
	free(p->bytes);
	free(p);
}

/* The ordinary peer: every default. */
int
peer_setup(void **state)
{
	*state = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	return 0;
}

int
peer_teardown(void **state)
{
	peer_destroy(*state);
	return 0;
}

/* --- requests --- */

struct packet *
request(struct peer *p, uint8_t opcode, uint32_t psn)
{
	p->pkt = (struct packet){
		.op = &opcodes[opcode],
		.opcode = opcode,
		.payload = pattern,
		.ackreq = true,
		.pkey = 0xFFFF,
		.dest_qpn = p->qpn,
		.psn = psn & PSN_MASK,
		.encap = ENCAP_ROCEV2_IPV4,
		.has_grh = true,
		.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 2 },
		.dgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 1 },
		.rkey = p->key,
	};
	return &p->pkt;
}

enum verdict
feed(struct peer *p)
{
	return rc_receive(p->w, &p->pkt, 1000);
}

/* The payload of PSN n begins with n, so that tests recognise it in memory. */
static void
payload(struct packet *pkt, uint32_t len)
{
	pattern[0] = (uint8_t)pkt->psn;
	pkt->payload_len = len;
	pkt->pad = wire_pad(len);
}

enum verdict
in_send(struct peer *p, uint8_t opcode, uint32_t psn, uint32_t len)
{
	payload(request(p, opcode, psn), len);
	return feed(p);
}

enum verdict
in_write(struct peer *p, uint8_t opcode, uint32_t psn, uint32_t at, uint32_t dmalen, uint32_t len)
{
	struct packet *pkt = request(p, opcode, psn);

	payload(pkt, len);
	if (pkt->op->headers & HDR_RETH) {
		pkt->va = PEER_VA + at;
		pkt->dmalen = dmalen;
	}
	return feed(p);
}

enum verdict
in_read(struct peer *p, uint32_t psn, uint32_t at, uint32_t len)
{
	struct packet *pkt = request(p, RC_READ_REQUEST, psn);

	pkt->va = PEER_VA + at;
	pkt->dmalen = len;
	return feed(p);
}

enum verdict
in_cmp_swap(struct peer *p, uint32_t psn, uint32_t at, uint64_t compare, uint64_t swap)
{
	struct packet *pkt = request(p, RC_CMP_SWAP, psn);

	pkt->va = PEER_VA + at;
	pkt->compare = compare;
	pkt->swap_add = swap;
	return feed(p);
}

enum verdict
in_fetch_add(struct peer *p, uint32_t psn, uint32_t at, uint64_t add)
{
	struct packet *pkt = request(p, RC_FETCH_ADD, psn);

	pkt->va = PEER_VA + at;
	pkt->swap_add = add;
	return feed(p);
}

void
post(struct peer *p, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct sge sge = { PEER_VA + at, len, p->key };
	struct recv_wr wr = { .wr_id = wr_id, .num_sge = 1, .sg_list = &sge };
	struct error err = { "" };
	int rc = p->config.srq ? rc_srq_post(p->w, p->srqn, &wr, &err)
			       : rc_post_recv(p->w, p->qpn, &wr, &err);

	if (rc != 0)
		fail_msg("%s", err.text);
}

unsigned int
run_slice(struct peer *p, unsigned int budget)
{
	return rc_run(p->w, 2000, budget);
}

void
run(struct peer *p)
{
	run_slice(p, 1000);
	if (p->sink_room > 0)
		assert_false(rc_pending(p->w));
}

/* --- expectations --- */

void
expect_answers(struct peer *p, const char *first, ...)
{
	unsigned int i = p->answer_next;
	const char *want;
	va_list ap;

	va_start(ap, first);
	for (want = first; want != NULL; want = va_arg(ap, const char *), i++) {
		if (i >= p->answer_count)
			fail_msg("expected \"%s\", nothing was sent", want);
		assert_string_equal(p->answers[i].text, want);
	}
	va_end(ap);
	if (i < p->answer_count)
		fail_msg("\"%s\" was sent, nothing expected", p->answers[i].text);
	/* keep the answers just expected for answered() */
	memmove(p->answers, p->answers + p->answer_next,
		(p->answer_count - p->answer_next) * sizeof(p->answers[0]));
	p->answer_count -= p->answer_next;
	p->answer_next = p->answer_count;
}

const struct answer *
answered(const struct peer *p, unsigned int i)
{
	assert_true(i < p->answer_count);
	return &p->answers[i];
}

void
expect_wc(struct peer *p, uint64_t wr_id, enum wc_status status, struct wc *wc)
{
	struct wc got;

	if (rc_cq_poll(p->dev, p->recv_cq, &got, 1) != 1)
		fail_msg("no completion for work request %u", (unsigned int)wr_id);
	assert_int_equal(got.wr_id, wr_id);
	assert_string_equal(wc_status_name(got.status), wc_status_name(status));
	assert_int_equal(got.qp_num, p->qpn);
	if (wc != NULL)
		*wc = got;
}

void
expect_no_wc(struct peer *p)
{
	struct wc wc;

	assert_int_equal(rc_cq_poll(p->dev, p->recv_cq, &wc, 1), 0);
}

/* Skip events that tests do not expect: COMM_EST, CQ_COMPLETION and QP_ERROR. */
static bool
peer_next_event(struct peer *p, struct event *ev)
{
	while (p->event_next < p->event_count) {
		*ev = p->events[p->event_next++];
		if (ev->type != EVENT_COMM_EST && ev->type != EVENT_CQ_COMPLETION &&
			ev->type != EVENT_QP_ERROR)
			return true;
	}
	return false;
}

void
expect_event(struct peer *p, enum event_type type)
{
	struct event ev;

	if (!peer_next_event(p, &ev))
		fail_msg("no event %s", event_type_name(type));
	assert_string_equal(event_type_name(ev.type), event_type_name(type));
}

void
expect_no_event(struct peer *p)
{
	struct event ev;

	if (peer_next_event(p, &ev))
		fail_msg("event %s", event_type_name(ev.type));
}

static struct rc_qp_info
peer_info_of(const struct peer *p)
{
	struct rc_qp_info info;

	assert_int_equal(rc_qp_query(p->w, p->qpn, &info), 0);
	return info;
}

enum qp_state
state_of(const struct peer *p)
{
	return peer_info_of(p).attr.qp_state;
}

uint32_t
epsn_of(const struct peer *p)
{
	return peer_info_of(p).attr.rq_psn;
}

struct rc_counters
counters_of(const struct peer *p)
{
	return peer_info_of(p).counters;
}
