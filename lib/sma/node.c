/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The channel adapter and who stands behind it: the small attributes of smp-sma 3. */

#include "sma/private.h"

#define NODE_TYPE_CA 1
#define CLASS_VERSION 1
#define LED_ON 0x80 /* bit 31 of the first word */
#define NOTICE_EMPTY 0x7F /* Notice.Type: nothing is queued */

uint16_t
sma_notice_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	if (smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	if (!sma_trap_newest(p, data))
		data[0] = NOTICE_EMPTY;
	return MAD_STATUS_OK;
}

uint16_t
sma_node_desc_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	if (smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	memcpy(data, p->sma->config.node_desc, SMA_NODE_DESC_LEN);
	return MAD_STATUS_OK;
}

uint16_t
sma_node_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	const struct sma_config *c = &p->sma->config;

	if (smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	data[0] = MAD_BASE_VERSION;
	data[1] = CLASS_VERSION;
	data[2] = NODE_TYPE_CA;
	data[3] = c->num_ports;
	put_be64(data + 4, c->system_image_guid);
	put_be64(data + 12, c->node_guid);
	put_be64(data + 20, p->guid[0]);
	put_be16(data + 28, PORT_PKEYS_MAX);
	put_be16(data + 30, c->device_id);
	put_be32(data + 32, c->revision);
	/* LocalPortNum 8, VendorID 24 */
	put_be32(data + 36, (uint32_t)(smp->port->index + 1) << 24 | (c->vendor_id & 0xFFFFFF));
	return MAD_STATUS_OK;
}

/* One page without anything to tell: NextIndex 0 says that there is no other. */
uint16_t
sma_vendor_diag_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	(void)p;
	(void)data;
	return smp->modifier == 0 ? MAD_STATUS_OK : MAD_STATUS_INVALID_FIELD;
}

uint16_t
sma_led_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	if (smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	data[0] = p->led ? LED_ON : 0;
	return MAD_STATUS_OK;
}

uint16_t
sma_led_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	if (smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	p->led = (data[0] & LED_ON) != 0;
	return MAD_STATUS_OK;
}

/* --- SMInfo --- */

uint16_t
sma_sm_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	if (!p->config.is_sm)
		return MAD_STATUS_BAD_METHOD_ATTR;
	/* of a Set the modifier is the command */
	if (smp->method == MAD_GET && smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	put_be64(data, p->guid[0]);
	/* SM_Key at 8 stays 0: it is told to nobody */
	put_be32(data + 16, p->sm_act_count);
	data[20] = p->config.sm_priority << 4 | p->sm_state;
	p->sm_act_count++;
	return MAD_STATUS_OK;
}

/* Set's modifier: which state it leads to, and from which it may (smp-sma 3, 7). */
static const struct {
	uint8_t from;
	uint8_t to;
} sm_commands[] = {
	[1] = { SMA_SM_STANDBY, SMA_SM_MASTER }, /* handover */
	[2] = { SMA_SM_MASTER, SMA_SM_STANDBY }, /* acknowledge: the other one took over */
	[3] = { SMA_SM_STANDBY, SMA_SM_NOT_ACTIVE }, /* disable */
	[4] = { SMA_SM_NOT_ACTIVE, SMA_SM_STANDBY }, /* standby */
	[5] = { SMA_SM_STANDBY, SMA_SM_DISCOVERING }, /* discover */
};

uint16_t
sma_sm_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	(void)data;
	if (!p->config.is_sm)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (smp->modifier == 0 || smp->modifier >= sizeof(sm_commands) / sizeof(sm_commands[0]))
		return MAD_STATUS_INVALID_FIELD;
	if (p->sm_state != sm_commands[smp->modifier].from)
		return MAD_STATUS_INVALID_FIELD;
	p->sm_state = sm_commands[smp->modifier].to;
	return MAD_STATUS_OK;
}
