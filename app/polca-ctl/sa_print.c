/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print records one by one, for people or for programs: a table may be larger than memory. */

#include <string.h>

#include "methods.h"
#include "sa.h"
#include "units.h"

#define NAME_WIDTH 26

static void
print_value(FILE *f, const json_t *v)
{
	if (json_is_string(v))
		fputs(json_string_value(v), f);
	else
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
}

/* The units of integer components. */
static const struct {
	const char *name;
	const char *unit;
} units[] = {
	{ "mtu", "B" },
	{ "mtu_cap", "B" },
	{ "neighbor_mtu", "B" },
	{ "rate", "Gb/s" },
	{ "service_lease", "s" },
	{ "m_key_lease_period", "s" },
};

/* True if the value n means 4.096 us * 2^n. */
static bool
is_exponent(const char *name)
{
	return strcmp(name, "packet_life") == 0 || strcmp(name, "subnet_timeout") == 0 ||
		strcmp(name, "resp_time_value") == 0;
}

static void
print_unit(FILE *f, const char *name, const json_t *v)
{
	const char *text = json_is_string(v) ? json_string_value(v) : "0";
	char buf[32];
	size_t i;

	if (json_is_integer(v) && is_exponent(name) && json_integer_value(v) < 32) {
		units_time(4.096 * (double)(UINT64_C(1) << json_integer_value(v)), buf,
			sizeof(buf));
		fprintf(f, " (%s)", buf);
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].name, name) == 0 && text[strspn(text, "0123456789.")] == '\0')
			fprintf(f, " %s", units[i].unit);
}

/* Print "NodeRecord 0x00010000" and one component per line, in saquery's format. */
static void
print_block(FILE *f, const json_t *record)
{
	const char *name;
	json_t *v;

	fprintf(f, "%s", method_text(record, "record"));
	if (json_object_get(record, "rid") != NULL)
		fprintf(f, " %s", method_text(record, "rid"));
	fputc('\n', f);
	json_object_foreach((json_t *)(uintptr_t)record, name, v) {
		if (strcmp(name, "record") == 0 || strcmp(name, "rid") == 0)
			continue;
		fprintf(f, "    %s", name);
		fprintf(f, " %.*s ",
			(int)(NAME_WIDTH > strlen(name) ? NAME_WIDTH - strlen(name) : 1),
			"..........................");
		print_value(f, v);
		print_unit(f, name, v);
		fputc('\n', f);
	}
}

static void
print_record_line(FILE *f, const json_t *record)
{
	const char *name;
	json_t *v;

	fprintf(f, "%s", method_text(record, "record"));
	json_object_foreach((json_t *)(uintptr_t)record, name, v) {
		if (strcmp(name, "record") == 0)
			continue;
		fprintf(f, " %s=", name);
		/* quote text with blanks */
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
		print_record_line(p->f, record);
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
		json_object_foreach((json_t *)(uintptr_t)rest, name, v) {
			fprintf(p->f, ",\n\"%s\": ", name);
			json_dumpf(v, p->f, JSON_ENCODE_ANY | JSON_COMPACT);
		}
	}
	fputs("}\n", p->f);
}
