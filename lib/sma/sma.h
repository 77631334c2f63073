/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_SMA_H
#define SMA_SMA_H

/**
 * @file
 * The subnet management agent of this appliance's native IB ports (smp-sma): it answers SMPs on
 * QP0, keeps what subnet management has set, protects it by the M_Key, and sends traps until they
 * are repressed.
 *
 * One struct sma serves all ports of the channel adapter. It belongs to worker 0, the owner of QP0:
 * call these functions only there, except sma_counters(). No function reads a clock, allocates
 * after creation, logs or calls EAL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/timer_wheel.h"
#include "mad/mad.h"
#include "port/port.h"
#include "rc/verbs_types.h"

#define SMA_PORTS_MAX     64
#define SMA_DATA_LEN      64 /* data of every attribute */
#define SMA_NODE_DESC_LEN 64
#define SMA_TRAPS_MAX     32 /* traps kept per port, pending or finished */

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
 * PortInfo.CapabilityMask (smp-sma 3): what we support. Neither it nor NodeDescription changes
 * while the agent runs, so only the operator can raise trap 144.
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
/** Bits of all our ports, including RoCE ports, which have no subnet management agent. */
#define SMA_CAP_ANY_PORT                                                                           \
	(SMA_CAP_AUTO_MIGRATION | SMA_CAP_SYSTEM_IMAGE | SMA_CAP_CM | SMA_CAP_VENDOR_CLASS)

/** SMInfo.SMState */
enum sma_sm_state {
	SMA_SM_NOT_ACTIVE,
	SMA_SM_DISCOVERING,
	SMA_SM_STANDBY,
	SMA_SM_MASTER,
};

/** State of a port before a subnet manager configures it. */
struct sma_port_config {
	uint16_t port; /**< local port index: port number - 1 */
	uint64_t guid;
	uint64_t gid_prefix; /**< 0: fe80::/64 */
	uint16_t pkeys[PORT_PKEYS_MAX];
	unsigned int num_pkeys; /**< 0: one P_Key, 0xFFFF */
	/* addresses for operation without a subnet manager */
	uint16_t lid; /**< 0: none */
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	bool active; /**< come up in state Active instead of Initialize */
	uint64_t m_key;
	uint8_t m_key_protect; /**< ProtectBits, 0..3 */
	uint16_t m_key_lease; /**< seconds, 0: no lease */
	uint16_t mtu; /**< largest MTU, bytes: 256..4096 */
	uint8_t vl_cap; /**< VLCap code, 1..5 */
	/* PortInfo codes (smp-sma 3) of the widths and speeds that the device supports */
	uint8_t width;
	uint8_t speed;
	uint8_t speed_ext;
	bool is_sm; /**< a subnet manager runs behind this port: answer SMInfo */
	uint8_t sm_priority;
	uint8_t sm_state; /**< initial SMInfo.SMState */
};

struct sma_limits {
	uint32_t trap_interval_ms; /**< between repeats, unless SubnetTimeOut is longer */
	uint32_t trap_retries; /**< repeats before a trap that is not repressed is given up */
	uint32_t trap_rate; /**< most new traps per second and port */
	uint32_t trap_burst;
};
extern const struct sma_limits sma_limits_default;

struct sma_config {
	struct mad_worker *mad; /**< worker 0's */
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
	uint8_t num_ports; /**< ports of the channel adapter */
	uint8_t resp_time; /**< RespTimeValue code */
	const struct sma_port_config *port; /**< copied */
	unsigned int num_managed; /**< entries of .port */
	struct sma_limits limits;
	/**
	 * Apply a port's settings: called by sma_start(), and whenever subnet management changes
	 * them.
	 */
	void (*apply)(void *arg, uint16_t port, const struct port_settings *s);
	/** LID_CHANGE, SM_CHANGE, PKEY_CHANGE, GID_CHANGE, CLIENT_REREGISTER; element: the port. */
	void (*event)(void *arg, const struct event *ev);
	/**
	 * An SMP for the subnet manager behind a port: a Trap(Notice), or a Set(SMInfo) that the
	 * agent accepted and that changes the SM's state. NULL: there is no SM.
	 */
	void (*to_sm)(void *arg, uint16_t port, uint16_t slid, const uint8_t mad[MAD_LEN]);
	void *arg; /**< of apply(), event() and to_sm() */
};

struct sma;

/** Register the agents of classes 0x01 and 0x81. NULL: no memory, or a class has an agent. */
struct sma *sma_create(const struct sma_config *config);
void sma_destroy(struct sma *s);
/** Call config.apply() for all ports, once. */
void sma_start(struct sma *s, uint64_t now);

/** A port's link came up (state Initialize, or Active if configured so) or went down (Down). */
void sma_link(struct sma *s, uint16_t port, bool up, uint64_t now);

/** A valid packet arrived on a VL other than 15: an Armed port becomes Active. */
void sma_data_heard(struct sma *s, uint16_t port, uint64_t now);

/** A port's totals over all workers, since start. */
struct sma_totals {
	uint64_t pkey_violations;
	uint64_t qkey_violations;
	uint64_t link_errors; /**< packets with a wrong VCRC or link header */
	uint64_t overruns; /**< packets lost because the VL15 or device buffer was full */
};
/**
 * Call often: feeds PortInfo's violation counters, and the thresholds of traps 129 and 130, which
 * count per second.
 */
void sma_port_totals(struct sma *s, uint16_t port, const struct sma_totals *t, uint64_t now);

/** A packet dropped for its P_Key or Q_Key: the data of traps 257 and 258. */
struct sma_bad_key {
	bool qkey; /**< true: Q_Key, false: P_Key */
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
 * Read an attribute like a Get, but without M_Key check: for our own SA and tools of this host.
 *
 * @param data  SMA_DATA_LEN bytes, network order
 * @return MAD status; MAD_STATUS_INVALID_FIELD also for a port that is not managed
 */
uint16_t sma_read(struct sma *s, uint16_t port, uint16_t attribute, uint32_t modifier,
	uint8_t data[SMA_DATA_LEN]);

/* --- traps (smp-sma 5) --- */

enum sma_trap_state {
	SMA_TRAP_FREE,
	SMA_TRAP_HELD, /**< waits until the port is Active and knows an SM */
	SMA_TRAP_SENT, /**< sent and repeated until TrapRepress */
	SMA_TRAP_REPRESSED,
	SMA_TRAP_GIVEN_UP,
};

struct sma_trap_info {
	uint32_t id; /**< unique for a long time */
	uint16_t port;
	uint8_t state; /**< enum sma_trap_state */
	uint16_t number; /**< 129, 144, 256, ... */
	uint8_t type; /**< urgent, security, ... */
	uint32_t sent; /**< times sent */
	uint64_t raised; /**< times the cause occurred, the first time included */
	uint64_t age; /**< time units since the cause first occurred */
	uint64_t tid;
	uint8_t notice[SMA_DATA_LEN];
};
/** Walk the traps of all ports, newest first within a port; start with *cursor 0. */
bool sma_trap_next(const struct sma *s, uint32_t *cursor, uint64_t now, struct sma_trap_info *info);
/**
 * Raise a trap for the operator.
 *
 * @param number  129, 130, 131, 144 or 145: details are taken from the port; 0: send @p notice,
 * with
 *                IssuerLID and Toggle set by the agent
 * @retval -EINVAL  no such trap of a CA, or the port is not managed
 * @retval -EBUSY   rate limit, or too many are pending
 */
int sma_trap_send(struct sma *s, uint16_t port, uint16_t number, const uint8_t *notice,
	uint64_t now, uint32_t *id, struct error *err);
/** Stop repeating a trap, like a TrapRepress. @retval -ENOENT */
int sma_trap_repress(struct sma *s, uint32_t id, uint64_t now);
const char *sma_trap_state_name(uint8_t state); /* "SENT" */

/* --- the subnet manager behind a port with is_sm (seed 004) --- */

#define SMA_SM_LEASE_S      30 /* an SM silent for this long counts as gone */
#define SMA_SM_PRIORITY_MAX 15

/**
 * The SM is alive and receives its SMPs. Counts SMInfo.ActCount.
 *
 * @retval -EINVAL  no SM is configured behind this port
 */
int sma_sm_alive(struct sma *s, uint16_t port, uint64_t now);
/** The SM is alive and tells its state (enum sma_sm_state) and priority. @retval -EINVAL */
int sma_sm_set(struct sma *s, uint16_t port, uint8_t state, uint8_t priority, uint64_t now);

/* --- counters --- */

/* X(name, help): one writer, relaxed readers */
/* clang-format off */
#define SMA_COUNTERS(X)                                                                            \
	X(smp_get, "Get requests answered")                                                        \
	X(smp_set, "Set requests answered")                                                        \
	X(smp_bad_method, "answered 0x0008: method not supported")                                 \
	X(smp_bad_attribute, "answered 0x000C: attribute or its method not supported")             \
	X(smp_invalid_field, "answered 0x001C: a field or the modifier is not allowed")            \
	X(mkey_violations, "requests dropped for their M_Key")                                     \
	X(mkey_expired, "M_Key leases that expired")                                               \
	X(state_changes, "changes of PortState by a subnet manager")                               \
	X(link_integrity_errors, "times that LocalPhyErrors was exceeded within one second")       \
	X(buffer_overrun_errors, "times that OverrunErrors was exceeded within one second")        \
	X(traps_raised, "causes of traps")                                                         \
	X(traps_sent, "Traps sent, repeats included")                                              \
	X(traps_repressed, "traps ended by TrapRepress")                                           \
	X(traps_given_up, "traps ended without TrapRepress")                                       \
	X(traps_limited, "causes of traps dropped by the rate limit or a full table")              \
	X(repress_unmatched, "TrapRepress for no trap of ours")                                    \
	X(sm_smps, "Traps and changes of SMInfo for the subnet manager behind the port")           \
	X(sm_changes, "changes of that subnet manager's state or priority")                        \
	X(sm_gone, "times that subnet manager's lease expired")
/* clang-format on */

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
/** Counters of a port; any thread may read them. NULL: the port is not managed. */
const struct sma_counters *sma_counters(const struct sma *s, uint16_t port);

#endif
