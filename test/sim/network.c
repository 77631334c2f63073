/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>

#include "coverage.h"
#include "../wire/print.h"
#include "sa_sim.h"
#include "wire/bytes.h"

bool
sim_parse(const uint8_t *frame, uint32_t len, struct packet *pkt, enum verdict *why)
{
	uint16_t ethertype;
	enum encap encap;

	if (len < 14) {
		*why = VERDICT_RUNT;
		return false;
	}
	ethertype = (uint16_t)(frame[12] << 8 | frame[13]);
	switch (ethertype) {
	case 0x0800:
		encap = ENCAP_ROCEV2_IPV4;
		break;
	case 0x86DD:
		encap = ENCAP_ROCEV2_IPV6;
		break;
	case ETHERTYPE_ROCEV1:
		encap = ENCAP_ROCEV1;
		break;
	case ETHERTYPE_IB:
		encap = ENCAP_IB;
		break;
	default:
		*why = VERDICT_ETHERTYPE;
		return false;
	}
	return wire_parse(encap, frame + 14, len - 14, pkt, why);
}

/* Trace a MAD; as text only in verbose mode, as there are many. */
static void
trace_mad(struct sim_node *from, const struct packet *pkt, const char *fate)
{
	struct sim *s = from->sim;
	char text[192];

	coverage_mad(s->coverage, pkt->payload, sa_v1_flags(s->sa, pkt->payload));
	sa_trace_frame(s->sa, from->id, pkt, fate[0] == '\0' ? SA_DELIVERED : SA_LOST);
	if (s->verbose) {
		sa_print_mad(s->sa, pkt->payload, text, sizeof(text));
		sim_trace(s, "%u -> 0x%x %s%s", from->id, pkt->dgid.raw[15], text, fate);
	} else {
		sim_trace_bytes(s, pkt->payload, SA2_OFF_DATA);
		sim_trace_bytes(s, fate, 1);
	}
}

static struct sim_node *
network_route(struct sim_node *from, const uint8_t *frame)
{
	const struct sim_guest *guest = from->sim->guest;

	return guest != NULL && guest->route != NULL ? guest->route(from, frame)
						     : &from->sim->node[!from->id];
}

static void
trace_frame(struct sim_node *from, const uint8_t *frame, uint32_t len, const char *fate)
{
	struct packet pkt = { 0 };
	enum verdict why;
	char text[160];

	if (!sim_parse(frame, len, &pkt, &why)) {
		sim_fail(from->sim, "node %u sent a frame that does not parse: %s", from->id,
			verdict_infos[why].name);
		return;
	}
	coverage_packet(from->sim->coverage, &pkt);
	if (pkt.dest_qpn == 1 && pkt.payload_len == MAD_LEN && from->sim->sa != NULL) {
		trace_mad(from, &pkt, fate);
		return;
	}
	if (pkt.dest_qpn <= 1 && from->sim->guest != NULL)
		from->sim->guest->sent(from, &pkt, fate[0] != '\0');
	wire_print(&pkt, text, sizeof(text));
	sim_trace(from->sim, "%u -> %u %s%s", from->id, network_route(from, frame)->id, text, fate);
}

void
sim_network_send(struct sim_node *from, const uint8_t *frame, uint32_t len)
{
	struct sim *s = from->sim;
	struct sim_network *net = &from->net;
	struct sim_node *to = network_route(from, frame);
	uint64_t at = s->now + net->delay;
	uint8_t copy[SIM_FRAME_MAX];

	if (from->sa != NULL && from->sa->down)
		return;
	memcpy(from->last_frame, frame, len);
	from->last_len = len;
	/* byte 4 of the source MAC is the number of a connection's path */
	if (net->cut || (net->dead >> (frame[10] & 7) & 1) || sim_chance(s, net->lose)) {
		trace_frame(from, frame, len, " LOST");
		return;
	}
	if (sim_chance(s, net->reorder))
		at += sim_below(s, (uint32_t)net->jitter + 1);
	if (sim_chance(s, net->corrupt)) {
		uint32_t bit = 14 * 8 + sim_below(s, (len - 14) * 8);

		trace_frame(from, frame, len, " DAMAGED");
		memcpy(copy, frame, len);
		copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		sim_deliver(s, to, at, copy, len);
		return;
	}
	trace_frame(from, frame, len, "");
	sim_deliver(s, to, at, frame, len);
	if (sim_chance(s, net->duplicate))
		sim_deliver(s, to, at + sim_below(s, (uint32_t)net->jitter + 1), frame, len);
}
