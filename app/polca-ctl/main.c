/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * polca-ctl: the command-line client of the control socket. Its commands, their help and their
 * completion come from the server's method table, or from the built-in one if no server answers.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "complete.h"
#include "connection.h"
#include "files.h"
#include "help.h"
#include "methods.h"
#include "report.h"
#include "table.h"

#define WAIT_MS      10000
#define WAIT_ALLOWED "--wait: got \"%s\", allowed: seconds, 0.001 to 1000000"
#define ROWS_MAX     100000 /* limit for lists that are read page by page */

/* True for "--wait" and "--wait=5". */
static bool
is_option(const char *word, const char *option)
{
	size_t len = strlen(option);

	return strncmp(word, option, len) == 0 && (word[len] == '\0' || word[len] == '=');
}

/* For ping, -s is the size, as users of ping expect; otherwise it is the socket. */
static bool
is_socket(const struct options *o, const char *word)
{
	bool ping = o->num > 0 && strcmp(o->words[0], "ping") == 0;

	return is_option(word, "--socket") || (strcmp(word, "-s") == 0 && !ping);
}

/* @return the number of words used; 0: no global option; -1: a wrong one */
static int
take_global(struct options *o, char **words, int num)
{
	const char *word = words[0], *equals = strchr(word, '=');
	const char *value = equals != NULL ? equals + 1 : num > 1 ? words[1] : NULL;
	int used = equals != NULL ? 1 : 2;
	char *end;
	double s;

	if (strcmp(word, "--json") == 0)
		o->json = true;
	else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
		o->help = true;
	else if (strcmp(word, "--version") == 0)
		o->version = true;
	else if (is_socket(o, word)) {
		if (value == NULL)
			return -1;
		snprintf(o->socket, sizeof(o->socket), "%s", value);
		return used;
	} else if (is_option(word, "--wait")) {
		s = value != NULL ? strtod(value, &end) : 0;
		if (value == NULL || *end != '\0' || !(s > 0 && s < 1e6))
			return -1;
		o->wait_ms = (unsigned int)(s * 1000);
		return used;
	} else {
		return 0;
	}
	return 1;
}

static int
take_globals(struct options *o, int argc, char **argv)
{
	int i, n;

	connection_default_path(o->socket, sizeof(o->socket));
	o->wait_ms = WAIT_MS;
	o->words = calloc((size_t)argc + 1, sizeof(*o->words));
	for (i = 1; i < argc; i += n) {
		n = take_global(o, argv + i, argc - i);
		if (n < 0 && strncmp(argv[i], "--wait=", 7) == 0)
			return usage_error(WAIT_ALLOWED, argv[i] + 7);
		if (n < 0 && strcmp(argv[i], "--wait") == 0 && i + 1 < argc)
			return usage_error(WAIT_ALLOWED, argv[i + 1]);
		if (n < 0)
			return usage_error("%s wants a value; see polca-ctl --help", argv[i]);
		if (n == 0) {
			o->words[o->num++] = argv[i];
			n = 1;
		}
	}
	return 0;
}

/* Treat "help qp" as "qp --help". */
static void
take_help(struct options *o)
{
	if (o->num == 0 || strcmp(o->words[0], "help") != 0)
		return;
	o->help = true;
	o->num--;
	memmove(o->words, o->words + 1, (size_t)o->num * sizeof(*o->words));
}

/* The first list of a result; further pages are appended to it. */
static json_t *
list_in(json_t *result)
{
	const char *name;
	json_t *v;

	json_object_foreach(result, name, v) {
		if (json_is_array(v))
			return v;
	}
	return NULL;
}

/* Fetch all further pages of a list, unless the user gave cursor or max. */
static int
rest_of_list(struct connection *c, const char *name, json_t *params, json_t *result, json_t **error)
{
	json_t *cursor, *page;
	int rc;

	if (json_object_get(params, "cursor") != NULL || json_object_get(params, "max") != NULL)
		return 0;
	while ((cursor = json_object_get(result, "cursor")) != NULL && !json_is_null(cursor) &&
		json_array_size(list_in(result)) < ROWS_MAX) {
		json_object_set(params, "cursor", cursor);
		rc = connection_call(c, name, params, 0, &page, error);
		if (rc != 0)
			return rc;
		json_array_extend(list_in(result), list_in(page));
		json_object_set(result, "cursor", json_object_get(page, "cursor"));
		json_decref(page);
	}
	return 0;
}

static void
print_method_result(const struct options *o, const json_t *result)
{
	json_t *w;
	size_t i;

	if (o->json) {
		print_json(result);
		return;
	}
	table_print(stdout, result);
	json_array_foreach(json_object_get(result, "warnings"), i, w)
		fprintf(stderr, "warning: %s\n", json_string_value(w));
}

/* Without a server, the built-in table still tells a wrong command line from a missing server. */
static int
run_unconnected(const struct options *o, int eno, const json_t *method, int used)
{
	char why[2048];
	json_t *params = args_params(method, o->words + used, o->num - used, why, sizeof(why));

	if (params == NULL)
		return usage_error("%s", why);
	json_decref(params);
	return no_connection(o, eno);
}

static int
run_method(const struct options *o, struct connection *c, const json_t *method, int used)
{
	const char *name = method_text(method, "name");
	json_t *params, *result, *error;
	char why[2048], words[128];
	unsigned int wait_ms;
	int rc;

	params = args_params(method, o->words + used, o->num - used, why, sizeof(why));
	if (params == NULL)
		return usage_error("%s", why);
	if (commands_own(method)) {
		rc = commands_run(o, c, method, params);
		json_decref(params);
		return rc;
	}
	rc = files_attach(c, method, params);
	if (rc != 0) {
		json_decref(params);
		return rc;
	}
	wait_ms = o->wait_ms + (unsigned int)member_int(params, "timeout_ms");
	rc = connection_call(c, name, params, wait_ms, &result, &error);
	if (rc == 0)
		rc = rest_of_list(c, name, params, result, &error);
	if (rc == 0)
		print_method_result(o, result);
	else if (rc > 0)
		rc = server_error(o, error, method_words(name, words, sizeof(words)));
	else
		rc = no_reply(errno);
	json_decref(params);
	json_decref(result);
	json_decref(error);
	return rc;
}

static int
run_help(const struct options *o, const json_t *methods)
{
	int used;
	const json_t *m = methods_match(methods, o->words, o->num, &used);

	if (o->num == 1 && strcmp(o->words[0], "help") == 0)
		help_help();
	else if (m != NULL)
		help_method(m);
	else if (o->num == 0)
		help_all(methods);
	else if (methods_prefix(methods, o->words, o->num) == o->num)
		help_group(methods, o->words, o->num);
	else
		return no_such_command(o, methods);
	return EXIT_DONE;
}

static int
run_command(struct options *o, struct connection *c, int eno, const json_t *methods)
{
	const json_t *method;
	int used;

	method = methods_match(methods, o->words, o->num, &used);
	if (method == NULL)
		return no_such_command(o, methods);
	o->command = method;
	if (c == NULL)
		return run_unconnected(o, eno, method, used);
	return run_method(o, c, method, used);
}

/* Ask the server for its method table: its version may have other methods than this program's. */
static int
run_words(struct options *o)
{
	struct connection *c = connection_open(o->socket);
	int rc, eno = errno;
	json_t *methods = methods_load(c, o->wait_ms);

	commands_add(methods);
	if (o->help || o->num == 0)
		rc = run_help(o, methods);
	else
		rc = run_command(o, c, eno, methods);
	if (o->num == 0 && !o->help)
		rc = EXIT_USAGE;
	connection_close(c);
	json_decref(methods);
	return rc;
}

/*
 * True if the word to complete is the path of --socket PATH or --socket=PATH. @param cursor  index
 * of that word
 */
static bool
takes_path(const struct options *o, char **words, int num, long cursor)
{
	if (num <= cursor || !is_socket(o, words[0]))
		return false;
	return cursor == (strchr(words[0], '=') != NULL ? 0 : 1);
}

/* polca-ctl --complete CWORD WORD...: bash's COMP_CWORD and COMP_WORDS */
static int
run_completion(int argc, char **argv)
{
	json_t *methods = methods_load(NULL, 0);
	long cword = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	struct options o = { .num = 0 }; /* global options are parsed, but change nothing here */
	char *words[64];
	int i, n, num = 0, end = EXIT_DONE;

	connection_default_path(o.socket, sizeof(o.socket));
	commands_add(methods);
	o.words = words;
	for (i = 4; i < argc && i <= 3 + cword && num < 63; i += n) {
		o.num = num;
		if (takes_path(&o, argv + i, argc - i, 3 + cword - i)) {
			end = COMPLETE_FILES;
			goto out;
		}
		n = i < 3 + cword ? take_global(&o, argv + i, argc - i) : 0;
		if (n > 0)
			continue;
		words[num++] = argv[i];
		n = 1;
	}
	if (cword > 0 && 3 + cword >= argc)
		words[num++] = (char *)(uintptr_t) ""; /* an empty word is at the cursor */
	end = complete_print(methods, words, num, o.socket);
out:
	json_decref(methods);
	return end;
}

int
main(int argc, char **argv)
{
	struct options o = { .num = 0 };
	int rc;

	if (argc > 1 && strcmp(argv[1], "--complete") == 0)
		return run_completion(argc, argv);
	rc = take_globals(&o, argc, argv);
	if (rc != 0)
		goto out;
	take_help(&o);
	if (o.version)
		printf("polca-ctl %s\n", POLCA_VERSION);
	else
		rc = run_words(&o);
out:
	free(o.words);
	return rc;
}
