/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * LMDB as the copy of a fleet's database. The position in etcd, the prefix and the copy's instance
 * are stored beside the records. The lock file says where the copy is, so that a directory that an
 * operator has copied is told from the one that it was copied from.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/lmdb_private.h"

/* What is stored under LMDB_POSITION_KEY; the first version of it ended behind .at. */
struct stored_position {
	struct copy_position at;
	uint64_t instance;
	char prefix[COPY_PREFIX_MAX]; /* without the NUL, and not longer than it is */
};
#define STORED_MIN offsetof(struct stored_position, prefix)

static int
run_copy_write(struct lmdb *l, struct lmdb_call *c)
{
	MDB_val key = { sizeof(LMDB_POSITION_KEY) - 1, (void *)(uintptr_t)LMDB_POSITION_KEY };
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
		rc = lmdb_put_format(l, txn);
	if (rc == 0)
		rc = lmdb_put_all(l, txn, c);
	if (rc == 0)
		rc = mdb_put(txn, l->dbi, &key, &value, 0);
	return lmdb_end_writing(l, txn, rc, c->err);
}

int
lmdb_copy_write(const struct store_backend *backend, bool replace, const struct store_op *ops,
	size_t n, const struct copy_position *position, struct error *err)
{
	struct copy_position written = *position;

	return lmdb_make_call(backend->arg,
		&(struct lmdb_call){ .fn = run_copy_write,
			.ops = ops,
			.n = n,
			.writes = true,
			.replace = replace,
			.position = &written,
			.err = err });
}

/* @retval 1  there is no position */
static int
run_position(struct lmdb *l, struct lmdb_call *c)
{
	MDB_val key = { sizeof(LMDB_POSITION_KEY) - 1, (void *)(uintptr_t)LMDB_POSITION_KEY }, got;
	int rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reading);
	struct stored_position stored;

	if (rc == 0)
		rc = mdb_get(l->reading, l->dbi, &key, &got);
	if (rc != 0)
		return rc == MDB_NOTFOUND ? 1 : lmdb_failed(l, rc, "read", c->err);
	memset(&stored, 0, sizeof(stored));
	if (got.mv_size != sizeof(stored.at) &&
		(got.mv_size < STORED_MIN || got.mv_size >= sizeof(stored)))
		return lmdb_damaged(l, "its position in etcd has another length", c->err);
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
	rc = lmdb_make_call(backend->arg,
		&(struct lmdb_call){ .fn = run_position, .position = position, .err = err });
	return rc == 1 ? -ENOENT : rc;
}

/* --- open --- */

/* @retval 1  there are records */
static int
run_count(struct lmdb *l, struct lmdb_call *c)
{
	MDB_val key = { sizeof(LMDB_POSITION_KEY) - 1, (void *)(uintptr_t)LMDB_POSITION_KEY }, got;
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
	rc = lmdb_make_call(backend->arg, &(struct lmdb_call){ .fn = run_count, .err = err });
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
	int rc = lmdb_open_either(path, map_bytes, backend, err);

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

bool
lmdb_copy_moved(const struct store_backend *backend)
{
	return ((const struct lmdb *)backend->arg)->moved;
}

bool
lmdb_copy_settled(const struct store_backend *backend)
{
	return !((const struct lmdb *)backend->arg)->unsettled;
}

/* --- where the copy is --- */

#define BOOT_ID  "/proc/sys/kernel/random/boot_id"
#define HOME_MAX 128 /* bytes of a home as text, the NUL included */

/*
 * A copied directory has another inode, and on another machine another boot ID. A machine that has
 * started anew has another one, too: then a lease that is left does no more than end. A database
 * that was copied alone has another instance than the lock file beside it.
 */
static void
copy_home(const struct lmdb *l, char home[HOME_MAX])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	char boot[40] = "";
	struct stat st;

	if (fd >= 0 && read(fd, boot, 36) != 36)
		boot[0] = '\0';
	if (fd >= 0)
		close(fd);
	if (fstat(l->lock, &st) != 0)
		memset(&st, 0, sizeof(st));
	snprintf(home, HOME_MAX, "%s %" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", boot,
		(uint64_t)st.st_dev, (uint64_t)st.st_ino, l->instance);
}

/*
 * True if the copy is where its instance was written. The lock file of a copy that is at home is
 * never empty: a database without it was copied alone, or its appliance died at its very first
 * start.
 */
static bool
copy_is_at_home(const struct lmdb *l)
{
	char home[HOME_MAX], stored[HOME_MAX] = "";
	ssize_t len = pread(l->lock, stored, HOME_MAX - 1, 0);

	copy_home(l, home);
	return len > 0 && strcmp(stored, home) == 0;
}

static void
copy_settle(struct lmdb *l)
{
	char home[HOME_MAX];
	size_t len;

	copy_home(l, home);
	len = strlen(home);
	l->unsettled = pwrite(l->lock, home, len, 0) != (ssize_t)len ||
		ftruncate(l->lock, (off_t)len) != 0;
}

/* --- open --- */

/*
 * Which keys of etcd's a copy has, and which appliance's it is, is written when it is made. An
 * appliance whose copy was elsewhere before is another one: the first may still run.
 */
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
	if (l->instance != 0 && copy_is_at_home(l))
		return 0;
	l->moved = l->instance != 0;
	if (getrandom(&l->instance, sizeof(l->instance), 0) != (ssize_t)sizeof(l->instance))
		return error_set(err, EIO, "the kernel gives no random numbers");
	snprintf(l->prefix, sizeof(l->prefix), "%s", prefix);
	rc = lmdb_copy_write(backend, false, NULL, 0, &position, err);
	if (rc == 0)
		copy_settle(l);
	return rc;
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
