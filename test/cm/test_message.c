/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* CM messages byte by byte (cm.md 1, 2): vectors.c has them. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../wire/hex.h"
#include "vectors.h"

/* cm.md 2, the last column: offsets of private data */
static const struct {
	unsigned int offset; /* from the end of the MAD header */
	unsigned int len;
} private_areas[CM_MESSAGES] = {
	[CM_REQ] = { 140, 92 },
	[CM_MRA] = { 10, 222 },
	[CM_REJ] = { 84, 148 },
	[CM_REP] = { 36, 196 },
	[CM_RTU] = { 8, 224 },
	[CM_DREQ] = { 12, 220 },
	[CM_DREP] = { 8, 224 },
	[CM_SIDR_REQ] = { 16, 216 },
	[CM_SIDR_REP] = { 96, 136 },
	[CM_LAP] = { 64, 168 },
	[CM_APR] = { 84, 148 },
};

static void
same_fields(const struct cm_msg *a, const struct cm_msg *b)
{
	assert_memory_equal(a, b, offsetof(struct cm_msg, private_data));
}

static void
test_each_message_encodes_to_the_sheets_bytes(void **state)
{
	uint8_t want[MAD_LEN], got[MAD_LEN];

	(void)state;
	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		struct cm_msg m = cm_vectors[i].msg;
		unsigned int private = cm_vector_mad(&cm_vectors[i], want);

		assert_int_equal(private, 24 + private_areas[i].offset);
		m.private_data = want + private;
		m.private_len = (uint8_t)private_areas[i].len;
		memset(got, 0xAA, sizeof(got));
		cm_msg_encode(&m, got);
		assert_memory_equal(got, want, MAD_LEN);
	}
}

static void
test_each_message_decodes_to_the_sheets_fields(void **state)
{
	uint8_t mad[MAD_LEN];
	struct cm_msg m;

	(void)state;
	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		unsigned int private = cm_vector_mad(&cm_vectors[i], mad);

		memset(&m, 0xAA, sizeof(m));
		assert_int_equal(cm_msg_decode(mad, &m), 0);
		same_fields(&m, &cm_vectors[i].msg);
		assert_ptr_equal(m.private_data, mad + private);
		assert_int_equal(m.private_len, private_areas[i].len);
	}
}

/* Each field has the width of the sheet; a length of information is at most 72. */
static void
test_reserved_bits_are_ignored_and_sent_as_zero(void **state)
{
	uint8_t mad[MAD_LEN], want[MAD_LEN], got[MAD_LEN];
	struct cm_msg m;

	(void)state;
	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		size_t len = hex_bytes(cm_vectors[i].ones, want, sizeof(want));

		assert_int_equal(len, private_areas[i].offset);
		cm_vector_mad(&cm_vectors[i], mad);
		memset(mad + 24, 0xFF, sizeof(mad) - 24);
		assert_int_equal(cm_msg_decode(mad, &m), 0);
		m.private_data = NULL;
		cm_msg_encode(&m, got);
		assert_memory_equal(got + 24, want, len);
		for (size_t at = 24 + len; at < MAD_LEN; at++)
			assert_int_equal(got[at], 0);
	}
}

static void
test_too_wide_values_do_not_change_other_fields(void **state)
{
	struct cm_msg m = { .type = CM_REQ };
	uint8_t mad[MAD_LEN];

	(void)state;
	m.req.qpn = UINT32_MAX;
	m.req.mtu = UINT8_MAX;
	m.req.primary.rate = UINT8_MAX;
	cm_msg_encode(&m, mad);
	assert_memory_equal(mad + 24 + 32, "\xFF\xFF\xFF\x00", 4);
	assert_memory_equal(mad + 24 + 50, "\xF0\x00", 2);
	assert_memory_equal(mad + 24 + 88, "\x00\x00\x00\x3F\x00", 5);
}

static void
test_private_data_end_with_zeros_and_with_their_area(void **state)
{
	uint8_t mad[MAD_LEN + 8], data[255];
	struct cm_msg m = { .type = CM_REQ, .private_data = data, .private_len = 3 };

	(void)state;
	memset(data, 0x5A, sizeof(data));
	cm_msg_encode(&m, mad);
	assert_memory_equal(mad + 24 + 140, "\x5A\x5A\x5A\x00\x00", 5);
	assert_int_equal(mad[MAD_LEN - 1], 0);
	m.private_len = 255;
	memset(mad, 0xEE, sizeof(mad));
	cm_msg_encode(&m, mad);
	assert_int_equal(mad[MAD_LEN - 1], 0x5A);
	assert_int_equal(mad[MAD_LEN], 0xEE);
}

static void
test_mads_of_other_kinds_are_refused(void **state)
{
	static const struct {
		unsigned int byte;
		uint8_t value;
		int error;
	} rows[] = {
		{ 0, 2, -EPROTONOSUPPORT }, /* base version */
		{ 1, 0x03, -EPROTONOSUPPORT }, /* class: the SA's */
		{ 2, 1, -EPROTONOSUPPORT }, /* class version */
		{ 2, 3, -EPROTONOSUPPORT },
		{ 3, 0x01, -EOPNOTSUPP }, /* Get */
		{ 3, 0x83, -EOPNOTSUPP },
		{ 16, 0x01, -EBADMSG }, /* attribute 0x0110 */
		{ 17, 0x01, -EBADMSG }, /* ClassPortInfo is no CM message */
		{ 17, 0x0F, -EBADMSG },
		{ 17, 0x1B, -EBADMSG },
	};
	uint8_t mad[MAD_LEN];
	struct cm_msg m;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cm_vector_mad(&cm_vectors[CM_REQ], mad);
		mad[rows[i].byte] = rows[i].value;
		assert_int_equal(cm_msg_decode(mad, &m), rows[i].error);
	}
	/* status, modifier and reserved bytes of the header are ignored */
	cm_vector_mad(&cm_vectors[CM_REQ], mad);
	mad[4] = mad[6] = mad[18] = mad[20] = 0xFF;
	assert_int_equal(cm_msg_decode(mad, &m), 0);
}

static void
test_path_without_lids_and_gids_is_none(void **state)
{
	struct cm_msg_path path = { .flow_label = 1, .sl = 1, .ack_timeout = 1 };

	(void)state;
	assert_false(cm_msg_path_present(&path));
	path.remote_gid.raw[15] = 1;
	assert_true(cm_msg_path_present(&path));
	path = (struct cm_msg_path){ .local_lid = 1 };
	assert_true(cm_msg_path_present(&path));
	path = (struct cm_msg_path){ .remote_lid = 1 };
	assert_true(cm_msg_path_present(&path));
	path = (struct cm_msg_path){ .local_gid = { .raw = { 1 } } };
	assert_true(cm_msg_path_present(&path));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_message_encodes_to_the_sheets_bytes),
		cmocka_unit_test(test_each_message_decodes_to_the_sheets_fields),
		cmocka_unit_test(test_reserved_bits_are_ignored_and_sent_as_zero),
		cmocka_unit_test(test_too_wide_values_do_not_change_other_fields),
		cmocka_unit_test(test_private_data_end_with_zeros_and_with_their_area),
		cmocka_unit_test(test_mads_of_other_kinds_are_refused),
		cmocka_unit_test(test_path_without_lids_and_gids_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
