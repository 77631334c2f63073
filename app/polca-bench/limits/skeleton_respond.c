/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The skeleton's responder: receive packets, place their payload, send Acks. */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include "limits/skeleton.h"

#define PSN_BITS  0xFFFFFFu
#define ACK_ASKED (UINT32_C(1) << 31)
#define BTH_END   (20 + 8 + 12) /* offset of the BTH's end from the IP header */
#define AETH_ACK  UINT32_C(0x1F000000) /* no credits */

/* A parsed packet. */
struct arrival {
	const struct skeleton_headers *h;
	uint32_t ip_length;
	uint32_t extension;
	uint32_t length; /* of the payload */
	uint32_t qpn, psn;
	bool ack_asked;
};

static inline bool
skeleton_parse(const struct skeleton_endpoint *s, const struct rte_mbuf *m, struct arrival *a)
{
	const struct skeleton_headers *h = rte_pktmbuf_mtod(m, const struct skeleton_headers *);
	uint32_t psn = rte_be_to_cpu_32(h->psn);

	if (h->ether.ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
		h->ip.version_ihl != RTE_IPV4_VHL_DEF || h->ip.next_proto_id != IPPROTO_UDP ||
		h->udp.dst_port != RTE_BE16(4791))
		return false;
	a->h = h;
	a->ip_length = rte_be_to_cpu_16(h->ip.total_length);
	if (a->ip_length + sizeof(h->ether) > m->pkt_len)
		return false;
	a->extension = h->opcode == SKELETON_WRITE_ONLY || h->opcode == SKELETON_WRITE_FIRST
		? sizeof(struct skeleton_reth)
		: 0;
	a->length = a->ip_length - BTH_END - a->extension - (uint32_t)sizeof(uint32_t);
	a->qpn = rte_be_to_cpu_32(h->qpn) & PSN_BITS;
	a->psn = psn & PSN_BITS;
	a->ack_asked = psn & ACK_ASKED;
	return a->qpn < SKELETON_QPS && a->length <= s->config.mtu;
}

/* The address for the payload. NULL: outside of the region */
static inline uint8_t *
skeleton_place(struct skeleton_endpoint *s, struct skeleton_qp *qp, const struct arrival *a)
{
	const struct skeleton_reth *reth = (const struct skeleton_reth *)(a->h + 1);
	const struct skeleton_mr *mr;
	const struct skeleton_wqe *w;
	uint64_t at;

	if (!s->config.write) {
		w = skeleton_wqe(qp, qp->head);
		mr = &s->mr[w->lkey & 3];
		return skeleton_inside(mr, w->addr, a->length) ? mr->base + w->addr : NULL;
	}
	mr = &s->mr[SKELETON_WRITE_KEY];
	if (a->extension > 0) {
		qp->remote_at = rte_be_to_cpu_64(reth->va);
		if (!skeleton_inside(&s->mr[rte_be_to_cpu_32(reth->rkey) & 3], qp->remote_at,
			    rte_be_to_cpu_32(reth->length)))
			return NULL;
	}
	at = qp->remote_at;
	qp->remote_at += a->length;
	return mr->base + at;
}

static inline void
skeleton_complete_message(struct skeleton_endpoint *s, struct skeleton_qp *qp,
	const struct arrival *a)
{
	struct skeleton_cqe *c;

	qp->msn++;
	if (s->config.write)
		return;
	c = skeleton_complete(qp);
	c->wr_id = ++qp->head;
	c->opcode = a->h->opcode;
	c->length = a->length;
	c->qpn = a->qpn;
	c->status = 0;
}

static void
skeleton_acknowledge(struct skeleton_endpoint *s, struct skeleton_qp *qp, const struct arrival *a,
	struct rte_mbuf *m)
{
	struct skeleton_headers *h = rte_pktmbuf_mtod(m, struct skeleton_headers *);
	uint32_t aeth = rte_cpu_to_be_32(AETH_ACK | (qp->msn & PSN_BITS));

	memcpy(h, &qp->header, sizeof(*h));
	h->opcode = SKELETON_ACK;
	h->qpn = rte_cpu_to_be_32(a->qpn);
	h->psn = rte_cpu_to_be_32(a->psn);
	m->data_len = skeleton_finish(s, h, 0, &aeth, sizeof(aeth));
	m->pkt_len = m->data_len;
}

/* @return true: an Ack is due */
static inline bool
skeleton_receive(struct skeleton_endpoint *s, const struct arrival *a)
{
	struct skeleton_qp *qp = &s->qp[a->qpn];
	uint8_t op = a->h->opcode, *to;

	if (unlikely(a->psn != (qp->psn & PSN_BITS)))
		goto bad;
	to = skeleton_place(s, qp, a);
	if (unlikely(to == NULL))
		goto bad;
	/* no byte is placed before the ICRC has verified */
	if (s->config.icrc && unlikely(!skeleton_icrc_ok(a->h, a->ip_length)))
		goto bad;
	memcpy(to, (const uint8_t *)(a->h + 1) + a->extension, a->length);
	qp->psn++;
	if (op != SKELETON_WRITE_FIRST && op != SKELETON_WRITE_MIDDLE) {
		skeleton_complete_message(s, qp, a);
		s->messages++;
	}
	qp->unacked++;
	if (!a->ack_asked || qp->unacked < s->config.ack_every)
		return false;
	qp->unacked = 0;
	return true;
bad:
	s->bad++;
	return false;
}

unsigned int
skeleton_respond(struct skeleton_endpoint *s)
{
	struct rte_mbuf *m[SKELETON_BURST], *ack[SKELETON_BURST];
	unsigned int i, n, acks = 0, sent;
	uint64_t start = rte_rdtsc();
	struct arrival a;

	n = rte_eth_rx_burst(s->ethdev, 0, m, SKELETON_BURST);
	if (n == 0)
		return 0;
	for (i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	if (rte_pktmbuf_alloc_bulk(s->pool, ack, n) != 0) {
		s->bad += n;
		rte_pktmbuf_free_bulk(m, n);
		return n;
	}
	for (i = 0; i < n; i++) {
		if (unlikely(!skeleton_parse(s, m[i], &a)))
			s->bad++;
		else if (skeleton_receive(s, &a))
			skeleton_acknowledge(s, &s->qp[a.qpn], &a, ack[acks++]);
	}
	sent = acks > 0 ? rte_eth_tx_burst(s->ethdev, 0, ack, (uint16_t)acks) : 0;
	s->bad += acks - sent;
	if (sent < n)
		rte_pktmbuf_free_bulk(ack + sent, n - sent);
	rte_pktmbuf_free_bulk(m, n);
	s->packets += n;
	s->busy += rte_rdtsc() - start;
	return n;
}
