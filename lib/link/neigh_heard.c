/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Neighbours: what workers hear from others on the link, and report. neigh.h says which thread may
 * write which field.
 */

#include "link/neigh.h"
#include "link/control.h"

#define WARN_S 10

void
neigh_tell(struct link_worker *w, enum link_news_kind what, uint16_t port, const union gid *gid,
	uint64_t mac)
{
	struct link_news news = { .what = what, .port = port, .gid = *gid };

	put_mac(news.mac, mac);
	if (w->tell != NULL)
		w->tell(w->tell_arg, &news);
}

void
neigh_heard(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac)
{
	uint64_t said = mac_word(mac) | NEIGH_VALID, known;
	struct neigh_table *t = w->link->neigh;
	int i = neigh_find(t, p->index, gid);

	if (i < 0 || t->entry[i].permanent || (mac[0] & 1))
		return;
	known = RELAXED_GET(t->mac[i]);
	if ((known & NEIGH_VALID) && known != said) {
		/* the first claim counts until the old MAC has had its time to answer */
		if (RELAXED_GET(t->entry[i].moving) == 0)
			RELAXED_SET(t->entry[i].moving, said);
		neigh_entry_check(t, i);
		return;
	}
	RELAXED_SET(t->entry[i].confirmed, w->now);
	RELAXED_SET(t->mac[i], said);
	neigh_entry_check(t, i);
	if (!(known & NEIGH_VALID))
		neigh_tell(w, LINK_NEIGHBOUR_KNOWN, p->index, gid, said);
}

void
neigh_conflict(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac)
{
	if (mac_word(mac) == p->mac_word) /* our own message came back */
		return;
	w->port[p->index].limits.conflict = *gid;
	w->port[p->index].limits.conflict_mac = mac_word(mac);
}

void
neigh_warn(struct link_worker *w, uint64_t now)
{
	struct worker_port *o;
	struct port_limits *l;

	WORKER_FOREACH_PORT(o, w) {
		l = &o->limits;
		if (l->conflict_mac == 0 || now < l->conflict_next)
			continue;
		neigh_tell(w, LINK_ADDRESS_CONFLICT, o->tx.port, &l->conflict, l->conflict_mac);
		l->conflict_mac = 0;
		l->conflict_next = now + WARN_S * w->link->cfg.hz;
	}
}
