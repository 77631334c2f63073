/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_debug.h>

#include "base/close_apart.h"
#include "base/file_kind.h"
#include "ctl/event_log.h"
#include "ctl/forms.h"
#include "ctl/rpc.h"
#include "table/value.h"

int
rpc_state_init(struct rpc_state *s, struct engine *e)
{
	s->engine = e;
	s->start_psn = json_object();
	s->events = event_log_create();
	if (s->start_psn == NULL || s->events == NULL) {
		rpc_state_fini(s);
		return -ENOMEM;
	}
	return 0;
}

void
rpc_state_fini(struct rpc_state *s)
{
	json_decref(s->start_psn);
	event_log_destroy(s->events);
	memset(s, 0, sizeof(*s));
}

const struct rpc_method *
rpc_find(const char *name)
{
	const struct rpc_area *a;
	const struct rpc_method *m;

	for (a = rpc_areas; a->title != NULL; a++)
		for (m = a->methods; m->name != NULL; m++)
			if (strcmp(m->name, name) == 0)
				return m;
	return NULL;
}

static void
fail(struct rpc_call *call, int code, const char *text)
{
	call->done = true;
	call->code = code;
	snprintf(call->text, sizeof(call->text), "%s", text);
}

/* Brackets outside text: the parser recurses, so depth is bounded before it starts. */
static bool
too_deep(const char *line, size_t len)
{
	unsigned int depth = 0;
	bool text = false;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text && line[i] == '\\')
			i++;
		else if (line[i] == '"')
			text = !text;
		else if (!text && (line[i] == '[' || line[i] == '{') && ++depth > RPC_DEPTH_MAX)
			return true;
		else if (!text && (line[i] == ']' || line[i] == '}') && depth > 0)
			depth--;
	}
	return false;
}

/* JSON-RPC 2.0, 4: what a request object may and must hold. */
static const char *
request_fault(const json_t *req)
{
	const char *version, *key;
	const json_t *params;
	json_t *v;

	if (json_is_array(req))
		return "batch arrays are not supported: send one request object a line";
	if (!json_is_object(req))
		return "a request is an object {\"jsonrpc\": \"2.0\", \"id\", \"method\", \"params\"}";
	json_object_foreach((json_t *)(uintptr_t)req, key, v) {
		if (strcmp(key, "jsonrpc") != 0 && strcmp(key, "id") != 0 &&
			strcmp(key, "method") != 0 && strcmp(key, "params") != 0)
			return "a request has only the members jsonrpc, id, method and params";
	}
	version = json_string_value(json_object_get(req, "jsonrpc"));
	if (version == NULL || strcmp(version, "2.0") != 0)
		return "jsonrpc: missing or wrong, allowed: \"2.0\"";
	if (!json_is_string(json_object_get(req, "method")))
		return "method: missing or no text; rpc_list names the methods";
	params = json_object_get(req, "params");
	if (params != NULL && json_is_array(params))
		return NULL; /* well-formed, but invalid parameters: prepare() says so */
	if (params != NULL && !json_is_object(params))
		return "params: allowed: an object of parameters by name";
	return NULL;
}

static void
fail_params(struct rpc_call *call, const struct table_error *e)
{
	fail(call, RPC_INVALID_PARAMS, e->text);
	call->data = json_object();
	if (e->member[0] != '\0')
		json_set(call->data, "parameter", json_string(e->member));
	if (e->got[0] != '\0')
		json_set(call->data, "got", json_string(e->got));
	if (e->allowed[0] != '\0')
		json_set(call->data, "allowed", json_string(e->allowed));
}

/*
 * Take the descriptor that came with the request, if the call has a parameter for it. Only a
 * regular file: reading any other may never end.
 */
static void
take_passed_file(struct rpc_call *call, const json_t *params, int *fd)
{
	const struct table_row *row = call->method->params;
	struct statx st = { 0 };

	while (row->name != NULL &&
		(row->form != &form_file || json_object_get(params, row->name) == NULL))
		row++;
	if (row->name == NULL)
		return;
	call->fd = *fd;
	*fd = -1;
	/* what is known of it here, as its file system may never answer */
	if (call->fd >= 0 && file_known(call->fd, &st) == 0 && S_ISREG(st.stx_mode))
		return;
	fail(call, RPC_INVALID_PARAMS, "");
	snprintf(call->text, sizeof(call->text),
		"%s: got %s, allowed: the descriptor of a regular file, sent with the request (SCM_RIGHTS)",
		row->name, call->fd < 0 ? "no descriptor" : file_kind(st.stx_mode));
	call->data = json_pack("{s:s}", "parameter", row->name);
}

static void
prepare_call(struct rpc_call *call, int *fd)
{
	json_t *params = json_object_get(call->request, "params");
	const char *name = json_string_value(json_object_get(call->request, "method"));
	struct table_decoder d = { .arena = &call->arena };
	char brief[64];
	int rc;

	call->method = rpc_find(name);
	if (call->method == NULL) {
		json_brief(json_object_get(call->request, "method"), brief, sizeof(brief));
		fail(call, RPC_METHOD_NOT_FOUND, "");
		snprintf(call->text, sizeof(call->text),
			"method: got %s, which is none; rpc_list names the methods", brief);
		return;
	}
	if (json_is_array(params)) {
		fail(call, RPC_INVALID_PARAMS,
			"params: got a list, allowed: an object of parameters by name");
		return;
	}
	call->args = arena_alloc(&call->arena, call->method->args_size + sizeof(uint64_t));
	call->reply = arena_alloc(&call->arena, call->method->result_size);
	if (call->args == NULL || call->reply == NULL) {
		fail(call, RPC_INTERNAL_ERROR, "out of memory");
		return;
	}
	rc = table_decode(&d, call->method->params, params, call->args);
	if (rc == -ENOMEM)
		fail(call, RPC_INTERNAL_ERROR, "out of memory");
	else if (rc != 0)
		fail_params(call, &d.err);
	else
		take_passed_file(call, params, fd);
}

struct rpc_call *
rpc_refuse(enum rpc_code code, const char *text)
{
	struct rpc_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->fd = -1;
	call->id = json_null(); /* JSON-RPC 2.0, 5: the id is null when it could not be read */
	fail(call, code, text);
	return call;
}

struct rpc_call *
rpc_open(struct rpc_state *s, const char *line, size_t len, int *fd, uint64_t now)
{
	struct rpc_call *call;
	const char *fault;
	json_error_t error;
	char text[320];

	RTE_ASSERT(s->engine != NULL && line != NULL && fd != NULL);
	if (too_deep(line, len)) {
		snprintf(text, sizeof(text), "more than %d brackets open at once", RPC_DEPTH_MAX);
		return rpc_refuse(RPC_INVALID_REQUEST, text);
	}
	call = calloc(1, sizeof(*call));
	if (call == NULL)
		return NULL;
	call->state = s;
	call->e = s->engine;
	call->fd = -1;
	call->next_event = &s->next_event;
	call->start = call->now = now;
	call->request = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (call->request == NULL) {
		call->id = json_null();
		snprintf(text, sizeof(text), "column %d: %s%s", error.column, error.text,
			json_error_code(&error) == json_error_numeric_overflow
				? " (numbers beyond 2^63 - 1 go as \"0x...\" text)"
				: "");
		fail(call, RPC_PARSE_ERROR, text);
		return call;
	}
	fault = request_fault(call->request);
	/* a well-formed request without id is a notification; anything else is answered */
	call->id = json_incref(json_object_get(call->request, "id"));
	if (fault != NULL && call->id == NULL)
		call->id = json_null();
	if (fault != NULL)
		fail(call, RPC_INVALID_REQUEST, fault);
	else
		prepare_call(call, fd);
	return call;
}

/* errno in the handler's words: code and data of the reply */
static void
fail_errno(struct rpc_call *call, int eno)
{
	const char *name = strerrorname_np(eno);

	fail(call, -eno, call->err.text[0] != '\0' ? call->err.text : strerror(eno));
	if (call->data == NULL)
		call->data = json_object();
	json_set(call->data, "errno", json_string(name != NULL ? name : "EIO"));
}

void
rpc_only_read(struct rpc_call *call)
{
	call->monitoring = true;
	if (call->method == NULL || call->method->reads)
		return;
	call->done = true;
	error_set(&call->err, EPERM,
		"%s: the monitoring socket has only methods that change nothing; use the control socket",
		call->method->name);
	fail_errno(call, EPERM);
}

static void
encode_result(struct rpc_call *call)
{
	call->result = table_encode_without(rpc_results(call->method), call->reply,
		call->monitoring ? TABLE_SECRET : 0);
	if (call->result == NULL)
		fail(call, RPC_INTERNAL_ERROR, "out of memory");
}

int
rpc_step(struct rpc_call *call, uint64_t now)
{
	int rc;

	if (call->done)
		return 0;
	call->now = now;
	call->until = UINT64_MAX;
	rc = call->method->handler(call);
	RTE_ASSERT(rc <= 0 || rc == RPC_AGAIN || rc == RPC_WAIT);
	if (rc > 0)
		return rc;
	call->done = true;
	if (rc < 0)
		fail_errno(call, -rc);
	else
		encode_result(call);
	return 0;
}

static json_t *
error_object(int code, const char *text, json_t *data)
{
	json_t *error = json_object();

	json_set(error, "code", json_integer(code));
	json_set(error, "message", json_string(text));
	if (data != NULL)
		json_set(error, "data", json_incref(data));
	return error;
}

static char *
print(const struct rpc_call *call, const char *key, json_t *body, size_t *len)
{
	json_t *reply = json_object();
	char *text;

	json_set(reply, "jsonrpc", json_string("2.0"));
	json_set(reply, "id", json_incref(call->id));
	json_set(reply, key, body);
	text = json_dumps(reply, JSON_COMPACT);
	json_decref(reply);
	if (text != NULL) {
		*len = strlen(text);
		text[(*len)++] = '\n'; /* in place of the terminating NUL */
	}
	return text;
}

char *
rpc_reply(const struct rpc_call *call, size_t max, size_t *len)
{
	char *text;

	RTE_ASSERT(call->done && (call->code != 0 || call->result != NULL));
	if (call->id == NULL)
		return NULL;
	if (call->code != 0)
		text = print(call, "error", error_object(call->code, call->text, call->data), len);
	else
		text = print(call, "result", json_incref(call->result), len);
	if (text != NULL && *len <= max)
		return text;
	free(text);
	return print(call, "error",
		error_object(RPC_INTERNAL_ERROR,
			"the reply is too long: ask for less (max, length, cursor)", NULL),
		len);
}

bool
rpc_can_undo(const struct rpc_call *call)
{
	return call->done && call->code == 0 && call->id != NULL && call->method->abandon != NULL;
}

void
rpc_undo(struct rpc_call *call)
{
	RTE_ASSERT(rpc_can_undo(call));
	call->method->abandon(call);
}

void
rpc_close(struct rpc_call *call)
{
	if (call == NULL)
		return;
	if (!call->done && call->method->abandon != NULL)
		call->method->abandon(call);
	if (call->fd >= 0)
		close_passed(call->fd);
	json_decref(call->request);
	json_decref(call->id);
	json_decref(call->result);
	json_decref(call->data);
	arena_free(&call->arena);
	free(call);
}
