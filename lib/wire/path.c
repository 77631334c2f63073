/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Compile an address vector into the headers before a BTH (rc-transport 1, 10). */

#include <rte_ip.h>

#include "wire/crc32_kernels.h"
#include "wire/layout.h"
#include "wire/wire.h"

#define IPV4_DF           0x4000
#define HOP_LIMIT_DEFAULT 64

uint16_t
rocev2_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
	uint32_t fl = flow_label & 0xFFFFF;
	uint64_t v;

	if (fl == 0) {
		v = (uint64_t)lqpn * rqpn;
		v ^= v >> 20;
		v ^= v >> 40;
		fl = v & 0xFFFFF;
	}
	return 0xC000 | ((fl & 0x3FFF) ^ (fl >> 14));
}

static uint8_t
hop_limit(const struct av *av)
{
	return av->hop_limit ? av->hop_limit : HOP_LIMIT_DEFAULT;
}

static uint8_t *
put_ethernet(uint8_t *h, const struct av *av, uint16_t ethertype)
{
	memcpy(h, av->dmac, 6);
	memcpy(h + 6, av->smac, 6);
	h += 12;
	if (av->vlan != PATH_NO_VLAN) {
		put_be16(h, ETHERTYPE_VLAN);
		put_be16(h + 2, (av->sl & 7) << 13 | (av->vlan & 0xFFF));
		h += VLAN_LEN;
	}
	put_be16(h, ethertype);
	return h + 2;
}

/*
 * The checksum field of the template holds the sum of the constant fields, not complemented;
 * path_finish() adds total length and ID and complements it.
 */
static uint8_t *
put_ipv4(uint8_t *h, const struct av *av)
{
	uint16_t sum;

	h[0] = IPV4_PLAIN;
	h[IPV4_TOS] = av->traffic_class;
	put_be16(h + IPV4_FRAG, IPV4_DF);
	h[IPV4_TTL] = hop_limit(av);
	h[IPV4_PROTO] = IP_PROTO_UDP;
	memcpy(h + IPV4_SRC, av->sgid.raw + 12, 4);
	memcpy(h + IPV4_DST, av->dgid.raw + 12, 4);
	sum = rte_raw_cksum(h, IPV4_LEN);
	memcpy(h + IPV4_CHECKSUM, &sum, sizeof(sum));
	return h + IPV4_LEN;
}

/* IPv6 header or GRH */
static uint8_t *
put_ipv6(uint8_t *h, const struct av *av, uint8_t next)
{
	put_be32(h, 6u << 28 | (uint32_t)av->traffic_class << 20 | (av->flow_label & 0xFFFFF));
	h[IPV6_NEXT] = next;
	h[IPV6_HOP_LIMIT] = hop_limit(av);
	memcpy(h + IPV6_SRC, av->sgid.raw, 16);
	memcpy(h + IPV6_DST, av->dgid.raw, 16);
	return h + IPV6_LEN;
}

static uint8_t *
put_udp(uint8_t *h, uint16_t sport)
{
	put_be16(h + UDP_SPORT, sport);
	put_be16(h + UDP_DPORT, ROCEV2_PORT);
	return h + UDP_LEN;
}

static uint8_t *
put_lrh(uint8_t *h, const struct av *av, uint32_t rqpn)
{
	h[0] = (rqpn == 0 ? LRH_VL_SMP : av->vl & 0xF) << 4;
	h[1] = (av->sl & 0xF) << 4 | (av->grh ? LRH_LNH_GLOBAL : LRH_LNH_LOCAL);
	put_be16(h + LRH_DLID, av->dlid);
	put_be16(h + LRH_SLID, av->slid);
	return h + LRH_LEN;
}

void
path_init(struct path *p, const struct av *av, uint32_t lqpn, uint32_t rqpn)
{
	static const uint16_t ethertypes[] = {
		[ENCAP_ROCEV2_IPV4] = ETHERTYPE_IPV4,
		[ENCAP_ROCEV2_IPV6] = ETHERTYPE_IPV6,
		[ENCAP_ROCEV1] = ETHERTYPE_ROCEV1,
		[ENCAP_IB] = ETHERTYPE_IB,
	};
	bool own = av->encap == ENCAP_IB && av->ethertype != 0;
	uint8_t *h;

	RTE_ASSERT(av->encap <= ENCAP_IB && (av->vlan == PATH_NO_VLAN || av->vlan <= 0xFFF));
	RTE_ASSERT(lqpn <= QPN_MULTICAST && rqpn <= QPN_MULTICAST);
	memset(p, 0, sizeof(*p));
	p->av = *av;
	p->trailer_len = ICRC_LEN;
	p->neighbour = PATH_NO_NEIGHBOUR;
	if (av->encap <= ENCAP_ROCEV2_IPV6)
		p->udp_sport = rocev2_sport(av->flow_label, lqpn, rqpn);
	h = put_ethernet(p->header, av, own ? av->ethertype : ethertypes[av->encap]);
	p->l3_off = h - p->header;
	switch (av->encap) {
	case ENCAP_ROCEV2_IPV4:
		h = put_udp(put_ipv4(h, av), p->udp_sport);
		path_init_states(p);
		break;
	case ENCAP_ROCEV2_IPV6:
		h = put_udp(put_ipv6(h, av, IP_PROTO_UDP), p->udp_sport);
		break;
	case ENCAP_ROCEV1:
		h = put_ipv6(h, av, GRH_NEXT_IBA);
		break;
	case ENCAP_IB:
		h = put_lrh(h, av, rqpn);
		if (av->grh)
			h = put_ipv6(h, av, GRH_NEXT_IBA);
		p->trailer_len = ICRC_LEN + VCRC_LEN;
		break;
	}
	p->header_len = h - p->header;
	RTE_ASSERT(p->header_len <= PATH_HEADER_MAX && p->trailer_len <= PATH_TRAILER_MAX);
}
