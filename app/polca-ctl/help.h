/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_HELP_H
#define POLCA_CTL_HELP_H

/**
 * @file
 * Print help from the method table.
 */

#include <jansson.h>

/** Explain the help command itself. */
void help_help(void);
/** List all commands. */
void help_all(const json_t *methods);
/** List the commands that begin with these words. */
void help_group(const json_t *methods, char **words, int num);
/** Explain one command. */
void help_method(const json_t *method);

#endif
