/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* One direction of a link in memory: a ring of frames. */

#include <stdlib.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "agents/agents.h"

#define ETHER_LEN 14

uint64_t
bench_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static uint8_t *
frames_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct frames *q = container_of(sink, struct frames, sink);

	if (q->tail - q->head == q->size)
		return NULL;
	q->path = path;
	q->reserved = len;
	return q->frame[q->tail & (q->size - 1)].bytes + PATH_HEADER_MAX;
}

static void
frames_commit(struct tx_sink *sink)
{
	struct frames *q = container_of(sink, struct frames, sink);
	struct frame *f = &q->frame[q->tail & (q->size - 1)];

	f->start = PATH_HEADER_MAX - q->path->header_len;
	f->len = path_finish(q->path, f->bytes + PATH_HEADER_MAX, q->reserved, (uint16_t)q->tail);
	f->due = RTE_MAX(q->now + q->delay, q->last_due + q->gap);
	q->last_due = f->due;
	if (q->loss != 0 && (uint32_t)bench_random(&q->random) < q->loss)
		q->lost++;
	else
		q->tail++;
}

void
frames_init(struct frames *q, uint32_t size)
{
	*q = (struct frames){ .sink = { frames_reserve, frames_commit, tx_send_in_parts },
		.size = size };
	q->frame = calloc(size, sizeof(*q->frame));
	if (q->frame == NULL)
		bench_die("no memory for the link");
}

void
frames_free(struct frames *q)
{
	free(q->frame);
}

uint64_t
frames_next_due(const struct frames *q)
{
	return q->head == q->tail ? UINT64_MAX : q->frame[q->head & (q->size - 1)].due;
}

const struct packet *
frames_front(struct frames *q, struct packet *pkt, uint64_t now)
{
	struct frame *f = &q->frame[q->head & (q->size - 1)];
	enum verdict why;

	if (q->head == q->tail || f->due > now)
		return NULL;
	rte_prefetch0(q->frame[(q->head + 1) & (q->size - 1)].bytes);
	if (!wire_parse(q->encap, f->bytes + f->start + ETHER_LEN, f->len - ETHER_LEN, pkt, &why))
		bench_die(verdict_infos[why].name);
	pkt->port = 0;
	pkt->smac = f->bytes + f->start + 6;
	pkt->rx_time = now;
	pkt->mbuf = NULL;
	return pkt;
}

void
frames_pop(struct frames *q)
{
	q->head++;
}
