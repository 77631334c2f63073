/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What is restored of a kernel's interface, here one of ours: ioctl() and the ethdev are those of this file. */

#include <errno.h>
#include <net/if_arp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "link/private.h"

static const char old_mac[MAC_LEN] = { 2, 0, 0, 0, 0, 1 }, new_mac[MAC_LEN] = { 2, 0, 0, 0, 0, 2 };

static struct {
	int mtu;
	short flags;
	char mac[MAC_LEN];
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

/* Any interface that there is; its state is in this file. */
int
rte_eth_dev_info_get(uint16_t ethdev, struct rte_eth_dev_info *info)
{
	(void)ethdev;
	memset(info, 0, sizeof(*info));
	info->if_index = if_nametoindex("lo");
	return 0;
}

static struct link_port port;

static int
note(void **state)
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

static void
test_one_step_that_fails_skips_no_other(void **state)
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
test_flags_that_somebody_else_sets_stay(void **state)
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

/* A device that does not start is never told of. */
static void
test_flags_are_restored_after_a_start_that_failed(void **state)
{
	(void)state;
	kernel.flags |= IFF_PROMISC;
	interface_restore(&port);
	assert_int_equal(kernel.flags, IFF_UP);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_step_that_fails_skips_no_other, note),
		cmocka_unit_test_setup(test_flags_that_somebody_else_sets_stay, note),
		cmocka_unit_test_setup(test_flags_stay_where_nothing_was_changed, note),
		cmocka_unit_test_setup(test_flags_are_restored_after_a_start_that_failed, note),
	};

	return cmocka_run_group_tests_name("link: interface", tests, NULL, NULL);
}
