/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VL15_H
#define ENGINE_VL15_H

/**
 * @file
 * Private to lib/engine: VL15 receive buffers of native IB ports, on worker 0 (smp-sma 1).
 *
 * VL15 has no credits: a packet that finds its port's buffer full is discarded silently. Those that
 * wait are served a few a turn, so that a flood of SMPs starves nobody.
 */

#include "engine/worker.h"
#include "wire/layout.h"

/** Memory for the buffers of all native IB ports. */
int vl15_create(struct worker *w, struct error *err);
/** Packets that still wait are freed; they get no verdict. */
void vl15_destroy(struct worker *w);
/** Does the packet belong into a buffer? What it says is mad_receive_smp()'s to judge. */
static inline bool
vl15_takes(const struct packet *pkt)
{
	return pkt->encap == ENCAP_IB && pkt->vl == LRH_VL_SMP;
}
/** Keep a packet until it is served. @retval false  the buffer is full: it is still the caller's */
bool vl15_put(struct worker *w, struct packet *pkt);
/** Serve what waits, ports in turn. @return packets */
unsigned int vl15_run(struct worker *w, uint64_t now);
bool vl15_pending(const struct worker *w);

#endif
