/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Warnings at start when not all workers receive packets directly. */

#include "bench.h"
#include "link/private.h"

static void
steering_expect(const char *driver, enum queue_rule queues, unsigned int nrx, uint64_t rss,
	unsigned int workers, bool ib, const char *words)
{
	const struct driver_rule rule = { driver, queues, MTU_DEVICE };
	struct link_port p = { .driver_rule = &rule, .nrx = (uint16_t)nrx, .rss_hf = rss };
	char text[256] = "";

	p.cfg.ib = ib;
	snprintf(p.cfg.name, sizeof(p.cfg.name), "port0");
	snprintf(p.driver, sizeof(p.driver), "%s", driver);
	assert_int_equal(steering_words(&p, workers, text, sizeof(text)), words[0] != '\0');
	assert_string_equal(text, words);
}

/* With a queue per worker and a hash of UDP ports, which RoCEv2 flows differ in: no warning. */
static void
test_no_warning_if_each_worker_has_a_hashed_queue(void **state)
{
	(void)state;
	steering_expect("net_ice", QUEUES_RSS, 2, RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP, 2, false, "");
	steering_expect("net_af_packet", QUEUES_ALL, 2, 0, 2, false, "");
	steering_expect("net_af_packet", QUEUES_ALL, 4, 0, 2, false, "");
	steering_expect("net_ice", QUEUES_RSS, 1, 0, 1, false, "");
	steering_expect("net_ice", QUEUES_RSS, 1, 0, 1, true, "");
}

static void
test_fewer_queues_than_workers(void **state)
{
	(void)state;
	steering_expect("net_af_packet", QUEUES_ALL, 1, 0, 2, false,
		"port0: net_af_packet has 1 receive queue for 2 workers: worker 0 hands the others "
		"their packets");
	steering_expect("net_ixgbe", QUEUES_RSS, 4, RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP, 6, false,
		"port0: net_ixgbe has 4 receive queues for 6 workers: workers 0 to 3 hand the others "
		"their packets");
}

static void
test_device_that_cannot_spread(void **state)
{
	(void)state;
	steering_expect("net_e1000_em", QUEUES_RSS, 1, 0, 2, false,
		"port0: net_e1000_em has 1 receive queue for 2 workers (it does not spread IP "
		"packets): worker 0 hands the others their packets");
	steering_expect("net_ice", QUEUES_RSS, 1, 0, 3, true,
		"port0: net_ice has 1 receive queue for 3 workers (no device spreads native InfiniBand "
		"frames): worker 0 hands the others their packets");
}

static void
test_addresses_only(void **state)
{
	(void)state;
	steering_expect("net_vmxnet3", QUEUES_RSS, 2, RTE_ETH_RSS_IP, 2, false,
		"port0: net_vmxnet3 spreads packets by addresses and not by UDP port: all of a peer's "
		"come to one worker");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_warning_if_each_worker_has_a_hashed_queue),
		cmocka_unit_test(test_fewer_queues_than_workers),
		cmocka_unit_test(test_device_that_cannot_spread),
		cmocka_unit_test(test_addresses_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
