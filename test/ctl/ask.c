/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"
#include "table/schema.h"

int
desk_setup(void **state)
{
	struct desk *d = calloc(1, sizeof(*d));

	d->fd = -1;
	d->e = fake_engine_create();
	assert_int_equal(rpc_state_init(&d->state, d->e), 0);
	*state = d;
	return 0;
}

int
desk_teardown(void **state)
{
	struct desk *d = *state;

	rpc_state_fini(&d->state);
	fake_engine_destroy(d->e);
	json_decref(d->json);
	free(d->reply);
	free(d);
	return 0;
}

/* Every result is what its method's rows promise. */
static void
check_result(const struct rpc_method *m, const json_t *result)
{
	json_t *schema;
	char why[300];

	if (m == NULL || result == NULL)
		return;
	schema = rpc_result_schema(m);
	if (!schema_accepts(schema, result, why, sizeof(why)))
		fail_msg("%s: %s", m->name, why);
	json_decref(schema);
}

const char *
ask(struct desk *d, const char *line)
{
	struct rpc_call *c = rpc_open(&d->state, line, strlen(line), &d->fd, d->now);
	uint64_t end = d->now + 1001;
	const struct rpc_method *m;
	size_t len;

	assert_non_null(c);
	if (d->monitoring)
		rpc_only_read(c);
	while (rpc_step(c, d->now) != 0) {
		assert_true(d->now < end);
		d->now++;
	}
	free(d->reply);
	json_decref(d->json);
	d->json = NULL;
	d->reply = rpc_reply(c, 1 << 20, &len);
	m = c->method;
	rpc_close(c);
	if (d->reply == NULL)
		return NULL;
	assert_int_equal(d->reply[len - 1], '\n');
	d->reply[len - 1] = '\0';
	assert_null(strchr(d->reply, '\n'));
	d->json = json_loads(d->reply, 0, NULL);
	assert_non_null(d->json);
	check_result(m, json_object_get(d->json, "result"));
	return d->reply;
}

static void
ask_method(struct desk *d, const char *method, const char *params, va_list ap)
{
	char body[8192], line[9000];
	char *c;

	vsnprintf(body, sizeof(body), params, ap);
	for (c = body; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", method, body);
	assert_non_null(ask(d, line));
}

json_t *
call(struct desk *d, const char *method, const char *params, ...)
{
	va_list ap;
	json_t *v;

	va_start(ap, params);
	ask_method(d, method, params, ap);
	va_end(ap);
	v = json_object_get(d->json, "result");
	if (v == NULL)
		print_error("%s: %s\n", method, d->reply);
	assert_non_null(v);
	return v;
}

json_t *
call_fails(struct desk *d, const char *method, const char *params, ...)
{
	va_list ap;
	json_t *v;

	va_start(ap, params);
	ask_method(d, method, params, ap);
	va_end(ap);
	v = json_object_get(d->json, "error");
	if (v == NULL)
		print_error("%s: %s\n", method, d->reply);
	assert_non_null(v);
	return v;
}

const char *
fails(struct desk *d, const char *method, const char *params)
{
	return str(call_fails(d, method, "%s", params), "message");
}

const json_t *
row(const json_t *result, const char *list, size_t i)
{
	const json_t *v = json_array_get(json_object_get(result, list), i);

	assert_non_null(v);
	return v;
}

json_int_t
num(const json_t *obj, const char *key)
{
	const json_t *v = json_object_get(obj, key);

	if (!json_is_integer(v))
		print_error("no number %s\n", key);
	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

const char *
str(const json_t *obj, const char *key)
{
	const json_t *v = json_object_get(obj, key);

	if (!json_is_string(v))
		print_error("no text %s\n", key);
	assert_true(json_is_string(v));
	return json_string_value(v);
}
