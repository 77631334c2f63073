/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Budgets of subscriptions, for worker 0 only. When the pool is full, the oldest budget makes room,
 * and its subscription starts with a new one if it is still there. Strangers cannot use that: the
 * pool has twice as many budgets as they can have subscriptions (share.c), so to push one out they
 * set 8,192 others first, which pay for far more than two Reports.
 */

#include <rte_common.h>

#include "mad/layout.h"
#include "sa/notice_budget.h"

#define BUDGETS 16384

TAILQ_HEAD(budget_list, notice_budget);

struct notice_budgets {
	struct notice_budget *pool; /* [BUDGETS] */
	uint32_t used;
	struct budget_list by_age; /* oldest first */
	struct hash_table by_rid;
};

struct notice_budgets *
notice_budgets_create(const struct allocator *a)
{
	struct notice_budgets *b = mem_zalloc(a, sizeof(*b), 64);

	if (b == NULL)
		return NULL;
	TAILQ_INIT(&b->by_age);
	b->pool = mem_zalloc(a, BUDGETS * sizeof(*b->pool), 64);
	if (b->pool == NULL || hash_create(&b->by_rid, a, BUDGETS) != 0) {
		notice_budgets_destroy(a, b);
		return NULL;
	}
	return b;
}

void
notice_budgets_destroy(const struct allocator *a, struct notice_budgets *b)
{
	if (b == NULL)
		return;
	mem_free(a, b->by_rid.buckets);
	mem_free(a, b->pool);
	mem_free(a, b);
}

static struct notice_budget *
budget_find(const struct notice_budgets *b, uint32_t rid)
{
	struct hash_link *l;

	HASH_FOREACH(l, &b->by_rid, rid)
		return container_of(l, struct notice_budget, link);
	return NULL;
}

/* A place in the pool. Those of Reports in progress cannot be reused. */
static struct notice_budget *
budget_make_room(struct notice_budgets *b)
{
	struct notice_budget *u;

	if (b->used < BUDGETS)
		return &b->pool[b->used++];
	TAILQ_FOREACH(u, &b->by_age, age) {
		if (u->calls != 0)
			continue;
		hash_remove(&u->link);
		TAILQ_REMOVE(&b->by_age, u, age);
		return u;
	}
	return NULL;
}

/* The subscription was set: the requester paid for three packets, and one was the answer. */
static void
budget_credit(struct notice_budget *u)
{
	unproven_heard(&u->spend, MAD_LEN);
	unproven_spend(&u->spend, MAD_LEN);
}

static struct notice_budget *
budget_add(struct notice_budgets *b, uint32_t rid, uint8_t asked)
{
	struct notice_budget *u = budget_make_room(b);

	if (u == NULL)
		return NULL;
	*u = (struct notice_budget){ .rid = rid, .asked = asked };
	hash_add(&b->by_rid, &u->link, rid);
	TAILQ_INSERT_TAIL(&b->by_age, u, age);
	budget_credit(u);
	return u;
}

struct notice_budget *
notice_budget_take(struct notice_budgets *b, uint32_t rid, uint8_t asked)
{
	struct notice_budget *u = budget_find(b, rid);

	if (u == NULL)
		u = budget_add(b, rid, asked);
	if (u == NULL)
		return NULL;
	for (; u->asked != asked; u->asked++)
		budget_credit(u);
	u->calls++;
	return u;
}

void
notice_budget_return(struct notice_budget *u, bool answered)
{
	u->calls--;
	if (answered)
		u->spend.proven = true;
}
