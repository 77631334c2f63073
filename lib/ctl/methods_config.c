/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The configuration file against what is in effect: the program that reads the file compares. */

#include <errno.h>

#include "ctl/ctl.h"
#include "ctl/methods.h"

struct change_row {
	const char *path, *was, *now;
	bool restart;
};

struct changes_reply {
	struct table_list changes;
};

#define CHANGE(field, t, text) ROW(struct change_row, field, t, text)

static const struct table_row change_rows[] = {
	CHANGE(path, TABLE_STRING,
		"of the value in the file; log[COMPONENT].level: log_level_set has changed it, and a reload sets it again"),
	CHANGE(was, TABLE_STRING,
		"in effect, as JSON; none: its default; ended: a service of the file that no longer listens, and that a reload starts again"),
	CHANGE(now, TABLE_STRING, "in the file"),
	CHANGE(restart, TABLE_BOOL, "it takes effect with a restart only"),
	ROW_END,
};

static const struct table_row changes_results[] = {
	ROW_LIST(struct changes_reply, changes, struct change_row, change_rows),
	ROW_END,
};

static void
add_change(void *arg, const struct config_change *c)
{
	struct rpc_call *call = arg;
	struct changes_reply *reply = call->reply;
	struct change_row *row = ADD(call, &reply->changes, struct change_row);

	if (row == NULL)
		return;
	row->path = arena_printf(&call->arena, "%s", c->path);
	row->was = arena_printf(&call->arena, "%s", c->was);
	row->now = arena_printf(&call->arena, "%s", c->now);
	row->restart = c->restart;
}

static int
compare_config(struct rpc_call *call, bool apply)
{
	const struct rpc_state *s = call->state;

	if (s->reload == NULL)
		return error_set(&call->err, EOPNOTSUPP, "this program reads no configuration");
	return s->reload(s->reload_arg, apply, add_change, call, &call->err);
}

static int
diff_config(struct rpc_call *call)
{
	return compare_config(call, false);
}

static int
reload_config(struct rpc_call *call)
{
	return compare_config(call, true);
}

const struct rpc_method methods_config[] = {
	{ "config_diff", diff_config, params_none, 0,
		"Compare the configuration file with what is in effect: what a reload would change, and what needs a restart.",
		"polca-ctl config diff", RESULTS(changes_results, struct changes_reply),
		.reads = true },
	{ "config_reload", reload_config, params_none, 0,
		"Read the configuration file again, and take over what can change, all of it or nothing. The result also names what needs a restart.",
		"polca-ctl config reload", RESULTS(changes_results, struct changes_reply) },
	{ NULL },
};
