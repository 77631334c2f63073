/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>
#include <strings.h>

#include "ctl/json_record.h"
#include "ctl/smp_attribute.h"
#include "sa/json.h"

/* Those that no record of subnet administration has (smp-sma 3). */
static const struct sa_field led_fields[] = {
	{
		.name = "led",
		.offset = 0,
		.bits = 1,
		.mask_bit = -1,
		.kind = SA_DEC,
		.help = "1: the LED is on",
	},
};
static const struct sa_field diag_fields[] = {
	{
		.name = "next_index",
		.offset = 0,
		.bits = 16,
		.mask_bit = -1,
		.kind = SA_DEC,
		.help = "modifier that brings more, 0: there is none",
	},
	{
		.name = "diag_data",
		.offset = 16,
		.bits = 62 * 8,
		.mask_bit = -1,
		.kind = SA_BYTES,
		.help = "the vendor's own",
	},
};
static const struct sa_record_type led_info = {
	.len = SMA_DATA_LEN,
	.name = "LedInfo",
	.fields = led_fields,
	.num_fields = 1,
};
static const struct sa_record_type vendor_diag = {
	.len = SMA_DATA_LEN,
	.name = "VendorDiag",
	.fields = diag_fields,
	.num_fields = 2,
};

const struct smp_attribute smp_attributes[] = {
	{ SMA_NODE_DESCRIPTION, "NodeDescription", "nodedesc", SA_NODE, NULL, 44, 108, "" },
	{ SMA_NODE_INFO, "NodeInfo", NULL, SA_NODE, NULL, 4, 44, "" },
	{ SMA_SWITCH_INFO, "SwitchInfo", NULL, SA_SWITCH_INFO, NULL, 4, 24, "" },
	{ SMA_GUID_INFO, "GUIDInfo", "guids", SA_GUID_INFO, NULL, 8, 72, "" },
	{ SMA_PORT_INFO, "PortInfo", NULL, SA_PORT_INFO, NULL, 4, 68,
		"port_state port_phys_state link_down_default link_width_enabled link_speed_enabled oper_vls client_reregister" },
	{ SMA_PKEY_TABLE, "P_KeyTable", "pkeys", SA_PKEY_TABLE, NULL, 8, 72, "" },
	{ SMA_SLTOVL, "SLtoVLMappingTable", "sl2vl", SA_SLTOVL, NULL, 8, 16, "" },
	{ SMA_VLARB, "VLArbitrationTable", "vlarb", SA_VLARB, NULL, 8, 72, "" },
	{ SMA_SM_INFO, "SMInfo", NULL, SA_SM_INFO, NULL, 4, 25, "" },
	{ SMA_NOTICE, "Notice", NULL, SA_NOTICE, NULL, 0, 64, "" },
	{ SMA_VENDOR_DIAG, "VendorDiag", NULL, 0, &vendor_diag, 0, 64, "" },
	{ SMA_LED_INFO, "LedInfo", NULL, 0, &led_info, 0, 64, "" },
	{ .name = NULL },
};

const struct smp_attribute *
smp_attribute(uint16_t id)
{
	const struct smp_attribute *t;

	for (t = smp_attributes; t->name != NULL; t++)
		if (t->id == id)
			return t;
	return NULL;
}

const struct smp_attribute *
smp_attribute_named(const char *name)
{
	const struct smp_attribute *t;

	for (t = smp_attributes; t->name != NULL; t++)
		if (strcasecmp(t->name, name) == 0 ||
			(t->alias != NULL && strcasecmp(t->alias, name) == 0))
			return t;
	return NULL;
}

static const struct sa_record_type *
attribute_type(const struct smp_attribute *t)
{
	return t->own != NULL ? t->own : sa_record_type(t->record);
}

static bool
has(const struct smp_attribute *t, const struct sa_field *f)
{
	return f->kind != SA_RESERVED && f->offset >= t->first * 8 &&
		f->offset + f->bits <= t->end * 8;
}

/* --- to JSON --- */

json_t *
smp_fields(const struct smp_attribute *t, const uint8_t data[SMA_DATA_LEN])
{
	const struct sa_record_type *type = attribute_type(t);
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	json_t *fields = json_object();
	const struct sa_field *f;

	memcpy(rec + t->first, data, t->end - t->first);
	for (f = type->fields; f < type->fields + type->num_fields; f++)
		if (has(t, f))
			json_object_set_new(fields, f->name, json_field(f, rec));
	return fields;
}

json_t *
smp_field_names(const struct smp_attribute *t)
{
	const struct sa_record_type *type = attribute_type(t);
	json_t *names = json_array();
	const struct sa_field *f;

	for (f = type->fields; f < type->fields + type->num_fields; f++)
		if (has(t, f))
			json_array_append_new(names, json_string(f->name));
	return names;
}

/* --- and back --- */

const char *
smp_field_unknown(const struct smp_attribute *t, json_t *fields)
{
	const struct sa_field *f;
	const char *name;
	json_t *v;

	json_object_foreach(fields, name, v) {
		f = sa_field_named(attribute_type(t), name);
		if (f == NULL || !has(t, f))
			return name;
	}
	return NULL;
}

/* Components wider than 64 bits stand on whole bytes. */
static void
copy(const struct sa_field *f, uint8_t *to, const uint8_t *from)
{
	if (f->bits <= 64)
		sa_put(f, to, sa_get(f, from));
	else
		memcpy(to + f->offset / 8, from + f->offset / 8, f->bits / 8);
}

int
smp_fields_put(const struct smp_attribute *t, json_t *fields, uint8_t data[SMA_DATA_LEN],
	struct error *err)
{
	const struct sa_record_type *type = attribute_type(t);
	uint8_t given[SA_RECORD_MAX], rec[SA_RECORD_MAX] = { 0 };
	const char *name;
	uint64_t mask;
	json_t *v;
	int rc;

	rc = record_from_json(type, fields, given, &mask, &name, err);
	if (rc != 0)
		return rc;
	memcpy(rec + t->first, data, t->end - t->first);
	json_object_foreach(fields, name, v)
		copy(sa_field_named(type, name), rec, given);
	memcpy(data, rec + t->first, t->end - t->first);
	return 0;
}

void
smp_fields_unchanged(const struct smp_attribute *t, uint8_t data[SMA_DATA_LEN])
{
	const struct sa_record_type *type = attribute_type(t);
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	const char *at;
	char name[32];
	size_t len;

	memcpy(rec + t->first, data, t->end - t->first);
	for (at = t->unchanged; *at != '\0'; at += len + (at[len] != '\0')) {
		len = strcspn(at, " ");
		memcpy(name, at, len);
		name[len] = '\0';
		sa_put_named(type, name, rec, 0);
	}
	memcpy(data, rec + t->first, t->end - t->first);
}
