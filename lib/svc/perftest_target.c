/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "svc/perftest_target.h"

#define TARGET_WORDS (sizeof(struct perftest_target) / sizeof(uint64_t))

_Static_assert(sizeof(struct perftest_target) % sizeof(uint64_t) == 0, "target_read()");

/*
 * A row is read while its writer may already use it for the next client. The release store of each
 * word makes the new .life visible before it; the acquire load of each keeps the second load of
 * .life behind it. So whoever reads a new word sees that the table was cleared.
 */
static void
target_write(struct perftest_target *t, const struct perftest_target *with)
{
	const uint64_t *from = (const uint64_t *)with;
	uint64_t *to = (uint64_t *)t;
	size_t i;

	for (i = 0; i < TARGET_WORDS; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

static void
target_read(const struct perftest_target *t, struct perftest_target *into)
{
	const uint64_t *from = (const uint64_t *)t;
	uint64_t *to = (uint64_t *)into;
	size_t i;

	for (i = 0; i < TARGET_WORDS; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
}

static bool
is_it(const struct perftest_target *t, const union gid *gid, uint32_t qpn)
{
	return t->theirs.qpn == qpn && gid_equal(&t->theirs.gid, gid);
}

void
perftest_targets_clear(struct perftest_targets *t)
{
	__atomic_store_n(&t->count, 0, __ATOMIC_RELAXED);
	/* release: whoever reads the new life finds no row of the old one */
	__atomic_store_n(&t->life, t->life + 1, __ATOMIC_RELEASE);
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
	target_write(&t->target[n], &(struct perftest_target){ *theirs, 1 });
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
		target_read(&t->target[i], found);
		if (is_it(found, gid, qpn))
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
