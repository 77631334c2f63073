/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print a packet as one line of text. */

#include <inttypes.h>

#include "base/line.h"
#include "wire/wire.h"

static void
put_syndrome(struct line *l, uint8_t syndrome)
{
	static const char *const naks[] = { "PSN sequence", "invalid request", "remote access",
		"remote operational", "invalid RD request" };
	uint8_t value = AETH_VALUE(syndrome);

	switch (AETH_KIND(syndrome)) {
	case AETH_ACK:
		if (value == AETH_NO_CREDITS)
			line_put(l, "ACK");
		else
			line_put(l, "ACK credits %u", credit_values[value]);
		break;
	case AETH_RNR_NAK:
		line_put(l, "RNR NAK %" PRIu64 " us", rnr_timer_ns[value] / 1000);
		break;
	case AETH_NAK:
		if (value < sizeof(naks) / sizeof(naks[0])) {
			line_put(l, "NAK %s", naks[value]);
			break;
		}
		/* fallthrough */
	default:
		line_put(l, "reserved syndrome 0x%02x", syndrome);
	}
}

const char *
wire_print_syndrome(uint8_t syndrome, char *buf, size_t size)
{
	struct line l = { .buf = buf, .size = size };

	buf[0] = '\0';
	put_syndrome(&l, syndrome);
	return buf;
}

void
wire_print(const struct packet *pkt, char *buf, size_t size)
{
	struct line l = { .buf = buf, .size = size };
	uint8_t headers = pkt->op->headers;

	if (size == 0)
		return;
	buf[0] = '\0';
	line_put(&l, "%s psn %u qp 0x%x", pkt->op->name, pkt->psn, pkt->dest_qpn);
	if (headers & HDR_DETH)
		line_put(&l, " from qp 0x%x qkey 0x%x", pkt->src_qpn, pkt->qkey);
	if (headers & HDR_AETH) {
		line_put(&l, " ");
		put_syndrome(&l, pkt->syndrome);
		line_put(&l, " msn %u", pkt->msn);
	}
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
