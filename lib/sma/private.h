/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_PRIVATE_H
#define SMA_PRIVATE_H

/* Private to lib/sma: a managed port, and the functions its files share. */

#include "base/token_bucket.h"
#include "sma/sma.h"
#include "wire/bytes.h"

#define SMA_VLARB_TABLES  4 /* low 0-31, low 32-63, high 0-31, high 32-63 */
#define SMA_VLARB_ENTRIES 64 /* VLArbHighCap, VLArbLowCap */
#define SMA_BLOCK_GUIDS   8
#define SMA_BLOCK_PKEYS   32

/* A trap, pending or finished: trap.c */
struct sma_trap {
	struct sma_trap_info info; /* .state FREE: unused */
	struct sma_port *port;
	struct timer timer; /* next repeat */
	uint64_t first; /* when its cause first occurred */
	uint64_t last; /* when it was last sent; valid if .info.sent is not 0 */
	bool own_lid; /* the details contain our LID, which may change */
	bool calling; /* .call has been waiting for the sink since .called */
	uint64_t called;
	mad_handle call;
};

struct sma_port {
	struct sma *sma;
	struct sma_port_config config;
	uint16_t index;
	bool link_up;

	/* the attributes, bytes in network order */
	uint8_t info[SMA_DATA_LEN]; /* PortInfo; sma_port_info_get() fills in what is not stored */
	uint64_t guid[PORT_GIDS_MAX];
	uint16_t pkey[PORT_PKEYS_MAX];
	uint8_t sltovl[8];
	uint8_t vlarb[SMA_VLARB_TABLES][SMA_DATA_LEN];
	bool led;

	/* the subnet manager behind the port: sm.c */
	uint8_t sm_state;
	uint32_t sm_act_count;
	bool sm_alive; /* heard of within the lease */
	struct timer sm_lease;

	/* M_Key: mkey.c */
	struct timer lease;
	bool lease_running;
	uint16_t mkey_violations;

	struct port_settings applied; /* argument of the last config.apply(): apply.c */
	bool started;

	/* current totals, and the totals when the PortInfo counters were last cleared */
	struct sma_totals totals;
	struct sma_totals cleared;
	/* thresholds: totals when counting began, and the end of the second: sma.c */
	struct sma_totals since;
	uint64_t window_end;

	struct sma_trap trap[SMA_TRAPS_MAX];
	struct token_bucket trap_rate;
	struct sma_counters counters;
};

struct sma {
	struct sma_config config;
	uint32_t next_trap_id;
	struct sma_port *port_of[SMA_PORTS_MAX]; /* sma_port_find() */
	unsigned int num_ports;
	struct sma_port port[];
};

/* Find a port by local port index; NULL: not managed. */
static inline struct sma_port *
sma_port_find(const struct sma *s, uint32_t index)
{
	return index < SMA_PORTS_MAX ? s->port_of[index] : NULL;
}

/* A request SMP that the agent processes; made by agent.c. */
struct smp {
	struct sma_port *port; /* receiving port */
	const uint8_t *mad; /* the request */
	uint8_t method;
	uint16_t attribute;
	uint32_t modifier;
	uint64_t now;
	uint16_t slid; /* the requester's LID */
	bool hide_m_key; /* set by mkey.c: Get(PortInfo) shows M_Key 0 */
};

#define sma_count(p, name)                                                                         \
	__atomic_store_n(&(p)->counters.name, (p)->counters.name + 1, __ATOMIC_RELAXED)

/* --- attribute.c: one row per attribute --- */

struct sma_attribute {
	uint16_t id;
	const char *name;
	/*
	 * Write the attribute to data, which is zero before. @return MAD status; on INVALID_FIELD
	 * data stays zero
	 */
	uint16_t (*get)(const struct smp *smp, struct sma_port *p, uint8_t *data);
	/*
	 * Set the attribute from the request's data, and apply changed port settings. The caller
	 * answers with a get() afterwards, whatever the status (smp-sma 3). NULL: read only,
	 * 0x000C.
	 */
	uint16_t (*set)(const struct smp *smp, struct sma_port *p, const uint8_t *data);
};
const struct sma_attribute *sma_attribute_find(uint16_t id);

/* True if a modifier's port number means this port. A CA allows 0 or the port's own number. */
bool sma_port_number(const struct sma_port *p, uint32_t number);

/* port_info.c: PortInfo, one table row and rule per field (port_info.h) */
uint16_t sma_port_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_port_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);

/* port_info_values.c */
/* PortInfo before any Set. */
void sma_port_info_init(struct sma_port *p);
uint8_t sma_port_state(const struct sma_port *p);
uint16_t sma_lid(const struct sma_port *p);
uint16_t sma_master_sm_lid(const struct sma_port *p);
uint8_t sma_master_sm_sl(const struct sma_port *p);
uint8_t sma_subnet_timeout(const struct sma_port *p);
uint32_t sma_capability_mask(const struct sma_port *p);
/* Number of data VLs for a code of VLCap or OperVLs. */
unsigned int sma_vls(uint8_t code);

/* port_state.c */
void sma_port_state_init(struct sma_port *p);
/* Apply PortState and PortPhysState of a Set(PortInfo). @retval false one of them is not allowed */
bool sma_port_state_set(struct sma_port *p, uint8_t state, uint8_t phys, uint64_t now);
/* A valid packet arrived on a data VL. @retval true the state has changed */
bool sma_port_state_data(struct sma_port *p);
void sma_port_state_link(struct sma_port *p, bool up);

/* node.c, tables.c: get() and set() of the other attributes */
uint16_t sma_notice_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_node_desc_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_node_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_vendor_diag_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_led_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_led_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
uint16_t sma_guid_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_guid_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
uint16_t sma_pkey_table_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_pkey_table_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
uint16_t sma_sltovl_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_sltovl_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
uint16_t sma_vlarb_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_vlarb_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
void sma_tables_init(struct sma_port *p);

/*
 * apply.c: derive the port's settings from its attributes. If they changed, apply them, send events
 * for the differences and resume traps held for want of an SM or an Active port.
 */
void sma_apply(struct sma_port *p, uint64_t now);
/* Send an event of this port to config.event(). */
void sma_tell(const struct sma_port *p, enum event_type type);

/* sm.c */
uint16_t sma_sm_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_sm_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
/* Pass an SMP to the subnet manager behind the port. @retval false there is none */
bool sma_sm_give(const struct smp *smp);
void sma_sm_init(struct sma_port *p);
void sma_sm_fini(struct sma_port *p);

/* agent.c: @retval -EEXIST, -ENOSPC as mad_agent_add() */
int sma_agents_add(struct sma *s);

/* mkey.c */
enum sma_mkey {
	SMA_MKEY_VALID,
	SMA_MKEY_ALLOWED, /* wrong, but ProtectBits let this Get pass */
	SMA_MKEY_FAILED,
};
/* Check the M_Key (smp-sma 4): also starts the lease, counts, raises trap 256, sets hide_m_key. */
enum sma_mkey sma_mkey_check(struct smp *smp, struct sma_port *p);
void sma_mkey_init(struct sma_port *p);
void sma_mkey_fini(struct sma_port *p);

/* notice.c: build the notices of smp-sma 5 */
/* number: 129..131 */
void sma_notice_link(struct sma_port *p, uint16_t number, uint8_t notice[SMA_DATA_LEN]);
void sma_notice_change(struct sma_port *p, uint16_t flags, uint8_t notice[SMA_DATA_LEN]); /* 144 */
void sma_notice_image(struct sma_port *p, uint8_t notice[SMA_DATA_LEN]); /* 145 */
void sma_notice_mkey(struct sma_port *p, const struct smp *smp, uint8_t notice[SMA_DATA_LEN]);
void sma_notice_key(struct sma_port *p, const struct sma_bad_key *k, uint8_t notice[SMA_DATA_LEN]);

/* trap.c: raise, repeat, repress */
/* @return the trap; NULL: rate limit or full table. A pending trap of the same cause is counted. */
struct sma_trap *sma_trap_raise(struct sma_port *p, const uint8_t notice[SMA_DATA_LEN],
	uint64_t now);
/* Process a TrapRepress that passed the M_Key check. */
void sma_trap_repressed(struct sma_port *p, const uint8_t *mad, uint64_t now);
/* The port's state or LIDs changed: send held traps, or hold those that wait for the sink. */
void sma_trap_resume(struct sma_port *p, uint64_t now);
/* The newest notice that is not repressed, for Get(Notice). @retval false none */
bool sma_trap_newest(const struct sma_port *p, uint8_t notice[SMA_DATA_LEN]);
void sma_trap_init(struct sma_port *p);
void sma_trap_fini(struct sma_port *p);

#endif
