/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_ICRC_MASKS_H
#define WIRE_ICRC_MASKS_H

/**
 * @file
 * The variant fields, whose bits the ICRC takes as ones (rc-transport 9): one table for all who
 * compute it.
 */

#include <stdint.h>

#include <rte_common.h>

/**
 * Bytes of a row before layer 3. The last four are ones, all others zeros: the ICRC starts with
 * eight bytes of ones before layer 3, and the ones in its register cancel the first four. So the
 * CRC may begin anywhere there, from a register of 0. The length aligns what is eight bytes before
 * layer 3, where three blocks of 16 bytes end with an IPv4 packet's BTH.
 */
#define ICRC_FRONT 72
/** Bytes of a row from layer 3 on: all variant fields, then zeros. */
#define ICRC_REST 136

/**
 * Masks by enum encap: 1 bits count as ones. The row of ENCAP_IB is for packets without a GRH; one
 * with a GRH is masked from there on as RoCEv1, and its LRH counts as ones.
 */
extern const uint8_t icrc_masks[][ICRC_FRONT + ICRC_REST] __rte_aligned(16);

/** The mask of packets of this carrier, from layer 3 on. */
static inline const uint8_t *
icrc_mask(unsigned int encap)
{
	return icrc_masks[encap] + ICRC_FRONT;
}

#endif
