/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz what appliances of a fleet pass to each other. Input: {0: a request, 1: an answer, 2: the
 * tail of a subscription, 3: an appliance's own ports; bytes}.
 */

#include <stdlib.h>
#include <string.h>

#include "../counted.h"
#include "sa/forward.h"
#include "sa/layout.h"
#include "sa/owned.h"
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
	if (forward_put_request(&w, NULL, again, id) != len || memcmp(again, bytes, len) != 0)
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

static int
load_nothing(void *arg, int (*each)(void *to, const struct store_op *op), void *to,
	struct error *err)
{
	(void)arg, (void)each, (void)to, (void)err;
	return 0;
}

static uint64_t
grace_none(void *arg)
{
	(void)arg;
	return 0;
}

static bool
grace_over(void *arg, uint64_t token)
{
	(void)arg, (void)token;
	return true;
}

/* Compared with a database without records: all that it asks for differs. */
static void
fuzz_owned(const uint8_t *bytes, size_t len)
{
	static struct counted memory;
	struct store_config config = {
		.tables = SA_TABLES,
		.indexes = sa_indexes,
		.num_indexes = SA_INDEXES,
		.readers = 1,
		.max_old_bytes = 1 << 20,
		.max_versions = 4,
		.grace = { grace_none, grace_over, NULL },
		.backend = { .load = load_nothing },
		.alloc = &memory.alloc,
	};
	static struct store *store;
	struct error err;
	uint64_t taken;

	if (store == NULL) {
		counted_init(&memory);
		store = store_create(&config, &err);
	}
	if (store == NULL)
		abort();
	owned_differs(store_current(store_reader(store, 0)), bytes, len, &taken);
	if (taken != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kinds[])(const uint8_t *bytes, size_t len) = { fuzz_request,
		fuzz_answer, fuzz_subscriber, fuzz_owned };
	uint8_t *copy; /* exactly as long, so that ASan finds reads beyond */

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	if (copy == NULL)
		return 0;
	memcpy(copy, data + 1, size - 1);
	kinds[data[0] % 4](copy, size - 1);
	free(copy);
	return 0;
}
