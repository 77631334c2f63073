/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The messages that move a QP between workers (rehome.h). A packet that arrives at the worker that
 * owns its QP does not run this code.
 */

#include <errno.h>
#include <string.h>

#include <rte_ring_elem.h>

#include "engine/clients_move.h"
#include "engine/worker.h"

enum move_what {
	MOVE_OFFER,
	MOVE_READY,
	MOVE_REFUSED,
	MOVE_TAKE,
	MOVE_CANCEL,
};

struct move_message {
	uint32_t what;
	uint32_t qpn; /* CLIENT: the client that moves */
};

#define CLIENT 0 /* QP0 never moves */

/*
 * Most messages from A to B at a time: for each place of A's an OFFER, and the TAKE of the move
 * that used the place before; and one answer for each move of B's
 */
#define MAIL_RING 64
_Static_assert(3 * REHOME_OUT < MAIL_RING, "a message always has room");

/* --- mail --- */

static void
rehome_post(struct worker *w, unsigned int to, enum move_what what, uint32_t qpn)
{
	struct move_message m = { what, qpn };
	struct worker *peer = w->engine->worker[to];

	rte_ring_sp_enqueue_elem(peer->rehome.mail[w->id], &m, sizeof(m));
	__atomic_store_n(&peer->mail, 1, __ATOMIC_RELEASE);
	idle_wake(peer);
}

static struct leaving *
find_leaving(const struct worker *w, uint32_t qpn)
{
	const struct rehome *r = &w->rehome;
	unsigned int i;

	for (i = 0; i < REHOME_OUT && r->num_leaving > 0; i++)
		if (r->leaving[i].step != LEAVING_FREE && r->leaving[i].qpn == qpn)
			return (struct leaving *)&r->leaving[i];
	return NULL;
}

static struct arriving *
rehome_place_of(const struct worker *w, uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < REHOME_IN; i++)
		if (w->rehome.arriving[i].qpn == qpn)
			return &w->rehome.arriving[i];
	return NULL;
}

/* QP0 never moves, and qpn 0 marks a free place, so it is never found. */
static struct arriving *
find_arriving(const struct worker *w, uint32_t qpn)
{
	return w->rehome.num_arriving > 0 && qpn != 0 ? rehome_place_of(w, qpn) : NULL;
}

/* --- the old owner --- */

/* @return false: no place is free, or the QP is moving already */
static bool
rehome_begin(struct worker *w, uint32_t qpn, unsigned int to)
{
	struct rehome *r = &w->rehome;
	struct leaving *l = r->leaving;

	RTE_ASSERT(to != w->id && r->num_leaving <= REHOME_OUT);
	if (r->num_leaving == REHOME_OUT || find_leaving(w, qpn) != NULL)
		return false;
	while (l->step != LEAVING_FREE)
		l++;
	*l = (struct leaving){ .qpn = qpn, .step = LEAVING_OFFERED, .to = (uint16_t)to };
	r->num_leaving++;
	rehome_post(w, to, MOVE_OFFER, qpn);
	return true;
}

int
rehome_offer(struct worker *w, uint32_t qpn, unsigned int to, struct error *err)
{
	int ret = rc_qp_movable(w->rc, qpn, to, err);

	if (ret == 0 && !rehome_begin(w, qpn, to))
		return error_set(err, EBUSY,
			"qp: 0x%06x, or %u others of worker %u, are moving: try again", qpn,
			REHOME_OUT, w->id);
	return ret;
}

int
rehome_offer_client(struct worker *w, unsigned int to, struct error *err)
{
	if (rehome_begin(w, CLIENT, to))
		return 0;
	return error_set(err, EBUSY, "client: %u queue pairs of worker %u are moving: try again",
		REHOME_OUT, w->id);
}

bool
rehome_is_leaving(const struct worker *w, uint32_t qpn)
{
	return find_leaving(w, qpn) != NULL;
}

static void
rehome_stays(struct worker *w, struct leaving *l)
{
	l->step = LEAVING_FREE;
	w->rehome.num_leaving--;
}

/* Packets that the new owner handed off before READY are on our ring: process those first. */
static void
rehome_ready(struct worker *w, struct leaving *l)
{
	l->step = LEAVING_READY;
	l->target = w->taken[l->to] + rte_ring_count(w->in[l->to]);
}

/* This fails if the QP was destroyed, or cannot move now. */
static int
rehome_export(struct worker *w, uint32_t qpn, unsigned int to)
{
	int ret;

	if (qpn == CLIENT)
		return client_move_give(w);
	ret = rc_qp_export(w->rc, qpn, to, NULL);
	w->stats.rehomed_out += ret == 0;
	return ret;
}

void
rehome_give(struct worker *w)
{
	struct rehome *r = &w->rehome;
	unsigned int i;

	for (i = 0; i < REHOME_OUT; i++) {
		struct leaving *l = &r->leaving[i];

		if (l->step != LEAVING_READY || w->taken[l->to] < l->target)
			continue;
		if (rehome_export(w, l->qpn, l->to) == 0)
			rehome_post(w, l->to, MOVE_TAKE, l->qpn);
		else
			rehome_post(w, l->to, MOVE_CANCEL, l->qpn);
		rehome_stays(w, l);
	}
}

/* --- the new owner --- */

static void
rehome_offered(struct worker *w, unsigned int from, uint32_t qpn)
{
	struct arriving *a;

	if (qpn == CLIENT) {
		client_move_begin(w);
		rehome_post(w, from, MOVE_READY, qpn);
		return;
	}
	a = rehome_place_of(w, 0);
	if (a == NULL) {
		rehome_post(w, from, MOVE_REFUSED, qpn);
		return;
	}
	*a = (struct arriving){ .qpn = qpn, .from = (uint16_t)from };
	w->rehome.num_arriving++;
	rehome_post(w, from, MOVE_READY, qpn);
}

static void
rehome_park_at(struct worker *w, struct arriving *a, struct packet *pkt)
{
	if (a->parked < REHOME_PARK && w->rehome.parked < REHOME_PARK_ALL) {
		a->pkt[a->parked++] = pkt;
		w->rehome.parked++;
	} else {
		handoff_drop(w, &pkt, 1);
	}
}

bool
rehome_park(struct worker *w, struct packet *pkt)
{
	struct arriving *a = find_arriving(w, pkt->dest_qpn);

	if (likely(a == NULL))
		return client_move_park(w, pkt);
	rehome_park_at(w, a, pkt);
	return true;
}

/* Dispatch packets that were parked again. They are no longer the caller's. */
static void
rehome_sort_again(struct worker *w, struct packet **pkts, unsigned int num, uint64_t now)
{
	unsigned int i, n;

	for (i = 0; i < num; i += n) {
		n = RTE_MIN(num - i, (unsigned int)LINK_BURST);
		worker_sort(w, pkts + i, n, now);
	}
}

/* The move is over, or cancelled: dispatch the parked packets again. */
static void
rehome_unpark(struct worker *w, struct arriving *a, uint64_t now)
{
	struct packet *pkts[REHOME_PARK];
	unsigned int num = a->parked;

	memcpy(pkts, a->pkt, num * sizeof(pkts[0]));
	a->parked = 0; /* worker_sort() owns them now */
	w->rehome.parked -= num;
	a->qpn = 0;
	w->rehome.num_arriving--;
	rehome_sort_again(w, pkts, num, now);
}

/* @param given  false: the client stays where it was */
static void
rehome_client_end(struct worker *w, bool given, uint64_t now)
{
	struct client_move *m = w->rehome.client;

	if (given)
		client_move_take(w);
	w->rehome.client = NULL;
	w->rehome.num_arriving--;
	w->rehome.parked -= m->num_parked;
	rehome_sort_again(w, m->parked, m->num_parked, now);
	/* after this store the control thread frees *m */
	__atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
}

void
rehome_settle(struct worker *w, uint32_t qpn)
{
	struct rehome *r = &w->rehome;

	*rehome_entry(r, qpn) = (struct handed){ .qpn = qpn, .rest = r->tick + REHOME_REST_TICKS };
}

static void
rehome_import(struct worker *w, unsigned int from, uint32_t qpn)
{
	const struct link *link = w->engine->link;
	unsigned int port;

	if (rc_qp_import(w->rc, qpn, from) != 0)
		return;
	w->stats.rehomed_in++;
	rehome_settle(w, qpn);
	/* apply port changes that the old owner had not seen */
	for (port = 0; port < link_num_ports(link); port++)
		rc_qp_path_changed(w->rc, qpn, (uint16_t)port, link_port_attr(link, port));
}

static void
rehome_read_message(struct worker *w, unsigned int from, const struct move_message *m, uint64_t now)
{
	struct leaving *l = find_leaving(w, m->qpn);
	struct arriving *a = find_arriving(w, m->qpn);

	switch ((enum move_what)m->what) {
	case MOVE_OFFER:
		rehome_offered(w, from, m->qpn);
		break;
	case MOVE_READY:
		rehome_ready(w, l);
		break;
	case MOVE_REFUSED:
		rehome_stays(w, l);
		break;
	case MOVE_TAKE:
		if (m->qpn == CLIENT) {
			rehome_client_end(w, true, now);
			break;
		}
		rehome_import(w, from, m->qpn);
		rehome_unpark(w, a, now);
		break;
	case MOVE_CANCEL:
		if (m->qpn == CLIENT)
			rehome_client_end(w, false, now);
		else
			rehome_unpark(w, a, now);
		break;
	}
}

unsigned int
rehome_take(struct worker *w, uint64_t now)
{
	struct move_message m;
	unsigned int from, n = 0;

	if (__atomic_exchange_n(&w->mail, 0, __ATOMIC_ACQUIRE) == 0)
		return 0;
	for (from = 0; from < w->workers; from++)
		while (from != w->id &&
			rte_ring_sc_dequeue_elem(w->rehome.mail[from], &m, sizeof(m)) == 0) {
			rehome_read_message(w, from, &m, now);
			n++;
		}
	return n;
}

bool
rehome_is_arriving(struct worker *w, uint32_t qpn)
{
	if (rehome_has_mail(w))
		rehome_take(w, w->last);
	return rc_owner(w->dev, qpn) == (int)w->id && find_arriving(w, qpn) != NULL;
}

/* --- packets between two owners --- */

bool
rehome_stray(struct worker *w, struct packet *pkt, uint64_t now, enum verdict *v)
{
	int to = rc_owner(w->dev, pkt->dest_qpn);

	if (to < 0)
		return false;
	if (to != (int)w->id) { /* the QP moved away */
		handoff_again(w, (unsigned int)to, pkt);
		return true;
	}
	if (rehome_has_mail(w)) {
		rehome_take(w, now);
		*v = rc_receive(w->rc, pkt, now);
		if (*v != VERDICT_QPN_UNKNOWN)
			return false;
	}
	return rehome_park(w, pkt);
}

/* --- life --- */

static bool
has_queue_per_worker(const struct engine *e, unsigned int port)
{
	struct link_state state;

	link_state(e->link, port, &state);
	return state.rx_queues >= e->num_workers;
}

static int
rehome_create_worker(struct engine *e, struct worker *w)
{
	struct rehome *r = &w->rehome;
	unsigned int i, entries = RTE_MIN(e->config.limits.max_qp, (uint32_t)REHOME_TABLE);
	int socket = (int)rte_lcore_to_socket_id(w->lcore);

	r->enabled = e->config.rehome && e->num_workers > 1;
	r->handed_mask = entries - 1; /* both are powers of two */
	r->arriving = mem_zalloc(e->alloc, REHOME_IN * sizeof(r->arriving[0]), RTE_CACHE_LINE_SIZE);
	r->handed = mem_zalloc(e->alloc, entries * sizeof(r->handed[0]), RTE_CACHE_LINE_SIZE);
	if (r->arriving == NULL || r->handed == NULL)
		return -ENOMEM;
	for (i = 0; i < link_num_ports(e->link); i++)
		r->steered[i] = has_queue_per_worker(e, i);
	for (i = 0; i < e->num_workers; i++) {
		if (i == w->id)
			continue;
		r->mail[i] = engine_ring("rehome", sizeof(struct move_message), MAIL_RING, socket,
			RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (r->mail[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
rehome_create(struct engine *e, struct error *err)
{
	unsigned int i;

	for (i = 0; i < e->num_workers; i++)
		if (rehome_create_worker(e, e->worker[i]) != 0)
			return error_set(err, ENOMEM,
				"no memory for moves between %u workers: raise eal.memory_mb",
				e->num_workers);
	return 0;
}

static void
rehome_destroy_worker(struct engine *e, struct worker *w)
{
	struct rehome *r = &w->rehome;
	struct move_message m;
	unsigned int i;

	for (i = 0; i < e->num_workers; i++) {
		while (r->mail[i] != NULL &&
			rte_ring_sc_dequeue_elem(r->mail[i], &m, sizeof(m)) == 0)
			if (m.what == MOVE_TAKE)
				rc_qp_import(w->rc, m.qpn, i);
		engine_ring_free(r->mail[i]);
		r->mail[i] = NULL;
	}
	for (i = 0; i < REHOME_IN && r->arriving != NULL; i++)
		link_free(r->arriving[i].pkt, r->arriving[i].parked);
	mem_free(e->alloc, r->arriving);
	mem_free(e->alloc, r->handed);
	r->arriving = NULL;
	r->handed = NULL;
}

void
rehome_destroy(struct engine *e)
{
	unsigned int i;

	for (i = 0; i < e->num_workers; i++)
		if (e->worker[i] != NULL)
			rehome_destroy_worker(e, e->worker[i]);
}
