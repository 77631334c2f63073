/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queues, offloads and MTU of a port, chosen by the configuration, by what the driver reports, and
 * by a table of drivers whose reports do not suffice.
 */

#include <linux/bpf.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_version.h>

#include "link/device.h"
#include "link/interface.h"
#include "link/private.h"

#define PACKET_REPORTS_DROPS (RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0))

/*
 * Special rules for virtual devices. On some of them the kernel, a guest or the peer chooses the
 * queue of a packet, so every queue must be polled, or its packets are lost. On some the largest
 * frame is not the one that the driver reports, but that of the kernel's interface or of the far
 * end. The last row is for any other driver.
 */
static const struct driver_rule driver_rules[] = {
	{ "net_ring", QUEUES_ALL, MTU_ANY },
	{ "net_af_packet", QUEUES_ALL, MTU_INTERFACE, .link_of_interface = true,
		.family = AF_PACKET, .ring_full = PACKET_REPORTS_DROPS ? NULL : packet_ring_full },
	{ "net_af_xdp", QUEUES_ALL, MTU_INTERFACE, .xdp = true, .link_of_interface = true,
		.family = AF_XDP, .ring_full = xdp_ring_full },
	{ "net_vhost", QUEUES_ALL, MTU_ANY, .queues_may_sleep = true },
	{ "net_memif", QUEUES_PER_WORKER, MTU_ANY },
	{ "net_tap", QUEUES_PER_WORKER, MTU_DEVICE },
	{ "net_pcap", QUEUES_RSS, MTU_DEVICE, .link_of_interface = true },
	{ "", QUEUES_RSS, MTU_DEVICE },
};

static const struct driver_rule *
find_rule(const char *driver)
{
	const struct driver_rule *rule = driver_rules;

	while (rule->driver[0] != '\0' && strcmp(driver, rule->driver) != 0)
		rule++;
	return rule;
}

static void
choose_queues(const struct link *l, struct link_port *p, const struct rte_eth_dev_info *info)
{
	unsigned int pairs = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	unsigned int workers = l->cfg.workers;

	switch (p->driver_rule->queues) {
	case QUEUES_ALL:
		p->nrx = pairs;
		p->ntx = pairs;
		break;
	case QUEUES_PER_WORKER:
		p->nrx = RTE_MIN(pairs, workers);
		p->ntx = p->nrx;
		break;
	case QUEUES_RSS:
		p->nrx = p->rss_hf != 0 ? RTE_MIN(info->max_rx_queues, workers) : 1u;
		p->ntx = RTE_MIN(info->max_tx_queues, workers);
		break;
	}
}

/*
 * The kernel requires each object of an AF_XDP pool to be within one page: the mempool's header,
 * the mbuf with our private area, and its data, which begins with the headrooms of DPDK and of the
 * kernel. The mempool adds cache lines to spread the objects over memory channels.
 */
static unsigned int
xdp_data_room(void)
{
	unsigned int page = (unsigned int)getpagesize(), room = page;
	unsigned int rest = sizeof(struct rte_mbuf) + MBUF_PRIV + RTE_PKTMBUF_HEADROOM;

	while (rte_mempool_calc_obj_size(rest + room, 0, NULL) > page)
		room -= RTE_CACHE_LINE_SIZE;
	return room;
}

static int
use_interface_mtu(struct link_port *p, struct error *err)
{
	const char *ifname = p->interface[0].name;
	unsigned int limit = UINT16_MAX;
	int mtu;

	if (strcmp(p->driver, "net_af_packet") == 0) {
		p->frame_size = device_number(p->args, "framesz", BUFFER_DEFAULT);
		limit = p->frame_size - AF_PACKET_SLOT_HEADER;
	} else if (p->driver_rule->xdp) {
		limit = xdp_data_room() - XDP_PACKET_HEADROOM - ETH_LEN - VLAN_LEN;
	}
	mtu = interface_mtu(ifname, 0);
	if (mtu <= 0)
		mtu = RTE_ETHER_MTU;
	if (p->cfg.mtu > limit)
		return port_error(p, err, EINVAL, "mtu: got %u, %s allows up to %u%s", p->cfg.mtu,
			p->driver, limit,
			p->frame_size ? " with its framesz argument of now"
				      : ": a buffer is in one page");
	if (p->cfg.mtu != 0 && p->cfg.mtu != mtu) {
		mtu = interface_mtu(ifname, p->cfg.mtu);
		if (mtu < 0)
			return port_error(p, err, -mtu,
				"mtu: got %u, the kernel refuses it for %s: %s", p->cfg.mtu, ifname,
				rte_strerror(-mtu));
	}
	p->mtu = RTE_MIN((unsigned int)mtu, limit);
	if (p->driver_rule->xdp)
		p->frame_size = RTE_ALIGN(p->mtu + ETH_LEN + VLAN_LEN + XDP_PACKET_HEADROOM,
			RTE_CACHE_LINE_SIZE);
	return 0;
}

/* Drivers that leave max_mtu at its default are limited by max_rx_pktlen. */
static unsigned int
largest_mtu(const struct rte_eth_dev_info *info)
{
	return RTE_MIN((uint32_t)info->max_mtu,
		info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
}

static int
use_device_mtu(struct link_port *p, const struct rte_eth_dev_info *info, struct error *err)
{
	int rc;

	if (p->cfg.mtu != 0) {
		rc = rte_eth_dev_set_mtu(p->ethdev, p->cfg.mtu);
		if (rc != 0 && rc != -ENOTSUP)
			return port_error(p, err, -rc, "mtu: got %u, %s allows %u..%u (%s)",
				p->cfg.mtu, p->driver, info->min_mtu, largest_mtu(info),
				device_strerror(rc));
	}
	rc = rte_eth_dev_get_mtu(p->ethdev, &p->mtu);
	if (rc != 0)
		p->mtu = p->cfg.mtu ? p->cfg.mtu : RTE_ETHER_MTU;
	return 0;
}

/*
 * The only limit is the size of the driver's buffers. memif allows a frame in several buffers, but
 * its driver does not clear a descriptor's chain flag when it reuses it (DPDK 22.11 eth_memif_tx),
 * so our frames must fit in one buffer.
 */
static int
use_any_mtu(struct link_port *p, struct error *err)
{
	unsigned int limit = UINT16_MAX;

	p->mtu = p->cfg.mtu ? p->cfg.mtu : p->peer != NULL ? BACK_TO_BACK_MTU : RTE_ETHER_MTU;
	if (device_is_memif(p))
		limit = device_number(p->args, "bsize", BUFFER_DEFAULT) - MEMIF_FRAME_HEADER;
	if (p->mtu > limit)
		return port_error(p, err, EINVAL,
			"mtu: got %u, %s allows up to %u with its bsize argument of now", p->mtu,
			p->driver, limit);
	return 0;
}

static int
set_mtu(struct link_port *p, const struct rte_eth_dev_info *info, struct error *err)
{
	switch (p->driver_rule->mtu) {
	case MTU_INTERFACE:
		return use_interface_mtu(p, err);
	case MTU_DEVICE:
		return use_device_mtu(p, info, err);
	case MTU_ANY:
	default:
		return use_any_mtu(p, err);
	}
}

int
port_configure(const struct link *l, struct link_port *p, struct error *err)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;
	int rc;

	rc = rte_eth_dev_info_get(p->ethdev, &info);
	if (rc != 0)
		return port_error(p, err, -rc, "device gives no information: %s",
			rte_strerror(-rc));
	snprintf(p->driver, sizeof(p->driver), "%s", info.driver_name);
	p->driver_rule = find_rule(p->driver);
	p->numa_node = rte_eth_dev_socket_id(p->ethdev);
	p->physical =
		info.device != NULL && strcmp(rte_bus_name(rte_dev_bus(info.device)), "pci") == 0;

	/*
	 * RoCEv2 flows differ in their addresses and in the UDP source port, which the peer
	 * chooses. Devices cannot hash native InfiniBand frames: all would fall into one queue.
	 */
	if (!p->cfg.ib)
		p->rss_hf = (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
	choose_queues(l, p, &info);
	if (p->nrx <= 1)
		p->rss_hf = 0;
	if (p->rss_hf != 0)
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf.rx_adv_conf.rss_conf.rss_hf = p->rss_hf;
	/*
	 * FAST_FREE requires that all mbufs of a queue come from one pool and have one reference;
	 * in a back-to-back pair they come from both ports
	 */
	if (p->peer == NULL)
		conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE & info.tx_offload_capa;
	/*
	 * drivers choose their receive function by this MTU; set_mtu() reports an MTU that is too
	 * large
	 */
	if (p->driver_rule->mtu == MTU_DEVICE && p->cfg.mtu <= largest_mtu(&info))
		conf.rxmode.mtu = p->cfg.mtu;
	rc = rte_eth_dev_configure(p->ethdev, p->nrx, p->ntx, &conf);
	if (rc != 0)
		return port_error(p, err, -rc,
			"%s refuses %u receive and %u transmit queues, MTU %u: %s", p->driver,
			p->nrx, p->ntx, conf.rxmode.mtu, device_strerror(rc));
	p->opened = true;
	rc = set_mtu(p, &info, err);
	if (rc != 0)
		return rc;

	p->tx_desc = p->cfg.tx_desc ? p->cfg.tx_desc : QUEUE_DESC;
	if (p->peer == NULL) { /* the rings of a pair exist already */
		p->rx_desc = p->cfg.rx_desc ? p->cfg.rx_desc : QUEUE_DESC;
		rte_eth_dev_adjust_nb_rx_tx_desc(p->ethdev, &p->rx_desc, &p->tx_desc);
	}
	return 0;
}
