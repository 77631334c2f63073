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
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lmdb.h>

#include "base/fault.h"
#include "store/lmdb_copy.h"

#define KEY_LEN      5
#define FORMAT       "polca records 1"
#define FORMAT_KEY   "format" /* longer than a record's key, as is the next */
#define POSITION_KEY "position" /* in a fleet: of the copy */

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
	char prefix[COPY_PREFIX_MAX];
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

static int
damaged(const struct lmdb *l, const char *how, struct error *err)
{
	return error_set(err, EBADMSG,
		"%s: the record store is damaged: %s; move the directory away and import the records anew",
		l->path, how);
}

/* Set the error. LMDB's own error numbers are negative, errno values positive. */
static int
lmdb_failed(const struct lmdb *l, int rc, const char *what, struct error *err)
{
	if (rc == MDB_MAP_FULL)
		return error_set(err, ENOSPC,
			"%s: the record store is full: raise sa.map_mb; nothing was changed",
			l->path);
	if (rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH || rc == MDB_CORRUPTED ||
		rc == MDB_PAGE_NOTFOUND)
		return damaged(l, mdb_strerror(rc), err);
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

/* A call into LMDB and its arguments. */
struct call {
	int (*fn)(struct lmdb *l, struct call *c);
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
static int
make_call(struct lmdb *l, struct call *c)
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
	return l->damaged ? damaged(l, "a page is not what it should be", c->err) : c->rc;
}

/* --- load --- */

static bool
is_lmdb_key(const MDB_val *key, const char *name)
{
	return key->mv_size == strlen(name) && memcmp(key->mv_data, name, key->mv_size) == 0;
}

static int
load_one(struct lmdb *l, struct call *c, const MDB_val *key, const MDB_val *value)
{
	const uint8_t *k = key->mv_data;
	struct store_op op;
	int rc;

	if (is_lmdb_key(key, FORMAT_KEY) || is_lmdb_key(key, POSITION_KEY))
		return 0;
	if (key->mv_size != KEY_LEN || value->mv_size > UINT16_MAX)
		return damaged(l, "it has what is no record", c->err);
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
lmdb_run_load(struct lmdb *l, struct call *c)
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
	return n == stat.ms_entries ? 0 : damaged(l, "records are missing", c->err);
}

static int
lmdb_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to, struct error *err)
{
	return make_call(arg,
		&(struct call){ .fn = lmdb_run_load, .each = each, .to = to, .err = err });
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
static int
end_writing(struct lmdb *l, MDB_txn *txn, int rc, struct error *err)
{
	if (rc != 0) {
		mdb_txn_abort(txn);
		return lmdb_failed(l, rc, "write", err);
	}
	rc = mdb_txn_commit(txn);
	return rc == 0 ? 0 : lmdb_failed(l, rc, "commit", err);
}

/* @return 0, or LMDB's error */
static int
lmdb_put_all(struct lmdb *l, MDB_txn *txn, const struct call *c)
{
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < c->n; i++)
		rc = apply_one(l, txn, &c->ops[i]);
	return rc;
}

static int
lmdb_run_apply(struct lmdb *l, struct call *c)
{
	MDB_txn *txn;
	int rc;

	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return lmdb_failed(l, rc, "begin writing", c->err);
	rc = lmdb_put_all(l, txn, c);
	return end_writing(l, txn, rc, c->err);
}

static int
lmdb_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	return make_call(arg,
		&(struct call){ .fn = lmdb_run_apply,
			.ops = ops,
			.n = n,
			.writes = true,
			.err = err });
}

/* --- the copy of a fleet's database --- */

static int
put_format(struct lmdb *l, MDB_txn *txn)
{
	MDB_val key = { sizeof(FORMAT_KEY) - 1, (void *)(uintptr_t)FORMAT_KEY };
	MDB_val value = { sizeof(FORMAT) - 1, (void *)(uintptr_t)FORMAT };

	return mdb_put(txn, l->dbi, &key, &value, 0);
}

/* What is stored under POSITION_KEY; the first version of it ended behind .at. */
struct stored_position {
	struct copy_position at;
	uint64_t instance;
	char prefix[COPY_PREFIX_MAX]; /* without the NUL, and not longer than it is */
};
#define STORED_MIN offsetof(struct stored_position, prefix)

static int
run_copy_write(struct lmdb *l, struct call *c)
{
	MDB_val key = { sizeof(POSITION_KEY) - 1, (void *)(uintptr_t)POSITION_KEY };
	struct stored_position stored = { .at = *c->position, .instance = l->instance };
	MDB_val value = { STORED_MIN + strlen(l->prefix), &stored };
	MDB_txn *txn;
	int rc;

	memcpy(stored.prefix, l->prefix, strlen(l->prefix));
	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return lmdb_failed(l, rc, "begin writing", c->err);
	if (c->replace)
		rc = mdb_drop(txn, l->dbi, 0);
	if (rc == 0 && c->replace)
		rc = put_format(l, txn);
	if (rc == 0)
		rc = lmdb_put_all(l, txn, c);
	if (rc == 0)
		rc = mdb_put(txn, l->dbi, &key, &value, 0);
	return end_writing(l, txn, rc, c->err);
}

int
lmdb_copy_write(const struct store_backend *backend, bool replace, const struct store_op *ops,
	size_t n, const struct copy_position *position, struct error *err)
{
	struct copy_position written = *position;

	return make_call(backend->arg,
		&(struct call){ .fn = run_copy_write,
			.ops = ops,
			.n = n,
			.writes = true,
			.replace = replace,
			.position = &written,
			.err = err });
}

/* @retval 1  there is no position */
static int
run_position(struct lmdb *l, struct call *c)
{
	MDB_val key = { sizeof(POSITION_KEY) - 1, (void *)(uintptr_t)POSITION_KEY }, got;
	int rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reading);
	struct stored_position stored;

	if (rc == 0)
		rc = mdb_get(l->reading, l->dbi, &key, &got);
	if (rc != 0)
		return rc == MDB_NOTFOUND ? 1 : lmdb_failed(l, rc, "read", c->err);
	memset(&stored, 0, sizeof(stored));
	if (got.mv_size != sizeof(stored.at) &&
		(got.mv_size < STORED_MIN || got.mv_size >= sizeof(stored)))
		return damaged(l, "its position in etcd has another length", c->err);
	memcpy(&stored, got.mv_data, got.mv_size);
	*c->position = stored.at;
	l->instance = stored.instance;
	memcpy(l->prefix, stored.prefix, sizeof(l->prefix));
	return stored.at.cluster != 0 ? 0 : 1;
}

int
lmdb_copy_position(const struct store_backend *backend, struct copy_position *position,
	struct error *err)
{
	int rc;

	memset(position, 0, sizeof(*position));
	rc = make_call(backend->arg,
		&(struct call){ .fn = run_position, .position = position, .err = err });
	return rc == 1 ? -ENOENT : rc;
}

/* --- open and close --- */

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

/* Write the format into a new store. */
static int
write_format(struct lmdb *l, struct call *c)
{
	MDB_txn *txn;
	int rc;

	rc = mdb_txn_begin(l->env, NULL, 0, &txn);
	if (rc != 0)
		return lmdb_failed(l, rc, "begin writing", c->err);
	return end_writing(l, txn, put_format(l, txn), c->err);
}

/* Check the format of an existing store. @retval 1  the store is new */
static int
check_format(struct lmdb *l, struct call *c)
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
		return damaged(l, "it does not say how long it is", err);
	length = (info.me_last_pgno + 1) * stat.ms_psize;
	if ((uint64_t)st.st_size >= length)
		return 0;
	if (length > info.me_mapsize || ftruncate(fd, (off_t)length) != 0)
		return damaged(l, "the file has been cut short", err);
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
		rc = make_call(l, &(struct call){ .fn = check_format, .err = err });
	if (rc != 1)
		return rc;
	rc = make_call(l, &(struct call){ .fn = write_format, .err = err });
	return rc == 0 ? sync_names(l, err) : rc;
}

static int
open_either(const char *path, uint64_t map_bytes, struct store_backend *backend, struct error *err)
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

/* @retval 1  there are records */
static int
run_count(struct lmdb *l, struct call *c)
{
	MDB_val key = { sizeof(POSITION_KEY) - 1, (void *)(uintptr_t)POSITION_KEY }, got;
	MDB_stat stat;
	int rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reading);
	size_t others = 1; /* the format */

	if (rc == 0)
		rc = mdb_stat(l->reading, l->dbi, &stat);
	if (rc != 0)
		return lmdb_failed(l, rc, "read", c->err);
	others += mdb_get(l->reading, l->dbi, &key, &got) == 0;
	return stat.ms_entries > others ? 1 : 0;
}

/*
 * A database of one appliance alone and the copy of a fleet's are never taken for each other: the
 * first would be replaced by what the fleet has, the second would leave its position behind.
 */
static int
check_kind(const struct store_backend *backend, bool copy, struct error *err)
{
	const struct lmdb *l = backend->arg;
	struct copy_position position;
	int rc = lmdb_copy_position(backend, &position, err);

	if (rc == 0 && !copy)
		return error_set(err, EBADMSG,
			"%s: is the copy of a fleet's database, and there is no \"fleet\" in the configuration; name another directory",
			l->path);
	if (rc != -ENOENT || !copy)
		return rc == -ENOENT ? 0 : rc;
	rc = make_call(backend->arg, &(struct call){ .fn = run_count, .err = err });
	if (rc == 1)
		return error_set(err, EBADMSG,
			"%s: holds records of an appliance without a fleet: export them, name an empty directory, and import them into the fleet",
			l->path);
	return rc;
}

static int
open_kind(const char *path, uint64_t map_bytes, bool copy, struct store_backend *backend,
	struct error *err)
{
	int rc = open_either(path, map_bytes, backend, err);

	if (rc != 0)
		return rc;
	rc = check_kind(backend, copy, err);
	if (rc != 0) {
		lmdb_close(backend->arg);
		*backend = (struct store_backend){ NULL };
	}
	return rc;
}

int
store_lmdb_open(const char *path, uint64_t map_bytes, struct store_backend *backend,
	struct error *err)
{
	return open_kind(path, map_bytes, false, backend, err);
}

uint64_t
lmdb_copy_instance(const struct store_backend *backend)
{
	return ((const struct lmdb *)backend->arg)->instance;
}

/* Which keys of etcd's a copy has, and which appliance's it is, is written when it is made. */
static int
copy_claim(struct store_backend *backend, const char *prefix, struct error *err)
{
	struct lmdb *l = backend->arg;
	struct copy_position position;
	int rc = lmdb_copy_position(backend, &position, err);

	if (rc != 0 && rc != -ENOENT)
		return rc;
	if (l->prefix[0] != '\0' && strcmp(l->prefix, prefix) != 0)
		return error_set(err, EBADMSG,
			"%s: is the copy of what etcd has below \"%s/\", and fleet.prefix is \"%s\": correct it, or move the directory away",
			l->path, l->prefix, prefix);
	if (l->instance != 0)
		return 0;
	if (getrandom(&l->instance, sizeof(l->instance), 0) != (ssize_t)sizeof(l->instance))
		return error_set(err, EIO, "the kernel gives no random numbers");
	snprintf(l->prefix, sizeof(l->prefix), "%s", prefix);
	return lmdb_copy_write(backend, false, NULL, 0, &position, err);
}

int
lmdb_copy_open(const char *path, uint64_t map_bytes, const char *prefix,
	struct store_backend *backend, struct error *err)
{
	int rc = open_kind(path, map_bytes, true, backend, err);

	if (rc != 0)
		return rc;
	rc = copy_claim(backend, prefix, err);
	if (rc != 0) {
		lmdb_close(backend->arg);
		*backend = (struct store_backend){ NULL };
	}
	return rc;
}
