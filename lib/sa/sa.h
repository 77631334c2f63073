/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_SA_H
#define SA_SA_H

/**
 * @file Subnet administration, the server: agents of lib/mad for both class versions, on top of
 * lib/store.
 *
 * Workers answer queries from the store's current version; a query over many records continues in
 * slices of sa_run()'s budget. Changes are messages: the worker fills one in and submits it, the
 * store's thread executes many of them in one durable batch, the worker answers.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limit_peer.h"
#include "mad/mad.h"
#include "port/allow_list.h"
#include "sa/record.h"
#include "store/store.h"

struct sa;
struct sa_worker;
struct sa_write;
struct sa_event;

/** What decides about trust. */
enum sa_trust {
	SA_TRUST_KEY, /**< the right SM_Key gives trust; others see their partitions only */
	SA_TRUST_ALL,
};
/**
 * Default SM_Key of opensm and saquery. It is public, so it lets see everything but change nothing.
 */
#define SA_SM_KEY_WELL_KNOWN 1

/** The operator's SL for paths and groups of a partition, like in opensm's partitions.conf. */
struct sa_partition {
	uint16_t pkey; /**< either membership */
	uint8_t sl;
};
#define SA_PARTITIONS_MAX 64

struct sa_config {
	struct store *store;
	uint64_t hz;
	const struct allocator *alloc;
	const struct rng *rng;
	unsigned int workers;
	enum sa_trust trust;
	uint64_t sm_key; /**< 0: none */
	uint64_t own_key; /**< secret SM_Key for the appliance's own requests; 0: none */
	struct allow_list allow; /**< who is answered */
	uint16_t master_sm_lid; /**< may send Config (A6) with any SM_Key; 0: none */
	uint8_t edit_codes[3]; /**< EditModifier for add, delete, edit (A6: UNCONFIRMED) */
	uint64_t gid_prefix;
	uint8_t resp_time; /**< RespTimeValue that we announce and keep to */
	uint8_t packet_life; /**< PacketLifeTime code of computed paths */
	struct sa_partition partition[SA_PARTITIONS_MAX];
	unsigned int num_partitions;
	uint32_t max_results; /**< most records that a filtered query may collect */
	uint32_t max_result_bytes; /**< memory for collected results, per worker */
	uint32_t max_writes; /**< changes in progress, per worker */
	uint8_t notice_retries; /**< repeats of a Report without ReportResp */
	uint32_t notice_interval_ms;
	uint32_t notices_max; /**< Reports in progress, per worker */
	uint32_t max_queries; /**< unanswered queries, per worker */
	uint32_t max_transfers; /**< multi-packet answers in progress, per worker */
	/* a worker's cache of the fabric for computing paths */
	uint32_t path_ports; /**< endports, a power of two; further ones are read from the store */
	uint32_t path_switches; /**< paths in fabrics with more are refused (no resources) */
	uint32_t path_links; /**< links between switches, counted at both ends */
	uint32_t path_routes; /**< switches whose routes are cached */
};
extern const struct sa_config sa_config_default;

/** Store tables and indexes of the SA, for store_create(). */
extern const struct store_index sa_indexes[];
extern const unsigned int sa_num_indexes;
extern const unsigned int sa_num_tables;
/**
 * Security: set the secret key of the indexes over GIDs, so that nobody can choose GIDs that
 * collide. Call once, before store_create().
 */
void sa_index_secret(uint64_t key);

/** SL that the operator gave a partition; -1: none. */
int sa_partition_sl(const struct sa_config *config, uint16_t pkey);

struct sa *sa_create(const struct sa_config *config, struct error *err);
void sa_destroy(struct sa *sa);

struct sa_worker_config {
	unsigned int id;
	struct mad_worker *mad; /**< gets the SA's agents */
	struct store_reader *reader;
	/** Pass a change to the store's thread. @retval false  no room: the SA answers busy */
	bool (*submit)(void *arg, struct sa_write *write);
	void *submit_arg;
};
struct sa_worker *sa_worker_create(struct sa *sa, const struct sa_worker_config *config);
void sa_worker_destroy(struct sa_worker *w);

/** Continue queries and Reports. @return records read or Reports sent, at most @p budget */
unsigned int sa_run(struct sa_worker *w, uint64_t now, unsigned int budget);
bool sa_pending(const struct sa_worker *w);
/**
 * Worker 0: a Trap reached the subnet manager that this SA belongs to. Report it to subscribers;
 * security traps (smp-sma 5) are reported to trusted ones only.
 *
 * @param notice  the Trap's 64 bytes
 */
void sa_trap(struct sa_worker *w, const uint8_t *notice);
/** A change was executed: answer its request. */
void sa_write_done(struct sa_worker *w, struct sa_write *write, uint64_t now);

/* --- the store's thread --- */

/** The worker that submitted a change, to pass the result back. */
unsigned int sa_write_worker(const struct sa_write *write);
/**
 * Execute changes in one batch. Each is executed completely or not at all. When this returns they
 * are durable and have their status.
 *
 * @param now  seconds of a lease_clock, for service leases
 */
void sa_write_execute(struct sa *sa, struct sa_write **writes, unsigned int n, uint64_t now);
/** What a fleet does with the answers before the changes are committed. */
struct sa_settle {
	/**
	 * All changes of a batch have their status. @param unchanged  nothing will be committed
	 *
	 * @return 0, or an error: nothing is changed
	 */
	int (*fn)(void *arg, bool unchanged);
	void *arg;
};
/**
 * Execute changes in one batch that is not divided. @return 0: they are durable; otherwise nothing
 * was changed as far as the store knows, and their status means nothing
 */
int sa_write_settle(struct sa *sa, struct sa_write **writes, unsigned int n, uint64_t now,
	const struct sa_settle *settle);
/**
 * A fleet keeps events, so that they are told by whoever leads. The store's thread calls keep() for
 * each batch before its changes are committed, and posts what is to be told itself.
 */
struct sa_keeper {
	/**
	 * Store these events in the transaction of the next commit; n 0: none.
	 *
	 * @return false: there is no room for them
	 */
	bool (*keep)(void *arg, const struct sa_event *events, unsigned int n);
	void *arg;
};
/** Before the workers start. */
void sa_keep_events(struct sa *sa, const struct sa_keeper *keeper);
/** Number of kept events that sa_event_post() has room for. */
unsigned int sa_events_room(const struct sa *sa);
/** Have an event reported; its number is one more than that of the one before. */
void sa_event_post(struct sa *sa, const struct sa_event *e);
/** @return number of an event whose subscribers have answered or were given up; 0: none */
uint64_t sa_event_told(struct sa *sa);
/** Forget kept events with smaller numbers: another appliance reports them. */
void sa_events_forget(struct sa *sa, uint64_t below);
/** The store has changes that came from elsewhere: what the writer remembers of it may be wrong. */
void sa_followed(struct sa *sa);
/** Remove expired service leases; call now and then. @return changes made */
unsigned int sa_expire(struct sa *sa, uint64_t now);
/** Put or remove records for the operator (import, the appliance's own ports). All or nothing. */
struct sa_change {
	const struct sa_record_type *type;
	bool remove;
	uint32_t rid; /**< 0: from the record, or assigned (Service, MCMember, InformInfo) */
	uint8_t rec[SA_RECORD_MAX];
};
int sa_change(struct sa *sa, const struct sa_change *changes, size_t n, struct error *err);
/** Which records are removed first. */
enum sa_replaced {
	SA_REPLACE_NOTHING,
	/**
	 * records that a sweep finds; not services, groups, subscriptions and SLs of PathRecords
	 */
	SA_REPLACE_SUBNET,
	SA_REPLACE_ALL,
};
int sa_replace(struct sa *sa, enum sa_replaced what, const struct sa_change *changes, size_t n,
	struct error *err);

/* --- counters --- */

/* clang-format off */
#define SA_COUNTERS(X)                                                                             \
	X(get, "Get requests")                                                                     \
	X(set, "Set and Delete requests")                                                          \
	X(get_table, "GetTable and GetMulti requests")                                              \
	X(get_bulk, "GetBulk requests")                                                            \
	X(config, "Config requests")                                                               \
	X(records_sent, "records in answers")                                                      \
	X(records_scanned, "records looked at by queries")                                         \
	X(routes_walked, "routes of paths read from forwarding tables")                            \
	X(routes_searched, "routes of paths by search: shortest ones, for want of tables")         \
	X(no_records, "answered: no records")                                                      \
	X(too_many, "answered: too many records")                                                  \
	X(denied, "answered: request denied")                                                      \
	X(invalid, "answered: request or field invalid")                                           \
	X(no_resources, "answered: no resources")                                                  \
	X(stale, "transfers ended because their version was given up")                             \
	X(writes, "changes submitted to the store")                                                \
	X(write_conflicts, "changes refused by the store's contents")                              \
	X(share_full, "changes refused: the address or all strangers have their share of a table")  \
	X(strangers_busy, "changes and queries refused: strangers have their share of those under way") \
	X(gave_way, "queries and results ended to make room for those of other addresses")          \
	X(reports_sent, "Reports sent to subscribers")                                             \
	X(reports_answered, "ReportResps received")                                                \
	X(reports_given_up, "Reports never answered")                                              \
	X(events_lost, "events told to nobody: too many at one time")
/* clang-format on */

struct sa_counters {
#define X(name, help) uint64_t name;
	SA_COUNTERS(X)
#undef X
};
struct sa_counter_info {
	const char *name;
	const char *help;
};
#define SA_COUNTER_COUNT (sizeof(struct sa_counters) / sizeof(uint64_t))
extern const struct sa_counter_info sa_counter_infos[SA_COUNTER_COUNT];
const struct sa_counters *sa_worker_counters(const struct sa_worker *w);
/** Whom limits affected: the owner of its records, as a GID, or ::ffff:ffff:ffff:LID. */
struct sa_limited {
	struct limit_peer share_full;
	struct limit_peer strangers_busy;
	struct limit_peer gave_way; /**< its query or result was ended */
};
/** Control thread: for limit_peer_take(). */
struct sa_limited *sa_worker_limited(struct sa_worker *w);

#endif
