/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Find and call the agent that answers a request. Each class and class version has a row in one
 * table, with its methods. Requests without a row get the standard's status (sa-multipacket B2).
 */

#include <errno.h>

#include "mad/core.h"

/* --- the table --- */

static const struct mad_protocol *const protocols[] = {
	[MAD_SINGLE] = &mad_protocol_single,
	[MAD_SA1] = &mad_protocol_v1,
	[MAD_RMPP] = &mad_protocol_rmpp,
};

const struct mad_protocol *
mad_protocol_of(enum mad_protocol_id id)
{
	return protocols[id];
}

static const struct mad_agent *
agent_row(const struct mad_worker *w, uint8_t mgmt_class, uint8_t class_version)
{
	unsigned int i;

	if (w->agent_of[mgmt_class] == 0)
		return NULL;
	for (i = w->agent_of[mgmt_class] - 1; i < w->num_agents; i++)
		if (w->agents[i].mgmt_class == mgmt_class &&
			w->agents[i].class_version == class_version)
			return &w->agents[i];
	return NULL;
}

const struct mad_agent *
mad_agent_find(const struct mad_worker *w, uint8_t mgmt_class, uint8_t class_version)
{
	const struct mad_agent *a = agent_row(w, mgmt_class, class_version);

	return a != NULL ? a : agent_row(w, mgmt_class, MAD_ANY_VERSION);
}

int
mad_agent_add(struct mad_worker *w, const struct mad_agent *agent)
{
	RTE_ASSERT(agent->request != NULL && agent->data_offset >= MAD_HEADER_LEN);
	if (agent_row(w, agent->mgmt_class, agent->class_version) != NULL)
		return -EEXIST;
	if (w->num_agents == MAD_AGENTS_MAX)
		return -ENOSPC;
	w->agents[w->num_agents++] = *agent;
	if (w->agent_of[agent->mgmt_class] == 0)
		w->agent_of[agent->mgmt_class] = w->num_agents;
	return 0;
}

static const struct mad_method *
method_find(const struct mad_agent *agent, uint8_t method)
{
	static const struct mad_method any = { 0, 0 };
	const struct mad_method *m;

	if (agent->methods == NULL)
		return &any;
	for (m = agent->methods; m->method != 0; m++)
		if (m->method == method)
			return m;
	return NULL;
}

/* --- answers --- */

/* True if the requester expects an answer to this method. */
static bool
wants_answer(uint8_t method)
{
	return method != MAD_SEND && method != MAD_TRAP && method != MAD_TRAP_REPRESS;
}

/*
 * True for Trap and Report SMPs: they are meant for a subnet manager, and none is here (smp-sma 6).
 */
static bool
for_the_sm(const struct mad_rx *rx)
{
	return mad_is_smp(rx->mad) && (rx->key.method == MAD_TRAP || rx->key.method == MAD_REPORT);
}

/*
 * Refuse a request that no agent or method accepts: send its header back with the status. Nothing
 * is sent for SMPs that are the SM's, or if the method expects no answer. There is no session yet.
 */
static enum verdict
answer_status(const struct mad_rx *rx, uint16_t status)
{
	if (for_the_sm(rx))
		return VERDICT_SMP_NO_SM;
	if (!wants_answer(rx->key.method))
		return VERDICT_MAD_UNMATCHED;
	if (status == MAD_STATUS_BAD_VERSION)
		mad_count(rx->w, bad_version, 1);
	else if (status == MAD_STATUS_BAD_METHOD)
		mad_count(rx->w, bad_method, 1);
	return mad_reply_status(rx, status) ? VERDICT_DATAGRAM : VERDICT_MAD_REFUSED;
}

/* --- requests with a session --- */

static struct mad_session *
agent_open_session(const struct mad_rx *rx, const struct mad_agent *agent,
	const struct mad_method *m)
{
	struct mad_worker *w = rx->w;
	struct mad_session *s = mad_session_new(w, &rx->key, rx->hash, true);
	struct mad_peer peer;

	if (s == NULL)
		return NULL;
	mad_peer_of(&peer, rx);
	mad_path_to(&s->path, s->transport, &peer);
	s->qpn = peer.qpn;
	s->qkey = peer.qkey;
	s->pkey = peer.pkey;
	s->protocol = mad_protocol_of(agent->protocol);
	s->agent = agent;
	s->flags = m->flags;
	s->method = m->method;
	s->arrived = rx->pkt->rx_time;
	s->data_offset = agent->data_offset;
	s->flight = mad_timeout(w, rx->port->subnet_timeout);
	s->process = mad_timeout(w, w->limits.resp_time);
	memcpy(s->mad, rx->mad, MAD_LEN);
	return s;
}

static void
agent_start_answer(struct mad_session *s, const uint8_t *mad)
{
	memcpy(s->mad, mad, MAD_LEN);
	mad_smp_return(s->mad);
	s->protocol->start_answer(s);
}

/*
 * Do what the agent's request() returned, for a request with a session. MAD_LATER: tell the
 * protocol to wait, unless the agent has called mad_answer() or mad_stream() before it returned.
 */
static void
agent_outcome(struct mad_session *s, enum mad_outcome out, struct mad_request *req)
{
	static const struct mad_result silent = { .end = MAD_END_OK };

	if (out == MAD_STREAM) {
		s->source = req->source;
		memcpy(s->mad, req->reply, MAD_LEN);
		s->protocol->start_stream(s);
	} else if (out == MAD_ANSWER) {
		agent_start_answer(s, req->reply);
	} else if (out == MAD_SILENT) {
		mad_session_end(s, &silent);
	} else if (s->state == MAD_STATE_PREP) { /* MAD_LATER, not answered yet */
		s->protocol->prepare(s);
	}
}

void
mad_session_request(struct mad_session *s)
{
	mad_handle h = mad_session_handle(s);
	struct mad_worker *w = s->w;
	uint8_t reply[MAD_LEN];
	enum mad_outcome out;
	struct mad_peer peer;
	struct mad_request req = {
		.peer = &peer,
		.mad = s->mad,
		.body = s->body,
		.handle = h,
		.arrived = s->arrived,
		.now = w->now,
		.reply = reply,
		.verdict = VERDICT_DATAGRAM,
	};

	mad_session_timer_stop(s);
	mad_body_settle(s);
	mad_peer_of_session(&peer, s);
	mad_reply_header(reply, s->mad);
	mad_count(w, requests, 1);
	s->state = MAD_STATE_PREP;
	s->busy = true;
	out = s->agent->request(s->agent->arg, &req);
	if (mad_session_of(w, h) != s)
		return;
	s->busy = false;
	if (!req.take_body)
		mad_body_free(w, s->body);
	s->body = NULL;
	agent_outcome(s, out, &req);
}

static enum verdict
refuse_session(const struct mad_rx *rx, const struct mad_agent *agent)
{
	mad_count_refused(rx->w, &rx->key);
	mad_protocol_of(agent->protocol)->refuse(rx);
	return VERDICT_MAD_REFUSED;
}

static enum verdict
start_session(const struct mad_rx *rx, const struct mad_agent *agent, const struct mad_method *m)
{
	struct mad_session *s = agent_open_session(rx, agent, m);

	if (s == NULL)
		return refuse_session(rx, agent);
	if (s->protocol->start_request != NULL)
		s->protocol->start_request(s);
	mad_session_request(s);
	mad_session_check(s);
	return VERDICT_DATAGRAM;
}

/* Anti-exhaustion: whom the agent does not admit to send a long request has nothing stored. */
static enum verdict
start_receiving(const struct mad_rx *rx, const struct mad_agent *agent, const struct mad_method *m)
{
	uint16_t status = MAD_STATUS_OK;
	struct mad_session *s;
	struct mad_peer peer;
	bool trusted = false;
	enum verdict v;

	if (agent->admit != NULL) {
		mad_peer_of(&peer, rx);
		status = agent->admit(agent->arg, &peer, rx->mad, &trusted);
	}
	/* one answer is enough: class version 1 comes here with every segment of the request */
	if (status != MAD_STATUS_OK && agent->protocol == MAD_SA1 &&
		get_be32(rx->mad + SA1_OFF_SEGMENT) != 1)
		return VERDICT_MAD_UNMATCHED;
	if (status != MAD_STATUS_OK)
		return answer_status(rx, status);
	s = agent_open_session(rx, agent, m);
	if (s == NULL)
		return refuse_session(rx, agent);
	if (trusted)
		mad_session_answers(s);
	s->protocol->start_receive(s);
	if (unlikely(s->trace != NULL))
		mad_trace_packet(s, MAD_STEP_RECEIVED, rx->mad);
	v = s->protocol->receive(s, rx);
	mad_session_check(s);
	return v;
}

/* --- requests of one packet without a session --- */

/* What mad_later() needs to open a session. */
struct mad_late {
	const struct mad_rx *rx;
	const struct mad_agent *agent;
	const struct mad_method *method;
};

mad_handle
mad_later(struct mad_request *req)
{
	const struct mad_late *l = req->late;
	struct mad_session *s;

	if (req->handle != 0 || l == NULL || !(l->method->flags & MAD_METHOD_LATER))
		return req->handle;
	s = agent_open_session(l->rx, l->agent, l->method);
	if (s == NULL) {
		mad_count_refused(l->rx->w, &l->rx->key);
		return 0;
	}
	if (s->protocol->start_request != NULL)
		s->protocol->start_request(s);
	s->state = MAD_STATE_PREP;
	req->handle = mad_session_handle(s);
	return req->handle;
}

static enum verdict
ask_at_once(const struct mad_rx *rx, const struct mad_agent *agent, const struct mad_method *m)
{
	const struct mad_late late = { rx, agent, m };
	struct mad_session *s;
	uint8_t reply[MAD_LEN];
	enum mad_outcome out;
	struct mad_peer peer;
	struct mad_request req = {
		.peer = &peer,
		.mad = rx->mad,
		.arrived = rx->pkt->rx_time,
		.now = rx->now,
		.reply = reply,
		.late = &late,
		.verdict = VERDICT_DATAGRAM,
	};

	mad_peer_of(&peer, rx);
	mad_reply_header(reply, rx->mad);
	mad_count(rx->w, requests, 1);
	out = agent->request(agent->arg, &req);
	if (unlikely(req.handle != 0)) {
		s = mad_session_of(rx->w, req.handle);
		if (s != NULL) {
			agent_outcome(s, out, &req);
			mad_session_check(s);
		}
	} else if (out == MAD_ANSWER) {
		mad_smp_return(reply);
		return mad_reply_to(rx->w, &peer, agent, reply) ? VERDICT_DATAGRAM
								: VERDICT_MAD_REFUSED;
	} else if (out == MAD_STREAM) {
		/* the method's row announces no stream */
		if (req.source.release != NULL)
			req.source.release(req.source.arg);
		return answer_status(rx, MAD_STATUS_BAD_METHOD);
	}
	return out == MAD_SILENT ? req.verdict : VERDICT_DATAGRAM;
}

/* --- dispatch --- */

enum verdict
mad_dispatch(const struct mad_rx *rx)
{
	const struct mad_agent *agent =
		mad_agent_find(rx->w, rx->key.mgmt_class, rx->key.class_version);
	const struct mad_protocol *protocol;
	const struct mad_method *m;
	enum mad_kind kind;

	/*
		 * security: an SMP reaches the subnet management agent only by QP0 and its checks
		 */
	if (agent == NULL || mad_is_smp(rx->mad) != (rx->pkt->dest_qpn == QPN_SMI))
		return answer_status(rx, MAD_STATUS_BAD_VERSION);
	if (agent->allow != NULL &&
		!allow_list_admits(agent->allow, rx->pkt->has_grh ? &rx->pkt->sgid : NULL,
			rx->pkt->pkey))
		return VERDICT_NOT_ALLOWED;
	protocol = mad_protocol_of(agent->protocol);
	kind = protocol->kind(rx);
	if (kind == MAD_KIND_STRAY)
		return protocol->stray(rx);
	m = method_find(agent, rx->mad[MAD_OFF_METHOD]);
	if (m == NULL)
		return answer_status(rx, MAD_STATUS_BAD_METHOD);
	if (kind == MAD_KIND_FIRST && !(m->flags & MAD_METHOD_MULTI_REQUEST))
		return answer_status(rx, MAD_STATUS_INVALID_FIELD);
	if (kind == MAD_KIND_SINGLE && !(m->flags & MAD_METHOD_SESSION))
		return ask_at_once(rx, agent, m);
	return kind == MAD_KIND_FIRST ? start_receiving(rx, agent, m) : start_session(rx, agent, m);
}

/* --- late answers --- */

static struct mad_session *
waiting(struct mad_worker *w, mad_handle h, uint64_t now)
{
	struct mad_session *s = mad_session_of(w, h);

	if (s == NULL || s->agent == NULL || s->state != MAD_STATE_PREP)
		return NULL;
	w->now = now;
	mad_session_timer_stop(s);
	return s;
}

int
mad_answer(struct mad_worker *w, mad_handle h, const uint8_t *mad, uint64_t now)
{
	struct mad_session *s = waiting(w, h, now);

	RTE_ASSERT(mad[MAD_OFF_METHOD] & MAD_RESPONSE);
	if (s == NULL)
		return -ENOENT;
	agent_start_answer(s, mad);
	mad_session_check(s);
	return 0;
}

int
mad_stream(struct mad_worker *w, mad_handle h, const uint8_t *mad, const struct mad_source *source,
	uint64_t now)
{
	struct mad_session *s = waiting(w, h, now);

	RTE_ASSERT(source->read != NULL);
	if (s == NULL) {
		if (source->release != NULL)
			source->release(source->arg);
		return -ENOENT;
	}
	memcpy(s->mad, mad, MAD_LEN);
	s->source = *source;
	s->protocol->start_stream(s);
	mad_session_check(s);
	return 0;
}
