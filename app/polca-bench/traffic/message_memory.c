/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Place messages in a region. Usually they cycle through a small part of it, as in perftest. With
 * --check, all messages are sent from the region's beginning, and each work request has a slot of
 * its own in which its message is compared and cleared before the slot is used again.
 */

#include <string.h>

#include <rte_common.h>

#include "traffic/bench.h"

static uint32_t
stride_of(const struct bench_options *o)
{
	return RTE_ALIGN_CEIL(o->size, RTE_CACHE_LINE_SIZE);
}

static uint32_t
slots_of(const struct bench_options *o)
{
	return RTE_MAX(o->depth, o->rx_depth);
}

/* With --check, the message is followed by the slots. */
uint64_t
memory_bytes(const struct bench_options *o)
{
	if (o->check)
		return stride_of(o) * (1 + (uint64_t)o->qps * slots_of(o));
	return o->workers *
		((uint64_t)RTE_MAX(RTE_ALIGN_CEIL(o->footprint, RTE_CACHE_LINE_SIZE),
			 stride_of(o)) +
			stride_of(o));
}

uint64_t
memory_arrivals(const struct bench_options *o)
{
	return o->mode == BENCH_LAT && o->verb == BENCH_WRITE ? stride_of(o) : 0;
}

static uint8_t
memory_pattern(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 11);
}

/* Never zero, so that a received byte differs from a cleared one. */
static uint8_t
message_byte(uint64_t i)
{
	return memory_pattern(i) | 1;
}

void
memory_fill(struct endpoint *end, const struct bench_options *o)
{
	uint64_t i;

	if (o->check)
		memset(end->mr.base, 0, end->mr.length);
	if (o->verb == BENCH_ATOMIC && o->check)
		return;
	for (i = 0; i < (o->check ? o->size : end->mr.length); i++)
		end->mr.base[i] = o->check ? message_byte(i) : memory_pattern(i);
}

void
memory_share(struct load *l)
{
	uint64_t room =
		l->end->mr.length / l->o->workers / RTE_CACHE_LINE_SIZE * RTE_CACHE_LINE_SIZE;

	l->stride = stride_of(l->o);
	l->begin = l->next = l->worker * room;
	if (l->peer->length != 0 && l->peer->length < room)
		room = RTE_MAX(l->peer->length, l->stride);
	l->end_at = l->begin + room;
}

uint64_t
memory_slot(struct load *l, uint32_t qp)
{
	uint32_t slots = slots_of(l->o);
	uint64_t at = 1 + (uint64_t)l->qp[qp] * slots + l->slot[qp];

	l->slot[qp] = (l->slot[qp] + 1) % slots;
	return at * l->stride;
}

static bool
as_sent(const uint8_t *p, uint32_t size)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		if (p[i] != message_byte(i))
			return false;
	return true;
}

void
memory_check(struct load *l, uint64_t at)
{
	uint8_t *p = l->end->mr.base + at;

	l->wrong += !as_sent(p, l->size);
	memset(p, 0, l->size);
}

/* Each Fetch-and-add has added 1 to some word. */
static uint64_t
check_sum(const struct endpoint *end, uint64_t messages)
{
	const uint64_t *p = (const uint64_t *)(const void *)end->mr.base;
	uint64_t i, sum = 0;

	for (i = 0; i < end->mr.length / sizeof(*p); i++)
		sum += p[i];
	return sum > messages ? sum - messages : messages - sum;
}

uint64_t
memory_check_left(const struct endpoint *end, const struct bench_options *o, uint32_t size,
	uint64_t messages)
{
	uint64_t at, wrong = 0;
	bool any = false;

	if (o->verb == BENCH_ATOMIC)
		/* the words are 0, and the compare-and-swaps expect 1: they change nothing */
		return check_sum(end, o->atomic == 0 ? messages : 0);
	if (o->verb != BENCH_WRITE)
		return 0;
	for (at = stride_of(o); at + size <= end->mr.length; at += stride_of(o)) {
		uint8_t *p = end->mr.base + at;

		if (p[0] == 0 && p[size - 1] == 0)
			continue; /* unused slot */
		any = true;
		wrong += !as_sent(p, size);
		memset(p, 0, size);
	}
	return messages > 0 && !any ? messages : wrong;
}
