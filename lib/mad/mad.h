/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_MAD_H
#define MAD_MAD_H

/**
 * @file
 * Management datagrams (MADs) on QP0 and QP1: check received packets and dispatch them to agents,
 * call other managers with timeout and retries, and run the two reliable multi-packet protocols,
 * class version 1 of the SA (sa-multipacket A) and RMPP (B), as sessions of the owning worker.
 *
 * The worker of lib/engine calls receive and run. lib/sa, sma, pma, live and cm add agents, which
 * answer the requests of their class; the SA's client, traps and verbs make calls, whose answers go
 * to a taker.
 *
 * All state belongs to one worker. Call these functions only on that worker, except mad_owner() and
 * functions that read counters. No function reads a clock, allocates after creation, logs or calls
 * EAL.
 *
 * A session is one multi-packet transaction, or one whose answer comes later. Its key is {peer
 * address, peer QP, port, class, class version, TransactionID (TID), method without R, role}; its
 * packets all hash to one worker.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limit_peer.h"
#include "base/timer_wheel.h"
#include "base/trace.h"
#include "base/unproven.h"
#include "base/verdict.h"
#include "mad/layout.h"
#include "port/allow_list.h"
#include "port/port.h"
#include "wire/packet.h"
#include "wire/path.h"
#include "wire/tx.h"

struct mad_worker;

/** The other end of a datagram: a received one came from it, its answer goes to it. */
struct mad_peer {
	struct av av; /**< complete: av.dmac is the MAC it came from, both GIDs or LIDs are set */
	uint32_t qpn;
	uint32_t qkey; /**< Q_Key to send with: MAD_QKEY for QP1 */
	uint16_t pkey; /**< the entry of our P_Key table that matched */
	uint32_t neighbour; /**< next hop in lib/link, or PATH_NO_NEIGHBOUR: send to av.dmac */
};

/** Names a session of this worker; 0 names none. A handle of an ended session is detected. */
typedef uint64_t mad_handle;

struct mad_limits {
	uint32_t max_sessions; /**< per worker */
	uint32_t max_sessions_per_peer; /**< a peer is a GID or LID */
	uint64_t max_bytes; /**< memory for reassembled requests, per worker */
	uint64_t max_bytes_per_peer;
	uint16_t v1_window; /**< Window of our requests, >= 64 */
	uint16_t rmpp_window; /**< step of NewWindowLast (B6) */
	uint16_t rmpp_send_max; /**< most segments in flight, whatever window the peer grants */
	uint8_t retries; /**< retries of a packet, and Resend requests for one segment; <= 7 */
	uint8_t resp_time; /**< our ClassPortInfo.RespTimeValue, 0..31 */
	bool v1_flags_lsb; /**< read FragmentFlag with bit 0 as the least significant (A3) */
	bool v1_early_resend; /**< also resend after a few round trips, before the timeouts of A5 */
	uint64_t rmpp_total_ms; /**< overall timer of an incomplete message (B6): ABORT 118 */
	uint64_t keepalive_total_ms; /**< a session that only KeepAlives prolong ends after this */
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
	struct tx_sink *smp_tx; /**< VL15's own sink for SMPs (worker 0); NULL: use .tx */
	/** Return a port's attributes, or NULL if there is no such port. */
	const struct port_attr *(*port)(void *arg, uint16_t port);
	void *port_arg;
	struct mad_limits limits;
	bool icrc_unchecked;
	/** Report a packet for QP1 dropped for its Q_Key (@p qkey true) or P_Key; may be NULL. */
	void (*violation)(void *arg, const struct packet *pkt, bool qkey);
	void *violation_arg;
};

/** RespTimeValue that all our classes announce. */
uint8_t mad_resp_time(const struct mad_worker *w);
/** Current attributes of a port, or NULL. */
const struct port_attr *mad_port(const struct mad_worker *w, uint16_t port);

struct mad_worker *mad_worker_create(const struct mad_worker_config *config);
void mad_worker_destroy(struct mad_worker *w);

/**
 * Worker that owns the session or agent of a management packet; callable on any lcore, before the
 * ICRC check. Worker 0 owns QP0 and requests of class 0x04.
 */
unsigned int mad_owner(uint64_t hash_key, unsigned int workers, const struct packet *pkt);

/**
 * Process one header-parsed packet for QP1. Order of checks: opcode class, ICRC, P_Key (any table
 * entry), Q_Key, length, base version. A packet that passes goes to its session or to an agent.
 */
enum verdict mad_receive(struct mad_worker *w, const struct packet *pkt, uint64_t now);
/**
 * Process one header-parsed packet for QP0 of a native IB port; worker 0 only. Order of checks
 * (smp-sma 6): port type, VL 15, no GRH, UD, CRCs, length, base version, class 0x01 or 0x81, and
 * that a directed route ends here (smp-sma 2). P_Key and Q_Key are ignored. A packet that passes
 * goes to the call it answers or to the agent of its class and version.
 */
enum verdict mad_receive_smp(struct mad_worker *w, const struct packet *pkt, uint64_t now);
/** Send what sessions have to send, round robin. @return packets sent */
unsigned int mad_run(struct mad_worker *w, uint64_t now, unsigned int budget);
bool mad_pending(const struct mad_worker *w);

/* --- bytes of many packets --- */

/** Data to send. Random access: any segment can be read and sent again without a copy. */
struct mad_source {
	void *arg;
	uint64_t length; /**< total bytes */
	/**
	 * Copy bytes [offset, offset + len) to @p buf.
	 * @retval -ESTALE  the data is gone: the transfer ends with the status for no resources
	 * @retval -EAGAIN  the data is not ready yet; only in class version 1 with more than one
	 *                  packet. The session asks again each turn and sends KeepAlives meanwhile
	 */
	int (*read)(void *arg, uint64_t offset, uint8_t *buf, uint32_t len);
	/** Called exactly once, when the session no longer needs the data. */
	void (*release)(void *arg);
};

/** The reassembled data of a request, stored in chunks of the worker's pool. */
struct mad_body;
uint64_t mad_body_length(const struct mad_body *b);
/** Copy bytes out; offset + len must not exceed the length. */
void mad_body_read(const struct mad_body *b, uint64_t offset, void *buf, size_t len);
/** Free a body; call on the worker that made it. */
void mad_body_free(struct mad_worker *w, struct mad_body *b);

/* --- agents answer requests --- */

enum mad_outcome {
	MAD_ANSWER, /**< send req->reply */
	MAD_SILENT, /**< no answer */
	/**
	 * Segment req->source's data behind req->reply's header. RMPP agents other than the SA
	 * answer a request without RMPP by one packet without RMPP if the data fits.
	 */
	MAD_STREAM,
	MAD_LATER, /**< the agent calls mad_answer() or mad_stream() with req->handle later */
};

/** A complete request. */
struct mad_request {
	const struct mad_peer *peer;
	const uint8_t *mad; /**< MAD_LEN bytes; the first segment of a multi-packet request */
	/** data of a multi-packet request; the handler owns it if it sets take_body */
	struct mad_body *body;
	bool take_body;
	mad_handle handle; /**< 0 for methods without MAD_METHOD_SESSION, until mad_later() */
	uint64_t arrived; /**< receive time of the first packet */
	uint64_t now;
	/** MAD_LEN bytes: the request's header with R set, class header fields cleared, no data */
	uint8_t *reply;
	struct mad_source source;
	const struct mad_late *late; /**< private to mad_later() */
	/** verdict of a request that gets MAD_SILENT; the handler may change it from DATAGRAM */
	enum verdict verdict;
};

#define MAD_METHOD_SESSION        0x1 /**< open a session, to recognise repeated requests */
#define MAD_METHOD_MULTI_REQUEST  0x2 /**< the request may have many packets, and then a session */
#define MAD_METHOD_MULTI_RESPONSE 0x4 /**< the answer is a stream, possibly of one packet */
#define MAD_METHOD_LATER          0x8 /**< mostly answered at once; mad_later() opens a session */

struct mad_method {
	uint8_t method; /**< 0 ends a list */
	uint8_t flags;
};

enum mad_protocol_id {
	MAD_SINGLE, /**< one packet each way */
	MAD_SA1, /**< class version 1 of the SA (sa-multipacket A) */
	MAD_RMPP, /**< sa-multipacket B */
};

#define MAD_ANY_VERSION 0xFF /**< matches class versions that have no row of their own */

/**
 * A row of the dispatch table. Requests of an unknown class, version or method are answered with
 * the status of B2.
 */
struct mad_agent {
	uint8_t mgmt_class;
	uint8_t class_version; /**< or MAD_ANY_VERSION */
	const char *name;
	enum mad_protocol_id protocol;
	/** offset of the data in a MAD: 64, 56, 40 (vendor classes 0x30 to 0x4F) or 36 */
	uint8_t data_offset;
	/**
	 * NULL: the handler gets every method except responses and answers unknown ones itself
	 * (status 0x0008). QP0 needs this because the M_Key check comes first.
	 */
	const struct mad_method *methods;
	/** Handle a method of the list. The handler answers unknown attributes itself (0x000C). */
	enum mad_outcome (*request)(void *arg, struct mad_request *req);
	void *arg;
	/**
	 * The first packet of an answer is about to be committed to the transmit sink at @p now:
	 * the agent may write to it (time stamps). Called again when the packet is sent again.
	 * NULL: nothing to write. Not called for streams of MAD_SA1.
	 */
	void (*departs)(void *arg, uint8_t *mad, uint64_t now);
	const struct allow_list *allow; /**< requests of others are dropped; NULL: from anybody */
	/**
	 * The first packet of a multi-packet request: may its peer send the others? Asked before
	 * anything is stored; request() must check again, because the others may differ. If
	 * @p trusted is set, the session and its data do not give way to those of strangers.
	 * NULL: everybody may, as a stranger. @return a MAD status; the answer, if it is not OK
	 */
	uint16_t (
		*admit)(void *arg, const struct mad_peer *peer, const uint8_t *mad, bool *trusted);
};

/** @retval -EEXIST the class and version have an agent already; -ENOSPC the table is full */
int mad_agent_add(struct mad_worker *w, const struct mad_agent *agent);

/**
 * Call inside the handler before it returns MAD_LATER. Returns the handle for mad_answer(), after
 * opening a session if the method has none.
 *
 * @return 0: no session is free, the request must be answered at once
 */
mad_handle mad_later(struct mad_request *req);
/** Answer a request that got MAD_LATER. @retval -ENOENT its session has ended */
int mad_answer(struct mad_worker *w, mad_handle h, const uint8_t *mad, uint64_t now);
/** Answer it with a stream. The source is released also when this fails. */
int mad_stream(struct mad_worker *w, mad_handle h, const uint8_t *mad,
	const struct mad_source *source, uint64_t now);

/**
 * End a request without an answer, because what its answer holds is needed by another address.
 *
 * @param proven  even if its peer has answered packets of ours
 * @retval -ENOENT  its session has ended
 * @retval -EBUSY  its peer has answered; or its agent is being called
 */
int mad_give_way(struct mad_worker *w, mad_handle h, bool proven);
/**
 * A request finds its agent's pool empty. End the session that would give way to one of its address
 * if the sessions were used up. @retval false  there is none
 */
bool mad_make_room(struct mad_worker *w, mad_handle h);

/**
 * Send one datagram without a session: it is not repeated and no answer is matched. For classes
 * that do both themselves. The MAD is copied. @retval -EAGAIN too many MADs wait for the sink
 */
int mad_send(struct mad_worker *w, const struct mad_peer *to, const uint8_t mad[MAD_LEN]);

/* --- calls to other managers --- */

enum mad_end {
	MAD_END_OK, /**< answered with status 0; a call without answer: sent */
	MAD_END_STATUS, /**< answered with another status */
	MAD_END_TIMEOUT, /**< no answer after all retries */
	MAD_END_ABORTED, /**< the peer sent ABORT or STOP with .rmpp_status */
	MAD_END_PROTOCOL, /**< the peer broke the protocol; .rmpp_status is what we sent */
	MAD_END_REFUSED, /**< we could not take or supply the data: .error */
	MAD_END_CANCELLED,
	MAD_END_COUNT
};

struct mad_result {
	enum mad_end end;
	uint16_t status; /**< status of the answer */
	uint8_t rmpp_status;
	int error; /**< negative errno */
	const uint8_t *mad; /**< first packet of the answer, or NULL */
	uint64_t bytes; /**< data received */
	uint32_t segments; /**< segments received, without duplicates */
	uint32_t resent; /**< packets that we sent again */
	uint64_t elapsed; /**< time units since mad_call() */
};

/** Receives the answer. Called on the worker; data() must not call mad_call(). */
struct mad_taker {
	void *arg;
	/**
	 * Data of the answer, each byte once and in order; offset counts from the first byte.
	 * NULL: expect a single-packet answer. MAD_SINGLE and RMPP report an answer of one packet
	 * in result.mad only.
	 */
	int (*data)(void *arg, uint64_t offset, const uint8_t *data, uint32_t len);
	/** The session has ended; called exactly once. */
	void (*done)(void *arg, const struct mad_result *result);
};

struct mad_call {
	/**
	 * qpn 1, qkey MAD_QKEY for the GSI; qpn 0, qkey 0, pkey 0xFFFF for an SMP. The MAD gives
	 * a directed route, with hop pointer 0; .to.av then has the permissive LID and the MAC
	 * of the port at the other end of the link, or, with hop count 0, of this port (smi.c).
	 */
	struct mad_peer to;
	enum mad_protocol_id protocol;
	uint8_t data_offset;
	uint8_t flags; /**< MAD_METHOD_* of the method */
	const uint8_t *mad; /**< header and data; mad_call() writes the TID */
	/**
	 * Keep the MAD's own TID, as a repeated Trap must. Allowed for calls without answer,
	 * calls to QP0 and Reports, or if this is mad_call_worker().
	 */
	bool keep_tid;
	struct mad_source source; /**< data of a multi-packet request; .read NULL: none */
	/** the peer's ClassPortInfo.RespTimeValue: its share of the timeouts (A5) */
	uint8_t resp_time;
	uint8_t retries; /**< 0: as many as mad_limits allows */
	bool no_retry; /**< one try, whatever .retries says */
	/** timeout of each try of a single-packet request, time units; 0: the formula of A5 */
	uint64_t timeout;
	bool no_answer; /**< expect no answer: done() is called once the request is sent */
	/**
	 * What may be sent to a destination that a stranger named and that has not answered yet.
	 * It must outlive the call. NULL: the destination is ours, send what the call needs
	 */
	struct unproven *budget;
	struct mad_taker taker;
};

/**
 * Send a request. Calls to QP0 and Reports of subnet administration are made on worker 0.
 *
 * On failure taker.done() is not called and the source is released.
 *
 * @retval -ENOSPC  no session is free
 * @retval -ENODEV  there is no such port
 * @retval -EINVAL  QP0 or a Report on a worker other than 0; or keep_tid, and the answer would
 *                  reach another worker
 * @retval -EEXIST  keep_tid, and an open call to the same peer has this TID
 */
int mad_call(struct mad_worker *w, const struct mad_call *call, uint64_t now, mad_handle *h);
/**
 * The worker that a call with keep_tid must be made on, as its answer reaches this one. Not for
 * QP0 and Reports.
 *
 * @param mad  class, class version and TID count
 */
unsigned int mad_call_worker(uint64_t hash_key, unsigned int workers, const struct mad_peer *to,
	const uint8_t *mad);
/** Ends the call; taker.done() is called from inside. @retval -ENOENT no such call is open */
int mad_cancel(struct mad_worker *w, mad_handle h, uint64_t now);

/* --- counters and status --- */

/* X(name, help): one writer, relaxed readers */
/* clang-format off */
#define MAD_COUNTERS(X)                                                                            \
	X(sessions_opened, "sessions opened, either side")                                         \
	X(sessions_completed, "sessions that ended successfully")                                  \
	X(sessions_failed, "sessions that ended with a status, a timeout or an abort")             \
	X(sessions_refused, "requests refused because no session or memory was free")              \
	X(sessions_reclaimed, "sessions ended to make room for other addresses")                   \
	X(requests, "requests given to an agent")                                                  \
	X(answers, "single-packet answers sent")                                                   \
	X(calls, "requests of our own sent, repeats not counted")                                  \
	X(repeated_requests, "requests recognised as repeats")                                     \
	X(bad_version, "answered: unknown class or class version")                                 \
	X(bad_method, "answered: method not supported")                                            \
	X(segments_sent, "segments sent, including repeats")                                       \
	X(segments_received, "segments received and used")                                         \
	X(segments_resent, "segments sent again")                                                  \
	X(segments_discarded, "segments received out of order or twice")                           \
	X(resend_sent, "Resend requests sent")                                                     \
	X(resend_received, "Resend requests received")                                             \
	X(keepalive_sent, "KeepAlives sent")                                                       \
	X(keepalive_received, "KeepAlives received")                                               \
	X(ack_sent, "Acks sent")                                                                   \
	X(ack_received, "Acks received")                                                           \
	X(ack_ignored, "Acks ignored as old or for segments not sent")                             \
	X(probes, "last segments sent again because an Ack was overdue by round-trip time")        \
	X(timeouts, "Response and Segment timeouts")                                               \
	X(abort_sent, "RMPP ABORT or STOP sent")                                                   \
	X(abort_received, "RMPP ABORT or STOP received")                                           \
	X(status_sent, "streams that we ended with a status")                                      \
	X(unproven, "packets not sent: an unproven address has had three for each of its own")     \
	X(tx_stall, "times the transmit sink had no free packet")
/* clang-format on */

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
/** Whom limits affected: a GID, or ::lid for an IB peer without GRH. */
struct mad_limited {
	struct limit_peer refused; /**< sessions_refused */
	struct limit_peer reclaimed; /**< sessions_reclaimed */
};
/** Control thread: for limit_peer_take(). */
struct mad_limited *mad_worker_limited(struct mad_worker *w);
/** P_Key and Q_Key violations that this worker saw on a port's QP1; NULL: no such port. */
const struct port_violations *mad_worker_violations(const struct mad_worker *w, uint16_t port);
/** ABORTs and STOPs with this RMPP status: sent (@p received 0) or received (1). */
uint64_t mad_worker_aborts(const struct mad_worker *w, unsigned int received, uint8_t rmpp_status);
/** Memory of sessions and bodies in bytes: used, and allocated at creation. */
void mad_worker_memory(const struct mad_worker *w, uint64_t *used, uint64_t *total);

struct mad_session_info {
	mad_handle handle;
	union gid gid;
	uint16_t lid;
	uint32_t qpn;
	uint32_t neighbour; /**< next hop in lib/link, or PATH_NO_NEIGHBOUR */
	uint64_t tid;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /**< of the request */
	uint16_t attribute;
	bool requester; /**< true: our call */
	const char *state; /**< state machine: "PREP", "BURST", "WAIT", "RECV", ... */
	uint32_t segment; /**< last one acknowledged by the peer, or received in order */
	uint32_t segments; /**< total, 0: not known */
	uint32_t window;
	uint32_t retries_left;
	uint64_t age; /**< time units */
};
/** Look at one session. @retval false  it has ended */
bool mad_session_get(const struct mad_worker *w, mad_handle h, uint64_t now,
	struct mad_session_info *info);
/** Walk the sessions; start with *cursor 0. Free entries cost almost nothing. */
bool mad_session_next(const struct mad_worker *w, uint32_t *cursor, uint64_t now,
	struct mad_session_info *info);

/* --- flight recorder: the last TRACE_STEPS steps of each of a worker's last sessions --- */

#define MAD_TRACES 256 /**< sessions of a worker whose steps are kept, ended ones included */

enum mad_step_event { /* trace_step.event; outcome is the session's state then */
	MAD_STEP_OPENED,
	/** what: method; detail: RMPPType; number: segment; expected: segment; value: status */
	MAD_STEP_RECEIVED,
	MAD_STEP_SENT, /**< the same; expected: the last segment that the peer has acknowledged */
	MAD_STEP_TIMEOUT, /**< value: retries left */
	MAD_STEP_ENDED, /**< what: enum mad_end */
	MAD_STEP_COUNT
};

/** Record all sessions opened from now on, or forget all steps. @retval -ENOMEM */
int mad_trace_switch(struct mad_worker *w, bool on);
/** @retval -ENOENT no session of this TID is kept @retval -ENODATA sessions are not recorded */
int mad_trace(const struct mad_worker *w, uint64_t tid, struct trace *copy);

#define MAD_STEP_TEXT_MAX 96
const char *mad_step_name(uint8_t event); /* "received" */
/** The packet, or what happened. @return buf */
const char *mad_step_what(const struct trace_step *s, char buf[MAD_STEP_TEXT_MAX]);
const char *mad_state_name(unsigned int state); /* "WAIT" */

/** Name of a MAD status ("NO_RECORDS"), of an RMPP status, of a mad_end. Never NULL. */
const char *mad_status_name(uint16_t status);
const char *rmpp_status_name(uint8_t status);
const char *mad_end_name(enum mad_end end);

#endif
