/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_ETCD_MODEL_H
#define SIM_ETCD_MODEL_H

/**
 * @file
 * What etcd's members agree on: keys in revisions, leases, transactions. It does what a request
 * says at once; fleet_net.c makes the members, the network and the faults around it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/** Rules that are broken on purpose, to show that the checks find it. */
enum etcd_plant {
	PLANT_NONE,
	PLANT_NO_FENCE, /**< comparisons with the leader's key always hold */
	PLANT_NOT_DURABLE, /**< some transactions are acknowledged and forgotten */
	PLANT_TWICE, /**< comparisons with requests and answers always hold */
	/** Comparisons with imports' requests and answers hold, and an answer removes no parts. */
	PLANT_IMPORT_TWICE,
	PLANT_HALF, /**< of some transactions the last writes are not executed */
	PLANT_STAGE_STAYS, /**< what is staged stays when its lease ends */
	PLANT_MEMBER_STAYS, /**< a member's key stays when its lease ends */
	PLANT_MEMBER_HIDDEN, /**< a list of members lacks one of them */
	PLANT_WRONG_KEY, /**< some records are written to the key of another one */
	PLANT_NOTICE_LOST, /**< of some transactions the notices are not written */
	PLANT_NOTICE_GOES, /**< all notices go when any lease ends */
	PLANT_WATCH_GAP, /**< some watches lack some events of records */
	PLANT_EARLY_ANSWER, /**< a watch brings answers before the records of their transaction */
	PLANT_FAST_CLOCK, /**< leases end in half of the time that the appliances count on */
	PLANT_COPY_GAP, /**< some records that a watch brings are not written to the disk */
};

/** What happened to a key at a revision. */
struct model_event {
	char *key;
	uint8_t *value; /**< with a NUL behind it; NULL: the key was removed */
	size_t len;
	uint64_t created;
	uint64_t revision;
	uint64_t lease;
	size_t before; /**< number of the key's event before, plus 1; 0: none */
};

struct model_key {
	const char *key;
	size_t last; /**< number of its last event */
};

struct model_lease {
	uint64_t seconds; /**< 0: it has ended */
	uint64_t end; /**< ns */
};

struct etcd_model {
	uint64_t now; /**< ns, set by the caller */
	uint64_t revision;
	uint64_t compacted;
	unsigned int max_ops;
	struct model_event *event; /**< by revision */
	size_t events, events_room;
	struct model_key *key; /**< sorted; all that ever were */
	size_t keys, keys_room;
	struct model_lease *lease; /**< by ID */
	size_t leases;
	enum etcd_plant plant;
	/** The next transaction, its end or its notices: as .plant says. */
	bool forget;
	/** A transaction was executed and has written this key. */
	void (*wrote)(void *arg, const struct model_event *e);
	void *arg;
};

struct etcd_model *etcd_model_create(void);
void etcd_model_destroy(struct etcd_model *m);
/** Execute a request. @return the answer; or NULL, and @p error is its text */
json_t *etcd_model_run(struct etcd_model *m, const char *path, const json_t *q, const char **error);
/** Remove the keys of leases that have ended. */
void etcd_model_expire(struct etcd_model *m);
/** A new leader of etcd: all leases last for their whole time again. */
void etcd_model_promote(struct etcd_model *m);
/** The event that says what a key is at a revision; NULL: there is no such key. */
const struct model_event *etcd_model_at(const struct etcd_model *m, const char *key,
	uint64_t revision);
/** Number of the first event of this revision or a later one. */
size_t etcd_model_first(const struct etcd_model *m, uint64_t revision);
/** True for a key below "/p/" of this kind: 'r' is a record's, and so on. */
bool etcd_model_is_kind(const char *key, char kind);
/** Number of the first key that is not below @p key. */
size_t etcd_model_key(const struct etcd_model *m, const char *key);

#endif
