/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A hostile node. It sends REQs with one wrong field, each with a known reject reason; any message
 * at any time for its own connections; messages for connections of others with overheard IDs, from
 * its own address; floods of REQs.
 */

#include <string.h>

#include "cm_sim.h"
#include "../wire/build.h"

/* a TID of this node contains the expected reject reason; 0: any reason */
#define TID_OURS UINT64_C(0x666F652066000000)
/* clang-format off */
#define TID_REASON(tid)                                                                            \
	((tid) >> 24 == TID_OURS >> 24 ? (uint16_t)((tid) & 0x3F) : 0)
/* clang-format on */

/* --- sending --- */

struct envelope {
	unsigned int to;
	union gid sgid; /* not zero: send from this address, which no node has */
	uint16_t slid;
	uint8_t class_version;
};

static void
cm_hostile_send_mad(struct cm_script *sc, const struct envelope *e, uint8_t *mad)
{
	struct sim *s = sc->sim;
	struct sim_node *n = &s->node[sc->honest];
	struct av av = cm_av(sc, n->id, e->to, 0);
	const struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	uint8_t frame[SIM_FRAME_MAX], *bth = frame + PATH_HEADER_MAX;
	struct path path;
	uint32_t hlen, len;

	if (!gid_is_zero(&e->sgid)) {
		av.sgid = e->sgid;
		av.slid = e->slid;
	}
	mad[MAD_OFF_CLASS_VERSION] = e->class_version;
	path_init(&path, &av, 1, 1);
	hlen = wire_build(bth, &h);
	memcpy(bth + hlen, mad, MAD_LEN);
	len = path_finish(&path, bth, hlen + MAD_LEN, 1);
	sim_network_send(n, bth - path.header_len, len);
}

static void
cm_hostile_say(struct cm_script *sc, unsigned int to, const struct cm_msg *m)
{
	const struct envelope e = { .to = to, .class_version = CM_CLASS_VERSION };
	uint8_t mad[MAD_LEN];

	cm_msg_encode(m, mad);
	sim_trace(sc->sim, "hostile: %s 0x%08x 0x%08x", cm_message_name(m->type), m->local_id,
		m->remote_id);
	cm_hostile_send_mad(sc, &e, mad);
}

/* --- valid REQs --- */

static uint64_t
new_tid(struct cm_script *sc, uint16_t reason)
{
	return TID_OURS | (sim_rand(sc->sim) & 0xFFFFC0) | reason;
}

static uint32_t
any_qpn(struct cm_script *sc)
{
	return 2 + sim_below(sc->sim, 0xFFFF00);
}

static void
good_path(struct cm_script *sc, unsigned int to, unsigned int path, struct cm_msg_path *p)
{
	bool ib = sc->encap == ENCAP_IB;

	*p = (struct cm_msg_path){
		.local_lid = ib ? cm_lid(sc->honest, path) : 0xFFFF,
		.remote_lid = ib ? cm_lid(to, path) : 0xFFFF,
		.local_gid = cm_gid(sc, sc->honest, ib ? path : 0),
		.remote_gid = cm_gid(sc, to, path),
		.hop_limit = 64,
		.subnet_local = ib && !sc->grh,
		.ack_timeout = (uint8_t)(1 + sim_below(sc->sim, 14)),
	};
}

static uint8_t req_private[CM_REQ_PRIVATE]; /* a valid RDMA-CM header, or zeros */

static void
good_req(struct cm_script *sc, unsigned int to, struct cm_msg *m)
{
	struct sim *s = sc->sim;
	const struct cm_rdma rdma = {
		.present = true,
		.src_port = 1,
		.src = sc->sim->node[0].gid,
		.dst = sc->sim->node[0].gid,
	};

	memset(req_private, 0, sizeof(req_private));
	cm_rdma_encode(&rdma, req_private);
	*m = (struct cm_msg){
		.type = CM_REQ,
		.tid = new_tid(sc, 0),
		.local_id = (uint32_t)sim_rand(s) | 1,
		.req = {
			.service_id = cm_service(sc, sim_below(s, CM_SERVICES)),
			.ca_guid = CM_HOSTILE_GUID,
			.qpn = any_qpn(sc),
			.psn = (uint32_t)sim_rand(s) & PSN_MASK,
			.responder_resources = (uint8_t)sim_rand(s),
			.initiator_depth = (uint8_t)sim_rand(s),
			.remote_response_timeout = (uint8_t)sim_below(s, 14),
			.local_response_timeout =
				(uint8_t)(sim_below(s, 50) ? sim_below(s, 14) : 31),
			.retry_count = (uint8_t)sim_below(s, 8),
			.rnr_retry_count = (uint8_t)sim_below(s, 8),
			.pkey = 0xFFFF,
			.mtu = (uint8_t)(1 + sim_below(s, 3)),
			.max_cm_retries = (uint8_t)sim_below(s, 16),
		},
		.private_data = req_private,
		.private_len = sizeof(req_private),
	};
	good_path(sc, to, 0, &m->req.primary);
	if (sim_below(s, 3) == 0)
		good_path(sc, to, 1, &m->req.alternate);
}

/* --- invalid REQs --- */

struct wrong {
	uint16_t reason;
	bool ib; /* wrong on native IB only */
	bool alternate;
	void (*spoil)(struct cm_msg *m, struct cm_msg_path *p);
};

#define SPOIL(name, ...)                                                                           \
	static void name(struct cm_msg *m, struct cm_msg_path *p)                                  \
	{                                                                                          \
		(void)m;                                                                           \
		(void)p;                                                                           \
		__VA_ARGS__;                                                                       \
	}
SPOIL(wrong_transport, m->req.transport = CM_TRANSPORT_UC)
SPOIL(wrong_qpn, m->req.qpn = 1)
SPOIL(wrong_service, m->req.service_id = 0x9999)
SPOIL(wrong_remote_gid, p->remote_gid.raw[12] ^= 0x40)
SPOIL(zero_local_gid, p->subnet_local = false; p->local_gid = (union gid){ .word = { 0, 0 } })
SPOIL(wrong_remote_lid, p->remote_lid = 77)
SPOIL(wrong_local_lid, p->local_lid = 0xC001)
SPOIL(wrong_sl, p->sl = 9)
SPOIL(wrong_hops, p->subnet_local = false; p->hop_limit = 1)
SPOIL(wrong_rate, p->rate = 1)
SPOIL(no_mtu, m->req.mtu = 0)
SPOIL(large_mtu, m->req.mtu = 5)
SPOIL(wrong_pkey, m->req.pkey = 0x1234)
SPOIL(wrong_header, m->req.service_id = cm_service_id(CM_PS_TCP, 7003); req_private[0] = 7)

static const struct wrong wrongs[] = {
	{ CM_REJ_INVALID_TRANSPORT, false, false, wrong_transport },
	{ CM_REJ_UNSUPPORTED, false, false, wrong_qpn },
	{ CM_REJ_INVALID_SERVICE_ID, false, false, wrong_service },
	{ CM_REJ_INVALID_GID, false, false, wrong_remote_gid },
	{ CM_REJ_INVALID_GID, false, false, zero_local_gid },
	{ CM_REJ_INVALID_LID, true, false, wrong_remote_lid },
	{ CM_REJ_INVALID_LID, true, false, wrong_local_lid },
	{ CM_REJ_INVALID_SL, true, false, wrong_sl },
	{ CM_REJ_INVALID_HOP_LIMIT, true, false, wrong_hops },
	{ CM_REJ_INVALID_RATE, false, false, wrong_rate },
	{ CM_REJ_INVALID_ALT_GID, false, true, wrong_remote_gid },
	{ CM_REJ_INVALID_ALT_LID, true, true, wrong_remote_lid },
	{ CM_REJ_INVALID_ALT_SL, true, true, wrong_sl },
	{ CM_REJ_INVALID_ALT_HOP_LIMIT, true, true, wrong_hops },
	{ CM_REJ_INVALID_ALT_RATE, false, true, wrong_rate },
	{ CM_REJ_INVALID_MTU, false, false, no_mtu },
	{ CM_REJ_INVALID_MTU, false, false, large_mtu },
	{ CM_REJ_CONSUMER, false, false, wrong_pkey },
	{ CM_REJ_CONSUMER, false, false, wrong_header },
};
#define WRONGS (sizeof(wrongs) / sizeof(wrongs[0]))

static void
wrong_req(struct cm_script *sc, unsigned int to)
{
	const struct wrong *w = &wrongs[sim_below(sc->sim, WRONGS)];
	struct cm_msg m;

	if (w->ib && sc->encap != ENCAP_IB)
		return;
	good_req(sc, to, &m);
	m.tid = new_tid(sc, w->reason);
	if (w->alternate)
		good_path(sc, to, 1, &m.req.alternate);
	w->spoil(&m, w->alternate ? &m.req.alternate : &m.req.primary);
	cm_hostile_say(sc, to, &m);
}

static void
other_version(struct cm_script *sc, unsigned int to)
{
	struct envelope e = { .to = to, .class_version = sim_below(sc->sim, 2) ? 1 : 3 };
	uint8_t mad[MAD_LEN];
	struct cm_msg m;

	good_req(sc, to, &m);
	m.tid = new_tid(sc, CM_REJ_INVALID_CLASS_VERSION);
	if (sim_below(sc->sim, 4) == 0)
		m.type = CM_RTU;
	cm_msg_encode(&m, mad);
	cm_hostile_send_mad(sc, &e, mad);
}

/* Send random bytes behind a nearly valid header. */
static void
noise(struct cm_script *sc, unsigned int to)
{
	struct sim *s = sc->sim;
	struct envelope e = { .to = to, .class_version = CM_CLASS_VERSION };
	struct cm_msg m = { .type = (enum cm_message)sim_below(s, CM_MESSAGES) };
	uint8_t mad[MAD_LEN];

	cm_msg_encode(&m, mad);
	for (unsigned int i = MAD_HEADER_LEN; i < MAD_LEN; i++)
		mad[i] = (uint8_t)sim_rand(s);
	if (sim_below(s, 4) == 0)
		mad[MAD_OFF_METHOD] = (uint8_t)sim_below(s, 0x80);
	if (sim_below(s, 4) == 0)
		mad[MAD_OFF_ATTRIBUTE + 1] = (uint8_t)sim_below(s, 0x20);
	if (sim_below(s, 8) == 0) { /* from a multicast address, which no host can have */
		e.sgid = gid_from_ipv4((const uint8_t[]){ 224, 0, 0, 1 });
		e.slid = cm_lid(sc->honest, 0);
	}
	cm_hostile_send_mad(sc, &e, mad);
}

/* --- connections of its own --- */

static struct cm_foe *
foe_new(struct cm_script *sc, unsigned int node)
{
	struct cm_foe *f;

	sc->last_foe = sc->num_foes < CM_FOES ? sc->num_foes++ : sim_below(sc->sim, CM_FOES);
	f = &sc->foes[sc->last_foe];
	*f = (struct cm_foe){
		.node = node,
		.id = (uint32_t)sim_rand(sc->sim) | 1,
		.qpn = any_qpn(sc),
	};
	return f;
}

static struct cm_foe *
foe_any(struct cm_script *sc)
{
	if (sc->num_foes == 0)
		return NULL;
	return &sc->foes[sim_below(sc->sim, 2) ? sc->last_foe : sim_below(sc->sim, sc->num_foes)];
}

static void
foe_connect(struct cm_script *sc, unsigned int to)
{
	struct cm_foe *f = foe_new(sc, to), *other;

	good_req(sc, to, &f->first);
	f->active = true;
	f->id = f->first.local_id;
	f->qpn = f->first.req.qpn;
	other = foe_any(sc);
	if (sim_below(sc->sim, 3) == 0)
		f->first.req.qpn = other->qpn; /* as if the QP had been restarted */
	else if (sim_below(sc->sim, 8) == 0)
		f->first.local_id = f->id = other->id;
	f->first.private_data = NULL;
	f->first.req.service_id = cm_service(sc, 0);
	cm_hostile_say(sc, to, &f->first);
}

static void
rep_of(struct cm_script *sc, const struct cm_foe *f, struct cm_msg *m)
{
	struct sim *s = sc->sim;
	const struct cm_foe *other = foe_any(sc);

	m->rep = (struct cm_rep){
		.qpn = f->qpn,
		.psn = (uint32_t)sim_rand(s) & PSN_MASK,
		.responder_resources = (uint8_t)sim_rand(s),
		.ca_guid = CM_HOSTILE_GUID,
		.initiator_depth = (uint8_t)sim_rand(s),
		.failover = (uint8_t)sim_below(s, 3),
		.target_ack_delay = (uint8_t)sim_below(s, 12),
		.rnr_retry_count = 7,
	};
	switch (sim_below(s, 10)) {
	case 0:
		m->rep.qpn = other->qpn;
		break;
	case 1:
		m->local_id = other->id;
		break;
	case 2:
		m->rep.qpn = sim_below(s, 2);
		break;
	}
}

static void
lap_of(struct cm_script *sc, const struct cm_foe *f, struct cm_msg *m)
{
	struct cm_msg_path *p = &m->lap.alternate;

	m->lap.qpn = f->their_qpn;
	good_path(sc, f->node, 1, p);
	switch (sim_below(sc->sim, 8)) {
	case 0:
		m->lap.qpn ^= 1;
		break;
	case 1:
		wrong_remote_gid(m, p);
		break;
	case 2:
		wrong_rate(m, p);
		break;
	case 3:
		wrong_sl(m, p);
		break;
	case 4:
		wrong_hops(m, p);
		break;
	case 5:
		wrong_remote_lid(m, p);
		break;
	case 6:
		good_path(sc, f->node, 0, p);
		break;
	}
}

/* Fill a message with plausible contents. */
static void
cm_hostile_fill(struct cm_script *sc, const struct cm_foe *f, struct cm_msg *m)
{
	struct sim *s = sc->sim;

	switch (m->type) {
	case CM_MRA:
		m->mra.answers = (uint8_t)(sim_below(s, 4) == 0 ? sim_below(s, 3)
				: f->active                     ? CM_ANSWERS_REP
								: CM_ANSWERS_REQ);
		m->mra.service_timeout = (uint8_t)(sim_below(s, 30) ? sim_below(s, 20) : 31);
		break;
	case CM_REJ:
		m->rej.reason =
			(uint16_t)(sim_below(s, 4) ? sim_below(s, CM_REASONS + 2) : CM_REJ_STALE);
		m->rej.answers = (uint8_t)sim_below(s, 3);
		m->rej.ari_len = 8;
		put_be64(m->rej.ari, CM_HOSTILE_GUID);
		if (f->theirs == 0)
			m->rej.reason = CM_REJ_TIMEOUT;
		if (m->rej.reason == CM_REJ_TIMEOUT && sim_below(s, 2))
			m->remote_id = 0;
		break;
	case CM_REP:
		rep_of(sc, f, m);
		break;
	case CM_DREQ:
		m->dreq.qpn = f->their_qpn ^ (sim_below(s, 8) == 0);
		break;
	case CM_LAP:
		lap_of(sc, f, m);
		break;
	case CM_APR:
		m->apr.status = (uint8_t)sim_below(s, 14);
		break;
	case CM_SIDR_REQ:
		m->sidr_req.service_id = cm_service(sc, sim_below(s, CM_SERVICES + 1));
		break;
	default:
		break;
	}
}

static void
foe_says(struct cm_script *sc, struct cm_foe *f, enum cm_message type)
{
	struct cm_msg m = {
		.type = type,
		.tid = f->first.tid,
		.local_id = f->id,
		.remote_id = f->theirs,
	};

	if (type == CM_REQ && f->active)
		m = f->first;
	else if (type == CM_REQ)
		return;
	if (type == CM_DREQ || type == CM_LAP)
		m.tid = new_tid(sc, 0);
	cm_hostile_fill(sc, f, &m);
	if (sim_below(sc->sim, 20) == 0)
		m.remote_id ^= 1u << sim_below(sc->sim, 32);
	cm_hostile_say(sc, f->node, &m);
}

/* Send a REJ for an unknown connection. */
static void
stray_rej(struct cm_script *sc, unsigned int to)
{
	struct cm_msg m = {
		.type = CM_REJ,
		.local_id = (uint32_t)sim_rand(sc->sim),
		.remote_id = (uint32_t)sim_rand(sc->sim),
		.rej = { .reason = (uint16_t)sim_below(sc->sim, CM_REASONS) },
	};

	cm_hostile_say(sc, to, &m);
}

void
cm_hostile_overhear(struct cm_script *sc, unsigned int from, unsigned int to,
	const struct cm_msg *rep)
{
	struct cm_overheard *o = &sc->overheard[sc->num_overheard++ % CM_OVERHEARD];

	if (to >= sc->honest)
		sc->num_overheard--;
	else
		*o = (struct cm_overheard){ .rep = *rep, .from = from, .to = to };
}

/* Forge a message from one side of a connection to the other. */
static void
forge_message(struct cm_script *sc)
{
	static const enum cm_message types[] = { CM_DREQ, CM_DREQ, CM_REJ, CM_REJ, CM_MRA, CM_RTU,
		CM_DREP, CM_REP };
	struct sim *s = sc->sim;
	unsigned int n = sc->num_overheard < CM_OVERHEARD ? sc->num_overheard : CM_OVERHEARD;
	const struct cm_overheard *o = &sc->overheard[sim_below(s, n)];
	bool to_active = sim_below(s, 2);
	struct cm_msg m = {
		.type = types[sim_below(s, 8)],
		.tid = o->rep.tid,
		.local_id = to_active ? o->rep.local_id : o->rep.remote_id,
		.remote_id = to_active ? o->rep.remote_id : o->rep.local_id,
	};

	if (n == 0)
		return;
	if (m.type == CM_DREQ)
		m.dreq.qpn = o->rep.rep.qpn;
	else if (m.type == CM_REJ)
		m.rej.reason = (uint16_t)(sim_below(s, 2) ? CM_REJ_STALE : CM_REJ_CONSUMER);
	else if (m.type == CM_REP)
		m.rep = (struct cm_rep){ .qpn = o->rep.rep.qpn ^ 1, .ca_guid = CM_HOSTILE_GUID };
	cm_hostile_say(sc, to_active ? o->to : o->from, &m);
}

/* Send more requests than the victim can queue answers for while its link is paused. */
static void
volley(struct cm_script *sc, unsigned int to)
{
	sc->sim->node[to].sink_empty = 10000;
	sc->side[to].paused_until = sc->sim->now + CM_MS / 2;
	for (unsigned int i = 0; i < 100; i++)
		wrong_req(sc, to);
}

/* A REQ for each of its QPs that is connected to this node, as if it had restarted. */
static void
foe_restarts(struct cm_script *sc, unsigned int to)
{
	struct cm_msg m;

	for (unsigned int i = 0; i < sc->num_foes; i++) {
		if (sc->foes[i].node != to || sc->foes[i].their_qpn == 0)
			continue;
		good_req(sc, to, &m);
		m.req.qpn = sc->foes[i].qpn;
		m.req.service_id = cm_service(sc, 0);
		m.private_data = NULL;
		cm_hostile_say(sc, to, &m);
	}
}

/* Continue a half-open connection without RTU: repeat the REQ, end it, or restart its QP. */
static void
unanswered(struct cm_script *sc, struct cm_foe *f)
{
	struct cm_msg again = f->first;

	if (sim_below(sc->sim, 3) || !f->active) {
		foe_says(sc, f, sim_below(sc->sim, 2) ? CM_REQ : CM_REJ);
		return;
	}
	again.tid = new_tid(sc, 0);
	again.local_id ^= 0x55;
	cm_hostile_say(sc, f->node, &again);
}

void
cm_hostile_act(struct cm_script *sc)
{
	struct sim *s = sc->sim;
	unsigned int to = sim_below(s, sc->honest);
	struct cm_foe *f = foe_any(sc);

	if (!sc->dialog || sim_below(s, 12) == 0) {
		forge_message(sc);
		return;
	}
	switch (sim_below(s, 13)) {
	case 12:
	case 11:
		if (f != NULL && f->their_qpn != 0)
			foe_says(sc, f, CM_LAP);
		break;
	case 10:
		if (sim_below(s, 20) == 0)
			volley(sc, to);
		else if (sim_below(s, 4) == 0)
			foe_restarts(sc, to);
		break;
	case 9:
		stray_rej(sc, to);
		break;
	case 8:
		if (f != NULL && f->theirs != 0)
			foe_says(sc, f, sim_below(s, 4) ? CM_LAP : CM_REJ);
		break;
	case 0:
	case 1:
		wrong_req(sc, to);
		break;
	case 2:
		(sim_below(s, 2) ? other_version : noise)(sc, to);
		break;
	case 3:
		foe_connect(sc, to);
		break;
	default:
		if (f != NULL && f->theirs == 0)
			unanswered(sc, f);
		else if (f != NULL)
			foe_says(sc, f, (enum cm_message)sim_below(s, CM_MESSAGES));
		break;
	}
}

/* --- receiving --- */

static void
check_rej(struct cm_script *sc, const struct cm_msg *m)
{
	uint16_t want = TID_REASON(m->tid);

	if (want != 0 && m->rej.reason != want && m->rej.reason != CM_REJ_NO_RESOURCES)
		sim_fail(sc->sim, "a REQ is rejected with reason %u (%s), not %u (%s)",
			m->rej.reason, cm_reason_name(m->rej.reason), want, cm_reason_name(want));
}

static void
on_req(struct cm_script *sc, const struct cm_msg *m, unsigned int from)
{
	static const enum cm_message answers[] = { CM_REP, CM_REP, CM_REP, CM_MRA, CM_MRA, CM_REJ,
		CM_SIDR_REP };
	struct cm_foe *f = NULL;

	for (unsigned int i = 0; i < sc->num_foes && f == NULL; i++)
		if (sc->foes[i].theirs == m->local_id)
			f = &sc->foes[i];
	if (f == NULL)
		f = foe_new(sc, from);
	f->first = *m;
	f->first.private_data = NULL;
	f->theirs = m->local_id;
	f->their_qpn = m->req.qpn;
	foe_says(sc, f, answers[sim_below(sc->sim, 7)]);
}

static void
on_rep(struct cm_script *sc, struct cm_foe *f, const struct cm_msg *m)
{
	static const enum cm_message answers[] = { CM_RTU, CM_RTU, CM_RTU, CM_MRA, CM_MRA, CM_REJ,
		CM_DREQ };

	f->theirs = m->local_id;
	f->their_qpn = m->rep.qpn;
	foe_says(sc, f, answers[sim_below(sc->sim, 7)]);
}

static void
on_message(struct cm_script *sc, struct cm_foe *f, const struct cm_msg *m)
{
	static const enum cm_message instead[] = { CM_REQ, CM_REP, CM_RTU, CM_REJ, CM_DREQ };
	struct sim *s = sc->sim;

	sc->last_foe = (unsigned int)(f - sc->foes);
	if (m->type == CM_REP) {
		on_rep(sc, f, m);
	} else if (m->type == CM_MRA) {
		f->theirs = m->local_id;
	} else if (m->type == CM_DREQ && sim_below(s, 2)) {
		foe_says(sc, f, instead[sim_below(s, 5)]);
	} else if ((m->type == CM_DREQ || m->type == CM_LAP) && sim_below(s, 2)) {
		struct cm_msg a = {
			.type = m->type == CM_DREQ ? CM_DREP : CM_APR,
			.tid = m->tid,
			.local_id = m->remote_id,
			.remote_id = m->local_id,
		};

		cm_hostile_say(sc, f->node, &a);
	}
}

enum verdict
cm_hostile_receive(struct sim_node *n, const struct packet *pkt)
{
	struct cm_script *sc = n->sim->guest_arg;
	uint8_t mad[MAD_LEN];
	enum verdict why;
	struct cm_msg m;

	if (!wire_crc_ok(pkt, &why))
		return why;
	if (!cm_is_message(pkt))
		return VERDICT_QPN_UNKNOWN;
	memcpy(mad, pkt->payload, MAD_LEN);
	mad[MAD_OFF_CLASS_VERSION] = CM_CLASS_VERSION;
	if (cm_msg_decode(mad, &m) != 0)
		return VERDICT_MAD_UNMATCHED;
	if (m.type == CM_REJ)
		check_rej(sc, &m);
	if (!sc->dialog)
		return VERDICT_DATAGRAM;
	if (m.type == CM_REQ) {
		on_req(sc, &m, pkt->smac[5]);
		return VERDICT_DATAGRAM;
	}
	for (unsigned int i = 0; i < sc->num_foes; i++)
		if (sc->foes[i].id == m.remote_id)
			on_message(sc, &sc->foes[i], &m);
	return VERDICT_DATAGRAM;
}

/* --- the flood --- */

void
cm_hostile_flood(struct cm_script *sc)
{
	struct envelope e = { .to = 0, .class_version = CM_CLASS_VERSION };
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];
	struct cm_msg m;

	for (unsigned int i = 0; i < sc->flood_burst && sc->flood_left > 0; i++, sc->flood_left--) {
		e.to = sim_below(s, sc->honest);
		good_req(sc, e.to, &m);
		m.req.ca_guid = sim_rand(s);
		if (sc->flood_spoofs) {
			e.sgid = m.req.primary.local_gid;
			e.sgid.raw[13] = (uint8_t)sim_rand(s);
			e.sgid.raw[15] = (uint8_t)(64 + sim_below(s, 128));
			e.slid = (uint16_t)(100 + sim_below(s, 1000));
			m.req.primary.local_gid = e.sgid;
			m.req.primary.local_lid = sc->encap == ENCAP_IB ? e.slid : 0xFFFF;
		}
		cm_msg_encode(&m, mad);
		cm_hostile_send_mad(sc, &e, mad);
	}
}
