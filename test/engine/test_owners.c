/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What services have and what callers have: neither hangs on the other's, and callers find their
 * numbers as if there were no services.
 */

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "engine/verbs_cm.h"
#include "node.h"

#define SERVICE_ID 77
#define PATIENCE_S 60 /* what hangs dies by SIGALRM */

static struct engine_config *
config(void)
{
	struct engine_config *c = node_config();

	c->cm = cm_limits_default;
	c->cm.max_connections = 64;
	return c;
}

static int
start(void **state)
{
	config();
	*state = node_start();
	alarm(PATIENCE_S);
	return 0;
}

static int
stop(void **state)
{
	node_stop(*state, 0);
	alarm(0);
	return 0;
}

static uint32_t
listen_echo(struct engine *e)
{
	struct svc_config c = { .kind = "echo", .service_id = SERVICE_ID, .size = 64,
		.max_connections = 10000 };
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_cm_listen(e, &c, &id, &err));
	return id;
}

static unsigned int
num_services(struct engine *e)
{
	struct engine_service_info info;
	unsigned int n = 0;
	uint32_t cursor = 0;

	engine_cm_watch(e);
	while (engine_service_next(e, &cursor, &info))
		n++;
	return n;
}

/* --- a queue pair on what is a service's: no verb makes one --- */

struct stray {
	struct qp_init_attr init;
	uint32_t qpn;
	struct error err;
};

static int
stray_create(struct worker *w, void *arg)
{
	struct stray *s = arg;

	return rc_qp_create(worker_rc(w), &s->init, &s->qpn, &s->err);
}

static int
stray_destroy(struct worker *w, void *arg)
{
	struct stray *s = arg;

	return rc_qp_destroy(worker_rc(w), s->qpn, &s->err);
}

/* The service is the only one that has anything. */
static struct stray
stray(struct engine *e)
{
	struct stray s = { .init = { .qp_type = QPT_RC, .srq = RC_NO_SRQ,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1 } } };
	struct mem_mr_info mr;
	struct rc_cq_info cq;
	uint32_t cursor = 0;

	assert_true(engine_cq_next(e, &cursor, &cq));
	cursor = 0;
	assert_true(engine_mr_next(e, &cursor, &mr));
	s.init.pd = mr.pd;
	s.init.send_cq = cq.cqn;
	s.init.recv_cq = cq.cqn;
	assert_int_equal(engine_call(e, 0, stray_create, &s), 0);
	return s;
}

/* The control thread goes on, and the service goes when it can. */
static void
test_busy_service_is_tried_again(void **state)
{
	struct engine *e = *state;
	uint32_t id = listen_echo(e);
	struct stray s = stray(e);
	struct mem_mr_info mr;
	struct rc_cq_info cq;
	uint32_t cursor = 0;

	assert_int_equal(engine_cm_unlisten(e, id, true, NULL), 0);
	assert_int_equal(num_services(e), 1);
	assert_int_equal(num_services(e), 1);
	assert_int_equal(engine_cm_unlisten(e, id, true, NULL), 0);
	assert_int_equal(engine_call(e, 0, stray_destroy, &s), 0);
	eventually(num_services(e) == 0);
	assert_false(engine_cq_next(e, &cursor, &cq));
	cursor = 0;
	assert_false(engine_mr_next(e, &cursor, &mr));
}

static size_t
heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Queue pairs go first: it neither hangs nor leaves the service's megabytes behind. */
static void
test_stop_with_a_busy_service(void **state)
{
	struct engine *e = *state;
	size_t before = 0;
	int round;

	for (round = 0; round < 3; round++) {
		listen_echo(e);
		stray(e);
		node_stop(e, 100);
		if (round == 0)
			before = heap();
		assert_in_range(heap(), 0, before + (1 << 20));
		start(state);
		e = *state;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_busy_service_is_tried_again, start, stop),
		cmocka_unit_test_setup_teardown(test_stop_with_a_busy_service, start, stop),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
