/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

/**
 * @file
 * What bounds any data path over this port, each by itself: nanoseconds a packet.
 */

#include <rte_ring.h>

#include "limits/skeleton.h"

enum {
	LIMIT_PACKET_IO,
	LIMIT_COPY,
	LIMIT_CRC,
	LIMIT_RING,
	/* packet io with a payload that comes from a region */
	LIMIT_COPIED_CRC,
	LIMIT_REFERRED_CRC,
	LIMIT_COPIED,
	LIMIT_REFERRED,
	LIMITS
};

/** RoCEv2 over IPv4, and the ICRC */
#define LIMIT_HEADERS (14 + 20 + 8 + 12 + 4)

/** Packets that refer to a region: it may go away when they are equal. One writer each. */
struct lent {
	uint64_t out, back;
};

struct limits {
	struct skeleton_endpoint *end; /**< both of them; their ports and memory are used */
	struct rte_ring *ring;
	uint32_t payload; /**< bytes of a packet */
	uint32_t frame; /**< and with its headers */
	struct lent lent;
};

extern const char *const limit_names[LIMITS];

/**
 * Create the two skeletons @p end of @p config, on a pair of ports in memory called @p name, and what measures
 * the limits on them. limits_destroy() destroys all of it, also after an error.
 */
int limits_create(struct limits *l, struct skeleton_endpoint end[ROLES], const char *name,
	const struct skeleton_config *config, struct error *err);
void limits_destroy(struct limits *l);
/** Packets of @p payload bytes from now on, at most what the ends were made for. */
void limits_set_payload(struct limits *l, uint32_t payload);
/** For @p seconds. @return ns a packet */
double limit_measure(struct limits *l, unsigned int limit, double seconds);

/* --- for limit_payload.c --- */

/** As the messages go through the memory. */
uint64_t limit_next_offset(struct limits *l);
/** A burst of payloads through both ports, copied or by reference. */
void limit_payload(struct limits *l, bool reference, bool crc);

#endif
