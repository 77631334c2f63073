/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_COMPLETE_H
#define POLCA_CTL_COMPLETE_H

/** @file Completion: commands and options from the method table, values from the running server. */

#include <stdbool.h>

#include <jansson.h>

/** Exit status of --complete besides 0. */
enum complete_end {
	COMPLETE_FILES = 10, /**< the shell completes file names */
	COMPLETE_MORE = 11, /**< more of the word may follow: no blank behind a candidate */
};

/**
 * Print the candidates for the word at the cursor, one a line.
 *
 * @param words   after "polca-ctl"; the last one is completed
 * @param socket  of the server that is asked for numbers and names
 * @return 0, or an enum complete_end
 */
int complete(const json_t *methods, char **words, int num, const char *socket);

/** Print a candidate if it begins with what was typed. @param before  printed in front of it */
void complete_candidate(const char *before, const char *word, const char *typed);

/**
 * complete_values.c: print the values that a parameter can have now, as the server lists them. Without
 * a server nothing is printed.
 */
void complete_values(const char *socket, const char *method, const char *param, const char *before,
	const char *typed);

#endif
