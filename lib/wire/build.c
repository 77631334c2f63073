/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Write BTH and the extension headers that the opcode's row names (rc-transport 1, 2). */

#include <rte_debug.h>

#include "wire/put.h"

uint32_t
wire_build(uint8_t *bth, const struct wire_headers *h)
{
	const struct opcode_info *op = &opcodes[h->opcode];
	uint8_t headers = op->headers;
	uint8_t flags = (h->solicited ? BTH_SE : 0) | (h->migreq ? BTH_M : 0) |
		(h->pad & 3) << BTH_PAD_SHIFT;
	uint8_t *p;

	RTE_ASSERT(h->pad <= 3 && h->psn <= PSN_MASK && h->dest_qpn <= QPN_MULTICAST);
	p = put_bth(bth, h->opcode, flags, h->pkey, h->dest_qpn & 0xFFFFFF, h->psn, h->ackreq);
	if (h->opcode == OPCODE_CNP)
		bth[BTH_RESV8A] = BTH_BECN; /* a CNP is the congestion notification (BECN) */
	if (headers & HDR_DETH) {
		put_be32(p, h->qkey);
		put_be32(p + 4, h->src_qpn & 0xFFFFFF);
		p += 8;
	}
	if (headers & HDR_FETH) {
		put_be32(p, 0);
		p += 4;
	}
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
