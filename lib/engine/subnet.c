/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The subnet management agent of the native IB ports, on worker 0.
 */

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "engine/subnet.h"

/*
 * Subnet management changed a port: worker 0 applies it at once, other workers at their next tick.
 */
static void
subnet_apply(void *worker, uint16_t port, const struct port_settings *s)
{
	struct worker *w = worker;

	link_port_set(w->link, port, s);
	worker_look_at_ports(w);
}

uint64_t
node_guid(const struct engine *e)
{
	uint64_t guid = e->config.sma.node_guid;

	return guid != 0 ? guid : port_eui64(link_port_attr(e->link, 0)->mac);
}

static void
subnet_fill_node(const struct engine *e, struct sma_config *c)
{
	const struct engine_sma_config *node = &e->config.sma;
	char host[SMA_NODE_DESC_LEN] = "";

	memcpy(c->node_desc, node->node_desc, sizeof(c->node_desc));
	if (c->node_desc[0] == '\0') {
		gethostname(host, sizeof(host) - 1);
		snprintf(c->node_desc, sizeof(c->node_desc), "polca %.58s", host);
	}
	c->node_guid = node_guid(e);
	c->system_image_guid =
		node->system_image_guid != 0 ? node->system_image_guid : c->node_guid;
	c->vendor_id = node->vendor_id;
	c->device_id = node->device_id;
	c->revision = node->revision;
	c->num_ports = (uint8_t)link_num_ports(e->link);
	c->resp_time = e->config.mad.resp_time;
	c->limits = node->limits;
}

/* The fixed attributes of a port, from its device and its configuration. */
static void
subnet_fill_port(const struct engine *e, unsigned int port, struct sma_port_config *c)
{
	const struct port_attr *attr = link_port_attr(e->link, port);
	const struct port_speed *speed = port_speed(e->link, port);

	*c = e->config.sma.port[port];
	c->port = (uint16_t)port;
	c->guid = attr->guid;
	c->mtu = attr->active_mtu;
	c->width = speed->width;
	c->speed = speed->speed;
	c->speed_ext = speed->speed_ext;
}

int
subnet_create(struct worker *w, struct error *err)
{
	struct sma_port_config ports[LINK_PORTS_MAX];
	struct engine *e = w->engine;
	struct sma_config config = {
		.mad = w->mad,
		.wheel = w->wheel,
		.alloc = e->alloc,
		.rng = &rng_kernel,
		.hz = e->hz,
		.port = ports,
		.apply = subnet_apply,
		.event = events_put,
		.to_sm = sm_smp_put,
		.arg = w,
	};
	unsigned int i;

	for (i = 0; i < link_num_ports(e->link); i++)
		if (e->config.link.port[i].ib)
			subnet_fill_port(e, i, &ports[config.num_managed++]);
	if (config.num_managed == 0)
		return 0;
	if (sm_smps_create(w, err) != 0)
		return -ENOMEM;
	subnet_fill_node(e, &config);
	w->sma = sma_create(&config);
	return w->sma != NULL ? 0 : error_set(err, ENOMEM, "no memory for subnet management");
}

void
subnet_destroy(struct worker *w)
{
	if (w->sma != NULL)
		sma_destroy(w->sma);
	w->sma = NULL;
	sm_smps_destroy(w);
}

void
subnet_start(struct engine *e)
{
	struct worker *w = e->worker[0];

	if (w->sma != NULL)
		sma_start(w->sma, rte_get_tsc_cycles());
}

/* --- totals over all workers --- */

static void
add_violations(struct sma_totals *t, const struct worker *w, uint16_t port)
{
	struct port_violations sum = { 0 };

	port_violations_add(&sum, mad_worker_violations(w->mad, port));
	port_violations_add(&sum, rc_worker_violations(w->rc, port));
	t->pkey_violations += sum.pkey;
	t->qkey_violations += sum.qkey;
}

static void
subnet_port_tick(struct worker *w, uint16_t port, uint64_t now)
{
	const struct engine *e = w->engine;
	struct sma_totals t = { .overruns = relaxed(&e->drops[port].rx_missed) };
	unsigned int i;

	for (i = 0; i < w->workers; i++) {
		const uint64_t *verdict = e->worker[i]->counters[port]->verdict;

		t.link_errors += relaxed(&verdict[VERDICT_VCRC]) + relaxed(&verdict[VERDICT_GRH]);
		t.overruns += relaxed(&verdict[VERDICT_VL15_DROPPED]);
		add_violations(&t, e->worker[i], port);
	}
	sma_link(w->sma, port, link_port_carrier(e->link, port), now);
	if (link_port_heard_data(e->link, port))
		sma_data_heard(w->sma, port, now);
	sma_port_totals(w->sma, port, &t, now);
}

void
subnet_tick(struct worker *w, uint64_t now)
{
	unsigned int port;

	if (w->sma == NULL)
		return;
	for (port = 0; port < link_num_ports(w->engine->link); port++)
		if (w->engine->config.link.port[port].ib)
			subnet_port_tick(w, port, now);
	bad_keys_take(w, now);
}

void
subnet_watch(struct engine *e)
{
	struct rte_eth_stats stats;
	struct link_drops *drops;
	unsigned int port;

	for (port = 0; port < link_num_ports(e->link); port++) {
		if (rte_eth_stats_get(link_ethdev(e->link, port), &stats) != 0)
			continue;
		drops = &e->drops[port];
		stats.imissed += link_ring_full(e->link, port);
		__atomic_store_n(&drops->rx_missed, stats.imissed, __ATOMIC_RELAXED);
		__atomic_store_n(&drops->rx_errors, stats.ierrors, __ATOMIC_RELAXED);
		__atomic_store_n(&drops->rx_nombuf, stats.rx_nombuf, __ATOMIC_RELAXED);
	}
}
