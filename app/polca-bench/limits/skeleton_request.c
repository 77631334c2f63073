/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The skeleton's requester: receive Acks, send packets. */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include "limits/skeleton.h"

#define PSN_BITS  0xFFFFFFu
#define ACK_ASKED RTE_BE32(UINT32_C(1) << 31)
#define ASK_EVERY 8

/* --- Acks --- */

static void
skeleton_retire(struct skeleton_endpoint *s, struct skeleton_qp *qp, uint32_t qpn, uint32_t psn)
{
	while (qp->tail != qp->next) {
		const struct skeleton_wqe *w = skeleton_wqe(qp, qp->tail);
		struct skeleton_cqe *c;

		if ((int32_t)((psn - w->psn) << 8) < 0)
			break;
		c = skeleton_complete(qp);
		c->wr_id = w->wr_id;
		c->opcode = s->config.write;
		c->length = w->length;
		c->qpn = qpn;
		c->status = 0;
		qp->tail++;
		s->messages++;
		skeleton_post(s, qp);
	}
	qp->una = psn + 1;
}

static bool
skeleton_take_ack(struct skeleton_endpoint *s, const struct rte_mbuf *m)
{
	const struct skeleton_headers *h = rte_pktmbuf_mtod(m, const struct skeleton_headers *);
	uint32_t qpn, psn;

	if (h->ether.ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
		h->ip.next_proto_id != IPPROTO_UDP || h->udp.dst_port != RTE_BE16(4791) ||
		h->opcode != SKELETON_ACK)
		return false;
	if (s->config.icrc && !skeleton_icrc_ok(h, rte_be_to_cpu_16(h->ip.total_length)))
		return false;
	qpn = rte_be_to_cpu_32(h->qpn) & PSN_BITS;
	psn = rte_be_to_cpu_32(h->psn) & PSN_BITS;
	if (qpn >= SKELETON_QPS)
		return false;
	skeleton_retire(s, &s->qp[qpn], qpn, psn);
	return true;
}

static unsigned int
take_acks(struct skeleton_endpoint *s)
{
	struct rte_mbuf *m[SKELETON_BURST];
	unsigned int i, n = rte_eth_rx_burst(s->ethdev, 0, m, SKELETON_BURST);

	for (i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (i = 0; i < n; i++)
		if (unlikely(!skeleton_take_ack(s, m[i])))
			s->bad++;
	if (n > 0)
		rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* --- packets --- */

static inline uint32_t
in_flight(const struct skeleton_qp *qp)
{
	return (qp->psn - qp->una) & PSN_BITS;
}

/* Begin the queue's next message. @return false: the queue is empty */
static bool
skeleton_begin_message(struct skeleton_endpoint *s, struct skeleton_qp *qp)
{
	const struct skeleton_wqe *w = skeleton_wqe(qp, qp->next);

	if (qp->next == qp->head)
		return false;
	if (unlikely(!skeleton_inside(&s->mr[w->lkey & 3], w->addr, w->length))) {
		s->bad++;
		return false;
	}
	qp->left = w->length;
	qp->at = w->addr;
	qp->begun = false;
	return true;
}

static uint8_t
opcode(bool write, bool first, bool last)
{
	if (!write)
		return SKELETON_SEND_ONLY;
	if (first)
		return last ? SKELETON_WRITE_ONLY : SKELETON_WRITE_FIRST;
	return last ? SKELETON_WRITE_LAST : SKELETON_WRITE_MIDDLE;
}

static void
send_packet(struct skeleton_endpoint *s, struct skeleton_qp *qp, uint32_t qpn, struct rte_mbuf *m)
{
	struct skeleton_headers *h = rte_pktmbuf_mtod(m, struct skeleton_headers *);
	struct skeleton_wqe *w = skeleton_wqe(qp, qp->next);
	uint32_t length = RTE_MIN(qp->left, s->config.mtu);
	bool first = !qp->begun, last = length == qp->left;
	uint32_t psn = qp->psn++ & PSN_BITS, extension = 0;

	memcpy(h, &qp->header, sizeof(*h));
	h->opcode = opcode(s->config.write, first, last);
	h->qpn = rte_cpu_to_be_32(qpn);
	h->psn = rte_cpu_to_be_32(psn);
	if (last || psn % ASK_EVERY == ASK_EVERY - 1)
		h->psn |= ACK_ASKED;
	if (last)
		w->psn = psn;
	if (s->config.write && first) {
		struct skeleton_reth *reth = (struct skeleton_reth *)(h + 1);

		reth->va = rte_cpu_to_be_64(w->remote_addr);
		reth->rkey = rte_cpu_to_be_32(w->rkey);
		reth->length = rte_cpu_to_be_32(w->length);
		extension = sizeof(*reth);
	}
	m->data_len = skeleton_finish(s, h, extension, s->mr[w->lkey & 3].base + qp->at, length);
	m->pkt_len = m->data_len;
	qp->left -= length;
	qp->at += length;
	qp->begun = true;
	if (last)
		qp->next++;
}

/* Send a QP's packets in its turn. @return their number */
static unsigned int
send_turn(struct skeleton_endpoint *s, struct skeleton_qp *qp, uint32_t qpn, struct rte_mbuf **m,
	unsigned int room)
{
	unsigned int n;

	for (n = 0; n < RTE_MIN(room, (unsigned int)SKELETON_TURN); n++) {
		if (in_flight(qp) >= s->config.window ||
			(qp->left == 0 && !skeleton_begin_message(s, qp)))
			break;
		send_packet(s, qp, qpn, m[n]);
	}
	return n;
}

static unsigned int
skeleton_send_packets(struct skeleton_endpoint *s)
{
	struct rte_mbuf *m[SKELETON_BURST];
	unsigned int n = 0, visits, sent;

	if (rte_pktmbuf_alloc_bulk(s->pool, m, SKELETON_BURST) != 0)
		return 0;
	for (visits = 0; visits < s->config.qps && n < SKELETON_BURST; visits++) {
		uint32_t qpn = s->turn++ % s->config.qps;

		n += send_turn(s, &s->qp[qpn], qpn, m + n, SKELETON_BURST - n);
	}
	sent = n > 0 ? rte_eth_tx_burst(s->ethdev, 0, m, (uint16_t)n) : 0;
	s->bad += n - sent; /* cannot happen: the rings are larger than all windows together */
	if (sent < SKELETON_BURST)
		rte_pktmbuf_free_bulk(m + sent, SKELETON_BURST - sent);
	s->packets += sent;
	return n;
}

unsigned int
skeleton_request(struct skeleton_endpoint *s)
{
	uint64_t start = rte_rdtsc();
	unsigned int n = take_acks(s);

	n += skeleton_send_packets(s);
	if (n > 0)
		s->busy += rte_rdtsc() - start;
	return n;
}
