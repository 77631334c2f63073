/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Fuzz what etcd's gateway sends. Input: {0: a watch's message, 1: an error, 2: a reply; text}. */

#include <stdlib.h>
#include <string.h>

#include "store/etcd_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_watched(const char *text, size_t len)
{
	struct error err = { "" };
	struct etcd_watched w;
	size_t i;

	if (etcd_json_watched(text, len, &w, &err) != 0) {
		if (w.events.n != 0 || w.events.at != NULL)
			abort(); /* it would leak */
		return;
	}
	for (i = 0; i < w.events.n; i++)
		if (w.events.at[i].key_len == 0 ||
			strlen(w.events.at[i].key) != w.events.at[i].key_len ||
			w.events.at[i].value[w.events.at[i].value_len] != '\0')
			abort();
	etcd_watched_free(&w);
}

/* Decoded text, encoded again, is decoded to the same. */
static void
fuzz_base64(const char *text, size_t len)
{
	uint8_t *bytes = malloc(len / 4 * 3 + 1), *back;
	ptrdiff_t n = etcd_base64_decode(text, len, bytes);
	char *again;

	if (n >= 0) {
		again = etcd_base64(bytes, (size_t)n);
		back = malloc(strlen(again) / 4 * 3 + 1);
		if (etcd_base64_decode(again, strlen(again), back) != n ||
			memcmp(back, bytes, (size_t)n) != 0)
			abort();
		free(back);
		free(again);
	}
	free(bytes);
}

static void
fuzz_reply(const char *text, size_t len)
{
	json_t *reply = json_loadb(text, len, 0, NULL);
	struct etcd_header h;
	struct etcd_kvs kvs;

	fuzz_base64(text, len);
	if (etcd_json_header(reply, &h) == 0 && h.cluster_id == 0)
		abort();
	if (etcd_json_kvs(json_object_get(reply, "kvs"), &kvs) == 0)
		etcd_kvs_free(&kvs);
	json_decref(reply);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = { "" };
	char *copy; /* exactly as long, so that ASan finds reads beyond */

	if (size < 1)
		return 0;
	copy = malloc(size);
	if (copy == NULL)
		return 0;
	memcpy(copy, data + 1, size - 1);
	copy = realloc(copy, size > 1 ? size - 1 : 1);
	switch (data[0] % 3) {
	case 0:
		fuzz_watched(copy, size - 1);
		break;
	case 1:
		if (etcd_json_error(400, copy, size - 1, &err) >= 0 || err.text[0] == '\0')
			abort(); /* an error must have a text */
		break;
	default:
		fuzz_reply(copy, size - 1);
		break;
	}
	free(copy);
	return 0;
}
