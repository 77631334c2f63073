/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "config.h"
#include "methods.h"
#include "table.h"

static bool
restarts_only(const json_t *changes)
{
	json_t *c;
	size_t i;

	json_array_foreach(changes, i, c)
		if (!json_is_true(json_object_get(c, "restart")))
			return false;
	return true;
}

static void
config_print_changes(const json_t *result, bool reload)
{
	const json_t *changes = json_object_get(result, "changes");

	if (json_array_size(changes) == 0) {
		puts(reload ? "nothing to change: the file says what is in effect"
			    : "no difference: the file says what is in effect");
		return;
	}
	table_print(stdout, result);
	if (reload && restarts_only(changes))
		puts("nothing has changed: all of this needs a restart");
}

int
config_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *method = method_text(command, "name");
	json_t *result = NULL;
	char words[32];
	int rc;

	method_words(method, words, sizeof(words));
	rc = ask_server(o, c, words, method, params, o->wait_ms, &result);
	if (rc == 0 && o->json)
		print_json(result);
	else if (rc == 0)
		config_print_changes(result, strcmp(method, "config_reload") == 0);
	json_decref(result);
	return rc;
}
