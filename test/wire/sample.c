/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "sample.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/layout.h"

const struct sample_carrier sample_carriers[SAMPLE_CARRIERS] = {
	{ "rocev2-ipv4", ENCAP_ROCEV2_IPV4, false },
	{ "rocev2-ipv6", ENCAP_ROCEV2_IPV6, false },
	{ "rocev1", ENCAP_ROCEV1, false },
	{ "ib-local", ENCAP_IB, false },
	{ "ib-global", ENCAP_IB, true },
};

uint32_t
sample_payload_len(uint8_t opcode)
{
	if (opcode == OPCODE_CNP)
		return 16;
	if (opcode == RC_ATOMIC_WRITE)
		return 8;
	switch (opcodes[opcode].payload) {
	case PAYLOAD_NONE:
		return 0;
	case PAYLOAD_PMTU:
		return 1024;
	default:
		return 13 + opcode % 4; /* all four paddings occur */
	}
}

void
sample_init(struct sample *s, const struct sample_carrier *carrier, uint8_t opcode,
	uint32_t payload_len)
{
	static const uint8_t ipv4[2][16] = {
		{ [10] = 0xFF, 0xFF, 10, 1, 2, 3 },
		{ [10] = 0xFF, 0xFF, 10, 1, 2, 4 },
	};
	static const uint8_t ipv6[2][16] = {
		{ 0xFE, 0x80, [8] = 0x11, 0x22, 0x33, 0xFF, 0xFE, 0x44, 0x55, 0x66 },
		{ 0xFE, 0x80, [8] = 0x21, 0x32, 0x43, 0xFF, 0xFE, 0x54, 0x65, 0x76 },
	};
	bool v4 = carrier->encap == ENCAP_ROCEV2_IPV4;

	memset(s, 0, sizeof(*s));
	s->av = (struct av){
		.encap = carrier->encap,
		.smac = { 2, 0, 0, 0, 0, 1 },
		.dmac = { 2, 0, 0, 0, 0, 2 },
		.vlan = PATH_NO_VLAN,
		.sl = carrier->encap == ENCAP_IB ? 5 : 0,
		.traffic_class = 0x6A,
		.hop_limit = 63,
		.flow_label = v4 ? 0 : 0x54321,
		.slid = 0x1234,
		.dlid = 0x5678,
		.grh = carrier->grh,
	};
	memcpy(s->av.sgid.raw, v4 ? ipv4[0] : ipv6[0], 16);
	memcpy(s->av.dgid.raw, v4 ? ipv4[1] : ipv6[1], 16);
	s->h = (struct wire_headers){
		.opcode = opcode,
		.solicited = opcode & 1,
		.migreq = opcode >> 1 & 1,
		.ackreq = !(opcode & 1),
		.pad = wire_pad(payload_len),
		.pkey = 0x8ABC,
		.dest_qpn = 0xABC123,
		.psn = 0xF0E1D2,
		.va = 0x1122334455667788,
		.rkey = 0x99AABBCC,
		.dmalen = 0x10203040,
		.swap_add = 0x0102030405060708,
		.compare = 0x1112131415161718,
		.atomic_orig = 0x2122232425262728,
		.imm = 0xDEADBEEF,
		.msn = 0x7A7B7C,
		.syndrome = 0x6 << 4 | 2, /* NAK, remote access */
		.qkey = 0x80010000,
		.src_qpn = 0x334455,
	};
	s->payload_len = payload_len;
}

void
sample_build(struct sample *s)
{
	uint8_t *bth = s->buf + PATH_HEADER_MAX;
	uint32_t i, len;

	path_init(&s->path, &s->av, 0x11, s->h.dest_qpn);
	len = wire_build(bth, &s->h);
	for (i = 0; i < s->payload_len; i++)
		bth[len++] = s->h.opcode == OPCODE_CNP ? 0 : 0x40 + i;
	for (i = 0; i < s->h.pad; i++)
		bth[len++] = 0;
	s->frame_len = path_finish(&s->path, bth, len, 0x4242);
	s->frame = bth - s->path.header_len;
	s->l3 = s->frame + s->path.l3_off;
	s->l3_len = s->frame_len - s->path.l3_off;
}

void
sample_make(struct sample *s, const struct sample_carrier *carrier, uint8_t opcode,
	uint32_t payload_len)
{
	sample_init(s, carrier, opcode, payload_len);
	sample_build(s);
}

void
sample_fix_ipv4(uint8_t *ip)
{
	uint32_t i, sum = 0;

	put_be16(ip + IPV4_CHECKSUM, 0);
	for (i = 0; i < (ip[0] & 15u) * 4; i += 2)
		sum += get_be16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	put_be16(ip + IPV4_CHECKSUM, ~sum);
}
