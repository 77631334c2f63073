/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PortInfo (smp-sma 3): one table row per field; a Set walks the rows. A field with a value that is
 * not allowed keeps its old value and sets the status; the other fields still apply.
 */

#include "sma/port_info.h"
#include "sma/private.h"

#define VIOLATIONS_MAX 0xFFFF /* violation counters stop here */

/* A Set in progress. */
struct sma_set {
	struct sma_port *p;
	const uint8_t *data;
	bool reregister;
};

static void
bits_put(uint8_t *data, const struct sma_port_info_field *f, uint64_t value)
{
	put_bits(data, f->offset, f->bits, value);
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
	uint64_t value = get_bits(set->data, f->offset, f->bits);

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
