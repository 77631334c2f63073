/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Queries of the client, and the check of their answers. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "sa/bulk.h"
#include "sa_sim.h"
#include "wire/bytes.h"

#define LIDS_EACH 16

/* --- received records --- */

static int
sa_flow_take_record(void *arg, const struct sa_record_type *type, uint32_t rid, const uint8_t *rec)
{
	struct sa_flow *f = arg;

	f->count++;
	f->sum += sa_record_sum(type->table, rec, type->len);
	if (f->kind != SA_ASK_BULK && f->kind != SA_ASK_PATH && type->rid_len != 0) {
		if (f->count > 1 && rid <= f->last_rid)
			f->unordered = true;
		f->last_rid = rid;
	}
	f->rid = rid;
	if (f->fickle && f->count == f->refuse_at)
		return -ECANCELED;
	if (f->kind == SA_ASK_PATH)
		f->sum = 0;
	return 0;
}

static bool
is_write(const struct sa_flow *f)
{
	return f->kind >= SA_ASK_ADD;
}

static bool
sa_flow_is_config(const struct sa_flow *f)
{
	return SA_ASKS(f->kind) & SA_ASKS_CONFIG;
}

/* --- may the query have failed? --- */

static bool
restarted(const struct sa_flow *f)
{
	const struct sa_side *server = &f->script->side[SA_SERVER];

	return server->down || server->restarts != f->restarts;
}

static bool
limit_spent(const struct sa_flow *f, const struct mad_result *r)
{
	struct sa_script *sc = f->script;
	const struct sa_session *t = sa_trace_find(&sc->trace, f->tid);
	const struct mad_limits *l = &sc->side[SA_CLIENT].limits;
	uint64_t age = sc->sim->now - f->asked;
	unsigned int tries = l->retries;

	if (restarted(f))
		return true;
	if (t == NULL)
		return false;
	if (age >= l->rmpp_total_ms * 1000000 || age >= l->keepalive_total_ms * 1000000)
		return true;
	if (r->end == MAD_END_STATUS)
		return false;
	/*
	 * version 1: the server gave up, began again, and asked for segments already acknowledged
	 */
	if (r->end == MAD_END_PROTOCOL && f->query.version == SA_V1)
		return t->lost_in_all >= tries;
	/*
	 * A query may fail only after all allowed tries, each with a lost packet or a late answer;
	 * or if the server silently replaced its half-open session (scarce sessions). For data, the
	 * copy that arrived and the first one after it are not counted; nor is a loss hidden by an
	 * earlier segment that arrives later.
	 */
	return (t->lost + 1 >= tries || sc->side[SA_SERVER].slice != 0 || sc->scarce) &&
		(t->requests > tries || t->resends >= tries || t->data[0] + 1 >= tries ||
			t->data[1] + 1 >= tries);
}

static bool
any_count(const struct sa_flow *f, uint64_t least, uint64_t most)
{
	for (unsigned int i = 0; i < f->watch.num_allowed; i++)
		if (f->watch.allowed[i].count >= least && f->watch.allowed[i].count <= most)
			return true;
	return false;
}

static bool
status_expected(const struct sa_flow *f, uint16_t status)
{
	const struct sa_script *sc = f->script;
	bool get = f->kind == SA_ASK_GET || f->kind == SA_ASK_GET_NONE;

	switch (status) {
	case SA_STATUS_NO_RECORDS:
	case SA_STATUS_REQ_INVALID: /* a repeated Delete whose first answer was lost */
		return status == SA_STATUS_NO_RECORDS && get
			? any_count(f, 0, 0)
			: sc->scarce && is_write(f) && f->executed > 0;
	case SA_STATUS_TOO_MANY:
		return (get && any_count(f, 2, UINT64_MAX)) || sc->scarce;
	case SA_STATUS_NO_RESOURCES:
		return sc->scarce || sc->crashes;
	case MAD_STATUS_BUSY:
		return sc->scarce || sc->side[SA_SERVER].refuse > 0;
	case MAD_STATUS_INVALID_FIELD: /* a Resend whose session was replaced */
		return sc->scarce && f->query.version == SA_V1;
	case SA_STATUS_INVALID_GID:
		return f->kind == SA_ASK_PATH;
	default:
		return false;
	}
}

/* --- check of answers --- */

static void
judge_read(struct sa_flow *f)
{
	struct sim *s = f->script->sim;

	if (f->unordered)
		sim_fail(s, "query %u: records out of order or twice", f->index);
	else if (f->kind != SA_ASK_PATH && !sa_watch_allows(&f->watch, f->count, f->sum))
		sim_fail(s,
			"query %u (kind %d, version %d, %s): %llu records that no version had; "
			"there were %llu at first, %llu at last in %u versions",
			f->index, f->kind, f->query.version,
			f->query.type ? f->query.type->name : "bulk", (unsigned long long)f->count,
			(unsigned long long)f->watch.allowed[0].count,
			(unsigned long long)f->watch.now.count, f->watch.num_allowed);
}

static void
judge_write(struct sa_flow *f, bool ok)
{
	const struct sa_script *sc = f->script;
	struct sim *s = sc->sim;

	if (ok && f->executed == 0)
		sim_fail(s, "write %u (kind %d, version %d): acknowledged, but never committed",
			f->index, f->kind, f->query.version);
	/* with scarce sessions, the server may have forgotten the first Set when it is repeated */
	if (!ok && f->executed > 0 && !restarted(f) && !sc->scarce &&
		f->kind !=
			SA_ASK_SUBSCRIBE /* subscriptions are equal, so another may have set it */)
		sim_fail(s, "write %u (kind %d, version %d): refused, but committed", f->index,
			f->kind, f->query.version);
	if (sa_flow_is_config(f) && f->executed > 1 && !restarted(f) && !sc->scarce)
		sim_fail(s, "Config %u was executed %u times", f->index, f->executed);
}

/* The client itself has ended the query. */
static bool
was_fickle(const struct sa_flow *f, const struct mad_result *r)
{
	return f->fickle &&
		((r->end == MAD_END_REFUSED && r->error == -ECANCELED) ||
			r->end == MAD_END_CANCELLED);
}

static void
sa_flow_judge(struct sa_flow *f, const struct mad_result *r)
{
	struct sa_script *sc = f->script;
	struct sim *s = sc->sim;
	const struct sa_session *t = sa_trace_find(&sc->trace, f->tid);

	if (f->doomed || f->script->lenient || was_fickle(f, r))
		return;
	if (r->end == MAD_END_OK) {
		sc->completed++;
		if (is_write(f))
			judge_write(f, true);
		else
			judge_read(f);
		return;
	}
	if ((r->end == MAD_END_STATUS && status_expected(f, r->status)) ||
		(r->end == MAD_END_ABORTED && r->rmpp_status == RMPP_STATUS_RESX && sc->scarce)) {
		sc->completed++;
		if (is_write(f))
			judge_write(f, false);
		return;
	}
	f->failed = true;
	sc->failed++;
	if (limit_spent(f, r) && !sc->strict)
		return;
	sim_fail(s,
		"query %u (kind %d, version %d, tid %016llx): %s status 0x%04x %s rmpp %u error %d "
		"after %llu us; since something came through: %u requests, %u resends, "
		"segment sent %u/%u times, %u lost",
		f->index, f->kind, f->query.version, (unsigned long long)f->tid,
		mad_end_name(r->end), r->status, mad_status_name(r->status), r->rmpp_status,
		r->error, (unsigned long long)(s->now - f->asked) / 1000, t ? t->requests : 0,
		t ? t->resends : 0, t ? t->data[0] : 0, t ? t->data[1] : 0, t ? t->lost : 0);
}

static void
sa_flow_done(void *arg, const struct mad_result *result, uint64_t sa_key)
{
	struct sa_flow *f = arg;
	struct sa_script *sc = f->script;
	struct sim *s = sc->sim;

	if (f->orphan)
		return;
	if (f->done) {
		sim_fail(s, "query %u ended twice", f->index);
		return;
	}
	f->done = true;
	sc->under_way--;
	coverage_mad_end(s->coverage, result->end);
	sim_trace(s, "query %u ends: %s status 0x%04x, %llu records, key %llx", f->index,
		mad_end_name(result->end), result->status, (unsigned long long)f->count,
		(unsigned long long)sa_key);
	sa_flow_judge(f, result);
	sa_watch_stop(sc->model, &f->watch);
}

void
sa_flow_orphan(struct sa_flow *f)
{
	if (f->done)
		return;
	f->done = f->orphan = true;
	f->failed = true;
	f->script->under_way--;
	sa_watch_stop(f->script->model, &f->watch);
}

/* --- commits of writes --- */

static bool
owns(const struct sa_flow *f, const struct store_op *op, const uint8_t *old)
{
	const uint8_t *bytes = op->bytes != NULL ? op->bytes : old;
	uint16_t lid = (uint16_t)(op->rid >> 16);

	if (op->table != f->query.type->table && f->kind != SA_ASK_SUBSCRIBE)
		return false;
	switch (f->kind) {
	case SA_ASK_SERVICE:
		return bytes != NULL && get_be64(bytes) == f->id;
	case SA_ASK_JOIN:
		return bytes != NULL && get_be64(bytes + 8) == f->id;
	case SA_ASK_SUBSCRIBE:
		return op->table == SA_TABLE_INFORM;
	default:
		return lid >= f->lid && lid < f->lid + LIDS_EACH;
	}
}

static void
sa_flow_commit(void *arg, const struct store_op *op, const uint8_t *old)
{
	struct sa_flow *f = arg;

	if (op != NULL) {
		f->in_batch += owns(f, op, old);
		return;
	}
	if (f->in_batch == 0)
		return;
	if (sa_flow_is_config(f) && f->in_batch != f->query.num_records && !f->script->lenient)
		sim_fail(f->script->sim, "Config %u: %u of %u records in one batch", f->index,
			f->in_batch, f->query.num_records);
	f->executed++;
	f->in_batch = 0;
}

/* --- contents of queries --- */

static void
ask_template(struct sa_flow *f)
{
	struct sa_script *sc = f->script;
	struct sim *s = sc->sim;
	struct sa_query *q = &f->query;
	const struct sa_model_record *r = sa_model_any(sc->model, q->type->table);
	unsigned int wide = r != NULL && sc->main_records > 1000 && q->type == sc->main ? 12 : 1;

	f->kind = SA_ASK_TABLE;
	for (unsigned int tries = 0; tries < 30 && r != NULL; tries++) {
		const struct sa_field *fl = &q->type->fields[sim_below(s, q->type->num_fields)];

		if (fl->kind == SA_RESERVED || fl->bits < wide || fl->mask_bits > 1 ||
			sa_mask(q->type, fl, q->version) == 0)
			continue;
		memcpy(q->tmpl, r->bytes, q->type->len);
		if (sim_below(s, 4) == 0)
			sa_random_record(s, q->type, r->rid, q->tmpl);
		q->mask = sa_mask(q->type, fl, SA_V2);
		f->kind = SA_ASK_TEMPLATE;
		break;
	}
	f->watch.type = q->type;
	f->watch.mask = q->mask;
	memcpy(f->watch.tmpl, q->tmpl, SA_RECORD_MAX);
}

/* Mask bits of the components that make the RID. */
static uint64_t
rid_mask(const struct sa_record_type *t)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < t->num_fields; i++)
		if (t->fields[i].offset < 8u * t->rid_len && t->fields[i].kind != SA_RESERVED)
			mask |= sa_mask(t, &t->fields[i], SA_V2);
	return mask;
}

static void
ask_get(struct sa_flow *f)
{
	struct sa_script *sc = f->script;
	struct sa_query *q = &f->query;
	const struct sa_model_record *r = sa_model_any(sc->model, q->type->table);
	uint32_t rid = r != NULL && f->kind == SA_ASK_GET
		? r->rid
		: sa_nth_rid(q->type, 0x5000, sim_below(sc->sim, 100));

	q->op = SA_OP_GET;
	q->by_rid = q->version == SA_V1;
	q->rid = f->watch.first_rid = f->watch.last_rid = rid;
	if (q->by_rid)
		return;
	sa_rid_put(q->type, q->tmpl, rid);
	q->mask = rid_mask(q->type);
}

static void
ask_range(struct sa_flow *f)
{
	struct sa_query *q = &f->query;
	struct sim *s = f->script->sim;
	uint32_t a = sa_nth_rid(q->type, 1, sim_below(s, f->script->main_records + 20));
	uint32_t b = sa_nth_rid(q->type, 1, sim_below(s, f->script->main_records + 20));

	q->by_rid = true;
	q->rid = a < b ? a : b;
	q->end_rid = a < b ? b : a;
	f->watch.first_rid = q->rid;
	f->watch.last_rid = q->end_rid;
}

static void
ask_config(struct sa_flow *f)
{
	struct sa_script *sc = f->script;
	struct sa_query *q = &f->query;
	struct sim *s = sc->sim;
	uint32_t per_lid = sa_lids(q->type, 100) == 1 ? 200 : 1, n;

	f->lid = (uint16_t)(SA_OWN_LIDS + f->index * LIDS_EACH);
	n = 1 + sim_below(s, sim_below(s, 3) == 0 ? 4 : sc->batch_max);
	if (n > LIDS_EACH * per_lid)
		n = LIDS_EACH * per_lid;
	q->num_records = n;
	f->records = calloc(n, SA_RECORD_MAX);
	f->rids = calloc(n, sizeof(*f->rids));
	q->records = f->records;
	q->rids = f->rids;
	q->op = f->kind == SA_ASK_ADD    ? SA_OP_CONFIG_ADD
		: f->kind == SA_ASK_EDIT ? SA_OP_CONFIG_EDIT
					 : SA_OP_CONFIG_DELETE;
	for (uint32_t i = 0; i < n; i++) {
		f->rids[i] = sa_nth_rid(q->type, f->lid, i);
		sa_random_record(s, q->type, f->rids[i], f->records + i * SA_RECORD_MAX);
	}
}

static void
ask_service(struct sa_flow *f)
{
	struct sa_query *q = &f->query;

	q->op = SA_OP_SET;
	q->type = sa_record_type(SA_SERVICE);
	f->id = UINT64_C(0x1000000000000000) | f->script->sim->seed << 16 | f->index;
	sa_put_named(q->type, "service_id", q->tmpl, f->id);
	memcpy(q->tmpl + 8, sa_gid(f->script, SA_CLIENT).raw, 16);
	sa_put_named(q->type, "service_pkey", q->tmpl, 0xFFFF);
	sa_put_named(q->type, "service_lease", q->tmpl, 0xFFFFFFFF);
	q->mask = 0x57; /* ServiceID, GID, P_Key, Lease, Name (B11) */
	memcpy(q->tmpl + 48, "simulated", 9);
}

static void
ask_join(struct sa_flow *f)
{
	static const uint8_t mgid[8] = { 0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 0, 0 };
	struct sa_query *q = &f->query;

	q->op = SA_OP_SET;
	q->type = sa_record_type(SA_MCMEMBER);
	f->id = f->script->sim->seed << 16 | f->index | UINT64_C(1) << 62;
	memcpy(q->tmpl, mgid, 8);
	put_be64(q->tmpl + 8, f->id);
	memcpy(q->tmpl + 16, sa_gid(f->script, SA_CLIENT).raw, 16);
	put_be32(q->tmpl + 32, 0x0B1B);
	put_be16(q->tmpl + 40, 0xFFFF);
	q->tmpl[38] = q->tmpl[42] = q->tmpl[43] = 3 << 6; /* MTU, rate, life: the largest */
	q->tmpl[48] = 0x21; /* scope link-local, full member */
	/* MGID, PortGID, Q_Key, TClass, P_Key, SL, FlowLabel, JoinState (B11), to create a group */
	q->mask = 0x130C7 & ~UINT64_C(0);
}

static void
ask_subscribe(struct sa_flow *f)
{
	struct sa_query *q = &f->query;

	q->op = SA_OP_SET;
	q->type = sa_record_type(SA_INFORM_INFO);
	put_be16(q->tmpl + 16, 0xFFFF); /* every LID */
	q->tmpl[22] = 1; /* generic */
	q->tmpl[23] = 1; /* subscribe */
	put_be16(q->tmpl + 24, 0xFFFF);
	put_be16(q->tmpl + 26, (uint16_t)(64 + sim_below(f->script->sim, 4)));
	put_be32(q->tmpl + 28, 1u << 8 | 18); /* QP1, RespTime */
	q->tmpl[35] = 4; /* class manager */
}

static const struct ask_info {
	void (*ask)(struct sa_flow *f);
	unsigned int versions; /* bit per version */
} asks[SA_ASK_KINDS] = {
	[SA_ASK_TABLE] = { NULL, 6 },
	[SA_ASK_TEMPLATE] = { ask_template, 6 },
	[SA_ASK_RANGE] = { ask_range, 2 },
	[SA_ASK_BULK] = { NULL, 2 },
	[SA_ASK_GET] = { ask_get, 6 },
	[SA_ASK_GET_NONE] = { ask_get, 6 },
	[SA_ASK_PATH] = { NULL, 6 },
	[SA_ASK_ADD] = { ask_config, 2 },
	[SA_ASK_EDIT] = { ask_config, 2 },
	[SA_ASK_DELETE] = { ask_config, 2 },
	[SA_ASK_SERVICE] = { ask_service, 6 },
	[SA_ASK_JOIN] = { ask_join, 6 },
	[SA_ASK_SUBSCRIBE] = { ask_subscribe, 6 },
};

static enum sa_version
choose_version(struct sa_script *sc, enum sa_ask kind)
{
	unsigned int can = sc->versions & asks[kind].versions;

	if (can == 0)
		can = asks[kind].versions;
	return can == 6 ? (sim_below(sc->sim, 2) ? SA_V1 : SA_V2) : can == 2 ? SA_V1 : SA_V2;
}

struct sa_flow *
sa_flow_create(struct sa_script *sc, enum sa_ask kind)
{
	struct sa_flow *f = calloc(1, sizeof(*f));
	struct sim *s = sc->sim;
	struct sa_query *q;

	if (f == NULL)
		abort();
	q = &f->query;
	f->script = sc;
	f->kind = kind;
	f->index = sc->asked++;
	f->lcore = sim_below(s, sc->side[SA_CLIENT].lcores);
	q->op = kind == SA_ASK_BULK ? SA_OP_BULK : SA_OP_TABLE;
	q->version = choose_version(sc, kind);
	q->type = kind == SA_ASK_BULK                          ? NULL
		: kind == SA_ASK_PATH                          ? sa_record_type(SA_PATH)
		: sim_below(s, 3) || sc->main_records >= 10000 ? sc->main
							       : sa_random_type(s);
	q->to = sa_peer(sc, SA_CLIENT);
	q->resp_time = sc->side[SA_SERVER].limits.resp_time;
	q->sm_key = SA_SM_KEY;
	f->watch.last_rid = UINT32_MAX;
	if (asks[kind].ask != NULL)
		asks[kind].ask(f);
	else if (kind == SA_ASK_PATH) {
		memcpy(q->tmpl + 8, sa_gid(sc, SA_SERVER).raw, 16);
		memcpy(q->tmpl + 24, sa_gid(sc, SA_CLIENT).raw, 16);
		q->mask = 0xC; /* DGID, SGID */
	}
	if (kind == SA_ASK_BULK)
		f->watch.tables = (1u << sa_num_tables) - 1;
	else if (!is_write(f) && kind != SA_ASK_PATH)
		f->watch.tables = 1u << q->type->table;
	f->watch.op = is_write(f) ? sa_flow_commit : NULL;
	f->watch.arg = f;
	if (f->watch.tables != 0 && sim_below(s, 20) == 0) {
		f->fickle = true;
		f->refuse_at = sim_below(s, 2) ? 0 : 1 + sim_below(s, 20);
	}
	if (sc->hostile_lid != 0 && !is_write(f) && sim_below(s, 3) == 0) {
		f->doomed = true;
		q->to.av.dgid = sc->hostile_gid;
		q->to.av.dlid = sc->hostile_lid;
	}
	return f;
}

struct sa_flow *
sa_flow_undo(struct sa_script *sc, const struct sa_flow *first)
{
	struct sa_flow *f = sa_flow_create(sc, first->kind);

	f->again = true;
	f->id = first->id;
	f->query.op = SA_OP_DELETE;
	f->query.version = first->query.version;
	memcpy(f->query.tmpl, first->query.tmpl, SA_RECORD_MAX);
	f->query.rid = first->rid;
	f->query.by_rid = f->query.version == SA_V1;
	/* ServiceID, GID and P_Key; MGID, PortGID and JoinState (B11) */
	f->query.mask = first->kind == SA_ASK_SERVICE ? 0x7 : 0x10003;
	return f;
}

void
sa_flow_free(struct sa_flow *f)
{
	free(f->watch.allowed);
	free(f->records);
	free(f->rids);
	free(f);
}

static void
learn_tid(struct sa_flow *f, struct mad_worker *mad)
{
	struct mad_session_info info;
	uint32_t cursor = 0;

	while (mad_session_next(mad, &cursor, f->script->sim->now, &info))
		if (info.handle == f->handle)
			f->tid = info.tid;
}

/* The operator adds the records that an edit or delete needs. */
static bool
sa_flow_prepare(struct sa_flow *f)
{
	struct sa_script *sc = f->script;
	struct sa_change *changes;
	struct error err = { 0 };
	uint32_t n = f->query.num_records;

	int rc;

	if (f->kind != SA_ASK_EDIT && f->kind != SA_ASK_DELETE)
		return true;
	changes = calloc(n, sizeof(*changes));
	for (uint32_t i = 0; i < n; i++) {
		changes[i].type = f->query.type;
		changes[i].rid = f->rids[i];
		sa_random_record(sc->sim, f->query.type, f->rids[i], changes[i].rec);
	}
	rc = sa_change(sc->side[SA_SERVER].sa, changes, n, &err);
	if (rc < 0 && !sc->crashes)
		sim_fail(sc->sim, "sa_change: %s", err.text);
	free(changes);
	return rc == 0;
}

static void
cancel(struct sim *s, void *arg)
{
	struct sa_flow *f = arg;

	if (!f->done && !s->sa->side[SA_CLIENT].down)
		mad_cancel(s->sa->side[SA_CLIENT].lcore[f->lcore].mad, f->handle, s->now);
}

bool
sa_flow_ask(struct sa_flow *f)
{
	struct sa_script *sc = f->script;
	struct sa_side *client = &sc->side[SA_CLIENT];
	struct sa_taker taker = { f, sa_flow_take_record, sa_flow_done };
	struct sa_lcore *l = &client->lcore[f->lcore];
	struct error err = { 0 };
	int rc;

	if (client->down || sc->side[SA_SERVER].down)
		return false;
	if (!sa_flow_prepare(f) || sc->side[SA_SERVER].down)
		return false;
	f->restarts = sc->side[SA_SERVER].restarts;
	f->asked = sc->sim->now;
	sa_watch_start(sc->model, &f->watch);
	sc->under_way++;
	rc = sa_ask(l->client, &f->query, &taker, sc->sim->now, &f->handle, &err);
	if (rc < 0) {
		sa_watch_stop(sc->model, &f->watch);
		sc->under_way--;
		if (rc != -ENOSPC)
			sim_fail(sc->sim, "query %u (kind %d): sa_ask: %d %s", f->index, f->kind,
				rc, err.text);
		return false;
	}
	learn_tid(f, l->mad);
	if (f->fickle && f->refuse_at == 0)
		sim_at(sc->sim, f->asked + sim_below(sc->sim, 30000), cancel, f);
	sim_trace(sc->sim,
		"query %u: kind %d op %d version %d %s rid 0x%08x tid %016llx, %llu records",
		f->index, f->kind, f->query.op, f->query.version,
		f->query.type ? f->query.type->name : "bulk", f->query.rid,
		(unsigned long long)f->tid, (unsigned long long)f->watch.now.count);
	return true;
}
