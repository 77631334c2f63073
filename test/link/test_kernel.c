/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Warnings at start when the kernel has a port's address, or soft-RoCE on a port's interface. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <ifaddrs.h>

#include "link/kernel.h"

static char said[4][512];
static unsigned int num_said;
static char dir[] = "/tmp/polca-test-kernel-XXXXXX";

static void
kernel_hear(const char *text)
{
	assert_true(num_said < 4);
	snprintf(said[num_said++], sizeof(said[0]), "%s", text);
}

static void
kernel_write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Make a tree like sysfs: rxe0 on eth1, and the RDMA device of a card, which has no parent. */
static int
kernel_make_tree(void **state)
{
	static const char *const dirs[] = { "class", "class/infiniband", "class/infiniband/rxe0",
		"class/infiniband/mlx5_0" };
	char path[256];
	unsigned int i;

	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	for (i = 0; i < RTE_DIM(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, dirs[i]);
		if (mkdir(path, 0755) != 0)
			return -1;
	}
	kernel_write_file("class/infiniband/rxe0/parent", "eth1\n");
	kernel_write_file("vlans",
		"VLAN Dev name    | VLAN ID\n"
		"Name-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n"
		"eth2.5         | 5  | eth2\neth1.5         | 5  | eth3\n"
		"v7             | 7  | eth2\n");
	return 0;
}

static int
kernel_remove_tree(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static void
link_kernel_fill(union address *a, const char *text)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1)
		a->sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1)
		a->sa.sa_family = AF_INET6;
}

/* The port has 10.0.0.1 and fe80::1; the kernel has one address. @return number of warnings */
static unsigned int
link_kernel_check(const char *behind, uint16_t vlan, const char *interface, const char *address,
	const char *mask)
{
	static struct link_port p;
	char sys[64], vlans[64];
	union address addr, netmask;
	struct ifaddrs has = {
		.ifa_name = (char *)(uintptr_t)interface,
		.ifa_addr = &addr.sa,
		.ifa_netmask = &netmask.sa,
	};
	struct kernel_view v = {
		.sys = sys,
		.vlans = vlans,
		.interface = behind,
		.addresses = &has,
		.warn = kernel_hear,
	};

	snprintf(sys, sizeof(sys), "%s", dir);
	snprintf(vlans, sizeof(vlans), "%s/vlans", dir);
	link_kernel_fill(&addr, address);
	link_kernel_fill(&netmask, mask);
	memset(&p, 0, sizeof(p));
	strcpy(p.cfg.name, "port0");
	p.cfg.vlan = vlan;
	p.cfg.num_addr = 2;
	assert_true(gid_parse("10.0.0.1", &p.cfg.addr[0].gid));
	assert_true(gid_parse("fe80::1", &p.cfg.addr[1].gid));
	num_said = 0;
	kernel_check(&p, &v);
	return num_said;
}

#define MASK4 "255.255.255.0"
#define MASK6 "ffff:ffff:ffff:ffff::"

static void
test_address_on_the_same_interface(void **state)
{
	(void)state;
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "eth0", "10.0.0.1", MASK4), 1);
	assert_string_equal(said[0],
		"port0: the kernel of this host holds 10.0.0.1 on eth0 as well and refuses "
		"RoCE packets to it (ICMP port unreachable). Type: ip addr del 10.0.0.1/24 dev eth0");
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "eth0", "fe80::1", MASK6), 1);
	assert_string_equal(said[0],
		"port0: the kernel of this host holds fe80::1 on eth0 as well and refuses "
		"RoCE packets to it (ICMP port unreachable). Type: ip addr del fe80::1/64 dev eth0");
}

/*
 * The kernel answers on any interface for an address of another one, except for link-local
 * addresses.
 */
static void
test_address_on_another_interface(void **state)
{
	(void)state;
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "br0", "10.0.0.1", MASK4), 1);
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "br0", "fe80::1", MASK6), 0);
}

static void
test_other_addresses_are_the_kernels(void **state)
{
	(void)state;
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "eth0", "10.0.0.2", MASK4), 0);
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "eth0", "fe80::2", MASK6), 0);
}

/* The kernel does not see frames of memif, vhost, or a card bound to vfio: no warning. */
static void
test_device_that_the_kernel_does_not_see(void **state)
{
	(void)state;
	assert_int_equal(link_kernel_check("", PATH_NO_VLAN, "eth0", "10.0.0.1", MASK4), 0);
}

/* The kernel sees tagged frames only if it has that VLAN on that interface. */
static void
test_tagged_port(void **state)
{
	(void)state;
	assert_int_equal(link_kernel_check("eth0", 5, "eth0", "10.0.0.1", MASK4), 0);
	assert_int_equal(link_kernel_check("eth2", 5, "eth2.5", "10.0.0.1", MASK4), 1);
	assert_int_equal(link_kernel_check("eth2", 7, "v7", "fe80::1", MASK6), 1);
	assert_int_equal(link_kernel_check("eth2", 5, "eth2", "fe80::1", MASK6), 0);
	assert_int_equal(link_kernel_check("eth2", 6, "eth2.5", "10.0.0.1", MASK4), 0);
}

static void
test_soft_roce_on_the_same_interface(void **state)
{
	(void)state;
	assert_int_equal(link_kernel_check("eth1", PATH_NO_VLAN, "eth1", "10.0.0.2", MASK4), 1);
	assert_string_equal(said[0],
		"port0: the kernel's soft-RoCE device rxe0 is on eth1 as well: two answer "
		"RoCE there. Type: rdma link delete rxe0");
	assert_int_equal(link_kernel_check("eth0", PATH_NO_VLAN, "eth0", "10.0.0.2", MASK4), 0);
	assert_int_equal(link_kernel_check("eth11", PATH_NO_VLAN, "eth11", "10.0.0.2", MASK4), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_on_the_same_interface),
		cmocka_unit_test(test_address_on_another_interface),
		cmocka_unit_test(test_other_addresses_are_the_kernels),
		cmocka_unit_test(test_device_that_the_kernel_does_not_see),
		cmocka_unit_test(test_tagged_port),
		cmocka_unit_test(test_soft_roce_on_the_same_interface),
	};

	return cmocka_run_group_tests(tests, kernel_make_tree, kernel_remove_tree);
}
