/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_OWNER_H
#define RC_OWNER_H

/**
 * @file
 * Who processes a received packet: the worker of its queue pair, or somebody else.
 */

#include "wire/layout.h"
#include "wire/wire.h"

/** True if the DestQP decides who owns the packet: no management, no CNP, no multicast. */
static inline bool
rc_owned_by_qp(const struct packet *pkt)
{
	return likely(pkt->opcode != OPCODE_CNP) && likely(pkt->vl != LRH_VL_SMP) &&
		likely(qpn_ordinary(pkt->dest_qpn));
}

#endif
