/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Calls: requests of our own. Their transaction IDs come from the random generator, so that no
 * stranger can guess one, and are picked so that the answer hashes to this worker.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/core.h"

/* Tries are as many as workers on average; a key taken already is as good as impossible. */
static void
choose_tid(struct mad_worker *w, struct mad_key *key, uint64_t *hash)
{
	do {
		key->tid = rng_u64(w->config.rng);
		*hash = mad_hash(w->config.hash_key, key);
	} while (mad_hash_worker(*hash, w->config.workers) != w->config.id ||
		mad_session_find(w, key, *hash) != NULL);
}

static void
fill_session(struct mad_session *s, const struct mad_call *call)
{
	struct mad_worker *w = s->w;

	mad_path_to(&s->path, s->transport, &call->to);
	s->qpn = call->to.qpn;
	s->qkey = call->to.qkey;
	s->pkey = call->to.pkey;
	s->protocol = call->no_answer ? &mad_protocol_single : mad_protocol_of(call->protocol);
	s->flags = call->flags;
	s->data_offset = call->data_offset;
	s->no_answer = call->no_answer;
	s->flight = mad_flight(w, call->to.av.port);
	s->process = mad_timeout(w, call->resp_time);
	if (call->retries != 0)
		s->retries = RTE_MIN(call->retries, w->limits.retries);
	s->retries_left = s->retries;
	if (call->source.read != NULL)
		s->source = call->source;
	s->taker = call->taker;
	memcpy(s->mad, call->mad, MAD_LEN);
	put_be64(s->mad + MAD_OFF_TID, s->key.tid);
	s->method = s->mad[MAD_OFF_METHOD];
}

int
mad_call(struct mad_worker *w, const struct mad_call *call, uint64_t now, mad_handle *h)
{
	struct mad_session *s;
	struct mad_key key;
	uint64_t hash;

	w->now = now;
	mad_key_call(&key, &call->to, call->mad);
	choose_tid(w, &key, &hash);
	s = mad_session_new(w, &key, hash, false);
	if (s == NULL) {
		if (call->source.release != NULL)
			call->source.release(call->source.arg);
		return -ENOSPC;
	}
	fill_session(s, call);
	mad_count(w, calls, 1);
	if (h != NULL)
		*h = mad_session_handle(s);
	s->protocol->start_call(s);
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
	if (s->busy)
		s->cancelled = true; /* from inside its own data(): mad_session_deliver() sees to it */
	else
		s->protocol->give_up(s, &cancelled);
	return 0;
}

bool
mad_answers(const struct mad_session *s, const uint8_t *mad)
{
	return mad[MAD_OFF_METHOD] ==
		mad_response_method(s->key.mgmt_class, s->key.class_version, s->method);
}
