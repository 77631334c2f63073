/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the simulation's SA and client with MADs. The input is a list of records {flags, what,
 * pause, length / 4, bytes of the MAD}; each becomes a frame with valid addresses and ICRC. At the
 * end every session has ended, and all memory and versions are freed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "sa_sim.h"
#include "../wire/build.h"
#include "wire/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_TO_CLIENT 0x01 /* to the client; else to the SA */
#define RECORD_STRANGER  0x02 /* from a third address; else from the other side's */
#define RECORD_KEEP_TID  0x04 /* the TID is that of the bytes; else of a present session */
#define RECORD_REPLAY    0x08 /* the bytes change the last MAD that the other side sent */
#define RECORD_ASK       0x10 /* the client sends a request first, chosen by .what */
#define RECORD_HEADER    0x20 /* set valid base version and class */
#define RECORD_DATABASE  0x40 /* the operator changes a record first */
#define RECORD_LENGTH    0x80 /* send only the given bytes instead of 256 */

static uint8_t last_mad[SIM_NODES][MAD_LEN];

static void
fuzz_mad_remember(struct sim *s)
{
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct packet pkt = { 0 };
		enum verdict why;

		if (s->node[i].last_len > 0 &&
			sim_parse(s->node[i].last_frame, s->node[i].last_len, &pkt, &why) &&
			pkt.payload_len == MAD_LEN)
			memcpy(last_mad[i], pkt.payload, MAD_LEN);
	}
}

/* Set the TID of one of the receiver's sessions. */
static void
fuzz_mad_aim(struct sa_script *sc, unsigned int to, uint8_t *mad, uint8_t what)
{
	struct sa_side *side = &sc->side[to];
	struct mad_session_info info;
	unsigned int n = what % 8;

	for (unsigned int i = 0; i < side->lcores; i++) {
		uint32_t cursor = 0;

		while (mad_session_next(side->lcore[i].mad, &cursor, sc->sim->now, &info)) {
			put_be64(mad + MAD_OFF_TID, info.tid);
			if (n-- == 0)
				return;
		}
	}
}

static void
fuzz_mad_send_record(struct sa_script *sc, uint8_t flags, uint8_t what, const uint8_t *bytes,
	uint32_t len)
{
	unsigned int to = flags & RECORD_TO_CLIENT ? SA_CLIENT : SA_SERVER;
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = MAD_QKEY,
	};
	uint8_t frame[PATH_HEADER_MAX + 80 + 4 * MAD_LEN + PATH_TRAILER_MAX] = { 0 };
	uint8_t mad[4 * MAD_LEN] = { 0 }, *bth = frame + PATH_HEADER_MAX;
	struct mad_peer p = sa_peer(sc, !to);
	struct path path;
	uint32_t hlen;

	if (flags & RECORD_REPLAY)
		memcpy(mad, last_mad[!to], MAD_LEN);
	memcpy(mad, bytes, len);
	if (flags & RECORD_HEADER) {
		mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
		mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
		mad[MAD_OFF_CLASS_VERSION] = 1 + (mad[MAD_OFF_CLASS_VERSION] & 1);
	}
	if (!(flags & RECORD_KEEP_TID))
		fuzz_mad_aim(sc, to, mad, what);
	if (flags & RECORD_STRANGER)
		p.av.sgid.raw[15] = 0x66;
	if (!(flags & RECORD_LENGTH))
		len = MAD_LEN;
	h.pad = wire_pad(len);
	path_init(&path, &p.av, 1, 1);
	hlen = wire_build(bth, &h);
	memcpy(bth + hlen, mad, len);
	len = path_finish(&path, bth, hlen + len + h.pad, 1);
	sim_deliver(sc->sim, &sc->sim->node[to], sc->sim->now + 100, bth - path.header_len, len);
}

static void
client_asks(struct sa_script *sc, uint8_t what)
{
	struct sa_flow *f = sa_flow_create(sc, (enum sa_ask)(what % SA_ASK_KINDS));

	if (!sa_flow_ask(f)) {
		sa_flow_free(f);
		return;
	}
	f->next = sc->flows;
	sc->flows = f;
}

static void
operator_changes(struct sa_script *sc, uint8_t what)
{
	struct sa_change c = {
		.type = sc->main,
		.remove = what & 1,
		.rid = sa_nth_rid(sc->main, 1, what % 40),
	};

	sa_random_record(sc->sim, sc->main, c.rid, c.rec);
	sa_change(sc->side[SA_SERVER].sa, &c, 1, NULL);
}

static struct sa_script *
fuzz_mad_start(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL, 1);

	sc->planned = 0;
	sc->lenient = true;
	sc->encap = ENCAP_ROCEV2_IPV4;
	sc->main = sa_record_type(SA_NODE);
	sc->main_records = 40;
	sc->batch_max = 20;
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct sa_side *side = &sc->side[i];

		side->watched = false;
		side->lcores = 1;
		side->trust = SA_TRUST_ALL;
		side->limits.max_sessions = 24;
		side->limits.max_sessions_per_peer = 16;
		side->limits.max_bytes = side->limits.max_bytes_per_peer = 64u << 10;
		side->limits.rmpp_total_ms = side->limits.keepalive_total_ms = 200;
		side->limits.resp_time = 8;
		side->port.subnet_timeout = 6;
		side->port.ib = false;
		side->port.gid[0].gid = sa_gid(sc, i);
		side->port.gid[0].type = GID_ROCEV2;
		side->max_versions = 4;
	}
	memset(last_mad, 0, sizeof(last_mad));
	sa_script_start(sc);
	return sc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct coverage coverage;
	struct sim *s = sim_create(size, &coverage, false);
	struct sa_script *sc = fuzz_mad_start(s);

	while (size >= 4 && !s->failed) {
		uint8_t flags = data[0], what = data[1];
		uint64_t pause = (uint64_t)data[2] * data[2] * 50;
		uint32_t len = 4u * data[3];

		data += 4;
		size -= 4;
		if (len > size)
			len = (uint32_t)size;
		if (flags & RECORD_DATABASE)
			operator_changes(sc, what);
		if (flags & RECORD_ASK)
			client_asks(sc, what);
		fuzz_mad_send_record(sc, flags, what, data, len);
		data += len;
		size -= len;
		sim_run(s, s->now + 2000 + pause, NULL);
		fuzz_mad_remember(s);
	}
	sa_script_finish(sc);
	script_end(s);
	if (s->failed) {
		fprintf(stderr, "%s\n", s->why);
		abort();
	}
	sim_destroy(s);
	return 0;
}
