/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>

#include "ctl/mad_ask.h"

int
mad_ask(struct rpc_call *call, struct mad_asked *m, const struct engine_mad_ask *ask,
	struct engine_mad_answer *a)
{
	int rc;

	if (!m->under_way) {
		rc = engine_mad_ask(call->e, ask, &m->id, &call->err);
		if (rc != 0)
			return rc;
		m->under_way = true;
		m->until = ask->total_ms != 0 ? call->now + ask->total_ms : UINT64_MAX;
	}
	memset(a, 0, sizeof(*a));
	rc = engine_mad_look(call->e, m->id, a, &call->err);
	if (rc != 0) {
		m->under_way = false;
		return rc;
	}
	if (a->done)
		return 0;
	call->until = m->until;
	return RPC_WAIT;
}

void
mad_asked_forget(struct rpc_call *call, struct mad_asked *m)
{
	engine_mad_forget(call->e, m->id);
	m->under_way = false;
}

bool
mad_answered(const struct engine_mad_answer *a)
{
	return !a->timed_out && (a->end == MAD_END_OK || a->end == MAD_END_STATUS);
}

/* For a member of a result, which programs compare; mad_answer_text() is for people. */
const char *
mad_answer_word(const struct engine_mad_answer *a)
{
	if (a->timed_out) /* before the retries were used up, which MAD_END_TIMEOUT says */
		return "TIMEOUT";
	switch (a->end) {
	case MAD_END_OK:
		return "OK";
	case MAD_END_STATUS:
		return mad_status_name(a->status);
	case MAD_END_ABORTED:
		return rmpp_status_name(a->rmpp_status);
	default:
		return mad_end_name(a->end);
	}
}

/* What a status means to who asked (sa-multipacket B2). */
static const struct {
	uint16_t status;
	const char *text;
} statuses[] = {
	{ MAD_STATUS_BUSY, "it is busy: try again" },
	{ MAD_STATUS_BAD_VERSION, "it does not serve this class, or not this version of it" },
	{ MAD_STATUS_BAD_METHOD, "it does not know this method" },
	{ MAD_STATUS_BAD_METHOD_ATTR,
		"it does not have this attribute, or does not do this with it" },
	{ MAD_STATUS_INVALID_FIELD, "a field, or the modifier, has a value that cannot be" },
};

static const char *
status_text(uint16_t status)
{
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "it answered with a status";
}

const char *
mad_answer_text(const struct engine_mad_answer *a)
{
	static const char *const words[MAD_END_COUNT] = {
		[MAD_END_OK] = "answered",
		[MAD_END_TIMEOUT] = "no answer",
		[MAD_END_ABORTED] = "the other end ended the transfer",
		[MAD_END_PROTOCOL] = "the other end broke the protocol",
		[MAD_END_REFUSED] = "our own side could not send the request or take the answer",
		[MAD_END_CANCELLED] = "cancelled",
	};

	if (a->timed_out)
		return "no answer in time";
	if (a->end == MAD_END_REFUSED && a->error == -ENOBUFS)
		return "the answer is longer than it may be";
	return a->end == MAD_END_STATUS ? status_text(a->status) : words[a->end];
}
