/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A scripted subnet manager: it configures the port, receives Traps and represses them, each in one
 * of several manners. All its packets may be lost.
 */

#include <string.h>

#include "trap_sim.h"
#include "wire/bytes.h"

/* of PortInfo (smp-sma 3) */
#define PI_LID            16
#define PI_SM_LID         18
#define PI_STATE          32
#define PI_PHYS_STATE     33
#define PI_SUBNET_TIMEOUT 51

enum manner {
	AT_ONCE,
	LATE,
	IGNORE,
	THIRD_TIME, /* represses after the third Trap */
	MISTAKEN, /* represses another trap first */
	NO_DETAILS, /* names number and type only */
	MANNERS
};

/* --- sending --- */

static void
send_frame(struct trap_script *sc, const struct smi_frame *f, const uint8_t *mad)
{
	uint8_t frame[SIM_FRAME_MAX];
	uint32_t len = smi_build(f, mad, frame);

	sim_network_send(&sc->sim->node[SMI_SM], frame, len);
}

static void
send_smp(struct trap_script *sc, const uint8_t *mad)
{
	struct smi_frame f = smi_frame_default;

	f.slid = sc->sm_lid;
	f.dlid = PORT_LID_PERMISSIVE; /* its present LID is not known */
	send_frame(sc, &f, mad);
}

static void
trap_sm_header(struct trap_script *sc, uint8_t mad[MAD_LEN], uint8_t method, uint16_t attribute)
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_LID;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = method;
	put_be64(mad + MAD_OFF_TID, sim_rand(sc->sim));
	put_be16(mad + MAD_OFF_ATTRIBUTE, attribute);
	put_be64(mad + SMP_OFF_M_KEY, TRAP_M_KEY);
}

void
trap_sm_configure(struct trap_script *sc, uint8_t state)
{
	uint8_t mad[MAD_LEN], *info = mad + SMP_OFF_DATA;

	trap_sm_header(sc, mad, MAD_SET, SMA_PORT_INFO);
	memcpy(info, smi_port_info(&sc->ca), SMA_DATA_LEN);
	put_be16(info + PI_LID, sc->ca_lid);
	put_be16(info + PI_SM_LID, sc->sm_lid);
	info[PI_STATE] = (info[PI_STATE] & 0xF0) | state;
	info[PI_PHYS_STATE] &= 0x0F;
	info[PI_SUBNET_TIMEOUT] = sc->subnet_timeout;
	send_smp(sc, mad);
}

/* --- repressing --- */

static void
repress(struct trap_script *sc, const uint8_t *notice, uint64_t tid)
{
	uint8_t mad[MAD_LEN];

	trap_sm_header(sc, mad, MAD_TRAP_REPRESS, SMA_NOTICE);
	if (sim_below(sc->sim, 2))
		put_be64(mad + MAD_OFF_TID, tid);
	memcpy(mad + SMP_OFF_DATA, notice, SMA_DATA_LEN);
	send_smp(sc, mad);
}

static void
repress_now(struct sim *s, void *arg)
{
	const struct trap_seen *t = arg;

	repress(s->guest_arg, t->notice, t->tid);
}

static void
repress_later(struct trap_script *sc, struct trap_seen *t)
{
	struct sim *s = sc->sim;

	sim_at(s, s->now + sim_below(s, (uint32_t)(2 * sc->interval)), repress_now, t);
}

static void
repress_mistaken(struct trap_script *sc, const struct trap_seen *t)
{
	uint8_t notice[SMA_DATA_LEN];

	memcpy(notice, t->notice, SMA_DATA_LEN);
	notice[sim_below(sc->sim, 2) ? 0 : SMA_DATA_LEN - 1] ^= 0x08;
	repress(sc, notice, t->tid);
}

static void
repress_by_number(struct trap_script *sc, const struct trap_seen *t)
{
	uint8_t notice[SMA_DATA_LEN] = { 0 };

	memcpy(notice, t->notice, 10);
	repress(sc, notice, t->tid);
}

static void
trap_sm_heard(struct trap_script *sc, struct trap_seen *t)
{
	if (t->heard == 1)
		t->manner = (uint8_t)sim_below(sc->sim, MANNERS);
	if (t->manner == IGNORE || (t->manner == THIRD_TIME && t->heard < 3))
		return;
	if (t->manner == LATE)
		repress_later(sc, t);
	else if (t->manner == MISTAKEN && t->heard == 1)
		repress_mistaken(sc, t);
	else if (t->manner == NO_DETAILS)
		repress_by_number(sc, t);
	else
		repress(sc, t->notice, t->tid);
}

enum verdict
trap_sm_receive(struct trap_script *sc, const struct packet *pkt)
{
	enum verdict v;

	if (!wire_crc_ok(pkt, &v))
		return v;
	if (pkt->payload_len == MAD_LEN && pkt->payload[MAD_OFF_METHOD] == MAD_TRAP)
		trap_sm_heard(sc, trap_model_delivered(sc, pkt->payload));
	return VERDICT_DATAGRAM;
}

/* --- SMPs that an agent must drop or refuse --- */

void
trap_sm_odd(struct trap_script *sc)
{
	struct smi_frame f = smi_frame_default;
	struct sim *s = sc->sim;
	uint8_t mad[MAD_LEN];

	trap_sm_header(sc, mad, MAD_GET, SMA_PORT_INFO);
	f.slid = sc->sm_lid;
	f.dlid = sc->ca_lid;
	switch (sim_below(s, 8)) {
	case 0: /* a wrong key: trap 256 */
		put_be64(mad + SMP_OFF_M_KEY, sim_below(s, 4));
		break;
	case 1:
		mad[MAD_OFF_METHOD] = MAD_TRAP;
		break;
	case 2:
		mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
		break;
	case 3: /* a directed route that continues, or ends here */
		mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ROUTED;
		memset(mad + SMP_OFF_DR_SLID, 0xFF, 4);
		mad[SMP_OFF_HOP_POINTER] = (uint8_t)sim_below(s, 3);
		mad[SMP_OFF_HOP_COUNT] = (uint8_t)sim_below(s, 3);
		break;
	case 4:
		f.dlid = 0x4444;
		break;
	case 5:
		f.grh = true;
		break;
	case 6:
		f.len = MAD_LEN - 4;
		break;
	default:
		mad[MAD_OFF_BASE_VERSION] = 2;
		break;
	}
	send_frame(sc, &f, mad);
}
