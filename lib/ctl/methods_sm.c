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

struct set_args {
	uint32_t port;
	uint32_t state;
	uint8_t priority;
};

static const struct table_row set_params[] = {
	ROW(struct set_args, state, TABLE_ENUM, .flags = TABLE_REQUIRED, .words = words_sm_state,
		.help = "SMInfo.SMState from now on"),
	ROW(struct set_args, priority, TABLE_UINT, .flags = TABLE_DEFAULT, .max = SMA_SM_PRIORITY_MAX,
		.help = "SMInfo.Priority from now on"),
	ROW(struct set_args, port, TABLE_UINT, .flags = TABLE_DEFAULT, .max = LINK_PORTS_MAX - 1,
		.help = "the port that it is behind"),
	ROW_END,
};

static int
sm_set(struct rpc_call *call)
{
	const struct set_args *a = call->args;

	return engine_sm_set(call->e, a->port, (uint8_t)a->state, a->priority, &call->err);
}

/* --- sm_take --- */

struct take_args {
	uint32_t port;
	uint32_t max;
	uint32_t timeout_ms;
};

static const struct table_row take_params[] = {
	ROW(struct take_args, port, TABLE_UINT, .flags = TABLE_DEFAULT, .max = LINK_PORTS_MAX - 1,
		.help = "the port that it is behind"),
	ROW(struct take_args, max, TABLE_UINT, .flags = TABLE_DEFAULT, .min = 1,
		.max = ENGINE_SM_SMPS, .def = 32, .help = "rows in the reply at most"),
	ROW(struct take_args, timeout_ms, TABLE_UINT, .flags = TABLE_DEFAULT, .max = 60000,
		.help = "wait so long for one"),
	ROW_END,
};

void
set_sm_smp(json_t *row, const struct engine_sm_smp *smp)
{
	const struct smp_attribute *t = smp_attribute(get_be16(smp->mad + MAD_OFF_ATTRIBUTE));

	set_int(row, "smp", smp->number);
	set_int(row, "port", smp->port);
	set(row, "method", json_string(smp->mad[MAD_OFF_METHOD] == MAD_TRAP ? "Trap" : "Set"));
	set(row, "attribute", json_string(t->name));
	set_int(row, "modifier", get_be32(smp->mad + MAD_OFF_MODIFIER));
	set_int(row, "slid", smp->slid);
	set(row, "tid", json_sprintf("0x%016llx",
		(unsigned long long)get_be64(smp->mad + MAD_OFF_TID)));
	set_int(row, "age_ms", smp->age_us / 1000);
	if (smp->mad[MAD_OFF_METHOD] == MAD_TRAP)
		set(row, "notice", smp_fields(t, smp->mad + SMP_OFF_DATA));
	set(row, "data", json_hex(smp->mad + SMP_OFF_DATA, SMP_DATA_LEN));
}

static int
sm_take(struct rpc_call *call)
{
	const struct take_args *a = call->args;
	struct engine_sm_smp smp[ENGINE_SM_SMPS];
	uint64_t lost = 0;
	json_t *rows, *row;
	int i, n;

	n = engine_sm_take(call->e, a->port, smp, a->max, &lost, &call->err);
	if (n < 0)
		return n;
	if (n == 0 && !waited(call, a->timeout_ms))
		return RPC_WAIT;
	rows = json_array();
	for (i = 0; i < n; i++) {
		row = json_object();
		set_sm_smp(row, &smp[i]);
		json_array_append_new(rows, row);
	}
	set(call->result, "smps", rows);
	set_int(call->result, "lost", lost);
	return 0;
}

/* --- sm_repress --- */

struct repress_args {
	uint32_t smp;
	uint64_t m_key;
	struct mad_asked asked;
};

static const struct table_row repress_params[] = {
	ROW(struct repress_args, smp, TABLE_UINT, .flags = TABLE_REQUIRED,
		.help = "number of the Trap (sm_take)"),
	ROW(struct repress_args, m_key, TABLE_UINT, .flags = TABLE_DEFAULT,
		.help = "M_Key of the port that sent it"),
	ROW_END,
};

/* The Trap's own MAD goes back, with method TrapRepress and the key (smp-sma 5). */
static int
fill_repress(struct rpc_call *call, const struct repress_args *a, struct engine_ah *ah,
	struct engine_mad_ask *ask)
{
	const struct engine_sm_smp *smp = engine_sm_find(call->e, a->smp);

	if (smp == NULL || smp->mad[MAD_OFF_METHOD] != MAD_TRAP)
		return error_set(&call->err, ENOENT,
			"smp: got %u, which is no Trap of the last %d that came in (sm_take)", a->smp,
			ENGINE_SM_SMPS);
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
	struct repress_args *a = call->args;
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
	{ "sm_set", sm_set, set_params, sizeof(struct set_args),
		"Say what the subnet manager behind a port is: SMInfo and the SMInfoRecord tell it. The port's configuration has ib.sm. A manager that calls neither this nor sm_take for 30 s is gone: it is master no longer.",
		"", "polca-ctl sm set master --priority 5" },
	{ "sm_take", sm_take, take_params, sizeof(struct take_args),
		"Take what has come in for the subnet manager behind a port, oldest first: traps, and commands of other managers that have changed its state.",
		"smps: list of smp (its number), port, method (Trap, or Set of SMInfo), attribute, modifier (of SMInfo: 1 handover, 2 acknowledge, 3 disable, 4 standby, 5 discover), slid, tid, age_ms, notice (of a Trap: object of its components), data\n"
		"lost: those that found no room before they were taken, of all ports, since start",
		"polca-ctl sm take --timeout-ms 10000" },
	{ "sm_repress", sm_repress, repress_params, sizeof(struct repress_args),
		"Send TrapRepress to who sent a trap: it stops repeating it.", "",
		"polca-ctl sm repress 3" },
	{ NULL },
};
