/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Batches of ibv_wr_* that are not posted: memory windows keep the key that they had before. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "provider.h"

#define ENTRIES 4
#define STRIDE  128
#define KEY     0x1200

static unsigned int bells;

void
polca_ring_bell(const struct polca_queue *q)
{
	(void)q;
	bells++;
}

/* A queue pair in RTS, whose ring nobody empties. */
struct wr_fixture {
	struct polca_qp qp;
	struct ibv_qp_ex *ex;
	uint32_t head, tail; /* of the ring */
	_Alignas(64) uint8_t ring[ENTRIES * STRIDE];
	struct polca_mw mw, other;
};

static void
wr_fixture_make(struct wr_fixture *f)
{
	memset(f, 0, sizeof(*f));
	bells = 0;
	ring_end_init(&f->qp.send, f->ring, ENTRIES, STRIDE, &f->head, &f->tail);
	pthread_spin_init(&f->qp.send_lock, PTHREAD_PROCESS_PRIVATE);
	f->qp.caps = (struct ring_caps){
		.max_send_wr = ENTRIES,
		.max_send_sge = 2,
		.max_inline_data = 32,
	};
	f->qp.verbs.qp.state = IBV_QPS_RTS;
	wr_set_operations(&f->qp);
	f->ex = &f->qp.verbs.qp_ex;
	f->mw.ibv.rkey = KEY;
	f->other.ibv.rkey = 2 * KEY;
}

static void
bind_window(struct wr_fixture *f, struct polca_mw *mw, uint32_t rkey)
{
	const struct ibv_mw_bind_info info = { 0 };

	ibv_wr_bind_mw(f->ex, &mw->ibv, rkey, &info);
}

static const struct ring_send *
batch_entry(struct wr_fixture *f, uint32_t index)
{
	return ring_entry(&f->qp.send, index);
}

/* Two binds of one window in a batch: the second one names the key that the first one gives. */
static void
bind_three_times(struct wr_fixture *f)
{
	ibv_wr_start(f->ex);
	bind_window(f, &f->mw, KEY + 1);
	bind_window(f, &f->other, 2 * KEY + 1);
	bind_window(f, &f->mw, KEY + 2);
}

static void
expect_keys(const struct wr_fixture *f, uint32_t more)
{
	assert_int_equal(f->mw.ibv.rkey, KEY + 2 * more);
	assert_int_equal(f->other.ibv.rkey, 2 * KEY + more);
	assert_int_equal(f->head, 3 * more);
	assert_int_equal(bells, more);
}

/* Whatever was given up before, the next batch names the keys that the windows have. */
static void
expect_next_batch_posted(struct wr_fixture *f)
{
	bind_three_times(f);
	assert_int_equal(ibv_wr_complete(f->ex), 0);
	expect_keys(f, 1);
	assert_int_equal(batch_entry(f, 0)->rkey, KEY);
	assert_int_equal(batch_entry(f, 0)->imm, KEY + 1);
	assert_int_equal(batch_entry(f, 1)->rkey, 2 * KEY);
	assert_int_equal(batch_entry(f, 2)->rkey, KEY + 1);
	assert_int_equal(batch_entry(f, 2)->imm, KEY + 2);
}

static void
test_batch_given_up(void **state)
{
	struct wr_fixture f;

	(void)state;
	wr_fixture_make(&f);
	bind_three_times(&f);
	ibv_wr_abort(f.ex);
	expect_keys(&f, 0);
	expect_next_batch_posted(&f);
}

/* A request with more inline data than there is room for. */
static void
test_batch_with_an_error(void **state)
{
	struct wr_fixture f;
	char too_long[64];

	(void)state;
	wr_fixture_make(&f);
	memset(too_long, 'x', sizeof(too_long));
	bind_three_times(&f);
	ibv_wr_send(f.ex);
	ibv_wr_set_inline_data(f.ex, too_long, sizeof(too_long));
	bind_window(&f, &f.mw, KEY + 9);
	assert_int_equal(ibv_wr_complete(f.ex), EINVAL);
	expect_keys(&f, 0);
	expect_next_batch_posted(&f);
}

/* The last bind finds no room. */
static void
test_batch_that_does_not_fit(void **state)
{
	struct wr_fixture f;

	(void)state;
	wr_fixture_make(&f);
	bind_three_times(&f);
	bind_window(&f, &f.other, 2 * KEY + 2);
	bind_window(&f, &f.other, 2 * KEY + 3);
	assert_int_equal(ibv_wr_complete(f.ex), ENOMEM);
	expect_keys(&f, 0);
	expect_next_batch_posted(&f);
}

/* Of a batch that is posted, nothing is taken back by the next one. */
static void
test_batch_given_up_after_one_posted(void **state)
{
	struct wr_fixture f;

	(void)state;
	wr_fixture_make(&f);
	expect_next_batch_posted(&f);
	ibv_wr_start(f.ex);
	bind_window(&f, &f.mw, KEY + 3);
	ibv_wr_abort(f.ex);
	expect_keys(&f, 1);
}

/* An Atomic gets the 8 bytes that it returns: with none, or with others, nothing is posted. */
static void
test_atomics_without_their_data(void **state)
{
	struct wr_fixture f;

	(void)state;
	wr_fixture_make(&f);
	for (unsigned int i = 0; i < 4; i++) {
		ibv_wr_start(f.ex);
		ibv_wr_atomic_fetch_add(f.ex, KEY, 0, 1);
		if (i > 1)
			ibv_wr_set_sge(f.ex, KEY, 0, i == 2 ? 4 : 8);
		if (i > 0)
			ibv_wr_send(f.ex);
		assert_int_equal(ibv_wr_complete(f.ex), i == 3 ? 0 : EINVAL);
		assert_int_equal(f.head, i == 3 ? 2 : 0);
	}
}

/* What the program gives last are a request's data. */
static void
test_data_given_twice(void **state)
{
	struct wr_fixture f;
	char data[8] = "inline";

	(void)state;
	wr_fixture_make(&f);
	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_sge(f.ex, KEY, 0, 64);
	ibv_wr_set_inline_data(f.ex, data, sizeof(data));
	ibv_wr_send(f.ex);
	ibv_wr_set_inline_data(f.ex, data, sizeof(data));
	ibv_wr_set_sge(f.ex, KEY, 0, 64);
	assert_int_equal(ibv_wr_complete(f.ex), 0);
	assert_int_equal(batch_entry(&f, 0)->flags, IBV_SEND_INLINE);
	assert_int_equal(batch_entry(&f, 0)->num_sge, 0);
	assert_int_equal(batch_entry(&f, 1)->flags, 0);
	assert_int_equal(batch_entry(&f, 1)->num_sge, 1);
}

/*
 * The layouts of rdma-core 36, 44 and 56 on a machine of 64 bits, from its libibverbs/driver.h:
 * what libibverbs and a provider share without a public header.
 */
static void
test_layouts_of_the_private_abi(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct verbs_match_ent), 24);
	assert_int_equal(offsetof(struct verbs_sysfs_dev, ibdev_path), 176);
	assert_int_equal(sizeof(struct verbs_device), 712);
	assert_int_equal(offsetof(struct verbs_device, ops), 664);
	assert_int_equal(offsetof(struct verbs_device, refcount), 672);
	assert_int_equal(sizeof(struct verbs_device_ops), 72);
	assert_int_equal(offsetof(struct verbs_device_ops, match_device), 32);
	assert_int_equal(offsetof(struct verbs_device_ops, alloc_context), 40);
	assert_int_equal(offsetof(struct verbs_device_ops, uninit_device), 64);
	assert_int_equal(offsetof(struct verbs_mr, access), 52);
	assert_int_equal(sizeof(struct verbs_context), 648);
	assert_int_equal(offsetof(struct verbs_context, context), 320);
	assert_int_equal(sizeof(struct verbs_context_ops), 608);
	assert_int_equal(offsetof(struct verbs_context_ops, alloc_mw), 16);
	assert_int_equal(offsetof(struct verbs_context_ops, create_qp_ex), 160);
	assert_int_equal(offsetof(struct verbs_context_ops, dereg_mr), 224);
	assert_int_equal(offsetof(struct verbs_context_ops, free_context), 312);
	assert_int_equal(offsetof(struct verbs_context_ops, modify_qp), 376);
	assert_int_equal(offsetof(struct verbs_context_ops, post_send), 440);
	assert_int_equal(offsetof(struct verbs_context_ops, query_device_ex), 464);
	assert_int_equal(offsetof(struct verbs_context_ops, query_srq), 512);
	assert_int_equal(offsetof(struct verbs_context_ops, reg_mr), 544);
	assert_int_equal(offsetof(struct verbs_context_ops, req_notify_cq), 552);
}

/* comp_mask of struct verbs_qp in rdma-core 36 to 43, 44, and 45 to 56. */
static void
test_mark_of_extended_queue_pairs(void **state)
{
	static const size_t places[] = { 344, 352, 360 };
	struct wr_fixture f;
	uint32_t mask;

	(void)state;
	wr_fixture_make(&f);
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		memcpy(&mask, (const char *)&f.qp.verbs + places[i], sizeof(mask));
		assert_int_equal(mask, VERBS_QP_EX);
		assert_true(places[i] + sizeof(mask) <= sizeof(f.qp.verbs));
	}
	assert_ptr_equal(ibv_qp_to_qp_ex(&f.qp.verbs.qp), f.ex); /* of this machine's libibverbs */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch_given_up),
		cmocka_unit_test(test_batch_with_an_error),
		cmocka_unit_test(test_batch_that_does_not_fit),
		cmocka_unit_test(test_batch_given_up_after_one_posted),
		cmocka_unit_test(test_atomics_without_their_data),
		cmocka_unit_test(test_data_given_twice),
		cmocka_unit_test(test_layouts_of_the_private_abi),
		cmocka_unit_test(test_mark_of_extended_queue_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
