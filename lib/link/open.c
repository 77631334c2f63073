/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Ports from configuration to traffic: queues, pools, offloads, start; and back. */

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "link/neigh.h"
#include "link/private.h"

RTE_LOG_REGISTER(link_logtype, polca.link, INFO);

#define POOL_CACHE   256
/* what one worker may hold: a mempool cache and a half, bursts on the way in and out, hand-off */
#define WORKER_MBUFS 640

/*
 * Virtual devices whose queues are filled by somebody else's choice (kernel fan-out, the guest, the peer): each queue
 * that exists has to be served, or what falls into it is lost. The rest of the drivers distribute by RSS, or have one queue.
 */
enum queue_rule {
	QUEUES_RSS, /* as many as workers if the device can hash, else one */
	QUEUES_ALL, /* as the device was made, RX and TX in pairs */
	QUEUES_PER_WORKER, /* as many as workers, RX and TX in pairs */
};

static const struct {
	const char *driver;
	enum queue_rule rule;
} queue_rules[] = {
	{ "net_ring", QUEUES_ALL },
	{ "net_af_packet", QUEUES_ALL },
	{ "net_af_xdp", QUEUES_ALL },
	{ "net_vhost", QUEUES_ALL },
	{ "net_memif", QUEUES_PER_WORKER },
	{ "net_tap", QUEUES_PER_WORKER },
};

static enum queue_rule
queue_rule(const char *driver)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(queue_rules); i++)
		if (strcmp(driver, queue_rules[i].driver) == 0)
			return queue_rules[i].rule;
	return QUEUES_RSS;
}

static void
choose_queues(const struct link *l, struct link_port *p, const struct rte_eth_dev_info *info,
	uint64_t rss_hf)
{
	unsigned int pairs = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	unsigned int workers = l->cfg.workers;

	switch (queue_rule(p->driver)) {
	case QUEUES_ALL:
		p->nrx = pairs;
		p->ntx = pairs;
		break;
	case QUEUES_PER_WORKER:
		p->nrx = RTE_MIN(pairs, workers);
		p->ntx = p->nrx;
		break;
	case QUEUES_RSS:
		p->nrx = rss_hf != 0 ? RTE_MIN(info->max_rx_queues, workers) : 1u;
		p->ntx = RTE_MIN(info->max_tx_queues, workers);
		break;
	}
}

static int
configure(struct link *l, struct link_port *p, struct error *err)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;
	uint16_t mtu = 0;
	int rc;

	rc = rte_eth_dev_info_get(p->ethdev, &info);
	if (rc != 0)
		return error_set(err, -rc, "%s: device gives no information: %s", p->cfg.name,
			rte_strerror(-rc));
	snprintf(p->driver, sizeof(p->driver), "%s", info.driver_name);
	p->numa_node = rte_eth_dev_socket_id(p->ethdev);
	conf.rx_adv_conf.rss_conf.rss_hf =
		(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
	choose_queues(l, p, &info, conf.rx_adv_conf.rss_conf.rss_hf);
	if (p->nrx > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0)
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	else
		conf.rx_adv_conf.rss_conf.rss_hf = 0;
	/* all frames of a port's queues come from one pool and have one reference */
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE & info.tx_offload_capa;
	if (p->back_to_back)
		conf.txmode.offloads = 0;

	/*
	 * The MTU itself is set below. Told here, a driver with small limits would refuse without a reason; those that
	 * know of larger frames only through the configuration get it.
	 */
	if (p->cfg.mtu != 0 && !p->back_to_back && p->cfg.mtu <= info.max_mtu)
		conf.rxmode.mtu = p->cfg.mtu;
	rc = rte_eth_dev_configure(p->ethdev, p->nrx, p->ntx, &conf);
	if (rc != 0)
		return error_set(err, -rc, "%s: %s refuses %u receive and %u transmit queues: %s",
			p->cfg.name, p->driver, p->nrx, p->ntx, rte_strerror(-rc));
	p->opened = true;

	if (p->cfg.mtu != 0 && !p->back_to_back) {
		rc = rte_eth_dev_set_mtu(p->ethdev, p->cfg.mtu);
		if (rc != 0 && rc != -ENOTSUP)
			return error_set(err, -rc,
				"%s: mtu: got %u, %s allows %u..%u (%s); set the interface's own MTU first",
				p->cfg.name, p->cfg.mtu, p->driver, info.min_mtu, info.max_mtu,
				rte_strerror(-rc));
	}
	rte_eth_dev_get_mtu(p->ethdev, &mtu);
	p->mtu = p->cfg.mtu ? p->cfg.mtu : p->back_to_back ? BACK_TO_BACK_MTU : mtu;

	p->tx_desc = p->cfg.tx_desc ? p->cfg.tx_desc : QUEUE_DESC;
	if (!p->back_to_back) { /* a pair's rings stand already */
		p->rx_desc = p->cfg.rx_desc ? p->cfg.rx_desc : QUEUE_DESC;
		rte_eth_dev_adjust_nb_rx_tx_desc(p->ethdev, &p->rx_desc, &p->tx_desc);
	}
	return 0;
}

/*
 * One pool per NUMA node and frame size, shared by its ports; AF_XDP registers a port's pool with the kernel, and shares
 * it with nobody.
 */
static void
choose_pool(struct link *l, struct link_port *p)
{
	bool own = strcmp(p->driver, "net_af_xdp") == 0;
	uint32_t data = p->mtu + ETH_LEN + 2 * VLAN_LEN + RTE_ETHER_CRC_LEN;
	struct link_pool *pool;
	uint32_t mbufs;
	unsigned int i;

	data = RTE_MAX(RTE_ALIGN(data, RTE_CACHE_LINE_SIZE), 2048u);
	if (data > UINT16_MAX - RTE_PKTMBUF_HEADROOM)
		data = UINT16_MAX - RTE_PKTMBUF_HEADROOM;
	/* what can stand in queues, and what each worker holds: bursts, caches, hand-off */
	mbufs = p->nrx * p->rx_desc + l->cfg.workers * WORKER_MBUFS;
	if (!p->back_to_back) /* there, one's transmit queue is the other's receive queue */
		mbufs += p->ntx * p->tx_desc;
	if (own) /* fill ring and completion ring besides, each as large as the pool's share */
		mbufs += 4096;
	if (p->cfg.mbufs != 0)
		mbufs = p->cfg.mbufs;
	for (i = own ? l->num_pools : 0; i < l->num_pools; i++)
		if (l->pool[i].numa_node == p->numa_node && l->pool[i].data_room == data)
			break;
	pool = &l->pool[i];
	if (i == l->num_pools) {
		pool->numa_node = p->numa_node;
		pool->data_room = data;
		l->num_pools++;
	}
	pool->mbufs += mbufs;
	p->pool = pool;
}

static struct rte_mempool *
make_pool(const struct link *l, const struct link_pool *pool, int numa_node)
{
	static unsigned int serial;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "polca_mbuf_%u", serial++);
	return rte_pktmbuf_pool_create(name, pool->mbufs,
		RTE_MIN(pool->mbufs / 2, (uint32_t)POOL_CACHE),
		RTE_ALIGN(l->cfg.mbuf_priv, RTE_MBUF_PRIV_ALIGN),
		pool->data_room + RTE_PKTMBUF_HEADROOM, numa_node);
}

static int
make_pools(struct link *l, struct error *err)
{
	struct link_pool *pool;
	unsigned int i;

	for (i = 0; i < l->num_pools; i++) {
		pool = &l->pool[i];
		pool->mp = make_pool(l, pool, pool->numa_node);
		if (pool->mp == NULL && pool->numa_node != SOCKET_ID_ANY)
			pool->mp = make_pool(l, pool, SOCKET_ID_ANY);
		if (pool->mp == NULL)
			return error_set(err, rte_errno,
				"no memory for %u packet buffers of %u bytes (%s): more memory (EAL -m or "
				"hugepages), or fewer mbufs, descriptors or workers",
				pool->mbufs, pool->data_room, rte_strerror(rte_errno));
	}
	return 0;
}

static int
setup_queues(struct link_port *p, struct error *err)
{
	uint16_t q;
	int rc;

	for (q = 0; q < p->nrx; q++) {
		rc = rte_eth_rx_queue_setup(p->ethdev, q, p->rx_desc, p->numa_node, NULL, p->pool->mp);
		if (rc != 0)
			return error_set(err, -rc, "%s: receive queue %u of %u descriptors: %s",
				p->cfg.name, q, p->rx_desc, rte_strerror(-rc));
	}
	for (q = 0; q < p->ntx; q++) {
		rc = rte_eth_tx_queue_setup(p->ethdev, q, p->tx_desc, p->numa_node, NULL);
		if (rc != 0)
			return error_set(err, -rc, "%s: transmit queue %u of %u descriptors: %s",
				p->cfg.name, q, p->tx_desc, rte_strerror(-rc));
	}
	return 0;
}

/* The configured MAC, the device's, or one of our own where the device has none (net_ring). */
static void
choose_mac(struct link_port *p)
{
	static const uint8_t none[MAC_LEN];
	struct rte_ether_addr mac = { 0 };
	bool have = rte_eth_macaddr_get(p->ethdev, &mac) == 0;
	bool promiscuous = p->cfg.promiscuous;

	if (memcmp(p->cfg.mac, none, MAC_LEN) != 0) {
		memcpy(mac.addr_bytes, p->cfg.mac, MAC_LEN);
		/* a device that cannot be told hears us in promiscuous mode; we filter */
		if (rte_eth_dev_default_mac_addr_set(p->ethdev, &mac) != 0)
			promiscuous = true;
	} else if (p->back_to_back || !have || rte_is_zero_ether_addr(&mac)) {
		mac = (struct rte_ether_addr){ { 0x02, 0x50, 0x4F, 0x4C, p->index >> 8, p->index } };
		rte_eth_dev_default_mac_addr_set(p->ethdev, &mac);
	}
	memcpy(p->mac, mac.addr_bytes, MAC_LEN);
	p->mac_word = mac_word(p->mac);
	if (promiscuous && rte_eth_promiscuous_enable(p->ethdev) != 0)
		LINK_LOG(WARNING, "%s: %s has no promiscuous mode", p->cfg.name, p->driver);
	/* neighbour solicitations come to a group address */
	if (p->num_ipv6 > 0 && rte_eth_allmulticast_enable(p->ethdev) != 0 &&
		rte_eth_promiscuous_enable(p->ethdev) != 0)
		LINK_LOG(INFO, "%s: %s cannot be told to receive multicast", p->cfg.name, p->driver);
}

static int
start(struct link *l, struct link_port *p, struct error *err)
{
	char name[RTE_RING_NAMESIZE];
	unsigned int w;
	int rc;

	rc = setup_queues(p, err);
	if (rc != 0)
		return rc;
	/* workers without a TX queue hand their frames to one that has: worker w to worker w % ntx */
	for (w = p->ntx; w < l->cfg.workers; w++) {
		snprintf(name, sizeof(name), "tx.%u.%.12s", w, p->cfg.name);
		p->tx_ring[w] = rte_ring_create(name, TX_HANDOFF_RING, p->numa_node,
			RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (p->tx_ring[w] == NULL)
			return error_set(err, rte_errno, "%s: no ring for worker %u: %s", p->cfg.name, w,
				rte_strerror(rte_errno));
	}
	rc = rte_eth_dev_start(p->ethdev);
	if (rc != 0)
		return error_set(err, -rc, "%s: %s does not start: %s", p->cfg.name, p->driver,
			rte_strerror(-rc));
	p->started = true;
	choose_mac(p);
	return state_init(p, err);
}

static bool
same_address(const struct sockaddr *sa, const union gid *gid)
{
	if (sa->sa_family == AF_INET && gid_is_ipv4(gid))
		return memcmp(&((const struct sockaddr_in *)sa)->sin_addr, gid->raw + 12, 4) == 0;
	if (sa->sa_family == AF_INET6 && !gid_is_ipv4(gid))
		return memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, gid->raw, 16) == 0;
	return false;
}

/* A kernel that holds one of our addresses too answers port 4791 with ICMP unreachable, and the peer believes it. */
static void
warn_of_kernel_addresses(const struct link_port *p)
{
	struct ifaddrs *list, *i;
	char text[GID_STRLEN];
	unsigned int a;

	if (p->back_to_back || getifaddrs(&list) != 0)
		return;
	for (i = list; i != NULL; i = i->ifa_next)
		for (a = 0; i->ifa_addr != NULL && a < p->cfg.num_addr; a++)
			if (same_address(i->ifa_addr, &p->cfg.addr[a].gid))
				LINK_LOG(WARNING,
					"%s: host kernel at %s holds %s too and answers port %u with ICMP "
					"unreachable: take the address off it (ip addr del)",
					p->cfg.name, i->ifa_name,
					gid_print(&p->cfg.addr[a].gid, text), ROCEV2_PORT);
	freeifaddrs(list);
}

static int
check_config(const struct link_config *c, struct error *err)
{
	unsigned int i;

	if (c->num_ports == 0 || c->num_ports > LINK_PORTS_MAX)
		return error_set(err, EINVAL, "ports: got %u, allowed 1..%u", c->num_ports,
			LINK_PORTS_MAX);
	if (c->workers == 0 || c->workers > LINK_WORKERS_MAX)
		return error_set(err, EINVAL, "workers: got %u, allowed 1..%u", c->workers,
			LINK_WORKERS_MAX);
	if (c->mbuf_priv < sizeof(struct packet))
		return error_set(err, EINVAL, "mbuf_priv: got %u, allowed %zu or more", c->mbuf_priv,
			sizeof(struct packet));
	for (i = 0; i < c->num_ports; i++)
		if (c->port[i].num_addr > LINK_ADDRS_MAX)
			return error_set(err, EINVAL, "%s: addresses: got %u, allowed up to %u",
				c->port[i].name, c->port[i].num_addr, LINK_ADDRS_MAX);
	return 0;
}

static void
take_addresses(struct link_port *p)
{
	const union gid *gid;
	unsigned int i;

	for (i = 0; i < p->cfg.num_addr; i++) {
		gid = &p->cfg.addr[i].gid;
		if (gid_is_ipv4(gid))
			memcpy(&p->ipv4[p->num_ipv4++], gid->raw + 12, 4);
		else
			p->ipv6[p->num_ipv6++] = *gid;
	}
}

static int
open_ports(struct link *l, struct error *err)
{
	struct link_port *p;
	unsigned int i;
	int rc;

	rc = back_to_back_open(l, err);
	for (i = 0; rc == 0 && i < l->num_ports; i++) {
		p = &l->port[i];
		if (!p->back_to_back)
			rc = device_attach(p, err);
		if (rc == 0)
			rc = configure(l, p, err);
		if (rc == 0)
			choose_pool(l, p);
	}
	if (rc == 0)
		rc = make_pools(l, err);
	for (i = 0; rc == 0 && i < l->num_ports; i++) {
		rc = start(l, &l->port[i], err);
		if (rc == 0)
			warn_of_kernel_addresses(&l->port[i]);
	}
	return rc;
}

struct link *
link_open(const struct link_config *config, struct error *err)
{
	struct link *l;
	unsigned int i;

	if (check_config(config, err) != 0)
		return NULL;
	l = rte_zmalloc("link", sizeof(*l), 0);
	if (l == NULL)
		goto no_memory;
	l->cfg = *config;
	l->port = rte_zmalloc("link_ports", config->num_ports * sizeof(*l->port), 0);
	l->neigh = neigh_create();
	if (l->port == NULL || l->neigh == NULL)
		goto no_memory;
	l->neigh_mac = l->neigh->mac;
	l->num_ports = config->num_ports;
	for (i = 0; i < l->num_ports; i++) {
		l->port[i].cfg = config->port[i];
		l->port[i].index = i;
		l->port[i].ethdev = RTE_MAX_ETHPORTS;
		take_addresses(&l->port[i]);
	}
	if (open_ports(l, err) != 0) {
		link_close(l);
		return NULL;
	}
	return l;

no_memory:
	error_set(err, ENOMEM, "no memory for the ports: more memory (EAL -m or hugepages)");
	link_close(l);
	return NULL;
}

static void
stop_port(struct link *l, struct link_port *p)
{
	struct rte_mbuf *m;
	unsigned int w;

	if (p->started)
		rte_eth_dev_stop(p->ethdev);
	p->started = false;
	for (w = 0; w < l->cfg.workers; w++) {
		if (p->tx_ring[w] == NULL)
			continue;
		while (rte_ring_sc_dequeue(p->tx_ring[w], (void **)&m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(p->tx_ring[w]);
	}
}

void
link_close(struct link *l)
{
	unsigned int i;

	if (l == NULL)
		return;
	/* all stop before any closes: the rings of a pair lead into each other */
	for (i = 0; i < l->num_ports; i++)
		stop_port(l, &l->port[i]);
	for (i = 0; i < l->num_ports; i++)
		device_detach(&l->port[i]);
	for (i = 0; i < l->num_ports; i++) {
		back_to_back_close(&l->port[i]);
		rte_free(l->port[i].attr_slots);
	}
	for (i = 0; i < l->num_pools; i++)
		rte_mempool_free(l->pool[i].mp);
	neigh_destroy(l->neigh);
	rte_free(l->port);
	rte_free(l);
}

unsigned int
link_num_ports(const struct link *l)
{
	return l->num_ports;
}

uint16_t
link_ethdev(const struct link *l, unsigned int port)
{
	return l->port[port].ethdev;
}
