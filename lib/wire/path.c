/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* An address vector as bytes (rc-transport 1 and 10). */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/layout.h"
#include "wire/path.h"
#include "wire/wire.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86DD
#define ETHERTYPE_VLAN 0x8100
#define IPV4_DF        0x4000
#define IPPROTO_UDP    17
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

static uint32_t
fold_sum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return sum;
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
 * The checksum field of the template holds the plain sum of what does not change, total length and
 * ID being zero: path_finish() adds those two.
 */
static uint8_t *
put_ipv4(uint8_t *h, const struct av *av)
{
	uint64_t sum = 0;
	uint32_t i;

	h[0] = 0x45;
	h[IPV4_TOS] = av->traffic_class;
	put_be16(h + IPV4_FRAG, IPV4_DF);
	h[IPV4_TTL] = hop_limit(av);
	h[IPV4_PROTO] = IPPROTO_UDP;
	memcpy(h + IPV4_SRC, av->sgid.raw + 12, 4);
	memcpy(h + IPV4_DST, av->dgid.raw + 12, 4);
	for (i = 0; i < IPV4_LEN; i += 2)
		sum += get_be16(h + i);
	put_be16(h + IPV4_CHECKSUM, fold_sum(sum));
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

static void init_icrc_state(struct path *p);

void
path_init(struct path *p, const struct av *av, uint32_t lqpn, uint32_t rqpn)
{
	uint8_t *h = p->header;

	memset(p, 0, sizeof(*p));
	p->av = *av;
	p->trailer_len = ICRC_LEN;
	p->neighbour = PATH_NO_NEIGHBOUR;
	switch (av->encap) {
	case ENCAP_ROCEV2_IPV4:
		p->udp_sport = rocev2_sport(av->flow_label, lqpn, rqpn);
		h = put_ethernet(h, av, ETHERTYPE_IPV4);
		p->l3_off = h - p->header;
		h = put_udp(put_ipv4(h, av), p->udp_sport);
		init_icrc_state(p);
		break;
	case ENCAP_ROCEV2_IPV6:
		p->udp_sport = rocev2_sport(av->flow_label, lqpn, rqpn);
		h = put_ethernet(h, av, ETHERTYPE_IPV6);
		p->l3_off = h - p->header;
		h = put_udp(put_ipv6(h, av, IPPROTO_UDP), p->udp_sport);
		break;
	case ENCAP_ROCEV1:
		h = put_ethernet(h, av, ETHERTYPE_ROCEV1);
		p->l3_off = h - p->header;
		h = put_ipv6(h, av, GRH_NEXT_IBA);
		break;
	case ENCAP_IB:
		h = put_ethernet(h, av, av->ethertype ? av->ethertype : ETHERTYPE_IB);
		p->l3_off = h - p->header;
		h = put_lrh(h, av, rqpn);
		if (av->grh)
			h = put_ipv6(h, av, GRH_NEXT_IBA);
		p->trailer_len = ICRC_LEN + VCRC_LEN;
		break;
	}
	p->header_len = h - p->header;
}

/* In front of the BTH: the header, its lengths, ID and checksum. */
static inline void
put_ipv4_header(const struct path *p, uint8_t *bth, uint32_t l3_len, uint16_t ip_id)
{
	const uint8_t *header = p->header, *last = header + p->header_len - 16;
	uint8_t *frame = bth - p->header_len, *l3 = frame + p->l3_off;
	uint32_t sum;

	memcpy(frame, header, 16); /* 42 bytes in all, or 46 */
	memcpy(frame + 16, header + 16, 16);
	memcpy(bth - 16, last, 16);
	put_be16(l3 + IPV4_TOTAL, l3_len);
	put_be16(l3 + IPV4_ID, ip_id);
	sum = get_be16(header + p->l3_off + IPV4_CHECKSUM) + l3_len + ip_id;
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum += sum >> 16;
	put_be16(l3 + IPV4_CHECKSUM, ~sum);
	put_be16(l3 + IPV4_LEN + UDP_LENGTH, l3_len - IPV4_LEN);
}

static void __rte_noinline
put_other_header(const struct path *p, uint8_t *bth, uint32_t l3_len)
{
	uint8_t *frame = bth - p->header_len, *l3 = frame + p->l3_off;

	memcpy(frame, p->header, p->header_len);
	switch (p->av.encap) {
	case ENCAP_ROCEV2_IPV4:
		break;
	case ENCAP_ROCEV2_IPV6:
		put_be16(l3 + IPV6_PAYLEN, l3_len - IPV6_LEN);
		put_be16(l3 + IPV6_LEN + UDP_LENGTH, l3_len - IPV6_LEN);
		break;
	case ENCAP_ROCEV1:
		put_be16(l3 + IPV6_PAYLEN, l3_len - GRH_LEN);
		break;
	case ENCAP_IB:
		put_be16(l3 + LRH_PKTLEN, l3_len / 4);
		if (p->av.grh)
			put_be16(l3 + LRH_LEN + IPV6_PAYLEN, l3_len - LRH_LEN - GRH_LEN);
		break;
	}
}

static inline void
put_header(const struct path *p, uint8_t *bth, uint32_t l3_len, uint16_t ip_id)
{
	if (likely(p->av.encap == ENCAP_ROCEV2_IPV4))
		put_ipv4_header(p, bth, l3_len, ip_id);
	else
		put_other_header(p, bth, l3_len);
}

uint32_t
path_finish(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id)
{
	uint8_t *l3 = bth - p->header_len + p->l3_off;
	uint32_t icrc_len = p->header_len - p->l3_off + bth_len;
	uint32_t l3_len = icrc_len + ICRC_LEN;

	put_header(p, bth, l3_len, ip_id);
	put_le32(l3 + icrc_len, wire_icrc(p->av.encap, l3, icrc_len));
	if (unlikely(p->av.encap == ENCAP_IB))
		put_le16(l3 + l3_len, wire_vcrc(l3, l3_len));
	return p->header_len + bth_len + p->trailer_len;
}

/*
 * The head of a packet as the ICRC sees it, from 16 bytes before layer 3: eight bytes of ones stand
 * there (rc-transport 9), of which the CRC register's own ones make the first four zeros. So what
 * is before the other four counts for nothing, and the head may begin where its end is a whole
 * number of blocks away.
 */
#define BLOCK   16
#define IN_FRONT 16
#define ONES_IN_FRONT 4

static const uint8_t keep[IN_FRONT + BLOCK] = { [IN_FRONT] =
	0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
	0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };

#define FRONT [IN_FRONT - ONES_IN_FRONT] = 0xFF, 0xFF, 0xFF, 0xFF
#define IPV4(at) [(at) + IPV4_TOS] = 0xFF, [(at) + IPV4_TTL] = 0xFF, \
	[(at) + IPV4_CHECKSUM] = 0xFF, 0xFF
#define IPV6(at) [at] = 0x0F, 0xFF, 0xFF, 0xFF, [(at) + IPV6_HOP_LIMIT] = 0xFF
#define UDP(at)  [(at) + UDP_CHECKSUM] = 0xFF, 0xFF
#define BTH(at)  [(at) + BTH_RESV8A] = 0xFF

static const uint8_t ones[][CRC32_HEAD_MAX] = {
	[ENCAP_ROCEV2_IPV4] = { FRONT, IPV4(IN_FRONT), UDP(IN_FRONT + IPV4_LEN),
		BTH(IN_FRONT + IPV4_LEN + UDP_LEN) },
	[ENCAP_ROCEV2_IPV6] = { FRONT, IPV6(IN_FRONT), UDP(IN_FRONT + IPV6_LEN),
		BTH(IN_FRONT + IPV6_LEN + UDP_LEN) },
	[ENCAP_ROCEV1] = { FRONT, IPV6(IN_FRONT), BTH(IN_FRONT + GRH_LEN) },
};

/*
 * IPv4: the head is three blocks, and of the first two only length and ID vary, the checksum
 * counting as ones: so their CRC is known before. They begin so many bytes before layer 3.
 */
static void
put_state(const struct path *p, uint32_t front, uint32_t l3_len, uint8_t state[16])
{
	const uint8_t *one = ones[ENCAP_ROCEV2_IPV4] + IN_FRONT - front;
	uint8_t blocks[2 * BLOCK] = { 0 };
	uint32_t i;

	memcpy(blocks + front, p->header + p->l3_off, sizeof(blocks) - front);
	if (l3_len > 0) {
		put_be16(blocks + front + IPV4_TOTAL, l3_len);
		put_be16(blocks + front + IPV4_LEN + UDP_LENGTH, l3_len - IPV4_LEN);
	}
	for (i = 0; i < sizeof(blocks); i++)
		blocks[i] |= one[i];
	crc32_state(blocks, state);
}

#define ACK_LEN    (BTH_LEN + 4)
#define ACK_L3_LEN (IPV4_LEN + UDP_LEN + ACK_LEN + ICRC_LEN)

/* Behind a BTH alone the third block begins with the UDP length, an Ack's with the BTH. */
static void
init_icrc_state(struct path *p)
{
	put_state(p, IN_FRONT / 2, 0, p->icrc_state);
	put_state(p, ONES_IN_FRONT, ACK_L3_LEN, p->icrc_ack);
}

uint32_t
path_finish_ack(const struct path *p, uint8_t *bth, const uint8_t words[16], uint16_t ip_id)
{
	uint32_t third, fourth;
	uint64_t low;

	memcpy(&low, words, sizeof(low));
	memcpy(&third, words + 8, sizeof(third));
	memcpy(&fourth, words + 12, sizeof(fourth));
	memcpy(bth, &low, sizeof(low));
	memcpy(bth + 8, &third, sizeof(third));
	memcpy(bth + 12, &fourth, sizeof(fourth));
	if (unlikely(p->av.encap != ENCAP_ROCEV2_IPV4 || crc32_after == NULL))
		return path_finish_copy(p, bth, ACK_LEN, NULL, 0, ip_id);
	put_ipv4_header(p, bth, ACK_L3_LEN, ip_id);
	put_le32(bth + ACK_LEN, crc32_after(p->icrc_ack, rte_cpu_to_be_16(ip_id),
			low | UINT64_C(0xFF) << 32 /* resv8a */, third | (uint64_t)fourth << 32,
			bth + ACK_LEN, NULL, 0));
	return p->header_len + ACK_LEN + ICRC_LEN;
}

uint32_t
path_finish_send(const struct path *p, uint8_t *bth, const uint8_t words[12],
	const void *from, uint32_t len, uint16_t ip_id)
{
	uint32_t bth_len = BTH_LEN + len + wire_pad(len);
	uint32_t l3_len = IPV4_LEN + UDP_LEN + bth_len + ICRC_LEN;
	uint64_t vary, low, high;
	uint32_t last;

	memcpy(&low, words, sizeof(low));
	memcpy(&last, words + 8, sizeof(last));
	memcpy(bth, &low, sizeof(low));
	memcpy(bth + 8, &last, sizeof(last));
	if (unlikely(p->av.encap != ENCAP_ROCEV2_IPV4 || crc32_after == NULL))
		return path_finish_copy(p, bth, BTH_LEN, from, len, ip_id);
	put_ipv4_header(p, bth, l3_len, ip_id);
	vary = (uint64_t)rte_cpu_to_be_16(l3_len) << 16 | (uint64_t)rte_cpu_to_be_16(ip_id) << 32;
	high = low >> 32 | (uint64_t)last << 32 | 0xFF; /* resv8a */
	low = low << 32 | 0xFFFF0000 /* UDP checksum */ | rte_cpu_to_be_16(l3_len - IPV4_LEN);
	put_le32(bth + bth_len, crc32_after(p->icrc_state, vary, low, high, bth + BTH_LEN, from,
			len));
	return p->header_len + bth_len + ICRC_LEN;
}

uint32_t
path_finish_copy(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	uint32_t bth_len = headers + len + wire_pad(len);
	uint32_t head = ONES_IN_FRONT + p->header_len - p->l3_off + headers;
	uint32_t blocks = (head + BLOCK - 1) / BLOCK;
	uint32_t skip = IN_FRONT - ONES_IN_FRONT - (blocks * BLOCK - head);
	enum encap encap = p->av.encap;
	uint8_t *at = bth + headers;

	if (unlikely(encap == ENCAP_IB)) {
		if (len > 0)
			memcpy(at, from, len);
		memset(at + len, 0, wire_pad(len));
		return path_finish(p, bth, bth_len, ip_id);
	}
	put_header(p, bth, p->header_len - p->l3_off + bth_len + ICRC_LEN, ip_id);
	put_le32(bth + bth_len, crc32_packet(at - blocks * BLOCK, keep + skip,
			ones[encap] + skip, blocks, from, len));
	return p->header_len + bth_len + ICRC_LEN;
}

uint32_t
path_finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	uint32_t bth_len = headers + len + wire_pad(len);

	if (unlikely(p->av.encap == ENCAP_IB))
		return path_finish_copy(p, bth, headers, from, len, ip_id);
	put_header(p, bth, p->header_len - p->l3_off + bth_len + ICRC_LEN, ip_id);
	if (len > 0)
		memcpy(bth + headers, from, len);
	memset(bth + headers + len, 0, wire_pad(len) + ICRC_LEN);
	return p->header_len + bth_len + ICRC_LEN;
}
