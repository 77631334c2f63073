/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Atomics: rc-transport 2, 6, 7 and 11; seed 002 WQE 5 */

#include <pthread.h>
#include <string.h>

#include "peer.h"
#include "rc/responder.h"

static uint64_t *
word(struct peer *p, uint32_t at)
{
	return (uint64_t *)(void *)(p->bytes + at);
}

static void
test_compare_and_swap_swaps_on_equal_only(void **state)
{
	struct peer *p = *state;

	*word(p, 64) = 0x1122334455667788;
	assert_int_equal(in_cmp_swap(p, 201, 64, 0x1122334455667788, 42), VERDICT_REQUEST);
	assert_int_equal(*word(p, 64), 42);
	assert_int_equal(in_cmp_swap(p, 202, 64, 41, 7), VERDICT_REQUEST);
	assert_int_equal(*word(p, 64), 42);
	run(p);
	expect_tx(p, "ATOMIC 201", "ATOMIC 202");
	/* the original value, a big-endian number on the wire, and host-endian in memory */
	assert_true(answered(p, 0)->orig == 0x1122334455667788);
	assert_int_equal(answered(p, 0)->msn, 1);
	assert_int_equal(answered(p, 1)->orig, 42);
	assert_int_equal(answered(p, 1)->msn, 2);
	assert_int_equal(counters_of(p).rx_atomic_requests, 2);
	expect_no_wc(p);
}

static void
test_fetch_and_add_wraps_at_2_64(void **state)
{
	struct peer *p = *state;

	*word(p, 8) = UINT64_MAX;
	in_fetch_add(p, 201, 8, 3);
	run(p);
	expect_tx(p, "ATOMIC 201");
	assert_true(answered(p, 0)->orig == UINT64_MAX);
	assert_int_equal(*word(p, 8), 2);
}

/* order: after all earlier requests, and answered in their order */
static void
test_atomic_sees_earlier_writes_and_is_answered_in_order(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 2 * MTU);
	memset(pattern, 0, 16);
	in_write(p, RC_WRITE_ONLY, 203, 128, 8, 8); /* 203 in host order of this machine */
	in_fetch_add(p, 204, 128, 1);
	run(p);
	expect_tx(p, "FIRST 201", "LAST 202", "ATOMIC 204");
	assert_int_equal(answered(p, 2)->orig, 203);
	assert_int_equal(*word(p, 128), 204);
}

static void
test_duplicate_atomic_replays_the_saved_result(void **state)
{
	struct peer *p = *state;

	*word(p, 8) = 10;
	in_fetch_add(p, 201, 8, 5);
	in_fetch_add(p, 202, 8, 5);
	run(p);
	expect_tx(p, "ATOMIC 201", "ATOMIC 202");
	assert_int_equal(in_fetch_add(p, 201, 8, 5), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ATOMIC 201");
	assert_int_equal(answered(p, 0)->orig, 10);
	assert_int_equal(answered(p, 0)->msn, 1);
	assert_int_equal(*word(p, 8), 20);
	assert_int_equal(counters_of(p).duplicate_request, 1);
	assert_int_equal(counters_of(p).rx_atomic_requests, 2);
}

/* rc-cases: "Duplicate atomic older than the resource ring: dropped, never executed again" */
static void
test_duplicate_atomic_older_than_the_ring_is_dropped(void **state)
{
	struct peer *p = *state;
	uint32_t i;

	*word(p, 8) = 0;
	for (i = 0; i < 5; i++) { /* max_dest_rd_atomic is 4 */
		in_fetch_add(p, 201 + i, 8, 1);
		run(p);
	}
	expect_tx(p, "ATOMIC 201", "ATOMIC 202", "ATOMIC 203", "ATOMIC 204", "ATOMIC 205");
	assert_int_equal(in_fetch_add(p, 201, 8, 1), VERDICT_DUPLICATE_ATOMIC);
	run(p);
	expect_silence(p);
	assert_int_equal(in_fetch_add(p, 202, 8, 1), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ATOMIC 202");
	assert_int_equal(answered(p, 0)->orig, 1);
	assert_int_equal(*word(p, 8), 5);
}

static void
atomic_refused(struct peer *p, const char *nak, enum event_type event)
{
	run(p);
	expect_tx(p, nak);
	expect_event(p, event);
	expect_no_event(p);
	assert_int_equal(state_of(p), QPS_ERR);
	assert_int_equal(epsn_of(p), 201);
	assert_int_equal(*word(p, 64), 99);
}

/* seed 001: "The virtual address in an Atomic request packet must be a quadword-aligned address" */
static void
test_unaligned_address_is_an_invalid_request(void **state)
{
	struct peer *p = *state;

	*word(p, 64) = 99;
	assert_int_equal(in_fetch_add(p, 201, 68, 1), VERDICT_NAK_SENT);
	atomic_refused(p, "NAK-INV 201", EVENT_QP_REQ_ERR);
}

static void
test_region_without_atomic_right_is_an_access_error(void **state)
{
	struct peer *p = *state;
	uint32_t key = peer_register(p, PEER_VA, 0, 4096,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ);

	*word(p, 64) = 99;
	request(p, RC_FETCH_ADD, 201)->rkey = key;
	p->pkt.va = PEER_VA + 64;
	p->pkt.swap_add = 1;
	assert_int_equal(feed(p), VERDICT_NAK_SENT);
	atomic_refused(p, "NAK-ACC 201", EVENT_QP_ACCESS_ERR);
	assert_int_equal(counters_of(p).resp_remote_access_errors, 1);
}

static void
test_address_outside_the_region_is_an_access_error(void **state)
{
	struct peer *p = *state;

	*word(p, 64) = 99;
	assert_int_equal(in_cmp_swap(p, 201, PEER_MEM, 0, 1), VERDICT_NAK_SENT);
	atomic_refused(p, "NAK-ACC 201", EVENT_QP_ACCESS_ERR);
}

static void
test_atomic_with_a_payload_is_an_invalid_request(void **state)
{
	struct peer *p = *state;

	*word(p, 64) = 99;
	request(p, RC_FETCH_ADD, 201)->va = PEER_VA + 64;
	p->pkt.swap_add = 1;
	p->pkt.payload_len = 4;
	assert_int_equal(feed(p), VERDICT_NAK_SENT);
	atomic_refused(p, "NAK-INV 201", EVENT_QP_REQ_ERR);
}

#define ROUNDS 200000

static void *
local_adds(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *
local_swaps(void *arg)
{
	uint64_t old, got;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		old = __atomic_load_n((uint64_t *)arg, __ATOMIC_RELAXED);
		for (;; old = got) {
			got = rc_atomic(arg, RC_CMP_SWAP, old, old + 1);
			if (got == old)
				break;
		}
	}
	return NULL;
}

/* design.md: "atomics correct against other lcores and against local CPU atomics" */
static void
test_atomics_exclude_other_threads(void **state)
{
	struct peer *p = *state;
	pthread_t adder, swapper;
	uint32_t i;

	*word(p, 8) = 0;
	assert_int_equal(pthread_create(&adder, NULL, local_adds, word(p, 8)), 0);
	assert_int_equal(pthread_create(&swapper, NULL, local_swaps, word(p, 8)), 0);
	for (i = 0; i < ROUNDS; i++) {
		assert_int_equal(in_fetch_add(p, FIRST_PSN + i, 8, 1), VERDICT_REQUEST);
		run(p);
		p->answer_count = p->answer_next = 0;
	}
	pthread_join(adder, NULL);
	pthread_join(swapper, NULL);
	assert_int_equal(*word(p, 8), 3 * ROUNDS);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		T(test_compare_and_swap_swaps_on_equal_only),
		T(test_fetch_and_add_wraps_at_2_64),
		T(test_atomic_sees_earlier_writes_and_is_answered_in_order),
		T(test_duplicate_atomic_replays_the_saved_result),
		T(test_duplicate_atomic_older_than_the_ring_is_dropped),
		T(test_unaligned_address_is_an_invalid_request),
		T(test_region_without_atomic_right_is_an_access_error),
		T(test_address_outside_the_region_is_an_access_error),
		T(test_atomic_with_a_payload_is_an_invalid_request),
		T(test_atomics_exclude_other_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
