/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Free the blocks that only old versions use. A block is freed when no reader holds a version that
 * contains it, and a grace period has passed since the successor of the last such version was
 * published, so that no reader uses it without holding it. A version held for long keeps only its
 * own blocks, not those of versions that came and went after it.
 *
 * Above the limits the oldest held version is given up: it becomes stale, readers check that before
 * they use it again, and after a grace period it no longer counts as held.
 */

#include <string.h>

#include "store/private.h"

#define COMMIT_SHARE 8 /* versions held that one commit looks at, about */

static uint64_t
store_grace_start(struct store *s)
{
	return s->config.grace.start != NULL ? s->config.grace.start(s->config.grace.arg) : 0;
}

static bool
store_grace_done(struct store *s, uint64_t token)
{
	return s->config.grace.done == NULL || s->config.grace.done(s->config.grace.arg, token);
}

/* Free the blocks born after version @p number; the others stay, in order. */
static void
free_younger(struct store *s, struct blocks *b, uint64_t number)
{
	size_t i, kept = 0;

	for (i = 0; i < b->n; i++) {
		if (b->at[i].born <= number)
			b->at[kept++] = b->at[i];
		else
			store_free(s, b->at[i].mem, b->at[i].size);
	}
	b->n = kept;
}

static uint64_t
sum_of(const struct blocks *b)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < b->n; i++)
		sum += b->at[i].size;
	return sum;
}

static void
set_bytes(struct store *s, struct retired *r, uint64_t bytes)
{
	stat_set(s, old_bytes, s->stats.old_bytes - r->bytes + bytes);
	r->bytes = bytes;
}

void
retire_version(struct store *s, const struct store_version *v)
{
	struct retired *r = s->txn.old;

	s->txn.old = NULL;
	*r = (struct retired){
		.number = v->number,
		.grace = store_grace_start(s),
		.version = (struct store_version *)(uintptr_t)v,
		.blocks = s->txn.retired,
	};
	s->txn.retired = (struct blocks){ 0 };
	/* blocks that the transaction made and dropped again were never published */
	free_younger(s, &r->blocks, r->number);
	set_bytes(s, r, sizeof(*v) + sum_of(&r->blocks));
	*s->old_tail = r;
	s->old_tail = &r->next;
	if (s->in_grace == NULL)
		s->in_grace = r;
}

/* --- held versions --- */

/* Mark the versions that are held. Only the writer frees versions, so those it finds exist. */
static void
look_at_holders(struct store *s)
{
	struct store_version *v;
	unsigned int r, k, top;
	uint64_t held = 0;

	s->looks++;
	for (r = 0; r < s->config.readers; r++) {
		top = __atomic_load_n(&s->readers[r].top, __ATOMIC_ACQUIRE);
		for (k = 0; k < top; k++) {
			v = (struct store_version *)(uintptr_t)
				__atomic_load_n(&s->readers[r].held[k].version, __ATOMIC_ACQUIRE);
			if (v == NULL || v->seen_held == s->looks)
				continue;
			v->seen_held = s->looks;
			held++;
		}
	}
	stat_set(s, versions_held, held);
}

/* Note which grace periods are over; must come before look_at_holders(). */
static void
store_look_at_grace(struct store *s)
{
	if (s->stale_done < s->stale_below && store_grace_done(s, s->stale_grace))
		s->stale_done = s->stale_below;
	while (s->in_grace != NULL && store_grace_done(s, s->in_grace->grace)) {
		s->graced = s->in_grace->number;
		s->in_grace = s->in_grace->next;
	}
}

/* --- freeing --- */

/*
 * No reader uses version r any more: blocks that an older held version also contains move to that
 * one, the others are freed. Without memory for the list all blocks stay for now.
 */
static bool
hand_down(struct store *s, struct retired *r, struct retired *older)
{
	free_younger(s, &r->blocks, older != NULL ? older->number : 0);
	set_bytes(s, r, sizeof(*r->version) + sum_of(&r->blocks));
	if (r->blocks.n > 0) {
		if (blocks_reserve(s, &older->blocks, r->blocks.n) != 0)
			return false;
		memcpy(&older->blocks.at[older->blocks.n], r->blocks.at,
			r->blocks.n * sizeof(r->blocks.at[0]));
		older->blocks.n += r->blocks.n;
		set_bytes(s, older, older->bytes + r->bytes - sizeof(*r->version));
		set_bytes(s, r, sizeof(*r->version));
	}
	blocks_free(s, &r->blocks);
	return true;
}

static void
free_version(struct store *s, struct retired *r)
{
	store_free(s, r->version, sizeof(*r->version));
	set_bytes(s, r, 0);
	mem_free(s->config.alloc, r);
}

/* What old versions keep because they are held. */
struct kept {
	struct retired *newest; /* the newest kept version seen so far */
	uint64_t oldest;
	uint64_t bytes;
	unsigned int versions;
};

/* @return true: version r must stay */
static bool
reclaim_settle(struct store *s, struct retired *r, struct kept *kept)
{
	bool held = r->version->seen_held == s->looks;

	if (held && r->number >= s->stale_done) {
		if (kept->versions++ == 0)
			kept->oldest = r->number;
		kept->newest = r;
		return true;
	}
	/* holders of a stale version still call store_stale() on it */
	return !hand_down(s, r, kept->newest) || held;
}

static void
settle_all(struct store *s, struct kept *kept)
{
	struct retired **link = &s->old, *r;

	while ((r = *link) != NULL && r->number <= s->graced) {
		if (reclaim_settle(s, r, kept)) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		if (r->next == NULL)
			s->old_tail = link;
		free_version(s, r);
	}
	for (r = s->old; r != NULL && r->number <= s->graced; r = r->next)
		kept->bytes += r->bytes;
}

/* Give up the oldest held version if a limit is exceeded; one at a time. */
static void
reclaim_bound(struct store *s, const struct kept *kept)
{
	if (kept->versions == 0 || s->stale_done < s->stale_below)
		return;
	if (kept->bytes <= s->config.max_old_bytes && kept->versions <= s->config.max_versions)
		return;
	__atomic_store_n(&s->stale_below, kept->oldest + 1, __ATOMIC_RELEASE);
	s->stale_grace = store_grace_start(s);
	stat_add(s, versions_given_up, 1);
}

void
store_reclaim(struct store *s)
{
	struct kept kept = { 0 };

	store_look_at_grace(s);
	look_at_holders(s);
	settle_all(s, &kept);
	reclaim_bound(s, &kept);
	s->settled = kept.versions;
	s->commits = 0;
	store_check(s);
}

void
reclaim_after_commit(struct store *s)
{
	if (++s->commits > s->settled / COMMIT_SHARE)
		store_reclaim(s);
}

void
reclaim_all(struct store *s)
{
	struct retired *r;

	while ((r = s->old) != NULL) {
		s->old = r->next;
		free_younger(s, &r->blocks, 0);
		blocks_free(s, &r->blocks);
		free_version(s, r);
	}
}
