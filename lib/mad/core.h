/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_CORE_H
#define MAD_CORE_H

/**
 * @file
 * Private to lib/mad: keys, the session table, the pool of request bodies, replies, and dispatch to
 * agents. The files of RMPP need session.h only.
 */

#include "mad/session.h"

/* --- hash.c --- */

/* Key of a received packet. Its payload must be MAD_LEN bytes long. */
void mad_key_of(struct mad_key *key, const struct packet *pkt);
/* Key of the answers to our call. */
void mad_key_call(struct mad_key *key, const struct mad_peer *to, const uint8_t *mad);
/* Keyed hash: without the secret nobody can aim packets at one bucket or worker. */
uint64_t mad_hash(uint64_t secret, const struct mad_key *key);

/* True for SA's Report and ReportResp, which are worker 0's. */
bool mad_is_report(const uint8_t *mad);

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

/* --- session_table.c --- */

/* An IPv4 /24, else a /64. Who has one may have all of its addresses, so it is limited, too. */
struct mad_prefix {
	struct share_holder half_open;
	struct share_holder answering;
	struct share_holder bodies; /* by their chunks */
};

/*
 * An address with sessions or bodies. The entry of a proven address is kept longer, as long as
 * there is room.
 */
struct mad_peer_entry {
	union gid addr;
	struct mad_prefix *prefix;
	struct hash_link link; /* by address, or of the free entries */
	uint32_t sessions;
	uint64_t bytes;
	struct share_holder half_open; /* its half-open sessions */
	struct share_holder answering; /* those whose peer has answered packets of ours */
	struct share_holder bodies; /* half-open sessions with a body, by their chunks */
	struct share_items linger; /* its lingering sessions, oldest first */
	uint64_t proven_until; /* an Ack proved the address until this time; 0: not proven */
	bool idle; /* on idle_peers, kept only for .proven_until */
	TAILQ_ENTRY(mad_peer_entry) idle_link;
};

int mad_table_create(struct mad_worker *w);
void mad_table_destroy(struct mad_worker *w);
struct mad_session *mad_session_find(struct mad_worker *w, const struct mad_key *key,
	uint64_t hash);
struct mad_session *mad_session_of(const struct mad_worker *w, mad_handle h);
/* Return a session to the pool without calling anybody. */
void mad_session_free(struct mad_session *s);
/* State LINGER: the session may be reclaimed. */
void mad_session_reclaimable(struct mad_session *s);
uint32_t mad_table_used(const struct mad_worker *w);
size_t mad_table_memory(const struct mad_worker *w);
/* The first session in use with this index or a higher one, or NULL. */
struct mad_session *mad_table_next(const struct mad_worker *w, uint32_t index);
/* Add or subtract bytes of an address. Its entry exists while it has bytes or sessions. */
void mad_peer_charge(struct mad_peer_entry *p, uint64_t bytes);
void mad_peer_discharge(struct mad_worker *w, struct mad_peer_entry *p, uint64_t bytes);

/* --- session_give_way.c --- */

/*
 * Create a session for a key that has none. A stranger's session counts against its address and is
 * half-open. If the pool is empty, a lingering session is reclaimed, else the oldest half-open
 * session of the address or prefix that has most of them, else the oldest one of an address or
 * prefix that has more than its fair share.
 */
struct mad_session *mad_session_new(struct mad_worker *w, const struct mad_key *key, uint64_t hash,
	bool stranger);
/* End a session because another one needs its place or its memory. */
void mad_session_reclaim(struct mad_session *s);

/* --- session.c --- */

/* Precompute the timeouts of A5. */
void mad_time_init(struct mad_worker *w);

/* --- body_pool.c --- */

int mad_pool_create(struct mad_worker *w);
void mad_pool_destroy(struct mad_worker *w);
void mad_pool_memory(const struct mad_worker *w, uint64_t *used, uint64_t *total);
/* The session's body, if any, is complete or about to be freed: it no longer gives way. */
void mad_body_settle(struct mad_session *s);

/* --- reply.c: destinations, and replies without a session --- */

void mad_peer_of(struct mad_peer *peer, const struct mad_rx *rx);
void mad_path_to(struct path *path, uint8_t transport[MAD_TRANSPORT_LEN],
	const struct mad_peer *to);
void mad_peer_of_session(struct mad_peer *peer, const struct mad_session *s);
/* mad_reply() to a known peer. @param agent  for its departs(), or NULL */
bool mad_reply_to(struct mad_worker *w, const struct mad_peer *peer, const struct mad_agent *agent,
	const uint8_t *mad);
/* The method that answers a request (A2, B7). */
uint8_t mad_response_method(uint8_t mgmt_class, uint8_t class_version, uint8_t method);
/* The request's header with R set; the rest zero, except an SMP's M_Key and route. */
void mad_reply_header(uint8_t reply[MAD_LEN], const uint8_t *request);
/* Set the D bit in the status of a directed-route answer, whatever status the agent set. */
void mad_smp_return(uint8_t *mad);
/* Send waiting replies. @return packets sent */
unsigned int mad_replies_run(struct mad_worker *w, unsigned int budget);

/* --- gsi.c --- */

/* Pass a checked packet to its session, else to an agent. */
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

/* Set the fields common to all calls to QP0, and the first hop of a directed route. */
void mad_smp_call(const struct port_attr *port, struct mad_peer *to, uint8_t *mad);

/* --- agent.c --- */

/* The agent for a class and version, or NULL. */
const struct mad_agent *mad_agent_find(const struct mad_worker *w, uint8_t mgmt_class,
	uint8_t class_version);
const struct mad_protocol *mad_protocol_of(enum mad_protocol_id id);
/* Handle a request (R = 0) that has no session. */
enum verdict mad_dispatch(const struct mad_rx *rx);

/* --- single.c: requests and answers of one packet, for all protocols --- */

#define MAD_WORK_REQUEST 0x2 /* send s->mad, then wait for the answer */
#define MAD_WORK_ANSWER  0x4 /* send s->mad */

/* Send s->mad. @return packets sent; 0: the sink is full */
unsigned int mad_single_send(struct mad_session *s);
/* A request's ResponseTimer expired: send it again, or end the session. */
void mad_single_expire(struct mad_session *s);

#endif
