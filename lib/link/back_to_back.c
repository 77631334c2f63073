/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Two ports joined inside the process by net_ring: TX queue i of one port and RX queue i of the
 * other are the same ring. This needs no NIC, no hugepages and no privileges. An mbuf passes from
 * one port to the other with its packet, so both use one pool.
 */

#include <rte_eth_ring.h>

#include "link/private.h"

/* Both ends name each other; one end alone is enough when the other names no device. */
static int
back_to_back_pair(struct link *l, struct link_port *a, struct error *err)
{
	struct link_port *b;
	const char *back;

	LINK_FOREACH_PORT(b, l)
		if (strcmp(b->cfg.name, a->cfg.back_to_back) == 0)
			break;
	if (b == l->port + l->num_ports || b == a)
		return port_error(a, err, EINVAL,
			"back_to_back: got \"%s\", which is no other port", a->cfg.back_to_back);
	back = b->cfg.back_to_back;
	if (a->cfg.device[0] != '\0' || b->cfg.device[0] != '\0')
		return port_error(a, err, EINVAL,
			"back_to_back and device exclude each other (%s and %s)", a->cfg.name,
			b->cfg.name);
	if ((back[0] != '\0' && strcmp(back, a->cfg.name) != 0) || b->peer != NULL)
		return port_error(a, err, EINVAL,
			"back_to_back: %s is joined to another port already", b->cfg.name);
	a->peer = b;
	b->peer = a;
	return 0;
}

static int
back_to_back_make_rings(struct link_port *p, unsigned int queues, struct error *err)
{
	char name[RTE_RING_NAMESIZE];
	unsigned int i;

	p->rx_desc = p->cfg.rx_desc ? p->cfg.rx_desc : BACK_TO_BACK_DESC;
	for (i = 0; i < queues; i++) {
		snprintf(name, sizeof(name), "b2b.%u.%.12s", i, p->cfg.name);
		/* one worker sends into it, one receives from it */
		p->ring[i] = mbuf_ring_create(name, rte_align32pow2(p->rx_desc), SOCKET_ID_ANY);
		if (p->ring[i] == NULL)
			return port_error(p, err, rte_errno, "no ring of %u entries: %s",
				p->rx_desc, rte_strerror(rte_errno));
	}
	return 0;
}

static int
back_to_back_make_ethdev(struct link_port *p, unsigned int queues, struct error *err)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	int rc;

	/* net_ring puts its own prefix in front: "net_ring_<name>" */
	snprintf(name, sizeof(name), "%s", p->cfg.name);
	rc = rte_eth_from_rings(name, p->ring, queues, p->peer->ring, queues, SOCKET_ID_ANY);
	if (rc < 0)
		return port_error(p, err, rte_errno,
			"no in-process port: %s (is the net_ring driver installed? see EAL's -d)",
			rte_strerror(rte_errno));
	p->ethdev = rc;
	p->hotplugged = true;
	return 0;
}

int
back_to_back_open(struct link *l, struct error *err)
{
	unsigned int queues = RTE_MIN(l->cfg.workers, (unsigned int)BACK_TO_BACK_QUEUES);
	struct link_port *p;
	int rc;

	LINK_FOREACH_PORT(p, l) {
		if (p->cfg.back_to_back[0] == '\0' || p->peer != NULL)
			continue;
		rc = back_to_back_pair(l, p, err);
		if (rc == 0)
			rc = back_to_back_make_rings(p, queues, err);
		if (rc == 0)
			rc = back_to_back_make_rings(p->peer, queues, err);
		if (rc == 0)
			rc = back_to_back_make_ethdev(p, queues, err);
		if (rc == 0)
			rc = back_to_back_make_ethdev(p->peer, queues, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* After the ethdevs are gone. */
void
back_to_back_close(struct link_port *p)
{
	unsigned int i;

	for (i = 0; i < BACK_TO_BACK_QUEUES; i++)
		mbuf_ring_free(p->ring[i]);
}
