/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests to endports run in parallel. A connection to the server carries one request at a time,
 * so watch opens several ("lanes"); an endport that is down delays only its own lane by a timeout.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "dest.h"
#include "methods.h"
#include "ping.h"
#include "stopped.h"
#include "watch.h"

#define LANES        32 /* half of the requests that the server accepts at a time */
#define ENDPORTS_MAX 10000
#define LINE_LEN     256
#define REPLY_MS     1000 /* limit for the rest of a reply whose beginning has arrived */

struct lane {
	struct connection *c;
	struct watch_endport *e; /* the endport being asked; NULL: idle */
	uint64_t deadline; /* for the server's reply */
};

struct watch {
	const struct options *o;
	json_t *params; /* of live_ping, without the endport */
	struct watch_endport *endports;
	size_t num, next; /* next: index where the search for the next request begins */
	struct lane lane[LANES];
	unsigned int num_lanes, max_lanes;
	double interval_ms, timeout_ms, deadline_ms, report_ms; /* 0: none */
	unsigned int misses;
	uint64_t count; /* 0: no end */
	uint64_t started, reported;
};

/* --- endports --- */

static int
add_endport(struct watch *w, const char *name)
{
	struct watch_endport *more;

	if (w->num == ENDPORTS_MAX)
		return usage_error("live watch: %s is one endport too many, allowed: 10000", name);
	more = realloc(w->endports, (w->num + 1) * sizeof(*more));
	if (more == NULL)
		return usage_error("live watch: no memory for endport %s", name);
	w->endports = more;
	if (!watch_endport_init(&more[w->num++], name, w->started))
		return usage_error("live watch: no memory for endport %s", name);
	if (!dest_parse(name, more[w->num - 1].params, "dgid", "dlid"))
		return usage_error("live watch: endport: got \"%s\", allowed: " DEST_ALLOWED, name);
	return 0;
}

/* Read a line's first word; the rest of the line, and what follows a #, is a comment. */
static int
add_line(struct watch *w, char *line)
{
	char *name = line + strspn(line, " \t");

	name[strcspn(name, " \t\r\n#")] = '\0';
	return name[0] != '\0' ? add_endport(w, name) : 0;
}

static int
add_file(struct watch *w, const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	char line[LINE_LEN];
	int rc = 0;

	if (f == NULL) {
		fprintf(stderr, "polca-ctl: live watch: --file: %s: %s\n", path, strerror(errno));
		return EXIT_USAGE;
	}
	while (rc == 0 && fgets(line, sizeof(line), f) != NULL)
		rc = add_line(w, line);
	if (f != stdin)
		fclose(f);
	return rc;
}

static int
add_endports(struct watch *w, json_t *params)
{
	const char *file = method_text(params, "file");
	json_t *name;
	size_t i;
	int rc = 0;

	json_array_foreach(json_object_get(params, "endport"), i, name) {
		if (rc == 0)
			rc = add_endport(w, json_string_value(name));
	}
	if (rc == 0 && file[0] != '\0')
		rc = add_file(w, file);
	if (rc == 0 && w->num == 0)
		rc = usage_error("live watch: %s is missing: name endports, or a --file of them",
			"endport");
	return rc;
}

/* --- the command line --- */

static int
watch_take_seconds(json_t *params, const char *name, double min, double max, double *ms)
{
	const char *text = method_text(params, name);

	if (text[0] == '\0' || ping_seconds(text, min, max, ms))
		return 0;
	fprintf(stderr,
		"polca-ctl: live watch: --%s: got \"%s\", allowed: %.10g to %.10g seconds\n", name,
		text, min, max);
	return EXIT_USAGE;
}

static int
watch_take_number(json_t *params, const char *name, uint64_t *value)
{
	const json_t *v = json_object_get(params, name);

	if (v == NULL)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 1)
		return usage_error("live watch: --%s: allowed: 1 and more", name);
	*value = (uint64_t)json_integer_value(v);
	return 0;
}

static int
take_times(struct watch *w, json_t *params)
{
	int rc;

	w->interval_ms = w->timeout_ms = 1000;
	rc = watch_take_seconds(params, "interval", 0.001, 3600, &w->interval_ms);
	if (rc == 0)
		rc = watch_take_seconds(params, "timeout", 0.001, 60, &w->timeout_ms);
	if (rc == 0)
		rc = watch_take_seconds(params, "deadline", 0.001, 1e6, &w->deadline_ms);
	if (rc == 0)
		rc = watch_take_seconds(params, "report", 0.001, 1e6, &w->report_ms);
	return rc;
}

static int
watch_take_options(struct watch *w, json_t *params)
{
	static const char *const ours[] = { "endport", "file", "interval", "timeout", "deadline",
		"report", "misses", "count" };
	uint64_t misses = 3;
	size_t i;
	int rc = add_endports(w, params);

	if (rc == 0)
		rc = take_times(w, params);
	if (rc == 0)
		rc = watch_take_number(params, "misses", &misses);
	if (rc == 0)
		rc = watch_take_number(params, "count", &w->count);
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		json_object_del(params, ours[i]);
	if (json_object_get(params, "mode") == NULL)
		json_object_set_new(params, "mode", json_string("timestamp"));
	json_object_set_new(params, "identifier", json_integer(getpid() & 0xffff));
	json_object_set_new(params, "timeout_ms",
		json_integer(w->timeout_ms < 1 ? 1 : (json_int_t)w->timeout_ms));
	w->misses = misses > UINT32_MAX ? UINT32_MAX : (unsigned int)misses;
	w->params = params;
	return rc;
}

/* --- requests --- */

static bool
asked_enough(const struct watch *w, const struct watch_endport *e)
{
	return w->count != 0 && e->sent >= w->count;
}

/* The next endport whose request is due, or NULL. */
static struct watch_endport *
next_due(struct watch *w, uint64_t now)
{
	struct watch_endport *e;
	size_t i;

	for (i = 0; i < w->num; i++) {
		e = &w->endports[(w->next + i) % w->num];
		if (e->busy || e->due > now || asked_enough(w, e))
			continue;
		w->next = (w->next + i + 1) % w->num;
		return e;
	}
	return NULL;
}

static int
watch_request(struct watch *w, struct lane *lane, struct watch_endport *e, uint64_t now)
{
	json_object_update_missing(e->params, w->params);
	json_object_set_new(e->params, "sequence", json_integer((e->sent + 1) & 0xffff));
	if (connection_send(lane->c, "live_ping", e->params) != 0)
		return no_reply(errno);
	e->busy = true;
	e->due += (uint64_t)(w->interval_ms * 1000);
	if (e->due < now) /* skip requests that are late, rather than send two at once */
		e->due = now;
	lane->e = e;
	lane->deadline = now + (uint64_t)((w->timeout_ms + w->o->wait_ms) * 1000);
	return 0;
}

/* An idle lane, opened if needed; NULL: all are busy. */
static struct lane *
idle_lane(struct watch *w)
{
	unsigned int i;

	for (i = 0; i < w->num_lanes; i++)
		if (w->lane[i].e == NULL)
			return &w->lane[i];
	if (w->num_lanes == w->max_lanes)
		return NULL;
	w->lane[i].c = connection_open(w->o->socket);
	if (w->lane[i].c == NULL) {
		/* the server has too many clients: use the lanes already open */
		w->max_lanes = w->num_lanes;
		return NULL;
	}
	connection_interruptible(w->lane[i].c, &stopped);
	w->num_lanes++;
	return &w->lane[i];
}

static int
ask_all_due(struct watch *w, uint64_t now)
{
	struct watch_endport *e;
	struct lane *lane;
	size_t next;
	int rc = 0;

	while (rc == 0) {
		next = w->next;
		e = next_due(w, now);
		lane = e != NULL ? idle_lane(w) : NULL;
		if (lane == NULL) {
			w->next = next;
			break;
		}
		rc = watch_request(w, lane, e, now);
	}
	return rc;
}

/* --- answers --- */

static void
take_row(struct watch *w, struct watch_endport *e, const json_t *row)
{
	struct watch_change change;

	if (row != NULL && watch_reply(e, row, w->misses, clock_us(), &change))
		watch_print_change(w->o, e, &change, row);
}

/* Handle an error of the server. @return 0, or the exit status if retrying is useless */
static int
take_error(struct watch *w, struct watch_endport *e, json_t *error)
{
	const char *why = method_text(json_object_get(error, "data"), "errno");
	json_t *row;

	/* too many requests are under way at the server: retry later */
	if (strcmp(why, "ENOSPC") == 0)
		return 0;
	if (strcmp(why, "EHOSTUNREACH") != 0 && strcmp(why, "ENETUNREACH") != 0)
		return server_error(w->o, error, "live watch");
	row = json_pack("{s:s, s:s}", "error", why, "message", method_text(error, "message"));
	take_row(w, e, row);
	json_decref(row);
	return 0;
}

static int
watch_take_reply(struct watch *w, struct lane *lane)
{
	struct watch_endport *e = lane->e;
	json_t *result, *error;
	int rc = connection_receive(lane->c, REPLY_MS, &result, &error);

	if (rc < 0)
		return errno == EINTR ? 0 : no_reply(errno);
	lane->e = NULL;
	e->busy = false;
	if (rc > 0)
		rc = take_error(w, e, error);
	else
		take_row(w, e, json_array_get(json_object_get(result, "replies"), 0));
	json_decref(result);
	json_decref(error);
	return rc;
}

/* --- time --- */

static uint64_t
deadline(const struct watch *w)
{
	return w->deadline_ms == 0 ? UINT64_MAX : w->started + (uint64_t)(w->deadline_ms * 1000);
}

static uint64_t
report_due(const struct watch *w)
{
	return w->report_ms == 0 ? UINT64_MAX : w->reported + (uint64_t)(w->report_ms * 1000);
}

static uint64_t
earlier_time(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When the next action is due if no answer arrives before. */
static uint64_t
next_time(const struct watch *w)
{
	uint64_t at = earlier_time(deadline(w), report_due(w));
	bool idle = w->num_lanes < w->max_lanes;
	unsigned int i;
	size_t k;

	for (i = 0; i < w->num_lanes; i++) {
		if (w->lane[i].e != NULL)
			at = earlier_time(at, w->lane[i].deadline);
		else
			idle = true;
	}
	for (k = 0; idle && k < w->num; k++)
		if (!w->endports[k].busy && !asked_enough(w, &w->endports[k]))
			at = earlier_time(at, w->endports[k].due);
	return at;
}

/* Wait for an answer, a signal, or the next due action. */
static int
wait_and_take(struct watch *w)
{
	struct pollfd pfd[LANES];
	uint64_t now = clock_us(), at = next_time(w);
	unsigned int i;
	int rc = 0, ms = at <= now ? 0 : at - now > 60000000 ? 60000 : (int)((at - now) / 1000) + 1;

	for (i = 0; i < w->num_lanes; i++)
		pfd[i] = (struct pollfd){ .fd = connection_fd(w->lane[i].c), .events = POLLIN };
	if (poll(pfd, w->num_lanes, ms) < 0)
		return errno == EINTR ? 0 : no_reply(errno);
	now = clock_us();
	for (i = 0; rc == 0 && i < w->num_lanes; i++) {
		if (pfd[i].revents != 0 && w->lane[i].e == NULL)
			rc = no_reply(ECONNRESET); /* an idle lane: the server closed it */
		else if (pfd[i].revents != 0)
			rc = watch_take_reply(w, &w->lane[i]);
		else if (w->lane[i].e != NULL && now >= w->lane[i].deadline)
			rc = no_reply(ETIMEDOUT);
	}
	return rc;
}

static void
watch_print_states(struct watch *w, uint64_t now)
{
	json_t *rows = json_array();
	size_t i;

	for (i = 0; i < w->num; i++)
		json_array_append_new(rows, watch_report(&w->endports[i], now));
	watch_print_report(w->o, rows);
	w->reported = now;
}

static bool
watch_goes_on(const struct watch *w)
{
	size_t i;

	if (stopped != 0 || clock_us() >= deadline(w))
		return false;
	for (i = 0; i < w->num; i++)
		if (!asked_enough(w, &w->endports[i]))
			return true;
	return false;
}

static bool
all_up(const struct watch *w)
{
	size_t i;

	for (i = 0; i < w->num; i++)
		if (w->endports[i].state != WATCH_UP)
			return false;
	return true;
}

static int
watch_loop(struct watch *w)
{
	uint64_t now;
	int rc = 0;

	stopped_catch();
	while (rc == 0 && watch_goes_on(w)) {
		now = clock_us();
		if (now >= report_due(w))
			watch_print_states(w, now);
		rc = ask_all_due(w, now);
		if (rc == 0)
			rc = wait_and_take(w);
	}
	if (rc != 0)
		return rc;
	watch_print_states(w, clock_us());
	return all_up(w) ? EXIT_DONE : EXIT_SERVER;
}

int
watch_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	struct watch w = {
		.o = o,
		.lane = { { .c = c } },
		.num_lanes = 1,
		.max_lanes = LANES,
		.started = clock_us(),
	};
	unsigned int i;
	size_t k;
	int rc;

	(void)command;
	w.reported = w.started;
	connection_interruptible(c, &stopped);
	rc = watch_take_options(&w, params);
	if (rc == 0)
		rc = watch_loop(&w);
	for (i = 1; i < w.num_lanes; i++)
		connection_close(w.lane[i].c);
	for (k = 0; k < w.num; k++)
		watch_endport_fini(&w.endports[k]);
	free(w.endports);
	return rc;
}
