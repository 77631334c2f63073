/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "svc/perftest_target.h"

static bool
is_it(const struct perftest_target *t, const union gid *gid, uint32_t qpn)
{
	return t->theirs.qpn == qpn && gid_equal(&t->theirs.gid, gid);
}

void
perftest_targets_clear(struct perftest_targets *t)
{
	__atomic_store_n(&t->count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->life, t->life + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

bool
perftest_target_note(struct perftest_targets *t, const struct perftest_dest *theirs)
{
	uint32_t i, n = t->count;

	for (i = 0; i < n; i++) {
		struct perftest_target *known = &t->target[i];

		if (is_it(known, &theirs->gid, theirs->qpn)) {
			__atomic_store_n(&known->told, known->told + 1, __ATOMIC_RELEASE);
			return true;
		}
	}
	if (n == PERFTEST_TARGETS)
		return false;
	t->target[n] = (struct perftest_target){ *theirs, 1 };
	__atomic_store_n(&t->count, n + 1, __ATOMIC_RELEASE);
	return true;
}

/* The result is valid if the table was not cleared while it was read. */
static bool
find_in(const struct perftest_targets *t, const union gid *gid, uint32_t qpn,
	struct perftest_target *found)
{
	uint32_t life = __atomic_load_n(&t->life, __ATOMIC_ACQUIRE);
	uint32_t i, n = __atomic_load_n(&t->count, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++) {
		if (!is_it(&t->target[i], gid, qpn))
			continue;
		found->theirs = t->target[i].theirs;
		found->told = __atomic_load_n(&t->target[i].told, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return __atomic_load_n(&t->life, __ATOMIC_RELAXED) == life;
	}
	return false;
}

bool
perftest_target_find(const struct perftest_targets *t, uint32_t n, const union gid *gid,
	uint32_t qpn, struct perftest_target *found)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (find_in(&t[i], gid, qpn, found))
			return true;
	}
	return false;
}
