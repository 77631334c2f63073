/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake_engine.h"

bool
engine_sa_enabled(const struct engine *e)
{
	return !e->sa.disabled;
}

bool
engine_fleet_status(struct engine *e, struct fleet_status *status)
{
	memset(status, 0, sizeof(*status));
	if (!e->sa.fleet)
		return false;
	strcpy(status->name, "a");
	strcpy(status->leader, "b");
	status->connected = true;
	status->state_name = "answers";
	status->cluster = 0xc1;
	status->revision = 10;
	status->latest = 12;
	status->num_members = 1;
	strcpy(status->member[0].name, "b");
	status->member[0].leader = true;
	status->num_etcd = 1;
	strcpy(status->etcd[0].url, "http://127.0.0.1:2379");
	return true;
}

int
engine_fleet_accept(struct engine *e, struct error *err)
{
	return e->sa.fleet ? 0 : error_set(err, ENOENT, "this appliance belongs to no fleet");
}

uint64_t
engine_sa_key(const struct engine *e)
{
	(void)e;
	return 0x5151;
}

/* There are no services. */
static bool
no_services(const struct fake_sa *sa)
{
	return sa->asked.type != NULL && sa->asked.type->attribute == SA_SERVICE;
}

/* Who asks for VL arbitration is never answered. */
static bool
sa_is_silent(const struct fake_sa *sa)
{
	return sa->asked.type != NULL && sa->asked.type->attribute == SA_VLARB;
}

int
engine_sa_query(struct engine *e, const struct engine_sa_query *q, uint32_t *id, struct error *err)
{
	struct fake_sa *sa = &e->sa;
	uint32_t i;

	if (q->own && sa->disabled)
		return error_set(err, EINVAL, "this appliance serves no SA");
	sa->asked = q->query;
	sa->ah = *q->ah;
	sa->own = q->own;
	sa->pkey_index = q->pkey_index;
	sa->timeout_ms = q->timeout_ms;
	sa->worker = q->worker;
	sa->monitoring = q->monitoring;
	for (i = 0; i < q->query.num_records && i < 4; i++) {
		memcpy(sa->records[i], q->query.records + i * SA_RECORD_MAX, SA_RECORD_MAX);
		sa->rids[i] = q->query.rids[i];
	}
	sa->end = no_services(sa) ? MAD_END_STATUS : MAD_END_OK;
	sa->status = no_services(sa) ? SA_STATUS_NO_RECORDS : 0;
	*id = sa->id = 33;
	return 0;
}

int
engine_sa_progress(struct engine *e, uint32_t id, struct engine_sa_progress *p, struct error *err)
{
	const struct fake_sa *sa = &e->sa;

	memset(p, 0, sizeof(*p));
	if (sa->id == 0 || id != sa->id)
		return error_set(err, ENOENT, "query: there is no query %u (any more)", id);
	p->done = !sa->running && !sa_is_silent(sa);
	p->monitoring = sa->monitoring;
	p->records = no_services(sa) || sa_is_silent(sa) ? 0 : sa->num;
	p->segment = sa->running ? 3 : 4;
	p->segments = 4;
	p->elapsed_us = 1234;
	p->end = sa->end;
	p->status = sa->status;
	p->rmpp_status = sa->rmpp_status;
	p->error = sa->error;
	p->resent = 1;
	p->sa_key = 7;
	return 0;
}

static void
node(uint8_t *rec, uint64_t lid)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);

	memset(rec, 0, SA_RECORD_MAX);
	sa_put_named(t, "lid", rec, lid);
	sa_put_named(t, "num_ports", rec, 1);
	sa_put_named(t, "node_guid", rec, 0x0002c90300000000 + lid);
	sa_parse(sa_field_named(t, "node_desc"), rec, "a node", NULL);
}

bool
engine_sa_next(struct engine *e, uint32_t id, uint64_t *cursor, struct engine_sa_record *r)
{
	static uint8_t rec[SA_RECORD_MAX];

	if (id != e->sa.id || *cursor >= e->sa.num || no_services(&e->sa) || sa_is_silent(&e->sa))
		return false;
	node(rec, ++*cursor);
	r->type = sa_record_type(SA_NODE);
	r->rid = e->sa.asked.version == SA_V1 ? (uint32_t)*cursor << 16 : 0;
	r->bytes = rec;
	return true;
}

int
engine_sa_cancel(struct engine *e, uint32_t id, struct error *err)
{
	if (e->sa.id == 0 || id != e->sa.id)
		return error_set(err, ENOENT, "query: there is no query %u (any more)", id);
	e->sa.id = 0;
	return 0;
}

bool
engine_sa_session_next(struct engine *e, uint64_t *cursor, struct engine_sa_session *s)
{
	if (*cursor >= e->sa.sessions)
		return false;
	*s = (struct engine_sa_session){ .worker = 1,
		.info = { .qpn = 1, .tid = 0xabc0 + *cursor, .mgmt_class = 3, .class_version = 2,
			.method = 0x12, .attribute = 0x11, .requester = true, .state = "RECV",
			.segment = 5, .segments = 9, .window = 16, .retries_left = 7,
			.age = 2500000, }, };
	gid_parse("fe80::9", &s->info.gid);
	++*cursor;
	return true;
}

void
engine_mad_counters(const struct engine *e, int worker, struct mad_counters *sum)
{
	(void)e;
	memset(sum, 0, sizeof(*sum));
	sum->sessions_opened = worker < 0 ? 20 : 10;
	sum->sessions_completed = worker < 0 ? 12 : 6;
	sum->sessions_failed = worker < 0 ? 2 : 1;
}

void
engine_sa_counters(const struct engine *e, int worker, struct sa_counters *sum)
{
	(void)e;
	(void)worker;
	memset(sum, 0, sizeof(*sum));
	sum->get_table = 4;
}

void
engine_sa_stats(const struct engine *e, int worker, struct engine_sa_stats *s)
{
	memset(s, 0, sizeof(*s));
	engine_mad_counters(e, worker, &s->mad);
	engine_sa_counters(e, worker, &s->sa);
	s->aborts_sent[RMPP_STATUS_T2L] = 3;
	s->memory_used = 100;
	s->memory_total = 1000;
	s->store.version = 5;
}

int
engine_sa_import_start(struct engine *e, const struct engine_sa_import *import, struct error *err)
{
	if (e->sa.import_polls > 0)
		return error_set(err, EBUSY, "another import is under way");
	e->sa.import = *import;
	if (import->text != NULL)
		strncpy(e->sa.import_text, import->text, sizeof(e->sa.import_text) - 1);
	else if (pread(import->fd, e->sa.import_text, sizeof(e->sa.import_text) - 1, 0) < 0)
		return error_set(err, errno, "file");
	e->sa.import_polls = 3;
	return 0;
}

void
engine_sa_import_poll(struct engine *e, struct engine_sa_imported *i, struct error *err)
{
	memset(i, 0, sizeof(*i));
	i->done = --e->sa.import_polls == 0;
	if (!i->done) {
		fake_wake(e);
		return;
	}
	i->result = e->sa.import_result;
	i->records = 42;
	i->elapsed_us = 1500;
	if (i->result != 0)
		error_set(err, -i->result, "line 3: lid: out of range");
}

int
engine_sa_export(struct engine *e, uint64_t *cursor, const struct sa_record_type **type,
	uint32_t *rid, uint8_t *bytes, struct error *err)
{
	if (*cursor > e->sa.exported)
		return error_set(err, ESTALE, "the database has changed too much meanwhile");
	if (*cursor == e->sa.exported)
		return 0;
	node(bytes, ++*cursor);
	*type = sa_record_type(SA_NODE);
	*rid = (uint32_t)*cursor << 16;
	return 1;
}
