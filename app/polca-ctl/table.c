/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "table.h"
#include "units.h"

#define CELL_MAX    512
#define LABEL_MAX   64
#define COLUMNS_MAX 32
#define WIDE        160 /* width if the output is not a terminal */
#define ACROSS_MAX  6 /* most rows shown side by side when a table is too wide */
#define DOWN_MAX    18 /* a table with more columns is always printed with its rows side by side */

static void print_object(FILE *f, const json_t *obj, int indent);

/* The number of terminal columns that UTF-8 text takes. */
static int
width_of(const char *text)
{
	int n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void
print_cell(FILE *f, const char *text, int width, bool right, bool last)
{
	int pad = width - width_of(text);

	if (pad < 0 || (last && text[0] == '\0'))
		pad = 0;
	if (right)
		fprintf(f, "%*s%s", pad, "", text);
	else
		fprintf(f, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", f);
}

static int
terminal_width(FILE *f)
{
	struct winsize ws;
	const char *columns = getenv("COLUMNS");

	if (ioctl(fileno(f), TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
		return ws.ws_col;
	return columns != NULL && atoi(columns) > 20 ? atoi(columns) : WIDE;
}

/* True for a nested table. A port's addresses are printed in one cell. */
static bool
is_table(const char *name, const json_t *v)
{
	return json_is_array(v) && json_is_object(json_array_get(v, 0)) &&
		strcmp(name, "gids") != 0;
}

static bool
is_number(const json_t *v)
{
	return json_is_number(v);
}

/* --- tables --- */

struct columns {
	const char *name[COLUMNS_MAX]; /* in the JSON objects */
	char label[COLUMNS_MAX][LABEL_MAX];
	int width[COLUMNS_MAX];
	bool right[COLUMNS_MAX];
	bool stacked; /* labels take two lines, to be narrower */
	int num;
	int total;
};

/* Where to split a label into two lines: at the "_" nearest to its middle. 0: it has none */
static size_t
label_split(const char *label)
{
	size_t len = strlen(label), at = 0, i;

	for (i = 1; i < len; i++)
		if (label[i] == '_' &&
			(at == 0 || labs(2 * (long)i - (long)len) < labs(2 * (long)at - (long)len)))
			at = i;
	return at;
}

static int
label_width(const char *label, bool stacked)
{
	int above = (int)label_split(label), below = (int)strlen(label) - above - 1;

	if (!stacked || above == 0)
		return width_of(label);
	return above > below ? above : below;
}

static int
column_of(struct columns *c, const char *name)
{
	int i;

	for (i = 0; i < c->num; i++)
		if (strcmp(c->name[i], name) == 0)
			return i;
	if (c->num == COLUMNS_MAX)
		return -1;
	c->name[c->num] = name;
	units_label(name, c->label[c->num], LABEL_MAX);
	c->width[c->num] = label_width(c->label[c->num], c->stacked);
	c->right[c->num] = true;
	return c->num++;
}

static void
measure_columns(struct columns *c, const json_t *rows, bool stacked)
{
	char cell[CELL_MAX];
	const char *name;
	json_t *row, *v;
	size_t r;
	int i;

	memset(c, 0, sizeof(*c));
	c->stacked = stacked;
	json_array_foreach(rows, r, row) {
		json_object_foreach(row, name, v) {
			i = column_of(c, name);
			if (i < 0)
				continue;
			units_print(name, v, cell, sizeof(cell));
			if (width_of(cell) > c->width[i])
				c->width[i] = width_of(cell);
			if (!is_number(v) && !json_is_null(v))
				c->right[i] = false;
		}
	}
	for (i = 0; i < c->num; i++)
		c->total += c->width[i] + 2;
}

static const char *
cell_of(const json_t *row, const char *name, char cell[CELL_MAX])
{
	const json_t *v = json_object_get(row, name);

	if (v == NULL)
		strcpy(cell, "");
	else
		units_print(name, v, cell, CELL_MAX);
	return cell;
}

static void
print_labels(FILE *f, const struct columns *c, int indent, bool above)
{
	char text[LABEL_MAX];
	size_t at;
	int i;

	fprintf(f, "%*s", indent, "");
	for (i = 0; i < c->num; i++) {
		at = c->stacked ? label_split(c->label[i]) : 0;
		if (above)
			snprintf(text, sizeof(text), "%.*s", (int)at, c->label[i]);
		else
			snprintf(text, sizeof(text), "%s", c->label[i] + at + (at > 0));
		print_cell(f, text, c->width[i], c->right[i], i == c->num - 1);
	}
}

static void
print_down(FILE *f, const struct columns *c, const json_t *rows, int indent)
{
	char cell[CELL_MAX];
	json_t *row;
	size_t r;
	int i;

	if (c->stacked)
		print_labels(f, c, indent, true);
	print_labels(f, c, indent, false);
	json_array_foreach(rows, r, row) {
		fprintf(f, "%*s", indent, "");
		for (i = 0; i < c->num; i++)
			print_cell(f, cell_of(row, c->name[i], cell), c->width[i], c->right[i],
				i == c->num - 1);
	}
}

static int
row_width(const struct columns *c, const json_t *row)
{
	char cell[CELL_MAX];
	int i, w, width = 0;

	for (i = 0; i < c->num; i++) {
		w = width_of(cell_of(row, c->name[i], cell));
		width = w > width ? w : width;
	}
	return width;
}

/*
 * Print the labels at the left, and as many rows as fit next to them. @return the next row to print
 */
static size_t
print_side_by_side(FILE *f, const struct columns *c, const json_t *rows, size_t first, int indent)
{
	int i, side = 0, total, width[ACROSS_MAX];
	size_t r, n, num = json_array_size(rows);
	char cell[CELL_MAX];

	for (i = 0; i < c->num; i++)
		side = width_of(c->label[i]) > side ? width_of(c->label[i]) : side;
	total = indent + side;
	for (n = 0; n < ACROSS_MAX && first + n < num; n++) {
		width[n] = row_width(c, json_array_get(rows, first + n));
		total += 2 + width[n];
		if (n > 0 && total > terminal_width(f))
			break;
	}
	for (i = 0; i < c->num; i++) {
		fprintf(f, "%*s", indent, "");
		print_cell(f, c->label[i], side, false, false);
		for (r = 0; r < n; r++)
			print_cell(f, cell_of(json_array_get(rows, first + r), c->name[i], cell),
				width[r], false, r == n - 1);
	}
	return first + n;
}

static void
print_across(FILE *f, const struct columns *c, const json_t *rows, int indent)
{
	size_t r = 0;

	while (r < json_array_size(rows)) {
		if (r > 0)
			fputc('\n', f);
		r = print_side_by_side(f, c, rows, r, indent);
	}
}

static bool
has_objects(const json_t *rows)
{
	const char *name;
	json_t *row, *v;
	size_t r;

	json_array_foreach(rows, r, row) {
		json_object_foreach(row, name, v) {
			if (json_is_object(v) || is_table(name, v))
				return true;
		}
	}
	return false;
}

static void
print_rows(FILE *f, const json_t *rows, int indent)
{
	struct columns c;
	json_t *row;
	size_t r;

	measure_columns(&c, rows, false);
	if (c.total > terminal_width(f))
		measure_columns(&c, rows, true);
	if (!has_objects(rows) && c.num <= DOWN_MAX && c.total <= terminal_width(f)) {
		print_down(f, &c, rows, indent);
	} else if (!has_objects(rows) &&
		(c.num > DOWN_MAX || json_array_size(rows) <= ACROSS_MAX)) {
		print_across(f, &c, rows, indent);
	} else {
		json_array_foreach(rows, r, row) {
			if (r > 0)
				fputc('\n', f);
			print_object(f, row, indent);
		}
	}
}

/* --- objects --- */

/* Plain values are printed first, as "label  value" rows; nested objects and tables follow. */
static bool
is_plain(const char *name, const json_t *v)
{
	return !json_is_object(v) && !is_table(name, v);
}

static void
print_plain(FILE *f, const json_t *obj, int indent)
{
	char cell[CELL_MAX], label[LABEL_MAX];
	const char *name;
	int side = 0, value = 0;
	bool numbers = true;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)obj, name, v) {
		if (!is_plain(name, v))
			continue;
		units_print(name, v, cell, sizeof(cell));
		units_label(name, label, sizeof(label));
		if (width_of(label) > side)
			side = width_of(label);
		if (width_of(cell) > value)
			value = width_of(cell);
		numbers &= json_is_integer(v);
	}
	json_object_foreach((json_t *)(uintptr_t)obj, name, v) {
		if (!is_plain(name, v))
			continue;
		fprintf(f, "%*s", indent, "");
		print_cell(f, units_label(name, label, sizeof(label)), side, false, false);
		print_cell(f, units_print(name, v, cell, sizeof(cell)), value, numbers, true);
	}
}

static void
print_object(FILE *f, const json_t *obj, int indent)
{
	const char *name;
	bool only = json_object_size(obj) == 1;
	json_t *v;

	print_plain(f, obj, indent);
	json_object_foreach((json_t *)(uintptr_t)obj, name, v) {
		if (is_plain(name, v))
			continue;
		if (!only || indent > 0)
			fprintf(f, "%*s%s:\n", indent, "", name);
		if (json_is_array(v))
			print_rows(f, v, only && indent == 0 ? 0 : indent + 2);
		else if (json_object_size(v) == 0)
			fprintf(f, "%*snone\n", indent + 2, "");
		else
			print_object(f, v, indent + 2);
	}
}

void
table_print(FILE *f, const json_t *result)
{
	json_t *shown = json_copy((json_t *)(uintptr_t)result);

	if (json_is_null(json_object_get(shown, "cursor")))
		json_object_del(shown, "cursor");
	json_object_del(shown, "warnings");
	if (json_object_size(shown) == 0)
		fprintf(f, "ok\n");
	else
		print_object(f, shown, 0);
	json_decref(shown);
}
