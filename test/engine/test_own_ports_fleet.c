/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* When an appliance's wish for records of its own ports is renewed, and what it is meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/own_ports_fleet.h"
#include "engine/own_wish.h"
#include "engine/worker.h"

int engine_logtype;

static const struct port_attr *attr; /* of the only port; each change of a port makes another */
static uint8_t request; /* what the next request is; 0: there is no memory for it */
static uint8_t wish; /* 0: none yet */
static unsigned int requests;

unsigned int
link_num_ports(const struct link *l)
{
	(void)l;
	return 1;
}

const struct port_attr *
link_port_attr(const struct link *l, unsigned int port)
{
	(void)l;
	(void)port;
	return attr;
}

size_t
own_ports_request(struct engine *e, const struct sa_change *native, size_t num_native,
	uint8_t *bytes)
{
	(void)e;
	(void)native;
	(void)num_native;
	requests++;
	bytes[0] = request;
	return request != 0 ? 1 : 0;
}

void
own_wish_set(struct own_wish *o, const uint8_t *bytes, size_t len)
{
	(void)o;
	wish = len > 0 ? bytes[0] : 0;
}

void
own_wish_destroy(struct own_wish *o)
{
	(void)o;
}

/* A heartbeat, at which a request would be this one. */
static void
follow(struct engine *e, uint8_t next)
{
	request = next;
	own_ports_fleet_follow(e);
}

static void
test_wish_is_renewed_when_a_port_changes(void **state)
{
	static struct port_attr port[2];
	static struct engine e;

	(void)state;
	e.own_wish = (struct own_wish *)&e;
	attr = &port[0];
	requests = 0;
	follow(&e, 1);
	assert_int_equal(wish, 1);
	follow(&e, 2);
	assert_int_equal(wish, 1); /* nothing has changed */
	assert_int_equal(requests, 1);
	attr = &port[1];
	follow(&e, 2);
	assert_int_equal(wish, 2);
}

static void
test_wish_without_memory_stays_and_is_renewed_later(void **state)
{
	static struct port_attr port[2];
	static struct engine e;

	(void)state;
	e.own_wish = (struct own_wish *)&e;
	attr = &port[0];
	follow(&e, 1);
	attr = &port[1];
	follow(&e, 0);
	assert_int_equal(wish, 1);
	follow(&e, 2);
	assert_int_equal(wish, 2);
	requests = 0;
	follow(&e, 3);
	assert_int_equal(requests, 0);
	/* and if it is the records of native ports that have changed */
	request = 0;
	own_ports_fleet_native(&e, NULL, 0);
	assert_int_equal(wish, 2);
	follow(&e, 3);
	assert_int_equal(wish, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wish_is_renewed_when_a_port_changes),
		cmocka_unit_test(test_wish_without_memory_stays_and_is_renewed_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
