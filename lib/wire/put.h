/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PUT_H
#define WIRE_PUT_H

/**
 * @file
 * Write single headers in place (rc-transport 1). Each function returns the byte after its header.
 */

#include "wire/layout.h"
#include "wire/wire.h"

/**
 * The BTH fields that all packets of a QP share. @param flags  BTH_SE, BTH_M and the pad count <<
 * BTH_PAD_SHIFT
 */
static inline uint64_t
bth_common(uint8_t flags, uint16_t pkey, uint32_t dest_qpn)
{
	return (uint64_t)flags << 48 | (uint64_t)pkey << 32 | dest_qpn;
}

/** Write a BTH from bth_common() and the packet's own fields. @param flags  those not in common */
static inline uint8_t *
put_bth_of(uint8_t *bth, uint64_t common, uint8_t opcode, uint64_t flags, uint32_t psn, bool ackreq)
{
	/* one 64-bit store: path_finish_send() loads these bytes as one number */
	put_be64(bth, common | (uint64_t)opcode << 56 | flags << 48);
	put_be32(bth + BTH_PSN, (uint32_t)ackreq << 31 | (psn & PSN_MASK));
	return bth + BTH_LEN;
}

static inline uint8_t *
put_reth(uint8_t *p, uint64_t va, uint32_t rkey, uint32_t dmalen)
{
	put_be64(p, va);
	put_be32(p + 8, rkey);
	put_be32(p + 12, dmalen);
	return p + 16;
}

static inline uint8_t *
put_atomiceth(uint8_t *p, uint64_t va, uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	put_be64(p, va);
	put_be32(p + 8, rkey);
	put_be64(p + 12, swap_add);
	put_be64(p + 20, compare);
	return p + 28;
}

static inline uint8_t *
put_aeth(uint8_t *p, uint8_t syndrome, uint32_t msn)
{
	put_be32(p, (uint32_t)syndrome << 24 | (msn & 0xFFFFFF));
	return p + 4;
}

static inline uint8_t *
put_atomicack(uint8_t *p, uint64_t original)
{
	put_be64(p, original);
	return p + 8;
}

/** ImmDt, IETH, or a word of another header */
static inline uint8_t *
put_word(uint8_t *p, uint32_t word)
{
	put_be32(p, word);
	return p + 4;
}

/** Write the BTH and the DETH of a UD SEND Only with PSN 0. */
static inline uint8_t *
put_ud(uint8_t *bth, uint16_t pkey, uint32_t dest_qpn, uint32_t qkey, uint32_t src_qpn)
{
	bth = put_bth_of(bth, bth_common(0, pkey, dest_qpn), UD_SEND_ONLY, 0, 0, false);
	return put_word(put_word(bth, qkey), src_qpn);
}

#endif
