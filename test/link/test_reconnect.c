/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Workers do not use a device while it is restarted, and memory is not unmapped while they may use
 * it.
 */

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "bench.h"
#include "link/device.h"
#include "link/private.h"

static void
test_a_stopped_port_is_left_alone(void **state)
{
	struct bench *b = *state;

	link_worker_poll_port(b->worker[0], 0, false);
	bench_inject(b, ROCEV2_ACK);
	assert_int_equal(bench_poll(b, 0), 0);
	link_worker_poll_port(b->worker[0], 0, true);
	assert_int_equal(bench_poll(b, 0), 1);
	bench_free(b);
}

#define ARP_REQUEST                                                                                \
	"ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 "  \
	"0a000002"

static void
test_frames_wait_while_it_is_stopped(void **state)
{
	struct bench *b = *state;

	/* the answer is queued, but not sent */
	bench_inject(b, ARP_REQUEST);
	link_tx_flush(b->worker[0], b->now);
	assert_int_equal(link_rx(b->worker[0], b->now, b->pkts), 0);
	link_worker_poll_port(b->worker[0], 0, false);
	link_tx_flush(b->worker[0], b->now);
	bench_expect_nothing(b);
	link_worker_poll_port(b->worker[0], 0, true);
	link_tx_flush(b->worker[0], b->now);
	assert_string_not_equal(bench_sent(b), "");
}

static void
test_only_a_client_reconnects(void **state)
{
	struct bench *b = *state;

	assert_false(link_is_lost(b->link, 0, UINT64_MAX));
}

static uint32_t unmapped;

static void
unmap(void *arg)
{
	(void)arg;
	link_unmapping();
	__atomic_store_n(&unmapped, 1, __ATOMIC_RELEASE);
}

static bool
is_unmapped(void)
{
	return __atomic_load_n(&unmapped, __ATOMIC_ACQUIRE) != 0;
}

/* Unmapping on EAL's interrupt thread waits until all workers have passed a quiescent point. */
static void
test_unmapping_waits_for_the_workers(void **state)
{
	struct rte_rcu_qsbr *rcu = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(1), 64);
	unsigned int i;
	uint64_t token;

	(void)state;
	assert_non_null(rcu);
	assert_int_equal(rte_rcu_qsbr_init(rcu, 1), 0);
	assert_int_equal(rte_rcu_qsbr_thread_register(rcu, 0), 0);
	rte_rcu_qsbr_thread_online(rcu, 0);
	memif_guard(rcu);
	link_unmapping(); /* on another thread it does not wait */
	token = __atomic_load_n(&rcu->token, __ATOMIC_ACQUIRE);
	assert_int_equal(rte_eal_alarm_set(1, unmap, NULL), 0);
	/* the grace period has begun, and the worker has passed no quiescent point since */
	for (i = 0; i < 10000 && __atomic_load_n(&rcu->token, __ATOMIC_ACQUIRE) == token; i++)
		rte_delay_us_sleep(1000);
	assert_int_not_equal(__atomic_load_n(&rcu->token, __ATOMIC_ACQUIRE), token);
	assert_false(is_unmapped());
	rte_rcu_qsbr_quiescent(rcu, 0);
	for (i = 0; i < 10000 && !is_unmapped(); i++)
		rte_delay_us_sleep(1000);
	assert_true(is_unmapped());
	memif_guard(NULL);
	rte_free(rcu);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_stopped_port_is_left_alone, bench_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_frames_wait_while_it_is_stopped, bench_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_only_a_client_reconnects, bench_setup,
			bench_teardown),
		cmocka_unit_test(test_unmapping_waits_for_the_workers),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
