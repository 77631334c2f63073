/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "report.h"

struct report {
	bool json;
	bool terminal;
	bool live; /* a live line is on the terminal */
	time_t next_progress;
	json_t *root;
	json_t *rows; /* of the current table */
	const struct report_column *columns;
	unsigned int num_columns;
};

#define PROGRESS_S 2
#define WIDTH      120

static struct report *the_report; /* the process's only report, for report_progress() */

struct report *
report_create(const char *command, bool json)
{
	struct report *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	the_report = r;
	r->json = json;
	r->next_progress = time(NULL) + PROGRESS_S;
	r->terminal = isatty(STDOUT_FILENO) || (json && isatty(STDERR_FILENO));
	r->root = json_pack("{s:s, s:s, s:{}, s:{}, s:[], s:[]}", "command", command, "version",
		POLCA_VERSION, "environment", "options", "tables", "notes");
	return r;
}

static void
clear_live(struct report *r)
{
	if (r->live)
		fprintf(r->json ? stderr : stdout, "\r\033[K");
	r->live = false;
	r->next_progress = time(NULL) + PROGRESS_S;
}

int
report_end(struct report *r)
{
	bool failed;
	char *text;

	clear_live(r);
	if (r->json) {
		text = json_dumps(r->root, JSON_INDENT(2));
		puts(text);
		free(text);
	}
	failed = fflush(stdout) != 0 || ferror(stdout) != 0;
	json_decref(r->root);
	the_report = NULL;
	free(r);
	return failed ? -EIO : 0;
}

static json_t *
format(const char *fmt, va_list ap)
{
	return json_vsprintf(fmt, ap);
}

void
report_fact(struct report *r, const char *key, const char *fmt, ...)
{
	json_t *text;
	va_list ap;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	clear_live(r);
	if (!r->json)
		printf(" %-16s %s\n", key, json_string_value(text));
	json_object_set_new(json_object_get(r->root, "environment"), key, text);
}

const char *
report_fact_text(const struct report *r, const char *key)
{
	return json_string_value(json_object_get(json_object_get(r->root, "environment"), key));
}

static json_t *
option_value(const struct bench_options *o, const struct table_row *row)
{
	json_t *v = table_encode_value(row, o);

	if (row->type == TABLE_BOOL)
		return json_boolean(json_is_true(v) != (row->def != 0));
	return v != NULL ? v : json_null();
}

void
report_options(struct report *r, const struct bench_options *o, unsigned int takes)
{
	json_t *options = json_object_get(r->root, "options");
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if ((option_rows[i].groups & takes) != 0)
			json_object_set_new(options, option_rows[i].row.name,
				option_value(o, &option_rows[i].row));
}

void
report_table(struct report *r, const char *name, const struct report_column *columns,
	unsigned int n)
{
	json_t *table = json_pack("{s:s, s:[]}", "name", name, "rows");
	unsigned int i;

	clear_live(r);
	r->columns = columns;
	r->num_columns = n;
	r->rows = json_object_get(table, "rows");
	json_array_append_new(json_object_get(r->root, "tables"), table);
	if (r->json)
		return;
	for (i = 0; i < n; i++)
		printf(" %-*s", columns[i].width, columns[i].head);
	putchar('\n');
	fflush(stdout);
}

static json_t *
report_figure(const struct report_column *c, double v)
{
	if (!isfinite(v))
		return json_null();
	return c->decimals == 0 ? json_integer((json_int_t)v) : json_real(v);
}

/* Write a cell to the row and to the printed line. */
static void
report_put_text(struct report *r, json_t *row, const struct report_column *c, const char *text)
{
	json_object_set_new(row, c->key, json_string(text));
	if (!r->json)
		printf(" %-*s", c->width, text);
}

static void
put_figure(struct report *r, json_t *row, const struct report_column *c, double v)
{
	json_object_set_new(row, c->key, report_figure(c, v));
	if (r->json)
		return;
	if (!isfinite(v))
		printf(" %-*s", c->width, "-");
	else
		printf(" %-*.*f", c->width, c->decimals, v);
}

void
report_named_row(struct report *r, const char *name, const double *values)
{
	const struct report_column *c = r->columns;
	json_t *row = json_object();

	clear_live(r);
	if (name != NULL)
		report_put_text(r, row, c++, name);
	for (; c < r->columns + r->num_columns; c++)
		put_figure(r, row, c, *values++);
	json_array_append_new(r->rows, row);
	if (!r->json)
		putchar('\n');
	fflush(stdout);
}

void
report_row(struct report *r, const double *values)
{
	report_named_row(r, NULL, values);
}

/* Print text in lines of at most WIDTH characters. */
static void
report_wrapped(const char *text)
{
	size_t len = strlen(text), n;

	for (; len > WIDTH; text += n + 1, len -= n + 1) {
		for (n = WIDTH; n > 0 && text[n] != ' '; n--)
			;
		if (n == 0)
			break;
		printf("%.*s\n", (int)n, text);
	}
	printf("%s\n", text);
}

void
report_note(struct report *r, const char *fmt, ...)
{
	json_t *text;
	va_list ap;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	clear_live(r);
	if (!r->json)
		report_wrapped(json_string_value(text));
	json_array_append_new(json_object_get(r->root, "notes"), text);
	fflush(stdout);
}

static void
put_live(struct report *r, const char *fmt, va_list ap)
{
	FILE *out = r->json ? stderr : stdout;

	fprintf(out, "\r\033[K");
	vfprintf(out, fmt, ap);
	fflush(out);
	r->live = true;
	r->next_progress = time(NULL) + 1;
}

void
report_live(struct report *r, const char *fmt, ...)
{
	va_list ap;

	if (!r->terminal)
		return;
	va_start(ap, fmt);
	put_live(r, fmt, ap);
	va_end(ap);
}

void
report_progress(const char *fmt, ...)
{
	struct report *r = the_report;
	va_list ap;

	if (r == NULL || !r->terminal || time(NULL) < r->next_progress)
		return;
	va_start(ap, fmt);
	put_live(r, fmt, ap);
	va_end(ap);
}
