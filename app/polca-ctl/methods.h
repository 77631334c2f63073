/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_METHODS_H
#define POLCA_CTL_METHODS_H

/**
 * @file
 * The method table of the client: the server's, or the built-in one.
 */

#include <stddef.h>

#include <jansson.h>

#include "connection.h"

extern const char methods_built_in[]; /* made at build time from the method table */
/* likewise: {RECORD: [FIELD, ...]} of subnet administration */
extern const char records_built_in[];
extern const char attributes_built_in[]; /* likewise, of subnet management */

/**
 * @param c  NULL: use the built-in table. @return the list of methods, as rpc_list describes them
 */
json_t *methods_load(struct connection *c, unsigned int timeout_ms);
/** @return a borrowed reference, or NULL */
json_t *methods_find(const json_t *methods, const char *name);
/**
 * Find the method that the first words name: "qp" "create" is qp_create, and so is "qp_create".
 *
 * @param used  set to the number of words in the name
 */
json_t *methods_match(const json_t *methods, char **words, int num, int *used);
/** The number of leading words with which some method's name begins. */
int methods_prefix(const json_t *methods, char **words, int num);

const char *method_text(const json_t *obj, const char *key);
/** A member that is an integer; 0, or @p def: there is none. */
json_int_t member_int(const json_t *obj, const char *key);
json_int_t member_int_or(const json_t *obj, const char *key, json_int_t def);
/** "qp create" for "qp_create"; @return buf */
const char *method_words(const char *name, char *buf, size_t size);
/** "--dest-qp-num" for "dest_qp_num"; @return buf */
const char *option_of(const char *name, char *buf, size_t size);
/** @return the length of the first sentence */
int first_sentence(const char *text);

#endif
