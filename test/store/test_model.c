/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * About 10^5 random changes, with savepoints, rollbacks, aborts, held and stale versions and
 * failing allocations. After each the store equals a model: arrays indexed by RID.
 */

#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RIDS  600
#define STEPS 4000

/* member a of each RID's record, 0: no record; b is a * 3 */
struct model {
	uint32_t a[RIDS];
};

static uint64_t seed;

static uint32_t
below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static void
check_index(const struct store_version *v, const struct model *m)
{
	const struct store_record *r;
	struct store_cursor c;
	uint64_t key, last = 0;
	uint32_t i, n = 0, expected = 0;

	for (i = 0; i < RIDS; i++)
		expected += m->a[i] != 0 ? 2 : 0;
	store_seek_index(&c, v, 0, 0);
	while ((r = store_next(&c, &key)) != NULL) {
		assert_true(key >= last);
		last = key;
		assert_true(key == m->a[r->rid] || key == ((uint64_t)1 << 32 | (m->a[r->rid] * 3)));
		n++;
	}
	assert_int_equal(n, expected);
}

static void
model_check(const struct store_version *v, const struct model *m)
{
	const struct store_record *r;
	struct store_cursor c;
	uint32_t i, n = 0;

	store_seek(&c, v, 0, 0);
	for (i = 0; i < RIDS; i++) {
		assert_int_equal(store_rank(v, 0, i), n);
		if (m->a[i] == 0) {
			assert_null(store_get(v, 0, i));
			continue;
		}
		r = store_next(&c, NULL);
		assert_non_null(r);
		assert_int_equal(r->rid, i);
		assert_int_equal(row_of(r).a, m->a[i]);
		assert_ptr_equal(store_get(v, 0, i), r);
		n++;
	}
	assert_null(store_next(&c, NULL));
	assert_int_equal(store_count(v, 0), n);
	check_index(v, m);
}

static unsigned int refusals, stales;

/* rc says that the change was made, or that there was no memory for it. */
static void
model_expect(int rc, int expected, uint32_t *a, uint32_t becomes)
{
	if (rc == -ENOMEM) {
		refusals++;
		return;
	}
	assert_int_equal(rc, expected);
	*a = becomes;
}

/* Make a few changes, to RIDs close to each other, so that tree nodes fill up and run empty. */
static void
model_change(struct store_txn *t, struct model *m)
{
	uint32_t n = 1 + below(40), at = below(RIDS), fill = below(3);

	while (n-- > 0) {
		uint32_t rid = (at + below(60)) % RIDS, a = 1 + below(50);
		struct row row = { a, a * 3, { 0 } };

		if (fill == 0 || (fill == 1 && below(2))) {
			model_expect(store_del(t, 0, rid), m->a[rid] != 0 ? 0 : -ENOENT, &m->a[rid],
				0);
		} else {
			model_expect(store_put(t, 0, rid, &row, sizeof(row)), 0, &m->a[rid], a);
		}
	}
}

static void
model_transaction(struct fixture *f, struct model *m)
{
	struct model work = *m, saved;
	struct store_savepoint sp;
	struct store_txn *t = store_begin(f->s);
	uint32_t parts = below(4);

	if (below(6) == 0)
		f->fail_in = 1 + below(60);
	while (parts-- > 0) {
		store_save(t, &sp);
		saved = work;
		model_change(t, &work);
		if (below(3) == 0) {
			store_rollback(t, &sp);
			work = saved;
		}
	}
	if (below(8) == 0) {
		store_abort(t);
	} else {
		assert_int_equal(store_commit(t, NULL), 0);
		*m = work;
	}
	f->fail_in = 0;
}

static void
test_random_changes_match_a_model(void **state)
{
	static struct model now, held_model[2];
	const struct store_version *held[2] = { NULL, NULL };
	struct store_reader *r[2];
	struct fixture f;
	unsigned int i, k;

	(void)state;
	fixture_init(&f);
	f.config.max_old_bytes = 60000;
	fixture_open(&f);
	f.grace_now = 0;
	memset(&now, 0, sizeof(now));
	for (k = 0; k < 2; k++)
		r[k] = store_reader(f.s, k);
	for (i = 0; i < STEPS; i++) {
		model_transaction(&f, &now);
		f.grace_now = f.grace_next - below(3);
		if (i % 16 == 0)
			model_check(store_current(r[0]), &now);
		k = below(2);
		if (below(10) != 0)
			continue;
		if (held[k] != NULL) {
			if (store_stale(held[k]))
				stales++;
			else
				model_check(held[k], &held_model[k]);
			store_unhold(r[k], held[k]);
			held[k] = NULL;
		} else {
			held[k] = store_current(r[k]);
			held_model[k] = now;
			assert_int_equal(store_hold(r[k], held[k]), 0);
		}
	}
	for (k = 0; k < 2; k++)
		if (held[k] != NULL)
			store_unhold(r[k], held[k]);
	fixture_close(&f);
	assert_true(refusals > 100);
	assert_true(stales > 10); /* of about 400 */
}

int
main(void)
{
	const char *text = getenv("STORE_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_changes_match_a_model),
	};

	seed = text != NULL ? strtoull(text, NULL, 0) : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
