/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_TABLE_H
#define POLCA_CTL_TABLE_H

/**
 * @file
 * Print a result for people: aligned tables, numbers with their units.
 */

#include <stdio.h>

#include <jansson.h>

void table_print(FILE *f, const json_t *result);

#endif
