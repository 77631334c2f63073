/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_FLEET_PRIVATE_H
#define STORE_FLEET_PRIVATE_H

/**
 * @file
 * Private to lib/store: what the files of a fleet share. Two threads use it: the store's writer
 * (apply, watch, taken) and the fleet's own thread, polca-etcd (all else after fleet_start()).
 */

#include <pthread.h>
#include <sys/queue.h>

#include <rte_log.h>

#include "store/etcd_client.h"
#include "store/lmdb_copy.h"

extern int fleet_logtype;
#define FLEET_LOG(level, fmt, ...)                                                                 \
	rte_log(RTE_LOG_##level, fleet_logtype, "fleet: " fmt "\n", ##__VA_ARGS__)

#define FLEET_KEY_MAX    (FLEET_TEXT_MAX + FLEET_ID_MAX + 16)
#define FLEET_REQUEST_MS 1000 /* the longest that the store's writer waits for etcd */
#define FLEET_FORMAT     "1" /* of all that is below the prefix: keys and values */
/* While the writer has so much to take, the watch is not read: etcd keeps the rest. */
#define FLEET_QUEUE_BATCHES 1024
#define FLEET_QUEUE_BYTES   (64u << 20)

/* Changes on their way from the fleet's thread to the store's. */
struct fleet_batch {
	STAILQ_ENTRY(fleet_batch) next;
	struct store_batch batch;
	struct store_op *ops;
	uint8_t *bytes; /* of all ops */
	uint64_t changed; /* revision of the last change in it */
	uint64_t revision; /* replace: at which all records were read */
	bool restored; /* another history: it counts even if its revision is lower */
	size_t size; /* bytes of memory */
	uint64_t replaced; /* batches that it stands for, which the writer never gets */
};
STAILQ_HEAD(fleet_batches, fleet_batch);

/* Names of keys; all begin with the prefix. docs/fleet.md has the list. */
struct fleet_keys {
	char all[FLEET_KEY_MAX]; /* that are watched */
	char all_end[FLEET_KEY_MAX];
	char control[FLEET_KEY_MAX]; /* the leader, the last change, and members */
	char control_end[FLEET_KEY_MAX];
	char leader[FLEET_KEY_MAX];
	char change[FLEET_KEY_MAX];
	char part[FLEET_KEY_MAX];
	char format[FLEET_KEY_MAX];
	char members[FLEET_KEY_MAX];
	char self[FLEET_KEY_MAX];
	char requests[FLEET_KEY_MAX];
	char requests_end[FLEET_KEY_MAX];
	char answers[FLEET_KEY_MAX];
	char notices[FLEET_KEY_MAX];
	char stage[FLEET_KEY_MAX];
	char records[FLEET_KEY_MAX];
	char records_end[FLEET_KEY_MAX];
};

/* A record of a change that is not complete yet. */
struct gathered_op {
	uint8_t table;
	bool gone;
	uint16_t len;
	uint32_t rid;
	size_t at; /* its bytes begin here */
};

/* What the watch has brought of changes: fleet_parts.c. */
struct fleet_gather {
	struct gathered_op *op;
	size_t n, room;
	uint8_t *bytes;
	size_t used, bytes_room;
	size_t complete; /* so many of .op belong to changes that are complete */
	uint64_t complete_revision; /* of the last complete change */
	bool open; /* the others are parts of a change that goes on */
	uint64_t part_created; /* create_revision of its c/part */
};

struct fleet_names {
	char (*at)[FLEET_NAME_MAX];
	size_t n;
};

struct fleet {
	struct fleet_config config;
	struct fleet_keys key;
	pthread_t thread;
	bool started;
	void (*wake)(void *arg);
	void *wake_arg;

	/* the store's writer */
	struct etcd_client *writer;
	uint64_t published; /* revision of the last change that the store has published */
	struct fleet_batch *taking;
	const struct fleet_message *answers; /* for the next change */
	unsigned int num_answers;
	unsigned int stages; /* requests between fleet_stage_begin() and _end() */
	const void *keep_bytes; /* a notice for the next change */
	size_t keep_len; /* 0: none */
	uint64_t keep_id;

	/* atomic */
	uint64_t lead; /* create_revision of the leader's key while it is ours; 0: it is not */
	bool away; /* etcd did not answer the last request */
	enum fleet_etcd_state trouble; /* why, as far as the fleet's thread knows */
	bool full; /* its quota is exceeded: it takes no change */
	uint64_t answer_lease; /* the leader's, of answers that it writes; 0: none */
	uint64_t request_lease; /* of our requests: the same as .lease */
	unsigned int expected; /* requests of ours that have no answer */
	bool look_now; /* for the fleet's thread */
	bool token_refused; /* of the writer: the fleet's thread asks for another one */
	uint64_t stopped; /* lead in which a change stopped between its parts; 0: none */
	/* revision of its last part, if this lead may undo them; 0: it ends. Set before .stopped */
	uint64_t undo_behind;
	bool long_work_ends; /* the appliance stops */
	bool refuses_empty; /* etcd has no records, the copy has some, and nobody has accepted it */
	bool accept_empty;
	bool stop;

	pthread_mutex_t lock; /* protects the next ones, up to .status */
	char token[ETCD_TOKEN_MAX]; /* of the session, for the writer */
	struct fleet_batches queue;
	uint64_t queued; /* batches that were ever put into the queue, */
	uint64_t unqueued; /* and taken from it */
	size_t queue_bytes;
	bool waits_for_room; /* the queue was full when the fleet's thread looked */
	STAILQ_HEAD(, fleet_news) news;
	unsigned int num_news;
	TAILQ_HEAD(, fleet_request) requests; /* at the leader */
	unsigned int num_requests;
	TAILQ_HEAD(, fleet_notice) notices; /* at the leader */
	unsigned int num_notices;
	struct fleet_names names[2]; /* of the members, at the last look and the one before */
	struct fleet_status status;

	/* the fleet's thread */
	struct etcd_client *session;
	struct store_backend copy;
	struct copy_position position; /* up to which the watch was read */
	bool copy_stopped; /* LMDB has failed: it stays where it is */
	uint64_t copy_written; /* when its position was written last, ms */
	bool failing; /* the last look failed */
	enum fleet_etcd_state failed_state; /* what was logged about it */
	uint32_t page_records; /* of a read of the whole database; tests make it small */
	bool reload; /* the watch cannot go on from the position */
	bool checked; /* the position is one of this cluster's history */
	uint64_t instance; /* of our copy: it tells us from another appliance of our name */
	uint64_t lease;
	bool named; /* our member's key has this lease */
	uint64_t lease_end; /* ms */
	uint64_t campaigned; /* create_revision of the leader's key that we made */
	uint64_t leader_created; /* create_revision of the leader's key */
	uint64_t leader_seen; /* revision at which we last learned who leads */
	uint64_t reported; /* revision in our member's key */
	uint64_t look_at; /* when to ask etcd again, ms */
	unsigned int looks;
	uint64_t looked_at_change; /* the last one in etcd, at the look before */
	/* looks after which the watch had not brought the change before, nor any byte since */
	unsigned int behind;
	uint64_t received; /* bytes of the watch, at the last look */
	bool requests_left; /* in etcd: there was no room for them */
	uint64_t requests_read; /* revision up to which all requests were read */
	bool notices_left; /* in etcd: there was no room for them, or they may have been missed */
	uint64_t notices_read; /* revision up to which all notices were read */
	uint64_t answer_lease_made; /* ms */
	uint64_t lead_at; /* not to be taken before, ms */
	struct fleet_gather gather;
	struct etcd_watch *watch;
	unsigned int watch_endpoint;
	uint64_t watch_at; /* not to be started before, ms */
};

/* fleet_keys.c */
/* Table and RID of a record's key. @return false if it is no such key */
bool fleet_record_key(const struct fleet *f, const char *key, uint8_t *table, uint32_t *rid);
void fleet_put_record_key(const struct fleet *f, char key[FLEET_KEY_MAX], unsigned int table,
	uint32_t rid);
uint64_t fleet_nonce_of(const struct etcd_kv *kv);
void fleet_batch_free(struct fleet_batch *b);

/* fleet_leader.c */
/* The thread asks etcd at once who leads. */
void fleet_look_now(struct fleet *f);
/* etcd did not answer the store's writer, which waits until the thread has had an answer. */
void fleet_is_away(struct fleet *f);
extern const char *const fleet_state_names[]; /* of enum fleet_etcd_state */
/* Why no change is possible while etcd does not serve this appliance. @return -EAGAIN */
int fleet_not_served(struct fleet *f, struct error *err);
/* etcd has no room, or has room again. Any thread. */
void fleet_note_full(struct fleet *f, bool full);
void fleet_step_down(struct fleet *f, const char *why);
/* Who leads, as of a revision; kv NULL: nobody. */
void fleet_learn_leader(struct fleet *f, const struct etcd_kv *kv, uint64_t revision);

/* The watch brings a new member's key, which no look has seen yet. */
void fleet_note_joined(struct fleet *f, const char *name);
/* With the lock held: remember the members of a look, whose keys begin with @p prefix. */
void fleet_note_members(struct fleet *f, const struct etcd_kvs *kvs, const char *prefix);

/* fleet_member.c: the fleet's thread */
/* Renew the lease, or take a new one and our name with it. */
int fleet_keep_lease(struct fleet *f, struct error *err);
/* The same between the pages of a long load, when it is due. @retval -ECANCELED: stop */
int fleet_stay_alive(struct fleet *f, struct error *err);
/* Write into our member's key how far our copy is. */
int fleet_report(struct fleet *f, struct error *err);

/* fleet_follow.c: what the watch and a load bring */

/* A message of the watch; an etcd_watch_fn. */
int fleet_take_watched(void *arg, const struct etcd_watched *w);
/*
 * Read all records at one revision.
 *
 * @param restored  the records we have are of another history
 * @param alive  called between pages
 */
int fleet_load_all(struct fleet *f, bool restored, int (*alive)(struct fleet *f, struct error *err),
	struct error *err);
/* True if the store's writer has so much to take that nothing should be added. Any thread. */
bool fleet_queue_is_full(struct fleet *f);
/* With the lock held: add a batch for the writer. */
void fleet_queue(struct fleet *f, struct fleet_batch *b);
/* With the lock held: take the first batch from the queue. */
void fleet_unqueue(struct fleet *f);
/* Write the position alone. */
void fleet_note_position(struct fleet *f, uint64_t revision);

/* fleet_parts.c: changes of several transactions */
/* The events of one revision, in order. @retval -ENOMEM: the watch must bring it again */
int fleet_gather(struct fleet *f, const struct etcd_kv *kv, size_t n);
/* One record of a part. */
int fleet_gather_record(struct fleet *f, const struct etcd_kv *kv);
/* After an error: as it was before a message, which the watch brings again. */
void fleet_gather_back(struct fleet *f, const struct fleet_gather *before);
/* The first @p n records were handed over. */
void fleet_gather_drop(struct fleet *f, size_t n);
void fleet_gather_free(struct fleet *f);
/* Before it leads: if parts of a change are there that nobody will complete, remove them. */
int fleet_undo_parts(struct fleet *f, struct error *err);

/* fleet_requests.c: requests for changes and their answers */
/* The store's writer sends a transaction. */
int fleet_writer_call(struct fleet *f, json_t *body, json_t **reply, struct error *err);
/* The writer: @p rc of a call, noted if etcd did not answer. */
int fleet_note_silence(struct fleet *f, int rc);
/* An answer is kept for half of it at least, less the time between two looks (20 s at most). */
#define FLEET_ANSWER_S 120
json_t *fleet_answer_compares(const struct fleet *f, json_t *compares);
json_t *fleet_answer_ops(const struct fleet *f, json_t *ops);
/* Number of the latter. */
unsigned int fleet_num_answer_ops(const struct fleet *f);
/** Remove what an appliance has staged for a request. */
json_t *fleet_stage_remove_op(const struct fleet *f, const char *owner, uint64_t id);
/* The thread: the watch has brought this. */
void fleet_take_requests(struct fleet *f, const struct etcd_kvs *events);
/* The thread: answers may have been missed. */
void fleet_missed_answers(struct fleet *f);
/* The thread, before it leads and from time to time: read what the watch does not bring. */
int fleet_prepare_requests(struct fleet *f, struct error *err);
/* The thread: drop the requests that were to be executed. */
void fleet_drop_requests(struct fleet *f);
void fleet_requests_free(struct fleet *f);

/* fleet_notices.c */
/* The thread: the watch has brought this. */
void fleet_watch_notices(struct fleet *f, const struct etcd_kvs *events);
/* The thread, before it leads and from time to time: read what the watch does not bring. */
int fleet_prepare_notices(struct fleet *f, struct error *err);
void fleet_notices_free(struct fleet *f);
/* The writer: the notice for this change, one operation or none. */
json_t *fleet_notice_ops(const struct fleet *f, json_t *ops);

/* fleet_change.c: a change as struct store_backend wants it, by whoever leads */
int fleet_apply(void *arg, const struct store_op *ops, size_t n, struct error *err);

/* fleet_etcd.c: etcd's own members, for people */
void fleet_look_at_etcd(struct fleet *f);

/* fleet_thread.c */
/* What the thread does until .stop is set. */
void fleet_run(struct fleet *f);
void *fleet_main(void *arg);
#endif
