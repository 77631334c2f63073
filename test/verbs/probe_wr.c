/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ibv_wr_* and extended CQs, in what rdma-core's own tests leave out: requests in one batch,
 * inline data, batches that are given up or fail, invalidation, and the end of polca. a sends, b
 * receives.
 */

#include <arpa/inet.h>

#include "probe.h"

#define OPERATIONS                                                                                 \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV | \
		IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)
#define IMM 0x01020304

static struct side a, b;
static struct ibv_cq_ex *a_cq, *b_cq;
static struct ibv_qp_ex *a_qp, *b_qp;

static struct ibv_qp *
make_extended_qp(struct side *s, struct ibv_cq_ex *cq, uint64_t operations)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { SIDE_DEPTH, SIDE_DEPTH, 2, 1, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->pd,
		.send_ops_flags = operations,
	};

	return ibv_create_qp_ex(s->context, &init);
}

static struct ibv_cq_ex *
make_extended_cq(struct side *s, uint64_t flags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = SIDE_DEPTH * 4, .wc_flags = flags };

	return ibv_create_cq_ex(s->context, &init);
}

static struct ibv_qp_ex *
side_extend(struct side *s, struct ibv_cq_ex **cq)
{
	*cq = make_extended_cq(s, IBV_WC_STANDARD_FLAGS);
	expect(*cq != NULL);
	expect(ibv_destroy_qp(s->qp) == 0);
	s->qp = make_extended_qp(s, *cq, OPERATIONS);
	expect(s->qp != NULL && ibv_qp_to_qp_ex(s->qp) != NULL);
	return ibv_qp_to_qp_ex(s->qp);
}

/* Wait for the oldest completion; ibv_end_poll() must follow. */
static void
poll_first(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int rc;

	while ((rc = ibv_start_poll(cq, &attr)) == ENOENT)
		;
	expect(rc == 0 && cq->status == IBV_WC_SUCCESS);
	expect(cq->wr_id == wr_id && ibv_wc_read_opcode(cq) == opcode);
}

static void
poll_next(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	int rc;

	while ((rc = ibv_next_poll(cq)) == ENOENT)
		;
	expect(rc == 0 && cq->status == IBV_WC_SUCCESS);
	expect(cq->wr_id == wr_id && ibv_wc_read_opcode(cq) == opcode);
}

static void
wr_signaled(struct ibv_qp_ex *qp, uint64_t wr_id)
{
	qp->wr_id = wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

static void
a_sends(uint64_t wr_id, const char *text)
{
	wr_signaled(a_qp, wr_id);
	ibv_wr_send(a_qp);
	ibv_wr_set_inline_data(a_qp, (void *)(uintptr_t)text, strlen(text));
}

static void
b_received(uint64_t wr_id, const char *text)
{
	poll_first(b_cq, wr_id, IBV_WC_RECV);
	expect(ibv_wc_read_byte_len(b_cq) == strlen(text));
	expect(ibv_wc_read_qp_num(b_cq) == b.qp->qp_num);
	ibv_end_poll(b_cq);
	expect(memcmp(b.memory, text, strlen(text)) == 0);
}

static void
two_requests_in_one_batch(void)
{
	struct ibv_data_buf parts[] = { { (void *)(uintptr_t) "ab", 2 },
		{ (void *)(uintptr_t) "cde", 3 } };
	uint8_t *to = b.memory + 4096;

	side_post_receive(&b, 1);
	side_post_receive(&b, 2);
	memset(a.memory, 'x', 100);
	ibv_wr_start(a_qp);
	wr_signaled(a_qp, 11);
	ibv_wr_send(a_qp);
	ibv_wr_set_inline_data_list(a_qp, 2, parts);
	wr_signaled(a_qp, 12);
	ibv_wr_rdma_write_imm(a_qp, b.mr->rkey, (uintptr_t)to, htonl(IMM));
	ibv_wr_set_sge(a_qp, a.mr->lkey, (uintptr_t)a.memory, 100);
	expect(ibv_wr_complete(a_qp) == 0);
	poll_first(a_cq, 11, IBV_WC_SEND);
	poll_next(a_cq, 12, IBV_WC_RDMA_WRITE);
	expect(ibv_next_poll(a_cq) == ENOENT);
	ibv_end_poll(a_cq);
	b_received(1, "abcde");
	poll_first(b_cq, 2, IBV_WC_RECV_RDMA_WITH_IMM);
	expect(ibv_wc_read_wc_flags(b_cq) == IBV_WC_WITH_IMM);
	expect(ibv_wc_read_imm_data(b_cq) == htonl(IMM));
	ibv_end_poll(b_cq);
	expect(to[0] == 'x' && to[99] == 'x');
}

/* Of a batch that is given up, or has an error in it, nothing is posted. */
static void
nothing_of_a_failed_batch(void)
{
	static char too_long[4096];
	int i;

	side_post_receive(&b, 3);
	ibv_wr_start(a_qp);
	a_sends(20, "given up");
	ibv_wr_abort(a_qp);
	ibv_wr_start(a_qp);
	a_sends(21, "before the error");
	wr_signaled(a_qp, 22);
	ibv_wr_send(a_qp);
	ibv_wr_set_inline_data(a_qp, too_long, sizeof(too_long));
	a_sends(23, "behind it");
	expect(ibv_wr_complete(a_qp) == EINVAL);
	ibv_wr_start(a_qp);
	ibv_wr_set_sge(a_qp, a.mr->lkey, (uintptr_t)a.memory, 1);
	expect(ibv_wr_complete(a_qp) == EINVAL);
	ibv_wr_start(a_qp);
	for (i = 0; i <= SIDE_DEPTH; i++)
		a_sends(24, "one too many");
	expect(ibv_wr_complete(a_qp) == ENOMEM);
	ibv_wr_start(a_qp);
	expect(ibv_wr_complete(a_qp) == 0);
	ibv_wr_start(a_qp);
	a_sends(25, "the only one");
	expect(ibv_wr_complete(a_qp) == 0);
	poll_first(a_cq, 25, IBV_WC_SEND);
	ibv_end_poll(a_cq);
	b_received(3, "the only one");
}

static uint32_t
b_binds(struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind_info info = { mr, (uintptr_t)b.memory, 64, IBV_ACCESS_REMOTE_WRITE };
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	ibv_wr_start(b_qp);
	wr_signaled(b_qp, 30);
	ibv_wr_bind_mw(b_qp, mw, rkey, &info);
	expect(ibv_wr_complete(b_qp) == 0);
	poll_first(b_cq, 30, IBV_WC_BIND_MW);
	ibv_end_poll(b_cq);
	return rkey;
}

/* Key of a window that b binds in a batch that is given up, and in one that fails. */
static void
window_of_a_failed_batch(struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind_info info = { mr, (uintptr_t)b.memory, 64, IBV_ACCESS_REMOTE_WRITE };
	uint32_t before = mw->rkey;

	ibv_wr_start(b_qp);
	ibv_wr_bind_mw(b_qp, mw, ibv_inc_rkey(before), &info);
	ibv_wr_abort(b_qp);
	expect(mw->rkey == before);
	ibv_wr_start(b_qp);
	ibv_wr_bind_mw(b_qp, mw, ibv_inc_rkey(before), &info);
	ibv_wr_send(b_qp);
	ibv_wr_set_sge_list(b_qp, SIDE_DEPTH, NULL);
	expect(ibv_wr_complete(b_qp) == EINVAL);
	expect(mw->rkey == before);
}

static void
windows_invalidated(void)
{
	struct ibv_mr *mr =
		ibv_reg_mr(b.pd, b.memory, SIDE_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey;

	expect(mr != NULL && mw != NULL);
	window_of_a_failed_batch(mw, mr);
	rkey = b_binds(mw, mr);
	side_post_receive(&b, 4);
	ibv_wr_start(a_qp);
	wr_signaled(a_qp, 31);
	ibv_wr_send_inv(a_qp, rkey);
	ibv_wr_set_sge_list(a_qp, 0, NULL);
	expect(ibv_wr_complete(a_qp) == 0);
	poll_first(a_cq, 31, IBV_WC_SEND);
	ibv_end_poll(a_cq);
	poll_first(b_cq, 4, IBV_WC_RECV);
	expect(ibv_wc_read_wc_flags(b_cq) == IBV_WC_WITH_INV);
	expect(ibv_wc_read_invalidated_rkey(b_cq) == rkey);
	ibv_end_poll(b_cq);
	rkey = b_binds(mw, mr);
	ibv_wr_start(b_qp);
	wr_signaled(b_qp, 32);
	ibv_wr_local_inv(b_qp, rkey);
	expect(ibv_wr_complete(b_qp) == 0);
	poll_first(b_cq, 32, IBV_WC_LOCAL_INV);
	ibv_end_poll(b_cq);
	expect(ibv_dealloc_mw(mw) == 0 && ibv_dereg_mr(mr) == 0);
}

static void
what_is_refused(void)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	expect(make_extended_qp(&a, a_cq, OPERATIONS | IBV_QP_EX_WITH_TSO) == NULL &&
		errno == EOPNOTSUPP);
	expect(make_extended_cq(&a, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) == NULL &&
		errno == EOPNOTSUPP);
	expect(ibv_start_poll(a_cq, &attr) == EINVAL);
	attr.comp_mask = 0;
	expect(ibv_start_poll(a_cq, &attr) == ENOENT);
}

/* Requests that polca's end leaves outstanding are flushed in their order. */
static void
flushed_when_polca_ends(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t i;
	int rc;

	ibv_wr_start(a_qp);
	for (i = 40; i < 43; i++)
		a_sends(i, "nobody receives it");
	expect(ibv_wr_complete(a_qp) == 0);
	probe_say("ready");
	for (i = 40; i < 43; i++) {
		while ((rc = ibv_start_poll(a_cq, &attr)) == ENOENT)
			;
		expect(rc == 0 && a_cq->wr_id == i && a_cq->status == IBV_WC_WR_FLUSH_ERR);
		ibv_end_poll(a_cq);
	}
	expect(ibv_start_poll(a_cq, &attr) == EIO);
	probe_say("flushed");
}

int
probe_wr(int argc, char **argv)
{
	side_make(&a, ibv_open_device(find_device("polca0")), NULL);
	side_make(&b, ibv_open_device(find_device("polca1")), NULL);
	expect(ibv_qp_to_qp_ex(a.qp) == NULL); /* of the older kind */
	a_qp = side_extend(&a, &a_cq);
	b_qp = side_extend(&b, &b_cq);
	ibv_wr_start(a_qp);
	a_sends(10, "in RESET");
	expect(ibv_wr_complete(a_qp) == EINVAL);
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
	qp_advance(b.qp, a.qp, IBV_QPS_RTS);
	if (argc > 1 && strcmp(argv[1], "death") == 0) {
		flushed_when_polca_ends();
	} else {
		two_requests_in_one_batch();
		nothing_of_a_failed_batch();
		windows_invalidated();
		what_is_refused();
	}
	expect(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
	expect(ibv_destroy_cq(ibv_cq_ex_to_cq(a_cq)) == 0);
	expect(ibv_destroy_cq(ibv_cq_ex_to_cq(b_cq)) == 0);
	return 0;
}
