/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_HELP_H
#define POLCA_CTL_HELP_H

/**
 * @file
 * Help, from the method table.
 */

#include <jansson.h>

/** What help itself does. */
void help_help(void);
/** All commands. */
void help_all(const json_t *methods);
/** The commands that begin with these words. */
void help_group(const json_t *methods, char **words, int num);
/** One command. */
void help_method(const json_t *method);

#endif
