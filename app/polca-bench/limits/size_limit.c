/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "limits/limit.h"
#include "limits/size_limit.h"
#include "median.h"

#define ROUNDS        5
#define ROUND_SECONDS 0.004 /* per limit */
#define PARTS_MAX     3

struct size_limit {
	uint32_t mtu;
	unsigned int part[PARTS_MAX]; /**< limits to add up */
	unsigned int parts;
	struct skeleton_endpoint end[ROLES];
	struct limits limits;
};

static void
choose_parts(struct size_limit *l, bool icrc)
{
	l->part[l->parts++] = icrc ? LIMIT_COPIED_CRC : LIMIT_COPIED;
	if (icrc)
		l->part[l->parts++] = LIMIT_CRC;
	l->part[l->parts++] = LIMIT_COPY;
}

int
size_limit_create(struct size_limit **made, const struct bench_options *o, struct error *err)
{
	struct size_limit *l = calloc(1, sizeof(*l));
	struct skeleton_config config = {
		.size = o->mtu,
		.mtu = o->mtu,
		.qps = 1,
		.window = SKELETON_WINDOW,
		.ack_every = SKELETON_ACK_EVERY,
		/* memory_next() uses at least one message's size */
		.footprint = RTE_MAX(o->footprint, o->size),
		.icrc = o->icrc,
	};

	*made = l;
	if (l == NULL)
		return error_set(err, ENOMEM, "no memory for the limits");
	l->mtu = o->mtu;
	choose_parts(l, o->icrc);
	return limits_create(&l->limits, l->end, "limit", &config, err);
}

void
size_limit_destroy(struct size_limit *l)
{
	if (l == NULL)
		return;
	limits_destroy(&l->limits);
	free(l);
}

/* @return ns per packet; 0: all measurements of one part were interrupted */
static double
measure_once(struct size_limit *l)
{
	double part, sum = 0;
	unsigned int i;

	for (i = 0; i < l->parts; i++) {
		part = limit_measure(&l->limits, l->part[i], ROUND_SECONDS);
		if (part == 0)
			return 0;
		sum += part;
	}
	return sum;
}

double
size_limit_measure(struct size_limit *l, uint32_t size)
{
	unsigned int i, n = 0, packets;
	double ns[ROUNDS];

	limits_set_payload(&l->limits, RTE_MIN(size, l->mtu));
	for (i = 0; i < ROUNDS; i++) {
		ns[n] = measure_once(l);
		if (ns[n] > 0)
			n++;
	}
	packets = RTE_MAX(size / l->mtu, 1u);
	return n > 0 ? median(ns, n) * packets : 0;
}
