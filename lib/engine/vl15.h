/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VL15_H
#define ENGINE_VL15_H

/**
 * @file
 * Private to lib/engine: VL15 receive buffers of native IB ports, on worker 0 (smp-sma 1).
 *
 * VL15 has no credits: an SMP that finds its port's buffer full is dropped. A turn of the worker
 * serves at most VL15_BUDGET SMPs, so that a flood of them does not starve other work.
 */

#include "engine/worker.h"
#include "wire/layout.h"

/** Memory for the buffers of all native IB ports. */
int vl15_create(struct worker *w, struct error *err);
/** Free packets that still wait, without verdict. */
void vl15_destroy(struct worker *w);
/** True for a packet on VL15 of a native IB port; mad_receive_smp() checks its contents later. */
static inline bool
vl15_takes(const struct packet *pkt)
{
	return pkt->encap == ENCAP_IB && pkt->vl == LRH_VL_SMP;
}
/**
 * Put a packet into its port's buffer. @retval false  the buffer is full; the caller keeps the
 * packet
 */
bool vl15_put(struct worker *w, struct packet *pkt);
/** Serve waiting packets, ports in turn. @return packets served */
unsigned int vl15_run(struct worker *w, uint64_t now);
bool vl15_pending(const struct worker *w);

#endif
