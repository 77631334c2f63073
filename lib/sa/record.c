/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Components, masks, RIDs and wire forms of records, all driven by the record tables. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rte_common.h>

#include "record_private.h"
#include "wire/bits.h"
#include "wire/bytes.h"

/* offset of the block in records of forwarding tables; parts of a multicast table's block */
#define RID_OFF_BLOCK  2
#define MCAST_POSITION 0xF000
#define MCAST_BLOCK    0x01FF

const struct sa_record_type *
sa_record_type(uint16_t attribute)
{
	for (unsigned int i = 0; i < sa_num_record_types; i++)
		if (sa_record_types[i].attribute == attribute)
			return &sa_record_types[i];
	return NULL;
}

const struct sa_record_type *
sa_record_type_named(const char *name)
{
	unsigned long attribute;
	char *end;

	for (unsigned int i = 0; i < sa_num_record_types; i++)
		if (strcasecmp(sa_record_types[i].name, name) == 0 ||
			strcasecmp(sa_record_types[i].alias, name) == 0)
			return &sa_record_types[i];
	if (name[0] < '0' || name[0] > '9')
		return NULL;
	attribute = strtoul(name, &end, 0);
	return *end == '\0' && attribute <= UINT16_MAX ? sa_record_type((uint16_t)attribute) : NULL;
}

const struct sa_field *
sa_field_named(const struct sa_record_type *t, const char *name)
{
	for (unsigned int i = 0; i < t->num_fields; i++)
		if (t->fields[i].kind != SA_RESERVED && strcasecmp(t->fields[i].name, name) == 0)
			return &t->fields[i];
	return NULL;
}

/* The first two cases are the most frequent ones. */
uint64_t
sa_get(const struct sa_field *f, const uint8_t *rec)
{
	const uint8_t *p = rec + f->offset / 8;

	if (f->offset % 8 == 0 && f->bits == 16)
		return get_be16(p);
	if (f->offset % 8 == 0 && f->bits >= 64)
		return get_be64(p);
	return get_bits(rec, f->offset, RTE_MIN(f->bits, 64u));
}

void
sa_put(const struct sa_field *f, uint8_t *rec, uint64_t value)
{
	put_bits(rec, f->offset, RTE_MIN(f->bits, 64u), value);
}

uint64_t
sa_get_named(const struct sa_record_type *t, const char *name, const uint8_t *rec)
{
	return sa_get(sa_field_named(t, name), rec);
}

void
sa_put_named(const struct sa_record_type *t, const char *name, uint8_t *rec, uint64_t value)
{
	sa_put(sa_field_named(t, name), rec, value);
}

static uint64_t
field_mask(const struct sa_field *f, unsigned int missing)
{
	return ((1ull << sa_components(f)) - 1) << ((unsigned int)f->mask_bit - missing);
}

/*
 * sa-multipacket A7: version 1 numbers neither the RID part nor the components it lacks. Fields are
 * in the order of their bits; `missing` counts the components lacking so far, from rid_components
 * on.
 */
static uint64_t
field_mask_v1(const struct sa_record_type *t, const struct sa_field *f, unsigned int *missing)
{
	if (f->mask_bit < t->rid_components)
		return 0;
	if (f->v2_only) {
		*missing += sa_components(f);
		return 0;
	}
	return field_mask(f, *missing);
}

uint64_t
sa_mask(const struct sa_record_type *t, const struct sa_field *f, enum sa_version v)
{
	unsigned int missing = t->rid_components;

	if (f->mask_bit < 0)
		return 0;
	if (v == SA_V2)
		return field_mask(f, 0);
	for (const struct sa_field *before = t->fields; before < f; before++)
		field_mask_v1(t, before, &missing);
	return field_mask_v1(t, f, &missing);
}

uint64_t
sa_mask_v2(const struct sa_record_type *t, uint64_t mask, enum sa_version v)
{
	unsigned int missing = t->rid_components;
	uint64_t v2 = 0;

	if (v == SA_V2)
		return mask;
	for (const struct sa_field *f = t->fields; f < t->fields + t->num_fields; f++) {
		uint64_t here = field_mask_v1(t, f, &missing);

		v2 |= (mask & here) << missing;
	}
	return v2;
}

uint64_t
sa_mask_known(const struct sa_record_type *t)
{
	uint64_t known = 0;

	for (unsigned int i = 0; i < t->num_fields; i++)
		known |= sa_mask(t, &t->fields[i], SA_V2);
	return known;
}

/* sa-multipacket A6: LID(16) | PortNumber(8) | Enumeration(8), or LID | block number */
uint32_t
sa_rid(const struct sa_record_type *t, const uint8_t *rec)
{
	uint32_t rid;

	if (t->rid_len == 0)
		return 0;
	rid = (uint32_t)get_be16(rec) << 16;
	if (t->rid_form == SA_RID_BLOCK)
		return rid | get_be16(rec + RID_OFF_BLOCK);
	if (t->rid_form == SA_RID_MULTICAST) {
		uint16_t place = get_be16(rec + RID_OFF_BLOCK);

		return rid | (place & MCAST_POSITION) | (place & MCAST_BLOCK) << 2;
	}
	if (t->rid_port != 0)
		rid |= (uint32_t)rec[t->rid_port] << 8;
	if (t->rid_enum != 0)
		rid |= rec[t->rid_enum];
	return rid;
}

void
sa_rid_put(const struct sa_record_type *t, uint8_t *rec, uint32_t rid)
{
	if (t->rid_len == 0)
		return;
	memset(rec, 0, t->rid_len);
	put_be16(rec, (uint16_t)(rid >> 16));
	if (t->rid_form == SA_RID_BLOCK)
		put_be16(rec + RID_OFF_BLOCK, (uint16_t)rid);
	if (t->rid_form == SA_RID_MULTICAST)
		put_be16(rec + RID_OFF_BLOCK,
			(uint16_t)((rid & MCAST_POSITION) | (rid >> 2 & MCAST_BLOCK)));
	if (t->rid_port != 0)
		rec[t->rid_port] = (uint8_t)(rid >> 8);
	if (t->rid_enum != 0)
		rec[t->rid_enum] = (uint8_t)rid;
}

/* Length of the RID before a version 1 record; attributes of the class itself are no records. */
static uint16_t
rid_bytes(const struct sa_record_type *t)
{
	return t->attribute < SA_NODE ? 0 : 4;
}

uint16_t
sa_wire_len(const struct sa_record_type *t, enum sa_version v)
{
	return v == SA_V2 ? t->stride : (uint16_t)(rid_bytes(t) + t->len - t->rid_len);
}

void
sa_encode(const struct sa_record_type *t, enum sa_version v, const uint8_t *rec, uint32_t rid,
	uint8_t *wire)
{
	if (v == SA_V2) {
		memcpy(wire, rec, t->len);
		memset(wire + t->len, 0, t->stride - t->len);
		return;
	}
	if (rid_bytes(t) != 0)
		put_be32(wire, rid);
	memcpy(wire + rid_bytes(t), rec + t->rid_len, t->len - t->rid_len);
}

void
sa_decode(const struct sa_record_type *t, enum sa_version v, const uint8_t *wire, uint8_t *rec,
	uint32_t *rid)
{
	if (v == SA_V2) {
		memcpy(rec, wire, t->len);
		*rid = sa_rid(t, rec);
		return;
	}
	*rid = rid_bytes(t) != 0 ? get_be32(wire) : 0;
	sa_rid_put(t, rec, *rid);
	memcpy(rec + t->rid_len, wire + rid_bytes(t), t->len - t->rid_len);
}
