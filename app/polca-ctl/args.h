/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_ARGS_H
#define POLCA_CTL_ARGS_H

/**
 * @file
 * Parse the words after a command into the parameters of its method.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/** Options that every command takes; ends with NULL. */
extern const char *const args_globals[];

#define ARGS_DEPTH 3 /* wr, its sg_list, and the fields of that */

/** The path to a parameter: from the method's own parameters down through nested objects. */
struct args_path {
	const json_t *step[ARGS_DEPTH]; /**< the last step is the parameter itself */
	int depth; /**< 0: no such parameter */
	bool ambiguous;
};

/**
 * Find the parameter of the option "--name": the method's own parameter of that name, else the one
 * nearest to the top among the fields of its objects. Fields of an object "alt_X" are named
 * "--alt-NAME", because X has the same fields.
 */
struct args_path args_find(const json_t *method, const char *option);

/** The prefix of an object's fields when they are given as options: "alt_" or "". */
const char *args_prefix(const json_t *object);

/**
 * Translate a parameter path from a server error into what the user typed: "--length", or
 * "--sg-list length" for "wr[0].sg_list[0].length". A parameter that needs no option, or a name
 * that is no parameter, is returned as it is.
 *
 * @return buf
 */
const char *args_label(const json_t *method, const char *path, char *buf, size_t size);

/** True if the parameter may be given as a word without its option, required or not. */
bool args_takes_word(const json_t *param);

/** True if the parameter takes any number of words; its value is the list of them. */
bool args_takes_words(const json_t *param);

/**
 * Parse "--option value", "--option=value", "--flag", and values without an option, which go to the
 * required parameters in their order.
 *
 * @param why  set on failure: what is wrong and what to do
 * @return parameters, or NULL
 */
json_t *args_params(const json_t *method, char **words, int num, char *why, size_t size);

#endif
