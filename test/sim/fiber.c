/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <ucontext.h>

#include "fiber.h"
#include "sim.h"

#define STACK (256u << 10)

struct fiber {
	struct fiber *next;
	struct sim *sim;
	ucontext_t context;
	void *stack;
	void (*fn)(void *arg);
	void *arg;
	const bool *killed;
	uint64_t wake_at;
	bool waits;
	bool ended;
};

static struct fiber *fibers; /* all, because events may still name one that has ended */
static struct fiber *running;
static ucontext_t outside;

static void
fiber_main(void)
{
	struct fiber *f = running;

	f->fn(f->arg);
	f->ended = true;
	swapcontext(&f->context, &outside);
}

void
fiber_resume(struct fiber *f)
{
	if (f->ended || running != NULL)
		return;
	f->waits = false;
	running = f;
	swapcontext(&outside, &f->context);
	running = NULL;
	if (!f->ended)
		return;
	free(f->stack);
	f->stack = NULL;
}

/* An event: it may have been woken earlier, and wait for something else now. */
static void
fiber_turn(struct sim *s, void *arg)
{
	struct fiber *f = arg;

	if (f->waits && s->now >= f->wake_at)
		fiber_resume(f);
}

struct fiber *
fiber_start(struct sim *s, void (*fn)(void *arg), void *arg, const bool *killed)
{
	struct fiber *f = calloc(1, sizeof(*f));

	if (f == NULL || (f->stack = malloc(STACK)) == NULL || getcontext(&f->context) != 0)
		abort();
	f->sim = s;
	f->fn = fn;
	f->arg = arg;
	f->killed = killed;
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK;
	makecontext(&f->context, fiber_main, 0);
	f->next = fibers;
	fibers = f;
	f->waits = true;
	f->wake_at = s->now;
	sim_at(s, s->now, fiber_turn, f);
	return f;
}

void
fiber_wait(uint64_t until)
{
	struct fiber *f = running;

	if (f == NULL)
		abort();
	if (*f->killed)
		return;
	f->waits = true;
	f->wake_at = until;
	if (until != UINT64_MAX)
		sim_at(f->sim, until, fiber_turn, f);
	swapcontext(&f->context, &outside);
}

void
fiber_wake(struct fiber *f, uint64_t at)
{
	if (f == NULL || !f->waits || f->wake_at <= at)
		return;
	f->wake_at = at;
	sim_at(f->sim, at, fiber_turn, f);
}

bool
fiber_ended(const struct fiber *f)
{
	return f == NULL || f->ended;
}

struct fiber *
fiber_now(void)
{
	return running;
}

void
fiber_free_all(void)
{
	struct fiber *f;

	while ((f = fibers) != NULL) {
		fibers = f->next;
		free(f->stack);
		free(f);
	}
}
