/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Attributes of the channel adapter, and a port's small ones (smp-sma 3). */

#include "sma/private.h"

#define NODE_TYPE_CA  1
#define CLASS_VERSION 1
#define LED_ON        0x80 /* bit 31 of the first word */
#define NOTICE_EMPTY  0x7F /* Notice.Type: nothing is queued */

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
	/* LocalPortNum in 8 bits, VendorID in 24 */
	put_be32(data + 36, (uint32_t)(smp->port->index + 1) << 24 | (c->vendor_id & 0xFFFFFF));
	return MAD_STATUS_OK;
}

/* One empty page; NextIndex 0 means that there is no other. */
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
