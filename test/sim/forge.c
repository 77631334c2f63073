/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Frames of a hostile or broken peer: a frame that was sent before, with one wrong field, or at a
 * wrong time.
 */

#include <string.h>

#include "script.h"
#include "../wire/build.h"

static void
headers_of(const struct packet *p, struct wire_headers *h)
{
	*h = (struct wire_headers){
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
}

static uint8_t
some_opcode(struct sim *s)
{
	static const uint8_t others[] = { UD_SEND_ONLY, 0x24, 0x44, 0xA4, OPCODE_CNP, 0x15, 0x1C,
		0x1D, 0x1F };

	return sim_below(s, 4) == 0 ? others[sim_below(s, sizeof(others))]
				    : (uint8_t)sim_below(s, 0x18);
}

/* Change transport fields, with valid CRCs, so that the packet reaches the QP's own checks. */
static void
twist_transport(struct sim *s, struct wire_headers *h, struct av *av, uint32_t *len)
{
	switch (sim_below(s, 14)) {
	case 0:
		h->opcode = some_opcode(s);
		break;
	case 1:
		h->psn = psn_add(h->psn, sim_below(s, 64) - 32);
		break;
	case 2:
		h->psn = (uint32_t)sim_rand(s) & PSN_MASK;
		break;
	case 3:
		h->opcode = RC_ACK;
		h->syndrome = (uint8_t)sim_rand(s);
		h->psn = psn_add(h->psn, sim_below(s, 16) - 8);
		h->pad = 0;
		*len = 0;
		break;
	case 4:
		h->opcode = RC_READ_RESP_FIRST + sim_below(s, 4);
		break;
	case 5:
		h->rkey ^= 1u << sim_below(s, 32);
		break;
	case 6:
		h->va += sim_rand(s) >> sim_below(s, 64);
		break;
	case 7:
		h->dmalen = (uint32_t)sim_rand(s) >> sim_below(s, 32);
		break;
	case 8:
		h->pkey = sim_below(s, 2) ? 0x7FFF : (uint16_t)sim_rand(s);
		break;
	case 9:
		h->dest_qpn = sim_below(s, 2) ? (uint32_t)sim_rand(s) & 0xFFFFFF : sim_below(s, 3);
		break;
	case 10:
		av->sgid.raw[15] ^= 0x40;
		av->slid ^= 0x40;
		break;
	case 11:
		*len = sim_below(s, *len + 5);
		h->pad = wire_pad(*len);
		break;
	case 12:
		h->pad = (uint8_t)sim_below(s, 4);
		break;
	default: /* replay the packet unchanged */
		break;
	}
}

/* Change bytes before or inside the transport header, which lib/wire must detect. */
static void
twist_bytes(struct sim *s, uint8_t *frame, uint32_t *len)
{
	switch (sim_below(s, 6)) {
	case 0:
		*len = 14 + sim_below(s, *len - 14);
		break;
	case 1:
		frame[14] = (uint8_t)sim_rand(s); /* version and IHL, or VL */
		break;
	case 2:
		frame[14 + sim_below(s, 20)] ^= (uint8_t)(1u << sim_below(s, 8));
		break;
	case 3: /* a valid IPv4 header of another kind: fragment, other protocol */
		if (frame[14] == 0x45) {
			uint32_t sum = 0;

			if (sim_below(s, 2))
				frame[20] = 0x20;
			else
				frame[23] = 6;
			frame[24] = frame[25] = 0;
			for (int i = 14; i < 34; i += 2)
				sum += (uint32_t)(frame[i] << 8 | frame[i + 1]);
			sum = (sum & 0xFFFF) + (sum >> 16);
			sum = ~((sum & 0xFFFF) + (sum >> 16));
			frame[24] = (uint8_t)(sum >> 8);
			frame[25] = (uint8_t)sum;
		}
		break;
	case 4:
		if (frame[14] == 0x45)
			/* UDP port, length */
			frame[36 + sim_below(s, 4)] ^= (uint8_t)(1 + sim_below(s, 255));
		break;
	default:
		if (frame[14] == 0x45)
			frame[43] ^= (uint8_t)(1 + sim_below(s, 15)); /* TVer */
		break;
	}
}

void
forge(struct sim *s, struct sim_node *to)
{
	struct sim_node *from = &s->node[!to->id];
	uint8_t frame[2 * SIM_FRAME_MAX] = { 0 }, *bth = frame + PATH_HEADER_MAX;
	struct packet pkt = { 0 };
	struct wire_headers h;
	struct path path;
	enum verdict why;
	struct av av = { 0 };
	uint32_t len, hlen, payload;
	uint8_t *start;

	if (from->last_len == 0 || !sim_parse(from->last_frame, from->last_len, &pkt, &why))
		return;
	headers_of(&pkt, &h);
	av.encap = pkt.encap;
	av.sgid = pkt.sgid;
	av.dgid = pkt.dgid;
	av.slid = pkt.slid;
	av.dlid = pkt.dlid;
	av.grh = pkt.has_grh;
	av.vlan = PATH_NO_VLAN;
	payload = pkt.payload_len;
	if (sim_below(s, 4) != 0)
		twist_transport(s, &h, &av, &payload);
	path_init(&path, &av, h.dest_qpn, h.dest_qpn);
	hlen = wire_build(bth, &h);
	memcpy(bth + hlen, pkt.payload, pkt.payload_len);
	len = path_finish(&path, bth, hlen + payload + h.pad, 1);
	start = bth - path.header_len;
	if (sim_below(s, 4) == 0)
		twist_bytes(s, start, &len);
	sim_trace(s, "forged frame of %u bytes to node %u", len, to->id);
	sim_deliver(s, to, s->now + 1 + sim_below(s, sim_below(s, 2) ? 200 : 5000), start, len);
}
