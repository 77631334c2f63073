/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The transmit sink and the batches behind it.
 *
 * Every frame is one linear mbuf by construction, since each is written by one path_finish() or one
 * control protocol: no PMD needs multi-segment support for us.
 *
 * A full queue first holds its callers back (reserve() gives NULL, nothing is lost); if it does not
 * move for FULL_MS, or its link is down, its frames are dropped and counted, so that one dead port
 * does not stop the others of this worker. A queue that only sleeps (a guest that uses fewer than
 * it was given) has another worker's to turn to first.
 *
 * A native IB port has a second batch for VL15 (tx_vl15.c). Whenever either goes to the queue, VL15's
 * goes first.
 */

#include <rte_branch_prediction.h>

#include "link/lids.h"
#include "link/private.h"

#define FULL_MS 250 /* longer than a busy machine stalls whoever empties the queue */

/* The worker that owns a queue sends them. @return so many were taken */
static unsigned int
to_ring(struct tx_port *t)
{
	unsigned int n = rte_ring_sp_enqueue_burst(t->ring, (void **)t->mbuf, t->num, NULL);

	t->ringed += n;
	return n;
}

/* What the queue did not take, t->num of them behind the first so many, waits or is dropped. */
static void __rte_noinline
tx_rest(struct link_worker *w, struct tx_port *t, unsigned int sent)
{
	unsigned int i;

	memmove(t->mbuf, t->mbuf + sent, t->num * sizeof(t->mbuf[0]));
	for (i = 0, t->bytes = 0; i < t->num; i++)
		t->bytes += t->mbuf[i]->pkt_len;
	if (sent > 0)
		return;
	if (!t->full) {
		t->full = true;
		t->full_since = w->now;
	}
	if (w->now - t->full_since >= FULL_MS * (w->link->cfg.hz / 1000) ||
		link_port_attr(w->link, t->port)->state == PORT_STATE_DOWN)
		t->stuck = true;
	if (!t->stuck)
		return;
	if (t->ring != NULL && t->way == TX_QUEUE)
		sent = to_ring(t);
	t->num -= sent;
	count(&w->counters[t->port].tx_full, t->num);
	rte_pktmbuf_free_bulk(t->mbuf + sent, t->num);
	t->num = 0;
	t->bytes = 0;
}

/* @return so many were taken */
static unsigned int __rte_noinline
tx_elsewhere(struct tx_port *t)
{
	return t->way == TX_STOPPED ? 0 : to_ring(t);
}

/* The queue takes frames again. */
static void __rte_noinline
tx_moves(struct link_worker *w, struct tx_port *t)
{
	uint64_t waited = w->now - t->full_since;

	t->full = false;
	t->stuck = false;
	count(&w->counters[t->port].tx_wait,
		(uint64_t)((unsigned __int128)waited * 1000000000 / w->link->cfg.hz));
}

static unsigned int
tx_offer(struct tx_port *t)
{
	if (likely(t->way == TX_QUEUE))
		return rte_eth_tx_burst(t->ethdev, t->queue, t->mbuf, t->num);
	return tx_elsewhere(t);
}

/* VL15 goes first. @return false: it still has something that the queue does not take */
static bool __rte_noinline
vl15_first(struct link_worker *w, struct tx_port *vl15)
{
	if (vl15->num > 0)
		tx_burst(w, vl15);
	return vl15->num == 0;
}

void
tx_burst(struct link_worker *w, struct tx_port *t)
{
	struct link_counters *c = &w->counters[t->port];
	uint64_t bytes = t->bytes;
	unsigned int sent = 0, num = t->num;

	if (likely(t->vl15 == NULL) || vl15_first(w, t->vl15))
		sent = tx_offer(t);
	if (unlikely(t->full) && sent > 0)
		tx_moves(w, t);
	t->num -= sent;
	t->bytes = 0;
	if (unlikely(t->num > 0))
		tx_rest(w, t, sent);
	t->left += num - t->num;
	/* the worker that owns the queue counts what it is handed */
	if (likely(sent > 0 && t->way == TX_QUEUE)) {
		count(&c->tx_packets, sent);
		count(&c->tx_bytes, bytes - t->bytes);
	}
}

/* Room in the port's batch? */
static inline bool
tx_room(struct link_worker *w, struct tx_port *t)
{
	if (likely(t->num < LINK_BURST))
		return true;
	tx_burst(w, t);
	return t->num < LINK_BURST;
}

static inline void
tx_queue(struct link_worker *w, struct tx_port *t, struct rte_mbuf *m, uint32_t len)
{
	t->mbuf[t->num] = m;
	t->bytes += len;
	if (unlikely(++t->num == LINK_BURST))
		tx_burst(w, t);
}

/*
 * Of what an mbuf says, a PMD that sends reads the first words (one store, as PMDs do when they
 * receive), the flags, and the lengths, which leave() writes; the rest only if a flag says so.
 */
static bool __rte_noinline
tx_refill(struct link_worker *w, struct tx_port *t)
{
	unsigned int i;

	if (rte_mempool_get_bulk(t->mp, (void **)t->cache, LINK_BURST) != 0) {
		count(&w->counters[t->port].tx_no_mbuf, 1);
		return false;
	}
	for (i = 0; i < LINK_BURST; i++) {
		memcpy(&t->cache[i]->rearm_data, &t->rearm, sizeof(t->rearm));
		t->cache[i]->ol_flags = 0;
	}
	t->num_cached = LINK_BURST;
	return true;
}

/* The receive path takes it from here, as from any other queue (rx.c). */
static void
send_to_self(struct link_worker *w, uint16_t port, struct rte_mbuf *m)
{
	m->port = port; /* ours, not an ethdev's */
	w->self[w->self_head++ % SELF_QUEUE] = m;
	count(&w->counters[port].tx_packets, 1);
	count(&w->counters[port].tx_bytes, m->pkt_len);
}

/*
 * The payload behind a BTH without extension headers is aligned to a cache line, and so are the
 * blocks of 16 bytes that the CRC makes of what stands before; the headers go in front.
 */
#define BTH_OFF (RTE_PKTMBUF_HEADROOM - BTH_LEN)

static inline uint8_t *
bth_of(const struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + BTH_OFF;
}

/* Can the port's queue be given a packet? */
static inline bool
has_room(const struct tx_port *t, const struct path *path, uint32_t len)
{
	return t->num < LINK_BURST && t->num_cached > 0 && len + path->trailer_len <= t->room;
}

/* Wherever the packet goes? */
static inline bool
is_ready(const struct link_worker *w, const struct tx_port *t, const struct path *path,
	uint32_t len)
{
	return has_room(t, path, len) && w->mbuf == NULL &&
		w->self_head - w->self_tail != SELF_QUEUE;
}

/* Make sure that it can. */
static bool __rte_noinline
make_ready(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	if (!tx_room(w, t) || w->self_head - w->self_tail == SELF_QUEUE)
		return false;
	if (w->mbuf != NULL) /* reserved and not committed: taken back */
		w->from->cache[w->from->num_cached++] = w->mbuf;
	w->mbuf = NULL;
	if (len + path->trailer_len > t->room) {
		/* longer than the port's MTU: the caller's path MTU is wrong */
		count(&w->counters[t->port].tx_no_mbuf, 1);
		return false;
	}
	return t->num_cached > 0 || tx_refill(w, t);
}

static __rte_always_inline uint8_t *
reserve(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	if (unlikely(!is_ready(w, t, path, len)) && !make_ready(w, t, path, len))
		return NULL;
	w->mbuf = t->cache[--t->num_cached];
	w->from = t;
	w->path = path;
	w->bth_len = len;
	return bth_of(w->mbuf);
}

uint8_t *
tx_port_reserve(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	return reserve(w, t, path, len);
}

static uint8_t *
sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct link_worker *w = (struct link_worker *)sink;

	return reserve(w, w->tx[path->av.port], path, len);
}

/*
 * Native InfiniBand: only SMPs leave a port that is not active, and a disabled port sends only those
 * to itself. VL 15 is for SMPs alone: an SL that is mapped to it has no VL. The LID gives the MAC
 * address, unless the path already has one.
 */
static uint64_t
ib_next_hop(struct link_worker *w, const struct path *path, const uint8_t *bth)
{
	bool smp = (get_be32(bth + BTH_DESTQP) & 0xFFFFFF) == 0;
	const struct link_port *p = &w->link->port[path->av.port];
	const struct port_attr *attr = link_port_attr(w->link, path->av.port);
	struct link_counters *c = &w->counters[path->av.port];
	uint64_t mac = mac_word(path->av.dmac);

	if (!smp && (attr->state != PORT_STATE_ACTIVE || path->av.vl == LRH_VL_SMP)) {
		count(&c->tx_port_state, 1);
		return 0;
	}
	if (mac == 0)
		mac = lid_route(p, attr, path->av.dlid) & MAC_MASK;
	if (unlikely(attr->disabled) && mac != p->mac_word) {
		count(&c->tx_port_state, 1);
		return 0;
	}
	if (unlikely(mac == 0)) {
		count(&c->tx_flooded, 1);
		mac = MAC_MASK;
	}
	return mac | NEIGH_VALID | (mac == p->mac_word ? NEIGH_SELF : 0);
}

/* A short frame of ours is padded, behind its CRC. */
static uint32_t
pad_frame(const struct path *path, uint8_t *bth, uint32_t bth_len)
{
	uint32_t len = path->header_len + bth_len + path->trailer_len;

	if (len >= ETH_MIN_LEN)
		return 0;
	memset(bth + bth_len + path->trailer_len, 0, ETH_MIN_LEN - len);
	return ETH_MIN_LEN - len;
}

/* The next hop's MAC and flags; without NEIGH_VALID the packet is dropped, and counted. */
static inline uint64_t
next_hop(struct link_worker *w, const struct path *path, const uint8_t *bth)
{
	uint64_t mac;

	if (likely(path->neighbour != PATH_NO_NEIGHBOUR)) {
		mac = __atomic_load_n(&w->link->neigh_mac[path->neighbour], __ATOMIC_RELAXED);
		if (unlikely(!(mac & NEIGH_VALID)))
			count(&w->counters[path->av.port].tx_unresolved, 1);
		return mac;
	}
	if (path->av.encap == ENCAP_IB)
		return ib_next_hop(w, path, bth);
	/* a datagram's answer goes back where it came from: that may be the port itself */
	mac = mac_word(path->av.dmac) | NEIGH_VALID;
	if (memcmp(path->av.dmac, path->av.smac, MAC_LEN) == 0)
		mac |= NEIGH_SELF;
	return mac;
}

/* A frame of len bytes for that next hop. */
static inline void
address(const struct path *path, struct rte_mbuf *m, uint64_t mac, uint32_t len)
{
	uint32_t off = BTH_OFF - path->header_len;

	m->data_off = off;
	m->data_len = len;
	m->pkt_len = len;
	memcpy((uint8_t *)m->buf_addr + off, &mac, MAC_LEN);
}

static void
sink_commit(struct tx_sink *sink)
{
	struct link_worker *w = (struct link_worker *)sink;
	const struct path *path = w->path;
	struct tx_port *t = w->from;
	struct rte_mbuf *m = w->mbuf;
	uint8_t *bth = bth_of(m);
	uint64_t mac = next_hop(w, path, bth);
	uint32_t pad = 0, len;

	w->mbuf = NULL;
	if (unlikely(!(mac & NEIGH_VALID))) {
		t->cache[t->num_cached++] = m;
		return;
	}
	if (unlikely(path->neighbour == PATH_NO_NEIGHBOUR))
		pad = pad_frame(path, bth, w->bth_len);
	if (unlikely(pad > 0))
		count(&w->counters[path->av.port].tx_pad, pad);
	if (w->bth_len <= BTH_LEN + PATH_EXT_MAX) /* headers and no payload */
		len = path_finish_copy(path, bth, w->bth_len, NULL, 0, w->ip_id++);
	else
		len = path_finish(path, bth, w->bth_len, w->ip_id++);
	len += pad;
	address(path, m, mac, len);
	if (unlikely(mac & NEIGH_SELF))
		send_to_self(w, path->av.port, m);
	else
		tx_queue(w, t, m, len);
}

/* The slower way round: a queue that is full or empty, an address that is ours or not resolved. */
static bool __rte_noinline
send_by_steps(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	uint32_t pad = wire_pad(len);
	uint8_t *bth = sink_reserve(sink, path, headers_len + len + pad);

	if (bth == NULL)
		return false;
	memcpy(bth, headers->bytes, headers_len);
	if (len > 0)
		memcpy(bth + headers_len, from, len);
	memset(bth + headers_len + len, 0, pad);
	sink_commit(sink);
	return true;
}

static bool
sink_send(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	struct link_worker *w = (struct link_worker *)sink;
	struct tx_port *t = w->tx[path->av.port];
	struct rte_mbuf *m;
	uint64_t mac;
	uint8_t *bth;

	if (unlikely(path->neighbour == PATH_NO_NEIGHBOUR || !has_room(t, path,
			headers_len + len + 3)))
		return send_by_steps(sink, path, headers, headers_len, from, len);
	mac = __atomic_load_n(&w->link->neigh_mac[path->neighbour], __ATOMIC_RELAXED);
	if (unlikely((mac ^ NEIGH_VALID) >= NEIGH_SELF)) /* the two highest bits */
		return send_by_steps(sink, path, headers, headers_len, from, len);
	m = t->cache[--t->num_cached];
	bth = bth_of(m);
	if (unlikely(w->icrc_off)) {
		memcpy(bth, headers->bytes, sizeof(headers->bytes));
		len = path_finish_bare(path, bth, headers_len, from, len, w->ip_id++);
	} else if (likely(headers_len == BTH_LEN)) {
		len = path_finish_send(path, bth, headers->bytes, from, len, w->ip_id++);
	} else if (len == 0 && headers_len == BTH_LEN + 4) {
		len = path_finish_ack(path, bth, headers->bytes, w->ip_id++);
	} else if (len == 0 && headers_len == BTH_LEN + 12) {
		len = path_finish_atomic(path, bth, headers->bytes, w->ip_id++);
	} else {
		memcpy(bth, headers->bytes, sizeof(headers->bytes)); /* there is room */
		len = path_finish_copy(path, bth, headers_len, from, len, w->ip_id++);
	}
	address(path, m, mac, len);
	tx_queue(w, t, m, len);
	return true;
}

void
tx_l3(struct link_worker *w, struct link_port *p, struct rte_mbuf *m, uint8_t *l3, uint32_t l3_len,
	uint64_t dmac, uint16_t ethertype)
{
	bool tagged = p->cfg.vlan != PATH_NO_VLAN;
	struct tx_port *t = w->tx[p->index];
	uint8_t *h = l3 - ETH_LEN - (tagged ? VLAN_LEN : 0);
	uint32_t len = l3 + l3_len - h;

	if (h < (uint8_t *)m->buf_addr || !tx_room(w, t)) {
		count(&w->counters[p->index].tx_full, 1);
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(h, &dmac, MAC_LEN);
	memcpy(h + MAC_LEN, p->mac, MAC_LEN);
	if (tagged) {
		put_be16(h + 12, ETHERTYPE_VLAN);
		put_be16(h + 14, p->cfg.vlan & VLAN_VID);
	}
	put_be16(l3 - 2, ethertype);
	m->data_off = h - (uint8_t *)m->buf_addr;
	if (len < ETH_MIN_LEN && m->data_off + ETH_MIN_LEN <= m->buf_len) {
		memset(h + len, 0, ETH_MIN_LEN - len);
		len = ETH_MIN_LEN;
	}
	m->data_len = len;
	m->pkt_len = len;
	/* an answer may stand in the question's mbuf */
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	tx_queue(w, t, m, len);
}

struct rte_mbuf *
tx_control(struct link_worker *w, struct link_port *p, uint8_t **l3)
{
	struct tx_port *t = w->tx[p->index];
	struct rte_mbuf *m;

	if (t->num_cached == 0 && !tx_refill(w, t))
		return NULL;
	m = t->cache[--t->num_cached];
	*l3 = bth_of(m) + ETH_LEN + VLAN_LEN;
	return m;
}

/* Frames of workers that have no queue on the port. */
void
tx_handoff_drain(struct link_worker *w)
{
	struct tx_handoff *h;
	struct tx_port *t;
	unsigned int i, n, k;

	for (i = 0; i < w->num_handoff; i++) {
		h = &w->handoff[i];
		t = w->tx[h->port];
		if (!tx_room(w, t))
			continue;
		n = rte_ring_sc_dequeue_burst(h->ring, (void **)&t->mbuf[t->num],
			LINK_BURST - t->num, NULL);
		for (k = 0; k < n; k++)
			t->bytes += t->mbuf[t->num + k]->pkt_len;
		t->num += n;
		h->taken += n;
		if (t->num == LINK_BURST)
			tx_burst(w, t);
	}
}

/* Tell those who wait for them (link_tx_left()). A queue that is never empty tells by and by. */
static void
tx_handoff_tell(struct link_worker *w)
{
	struct tx_handoff *h;
	struct tx_port *t;
	unsigned int i;

	for (i = 0; i < w->num_handoff; i++) {
		h = &w->handoff[i];
		t = w->tx[h->port];
		if (t->left < h->mark)
			continue;
		__atomic_store_n(h->ring_left, h->marked, __ATOMIC_RELEASE);
		h->marked = h->taken;
		h->mark = t->left + t->num;
		if (t->num == 0)
			__atomic_store_n(h->ring_left, h->marked, __ATOMIC_RELEASE);
	}
}

struct tx_sink *
link_tx_sink(struct link_worker *w)
{
	return &w->sink;
}

void
link_tx_flush(struct link_worker *w, uint64_t now)
{
	unsigned int i;

	w->now = now;
	if (unlikely(w->num_handoff > 0))
		tx_handoff_drain(w);
	if (unlikely(w->vl15 != NULL))
		tx_vl15_flush(w);
	for (i = 0; i < w->link->num_ports; i++)
		if (w->tx[i]->num > 0)
			tx_burst(w, w->tx[i]);
	if (unlikely(w->num_handoff > 0))
		tx_handoff_tell(w);
}

void
link_tx_mark(struct link_worker *w)
{
	struct tx_port *t;
	unsigned int i;

	for (i = 0; i < w->link->num_ports; i++) {
		t = w->tx[i];
		t->mark = t->left + t->num;
		t->ring_mark = t->ringed;
		if (unlikely(t->vl15 != NULL))
			t->vl15->mark = t->vl15->left + t->vl15->num;
	}
}

bool
link_tx_left(const struct link_worker *w)
{
	const struct tx_port *t;
	unsigned int i;

	for (i = 0; i < w->link->num_ports; i++) {
		t = w->tx[i];
		if (t->left < t->mark || (t->ringed > 0 && (int32_t)(__atomic_load_n(
				&w->link->port[i].tx_ring_left[w->id], __ATOMIC_ACQUIRE) -
				t->ring_mark) < 0))
			return false;
		if (unlikely(t->vl15 != NULL) && t->vl15->left < t->vl15->mark)
			return false;
	}
	return true;
}

void
tx_sink_init(struct link_worker *w)
{
	w->sink.reserve = sink_reserve;
	w->sink.commit = sink_commit;
	w->sink.send = sink_send;
}
