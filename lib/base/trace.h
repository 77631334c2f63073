/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TRACE_H
#define BASE_TRACE_H

/**
 * @file
 * The flight recorder of one object: a ring of its last TRACE_STEPS steps.
 *
 * A QP, connection or session has a pointer to one, which is NULL until its recording is switched
 * on. What a step's numbers mean is up to the object's folder: rc/trace.h, cm/trace.h and
 * mad/trace.h. Only the object's worker writes it; others get a copy.
 */

#include <stdint.h>
#include <stdio.h>

#define TRACE_STEPS 64

struct trace_step {
	uint64_t time; /**< time units: the `now` of the step, no clock is read for it */
	uint32_t number; /**< PSN, communication ID or segment number of the packet */
	uint32_t expected; /**< what the object expected in its place */
	uint32_t value; /**< the event's own: bytes, retries left */
	uint8_t event; /**< which kind of step */
	uint8_t what; /**< opcode, message or state before */
	uint8_t outcome; /**< verdict, or state after */
	uint8_t detail; /**< AETH syndrome, status */
};
_Static_assert(sizeof(struct trace_step) == 24, "few bytes a step");

struct trace {
	uint64_t count; /**< steps recorded so far; the ring holds the last of them */
	struct trace_step step[TRACE_STEPS];
};

/** Record a step in the place of the oldest. @return where it is, to add its outcome */
static inline struct trace_step *
trace_put(struct trace *t, struct trace_step step)
{
	struct trace_step *to = &t->step[t->count++ % TRACE_STEPS];

	*to = step;
	return to;
}

/** Number of steps in the ring. */
static inline unsigned int
trace_length(const struct trace *t)
{
	return t->count < TRACE_STEPS ? (unsigned int)t->count : TRACE_STEPS;
}

/** The i-th of trace_length() steps, the oldest first. */
static inline const struct trace_step *
trace_at(const struct trace *t, unsigned int i)
{
	return &t->step[(t->count - trace_length(t) + i) % TRACE_STEPS];
}

/**
 * Print the steps, a line each, with the time since the oldest; or that there are none.
 *
 * @param t    NULL: the object was not recorded
 * @param hz   time units a second
 * @param put  prints what a step means to the object's folder, without the end of the line
 */
void trace_print(FILE *f, const struct trace *t, uint64_t hz,
	void (*put)(FILE *f, const struct trace_step *s));

#endif
