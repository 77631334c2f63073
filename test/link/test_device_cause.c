/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What is said of a device that cannot be opened, here of PCI devices in a tree that stands for /sys,
 * and of paths. Interfaces, users and drivers: dts/suites/robustness/test_start.py.
 */

#include <errno.h>
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

#include "link/device_cause.h"

#define ADDRESS "0000:3b:00.0"

static char sys[] = "/tmp/polca-test-sys-XXXXXX";
static char cause[200];

static void
make_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
}

/* Its driver, as the kernel shows it: a symbolic link. NULL: none. */
static void
bind_to(const char *driver)
{
	char path[256], target[64];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/" ADDRESS "/driver", sys);
	unlink(path);
	snprintf(target, sizeof(target), "../../drivers/%s", driver != NULL ? driver : "");
	if (driver != NULL)
		assert_int_equal(symlink(target, path), 0);
}

static void
expect(const char *device, int rc, const char *text)
{
	memset(cause, 0, sizeof(cause));
	assert_true(device_cause(device, rc, sys, cause, sizeof(cause)));
	assert_string_equal(cause, text);
}

static void
test_pci_device_that_is_not_there(void **state)
{
	(void)state;
	expect("0000:3c:00.0", -ENODEV, "there is no such PCI device: config/setup-host.sh --status "
					"lists the network cards");
	expect("3c:00.0,mprq_en=1", -ENODEV, "there is no such PCI device: config/setup-host.sh "
					     "--status lists the network cards");
}

static void
test_pci_device_that_nobody_has(void **state)
{
	(void)state;
	bind_to(NULL);
	expect(ADDRESS, -ENOTSUP, "no kernel driver gives access to it: config/setup-host.sh " ADDRESS
				  " binds it to vfio-pci");
}

static void
test_pci_device_that_the_kernel_has(void **state)
{
	(void)state;
	bind_to("ixgbe");
	expect("3b:00.0", -ENOTSUP, "the kernel's driver ixgbe has it: config/setup-host.sh " ADDRESS
				    " binds it to vfio-pci");
}

static void
test_pci_device_that_stays_with_the_kernel(void **state)
{
	(void)state;
	bind_to("mlx5_core");
	expect(ADDRESS, -ENOTSUP, "it stays with its kernel driver mlx5_core: DPDK's driver for it is in "
				  "the package librte-net-mlx5");
}

/* Which of the two depends on the host. */
static void
test_pci_device_that_vfio_has(void **state)
{
	(void)state;
	bind_to("vfio-pci");
	if (access("/dev/vfio/vfio", F_OK) != 0)
		expect(ADDRESS, -EIO, "there is no /dev/vfio/vfio: modprobe vfio-pci");
	else
		expect(ADDRESS, -EIO, "there is no IOMMU for vfio-pci: boot with intel_iommu=on or "
				      "amd_iommu=on, or config/setup-host.sh --driver uio_pci_generic");
}

static void
test_socket_path_is_too_long(void **state)
{
	char device[256];

	(void)state;
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=/tmp/%0103d", 0);
	expect(device, -EINVAL, "the path of its socket has 108 bytes, allowed up to 107");
}

static void
test_socket_path_is_another_file(void **state)
{
	char device[256], text[256];

	(void)state;
	snprintf(device, sizeof(device), "net_vhost0,iface=%s/bus", sys);
	snprintf(text, sizeof(text), "%s/bus is no socket: name another path", sys);
	expect(device, -EINVAL, text);
}

static void
test_nothing_is_said_without_a_cause(void **state)
{
	char device[256];

	(void)state;
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=%s/m", sys);
	assert_false(device_cause(device, -EINVAL, sys, cause, sizeof(cause)));
	assert_false(device_cause("net_memif0", -EINVAL, sys, cause, sizeof(cause)));
	assert_false(device_cause("net_null0", -EINVAL, sys, cause, sizeof(cause)));
}

static int
make_tree(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(sys));
	make_dir("bus");
	make_dir("bus/pci");
	make_dir("bus/pci/devices");
	make_dir("bus/pci/devices/" ADDRESS);
	return 0;
}

static int
remove_tree(void **state)
{
	static const char *const dirs[] = { ("bus/pci/devices/" ADDRESS), "bus/pci/devices", "bus/pci",
		"bus", "" };
	char path[256];
	unsigned int i;

	(void)state;
	bind_to(NULL);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", sys, dirs[i]);
		rmdir(path);
	}
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pci_device_that_is_not_there),
		cmocka_unit_test(test_pci_device_that_nobody_has),
		cmocka_unit_test(test_pci_device_that_the_kernel_has),
		cmocka_unit_test(test_pci_device_that_stays_with_the_kernel),
		cmocka_unit_test(test_pci_device_that_vfio_has),
		cmocka_unit_test(test_socket_path_is_too_long),
		cmocka_unit_test(test_socket_path_is_another_file),
		cmocka_unit_test(test_nothing_is_said_without_a_cause),
	};

	return cmocka_run_group_tests_name("link: device cause", tests, make_tree, remove_tree);
}
