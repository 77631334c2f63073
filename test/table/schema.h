/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CTL_SCHEMA_H
#define TEST_CTL_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/**
 * Check a value against a JSON schema, as far as lib/table writes them.
 *
 * @param why  "ports[0].lid: type", the first fault found
 */
bool schema_accepts(const json_t *schema, const json_t *v, char *why, size_t size);

#endif
