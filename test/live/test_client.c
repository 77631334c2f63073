/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The client: encode requests byte for byte, and check which answers it accepts. */

#include <string.h>

#include "pair.h"

/* --- requests --- */

static void
expect_built(const struct live_request *req, const char *header, const char *data)
{
	uint8_t mad[MAD_LEN], want[MAD_LEN] = { 0 };

	memset(mad, 0xEE, sizeof(mad));
	assert_false(live_build(req, mad, NULL));
	hex(want, header);
	hex(want + 40, data);
	assert_memory_equal(mad, want, MAD_LEN);
}

/* All zeros but the TID, which is lib/mad's: liveness 4 */
#define HEADER(class, attribute)                                                                   \
	"01" class "0101 00000000 0000000000000000" attribute                                      \
		   "0000 00000000 000000000000000000000000 00 001405"

static void
test_requests_are_the_vectors(void **state)
{
	(void)state;
	expect_built(&(struct live_request){ .mode = LIVE_MODE_IBPING, .identifier = 0x1234 },
		HEADER("32", "0000"), "");
	expect_built(
		&(struct live_request){
			.mode = LIVE_MODE_ECHO,
			.identifier = 0x1234,
			.sequence = 1,
			.data = (const uint8_t *)"data",
			.len = 4,
		},
		HEADER("34", "0000"), "01 000000 1234 0001 64617461");
	expect_built(&(struct live_request){ .mode = LIVE_MODE_ECHO, .identifier = 0x1234 },
		HEADER("34", "0000"), "01 000000 1234 0000");
	expect_built(
		&(struct live_request){
			.mode = LIVE_MODE_TIMESTAMP,
			.identifier = 0x1234,
			.sequence = 2,
			.originate = 0x80ABCDEF,
		},
		HEADER("34", "0000"), "03 000000 1234 0002 80ABCDEF 00000000 00000000");
	expect_built(&(struct live_request){ .mode = LIVE_MODE_LIDGUID, .sequence = 0xFFFF },
		HEADER("34", "0000"), "05 000000 0000 FFFF");
	expect_built(&(struct live_request){ .mode = LIVE_MODE_SYSSTAT_PING }, HEADER("33", "0010"),
		"");
	expect_built(&(struct live_request){ .mode = LIVE_MODE_SYSSTAT_HOST }, HEADER("33", "0011"),
		"");
	expect_built(&(struct live_request){ .mode = LIVE_MODE_SYSSTAT_CPU }, HEADER("33", "0012"),
		"");
}

static void
test_one_packet_takes_208_bytes(void **state)
{
	uint8_t data[LIVE_AREA + 1], mad[MAD_LEN], body[8 + LIVE_AREA + 2];
	struct live_request req = {
		.mode = LIVE_MODE_ECHO,
		.identifier = 0x0102,
		.sequence = 0x0304,
		.data = data,
		.len = LIVE_AREA,
	};
	uint8_t want[MAD_LEN] = { 0 };

	(void)state;
	memset(data, 0x77, sizeof(data));
	assert_false(live_build(&req, mad, NULL));
	assert_memory_equal(mad + 48, data, LIVE_AREA);
	req.len++;
	memset(body, 0xEE, sizeof(body));
	assert_true(live_build(&req, mad, body));
	hex(want, HEADER("34", "0000"));
	assert_memory_equal(mad, want, MAD_LEN);
	hex(want, "01 000000 0102 0304");
	assert_memory_equal(body, want, 8);
	assert_memory_equal(body + 8, data, LIVE_AREA + 1);
	assert_int_equal(body[8 + LIVE_AREA + 1], 0xEE);
}

/* --- answers --- */

/* A valid single-packet answer for each mode. */
static void
good_answer(const struct live_request *req, uint8_t *mad)
{
	live_build(req, mad, NULL);
	mad[3] = MAD_GET_RESP;
	put_be64(mad + 8, 0x0102030405060708);
	if (mad[1] == LIVE_CLASS)
		mad[40]++;
	switch (req->mode) {
	case LIVE_MODE_TIMESTAMP:
		put_be32(mad + 52, 7000);
		put_be32(mad + 56, 7001);
		break;
	case LIVE_MODE_LIDGUID:
		hex(mad + 48, "0102 1112131415161718");
		break;
	case LIVE_MODE_SYSSTAT_PING:
	case LIVE_MODE_ECHO:
		break;
	default:
		memcpy(mad + 40, "host.domain", 12);
	}
}

static const struct live_request requests[] = {
	{ LIVE_MODE_ECHO, 0x1234, 0x5678, (const uint8_t *)"0123456789", 10, 0 },
	{ LIVE_MODE_TIMESTAMP, 0x1234, 0x5678, NULL, 0, 86399999 },
	{ LIVE_MODE_LIDGUID, 0x1234, 0x5678, NULL, 0, 0 },
	{ LIVE_MODE_IBPING, 0, 0, NULL, 0, 0 },
	{ LIVE_MODE_SYSSTAT_PING, 0, 0, NULL, 0, 0 },
	{ LIVE_MODE_SYSSTAT_HOST, 0, 0, NULL, 0, 0 },
	{ LIVE_MODE_SYSSTAT_CPU, 0, 0, NULL, 0, 0 },
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static void
live_client_check(const struct live_request *req, const uint8_t *mad, struct live_reply *reply)
{
	live_check(req, mad, mad + 40, 216, reply);
}

static void
test_good_answers_are_taken(void **state)
{
	struct live_reply reply;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	(void)state;
	for (i = 0; i < REQUESTS; i++) {
		good_answer(&requests[i], mad);
		live_client_check(&requests[i], mad, &reply);
		assert_null(reply.error);
		if (requests[i].mode == LIVE_MODE_ECHO)
			assert_int_equal(reply.len, 10);
		assert_int_equal(reply.originate, i == 1 ? 86399999 : 0);
		assert_int_equal(reply.receive, i == 1 ? 7000 : 0);
		assert_int_equal(reply.transmit, i == 1 ? 7001 : 0);
		assert_int_equal(reply.lid, i == 2 ? 0x0102 : 0);
		assert_int_equal(reply.guid, i == 2 ? 0x1112131415161718 : 0);
		assert_string_equal(reply.text, i == 3 || i > 4 ? "host.domain" : "");
	}
}

/* Header fields that lib/mad has matched, RMPP's and reserved ones are not checked. */
static bool
header_is_looked_at(unsigned int i)
{
	return i < 6 || i == 16 || i == 17 || (i >= 20 && i < 24) || (i >= 37 && i < 40);
}

/* Values that only the responder knows are not checked. */
static bool
data_is_looked_at(enum live_mode mode, unsigned int i)
{
	if (mode >= LIVE_MODE_IBPING)
		return false;
	if (i < 48)
		return i == 40 || i >= 44;
	if (mode == LIVE_MODE_TIMESTAMP)
		return i < 52;
	return mode == LIVE_MODE_ECHO;
}

static void
test_any_changed_byte_is_noticed(void **state)
{
	struct live_reply reply;
	uint8_t mad[MAD_LEN];
	unsigned int i, at, bit;
	bool noticed;

	(void)state;
	for (i = 0; i < REQUESTS; i++) {
		for (at = 0; at < MAD_LEN; at++) {
			noticed = at < 40 ? header_is_looked_at(at)
					  : data_is_looked_at(requests[i].mode, at);
			for (bit = 0; bit < 8; bit++) {
				good_answer(&requests[i], mad);
				mad[at] ^= (uint8_t)(1u << bit);
				live_client_check(&requests[i], mad, &reply);
				if ((reply.error != NULL) != noticed)
					fail_msg("mode %u, byte %u: %s", i, at,
						reply.error != NULL ? reply.error : "taken");
			}
		}
	}
}

static void
test_a_status_is_named(void **state)
{
	struct live_reply reply;
	uint8_t mad[MAD_LEN];

	(void)state;
	good_answer(&requests[0], mad);
	put_be16(mad + 4, 0x000C);
	live_client_check(&requests[0], mad, &reply);
	assert_string_equal(reply.error, "BAD_METHOD_ATTRIBUTE");
}

static void
test_any_changed_byte_of_many_is_noticed(void **state)
{
	uint8_t data[1000], mad[MAD_LEN], body[1009];
	const struct live_request req = {
		.mode = LIVE_MODE_ECHO,
		.identifier = 1,
		.sequence = 2,
		.data = data,
		.len = sizeof(data),
	};
	struct live_reply reply;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(data); i++)
		data[i] = pattern(i);
	assert_true(live_build(&req, mad, body));
	mad[3] = MAD_GET_RESP;
	body[0] = LIVE_ECHO_RESPONSE;
	live_check(&req, mad, body, 1008, &reply);
	assert_null(reply.error);
	assert_int_equal(reply.len, 1000);
	for (i = 0; i < 1008; i++) {
		body[i] ^= 0x10;
		live_check(&req, mad, body, 1008, &reply);
		assert_int_equal(reply.error == NULL, i >= 1 && i <= 3); /* reserved */
		body[i] ^= 0x10;
	}
	for (i = 0; i <= 1009; i++) { /* and any byte too few or too many */
		live_check(&req, mad, body, i, &reply);
		assert_int_equal(reply.error == NULL, i == 1008);
	}
}

/* For an answer that is too short for its type, no byte behind its end is read. */
static void
test_short_answers_are_refused(void **state)
{
	static const unsigned int enough[] = { 216, 20, 18 };
	uint8_t mad[MAD_LEN];
	struct live_reply reply;
	unsigned int i, len;

	(void)state;
	for (i = 0; i < 3; i++) {
		good_answer(&requests[i], mad);
		for (len = 0; len <= 216; len++) {
			live_check(&requests[i], mad, mad + 40, len, &reply);
			assert_int_equal(reply.error == NULL, len >= enough[i]);
		}
	}
}

/* --- text: security, anybody may have written it --- */

static void
test_text_is_made_printable(void **state)
{
	static const uint8_t said[] = "a\x1B[2Jb\r\n\xC3\xA4\x7F\tc";
	struct live_reply reply;
	uint8_t mad[MAD_LEN];

	(void)state;
	good_answer(&requests[3], mad);
	memcpy(mad + 40, said, sizeof(said));
	live_client_check(&requests[3], mad, &reply);
	assert_string_equal(reply.text, "a?[2Jb?\n????c");
}

static void
test_text_without_end_stops_at_the_packets(void **state)
{
	struct live_reply reply;
	uint8_t mad[MAD_LEN];

	(void)state;
	good_answer(&requests[3], mad);
	memset(mad + 40, 'x', 216);
	live_client_check(&requests[3], mad, &reply);
	assert_int_equal(strlen(reply.text), 216);
}

static void
test_long_text_is_cut(void **state)
{
	static uint8_t text[5000];
	struct live_reply reply;
	uint8_t mad[MAD_LEN];

	(void)state;
	memset(text, 'x', sizeof(text));
	good_answer(&requests[6], mad);
	live_check(&requests[6], mad, text, sizeof(text), &reply);
	assert_null(reply.error);
	assert_int_equal(strlen(reply.text), sizeof(reply.text) - 1);
}

/* --- each mode against the server --- */

static void
test_client_and_server_agree(void **state)
{
	static const struct live_cpu cpu[] = { { "One", "1000" } };
	struct pair *p = pair_create(&(struct pair_config){ .cpu = cpu, .num_cpus = 1 });
	struct live_reply reply;
	unsigned int i;

	(void)state;
	p->h->a.attr.guid = 0x1122334455667788;
	live_set_clock(p->live, p->h->now, 5000);
	for (i = 0; i < REQUESTS; i++) {
		ask(p, &requests[i], &reply);
		assert_null(reply.error);
		assert_in_range(reply.receive, i == 1 ? 5000 : 0, i == 1 ? 6000 : 0);
		assert_int_equal(reply.transmit, reply.receive);
		assert_int_equal(reply.guid, i == 2 ? 0x1122334455667788 : 0);
		assert_string_equal(reply.text,
			i == 3 || i == 5 ? "host.domain"
				: i == 6 ? "cpu 0: model One MHZ 1000\n"
					 : "");
	}
	pair_destroy(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_are_the_vectors),
		cmocka_unit_test(test_one_packet_takes_208_bytes),
		cmocka_unit_test(test_good_answers_are_taken),
		cmocka_unit_test(test_any_changed_byte_is_noticed),
		cmocka_unit_test(test_a_status_is_named),
		cmocka_unit_test(test_any_changed_byte_of_many_is_noticed),
		cmocka_unit_test(test_short_answers_are_refused),
		cmocka_unit_test(test_text_is_made_printable),
		cmocka_unit_test(test_text_without_end_stops_at_the_packets),
		cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_client_and_server_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
