/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What a leader reads from etcd before it leads and from time to time, without the fleet's thread:
 * the test calls the functions, and moves the clock.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_etcd.h"
#include "store/etcd_http.h"
#include "store/fleet_private.h"

#define SECOND 1000 /* ms */

struct prepared {
	struct fake_etcd *etcd;
	struct fleet fleet;
};

uint64_t __wrap_etcd_now_ms(void);

static uint64_t clock_ms = 1000000;

/* The linker puts it in the place of etcd_now_ms(), except in etcd_client.c. */
uint64_t
__wrap_etcd_now_ms(void)
{
	return clock_ms;
}

static void
prepare_no_wake(void *arg)
{
	(void)arg;
}

static int
prepare_setup(void **state)
{
	struct prepared *p = calloc(1, sizeof(*p));
	struct fleet *f = &p->fleet;
	struct error err = { "" };

	p->etcd = fake_etcd_start();
	f->config.num_endpoints = 1;
	snprintf(f->config.endpoint[0].url, FLEET_TEXT_MAX, "%s", fake_etcd_url(p->etcd));
	pthread_mutex_init(&f->lock, NULL);
	STAILQ_INIT(&f->queue);
	STAILQ_INIT(&f->news);
	TAILQ_INIT(&f->requests);
	TAILQ_INIT(&f->notices);
	strcpy(f->key.requests, "/p/q/");
	strcpy(f->key.requests_end, "/p/q0");
	strcpy(f->key.notices, "/p/e/");
	f->wake = prepare_no_wake;
	f->session = etcd_client_create(&f->config, &err);
	assert_non_null(f->session);
	*state = p;
	return 0;
}

static int
prepare_teardown(void **state)
{
	struct prepared *p = *state;

	fleet_requests_free(&p->fleet);
	fleet_notices_free(&p->fleet);
	etcd_client_destroy(p->fleet.session);
	pthread_mutex_destroy(&p->fleet.lock);
	fake_etcd_stop(p->etcd);
	free(p);
	return 0;
}

/* Answers have a lease of 120 s; a leader takes a new one every 60 s, so each is kept for 60 s. */
static void
test_lease_of_answers_is_renewed_after_60_s(void **state)
{
	struct prepared *p = *state;
	struct fleet *f = &p->fleet;
	uint64_t first, second;

	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	first = f->answer_lease;
	assert_int_not_equal(first, 0);
	f->lead = 5;
	clock_ms += 60 * SECOND - 1;
	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	assert_int_equal(f->answer_lease, first);
	assert_int_equal(fake_etcd_count(p->etcd, "/v3/lease/grant"), 1);
	clock_ms++;
	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	second = f->answer_lease;
	assert_int_not_equal(second, first);
	/* and again, 60 s after that */
	clock_ms += 60 * SECOND - 1;
	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	assert_int_equal(f->answer_lease, second);
	clock_ms++;
	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	assert_int_not_equal(f->answer_lease, second);
	assert_int_equal(fake_etcd_count(p->etcd, "/v3/lease/grant"), 3);
	/* the answers of the old leases are not ended by it */
	assert_int_equal(fake_etcd_count(p->etcd, "/v3/lease/revoke"), 0);
}

/* While etcd gives none, the old lease serves on, and the next look asks again. */
static void
test_lease_of_answers_serves_on_until_there_is_another(void **state)
{
	struct prepared *p = *state;
	struct fleet *f = &p->fleet;
	struct error err = { "" };
	uint64_t first;

	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	first = f->answer_lease;
	f->lead = 5;
	clock_ms += 60 * SECOND;
	fake_etcd_next(p->etcd, "/v3/lease/grant", NULL, FAKE_NO_SPACE, 1);
	assert_int_not_equal(fleet_prepare_requests(f, &err), 0);
	assert_int_equal(f->answer_lease, first);
	assert_int_equal(fleet_prepare_requests(f, NULL), 0);
	assert_int_not_equal(f->answer_lease, first);
}

#define KEPT 300 /* notices: more than two pages of 128 */

/* A new leader finds all notices that are kept, and tells them in the order of their changes. */
static void
test_notices_of_several_pages_are_read_in_order(void **state)
{
	struct prepared *p = *state;
	struct fleet *f = &p->fleet;
	struct fleet_notice *n;
	char key[32], value[16];
	unsigned int i;

	for (i = 0; i < KEPT; i++) {
		/* keys are random: here, their order is that of the changes reversed */
		snprintf(key, sizeof(key), "/p/e/%016x", 10000 - i);
		snprintf(value, sizeof(value), "%03u", i);
		fake_etcd_write(p->etcd, key, value);
	}
	fake_etcd_write(p->etcd, "/p/e0", "no notice");
	assert_int_equal(fleet_prepare_notices(f, NULL), 0);
	assert_int_equal(fake_etcd_count(p->etcd, "/v3/kv/range"), 3);
	assert_int_equal(f->num_notices, KEPT);
	f->lead = 5;
	for (i = 0; i < KEPT; i++) {
		n = fleet_take_notice(f);
		assert_non_null(n);
		snprintf(value, sizeof(value), "%03u", i);
		assert_int_equal(n->len, 3);
		assert_memory_equal(n->bytes, value, 3);
	}
	assert_null(fleet_take_notice(f));
}

/* A page that ends with the last notice is not followed by another one. */
static void
test_full_last_page_of_notices(void **state)
{
	struct prepared *p = *state;
	char key[32];
	unsigned int i;

	for (i = 0; i < 256; i++) {
		snprintf(key, sizeof(key), "/p/e/%016x", i);
		fake_etcd_write(p->etcd, key, "x");
	}
	assert_int_equal(fleet_prepare_notices(&p->fleet, NULL), 0);
	assert_int_equal(p->fleet.num_notices, 256);
	assert_int_equal(fake_etcd_count(p->etcd, "/v3/kv/range"), 2);
}

int
main(void)
{
#define PREPARE_TEST(name) cmocka_unit_test_setup_teardown(name, prepare_setup, prepare_teardown)
	const struct CMUnitTest tests[] = {
		PREPARE_TEST(test_lease_of_answers_is_renewed_after_60_s),
		PREPARE_TEST(test_lease_of_answers_serves_on_until_there_is_another),
		PREPARE_TEST(test_notices_of_several_pages_are_read_in_order),
		PREPARE_TEST(test_full_last_page_of_notices),
	};

	return cmocka_run_group_tests_name("store: what a leader reads", tests, NULL, NULL);
}
