/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_ARGS_H
#define POLCA_CTL_ARGS_H

/**
 * @file
 * From words on the command line to a method's parameters.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/** Options that every command takes; ends with NULL. */
extern const char *const args_globals[];

#define ARGS_DEPTH 3 /* wr, its sg_list, their fields */

/** Where an option's parameter stands: at the method, or inside objects of it. */
struct args_path {
	const json_t *step[ARGS_DEPTH]; /**< the last one is the parameter itself */
	int depth; /**< 0: there is none */
	bool ambiguous;
};

/**
 * The parameter that "--name" means: the method's own, else the only one of that name inside its
 * objects, the nearest first; of an object alt_X by "--alt-name", for X has the same fields.
 */
struct args_path args_find(const json_t *method, const char *option);

/** What stands before the names of an object's fields, as options: "alt_" or nothing. */
const char *args_prefix(const json_t *object);

/**
 * A parameter that an error of the server names, as the user writes it: "--length", "--sg-list
 * length" for "wr[0].sg_list[0].length"; the name itself where the usage line has it without option,
 * and of what is no parameter.
 *
 * @return buf
 */
const char *args_label(const json_t *method, const char *path, char *buf, size_t size);

/** True if the parameter may be given as a word without its option, required or not. */
bool args_takes_word(const json_t *param);

/** True if it takes any number of them: its value is the list of these words. */
bool args_takes_words(const json_t *param);

/**
 * Words after the command: "--option value", "--flag", "--option=value", and values of required
 * parameters in their order.
 *
 * @param why  on failure: what is wrong and what to do
 * @return parameters, or NULL
 */
json_t *args_params(const json_t *method, char **words, int num, char *why, size_t size);

#endif
