/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ICMP and ICMPv6: answer echo requests, and detect a kernel that holds our address or the peer's,
 * because it rejects UDP port 4791.
 */

#include <rte_ip.h>

#include "link/private.h"

#define ICMP_LEN          8
#define ICMP_ECHO         8
#define ICMP_ECHO_REPLY   0
#define ICMP_UNREACHABLE  3
#define ICMP_PORT         3
#define ICMP6_UNREACHABLE 1
#define ICMP6_PORT        4
#define ICMP6_ECHO        128
#define ICMP6_ECHO_REPLY  129
#define ICMP6_NS          135
#define ICMP6_NA          136
#define ECHO_TTL          64

#define WARN_S 10

/*
 * True if the packet that an ICMP port unreachable quotes is RoCEv2; src and dst are its addresses.
 */
static bool
quotes_rocev2(const uint8_t *quote, uint32_t len, bool v6, const uint8_t **src, const uint8_t **dst)
{
	uint32_t header = v6 ? IPV6_LEN : IPV4_LEN;

	if (len < header + UDP_LEN || quote[0] >> 4 != (v6 ? 6 : 4))
		return false;
	if (!v6) {
		header = (quote[0] & 0xF) * 4;
		if (header < IPV4_LEN || len < header + UDP_LEN || quote[IPV4_PROTO] != PROTO_UDP)
			return false;
	} else if (quote[IPV6_NEXT] != PROTO_UDP) {
		return false;
	}
	*src = quote + (v6 ? IPV6_SRC : IPV4_SRC);
	*dst = quote + (v6 ? IPV6_DST : IPV4_DST);
	return get_be16(quote + header + UDP_DPORT) == ROCEV2_PORT;
}

static bool
icmp_is_own(const struct link_port *p, const uint8_t *addr, bool v6)
{
	return v6 ? port_has_ipv6(p, addr) : port_has_ipv4(p, addr);
}

static void
icmp_note_unreachable(struct link_worker *w, const struct link_port *p, const uint8_t *from,
	bool v6)
{
	struct port_limits *l = &w->limits[p->index];

	link_count(&w->counters[p->index].port_unreachable, 1);
	if (v6)
		memcpy(l->unreachable_from.raw, from, 16);
	else
		l->unreachable_from = gid_from_ipv4(from);
}

/*
 * The peer's host sent us the message about a packet of ours: its kernel holds the peer's address.
 */
static void
icmp_check_unreachable(struct link_worker *w, const struct rx_frame *f, const uint8_t *icmp,
	uint32_t len, bool v6)
{
	const uint8_t *src, *dst;

	if (quotes_rocev2(icmp + ICMP_LEN, len - ICMP_LEN, v6, &src, &dst) &&
		icmp_is_own(f->port, src, v6))
		icmp_note_unreachable(w, f->port, f->l3 + (v6 ? IPV6_SRC : IPV4_SRC), v6);
}

/*
 * Our host's kernel sent the message, from our MAC, about a packet to our address: the kernel holds
 * our address. Devices that show the host's own frames (af_packet) let us see it.
 */
void
icmp_overheard(struct link_worker *w, struct rx_frame *f)
{
	uint16_t ethertype = get_be16(f->eth + 12);
	bool v6 = ethertype == ETHERTYPE_IPV6;
	const uint8_t *ip = f->l3, *icmp, *src, *dst;
	uint32_t header = IPV6_LEN;

	if (ethertype != ETHERTYPE_IPV4 && !v6)
		return;
	/* an IPv4 message with a quote is not shorter either */
	if (f->l3_len < IPV6_LEN + ICMP_LEN)
		return;
	if (!v6)
		header = (ip[0] & 0xF) * 4;
	if (f->l3_len < header + ICMP_LEN)
		return;
	icmp = ip + header;
	if (ip[v6 ? IPV6_NEXT : IPV4_PROTO] != (v6 ? PROTO_ICMPV6 : PROTO_ICMP) ||
		icmp[0] != (v6 ? ICMP6_UNREACHABLE : ICMP_UNREACHABLE) ||
		icmp[1] != (v6 ? ICMP6_PORT : ICMP_PORT))
		return;
	if (quotes_rocev2(icmp + ICMP_LEN, f->l3_len - header - ICMP_LEN, v6, &src, &dst) &&
		icmp_is_own(f->port, dst, v6))
		icmp_note_unreachable(w, f->port, dst, v6);
}

static void
echo_reply(struct link_worker *w, struct rx_frame *f, uint8_t *icmp, uint32_t len)
{
	uint8_t *ip = f->l3, addr[4];
	uint16_t sum;

	icmp[0] = ICMP_ECHO_REPLY;
	memset(icmp + 2, 0, 2);
	sum = ~rte_raw_cksum(icmp, len);
	memcpy(icmp + 2, &sum, 2);
	memcpy(addr, ip + IPV4_SRC, 4);
	memcpy(ip + IPV4_SRC, ip + IPV4_DST, 4);
	memcpy(ip + IPV4_DST, addr, 4);
	ip[IPV4_TTL] = ECHO_TTL;
	memset(ip + IPV4_CHECKSUM, 0, 2);
	sum = ~rte_raw_cksum(ip, icmp - ip);
	memcpy(ip + IPV4_CHECKSUM, &sum, 2);
	tx_l3(w, f->port, f->mbuf, ip, icmp + len - ip, mac_word(f->eth + MAC_LEN), ETHERTYPE_IPV4);
	f->mbuf = NULL;
}

enum verdict
icmp_receive(struct link_worker *w, struct rx_frame *f)
{
	uint8_t *ip = f->l3, *icmp;
	uint32_t header = (ip[0] & 0xF) * 4;
	uint32_t total = get_be16(ip + IPV4_TOTAL);
	union gid source = gid_from_ipv4(ip + IPV4_SRC);
	uint32_t len;

	if (header < IPV4_LEN || total > f->l3_len || total < header + ICMP_LEN)
		return VERDICT_IP_HEADER;
	if (rte_raw_cksum(ip, header) != 0xFFFF)
		return VERDICT_IP_CHECKSUM;
	if (get_be16(ip + IPV4_FRAG) & 0x3FFF)
		return VERDICT_IP_FRAGMENT;
	if (!gid_is_host(&source))
		return VERDICT_SOURCE;
	icmp = ip + header;
	len = total - header;
	if (rte_raw_cksum(icmp, len) != 0xFFFF)
		return VERDICT_IP_CHECKSUM;
	if (icmp[0] == ICMP_UNREACHABLE && icmp[1] == ICMP_PORT)
		icmp_check_unreachable(w, f, icmp, len, false);
	else if (icmp[0] == ICMP_ECHO && icmp[1] == 0 &&
		!icmp_is_own(f->port, ip + IPV4_SRC, false) &&
		link_may_answer(w, f->port, ANSWER_ICMP, &source))
		echo_reply(w, f, icmp, len);
	return VERDICT_ICMP;
}

static void
echo6_reply(struct link_worker *w, struct rx_frame *f, uint8_t *icmp, uint32_t len)
{
	uint8_t *ip = f->l3, addr[16];
	uint16_t sum;

	icmp[0] = ICMP6_ECHO_REPLY;
	memcpy(addr, ip + IPV6_SRC, 16);
	memcpy(ip + IPV6_SRC, ip + IPV6_DST, 16);
	memcpy(ip + IPV6_DST, addr, 16);
	ip[IPV6_HOP_LIMIT] = ECHO_TTL;
	memset(icmp + 2, 0, 2);
	sum = rte_ipv6_udptcp_cksum((const void *)ip, icmp);
	memcpy(icmp + 2, &sum, 2);
	tx_l3(w, f->port, f->mbuf, ip, IPV6_LEN + len, mac_word(f->eth + MAC_LEN), ETHERTYPE_IPV6);
	f->mbuf = NULL;
}

enum verdict
icmpv6_receive(struct link_worker *w, struct rx_frame *f)
{
	uint8_t *ip = f->l3, *icmp = ip + IPV6_LEN;
	uint32_t len = get_be16(ip + IPV6_PAYLEN);
	union gid source;
	uint32_t sum;

	if (len > f->l3_len - IPV6_LEN || len < ICMP_LEN)
		return VERDICT_IP_HEADER;
	sum = rte_raw_cksum(icmp, len) + rte_ipv6_phdr_cksum((const void *)ip, 0);
	if ((sum & 0xFFFF) + (sum >> 16) != 0xFFFF)
		return VERDICT_IP_CHECKSUM;
	if (icmp[0] == ICMP6_NS || icmp[0] == ICMP6_NA)
		return nd_receive(w, f, icmp, len);
	memcpy(source.raw, ip + IPV6_SRC, 16);
	if (!gid_is_host(&source))
		return VERDICT_SOURCE;
	if (icmp[0] == ICMP6_UNREACHABLE && icmp[1] == ICMP6_PORT)
		icmp_check_unreachable(w, f, icmp, len, true);
	else if (icmp[0] == ICMP6_ECHO && icmp[1] == 0 && ip[IPV6_DST] != 0xFF &&
		!icmp_is_own(f->port, ip + IPV6_SRC, true) &&
		link_may_answer(w, f->port, ANSWER_ICMP, &source))
		echo6_reply(w, f, icmp, len);
	return VERDICT_ICMP;
}

/* Any worker: log the messages that this worker has seen, at most once per WARN_S and port. */
void
icmp_tick(struct link_worker *w, uint64_t now)
{
	const struct link_port *p;
	struct port_limits *l;
	char text[GID_STRLEN];
	uint64_t seen;
	unsigned int i;
	bool ours;

	for (i = 0; i < w->link->num_ports; i++) {
		p = &w->link->port[i];
		l = &w->limits[i];
		seen = w->counters[i].port_unreachable;
		if (seen == l->unreachable_told || now < l->unreachable_next)
			continue;
		ours = port_has_address(p, &l->unreachable_from);
		LINK_LOG(WARNING,
			"%s: host kernel at %s holds %s address and answers port %u with ICMP "
			"unreachable (%llu so far): take the address off the kernel's interface",
			p->cfg.name, gid_print(&l->unreachable_from, text),
			ours ? "this port's" : "the peer's", ROCEV2_PORT,
			(unsigned long long)(seen - l->unreachable_told));
		l->unreachable_told = seen;
		l->unreachable_next = now + WARN_S * w->link->cfg.hz;
	}
}
