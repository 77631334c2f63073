/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ICMP and ICMPv6: answer echo requests, and detect a kernel that holds our address or the peer's,
 * because it rejects UDP port 4791.
 */

#include <rte_ip.h>

#include "link/control.h"
#include "wire/parse_plain.h"

#define ICMP_LEN 8
#define ECHO_TTL 64

#define WARN_S 10

/* @return bytes of the header; 0: size bytes do not hold it and min more */
static uint32_t
ip_header_len(const struct ip_family *k, const uint8_t *ip, uint32_t size, uint32_t min)
{
	uint32_t header;

	if (size < IPV4_LEN || ip[0] >> 4 != k->version)
		return 0;
	header = k->version == 6 ? k->len : (ip[0] & 0xF) * 4;
	return header >= IPV4_LEN && size >= header + min ? header : 0;
}

/*
 * Note whose address a kernel holds if it rejects RoCEv2: the sender's if the peer's host sent us
 * the message about a packet of ours, or ours if our host did (overheard).
 */
static void
icmp_check_unreachable(struct link_worker *w, const struct rx_frame *f, const struct ip_family *k,
	const uint8_t *icmp, uint32_t len, bool overheard)
{
	const uint8_t *quote = icmp + ICMP_LEN, *ours = quote + (overheard ? k->dst : k->src);
	const uint8_t *who = overheard ? ours : f->l3 + k->src;
	uint32_t header = ip_header_len(k, quote, len - ICMP_LEN, UDP_LEN);

	if (icmp[0] != k->unreachable || icmp[1] != k->port || header == 0 ||
		quote[k->next] != IP_PROTO_UDP ||
		get_be16(quote + header + UDP_DPORT) != ROCEV2_PORT || !ip_is_own(k, f->port, ours))
		return;
	link_count(w, f->port->index, port_unreachable, 1);
	w->port[f->port->index].limits.unreachable_from = ip_gid(k, who);
}

/* Devices that show the host's own frames (af_packet) let us see what our host's kernel rejects. */
void
icmp_overheard(struct link_worker *w, struct rx_frame *f)
{
	uint16_t ethertype = get_be16(f->eth + 12);
	const struct ip_family *k = ethertype == ETHERTYPE_IPV6 ? &ip_v6 : &ip_v4;
	uint32_t header = ip_header_len(k, f->l3, f->l3_len, ICMP_LEN);

	if (ethertype == k->ethertype && header != 0 && f->l3[k->next] == k->icmp)
		icmp_check_unreachable(w, f, k, f->l3 + header, f->l3_len - header, true);
}

static void
echo_reply(struct link_worker *w, struct rx_frame *f, const struct ip_family *k, uint8_t *icmp,
	uint32_t len)
{
	uint8_t *ip = f->l3, addr[16];
	uint16_t sum;

	memcpy(addr, ip + k->src, k->addr_len);
	memcpy(ip + k->src, ip + k->dst, k->addr_len);
	memcpy(ip + k->dst, addr, k->addr_len);
	ip[k->ttl] = ECHO_TTL;
	icmp[0] = k->echo_reply;
	memset(icmp + 2, 0, 2);
	if (k->version == 6) {
		sum = rte_ipv6_udptcp_cksum((const void *)ip, icmp);
	} else {
		memset(ip + IPV4_CHECKSUM, 0, 2);
		sum = ~rte_raw_cksum(ip, icmp - ip);
		memcpy(ip + IPV4_CHECKSUM, &sum, 2);
		sum = ~rte_raw_cksum(icmp, len);
	}
	memcpy(icmp + 2, &sum, 2);
	tx_l3(w, f->port, f->mbuf, ip, icmp + len - ip, mac_word(f->eth + MAC_LEN), k->ethertype);
	f->mbuf = NULL;
}

/* A valid message: answer a request to our address, which is no group and not the sender's. */
static enum verdict
icmp_answer(struct link_worker *w, struct rx_frame *f, const struct ip_family *k, uint8_t *icmp,
	uint32_t len)
{
	union gid source = ip_gid(k, f->l3 + k->src);

	if (!source_is_host(f->port, &source))
		return VERDICT_SOURCE;
	icmp_check_unreachable(w, f, k, icmp, len, false);
	if (icmp[0] == k->echo && icmp[1] == 0 && ip_is_own(k, f->port, f->l3 + k->dst) &&
		!ip_is_own(k, f->port, f->l3 + k->src) &&
		link_may_answer(w, f->port, ANSWER_ICMP, &source))
		echo_reply(w, f, k, icmp, len);
	return VERDICT_ICMP;
}

enum verdict
icmp_receive(struct link_worker *w, struct rx_frame *f, const struct ip_family *k)
{
	uint32_t header = k->len, total, sum = 0;
	enum verdict why;
	uint8_t *icmp;

	if (k->version == 4) {
		header = parse_ipv4(f->l3, f->l3_len, false, &why);
		if (header == 0)
			return why;
		total = get_be16(f->l3 + IPV4_TOTAL);
	} else {
		total = header + get_be16(f->l3 + IPV6_PAYLEN);
		sum = rte_ipv6_phdr_cksum((const void *)f->l3, 0);
	}
	if (total > f->l3_len || total < header + ICMP_LEN)
		return VERDICT_IP_HEADER;
	icmp = f->l3 + header;
	sum += rte_raw_cksum(icmp, total - header);
	if ((sum & 0xFFFF) + (sum >> 16) != 0xFFFF)
		return VERDICT_IP_CHECKSUM;
	if (k->version == 6 && (icmp[0] == ND_NS || icmp[0] == ND_NA))
		return nd_receive(w, f, icmp, total - header);
	return icmp_answer(w, f, k, icmp, total - header);
}

/* Any worker: log the messages that this worker has seen, at most once per WARN_S and port. */
void
icmp_tick(struct link_worker *w, uint64_t now)
{
	const struct link_port *p;
	struct port_limits *l;
	char text[GID_STRLEN];
	uint64_t seen;
	bool ours;

	LINK_FOREACH_PORT(p, w->link) {
		l = &w->port[p->index].limits;
		seen = w->port[p->index].counters.port_unreachable;
		if (seen == l->unreachable_told || now < l->unreachable_next)
			continue;
		ours = port_has_address(p, &l->unreachable_from);
		PORT_LOG(p, WARNING,
			"host kernel at %s holds %s address and answers port %u with ICMP "
			"unreachable (%llu so far): take the address off the kernel's interface",
			gid_print(&l->unreachable_from, text), ours ? "this port's" : "the peer's",
			ROCEV2_PORT, (unsigned long long)(seen - l->unreachable_told));
		l->unreachable_told = seen;
		l->unreachable_next = now + WARN_S * w->link->cfg.hz;
	}
}
