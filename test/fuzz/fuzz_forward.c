/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz what appliances of a fleet pass to each other. Input: {0: a request, 1: an answer, 2: the
 * tail of a subscription; bytes}.
 */

#include <stdlib.h>
#include <string.h>

#include "sa/forward.h"
#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A request that was read is written as it was; nothing of it is lost on the way to the leader. */
static void
fuzz_request(const uint8_t *bytes, size_t len)
{
	static uint8_t again[FORWARD_REQUEST_MAX];
	char id[FORWARD_ID_LEN + 1];
	static struct sa_write w;

	if (forward_get_request(&w, bytes, len) != 0)
		return;
	if (forward_put_request(&w, again, id) != len || memcmp(again, bytes, len) != 0)
		abort();
}

static void
fuzz_answer(const uint8_t *bytes, size_t len)
{
	static struct sa_write w;
	uint8_t again[FORWARD_ANSWER_MAX];

	memset(&w, 0, sizeof(w));
	w.type = sa_record_type(SA_SERVICE);
	if (forward_get_answer(&w, bytes, len) != 0)
		return;
	if (forward_put_answer(&w, again) != len || memcmp(again, bytes, len) != 0)
		abort();
}

static void
fuzz_subscriber(const uint8_t *bytes, size_t len)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_INFORM);
	uint8_t again[SUBSCRIBER_TAIL_MAX];
	struct store_record *r;
	struct subscriber s;

	if (len > SUBSCRIBER_TAIL_MAX || len == sizeof(s) ||
		len == offsetof(struct subscriber, expiry)) /* of an earlier release */
		return;
	r = calloc(1, sizeof(*r) + t->len + len);
	r->len = (uint16_t)(t->len + len);
	memcpy(r->bytes + t->len, bytes, len);
	if (subscriber_of(r, &s) &&
		(subscriber_put(&s, again) != len || memcmp(again, bytes, len) != 0))
		abort();
	free(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kinds[])(const uint8_t *bytes, size_t len) = { fuzz_request,
		fuzz_answer, fuzz_subscriber };
	uint8_t *copy; /* exactly as long, so that ASan finds reads beyond */

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	if (copy == NULL)
		return 0;
	memcpy(copy, data + 1, size - 1);
	kinds[data[0] % 3](copy, size - 1);
	free(copy);
	return 0;
}
