/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A native IB port with its subnet management agent on a node of the simulation. */

#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "smi_sim.h"
#include "wire/bytes.h"
#include "wire/layout.h"

/* of PortInfo (smp-sma 3) */
#define PORT_INFO_STATE   32
#define PORT_INFO_PROTECT 34

const uint8_t *
smi_port_info(struct smi_side *side)
{
	static uint8_t data[SMA_DATA_LEN];

	if (sma_read(side->sma, 0, SMA_PORT_INFO, 0, data) != MAD_STATUS_OK)
		sim_fail(side->sim, "PortInfo cannot be read");
	return data;
}

/* --- invariants --- */

/*
 * smp-sma 3: a port goes from Init to Armed to Active, and from everywhere to Down; from Down it
 * goes to Init, or to Active if it needs no subnet manager.
 */
static void
smi_node_change(struct smi_side *side, uint8_t state)
{
	static const bool legal[5][5] = {
		[PORT_STATE_DOWN] = { [PORT_STATE_INIT] = true },
		[PORT_STATE_INIT] = { [PORT_STATE_DOWN] = true, [PORT_STATE_ARMED] = true },
		[PORT_STATE_ARMED] = { [PORT_STATE_DOWN] = true, [PORT_STATE_ACTIVE] = true },
		[PORT_STATE_ACTIVE] = { [PORT_STATE_DOWN] = true },
	};
	uint8_t old = side->state;

	if (state == old)
		return;
	if (state > PORT_STATE_ACTIVE ||
		(!legal[old][state] &&
			!(side->active && old == PORT_STATE_DOWN && state == PORT_STATE_ACTIVE)))
		sim_fail(side->sim, "PortState %u became %u", old, state);
	else
		coverage_port_state(side->sim->coverage, old, state);
	sim_trace(side->sim, "PortState %u -> %u", old, state);
	side->state = state;
}

/* PortInfo contains the state that was set. */
static void
smi_node_look(struct smi_side *side)
{
	uint8_t state = smi_port_info(side)[PORT_INFO_STATE] & 0xF;

	if (state != side->state)
		sim_fail(side->sim, "PortState is %u in PortInfo, the port's %u", state,
			side->state);
}

static void
smi_node_remember(struct smi_side *side, const struct packet *pkt)
{
	struct smi_asked *a = &side->asked[side->num_asked++ % SMI_ASKED];
	const uint8_t *mad = pkt->payload;

	*a = (struct smi_asked){
		.tid = get_be64(mad + MAD_OFF_TID),
		.m_key = get_be64(mad + SMP_OFF_M_KEY),
		.method = mad[MAD_OFF_METHOD],
		.modifier = get_be32(mad + MAD_OFF_MODIFIER),
		.attribute = get_be16(mad + MAD_OFF_ATTRIBUTE),
		.slid = pkt->slid,
		.dlid = pkt->dlid,
		.mgmt_class = mad[MAD_OFF_CLASS],
		.class_version = mad[MAD_OFF_CLASS_VERSION],
	};
}

static bool
answers(const struct smi_asked *a, const struct packet *pkt)
{
	const uint8_t *mad = pkt->payload;

	return a->tid == get_be64(mad + MAD_OFF_TID) &&
		a->modifier == get_be32(mad + MAD_OFF_MODIFIER) &&
		a->attribute == get_be16(mad + MAD_OFF_ATTRIBUTE) && a->slid == pkt->dlid &&
		a->dlid == pkt->slid && a->mgmt_class == mad[MAD_OFF_CLASS] &&
		a->class_version == mad[MAD_OFF_CLASS_VERSION];
}

/*
 * smp-sma 4: without the M_Key a requester does not see it, unless ProtectBits are 0. A Set may
 * just have made the requester's key the M_Key.
 */
static bool
may_see_key(struct smi_side *side, const struct smi_asked *a, const uint8_t *mad)
{
	const uint8_t *info = smi_port_info(side);
	uint64_t key = get_be64(info);

	return a->method != MAD_GET || a->attribute != SMA_PORT_INFO || key == 0 ||
		a->m_key == key || info[PORT_INFO_PROTECT] >> 6 == 0 ||
		get_be64(mad + SMP_OFF_DATA) != key;
}

/* An answer must match an earlier request. Several equal requests are not distinguished. */
static void
check_asked(struct smi_side *side, const struct packet *pkt)
{
	bool asked = false, allowed = false;

	for (unsigned int i = 0; i < SMI_ASKED && i < side->num_asked; i++) {
		const struct smi_asked *a = &side->asked[i];

		if (!answers(a, pkt))
			continue;
		asked = true;
		allowed |= may_see_key(side, a, pkt->payload);
	}
	if (!asked)
		sim_fail(side->sim, "an answer that nobody asked for");
	else if (!allowed)
		sim_fail(side->sim, "the M_Key is shown to somebody who has not got it");
}

static void
smi_node_check_answer(struct smi_side *side, const struct packet *pkt)
{
	const uint8_t *mad = pkt->payload;
	uint16_t status = get_be16(mad + MAD_OFF_STATUS);
	bool directed = mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ROUTED;

	if (directed != !!(status & SMP_RETURNING))
		sim_fail(side->sim, "status 0x%04x of class 0x%02x", status, mad[MAD_OFF_CLASS]);
	if (directed && mad[SMP_OFF_HOP_POINTER] != mad[SMP_OFF_HOP_COUNT])
		sim_fail(side->sim, "answer with hop pointer %u of %u", mad[SMP_OFF_HOP_POINTER],
			mad[SMP_OFF_HOP_COUNT]);
	switch (status & ~SMP_RETURNING) {
	case MAD_STATUS_OK:
	case MAD_STATUS_BAD_VERSION:
	case MAD_STATUS_BAD_METHOD:
	case MAD_STATUS_BAD_METHOD_ATTR:
	case MAD_STATUS_INVALID_FIELD:
		break;
	default:
		sim_fail(side->sim, "answer with status 0x%04x", status);
	}
	check_asked(side, pkt);
}

/* smp-sma 5 */
static void
check_trap(struct smi_side *side, const struct packet *pkt)
{
	const uint8_t *mad = pkt->payload;

	if (mad[MAD_OFF_CLASS] != MAD_CLASS_SUBN_LID || get_be16(mad + MAD_OFF_STATUS) != 0 ||
		get_be16(mad + MAD_OFF_ATTRIBUTE) != SMA_NOTICE ||
		get_be32(mad + MAD_OFF_MODIFIER) != 0 || get_be64(mad + SMP_OFF_M_KEY) != 0)
		sim_fail(side->sim, "a Trap with a wrong header");
	if (side->state != PORT_STATE_ACTIVE)
		sim_fail(side->sim, "a Trap in PortState %u", side->state);
	if (get_be16(mad + SMP_OFF_DATA + 6) != pkt->slid)
		sim_fail(side->sim, "IssuerLID is not the source");
}

void
smi_check_sent(struct smi_side *side, const struct packet *pkt)
{
	const uint8_t *mad = pkt->payload;

	if (pkt->vl != LRH_VL_SMP || pkt->sl != 0 || pkt->has_grh || pkt->opcode != UD_SEND_ONLY ||
		pkt->dest_qpn != 0 || pkt->src_qpn != 0 || pkt->qkey != 0 || pkt->pkey != 0xFFFF ||
		pkt->payload_len != MAD_LEN || mad[MAD_OFF_BASE_VERSION] != MAD_BASE_VERSION) {
		sim_fail(side->sim, "what was sent is no SMP");
		return;
	}
	if (mad[MAD_OFF_METHOD] == MAD_TRAP)
		check_trap(side, pkt);
	else if (mad[MAD_OFF_METHOD] & MAD_RESPONSE)
		smi_node_check_answer(side, pkt);
	else
		sim_fail(side->sim, "method 0x%02x was sent", mad[MAD_OFF_METHOD]);
}

/* --- start and stop --- */

static const struct port_attr *
smi_node_port_of(void *arg, uint16_t port)
{
	struct smi_side *side = arg;

	return port == 0 ? &side->attr : NULL;
}

static void
smi_node_apply(void *arg, uint16_t port, const struct port_settings *set)
{
	struct smi_side *side = arg;

	(void)port;
	side->attr.state = set->state;
	side->attr.lid = set->lid;
	side->attr.lmc = set->lmc;
	side->attr.sm_lid = set->sm_lid;
	side->attr.subnet_timeout = set->subnet_timeout;
	memcpy(side->attr.sl_to_vl, set->sl_to_vl, sizeof(side->attr.sl_to_vl));
	sim_trace(side->sim, "port: state %u, LID %u, SM %u", set->state, set->lid, set->sm_lid);
	smi_node_change(side, set->state);
}

void
smi_side_start(struct smi_side *side, struct sim *s, const struct sma_port_config *port,
	const struct sma_limits *limits)
{
	struct sim_node *n = &s->node[SMI_CA];
	struct mad_worker_config mc = {
		.workers = 1,
		.hash_key = sim_rand(s),
		.hz = SIM_SECOND,
		.alloc = &n->alloc,
		.rng = &n->rng,
		.tx = &n->tx.sink,
		.port = smi_node_port_of,
		.port_arg = side,
		.limits = mad_limits_default,
	};
	struct sma_config sc = {
		.alloc = &n->alloc,
		.rng = &n->rng,
		.hz = SIM_SECOND,
		.node_desc = "simulation",
		.node_guid = SMI_GUID,
		.system_image_guid = SMI_GUID,
		.num_ports = 1,
		.port = port,
		.num_managed = 1,
		.limits = *limits,
		.apply = smi_node_apply,
		.arg = side,
	};

	memset(side, 0, sizeof(*side));
	side->sim = s;
	side->node = n;
	side->attr = (struct port_attr){
		.ib = true,
		.up = true,
		.vlan = PATH_NO_VLAN,
		.mac = { 2, 0, 0, 0, 0, 5 },
		.guid = SMI_GUID,
	};
	side->state = PORT_STATE_DOWN;
	side->active = port->active;
	mc.limits.max_sessions = 64;
	mc.limits.max_bytes = mc.limits.max_bytes_per_peer = 1u << 16;
	mc.wheel = sc.wheel = side->wheel = timer_wheel_create(&n->alloc, 1024, s->now);
	sc.mad = side->mad = mad_worker_create(&mc);
	side->sma = sma_create(&sc);
	if (side->wheel == NULL || side->mad == NULL || side->sma == NULL)
		abort();
	sma_start(side->sma, s->now);
	sma_link(side->sma, 0, true, s->now);
	smi_node_look(side);
}

void
smi_side_stop(struct smi_side *side)
{
	uint64_t used, total;

	sma_destroy(side->sma);
	mad_worker_memory(side->mad, &used, &total);
	if (used != 0)
		sim_fail(side->sim, "%llu bytes of sessions are never given back",
			(unsigned long long)used);
	mad_worker_destroy(side->mad);
	timer_wheel_destroy(side->wheel);
}

/* --- packets and turns --- */

static enum verdict
smi_node_receive(struct smi_side *side, const struct packet *pkt)
{
	if (pkt->encap == ENCAP_IB && !port_lid_own(&side->attr, pkt->dlid) &&
		pkt->dlid != PORT_LID_PERMISSIVE)
		return VERDICT_NOT_OUR_LID;
	if (pkt->dest_qpn != 0)
		return VERDICT_QPN_UNKNOWN;
	if (pkt->payload_len == MAD_LEN)
		smi_node_remember(side, pkt);
	return mad_receive_smp(side->mad, pkt, side->sim->now);
}

enum verdict
smi_side_receive(struct smi_side *side, const struct packet *pkt)
{
	enum verdict v = smi_node_receive(side, pkt);

	smi_node_look(side);
	return v;
}

bool
smi_side_run(struct smi_side *side)
{
	timer_wheel_run(side->wheel, side->sim->now);
	smi_node_look(side);
	mad_run(side->mad, side->sim->now, side->node->burst);
	timer_wheel_sent(side->wheel, side->sim->now);
	return mad_pending(side->mad);
}

uint64_t
smi_side_next(const struct smi_side *side)
{
	return timer_wheel_next(side->wheel);
}

/* --- frames of other nodes --- */

const struct smi_frame smi_frame_default = {
	.headers = { .opcode = UD_SEND_ONLY, .pkey = 0xFFFF },
	.slid = SMI_SM_LID,
	.dlid = SMI_CA_LID,
	.len = MAD_LEN,
};

uint32_t
smi_build(const struct smi_frame *f, const uint8_t *mad, uint8_t frame[SIM_FRAME_MAX])
{
	struct av av = {
		.encap = ENCAP_IB,
		.slid = f->slid,
		.dlid = f->dlid,
		.grh = f->grh,
		.vlan = PATH_NO_VLAN,
		.smac = { 2, 0, 0, 0, 0, 7 },
	};
	struct wire_headers h = f->headers;
	uint8_t *bth = frame + PATH_HEADER_MAX;
	struct path path;
	uint32_t hlen, len;

	h.pad = wire_pad(f->len);
	path_init(&path, &av, h.src_qpn, h.dest_qpn);
	hlen = wire_build(bth, &h);
	memcpy(bth + hlen, mad, f->len);
	len = path_finish(&path, bth, hlen + f->len + h.pad, 1);
	memmove(frame, bth - path.header_len, len);
	return len;
}
