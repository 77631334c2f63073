/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_COMPLETE_H
#define POLCA_CTL_COMPLETE_H

/** @file Completion: commands and options from the method table, values from the running server. */

#include <stdbool.h>

#include <jansson.h>

#define COMPLETE_FILES 10 /* exit status of --complete: the name of a file */

/**
 * What may stand where the cursor is, one a line. @param words  after "polca-ctl", the last one
 * being typed. @param socket  of the server that is asked for numbers and names
 *
 * @return does the name of a file stand there? The shell knows those
 */
bool complete(const json_t *methods, char **words, int num, const char *socket);

/** A candidate is printed if it begins with what was typed. @param before  goes in front of it */
void complete_candidate(const char *before, const char *word, const char *typed);

/**
 * complete_values.c: numbers and names that there are, for a parameter of a method. Without a server
 * there are none.
 */
void complete_values(const char *socket, const char *method, const char *param, const char *before,
	const char *typed);

#endif
