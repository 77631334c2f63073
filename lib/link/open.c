/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Open and close ports: check the configuration, set up pools and queues, start and stop devices.
 */

#include "base/pci_address.h"
#include "link/device.h"
#include "link/device_cause.h"
#include "link/interface.h"
#include "link/lids.h"
#include "link/private.h"

RTE_LOG_REGISTER(link_logtype, polca.link, INFO);

/*
 * port_mtu_to_pmtu() finds a path MTU: an SMP has 256 bytes of payload and cannot be segmented
 */
#define IB_MTU_MIN 336

static int
open_setup_queues(struct link_port *p, struct error *err)
{
	uint16_t q;
	int rc;

	for (q = 0; q < p->nrx; q++) {
		rc = rte_eth_rx_queue_setup(p->ethdev, q, p->rx_desc, p->memory_node, NULL,
			p->pool->mp);
		if (rc != 0)
			return port_error(p, err, -rc, "receive queue %u of %u descriptors: %s", q,
				p->rx_desc, rte_strerror(-rc));
	}
	for (q = 0; q < p->ntx; q++) {
		rc = rte_eth_tx_queue_setup(p->ethdev, q, p->tx_desc, p->memory_node, NULL);
		if (rc != 0)
			return port_error(p, err, -rc, "transmit queue %u of %u descriptors: %s", q,
				p->tx_desc, rte_strerror(-rc));
	}
	return 0;
}

/*
 * The configured MAC, the device's, or one of our own where the device has none (net_ring). The
 * GUID follows from it, unless it is configured.
 */
static void
choose_mac(struct link_port *p)
{
	struct rte_ether_addr mac = { 0 };
	bool have = rte_eth_macaddr_get(p->ethdev, &mac) == 0;
	bool promiscuous = p->cfg.promiscuous;

	if (mac_word(p->cfg.mac) != 0) {
		memcpy(mac.addr_bytes, p->cfg.mac, MAC_LEN);
		/* a device that cannot change its MAC receives in promiscuous mode; rx.c filters */
		if (rte_eth_dev_default_mac_addr_set(p->ethdev, &mac) != 0)
			promiscuous = true;
	} else if (p->peer != NULL || !have || rte_is_zero_ether_addr(&mac)) {
		mac = (struct rte_ether_addr){ { 0x02, 0x50, 0x4F, 0x4C, 0, p->index } };
		rte_eth_dev_default_mac_addr_set(p->ethdev, &mac);
	}
	p->mac_word = mac_word(mac.addr_bytes);
	if (p->cfg.guid == 0)
		p->cfg.guid = port_eui64(mac.addr_bytes);
	if (promiscuous && rte_eth_promiscuous_enable(p->ethdev) != 0)
		PORT_LOG(p, WARNING, "%s has no promiscuous mode", p->driver);
	if (port_first_address(p, false) != NULL)
		admit_multicast(p);
}

static int
open_start_port(struct link *l, struct link_port *p, struct error *err)
{
	char name[RTE_RING_NAMESIZE];
	const union gid *ipv4;
	unsigned int w;
	int rc;

	rc = open_setup_queues(p, err);
	if (rc != 0)
		return rc;
	/*
	 * A worker w without TX queue passes its frames by a ring to worker w % ntx. So does a
	 * worker whose queue the far end has not enabled, to worker 0, whose queue is always
	 * enabled.
	 */
	for (w = p->driver_rule->queues_may_sleep ? 1 : p->ntx; w < l->cfg.workers; w++) {
		snprintf(name, sizeof(name), "tx.%u.%.12s", w, p->cfg.name);
		p->tx_ring[w] = mbuf_ring_create(name, TX_HANDOFF_RING, p->memory_node);
		if (p->tx_ring[w] == NULL)
			return port_error(p, err, rte_errno, "no ring for worker %u: %s", w,
				rte_strerror(rte_errno));
	}
	if (device_is_client(p)) {
		rc = memif_client_start(l, p, err);
		if (rc != 0)
			return rc;
	} else {
		rc = rte_eth_dev_start(p->ethdev);
	}
	if (rc != 0)
		return port_error(p, err, rc == -1 ? ENODEV : -rc, "%s does not start: %s",
			p->driver, device_strerror(rc));
	p->started = true;
	p->reconnects = device_reconnects(p);
	ring_full_find(l, p);
	choose_mac(p);
	ipv4 = port_first_address(p, true);
	if (!p->cfg.ib && p->cfg.vlan == PATH_NO_VLAN && ipv4 != NULL)
		rx_template_make(&p->rx_template, (const uint8_t *)&p->mac_word, ipv4->raw + 12);
	rc = p->cfg.ib ? lids_create(p, err) : 0;
	if (rc != 0)
		return rc;
	return state_init(l, p, err);
}

/* Native InfiniBand excludes what belongs to RoCE. */
static int
open_check_ib(const struct link_port *p, struct error *err)
{
	const struct link_port_config *c = &p->cfg;

	if (c->num_addr > 0)
		return port_error(p, err, EINVAL,
			"addresses: got %u, but a native InfiniBand port has none: LIDs and GIDs "
			"are subnet management's",
			c->num_addr);
	if (c->rocev1)
		return port_error(p, err, EINVAL,
			"rocev1 and native InfiniBand exclude each other");
	if (c->ethertype < ETHERTYPE_MIN || c->ethertype == ETHERTYPE_VLAN)
		return port_error(p, err, EINVAL,
			"ethertype: got 0x%04x, allowed 0x%04x..0xffff but 0x%04x", c->ethertype,
			ETHERTYPE_MIN, ETHERTYPE_VLAN);
	if (c->num_lids > LINK_LIDS_MAX)
		return port_error(p, err, EINVAL, "LID routes: got %u, allowed up to %u",
			c->num_lids, LINK_LIDS_MAX);
	return 0;
}

static int
open_check_port(const struct link_port *p, struct error *err)
{
	if (p->cfg.num_addr > LINK_ADDRS_MAX)
		return port_error(p, err, EINVAL, "addresses: got %u, allowed up to %u",
			p->cfg.num_addr, LINK_ADDRS_MAX);
	return p->cfg.ib ? open_check_ib(p, err) : 0;
}

static int
check_config(const struct link_config *c, struct error *err)
{
	if (c->num_ports == 0 || c->num_ports > LINK_PORTS_MAX)
		return error_set(err, EINVAL, "ports: got %u, allowed 1..%u", c->num_ports,
			LINK_PORTS_MAX);
	if (c->workers == 0 || c->workers > LINK_WORKERS_MAX)
		return error_set(err, EINVAL, "workers: got %u, allowed 1..%u", c->workers,
			LINK_WORKERS_MAX);
	return 0;
}

/* Some drivers, such as net_af_xdp, fail only when they start: then find the cause. */
static int
open_start_or_explain(struct link *l, struct link_port *p, struct error *err)
{
	int rc, found = 0;

	if (p->driver_rule->xdp)
		xdp_log_begin();
	rc = open_start_port(l, p, err);
	if (rc != 0 && rc != -EINTR && p->hotplugged && !pci_address_parse(p->cfg.device, NULL))
		found = device_explain(p->cfg.name, p->cfg.device, rc, err);
	return found != 0 ? found : rc;
}

static int
open_ports(struct link *l, struct error *err)
{
	char steering[256];
	struct link_port *p;
	int rc = 0;

	LINK_FOREACH_PORT(p, l)
		if (rc == 0)
			rc = open_check_port(p, err);
	if (rc == 0)
		rc = back_to_back_open(l, err);
	LINK_FOREACH_PORT(p, l) {
		if (rc == 0 && p->peer == NULL)
			rc = device_attach(p, err);
		if (rc == 0)
			interface_note(p);
		if (rc == 0)
			rc = port_configure(l, p, err);
		if (rc == 0 && p->cfg.ib && p->mtu < IB_MTU_MIN)
			rc = port_error(p, err, EINVAL,
				"mtu: got %u, native InfiniBand needs %u or more: a path MTU of "
				"256 and its headers",
				p->mtu, IB_MTU_MIN);
		if (rc == 0)
			pool_choose(l, p);
	}
	if (rc == 0)
		rc = pool_create_all(l, err);
	if (rc != 0)
		return rc;
	LINK_FOREACH_PORT(p, l) {
		p->memory_node = p->pool->numa_node;
		if (device_is_memif(p) && !l->guarded) {
			memif_guard(l->cfg.rcu);
			l->guarded = true;
		}
		rc = open_start_or_explain(l, p, err);
		if (rc != 0)
			return rc;
		interface_tell(p);
		link_warn_of_kernel(l, p->index);
		if (steering_words(p, l->cfg.workers, steering, sizeof(steering)))
			LINK_LOG(NOTICE, "%s", steering);
	}
	return 0;
}

struct link *
link_open(const struct link_config *config, struct error *err)
{
	struct link *l;
	struct link_port *p;

	if (check_config(config, err) != 0)
		return NULL;
	l = rte_zmalloc("link", sizeof(*l), 0);
	if (l == NULL)
		goto no_memory;
	l->cfg = *config;
	l->port = rte_zmalloc("link_ports", config->num_ports * sizeof(*l->port), 0);
	l->neigh = neigh_create(l->cfg.rcu);
	if (l->port == NULL || l->neigh == NULL)
		goto no_memory;
	l->num_ports = config->num_ports;
	LINK_FOREACH_PORT(p, l) {
		p->index = (uint16_t)(p - l->port);
		p->cfg = config->port[p->index];
		if (p->cfg.ethertype == 0)
			p->cfg.ethertype = ETHERTYPE_IB;
		p->ethdev = RTE_MAX_ETHPORTS;
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
	unsigned int w;

	/*
	 * memif is stopped when it is closed: a peer could connect in between, and use freed memory
	 */
	if (!device_is_memif(p))
		device_stop(p);
	for (w = 0; w < l->cfg.workers; w++)
		mbuf_ring_free(p->tx_ring[w]);
}

void
link_close(struct link *l)
{
	struct link_port *p;

	if (l == NULL)
		return;
	/* stop all ports before closing any: a back-to-back pair shares its rings */
	LINK_FOREACH_PORT(p, l)
		stop_port(l, p);
	LINK_FOREACH_PORT(p, l)
		device_detach(p);
	if (l->guarded)
		memif_guard(NULL);
	LINK_FOREACH_PORT(p, l) {
		back_to_back_close(p);
		rte_free(p->attr_copies);
		rte_free(p->lids);
	}
	pool_free_all(l);
	neigh_destroy(l->neigh);
	rte_free(l->port);
	rte_free(l);
}
