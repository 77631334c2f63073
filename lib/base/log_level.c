/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log_level.h"

#define LIST_LEN 140

struct component {
	uint32_t type;
	char name[128];
	char level[32];
};

/* DPDK lists its components only as text: "id 32: polca.link, level is notice". */
static char *
component_list(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		return NULL;
	rte_log_dump(f);
	fclose(f);
	return text;
}

static bool
component_read(const char *line, struct component *c)
{
	return sscanf(line, "id %" SCNu32 ": %127[^,], level is %31s", &c->type, c->name,
		       c->level) == 3;
}

void
log_components(log_component_fn fn, void *arg)
{
	char *text = component_list(), *line, *rest;
	struct component c;

	if (text == NULL)
		return;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (component_read(line, &c) && !fn(arg, c.name, c.level))
			break;
	free(text);
}

void
log_component_name(uint32_t type, char *name, size_t size)
{
	char *text = component_list(), *line, *rest;
	struct component c;

	snprintf(name, size, "unknown");
	if (text == NULL)
		return;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (component_read(line, &c) && c.type == type)
			snprintf(name, size, "%s", c.name);
	free(text);
}

struct match {
	const char *pattern;
	bool found;
};

static bool
match_component(void *arg, const char *component, const char *level)
{
	struct match *m = arg;

	(void)level;
	m->found = fnmatch(m->pattern, component, 0) == 0;
	return !m->found;
}

struct name_list {
	const char *kind; /* "polca." */
	size_t kind_len;
	char text[LIST_LEN];
	size_t len;
	bool more;
};

static bool
list_component(void *arg, const char *component, const char *level)
{
	struct name_list *l = arg;

	(void)level;
	if (strncmp(component, l->kind, l->kind_len) != 0)
		return true;
	l->more = l->len + strlen(component) + sizeof(", , ...") > sizeof(l->text);
	if (l->more)
		return false;
	l->len += (size_t)snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s",
		l->len > 0 ? ", " : "", component);
	return true;
}

static int
refuse_component(const char *pattern, struct error *err)
{
	struct name_list l = { .kind = pattern, .kind_len = strcspn(pattern, ".") + 1 };

	if (l.kind_len <= strlen(pattern))
		log_components(list_component, &l);
	if (l.len == 0) {
		l = (struct name_list){ .kind = "polca.", .kind_len = sizeof("polca.") - 1 };
		log_components(list_component, &l);
	}
	return error_set(err, EINVAL, "got \"%.40s\", allowed %s%s (all: polca-ctl log level get)",
		pattern, l.text, l.more ? ", ..." : "");
}

int
log_component_check(const char *pattern, struct error *err)
{
	struct match m = { .pattern = pattern };

	log_components(match_component, &m);
	return m.found ? 0 : refuse_component(pattern, err);
}

int
log_level_set(const char *pattern, uint32_t level, struct error *err)
{
	if (log_component_check(pattern, err) != 0)
		return -EINVAL;
	if (rte_log_set_level_pattern(pattern, level) < 0)
		return error_set(err, EINVAL, "got \"%.40s\", which is not a valid pattern",
			pattern);
	return 0;
}
