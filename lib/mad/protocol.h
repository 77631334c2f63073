/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_PROTOCOL_H
#define MAD_PROTOCOL_H

/**
 * @file
 * Private to lib/mad: a protocol of sessions, as the core calls it. session.h describes the life of
 * a session and what a protocol may ask of the core.
 */

#include "mad/mad.h"

struct mad_session;

/* Key of a packet's session, made by hash.c. Compared with memcmp(): .zero stays zero. */
struct mad_key {
	union gid addr; /* peer's GID; ::lid for an IB packet without GRH */
	uint64_t tid;
	uint32_t qpn;
	uint16_t port;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t requester; /* 1: we sent the request (received packets have the R bit) */
	uint8_t method; /* without R; 0 if we are the requester, because GetResp answers Set */
	uint8_t zero[6];
};

/* A packet that passed the checks of mad_receive() or mad_receive_smp(). */
struct mad_rx {
	struct mad_worker *w;
	const struct packet *pkt;
	const uint8_t *mad; /* MAD_LEN bytes; a copy for SMPs */
	uint64_t now;
	struct mad_key key;
	uint64_t hash;
	const struct port_attr *port; /* receiving port */
	uint16_t pkey; /* matching entry of our P_Key table */
};

/* Kind of a packet that has no session. */
enum mad_kind {
	MAD_KIND_SINGLE, /* a single-packet request */
	MAD_KIND_FIRST, /* first segment of a multi-packet request: start_receive() */
	MAD_KIND_STRAY, /* control packet, later segment, or malformed: stray() */
};

/*
 * A protocol. All functions run on the session's worker with w->now set. They leave their result
 * in the session's state unless they return one.
 */
struct mad_protocol {
	const char *name;
	/* Classify a request (R = 0) without a session. No side effects. Called by agent.c. */
	enum mad_kind (*kind)(const struct mad_rx *rx);
	/*
	 * Handle a packet without a session, either role: answer it with mad_reply() if the
	 * protocol says so (RMPP: ABORT 121, 125). @return mostly MAD_UNMATCHED. Called by agent.c
	 * and gsi.c.
	 */
	enum verdict (*stray)(const struct mad_rx *rx);
	/* No session is free: answer the request (status, or RMPP STOP). Called by agent.c. */
	void (*refuse)(const struct mad_rx *rx);
	/*
	 * Responder: s->mad has a single request and the agent is about to be called. Note what the
	 * answer needs of the request (v1: Window). May be NULL. Called by agent.c.
	 */
	void (*start_request)(struct mad_session *s);
	/* Responder: s->mad has the first packet of a multi-packet request; receive() follows. */
	void (*start_receive)(struct mad_session *s);
	/* Requester: send the request in s->mad and s->source. Called by call.c. */
	void (*start_call)(struct mad_session *s);
	/* Responder: the agent will answer later; s->mad has the request. Called by agent.c. */
	void (*prepare)(struct mad_session *s);
	/* Responder: send the single-packet answer in s->mad. Called by agent.c. */
	void (*start_answer)(struct mad_session *s);
	/* Responder: send s->source (length may be 0) behind s->mad's header. Called by agent.c. */
	void (*start_stream)(struct mad_session *s);
	/*
	 * Process a packet of the session in any state except FREE: DATA, control, answer, or
	 * repeated request (count repeated_requests). The session may end. Called by gsi.c.
	 * @return DATAGRAM, MAD_DISCARDED (out of order, repeated, old), MAD_UNMATCHED (wrong for
	 *         the state), MAD_REFUSED
	 */
	enum verdict (*receive)(struct mad_session *s, const struct mad_rx *rx);
	/*
	 * Send up to @p budget packets of s->work. Clear each bit when its packet is sent; return
	 * when mad_packet() gives NULL, send() is called again. The session may end. Called by
	 * run.c.
	 * @return packets sent
	 */
	unsigned int (*send)(struct mad_session *s, unsigned int budget);
	/* The session's timer, now disarmed, expired. Called by session_table.c. */
	void (*expire)(struct mad_session *s);
	/*
	 * Our side gives up for the reason in why->end (CANCELLED, REFUSED, ...) and why->error.
	 * Tell the peer if the protocol has a packet for it, and end the session. Called by call.c
	 * and mad_session_deliver().
	 */
	void (*give_up)(struct mad_session *s, const struct mad_result *why);
};

extern const struct mad_protocol mad_protocol_single; /* single.c */
extern const struct mad_protocol mad_protocol_v1; /* v1.c */
extern const struct mad_protocol mad_protocol_rmpp; /* rmpp.c */

#endif
