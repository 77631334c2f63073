/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Records for people and for programs, one by one: a table may be longer than memory.
 */

#include <stdlib.h>
#include <string.h>

#include "methods.h"
#include "sa.h"

#define NAME_WIDTH 26

static void
print_value(FILE *f, const json_t *v)
{
	if (json_is_string(v))
		fputs(json_string_value(v), f);
	else
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
}

/* "NodeRecord 0x00010000" and a component a line, as saquery's users know it */
static void
print_block(FILE *f, const json_t *record)
{
	const char *name;
	json_t *v;

	fprintf(f, "%s", method_text(record, "record"));
	if (json_object_get(record, "rid") != NULL)
		fprintf(f, " %s", method_text(record, "rid"));
	fputc('\n', f);
	json_object_foreach((json_t *)(uintptr_t)record, name, v)
	{
		if (strcmp(name, "record") == 0 || strcmp(name, "rid") == 0)
			continue;
		fprintf(f, "    %s", name);
		fprintf(f, " %.*s ", (int)(NAME_WIDTH > strlen(name) ? NAME_WIDTH - strlen(name) : 1),
			"..........................");
		print_value(f, v);
		fputc('\n', f);
	}
}

static void
print_line(FILE *f, const json_t *record)
{
	const char *name;
	json_t *v;

	fprintf(f, "%s", method_text(record, "record"));
	json_object_foreach((json_t *)(uintptr_t)record, name, v)
	{
		if (strcmp(name, "record") == 0)
			continue;
		fprintf(f, " %s=", name);
		/* text with blanks would fall apart */
		if (json_is_string(v) && strpbrk(json_string_value(v), " \"") != NULL)
			json_dumpf(v, f, JSON_ENCODE_ANY);
		else
			print_value(f, v);
	}
	fputc('\n', f);
}

void
sa_print_begin(struct sa_printer *p)
{
	if (p->form == SA_JSON)
		fputs("{\"records\": [", p->f);
}

void
sa_print_record(struct sa_printer *p, const json_t *record)
{
	switch (p->form) {
	case SA_BLOCKS:
		print_block(p->f, record);
		break;
	case SA_ONE_LINE:
		print_line(p->f, record);
		break;
	case SA_JSON:
		fputs(p->records > 0 ? ",\n" : "\n", p->f);
		json_dumpf(record, p->f, JSON_COMPACT);
		break;
	}
	p->records++;
}

void
sa_print_end(struct sa_printer *p, const json_t *rest)
{
	const char *name;
	json_t *v;

	if (p->form != SA_JSON)
		return;
	fputs("\n]", p->f);
	if (rest != NULL) {
		json_object_foreach((json_t *)(uintptr_t)rest, name, v)
		{
			fprintf(p->f, ",\n\"%s\": ", name);
			json_dumpf(v, p->f, JSON_ENCODE_ANY | JSON_COMPACT);
		}
	}
	fputs("}\n", p->f);
}
