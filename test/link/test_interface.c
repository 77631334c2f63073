/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The settings of a kernel interface that are restored at the end. This file replaces ioctl() and
 * the ethdev by fakes.
 */

#include <errno.h>
#include <net/if_arp.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/interface.h"
#include "link/private.h"

static const char old_mac[MAC_LEN] = { 2, 0, 0, 0, 0, 1 }, new_mac[MAC_LEN] = { 2, 0, 0, 0, 0, 2 };

static struct {
	int mtu;
	short flags;
	char mac[MAC_LEN];
	short set_with_mtu; /* flags that somebody else sets meanwhile */
} kernel;

int
ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *req;
	va_list args;

	(void)fd;
	va_start(args, request);
	req = va_arg(args, struct ifreq *);
	va_end(args);
	switch (request) {
	case SIOCGIFFLAGS:
		req->ifr_flags = kernel.flags;
		return 0;
	case SIOCSIFFLAGS:
		kernel.flags = req->ifr_flags;
		return 0;
	case SIOCGIFMTU:
		req->ifr_mtu = kernel.mtu;
		return 0;
	case SIOCSIFMTU:
		kernel.mtu = req->ifr_mtu;
		kernel.flags |= kernel.set_with_mtu;
		return 0;
	case SIOCGIFHWADDR:
		req->ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(req->ifr_hwaddr.sa_data, kernel.mac, MAC_LEN);
		return 0;
	default: /* SIOCSIFHWADDR, while it is up */
		errno = EBUSY;
		return -1;
	}
}

/* An interface that every host has; its state is `kernel` in this file. */
int
rte_eth_dev_info_get(uint16_t ethdev, struct rte_eth_dev_info *info)
{
	(void)ethdev;
	memset(info, 0, sizeof(*info));
	info->if_index = if_nametoindex("lo");
	return 0;
}

static struct link_port port;
static char dir[] = "/tmp/polca-test-interface-XXXXXX", runtime_dir[sizeof(dir) + 8];

/* Files of killed processes are in directories beside this one. */
const char *
rte_eal_get_runtime_dir(void)
{
	return runtime_dir;
}

static int
link_interface_note(void **state)
{
	(void)state;
	memset(&port, 0, sizeof(port));
	strcpy(port.driver, "net_af_packet");
	port.cfg.mtu = 4200;
	memcpy(port.cfg.mac, new_mac, MAC_LEN);
	kernel.mtu = 1500;
	kernel.flags = IFF_UP;
	memcpy(kernel.mac, old_mac, MAC_LEN);
	interface_note(&port);
	return 0;
}

static int
interface_forget(void **state)
{
	(void)state;
	interface_restore(&port);
	return 0;
}

static void
test_failing_step_does_not_skip_others(void **state)
{
	(void)state;
	kernel.mtu = 4200;
	kernel.flags |= IFF_PROMISC | IFF_ALLMULTI;
	memcpy(kernel.mac, new_mac, MAC_LEN);
	interface_tell(&port);
	interface_restore(&port);
	assert_int_equal(kernel.mtu, 1500);
	assert_int_equal(kernel.flags, IFF_UP);
}

static void
test_flags_set_by_others_stay(void **state)
{
	(void)state;
	kernel.flags |= IFF_ALLMULTI;
	interface_tell(&port);
	kernel.flags |= IFF_PROMISC;
	interface_restore(&port);
	assert_int_equal(kernel.flags, IFF_UP | IFF_PROMISC);
}

static void
test_flags_stay_where_nothing_was_changed(void **state)
{
	(void)state;
	interface_tell(&port);
	kernel.flags |= IFF_PROMISC;
	interface_restore(&port);
	assert_int_equal(kernel.flags, IFF_UP | IFF_PROMISC);
}

static void
test_flags_set_during_the_restore_stay(void **state)
{
	(void)state;
	kernel.mtu = 4200;
	kernel.flags |= IFF_PROMISC;
	interface_tell(&port);
	kernel.set_with_mtu = IFF_ALLMULTI;
	interface_restore(&port);
	kernel.set_with_mtu = 0;
	assert_int_equal(kernel.mtu, 1500);
	assert_int_equal(kernel.flags, IFF_UP | IFF_ALLMULTI);
}

/* interface_tell() is not called for a device that does not start. */
static void
test_flags_are_restored_after_a_start_that_failed(void **state)
{
	(void)state;
	kernel.flags |= IFF_PROMISC;
	interface_restore(&port);
	assert_int_equal(kernel.flags, IFF_UP);
}

/* Simulate kill -9: the lock of the process ends, its file stays. */
static void
kill_it(void)
{
	assert_true(port.interface[0].file >= 0);
	close(port.interface[0].file);
	memset(&port, 0, sizeof(port));
	strcpy(port.driver, "net_af_packet");
}

static void
test_next_process_restores_changes_of_a_killed_one(void **state)
{
	(void)state;
	kernel.mtu = 4200;
	kernel.flags |= IFF_PROMISC;
	interface_tell(&port);
	kill_it();
	interface_note(&port);
	assert_int_equal(kernel.mtu, 1500);
	assert_int_equal(kernel.flags, IFF_UP);
	assert_int_equal(port.interface[0].mtu, 1500);
}

static void
test_next_process_restores_changes_of_one_killed_at_its_start(void **state)
{
	(void)state;
	kernel.mtu = 4200;
	kernel.flags |= IFF_ALLMULTI;
	kill_it();
	interface_note(&port);
	assert_int_equal(kernel.mtu, 1500);
	assert_int_equal(kernel.flags, IFF_UP);
}

static void
test_settings_changed_by_others_since_are_not_restored(void **state)
{
	(void)state;
	kernel.mtu = 4200;
	interface_tell(&port);
	kernel.mtu = 2000;
	kernel.flags |= IFF_PROMISC;
	kill_it();
	interface_note(&port);
	assert_int_equal(kernel.mtu, 2000);
	assert_int_equal(kernel.flags, IFF_UP | IFF_PROMISC);
}

/* Another interface has the index of one that no longer exists. */
static void
test_another_interface_is_left_alone(void **state)
{
	(void)state;
	kernel.mtu = 4200;
	interface_tell(&port);
	kill_it();
	kernel.mac[5] = 9;
	interface_note(&port);
	assert_int_equal(kernel.mtu, 4200);
}

/* Of a file that another version wrote, or that has lost its end, nothing is taken. */
static void
test_record_of_another_form_is_not_read(void **state)
{
	static const char text[] = "mtu 1500 flags 0x3 mac 02:00:00:00:00:01\n";
	struct {
		off_t at; /* of what is written into the record */
		const void *bytes;
		size_t size;
		int longer; /* bytes that the file gains at its end */
	} other[] = {
		{ 0, "?", 1, 0 }, /* another magic */
		{ 8, "?", 1, 0 }, /* another size */
		{ 0, text, sizeof(text), 0 },
		{ 0, NULL, 0, -1 },
		{ 0, NULL, 0, 1 },
		{ 0, NULL, 0, 100 },
	};
	struct stat st;
	unsigned int i;
	int file;

	(void)state;
	for (i = 0; i < RTE_DIM(other); i++) {
		interface_forget(NULL);
		link_interface_note(NULL);
		kernel.mtu = 4200;
		interface_tell(&port);
		file = port.interface[0].file;
		if (other[i].bytes != NULL)
			assert_int_equal(pwrite(file, other[i].bytes, other[i].size, other[i].at),
				other[i].size);
		assert_int_equal(fstat(file, &st), 0);
		assert_int_equal(ftruncate(file, st.st_size + other[i].longer), 0);
		kill_it();
		interface_note(&port);
		assert_int_equal(kernel.mtu, 4200);
	}
}

static void
test_changes_of_a_living_process_stay(void **state)
{
	struct link_port other = port;

	(void)state;
	kernel.mtu = 4200;
	interface_tell(&port);
	other.cfg.mtu = 0;
	interface_note(&other);
	assert_int_equal(kernel.mtu, 4200);
	interface_tell(&other);
	interface_restore(&other);
	assert_int_equal(kernel.mtu, 4200);
	interface_restore(&port);
	assert_int_equal(kernel.mtu, 1500);
}

static void
test_link_is_up_when_the_interface_is_running(void **state)
{
	struct link_port other = port;

	(void)state;
	kernel.flags = IFF_UP | IFF_RUNNING;
	assert_true(interface_is_running(&port));
	kernel.flags = IFF_UP; /* no carrier */
	assert_false(interface_is_running(&port));
	kernel.flags = 0;
	assert_false(interface_is_running(&port));
	kernel.flags = IFF_UP | IFF_RUNNING;
	other.interface[0].index = INT_MAX; /* it does not exist any more */
	assert_false(interface_is_running(&other));
}

/* No file is left: the directory must be empty. */
static int
interface_remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int
interface_make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(runtime_dir, sizeof(runtime_dir), "%s/polca", dir);
	return 0;
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, link_interface_note, interface_forget)
	const struct CMUnitTest tests[] = {
		T(test_failing_step_does_not_skip_others),
		T(test_flags_set_by_others_stay),
		T(test_flags_stay_where_nothing_was_changed),
		T(test_flags_are_restored_after_a_start_that_failed),
		T(test_next_process_restores_changes_of_a_killed_one),
		T(test_next_process_restores_changes_of_one_killed_at_its_start),
		T(test_settings_changed_by_others_since_are_not_restored),
		T(test_another_interface_is_left_alone),
		T(test_record_of_another_form_is_not_read),
		T(test_flags_set_during_the_restore_stay),
		T(test_changes_of_a_living_process_stay),
		T(test_link_is_up_when_the_interface_is_running),
	};

	return cmocka_run_group_tests_name("link: interface", tests, interface_make_dir,
		interface_remove_dir);
}
