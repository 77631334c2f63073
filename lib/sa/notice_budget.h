/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_NOTICE_BUDGET_H
#define SA_NOTICE_BUDGET_H

/**
 * @file
 * Private to notice.c. Anti-amplification: the source of a subscription can be forged, so a
 * subscriber that has not answered yet gets few Reports. Each Set of a subscription pays for three
 * packets (base/unproven.h); its answer is one of them, which leaves two for Reports and their
 * repeats. The first ReportResp lifts the limit: it repeats our TID, which nobody can guess. A
 * subscriber that was away when its Reports came sets its subscription again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash_table.h"
#include "base/unproven.h"

/** What one subscription may be sent. */
struct notice_budget {
	struct unproven spend;
	uint32_t rid;
	uint32_t calls; /**< Reports in progress: they use .spend */
	uint8_t asked; /**< Sets of the subscription that were credited, modulo 256 */
	struct hash_link link; /**< by RID */
	TAILQ_ENTRY(notice_budget) age;
};

struct notice_budgets;

struct notice_budgets *notice_budgets_create(const struct allocator *a);
void notice_budgets_destroy(const struct allocator *a, struct notice_budgets *b);
/**
 * Take the budget of subscription @p rid, which was set @p asked times, for one Report.
 * @return NULL: all budgets are in use
 */
struct notice_budget *notice_budget_take(struct notice_budgets *b, uint32_t rid, uint8_t asked);
/** The Report ended. @param answered  the subscriber sent a ReportResp */
void notice_budget_return(struct notice_budget *u, bool answered);

#endif
