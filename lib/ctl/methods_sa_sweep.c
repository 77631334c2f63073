/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA's database from the live subnet: many Gets of subnet management under way at a time, their
 * answers taken by sa/sweep.h, and its records imported in the end. One sweep at a time.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/methods.h"
#include "ctl/smp_build.h"
#include "engine/verbs_mad.h"
#include "sa/sweep.h"

#define WINDOW  24 /* Gets under way; other methods need some of ENGINE_MAD_ASKS, too */
#define IDLE_MS 10000 /* a sweep that nobody steps any more may be ended by the next one */

struct sweep_args {
	uint16_t port;
	uint64_t m_key;
	uint32_t timeout_ms;
	uint8_t retries;
	bool replace;
};

static const struct table_row sweep_params[] = {
	ROW(struct sweep_args, port, TABLE_UINT, "native InfiniBand port to begin at",
		.max = LINK_PORTS_MAX - 1),
	ROW(struct sweep_args, replace, TABLE_BOOL,
		"remove what is stored of the subnet before; services, groups, subscriptions and SLs of PathRecords stay"),
	ROW(struct sweep_args, m_key, TABLE_UINT,
		"M_Key of the ports: without it guarded ports do not answer"),
	ROW(struct sweep_args, timeout_ms, TABLE_UINT, "wait so long for the answer to each try",
		.def = 500, .min = 1, .max = 60000),
	ROW(struct sweep_args, retries, TABLE_UINT, "ask again so many times where nobody answers",
		.def = 2, .max = 7),
	ROW_END,
};

enum phase {
	ASKING,
	IMPORTING,
};

struct under_way {
	bool used;
	uint32_t id;
	struct sweep_request request;
};

/* The sweep that is under way, if any. */
struct job {
	const struct rpc_call *call;
	struct engine *e;
	enum phase phase;
	uint64_t stepped; /* ms */
	struct sweep *sweep;
	struct sweep_counts counts;
	struct under_way ask[WINDOW];
	struct sa_change *records;
	size_t num;
	size_t room;
};
static struct job *job;

static void
end_job(void)
{
	unsigned int i;

	for (i = 0; i < WINDOW; i++)
		if (job->ask[i].used)
			engine_mad_forget(job->e, job->ask[i].id);
	sweep_destroy(job->sweep);
	free(job->records);
	free(job);
	job = NULL;
}

static int
begin_job(struct rpc_call *call, const struct sweep_args *a)
{
	int rc = ctl_check_ib_port(call, a->port);

	if (rc != 0)
		return rc;
	if (job != NULL && call->now - job->stepped < IDLE_MS)
		return error_set(&call->err, EBUSY, "another sweep is under way");
	if (job != NULL)
		end_job();
	job = calloc(1, sizeof(*job));
	if (job != NULL)
		job->sweep = sweep_create(&allocator_malloc);
	if (job == NULL || job->sweep == NULL) {
		free(job);
		job = NULL;
		return error_set(&call->err, ENOMEM, "no memory for a sweep");
	}
	job->call = call;
	job->e = call->e;
	return 0;
}

static int
send_sweep_get(struct rpc_call *call, const struct sweep_args *a, struct under_way *u)
{
	static const uint8_t nothing[SMP_DATA_LEN];
	struct engine_ah ah = { .port = a->port };
	struct engine_mad_ask ask = {
		.ah = &ah,
		.timeout_ms = a->timeout_ms,
		.retries = a->retries,
		.no_retry = a->retries == 0,
	};
	struct smp_path path = { .hops = u->request.hops };
	struct smp_request smp = {
		.method = MAD_GET,
		.attribute = u->request.attribute,
		.modifier = u->request.modifier,
		.m_key = a->m_key,
		.data = nothing,
		.path = &path,
	};
	int rc;

	memcpy(path.port, u->request.port, sizeof(path.port));
	smp_build(&smp, ask.mad);
	rc = engine_mad_ask(call->e, &ask, &u->id, &call->err);
	u->used = rc == 0;
	return rc;
}

/* @return 0, or a negative errno */
static int
take_sweep_answers(struct rpc_call *call)
{
	struct engine_mad_answer answer;
	unsigned int i;
	int rc;

	for (i = 0; i < WINDOW; i++) {
		struct under_way *u = &job->ask[i];

		if (!u->used)
			continue;
		memset(&answer, 0, sizeof(answer));
		rc = engine_mad_look(call->e, u->id, &answer, &call->err);
		if (rc != 0) {
			u->used = false;
			return rc;
		}
		if (!answer.done)
			continue;
		sweep_answer(job->sweep, &u->request,
			answer.end == MAD_END_OK && answer.has_mad ? answer.mad + SMP_OFF_DATA
								   : NULL);
		engine_mad_forget(call->e, u->id);
		u->used = false;
	}
	return 0;
}

/* @return Gets under way, or a negative errno */
static int
send_sweep_gets(struct rpc_call *call, const struct sweep_args *a)
{
	int n = 0, rc;
	unsigned int i;

	for (i = 0; i < WINDOW; i++) {
		struct under_way *u = &job->ask[i];

		if (!u->used && sweep_next(job->sweep, &u->request)) {
			rc = send_sweep_get(call, a, u);
			if (rc != 0)
				return rc;
		}
		n += u->used;
	}
	return n;
}

static int
add_sweep_record(void *arg, const struct sa_change *change)
{
	struct job *j = arg;
	struct sa_change *more;
	size_t room = j->room * 2 + 1024;

	if (j->num == j->room) {
		more = realloc(j->records, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		j->records = more;
		j->room = room;
	}
	j->records[j->num++] = *change;
	return 0;
}

/* All has been asked: into the database. */
static int
import_records(struct rpc_call *call, const struct sweep_args *a)
{
	const struct sa_import_sink sink = { job, add_sweep_record };
	struct engine_sa_import import = {
		.parser = sa_import_changes,
		.replace = a->replace ? SA_REPLACE_SUBNET : SA_REPLACE_NOTHING,
	};
	int rc = sweep_error(job->sweep);

	if (rc == 0)
		rc = sweep_records(job->sweep, &sink);
	if (rc != 0)
		return error_set(&call->err, -rc, "the sweep cannot be finished: %s",
			strerror(-rc));
	sweep_counts(job->sweep, &job->counts);
	if (job->num == 0)
		return error_set(&call->err, ENETUNREACH,
			"%u nodes answered, none has a LID: has a subnet manager been run?",
			job->counts.nodes);
	import.text = (const char *)job->records;
	import.len = job->num * sizeof(*job->records);
	rc = engine_sa_import_start(call->e, &import, &call->err);
	job->phase = IMPORTING;
	return rc != 0 ? rc : RPC_WAIT;
}

static int
step_asking(struct rpc_call *call, const struct sweep_args *a)
{
	int rc = take_sweep_answers(call), under_way = rc < 0 ? rc : send_sweep_gets(call, a);

	if (under_way < 0)
		return under_way;
	if (under_way == 0)
		return import_records(call, a);
	return RPC_WAIT;
}

struct sweep_reply {
	struct engine_sa_imported imported;
	struct sweep_counts counts;
	uint64_t elapsed_us; /* the asking, too */
};

#define COUNT(field, ...)                                                                          \
	ROW_NAMED(struct sweep_reply, #field, counts.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row sa_sweep_results[] = {
	ROW_NAMED(struct sweep_reply, "records", imported.records, TABLE_UINT, "how many"),
	COUNT(nodes, "channel adapters' ports, routers' ports and switches that answered"),
	COUNT(switches, "how many of them"),
	COUNT(links, "both ways of a cable count"),
	COUNT(without_lid, "of the nodes those without a LID, which are left out"),
	COUNT(asked, "Gets"),
	COUNT(unanswered,
		"those that got no answer; a switch with an unanswered block gets no forwarding table"),
	ROW(struct sweep_reply, elapsed_us, TABLE_UINT, "how long it took"),
	ROW_END,
};

static int
step_importing(struct rpc_call *call)
{
	struct sweep_reply *reply = call->reply;

	reply->counts = job->counts;
	reply->elapsed_us = (call->now - call->start) * 1000;
	return wait_for_import(call, &reply->imported);
}

static int
sa_sweep(struct rpc_call *call)
{
	const struct sweep_args *a = call->args;
	int rc = 0;

	if (call->progress == 0) {
		rc = begin_job(call, a);
		call->progress = 1;
		if (rc != 0)
			return rc;
	}
	if (job == NULL || job->call != call)
		return error_set(&call->err, ECANCELED, "another sweep took the place of this one");
	job->stepped = call->now;
	rc = job->phase == ASKING ? step_asking(call, a) : step_importing(call);
	if (rc <= 0)
		end_job();
	return rc;
}

const struct rpc_method methods_sa_sweep[] = {
	{ "sa_sweep", sa_sweep, sweep_params, sizeof(struct sweep_args),
		"Fill the SA's database from the live subnet: ask every node for its description, ports, links, GUIDs, P_Keys, SLtoVL and forwarding tables, by Gets of subnet management along directed routes, and put all of it in at once. Nothing in the subnet is changed.",
		"polca-ctl sa sweep --replace", RESULTS(sa_sweep_results, struct sweep_reply) },
	{ NULL },
};
