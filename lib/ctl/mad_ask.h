/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_MAD_ASK_H
#define CTL_MAD_ASK_H

/**
 * @file
 * One management datagram and its answer within a method: asked on the first step, looked at on the
 * later ones.
 */

#include "ctl/methods.h"
#include "engine/verbs_mad.h"

/** Where a method is with its request, between steps; zero at first, and again after the answer. */
struct mad_asked {
	uint32_t id;
	bool under_way;
	uint64_t until; /**< when the engine gives up */
};

/**
 * Ask, unless it was, and look. The answer's bytes stay until mad_asked_forget().
 *
 * @return 0: *a is the answer, or how it failed; RPC_WAIT; a negative errno
 */
int mad_ask(struct rpc_call *call, struct mad_asked *m, const struct engine_mad_ask *ask,
	struct engine_mad_answer *a);
void mad_asked_forget(struct rpc_call *call, struct mad_asked *m);

/** Was it answered, if only with a status? */
bool mad_answered(const struct engine_mad_answer *a);
/** One word for how it ended: OK, a status' name, TIMEOUT, ... */
const char *mad_answer_word(const struct engine_mad_answer *a);
/** What that means, and what to look at. */
const char *mad_answer_text(const struct engine_mad_answer *a);

#endif
