/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Appliances of a fleet against a scripted etcd: what a real one does only at the wrong moment. The
 * test's thread is the store's writer of all appliances.
 */

#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_log.h>

#include "fake_etcd.h"
#include "store/etcd_http.h"
#include "store/fleet_private.h"

#define WAIT_S     20
#define APPLIANCES 3

struct appliance {
	struct fixture store;
	struct fleet *fleet;
	char dir[64];
	bool open;
	bool busy; /* its store's writer does not come to take anything */
};

/* What a test has: etcd, appliances that share it, and the log. */
struct site {
	struct fake_etcd *etcd;
	struct fleet_config config;
	uint64_t map_bytes; /* of a copy */
	bool one_name; /* all appliances have the same */
	struct appliance at[APPLIANCES];
	FILE *log;
	char *text;
	size_t text_len;
};

static void
no_wake(void *arg)
{
	(void)arg;
}

static int
site_setup(void **state)
{
	struct site *s = calloc(1, sizeof(*s));
	unsigned int i;

	s->etcd = fake_etcd_start();
	s->config.num_endpoints = 1;
	snprintf(s->config.endpoint[0].url, FLEET_TEXT_MAX, "%s", fake_etcd_url(s->etcd));
	strcpy(s->config.prefix, "/p");
	s->config.lease_s = 2;
	s->config.max_txn_ops = 128;
	s->map_bytes = 1 << 22;
	for (i = 0; i < APPLIANCES; i++) {
		strcpy(s->at[i].dir, "/tmp/polca-fleet-XXXXXX");
		assert_non_null(mkdtemp(s->at[i].dir));
	}
	s->log = open_memstream(&s->text, &s->text_len);
	rte_openlog_stream(s->log);
	*state = s;
	return 0;
}

static void
appliance_stop(struct appliance *a)
{
	if (!a->open)
		return;
	fleet_stop(a->fleet);
	fixture_close(&a->store);
	a->open = false;
}

/* Open without a start. @return 0 or the error */
static int
appliance_open(struct site *s, unsigned int i, struct error *err)
{
	struct appliance *a = &s->at[i];
	int rc;

	snprintf(s->config.name, sizeof(s->config.name), "appliance%u", s->one_name ? 0 : i);
	fixture_init(&a->store);
	rc = fleet_open(&s->config, a->dir, s->map_bytes, &a->fleet, &a->store.config.backend, err);
	if (rc != 0)
		return rc;
	fixture_open(&a->store);
	a->open = true;
	return 0;
}

static struct appliance *
appliance_start(struct site *s, unsigned int i)
{
	struct error err = { "" };

	if (appliance_open(s, i, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(fleet_start(s->at[i].fleet, no_wake, NULL, &err), 0);
	return &s->at[i];
}

static int
site_teardown(void **state)
{
	static const char *const files[] = { "data.mdb", "lock.mdb", "polca.lock" };
	struct site *s = *state;
	char path[128];
	unsigned int i, k;

	for (i = 0; i < APPLIANCES; i++) {
		appliance_stop(&s->at[i]);
		for (k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
			snprintf(path, sizeof(path), "%s/%s", s->at[i].dir, files[k]);
			unlink(path);
		}
		rmdir(s->at[i].dir);
	}
	fake_etcd_stop(s->etcd);
	rte_openlog_stream(NULL);
	fclose(s->log);
	free(s->text);
	free(s);
	return 0;
}

/* The writers' work, and a pause. */
static void
run_writers(struct site *s)
{
	unsigned int i;

	for (i = 0; i < APPLIANCES; i++)
		while (s->at[i].open && !s->at[i].busy && store_follow(s->at[i].store.s, NULL) > 0)
			;
	usleep(1000);
}

#define until(s, condition)                                                                        \
	do {                                                                                       \
		time_t end_ = time(NULL) + WAIT_S;                                                 \
		while (!(condition)) {                                                             \
			if (time(NULL) > end_)                                                     \
				fail_msg("never: %s; log:\n%s", #condition, log_of(s));            \
			run_writers(s);                                                            \
		}                                                                                  \
	} while (0)

static const char *
log_of(struct site *s)
{
	fflush(s->log);
	return s->text;
}

static struct fleet_status
fleet_status_of(struct appliance *a)
{
	struct fleet_status status;

	fleet_status(a->fleet, &status);
	return status;
}

/* Commit a record of table 1, which has no index. */
static int
commit_record(struct appliance *a, uint32_t rid, const char *text, struct error *err)
{
	struct store_txn *t = store_begin(a->store.s);

	assert_non_null(t);
	assert_int_equal(store_put(t, 1, rid, text, (uint16_t)strlen(text)), 0);
	return store_commit(t, err);
}

static bool
has_record(struct appliance *a, uint32_t rid, const char *text)
{
	const struct store_record *r =
		store_get(store_current(store_reader(a->store.s, 0)), 1, rid);

	return r != NULL && r->len == strlen(text) && memcmp(r->bytes, text, r->len) == 0;
}

static uint64_t
records_of(struct appliance *a)
{
	return store_count(store_current(store_reader(a->store.s, 0)), 1);
}

/* The newest change is in the store, and a watch runs. */
static bool
follows(struct appliance *a)
{
	struct fleet_status status = fleet_status_of(a);

	return status.connected && status.watching && status.revision == status.latest;
}

static struct appliance *
leader_start(struct site *s, unsigned int i)
{
	struct appliance *a = appliance_start(s, i);

	until(s, fleet_leads(a->fleet) && follows(a));
	return a;
}

/* --- histories --- */

static void
test_watch_goes_on_behind_the_copy_after_an_outage(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet));
	fake_etcd_write(s->etcd, "/p/r/0100000002", "two");
	fake_etcd_down(s->etcd, false);
	until(s, fleet_leads(a->fleet) && follows(a));
	assert_int_equal(fleet_status_of(a).loads, 1); /* the first one */
	assert_true(has_record(a, 1, "one"));
}

/* The backup has fewer revisions, and then as many again with other changes. */
static void
test_etcd_restored_to_a_lower_revision(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t backup;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a) && follows(b) && has_record(b, 1, "one"));
	backup = fake_etcd_revision(s->etcd);
	until(s, commit_record(a, 2, "two", NULL) == 0);
	until(s, follows(a) && has_record(b, 2, "two"));
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet) && !fleet_connected(b->fleet));
	fake_etcd_restore(s->etcd, backup);
	while (fake_etcd_revision(s->etcd) < backup + 40)
		fake_etcd_write(s->etcd, "/p/x", "other");
	fake_etcd_down(s->etcd, false);
	until(s, follows(a) && follows(b) && records_of(a) == 1 && records_of(b) == 1);
	assert_true(has_record(a, 1, "one") && has_record(b, 1, "one"));
	assert_int_equal(fleet_status_of(b).loads, 2);
	until(s, fleet_leads(a->fleet) || fleet_leads(b->fleet));
	if (fleet_leads(b->fleet))
		a = b;
	until(s, commit_record(a, 3, "three", NULL) == 0);
	until(s, has_record(&s->at[0], 3, "three") && has_record(&s->at[1], 3, "three"));
}

/* The same revision was written by another history's change: only its random number tells. */
static void
test_same_revision_of_another_history(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	uint64_t changed;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	changed = fleet_status_of(a).revision;
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet));
	fake_etcd_restore(s->etcd, changed - 1);
	assert_int_equal(fake_etcd_write(s->etcd, "/p/c/change", "00000000000000aa"), changed);
	while (fake_etcd_revision(s->etcd) < changed + 40)
		fake_etcd_write(s->etcd, "/p/r/0100000001", "uno");
	fake_etcd_down(s->etcd, false);
	until(s, has_record(a, 1, "uno"));
	assert_int_equal(fleet_status_of(a).loads, 2);
	assert_non_null(strstr(log_of(s), "etcd's history is not that of our copy"));
}

static void
test_etcd_replaced_by_another_cluster(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet));
	fake_etcd_replace(s->etcd);
	fake_etcd_write(s->etcd, "/p/r/0100000007", "seven");
	fake_etcd_write(s->etcd, "/p/c/change", "00000000000000aa");
	fake_etcd_down(s->etcd, false);
	until(s, fleet_leads(a->fleet) && follows(a) && has_record(a, 7, "seven"));
	assert_int_equal(records_of(a), 1);
	until(s, commit_record(a, 8, "eight", NULL) == 0);
	assert_non_null(strstr(log_of(s), "our copy is of another cluster"));
}

/* The position is that of the records on disk: whatever came after it is read once more. */
static void
test_no_record_is_lost_behind_the_position(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	unsigned int i;

	until(s, follows(b));
	for (i = 1; i <= 20; i++) {
		until(s, commit_record(a, i, "text", NULL) == 0);
		if (i % 5 != 0)
			continue;
		appliance_stop(b); /* wherever its watch is */
		until(s, commit_record(a, 100 + i, "text", NULL) == 0);
		b = appliance_start(s, 1);
	}
	until(s, follows(b) && records_of(b) == 24);
	assert_int_equal(fleet_status_of(b).loads, 0);
}

/* The disk is full: the copy stays where it is, and what came since is read at the next start. */
static void
test_copy_that_is_full_loses_nothing(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b;
	char text[2001];
	uint32_t rid;

	memset(text, 'x', 2000);
	text[2000] = '\0';
	s->map_bytes = 1 << 17;
	b = appliance_start(s, 1);
	until(s, follows(b));
	for (rid = 1; fleet_status_of(b).copy_ok; rid++) {
		until(s, commit_record(a, rid, text, NULL) == 0);
		until(s, records_of(b) == rid);
	}
	until(s, commit_record(a, 100000, "last", NULL) == 0);
	until(s, has_record(b, 100000, "last"));
	appliance_stop(b);
	s->map_bytes = 1 << 22;
	b = appliance_start(s, 1);
	assert_true(records_of(b) < records_of(a));
	until(s, follows(b) && records_of(b) == records_of(a));
	assert_int_equal(fleet_status_of(b).loads, 0);
}

static void
test_compacted_history_is_read_as_a_whole(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	struct store_txn *t;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(b) && has_record(b, 1, "one"));
	appliance_stop(b);
	t = store_begin(a->store.s);
	assert_int_equal(store_del(t, 1, 1), 0);
	assert_int_equal(store_commit(t, NULL), 0);
	until(s, commit_record(a, 2, "two", NULL) == 0);
	fake_etcd_compact(s->etcd, fake_etcd_revision(s->etcd));
	b = appliance_start(s, 1);
	until(s, follows(b) && has_record(b, 2, "two") && records_of(b) == 1);
	assert_int_equal(fleet_status_of(b).loads, 1);
}

/* A leader that reads the whole database does not see in its watch what came meanwhile. */
static void
test_request_of_the_time_of_a_load_is_executed(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	struct fleet_request *r;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	fake_etcd_silence(s->etcd, true);
	fake_etcd_next(s->etcd, "/v3/kv/range", NULL, FAKE_LOSE_REQUEST, 1);
	until(s, !fleet_connected(a->fleet));
	fake_etcd_write(s->etcd, "/p/q/late", "request");
	fake_etcd_compact(s->etcd, fake_etcd_revision(s->etcd));
	until(s, fleet_status_of(a).loads == 2); /* the first one was at its start */
	fake_etcd_silence(s->etcd, false);
	assert_true(fleet_leads(a->fleet));
	until(s, fleet_take(a->fleet, &r, 1) == 1);
	assert_string_equal(r->id, "late");
	fleet_settle(a->fleet, &r, 1, true);
}

/* --- changes of more records than one transaction of etcd's takes --- */

#define LARGE 1000

/* Put records 1 to `num`, all with this text, and remove record 5000, if it is there. */
static int
commit_large(struct appliance *a, uint32_t num, const char *text, struct error *err)
{
	struct store_txn *t = store_begin(a->store.s);
	uint32_t rid;

	assert_non_null(t);
	for (rid = 1; rid <= num; rid++)
		assert_int_equal(store_put(t, 1, rid, text, (uint16_t)strlen(text)), 0);
	store_del(t, 1, 5000);
	return store_commit(t, err);
}

/* All or nothing of it: a reader who sees the first record sees the last, and not what is gone. */
static bool
sees_whole_changes(struct appliance *a, const char *text)
{
	bool first = has_record(a, 1, text);

	return has_record(a, LARGE, text) == first && has_record(a, LARGE / 2, text) == first &&
		(!first || !has_record(a, 5000, "gone"));
}

/* One transaction of it, and the last one, are executed and not answered at first. */
static void
test_large_change_is_seen_as_a_whole(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	unsigned int before = fake_etcd_count(s->etcd, "/v3/kv/txn");

	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000190", FAKE_LOSE_ANSWER, 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/01000003e8", FAKE_LOSE_ANSWER, 1);

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, follows(b) && has_record(b, 5000, "gone"));
	assert_int_equal(commit_large(a, LARGE, "large", NULL), 0);
	assert_true(fake_etcd_count(s->etcd, "/v3/kv/txn") > before + LARGE / 128);
	do {
		assert_true(sees_whole_changes(a, "large"));
		assert_true(sees_whole_changes(b, "large"));
		until(s, true);
		run_writers(s);
	} while (!has_record(b, 1, "large"));
	assert_int_equal(records_of(b), LARGE);
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	/* the same from the copies on disk, and from etcd as a whole */
	until(s, follows(b));
	appliance_stop(b);
	b = appliance_start(s, 1);
	assert_int_equal(records_of(b), LARGE);
	until(s, records_of(appliance_start(s, 2)) == 0);
	until(s, records_of(&s->at[2]) == LARGE);
	/* and changes go on */
	until(s, commit_record(a, 5001, "next", NULL) == 0);
	until(s, has_record(b, 5001, "next") && has_record(&s->at[2], 5001, "next"));
}

/* True if a request has come to the leader; it goes back. */
static bool
fleet_take_any(struct appliance *a)
{
	struct fleet_request *r;

	if (fleet_take(a->fleet, &r, 1) == 0)
		return false;
	fleet_settle(a->fleet, &r, 1, true);
	return true;
}

/* Parts of a change, as a leader leaves them that dies: one removal, a new record, another text. */
static void
leave_parts(struct site *s)
{
	fake_etcd_write(s->etcd, "/p/c/part", "0123456789abcdef");
	fake_etcd_write(s->etcd, "/p/r/0100001388", NULL); /* 5000 */
	fake_etcd_write(s->etcd, "/p/r/0100000007", "part");
	fake_etcd_write(s->etcd, "/p/c/part", "0123456789abcdef");
	fake_etcd_write(s->etcd, "/p/r/0100000009", "part");
}

static bool
has_what_was_before(struct appliance *a)
{
	return has_record(a, 7, "seven") && has_record(a, 5000, "gone") &&
		!has_record(a, 9, "part");
}

static void
test_next_leader_undoes_the_parts_of_a_large_change(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1), *c;
	uint64_t lease;

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	lease = fake_etcd_lease_of(s->etcd, "/p/c/leader");
	fake_etcd_next(s->etcd, "/v3/lease/revoke", NULL, FAKE_LOSE_REQUEST, 10);
	appliance_stop(a);
	leave_parts(s);
	/* an appliance without a copy that comes meanwhile reads the state before */
	c = appliance_start(s, 2);
	until(s, fleet_status_of(c).loads == 1 && records_of(c) == 2);
	assert_true(has_what_was_before(c));
	fake_etcd_end_lease(s->etcd, lease);
	until(s, fleet_leads(b->fleet) || fleet_leads(c->fleet));
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/r/"), 2);
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100000007"), "seven");
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	a = fleet_leads(b->fleet) ? b : c;
	until(s, commit_record(a, 8, "eight", NULL) == 0);
	until(s, records_of(b) == 3 && records_of(c) == 3);
	assert_true(has_what_was_before(b) && has_what_was_before(c));
	assert_non_null(strstr(log_of(s), "undoes a large change"));
}

/* The leader lives: it undoes the parts itself, and then the change can be made. */
static void
test_leader_undoes_a_large_change_that_stopped(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, follows(b) && records_of(b) == 1);
	/* etcd's quota ends before the fourth part, which has record 400 */
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000190", FAKE_NO_SPACE, 1);
	assert_int_equal(commit_large(a, LARGE, "large", NULL), -ENOSPC);
	until(s, fake_etcd_read(s->etcd, "/p/c/part") == NULL);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/r/"), 1);
	assert_true(has_record(a, 5000, "gone") && has_record(b, 5000, "gone"));
	/* whoever leads then */
	until(s,
		commit_large(a, LARGE, "again", NULL) == 0 ||
			commit_large(b, LARGE, "again", NULL) == 0);
	until(s, has_record(a, 1, "again") && has_record(b, 1, "again"));
	assert_int_equal(records_of(b), LARGE);
}

/* A copy that is full does not have what was before the parts: such an appliance does not lead. */
static void
test_appliance_that_cannot_undo_does_not_lead(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1), *c;
	uint64_t lease;

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "old", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	b->fleet->copy_stopped = true; /* as a full disk does; the thread only reads it then */
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, has_record(b, 7, "seven"));
	lease = fake_etcd_lease_of(s->etcd, "/p/c/leader");
	fake_etcd_next(s->etcd, "/v3/lease/revoke", NULL, FAKE_LOSE_REQUEST, 10);
	appliance_stop(a);
	leave_parts(s);
	fake_etcd_end_lease(s->etcd, lease);
	until(s, fleet_status_of(b).leader[0] == '\0');
	assert_false(fleet_leads(b->fleet));
	c = appliance_start(s, 2);
	until(s, fleet_leads(c->fleet));
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100000007"), "seven");
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100001388"), "gone");
	assert_true(has_what_was_before(b));
}

/* What people write beside the fleet is no change, whatever it is, and ends no watch. */
static void
test_foreign_keys_are_no_change(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	uint64_t starts;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	starts = fleet_status_of(a).watch_starts;
	fake_etcd_write(s->etcd, "/p/r/nonsense", "x");
	fake_etcd_write(s->etcd, "/p/r/0100000002", "by hand");
	until(s, commit_record(a, 3, "three", NULL) == 0);
	until(s, follows(a));
	assert_int_equal(fleet_status_of(a).watch_starts, starts);
	assert_int_equal(records_of(a), 2);
}

/* A follower that stops between parts gets all of them when it is back. */
static void
test_restart_between_parts_loses_none(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	leave_parts(s);
	fake_etcd_write(s->etcd, "/p/q/behind", "the parts"); /* the watch has brought them */
	until(s, fleet_take_any(a));
	run_writers(s);
	assert_true(has_what_was_before(a) && has_what_was_before(b));
	appliance_stop(b);
	b = appliance_start(s, 1);
	until(s, fleet_status_of(b).watching);
	assert_true(has_what_was_before(b));
	fake_etcd_write(s->etcd, "/p/c/change", "0123456789abcdef");
	until(s, has_record(b, 9, "part"));
	assert_true(has_record(b, 7, "part"));
	assert_int_equal(records_of(b), 2);
	until(s, has_record(a, 9, "part"));
	assert_int_equal(fleet_status_of(b).loads, 0);
}

/* --- an etcd that was emptied, and other mistakes --- */

static void
test_empty_etcd_does_not_replace_a_copy(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	struct error err = { "" };

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	assert_int_equal(fleet_accept_empty(a->fleet, &err), -ENOENT);
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet));
	fake_etcd_replace(s->etcd);
	fake_etcd_down(s->etcd, false);
	until(s, strstr(log_of(s), "polca-ctl fleet accept") != NULL);
	assert_true(has_record(a, 1, "one"));
	assert_false(fleet_leads(a->fleet));
	assert_int_equal(commit_record(a, 2, "two", &err), -EAGAIN);
	/* nor after a restart */
	appliance_stop(a);
	a = appliance_start(s, 0);
	until(s, fleet_accept_empty(a->fleet, NULL) == 0);
	until(s, fleet_leads(a->fleet) && follows(a));
	assert_int_equal(records_of(a), 0);
	until(s, commit_record(a, 2, "two", NULL) == 0);
}

/* All records were removed by changes: that is no mistake. */
static void
test_database_that_became_empty_is_taken(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	struct store_txn *t;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, has_record(b, 1, "one"));
	appliance_stop(b);
	t = store_begin(a->store.s);
	assert_int_equal(store_del(t, 1, 1), 0);
	assert_int_equal(store_commit(t, NULL), 0);
	fake_etcd_compact(s->etcd, fake_etcd_revision(s->etcd));
	b = appliance_start(s, 1);
	until(s, follows(b) && records_of(b) == 0);
}

static void
test_second_appliance_of_a_name_is_kept_out(void **state)
{
	struct site *s = *state;
	struct appliance *a, *b;
	unsigned int looks;

	s->one_name = true;
	a = leader_start(s, 0);
	b = appliance_start(s, 1);
	until(s, strstr(log_of(s), "another appliance has the name \"appliance0\"") != NULL);
	looks = fake_etcd_count(s->etcd, "/v3/kv/range");
	until(s, fake_etcd_count(s->etcd, "/v3/kv/range") > looks + 12);
	assert_true(fleet_leads(a->fleet));
	assert_false(fleet_leads(b->fleet));
	assert_int_equal(fleet_status_of(a).leader_changes, 1);
	/* the same appliance after it was killed: its key is there still */
	appliance_stop(b);
	a->fleet->lease = 0; /* so that it ends as if it were killed */
	appliance_stop(a);
	assert_non_null(fake_etcd_read(s->etcd, "/p/m/appliance0"));
	a = leader_start(s, 0);
	appliance_stop(a);
	b = leader_start(s, 1); /* the name is free again */
}

static void
test_database_of_a_later_format_is_left_alone(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	fake_etcd_write(s->etcd, "/p/c/format", "2");
	a = appliance_start(s, 0);
	until(s, strstr(log_of(s), "has the format \"2\", and this program knows \"1\"") != NULL);
	assert_false(fleet_leads(a->fleet));
	assert_null(fake_etcd_read(s->etcd, "/p/c/leader"));
	fake_etcd_write(s->etcd, "/p/c/format", NULL);
	until(s, fleet_leads(a->fleet));
	assert_string_equal(fake_etcd_read(s->etcd, "/p/c/format"), "1");
}

/* --- watches --- */

/* The writer is busy for long: etcd keeps what has not been read, and nothing is lost. */
static void
test_queue_to_a_busy_writer_is_bounded(void **state)
{
	struct site *s = *state;
	struct appliance *a = appliance_start(s, 0);
	unsigned int i, looks;
	uint64_t starts, last;
	char text[24];

	until(s, follows(a));
	starts = fleet_status_of(a).watch_starts;
	a->busy = true;
	for (i = 1; i <= 3000; i++) {
		snprintf(text, sizeof(text), "%016x", i);
		fake_etcd_write(s->etcd, "/p/c/change", text);
	}
	last = fake_etcd_write(s->etcd, "/p/c/change", "00000000000000aa");
	until(s, fleet_queue_is_full(a->fleet));
	looks = fake_etcd_count(s->etcd, "/v3/maintenance/status");
	until(s, fake_etcd_count(s->etcd, "/v3/maintenance/status") > looks + 4);
	pthread_mutex_lock(&a->fleet->lock);
	assert_in_range(a->fleet->queued - a->fleet->unqueued, FLEET_QUEUE_BATCHES,
		FLEET_QUEUE_BATCHES + 200);
	pthread_mutex_unlock(&a->fleet->lock);
	a->busy = false;
	until(s, follows(a) && fleet_status_of(a).revision == last);
	assert_int_equal(fleet_status_of(a).watch_starts, starts);
	assert_int_equal(fleet_status_of(a).loads, 1);
}

/* Changes go on while the watch brings nothing: it is started again, and brings all of them. */
static void
test_silent_watch_is_started_again_under_steady_writes(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t starts;
	uint32_t rid = 1;

	until(s, follows(a) && follows(b));
	starts = fleet_status_of(b).watch_starts;
	fake_etcd_silence(s->etcd, true);
	until(s, (commit_record(a, rid++, "text", NULL), fleet_status_of(b).watch_starts > starts));
	fake_etcd_silence(s->etcd, false);
	until(s, commit_record(a, 100000, "last", NULL) == 0);
	until(s, has_record(b, 100000, "last") && records_of(a) == records_of(b));
	assert_int_equal(fleet_status_of(b).loads, 1);
	assert_non_null(strstr(log_of(s), "it is silent although there are changes"));
}

/* A watch that keeps up is not started again, however many changes come between two looks. */
static void
test_watch_that_keeps_up_is_left_alone(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t starts;
	unsigned int looks = fake_etcd_count(s->etcd, "/v3/maintenance/status");
	uint32_t rid = 1;

	until(s, follows(b));
	starts = fleet_status_of(b).watch_starts;
	until(s,
		(commit_record(a, rid++, "text", NULL),
			fake_etcd_count(s->etcd, "/v3/maintenance/status") > looks + 12));
	assert_int_equal(fleet_status_of(b).watch_starts, starts);
}

/* --- answers --- */

static int
write_answer(struct appliance *a, const char *id, struct error *err)
{
	const struct fleet_message m = { .id = id, .bytes = "yes", .len = 3 };
	int rc;

	fleet_answers(a->fleet, &m, 1);
	rc = fleet_write_answers(a->fleet, err);
	fleet_answers(a->fleet, NULL, 0);
	return rc;
}

/* The lease of answers has ended in etcd: one answer is refused, and the next has a new lease. */
static void
test_lease_of_answers_is_renewed(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	uint64_t lease;

	assert_int_equal(write_answer(a, "one", NULL), 0);
	lease = fake_etcd_lease_of(s->etcd, "/p/a/one");
	assert_int_not_equal(lease, 0);
	fake_etcd_end_lease(s->etcd, lease);
	assert_null(fake_etcd_read(s->etcd, "/p/a/one"));
	assert_int_not_equal(write_answer(a, "two", NULL), 0);
	until(s, write_answer(a, "two", NULL) == 0);
	assert_int_not_equal(fake_etcd_lease_of(s->etcd, "/p/a/two"), lease);
	assert_true(fleet_leads(a->fleet));
}

/* --- requests --- */

static struct etcd_client *
site_client(struct site *s)
{
	struct error err = { "" };
	struct etcd_client *c = etcd_client_create(&s->config, &err);

	if (c == NULL)
		fail_msg("%s", err.text);
	return c;
}

/* The answer takes longer than an attempt's share of the time, and its bytes go on coming. */
static void
test_long_answer_is_waited_for(void **state)
{
	struct site *s = *state;
	struct etcd_client *c;
	struct etcd_header h;
	struct etcd_kvs kvs;
	unsigned int i;
	char key[32];

	for (i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "/p/r/01%08x", i);
		fake_etcd_write(s->etcd, key, "value");
	}
	for (i = 1; i < 3; i++)
		s->config.endpoint[i] = s->config.endpoint[0];
	s->config.num_endpoints = 3;
	c = site_client(s);
	fake_etcd_next(s->etcd, "/v3/kv/range", NULL, FAKE_TRICKLE, 10);
	assert_int_equal(etcd_range(c, "/p/r/", "/p/r0", 0, 0, 9000, &h, &kvs, NULL, NULL), 0);
	assert_int_equal(kvs.n, 200);
	assert_int_equal(fake_etcd_count(s->etcd, "/v3/kv/range"), 1);
	etcd_kvs_free(&kvs);
	etcd_client_destroy(c);
}

/* A silent endpoint is left for the next one in time. */
static void
test_silent_endpoint_is_left(void **state)
{
	struct site *s = *state;
	struct etcd_client *c;
	struct etcd_header h;
	struct etcd_kvs kvs;

	s->config.endpoint[1] = s->config.endpoint[0];
	s->config.num_endpoints = 2;
	c = site_client(s);
	fake_etcd_next(s->etcd, "/v3/kv/range", NULL, FAKE_LOSE_REQUEST, 1);
	assert_int_equal(etcd_range(c, "/p/", "/p0", 0, 0, 2000, &h, &kvs, NULL, NULL), 0);
	assert_int_equal(etcd_client_endpoint(c), 1);
	etcd_kvs_free(&kvs);
	fake_etcd_next(s->etcd, "/v3/kv/range", NULL, FAKE_LOSE_REQUEST, 10);
	assert_int_equal(etcd_range(c, "/p/", "/p0", 0, 0, 500, &h, &kvs, NULL, NULL), -ETIMEDOUT);
	etcd_client_destroy(c);
}

/* Without fleet.ca_file, libcurl's own certificates are used, not none. */
static void
test_system_certificates_are_the_default(void **state)
{
	struct site *s = *state;
	struct etcd_client *c;
	char *said = NULL;
	size_t len;
	FILE *f = open_memstream(&said, &len);

	snprintf(s->config.endpoint[0].url, FLEET_TEXT_MAX, "https%s", fake_etcd_url(s->etcd) + 4);
	c = site_client(s);
	fake_etcd_down(s->etcd, true); /* it accepts, and closes */
	etcd_prepare(c, c->easy, 0, "/");
	curl_easy_setopt(c->easy, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(c->easy, CURLOPT_STDERR, f);
	assert_int_not_equal(curl_easy_perform(c->easy), CURLE_OK);
	fclose(f);
	assert_non_null(strstr(said, "CAfile: /"));
	curl_easy_setopt(c->easy, CURLOPT_VERBOSE, 0L);
	etcd_client_destroy(c);
	free(said);
}

static void
write_password(struct site *s, const char *text, mode_t mode)
{
	FILE *f = fopen(s->config.password_file, "w");

	fputs(text, f);
	fclose(f);
	chmod(s->config.password_file, mode);
}

static void
test_password_files_that_cannot_be_used(void **state)
{
	static const struct {
		const char *text;
		mode_t mode;
		const char *why;
	} rows[] = {
		{ "secret\n", 0644, "everyone may use it; chmod 0600" },
		{ "", 0600, "its first line is empty" },
		{ "\nsecret", 0600, "its first line is empty" },
		{ "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxx",
			0600, "its first line is too long, allowed: 254" },
	};
	struct site *s = *state;
	struct etcd_client *c;
	struct etcd_header h;
	struct etcd_kvs kvs;
	unsigned int i;

	snprintf(s->config.password_file, FLEET_TEXT_MAX, "%s/password", s->at[0].dir);
	strcpy(s->config.user, "polca");
	c = site_client(s);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { "" };

		write_password(s, rows[i].text, rows[i].mode);
		assert_int_equal(etcd_range(c, "/", NULL, 0, 0, 1000, &h, &kvs, NULL, &err),
			-ENOKEY);
		if (strstr(err.text, rows[i].why) == NULL)
			fail_msg("%s: %s", rows[i].why, err.text);
		assert_null(strstr(err.text, "secret"));
	}
	assert_int_equal(fake_etcd_count(s->etcd, "/v3/auth/authenticate"), 0);
	unlink(s->config.password_file);
	etcd_client_destroy(c);
}

/* What is wrong here is not said to be etcd's fault. */
static void
test_local_faults_are_told_from_an_etcd_that_is_away(void **state)
{
	struct site *s = *state;

	strcpy(s->config.endpoint[0].url, "http://name.invalid:2379");
	appliance_start(s, 0);
	until(s, strstr(log_of(s), "this appliance cannot ask etcd") != NULL);
	assert_null(strstr(log_of(s), "etcd is away"));
	snprintf(s->config.endpoint[0].url, FLEET_TEXT_MAX, "https%s", fake_etcd_url(s->etcd) + 4);
	strcpy(s->config.ca_file, "/nonexistent/ca.pem");
	appliance_start(s, 1);
	until(s, strstr(log_of(s), "/nonexistent/ca.pem") != NULL);
	assert_null(strstr(log_of(s), "etcd is away"));
	s->config.ca_file[0] = '\0';
	strcpy(s->config.endpoint[0].url, "http://127.0.0.1:1");
	appliance_start(s, 2);
	until(s, strstr(log_of(s), "etcd is away") != NULL);
}

/* --- one transaction's outcome --- */

/* The answer was lost, and the next attempt finds the change in etcd. */
static void
test_repeated_change_is_recognized(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	s->config.num_endpoints = 2; /* so that an attempt has half of the time */
	s->config.endpoint[1] = s->config.endpoint[0];
	a = leader_start(s, 0);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000001", FAKE_LOSE_ANSWER, 1);
	assert_int_equal(commit_record(a, 1, "one", NULL), 0);
	until(s, follows(a));
	until(s, commit_record(a, 2, "two", NULL) == 0);
}

/* No attempt was answered, and one was executed: the watch brings it, and the notice in it. */
static void
test_executed_change_without_an_answer_is_followed(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	struct fleet_notice *n;

	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000001", FAKE_LOSE_ANSWER, 100);
	assert_true(fleet_keep_notice(a->fleet, "told", 4));
	assert_int_equal(commit_record(a, 1, "one", NULL), -ETIMEDOUT);
	assert_int_equal(records_of(a), 0);
	until(s, has_record(a, 1, "one"));
	until(s, (n = fleet_take_notice(a->fleet)) != NULL);
	assert_int_equal(n->len, 4);
	assert_memory_equal(n->bytes, "told", 4);
	fleet_notice_told(a->fleet, n);
	until(s, fleet_forget_notices(a->fleet, NULL) > 0);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/e/"), 0);
	until(s, fleet_leads(a->fleet) && follows(a));
	until(s, commit_record(a, 2, "two", NULL) == 0);
}

/* A change that etcd has refused was not executed, and can be made again. */
static void
test_refused_change_is_not_executed_later(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	a->busy = true;
	fake_etcd_write(s->etcd, "/p/c/change", "00000000000000aa");
	assert_int_equal(commit_record(a, 1, "one", NULL), -EAGAIN);
	a->busy = false;
	until(s, commit_record(a, 1, "one", NULL) == 0);
}

int
main(void)
{
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_setup, site_teardown)
	const struct CMUnitTest tests[] = {
		SITE_TEST(test_watch_goes_on_behind_the_copy_after_an_outage),
		SITE_TEST(test_etcd_restored_to_a_lower_revision),
		SITE_TEST(test_same_revision_of_another_history),
		SITE_TEST(test_etcd_replaced_by_another_cluster),
		SITE_TEST(test_no_record_is_lost_behind_the_position),
		SITE_TEST(test_copy_that_is_full_loses_nothing),
		SITE_TEST(test_compacted_history_is_read_as_a_whole),
		SITE_TEST(test_request_of_the_time_of_a_load_is_executed),
		SITE_TEST(test_large_change_is_seen_as_a_whole),
		SITE_TEST(test_next_leader_undoes_the_parts_of_a_large_change),
		SITE_TEST(test_leader_undoes_a_large_change_that_stopped),
		SITE_TEST(test_restart_between_parts_loses_none),
		SITE_TEST(test_appliance_that_cannot_undo_does_not_lead),
		SITE_TEST(test_foreign_keys_are_no_change),
		SITE_TEST(test_silent_watch_is_started_again_under_steady_writes),
		SITE_TEST(test_watch_that_keeps_up_is_left_alone),
		SITE_TEST(test_lease_of_answers_is_renewed),
		SITE_TEST(test_repeated_change_is_recognized),
		SITE_TEST(test_executed_change_without_an_answer_is_followed),
		SITE_TEST(test_refused_change_is_not_executed_later),
		SITE_TEST(test_empty_etcd_does_not_replace_a_copy),
		SITE_TEST(test_database_that_became_empty_is_taken),
		SITE_TEST(test_second_appliance_of_a_name_is_kept_out),
		SITE_TEST(test_database_of_a_later_format_is_left_alone),
		SITE_TEST(test_queue_to_a_busy_writer_is_bounded),
		SITE_TEST(test_long_answer_is_waited_for),
		SITE_TEST(test_silent_endpoint_is_left),
		SITE_TEST(test_system_certificates_are_the_default),
		SITE_TEST(test_password_files_that_cannot_be_used),
		SITE_TEST(test_local_faults_are_told_from_an_etcd_that_is_away),
	};

	return cmocka_run_group_tests_name("store: a fleet and a scripted etcd", tests, NULL, NULL);
}
