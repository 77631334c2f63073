/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
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

/*
 * True if a server that this user trusts listens at the path, or if this user may not look
 * (EACCES). The socket of a killed polca refuses connections.
 */
static bool
socket_has_server(const char *path)
{
	struct connection *c = connection_open(path);
	bool yes = c != NULL || errno == EACCES;
	struct stat st;

	connection_close(c);
	return yes && stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Find a polca at the other default paths: root's and this user's. */
static bool
other_socket(const char *missing, char *buf, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int i;

	for (i = 0; i < 3; i++) {
		if (i == 0)
			snprintf(buf, size, "%s", CONNECTION_SERVICE);
		else if (i == 1)
			snprintf(buf, size, "%s/polca.sock", dir != NULL ? dir : "");
		else
			snprintf(buf, size, "/tmp/polca-%u/polca.sock", (unsigned int)geteuid());
		if (strcmp(buf, missing) != 0 && socket_has_server(buf))
			return true;
	}
	return false;
}

static void
user_name(uid_t uid, char *buf, size_t size)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw != NULL)
		snprintf(buf, size, "%s", pw->pw_name);
	else
		snprintf(buf, size, "user %u", (unsigned int)uid);
}

/*
 * The socket, or its directory if this user may not look into it. Returns -1 if neither can be
 * seen.
 */
static int
stat_what_is_closed(const char *path, struct stat *st)
{
	char copy[PATH_MAX];

	if (stat(path, st) == 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", path);
	return stat(dirname(copy), st);
}

/*
 * The group whose members polca admits, as control.group of the configuration says: it has the
 * socket, and also the socket's directory where that is open to groups. Returns NULL if no group is
 * admitted. A directory that has its owner's own group tells nothing about the socket in it.
 */
static const char *
admitted_group(const struct stat *st)
{
	mode_t open = S_ISSOCK(st->st_mode) ? S_IRGRP | S_IWGRP : S_IXGRP;
	const struct passwd *pw = getpwuid(st->st_uid);
	const struct group *g = getgrgid(st->st_gid);

	if (g == NULL || (st->st_mode & open) != open)
		return NULL;
	if (!S_ISSOCK(st->st_mode) && pw != NULL && pw->pw_gid == st->st_gid)
		return NULL;
	return g->gr_name;
}

/* Explain that this user may not use the socket: who may, and what to type to be one of them. */
static void
explain_not_admitted(const char *path, char *hint, size_t size)
{
	char owner[64] = "another user", user[64];
	const char *group = NULL;
	struct stat st;

	if (stat_what_is_closed(path, &st) == 0) {
		user_name(st.st_uid, owner, sizeof(owner));
		group = admitted_group(&st);
	}
	user_name(geteuid(), user, sizeof(user));
	if (group != NULL)
		snprintf(hint, size,
			"it belongs to %s, and members of the group %s may use it: type sudo usermod -a -G %s %s, then log in again; or run polca-ctl with sudo",
			owner, group, group, user);
	else
		snprintf(hint, size,
			"it belongs to %s, and polca serves only its own user, root, and members of control.group: run polca-ctl as one of them (sudo)",
			owner);
}

/* True if this user may not use the service's socket, or not look into its directory. */
static bool
service_is_closed(void)
{
	return access(CONNECTION_SERVICE, R_OK | W_OK) != 0 && errno == EACCES;
}

/* Explain that no polca listens at the path. */
static void
explain_not_running(const char *path, int eno, char *hint, size_t size)
{
	const char *why = eno == ENOENT ? "there is no such socket"
					: "the socket is left from a polca that has ended";
	char other[256], closed[512];

	if (service_is_closed()) {
		explain_not_admitted(CONNECTION_SERVICE, closed, sizeof(closed));
		snprintf(hint, size, "%s. The service's socket is %s, and closed to you: %s", why,
			CONNECTION_SERVICE, closed);
	} else if (other_socket(path, other, sizeof(other))) {
		snprintf(hint, size, "%s, but polca listens at %s: try --socket %s", why, other,
			other);
	} else {
		snprintf(hint, size,
			"polca is not running (%s): start it, or give --socket PATH or POLCA_SOCKET",
			why);
	}
}

/* Explain what is wrong with the socket and what to do. */
static void
explain_connect_error(const char *path, int eno, char *hint, size_t size)
{
	struct stat st;

	if (eno == EACCES || eno == EPERM) {
		explain_not_admitted(path, hint, size);
	} else if (eno == ENAMETOOLONG) {
		snprintf(hint, size, "the path of a socket has 107 bytes at most");
	} else if (path[0] == '\0') {
		snprintf(hint, size,
			"the path is empty: name polca's socket with -s PATH or POLCA_SOCKET");
	} else if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		snprintf(hint, size, "it is no socket: name polca's with -s PATH or POLCA_SOCKET");
	} else if (eno == ECONNREFUSED || eno == ENOENT) {
		explain_not_running(path, eno, hint, size);
	} else {
		snprintf(hint, size, "is this polca's socket? Give --socket PATH or POLCA_SOCKET");
	}
}

int
no_connection(const struct options *o, int eno)
{
	char hint[1024];

	explain_connect_error(o->socket, eno, hint, sizeof(hint));
	fprintf(stderr, "polca-ctl: cannot connect to %s: %s\n  %s\n",
		o->socket[0] != '\0' ? o->socket : "\"\"", strerror(eno), hint);
	return EXIT_CONNECTION;
}

int
no_reply(int eno)
{
	fprintf(stderr, "polca-ctl: no reply: %s\n  %s\n", strerror(eno),
		eno == ETIMEDOUT ? "wait longer with --wait SECONDS, or look at polca's log"
				 : "the server closed the connection: look at its log");
	return EXIT_CONNECTION;
}

/*
 * Print "length: missing" as "--length: missing": replace the parameter names in front by the
 * options the user writes.
 */
static void
print_message(const struct options *o, const char *message)
{
	size_t len, head = strspn(message, "abcdefghijklmnopqrstuvwxyz0123456789_.[], ");
	char name[512], label[512];
	const char *colon = message + head;

	for (; *colon == ':' && message < colon; message += len) {
		len = strcspn(message, ",:");
		snprintf(name, sizeof(name), "%.*s", (int)len, message);
		fputs(args_label(o->command, name, label, sizeof(label)), stderr);
		if (message[len] == ',')
			len += (size_t)fprintf(stderr, ", ");
	}
	fputs(message, stderr);
}

/* The message without "qp_create: " in front, which the words of the command "qp create" say. */
static const char *
without_method(const char *words, const char *message)
{
	size_t i, len = strlen(words);

	for (i = 0; i < len; i++)
		if (message[i] != (words[i] == ' ' ? '_' : words[i]))
			return message;
	return strncmp(message + len, ": ", 2) == 0 ? message + len + 2 : message;
}

int
server_error(const struct options *o, json_t *error, const char *words)
{
	json_t *data = json_object_get(error, "data");
	const char *eno = method_text(data, "errno");

	if (o->json)
		print_json(error);
	fprintf(stderr, "polca-ctl: %s: ", words);
	print_message(o, without_method(words, method_text(error, "message")));
	fprintf(stderr, "%s%s%s\n", eno[0] != '\0' ? " (" : "", eno, eno[0] != '\0' ? ")" : "");
	if (json_object_get(data, "posted") != NULL)
		fprintf(stderr, "  %lld were posted before it\n",
			(long long)member_int(data, "posted"));
	if (member_int(error, "code") <= -32000)
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
	const char *status = method_text(result, "status"),
		   *mad = method_text(result, "mad_status");

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
