/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Changes at a leader, of its own clients and of other appliances, against a scripted etcd: the SA
 * and the store are real.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_random.h>

#include "../store/fake_etcd.h"
#include "base/fnv.h"
#include "engine/sa_import_stage.h"
#include "engine/store_fleet.h"
#include "engine/store_forward.h"
#include "engine/worker.h"
#include "sa/forward.h"
#include "sa/layout.h"
#include "sa/server.h"
#include "sa/staged.h"
#include "wire/bytes.h"

#define CONFIGS 3

struct leader {
	struct engine engine;
	struct store_forward *forward;
	struct fake_etcd *etcd;
	char dir[64];
	struct sa_write write[CONFIGS];
	uint8_t *records[CONFIGS];
	unsigned int back;
};

static void
leader_no_wake(void *arg)
{
	(void)arg;
}

static uint64_t cycles_ahead; /* of the machine's, so that a test need not wait */

static uint64_t
leader_cycles(void)
{
	return rte_get_tsc_cycles() + cycles_ahead;
}

static void
count_back(void *arg, struct sa_write *write)
{
	struct leader *l = arg;

	(void)write;
	l->back++;
}

static uint64_t
grace_of_nobody(void *arg)
{
	(void)arg;
	return 1;
}

static bool
grace_is_over(void *arg, uint64_t token)
{
	(void)arg, (void)token;
	return true;
}

/* An appliance of this name. */
static struct leader *
forwarding_start(struct fake_etcd *etcd, const char *name)
{
	struct leader *l = calloc(1, sizeof(*l));
	struct fleet_config config = { .num_endpoints = 1, .lease_s = 5, .max_txn_ops = 128 };
	struct store_config sc = {
		.tables = sa_num_tables,
		.indexes = sa_indexes,
		.num_indexes = sa_num_indexes,
		.readers = 1,
		.alloc = &allocator_malloc,
		.max_old_bytes = 1 << 20,
		.max_versions = 4,
		.grace = { grace_of_nobody, grace_is_over, NULL },
	};
	struct sa_config sac = sa_config_default;
	struct error err = { "" };
	struct store_fleet side;

	l->etcd = etcd;
	strcpy(config.prefix, "/p");
	snprintf(config.name, sizeof(config.name), "%s", name);
	snprintf(config.endpoint[0].url, FLEET_TEXT_MAX, "%s", fake_etcd_url(l->etcd));
	strcpy(l->dir, "/tmp/polca-forward-XXXXXX");
	assert_non_null(mkdtemp(l->dir));
	assert_int_equal(fleet_open(&config, l->dir, 1 << 22, &l->engine.fleet, &sc.backend, &err),
		0);
	l->engine.store = store_create(&sc, &err);
	assert_non_null(l->engine.store);
	l->engine.hz = 1000000000; /* the EAL is not started, and does not say */
	sac.store = l->engine.store;
	sac.hz = l->engine.hz;
	sac.alloc = &allocator_malloc;
	sac.rng = &rng_kernel;
	sac.workers = 1;
	l->engine.sa = sa_create(&sac, &err);
	assert_non_null(l->engine.sa);
	side = (struct store_fleet){
		.fleet = l->engine.fleet,
		.sa = l->engine.sa,
		.store = l->engine.store,
		.max_import = 1 << 20,
		.hz = l->engine.hz,
		.cycles = leader_cycles,
		.random = rte_rand,
	};
	l->forward = store_forward_create(&side, count_back, l);
	assert_int_equal(fleet_start(l->engine.fleet, leader_no_wake, NULL, &err), 0);
	return l;
}

static int
leader_setup(void **state)
{
	struct leader *l = forwarding_start(fake_etcd_start(), "a");

	while (!fleet_leads(l->engine.fleet)) {
		store_follow(l->engine.store, NULL);
		usleep(1000);
	}
	*state = l;
	return 0;
}

static void
forwarding_end(struct leader *l)
{
	static const char *const files[] = { "/data.mdb", "/lock.mdb", "/polca.lock", "" };
	char path[128];
	unsigned int i;

	fleet_stop(l->engine.fleet);
	store_forward_destroy(l->forward);
	sa_destroy(l->engine.sa);
	store_destroy(l->engine.store);
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", l->dir, files[i]);
		remove(path);
	}
	for (i = 0; i < CONFIGS; i++)
		free(l->records[i]);
	free(l);
}

static int
leader_teardown(void **state)
{
	struct leader *l = *state;
	struct fake_etcd *etcd = l->etcd;

	forwarding_end(l);
	fake_etcd_stop(etcd);
	return 0;
}

/* A Config of so many NodeRecords from a LID on. */
static struct sa_write *
config_of(struct leader *l, unsigned int i, uint16_t lid, unsigned int n)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	struct sa_write *w = &l->write[i];
	uint16_t len = sa_wire_len(t, SA_V1);
	uint8_t rec[SA_RECORD_MAX];
	unsigned int k;

	l->records[i] = calloc(n, len);
	for (k = 0; k < n; k++) {
		memset(rec, 0, sizeof(rec));
		sa_put_named(t, "lid", rec, lid + k);
		sa_put_named(t, "port_guid", rec, 0x1000 + lid + k);
		sa_encode(t, SA_V1, rec, sa_rid(t, rec), l->records[i] + k * len);
	}
	memset(w, 0, sizeof(*w));
	w->kind = WRITE_CONFIG;
	w->version = SA_V1;
	w->type = t;
	w->edit = SA_EDIT_ADD;
	w->who.trusted = w->who.manager = true;
	w->who.sight = SA_SEES_KEYS;
	w->forwarded = l->records[i];
	w->data_len = n * len;
	put_be64(w->reply + MAD_OFF_TID, i + 1); /* each has an identity of its own */
	return w;
}

static uint64_t
nodes_of(struct leader *l)
{
	return store_count(store_current(store_reader(l->engine.store, 0)), SA_TABLE_NODE);
}

/*
 * An etcd that takes fewer operations than fleet.max_txn_ops says: changes that fit by themselves
 * are divided until they do.
 */
static void
test_changes_too_many_for_one_transaction_are_halved(void **state)
{
	struct leader *l = *state;
	struct sa_write *writes[CONFIGS] = { config_of(l, 0, 0x100, 70), config_of(l, 1, 0x200, 70),
		config_of(l, 2, 0x300, 20) };
	struct fleet_status before, after;

	fake_etcd_max_ops(l->etcd, 90);
	fleet_status(l->engine.fleet, &before);
	store_forward_batch(l->forward, writes, CONFIGS, 1000);
	assert_int_equal(l->back, CONFIGS);
	assert_int_equal(writes[0]->status, 0);
	assert_int_equal(writes[1]->status, 0);
	assert_int_equal(writes[2]->status, 0);
	assert_int_equal(nodes_of(l), 160);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), 160);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/a/"), CONFIGS);
	fleet_status(l->engine.fleet, &after);
	assert_int_equal(after.changes, before.changes + 3);
}

/* One that is too large by itself is refused, and those beside it are not. */
static void
test_change_too_large_by_itself_is_refused(void **state)
{
	struct leader *l = *state;
	struct sa_write *writes[CONFIGS] = { config_of(l, 0, 0x100, 20),
		config_of(l, 1, 0x200, 140), config_of(l, 2, 0x300, 20) };

	fake_etcd_max_ops(l->etcd, 90);
	store_forward_batch(l->forward, writes, CONFIGS, 1000);
	assert_int_equal(l->back, CONFIGS);
	assert_int_equal(writes[0]->status, 0);
	assert_int_equal(writes[1]->status, SA_STATUS_NO_RESOURCES);
	assert_int_equal(writes[2]->status, 0);
	assert_int_equal(nodes_of(l), 40);
}

/* Changes of more records than one transaction takes are made in parts, as one change. */
static void
test_changes_beyond_one_transaction_are_one_change(void **state)
{
	struct leader *l = *state;
	struct sa_write *writes[CONFIGS] = { config_of(l, 0, 0x100, 20),
		config_of(l, 1, 0x200, 140), config_of(l, 2, 0x300, 20) };
	struct fleet_status before, after;
	unsigned int i;

	fleet_status(l->engine.fleet, &before);
	store_forward_batch(l->forward, writes, CONFIGS, 1000);
	assert_int_equal(l->back, CONFIGS);
	for (i = 0; i < CONFIGS; i++)
		assert_int_equal(writes[i]->status, 0);
	assert_int_equal(nodes_of(l), 180);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), 180);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/a/"), CONFIGS);
	assert_null(fake_etcd_read(l->etcd, "/p/c/part"));
	fleet_status(l->engine.fleet, &after);
	assert_int_equal(after.changes, before.changes + 1);
}

/* --- imports of other appliances --- */

/* A NodeRecord as an import has it; LID 0: one that is refused. */
static struct sa_change
import_node(uint16_t lid)
{
	struct sa_change c = { .type = sa_record_type(SA_NODE) };

	sa_put_named(c.type, "lid", c.rec, lid);
	sa_put_named(c.type, "port_guid", c.rec, 0x1000 + lid);
	return c;
}

/* Stage records in parts of so many, and ask for their import. */
static struct sa_write *
import_of(struct leader *l, unsigned int i, struct staged_head *head, const struct sa_change *c,
	size_t n, size_t each)
{
	static uint8_t bytes[STAGED_PART_MAX];
	struct sa_write *w = &l->write[i];
	struct error err = { "" };
	size_t at, taken, len;

	*head = (struct staged_head){ .replace = head->replace, .id = 0x1d0 + i, .sum = FNV_START };
	strcpy(head->owner, "a");
	for (at = 0; at < n; at += taken) {
		len = staged_put_part(c + at, n - at < each ? n - at : each, bytes, STAGED_PART_MAX,
			&taken);
		assert_int_equal(fleet_stage_put(l->engine.fleet, head->id, head->parts++, bytes,
					 len, &err),
			0);
		head->len += len;
		head->sum = fnv_add(head->sum, bytes, len);
	}
	l->records[i] = calloc(1, STAGED_HEAD_MAX);
	memset(w, 0, sizeof(*w));
	w->kind = WRITE_IMPORT;
	w->version = SA_V2;
	w->type = sa_record_type(SA_NODE);
	w->forwarded = l->records[i];
	w->data_len = (uint32_t)staged_put_head(head, l->records[i]);
	put_be64(w->reply + MAD_OFF_TID, i + 1);
	return w;
}

/* What an appliance does now and then: it follows the store and forwards. */
static void
appliance_run(struct leader *l)
{
	store_follow(l->engine.store, NULL);
	store_forward_run(l->forward, 1000);
}

static void
run_until_back(struct leader *l, unsigned int back)
{
	while (l->back < back) {
		appliance_run(l);
		usleep(1000);
	}
}

/* Both run, until a follower has so many answers. */
static void
run_both_until_back(struct leader *l, struct leader *f, unsigned int back)
{
	while (f->back < back) {
		appliance_run(l);
		appliance_run(f);
		usleep(1000);
	}
}

#define IMPORTED 300 /* records: more than a transaction takes */

/* An import at another appliance is one change at the leader, and only replaces what it should. */
static void
test_import_of_another_appliance_is_one_change(void **state)
{
	struct staged_head head = { .replace = SA_REPLACE_ALL };
	struct sa_change c[IMPORTED], old = import_node(0x700);
	struct leader *l = *state;
	struct fleet_status before, after;
	struct sa_write *w;
	unsigned int i;

	assert_int_equal(sa_change(l->engine.sa, &old, 1, NULL), 0);
	for (i = 0; i < IMPORTED; i++)
		c[i] = import_node(0x100 + i);
	w = import_of(l, 0, &head, c, IMPORTED, 100);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/a/00000000000001d0/"), 3);
	fleet_status(l->engine.fleet, &before);
	store_forward_batch(l->forward, &w, 1, 1000);
	assert_int_equal(l->back, 0);
	run_until_back(l, 1);
	assert_int_equal(w->status, 0);
	assert_int_equal(nodes_of(l), IMPORTED);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), IMPORTED);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	fleet_status(l->engine.fleet, &after);
	assert_int_equal(after.changes, before.changes + 1);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
	/* asked again, it is answered, and has no other effect */
	w->rec[0] = 0;
	store_forward_batch(l->forward, &w, 1, 1000);
	run_until_back(l, 2);
	assert_int_equal(w->status, 0);
	fleet_status(l->engine.fleet, &before);
	assert_int_equal(before.changes, after.changes);
}

/* --- large Configs --- */

#define LARGE 5000 /* records: more than a part takes */

/* The leader's own client asks twice: the second one goes by the stage, and has no other effect. */
static void
test_large_config_is_one_change(void **state)
{
	struct leader *l = *state;
	struct sa_write *w[2] = { config_of(l, 0, 0x100, LARGE), config_of(l, 1, 0x100, LARGE) };
	struct fleet_status before, after;

	memcpy(w[1]->reply, w[0]->reply, MAD_LEN);
	fleet_status(l->engine.fleet, &before);
	store_forward_batch(l->forward, w, 2, 1000);
	assert_int_equal(l->back, 1);
	assert_int_equal(w[0]->status, 0);
	assert_int_equal(nodes_of(l), LARGE);
	fake_etcd_next(l->etcd, "/v3/kv/txn", "/p/s/a", FAKE_LOSE_REQUEST, 1);
	run_until_back(l, 2);
	assert_int_equal(w[1]->status, 0);
	fleet_status(l->engine.fleet, &after);
	assert_int_equal(after.changes, before.changes + 1);
	assert_int_equal(nodes_of(l), LARGE);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), LARGE);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
}

/* A Config as another appliance stages it and asks for it; the head may announce more parts. */
static void
ask_staged(struct leader *l, const struct sa_write *w, const struct staged_head *head,
	char answer[128])
{
	static uint8_t bytes[FORWARD_REQUEST_MAX], part[STAGED_PART_MAX];
	char id[FORWARD_ID_LEN + 1];
	struct fleet_message request = { .id = id, .bytes = bytes };
	uint32_t i;

	for (i = 0; (uint64_t)i * STAGED_PART_MAX < w->data_len; i++)
		assert_int_equal(fleet_stage_put(l->engine.fleet, head->id, i, part,
					 staged_config_part(w, i, part), NULL),
			0);
	request.len = forward_put_request(w, head, bytes, id);
	assert_true(request.len > 0);
	snprintf(answer, 128, "/p/a/%s", id);
	assert_int_equal(fleet_ask(l->engine.fleet, &request, 1, NULL), 0);
}

static uint16_t
answered_status(struct leader *l, const char *answer)
{
	while (fake_etcd_read(l->etcd, answer) == NULL) {
		appliance_run(l);
		usleep(1000);
	}
	/* behind the version of the form */
	return get_be16((const uint8_t *)fake_etcd_read(l->etcd, answer) + 1);
}

static void
test_large_config_of_another_appliance_is_one_change(void **state)
{
	struct leader *l = *state;
	struct sa_write *w = config_of(l, 0, 0x100, LARGE);
	struct staged_head head = { .owner = "a", .id = 0x2d0 };
	struct fleet_status before, after;
	char answer[128];

	staged_count_config(w, &head);
	fleet_status(l->engine.fleet, &before);
	ask_staged(l, w, &head, answer);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/a/00000000000002d0/"), 2);
	assert_int_equal(answered_status(l, answer), 0);
	fleet_status(l->engine.fleet, &after);
	assert_int_equal(after.changes, before.changes + 1);
	assert_int_equal(nodes_of(l), LARGE);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
}

/* Its parts have gone, or a part of a record is missing: nothing is changed, nothing stays. */
static void
test_large_config_without_its_parts_is_refused(void **state)
{
	struct leader *l = *state;
	struct sa_write *w = config_of(l, 0, 0x100, 600);
	struct staged_head head = { .owner = "a", .id = 0x2d0 };
	char answer[128];

	staged_count_config(w, &head);
	head.parts++;
	ask_staged(l, w, &head, answer);
	assert_int_equal(answered_status(l, answer), SA_STATUS_NO_RESOURCES);
	w->data_len--;
	staged_count_config(w, &head);
	ask_staged(l, w, &head, answer);
	assert_int_equal(answered_status(l, answer), SA_STATUS_REQ_INVALID);
	assert_int_equal(nodes_of(l), 0);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
}

/* The key of a request or of its answer. */
static void
put_key_of(const struct sa_write *w, const char *kind, char key[128])
{
	static uint8_t bytes[FORWARD_REQUEST_MAX];
	char id[FORWARD_ID_LEN + 1];

	assert_int_not_equal(forward_put_request(w, NULL, bytes, id), 0);
	snprintf(key, 128, "%s%s", kind, id);
}

/* The answer has ended, and the request comes once more: what was changed meanwhile stays. */
static void
test_import_is_made_once(void **state)
{
	struct sa_change c[3] = { import_node(5), import_node(6), import_node(7) };
	struct staged_head head = { .replace = SA_REPLACE_ALL };
	struct sa_change later = import_node(0x700);
	struct leader *l = *state;
	struct sa_write *w;
	char key[128];

	w = import_of(l, 0, &head, c, 3, 2);
	put_key_of(w, "/p/a/", key);
	store_forward_batch(l->forward, &w, 1, 1000);
	run_until_back(l, 1);
	assert_int_equal(w->status, 0);
	assert_int_equal(sa_change(l->engine.sa, &later, 1, NULL), 0);
	fake_etcd_write(l->etcd, key, NULL);
	store_forward_batch(l->forward, &w, 1, 1000);
	run_until_back(l, 2);
	assert_int_equal(w->status, SA_STATUS_NO_RECORDS);
	assert_string_equal((const char *)w->rec, "part 0 is not staged any more");
	assert_int_equal(nodes_of(l), 4);
	/* asked twice: it is not said to be refused */
	fake_etcd_write(l->etcd, key, NULL);
	fake_etcd_next(l->etcd, "/v3/kv/txn", NULL, FAKE_LOSE_REQUEST, 1);
	store_forward_batch(l->forward, &w, 1, 1000);
	run_until_back(l, 3);
	assert_int_equal(w->status, SA_STATUS_NO_RECORDS);
	assert_string_equal((const char *)w->rec, "");
	assert_int_equal(nodes_of(l), 4);
}

/* What is right only now is not left in etcd for the next leader. */
static void
test_change_for_now_does_not_wait(void **state)
{
	struct leader *l = *state;
	struct sa_write w = { .kind = WRITE_OWNED, .version = SA_V2, .only_now = true };
	uint8_t bytes[OWNED_LEN_MAX];

	w.type = sa_record_type(SA_NODE);
	w.forwarded = bytes;
	w.data_len = (uint32_t)owned_put("b", NULL, 0, 0, bytes);
	store_forward_batch(l->forward, &(struct sa_write *){ &w }, 1, 1000);
	assert_int_equal(l->back, 1);
	assert_int_equal(w.status, 0);
	put_be64(w.reply + MAD_OFF_TID, 2);
	fake_etcd_before(l->etcd, "/v3/kv/txn", NULL, "/p/c/leader");
	store_forward_batch(l->forward, &(struct sa_write *){ &w }, 1, 1000);
	assert_int_equal(l->back, 2);
	assert_int_equal(w.status, SA_STATUS_NO_RESOURCES);
	store_forward_run(l->forward, 1000);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
}

/*
 * The appliance that asked goes while the leader writes the parts: the leader undoes them, even if
 * etcd elects a leader meanwhile.
 */
static void
test_leader_undoes_an_import_whose_requester_has_gone(void **state)
{
	static uint8_t bytes[FORWARD_REQUEST_MAX];
	struct sa_change c[IMPORTED], old = import_node(0x700);
	struct staged_head head = { .replace = SA_REPLACE_ALL };
	struct fleet_message request = { .bytes = bytes };
	char id[FORWARD_ID_LEN + 1], key[128];
	struct leader *l = *state;
	struct fleet_status status;
	unsigned int i;
	uint64_t lead;

	assert_int_equal(sa_change(l->engine.sa, &old, 1, NULL), 0);
	for (i = 0; i < IMPORTED; i++)
		c[i] = import_node(0x100 + i);
	request.len =
		forward_put_request(import_of(l, 0, &head, c, IMPORTED, 100), NULL, bytes, id);
	request.id = id;
	put_key_of(&l->write[0], "/p/q/", key);
	lead = fleet_lead(l->engine.fleet);
	assert_int_equal(fleet_ask(l->engine.fleet, &request, 1, NULL), 0);
	fake_etcd_before(l->etcd, "/v3/kv/txn", key, key); /* the last one names it */
	fake_etcd_next(l->etcd, "/v3/kv/txn", "undo", FAKE_NO_LEADER, 30); /* more than a second */
	do {
		appliance_run(l);
		fleet_status(l->engine.fleet, &status);
		usleep(1000);
	} while (status.changes_failed == 0 || fake_etcd_read(l->etcd, "/p/c/part") != NULL);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), 1);
	assert_int_equal(nodes_of(l), 1);
	/* and leads, and makes changes */
	old = import_node(0x701);
	while (sa_change(l->engine.sa, &old, 1, NULL) != 0)
		store_follow(l->engine.store, NULL);
	assert_int_equal(fleet_lead(l->engine.fleet), lead);
	assert_int_equal(nodes_of(l), 2);
}

/* An appliance that stops begins no further part, and reads none. */
static void
test_stop_ends_what_takes_long(void **state)
{
	struct leader *l = *state;
	struct sa_write *w = config_of(l, 0, 0x100, 140);
	uint8_t *bytes;
	size_t len;

	assert_int_equal(fleet_stage_put(l->engine.fleet, 1, 0, "part", 4, NULL), 0);
	fleet_end_long_work(l->engine.fleet);
	assert_int_equal(fleet_stage_get(l->engine.fleet, "a", 1, 0, &bytes, &len, NULL),
		-ECANCELED);
	store_forward_batch(l->forward, &w, 1, 1000);
	assert_int_equal(l->back, 0);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), 0);
	store_forward_stop(l->forward);
	assert_int_equal(w->status, MAD_STATUS_BUSY);
}

/* One bad record: nothing changes, and the answer says why. Requests beside it are executed. */
static void
test_import_is_refused_as_a_whole(void **state)
{
	struct sa_change c[3] = { import_node(5), import_node(0), import_node(6) };
	struct staged_head head = { .replace = SA_REPLACE_ALL };
	struct leader *l = *state;
	struct sa_change old = import_node(0x700);
	struct sa_write *w;

	assert_int_equal(sa_change(l->engine.sa, &old, 1, NULL), 0);
	w = import_of(l, 0, &head, c, 3, 2);
	store_forward_batch(l->forward, &w, 1, 1000);
	run_until_back(l, 1);
	assert_int_equal(w->status, SA_STATUS_REQ_INVALID);
	assert_string_equal((const char *)w->rec, "NodeRecord: LID 0");
	assert_int_equal(nodes_of(l), 1);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/r/"), 1);
}

/* Parts that are not there, or are others than announced. */
static void
test_import_without_its_parts_is_refused(void **state)
{
	struct sa_change c[2] = { import_node(5), import_node(6) };
	struct staged_head head = { .replace = SA_REPLACE_NOTHING };
	struct leader *l = *state;
	struct sa_write *w[2];

	w[0] = import_of(l, 0, &head, c, 2, 1);
	fake_etcd_write(l->etcd, "/p/s/a/00000000000001d0/00000001", NULL);
	store_forward_batch(l->forward, w, 1, 1000);
	run_until_back(l, 1);
	assert_int_equal(w[0]->status, SA_STATUS_NO_RECORDS);
	assert_string_equal((const char *)w[0]->rec, "part 1 is not staged any more");
	w[1] = import_of(l, 1, &head, c, 2, 1);
	fake_etcd_write(l->etcd, "/p/s/a/00000000000001d1/00000001", "other");
	store_forward_batch(l->forward, w + 1, 1, 1000);
	run_until_back(l, 2);
	assert_int_equal(w[1]->status, SA_STATUS_NO_RESOURCES);
	assert_string_equal((const char *)w[1]->rec, "its parts are not what a has announced");
	assert_int_equal(nodes_of(l), 0);
}

/* More than the leader would import from a file. */
static void
test_import_beyond_the_leaders_limit_is_refused(void **state)
{
	struct staged_head head = { .replace = SA_REPLACE_NOTHING };
	struct sa_change c = import_node(5);
	struct leader *l = *state;
	struct sa_write *w;

	w = import_of(l, 0, &head, &c, 1, 1);
	head.len = (1u << 20) + 1;
	w->data_len = (uint32_t)staged_put_head(&head, l->records[0]);
	store_forward_batch(l->forward, &w, 1, 1000);
	run_until_back(l, 1);
	assert_int_equal(w->status, SA_STATUS_NO_RESOURCES);
	assert_non_null(strstr((const char *)w->rec, "sa.max_import_mb"));
	assert_int_equal(nodes_of(l), 0);
}

static struct leader *
follower_start(struct leader *l)
{
	struct leader *f = forwarding_start(l->etcd, "b");

	while (fake_etcd_read(l->etcd, "/p/m/b") == NULL || !fleet_connected(f->engine.fleet)) {
		store_follow(f->engine.store, NULL);
		usleep(1000);
	}
	return f;
}

/* The parts go with the lease of the appliance, which stages them again if it goes on. */
static void
test_parts_of_a_config_go_with_the_lease(void **state)
{
	struct leader *l = *state, *f = follower_start(l);
	struct sa_write *w = config_of(f, 0, 1, LARGE);

	store_forward_batch(f->forward, &w, 1, 1000);
	while (fake_etcd_keys(l->etcd, "/p/q/") == 0) {
		appliance_run(f);
		usleep(1000);
	}
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/b/"), 2);
	fake_etcd_end_lease(l->etcd, fake_etcd_lease_of(l->etcd, "/p/m/b"));
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	run_both_until_back(l, f, 1);
	assert_int_equal(w->status, 0);
	assert_int_equal(nodes_of(f), LARGE);
	forwarding_end(f);
}

/* The lease of a request's appliance ends when its parts are staged, and it is not. */
static void
lease_ends_before_request(struct leader *l)
{
	fake_etcd_ends_before(l->etcd, "/v3/kv/txn", "/p/q/0",
		fake_etcd_lease_of(l->etcd, "/p/m/b"));
}

static void
test_config_whose_lease_ends_before_its_request(void **state)
{
	struct leader *l = *state, *f = follower_start(l);
	struct sa_write *w = config_of(f, 0, 1, LARGE);

	lease_ends_before_request(l);
	store_forward_batch(f->forward, &w, 1, 1000);
	run_both_until_back(l, f, 1);
	assert_int_equal(w->status, 0);
	assert_int_equal(nodes_of(f), LARGE);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
	forwarding_end(f);
}

/* An import at a follower, with all threads in one. */
struct import_here {
	struct leader *l, *f;
	struct import_request request;
	unsigned int asked;
};

static int
import_here_call(void *arg, int (*fn)(struct fleet *f, void *arg), void *fn_arg)
{
	struct import_here *h = arg;

	return fn(h->f->engine.fleet, fn_arg);
}

static bool
import_here_pause(void *arg)
{
	(void)arg;
	usleep(10000);
	return true;
}

static bool
import_here_stops(void *arg)
{
	(void)arg;
	return false;
}

static bool
import_here_ask(void *arg)
{
	struct import_here *h = arg;
	struct sa_write *w = &h->request.write;

	h->asked++;
	store_forward_batch(h->f->forward, &w, 1, 1000);
	run_both_until_back(h->l, h->f, h->asked);
	return true;
}

static void
test_import_whose_lease_ends_before_its_request(void **state)
{
	struct sa_change c[3] = { import_node(5), import_node(6), import_node(7) };
	struct leader *l = *state, *f = follower_start(l);
	struct import_here here = { .l = l, .f = f };
	const struct import_thread thread = {
		.owner = "b",
		.part_max = STAGED_PART_MAX,
		.random = rte_rand,
		.call = import_here_call,
		.pause = import_here_pause,
		.stops = import_here_stops,
		.ask = import_here_ask,
		.arg = &here,
	};
	struct error err = { "" };

	lease_ends_before_request(l);
	if (import_staged(&thread, &here.request, SA_REPLACE_NOTHING, c, 3, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(here.asked, 2);
	assert_int_equal(nodes_of(l), 3);
	assert_int_equal(nodes_of(f), 3);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/s/"), 0);
	forwarding_end(f);
}

/* Whoever is asked, and however large it is: the client does not wait until it gives up. */
static void
test_changes_are_refused_while_etcd_has_no_room(void **state)
{
	struct leader *l = *state, *f = follower_start(l);
	struct sa_write *here = config_of(l, 0, 1, 1);
	struct sa_write *there[2] = { config_of(f, 0, 1, 1), config_of(f, 1, 1, LARGE) };

	fake_etcd_full(l->etcd, true);
	store_forward_batch(l->forward, &here, 1, 1000);
	run_until_back(l, 1);
	assert_int_equal(here->status, SA_STATUS_NO_RESOURCES);
	store_forward_batch(f->forward, there, 2, 1000);
	run_until_back(f, 2);
	assert_int_equal(there[0]->status, SA_STATUS_NO_RESOURCES);
	assert_int_equal(there[1]->status, SA_STATUS_NO_RESOURCES);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	fake_etcd_full(l->etcd, false);
	while (fleet_is_full(l->engine.fleet))
		usleep(1000);
	store_forward_batch(l->forward, &here, 1, 1000);
	run_until_back(l, 2);
	assert_int_equal(here->status, 0);
	forwarding_end(f);
}

#define STEP_MS 50
#define STEPS   1200 /* a minute */

/* Transactions that a leader sends in a minute. */
static unsigned int
transactions_of_a_minute(struct leader *l)
{
	unsigned int i, before = fake_etcd_count(l->etcd, "/v3/kv/txn");

	for (i = 0; i < STEPS; i++) {
		cycles_ahead += l->engine.hz / 1000 * STEP_MS;
		store_forward_run(l->forward, 1000);
	}
	return fake_etcd_count(l->etcd, "/v3/kv/txn") - before;
}

/*
 * A request waits at the leader when etcd becomes full. It is tried ever more seldom, and at once
 * when there is room.
 */
static void
test_leader_tries_seldom_while_etcd_is_full(void **state)
{
	static uint8_t bytes[FORWARD_REQUEST_MAX];
	struct fleet_message request = { .bytes = bytes };
	struct leader *l = *state;
	struct sa_write *w = config_of(l, 0, 0x100, 1);
	char id[FORWARD_ID_LEN + 1], answer[128];

	request.id = id;
	request.len = forward_put_request(w, NULL, bytes, id);
	put_key_of(w, "/p/a/", answer);
	assert_int_equal(fleet_ask(l->engine.fleet, &request, 1, NULL), 0);
	fake_etcd_full(l->etcd, true);
	while (!fleet_is_full(l->engine.fleet)) {
		store_forward_run(l->forward, 1000);
		usleep(1000);
	}
	/* each try is a transaction and a look whether it was executed: 19 tries in 60 s */
	assert_in_range(transactions_of_a_minute(l), 10, 60);
	assert_int_equal(nodes_of(l), 0);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 1);
	fake_etcd_full(l->etcd, false);
	assert_int_equal(answered_status(l, answer), 0);
	assert_int_equal(nodes_of(l), 1);
}

/* A follower's request is in etcd when that becomes full, and nobody serves it. */
static void
ask_and_fill(struct leader *l, struct leader *f, struct sa_write *w)
{
	store_forward_batch(f->forward, &w, 1, 1000);
	while (fake_etcd_keys(l->etcd, "/p/q/") == 0)
		store_forward_run(f->forward, 1000);
	fake_etcd_full(l->etcd, true);
	while (!fleet_is_full(f->engine.fleet))
		assert_int_not_equal(fleet_stage_put(f->engine.fleet, 9, 0, "x", 1, NULL), 0);
}

/* The request could not be taken back: it may be executed, so its client waits for the answer. */
static void
test_wait_outlasts_a_withdrawal_that_fails(void **state)
{
	struct leader *l = *state, *f = follower_start(l);
	struct sa_write *w = config_of(f, 0, 0x100, 1);
	unsigned int before;

	ask_and_fill(l, f, w);
	fake_etcd_next(l->etcd, "/v3/kv/txn", "/p/q/0", FAKE_NO_LEADER, 40); /* over a second */
	before = fake_etcd_count(l->etcd, "/v3/kv/txn");
	store_forward_run(f->forward, 1000);
	assert_true(fake_etcd_count(l->etcd, "/v3/kv/txn") > before);
	assert_int_equal(f->back, 0);
	run_until_back(f, 1);
	assert_int_equal(w->status, SA_STATUS_NO_RESOURCES);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	forwarding_end(f);
}

/* An import that nobody has made: its operator is told so, and why. */
static void
test_import_without_room_says_so(void **state)
{
	struct staged_head head = { .replace = SA_REPLACE_NOTHING };
	struct leader *l = *state, *f = follower_start(l);
	struct sa_change c = import_node(5);
	struct sa_write *w[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		w[i] = import_of(f, i, &head, &c, 1, 1);
	/* it is in etcd, and is taken back */
	ask_and_fill(l, f, w[0]);
	run_until_back(f, 1);
	assert_int_equal(fake_etcd_keys(l->etcd, "/p/q/"), 0);
	/* it was known that there is no room */
	store_forward_batch(f->forward, &w[1], 1, 1000);
	run_until_back(f, 2);
	/* it was not known */
	fake_etcd_full(l->etcd, false);
	while (fleet_is_full(f->engine.fleet))
		usleep(1000);
	fake_etcd_full(l->etcd, true);
	store_forward_batch(f->forward, &w[2], 1, 1000);
	run_until_back(f, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(w[i]->status, SA_STATUS_NO_RESOURCES);
		assert_true(w[i]->not_made);
		assert_non_null(strstr((const char *)w[i]->rec, "--quota-backend-bytes"));
	}
	assert_int_equal(nodes_of(l), 0);
	forwarding_end(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_import_of_another_appliance_is_one_change,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_large_config_is_one_change, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(
			test_large_config_of_another_appliance_is_one_change, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_large_config_without_its_parts_is_refused,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_import_is_made_once, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(
			test_leader_undoes_an_import_whose_requester_has_gone, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_stop_ends_what_takes_long, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_change_for_now_does_not_wait, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_import_is_refused_as_a_whole, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_import_without_its_parts_is_refused,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_import_beyond_the_leaders_limit_is_refused,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(
			test_changes_too_many_for_one_transaction_are_halved, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_change_too_large_by_itself_is_refused,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_changes_beyond_one_transaction_are_one_change,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_parts_of_a_config_go_with_the_lease,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_config_whose_lease_ends_before_its_request,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_import_whose_lease_ends_before_its_request,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_changes_are_refused_while_etcd_has_no_room,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_leader_tries_seldom_while_etcd_is_full,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_wait_outlasts_a_withdrawal_that_fails,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_import_without_room_says_so, leader_setup,
			leader_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
