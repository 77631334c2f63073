/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The transmit sink, and the batch of frames of each port.
 *
 * Every frame is one linear mbuf, because one path_finish() or one control protocol writes it: PMDs
 * need no multi-segment support.
 *
 * While a queue is full, the sink's reserve() returns NULL and nothing is lost. If the queue takes
 * no frame for FULL_MS, or its link is down, its frames are dropped and counted, so that one dead
 * port does not stop the worker's other ports. If the queue may be one that the far end does not
 * serve (a guest that uses fewer queues), the frames first go to another worker's queue.
 *
 * A native IB port has a second batch for VL15 (tx_vl15.c), which is always sent first.
 */

#include <rte_branch_prediction.h>

#include "base/common_case.h"
#include "link/guard.h"
#include "link/lids.h"
#include "link/private.h"

#define FULL_MS 250 /* longer than a busy machine stalls the process that empties the queue */

/* Pass the batch to the worker that owns a queue. @return number of frames taken */
static unsigned int
tx_to_ring(struct tx_port *t)
{
	unsigned int n = rte_ring_sp_enqueue_burst(t->ring, (void **)t->mbuf, t->num, NULL);

	t->ringed += n;
	return n;
}

/*
 * The queue took `sent` frames and left the t->num after them. Keep these for the next burst, or
 * drop them if the queue is stuck.
 */
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
		sent = tx_to_ring(t);
	t->num -= sent;
	link_count(&w->counters[t->port].tx_full, t->num);
	rte_pktmbuf_free_bulk(t->mbuf + sent, t->num);
	t->num = 0;
	t->bytes = 0;
}

/* @return number of frames taken */
static unsigned int __rte_noinline
tx_elsewhere(struct tx_port *t)
{
	return t->way == TX_STOPPED ? 0 : tx_to_ring(t);
}

/* The queue takes frames again. */
static void __rte_noinline
tx_moves(struct link_worker *w, struct tx_port *t)
{
	uint64_t waited = w->now - t->full_since;

	t->full = false;
	t->stuck = false;
	link_count(&w->counters[t->port].tx_wait,
		(uint64_t)((unsigned __int128)waited * 1000000000 / w->link->cfg.hz));
}

static unsigned int
tx_offer(struct tx_port *t)
{
	if (likely(t->way == TX_QUEUE)) {
		ethdev_in_burst = t->ethdev;
		return rte_eth_tx_burst(t->ethdev, t->queue, t->mbuf, t->num);
	}
	return tx_elsewhere(t);
}

/* Send VL15's batch first. @retval false  the queue did not take all of it */
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
	/* frames passed to another worker are counted there */
	if (likely(sent > 0 && t->way == TX_QUEUE)) {
		link_count(&c->tx_packets, sent);
		link_count(&c->tx_bytes, bytes - t->bytes);
	}
}

/* Make room in the port's batch. @retval false  the queue is full */
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
 * Initialise new mbufs. A PMD that sends reads only rearm_data, the flags and the lengths of an
 * mbuf, and other fields only if a flag says so. The lengths are written later, by tx_set_frame().
 */
static bool __rte_noinline
tx_refill(struct link_worker *w, struct tx_port *t)
{
	unsigned int i;

	if (rte_mempool_get_bulk(t->mp, (void **)t->cache, LINK_BURST) != 0) {
		link_count(&w->counters[t->port].tx_no_mbuf, 1);
		return false;
	}
	for (i = 0; i < LINK_BURST; i++) {
		memcpy(&t->cache[i]->rearm_data, &t->rearm, sizeof(t->rearm));
		t->cache[i]->ol_flags = 0;
	}
	t->num_cached = LINK_BURST;
	return true;
}

/* Queue a frame to the port itself; link_rx() receives it like any other. */
static void
tx_send_to_self(struct link_worker *w, uint16_t port, struct rte_mbuf *m)
{
	m->port = port; /* ours, not an ethdev's */
	w->self[w->self_head++ % SELF_QUEUE] = m;
	link_count(&w->counters[port].tx_packets, 1);
	link_count(&w->counters[port].tx_bytes, m->pkt_len);
}

/*
 * Offset of the BTH in an mbuf. It aligns the payload of a packet without extension headers to a
 * cache line, which also aligns the CRC's blocks of 16 bytes. Other headers are in front of the
 * BTH.
 */
#define BTH_OFF (RTE_PKTMBUF_HEADROOM - BTH_LEN)

static inline uint8_t *
tx_bth(const struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + BTH_OFF;
}

/* True if the port's batch has room for the packet, and there is an mbuf for it. */
static inline bool
tx_has_room(const struct tx_port *t, const struct path *path, uint32_t len)
{
	return t->num < LINK_BURST && t->num_cached > 0 && len + path->trailer_len <= t->room;
}

/* As tx_has_room(), and the self queue has room, and no mbuf is reserved. */
static inline bool
tx_is_ready(const struct link_worker *w, const struct tx_port *t, const struct path *path,
	uint32_t len)
{
	return tx_has_room(t, path, len) && w->mbuf == NULL &&
		w->self_head - w->self_tail != SELF_QUEUE;
}

/* Flush the batch, take back a reserved mbuf and get new ones. @retval false  no room or no mbuf */
static bool __rte_noinline
tx_make_ready(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	if (!tx_room(w, t) || w->self_head - w->self_tail == SELF_QUEUE)
		return false;
	if (w->mbuf != NULL) /* reserved and not committed: take it back */
		w->from->cache[w->from->num_cached++] = w->mbuf;
	w->mbuf = NULL;
	if (len + path->trailer_len > t->room) {
		/* longer than the port's MTU: the caller's path MTU is wrong */
		link_count(&w->counters[t->port].tx_no_mbuf, 1);
		return false;
	}
	return t->num_cached > 0 || tx_refill(w, t);
}

static __rte_always_inline uint8_t *
tx_take_mbuf(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	if (unlikely(!tx_is_ready(w, t, path, len)) && !tx_make_ready(w, t, path, len))
		return NULL;
	w->mbuf = t->cache[--t->num_cached];
	w->from = t;
	w->path = path;
	w->bth_len = len;
	return tx_bth(w->mbuf);
}

uint8_t *
tx_port_reserve(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	return tx_take_mbuf(w, t, path, len);
}

static uint8_t *
sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct link_worker *w = (struct link_worker *)sink;

	return tx_take_mbuf(w, w->tx[path->av.port], path, len);
}

/*
 * Native InfiniBand: a port that is not Active sends only SMPs, and a disabled port only SMPs to
 * itself. Only SMPs use VL 15: an SL that is mapped to it cannot carry data. The LID gives the MAC
 * address, unless the path already has one.
 */
static uint64_t
tx_ib_next_hop(struct link_worker *w, const struct path *path, const uint8_t *bth)
{
	bool smp = (get_be32(bth + BTH_DESTQP) & 0xFFFFFF) == 0;
	const struct link_port *p = &w->link->port[path->av.port];
	const struct port_attr *attr = link_port_attr(w->link, path->av.port);
	struct link_counters *c = &w->counters[path->av.port];
	uint64_t mac = mac_word(path->av.dmac);

	if (!smp && (attr->state != PORT_STATE_ACTIVE || path->av.vl == LRH_VL_SMP)) {
		link_count(&c->tx_port_state, 1);
		return 0;
	}
	if (mac == 0)
		mac = lid_route(p, attr, path->av.dlid) & MAC_MASK;
	if (unlikely(attr->disabled) && mac != p->mac_word) {
		link_count(&c->tx_port_state, 1);
		return 0;
	}
	if (unlikely(mac == 0)) {
		link_count(&c->tx_flooded, 1);
		mac = MAC_MASK;
	}
	return mac | NEIGH_VALID | (mac == p->mac_word ? NEIGH_SELF : 0);
}

/* Pad a short frame, after its CRC. @return bytes added */
static uint32_t
tx_pad_frame(const struct path *path, uint8_t *bth, uint32_t bth_len)
{
	uint32_t len = path->header_len + bth_len + path->trailer_len;

	if (len >= ETH_MIN_LEN)
		return 0;
	memset(bth + bth_len + path->trailer_len, 0, ETH_MIN_LEN - len);
	return ETH_MIN_LEN - len;
}

/* The next hop's MAC and flags; without NEIGH_VALID the packet is dropped, and counted. */
static inline uint64_t
tx_next_hop(struct link_worker *w, const struct path *path, const uint8_t *bth)
{
	uint64_t mac;

	if (likely(path->neighbour != PATH_NO_NEIGHBOUR)) {
		mac = RELAXED_GET(w->link->neigh_mac[path->neighbour]);
		if (unlikely(!(mac & NEIGH_VALID)))
			link_count(&w->counters[path->av.port].tx_unresolved, 1);
		return mac;
	}
	if (path->av.encap == ENCAP_IB)
		return tx_ib_next_hop(w, path, bth);
	/*
	 * the answer to a datagram goes to the datagram's source MAC, which may be the port itself
	 */
	mac = mac_word(path->av.dmac) | NEIGH_VALID;
	if (memcmp(path->av.dmac, path->av.smac, MAC_LEN) == 0)
		mac |= NEIGH_SELF;
	return mac;
}

/* Set the frame's place and length in the mbuf, and its destination MAC. */
static inline void
tx_set_frame(const struct path *path, struct rte_mbuf *m, uint64_t mac, uint32_t len)
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
	uint8_t *bth = tx_bth(m);
	uint64_t mac = tx_next_hop(w, path, bth);
	uint32_t pad = 0, len;

	w->mbuf = NULL;
	if (unlikely(!(mac & NEIGH_VALID))) {
		t->cache[t->num_cached++] = m;
		return;
	}
	if (unlikely(path->neighbour == PATH_NO_NEIGHBOUR))
		pad = tx_pad_frame(path, bth, w->bth_len);
	if (unlikely(pad > 0))
		link_count(&w->counters[path->av.port].tx_pad, pad);
	if (w->bth_len <= BTH_LEN + PATH_EXT_MAX) /* headers and no payload */
		len = path_finish_copy(path, bth, w->bth_len, NULL, 0, w->ip_id++);
	else
		len = path_finish(path, bth, w->bth_len, w->ip_id++);
	len += pad;
	tx_set_frame(path, m, mac, len);
	if (unlikely(mac & NEIGH_SELF))
		tx_send_to_self(w, path->av.port, m);
	else
		tx_queue(w, t, m, len);
}

/* For a full batch, no cached mbuf, an own or unresolved address. */
static bool __rte_noinline
sink_send_by_steps(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	return tx_send_by_steps(sink, path, headers, headers_len, from, len);
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

	if (unlikely(!COMMON_CASE(path->neighbour != PATH_NO_NEIGHBOUR &&
		    tx_has_room(t, path, headers_len + len + 3))))
		return sink_send_by_steps(sink, path, headers, headers_len, from, len);
	mac = RELAXED_GET(w->link->neigh_mac[path->neighbour]);
	if (unlikely((mac ^ NEIGH_VALID) >= NEIGH_SELF)) /* not valid, or the port itself */
		return sink_send_by_steps(sink, path, headers, headers_len, from, len);
	m = t->cache[--t->num_cached];
	bth = tx_bth(m);
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
		/* the mbuf has room for all of it */
		memcpy(bth, headers->bytes, sizeof(headers->bytes));
		len = path_finish_copy(path, bth, headers_len, from, len, w->ip_id++);
	}
	tx_set_frame(path, m, mac, len);
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

	guard_release(m);
	if (h < (uint8_t *)m->buf_addr || !tx_room(w, t)) {
		link_count(&w->counters[p->index].tx_full, 1);
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
	/* the answer may be in the request's mbuf, whose receive flags must go */
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
	*l3 = tx_bth(m) + ETH_LEN + VLAN_LEN;
	return m;
}

/* Take frames from the rings of workers that have no queue on a port. */
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

/*
 * Tell other workers how many of their frames have left (link_tx_left()). If a batch is never
 * empty, they learn it in steps.
 */
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
		if (t->left < t->mark ||
			(t->ringed > 0 &&
				(int32_t)(__atomic_load_n(&w->link->port[i].tx_ring_left[w->id],
						  __ATOMIC_ACQUIRE) -
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
