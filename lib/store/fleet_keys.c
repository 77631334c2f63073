/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Names of keys, and the memory of a batch. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_private.h"

#define RECORD_DIGITS 10 /* hexadecimal: 2 of the table, 8 of the RID */

bool
fleet_record_key(const struct fleet *f, const char *key, uint8_t *table, uint32_t *rid)
{
	size_t len = strlen(f->key.records);
	uint64_t value;

	if (strncmp(key, f->key.records, len) != 0 || strlen(key + len) != RECORD_DIGITS ||
		strspn(key + len, "0123456789abcdef") != RECORD_DIGITS)
		return false;
	value = strtoull(key + len, NULL, 16);
	*table = (uint8_t)(value >> 32);
	*rid = (uint32_t)value;
	return true;
}

void
fleet_put_record_key(const struct fleet *f, char key[FLEET_KEY_MAX], unsigned int table,
	uint32_t rid)
{
	snprintf(key, FLEET_KEY_MAX, "%.*s%02x%08x", FLEET_TEXT_MAX + 8, f->key.records,
		table & 0xff, rid);
}

uint64_t
fleet_nonce_of(const struct etcd_kv *kv)
{
	return kv != NULL ? strtoull((const char *)kv->value, NULL, 16) : 0;
}

void
fleet_batch_free(struct fleet_batch *b)
{
	if (b == NULL)
		return;
	free(b->ops);
	free(b->bytes);
	free(b);
}
