/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "cm.h"
#include "dest.h"
#include "methods.h"
#include "stopped.h"
#include "table.h"

#define CONNECT_MS 20000 /* the method's own timeout_ms where none is given */
#define LOOK_MS    50 /* between two looks at a service */

static json_int_t
number(const json_t *obj, const char *name)
{
	return json_integer_value(json_object_get(obj, name));
}

/* "dest" becomes the method's own parameters. */
static int
take_dest(json_t *params, const char *words)
{
	char dest[64], text[128];

	snprintf(dest, sizeof(dest), "%s", method_text(params, "dest"));
	json_object_del(params, "dest");
	if (dest_parse(dest, params, "dgid", "dlid"))
		return 0;
	snprintf(text, sizeof(text), "%s: dest: got \"%s\"", words, dest);
	return usage_error("%s, allowed: " DEST_ALLOWED, text);
}

/* --- services --- */

/* Columns that would be the same nothing in each row. */
static void
drop_zeros(json_t *rows, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (number(row, name) != 0)
			return;
	}
	json_array_foreach(rows, i, row)
		json_object_del(row, name);
}

/* Of a table the columns that tell something; the service ID where it is no port. */
static void
narrow(json_t *rows)
{
	static const char *const counters[] = { "connections", "established", "refused",
		"messages_in", "messages_out", "bytes_in", "bytes_out", "errors", "exchanges",
		"mismatches", "violations" };
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (json_object_get(row, "port") != NULL)
			json_object_del(row, "service_id");
		if (strcmp(method_text(row, "port_space"), "TCP") == 0)
			json_object_del(row, "port_space");
	}
	for (i = 2; i < sizeof(counters) / sizeof(counters[0]); i++)
		drop_zeros(rows, counters[i]);
}

static int
services(const struct options *o, struct connection *c, json_t *params)
{
	json_t *rows, *result = NULL;
	int rc = ask_server(o, c, "cm services", "service_list", params, 0, &result);

	if (rc != 0)
		return rc;
	rows = json_object_get(result, "services");
	if (o->json) {
		print_json(result);
	} else if (json_array_size(rows) == 0) {
		printf("none; polca-ctl cm listen --help says how to have one\n");
	} else {
		narrow(rows);
		table_print(stdout, result);
	}
	json_decref(result);
	return 0;
}

/* --- connecting --- */

static void
pause_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* The service that drives a connection of ours; NULL: it is gone. */
static json_t *
client_row(const json_t *result, json_int_t connection)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(result, "services"), i, row)
	{
		if (json_object_get(row, "connection") != NULL &&
				number(row, "connection") == connection)
			return json_incref(row);
	}
	return NULL;
}

/* Whoever interrupts the wait wants no more of it: the connection ends, what it came to is told. */
static void
end_when_stopped(struct connection *c, json_int_t connection)
{
	json_t *params, *result = NULL, *error = NULL;

	if (stopped != 1)
		return;
	stopped = 2;
	params = json_pack("{s: I}", "connection", connection);
	connection_call(c, "cm_disconnect", params, 0, &result, &error);
	json_decref(params);
	json_decref(result);
	json_decref(error);
}

/* Until the exchanges asked for are done. *row stays NULL if the service was forgotten before. */
static int
wait_for_end(const struct options *o, struct connection *c, json_int_t connection, json_t **row)
{
	json_t *result;
	int rc;

	stopped_catch();
	for (;;) {
		end_when_stopped(c, connection);
		rc = ask_server(o, c, "cm connect", "service_list", NULL, 0, &result);
		if (rc != 0)
			return rc;
		json_decref(*row);
		*row = client_row(result, connection);
		json_decref(result);
		if (*row == NULL || strcmp(method_text(*row, "state"), "ENDED") == 0)
			return 0;
		pause_ms(LOOK_MS);
	}
}

/* What it came to. @return the exit status */
static int
print_end(const struct options *o, const json_t *row, json_int_t count)
{
	bool good = number(row, "exchanges") >= count && number(row, "mismatches") == 0 &&
		number(row, "errors") == 0 && number(row, "violations") == 0;

	if (!o->json)
		printf("\n%s: %lld of %lld exchanges, %lld mismatches, %lld errors; %lld messages and %lld bytes out, %lld and %lld in\n",
			method_text(row, "kind"), (long long)number(row, "exchanges"),
			(long long)count, (long long)number(row, "mismatches"),
			(long long)(number(row, "errors") + number(row, "violations")),
			(long long)number(row, "messages_out"), (long long)number(row, "bytes_out"),
			(long long)number(row, "messages_in"), (long long)number(row, "bytes_in"));
	return good ? EXIT_DONE : EXIT_STATUS;
}

/* Private data fills its place in the message with zeros: people do without. */
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

static int
established(const struct options *o, struct connection *c, json_t *result, json_int_t count)
{
	json_t *row = NULL;
	int rc = 0;

	if (!o->json) {
		trim_private(result);
		table_print(stdout, result);
		fflush(stdout);
	}
	if (count > 0)
		rc = wait_for_end(o, c, number(result, "connection"), &row);
	if (rc == 0 && row != NULL) {
		json_object_set(result, "counters", row);
		rc = print_end(o, row, count);
	}
	if (o->json)
		print_json(result);
	json_decref(row);
	return rc;
}

/* Said no, or nothing, is not what the server failed at. */
static int
refused(const struct options *o, json_t *error)
{
	json_t *data = json_object_get(error, "data");
	int rc = server_error(o, error, "cm connect");
	const char *told;

	trim_private(data);
	told = method_text(data, "private_data");
	if (told[0] != '\0')
		fprintf(stderr, "  private data: %s\n", told);
	return json_object_get(data, "reason") != NULL ||
			strcmp(method_text(data, "errno"), "ETIMEDOUT") == 0 ?
		EXIT_STATUS :
		rc;
}

static int
connect_to(const struct options *o, struct connection *c, json_t *params)
{
	bool detach = json_is_true(json_object_get(params, "detach"));
	json_int_t count = detach ? 0 : number(params, "count");
	json_int_t ms = number(params, "timeout_ms");
	json_t *result = NULL, *error = NULL;
	int rc = take_dest(params, "cm connect");

	json_object_del(params, "detach");
	if (rc != 0)
		return rc;
	rc = connection_call(c, "cm_connect", params,
		o->wait_ms + (unsigned int)(ms > 0 ? ms : CONNECT_MS), &result, &error);
	if (rc == 0)
		rc = established(o, c, result, count);
	else if (rc > 0)
		rc = refused(o, error);
	else
		rc = no_reply(errno);
	json_decref(result);
	json_decref(error);
	return rc;
}

static void
print_agreed(const json_t *result)
{
	json_t *w;
	size_t i;

	table_print(stdout, result);
	json_array_foreach(json_object_get(result, "warnings"), i, w)
		fprintf(stderr, "warning: %s\n", json_string_value(w));
}

static int
alternate(const struct options *o, struct connection *c, json_t *params)
{
	json_t *result = NULL;
	int rc = take_dest(params, "cm alternate");

	if (rc == 0)
		rc = ask_server(o, c, "cm alternate", "cm_load_alternate", params, 0, &result);
	if (rc == 0 && o->json)
		print_json(result);
	else if (rc == 0)
		print_agreed(result);
	json_decref(result);
	return rc;
}

int
cm_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *name = method_text(command, "name");

	if (strcmp(name, "cm_services") == 0)
		return services(o, c, params);
	if (strcmp(name, "cm_connect") == 0)
		return connect_to(o, c, params);
	return alternate(o, c, params);
}
