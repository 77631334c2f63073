/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_SESSION_H
#define MAD_SESSION_H

/**
 * @file
 * Private to lib/mad: the session, and what the core does for the protocols (v1_*.c: sa-multipacket
 * A; rmpp_*.c: B; single.c: one packet each way). protocol.h is what a protocol does for the core.
 *
 * The core (all other files) finds or creates the session of a packet, calls
 * agents and takers, and owns memory and limits. A protocol is a struct mad_protocol of functions
 * that the core calls; it moves the session through its states and asks the core for the rest with
 * the mad_session_*() functions below.
 *
 * receive(), expire() and start_*() send nothing: they note in s->work what to send and call
 * mad_want(); mad_run() calls send() for each session in turn. A full sink only delays packets.
 *
 * Life of a session:
 *
 *  responder, single request:   the core creates it and calls the agent, then start_answer(),
 *                               start_stream() or prepare() according to the agent's outcome
 *                               (MAD_ANSWER, MAD_STREAM, MAD_LATER)
 *  responder, multi request:    the core creates it and calls start_receive(), then receive() for
 *                               each packet, including the first; receive() fills the body with
 *                               mad_body_write() and at the end calls mad_session_request(), which
 *                               calls the agent and continues as above
 *  requester:                   the core creates it, fills .mad (with the TID), .source and .taker
 *                               and calls start_call(), then receive(); the protocol delivers data
 *                               in order with mad_session_deliver()
 *  the end, either role:        the protocol calls mad_session_end(), or mad_session_linger() if
 *                               it must answer repeats; either calls done() and releases source
 *                               and body; after mad_session_end() s is freed
 *
 * A protocol function must not touch s after mad_session_end() or mad_session_request(), nor after
 * mad_session_deliver() returned false.
 */

#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_debug.h>

#include "base/atomic.h"
#include "base/hash_table.h"
#include "base/share.h"
#include "mad/mad.h"
#include "mad/protocol.h"
#include "wire/bytes.h"
#include "wire/wire.h"

/* --- states: those of the sheet (sa-multipacket A5, B5, B6) --- */

/* X(NAME): the text of mad_session_info.state */
#define MAD_STATES(X)                                                                              \
	X(FREE) /* in the pool */                                                                  \
	X(REQUESTED) /* requester: single request sent, no answer yet (A5 receiver IDLE) */        \
	X(PREP) /* responder: the agent prepares the answer */                                     \
	X(BURST) /* sender: the window is open and data is left */                                 \
	X(WAIT) /* sender: waits for an Ack, window closed or everything sent */                   \
	X(RECV) /* receiver: segments arrive in order */                                           \
	X(RECOVER) /* receiver: a segment is missing */                                            \
	X(ANSWER) /* responder: a single-packet answer waits for the sink */                       \
	X(CLOSE) /* a last packet (status, ABORT, STOP) waits for the sink, then the end */        \
	X(LINGER) /* ended; only answers repeats */

enum mad_state {
#define X(name) MAD_STATE_##name,
	MAD_STATES(X)
#undef X
		MAD_STATE_COUNT
};

/* --- the session --- */

/* A stream that we send. Segment numbers start at 1. */
struct mad_sender {
	uint32_t total; /* segments of s->source, at least 1 */
	uint32_t next; /* to be sent next */
	uint32_t sent; /* highest segment ever sent */
	uint32_t acked; /* all up to this one are acknowledged */
	uint32_t window_end; /* last segment that may be sent */
	uint32_t window; /* window size: n of A5 */
	uint32_t rtt_segment; /* segment being timed, never one sent twice; 0: none */
	uint64_t rtt_start;
	uint8_t probes; /* probes since the last progress */
};

/* A stream that we receive. */
struct mad_receiver {
	uint32_t expected; /* next in order: all before it have been received */
	uint32_t acked; /* segment number of our last Ack */
	uint32_t last; /* number of the Last segment, 0: not seen */
	uint32_t window; /* v1: n; RMPP: NewWindowLast of our last ACK */
	uint64_t announced; /* PayloadLength of the first segment; only a hint in responses */
	uint64_t resend_time; /* when we sent the last Resend request */
	uint8_t resends_left; /* Resend requests left for the missing segment */
	uint32_t resends_open; /* statuses that old Resend requests may still draw */
};

/* Private to v1_*.c. */
struct v1_session {
	uint64_t progress; /* time of the last progress; a KeepAlive is none */
	uint64_t response_due; /* end of the ResponseTimer; 0: it starts when the request is sent */
	uint64_t probe_time; /* time of the last probe or retry */
	uint64_t sent_time; /* time of the last segment or KeepAlive sent */
	uint64_t resend_served; /* when we served the last Resend request */
	uint32_t resend_segment; /* segment of that request */
	uint32_t resend_count; /* how often it was served */
	uint16_t request_window; /* Window of the request */
	uint8_t repeat; /* s->work bit that answers a repeat while lingering, or 0 */
	bool stale; /* the request's data could not be read */
	bool released; /* the peer asked for an acknowledged segment and was told that it is gone */
};

/* Slots of 256 bytes for segments out of order, 16 in a chunk. */
#define RMPP_HOLD_CHUNKS 4

/* Private to rmpp_*.c. */
struct rmpp_session {
	uint64_t overall_due; /* B6: overall timer */
	uint64_t ack_due; /* B5: ACK timer; response timer of a single request */
	uint64_t probe_due; /* when to send a probe, a packet sent again to draw an answer */
	uint64_t probe_time; /* when the last probe was asked for */
	/* until deaf_until no ACK can have seen deaf_first..deaf_last: do not believe a loss */
	uint64_t deaf_until;
	uint32_t deaf_first, deaf_last;
	uint32_t gap_told; /* receiver: missing segment that our last repeated ACK reported */
	uint64_t held; /* bit i: segment expected + 1 + i is held */
	uint8_t *hold[RMPP_HOLD_CHUNKS]; /* chunks for segments out of order, or NULL */
	uint8_t last_length; /* data bytes of the Last segment */
	/* the ABORT or STOP to be sent, and the result of the session after it */
	uint8_t type, status;
	uint8_t end; /* enum mad_end */
	bool complete; /* the peer's whole stream was received */
	bool single; /* our answer was a single packet */
	int error;
};

/* s->work: bits common to all; a protocol's own bits start at MAD_WORK_PROTOCOL */
#define MAD_WORK_DATA     0x1 /* segments may be sent */
#define MAD_WORK_PROTOCOL 0x10

struct mad_peer_entry; /* core.h: sessions and bytes of one address */

struct mad_session {
	struct mad_key key;
	struct hash_link link; /* by key, or of the free sessions */

	const struct mad_protocol *protocol;
	struct mad_worker *w;
	uint8_t state; /* enum mad_state */
	bool queued; /* on the run queue */
	bool busy; /* its agent or taker is being called: must not be reclaimed */
	bool cancelled; /* the taker cancelled it during data() */
	bool no_answer; /* our call: ends once it is sent */
	bool half_open; /* the peer has answered none of our packets: reclaimed first */
	uint8_t flags; /* MAD_METHOD_* */
	uint8_t data_offset;
	uint8_t method; /* of the request, without R */
	uint8_t retries_left;
	uint8_t retries; /* what retries_left starts from */
	uint32_t work; /* packets send() has to send; 0: not on the run queue */
	TAILQ_ENTRY(mad_session) run_link;

	/*
	 * anti-amplification: what may be sent to the peer, see mad_commit(). NULL: as much as we
	 * want, because its address is proven, or because we chose it
	 */
	struct unproven *budget;
	struct unproven own_budget; /* of an unproven requester: 3 packets for each one from it */

	struct mad_sender tx;
	struct mad_receiver rx;
	union {
		struct v1_session v1;
		struct rmpp_session rmpp;
	};

	struct timer timer; /* the only timer; use mad_session_timer() */
	uint64_t due; /* when the timer would expire if all packets had left at once */
	uint64_t lag; /* total time that packets waited to leave: mad_now() */
	uint64_t flight; /* packet life time (A5), in time units */
	uint64_t process; /* processing time of the answering side (A5) */
	uint64_t srtt; /* smoothed round trip, 0: not known */
	uint64_t opened;
	uint64_t arrived; /* responder: receive time of the request's first packet */

	struct mad_source source; /* .release NULL: none, or released */
	struct mad_body *body; /* data of a multi-packet request */
	const struct mad_agent *agent; /* responder only */
	struct mad_taker taker; /* requester only; .done NULL once called */
	uint64_t delivered; /* bytes given to the taker or written to the body */
	uint32_t segments; /* segments received and used */
	uint32_t resent; /* packets sent again */

	struct trace *trace; /* its last steps, in w->traces; NULL: they are not recorded */
	const uint8_t *reserved; /* the MAD of mad_packet() */

	/* destination */
	uint32_t qpn;
	uint32_t qkey;
	uint16_t pkey;
	uint8_t transport[20]; /* BTH and DETH, without the PSN */
	/* the request, later the answer; segments copy it up to data_offset */
	uint8_t mad[MAD_LEN] __attribute__((aligned(64)));
	struct path path;

	/* private to session_table.c */
	uint32_t index;
	uint32_t generation;
	struct mad_peer_entry *peer; /* the stranger's address entry; NULL: our call */
	struct share_item body_item; /* request_body.c: of the peer's bodies that may give way */
	struct share_item prefix_body_item; /* the same of its prefix */
	struct share_item peer_item; /* of the peer's half-open, answering or lingering sessions */
	struct share_item prefix_item; /* of its prefix's half-open or answering sessions */
	TAILQ_ENTRY(mad_session) linger_link;
};

/* trace.c; but for mad_trace_open(), only for sessions with s->trace */
struct mad_traces;
void mad_trace_open(struct mad_session *s); /* record a new session if all are recorded */
void mad_trace_close(struct mad_session *s); /* it ends; its steps stay */
/* @param event  MAD_STEP_SENT or MAD_STEP_RECEIVED */
void mad_trace_packet(struct mad_session *s, enum mad_step_event event, const uint8_t *mad);
void mad_trace_event(struct mad_session *s, enum mad_step_event event, uint8_t end);
void mad_trace_free(struct mad_worker *w);

/* check.c: the invariants of a session, or of a free one, when an event is over */
#ifdef RTE_ENABLE_ASSERT
void mad_session_check(const struct mad_session *s);
#else
#define mad_session_check(s) RTE_SET_USED(s)
#endif

/* --- sending --- */

/*
 * Reserve a packet of the session with BTH and DETH filled in. @return where the caller writes all
 * MAD_LEN bytes of the MAD before mad_commit(); NULL: the sink is full
 */
static inline uint8_t *mad_packet(struct mad_session *s);
/*
 * Send the packet, unless the peer's address is unproven and its budget is spent: then the packet
 * is dropped and counted, and the protocol goes on as if the network had lost it.
 */
static inline void mad_commit(struct mad_session *s);
/*
 * Anti-amplification: an address that has acknowledged nothing may be forged, and its budget is 3
 * packets for each one from it. So a stream to it starts with 2 packets, and the third may repeat
 * one that was lost. The first Ack opens the window that the peer asked for.
 */
#define UNPROVEN_MAX 2
static inline uint32_t
mad_window(const struct mad_session *s, uint32_t window)
{
	return s->budget == NULL || window < UNPROVEN_MAX ? window : UNPROVEN_MAX;
}
/* True if a packet that is not part of the answer may be sent: the answer's packets are left. */
static inline bool
mad_has_spare_packet(const struct mad_session *s)
{
	return s->budget == NULL || s->budget->left > UNPROVEN_MAX * MAD_LEN;
}
/* A packet of the session's peer has arrived. */
static inline void
mad_heard(struct mad_session *s)
{
	if (unlikely(s->budget == &s->own_budget))
		unproven_heard(s->budget, MAD_LEN);
}
/*
 * Read segment n (from 1) of s->source to its place in a packet, padded with zeros.
 * @return bytes, or the source's -ESTALE or -EAGAIN
 */
int mad_segment_read(struct mad_session *s, uint32_t n, uint8_t *mad);
/* Set bits of s->work and put the session on the run queue. */
void mad_want(struct mad_session *s, uint32_t bits);
/*
 * Send MAD_LEN bytes back to where the packet came from, without a session. If the sink is full,
 * the reply waits for the next run. @retval false  the queue of waiting replies is full too
 */
bool mad_reply(const struct mad_rx *rx, const uint8_t *mad);
/* Reply with the packet's header, R set and this status; class header and data are cleared. */
bool mad_reply_status(const struct mad_rx *rx, uint16_t status);

/*
 * Call before the first packet of an answer is committed: lets its agent write to it. A session
 * as requester has no agent.
 */
static inline void mad_departs(const struct mad_worker *w, const struct mad_agent *agent,
	uint8_t *mad);

/* --- time --- */

/*
 * The session's clock; all its times use it. It stands still while the session's packets wait to
 * leave, so that no wait for an answer is shortened by our own queue.
 */
static inline uint64_t mad_now(const struct mad_session *s);
/*
 * Arm or move the session's timer to a time of the session's clock. expire() is called when it has
 * come.
 */
void mad_session_timer(struct mad_session *s, uint64_t deadline);
/* The timer was re-armed or has expired: add the time its packets waited to leave to s->lag. */
static inline void
mad_session_settle(struct mad_session *s)
{
	if (s->timer.slot_time == UINT64_MAX) /* the packets sent have not left yet */
		return;
	s->lag += s->timer.slot_time - s->due;
	s->due = s->timer.slot_time;
}
void mad_session_timer_stop(struct mad_session *s);
/* ResponseTimeout and SegmentTimeout (A5). */
static inline uint64_t
mad_response_timeout(const struct mad_session *s)
{
	return 2 * s->flight + s->process;
}
static inline uint64_t
mad_segment_timeout(const struct mad_session *s)
{
	return s->flight + s->process;
}
/* 4.096 us * 2^code, in time units, rounded up. */
static inline uint64_t mad_timeout(const struct mad_worker *w, uint8_t code);
static inline uint64_t mad_ms(const struct mad_worker *w, uint64_t ms);
/* Packet life time in the subnet of this port. */
uint64_t mad_flight(const struct mad_worker *w, uint16_t port);
/* Segment n is sent for the first time: time it. All segments up to n are acknowledged: sample. */
void mad_rtt_start(struct mad_session *s, uint32_t n);
void mad_rtt_stop(struct mad_session *s, uint32_t n);
void mad_rtt_sample(struct mad_session *s, uint64_t rtt);
/*
 * An Ack came after a probe. It may answer the probe or an earlier packet, so the round trip is at
 * least the time since the probe: raise the estimate to that.
 */
void mad_rtt_at_least(struct mad_session *s, uint64_t rtt);
/*
 * How long to wait for an Ack before a probe: max(4 srtt, 200 us), doubled for each probe sent. If
 * this peer has no srtt yet: 8 times the worker's srtt, or 1 ms if there is none either.
 */
uint64_t mad_probe_delay(const struct mad_session *s);
/*
 * Requester: when to look at a request again whose timer ends at `due`. A request for a stream is
 * sent again early, up to MAD_REQUEST_PROBES times: it only reads, and the responder's session
 * recognises repeats. These count among the seven repeats that A5 allows.
 */
#define MAD_REQUEST_PROBES 2
uint64_t mad_request_due(const struct mad_session *s, uint64_t due);
/* Count that the request is sent again as a probe. */
void mad_request_probed(struct mad_session *s);

/* --- data received --- */

/*
 * Requester: give the next data of the answer, in order, to the taker.
 * @retval false  the taker refused: give_up() was called, do not touch s
 */
bool mad_session_deliver(struct mad_session *s, const uint8_t *data, uint32_t len);
/*
 * Responder: write bytes of the request at any offset; the first write creates s->body.
 * @retval -ENOMEM  the pool or the peer's share is exhausted
 */
int mad_body_write(struct mad_session *s, uint64_t offset, const uint8_t *data, uint32_t len);
/* Set the body's final length; offsets beyond it were never written. */
void mad_body_set_length(struct mad_session *s, uint64_t length);
/* A chunk for the protocol, charged to the peer like the body; free it before the session ends. */
#define MAD_CHUNK 4096
uint8_t *mad_chunk_get(struct mad_session *s);
void mad_chunk_put(struct mad_session *s, uint8_t *chunk);

/* --- the session's progress --- */

/*
 * Responder: the request in s->mad and s->body is complete. Calls the agent, then start_answer(),
 * start_stream() or prepare(), or ends the session. Do not touch s afterwards.
 */
void mad_session_request(struct mad_session *s);
/* The peer answered packets of ours, so the session is not the first to be reclaimed. */
void mad_session_answers(struct mad_session *s);
/*
 * The peer acknowledged a segment of ours. That proves its address for MAD_PROOF_MS, for this and
 * later sessions of the worker.
 */
#define MAD_PROOF_MS 600000
void mad_address_proven(struct mad_session *s);
/*
 * End the session. The caller sets .end, .status, .rmpp_status, .error and .mad; bytes, segments,
 * resent and elapsed are filled in here. s goes back to the pool.
 */
void mad_session_end(struct mad_session *s, const struct mad_result *r);
/*
 * End the session for agent, taker and source, but stay in state LINGER for `duration` to answer
 * repeats; then the core frees it without calling expire(). Lingering sessions are reclaimed first.
 */
void mad_session_linger(struct mad_session *s, const struct mad_result *r, uint64_t duration);
/*
 * Responder: the answer in s->mad was sent. Linger for MAD_LINGER ResponseTimeouts, because a
 * request must not be executed twice. BUSY and NO_RESOURCES say that it was not executed: end the
 * session, so that a repeat is executed. A request of several packets lingers with any answer: a
 * late segment must not look like another request.
 *
 * @return true if the session ended: s is freed
 */
bool mad_session_answer_sent(struct mad_session *s, const struct mad_result *r);
/* Requester: end with OK or STATUS according to the answer's status. */
void mad_session_answered(struct mad_session *s, const uint8_t *mad);
/* Requester: true if the MAD's method answers our request. */
bool mad_answers(const struct mad_session *s, const uint8_t *mad);
/* How long an ended session lingers, in ResponseTimeouts (A5, our choice). */
#define MAD_LINGER 8

/* --- the worker --- */

TAILQ_HEAD(mad_session_list, mad_session);

#define MAD_AGENTS_MAX 32
#define MAD_PORTS_MAX  64
#define MAD_REPLIES    64 /* answers that wait for the sink */

struct mad_waiting_reply {
	struct path path;
	uint8_t transport[20];
	uint8_t mad[MAD_LEN];
	const struct mad_agent *agent; /* for its departs(), or NULL */
};

/* Replies that wait for one sink. SMPs have their own queue, so QP1 traffic cannot delay them. */
struct mad_reply_queue {
	struct mad_waiting_reply *wait; /* [MAD_REPLIES] */
	unsigned int head, count;
};

struct mad_table;
struct mad_pool;

struct mad_worker {
	struct mad_worker_config config;
	struct mad_limits limits; /* config.limits, clamped to valid ranges */
	uint64_t timeout[32]; /* mad_timeout() of each code */
	uint64_t probe_floor; /* 200 us: the shortest mad_probe_delay() */
	struct tx_sink *tx;
	struct tx_sink *smp_tx; /* sink of QP0 */
	uint64_t now; /* time of the current call */
	uint64_t srtt; /* smoothed round trip over all sessions */
	uint32_t psn;
	struct mad_session_list run_queue;
	struct mad_table *table;
	struct mad_traces *traces; /* trace.c; NULL: sessions are not recorded */
	struct mad_pool *pool;
	struct mad_agent agents[MAD_AGENTS_MAX];
	unsigned int num_agents;
	uint8_t agent_of[256]; /* by class: index of its first agent + 1, 0: none */
	struct mad_reply_queue replies;
	struct mad_reply_queue smp_replies;
	struct path reply_path; /* path of the single answer being sent */
	uint8_t smp[MAD_LEN]; /* the SMP being received, with its directed route advanced */
	struct mad_counters counters;
	struct mad_limited limited;
	uint64_t aborts[2][256]; /* [0] sent, [1] received; by RMPP status */
	struct port_violations violations[MAD_PORTS_MAX];
};

static inline uint64_t
mad_timeout(const struct mad_worker *w, uint8_t code)
{
	return w->timeout[code & 31];
}

static inline uint64_t
mad_ms(const struct mad_worker *w, uint64_t ms)
{
	return (ms * w->config.hz + 999) / 1000;
}

#define mad_count(w, name, n) RELAXED_SET((w)->counters.name, (w)->counters.name + (n))

static inline void
mad_count_refused(struct mad_worker *w, const struct mad_key *key)
{
	mad_count(w, sessions_refused, 1);
	limit_peer_note(&w->limited.refused, key->addr.raw);
}

/* Count an RMPP ABORT or STOP. @param received  0: sent, 1: received */
static inline void
mad_count_abort(struct mad_worker *w, unsigned int received, uint8_t rmpp_status)
{
	uint64_t *c = &w->aborts[received][rmpp_status];

	RELAXED_SET(*c, *c + 1);
	if (received)
		mad_count(w, abort_received, 1);
	else
		mad_count(w, abort_sent, 1);
}

#define MAD_TRANSPORT_LEN 20 /* BTH and DETH */
#define MAD_PSN_OFF       8

static inline uint64_t
mad_now(const struct mad_session *s)
{
	return s->w->now - s->lag;
}

/* QP0 has its own sink, because VL15 is served first. */
static inline struct tx_sink *
mad_sink(const struct mad_worker *w, uint32_t qpn)
{
	return unlikely(qpn == QPN_SMI) ? w->smp_tx : w->tx;
}

static inline uint8_t *
mad_packet(struct mad_session *s)
{
	struct mad_worker *w = s->w;
	uint8_t *p = tx_reserve(mad_sink(w, s->qpn), &s->path, MAD_TRANSPORT_LEN + MAD_LEN);

	if (unlikely(p == NULL)) {
		mad_count(w, tx_stall, 1);
		return NULL;
	}
	memcpy(p, s->transport, MAD_TRANSPORT_LEN);
	put_be32(p + MAD_PSN_OFF, w->psn++ & PSN_MASK);
	s->reserved = p + MAD_TRANSPORT_LEN;
	return p + MAD_TRANSPORT_LEN;
}

static inline void
mad_commit(struct mad_session *s)
{
	if (unlikely(s->budget != NULL) && !unproven_spend(s->budget, MAD_LEN)) {
		mad_count(s->w, unproven, 1);
		return;
	}
	if (unlikely(s->trace != NULL))
		mad_trace_packet(s, MAD_STEP_SENT, s->reserved);
	tx_commit(mad_sink(s->w, s->qpn));
}

static inline void
mad_departs(const struct mad_worker *w, const struct mad_agent *agent, uint8_t *mad)
{
	if (agent != NULL && agent->departs != NULL)
		agent->departs(agent->arg, mad, w->now);
}

static inline mad_handle
mad_session_handle(const struct mad_session *s)
{
	return (uint64_t)s->generation << 32 | (s->index + 1);
}

#endif
