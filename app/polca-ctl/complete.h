/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_COMPLETE_H
#define POLCA_CTL_COMPLETE_H

/**
 * @file
 * Completion: commands and options from the method table, values from the running server.
 */

#include <jansson.h>

/** Exit status of --complete besides 0. */
enum complete_end {
	COMPLETE_FILES = 10, /**< the shell completes file names */
	COMPLETE_MORE = 11, /**< more of the word may follow: no blank behind a candidate */
};

/**
 * Print the candidates for the word at the cursor, one per line.
 *
 * @param words   the words after "polca-ctl"; the last one is completed
 * @param socket  the control socket of the server that lists numbers and names
 * @return 0, or an enum complete_end
 */
int complete_print(const json_t *methods, char **words, int num, const char *socket);

/** Print the candidate if it begins with the typed text. @param before  printed before it */
void complete_candidate(const char *before, const char *word, const char *typed);

/**
 * complete_values.c: print the current values of a parameter, as the server lists them. Without a
 * server, print nothing.
 */
void complete_values(const char *socket, const char *method, const char *param, const char *before,
	const char *typed);

#endif
