/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* rping: librdmacm's exchange, as in test/data/captures/rping.pcap. */

#include <string.h>

#include "../wire/pcap.h"
#include "bench.h"

/* rping -S 100: the client's first three messages */
static const char *const pings[] = {
	"rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\",
	"rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]",
	"rdma-ping-2: CDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^",
};

static const struct svc_config server_config = { .kind = "rping" };

/* Our messages equal those that rping's server read and wrote. */
static void
test_messages_equal_the_captured_ones(void **state)
{
	static struct pcap p;
	unsigned int read = 0, written = 0;
	struct packet pkt;
	enum verdict why;

	(void)state;
	assert_int_equal(pcap_open(&p, CAPTURE_DIR "/rping.pcap"), 0);
	while (pcap_next(&p) == 1) {
		if (p.len < 14 || get_be16(p.data + 12) != 0x0800 ||
			!wire_parse(ENCAP_ROCEV2_IPV4, p.data + 14, p.len - 14, &pkt, &why))
			continue;
		if (pkt.opcode != RC_READ_RESP_ONLY && pkt.opcode != RC_WRITE_ONLY)
			continue;
		assert_int_equal(pkt.payload_len, 100);
		assert_memory_equal(pkt.payload,
			pings[pkt.opcode == RC_WRITE_ONLY ? written++ : read++], 100);
	}
	pcap_close(&p);
	assert_int_equal(read, 3);
	assert_int_equal(written, 3);
}

/* Write a struct rping_rdma_info at the beginning of the node's memory. */
static void
write_info(struct node *n, uint64_t addr, uint32_t rkey, uint32_t size)
{
	put_be64(n->bytes, addr);
	put_be32(n->bytes + 8, rkey);
	put_be32(n->bytes + 12, size);
}

static enum wc_status
rping_tell(struct bench *b, struct life *l, uint64_t addr, uint32_t rkey, uint32_t size)
{
	write_info(l->node, addr, rkey, size);
	return say(b, l, 16);
}

/* The test's QP allows remote writes only: allow the server's Reads, too. */
static struct life *
call_readable(struct bench *b)
{
	struct qp_attr attr = { .qp_access_flags = MEM_ACCESS_REMOTE };
	struct life *l = call(b);

	assert_int_equal(rc_qp_modify(l->node->rc, l->qpn, &attr, QP_ATTR_ACCESS_FLAGS, NULL), 0);
	return l;
}

/* --- the server, with the test as client --- */

static void
test_server_reads_the_source_and_writes_the_sink(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &server_config);
	struct life *l = call_readable(b);
	struct node *a = &b->w->a;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		memcpy(a->bytes + 1000, pings[i], 100);
		memset(a->bytes + 2000, 0xFF, 200);
		assert_int_equal(rping_tell(b, l, a->va + 1000, a->key, 100), WC_SUCCESS);
		assert_int_equal(heard(l).byte_len, 16);
		assert_memory_equal(a->bytes, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
		expect_nothing_heard(l);
		assert_int_equal(a->bytes[2000], 0xFF);
		assert_int_equal(rping_tell(b, l, a->va + 2000, a->key, 100), WC_SUCCESS);
		assert_int_equal(heard(l).byte_len, 16);
		assert_memory_equal(a->bytes + 2000, pings[i], 100);
		assert_int_equal(a->bytes[2100], 0xFF);
		assert_int_equal(figures(s).exchanges, i + 1);
	}
	disconnect(l);
	exchange(b->w);
	assert_int_equal(figures(s).violations, 0);
	assert_int_equal(figures(s).errors, 0);
	expect_all_released(b);
}

/* Expect that the client is disconnected, and that one violation is counted. */
static void
expect_violation(struct bench *b, struct service *s, struct life *l)
{
	exchange(b->w);
	expect_log(l, "prepare established disconnected");
	assert_int_equal(figures(s).violations, 1);
	assert_int_equal(figures(s).connections, 0);
	expect_all_released(b);
}

static void
test_source_longer_than_the_servers_buffer_is_a_violation(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "rping", .size = 64 });
	struct life *l = call_readable(b);

	rping_tell(b, l, b->w->a.va, b->w->a.key, 65);
	expect_violation(b, s, l);
}

static void
test_message_of_other_length_is_a_violation(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &server_config);
	struct life *l = call_readable(b);

	say(b, l, 15);
	expect_violation(b, s, l);
}

static void
test_message_out_of_turn_is_a_violation(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &server_config);
	struct life *l = call_readable(b);
	struct node *a = &b->w->a;
	struct sge sge = { a->va, 16, a->key };
	struct send_wr wr = { .opcode = WR_SEND, .num_sge = 1, .sg_list = &sge };

	/* this message is in turn: a Send without credits waits for the first ACK */
	rping_tell(b, l, a->va + 1000, a->key, 100);
	rping_tell(b, l, a->va + 2000, a->key, 100);
	assert_int_equal(figures(s).exchanges, 1);
	write_info(a, a->va + 1000, a->key, 100);
	assert_int_equal(rc_post_send(a->rc, l->qpn, &wr, NULL), 0);
	run(a);
	deliver(a);
	run(&b->w->b); /* its Read is outstanding, and its receive is posted again */
	say(b, l, 16);
	expect_violation(b, s, l);
}

static void
test_message_too_long_is_an_error(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &server_config);
	struct life *l = call_readable(b);

	assert_int_equal(say(b, l, 17), WC_REM_INV_REQ_ERR);
	exchange(b->w);
	assert_int_equal(figures(s).errors, 1);
	assert_int_equal(figures(s).connections, 0);
	expect_all_released(b);
}

/* A completion with an error makes the service disconnect. */
static void
test_wrong_key_ends_only_its_own_connection(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &server_config);
	struct life *good = call_readable(b), *bad = call_readable(b);
	struct node *a = &b->w->a;

	lose(a, CM_DREQ); /* from the client, whose QP is in ERR, too */
	rping_tell(b, bad, a->va, a->key ^ 1, 100);
	exchange(b->w);
	expect_log(bad, "prepare established qp error");
	assert_int_equal(figures(s).errors, 1);
	assert_int_equal(figures(s).connections, 1);
	assert_int_equal(rping_tell(b, good, a->va + 1000, a->key, 100), WC_SUCCESS);
	assert_int_equal(heard(good).byte_len, 16);
}

/* --- the client, with the test as server --- */

static void
test_client_offers_source_then_sink(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "rping",
			.active = true,
			.size = 100,
			.count = 3,
			.verify = true,
		});
	struct node *n = &b->w->b;
	struct life *l;
	uint64_t source, sink;
	uint32_t rkey;
	unsigned int i;

	dial(b, s);
	l = last_life(n);
	for (i = 0; i < 3; i++) {
		assert_int_equal(heard(l).byte_len, 16);
		source = get_be64(n->bytes);
		rkey = get_be32(n->bytes + 8);
		assert_int_equal(get_be32(n->bytes + 12), 100);
		assert_int_equal(rdma(b, l, WR_RDMA_READ, 1000, 100, source, rkey), WC_SUCCESS);
		assert_memory_equal(n->bytes + 1000, pings[i], 100);
		expect_nothing_heard(l);
		assert_int_equal(say(b, l, 16), WC_SUCCESS);
		assert_int_equal(heard(l).byte_len, 16);
		sink = get_be64(n->bytes);
		assert_int_equal(get_be32(n->bytes + 12), 100);
		assert_true(sink >= source + 100 || source >= sink + 100);
		assert_int_equal(rdma(b, l, WR_RDMA_WRITE, 1000, 100, sink, get_be32(n->bytes + 8)),
			WC_SUCCESS);
		assert_int_equal(say(b, l, 16), WC_SUCCESS);
		assert_int_equal(figures(s).exchanges, i + 1);
	}
	assert_int_equal(figures(s).mismatches, 0);
	expect_log(l, "request prepare established disconnected");
	expect_all_released(b);
}

static void
rping_lie(struct bench *b, struct service *s, uint32_t len)
{
	struct node *n = &b->w->b;
	struct life *l;

	dial(b, s);
	l = last_life(n);
	heard(l);
	say(b, l, len);
	if (len == 16) {
		heard(l);
		say(b, l, 16); /* without writing to the client */
	}
	exchange(b->w);
	assert_int_equal(figures(s).exchanges, 0);
	expect_log(l, "request prepare established disconnected");
}

static void
test_verifying_client_detects_a_wrong_answer(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "rping",
			.active = true,
			.count = 3,
			.verify = true,
		});

	rping_lie(b, s, 16);
	assert_int_equal(figures(s).mismatches, 1);
	expect_all_released(b);
}

static void
test_go_ahead_of_other_length_is_a_violation(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "rping",
			.active = true,
			.count = 3,
		});

	rping_lie(b, s, 8);
	assert_int_equal(figures(s).violations, 1);
	expect_all_released(b);
}

/* --- our client and our server --- */

static void
pings_and_pongs(struct bench *b, uint32_t size, uint64_t count)
{
	struct service *server = serve(b, &b->w->b, &server_config);
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "rping",
			.active = true,
			.size = size,
			.count = count,
			.verify = true,
		});
	struct cm_info info;
	cm_id id;

	id = dial(b, client);
	assert_int_equal(figures(client).exchanges, count);
	assert_int_equal(figures(client).mismatches, 0);
	assert_int_equal(figures(server).exchanges, count);
	assert_int_equal(figures(server).bytes_in, count * (2 * 16 + size));
	assert_int_equal(figures(server).bytes_out, count * (2 * 16 + size));
	/* one Read at a time, as rping does */
	assert_true(cm_get(b->w->a.cm, id, b->w->now, &info));
	assert_int_equal(info.responder_resources, 1);
	expect_all_released(b);
}

static void
test_client_and_server_default_size(void **state)
{
	pings_and_pongs(*state, 64, 200);
}

static void
test_client_and_server_smallest(void **state)
{
	pings_and_pongs(*state, 32, 3);
}

static void
test_client_and_server_largest(void **state)
{
	pings_and_pongs(*state, 65535, 5);
}

static void
test_size_is_checked(void **state)
{
	struct bench *b = *state;

	expect_refusal(b, &(struct svc_config){ .kind = "rping", .size = 31 },
		"size: got 31, allowed: 32 to 65535");
	expect_refusal(b, &(struct svc_config){ .kind = "rping", .size = 65536 },
		"size: got 65536, allowed: 32 to 65535");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_equal_the_captured_ones),
		T(test_server_reads_the_source_and_writes_the_sink),
		T(test_source_longer_than_the_servers_buffer_is_a_violation),
		T(test_message_of_other_length_is_a_violation),
		T(test_message_out_of_turn_is_a_violation),
		T(test_message_too_long_is_an_error),
		T(test_wrong_key_ends_only_its_own_connection),
		T(test_client_offers_source_then_sink),
		T(test_verifying_client_detects_a_wrong_answer),
		T(test_go_ahead_of_other_length_is_a_violation),
		T(test_client_and_server_default_size),
		T(test_client_and_server_smallest),
		T(test_client_and_server_largest),
		T(test_size_is_checked),
	};

	return cmocka_run_group_tests_name("svc: rping", tests, NULL, NULL);
}
