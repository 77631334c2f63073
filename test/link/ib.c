/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "ib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wire/build.h"
#include "wire/bytes.h"

void
ib_config(struct bench *b)
{
	bench_config(b);
	b->cfg.port[0].num_addr = 0;
	b->cfg.port[0].ib = true;
}

struct port_settings
ib_settings(uint8_t state, uint16_t lid, uint8_t lmc)
{
	return (struct port_settings){
		.state = state,
		.lid = lid,
		.lmc = lmc,
		.sm_lid = 1,
		.subnet_timeout = 18,
		.mtu = 2048,
		.gid_prefix = UINT64_C(0xfe80000000000000),
		.guid = { UINT64_C(0x000000fffe000002) },
		.num_guids = 1,
		.pkey = { 0xFFFF },
		.num_pkeys = 1,
	};
}

void
ib_set(struct bench *b, uint8_t state, uint16_t lid, uint8_t lmc)
{
	struct port_settings s = ib_settings(state, lid, lmc);

	link_port_set(b->worker[0], 0, &s);
}

int
ib_setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	ib_config(b);
	bench_open(b);
	ib_set(b, PORT_STATE_ACTIVE, 0x10, 0);
	*state = b;
	return 0;
}

const char *
ib_frame(const char *macs, uint8_t vl, uint16_t dlid, uint16_t slid, uint32_t qpn)
{
	static char text[512];

	/* PktLen 10 words: LRH 8, BTH 12, DETH 8, payload 8, ICRC 4; lib/link checks no CRC */
	snprintf(text, sizeof(text),
		"%s 88b5 %x002 %04x 000a %04x 6400ffff 00%06x 00000000 80010000 00000001"
		"0102030405060708 11223344 5566",
		macs, vl, dlid, slid, qpn);
	return text;
}

struct path
ib_path(uint16_t dlid, uint32_t qpn)
{
	struct av av = {
		.encap = ENCAP_IB,
		.vlan = PATH_NO_VLAN,
		.smac = { 2, 0, 0, 0, 0, 2 },
		.slid = 0x10,
		.dlid = dlid,
	};
	struct path p;

	path_init(&p, &av, qpn, qpn);
	return p;
}

void
ib_send(struct bench *b, const struct path *path)
{
	bool smp = path->header[path->l3_off] >> 4 == 15;
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = smp ? 0 : 1,
		.qkey = 0x80010000,
		.src_qpn = 1,
	};
	struct tx_sink *s = link_tx_sink(b->worker[0]);
	uint8_t *bth = tx_reserve(s, path, 28);

	assert_non_null(bth);
	assert_int_equal(wire_build(bth, &h), 20);
	memcpy(bth + 20, "\1\2\3\4\5\6\7\x8", 8);
	tx_commit(s);
	link_tx_flush(b->worker[0], b->now);
}

void
ib_expect(struct bench *b, const char *dmac, uint16_t dlid)
{
	uint8_t buf[256], mac[6];
	enum verdict why;
	struct packet p;
	uint32_t len = hex_bytes(bench_sent(b), buf, sizeof(buf));

	/* 14 and 42 bytes, padded */
	assert_int_equal(len, 60);
	hex_bytes(dmac, mac, sizeof(mac));
	assert_memory_equal(buf, mac, 6);
	assert_memory_equal(buf + 6, "\2\0\0\0\0\2\x88\xB5", 8);
	assert_true(wire_parse(ENCAP_IB, buf + 14, len - 14, &p, &why));
	assert_true(wire_crc_ok(&p, &why));
	assert_int_equal(p.dlid, dlid);
	assert_int_equal(p.payload_len, 8);
	assert_memory_equal(buf + 56, "\0\0\0\0", 4);
}
