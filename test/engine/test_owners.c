/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Objects of services and objects of callers are separate: neither keeps the other's alive, and
 * callers get the same numbers as without services.
 */

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/verbs_cm.h"
#include "node.h"

#define SERVICE_ID 77
#define PATIENCE_S 60 /* SIGALRM ends a test that hangs */

static struct engine_config *
owners_config(void)
{
	struct engine_config *c = node_config();

	c->cm = cm_limits_default;
	c->cm.max_connections = 64;
	return c;
}

static int
owners_start(void **state)
{
	owners_config();
	*state = node_start();
	alarm(PATIENCE_S);
	return 0;
}

static int
owners_stop(void **state)
{
	node_stop(*state, 0);
	alarm(0);
	return 0;
}

static uint32_t
listen_echo(struct engine *e)
{
	struct svc_config c = {
		.kind = "echo",
		.service_id = SERVICE_ID,
		.size = 64,
		.max_connections = 10000,
	};
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_cm_listen(e, &c, &id, &err));
	return id;
}

static unsigned int
owners_num_services(struct engine *e)
{
	struct engine_service_info info;
	unsigned int n = 0;
	uint64_t cursor = 0;

	engine_cm_watch(e);
	while (engine_service_next(e, &cursor, &info))
		n++;
	return n;
}

/* --- a QP that uses a service's objects, which no verb can create --- */

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

/* Create the QP with the domain and CQ of the service, which has the only ones. */
static struct stray
stray(struct engine *e)
{
	struct stray s = { .init = { .qp_type = QPT_RC, .srq = RC_NO_SRQ,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1, }, } };
	struct mem_mr_info mr;
	struct rc_cq_info cq;
	uint64_t cursor = 0;

	assert_true(engine_cq_next(e, &cursor, &cq));
	cursor = 0;
	assert_true(engine_mr_next(e, &cursor, &mr));
	s.init.pd = mr.pd;
	s.init.send_cq = cq.cqn;
	s.init.recv_cq = cq.cqn;
	assert_int_equal(engine_call(e, 0, stray_create, &s), 0);
	return s;
}

/* Unlisten of a busy service does not block; the service is removed later. */
static void
test_busy_service_is_tried_again(void **state)
{
	struct engine *e = *state;
	uint32_t id = listen_echo(e);
	struct stray s = stray(e);
	struct mem_mr_info mr;
	struct rc_cq_info cq;
	uint64_t cursor = 0;

	assert_int_equal(engine_cm_unlisten(e, id, true, NULL), 0);
	assert_int_equal(owners_num_services(e), 1);
	assert_int_equal(owners_num_services(e), 1);
	assert_int_equal(engine_cm_unlisten(e, id, true, NULL), 0);
	assert_int_equal(engine_call(e, 0, stray_destroy, &s), 0);
	eventually(owners_num_services(e) == 0);
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

/* engine_stop() destroys QPs first, so it does not hang and frees the service's memory. */
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
		owners_start(state);
		e = *state;
	}
}

/* --- ownership --- */

struct things {
	uint32_t pd;
	uint32_t cq;
	uint32_t key; /* a region */
	uint32_t window;
};

/* @return the objects of the only service, which has memory per connection */
static struct things
things_of_service(struct engine *e)
{
	struct svc_config c = {
		.name = "mine",
		.kind = "memory",
		.service_id = SERVICE_ID,
		.length = 4096,
		.per_connection = true,
		.max_connections = 1,
	};
	struct error err = { "" };
	struct mem_mw_info mw;
	struct mem_mr_info mr;
	struct rc_cq_info cq;
	uint64_t cursor = 0;
	uint32_t id;

	assert_ok(engine_cm_listen(e, &c, &id, &err));
	assert_true(engine_cq_next(e, &cursor, &cq));
	cursor = 0;
	assert_true(engine_mr_next(e, &cursor, &mr));
	cursor = 0;
	assert_true(engine_mw_next(e, &cursor, &mw));
	return (struct things){ mr.pd, cq.cqn, mr.key, mw.key };
}

#define refused(call, ...)                                                                         \
	do {                                                                                       \
		struct error err = { "" };                                                         \
		char text_[128];                                                                   \
		snprintf(text_, sizeof(text_), __VA_ARGS__);                                       \
		assert_int_equal(call, -EPERM);                                                    \
		assert_string_equal(err.text, text_);                                              \
	} while (0)

static void
test_domain_of_a_service_is_refused_to_callers(void **state)
{
	struct engine *e = *state;
	struct things its = things_of_service(e);
	struct mem_mr_attr mr = { .pd = its.pd, .length = 4096, .numa_node = -1 };
	struct mem_mr_info info;
	struct end own;
	uint32_t n;

	end_create(e, &own, 0);
	refused(engine_pd_free(e, its.pd, &err), "pd: %u belongs to service \"mine\"", its.pd);
	refused(engine_mr_register(e, &mr, 0, &info, &err), "pd: %u belongs to service \"mine\"",
		its.pd);
	refused(engine_mw_alloc(e, its.pd, MEM_MW_TYPE_1, &n, &err),
		"pd: %u belongs to service \"mine\"", its.pd);
	refused(engine_srq_create(e, 0, its.pd, 1, 1, &n, &err),
		"pd: %u belongs to service \"mine\"", its.pd);
	assert_string_equal(engine_pd_service(e, its.pd), "mine");
	assert_string_equal(engine_pd_service(e, own.pd), "");
	end_destroy(e, &own);
}

static void
test_memory_of_a_service_is_refused_to_callers(void **state)
{
	struct engine *e = *state;
	struct things its = things_of_service(e);
	struct svc_config c = {
		.kind = "memory",
		.service_id = SERVICE_ID + 1,
		.mr_key = its.key,
	};
	uint8_t byte = 0;
	uint32_t id;

	refused(engine_mr_read(e, its.key, 0, &byte, 1, &err),
		"key: 0x%08x belongs to service \"mine\"", its.key);
	refused(engine_mr_write(e, its.key, 0, &byte, 1, &err),
		"key: 0x%08x belongs to service \"mine\"", its.key);
	refused(engine_mr_deregister(e, its.key, &err), "key: 0x%08x belongs to service \"mine\"",
		its.key);
	refused(engine_mw_free(e, its.window, &err), "key: 0x%08x belongs to service \"mine\"",
		its.window);
	refused(engine_cm_listen(e, &c, &id, &err), "mr_key: 0x%08x belongs to service \"mine\"",
		its.key);
}

static void
test_cq_of_a_service_is_refused_to_callers(void **state)
{
	struct engine *e = *state;
	struct things its = things_of_service(e);
	struct engine_ah ah = { .dgid = link_port_attr(engine_link(e), 1)->gid[0].gid };
	struct engine_cm_connect r = { .ah = &ah, .service_id = 1, .worker = -1 };
	struct qp_init_attr init;
	struct rc_qp_info qp;
	struct error err = { "" };
	struct end own;
	struct wc wc;
	uint32_t n;

	end_create(e, &own, 0);
	assert_ok(engine_qp_query(e, own.qpn, &qp, &err));
	refused(engine_cq_poll(e, its.cq, &wc, 1, &err), "cq: %u belongs to service \"mine\"",
		its.cq);
	refused(engine_cq_arm(e, its.cq, false, &err), "cq: %u belongs to service \"mine\"",
		its.cq);
	refused(engine_cq_destroy(e, its.cq, &err), "cq: %u belongs to service \"mine\"", its.cq);
	init = qp.init;
	init.send_cq = its.cq;
	refused(engine_qp_create(e, -1, &init, &n, &err), "send_cq: %u belongs to service \"mine\"",
		its.cq);
	r.param.qp = init;
	refused(engine_cm_connect(e, &r, &n, &err), "send_cq: %u belongs to service \"mine\"",
		its.cq);
	init = qp.init;
	init.recv_cq = its.cq;
	refused(engine_qp_create(e, -1, &init, &n, &err), "recv_cq: %u belongs to service \"mine\"",
		its.cq);
	init = qp.init;
	init.pd = its.pd;
	refused(engine_qp_create(e, -1, &init, &n, &err), "pd: %u belongs to service \"mine\"",
		its.pd);
	assert_string_equal(engine_cq_service(e, its.cq), "mine");
	assert_string_equal(engine_cq_service(e, own.cq), "");
	end_destroy(e, &own);
}

static void
test_qp_of_a_service_is_refused_to_callers(void **state)
{
	struct send_wr send = { .opcode = WR_SEND };
	struct recv_wr recv = { .wr_id = 1 };
	struct engine *e = *state;
	struct qp_attr attr = { .qp_state = QPS_ERR };
	struct stray s;

	listen_echo(e);
	s = stray(e);
	refused(engine_qp_modify(e, s.qpn, &attr, NULL, QP_ATTR_STATE, &err),
		"qp: 0x%06x belongs to service \"echo\"", s.qpn);
	refused(engine_post_send(e, s.qpn, &send, 1, &err),
		"qp: 0x%06x belongs to service \"echo\"", s.qpn);
	refused(engine_post_recv(e, s.qpn, &recv, 1, &err),
		"qp: 0x%06x belongs to service \"echo\"", s.qpn);
	refused(engine_qp_destroy(e, s.qpn, &err), "qp: 0x%06x belongs to service \"echo\"", s.qpn);
}

/* A memory service uses an operator's region. Region and domain stay the operator's. */
static void
test_region_lent_to_a_service(void **state)
{
	struct engine *e = *state;
	struct svc_config c = { .kind = "memory", .service_id = SERVICE_ID };
	struct error err = { "" };
	uint8_t byte = 7;
	struct end own;
	uint32_t id, key;

	end_create(e, &own, 0);
	c.mr_key = own.mr.key;
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	assert_string_equal(engine_pd_service(e, own.pd), "");
	assert_ok(engine_mr_write(e, own.mr.key, 0, &byte, 1, &err));
	assert_ok(engine_mw_alloc(e, own.pd, MEM_MW_TYPE_1, &key, &err));
	assert_ok(engine_mw_free(e, key, &err));
	assert_ok(engine_cm_unlisten(e, id, true, &err));
	eventually(owners_num_services(e) == 0);
	assert_ok(engine_mr_read(e, own.mr.key, 0, &byte, 1, &err));
	assert_int_equal(byte, 7);
	end_destroy(e, &own);
}

/* As in README's first session: domain 1, completion queue 0. */
static void
test_numbers_of_callers_begin_as_without_services(void **state)
{
	struct engine_config *c = owners_config();
	struct error err = { "" };
	struct engine *e;
	uint32_t n;

	(void)state;
	c->num_services = 2;
	c->service[0] = (struct svc_config){ .kind = "memory", .service_id = 1 };
	c->service[1] = (struct svc_config){ .kind = "echo", .service_id = 2 };
	e = node_start();
	listen_echo(e);
	assert_ok(engine_pd_alloc(e, &n, &err));
	assert_int_equal(n, 1);
	assert_ok(engine_cq_create(e, 16, &n, &err));
	assert_int_equal(n, 0);
	node_stop(e, 0);
}

/* The default limits allow 10,000 connections from one host, on one worker. */
static void
test_defaults_hold_10000_connections(void **state)
{
	struct engine *e = *state;
	struct qp_init_attr init = { .qp_type = QPT_RC, .srq = RC_NO_SRQ,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1, }, };
	struct error err = { "" };
	unsigned int i;
	uint32_t qpn;

	assert_ok(engine_pd_alloc(e, &init.pd, &err));
	assert_ok(engine_cq_create(e, 16, &init.send_cq, &err));
	init.recv_cq = init.send_cq;
	for (i = 0; i < 10000; i++)
		assert_ok(engine_qp_create(e, 0, &init, &qpn, &err));
	assert_true(cm_limits_default.max_connections >= 10000);
	assert_true(cm_limits_default.max_connections_per_peer >= 10000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_busy_service_is_tried_again, owners_start,
			owners_stop),
		cmocka_unit_test_setup_teardown(test_stop_with_a_busy_service, owners_start,
			owners_stop),
		cmocka_unit_test_setup_teardown(test_domain_of_a_service_is_refused_to_callers,
			owners_start, owners_stop),
		cmocka_unit_test_setup_teardown(test_memory_of_a_service_is_refused_to_callers,
			owners_start, owners_stop),
		cmocka_unit_test_setup_teardown(test_cq_of_a_service_is_refused_to_callers,
			owners_start, owners_stop),
		cmocka_unit_test_setup_teardown(test_qp_of_a_service_is_refused_to_callers,
			owners_start, owners_stop),
		cmocka_unit_test_setup_teardown(test_region_lent_to_a_service, owners_start,
			owners_stop),
		cmocka_unit_test(test_numbers_of_callers_begin_as_without_services),
		cmocka_unit_test_setup_teardown(test_defaults_hold_10000_connections, owners_start,
			owners_stop),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
