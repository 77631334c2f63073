/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The differences of two configurations, by the rows of the table: their values as JSON, in the
 * places where they differ.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_reload.h"

struct differ {
	const struct config *was, *now;
	config_change_fn fn;
	void *arg;
};

#define NOT_SHOWN "(not shown)"

static void diff_hide_in(const struct table_row *rows, json_t *object);

/* Security: a port that is new has a key within, and the differences are for everybody. */
static void
diff_hide(const struct table_row *row, json_t *v)
{
	json_t *item;
	size_t i;

	if (row->fields == NULL)
		return;
	if (json_is_object(v))
		diff_hide_in(row->fields, v);
	json_array_foreach(v, i, item)
		diff_hide(row, item);
}

static void
diff_hide_in(const struct table_row *rows, json_t *object)
{
	json_t *v;

	for (; rows->name != NULL; rows++) {
		v = json_object_get(object, rows->name);
		if (rows->type == TABLE_INCLUDE)
			diff_hide_in(rows->fields, object);
		else if ((rows->flags & TABLE_SECRET) != 0 && v != NULL)
			json_object_set_new(object, rows->name, json_string(NOT_SHOWN));
		else if (v != NULL)
			diff_hide(rows, v);
	}
}

/* What is left out has its default: it is "none". @return text to free */
static char *
diff_text(const struct table_row *row, const json_t *v)
{
	json_t *shown;
	char *text;

	if (v == NULL)
		return strdup("none");
	if ((row->flags & TABLE_SECRET) != 0)
		return strdup(NOT_SHOWN);
	shown = json_deep_copy(v);
	diff_hide(row, shown);
	text = json_dumps(shown, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(shown);
	return text;
}

static void
diff_tell(const struct differ *d, const struct table_row *row, const char *path, const json_t *was,
	const json_t *now, bool reloadable)
{
	char *old = diff_text(row, was), *new = diff_text(row, now);
	struct config_change c = { path, old, new, !reloadable };

	if (old != NULL && new != NULL)
		d->fn(d->arg, &c);
	free(old);
	free(new);
}

bool
config_adds_addresses(const struct config *was, const struct config *now, unsigned int port)
{
	const struct link_port_config *a = &was->port[port].link, *b = &now->port[port].link;
	unsigned int i;

	if (port >= was->num_ports || port >= now->num_ports || strcmp(a->name, b->name) != 0 ||
		was->port[port].encapsulation != CONFIG_ROCE || a->rocev1 ||
		a->num_leader_addr > 0 || /* these are the last ones of a leader */
		b->num_addr <= a->num_addr)
		return false;
	for (i = 0; i < a->num_addr; i++)
		if (!gid_equal(&a->addr[i].gid, &b->addr[i].gid) ||
			!gid_equal(&a->addr[i].gateway, &b->addr[i].gateway) ||
			a->addr[i].prefix_len != b->addr[i].prefix_len)
			return false;
	return true;
}

static void diff_rows(const struct differ *d, const struct table_row *rows, const char *prefix,
	const json_t *was, const json_t *now, bool reloadable);

static void
diff_value(const struct differ *d, const struct table_row *row, const char *path, const json_t *was,
	const json_t *now, bool reloadable)
{
	bool objects = json_is_object(was) && json_is_object(now);

	if (was == now || json_equal(was, now)) /* NULL equals nothing */
		return;
	if (objects && row->fields != NULL)
		diff_rows(d, row->fields, path, was, now, reloadable);
	else
		diff_tell(d, row, path, was, now, reloadable);
}

static void
diff_list(const struct differ *d, const struct table_row *row, const char *path, const json_t *was,
	const json_t *now, bool reloadable)
{
	size_t i, n = json_array_size(was), wanted = json_array_size(now);
	unsigned int port;
	const json_t *a, *b;
	bool more = false;
	char item[192];

	if ((row->flags & TABLE_RELOAD_MORE) != 0 && sscanf(path, "ports[%u].", &port) == 1)
		more = config_adds_addresses(d->was, d->now, port);
	for (i = 0; i < n || i < wanted; i++) {
		a = json_array_get(was, i);
		b = json_array_get(now, i);
		snprintf(item, sizeof(item), "%s[%zu]", path, i);
		diff_value(d, row, item, a, b, reloadable || (more && a == NULL));
	}
}

static void
diff_rows(const struct differ *d, const struct table_row *rows, const char *prefix,
	const json_t *was, const json_t *now, bool reloadable)
{
	const struct table_row *row;
	const json_t *a, *b;
	char path[160];
	bool may;

	for (row = rows; row->name != NULL; row++) {
		a = json_object_get(was, row->name);
		b = json_object_get(now, row->name);
		may = reloadable || (row->flags & TABLE_RELOAD) != 0;
		snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "",
			row->name);
		if (row->type == TABLE_LIST)
			diff_list(d, row, path, a, b, may);
		else
			diff_value(d, row, path, a, b, may);
	}
}

int
config_diff(const struct config *was, const struct config *now, config_change_fn fn, void *arg)
{
	struct differ d = { was, now, fn, arg };
	json_t *a = table_encode(config_rows, was), *b = table_encode(config_rows, now);
	bool ok = a != NULL && b != NULL;

	if (ok)
		diff_rows(&d, config_rows, "", a, b, false);
	json_decref(a);
	json_decref(b);
	return ok ? 0 : -ENOMEM;
}
