/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Posting: what a queue cannot take is refused, and the caller is told which request it was. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "provider.h"

#define ENTRIES    8
#define DEPTH      5 /* requests that a queue takes: a limit may be no power of two */
#define STRIDE     256
#define MAX_SGE    2
#define MAX_INLINE 32

/* A queue pair in RTS and a shared receive queue, whose rings nobody empties. */
struct post_fixture {
	struct polca_context context;
	struct ring_segment segment;
	uint32_t doorbells[2];
	struct ring_queue queues[2];
	struct polca_qp qp;
	struct polca_cq cq;
	struct polca_srq srq;
	uint32_t cq_head, cq_tail;
	struct ring_completion completions[ENTRIES];
	_Alignas(64) uint8_t send[ENTRIES * STRIDE];
	_Alignas(64) uint8_t receive[ENTRIES * STRIDE];
	_Alignas(64) uint8_t shared[ENTRIES * STRIDE];
};

static int
post_setup(void **state)
{
	static struct post_fixture f;

	memset(&f, 0, sizeof(f));
	f.context.shared = &f.segment;
	f.context.doorbells = f.doorbells;
	f.context.hello.geometry.num_queues = 2;
	f.qp.queue = (struct polca_queue){ &f.context, &f.queues[0], 0 };
	ring_end_init(&f.qp.send, f.send, ENTRIES, STRIDE, &f.queues[0].send_head,
		&f.queues[0].send_tail);
	ring_end_init(&f.qp.receive, f.receive, ENTRIES, STRIDE, &f.queues[0].receive_head,
		&f.queues[0].receive_tail);
	f.qp.caps = (struct ring_caps){ DEPTH, DEPTH, MAX_SGE, MAX_SGE, MAX_INLINE };
	f.qp.verbs.qp.state = IBV_QPS_RTS;
	pthread_spin_init(&f.qp.send_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&f.qp.receive_lock, PTHREAD_PROCESS_PRIVATE);
	f.srq.queue = (struct polca_queue){ &f.context, &f.queues[1], 1 };
	ring_end_init(&f.srq.receive, f.shared, ENTRIES, STRIDE, &f.queues[1].receive_head,
		&f.queues[1].receive_tail);
	f.srq.attr = (struct ibv_srq_attr){ .max_wr = ENTRIES, .max_sge = MAX_SGE };
	f.qp.verbs.qp.send_cq = f.qp.verbs.qp.recv_cq = &f.cq.ibv;
	pthread_spin_init(&f.cq.lock, PTHREAD_PROCESS_PRIVATE);
	ring_end_init(&f.cq.ring, f.completions, ENTRIES, sizeof(f.completions[0]), &f.cq_tail,
		&f.cq_head);
	users_add(&f.qp);
	pthread_spin_init(&f.srq.lock, PTHREAD_PROCESS_PRIVATE);
	*state = &f;
	return 0;
}

static uint8_t bytes[64];
static struct ibv_sge eight = { .addr = (uintptr_t)bytes, .length = 8 };
static struct ibv_sge four = { .addr = (uintptr_t)bytes, .length = 4 };
static struct ibv_sge three[3];
static struct ibv_sge halves[2] = { { .length = UINT32_C(1) << 30 },
	{ .length = UINT32_C(1) << 30 } };
static struct ibv_sge too_long[2] = { { .length = UINT32_C(1) << 31 }, { .length = 1 } };
static struct ibv_sge long_inline = { .addr = (uintptr_t)bytes, .length = MAX_INLINE + 1 };
static struct ibv_sge short_inline = { .addr = (uintptr_t)bytes, .length = MAX_INLINE };

/* Between two that are posted alone or not at all: the first one is, the others are not. */
static void
expect_send_refused(struct post_fixture *f, struct ibv_send_wr wr)
{
	struct ibv_send_wr last = { .wr_id = 3, .opcode = IBV_WR_SEND }, *bad = NULL;
	struct ibv_send_wr first = { .wr_id = 1, .opcode = IBV_WR_SEND, .next = &wr };
	uint32_t before = f->queues[0].send_head;

	wr.wr_id = 2;
	wr.next = &last;
	assert_int_equal(polca_post_send(&f->qp.verbs.qp, &first, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(f->queues[0].send_head, before + 1);
}

static void
test_sends_that_are_refused(void **state)
{
	static const struct ibv_send_wr malformed[] = {
		{ .opcode = (enum ibv_wr_opcode)0x77 },
		{ .opcode = IBV_WR_TSO },
		{ .opcode = IBV_WR_SEND, .sg_list = three, .num_sge = 3 },
		{ .opcode = IBV_WR_SEND, .sg_list = three, .num_sge = -1 },
		{ .opcode = IBV_WR_RDMA_WRITE, .sg_list = too_long, .num_sge = 2 },
		{ .opcode = IBV_WR_RDMA_READ, .sg_list = too_long, .num_sge = 2 },
		{ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &four, .num_sge = 1 },
		{ .opcode = IBV_WR_ATOMIC_CMP_AND_SWP },
	};
	static const struct ibv_send_wr with_inline[] = {
		{ .opcode = IBV_WR_SEND, .sg_list = &long_inline, .num_sge = 1 },
		{ .opcode = IBV_WR_SEND, .sg_list = three, .num_sge = 3 },
		{ .opcode = IBV_WR_SEND, .sg_list = three, .num_sge = -1 },
		{ .opcode = IBV_WR_RDMA_READ, .sg_list = &eight, .num_sge = 1 },
		{ .opcode = IBV_WR_RDMA_READ },
		{ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &eight, .num_sge = 1 },
	};
	struct ibv_send_wr wr;
	size_t i;

	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		post_setup(state);
		expect_send_refused(*state, malformed[i]);
	}
	for (i = 0; i < sizeof(with_inline) / sizeof(with_inline[0]); i++) {
		post_setup(state);
		wr = with_inline[i];
		wr.send_flags = IBV_SEND_INLINE;
		expect_send_refused(*state, wr);
	}
}

/* At the limits all is taken. */
static void
test_sends_that_are_taken(void **state)
{
	struct post_fixture *f = *state;
	struct ibv_mw mw = { .rkey = 0x100 };
	struct ibv_send_wr wr[] = {
		{ .opcode = IBV_WR_RDMA_READ, .sg_list = halves, .num_sge = 2 },
		{ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &eight, .num_sge = 1 },
		{ .opcode = IBV_WR_SEND,
			.sg_list = &short_inline,
			.num_sge = 1,
			.send_flags = IBV_SEND_INLINE },
		{ .opcode = IBV_WR_BIND_MW,
			.bind_mw = { &mw, 0x101, { 0 } },
			.send_flags = IBV_SEND_INLINE },
	};
	const struct ring_send *wqe = (const struct ring_send *)(const void *)f->send;
	struct ibv_send_wr *bad;
	size_t i;

	for (i = 0; i < sizeof(wr) / sizeof(wr[0]); i++)
		assert_int_equal(polca_post_send(&f->qp.verbs.qp, &wr[i], &bad), 0);
	assert_int_equal(f->queues[0].send_head, i);
	assert_int_equal(wqe->num_sge, 2);
	/* a bind has no data to be inline: lib/rc would refuse the flag */
	wqe = (const struct ring_send *)(const void *)&f->send[3 * STRIDE];
	assert_int_equal(wqe->flags, 0);
}

static void
test_receives_that_are_refused(void **state)
{
	static struct ibv_recv_wr malformed[] = {
		{ .sg_list = three, .num_sge = 3 },
		{ .sg_list = three, .num_sge = -1 },
		{ .sg_list = too_long, .num_sge = 2 },
	};
	struct ibv_recv_wr first = { 0 }, *bad;
	struct post_fixture *f;

	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		post_setup(state);
		f = *state;
		first.next = &malformed[i];
		bad = NULL;
		assert_int_equal(polca_post_recv(&f->qp.verbs.qp, &first, &bad), EINVAL);
		assert_ptr_equal(bad, &malformed[i]);
		assert_int_equal(f->queues[0].receive_head, 1);
		bad = NULL;
		assert_int_equal(polca_post_srq_recv(&f->srq.ibv, &first, &bad), EINVAL);
		assert_ptr_equal(bad, &malformed[i]);
		assert_int_equal(f->queues[1].receive_head, 1);
	}
}

static int
post_one_send(struct post_fixture *f, uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = { .wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = flags },
			   *bad;

	return polca_post_send(&f->qp.verbs.qp, &wr, &bad);
}

static int
post_one_receive(struct post_fixture *f, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	return polca_post_recv(&f->qp.verbs.qp, &wr, &bad);
}

/* The worker takes all that was posted, and the program polls one completion. */
static void
post_complete(struct post_fixture *f, uint64_t wr_id, enum ibv_wc_opcode opcode,
	enum ibv_wc_status status)
{
	const struct ring_completion completion = {
		.wr_id = wr_id,
		.opcode = (uint8_t)opcode,
		.status = (uint8_t)status,
	};

	f->queues[0].send_tail = f->queues[0].send_head;
	f->queues[0].receive_tail = f->queues[0].receive_head;
	retire(&f->cq, &completion);
}

/* A queue takes the requests that it was made for, also where its ring has room for more. */
static void
test_queues_are_full(void **state)
{
	struct post_fixture *f = *state;
	uint64_t i;

	for (i = 0; i < DEPTH; i++) {
		assert_int_equal(post_one_send(f, i, IBV_SEND_SIGNALED), 0);
		assert_int_equal(post_one_receive(f, i), 0);
	}
	assert_int_equal(post_one_send(f, i, IBV_SEND_SIGNALED), ENOMEM);
	assert_int_equal(post_one_receive(f, i), ENOMEM);
	post_complete(f, 0, IBV_WC_SEND, IBV_WC_SUCCESS);
	assert_int_equal(post_one_receive(f, i), ENOMEM);
	assert_int_equal(post_one_send(f, i, IBV_SEND_SIGNALED), 0);
	assert_int_equal(post_one_send(f, i, IBV_SEND_SIGNALED), ENOMEM);
	post_complete(f, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	assert_int_equal(post_one_receive(f, i), 0);
	assert_int_equal(post_one_receive(f, i), ENOMEM);
}

/* Requests without a completion of their own end with the next one that has one. */
static void
test_unsignaled_requests_end_with_the_next(void **state)
{
	struct post_fixture *f = *state;
	uint64_t i;

	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post_one_send(f, i, i == 2 ? IBV_SEND_SIGNALED : 0), 0);
	assert_int_equal(post_one_send(f, i, 0), ENOMEM);
	post_complete(f, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	assert_int_equal(f->qp.send_done, 3);
	/* a request that failed has one in any case, and so have those after it */
	post_complete(f, 3, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(f->qp.send_done, 4);
	post_complete(f, 4, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(f->qp.send_done, DEPTH);
}

/* Acknowledged requests without completion and a failed one, all with one wr_id: all are over. */
static void
test_failed_request_among_others_with_its_wr_id(void **state)
{
	struct post_fixture *f = *state;

	assert_int_equal(post_one_send(f, 0, 0), 0);
	assert_int_equal(post_one_send(f, 0, 0), 0);
	assert_int_equal(post_one_send(f, 0, IBV_SEND_SIGNALED), 0);
	assert_int_equal(post_one_send(f, 0, IBV_SEND_SIGNALED), 0);
	post_complete(f, 0, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(f->qp.send_done, 3);
	post_complete(f, 0, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(f->qp.send_done, 4);
}

/* What RESET leaves in the CQ are the completions of other queue pairs, in their order. */
static void
test_completions_from_before_reset_are_gone(void **state)
{
	static const uint32_t numbers[ENTRIES] = { 7, 0, 7, 7, 0, 0, 8, 0 };
	struct post_fixture *f = *state;
	struct ibv_wc wc[ENTRIES];
	unsigned int i;

	for (i = 0; i < ENTRIES; i++)
		f->completions[(3 + i) % ENTRIES] =
			(struct ring_completion){ .wr_id = i, .qp_num = numbers[i] };
	f->cq.ring.index = f->cq_tail = 3; /* they go around the ring's end */
	f->cq_head = 3 + ENTRIES;
	users_reset(&f->qp);
	assert_int_equal(f->cq_tail, 3 + 4);
	assert_int_equal(polca_poll_cq(&f->cq.ibv, ENTRIES, wc), 4);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(wc[2].wr_id, 3);
	assert_int_equal(wc[3].wr_id, 6);
	users_reset(&f->qp);
	assert_int_equal(f->cq_tail, f->cq_head);
}

/* An entry of a batch that is being made is no request yet. */
static void
test_old_completion_ends_nothing_of_a_batch(void **state)
{
	struct post_fixture *f = *state;
	struct ring_send *wqe = ring_next_free(&f->qp.send);

	wqe->wr_id = 10;
	wqe->flags = IBV_SEND_SIGNALED;
	f->qp.send.index++;
	post_complete(f, 10, IBV_WC_SEND, IBV_WC_SUCCESS);
	assert_int_equal(f->qp.send_done, 0);
}

static void
test_old_completions_end_nothing(void **state)
{
	struct post_fixture *f = *state;

	assert_int_equal(post_one_send(f, 10, IBV_SEND_SIGNALED), 0);
	assert_int_equal(post_one_receive(f, 20), 0);
	post_complete(f, 9, IBV_WC_SEND, IBV_WC_SUCCESS);
	post_complete(f, 9, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	post_complete(f, 19, IBV_WC_RECV, IBV_WC_SUCCESS);
	assert_int_equal(f->qp.send_done, 0);
	assert_int_equal(f->qp.receive_done, 0);
}

/* When polca has ended: what is outstanding, once and in order, and then there is room again. */
static void
test_full_queues_are_flushed(void **state)
{
	struct post_fixture *f = *state;
	struct ibv_wc wc[4 * DEPTH];
	uint64_t i;

	for (i = 0; i < DEPTH + 2; i++) {
		if (i >= DEPTH)
			post_complete(f, i - DEPTH, IBV_WC_SEND, IBV_WC_SUCCESS);
		assert_int_equal(post_one_send(f, i, i < 2 ? IBV_SEND_SIGNALED : 0), 0);
	}
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post_one_receive(f, 100 + i), 0);
	assert_int_equal(retire_flushed(&f->cq, 4 * DEPTH, wc), 2 * DEPTH);
	for (i = 0; i < DEPTH; i++) {
		assert_int_equal(wc[i].wr_id, i + 2);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[DEPTH + i].wr_id, 100 + i);
		assert_int_equal(wc[DEPTH + i].opcode, IBV_WC_RECV);
	}
	assert_int_equal(post_one_send(f, 0, 0), 0);
	assert_int_equal(post_one_receive(f, 0), 0);
	assert_int_equal(retire_flushed(&f->cq, 4 * DEPTH, wc), 2);
}

/* A thread may poll between ibv_wr_start(), which takes the queue's lock, and ibv_wr_complete(). */
static void
test_flushed_while_a_batch_is_made(void **state)
{
	struct post_fixture *f = *state;
	struct ibv_wc wc[2];

	assert_int_equal(post_one_send(f, 1, 0), 0);
	wr_set_operations(&f->qp);
	ibv_wr_start(&f->qp.verbs.qp_ex);
	f->qp.verbs.qp_ex.wr_id = 2;
	ibv_wr_send(&f->qp.verbs.qp_ex);
	assert_int_equal(retire_flushed(&f->cq, 2, wc), 1);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(ibv_wr_complete(&f->qp.verbs.qp_ex), 0);
	assert_int_equal(retire_flushed(&f->cq, 2, wc), 1);
	assert_int_equal(wc[0].wr_id, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sends_that_are_refused, post_setup),
		cmocka_unit_test_setup(test_sends_that_are_taken, post_setup),
		cmocka_unit_test_setup(test_receives_that_are_refused, post_setup),
		cmocka_unit_test_setup(test_queues_are_full, post_setup),
		cmocka_unit_test_setup(test_unsignaled_requests_end_with_the_next, post_setup),
		cmocka_unit_test_setup(test_old_completions_end_nothing, post_setup),
		cmocka_unit_test_setup(test_failed_request_among_others_with_its_wr_id, post_setup),
		cmocka_unit_test_setup(test_old_completion_ends_nothing_of_a_batch, post_setup),
		cmocka_unit_test_setup(test_full_queues_are_flushed, post_setup),
		cmocka_unit_test_setup(test_flushed_while_a_batch_is_made, post_setup),
		cmocka_unit_test_setup(test_completions_from_before_reset_are_gone, post_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
