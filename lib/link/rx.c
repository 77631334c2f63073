/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Receive frames from ethdevs and parse them into struct packet. Frames that are not for us, or not
 * transport packets, end here with a verdict.
 */

#include <rte_prefetch.h>

#include "link/guard.h"
#include "link/lids.h"
#include "link/control.h"
#include "wire/parse_plain.h"

/* rx_classify(): no verdict yet, a transport packet for the engine */
#define TRANSPORT VERDICT_COUNT

/* ff02::1, or ff02::1:ffXX:XXXX of one of our addresses */
static bool
rx_own_ipv6_group(const struct link_port *p, const uint8_t *addr)
{
	bool all = memcmp(addr, nd_all_nodes, 16) == 0;
	unsigned int i;

	if (!all && memcmp(addr, nd_solicited, ND_SOLICITED_LEN) != 0)
		return false;
	for (i = 0; i < port_num_addr(p); i++) {
		const union gid *own = &p->cfg.addr[i].gid;

		if (gid_is_ipv4(own))
			continue;
		if (all || memcmp(addr + ND_SOLICITED_LEN, own->raw + ND_SOLICITED_LEN, 3) == 0)
			return true;
	}
	return false;
}

static inline enum verdict
rx_transport(const struct rx_frame *f, enum encap encap, struct packet *pkt)
{
	enum verdict why;

	if (unlikely(!wire_parse(encap, f->l3, f->l3_len, pkt, &why)))
		return why;
	pkt->sl = f->pcp;
	return TRANSPORT;
}

/* @param k  a constant */
static __rte_always_inline enum verdict
rx_ip(struct link_worker *w, struct rx_frame *f, const struct ip_family *k, struct packet *pkt)
{
	const uint8_t *ip = f->l3, *dst = ip + k->dst;
	enum verdict why;
	bool group, own;

	if (unlikely(!ip_header_fits(ip, f->l3_len, k->version, &why)))
		return why;
	group = (dst[0] & k->group_mask) == k->group;
	own = group && k->version == 6 ? rx_own_ipv6_group(f->port, dst)
				       : ip_is_own(k, f->port, dst);
	if (unlikely(!own) && !(group && ip[k->next] == IP_PROTO_UDP))
		return VERDICT_NOT_OUR_IP;
	if (unlikely(f->multicast && !group)) /* RFC 1122 3.3.6 */
		return VERDICT_NOT_OUR_MAC;
	if (unlikely(ip[k->next] == k->icmp))
		return icmp_receive(w, f, k);
	return rx_transport(f, ENCAP_ROCEV2_IPV4, pkt); /* either version */
}

/* The destination GID must be one of ours; the transport checks multicast groups. */
static enum verdict
rx_rocev1(struct rx_frame *f, struct packet *pkt)
{
	enum verdict v;

	if (!f->port->cfg.rocev1)
		return VERDICT_ETHERTYPE;
	v = rx_transport(f, ENCAP_ROCEV1, pkt);
	if (v != TRANSPORT || pkt->dgid.raw[0] == 0xFF || port_has_address(f->port, &pkt->dgid))
		return v;
	return VERDICT_NOT_OUR_IP;
}

/* True for a GID of the port's table, and for the default prefix with any GUID of the table. */
static bool
rx_own_gid(const struct port_attr *attr, const union gid *gid)
{
	unsigned int i;

	if (port_gid_find(attr, gid, GID_IB) >= 0)
		return true;
	if (get_be64(gid->raw) != LINK_LOCAL_PREFIX)
		return false;
	for (i = 0; i < attr->num_gids; i++)
		if (attr->gid[i].gid.word[1] != 0 && attr->gid[i].gid.word[1] == gid->word[1])
			return true;
	return false;
}

/*
 * Native InfiniBand. A disabled port receives nothing from the wire. In any other state it accepts
 * SMPs to its LIDs or the permissive LID. An Armed or Active port also receives data packets to its
 * LIDs or a multicast LID; if they have a GRH, the DGID must be ours or a group, which the
 * transport checks. In state Armed, data packets are only passed on to set heard_data: worker 0
 * then makes the port Active.
 */
static enum verdict
rx_native_ib(struct link_worker *w, const struct rx_frame *f, struct packet *pkt)
{
	const struct port_attr *attr = link_port_attr(w->link, f->port->index);
	enum verdict why;
	uint32_t len;
	bool smp, ok;

	if (!wire_parse(ENCAP_IB, f->l3, f->l3_len, pkt, &why))
		return why;
	len = pkt->icrc_len + ICRC_LEN + VCRC_LEN;
	if (f->l3_len > len)
		link_count(w, f->port->index, rx_pad, f->l3_len - len);
	if (unlikely(attr->disabled) && !w->from_self)
		return VERDICT_PORT_STATE;
	smp = pkt->vl == LRH_VL_SMP;
	ok = port_lid_own(attr, pkt->dlid);
	if (unlikely(!ok) && pkt->dlid >= PORT_LID_MULTICAST)
		ok = pkt->dlid == PORT_LID_PERMISSIVE ? smp
						      : !smp && pkt->dest_qpn == QPN_MULTICAST;
	if (unlikely(!ok))
		return VERDICT_NOT_OUR_LID;
	if (unlikely(!smp && attr->state != PORT_STATE_ACTIVE)) {
		if (attr->state != PORT_STATE_ARMED)
			return VERDICT_PORT_STATE;
		if (port_lid_own(attr, pkt->dlid) && wire_crc_ok(pkt, &why))
			RELAXED_SET(f->port->heard_data, true);
	}
	if (unlikely(pkt->has_grh && !smp && pkt->dgid.raw[0] != 0xFF) &&
		!rx_own_gid(attr, &pkt->dgid))
		return VERDICT_NOT_OUR_IP;
	lid_learn(w, f->port, attr, pkt, f->eth + MAC_LEN);
	return TRANSPORT;
}

/*
 * Check the VLAN tag, in the frame or stripped by the PMD. A port with a VLAN accepts only that; a
 * port without VLAN accepts untagged frames and priority tags (VLAN 0).
 */
static inline bool
rx_vlan_ok(struct rx_frame *f, uint16_t *ethertype)
{
	uint16_t want = f->port->cfg.vlan;
	uint32_t tci = 0;

	if (unlikely(f->mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)) {
		tci = f->mbuf->vlan_tci;
	} else if (unlikely(*ethertype == ETHERTYPE_VLAN)) {
		if (f->l3_len < VLAN_LEN)
			return false;
		tci = get_be16(f->l3);
		*ethertype = get_be16(f->l3 + 2);
		f->l3 += VLAN_LEN;
		f->l3_len -= VLAN_LEN;
	}
	f->pcp = tci >> 13;
	return (tci & VLAN_VID) == (want == PATH_NO_VLAN ? 0 : want);
}

static inline bool
rx_mac_ok(struct rx_frame *f)
{
	const uint8_t *d = f->eth;
	uint64_t mac = mac_word(d);

	f->multicast = d[0] & 1;
	if (likely(!f->multicast))
		return mac == f->port->mac_word;
	/* broadcast, IPv6 groups, IPv4 groups */
	return mac == MAC_MASK || (d[0] == 0x33 && d[1] == 0x33) ||
		(d[0] == 0x01 && d[1] == 0x00 && d[2] == 0x5E);
}

static enum verdict __rte_noinline
rx_classify(struct link_worker *w, struct rx_frame *f, struct packet *pkt)
{
	uint16_t ethertype;

	if (unlikely(f->mbuf->data_len < ETH_LEN))
		return VERDICT_RUNT;
	f->eth = rte_pktmbuf_mtod(f->mbuf, uint8_t *);
	f->l3 = f->eth + ETH_LEN;
	f->l3_len = f->mbuf->data_len - ETH_LEN;
	/* Security: answers go to the source, and one frame must not make us send to a group */
	if (unlikely(f->eth[MAC_LEN] & 1))
		return VERDICT_SOURCE;
	ethertype = get_be16(f->eth + 12);
	if (unlikely(!rx_mac_ok(f))) {
		if (mac_word(f->eth + MAC_LEN) == f->port->mac_word && !f->port->cfg.ib)
			icmp_overheard(w, f);
		return VERDICT_NOT_OUR_MAC;
	}
	if (unlikely(!rx_vlan_ok(f, &ethertype)))
		return VERDICT_NOT_OUR_VLAN;
	if (unlikely(f->port->cfg.ib)) /* a native IB port has no IP, so it accepts nothing else */
		return ethertype == f->port->cfg.ethertype ? rx_native_ib(w, f, pkt)
							   : VERDICT_ETHERTYPE;
	switch (ethertype) {
	case ETHERTYPE_IPV4:
		return rx_ip(w, f, &ip_v4, pkt);
	case ETHERTYPE_IPV6:
		return rx_ip(w, f, &ip_v6, pkt);
	case ETHERTYPE_ROCEV1:
		return rx_rocev1(f, pkt);
	case ETHERTYPE_ARP:
		return arp_receive(w, f);
	default:
		return VERDICT_ETHERTYPE;
	}
}

/*
 * The parsers need a linear frame: copy a chained frame into one buffer and free it. @return NULL:
 * no buffer, the caller keeps m
 */
static struct rte_mbuf *
rx_linearise(const struct link_port *p, struct rte_mbuf *m)
{
	struct rte_mbuf *n = rte_pktmbuf_copy(m, p->pool->mp, 0, UINT32_MAX);

	if (n == NULL || n->nb_segs > 1) {
		rte_pktmbuf_free(n);
		return NULL;
	}
	rte_pktmbuf_free(m);
	guard_received(n);
	return n;
}

/*
 * The common case: the packet is in the first segment, and no VLAN tag was taken off.
 * rx_classify() makes the same checks.
 */
static inline bool
rx_plain(const struct link_port *p, const struct rte_mbuf *m, const uint8_t *eth,
	struct packet *pkt)
{
	return likely(!(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)) &&
		rx_template_parse(&p->rx_template, eth, m->data_len, pkt);
}

static inline void
rx_set_origin(struct packet *pkt, const struct link_worker *w, const struct link_port *p,
	const uint8_t *eth, struct rte_mbuf *m)
{
	pkt->port = p->index;
	pkt->rx_time = w->now;
	pkt->smac = eth + MAC_LEN;
	pkt->mbuf = m;
}

/*
 * Receive any other frame.
 *
 * @param m  set to NULL if a control protocol took the mbuf
 * @return   NULL: no transport packet; its verdict is counted
 */
static struct packet *__rte_noinline
rx_other_frame(struct link_worker *w, struct link_port *p, struct rte_mbuf **m)
{
	struct rx_frame f = { .mbuf = *m, .port = p };
	struct packet *pkt;
	enum verdict v;

	if (unlikely(f.mbuf->nb_segs > 1)) {
		f.mbuf = rx_linearise(p, f.mbuf);
		if (f.mbuf == NULL) {
			link_count(w, p->index, verdict[VERDICT_NO_MBUF], 1);
			return NULL;
		}
	}
	pkt = rte_mbuf_to_priv(f.mbuf);
	v = rx_classify(w, &f, pkt);
	*m = f.mbuf;
	if (likely(v == TRANSPORT)) {
		rx_set_origin(pkt, w, p, f.eth, f.mbuf);
		return pkt;
	}
	link_count(w, p->index, verdict[v], 1);
	return NULL;
}

static unsigned int
rx_burst(struct link_worker *w, struct link_port *p, struct rte_mbuf **mbufs, unsigned int n,
	struct packet **pkts)
{
	unsigned int i, got = 0, num_done = 0;
	struct rte_mbuf *done[LINK_BURST];
	uint64_t bytes = 0;

	for (i = 0; i < n; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
		rte_prefetch0(rte_mbuf_to_priv(mbufs[i]));
	}
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = mbufs[i];
		struct packet *pkt = rte_mbuf_to_priv(m);
		const uint8_t *eth = rte_pktmbuf_mtod(m, const uint8_t *);

		bytes += m->pkt_len;
		guard_received(m);
		if (likely(rx_plain(p, m, eth, pkt))) {
			rx_set_origin(pkt, w, p, eth, m);
			pkts[got++] = pkt;
			continue;
		}
		pkt = rx_other_frame(w, p, &mbufs[i]);
		if (pkt != NULL)
			pkts[got++] = pkt;
		else if (mbufs[i] != NULL) {
			guard_release(mbufs[i]);
			done[num_done++] = mbufs[i];
		}
	}
	link_count(w, p->index, rx_packets, n);
	link_count(w, p->index, rx_bytes, bytes);
	if (unlikely(num_done > 0))
		rte_pktmbuf_free_bulk(done, num_done);
	return got;
}

/* Receive a burst of frames that one port has sent to itself. */
static unsigned int
rx_burst_from_self(struct link_worker *w, struct packet **pkts)
{
	struct rte_mbuf *mbufs[LINK_BURST], *m;
	unsigned int n = 0;

	while (n < LINK_BURST && w->self_tail != w->self_head) {
		m = w->self[w->self_tail % SELF_QUEUE];
		if (n > 0 && m->port != mbufs[0]->port)
			break;
		mbufs[n++] = m;
		w->self_tail++;
	}
	w->from_self = true;
	n = rx_burst(w, &w->link->port[mbufs[0]->port], mbufs, n, pkts);
	w->from_self = false;
	return n;
}

unsigned int
link_rx(struct link_worker *w, uint64_t now, struct packet **pkts)
{
	struct rte_mbuf *mbufs[LINK_BURST];
	struct rx_queue *q;
	unsigned int i, n, got = 0;

	w->now = now;
	if (w->id == 0 && unlikely(ACQUIRE_GET(w->link->neigh->made) != w->neigh_seen))
		neigh_new(w, now);
	/* alternate between a burst from the self queue and one from a device */
	w->self_turn = !w->self_turn;
	if (unlikely(w->self_tail != w->self_head) && w->self_turn)
		got = rx_burst_from_self(w, pkts);
	for (i = 0; i < w->num_rx && got == 0; i++) {
		q = &w->rx[w->cursor];
		if (++w->cursor == w->num_rx)
			w->cursor = 0;
		if (unlikely(q->stopped))
			continue;
		ethdev_in_burst = q->port->ethdev;
		n = rte_eth_rx_burst(q->port->ethdev, q->queue, mbufs, LINK_BURST);
		if (n > 0)
			got = rx_burst(w, q->port, mbufs, n, pkts);
	}
	if (unlikely(w->self_tail != w->self_head) && got == 0)
		got = rx_burst_from_self(w, pkts);
	return got;
}

/* True if the mbuf can be returned to the pool directly: unshared, one segment, of that pool. */
static inline bool
rx_fits_pool(const struct rte_mbuf *m, const struct rte_mempool *mp)
{
	return m->pool == mp && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
		RTE_MBUF_DIRECT(m);
}

/* As rte_pktmbuf_free_bulk(), but faster for mbufs of one pool. */
static void
rx_free_burst(struct packet **pkts, unsigned int n)
{
	struct rte_mempool *mp = ((struct rte_mbuf *)pkts[0]->mbuf)->pool;
	struct rte_mbuf *back[LINK_BURST];
	unsigned int i, k = 0;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i]->mbuf;

		guard_release(m);
		if (likely(rx_fits_pool(m, mp)))
			back[k++] = m;
		else
			rte_pktmbuf_free(m);
	}
	if (likely(k > 0))
		rte_mempool_put_bulk(mp, (void **)back, k);
}

void
link_free(struct packet **pkts, unsigned int n)
{
	unsigned int k;

	for (; n > 0; pkts += k, n -= k) {
		k = RTE_MIN(n, (unsigned int)LINK_BURST);
		rx_free_burst(pkts, k);
	}
}
