/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* 24-bit sequence arithmetic (rc-transport 4), and wire_print(). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "print.h"
#include "sample.h"

static void
test_psn_diff_is_the_signed_24_bit_distance(void **state)
{
	(void)state;
	assert_int_equal(psn_diff(5, 5), 0);
	assert_int_equal(psn_diff(6, 5), 1);
	assert_int_equal(psn_diff(5, 6), -1);
	assert_int_equal(psn_diff(0, 0xFFFFFF), 1); /* over the wrap */
	assert_int_equal(psn_diff(0xFFFFFF, 0), -1);
	assert_int_equal(psn_diff(2, 0xFFFFF0), 18);
	/* 1..2^23-1 ahead, -2^23..-1 behind */
	assert_int_equal(psn_diff(0x7FFFFF, 0), 0x7FFFFF);
	assert_int_equal(psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(psn_diff(0x800001, 0), -0x7FFFFF);
	/* bits above the 24 are ignored */
	assert_int_equal(psn_diff(0x1000006, 5), 1);
}

static void
test_psn_add_wraps_at_24_bits(void **state)
{
	(void)state;
	assert_int_equal(psn_add(201, 5), 206);
	assert_int_equal(psn_add(0xFFFFFF, 1), 0);
	assert_int_equal(psn_add(0xFFFFF0, 0x20), 0x10);
	assert_int_equal(psn_add(0, 0xFFFFFF), 0xFFFFFF);
}

static void
expect_line(struct sample *s, const char *line)
{
	struct packet pkt;
	enum verdict why;
	char buf[200];
	size_t size;

	s->h.pad = wire_pad(s->payload_len);
	sample_build(s);
	assert_true(wire_parse(s->av.encap, s->l3, s->l3_len, &pkt, &why));
	wire_print(&pkt, buf, sizeof(buf));
	assert_string_equal(buf, line);
	for (size = 1; size <= strlen(line); size++) {
		memset(buf, 'x', sizeof(buf));
		wire_print(&pkt, buf, size);
		assert_int_equal(strlen(buf), size - 1);
		assert_memory_equal(buf, line, size - 1);
		assert_int_equal(buf[size], 'x');
	}
}

static void
test_print(void **state)
{
	const struct sample_carrier *v4 = &sample_carriers[0];
	struct sample s;

	(void)state;
	sample_init(&s, v4, RC_SEND_FIRST, 1024);
	s.h.psn = 201;
	s.h.dest_qpn = 0x11;
	s.h.ackreq = false;
	expect_line(&s, "SEND First psn 201 qp 0x11 len 1024");

	sample_init(&s, v4, RC_ACK, 0);
	s.h = (struct wire_headers){
		.opcode = RC_ACK,
		.psn = 9,
		.dest_qpn = 0x12,
		.syndrome = 0x1F,
		.msn = 3,
	};
	expect_line(&s, "Acknowledge psn 9 qp 0x12 ACK msn 3 len 0");
	s.h.syndrome = 10;
	expect_line(&s, "Acknowledge psn 9 qp 0x12 ACK credits 32 msn 3 len 0");
	s.h.syndrome = 0x2C;
	expect_line(&s, "Acknowledge psn 9 qp 0x12 RNR NAK 640 us msn 3 len 0");
	s.h.syndrome = 0x60;
	expect_line(&s, "Acknowledge psn 9 qp 0x12 NAK PSN sequence msn 3 len 0");
	s.h.syndrome = 0x62;
	expect_line(&s, "Acknowledge psn 9 qp 0x12 NAK remote access msn 3 len 0");
	s.h.syndrome = 0x65;
	expect_line(&s, "Acknowledge psn 9 qp 0x12 reserved syndrome 0x65 msn 3 len 0");
	s.h.syndrome = 0x40;
	expect_line(&s, "Acknowledge psn 9 qp 0x12 reserved syndrome 0x40 msn 3 len 0");

	sample_init(&s, v4, RC_WRITE_ONLY_IMM, 5);
	expect_line(&s,
		"WRITE Only Imm psn 15786450 qp 0xabc123 va 0x1122334455667788 "
		"rkey 0x99aabbcc dmalen 270544960 imm 0xdeadbeef len 5 solicited");
	sample_init(&s, v4, RC_CMP_SWAP, 0);
	expect_line(&s,
		"CmpSwap psn 15786450 qp 0xabc123 va 0x1122334455667788 "
		"rkey 0x99aabbcc swap 0x102030405060708 compare 0x1112131415161718 len 0 solicited");
	sample_init(&s, v4, RC_FETCH_ADD, 0);
	expect_line(&s,
		"FetchAdd psn 15786450 qp 0xabc123 va 0x1122334455667788 "
		"rkey 0x99aabbcc add 0x102030405060708 len 0 ackreq");
	sample_init(&s, v4, RC_SEND_ONLY_INV, 0);
	expect_line(&s,
		"SEND Only Inv psn 15786450 qp 0xabc123 invalidate rkey 0x99aabbcc len 0 solicited");
	sample_init(&s, v4, UD_SEND_ONLY, 4);
	expect_line(&s,
		"UD SEND Only psn 15786450 qp 0xabc123 from qp 0x334455 qkey 0x80010000 len 4 ackreq");
	sample_init(&s, v4, RC_ATOMIC_ACK, 0);
	s.h.syndrome = 0x1F;
	expect_line(&s,
		"ATOMIC Acknowledge psn 15786450 qp 0xabc123 ACK msn 8027004 "
		"original 0x2122232425262728 len 0 ackreq");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_psn_diff_is_the_signed_24_bit_distance),
		cmocka_unit_test(test_psn_add_wraps_at_24_bits),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
