/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Data of multi-packet requests: a Config's records, a GetMulti's GIDs. Reads at any offset, so
 * that any segment can be sent again.
 */

#include <string.h>

#include "sa/client_private.h"
#include "sa/layout.h"

static int
config_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct client_query *s = arg;
	uint8_t wire[4 + SA_RECORD_MAX];
	uint32_t n, at;
	uint64_t i;

	while (len > 0) {
		i = offset / s->wire_len;
		at = (uint32_t)(offset % s->wire_len);
		n = s->wire_len - at < len ? s->wire_len - at : len;
		sa_encode(s->type, SA_V1, s->records + i * SA_RECORD_MAX,
			s->rids != NULL ? s->rids[i] : 0, wire);
		memcpy(buf, wire + at, n);
		buf += n;
		offset += n;
		len -= n;
	}
	return 0;
}

static int
multi_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct client_query *s = arg;
	uint32_t n;

	if (offset < MPR_LEN) {
		n = MPR_LEN - offset < len ? MPR_LEN - offset : len;
		memcpy(buf, s->multi + offset, n);
		buf += n;
		offset += n;
		len -= n;
	}
	memcpy(buf, s->records + offset - MPR_LEN, len);
	return 0;
}

static void
client_source_release(void *arg)
{
	(void)arg; /* the caller keeps records and GIDs until done() */
}

void
client_source(struct client_query *s, const struct sa_query *q, struct mad_source *source)
{
	source->arg = s;
	source->release = client_source_release;
	if (q->op == SA_OP_MULTI) {
		memcpy(s->multi, q->tmpl, MPR_LEN);
		s->records = q->gids;
		source->length =
			MPR_LEN + 16u * (q->tmpl[MPR_OFF_SGID_COUNT] + q->tmpl[MPR_OFF_DGID_COUNT]);
		source->read = multi_read;
		return;
	}
	source->length = (uint64_t)q->num_records * s->wire_len;
	source->read = config_read;
}
