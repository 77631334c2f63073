/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_STORE_FIXTURE_H
#define TEST_STORE_FIXTURE_H

/*
 * A store of two tables: 0 with an index of two keys a record, 1 without. Its memory is counted
 * and can fail; its grace periods end when the test says so.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store.h"

struct fixture {
	struct allocator alloc;
	long blocks; /* allocated and not freed */
	long fail_in; /* the n-th allocation from now on fails, and all after it; 0: none */
	uint64_t grace_now; /* tokens up to here are done */
	uint64_t grace_next;
	struct store_config config;
	struct store *s;
};

/* config has been filled in; change it, then fixture_open() */
void fixture_init(struct fixture *f);
void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);

/* Record of table 0: {a, b} are its index keys, then filling. */
struct row {
	uint32_t a;
	uint32_t b;
	uint32_t filling[4];
};
/* One commit of one change. */
void fixture_put(struct fixture *f, unsigned int table, uint32_t rid, uint32_t a, uint32_t b);
void fixture_del(struct fixture *f, unsigned int table, uint32_t rid);
struct row row_of(const struct store_record *r);

#endif
