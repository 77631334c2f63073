/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_PRIVATE_H
#define SMA_PRIVATE_H

/* Private to lib/sma: a managed port, and the seams between its files. */

#include <string.h>

#include "base/token_bucket.h"
#include "sma/sma.h"
#include "wire/bytes.h"

#define SMA_VLARB_TABLES 4 /* low 0-31, low 32-63, high 0-31, high 32-63 */
#define SMA_VLARB_ENTRIES 64 /* VLArbHighCap, VLArbLowCap */
#define SMA_BLOCK_GUIDS  8
#define SMA_BLOCK_PKEYS  32

/* A trap being told, or that was told: trap.c */
struct sma_trap {
	struct sma_trap_info info; /* .state FREE: unused */
	struct sma_port *port;
	struct timer timer; /* next repeat */
	uint64_t first; /* when its cause came up first */
	uint64_t last; /* when it was sent last, if .info.sent is not 0 */
	bool own_lid; /* its details have our LID, which may change */
	bool calling; /* .call is on its way out, since .called */
	uint64_t called;
	mad_handle call;
};

struct sma_port {
	struct sma *sma;
	struct sma_port_config config;
	uint16_t index;
	bool link_up;

	/* the attributes, network order where they are bytes */
	uint8_t info[SMA_DATA_LEN]; /* PortInfo but for its violation counters */
	uint64_t guid[PORT_GIDS_MAX];
	uint16_t pkey[PORT_PKEYS_MAX];
	uint8_t sltovl[8];
	uint8_t vlarb[SMA_VLARB_TABLES][SMA_DATA_LEN];
	bool led;

	/* the subnet manager behind it: sm.c */
	uint8_t sm_state;
	uint32_t sm_act_count;
	bool sm_alive; /* it has said so within the lease */
	struct timer sm_lease;

	/* M_Key: mkey.c */
	struct timer lease;
	bool lease_running;
	uint16_t mkey_violations;

	struct port_settings applied; /* what config.apply was told last: apply.c */
	bool started;

	/* totals now, and when their PortInfo counters were last cleared */
	struct sma_totals totals;
	struct sma_totals cleared;
	/* where counting for the thresholds began, and until when: sma.c */
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

/* By local port index; NULL: not managed */
static inline struct sma_port *
sma_port_find(const struct sma *s, uint32_t index)
{
	return index < SMA_PORTS_MAX ? s->port_of[index] : NULL;
}

/* A request SMP on its way through the agent: agent.c makes it. */
struct smp {
	struct sma_port *port; /* it came in on */
	const uint8_t *mad; /* of the request */
	uint8_t method;
	uint16_t attribute;
	uint32_t modifier;
	uint64_t now;
	uint16_t slid; /* where it came from */
	bool hide_m_key; /* mkey.c: PortInfo shows 0 */
};

#define sma_count(p, name)                                                                         \
	__atomic_store_n(&(p)->counters.name, (p)->counters.name + 1, __ATOMIC_RELAXED)

/* --- attribute.c: one row per attribute --- */

struct sma_attribute {
	uint16_t id;
	const char *name;
	/*
	 * Into data, which is zero before. @return MAD status; with INVALID_FIELD data stays zero
	 */
	uint16_t (*get)(const struct smp *smp, struct sma_port *p, uint8_t *data);
	/*
	 * From the request's data; the caller answers with a get() afterwards, whatever the status
	 * (smp-sma 3). Changes of a port's settings it applies itself. NULL: read only, 0x000C.
	 */
	uint16_t (*set)(const struct smp *smp, struct sma_port *p, const uint8_t *data);
};
const struct sma_attribute *sma_attribute_find(uint16_t id);

/* Does a modifier's port number mean this port? On a CA: 0, or the number itself. */
bool sma_port_number(const struct sma_port *p, uint32_t number);

/* port_info.c: fields, each with its rule, in one table: port_info.h */
uint16_t sma_port_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_port_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
/* PortInfo before anybody has set it. */
void sma_port_info_init(struct sma_port *p);
uint8_t sma_port_state(const struct sma_port *p);
uint16_t sma_lid(const struct sma_port *p);
uint16_t sma_master_sm_lid(const struct sma_port *p);
uint8_t sma_master_sm_sl(const struct sma_port *p);
uint8_t sma_subnet_timeout(const struct sma_port *p);
uint32_t sma_capability_mask(const struct sma_port *p);

/* port_state.c */
void sma_port_state_init(struct sma_port *p);
/* PortState and PortPhysState of a Set(PortInfo). @retval false one of them is not allowed */
bool sma_port_state_set(struct sma_port *p, uint8_t state, uint8_t phys, uint64_t now);
/* A valid packet came in on a data VL. @retval true it has changed the state */
bool sma_port_state_data(struct sma_port *p);
void sma_port_state_link(struct sma_port *p, bool up);

/* node.c, tables.c: the other attributes; sma_attribute's get() and set() */
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
/* Data VLs of a code of VLCap or OperVLs. */
unsigned int sma_vls(uint8_t code);

/*
 * apply.c: settings out of attributes, to the engine; events for what differs from the last ones;
 * traps that were held for want of an SM or an Active port
 */
void sma_apply(struct sma_port *p, uint64_t now);
/* An event of this port, to whoever asked for events. */
void sma_tell(const struct sma_port *p, enum event_type type);

/* sm.c */
uint16_t sma_sm_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data);
uint16_t sma_sm_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data);
/* An SMP that is the SM's to see. @retval false there is none behind this port */
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
/* The check of smp-sma 4 with all its effects: lease, violations, trap 256, smp->hide_m_key. */
enum sma_mkey sma_mkey_check(struct smp *smp, struct sma_port *p);
void sma_mkey_init(struct sma_port *p);
void sma_mkey_fini(struct sma_port *p);

/* notice.c: the notices of smp-sma 5 as bytes */
/* 129..131 */
void sma_notice_link(struct sma_port *p, uint16_t number, uint8_t notice[SMA_DATA_LEN]);
void sma_notice_change(struct sma_port *p, uint16_t flags, uint8_t notice[SMA_DATA_LEN]); /* 144 */
void sma_notice_image(struct sma_port *p, uint8_t notice[SMA_DATA_LEN]); /* 145 */
void sma_notice_mkey(struct sma_port *p, const struct smp *smp, uint8_t notice[SMA_DATA_LEN]);
void sma_notice_key(struct sma_port *p, const struct sma_bad_key *k, uint8_t notice[SMA_DATA_LEN]);

/* trap.c: raise, repeat, repress */
/* @return the trap, or NULL: limited. The same notice again only counts. */
struct sma_trap *sma_trap_raise(struct sma_port *p, const uint8_t notice[SMA_DATA_LEN],
	uint64_t now);
/* A TrapRepress that passed the M_Key check. */
void sma_trap_repressed(struct sma_port *p, const uint8_t *mad, uint64_t now);
/* State or LIDs of the port have changed: what is held may go, what was to go may be held. */
void sma_trap_resume(struct sma_port *p, uint64_t now);
/* The newest notice that is not repressed, for Get(Notice). @retval false none */
bool sma_trap_newest(const struct sma_port *p, uint8_t notice[SMA_DATA_LEN]);
void sma_trap_init(struct sma_port *p);
void sma_trap_fini(struct sma_port *p);

#endif
