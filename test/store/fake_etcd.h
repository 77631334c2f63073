/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_STORE_FAKE_ETCD_H
#define TEST_STORE_FAKE_ETCD_H

/**
 * @file
 * A server on the loopback that speaks as much of etcd's JSON gateway as a fleet uses, with a
 * history of revisions. A test scripts what etcd cannot be asked for: an answer that is lost, a
 * watch that is silent, a restored backup. Leases end only when the test says so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_etcd;

struct fake_etcd *fake_etcd_start(void);
void fake_etcd_stop(struct fake_etcd *e);
/** http://127.0.0.1:PORT */
const char *fake_etcd_url(const struct fake_etcd *e);

enum fake_how {
	FAKE_ANSWER,
	FAKE_LOSE_ANSWER, /**< executed, and never answered */
	FAKE_LOSE_REQUEST, /**< neither executed nor answered */
	FAKE_LATE, /**< not answered: fake_etcd_run_late() executes this transaction */
	FAKE_TRICKLE, /**< the answer comes in parts, one each 50 ms */
	FAKE_NO_SPACE, /**< refused, because etcd's quota is exceeded */
	FAKE_DONE_NO_SPACE, /**< executed, and answered as if it was refused for that */
	FAKE_NO_LEADER, /**< refused, because etcd elects a leader */
	FAKE_NO_USER, /**< refused: etcd asks for a user and a password */
	FAKE_NO_TOKEN, /**< refused, because this member does not know the token */
};
/** Treat the next @p times requests to @p path whose body names @p key (NULL: any) like this. */
void fake_etcd_next(struct fake_etcd *e, const char *path, const char *key, enum fake_how how,
	unsigned int times);
/** Before the next request to @p path whose body names @p key, another client removes a key. */
void fake_etcd_before(struct fake_etcd *e, const char *path, const char *key, const char *removed);
/** Before the next request to @p path whose body names @p key, a lease ends. */
void fake_etcd_ends_before(struct fake_etcd *e, const char *path, const char *key, uint64_t lease);
/** A transaction was to be late, and has come. */
bool fake_etcd_has_late(struct fake_etcd *e);
/** Execute it. */
void fake_etcd_run_late(struct fake_etcd *e);
/** Requests to a path so far. */
unsigned int fake_etcd_count(struct fake_etcd *e, const char *path);
/** Operations that one transaction may have; 128 at first. */
void fake_etcd_max_ops(struct fake_etcd *e, unsigned int ops);

/** What another client writes. @p value NULL: it removes the key. @return the revision */
uint64_t fake_etcd_write(struct fake_etcd *e, const char *key, const char *value);
/** @return the value in static memory, or NULL: there is no such key */
const char *fake_etcd_read(struct fake_etcd *e, const char *key);
uint64_t fake_etcd_revision(struct fake_etcd *e);
/** Number of keys that begin with a prefix. */
unsigned int fake_etcd_keys(struct fake_etcd *e, const char *prefix);
/** The lease that a key has; 0: none. */
uint64_t fake_etcd_lease_of(struct fake_etcd *e, const char *key);
/** End a lease: its keys go. */
void fake_etcd_end_lease(struct fake_etcd *e, uint64_t lease);

/** Close all connections, and refuse new ones until it is up again. */
void fake_etcd_down(struct fake_etcd *e, bool down);
/** Forget what came after a revision, as a restored backup has. Call while it is down. */
void fake_etcd_restore(struct fake_etcd *e, uint64_t revision);
/** Forget everything, with another cluster ID. Call while it is down. */
void fake_etcd_replace(struct fake_etcd *e);
void fake_etcd_compact(struct fake_etcd *e, uint64_t revision);
/**
 * This member has raised the alarm NOSPACE: whatever takes room is refused, as by etcd, and its
 * status says so.
 */
void fake_etcd_full(struct fake_etcd *e, bool full);
/** Whatever comes, a fatal alert of TLS answers it: "bad certificate". */
void fake_etcd_alert(struct fake_etcd *e, bool alert);
/** Watches bring nothing while @p silent. */
void fake_etcd_silence(struct fake_etcd *e, bool silent);

#endif
