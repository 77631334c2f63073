/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_ETCD_CLIENT_H
#define STORE_ETCD_CLIENT_H

/**
 * @file
 * Private to lib/store: etcd's JSON gateway (dev-guide/api_grpc_gateway) over libcurl. A client
 * belongs to one thread.
 *
 * Errors, negative: -ETIMEDOUT or -ECONNREFUSED no endpoint answered in time; -EAGAIN etcd has no
 * leader or is overloaded; -ESTALE the revision was compacted or is not there yet; -E2BIG the
 * transaction has too many operations or bytes; -ENOENT there is no such lease; -EACCES refused;
 * -EKEYREVOKED etcd does not accept our certificate; -ENOSPC etcd's quota; -EPROTO the answer is no
 * answer of etcd. Causes in this appliance: -EADDRNOTAVAIL an endpoint's name has no address;
 * -ENOKEY a file of fleet's cannot be used; -EKEYREJECTED etcd's certificate is not trusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "store/fleet.h"

/* --- etcd_json.c: parsing, without a network --- */

struct etcd_header {
	uint64_t cluster_id;
	uint64_t revision;
};

/** A key and its value. The memory belongs to the caller: etcd_kv_free(). */
struct etcd_kv {
	char *key; /* ends with a NUL beyond key_len */
	uint8_t *value;
	size_t key_len;
	size_t value_len;
	uint64_t create_revision;
	uint64_t mod_revision;
	bool gone; /* watch: the key was deleted */
};

struct etcd_kvs {
	struct etcd_kv *at;
	size_t n;
};

/** A message of a watch. */
struct etcd_watched {
	struct etcd_header header;
	struct etcd_kvs events;
	bool created;
	bool canceled;
	uint64_t compact_revision; /* not 0: the start revision was compacted */
};

/** @return a string to be freed with free(), or NULL */
char *etcd_base64(const void *bytes, size_t len);
/** @return length, or -1 if it is no base64; at most strlen / 4 * 3 bytes */
ptrdiff_t etcd_base64_decode(const char *text, size_t len, uint8_t *bytes);
/** An integer, which the gateway writes as text or number, or leaves out if it is 0. */
int etcd_json_u64(const json_t *object, const char *key, uint64_t *value);
int etcd_json_header(const json_t *reply, struct etcd_header *h);
/** @param list  an array of KeyValue, or NULL: none */
int etcd_json_kvs(const json_t *list, struct etcd_kvs *kvs);
/** What the first operation of a transaction, an etcd_get(), has read. */
int etcd_json_got(const json_t *reply, struct etcd_kvs *kvs, struct error *err);
void etcd_kvs_free(struct etcd_kvs *kvs);
const struct etcd_kv *etcd_kvs_find(const struct etcd_kvs *kvs, const char *key);
/** Parse one line of a watch. */
int etcd_json_watched(const char *text, size_t len, struct etcd_watched *w, struct error *err);
void etcd_watched_free(struct etcd_watched *w);
/** The error that a reply with an HTTP status other than 200 describes. */
int etcd_json_error(long http, const char *text, size_t len, struct error *err);

/* --- etcd_client.c --- */

#define ETCD_TOKEN_MAX 4096

struct etcd_client;

struct etcd_client *etcd_client_create(const struct fleet_config *config, struct error *err);
void etcd_client_destroy(struct etcd_client *c);
/** True for errors after which it is not known whether etcd is there. */
bool etcd_gave_no_answer(int rc);
/**
 * Send a request. An endpoint that fails, or moves no byte for its share of the time, is followed
 * by the next one, until the time is over.
 *
 * @param path  such as "/v3/kv/txn"
 * @param body  reference taken
 * @param reply  to be released with json_decref()
 */
int etcd_call(struct etcd_client *c, const char *path, json_t *body, unsigned int timeout_ms,
	json_t **reply, struct error *err);
/** The same to one endpoint only, without failover. */
int etcd_call_at(struct etcd_client *c, unsigned int endpoint, const char *path, json_t *body,
	unsigned int timeout_ms, json_t **reply, struct error *err);
/**
 * The token that etcd gave to this client, "": none. Asking for one takes etcd long on purpose
 * (bcrypt), so a client that must not wait borrows another's.
 */
const char *etcd_client_token(const struct etcd_client *c);
int etcd_client_borrow(struct etcd_client *c, const char *token);
/**
 * True, once, if an endpoint has refused a borrowed token: each member of etcd forgets tokens when
 * it restarts, and those that were not used there for a while.
 */
bool etcd_client_token_refused(struct etcd_client *c);
/** Ask for a new token before the next request. */
void etcd_client_forget_token(struct etcd_client *c);
/** Number of the endpoint that answered last. */
unsigned int etcd_client_endpoint(const struct etcd_client *c);

/** Keys from @p first to before @p end (NULL: one key), at a revision (0: now). */
int etcd_range(struct etcd_client *c, const char *first, const char *end, uint64_t revision,
	uint32_t limit, unsigned int timeout_ms, struct etcd_header *h, struct etcd_kvs *kvs,
	bool *more, struct error *err);
int etcd_lease_grant(struct etcd_client *c, uint32_t seconds, unsigned int timeout_ms,
	uint64_t *lease, struct error *err);
/** @retval -ENOENT  the lease has ended */
int etcd_lease_keep(struct etcd_client *c, uint64_t lease, unsigned int timeout_ms,
	struct error *err);
int etcd_lease_revoke(struct etcd_client *c, uint64_t lease, unsigned int timeout_ms,
	struct error *err);

/** Parts of a transaction; each returns a new reference. */
json_t *etcd_compare(const char *key, const char *target, const char *field, uint64_t revision);
json_t *etcd_put(const char *key, const void *value, size_t len, uint64_t lease);
json_t *etcd_delete(const char *key);
json_t *etcd_delete_range(const char *first, const char *end);
json_t *etcd_get(const char *first, const char *end);

/* --- a watch, polled together with a client's thread --- */

struct etcd_watch;

/** Called for each message, in order. @return negative to end the watch */
typedef int (*etcd_watch_fn)(void *arg, const struct etcd_watched *w);

/** While it returns true, the watch is not read: etcd waits. */
typedef bool (*etcd_watch_full_fn)(void *arg);

/** Begin to watch keys from @p first to before @p end, at the client's endpoint. */
struct etcd_watch *etcd_watch_start(struct etcd_client *c, const char *first, const char *end,
	uint64_t revision, etcd_watch_fn fn, etcd_watch_full_fn full, void *arg, struct error *err);
/**
 * Wait for messages, for @p wait_ms or until etcd_client_wake(), and handle them.
 *
 * @param watch  NULL: only wait
 * @retval 0  the watch goes on; otherwise it has ended, and etcd_watch_stop() must be called
 */
int etcd_watch_poll(struct etcd_client *c, struct etcd_watch *watch, unsigned int wait_ms,
	struct error *err);
void etcd_watch_stop(struct etcd_watch *watch);
/** Bytes that it has brought so far; NULL: 0. A message may take long to arrive. */
uint64_t etcd_watch_received(const struct etcd_watch *watch);
/** End a wait of etcd_watch_poll(). Any thread. */
void etcd_client_wake(struct etcd_client *c);

#endif
