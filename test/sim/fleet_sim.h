/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_FLEET_SIM_H
#define SIM_FLEET_SIM_H

/**
 * @file
 * A fleet in the simulation: appliances with lib/store's fleet, lib/sa and the store thread's parts
 * of lib/engine, and an etcd of three members that is a model, on a virtual clock.
 *
 * fiber.c runs the code of an appliance's two threads in turns; etcd_model.c is what etcd's members
 * agree on; fleet_net.c has etcd's members, the network, and the functions that lib/store takes
 * from libcurl otherwise; fleet_copy.c is the disk; fleet_node.c is an appliance; fleet_import.c is
 * an import's thread; fleet_owned.c has the appliances' own ports; fleet_clients.c asks for changes
 * and checks what became of them; fleet_faults.c breaks things; fleet_scenario.c has the scripts.
 */

#include "engine/store_fleet.h"
#include "etcd_model.h"
#include "fiber.h"
#include "sa/write.h"
#include "sim.h"
#include "store/fleet_private.h"

#define FLEET_ETCD     3 /* members of etcd */
#define FLEET_APPS_MAX 1024
#define FLEET_OPS_MAX  2048
#define FLEET_QUEUE    256 /* changes that wait for an appliance's store thread */
#define FLEET_TOLD     1024 /* Reports without an answer */
#define FLEET_LEASE_S  2
#define FLEET_IMPORT_S UINT64_C(1000000) /* the first ServiceID of imports */
#define SIM_MS         UINT64_C(1000000)

extern int engine_logtype;

struct fleet_script;
struct fleet_app;
struct store_forward;
struct store_notices;

/* --- fleet_copy.c --- */

struct disk_record {
	uint8_t table;
	uint32_t rid;
	uint16_t len;
	uint8_t *bytes;
};

/** What an appliance's disk holds. It survives the appliance. */
struct fleet_disk {
	uint64_t instance;
	struct copy_position position;
	struct disk_record *record; /**< sorted */
	size_t n, room;
};

void fleet_disk_free(struct fleet_disk *d);

/* --- fleet_node.c --- */

/** A change that a client has asked an appliance for. */
struct fleet_attempt {
	struct sa_write write;
	struct fleet_attempt *next; /**< all */
	struct fleet_op *op;
	struct fleet_node *node;
	bool back;
};

struct fleet_told {
	uint64_t number;
	uint64_t at;
};

/** One life of an appliance: from its start until it is stopped or killed. */
struct fleet_node {
	struct fleet_script *script;
	struct fleet_app *app;
	bool dead; /**< killed: it reads, sends and writes nothing */
	bool stop;
	bool news;
	struct fiber *etcd; /**< the fleet's thread */
	struct fiber *writer; /**< the store's thread */
	struct fleet *fleet;
	struct store *store;
	struct sa *sa;
	struct store_forward *forward;
	struct store_notices *notices;
	struct own_wish *wish;
	struct fleet_importer *importer; /**< NULL: there was none yet */
	struct sa_write *queue[FLEET_QUEUE];
	unsigned int queued;
	struct fleet_told told[FLEET_TOLD]; /**< worker 0's */
	unsigned int num_told;
	struct fleet_op *import; /**< the operator's, while it leads: for the store's thread */
	uint64_t expire_at;
	uint64_t reclaim_at;
	uint64_t lead; /**< at the last look of the checks */
};

/** An appliance: its disk, and its present life. */
struct fleet_app {
	struct fleet_disk disk;
	struct fleet_node *node; /**< NULL: it is off */
	bool stopping; /**< its threads are ending */
	bool gone; /**< it does not start any more */
	unsigned int ports; /**< own ports that it has, as bits */
	bool cut[FLEET_ETCD]; /**< nothing passes between it and this member */
};

void fleet_node_start(struct fleet_script *fs, unsigned int app);
/** As by SIGKILL. */
void fleet_node_kill(struct fleet_script *fs, unsigned int app);
/** As by SIGTERM; it takes some time. */
void fleet_node_stop(struct fleet_script *fs, unsigned int app);
void fleet_node_submit(struct fleet_node *n, struct sa_write *write);
void fleet_node_wake(void *node);
/** The newest version of its records; valid until something runs. */
const struct store_version *fleet_node_view(struct fleet_node *n);

uint64_t fleet_random(void);

/* --- fleet_import.c --- */

void fleet_importer_begin(struct fleet_node *n, struct fleet_op *op);
bool fleet_importer_works(const struct fleet_node *n);
/** The store's thread. @return true if there was work */
bool fleet_importer_run(struct fleet_node *n, uint64_t lease_now);
/** @return true: the change was its request */
bool fleet_importer_handed_back(struct fleet_node *n, const struct sa_write *write);
void fleet_importer_stop(struct fleet_node *n);
/** Its node is dead: let its fiber end. */
void fleet_importer_kill(struct fleet_node *n);

/* --- fleet_owned.c --- */

void fleet_owned_start(struct fleet_script *fs);
/** Tell an appliance what its ports are. */
void fleet_owned_renew(struct fleet_node *n);
/** etcd has written a key: check it if it is a record of an own port. */
void fleet_owned_wrote(struct fleet_script *fs, const struct model_event *e);
/** True if etcd has the ports of living appliances, and no others. @param why  set if not */
bool fleet_owned_right(const struct fleet_script *fs, char *why, size_t size);

/* --- fleet_net.c --- */

struct net_request;

struct fleet_member_state {
	bool down;
	bool cut; /**< from the other members */
	uint64_t frozen; /**< the last revision it knows, while it is cut or there is no quorum */
};

/** How the network behaves; chances in 1/10000. */
struct fleet_weather {
	uint64_t delay; /**< ns, the mean of one way */
	unsigned int lose_request;
	unsigned int lose_answer;
	unsigned int late_watch; /**< a message of a watch is late by up to 2 s */
	unsigned int late_request; /**< it arrives up to 4 s later, whether waited for or not */
};

struct fleet_counts {
	uint64_t ranges, txns, leases, watch_starts, watch_messages, watch_events, watch_bytes;
	uint64_t lost_answers, elections, compactions, compacted_parts, kills, stops, cuts;
	uint64_t reports, repeated, retried, takeovers;
};

struct fleet_net {
	struct etcd_model *model;
	struct fleet_member_state member[FLEET_ETCD];
	int leader; /**< of etcd; -1: none */
	struct fleet_weather weather;
	struct net_request *requests; /**< all that are under way */
	struct etcd_watch *watches;
	struct fleet_node *sender; /**< of the transaction that is executed */
};

void fleet_net_init(struct fleet_script *fs);
void fleet_net_fini(struct fleet_script *fs);
/** etcd's leader is lost; another one is elected if there is a quorum. */
void fleet_net_lose_leader(struct fleet_script *fs);
void fleet_net_member(struct fleet_script *fs, unsigned int member, bool down, bool cut);
/** @param keep  revisions before the present one that stay */
void fleet_net_compact(struct fleet_script *fs, uint64_t keep);
/** fleet_open() of this life follows: its clients of etcd belong to it. */
extern struct fleet_node *fleet_opening;
extern struct fleet_script *fleet_script_now;

/* --- fleet_clients.c --- */

enum fleet_op_kind {
	FLEET_OP_SET, /**< a ServiceRecord */
	FLEET_OP_DELETE, /**< of one that was set */
	FLEET_OP_NOTICE, /**< a trap, which is to be reported */
	FLEET_OP_IMPORT, /**< several ServiceRecords, in parts */
};

enum fleet_op_state {
	FLEET_OP_UNDER_WAY,
	FLEET_OP_ACKNOWLEDGED,
	FLEET_OP_UNKNOWN, /**< its client has given up */
	FLEET_OP_REFUSED, /**< an import that was not made, as its operator was told */
};

struct fleet_op {
	struct fleet_script *script;
	enum fleet_op_kind kind;
	enum fleet_op_state state;
	uint32_t id;
	uint64_t service; /**< ServiceID, of an import the first one */
	unsigned int records; /**< of an import */
	uint64_t begun;
	unsigned int tries;
	unsigned int app; /**< that was asked last */
	bool undone; /**< a Delete was sent */
	/* a notice */
	uint64_t tid;
	uint64_t lead; /**< of the last Report */
	unsigned int reports;
};

void fleet_clients_start(struct fleet_script *fs);
bool fleet_clients_done(const struct fleet_script *fs);
void fleet_clients_free(struct fleet_script *fs);
void fleet_op_handed_back(void *node, struct sa_write *write);
/** The store's thread: the operator's import. */
void fleet_op_import(struct fleet_node *n);
/** The records of an import, to be freed. */
struct sa_change *fleet_op_changes(const struct fleet_op *op);
/** An import has ended. @param known  its error says that it was not made */
void fleet_op_imported(struct fleet_node *n, struct fleet_op *op, int rc, bool known);
/** etcd has written a key: check it if it is a record of an import. */
void fleet_op_wrote(struct fleet_script *fs, const struct model_event *e);
/** A subscriber got a Report. */
void fleet_op_reported(struct fleet_node *n, const struct sa_event *e, uint64_t tid);
/** At the end: compare all with what clients know. */
void fleet_clients_check(struct fleet_script *fs);

/* --- fleet_faults.c --- */

void fleet_faults_start(struct fleet_script *fs);
/** Everything works again. */
void fleet_faults_end(struct fleet_script *fs);
/** etcd has written a key: a fault may have waited for the parts of a large change. */
void fleet_faults_wrote(struct fleet_script *fs, const struct model_event *e);

/* --- fleet_scenario.c --- */

struct fleet_script {
	struct sim *sim;
	struct fleet_net net;
	struct fleet_app *app;
	unsigned int apps;
	uint32_t max_txn_ops;
	uint32_t lease_s;
	struct fleet_op *op; /**< FLEET_OPS_MAX */
	unsigned int ops;
	unsigned int planned; /**< not begun yet */
	uint64_t step; /**< mean time between two of them */
	struct fleet_attempt *attempts;
	bool own_ports; /**< appliances have some */
	bool only_sets; /**< changes of one ServiceRecord each */
	bool strike; /**< a fault waits for the next part of a large change */
	bool over; /**< no more faults */
	bool calm; /**< nothing has failed for a while, but what .gone says */
	uint64_t look_at; /**< not to be checked before */
	char why[160]; /**< own ports are not right */
	struct fleet_counts count;
};

/** Appliances of the next scenario; polca-sim --appliances. */
extern unsigned int fleet_appliances;

void fleet_scenario(struct sim *s);
void fleet_scenario_no_fence(struct sim *s);
void fleet_scenario_not_durable(struct sim *s);
void fleet_scenario_twice(struct sim *s);
void fleet_scenario_import_twice(struct sim *s);
void fleet_scenario_half(struct sim *s);
void fleet_scenario_stage_stays(struct sim *s);
void fleet_scenario_member_stays(struct sim *s);
void fleet_scenario_member_hidden(struct sim *s);
void fleet_scenario_wrong_key(struct sim *s);
void fleet_scenario_notice_lost(struct sim *s);
void fleet_scenario_notice_goes(struct sim *s);
void fleet_scenario_watch_gap(struct sim *s);
void fleet_scenario_early_answer(struct sim *s);
void fleet_scenario_two_leads(struct sim *s);
void fleet_scenario_copy_gap(struct sim *s);
void fleet_scenario_scale(struct sim *s);

#endif
