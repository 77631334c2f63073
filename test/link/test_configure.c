/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Choice of queues and MTU from the driver's information about its device. This file replaces the
 * ethdev, its arguments and the kernel's interface by fakes.
 */

#include <errno.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include <rte_bus.h>
#include <rte_dev.h>

#include "link/private.h"

static struct {
	struct rte_eth_dev_info info;
	uint16_t mtu;
	int kernel_mtu;
	/* results of calls */
	int info_rc;
	int configure_rc;
	int set_mtu_rc;
	int get_mtu_rc;
	int kernel_errno;
	/* parameters of calls */
	uint16_t nrx, ntx;
	struct rte_eth_conf conf;
} dev;

static struct rte_device *const device = (struct rte_device *)&dev;

int
ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *req;
	va_list args;

	(void)fd;
	va_start(args, request);
	req = va_arg(args, struct ifreq *);
	va_end(args);
	assert_string_equal(req->ifr_name, "eth7");
	errno = dev.kernel_errno;
	if (request == SIOCSIFMTU && errno == 0)
		dev.kernel_mtu = req->ifr_mtu;
	req->ifr_mtu = dev.kernel_mtu;
	return errno != 0 ? -1 : 0;
}

const struct rte_bus *
rte_dev_bus(const struct rte_device *d)
{
	assert_ptr_equal(d, device);
	return NULL;
}

const char *
rte_bus_name(const struct rte_bus *bus)
{
	(void)bus;
	return "vdev";
}

int
rte_eth_dev_socket_id(uint16_t ethdev)
{
	(void)ethdev;
	return 1;
}

int
rte_eth_dev_info_get(uint16_t ethdev, struct rte_eth_dev_info *info)
{
	(void)ethdev;
	*info = dev.info;
	return dev.info_rc;
}

int
rte_eth_dev_configure(uint16_t ethdev, uint16_t nrx, uint16_t ntx, const struct rte_eth_conf *conf)
{
	(void)ethdev;
	dev.nrx = nrx;
	dev.ntx = ntx;
	dev.conf = *conf;
	return dev.configure_rc;
}

int
rte_eth_dev_set_mtu(uint16_t ethdev, uint16_t mtu)
{
	(void)ethdev;
	if (dev.set_mtu_rc == 0)
		dev.mtu = mtu;
	return dev.set_mtu_rc;
}

int
rte_eth_dev_get_mtu(uint16_t ethdev, uint16_t *mtu)
{
	(void)ethdev;
	*mtu = dev.mtu;
	return dev.get_mtu_rc;
}

int
rte_eth_dev_adjust_nb_rx_tx_desc(uint16_t ethdev, uint16_t *rx, uint16_t *tx)
{
	(void)ethdev;
	(void)rx;
	(void)tx;
	return 0;
}

static struct link l;
static struct link_port port;

/* A device of 8 receive and 6 transmit queues, for a link of 4 workers. */
static void
make_device(const char *driver)
{
	memset(&dev, 0, sizeof(dev));
	memset(&l, 0, sizeof(l));
	memset(&port, 0, sizeof(port));
	dev.info.driver_name = driver;
	dev.info.device = device;
	dev.info.max_rx_queues = 8;
	dev.info.max_tx_queues = 6;
	dev.info.min_mtu = 68;
	dev.info.max_mtu = UINT16_MAX;
	dev.info.max_rx_pktlen = 9018;
	dev.mtu = 1500;
	dev.kernel_mtu = 1500;
	l.cfg.workers = 4;
	strcpy(port.cfg.name, "port0");
	strcpy(port.cfg.device, driver);
	strcpy(port.interface[0].name, "eth7");
}

static void
configure(void)
{
	struct error err = { .text = "" };
	int rc = port_configure(&l, &port, &err);

	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	assert_true(port.opened);
}

static void
configure_refused(int eno, const char *text)
{
	struct error err = { .text = "" };

	assert_int_equal(port_configure(&l, &port, &err), -eno);
	assert_string_equal(err.text, text);
}

static void
expect_queues(uint16_t nrx, uint16_t ntx)
{
	configure();
	assert_int_equal(dev.nrx, nrx);
	assert_int_equal(dev.ntx, ntx);
	assert_int_equal(port.nrx, nrx);
	assert_int_equal(port.ntx, ntx);
}

/* The kernel or the guest chooses the queue, so every queue must be served, or frames are lost. */
static void
test_all_queues_of_a_virtual_device_are_served(void **state)
{
	(void)state;
	make_device("net_af_packet");
	expect_queues(6, 6);
	make_device("net_vhost");
	expect_queues(6, 6);
}

static void
test_each_worker_has_a_pair_of_queues(void **state)
{
	(void)state;
	make_device("net_memif");
	expect_queues(4, 4);
	dev.info.max_tx_queues = 2;
	expect_queues(2, 2);
}

static void
test_receive_queues_need_a_hash(void **state)
{
	(void)state;
	make_device("net_card");
	expect_queues(1, 4);
	assert_int_equal(dev.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	dev.info.flow_type_rss_offloads = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_SCTP;
	expect_queues(4, 4);
	assert_int_equal(dev.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	assert_true(dev.conf.rx_adv_conf.rss_conf.rss_hf == RTE_ETH_RSS_NONFRAG_IPV4_UDP);
	assert_true(port.rss_hf == RTE_ETH_RSS_NONFRAG_IPV4_UDP);
	/* no device can hash native InfiniBand frames */
	make_device("net_card");
	dev.info.flow_type_rss_offloads = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	port.cfg.ib = true;
	expect_queues(1, 4);
}

static void
test_offloads_and_descriptors(void **state)
{
	(void)state;
	make_device("net_card");
	dev.info.tx_offload_capa = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	configure();
	assert_true(dev.conf.txmode.offloads == RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
	assert_int_equal(port.rx_desc, 1024);
	assert_int_equal(port.tx_desc, 1024);
	assert_int_equal(port.numa_node, 1);
	assert_false(port.physical);
	port.cfg.rx_desc = 64;
	port.cfg.tx_desc = 128;
	configure();
	assert_int_equal(port.rx_desc, 64);
	assert_int_equal(port.tx_desc, 128);
}

static void
test_errors_of_the_device_are_reported(void **state)
{
	(void)state;
	make_device("net_card");
	dev.info_rc = -ENOTSUP;
	configure_refused(ENOTSUP, "port0: device gives no information: Operation not supported");
	make_device("net_card");
	dev.configure_rc = -EINVAL;
	port.cfg.mtu = 4200;
	configure_refused(EINVAL,
		"port0: net_card refuses 1 receive and 4 transmit queues, MTU 4200: Invalid argument");
	assert_false(port.opened);
	dev.configure_rc = -1;
	configure_refused(1,
		"port0: net_card refuses 1 receive and 4 transmit queues, MTU 4200: the log says why");
}

/* --- MTU of a device that knows its own --- */

static void
test_mtu_of_the_device(void **state)
{
	(void)state;
	make_device("net_card");
	configure();
	assert_int_equal(port.mtu, 1500);
	assert_int_equal(dev.conf.rxmode.mtu, 0);
	port.cfg.mtu = 4200;
	configure();
	assert_int_equal(port.mtu, 4200);
	assert_int_equal(dev.mtu, 4200);
	assert_int_equal(dev.conf.rxmode.mtu, 4200); /* receive buffers are allocated for it */
}

static void
test_mtu_that_the_device_refuses(void **state)
{
	(void)state;
	make_device("net_card");
	port.cfg.mtu = 9001;
	dev.set_mtu_rc = -EINVAL;
	/* a frame of 9018 bytes: header and FCS have 18 */
	configure_refused(EINVAL,
		"port0: mtu: got 9001, net_card allows 68..9000 (Invalid argument)");
	assert_int_equal(dev.conf.rxmode.mtu, 0);
	dev.info.max_mtu = 2000;
	configure_refused(EINVAL,
		"port0: mtu: got 9001, net_card allows 68..2000 (Invalid argument)");
}

static void
test_device_without_mtu_gets_ours(void **state)
{
	(void)state;
	make_device("net_card");
	dev.set_mtu_rc = dev.get_mtu_rc = -ENOTSUP;
	configure();
	assert_int_equal(port.mtu, 1500);
	port.cfg.mtu = 4200;
	configure();
	assert_int_equal(port.mtu, 4200);
}

/* --- MTU of the kernel's interface --- */

static void
test_mtu_of_the_interface(void **state)
{
	(void)state;
	make_device("net_af_packet");
	dev.kernel_mtu = 1400;
	configure();
	assert_int_equal(port.mtu, 1400);
	assert_int_equal(port.frame_size, 2048);
	dev.kernel_mtu = 9000; /* af_packet's slots have 2048 bytes, 128 of them the kernel's */
	configure();
	assert_int_equal(port.mtu, 1920);
	assert_int_equal(dev.kernel_mtu, 9000); /* no MTU is configured, so it stays */
	dev.kernel_errno = ENODEV;
	configure();
	assert_int_equal(port.mtu, 1500);
}

static void
test_mtu_of_the_interface_is_set(void **state)
{
	(void)state;
	make_device("net_af_packet");
	strcpy(port.args, "net_af_packet0,iface=eth7,framesz=4096");
	port.cfg.mtu = 3968;
	configure();
	assert_int_equal(port.mtu, 3968);
	assert_int_equal(port.frame_size, 4096);
	assert_int_equal(dev.kernel_mtu, 3968);
	port.cfg.mtu = 3969;
	configure_refused(EINVAL,
		"port0: mtu: got 3969, net_af_packet allows up to 3968 with its framesz argument of now");
	assert_int_equal(dev.kernel_mtu, 3968);
}

static void
test_mtu_that_the_kernel_refuses(void **state)
{
	(void)state;
	make_device("net_af_packet");
	port.cfg.mtu = 1600;
	dev.kernel_errno = EPERM;
	configure_refused(EPERM,
		"port0: mtu: got 1600, the kernel refuses it for eth7: Operation not permitted");
}

/* A frame, the kernel's headroom of 256 bytes and the mbuf share one page. */
static void
test_mtu_of_an_xdp_socket(void **state)
{
	struct error err = { .text = "" };

	(void)state;
	make_device("net_af_xdp");
	configure();
	assert_int_equal(port.mtu, 1500);
	assert_int_equal(port.frame_size, 1792); /* 256 + 14 + 4 + 1500, in cache lines of 64 */
	make_device("net_af_xdp");
	port.cfg.mtu = 3900;
	assert_int_equal(port_configure(&l, &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "port0: mtu: got 3900, net_af_xdp allows up to "));
	assert_non_null(strstr(err.text, ": a buffer is in one page"));
	assert_int_equal(dev.kernel_mtu, 1500);
}

/* --- MTU limited only by buffers --- */

static void
test_mtu_of_memif_is_its_buffers(void **state)
{
	(void)state;
	make_device("net_memif");
	configure();
	assert_int_equal(port.mtu, 1500);
	port.cfg.mtu = 2026; /* 22 bytes of 2048 are headers */
	configure();
	assert_int_equal(port.mtu, 2026);
	port.cfg.mtu = 2027;
	configure_refused(EINVAL,
		"port0: mtu: got 2027, net_memif allows up to 2026 with its bsize argument of now");
	strcpy(port.args, "net_memif0,role=server,bsize=4222");
	port.cfg.mtu = 4200;
	configure();
	assert_int_equal(port.mtu, 4200);
	port.cfg.mtu = 4201;
	configure_refused(EINVAL,
		"port0: mtu: got 4201, net_memif allows up to 4200 with its bsize argument of now");
}

static void
test_mtu_of_a_pair_is_a_whole_packet(void **state)
{
	(void)state;
	make_device("net_ring");
	configure();
	assert_int_equal(port.mtu, 1500);
	port.peer = &port;
	configure();
	assert_int_equal(port.mtu, 4200); /* path MTU 4096 and its headers */
	port.cfg.mtu = 9000;
	configure();
	assert_int_equal(port.mtu, 9000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_queues_of_a_virtual_device_are_served),
		cmocka_unit_test(test_each_worker_has_a_pair_of_queues),
		cmocka_unit_test(test_receive_queues_need_a_hash),
		cmocka_unit_test(test_offloads_and_descriptors),
		cmocka_unit_test(test_errors_of_the_device_are_reported),
		cmocka_unit_test(test_mtu_of_the_device),
		cmocka_unit_test(test_mtu_that_the_device_refuses),
		cmocka_unit_test(test_device_without_mtu_gets_ours),
		cmocka_unit_test(test_mtu_of_the_interface),
		cmocka_unit_test(test_mtu_of_the_interface_is_set),
		cmocka_unit_test(test_mtu_that_the_kernel_refuses),
		cmocka_unit_test(test_mtu_of_an_xdp_socket),
		cmocka_unit_test(test_mtu_of_memif_is_its_buffers),
		cmocka_unit_test(test_mtu_of_a_pair_is_a_whole_packet),
	};

	return cmocka_run_group_tests_name("link: configuration of a device", tests, NULL, NULL);
}
