/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What one appliance of a fleet passes to the leader in parts: see staged.h. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_debug.h>

#include "base/fnv.h"
#include "sa/form.h"
#include "sa/server.h"
#include "sa/staged.h"

#define RECORD_HEAD 7 /* bytes: attribute, removed, RID */

/* --- the form --- */

static void
form_head(struct form *f, struct staged_head *h)
{
	CHOICE(f, h->replace, SA_REPLACE_ALL);
	NUMBER(f, h->id);
	NUMBER(f, h->parts);
	NUMBER(f, h->len);
	NUMBER(f, h->sum);
	form_text(f, h->owner, sizeof(h->owner));
}

size_t
staged_put_head(const struct staged_head *h, uint8_t *bytes)
{
	struct form f = { .out = bytes, .len = STAGED_HEAD_MAX };
	struct staged_head copy = *h;

	form_head(&f, &copy);
	return f.bad ? 0 : f.at;
}

int
staged_get_head(struct staged_head *h, const uint8_t *bytes, size_t len)
{
	struct form f = { .in = bytes, .len = len };

	memset(h, 0, sizeof(*h));
	form_head(&f, h);
	return f.bad || f.at != len ? -EBADMSG : 0;
}

size_t
staged_put_part(const struct sa_change *records, size_t n, uint8_t *bytes, size_t size,
	size_t *taken)
{
	struct form f = { .out = bytes, .len = size };
	struct sa_change c;
	uint16_t attribute;
	size_t i;

	for (i = 0; i < n; i++) {
		c = records[i];
		attribute = c.type->attribute;
		if (f.len - f.at < RECORD_HEAD + (size_t)c.type->len)
			break;
		NUMBER(&f, attribute);
		FLAG(&f, c.remove);
		NUMBER(&f, c.rid);
		if (!c.remove)
			form_bytes(&f, c.rec, c.type->len);
	}
	*taken = i;
	return f.at;
}

size_t
staged_config_part(const struct sa_write *w, uint32_t part, uint8_t *bytes)
{
	uint64_t at = (uint64_t)part * STAGED_PART_MAX;
	size_t len;

	RTE_ASSERT(at < w->data_len);
	len = RTE_MIN(w->data_len - at, (uint64_t)STAGED_PART_MAX);
	config_read_wire(w, at, bytes, len);
	return len;
}

void
staged_count_config(const struct sa_write *w, struct staged_head *h)
{
	uint8_t wire[4096];
	uint32_t at;
	size_t len;

	h->parts = (w->data_len + STAGED_PART_MAX - 1) / STAGED_PART_MAX;
	h->len = w->data_len;
	h->sum = FNV_START;
	for (at = 0; at < w->data_len; at += len) {
		len = RTE_MIN(w->data_len - at, sizeof(wire));
		config_read_wire(w, at, wire, len);
		h->sum = fnv_add(h->sum, wire, len);
	}
}

/* @return false: the form is bad */
static bool
staged_next_record(struct form *f, struct sa_change *c)
{
	uint16_t attribute = 0;

	memset(c, 0, sizeof(*c));
	NUMBER(f, attribute);
	FLAG(f, c->remove);
	NUMBER(f, c->rid);
	c->type = f->bad ? NULL : sa_record_type(attribute);
	if (c->type == NULL)
		return false;
	if (!c->remove)
		form_bytes(f, c->rec, c->type->len);
	return !f->bad;
}

/* --- the change --- */

static uint16_t
status_of_import(int rc)
{
	switch (rc) {
	case 0:
		return MAD_STATUS_OK;
	case -ENOENT:
		return SA_STATUS_NO_RECORDS;
	case -EINVAL:
	case -EBADMSG:
		return SA_STATUS_REQ_INVALID;
	default:
		return SA_STATUS_NO_RESOURCES;
	}
}

uint16_t
write_import(struct write_batch *b, struct sa_write *w)
{
	struct form f = { .in = w->staged, .len = w->staged_len };
	struct error err = { "" };
	struct staged_head head;
	struct sa_change c;
	int rc;

	rc = staged_get_head(&head, w->forwarded, w->data_len);
	if (rc == 0)
		rc = write_remove_before(b, head.replace, &err);
	while (rc == 0 && f.at < f.len) {
		if (staged_next_record(&f, &c))
			rc = write_change(b, &c, &err);
		else
			rc = error_set(&err, EBADMSG, "the leader does not know a record of it");
	}
	snprintf((char *)w->rec, STAGED_TEXT_MAX, "%.*s", STAGED_TEXT_MAX - 1, err.text);
	return status_of_import(rc);
}
