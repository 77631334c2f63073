/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_SMA_H
#define SMA_SMA_H

/**
 * @file
 * The subnet management agent of this appliance's native IB ports (smp-sma): answers SMPs on QP0,
 * holds what subnet management has set, guards it by M_Key, sends traps until they are repressed.
 *
 * One struct sma serves all ports of the channel adapter. It belongs to worker 0, the owner of QP0,
 * and may be called there only; sma_counters() apart. Nothing reads a clock, allocates after
 * creation, logs or calls EAL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/timer_wheel.h"
#include "mad/mad.h"
#include "port/port.h"
#include "rc/verbs_types.h"

#define SMA_PORTS_MAX      64
#define SMA_DATA_LEN       64 /* of every attribute */
#define SMA_NODE_DESC_LEN  64
#define SMA_TRAPS_MAX      32 /* kept per port, repressed or not */

enum sma_attribute_id {
	SMA_NOTICE = 0x0002,
	SMA_NODE_DESCRIPTION = 0x0010,
	SMA_NODE_INFO = 0x0011,
	SMA_SWITCH_INFO = 0x0012,
	SMA_GUID_INFO = 0x0014,
	SMA_PORT_INFO = 0x0015,
	SMA_PKEY_TABLE = 0x0016,
	SMA_SLTOVL = 0x0017,
	SMA_VLARB = 0x0018,
	SMA_SM_INFO = 0x0020,
	SMA_VENDOR_DIAG = 0x0030,
	SMA_LED_INFO = 0x0031,
};

/*
 * PortInfo.CapabilityMask (smp-sma 3): what we do. It never changes while the agent runs, nor does
 * NodeDescription: trap 144 has no cause but the operator.
 */
#define SMA_CAP_IS_SM          (1u << 1)
#define SMA_CAP_NOTICE         (1u << 2)
#define SMA_CAP_TRAP           (1u << 3)
#define SMA_CAP_AUTO_MIGRATION (1u << 5)
#define SMA_CAP_SL_MAPPING     (1u << 6)
#define SMA_CAP_LED_INFO       (1u << 9)
#define SMA_CAP_SYSTEM_IMAGE   (1u << 11)
#define SMA_CAP_EXT_SPEEDS     (1u << 14)
#define SMA_CAP_CM             (1u << 16)
#define SMA_CAP_VENDOR_CLASS   (1u << 20)
#define SMA_CAP_DR_NOTICE      (1u << 21)
#define SMA_CAP_MASK_NOTICE    (1u << 22)
#define SMA_CAP_REREGISTRATION (1u << 25)
#define SMA_CAP_OTHER_CHANGES  (1u << 26)
/** Of every port of ours, RoCE ports too, which have no subnet management agent */
#define SMA_CAP_ANY_PORT                                                                           \
	(SMA_CAP_AUTO_MIGRATION | SMA_CAP_SYSTEM_IMAGE | SMA_CAP_CM | SMA_CAP_VENDOR_CLASS)

/** SMInfo.SMState */
enum sma_sm_state {
	SMA_SM_NOT_ACTIVE,
	SMA_SM_DISCOVERING,
	SMA_SM_STANDBY,
	SMA_SM_MASTER,
};

/** What a port is before any subnet manager speaks to it. */
struct sma_port_config {
	uint16_t port; /**< local port index; its number in the channel adapter is one more */
	uint64_t guid;
	uint64_t gid_prefix; /**< 0: fe80::/64 */
	uint16_t pkeys[PORT_PKEYS_MAX];
	unsigned int num_pkeys; /**< 0: one, 0xFFFF */
	/* without a subnet manager */
	uint16_t lid; /**< 0: none */
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	bool active; /**< come up Active, not Initialize */
	uint64_t m_key;
	uint8_t m_key_protect; /**< ProtectBits, 0..3 */
	uint16_t m_key_lease; /**< seconds, 0: for ever */
	uint16_t mtu; /**< largest, bytes: 256..4096 */
	uint8_t vl_cap; /**< VLCap code, 1..5 */
	/* PortInfo's codes (smp-sma 3) of what the device can do */
	uint8_t width;
	uint8_t speed;
	uint8_t speed_ext;
	bool is_sm; /**< SMInfo is served: a subnet manager stands behind this port */
	uint8_t sm_priority;
	uint8_t sm_state; /**< SMInfo.SMState at start */
};

struct sma_limits {
	uint32_t trap_interval_ms; /**< between repeats, if SubnetTimeOut does not ask for more */
	uint32_t trap_retries; /**< repeats until a trap nobody represses is given up */
	uint32_t trap_rate; /**< new traps a second and port at most */
	uint32_t trap_burst;
};
extern const struct sma_limits sma_limits_default;

struct sma_config {
	struct mad_worker *mad; /**< of worker 0 */
	struct timer_wheel *wheel;
	const struct allocator *alloc;
	const struct rng *rng;
	uint64_t hz;
	char node_desc[SMA_NODE_DESC_LEN + 1];
	uint64_t node_guid;
	uint64_t system_image_guid;
	uint32_t vendor_id; /**< 24 bits */
	uint16_t device_id;
	uint32_t revision;
	uint8_t num_ports; /**< of the channel adapter */
	uint8_t resp_time; /**< RespTimeValue, a code */
	const struct sma_port_config *port; /**< copied */
	unsigned int num_managed; /**< of .port */
	struct sma_limits limits;
	/**
	 * What a port shall be from now on: after sma_start(), and whenever subnet management
	 * changes it.
	 */
	void (*apply)(void *arg, uint16_t port, const struct port_settings *s);
	/** LID_CHANGE, SM_CHANGE, PKEY_CHANGE, GID_CHANGE, CLIENT_REREGISTER; element: the port. */
	void (*event)(void *arg, const struct event *ev);
	/**
	 * An SMP for the subnet manager behind a port: a Trap(Notice), or a Set(SMInfo) that the
	 * agent has answered and that changes what the SM is. NULL: there is none.
	 */
	void (*to_sm)(void *arg, uint16_t port, uint16_t slid, const uint8_t mad[MAD_LEN]);
	void *arg; /**< of all three */
};

struct sma;

/** Registers the agents of classes 0x01 and 0x81. NULL: no memory, or those are taken. */
struct sma *sma_create(const struct sma_config *config);
void sma_destroy(struct sma *s);
/** Publish what all ports are, once. */
void sma_start(struct sma *s, uint64_t now);

/** The link of a port came up or went down: Down, or Initialize (Active if so configured). */
void sma_link(struct sma *s, uint16_t port, bool up, uint64_t now);

/** A valid packet has come in on another VL than 15: an Armed port becomes Active. */
void sma_data_heard(struct sma *s, uint16_t port, uint64_t now);

/** Totals of the appliance's workers, since its start. */
struct sma_totals {
	uint64_t pkey_violations;
	uint64_t qkey_violations;
	uint64_t link_errors; /**< VCRC or link header wrong */
	uint64_t overruns; /**< VL15 buffer, or the device's, full */
};
/** Often: PortInfo's violation counters; thresholds of traps 129 and 130, each a second's. */
void sma_port_totals(struct sma *s, uint16_t port, const struct sma_totals *t, uint64_t now);

/** A packet that was dropped for its P_Key or Q_Key: what traps 257 and 258 tell. */
struct sma_bad_key {
	bool qkey; /**< else P_Key */
	uint32_t key;
	uint16_t lid1; /**< source */
	uint16_t lid2; /**< destination */
	uint8_t sl;
	uint32_t qp1;
	uint32_t qp2;
	union gid gid1; /**< zero: no GRH */
	union gid gid2;
};
void sma_bad_key(struct sma *s, uint16_t port, const struct sma_bad_key *k, uint64_t now);

/**
 * An attribute as a Get shows it, without M_Key check: for our own SA and tools of this host.
 *
 * @param data  SMA_DATA_LEN bytes, network order
 * @return MAD status, 0: fine; MAD_STATUS_INVALID_FIELD also for a port that is not managed
 */
uint16_t sma_read(struct sma *s, uint16_t port, uint16_t attribute, uint32_t modifier,
	uint8_t data[SMA_DATA_LEN]);

/* --- traps (smp-sma 5) --- */

enum sma_trap_state {
	SMA_TRAP_FREE,
	SMA_TRAP_HELD, /**< the port is not Active, or knows no SM: waits */
	SMA_TRAP_SENT, /**< waits for TrapRepress, is repeated */
	SMA_TRAP_REPRESSED,
	SMA_TRAP_GIVEN_UP,
};

struct sma_trap_info {
	uint32_t id; /**< not reused soon */
	uint16_t port;
	uint8_t state; /**< enum sma_trap_state */
	uint16_t number; /**< 129, 144, 256, ... */
	uint8_t type; /**< urgent, security, ... */
	uint32_t sent; /**< times */
	uint64_t raised; /**< times the cause came up again meanwhile, the first included */
	uint64_t age; /**< time units since the first */
	uint64_t tid;
	uint8_t notice[SMA_DATA_LEN];
};
/** Walk those kept, newest first within a port: *cursor 0 starts. */
bool sma_trap_next(const struct sma *s, uint32_t *cursor, uint64_t now,
	struct sma_trap_info *info);
/**
 * Raise one by hand: a number of the sheet with its details taken from the port; or any notice.
 *
 * @param number  129, 130, 131, 144, 145, or 0: @p notice as it is, but for IssuerLID and Toggle
 * @retval -EINVAL  no such trap of a CA, or the port is not managed
 * @retval -EBUSY   rate limit, or too many are pending
 */
int sma_trap_send(struct sma *s, uint16_t port, uint16_t number, const uint8_t *notice,
	uint64_t now, uint32_t *id, struct error *err);
/** Stop repeating, as a TrapRepress would. @retval -ENOENT */
int sma_trap_repress(struct sma *s, uint32_t id, uint64_t now);
const char *sma_trap_state_name(uint8_t state); /* "SENT" */

/* --- the subnet manager behind a port (seed 004): is_sm --- */

#define SMA_SM_LEASE_S      30 /* an SM that has said nothing for so long is gone */
#define SMA_SM_PRIORITY_MAX 15

/**
 * It is there, and takes what comes in for it; counts in SMInfo.ActCount.
 *
 * @retval -EINVAL  no SM is configured behind this port
 */
int sma_sm_alive(struct sma *s, uint16_t port, uint64_t now);
/** It is there and says what it is, enum sma_sm_state. @retval -EINVAL  as above, or no such state */
int sma_sm_set(struct sma *s, uint16_t port, uint8_t state, uint8_t priority, uint64_t now);

/* --- what happens, to be seen --- */

/* X(name, help): single writer, relaxed readers */
#define SMA_COUNTERS(X)                                                                            \
	X(smp_get, "Get requests answered")                                                        \
	X(smp_set, "Set requests answered")                                                        \
	X(smp_bad_method, "answered 0x0008: method not supported")                                 \
	X(smp_bad_attribute, "answered 0x000C: attribute or its method not supported")             \
	X(smp_invalid_field, "answered 0x001C: a field or the modifier is not allowed")            \
	X(mkey_violations, "requests dropped for their M_Key")                                     \
	X(mkey_expired, "M_Key leases that expired")                                               \
	X(state_changes, "changes of PortState by a subnet manager")                               \
	X(link_integrity_errors, "times that LocalPhyErrors was exceeded within a second")         \
	X(buffer_overrun_errors, "times that OverrunErrors was exceeded within a second")          \
	X(traps_raised, "causes of traps")                                                         \
	X(traps_sent, "Traps sent, repeats included")                                              \
	X(traps_repressed, "traps ended by TrapRepress")                                           \
	X(traps_given_up, "traps ended without TrapRepress")                                       \
	X(traps_limited, "causes of traps beyond the rate, or without a place to keep them")       \
	X(repress_unmatched, "TrapRepress for no trap of ours")                                    \
	X(sm_smps, "Traps and changes of SMInfo for the subnet manager behind the port")           \
	X(sm_changes, "changes of its state or priority")                                          \
	X(sm_gone, "times it said nothing for too long")

struct sma_counters {
#define X(name, help) uint64_t name;
	SMA_COUNTERS(X)
#undef X
};
struct sma_counter_info {
	const char *name;
	const char *help;
};
#define SMA_COUNTER_COUNT (sizeof(struct sma_counters) / sizeof(uint64_t))
extern const struct sma_counter_info sma_counter_infos[SMA_COUNTER_COUNT];
/** NULL: the port is not managed. Any thread. */
const struct sma_counters *sma_counters(const struct sma *s, uint16_t port);

#endif
