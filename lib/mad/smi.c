/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The subnet management interface, QP0: check that a packet is an SMP for this port (smp-sma 1 and
 * 6), and handle both ends of a directed route (smp-sma 2).
 */

#include "mad/core.h"
#include "wire/layout.h"

#define HOPS_MAX 63 /* C14-6 */

/* --- the directed route at a channel adapter --- */

struct route {
	uint8_t *smp;
	unsigned int pointer;
	unsigned int count;
	uint8_t port; /* number of the receiving port, from 1 */
};

static bool
route_too_long(const struct route *r)
{
	return r->count > HOPS_MAX;
}

static bool
route_at_end(const struct route *r)
{
	return r->pointer == r->count;
}

static bool
route_beyond_end(const struct route *r)
{
	return r->pointer == r->count + 1;
}

static bool
route_one_hop_left(const struct route *r)
{
	return r->pointer == 1;
}

static bool
route_no_hop_left(const struct route *r)
{
	return r->pointer == 0;
}

static bool
route_discard(const struct route *r)
{
	(void)r;
	return false;
}

static bool
route_accept(const struct route *r)
{
	(void)r;
	return true;
}

/* The last hop: note the receiving port in the return path. A channel adapter does not forward. */
static bool
route_arrive(const struct route *r)
{
	if (r->count != 0)
		r->smp[SMP_OFF_RETURN_PATH + r->pointer] = r->port;
	r->smp[SMP_OFF_HOP_POINTER]++;
	return get_be16(r->smp + SMP_OFF_DR_DLID) == PORT_LID_PERMISSIVE;
}

/* A response is back at its requester, unless a LID-routed part follows. */
static bool
route_returned(const struct route *r)
{
	r->smp[SMP_OFF_HOP_POINTER] = 0;
	return get_be16(r->smp + SMP_OFF_DR_SLID) == PORT_LID_PERMISSIVE;
}

enum direction {
	OUT = 1, /* D = 0: request */
	BACK = 2, /* D = 1: response */
};

/* smp-sma 2: the first row that applies decides. If none does, discard: we do not forward. */
static const struct route_row {
	unsigned int direction;
	bool (*applies)(const struct route *r);
	bool (*is_ours)(const struct route *r);
} route_rows[] = {
	{ OUT | BACK, route_too_long, route_discard },
	{ OUT, route_at_end, route_arrive },
	{ OUT, route_beyond_end, route_accept },
	{ BACK, route_one_hop_left, route_returned },
	{ BACK, route_no_hop_left, route_accept },
};

static bool
route_ends_here(uint8_t *smp, uint16_t port)
{
	bool returning = get_be16(smp + MAD_OFF_STATUS) & SMP_RETURNING;
	const struct route r = {
		.smp = smp,
		.pointer = smp[SMP_OFF_HOP_POINTER],
		.count = smp[SMP_OFF_HOP_COUNT],
		.port = (uint8_t)(port + 1),
	};
	unsigned int i;

	/* D must be set in responses and only there */
	if (returning != (smp[MAD_OFF_METHOD] >> 7))
		return false;
	for (i = 0; i < sizeof(route_rows) / sizeof(route_rows[0]); i++) {
		const struct route_row *row = &route_rows[i];

		if ((row->direction & (returning ? BACK : OUT)) && row->applies(&r))
			return row->is_ours(&r);
	}
	return false;
}

/* --- receiving --- */

enum verdict
mad_receive_smp(struct mad_worker *w, const struct packet *pkt, uint64_t now)
{
	struct mad_rx rx = { .w = w, .pkt = pkt, .mad = w->smp, .now = now, .pkey = SMP_PKEY };
	enum verdict v;

	RTE_ASSERT(w->config.id == 0);
	w->now = now;
	if (pkt->encap != ENCAP_IB || pkt->vl != LRH_VL_SMP || pkt->has_grh ||
		pkt->dest_qpn != QPN_SMI)
		return VERDICT_SMP;
	if (OPCODE_CLASS(pkt->opcode) != OPCODE_UD)
		return VERDICT_QP_TYPE;
	if (!w->config.icrc_unchecked && !wire_crc_ok(pkt, &v))
		return v;
	rx.port = w->config.port(w->config.port_arg, pkt->port);
	if (rx.port == NULL)
		return VERDICT_ADDRESS;
	if (pkt->payload_len != MAD_LEN)
		return VERDICT_MAD_LENGTH;
	if (pkt->payload[MAD_OFF_BASE_VERSION] != MAD_BASE_VERSION)
		return VERDICT_MAD_VERSION;
	if (!mad_is_smp(pkt->payload))
		return VERDICT_SMP;
	memcpy(w->smp, pkt->payload, MAD_LEN);
	if (mad_is_directed(w->smp) && !route_ends_here(w->smp, pkt->port))
		return VERDICT_SMP_ROUTE;
	return mad_hand_over(&rx);
}

/* --- sending --- */

/* True if the SMP is addressed to the port that sends it. */
static bool
is_loopback(const struct port_attr *port, uint16_t dlid, const uint8_t *mad)
{
	if (mad_is_directed(mad))
		return mad[SMP_OFF_HOP_COUNT] == 0;
	return port != NULL && port_lid_own(port, dlid);
}

void
mad_smp_call(const struct port_attr *port, struct mad_peer *to, uint8_t *mad)
{
	to->qkey = 0;
	to->pkey = SMP_PKEY;
	to->av.sl = 0;
	to->av.grh = false;
	if (is_loopback(port, to->av.dlid, mad))
		memcpy(to->av.dmac, to->av.smac, sizeof(to->av.dmac));
	if (mad_is_directed(mad))
		mad[SMP_OFF_HOP_POINTER] = mad[SMP_OFF_HOP_COUNT] != 0; /* the first hop */
}
