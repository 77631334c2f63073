/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

/**
 * @file
 * The limits of any data path over this port, each measured alone in nanoseconds per packet.
 */

#include <rte_ring.h>

#include "limits/skeleton.h"

enum {
	LIMIT_PACKET_IO,
	LIMIT_COPY,
	LIMIT_CRC,
	LIMIT_RING,
	/* packet I/O with a payload from a region */
	LIMIT_COPIED_CRC,
	LIMIT_REFERRED_CRC,
	LIMIT_COPIED,
	LIMIT_REFERRED,
	LIMITS
};

/** RoCEv2 over IPv4, and the ICRC */
#define LIMIT_HEADERS (14 + 20 + 8 + 12 + 4)

/**
 * References to a region lent to packets: the region may be freed once both are equal. Each has one
 * writer.
 */
struct lent {
	uint64_t out, back;
};

struct limits {
	struct skeleton_endpoint *end; /**< [ROLES]; their ports and memory are used */
	struct rte_ring *ring;
	uint32_t payload; /**< bytes of a packet */
	uint32_t frame; /**< bytes of the packet with its headers */
	struct lent lent;
};

extern const char *const limit_names[LIMITS];

/**
 * Create the two skeletons @p end of @p config, on a pair of ports in memory called @p name, and
 * what measures the limits on them. limits_destroy() destroys all of it, also after an error.
 */
int limits_create(struct limits *l, struct skeleton_endpoint end[ROLES], const char *name,
	const struct skeleton_config *config, struct error *err);
void limits_destroy(struct limits *l);
/** Use packets of @p payload bytes, at most the size that the endpoints were created for. */
void limits_set_payload(struct limits *l, uint32_t payload);
/** Measure for @p seconds. @return ns per packet */
double limit_measure(struct limits *l, unsigned int limit, double seconds);

/* --- for limit_payload.c --- */

/** The offset of the next message, in the same order as real messages. */
uint64_t limit_next_offset(struct limits *l);
/** Send a burst of payloads from port to port, copied or by reference. */
void limit_payload(struct limits *l, bool reference, bool crc);

#endif
