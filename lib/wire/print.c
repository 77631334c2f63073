/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A packet as one line of text. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "wire/wire.h"

struct line {
	char *buf;
	size_t size;
	size_t used;
};

static void __attribute__((format(printf, 2, 3)))
put(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	if (l->used >= l->size)
		return;
	va_start(args, format);
	n = vsnprintf(l->buf + l->used, l->size - l->used, format, args);
	va_end(args);
	l->used = n < 0 || (size_t)n >= l->size - l->used ? l->size : l->used + n;
}

static void
put_syndrome(struct line *l, uint8_t syndrome)
{
	static const char *const naks[] = { "PSN sequence", "invalid request", "remote access",
		"remote operational", "invalid RD request" };
	uint8_t value = AETH_VALUE(syndrome);

	switch (AETH_KIND(syndrome)) {
	case AETH_ACK:
		if (value == AETH_NO_CREDITS)
			put(l, " ACK");
		else
			put(l, " ACK credits %u", credit_values[value]);
		break;
	case AETH_RNR_NAK:
		put(l, " RNR NAK %" PRIu64 " us", rnr_timer_ns[value] / 1000);
		break;
	case AETH_NAK:
		if (value < sizeof(naks) / sizeof(naks[0])) {
			put(l, " NAK %s", naks[value]);
			break;
		}
		/* fallthrough */
	default:
		put(l, " reserved syndrome 0x%02x", syndrome);
	}
}

void
wire_print(const struct packet *pkt, char *buf, size_t size)
{
	struct line l = { .buf = buf, .size = size };
	uint8_t headers = pkt->op->headers;

	if (size == 0)
		return;
	buf[0] = '\0';
	put(&l, "%s psn %u qp 0x%x", pkt->op->name, pkt->psn, pkt->dest_qpn);
	if (headers & HDR_DETH)
		put(&l, " from qp 0x%x qkey 0x%x", pkt->src_qpn, pkt->qkey);
	if (headers & HDR_AETH) {
		put_syndrome(&l, pkt->syndrome);
		put(&l, " msn %u", pkt->msn);
	}
	if (headers & (HDR_RETH | HDR_ATOMICETH))
		put(&l, " va 0x%" PRIx64 " rkey 0x%x", pkt->va, pkt->rkey);
	if (headers & HDR_RETH)
		put(&l, " dmalen %u", pkt->dmalen);
	if (headers & HDR_ATOMICETH)
		put(&l, pkt->opcode == RC_CMP_SWAP ? " swap 0x%" PRIx64 : " add 0x%" PRIx64,
			pkt->swap_add);
	if (pkt->opcode == RC_CMP_SWAP)
		put(&l, " compare 0x%" PRIx64, pkt->compare);
	if (headers & HDR_ATOMICACK)
		put(&l, " original 0x%" PRIx64, pkt->atomic_orig);
	if (headers & HDR_IMM)
		put(&l, " imm 0x%x", pkt->imm);
	if (headers & HDR_IETH)
		put(&l, " invalidate rkey 0x%x", pkt->rkey);
	put(&l, " len %u", pkt->payload_len);
	if (pkt->solicited)
		put(&l, " solicited");
	if (pkt->ackreq)
		put(&l, " ackreq");
}
