/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RESET and up again: the new life begins without requests and without completions of the old one.
 * What other queue pairs completed on the same CQs stays, in its order.
 */

#include "probe.h"

#define OLD 8 /* messages before RESET */

static struct side a, b; /* b receives */
static struct ibv_qp *other[2]; /* on the CQs of a and b */

static void
connect_both(struct ibv_qp *from, struct ibv_qp *to)
{
	qp_advance(from, to, IBV_QPS_RTS);
	qp_advance(to, from, IBV_QPS_RTS);
}

static void
reset_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	expect(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	expect(qp->state == IBV_QPS_RESET);
}

/* A message of the other pair. */
static void
other_message(uint64_t wr_id)
{
	struct side from = a, to = b;

	from.qp = other[0];
	to.qp = other[1];
	side_post_receive(&to, wr_id);
	side_post_send(&from, wr_id, true);
}

static void
expect_completion(struct ibv_cq *cq, const struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_wc wc = next_completion(cq);

	expect(wc.qp_num == qp->qp_num && wc.wr_id == wr_id && wc.status == IBV_WC_SUCCESS);
}

/* Wait until both sides have completions; none of a's and b's is polled. */
static void
old_messages(void)
{
	struct side from, to;
	uint64_t i;

	side_make(&from, a.context, NULL);
	side_make(&to, b.context, NULL);
	connect_both(from.qp, to.qp);
	for (i = 0; i < OLD; i++)
		side_post_receive(&b, i);
	for (i = 0; i < OLD; i++) {
		if (i == OLD / 2)
			other_message(50);
		side_post_send(&a, i, true);
	}
	other_message(51);
	for (i = 0; i < OLD; i++) {
		side_post_receive(&to, i);
		side_post_send(&from, i, true);
		expect_completion(from.cq, from.qp, i);
	}
	/* requests that the worker may have and that complete no more */
	side_post_receive(&b, OLD);
	side_post_send(&a, OLD, false);
}

int
probe_reset(int argc, char **argv)
{
	struct ibv_wc wc;
	uint64_t i;

	(void)argc;
	(void)argv;
	side_make(&a, ibv_open_device(find_device("polca0")), NULL);
	side_make(&b, ibv_open_device(find_device("polca1")), NULL);
	other[0] = side_make_qp(&a, false);
	other[1] = side_make_qp(&b, false);
	expect(other[0] != NULL && other[1] != NULL);
	connect_both(a.qp, b.qp);
	connect_both(other[0], other[1]);
	old_messages();
	reset_qp(a.qp);
	reset_qp(b.qp);
	probe_psn =
		0x1000; /* what is left of the old life on the wire is too old for the new one */
	connect_both(a.qp, b.qp);
	for (i = 0; i < SIDE_DEPTH; i++) /* the queues are empty */
		side_post_receive(&b, 100 + i);
	for (i = 0; i < SIDE_DEPTH; i++)
		side_post_send(&a, 100 + i, true);
	for (i = 50; i < 52; i++) {
		expect_completion(a.cq, other[0], i);
		expect_completion(b.cq, other[1], i);
	}
	for (i = 0; i < SIDE_DEPTH; i++) {
		expect_completion(a.cq, a.qp, 100 + i);
		expect_completion(b.cq, b.qp, 100 + i);
	}
	expect(ibv_poll_cq(a.cq, 1, &wc) == 0 && ibv_poll_cq(b.cq, 1, &wc) == 0);
	return 0;
}
