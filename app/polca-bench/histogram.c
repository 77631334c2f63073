/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"

#define BITS    7 /* 128 steps for each power of two */
#define STEPS   (1u << BITS)
#define BUCKETS ((64 - BITS + 1) * STEPS)

struct histogram {
	uint64_t count;
	uint64_t min, max;
	double mean, m2; /* Welford */
	uint64_t bucket[BUCKETS];
};

struct histogram *
histogram_create(void)
{
	struct histogram *h = malloc(sizeof(*h));

	if (h != NULL)
		histogram_reset(h);
	return h;
}

void
histogram_destroy(struct histogram *h)
{
	free(h);
}

void
histogram_reset(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

static unsigned int
shift_of(uint64_t v)
{
	unsigned int top = 63 - (unsigned int)__builtin_clzll(v | 1);

	return top > BITS ? top - BITS : 0;
}

void
histogram_add(struct histogram *h, uint64_t v)
{
	unsigned int shift = shift_of(v);
	double delta = (double)v - h->mean;

	h->bucket[shift * STEPS + (v >> shift)]++;
	h->count++;
	h->mean += delta / (double)h->count;
	h->m2 += delta * ((double)v - h->mean);
	if (v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
}

uint64_t
histogram_count(const struct histogram *h)
{
	return h->count;
}

uint64_t
histogram_min(const struct histogram *h)
{
	return h->count > 0 ? h->min : 0;
}

uint64_t
histogram_max(const struct histogram *h)
{
	return h->max;
}

double
histogram_mean(const struct histogram *h)
{
	return h->mean;
}

double
histogram_stdev(const struct histogram *h)
{
	return h->count > 1 ? sqrt(h->m2 / (double)(h->count - 1)) : 0;
}

/* The middle of the values that fall into a bucket. */
static double
middle(unsigned int i)
{
	unsigned int shift = i < 2 * STEPS ? 0 : i / STEPS - 1;
	uint64_t low = (uint64_t)(i - shift * STEPS) << shift;

	return (double)low + (double)((UINT64_C(1) << shift) - 1) / 2;
}

double
histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t rank = (uint64_t)ceil(percent / 100 * (double)h->count), seen = 0;
	unsigned int i;

	if (h->count == 0)
		return 0;
	for (i = 0; i < BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank && seen > 0)
			break;
	}
	return fmin(fmax(middle(i), (double)h->min), (double)h->max);
}
