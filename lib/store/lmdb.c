/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The LMDB backend: one table with the key {table, RID big-endian}, so that records are read in
 * tree order. Every commit is synchronous. A lock file beside the data keeps other processes out:
 * two writers would each know only a part of the subnet's records.
 *
 * LMDB has no checksums and trusts its file. A damaged file stops the process: a page beyond the
 * end of the file causes SIGBUS, a bad page fails an assertion. Therefore a file that is too short
 * is extended to the length it claims, assertions and faults while reading return here, and the
 * number of records is checked. So a damaged file is reported, and never read in part as if it were
 * whole.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "store/lmdb_private.h"

#define KEY_LEN    5
#define FORMAT     "polca records 1"
#define FORMAT_KEY "format" /* longer than a record's key */

static void
put_key(uint8_t *key, unsigned int table, uint32_t rid)
{
	key[0] = (uint8_t)table;
	key[1] = (uint8_t)(rid >> 24);
	key[2] = (uint8_t)(rid >> 16);
	key[3] = (uint8_t)(rid >> 8);
	key[4] = (uint8_t)rid;
}

int
lmdb_damaged(const struct lmdb *l, const char *how, struct error *err)
{
	return error_set(err, EBADMSG,
		"%s: the record store is damaged: %s; move the directory away and import the records anew",
		l->path, how);
}

/* Set the error. LMDB's own error numbers are negative, errno values positive. */
int
lmdb_failed(const struct lmdb *l, int rc, const char *what, struct error *err)
{
	if (rc == MDB_MAP_FULL)
		return error_set(err, ENOSPC,
			"%s: the record store is full: raise sa.map_mb; nothing was changed",
			l->path);
	if (rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH || rc == MDB_CORRUPTED ||
		rc == MDB_PAGE_NOTFOUND)
		return lmdb_damaged(l, mdb_strerror(rc), err);
	return error_set(err, rc > 0 ? rc : EIO, "%s: %s: %s", l->path, what, mdb_strerror(rc));
}

/* --- calls into LMDB --- */

static void
on_assert(MDB_env *env, const char *msg)
{
	struct lmdb *l = mdb_env_get_userctx(env);

	(void)msg;
	l->damaged = true;
	if (l->out != NULL)
		siglongjmp(*l->out, 1);
}

static void
stop_reading(struct lmdb *l)
{
	if (l->cursor != NULL)
		mdb_cursor_close(l->cursor);
	if (l->reading != NULL)
		mdb_txn_abort(l->reading);
	l->cursor = NULL;
	l->reading = NULL;
}

/* Where a fault of this thread returns to; NULL: faults are not caught. */
static _Thread_local sigjmp_buf *fault_out;

/*
 * Catch faults of reading calls: a damaged page may point anywhere, and lmdb_run_load() reads every
 * page.
 */
static bool
lmdb_fault(const struct fault *f)
{
	(void)f;
	if (fault_out != NULL)
		siglongjmp(*fault_out, 1);
	return false;
}

/* Call LMDB, unless it has found its file damaged before. */
int
lmdb_make_call(struct lmdb *l, struct lmdb_call *c)
{
	sigjmp_buf out;

	l->out = &out;
	fault_out = c->writes ? NULL : &out;
	if (!l->damaged && sigsetjmp(out, 1) == 0)
		c->rc = c->fn(l, c);
	else
		l->damaged = true;
	fault_out = NULL;
	l->out = NULL;
	stop_reading(l);
	return l->damaged ? lmdb_damaged(l, "a page is not what it should be", c->err) : c->rc;
}

/* --- load --- */

static bool
is_lmdb_key(const MDB_val *key, const char *name)
{
	return key->mv_size == strlen(name) && memcmp(key->mv_data, name, key->mv_size) == 0;
}

static int
load_one(struct lmdb *l, struct lmdb_call *c, const MDB_val *key, const MDB_val *value)
{
	const uint8_t *k = key->mv_data;
	struct store_op op;
	int rc;

	if (is_lmdb_key(key, FORMAT_KEY) || is_lmdb_key(key, LMDB_POSITION_KEY))
		return 0;
	if (key->mv_size != KEY_LEN || value->mv_size > UINT16_MAX)
		return lmdb_damaged(l, "it has what is no record", c->err);
	op.table = k[0];
	op.rid = (uint32_t)k[1] << 24 | (uint32_t)k[2] << 16 | (uint32_t)k[3] << 8 | k[4];
	op.bytes = value->mv_data;
	op.len = (uint16_t)value->mv_size;
	rc = c->each(c->to, &op);
	return rc == 0
		? 0
		: error_set(c->err, -rc, "%s: record 0x%08x of table %u: %s", l->path, op.rid,
			  op.table,
			  rc == -EBADMSG ? "this program does not know the table" : strerror(-rc));
}

static int
lmdb_run_load(struct lmdb *l, struct lmdb_call *c)
{
	MDB_val key, value;
	MDB_stat stat;
	size_t n = 0;
	int rc, said = 0;

	rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reading);
	if (rc == 0)
		rc = mdb_stat(l->reading, l->dbi, &stat);
	if (rc == 0)
		rc = mdb_cursor_open(l->reading, l->dbi, &l->cursor);
	while (rc == 0 && said == 0) {
		rc = mdb_cursor_get(l->cursor, &key, &value, MDB_NEXT);
		if (rc == 0) {
			said = load_one(l, c, &key, &value);
			n++;
		}
	}
	if (said != 0)
		return said;
	if (rc != MDB_NOTFOUND)
		return lmdb_failed(l, rc, "read", c->err);
	return n == stat.ms_entries ? 0 : lmdb_damaged(l, "records are missing", c->err);
}

static int
lmdb_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to, struct error *err)
{
	return lmdb_make_call(arg,
		&(struct lmdb_call){ .fn = lmdb_run_load, .each = each, .to = to, .err = err });
}

/* --- apply --- */

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

/* @param rc  result of the writes before */
int
lmdb_end_writing(struct lmdb *l, MDB_txn *txn, int rc, struct error *err)
{
	if (rc != 0) {
		mdb_txn_abort(txn);
		return lmdb_failed(l, rc, "write", err);
	}
	rc = mdb_txn_commit(txn);
	return rc == 0 ? 0 : lmdb_failed(l, rc, "commit", err);
}

/* @return 0, or LMDB's error */
int
lmdb_put_all(struct lmdb *l, MDB_txn *txn, const struct lmdb_call *c)
{
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < c->n; i++)
		rc = apply_one(l, txn, &c->ops[i]);
	return rc;
}

static int
lmdb_run_apply(struct lmdb *l, struct lmdb_call *c)
{
	MDB_txn *txn;
	int rc;

	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return lmdb_failed(l, rc, "begin writing", c->err);
	rc = lmdb_put_all(l, txn, c);
	return lmdb_end_writing(l, txn, rc, c->err);
}

static int
lmdb_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	return lmdb_make_call(arg,
		&(struct lmdb_call){ .fn = lmdb_run_apply,
			.ops = ops,
			.n = n,
			.writes = true,
			.err = err });
}

/* --- open and close --- */

int
lmdb_put_format(struct lmdb *l, MDB_txn *txn)
{
	MDB_val key = { sizeof(FORMAT_KEY) - 1, (void *)(uintptr_t)FORMAT_KEY };
	MDB_val value = { sizeof(FORMAT) - 1, (void *)(uintptr_t)FORMAT };

	return mdb_put(txn, l->dbi, &key, &value, 0);
}

void
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

/* Write the format into a new store. */
static int
write_format(struct lmdb *l, struct lmdb_call *c)
{
	MDB_txn *txn;
	int rc;

	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return lmdb_failed(l, rc, "begin writing", c->err);
	return lmdb_end_writing(l, txn, lmdb_put_format(l, txn), c->err);
}

/* Check the format of an existing store. @retval 1  the store is new */
static int
check_format(struct lmdb *l, struct lmdb_call *c)
{
	MDB_val key = { sizeof(FORMAT_KEY) - 1, (void *)(uintptr_t)FORMAT_KEY };
	MDB_val got;
	MDB_stat stat;
	int rc;

	rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reading);
	if (rc == 0)
		rc = mdb_dbi_open(l->reading, NULL, 0, &l->dbi);
	if (rc == 0)
		rc = mdb_stat(l->reading, l->dbi, &stat);
	if (rc == 0)
		rc = mdb_get(l->reading, l->dbi, &key, &got);
	if (rc == MDB_NOTFOUND && stat.ms_entries == 0)
		return 1;
	if (rc == MDB_NOTFOUND)
		return error_set(c->err, EBADMSG, "%s: holds an LMDB database of another program",
			l->path);
	if (rc != 0)
		return lmdb_failed(l, rc, "read", c->err);
	if (got.mv_size != sizeof(FORMAT) - 1 || memcmp(got.mv_data, FORMAT, got.mv_size) != 0)
		return error_set(c->err, EBADMSG,
			"%s: records of another format than \"%s\"; export them with the program that wrote them",
			l->path, FORMAT);
	return 0;
}

/*
 * A file shorter than LMDB's page count may be sound: LMDB need not have written unused last pages.
 */
static int
check_length(struct lmdb *l, struct error *err)
{
	mdb_filehandle_t fd;
	MDB_envinfo info;
	uint64_t length;
	struct stat st;
	MDB_stat stat;

	if (mdb_env_info(l->env, &info) != 0 || mdb_env_stat(l->env, &stat) != 0 ||
		mdb_env_get_fd(l->env, &fd) != 0 || fstat(fd, &st) != 0)
		return lmdb_damaged(l, "it does not say how long it is", err);
	length = (info.me_last_pgno + 1) * stat.ms_psize;
	if ((uint64_t)st.st_size >= length)
		return 0;
	if (length > info.me_mapsize || ftruncate(fd, (off_t)length) != 0)
		return lmdb_damaged(l, "the file has been cut short", err);
	return 0;
}

static int
sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = fsync(fd) != 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* Sync the directories: without their entries the files do not survive a power failure. */
static int
sync_names(const struct lmdb *l, struct error *err)
{
	char parent[4200];
	int rc;

	snprintf(parent, sizeof(parent), "%s/..", l->path);
	rc = sync_directory(l->path);
	if (rc == 0)
		rc = sync_directory(parent);
	return rc == 0 ? 0
		       : error_set(err, -rc, "%s: the directory cannot be made durable: %s",
				 l->path, strerror(-rc));
}

static int
open_env(struct lmdb *l, uint64_t map_bytes, struct error *err)
{
	int rc;

	rc = mdb_env_create(&l->env);
	if (rc != 0)
		return lmdb_failed(l, rc, "create", err);
	mdb_env_set_userctx(l->env, l);
	mdb_env_set_assert(l->env, on_assert);
	rc = mdb_env_set_mapsize(l->env, map_bytes);
	if (rc == 0)
		rc = mdb_env_open(l->env, l->path, MDB_NOTLS | MDB_NORDAHEAD, 0600);
	if (rc != 0)
		return lmdb_failed(l, rc, "open", err);
	rc = check_length(l, err);
	if (rc == 0)
		rc = lmdb_make_call(l, &(struct lmdb_call){ .fn = check_format, .err = err });
	if (rc != 1)
		return rc;
	rc = lmdb_make_call(l, &(struct lmdb_call){ .fn = write_format, .err = err });
	return rc == 0 ? sync_names(l, err) : rc;
}

int
lmdb_open_either(const char *path, uint64_t map_bytes, struct store_backend *backend,
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
	fault_add(lmdb_fault);
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
