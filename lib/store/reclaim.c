/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What old versions alone still use is freed when nobody can see it: a grace period has passed
 * since its successor was published, so that no reader looks at it by the way, and nobody holds a
 * version so old. Past the bound the oldest version held is given up: it becomes stale, readers see
 * that before they look at it again, and a grace period later it counts as held no more.
 */

#include "store/private.h"

static uint64_t
grace_start(struct store *s)
{
	return s->config.grace.start != NULL ? s->config.grace.start(s->config.grace.arg) : 0;
}

static bool
grace_done(struct store *s, uint64_t token)
{
	return s->config.grace.done == NULL || s->config.grace.done(s->config.grace.arg, token);
}

void
retire_version(struct store *s, const struct store_version *v)
{
	struct retired *r = s->txn.old;
	size_t i;

	s->txn.old = NULL;
	*r = (struct retired){
		.number = v->number,
		.grace = grace_start(s),
		.bytes = sizeof(*v),
		.version = (struct store_version *)(uintptr_t)v,
		.blocks = s->txn.retired,
	};
	s->txn.retired = (struct blocks){ 0 };
	for (i = 0; i < r->blocks.n; i++)
		r->bytes += r->blocks.at[i].size;
	stat_add(s, old_bytes, r->bytes);
	*s->old_tail = r;
	s->old_tail = &r->next;
	if (s->in_grace == NULL)
		s->in_grace = r;
}

static uint64_t
held_number(const struct store *s, unsigned int reader, unsigned int i)
{
	return __atomic_load_n(&s->readers[reader].held[i].number, __ATOMIC_ACQUIRE);
}

/* @return the smallest number held that is at least @p from; UINT64_MAX: none */
static uint64_t
oldest_held(const struct store *s, uint64_t from, uint64_t *held)
{
	uint64_t oldest = UINT64_MAX, n;
	unsigned int i, k;

	for (i = 0; i < s->config.readers; i++) {
		for (k = 0; k < s->config.max_versions; k++) {
			n = held_number(s, i, k);
			*held += n != NO_VERSION;
			if (n != NO_VERSION && n >= from && n < oldest)
				oldest = n;
		}
	}
	return oldest;
}

static bool
is_held(const struct store *s, uint64_t number)
{
	unsigned int i, k;

	for (i = 0; i < s->config.readers; i++)
		for (k = 0; k < s->config.max_versions; k++)
			if (held_number(s, i, k) == number)
				return true;
	return false;
}

static void
free_blocks(struct store *s, struct retired *r)
{
	size_t i;

	for (i = 0; i < r->blocks.n; i++)
		store_free(s, r->blocks.at[i].mem, r->blocks.at[i].size);
	blocks_free(s, &r->blocks);
	stat_set(s, old_bytes, s->stats.old_bytes - (r->bytes - sizeof(*r->version)));
	r->bytes = sizeof(*r->version);
}

static void
free_version(struct store *s, struct retired *r)
{
	store_free(s, r->version, sizeof(*r->version));
	stat_set(s, old_bytes, s->stats.old_bytes - r->bytes);
	mem_free(s->config.alloc, r);
}

/* Give up the oldest version held, when too much is kept; one at a time. */
static void
give_up(struct store *s, uint64_t oldest)
{
	if (s->stats.old_bytes <= s->config.max_old_bytes || oldest == UINT64_MAX ||
			oldest >= s->current->number || s->stale_done < s->stale_below)
		return;
	__atomic_store_n(&s->stale_below, oldest + 1, __ATOMIC_RELEASE);
	s->stale_grace = grace_start(s);
	stat_add(s, versions_given_up, 1);
}

/* Which versions' grace periods are over. Before anybody is asked what he holds. */
static void
look_at_grace(struct store *s)
{
	if (s->stale_done < s->stale_below && grace_done(s, s->stale_grace))
		s->stale_done = s->stale_below;
	while (s->in_grace != NULL && grace_done(s, s->in_grace->grace)) {
		s->graced = s->in_grace->number;
		s->in_grace = s->in_grace->next;
	}
}

void
store_reclaim(struct store *s)
{
	struct retired **link = &s->old, *r;
	uint64_t live, held = 0;

	look_at_grace(s);
	live = oldest_held(s, s->stale_done, &held);
	stat_set(s, versions_held, held);
	while ((r = *link) != NULL && r->number <= s->graced && r->number < live) {
		if (r->blocks.at != NULL)
			free_blocks(s, r);
		/* a holder of a stale version still asks it whether it is stale */
		if (r->number < s->stale_done && is_held(s, r->number)) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		if (r->next == NULL)
			s->old_tail = link;
		free_version(s, r);
	}
	give_up(s, live);
}

void
reclaim_all(struct store *s)
{
	struct retired *r;

	while ((r = s->old) != NULL) {
		s->old = r->next;
		if (r->blocks.at != NULL)
			free_blocks(s, r);
		free_version(s, r);
	}
}
