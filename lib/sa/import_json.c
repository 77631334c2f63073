/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Import our own JSON: {"records": [{"record": "NodeRecord", "lid": 1, ...}, ...]}, or only the
 * list. Records are decoded one at a time, so a file may be larger than memory for its decoded
 * form.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sa/import.h"
#include "sa/json.h"
#include "sa/layout.h"
#include "wire/bytes.h"

#define SL_BLOCKS (LID_UNICAST_END / LFT_PORTS)

/* SLs of the PathRecords from one LID, in blocks by destination LID; NULL: none known. */
struct sl_row {
	uint8_t *block[SL_BLOCKS];
};

struct file {
	const char *at;
	const char *end;
	unsigned int line; /* line number of .at */
	const struct sa_import_sink *sink;
	struct sa_change change;
	struct sl_row **sls; /* by source LID; NULL: no PathRecord seen */
};

static const char *
text_of(const json_t *v, char buf[32])
{
	if (json_is_integer(v)) {
		snprintf(buf, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return buf;
	}
	if (json_is_boolean(v))
		return json_is_true(v) ? "1" : "0";
	return json_string_value(v);
}

int
record_from_json(const struct sa_record_type *t, json_t *fields, uint8_t *rec, uint64_t *mask,
	const char **unknown, struct error *err)
{
	const struct sa_field *f;
	const char *name, *text;
	char buf[32];
	json_t *v;

	memset(rec, 0, t->len);
	*mask = 0;
	*unknown = NULL;
	json_object_foreach(fields, name, v) {
		if (strcmp(name, "record") == 0 || strcmp(name, "rid") == 0)
			continue;
		f = sa_field_named(t, name);
		if (f == NULL) {
			*unknown = name;
			return error_set(err, EINVAL, "%s: %s has no such field", name, t->name);
		}
		text = text_of(v, buf);
		if (text == NULL)
			return error_set(err, EINVAL, "%s: expected text or a number", name);
		if (sa_parse(f, rec, text, err) != 0)
			return -EINVAL;
		*mask |= sa_mask(t, f, SA_V2);
	}
	return 0;
}

static void
json_file_advance(struct file *f, size_t n)
{
	for (; n > 0; n--)
		f->line += *f->at++ == '\n';
}

/* The next character that is not blank; 0 at the end. */
static char
json_file_peek(struct file *f)
{
	while (f->at < f->end && strchr(" \t\r\n", *f->at) != NULL && *f->at != '\0')
		json_file_advance(f, 1);
	return f->at < f->end ? *f->at : '\0';
}

static bool
json_file_take(struct file *f, char c)
{
	if (json_file_peek(f) != c || f->at == f->end)
		return false;
	json_file_advance(f, 1);
	return true;
}

static int
json_file_refuse(struct file *f, const char *expected, struct error *err)
{
	char got[16] = "the end";

	json_file_peek(f);
	if (f->at < f->end)
		snprintf(got, sizeof(got), *f->at > ' ' && *f->at <= '~' ? "'%c'" : "byte 0x%02x",
			(unsigned char)*f->at);
	return error_set(err, EINVAL, "line %u: got %s, expected %s", f->line, got, expected);
}

/* "0x00010000", for records whose RID is not part of the record. */
static bool
read_rid(struct sa_change *c, const json_t *rid)
{
	const char *text = json_string_value(rid);
	char *end;

	if (rid == NULL || c->type->rid_len > 0)
		return true;
	if (text == NULL || strncmp(text, "0x", 2) != 0 || strlen(text) > 10 || text[2] == '\0')
		return false;
	c->rid = (uint32_t)strtoul(text + 2, &end, 16);
	return *end == '\0' && text[2] != '-' && text[2] != '+' && text[2] != ' ';
}

static int
json_file_read_record(struct sa_change *c, json_t *record, struct error *err)
{
	const char *type = json_string_value(json_object_get(record, "record")), *unknown;
	uint64_t mask;

	memset(c, 0, sizeof(*c));
	if (type == NULL)
		return error_set(err, EINVAL, "a record is an object with \"record\": its type");
	c->type = sa_record_type_named(type);
	if (c->type == NULL)
		return error_set(err, EINVAL, "record: got \"%.40s\", which is not a record type",
			type);
	if (!c->type->stored && c->type->attribute != SA_PATH)
		return error_set(err, EINVAL, "record: got \"%s\", which is not stored", type);
	if (!read_rid(c, json_object_get(record, "rid")))
		return error_set(err, EINVAL, "rid: expected text like \"0x00010000\"");
	return record_from_json(c->type, record, c->rec, &mask, &unknown, err);
}

/* --- SLs of paths --- */

static uint8_t *
sl_block(struct file *f, uint16_t slid, unsigned int block)
{
	struct sl_row **row;
	uint8_t **sls;

	if (f->sls == NULL)
		f->sls = calloc(LID_UNICAST_END, sizeof(*f->sls));
	if (f->sls == NULL)
		return NULL;
	row = &f->sls[slid];
	if (*row == NULL)
		*row = calloc(1, sizeof(**row));
	if (*row == NULL)
		return NULL;
	sls = &(*row)->block[block];
	if (*sls == NULL) {
		*sls = malloc(LFT_PORTS);
		if (*sls != NULL)
			memset(*sls, PATH_SL_UNKNOWN, LFT_PORTS);
	}
	return *sls;
}

static int
keep_sl(struct file *f, struct error *err)
{
	const uint8_t *rec = f->change.rec;
	uint16_t slid = get_be16(rec + PR_OFF_SLID), dlid = get_be16(rec + PR_OFF_DLID);
	uint8_t *block;

	if (slid >= LID_UNICAST_END || slid == 0)
		return error_set(err, EINVAL, "slid: got %u, expected a LID from 1 to 49151", slid);
	if (dlid >= LID_UNICAST_END) /* a multicast group: its MCMemberRecord has the SL */
		return 0;
	block = sl_block(f, slid, dlid / LFT_PORTS);
	if (block == NULL)
		return error_set(err, ENOMEM, "no memory for the SLs of paths");
	block[dlid % LFT_PORTS] = get_be16(rec + PR_OFF_SL) & 0xF;
	return 0;
}

static int
put_sl_block(struct file *f, uint16_t slid, uint16_t block, const uint8_t *sls)
{
	f->change = (struct sa_change){ .type = sa_record_type(SA_PATH_SL) };
	put_be16(f->change.rec, slid);
	put_be16(f->change.rec + 2, block);
	memcpy(f->change.rec + PATH_SL_OFF_SLS, sls, LFT_PORTS);
	return f->sink->take(f->sink->arg, &f->change);
}

/* At the end of the file: pass on all SLs. */
static int
put_sls(struct file *f, struct error *err)
{
	unsigned int slid, block;
	int rc = 0;

	for (slid = 1; f->sls != NULL && slid < LID_UNICAST_END; slid++)
		for (block = 0; f->sls[slid] != NULL && block < SL_BLOCKS && rc == 0; block++)
			if (f->sls[slid]->block[block] != NULL)
				rc = put_sl_block(f, (uint16_t)slid, (uint16_t)block,
					f->sls[slid]->block[block]);
	return rc == 0 ? 0
		       : error_set(err, -rc, "SLs of paths could not be stored: %s", strerror(-rc));
}

static void
forget_sls(struct file *f)
{
	unsigned int slid, block;

	for (slid = 1; f->sls != NULL && slid < LID_UNICAST_END; slid++) {
		for (block = 0; f->sls[slid] != NULL && block < SL_BLOCKS; block++)
			free(f->sls[slid]->block[block]);
		free(f->sls[slid]);
	}
	free(f->sls);
}

/* --- records --- */

/* An error in a record of several lines names the line where the record begins. */
static int
json_file_take_record(struct file *f, struct error *err)
{
	json_error_t json_err;
	struct error why = { "" };
	json_t *record;
	int rc;

	if (json_file_peek(f) != '{')
		return json_file_refuse(f, "a record as {...}", err);
	record = json_loadb(f->at, (size_t)(f->end - f->at),
		JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &json_err);
	if (record == NULL)
		return error_set(err, EINVAL, "line %u: %s",
			f->line + (unsigned int)json_err.line - 1, json_err.text);
	rc = json_file_read_record(&f->change, record, &why);
	json_decref(record);
	if (rc != 0)
		return error_set(err, -rc, "line %u: %s", f->line, why.text);
	if (f->change.type->attribute == SA_PATH) {
		rc = keep_sl(f, &why);
		if (rc != 0)
			return error_set(err, -rc, "line %u: %s", f->line, why.text);
		json_file_advance(f, (size_t)json_err.position);
		return 0;
	}
	rc = f->sink->take(f->sink->arg, &f->change);
	if (rc != 0)
		return error_set(err, -rc, "line %u: the record could not be stored: %s", f->line,
			strerror(-rc));
	json_file_advance(f, (size_t)json_err.position);
	return 0;
}

static bool
take_key(struct file *f, const char *key)
{
	size_t len = strlen(key);

	if (json_file_peek(f) != '"' || (size_t)(f->end - f->at) < len ||
		memcmp(f->at, key, len) != 0)
		return false;
	json_file_advance(f, len);
	return true;
}

/* A string without escapes. */
static bool
take_string(struct file *f)
{
	const char *end;

	if (!json_file_take(f, '"'))
		return false;
	end = memchr(f->at, '"', (size_t)(f->end - f->at));
	if (end == NULL)
		return false;
	json_file_advance(f, (size_t)(end - f->at) + 1);
	return true;
}

static int
take_list(struct file *f, struct error *err)
{
	int rc;

	if (!json_file_take(f, '['))
		return json_file_refuse(f, "the list of records, [", err);
	if (json_file_take(f, ']'))
		return 0;
	do {
		rc = json_file_take_record(f, err);
		if (rc != 0)
			return rc;
	} while (json_file_take(f, ','));
	return json_file_take(f, ']') ? 0 : json_file_refuse(f, ", and a record or ]", err);
}

/* Skip the members after "records", such as the status of a query. */
static int
skip_members(struct file *f, struct error *err)
{
	json_error_t why;
	json_t *value;

	while (json_file_take(f, ',')) {
		value = NULL;
		if (take_string(f) && json_file_take(f, ':'))
			value = json_loadb(f->at, (size_t)(f->end - f->at),
				JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &why);
		if (value == NULL)
			return json_file_refuse(f, "a name and its value", err);
		json_decref(value);
		json_file_advance(f, (size_t)why.position);
	}
	return 0;
}

static int
json_file_read(struct file *f, struct error *err)
{
	bool object = json_file_take(f, '{');
	int rc;

	if (object && (!take_key(f, "\"records\"") || !json_file_take(f, ':')))
		return json_file_refuse(f, "\"records\": and the list of records", err);
	rc = take_list(f, err);
	if (rc == 0 && object)
		rc = skip_members(f, err);
	if (rc != 0)
		return rc;
	if (object && !json_file_take(f, '}'))
		return json_file_refuse(f, "} after the records", err);
	json_file_peek(f);
	return f->at == f->end ? put_sls(f, err) : json_file_refuse(f, "the end", err);
}

int
sa_import_json(const char *text, size_t len, const struct sa_import_sink *sink, struct error *err)
{
	struct file f = { .at = text, .end = text + len, .line = 1, .sink = sink };
	int rc = json_file_read(&f, err);

	forget_sls(&f);
	return rc;
}
