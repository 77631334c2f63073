/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* PortInfo before any Set, and the values of its fields that other files need. */

#include "sma/port_info.h"
#include "sma/private.h"

#define THRESHOLD_DEFAULT      8 /* LocalPhyErrors, OverrunErrors */
#define SUBNET_TIMEOUT_DEFAULT 18 /* 1.07 s, until an SM sets it */

/* --- initial values --- */

static uint32_t
capability_mask(const struct sma_port_config *c)
{
	uint32_t mask = SMA_CAP_ANY_PORT | SMA_CAP_NOTICE | SMA_CAP_TRAP | SMA_CAP_LED_INFO |
		SMA_CAP_DR_NOTICE | SMA_CAP_MASK_NOTICE | SMA_CAP_REREGISTRATION |
		SMA_CAP_OTHER_CHANGES;

	if (c->is_sm)
		mask |= SMA_CAP_IS_SM;
	if (c->vl_cap > 1)
		mask |= SMA_CAP_SL_MAPPING;
	if (c->speed_ext != 0)
		mask |= SMA_CAP_EXT_SPEEDS;
	return mask;
}

void
sma_port_info_init(struct sma_port *p)
{
	const struct sma_port_config *c = &p->config;
	uint8_t *info = p->info;

	sma_pi_put(info, PI_M_KEY, c->m_key);
	sma_pi_put(info, PI_M_KEY_PROTECT, c->m_key_protect);
	sma_pi_put(info, PI_M_KEY_LEASE, c->m_key_lease);
	sma_pi_put(info, PI_GID_PREFIX, c->gid_prefix != 0 ? c->gid_prefix : LINK_LOCAL_PREFIX);
	sma_pi_put(info, PI_LID, c->lid);
	sma_pi_put(info, PI_LMC, c->lmc);
	sma_pi_put(info, PI_SM_LID, c->sm_lid);
	sma_pi_put(info, PI_SM_SL, c->sm_sl);
	sma_pi_put(info, PI_CAPABILITY_MASK, capability_mask(c));
	sma_pi_put(info, PI_WIDTH_SUPPORTED, c->width);
	sma_pi_put(info, PI_WIDTH_ENABLED, c->width);
	sma_pi_put(info, PI_SPEED_SUPPORTED, c->speed);
	sma_pi_put(info, PI_SPEED_ENABLED, c->speed);
	sma_pi_put(info, PI_EXT_SUPPORTED, c->speed_ext);
	sma_pi_put(info, PI_EXT_ENABLED, c->speed_ext);
	sma_pi_put(info, PI_DOWN_DEFAULT, SMA_PHYS_POLLING);
	sma_pi_put(info, PI_MTU_CAP, port_mtu_code(c->mtu));
	sma_pi_put(info, PI_NEIGHBOR_MTU, port_mtu_code(c->mtu));
	sma_pi_put(info, PI_VL_CAP, c->vl_cap);
	sma_pi_put(info, PI_OPER_VLS, c->vl_cap);
	/* with one VL there are no arbitration tables, so their size is 0 */
	sma_pi_put(info, PI_VL_ARB_HIGH_CAP, c->vl_cap > 1 ? SMA_VLARB_ENTRIES : 0);
	sma_pi_put(info, PI_VL_ARB_LOW_CAP, c->vl_cap > 1 ? SMA_VLARB_ENTRIES : 0);
	sma_pi_put(info, PI_GUID_CAP, PORT_GIDS_MAX);
	sma_pi_put(info, PI_SUBNET_TIMEOUT, SUBNET_TIMEOUT_DEFAULT);
	sma_pi_put(info, PI_RESP_TIME, p->sma->config.resp_time);
	sma_pi_put(info, PI_LOCAL_PHY_ERRORS, THRESHOLD_DEFAULT);
	sma_pi_put(info, PI_OVERRUN_ERRORS, THRESHOLD_DEFAULT);
}

/* --- fields for other files --- */

uint8_t
sma_port_state(const struct sma_port *p)
{
	return sma_pi_get(p->info, PI_PORT_STATE);
}

uint16_t
sma_lid(const struct sma_port *p)
{
	return sma_pi_get(p->info, PI_LID);
}

uint16_t
sma_master_sm_lid(const struct sma_port *p)
{
	return sma_pi_get(p->info, PI_SM_LID);
}

uint8_t
sma_master_sm_sl(const struct sma_port *p)
{
	return sma_pi_get(p->info, PI_SM_SL);
}

uint8_t
sma_subnet_timeout(const struct sma_port *p)
{
	return sma_pi_get(p->info, PI_SUBNET_TIMEOUT);
}

uint32_t
sma_capability_mask(const struct sma_port *p)
{
	return sma_pi_get(p->info, PI_CAPABILITY_MASK);
}

unsigned int
sma_vls(uint8_t code)
{
	static const uint8_t vls[] = { 0, 1, 2, 4, 8, 15 };

	return vls[code];
}
