/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients of a fleet. Each change has an ID; a client that gets no answer, or is refused, repeats
 * it with the same TID at another appliance, for so long that the fleet promises one effect. What
 * they know at the end is compared with the databases.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/own_wish.h"
#include "fleet_sim.h"
#include "sa/layout.h"
#include "sa/sa.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define PATIENCE_MS 2500 /* of a client, for one answer */
#define REPEAT_MS   15000 /* for so long it repeats */
#define PAUSE_MS    200
#define DATA_OFF    112 /* of a ServiceRecord: bytes that belong to the service */
#define IMPORT_MAX  60 /* records; of some imports: */
#define IMPORT_MORE 400

static void op_try(struct sim *s, void *arg);

/* --- what is asked for --- */

static void
put_gid(uint8_t *to, uint32_t id)
{
	memset(to, 0, 16);
	to[0] = 0xfe;
	to[1] = 0x80;
	put_be32(to + 12, id);
}

static void
op_put_service(uint8_t *rec, uint64_t service)
{
	put_be64(rec + SERVICE_OFF_ID, service);
	put_gid(rec + SERVICE_OFF_GID, 1);
	put_be32(rec + SERVICE_OFF_LEASE, SERVICE_FOREVER);
	put_be64(rec + DATA_OFF, service);
}

static void
put_trap(uint8_t *notice, uint32_t id)
{
	notice[NOTICE_OFF_TYPE] = 0x80 | 1;
	put_be16(notice + NOTICE_OFF_TRAP, 128);
	put_be32(notice + SA_TRAP_LEN - 4, id);
}

static void
op_fill(const struct fleet_op *op, struct sa_write *w)
{
	bool notice = op->kind == FLEET_OP_NOTICE;

	w->version = SA_V2;
	w->type = sa_record_type(notice ? SA_NOTICE : SA_SERVICE);
	w->kind = notice                   ? WRITE_NOTICE
		: op->kind == FLEET_OP_SET ? WRITE_SERVICE_SET
					   : WRITE_SERVICE_DELETE;
	w->who.trusted = w->who.manager = true;
	w->who.sight = SA_SEES_KEYS;
	put_gid(w->who.gid.raw, 1);
	put_gid(w->peer.av.dgid.raw, 1);
	w->peer.qpn = 1;
	w->reply[MAD_OFF_CLASS_VERSION] = SA_V2;
	w->reply[MAD_OFF_METHOD] = notice ? MAD_TRAP : MAD_SET;
	put_be16(w->reply + MAD_OFF_ATTRIBUTE, w->type->attribute);
	put_be64(w->reply + MAD_OFF_TID, op->id);
	if (notice) {
		put_trap(w->rec, op->id);
		return;
	}
	w->mask = SA_BIT(SERVICE_BIT_ID) | SA_BIT(SERVICE_BIT_GID) | SA_BIT(SERVICE_BIT_LEASE);
	op_put_service(w->rec, op->service);
}

/* --- asking --- */

static bool
app_answers(const struct fleet_app *a)
{
	return a->node != NULL && !a->stopping;
}

/* @return number of an appliance; apps: none is on */
static unsigned int
op_choose_app(struct fleet_script *fs)
{
	unsigned int i, first = sim_below(fs->sim, fs->apps);

	for (i = 0; i < fs->apps; i++)
		if (app_answers(&fs->app[(first + i) % fs->apps]))
			return (first + i) % fs->apps;
	return fs->apps;
}

static void
op_ends(struct fleet_op *op, enum fleet_op_state state)
{
	op->state = state;
	sim_trace(op->script->sim, "change %u: %s", op->id,
		state == FLEET_OP_ACKNOWLEDGED      ? "acknowledged"
			: state == FLEET_OP_REFUSED ? "refused"
						    : "given up");
}

static bool
op_may_repeat(const struct fleet_op *op)
{
	return op->kind != FLEET_OP_IMPORT && op->script->sim->now < op->begun + REPEAT_MS * SIM_MS;
}

static void
op_try_later(struct fleet_op *op, uint64_t ms)
{
	struct sim *s = op->script->sim;

	sim_at(s, s->now + sim_wait(s, ms * SIM_MS), op_try, op);
}

/* The client's patience with one appliance is over. */
static void
op_look(struct sim *s, void *arg)
{
	struct fleet_attempt *a = arg;
	struct fleet_op *op = a->op;

	if (a->back || op->state != FLEET_OP_UNDER_WAY)
		return;
	if (op_may_repeat(op))
		op_try(s, op);
	else
		op_ends(op, FLEET_OP_UNKNOWN);
}

static void
op_try(struct sim *s, void *arg)
{
	struct fleet_op *op = arg;
	struct fleet_script *fs = op->script;
	struct fleet_attempt *a;

	if (op->state != FLEET_OP_UNDER_WAY)
		return;
	if (op->tries > 0 && !op_may_repeat(op)) {
		op_ends(op, FLEET_OP_UNKNOWN);
		return;
	}
	op->app = op_choose_app(fs);
	if (op->app == fs->apps) {
		op->tries++;
		op_try_later(op, PAUSE_MS);
		return;
	}
	fs->count.retried += op->tries > 0;
	op->tries++;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		abort();
	a->op = op;
	a->node = fs->app[op->app].node;
	a->next = fs->attempts;
	fs->attempts = a;
	op_fill(op, &a->write);
	sim_trace(s, "change %u: asked for at a%u", op->id, op->app);
	fleet_node_submit(a->node, &a->write);
	sim_at(s, s->now + PATIENCE_MS * SIM_MS, op_look, a);
}

/* --- answers --- */

/* @return number of records with this ServiceID */
static unsigned int
services_in(const struct store_version *v, uint64_t service)
{
	const struct store_record *r;
	struct store_cursor c;
	unsigned int n = 0;
	uint64_t key;

	store_seek_index(&c, v, SA_INDEX_SERVICE_ID, service);
	while ((r = store_next(&c, &key)) != NULL && key == service)
		n += get_be64(r->bytes + SERVICE_OFF_ID) == service &&
			get_be64(r->bytes + DATA_OFF) == service;
	return n;
}

/* Who is answered sees its change at the appliance that has answered. */
static void
check_own_write(struct fleet_node *n, const struct fleet_op *op)
{
	unsigned int found;

	if (op->kind == FLEET_OP_NOTICE || op->undone)
		return;
	found = services_in(fleet_node_view(n), op->service);
	if (found != (op->kind == FLEET_OP_SET))
		sim_fail(op->script->sim,
			"change %u is acknowledged by %s, which has %u records of it", op->id,
			n->fleet->config.name, found);
}

void
fleet_op_handed_back(void *node, struct sa_write *write)
{
	struct fleet_attempt *a = (struct fleet_attempt *)write; /* its first member */
	struct fleet_node *n = node;
	struct fleet_op *op;

	if (n->dead || own_wish_handed_back(n->wish, write) || fleet_importer_handed_back(n, write))
		return; /* of the dead nothing reaches the client */
	op = a->op;
	a->back = true;
	if (op->state != FLEET_OP_UNDER_WAY)
		return;
	sim_trace(op->script->sim, "change %u: status 0x%x from %s", op->id, write->status,
		n->fleet->config.name);
	if (write->status == MAD_STATUS_OK) {
		check_own_write(n, op);
		op_ends(op, FLEET_OP_ACKNOWLEDGED);
	} else {
		op_try_later(op, PAUSE_MS);
	}
}

/* --- imports --- */

/* @return number of records of an import that are there, without one that was deleted */
static unsigned int
import_found(const struct fleet_op *op, const struct store_version *v)
{
	unsigned int i, found = 0;

	for (i = op->undone; i < op->records; i++)
		found += services_in(v, op->service + i);
	return found;
}

struct sa_change *
fleet_op_changes(const struct fleet_op *op)
{
	struct sa_change *changes = calloc(op->records, sizeof(*changes));
	unsigned int i;

	if (changes == NULL)
		abort();
	for (i = 0; i < op->records; i++) {
		changes[i].type = sa_record_type(SA_SERVICE);
		op_put_service(changes[i].rec, op->service + i);
	}
	return changes;
}

void
fleet_op_imported(struct fleet_node *n, struct fleet_op *op, int rc, bool known)
{
	unsigned int found;

	if (rc != 0) {
		op_ends(op, known ? FLEET_OP_REFUSED : FLEET_OP_UNKNOWN);
		return;
	}
	op_ends(op, FLEET_OP_ACKNOWLEDGED);
	found = import_found(op, fleet_node_view(n));
	if (found != op->records)
		sim_fail(n->script->sim, "%s acknowledges import %u and has %u of its %u records",
			n->fleet->config.name, op->id, found, op->records);
}

void
fleet_op_import(struct fleet_node *n)
{
	struct sa_change *changes = fleet_op_changes(n->import);
	int rc = sa_change(n->sa, changes, n->import->records, NULL);

	free(changes);
	if (!n->dead)
		fleet_op_imported(n, n->import, rc, false);
}

static void
op_begin_import(struct fleet_op *op)
{
	struct fleet_script *fs = op->script;
	struct fleet_node *n;
	unsigned int i;

	op->state = FLEET_OP_UNKNOWN; /* also if its appliance is killed */
	i = op_choose_app(fs);
	n = i < fs->apps ? fs->app[i].node : NULL;
	if (n == NULL || n->import != NULL || fleet_importer_works(n))
		return;
	sim_trace(fs->sim, "import %u: %u records at a%u", op->id, op->records, i);
	if (!fleet_leads(n->fleet)) {
		fleet_importer_begin(n, op);
		return;
	}
	n->import = op;
	fiber_wake(n->writer, fs->sim->now);
}

static const uint8_t *
import_record(const struct model_event *e)
{
	char head[16];

	snprintf(head, sizeof(head), "/p/r/%02x", sa_record_type(SA_SERVICE)->table);
	if (e->value == NULL || strncmp(e->key, head, strlen(head)) != 0 ||
		get_be64(e->value + SERVICE_OFF_ID) < FLEET_IMPORT_S)
		return NULL;
	return e->value;
}

void
fleet_op_wrote(struct fleet_script *fs, const struct model_event *e)
{
	const uint8_t *rec = import_record(e);
	const struct etcd_model *m = fs->net.model;
	const struct model_event *old = e->before != 0 ? &m->event[e->before - 1] : NULL;
	const struct model_event *change = etcd_model_at(m, "/p/c/change", m->revision);

	/* a part of a change that is not complete yet may be written again */
	if (rec != NULL && old != NULL && import_record(old) != NULL && change != NULL &&
		change->revision >= old->revision)
		sim_fail(fs->sim, "import %llu was made twice",
			(unsigned long long)(get_be64(rec + SERVICE_OFF_ID) - FLEET_IMPORT_S) /
				1000);
}

/* --- Reports --- */

void
fleet_op_reported(struct fleet_node *n, const struct sa_event *e, uint64_t tid)
{
	struct fleet_script *fs = n->script;
	uint64_t lead = fleet_lead(n->fleet);
	struct fleet_op *op;
	uint32_t id;

	if (!e->is_trap)
		return;
	id = get_be32(e->notice + SA_TRAP_LEN - 4);
	if (id == 0 || id > fs->ops || fs->op[id - 1].kind != FLEET_OP_NOTICE) {
		sim_fail(fs->sim, "%s reports what nobody has sent", n->fleet->config.name);
		return;
	}
	op = &fs->op[id - 1];
	sim_trace(fs->sim, "notice %u: reported by %s", id, n->fleet->config.name);
	fs->count.reports++;
	fs->count.repeated += op->reports > 0;
	if (op->reports > 0 && op->tid != tid)
		sim_fail(fs->sim, "notice %u is reported with two TIDs: it was executed twice", id);
	else if (op->reports > 0 && op->lead == lead)
		sim_fail(fs->sim, "notice %u is reported twice by one leader", id);
	op->tid = tid;
	op->lead = lead;
	op->reports++;
}

/* --- a script's changes --- */

static struct fleet_op *
op_new(struct fleet_script *fs, enum fleet_op_kind kind)
{
	struct fleet_op *op = &fs->op[fs->ops++];

	*op = (struct fleet_op){ .script = fs,
		.kind = kind,
		.id = fs->ops,
		.service = fs->ops,
		.begun = fs->sim->now };
	return op;
}

/* A service that was set or imported and may be deleted, or NULL. */
static struct fleet_op *
op_to_undo(struct fleet_script *fs)
{
	unsigned int i, first = fs->ops != 0 ? sim_below(fs->sim, fs->ops) : 0;

	for (i = 0; i < fs->ops; i++) {
		struct fleet_op *op = &fs->op[(first + i) % fs->ops];

		if ((op->kind == FLEET_OP_SET || op->kind == FLEET_OP_IMPORT) &&
			op->state == FLEET_OP_ACKNOWLEDGED && !op->undone)
			return op;
	}
	return NULL;
}

static void
op_begin(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;
	struct fleet_op *op, *old = NULL;
	uint32_t dice = fs->only_sets ? 100 : sim_below(s, 100);

	if (dice < 20)
		old = op_to_undo(fs);
	if (old != NULL) {
		old->undone = true;
		op = op_new(fs, FLEET_OP_DELETE);
		op->service = old->service;
		op_try(s, op);
	} else if (dice < 45) {
		op_try(s, op_new(fs, FLEET_OP_NOTICE));
	} else if (dice < 52) {
		op = op_new(fs, FLEET_OP_IMPORT);
		op->service = FLEET_IMPORT_S + UINT64_C(1000) * op->id;
		op->records = 2 + sim_below(s, sim_chance(s, 1000) ? IMPORT_MORE : IMPORT_MAX);
		op_begin_import(op);
	} else {
		op_try(s, op_new(fs, FLEET_OP_SET));
	}
	if (--fs->planned > 0)
		sim_at(s, s->now + sim_wait(s, fs->step), op_begin, fs);
}

void
fleet_clients_start(struct fleet_script *fs)
{
	if (fs->planned > FLEET_OPS_MAX)
		abort();
	fs->op = calloc(FLEET_OPS_MAX, sizeof(fs->op[0]));
	if (fs->op == NULL)
		abort();
	sim_at(fs->sim, fs->sim->now + SIM_SECOND, op_begin, fs);
}

bool
fleet_clients_done(const struct fleet_script *fs)
{
	unsigned int i;

	for (i = 0; i < fs->ops; i++)
		if (fs->op[i].state == FLEET_OP_UNDER_WAY)
			return false;
	return fs->planned == 0;
}

void
fleet_clients_free(struct fleet_script *fs)
{
	struct fleet_attempt *a;

	while ((a = fs->attempts) != NULL) {
		fs->attempts = a->next;
		free(a);
	}
	free(fs->op);
}

/* --- at the end --- */

static void
op_check_service(struct fleet_script *fs, const struct fleet_op *op, const struct store_version *v)
{
	unsigned int found = services_in(v, op->service);

	if (op->kind == FLEET_OP_SET && op->undone) /* the Delete is checked */
		return;
	if (op->state == FLEET_OP_ACKNOWLEDGED && found != (op->kind == FLEET_OP_SET))
		sim_fail(fs->sim, "change %u was acknowledged, and there are %u records of it",
			op->id, found);
	else if (found > 1)
		sim_fail(fs->sim, "change %u has %u records", op->id, found);
}

static void
op_check_import(struct fleet_script *fs, const struct fleet_op *op, const struct store_version *v)
{
	unsigned int found = import_found(op, v), all = op->records - op->undone;

	if ((found != all && (found != 0 || op->state == FLEET_OP_ACKNOWLEDGED)) ||
		(found != 0 && op->state == FLEET_OP_REFUSED))
		sim_fail(fs->sim, "import %u of %u records (%s): there are %u", op->id, all,
			op->state == FLEET_OP_ACKNOWLEDGED      ? "acknowledged"
				: op->state == FLEET_OP_REFUSED ? "refused"
								: "outcome unknown",
			found);
}

void
fleet_clients_check(struct fleet_script *fs)
{
	const struct store_version *v = fleet_node_view(fs->app[0].node);
	unsigned int i;

	for (i = 0; i < fs->ops; i++) {
		const struct fleet_op *op = &fs->op[i];

		if (op->kind == FLEET_OP_IMPORT)
			op_check_import(fs, op, v);
		else if (op->kind != FLEET_OP_NOTICE)
			op_check_service(fs, op, v);
		else if (op->state == FLEET_OP_ACKNOWLEDGED && op->reports == 0)
			sim_fail(fs->sim, "notice %u was acknowledged and never reported", op->id);
	}
}
