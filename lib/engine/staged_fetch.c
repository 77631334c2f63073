/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The leader of a fleet reads the records that another appliance has staged for a request. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "engine/staged_fetch.h"
#include "engine/store_fleet.h"
#include "sa/staged.h"
#include "sa/write.h"
#include "store/fleet.h"

/* All parts behind each other. */
static int
staged_fetch_parts(const struct store_fleet *side, const struct staged_head *head, uint8_t *bytes,
	struct error *err)
{
	size_t at = 0, len;
	uint8_t *got;
	uint32_t part;
	int rc = 0;

	for (part = 0; rc == 0 && part < head->parts; part++) {
		rc = fleet_stage_get(side->fleet, head->owner, head->id, part, &got, &len, err);
		if (rc != 0)
			return rc;
		if (len <= head->len - at)
			memcpy(bytes + at, got, len);
		else
			rc = -EBADMSG;
		at += rc == 0 ? len : 0;
		free(got);
	}
	if (rc != 0 || at != head->len || fnv_add(FNV_START, bytes, at) != head->sum)
		return error_set(err, EBADMSG, "its parts are not what %s has announced",
			head->owner);
	return 0;
}

int
staged_fetch(const struct store_fleet *side, struct sa_write *write, struct error *err)
{
	struct staged_head head;
	uint8_t *bytes;
	int rc;

	rc = staged_get_head(&head, write->forwarded, write->data_len);
	if (rc != 0)
		return error_set(err, EBADMSG, "it names no parts");
	if (head.len > side->max_import || head.parts > head.len)
		return error_set_limit(err, EFBIG,
			"got %" PRIu64 " bytes of records, allowed: %" PRIu64
			" (sa.max_import_mb of the leader)",
			head.len, side->max_import);
	bytes = malloc(head.len + 1);
	if (bytes == NULL)
		return error_set(err, ENOMEM, "no memory for it");
	rc = staged_fetch_parts(side, &head, bytes, err);
	if (rc != 0) {
		free(bytes);
		return rc;
	}
	write->staged = bytes;
	write->staged_len = head.len;
	return 0;
}
