/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Send a payload from port to port, either copied into the packet's buffer or by reference to the
 * region. By reference, a packet has three segments, because the ICRC follows the payload, and the
 * region may only be freed once all references have been returned.
 */

#include <string.h>

#include <rte_ethdev.h>

#include "limits/limit.h"
#include "wire/crc32.h"

#define BLOCKS  3 /* 16-byte blocks of headers that the ICRC covers */
#define HEAD    (BLOCKS * 16)
#define HEAD_AT (LIMIT_HEADERS - ICRC - HEAD)
#define ICRC    4

/* For timing it does not matter which bits the ICRC masks. */
static const uint8_t zeros[HEAD];

static void
reference_returned(void *payload, void *region)
{
	struct lent *lent = region;

	(void)payload;
	lent->back++;
}

static void
send_copied(const struct limits *l, struct rte_mbuf *m, const uint8_t *payload, bool crc)
{
	uint8_t *head = rte_pktmbuf_mtod_offset(m, uint8_t *, HEAD_AT), *to = head + HEAD;
	uint32_t icrc = 0;

	if (crc)
		icrc = crc_kernel->packet(head, zeros, zeros, BLOCKS, payload, l->payload);
	else
		memcpy(to, payload, l->payload);
	memcpy(to + l->payload, &icrc, sizeof(icrc));
	m->data_len = m->pkt_len = l->frame;
}

/* The reference count is stored in the unused buffer of the payload's segment. */
static void
send_referred(struct limits *l, struct rte_mbuf *m, struct rte_mbuf *piece, struct rte_mbuf *end,
	uint8_t *payload, bool crc)
{
	struct rte_mbuf_ext_shared_info *shared = (void *)rte_mbuf_to_baddr(piece);
	const uint8_t *head = rte_pktmbuf_mtod_offset(m, uint8_t *, HEAD_AT);
	uint32_t icrc = 0;

	if (crc)
		icrc = crc_kernel->update(crc_kernel->update(0, head, HEAD), payload, l->payload);
	memcpy(rte_pktmbuf_mtod(end, void *), &icrc, sizeof(icrc));
	shared->free_cb = reference_returned;
	shared->fcb_opaque = &l->lent;
	rte_mbuf_ext_refcnt_set(shared, 1);
	rte_pktmbuf_attach_extbuf(piece, payload, RTE_BAD_IOVA, (uint16_t)l->payload, shared);
	l->lent.out++;
	m->data_len = HEAD_AT + HEAD;
	piece->data_len = (uint16_t)l->payload;
	end->data_len = ICRC;
	m->pkt_len = l->frame;
	m->nb_segs = 3;
	m->next = piece;
	piece->next = end;
}

static bool
alloc_buffers(struct limits *l, struct rte_mbuf *m[][SKELETON_BURST], unsigned int kinds)
{
	unsigned int i;

	for (i = 0; i < kinds; i++)
		if (rte_pktmbuf_alloc_bulk(l->end[REQUESTER].pool, m[i], SKELETON_BURST) != 0)
			break;
	if (i == kinds)
		return true;
	while (i-- > 0)
		rte_pktmbuf_free_bulk(m[i], SKELETON_BURST);
	return false;
}

void
limit_payload(struct limits *l, bool reference, bool crc)
{
	struct rte_mbuf *m[3][SKELETON_BURST];
	unsigned int i, n;

	if (!alloc_buffers(l, m, reference ? 3 : 1))
		return;
	for (i = 0; i < SKELETON_BURST; i++) {
		uint8_t *payload = l->end[REQUESTER].mr[1].base + limit_next_offset(l);

		if (reference)
			send_referred(l, m[0][i], m[1][i], m[2][i], payload, crc);
		else
			send_copied(l, m[0][i], payload, crc);
	}
	n = rte_eth_tx_burst(l->end[REQUESTER].ethdev, 0, m[0], SKELETON_BURST);
	if (n < SKELETON_BURST)
		rte_pktmbuf_free_bulk(m[0] + n, SKELETON_BURST - n);
	n = rte_eth_rx_burst(l->end[RESPONDER].ethdev, 0, m[0], SKELETON_BURST);
	rte_pktmbuf_free_bulk(m[0], n);
}
