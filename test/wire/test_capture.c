/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Each packet of each capture has a valid ICRC, and building from its fields gives the same bytes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "pcap.h"
#include "wire/bytes.h"
#include "wire/wire.h"

/* packet counts, as an independent dissector has them */
static const struct {
	const char *name;
	unsigned int frames;
	unsigned int transport;
} captures[] = {
	{ "atomic_cas", 52, 10 },
	{ "atomic_faa", 53, 10 },
	{ "rc_loss", 206, 195 },
	{ "rc_pingpong", 83, 68 },
	{ "rc_pingpong_4096", 41, 30 },
	{ "rc_pingpong_ipv6", 44, 30 },
	{ "rdma_client", 12, 10 },
	{ "read_bw", 69, 30 },
	{ "read_lat", 51, 20 },
	{ "read_loss", 117, 77 },
	{ "rnr", 139, 105 },
	{ "rping", 43, 41 },
	{ "rstream", 31, 29 },
	{ "send_bw", 65, 30 },
	{ "send_bw_ud", 35, 5 },
	{ "send_lat", 71, 40 },
	{ "srq_pingpong", 109, 44 },
	{ "uc_pingpong", 41, 30 },
	{ "ucmatose", 17, 17 },
	{ "ud_pingpong", 22, 10 },
	{ "udaddy", 8, 8 },
	{ "write_bw", 76, 30 },
	{ "write_bw_4096", 55, 15 },
	{ "write_bw_cm", 105, 105 },
	{ "write_bw_uc", 59, 15 },
	{ "write_lat", 69, 42 },
};

static unsigned int by_opcode[256];

static void
rebuild(const uint8_t *frame, const struct packet *p)
{
	uint8_t buf[PATH_HEADER_MAX + BTH_LEN + 64 + MTU_MAX + PATH_TRAILER_MAX];
	const struct wire_headers h = {
		.opcode = p->opcode,
		.solicited = p->solicited,
		.migreq = p->migreq,
		.ackreq = p->ackreq,
		.pad = p->pad,
		.pkey = p->pkey,
		.dest_qpn = p->dest_qpn,
		.psn = p->psn,
		.va = p->va,
		.rkey = p->rkey,
		.dmalen = p->dmalen,
		.swap_add = p->swap_add,
		.compare = p->compare,
		.atomic_orig = p->atomic_orig,
		.imm = p->imm,
		.msn = p->msn,
		.syndrome = p->syndrome,
		.qkey = p->qkey,
		.src_qpn = p->src_qpn,
	};
	struct av av = {
		.encap = p->encap,
		.sgid = p->sgid,
		.dgid = p->dgid,
		.vlan = PATH_NO_VLAN,
		.traffic_class = p->tclass,
		.hop_limit = p->hop_limit,
		/* a flow label that gives the packet's UDP source port (rc-transport 10) */
		.flow_label = p->udp_sport & 0x3FFF,
	};
	uint8_t *bth = buf + PATH_HEADER_MAX;
	uint32_t len, frame_len = 14 + p->icrc_len + ICRC_LEN;
	bool v4 = p->encap == ENCAP_ROCEV2_IPV4;
	struct path path;

	memcpy(av.dmac, frame, 6);
	memcpy(av.smac, frame + 6, 6);
	path_init(&path, &av, 0, p->dest_qpn);
	assert_int_equal(path.udp_sport, p->udp_sport);
	if (!v4) {
		/* IPv6 carries a flow label; rxe's is another than the port's */
		put_be32(path.header + 14, 6u << 28 | (uint32_t)p->tclass << 20 | p->flow_label);
	}
	len = wire_build(bth, &h);
	assert_memory_equal(bth, p->bth, len);
	memcpy(bth + len, p->payload, p->payload_len + p->pad);
	len = path_finish(&path, bth, len + p->payload_len + p->pad, v4 ? get_be16(p->l3 + 4) : 0);
	assert_int_equal(len, frame_len);
	assert_memory_equal(bth - path.header_len, frame, frame_len);
}

static void
wire_capture_read_capture(unsigned int i)
{
	unsigned int frames = 0, transport = 0;
	static struct pcap pcap;
	struct packet pkt;
	enum verdict why;
	char path[512];
	int more;

	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURE_DIR, captures[i].name);
	assert_int_equal(pcap_open(&pcap, path), 0);
	assert_int_equal(pcap.link_type, PCAP_LINK_ETHERNET);
	while ((more = pcap_next(&pcap)) == 1) {
		uint16_t ethertype = get_be16(pcap.data + 12);

		frames++;
		if (ethertype != 0x0800 && ethertype != 0x86DD)
			continue; /* ARP */
		memset(&pkt, 0, sizeof(pkt));
		if (!wire_parse(ENCAP_ROCEV2_IPV4, pcap.data + 14, pcap.len - 14, &pkt, &why)) {
			/* TCP connections of the programs, and neighbour discovery */
			assert_int_equal(why, VERDICT_IP_PROTOCOL);
			continue;
		}
		transport++;
		by_opcode[pkt.opcode]++;
		if (!wire_crc_ok(&pkt, &why))
			fail_msg("%s frame %u: %s", captures[i].name, frames,
				verdict_infos[why].name);
		rebuild(pcap.data, &pkt);
	}
	pcap_close(&pcap);
	assert_int_equal(more, 0);
	assert_int_equal(frames, captures[i].frames);
	assert_int_equal(transport, captures[i].transport);
}

static void
test_all_1046_packets(void **state)
{
	unsigned int i, total = 0;

	(void)state;
	for (i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
		wire_capture_read_capture(i);
	for (i = 0; i < 256; i++)
		total += by_opcode[i];
	assert_int_equal(total, 1046);
	/* the captures together contain at least these opcodes */
	assert_int_equal(by_opcode[RC_CMP_SWAP], 5);
	assert_int_equal(by_opcode[RC_FETCH_ADD], 5);
	assert_int_equal(by_opcode[RC_ATOMIC_ACK], 10);
	assert_int_equal(by_opcode[RC_READ_REQUEST], 5 + 10 + 26 + 3);
	assert_int_equal(by_opcode[RC_WRITE_ONLY_IMM], 12);
	assert_int_equal(by_opcode[UD_SEND_ONLY_IMM], 6);
	assert_int_equal(by_opcode[OPCODE_UC | RC_SEND_FIRST], 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_1046_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
