/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_WRITE_H
#define SA_WRITE_H

/**
 * @file
 * A change in progress: a worker fills it in, the store's thread executes it in a batch, the worker
 * answers. service.c, mcmember.c, inform.c and config.c change the records.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/access.h"
#include "sa/bulk.h"
#include "sa/record.h"
#include "sa/sa.h"
#include "store/store.h"

struct sa;
struct sa_worker;

enum write_kind {
	WRITE_SERVICE_SET,
	WRITE_SERVICE_DELETE,
	WRITE_MC_JOIN,
	WRITE_MC_LEAVE,
	WRITE_SUBSCRIBE,
	WRITE_RID_DELETE, /**< version 1: Service or MCMember by RID */
	WRITE_CONFIG,
	WRITE_NOTICE, /**< a fleet: a trap of another issuer, for the leader to report */
	WRITE_OWNED, /**< a fleet: the records of an appliance's own ports (sa/owned.h) */
	WRITE_IMPORT, /**< a fleet: an operator's import at another appliance (sa/staged.h) */
	WRITE_CONFIG_STAGED, /**< a fleet: a Config whose records are staged (sa/staged.h) */
};

struct sa_write {
	struct sa_worker *w;
	struct sa_write *next_free;
	mad_handle handle;
	enum write_kind kind;
	enum sa_version version;
	const struct sa_record_type *type;
	struct requester who;
	struct mad_peer peer; /**< destination of Reports to a subscriber */
	uint8_t reply[MAD_LEN]; /**< header of the answer */
	uint64_t mask; /**< in version 2's numbering */
	uint32_t rid; /**< in and out */
	uint8_t edit; /**< Config: enum sa_edit */
	struct mad_body *body; /**< data of a multi-packet Config */
	/** data of a Config that another appliance has passed on, of own ports, or of a stage */
	const uint8_t *forwarded;
	uint32_t data_len; /**< Config: length of the records; own ports, stage: of all data */
	const uint8_t *staged; /**< import, staged Config: the records; NULL: not read yet */
	uint64_t stage_lease; /**< import: the one that its parts have */
	bool only_now; /**< in a fleet: the leader executes it at once, or nobody does */
	size_t staged_len;
	uint8_t data[SA1_AREA]; /**< data of a single-packet Config */
	uint8_t rec[SA_RECORD_MAX]; /**< in: record of the request; out: record of the answer */
	uint16_t status; /**< out */
	bool unstaged; /**< out, import: its parts have gone, and its request was never put */
	bool not_made; /**< out, import: nobody has executed it, or will; .rec says why */
	bool share_full; /**< out: refused, because the requester has its share of the table */
};

#define WRITE_EVENTS 1024 /* most events of one batch; if there are more, all are dropped */

#define SA_TRAP_LEN 64 /* bytes of a Notice without IssuerGID */

/** An event that subscribers may want to know. */
struct sa_event {
	uint16_t trap;
	uint16_t pkey; /**< the group's; 0: a port's event */
	union gid gid;
	bool is_trap; /**< of another issuer: .notice describes it, and the fields above are 0 */
	uint8_t notice[SA_TRAP_LEN];
	/* a fleet: the event is kept until its subscribers have been told */
	uint64_t number; /**< for sa_event_told(); 0: it is not kept */
	uint64_t secret; /**< the TIDs of its Reports are made of it */
};

/** Private to the store's thread. */
struct sa_writer {
	uint32_t next_rid[SA_TABLES]; /**< 0: not known yet */
	uint16_t next_mlid;
	uint64_t now; /**< seconds, at the last call */
	uint64_t next_expiry; /**< no lease ends earlier */
	struct sa_event event[WRITE_EVENTS];
};

/** A batch in progress. */
struct write_batch {
	struct sa *sa;
	struct store_txn *txn;
	uint64_t now;
	unsigned int events; /**< events so far, in sa->writer.event */
	unsigned int mark; /**< events before this request */
	unsigned int changes; /**< records put or removed */
	uint64_t origin; /**< where the stranger is that asks; 0: a known port or the operator */
	/** A request is too large for one transaction: this is a part, and it comes once more. */
	bool unfinished;
};

/** A point of a batch to return to. */
struct write_point {
	struct store_savepoint store;
	unsigned int events;
	unsigned int changes;
};
void write_save(struct write_batch *b, struct write_point *p);
/** Undo what came after this point. */
void write_undo(struct write_batch *b, const struct write_point *p);

/**
 * Each executes one change; on failure the caller rolls the transaction back. @return a MAD status
 */
uint16_t write_service_set(struct write_batch *b, struct sa_write *w);
uint16_t write_service_delete(struct write_batch *b, struct sa_write *w);
uint16_t write_mc_join(struct write_batch *b, struct sa_write *w);
uint16_t write_mc_leave(struct write_batch *b, struct sa_write *w);
uint16_t write_subscribe(struct write_batch *b, struct sa_write *w);
uint16_t write_rid_delete(struct write_batch *b, struct sa_write *w);
uint16_t write_config(struct write_batch *b, struct sa_write *w);
uint16_t write_notice(struct write_batch *b, struct sa_write *w);
uint16_t write_owned(struct write_batch *b, struct sa_write *w);
uint16_t write_import(struct write_batch *b, struct sa_write *w);
/** write_change.c: parts of an operator's change. @return 0 or a negative errno */
int write_remove_before(struct write_batch *b, enum sa_replaced what, struct error *err);
int write_change(struct write_batch *b, const struct sa_change *c, struct error *err);
/** Copy bytes of a Config's records, as they were on the wire. */
void config_read_wire(const struct sa_write *w, uint64_t offset, uint8_t *wire, size_t len);

/**
 * Remove a membership or some of its states; with the last full member delete the group. If that is
 * too large for one transaction, some other members are removed, w is as before, and the batch is
 * unfinished.
 */
uint16_t mc_remove_member(struct write_batch *b, struct sa_write *w, const struct store_record *r,
	uint8_t leave_states);

/**
 * Move a subscription or service to another GID. If that has an equal one (or, for subscriptions,
 * no room), delete it instead. @return a MAD status
 */
uint16_t write_subscriber(struct write_batch *b, const struct store_record *r, const uint8_t *gid);
uint16_t write_service_owner(struct write_batch *b, const struct store_record *r,
	const uint8_t *gid);
/**
 * adopt.c: a record was put that makes a LID's port known. Subscriptions and services that this
 * port's LIDs made as strangers become the port's. @return a MAD status
 */
uint16_t write_adopt(struct write_batch *b, uint16_t lid);

/* record_change.c: functions for the files that change records */
const struct store_version *write_view(const struct write_batch *b);
/**
 * Put a record and its tail: our own data about it (a lease's end, where it came from, where
 * Reports go), which is stored after its bytes and never sent. Post events for new ports. @return
 * a MAD status
 */
uint16_t write_put(struct write_batch *b, const struct sa_record_type *t, uint32_t rid,
	const uint8_t *rec, const void *tail, size_t tail_len);
uint16_t write_del(struct write_batch *b, const struct sa_record_type *t, uint32_t rid);
/**
 * Put a record whose caller has no tail for it: from an operator, a Config, a Set of a service, or
 * to start the lease of an imported one. A ServiceRecord gets the end of its lease and its origin,
 * an InformInfoRecord keeps the address of its Reports if the subscriber is the same; all others
 * get no tail.
 */
uint16_t write_put_plain(struct write_batch *b, const struct sa_record_type *t, uint32_t rid,
	const uint8_t *rec);
/** An unused RID for a table with assigned RIDs; 0: none. */
uint32_t write_new_rid(struct write_batch *b, unsigned int table);
/** Tables with assigned RIDs: RID of the record that describes the same thing; 0: none. */
uint32_t write_same(const struct write_batch *b, const struct sa_record_type *t,
	const uint8_t *rec);
/** First record with an index key whose bytes [offset, offset + len) are @p bytes. */
const struct store_record *write_find(const struct store_version *v, unsigned int index,
	uint64_t key, unsigned int offset, const uint8_t *bytes, size_t len);
/** A trap of another issuer, with its 64 bytes. */
void write_trap_event(struct write_batch *b, const uint8_t *notice);
void write_event(struct write_batch *b, uint16_t trap, uint16_t pkey, const uint8_t *gid);
/** True if the requester may change records that belong to this GID. */
bool write_allowed(const struct write_batch *b, const struct sa_write *w, const uint8_t *gid);

/* share.c: the share of a table that requesters may have which may not change everything */
/**
 * Where a stranger is: the key of the indexes that count strangers' records. In InfiniBand its LID,
 * as it may put any GID into a GRH; with RoCE our address that it talks to. 0: not a stranger.
 */
uint64_t share_origin(const struct requester *who, const struct mad_peer *peer);
/**
 * True if the requester may put one more record into the table. A manager always may.
 *
 * @param gid  owner of the record
 */
bool share_has_room(const struct write_batch *b, struct sa_write *w, unsigned int table,
	const uint8_t *gid);

/** Tail of a ServiceRecord. */
struct service_tail {
	uint64_t expiry; /**< when its lease ends, in seconds; 0: the lease has not started yet */
	uint64_t origin; /**< as share_origin() */
};
#define LEASE_NEVER UINT64_MAX
uint64_t service_lease_end(const struct store_record *r);
uint64_t service_origin(const struct store_record *r);

/* lease.c: the start of leases */
#define STRANGER_LEASE 3600 /* seconds: the most that a stranger's record lasts without renewal */
/** When what a stranger asks for ends, in seconds; 0: the requester is no stranger. */
uint64_t lease_of_stranger(struct write_batch *b);
/** Put a service; its lease begins. */
uint16_t lease_put_service(struct write_batch *b, uint32_t rid, const uint8_t *rec);
/**
 * lease_expire.c: remove what has outlived its lease. @return changes made; *next: when the next
 * lease ends
 */
unsigned int lease_expire(struct write_batch *b, uint64_t *next);

/** Tail of an MCMemberRecord that a requester wrote. */
struct member_tail {
	uint64_t origin; /**< as share_origin() */
	uint64_t expiry; /**< a stranger's: when its lease ends; 0: it has not started yet */
};
/** All 0 for a record without a tail (imported). */
void member_tail_of(const struct store_record *r, struct member_tail *tail);

/** Tail of an InformInfoRecord: where to send Reports. */
struct subscriber {
	uint64_t origin; /**< as share_origin() */
	struct mad_peer peer;
	uint8_t class_version;
	bool trusted;
	bool sees_keys;
	uint8_t asked; /**< times the subscription was set again, modulo 256 */
	uint64_t expiry; /**< a stranger's: when its lease ends; 0: it has not started yet */
};
/** @return false: the record has no tail (imported), so no Report can be sent */
bool subscriber_of(const struct store_record *r, struct subscriber *s);
#define SUBSCRIBER_TAIL_MAX 128
/** The tail as bytes, whose first one is the version of their form. @return their number */
size_t subscriber_put(const struct subscriber *s, uint8_t tail[SUBSCRIBER_TAIL_MAX]);
/** write_put() for a subscription. */
uint16_t write_put_subscriber(struct write_batch *b, uint32_t rid, const uint8_t *rec,
	const struct subscriber *s);

#endif
