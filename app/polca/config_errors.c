/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The errors of a configuration, each with its line. jansson does not keep the lines of values, so
 * the text is searched again for the JSON path that an error begins with.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/plural.h"
#include "config.h"

/* A position in JSON text that jansson has accepted. */
struct cursor {
	const char *at;
	unsigned int line;
	unsigned int found; /* line of the last key or item of the path that was found */
};

static void
step_char(struct cursor *c)
{
	if (*c->at == '\n')
		c->line++;
	c->at++;
}

static void
skip_json_blanks(struct cursor *c)
{
	while (*c->at != '\0' && strchr(" \t\r\n", *c->at) != NULL)
		step_char(c);
}

/* Go from the opening quotation mark to the character after the closing one. */
static void
skip_string(struct cursor *c)
{
	step_char(c);
	while (*c->at != '\0' && *c->at != '"') {
		if (*c->at == '\\')
			step_char(c);
		if (*c->at != '\0')
			step_char(c);
	}
	if (*c->at == '"')
		step_char(c);
}

static void
skip_value(struct cursor *c)
{
	unsigned int depth = 0;

	do {
		if (*c->at == '"') {
			skip_string(c);
			continue;
		}
		if (depth == 0 && strchr(",]}", *c->at) != NULL)
			return;
		if (*c->at == '{' || *c->at == '[')
			depth++;
		if (*c->at == '}' || *c->at == ']')
			depth--;
		step_char(c);
	} while (*c->at != '\0');
}

/* @return the rest of the path after this key; NULL: another key comes next in the path */
static const char *
match_key(const char *path, const char *key, size_t len)
{
	path += *path == '.';
	if (strncmp(path, key, len) != 0)
		return NULL;
	return strchr(".[:", path[len]) != NULL ? path + len : NULL;
}

/* Go to the value of the path's next key. @return the rest of the path; NULL: no such key */
static const char *
enter_object(struct cursor *c, const char *path)
{
	struct cursor key;
	const char *rest;

	step_char(c);
	for (skip_json_blanks(c); *c->at == '"'; skip_json_blanks(c)) {
		key = *c;
		skip_string(c);
		rest = match_key(path, key.at + 1, (size_t)(c->at - key.at) - 2);
		skip_json_blanks(c);
		step_char(c); /* the colon */
		skip_json_blanks(c);
		if (rest != NULL) {
			c->found = key.line;
			return rest;
		}
		skip_value(c);
		if (*c->at == ',')
			step_char(c);
	}
	return NULL;
}

static const char *
enter_list(struct cursor *c, const char *path)
{
	unsigned long i, index;
	char *end;

	if (*path != '[')
		return NULL;
	index = strtoul(path + 1, &end, 10);
	if (*end != ']')
		return NULL;
	step_char(c);
	for (i = 0; i < index && *c->at != '\0'; i++) {
		skip_value(c);
		if (*c->at != ',')
			return NULL;
		step_char(c);
	}
	skip_json_blanks(c);
	c->found = c->line;
	return end + 1;
}

unsigned int
config_line_of(const char *text, const char *path)
{
	struct cursor c = { .at = text, .line = 1 };

	skip_json_blanks(&c);
	c.found = c.line;
	do {
		if (*c.at == '{')
			path = enter_object(&c, path);
		else if (*c.at == '[')
			path = enter_list(&c, path);
		else
			path = NULL;
	} while (path != NULL);
	return c.found;
}

void
config_error_at(struct config_errors *errs, int line, int column, const char *text)
{
	struct config_error *e;

	if (errs->num++ >= RTE_DIM(errs->error))
		return;
	e = &errs->error[errs->num - 1];
	e->line = line;
	e->column = column;
	snprintf(e->text, sizeof(e->text), "%s", text);
}

int
config_error(struct config_errors *errs, const char *fmt, ...)
{
	char text[sizeof(errs->error[0].text)];
	va_list ap;

	if (errs->num >= RTE_DIM(errs->error)) {
		errs->num++; /* not kept: do not search the text for its line */
		return -EINVAL;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config_error_at(errs, (int)config_line_of(errs->json, text), 0, text);
	return -EINVAL;
}

bool
config_errors_below(const struct config_errors *errs, const char *path)
{
	size_t len = strlen(path);
	unsigned int i;

	if (errs->values > RTE_DIM(errs->error))
		return true; /* errors that were not kept may be below the path */
	for (i = 0; i < errs->values; i++)
		if (strncmp(errs->error[i].text, path, len) == 0 &&
			strchr(".[:", errs->error[i].text[len]) != NULL)
			return true;
	return false;
}

/* Sort by line, and within a line in the order in which the errors were found. */
static int
compare_lines(const void *a, const void *b)
{
	const struct config_error *const *x = a, *const *y = b;

	if ((*x)->line != (*y)->line)
		return (*x)->line < (*y)->line ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* @return their number, at most CONFIG_ERRORS_MAX */
static unsigned int
sort_errors(const struct config_errors *errs, const struct config_error *sorted[CONFIG_ERRORS_MAX])
{
	unsigned int i, n = RTE_MIN(errs->num, (unsigned int)CONFIG_ERRORS_MAX);

	for (i = 0; i < n; i++)
		sorted[i] = &errs->error[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_lines);
	return n;
}

/* Cut the text at the last blank before its end, so that no word is cut. */
static void
cut_at_a_word(char *text, size_t max)
{
	static const char dots[] = " ...";

	if (strlen(text) <= max)
		return;
	text[max - (sizeof(dots) - 1)] = '\0';
	if (strrchr(text, ' ') != NULL)
		*strrchr(text, ' ') = '\0';
	strcat(text, dots);
}

void
config_errors_join(const struct config_errors *errs, char *buf, size_t size)
{
	const struct config_error *sorted[CONFIG_ERRORS_MAX], *e;
	unsigned int i, n = sort_errors(errs, sorted);
	size_t len = (size_t)snprintf(buf, size, "%.255s", errs->file);
	char text[sizeof(e->text) + 32];
	const size_t more = 32; /* for "; and N more errors" */

	for (i = 0; i < n; i++) {
		e = sorted[i];
		if (e->line > 0)
			snprintf(text, sizeof(text), "%s%d: %s", i == 0 ? ":" : "; line ", e->line,
				e->text);
		else
			snprintf(text, sizeof(text), "%s%s", i == 0 ? ": " : "; ", e->text);
		if (i == 0)
			cut_at_a_word(text, size - len - more);
		if (len + strlen(text) + more > size)
			break;
		len += (size_t)snprintf(buf + len, size - len, "%s", text);
	}
	if (errs->num > i)
		snprintf(buf + len, size - len, "; and %u more error%s", errs->num - i,
			plural(errs->num - i));
}

void
config_errors_print(const struct config_errors *errs, FILE *f)
{
	const struct config_error *sorted[CONFIG_ERRORS_MAX], *e;
	unsigned int i, n = sort_errors(errs, sorted);

	for (i = 0; i < n; i++) {
		e = sorted[i];
		fprintf(f, "polca: %s:", errs->file);
		if (e->line > 0)
			fprintf(f, "%d:", e->line);
		if (e->column > 0)
			fprintf(f, "%d:", e->column);
		fprintf(f, " %s\n", e->text);
	}
	if (errs->num > n)
		fprintf(f, "polca: %s: and %u more error%s\n", errs->file, errs->num - n,
			plural(errs->num - n));
}
