/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The subnet manager behind a port of ours, as a client of this socket: it says what it is, takes
 * what has come in for it, and ends the traps that it has heard. What it asks of others are
 * smp_get and smp_set.
 */

#include <errno.h>
#include <string.h>

#include "ctl/mad_ask.h"
#include "ctl/smp_attribute.h"
#include "wire/bytes.h"

static const struct table_word words_sm_state[] = {
	{ "not_active", SMA_SM_NOT_ACTIVE },
	{ "discovering", SMA_SM_DISCOVERING },
	{ "standby", SMA_SM_STANDBY },
	{ "master", SMA_SM_MASTER },
	{ NULL, 0 },
};

/* --- sm_set --- */

struct sm_set_args {
	uint32_t port;
	uint32_t state;
	uint8_t priority;
};

static const struct table_row sm_set_params[] = {
	ROW(struct sm_set_args, state, TABLE_ENUM, "SMInfo.SMState from now on",
		.flags = TABLE_REQUIRED, .words = words_sm_state),
	ROW(struct sm_set_args, priority, TABLE_UINT, "SMInfo.Priority from now on",
		.max = SMA_SM_PRIORITY_MAX),
	ROW(struct sm_set_args, port, TABLE_UINT, "the port that it is behind",
		.max = LINK_PORTS_MAX - 1),
	ROW_END,
};

static int
sm_set(struct rpc_call *call)
{
	const struct sm_set_args *a = call->args;

	return engine_sm_set(call->e, a->port, (uint8_t)a->state, a->priority, &call->err);
}

/* --- sm_take --- */

struct sm_take_args {
	uint32_t port;
	uint32_t max;
	uint32_t timeout_ms;
};

static const struct table_row sm_take_params[] = {
	ROW(struct sm_take_args, port, TABLE_UINT, "the port that it is behind",
		.max = LINK_PORTS_MAX - 1),
	ROW(struct sm_take_args, max, TABLE_UINT, "rows in the reply at most", .min = 1,
		.max = ENGINE_SM_SMPS, .def = 32),
	ROW(struct sm_take_args, timeout_ms, TABLE_UINT, "wait so long for one", .max = 60000),
	ROW_END,
};

#define SMP(field, t, ...) ROW(struct sm_smp_row, field, t, __VA_ARGS__)
#define INFO(name, field, ...)                                                                     \
	ROW_NAMED(struct sm_smp_row, name, info.field, TABLE_UINT, __VA_ARGS__)

const struct table_row rows_sm_smp[] = {
	INFO("smp", number, "its number"),
	INFO("port", port),
	SMP(method, TABLE_STRING, "Trap, or Set of SMInfo"),
	SMP(attribute, TABLE_STRING),
	SMP(modifier, TABLE_UINT,
		"of SMInfo: 1 handover, 2 acknowledge, 3 disable, 4 standby, 5 discover"),
	INFO("slid", slid),
	SMP(tid, TABLE_UINT, .digits = 16),
	SMP(age_ms, TABLE_UINT),
	SMP(notice, TABLE_MAP, "of a Trap: object of its components", .flags = TABLE_OPTIONAL),
	SMP(data, TABLE_BYTES),
	ROW_END,
};

int
fill_sm_smp(struct rpc_call *call, struct sm_smp_row *row)
{
	const uint8_t *mad = row->info.mad;
	const struct smp_attribute *t = smp_attribute(get_be16(mad + MAD_OFF_ATTRIBUTE));
	bool trap = mad[MAD_OFF_METHOD] == MAD_TRAP;
	uint8_t *data = arena_alloc(&call->arena, SMP_DATA_LEN);

	if (data == NULL)
		return -ENOMEM;
	row->method = trap ? "Trap" : "Set";
	row->attribute = t->name;
	row->modifier = get_be32(mad + MAD_OFF_MODIFIER);
	row->tid = get_be64(mad + MAD_OFF_TID);
	row->age_ms = row->info.age_us / 1000;
	if (trap)
		row->notice = arena_json(&call->arena, smp_fields(t, mad + SMP_OFF_DATA));
	row->data.data = memcpy(data, mad + SMP_OFF_DATA, SMP_DATA_LEN);
	row->data.len = SMP_DATA_LEN;
	return 0;
}

struct sm_take_reply {
	struct table_list smps;
	uint64_t lost;
};

static const struct table_row sm_take_results[] = {
	ROW_LIST(struct sm_take_reply, smps, struct sm_smp_row, rows_sm_smp),
	ROW(struct sm_take_reply, lost, TABLE_UINT,
		"those that found no room before they were taken, of all ports, since start"),
	ROW_END,
};

static int
sm_take(struct rpc_call *call)
{
	const struct sm_take_args *a = call->args;
	struct sm_take_reply *reply = call->reply;
	struct engine_sm_smp smp[ENGINE_SM_SMPS];
	struct sm_smp_row *row;
	int i, n;

	n = engine_sm_take(call->e, a->port, smp, a->max, &reply->lost, &call->err);
	if (n < 0)
		return n;
	if (n == 0 && !waited(call, a->timeout_ms))
		return RPC_WAIT;
	for (i = 0; i < n; i++) {
		row = ADD(call, &reply->smps, struct sm_smp_row);
		if (row == NULL)
			return -ENOMEM;
		row->info = smp[i];
		if (fill_sm_smp(call, row) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- sm_repress --- */

struct sm_repress_args {
	uint32_t smp;
	uint64_t m_key;
	struct mad_asked asked;
};

static const struct table_row sm_repress_params[] = {
	ROW(struct sm_repress_args, smp, TABLE_UINT, "number of the Trap (sm_take)",
		.flags = TABLE_REQUIRED),
	ROW(struct sm_repress_args, m_key, TABLE_UINT, "M_Key of the port that sent it"),
	ROW_END,
};

/* The Trap's own MAD goes back, with method TrapRepress and the key (smp-sma 5). */
static int
fill_repress(struct rpc_call *call, const struct sm_repress_args *a, struct engine_ah *ah,
	struct engine_mad_ask *ask)
{
	const struct engine_sm_smp *smp = engine_sm_find(call->e, a->smp);

	if (smp == NULL || smp->mad[MAD_OFF_METHOD] != MAD_TRAP)
		return error_set(&call->err, ENOENT,
			"smp: got %u, which is no Trap of the last %d that came in (sm_take)",
			a->smp, ENGINE_SM_SMPS);
	ah->port = smp->port;
	ah->dlid = smp->slid;
	memcpy(ask->mad, smp->mad, MAD_LEN);
	ask->mad[MAD_OFF_METHOD] = MAD_TRAP_REPRESS;
	put_be64(ask->mad + SMP_OFF_M_KEY, a->m_key);
	return 0;
}

static int
sm_repress(struct rpc_call *call)
{
	struct sm_repress_args *a = call->args;
	struct engine_ah ah = { 0 };
	struct engine_mad_ask ask = { .ah = &ah, .no_answer = true, .keep_tid = true };
	struct engine_mad_answer answer;
	int rc = a->asked.under_way ? 0 : fill_repress(call, a, &ah, &ask);

	if (rc == 0)
		rc = mad_ask(call, &a->asked, &ask, &answer);
	if (rc != 0)
		return rc;
	if (answer.end != MAD_END_OK)
		rc = error_set(&call->err, EIO, "LID %u: %s", ah.dlid, mad_answer_text(&answer));
	mad_asked_forget(call, &a->asked);
	return rc;
}

const struct rpc_method methods_sm[] = {
	{ "sm_set", sm_set, sm_set_params, sizeof(struct sm_set_args),
		"Say what the subnet manager behind a port is: SMInfo and the SMInfoRecord tell it. The port's configuration has ib.sm. A manager that calls neither this nor sm_take for 30 s is gone: it is master no longer.",
		"polca-ctl sm set master --priority 5" },
	{ "sm_take", sm_take, sm_take_params, sizeof(struct sm_take_args),
		"Take what has come in for the subnet manager behind a port, oldest first: traps, and commands of other managers that have changed its state.",
		"polca-ctl sm take --timeout-ms 10000",
		RESULTS(sm_take_results, struct sm_take_reply) },
	{ "sm_repress", sm_repress, sm_repress_params, sizeof(struct sm_repress_args),
		"Send TrapRepress to who sent a trap: it stops repeating it.",
		"polca-ctl sm repress 3" },
	{ NULL },
};
