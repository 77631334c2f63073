/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * From an ethdev's burst to packet views: what is not for us, or not for the transport, ends here
 * with its verdict.
 */

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "link/lids.h"
#include "link/private.h"
#include "wire/parse_plain.h"

/* classify(): no verdict yet, a transport packet for the engine */
#define TRANSPORT VERDICT_COUNT

static bool
own_ipv4(const struct link_port *p, const uint8_t *addr)
{
	unsigned int i;
	uint32_t a;

	memcpy(&a, addr, sizeof(a));
	for (i = 0; i < p->num_ipv4; i++)
		if (likely(p->ipv4[i] == a))
			return true;
	return false;
}

static bool
own_ipv6(const struct link_port *p, const uint8_t *addr)
{
	union gid g;
	unsigned int i;

	memcpy(g.raw, addr, sizeof(g));
	for (i = 0; i < p->num_ipv6; i++)
		if (likely(gid_equal(&p->ipv6[i], &g)))
			return true;
	return false;
}

/* ff02::1, or ff02::1:ffXX:XXXX of one of our addresses */
static bool
own_ipv6_group(const struct link_port *p, const uint8_t *addr)
{
	static const uint8_t all_nodes[16] = { 0xFF, 0x02, [15] = 1 };
	static const uint8_t solicited[13] = { 0xFF, 0x02, [11] = 1, [12] = 0xFF };
	unsigned int i;

	if (memcmp(addr, all_nodes, sizeof(all_nodes)) == 0)
		return p->num_ipv6 > 0;
	if (memcmp(addr, solicited, sizeof(solicited)) != 0)
		return false;
	for (i = 0; i < p->num_ipv6; i++)
		if (memcmp(addr + 13, p->ipv6[i].raw + 13, 3) == 0)
			return true;
	return false;
}

static inline enum verdict
transport(const struct rx_frame *f, enum encap encap, struct packet *pkt)
{
	enum verdict why;

	if (unlikely(!wire_parse(encap, f->l3, f->l3_len, pkt, &why)))
		return why;
	pkt->sl = f->pcp;
	return TRANSPORT;
}

static inline enum verdict
ipv4(struct link_worker *w, struct rx_frame *f, struct packet *pkt)
{
	const uint8_t *ip = f->l3;
	bool group;

	if (unlikely(f->l3_len < IPV4_LEN))
		return VERDICT_RUNT;
	if (unlikely(ip[0] >> 4 != 4))
		return VERDICT_IP_HEADER;
	group = (ip[IPV4_DST] & 0xF0) == 0xE0;
	if (unlikely(!own_ipv4(f->port, ip + IPV4_DST)) && !(group && ip[IPV4_PROTO] == PROTO_UDP))
		return VERDICT_NOT_OUR_IP;
	if (unlikely(f->multicast && !group)) /* RFC 1122 3.3.6 */
		return VERDICT_NOT_OUR_MAC;
	if (unlikely(ip[IPV4_PROTO] == PROTO_ICMP))
		return icmp_receive(w, f);
	return transport(f, ENCAP_ROCEV2_IPV4, pkt);
}

static enum verdict
ipv6(struct link_worker *w, struct rx_frame *f, struct packet *pkt)
{
	const uint8_t *ip = f->l3;
	uint8_t next;
	bool group;

	if (f->l3_len < IPV6_LEN)
		return VERDICT_RUNT;
	if (ip[0] >> 4 != 6)
		return VERDICT_IP_HEADER;
	next = ip[IPV6_NEXT];
	group = ip[IPV6_DST] == 0xFF;
	if (group ? next != PROTO_UDP && !own_ipv6_group(f->port, ip + IPV6_DST) :
		    !own_ipv6(f->port, ip + IPV6_DST))
		return VERDICT_NOT_OUR_IP;
	if (f->multicast && !group)
		return VERDICT_NOT_OUR_MAC;
	if (next == PROTO_ICMPV6)
		return icmpv6_receive(w, f);
	return transport(f, ENCAP_ROCEV2_IPV6, pkt);
}

/* The destination GID must be one of ours; groups are the transport's matter. */
static enum verdict
rocev1(struct rx_frame *f, struct packet *pkt)
{
	static const uint8_t mapped[12] = { [10] = 0xFF, [11] = 0xFF };
	enum verdict v;
	bool own;

	if (!f->port->cfg.rocev1)
		return VERDICT_ETHERTYPE;
	v = transport(f, ENCAP_ROCEV1, pkt);
	if (v != TRANSPORT || pkt->dgid.raw[0] == 0xFF)
		return v;
	if (memcmp(pkt->dgid.raw, mapped, sizeof(mapped)) == 0)
		own = own_ipv4(f->port, pkt->dgid.raw + 12);
	else
		own = own_ipv6(f->port, pkt->dgid.raw);
	return own ? TRANSPORT : VERDICT_NOT_OUR_IP;
}

/* A GID of the port's table; its GUIDs are also good under the default prefix, whatever is set. */
static bool
own_gid(const struct port_attr *attr, const union gid *gid)
{
	static const uint8_t default_prefix[8] = { 0xFE, 0x80 };
	unsigned int i;

	if (port_gid_find(attr, gid, GID_IB) >= 0)
		return true;
	if (memcmp(gid->raw, default_prefix, sizeof(default_prefix)) != 0)
		return false;
	for (i = 0; i < attr->num_gids; i++)
		if (attr->gid[i].gid.word[1] != 0 && attr->gid[i].gid.word[1] == gid->word[1])
			return true;
	return false;
}

/*
 * Native InfiniBand: nothing comes in from the wire where the port is disabled. SMPs come to our
 * LIDs or to nobody's in particular, in any other state of the port; data to our LIDs or a group's,
 * where the port is armed or active, and if they have GIDs, to one of ours; groups are the
 * transport's matter. Valid data to our LIDs make an armed port active: worker 0 sees to that.
 */
static enum verdict
native_ib(struct link_worker *w, const struct rx_frame *f, struct packet *pkt)
{
	const struct port_attr *attr = link_port_attr(w->link, f->port->index);
	enum verdict why;
	uint32_t len;
	bool smp, ok;

	if (!wire_parse(ENCAP_IB, f->l3, f->l3_len, pkt, &why))
		return why;
	len = pkt->icrc_len + ICRC_LEN + VCRC_LEN;
	if (f->l3_len > len)
		count(&w->counters[f->port->index].rx_pad, f->l3_len - len);
	if (unlikely(attr->disabled) && !w->from_self)
		return VERDICT_PORT_STATE;
	smp = pkt->vl == LRH_VL_SMP;
	ok = port_lid_own(attr, pkt->dlid);
	if (unlikely(!ok) && pkt->dlid >= PORT_LID_MULTICAST)
		ok = pkt->dlid == PORT_LID_PERMISSIVE ?
			smp : !smp && pkt->dest_qpn == QPN_MULTICAST;
	if (unlikely(!ok))
		return VERDICT_NOT_OUR_LID;
	if (unlikely(!smp && attr->state != PORT_STATE_ACTIVE)) {
		if (attr->state != PORT_STATE_ARMED)
			return VERDICT_PORT_STATE;
		if (port_lid_own(attr, pkt->dlid) && wire_crc_ok(pkt, &why))
			__atomic_store_n(&f->port->heard_data, true, __ATOMIC_RELAXED);
	}
	if (unlikely(pkt->has_grh && !smp && pkt->dgid.raw[0] != 0xFF) &&
		!own_gid(attr, &pkt->dgid))
		return VERDICT_NOT_OUR_IP;
	lid_learn(w, f->port, attr, pkt, f->eth + MAC_LEN);
	return TRANSPORT;
}

/*
 * The tag, from the frame or from a PMD that took it off. A tagged port takes its VLAN only; an
 * untagged one takes priority tags (VLAN 0) too.
 */
static inline bool
vlan_ok(struct rx_frame *f, uint16_t *ethertype)
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
mac_ok(struct rx_frame *f)
{
	static const uint8_t broadcast[MAC_LEN] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
	const uint8_t *d = f->eth;

	f->multicast = d[0] & 1;
	if (likely(!f->multicast))
		return mac_word(d) == f->port->mac_word;
	/* broadcast, IPv6 groups, IPv4 groups */
	return memcmp(d, broadcast, MAC_LEN) == 0 || (d[0] == 0x33 && d[1] == 0x33) ||
		(d[0] == 0x01 && d[1] == 0x00 && d[2] == 0x5E);
}

static enum verdict __rte_noinline
classify(struct link_worker *w, struct rx_frame *f, struct packet *pkt)
{
	uint16_t ethertype;

	if (unlikely(f->mbuf->data_len < ETH_LEN))
		return VERDICT_RUNT;
	f->eth = rte_pktmbuf_mtod(f->mbuf, uint8_t *);
	f->l3 = f->eth + ETH_LEN;
	f->l3_len = f->mbuf->data_len - ETH_LEN;
	ethertype = get_be16(f->eth + 12);
	if (unlikely(!mac_ok(f))) {
		if (mac_word(f->eth + MAC_LEN) == f->port->mac_word && !f->port->cfg.ib)
			icmp_overheard(w, f);
		return VERDICT_NOT_OUR_MAC;
	}
	if (unlikely(!vlan_ok(f, &ethertype)))
		return VERDICT_NOT_OUR_VLAN;
	if (unlikely(f->port->cfg.ib)) /* and nothing else: no IP stands behind this port */
		return ethertype == f->port->cfg.ethertype ? native_ib(w, f, pkt) :
							     VERDICT_ETHERTYPE;
	switch (ethertype) {
	case ETHERTYPE_IPV4:
		return ipv4(w, f, pkt);
	case ETHERTYPE_IPV6:
		return ipv6(w, f, pkt);
	case ETHERTYPE_ROCEV1:
		return rocev1(f, pkt);
	case ETHERTYPE_ARP:
		return arp_receive(w, f);
	default:
		return VERDICT_ETHERTYPE;
	}
}

/*
 * Parsers want one piece: a chained frame is copied into a buffer that holds the largest frame.
 * NULL: it stays
 */
static struct rte_mbuf *
linearise(const struct link_port *p, struct rte_mbuf *m)
{
	struct rte_mbuf *n = rte_pktmbuf_alloc(p->pool->mp);
	char *to;

	if (n == NULL)
		return NULL;
	to = rte_pktmbuf_append(n, RTE_MIN(m->pkt_len, (uint32_t)UINT16_MAX));
	if (to == NULL || rte_pktmbuf_read(m, 0, m->pkt_len, to) == NULL) {
		rte_pktmbuf_free(n);
		return NULL;
	}
	n->ol_flags = m->ol_flags & (RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
	n->vlan_tci = m->vlan_tci;
	rte_pktmbuf_free(m);
	return n;
}

/*
 * Most frames: as the port's template says, the packet in the first piece, and nothing else wrong
 * with it. All that is looked at here classify() looks at, too.
 */
static inline bool
plain(const struct link_port *p, const struct rte_mbuf *m, const uint8_t *eth, struct packet *pkt)
{
	return likely(m->data_len >= ETH_LEN + WIRE_PLAIN_LEN) &&
		likely(!(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)) &&
		likely(rx_template_match(&p->rx_template, eth)) &&
		likely(wire_parse_plain(eth + ETH_LEN, m->data_len - ETH_LEN, pkt));
}

static inline void
arrived(struct packet *pkt, const struct link_worker *w, const struct link_port *p,
	const uint8_t *eth, struct rte_mbuf *m)
{
	pkt->port = p->index;
	pkt->rx_time = w->now;
	pkt->smac = eth + MAC_LEN;
	pkt->mbuf = m;
}

/*
 * Any other frame.
 *
 * @param m  set to NULL if it has been taken
 * @return   NULL: no transport packet; it is counted
 */
static struct packet * __rte_noinline
receive_other(struct link_worker *w, struct link_port *p, struct rte_mbuf **m)
{
	struct link_counters *c = &w->counters[p->index];
	struct rx_frame f = { .mbuf = *m, .port = p };
	struct packet *pkt;
	enum verdict v;

	if (unlikely(f.mbuf->nb_segs > 1)) {
		f.mbuf = linearise(p, f.mbuf);
		if (f.mbuf == NULL) {
			count(&c->verdict[VERDICT_NO_MBUF], 1);
			return NULL;
		}
	}
	pkt = rte_mbuf_to_priv(f.mbuf);
	v = classify(w, &f, pkt);
	*m = f.mbuf;
	if (likely(v == TRANSPORT)) {
		arrived(pkt, w, p, f.eth, f.mbuf);
		return pkt;
	}
	count(&c->verdict[v], 1);
	return NULL;
}

static unsigned int
receive(struct link_worker *w, struct link_port *p, struct rte_mbuf **mbufs, unsigned int n,
	struct packet **pkts)
{
	struct link_counters *c = &w->counters[p->index];
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
		if (likely(plain(p, m, eth, pkt))) {
			arrived(pkt, w, p, eth, m);
			pkts[got++] = pkt;
			continue;
		}
		pkt = receive_other(w, p, &mbufs[i]);
		if (pkt != NULL)
			pkts[got++] = pkt;
		else if (mbufs[i] != NULL)
			done[num_done++] = mbufs[i];
	}
	count(&c->rx_packets, n);
	count(&c->rx_bytes, bytes);
	if (unlikely(num_done > 0))
		rte_pktmbuf_free_bulk(done, num_done);
	return got;
}

/* A burst of what one port has sent to itself. */
static unsigned int
receive_self(struct link_worker *w, struct packet **pkts)
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
	n = receive(w, &w->link->port[mbufs[0]->port], mbufs, n, pkts);
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
	if (w->id == 0 && unlikely(neigh_count(w->link->neigh) != w->neigh_seen))
		neigh_new(w, now);
	/* a burst from ourselves and one from outside, in turn */
	w->self_turn = !w->self_turn;
	if (unlikely(w->self_tail != w->self_head) && w->self_turn)
		got = receive_self(w, pkts);
	for (i = 0; i < w->num_rx && got == 0; i++) {
		q = &w->rx[w->cursor];
		if (++w->cursor == w->num_rx)
			w->cursor = 0;
		if (unlikely(q->stopped))
			continue;
		n = rte_eth_rx_burst(q->port->ethdev, q->queue, mbufs, LINK_BURST);
		if (n > 0)
			got = receive(w, q->port, mbufs, n, pkts);
	}
	if (unlikely(w->self_tail != w->self_head) && got == 0)
		got = receive_self(w, pkts);
	return got;
}

/* In one piece, its own, with one holder, and of that pool: as it must be to go back there. */
static inline bool
goes_back(const struct rte_mbuf *m, const struct rte_mempool *mp)
{
	return m->pool == mp && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
		RTE_MBUF_DIRECT(m);
}

/* rte_pktmbuf_free_bulk() without the cases that a burst hardly ever has */
static void
free_burst(struct packet **pkts, unsigned int n)
{
	struct rte_mempool *mp = ((struct rte_mbuf *)pkts[0]->mbuf)->pool;
	struct rte_mbuf *back[LINK_BURST];
	unsigned int i, k = 0;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i]->mbuf;

		if (likely(goes_back(m, mp)))
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
		free_burst(pkts, k);
	}
}
