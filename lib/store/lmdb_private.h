/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_LMDB_PRIVATE_H
#define STORE_LMDB_PRIVATE_H

/**
 * @file
 * Private to the LMDB backend: what lmdb.c (records) and lmdb_copy.c (the copy of a fleet's
 * database) share.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "store/lmdb_copy.h"

#define LMDB_POSITION_KEY "position" /* in a fleet: of the copy; longer than a record's key */

struct lmdb {
	MDB_env *env;
	MDB_dbi dbi;
	int lock;
	bool damaged;
	sigjmp_buf *out; /* where to return when LMDB finds its file damaged */
	MDB_txn *reading;
	MDB_cursor *cursor;
	/* a copy: */
	uint64_t instance;
	bool unsettled; /* the lock file could not be written */
	bool moved; /* it was elsewhere before, and got another instance */
	char prefix[COPY_PREFIX_MAX];
	char path[];
};

/* A call into LMDB and its arguments. */
struct lmdb_call {
	int (*fn)(struct lmdb *l, struct lmdb_call *c);
	int (*each)(void *to, const struct store_op *op);
	void *to;
	const struct store_op *ops;
	size_t n;
	bool writes; /* faults are not caught */
	bool replace;
	struct copy_position *position;
	struct error *err;
	int rc;
};

/* An error that says the file is not what it should be. */
int lmdb_damaged(const struct lmdb *l, const char *how, struct error *err);
/* Set the error. LMDB's own error numbers are negative, errno values positive. */
int lmdb_failed(const struct lmdb *l, int rc, const char *what, struct error *err);
/* Call LMDB, unless it has found its file damaged before. */
int lmdb_make_call(struct lmdb *l, struct lmdb_call *c);
/* Write .ops. @return 0, or LMDB's error */
int lmdb_put_all(struct lmdb *l, MDB_txn *txn, const struct lmdb_call *c);
int lmdb_put_format(struct lmdb *l, MDB_txn *txn);
/* @param rc  result of the writes before */
int lmdb_end_writing(struct lmdb *l, MDB_txn *txn, int rc, struct error *err);
/* Open a database of one appliance alone, or a copy. */
int lmdb_open_either(const char *path, uint64_t map_bytes, struct store_backend *backend,
	struct error *err);
void lmdb_close(void *arg);

#endif
