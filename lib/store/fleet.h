/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_FLEET_H
#define STORE_FLEET_H

/**
 * @file
 * A fleet: several appliances share one database, which etcd holds. docs/fleet.md describes it.
 *
 * One appliance leads and is the only one whose changes etcd accepts. All appliances, the leader
 * included, write their copy on disk (LMDB) from etcd's watch alone.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "store/store.h"

#define FLEET_ENDPOINTS_MAX 16
#define FLEET_MEMBERS_MAX   128
#define FLEET_ETCD_MAX      16
#define FLEET_NAME_MAX      64
#define FLEET_TEXT_MAX      256
#define FLEET_ALARMS_MAX    64

struct fleet_endpoint {
	char url[FLEET_TEXT_MAX]; /**< http://HOST:PORT or https://HOST:PORT */
};

struct fleet_config {
	struct fleet_endpoint endpoint[FLEET_ENDPOINTS_MAX];
	unsigned int num_endpoints; /**< 0: no fleet */
	char prefix[FLEET_TEXT_MAX]; /**< of all keys in etcd */
	char name[FLEET_NAME_MAX]; /**< of this appliance */
	uint32_t lease_s; /**< a leader that is silent for so long is replaced */
	uint32_t max_txn_ops; /**< etcd's --max-txn-ops */
	char user[FLEET_NAME_MAX]; /**< "": no authentication by password */
	char password_file[FLEET_TEXT_MAX];
	char ca_file[FLEET_TEXT_MAX];
	char cert_file[FLEET_TEXT_MAX];
	char key_file[FLEET_TEXT_MAX];
};

struct fleet;

/**
 * Open the copy at @p path, and prepare the fleet; nothing is sent before fleet_start().
 *
 * @param map_bytes  the most the copy may grow to
 * @param backend  set; its .close ends the fleet
 */
int fleet_open(const struct fleet_config *config, const char *path, uint64_t map_bytes,
	struct fleet **fleet, struct store_backend *backend, struct error *err);
/**
 * Start the thread that talks to etcd.
 *
 * @param wake  called by that thread when there is work for store_follow()
 */
int fleet_start(struct fleet *f, void (*wake)(void *arg), void *arg, struct error *err);
/** Give up the lead and end the thread. */
void fleet_stop(struct fleet *f);
/** This appliance's name. Any thread. */
const char *fleet_name(const struct fleet *f);
/** True while changes are accepted here. Any thread. */
bool fleet_leads(const struct fleet *f);

/**
 * True while this appliance leads and no other one can, even if etcd is out of reach: its lease has
 * not ended, and lasts for another eighth of its time. Any thread.
 */
bool fleet_leads_alone(const struct fleet *f);

/**
 * Let an etcd without records replace this appliance's copy, which is refused otherwise. Any
 * thread.
 *
 * @retval -ENOENT  it has not been refused
 */
int fleet_accept_empty(struct fleet *f, struct error *err);

/**
 * True if an appliance of this name takes part, or did so at the look at etcd before the last one.
 * There are three looks in the time of a lease. Who has joined since is a member before its records
 * are here. Any thread.
 */
bool fleet_is_member(struct fleet *f, const char *name);

/** What an appliance has of etcd. */
enum fleet_etcd_state {
	FLEET_ETCD_AWAY, /**< it does not answer */
	FLEET_ETCD_ANSWERS,
	FLEET_ETCD_FULL, /**< it answers, and has no room: fleet_is_full() */
	FLEET_ETCD_REFUSES, /**< a certificate, a password, or a user's rights */
	FLEET_ETCD_NOT_ASKED, /**< what is wrong is here: a name, a file, etcd's certificate */
	FLEET_ETCD_LEFT_ALONE, /**< this appliance is kept out, or does not know the database */
	FLEET_ETCD_NOT_FOLLOWED, /**< what it has, or its watch brings, cannot be used */
};

/** Any thread. */
enum fleet_etcd_state fleet_etcd_state(const struct fleet *f);

/** True if etcd has answered the last request. Any thread. */
bool fleet_connected(const struct fleet *f);
/** True if etcd has no room: it answers, and takes no change. Any thread. */
bool fleet_is_full(const struct fleet *f);

/*
 * Requests for changes: fleet_requests.c. An appliance puts a request into etcd; the leader writes
 * the answer in the transaction that makes the change. The store's writer calls these functions.
 * An ID names one request of a client; it is the same whichever appliance the client asks.
 */

#define FLEET_ID_MAX        96 /* characters of an ID, the NUL included */
#define FLEET_REQUEST_BATCH 40 /* requests or answers in one transaction */

/** A request at the leader. */
struct fleet_request {
	TAILQ_ENTRY(fleet_request) next;
	char id[FLEET_ID_MAX];
	uint64_t created; /**< revision at which it was put into etcd */
	bool taken;
	bool gone; /**< somebody has executed or withdrawn it */
	size_t len;
	uint8_t bytes[];
};

/** A request to put, or an answer to write. */
struct fleet_message {
	const char *id;
	uint64_t created; /**< answer: of its request; 0: the request is not in etcd */
	const void *bytes;
	size_t len;
	uint64_t lease; /**< request: that of its parts; 0: the present one */
	const char *stage_owner; /**< answer: its request's parts, which it removes. NULL: none */
	uint64_t stage_id;
};

enum fleet_news_kind {
	FLEET_ANSWERED, /**< the store has published what the answer says */
	FLEET_GONE, /**< the request is not in etcd any more */
	FLEET_MISSED, /**< answers may have been missed: put all requests again */
};

struct fleet_news {
	STAILQ_ENTRY(fleet_news) next;
	enum fleet_news_kind kind;
	uint64_t after; /* batches that the store must have taken before */
	char id[FLEET_ID_MAX];
	size_t len;
	uint8_t bytes[];
};

/** While not 0, fleet_news() reports what happens to requests. */
void fleet_expect(struct fleet *f, unsigned int requests);
/**
 * Put requests, at most FLEET_REQUEST_BATCH, without an ID twice. One that is in etcd already, or
 * was answered there, is not executed again; its answer comes as if it had just been given.
 *
 * @retval -ENOTCONN, -ENOENT, -ENOSPC  none of them was put: etcd is not there, a request's lease
 *         has ended, or etcd is full
 * @return 0, or another error: it is not known which of them are in etcd
 */
int fleet_ask(struct fleet *f, const struct fleet_message *m, unsigned int n, struct error *err);
/** The lease of what is put into etcd now; 0: none. Its keys go when it ends. */
uint64_t fleet_lease(const struct fleet *f);
/** True if an answer to the request is here, and fleet_news() brings it later. */
bool fleet_is_answered(struct fleet *f, const char *id);
/** Take a request back. @retval 1 it was not executed and will not be; 0 its answer will come */
int fleet_withdraw(struct fleet *f, const char *id, struct error *err);
/** The next thing that happened to any appliance's request; free() it. NULL: none */
struct fleet_news *fleet_news(struct fleet *f);

/** Leader: requests to execute. They belong to the fleet; hand them back by fleet_settle(). */
unsigned int fleet_take(struct fleet *f, struct fleet_request **list, unsigned int max);
/** @param done  false: they have not been executed, give them again */
void fleet_settle(struct fleet *f, struct fleet_request **list, unsigned int n, bool done);
/**
 * Leader: answers, at most FLEET_REQUEST_BATCH, that the next change writes. It happens only if
 * their requests are in etcd (or, if they came to this appliance, neither they nor their answers
 * are there). NULL: no answers.
 */
void fleet_answers(struct fleet *f, const struct fleet_message *m, unsigned int n);
/** Write them without a change. */
int fleet_write_answers(struct fleet *f, struct error *err);

/*
 * The stage: fleet_stage.c. What is too large for a request is put into etcd in parts before, with
 * the lease of the appliance that puts it. The store's writer calls these functions.
 */

/** Put a part; again, if there was no answer. */
int fleet_stage_put(struct fleet *f, uint64_t id, uint32_t part, const void *bytes, size_t len,
	struct error *err);
/**
 * Any thread: the appliance stops. Changes of several transactions and reading of parts end soon
 * with -ECANCELED, until fleet_start().
 */
void fleet_end_long_work(struct fleet *f);
/** Before the first part of a request. If it fails, there is nothing to end. */
int fleet_stage_begin(struct fleet *f, struct error *err);
/** The request is over: remove its parts, if there are any and etcd answers. */
void fleet_stage_end(struct fleet *f, uint64_t id);
/**
 * Read a part of any appliance's.
 *
 * @param bytes  to be released with free()
 * @retval -ENOENT  it is not there
 */
int fleet_stage_get(struct fleet *f, const char *owner, uint64_t id, uint32_t part, uint8_t **bytes,
	size_t *len, struct error *err);

/*
 * Kept notices: fleet_notices.c. A notice is written by the change that causes it, and stays until
 * whoever leads has told all subscribers. The store's writer calls these functions.
 */

#define FLEET_NOTICES_MAX 1024 /* kept at one time */

enum fleet_notice_state {
	FLEET_NOTICE_NEW,
	FLEET_NOTICE_TAKEN, /**< by the store's writer */
	FLEET_NOTICE_TOLD, /**< to be removed from etcd */
	FLEET_NOTICE_FORGOTTEN, /**< removed; the watch has not said so yet */
};

struct fleet_notice {
	TAILQ_ENTRY(fleet_notice) next;
	uint64_t id; /**< random: nobody can guess it */
	uint64_t created;
	uint64_t after; /* batches that the store must have taken before */
	enum fleet_notice_state state;
	bool gone;
	bool seen;
	size_t len;
	uint8_t bytes[];
};

/** A number of this appliance's lead, another one each time; 0: it does not lead. Any thread. */
uint64_t fleet_lead(const struct fleet *f);
/**
 * Keep a notice with the next change. @param bytes  valid until then; @p len 0: no notice
 *
 * @return false: too many are kept
 */
bool fleet_keep_notice(struct fleet *f, const void *bytes, size_t len);
/** Leader: the oldest notice that nobody has taken. NULL: none. Hand it back as told or untold. */
struct fleet_notice *fleet_take_notice(struct fleet *f);
void fleet_notice_told(struct fleet *f, struct fleet_notice *n);
void fleet_notice_untold(struct fleet *f, struct fleet_notice *n);
/** Remove those that were told from etcd. @return 1, or 0: there was none */
int fleet_forget_notices(struct fleet *f, struct error *err);

struct fleet_member {
	char name[FLEET_NAME_MAX];
	bool leader;
	bool self;
	uint64_t revision; /**< the last that it has reported of its copy */
	uint64_t lag; /**< revisions of changes that it may not have; 0: it has all */
};

struct fleet_etcd_member {
	char name[FLEET_NAME_MAX];
	char url[FLEET_TEXT_MAX];
	bool answers;
	bool leader;
	char version[16];
	uint64_t db_bytes; /**< of its file, which etcd's quota bounds */
	uint64_t db_used; /**< of these: what a defragmentation leaves */
	char alarms[FLEET_ALARMS_MAX]; /**< that it has raised, such as "NOSPACE"; "": none */
};

struct fleet_status {
	char name[FLEET_NAME_MAX];
	char leader[FLEET_NAME_MAX]; /**< "": nobody */
	bool leads;
	bool connected; /**< etcd has answered the last request */
	const char *state_name; /**< of fleet_etcd_state(), for people */
	char reason[FLEET_TEXT_MAX]; /**< why it is not connected; "": it is, or was not yet */
	bool full; /**< etcd has no room: fleet_is_full() */
	bool watching;
	bool copy_ok; /**< the copy on disk follows */
	uint64_t cluster;
	uint64_t revision; /**< of the records that queries see */
	uint64_t latest; /**< of the newest change, at the last look */
	uint64_t silent_ms; /**< since etcd's last answer, or the start if there was none */
	uint64_t leader_changes;
	uint64_t disconnects;
	uint64_t watch_starts;
	uint64_t loads; /**< times that all records were read */
	uint64_t changes; /**< transactions that etcd has taken from here */
	uint64_t changes_failed;
	unsigned int num_members;
	unsigned int num_etcd;
	struct fleet_member member[FLEET_MEMBERS_MAX];
	struct fleet_etcd_member etcd[FLEET_ETCD_MAX];
};

/** Any thread; does not wait for etcd. */
void fleet_status(struct fleet *f, struct fleet_status *status);

#endif
