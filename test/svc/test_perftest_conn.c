/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * perftest's server with -R: the first connection carries the exchange, the others the traffic. The
 * test acts as the client. In its memory messages begin at 0, and the server writes from TARGET on.
 */

#include <string.h>

#include "bench.h"
#include "svc/perftest_exchange.h"
#include "svc/private.h"
#include "wire/bytes.h"

#define TARGET 64

static const struct svc_config server_config = { .kind = "perftest", .length = 4096 };

static struct service *
perftest_conn_server(struct bench *b)
{
	return serve(b, &b->w->b, &server_config);
}

/* The client disconnects both of its connections. */
static void
perftest_conn_leave(struct bench *b, struct life *l, struct life *traffic)
{
	if (l != NULL)
		disconnect(l);
	if (traffic != NULL)
		disconnect(traffic);
	exchange(b->w);
	expect_all_released(b);
}

/* Send a message, and receive an answer of the same length at the beginning of the memory. */
static void
perftest_conn_ask(struct bench *b, struct life *l, const void *message, uint32_t len)
{
	memcpy(l->node->bytes, message, len);
	assert_int_equal(say(b, l, len), WC_SUCCESS);
	assert_int_equal(heard(l).byte_len, len);
}

static struct life *
perftest_conn_greet(struct bench *b)
{
	static const uint8_t version[16] = "6.06", cycle[4] = { 0, 0, 0x10, 0 }, mtu[2] = "3";
	struct life *l = call(b);

	perftest_conn_ask(b, l, version, 16);
	assert_memory_equal(l->node->bytes, version, 16);
	perftest_conn_ask(b, l, cycle, 4);
	assert_memory_equal(l->node->bytes, cycle, 4);
	perftest_conn_ask(b, l, cycle, 4);
	perftest_conn_ask(b, l, mtu, 2);
	assert_memory_equal(l->node->bytes, "3", 2);
	return l;
}

/* Describe the QP of @p other over the connection @p l. */
static struct perftest_dest
perftest_conn_tell(struct bench *b, struct life *l, const struct life *other)
{
	struct perftest_dest d = { .out_reads = 1, .has_gid = true };
	uint8_t bytes[PERFTEST_BYTES];

	if (other != NULL) {
		d.qpn = other->qpn;
		d.rkey = l->node->key;
		d.va = l->node->va + TARGET;
	}
	perftest_bytes_write(&d, bytes);
	perftest_conn_ask(b, l, bytes, PERFTEST_BYTES);
	perftest_bytes_read(l->node->bytes, &d);
	return d;
}

/* ib_write_bw: Writes reach the described memory, and the server writes nothing. */
static void
test_writes_reach_the_described_memory(void **state)
{
	struct bench *b = *state;
	struct service *s = perftest_conn_server(b);
	struct life *l = perftest_conn_greet(b), *traffic;
	struct perftest_dest ours;

	perftest_conn_tell(b, l, NULL);
	traffic = call(b);
	perftest_conn_tell(b, l, traffic);
	ours = perftest_conn_tell(b, l, traffic);
	memset(l->node->bytes + TARGET, 0x55, 64);
	assert_int_equal(rdma(b, traffic, WR_RDMA_WRITE, TARGET, 64, ours.va, ours.rkey),
		WC_SUCCESS);
	memset(l->node->bytes + TARGET, 0, 64);
	assert_int_equal(rdma(b, traffic, WR_RDMA_READ, TARGET, 64, ours.va, ours.rkey),
		WC_SUCCESS);
	assert_int_equal(l->node->bytes[TARGET + 63], 0x55);
	assert_int_equal(rdma(b, traffic, WR_ATOMIC_FETCH_AND_ADD, TARGET, 8, ours.va, ours.rkey),
		WC_SUCCESS);
	/* but not beyond that memory */
	assert_int_equal(rdma(b, traffic, WR_RDMA_WRITE, TARGET, 64, ours.va - (1 << 20),
				 ours.rkey),
		WC_REM_ACCESS_ERR);
	assert_int_equal(figures(s).violations, 0);
	perftest_conn_leave(b, l, NULL);
}

/* ib_write_lat: after the client's fourth description the server writes first; then both count. */
static void
test_server_begins_to_write(void **state)
{
	struct bench *b = *state;
	struct life *l, *traffic;
	struct perftest_dest ours;
	uint8_t n;

	perftest_conn_server(b);
	l = perftest_conn_greet(b);
	traffic = call(b);
	for (n = 1; n <= 4; n++) {
		assert_int_equal(l->node->bytes[TARGET], 0);
		ours = perftest_conn_tell(b, l, traffic);
	}
	assert_int_equal(l->node->bytes[TARGET], 1);
	assert_int_equal(l->node->bytes[TARGET + 2000], 1);
	assert_int_equal(l->node->bytes[TARGET + 4095], 1);
	for (n = 1; n <= 20; n++) {
		l->node->bytes[0] = 0;
		l->node->bytes[1] = n;
		assert_int_equal(rdma(b, traffic, WR_RDMA_WRITE, 0, 2, ours.va, ours.rkey),
			WC_SUCCESS);
		assert_int_equal(l->node->bytes[TARGET + 1], n + 1);
	}
	perftest_conn_leave(b, l, traffic);
}

/* ib_read_lat describes as often, but with a depth of Reads; ib_send_lat describes no memory. */
static void
test_server_writes_only_to_ib_write_lat(void **state)
{
	struct bench *b = *state;
	struct life *l, *traffic;
	struct perftest_dest d = { .has_gid = true };
	uint8_t bytes[PERFTEST_BYTES];
	unsigned int i;

	perftest_conn_server(b);
	l = perftest_conn_greet(b);
	traffic = call(b);
	d.qpn = traffic->qpn;
	d.va = l->node->va + TARGET;
	for (i = 0; i < 10; i++) {
		d.out_reads = i < 5 ? 128 : 1;
		d.rkey = i < 5 ? l->node->key : 0;
		perftest_bytes_write(&d, bytes);
		perftest_conn_ask(b, l, bytes, PERFTEST_BYTES);
	}
	assert_int_equal(l->node->bytes[TARGET], 0);
	perftest_conn_leave(b, l, traffic);
}

/* ib_send_lat: the first Send is answered when no other follows for a while, later ones at once. */
static void
test_sends_are_answered(void **state)
{
	struct bench *b = *state;
	struct service *s = perftest_conn_server(b);
	struct life *l;
	unsigned int i;

	l = call(b);
	assert_int_equal(say(b, l, 2), WC_SUCCESS);
	expect_nothing_heard(l);
	pass(b->w, SECOND / 1000);
	assert_int_equal(heard(l).byte_len, 2);
	for (i = 0; i < 10; i++)
		perftest_conn_ask(b, l, "xy", 2);
	assert_int_equal(figures(s).messages_in, 11);
	assert_int_equal(figures(s).messages_out, 11);
	perftest_conn_leave(b, l, NULL);
}

static unsigned int
turning(const struct service *s)
{
	const struct svc_conn *c;
	unsigned int n = 0;

	TAILQ_FOREACH(c, &s->w->turning, turn)
		n++;
	return n;
}

/* The worker polls only connections whose program is unknown yet, or which get no completions. */
static void
test_only_connections_that_need_it_are_polled(void **state)
{
	struct bench *b = *state;
	struct service *s = perftest_conn_server(b);
	struct life *l = perftest_conn_greet(b), *writes, *sends;
	struct perftest_dest ours;

	assert_int_equal(turning(s), 0); /* the connection of the exchange */
	writes = call(b);
	assert_int_equal(turning(s), 1);
	ours = perftest_conn_tell(b, l, writes);
	assert_int_equal(rdma(b, writes, WR_RDMA_WRITE, TARGET, 64, ours.va, ours.rkey),
		WC_SUCCESS);
	assert_int_equal(turning(s), 0); /* a connection of ib_write_bw */
	sends = call(b);
	assert_int_equal(say(b, sends, 2), WC_SUCCESS);
	assert_int_equal(turning(s), 1); /* its first Send waits for an answer */
	pass(b->w, SECOND / 1000);
	assert_int_equal(heard(sends).byte_len, 2);
	assert_int_equal(turning(s), 0);
	disconnect(sends);
	sends = call(b);
	assert_int_equal(turning(s), 1);
	disconnect(sends); /* while the worker polls it */
	exchange(b->w);
	assert_int_equal(turning(s), 0);
	perftest_conn_leave(b, l, writes);
}

static void
test_malformed_message_ends_the_connection(void **state)
{
	struct bench *b = *state;
	struct service *s = perftest_conn_server(b);
	struct life *l = perftest_conn_greet(b);

	memset(l->node->bytes, 'x', 60);
	say(b, l, 60);
	assert_int_equal(figures(s).violations, 1);
	expect_all_released(b);
}

/* A client's key allows access to its own memory only; the next client gets another key. */
static void
test_each_client_has_its_own_key(void **state)
{
	struct bench *b = *state;
	struct life *l, *other, *traffic;
	struct perftest_dest first, second, again;

	perftest_conn_server(b);
	l = perftest_conn_greet(b);
	first = perftest_conn_tell(b, l, NULL);
	other = perftest_conn_greet(b);
	second = perftest_conn_tell(b, other, NULL);
	assert_int_not_equal(first.rkey, second.rkey);
	assert_true(first.va != second.va);
	traffic = call(b);
	assert_int_equal(rdma(b, traffic, WR_RDMA_WRITE, TARGET, 64, second.va, second.rkey),
		WC_SUCCESS);
	assert_int_equal(rdma(b, traffic, WR_RDMA_WRITE, TARGET, 64, first.va, second.rkey),
		WC_REM_ACCESS_ERR);
	disconnect(other);
	perftest_conn_leave(b, l, NULL);
	l = perftest_conn_greet(b);
	again = perftest_conn_tell(b, l, NULL);
	assert_int_not_equal(again.rkey, first.rkey);
	assert_int_not_equal(again.rkey, second.rkey);
	perftest_conn_leave(b, l, NULL);
}

static void
test_parameters_of_the_service_are_checked(void **state)
{
	struct svc_config small = { .kind = "perftest", .length = 100 };
	struct svc_config large = { .kind = "perftest", .length = 8192, .size = 8193 };

	expect_refusal(*state, &small, "length: got 100, allowed: 4096 to 4294967295");
	expect_refusal(*state, &large, "size: got 8193, allowed: 0 to 8192");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_writes_reach_the_described_memory, bench_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_server_begins_to_write, bench_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_server_writes_only_to_ib_write_lat,
			bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(test_sends_are_answered, bench_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_only_connections_that_need_it_are_polled,
			bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(test_malformed_message_ends_the_connection,
			bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(test_each_client_has_its_own_key, bench_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_parameters_of_the_service_are_checked,
			bench_setup, bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
