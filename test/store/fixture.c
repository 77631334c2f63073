/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "fixture.h"

#include <stdlib.h>
#include <string.h>

static void *
count_alloc(void *arg, size_t size, size_t align)
{
	struct fixture *f = arg;
	void *mem;

	if (f->fail_in > 0 && --f->fail_in == 0) {
		f->fail_in = 1;
		return NULL;
	}
	f->blocks++;
	mem = aligned_alloc(align, (size + align - 1) / align * align);
	memset(mem, 0, size);
	return mem;
}

static void
count_free(void *arg, void *mem)
{
	struct fixture *f = arg;

	f->blocks--;
	free(mem);
}

static uint64_t
fixture_grace_start(void *arg)
{
	struct fixture *f = arg;

	return ++f->grace_next;
}

static bool
fixture_grace_done(void *arg, uint64_t token)
{
	struct fixture *f = arg;

	return token <= f->grace_now;
}

struct row
row_of(const struct store_record *r)
{
	struct row row;

	assert_non_null(r);
	assert_int_equal(r->len, sizeof(row));
	memcpy(&row, r->bytes, sizeof(row));
	return row;
}

static unsigned int
keys_ab(const struct store_record *r, uint64_t *keys)
{
	struct row row = row_of(r);

	keys[0] = row.a;
	keys[1] = (uint64_t)1 << 32 | row.b;
	return row.b == 0 ? 1 : 2;
}

static const struct store_index indexes[] = { { 0, keys_ab } };

void
fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->alloc = (struct allocator){ count_alloc, count_free, f };
	f->config = (struct store_config){
		.tables = 2,
		.indexes = indexes,
		.num_indexes = 1,
		.readers = 2,
		.alloc = &f->alloc,
		.max_old_bytes = 1 << 20,
		.max_versions = 4,
		.grace = { fixture_grace_start, fixture_grace_done, f },
	};
	f->grace_now = UINT64_MAX;
}

void
fixture_open(struct fixture *f)
{
	struct error err = { "" };

	f->s = store_create(&f->config, &err);
	if (f->s == NULL)
		fail_msg("%s", err.text);
}

void
fixture_close(struct fixture *f)
{
	store_destroy(f->s);
	f->s = NULL;
	assert_int_equal(f->blocks, 0);
}

void
fixture_put(struct fixture *f, unsigned int table, uint32_t rid, uint32_t a, uint32_t b)
{
	struct row row = { a, b, { rid, 0, 0, ~rid } };
	struct store_txn *t = store_begin(f->s);

	assert_non_null(t);
	assert_int_equal(store_put(t, table, rid, &row, sizeof(row)), 0);
	assert_int_equal(store_commit(t, NULL), 0);
}

void
fixture_del(struct fixture *f, unsigned int table, uint32_t rid)
{
	struct store_txn *t = store_begin(f->s);

	assert_non_null(t);
	assert_int_equal(store_del(t, table, rid), 0);
	assert_int_equal(store_commit(t, NULL), 0);
}
