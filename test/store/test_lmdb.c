/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Durability: committed records exist again after a clean end and after kill -9 at any moment.
 */

#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lmdb.h>

#define MAP_BYTES (64u << 20)

static char dir[64];

static int
lmdb_setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/polca-store-XXXXXX");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
lmdb_teardown(void **state)
{
	static const char *const files[] = { "data.mdb", "lock.mdb", "polca.lock" };
	char path[128];
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static void
open_durable(struct fixture *f)
{
	struct error err = { "" };

	fixture_init(f);
	if (store_lmdb_open(dir, MAP_BYTES, &f->config.backend, &err) != 0)
		fail_msg("%s", err.text);
	fixture_open(f);
}

static void
test_committed_records_are_there_after_a_restart(void **state)
{
	struct fixture f;
	const struct store_version *v;
	struct store_cursor c;

	(void)state;
	open_durable(&f);
	fixture_put(&f, 0, 7, 70, 1);
	fixture_put(&f, 1, 0xFFFFFFFF, 80, 1);
	fixture_put(&f, 0, 8, 90, 1);
	fixture_del(&f, 0, 8);
	fixture_put(&f, 0, 7, 71, 1);
	fixture_close(&f);
	open_durable(&f);
	v = store_current(store_reader(f.s, 0));
	assert_int_equal(store_count(v, 0), 1);
	assert_int_equal(row_of(store_get(v, 0, 7)).a, 71);
	assert_int_equal(row_of(store_get(v, 1, 0xFFFFFFFF)).a, 80);
	store_seek_index(&c, v, 0, 71);
	assert_int_equal(store_next(&c, NULL)->rid, 7);
	fixture_close(&f);
}

static void
test_a_second_process_is_refused_by_name(void **state)
{
	struct store_backend second;
	struct error err = { "" };
	struct fixture f;

	(void)state;
	open_durable(&f);
	assert_int_equal(store_lmdb_open(dir, MAP_BYTES, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, dir));
	assert_non_null(strstr(err.text, "another process"));
	fixture_close(&f);
}

static void
test_a_full_store_refuses_and_goes_on(void **state)
{
	static uint8_t big[60000];
	struct error err = { "" };
	struct store_txn *t;
	struct fixture f;
	uint32_t rid;
	int rc = 0;

	(void)state;
	fixture_init(&f);
	f.config.num_indexes = 0;
	assert_int_equal(store_lmdb_open(dir, 1 << 20, &f.config.backend, &err), 0);
	fixture_open(&f);
	for (rid = 1; rc == 0; rid++) {
		assert_true(rid < 100);
		t = store_begin(f.s);
		assert_int_equal(store_put(t, 1, rid, big, sizeof(big)), 0);
		rc = store_commit(t, &err);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_non_null(strstr(err.text, "full"));
	assert_int_equal(store_count(store_current(store_reader(f.s, 0)), 1), rid - 2);
	/* a deletion, which frees room, still works */
	fixture_del(&f, 1, 1);
	fixture_del(&f, 1, 2);
	fixture_put(&f, 1, 1000, 1, 1);
	fixture_close(&f);
}

static void
test_foreign_files_are_refused(void **state)
{
	struct store_backend b;
	struct error err = { "" };
	char path[128];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/data.mdb", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, path, sizeof(path)), sizeof(path));
	close(fd);
	assert_true(store_lmdb_open(dir, MAP_BYTES, &b, &err) < 0);
	assert_non_null(strstr(err.text, dir));
}

static void
test_error_names_a_directory_that_cannot_be_made(void **state)
{
	struct store_backend b;
	struct error err = { "" };

	(void)state;
	assert_int_equal(store_lmdb_open("/nonexistent/polca", MAP_BYTES, &b, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/polca"));
}

static size_t
lmdb_read_file(const char *path, uint8_t *buf, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, buf, room);

	close(fd);
	assert_in_range(n, 1, room - 1);
	return (size_t)n;
}

static void
lmdb_write_file(const char *path, const uint8_t *buf, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, buf, n), n);
	close(fd);
}

static void
expect_all_rows(const struct fixture *f, uint32_t n)
{
	const struct store_version *v = store_current(store_reader(f->s, 0));
	uint32_t i;

	assert_int_equal(store_count(v, 0), n);
	for (i = 0; i < n; i++)
		assert_int_equal(row_of(store_get(v, 0, i)).a, i);
}

/* Pages with random pointers: opening fails, or only readable records exist; nothing crashes. */
static void
test_garbage_in_pages_is_survived(void **state)
{
	static uint8_t whole[1 << 20], bad[1 << 20];
	unsigned int refused = 0, seed, i;
	struct error err;
	struct fixture f;
	size_t length, n;
	char path[128];

	(void)state;
	open_durable(&f);
	for (i = 0; i < 500; i++)
		fixture_put(&f, 0, i, i, 1);
	fixture_close(&f);
	snprintf(path, sizeof(path), "%s/data.mdb", dir);
	length = lmdb_read_file(path, whole, sizeof(whole));
	for (seed = 1; seed <= 40; seed++) {
		memcpy(bad, whole, length);
		srand(seed);
		for (n = 2 * 4096; n < length; n += 4096)
			/* behind the page's header are the offsets of its entries */
			for (i = 16; i < 216; i++)
				bad[n + i] = (uint8_t)rand();
		lmdb_write_file(path, bad, length);
		err.text[0] = '\0';
		fixture_init(&f);
		if (store_lmdb_open(dir, MAP_BYTES, &f.config.backend, &err) == 0)
			f.s = store_create(&f.config, &err);
		if (f.s != NULL) {
			fixture_close(&f);
			continue;
		}
		assert_non_null(strstr(err.text, dir));
		refused++;
	}
	assert_true(refused > 30);
}

/* A copy of the file that was interrupted: the store refuses it, unless it is complete. */
static void
test_a_file_cut_short_is_refused_wherever_it_ends(void **state)
{
	static uint8_t whole[1 << 20];
	unsigned int refused = 0, cuts = 0;
	size_t length, n;
	struct error err;
	struct fixture f;
	char path[128];
	uint32_t i;

	(void)state;
	open_durable(&f);
	for (i = 0; i < 500; i++)
		fixture_put(&f, 0, i, i, 1);
	fixture_close(&f);
	snprintf(path, sizeof(path), "%s/data.mdb", dir);
	length = lmdb_read_file(path, whole, sizeof(whole));
	for (n = 4096; n < length; n += 4096, cuts++) {
		lmdb_write_file(path, whole, n);
		err.text[0] = '\0';
		fixture_init(&f);
		if (store_lmdb_open(dir, MAP_BYTES, &f.config.backend, &err) == 0)
			f.s = store_create(&f.config, &err);
		if (f.s != NULL) {
			expect_all_rows(&f, 500);
			fixture_close(&f);
			continue;
		}
		assert_non_null(strstr(err.text, dir));
		assert_non_null(strstr(err.text, "damaged"));
		assert_int_equal(f.blocks, 0);
		refused++;
	}
	assert_true(refused > cuts / 2);
}

static void
test_another_programs_database_is_refused(void **state)
{
	char mine[] = "mine";
	MDB_val key = { 4, mine }, value = { 4, mine };
	struct store_backend b;
	struct error err = { "" };
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;

	(void)state;
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_open(env, dir, 0, 0600), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
	assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
	assert_int_equal(store_lmdb_open(dir, MAP_BYTES, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.text, dir));
	assert_non_null(strstr(err.text, "another program"));
}

static void
test_a_record_of_an_unknown_table_is_named(void **state)
{
	struct error err = { "" };
	struct fixture f;

	(void)state;
	open_durable(&f);
	fixture_put(&f, 1, 0x1234, 1, 1);
	fixture_close(&f);
	fixture_init(&f);
	f.config.tables = 1;
	assert_int_equal(store_lmdb_open(dir, MAP_BYTES, &f.config.backend, &err), 0);
	assert_null(store_create(&f.config, &err));
	assert_non_null(strstr(err.text, dir));
	assert_non_null(strstr(err.text, "record 0x00001234 of table 1"));
	assert_int_equal(f.blocks, 0);
}

/* --- kill -9 --- */

#define ROUNDS 120
#define RIDS   500

/* member a of each record, 0: no such record */
struct model {
	uint32_t a[RIDS];
};

static uint32_t
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Batch n is the same each time: a Set of one record, or a Config that adds, edits and deletes. */
static void
batch(uint32_t n, void (*change)(void *to, uint32_t rid, uint32_t a), void *to)
{
	uint64_t seed = n * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i, rid, ops = next_random(&seed) % 2 ? 1 : 2 + next_random(&seed) % 60;

	for (i = 0; i < ops; i++) {
		rid = next_random(&seed) % RIDS;
		change(to, rid, next_random(&seed) % 3 == 0 ? 0 : n * 64 + i);
	}
}

static void
change_store(void *to, uint32_t rid, uint32_t a)
{
	struct row row = { a, rid + 1, { 0 } };
	int rc = a != 0 ? store_put(to, 0, rid, &row, sizeof(row)) : store_del(to, 0, rid);

	if (rc != 0 && rc != -ENOENT)
		_exit(2);
}

static void
change_model(void *to, uint32_t rid, uint32_t a)
{
	struct model *m = to;

	m->a[rid] = a;
}

/* Commit batches from number n on, and report each number after its commit. */
static void
writer(int report, uint32_t n)
{
	struct store_txn *t;
	struct fixture f;

	open_durable(&f);
	for (;; n++) {
		t = store_begin(f.s);
		batch(n, change_store, t);
		if (store_commit(t, NULL) != 0 || write(report, &n, sizeof(n)) != sizeof(n))
			_exit(3);
	}
}

/* @param has_begun  kill it after its first commit, and not while it opens the store */
static uint32_t
write_until_killed(uint32_t acknowledged, bool has_begun)
{
	int fds[2], status;
	uint32_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		writer(fds[1], acknowledged + 1);
	}
	close(fds[1]);
	if (has_begun) {
		assert_int_equal(read(fds[0], &n, sizeof(n)), sizeof(n));
		acknowledged = n;
	}
	usleep(500 + (unsigned int)rand() % 40000);
	kill(pid, SIGKILL);
	while (read(fds[0], &n, sizeof(n)) == sizeof(n))
		acknowledged = n;
	close(fds[0]);
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	return acknowledged;
}

static bool
holds(const struct fixture *f, const struct model *m)
{
	const struct store_version *v = store_current(store_reader(f->s, 0));
	const struct store_record *r;
	uint32_t rid, n = 0;

	for (rid = 0; rid < RIDS; rid++) {
		r = store_get(v, 0, rid);
		if ((r != NULL ? row_of(r).a : 0) != m->a[rid])
			return false;
		n += r != NULL;
	}
	return n == store_count(v, 0);
}

/*
 * After the kill every acknowledged batch is there. The batch that was under way is there
 * completely or not at all.
 */
static void
test_kill_9_loses_nothing_acknowledged(void **state)
{
	uint32_t acknowledged = 0, applied = 0, rounds, unseen = 0;
	struct model m = { { 0 } };
	struct fixture f;

	(void)state;
	srand(1);
	for (rounds = 0; rounds < ROUNDS; rounds++) {
		acknowledged = write_until_killed(acknowledged, rounds % 4 != 0);
		while (applied < acknowledged)
			batch(++applied, change_model, &m);
		open_durable(&f);
		if (!holds(&f, &m)) {
			batch(++applied, change_model, &m);
			assert_true(holds(&f, &m));
			acknowledged = applied;
			unseen++;
		}
		fixture_close(&f);
	}
	assert_true(unseen < ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, lmdb_setup, lmdb_teardown)
		T(test_committed_records_are_there_after_a_restart),
		T(test_a_second_process_is_refused_by_name),
		T(test_a_full_store_refuses_and_goes_on),
		T(test_foreign_files_are_refused),
		T(test_error_names_a_directory_that_cannot_be_made),
		T(test_a_file_cut_short_is_refused_wherever_it_ends),
		T(test_garbage_in_pages_is_survived),
		T(test_another_programs_database_is_refused),
		T(test_a_record_of_an_unknown_table_is_named),
		T(test_kill_9_loses_nothing_acknowledged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
