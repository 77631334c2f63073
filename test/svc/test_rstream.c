/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* rstream: the rsockets protocol, as in test/data/captures/rstream.pcap. */

#include <stdio.h>
#include <string.h>

#include "stream.h"

static struct stream
open_rstream(struct bench *b, uint64_t length, uint8_t flags)
{
	return open_stream(b, &(struct svc_config){ .kind = "rstream", .length = length }, flags);
}

static void
test_private_data_and_second_half(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x02);
	const uint8_t *p = t.l->private_data, *list = t.b->w->a.bytes + LIST;

	assert_memory_equal(p, "\x01\x02\x01\x80\0\0\0\0", 8);
	assert_int_equal(get_be32(p + 20), 2);
	assert_int_equal(get_be32(p + 32), t.key);
	assert_int_equal(get_be32(p + 36), 4096);
	/* the server writes its second half into our second SGL entry, in our byte order */
	assert_int_equal(next_imm(&t), CREDITS(384));
	assert_int_equal(get_le32(list + 16), (uint32_t)(t.va + 4096));
	assert_int_equal(get_le32(list + 20), (uint32_t)((t.va + 4096) >> 32));
	assert_int_equal(get_le32(list + 24), t.key);
	assert_int_equal(get_le32(list + 28), 4096);
	assert_int_equal(get_le32(list + 12), 0);
}

static void
test_list_has_the_byte_order_of_the_peer(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x03);
	const uint8_t *list = t.b->w->a.bytes + LIST;

	assert_int_equal(t.l->private_data[1], 0x03);
	assert_int_equal(next_imm(&t), CREDITS(384));
	assert_true(get_be64(list + 16) == t.va + 4096);
	assert_int_equal(get_be32(list + 24), t.key);
	assert_int_equal(get_be32(list + 28), 4096);
}

/* Frames 7 to 23 of the capture: 16 bytes, then three times 1000 bytes, each sent back. */
static void
test_all_bytes_are_sent_back(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x02);
	uint8_t *bytes = t.b->w->a.bytes;
	unsigned int i;

	next_imm(&t);
	for (i = 0; i < 512; i++)
		bytes[OUT + i] = (uint8_t)(200 + i);
	memset(bytes + IN, 0xEE, 2 * HALF);
	write_imm(&t, OUT, 16, t.va, DATA(16));
	assert_int_equal(next_imm(&t), DATA(16));
	write_imm(&t, OUT + 16, 300, t.va + 16, DATA(300));
	assert_int_equal(next_imm(&t), DATA(300));
	assert_memory_equal(bytes + IN, bytes + OUT, 316); /* the pattern continues */
	assert_int_equal(bytes[IN + 316], 0xEE);
	assert_int_equal(figures(t.s).bytes_in, 316);
}

/* The client grants space that it has read. Without a grant the server keeps bytes and waits. */
static void
test_server_writes_only_into_granted_space(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x02);
	uint8_t *bytes = t.b->w->a.bytes;
	unsigned int i;

	next_imm(&t);
	memset(bytes + IN + HALF, 0xEE, HALF);
	for (i = 0; i < 3; i++)
		write_imm(&t, OUT, 600, t.va + 600 * i, DATA(600));
	assert_int_equal(next_imm(&t), DATA(600));
	assert_int_equal(next_imm(&t), DATA(HALF - 600));
	expect_nothing_heard(t.l);
	assert_int_equal(bytes[IN + HALF], 0xEE);
	/* write our second half into the server's second SGL entry */
	put_le32(bytes + OUT, (uint32_t)(t.b->w->a.va + IN + HALF));
	put_le32(bytes + OUT + 4, (uint32_t)((t.b->w->a.va + IN + HALF) >> 32));
	put_le32(bytes + OUT + 8, t.b->w->a.key);
	put_le32(bytes + OUT + 12, HALF);
	write_imm(&t, OUT, 16, t.list_va + 16, CREDITS(388));
	assert_int_equal(next_imm(&t), DATA(1800 - HALF));
	for (i = 1; i < 1800; i++)
		assert_int_equal(bytes[IN + i], (uint8_t)(bytes[IN] + i));
}

static void
test_read_half_is_granted_again(void **state)
{
	struct stream t = open_rstream(*state, 2048, 0x02);
	const uint8_t *list = t.b->w->a.bytes + LIST;

	assert_int_equal(next_imm(&t), CREDITS(384));
	write_imm(&t, OUT, 600, t.va, DATA(600));
	assert_int_equal(next_imm(&t), DATA(600));
	write_imm(&t, OUT, 424, t.va + 600, DATA(424));
	assert_int_equal(next_imm(&t), CREDITS(386));
	assert_int_equal(get_le32(list), (uint32_t)t.va);
	assert_int_equal(get_le32(list + 12), 1024);
	assert_int_equal(next_imm(&t), DATA(424));
}

static void
test_message_credits_are_renewed_at_half(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x02);
	unsigned int i;

	assert_int_equal(next_imm(&t), CREDITS(384));
	for (i = 1; i <= 192; i++) {
		write_imm(&t, OUT, 1, t.va + i - 1, DATA(1));
		if (i == 192)
			assert_int_equal(next_imm(&t), CREDITS(384 + 192));
		assert_int_equal(next_imm(&t), DATA(1));
	}
	expect_nothing_heard(t.l);
}

static void
test_server_sends_no_more_messages_than_granted(void **state)
{
	struct bench *b = *state;
	struct stream t = open_rstream(b, 8192, 0x02);
	struct recv_wr wr = { .num_sge = 0 };
	uint8_t data[40];
	unsigned int i;

	conn_data(&b->w->a, data, 0x02);
	put_be16(data + 2, 2);
	t.l = connect_with(b, data, 40);
	for (i = 0; i < 4; i++)
		assert_int_equal(rc_post_recv(b->w->a.rc, t.l->qpn, &wr, NULL), 0);
	t.key = get_be32(t.l->private_data + 16);
	next_imm(&t);
	for (i = 0; i < 3; i++)
		write_imm(&t, OUT, 8, get_be64(t.l->private_data + 24) + 8 * i, DATA(8));
	assert_int_equal(next_imm(&t), DATA(8));
	assert_int_equal(next_imm(&t), DATA(8));
	expect_nothing_heard(t.l);
	write_imm(&t, OUT, 0, 0, CREDITS(3));
	assert_int_equal(next_imm(&t), DATA(8));
}

static void
test_disconnect_is_answered(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x02);

	next_imm(&t);
	write_imm(&t, OUT, 0, 0, GOODBYE);
	assert_int_equal(next_imm(&t), GOODBYE);
	expect_log(t.l, "prepare established disconnected");
	assert_int_equal(figures(t.s).violations, 0);
	assert_int_equal(figures(t.s).errors, 0);
	expect_all_released(t.b);
}

static void
test_more_data_than_granted_is_a_violation(void **state)
{
	struct stream t = open_rstream(*state, 2048, 0x02);

	write_imm(&t, OUT, 8, t.va, DATA(2049));
	exchange(t.b->w);
	assert_int_equal(figures(t.s).violations, 1);
	expect_log(t.l, "prepare established disconnected");
	expect_all_released(t.b);
}

static void
test_wrong_list_ends_only_its_own_connection(void **state)
{
	struct stream t = open_rstream(*state, 8192, 0x02);
	struct bench *b = t.b;
	struct sge sge = { b->w->a.va, 8, b->w->a.key };
	struct send_wr wr = {
		.opcode = WR_RDMA_WRITE_WITH_IMM,
		.num_sge = 1,
		.sg_list = &sge,
		.imm_data = DATA(8),
	};
	uint8_t data[40];
	struct life *bad;

	conn_data(&b->w->a, data, 0x02);
	put_be32(data + 32, 0xDEADBEEF);
	bad = connect_with(b, data, 40);
	wr.remote_addr = get_be64(bad->private_data + 24);
	wr.rkey = get_be32(bad->private_data + 16);
	assert_int_equal(rc_post_send(b->w->a.rc, bad->qpn, &wr, NULL), 0);
	exchange(b->w);
	assert_int_equal(figures(t.s).errors, 1);
	assert_int_equal(figures(t.s).connections, 1);
	expect_log(t.l, "prepare established");
}

static void
test_other_private_data_is_refused(void **state)
{
	struct bench *b = *state;
	uint8_t data[40];
	struct life *l;
	unsigned int i;

	serve(b, &b->w->b, &(struct svc_config){ .kind = "rstream" });
	for (i = 0; i < 3; i++) {
		conn_data(&b->w->a, data, 0x02);
		if (i == 0)
			data[0] = 2;
		else if (i == 1)
			put_be32(data + 20, 0);
		else
			memset(data, 0, 40);
		l = connect_with(b, data, 40);
		assert_int_equal(l->info.end, CM_END_REJECTED);
		assert_int_equal(l->info.reason, CM_REJ_CONSUMER);
		assert_memory_equal(l->private_data, "\0\0\0\0\0\0\0\0", 8);
	}
}

/* --- the client --- */

static struct service *
rstream_client(struct bench *b, const struct svc_config *config)
{
	struct svc_config c = *config;
	struct error err = { "" };
	cm_id id;

	snprintf(c.kind, sizeof(c.kind), "rstream");
	c.active = true;
	if (begin(serve(b, &b->w->a, &c), &id, &err) != 0)
		fail_msg("%s", err.text);
	exchange(b->w);
	return &b->services[b->num_services - 1];
}

static void
test_client_sends_its_private_data(void **state)
{
	struct bench *b = *state;
	const uint8_t *p;

	b->w->b.answer = CM_REJ_CONSUMER;
	rstream_client(b, &(struct svc_config){ .length = 8192 });
	p = b->w->b.request_private;
	assert_memory_equal(p, "\x01\x02\x01\x80\0\0\0\0", 8);
	assert_int_equal(get_be32(p + 20), 2);
	assert_true(get_be64(p + 24) == get_be64(p + 8) + 64);
	assert_int_equal(get_be32(p + 32), get_be32(p + 16));
	assert_int_equal(get_be32(p + 36), 4096);
}

/* -S 700 -C 5 -I 3 -T v: the buffers are filled many times */
static void
test_client_and_server(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "rstream",
			.length = 1024,
		});
	struct service *c = rstream_client(b,
		&(struct svc_config){
			.length = 2048,
			.size = 700,
			.depth = 5,
			.count = 3,
			.verify = true,
		});

	assert_int_equal(figures(c).exchanges, 3);
	assert_int_equal(figures(c).mismatches, 0);
	assert_int_equal(figures(c).errors, 0);
	assert_int_equal(figures(s).errors, 0);
	assert_int_equal(figures(s).violations, 0);
	assert_int_equal(figures(s).established, 1);
	assert_true(figures(s).bytes_in >= 16 + 3 * 3500);
	assert_int_equal(figures(c).connections, 0); /* the client has disconnected */
	expect_all_released(b);
}

static void
test_client_has_the_programs_defaults(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "rstream" });
	struct service *c = rstream_client(b, &(struct svc_config){ .verify = true });

	assert_int_equal(figures(c).exchanges, 1);
	assert_true(figures(s).bytes_in >= 16 + 1000000);
	assert_int_equal(figures(c).mismatches, 0);
}

/* The test acts as server; the client sends 16 bytes, then 4, and expects them back. */
static struct stream
serve_by_hand(struct bench *b, struct service **c)
{
	struct stream t = { .b = b };
	const uint8_t *p = b->w->b.request_private;
	unsigned int i;

	conn_data(&b->w->b, b->w->b.param.private_data, 0x02);
	b->w->b.param.private_len = 40;
	*c = rstream_client(b,
		&(struct svc_config){
			.length = 2048,
			.size = 4,
			.depth = 1,
			.count = 1,
			.verify = true,
		});
	t.l = &b->w->b.lives[0];
	t.va = get_be64(p + 24);
	t.key = get_be32(p + 32);
	assert_int_equal(next_imm(&t), CREDITS(384));
	assert_int_equal(next_imm(&t), DATA(16));
	for (i = 0; i < 64; i++)
		b->w->b.bytes[OUT + i] = (uint8_t)i;
	return t;
}

static void
test_client_compares_the_bytes(void **state)
{
	struct bench *b = *state;
	struct service *c;
	struct stream t = serve_by_hand(b, &c);

	write_imm(&t, OUT, 16, t.va, DATA(16));
	assert_int_equal(next_imm(&t), DATA(4));
	write_imm(&t, OUT + 17, 4, t.va + 16, DATA(4)); /* bytes shifted by one */
	assert_int_equal(next_imm(&t), GOODBYE);
	assert_int_equal(figures(c).exchanges, 1);
	assert_int_equal(figures(c).mismatches, 1);
}

static void
test_more_bytes_than_sent_are_a_violation(void **state)
{
	struct bench *b = *state;
	struct service *c;
	struct stream t = serve_by_hand(b, &c);

	write_imm(&t, OUT, 17, t.va, DATA(17));
	assert_int_equal(figures(c).violations, 1);
	assert_int_equal(figures(c).connections, 0);
}

/* The peer's REP has private data of another protocol. */
static void
test_client_disconnects_from_another_protocol(void **state)
{
	struct bench *b = *state;
	struct service *c = rstream_client(b, &(struct svc_config){ .length = 2048 });

	assert_int_equal(figures(c).violations, 1);
	assert_int_equal(figures(c).connections, 0);
	expect_all_released(b);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_private_data_and_second_half),
		T(test_list_has_the_byte_order_of_the_peer),
		T(test_all_bytes_are_sent_back),
		T(test_server_writes_only_into_granted_space),
		T(test_read_half_is_granted_again),
		T(test_message_credits_are_renewed_at_half),
		T(test_server_sends_no_more_messages_than_granted),
		T(test_disconnect_is_answered),
		T(test_more_data_than_granted_is_a_violation),
		T(test_wrong_list_ends_only_its_own_connection),
		T(test_other_private_data_is_refused),
		T(test_client_sends_its_private_data),
		T(test_client_and_server),
		T(test_client_has_the_programs_defaults),
		T(test_client_compares_the_bytes),
		T(test_more_bytes_than_sent_are_a_violation),
		T(test_client_disconnects_from_another_protocol),
	};

	return cmocka_run_group_tests_name("svc: rstream", tests, NULL, NULL);
}
