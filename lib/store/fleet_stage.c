/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The stage: parts of what is too large for a request, as keys s/NAME/ID/PART. NAME is the
 * appliance that has put them, whose lease they have: if it dies, they go. What it could not remove
 * at the end of a request goes when it begins the next one, with no other in between.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_private.h"

static void
put_stage_key(const struct fleet *f, const char *owner, uint64_t id, uint32_t part,
	char key[FLEET_KEY_MAX])
{
	snprintf(key, FLEET_KEY_MAX, "%.*s%.*s/%016" PRIx64 "/%08" PRIx32, FLEET_TEXT_MAX + 4,
		f->key.stage, FLEET_NAME_MAX, owner, id, part);
}

/* One operation without a condition. @param reply  NULL: it does not matter */
static int
stage_call(struct fleet *f, json_t *op, json_t **reply, struct error *err)
{
	json_t *got;
	int rc;

	if (!fleet_connected(f)) {
		json_decref(op);
		return fleet_not_served(f, err);
	}
	rc = fleet_writer_call(f, json_pack("{s:[o]}", "success", op), &got, err);
	if (rc != 0)
		return fleet_note_silence(f, rc);
	if (reply != NULL)
		*reply = got;
	else
		json_decref(got);
	return 0;
}

int
fleet_stage_put(struct fleet *f, uint64_t id, uint32_t part, const void *bytes, size_t len,
	struct error *err)
{
	uint64_t lease = fleet_lease(f);
	char key[FLEET_KEY_MAX];

	if (lease == 0)
		return error_set(err, EAGAIN, "this appliance has no lease at the moment");
	put_stage_key(f, f->config.name, id, part, key);
	return stage_call(f, etcd_put(key, bytes, len, lease), NULL, err);
}

int
fleet_stage_begin(struct fleet *f, struct error *err)
{
	char first[FLEET_KEY_MAX], end[FLEET_KEY_MAX];
	int rc = 0;

	snprintf(first, sizeof(first), "%.*s%s/", FLEET_TEXT_MAX + 4, f->key.stage, f->config.name);
	snprintf(end, sizeof(end), "%.*s%s0", FLEET_TEXT_MAX + 4, f->key.stage, f->config.name);
	if (f->stages == 0)
		rc = stage_call(f, etcd_delete_range(first, end), NULL, err);
	if (rc == 0)
		f->stages++;
	return rc;
}

void
fleet_stage_end(struct fleet *f, uint64_t id)
{
	f->stages--;
	if (!__atomic_load_n(&f->long_work_ends, __ATOMIC_RELAXED))
		stage_call(f, fleet_stage_remove_op(f, f->config.name, id), NULL, NULL);
}

int
fleet_stage_get(struct fleet *f, const char *owner, uint64_t id, uint32_t part, uint8_t **bytes,
	size_t *len, struct error *err)
{
	char key[FLEET_KEY_MAX];
	json_t *reply;
	struct etcd_kvs kvs;
	int rc;

	if (__atomic_load_n(&f->long_work_ends, __ATOMIC_RELAXED))
		return error_set(err, ECANCELED, "the appliance stops");
	put_stage_key(f, owner, id, part, key);
	rc = stage_call(f, etcd_get(key, NULL), &reply, err);
	if (rc != 0)
		return rc;
	rc = etcd_json_got(reply, &kvs, err);
	json_decref(reply);
	if (rc != 0)
		return rc;
	if (kvs.n == 0)
		rc = error_set(err, ENOENT, "part %" PRIu32 " is not staged any more", part);
	if (rc == 0) {
		*bytes = malloc(kvs.at[0].value_len + 1);
		*len = kvs.at[0].value_len;
		if (*bytes == NULL)
			rc = error_set(err, ENOMEM, "no memory for a part");
		else
			memcpy(*bytes, kvs.at[0].value, *len);
	}
	etcd_kvs_free(&kvs);
	return rc;
}
