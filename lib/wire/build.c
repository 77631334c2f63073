/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* BTH and extension headers, written from the opcode's row (rc-transport 1 and 2). */

#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/wire.h"

uint32_t
wire_build(uint8_t *bth, const struct wire_headers *h)
{
	const struct opcode_info *op = &opcodes[h->opcode];
	uint8_t headers = op->headers;
	uint8_t *p = bth + BTH_LEN;
	uint32_t resv8a = 0;

	if (h->opcode == OPCODE_CNP)
		resv8a = BTH_BECN; /* a CNP is the backward notification itself */
	bth[0] = h->opcode;
	bth[BTH_FLAGS] = (h->solicited ? BTH_SE : 0) | (h->migreq ? BTH_M : 0) | (h->pad & 3) << 4;
	put_be16(bth + BTH_PKEY, h->pkey);
	put_be32(bth + BTH_DESTQP, resv8a << 24 | (h->dest_qpn & 0xFFFFFF));
	put_be32(bth + BTH_PSN, (h->ackreq ? 1u << 31 : 0) | (h->psn & PSN_MASK));
	if (headers & HDR_DETH) {
		put_be32(p, h->qkey);
		put_be32(p + 4, h->src_qpn & 0xFFFFFF);
		p += 8;
	}
	if (headers & HDR_FETH) {
		put_be32(p, 0);
		p += 4;
	}
	if (headers & HDR_RETH) {
		put_be64(p, h->va);
		put_be32(p + 8, h->rkey);
		put_be32(p + 12, h->dmalen);
		p += 16;
	}
	if (headers & HDR_ATOMICETH) {
		put_be64(p, h->va);
		put_be32(p + 8, h->rkey);
		put_be64(p + 12, h->swap_add);
		put_be64(p + 20, h->compare);
		p += 28;
	}
	if (headers & HDR_AETH) {
		put_be32(p, (uint32_t)h->syndrome << 24 | (h->msn & 0xFFFFFF));
		p += 4;
	}
	if (headers & HDR_ATOMICACK) {
		put_be64(p, h->atomic_orig);
		p += 8;
	}
	if (headers & HDR_IMM) {
		put_be32(p, h->imm);
		p += 4;
	}
	if (headers & HDR_IETH) {
		put_be32(p, h->rkey);
		p += 4;
	}
	return p - bth;
}
