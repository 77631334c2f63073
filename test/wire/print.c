/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>

#include "base/line.h"
#include "print.h"

void
wire_print(const struct packet *pkt, char *buf, size_t size)
{
	struct line l = { .buf = buf, .size = size };
	char syndrome[40];
	uint8_t headers = pkt->op->headers;

	if (size == 0)
		return;
	buf[0] = '\0';
	line_put(&l, "%s psn %u qp 0x%x", pkt->op->name, pkt->psn, pkt->dest_qpn);
	if (headers & HDR_DETH)
		line_put(&l, " from qp 0x%x qkey 0x%x", pkt->src_qpn, pkt->qkey);
	if (headers & HDR_AETH)
		line_put(&l, " %s msn %u",
			wire_print_syndrome(pkt->syndrome, syndrome, sizeof(syndrome)), pkt->msn);
	if (headers & (HDR_RETH | HDR_ATOMICETH))
		line_put(&l, " va 0x%" PRIx64 " rkey 0x%x", pkt->va, pkt->rkey);
	if (headers & HDR_RETH)
		line_put(&l, " dmalen %u", pkt->dmalen);
	if (headers & HDR_ATOMICETH)
		line_put(&l, pkt->opcode == RC_CMP_SWAP ? " swap 0x%" PRIx64 : " add 0x%" PRIx64,
			pkt->swap_add);
	if (pkt->opcode == RC_CMP_SWAP)
		line_put(&l, " compare 0x%" PRIx64, pkt->compare);
	if (headers & HDR_ATOMICACK)
		line_put(&l, " original 0x%" PRIx64, pkt->atomic_orig);
	if (headers & HDR_IMM)
		line_put(&l, " imm 0x%x", pkt->imm);
	if (headers & HDR_IETH)
		line_put(&l, " invalidate rkey 0x%x", pkt->rkey);
	line_put(&l, " len %u", pkt->payload_len);
	if (pkt->solicited)
		line_put(&l, " solicited");
	if (pkt->ackreq)
		line_put(&l, " ackreq");
}
