/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The explanation why a device cannot be opened, for PCI devices in a tree that replaces /sys,
 * drivers in a directory that replaces DPDK's, paths, and "lo". dts/suites/robustness/test_start.py
 * tests real cards.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_version.h>

#include "link/device_cause.h"
#include "link/device.h"
#include "link/private.h"

#if RTE_VER_YEAR == 22
#define ABI "23"
#elif RTE_VER_YEAR == 24
#define ABI "25"
#else
#define ABI "26"
#endif
#define ADDRESS "0000:3b:00.0"

static char sys[] = "/tmp/polca-test-sys-XXXXXX";
static char drivers_dir[sizeof(sys) + 8], dev_dir[sizeof(sys) + 8];
static struct device_host host = { sys, drivers_dir, dev_dir };
static struct error found;

static void
device_cause_make_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void
set_mode(const char *name, mode_t mode)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	assert_int_equal(chmod(path, mode), 0);
}

static void
make_file(const char *name, mode_t mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	set_mode(name, mode);
}

static void
remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	assert_int_equal(unlink(path), 0);
}

/* Set the device's driver, a symbolic link in sysfs. NULL: no driver. */
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
install(const char *driver)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/librte_%s.so." ABI, drivers_dir, driver);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void
uninstall(const char *driver)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/librte_%s.so." ABI, drivers_dir, driver);
	assert_int_equal(unlink(path), 0);
}

/* @return an errno value; 0: nothing was found */
static int
find_cause(const char *device, int rc)
{
	return -device_cause(&host, device, rc, &found);
}

static void
expect_errno(int eno, const char *device, int rc, const char *text)
{
	memset(&found, 0, sizeof(found));
	assert_int_equal(find_cause(device, rc), eno);
	assert_string_equal(found.text, text);
}

static void
device_cause_expect(const char *device, int rc, const char *text)
{
	expect_errno(ENODEV, device, rc, text);
}

static void
test_pci_device_that_does_not_exist(void **state)
{
	(void)state;
	device_cause_expect("0000:3c:00.0", -ENODEV,
		"there is no such PCI device: config/setup-host.sh --status lists the network cards");
	device_cause_expect("3c:00.0,mprq_en=1", -ENODEV,
		"there is no such PCI device: config/setup-host.sh --status lists the network cards");
}

static void
test_pci_device_without_a_driver(void **state)
{
	(void)state;
	bind_to(NULL);
	device_cause_expect(ADDRESS, -ENOTSUP,
		"no kernel driver gives access to it: config/setup-host.sh " ADDRESS
		" binds it to vfio-pci");
}

static void
test_pci_device_with_a_kernel_driver(void **state)
{
	(void)state;
	bind_to("ixgbe");
	expect_errno(EBUSY, "3b:00.0", -ENOTSUP,
		"the kernel's driver ixgbe has it: config/setup-host.sh " ADDRESS
		" binds it to vfio-pci");
}

static void
test_pci_device_with_a_bifurcated_driver(void **state)
{
	(void)state;
	bind_to("mlx5_core");
	device_cause_expect(ADDRESS, -ENOTSUP,
		"it stays with its kernel driver mlx5_core, but DPDK's driver for it is "
		"missing: apt-get install librte-net-mlx5-" ABI);
	install("net_mlx5");
	device_cause_expect(ADDRESS, -ENOTSUP,
		"it rightly stays with its kernel driver mlx5_core, and DPDK's driver "
		"net_mlx5 is installed: the lines above say what that one lacks");
	uninstall("net_mlx5");
}

static void
test_interface_in_place_of_a_device(void **state)
{
	(void)state;
	device_cause_expect("lo", -EFAULT,
		"that is an interface of the kernel: give net_af_packet0,iface=lo, or the PCI "
		"address of its card");
}

static void
test_name_that_is_no_device(void **state)
{
	static const char neither[] =
		"neither a PCI address, such as 0000:3b:00.0, nor a vdev, such as "
		"net_af_packet0,iface=eth0";

	(void)state;
	device_cause_expect("nosuch77", -EFAULT, neither);
	device_cause_expect("77", -EFAULT, neither);
	device_cause_expect("", -EFAULT, neither);
	device_cause_expect("Net 0", -EFAULT, neither);
}

static void
test_driver_that_is_not_installed(void **state)
{
	(void)state;
	device_cause_expect("net_tap0,iface=x", -EFAULT,
		"DPDK's driver net_tap is missing: apt-get install librte-net-tap" ABI);
	device_cause_expect("net_virtio_user0,path=x", -EFAULT,
		"DPDK's driver net_virtio is missing: apt-get install librte-net-virtio" ABI);
	device_cause_expect("net_no_such0", -EFAULT,
		"DPDK has no driver net_no_such: a typing error, or a package is "
		"missing: apt-get install librte-net-no-such" ABI);
	install("net_pcap");
	device_cause_expect("net_tap0,iface=x", -EFAULT,
		"DPDK's driver net_tap is missing: apt-get install librte-net-tap" ABI);
	uninstall("net_pcap");
}

static void
test_typing_error_in_a_driver(void **state)
{
	(void)state;
	install("net_af_packet");
	install("net_memif");
	device_cause_expect("net_af_paket0,iface=x", -EFAULT,
		"DPDK has no driver net_af_paket: did you mean "
		"net_af_packet? If not, a package may be missing: librte-net-af-paket" ABI);
	device_cause_expect("memif0", -EFAULT,
		"DPDK has no driver memif: did you mean net_memif0?");
	assert_int_equal(find_cause("net_memif0", -EFAULT), 0);
	uninstall("net_af_packet");
	uninstall("net_memif");
}

static void
test_socket_path_is_too_long(void **state)
{
	char device[256];

	(void)state;
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=/tmp/%0103d", 0);
	expect_errno(ENAMETOOLONG, device, -EINVAL,
		"the path of its socket has 108 bytes, allowed up to 107");
}

static void
test_socket_path_is_another_file(void **state)
{
	char device[256], text[256];

	(void)state;
	snprintf(device, sizeof(device), "net_vhost0,iface=%s/bus", sys);
	snprintf(text, sizeof(text), "%s/bus is no socket: name another path", sys);
	expect_errno(ENOTSOCK, device, -EINVAL, text);
}

/* Root may do anything, so the test asks as another user. */
static void
become_user(void)
{
	if (geteuid() == 0)
		assert_int_equal(setresuid(65534, 65534, 0), 0);
}

/* The tear-down becomes root again, also after a failure. */
static int
become_root_again(void **state)
{
	uid_t real, effective, saved;

	(void)state;
	assert_int_equal(getresuid(&real, &effective, &saved), 0);
	return saved == 0 ? setresuid(0, 0, 0) : 0;
}

static void
test_interface_that_is_missing(void **state)
{
	(void)state;
	expect_errno(EINVAL, "net_af_packet0", -EINVAL,
		"iface=NAME is missing, such as net_af_packet0,iface=eth0");
	expect_errno(EINVAL, "net_af_xdp3,start_queue=1", -EINVAL,
		"iface=NAME is missing, such as net_af_xdp3,iface=eth0");
	device_cause_expect("net_af_packet0,iface=nosuch77", -EINVAL,
		"there is no interface \"nosuch77\": ip -brief link lists those there are");
}

static void
test_user_without_capabilities(void **state)
{
	(void)state;
	bind_to("uio_pci_generic");
	become_user();
	expect_errno(EPERM, "net_af_packet0,iface=lo", -EINVAL,
		"this user may not open packet sockets: run it "
		"as root, or with the capabilities CAP_NET_RAW and CAP_NET_ADMIN");
	expect_errno(EPERM, "net_af_xdp0,iface=lo", -EINVAL,
		"this user may not load AF_XDP programs: run it as "
		"root, or with the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN");
	/* a systemd service is told how it gets them */
	setenv("INVOCATION_ID", "0123", 1);
	assert_int_equal(find_cause("net_af_packet0,iface=lo", -EINVAL), EPERM);
	assert_non_null(strstr(found.text, "CAP_NET_ADMIN; for the service: copy /"));
	assert_non_null(strstr(found.text,
		"/polca/systemd/af_packet.conf to /etc/systemd/system/polca.service.d/"));
	unsetenv("INVOCATION_ID");
	if (access("/dev/net/tun", F_OK) == 0)
		expect_errno(EPERM, "net_tap0,iface=x", -EINVAL,
			"this user may not make interfaces by /dev/net/tun: "
			"run it as root, or with the capability CAP_NET_ADMIN");
	else
		expect_errno(ENOENT, "net_tap0,iface=x", -EINVAL,
			"there is no /dev/net/tun: modprobe tun");
	expect_errno(EPERM, ADDRESS, -EIO, "uio_pci_generic needs root");
}

/* A link of sysfs to the IOMMU group 7, and its file in /dev. */
static void
join_iommu_group(bool join)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/" ADDRESS "/iommu_group", sys);
	unlink(path);
	if (join)
		assert_int_equal(symlink("../../../../kernel/iommu_groups/7", path), 0);
}

static void
test_pci_device_bound_to_vfio(void **state)
{
	char text[256];

	(void)state;
	bind_to("vfio-pci");
	join_iommu_group(false);
	snprintf(text, sizeof(text), "there is no %s/vfio/vfio: modprobe vfio-pci", dev_dir);
	expect_errno(ENOENT, ADDRESS, -EIO, text);

	make_file("dev/vfio/vfio", 0666);
	device_cause_expect(ADDRESS, -EIO,
		"there is no IOMMU for vfio-pci: boot with intel_iommu=on or "
		"amd_iommu=on, or config/setup-host.sh --driver uio_pci_generic " ADDRESS);
	join_iommu_group(true);
	make_file("dev/vfio/7", 0600);
	become_user();
	snprintf(text, sizeof(text),
		"this user may not use %s/vfio/7: run it as root, or chown this file and raise ulimit -l",
		dev_dir);
	expect_errno(EACCES, ADDRESS, -EIO, text);
	become_root_again(NULL);
	set_mode("dev/vfio/7", 0666);
	assert_int_equal(find_cause(ADDRESS, -EIO), 0);
	join_iommu_group(false);
	remove_file("dev/vfio/7");
	remove_file("dev/vfio/vfio");
}

/* A file that may not be opened is not said to be missing, nor is one in a closed directory. */
static void
test_vfio_that_may_not_be_opened(void **state)
{
	char text[256];

	(void)state;
	bind_to("vfio-pci");
	make_file("dev/vfio/vfio", 0600);
	become_user();
	snprintf(text, sizeof(text),
		"this user may not open %s/vfio/vfio: run it as root, chmod a+rw this file, or give its "
		"service the drop-in vfio.conf",
		dev_dir);
	expect_errno(EACCES, ADDRESS, -EIO, text);
	become_root_again(NULL);
	set_mode("dev/vfio/vfio", 0666);
	set_mode("dev/vfio", 0700);
	become_user();
	expect_errno(EACCES, ADDRESS, -EIO, text);
	become_root_again(NULL);
	set_mode("dev/vfio", 0755);
	remove_file("dev/vfio/vfio");
}

static int
packet_socket(void)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	addr.sll_ifindex = (int)if_nametoindex("lo");
	if (fd < 0)
		skip(); /* only root may open one */
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* The number of the driver's fanout group belongs to a group of another type. */
static void
test_fanout_group_that_is_taken(void **state)
{
	int id = (getpid() ^ (int)if_nametoindex("lo")) & 0xffff, arg = id | PACKET_FANOUT_LB << 16;
	int fd = packet_socket();
	char text[512];

	(void)state;
	assert_int_equal(find_cause("net_af_packet0,iface=lo", -EINVAL), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)), 0);
	snprintf(text, sizeof(text),
		"another process has the packet fanout group %d, which follows from our "
		"process ID: start it again",
		id);
	expect_errno(EBUSY, "net_af_packet0,iface=lo", -EINVAL, text);
	close(fd);
}

/* "lo" has one queue. The cause depends on an earlier message of the kernel. */
static void
test_xdp_queue(void **state)
{
	int fd = socket(44 /* AF_XDP */, SOCK_RAW | SOCK_CLOEXEC, 0);

	(void)state;
	if (fd < 0)
		skip(); /* only root may open one, and only if the kernel has AF_XDP */
	close(fd);
	expect_errno(EINVAL, "net_af_xdp0,iface=lo,start_queue=1", -EINVAL,
		"start_queue=1, queue_count=1: lo has 1 queue, from 0 on; ethtool -l lo shows them");
	expect_errno(EINVAL, "net_af_xdp0,iface=lo,queue_count=2", -EINVAL,
		"start_queue=0, queue_count=2: lo has 1 queue, from 0 on; ethtool -l lo shows them");
	assert_int_equal(find_cause("net_af_xdp0,iface=lo", -EINVAL), 0);
	xdp_log_begin();
	expect_errno(EBUSY, "net_af_xdp0,iface=lo", -EINVAL,
		"another program may have the queue. What libbpf "
		"says: \"log\": [{\"component\": \"polca.link\", \"level\": \"debug\"}]");
}

static void
test_socket_without_a_directory(void **state)
{
	(void)state;
	expect_errno(ENOENT, "net_vhost0,iface=/tmp/polca-nosuch/vhost", -EINVAL,
		"there is no directory /tmp/polca-nosuch for its socket: mkdir /tmp/polca-nosuch");
	expect_errno(EINVAL, "net_vhost0,queues=1", -EINVAL, "iface=PATH, its socket, is missing");
}

static void
test_socket_of_another_user(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char device[256], text[256];

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/vhost", sys);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	set_mode("vhost", 0);
	snprintf(device, sizeof(device), "net_vhost0,iface=%s,client=1", addr.sun_path);
	snprintf(text, sizeof(text), "this user may not use the socket %s: Permission denied",
		addr.sun_path);
	become_user();
	expect_errno(EACCES, device, -EINVAL, text);
	become_root_again(NULL);
	set_mode("vhost", 0600);
	assert_int_equal(find_cause(device, -EINVAL), 0);
	close(fd);
	unlink(addr.sun_path);
}

static void
test_path_of_virtio_user(void **state)
{
	char device[256];

	(void)state;
	expect_errno(EINVAL, "net_virtio_user0", -EINVAL,
		"path= is missing: the socket of vhost, or /dev/vhost-net");
	expect_errno(ENOENT, "net_virtio_user0,path=/tmp/polca-nosuch", -EINVAL,
		"path /tmp/polca-nosuch: No such file or directory");
	snprintf(device, sizeof(device), "net_virtio_user0,path=%s", sys);
	assert_int_equal(find_cause(device, -EINVAL), 0);
}

static void
expect_error(const char *device, int rc, int eno, const char *text)
{
	struct error err = { .text = "" };

	assert_int_equal(device_error("port0", device, rc, &err), -eno);
	assert_string_equal(err.text, text);
}

/* The error has the cause if it is known, else the usual remedy. */
static void
test_error_of_a_port(void **state)
{
	(void)state;
	expect_error("net_af_packet0", -EINVAL, EINVAL,
		"port0: device net_af_packet0: iface=NAME is missing, such as net_af_packet0,iface=eth0");
	expect_error("net_null0", -EINVAL, EINVAL,
		"port0: device net_null0 cannot be opened (Invalid argument): give a "
		"PCI address bound to vfio-pci (config/setup-host.sh ADDRESS), or a vdev such as net_af_packet0,iface=eth0");
	expect_error("net_null0", -1, ENODEV,
		"port0: device net_null0 cannot be opened (the log says why): give a "
		"PCI address bound to vfio-pci (config/setup-host.sh ADDRESS), or a vdev such as net_af_packet0,iface=eth0");
	/* memory is the cause, whatever the device */
	expect_error("net_af_packet0", -ENOMEM, ENOMEM,
		"port0: device net_af_packet0 cannot be opened (Cannot allocate "
		"memory): reserve more hugepages on its NUMA node: config/setup-host.sh --node NODE --hugepages MIB "
		"(--status shows its node and how many there are)");
}

static void
test_only_a_new_socket_needs_a_writable_directory(void **state)
{
	char device[256], text[256];

	(void)state;
	device_cause_make_dir("sockets");
	set_mode("sockets", 0555);
	become_user();
	snprintf(device, sizeof(device),
		"net_memif0,role=client,socket-abstract=no,socket=%s/sockets/m", sys);
	assert_int_equal(find_cause(device, -ECONNREFUSED), 0);
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=%s/sockets/m", sys);
	assert_int_equal(find_cause(device, -ECONNREFUSED), 0);
	snprintf(text, sizeof(text),
		"this user may not use the directory %s/sockets of its socket: Permission denied",
		sys);
	snprintf(device, sizeof(device),
		"net_memif0,role=server,socket-abstract=no,socket=%s/sockets/m", sys);
	expect_errno(EACCES, device, -EIO, text);
	snprintf(device, sizeof(device), "net_vhost0,iface=%s/sockets/m", sys);
	expect_errno(EACCES, device, -EIO, text);
	snprintf(device, sizeof(device), "net_vhost0,iface=%s/sockets/m,client=1", sys);
	assert_int_equal(find_cause(device, -EIO), 0);
}

static void
test_unknown_cause_gives_no_text(void **state)
{
	char device[256];

	(void)state;
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=%s/m", sys);
	assert_int_equal(find_cause(device, -EINVAL), 0);
	assert_int_equal(find_cause("net_memif0", -EINVAL), 0);
	assert_int_equal(find_cause("net_null0", -EINVAL), 0);
}

static int
device_cause_make_tree(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(sys));
	snprintf(drivers_dir, sizeof(drivers_dir), "%s/drivers", sys);
	snprintf(dev_dir, sizeof(dev_dir), "%s/dev", sys);
	set_mode("", 0755);
	device_cause_make_dir("drivers");
	device_cause_make_dir("dev");
	device_cause_make_dir("dev/vfio");
	device_cause_make_dir("bus");
	device_cause_make_dir("bus/pci");
	device_cause_make_dir("bus/pci/devices");
	device_cause_make_dir("bus/pci/devices/" ADDRESS);
	return 0;
}

static int
device_cause_remove_tree(void **state)
{
	static const char *const dirs[] = { ("bus/pci/devices/" ADDRESS), "bus/pci/devices",
		"bus/pci", "bus", "drivers", "dev/vfio", "dev", "sockets", "" };
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
	unsetenv("INVOCATION_ID"); /* these tests may run as part of a service */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pci_device_that_does_not_exist),
		cmocka_unit_test(test_pci_device_without_a_driver),
		cmocka_unit_test(test_pci_device_with_a_kernel_driver),
		cmocka_unit_test(test_pci_device_with_a_bifurcated_driver),
		cmocka_unit_test_teardown(test_pci_device_bound_to_vfio, become_root_again),
		cmocka_unit_test_teardown(test_vfio_that_may_not_be_opened, become_root_again),
		cmocka_unit_test(test_interface_in_place_of_a_device),
		cmocka_unit_test(test_name_that_is_no_device),
		cmocka_unit_test(test_driver_that_is_not_installed),
		cmocka_unit_test(test_typing_error_in_a_driver),
		cmocka_unit_test(test_socket_path_is_too_long),
		cmocka_unit_test(test_socket_path_is_another_file),
		cmocka_unit_test(test_interface_that_is_missing),
		cmocka_unit_test_teardown(test_user_without_capabilities, become_root_again),
		cmocka_unit_test(test_fanout_group_that_is_taken),
		cmocka_unit_test(test_xdp_queue),
		cmocka_unit_test(test_socket_without_a_directory),
		cmocka_unit_test_teardown(test_socket_of_another_user, become_root_again),
		cmocka_unit_test(test_path_of_virtio_user),
		cmocka_unit_test(test_error_of_a_port),
		cmocka_unit_test_teardown(test_only_a_new_socket_needs_a_writable_directory,
			become_root_again),
		cmocka_unit_test(test_unknown_cause_gives_no_text),
	};

	return cmocka_run_group_tests_name("link: device cause", tests, device_cause_make_tree,
		device_cause_remove_tree);
}
