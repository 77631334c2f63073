/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A hostile peer at an address of its own: it opens transfers that it never finishes, sends wrong
 * lengths, acknowledges segments never sent, and answers queries with broken streams. Well-behaved
 * nodes must not be affected.
 */

#include <string.h>

#include "sa_sim.h"
#include "../wire/build.h"
#include "wire/bytes.h"

#define RING 16

static union gid
target_gid(const struct sa_script *sc, unsigned int to)
{
	return sa_gid(sc, to);
}

static void
sa_hostile_deliver(struct sa_script *sc, unsigned int to, struct wire_headers *h,
	const uint8_t *mad, uint32_t len)
{
	struct sim *s = sc->sim;
	uint8_t frame[PATH_HEADER_MAX + 80 + 2 * MAD_LEN + PATH_TRAILER_MAX] = { 0 };
	uint8_t *bth = frame + PATH_HEADER_MAX;
	struct av av = {
		.encap = sc->encap,
		.sgid = sc->hostile_gid,
		.dgid = target_gid(sc, to),
		.slid = sc->hostile_lid,
		.dlid = SA_LID(to),
		.grh = sc->grh,
		.vlan = PATH_NO_VLAN,
		.smac = { 2, 0, 0, 0, 0, 0x66 },
	};
	struct path path;
	uint32_t hlen;

	h->pad = wire_pad(len);
	path_init(&path, &av, h->src_qpn, h->dest_qpn);
	hlen = wire_build(bth, h);
	memcpy(bth + hlen, mad, len);
	len = path_finish(&path, bth, hlen + len + h->pad, 1);
	sim_deliver(s, &s->node[to], s->now + 1 + sim_below(s, 3000), bth - path.header_len, len);
}

static void
sa_hostile_send_mad(struct sa_script *sc, unsigned int to, const uint8_t *mad)
{
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = MAD_QKEY,
	};

	sa_hostile_deliver(sc, to, &h, mad, MAD_LEN);
}

static uint64_t
own_tid(struct sa_script *sc, bool fresh)
{
	uint64_t *t = &sc->hostile_tid[sim_below(sc->sim, RING)];

	if (fresh || *t == 0)
		*t = sim_rand(sc->sim);
	return *t;
}

static void
sa_hostile_header(struct sa_script *sc, uint8_t *mad, uint8_t version, uint8_t method, bool fresh)
{
	static const uint16_t attributes[] = { SA_NODE, SA_PORT_INFO, SA_LINK, SA_PKEY_TABLE,
		SA_SERVICE, SA_MCMEMBER, SA_PATH, SA_CLASS_PORT_INFO, SA_INFORM_INFO, SA_VLARB };
	struct sim *s = sc->sim;
	uint16_t attribute = attributes[sim_below(s, 10)];

	memset(mad, 0, MAD_LEN);
	if (sim_below(s, 2))
		attribute = sc->main->attribute;
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	mad[MAD_OFF_CLASS_VERSION] = version;
	mad[MAD_OFF_METHOD] = method;
	put_be64(mad + MAD_OFF_TID, own_tid(sc, fresh));
	put_be16(mad + MAD_OFF_ATTRIBUTE, attribute);
	/* it knows the SM_Key, so the key does not protect the SA */
	put_be64(mad + (version == 1 ? SA1_OFF_SM_KEY : SA2_OFF_SM_KEY),
		sim_below(s, 4)           ? SA_SM_KEY
			: sim_below(s, 2) ? 0
					  : sim_rand(s));
}

static uint32_t
some_number(struct sim *s)
{
	switch (sim_below(s, 6)) {
	case 0:
		return (uint32_t)sim_rand(s);
	case 1:
		return 0xFFFFFFFFu - sim_below(s, 3);
	case 2:
		return 0;
	case 3:
		return 60 + sim_below(s, 10);
	default:
		return sim_below(s, 5);
	}
}

/* --- as a requester --- */

/* Send only the first segment of a Config. The server must not keep it for ever. */
static void
first_only(struct sa_script *sc)
{
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];

	if (sim_below(s, 3)) {
		sa_hostile_header(sc, mad, 1, SA1_CONFIG, true);
		put_be32(mad + SA1_OFF_SEGMENT, 1);
		put_be32(mad + SA1_OFF_PAYLOAD_LEN, sim_below(s, 2) ? some_number(s) : 19200);
		mad[SA1_OFF_FRAGMENT] = SA1_FIRST | (sim_below(s, 8) ? 0 : SA1_LAST);
		mad[SA1_OFF_EDIT] = (uint8_t)sim_below(s, 5);
	} else {
		sa_hostile_header(sc, mad, 2, SA2_GET_MULTI, true);
		mad[RMPP_OFF_VERSION] = 1;
		mad[RMPP_OFF_TYPE] = RMPP_DATA;
		mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE | RMPP_FIRST;
		put_be32(mad + RMPP_OFF_SEGMENT, 1);
		put_be32(mad + RMPP_OFF_LENGTH, some_number(s));
	}
	sa_hostile_send_mad(sc, SA_SERVER, mad);
}

/* Send a request and ignore the answer. */
static void
sa_hostile_ask(struct sa_script *sc)
{
	static const uint8_t methods[] = { SA_GET_TABLE, SA_GET_TABLE, SA1_GET_BULK, MAD_GET,
		MAD_SET, SA1_INFORM, SA2_DELETE, SA2_GET_MULTI, MAD_REPORT, MAD_SEND, MAD_TRAP,
		0x7F };
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN], version = (uint8_t)(1 + sim_below(s, 2));

	sa_hostile_header(sc, mad, version, methods[sim_below(s, sizeof(methods))], true);
	if (version == 1) {
		put_be16(mad + SA1_OFF_WINDOW, (uint16_t)some_number(s));
		if (sim_below(s, 2))
			put_be32(mad + SA1_OFF_END_RID, 0xFFFFFFFFu);
		else
			put_be32(mad + MAD_OFF_MODIFIER, some_number(s));
		mad[SA1_OFF_EDIT] = (uint8_t)sim_below(s, 5);
	} else {
		put_be64(mad + SA2_OFF_MASK, sim_below(s, 2) ? 0 : UINT64_C(1) << sim_below(s, 64));
	}
	sa_hostile_send_mad(sc, SA_SERVER, mad);
}

/* Send valid or invalid Acks, Resends, KeepAlives, STOPs and ABORTs of its own transactions. */
static void
sa_hostile_control(struct sa_script *sc)
{
	static const uint8_t flags[] = { SA1_ACK, SA1_RESEND, SA1_KEEPALIVE, SA1_LAST, SA1_FIRST, 0,
		SA1_ACK | SA1_RESEND };
	static const uint8_t statuses[] = { 0, 0, 0, 1, 118, 126, 127, 200 };
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];

	if (sim_below(s, 2)) {
		sa_hostile_header(sc, mad, 1, sim_below(s, 2) ? SA_GET_TABLE : SA1_CONFIG, false);
		mad[SA1_OFF_FRAGMENT] = flags[sim_below(s, sizeof(flags))];
		put_be32(mad + SA1_OFF_SEGMENT, some_number(s));
		put_be16(mad + SA1_OFF_WINDOW, (uint16_t)some_number(s));
		put_be32(mad + SA1_OFF_PAYLOAD_LEN, some_number(s));
	} else {
		sa_hostile_header(sc, mad, 2, SA_GET_TABLE, false);
		mad[RMPP_OFF_VERSION] = sim_below(s, 8) ? 1 : (uint8_t)sim_rand(s);
		mad[RMPP_OFF_TYPE] =
			sim_below(s, 4) ? (uint8_t)(2 + sim_below(s, 3)) : (uint8_t)sim_rand(s);
		mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE;
		mad[RMPP_OFF_STATUS] = statuses[sim_below(s, sizeof(statuses))];
		put_be32(mad + RMPP_OFF_SEGMENT, some_number(s));
		put_be32(mad + RMPP_OFF_LENGTH, some_number(s));
	}
	sa_hostile_send_mad(sc, SA_SERVER, mad);
}

/* Send a second segment that cannot follow the first one, with a wrong total length. */
static void
sa_hostile_lie(struct sa_script *sc)
{
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];

	sa_hostile_header(sc, mad, 1, SA1_CONFIG, true);
	put_be32(mad + SA1_OFF_SEGMENT, 1);
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, sim_below(s, 2) ? 19200 : sim_below(s, 200));
	mad[SA1_OFF_FRAGMENT] = SA1_FIRST;
	sa_hostile_send_mad(sc, SA_SERVER, mad);
	put_be32(mad + SA1_OFF_SEGMENT, 2);
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, some_number(s));
	mad[SA1_OFF_FRAGMENT] = SA1_LAST;
	sa_hostile_send_mad(sc, SA_SERVER, mad);
}

/* Request a table and acknowledge more segments than it has. */
static void
acknowledge_the_future(struct sa_script *sc)
{
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];

	sa_hostile_header(sc, mad, 2, SA_GET_TABLE, true);
	put_be16(mad + MAD_OFF_ATTRIBUTE, sc->main->attribute);
	sa_hostile_send_mad(sc, SA_SERVER, mad);
	mad[RMPP_OFF_VERSION] = 1;
	mad[RMPP_OFF_TYPE] = RMPP_ACK;
	mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE;
	put_be32(mad + RMPP_OFF_SEGMENT, 1000000 + sim_below(s, 1000));
	put_be32(mad + RMPP_OFF_LENGTH, 0x7FFFFFFF);
	sa_hostile_send_mad(sc, SA_SERVER, mad);
}

/* --- replayed and random packets --- */

/* Replay an overheard packet from its own address, perhaps with a changed field. */
static void
sa_hostile_replay(struct sa_script *sc)
{
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];

	memcpy(mad, sc->hostile_mad[sim_below(s, RING)], MAD_LEN);
	for (unsigned int i = sim_below(s, 4); i > 0; i--)
		mad[sim_below(s, sim_below(s, 2) ? 64 : MAD_LEN)] = (uint8_t)sim_rand(s);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	sa_hostile_send_mad(sc, sim_below(s, 2), mad);
}

static void
garbage(struct sa_script *sc)
{
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = MAD_QKEY,
	};
	struct sim *s = sc->sim;
	uint8_t mad[2 * MAD_LEN];
	uint32_t len = MAD_LEN;

	for (unsigned int i = 0; i < sizeof(mad); i++)
		mad[i] = (uint8_t)sim_rand(s);
	mad[MAD_OFF_BASE_VERSION] = sim_below(s, 4) ? 1 : mad[0];
	if (sim_below(s, 2)) {
		mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
		mad[MAD_OFF_CLASS_VERSION] = (uint8_t)sim_below(s, 4);
	}
	switch (sim_below(s, 6)) {
	case 0:
		len = sim_below(s, 2 * MAD_LEN);
		break;
	case 1:
		h.qkey = sim_below(s, 2) ? 0 : (uint32_t)sim_rand(s);
		break;
	case 2:
		h.pkey = (uint16_t)sim_rand(s);
		break;
	case 3:
		h.src_qpn = (uint32_t)sim_rand(s) & 0xFFFFFF;
		break;
	default:
		break;
	}
	sa_hostile_deliver(sc, sim_below(s, 2), &h, mad, len);
}

/* --- as a responder --- */

static void
broken_answer_v1(struct sa_script *sc, uint8_t *mad)
{
	struct sim *s = sc->sim;

	put_be32(mad + SA1_OFF_SEGMENT, sim_below(s, 2) ? 1 : some_number(s));
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, some_number(s));
	mad[SA1_OFF_FRAGMENT] = sim_below(s, 3) ? SA1_FIRST
		: sim_below(s, 2)               ? SA1_KEEPALIVE
						: (uint8_t)sim_rand(s);
	if (sim_below(s, 8) == 0)
		put_be16(mad + MAD_OFF_STATUS, (uint16_t)(sim_below(s, 9) << 8));
}

static void
broken_answer_v2(struct sa_script *sc, uint8_t *mad)
{
	struct sim *s = sc->sim;

	if (sim_below(s, 3) == 0) { /* a complete answer with a wrong length */
		mad[RMPP_OFF_VERSION] = 1;
		mad[RMPP_OFF_TYPE] = RMPP_DATA;
		mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST;
		mad[RMPP_OFF_STATUS] = 0;
		put_be32(mad + RMPP_OFF_SEGMENT, 1);
		put_be32(mad + RMPP_OFF_LENGTH, sim_below(s, 2) ? sim_below(s, 20) : 221);
		return;
	}
	if (sim_below(s, 4) == 0) { /* it gives up with an ABORT */
		mad[RMPP_OFF_VERSION] = 1;
		mad[RMPP_OFF_TYPE] = RMPP_ABORT;
		mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE;
		mad[RMPP_OFF_STATUS] = (uint8_t)(RMPP_STATUS_T2L + sim_below(s, 10));
		return;
	}
	mad[RMPP_OFF_VERSION] = sim_below(s, 8) ? 1 : 2;
	mad[RMPP_OFF_TYPE] = sim_below(s, 4) ? RMPP_DATA : (uint8_t)sim_below(s, 7);
	mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE | (sim_below(s, 3) ? RMPP_FIRST : 0) |
		(sim_below(s, 3) ? 0 : RMPP_LAST);
	mad[RMPP_OFF_STATUS] = sim_below(s, 6) ? 0 : (uint8_t)sim_rand(s);
	put_be32(mad + RMPP_OFF_SEGMENT, sim_below(s, 2) ? 1 : some_number(s));
	put_be32(mad + RMPP_OFF_LENGTH, sim_below(s, 2) ? 220 : some_number(s));
}

/* Answer a node's request with broken packets. */
static void
sa_hostile_answer(struct sa_script *sc, unsigned int to, const uint8_t *request)
{
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];
	bool control = request[MAD_OFF_CLASS_VERSION] == 1 ? request[SA1_OFF_FRAGMENT] != 0
							   : request[RMPP_OFF_FLAGS] & RMPP_ACTIVE;

	memcpy(mad, request, MAD_LEN);
	mad[MAD_OFF_METHOD] = request[MAD_OFF_METHOD] ^ MAD_RESPONSE;
	/* to control packets it sends fewer answers than it receives, or they would never end */
	for (unsigned int i = control ? sim_below(s, 4) == 0 : 1 + sim_below(s, 4); i > 0; i--) {
		if (mad[MAD_OFF_CLASS_VERSION] == 1)
			broken_answer_v1(sc, mad);
		else
			broken_answer_v2(sc, mad);
		sa_hostile_send_mad(sc, to, mad);
	}
}

bool
sa_hostile_takes(struct sa_script *sc, const struct packet *pkt)
{
	bool ours = pkt->encap == ENCAP_IB ? pkt->dlid == sc->hostile_lid
					   : gid_equal(&pkt->dgid, &sc->hostile_gid);

	if (!ours || sc->hostile_lid == 0)
		return false;
	if (pkt->payload_len == MAD_LEN) {
		unsigned int from = pkt->encap == ENCAP_IB ? (unsigned int)pkt->slid - SA_LID(0)
							   : pkt->sgid.raw[15] - 1u;

		memcpy(sc->hostile_mad[sc->hostile_seen++ % RING], pkt->payload, MAD_LEN);
		if (from == SA_CLIENT && !(pkt->payload[MAD_OFF_METHOD] & MAD_RESPONSE) &&
			sim_below(sc->sim, 8) != 0)
			sa_hostile_answer(sc, from, pkt->payload);
	}
	return true;
}

static void
attack(struct sim *s, void *arg)
{
	static void (*const attacks[])(struct sa_script * sc) = { first_only, sa_hostile_ask,
		sa_hostile_control, sa_hostile_control, sa_hostile_replay, garbage, sa_hostile_lie,
		acknowledge_the_future };
	struct sa_script *sc = s->sa;

	(void)arg;
	attacks[sim_below(s, sizeof(attacks) / sizeof(attacks[0]))](sc);
	if (--sc->hostile > 0)
		sim_at(s, s->now + 1 + sim_below(s, (uint32_t)sc->hostile_step), attack, NULL);
}

void
sa_hostile_start(struct sa_script *sc)
{
	sc->hostile_lid = 0x66;
	sc->hostile_gid = sa_gid(sc, SA_CLIENT);
	sc->hostile_gid.raw[15] = 0x66;
	for (unsigned int i = 0; i < RING; i++)
		sa_hostile_header(sc, sc->hostile_mad[i], 1, MAD_GET, true);
	sim_at(sc->sim, sc->sim->now + 1, attack, NULL);
}
