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

#include "skeleton.h"

enum { LIMIT_PACKET_IO, LIMIT_COPY, LIMIT_CRC, LIMIT_RING, LIMITS };

struct limits {
	struct skeleton_end *end; /**< both of them; their ports and memory are used */
	struct rte_ring *ring;
	uint32_t payload; /**< bytes of a packet */
	uint32_t frame; /**< and with its headers */
};

extern const char *const limit_names[LIMITS];

int limits_create(struct limits *l, struct skeleton_end end[ROLES], struct error *err);
void limits_destroy(struct limits *l);
/** For @p seconds. @return ns a packet */
double limit_measure(struct limits *l, unsigned int limit, double seconds);

#endif
