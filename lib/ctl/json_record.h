/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_JSON_RECORD_H
#define CTL_JSON_RECORD_H

/**
 * @file
 * SA records in JSON: {"record": "NodeRecord", "rid": "0x00010000", "lid": 1, ...}, components by
 * the names of the record's description table. The way back is sa/json.h.
 */

#include <jansson.h>

#include "base/error.h"
#include "sa/record.h"

/** @param rid  0: the record has none */
json_t *json_record(const struct sa_record_type *t, uint32_t rid, const uint8_t *rec);

/** The records of a result. */
#define RECORDS_ROW(S)                                                                             \
	ROW(S, records, TABLE_MAPS,                                                                \
		"list of objects: record (its type), rid (record identifier, where the type has one), components by name")

/** Plain numbers stay numbers; all else is the text that people read and sa_parse() takes. */
json_t *json_field(const struct sa_field *f, const uint8_t *rec);

/** All names of a record's components. */
json_t *json_field_names(const struct sa_record_type *t);

#endif
