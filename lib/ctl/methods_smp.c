/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Subnet management packets of ours: one attribute read from, or written to, whoever is at the end
 * of a directed route or has a LID. A write of some components reads the others first.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/mad_ask.h"
#include "ctl/smp_attribute.h"
#include "ctl/smp_build.h"
#include "wire/bytes.h"

#define TIMEOUT_MAX_MS 60000
#define RETRIES_MAX    7

static void
append_attributes(char *buf, size_t size)
{
	const struct smp_attribute *t;

	for (t = smp_attributes; t->name != NULL; t++)
		table_append(buf, size, "%s, ", t->name);
	table_append(buf, size, "or a number up to 0xffff");
}

struct smp_args {
	uint32_t present;
	uint16_t port;
	uint16_t dlid;
	uint32_t modifier;
	uint64_t m_key;
	uint32_t timeout_ms;
	uint8_t retries;
	const char *attribute;
	const char *path;
	struct table_bytes data;
	json_t *fields;

	/* made of them, and where we are */
	uint16_t id;
	const struct smp_attribute *known; /* NULL: raw data only */
	struct smp_path route;
	bool read; /* the Get before the Set is done */
	uint8_t set[SMP_DATA_LEN];
	struct mad_asked asked;
};
#define SMP_PORT 0x1
#define SMP_DLID 0x2

/* clang-format off */
#define SMP_ROWS                                                                                   \
	ROW(struct smp_args, attribute, TABLE_STRING,                                              \
		"attribute by name (PortInfo, NodeInfo, ... or as smpquery has it: pkeys, sl2vl, ...) or number", \
		.flags = TABLE_REQUIRED, .max = 32, .texts = append_attributes),                       \
	ROW(struct smp_args, modifier, TABLE_UINT,                                                 \
		"attribute modifier: of PortInfo the port, 0 being the one asked; of tables the block"), \
	ROW(struct smp_args, dlid, TABLE_UINT, "ask the port of this LID", .bit = SMP_DLID,        \
		.min = 1, .max = PORT_LID_MULTICAST - 1),                                          \
	ROW(struct smp_args, path, TABLE_STRING,                                                   \
		"ask along a directed route: 0 is this port itself, and then the ports to leave by: \"0,1,2\"", \
		.max = 256),                                                                       \
	ROW(struct smp_args, port, TABLE_UINT,                                                     \
		"local port to ask from; in path it is this number and one", .bit = SMP_PORT,      \
		.max = LINK_PORTS_MAX - 1, .def_text = "the one that path leaves by, else 0"),     \
	ROW(struct smp_args, m_key, TABLE_UINT,                                                    \
		"M_Key of the port asked: without it guarded ports do not answer"),                \
	ROW(struct smp_args, timeout_ms, TABLE_UINT, "wait so long for the answer to each try",    \
		.def = 1000, .min = 1, .max = TIMEOUT_MAX_MS),                                     \
	ROW(struct smp_args, retries, TABLE_UINT, "ask again so many times where nobody answers",  \
		.def = 2, .max = RETRIES_MAX)
/* clang-format on */

static const struct table_row get_params[] = { SMP_ROWS, ROW_END };
static const struct table_row set_params[] = {
	SMP_ROWS,
	ROW(struct smp_args, fields, TABLE_MAP,
		"components to set, by name; without data the others are read first, and stay"),
	ROW(struct smp_args, data, TABLE_BYTES,
		"the whole attribute, what is missing being 0; nothing is read first",
		.max = SMP_DATA_LEN),
	ROW_END,
};

/* --- what is asked for --- */

static int
no_such_attribute(struct rpc_call *call, const char *name)
{
	char list[256] = "";

	append_attributes(list, sizeof(list));
	return error_set(&call->err, EINVAL, "attribute: got \"%.32s\", allowed: %s", name, list);
}

static int
parse_smp_attribute(struct rpc_call *call, struct smp_args *a)
{
	unsigned long id;
	char *end;

	a->known = smp_attribute_named(a->attribute);
	if (a->known != NULL) {
		a->id = a->known->id;
		return 0;
	}
	id = strtoul(a->attribute, &end, 0);
	if (a->attribute[0] < '0' || a->attribute[0] > '9' || *end != '\0' || id > UINT16_MAX)
		return no_such_attribute(call, a->attribute);
	a->id = (uint16_t)id;
	a->known = smp_attribute(a->id);
	return 0;
}

/* A route's first hop leaves by a port of ours, counted from 1. */
static int
parse_smp_route(struct rpc_call *call, struct smp_args *a)
{
	unsigned int ports = link_num_ports(engine_link(call->e));
	int rc = smp_path_parse(a->path, &a->route, &call->err);

	if (rc != 0 || a->route.hops == 0)
		return rc;
	if (a->route.port[1] < 1 || a->route.port[1] > ports)
		return error_set(&call->err, EINVAL,
			"path: got \"%.40s\", which leaves by port %u, allowed: 1 to %u, one more than the number of the local port",
			a->path, a->route.port[1], ports);
	if ((a->present & SMP_PORT) == 0)
		a->port = (uint16_t)(a->route.port[1] - 1);
	if (a->route.port[1] != a->port + 1)
		return error_set(&call->err, EINVAL,
			"path: got \"%.40s\", which leaves by port %u, but with port %u it must be %u",
			a->path, a->route.port[1], a->port, a->port + 1);
	return 0;
}

static int
parse_smp_target(struct rpc_call *call, struct smp_args *a)
{
	bool lid = (a->present & SMP_DLID) != 0;
	int rc = 0;

	if (lid == (a->path != NULL))
		return error_set(&call->err, EINVAL, "dlid, path: got %s of them, allowed: one",
			lid ? "both" : "none");
	if (!lid)
		rc = parse_smp_route(call, a);
	return rc != 0 ? rc : ctl_check_ib_port(call, a->port);
}

static int
check_smp_fields(struct rpc_call *call, const struct smp_args *a)
{
	const char *unknown;

	if (a->fields == NULL && a->data.data == NULL)
		return error_set(&call->err, EINVAL,
			"fields, data: got none of them, allowed: components to set by name, or the attribute as hex");
	if (a->fields == NULL)
		return 0;
	if (a->known == NULL)
		return error_set(&call->err, EINVAL,
			"fields: attribute 0x%04x has none that are known here: give data", a->id);
	unknown = smp_field_unknown(a->known, a->fields);
	return unknown == NULL
		? 0
		: no_such_field(call, unknown, a->known->name, smp_field_names(a->known));
}

static int
parse_smp_args(struct rpc_call *call, struct smp_args *a)
{
	int rc = parse_smp_attribute(call, a);

	return rc != 0 ? rc : parse_smp_target(call, a);
}

/* --- asking --- */

static int
ask_smp(struct rpc_call *call, struct smp_args *a, uint8_t method, struct engine_mad_answer *answer)
{
	struct engine_ah ah = { .port = a->port, .dlid = a->dlid };
	struct smp_request req = {
		.method = method,
		.attribute = a->id,
		.modifier = a->modifier,
		.m_key = a->m_key,
		.data = a->set,
		.path = a->path != NULL ? &a->route : NULL,
	};
	static const uint8_t nothing[SMP_DATA_LEN];
	struct engine_mad_ask ask = {
		.ah = &ah,
		.timeout_ms = a->timeout_ms,
		.retries = a->retries,
		.no_retry = a->retries == 0,
	};

	if (method == MAD_GET)
		req.data = nothing;
	smp_build(&req, ask.mad);
	return mad_ask(call, &a->asked, &ask, answer);
}

static int
no_answer(struct rpc_call *call, const struct smp_args *a, const struct engine_mad_answer *answer)
{
	char whom[80];

	if (a->path != NULL)
		snprintf(whom, sizeof(whom), "path %.64s", a->path);
	else
		snprintf(whom, sizeof(whom), "LID %u", a->dlid);
	if (answer->end == MAD_END_TIMEOUT || answer->timed_out)
		return error_set(&call->err, ETIMEDOUT,
			"%s: %s; is somebody there, is the link up, and is m_key the port's?", whom,
			mad_answer_text(answer));
	return error_set(&call->err, answer->error != 0 ? -answer->error : EIO, "%s: %s", whom,
		mad_answer_text(answer));
}

struct smp_reply {
	const char *status;
	uint16_t mad_status;
	const char *message;
	const char *method;
	const char *attribute;
	uint32_t modifier;
	struct table_bytes data;
	json_t *fields;
	double time_us;
	uint8_t bytes[SMP_DATA_LEN];
};

#define REPLY(field, t, ...) ROW(struct smp_reply, field, t, __VA_ARGS__)

static const struct table_row smp_results[] = {
	REPLY(status, TABLE_STRING, "OK, or the name of the status that was answered"),
	REPLY(mad_status, TABLE_UINT, "the status itself", .digits = 4),
	REPLY(message, TABLE_STRING, "what it means, where it is not OK", .flags = TABLE_OPTIONAL),
	REPLY(method, TABLE_STRING, "what was answered: Get or Set"),
	REPLY(attribute, TABLE_STRING, "its name, or its number"),
	REPLY(modifier, TABLE_UINT, "as asked"),
	REPLY(data, TABLE_BYTES, "the attribute's 64 bytes as hex"),
	REPLY(fields, TABLE_MAP, "object of its components, where the attribute is known",
		.flags = TABLE_OPTIONAL),
	REPLY(time_us, TABLE_REAL, "from the request to the answer"),
	ROW_END,
};

static void
fill_smp_reply(struct rpc_call *call, const struct smp_args *a, const char *method,
	const struct engine_mad_answer *answer)
{
	struct smp_reply *reply = call->reply;
	/* a refused Set shows what the attribute is now, a refused Get nothing (smp-sma 3) */
	bool shown = answer->end == MAD_END_OK ||
		(strcmp(method, "Set") == 0 && answer->status == MAD_STATUS_INVALID_FIELD);

	memcpy(reply->bytes, answer->mad + SMP_OFF_DATA, SMP_DATA_LEN);
	reply->status = mad_answer_word(answer);
	reply->mad_status = answer->status;
	reply->message = answer->end != MAD_END_OK ? mad_answer_text(answer) : NULL;
	reply->method = method;
	reply->attribute =
		a->known != NULL ? a->known->name : arena_printf(&call->arena, "0x%04x", a->id);
	reply->modifier = a->modifier;
	reply->data = (struct table_bytes){ reply->bytes, SMP_DATA_LEN };
	if (a->known != NULL && shown)
		reply->fields = arena_json(&call->arena, smp_fields(a->known, reply->bytes));
	reply->time_us = (double)answer->elapsed_ns / 1000;
}

/* The answer to a request, and the end of it. */
static int
finish_smp(struct rpc_call *call, struct smp_args *a, const char *method,
	const struct engine_mad_answer *answer)
{
	int rc = 0;

	if (mad_answered(answer) && answer->has_mad)
		fill_smp_reply(call, a, method, answer);
	else
		rc = no_answer(call, a, answer);
	mad_asked_forget(call, &a->asked);
	return rc;
}

static int
smp_get(struct rpc_call *call)
{
	struct smp_args *a = call->args;
	struct engine_mad_answer answer;
	int rc = parse_smp_args(call, a);

	if (rc == 0)
		rc = ask_smp(call, a, MAD_GET, &answer);
	return rc != 0 ? rc : finish_smp(call, a, "Get", &answer);
}

/* What the Set shall carry: the data given, or what is there, and the components given. */
static int
parse_smp_set(struct rpc_call *call, struct smp_args *a)
{
	int rc = parse_smp_args(call, a);

	if (rc == 0)
		rc = check_smp_fields(call, a);
	if (rc != 0)
		return rc;
	if (a->data.data != NULL) {
		memcpy(a->set, a->data.data, a->data.len);
		a->read = true;
	}
	return a->read && a->fields != NULL
		? smp_fields_put(a->known, a->fields, a->set, &call->err)
		: 0;
}

/* @return 0: a->set is what is there; 1: it could not be read, the call has its answer; or else */
static int
read_first(struct rpc_call *call, struct smp_args *a, bool *done)
{
	uint8_t tried[SMP_DATA_LEN] = { 0 };
	struct engine_mad_answer answer;
	int rc;

	/* wrong values are told before anything is sent */
	rc = a->asked.under_way ? 0 : smp_fields_put(a->known, a->fields, tried, &call->err);
	if (rc == 0)
		rc = ask_smp(call, a, MAD_GET, &answer);
	if (rc != 0)
		return rc;
	if (answer.end != MAD_END_OK || !mad_answered(&answer)) {
		*done = true;
		return finish_smp(call, a, "Get", &answer);
	}
	memcpy(a->set, answer.mad + SMP_OFF_DATA, sizeof(a->set));
	mad_asked_forget(call, &a->asked);
	smp_fields_unchanged(a->known, a->set);
	a->read = true;
	return smp_fields_put(a->known, a->fields, a->set, &call->err);
}

static int
smp_set(struct rpc_call *call)
{
	struct smp_args *a = call->args;
	struct engine_mad_answer answer;
	bool done = false;
	int rc = a->read ? 0 : parse_smp_set(call, a);

	if (rc == 0 && !a->read)
		rc = read_first(call, a, &done);
	if (rc != 0 || done)
		return rc;
	rc = ask_smp(call, a, MAD_SET, &answer);
	return rc != 0 ? rc : finish_smp(call, a, "Set", &answer);
}

const struct rpc_method methods_smp[] = {
	{ "smp_get", smp_get, get_params, sizeof(struct smp_args),
		"Read an attribute of subnet management: of this port, along a directed route, or of a LID.",
		"polca-ctl smp get PortInfo --path 0,1", RESULTS(smp_results, struct smp_reply) },
	{ "smp_set", smp_set, set_params, sizeof(struct smp_args),
		"Write an attribute of subnet management, and see what it is then. States that 0 leaves alone (port_state, link_width_enabled, ...) are written only where they are given.",
		"polca-ctl smp set PortInfo --path 0,1 base_lid=5 sm_lid=1",
		RESULTS(smp_results, struct smp_reply) },
	{ NULL },
};
