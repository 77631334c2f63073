/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * VL15 receive buffers: a ring of packets for each native IB port.
 */

#include <errno.h>

#include "engine/vl15.h"

#define VL15_BUDGET 32 /* SMPs served in a turn */

struct vl15_port {
	struct packet **pkt; /* NULL: the port has no VL15 */
	uint32_t head; /* next packet to serve */
	uint32_t num;
};

struct vl15 {
	uint32_t size; /* packets that a buffer holds */
	uint32_t waiting; /* packets in all buffers */
	unsigned int num_ports;
	unsigned int turn; /* the next port to serve */
	struct vl15_port port[LINK_PORTS_MAX];
};

int
vl15_create(struct worker *w, struct error *err)
{
	const struct engine_config *c = &w->engine->config;
	struct vl15 *v = mem_zalloc(w->engine->alloc, sizeof(*v), 0);
	unsigned int i;

	w->vl15 = v;
	if (v == NULL)
		return error_set(err, ENOMEM, "no memory for VL15 buffers");
	v->size = c->sma.vl15_buffer;
	v->num_ports = link_num_ports(w->engine->link);
	if (v->size < 1 || v->size > ENGINE_VL15_MAX)
		return error_set(err, EINVAL, "sma.vl15_buffer: got %u, expected 1 to %d", v->size,
			ENGINE_VL15_MAX);
	for (i = 0; i < v->num_ports; i++) {
		if (!c->link.port[i].ib)
			continue;
		v->port[i].pkt = mem_zalloc(w->engine->alloc, v->size * sizeof(struct packet *), 0);
		if (v->port[i].pkt == NULL)
			return error_set(err, ENOMEM, "no memory for a VL15 buffer of %u SMPs",
				v->size);
	}
	return 0;
}

static struct packet *
vl15_take(struct vl15 *v, struct vl15_port *p)
{
	struct packet *pkt = p->pkt[p->head];

	p->head = (p->head + 1) % v->size;
	p->num--;
	v->waiting--;
	return pkt;
}

void
vl15_destroy(struct worker *w)
{
	struct vl15 *v = w->vl15;
	struct packet *pkt;
	unsigned int i;

	if (v == NULL)
		return;
	for (i = 0; i < v->num_ports; i++) {
		while (v->port[i].num > 0) {
			pkt = vl15_take(v, &v->port[i]);
			link_free(&pkt, 1);
		}
		mem_free(w->engine->alloc, v->port[i].pkt);
	}
	mem_free(w->engine->alloc, v);
	w->vl15 = NULL;
}

bool
vl15_put(struct worker *w, struct packet *pkt)
{
	struct vl15 *v = w->vl15;
	struct vl15_port *p = &v->port[pkt->port];

	if (p->pkt == NULL || p->num == v->size)
		return false;
	p->pkt[(p->head + p->num++) % v->size] = pkt;
	v->waiting++;
	return true;
}

static void
vl15_serve(struct worker *w, struct packet *pkt, uint64_t now)
{
	worker_count(w, pkt, mad_receive_smp(w->mad, pkt, now));
	link_free(&pkt, 1);
}

/* Take the SMPs that other workers received. */
static void
vl15_take_handed_over(struct worker *w)
{
	struct packet *pkts[LINK_BURST];
	unsigned int from, i, n;

	for (from = 1; from < w->workers && w->smps_in[from] != NULL; from++) {
		n = handoff_take_smps(w, from, pkts);
		for (i = 0; i < n; i++) {
			if (vl15_put(w, pkts[i]))
				continue;
			worker_count(w, pkts[i], VERDICT_VL15_DROPPED);
			link_free(&pkts[i], 1);
		}
	}
}

unsigned int
vl15_run(struct worker *w, uint64_t now)
{
	struct vl15 *v = w->vl15;
	struct vl15_port *p;
	unsigned int n = 0;

	vl15_take_handed_over(w);
	while (v->waiting > 0 && n < VL15_BUDGET) {
		p = &v->port[v->turn];
		v->turn = (v->turn + 1) % v->num_ports;
		if (p->num == 0)
			continue;
		vl15_serve(w, vl15_take(v, p), now);
		n++;
	}
	return n;
}

bool
vl15_pending(const struct worker *w)
{
	return w->vl15->waiting > 0;
}
