/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of private.h claim about versions and who holds them, asserted. */

#include <rte_debug.h>

#include "store/private.h"

#ifdef RTE_ENABLE_ASSERT

/* Of longer lists only the beginning is checked, so that a checked build stays usable. */
#define WALK_MAX 64

static uint64_t
check_blocks(const struct retired *r)
{
	uint64_t sum = 0;
	size_t i;

	RTE_ASSERT(r->blocks.n <= r->blocks.room);
	for (i = 0; i < r->blocks.n; i++) {
		RTE_ASSERT(r->blocks.at[i].mem != NULL && r->blocks.at[i].born <= r->number);
		sum += r->blocks.at[i].size;
	}
	return sum;
}

/* Old versions: oldest first, each with the bytes of its blocks; first those without grace. */
static void
check_old(const struct store *s)
{
	const struct retired *r, *before = NULL;
	uint64_t bytes = 0;
	unsigned int n = 0;

	for (r = s->old; r != NULL && n < WALK_MAX; before = r, r = r->next, n++) {
		RTE_ASSERT(r->number == r->version->number && r->number < s->current->number);
		RTE_ASSERT(before == NULL || before->number < r->number);
		RTE_ASSERT(r != s->in_grace || r->number > s->graced);
		RTE_ASSERT(r->blocks.n > WALK_MAX ||
			r->bytes == sizeof(*r->version) + check_blocks(r));
		bytes += r->bytes;
	}
	if (r != NULL)
		return;
	RTE_ASSERT(*s->old_tail == NULL && s->stats.old_bytes == bytes);
	RTE_ASSERT(s->old_tail == (before == NULL ? &s->old : (struct retired **)&before->next));
}

void
store_check(const struct store *s)
{
	const struct store_txn *t = &s->txn;

	RTE_ASSERT(s->current->store == s);
	RTE_ASSERT(s->stale_done <= s->stale_below && s->stale_below <= s->current->number);
	RTE_ASSERT(s->graced < s->current->number);
	RTE_ASSERT(s->stats.old_bytes <= s->stats.bytes);
	RTE_ASSERT(t->open || (t->made.n == 0 && t->retired.n == 0 && t->num_ops == 0));
	check_old(s);
}

/* On the reader's thread: places from top on are unused, and the last one below it is used. */
void
store_reader_check(const struct store_reader *r)
{
	unsigned int i;

	RTE_ASSERT(r->top <= r->store->slots && r->last < r->store->slots);
	RTE_ASSERT(r->top == 0 || r->held[r->top - 1].version != NULL);
	RTE_ASSERT(r->top == r->store->slots || r->held[r->top].version == NULL);
	for (i = 0; i < r->top && i < WALK_MAX; i++)
		RTE_ASSERT((r->held[i].version == NULL) == (r->held[i].count == 0));
}

#endif
