/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The layout tables of CM messages are consistent, and encode and decode any values. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cm/message.h"

#define MESSAGE_ROUNDS 2000

static uint64_t seed = 0x9E3779B97F4A7C15ull;

static uint64_t
random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static const char *
member_of(unsigned int type, const struct cm_msg_field *f)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s %s", cm_message_name(type), f->name);
	return text;
}

static void
test_no_two_fields_share_a_bit_or_a_member(void **state)
{
	(void)state;
	for (unsigned int type = 0; type < CM_MESSAGES; type++) {
		const struct cm_msg_layout *l = &cm_msg_layouts[type];
		bool bits[232 * 8] = { false }, bytes[sizeof(struct cm_msg)] = { false };

		for (const struct cm_msg_field *f = l->fields; f < l->fields + l->num_fields; f++) {
			for (unsigned int b = f->offset; b < f->offset + f->width; b++) {
				if (b >= l->private_offset * 8u || bits[b])
					fail_msg("%s: bit %u", member_of(type, f), b);
				bits[b] = true;
			}
			for (unsigned int b = f->member; b < f->member + (unsigned int)f->size;
				b++) {
				if (b >= offsetof(struct cm_msg, private_data) || bytes[b])
					fail_msg("%s: member's byte %u", member_of(type, f), b);
				bytes[b] = true;
			}
		}
	}
}

static void
test_members_are_as_wide_as_their_fields_or_wider(void **state)
{
	(void)state;
	for (unsigned int type = 0; type < CM_MESSAGES; type++) {
		const struct cm_msg_layout *l = &cm_msg_layouts[type];

		for (const struct cm_msg_field *f = l->fields; f < l->fields + l->num_fields; f++) {
			bool bytes = f->width >= 128;
			bool number = f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8;

			if (bytes ? f->offset % 8 != 0 || f->size * 8u != f->width
				  : !number || f->size * 8u < f->width)
				fail_msg("%s: %u bits, %u bytes", member_of(type, f), f->width,
					f->size);
		}
	}
}

static void
test_private_data_end_the_mad(void **state)
{
	(void)state;
	for (unsigned int type = 0; type < CM_MESSAGES; type++)
		assert_int_equal(cm_msg_layouts[type].private_offset +
				cm_msg_layouts[type].private_len,
			232);
}

static void
random_field(const struct cm_msg_field *f, uint8_t *m)
{
	uint64_t value = f->width < 64 ? random64() & ((1ull << f->width) - 1) : random64();
	uint8_t *member = m + f->member;

	if (f->width >= 128)
		for (unsigned int i = 0; i < f->size; i++)
			member[i] = (uint8_t)random64();
	else if (f->size == 1)
		*member = (uint8_t)value;
	else if (f->size == 2)
		memcpy(member, &(uint16_t){ (uint16_t)value }, 2);
	else if (f->size == 4)
		memcpy(member, &(uint32_t){ (uint32_t)value }, 4);
	else
		memcpy(member, &value, 8);
}

/* Limit lengths of information, as decoding does but encoding does not. */
static void
keep_info_lengths(struct cm_msg *m)
{
	if (m->type == CM_REJ)
		m->rej.ari_len %= CM_INFO_LEN + 1;
	if (m->type == CM_APR)
		m->apr.info_len %= CM_INFO_LEN + 1;
	if (m->type == CM_SIDR_REP)
		m->sidr_rep.info_len %= CM_INFO_LEN + 1;
}

static void
test_encoded_message_decodes_to_the_same(void **state)
{
	uint8_t mad[MAD_LEN], again[MAD_LEN], private[CM_PRIVATE_MAX];
	struct cm_msg m, got;

	(void)state;
	for (unsigned int round = 0; round < MESSAGE_ROUNDS * CM_MESSAGES; round++) {
		const struct cm_msg_layout *l = &cm_msg_layouts[round % CM_MESSAGES];

		memset(&m, 0, sizeof(m));
		m.type = (enum cm_message)(round % CM_MESSAGES);
		m.tid = random64();
		for (unsigned int i = 0; i < l->num_fields; i++)
			random_field(&l->fields[i], (uint8_t *)&m);
		keep_info_lengths(&m);
		m.private_data = private;
		m.private_len = (uint8_t)(random64() % (l->private_len + 1u));
		for (unsigned int i = 0; i < m.private_len; i++)
		private[i] = (uint8_t)random64();

		cm_msg_encode(&m, mad);
		assert_int_equal(cm_msg_decode(mad, &got), 0);
		assert_memory_equal(&got, &m, offsetof(struct cm_msg, private_data));
		assert_int_equal(got.private_len, l->private_len);
		assert_memory_equal(got.private_data, private, m.private_len);
		cm_msg_encode(&got, again);
		assert_memory_equal(again, mad, MAD_LEN);
	}
}

/* Any bytes behind a valid header decode to a message, which encodes to an equivalent one. */
static void
test_any_bytes_decode_to_a_message(void **state)
{
	uint8_t mad[MAD_LEN], again[MAD_LEN];
	struct cm_msg m, got;

	(void)state;
	for (unsigned int round = 0; round < MESSAGE_ROUNDS * CM_MESSAGES; round++) {
		cm_msg_encode(&(struct cm_msg){ .type = (enum cm_message)(round % CM_MESSAGES) },
			mad);
		for (unsigned int i = MAD_HEADER_LEN; i < MAD_LEN; i++)
			mad[i] = (uint8_t)random64();
		assert_int_equal(cm_msg_decode(mad, &m), 0);
		cm_msg_encode(&m, again);
		assert_int_equal(cm_msg_decode(again, &got), 0);
		assert_memory_equal(&got, &m, offsetof(struct cm_msg, private_data));
		assert_memory_equal(got.private_data, m.private_data, m.private_len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_two_fields_share_a_bit_or_a_member),
		cmocka_unit_test(test_members_are_as_wide_as_their_fields_or_wider),
		cmocka_unit_test(test_private_data_end_the_mad),
		cmocka_unit_test(test_encoded_message_decodes_to_the_same),
		cmocka_unit_test(test_any_bytes_decode_to_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
