/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Records in LMDB: one table, key {table, RID big-endian}, so that a walk meets them in the order
 * of the tree. Every commit is synchronous. A lock on a file beside the data keeps other processes
 * out: two writers of one subnet's records would each be right about half of it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lmdb.h>

#include "store/store.h"

#define KEY_LEN    5
#define FORMAT     "polca records 1"
#define FORMAT_KEY "format" /* one byte longer than a record's key */

struct lmdb {
	MDB_env *env;
	MDB_dbi dbi;
	int lock;
	char path[];
};

static void
put_key(uint8_t *key, unsigned int table, uint32_t rid)
{
	key[0] = (uint8_t)table;
	key[1] = (uint8_t)(rid >> 24);
	key[2] = (uint8_t)(rid >> 16);
	key[3] = (uint8_t)(rid >> 8);
	key[4] = (uint8_t)rid;
}

/* LMDB's own numbers are negative, the system's positive. */
static int
failed(const struct lmdb *l, int rc, const char *what, struct error *err)
{
	if (rc == MDB_MAP_FULL)
		return error_set(err, ENOSPC,
			"%s: the record store is full: raise sa.map_mb; nothing was changed",
			l->path);
	if (rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH || rc == MDB_CORRUPTED ||
			rc == MDB_PAGE_NOTFOUND)
		return error_set(err, EBADMSG,
			"%s: %s: %s; move the directory away and import the records anew", l->path,
			what, mdb_strerror(rc));
	return error_set(err, rc > 0 ? rc : EIO, "%s: %s: %s", l->path, what, mdb_strerror(rc));
}

static int
lmdb_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to,
	struct error *err)
{
	struct lmdb *l = arg;
	struct store_op op;
	MDB_cursor *cursor = NULL;
	MDB_val key, value;
	MDB_txn *txn;
	const uint8_t *k;
	int rc, said = 0;

	rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &txn);
	if (rc != 0)
		return failed(l, rc, "begin reading", err);
	rc = mdb_cursor_open(txn, l->dbi, &cursor);
	while (rc == 0 && said == 0) {
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
		if (rc != 0 || key.mv_size != KEY_LEN)
			continue;
		k = key.mv_data;
		op.table = k[0];
		op.rid = (uint32_t)k[1] << 24 | (uint32_t)k[2] << 16 | (uint32_t)k[3] << 8 | k[4];
		op.bytes = value.mv_data;
		op.len = (uint16_t)value.mv_size;
		said = value.mv_size > UINT16_MAX ? -EBADMSG : each(to, &op);
	}
	if (cursor != NULL)
		mdb_cursor_close(cursor);
	mdb_txn_abort(txn);
	if (said != 0)
		return said;
	return rc == MDB_NOTFOUND ? 0 : failed(l, rc, "read", err);
}

static int
apply_one(struct lmdb *l, MDB_txn *txn, const struct store_op *op)
{
	uint8_t bytes[KEY_LEN];
	MDB_val key = { KEY_LEN, bytes };
	MDB_val value = { op->len, (void *)(uintptr_t)op->bytes };
	int rc;

	put_key(bytes, op->table, op->rid);
	if (op->bytes != NULL)
		return mdb_put(txn, l->dbi, &key, &value, 0);
	rc = mdb_del(txn, l->dbi, &key, NULL);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
lmdb_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	struct lmdb *l = arg;
	MDB_txn *txn;
	size_t i;
	int rc;

	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return failed(l, rc, "begin writing", err);
	for (i = 0; rc == 0 && i < n; i++)
		rc = apply_one(l, txn, &ops[i]);
	if (rc != 0) {
		mdb_txn_abort(txn);
		return failed(l, rc, "write", err);
	}
	rc = mdb_txn_commit(txn);
	return rc == 0 ? 0 : failed(l, rc, "commit", err);
}

static void
lmdb_close(void *arg)
{
	struct lmdb *l = arg;

	if (l->env != NULL)
		mdb_env_close(l->env);
	if (l->lock >= 0)
		close(l->lock);
	free(l);
}

static int
take_lock(struct lmdb *l, struct error *err)
{
	char file[4200];

	if (mkdir(l->path, 0700) != 0 && errno != EEXIST)
		return error_set(err, errno, "%s: cannot make the directory: %s", l->path,
			strerror(errno));
	snprintf(file, sizeof(file), "%s/polca.lock", l->path);
	l->lock = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (l->lock < 0)
		return error_set(err, errno, "%s: cannot be opened: %s", file, strerror(errno));
	if (flock(l->lock, LOCK_EX | LOCK_NB) != 0)
		return error_set(err, EBUSY,
			"%s: another process uses this record store; give each its own path",
			l->path);
	return 0;
}

/* A new store says which format it has; an old one is asked. */
static int
check_format(struct lmdb *l, MDB_txn *txn, struct error *err)
{
	MDB_val key = { sizeof(FORMAT_KEY) - 1, (void *)(uintptr_t)FORMAT_KEY };
	MDB_val value = { sizeof(FORMAT) - 1, (void *)(uintptr_t)FORMAT };
	MDB_val got;
	MDB_stat stat;
	int rc;

	rc = mdb_get(txn, l->dbi, &key, &got);
	if (rc == 0) {
		if (got.mv_size == value.mv_size && memcmp(got.mv_data, FORMAT, got.mv_size) == 0)
			return 0;
		return error_set(err, EBADMSG,
			"%s: records of another format than \"%s\"; export them with the program "
			"that wrote them", l->path, FORMAT);
	}
	if (rc != MDB_NOTFOUND)
		return failed(l, rc, "read", err);
	rc = mdb_stat(txn, l->dbi, &stat);
	if (rc == 0 && stat.ms_entries > 0)
		return error_set(err, EBADMSG, "%s: holds an LMDB database of another program",
			l->path);
	if (rc == 0)
		rc = mdb_put(txn, l->dbi, &key, &value, 0);
	return rc == 0 ? 0 : failed(l, rc, "write", err);
}

static int
open_env(struct lmdb *l, uint64_t map_bytes, struct error *err)
{
	MDB_txn *txn;
	int rc;

	rc = mdb_env_create(&l->env);
	if (rc != 0)
		return failed(l, rc, "create", err);
	rc = mdb_env_set_mapsize(l->env, map_bytes);
	if (rc == 0)
		rc = mdb_env_open(l->env, l->path, MDB_NOTLS | MDB_NORDAHEAD, 0600);
	if (rc != 0)
		return failed(l, rc, "open", err);
	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return failed(l, rc, "begin writing", err);
	rc = mdb_dbi_open(txn, NULL, 0, &l->dbi);
	if (rc != 0) {
		mdb_txn_abort(txn);
		return failed(l, rc, "open", err);
	}
	rc = check_format(l, txn, err);
	if (rc != 0) {
		mdb_txn_abort(txn);
		return rc;
	}
	rc = mdb_txn_commit(txn);
	return rc == 0 ? 0 : failed(l, rc, "commit", err);
}

int
store_lmdb_open(const char *path, uint64_t map_bytes, struct store_backend *backend,
	struct error *err)
{
	struct lmdb *l;
	int rc;

	if (strlen(path) > 4000)
		return error_set(err, ENAMETOOLONG, "the path of the record store is too long");
	l = calloc(1, sizeof(*l) + strlen(path) + 1);
	if (l == NULL)
		return error_set(err, ENOMEM, "%s: no memory to open it", path);
	strcpy(l->path, path);
	l->lock = -1;
	rc = take_lock(l, err);
	if (rc == 0)
		rc = open_env(l, map_bytes, err);
	if (rc != 0) {
		lmdb_close(l);
		return rc;
	}
	*backend = (struct store_backend){
		.arg = l,
		.load = lmdb_load,
		.apply = lmdb_apply,
		.close = lmdb_close,
	};
	return 0;
}
