/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reload. What can be refused comes first: log components and addresses are only looked at,
 * services are undone if one of them fails. Then comes what cannot fail.
 */

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log_level.h"
#include "config_keys.h"
#include "config_reload.h"
#include "engine/verbs_cm.h"
#include "log.h"

RTE_LOG_REGISTER(reload_logtype, polca.app, INFO);

/* --- log levels --- */

static const struct table_word level_words[] = { LOG_LEVEL_WORDS, { NULL, 0 } };

static struct {
	char component[128];
	uint32_t level;
} * noted;
static unsigned int num_noted;

static bool
note_level(void *arg, const char *component, const char *level)
{
	const struct table_word *word = table_find_word(level_words, level, strlen(level));
	void *more = realloc(noted, (num_noted + 1) * sizeof(*noted));

	(void)arg;
	if (more == NULL)
		return false;
	noted = more;
	snprintf(noted[num_noted].component, sizeof(noted[0].component), "%s", component);
	if (word != NULL)
		noted[num_noted++].level = word->value;
	return true;
}

int
config_note_log_levels(void)
{
	num_noted = 0;
	log_components(note_level, NULL);
	return num_noted > 0 ? 0 : -ENOMEM;
}

static int
reload_check_log(const struct config *c, struct error *err)
{
	struct error why = { "" };
	unsigned int i;

	for (i = 0; i < c->num_log; i++)
		if (log_component_check(c->log[i].component, &why) != 0)
			return error_set(err, EINVAL, "%.100s:%u: log[%u].component: %s", c->file,
				c->log[i].line, i, why.text);
	return 0;
}

static void
apply_log(const struct config *c)
{
	struct error ignored;
	unsigned int i;

	for (i = 0; i < num_noted; i++)
		rte_log_set_level_pattern(noted[i].component, noted[i].level);
	config_apply_log(c, &ignored); /* reload_check_log() has found all components */
}

/* The level that a component has under a configuration. */
static uint32_t
level_under(const struct config *c, unsigned int component)
{
	uint32_t level = noted[component].level;
	unsigned int i;

	for (i = 0; i < c->num_log; i++)
		if (fnmatch(c->log[i].component, noted[component].component, 0) == 0)
			level = c->log[i].level;
	return level;
}

struct level_resets {
	const struct config *was, *now;
	config_change_fn fn;
	void *arg;
};

static const char *
level_text(uint32_t level, char buf[32])
{
	const struct table_word *w = level_words;

	while (w->name != NULL && w->value != level)
		w++;
	snprintf(buf, 32, "\"%s\"", w->name != NULL ? w->name : "none");
	return buf;
}

/* Report a level that log_level_set() has changed since, and that the reload sets again. */
static bool
report_level(void *arg, const char *component, const char *level)
{
	const struct table_word *word = table_find_word(level_words, level, strlen(level));
	const struct level_resets *r = arg;
	char path[160], old[32], new[32];
	struct config_change c = { .path = path, .was = old, .now = new };
	unsigned int i;

	for (i = 0; i < num_noted && strcmp(noted[i].component, component) != 0; i++)
		;
	if (i == num_noted || word == NULL || word->value == level_under(r->was, i) ||
		word->value == level_under(r->now, i))
		return true;
	snprintf(path, sizeof(path), "log[%s].level", component);
	snprintf(old, sizeof(old), "\"%s\"", level);
	level_text(level_under(r->now, i), new);
	r->fn(r->arg, &c);
	return true;
}

/* --- services --- */

static bool
has_service(const struct config *c, const struct config_service *s)
{
	json_t *wanted = table_encode(config_service_keys, s), *have;
	bool found = false;
	unsigned int i;

	for (i = 0; i < c->num_services && !found; i++) {
		have = table_encode(config_service_keys, &c->service[i]);
		found = json_equal(have, wanted); /* false without memory */
		json_decref(have);
	}
	json_decref(wanted);
	return found;
}

/* True if the two listen in the same place: a service without an ID is found by its TCP port. */
static bool
same_place(const struct svc_config *a, const struct svc_config *b)
{
	if (strcmp(a->kind, b->kind) != 0 || a->service_id != b->service_id)
		return false;
	return a->service_id != 0 ||
		(a->tcp_port == b->tcp_port && strcmp(a->tcp_address, b->tcp_address) == 0);
}

/* The number of the service that listens as configured; 0: somebody has ended it. */
static uint32_t
service_number(struct engine *e, const struct svc_config *s)
{
	struct engine_service_info info;
	uint64_t cursor = 0;

	while (engine_service_next(e, &cursor, &info))
		if (info.listening && same_place(&info.config, s))
			return info.id;
	return 0;
}

/* True if both configurations have the service, but cm_unlisten has ended it since. */
static bool
service_ended(struct engine *e, const struct config *was, const struct config *now, unsigned int i)
{
	return has_service(was, &now->service[i]) &&
		service_number(e, &now->engine.service[i]) == 0;
}

static void
report_ended_services(struct engine *e, const struct config *was, const struct config *now,
	config_change_fn fn, void *arg)
{
	struct config_change c = { .was = "ended" };
	unsigned int i;
	char path[32];
	json_t *s;
	char *text;

	for (i = 0; i < now->num_services; i++) {
		if (!service_ended(e, was, now, i))
			continue;
		s = table_encode(config_service_keys, &now->service[i]);
		text = s != NULL ? json_dumps(s, JSON_COMPACT) : NULL;
		snprintf(path, sizeof(path), "services[%u]", i);
		c.path = path;
		c.now = text != NULL ? text : "it listens";
		fn(arg, &c);
		free(text);
		json_decref(s);
	}
}

/* Stop what c has and other has not. Its connections stay. @param stopped  [num_services] */
static void
stop_services(struct engine *e, const struct config *c, const struct config *other, bool *stopped)
{
	struct error ignored;
	unsigned int i;
	uint32_t id;

	for (i = 0; i < c->num_services; i++) {
		id = has_service(other, &c->service[i]) ? 0
							: service_number(e, &c->engine.service[i]);
		stopped[i] = id != 0;
		if (stopped[i])
			engine_cm_unlisten(e, id, false, &ignored);
	}
}

/* Undo stop_services(). */
static void
resume_services(struct engine *e, const struct config *c, const bool *stopped)
{
	struct error ignored;
	unsigned int i;
	uint32_t id;

	for (i = 0; i < c->num_services; i++)
		if (stopped[i])
			engine_cm_listen(e, &c->engine.service[i], &id, &ignored);
}

/*
 * Start what now has and was has not, and what has ended. @param ids  [num_services], 0: nothing
 * was started
 */
static int
start_services(struct engine *e, const struct config *was, const struct config *now, uint32_t *ids,
	struct error *err)
{
	struct error why = { "" };
	unsigned int i;
	int ret;

	for (i = 0; i < now->num_services; i++) {
		if (has_service(was, &now->service[i]) && !service_ended(e, was, now, i))
			continue;
		ret = engine_cm_listen(e, &now->engine.service[i], &ids[i], &why);
		if (ret != 0)
			return error_set(err, -ret, "services[%u]: %.230s", i, why.text);
	}
	return 0;
}

static int
apply_services(struct engine *e, const struct config *was, const struct config *now,
	struct error *err)
{
	uint32_t ids[ENGINE_SERVICES_MAX] = { 0 };
	bool stopped[ENGINE_SERVICES_MAX];
	struct error ignored;
	unsigned int i;
	int ret;

	stop_services(e, was, now, stopped);
	ret = start_services(e, was, now, ids, err);
	if (ret == 0)
		return 0;
	for (i = 0; i < now->num_services; i++)
		if (ids[i] != 0)
			engine_cm_unlisten(e, ids[i], false, &ignored);
	resume_services(e, was, stopped);
	return ret;
}

/* --- addresses --- */

static int
reload_check_addresses(struct engine *e, const struct config *was, const struct config *now,
	struct error *err)
{
	const struct link_port_config *p;
	unsigned int i, j;
	int ret = 0;

	for (i = 0; i < was->num_ports; i++) {
		p = &now->port[i].link;
		if (!config_adds_addresses(was, now, i))
			continue;
		for (j = was->port[i].link.num_addr; j < p->num_addr && ret == 0; j++)
			ret = engine_check_address(e, i, &p->addr[j], err);
	}
	return ret;
}

static void
add_addresses(struct engine *e, struct config *c, const struct config *now)
{
	const struct link_port_config *p;
	struct link_port_config *have;
	unsigned int i;

	for (i = 0; i < c->num_ports; i++) {
		if (!config_adds_addresses(c, now, i))
			continue;
		p = &now->port[i].link;
		have = &c->port[i].link;
		for (; have->num_addr < p->num_addr; have->num_addr++) {
			have->addr[have->num_addr] = p->addr[have->num_addr];
			engine_add_address(e, i, &p->addr[have->num_addr]);
		}
	}
}

/* --- all of it --- */

/* Whatever can be refused without a try: for config diff as for a reload. */
static int
reload_check(struct config_reload *r, const struct config *next, struct error *err)
{
	int ret = reload_check_log(next, err);

	return ret == 0 ? reload_check_addresses(r->e, r->running, next, err) : ret;
}

static int
apply_all(struct config_reload *r, const struct config *next, struct error *err)
{
	struct config *c = r->running;
	int ret = apply_services(r->e, c, next, err);

	if (ret != 0)
		return ret;
	add_addresses(r->e, c, next);
	engine_reload_limits(r->e, &next->engine.limits);
	rc_limits_reload(&c->engine.limits, &next->engine.limits);
	apply_log(next);
	engine_set_stall_ms(r->e, next->engine.stall_ms);
	c->engine.stall_ms = next->engine.stall_ms;
	memcpy(c->service, next->service, sizeof(c->service));
	memcpy(c->engine.service, next->engine.service, sizeof(c->engine.service));
	c->num_services = c->engine.num_services = next->num_services;
	memcpy(c->log, next->log, sizeof(c->log));
	c->num_log = next->num_log;
	return 0;
}

/* All errors as one, as far as struct error holds them. */
static int
reload_errors(const struct config_errors *errs, struct error *err)
{
	int eno = errs->unreadable != 0 ? errs->unreadable : EINVAL;
	char text[sizeof(err->text)];

	config_errors_join(errs, text, sizeof(text));
	return error_set(err, eno, "%s", text);
}

/* Collects the lines to log, and passes the changes on. */
struct reload_report {
	FILE *lines, *restarts;
	unsigned int num; /* changes so far */
	config_change_fn fn; /* may be NULL */
	void *arg;
};

static void
report_change(void *arg, const struct config_change *c)
{
	struct reload_report *r = arg;
	FILE *to = c->restart ? r->restarts : r->lines;

	r->num++;
	if (to != NULL)
		fprintf(to, "polca: reload: %s: %s -> %s%s\n", c->path, c->was, c->now,
			c->restart ? ": needs a restart" : "");
	if (r->fn != NULL)
		r->fn(r->arg, c);
}

static int
reload_from_file(struct config_reload *r, bool apply, config_change_fn fn, void *arg,
	struct error *err)
{
	static struct config_errors errs;
	static struct config next;
	struct level_resets resets = { r->running, &next, fn, arg };
	char line[512];
	int ret;

	if (r->file == NULL)
		return error_set(err, ENOENT, "polca runs without a configuration file (-c)");
	if (config_load(&next, r->file, NULL, &errs) != 0)
		return reload_errors(&errs, err);
	if (apply && config_exposes_keys(&next, r->file, line, sizeof(line)))
		log_say(RTE_LOG_WARNING, line);
	if (r->own_socket || next.socket[0] == '\0')
		strcpy(next.socket, r->running->socket);
	ret = reload_check(r, &next, err);
	if (ret != 0)
		return ret;
	ret = config_diff(r->running, &next, fn, arg);
	if (ret != 0)
		return error_set(err, -ret, "no memory for the configuration's changes");
	report_ended_services(r->e, r->running, &next, fn, arg);
	log_components(report_level, &resets);
	return apply ? apply_all(r, &next, err) : 0;
}

int
config_reload(void *reload, bool apply, config_change_fn fn, void *arg, struct error *err)
{
	char *text = NULL, *restarts = NULL, line[sizeof(struct error) + 64];
	struct reload_report report = { .fn = fn, .arg = arg };
	const struct config_reload *r = reload;
	size_t size, restarts_size;
	int ret;

	if (!apply)
		return reload_from_file(reload, false, fn, arg, err);
	rte_log(RTE_LOG_DEBUG, (uint32_t)reload_logtype, "polca: reload: reading %s\n",
		r->file != NULL ? r->file : "no file");
	report.lines = open_memstream(&text, &size);
	report.restarts = open_memstream(&restarts, &restarts_size);
	ret = reload_from_file(reload, true, report_change, &report, err);
	if (report.lines != NULL)
		fclose(report.lines);
	if (report.restarts != NULL)
		fclose(report.restarts);
	if (ret != 0) {
		snprintf(line, sizeof(line), "polca: reload: nothing has changed: %s", err->text);
		log_say(RTE_LOG_ERR, line);
	} else {
		log_say(RTE_LOG_NOTICE, text != NULL ? text : "");
		log_say(RTE_LOG_WARNING, restarts != NULL ? restarts : "");
		log_say(RTE_LOG_NOTICE,
			report.num > 0 ? "polca: reload: done"
				       : "polca: reload: done, there was nothing to change");
	}
	free(text);
	free(restarts);
	return ret;
}
