/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * IPv6 neighbour discovery (RFC 4861): answer solicitations for our addresses, and resolve next
 * hops. There is no router discovery.
 */

#include <rte_ip.h>

#include "link/neigh.h"
#include "link/control.h"

#define ND_LEN         24 /* without options */
#define ND_FLAGS       4
#define ND_SOLICITED   0x40
#define ND_OVERRIDE    0x20
#define ND_TARGET      8
#define ND_SLLA        1 /* source link-layer address option */
#define ND_TLLA        2
#define ND_OPT_LEN     8
#define ND_HOP_LIMIT   255
#define ND_MESSAGE_LEN (ND_LEN + ND_OPT_LEN)

/*
 * Find the link-layer address option of a kind, or NULL. *ok is false if an option has length zero
 * (RFC 4861 4.6: discard the message) or does not fit.
 */
static const uint8_t *
nd_option(const uint8_t *p, const uint8_t *end, uint8_t kind, bool *ok)
{
	const uint8_t *found = NULL;
	uint32_t len;

	*ok = true;
	while (end - p >= 2) {
		len = p[1] * 8;
		if (len == 0 || len > (uint32_t)(end - p)) {
			*ok = false;
			return NULL;
		}
		if (p[0] == kind && len == ND_OPT_LEN)
			found = p + 2;
		p += len;
	}
	return found;
}

/* IPv6 header and message; the option carries our MAC. @param dmac  0: that of the group dst */
static void
nd_send_message(struct link_worker *w, struct link_port *p, uint8_t type, uint8_t flags,
	const uint8_t *src, const uint8_t *dst, const uint8_t *target, uint64_t dmac)
{
	uint8_t *ip, *icmp;
	struct rte_mbuf *m = tx_control(w, p, &ip);
	uint16_t sum;

	if (m == NULL)
		return;
	icmp = ip + IPV6_LEN;
	memset(ip, 0, IPV6_LEN + ND_MESSAGE_LEN);
	put_be32(ip, 6u << 28);
	put_be16(ip + IPV6_PAYLEN, ND_MESSAGE_LEN);
	ip[IPV6_NEXT] = PROTO_ICMPV6;
	ip[IPV6_HOP_LIMIT] = ND_HOP_LIMIT;
	memcpy(ip + IPV6_SRC, src, 16);
	memcpy(ip + IPV6_DST, dst, 16);
	icmp[0] = type;
	icmp[ND_FLAGS] = flags;
	memcpy(icmp + ND_TARGET, target, 16);
	icmp[ND_LEN] = type == ND_NS ? ND_SLLA : ND_TLLA;
	icmp[ND_LEN + 1] = ND_OPT_LEN / 8;
	put_mac(icmp + ND_LEN + 2, p->mac_word);
	sum = rte_ipv6_udptcp_cksum((const void *)ip, icmp);
	memcpy(icmp + 2, &sum, sizeof(sum));
	tx_l3(w, p, m, ip, IPV6_LEN + ND_MESSAGE_LEN, dmac != 0 ? dmac : ipv6_group_mac(dst),
		ETHERTYPE_IPV6);
}

const uint8_t nd_all_nodes[16] = { 0xFF, 0x02, [15] = 1 };
const uint8_t nd_solicited[16] = { 0xFF, 0x02, [11] = 1, [12] = 0xFF };

void
nd_announce(struct link_worker *w, struct link_port *p, const uint8_t *addr)
{
	nd_send_message(w, p, ND_NA, ND_OVERRIDE, addr, nd_all_nodes, addr, 0);
}

static void
nd_advertise(struct link_worker *w, struct rx_frame *f, const uint8_t *ours, const union gid *who)
{
	if (gid_is_zero(who)) /* duplicate address detection: answer to all nodes */
		nd_announce(w, f->port, ours);
	else
		nd_send_message(w, f->port, ND_NA, ND_SOLICITED | ND_OVERRIDE, ours, who->raw, ours,
			mac_word(f->eth + MAC_LEN));
}

enum verdict
nd_receive(struct link_worker *w, struct rx_frame *f, uint8_t *icmp, uint32_t len)
{
	const uint8_t *mac;
	union gid who;
	bool ok;

	/* RFC 4861 7.1: hop limit 255 proves that no router forwarded it */
	if (f->l3[IPV6_HOP_LIMIT] != ND_HOP_LIMIT || icmp[1] != 0 || len < ND_LEN)
		return VERDICT_IP_HEADER;
	mac = nd_option(icmp + ND_LEN, icmp + len, icmp[0] == ND_NS ? ND_SLLA : ND_TLLA, &ok);
	if (!ok)
		return VERDICT_IP_HEADER;
	if (icmp[0] == ND_NA) {
		who = ip_gid(&ip_v6, icmp + ND_TARGET);
		if (mac == NULL)
			mac = f->eth + MAC_LEN;
		if (ip_is_own(&ip_v6, f->port, who.raw))
			neigh_conflict(w, f->port, &who, mac);
		else
			neigh_heard(w, f->port, &who, mac);
		return VERDICT_ND;
	}
	who = ip_gid(&ip_v6, f->l3 + IPV6_SRC);
	if (!gid_is_zero(&who) && !source_is_host(f->port, &who))
		return VERDICT_SOURCE;
	if (mac != NULL)
		neigh_heard(w, f->port, &who, mac);
	if (ip_is_own(&ip_v6, f->port, icmp + ND_TARGET) &&
		link_may_answer(w, f->port, ANSWER_ND, &who))
		nd_advertise(w, f, icmp + ND_TARGET, &who);
	return VERDICT_ND;
}

void
nd_solicit(struct link_worker *w, struct link_port *p, const union gid *source,
	const union gid *target, uint64_t dmac)
{
	uint8_t group[16];

	memcpy(group, target->raw, sizeof(group));
	memcpy(group, nd_solicited, ND_SOLICITED_LEN);
	nd_send_message(w, p, ND_NS, 0, source->raw, dmac != 0 ? target->raw : group, target->raw,
		dmac);
}
