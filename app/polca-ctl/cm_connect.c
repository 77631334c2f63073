/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * "cm connect": make a connection, and wait until the service that drives it is done or a signal
 * ends it.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "cm.h"
#include "connection.h"
#include "methods.h"
#include "stopped.h"
#include "table.h"

#define CONNECT_MS 20000 /* default of the method's timeout_ms */
#define WAIT_MS    10000 /* of one service_wait */
#define ENDING_MS  5000 /* how long a connection may take to end after cm_disconnect */

static void
end_connection(struct connection *c, json_int_t connection)
{
	json_t *params = json_pack("{s: I}", "connection", connection);
	json_t *result = NULL, *error = NULL;

	connection_call(c, "cm_disconnect", params, 0, &result, &error);
	json_decref(params);
	json_decref(result);
	json_decref(error);
}

static bool
service_row_ended(const json_t *row)
{
	return row != NULL && strcmp(method_text(row, "state"), "ENDED") == 0;
}

/* The service that drives a connection of ours. */
struct driven {
	json_int_t connection;
	json_t *row; /* as last seen; NULL: it was never seen */
	bool gone; /* polca does not know it any more */
};

/* Wait for its end, ms at most. @return 0; -1: no reply, errno says why; else the exit status */
static int
wait_once(const struct options *o, struct connection *c, struct driven *d, int ms)
{
	json_t *params = json_pack("{s: I, s: i}", "connection", d->connection, "timeout_ms", ms);
	json_t *result = NULL, *error = NULL;
	const char *eno;
	int rc = connection_call(c, "service_wait", params, o->wait_ms + (unsigned int)ms, &result,
		&error);

	json_decref(params);
	if (rc == 0) {
		json_decref(d->row);
		d->row = result;
	} else if (rc > 0) {
		eno = method_text(json_object_get(error, "data"), "errno");
		d->gone = strcmp(eno, "ENOENT") == 0;
		rc = d->gone ? 0 : server_error(o, error, "cm connect");
	}
	json_decref(error);
	return rc;
}

/* End the connection, and wait for its end. */
static int
end_and_wait(const struct options *o, struct connection *c, struct driven *d)
{
	int rc;

	end_connection(c, d->connection);
	rc = wait_once(o, c, d, ENDING_MS);
	return rc < 0 ? no_reply(errno) : rc;
}

/* The same on a new socket: on the old one the reply to an interrupted call may still come. */
static int
end_on_new_socket(const struct options *o, struct driven *d)
{
	struct connection *c = connection_open(o->socket);
	int rc;

	if (c == NULL)
		return no_reply(errno);
	rc = end_and_wait(o, c, d);
	connection_close(c);
	return rc;
}

/*
 * Wait until the service is done or the peer disconnects. A signal ends the connection, and with it
 * the wait. service_row_ended() tells whether the end was seen.
 */
static int
wait_for_end(const struct options *o, struct connection *c, struct driven *d)
{
	int rc = 0;

	connection_interruptible(c, &stopped);
	while (rc == 0 && stopped == 0 && !d->gone && !service_row_ended(d->row))
		rc = wait_once(o, c, d, WAIT_MS);
	connection_interruptible(c, NULL);
	if (stopped != 0 && rc == 0 && !d->gone && !service_row_ended(d->row))
		return end_and_wait(o, c, d);
	if (stopped != 0 && rc < 0)
		return end_on_new_socket(o, d);
	return rc < 0 ? no_reply(errno) : rc;
}

/* Print the service's counters. @param count  0: none was given. @return the exit status */
static int
print_service_end(const struct options *o, const json_t *row, json_int_t count)
{
	json_int_t exchanges = member_int(row, "exchanges");
	json_int_t mismatches = member_int(row, "mismatches");
	json_int_t errors = member_int(row, "errors") + member_int(row, "violations");
	json_int_t messages = member_int(row, "messages_out"), bytes = member_int(row, "bytes_out");
	bool good = exchanges >= count && mismatches == 0 && errors == 0;
	char of[32] = "";

	if (count > 0)
		snprintf(of, sizeof(of), " of %lld", (long long)count);
	if (!o->json)
		printf("\n%s: %lld%s exchange%s, %lld mismatch%s, %lld error%s; %lld message%s and %lld byte%s out, %lld and %lld in\n",
			method_text(row, "kind"), (long long)exchanges, of,
			plural((uint64_t)(count > 0 ? count : exchanges)), (long long)mismatches,
			mismatches == 1 ? "" : "es", (long long)errors, plural((uint64_t)errors),
			(long long)messages, plural((uint64_t)messages), (long long)bytes,
			plural((uint64_t)bytes), (long long)member_int(row, "messages_in"),
			(long long)member_int(row, "bytes_in"));
	return good ? EXIT_DONE : EXIT_STATUS;
}

/* Polca does not know the service any more, or it did not end in time after a signal. */
static int
unseen_end(json_int_t connection, const json_t *row)
{
	fprintf(stderr,
		"polca-ctl: cm connect: the end of connection 0x%08x was not seen: %s; see polca-ctl cm list\n",
		(unsigned int)connection,
		row != NULL ? "the counters are the last known"
			    : "there are no counters of its service");
	return EXIT_STATUS;
}

/* Remove the zeros that fill up the private data in the message. */
static void
trim_private(json_t *obj)
{
	const char *text = method_text(obj, "private_data");
	size_t len = strlen(text);

	while (len > 1 && text[len - 1] == '0' && text[len - 2] == '0')
		len -= 2;
	if (len == 0)
		json_object_del(obj, "private_data");
	else
		json_object_set_new(obj, "private_data", json_stringn(text, len));
}

/* @param attached  wait until the service that drives the connection is done */
static int
print_established(const struct options *o, struct connection *c, json_t *result, json_int_t count,
	bool attached)
{
	struct driven d = { .connection = member_int(result, "connection") };
	int rc = 0, end = EXIT_DONE;

	if (!o->json) {
		trim_private(result);
		if (json_object_get(result, "memory") != NULL)
			json_object_del(result, "private_data");
		table_print(stdout, result);
		fflush(stdout);
	}
	if (attached && count == 0)
		fprintf(stderr,
			"connected; Ctrl-C disconnects (--detach leaves the connection to the server)\n");
	if (attached)
		rc = wait_for_end(o, c, &d);
	if (d.row != NULL) {
		json_object_set(result, "counters", d.row);
		end = print_service_end(o, d.row, count);
	}
	if (attached && rc == 0 && !service_row_ended(d.row))
		end = unseen_end(d.connection, d.row);
	if (o->json)
		print_json(result);
	json_decref(d.row);
	return rc != 0 ? rc : end;
}

/* A rejection or the peer's silence has an exit status of its own: the server did not fail. */
static int
report_refused(const struct options *o, json_t *error)
{
	json_t *data = json_object_get(error, "data");
	int rc = server_error(o, error, "cm connect");
	const char *private;

	trim_private(data);
	private = method_text(data, "private_data");
	if (private[0] != '\0')
		fprintf(stderr, "  private data: %s\n", private);
	return json_object_get(data, "reason") != NULL ||
			strcmp(method_text(data, "errno"), "ETIMEDOUT") == 0
		? EXIT_STATUS
		: rc;
}

/* The server gives up an attempt, or a connection, whose reply is unread when the socket closes. */
static int
report_interrupted(const char *words)
{
	fprintf(stderr, "polca-ctl: %s: interrupted before the connection stood; it is given up\n",
		words);
	return EXIT_STATUS;
}

/* Catch signals before the call: a connection must not outlive the command unnoticed. */
int
cm_connect_run(const struct options *o, struct connection *c, json_t *params)
{
	bool detach = json_is_true(json_object_get(params, "detach"));
	bool attached = !detach && json_object_get(params, "service") != NULL;
	json_int_t count = member_int(params, "count"), ms = member_int(params, "timeout_ms");
	json_t *result = NULL, *error = NULL;
	int rc = cm_take_dest(params, "cm connect");

	json_object_del(params, "detach");
	if (rc != 0)
		return rc;
	if (attached)
		stopped_catch();
	connection_interruptible(c, &stopped);
	rc = connection_call(c, "cm_connect", params,
		o->wait_ms + (unsigned int)(ms > 0 ? ms : CONNECT_MS), &result, &error);
	connection_interruptible(c, NULL);
	if (rc == 0)
		rc = print_established(o, c, result, count, attached);
	else if (rc > 0)
		rc = report_refused(o, error);
	else if (errno == EINTR)
		rc = report_interrupted("cm connect");
	else
		rc = no_reply(errno);
	json_decref(result);
	json_decref(error);
	return rc;
}
