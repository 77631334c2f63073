/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the simulation's native IB port and its agent with SMPs. The first byte is the port's
 * initial state; then follow records {flags, what, pause, length / 4, bytes of the MAD}, each of
 * which becomes a frame with valid CRCs. Everything that the port sends must be a valid answer or
 * Trap; PortState follows the sheet's table, and traps follow the model of trap_model.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "trap_sim.h"
#include "wire/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* the first byte */
#define PORT_ACTIVE  0x01
#define PORT_KEY     0x02
#define PORT_PROTECT 0x0C
#define PORT_LEASE   0x10
#define PORT_NO_SM   0x20
#define PORT_NO_LID  0x40

#define RECORD_HEADER    0x01 /* set valid base version, class and class version */
#define RECORD_DIRECTED  0x02 /* with _HEADER: a directed route of .what hops that ends here */
#define RECORD_KEY       0x04 /* set the port's M_Key */
#define RECORD_PORT_INFO 0x08 /* the data are a difference from the present PortInfo */
#define RECORD_REPRESS   0x10 /* the data are a difference from one of the agent's notices */
#define RECORD_CAUSE     0x20 /* an event at the port precedes, chosen by .what */
#define RECORD_FRAME     0x40 /* the first bytes change headers below the MAD */
#define RECORD_LENGTH    0x80 /* send only the given bytes instead of 256 */

#define HEADER_BYTES 8

/* --- events at the port --- */

static void
happen(struct trap_script *sc, uint8_t what)
{
	struct sma_bad_key k = { .qkey = what & 0x10, .key = what };
	uint64_t now = sc->sim->now;
	struct sma *s = sc->ca.sma;
	uint32_t id;

	switch (what & 7) {
	case 0:
		sma_link(s, 0, false, now);
		break;
	case 1:
		sma_link(s, 0, true, now);
		break;
	case 2:
		sma_trap_send(s, 0, 129 + (what >> 3) % 3, NULL, now, &id, NULL);
		break;
	case 3:
		sma_trap_send(s, 0, 144 + (what >> 3) % 2, NULL, now, &id, NULL);
		break;
	case 4:
		sc->totals.link_errors += what;
		sc->totals.pkey_violations += what;
		sc->totals.qkey_violations += 0x1001;
		sma_port_totals(s, 0, &sc->totals, now);
		break;
	case 5:
		sma_read(s, 0, (uint16_t)(0x10 + (what >> 3)), what, (uint8_t[SMA_DATA_LEN]){ 0 });
		break;
	default:
		sma_bad_key(s, 0, &k, now);
		break;
	}
	trap_model_look(sc);
}

/* --- packets --- */

static void
put_right(uint8_t flags, uint8_t what, uint8_t *mad)
{
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = flags & RECORD_DIRECTED ? MAD_CLASS_SUBN_ROUTED : MAD_CLASS_SUBN_LID;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] &= 0x87;
	if (flags & RECORD_DIRECTED) {
		mad[MAD_OFF_STATUS] &= 0x7F;
		mad[SMP_OFF_HOP_POINTER] = mad[SMP_OFF_HOP_COUNT] = what & 0x3F;
		put_be16(mad + SMP_OFF_DR_DLID, 0xFFFF);
	}
}

static void
add(uint8_t *data, const uint8_t *to)
{
	for (unsigned int i = 0; i < SMA_DATA_LEN; i++)
		data[i] ^= to[i];
}

static void
put_notice(struct trap_script *sc, uint8_t what, uint8_t *data)
{
	struct sma_trap_info info = { 0 };
	uint32_t cursor = 0;

	for (what %= SMA_TRAPS_MAX; sma_trap_next(sc->ca.sma, &cursor, sc->sim->now, &info); what--)
		if (what == 0)
			break;
	add(data, info.notice);
}

static void
put_headers(struct smi_frame *f, const uint8_t *bytes)
{
	static const uint8_t some[] = { UD_SEND_ONLY, 0x65, 0x00, 0x04, 0x0A, 0x24, 0x81, 0x0C };

	f->headers.opcode = some[bytes[0] & 7];
	f->headers.dest_qpn = bytes[0] >> 3 & 3;
	f->headers.src_qpn = bytes[1] & 3;
	f->grh = bytes[1] & 0x80;
	f->headers.qkey = bytes[2];
	f->headers.pkey = (uint16_t)(bytes[3] << 8 | bytes[2]);
	f->slid = get_be16(bytes + 4);
	f->dlid = get_be16(bytes + 6);
}

static void
fuzz_smp_send_record(struct trap_script *sc, uint8_t flags, uint8_t what, const uint8_t *bytes,
	uint32_t len)
{
	uint8_t mad[4 * MAD_LEN] = { 0 }, frame[SIM_FRAME_MAX] = { 0 };
	const uint8_t *info = smi_port_info(&sc->ca);
	struct smi_frame f = smi_frame_default;

	f.dlid = PORT_LID_PERMISSIVE;
	if (flags & RECORD_FRAME && len >= HEADER_BYTES) {
		put_headers(&f, bytes);
		bytes += HEADER_BYTES;
		len -= HEADER_BYTES;
	}
	memcpy(mad, bytes, len);
	if (flags & RECORD_PORT_INFO)
		add(mad + SMP_OFF_DATA, info);
	if (flags & RECORD_REPRESS)
		put_notice(sc, what, mad + SMP_OFF_DATA);
	if (flags & RECORD_KEY)
		memcpy(mad + SMP_OFF_M_KEY, info, 8);
	if (flags & RECORD_HEADER)
		put_right(flags, what, mad);
	f.len = flags & RECORD_LENGTH ? len & ~3u : MAD_LEN;
	len = smi_build(&f, mad, frame);
	sim_deliver(sc->sim, sc->ca.node, sc->sim->now + 100, frame, len);
}

/* --- on the nodes --- */

static enum verdict
fuzz_smp_receive(struct sim_node *n, const struct packet *pkt)
{
	struct trap_script *sc = n->sim->guest_arg;
	enum verdict v = smi_side_receive(&sc->ca, pkt);

	if (v == VERDICT_DATAGRAM && pkt->payload[MAD_OFF_METHOD] == MAD_TRAP_REPRESS)
		trap_model_repress(sc, pkt->payload);
	trap_model_look(sc);
	return v;
}

static bool
fuzz_smp_run(struct sim_node *n)
{
	struct trap_script *sc = n->sim->guest_arg;
	bool busy = false;

	if (n->id == SMI_CA) {
		busy = smi_side_run(&sc->ca);
		trap_model_look(sc);
	}
	return busy;
}

static uint64_t
fuzz_smp_next(const struct sim_node *n)
{
	struct trap_script *sc = n->sim->guest_arg;

	return n->id == SMI_CA ? smi_side_next(&sc->ca) : UINT64_MAX;
}

static void
fuzz_smp_sent(struct sim_node *from, const struct packet *pkt, bool lost)
{
	struct trap_script *sc = from->sim->guest_arg;

	smi_check_sent(&sc->ca, pkt);
	if (pkt->payload[MAD_OFF_METHOD] == MAD_TRAP)
		trap_model_sent(sc, pkt, lost);
}

static void
fuzz_smp_end(struct sim *s)
{
	struct trap_script *sc = s->guest_arg;

	smi_side_stop(&sc->ca);
	free(sc);
}

static const struct sim_guest guest = { fuzz_smp_receive, fuzz_smp_run, fuzz_smp_next,
	fuzz_smp_sent, fuzz_smp_end };

static struct trap_script *
fuzz_smp_start(struct sim *s, uint8_t first)
{
	struct trap_script *sc = calloc(1, sizeof(*sc));
	struct sma_port_config port = {
		.guid = SMI_GUID,
		.active = first & PORT_ACTIVE,
		.lid = first & PORT_NO_LID ? 0 : SMI_CA_LID,
		.sm_lid = first & PORT_NO_SM ? 0 : SMI_SM_LID,
		.m_key = first & PORT_KEY ? TRAP_M_KEY : 0,
		.m_key_protect = (first & PORT_PROTECT) >> 2,
		.m_key_lease = first & PORT_LEASE ? 1 : 0,
	};

	if (sc == NULL)
		abort();
	script_create(s);
	script_nodes(s);
	s->node[SMI_CA].sink_empty = 1000;
	sc->sim = s;
	sc->limits = (struct sma_limits){
		.trap_interval_ms = 1,
		.trap_retries = 3,
		.trap_rate = 1000,
		.trap_burst = 20,
	};
	s->guest_arg = sc;
	smi_side_start(&sc->ca, s, &port, &sc->limits);
	s->guest = &guest;
	trap_model_look(sc);
	return sc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct coverage coverage;
	struct sim *s = sim_create(size, &coverage, false);
	struct trap_script *sc = fuzz_smp_start(s, size > 0 ? data[0] : 0);

	for (data++; size > 4 && !s->failed && sc->num_traps < TRAPS_MAX - 64;) {
		uint8_t flags = data[0], what = data[1];
		uint64_t pause = (uint64_t)data[2] * data[2] * data[2] * 50; /* up to 0.8 s */
		uint32_t len = 4u * data[3];

		data += 4;
		size -= 4;
		if (len > size - 1)
			len = (uint32_t)size - 1;
		if (flags & RECORD_CAUSE)
			happen(sc, what);
		fuzz_smp_send_record(sc, flags, what, data, len);
		data += len;
		size -= len;
		sim_run(s, s->now + 2000 + pause, NULL);
	}
	script_end(s);
	if (s->failed) {
		fprintf(stderr, "%s\n", s->why);
		abort();
	}
	sim_destroy(s);
	return 0;
}
