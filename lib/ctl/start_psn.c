/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Start PSNs come from a CSPRNG (design.md rule 6) when a QP is made, so that both ends can tell
 * each other before either connects. They stand here from qp_create until qp_destroy.
 */

#include <stdio.h>

#include "ctl/methods.h"

#define PSN_BITS 0xffffff

static const char *
start_psn_key(uint32_t qpn, char key[16])
{
	snprintf(key, 16, "%u", qpn);
	return key;
}

uint32_t
start_psn_choose(struct rpc_call *call, uint32_t qpn)
{
	uint32_t psn = rng_u32(&rng_kernel) & PSN_BITS;
	char key[16];

	json_object_set_new(call->state->start_psn, start_psn_key(qpn, key), json_integer(psn));
	return psn;
}

uint32_t
start_psn_of(struct rpc_call *call, uint32_t qpn)
{
	char key[16];
	const json_t *v = json_object_get(call->state->start_psn, start_psn_key(qpn, key));

	return v != NULL ? (uint32_t)json_integer_value(v) : rng_u32(&rng_kernel) & PSN_BITS;
}

void
start_psn_forget(struct rpc_call *call, uint32_t qpn)
{
	char key[16];

	json_object_del(call->state->start_psn, start_psn_key(qpn, key));
}
