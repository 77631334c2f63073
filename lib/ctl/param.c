/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "ctl/param.h"
#include "ctl/value.h"
#include "port/port.h"

struct arena_block {
	struct arena_block *next;
	max_align_t mem[];
};

void *
arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = calloc(1, sizeof(*b) + size);

	if (b == NULL)
		return NULL;
	b->next = a->blocks;
	a->blocks = b;
	return b->mem;
}

void
arena_free(struct arena *a)
{
	struct arena_block *b;

	while ((b = a->blocks) != NULL) {
		a->blocks = b->next;
		free(b);
	}
}

/* --- what a row says, in words --- */

const char *
param_type_name(enum param_type type)
{
	static const char *const names[] = {
		[PARAM_UINT] = "integer",
		[PARAM_BOOL] = "boolean",
		[PARAM_STRING] = "string",
		[PARAM_NAME] = "name",
		[PARAM_BYTES] = "hex",
		[PARAM_ENUM] = "enum",
		[PARAM_FLAGS] = "flags",
		[PARAM_GID] = "address",
		[PARAM_MAC] = "mac",
		[PARAM_OBJECT] = "object",
		[PARAM_LIST] = "list",
		[PARAM_MAP] = "map",
		[PARAM_MAPS] = "maps",
	};

	return names[type];
}

static uint64_t
max_of(const struct param *p)
{
	if (p->max != 0)
		return p->max;
	return p->size >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * p->size)) - 1;
}

static void
append(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static void
append_words(char *buf, size_t size, const struct param_word *words)
{
	const struct param_word *w;

	for (w = words; w->name != NULL; w++)
		append(buf, size, "%s%s", w == words ? "" : ", ", w->name);
}

static void
append_names(char *buf, size_t size, const struct param *table)
{
	const struct param *p;

	for (p = table; p->name != NULL; p++)
		append(buf, size, "%s%s", p == table ? "" : ", ", p->name);
}

const char *
param_allowed(const struct param *p, char *buf, size_t size)
{
	buf[0] = '\0';
	switch (p->type) {
	case PARAM_UINT:
		if (max_of(p) == UINT64_MAX)
			append(buf, size, "64-bit integer%s, \"0x...\" text beyond 2^63 - 1",
				p->min > 0 ? " from 1" : "");
		else
			append(buf, size, "integer %" PRIu64 "..%" PRIu64, p->min, max_of(p));
		break;
	case PARAM_BOOL:
		append(buf, size, "true or false");
		break;
	case PARAM_STRING:
		append(buf, size, "text of 1 to %" PRIu64 " bytes", p->max);
		break;
	case PARAM_NAME:
		append(buf, size, "number, or text of 1 to %" PRIu64 " bytes", p->max);
		break;
	case PARAM_BYTES:
		append(buf, size, "up to %" PRIu64 " bytes as hex text", p->max);
		break;
	case PARAM_ENUM:
		append(buf, size, "one of ");
		append_words(buf, size, p->words);
		break;
	case PARAM_FLAGS:
		append(buf, size, "list of ");
		append_words(buf, size, p->words);
		break;
	case PARAM_GID:
		append(buf, size, "IPv4 or IPv6 address as text");
		break;
	case PARAM_MAC:
		append(buf, size, "MAC address as text \"02:00:00:00:00:01\"");
		break;
	case PARAM_OBJECT:
		append(buf, size, "object of ");
		append_names(buf, size, p->fields);
		break;
	case PARAM_LIST:
		append(buf, size, "an object, or a list of %" PRIu64 "..%" PRIu64 " objects, of ",
			p->min, p->max);
		append_names(buf, size, p->fields);
		break;
	case PARAM_MAP:
		append(buf, size, "object of NAME: VALUE");
		break;
	case PARAM_MAPS:
		append(buf, size,
			"an object, or a list of %" PRIu64 "..%" PRIu64 " objects, of NAME: VALUE",
			p->min, p->max);
		break;
	}
	return buf;
}

const char *
param_default(const struct param *p, char *buf, size_t size)
{
	const struct param_word *w;

	if (p->def_text != NULL)
		return p->def_text;
	if ((p->flags & PARAM_DEFAULT) == 0)
		return NULL;
	buf[0] = '\0';
	if (p->type == PARAM_BOOL)
		append(buf, size, p->def != 0 ? "true" : "false");
	else if (p->type == PARAM_ENUM || p->type == PARAM_FLAGS)
		for (w = p->words; w->name != NULL; w++) {
			if (p->type == PARAM_ENUM ? w->value == p->def : (w->value & p->def) != 0)
				append(buf, size, "%s%s", buf[0] == '\0' ? "" : ", ", w->name);
		}
	else
		append(buf, size, "%" PRIu64, p->def);
	if (buf[0] == '\0')
		append(buf, size, "none");
	return buf;
}

/* --- decoding --- */

struct decoder {
	struct arena *arena;
	struct param_error *err;
	char path[96]; /* of the object being decoded, with its final dot: "wr[0]." */
};

static int decode_object(struct decoder *d, const struct param *table, json_t *obj, void *out);

static void
suggest(struct param_error *e, const struct nearest *n)
{
	if (n->word != NULL)
		append(e->text, sizeof(e->text), "; did you mean %s?", n->word);
}

static int
refuse(struct decoder *d, const struct param *p, const json_t *got)
{
	const struct param_word *w;
	struct nearest n;

	struct param_error *e = d->err;

	snprintf(e->parameter, sizeof(e->parameter), "%s%s", d->path, p->name);
	json_brief(got, e->got, sizeof(e->got));
	param_allowed(p, e->allowed, sizeof(e->allowed));
	snprintf(e->text, sizeof(e->text), "%s: got %s, allowed: %s", e->parameter, e->got,
		e->allowed);
	if (p->words != NULL && json_is_string(got)) {
		n = nearest_to(json_string_value(got));
		for (w = p->words; w->name != NULL; w++)
			nearest_try(&n, w->name);
		suggest(e, &n);
	}
	return -EINVAL;
}

static int
refuse_missing(struct decoder *d, const struct param *p)
{
	struct param_error *e = d->err;

	snprintf(e->parameter, sizeof(e->parameter), "%s%s", d->path, p->name);
	snprintf(e->got, sizeof(e->got), "nothing");
	param_allowed(p, e->allowed, sizeof(e->allowed));
	snprintf(e->text, sizeof(e->text), "%s: missing, allowed: %s", e->parameter, e->allowed);
	return -EINVAL;
}

static int
refuse_unknown(struct decoder *d, const struct param *table, const char *name)
{
	struct param_error *e = d->err;
	struct nearest n = nearest_to(name);
	const struct param *p;
	char brief[48];
	json_t *v = json_string(name);

	json_brief(v, brief, sizeof(brief));
	json_decref(v);
	snprintf(e->parameter, sizeof(e->parameter), "%s%.*s", d->path, (int)strlen(brief) - 2,
		brief + 1);
	if (table->name == NULL)
		snprintf(e->allowed, sizeof(e->allowed), "no parameters");
	else
		append_names(e->allowed, sizeof(e->allowed), table);
	snprintf(e->text, sizeof(e->text), "%s: unknown parameter, allowed: %s", e->parameter,
		e->allowed);
	for (p = table; p->name != NULL; p++)
		nearest_try(&n, p->name);
	suggest(e, &n);
	return -EINVAL;
}

/* Little-endian or not, a field takes the number by its own width. */
static void
store(void *field, size_t size, uint64_t v)
{
	switch (size) {
	case 1:
		*(uint8_t *)field = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)field = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)field = (uint32_t)v;
		break;
	default:
		*(uint64_t *)field = v;
	}
}

static bool
find_word(const struct param_word *words, const json_t *v, uint32_t *value)
{
	const char *text = json_string_value(v);

	for (; text != NULL && words->name != NULL; words++)
		if (strcasecmp(words->name, text) == 0) {
			*value = words->value;
			return true;
		}
	return false;
}

static int
decode_flags(struct decoder *d, const struct param *p, json_t *v, uint32_t *out)
{
	uint32_t bit, flags = 0;
	json_t *item;
	size_t i;

	if (!json_is_array(v))
		return refuse(d, p, v);
	json_array_foreach(v, i, item)
	{
		if (!find_word(p->words, item, &bit))
			return refuse(d, p, item);
		flags |= bit;
	}
	*out = flags;
	return 0;
}

static int
decode_string(struct decoder *d, const struct param *p, json_t *v, const char **out)
{
	size_t len = json_string_length(v);

	/* text with a NUL inside cannot come: the parser refuses it */
	if (!json_is_string(v) || len == 0 || len > p->max)
		return refuse(d, p, v);
	*out = json_string_value(v); /* lives as long as the request */
	return 0;
}

static int
decode_name(struct decoder *d, const struct param *p, json_t *v, const char **out)
{
	char *text;

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return decode_string(d, p, v, out);
	text = arena_alloc(d->arena, 24);
	if (text == NULL)
		return -ENOMEM;
	snprintf(text, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	*out = text;
	return 0;
}

static int
decode_bytes(struct decoder *d, const struct param *p, json_t *v, struct param_bytes *out)
{
	size_t len = json_string_length(v) / 2;
	uint8_t *data;

	if (!json_is_string(v) || len > p->max)
		return refuse(d, p, v);
	data = arena_alloc(d->arena, len + 1);
	if (data == NULL)
		return -ENOMEM;
	if (hex_decode(json_string_value(v), json_string_length(v), data, len) < 0)
		return refuse(d, p, v);
	out->data = data;
	out->len = len;
	return 0;
}

static int
decode_nested(struct decoder *d, const struct param *p, long index, json_t *v, void *out)
{
	size_t len = strlen(d->path);
	int rc;

	if (!json_is_object(v))
		return refuse(d, p, v);
	append(d->path, sizeof(d->path), "%s", p->name);
	if (index >= 0)
		append(d->path, sizeof(d->path), "[%ld]", index);
	append(d->path, sizeof(d->path), ".");
	rc = decode_object(d, p->fields, v, out);
	d->path[len] = '\0';
	return rc;
}

static int
decode_list(struct decoder *d, const struct param *p, json_t *v, struct param_list *out)
{
	size_t i, n = json_is_array(v) ? json_array_size(v) : 1;
	int rc = 0;

	if (n < p->min || n > p->max)
		return refuse(d, p, v);
	out->items = arena_alloc(d->arena, (n + 1) * p->item_size);
	if (out->items == NULL)
		return -ENOMEM;
	if (!json_is_array(v))
		rc = decode_nested(d, p, -1, v, out->items);
	else
		for (i = 0; i < n && rc == 0; i++)
			rc = decode_nested(d, p, (long)i, json_array_get(v, i),
				(char *)out->items + i * p->item_size);
	out->num = n;
	return rc;
}

/* What the names are is the handler's to check. */
static int
decode_map(struct decoder *d, const struct param *p, json_t *v, json_t **out)
{
	json_t *item;
	size_t i;

	if (!json_is_object(v) && (p->type == PARAM_MAP || !json_is_array(v)))
		return refuse(d, p, v);
	if (json_is_array(v) && (json_array_size(v) < p->min || json_array_size(v) > p->max))
		return refuse(d, p, v);
	json_array_foreach(v, i, item)
	{
		if (!json_is_object(item))
			return refuse(d, p, item);
	}
	*out = v;
	return 0;
}

static int
decode_value(struct decoder *d, const struct param *p, json_t *v, void *field)
{
	uint64_t u;
	bool ok = false;

	switch (p->type) {
	case PARAM_UINT:
		ok = value_u64(v, &u) && u >= p->min && u <= max_of(p);
		if (ok)
			store(field, p->size, u);
		break;
	case PARAM_BOOL:
		ok = json_is_boolean(v);
		if (ok)
			*(bool *)field = json_is_true(v);
		break;
	case PARAM_ENUM:
		ok = find_word(p->words, v, field);
		break;
	case PARAM_GID:
		ok = json_is_string(v) && gid_parse(json_string_value(v), field);
		break;
	case PARAM_MAC:
		ok = json_is_string(v) && mac_parse(json_string_value(v), field);
		break;
	case PARAM_STRING:
		return decode_string(d, p, v, field);
	case PARAM_NAME:
		return decode_name(d, p, v, field);
	case PARAM_BYTES:
		return decode_bytes(d, p, v, field);
	case PARAM_FLAGS:
		return decode_flags(d, p, v, field);
	case PARAM_OBJECT:
		return decode_nested(d, p, -1, v, field);
	case PARAM_LIST:
		return decode_list(d, p, v, field);
	case PARAM_MAP:
	case PARAM_MAPS:
		return decode_map(d, p, v, field);
	}
	return ok ? 0 : refuse(d, p, v);
}

static const struct param *
find_param(const struct param *table, const char *name)
{
	for (; table->name != NULL; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

static void
store_default(const struct param *p, void *field)
{
	if (p->type == PARAM_BOOL)
		*(bool *)field = p->def != 0;
	else
		store(field, p->size, p->def);
}

static int
decode_object(struct decoder *d, const struct param *table, json_t *obj, void *out)
{
	const struct param *p;
	const char *name;
	json_t *v;
	void *field;
	int rc;

	json_object_foreach(obj, name, v)
	{
		if (find_param(table, name) == NULL)
			return refuse_unknown(d, table, name);
	}
	for (p = table; p->name != NULL; p++) {
		field = (char *)out + p->offset;
		v = json_object_get(obj, p->name);
		if (v == NULL && (p->flags & PARAM_REQUIRED) != 0)
			return refuse_missing(d, p);
		if (v == NULL) {
			if ((p->flags & PARAM_DEFAULT) != 0)
				store_default(p, field);
			continue;
		}
		rc = decode_value(d, p, v, field);
		if (rc != 0)
			return rc;
		if (p->bit != 0)
			*(uint32_t *)out |= p->bit;
	}
	return 0;
}

int
param_decode(const struct param *table, json_t *obj, void *out, struct arena *arena,
	struct param_error *err)
{
	struct decoder d = { .arena = arena, .err = err };

	memset(err, 0, sizeof(*err));
	return decode_object(&d, table, obj, out);
}
