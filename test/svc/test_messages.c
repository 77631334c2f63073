/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The service kinds "echo", "sink" and "ucmatose" (docs/services.md). */

#include <string.h>

#include "../checked.h"
#include "bench.h"
#include "svc/private.h"

/* --- echo --- */

static const struct svc_config echo = { .kind = "echo", .size = 64, .depth = 2 };

/* a sends from the second half of its memory, and receives into the first half. */
static void
test_echo_sends_messages_back(void **state)
{
	struct bench *b = *state;
	struct node *a = &b->w->a;
	struct sge sge = { a->va + 2048, 11, a->key };
	struct send_wr wr = {
		.opcode = WR_SEND,
		.send_flags = SEND_SIGNALED,
		.num_sge = 1,
		.sg_list = &sge,
	};
	struct life *l;
	unsigned int i;

	serve(b, &b->w->b, &echo);
	l = call(b);
	for (i = 0; i < 5; i++) { /* more messages than receives are posted */
		memset(a->bytes, 0, 64);
		memcpy(a->bytes + 2048, "Hello, echo", 11);
		a->bytes[2048 + 10] = (uint8_t)('0' + i);
		assert_int_equal(act(b, l, &wr), WC_SUCCESS);
		assert_int_equal(heard(l).byte_len, 11);
		assert_memory_equal(a->bytes, a->bytes + 2048, 11);
	}
}

static void
test_immediate_data_and_empty_messages_come_back(void **state)
{
	struct bench *b = *state;
	struct send_wr wr = {
		.opcode = WR_SEND_WITH_IMM,
		.send_flags = SEND_SIGNALED,
		.imm_data = 0xCAFE0001,
	};
	struct life *l;
	struct wc wc;

	serve(b, &b->w->b, &echo);
	l = call(b);
	assert_int_equal(act(b, l, &wr), WC_SUCCESS);
	wc = heard(l);
	assert_int_equal(wc.wc_flags & WC_WITH_IMM, WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0xCAFE0001);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(say(b, l, 64), WC_SUCCESS);
	wc = heard(l);
	assert_int_equal(wc.wc_flags & WC_WITH_IMM, 0);
	assert_int_equal(wc.byte_len, 64);
}

static void
test_echo_client_receives_all_its_messages(void **state)
{
	struct bench *b = *state;
	struct service *server = serve(b, &b->w->b, &(struct svc_config){ .kind = "echo" });
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "echo",
			.active = true,
			.size = 3000,
			.depth = 3,
			.count = 100,
			.verify = true,
		});
	struct svc_counters c, d;

	dial(b, client);
	c = figures(client);
	d = figures(server);
	assert_int_equal(c.established, 1);
	assert_int_equal(c.exchanges, 100);
	assert_int_equal(c.mismatches, 0);
	assert_int_equal(c.messages_in, 100);
	assert_int_equal(c.bytes_in, 300000);
	assert_int_equal(d.messages_in, 100);
	assert_int_equal(d.bytes_in, 300000);
	assert_int_equal(d.errors, 0);
	assert_int_equal(d.connections, 0); /* the client has disconnected */
	expect_all_released(b);
}

/* The answer can overtake the ACK of the message: the client waits for both. */
static void
test_echo_client_waits_for_its_last_ack(void **state)
{
	struct bench *b = *state;
	struct service *client;

	serve(b, &b->w->b, &(struct svc_config){ .kind = "echo" });
	client = serve(b, &b->w->a,
		&(struct svc_config){ .kind = "echo", .active = true, .size = 16, .count = 1 });
	b->w->b.lose_acks = 1;
	dial(b, client);
	assert_int_equal(figures(client).messages_in, 1);
	assert_int_equal(figures(client).connections, 1);
	while (figures(client).connections != 0)
		pass(b->w, MS);
	assert_int_equal(figures(client).messages_out, 1);
	expect_all_released(b);
}

/* librdmacm's rdma_server sends one message of 16 bytes back, with other contents. */
static void
test_echo_client_detects_other_contents(void **state)
{
	struct bench *b = *state;
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "echo",
			.active = true,
			.size = 16,
			.count = 1,
			.verify = true,
		});
	struct life *server;

	dial(b, client);
	server = last_life(&b->w->b);
	assert_int_equal(heard(server).byte_len, 16);
	memset(b->w->b.bytes, 0, 16);
	assert_int_equal(say(b, server, 16), WC_SUCCESS);
	assert_int_equal(figures(client).exchanges, 1);
	assert_int_equal(figures(client).mismatches, 1);
	expect_log(server, "request prepare established disconnected");
	expect_all_released(b);
}

static void
test_too_long_message_ends_only_its_own_connection(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &echo);
	struct life *good = call(b), *bad = call(b);

	assert_int_equal(say(b, bad, 65), WC_REM_INV_REQ_ERR);
	exchange(b->w);
	assert_int_equal(figures(s).connections, 1);
	assert_int_equal(figures(s).errors, 1);
	assert_int_equal(say(b, good, 64), WC_SUCCESS);
	assert_int_equal(heard(good).byte_len, 64);
	pass(b->w, 10 * SECOND);
	assert_int_equal(svc_worker_connections(s->w), 1);
	expect_log(bad, "prepare established disconnected released");
}

static void
test_rdma_to_an_echo_is_refused(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &echo);
	struct life *l = call(b);

	assert_int_equal(rdma(b, l, WR_RDMA_WRITE, 0, 8, SVC_VA, 0x1234), WC_REM_INV_REQ_ERR);
	exchange(b->w);
	assert_int_equal(figures(s).connections, 0);
	expect_all_released(b);
}

/* --- disconnection during a transfer --- */

/* One side disconnects while both transfer. Afterwards both have freed everything. */
static void
end_in_mid_transfer(struct bench *b, bool by_server, bool answered)
{
	struct service *server = serve(b, &b->w->b, &(struct svc_config){ .kind = "echo" });
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "echo",
			.active = true,
			.size = 1000,
			.depth = 8,
		});
	struct service *who = by_server ? server : client;
	struct error err;
	unsigned int i;
	cm_id id;

	assert_int_equal(begin(client, &id, &err), 0);
	for (i = 0; i < 50; i++) {
		run(&b->w->a);
		deliver(&b->w->a);
		run(&b->w->b);
		deliver(&b->w->b);
	}
	assert_in_range(figures(client).exchanges, 10, 100000);
	assert_int_equal(figures(client).connections, 1);
	who->node->peer->deaf = !answered;
	svc_worker_disconnect(who->w, b->w->now);
	exchange(b->w);
	assert_int_equal(figures(who).connections, 0 + !answered);
	if (!answered) { /* the peer has died: DREQs are repeated, then it is over */
		pass(b->w, 100 * SECOND);
		for (i = 0; i < 10; i++)
			pass(b->w, 100 * SECOND);
		assert_int_equal(svc_worker_connections(who->w), 0);
		return;
	}
	expect_all_released(b);
	assert_int_equal(figures(client).mismatches, 0);
}

static void
test_client_ends_in_mid_transfer(void **state)
{
	end_in_mid_transfer(*state, false, true);
}

static void
test_server_ends_in_mid_transfer(void **state)
{
	end_in_mid_transfer(*state, true, true);
}

static void
test_peer_dies_in_mid_transfer(void **state)
{
	end_in_mid_transfer(*state, true, false);
}

/* --- sink --- */

static void
test_sink_counts_and_answers_nothing(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "sink", .depth = 2 });
	struct life *l = call(b);
	unsigned int i;

	for (i = 0; i < 7; i++)
		assert_int_equal(say(b, l, 100 + i), WC_SUCCESS);
	expect_nothing_heard(l);
	assert_int_equal(figures(s).messages_in, 7);
	assert_int_equal(figures(s).bytes_in, 721);
	assert_int_equal(figures(s).messages_out, 0);
}

/* seed 001: a message that finds no receive is counted, and sent again by the peer. */
static void
test_sink_counts_missing_receives(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "sink", .depth = 2 });
	struct life *l = call(b);
	struct sge sge = { l->node->va, 8, l->node->key };
	struct send_wr wr = { .opcode = WR_SEND, .num_sge = 1, .sg_list = &sge };
	struct error err = { "" };
	unsigned int i;

	assert_int_equal(say(b, l, 8), WC_SUCCESS);
	assert_int_equal(figures(s).receives_missing, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(rc_post_send(l->node->rc, l->qpn, &wr, &err), 0);
	exchange(b->w);
	assert_int_equal(figures(s).receives_missing, 1);
	pass(b->w, MS);
	exchange(b->w);
	assert_int_equal(figures(s).messages_in, 5);
	assert_int_equal(figures(s).receives_missing, 1);
}

static void
test_sink_client_sends_count_messages(void **state)
{
	struct bench *b = *state;
	struct service *server = serve(b, &b->w->b, &(struct svc_config){ .kind = "sink" });
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "sink",
			.active = true,
			.size = 2000,
			.count = 1000,
		});

	dial(b, client);
	assert_int_equal(figures(server).messages_in, 1000);
	assert_int_equal(figures(server).bytes_in, 2000000);
	assert_int_equal(figures(client).messages_out, 1000);
	assert_int_equal(figures(client).exchanges, 1000);
	expect_all_released(b);
}

/* --- ucmatose --- */

static void
test_ucmatose_client_and_server(void **state)
{
	struct bench *b = *state;
	struct service *server = serve(b, &b->w->b, &(struct svc_config){ .kind = "ucmatose" });
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "ucmatose",
			.active = true,
		});

	dial(b, client);
	assert_int_equal(figures(server).messages_out, 10);
	assert_int_equal(figures(server).bytes_out, 1000);
	assert_int_equal(figures(server).messages_in, 10);
	assert_int_equal(figures(client).messages_in, 10);
	assert_int_equal(figures(client).exchanges, 1);
	assert_int_equal(figures(server).exchanges, 1);
	expect_all_released(b);
}

/* ucmatose's client receives all messages before it sends, and waits for the server's DREQ. */
static void
test_ucmatose_server_sends_first_and_disconnects(void **state)
{
	struct bench *b = *state;
	struct life *l;
	unsigned int i;

	serve(b, &b->w->b, &(struct svc_config){ .kind = "ucmatose", .count = 3, .size = 64 });
	l = call(b);
	for (i = 0; i < 3; i++)
		assert_int_equal(heard(l).byte_len, 64);
	expect_nothing_heard(l);
	for (i = 0; i < 2; i++)
		assert_int_equal(say(b, l, 64), WC_SUCCESS);
	expect_log(l, "prepare established");
	assert_int_equal(say(b, l, 64), WC_SUCCESS);
	expect_log(l, "prepare established disconnected");
	expect_all_released(b);
}

static void
test_ucmatose_client_receives_first_and_waits_for_the_dreq(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "ucmatose",
			.active = true,
			.count = 2,
			.size = 64,
		});
	struct life *l;
	unsigned int i;

	dial(b, s);
	l = last_life(&b->w->b);
	assert_int_equal(say(b, l, 64), WC_SUCCESS);
	expect_nothing_heard(l);
	assert_int_equal(say(b, l, 64), WC_SUCCESS);
	for (i = 0; i < 2; i++)
		assert_int_equal(heard(l).byte_len, 64);
	assert_int_equal(figures(s).exchanges, 1);
	assert_int_equal(figures(s).connections, 1);
	disconnect(l);
	exchange(b->w);
	expect_all_released(b);
}

static void
receive_at(void *conn, void *offset)
{
	const struct svc_region r = svc_conn_buffer(conn);

	svc_recv(conn, 0, &r, *(const uint64_t *)offset, 8);
}

/* A kind that uses bytes behind its connection's region is found in builds with checks. */
static void
test_bytes_behind_the_region_are_found(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &echo);
	struct svc_conn *c;
	uint64_t offset;

	call(b);
	c = TAILQ_FIRST(&s->w->conns);
	assert_non_null(c);
	offset = svc_conn_buffer(c).length - 8;
	assert_false(ends_process(receive_at, c, &offset));
	offset++;
	assert_int_equal(ends_process(receive_at, c, &offset), CHECKED);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_echo_sends_messages_back),
		T(test_immediate_data_and_empty_messages_come_back),
		T(test_echo_client_receives_all_its_messages),
		T(test_echo_client_waits_for_its_last_ack),
		T(test_echo_client_detects_other_contents),
		T(test_too_long_message_ends_only_its_own_connection),
		T(test_rdma_to_an_echo_is_refused),
		T(test_client_ends_in_mid_transfer),
		T(test_server_ends_in_mid_transfer),
		T(test_peer_dies_in_mid_transfer),
		T(test_sink_counts_and_answers_nothing),
		T(test_sink_counts_missing_receives),
		T(test_sink_client_sends_count_messages),
		T(test_ucmatose_client_and_server),
		T(test_ucmatose_server_sends_first_and_disconnects),
		T(test_ucmatose_client_receives_first_and_waits_for_the_dreq),
		T(test_bytes_behind_the_region_are_found),
	};

	return cmocka_run_group_tests_name("svc: messages", tests, NULL, NULL);
}
