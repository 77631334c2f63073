/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What a worker does if an allocation of its creation fails. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../counted.h"
#include "base/timer_wheel.h"
#include "mad/mad.h"

static const struct port_attr *
memory_no_port(void *arg, uint16_t port)
{
	(void)arg;
	(void)port;
	return NULL;
}

/* Each allocation fails in turn: there is no worker, and what it had taken is given back. */
static void
test_each_allocation_of_a_worker_may_fail(void **state)
{
	struct counted memory;
	struct tx_sink sink = { 0 };
	struct mad_worker_config config = {
		.workers = 1,
		.hz = 1000000000,
		.alloc = &memory.alloc,
		.rng = &rng_kernel,
		.tx = &sink,
		.port = memory_no_port,
		.limits = mad_limits_default,
	};
	struct mad_worker *w = NULL;
	unsigned int refused;

	(void)state;
	config.wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	for (refused = 0; w == NULL; refused++) {
		counted_init(&memory);
		memory.left = refused;
		w = mad_worker_create(&config);
		if (w == NULL)
			assert_int_equal(memory.held, 0);
	}
	/* the worker, two reply queues, a table of 11 at least, a pool of four */
	assert_in_range(refused, 18, 30);
	mad_worker_destroy(w);
	assert_int_equal(memory.held, 0);
	timer_wheel_destroy(config.wheel);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation_of_a_worker_may_fail),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
