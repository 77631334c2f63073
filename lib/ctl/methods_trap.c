/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Traps of this appliance's native IB ports: to be seen, raised by hand, and repressed. */

#include <errno.h>
#include <string.h>

#include "ctl/methods.h"
#include "ctl/smp_attribute.h"
#include "engine/verbs_mad.h"

/* --- trap_list --- */

struct list_args {
	uint32_t present;
	uint32_t port;
	uint64_t cursor;
	uint32_t max;
	bool notice;
};
#define LIST_PORT 0x1

#define TRAPS_AT_ONCE 32 /* asked of the worker */

static const struct table_row list_params[] = {
	ROW(struct list_args, port, TABLE_UINT, .bit = LIST_PORT, .max = LINK_PORTS_MAX - 1,
		.def_text = "all", .help = "of this port only"),
	ROW(struct list_args, notice, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "each one's notice too, by its components"),
	ROW(struct list_args, cursor, TABLE_UINT, .flags = TABLE_DEFAULT, .max = UINT32_MAX,
		.help = "where to go on: the cursor of the reply before; 0: from the start"),
	ROW(struct list_args, max, TABLE_UINT, .flags = TABLE_DEFAULT, .min = 1, .max = PAGE_MAX,
		.def = 100, .help = "rows in a reply"),
	ROW_END,
};

static json_t *
trap_row(const struct sma_trap_info *t, bool notice)
{
	json_t *row = json_object(), *fields = smp_fields(smp_attribute(SMA_NOTICE), t->notice);

	set_int(row, "trap", t->id);
	set_int(row, "port", t->port);
	set_int(row, "number", t->number);
	set(row, "type", json_incref(json_object_get(fields, "type")));
	set(row, "state", json_string(sma_trap_state_name(t->state)));
	set_int(row, "sent", t->sent);
	set_int(row, "raised", t->raised);
	set_int(row, "age_ms", t->age / 1000);
	set(row, "tid", json_sprintf("0x%016llx", (unsigned long long)t->tid));
	if (notice)
		set(row, "notice", json_incref(fields));
	json_decref(fields);
	return row;
}

static int
trap_list(struct rpc_call *call)
{
	const struct list_args *a = call->args;
	bool one = (a->present & LIST_PORT) != 0, more = true;
	uint32_t cursor = (uint32_t)a->cursor;
	struct sma_trap_info t[TRAPS_AT_ONCE];
	unsigned int i, n, got;
	json_t *rows;

	if (one && check_ib_port(call, a->port) != 0)
		return -EINVAL;
	rows = json_array();
	while (more && json_array_size(rows) < a->max) {
		n = (unsigned int)(a->max - json_array_size(rows));
		n = n < TRAPS_AT_ONCE ? n : TRAPS_AT_ONCE;
		got = engine_trap_list(call->e, &cursor, t, n);
		more = got == n;
		for (i = 0; i < got; i++)
			if (!one || t[i].port == a->port)
				json_array_append_new(rows, trap_row(&t[i], a->notice));
	}
	set_page(call, "traps", rows, more, cursor);
	return 0;
}

/* --- trap_send --- */

struct send_args {
	uint32_t present;
	uint32_t port;
	uint16_t number;
	struct table_bytes notice;
};
#define SEND_NUMBER 0x1

static const struct table_row send_params[] = {
	ROW(struct send_args, port, TABLE_UINT, .flags = TABLE_DEFAULT, .max = LINK_PORTS_MAX - 1,
		.help = "port that sends it"),
	ROW(struct send_args, number, TABLE_UINT, .bit = SEND_NUMBER,
		.help = "129 local link integrity, 130 buffer overrun, 131 flow control watchdog, 144 capability or local change, 145 system image GUID changed: details come from the port"),
	ROW(struct send_args, notice, TABLE_BYTES, .max = SMA_DATA_LEN,
		.help = "any notice, what is missing being 0; its IssuerLID and toggle bit are put in"),
	ROW_END,
};

static bool
by_hand(uint16_t number)
{
	return (number >= 129 && number <= 131) || number == 144 || number == 145;
}

static int
trap_send(struct rpc_call *call)
{
	const struct send_args *a = call->args;
	bool numbered = (a->present & SEND_NUMBER) != 0;
	uint8_t notice[SMA_DATA_LEN] = { 0 };
	uint32_t id;
	int rc;

	if (numbered == (a->notice.data != NULL))
		return error_set(&call->err, EINVAL, "number, notice: got %s of them, allowed: one",
			numbered ? "both" : "none");
	if (numbered && !by_hand(a->number))
		return error_set(&call->err, EINVAL,
			"number: got %u, allowed: 129, 130, 131, 144, 145 (others as notice)", a->number);
	rc = check_ib_port(call, a->port);
	if (rc != 0)
		return rc;
	if (!numbered)
		memcpy(notice, a->notice.data, a->notice.len);
	rc = engine_trap_send(call->e, a->port, a->number, numbered ? NULL : notice, &id,
		&call->err);
	if (rc == 0)
		set_int(call->result, "trap", id);
	return rc;
}

/* --- trap_repress --- */

static const struct table_row repress_params[] = {
	{ .name = "trap", .type = TABLE_UINT, .flags = TABLE_REQUIRED,
		.offset = offsetof(struct number_args, number), .size = sizeof(uint32_t),
		.help = "number of the trap (trap_list)" },
	ROW_END,
};

static int
trap_repress(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_trap_repress(call->e, a->number, &call->err);
}

const struct rpc_method methods_trap[] = {
	{ "trap_list", trap_list, list_params, sizeof(struct list_args),
		"Traps of native InfiniBand ports: sent to the master SM again and again until it represses them.",
		"traps: list of trap (its number here), port, number (129, 144, 256, ...), type (urgent, security, ...), state (HELD: the port is not Active or knows no SM; SENT: is repeated; REPRESSED; GIVEN_UP), sent (times), raised (times its cause came up), age_ms, tid, with notice: notice (object of its components)" PAGE_RESULT,
		"polca-ctl trap list" },
	{ "trap_send", trap_send, send_params, sizeof(struct send_args),
		"Raise a trap by hand.", "trap: its number, for trap_repress",
		"polca-ctl trap send --port 0 --number 144" },
	{ "trap_repress", trap_repress, repress_params, sizeof(struct number_args),
		"Stop repeating a trap, as the SM's TrapRepress does.", "",
		"polca-ctl trap repress 3" },
	{ NULL },
};
