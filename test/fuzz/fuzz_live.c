/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the simulation's two liveness agents with MADs. The input is a list of records {flags, what,
 * pause, length / 4, bytes of the MAD}; each becomes a frame with valid addresses and ICRC. At the
 * end every session has ended and all memory is freed. A client checks any answer without reading
 * beyond its end.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "live_sim.h"
#include "../wire/build.h"
#include "wire/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_TO_ASKER 0x01 /* to the requester; else to the responder */
#define RECORD_STRANGER 0x02 /* from a third address */
#define RECORD_KEEP_TID 0x04 /* the TID is that of the bytes; else of a present session */
#define RECORD_REPLAY   0x08 /* the bytes change the last MAD that the other side sent */
#define RECORD_ASK      0x10 /* a node sends a request first, chosen by .what */
#define RECORD_HEADER   0x20 /* set valid versions, class and OUI */
#define RECORD_CLOCK    0x40 /* set the clock first */
#define RECORD_LENGTH   0x80 /* send only the given bytes instead of 256 */

static uint8_t last_mad[SIM_NODES][MAD_LEN];

static void
fuzz_live_remember(struct sim *s)
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
fuzz_live_aim(struct live_script *ls, unsigned int to, uint8_t *mad, uint8_t what)
{
	struct mad_session_info info;
	unsigned int n = what % 8;
	uint32_t cursor = 0;

	while (mad_session_next(ls->node[to].mad, &cursor, ls->sim->now, &info)) {
		put_be64(mad + MAD_OFF_TID, info.tid);
		if (n-- == 0)
			return;
	}
}

static void
put_header(uint8_t *mad, uint8_t what)
{
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = (uint8_t)(LIVE_CLASS_IBPING + what % 3);
	mad[MAD_OFF_CLASS_VERSION] = LIVE_CLASS_VERSION;
	put_be32(mad + VENDOR_OFF_OUI - 1, LIVE_OUI);
}

static void
fuzz_live_send_record(struct live_script *ls, uint8_t flags, uint8_t what, const uint8_t *bytes,
	uint32_t len)
{
	unsigned int to = flags & RECORD_TO_ASKER ? 1 : 0;
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = MAD_QKEY,
	};
	uint8_t frame[PATH_HEADER_MAX + 80 + 4 * MAD_LEN + PATH_TRAILER_MAX] = { 0 };
	uint8_t mad[4 * MAD_LEN] = { 0 }, *bth = frame + PATH_HEADER_MAX;
	struct mad_peer p = live_peer(ls, !to);
	struct path path;
	uint32_t hlen;

	if (flags & RECORD_REPLAY)
		memcpy(mad, last_mad[!to], MAD_LEN);
	memcpy(mad, bytes, len);
	if (flags & RECORD_HEADER)
		put_header(mad, what);
	if (!(flags & RECORD_KEEP_TID))
		fuzz_live_aim(ls, to, mad, what);
	if (flags & RECORD_STRANGER)
		p.av.sgid.raw[15] = 0x66;
	if (!(flags & RECORD_LENGTH))
		len = MAD_LEN;
	h.pad = wire_pad(len);
	path_init(&path, &p.av, 1, 1);
	hlen = wire_build(bth, &h);
	memcpy(bth + hlen, mad, len);
	len = path_finish(&path, bth, hlen + len + h.pad, 1);
	sim_deliver(ls->sim, &ls->sim->node[to], ls->sim->now + 100, bth - path.header_len, len);
}

/* Check the record as an answer, with exactly its length. */
static void
fuzz_live_judge(uint8_t what, const uint8_t *bytes, uint32_t len)
{
	uint8_t *mad = malloc(MAD_LEN), *data = malloc(len + 1), sent[64] = { 0 };
	const struct live_request req = {
		.mode = (enum live_mode)(what % 7),
		.data = sent,
		.len = what % 64,
	};
	struct live_reply reply;

	if (mad == NULL || data == NULL)
		abort();
	live_build(&req, mad, NULL);
	mad[MAD_OFF_METHOD] = MAD_GET_RESP;
	memcpy(data, bytes, len);
	data = realloc(data,
		len == 0 ? 1 : len); /* exactly as long, so that ASan finds reads beyond */
	live_check(&req, mad, data, len, &reply);
	free(mad);
	free(data);
}

static struct live_script *
fuzz_live_start(struct sim *s)
{
	struct live_script *ls = live_script_create(s);

	ls->lenient = true;
	ls->encap = ENCAP_ROCEV2_IPV4;
	ls->num_cpus = 8;
	ls->clock = false;
	ls->mad_limits.max_sessions = ls->mad_limits.max_sessions_per_peer = 24;
	ls->mad_limits.max_bytes = ls->mad_limits.max_bytes_per_peer = 64u << 10;
	ls->mad_limits.rmpp_total_ms = ls->mad_limits.keepalive_total_ms = 200;
	ls->limits.max_echo = 4096;
	ls->limits.rate = 100000;
	ls->limits.burst = 16;
	memset(last_mad, 0, sizeof(last_mad));
	live_script_start(ls);
	return ls;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct coverage coverage;
	struct sim *s = sim_create(size, &coverage, false);
	struct live_script *ls = fuzz_live_start(s);

	while (size >= 4 && !s->failed) {
		uint8_t flags = data[0], what = data[1];
		uint64_t pause = (uint64_t)data[2] * data[2] * 50;
		uint32_t len = 4u * data[3];

		data += 4;
		size -= 4;
		if (len > size)
			len = (uint32_t)size;
		if (flags & RECORD_CLOCK)
			live_set_clock(ls->node[0].live, s->now, what * 400000u);
		if (flags & RECORD_ASK)
			live_script_ask(ls, 1, (enum live_mode)(what % 7));
		fuzz_live_judge(what, data, len);
		fuzz_live_send_record(ls, flags, what, data, len);
		data += len;
		size -= len;
		sim_run(s, s->now + 2000 + pause, NULL);
		fuzz_live_remember(s);
	}
	live_script_finish(ls);
	script_end(s);
	if (s->failed) {
		fprintf(stderr, "%s\n", s->why);
		abort();
	}
	sim_destroy(s);
	return 0;
}
