/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_SESSION_H
#define MAD_SESSION_H

/**
 * @file
 * Private to lib/mad: the session, and the seam between the core and the two multi-packet
 * protocols (v1_*.c: sa-multipacket A; rmpp_*.c: B).
 *
 * The core (gsi.c, agent.c, call.c, run.c, table.c) finds or makes the session of a packet, calls
 * agents and takers, owns memory and limits. A protocol is one struct mad_protocol of functions
 * that the core calls; it moves the session through its states and asks the core for the rest with
 * the mad_session_*() functions below.
 *
 * Nothing is sent from receive(), expire() or start_*(): they note what is due in s->work and call
 * mad_want(); mad_run() calls send() by turns. So a full sink costs nothing but patience.
 *
 * A session's way:
 *
 *  responder, single request:   core makes it, calls the agent, then start_answer(), start_stream()
 *                               or prepare() as the agent says (MAD_ANSWER, MAD_STREAM, MAD_LATER)
 *  responder, multi request:    core makes it, calls start_receive(); then receive() for each packet
 *                               of it, the first included; receive() fills the body with
 *                               mad_body_write() and at the end calls mad_session_request(), which
 *                               calls the agent and goes on as above
 *  requester:                   core makes it, fills .mad (the TID is in), .source, .taker; calls
 *                               start_call(); then receive(); data is handed on in order with
 *                               mad_session_deliver()
 *  the end, either role:        the protocol calls mad_session_end(), or mad_session_linger() when
 *                               it has to answer repeats; after either call done() has been called,
 *                               source and body are gone; after mad_session_end() s is gone
 *
 * A protocol function must not touch s after mad_session_end(), nor after mad_session_request() or
 * mad_session_deliver() said so.
 */

#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "mad/mad.h"
#include "wire/bytes.h"
#include "wire/wire.h"

/* --- states: the sheet's (sa-multipacket A5, B5, B6) --- */

/* X(NAME): what mad_session_info.state says */
#define MAD_STATES(X)                                                                              \
	X(FREE) /* in the pool */                                                                  \
	X(REQUESTED) /* requester: single request sent, no answer yet (A5 receiver IDLE) */        \
	X(PREP) /* responder: the agent works on the answer */                                     \
	X(BURST) /* sender: window open and data left */                                           \
	X(WAIT) /* sender: window closed or all sent, an Ack is due */                             \
	X(RECV) /* receiver: segments come in order */                                             \
	X(RECOVER) /* receiver: one is missing */                                                  \
	X(ANSWER) /* responder: a single-packet answer waits for the sink */                       \
	X(CLOSE) /* a last packet (status, ABORT, STOP) waits for the sink, then the end */        \
	X(LINGER) /* ended; repeats are answered */

enum mad_state {
#define X(name) MAD_STATE_##name,
	MAD_STATES(X)
#undef X
	MAD_STATE_COUNT
};

/* --- what the core hands to a protocol --- */

struct mad_session;

/* Who a packet belongs to; hash.c makes it. All bytes count, so that it is compared as words. */
struct mad_key {
	union gid addr; /* source GID; on a local IB packet ::slid */
	uint64_t tid;
	uint32_t qpn;
	uint16_t port;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t requester; /* we are: the packet has the R bit */
	uint8_t method; /* without R; 0 when we are the requester, for Set is answered by GetResp */
	uint8_t zero[6];
};

/* A packet that passed the checks of mad_receive() or mad_receive_smp(). */
struct mad_rx {
	struct mad_worker *w;
	const struct packet *pkt;
	const uint8_t *mad; /* MAD_LEN bytes; of an SMP a copy */
	uint64_t now;
	struct mad_key key;
	uint64_t hash;
	const struct port_attr *port; /* it came in on */
	uint16_t pkey; /* our table's entry */
};

/* What a packet without a session can be. */
enum mad_kind {
	MAD_KIND_SINGLE, /* a request by itself */
	MAD_KIND_FIRST, /* first segment of a multi-packet request: start_receive() */
	MAD_KIND_STRAY, /* control packet, later segment, or broken: stray() */
};

/*
 * A protocol. All are called on the session's worker; w->now is set. Functions return nothing
 * unless said: the session's state tells.
 */
struct mad_protocol {
	const char *name;
	/* What is this request (R = 0) of no session? No side effects. agent.c */
	enum mad_kind (*kind)(const struct mad_rx *rx);
	/*
	 * A packet that belongs to no session, either role: answer with mad_reply() what the
	 * protocol answers (RMPP: ABORT 121, 125), else VERDICT_MAD_UNMATCHED. agent.c
	 */
	enum verdict (*stray)(const struct mad_rx *rx);
	/* No session or memory for this request: say so with mad_reply() (v1: status; STOP). agent.c */
	void (*refuse)(const struct mad_rx *rx);
	/*
	 * Responder: s->mad has a single request, the agent is about to be called: note what the
	 * answer needs of it (v1: Window). May be NULL. agent.c
	 */
	void (*start_request)(struct mad_session *s);
	/* Responder: a multi-packet request begins; s->mad has its first packet. receive() follows. */
	void (*start_receive)(struct mad_session *s);
	/* Requester: s->mad, s->source are set; send the request. call.c */
	void (*start_call)(struct mad_session *s);
	/* Responder: the agent will answer later; s->mad has the request. agent.c */
	void (*prepare)(struct mad_session *s);
	/* Responder: s->mad has the whole answer, a single packet. agent.c */
	void (*start_answer)(struct mad_session *s);
	/* Responder: s->mad has the answer's header, s->source its data (length may be 0). agent.c */
	void (*start_stream)(struct mad_session *s);
	/*
	 * A packet of the session, in any state but FREE: DATA, control, answers, a repeated request
	 * (count repeated_requests), in LINGER too. The session may end. gsi.c
	 * @return DATAGRAM, MAD_DISCARDED (out of order, repeated, old), MAD_UNMATCHED (not for its
	 *         state), MAD_REFUSED
	 */
	enum verdict (*receive)(struct mad_session *s, const struct mad_rx *rx);
	/*
	 * Send up to budget packets of what is due. Clear bits of s->work as they are done; when
	 * mad_packet() gives NULL return: it will be called again. The session may end. run.c
	 * @return packets sent
	 */
	unsigned int (*send)(struct mad_session *s, unsigned int budget);
	/* The session's timer; disarmed by now. run.c */
	void (*expire)(struct mad_session *s);
	/*
	 * We give up: why->end (CANCELLED, REFUSED, ...) and why->error say why. Tell the peer if there is a
	 * packet for it (CLOSE, then mad_session_end()), else mad_session_end() at once. call.c,
	 * table.c, mad_session_deliver()
	 */
	void (*give_up)(struct mad_session *s, const struct mad_result *why);
};

extern const struct mad_protocol mad_protocol_single; /* call.c */
extern const struct mad_protocol mad_protocol_v1; /* v1.c */
extern const struct mad_protocol mad_protocol_rmpp; /* rmpp.c */

/* --- the session --- */

/* Of a stream we send. Segment numbers start at 1. */
struct mad_sender {
	uint32_t total; /* segments of s->source, at least 1 */
	uint32_t next; /* to be sent next */
	uint32_t sent; /* highest ever sent */
	uint32_t acked; /* all up to this one */
	uint32_t window_end; /* last one that may be sent */
	uint32_t window; /* the step: n of A5 */
	uint32_t rtt_segment; /* being timed; 0: none (never one that was sent twice) */
	uint64_t rtt_start;
	uint8_t probes; /* sent in this stall */
};

/* Of a stream we receive. */
struct mad_receiver {
	uint32_t expected; /* all before it have come */
	uint32_t acked; /* the last Ack said so */
	uint32_t last; /* number of the Last segment, 0: not seen */
	uint32_t window; /* v1: n; RMPP: NewWindowLast that was sent */
	uint64_t announced; /* bytes the first segment promised; a hint */
	uint64_t resend_time; /* when the last Resend was sent */
	uint8_t resends_left; /* for the missing segment */
	uint32_t resends_open; /* answers still due to Resend requests for what has come since */
};

/* Private to v1_*.c. */
struct v1_session {
	uint64_t progress; /* when it last came on otherwise than by a KeepAlive */
	uint64_t response_due; /* end of the ResponseTimer, 0: starts when sent; probes come before */
	uint64_t probe_time; /* of the last probe or retry */
	uint64_t sent_time; /* of the last segment or KeepAlive */
	uint64_t resend_served; /* when the last Resend request was served */
	uint32_t resend_segment; /* which segment that asked for */
	uint32_t resend_count; /* and how often */
	uint16_t request_window; /* Window of the request */
	uint8_t repeat; /* what a lingering session answers: a bit of work, or 0 */
	bool stale; /* the request's data could not be read */
	bool released; /* the peer wants an acknowledged segment, and was told that it is gone */
};

/* Segments out of order: slots of 256 bytes, 16 in a chunk. */
#define RMPP_HOLD_CHUNKS 4

/* Private to rmpp_*.c, which may change it as it likes. */
struct rmpp_session {
	uint64_t overall_due; /* B6: overall timer */
	uint64_t ack_due; /* B5: ACK timer; response timer of a single request */
	uint64_t probe_due; /* before it: a packet sent again to draw an answer */
	uint64_t probe_time; /* of the last probe */
	uint64_t deaf_until; /* till then no ACK can say that deaf_first..deaf_last are missing */
	uint32_t deaf_first, deaf_last;
	uint32_t gap_told; /* receiver: the missing segment of the last repeated ACK */
	uint64_t held; /* bit i: segment expected + 1 + i has come */
	uint8_t *hold[RMPP_HOLD_CHUNKS]; /* chunks for segments out of order, or NULL */
	uint8_t last_length; /* of the Last segment's data */
	/* of the ABORT or STOP to be sent, and what the session then ends with */
	uint8_t type, status;
	uint8_t end; /* enum mad_end */
	bool complete; /* all of the peer's stream has come */
	bool single; /* our answer was a single packet */
	int error;
};

/* s->work: common bits; protocols take theirs from MAD_WORK_PROTOCOL on */
#define MAD_WORK_DATA     0x1 /* segments may be sent */
#define MAD_WORK_PROTOCOL 0x10

struct mad_peer_entry; /* table.c: sessions and bytes of one address */

struct mad_session {
	/* found by */
	struct mad_key key;
	struct mad_session *chain;
	uint64_t hash;

	const struct mad_protocol *protocol;
	struct mad_worker *w;
	uint8_t state; /* enum mad_state */
	bool queued; /* on the run queue */
	bool busy; /* inside agent or taker: not to be reclaimed */
	bool cancelled; /* by its taker, meanwhile */
	bool no_answer; /* our call: over once it is sent */
	bool half_open; /* the peer has not shown yet that it listens: reclaimed first */
	uint8_t flags; /* MAD_METHOD_* */
	uint8_t data_offset;
	uint8_t method; /* of the request, without R */
	uint8_t retries_left;
	uint8_t retries; /* what retries_left starts from */
	uint32_t work; /* what send() has to do; 0: off the run queue */
	TAILQ_ENTRY(mad_session) run_link;

	struct mad_sender tx;
	struct mad_receiver rx;
	union {
		struct v1_session v1;
		struct rmpp_session rmpp;
	};

	struct timer timer; /* the one timer; mad_session_timer() */
	uint64_t due; /* when it would be due if what was sent before had left at once */
	uint64_t lag; /* how much later all of that left, in sum */
	uint64_t flight; /* A5, in time units */
	uint64_t process; /* of whoever answers: the peer's for our calls */
	uint64_t srtt; /* smoothed round trip, 0: not known */
	uint64_t opened;
	uint64_t arrived; /* responder: when the request's first packet was received */

	struct mad_source source; /* .release NULL: none, or released */
	struct mad_body *body; /* of a multi-packet request */
	const struct mad_agent *agent; /* responder */
	struct mad_taker taker; /* requester; .done NULL once called */
	uint64_t delivered; /* bytes handed to the taker or written to the body */
	uint32_t segments; /* received and used */
	uint32_t resent;

	/* where packets go */
	uint32_t qpn;
	uint32_t qkey;
	uint16_t pkey;
	uint8_t transport[20]; /* BTH and DETH, but for the PSN */
	/* request, then answer: what segments begin with, up to data_offset; single ones as a whole */
	uint8_t mad[MAD_LEN] __attribute__((aligned(64)));
	struct path path;

	/* table.c */
	uint32_t index;
	uint32_t generation;
	struct mad_peer_entry *peer; /* NULL: our call */
	TAILQ_ENTRY(mad_session) peer_link; /* half-open or lingering ones of the peer */
	TAILQ_ENTRY(mad_session) linger_link;
};

/* --- sending --- */

/*
 * A packet of the session with BTH and DETH in place. @return where the MAD goes, all MAD_LEN bytes
 * are the caller's to write, then mad_commit(); NULL: not now
 */
static inline uint8_t *mad_packet(struct mad_session *s);
static inline void mad_commit(struct mad_session *s);
/*
 * Bytes of segment n (from 1) of s->source, put at their place in a packet, padded with zeros.
 * @return bytes, or the source's -ESTALE or -EAGAIN
 */
int mad_segment_read(struct mad_session *s, uint32_t n, uint8_t *mad);
/* s->work |= bits, and onto the run queue. */
void mad_want(struct mad_session *s, uint32_t bits);
/*
 * Answer a packet that has no session, at once: MAD_LEN bytes back to where it came from. Kept
 * for the next run when the sink is full. @retval false  no room for that either
 */
bool mad_reply(const struct mad_rx *rx, const uint8_t *mad);
/* The same: the packet's header back with R set and this status, class header and data cleared. */
bool mad_reply_status(const struct mad_rx *rx, uint16_t status);

/*
 * The first packet of an answer is about to be committed: what its agent adds. A requester's session
 * has no agent.
 */
static inline void mad_departs(const struct mad_worker *w, const struct mad_agent *agent,
	uint8_t *mad);

/* --- time --- */

/*
 * The session's clock, in which all its times are. It stands still while what the session has sent
 * waits to leave, so no wait for an answer is shorter than it should be.
 */
static inline uint64_t mad_now(const struct mad_session *s);
/*
 * Arm the session's timer, or move it: to a time of the session's clock. expire() is called once it
 * has come.
 */
void mad_session_timer(struct mad_session *s, uint64_t deadline);
/* The timer has begun or ended: take note of how late. */
void mad_session_settle(struct mad_session *s);
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
uint64_t mad_ms(const struct mad_worker *w, uint64_t ms);
/* A packet's flight in the subnet of this port. */
uint64_t mad_flight(const struct mad_worker *w, uint16_t port);
/* Note that segment n goes out for the first time; that all up to n were acknowledged. */
void mad_rtt_start(struct mad_session *s, uint32_t n);
void mad_rtt_stop(struct mad_session *s, uint32_t n);
void mad_rtt_sample(struct mad_session *s, uint64_t rtt);
/*
 * An Ack came after a probe: for whichever packet it is, the trip took no less than since the probe.
 * So the estimate grows with the trips, though none of them gives a sample.
 */
void mad_rtt_at_least(struct mad_session *s, uint64_t rtt);
/*
 * When a missing Ack is worth a probe: max(4 srtt, 200 us), doubled for each one sent. Of a peer
 * that no trip is known of yet: 8 of those to others, or 1 ms.
 */
uint64_t mad_probe_delay(const struct mad_session *s);
/*
 * Requester: when to look after a request again, whose timer ends at `due`. One that opens a session
 * at the responder, which therefore knows its repeats, is sent again early, a few times: it may have
 * been lost, and nothing but its answer would tell. A5 allows seven repeats: these are among them.
 */
#define MAD_REQUEST_PROBES 2
uint64_t mad_request_due(const struct mad_session *s, uint64_t due);
/* The request is sent again as a probe. */
void mad_request_probed(struct mad_session *s);

/* --- data received --- */

/*
 * Requester: the next data of the answer, in order, to the taker.
 * @retval false  it did not want it: give_up() was called, s is not to be touched
 */
bool mad_session_deliver(struct mad_session *s, const uint8_t *data, uint32_t len);
/*
 * Responder: bytes of the request at any offset; s->body is made with the first.
 * @retval -ENOMEM  pool or the peer's share exhausted
 */
int mad_body_write(struct mad_session *s, uint64_t offset, const uint8_t *data, uint32_t len);
/* What the body has in the end; offsets beyond were never written. */
void mad_body_set_length(struct mad_session *s, uint64_t length);
/* One chunk of MAD_CHUNK bytes for the protocol, counted as the body is; free before the end. */
#define MAD_CHUNK 4096
uint8_t *mad_chunk_get(struct mad_session *s);
void mad_chunk_put(struct mad_session *s, uint8_t *chunk);

/* --- the session's way --- */

/*
 * Responder: the request is complete (s->mad, s->body). Calls the agent, then start_answer(),
 * start_stream() or prepare(), or ends the session. s may be gone afterwards.
 */
void mad_session_request(struct mad_session *s);
/* The peer has shown that it listens: first Ack, whole request. */
void mad_session_proven(struct mad_session *s);
/* Its address has: an Ack came. Later sessions of it may know that for MAD_PROOF_MS. */
#define MAD_PROOF_MS 600000
void mad_address_proven(struct mad_session *s);
bool mad_address_is_proven(const struct mad_session *s);
/*
 * The session is over. .end, .status, .rmpp_status, .error, .mad are the caller's; bytes, segments,
 * resent and elapsed are filled in. s goes back to the pool.
 */
void mad_session_end(struct mad_session *s, const struct mad_result *r);
/*
 * Over for agent, taker and source, but stay in state LINGER for a time, to answer repeats. Then
 * mad_session_end() by itself (expire() is not called). Lingering sessions are reclaimed first.
 */
void mad_session_linger(struct mad_session *s, const struct mad_result *r, uint64_t duration);
/* Requester: a single-packet answer (or one with a status): end with OK or STATUS. */
void mad_session_answered(struct mad_session *s, const uint8_t *mad);
/* Requester: is this the method of an answer to our request? */
bool mad_answers(const struct mad_session *s, const uint8_t *mad);
/* How long what ended lingers, in ResponseTimeouts (A5, a choice). */
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
	const struct mad_agent *agent; /* whose answer it is, or NULL */
};

/* Of one sink: SMPs do not wait behind datagrams of QP1. */
struct mad_reply_queue {
	struct mad_waiting_reply *wait; /* [MAD_REPLIES] */
	unsigned int head, count;
};

struct mad_table;
struct mad_pool;

struct mad_worker {
	struct mad_worker_config config;
	struct mad_limits limits; /* config.limits, made sane */
	uint64_t timeout[32]; /* mad_timeout() of each code */
	uint64_t probe_floor; /* 200 us: the shortest mad_probe_delay() */
	struct tx_sink *tx;
	struct tx_sink *smp_tx; /* of QP0 */
	uint64_t now; /* of the call under way */
	uint64_t srtt; /* smoothed round trip of all sessions together */
	uint32_t psn;
	struct mad_session_list run_queue;
	struct mad_table *table;
	struct mad_pool *pool;
	struct mad_agent agents[MAD_AGENTS_MAX];
	unsigned int num_agents;
	uint8_t agent_of[256]; /* by class: first agent + 1, 0: none */
	struct mad_reply_queue replies;
	struct mad_reply_queue smp_replies;
	struct path reply_path; /* of the single answer being sent */
	uint8_t smp[MAD_LEN]; /* being received, its directed route advanced */
	struct mad_counters counters;
	uint64_t aborts[2][256]; /* sent, received; by RMPP status */
	struct port_violations violations[MAD_PORTS_MAX];
};

static inline uint64_t
mad_timeout(const struct mad_worker *w, uint8_t code)
{
	return w->timeout[code & 31];
}

#define mad_count(w, name, n)                                                                      \
	__atomic_store_n(&(w)->counters.name, (w)->counters.name + (n), __ATOMIC_RELAXED)

/* RMPP ABORT or STOP: received 0 sent, 1 received. */
static inline void
mad_count_abort(struct mad_worker *w, unsigned int received, uint8_t rmpp_status)
{
	uint64_t *c = &w->aborts[received][rmpp_status];

	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
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

/* QP0 and QP1 do not share a sink: VL15 is served first. */
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
	return p + MAD_TRANSPORT_LEN;
}

static inline void
mad_commit(struct mad_session *s)
{
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
