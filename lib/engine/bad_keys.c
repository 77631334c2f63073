/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * P_Key and Q_Key violations of packets from native IB ports: the worker that dropped the packet
 * tells worker 0, whose SMA sends traps 257 and 258. If the ring is full, the details are lost; the
 * violation was counted before.
 */

#include <errno.h>

#include <rte_ring_elem.h>

#include "engine/subnet.h"

#define BAD_KEY_RING 64

struct bad_key {
	uint16_t port;
	struct sma_bad_key key;
};

int
bad_keys_create(struct worker *w, struct error *err)
{
	w->bad_keys = engine_ring("bad_keys", sizeof(struct bad_key), BAD_KEY_RING,
		(int)rte_lcore_to_socket_id(w->lcore), RING_F_SP_ENQ | RING_F_SC_DEQ);
	return w->bad_keys != NULL ? 0 : error_set(err, ENOMEM, "no memory for worker %u", w->id);
}

void
bad_keys_destroy(struct worker *w)
{
	engine_ring_free(w->bad_keys);
	w->bad_keys = NULL;
}

static void
bad_keys_put(struct worker *w, const struct packet *pkt, bool qkey, uint32_t src_qpn)
{
	struct bad_key bad = {
		.port = pkt->port,
		.key = {
			.qkey = qkey,
			.key = qkey ? pkt->qkey : pkt->pkey,
			.lid1 = pkt->slid,
			.lid2 = pkt->dlid,
			.sl = pkt->sl,
			.qp1 = src_qpn,
			.qp2 = pkt->dest_qpn,
		},
	};

	if (pkt->encap != ENCAP_IB || w->bad_keys == NULL)
		return; /* a RoCE port has no SMA */
	if (pkt->has_grh) {
		bad.key.gid1 = pkt->sgid;
		bad.key.gid2 = pkt->dgid;
	}
	rte_ring_sp_enqueue_elem(w->bad_keys, &bad, sizeof(bad));
}

void
bad_key_rc(void *worker, const struct packet *pkt, uint32_t src_qpn)
{
	bad_keys_put(worker, pkt, false, src_qpn);
}

void
bad_key_mad(void *worker, const struct packet *pkt, bool qkey)
{
	bad_keys_put(worker, pkt, qkey, pkt->src_qpn);
}

void
bad_keys_take(struct worker *w, uint64_t now)
{
	struct bad_key bad[BAD_KEY_RING];
	unsigned int i, k, n;

	/*
	 * at most one ringful per worker: a flood may fill the rings faster than this empties them
	 */
	for (i = 0; i < w->workers; i++) {
		n = rte_ring_sc_dequeue_burst_elem(w->engine->worker[i]->bad_keys, bad,
			sizeof(bad[0]), BAD_KEY_RING, NULL);
		for (k = 0; k < n; k++)
			sma_bad_key(w->sma, bad[k].port, &bad[k].key, now);
	}
}
