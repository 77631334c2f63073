/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_WIRE_BUILD_H
#define TEST_WIRE_BUILD_H

/*
 * Build the headers of any packet from its fields, in the order of the opcode table: for peers that
 * tests play. lib writes the few packets that it sends by the functions of wire/put.h.
 */

#include "wire/put.h"

/** The BTH and extension header fields of a packet to send. */
struct wire_headers {
	uint8_t opcode;
	bool solicited;
	bool migreq;
	bool ackreq;
	uint8_t pad;
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
	uint64_t va;
	uint32_t rkey; /**< RETH, AtomicETH or IETH */
	uint32_t dmalen;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t atomic_orig;
	uint32_t imm;
	uint32_t msn;
	uint8_t syndrome;
	uint32_t qkey;
	uint32_t src_qpn;
};

/*
 * Write BTH and the extension headers that the opcode's row names (rc-transport 1, 2).
 *
 * @return bytes written, the row's header_len
 */
static inline uint32_t
wire_build(uint8_t *bth, const struct wire_headers *h)
{
	const struct opcode_info *op = &opcodes[h->opcode];
	uint8_t headers = op->headers;
	uint8_t flags = (h->solicited ? BTH_SE : 0) | (h->migreq ? BTH_M : 0) |
		(h->pad & 3) << BTH_PAD_SHIFT;
	uint8_t *p;

	RTE_ASSERT(h->pad <= 3 && h->psn <= PSN_MASK && h->dest_qpn <= QPN_MULTICAST);
	p = put_bth_of(bth, bth_common(flags, h->pkey, h->dest_qpn & 0xFFFFFF), h->opcode, 0,
		h->psn, h->ackreq);
	if (h->opcode == OPCODE_CNP)
		bth[BTH_RESV8A] = BTH_BECN; /* a CNP is the congestion notification (BECN) */
	if (headers & HDR_DETH) {
		p = put_word(put_word(p, h->qkey), h->src_qpn & 0xFFFFFF);
	}
	if (headers & HDR_FETH)
		p = put_word(p, 0);
	if (headers & HDR_RETH)
		p = put_reth(p, h->va, h->rkey, h->dmalen);
	if (headers & HDR_ATOMICETH)
		p = put_atomiceth(p, h->va, h->rkey, h->swap_add, h->compare);
	if (headers & HDR_AETH)
		p = put_aeth(p, h->syndrome, h->msn);
	if (headers & HDR_ATOMICACK)
		p = put_atomicack(p, h->atomic_orig);
	if (headers & HDR_IMM)
		p = put_word(p, h->imm);
	if (headers & HDR_IETH)
		p = put_word(p, h->rkey);
	RTE_ASSERT((op->flags & OP_VALID) == 0 || p - bth == op->header_len);
	return p - bth;
}

#endif
