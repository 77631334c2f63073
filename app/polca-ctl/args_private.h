/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_ARGS_PRIVATE_H
#define POLCA_CTL_ARGS_PRIVATE_H

/* Shared by the files that parse the command line: args*.c. */

#include "args.h"
#include "methods.h"

struct args_parser {
	const json_t *method;
	json_t *params;
	char label[96]; /* of the value being parsed, as the user wrote it: "--sg-list length" */
	char *why; /* the error text */
	size_t size; /* of why */
};

/* args_find.c */

/* True if the first len bytes of the option are the parameter's name, with "-" for "_". */
bool args_same_name(const char *name, const char *option, size_t len);
/* The parameter that NAME=VALUE words belong to: the first of type map, or NULL. */
const json_t *args_map_param(const json_t *method);

/* args_value.c */

/* The value of a parameter as JSON; NULL: the text is wrong, and a->why says so. */
json_t *args_parse_value(struct args_parser *a, const json_t *param, const char *text);
/* Length of the name in NAME=VALUE, or 0 if the text has another form. */
size_t args_name_length(const char *text);

/* args_errors.c: each writes a->why and returns -1 */

int args_error(struct args_parser *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The method has no such option, or path->depth > 0: the option is ambiguous. */
int args_no_such_option(struct args_parser *a, const char *option, const struct args_path *path);
/* No parameter takes this word: it is an option without its dashes, or one value too many. */
int args_no_such_value(struct args_parser *a, const char *text);

#endif
