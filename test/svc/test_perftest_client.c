/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The client's side of perftest's exchange. The order of messages was recorded between client and
 * server of Debian's version 4.5+0.17 on two soft-RoCE adapters, with one QP and with two.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "svc/perftest_client.h"
#include "wire/bytes.h"

struct talk {
	struct perftest_client c;
	struct perftest_dest ours[2], theirs[2];
	struct perftest_exchange server;
	char said[512];
};

static int
perftest_client_dest(void *arg, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	(void)arg;
	*ours = (struct perftest_dest){ .qpn = theirs->qpn + 100, .psn = 7, .rkey = 8, .va = 9 };
	return 0;
}

/* Note a message as text: its length, such as "16", or "q1" for the description of QP 1. */
static void
perftest_client_note(struct talk *t, const uint8_t *m, size_t len)
{
	size_t at = strlen(t->said);
	struct perftest_dest d;
	bool is_dest = t->c.stream ? perftest_text_read(m, len, &d) : len == PERFTEST_BYTES;

	if (is_dest && !t->c.stream)
		perftest_bytes_read(m, &d);
	snprintf(t->said + at, sizeof(t->said) - at, is_dest ? "q%u " : "%u ",
		is_dest ? d.qpn : (unsigned int)len);
}

static void
perftest_client_exchange(struct talk *t)
{
	uint8_t m[PERFTEST_MESSAGE_MAX], answer[PERFTEST_MESSAGE_MAX];
	size_t len = perftest_client_say(&t->c, m);
	int n = perftest_answer(&t->server, m, len, answer);

	perftest_client_note(t, m, len);
	assert_int_equal(n, len);
	assert_null(perftest_client_hear(&t->c, answer, (size_t)n));
}

static void
svc_perftest_client_begin(struct talk *t, bool stream, uint32_t qps, enum perftest_program program)
{
	memset(t, 0, sizeof(*t));
	t->ours[0] = (struct perftest_dest){ .qpn = 1, .has_gid = true };
	t->ours[1] = (struct perftest_dest){ .qpn = 2, .has_gid = true };
	t->server = (struct perftest_exchange){
		.stream = stream,
		.mtu = 1024,
		.dest = perftest_client_dest,
	};
	t->c.stream = stream;
	t->c.mtu = 4096;
	t->c.num_qps = qps;
	t->c.ours = t->ours;
	t->c.theirs = t->theirs;
	t->c.report = (struct perftest_report){ 65536, 20, 2, 1, 0.5 };
	perftest_client_begin(&t->c, program);
}

/* @return all messages of the client; C: the QPs connect here, M: traffic runs here */
static const char *
whole(struct talk *t)
{
	enum perftest_client_step step;

	while ((step = perftest_client_step(&t->c)) != PERFTEST_CLIENT_OVER) {
		if (step == PERFTEST_CLIENT_SAY) {
			perftest_client_exchange(t);
			continue;
		}
		strcat(t->said, step == PERFTEST_CLIENT_CONNECT ? "C " : "M ");
		perftest_client_done(&t->c);
	}
	return t->said;
}

static void
perftest_client_expect(bool stream, uint32_t qps, enum perftest_program program, const char *said)
{
	struct talk t;

	svc_perftest_client_begin(&t, stream, qps, program);
	assert_string_equal(whole(&t), said);
	assert_int_equal(t.c.mtu, 1024);
	assert_int_equal(t.theirs[0].qpn, 101);
	assert_int_equal(t.theirs[qps - 1].qpn, 100 + qps);
	assert_int_equal(t.c.cycle_buffer, 4096);
	assert_string_equal(t.c.version, "6.06");
}

static void
test_order_over_tcp(void **state)
{
	(void)state;
	perftest_client_expect(true, 2, PERFTEST_SEND_BW, "16 4 4 2 q1 q2 C q1 q1 q2 q1 M q1 5 ");
	perftest_client_expect(true, 1, PERFTEST_SEND_LAT, "16 4 4 2 q1 C q1 q1 q1 M q1 5 ");
	perftest_client_expect(true, 2, PERFTEST_WRITE_BW,
		"16 4 4 2 q1 q2 C q1 q2 q1 M q1 8 8 8 8 8 q1 5 ");
	perftest_client_expect(true, 1, PERFTEST_WRITE_LAT, "16 4 4 2 q1 C q1 q1 q1 M ");
	perftest_client_expect(true, 2, PERFTEST_READ_BW,
		"16 4 4 2 q1 q2 C q1 q2 q1 M q1 8 8 8 8 8 q1 5 ");
	perftest_client_expect(true, 1, PERFTEST_READ_LAT, "16 4 4 2 q1 C q1 q1 q1 M q1 5 ");
	perftest_client_expect(true, 2, PERFTEST_ATOMIC_BW,
		"16 4 4 2 q1 q2 C q1 q2 q1 M q1 8 8 8 8 8 q1 5 ");
	perftest_client_expect(true, 1, PERFTEST_ATOMIC_LAT, "16 4 4 2 q1 C q1 q1 q1 M q1 5 ");
}

/* write_bw: test/data/captures/write_bw_cm.pcap */
static void
test_order_over_a_connection(void **state)
{
	(void)state;
	perftest_client_expect(false, 1, PERFTEST_WRITE_BW,
		"16 4 4 2 q0 C q0 q1 q1 q1 M q1 8 8 8 8 8 q1 ");
	perftest_client_expect(false, 1, PERFTEST_SEND_BW, "16 4 4 2 q0 C q0 q1 q1 q1 q1 M q1 ");
	perftest_client_expect(false, 1, PERFTEST_WRITE_LAT, "16 4 4 2 q0 C q0 q1 q1 q1 q1 M ");
}

static void
test_report(void **state)
{
	/* size, iterations, then doubles, most significant byte first */
	static const uint64_t numbers[] = { 65536, 20, 0x4000000000000000, 0x3ff0000000000000,
		0x3fe0000000000000 };
	uint8_t m[PERFTEST_MESSAGE_MAX];
	struct talk t;
	unsigned int i;

	(void)state;
	svc_perftest_client_begin(&t, true, 1, PERFTEST_READ_BW);
	while (strstr(t.said, "M q1 ") == NULL) {
		if (perftest_client_step(&t.c) == PERFTEST_CLIENT_SAY) {
			perftest_client_exchange(&t);
			continue;
		}
		strcat(t.said, perftest_client_step(&t.c) == PERFTEST_CLIENT_CONNECT ? "C " : "M ");
		perftest_client_done(&t.c);
	}
	for (i = 0; i < 5; i++) {
		assert_int_equal(perftest_client_say(&t.c, m), 8);
		assert_true(get_be64(m) == numbers[i]);
		perftest_client_exchange(&t);
	}
}

static const char *
perftest_client_heard(const char *answer, size_t len)
{
	struct talk t;

	svc_perftest_client_begin(&t, true, 1, PERFTEST_SEND_BW);
	return perftest_client_hear(&t.c, (const uint8_t *)answer, len);
}

static void
test_other_servers(void **state)
{
	(void)state;
	assert_null(perftest_client_heard("5.70\0\0\0\0\0\0\0\0\0\0\0", 16));
	assert_null(perftest_client_heard("23.04\0\0\0\0\0\0\0\0\0\0", 16));
	assert_string_equal(perftest_client_heard("5.50\0\0\0\0\0\0\0\0\0\0\0", 16),
		"is too old a perftest");
	assert_string_equal(perftest_client_heard("HTTP/1.1 400 Bad", 16), "is no perftest");
	assert_string_equal(perftest_client_heard("5.70", 4), "answers with something else");
}

static void
test_malformed_answers_are_refused(void **state)
{
	uint8_t m[PERFTEST_MESSAGE_MAX];
	struct talk t;
	unsigned int i;

	(void)state;
	svc_perftest_client_begin(&t, true, 1, PERFTEST_SEND_BW);
	for (i = 0; i < 3; i++)
		perftest_client_exchange(&t);
	assert_string_equal(perftest_client_hear(&t.c, (const uint8_t *)"9", 2),
		"names no path MTU");
	perftest_client_exchange(&t);
	memset(m, '!', sizeof(m));
	assert_string_equal(perftest_client_hear(&t.c, m, PERFTEST_TEXT),
		"does not describe a queue pair");
}

/* Over a connection the CM exchanges QPNs, so these ones are ignored. */
static void
test_impossible_queue_pair_numbers(void **state)
{
	static const uint32_t none[] = { 0, 0xFFFFFF };
	struct perftest_dest d = { .has_gid = true };
	uint8_t m[PERFTEST_MESSAGE_MAX];
	struct talk t;
	unsigned int i;

	(void)state;
	svc_perftest_client_begin(&t, true, 1, PERFTEST_SEND_BW);
	for (i = 0; i < 4; i++)
		perftest_client_exchange(&t);
	for (i = 0; i < 2; i++) {
		d.qpn = none[i];
		perftest_text_write(&d, m);
		assert_string_equal(perftest_client_hear(&t.c, m, PERFTEST_TEXT),
			"does not describe a queue pair");
	}
	d.qpn = 2;
	perftest_text_write(&d, m);
	assert_null(perftest_client_hear(&t.c, m, PERFTEST_TEXT));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_over_tcp),
		cmocka_unit_test(test_order_over_a_connection),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_other_servers),
		cmocka_unit_test(test_malformed_answers_are_refused),
		cmocka_unit_test(test_impossible_queue_pair_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
