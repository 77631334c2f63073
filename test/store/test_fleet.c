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

#define WAIT_S     60 /* longer than a busy machine takes */
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
			if (time(NULL) > end_) {                                                   \
				fputs(log_of(s), stderr); /* too long for a message */             \
				fail_msg("never: %s", #condition);                                 \
			}                                                                          \
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

/* By whoever leads: on a busy machine etcd may be away for longer than a lease. */
static int
commit_by_leader(struct site *s, uint32_t rid, const char *text)
{
	unsigned int i;

	for (i = 0; i < APPLIANCES; i++)
		if (s->at[i].open && fleet_leads(s->at[i].fleet))
			return commit_record(&s->at[i], rid, text, NULL);
	return -EAGAIN;
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

static struct etcd_client *
site_client(struct site *s)
{
	struct error err = { "" };
	struct etcd_client *c = etcd_client_create(&s->config, &err);

	if (c == NULL)
		fail_msg("%s", err.text);
	return c;
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

/* The backup has all our changes, and yet fewer revisions than we have seen. */
static void
test_etcd_restored_below_what_was_seen(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	unsigned int i, looks;
	uint64_t backup;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	backup = fake_etcd_revision(s->etcd);
	for (i = 0; i < 40; i++)
		fake_etcd_write(s->etcd, "/p/x", "other");
	looks = fake_etcd_count(s->etcd, "/v3/kv/range");
	until(s, fake_etcd_count(s->etcd, "/v3/kv/range") > looks + 2);
	assert_int_equal(fleet_status_of(a).loads, 1);
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet));
	fake_etcd_restore(s->etcd, backup);
	fake_etcd_down(s->etcd, false);
	until(s, fleet_leads(a->fleet) && follows(a) && fleet_status_of(a).loads == 2);
	assert_non_null(strstr(log_of(s), "our copy is newer than etcd, which was restored"));
	assert_true(has_record(a, 1, "one"));
	until(s, commit_record(a, 2, "two", NULL) == 0);
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

/* A database of several pages: all of it is there, and each record once. */
static void
test_database_is_read_in_pages(void **state)
{
	enum { PAGE = 100, RECORDS = 2 * PAGE + 50 };
	struct site *s = *state;
	struct appliance *a;
	char key[32], text[16];
	struct error err;
	uint32_t rid;

	for (rid = 1; rid <= RECORDS; rid++) {
		snprintf(key, sizeof(key), "/p/r/01%08x", rid);
		snprintf(text, sizeof(text), "%x", rid);
		fake_etcd_write(s->etcd, key, text);
	}
	fake_etcd_write(s->etcd, "/p/c/change", "00000000000000aa");
	/* records of the first and the last page go before the second and the last are read */
	fake_etcd_before(s->etcd, "/v3/kv/range", "/p/r/0100000064", "/p/r/0100000001");
	fake_etcd_before(s->etcd, "/v3/kv/range", "/p/r/01000000c8", "/p/r/01000000fa");
	assert_int_equal(appliance_open(s, 0, &err), 0);
	a = &s->at[0];
	a->fleet->page_records = PAGE;
	assert_int_equal(fleet_start(a->fleet, no_wake, NULL, &err), 0);
	until(s, follows(a) && records_of(a) > 0);
	/* as of the revision of the first page; the removals are no change of a fleet's */
	assert_int_equal(records_of(a), RECORDS);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/r/"), RECORDS - 2);
	for (rid = 1; rid <= RECORDS; rid++) {
		snprintf(text, sizeof(text), "%x", rid);
		assert_true(has_record(a, rid, text));
	}
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

/*
 * etcd elects a leader in the middle of a large change, and at its end, for longer than one
 * transaction is tried: the change is made, by the same lead.
 */
static void
test_large_change_outlasts_an_election_of_etcd(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	s->config.lease_s = 3600; /* a busy machine does not end it */
	a = leader_start(s, 0);
	/* an attempt takes 50 ms and more, and is repeated for a second */
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000190", FAKE_NO_LEADER, 30);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/01000003e8", FAKE_NO_LEADER, 30);
	assert_int_equal(commit_large(a, LARGE, "large", NULL), 0);
	until(s, follows(a));
	assert_int_equal(records_of(a), LARGE);
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	assert_true(fleet_leads(a->fleet));
	assert_int_equal(fleet_status_of(a).leader_changes, 1);
	assert_null(strstr(log_of(s), "does not lead any more"));
}

/* The first part is executed without an answer, and then another endpoint refuses it. */
static void
test_part_that_may_be_there_is_undone(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	s->config.endpoint[1] = s->config.endpoint[0];
	s->config.num_endpoints = 2;
	a = leader_start(s, 0);
	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, follows(a));
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000001", FAKE_LOSE_ANSWER, 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000001", FAKE_NO_SPACE, 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000190", FAKE_NO_SPACE, 1);
	assert_int_equal(commit_large(a, LARGE, "large", NULL), -ENOSPC);
	until(s, fake_etcd_read(s->etcd, "/p/c/part") == NULL);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/r/"), 1);
	assert_true(has_record(a, 5000, "gone"));
}

/*
 * etcd executes a transaction and says that it has no room. A change, a part and the last
 * transaction of a large one, which a repetition would find done, are done.
 */
static void
test_executed_in_spite_of_no_room(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);

	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100001388", FAKE_DONE_NO_SPACE, 1);
	assert_int_equal(commit_record(a, 5000, "gone", NULL), 0);
	until(s, follows(a) && follows(b) && has_record(b, 5000, "gone"));
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000001", FAKE_DONE_NO_SPACE, 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000190", FAKE_DONE_NO_SPACE, 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/01000003e8", FAKE_DONE_NO_SPACE, 1);
	assert_int_equal(commit_large(a, LARGE, "large", NULL), 0);
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	until(s, has_record(b, 1, "large"));
	assert_true(records_of(a) == LARGE && records_of(b) == LARGE);
	assert_true(fleet_leads(a->fleet));
	until(s, follows(a) && commit_record(a, 5000, "next", NULL) == 0);
	until(s, has_record(b, 5000, "next"));
}

/* Nobody knows whether a change was executed that etcd had no room for: the error says so. */
static void
test_no_room_and_no_word_of_what_was_executed(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	struct error err = { "" };

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100001388", FAKE_DONE_NO_SPACE, 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/c/change", FAKE_NO_LEADER, 30);
	assert_int_equal(commit_record(a, 5000, "done", &err), -EAGAIN);
	assert_non_null(strstr(err.text, "etcd has no room"));
	until(s, has_record(a, 5000, "done")); /* the watch brings it */
}

/* What was refused for room is not done, and whoever leads goes on leading. */
static void
test_part_without_room_costs_no_lead(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, follows(a));
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000001", FAKE_NO_SPACE, 1);
	assert_int_equal(commit_large(a, LARGE, "large", NULL), -ENOSPC);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000190", FAKE_NO_SPACE, 1);
	assert_int_equal(commit_large(a, LARGE, "large", NULL), -ENOSPC);
	until(s, fake_etcd_read(s->etcd, "/p/c/part") == NULL);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/r/"), 1);
	assert_null(strstr(log_of(s), "does not lead any more"));
	until(s, commit_record(a, 1, "one", NULL) == 0);
}

/* etcd may have put what it says it has no room for: the request is withdrawn, not forgotten. */
static void
test_request_without_room_may_be_there(void **state)
{
	const struct fleet_message m = { .id = "0000000000000001", .bytes = "ask", .len = 3 };
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/q/0000000000000001", FAKE_DONE_NO_SPACE, 1);
	assert_int_equal(fleet_ask(a->fleet, &m, 1, NULL), -EAGAIN);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/q/"), 1);
	assert_int_equal(fleet_withdraw(a->fleet, m.id, NULL), 1);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/q/"), 0);
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

/*
 * A transaction of an undo that etcd executes late, when the undo has ended, would write old
 * records over newer ones.
 */
static void
test_late_part_of_an_undo_is_not_executed(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t lease;

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	lease = fake_etcd_lease_of(s->etcd, "/p/c/leader");
	fake_etcd_next(s->etcd, "/v3/lease/revoke", NULL, FAKE_LOSE_REQUEST, 10);
	appliance_stop(a);
	leave_parts(s);
	fake_etcd_before(s->etcd, "/v3/kv/txn", "/p/r/0100000007", "/p/c/part");
	fake_etcd_end_lease(s->etcd, lease);
	until(s, fleet_leads(b->fleet));
	assert_non_null(strstr(log_of(s), "undoes a large change"));
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100000007"), "part");
}

/* The undo's end has no answer: it is not made twice, and the lead is taken. */
static void
test_undo_without_an_answer_ends(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t lease;

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	lease = fake_etcd_lease_of(s->etcd, "/p/c/leader");
	fake_etcd_next(s->etcd, "/v3/lease/revoke", NULL, FAKE_LOSE_REQUEST, 10);
	appliance_stop(a);
	leave_parts(s);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/c/part", FAKE_LOSE_ANSWER, 2);
	fake_etcd_end_lease(s->etcd, lease);
	until(s, fleet_leads(b->fleet));
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100000007"), "seven");
	assert_true(has_what_was_before(b));
}

/*
 * A member of etcd has forgotten the token, which the session uses at another one: the writer does
 * not ask for a new one, so the fleet's thread does.
 */
static void
test_token_that_the_writer_is_refused_is_renewed(void **state)
{
	struct site *s = *state;
	char *file = s->config.password_file;
	struct appliance *a;
	FILE *f;

	snprintf(file, FLEET_TEXT_MAX, "%s/password", s->at[1].dir);
	f = fopen(file, "w");
	assert_non_null(f);
	fputs("secret\n", f);
	fclose(f);
	chmod(file, 0600);
	strcpy(s->config.user, "polca");
	a = leader_start(s, 0);
	assert_int_equal(fake_etcd_count(s->etcd, "/v3/auth/authenticate"), 1);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/r/0100000008", FAKE_NO_TOKEN, 1);
	until(s, commit_record(a, 8, "eight", NULL) == 0);
	until(s, fake_etcd_count(s->etcd, "/v3/auth/authenticate") == 2);
	unlink(file);
}

/* An appliance that has never heard of etcd does not claim a fresh copy. */
static void
test_silence_counts_from_the_start(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	fake_etcd_down(s->etcd, true);
	a = appliance_start(s, 0);
	until(s, fleet_status_of(a).silent_ms > 0);
	fake_etcd_down(s->etcd, false);
}

/* What people write beside the fleet is no change, whatever it is, and ends no watch. */
static void
test_foreign_keys_are_no_change(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b;
	uint64_t starts;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	starts = fleet_status_of(a).watch_starts;
	fake_etcd_write(s->etcd, "/p/r/nonsense", "x");
	fake_etcd_write(s->etcd, "/p/r/0100000002", "by hand");
	until(s, commit_record(a, 3, "three", NULL) == 0);
	until(s, follows(a));
	assert_int_equal(fleet_status_of(a).watch_starts, starts);
	assert_int_equal(records_of(a), 2);
	/* nor are they in the way of an appliance that reads the whole database */
	b = appliance_start(s, 1);
	until(s, has_record(b, 3, "three"));
	assert_non_null(strstr(log_of(s), "the key /p/r/nonsense is no record's"));
	/* nor of a large change that goes on */
	until(s, follows(b));
	starts = fleet_status_of(b).watch_starts;
	fake_etcd_write(s->etcd, "/p/c/part", "0123456789abcdef");
	fake_etcd_write(s->etcd, "/p/r/nonsense", "y");
	fake_etcd_write(s->etcd, "/p/r/0100000009", "part");
	fake_etcd_write(s->etcd, "/p/c/change", "0123456789abcdef");
	until(s, has_record(b, 9, "part"));
	assert_int_equal(fleet_status_of(b).watch_starts, starts);
}

/*
 * The leader dies in the middle of a large change while no other appliance runs, and etcd compacts
 * what was before: a copy that has the last complete change tells what is to be undone.
 */
static void
test_parts_whose_past_is_compacted_are_undone(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1), *c;
	struct error err;

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(a) && follows(b) && records_of(b) == 2);
	appliance_stop(b);
	appliance_stop(a);
	leave_parts(s);
	fake_etcd_compact(s->etcd, fake_etcd_revision(s->etcd));
	c = appliance_start(s, 2); /* it has no copy, and cannot help */
	until(s, strstr(log_of(s), "waits for one whose copy has that") != NULL);
	assert_int_equal(fleet_etcd_state(c->fleet), FLEET_ETCD_NOT_FOLLOWED);
	assert_false(fleet_leads(c->fleet));
	appliance_stop(c);
	assert_int_equal(appliance_open(s, 1, &err), 0);
	b = &s->at[1];
	b->fleet->page_records = 1; /* the copy's records are looked for in several pages */
	assert_int_equal(fleet_start(b->fleet, no_wake, NULL, &err), 0);
	until(s, fleet_leads(b->fleet) && follows(b));
	assert_true(has_what_was_before(b));
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100000007"), "seven");
	assert_string_equal(fake_etcd_read(s->etcd, "/p/r/0100001388"), "gone");
	assert_null(fake_etcd_read(s->etcd, "/p/r/0100000009"));
	assert_null(fake_etcd_read(s->etcd, "/p/c/part"));
	until(s, commit_record(b, 8, "eight", NULL) == 0);
	c = appliance_start(s, 2);
	until(s, follows(c) && records_of(c) == 3);
	assert_true(has_what_was_before(c));
}

/*
 * Appliance 1 has an older copy, the one with the last complete change is lost, and there are parts
 * whose past is compacted: no appliance follows or leads. docs/fleet.md, "Bounds today", says what
 * an operator does then.
 */
static struct appliance *
lose_past_of_parts(struct site *s)
{
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	appliance_stop(b);
	until(s, commit_record(a, 8, "eight", NULL) == 0);
	appliance_stop(a);
	leave_parts(s);
	fake_etcd_compact(s->etcd, fake_etcd_revision(s->etcd));
	b = appliance_start(s, 1);
	until(s, strstr(log_of(s), "docs/fleet.md, \"Bounds today\"") != NULL);
	assert_false(fleet_leads(b->fleet));
	assert_true(has_what_was_before(b)); /* its queries go on */
	return b;
}

/* etcdctl del PREFIX/c/part, while no appliance runs: what the parts have written stays. */
static void
test_operator_keeps_parts(void **state)
{
	struct site *s = *state;
	struct appliance *b = lose_past_of_parts(s), *c;

	appliance_stop(b);
	fake_etcd_write(s->etcd, "/p/c/part", NULL);
	b = leader_start(s, 1);
	assert_true(has_record(b, 7, "part") && has_record(b, 8, "eight"));
	assert_true(has_record(b, 9, "part") && !has_record(b, 5000, "gone"));
	until(s, commit_record(b, 7, "seven", NULL) == 0);
	c = appliance_start(s, 2);
	until(s, follows(c) && records_of(c) == 3);
	assert_true(has_record(c, 7, "seven") && has_record(c, 9, "part"));
}

static void
remove_prefix(struct site *s)
{
	json_t *body = json_pack("{s:[o]}", "success", etcd_delete_range("/p/", "/p0")), *reply;
	struct etcd_client *client = site_client(s);
	struct error err = { "" };

	assert_int_equal(etcd_call(client, "/v3/kv/txn", body, 1000, &reply, &err), 0);
	json_decref(reply);
	etcd_client_destroy(client);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/"), 0);
}

/* etcdctl del --prefix PREFIX/, and fleet accept: the database is empty, and is filled again. */
static void
test_operator_begins_anew(void **state)
{
	struct site *s = *state;
	struct appliance *a, *b = lose_past_of_parts(s);

	remove_prefix(s);
	until(s, strstr(log_of(s), "polca-ctl fleet accept") != NULL);
	assert_true(has_what_was_before(b));
	until(s, fleet_accept_empty(b->fleet, NULL) == 0);
	until(s, fleet_leads(b->fleet) && follows(b));
	assert_int_equal(records_of(b), 0);
	until(s, commit_record(b, 7, "seven", NULL) == 0);
	until(s, fake_etcd_lease_of(s->etcd, "/p/m/appliance1") != 0);
	a = appliance_start(s, 0); /* whatever copy it has */
	until(s, follows(a) && records_of(a) == 1 && has_record(a, 7, "seven"));
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

/* A look at etcd does not move the position past parts that the watch has not brought. */
static void
test_look_does_not_skip_parts(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	unsigned int ranges;

	until(s, commit_record(a, 5000, "gone", NULL) == 0);
	until(s, commit_record(a, 7, "seven", NULL) == 0);
	until(s, follows(b) && records_of(b) == 2);
	/* its key stays, so b does not lead */
	fake_etcd_next(s->etcd, "/v3/lease/revoke", NULL, FAKE_LOSE_REQUEST, 10);
	appliance_stop(a);
	fake_etcd_silence(s->etcd, true);
	leave_parts(s);
	ranges = fake_etcd_count(s->etcd, "/v3/kv/range");
	until(s,
		(fleet_look_now(b->fleet), fake_etcd_count(s->etcd, "/v3/kv/range") >= ranges + 3));
	fake_etcd_down(s->etcd, true); /* the watch ends */
	until(s, !fleet_connected(b->fleet));
	fake_etcd_silence(s->etcd, false);
	fake_etcd_down(s->etcd, false);
	until(s, fleet_status_of(b).watching);
	fake_etcd_write(s->etcd, "/p/c/change", "0123456789abcdef");
	until(s, has_record(b, 9, "part"));
	assert_true(has_record(b, 7, "part"));
	assert_int_equal(records_of(b), 2);
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

/* The operator has accepted it at one appliance, which leads: the others follow what it stores. */
static void
test_accepted_database_is_followed_by_all(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a) && follows(b) && has_record(b, 1, "one"));
	fake_etcd_down(s->etcd, true);
	until(s, !fleet_connected(a->fleet) && !fleet_connected(b->fleet));
	fake_etcd_replace(s->etcd);
	fake_etcd_down(s->etcd, false);
	until(s, fleet_accept_empty(a->fleet, NULL) == 0);
	until(s, fleet_leads(a->fleet) && commit_record(a, 2, "two", NULL) == 0);
	until(s, follows(b) && has_record(b, 2, "two") && records_of(b) == 1);
	assert_int_equal(fleet_accept_empty(b->fleet, NULL), -ENOENT);
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

/* A leader that looks at etcd seldom must not take who has just joined for one that has gone. */
static void
test_member_is_known_before_the_next_look(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	s->config.lease_s = 12 * WAIT_S; /* a third is between two looks: until() ends before */
	a = leader_start(s, 0);
	until(s, fleet_status_of(a).watching);
	assert_false(fleet_is_member(a->fleet, "appliance1"));
	fake_etcd_write(s->etcd, "/p/m/appliance1", "1 0000000000000001");
	until(s, fleet_is_member(a->fleet, "appliance1"));
}

/* What a process that was killed has sent comes when its appliance is back, under a new lease. */
static void
test_late_report_of_a_dead_process_is_not_executed(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t before, lease;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(b) && has_record(b, 1, "one"));
	before = fake_etcd_lease_of(s->etcd, "/p/m/appliance1");
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/m/appliance1", FAKE_LATE, 1);
	fake_etcd_next(s->etcd, "/v3/lease/revoke", NULL, FAKE_LOSE_REQUEST, 10);
	until(s, commit_record(a, 2, "two", NULL) == 0);
	until(s, fake_etcd_has_late(s->etcd));
	appliance_stop(b);
	b = appliance_start(s, 1);
	until(s, fake_etcd_lease_of(s->etcd, "/p/m/appliance1") != before);
	lease = fake_etcd_lease_of(s->etcd, "/p/m/appliance1");
	fake_etcd_run_late(s->etcd);
	fake_etcd_end_lease(s->etcd, before);
	assert_int_equal(fake_etcd_lease_of(s->etcd, "/p/m/appliance1"), lease);
	/* a key that has gone comes back with what there is to report */
	fake_etcd_write(s->etcd, "/p/m/appliance1", NULL);
	until(s, commit_record(a, 3, "three", NULL) == 0);
	until(s, fake_etcd_lease_of(s->etcd, "/p/m/appliance1") == lease);
}

/* Copy an appliance's directory, as it is, to another one. */
static void
copy_directory(const char *from, const char *to)
{
	char command[192];

	snprintf(command, sizeof(command), "cp -a %s/. %s/", from, to);
	assert_int_equal(system(command), 0);
}

/* An operator copies a directory: the copy is another appliance, also while the first one runs. */
static void
test_copied_directory_is_another_appliance(void **state)
{
	struct site *s = *state;
	struct appliance *a, *b;
	unsigned int looks;
	uint64_t instance;

	s->one_name = true;
	a = leader_start(s, 0);
	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	instance = a->fleet->instance;
	copy_directory(a->dir, s->at[1].dir);
	b = appliance_start(s, 1);
	assert_int_not_equal(b->fleet->instance, instance);
	assert_non_null(strstr(log_of(s), "takes part under a new identity"));
	until(s, strstr(log_of(s), "another appliance has the name \"appliance0\"") != NULL);
	looks = fake_etcd_count(s->etcd, "/v3/kv/range");
	until(s, fake_etcd_count(s->etcd, "/v3/kv/range") > looks + 12);
	assert_true(fleet_leads(a->fleet));
	assert_false(fleet_leads(b->fleet));
	assert_int_equal(fleet_status_of(a).leader_changes, 1);
	/* both keep what they are */
	instance = b->fleet->instance;
	appliance_stop(b);
	appliance_stop(a);
	b = leader_start(s, 1);
	assert_int_equal(b->fleet->instance, instance);
	assert_true(has_record(b, 1, "one"));
	a = appliance_start(s, 0);
	looks = fake_etcd_count(s->etcd, "/v3/kv/range");
	until(s, fake_etcd_count(s->etcd, "/v3/kv/range") > looks + 12);
	assert_true(fleet_leads(b->fleet));
	assert_false(fleet_leads(a->fleet));
}

/* Only the database is copied, into the directory of an appliance that has been elsewhere. */
static void
test_copied_database_is_another_appliance(void **state)
{
	struct site *s = *state;
	struct appliance *a, *b;
	char command[192];
	uint64_t instance;

	b = leader_start(s, 1);
	appliance_stop(b);
	a = leader_start(s, 0);
	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	instance = a->fleet->instance;
	appliance_stop(a);
	snprintf(command, sizeof(command), "cp -a %s/data.mdb %s/", a->dir, b->dir);
	assert_int_equal(system(command), 0);
	b = appliance_start(s, 1);
	assert_int_not_equal(b->fleet->instance, instance);
	assert_non_null(strstr(log_of(s), "takes part under a new identity"));
}

/* Only the database is copied, into a directory without a lock file, or with an empty one. */
static void
test_database_without_its_lock_file_is_a_copy(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b;
	uint64_t instance, own;
	char command[192];

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	instance = a->fleet->instance;
	snprintf(command, sizeof(command), "cp -a %s/data.mdb %s/", a->dir, s->at[1].dir);
	assert_int_equal(system(command), 0);
	b = appliance_start(s, 1);
	own = b->fleet->instance;
	assert_int_not_equal(own, instance);
	assert_non_null(strstr(log_of(s), "takes part under a new identity"));
	appliance_stop(b);
	b = appliance_start(s, 1); /* now it is at home */
	assert_int_equal(b->fleet->instance, own);
	appliance_stop(b);
	snprintf(command, sizeof(command), "%s/polca.lock", b->dir);
	assert_int_equal(truncate(command, 0), 0);
	b = appliance_start(s, 1);
	assert_int_not_equal(b->fleet->instance, own);
}

/* A watch refuses what is larger than it takes, for ever: parts of imports do not come by it. */
static void
test_staged_parts_are_not_watched(void **state)
{
	struct site *s = *state;
	struct appliance *a;

	fake_etcd_next(s->etcd, "/v3/watch", "/p/s", FAKE_NO_SPACE, 1); /* its range ends there */
	a = leader_start(s, 0);
	assert_int_equal(fleet_status_of(a).watch_starts, 2);
}

/* Parts go with their request; those that could not be removed, before the next one's. */
static void
test_stages_end_with_their_requests(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	assert_int_equal(fleet_stage_begin(a->fleet, NULL), 0);
	assert_int_equal(fleet_stage_begin(a->fleet, NULL), 0);
	assert_int_equal(fleet_stage_put(a->fleet, 1, 0, "part", 4, NULL), 0);
	assert_int_equal(fleet_stage_put(a->fleet, 2, 0, "part", 4, NULL), 0);
	assert_int_equal(fleet_stage_put(a->fleet, 2, 1, "part", 4, NULL), 0);
	fleet_stage_end(a->fleet, 2);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/s/"), 1);
	assert_int_equal(fleet_stage_begin(a->fleet, NULL), 0);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/s/"), 1);
	fleet_stage_end(a->fleet, 3);
	fake_etcd_next(s->etcd, "/v3/kv/txn", "/p/s/a", FAKE_LOSE_REQUEST, 1);
	fleet_stage_end(a->fleet, 1);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/s/"), 1);
	until(s, fleet_connected(a->fleet));
	assert_int_equal(fleet_stage_begin(a->fleet, NULL), 0);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/s/"), 0);
	fleet_stage_end(a->fleet, 4);
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
	until(s, (commit_by_leader(s, rid++, "text"), fleet_status_of(b).watch_starts > starts));
	fake_etcd_silence(s->etcd, false);
	until(s, commit_by_leader(s, 100000, "last") == 0);
	until(s, has_record(b, 100000, "last") && records_of(a) == records_of(b));
	assert_int_equal(fleet_status_of(b).loads, 1);
	assert_non_null(strstr(log_of(s), "it is silent although there are changes"));
}

/* It waits a second before it begins again: looks in that time do not make it a silent one. */
static void
test_watch_that_never_began_has_time_to_begin(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1);
	uint64_t starts;

	until(s, follows(a) && follows(b));
	starts = fleet_status_of(b).watch_starts;
	fake_etcd_silence(s->etcd, true);
	until(s, (commit_by_leader(s, 1, "text"), fleet_status_of(b).watch_starts > starts + 1));
	fake_etcd_silence(s->etcd, false);
	until(s, has_record(b, 1, "text"));
}

/* A watch that keeps up is not started again, however many changes come between two looks. */
static void
test_watch_that_keeps_up_is_left_alone(void **state)
{
	struct site *s = *state;
	struct appliance *b;
	uint64_t starts;
	unsigned int looks;
	uint32_t rid = 1;

	leader_start(s, 0);
	b = appliance_start(s, 1);
	looks = fake_etcd_count(s->etcd, "/v3/maintenance/status");
	until(s, follows(b));
	starts = fleet_status_of(b).watch_starts;
	until(s,
		(commit_by_leader(s, rid++, "text"),
			fake_etcd_count(s->etcd, "/v3/maintenance/status") > looks + 12));
	assert_int_equal(fleet_status_of(b).watch_starts, starts);
}

/* A lead that cannot be taken yet is tried again soon, and not only at the next look. */
static void
test_lead_is_taken_before_the_next_look(void **state)
{
	struct site *s = *state;

	s->config.lease_s = 900;
	fake_etcd_next(s->etcd, "/v3/kv/range", "/p/q/", FAKE_NO_LEADER, 40); /* over a second */
	leader_start(s, 0);
	assert_non_null(strstr(log_of(s), "cannot lead yet"));
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

/* An operator who waits for a large database is told how far it is. */
static void
test_slow_load_tells_its_progress(void **state)
{
	struct site *s = *state;
	struct appliance *a;
	unsigned int i;
	char key[32];

	for (i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "/p/r/01%08x", i + 1);
		fake_etcd_write(s->etcd, key, "value");
	}
	fake_etcd_next(s->etcd, "/v3/kv/range", "/p/r/", FAKE_TRICKLE, 1);
	a = appliance_start(s, 0);
	until(s, records_of(a) == 200);
	assert_non_null(strstr(log_of(s), "reading the database from etcd: 200 records so far"));
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
	etcd_prepare(c, c->http->easy, 0, "/");
	curl_easy_setopt(c->http->easy, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(c->http->easy, CURLOPT_STDERR, f);
	assert_int_not_equal(curl_easy_perform(c->http->easy), CURLE_OK);
	fclose(f);
	assert_non_null(strstr(said, "CAfile: /"));
	curl_easy_setopt(c->http->easy, CURLOPT_VERBOSE, 0L);
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

	/* a label of 64 characters: the resolver asks no server for it, which could be slow */
	strcpy(s->config.endpoint[0].url,
		"http://nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn:2379");
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

/*
 * An etcd that refuses a certificate, or an appliance without a password, is not away: what there
 * is to do is said, in the log and to whoever makes a change.
 */
static void
test_refusal_is_told_from_an_etcd_that_is_away(void **state)
{
	const struct fleet_message m = { .id = "one", .bytes = "text", .len = 4 };
	struct site *s = *state;
	struct error err = { "" };
	struct appliance *a;

	fake_etcd_alert(s->etcd, true);
	snprintf(s->config.endpoint[0].url, FLEET_TEXT_MAX, "https%s", fake_etcd_url(s->etcd) + 4);
	a = appliance_start(s, 0);
	until(s, fleet_etcd_state(a->fleet) == FLEET_ETCD_REFUSES);
	assert_non_null(strstr(log_of(s), "etcd refuses this appliance"));
	assert_non_null(strstr(fleet_status_of(a).reason, "bad certificate"));
	assert_string_equal(fleet_status_of(a).state_name, "refuses");
	assert_int_equal(fleet_ask(a->fleet, &m, 1, &err), -ENOTCONN);
	assert_non_null(strstr(err.text, "etcd refuses this appliance"));
	assert_int_equal(commit_record(a, 1, "one", &err), -EAGAIN);
	assert_non_null(strstr(err.text, "bad certificate"));
	appliance_stop(a);
	fake_etcd_alert(s->etcd, false);
	strcpy(s->config.endpoint[0].url, fake_etcd_url(s->etcd));
	fake_etcd_next(s->etcd, "/v3/lease/grant", NULL, FAKE_NO_USER, 4);
	a = appliance_start(s, 1);
	until(s, fleet_etcd_state(a->fleet) == FLEET_ETCD_REFUSES);
	assert_string_equal(fleet_status_of(a).reason, "etcd: etcdserver: user name is empty");
	until(s, fleet_etcd_state(a->fleet) == FLEET_ETCD_ANSWERS);
	assert_string_equal(fleet_status_of(a).reason, "");
	assert_null(strstr(log_of(s), "etcd is away"));
}

/* --- etcd's space --- */

/*
 * etcd's quota is exceeded: it answers, so nobody calls it away. The lead stays, queries see what
 * the watch brings, and changes say what to do.
 */
static void
test_etcd_without_room_refuses_changes_only(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0), *b = appliance_start(s, 1), *c;
	struct fleet_status status;
	struct error err = { "" };

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(b) && has_record(b, 1, "one"));
	assert_false(fleet_is_full(a->fleet) || fleet_is_full(b->fleet));
	fake_etcd_full(s->etcd, true);
	assert_int_equal(commit_record(a, 2, "two", &err), -ENOSPC);
	assert_non_null(strstr(err.text, "quota, --quota-backend-bytes"));
	assert_int_equal(fleet_stage_put(b->fleet, 1, 0, "part", 4, NULL), -ENOSPC);
	/* a change that was made before, so that there is more to report */
	fake_etcd_write(s->etcd, "/p/c/part", "0123456789abcdef");
	fake_etcd_write(s->etcd, "/p/r/0100000003", "three");
	fake_etcd_write(s->etcd, "/p/c/change", "0123456789abcdef");
	fake_etcd_write(s->etcd, "/p/c/part", NULL);
	c = appliance_start(s, 2); /* it gets no lease */
	until(s, has_record(a, 3, "three") && has_record(b, 3, "three"));
	until(s, has_record(c, 1, "one") && fleet_status_of(c).full);
	until(s, fleet_status_of(a).etcd[0].alarms[0] != '\0');
	status = fleet_status_of(a);
	assert_true(status.leads && status.connected && status.full && status.watching);
	assert_int_equal(status.disconnects, 0);
	assert_int_equal(status.etcd[0].db_bytes, 5000);
	assert_int_equal(status.etcd[0].db_used, 4000);
	assert_string_equal(status.etcd[0].alarms, "NOSPACE"); /* CORRUPT is another member's */
	assert_non_null(strstr(log_of(s), "etcd has no room"));
	assert_non_null(strstr(log_of(s), "has raised an alarm: NOSPACE"));
	fake_etcd_full(s->etcd, false);
	until(s, !fleet_is_full(a->fleet) && !fleet_is_full(b->fleet) && !fleet_is_full(c->fleet));
	assert_non_null(strstr(log_of(s), "etcd has room again"));
	assert_non_null(strstr(log_of(s), "has no alarm any more"));
	assert_null(strstr(log_of(s), "etcd is away"));
	until(s, commit_record(a, 2, "two", NULL) == 0);
	until(s, has_record(c, 2, "two"));
	assert_int_equal(fleet_status_of(a).leader_changes, 1);
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

/* --- an appliance that does not know yet that it leads no more --- */

static void
test_change_of_a_deposed_leader_is_refused(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);

	until(s, commit_record(a, 1, "one", NULL) == 0);
	fake_etcd_before(s->etcd, "/v3/kv/txn", "/p/r/0100000002", "/p/c/leader");
	assert_true(commit_record(a, 2, "two", NULL) < 0);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/r/"), 1);
	assert_int_equal(records_of(a), 1);
}

static void
test_deposed_leader_forgets_no_notice(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	char key[] = "/p/e/?"; /* with the first digit of the notice's ID */
	struct fleet_notice *n;

	assert_true(fleet_keep_notice(a->fleet, "told", 4));
	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, (n = fleet_take_notice(a->fleet)) != NULL);
	fleet_notice_told(a->fleet, n);
	for (key[5] = '0'; fake_etcd_keys(s->etcd, key) == 0;
		key[5] = key[5] == '9' ? 'a' : key[5] + 1)
		assert_true(key[5] <= 'f');
	fake_etcd_before(s->etcd, "/v3/kv/txn", key, "/p/c/leader");
	assert_true(fleet_forget_notices(a->fleet, NULL) < 0);
	assert_int_equal(fake_etcd_keys(s->etcd, "/p/e/"), 1);
}

/* Also a leader's copy has what the watch has brought, and nothing before it. */
static void
test_copy_of_a_leader_is_written_from_its_watch(void **state)
{
	struct site *s = *state;
	struct appliance *a = leader_start(s, 0);
	struct error err;

	until(s, commit_record(a, 1, "one", NULL) == 0);
	until(s, follows(a));
	fake_etcd_silence(s->etcd, true);
	assert_int_equal(commit_record(a, 2, "two", NULL), 0);
	assert_int_equal(records_of(a), 2);
	appliance_stop(a);
	assert_int_equal(appliance_open(s, 0, &err), 0);
	assert_int_equal(records_of(a), 1);
	fake_etcd_silence(s->etcd, false);
	assert_int_equal(fleet_start(a->fleet, no_wake, NULL, &err), 0);
	until(s, follows(a) && has_record(a, 2, "two"));
	assert_int_equal(fleet_status_of(a).loads, 0);
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
		SITE_TEST(test_etcd_restored_below_what_was_seen),
		SITE_TEST(test_same_revision_of_another_history),
		SITE_TEST(test_etcd_replaced_by_another_cluster),
		SITE_TEST(test_no_record_is_lost_behind_the_position),
		SITE_TEST(test_copy_that_is_full_loses_nothing),
		SITE_TEST(test_compacted_history_is_read_as_a_whole),
		SITE_TEST(test_database_is_read_in_pages),
		SITE_TEST(test_request_of_the_time_of_a_load_is_executed),
		SITE_TEST(test_large_change_is_seen_as_a_whole),
		SITE_TEST(test_next_leader_undoes_the_parts_of_a_large_change),
		SITE_TEST(test_leader_undoes_a_large_change_that_stopped),
		SITE_TEST(test_large_change_outlasts_an_election_of_etcd),
		SITE_TEST(test_part_that_may_be_there_is_undone),
		SITE_TEST(test_executed_in_spite_of_no_room),
		SITE_TEST(test_no_room_and_no_word_of_what_was_executed),
		SITE_TEST(test_part_without_room_costs_no_lead),
		SITE_TEST(test_request_without_room_may_be_there),
		SITE_TEST(test_parts_whose_past_is_compacted_are_undone),
		SITE_TEST(test_operator_keeps_parts),
		SITE_TEST(test_operator_begins_anew),
		SITE_TEST(test_restart_between_parts_loses_none),
		SITE_TEST(test_look_does_not_skip_parts),
		SITE_TEST(test_appliance_that_cannot_undo_does_not_lead),
		SITE_TEST(test_foreign_keys_are_no_change),
		SITE_TEST(test_late_part_of_an_undo_is_not_executed),
		SITE_TEST(test_undo_without_an_answer_ends),
		SITE_TEST(test_silence_counts_from_the_start),
		SITE_TEST(test_token_that_the_writer_is_refused_is_renewed),
		SITE_TEST(test_silent_watch_is_started_again_under_steady_writes),
		SITE_TEST(test_watch_that_never_began_has_time_to_begin),
		SITE_TEST(test_watch_that_keeps_up_is_left_alone),
		SITE_TEST(test_lead_is_taken_before_the_next_look),
		SITE_TEST(test_lease_of_answers_is_renewed),
		SITE_TEST(test_repeated_change_is_recognized),
		SITE_TEST(test_executed_change_without_an_answer_is_followed),
		SITE_TEST(test_change_of_a_deposed_leader_is_refused),
		SITE_TEST(test_deposed_leader_forgets_no_notice),
		SITE_TEST(test_copy_of_a_leader_is_written_from_its_watch),
		SITE_TEST(test_refused_change_is_not_executed_later),
		SITE_TEST(test_empty_etcd_does_not_replace_a_copy),
		SITE_TEST(test_database_that_became_empty_is_taken),
		SITE_TEST(test_accepted_database_is_followed_by_all),
		SITE_TEST(test_second_appliance_of_a_name_is_kept_out),
		SITE_TEST(test_member_is_known_before_the_next_look),
		SITE_TEST(test_late_report_of_a_dead_process_is_not_executed),
		SITE_TEST(test_copied_directory_is_another_appliance),
		SITE_TEST(test_copied_database_is_another_appliance),
		SITE_TEST(test_database_without_its_lock_file_is_a_copy),
		SITE_TEST(test_staged_parts_are_not_watched),
		SITE_TEST(test_stages_end_with_their_requests),
		SITE_TEST(test_database_of_a_later_format_is_left_alone),
		SITE_TEST(test_queue_to_a_busy_writer_is_bounded),
		SITE_TEST(test_long_answer_is_waited_for),
		SITE_TEST(test_slow_load_tells_its_progress),
		SITE_TEST(test_silent_endpoint_is_left),
		SITE_TEST(test_system_certificates_are_the_default),
		SITE_TEST(test_password_files_that_cannot_be_used),
		SITE_TEST(test_local_faults_are_told_from_an_etcd_that_is_away),
		SITE_TEST(test_refusal_is_told_from_an_etcd_that_is_away),
		SITE_TEST(test_etcd_without_room_refuses_changes_only),
	};

	return cmocka_run_group_tests_name("store: a fleet and a scripted etcd", tests, NULL, NULL);
}
