/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"
#include "events.h"
#include "methods.h"
#include "stopped.h"
#include "table.h"

#define FOLLOW_WAIT_MS 10000
#define AGAIN_MS       500 /* between two attempts to connect */
#define PAGE           1000 /* events in a reply, at most */
#define PAGES_MAX      10 /* a busy server may raise events as fast as they are read */

static void
print_event(const struct options *o, const json_t *event)
{
	if (o->json)
		json_dumpf(event, stdout, JSON_COMPACT);
	else
		printf("%s %s %s", method_text(event, "time"), method_text(event, "event"),
			method_text(event, "text"));
	putchar('\n');
}

static void
print_missed(const struct options *o, json_int_t missed)
{
	if (missed == 0)
		return;
	if (o->json)
		printf("{\"missed\":%" JSON_INTEGER_FORMAT "}\n", missed);
	else
		printf("%" JSON_INTEGER_FORMAT " event%s missed\n", missed,
			missed == 1 ? " was" : "s were");
}

/* Wait until polca runs again. @return a new connection; NULL: a signal came */
static struct connection *
open_again(const struct options *o)
{
	struct connection *c = NULL;

	fprintf(stderr, "polca-ctl: events: polca has ended; waiting until it runs again\n");
	while (stopped == 0 && (c = connection_open(o->socket)) == NULL)
		poll(NULL, 0, AGAIN_MS);
	return c;
}

/*
 * Ask once, and print what there is. A new polca counts events from the beginning. @return 0; -1:
 * the connection is gone; else the exit status
 */
static int
follow_once(const struct options *o, struct connection *c, json_t *params)
{
	json_t *result, *error, *event;
	size_t i;
	int rc;

	rc = connection_call(c, "events", params, o->wait_ms + FOLLOW_WAIT_MS, &result, &error);
	if (rc > 0)
		rc = server_error(o, error, "events");
	else if (rc < 0 && errno == ETIMEDOUT)
		rc = no_reply(errno);
	print_missed(o, member_int(result, "missed"));
	json_array_foreach(json_object_get(result, "events"), i, event)
		print_event(o, event);
	fflush(stdout);
	json_decref(result);
	json_decref(error);
	return rc;
}

/* Print events as they come, a line each, until a signal ends the program. */
static int
follow_events(const struct options *o, struct connection *first, json_t *params)
{
	struct connection *c = first;
	int rc = 0;

	stopped_catch();
	json_object_set_new(params, "timeout_ms", json_integer(FOLLOW_WAIT_MS));
	connection_interruptible(c, &stopped);
	while (rc == 0 && stopped == 0) {
		rc = follow_once(o, c, params);
		if (rc >= 0)
			continue;
		if (c != first)
			connection_close(c);
		json_object_del(params, "since");
		c = stopped == 0 ? open_again(o) : NULL;
		if (c == NULL)
			return EXIT_DONE;
		connection_interruptible(c, &stopped);
		rc = 0;
	}
	if (c != first)
		connection_close(c);
	return rc;
}

/*
 * Without --max, read page after page, up to all that the server keeps: the newest ones, which an
 * operator looks for, are the last.
 */
static int
read_events(const struct options *o, struct connection *c, json_t *params, json_t **result)
{
	bool all = json_object_get(params, "max") == NULL;
	unsigned int wait_ms = o->wait_ms + (unsigned int)member_int(params, "timeout_ms");
	json_t *page = NULL, *events;
	size_t num, pages = 1;
	int rc;

	if (all)
		json_object_set_new(params, "max", json_integer(PAGE));
	rc = ask_server(o, c, "events", "events", params, wait_ms, result);
	num = json_array_size(json_object_get(*result, "events"));
	while (rc == 0 && all && num == PAGE && pages++ < PAGES_MAX) {
		json_object_del(params, "timeout_ms");
		json_object_set(params, "since", json_object_get(*result, "next"));
		rc = ask_server(o, c, "events", "events", params, o->wait_ms, &page);
		events = json_object_get(page, "events");
		num = json_array_size(events);
		json_array_extend(json_object_get(*result, "events"), events);
		if (rc == 0)
			json_object_set(*result, "next", json_object_get(page, "next"));
		json_decref(page);
		page = NULL;
	}
	return rc;
}

int
events_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	bool follow = json_is_true(json_object_get(params, "follow"));
	json_t *result = NULL;
	int rc;

	(void)command;
	json_object_del(params, "follow");
	if (follow)
		return follow_events(o, c, params);
	rc = read_events(o, c, params, &result);
	if (rc == 0 && o->json)
		print_json(result);
	else if (rc == 0)
		table_print(stdout, result);
	json_decref(result);
	return rc;
}
