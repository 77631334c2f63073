/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_CONTROL_H
#define LINK_CONTROL_H

/*
 * Private to lib/link: control protocols of IPv4 and IPv6 (ARP, neighbour discovery, ICMP), and
 * what they learn of neighbours.
 */

#include "link/private.h"

/* The MAC of an IPv6 group (RFC 2464 7): 33:33 and the last four bytes of its address. */
static inline uint64_t
ipv6_group_mac(const uint8_t *group)
{
	uint8_t mac[MAC_LEN] = { 0x33, 0x33, group[12], group[13], group[14], group[15] };

	return mac_word(mac);
}

/* What receivers do alike with IPv4 and IPv6, with other numbers. */
struct ip_family {
	uint16_t ethertype;
	uint8_t version;
	/* of the header without options; the others are offsets in it */
	uint8_t len;
	uint8_t next; /* protocol */
	uint8_t ttl;
	uint8_t src;
	uint8_t dst;
	uint8_t addr_len;
	uint8_t group; /* first byte of a group's address, in these bits: */
	uint8_t group_mask;
	uint8_t icmp; /* number of ICMP's protocol */
	/* types of ICMP's messages, and the code of an unreachable port */
	uint8_t unreachable;
	uint8_t port;
	uint8_t echo;
	uint8_t echo_reply;
};

static const struct ip_family ip_v4 = { ETHERTYPE_IPV4, 4, IPV4_LEN, IPV4_PROTO, IPV4_TTL, IPV4_SRC,
	IPV4_DST, 4, 0xE0, 0xF0, PROTO_ICMP, .unreachable = 3, .port = 3, .echo = 8,
	.echo_reply = 0 };
static const struct ip_family ip_v6 = { ETHERTYPE_IPV6, 6, IPV6_LEN, IPV6_NEXT, IPV6_HOP_LIMIT,
	IPV6_SRC, IPV6_DST, 16, 0xFF, 0xFF, PROTO_ICMPV6, .unreachable = 1, .port = 4, .echo = 128,
	.echo_reply = 129 };

/* An address in a header of this family. */
static inline union gid
ip_gid(const struct ip_family *k, const uint8_t *addr)
{
	union gid gid;

	if (k->version == 4)
		return gid_from_ipv4(addr);
	memcpy(gid.raw, addr, sizeof(gid));
	return gid;
}

/* True if it is one of the port's. In an IPv6 header a mapped IPv4 address is nobody's. */
static inline bool
ip_is_own(const struct ip_family *k, const struct link_port *p, const uint8_t *addr)
{
	union gid gid = ip_gid(k, addr);

	return port_has_address(p, &gid) && (k->version == 4 || !gid_is_ipv4(&gid));
}

/* Received frame under classification: rx.c fills it, arp.c, nd.c and icmp.c read it. */
struct rx_frame {
	struct rte_mbuf *mbuf; /* linear */
	struct link_port *port;
	uint8_t *eth;
	uint8_t *l3;
	uint32_t l3_len; /* including Ethernet padding */
	uint8_t pcp;
	bool multicast; /* destination MAC is a group address */
};

/*
 * Control protocols (arp.c, nd.c, icmp.c). They return the frame's verdict. If they write the
 * answer into the frame's mbuf, they take it and set frame->mbuf to NULL.
 */
enum verdict arp_receive(struct link_worker *w, struct rx_frame *f);
/* ICMP or ICMPv6, and with it neighbour discovery */
enum verdict icmp_receive(struct link_worker *w, struct rx_frame *f, const struct ip_family *k);
enum verdict nd_receive(struct link_worker *w, struct rx_frame *f, uint8_t *icmp, uint32_t len);
/*
 * A frame from our own MAC, sent by this host's kernel: note if it rejects port 4791 from our
 * address.
 */
void icmp_overheard(struct link_worker *w, struct rx_frame *f);
void icmp_tick(struct link_worker *w, uint64_t now);
/* Another MAC claims an address of ours: neigh_warn() logs it. */
void neigh_conflict(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac);
void neigh_warn(struct link_worker *w, uint64_t now);
/* Report to the worker's owner. @param mac  see mac_word() */
void neigh_tell(struct link_worker *w, enum link_news_kind what, uint16_t port,
	const union gid *gid, uint64_t mac);
/*
 * Ask which MAC has an address; with our own address as target, announce it. dmac 0: broadcast or
 * the protocol's multicast.
 */
void arp_send(struct link_worker *w, struct link_port *p, const union gid *sender,
	const union gid *target, uint64_t dmac);
void nd_solicit(struct link_worker *w, struct link_port *p, const union gid *source,
	const union gid *target, uint64_t dmac);
void nd_announce(struct link_worker *w, struct link_port *p, const uint8_t *addr);
/* The groups of all nodes, and of those whose address has the last three bytes (RFC 4291 2.7.1) */
extern const uint8_t nd_all_nodes[16], nd_solicited[16];
#define ND_NS            135
#define ND_NA            136
#define ND_SOLICITED_LEN 13 /* of the latter: before those bytes */

#endif
