/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The table read the other way: a configuration as JSON, and the JSON schema.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_ether.h>

#include "config.h"

static json_t *encode(const struct key *k, const void *field);

static json_t *
encode_prefix(const struct link_addr *a)
{
	char text[GID_STRLEN];

	if (gid_is_zero(&a->gid))
		return NULL;
	return json_sprintf("%s/%u", gid_print(&a->gid, text), a->prefix_len);
}

static json_t *
encode_address(const union gid *gid)
{
	char text[GID_STRLEN];

	return gid_is_zero(gid) ? NULL : json_string(gid_print(gid, text));
}

static json_t *
encode_mac(const uint8_t *mac)
{
	struct rte_ether_addr a;
	char text[RTE_ETHER_ADDR_FMT_SIZE];

	memcpy(a.addr_bytes, mac, sizeof(a.addr_bytes));
	if (rte_is_zero_ether_addr(&a))
		return NULL;
	rte_ether_format_addr(text, sizeof(text), &a);
	return json_string(text);
}

static json_t *
encode_enum(const struct key *k, uint32_t value)
{
	const struct key_word *w;

	for (w = k->words; w->name != NULL; w++)
		if (w->value == value)
			return json_string(w->name);
	return NULL;
}

static json_t *
encode_object(const struct key *k, const void *base)
{
	json_t *obj = json_object(), *v;
	const struct key *f;

	for (f = k->fields; f->name != NULL; f++) {
		if ((f->flags & KEY_NOTED) && !*(const bool *)((const char *)base + f->num_offset))
			continue;
		v = encode(f, (const char *)base + f->offset);
		if (v != NULL)
			json_object_set_new(obj, f->name, v);
	}
	if (k->flags & KEY_SHORTHAND && json_object_size(obj) == 1) {
		v = json_incref(json_object_get(obj, k->fields[0].name));
		json_decref(obj);
		return v;
	}
	return obj;
}

static json_t *
encode_list(const struct key *k, const void *base)
{
	unsigned int n = *(const unsigned int *)((const char *)base - k->offset + k->num_offset);
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < n; i++)
		json_array_append_new(
				list, encode(&k->fields[0], (const char *)base + i * k->stride));
	return list;
}

/* A value as JSON; NULL: it says "as if the key were not there". */
static json_t *
encode(const struct key *k, const void *field)
{
	uint64_t n;

	switch (k->type) {
	case KEY_BOOL:
		return json_boolean(*(const bool *)field);
	case KEY_UINT:
		n = config_number(field, k->size);
		return n < k->min || n > k->max ? NULL : json_integer((json_int_t)n);
	case KEY_HEX:
		n = config_number(field, k->size);
		return n < k->min || n > k->max ? NULL : json_sprintf("0x%" PRIx64, n);
	case KEY_TEXT:
		return *(const char *)field != '\0' ? json_string(field) : NULL;
	case KEY_ENUM:
		return encode_enum(k, *(const uint32_t *)field);
	case KEY_MAC:
		return encode_mac(field);
	case KEY_ADDRESS:
		return encode_address(field);
	case KEY_PREFIX:
		return encode_prefix(field);
	case KEY_OBJECT:
		return encode_object(k, field);
	case KEY_LIST:
		return encode_list(k, field);
	}
	return NULL;
}

static int
print(json_t *v, FILE *f)
{
	int ret = json_dumpf(v, f, JSON_INDENT(2));

	json_decref(v);
	return ret != 0 || fputc('\n', f) == EOF || fflush(f) != 0 ? -EIO : 0;
}

int
config_print(const struct config *c, FILE *f)
{
	return print(encode(&config_root, c), f);
}

/* --- the schema --- */

static json_t *schema(const struct key *k, const void *def);

static json_t *
schema_uint(const struct key *k)
{
	json_t *list;
	uint64_t n;

	if ((k->flags & KEY_POWER_OF_TWO) == 0)
		return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
				(json_int_t)k->min, "maximum", (json_int_t)k->max);
	list = json_array();
	for (n = 1; n <= k->max; n *= 2)
		if (n >= k->min)
			json_array_append_new(list, json_integer((json_int_t)n));
	return json_pack("{s:o}", "enum", list);
}

static json_t *
schema_enum(const struct key *k)
{
	const struct key_word *w;
	json_t *list = json_array();

	for (w = k->words; w->name != NULL; w++)
		json_array_append_new(list, json_string(w->name));
	return json_pack("{s:o}", "enum", list);
}

static json_t *
schema_object(const struct key *k, const void *base)
{
	json_t *properties = json_object(), *required = json_array(), *obj;
	const struct key *f;

	for (f = k->fields; f->name != NULL; f++) {
		json_object_set_new(properties, f->name,
				schema(f, base != NULL ? (const char *)base + f->offset : NULL));
		if (f->flags & KEY_REQUIRED)
			json_array_append_new(required, json_string(f->name));
	}
	obj = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
			"additionalProperties", 0);
	if (json_array_size(required) > 0)
		json_object_set(obj, "required", required);
	json_decref(required);
	if (k->flags & KEY_SHORTHAND)
		obj = json_pack("{s:[o, o]}", "anyOf", schema(&k->fields[0], NULL), obj);
	return obj;
}

static json_t *
schema_type(const struct key *k, const void *def)
{
	switch (k->type) {
	case KEY_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case KEY_UINT:
		return schema_uint(k);
	case KEY_HEX:
		return json_pack("{s:[s, s], s:s, s:i}", "type", "string", "integer", "pattern",
				"^0[xX][0-9A-Fa-f]{1,16}$", "minimum", 0);
	case KEY_TEXT:
		return json_pack("{s:s, s:I}", "type", "string", "maxLength",
				(json_int_t)(k->size - 1));
	case KEY_ENUM:
		return schema_enum(k);
	case KEY_MAC:
		return json_pack("{s:s, s:s}", "type", "string", "pattern",
				"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$");
	case KEY_ADDRESS:
		return json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-9A-Fa-f:.]+$");
	case KEY_PREFIX:
		return json_pack("{s:s, s:s}", "type", "string", "pattern",
				"^[0-9A-Fa-f:.]+/[0-9]{1,3}$");
	case KEY_OBJECT:
		return schema_object(k, def);
	case KEY_LIST:
		return json_pack("{s:s, s:I, s:I, s:o}", "type", "array", "minItems",
				(json_int_t)k->min, "maxItems", (json_int_t)k->max, "items",
				schema(&k->fields[0], k->init));
	}
	return NULL;
}

/* def: the field in a configuration that says nothing, or NULL where there is no such field. */
static json_t *
schema(const struct key *k, const void *def)
{
	json_t *s = schema_type(k, def), *v;

	if (k->help != NULL)
		json_object_set_new(s, "description", json_string(k->help));
	if (def == NULL || k->type == KEY_OBJECT || k->type == KEY_LIST)
		return s;
	v = encode(k, def);
	if (v != NULL)
		json_object_set_new(s, "default", v);
	return s;
}

int
config_print_schema(FILE *f)
{
	static struct config c;
	json_t *s;

	config_init(&c);
	s = schema(&config_root, &c);
	json_object_set_new(s, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(s, "title", json_string("polca"));
	return print(s, f);
}
