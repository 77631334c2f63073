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

#include "base/common_case.h"
#include "link/guard.h"
#include "link/lids.h"
#include "link/private.h"

#define FULL_MS 250 /* longer than a busy machine stalls the process that empties the queue */

/* Pass the batch to the worker that owns a queue. @return number of frames taken */
static unsigned int __rte_noinline
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
	if (w->now - t->full_since >= link_ms(w->link, FULL_MS) ||
		link_port_attr(w->link, t->port)->state == PORT_STATE_DOWN)
		t->stuck = true;
	if (!t->stuck)
		return;
	if (t->ring != NULL && t->way == TX_QUEUE)
		sent = tx_to_ring(t);
	t->num -= sent;
	link_count(w, t->port, tx_full, t->num);
	rte_pktmbuf_free_bulk(t->mbuf + sent, t->num);
	t->num = 0;
	t->bytes = 0;
}

/* The queue takes frames again. */
static void __rte_noinline
tx_moves(struct link_worker *w, struct tx_port *t)
{
	uint64_t waited = w->now - t->full_since;

	t->full = false;
	t->stuck = false;
	link_count(w, t->port, tx_wait,
		(uint64_t)((unsigned __int128)waited * 1000000000 / w->link->cfg.hz));
}

/* @return number of frames taken */
static unsigned int
tx_offer(struct tx_port *t)
{
	if (likely(t->way == TX_QUEUE)) {
		ethdev_in_burst = t->ethdev;
		return rte_eth_tx_burst(t->ethdev, t->queue, t->mbuf, t->num);
	}
	return t->way == TX_STOPPED ? 0 : tx_to_ring(t);
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
		link_count(w, t->port, tx_packets, sent);
		link_count(w, t->port, tx_bytes, bytes - t->bytes);
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
		link_count(w, t->port, tx_no_mbuf, 1);
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
	link_count(w, port, tx_packets, 1);
	link_count(w, port, tx_bytes, m->pkt_len);
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

/* True if the batch and the self queue have room for the packet, and there is an mbuf for it. */
static inline bool
tx_is_ready(const struct link_worker *w, const struct tx_port *t, const struct path *path,
	uint32_t len)
{
	return t->num < LINK_BURST && t->num_cached > 0 && len + path->trailer_len <= t->room &&
		w->self_head - w->self_tail != SELF_QUEUE;
}

void
tx_take_back(struct link_worker *w)
{
	if (w->mbuf != NULL)
		tx_cache_put(w->from, w->mbuf);
	w->mbuf = NULL;
}

/* Flush the batch, take back a reserved mbuf and get new ones. @retval false  no room or no mbuf */
static bool __rte_noinline
tx_make_ready(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	if (!tx_room(w, t) || w->self_head - w->self_tail == SELF_QUEUE)
		return false;
	tx_take_back(w);
	if (len + path->trailer_len > t->room) {
		/* longer than the port's MTU: the caller's path MTU is wrong */
		link_count(w, t->port, tx_no_mbuf, 1);
		return false;
	}
	return t->num_cached > 0 || tx_refill(w, t);
}

uint8_t *
tx_port_reserve(struct link_worker *w, struct tx_port *t, const struct path *path, uint32_t len)
{
	if (unlikely(w->mbuf != NULL || !tx_is_ready(w, t, path, len)) &&
		!tx_make_ready(w, t, path, len))
		return NULL;
	w->mbuf = t->cache[--t->num_cached];
	w->from = t;
	w->path = path;
	w->bth_len = len;
	return tx_bth(w->mbuf);
}

static uint8_t *
sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct link_worker *w = (struct link_worker *)sink;

	return tx_port_reserve(w, w->tx[path->av.port], path, len);
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
	uint64_t mac = mac_word(path->av.dmac);

	if (!smp && (attr->state != PORT_STATE_ACTIVE || path->av.vl == LRH_VL_SMP)) {
		link_count(w, path->av.port, tx_port_state, 1);
		return 0;
	}
	if (mac == 0)
		mac = lid_route(p, attr, path->av.dlid) & MAC_MASK;
	if (unlikely(attr->disabled) && mac != p->mac_word) {
		link_count(w, path->av.port, tx_port_state, 1);
		return 0;
	}
	if (unlikely(mac == 0)) {
		link_count(w, path->av.port, tx_flooded, 1);
		mac = MAC_MASK;
	}
	return mac | NEIGH_VALID | (mac == p->mac_word ? NEIGH_SELF : 0);
}

/* The next hop of a path without a neighbour. */
static uint64_t __rte_noinline
tx_other_next_hop(struct link_worker *w, const struct path *path, const uint8_t *bth)
{
	uint64_t mac;

	if (path->av.encap == ENCAP_IB)
		return tx_ib_next_hop(w, path, bth);
	/*
	 * the answer to a datagram goes to the datagram's source MAC, which may be the port itself
	 */
	mac = mac_word(path->av.dmac);
	return mac | NEIGH_VALID | (mac == mac_word(path->av.smac) ? NEIGH_SELF : 0);
}

/* In the word of a next hop: the frame may be shorter than an Ethernet frame must be. */
#define TX_MAY_PAD (NEIGH_SELF >> 1)

/* What the caller of tx_packet() knows, constants. */
struct tx_shape {
	bool copy; /* headers and payload are still to be copied to the frame */
	bool neighbour; /* the path has one */
};

/* The next hop's MAC and flags; without NEIGH_VALID the packet is dropped, and counted. */
static __rte_always_inline uint64_t
tx_next_hop(struct link_worker *w, const struct path *path, const uint8_t *bth,
	struct tx_shape shape)
{
	uint64_t mac;

	if (!shape.neighbour && unlikely(path->neighbour == PATH_NO_NEIGHBOUR))
		return tx_other_next_hop(w, path, bth) | TX_MAY_PAD;
	mac = RELAXED_GET(w->link->neigh->mac[path->neighbour]);
	if (unlikely(!(mac & NEIGH_VALID)))
		link_count(w, path->av.port, tx_unresolved, 1);
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
	put_mac((uint8_t *)m->buf_addr + off, mac);
}

/* True if the packet gets no ICRC, see link_config.icrc_off. Native IB always has one. */
static inline bool
tx_is_bare(const struct link_worker *w, const struct path *path)
{
	return unlikely(w->link->cfg.icrc_off) && path->av.encap != ENCAP_IB;
}

/* Pad a short frame of ours with zeros to the least length of Ethernet, if the buffer has room. */
static void
tx_fill_up(struct link_worker *w, const struct tx_port *t, struct rte_mbuf *m)
{
	uint16_t pad = m->pkt_len < ETH_MIN_LEN ? ETH_MIN_LEN - m->pkt_len : 0;
	char *end = rte_pktmbuf_append(m, pad);

	if (end == NULL)
		return;
	memset(end, 0, pad);
	link_count(w, t->port, tx_pad, pad);
}

/* A frame that is short, or to the port itself */
static void __rte_noinline
tx_odd_frame(struct link_worker *w, struct tx_port *t, struct rte_mbuf *m, uint64_t mac)
{
	if (mac & TX_MAY_PAD)
		tx_fill_up(w, t, m);
	if (mac & NEIGH_SELF)
		tx_send_to_self(w, t->port, m);
	else
		tx_queue(w, t, m, m->pkt_len);
}

/*
 * Send the packet in `m` to the next hop, or to the port itself: complete the headers before its
 * BTH and the ICRC. Without shape.copy, `headers_len` bytes through the padding are there.
 */
static __rte_always_inline void
tx_packet(struct link_worker *w, struct tx_port *t, struct rte_mbuf *m, const struct path *path,
	struct tx_shape shape, const uint8_t *headers, uint32_t headers_len, const void *from,
	uint32_t len)
{
	uint8_t *bth = tx_bth(m);
	uint64_t mac = tx_next_hop(w, path, shape.copy ? headers : bth, shape);

	if (unlikely(!(mac & NEIGH_VALID))) {
		tx_cache_put(t, m);
		return;
	}
	if (tx_is_bare(w, path)) {
		if (shape.copy) /* the mbuf has room for all of it */
			memcpy(bth, headers, sizeof(struct tx_headers));
		len = path_finish_bare(path, bth, headers_len, from, len, w->ip_id++);
	} else if (shape.copy) {
		len = path_finish_send(path, bth, headers, headers_len, from, len, w->ip_id++);
	} else if (headers_len <= BTH_LEN + PATH_EXT_MAX) { /* headers and no payload */
		len = path_finish_copy(path, bth, headers_len, NULL, 0, w->ip_id++);
	} else {
		len = path_finish(path, bth, headers_len, w->ip_id++);
	}
	tx_set_frame(path, m, mac, len);
	if (likely((mac ^ NEIGH_VALID) < TX_MAY_PAD))
		tx_queue(w, t, m, len);
	else
		tx_odd_frame(w, t, m, mac);
}

static void
sink_commit(struct tx_sink *sink)
{
	struct link_worker *w = (struct link_worker *)sink;
	struct rte_mbuf *m = w->mbuf;

	w->mbuf = NULL;
	tx_packet(w, w->from, m, w->path, (struct tx_shape){ 0 }, NULL, w->bth_len, NULL, 0);
}

/* For a full batch, no mbuf, or a path without a neighbour. */
static bool __rte_noinline
sink_send_any(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	struct link_worker *w = (struct link_worker *)sink;
	struct tx_port *t = w->tx[path->av.port];
	uint32_t bth_len = headers_len + wire_padded(len);

	if (!tx_is_ready(w, t, path, bth_len) && !tx_make_ready(w, t, path, bth_len))
		return false;
	tx_packet(w, t, t->cache[--t->num_cached], path, (struct tx_shape){ .copy = true },
		headers->bytes, headers_len, from, len);
	return true;
}

static bool
sink_send(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	struct link_worker *w = (struct link_worker *)sink;
	struct tx_port *t = w->tx[path->av.port];

	if (unlikely(!COMMON_CASE(path->neighbour != PATH_NO_NEIGHBOUR &&
		    tx_is_ready(w, t, path, headers_len + wire_padded(len)))))
		return sink_send_any(sink, path, headers, headers_len, from, len);
	tx_packet(w, t, t->cache[--t->num_cached], path, (struct tx_shape){ true, true },
		headers->bytes, headers_len, from, len);
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
		link_count(w, p->index, tx_full, 1);
		rte_pktmbuf_free(m);
		return;
	}
	put_mac(h, dmac);
	put_mac(h + MAC_LEN, p->mac_word);
	if (tagged) {
		put_be16(h + 12, ETHERTYPE_VLAN);
		put_be16(h + 14, p->cfg.vlan & VLAN_VID);
	}
	put_be16(l3 - 2, ethertype);
	m->data_off = h - (uint8_t *)m->buf_addr;
	m->data_len = len;
	m->pkt_len = len;
	tx_fill_up(w, t, m);
	/* the answer may be in the request's mbuf, whose receive flags must go */
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	tx_queue(w, t, m, m->pkt_len);
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
static void
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
		RELEASE_SET(*h->ring_left, h->marked);
		h->marked = h->taken;
		h->mark = t->left + t->num;
		if (t->num == 0)
			RELEASE_SET(*h->ring_left, h->marked);
	}
}

struct tx_sink *
link_tx_sink(struct link_worker *w)
{
	return &w->sink;
}

/* Even where a port has no other frames. */
static void __rte_noinline
tx_flush_vl15(struct link_worker *w)
{
	struct worker_port *o;

	WORKER_FOREACH_PORT(o, w)
		if (o->vl15.num > 0)
			tx_burst(w, &o->vl15);
}

void
link_tx_flush(struct link_worker *w, uint64_t now)
{
	struct worker_port *o;

	w->now = now;
	if (unlikely(w->num_handoff > 0))
		tx_handoff_drain(w);
	if (unlikely(w->smp_sink.reserve != NULL))
		tx_flush_vl15(w);
	WORKER_FOREACH_PORT(o, w)
		if (o->tx.num > 0)
			tx_burst(w, &o->tx);
	if (unlikely(w->num_handoff > 0))
		tx_handoff_tell(w);
}

void
link_tx_mark(struct link_worker *w)
{
	struct worker_port *o;

	WORKER_FOREACH_PORT(o, w) {
		o->tx.mark = o->tx.left + o->tx.num;
		o->tx.ring_mark = o->tx.ringed;
		o->vl15.mark = o->vl15.left + o->vl15.num;
	}
}

bool
link_tx_left(const struct link_worker *w)
{
	const struct worker_port *o;
	uint32_t left;

	WORKER_FOREACH_PORT(o, w) {
		left = ACQUIRE_GET(w->link->port[o->tx.port].tx_ring_left[w->id]);
		if (o->tx.left < o->tx.mark || o->vl15.left < o->vl15.mark ||
			(o->tx.ringed > 0 && (int32_t)(left - o->tx.ring_mark) < 0))
			return false;
	}
	return true;
}

void
tx_init(struct link_worker *w)
{
	unsigned int i;

	w->sink.reserve = sink_reserve;
	w->sink.commit = sink_commit;
	w->sink.send = sink_send;
	for (i = 0; i < w->link->num_ports; i++) {
		w->tx[i] = &w->port[i].tx;
		tx_port_init(w, w->tx[i], i);
	}
}
