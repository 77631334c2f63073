/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* ARP (RFC 826, RFC 5227): answer requests for our addresses, and resolve next hops. */

#include "link/neigh.h"
#include "link/control.h"

#define ARP_LEN     28
#define ARP_OP      6
#define ARP_SHA     8
#define ARP_SPA     14
#define ARP_THA     18
#define ARP_TPA     24
#define ARP_REQUEST 1
#define ARP_REPLY   2

/* Ethernet, IPv4, address lengths 6 and 4 */
static const uint8_t arp_types[ARP_OP] = { 0x00, 0x01, 0x08, 0x00, 6, 4 };

/* The reply is written into the request's mbuf. */
static void
arp_reply(struct link_worker *w, struct rx_frame *f)
{
	uint8_t *arp = f->l3;
	uint8_t ours[4];

	memcpy(ours, arp + ARP_TPA, 4);
	put_be16(arp + ARP_OP, ARP_REPLY);
	memcpy(arp + ARP_THA, arp + ARP_SHA, MAC_LEN + 4); /* and TPA from SPA */
	put_mac(arp + ARP_SHA, f->port->mac_word);
	memcpy(arp + ARP_SPA, ours, 4);
	tx_l3(w, f->port, f->mbuf, arp, ARP_LEN, mac_word(arp + ARP_THA), ETHERTYPE_ARP);
	f->mbuf = NULL;
}

enum verdict
arp_receive(struct link_worker *w, struct rx_frame *f)
{
	const uint8_t *arp = f->l3;
	union gid sender;

	if (f->l3_len < ARP_LEN)
		return VERDICT_RUNT;
	if (memcmp(arp, arp_types, sizeof(arp_types)) != 0)
		return VERDICT_ETHERTYPE;
	sender = gid_from_ipv4(arp + ARP_SPA);
	/* RFC 5227: a probe has no sender address yet */
	if ((arp[ARP_SHA] & 1) ||
		(get_be32(arp + ARP_SPA) != 0 && !source_is_host(f->port, &sender)))
		return VERDICT_SOURCE;
	if (port_has_address(f->port, &sender))
		neigh_conflict(w, f->port, &sender, arp + ARP_SHA);
	else
		neigh_heard(w, f->port, &sender, arp + ARP_SHA);
	if (get_be16(arp + ARP_OP) == ARP_REQUEST && ip_is_own(&ip_v4, f->port, arp + ARP_TPA) &&
		link_may_answer(w, f->port, ANSWER_ARP, &sender))
		arp_reply(w, f);
	return VERDICT_ARP;
}

void
arp_send(struct link_worker *w, struct link_port *p, const union gid *sender,
	const union gid *target, uint64_t dmac)
{
	struct rte_mbuf *m;
	uint8_t *arp;

	m = tx_control(w, p, &arp);
	if (m == NULL)
		return;
	memcpy(arp, arp_types, sizeof(arp_types));
	put_be16(arp + ARP_OP, ARP_REQUEST);
	put_mac(arp + ARP_SHA, p->mac_word);
	memcpy(arp + ARP_SPA, sender->raw + 12, 4);
	memset(arp + ARP_THA, 0, MAC_LEN);
	memcpy(arp + ARP_TPA, target->raw + 12, 4);
	tx_l3(w, p, m, arp, ARP_LEN, dmac != 0 ? dmac : MAC_MASK, ETHERTYPE_ARP);
}
