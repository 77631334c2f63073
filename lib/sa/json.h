/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_JSON_H
#define SA_JSON_H

/** @file Records from JSON; members are named like the fields of the record tables. */

#include <jansson.h>

#include "base/error.h"
#include "sa/record.h"

/**
 * Fill in a record from named components.
 *
 * @param fields   object; its members "record" and "rid" are skipped
 * @param rec      t->len bytes; components not given become 0
 * @param mask     components given, in version 2's numbering
 * @param unknown  set to a name that is no component, else NULL
 * @retval -EINVAL  err tells why
 */
int record_from_json(const struct sa_record_type *t, json_t *fields, uint8_t *rec, uint64_t *mask,
	const char **unknown, struct error *err);

#endif
