/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Neighbours: which entries strangers may cause, and the removal of entries that nobody uses. Only
 * the control thread does this.
 */

#include "base/plural.h"
#include "link/neigh.h"
#include "link/private.h"

bool
link_neighbour_allowed(struct link *l, const union gid *who, uint32_t most)
{
	struct neigh_table *t = l->neigh;
	uint32_t i, theirs = 0, unresolved = 0, all = 0;

	for (i = 0; i < t->count; i++) {
		if (!t->entry[i].present || gid_is_zero(&t->entry[i].stranger))
			continue;
		all++;
		if (neigh_is_resolved(t, i))
			continue;
		unresolved++;
		theirs += gid_equal(&t->entry[i].stranger, who);
	}
	if (theirs < most && unresolved < NEIGH_UNRESOLVED && all < NEIGH_STRANGERS)
		return true;
	neigh_refuse(t);
	return false;
}

void
link_neighbour_caused(struct link *l, uint32_t index, const union gid *who)
{
	struct neigh_table *t = l->neigh;

	if (index >= t->count)
		return;
	/* the first to name it answers for it, or two strangers could share what each causes */
	if (gid_is_zero(&t->entry[index].stranger) && !neigh_is_resolved(t, index))
		t->entry[index].stranger = *who;
	neigh_entry_check(t, index);
}

bool
link_neighbours_due(const struct link *l, uint32_t kept)
{
	return l->neigh->wanted > 0 || l->neigh->present > kept;
}

void
link_neighbours_search(struct link *l)
{
	l->neigh->searches++;
}

static void
neigh_remove(struct neigh_table *t, uint32_t i)
{
	struct neigh *n = &t->entry[i];
	struct neigh_key key = { .gid = n->gid, .port = n->port };

	n->hash_place = rte_hash_del_key(t->hash, &key);
	if (n->hash_place < 0)
		return;
	RELEASE_SET(n->present, false);
	t->leaving[t->num_leaving++] = (uint16_t)i;
	t->present--;
}

static int
neigh_compare_use(const void *a, const void *b, void *table)
{
	const struct neigh_table *t = table;
	uint64_t at_a = t->entry[*(const uint16_t *)a].used;
	uint64_t at_b = t->entry[*(const uint16_t *)b].used;

	return (at_a > at_b) - (at_a < at_b);
}

/* Note when entries were in use, remove the idle ones that are unresolved, and collect the rest. */
static uint32_t
neigh_sort_out(struct neigh_table *t, const struct link_neighbours_used *used, uint64_t now)
{
	uint32_t i, idle = 0;

	for (i = 0; i < t->count; i++) {
		if (!t->entry[i].present)
			continue;
		if (used->word[i / 64] >> i % 64 & 1)
			t->entry[i].used = now;
		else if (t->entry[i].asked + 1 >= t->searches)
			continue;
		else if (neigh_is_resolved(t, i))
			t->idle[idle++] = (uint16_t)i;
		else
			neigh_remove(t, i);
	}
	qsort_r(t->idle, idle, sizeof(t->idle[0]), neigh_compare_use, t);
	return idle;
}

uint32_t
link_neighbours_forget(struct link *l, const struct link_neighbours_used *used, uint32_t kept,
	uint32_t idle_s)
{
	struct neigh_table *t = l->neigh;
	uint64_t now = RELAXED_GET(t->now);
	uint32_t i, n, idle, before = t->present;

	if (t->wanted > 0)
		t->wanted--;
	neigh_reclaim(t);
	if (t->num_leaving > 0) /* a worker stands still: the next search will do */
		return 0;
	idle = neigh_sort_out(t, used, now);
	for (n = 0; n < idle; n++) {
		i = t->idle[n];
		if (t->present <= kept && now < t->entry[i].used + idle_s * l->cfg.hz)
			break;
		neigh_remove(t, i);
	}
	if (t->rcu != NULL)
		t->leaving_token = rte_rcu_qsbr_start(t->rcu);
	t->forgotten += before - t->present;
	neigh_check(t);
	if (before > t->present)
		LINK_LOG(INFO, "forgot %u neighbour%s that nobody uses, %u left",
			before - t->present, plural(before - t->present), t->present);
	return before - t->present;
}

void
link_neighbour_counts(const struct link *l, struct link_neighbour_counts *counts)
{
	const struct neigh_table *t = l->neigh;

	*counts = (struct link_neighbour_counts){ t->present, t->forgotten, t->refused };
}
