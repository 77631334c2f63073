/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Memory windows of type 1 and 2: bind, use, invalidate, free. */

#include "fixture.h"

#define VA        UINT64_C(0x100000)
#define LEN       4096
#define OTHER_QPN 0x22

/* A bind of [VA + 1024, VA + 2048) that succeeds. Tests change one member to make it fail. */
static struct mem_bind
good_bind(const struct fixture *f, uint32_t mr, uint32_t mw)
{
	return (struct mem_bind){
		.mw_key = mw,
		.new_key = (mw & 0xffffff00) | ((mw + 1) & 0xff),
		.mr_key = mr,
		.pd = f->pd,
		.qpn = QPN,
		.access = RR | RW,
		.va = VA + 1024,
		.length = 1024,
	};
}

static int
try_bind(struct fixture *f, const struct mem_bind *b, uint32_t *key)
{
	uint64_t token;

	return mem_mw_bind(f->mem, b, key, &token);
}

static uint32_t
must_bind(struct fixture *f, const struct mem_bind *b)
{
	uint32_t key = 0;

	assert_int_equal(try_bind(f, b, &key), 0);
	return key;
}

static int
invalidate(struct fixture *f, uint32_t key, uint32_t qpn)
{
	uint64_t token = 99;
	int rc = mem_invalidate(f->mem, key, f->pd, qpn, &token);

	assert_int_equal(token,
		0); /* no grace period is needed: only its QP's worker used the window */
	return rc;
}

static void
test_unbound_window_gives_access_to_nothing(void **state)
{
	struct fixture *f = *state;
	uint32_t one = window(f, MEM_MW_TYPE_1), two = window(f, MEM_MW_TYPE_2);

	assert_int_equal(access_at(f, one, 0, 1, RR), MEM_BAD_KEY);
	assert_int_equal(access_at(f, two, 0, 1, RR), MEM_BAD_KEY);
	assert_int_equal(access_at(f, two, VA, 1, RR), MEM_BAD_KEY);
}

static void
test_window_is_narrower_than_its_region(void **state)
{
	struct fixture *f = *state;
	const enum mem_mw_type types[] = { MEM_MW_TYPE_1, MEM_MW_TYPE_2 };
	uint32_t mr = region(f, ALL, VA, LEN), key, i;
	struct mem_bind b;

	for (i = 0; i < 2; i++) {
		b = good_bind(f, mr, window(f, types[i]));
		key = must_bind(f, &b);
		assert_int_equal(lands(f, QPN, key, VA + 1024, 1024, RR), 1024);
		assert_int_equal(lands(f, QPN, key, VA + 2047, 1, RW), 2047);
		assert_int_equal(access_at(f, key, VA + 1023, 1, RR), MEM_BAD_RANGE);
		assert_int_equal(access_at(f, key, VA + 1023, 2, RR), MEM_BAD_RANGE);
		assert_int_equal(access_at(f, key, VA + 2048, 1, RR), MEM_BAD_RANGE);
		assert_int_equal(access_at(f, key, VA + 2047, 2, RR), MEM_BAD_RANGE);
		assert_int_equal(access_at(f, key, VA + 1024, UINT64_MAX, RR), MEM_BAD_RANGE);
		assert_int_equal(lands(f, QPN, mr, VA, LEN, RR),
			0); /* the region itself allows it */
	}
}

static void
test_window_has_its_own_rights(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, LW | RW | RA | BIND, VA, LEN), right, key;
	struct mem_bind b;

	/* o10-37: the region needs local write for a writable window, but no remote right */
	for (right = RW; right <= RA; right <<= 1) {
		b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
		b.access = right;
		key = must_bind(f, &b);
		assert_int_equal(access_at(f, key, VA + 1024, 8, RW),
			right == RW ? MEM_OK : MEM_BAD_RIGHTS);
		assert_int_equal(access_at(f, key, VA + 1024, 8, RR),
			right == RR ? MEM_OK : MEM_BAD_RIGHTS);
		assert_int_equal(access_at(f, key, VA + 1024, 8, RA),
			right == RA ? MEM_OK : MEM_BAD_RIGHTS);
	}
}

static void
test_window_key_is_no_l_key(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));

	b.access = RR | RW | RA;
	key = must_bind(f, &b);
	assert_int_equal(access_at(f, key, VA + 1024, 8, 0), MEM_BAD_KEY);
	assert_int_equal(access_at(f, key, VA + 1024, 8, LW), MEM_BAD_KEY);
}

/* C10-73: the region must allow it; C10-74: writable windows need a writable region */
static void
test_region_must_allow_the_bind(void **state)
{
	struct fixture *f = *state;
	uint32_t mw = window(f, MEM_MW_TYPE_2), key;
	uint32_t no_bind = region(f, ALL & ~BIND, VA, LEN);
	uint32_t read_only = region(f, RR | BIND, VA, LEN);
	struct mem_bind b = good_bind(f, no_bind, mw);

	assert_int_equal(try_bind(f, &b, &key), -EACCES);
	b.mr_key = read_only;
	b.access = RW;
	assert_int_equal(try_bind(f, &b, &key), -EACCES);
	b.access = RA;
	assert_int_equal(try_bind(f, &b, &key), -EACCES);
	b.access = RR;
	assert_int_equal(try_bind(f, &b, &key), 0);
}

/* C10-72: window, region and QP share one domain */
static void
test_bind_needs_one_domain(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_2), key;
	uint32_t mine = f->pd, other, foreign_mr, foreign_mw;
	struct mem_bind b = good_bind(f, mr, mw);

	assert_int_equal(mem_pd_alloc(f->mem, &other, NULL), 0);
	f->pd = other;
	foreign_mr = region(f, ALL, VA, LEN);
	foreign_mw = window(f, MEM_MW_TYPE_1);
	f->pd = mine;
	b.pd = other; /* the QP's domain */
	assert_int_equal(try_bind(f, &b, &key), -EACCES);
	b.pd = mine;
	b.mr_key = foreign_mr;
	assert_int_equal(try_bind(f, &b, &key), -EACCES);
	b.mr_key = mr;
	b.mw_key = foreign_mw;
	assert_int_equal(try_bind(f, &b, &key), -EACCES);
	b.mw_key = mw;
	assert_int_equal(try_bind(f, &b, &key), 0);
}

/* C10-75 */
static void
test_bind_stays_inside_the_region(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_2), key, i;
	const struct {
		uint64_t va, length;
	} outside[] = { { VA - 1, 1 }, { VA - 1, 100 }, { VA, LEN + 1 }, { VA + LEN, 1 },
		{ VA + LEN - 1, 2 }, { VA, UINT64_MAX }, { VA + 1, UINT64_MAX }, { 0, 1 },
		{ UINT64_MAX, 1 }, { UINT64_MAX, UINT64_MAX } };
	struct mem_bind b = good_bind(f, mr, mw);

	for (i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		b.va = outside[i].va;
		b.length = outside[i].length;
		assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	}
	b.va = VA;
	b.length = LEN;
	assert_int_equal(try_bind(f, &b, &key), 0);
}

static void
test_bind_needs_keys_that_are_alive(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_2), key, dead;
	struct mem_bind b = good_bind(f, mr, mw);

	b.mw_key = mw ^ 1; /* the low byte is part of the key */
	assert_int_equal(try_bind(f, &b, &key), -ENOENT);
	b.mw_key = mr;
	assert_int_equal(try_bind(f, &b, &key), -ENOENT);
	b.mw_key = mw;
	b.mr_key = mr ^ 1;
	assert_int_equal(try_bind(f, &b, &key), -ENOENT);
	b.mr_key = mw;
	assert_int_equal(try_bind(f, &b, &key), -ENOENT);
	dead = region(f, ALL, VA, LEN);
	assert_int_equal(mem_mr_deregister(f->mem, dead, NULL), -EAGAIN);
	b.mr_key = dead; /* deregistered, in its grace period */
	assert_int_equal(try_bind(f, &b, &key), -ENOENT);
	b.mr_key = mr;
	assert_int_equal(mem_mw_free(f->mem, mw, NULL), 0);
	assert_int_equal(try_bind(f, &b, &key), -ENOENT);
}

static void
test_bind_takes_remote_rights_only(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));

	b.access = LW | RR;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	b.access = BIND | RR;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	b.access = 0x80000000 | RR;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
}

static void
test_failed_bind_changes_nothing(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_1), bound, key;
	struct mem_bind b = good_bind(f, mr, mw);

	bound = must_bind(f, &b);
	b.mw_key = bound;
	b.va = VA - 1;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	assert_int_equal(lands(f, QPN, bound, VA + 1024, 1024, RR), 1024);
	b.va = VA;
	assert_int_equal(try_bind(f, &b, &key), 0); /* the failed binds did not use the key */
}

static void
test_no_window_over_a_zero_based_region(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL | ZERO, 0, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));

	b.va = 0;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
}

static void
test_zero_based_window_starts_at_0(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));

	b.access = RR | RW | ZERO;
	key = must_bind(f, &b);
	assert_int_equal(lands(f, QPN, key, 0, 1024, RR), 1024);
	assert_int_equal(lands(f, QPN, key, 1023, 1, RW), 2047);
	assert_int_equal(access_at(f, key, 1024, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA + 1024, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, UINT64_MAX, 1, RR), MEM_BAD_RANGE);
}

/* o10-36.2.2 */
static void
test_type_1_is_never_zero_based(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_1));

	b.access = RR | ZERO;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
}

/* Otherwise an atomic with an aligned VA would cross a word boundary of the host. */
static void
test_atomic_window_keeps_alignment(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));

	b.va = VA + 4;
	b.access = RA | ZERO;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	b.access = RR | ZERO;
	assert_int_equal(try_bind(f, &b, &key), 0);
	b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
	b.va = VA + 4;
	b.access = RA; /* addressed by VA: aligned VAs are aligned on the host */
	assert_int_equal(try_bind(f, &b, &key), 0);
	assert_int_equal(lands(f, QPN, key, VA + 8, 8, RA), 8);
}

static void
test_type_1_window_allows_every_qp_of_the_domain(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key, other;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_1));
	uint8_t *host;

	key = must_bind(f, &b);
	assert_int_equal(access_by(f, QPN, key, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(access_by(f, OTHER_QPN, key, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(mem_pd_alloc(f->mem, &other, NULL), 0);
	assert_int_equal(mem_access(f->mem, key, other, QPN, VA + 1024, 8, RR, &host), MEM_BAD_KEY);
}

static void
test_type_2_window_allows_its_qp_only(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key, other;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
	uint8_t *host;

	key = must_bind(f, &b);
	assert_int_equal(access_by(f, QPN, key, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(access_by(f, OTHER_QPN, key, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(mem_pd_alloc(f->mem, &other, NULL), 0);
	assert_int_equal(mem_access(f->mem, key, other, QPN, VA + 1024, 8, RR, &host), MEM_BAD_KEY);
}

static void
test_type_2_bind_sets_only_the_low_byte_of_the_key(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_2), key;
	struct mem_bind b = good_bind(f, mr, mw);

	b.new_key = mw ^ 0x100; /* the other bits must not change */
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	b.new_key = mw ^ 0x5a;
	assert_int_equal(must_bind(f, &b), mw ^ 0x5a);
	assert_int_equal(access_at(f, mw ^ 0x5a, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(access_at(f, mw, VA + 1024, 8, RR), MEM_BAD_KEY);
}

/* o10-37.2.30, o10-37.2.40 */
static void
test_type_2_is_unbound_by_invalidate_only(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_2), key;
	struct mem_bind b = good_bind(f, mr, mw);

	b.mw_key = must_bind(f, &b);
	b.new_key = b.mw_key ^ 3;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL); /* still bound */
	b.length = 0;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	assert_int_equal(invalidate(f, b.mw_key, QPN), 0);
	assert_int_equal(try_bind(f, &b, &key), -EINVAL); /* length 0, unbound */
	b.length = 1024;
	b.qpn = OTHER_QPN; /* an unbound window may be bound to any QP of the domain */
	assert_int_equal(try_bind(f, &b, &key), 0);
	assert_int_equal(access_by(f, OTHER_QPN, key, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(access_by(f, QPN, key, VA + 1024, 8, RR), MEM_BAD_KEY);
}

static void
test_invalidate_ends_access(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));

	key = must_bind(f, &b);
	assert_int_equal(invalidate(f, key, QPN), 0);
	assert_int_equal(access_at(f, key, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(invalidate(f, key, QPN), -EACCES); /* twice */
	assert_int_equal(mem_mr_deregister(f->mem, mr, NULL), -EAGAIN); /* and no longer EBUSY */
}

static void
test_a_qp_may_invalidate_only_its_own_type_2_windows(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), key, one, other;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
	uint64_t token;

	key = must_bind(f, &b);
	b = good_bind(f, mr, window(f, MEM_MW_TYPE_1));
	one = must_bind(f, &b);
	assert_int_equal(mem_pd_alloc(f->mem, &other, NULL), 0);
	assert_int_equal(invalidate(f, mr, QPN), -EACCES);
	assert_int_equal(invalidate(f, one, QPN), -EACCES); /* o10-37.2.26 */
	assert_int_equal(invalidate(f, window(f, MEM_MW_TYPE_2), QPN), -EACCES); /* unbound */
	assert_int_equal(invalidate(f, key ^ 1, QPN), -EACCES);
	assert_int_equal(invalidate(f, key, OTHER_QPN), -EACCES);
	assert_int_equal(mem_invalidate(f->mem, key, other, QPN, &token), -EACCES);
	assert_int_equal(invalidate(f, 0, 0), -EACCES);
	assert_int_equal(invalidate(f, key, UINT32_MAX), -EACCES);
	assert_int_equal(access_at(f, key, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(access_at(f, one, VA + 1024, 8, RR), MEM_OK);
}

static void
test_type_1_rebind_gets_a_new_key_and_a_grace_period(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_1), first, second;
	struct mem_bind b = good_bind(f, mr, mw);
	uint64_t token = 99;

	assert_int_equal(mem_mw_bind(f->mem, &b, &first, &token), 0);
	assert_int_equal(token, 0); /* first bind: no old binding to wait for */
	assert_int_not_equal(first, mw);
	assert_int_equal(access_at(f, mw, VA + 1024, 8, RR), MEM_BAD_KEY);
	b.mw_key = mw;
	assert_int_equal(try_bind(f, &b, &second),
		-ENOENT); /* the old key no longer names the window */
	b.mw_key = first;
	b.va = VA;
	assert_int_equal(mem_mw_bind(f->mem, &b, &second, &token), 0);
	assert_int_not_equal(second >> 8, first >> 8);
	assert_int_equal(access_at(f, first, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(lands(f, QPN, second, VA, 1024, RR), 0);
	assert_int_not_equal(token, 0);
	assert_false(mem_grace_done(f->mem, token));
	grace_passes(f);
	assert_true(mem_grace_done(f->mem, token));
}

static void
test_type_1_with_a_chosen_key(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_1_CHOSEN), key;
	struct mem_bind b = good_bind(f, mr, mw);
	struct mem_mw_info info;
	uint64_t token;

	b.new_key = mw; /* the old key would stay valid */
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	b.new_key = mw ^ 0x100;
	assert_int_equal(try_bind(f, &b, &key), -EINVAL);
	b.new_key = mw ^ 1;
	assert_int_equal(mem_mw_bind(f->mem, &b, &key, &token), 0);
	assert_int_equal(key, mw ^ 1);
	assert_int_equal(mem_mw_present_key(f->mem, mw), key);
	assert_int_equal(mem_mw_query(f->mem, key, &info), 0);
	assert_int_equal(info.type, MEM_MW_TYPE_1);
	assert_int_equal(access_at(f, mw, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(access_at(f, key, VA + 1024, 8, RR), MEM_OK);
	b.mw_key = key;
	b.new_key = key ^ 2;
	assert_int_equal(mem_mw_bind(f->mem, &b, &key, &token), 0); /* bound again at once */
	assert_int_not_equal(token, 0);
	assert_int_equal(key, mw ^ 3);
	assert_int_equal(access_at(f, mw ^ 1, VA + 1024, 8, RR), MEM_BAD_KEY);
}

static void
test_type_1_bind_of_length_0_unbinds(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_1), bound, unbound;
	struct mem_bind b = good_bind(f, mr, mw);
	struct mem_mw_info info;
	uint64_t token;

	bound = must_bind(f, &b);
	b.mw_key = bound;
	b.length = 0;
	b.mr_key = 0; /* not looked at */
	assert_int_equal(mem_mw_bind(f->mem, &b, &unbound, &token), 0);
	assert_int_not_equal(token, 0);
	assert_int_not_equal(unbound, bound);
	assert_int_equal(access_at(f, bound, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(access_at(f, unbound, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(mem_mw_query(f->mem, unbound, &info), 0);
	assert_false(info.bound);
	assert_int_equal(mem_mr_deregister(f->mem, mr, NULL), -EAGAIN);
}

static void
test_type_1_moves_from_region_to_region(void **state)
{
	struct fixture *f = *state;
	uint32_t a = region(f, ALL, VA, LEN), c = region(f, ALL, VA, LEN);
	struct mem_bind b = good_bind(f, a, window(f, MEM_MW_TYPE_1));

	b.mw_key = must_bind(f, &b);
	b.mr_key = c;
	b.mw_key = must_bind(f, &b);
	assert_int_equal(mem_mr_deregister(f->mem, c, NULL), -EBUSY);
	assert_int_equal(mem_mr_deregister(f->mem, a, NULL), -EAGAIN);
}

static void
test_region_with_bound_windows_is_busy(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), one, two;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_1));

	one = must_bind(f, &b);
	b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
	two = must_bind(f, &b);
	assert_int_equal(mem_mr_deregister(f->mem, mr, &f->err), -EBUSY);
	assert_non_null(strstr(f->err.text, "2 bound memory windows"));
	assert_int_equal(access_at(f, mr, VA, 8, RR), MEM_OK); /* the region still works */
	assert_int_equal(invalidate(f, two, QPN), 0);
	assert_int_equal(mem_mr_deregister(f->mem, mr, &f->err), -EBUSY);
	assert_non_null(strstr(f->err.text, "1 bound memory window"));
	assert_null(strstr(f->err.text, "windows"));
	assert_int_equal(mem_mw_free(f->mem, one, NULL), -EAGAIN);
	deregister(f, mr);
}

static void
test_region_is_no_window(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mem_mw_free(f->mem, region(f, LW, 0, 4096), NULL), -ENOENT);
}

static void
test_free_ends_access_at_once_and_waits_for_grace(void **state)
{
	struct fixture *f = *state;
	uint64_t cursor = 0;
	uint32_t mr = region(f, ALL, VA, LEN), key;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
	struct mem_mw_info info;

	key = must_bind(f, &b);
	assert_int_equal(mem_mw_free(f->mem, key, NULL), -EAGAIN);
	assert_int_equal(access_at(f, key, VA + 1024, 8, RR), MEM_BAD_KEY);
	assert_int_equal(invalidate(f, key, QPN), -EACCES);
	assert_int_equal(mem_mw_query(f->mem, key, &info), -ENOENT);
	assert_false(mem_mw_next(f->mem, &cursor, &info));
	assert_int_equal(mem_mw_free(f->mem, key, NULL), -EAGAIN);
	assert_int_equal(f->grace.started, 1);
	grace_passes(f);
	assert_int_equal(mem_mw_free(f->mem, key, NULL), 0);
	assert_int_equal(mem_mw_free(f->mem, key, NULL), -ENOENT);
	mem_qp_gone(f->mem, QPN); /* type 1 windows do not belong to a QP */
}

static void
test_windows_run_out_and_come_back(void **state)
{
	struct fixture *f = *state;
	uint32_t keys[8], i, round, extra;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < 8; i++)
			keys[i] = window(f, i % 2 ? MEM_MW_TYPE_1 : MEM_MW_TYPE_2);
		assert_int_equal(mem_mw_alloc(f->mem, f->pd, MEM_MW_TYPE_1, &extra, &f->err),
			-ENOMEM);
		for (i = 0; i < 8; i++)
			assert_int_equal(mem_mw_free(f->mem, keys[i], NULL), 0);
	}
	assert_int_equal(mem_mw_alloc(f->mem, f->pd, 4, &extra, &f->err), -EINVAL);
	assert_int_equal(mem_mw_alloc(f->mem, 77, MEM_MW_TYPE_1, &extra, &f->err), -ENOENT);
	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL), 0);
}

static void
test_type_2_windows_are_unbound_when_their_qp_is_destroyed(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, VA, LEN), mine[3], theirs, one, i;
	struct mem_bind b;
	struct mem_mw_info info;

	for (i = 0; i < 3; i++) {
		b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
		mine[i] = must_bind(f, &b);
	}
	b = good_bind(f, mr, window(f, MEM_MW_TYPE_2));
	b.qpn = QPN + 1024; /* in the same hash bucket, if there are buckets */
	theirs = must_bind(f, &b);
	b = good_bind(f, mr, window(f, MEM_MW_TYPE_1));
	one = must_bind(f, &b);
	mem_qp_gone(f->mem, 0x333); /* a QP without windows */
	mem_qp_gone(f->mem, UINT32_MAX);
	assert_int_equal(access_at(f, mine[0], VA + 1024, 8, RR), MEM_OK);
	mem_qp_gone(f->mem, QPN);
	for (i = 0; i < 3; i++) {
		assert_int_equal(access_at(f, mine[i], VA + 1024, 8, RR), MEM_BAD_KEY);
		assert_int_equal(mem_mw_query(f->mem, mine[i], &info), 0);
		assert_false(info.bound);
	}
	assert_int_equal(access_by(f, QPN + 1024, theirs, VA + 1024, 8, RR), MEM_OK);
	assert_int_equal(access_at(f, one, VA + 1024, 8, RR), MEM_OK);
	mem_qp_gone(f->mem, QPN + 1024);
	assert_int_equal(access_by(f, QPN + 1024, theirs, VA + 1024, 8, RR), MEM_BAD_KEY);
	b.mw_key = mine[0]; /* the windows still exist, unbound */
	b.new_key = mine[0];
	b.qpn = OTHER_QPN;
	assert_int_equal(must_bind(f, &b), mine[0]);
}

static void
test_query_reports_the_binding(void **state)
{
	struct fixture *f = *state;
	uint64_t cursor = 0;
	uint32_t mr = region(f, ALL, VA, LEN), mw = window(f, MEM_MW_TYPE_2), key;
	struct mem_bind b = good_bind(f, mr, mw);
	struct mem_mw_info info, walked;

	assert_int_equal(mem_mw_query(f->mem, mw, &info), 0);
	assert_false(info.bound);
	assert_int_equal(info.type, MEM_MW_TYPE_2);
	key = must_bind(f, &b);
	assert_int_equal(mem_mw_query(f->mem, mw, &info), -ENOENT); /* not its key any more */
	assert_int_equal(mem_mw_query(f->mem, mr, &info), -ENOENT);
	assert_int_equal(mem_mw_query(f->mem, key, &info), 0);
	assert_true(info.bound);
	assert_int_equal(info.key, key);
	assert_int_equal(info.pd, f->pd);
	assert_int_equal(info.mr_key, mr);
	assert_int_equal(info.qpn, QPN);
	assert_int_equal(info.access, RR | RW);
	assert_int_equal(info.va, VA + 1024);
	assert_int_equal(info.length, 1024);
	assert_true(mem_mw_next(f->mem, &cursor, &walked));
	assert_int_equal(walked.key, info.key);
	assert_int_equal(walked.mr_key, info.mr_key);
	assert_false(mem_mw_next(f->mem, &cursor, &walked));
}

static void
test_ten_thousand_type_1_binds_repeat_no_key(void **state)
{
	struct fixture *f = *state;
	uint8_t *seen = calloc(UINT32_C(1) << 29, 1);
	uint32_t mr = region(f, ALL, VA, LEN), i;
	struct mem_bind b = good_bind(f, mr, window(f, MEM_MW_TYPE_1));

	assert_non_null(seen);
	for (i = 0; i < 10000; i++) {
		b.mw_key = must_bind(f, &b);
		assert_int_equal(seen[b.mw_key / 8] & (1 << (b.mw_key % 8)), 0);
		seen[b.mw_key / 8] |= (uint8_t)(1 << (b.mw_key % 8));
	}
	free(seen);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_region_is_no_window),
		T(test_unbound_window_gives_access_to_nothing),
		T(test_window_is_narrower_than_its_region),
		T(test_window_has_its_own_rights),
		T(test_window_key_is_no_l_key),
		T(test_region_must_allow_the_bind),
		T(test_bind_needs_one_domain),
		T(test_bind_stays_inside_the_region),
		T(test_bind_needs_keys_that_are_alive),
		T(test_bind_takes_remote_rights_only),
		T(test_failed_bind_changes_nothing),
		T(test_no_window_over_a_zero_based_region),
		T(test_zero_based_window_starts_at_0),
		T(test_type_1_is_never_zero_based),
		T(test_atomic_window_keeps_alignment),
		T(test_type_1_window_allows_every_qp_of_the_domain),
		T(test_type_2_window_allows_its_qp_only),
		T(test_type_2_bind_sets_only_the_low_byte_of_the_key),
		T(test_type_2_is_unbound_by_invalidate_only),
		T(test_invalidate_ends_access),
		T(test_a_qp_may_invalidate_only_its_own_type_2_windows),
		T(test_type_1_rebind_gets_a_new_key_and_a_grace_period),
		T(test_type_1_with_a_chosen_key),
		T(test_type_1_bind_of_length_0_unbinds),
		T(test_type_1_moves_from_region_to_region),
		T(test_region_with_bound_windows_is_busy),
		T(test_free_ends_access_at_once_and_waits_for_grace),
		T(test_windows_run_out_and_come_back),
		T(test_type_2_windows_are_unbound_when_their_qp_is_destroyed),
		T(test_query_reports_the_binding),
		T(test_ten_thousand_type_1_binds_repeat_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
