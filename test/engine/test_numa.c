/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * NUMA before the EAL runs: the order in which CPUs are given to workers, and warnings about nodes
 * without hugepages. The test makes its own sysfs tree,
 * and stands in for libnuma.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <numa.h>

#include "numa_cards.h"

static char sys[64];

static void
file(const char *name, const char *text)
{
	char path[256], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	for (slash = strchr(path + strlen(sys) + 1, '/'); slash != NULL;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Two nodes with hyperthreads. In libnuma's place. */
int
numa_node_to_cpus(int node, struct bitmask *mask)
{
	unsigned int i;

	numa_bitmask_clearall(mask);
	for (i = 0; i < 8; i++)
		if ((int)(i / 2 % 2) == node)
			numa_bitmask_setbit(mask, i);
	return node == 0 || node == 1 ? 0 : -1;
}

/* A card on each node, and a card whose node is unknown. */
static int
make_sys(void **state)
{
	(void)state;
	strcpy(sys, "/tmp/polca-test-numa-XXXXXX");
	assert_non_null(mkdtemp(sys));
	file("bus/pci/devices/0000:18:00.0/numa_node", "0\n");
	file("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
	file("bus/pci/devices/0000:3b:00.1/numa_node", "1\n");
	file("bus/pci/devices/0000:00:1f.6/numa_node", "-1\n");
	return 0;
}

static int
remove_sys(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", sys);
	return system(command);
}

static struct config c;

static void
ports(const char *devices)
{
	char list[256], *word, *place = NULL;
	struct link_port_config *p;

	memset(&c, 0, sizeof(c));
	c.hugepages = true;
	snprintf(list, sizeof(list), "%s", devices);
	for (word = strtok_r(list, " ", &place); word != NULL; word = strtok_r(NULL, " ", &place)) {
		p = &c.engine.link.port[c.num_ports];
		snprintf(p->name, sizeof(p->name), "port%u", c.num_ports++);
		strcpy(p->device, word);
	}
}

static void
numa_expect(const char *devices, const char *usable, const char *want)
{
	unsigned int cpu[16], n = 0, i;
	char got[64] = "";

	ports(devices);
	for (; *usable != '\0'; usable++)
		cpu[n++] = (unsigned int)(*usable - '0');
	numa_order_cpus(&c, sys, cpu, n);
	for (i = 0; i < n; i++)
		got[i] = (char)('0' + cpu[i]);
	assert_string_equal(got, want);
}

static void
test_cpus_of_the_cards_node_come_first(void **state)
{
	(void)state;
	numa_expect("0000:3b:00.0", "01234567", "23670145");
	numa_expect("0000:18:00.0", "01234567", "01452367");
	numa_expect("3b:00.0", "01234567", "23670145");
}

static void
test_only_cpus_that_may_be_used(void **state)
{
	(void)state;
	numa_expect("0000:3b:00.0", "0126", "2601");
	numa_expect("0000:3b:00.0", "01", "01");
}

static void
test_nodes_of_several_cards_take_turns(void **state)
{
	(void)state;
	numa_expect("0000:3b:00.0 0000:18:00.0", "01234567", "20316475");
	numa_expect("0000:3b:00.0 0000:3b:00.1", "01234567", "23670145");
	numa_expect("0000:3b:00.0 0000:18:00.0", "0123467", "2031647");
}

static void
test_order_stays_where_no_node_is_known(void **state)
{
	(void)state;
	numa_expect("0000:00:1f.6", "0123", "0123");
	numa_expect("0000:99:00.0", "0123", "0123");
	numa_expect("net_af_packet0", "3210", "3210");
	numa_expect("", "0123", "0123");
}

static char said[256];

static void
numa_hear(void *arg, const char *text)
{
	(void)arg;
	snprintf(said, sizeof(said), "%s", text);
}

static void
hugepages(unsigned int node0, unsigned int node1)
{
	char text[16];

	snprintf(text, sizeof(text), "%u\n", node0);
	file("devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", text);
	snprintf(text, sizeof(text), "%u\n", node1);
	file("devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", text);
	file("devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages", "0\n");
}

static void
test_node_of_a_card_without_hugepages(void **state)
{
	(void)state;
	hugepages(512, 0);
	ports("net_af_packet0 0000:3b:00.0");
	assert_int_equal(numa_check_hugepages(&c, sys, numa_hear, NULL), 1);
	assert_string_equal(said,
		"port1 is on NUMA node 1, which has no free hugepages: some drivers "
		"do not start so. Reserve some there with config/setup-host.sh --node 1 --hugepages 1024");
	ports("0000:18:00.0 0000:00:1f.6");
	assert_int_equal(numa_check_hugepages(&c, sys, numa_hear, NULL), 0);
	ports("0000:3b:00.0");
	hugepages(0, 1);
	assert_int_equal(numa_check_hugepages(&c, sys, numa_hear, NULL), 0);
	/* hugepages of another size are sufficient */
	hugepages(0, 0);
	file("devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
	assert_int_equal(numa_check_hugepages(&c, sys, numa_hear, NULL), 0);
	/* no hugepages requested: another check warns about that */
	hugepages(0, 0);
	c.hugepages = false;
	assert_int_equal(numa_check_hugepages(&c, sys, numa_hear, NULL), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus_of_the_cards_node_come_first),
		cmocka_unit_test(test_only_cpus_that_may_be_used),
		cmocka_unit_test(test_nodes_of_several_cards_take_turns),
		cmocka_unit_test(test_order_stays_where_no_node_is_known),
		cmocka_unit_test(test_node_of_a_card_without_hugepages),
	};

	return cmocka_run_group_tests(tests, make_sys, remove_sys);
}
