/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Latency as perftest measures it. For Sends and Writes it is half a ping-pong, in which each side
 * answers the other's message; a Write is detected by its last byte in memory. For Reads and
 * Atomics it is the whole round trip.
 */

#include <errno.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "traffic/bench.h"

/* offset at which the peer's Writes arrive; our own are sent from offset 0 */
#define ARRIVALS l->stride

#define PAUSE_US 200 /* longer than an iteration that receives and sends a burst */

static bool
is_target(const struct load *l)
{
	return l->end->role == RESPONDER;
}

/* In perftest's write latency test, the server sends first. */
static bool
is_asked(const struct load *l)
{
	return l->o->perftest != NULL && l->o->verb == BENCH_WRITE;
}

/* The last byte of the nth Write differs from that of the previous one. perftest uses a counter. */
static uint8_t
lat_mark(const struct load *l, uint64_t nth)
{
	return (uint8_t)(1 + (is_asked(l) ? nth : nth % 255));
}

static int
lat_post_write(struct load *l, struct error *err)
{
	struct sge sge = { l->end->mr.va, l->size, l->end->mr.key };
	struct send_wr wr = {
		.opcode = WR_RDMA_WRITE,
		.num_sge = 1,
		.sg_list = &sge,
		.send_flags = SEND_SIGNALED,
		.remote_addr = l->peer->va + (is_asked(l) ? 0 : ARRIVALS),
		.rkey = l->peer->key,
	};
	int ret;

	l->end->mr.base[l->size - 1] = lat_mark(l, l->turns - is_asked(l));
	if (l->size <= l->o->inline_size) {
		wr.send_flags |= SEND_INLINE;
		wr.num_sge = 0;
		wr.inline_data = l->end->mr.base;
		wr.inline_len = l->size;
	}
	ret = rc_post_send(l->rc, l->end->qpn[0], &wr, err);
	l->posted += ret == 0;
	return ret;
}

static int
lat_post(struct load *l, struct error *err)
{
	return l->o->verb == BENCH_WRITE ? lat_post_write(l, err) : load_post_send(l, 0, err);
}

/* Send a request and take the time. */
static int
lat_ask(struct load *l, struct error *err)
{
	l->waiting = true;
	if (l->pauses != NULL)
		l->pauses_then = __atomic_load_n(l->pauses, __ATOMIC_RELAXED);
	l->start = rte_rdtsc();
	return lat_post(l, err);
}

static void
lat_answered(struct load *l)
{
	uint64_t took = rte_rdtsc() - l->start;
	bool half = l->o->verb == BENCH_SEND || l->o->verb == BENCH_WRITE;

	bool all;

	if (l->start != 0 &&
		(l->pauses == NULL ||
			__atomic_load_n(l->pauses, __ATOMIC_RELAXED) == l->pauses_then))
		histogram_add(l->histogram, half ? took / 2 : took);
	__atomic_store_n(&l->turns, l->turns + 1, __ATOMIC_RELAXED);
	l->waiting = false;
	all = l->count > 0 && l->posted == l->count;
	if (!all && !l->stopping && lat_ask(l, NULL) != 0)
		l->failed++;
	/* the requester of a perftest ping-pong gets no answer to its last message */
	if (is_asked(l) && l->count > 0 && l->posted == l->count)
		l->waiting = false;
}

/* The peer's message has arrived. */
static void
lat_arrived(struct load *l)
{
	if (!is_target(l)) {
		lat_answered(l);
		return;
	}
	if (lat_post(l, NULL) != 0)
		l->failed++;
	l->turns++;
}

static bool
lat_written(const struct load *l)
{
	const uint8_t *last = l->end->mr.base + ARRIVALS + l->size - 1;

	return (l->waiting || is_target(l)) &&
		__atomic_load_n(last, __ATOMIC_ACQUIRE) == lat_mark(l, l->turns);
}

/* Count an interruption: another thread had the CPU since the last iteration. */
static void
look_for_pause(struct load *l)
{
	uint64_t now = rte_rdtsc();

	if (now - l->last_turn > PAUSE_US * (rte_get_tsc_hz() / 1000000))
		__atomic_fetch_add(l->pauses, 1, __ATOMIC_RELAXED);
	l->last_turn = now;
}

static unsigned int
lat_turn(struct load *l)
{
	uint64_t received = l->received, done = l->done;
	unsigned int n;

	if (l->pauses != NULL)
		look_for_pause(l);
	n = load_turn(l);
	if (l->received != received || (l->o->verb >= BENCH_READ && l->done != done) ||
		(l->o->verb == BENCH_WRITE && lat_written(l))) {
		lat_arrived(l);
		n++;
	}
	return n;
}

/* Do not post the next request yet: the answer triggers it. */
static void
lat_sent(struct load *l, uint32_t qp)
{
	RTE_SET_USED(qp);
	__atomic_store_n(&l->done, l->done + 1, __ATOMIC_RELAXED);
}

int
lat_create(struct load *l, struct error *err)
{
	if (!l->sends)
		return 0;
	l->turn = lat_turn;
	l->sent = lat_sent;
	l->histogram = histogram_create();
	return l->histogram != NULL ? 0 : error_set(err, ENOMEM, "no memory for samples");
}

void
lat_begin(struct load *l)
{
	histogram_reset(l->histogram);
	l->turns = 0;
	l->waiting = false;
	/* perftest's server may already have written */
	if (l->o->verb == BENCH_WRITE && !is_asked(l))
		l->end->mr.base[ARRIVALS + l->size - 1] = 0;
}

int
lat_send(struct load *l, struct error *err)
{
	l->start = 0;
	l->waiting = is_asked(l);
	return is_target(l) || is_asked(l) ? 0 : lat_ask(l, err);
}
