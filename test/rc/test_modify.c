/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * QP creation and ibv_modify_qp: states, required and allowed attributes, ranges, and what each
 * transition does (rc-transport 11).
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"

static int
reset_setup(void **state)
{
	*state = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.scripted = true,
		.init_only = true,
	});
	return 0;
}

static void
modify_to_rts(struct node *n)
{
	must_modify(n, QPS_INIT, MASK_INIT);
	must_modify(n, QPS_RTR, MASK_RTR);
	must_modify(n, QPS_RTS, MASK_RTS);
}

/* Bring a node's QP from any state to another by the fewest steps. */
static void
modify_bring(struct node *n, enum qp_state state)
{
	must_modify(n, QPS_RESET, QP_ATTR_STATE);
	if (state == QPS_RESET)
		return;
	must_modify(n, QPS_INIT, MASK_INIT);
	if (state == QPS_INIT)
		return;
	if (state == QPS_ERR) {
		must_modify(n, QPS_ERR, QP_ATTR_STATE);
		return;
	}
	must_modify(n, QPS_RTR, MASK_RTR);
	if (state == QPS_RTR)
		return;
	must_modify(n, QPS_RTS, MASK_RTS);
	if (state == QPS_SQD)
		must_modify(n, QPS_SQD, QP_ATTR_STATE);
}

#define NEVER UINT32_MAX
#define OPTIONAL_SQD                                                                               \
	(QP_ATTR_PORT | QP_ATTR_AV | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |     \
		QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_ACCESS_FLAGS |     \
		QP_ATTR_PKEY_INDEX | QP_ATTR_MIN_RNR_TIMER | QP_ATTR_ALT_PATH |                    \
		QP_ATTR_PATH_MIG_STATE)

/* The table of rc-transport 11: required attributes, and optional ones. */
static const struct {
	enum qp_state from, to;
	uint32_t required, optional;
} table[] = {
	{ QPS_RESET, QPS_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, 0 },
	{ QPS_INIT, QPS_INIT, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS },
	{ QPS_INIT, QPS_RTR,
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
		QP_ATTR_ALT_PATH | QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX },
	{ QPS_RTR, QPS_RTS,
		QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
			QP_ATTR_MAX_QP_RD_ATOMIC,
		QP_ATTR_CUR_STATE | QP_ATTR_ALT_PATH | QP_ATTR_ACCESS_FLAGS |
			QP_ATTR_MIN_RNR_TIMER | QP_ATTR_PATH_MIG_STATE },
	{ QPS_RTS, QPS_RTS, 0,
		QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_ALT_PATH |
			QP_ATTR_PATH_MIG_STATE | QP_ATTR_MIN_RNR_TIMER },
	{ QPS_RTS, QPS_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY },
	{ QPS_SQD, QPS_RTS, 0,
		QP_ATTR_CUR_STATE | QP_ATTR_ALT_PATH | QP_ATTR_ACCESS_FLAGS |
			QP_ATTR_MIN_RNR_TIMER | QP_ATTR_PATH_MIG_STATE },
	{ QPS_SQD, QPS_SQD, 0, OPTIONAL_SQD },
};

static int
try_modify(struct node *n, enum qp_state from, enum qp_state to, uint32_t mask)
{
	struct qp_attr attr = qp_attr_of(n);
	struct error err = { "" };

	modify_bring(n, from);
	attr.qp_state = to;
	attr.cur_qp_state = from;
	return rc_qp_modify(n->w, n->qpn, &attr, mask | QP_ATTR_STATE, &err);
}

/* every pair of states, every attribute bit: allowed exactly where the table says so */
static void
test_every_transition_and_attribute(void **state)
{
	static const enum qp_state reachable[] = { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD,
		QPS_ERR };
	struct pair *p = *state;
	struct node *n = &p->a;
	uint32_t required, optional, bit;
	unsigned int f, to, i;

	for (f = 0; f < sizeof(reachable) / sizeof(reachable[0]); f++) {
		for (to = 0; to < QPS_COUNT; to++) {
			enum qp_state from = reachable[f];

			required = NEVER;
			optional = 0;
			if (to == QPS_RESET || (to == QPS_ERR && from != QPS_RESET))
				required = 0;
			for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
				if (table[i].from == from && table[i].to == to) {
					required = table[i].required;
					optional = table[i].optional;
				}
			}
			if (required == NEVER) {
				assert_int_equal(try_modify(n, from, to, 0), -EINVAL);
				assert_int_equal(state_of(n), from);
				continue;
			}
			assert_int_equal(try_modify(n, from, to, required), 0);
			assert_int_equal(state_of(n), to);
			for (i = 1; i <= 21; i++) {
				bit = 1u << i;
				if (required & bit) {
					assert_int_equal(try_modify(n, from, to, required & ~bit),
						-EINVAL);
					assert_int_equal(state_of(n), from);
				} else if (optional & bit) {
					assert_int_equal(try_modify(n, from, to, required | bit),
						0);
				} else {
					assert_true(try_modify(n, from, to, required | bit) < 0);
					assert_int_equal(state_of(n), from);
				}
			}
		}
	}
}

/* An error names missing or forbidden attributes, or the states allowed next. */
static void
test_modify_errors_name_attributes_and_states(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_attr attr;

	assert_int_equal(modify(&p->a, QPS_RTR, MASK_RTR, &err), -EINVAL);
	assert_string_equal(err.text, "modify RESET to RTR: not allowed; from RESET: RESET, INIT");
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	assert_int_equal(modify(&p->a, QPS_RTR, MASK_RTR & ~(QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN),
				 &err),
		-EINVAL);
	assert_string_equal(err.text, "modify INIT to RTR: missing RQ_PSN, DEST_QPN");
	assert_int_equal(modify(&p->a, QPS_RTR, MASK_RTR | QP_ATTR_QKEY | QP_ATTR_TIMEOUT, &err),
		-EINVAL);
	assert_string_equal(err.text, "modify INIT to RTR: does not take QKEY, TIMEOUT");
	assert_int_equal(modify(&p->a, QPS_RTR, MASK_RTR | QP_ATTR_PATH_MIG_STATE, &err), -EINVAL);
	assert_string_equal(err.text, "modify INIT to RTR: does not take PATH_MIG_STATE");
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	attr = qp_attr_of(&p->a);
	attr.qp_state = QPS_RTS;
	attr.cur_qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTS | QP_ATTR_CUR_STATE, &err),
		-EINVAL);
	assert_string_equal(err.text, "cur_qp_state: got INIT, but the queue pair is in RTR");
	assert_int_equal(rc_qp_modify(p->a.w, 99, &attr, MASK_RTS, &err), -ENOENT);
}

/* ranges; min_rnr_timer 0 is 655.36 ms and allowed */
static void
test_attribute_ranges(void **state)
{
	struct pair *p = *state;
	struct qp_attr good, attr;
	struct error err = { "" };

#define REFUSED(step, mask_, field, value, says)                                                   \
	do {                                                                                       \
		attr = good;                                                                       \
		attr.qp_state = step;                                                              \
		attr.field = value;                                                                \
		assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, mask_, &err), -EINVAL);     \
		assert_string_equal(err.text, says);                                               \
	} while (0)

	good = qp_attr_of(&p->a);
	REFUSED(QPS_INIT, MASK_INIT, qp_access_flags, 0x100,
		"qp_access_flags: got 0x100, allowed: bits of 0x1f");
	REFUSED(QPS_INIT, MASK_INIT, pkey, 0x8000, "pkey_index: entry 0 holds no valid P_Key");
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	REFUSED(QPS_RTR, MASK_RTR, path_mtu, 1500,
		"path_mtu: got 1500, allowed: 256, 512, 1024, 2048, 4096");
	REFUSED(QPS_RTR, MASK_RTR, path_mtu, 128,
		"path_mtu: got 128, allowed: 256, 512, 1024, 2048, 4096");
	REFUSED(QPS_RTR, MASK_RTR, rq_psn, 0x1000000,
		"rq_psn: got 16777216, allowed: 0 to 16777215");
	REFUSED(QPS_RTR, MASK_RTR, dest_qp_num, 0xFFFFFF,
		"dest_qp_num: got 16777215, allowed: 1 to 16777214");
	REFUSED(QPS_RTR, MASK_RTR, min_rnr_timer, 32, "min_rnr_timer: got 32, allowed: 0 to 31");
	REFUSED(QPS_RTR, MASK_RTR, max_dest_rd_atomic, 17,
		"max_dest_rd_atomic: got 17, allowed: 0 to 16");
	REFUSED(QPS_RTR, MASK_RTR, av.sl, 16, "sl: got 16, allowed: 0 to 15");
	REFUSED(QPS_RTR, MASK_RTR, av.flow_label, 0x100000,
		"flow_label: got 1048576, allowed: 0 to 1048575");
	REFUSED(QPS_RTR, MASK_RTR | QP_ATTR_ALT_PATH, alt.timeout, 32,
		"alt_timeout: got 32, allowed: 0 to 31");
	REFUSED(QPS_RTR, MASK_RTR | QP_ATTR_ALT_PATH, alt.pkey, 0x8000,
		"alt_pkey_index: entry 0 holds no valid P_Key");
	REFUSED(QPS_RTR, MASK_RTR | QP_ATTR_ALT_PATH, alt.av.sl, 16,
		"alt_sl: got 16, allowed: 0 to 15");
	REFUSED(QPS_RTR, MASK_RTR | QP_ATTR_ALT_PATH, alt.av.flow_label, 0x100000,
		"alt_flow_label: got 1048576, allowed: 0 to 1048575");
	attr = good;
	attr.qp_state = QPS_RTR;
	memset(&attr.alt.av.dgid, 0, 16);
	assert_int_equal(modify_attr(&p->a, &attr, MASK_RTR | QP_ATTR_ALT_PATH, &err), -EINVAL);
	assert_string_equal(err.text, "alt_dgid: missing");
	attr = good;
	attr.qp_state = QPS_RTR;
	memset(&attr.av.dgid, 0, 16);
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTR, &err), -EINVAL);
	assert_string_equal(err.text, "dgid: missing");
	attr = good;
	attr.qp_state = QPS_RTR;
	memset(&attr.av.sgid, 0, 16);
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTR, &err), -EINVAL);
	assert_string_equal(err.text, "sgid: missing");
	attr = good;
	attr.qp_state = QPS_RTR;
	attr.av.encap = ENCAP_IB;
	attr.av.dlid = 0;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTR, &err), -EINVAL);
	assert_string_equal(err.text, "dlid: got 0, allowed: 1 to 65535");
	REFUSED(QPS_RTR, MASK_RTR, av.encap, ENCAP_IB + 1, "encap: got 4, allowed: 0 to 3");
	REFUSED(QPS_COUNT, MASK_RTR, pkey, 0xFFFF, "qp_state: got 7, allowed: 0 to 6");

	attr = good;
	attr.qp_state = QPS_RTR;
	attr.min_rnr_timer = 0;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTR, &err), 0);

	REFUSED(QPS_RTS, MASK_RTS, timeout, 32, "timeout: got 32, allowed: 0 to 31");
	REFUSED(QPS_RTS, MASK_RTS, retry_cnt, 8, "retry_cnt: got 8, allowed: 0 to 7");
	REFUSED(QPS_RTS, MASK_RTS, rnr_retry, 8, "rnr_retry: got 8, allowed: 0 to 7");
	REFUSED(QPS_RTS, MASK_RTS, sq_psn, 0x1000000,
		"sq_psn: got 16777216, allowed: 0 to 16777215");
	REFUSED(QPS_RTS, MASK_RTS, max_rd_atomic, 17, "max_rd_atomic: got 17, allowed: 0 to 16");
	assert_int_equal(state_of(&p->a), QPS_RTR);
}

/* rc-transport 11: where work may be posted */
static void
test_posting_by_state(void **state)
{
	static const struct {
		enum qp_state state;
		bool sq, rq;
	} rows[] = {
		{ QPS_RESET, false, false },
		{ QPS_INIT, false, true },
		{ QPS_RTR, false, true },
		{ QPS_RTS, true, true },
		{ QPS_SQD, true, true },
		{ QPS_ERR, true, true },
	};
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct recv_wr rwr = { .wr_id = 2 };
	struct sge sge;
	unsigned int i;

	make_wr(&p->a, &wr, &sge, WR_SEND, 1, 1);
	for (i = 0; i < 6; i++) {
		modify_bring(&p->a, rows[i].state);
		assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err),
			rows[i].sq ? 0 : -EINVAL);
		assert_int_equal(rc_post_recv(p->a.w, p->a.qpn, &rwr, &err),
			rows[i].rq ? 0 : -EINVAL);
		transmit(&p->a);
		assert_int_equal(p->a.sent_count - p->a.seen, rows[i].state == QPS_RTS);
		p->a.seen = p->a.sent_count;
	}
	/* ERR: flushed at once */
	expect_wc(&p->a, 1, WC_WR_FLUSH_ERR);
	expect_recv(&p->a, 2, WC_WR_FLUSH_ERR);
	modify_bring(&p->a, QPS_INIT);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text,
		"post_send: the queue pair is in INIT; allowed: RTS, SQD, ERR");
}

/*
 * SQD: requests that have begun are finished, no other begins, then EVENT_SQ_DRAINED comes. In RTS
 * the others begin.
 */
static void
test_sqd_drains(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_attr attr;

	modify_to_rts(&p->a);
	post(&p->a, WR_RDMA_WRITE, 1, 3 * 256);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	rc_run(p->a.w, p->now, 1);
	expect_tx(&p->a, "WRITE First 201");
	attr = qp_attr_of(&p->a);
	attr.qp_state = QPS_SQD;
	attr.en_sqd_async_notify = true;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr,
				 QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, &err),
		0);
	post(&p->a, WR_RDMA_WRITE, 3, 1); /* posted, but not begun */
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 202", "WRITE Last 203");
	ack(p, 202);
	expect_no_event(&p->a);
	/* not drained yet: attributes may not change */
	assert_int_equal(modify(&p->a, QPS_SQD, QP_ATTR_STATE | QP_ATTR_TIMEOUT, &err), -EBUSY);
	/* a request that has begun is retried */
	nak(p, 0x60, 203);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Last 203");
	ack(p, 203);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_event(&p->a, EVENT_SQ_DRAINED);
	transmit(&p->a);
	expect_silence(&p->a);
	expect_no_wc(&p->a);
	must_modify(&p->a, QPS_SQD, QP_ATTR_STATE | QP_ATTR_TIMEOUT);
	must_modify(&p->a, QPS_RTS, QP_ATTR_STATE);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 204", "WRITE Only 205");
	expect_no_event(&p->a);

	/* nothing is outstanding: the event comes at once, but only if it was asked for */
	ack(p, 205);
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr,
				 QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, &err),
		0);
	expect_event(&p->a, EVENT_SQ_DRAINED);
	must_modify(&p->a, QPS_RTS, QP_ATTR_STATE);
	must_modify(&p->a, QPS_SQD, QP_ATTR_STATE);
	expect_no_event(&p->a);
}

/* rc-transport 11: the port may change in SQD; the next packet leaves by the new one. */
static void
test_sqd_changes_the_port(void **state)
{
	struct pair *p = *state;
	struct node *n = &p->a;
	struct qp_attr attr = qp_attr_of(n);
	struct error err = { "" };

	modify_to_rts(n);
	post(n, WR_RDMA_WRITE, 1, 1);
	transmit(n);
	assert_int_equal(n->sent[n->sent_count - 1].port, 0);
	assert_int_equal(ack(p, 201), VERDICT_RESPONSE);
	must_modify(n, QPS_SQD, QP_ATTR_STATE);
	transmit(n);
	attr.qp_state = QPS_SQD;
	attr.port = 1;
	assert_int_equal(rc_qp_modify(n->w, n->qpn, &attr, QP_ATTR_STATE | QP_ATTR_PORT, &err), 0);
	must_modify(n, QPS_RTS, QP_ATTR_STATE);
	post(n, WR_RDMA_WRITE, 2, 1);
	transmit(n);
	assert_int_equal(n->sent[n->sent_count - 1].port, 1);
	assert_int_equal(info_of(n).attr.av.port, 1);
}

/*
 * to ERR by hand: both queues complete WR_FLUSH_ERR in order, nothing is sent any more, timers are
 * off
 */
static void
test_to_err_flushes(void **state)
{
	struct pair *p = *state;

	modify_to_rts(&p->a);
	post_recv(&p->a, 10, 1);
	post_recv(&p->a, 11, 1);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post_flags(&p->a, WR_RDMA_WRITE, 2, 1, 0);
	transmit(&p->a);
	p->a.seen = p->a.sent_count;
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	must_modify(&p->a, QPS_ERR, QP_ATTR_STATE);
	expect_wc(&p->a, 1, WC_WR_FLUSH_ERR);
	expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
	expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
	expect_recv(&p->a, 10, WC_WR_FLUSH_ERR);
	expect_recv(&p->a, 11, WC_WR_FLUSH_ERR);
	pass(p, UINT64_C(1) << 40);
	transmit(&p->a);
	expect_silence(&p->a);
	expect_no_wc(&p->a);
	assert_int_equal(counters_of(&p->a).req_cqe_flush_error, 3);
	assert_int_equal(counters_of(&p->a).resp_cqe_flush_error, 2);
	assert_int_equal(counters_of(&p->a).req_cqe_error + counters_of(&p->a).resp_cqe_error, 0);
}

/* RESET drops all work without completions, and the QP can be connected again. */
static void
test_reset_drops_all_work(void **state)
{
	struct pair *p = *state;

	modify_to_rts(&p->a);
	post_recv(&p->a, 10, 1);
	post(&p->a, WR_RDMA_WRITE, 1, 600);
	post(&p->a, WR_RDMA_READ, 2, 600);
	transmit(&p->a);
	p->a.seen = p->a.sent_count;
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	must_modify(&p->a, QPS_RESET, QP_ATTR_STATE);
	pass(p, UINT64_C(1) << 40);
	transmit(&p->a);
	expect_silence(&p->a);
	expect_no_wc(&p->a);
	assert_int_equal(info_of(&p->a).sq_posted, 0);
	assert_int_equal(info_of(&p->a).rq_posted, 0);

	modify_to_rts(&p->a);
	post(&p->a, WR_RDMA_READ, 4, 1);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201");
	read_response(p, RC_READ_RESP_ONLY, 201, 0, 1);
	expect_wc(&p->a, 4, WC_SUCCESS);
	expect_no_wc(&p->a);
}

static void
test_keepalive_needs_a_qp_in_rts(void **state)
{
	struct pair *p = *state;
	struct rc_qp_received received;

	assert_int_equal(rc_qp_keepalive(p->a.w, p->a.qpn ^ 1), -ENOENT);
	assert_int_equal(rc_qp_received(p->a.w, p->a.qpn ^ 1, &received), -ENOENT);
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	assert_int_equal(rc_qp_keepalive(p->a.w, p->a.qpn), -EINVAL);
	expect_silence(&p->a);
}

/* With max_rd_atomic 0 a Read or Atomic can never be sent, so it fails when its turn comes. */
static void
test_no_reads_without_rd_atomic(void **state)
{
	struct pair *p = *state;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };

	must_modify(&p->a, QPS_INIT, MASK_INIT);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	attr.qp_state = QPS_RTS;
	attr.max_rd_atomic = 0;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTS, &err), 0);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_READ, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	expect_no_wc(&p->a);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_LOC_QP_OP_ERR);
	expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
}

/* A QP on an SRQ raises LAST_WQE_REACHED when it takes no more WQEs from it. */
static void
test_last_wqe_reached(void **state)
{
	struct pair *p = *state;
	struct qp_init_attr init;
	struct error err = { "" };

	init_attr(&p->a, &init);
	assert_int_equal(rc_srq_create(p->a.w, p->a.pd, 4, 1, &init.srq, &err), 0);
	assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, &err), 0);
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	expect_no_event(&p->a);
	must_modify(&p->a, QPS_ERR, QP_ATTR_STATE);
	expect_event(&p->a, EVENT_QP_LAST_WQE_REACHED);
	must_modify(&p->a, QPS_ERR, QP_ATTR_STATE);
	expect_no_event(&p->a);
}

/* An error of rc_qp_create() names the attribute that is out of range. */
static void
test_create_checks(void **state)
{
	struct pair *p = *state;
	struct qp_init_attr good, init;
	struct error err = { "" };
	uint32_t qpn;

#define NOT_CREATED(field, value, eno, says)                                                       \
	do {                                                                                       \
		init = good;                                                                       \
		init.field = value;                                                                \
		assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), -(eno));                 \
		assert_string_equal(err.text, says);                                               \
	} while (0)

	init_attr(&p->a, &good);
	NOT_CREATED(qp_type, (enum qp_type)4, EINVAL, "qp_type: got 4, allowed: RC");
	NOT_CREATED(cap.max_send_wr, 0, EINVAL, "max_send_wr: got 0, allowed: 1 to 16384");
	NOT_CREATED(cap.max_send_wr, 16385, EINVAL, "max_send_wr: got 16385, allowed: 1 to 16384");
	NOT_CREATED(cap.max_send_sge, 17, EINVAL, "max_send_sge: got 17, allowed: 0 to 16");
	NOT_CREATED(cap.max_recv_sge, 17, EINVAL, "max_recv_sge: got 17, allowed: 0 to 16");
	NOT_CREATED(cap.max_inline_data, 257, EINVAL,
		"max_inline_data: got 257, allowed: 0 to 256");
	NOT_CREATED(pd, 99, ENOENT, "pd: there is no protection domain 99");
	NOT_CREATED(send_cq, 77, ENOENT, "send_cq: there is no completion queue 77");
	NOT_CREATED(recv_cq, 77, ENOENT, "recv_cq: there is no completion queue 77");
	NOT_CREATED(srq, 5, ENOENT, "srq: there is no shared receive queue 5");
	/* the failed calls hold nothing: without the QP, domain and CQs can be destroyed */
	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	assert_int_equal(rc_cq_destroy(p->a.dev, p->a.send_cq, &err), 0);
	assert_int_equal(rc_cq_destroy(p->a.dev, p->a.recv_cq, &err), 0);
}

/* After a neighbour or GID has changed, the path is compiled again and the QP goes on. */
static void
test_changed_neighbour_or_gid_changes_the_path(void **state)
{
	const struct port_attr attr = { .num_pkeys = 1, .pkey = { 0xFFFF } };
	struct pair *p = *state;
	uint16_t sport;

	modify_to_rts(&p->a);
	sport = info_of(&p->a).udp_sport;
	assert_true(sport >= 0xC000);
	rc_path_changed(p->a.w, 0, &attr);
	assert_int_equal(info_of(&p->a).udp_sport, sport);
	post(&p->a, WR_SEND, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
}

static int
modify_ib_setup(void **state)
{
	*state = pair_create(&(struct pair_config){
		.encap = ENCAP_IB,
		.retry_cnt = 7,
		.rnr_retry = 7,
	});
	return 0;
}

/* The port attributes of a's address in av_of(); b's path to a does not change. */
static const struct port_attr ib_port = {
	.ib = true,
	.num_pkeys = 1,
	.pkey = { 0xFFFF },
	.lid = 1,
	.num_gids = 2,
	.gid = { { .gid.raw = { [0] = 0xFE, [15] = 1 }, .type = GID_IB },
		{ .gid.raw = { [0] = 0xFE, [15] = 2 }, .type = GID_IB } },
};

static struct packet
one_write(struct pair *p, const char *text)
{
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, text);
	return sent_packet(&p->a, 0);
}

/* A new LID, and another VL for the SL: new packets have them, and so do packets sent again. */
static void
test_lid_follows_the_port(void **state)
{
	struct port_attr attr = ib_port;
	struct pair *p = *state;
	struct packet pkt;

	pkt = one_write(p, "WRITE Only 201");
	assert_int_equal(pkt.slid, 1);
	assert_int_equal(pkt.vl, 0);
	attr.lid = 0x30;
	attr.sl_to_vl[0] = 3;
	rc_path_changed(p->a.w, 0, &attr);
	assert_int_equal(info_of(&p->a).attr.av.slid, 0x30);
	pkt = one_write(p, "WRITE Only 202");
	assert_int_equal(pkt.slid, 0x30);
	assert_int_equal(pkt.vl, 3);
	assert_int_equal(pkt.dlid, 2);
	/* attributes of another port change nothing */
	attr.lid = 0x31;
	rc_path_changed(p->a.w, 1, &attr);
	assert_int_equal(info_of(&p->a).attr.av.slid, 0x30);
	pass(p, 1000000000);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202");
	assert_int_equal(sent_packet(&p->a, 0).slid, 0x30);
}

/* rc-transport 5.5: received packets must have the new LID, and the GID of the QP's table entry. */
static void
test_old_lid_is_refused(void **state)
{
	struct port_attr attr = ib_port;
	struct pair *p = *state;

	attr.lid = 0x30;
	rc_path_changed(p->b.w, 0, &attr);
	one_write(p, "WRITE Only 201");
	deliver(&p->a);
	assert_int_equal(p->b.verdict, VERDICT_ADDRESS);
	attr.lid = 2;
	rc_path_changed(p->b.w, 0, &attr);
	p->a.delivered = 0;
	deliver(&p->a);
	assert_int_equal(p->b.verdict, VERDICT_REQUEST);
}

/* When the LID changes, the path bits stay; a GID is looked up by its table index. */
static void
test_path_bits_and_gid_index_stay(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.encap = ENCAP_IB,
		.retry_cnt = 7,
		.init_only = true,
	});
	struct qp_attr attr = qp_attr_of(&p->a);
	struct port_attr port = ib_port;
	struct error err = { "" };

	must_modify(&p->a, QPS_INIT, MASK_INIT);
	attr.qp_state = QPS_RTR;
	attr.sgid_index = 1;
	attr.src_path_bits = 3;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_RTR, &err), 0);
	port.lid = 0x40;
	port.lmc = 2;
	rc_path_changed(p->a.w, 0, &port);
	assert_int_equal(info_of(&p->a).attr.av.slid, 0x43);
	assert_int_equal(info_of(&p->a).attr.av.sgid.raw[15], 2);
	/* with a smaller LMC, path bits above it are 0 */
	port.lmc = 1;
	rc_path_changed(p->a.w, 0, &port);
	assert_int_equal(info_of(&p->a).attr.av.slid, 0x41);
	/* with the old LMC they have their old value */
	port.lmc = 7;
	rc_path_changed(p->a.w, 0, &port);
	assert_int_equal(info_of(&p->a).attr.av.slid, 0x03);
	pair_destroy(p);
	*state = NULL;
}

/* rc-transport 5.6: the P_Key is that of the table entry; an invalid entry matches no packet. */
static void
test_pkey_follows_the_table(void **state)
{
	static const struct {
		uint16_t pkey;
		unsigned int num;
		enum verdict v;
	} rows[] = {
		{ 0x8001, 1, VERDICT_PKEY },
		{ 0x0000, 1, VERDICT_PKEY },
		{ 0x8000, 1, VERDICT_PKEY },
		{ 0xFFFF, 0, VERDICT_PKEY },
		{ 0x7FFF, 1, VERDICT_REQUEST },
	};
	struct port_attr attr = ib_port;
	struct pair *p = *state;
	unsigned int i;

	one_write(p, "WRITE Only 201");
	attr.lid = 2;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		attr.pkey[0] = rows[i].pkey;
		attr.num_pkeys = rows[i].num;
		rc_path_changed(p->b.w, 0, &attr);
		p->a.delivered = 0;
		deliver(&p->a);
		assert_int_equal(p->b.verdict, rows[i].v);
	}
	/* each violation was reported with its source QP */
	assert_int_equal(p->b.violations, 4);
	assert_int_equal(p->b.violation_from, p->a.qpn);
	assert_int_equal(rc_worker_violations(p->b.w, 0)->pkey, 4);
	assert_int_equal(rc_worker_violations(p->b.w, 1)->pkey, 0);
	assert_null(rc_worker_violations(p->b.w, RC_PORTS_MAX));
	/* b sends with the entry's P_Key */
	transmit(&p->b);
	expect_tx(&p->b, "ACK 201");
	assert_int_equal(sent_packet(&p->b, 0).pkey, 0x7FFF);
}

#define RESET(t) cmocka_unit_test_setup_teardown(t, reset_setup, pair_teardown)
#define IB(t)    cmocka_unit_test_setup_teardown(t, modify_ib_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RESET(test_every_transition_and_attribute),
		RESET(test_modify_errors_name_attributes_and_states),
		RESET(test_attribute_ranges),
		RESET(test_posting_by_state),
		RESET(test_sqd_drains),
		RESET(test_sqd_changes_the_port),
		RESET(test_to_err_flushes),
		RESET(test_reset_drops_all_work),
		RESET(test_keepalive_needs_a_qp_in_rts),
		RESET(test_no_reads_without_rd_atomic),
		RESET(test_last_wqe_reached),
		RESET(test_create_checks),
		RESET(test_changed_neighbour_or_gid_changes_the_path),
		IB(test_lid_follows_the_port),
		IB(test_old_lid_is_refused),
		cmocka_unit_test(test_path_bits_and_gid_index_stay),
		IB(test_pkey_follows_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
