/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"
#include "report.h"

int
usage_error(const char *fmt, const char *what)
{
	fprintf(stderr, "polca-ctl: ");
	fprintf(stderr, fmt, what);
	fprintf(stderr, "\n");
	return EXIT_USAGE;
}

/* Errors say what to do next. */
int
no_connection(const struct options *o, int eno)
{
	const char *hint = "is polca running? start it, or name its socket with -s PATH or POLCA_SOCKET";

	if (eno == EACCES || eno == EPERM)
		hint = "polca serves its own user and root: run polca-ctl as one of them";
	else if (eno == ENAMETOOLONG)
		hint = "the path of a socket has 107 bytes at most";
	fprintf(stderr, "polca-ctl: cannot connect to %s: %s\n  %s\n", o->socket, strerror(eno),
		hint);
	return EXIT_CONNECTION;
}

int
no_reply(int eno)
{
	fprintf(stderr, "polca-ctl: no reply: %s\n  %s\n", strerror(eno),
		eno == ETIMEDOUT ? "wait longer with --wait SECONDS, or look at polca's log" :
				   "the server closed the connection: look at its log");
	return EXIT_CONNECTION;
}

int
server_error(const struct options *o, json_t *error, const char *words)
{
	json_t *data = json_object_get(error, "data");
	const char *eno = method_text(data, "errno");

	if (o->json)
		print_json(error);
	fprintf(stderr, "polca-ctl: %s: %s%s%s%s\n", words, method_text(error, "message"),
		eno[0] != '\0' ? " (" : "", eno, eno[0] != '\0' ? ")" : "");
	if (json_object_get(data, "posted") != NULL)
		fprintf(stderr, "  %lld were posted before it\n",
			(long long)json_integer_value(json_object_get(data, "posted")));
	if (json_integer_value(json_object_get(error, "code")) <= -32000)
		fprintf(stderr, "  see polca-ctl %s --help\n", words);
	return EXIT_SERVER;
}

int
ask_server(const struct options *o, struct connection *c, const char *words, const char *method,
	json_t *params, unsigned int wait_ms, json_t **result)
{
	json_t *error = NULL;
	int rc = connection_call(c, method, params, wait_ms, result, &error);

	if (rc > 0)
		rc = server_error(o, error, words);
	else if (rc < 0)
		rc = no_reply(errno);
	json_decref(error);
	return rc;
}

int
status_end(const char *words, const json_t *result)
{
	const char *status = method_text(result, "status"), *mad = method_text(result, "mad_status");

	if (strcmp(status, "OK") == 0)
		return EXIT_DONE;
	fprintf(stderr, "polca-ctl: %s: %s: %s%s%s%s\n", words, status,
		method_text(result, "message"), mad[0] != '\0' ? " (" : "", mad,
		mad[0] != '\0' ? ")" : "");
	return EXIT_STATUS;
}

void
print_json(const json_t *result)
{
	char *text = json_dumps(result, JSON_INDENT(2));

	puts(text);
	free(text);
}
