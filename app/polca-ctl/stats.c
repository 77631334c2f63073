/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "methods.h"
#include "ping.h"
#include "stats.h"
#include "stopped.h"
#include "table.h"

static bool
names_something(const char *name)
{
	static const char *const names[] = { "port", "worker", "lcore", "qp_num" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

void
stats_rates(json_t *now, const json_t *was, double seconds)
{
	const char *name;
	double grown;
	json_t *v;
	void *next;
	size_t i;

	json_array_foreach(now, i, v) {
		stats_rates(v, json_array_get(was, i), seconds);
	}
	json_object_foreach_safe(now, next, name, v) {
		if (!json_is_integer(v) || names_something(name)) {
			stats_rates(v, json_object_get(was, name), seconds);
			continue;
		}
		grown = json_number_value(v) - json_number_value(json_object_get(was, name));
		json_object_set_new(now, name, json_real(round(grown / seconds * 10) / 10));
	}
}

void
stats_without_zeros(json_t *rates)
{
	const char *name;
	json_t *v;
	void *next;
	size_t i;

	json_array_foreach(rates, i, v) {
		stats_without_zeros(v);
	}
	json_object_foreach_safe(rates, next, name, v) {
		stats_without_zeros(v);
		if ((json_is_real(v) && json_real_value(v) == 0) ||
			(json_is_object(v) && json_object_size(v) == 0))
			json_object_del(rates, name);
	}
}

/* Wait, and ask again. @return the exit status; *result is then rates */
static int
stats_ask_again(const struct options *o, struct connection *c, json_t *params, double ms,
	json_t **result)
{
	uint64_t before = clock_us();
	json_t *was = *result;
	int rc;

	stopped_catch();
	*result = NULL;
	poll(NULL, 0, (int)ms);
	rc = ask_server(o, c, "stats get", "stats_get", params, o->wait_ms, result);
	if (rc == 0)
		stats_rates(*result, was, (double)(clock_us() - before) / 1e6);
	if (rc == 0 && json_is_true(json_object_get(params, "nonzero")))
		stats_without_zeros(*result);
	json_decref(was);
	return rc;
}

int
stats_command_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params)
{
	bool metrics = strcmp(method_text(command, "name"), "stats_metrics") == 0;
	const char *text = method_text(params, "rate");
	json_t *result = NULL;
	double ms = 0;
	int rc;

	if (text[0] != '\0' && !ping_seconds(text, 0.1, 3600, &ms))
		return usage_error("stats get: --rate: got \"%s\", allowed: 0.1 to 3600 seconds",
			text);
	json_object_del(params, "rate");
	rc = ask_server(o, c, metrics ? "stats metrics" : "stats get",
		metrics ? "stats_metrics" : "stats_get", params, o->wait_ms, &result);
	if (rc == 0 && ms > 0)
		rc = stats_ask_again(o, c, params, ms, &result);
	if (rc == 0 && metrics && !o->json)
		fputs(method_text(result, "text"), stdout);
	else if (rc == 0 && o->json)
		print_json(result);
	else if (rc == 0)
		table_print(stdout, result);
	json_decref(result);
	return rc;
}
