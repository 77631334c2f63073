/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "clock.h"
#include "files.h"
#include "methods.h"
#include "sa.h"
#include "sa_several.h"
#include "stopped.h"

#define PAGE           500 /* records per reply */
#define PAGE_WAIT_MS   500
#define QUIET_MS       2000 /* a query that ends sooner shows no progress report */
#define REPORT_MS      2000 /* time between two progress reports that are not on a terminal */
#define IMPORT_MS      3600000
#define EVENTS         1000 /* events per call */
#define FOLLOW_WAIT_MS 1000 /* how long one call waits for an event */
#define EVERY_S        60 /* seconds between two sweeps with --follow */

struct query {
	const struct options *o;
	struct connection *c;
	const char *words; /* the command */
	json_int_t number;
	struct sa_printer printer;
	uint64_t started; /* ms */
	uint64_t reported;
	bool on_terminal; /* stderr is a terminal: a progress report overwrites the last one */
	/* stdout is a terminal: once records are printed, no reports are needed */
	bool records_scroll;
	bool shown; /* a report is on the terminal's current line */
};

/* The signal that ends the program, after the server has freed the query. */
static volatile sig_atomic_t stop_signal;

static void
sa_stop(int sig)
{
	stop_signal = sig;
}

static void
sa_catch_signals(void (*handler)(int))
{
	static const int signals[] = { SIGHUP, SIGTERM, SIGINT, SIGPIPE };
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		stopped_set_handler(signals[i], handler);
}

static int
sa_call(const struct query *q, const char *method, json_t *params, unsigned int wait_ms,
	json_t **result)
{
	return ask_server(q->o, q->c, q->words, method, params, wait_ms, result);
}

/* --- progress --- */

static void
clear_report(struct query *q)
{
	if (q->shown)
		fprintf(stderr, "\r%40s\r", "");
	q->shown = false;
}

static void
print_progress(struct query *q, const json_t *page)
{
	uint64_t now = clock_us() / 1000, ms = now - q->started;
	json_int_t n = member_int(page, "received");
	const json_t *percent = json_object_get(page, "percent");

	if (ms < QUIET_MS || (q->records_scroll && n > 0) ||
		(!q->on_terminal && now - q->reported < REPORT_MS))
		return;
	q->reported = now;
	clear_report(q);
	if (n == 0)
		fprintf(stderr, "no answer yet, %llu s", (unsigned long long)ms / 1000);
	else
		fprintf(stderr, "%" JSON_INTEGER_FORMAT " record%s, %" JSON_INTEGER_FORMAT "/s", n,
			plural((uint64_t)n), n * 1000 / (json_int_t)ms);
	if (n > 0 && percent != NULL)
		fprintf(stderr, ", %" JSON_INTEGER_FORMAT "%%", json_integer_value(percent));
	q->shown = q->on_terminal;
	if (!q->on_terminal)
		fputc('\n', stderr);
}

/* --- queries --- */

static void
sa_print_query_end(struct query *q, json_t *page)
{
	json_object_del(page, "records");
	json_object_del(page, "cursor");
	json_object_del(page, "query");
	sa_print_end(&q->printer, page);
}

/* Fetch page after page until the last. */
static int
fetch(struct query *q)
{
	json_t *params = json_pack("{s:I, s:i, s:i}", "query", q->number, "max", PAGE, "timeout_ms",
		PAGE_WAIT_MS);
	json_t *page = NULL, *record;
	bool more = true;
	size_t i;
	int rc = 0;

	sa_print_begin(&q->printer);
	while (more && rc == 0 && stop_signal == 0) {
		json_decref(page);
		rc = sa_call(q, "sa_result", params, q->o->wait_ms + PAGE_WAIT_MS, &page);
		if (rc != 0)
			break;
		if (json_array_size(json_object_get(page, "records")) > 0)
			clear_report(q);
		json_array_foreach(json_object_get(page, "records"), i, record)
			sa_print_record(&q->printer, record);
		print_progress(q, page);
		more = !json_is_null(json_object_get(page, "cursor"));
		json_object_set(params, "cursor", json_object_get(page, "cursor"));
	}
	clear_report(q);
	if (rc == 0 && stop_signal == 0) {
		rc = status_end(q->words, page);
		sa_print_query_end(q, page);
	}
	json_decref(page);
	json_decref(params);
	return rc;
}

/* Start a query, at one SA or at several. */
static int
start_query(struct query *q, json_t *params)
{
	const char *op = method_text(params, "op");
	struct sa_several s = { q->o, q->c, q->words, &stop_signal, false };
	json_t *result = NULL;
	int rc;

	if (json_object_get(params, "or") == NULL && json_object_get(params, "hedge_ms") == NULL) {
		rc = sa_call(q, "sa_query", params, q->o->wait_ms, &result);
		if (rc == 0)
			q->number = member_int(result, "query");
		json_decref(result);
		return rc;
	}
	s.change = strcmp(op, "set") == 0 || strcmp(op, "delete") == 0 ||
		strncmp(op, "config_", 7) == 0;
	return sa_ask_several(&s, params, &q->number);
}

static int
run_query(struct query *q, json_t *params)
{
	json_t *result = NULL, *forget = NULL, *none = NULL;
	int rc;

	q->started = clock_us() / 1000;
	q->on_terminal = isatty(STDERR_FILENO);
	q->records_scroll = isatty(STDOUT_FILENO);
	sa_catch_signals(sa_stop);
	rc = start_query(q, params);
	if (rc == 0) {
		rc = fetch(q);
		forget = json_pack("{s:I}", "query", q->number);
		connection_call(q->c, "sa_cancel", forget, q->o->wait_ms, &result, &none);
		json_decref(forget);
		json_decref(result);
		json_decref(none);
	}
	sa_catch_signals(SIG_DFL);
	if (stop_signal != 0)
		raise(stop_signal);
	return rc;
}

/* Say "no records" rather than nothing, so that the user knows that there was an answer. */
static int
run_lookup(struct query *q, json_t *params)
{
	int rc = run_query(q, params);

	if (rc == EXIT_DONE && q->printer.records == 0 && q->printer.form != SA_JSON)
		fprintf(stderr, "no records\n");
	return rc;
}

/* --- files --- */

/*
 * Read the records of a Config: a list of them, or an object with a list, as sa export writes it.
 */
static int
config_file(const char *file, json_t *params)
{
	json_error_t why;
	json_t *list,
		*json = strcmp(file, "-") == 0 ? json_loadf(stdin, 0, &why)
					       : json_load_file(file, 0, &why);

	if (json == NULL) {
		fprintf(stderr, "polca-ctl: %s: %s (line %d)\n", file, why.text, why.line);
		return EXIT_USAGE;
	}
	list = json_is_object(json) ? json_object_get(json, "records") : json;
	if (!json_is_array(list)) {
		json_decref(json);
		return usage_error(
			"%s: wrong content, allowed: a list of records, or {\"records\": [...]}",
			file);
	}
	json_object_set(params, "records", list);
	json_decref(json);
	return 0;
}

static int
run_config(struct query *q, json_t *params)
{
	const char *file = method_text(params, "file"), *action = method_text(params, "action");
	json_t *fields = json_object_get(params, "fields"), *records;
	size_t n;
	char op[32];
	int rc;

	if (strcmp(action, "add") != 0 && strcmp(action, "edit") != 0 &&
		strcmp(action, "delete") != 0)
		return usage_error("sa config: action: got \"%s\", allowed: add, edit, delete",
			action);
	snprintf(op, sizeof(op), "config_%s", action);
	json_object_set_new(params, "op", json_string(op));
	if (file[0] != '\0') {
		rc = config_file(file, params);
		if (rc != 0)
			return rc;
	} else if (fields != NULL) {
		json_object_set(params, "records", fields);
	}
	records = json_object_get(params, "records");
	if (records == NULL)
		return usage_error("%s: nothing to configure: give FIELD=VALUE words, or --file",
			q->words);
	n = json_is_array(records) ? json_array_size(records) : 1;
	json_object_del(params, "fields");
	json_object_del(params, "action");
	json_object_del(params, "file");
	rc = run_query(q, params);
	if (rc == EXIT_DONE && q->printer.form != SA_JSON)
		printf("%zu record%s %s\n", n, plural(n),
			op[7] == 'a'           ? "added"
				: op[7] == 'e' ? "edited"
					       : "deleted");
	return rc;
}

/* JSON begins with a brace or a bracket; the output of ibnetdiscover does not. */
static const char *
format_of(int fd)
{
	char text[4096] = "";
	char first;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		text[0] = '\0';
	first = text[strspn(text, " \t\n\r")];
	return first == '{' || first == '[' ? "json" : "ibnetdiscover";
}

static void
print_import(const struct query *q, const json_t *result)
{
	json_int_t records = member_int(result, "records");

	if (q->o->json) {
		json_dumpf(result, stdout, JSON_INDENT(2));
		putchar('\n');
		return;
	}
	printf("%" JSON_INTEGER_FORMAT " record%s in %.3f s\n", records, plural((uint64_t)records),
		(double)member_int(result, "elapsed_us") / 1e6);
}

static int
sweep_once(struct query *q, const json_t *params)
{
	json_t *what =
		json_pack("{s:b}", "replace", json_is_true(json_object_get(params, "replace")));
	json_t *result = NULL;
	int rc = sa_call(q, "sa_sweep", what, IMPORT_MS, &result);

	if (rc == 0)
		print_import(q, result);
	fflush(stdout);
	json_decref(result);
	json_decref(what);
	return rc;
}

/*
 * True if the event reports a change of the subnet: a trap to the SM behind our port, or an SM's
 * change to the port.
 */
static bool
calls_for_sweep(const json_t *event)
{
	static const char *const names[] = { "LID_CHANGE", "SM_CHANGE", "CLIENT_REREGISTER",
		"PORT_ACTIVE" };
	/* link state, capabilities or description, system image GUID */
	static const int traps[] = { 128, 144, 145 };
	const json_t *notice = json_object_get(event, "notice");
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(method_text(event, "event"), names[i]) == 0)
			return true;
	for (i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
		if (notice != NULL && member_int(notice, "trap_num") == traps[i])
			return true;
	return false;
}

/*
 * Read events from *since on, without removing them for other readers. @return 0: *changed is set
 * if one calls for a sweep
 */
static int
look_at_events(struct query *q, json_int_t *since, unsigned int wait_ms, bool *changed, size_t *n)
{
	json_t *params = json_pack("{s:I, s:i, s:i}", "since", *since, "max", EVENTS, "timeout_ms",
		(int)wait_ms);
	json_t *result = NULL, *event;
	size_t i;
	int rc = sa_call(q, "events", params, q->o->wait_ms + wait_ms, &result);

	*n = json_array_size(json_object_get(result, "events"));
	json_array_foreach(json_object_get(result, "events"), i, event)
		*changed |= calls_for_sweep(event);
	if (rc == 0)
		*since = member_int(result, "next");
	json_decref(result);
	json_decref(params);
	return rc;
}

/*
 * The SM of another port keeps the subnet's traps: sweep after this time even if we hear nothing.
 */
static uint64_t
sweep_interval_us(const json_t *params)
{
	const json_t *every = json_object_get(params, "every");

	return (uint64_t)(every != NULL ? json_integer_value(every) : EVERY_S) * 1000000;
}

/*
 * Sweep. With --follow, sweep again after each change of the subnet and after each interval, until
 * a signal ends the program.
 */
static int
run_sweep(struct query *q, const json_t *params)
{
	bool follow = json_is_true(json_object_get(params, "follow")), changed = false;
	uint64_t interval = sweep_interval_us(params), swept = clock_us();
	json_int_t since = 0;
	size_t n = follow ? EVENTS : 0;
	int rc = 0;

	while (n == EVENTS && rc == 0) /* skip the events before the first sweep */
		rc = look_at_events(q, &since, 0, &changed, &n);
	if (rc == 0)
		rc = sweep_once(q, params);
	while (rc == 0 && follow) {
		changed = false;
		rc = look_at_events(q, &since, FOLLOW_WAIT_MS, &changed, &n);
		if (rc != 0 || (!changed && (interval == 0 || clock_us() - swept < interval)))
			continue;
		sweep_once(q, params); /* prints why it fails; the next one may succeed */
		swept = clock_us();
	}
	return rc;
}

static int
run_import(struct query *q, json_t *params)
{
	const char *file = method_text(params, "file");
	const json_t *every = json_object_get(params, "every");
	json_t *result = NULL;
	int fd, rc;

	if (json_is_true(json_object_get(params, "sweep")) != (file[0] == '\0'))
		return usage_error("%s: give a file, or --sweep", q->words);
	if (file[0] != '\0' && json_is_true(json_object_get(params, "follow")))
		return usage_error("%s: --follow goes with --sweep", q->words);
	if (every != NULL && !json_is_true(json_object_get(params, "follow")))
		return usage_error("%s: --every goes with --follow", q->words);
	if (every != NULL && (json_integer_value(every) < 0 || json_integer_value(every) > 86400))
		return usage_error("%s: --every: allowed: 0 to 86400", q->words);
	if (file[0] == '\0')
		return run_sweep(q, params);
	fd = file_to_pass(file, q->words,
		"records as sa export writes them, or with the output of ibnetdiscover");
	if (fd < 0)
		return EXIT_USAGE;
	connection_attach(q->c, fd);
	if (json_object_get(params, "format") == NULL)
		json_object_set_new(params, "format", json_string(format_of(fd)));
	json_object_del(params, "sweep");
	json_object_del(params, "follow");
	json_object_del(params, "every");
	rc = sa_call(q, "sa_import", params, IMPORT_MS, &result);
	if (rc == 0)
		print_import(q, result);
	json_decref(result);
	return rc;
}

static int
export_pages(struct query *q)
{
	json_t *params = json_pack("{s:i}", "max", PAGE), *page = NULL, *record;
	size_t i;
	int rc;

	do {
		json_decref(page);
		rc = sa_call(q, "sa_export", params, q->o->wait_ms, &page);
		if (rc != 0)
			break;
		if (q->printer.records == 0)
			sa_print_begin(&q->printer);
		json_array_foreach(json_object_get(page, "records"), i, record)
			sa_print_record(&q->printer, record);
		json_object_set(params, "cursor", json_object_get(page, "cursor"));
	} while (!json_is_null(json_object_get(page, "cursor")));
	if (rc == 0) /* an incomplete export must not be valid JSON */
		sa_print_end(&q->printer, NULL);
	json_decref(page);
	json_decref(params);
	return rc;
}

static int
run_export(struct query *q, json_t *params)
{
	const char *file = method_text(params, "file");
	bool to_stdout = strcmp(file, "-") == 0;
	int rc, bad;

	q->printer.form = SA_JSON;
	q->printer.f = to_stdout ? stdout : fopen(file, "w");
	if (q->printer.f == NULL)
		return file_error(file);
	rc = export_pages(q);
	bad = ferror(q->printer.f);
	if (to_stdout)
		return rc;
	bad |= fclose(q->printer.f);
	if (rc == 0 && bad != 0)
		return file_error(file);
	if (rc == 0)
		printf("%llu record%s\n", (unsigned long long)q->printer.records,
			plural(q->printer.records));
	return rc;
}

/* --- all sa commands --- */

int
sa_command_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *method = method_text(command, "command"), *op = method_text(command, "op");
	bool oneline = json_is_true(json_object_get(params, "oneline"));
	char words[64];
	struct query q = {
		.o = o,
		.c = c,
		.printer.f = stdout,
		.printer.form = o->json ? SA_JSON
			: oneline       ? SA_ONE_LINE
					: SA_BLOCKS,
	};

	q.words = method_words(method_text(command, "name"), words, sizeof(words));
	json_object_del(params, "oneline");
	if (strcmp(method, "sa_import") == 0)
		return run_import(&q, params);
	if (strcmp(method, "sa_export") == 0)
		return run_export(&q, params);
	if (op[0] == '\0')
		return run_config(&q, params);
	json_object_set_new(params, "op", json_string(op));
	if (strcmp(op, "set") == 0 || strcmp(op, "delete") == 0)
		return run_query(&q, params);
	return run_lookup(&q, params);
}
