/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PortInfo (smp-sma 3): one table row per field; a Set walks the rows. A field with a value that is
 * not allowed keeps its old value and sets the status; the other fields still apply.
 */

#include "sma/port_info.h"
#include "sma/private.h"
#include "wire/bits.h"

#define VIOLATIONS_MAX 0xFFFF /* violation counters stop here */

#define THRESHOLD_DEFAULT      8 /* LocalPhyErrors, OverrunErrors */
#define SUBNET_TIMEOUT_DEFAULT 18 /* 1.07 s, until an SM sets it */
#define LINK_LOCAL_PREFIX      0xFE80000000000000ull

/* A Set in progress. */
struct sma_set {
	struct sma_port *p;
	const uint8_t *data;
	bool reregister;
};

/* --- fields as numbers --- */

static uint64_t
bits_get(const uint8_t *data, const struct sma_port_info_field *f)
{
	return get_bits(data, f->offset, f->bits);
}

static void
bits_put(uint8_t *data, const struct sma_port_info_field *f, uint64_t value)
{
	put_bits(data, f->offset, f->bits, value);
}

uint64_t
sma_pi_get(const uint8_t *info, enum sma_port_info_id id)
{
	return bits_get(info, &sma_port_info_fields[id]);
}

void
sma_pi_put(uint8_t *info, enum sma_port_info_id id, uint64_t value)
{
	bits_put(info, &sma_port_info_fields[id], value);
}

/* --- rules --- */

static bool
store_any(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	bits_put(set->p->info, f, value);
	return true;
}

static bool
unicast(uint64_t lid)
{
	return lid != 0 && lid < PORT_LID_MULTICAST;
}

static bool
rule_lid(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	return unicast(value) && store_any(set, f, value);
}

/* LMC belongs to the LID: ignore it if the Set's LID is not valid. */
static bool
rule_lmc(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	if (unicast(sma_pi_get(set->data, PI_LID)))
		bits_put(set->p->info, f, value);
	return true;
}

/* 0: no change; all ones: everything supported; otherwise a subset of it. */
static bool
rule_subset(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	uint64_t supported = sma_pi_get(set->p->info, f->bound);

	if (value == 0)
		return true;
	if (value == (1ull << f->bits) - 1)
		value = supported;
	return (value & ~supported) == 0 && store_any(set, f, value);
}

static bool
rule_down_default(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	if (value == 0)
		return true;
	return (value == SMA_PHYS_SLEEP || value == SMA_PHYS_POLLING) && store_any(set, f, value);
}

static bool
rule_mtu(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	return value >= 1 && value <= sma_pi_get(set->p->info, f->bound) &&
		store_any(set, f, value);
}

static bool
rule_vls(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	return value == 0 ||
		(value <= sma_pi_get(set->p->info, f->bound) && store_any(set, f, value));
}

static bool
rule_m_key_violations(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	(void)f;
	(void)value;
	set->p->mkey_violations = 0;
	return true;
}

static bool
rule_p_key_violations(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	(void)f;
	(void)value;
	set->p->cleared.pkey_violations = set->p->totals.pkey_violations;
	return true;
}

static bool
rule_q_key_violations(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	(void)f;
	(void)value;
	set->p->cleared.qkey_violations = set->p->totals.qkey_violations;
	return true;
}

/* ClientReregister is not stored: it causes an event, and the response repeats it. */
static bool
rule_reregister(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value)
{
	(void)f;
	set->reregister = value != 0;
	return true;
}

const struct sma_port_info_field sma_port_info_fields[PI_COUNT] = {
/* clang-format off */
#define X(id, name, byte, skip, bits, access, ...)                                                 \
	[PI_##id] = { #name, (byte)*8 + (skip), bits, SMA_##access, ##__VA_ARGS__ },
	/* clang-format on */
	SMA_PORT_INFO_FIELDS(X)
#undef X
};

/* --- Get and Set --- */

static uint16_t
violations_since(uint64_t total, uint64_t cleared)
{
	uint64_t n = total - cleared;

	return n < VIOLATIONS_MAX ? n : VIOLATIONS_MAX;
}

/*
 * Get, and the answer to a Set, which repeats ClientReregister. p: the port asked about; smp->port:
 * the one that received the request.
 */
uint16_t
sma_port_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	memcpy(data, p->info, SMA_DATA_LEN);
	sma_pi_put(data, PI_LOCAL_PORT, smp->port->index + 1);
	sma_pi_put(data, PI_M_KEY_VIOLATIONS, p->mkey_violations);
	sma_pi_put(data, PI_P_KEY_VIOLATIONS,
		violations_since(p->totals.pkey_violations, p->cleared.pkey_violations));
	sma_pi_put(data, PI_Q_KEY_VIOLATIONS,
		violations_since(p->totals.qkey_violations, p->cleared.qkey_violations));
	if (smp->hide_m_key)
		sma_pi_put(data, PI_M_KEY, 0);
	if (smp->method == MAD_SET && p == smp->port)
		sma_pi_put(data, PI_CLIENT_REREGISTER,
			sma_pi_get(smp->mad + SMP_OFF_DATA, PI_CLIENT_REREGISTER));
	return MAD_STATUS_OK;
}

static bool
port_info_set_field(struct sma_set *set, const struct sma_port_info_field *f)
{
	uint64_t value = bits_get(set->data, f);

	if (f->access == SMA_RW || (f->access == SMA_CLEAR && value == 0))
		return f->rule != NULL ? f->rule(set, f, value) : store_any(set, f, value);
	return true;
}

uint16_t
sma_port_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	struct sma_set set = { .p = p, .data = data };
	bool valid = true;

	if (p != smp->port) /* another port's PortInfo is read only: answer like a Get */
		return MAD_STATUS_OK;
	for (unsigned int i = 0; i < PI_COUNT; i++)
		valid &= port_info_set_field(&set, &sma_port_info_fields[i]);
	valid &= sma_port_state_set(p, sma_pi_get(data, PI_PORT_STATE),
		sma_pi_get(data, PI_PHYS_STATE), smp->now);
	sma_apply(p, smp->now);
	if (set.reregister)
		sma_tell(p, EVENT_CLIENT_REREGISTER);
	return valid ? MAD_STATUS_OK : MAD_STATUS_INVALID_FIELD;
}

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
