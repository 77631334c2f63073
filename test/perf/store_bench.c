/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Compare LMDB with the tree of lib/store: reading records (LMDB's read transactions on a locked
 * map), in alternate runs with medians of nine; the cost of readers for a writer; the cost of a
 * durable commit by group size. docs/store.md has the conclusions.
 *
 *   store_bench [--short]
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lmdb.h>

#include "store/store.h"

#define PAIRS   9
#define HELD    1000
#define COMMITS 200
#define MAP     (8ull << 30)
#define ROW_LEN 108 /* a NodeRecord */

static uint32_t records, lookups, changes, commits;
static char dir[] = "/var/tmp/polca-store-bench-XXXXXX";

struct both {
	MDB_env *env;
	MDB_dbi dbi;
	struct store *s;
	struct store_reader *r;
};

static void
store_bench_die(const char *what, int rc)
{
	fprintf(stderr, "store_bench: %s: %s\n", what, mdb_strerror(rc));
	exit(1);
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ != 0)                                                                      \
			store_bench_die(#call, rc_);                                               \
	} while (0)

static double
store_bench_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint32_t
rid_of(uint32_t i)
{
	return (i + 1) << 8;
}

/* @return the i-th record of a walk over all records in no particular order */
static uint32_t
scattered(uint32_t i)
{
	return (uint32_t)((uint64_t)i * 2654435761u % records);
}

static void
store_bench_key_of(uint8_t *key, uint32_t rid)
{
	key[0] = 0;
	key[1] = (uint8_t)(rid >> 24);
	key[2] = (uint8_t)(rid >> 16);
	key[3] = (uint8_t)(rid >> 8);
	key[4] = (uint8_t)rid;
}

/* --- the two stores, with the same records --- */

static void
lmdb_put(MDB_txn *txn, MDB_dbi dbi, uint32_t rid, const uint8_t *row)
{
	uint8_t bytes[5];
	MDB_val key = { sizeof(bytes), bytes }, value = { ROW_LEN, (void *)(uintptr_t)row };

	store_bench_key_of(bytes, rid);
	OK(mdb_put(txn, dbi, &key, &value, 0));
}

static void
fill_lmdb(struct both *b)
{
	uint8_t row[ROW_LEN] = { 0 };
	MDB_txn *txn;
	uint32_t i;

	OK(mdb_env_create(&b->env));
	OK(mdb_env_set_mapsize(b->env, MAP));
	OK(mdb_env_set_maxreaders(b->env, HELD + 16));
	OK(mdb_env_open(b->env, dir, MDB_NOTLS | MDB_NORDAHEAD | MDB_NOSYNC, 0600));
	OK(mdb_txn_begin(b->env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &b->dbi));
	for (i = 0; i < records; i++) {
		memcpy(row, &i, sizeof(i));
		lmdb_put(txn, b->dbi, rid_of(i), row);
	}
	OK(mdb_txn_commit(txn));
}

static void
fill_tree(struct both *b)
{
	struct store_config config = {
		.tables = 1,
		.readers = 1,
		.alloc = &allocator_malloc,
		.max_old_bytes = UINT64_MAX,
		.max_versions = HELD + 16,
	};
	uint8_t row[ROW_LEN] = { 0 };
	struct store_txn *t;
	uint32_t i;

	b->s = store_create(&config, NULL);
	b->r = store_reader(b->s, 0);
	t = store_begin(b->s);
	for (i = 0; i < records; i++) {
		memcpy(row, &i, sizeof(i));
		OK(store_put(t, 0, rid_of(i), row, ROW_LEN));
	}
	OK(store_commit(t, NULL));
}

static uint64_t
file_bytes(const struct both *b)
{
	MDB_envinfo info;

	OK(mdb_env_info(b->env, &info));
	return (info.me_last_pgno + 1) * 4096;
}

/* Lock the map in memory, as a reader must not access the disk. */
static const char *
lock_map(const struct both *b)
{
	const char *said = "not locked (the limit of locked memory is too low)";
	char line[512];
	unsigned long at;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		if (strstr(line, dir) != NULL && strstr(line, "/data.mdb") != NULL &&
			sscanf(line, "%lx-", &at) == 1 && mlock((void *)at, file_bytes(b)) == 0)
			said = "locked";
	if (maps != NULL)
		fclose(maps);
	return said;
}

/* --- measured functions: each returns nanoseconds per operation --- */

static volatile uint32_t sum;

static double
lmdb_get(struct both *b)
{
	double start = store_bench_seconds();
	uint8_t bytes[5];
	MDB_val key = { sizeof(bytes), bytes }, value;
	MDB_txn *txn;
	uint32_t i;

	OK(mdb_txn_begin(b->env, NULL, MDB_RDONLY, &txn));
	for (i = 0; i < lookups; i++) {
		store_bench_key_of(bytes, rid_of(scattered(i)));
		OK(mdb_get(txn, b->dbi, &key, &value));
		sum += ((uint8_t *)value.mv_data)[1];
	}
	mdb_txn_abort(txn);
	return (store_bench_seconds() - start) / lookups * 1e9;
}

/* The same with the transaction renewed for each burst of 32, as a worker would do. */
static double
lmdb_get_renewed(struct both *b)
{
	double start;
	uint8_t bytes[5];
	MDB_val key = { sizeof(bytes), bytes }, value;
	MDB_txn *txn;
	uint32_t i;

	OK(mdb_txn_begin(b->env, NULL, MDB_RDONLY, &txn));
	start = store_bench_seconds();
	for (i = 0; i < lookups; i++) {
		if (i % 32 == 0) {
			mdb_txn_reset(txn);
			OK(mdb_txn_renew(txn));
		}
		store_bench_key_of(bytes, rid_of(scattered(i)));
		OK(mdb_get(txn, b->dbi, &key, &value));
		sum += ((uint8_t *)value.mv_data)[1];
	}
	start = store_bench_seconds() - start;
	mdb_txn_abort(txn);
	return start / lookups * 1e9;
}

static double
tree_get_all(struct both *b)
{
	double start = store_bench_seconds();
	uint32_t i;

	for (i = 0; i < lookups; i++)
		sum += store_get(store_current(b->r), 0, rid_of(scattered(i)))->bytes[1];
	return (store_bench_seconds() - start) / lookups * 1e9;
}

static double
lmdb_walk(struct both *b)
{
	double start = store_bench_seconds();
	MDB_val key, value;
	MDB_cursor *c;
	MDB_txn *txn;
	uint32_t n = 0;

	OK(mdb_txn_begin(b->env, NULL, MDB_RDONLY, &txn));
	OK(mdb_cursor_open(txn, b->dbi, &c));
	while (mdb_cursor_get(c, &key, &value, MDB_NEXT) == 0) {
		sum += ((uint8_t *)value.mv_data)[1];
		n++;
	}
	mdb_cursor_close(c);
	mdb_txn_abort(txn);
	return (store_bench_seconds() - start) / n * 1e9;
}

static double
tree_walk(struct both *b)
{
	double start = store_bench_seconds();
	const struct store_record *r;
	struct store_cursor c;
	uint32_t n = 0;

	store_seek(&c, store_current(b->r), 0, 0);
	while ((r = store_next(&c, NULL)) != NULL) {
		sum += r->bytes[1];
		n++;
	}
	return (store_bench_seconds() - start) / n * 1e9;
}

/* Seek the record where a transfer continues after a Resend: by key (LMDB) or ordinal (tree). */
static double
lmdb_seek(struct both *b)
{
	double start = store_bench_seconds();
	uint8_t bytes[5];
	MDB_val key = { sizeof(bytes), bytes }, value;
	MDB_cursor *c;
	MDB_txn *txn;
	uint32_t i;

	OK(mdb_txn_begin(b->env, NULL, MDB_RDONLY, &txn));
	OK(mdb_cursor_open(txn, b->dbi, &c));
	for (i = 0; i < lookups; i++) {
		store_bench_key_of(bytes, rid_of(scattered(i)));
		key.mv_data = bytes; /* the last call has overwritten it */
		OK(mdb_cursor_get(c, &key, &value, MDB_SET_RANGE));
		sum += ((uint8_t *)value.mv_data)[1];
	}
	mdb_cursor_close(c);
	mdb_txn_abort(txn);
	return (store_bench_seconds() - start) / lookups * 1e9;
}

static double
tree_seek(struct both *b)
{
	double start = store_bench_seconds();
	struct store_cursor c;
	uint32_t i;

	for (i = 0; i < lookups; i++) {
		store_seek(&c, store_current(b->r), 0, scattered(i));
		sum += store_next(&c, NULL)->bytes[1];
	}
	return (store_bench_seconds() - start) / lookups * 1e9;
}

static int
store_bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void
store_bench_compare(struct both *b, const char *what, double (*lmdb)(struct both *),
	double (*tree)(struct both *))
{
	double a[PAIRS], t[PAIRS], ratio[PAIRS];
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		a[i] = lmdb(b);
		t[i] = tree(b);
		ratio[i] = a[i] / t[i];
	}
	qsort(a, PAIRS, sizeof(a[0]), store_bench_by_value);
	qsort(t, PAIRS, sizeof(t[0]), store_bench_by_value);
	qsort(ratio, PAIRS, sizeof(ratio[0]), store_bench_by_value);
	printf("%-34s %8.0f ns %8.0f ns %8.1f\n", what, a[PAIRS / 2], t[PAIRS / 2],
		ratio[PAIRS / 2]);
}

/* --- transfers hold versions while records change: one change per commit, not synced --- */

static void
say_held(const char *what, uint32_t num, double bytes, double start, const char *after)
{
	printf("%u held, %u changes, %s: %.1f MiB, %s; %.0f ns a change\n", num, changes, what,
		bytes / (1 << 20), after, (store_bench_seconds() - start) / changes * 1e9);
}

static void
lmdb_hold(struct both *b, uint32_t num)
{
	uint64_t before = file_bytes(b);
	static MDB_txn *held[HELD];
	uint8_t row[ROW_LEN] = { 1 };
	double start = store_bench_seconds();
	uint32_t i, n = 0;
	MDB_txn *txn;

	for (i = 0; i < changes; i++) {
		if (n < num && i % (changes / num) == 0)
			OK(mdb_txn_begin(b->env, NULL, MDB_RDONLY, &held[n++]));
		OK(mdb_txn_begin(b->env, NULL, 0, &txn));
		lmdb_put(txn, b->dbi, rid_of(scattered(i)), row);
		OK(mdb_txn_commit(txn));
	}
	say_held("LMDB's file grew by", num, (double)(file_bytes(b) - before), start, "for good");
	for (i = 0; i < num; i++)
		mdb_txn_abort(held[i]);
}

static void
tree_hold(struct both *b, uint32_t num)
{
	static const struct store_version *held[HELD];
	uint8_t row[ROW_LEN] = { 1 };
	struct store_stats stats, after;
	double start = store_bench_seconds();
	uint32_t i, n = 0;
	struct store_txn *t;

	for (i = 0; i < changes; i++) {
		if (n < num && i % (changes / num) == 0) {
			held[n] = store_current(b->r);
			OK(store_hold(b->r, held[n++]));
		}
		t = store_begin(b->s);
		OK(store_put(t, 0, rid_of(scattered(i)), row, ROW_LEN));
		OK(store_commit(t, NULL));
	}
	store_reclaim(b->s);
	store_stats(b->s, &stats);
	for (i = 0; i < num; i++)
		store_unhold(b->r, held[i]);
	store_reclaim(b->s);
	store_stats(b->s, &after);
	say_held("the tree keeps", num, (double)stats.old_bytes, start,
		after.old_bytes == 0 ? "0 once let go" : "NOT ALL FREED");
}

/* --- a durable commit --- */

static void
remove_files(const char *path)
{
	static const char *const files[] = { "data.mdb", "lock.mdb", "polca.lock" };
	char file[128];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, files[i]);
		unlink(file);
	}
	rmdir(path);
}

static void
durable(uint32_t group)
{
	struct store_config config = {
		.tables = 1,
		.readers = 1,
		.alloc = &allocator_malloc,
		.max_old_bytes = UINT64_MAX,
		.max_versions = 16,
	};
	uint8_t row[ROW_LEN] = { 2 };
	struct error err = { "" };
	char path[128];
	struct store_txn *t;
	struct store *s;
	double took[COMMITS], start;
	uint32_t i, k;

	snprintf(path, sizeof(path), "%s/durable", dir);
	if (store_lmdb_open(path, MAP, &config.backend, &err) != 0) {
		fprintf(stderr, "store_bench: %s\n", err.text);
		exit(1);
	}
	s = store_create(&config, &err);
	for (i = 0; i < commits; i++) {
		start = store_bench_seconds();
		t = store_begin(s);
		for (k = 0; k < group; k++)
			OK(store_put(t, 0, rid_of(scattered(i * group + k)), row, ROW_LEN));
		OK(store_commit(t, &err));
		took[i] = store_bench_seconds() - start;
	}
	qsort(took, commits, sizeof(took[0]), store_bench_by_value);
	printf("durable commit of %4u changes %10.0f us %12.0f changes/s\n", group,
		took[commits / 2] * 1e6, group / took[commits / 2]);
	store_destroy(s);
	remove_files(path);
}

static void
store_bench_run(uint32_t n)
{
	struct both b = { 0 };
	double start;

	records = n;
	fill_lmdb(&b);
	start = store_bench_seconds();
	fill_tree(&b);
	start = store_bench_seconds() - start;
	lmdb_walk(&b);
	printf("\n%u records of %u bytes; LMDB's map: %s\n", n, ROW_LEN, lock_map(&b));
	printf("loading the tree: %.0f ns a record\n", start / n * 1e9);
	printf("%-34s %11s %11s %8s\n", "", "LMDB", "tree", "ratio");
	store_bench_compare(&b, "get by RID, one transaction", lmdb_get, tree_get_all);
	store_bench_compare(&b, "get by RID, renewed each 32", lmdb_get_renewed, tree_get_all);
	store_bench_compare(&b, "walk, a record", lmdb_walk, tree_walk);
	store_bench_compare(&b, "go on by key | by ordinal", lmdb_seek, tree_seek);
	lmdb_hold(&b, 1);
	tree_hold(&b, 1);
	lmdb_hold(&b, HELD);
	tree_hold(&b, HELD);
	mdb_env_close(b.env);
	store_destroy(b.s);
	remove_files(dir);
	mkdir(dir, 0700);
}

int
main(int argc, char **argv)
{
	bool brief = argc > 1 && strcmp(argv[1], "--short") == 0;

	if (argc > 2 || (argc == 2 && !brief)) {
		fprintf(stderr, "usage: store_bench [--short]\n");
		return 2;
	}
	if (mkdtemp(dir) == NULL) {
		fprintf(stderr, "store_bench: %s: %s\n", dir, strerror(errno));
		return 1;
	}
	lookups = brief ? 1000 : 1000000;
	changes = brief ? HELD : 100000;
	commits = brief ? 2 : COMMITS;
	store_bench_run(10000);
	if (!brief)
		store_bench_run(1000000);
	printf("\n");
	durable(1);
	durable(10);
	durable(100);
	durable(1000);
	remove_files(dir);
	return 0;
}
