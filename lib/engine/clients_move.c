/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The workers' part of the move of a client (clients_move.h).
 */

#include <string.h>

#include "engine/clients_move.h"
#include "engine/clients_private.h"

/* --- worker A --- */

int
client_move_give(struct worker *w)
{
	struct client_move *m = w->engine->client_move;
	int rc = rc_group_export(w->rc, &m->group, m->to, m->err);

	m->result = rc;
	if (rc != 0)
		return rc;
	/* after the export, which may have listed CQs */
	if (!TAILQ_EMPTY(&m->client->due))
		TAILQ_REMOVE(&w->clients.completing, m->client, completing_link);
	client_turns_leave(w, m->client);
	/* from now on bytes in the wake pipe are for the new worker */
	client_wake_leave(w, m->client);
	memcpy(m->port_seen, w->port_seen, sizeof(m->port_seen));
	w->stats.rehomed_out += m->group.num_qps;
	return 0;
}

/* --- worker B --- */

void
client_move_begin(struct worker *w)
{
	RTE_ASSERT(w->rehome.client == NULL);
	w->rehome.client = w->engine->client_move;
	w->rehome.num_arriving++;
}

bool
client_move_park(struct worker *w, struct packet *pkt)
{
	struct client_move *m = w->rehome.client;
	uint32_t slot;

	if (m == NULL)
		return false;
	slot = pkt->dest_qpn & m->slot_mask;
	if ((m->coming[slot / 64] >> slot % 64 & 1) == 0)
		return false;
	if (w->rehome.parked == REHOME_PARK_ALL) {
		handoff_drop(w, &pkt, 1);
		return true;
	}
	m->parked[m->num_parked++] = pkt;
	w->rehome.parked++;
	return true;
}

/* Apply port changes that the old worker had not seen. */
static void
client_move_follow_ports(struct worker *w, const struct client_move *m)
{
	const struct link *link = w->engine->link;
	const struct port_attr *attr;
	unsigned int port;
	uint32_t i;

	for (port = 0; port < link_num_ports(link); port++) {
		attr = link_port_attr(link, port);
		for (i = 0; attr != m->port_seen[port] && i < m->group.num_qps; i++)
			rc_qp_path_changed(w->rc, m->group.qpns[i], (uint16_t)port, attr);
	}
}

/* The client joins in a turn of its new worker, which then looks at all that waits in its rings. */
void
client_move_take(struct worker *w)
{
	struct client_move *m = w->rehome.client;
	struct verbs_client *c = m->client;
	uint32_t i;

	rc_group_import(w->rc, &m->group, m->from);
	w->stats.rehomed_in += m->group.num_qps;
	client_move_follow_ports(w, m);
	client_wake_accept(w, c);
	m->looks = client_turns_join(w, c, m->looks, m->num_looks);
	client_turns_hear(w, c);
	for (i = 0; i < c->limits.max_cq; i++)
		if (c->cq[i] != NULL)
			c->cq[i]->has_moved = true;
	if (!TAILQ_EMPTY(&c->due))
		TAILQ_INSERT_TAIL(&w->clients.completing, c, completing_link);
}
