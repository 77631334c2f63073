/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_PORT_INFO_H
#define SMA_PORT_INFO_H

/* The fields of PortInfo (smp-sma 3). */

#include <stdint.h>

#include <rte_debug.h>

#include "sma/sma.h"
#include "wire/bits.h"

/*
 * X(ID, name, byte, bits to skip in it, width, access[, rule[, bound]]): names as in lib/sa's
 * record. RO: a Set ignores the field; RW: the rule decides, or without one any value may be
 * written; CLEAR: only 0 may be written; STATE: both state fields are set together after all
 * others. bound: the RO field with which the rule compares.
 *
 * Partition enforcement and raw filters are stored without effect: a CA checks every P_Key anyway
 * and accepts no raw packets. We do not offer suppression of multicast P_Key traps (CapabilityMask
 * bit 29), so its bits stay 0.
 */
/* clang-format off */
#define SMA_PORT_INFO_FIELDS(X)                                                                    \
	X(M_KEY, m_key, 0, 0, 64, RW)                                                              \
	X(GID_PREFIX, gid_prefix, 8, 0, 64, RW)                                                    \
	X(LID, base_lid, 16, 0, 16, RW, rule_lid)                                                  \
	X(SM_LID, sm_lid, 18, 0, 16, RW, rule_lid)                                                 \
	X(CAPABILITY_MASK, capability_mask, 20, 0, 32, RO)                                         \
	X(DIAG_CODE, diag_code, 24, 0, 16, RO)                                                     \
	X(M_KEY_LEASE, m_key_lease_period, 26, 0, 16, RW)                                          \
	X(LOCAL_PORT, local_port_num, 28, 0, 8, RO)                                                \
	X(WIDTH_ENABLED, link_width_enabled, 29, 0, 8, RW, rule_subset, PI_WIDTH_SUPPORTED)        \
	X(WIDTH_SUPPORTED, link_width_supported, 30, 0, 8, RO)                                     \
	X(WIDTH_ACTIVE, link_width_active, 31, 0, 8, RO)                                           \
	X(SPEED_SUPPORTED, link_speed_supported, 32, 0, 4, RO)                                     \
	X(PORT_STATE, port_state, 32, 4, 4, STATE)                                                 \
	X(PHYS_STATE, port_phys_state, 33, 0, 4, STATE)                                            \
	X(DOWN_DEFAULT, link_down_default, 33, 4, 4, RW, rule_down_default)                        \
	X(M_KEY_PROTECT, m_key_protect_bits, 34, 0, 2, RW)                                         \
	X(LMC, lmc, 34, 5, 3, RW, rule_lmc)                                                        \
	X(SPEED_ACTIVE, link_speed_active, 35, 0, 4, RO)                                           \
	X(SPEED_ENABLED, link_speed_enabled, 35, 4, 4, RW, rule_subset, PI_SPEED_SUPPORTED)        \
	X(NEIGHBOR_MTU, neighbor_mtu, 36, 0, 4, RW, rule_mtu, PI_MTU_CAP)                          \
	X(SM_SL, sm_sl, 36, 4, 4, RW)                                                              \
	X(VL_CAP, vl_cap, 37, 0, 4, RO)                                                            \
	X(INIT_TYPE, init_type, 37, 4, 4, RW)                                                      \
	X(VL_HIGH_LIMIT, vl_high_limit, 38, 0, 8, RW)                                              \
	X(VL_ARB_HIGH_CAP, vl_arb_high_cap, 39, 0, 8, RO)                                          \
	X(VL_ARB_LOW_CAP, vl_arb_low_cap, 40, 0, 8, RO)                                            \
	X(INIT_TYPE_REPLY, init_type_reply, 41, 0, 4, RO)                                          \
	X(MTU_CAP, mtu_cap, 41, 4, 4, RO)                                                          \
	X(VL_STALL_COUNT, vl_stall_count, 42, 0, 3, RW)                                            \
	X(HOQ_LIFE, hoq_life, 42, 3, 5, RW)                                                        \
	X(OPER_VLS, oper_vls, 43, 0, 4, RW, rule_vls, PI_VL_CAP)                                   \
	X(PART_ENFORCE_IN, part_enforce_in, 43, 4, 1, RW)                                          \
	X(PART_ENFORCE_OUT, part_enforce_out, 43, 5, 1, RW)                                        \
	X(FILTER_RAW_IN, filter_raw_in, 43, 6, 1, RW)                                              \
	X(FILTER_RAW_OUT, filter_raw_out, 43, 7, 1, RW)                                            \
	X(M_KEY_VIOLATIONS, m_key_violations, 44, 0, 16, CLEAR, rule_m_key_violations)             \
	X(P_KEY_VIOLATIONS, p_key_violations, 46, 0, 16, CLEAR, rule_p_key_violations)             \
	X(Q_KEY_VIOLATIONS, q_key_violations, 48, 0, 16, CLEAR, rule_q_key_violations)             \
	X(GUID_CAP, guid_cap, 50, 0, 8, RO)                                                        \
	X(CLIENT_REREGISTER, client_reregister, 51, 0, 1, RW, rule_reregister)                     \
	X(MCAST_PKEY_TRAP, mcast_pkey_trap_suppression, 51, 1, 2, RO)                              \
	X(SUBNET_TIMEOUT, subnet_timeout, 51, 3, 5, RW)                                            \
	X(RESP_TIME, resp_time_value, 52, 3, 5, RO)                                                \
	X(LOCAL_PHY_ERRORS, local_phy_errors, 53, 0, 4, RW)                                        \
	X(OVERRUN_ERRORS, overrun_errors, 53, 4, 4, RW)                                            \
	X(MAX_CREDIT_HINT, max_credit_hint, 54, 0, 16, RO)                                         \
	X(ROUND_TRIP, link_round_trip_latency, 57, 0, 24, RO)                                      \
	X(CAPABILITY_MASK2, capability_mask2, 60, 0, 16, RO)                                       \
	X(EXT_ACTIVE, link_speed_ext_active, 62, 0, 4, RO)                                         \
	X(EXT_SUPPORTED, link_speed_ext_supported, 62, 4, 4, RO)                                   \
	X(EXT_ENABLED, link_speed_ext_enabled, 63, 3, 5, RW, rule_subset, PI_EXT_SUPPORTED)
/* clang-format on */

enum sma_port_info_id {
#define X(id, ...) PI_##id,
	SMA_PORT_INFO_FIELDS(X)
#undef X
		PI_COUNT
};

enum sma_access {
	SMA_RO,
	SMA_RW,
	SMA_CLEAR,
	SMA_STATE,
};

struct sma_port;
struct sma_set;

struct sma_port_info_field {
	const char *name;
	uint16_t offset; /* bits */
	uint8_t bits;
	uint8_t access; /* enum sma_access */
	/* Store the value. @retval false it is not allowed, nothing changed */
	bool (*rule)(struct sma_set *set, const struct sma_port_info_field *f, uint64_t value);
	uint8_t bound; /* enum sma_port_info_id */
};
extern const struct sma_port_info_field sma_port_info_fields[PI_COUNT];

static inline uint64_t
sma_pi_get(const uint8_t *info, enum sma_port_info_id id)
{
	const struct sma_port_info_field *f = &sma_port_info_fields[id];

	RTE_ASSERT(id < PI_COUNT);
	return get_bits(info, f->offset, f->bits);
}

/* Bits of value beyond the field's width are ignored. */
static inline void
sma_pi_put(uint8_t *info, enum sma_port_info_id id, uint64_t value)
{
	const struct sma_port_info_field *f = &sma_port_info_fields[id];

	RTE_ASSERT(id < PI_COUNT);
	put_bits(info, f->offset, f->bits, value);
}

/* PortPhysState */
enum sma_phys_state {
	SMA_PHYS_SLEEP = 1,
	SMA_PHYS_POLLING,
	SMA_PHYS_DISABLED,
	SMA_PHYS_LINK_UP = 5,
};

#endif
