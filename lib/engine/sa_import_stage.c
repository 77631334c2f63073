/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Imports at an appliance of a fleet that does not lead: the steps. The records are staged in etcd,
 * part by part. Then a request names them, and goes the way of all requests: the leader reads the
 * parts and makes the import as one change, with the answer in the same transaction.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "engine/sa_import_stage.h"
#include "store/fleet.h"
#include "wire/bytes.h"

#define PART_TRIES  20
#define STAGE_TRIES 5 /* of all parts, each with another lease */

/* What the import's thread asks of the store's. */
struct stage_call {
	uint64_t id;
	uint32_t part;
	const uint8_t *bytes;
	size_t len;
	uint64_t lease; /* of the first part */
	struct error err;
};

static int
stage_part(struct fleet *f, void *arg)
{
	struct stage_call *c = arg;

	if (c->part == 0)
		c->lease = fleet_lease(f);
	return fleet_stage_put(f, c->id, c->part, c->bytes, c->len, &c->err);
}

static int
stage_begin(struct fleet *f, void *arg)
{
	struct stage_call *c = arg;

	return fleet_stage_begin(f, &c->err);
}

static int
stage_end(struct fleet *f, void *arg)
{
	struct stage_call *c = arg;

	fleet_stage_end(f, c->id);
	return 0;
}

static int
import_stage_part(const struct import_thread *t, struct stage_call *c)
{
	unsigned int tries = 0;
	int rc;

	if (t->stops(t->arg))
		return error_set(&c->err, ECANCELED, "the appliance stops");
	do
		rc = t->call(t->arg, stage_part, c);
	while (rc != 0 && rc != -ENOSPC && ++tries < PART_TRIES && t->pause(t->arg));
	return rc;
}

static int
import_stage(const struct import_thread *t, struct staged_head *head, uint64_t *lease,
	const struct sa_change *records, size_t n, struct error *err)
{
	uint8_t *bytes = malloc(t->part_max);
	struct stage_call c = { .id = head->id, .bytes = bytes };
	size_t at, taken;
	int rc = 0;

	head->parts = 0;
	head->len = 0;
	head->sum = FNV_START;
	if (bytes == NULL)
		return error_set(err, ENOMEM, "no memory for an import");
	for (at = 0; rc == 0 && at < n; at += taken) {
		c.part = head->parts;
		c.len = staged_put_part(records + at, n - at, bytes, t->part_max, &taken);
		rc = import_stage_part(t, &c);
		head->parts++;
		head->len += c.len;
		head->sum = fnv_add(head->sum, bytes, c.len);
	}
	free(bytes);
	*lease = c.lease;
	return rc == 0 ? 0 : error_set(err, -rc, "%s", c.err.text);
}

static int
import_result(const struct sa_write *w, struct error *err)
{
	const char *text = (const char *)w->rec;

	if (w->status == MAD_STATUS_OK)
		return 0;
	if (w->unstaged)
		return error_set(err, ESTALE, "this appliance's lease ends again and again");
	if (w->not_made)
		return error_set(err, EAGAIN, "the import was not made: %.*s", STAGED_TEXT_MAX - 1,
			text);
	if (text[0] != '\0')
		return error_set(err, EINVAL, "the leader refuses: %.*s", STAGED_TEXT_MAX - 1,
			text);
	return error_set(err, EINPROGRESS,
		"the leader has not confirmed it (status 0x%04x): see whether the records are there before you import them again",
		w->status);
}

static int
import_ask_leader(const struct import_thread *t, struct import_request *request,
	const struct staged_head *head, uint64_t lease, struct error *err)
{
	struct sa_write *w = &request->write;

	memset(w, 0, sizeof(*w));
	w->kind = WRITE_IMPORT;
	w->version = SA_V2;
	w->type = sa_record_type(SA_NODE);
	w->stage_lease = lease;
	w->forwarded = request->head;
	w->data_len = (uint32_t)staged_put_head(head, request->head);
	put_be64(w->reply + MAD_OFF_TID, t->random()); /* each request is one of its own */
	if (!t->ask(t->arg))
		return error_set(err, EINPROGRESS,
			"the appliance stops: it is not known whether the import was made");
	return import_result(w, err);
}

int
import_staged(const struct import_thread *t, struct import_request *request,
	enum sa_replaced replace, const struct sa_change *records, size_t n, struct error *err)
{
	struct staged_head head = { .replace = replace, .id = t->random() };
	struct stage_call c = { .id = head.id };
	unsigned int tries = 0;
	uint64_t lease = 0;
	int rc;

	snprintf(head.owner, sizeof(head.owner), "%s", t->owner);
	rc = t->call(t->arg, stage_begin, &c);
	if (rc != 0)
		return error_set(err, -rc, "%s", c.err.text);
	do {
		rc = import_stage(t, &head, &lease, records, n, err);
		if (rc == 0 && t->stops(t->arg))
			rc = error_set(err, ECANCELED, "the appliance stops");
		if (rc == 0)
			rc = import_ask_leader(t, request, &head, lease, err);
	} while (rc == -ESTALE && ++tries < STAGE_TRIES);
	t->call(t->arg, stage_end, &c);
	return rc;
}
