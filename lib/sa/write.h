/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_WRITE_H
#define SA_WRITE_H

/**
 * @file
 * A change on its way: filled in by a worker, executed by the store's thread as one of a batch,
 * answered by the worker. What is done to the records stands in service.c, mcmember.c, inform.c and
 * config.c.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/access.h"
#include "sa/bulk.h"
#include "sa/record.h"
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
};

struct sa_write {
	struct sa_worker *w;
	struct sa_write *next_free;
	mad_handle handle;
	enum write_kind kind;
	enum sa_version version;
	const struct sa_record_type *type;
	struct requester who;
	struct mad_peer peer; /**< where Reports for a subscriber go */
	uint8_t reply[MAD_LEN]; /**< the answer's header */
	uint64_t mask; /**< version 2's numbering */
	uint32_t rid; /**< in and out */
	uint8_t edit; /**< enum sa_edit, of Config */
	struct mad_body *body; /**< of a Config in many packets */
	uint32_t data_len; /**< of a Config: bytes of records */
	uint8_t data[SA1_AREA]; /**< of a Config in one packet */
	uint8_t rec[SA_RECORD_MAX]; /**< in: what was asked; out: what is answered */
	uint16_t status; /**< out */
};

#define WRITE_EVENTS 1024 /* of one batch; a larger one is not told at all */

/** Something that subscribers may want to know. */
struct sa_event {
	uint16_t trap;
	uint16_t pkey; /**< of a group */
	union gid gid;
};

/** The store's thread's own. */
struct sa_writer {
	uint32_t next_rid[SA_TABLES]; /**< 0: not known yet */
	uint16_t next_mlid;
	uint64_t now; /**< seconds, as told last */
	uint64_t next_expiry; /**< no lease ends before */
	struct sa_event event[WRITE_EVENTS];
};

/** One batch, handed from function to function. */
struct write_batch {
	struct sa *sa;
	struct store_txn *txn;
	uint64_t now;
	unsigned int events; /**< noted so far, in sa->writer.event */
	unsigned int mark; /**< of them before this request */
	unsigned int changes; /**< records put or removed */
};

/** One change each; the transaction is put back if they fail. @return a MAD status */
uint16_t write_service_set(struct write_batch *b, struct sa_write *w);
uint16_t write_service_delete(struct write_batch *b, struct sa_write *w);
uint16_t write_mc_join(struct write_batch *b, struct sa_write *w);
uint16_t write_mc_leave(struct write_batch *b, struct sa_write *w);
uint16_t write_subscribe(struct write_batch *b, struct sa_write *w);
uint16_t write_rid_delete(struct write_batch *b, struct sa_write *w);
uint16_t write_config(struct write_batch *b, struct sa_write *w);

/** Take a membership back, in part or as a whole, and its group with its last full member. */
uint16_t mc_remove_member(struct write_batch *b, struct sa_write *w,
	const struct store_record *r, uint8_t leave_states);

/**
 * Give a subscription, or a service, to another GID; if that has an equal one (or, of subscriptions,
 * no room), it just ends. @return a MAD status
 */
uint16_t write_subscriber(struct write_batch *b, const struct store_record *r, const uint8_t *gid);
uint16_t write_service_owner(struct write_batch *b, const struct store_record *r,
	const uint8_t *gid);
/**
 * adopt.c: a record that makes a LID known has been put. What the LIDs of its port have said of
 * themselves as strangers becomes the port's. @return a MAD status
 */
uint16_t write_adopt(struct write_batch *b, uint16_t lid);

/* what the files that change records share (write.c) */
const struct store_version *write_view(const struct write_batch *b);
/** Put a record and what is kept behind it; tell of ports that come. @return a MAD status */
uint16_t write_put(struct write_batch *b, const struct sa_record_type *t, uint32_t rid,
	const uint8_t *rec, const void *tail, size_t tail_len);
uint16_t write_del(struct write_batch *b, const struct sa_record_type *t, uint32_t rid);
/** Put a record as an operator or a Config gives it, with what this table keeps behind it. */
uint16_t write_put_plain(struct write_batch *b, const struct sa_record_type *t, uint32_t rid,
	const uint8_t *rec);
/** A RID that is free, for tables where they are assigned; 0: none. */
uint32_t write_new_rid(struct write_batch *b, unsigned int table);
/** RID of the record that stands for the same thing, where RIDs are assigned; 0: none. */
uint32_t write_same(const struct write_batch *b, const struct sa_record_type *t,
	const uint8_t *rec);
/** First record of an index's key whose bytes [offset, offset + len) are @p bytes. */
const struct store_record *write_find(const struct store_version *v, unsigned int index,
	uint64_t key, unsigned int offset, const uint8_t *bytes, size_t len);
/** Has a key of an index so many records already? Counts no further. */
bool write_crowded(const struct write_batch *b, unsigned int index, uint64_t key, unsigned int max);
void write_event(struct write_batch *b, uint16_t trap, uint16_t pkey, const uint8_t *gid);
/** May the requester change what belongs to this GID? */
bool write_allowed(const struct write_batch *b, const struct sa_write *w, const uint8_t *gid);

/** Behind a ServiceRecord: when its lease ends, in seconds; 0: to be counted from now on. */
struct service_tail {
	uint64_t expiry;
};
#define SERVICE_NEVER UINT64_MAX
struct service_tail service_tail(const uint8_t *rec, uint64_t now);
uint64_t service_lease_end(const struct store_record *r);
/** Remove the services whose lease has ended. @return changes made; *next: earliest to end */
unsigned int service_expire(struct write_batch *b, uint64_t *next);

/** Behind an InformInfoRecord: where Reports go. */
struct subscriber {
	struct mad_peer peer;
	uint8_t class_version;
	bool trusted;
};
/** @return false: the record came from elsewhere, and no Report can be sent */
bool subscriber_of(const struct store_record *r, struct subscriber *s);

#endif
