/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Performance management: the agent on worker 0, and the mapping of our counters to its (pma.md 3).
 */

#include <errno.h>
#include <string.h>

#include <rte_ether.h>

#include "engine/pma_agent.h"
#include "engine/subnet.h"
#include "engine/verbs_mad.h"
#include "wire/path.h"
#include "wire/wire.h"

#define WIDTH_4X 2 /* PortInfo's code */
#define UNIT     4 /* PortXmitData and PortRcvData count units of 4 octets */

/* Bytes per frame that do not count: the Ethernet header, and a native IB packet's VCRC. */
static uint64_t
pma_agent_overhead(const struct port_attr *port)
{
	return RTE_ETHER_HDR_LEN + (port->vlan != PATH_NO_VLAN ? RTE_VLAN_HLEN : 0) +
		(port->ib ? VCRC_LEN : 0);
}

static uint64_t
pma_agent_data_words(const struct port_attr *port, uint64_t bytes, uint64_t pad, uint64_t packets)
{
	uint64_t less = pad + packets * pma_agent_overhead(port);

	return bytes > less ? (bytes - less) / UNIT : 0;
}

/* PortRcvErrors: packets that were damaged or malformed, or that found no buffer. */
static uint64_t
receive_errors(const struct link_counters *c, uint64_t missed)
{
	static const enum verdict errors[] = { VERDICT_RUNT, VERDICT_IP_HEADER, VERDICT_IP_CHECKSUM,
		VERDICT_UDP_LENGTH, VERDICT_LENGTH, VERDICT_GRH, VERDICT_ICRC, VERDICT_VCRC,
		VERDICT_NO_MBUF, VERDICT_HANDOFF_FULL };
	uint64_t sum = missed;
	unsigned int i;

	for (i = 0; i < RTE_DIM(errors); i++)
		sum += c->verdict[errors[i]];
	return sum;
}

static void
pma_agent_fill(const struct engine *e, uint16_t port, struct pma_totals *t)
{
	const struct sma *s = e->worker[0]->sma;
	const struct sma_counters *sma = s != NULL ? sma_counters(s, port) : NULL;
	const struct port_attr *attr = link_port_attr(e->link, port);
	uint64_t missed = relaxed(&e->drops[port].rx_missed);
	struct link_counters c;

	engine_port_counters(e, port, -1, &c);
	t->value[PMA_RCV_ERRORS] = receive_errors(&c, missed);
	if (sma != NULL) {
		t->value[PMA_LOCAL_INTEGRITY] = sma->link_integrity_errors;
		t->value[PMA_EXCESSIVE_OVERRUN] = sma->buffer_overrun_errors;
	}
	t->value[PMA_XMIT_DISCARDS] = c.tx_full + c.tx_unresolved + c.tx_port_state;
	t->value[PMA_VL15_DROPPED] = c.verdict[VERDICT_VL15_DROPPED];
	t->value[PMA_QP1_DROPPED] =
		c.verdict[VERDICT_MAD_REFUSED] + c.verdict[VERDICT_RATE_LIMITED];
	t->value[PMA_XMIT_DATA] = pma_agent_data_words(attr, c.tx_bytes, c.tx_pad, c.tx_packets);
	t->value[PMA_RCV_DATA] = pma_agent_data_words(attr, c.rx_bytes, c.rx_pad, c.rx_packets);
	t->value[PMA_XMIT_PKTS] = t->value[PMA_UNICAST_XMIT] = c.tx_packets;
	t->value[PMA_RCV_PKTS] = c.rx_packets;
	t->value[PMA_MULTICAST_RCV] = c.verdict[VERDICT_MULTICAST];
	t->value[PMA_UNICAST_RCV] = c.rx_packets - c.verdict[VERDICT_MULTICAST];
	t->value[PMA_XMIT_WAIT] = c.tx_wait / PMA_TICK_NS;
}

static void
pma_agent_totals(void *worker, uint16_t port, struct pma_totals *t)
{
	const struct worker *w = worker;

	pma_agent_fill(w->engine, port, t);
}

void
engine_pma_totals(const struct engine *e, unsigned int port, struct pma_totals *t)
{
	memset(t, 0, sizeof(*t));
	if (port >= link_num_ports(e->link))
		return;
	pma_agent_fill(e, (uint16_t)port, t);
	t->value[PMA_LINK_DOWNED] = pma_link_downed(e->worker[0]->pma, (uint16_t)port);
}

static uint32_t
lane_mbps(const struct port_speed *speed)
{
	return speed->width == WIDTH_4X ? speed->mbps / 4 : speed->mbps;
}

int
pma_agent_create(struct worker *w, struct error *err)
{
	const struct engine *e = w->engine;
	struct pma_config config = {
		.mad = w->mad,
		.wheel = w->wheel,
		.alloc = e->alloc,
		.hz = e->hz,
		.num_ports = link_num_ports(e->link),
		.resp_time = e->config.mad.resp_time,
		.totals = pma_agent_totals,
		.arg = w,
	};
	unsigned int i;

	for (i = 0; i < config.num_ports; i++)
		config.tick[i] = pma_tick(lane_mbps(port_speed(e->link, i)));
	w->pma = pma_create(&config);
	return w->pma != NULL ? 0 : error_set(err, ENOMEM, "no memory for performance management");
}

void
pma_agent_destroy(struct worker *w)
{
	pma_destroy(w->pma);
	w->pma = NULL;
}

void
pma_agent_tick(struct worker *w)
{
	unsigned int i;

	for (i = 0; w->pma != NULL && i < link_num_ports(w->engine->link); i++)
		pma_link(w->pma, (uint16_t)i, link_port_carrier(w->engine->link, i));
}
