/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_STORE_FIXTURE_H
#define TEST_STORE_FIXTURE_H

/*
 * A store of two tables: table 0 has an index with two keys per record, table 1 has no index. The
 * fixture counts allocations and can make them fail. A grace period ends when the test sets
 * grace_now.
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
	long fail_in; /* the n-th allocation from now and all later ones fail; 0: none */
	uint64_t grace_now; /* the grace periods of tokens up to this one are over */
	uint64_t grace_next;
	struct store_config config;
	struct store *s;
};

/* Fill in config. The test may change it before it calls fixture_open(). */
void fixture_init(struct fixture *f);
void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);

/* A record of table 0: a and b are its index keys, the rest is filling. */
struct row {
	uint32_t a;
	uint32_t b;
	uint32_t filling[4];
};
/* Commit one change. */
void fixture_put(struct fixture *f, unsigned int table, uint32_t rid, uint32_t a, uint32_t b);
void fixture_del(struct fixture *f, unsigned int table, uint32_t rid);
struct row row_of(const struct store_record *r);

#endif
