/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Warnings at start when queues, CPUs and memory are on different NUMA nodes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/placement.h"

static char said[4][512];
static unsigned int num_said;

static void
placement_hear(void *arg, const char *text)
{
	(void)arg;
	assert_true(num_said < 4);
	strcpy(said[num_said++], text);
}

/* A card on node 1, two workers on node 1, and all memory on node 1. */
static struct placement
well_placed(void)
{
	return (struct placement){
		.hugepages = true,
		.num_ports = 1,
		.num_workers = 2,
		.num_cpus = 2,
		.port = { { "port0", true, 1, 1, 2, "2-3" } },
		.worker = { { 2, 1, 1 }, { 3, 1, 1 } },
	};
}

static unsigned int
engine_placement_check(const struct placement *p)
{
	unsigned int n;

	num_said = 0;
	n = placement_check(p, placement_hear, NULL);
	assert_int_equal(n, num_said);
	return n;
}

static void
test_no_warning_if_all_is_on_one_node(void **state)
{
	struct placement p = well_placed();

	(void)state;
	assert_int_equal(engine_placement_check(&p), 0);
}

static void
test_packet_buffers_of_another_node(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.port[0].memory_node = 0;
	assert_int_equal(engine_placement_check(&p), 1);
	assert_string_equal(said[0],
		"port0 is on NUMA node 1, its packet buffers are on node 0: node 1 has too "
		"few free hugepages. Reserve more with config/setup-host.sh --node 1 "
		"--hugepages MIB (--status shows how many there are), or set ports[].mbufs lower");
}

static void
test_memory_of_another_node_than_its_worker(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.worker[1].memory_node = 0;
	assert_int_equal(engine_placement_check(&p), 1);
	assert_string_equal(said[0],
		"worker 1 runs on NUMA node 1 (CPU 3), its memory is on node 0: node 1 has "
		"too few free hugepages. Reserve more with config/setup-host.sh --node 1 "
		"--hugepages MIB (--status shows how many there are)");
}

static void
test_card_polled_from_another_node(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.worker[1] = (struct placement_worker){ 0, 0, 0 };
	assert_int_equal(engine_placement_check(&p), 1);
	assert_string_equal(said[0],
		"port0 is on NUMA node 1, but is polled from another node, by worker 1. Give "
		"workers CPUs of node 1 (2-3) (eal.lcores), or put the card into a slot of theirs");
	p.worker[0] = (struct placement_worker){ 1, 0, 0 };
	p.port[0].cpus[0] = '\0';
	assert_int_equal(engine_placement_check(&p), 1);
	assert_string_equal(said[0],
		"port0 is on NUMA node 1, but is polled from another node, by workers 0, 1. "
		"Give workers CPUs of node 1 (eal.lcores), or put the card into a slot of theirs");
}

/* A card with one receive queue is polled by worker 0 alone. */
static void
test_worker_that_polls_no_queue_may_be_anywhere(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.port[0].pollers = 1;
	p.worker[1] = (struct placement_worker){ 0, 0, 0 };
	assert_int_equal(engine_placement_check(&p), 0);
}

static void
test_card_without_hugepages(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.hugepages = false;
	p.port[0].memory_node = p.worker[0].memory_node = p.worker[1].memory_node = -1;
	assert_int_equal(engine_placement_check(&p), 1);
	assert_string_equal(said[0],
		"port0 is a network card, and eal.hugepages is false: every packet pays for "
		"it, and under uio_pci_generic nothing arrives. Reserve some with "
		"config/setup-host.sh --hugepages 1024 and set eal.hugepages");
}

/* memif, af_packet and other software devices are on no node, whatever their drivers report. */
static void
test_software_device_is_on_no_node(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.hugepages = false;
	p.port[0].physical = false;
	p.port[0].node = 0;
	assert_int_equal(engine_placement_check(&p), 0);
}

static void
test_host_of_one_node(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.port[0].node = p.worker[0].node = p.worker[1].node = -1;
	assert_int_equal(engine_placement_check(&p), 0);
}

static void
test_more_workers_than_cpus(void **state)
{
	struct placement p = well_placed();

	(void)state;
	p.worker[1].cpu = p.worker[0].cpu;
	p.num_cpus = 1;
	assert_int_equal(engine_placement_check(&p), 1);
	assert_string_equal(said[0],
		"2 workers run on 1 CPU: those that share one wait for each other, some "
		"milliseconds at a time, and packets are lost meanwhile. Set workers.count to "
		"1, or run polca on more CPUs (eal.lcores, taskset, CPUAffinity= of its service)");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_warning_if_all_is_on_one_node),
		cmocka_unit_test(test_packet_buffers_of_another_node),
		cmocka_unit_test(test_memory_of_another_node_than_its_worker),
		cmocka_unit_test(test_card_polled_from_another_node),
		cmocka_unit_test(test_worker_that_polls_no_queue_may_be_anywhere),
		cmocka_unit_test(test_card_without_hugepages),
		cmocka_unit_test(test_software_device_is_on_no_node),
		cmocka_unit_test(test_host_of_one_node),
		cmocka_unit_test(test_more_workers_than_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
