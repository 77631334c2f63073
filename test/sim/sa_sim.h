/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_SA_SIM_H
#define SIM_SA_SIM_H

/**
 * @file
 * Subnet administration in the simulation: node 0 is the SA, node 1 is its client, both on RC's
 * network.
 *
 * sa_node.c runs lib/mad, lib/store and lib/sa on a node, with a virtual store thread; sa_model.c
 * is the disk that survives restarts, and the reference for answers; sa_flow.c sends queries and
 * checks the answers; sa_trace.c counts each transaction's packets, so that an error is accepted
 * only after all retries; sa_hostile.c is a hostile peer; sa_scenario.c has the scripts.
 */

#include "mad/mad.h"
#include "sa/client.h"
#include "sa/lease_clock.h"
#include "sa/sa.h"
#include "script.h"
#include "store/store.h"

#define SA_LCORES_MAX  3
#define SA_QUERIES_MAX 64
#define SA_SESSIONS    128 /* most sessions of a worker */
#define SA_WRITES      64
#define SA_SERVER      0
#define SA_CLIENT      1
/* LIDs: the big table uses those from 1 on, then come the nodes, then records that queries write */
#define SA_LID(node) ((uint16_t)(0x4F01 + (node)))
#define SA_OWN_LIDS  0x6000
#define SA_SM_KEY    UINT64_C(0x5EC2E7)

struct sa_side;
struct sa_model;
struct sa_script;

/* --- sa_node.c --- */

struct sa_lcore {
	struct sa_side *side;
	unsigned int id;
	struct mad_worker *mad;
	struct timer_wheel *wheel;
	struct sa_worker *sa; /**< NULL on the client */
	struct sa_client *client;
	struct store_reader *reader;
	uint64_t slice_at; /**< slow server: when queries may continue */
	struct mad_handle_state {
		mad_handle handle;
		uint8_t state;
		uint8_t group;
	} seen[SA_SESSIONS]; /**< states at the last check, for coverage */
};

struct sa_done {
	struct sa_write *write;
	uint64_t at;
};

/** The SA of a node, or its client. Members before lcore[] survive a restart. */
struct sa_side {
	struct sim *sim;
	struct sim_node *node;
	bool server;
	bool down; /**< crashed or stopped: it receives and sends nothing */
	bool watched; /**< session states are checked after each step */
	bool memory_only; /**< no disk: the script adds all records again after a restart */
	unsigned int lcores;
	uint64_t hash_key;
	struct mad_limits limits;
	struct port_attr port;
	uint64_t max_old_bytes;
	unsigned int max_versions;
	enum sa_trust trust;
	uint64_t store_latency; /**< longest delay of the virtual store thread */
	uint64_t slice; /**< time between a slow server's slices; 0: none */
	unsigned int slice_budget;
	unsigned int refuse; /**< chance in 1/10000 that the store thread's queue is full */
	unsigned int restarts;
	uint64_t down_until;
	uint64_t expire_step; /**< time between looks for leases that have ended */
	uint64_t set_back; /**< seconds by which its wall clock has been set back */
	struct lease_clock leases;

	/* lost in a restart */
	struct sa_lcore lcore[SA_LCORES_MAX];
	struct store *store;
	struct sa *sa;
	struct sa_write *writes[SA_WRITES];
	unsigned int num_writes;
	bool store_busy; /**< an event of the store thread is scheduled */
	struct sa_done done[2 * SA_WRITES];
	unsigned int num_done;
	bool ticking;
};

void sa_side_init(struct sa_side *side, struct sim *s, unsigned int node);
/** Start with the contents of the disk. */
void sa_side_start(struct sa_side *side);
void sa_side_stop(struct sa_side *side);
/** Stop at once, and start again after @p pause. */
void sa_side_restart(struct sa_side *side, uint64_t pause);
enum verdict sa_side_receive(struct sa_side *side, const struct packet *pkt);
/** One turn. @return more to do at once */
bool sa_side_run(struct sa_side *side);
/** When a timer is due. */
uint64_t sa_side_next(const struct sa_side *side);
/** @return true if no sessions, held versions and memory are left */
bool sa_side_idle(const struct sa_side *side);
void sa_side_check_idle(struct sa_side *side);
/** Address of the other node's QP1. */
struct mad_peer sa_peer(const struct sa_script *sc, unsigned int from);
union gid sa_gid(const struct sa_script *sc, unsigned int node);

/* --- sa_model.c --- */

/** Possible answers of a query: a checksum of each version of the database during the query. */
struct sa_snapshot {
	uint64_t count;
	uint64_t sum;
};

struct sa_watch {
	struct sa_watch *next;
	uint32_t tables; /**< bit per table */
	uint32_t first_rid, last_rid;
	const struct sa_record_type *type; /**< with .mask: of the template */
	uint64_t mask;
	uint8_t tmpl[SA_RECORD_MAX];
	struct sa_snapshot now;
	struct sa_snapshot *allowed;
	unsigned int num_allowed, size_allowed;
	/** A commit changed something: its operations one by one, then NULL. */
	void (*op)(void *arg, const struct store_op *op, const uint8_t *old);
	void *arg;
};

struct sa_model_record {
	uint32_t rid;
	uint16_t len;
	uint8_t table;
	bool live;
	const uint8_t *bytes;
};

enum sa_crash {
	SA_CRASH_NONE,
	SA_CRASH_BEFORE, /**< the batch is lost */
	SA_CRASH_AFTER, /**< the batch is durable, but not acknowledged */
	SA_DISK_FULL, /**< the batch fails, the node goes on */
};

struct sa_model {
	struct sim *sim;
	struct sa_model_record *rec;
	uint32_t records, size;
	uint32_t *slot;
	uint32_t slot_mask;
	struct sa_model_chunk *chunks;
	uint64_t count[STORE_TABLES_MAX];
	uint64_t commits;
	struct sa_watch *watches;
	enum sa_crash crash; /**< happens at a later batch, */
	unsigned int crash_after; /**< after this many others */
	struct sa_side *side;
	bool seeding; /**< the script, not a batch, adds records */
};

struct sa_model *sa_model_create(struct sim *s);
void sa_model_destroy(struct sa_model *m);
void sa_model_put(struct sa_model *m, unsigned int table, uint32_t rid, const uint8_t *bytes,
	uint16_t len);
const struct sa_model_record *sa_model_get(const struct sa_model *m, unsigned int table,
	uint32_t rid);
/** @return any present record of a table, or NULL */
const struct sa_model_record *sa_model_any(struct sa_model *m, unsigned int table);
/** The disk as backend of the store. */
struct store_backend sa_model_backend(struct sa_model *m);
uint64_t sa_record_sum(unsigned int table, const uint8_t *bytes, uint16_t len);
void sa_watch_start(struct sa_model *m, struct sa_watch *w);
void sa_watch_stop(struct sa_model *m, struct sa_watch *w);
bool sa_watch_allows(const struct sa_watch *w, uint64_t count, uint64_t sum);
/** Compare a version of the store with the disk. */
void sa_model_check_store(struct sa_model *m, const struct store_version *v);

/* --- sa_records.c --- */

const struct sa_record_type *sa_type_of(unsigned int table);
/** The i-th RID of a type, from @p lid on. */
uint32_t sa_nth_rid(const struct sa_record_type *t, uint16_t lid, uint32_t i);
/** @return number of LIDs that this many records use */
uint32_t sa_lids(const struct sa_record_type *t, uint32_t records);
/** Fill the components of a record with random bytes. */
void sa_random_record(struct sim *s, const struct sa_record_type *t, uint32_t rid, uint8_t *rec);
/** Fill the disk: the big table, and a few records of the others. */
void sa_fill(struct sa_script *sc);
/** A random type whose RIDs contain a LID. */
const struct sa_record_type *sa_random_type(struct sim *s);

/* --- sa_trace.c --- */

struct sa_session {
	struct sa_session *chain;
	uint64_t tid;
	uint32_t expected[2]; /**< next segment in order, of data sent by node [] */
	uint32_t acked[2]; /**< of data sent by node [] */
	uint32_t final[2]; /**< class version 1: number of the last segment; 0: not sent yet */
	/* since the last progress */
	uint32_t requests; /**< first packets, or repeated last segments */
	uint32_t resends; /**< Resend requests, ACKs repeated */
	uint32_t data[2]; /**< most copies of one segment sent by node [] */
	uint32_t lost;
	uint32_t last_data[2];
	uint64_t progress; /**< time of the last progress */
	uint64_t abort_status; /**< RMPP status that a node sent, bit per status - 64 * (>= 118) */
	uint32_t frames[2], lost_in_all;
};

struct sa_trace {
	struct sa_session *bucket[256];
};

enum sa_fate {
	SA_LOST,
	SA_DELIVERED,
};
/** Count a frame of a node, and its fate in the network. */
void sa_trace_frame(struct sa_script *sc, unsigned int from, const struct packet *pkt,
	enum sa_fate fate);
const struct sa_session *sa_trace_find(const struct sa_trace *t, uint64_t tid);
void sa_trace_free(struct sa_trace *t);
/** FragmentFlag converted to the default bit order, whichever order the script uses. */
uint8_t sa_v1_flags(const struct sa_script *sc, const uint8_t *mad);
/** Print a MAD as text. */
void sa_print_mad(const struct sa_script *sc, const uint8_t *mad, char *buf, size_t size);

/* --- sa_flow.c --- */

enum sa_ask {
	SA_ASK_TABLE, /**< a whole table */
	SA_ASK_TEMPLATE,
	SA_ASK_RANGE, /**< version 1 */
	SA_ASK_BULK, /**< version 1 */
	SA_ASK_GET,
	SA_ASK_GET_NONE, /**< Get of a missing record */
	SA_ASK_PATH,
	SA_ASK_ADD, /**< Config, version 1 */
	SA_ASK_EDIT,
	SA_ASK_DELETE,
	SA_ASK_SERVICE, /**< Set of a ServiceRecord, then its Delete */
	SA_ASK_JOIN, /**< join of a multicast group, then leave */
	SA_ASK_SUBSCRIBE, /**< InformInfo */
	SA_ASK_KINDS
};
#define SA_ASKS(k) (1u << (k))
#define SA_ASKS_READ                                                                               \
	(SA_ASKS(SA_ASK_TABLE) | SA_ASKS(SA_ASK_TEMPLATE) | SA_ASKS(SA_ASK_RANGE) |                \
		SA_ASKS(SA_ASK_BULK) | SA_ASKS(SA_ASK_GET) | SA_ASKS(SA_ASK_GET_NONE) |            \
		SA_ASKS(SA_ASK_PATH))
#define SA_ASKS_CONFIG (SA_ASKS(SA_ASK_ADD) | SA_ASKS(SA_ASK_EDIT) | SA_ASKS(SA_ASK_DELETE))
#define SA_ASKS_SET    (SA_ASKS(SA_ASK_SERVICE) | SA_ASKS(SA_ASK_JOIN) | SA_ASKS(SA_ASK_SUBSCRIBE))
#define SA_ASKS_ALL    (SA_ASKS_READ | SA_ASKS_CONFIG | SA_ASKS_SET)

/** One query of the client, until its answer has been checked. */
struct sa_flow {
	struct sa_script *script;
	struct sa_flow *next;
	enum sa_ask kind;
	unsigned int lcore;
	unsigned int index; /**< its number, which chooses its own LIDs */
	struct sa_query query;
	struct sa_watch watch;
	mad_handle handle;
	uint64_t tid;
	uint64_t asked;
	unsigned int restarts; /**< restarts of the server when the query was sent */
	uint64_t count, sum;
	uint32_t last_rid;
	uint32_t rid; /**< of the last received record */
	bool unordered;
	bool done;
	bool failed; /**< failed for an acceptable reason */
	bool orphan; /**< the client has stopped: no answer is due */
	bool fickle; /**< the client itself ends the query before the last record */
	uint64_t refuse_at; /**< number of records after which it does; or it cancels */
	bool doomed; /**< sent to the hostile peer: it may end in any way */
	/* writes */
	uint8_t *records;
	uint32_t *rids;
	uint32_t in_batch; /**< operations of this query in the current batch */
	uint32_t executed; /**< number of times that it was executed */
	uint16_t lid; /**< first of its own LIDs */
	uint64_t id; /**< ServiceID, or part of the MGID */
	bool again; /**< it deletes what a Set or join has added */
};

struct sa_flow *sa_flow_create(struct sa_script *sc, enum sa_ask kind);
/** Make the query that deletes what @p first has added. */
struct sa_flow *sa_flow_undo(struct sa_script *sc, const struct sa_flow *first);
void sa_flow_free(struct sa_flow *f);
/** Send the query. @retval false  no room at present */
bool sa_flow_ask(struct sa_flow *f);
/** The client has stopped: no answer is due. */
void sa_flow_orphan(struct sa_flow *f);

/* --- sa_scenario.c --- */

struct sa_script {
	struct sim *sim;
	struct sa_side side[SIM_NODES];
	struct sa_model *model;
	struct sa_trace trace;
	enum encap encap;
	bool grh;
	struct sa_flow *flows; /**< present and finished queries */
	unsigned int planned; /**< queries not sent yet */
	unsigned int under_way;
	unsigned int at_once; /**< most queries at a time */
	unsigned int asked;
	uint32_t kinds;
	unsigned int versions; /**< bit 1: version 1, bit 2: version 2 */
	uint64_t step;
	uint64_t limit;
	uint32_t batch_max; /**< records of a Config */
	uint64_t failed, completed; /**< queries */
	bool lenient; /**< packets with any source address are forged: answers are not checked */
	bool strict; /**< every query must complete */
	bool light; /**< at most 1 % loss: nearly all such scripts must complete */
	bool scarce; /**< limits are so small that "no resources" is a valid answer */
	unsigned int churn; /**< number of operator's changes left */
	uint64_t churn_step;
	unsigned int restarts; /**< number of restarts left */
	unsigned int restart_of; /**< SA_SERVER, SA_CLIENT or 2: either */
	bool crashes; /**< the server may crash at any step of a commit */
	unsigned int hostile; /**< number of hostile packets left */
	uint64_t hostile_step;
	union gid hostile_gid;
	uint16_t hostile_lid;
	uint64_t hostile_tid[16]; /**< TIDs of its transactions */
	uint8_t hostile_mad[16][MAD_LEN]; /**< last MADs that it received or overheard */
	unsigned int hostile_seen;
	const struct sa_record_type *main; /**< type of the big table */
	uint32_t main_records;
	uint32_t reports; /**< received by the client */
};

/** The scripts in the table of scenario.c. */
void sa_scenario_calm(struct sim *s);
void sa_scenario_loss(struct sim *s);
void sa_scenario_change(struct sim *s);
void sa_scenario_config(struct sim *s);
void sa_scenario_sets(struct sim *s);
void sa_scenario_restart(struct sim *s);
void sa_scenario_slow(struct sim *s);
void sa_scenario_scarce(struct sim *s);
void sa_scenario_hostile(struct sim *s);
void sa_scenario_with_rc(struct sim *s);
void sa_scenario_cut(struct sim *s);
void sa_scenario_big(struct sim *s);
void sa_scenario_million(struct sim *s);

/** Create nodes with random limits; start nothing. @param queries  most queries */
struct sa_script *sa_script_create(struct sim *s, uint32_t kinds, unsigned int queries);
/** Fill the disk, start both sides, and begin to send queries. */
void sa_script_start(struct sa_script *sc);
/** Run until all queries have ended. */
void sa_script_finish(struct sa_script *sc);
bool sa_script_done(const struct sa_script *sc);
void sa_script_end(struct sim *s);

/* --- sa_hostile.c --- */

void sa_hostile_start(struct sa_script *sc);
/** Take a frame for the hostile peer. @return false: it is for another node */
bool sa_hostile_takes(struct sa_script *sc, const struct packet *pkt);

#endif
