/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Changes of a leader's own clients, against a scripted etcd: the SA and the store are real. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "../store/fake_etcd.h"
#include "engine/store_forward.h"
#include "engine/worker.h"
#include "sa/forward.h"
#include "sa/layout.h"
#include "sa/server.h"
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

static int
leader_setup(void **state)
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

	l->etcd = fake_etcd_start();
	strcpy(config.prefix, "/p");
	strcpy(config.name, "a");
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
	l->forward = store_forward_create(&l->engine, count_back, l);
	assert_int_equal(fleet_start(l->engine.fleet, leader_no_wake, NULL, &err), 0);
	while (!fleet_leads(l->engine.fleet)) {
		store_follow(l->engine.store, NULL);
		usleep(1000);
	}
	*state = l;
	return 0;
}

static int
leader_teardown(void **state)
{
	static const char *const files[] = { "/data.mdb", "/lock.mdb", "/polca.lock", "" };
	struct leader *l = *state;
	char path[128];
	unsigned int i;

	fleet_stop(l->engine.fleet);
	store_forward_destroy(l->forward);
	sa_destroy(l->engine.sa);
	store_destroy(l->engine.store);
	fake_etcd_stop(l->etcd);
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", l->dir, files[i]);
		remove(path);
	}
	for (i = 0; i < CONFIGS; i++)
		free(l->records[i]);
	free(l);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_changes_too_many_for_one_transaction_are_halved, leader_setup,
			leader_teardown),
		cmocka_unit_test_setup_teardown(test_change_too_large_by_itself_is_refused,
			leader_setup, leader_teardown),
		cmocka_unit_test_setup_teardown(test_changes_beyond_one_transaction_are_one_change,
			leader_setup, leader_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
