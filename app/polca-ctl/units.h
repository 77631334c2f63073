/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_UNITS_H
#define POLCA_CTL_UNITS_H

#include <stddef.h>

#include <jansson.h>

/**
 * Print a value as a cell, with the unit that its name implies: "25.0 %", "1.5 ms", "1 MiB",
 * 0x1a2b3c4d.
 *
 * @return buf
 */
const char *units_print(const char *name, const json_t *value, char *buf, size_t size);
/**
 * Print a name as the label of its values, without a unit suffix, because units_print() adds the
 * unit to the value: "speed_mbps" is "speed".
 *
 * @return buf
 */
const char *units_label(const char *name, char *buf, size_t size);
/** Print microseconds in a suitable unit: "1.5 ms". */
void units_time(double us, char *buf, size_t size);

#endif
