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
	char *text;

	if (o->json) {
		text = json_dumps(error, JSON_INDENT(2));
		puts(text);
		free(text);
	}
	fprintf(stderr, "polca-ctl: %s: %s%s%s%s\n", words, method_text(error, "message"),
		eno[0] != '\0' ? " (" : "", eno, eno[0] != '\0' ? ")" : "");
	if (json_object_get(data, "posted") != NULL)
		fprintf(stderr, "  %lld were posted before it\n",
			(long long)json_integer_value(json_object_get(data, "posted")));
	if (json_integer_value(json_object_get(error, "code")) <= -32000)
		fprintf(stderr, "  see polca-ctl %s --help\n", words);
	return EXIT_SERVER;
}

