/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>

#include "methods.h"
#include "sa.h"
#include "smp.h"

#define HEX_WIDTH 64 /* characters of raw data in a line */

/* Print the bytes of an attribute whose components have no names. */
static void
print_raw(const json_t *result)
{
	const char *data = method_text(result, "data");
	size_t at, len = strlen(data);

	printf("%s\n", method_text(result, "attribute"));
	for (at = 0; at < len; at += HEX_WIDTH)
		printf("    %02zx  %.*s\n", at / 2, HEX_WIDTH, data + at);
}

static void
print_fields(const json_t *result, json_t *fields)
{
	struct sa_printer p = { .f = stdout, .form = SA_BLOCKS };
	json_t *record = json_object();

	json_object_set(record, "record", json_object_get(result, "attribute"));
	json_object_update(record, fields);
	sa_print_record(&p, record);
	json_decref(record);
}

static void
smp_print_result(const struct options *o, const json_t *result)
{
	json_t *fields = json_object_get(result, "fields");

	if (o->json)
		print_json(result);
	else if (fields != NULL)
		print_fields(result, fields);
	else if (strcmp(method_text(result, "status"), "OK") == 0)
		print_raw(result);
}

/* How long the server may take: a Get and a Set, each with its retries. */
static unsigned int
wait_of(const struct options *o, const json_t *params)
{
	json_int_t tries = 1 + member_int_or(params, "retries", 2),
		   ms = member_int_or(params, "timeout_ms", 1000);

	return o->wait_ms + (unsigned int)(2 * tries * ms);
}

int
smp_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *method = method_text(command, "name");
	json_t *result = NULL;
	char words[32];
	int rc;

	method_words(method, words, sizeof(words));
	rc = ask_server(o, c, words, method, params, wait_of(o, params), &result);
	if (rc == 0) {
		smp_print_result(o, result);
		rc = status_end(words, result);
	}
	json_decref(result);
	return rc;
}
