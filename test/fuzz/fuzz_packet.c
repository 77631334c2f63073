/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz parsing and validation. The first byte is the encapsulation, the rest a packet from its
 * layer 3 header on.
 */

#include <stdlib.h>
#include <string.h>

#include "../wire/print.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_packet_check(const struct packet *pkt, const uint8_t *l3, uint32_t len)
{
	const uint8_t *end = l3 + len;

	/* the packet view never points outside the bytes */
	if (pkt->op == NULL || pkt->l3 < l3 || pkt->icrc_len + ICRC_LEN > (size_t)(end - pkt->l3) ||
		pkt->bth < pkt->l3 || pkt->payload < pkt->bth ||
		pkt->payload_len + pkt->pad > (size_t)(pkt->l3 + pkt->icrc_len - pkt->payload) ||
		pkt->pad > 3)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet pkt = { 0 };
	enum verdict why = VERDICT_COUNT;
	char text[64];
	uint8_t *l3;
	uint32_t len;

	if (size < 1 || size > 10000)
		return 0;
	len = (uint32_t)size - 1;
	l3 = malloc(len + !len); /* exactly as long, so that ASan finds reads beyond */
	if (l3 == NULL)
		return 0;
	memcpy(l3, data + 1, len);
	if (wire_parse((enum encap)(data[0] & 3), l3, len, &pkt, &why)) {
		fuzz_packet_check(&pkt, l3, len);
		if (!wire_crc_ok(&pkt, &why) && verdict_infos[why].kind != VERDICT_DROPPED)
			abort();
		wire_print(&pkt, text, sizeof(text));
	} else if (why >= VERDICT_COUNT || verdict_infos[why].kind != VERDICT_DROPPED) {
		abort(); /* a dropped packet must have a verdict */
	}
	free(l3);
	return 0;
}
