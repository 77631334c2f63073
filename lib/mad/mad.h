/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_MAD_H
#define MAD_MAD_H

/**
 * @file
 * Management datagrams on QP0 and QP1: receive, check, dispatch to agents; calls to other managers
 * with timeout and retries; and the two reliable multi-packet protocols, class version 1 of the SA
 * (sa-multipacket A) and RMPP (B), as sessions of the worker that owns them.
 *
 * Everything here belongs to one worker and may be called on it only, mad_owner() and reading
 * counters apart. Nothing reads a clock, allocates after creation, logs or calls EAL.
 *
 * A session is one multi-packet transaction, or one whose answer comes later. Its key is {peer
 * address, peer QP, port, class, class version, TID, method without R, role}; its packets all hash
 * to one worker.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/timer_wheel.h"
#include "base/verdict.h"
#include "mad/layout.h"
#include "port/port.h"
#include "wire/packet.h"
#include "wire/path.h"
#include "wire/tx.h"

struct mad_worker;

/** The other end of a datagram: where one came from, and so where its answer goes. */
struct mad_peer {
	struct av av; /**< complete: av.dmac is the MAC it came from, both GIDs or LIDs are set */
	uint32_t qpn;
	uint32_t qkey; /**< that it wants: MAD_QKEY for QP1, else the same by convention */
	uint16_t pkey; /**< our table's entry that matched */
	uint32_t neighbour; /**< lib/link's next hop, or PATH_NO_NEIGHBOUR: av.dmac is final */
};

/** Names a session of this worker; 0 names none. Stale handles are noticed. */
typedef uint64_t mad_handle;

struct mad_limits {
	uint32_t max_sessions; /**< of a worker */
	uint32_t max_sessions_per_peer; /**< peer: a GID or LID */
	uint64_t max_bytes; /**< of requests being reassembled, per worker */
	uint64_t max_bytes_per_peer;
	uint16_t v1_window; /**< asked for in our requests, >= 64 */
	uint16_t rmpp_window; /**< step of NewWindowLast (B6) */
	uint16_t rmpp_send_max; /**< segments in flight at most, whatever the peer allows */
	uint8_t retries; /**< of a packet, and Resend requests for one; <= 7 */
	uint8_t resp_time; /**< ClassPortInfo.RespTimeValue of ours, 0..31 */
	bool v1_flags_lsb; /**< the other reading of FragmentFlag (A3) */
	bool v1_early_resend; /**< send again by round trips, too, before the timeouts of A5 */
	uint64_t rmpp_total_ms; /**< overall timer of an incomplete message (B6): ABORT 118 */
	uint64_t keepalive_total_ms; /**< a session kept only by KeepAlives ends after this */
};
extern const struct mad_limits mad_limits_default;

struct mad_worker_config {
	unsigned int id;
	unsigned int workers;
	uint64_t hash_key; /**< secret of mad_hash(), the same on all workers */
	uint64_t hz; /**< time units per second */
	const struct allocator *alloc;
	const struct rng *rng;
	struct timer_wheel *wheel;
	struct tx_sink *tx;
	struct tx_sink *smp_tx; /**< of SMPs, VL15's own (worker 0); NULL: as all else */
	/** Attributes of a port, or NULL. */
	const struct port_attr *(*port)(void *arg, uint16_t port);
	void *port_arg;
	struct mad_limits limits;
	bool icrc_unchecked;
	/** A packet for QP1 was dropped for its Q_Key, or else its P_Key; may be NULL. */
	void (*violation)(void *arg, const struct packet *pkt, bool qkey);
	void *violation_arg;
};

/** RespTimeValue that every class of ours announces. */
uint8_t mad_resp_time(const struct mad_worker *w);
/** Attributes of a port as they are now, or NULL. */
const struct port_attr *mad_port(const struct mad_worker *w, uint16_t port);

struct mad_worker *mad_worker_create(const struct mad_worker_config *config);
void mad_worker_destroy(struct mad_worker *w);

/**
 * Worker whose session or agent a packet for QP1 belongs to; any lcore, before the ICRC check. Of
 * QP0, and for requests of class 0x04, it is worker 0.
 */
unsigned int mad_owner(uint64_t hash_key, unsigned int workers, const struct packet *pkt);

/**
 * One packet for QP1, header-parsed. Checks in this order: opcode class, ICRC, P_Key (any table
 * entry), Q_Key, length, base version; then agent, transaction or session.
 */
enum verdict mad_receive(struct mad_worker *w, const struct packet *pkt, uint64_t now);
/**
 * One packet for QP0 of a native IB port, header-parsed; worker 0 only. Checks in this order
 * (smp-sma 6): port type, VL 15, no GRH, UD, CRCs, length, base version, class 0x01 or 0x81; of a
 * directed route, that it ends here (smp-sma 2). P_Key and Q_Key are not looked at. Then as
 * mad_receive(): a response to a call of ours, or the agent of class and version.
 */
enum verdict mad_receive_smp(struct mad_worker *w, const struct packet *pkt, uint64_t now);
/** Send what sessions have due, round robin. @return packets sent */
unsigned int mad_run(struct mad_worker *w, uint64_t now, unsigned int budget);
bool mad_pending(const struct mad_worker *w);

/* --- bytes of many packets --- */

/** Data to send: random access, so that any segment can be sent again without a copy. */
struct mad_source {
	void *arg;
	uint64_t length; /**< bytes in all */
	/**
	 * Copy bytes [offset, offset + len) to @p buf.
	 * @retval -ESTALE  they are gone: the transfer ends with a status (no resources)
	 * @retval -EAGAIN  class version 1, more than one packet: they are not ready. Asked again
	 *                  each turn, KeepAlives meanwhile
	 */
	int (*read)(void *arg, uint64_t offset, uint8_t *buf, uint32_t len);
	/** The session needs them no more; called exactly once. */
	void (*release)(void *arg);
};

/** A request's data, reassembled; in chunks of the worker's pool. */
struct mad_body;
uint64_t mad_body_length(const struct mad_body *b);
/** Copy out; the caller keeps within the length. */
void mad_body_read(const struct mad_body *b, uint64_t offset, void *buf, size_t len);
/** On the worker it came from. */
void mad_body_free(struct mad_worker *w, struct mad_body *b);

/* --- agents: those who answer --- */

enum mad_outcome {
	MAD_ANSWER, /**< send req->reply */
	MAD_SILENT, /**< no answer */
	/**
	 * Send req->reply's header with req->source's data, segmented. RMPP, other classes than the
	 * SA's: what fits one packet answers a request without RMPP as one packet without RMPP.
	 */
	MAD_STREAM,
	MAD_LATER, /**< mad_answer() or mad_stream() with req->handle will follow */
};

/** A request that has arrived as a whole. */
struct mad_request {
	const struct mad_peer *peer;
	const uint8_t *mad; /**< MAD_LEN bytes; of a multi-packet request its first segment */
	/** of a multi-packet request; the handler owns it if it sets take_body */
	struct mad_body *body;
	bool take_body;
	mad_handle handle; /**< 0 for methods without MAD_METHOD_SESSION, until mad_later() */
	uint64_t arrived; /**< when its first packet was received */
	uint64_t now;
	/** MAD_LEN bytes: the request's header with R set, class header fields cleared, no data */
	uint8_t *reply;
	struct mad_source source;
	const struct mad_late *late; /**< for mad_later() */
	/** what a request that is not answered ends as; DATAGRAM until the handler says otherwise */
	enum verdict verdict;
};

#define MAD_METHOD_SESSION 0x1 /**< a repeated request is recognised while the first is answered */
#define MAD_METHOD_MULTI_REQUEST 0x2 /**< may come in many packets, and then has a session */
#define MAD_METHOD_MULTI_RESPONSE 0x4 /**< its answer is a stream, if only of one packet */
#define MAD_METHOD_LATER 0x8 /**< mostly answered at once; a session only when mad_later() asks */

struct mad_method {
	uint8_t method; /**< 0 ends a list */
	uint8_t flags;
};

enum mad_protocol_id {
	MAD_SINGLE, /**< never more than one packet */
	MAD_SA1, /**< sa-multipacket A */
	MAD_RMPP, /**< sa-multipacket B */
};

#define MAD_ANY_VERSION 0xFF /**< those versions of a class that no other row has */

/** A row of the dispatch table. Unknown class or version, method: answered with B2's status. */
struct mad_agent {
	uint8_t mgmt_class;
	uint8_t class_version; /**< or MAD_ANY_VERSION */
	const char *name;
	enum mad_protocol_id protocol;
	/** where data begins in a MAD: 64, 56, 40 (vendor classes 0x30 to 0x4F), 36 */
	uint8_t data_offset;
	/** NULL: the handler sees all but responses, and answers 0x0008 itself (QP0: M_Key first) */
	const struct mad_method *methods;
	/** A method of the list. Unknown attributes are the handler's to answer (0x000C). */
	enum mad_outcome (*request)(void *arg, struct mad_request *req);
	void *arg;
	/**
	 * The first packet of an answer goes to the transmit sink at @p now: the last time to write to
	 * it. Called again when that packet is sent again. NULL: nothing to write. Not for streams
	 * of MAD_SA1.
	 */
	void (*departs)(void *arg, uint8_t *mad, uint64_t now);
};

/** @retval -EEXIST class and version are taken; -ENOSPC */
int mad_agent_add(struct mad_worker *w, const struct mad_agent *agent);

/**
 * From inside the handler, before it says MAD_LATER: the handle of the session that the answer will
 * have, opened now if the method has none.
 *
 * @return 0: there is no session to be had, the request must be answered at once
 */
mad_handle mad_later(struct mad_request *req);
/** Answer a request kept by MAD_LATER. @retval -ENOENT its session has ended meanwhile */
int mad_answer(struct mad_worker *w, mad_handle h, const uint8_t *mad, uint64_t now);
/** The same with a stream; the source is released also when this fails. */
int mad_stream(struct mad_worker *w, mad_handle h, const uint8_t *mad,
	const struct mad_source *source, uint64_t now);

/**
 * One datagram without a session, neither repeated nor matched: for classes that do both
 * themselves. The MAD is copied. @retval -EAGAIN  too many wait for the sink already
 */
int mad_send(struct mad_worker *w, const struct mad_peer *to, const uint8_t mad[MAD_LEN]);

/* --- calls: those who ask --- */

enum mad_end {
	MAD_END_OK, /**< answered with status 0; for a call without answer: sent */
	MAD_END_STATUS, /**< answered with a status */
	MAD_END_TIMEOUT, /**< retries exhausted, silence */
	MAD_END_ABORTED, /**< the peer sent ABORT or STOP: .rmpp_status */
	MAD_END_PROTOCOL, /**< the peer broke the protocol: .rmpp_status is what we sent */
	MAD_END_REFUSED, /**< our own side could not take the data: .error */
	MAD_END_CANCELLED,
	MAD_END_COUNT
};

struct mad_result {
	enum mad_end end;
	uint16_t status; /**< of the answer */
	uint8_t rmpp_status;
	int error; /**< negative errno */
	const uint8_t *mad; /**< first packet of the answer, or NULL */
	uint64_t bytes; /**< data received */
	uint32_t segments; /**< received, duplicates not counted */
	uint32_t resent; /**< packets we sent again */
	uint64_t elapsed; /**< time units since mad_call() */
};

/** Who takes the answer. Called on the worker; may not call mad_call() from inside data(). */
struct mad_taker {
	void *arg;
	/**
	 * Data of the answer, each byte once and in order; offset counts from the first. NULL: a
	 * single-packet answer is expected. What comes as a single packet is in result.mad only.
	 * @retval negative errno: end the session
	 */
	int (*data)(void *arg, uint64_t offset, const uint8_t *data, uint32_t len);
	/** Exactly once; the session has ended. */
	void (*done)(void *arg, const struct mad_result *result);
};

struct mad_call {
	/**
	 * qpn 1, qkey MAD_QKEY for the GSI; qpn 0, qkey 0, pkey 0xFFFF for an SMP. Of a directed
	 * route the MAD says where it goes: .hop_pointer 0, the LIDs and the MAC of .to.av are the
	 * permissive LID and whoever is at the other end of the link, or, with hop count 0, this
	 * port (smi.c).
	 */
	struct mad_peer to;
	enum mad_protocol_id protocol;
	uint8_t data_offset;
	uint8_t flags; /**< MAD_METHOD_* of the method */
	const uint8_t *mad; /**< header and data; the TID is put in */
	/**
	 * The MAD's own TID is kept: a Trap is told again as itself. Calls without answer, and those
	 * to QP0; of others the answer might get to another worker.
	 */
	bool keep_tid;
	struct mad_source source; /**< of a multi-packet request; .read NULL: none */
	/** ClassPortInfo.RespTimeValue of the peer: its share of the timeouts (A5) */
	uint8_t resp_time;
	uint8_t retries; /**< 0: the limit */
	bool no_retry; /**< one try, whatever .retries says */
	/** of each try of a request of one packet, time units; 0: the formula of A5 */
	uint64_t timeout;
	bool no_answer; /**< fire and forget: done() is called once it is sent */
	struct mad_taker taker;
};

/**
 * Calls to QP0 are worker 0's.
 *
 * When it fails, taker.done() is not called and the source is released.
 *
 * @retval -ENOSPC  no session to be had
 * @retval -EINVAL  QP0 on another worker than 0; a TID kept whose answer would not come here
 * @retval -EEXIST  a TID kept that a call to the same peer has already, which has not ended
 */
int mad_call(struct mad_worker *w, const struct mad_call *call, uint64_t now, mad_handle *h);
/** taker.done() is called from inside. @retval -ENOENT */
int mad_cancel(struct mad_worker *w, mad_handle h, uint64_t now);

/* --- what happens, to be seen --- */

/* X(name, help): single writer, relaxed readers */
#define MAD_COUNTERS(X)                                                                            \
	X(sessions_opened, "sessions opened, either side")                                         \
	X(sessions_completed, "sessions that ended well")                                          \
	X(sessions_failed, "sessions that ended with a status, a timeout or an abort")             \
	X(sessions_refused, "requests refused for want of a session or of memory")                 \
	X(requests, "requests given to an agent")                                                  \
	X(answers, "single-packet answers sent")                                                   \
	X(calls, "requests of our own sent, repeats not counted")                                  \
	X(repeated_requests, "requests recognised as repeats")                                     \
	X(bad_version, "answered: unknown class or class version")                                 \
	X(bad_method, "answered: method not supported")                                            \
	X(segments_sent, "segments sent, the repeated ones too")                                   \
	X(segments_received, "segments received and used")                                         \
	X(segments_resent, "segments sent again")                                                  \
	X(segments_discarded, "segments received out of order or twice")                           \
	X(resend_sent, "Resend requests sent")                                                     \
	X(resend_received, "Resend requests received")                                             \
	X(keepalive_sent, "KeepAlives sent")                                                       \
	X(keepalive_received, "KeepAlives received")                                               \
	X(ack_sent, "Acks sent")                                                                   \
	X(ack_received, "Acks received")                                                           \
	X(ack_ignored, "Acks for the past or the future")                                          \
	X(probes, "last segments sent again because an Ack was overdue by round-trip time")        \
	X(timeouts, "Response and Segment timeouts")                                               \
	X(abort_sent, "RMPP ABORT or STOP sent")                                                   \
	X(abort_received, "RMPP ABORT or STOP received")                                           \
	X(status_sent, "streams ended by us with a status")                                        \
	X(tx_stall, "times the transmit sink had no packet")

struct mad_counters {
#define X(name, help) uint64_t name;
	MAD_COUNTERS(X)
#undef X
};
struct mad_counter_info {
	const char *name;
	const char *help;
};
#define MAD_COUNTER_COUNT (sizeof(struct mad_counters) / sizeof(uint64_t))
extern const struct mad_counter_info mad_counter_infos[MAD_COUNTER_COUNT];
const struct mad_counters *mad_worker_counters(const struct mad_worker *w);
/** P_Key and Q_Key violations on QP1 of a port, as this worker saw them; NULL: no such port. */
const struct port_violations *mad_worker_violations(const struct mad_worker *w, uint16_t port);
/** How RMPP sessions ended, by RMPP status; sent [0] and received [1]. */
uint64_t mad_worker_aborts(const struct mad_worker *w, unsigned int received, uint8_t rmpp_status);
/** Memory of sessions and bodies, bytes: in use, and what was set aside at creation. */
void mad_worker_memory(const struct mad_worker *w, uint64_t *used, uint64_t *total);

struct mad_session_info {
	mad_handle handle;
	union gid gid;
	uint16_t lid;
	uint32_t qpn;
	uint64_t tid;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /**< of the request */
	uint16_t attribute;
	bool requester; /**< our call */
	const char *state; /**< of the sheet's machine: "PREP", "BURST", "WAIT", "RECV", ... */
	uint32_t segment; /**< last one sent and acknowledged, or received in order */
	uint32_t segments; /**< in all, 0: not known */
	uint32_t window;
	uint32_t retries_left;
	uint64_t age; /**< time units */
};
/** One session, at once. @retval false  it has ended */
bool mad_session_get(const struct mad_worker *w, mad_handle h, uint64_t now,
	struct mad_session_info *info);
/** Walk the sessions: *cursor 0 starts. Costs as good as nothing for places that are free. */
bool mad_session_next(const struct mad_worker *w, uint32_t *cursor, uint64_t now,
	struct mad_session_info *info);

/** "NO_RECORDS" and so on, of a MAD status; of an RMPP status; of a mad_end. Never NULL. */
const char *mad_status_name(uint16_t status);
const char *rmpp_status_name(uint8_t status);
const char *mad_end_name(enum mad_end end);

#endif
