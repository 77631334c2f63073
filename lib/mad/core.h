/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_CORE_H
#define MAD_CORE_H

/**
 * @file
 * Private to lib/mad's core: keys, the session table, the chunk pool, dispatch. Protocols use
 * session.h only.
 */

#include "mad/session.h"

/* --- hash.c --- */

/* Key of a received packet, whose payload is MAD_LEN bytes long. */
void mad_key_of(struct mad_key *key, const struct packet *pkt);
/* Key of the answers to a call of ours. */
void mad_key_call(struct mad_key *key, const struct mad_peer *to, const uint8_t *mad);
/* Without the secret nobody can choose packets that meet in one bucket or worker. */
uint64_t mad_hash(uint64_t secret, const struct mad_key *key);

static inline unsigned int
mad_hash_worker(uint64_t hash, unsigned int workers)
{
	return (unsigned int)((hash >> 32) * workers >> 32);
}

static inline bool
mad_key_equal(const struct mad_key *a, const struct mad_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* --- table.c --- */

/* What is kept of an address while it has sessions or bodies, and of one that has shown that it
 * listens while there is room. */
struct mad_peer_entry {
	union gid addr;
	struct mad_peer_entry *chain;
	uint32_t sessions;
	uint32_t half_open;
	uint64_t bytes;
	struct mad_session_list half_open_list; /* oldest first */
	struct mad_session_list linger_list;
	uint64_t proven_until; /* it listens: an Ack came not long ago; 0: none did */
	bool idle; /* kept for .proven_until alone, on idle_link */
	TAILQ_ENTRY(mad_peer_entry) idle_link;
	TAILQ_ENTRY(mad_peer_entry) rank_link; /* among those with as many half-open sessions */
};

int mad_table_create(struct mad_worker *w);
void mad_table_destroy(struct mad_worker *w);
struct mad_session *mad_session_find(struct mad_worker *w, const struct mad_key *key,
	uint64_t hash);
struct mad_session *mad_session_of(const struct mad_worker *w, mad_handle h);
/*
 * A session for a key that has none. A stranger's counts against its address and is half-open;
 * when there is none left, lingering ones go first, then the greediest address's oldest half-open.
 */
struct mad_session *mad_session_new(struct mad_worker *w, const struct mad_key *key,
	uint64_t hash, bool stranger);
/* Back to the pool; nothing is called. */
void mad_session_free(struct mad_session *s);
/* Into the list of those that may be reclaimed. */
void mad_session_reclaimable(struct mad_session *s);
uint32_t mad_table_used(const struct mad_worker *w);
size_t mad_table_memory(const struct mad_worker *w);
/* The first session in use at this place or behind it, or NULL. */
struct mad_session *mad_table_next(const struct mad_worker *w, uint32_t index);
/* Bytes given to or taken from an address; an entry lives as long as it has any. */
void mad_peer_charge(struct mad_peer_entry *p, uint64_t bytes);
void mad_peer_discharge(struct mad_worker *w, struct mad_peer_entry *p, uint64_t bytes);

/* --- session.c --- */

/* Work out what the formulas of A5 say, once. */
void mad_time_init(struct mad_worker *w);

/* --- body.c --- */

int mad_pool_create(struct mad_worker *w);
void mad_pool_destroy(struct mad_worker *w);
void mad_pool_memory(const struct mad_worker *w, uint64_t *used, uint64_t *total);

/* --- path.c: where datagrams go --- */

void mad_peer_of(struct mad_peer *peer, const struct mad_rx *rx);
void mad_path_to(struct path *path, uint8_t transport[MAD_TRANSPORT_LEN],
	const struct mad_peer *to);
void mad_peer_of_session(struct mad_peer *peer, const struct mad_session *s);
/* mad_reply() to a peer that is known already. @param agent  whose answer it is, or NULL */
bool mad_reply_to(struct mad_worker *w, const struct mad_peer *peer, const struct mad_agent *agent,
	const uint8_t *mad);
/* Replies that waited. @return packets sent */
unsigned int mad_replies_run(struct mad_worker *w, unsigned int budget);

/* --- gsi.c --- */

/* A packet that passed its checks: to its session, else to an agent. */
enum verdict mad_hand_over(struct mad_rx *rx);

/* --- smi.c --- */

#define SMP_PKEY 0xFFFF

static inline bool
mad_is_smp(const uint8_t *mad)
{
	return mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_LID ||
		mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ROUTED;
}

static inline bool
mad_is_directed(const uint8_t *mad)
{
	return mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ROUTED;
}

/* What an SMP's answer has of its request besides the common header. */
void mad_smp_reply(uint8_t reply[MAD_LEN], const uint8_t *request);
/* An answer goes out: of a directed route the status says so, whatever the agent put there. */
void mad_smp_return(uint8_t *mad);
/* A call to QP0: what is the same for all of them; of a directed route, the first hop. */
void mad_smp_call(const struct port_attr *port, struct mad_peer *to, uint8_t *mad);

/* --- agent.c --- */

/* The row for a class and version, or NULL. */
const struct mad_agent *mad_agent_find(const struct mad_worker *w, uint8_t mgmt_class,
	uint8_t class_version);
const struct mad_protocol *mad_protocol_of(enum mad_protocol_id id);
/* A request (R = 0) that has no session. */
enum verdict mad_dispatch(const struct mad_rx *rx);
/* The method of an answer: A2, B7. */
uint8_t mad_response_method(uint8_t mgmt_class, uint8_t class_version, uint8_t method);
/* The answer's header: the request's with R set, the rest zero but for an SMP's key and route. */
void mad_reply_header(uint8_t reply[MAD_LEN], const uint8_t *request);

/* --- single.c: requests and answers of one packet, for all protocols --- */

#define MAD_WORK_REQUEST 0x2 /* send s->mad as a whole, then wait for the answer */
#define MAD_WORK_ANSWER  0x4 /* send s->mad as a whole */

/* s->mad out. @return packets: 0 not now */
unsigned int mad_single_send(struct mad_session *s);
/* The ResponseTimer of a request: again, or the end. */
void mad_single_expire(struct mad_session *s);

#endif
