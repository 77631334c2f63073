/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Build the notices that a channel adapter issues (smp-sma 5). NoticeToggle and NoticeCount stay 0:
 * they describe a queue read by Get, and a Trap does not come from it (qib does the same).
 */

#include "sma/notice.h"
#include "sma/port_info.h"
#include "sma/private.h"

static void
notice_begin(struct sma_port *p, enum sma_notice_type type, uint16_t number, uint8_t *notice)
{
	memset(notice, 0, SMA_DATA_LEN);
	notice[NOTICE_OFF_TYPE] = NOTICE_GENERIC | type;
	notice[NOTICE_OFF_PRODUCER + 2] = NOTICE_PRODUCER_CA;
	put_be16(notice + NOTICE_OFF_NUMBER, number);
	put_be16(notice + NOTICE_OFF_ISSUER_LID, sma_lid(p));
}

static void
notice_begin_port(struct sma_port *p, enum sma_notice_type type, uint16_t number, uint8_t *notice)
{
	notice_begin(p, type, number, notice);
	put_be16(notice + NOTICE_OFF_LID, sma_lid(p));
}

void
sma_notice_link(struct sma_port *p, uint16_t number, uint8_t notice[SMA_DATA_LEN])
{
	notice_begin_port(p, NOTICE_URGENT, number, notice);
	notice[NOTICE_OFF_PORT] = (uint8_t)(p->index + 1);
}

void
sma_notice_change(struct sma_port *p, uint16_t flags, uint8_t notice[SMA_DATA_LEN])
{
	notice_begin_port(p, NOTICE_INFORMATIONAL, TRAP_LOCAL_CHANGE, notice);
	notice[NOTICE_OFF_OTHER_CHANGES] = flags != 0;
	put_be32(notice + NOTICE_OFF_CAP_MASK, sma_capability_mask(p));
	put_be16(notice + NOTICE_OFF_CHANGE_FLAGS, flags);
	put_be16(notice + NOTICE_OFF_CAP_MASK2, sma_pi_get(p->info, PI_CAPABILITY_MASK2));
}

void
sma_notice_image(struct sma_port *p, uint8_t notice[SMA_DATA_LEN])
{
	notice_begin_port(p, NOTICE_INFORMATIONAL, TRAP_SYSTEM_IMAGE, notice);
	put_be64(notice + NOTICE_OFF_IMAGE_GUID, p->sma->config.system_image_guid);
}

/*
 * Copy the SMP's return path from byte 0 on. Byte 0 is unused; copying it keeps the hops' indices
 * (UNCONFIRMED). Truncated is set if the last hop does not fit the notice's 30 bytes.
 */
static void
put_return_path(const uint8_t *mad, uint8_t *notice)
{
	unsigned int hops = mad[SMP_OFF_HOP_COUNT] & NOTICE_HOP_COUNT, len = hops + 1;

	notice[NOTICE_OFF_DR] = NOTICE_DR | (uint8_t)hops;
	if (len > NOTICE_RETURN_PATH_LEN) {
		notice[NOTICE_OFF_DR] |= NOTICE_DR_TRUNCATED;
		len = NOTICE_RETURN_PATH_LEN;
	}
	memcpy(notice + NOTICE_OFF_RETURN_PATH, mad + SMP_OFF_RETURN_PATH, len);
	memcpy(notice + NOTICE_OFF_DR_SLID, mad + SMP_OFF_DR_SLID, 2);
}

void
sma_notice_mkey(struct sma_port *p, const struct smp *smp, uint8_t notice[SMA_DATA_LEN])
{
	const uint8_t *mad = smp->mad;

	notice_begin_port(p, NOTICE_SECURITY, TRAP_BAD_M_KEY, notice);
	notice[NOTICE_OFF_METHOD] = smp->method;
	put_be16(notice + NOTICE_OFF_ATTRIBUTE, smp->attribute);
	put_be32(notice + NOTICE_OFF_MODIFIER, smp->modifier);
	memcpy(notice + NOTICE_OFF_M_KEY, mad + SMP_OFF_M_KEY, 8);
	if (mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ROUTED)
		put_return_path(mad, notice);
}

void
sma_notice_key(struct sma_port *p, const struct sma_bad_key *k, uint8_t notice[SMA_DATA_LEN])
{
	notice_begin(p, NOTICE_SECURITY, k->qkey ? TRAP_BAD_Q_KEY : TRAP_BAD_P_KEY, notice);
	put_be16(notice + NOTICE_OFF_LID1, k->lid1);
	put_be16(notice + NOTICE_OFF_LID2, k->lid2);
	put_be32(notice + NOTICE_OFF_KEY, k->key);
	put_be32(notice + NOTICE_OFF_SL_QP1, (uint32_t)(k->sl & 0xF) << 28 | (k->qp1 & 0xFFFFFF));
	put_be32(notice + NOTICE_OFF_QP2, k->qp2 & 0xFFFFFF);
	memcpy(notice + NOTICE_OFF_GID1, k->gid1.raw, 16);
	memcpy(notice + NOTICE_OFF_GID2, k->gid2.raw, 16);
}
