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

#define TRAPS_AT_ONCE 32 /* asked of the worker */

struct trap_list_args {
	struct page_args page;
	uint32_t port; /* or ALL_PORTS */
	bool notice;

	/* traps that the worker has told, and are not in the reply yet */
	struct sma_trap_info got[TRAPS_AT_ONCE];
	unsigned int num;
	unsigned int used;
};
#define ALL_PORTS UINT32_MAX

static const struct table_row trap_list_params[] = {
	ROW(struct trap_list_args, port, TABLE_UINT, "of this port only", .max = LINK_PORTS_MAX - 1,
		.def = ALL_PORTS, .def_text = "all"),
	ROW(struct trap_list_args, notice, TABLE_BOOL, "each one's notice too, by its components"),
	ROW_INCLUDE(struct trap_list_args, page, params_page),
	ROW_END,
};

struct trap_row {
	struct sma_trap_info info;
	const char *type;
	const char *state;
	uint64_t age_ms;
	json_t *notice;
};

#define TRAP(field, t, ...) ROW_NAMED(struct trap_row, #field, info.field, t, __VA_ARGS__)

static const struct table_row trap_rows[] = {
	ROW_NAMED(struct trap_row, "trap", info.id, TABLE_UINT, "its number here"),
	TRAP(port, TABLE_UINT),
	TRAP(number, TABLE_UINT, "129, 144, 256, ..."),
	ROW(struct trap_row, type, TABLE_STRING, "urgent, security, ..."),
	ROW(struct trap_row, state, TABLE_STRING,
		"HELD: the port is not Active or knows no SM; SENT: is repeated; REPRESSED; GIVEN_UP"),
	TRAP(sent, TABLE_UINT, "times"),
	TRAP(raised, TABLE_UINT, "times its cause came up"),
	ROW(struct trap_row, age_ms, TABLE_UINT),
	TRAP(tid, TABLE_UINT, .digits = 16),
	ROW(struct trap_row, notice, TABLE_MAP, "with notice: object of its components",
		.flags = TABLE_OPTIONAL | TABLE_SECRET),
	ROW_END,
};

static const struct table_row trap_list_results[] = {
	PAGE_ROWS("traps", struct trap_row, trap_rows),
	ROW_END,
};

static int
fill_trap(struct rpc_call *call, struct trap_row *row)
{
	const struct trap_list_args *a = call->args;
	json_t *fields =
		arena_json(&call->arena, smp_fields(smp_attribute(SMA_NOTICE), row->info.notice));

	if (fields == NULL)
		return -ENOMEM;
	row->type = json_string_value(json_object_get(fields, "type"));
	row->state = sma_trap_state_name(row->info.state);
	row->age_ms = row->info.age / 1000;
	row->notice = a->notice ? fields : NULL;
	return 1;
}

/* Ask for no more traps than the page has room for: its cursor is behind all of them. */
static bool
ask_for_traps(struct rpc_call *call, struct trap_list_args *a, uint64_t *cursor)
{
	const struct page_reply *reply = call->reply;
	size_t room = a->page.max - (reply->rows.num - 1);
	uint32_t at = (uint32_t)*cursor;

	a->num = engine_trap_list(call->e, &at, a->got,
		room < TRAPS_AT_ONCE ? (unsigned int)room : TRAPS_AT_ONCE);
	a->used = 0;
	*cursor = at;
	return a->num > 0;
}

static int
next_trap(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct trap_list_args *a = call->args;
	struct trap_row *row = item;

	if (a->port != ALL_PORTS && ctl_check_ib_port(call, a->port) != 0)
		return -EINVAL;
	do {
		if (a->used == a->num && !ask_for_traps(call, a, cursor))
			return 0;
		row->info = a->got[a->used++];
	} while (a->port != ALL_PORTS && row->info.port != a->port);
	return fill_trap(call, row);
}

/* --- trap_send --- */

struct trap_send_args {
	uint32_t present;
	uint32_t port;
	uint16_t number;
	struct table_bytes notice;
};
#define SEND_NUMBER 0x1

static const struct table_row trap_send_params[] = {
	ROW(struct trap_send_args, port, TABLE_UINT, "port that sends it",
		.max = LINK_PORTS_MAX - 1),
	ROW(struct trap_send_args, number, TABLE_UINT,
		"129 local link integrity, 130 buffer overrun, 131 flow control watchdog, 144 capability or local change, 145 system image GUID changed: details come from the port",
		.bit = SEND_NUMBER),
	ROW(struct trap_send_args, notice, TABLE_BYTES,
		"any notice, what is missing being 0; its IssuerLID and toggle bit are put in",
		.max = SMA_DATA_LEN),
	ROW_END,
};

static bool
raised_by_hand(uint16_t number)
{
	return (number >= 129 && number <= 131) || number == 144 || number == 145;
}

static const struct table_row trap_send_results[] = {
	NUMBER_ROW("trap", "its number, for trap_repress"),
	ROW_END,
};

static int
trap_send(struct rpc_call *call)
{
	const struct trap_send_args *a = call->args;
	bool numbered = (a->present & SEND_NUMBER) != 0;
	uint8_t notice[SMA_DATA_LEN] = { 0 };
	struct number_args *reply = call->reply;
	int rc;

	if (numbered == (a->notice.data != NULL))
		return error_set(&call->err, EINVAL, "number, notice: got %s of them, allowed: one",
			numbered ? "both" : "none");
	if (numbered && !raised_by_hand(a->number))
		return error_set(&call->err, EINVAL,
			"number: got %u, allowed: 129, 130, 131, 144, 145 (others as notice)",
			a->number);
	rc = ctl_check_ib_port(call, a->port);
	if (rc != 0)
		return rc;
	if (!numbered)
		memcpy(notice, a->notice.data, a->notice.len);
	return engine_trap_send(call->e, a->port, a->number, numbered ? NULL : notice,
		&reply->number, &call->err);
}

/* --- trap_repress --- */

static const struct table_row trap_repress_params[] = {
	NUMBER_ROW("trap", "number of the trap (trap_list)", .flags = TABLE_REQUIRED),
	ROW_END,
};

const struct rpc_method methods_trap[] = {
	{ "trap_list", page_list, trap_list_params, sizeof(struct trap_list_args),
		"Traps of native InfiniBand ports: sent to the master SM again and again until it represses them.",
		"polca-ctl trap list", PAGES(trap_list_results, next_trap) },
	{ "trap_send", trap_send, trap_send_params, sizeof(struct trap_send_args),
		"Raise a trap by hand.", "polca-ctl trap send --port 0 --number 144",
		RESULTS(trap_send_results, struct number_args) },
	{ "trap_repress", number_method, trap_repress_params, sizeof(struct number_args),
		"Stop repeating a trap, as the SM's TrapRepress does.", "polca-ctl trap repress 3",
		.verb = engine_trap_repress },
	{ NULL },
};
