/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The opcode table, RNR timers and credits, against rc-transport 2 and 3. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/wire.h"

static void
expect_row(uint8_t op, const char *name, uint8_t headers, uint8_t header_len, uint8_t payload,
	uint16_t flags)
{
	assert_string_equal(opcodes[op].name, name);
	assert_int_equal(opcodes[op].headers, headers);
	assert_int_equal(opcodes[op].header_len, header_len);
	assert_int_equal(opcodes[op].payload, payload);
	assert_int_equal(opcodes[op].flags, flags | OP_VALID);
}

static void
test_rc_rows_of_section_2(void **state)
{
	const uint16_t send = OP_SEND | OP_REQUEST, write = OP_WRITE | OP_REQUEST;
	const uint16_t resp = OP_READ | OP_RESPONSE;

	(void)state;
	expect_row(0x00, "SEND First", 0, 12, PAYLOAD_PMTU, send | OP_FIRST | OP_RQ_WQE);
	expect_row(0x01, "SEND Middle", 0, 12, PAYLOAD_PMTU, send | OP_MIDDLE);
	expect_row(0x02, "SEND Last", 0, 12, PAYLOAD_SOME, send | OP_LAST);
	expect_row(0x03, "SEND Last Imm", HDR_IMM, 16, PAYLOAD_SOME, send | OP_LAST);
	expect_row(0x04, "SEND Only", 0, 12, PAYLOAD_ANY, send | OP_ONLY | OP_RQ_WQE);
	expect_row(0x05, "SEND Only Imm", HDR_IMM, 16, PAYLOAD_ANY, send | OP_ONLY | OP_RQ_WQE);
	expect_row(0x06, "WRITE First", HDR_RETH, 28, PAYLOAD_PMTU, write | OP_FIRST);
	expect_row(0x07, "WRITE Middle", 0, 12, PAYLOAD_PMTU, write | OP_MIDDLE);
	expect_row(0x08, "WRITE Last", 0, 12, PAYLOAD_SOME, write | OP_LAST);
	expect_row(0x09, "WRITE Last Imm", HDR_IMM, 16, PAYLOAD_SOME, write | OP_LAST | OP_RQ_WQE);
	expect_row(0x0A, "WRITE Only", HDR_RETH, 28, PAYLOAD_ANY, write | OP_ONLY);
	expect_row(0x0B, "WRITE Only Imm", HDR_RETH | HDR_IMM, 32, PAYLOAD_ANY,
		write | OP_ONLY | OP_RQ_WQE);
	expect_row(0x0C, "READ Request", HDR_RETH, 28, PAYLOAD_NONE,
		OP_READ | OP_REQUEST | OP_ONLY);
	expect_row(0x0D, "READ Response First", HDR_AETH, 16, PAYLOAD_PMTU, resp | OP_FIRST);
	expect_row(0x0E, "READ Response Middle", 0, 12, PAYLOAD_PMTU, resp | OP_MIDDLE);
	expect_row(0x0F, "READ Response Last", HDR_AETH, 16, PAYLOAD_SOME, resp | OP_LAST);
	expect_row(0x10, "READ Response Only", HDR_AETH, 16, PAYLOAD_ANY, resp | OP_ONLY);
	expect_row(0x11, "Acknowledge", HDR_AETH, 16, PAYLOAD_NONE, OP_RESPONSE | OP_ONLY);
	expect_row(0x12, "ATOMIC Acknowledge", HDR_AETH | HDR_ATOMICACK, 24, PAYLOAD_NONE,
		OP_ATOMIC | OP_RESPONSE | OP_ONLY);
	expect_row(0x13, "CmpSwap", HDR_ATOMICETH, 40, PAYLOAD_NONE,
		OP_ATOMIC | OP_REQUEST | OP_ONLY);
	expect_row(0x14, "FetchAdd", HDR_ATOMICETH, 40, PAYLOAD_NONE,
		OP_ATOMIC | OP_REQUEST | OP_ONLY);
	expect_row(0x16, "SEND Last Inv", HDR_IETH, 16, PAYLOAD_SOME,
		send | OP_LAST | OP_INVALIDATE);
	expect_row(0x17, "SEND Only Inv", HDR_IETH, 16, PAYLOAD_ANY,
		send | OP_ONLY | OP_RQ_WQE | OP_INVALIDATE);
	expect_row(0x64, "UD SEND Only", HDR_DETH, 20, PAYLOAD_ANY, send | OP_ONLY | OP_RQ_WQE);
	expect_row(0x65, "UD SEND Only Imm", HDR_DETH | HDR_IMM, 24, PAYLOAD_ANY,
		send | OP_ONLY | OP_RQ_WQE);
	expect_row(0x81, "CNP", 0, 12, PAYLOAD_ANY, OP_ONLY);
}

static void
test_flush_and_atomic_write_are_named_but_no_requests(void **state)
{
	(void)state;
	expect_row(0x1C, "FLUSH", HDR_FETH | HDR_RETH, 32, PAYLOAD_NONE, OP_ONLY);
	expect_row(0x1D, "ATOMIC WRITE", HDR_RETH, 28, PAYLOAD_SOME, OP_ONLY);
}

/* UC = 0x20 + (00..0B) */
static void
test_uc_rows_equal_the_rc_rows(void **state)
{
	uint8_t op;

	(void)state;
	for (op = 0; op <= 0x0B; op++) {
		const struct opcode_info *uc = &opcodes[0x20 + op], *rc = &opcodes[op];

		assert_string_equal(uc->name + 3, rc->name);
		assert_memory_equal(uc->name, "UC ", 3);
		assert_int_equal(uc->flags, rc->flags);
		assert_int_equal(uc->headers, rc->headers);
		assert_int_equal(uc->header_len, rc->header_len);
		assert_int_equal(uc->payload, rc->payload);
	}
}

/*
 * rc-transport 6 row 3: reserved opcodes of the RC class are answered with a NAK, so they must
 * parse. Packets with unknown opcodes of other classes are dropped.
 */
static void
test_only_the_rc_class_has_reserved_rows(void **state)
{
	static const uint8_t reserved[] = { 0x15, 0x18, 0x19, 0x1A, 0x1B, 0x1E, 0x1F };
	unsigned int op, i, named = 0;

	(void)state;
	assert_string_equal(opcodes[0x15].name, "RC reserved 0x15");
	assert_string_equal(opcodes[0x1F].name, "RC reserved 0x1F");
	for (i = 0; i < sizeof(reserved); i++) {
		assert_int_equal(opcodes[reserved[i]].flags, 0);
		assert_int_equal(opcodes[reserved[i]].headers, 0);
		assert_int_equal(opcodes[reserved[i]].header_len, 12);
	}
	for (op = 0; op < 256; op++)
		named += opcodes[op].name != NULL;
	assert_int_equal(named, 32 + 12 + 2 + 1);
}

static void
test_rnr_timers_of_table_17_6(void **state)
{
	static const double ms[32] = { 655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24,
		0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48,
		30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52 };
	unsigned int code;

	(void)state;
	for (code = 0; code < 32; code++)
		assert_int_equal(rnr_timer_ns(code), (uint64_t)(ms[code] * 100 + 0.5) * 10000);
}

static void
test_credit_codes_of_section_3(void **state)
{
	static const unsigned int credits[31] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
		128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768 };
	unsigned int code;

	(void)state;
	for (code = 0; code < 31; code++)
		assert_int_equal(aeth_scale(code), credits[code]);
}

/* "largest code whose value <= posted RQ WQEs" */
static void
test_credit_encode_never_promises_too_much(void **state)
{
	uint32_t posted;
	uint8_t code;

	(void)state;
	for (posted = 0; posted <= 70000; posted++) {
		code = credit_encode(posted);
		assert_true(code <= 30);
		assert_true(aeth_scale(code) <= posted);
		assert_true(code == 30 || aeth_scale(code + 1) > posted);
	}
	assert_int_equal(credit_encode(UINT32_MAX), 30);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rc_rows_of_section_2),
		cmocka_unit_test(test_flush_and_atomic_write_are_named_but_no_requests),
		cmocka_unit_test(test_uc_rows_equal_the_rc_rows),
		cmocka_unit_test(test_only_the_rc_class_has_reserved_rows),
		cmocka_unit_test(test_rnr_timers_of_table_17_6),
		cmocka_unit_test(test_credit_codes_of_section_3),
		cmocka_unit_test(test_credit_encode_never_promises_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
