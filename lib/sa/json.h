/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_JSON_H
#define SA_JSON_H

/** @file Records from JSON, components by the names of their description tables. */

#include <jansson.h>

#include "base/error.h"
#include "sa/record.h"

/**
 * Components by name into a record.
 *
 * @param fields   object; its members "record" and "rid" are skipped
 * @param rec      t->len bytes; components that are not given become 0
 * @param mask     of the components given, version 2's numbering
 * @param unknown  set to the name that is no component's, else NULL
 * @retval -EINVAL  err says why
 */
int record_from_json(const struct sa_record_type *t, json_t *fields, uint8_t *rec, uint64_t *mask,
	const char **unknown, struct error *err);

#endif
