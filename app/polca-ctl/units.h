/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_UNITS_H
#define POLCA_CTL_UNITS_H

#include <stddef.h>

#include <jansson.h>

/**
 * A value as a cell, with the unit that its name tells: "25.0 %", "1.5 ms", "1 MiB", 0x1a2b3c4d.
 *
 * @return buf
 */
const char *units_print(const char *name, const json_t *value, char *buf, size_t size);
/**
 * A name as the label of its values in a table: without the unit of the JSON number, for
 * units_print() writes a unit behind the value. "speed_mbps" is "speed".
 *
 * @return buf
 */
const char *units_label(const char *name, char *buf, size_t size);
/** Microseconds in the unit that suits: "1.5 ms". */
void units_time(double us, char *buf, size_t size);

#endif
