/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The liveness client (liveness.md): requests one after the other, each with its time. */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/mad_ask.h"
#include "wire/wire.h"

#define ECHO_MAX       (1u << 20)
#define TIMEOUT_MAX_MS 60000
#define COUNT_MAX      1000
#define HEAD           (LIVE_OFF_DATA - LIVE_OFF_TYPE) /* type, identifier, sequence */
#define CPU_ANSWER_MAX (1u << 18)

struct ping_args {
	struct ah_args ah;
	uint32_t mode;
	uint32_t size;
	struct table_bytes pattern;
	uint16_t identifier;
	uint16_t sequence;
	uint16_t pkey_index;
	uint32_t timeout_ms;
	uint32_t count;

	/* where we are */
	struct engine_ah to;
	struct live_request req; /* the one under way */
	bool started;
	uint8_t *data;
	uint8_t *body; /* of a request of many packets */
	struct mad_asked asked;
};
#define PING_SIZE (AH_LAST << 1)

static const struct table_word words_mode[] = {
	{ "echo", LIVE_MODE_ECHO },
	{ "timestamp", LIVE_MODE_TIMESTAMP },
	{ "lidguid", LIVE_MODE_LIDGUID },
	{ "ibping", LIVE_MODE_IBPING },
	{ "sysstat_ping", LIVE_MODE_SYSSTAT_PING },
	{ "sysstat_host", LIVE_MODE_SYSSTAT_HOST },
	{ "sysstat_cpu", LIVE_MODE_SYSSTAT_CPU },
	{ NULL, 0 },
};

static const struct table_row ping_params[] = {
	AH_ROWS(offsetof(struct ping_args, ah)),
	AH_ROW(offsetof(struct ping_args, ah), port, TABLE_UINT, "local port to ask from",
		.max = LINK_PORTS_MAX - 1),
	ROW(struct ping_args, mode, TABLE_ENUM,
		"echo: data and back; timestamp: when it was there; lidguid: the port's LID and GUID; ibping: as ibping, answered with the host's name; sysstat_...: as ibsysstat, its ping, host and cpu",
		.def = LIVE_MODE_ECHO, .words = words_mode),
	ROW(struct ping_args, size, TABLE_UINT,
		"echo: bytes of data; more than 208 go as many packets, by RMPP", .bit = PING_SIZE,
		.max = ECHO_MAX, .def_text = "56"),
	ROW(struct ping_args, pattern, TABLE_BYTES, "echo: what the data is made of, over and over",
		.max = 208, .def_text = "00 to ff"),
	ROW(struct ping_args, identifier, TABLE_UINT,
		"to tell one sender's requests from another's"),
	ROW(struct ping_args, sequence, TABLE_UINT,
		"number of the first request; the others count on", .def = 1),
	ROW(struct ping_args, count, TABLE_UINT,
		"requests, each once the one before is answered or given up", .def = 1, .min = 1,
		.max = COUNT_MAX),
	ROW(struct ping_args, timeout_ms, TABLE_UINT,
		"wait so long for each answer; nothing of one packet is sent twice", .def = 1000,
		.min = 1, .max = TIMEOUT_MAX_MS),
	ROW(struct ping_args, pkey_index, TABLE_UINT, "P_Key to ask with",
		.max = PORT_PKEYS_MAX - 1),
	ROW_END,
};

struct ping_row {
	uint32_t present;
	uint16_t sequence;
	double time_us;
	uint64_t bytes;
	uint32_t residence_ms;
	bool standard;
	struct live_reply said;
	const char *text;
	const char *error;
	const char *message;
};
#define PING_ANSWERED  0x01
#define PING_GOOD      0x02
#define PING_TIMESTAMP 0x04
#define PING_STANDARD  0x08
#define PING_LIDGUID   0x10

#define PING(field, t, ...) ROW(struct ping_row, field, t, __VA_ARGS__)
#define SAID(field, ...)    ROW_NAMED(struct ping_row, #field, said.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row ping_rows[] = {
	PING(sequence, TABLE_UINT),
	PING(time_us, TABLE_REAL, "from the request to the answer", .bit = PING_ANSWERED),
	PING(bytes, TABLE_UINT, "of the answer, from its type on", .bit = PING_GOOD),
	SAID(originate, "of timestamp: milliseconds since midnight UTC, where standard is true",
		.bit = PING_TIMESTAMP),
	SAID(receive, .bit = PING_TIMESTAMP),
	SAID(transmit, .bit = PING_TIMESTAMP),
	PING(standard, TABLE_BOOL, .bit = PING_TIMESTAMP),
	PING(residence_ms, TABLE_UINT,
		"how long the request was there: from its arrival to the answer's departure",
		.bit = PING_STANDARD),
	SAID(lid, "of lidguid", .bit = PING_LIDGUID),
	SAID(guid, "of lidguid", .bit = PING_LIDGUID, .digits = 16),
	PING(text, TABLE_STRING, "of ibping and sysstat_...: what the host says of itself",
		.flags = TABLE_OPTIONAL),
	PING(error, TABLE_STRING,
		"of what was not answered well: TIMEOUT, BAD_ANSWER, a status' name, ...",
		.flags = TABLE_OPTIONAL),
	PING(message, TABLE_STRING, "what the error means", .flags = TABLE_OPTIONAL),
	ROW_END,
};

struct ping_reply {
	struct table_list replies;
	uint32_t sent;
	uint32_t received;
};

static const struct table_row live_ping_results[] = {
	ROW_LIST(struct ping_reply, replies, struct ping_row, ping_rows),
	ROW(struct ping_reply, sent, TABLE_UINT, "requests"),
	ROW(struct ping_reply, received, TABLE_UINT, "good answers to them"),
	ROW_END,
};

/* --- what is asked for --- */

static int
check_args(struct rpc_call *call, const struct ping_args *a)
{
	if (a->mode != LIVE_MODE_ECHO &&
		((a->ah.present & PING_SIZE) != 0 || a->pattern.data != NULL))
		return error_set(&call->err, EINVAL, "size, pattern: got mode %s, allowed: echo",
			words_mode[a->mode].name);
	if (a->pattern.data != NULL && a->pattern.len == 0)
		return error_set(&call->err, EINVAL,
			"pattern: got nothing, allowed: 1 to 208 bytes");
	return 0;
}

static int
make_data(struct rpc_call *call, struct ping_args *a)
{
	uint32_t i;

	if (a->mode != LIVE_MODE_ECHO)
		return 0;
	a->req.len = (a->ah.present & PING_SIZE) != 0 ? a->size : 56;
	a->data = arena_alloc(&call->arena, a->req.len + 1);
	a->body = arena_alloc(&call->arena, a->req.len + HEAD);
	if (a->data == NULL || a->body == NULL)
		return error_set(&call->err, ENOMEM, "size: no memory for %u bytes", a->req.len);
	for (i = 0; i < a->req.len; i++)
		a->data[i] =
			a->pattern.data != NULL ? a->pattern.data[i % a->pattern.len] : (uint8_t)i;
	a->req.data = a->data;
	return 0;
}

static int
start_ping(struct rpc_call *call, struct ping_args *a)
{
	int rc = check_args(call, a);

	if (rc == 0)
		rc = make_ah(call, &a->ah, a->ah.port, &a->to);
	if (rc != 0)
		return rc;
	if (!hop_known(call, &a->to) && !waited(call, NEXT_HOP_WAIT_MS))
		return RPC_WAIT;
	a->req.mode = (enum live_mode)a->mode;
	a->req.identifier = a->identifier;
	a->started = true;
	return make_data(call, a);
}

/* --- asking --- */

/* Milliseconds since midnight UTC (liveness 2) */
static uint32_t
stamp(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint32_t)(ts.tv_sec % 86400) * 1000 + (uint32_t)(ts.tv_nsec / 1000000);
}

static int
send_ping(struct rpc_call *call, struct ping_args *a, struct engine_mad_answer *answer)
{
	const struct ping_reply *reply = call->reply;
	struct engine_mad_ask ask = {
		.ah = &a->to,
		.qpn = QPN_GSI,
		.pkey_index = a->pkey_index,
		.no_retry = true,
		.timeout_ms = a->timeout_ms,
		.data_offset = LIVE_OFF_TYPE,
	};

	if (!a->asked.under_way) {
		a->req.sequence = (uint16_t)(a->sequence + reply->sent);
		a->req.originate = a->mode == LIVE_MODE_TIMESTAMP ? stamp() : 0;
		ask.many = live_build(&a->req, ask.mad, a->body);
	}
	if (ask.many) {
		ask.data = a->body;
		ask.len = ask.max_answer = HEAD + a->req.len;
	} else if (a->mode == LIVE_MODE_SYSSTAT_CPU) {
		ask.many = true; /* the answer of a host of many CPUs */
		ask.max_answer = CPU_ANSWER_MAX;
	}
	if (ask.many) {
		ask.no_retry = false;
		ask.timeout_ms = 0;
		ask.total_ms = a->timeout_ms;
	}
	return mad_ask(call, &a->asked, &ask, answer);
}

/* --- replies --- */

static void
fill_ping(struct rpc_call *call, struct ping_row *row)
{
	const struct ping_args *a = call->args;
	const struct live_reply *r = &row->said;

	row->present |= PING_GOOD;
	row->bytes = a->mode == LIVE_MODE_ECHO ? HEAD + r->len : VENDOR_AREA;
	switch (a->req.mode) {
	case LIVE_MODE_ECHO:
		break;
	case LIVE_MODE_TIMESTAMP:
		row->present |= PING_TIMESTAMP;
		row->standard = ((r->receive | r->transmit) & LIVE_STAMP_NONSTANDARD) == 0;
		if (row->standard)
			row->present |= PING_STANDARD;
		row->residence_ms = (r->transmit + LIVE_MS_PER_DAY - r->receive) % LIVE_MS_PER_DAY;
		break;
	case LIVE_MODE_LIDGUID:
		row->present |= PING_LIDGUID;
		break;
	default:
		row->text = arena_printf(&call->arena, "%s", r->text);
	}
}

/* Is it the answer, and what does it say? */
static const char *
check_answer(struct ping_args *a, const struct engine_mad_answer *answer, struct live_reply *r)
{
	const uint8_t *data = answer->data;
	uint64_t len = answer->len;

	if ((answer->mad[RMPP_OFF_FLAGS] & RMPP_ACTIVE) == 0) {
		data = answer->mad + LIVE_OFF_TYPE;
		len = VENDOR_AREA;
	}
	memset(r, 0, sizeof(*r));
	live_check(&a->req, answer->mad, data, len, r);
	return r->error;
}

static int
add_reply(struct rpc_call *call, const struct engine_mad_answer *answer)
{
	struct ping_args *a = call->args;
	struct ping_reply *reply = call->reply;
	struct ping_row *row = ADD(call, &reply->replies, struct ping_row);

	if (row == NULL)
		return -ENOMEM;
	row->sequence = a->req.sequence;
	if (!mad_answered(answer) || answer->end != MAD_END_OK || !answer->has_mad) {
		row->error = mad_answer_word(answer);
		row->message = mad_answer_text(answer);
		return 0;
	}
	row->present = PING_ANSWERED;
	row->time_us = (double)answer->elapsed_ns / 1000;
	row->message = check_answer(a, answer, &row->said);
	if (row->message != NULL) {
		row->error = "BAD_ANSWER";
		return 0;
	}
	fill_ping(call, row);
	reply->received++;
	return 0;
}

static int
live_ping(struct rpc_call *call)
{
	struct ping_args *a = call->args;
	struct ping_reply *reply = call->reply;
	struct engine_mad_answer answer;
	int rc = a->started ? 0 : start_ping(call, a);

	if (rc == 0)
		rc = send_ping(call, a, &answer);
	if (rc != 0)
		return rc;
	rc = add_reply(call, &answer);
	mad_asked_forget(call, &a->asked);
	if (rc != 0)
		return rc;
	return ++reply->sent < a->count ? RPC_AGAIN : 0;
}

const struct rpc_method methods_live[] = {
	{ "live_ping", live_ping, ping_params, sizeof(struct ping_args),
		"Ask whether a port is alive, and how long its answer takes.",
		"polca-ctl live ping 10.0.0.2 --count 3",
		RESULTS(live_ping_results, struct ping_reply) },
	{ NULL },
};
