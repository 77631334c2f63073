/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The attributes that this agent supports (smp-sma 3); others are answered with status 0x000C. */

#include "sma/private.h"

static const struct sma_attribute attributes[] = {
	{ SMA_NOTICE, "Notice", sma_notice_get, NULL },
	/* no Set: it needs CapabilityMask2 bit 0, which we do not offer (smp-sma 8) */
	{ SMA_NODE_DESCRIPTION, "NodeDescription", sma_node_desc_get, NULL },
	{ SMA_NODE_INFO, "NodeInfo", sma_node_info_get, NULL },
	{ SMA_GUID_INFO, "GUIDInfo", sma_guid_info_get, sma_guid_info_set },
	{ SMA_PORT_INFO, "PortInfo", sma_port_info_get, sma_port_info_set },
	{ SMA_PKEY_TABLE, "P_KeyTable", sma_pkey_table_get, sma_pkey_table_set },
	{ SMA_SLTOVL, "SLtoVLMappingTable", sma_sltovl_get, sma_sltovl_set },
	{ SMA_VLARB, "VLArbitrationTable", sma_vlarb_get, sma_vlarb_set },
	{ SMA_SM_INFO, "SMInfo", sma_sm_info_get, sma_sm_info_set },
	{ SMA_VENDOR_DIAG, "VendorDiag", sma_vendor_diag_get, NULL },
	{ SMA_LED_INFO, "LedInfo", sma_led_info_get, sma_led_info_set },
};

const struct sma_attribute *
sma_attribute_find(uint16_t id)
{
	for (unsigned int i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].id == id)
			return &attributes[i];
	return NULL;
}
