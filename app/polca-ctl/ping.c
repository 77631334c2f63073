/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "dest.h"
#include "methods.h"
#include "ping.h"
#include "stopped.h"
#include "table.h"

#define FLOOD_BATCH 100 /* most requests per call, while all are answered */

struct ping {
	const struct options *o;
	struct connection *c;
	const char *dest;
	json_t *params; /* of live_ping */
	uint64_t count; /* 0: no end */
	double interval_ms;
	double deadline_ms; /* 0: none */
	double timeout_ms;
	bool flood;
	bool quiet;
	bool head; /* was printed */
	unsigned int batch; /* current number of requests per call, of a flood */
	uint64_t started;
	struct ping_stats stats;
	json_t *replies; /* for --json */
};

/* --- the command line --- */

static bool
take_flag(json_t *params, const char *name)
{
	bool on = json_is_true(json_object_get(params, name));

	json_object_del(params, name);
	return on;
}

static int
ping_take_seconds(json_t *params, const char *name, double min, double max, double *ms)
{
	const char *text = method_text(params, name);
	int rc = 0;

	if (text[0] != '\0' && !ping_seconds(text, min, max, ms)) {
		fprintf(stderr,
			"polca-ctl: ping: --%s: got \"%s\", allowed: %.10g to %.10g seconds\n",
			name, text, min, max);
		rc = EXIT_USAGE;
	}
	json_object_del(params, name);
	return rc;
}

static int
take_count(struct ping *p, json_t *params)
{
	const json_t *count = json_object_get(params, "count");

	if (count != NULL && json_integer_value(count) < 1)
		return usage_error("ping: --count: %s, allowed: 1 and more",
			json_is_integer(count) ? "got 0" : "too large");
	p->count = (uint64_t)json_integer_value(count);
	json_object_del(params, "count");
	return 0;
}

static int
ping_take_options(struct ping *p, json_t *params)
{
	int rc = take_count(p, params);

	p->flood = take_flag(params, "flood");
	p->quiet = take_flag(params, "quiet");
	p->interval_ms = p->timeout_ms = 1000;
	if (rc == 0)
		rc = ping_take_seconds(params, "interval", 0, 3600, &p->interval_ms);
	if (rc == 0)
		rc = ping_take_seconds(params, "deadline", 0.001, 1e6, &p->deadline_ms);
	if (rc == 0)
		rc = ping_take_seconds(params, "timeout", 0.001, 60, &p->timeout_ms);
	if (rc == 0 && !dest_parse(p->dest, params, "dgid", "dlid"))
		rc = usage_error("ping: dest: got \"%s\", allowed: " DEST_ALLOWED, p->dest);
	json_object_set_new(params, "identifier", json_integer(getpid() & 0xffff));
	p->params = params;
	p->batch = 1;
	p->replies = json_array();
	return rc;
}

/* --- printing --- */

static void
ping_take_reply(struct ping *p, json_t *reply)
{
	bool lost = json_object_get(reply, "error") != NULL;

	p->stats.sent++;
	if (!lost)
		ping_stats_reply(&p->stats, json_real_value(json_object_get(reply, "time_us")));
	if (p->o->json)
		json_array_append(p->replies, reply);
	if (p->o->json || p->quiet)
		return;
	if (p->flood && lost)
		fputc('.', stdout);
	else if (!p->flood)
		ping_print_reply(p->dest, p->stats.sent, reply);
	fflush(stdout);
}

static void
ping_print_end(const struct ping *p)
{
	uint64_t ms = (clock_us() - p->started) / 1000;

	if (p->o->json)
		ping_print_json(p->dest, p->replies, &p->stats, ms);
	else
		ping_stats_print(stdout, &p->stats, p->dest, ms);
}

/* --- requests --- */

/* Time until the deadline; it also limits the wait for an answer. */
static double
left_ms(const struct ping *p)
{
	if (p->deadline_ms == 0)
		return 1e12;
	return p->deadline_ms - (double)(clock_us() - p->started) / 1000;
}

static bool
ping_goes_on(const struct ping *p)
{
	return stopped == 0 && (p->count == 0 || p->stats.sent < p->count) && left_ms(p) > 0;
}

/*
 * A flood sends many requests per call, but single ones after a loss, because each loss takes a
 * timeout.
 */
static unsigned int
next_batch(struct ping *p, uint64_t lost_before)
{
	uint64_t left = p->count - p->stats.sent;

	if (!p->flood)
		return 1;
	if (p->stats.sent - p->stats.received > lost_before)
		p->batch = 1;
	else if (p->stats.sent > 0 && p->batch < FLOOD_BATCH)
		p->batch = p->batch * 2 < FLOOD_BATCH ? p->batch * 2 : FLOOD_BATCH;
	return p->count > 0 && left < p->batch ? (unsigned int)left : p->batch;
}

static unsigned int
set_request(struct ping *p, unsigned int n)
{
	double ms = p->timeout_ms < left_ms(p) ? p->timeout_ms : left_ms(p);

	json_object_set_new(p->params, "sequence", json_integer((p->stats.sent + 1) & 0xffff));
	json_object_set_new(p->params, "count", json_integer(n));
	json_object_set_new(p->params, "timeout_ms", json_integer(ms < 1 ? 1 : (json_int_t)ms));
	return p->o->wait_ms + n * (unsigned int)ms;
}

/* After the first request, which may be refused: then an error is all that is printed. */
static void
print_head_once(struct ping *p)
{
	if (!p->o->json && !p->head)
		ping_print_head(p->dest, p->params);
	p->head = true;
}

/* @return 0, or the exit status of a failure other than a missing answer */
static int
ping_request(struct ping *p, unsigned int n)
{
	unsigned int wait_ms = set_request(p, n);
	json_t *result, *error, *reply;
	size_t i;
	int rc = connection_call(p->c, "live_ping", p->params, wait_ms, &result, &error);

	if (rc < 0 && errno == EINTR && stopped != 0) {
		p->stats.sent++; /* the request under way */
		rc = 0;
	} else if (rc < 0) {
		rc = no_reply(errno);
	} else if (rc > 0) {
		rc = server_error(p->o, error, "ping");
	}
	if (rc == 0)
		print_head_once(p);
	json_array_foreach(json_object_get(result, "replies"), i, reply)
		ping_take_reply(p, reply);
	json_decref(result);
	json_decref(error);
	return rc;
}

static void
pause_until(const struct ping *p, uint64_t at)
{
	uint64_t now = clock_us();
	struct timespec ts;

	if (p->flood || now >= at || !ping_goes_on(p))
		return;
	if (left_ms(p) * 1000 < (double)(at - now))
		at = now + (uint64_t)(left_ms(p) * 1000);
	ts.tv_sec = (time_t)((at - now) / 1000000);
	ts.tv_nsec = (long)((at - now) % 1000000) * 1000;
	nanosleep(&ts, NULL); /* a signal interrupts it */
}

static int
ping_loop(struct ping *p)
{
	uint64_t lost = 0, began;
	unsigned int n;
	int rc = 0;

	stopped_catch();
	connection_interruptible(p->c, &stopped);
	p->started = clock_us();
	while (rc == 0 && ping_goes_on(p)) {
		began = clock_us();
		n = next_batch(p, lost);
		lost = p->stats.sent - p->stats.received;
		rc = ping_request(p, n);
		if (rc == 0)
			pause_until(p, began + (uint64_t)(p->interval_ms * 1000));
	}
	if (rc != 0 && p->stats.sent == 0)
		return rc;
	ping_print_end(p);
	return rc != 0 ? rc : p->stats.received > 0 ? EXIT_DONE : EXIT_SERVER;
}

int
ping_command_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params)
{
	struct ping p = { .o = o, .c = c };
	char *dest = strdup(method_text(params, "dest"));
	int rc;

	(void)command;
	p.dest = dest;
	json_object_del(params, "dest");
	rc = ping_take_options(&p, params);
	if (rc == 0)
		rc = ping_loop(&p);
	json_decref(p.replies);
	free(dest);
	return rc;
}

/* --- live ping --- */

int
live_ping_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	json_int_t ms =
		member_int_or(params, "count", 1) * member_int_or(params, "timeout_ms", 1000);
	json_t *result = NULL;
	int rc;

	(void)command;
	rc = ask_server(o, c, "live ping", "live_ping", params, o->wait_ms + (unsigned int)ms,
		&result);
	if (rc != 0)
		return rc;
	if (o->json)
		print_json(result);
	else
		table_print(stdout, result);
	rc = member_int_or(result, "received", 0) > 0 ? EXIT_DONE : EXIT_SERVER;
	json_decref(result);
	return rc;
}
