/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Compiled paths and built frames, compared byte by byte (rc-transport 1, 9 and 10). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../checked.h"
#include "hex.h"
#include "sample.h"
#include "vectors.h"
#include "wire/bytes.h"
#include "wire/crc32.h"

static const union gid v4_1 = { .raw = { [10] = 0xFF, 0xFF, 10, 0, 0, 1 } };
static const union gid v4_2 = { .raw = { [10] = 0xFF, 0xFF, 10, 0, 0, 2 } };
static const union gid ll_1 = { .raw = { 0xFE, 0x80, [15] = 1 } };
static const union gid ll_2 = { .raw = { 0xFE, 0x80, [15] = 2 } };

static struct av
path_av_of(enum encap encap)
{
	struct av av = {
		.encap = encap,
		.sgid = encap == ENCAP_ROCEV2_IPV4 ? v4_1 : ll_1,
		.dgid = encap == ENCAP_ROCEV2_IPV4 ? v4_2 : ll_2,
		.smac = { 2, 0, 0, 0, 0, 1 },
		.dmac = { 2, 0, 0, 0, 0, 2 },
		.vlan = PATH_NO_VLAN,
	};

	return av;
}

static void
path_expect_frame(const struct av *av, uint32_t sport_from, const struct wire_headers *h,
	const char *payload, const char *hex)
{
	uint8_t want[256], got[256 + PATH_HEADER_MAX];
	uint32_t want_len = hex_bytes(hex, want, sizeof(want));
	uint8_t *bth = got + PATH_HEADER_MAX;
	struct path path;
	uint32_t len;

	path_init(&path, av, sport_from, 1);
	memset(got, 0xEE, sizeof(got)); /* no byte is zero before */
	len = wire_build(bth, h);
	len += hex_bytes(payload, bth + len, 64);
	assert_int_equal(path_finish(&path, bth, len, 0), want_len);
	assert_memory_equal(bth - path.header_len, want, want_len);
	assert_int_equal(*(bth - path.header_len - 1), 0xEE);
	assert_int_equal(bth[want_len - path.header_len], 0xEE);
}

/* The sheet's frames have UDP source port 0xC123, which the QP product 0x123 gives. */
static void
test_vectors_are_rebuilt(void **state)
{
	const struct wire_headers ack = {
		.opcode = RC_ACK,
		.pkey = 0xFFFF,
		.dest_qpn = 0x456,
		.psn = 0x12,
		.syndrome = 0x1F,
		.msn = 7,
	};
	const struct wire_headers write = {
		.opcode = RC_WRITE_ONLY,
		.pkey = 0xFFFF,
		.pad = 2,
		.dest_qpn = 0x123,
		.ackreq = true,
		.psn = 0x10,
		.va = 0x1000,
		.rkey = 0xCAFE,
		.dmalen = 2,
	};
	struct av av = path_av_of(ENCAP_ROCEV2_IPV4);

	(void)state;
	path_expect_frame(&av, 0x123, &ack, "", VECTOR_V4_ACK);
	path_expect_frame(&av, 0x123, &write, "68690000", VECTOR_V4_WRITE);
	av = path_av_of(ENCAP_ROCEV2_IPV6);
	path_expect_frame(&av, 0x123, &ack, "", VECTOR_V6_ACK);
	av = path_av_of(ENCAP_ROCEV1);
	path_expect_frame(&av, 0x123, &ack, "", VECTOR_V1_ACK);
}

/* IBA's example packet: an address vector gives its LRH, ICRC and VCRC. */
static void
test_native_ib_example_is_rebuilt(void **state)
{
	const char *want_hex =
		"020000000002020000000001 88B5" VECTOR_LOCAL VECTOR_LOCAL_ICRC VECTOR_LOCAL_VCRC;
	uint8_t got[256], want[256];
	uint32_t want_len = hex_bytes(want_hex, want, sizeof(want));
	uint8_t *bth = got + PATH_HEADER_MAX;
	struct av av = path_av_of(ENCAP_IB);
	struct path path;

	(void)state;
	av.sl = 1;
	av.dlid = 0x375C;
	av.slid = 0x17D2;
	path_init(&path, &av, 1, 0x87B1B3);
	path.header[path.l3_off] |= 0x70; /* the example travels on VL 7 */
	memcpy(bth, want + 14 + 8, 44);
	assert_int_equal(path_finish(&path, bth, 44, 0), want_len);
	assert_memory_equal(bth - path.header_len, want, want_len);
}

/* rc-transport 10 */
static void
test_source_port_examples(void **state)
{
	(void)state;
	assert_int_equal(rocev2_sport(0, 0x11, 0x12), 0xC132);
	assert_int_equal(rocev2_sport(0, 0x123, 0x456), 0xEDD1);
	assert_int_equal(rocev2_sport(0, 0xABCDEF, 0x654321), 0xCC6C);
	/* 0xC000 | ((fl & 0x3FFF) ^ (fl >> 14)), whatever the QPs */
	assert_int_equal(rocev2_sport(0x12345, 0x11, 0x12), 0xC000 | (0x2345 ^ 0x4));
	assert_int_equal(rocev2_sport(0x12345, 0x77, 0x99), 0xC000 | (0x2345 ^ 0x4));
	assert_int_equal(rocev2_sport(0xFFFFF, 1, 1), 0xC000 | (0x3FFF ^ 0x3F));
}

/* The parser checks the checksum, so it verifies the incremental sum for every ID and length. */
static void
test_ipv4_checksum_holds_for_every_id_and_length(void **state)
{
	struct sample s;
	struct packet pkt;
	enum verdict why;
	uint32_t i, len;

	(void)state;
	sample_init(&s, &sample_carriers[0], RC_SEND_ONLY, 0);
	for (i = 0; i < 0x10000; i += i < 0x100 || i >= 0xFF00 ? 1 : 0x101) {
		uint8_t *bth = s.buf + PATH_HEADER_MAX;

		path_init(&s.path, &s.av, 1, 2);
		wire_build(bth, &s.h);
		len = path_finish(&s.path, bth, BTH_LEN + i % 1024 * 4, i);
		assert_true(wire_parse(ENCAP_ROCEV2_IPV4, bth - 28, len - 14, &pkt, &why));
		assert_int_equal(get_be16(bth - 28 + 4), i);
	}
}

/* The sum is 0x1FFFF: adding the carry makes another carry. */
static void
test_ipv4_checksum_carries_twice(void **state)
{
	uint32_t len, bth_len, id, fixed, twice = 0;
	struct sample s;
	struct packet pkt;
	enum verdict why;

	(void)state;
	sample_init(&s, &sample_carriers[0], RC_SEND_ONLY, 0);
	s.av.hop_limit = 0x5F;
	/* version, TOS, DF, TTL and protocol, 10.1.2.3, 10.1.2.4 */
	fixed = 0x456A + 0x4000 + 0x5F11 + 0x0A01 + 0x0203 + 0x0A01 + 0x0204;
	for (bth_len = BTH_LEN; bth_len <= 4096; bth_len += 4) {
		uint8_t *bth = s.buf + PATH_HEADER_MAX;

		id = 0x1FFFF - fixed - (20 + 8 + bth_len + 4);
		if (id > 0xFFFF)
			continue;
		path_init(&s.path, &s.av, 1, 2);
		wire_build(bth, &s.h);
		len = path_finish(&s.path, bth, bth_len, id);
		assert_true(wire_parse(ENCAP_ROCEV2_IPV4, bth - 28, len - 14, &pkt, &why));
		twice++;
	}
	assert_true(twice > 100);
}

/* Each path_finish_*() function makes the same frame as path_finish() with the payload in place. */
static void
expect_same_frame(const struct sample_carrier *carrier, uint8_t opcode, uint32_t payload_len,
	uint16_t vlan)
{
	static const uint16_t id = 0x4242; /* sample_build()'s */
	static uint8_t got[sizeof(((struct sample *)0)->buf) + 16];
	uint8_t *bth = got + PATH_HEADER_MAX;
	uint32_t headers, len;
	struct sample s;

	sample_init(&s, carrier, opcode, payload_len);
	s.av.vlan = vlan;
	sample_build(&s);
	memset(got, 0xEE, sizeof(got));
	headers = wire_build(bth, &s.h);
	len = path_finish_copy(&s.path, bth, headers,
		payload_len > 0 ? s.frame + s.path.header_len + headers : NULL, payload_len, id);
	assert_int_equal(len, s.frame_len);
	assert_memory_equal(bth - s.path.header_len, s.frame, s.frame_len);
	assert_int_equal(*(bth - s.path.header_len - 1), 0xEE);
	assert_int_equal(bth[s.frame_len - s.path.header_len], 0xEE);
	if (s.av.encap != ENCAP_IB) { /* equal except the ICRC */
		memset(bth + headers, 0xEE, payload_len + 8);
		len = path_finish_bare(&s.path, bth, headers,
			payload_len > 0 ? s.frame + s.path.header_len + headers : NULL, payload_len,
			id);
		assert_int_equal(len, s.frame_len);
		assert_memory_equal(bth - s.path.header_len, s.frame, s.frame_len - 4);
		assert_memory_equal(bth - s.path.header_len + s.frame_len - 4, "\0\0\0\0", 4);
	}
	memset(got, 0xEE, sizeof(got));
	len = path_finish_send(&s.path, bth, s.frame + s.path.header_len, headers,
		s.frame + s.path.header_len + headers, payload_len, id);
	assert_int_equal(len, s.frame_len);
	assert_memory_equal(bth - s.path.header_len, s.frame, s.frame_len);
	assert_int_equal(*(bth - s.path.header_len - 1), 0xEE);
	assert_int_equal(bth[s.frame_len - s.path.header_len], 0xEE);
}

static void
expect_same_frames(void)
{
	static const uint16_t vlans[] = { PATH_NO_VLAN, 0x123 };
	unsigned int i, v, opcode, extra;
	uint32_t len;

	for (i = 0; i < SAMPLE_CARRIERS; i++) {
		for (v = 0; v < 2; v++) {
			for (opcode = 0; opcode < 256; opcode++) {
				if (opcodes[opcode].name == NULL)
					continue;
				len = sample_payload_len(opcode);
				expect_same_frame(&sample_carriers[i], opcode, len, vlans[v]);
			}
			for (extra = 1; extra <= 300; extra++)
				expect_same_frame(&sample_carriers[i], RC_SEND_ONLY, extra,
					vlans[v]);
			expect_same_frame(&sample_carriers[i], RC_WRITE_FIRST, 4096, vlans[v]);
			expect_same_frame(&sample_carriers[i], RC_SEND_ONLY_IMM, 0, vlans[v]);
			expect_same_frame(&sample_carriers[i], RC_READ_RESP_ONLY, 0, vlans[v]);
		}
	}
}

static void
test_payload_copied_on_the_way_makes_the_same_frame(void **state)
{
	static const char *const kernels[] = { "portable", "pclmul", "vpclmul" };
	const char *at_start = crc_kernel->name;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (crc32_use(kernels[i]) == 0)
			expect_same_frames();
	assert_int_equal(crc32_use(at_start), 0);
}

static void
test_vlan_tag(void **state)
{
	struct sample s;
	uint8_t tag[6];

	(void)state;
	sample_init(&s, &sample_carriers[0], RC_ACK, 0);
	s.av.vlan = 0x123;
	s.av.sl = 6;
	sample_build(&s);
	hex_bytes("8100 C123 0800", tag, sizeof(tag)); /* PCP 6, VLAN 0x123 */
	assert_memory_equal(s.frame + 12, tag, 6);
	assert_int_equal(s.path.l3_off, 18);
	assert_int_equal(s.path.header_len, 18 + 20 + 8);
}

static void
test_address_vector_defaults(void **state)
{
	struct path p;
	struct av av = path_av_of(ENCAP_ROCEV2_IPV4);

	(void)state;
	path_init(&p, &av, 1, 2);
	assert_int_equal(p.header[14 + 8], 64); /* TTL */
	assert_int_equal(get_be16(p.header + 14 + 6), 0x4000); /* DF */
	assert_int_equal(p.neighbour, PATH_NO_NEIGHBOUR);
	assert_int_equal(p.trailer_len, 4);
	av = path_av_of(ENCAP_IB);
	path_init(&p, &av, 1, 2);
	assert_int_equal(get_be16(p.header + 12), 0x88B5);
	assert_int_equal(p.trailer_len, 6);
	assert_int_equal(p.header[14] >> 4, 0); /* VL */
	path_init(&p, &av, 0, 0);
	assert_int_equal(p.header[14] >> 4, 15); /* SMPs: VL 15 */
	av.ethertype = 0x9999;
	path_init(&p, &av, 1, 2);
	assert_int_equal(get_be16(p.header + 12), 0x9999);
}

/* The largest combination of headers fits PATH_HEADER_MAX. */
static void
test_header_fits_path_header_max(void **state)
{
	unsigned int i;
	struct sample s;

	(void)state;
	for (i = 0; i < SAMPLE_CARRIERS; i++) {
		sample_init(&s, &sample_carriers[i], RC_ACK, 0);
		s.av.vlan = 1;
		sample_build(&s);
		assert_in_range(s.path.header_len, 1, PATH_HEADER_MAX);
		assert_in_range(s.path.trailer_len, 1, PATH_TRAILER_MAX);
	}
}

/* The sheet's CNP: BECN set, 16 zero bytes. */
static void
test_cnp_carries_becn(void **state)
{
	const struct wire_headers h = { .opcode = OPCODE_CNP, .pkey = 0xFFFF, .dest_qpn = 0x118 };
	uint8_t vector[128], bth[16];

	(void)state;
	hex_bytes(VECTOR_CNP, vector, sizeof(vector));
	assert_int_equal(wire_build(bth, &h), 12);
	assert_memory_equal(bth, vector + 42, 12);
}

/* padding (-len) & 3 */
static void
test_padding(void **state)
{
	(void)state;
	assert_int_equal(wire_pad(0), 0);
	assert_int_equal(wire_pad(1), 3);
	assert_int_equal(wire_pad(2), 2);
	assert_int_equal(wire_pad(3), 1);
	assert_int_equal(wire_pad(4), 0);
	assert_int_equal(wire_pad(4093), 3);
}

static void
build_headers(void *bth, void *headers)
{
	wire_build(bth, headers);
}

static void
compile_path(void *path, void *av)
{
	path_init(path, av, 0x11, 0x12);
}

/* A caller's mistake ends builds with checks: what the header has no room for. */
static void
test_values_beyond_their_fields_are_found(void **state)
{
	struct wire_headers ok = { .opcode = RC_SEND_ONLY, .psn = PSN_MASK }, wrong;
	struct av av = path_av_of(ENCAP_ROCEV2_IPV4);
	struct path path;
	uint8_t bth[64];

	(void)state;
	assert_false(ends_process(build_headers, bth, &ok));
	wrong = ok;
	wrong.psn++;
	assert_int_equal(ends_process(build_headers, bth, &wrong), CHECKED);
	wrong = ok;
	wrong.pad = 4;
	assert_int_equal(ends_process(build_headers, bth, &wrong), CHECKED);
	av.vlan = 0xFFF;
	assert_false(ends_process(compile_path, &path, &av));
	av.vlan++;
	assert_int_equal(ends_process(compile_path, &path, &av), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_are_rebuilt),
		cmocka_unit_test(test_native_ib_example_is_rebuilt),
		cmocka_unit_test(test_source_port_examples),
		cmocka_unit_test(test_ipv4_checksum_holds_for_every_id_and_length),
		cmocka_unit_test(test_ipv4_checksum_carries_twice),
		cmocka_unit_test(test_payload_copied_on_the_way_makes_the_same_frame),
		cmocka_unit_test(test_vlan_tag),
		cmocka_unit_test(test_address_vector_defaults),
		cmocka_unit_test(test_header_fits_path_header_max),
		cmocka_unit_test(test_cnp_carries_becn),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_values_beyond_their_fields_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
