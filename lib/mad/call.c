/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Calls: requests that we send. TransactionIDs come from the random generator, so that no stranger
 * can guess one and forge an answer, and are chosen so that the answer hashes to this worker.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/core.h"

/* True if the answer reaches this worker. */
static bool
comes_back(const struct mad_worker *w, const struct mad_call *call, uint64_t hash)
{
	if (call->to.qpn == QPN_SMI || mad_is_report(call->mad))
		return w->config.id == 0;
	return mad_hash_worker(hash, w->config.workers) == w->config.id;
}

/* Takes as many tries as there are workers on average; a TID already in use is very unlikely. */
static void
choose_tid(struct mad_worker *w, const struct mad_call *call, struct mad_key *key, uint64_t *hash)
{
	do {
		key->tid = rng_u64(w->config.rng);
		*hash = mad_hash(w->config.hash_key, key);
	} while (!comes_back(w, call, *hash) || mad_session_find(w, key, *hash) != NULL);
}

/* Check the caller's own TID. */
static int
take_tid(struct mad_worker *w, const struct mad_call *call, const struct mad_key *key,
	uint64_t *hash)
{
	*hash = mad_hash(w->config.hash_key, key);
	if (!call->no_answer && !comes_back(w, call, *hash))
		return -EINVAL;
	return mad_session_find(w, key, *hash) != NULL ? -EEXIST : 0;
}

static int
call_open_session(struct mad_worker *w, const struct mad_call *call, struct mad_session **s)
{
	struct mad_key key;
	uint64_t hash;
	int ret = 0;

	if ((call->to.qpn == QPN_SMI || mad_is_report(call->mad)) && w->config.id != 0)
		return -EINVAL;
	mad_key_call(&key, &call->to, call->mad);
	if (call->keep_tid)
		ret = take_tid(w, call, &key, &hash);
	else
		choose_tid(w, call, &key, &hash);
	if (ret != 0)
		return ret;
	*s = mad_session_new(w, &key, hash, false);
	return *s != NULL ? 0 : -ENOSPC;
}

/*
 * RoCE: leave from an address that the port has. The caller's may be that of another appliance of a
 * fleet, or one that the port has lost; an answer to it would not come back.
 */
static void
fill_source(struct av *av, const struct port_attr *port)
{
	enum gid_type type = av->encap == ENCAP_ROCEV1 ? GID_ROCEV1 : GID_ROCEV2;
	unsigned int i;

	memcpy(av->smac, port->mac, sizeof(av->smac));
	if (port_gid_find(port, &av->sgid, type) >= 0)
		return;
	for (i = 0; i < port->num_gids; i++)
		if (port->gid[i].type == type &&
			gid_is_ipv4(&port->gid[i].gid) == gid_is_ipv4(&av->sgid) &&
			gid_is_link_local(&port->gid[i].gid) == gid_is_link_local(&av->sgid)) {
			av->sgid = port->gid[i].gid;
			return;
		}
}

/* Set the session's destination. An SMP's directed route changes it. */
static void
fill_path(struct mad_session *s, const struct mad_call *call)
{
	struct mad_worker *w = s->w;
	const struct port_attr *port = w->config.port(w->config.port_arg, call->to.av.port);
	struct mad_peer to = call->to;

	if (port != NULL && to.av.encap == ENCAP_IB) {
		to.av.vl = port->sl_to_vl[to.av.sl % PORT_SLS];
		to.av.ethertype = port->ethertype;
		to.av.vlan = port->vlan;
		memcpy(to.av.smac, port->mac, sizeof(to.av.smac));
	} else if (port != NULL) {
		fill_source(&to.av, port);
	}
	if (to.qpn == QPN_SMI)
		mad_smp_call(port, &to, s->mad);
	mad_path_to(&s->path, s->transport, &to);
	s->qpn = to.qpn;
	s->qkey = to.qkey;
	s->pkey = to.pkey;
}

/* The formula of A5, or the caller's timeout. */
static void
fill_times(struct mad_session *s, const struct mad_call *call)
{
	s->flight = mad_flight(s->w, call->to.av.port);
	s->process = mad_timeout(s->w, call->resp_time);
	if (call->timeout == 0 || call->source.read != NULL)
		return;
	s->flight = 0;
	s->process = call->timeout;
}

static void
fill_session(struct mad_session *s, const struct mad_call *call)
{
	struct mad_worker *w = s->w;

	s->protocol = call->no_answer ? &mad_protocol_single : mad_protocol_of(call->protocol);
	s->flags = call->flags;
	s->data_offset = call->data_offset;
	s->no_answer = call->no_answer;
	s->budget = call->budget;
	fill_times(s, call);
	if (call->retries != 0)
		s->retries = RTE_MIN(call->retries, w->limits.retries);
	if (call->no_retry)
		s->retries = 0;
	s->retries_left = s->retries;
	if (call->source.read != NULL)
		s->source = call->source;
	s->taker = call->taker;
	memcpy(s->mad, call->mad, MAD_LEN);
	put_be64(s->mad + MAD_OFF_TID, s->key.tid);
	s->method = s->mad[MAD_OFF_METHOD];
	fill_path(s, call);
}

int
mad_call(struct mad_worker *w, const struct mad_call *call, uint64_t now, mad_handle *h)
{
	struct mad_session *s;
	int ret;

	RTE_ASSERT(call->mad != NULL && call->taker.done != NULL);
	w->now = now;
	ret = mad_port(w, call->to.av.port) != NULL ? call_open_session(w, call, &s) : -ENODEV;
	if (ret != 0) {
		if (call->source.release != NULL)
			call->source.release(call->source.arg);
		return ret;
	}
	fill_session(s, call);
	mad_count(w, calls, 1);
	if (h != NULL)
		*h = mad_session_handle(s);
	s->protocol->start_call(s);
	mad_session_check(s);
	return 0;
}

int
mad_cancel(struct mad_worker *w, mad_handle h, uint64_t now)
{
	static const struct mad_result cancelled = { .end = MAD_END_CANCELLED };
	struct mad_session *s = mad_session_of(w, h);

	if (s == NULL || !s->key.requester || s->state == MAD_STATE_LINGER)
		return -ENOENT;
	w->now = now;
	if (s->busy) {
		s->cancelled = true; /* called by its own data(): mad_session_deliver() ends it */
	} else {
		s->protocol->give_up(s, &cancelled);
		mad_session_check(s);
	}
	return 0;
}

bool
mad_answers(const struct mad_session *s, const uint8_t *mad)
{
	return mad[MAD_OFF_METHOD] ==
		mad_response_method(s->key.mgmt_class, s->key.class_version, s->method);
}
