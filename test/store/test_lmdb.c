/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Durability: what was committed is there again, after a clean end and after kill -9 at any moment.
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

#define MAP_BYTES (64u << 20)

static char dir[64];

static int
setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/polca-store-XXXXXX");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
teardown(void **state)
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
test_what_was_committed_is_there_again(void **state)
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
	/* what frees room still works */
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
test_a_place_that_cannot_be_made_is_named(void **state)
{
	struct store_backend b;
	struct error err = { "" };

	(void)state;
	assert_int_equal(store_lmdb_open("/nonexistent/polca", MAP_BYTES, &b, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/polca"));
}

/* --- kill -9 --- */

#define BATCH 16
#define GROUPS 64

/*
 * Batch number n is a change of many records at once: all of group n % GROUPS get a = n. After
 * each commit the writer says so.
 */
static void
writer(int report, uint32_t n)
{
	struct store_txn *t;
	struct fixture f;
	uint32_t i;

	open_durable(&f);
	for (;; n++) {
		t = store_begin(f.s);
		for (i = 0; i < BATCH; i++) {
			struct row row = { n, i + 1, { 0 } };

			if (store_put(t, 0, n % GROUPS * BATCH + i, &row, sizeof(row)) != 0)
				_exit(2);
		}
		if (store_commit(t, NULL) != 0 || write(report, &n, sizeof(n)) != sizeof(n))
			_exit(3);
	}
}

/* Every acknowledged batch is there, and whole; the one under way is whole or absent. */
static void
check_batches(struct fixture *f, uint32_t acknowledged)
{
	const struct store_version *v = store_current(store_reader(f->s, 0));
	const struct store_record *r;
	uint32_t g, i, a, expect;

	for (g = 0; g < GROUPS; g++) {
		r = store_get(v, 0, g * BATCH);
		a = r != NULL ? row_of(r).a : 0;
		for (i = 1; i < BATCH; i++) {
			r = store_get(v, 0, g * BATCH + i);
			assert_int_equal(r != NULL ? row_of(r).a : 0, a);
		}
		expect = acknowledged < g ? 0 : acknowledged - (acknowledged - g) % GROUPS;
		if (g == (acknowledged + 1) % GROUPS && a == acknowledged + 1)
			continue;
		assert_int_equal(a, expect);
	}
}

static void
test_kill_9_loses_nothing_acknowledged(void **state)
{
	uint32_t acknowledged = 0, n, rounds;
	struct fixture f;
	int fds[2], status;
	pid_t pid;

	(void)state;
	srand(1);
	for (rounds = 0; rounds < 60; rounds++) {
		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (pid == 0) {
			close(fds[0]);
			writer(fds[1], acknowledged + 1);
		}
		close(fds[1]);
		usleep(1000 + rand() % 60000);
		kill(pid, SIGKILL);
		while (read(fds[0], &n, sizeof(n)) == sizeof(n))
			acknowledged = n;
		close(fds[0]);
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		open_durable(&f);
		check_batches(&f, acknowledged);
		/* the batch under way may have been committed unseen: it counts from here on */
		n = acknowledged + 1;
		if (store_get(store_current(store_reader(f.s, 0)), 0, n % GROUPS * BATCH) != NULL &&
				row_of(store_get(store_current(store_reader(f.s, 0)), 0,
					n % GROUPS * BATCH)).a == n)
			acknowledged = n;
		fixture_close(&f);
	}
	assert_true(acknowledged > rounds);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_what_was_committed_is_there_again),
		T(test_a_second_process_is_refused_by_name),
		T(test_a_full_store_refuses_and_goes_on),
		T(test_foreign_files_are_refused),
		T(test_a_place_that_cannot_be_made_is_named),
		T(test_kill_9_loses_nothing_acknowledged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
