/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Parsing: every field, every reason to drop a packet, and packets cut at every length. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hex.h"
#include "sample.h"
#include "vectors.h"
#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/parse_plain.h"

/* Parse from a heap block of exactly len bytes, so that AddressSanitizer detects reads outside. */
static bool
parse_exact(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt,
	enum verdict *why)
{
	uint8_t *exact = malloc(len ? len : 1);
	enum verdict crc_why;
	uint8_t sum = 0;
	uint32_t i;
	bool ok;

	assert_non_null(exact);
	memcpy(exact, l3, len);
	memset(pkt, 0xA5, sizeof(*pkt));
	*why = VERDICT_COUNT;
	ok = wire_parse(encap, exact, len, pkt, why);
	if (ok) {
		/* payload, padding and ICRC lie within the block */
		assert_true(pkt->payload + pkt->payload_len + pkt->pad + ICRC_LEN <= exact + len);
		assert_true(pkt->icrc_len + ICRC_LEN <= len);
		assert_ptr_equal(pkt->l3 + pkt->icrc_len,
			pkt->payload + pkt->payload_len + pkt->pad);
		for (i = 0; i < pkt->payload_len; i++)
			sum += pkt->payload[i];
		(void)*(volatile uint8_t *)&sum;
		wire_crc_ok(pkt, &crc_why);
	} else {
		assert_in_range(*why, 0, VERDICT_COUNT - 1);
		assert_int_equal(verdict_infos[*why].kind, VERDICT_DROPPED);
	}
	free(exact);
	return ok;
}

static void
parse_expect_refused(enum encap encap, const uint8_t *l3, uint32_t len, enum verdict want)
{
	struct packet pkt;
	enum verdict why;

	if (parse_exact(encap, l3, len, &pkt, &why))
		fail_msg("parsed, wanted %s", verdict_infos[want].name);
	assert_string_equal(verdict_infos[why].name, verdict_infos[want].name);
}

static void
expect_fields(const struct sample *s, const struct packet *p)
{
	const struct wire_headers *h = &s->h;
	const struct opcode_info *op = &opcodes[h->opcode];
	bool ip = s->av.encap <= ENCAP_ROCEV2_IPV6;
	bool ib = s->av.encap == ENCAP_IB;
	bool grh = !ib || s->av.grh;
	union gid zero = { .word = { 0, 0 } };

	assert_ptr_equal(p->op, op);
	assert_int_equal(p->opcode, h->opcode);
	assert_int_equal(p->solicited, h->solicited);
	assert_int_equal(p->migreq, h->migreq);
	assert_int_equal(p->ackreq, h->ackreq);
	assert_int_equal(p->pad, h->pad);
	assert_int_equal(p->pkey, h->pkey);
	assert_int_equal(p->dest_qpn, h->dest_qpn);
	assert_int_equal(p->psn, h->psn);
	assert_int_equal(p->fecn, false);
	assert_int_equal(p->becn, h->opcode == OPCODE_CNP);
	assert_int_equal(p->payload_len, s->payload_len);
	if (op->headers & (HDR_RETH | HDR_ATOMICETH)) {
		assert_int_equal(p->va, h->va);
		assert_int_equal(p->rkey, h->rkey);
	}
	if (op->headers & HDR_RETH)
		assert_int_equal(p->dmalen, h->dmalen);
	if (op->headers & HDR_ATOMICETH) {
		assert_int_equal(p->swap_add, h->swap_add);
		assert_int_equal(p->compare, h->compare);
	}
	if (op->headers & HDR_AETH) {
		assert_int_equal(p->syndrome, h->syndrome);
		assert_int_equal(p->msn, h->msn);
	}
	if (op->headers & HDR_ATOMICACK)
		assert_int_equal(p->atomic_orig, h->atomic_orig);
	if (op->headers & HDR_IMM)
		assert_int_equal(p->imm, h->imm);
	if (op->headers & HDR_IETH)
		assert_int_equal(p->rkey, h->rkey);
	if (op->headers & HDR_DETH) {
		assert_int_equal(p->qkey, h->qkey);
		assert_int_equal(p->src_qpn, h->src_qpn);
	}

	assert_int_equal(p->encap, s->av.encap);
	assert_true(gid_equal(&p->sgid, grh ? &s->av.sgid : &zero));
	assert_true(gid_equal(&p->dgid, grh ? &s->av.dgid : &zero));
	assert_int_equal(p->has_grh, grh);
	assert_int_equal(p->slid, ib ? 0x1234 : 0);
	assert_int_equal(p->dlid, ib ? 0x5678 : 0);
	assert_int_equal(p->sl, ib ? 5 : 0);
	assert_int_equal(p->tclass, grh ? 0x6A : 0);
	assert_int_equal(p->hop_limit, grh ? 63 : 0);
	assert_int_equal(p->flow_label, grh ? s->av.flow_label : 0);
	assert_int_equal(p->udp_sport, ip ? s->path.udp_sport : 0);
	assert_int_equal(p->ecn_ce, false); /* 0x6A: ECT(0) */
	assert_int_equal(p->icrc_len + s->path.trailer_len, s->l3_len);
}

static void
test_every_opcode_on_every_carrier_comes_back(void **state)
{
	unsigned int op, c;
	struct packet pkt;
	enum verdict why;
	struct sample s;

	(void)state;
	for (c = 0; c < SAMPLE_CARRIERS; c++) {
		for (op = 0; op < 256; op++) {
			if (opcodes[op].name == NULL)
				continue;
			sample_make(&s, &sample_carriers[c], op, sample_payload_len(op));
			assert_true(wire_parse(s.av.encap, s.l3, s.l3_len, &pkt, &why));
			expect_fields(&s, &pkt);
			assert_ptr_equal(pkt.l3, s.l3);
			assert_ptr_equal(pkt.bth, s.buf + PATH_HEADER_MAX);
			assert_ptr_equal(pkt.payload, pkt.bth + opcodes[op].header_len);
			assert_true(wire_crc_ok(&pkt, &why));
			/* Ethernet pads short frames */
			assert_true(wire_parse(s.av.encap, s.l3, s.l3_len + 7, &pkt, &why));
			expect_fields(&s, &pkt);
		}
	}
}

/* lib/link parses frames that match a template with wire_parse_plain(). */
static void
test_plain_packets_have_the_same_view(void **state)
{
	struct packet plain, any;
	enum verdict why;
	unsigned int op;
	struct sample s;

	(void)state;
	for (op = 0; op < 256; op++) {
		if (opcodes[op].name == NULL)
			continue;
		sample_make(&s, &sample_carriers[0], op, sample_payload_len(op));
		memset(&plain, 0xA5, sizeof(plain));
		memset(&any, 0xA5, sizeof(any));
		assert_true(wire_parse_plain(s.l3, s.l3_len, &plain));
		assert_true(wire_parse(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &any, &why));
		assert_memory_equal(&plain, &any, sizeof(any));
		assert_false(wire_parse_plain(s.l3, s.l3_len - 1, &plain));
		s.l3[IPV4_CHECKSUM] ^= 1;
		assert_false(wire_parse_plain(s.l3, s.l3_len, &plain));
		s.l3[IPV4_CHECKSUM] ^= 1;
		put_be16(s.l3 + IPV4_LEN + UDP_LENGTH, s.l3_len);
		assert_false(wire_parse_plain(s.l3, s.l3_len, &plain));
	}
}

static void
test_plain_packet_shorter_than_its_headers(void **state)
{
	struct packet pkt;
	struct sample s;
	uint32_t total;

	(void)state;
	for (total = 0; total < WIRE_PLAIN_LEN; total++) {
		sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 64);
		put_be16(s.l3 + IPV4_TOTAL, total);
		put_be16(s.l3 + IPV4_LEN + UDP_LENGTH, total - IPV4_LEN);
		sample_fix_ipv4(s.l3);
		assert_false(wire_parse_plain(s.l3, s.l3_len, &pkt));
	}
}

static void
test_either_rocev2_value_takes_both_ip_versions(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;

	(void)state;
	sample_make(&s, &sample_carriers[0], RC_ACK, 0);
	assert_true(wire_parse(ENCAP_ROCEV2_IPV6, s.l3, s.l3_len, &pkt, &why));
	assert_int_equal(pkt.encap, ENCAP_ROCEV2_IPV4);
	assert_true(wire_crc_ok(&pkt, &why));
	sample_make(&s, &sample_carriers[1], RC_ACK, 0);
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
	assert_int_equal(pkt.encap, ENCAP_ROCEV2_IPV6);
	assert_true(wire_crc_ok(&pkt, &why));
}

/* A cut packet never parses: the lengths in its headers exceed its bytes. */
static void
test_no_cut_packet_parses(void **state)
{
	unsigned int op, c;
	struct packet pkt;
	enum verdict why;
	struct sample s;
	uint32_t len;

	(void)state;
	for (c = 0; c < SAMPLE_CARRIERS; c++) {
		for (op = 0; op < 256; op++) {
			if (opcodes[op].name == NULL)
				continue;
			sample_make(&s, &sample_carriers[c], op, sample_payload_len(op));
			assert_true(parse_exact(s.av.encap, s.l3, s.l3_len, &pkt, &why));
			for (len = 0; len < s.l3_len; len++)
				assert_false(parse_exact(s.av.encap, s.l3, len, &pkt, &why));
		}
	}
}

static void
set_length(struct sample *s, uint32_t len)
{
	switch (s->av.encap) {
	case ENCAP_ROCEV2_IPV4:
		put_be16(s->l3 + IPV4_TOTAL, len);
		put_be16(s->l3 + IPV4_LEN + UDP_LENGTH, len - IPV4_LEN);
		sample_fix_ipv4(s->l3);
		break;
	case ENCAP_ROCEV2_IPV6:
		put_be16(s->l3 + IPV6_PAYLEN, len - IPV6_LEN);
		put_be16(s->l3 + IPV6_LEN + UDP_LENGTH, len - IPV6_LEN);
		break;
	case ENCAP_ROCEV1:
		put_be16(s->l3 + IPV6_PAYLEN, len - GRH_LEN);
		break;
	case ENCAP_IB:
		put_be16(s->l3 + LRH_PKTLEN, (len - VCRC_LEN) / 4);
		if (s->av.grh)
			put_be16(s->l3 + LRH_LEN + IPV6_PAYLEN, len - VCRC_LEN - LRH_LEN - GRH_LEN);
		break;
	}
}

/* With matching lengths a packet parses if headers, padding and ICRC have room, and only then. */
static void
test_short_packets_are_refused_by_length(void **state)
{
	unsigned int op, c;
	struct packet pkt;
	enum verdict why;
	struct sample s;
	uint32_t room, step;

	(void)state;
	for (c = 0; c < SAMPLE_CARRIERS; c++) {
		step = sample_carriers[c].encap == ENCAP_IB ? 4 : 1;
		for (op = 0; op < 256; op++) {
			uint32_t needed, front;

			if (opcodes[op].name == NULL)
				continue;
			sample_make(&s, &sample_carriers[c], op, sample_payload_len(op));
			front = s.path.header_len - s.path.l3_off;
			needed = opcodes[op].header_len + s.h.pad + 4;
			for (room = 0; front + room + s.path.trailer_len - 4 <= s.l3_len;
				room += step) {
				uint32_t len = front + room + s.path.trailer_len - 4;

				set_length(&s, len);
				if (room < needed) {
					parse_expect_refused(s.av.encap, s.l3, len, VERDICT_LENGTH);
				} else {
					assert_true(parse_exact(s.av.encap, s.l3, len, &pkt, &why));
					assert_int_equal(pkt.payload_len, room - needed);
				}
			}
		}
	}
}

static void
test_ipv4_refusals(void **state)
{
	struct sample s;
	uint8_t *ip = s.buf + PATH_HEADER_MAX - 28;

	(void)state;
#define EDIT(what, verdict)                                                                        \
	do {                                                                                       \
		sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 8);                             \
		what;                                                                              \
		sample_fix_ipv4(ip);                                                               \
		parse_expect_refused(ENCAP_ROCEV2_IPV4, ip, s.l3_len, verdict);                    \
	} while (0)
	EDIT(ip[0] = 0x55, VERDICT_IP_HEADER); /* version */
	EDIT(ip[0] = 0x44, VERDICT_IP_HEADER); /* header length */
	EDIT(put_be16(ip + 2, s.l3_len + 1), VERDICT_IP_HEADER);
	EDIT(put_be16(ip + 2, 19), VERDICT_IP_HEADER);
	EDIT(put_be16(ip + 2, 27), VERDICT_UDP_LENGTH);
	/* both lengths say that the UDP header is cut */
	EDIT((put_be16(ip + 2, 27), put_be16(ip + 24, 7)), VERDICT_UDP_LENGTH);
	EDIT((put_be16(ip + 2, 20), put_be16(ip + 24, 0)), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 2, s.l3_len - 4), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 24, s.l3_len - 20 - 4), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 24, s.l3_len - 20 + 4), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 24, 0), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 6, 0x2000), VERDICT_IP_FRAGMENT); /* more fragments */
	EDIT(put_be16(ip + 6, 0x4001), VERDICT_IP_FRAGMENT); /* offset */
	EDIT(ip[9] = 6, VERDICT_IP_PROTOCOL);
	EDIT(put_be16(ip + 22, 4790), VERDICT_UDP_PORT);
#undef EDIT
	sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 8);
	ip[10] ^= 1;
	parse_expect_refused(ENCAP_ROCEV2_IPV4, ip, s.l3_len, VERDICT_IP_CHECKSUM);
	parse_expect_refused(ENCAP_ROCEV2_IPV4, ip, 0, VERDICT_RUNT);
	parse_expect_refused(ENCAP_ROCEV2_IPV4, ip, 19, VERDICT_RUNT);
}

/* Flip any bit of the header except the version: the checksum is wrong. */
static void
test_every_bit_of_the_ipv4_header_is_checked(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;
	uint32_t bit;

	(void)state;
	sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 8);
	for (bit = 0; bit < 20 * 8; bit++) {
		s.l3[bit / 8] ^= 1 << bit % 8;
		assert_false(parse_exact(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
		s.l3[bit / 8] ^= 1 << bit % 8;
	}
}

/* DF, the reserved bit, the UDP checksum and the source port may have any value. */
static void
test_ipv4_tolerances(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;

	(void)state;
	sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 8);
	put_be16(s.l3 + 6, 0);
	sample_fix_ipv4(s.l3);
	assert_true(parse_exact(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
	put_be16(s.l3 + 6, 0x8000);
	put_be16(s.l3 + 26, 0xBEEF);
	put_be16(s.l3 + 20, 7);
	s.l3[1] |= 3;
	sample_fix_ipv4(s.l3);
	assert_true(parse_exact(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
	assert_int_equal(pkt.udp_sport, 7);
	assert_true(pkt.ecn_ce);
}

/* Header length 6 to 15 words: options follow the header, and the ICRC covers them unmasked. */
static void
test_ipv4_options(void **state)
{
	uint8_t p[256];
	struct packet pkt;
	enum verdict why;
	struct sample s;
	uint32_t ihl, len, bit;

	(void)state;
	sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 13);
	for (ihl = 6; ihl <= 15; ihl++) {
		uint32_t options = ihl * 4 - 20;

		memcpy(p, s.l3, 20);
		memset(p + 20, 1, options); /* no-operation */
		memcpy(p + 20 + options, s.l3 + 20, s.l3_len - 20);
		len = s.l3_len + options;
		p[0] = 0x40 | ihl;
		put_be16(p + IPV4_TOTAL, len);
		sample_fix_ipv4(p);
		put_le32(p + len - 4, wire_icrc(ENCAP_ROCEV2_IPV4, p, len - 4));
		assert_true(parse_exact(ENCAP_ROCEV2_IPV4, p, len, &pkt, &why));
		assert_true(wire_parse(ENCAP_ROCEV2_IPV4, p, len, &pkt, &why));
		assert_true(wire_crc_ok(&pkt, &why));
		assert_int_equal(pkt.psn, s.h.psn);
		assert_int_equal(pkt.payload_len, 13);
		for (bit = 0; bit < options * 8; bit++) {
			p[20 + bit / 8] ^= 1 << bit % 8;
			assert_false(wire_crc_ok(&pkt, &why));
			p[20 + bit / 8] ^= 1 << bit % 8;
		}
	}
	/* the header is longer than the packet */
	put_be16(p + IPV4_TOTAL, 59);
	sample_fix_ipv4(p);
	parse_expect_refused(ENCAP_ROCEV2_IPV4, p, len, VERDICT_IP_HEADER);
	parse_expect_refused(ENCAP_ROCEV2_IPV4, p, 40, VERDICT_IP_HEADER);
}

static void
test_ipv6_refusals(void **state)
{
	struct sample s;
	uint8_t *ip = s.buf + PATH_HEADER_MAX - 48;

	(void)state;
#define EDIT(what, verdict)                                                                        \
	do {                                                                                       \
		sample_make(&s, &sample_carriers[1], RC_SEND_ONLY, 8);                             \
		what;                                                                              \
		parse_expect_refused(ENCAP_ROCEV2_IPV6, ip, s.l3_len, verdict);                    \
	} while (0)
	EDIT(ip[0] = 0x70, VERDICT_IP_HEADER);
	EDIT(put_be16(ip + 4, s.l3_len - 40 + 1), VERDICT_IP_HEADER);
	EDIT(put_be16(ip + 4, s.l3_len - 40 - 1), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 4, 7), VERDICT_UDP_LENGTH);
	EDIT(put_be16(ip + 4, 0), VERDICT_UDP_LENGTH);
	EDIT(ip[6] = 44, VERDICT_IP_FRAGMENT);
	EDIT(ip[6] = 0, VERDICT_IP_PROTOCOL); /* hop-by-hop options */
	EDIT(ip[6] = 6, VERDICT_IP_PROTOCOL);
	EDIT(put_be16(ip + 42, 4790), VERDICT_UDP_PORT);
	EDIT(put_be16(ip + 44, 8), VERDICT_UDP_LENGTH);
#undef EDIT
	sample_make(&s, &sample_carriers[1], RC_SEND_ONLY, 8);
	parse_expect_refused(ENCAP_ROCEV2_IPV6, ip, 39, VERDICT_RUNT);
}

static void
test_grh_and_lrh_refusals(void **state)
{
	struct sample s;
	uint8_t *grh = s.buf + PATH_HEADER_MAX - 40, *lrh = grh - 8;
	uint8_t p[256];
	uint32_t len;

	(void)state;
#define EDIT(carrier, what, verdict)                                                               \
	do {                                                                                       \
		sample_make(&s, &sample_carriers[carrier], RC_SEND_ONLY, 8);                       \
		what;                                                                              \
		parse_expect_refused(s.av.encap, s.l3, s.l3_len, verdict);                         \
	} while (0)
	EDIT(2, grh[0] = 0x40, VERDICT_GRH); /* IPVer */
	EDIT(2, grh[6] = 17, VERDICT_GRH); /* NxtHdr */
	EDIT(2, put_be16(grh + 4, s.l3_len - 40 + 1), VERDICT_GRH);
	EDIT(2, put_be16(grh + 4, 15), VERDICT_LENGTH);
	EDIT(2, put_be16(grh + 4, 0), VERDICT_LENGTH);
	EDIT(4, grh[0] = 0x50, VERDICT_GRH);
	EDIT(4, grh[6] = 0, VERDICT_GRH);
	EDIT(4, put_be16(grh + 4, get_be16(grh + 4) - 4), VERDICT_GRH); /* against PktLen */
	EDIT(4, put_be16(lrh + 4, get_be16(lrh + 4) - 1), VERDICT_GRH);
	EDIT(4, put_be16(lrh + 4, get_be16(lrh + 4) + 1), VERDICT_GRH);
	EDIT(4, put_be16(lrh + 4, 11), VERDICT_GRH);
	EDIT(4, put_be16(lrh + 4, 1), VERDICT_GRH);
	EDIT(4, lrh[0] = 1, VERDICT_GRH); /* LVer */
	EDIT(4, lrh[1] &= ~3, VERDICT_GRH); /* LNH 0: raw */
	EDIT(4, lrh[1] = (lrh[1] & ~3) | 1, VERDICT_GRH); /* LNH 1: raw IPv6 */
	EDIT(3, put_be16(s.l3 + 4, 0), VERDICT_GRH);
	EDIT(3, put_be16(s.l3 + 4, 2), VERDICT_LENGTH);
	EDIT(3, put_be16(s.l3 + 4, get_be16(s.l3 + 4) + 1), VERDICT_GRH);
	EDIT(3, s.l3_len -= 2, VERDICT_GRH); /* no room for the VCRC */
	EDIT(3, s.l3[1] |= 3, VERDICT_GRH); /* LNH says GRH, a BTH follows */
#undef EDIT
	parse_expect_refused(ENCAP_ROCEV1, grh, 39, VERDICT_GRH);
	parse_expect_refused(ENCAP_IB, grh, 7, VERDICT_RUNT);
	/* rc-transport 9: "a receiver that checks NxtHdr drops it" */
	len = hex_bytes(VECTOR_GLOBAL VECTOR_GLOBAL_ICRC VECTOR_GLOBAL_VCRC, p, sizeof(p));
	parse_expect_refused(ENCAP_IB, p, len, VERDICT_GRH);
}

/* rc-transport 1: the upper half of LRH byte 0; on RoCE there is none */
static void
test_virtual_lane_is_read(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;
	unsigned int c, vl;

	(void)state;
	for (c = 0; c < SAMPLE_CARRIERS; c++) {
		for (vl = 0; vl < 16; vl++) {
			sample_init(&s, &sample_carriers[c], UD_SEND_ONLY, 8);
			s.av.vl = vl;
			sample_build(&s);
			assert_true(parse_exact(s.av.encap, s.l3, s.l3_len, &pkt, &why));
			assert_int_equal(pkt.vl, s.av.encap == ENCAP_IB ? vl : 0);
			assert_int_equal(pkt.sl, s.av.encap == ENCAP_IB ? 5 : 0);
		}
	}
	/* SMPs travel on VL 15 whatever the address vector says (smp-sma 1) */
	sample_init(&s, &sample_carriers[3], UD_SEND_ONLY, 8);
	s.av.vl = 3;
	s.h.dest_qpn = 0;
	sample_build(&s);
	assert_true(parse_exact(s.av.encap, s.l3, s.l3_len, &pkt, &why));
	assert_int_equal(pkt.vl, 15);
}

/* Bytes behind PktLen and the VCRC are Ethernet's padding. */
static void
test_padding_behind_the_vcrc_is_not_read(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;

	(void)state;
	sample_make(&s, &sample_carriers[3], RC_ACK, 0);
	memset(s.l3 + s.l3_len, 0xEE, 16);
	assert_true(wire_parse(ENCAP_IB, s.l3, s.l3_len + 16, &pkt, &why));
	assert_int_equal(pkt.payload_len, 0);
	assert_int_equal(pkt.icrc_len, s.l3_len - ICRC_LEN - VCRC_LEN);
	assert_true(wire_crc_ok(&pkt, &why));
}

/* rc-transport 5: unknown opcodes of another class than RC, and TVer */
static void
test_opcode_and_tver(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;
	unsigned int op;

	(void)state;
	sample_make(&s, &sample_carriers[0], RC_SEND_ONLY, 64);
	for (op = 0; op < 256; op++) {
		s.l3[28] = op;
		if (op < 0x20) {
			assert_true(parse_exact(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
			assert_int_equal(pkt.opcode, op);
			assert_non_null(pkt.op);
		} else if (op <= 0x2B || op == 0x64 || op == 0x65 || op == 0x81) {
			assert_true(parse_exact(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
		} else {
			parse_expect_refused(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, VERDICT_OPCODE);
		}
	}
	s.l3[28] = RC_SEND_ONLY;
	for (op = 1; op < 16; op++) {
		s.l3[29] = op;
		parse_expect_refused(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, VERDICT_TVER);
	}
}

/* FECN, BECN and the reserved bits around them and around AckReq */
static void
test_congestion_and_reserved_bits(void **state)
{
	struct packet pkt;
	enum verdict why;
	struct sample s;

	(void)state;
	sample_make(&s, &sample_carriers[0], RC_SEND_ONLY_IMM, 4);
	s.l3[28 + 4] = 0x80;
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
	assert_true(pkt.fecn && !pkt.becn);
	s.l3[28 + 4] = 0x7F;
	s.l3[28 + 8] = 0x7F;
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
	assert_true(!pkt.fecn && pkt.becn);
	assert_int_equal(pkt.dest_qpn, 0xABC123);
	assert_int_equal(pkt.psn, 0xF0E1D2);
	assert_false(pkt.ackreq);
}

/* Valid packets with a few bytes changed: parsed or dropped, no byte outside is read. */
static void
test_mutated_packets_stay_in_bounds(void **state)
{
	unsigned int round, i, edits, parsed = 0;
	struct packet pkt;
	enum verdict why;
	struct sample s;
	uint32_t len;

	(void)state;
	srandom(42);
	for (round = 0; round < 100000; round++) {
		unsigned int op;

		do
			op = random() % 0x82;
		while (opcodes[op].name == NULL);
		sample_make(&s, &sample_carriers[random() % SAMPLE_CARRIERS], op, random() % 64);
		len = s.l3_len - (random() % 4 ? 0 : random() % s.l3_len);
		edits = random() % 4;
		for (i = 0; i < edits; i++)
			s.l3[random() % 80 % s.l3_len] = random() >> 8;
		if (s.av.encap == ENCAP_ROCEV2_IPV4 && len >= 60 && random() % 2)
			sample_fix_ipv4(s.l3);
		parsed += parse_exact(s.av.encap, s.l3, len, &pkt, &why);
	}
	/* the mutations leave some packets valid, but not all */
	assert_in_range(parsed, 20000, 90000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode_on_every_carrier_comes_back),
		cmocka_unit_test(test_plain_packets_have_the_same_view),
		cmocka_unit_test(test_plain_packet_shorter_than_its_headers),
		cmocka_unit_test(test_either_rocev2_value_takes_both_ip_versions),
		cmocka_unit_test(test_no_cut_packet_parses),
		cmocka_unit_test(test_short_packets_are_refused_by_length),
		cmocka_unit_test(test_ipv4_refusals),
		cmocka_unit_test(test_every_bit_of_the_ipv4_header_is_checked),
		cmocka_unit_test(test_ipv4_tolerances),
		cmocka_unit_test(test_ipv4_options),
		cmocka_unit_test(test_ipv6_refusals),
		cmocka_unit_test(test_grh_and_lrh_refusals),
		cmocka_unit_test(test_virtual_lane_is_read),
		cmocka_unit_test(test_padding_behind_the_vcrc_is_not_read),
		cmocka_unit_test(test_opcode_and_tver),
		cmocka_unit_test(test_congestion_and_reserved_bits),
		cmocka_unit_test(test_mutated_packets_stay_in_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
