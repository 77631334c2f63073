/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sa_sim.h"

/* xoroshiro128+ (public domain algorithm): small, and the same on every machine */
uint64_t
sim_rand(struct sim *s)
{
	uint64_t a = s->rng[0], b = s->rng[1], sum = a + b;

	b ^= a;
	s->rng[0] = ((a << 24) | (a >> 40)) ^ b ^ (b << 16);
	s->rng[1] = (b << 37) | (b >> 27);
	return sum;
}

uint32_t
sim_below(struct sim *s, uint32_t n)
{
	return n == 0 ? 0 : (uint32_t)((sim_rand(s) >> 32) % n);
}

uint64_t
sim_wait(struct sim *s, uint64_t mean)
{
	if (2 * mean <= UINT32_MAX)
		return 1 + sim_below(s, (uint32_t)(2 * mean));
	return 1 + sim_rand(s) % (2 * mean);
}

bool
sim_chance(struct sim *s, unsigned int per_10000)
{
	return per_10000 > 0 && sim_below(s, 10000) < per_10000;
}

static uint64_t
splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9E3779B97F4A7C15ull);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}

struct sim *
sim_create(uint64_t seed, struct coverage *coverage, bool verbose)
{
	struct sim *s = calloc(1, sizeof(*s));
	uint64_t x = seed;

	if (s == NULL)
		abort();
	s->seed = seed;
	s->rng[0] = splitmix(&x);
	s->rng[1] = splitmix(&x);
	s->coverage = coverage;
	s->verbose = verbose;
	s->now = SIM_SECOND;
	s->nodes = SIM_NODES;
	s->trace = 1469598103934665603ull;
	return s;
}

void
sim_destroy(struct sim *s)
{
	for (unsigned int i = 0; i < s->heap_count; i++)
		free(s->heap[i].frame);
	free(s->heap);
	free(s);
}

/* What the queue pairs of all nodes did last. */
static void
print_steps(const struct sim *s)
{
	for (unsigned int i = 0; i < s->nodes; i++) {
		const struct sim_node *n = &s->node[i];

		printf("node %u:\n", i);
		if (n->worker != NULL)
			rc_trace_print_all(stdout, n->worker);
		if (n->other != NULL)
			rc_trace_print_all(stdout, n->other);
	}
}

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failed)
		return;
	s->failed = true;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	if (s->verbose)
		printf("%12.3f us FAILED: %s\n", (s->now - SIM_SECOND) / 1e3, s->why);
	if (s->record)
		print_steps(s);
}

/* Every line is hashed, so that a replay with any difference is detected. */
void
sim_trace(struct sim *s, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (int i = 0; i < n && line[i] != '\0'; i++)
		s->trace = (s->trace ^ (uint8_t)line[i]) * 1099511628211ull;
	s->trace = (s->trace ^ s->now) * 1099511628211ull;
	if (s->verbose)
		printf("%12.3f us %s\n", (s->now - SIM_SECOND) / 1e3, line);
}

void
sim_trace_bytes(struct sim *s, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		s->trace = (s->trace ^ word) * 1099511628211ull;
		s->trace ^= s->trace >> 32;
	}
	for (; len > 0; len--)
		s->trace = (s->trace ^ *p++) * 1099511628211ull;
	s->trace = (s->trace ^ s->now) * 1099511628211ull;
}

static bool
sim_earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void
heap_push(struct sim *s, struct sim_event e)
{
	unsigned int i;

	if (s->heap_count == s->heap_size) {
		s->heap_size = s->heap_size == 0 ? 256 : s->heap_size * 2;
		s->heap = realloc(s->heap, s->heap_size * sizeof(*s->heap));
		if (s->heap == NULL)
			abort();
	}
	e.order = s->order++;
	for (i = s->heap_count++; i > 0 && sim_earlier(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct sim_event
heap_pop(struct sim *s)
{
	struct sim_event top = s->heap[0], last = s->heap[--s->heap_count];
	unsigned int i = 0, child;

	while ((child = 2 * i + 1) < s->heap_count) {
		if (child + 1 < s->heap_count && sim_earlier(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!sim_earlier(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	if (s->heap_count > 0)
		s->heap[i] = last;
	return top;
}

void
sim_at(struct sim *s, uint64_t at, void (*fn)(struct sim *s, void *arg), void *arg)
{
	heap_push(s, (struct sim_event){ .at = at, .fn = fn, .arg = arg });
}

void
sim_deliver(struct sim *s, struct sim_node *to, uint64_t at, const uint8_t *frame, uint32_t len)
{
	struct sim_event e = { .at = at, .node = to, .len = len, .frame = malloc(len) };

	if (e.frame == NULL)
		abort();
	memcpy(e.frame, frame, len); /* allocated with len bytes, so that ASan finds reads beyond */
	heap_push(s, e);
}

static void
run_event(struct sim *s, struct sim_event *e)
{
	if (e->fn != NULL) {
		e->fn(s, e->arg);
		return;
	}
	sim_node_receive(e->node, e->frame, e->len);
	free(e->frame);
}

/* One turn of every worker, as in the engine's poll loop. */
static bool
run_nodes(struct sim *s)
{
	bool busy = false;

	for (unsigned int i = 0; i < s->nodes; i++) {
		struct sim_node *n = &s->node[i];

		timer_wheel_run(n->wheel, s->now);
		rc_run(n->worker, s->now, n->burst);
		busy |= rc_pending(n->worker);
		if (n->sa != NULL)
			busy |= sa_side_run(n->sa);
		if (s->guest != NULL)
			busy |= s->guest->run(n);
		timer_wheel_sent(n->wheel, s->now);
	}
	return busy;
}

bool
sim_run(struct sim *s, uint64_t until, bool (*done)(struct sim *s))
{
	while (!s->failed && s->now < until) {
		bool busy = run_nodes(s);
		uint64_t next = UINT64_MAX;

		if (done != NULL && done(s))
			return true;
		if (s->heap_count > 0)
			next = s->heap[0].at;
		for (unsigned int i = 0; i < s->nodes; i++) {
			uint64_t t = timer_wheel_next(s->node[i].wheel);

			if (t < next)
				next = t;
			if (s->node[i].sa != NULL)
				t = sa_side_next(s->node[i].sa);
			else if (s->guest != NULL)
				t = s->guest->next(&s->node[i]);
			if (t < next)
				next = t;
		}
		if (busy && next > s->now + 200)
			next = s->now + 200; /* the next poll */
		if (next == UINT64_MAX)
			return done == NULL; /* no event is left */
		s->now = next > s->now ? next : s->now + 1;
		/* frames that are due arrive as one burst */
		while (s->heap_count > 0 && s->heap[0].at <= s->now) {
			struct sim_event e = heap_pop(s);

			run_event(s, &e);
		}
	}
	return false;
}
