/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A port's tables (smp-sma 3): GUIDInfo and P_KeyTable in blocks, SL to VL, VL arbitration. */

#include "sma/private.h"

#define GUID_BLOCKS  (PORT_GIDS_MAX / SMA_BLOCK_GUIDS)
#define PKEY_BLOCKS  (PORT_PKEYS_MAX / SMA_BLOCK_PKEYS)
#define PKEY_DEFAULT 0xFFFF
#define VLARB_LEN    2 /* bytes of an entry: reserved 4 bits, VL 4, weight 8 */
#define VLARB_VL     0x0F

_Static_assert(PORT_GIDS_MAX % SMA_BLOCK_GUIDS == 0, "whole blocks");
_Static_assert(PORT_PKEYS_MAX % SMA_BLOCK_PKEYS == 0, "whole blocks");

bool
sma_port_number(const struct sma_port *p, uint32_t number)
{
	return number == 0 || number == p->index + 1u;
}

/* --- GUIDInfo --- */

uint16_t
sma_guid_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	const uint64_t *guid;

	if (smp->modifier >= GUID_BLOCKS)
		return MAD_STATUS_INVALID_FIELD;
	guid = &p->guid[smp->modifier * SMA_BLOCK_GUIDS];
	for (unsigned int i = 0; i < SMA_BLOCK_GUIDS; i++)
		put_be64(data + 8 * i, guid[i]);
	return MAD_STATUS_OK;
}

uint16_t
sma_guid_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	unsigned int first = smp->modifier == 0 ? 1 : 0; /* GUID 0, the port's own, is read only */
	uint64_t *guid;

	if (smp->modifier >= GUID_BLOCKS)
		return MAD_STATUS_INVALID_FIELD;
	guid = &p->guid[smp->modifier * SMA_BLOCK_GUIDS];
	for (unsigned int i = first; i < SMA_BLOCK_GUIDS; i++)
		guid[i] = get_be64(data + 8 * i);
	sma_apply(p, smp->now);
	return MAD_STATUS_OK;
}

/* --- P_KeyTable --- */

/* The block that a modifier names, or NULL. */
static uint16_t *
pkey_block(const struct smp *smp, struct sma_port *p)
{
	uint16_t block = smp->modifier & 0xFFFF;

	if (block >= PKEY_BLOCKS || !sma_port_number(p, smp->modifier >> 16))
		return NULL;
	return &p->pkey[block * SMA_BLOCK_PKEYS];
}

uint16_t
sma_pkey_table_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	const uint16_t *pkey = pkey_block(smp, p);

	if (pkey == NULL)
		return MAD_STATUS_INVALID_FIELD;
	for (unsigned int i = 0; i < SMA_BLOCK_PKEYS; i++)
		put_be16(data + 2 * i, pkey[i]);
	return MAD_STATUS_OK;
}

uint16_t
sma_pkey_table_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	uint16_t *pkey = pkey_block(smp, p);

	if (pkey == NULL)
		return MAD_STATUS_INVALID_FIELD;
	for (unsigned int i = 0; i < SMA_BLOCK_PKEYS; i++)
		pkey[i] = get_be16(data + 2 * i);
	sma_apply(p, smp->now);
	return MAD_STATUS_OK;
}

/* --- SLtoVLMappingTable: not supported with only one VL --- */

static uint16_t
sltovl_check(const struct smp *smp, const struct sma_port *p)
{
	if (p->config.vl_cap == 1)
		return MAD_STATUS_BAD_METHOD_ATTR;
	/* input and output port; this also requires the reserved upper half to be 0 */
	if (!sma_port_number(p, smp->modifier >> 8) || !sma_port_number(p, smp->modifier & 0xFF))
		return MAD_STATUS_INVALID_FIELD;
	return MAD_STATUS_OK;
}

uint16_t
sma_sltovl_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	uint16_t status = sltovl_check(smp, p);

	if (status == MAD_STATUS_OK)
		memcpy(data, p->sltovl, sizeof(p->sltovl));
	return status;
}

uint16_t
sma_sltovl_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	uint16_t status = sltovl_check(smp, p);

	if (status != MAD_STATUS_OK)
		return status;
	memcpy(p->sltovl, data, sizeof(p->sltovl));
	sma_apply(p, smp->now);
	return MAD_STATUS_OK;
}

/* --- VLArbitrationTable --- */

static uint16_t
vlarb_check(const struct smp *smp, const struct sma_port *p)
{
	uint16_t part = smp->modifier >> 16;

	if (p->config.vl_cap == 1)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (part < 1 || part > SMA_VLARB_TABLES || !sma_port_number(p, smp->modifier & 0xFFFF))
		return MAD_STATUS_INVALID_FIELD;
	return MAD_STATUS_OK;
}

uint16_t
sma_vlarb_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	uint16_t status = vlarb_check(smp, p);

	if (status == MAD_STATUS_OK)
		memcpy(data, p->vlarb[(smp->modifier >> 16) - 1], SMA_DATA_LEN);
	return status;
}

uint16_t
sma_vlarb_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	uint16_t status = vlarb_check(smp, p);
	uint8_t *table;

	if (status != MAD_STATUS_OK)
		return status;
	table = p->vlarb[(smp->modifier >> 16) - 1];
	memcpy(table, data, SMA_DATA_LEN);
	for (unsigned int i = 0; i < SMA_DATA_LEN; i += VLARB_LEN)
		table[i] &= VLARB_VL;
	return MAD_STATUS_OK;
}

/* --- initial values --- */

void
sma_tables_init(struct sma_port *p)
{
	const struct sma_port_config *c = &p->config;
	unsigned int vls = sma_vls(c->vl_cap);

	p->guid[0] = c->guid;
	if (c->num_pkeys == 0)
		p->pkey[0] = PKEY_DEFAULT;
	memcpy(p->pkey, c->pkeys, c->num_pkeys * sizeof(p->pkey[0]));
	for (unsigned int sl = 0; sl < PORT_SLS; sl += 2)
		p->sltovl[sl / 2] = (sl % vls) << 4 | (sl + 1) % vls;
	/* low-priority table: all VLs in turn with equal weight */
	for (unsigned int vl = 0; vl < vls && vls > 1; vl++) {
		p->vlarb[0][VLARB_LEN * vl] = vl;
		p->vlarb[0][VLARB_LEN * vl + 1] = 1;
	}
}
