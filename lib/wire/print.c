/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print an AETH syndrome. */

#include <inttypes.h>
#include <stdio.h>

#include "wire/wire.h"

const char *
wire_print_syndrome(uint8_t syndrome, char *buf, size_t size)
{
	static const char *const naks[] = { "PSN sequence", "invalid request", "remote access",
		"remote operational", "invalid RD request" };
	uint8_t value = AETH_VALUE(syndrome);

	switch (AETH_KIND(syndrome)) {
	case AETH_ACK:
		if (value == AETH_NO_CREDITS)
			snprintf(buf, size, "ACK");
		else
			snprintf(buf, size, "ACK credits %u", aeth_scale(value));
		return buf;
	case AETH_RNR_NAK:
		snprintf(buf, size, "RNR NAK %" PRIu64 " us", rnr_timer_ns(value) / 1000);
		return buf;
	case AETH_NAK:
		if (value < RTE_DIM(naks)) {
			snprintf(buf, size, "NAK %s", naks[value]);
			return buf;
		}
	}
	snprintf(buf, size, "reserved syndrome 0x%02x", syndrome);
	return buf;
}
