/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * lib/wire as a filter, for comparing it with other programs.
 *
 *   wiretool parse [FILE.pcap]   Ethernet frames, from the capture or a line of hex each on
 *                                standard input, to a line of JSON each
 *   wiretool build               a line of JSON each to frames in hex
 *
 * 64-bit fields, addresses and payload are strings of hex digits.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "hex.h"
#include "pcap.h"
#include "sample.h"
#include "wire/bytes.h"
#include "wire/layout.h"

#define FRAME_MAX 16384

static json_t *
wiretool_json_hex(const uint8_t *p, size_t len)
{
	static char text[2 * FRAME_MAX + 1];
	size_t i;

	for (i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", p[i]);
	text[2 * len] = '\0';
	return json_string(text);
}

static json_t *
wiretool_json_u64(uint64_t v)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, v);
	return json_string(text);
}

static const char *
carrier_name(const struct packet *p)
{
	unsigned int i;

	for (i = 0; i < SAMPLE_CARRIERS; i++)
		if (sample_carriers[i].encap == p->encap &&
			(p->encap != ENCAP_IB || sample_carriers[i].grh == p->has_grh))
			return sample_carriers[i].name;
	return "?";
}

static json_t *
packet_to_json(const struct packet *p)
{
	uint8_t headers = p->op->headers;
	enum verdict why;
	json_t *o;

	o = json_pack("{s:s, s:s, s:i, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:i}", "encap",
		carrier_name(p), "name", p->op->name, "opcode", p->opcode, "solicited",
		p->solicited, "migreq", p->migreq, "ackreq", p->ackreq, "fecn", p->fecn, "becn",
		p->becn, "ecn_ce", p->ecn_ce, "pad", p->pad, "pkey", p->pkey, "dest_qpn",
		(int)p->dest_qpn, "psn", (int)p->psn);
	if (headers & (HDR_RETH | HDR_ATOMICETH))
		json_object_set_new(o, "va", wiretool_json_u64(p->va));
	if (headers & (HDR_RETH | HDR_ATOMICETH | HDR_IETH))
		json_object_set_new(o, "rkey", json_integer(p->rkey));
	if (headers & HDR_RETH)
		json_object_set_new(o, "dmalen", json_integer(p->dmalen));
	if (headers & HDR_ATOMICETH) {
		json_object_set_new(o, "swap_add", wiretool_json_u64(p->swap_add));
		json_object_set_new(o, "compare", wiretool_json_u64(p->compare));
	}
	if (headers & HDR_AETH) {
		json_object_set_new(o, "syndrome", json_integer(p->syndrome));
		json_object_set_new(o, "msn", json_integer(p->msn));
	}
	if (headers & HDR_ATOMICACK)
		json_object_set_new(o, "atomic_orig", wiretool_json_u64(p->atomic_orig));
	if (headers & HDR_IMM)
		json_object_set_new(o, "imm", json_integer(p->imm));
	if (headers & HDR_DETH) {
		json_object_set_new(o, "qkey", json_integer(p->qkey));
		json_object_set_new(o, "src_qpn", json_integer(p->src_qpn));
	}
	json_object_set_new(o, "payload", wiretool_json_hex(p->payload, p->payload_len));
	json_object_set_new(o, "sgid", wiretool_json_hex(p->sgid.raw, 16));
	json_object_set_new(o, "dgid", wiretool_json_hex(p->dgid.raw, 16));
	json_object_set_new(o, "slid", json_integer(p->slid));
	json_object_set_new(o, "dlid", json_integer(p->dlid));
	json_object_set_new(o, "sl", json_integer(p->sl));
	json_object_set_new(o, "traffic_class", json_integer(p->tclass));
	json_object_set_new(o, "hop_limit", json_integer(p->hop_limit));
	json_object_set_new(o, "flow_label", json_integer(p->flow_label));
	json_object_set_new(o, "udp_sport", json_integer(p->udp_sport));
	json_object_set_new(o, "crc",
		json_string(wire_crc_ok(p, &why) ? "ok" : verdict_infos[why].name));
	return o;
}

static void
parse_frame(const uint8_t *frame, uint32_t len)
{
	enum verdict why = VERDICT_ETHERTYPE;
	uint32_t type, off = ETH_LEN;
	struct packet pkt;
	bool ok = false;
	json_t *o;

	if (len >= ETH_LEN) {
		type = get_be16(frame + 12);
		if (type == 0x8100 && len >= ETH_LEN + VLAN_LEN) {
			type = get_be16(frame + 16);
			off += VLAN_LEN;
		}
		if (type == 0x0800 || type == 0x86DD)
			ok = wire_parse(ENCAP_ROCEV2_IPV4, frame + off, len - off, &pkt, &why);
		else if (type == ETHERTYPE_ROCEV1)
			ok = wire_parse(ENCAP_ROCEV1, frame + off, len - off, &pkt, &why);
		else if (type == ETHERTYPE_IB)
			ok = wire_parse(ENCAP_IB, frame + off, len - off, &pkt, &why);
	}
	o = ok ? packet_to_json(&pkt) : json_pack("{s:s}", "refused", verdict_infos[why].name);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static uint64_t
number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_string(v))
		return strtoull(json_string_value(v), NULL, 16);
	return json_is_boolean(v) ? json_is_true(v) : (uint64_t)json_integer_value(v);
}

static void
bytes(const json_t *o, const char *key, uint8_t *out, size_t len)
{
	const char *text = json_string_value(json_object_get(o, key));

	if (text != NULL && hex_bytes(text, out, len) != len) {
		fprintf(stderr, "wiretool: %s wants %zu bytes\n", key, len);
		exit(1);
	}
}

static void
build_frame(const json_t *o)
{
	static uint8_t buf[PATH_HEADER_MAX + FRAME_MAX];
	const char *carrier = json_string_value(json_object_get(o, "encap"));
	const char *payload = json_string_value(json_object_get(o, "payload"));
	uint8_t *bth = buf + PATH_HEADER_MAX;
	struct wire_headers h = {
		.opcode = number(o, "opcode"),
		.solicited = number(o, "solicited"),
		.migreq = number(o, "migreq"),
		.ackreq = number(o, "ackreq"),
		.pkey = number(o, "pkey"),
		.dest_qpn = number(o, "dest_qpn"),
		.psn = number(o, "psn"),
		.va = number(o, "va"),
		.rkey = number(o, "rkey"),
		.dmalen = number(o, "dmalen"),
		.swap_add = number(o, "swap_add"),
		.compare = number(o, "compare"),
		.atomic_orig = number(o, "atomic_orig"),
		.imm = number(o, "imm"),
		.msn = number(o, "msn"),
		.syndrome = number(o, "syndrome"),
		.qkey = number(o, "qkey"),
		.src_qpn = number(o, "src_qpn"),
	};
	struct av av = {
		.vlan = json_object_get(o, "vlan") ? number(o, "vlan") : PATH_NO_VLAN,
		.sl = number(o, "sl"),
		.traffic_class = number(o, "traffic_class"),
		.hop_limit = number(o, "hop_limit"),
		.flow_label = number(o, "flow_label"),
		.slid = number(o, "slid"),
		.dlid = number(o, "dlid"),
	};
	uint32_t len, payload_len, i;
	struct path path;

	for (i = 0; i < SAMPLE_CARRIERS; i++) {
		if (carrier == NULL || strcmp(sample_carriers[i].name, carrier) != 0)
			continue;
		av.encap = sample_carriers[i].encap;
		av.grh = sample_carriers[i].grh;
		break;
	}
	if (i == SAMPLE_CARRIERS) {
		fprintf(stderr, "wiretool: no such encap\n");
		exit(1);
	}
	bytes(o, "sgid", av.sgid.raw, 16);
	bytes(o, "dgid", av.dgid.raw, 16);
	bytes(o, "smac", av.smac, 6);
	bytes(o, "dmac", av.dmac, 6);
	path_init(&path, &av, number(o, "lqpn"), h.dest_qpn);
	len = opcodes[h.opcode].header_len;
	payload_len = payload ? hex_bytes(payload, bth + len, FRAME_MAX - len - 16) : 0;
	h.pad = wire_pad(payload_len);
	if (wire_build(bth, &h) != len)
		abort();
	len += payload_len;
	memset(bth + len, 0, h.pad);
	len = path_finish(&path, bth, len + h.pad, number(o, "ip_id"));
	for (i = 0; i < len; i++)
		printf("%02x", (bth - path.header_len)[i]);
	putchar('\n');
}

int
main(int argc, char **argv)
{
	static char line[4 * FRAME_MAX];
	static uint8_t frame[FRAME_MAX];
	static struct pcap pcap;
	json_error_t error;
	int more;

	if (argc == 3 && strcmp(argv[1], "parse") == 0) {
		if (pcap_open(&pcap, argv[2]) < 0) {
			fprintf(stderr, "wiretool: %s is not a pcap file\n", argv[2]);
			return 1;
		}
		while ((more = pcap_next(&pcap)) == 1)
			parse_frame(pcap.data, pcap.len);
		pcap_close(&pcap);
		return more < 0;
	}
	if (argc == 2 && strcmp(argv[1], "parse") == 0) {
		while (fgets(line, sizeof(line), stdin) != NULL)
			parse_frame(frame, hex_bytes(line, frame, sizeof(frame)));
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "build") == 0) {
		while (fgets(line, sizeof(line), stdin) != NULL) {
			json_t *o = json_loads(line, 0, &error);

			if (o == NULL) {
				fprintf(stderr, "wiretool: %s\n", error.text);
				return 1;
			}
			build_frame(o);
			json_decref(o);
		}
		return 0;
	}
	fprintf(stderr, "usage: wiretool parse [FILE.pcap] | wiretool build\n");
	return 2;
}
