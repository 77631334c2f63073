/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The send queue: errors of post_send, completions, local operations and their grace periods.
 */

#include <errno.h>
#include <string.h>

#include "../checked.h"
#include "pair.h"
#include "rc/qp_directory.h"

/* --- posting --- */

/* Malformed work requests are refused at once, with a reason. */
static void
test_malformed_requests_are_refused(void **state)
{
	struct pair *p = *state;
	struct send_wr good, wr;
	struct sge sge, many[5];
	struct error err = { "" };
	uint8_t bytes[65];

#define REFUSED(says)                                                                              \
	do {                                                                                       \
		assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);              \
		assert_string_equal(err.text, says);                                               \
		wr = good;                                                                         \
	} while (0)

	make_wr(&p->a, &good, &sge, WR_SEND, 1, 8);
	wr = good;
	wr.opcode = 10;
	REFUSED("opcode: got 10, which is no work request");
	wr.send_flags = 0x100;
	REFUSED("send_flags: got 0x100, allowed: bits of 0xf");
	wr.num_sge = 5;
	wr.sg_list = many;
	REFUSED("num_sge: got 5, allowed: 0 to 4");
	wr.sg_list = NULL;
	REFUSED("sg_list: missing");
	sge.length = 7;
	wr.opcode = WR_ATOMIC_CMP_AND_SWP;
	REFUSED("sg_list: 7 bytes, ATOMIC_CMP_AND_SWP needs 8");
	sge.length = 1u << 31;
	many[0] = many[1] = sge;
	wr.num_sge = 2;
	wr.sg_list = many;
	REFUSED("sg_list: 4294967296 bytes, a message has at most 2147483648");
	wr.opcode = WR_LOCAL_INV;
	REFUSED("num_sge: got 1, LOCAL_INV has none");
	wr.send_flags |= SEND_INLINE;
	REFUSED("num_sge: got 1, an inline request has none");
	wr.send_flags |= SEND_INLINE;
	wr.num_sge = 0;
	wr.inline_len = 65;
	wr.inline_data = bytes;
	REFUSED("inline data: got 65 bytes, allowed: 0 to 64");
	wr.send_flags |= SEND_INLINE;
	wr.num_sge = 0;
	wr.inline_len = 1;
	REFUSED("inline data: missing");
	wr.send_flags |= SEND_INLINE;
	wr.num_sge = 0;
	wr.opcode = WR_RDMA_READ;
	REFUSED("send_flags: RDMA_READ cannot be inline");
	assert_int_equal(rc_post_send(p->a.w, 99, &wr, &err), -ENOENT);
	transmit(&p->a);
	expect_silence(&p->a);
}

static uint32_t
sq_window(struct node *n, enum mem_mw_type type)
{
	struct error err = { "" };
	uint32_t key;

	if (mem_mw_alloc(n->mem, n->pd, type, &key, &err) != 0)
		fail_msg("%s", err.text);
	return key;
}

/* A request with one SGE is refused for the same reasons as one with several. */
static void
test_single_sge_is_checked(void **state)
{
	struct pair *p = *state;
	struct qp_init_attr init;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE, 1, 1);
	sge.length = (1u << 31) + 1;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text,
		"sg_list: 2147483649 bytes, a message has at most 2147483648");
	sge.length = 1;
	wr.send_flags = 0x12;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text, "send_flags: got 0x12, allowed: bits of 0xf");
	assert_int_equal(info_of(&p->a).sq_posted, 0);

	wr.send_flags = SEND_SIGNALED;
	init_attr(&p->a, &init);
	assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, &err), 0);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text,
		"post_send: the queue pair is in RESET; allowed: RTS, SQD, ERR");
	init.cap.max_send_sge = 0;
	assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, &err), 0);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text,
		"post_send: the queue pair is in RESET; allowed: RTS, SQD, ERR");
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_INIT, &err), 0);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text,
		"post_send: the queue pair is in RTR; allowed: RTS, SQD, ERR");
	must_modify(&p->a, QPS_RTS, MASK_RTS);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text, "num_sge: got 1, allowed: 0 to 0");
	wr.num_sge = 0;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(sent_packet(&p->a, 0).payload_len, 0);
}

/* Messages without bytes: no SGE, one or two empty SGEs, or empty inline data. */
static void
test_messages_without_bytes(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge, two[2];
	unsigned int i;

	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE, 1, 0);
	two[0] = two[1] = sge;
	two[0].lkey = two[1].lkey = 0; /* keys of empty SGEs are not checked */
	for (i = 0; i < 4; i++) {
		wr.num_sge = i < 3 ? i : 0;
		wr.sg_list = i == 0 ? NULL : two;
		wr.send_flags = SEND_SIGNALED | (i == 3 ? SEND_INLINE : 0);
		assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	}
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202", "WRITE Only 203", "WRITE Only 204");
	for (i = 0; i < 4; i++)
		assert_int_equal(sent_packet(&p->a, i).payload_len, 0);
	ack(p, 204);
	for (i = 0; i < 4; i++)
		assert_int_equal(expect_wc(&p->a, 1, WC_SUCCESS).byte_len, 0);
}

/* Empty SGEs do not change the message that the others make. */
static void
test_empty_sges(void **state)
{
	static const uint32_t lengths[][3] = { { 0, 5, 0 }, { 5, 0, 3 }, { 0, 0, 8 }, { 1, 2, 3 } };
	struct pair *p = *state;
	struct error err = { "" };
	uint8_t want[16];
	struct send_wr wr;
	struct sge sge[3];
	uint32_t i, k, n;

	for (i = 0; i < 4; i++) {
		make_wr(&p->a, &wr, sge, WR_SEND, i, 1);
		for (k = 0, n = 0; k < 3; k++) {
			sge[k] = (struct sge){ p->a.va + 100 * k, lengths[i][k], sge[0].lkey };
			memcpy(want + n, p->a.bytes + 100 * k, lengths[i][k]);
			n += lengths[i][k];
		}
		wr.num_sge = 3;
		assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
		transmit(&p->a);
		expect_run(&p->a, "SEND Only", 201 + i, 201 + i);
		assert_int_equal(sent_packet(&p->a, 0).payload_len, n);
		assert_memory_equal(sent_packet(&p->a, 0).payload, want, n);
		ack(p, 201 + i);
		assert_int_equal(expect_wc(&p->a, i, WC_SUCCESS).byte_len, n);
	}
}

/* Wrong local keys (unknown, of another domain, an R_Key): LOC_PROT_ERR, and nothing is sent. */
static void
test_local_key_is_checked(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (i > 0) {
			pair_destroy(p);
			*state = p = pair_create(&(struct pair_config){ .scripted = true });
		}
		make_wr(&p->a, &wr, &sge, WR_SEND, 1, 8);
		if (i == 0)
			sge.lkey ^= 1;
		else if (i == 1)
			sge.lkey = sq_window(&p->a, MEM_MW_TYPE_2); /* R_Keys are no L_Keys */
		else
			sge.addr -= 1;
		assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
		transmit(&p->a);
		expect_silence(&p->a);
		expect_wc(&p->a, 1, WC_LOC_PROT_ERR);
		assert_int_equal(state_of(&p->a), QPS_ERR);
	}
}

/* max_send_wr work requests, signaled or not; completed ones make room */
static void
test_queue_full(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .send_wr = 3, .scripted = true });
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	*state = p;
	post_flags(&p->a, WR_RDMA_WRITE, 1, 1, 0);
	post_flags(&p->a, WR_RDMA_WRITE, 2, 1, 0);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE, 4, 1);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -ENOMEM);
	assert_string_equal(err.text, "post_send: 3 work requests are posted, max_send_wr");
	transmit(&p->a);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), -ENOMEM);
	ack(p, 201);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
}

/*
 * post_send copies inline data: later changes of the buffer have no effect, also when it is sent
 * again.
 */
static void
test_inline_bytes_are_copied(void **state)
{
	struct pair *p = *state;
	uint8_t bytes[5] = { 'h', 'e', 'l', 'l', 'o' };
	struct send_wr wr = {
		.wr_id = 1,
		.opcode = WR_SEND,
		.inline_data = bytes,
		.inline_len = 5,
		.send_flags = SEND_SIGNALED | SEND_INLINE,
	};
	struct error err = { "" };

	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	memset(bytes, 0, sizeof(bytes));
	transmit(&p->a);
	nak(p, 0x60, 201);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201", "SEND Only 201");
	assert_memory_equal(sent_packet(&p->a, 0).payload, "hello", 5);
	assert_memory_equal(sent_packet(&p->a, 1).payload, "hello", 5);
	assert_int_equal(sent_packet(&p->a, 1).payload_len, 5);
}

/* Inline data has up to max_inline_data bytes, whatever the size of the gather list. */
static void
test_inline_at_its_limit(void **state)
{
	struct pair *p = *state;
	struct qp_init_attr init;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct send_wr wr = {
		.wr_id = 1,
		.opcode = WR_SEND,
		.send_flags = SEND_SIGNALED | SEND_INLINE,
		.inline_len = 256,
	};
	struct error err = { "" };

	init_attr(&p->a, &init);
	init.cap.max_inline_data = 256;
	assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(p->a.w, p->a.qpn, &attr, MASK_INIT, &err), 0);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	must_modify(&p->a, QPS_RTS, MASK_RTS);
	wr.inline_data = p->a.bytes + 77;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	assert_memory_equal(sent_packet(&p->a, 0).payload, p->a.bytes + 77, 256);
}

/* --- completions --- */

/* Unsignaled requests complete silently unless they fail; with sq_sig_all all are signaled. */
static void
test_unsignaled_requests_complete_silently(void **state)
{
	struct pair *p = *state;

	post_flags(&p->a, WR_RDMA_WRITE, 1, 1, 0);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	post_flags(&p->a, WR_RDMA_WRITE, 3, 1, 0);
	transmit(&p->a);
	ack(p, 203);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_no_wc(&p->a);
	assert_int_equal(info_of(&p->a).sq_posted, 0);
	post_flags(&p->a, WR_RDMA_WRITE, 4, 1, 0);
	transmit(&p->a);
	nak(p, 0x62, 204);
	expect_wc(&p->a, 4, WC_REM_ACCESS_ERR);

	pair_destroy(p);
	*state = p = pair_create(&(struct pair_config){ .sig_all = true, .scripted = true });
	post_flags(&p->a, WR_RDMA_WRITE, 1, 1, 0);
	transmit(&p->a);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
}

/* rc-transport 11: wc_opcode and byte_len of each */
static void
test_completion_opcodes(void **state)
{
	static const struct {
		enum wr_opcode wr;
		uint32_t wc, len;
	} rows[] = {
		{ WR_SEND, 0, 8 },
		{ WR_SEND_WITH_IMM, 0, 8 },
		{ WR_RDMA_WRITE, 1, 8 },
		{ WR_RDMA_WRITE_WITH_IMM, 1, 8 },
		{ WR_RDMA_READ, 2, 8 },
		{ WR_ATOMIC_CMP_AND_SWP, 3, 8 },
		{ WR_ATOMIC_FETCH_AND_ADD, 4, 8 },
	};
	struct pair *p = *state;
	unsigned int i;
	struct wc wc;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (i < 2 || rows[i].wr == WR_RDMA_WRITE_WITH_IMM)
			post_recv(&p->b, i, 8);
		post(&p->a, rows[i].wr, i, 8);
		exchange(p);
		wc = expect_wc(&p->a, i, WC_SUCCESS);
		assert_int_equal(wc.opcode, rows[i].wc);
		assert_int_equal(wc.byte_len, rows[i].len);
	}
}

/* --- local operations --- */

static uint64_t grace_started, grace_over;

static uint64_t
sq_grace_start(void *arg)
{
	(void)arg;
	return ++grace_started;
}

static bool
sq_grace_done(void *arg, uint64_t token)
{
	(void)arg;
	return token <= grace_over;
}

static int
grace_setup(void **state)
{
	grace_started = grace_over = 0;
	*state = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.scripted = true,
		.grace = { sq_grace_start, sq_grace_done, NULL },
	});
	return 0;
}

static void
sq_post_bind(struct node *n, uint64_t wr_id, uint32_t mw, uint32_t new_key, uint32_t flags)
{
	struct send_wr wr = { .wr_id = wr_id, .opcode = WR_BIND_MW,
		.send_flags = SEND_SIGNALED | flags,
		.bind_mw = { .mw_key = mw, .new_key = new_key, .mr_key = n->key,
			.access = MEM_ACCESS_REMOTE_READ, .addr = n->va, .length = 4096, }, };
	struct error err = { "" };

	if (rc_post_send(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

static void
post_inv(struct node *n, uint64_t wr_id, uint32_t key)
{
	struct send_wr wr = {
		.wr_id = wr_id,
		.opcode = WR_LOCAL_INV,
		.invalidate_rkey = key,
		.send_flags = SEND_SIGNALED,
	};
	struct error err = { "" };

	if (rc_post_send(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

static bool
bound(struct node *n, uint32_t key)
{
	struct mem_mw_info info;

	return mem_mw_query(n->mem, key, &info) == 0 && info.bound;
}

/*
 * Bind and invalidate are executed in the queue's order, have no PSN and SSN, and complete in
 * order.
 */
static void
test_local_operations_in_order(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_2), key = (mw & ~0xFFu) | ((mw + 7) & 0xFF);

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	sq_post_bind(&p->a, 2, mw, key, 0);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	assert_false(bound(&p->a, key)); /* not executed before its turn */
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202");
	assert_true(bound(&p->a, key));
	expect_no_wc(&p->a); /* behind 1 */
	ack(p, 202);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_int_equal(expect_wc(&p->a, 2, WC_SUCCESS).opcode, WC_BIND_MW);
	expect_wc(&p->a, 3, WC_SUCCESS);
	post_inv(&p->a, 4, key);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(expect_wc(&p->a, 4, WC_SUCCESS).opcode, WC_LOCAL_INV);
	assert_false(bound(&p->a, key));
}

/*
 * The same for a peer that counts no credits: the operation stands behind the acknowledged request.
 */
static void
test_ack_before_a_local_operation(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_2), key = (mw & ~0xFFu) | ((mw + 7) & 0xFF);

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	sq_post_bind(&p->a, 3, mw, key, 0);
	transmit(&p->a);
	ack(p, 202);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_wc(&p->a, 3, WC_SUCCESS);
}

/* A rewind does not execute local operations again. */
static void
test_local_operations_are_executed_once(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_2), key = (mw & ~0xFFu) | ((mw + 7) & 0xFF);

	sq_post_bind(&p->a, 0, mw, key, 0);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post_inv(&p->a, 2, key); /* executed twice it would fail */
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	nak(p, 0x60, 201);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202", "WRITE Only 201", "WRITE Only 202");
	ack(p, 201);
	ack(p, 202);
	expect_wc(&p->a, 0, WC_SUCCESS);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_wc(&p->a, 3, WC_SUCCESS);
}

/*
 * A bind that replaces a binding which other workers may still use: its completion and all later
 * ones wait for the grace period. Later requests are sent meanwhile.
 */
static void
test_completion_waits_for_grace(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_1), first, second;

	sq_post_bind(&p->a, 1, mw, 0, 0);
	transmit(&p->a);
	first = expect_wc(&p->a, 1, WC_SUCCESS).mw_key; /* the first binding: no wait */
	sq_post_bind(&p->a, 2, first, 0, 0);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(grace_started, 1);
	ack(p, 201);
	expect_no_wc(&p->a);
	assert_true(rc_pending(p->a.w));
	rc_run(p->a.w, p->now, 10);
	expect_no_wc(&p->a);
	grace_over = 1;
	rc_run(p->a.w, p->now, 10);
	second = expect_wc(&p->a, 2, WC_SUCCESS).mw_key;
	assert_int_not_equal(second, first);
	expect_wc(&p->a, 3, WC_SUCCESS);
	assert_false(rc_pending(p->a.w));
}

/* While one waits, the QP goes to ERR (all complete in order) or is destroyed (none completes). */
static void
test_failure_while_grace_runs(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_1), key;

	sq_post_bind(&p->a, 1, mw, 0, 0);
	transmit(&p->a);
	key = expect_wc(&p->a, 1, WC_SUCCESS).mw_key;
	sq_post_bind(&p->a, 2, key, 0, 0);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	post(&p->a, WR_RDMA_WRITE, 4, 1);
	post(&p->a, WR_RDMA_WRITE, 5, 1);
	transmit(&p->a);
	ack(p, 201);
	nak(p, 0x62, 202);
	expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
	expect_wc(&p->a, 3, WC_SUCCESS); /* the peer has executed it */
	expect_wc(&p->a, 4, WC_REM_ACCESS_ERR);
	expect_wc(&p->a, 5, WC_WR_FLUSH_ERR);
	expect_no_wc(&p->a);
	grace_over = 100;
	rc_run(p->a.w, p->now, 10);
	expect_no_wc(&p->a);

	/* destroyed while one waits */
	grace_over = 0;
	must_modify(&p->a, QPS_RESET, QP_ATTR_STATE);
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	must_modify(&p->a, QPS_RTS, MASK_RTS);
	mw = sq_window(&p->a, MEM_MW_TYPE_1);
	sq_post_bind(&p->a, 6, mw, 0, 0);
	transmit(&p->a);
	key = expect_wc(&p->a, 6, WC_SUCCESS).mw_key;
	sq_post_bind(&p->a, 7, key, 0, 0);
	transmit(&p->a);
	expect_no_wc(&p->a);
	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	grace_over = 100;
	rc_run(p->a.w, p->now, 10);
	expect_no_wc(&p->a);
	assert_false(rc_pending(p->a.w));
}

/*
 * A local operation fails when it is the oldest request: MW_BIND_ERR, the others are flushed, and
 * nothing behind it is sent.
 */
static void
test_local_operation_fails_in_turn(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post_inv(&p->a, 2, 0x12345678);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	expect_no_wc(&p->a);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_MW_BIND_ERR);
	expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
}

/* It does not fail before the grace period of an earlier operation is over. */
static void
test_local_failure_waits_for_grace(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_1), key;

	sq_post_bind(&p->a, 1, mw, 0, 0);
	transmit(&p->a);
	key = expect_wc(&p->a, 1, WC_SUCCESS).mw_key;
	sq_post_bind(&p->a, 2, key, 0, 0);
	post_inv(&p->a, 3, 0x12345678);
	transmit(&p->a);
	expect_no_wc(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
	grace_over = 1;
	rc_run(p->a.w, p->now, 10);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_wc(&p->a, 3, WC_MW_BIND_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
}

/* A fenced local operation waits for earlier Reads. */
static void
test_fenced_local_operation(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->a, MEM_MW_TYPE_2), key = (mw & ~0xFFu) | ((mw + 7) & 0xFF);

	post(&p->a, WR_RDMA_READ, 1, 8);
	sq_post_bind(&p->a, 2, mw, key, SEND_FENCE);
	transmit(&p->a);
	assert_false(bound(&p->a, key));
	read_response(p, RC_READ_RESP_ONLY, 201, 0, 8);
	transmit(&p->a);
	assert_true(bound(&p->a, key));
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
}

/* a reads a window of b, then invalidates it by Send with Invalidate. */
static void
test_send_with_invalidate(void **state)
{
	struct pair *p = *state;
	uint32_t mw = sq_window(&p->b, MEM_MW_TYPE_2), key = (mw & ~0xFFu) | ((mw + 7) & 0xFF);
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	struct wc wc;

	sq_post_bind(&p->b, 1, mw, key, 0);
	exchange(p);
	expect_wc(&p->b, 1, WC_SUCCESS);
	make_wr(&p->a, &wr, &sge, WR_RDMA_READ, 1, 100);
	wr.rkey = key;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
	post_recv(&p->b, 2, 8);
	make_wr(&p->a, &wr, &sge, WR_SEND_WITH_INV, 2, 8);
	wr.invalidate_rkey = key;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	exchange(p);
	assert_int_equal(expect_wc(&p->a, 2, WC_SUCCESS).opcode, WC_SEND);
	wc = expect_recv(&p->b, 2, WC_SUCCESS);
	assert_int_equal(wc.wc_flags, WC_WITH_INV);
	assert_int_equal(wc.imm_data, key);
	assert_false(bound(&p->b, key));
	/* the right to read has ended */
	make_wr(&p->a, &wr, &sge, WR_RDMA_READ, 3, 100);
	wr.rkey = key;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	exchange(p);
	expect_wc(&p->a, 3, WC_REM_ACCESS_ERR);
	expect_event(&p->b, EVENT_QP_ACCESS_ERR);
}

static void
fail_twice(void *node, void *unused)
{
	struct node *n = node;
	struct rc_qp *qp = rc_qp_at(n->w, n->qpn);

	(void)unused;
	rc_sq_fail(qp, WC_RETRY_EXC_ERR);
	rc_sq_fail(qp, WC_RETRY_EXC_ERR);
}

/* A step ends with the first request that fails: builds with checks end if it fails another. */
static void
test_a_step_fails_one_request(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 8);
	post(&p->a, WR_SEND, 2, 8);
	assert_int_equal(ends_process(fail_twice, &p->a, NULL), CHECKED);
}

#define BOTH(t)     cmocka_unit_test_setup_teardown(t, pair_setup, pair_teardown)
#define SCRIPTED(t) cmocka_unit_test_setup_teardown(t, scripted_setup, pair_teardown)
#define GRACE(t)    cmocka_unit_test_setup_teardown(t, grace_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SCRIPTED(test_malformed_requests_are_refused),
		SCRIPTED(test_single_sge_is_checked),
		SCRIPTED(test_messages_without_bytes),
		SCRIPTED(test_empty_sges),
		SCRIPTED(test_local_key_is_checked),
		cmocka_unit_test_teardown(test_queue_full, pair_teardown),
		SCRIPTED(test_inline_bytes_are_copied),
		SCRIPTED(test_inline_at_its_limit),
		SCRIPTED(test_unsignaled_requests_complete_silently),
		BOTH(test_completion_opcodes),
		SCRIPTED(test_local_operations_in_order),
		SCRIPTED(test_ack_before_a_local_operation),
		SCRIPTED(test_local_operations_are_executed_once),
		GRACE(test_completion_waits_for_grace),
		GRACE(test_failure_while_grace_runs),
		SCRIPTED(test_local_operation_fails_in_turn),
		GRACE(test_local_failure_waits_for_grace),
		SCRIPTED(test_fenced_local_operation),
		BOTH(test_send_with_invalidate),
		SCRIPTED(test_a_step_fails_one_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
