/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_SERVER_H
#define SA_SERVER_H

/**
 * @file Private to the server: what its files share. Comments name the thread or file that may use
 * a part.
 */

#include <rte_debug.h>

#include "base/token_bucket.h"
#include "sa/access.h"
#include "sa/fabric.h"
#include "sa/give_way.h"
#include "sa/query.h"
#include "sa/result.h"
#include "sa/sa.h"
#include "sa/write.h"

#define SA_EVENTS 1024 /* a power of two */

/** Ring from the store's thread to worker 0: one writer, one reader. */
struct sa_event_ring {
	struct sa_event event[SA_EVENTS];
	uint32_t head; /**< written by the store's thread */
	uint32_t tail; /**< written by the worker */
	uint64_t lost; /**< atomic: counted by both */
	uint64_t forget; /**< kept events with smaller numbers; written by the store's thread */
	/* the way back: numbers of kept events that were told */
	uint64_t told[SA_EVENTS];
	uint32_t told_head; /**< written by the worker */
	uint32_t told_tail; /**< written by the store's thread */
	uint32_t under_way; /**< kept events that were not told; of the store's thread */
};

struct sa {
	struct sa_config config;
	uint64_t epoch; /**< upper bits of change tokens, new at each start */
	struct sa_event_ring events;
	struct sa_keeper keeper;
	struct sa_writer writer; /**< used by the store's thread */
};

struct sa_report; /* notice.c */

struct sa_worker {
	struct sa *sa;
	const struct sa_config *config;
	unsigned int id;
	struct mad_worker *mad;
	struct store_reader *reader;
	bool (*submit)(void *arg, struct sa_write *write);
	void *submit_arg;
	struct fabric *fabric;
	struct result_pool *results;
	struct give_way *give_way;
	/** the record that a transfer read last, if the next segment continues inside it */
	const struct result *scratch_of;
	uint64_t scratch_index;
	uint8_t scratch[SA_RECORD_MAX + 8];
	struct query fresh; /**< the query in its first slice; most are answered from here */
	struct query *queries; /**< pool of queued queries */
	struct query_list queries_free;
	struct query_list queries_running;
	uint32_t queries_of_strangers; /**< put off */
	struct sa_write *writes;
	struct sa_write *writes_free;
	uint32_t writes_of_strangers; /**< under way */
	struct sa_notices *notices;
	struct sa_counters counters;
	struct sa_limited limited;
};

#define SA_EPOCH_SHIFT 40 /* bits for version numbers in a change token */

/**
 * Change token (SA_Key, A6) of a table as a requester sees it; never 0. What untrusted requesters
 * see also depends on the tables that define ports and partitions, so their token covers these,
 * too.
 */
uint64_t sa_token(const struct sa *sa, const struct store_version *v, unsigned int table,
	bool trusted);
/** The token of all tables. */
uint64_t sa_token_all(const struct sa *sa, const struct store_version *v);
/** True if a requester with @p key has seen everything up to @p token. */
bool sa_token_covers(const struct sa *sa, uint64_t key, uint64_t token);

/** Write a status into an answer and count it. @return MAD_ANSWER */
enum mad_outcome sa_refuse(struct sa_worker *w, uint8_t *reply, uint16_t status);

/** Request handlers of the two class versions. */
enum mad_outcome sa_request_v1(void *arg, struct mad_request *req);
enum mad_outcome sa_request_v2(void *arg, struct mad_request *req);
/** Security: who may not send a Config is told so by its first packet. */
uint16_t sa_admit_v1(void *arg, const struct mad_peer *peer, const uint8_t *mad, bool *trusted);
void sa_class_port_info(const struct sa_worker *w, enum sa_version v, uint8_t *data);

/** True for a stranger without an operator's SM_Key: others find room besides its requests. */
bool sa_is_limited(const struct requester *who);
/** Anti-exhaustion: what strangers may have of so many places; an eighth is kept for others. */
uint32_t sa_share_of_strangers(uint32_t places);
/** True for the master SM, which may send Config and GetBulk (A6). */
bool sa_is_master_sm(const struct sa_worker *w, const struct requester *who);
/**
 * Submit a change to the store's thread. @param what  kind, type, version, mask and data are set
 */
enum mad_outcome sa_submit(struct sa_worker *w, struct mad_request *req,
	const struct requester *who, const struct sa_write *what);

/* notice.c */
struct sa_notices *sa_notices_create(struct sa_worker *w);
void sa_notices_destroy(struct sa_worker *w);
unsigned int sa_notices_run(struct sa_worker *w, uint64_t now, unsigned int budget);
bool sa_notices_pending(const struct sa_worker *w);
/* events.c */
/** Worker 0. @return false: there is none */
bool sa_event_take(struct sa *sa, struct sa_event *e);
/** Worker 0: all subscribers to a kept event have answered, or were given up. */
void sa_event_was_told(struct sa *sa, uint64_t number);
void sa_events_lost(struct sa *sa, unsigned int n);
/** Callable from any thread. */
uint64_t sa_events_lost_count(const struct sa *sa);

#endif
