/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Ports that belong to an appliance of a fleet: see owned.h. */

#include <string.h>

#include "sa/form.h"
#include "sa/layout.h"
#include "sa/owned.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define OWNED_FORM   1 /* of a NodeRecord's tail */
#define LID_RECORDS  64 /* most records of one table and LID */
#define OWNED_TABLES 8
#define NATIVE       0x8000 /* beside the attribute of a record: it has its own LID */

static const uint16_t owned_types[OWNED_TABLES] = { SA_NODE, SA_PORT_INFO, SA_GUID_INFO,
	SA_PKEY_TABLE, SA_LINK, SA_SLTOVL, SA_VLARB, SA_SM_INFO };

/* A request, and what it would do. */
struct owned_plan {
	struct write_batch *batch; /* NULL: only look */
	const struct store_version *seen; /* without a batch */
	const uint8_t *bytes;
	size_t len;
	char owner[OWNED_NAME_MAX];
	size_t records; /* where they begin */
	uint16_t lid[OWNED_PORTS + 1]; /* that the port with this LID of the request has; 0: none */
	uint16_t next_lid; /* to look at */
	uint16_t refused[OWNED_PORTS]; /* LIDs of native ports that are another owner's */
	unsigned int num_refused;
	uint64_t taken;
	bool differs;
	uint16_t status;
};

static const struct store_version *
owned_view(const struct owned_plan *p)
{
	return p->batch != NULL ? write_view(p->batch) : p->seen;
}

/* --- the form of a request --- */

static bool
is_owned_type(const struct sa_record_type *t)
{
	unsigned int i;

	for (i = 0; t != NULL && i < OWNED_TABLES; i++)
		if (t->attribute == owned_types[i])
			return true;
	return false;
}

size_t
owned_put(const char *owner, const struct sa_change *records, size_t n, size_t roce, uint8_t *bytes)
{
	struct form f = { .out = bytes, .len = OWNED_LEN_MAX };
	char name[OWNED_NAME_MAX];
	uint8_t rec[SA_RECORD_MAX];
	uint16_t attribute;
	size_t i;

	snprintf(name, sizeof(name), "%s", owner);
	form_text(&f, name, sizeof(name));
	for (i = 0; i < n; i++) {
		attribute = records[i].type->attribute | (i < roce ? 0 : NATIVE);
		memcpy(rec, records[i].rec, sizeof(rec));
		NUMBER(&f, attribute);
		form_bytes(&f, rec, records[i].type->len);
	}
	return f.bad ? 0 : f.at;
}

/*
 * The record at a position, which moves behind it.
 *
 * @param native  set: it has its own LID
 * @return NULL: it was the last, or the form is bad
 */
static const struct sa_record_type *
owned_next_record(const struct owned_plan *p, struct form *f, uint8_t rec[SA_RECORD_MAX],
	bool *native)
{
	const struct sa_record_type *t;
	uint16_t attribute = 0;

	if (f->at == p->len || f->bad)
		return NULL;
	NUMBER(f, attribute);
	*native = (attribute & NATIVE) != 0;
	t = f->bad ? NULL : sa_record_type(attribute & (uint16_t)~NATIVE);
	if (!is_owned_type(t)) {
		f->bad = true;
		return NULL;
	}
	memset(rec, 0, SA_RECORD_MAX);
	form_bytes(f, rec, t->len);
	return f->bad ? NULL : t;
}

static struct form
first_record(const struct owned_plan *p)
{
	return (struct form){ .in = p->bytes, .len = p->len, .at = p->records };
}

/* --- owners --- */

bool
owner_of(const struct store_record *r, char name[OWNED_NAME_MAX])
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	size_t len = r->len > t->len + 1u ? r->len - t->len - 1u : 0;

	if (r->table != SA_TABLE_NODE || len == 0 || len >= OWNED_NAME_MAX ||
		r->bytes[t->len] != OWNED_FORM)
		return false;
	memcpy(name, r->bytes + t->len + 1, len);
	name[len] = '\0';
	return true;
}

static bool
is_owners(const struct owned_plan *p, const struct store_record *r)
{
	char name[OWNED_NAME_MAX];

	return owner_of(r, name) && strcmp(name, p->owner) == 0;
}

static const struct store_record *
next_node_of_port(struct store_cursor *c, uint64_t guid)
{
	uint64_t key;
	const struct store_record *r = store_next(c, &key);

	return r != NULL && key == guid ? r : NULL;
}

/* A port may have several: an operator has imported it under another LID. */
static const struct store_record *
first_node_of_port(const struct owned_plan *p, uint64_t guid, struct store_cursor *c)
{
	store_seek_index(c, owned_view(p), SA_INDEX_PORT_GUID, guid);
	return next_node_of_port(c, guid);
}

/* A record of a port that is not the owner's, or else the owner's. */
static const struct store_record *
foreign_node_of_port(const struct owned_plan *p, uint64_t guid)
{
	struct store_cursor c;
	const struct store_record *first = first_node_of_port(p, guid, &c), *r;

	for (r = first; r != NULL; r = next_node_of_port(&c, guid))
		if (!is_owners(p, r))
			return r;
	return first;
}

/* --- LIDs --- */

/* The LID of a port of the request, from the record's bytes; 0: it is out of range */
static unsigned int
asked_lid(const struct sa_record_type *t, const uint8_t *rec, const char *field)
{
	uint64_t lid = sa_get_named(t, field, rec);

	return lid <= OWNED_PORTS ? (unsigned int)lid : 0;
}

static bool
lid_is_free(const struct owned_plan *p, uint16_t lid)
{
	const struct store_version *v = owned_view(p);
	const struct store_record *r;
	struct store_cursor c;
	unsigned int i;

	for (i = 0; i < OWNED_TABLES; i++) {
		r = sa_first_of_lid(v, sa_record_type(owned_types[i])->table, lid, &c);
		if (r != NULL && r->rid >> 16 == lid)
			return false;
	}
	return true;
}

static bool
is_of_another_owner(const struct owned_plan *p, const struct store_record *r)
{
	char name[OWNED_NAME_MAX];

	return r != NULL && owner_of(r, name) && strcmp(name, p->owner) != 0;
}

static bool
port_is_of_another_owner(const struct owned_plan *p, uint64_t guid)
{
	const struct store_record *r;
	struct store_cursor c;

	for (r = first_node_of_port(p, guid, &c); r != NULL; r = next_node_of_port(&c, guid))
		if (is_of_another_owner(p, r))
			return true;
	return false;
}

static bool
lid_is_refused(const struct owned_plan *p, uint64_t lid)
{
	unsigned int i;

	for (i = 0; i < p->num_refused; i++)
		if (p->refused[i] == lid)
			return true;
	return lid == 0 || lid > OWNED_LID_LAST;
}

/* A native port: another owner's record of its GUID or LID keeps it out. */
static void
plan_native_lid(struct owned_plan *p, const uint8_t *rec, uint64_t guid)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	uint16_t lid = (uint16_t)sa_get_named(t, "lid", rec);

	if (!port_is_of_another_owner(p, guid) &&
		!is_of_another_owner(p, store_get(owned_view(p), t->table, sa_rid(t, rec))))
		return;
	p->taken = guid;
	if (p->num_refused < OWNED_PORTS)
		p->refused[p->num_refused++] = lid;
}

/* Find the ports that are stored, and with a batch give the others a LID. */
static void
plan_lids(struct owned_plan *p, bool give)
{
	struct form f = first_record(p);
	const struct sa_record_type *t;
	const struct store_record *r;
	uint8_t rec[SA_RECORD_MAX];
	unsigned int port;
	uint64_t guid;
	bool native;

	p->num_refused = 0;
	while ((t = owned_next_record(p, &f, rec, &native)) != NULL) {
		if (t->table != SA_TABLE_NODE)
			continue;
		if (native) {
			plan_native_lid(p, rec, get_be64(rec + NODE_OFF_PORT_GUID));
			continue;
		}
		port = asked_lid(t, rec, "lid");
		guid = get_be64(rec + NODE_OFF_PORT_GUID);
		r = foreign_node_of_port(p, guid);
		if (r != NULL && is_owners(p, r)) {
			p->lid[port] = (uint16_t)(r->rid >> 16);
		} else if (r != NULL) {
			p->taken = guid;
		} else if (give) {
			while (p->next_lid > 0 && !lid_is_free(p, p->next_lid))
				p->next_lid--;
			p->lid[port] = p->next_lid;
			p->next_lid -= p->next_lid > 0;
		} else {
			p->differs = true;
		}
	}
	if (f.bad)
		p->status = SA_STATUS_REQ_INVALID;
	p->lid[0] = 0;
}

/* Replace the request's LIDs in a record of a RoCE port. @return false: its port has none */
static bool
give_lids(const struct owned_plan *p, const struct sa_record_type *t, uint8_t *rec, bool native)
{
	static const char *const fields[] = { "lid", "base_lid", "from_lid", "to_lid" };
	bool link = t->table == SA_TABLE_LINK;
	unsigned int i, first = link ? 2 : 0;
	unsigned int end = link ? 4 : t->table == SA_TABLE_PORT_INFO ? 2 : 1;
	uint16_t lid;

	if (native)
		return !lid_is_refused(p, sa_rid(t, rec) >> 16);
	for (i = first; i < end; i++) {
		lid = p->lid[asked_lid(t, rec, fields[i])];
		if (lid == 0)
			return false;
		sa_put_named(t, fields[i], rec, lid);
	}
	return true;
}

/* --- changes --- */

static bool
owned_is_asked(const struct owned_plan *p, const struct store_record *r)
{
	struct form f = first_record(p);
	const struct sa_record_type *t;
	uint8_t rec[SA_RECORD_MAX];
	bool native;

	while ((t = owned_next_record(p, &f, rec, &native)) != NULL)
		if (t->table == r->table && give_lids(p, t, rec, native) &&
			sa_rid(t, rec) == r->rid)
			return true;
	return false;
}

/* A link to another node, as an operator has imported it, is not the port's. */
static bool
is_foreign_link(const struct store_record *r, const uint16_t *lids, unsigned int n)
{
	unsigned int i;
	uint64_t to;

	if (r->table != SA_TABLE_LINK)
		return false;
	to = sa_get_named(sa_record_type(SA_LINK), "to_lid", r->bytes);
	for (i = 0; i < n; i++)
		if (lids[i] == to)
			return false;
	return true;
}

/* Remove records of one of the owner's LIDs, except those of the request. */
static void
remove_others(struct owned_plan *p, const struct sa_record_type *t, uint16_t lid,
	const uint16_t *lids, unsigned int num_lids)
{
	const struct store_record *r;
	uint32_t gone[LID_RECORDS];
	struct store_cursor c;
	unsigned int i, n = 0;

	for (r = sa_first_of_lid(owned_view(p), t->table, lid, &c);
		r != NULL && r->rid >> 16 == lid && n < LID_RECORDS; r = store_next(&c, NULL))
		if (!owned_is_asked(p, r) && !is_foreign_link(r, lids, num_lids))
			gone[n++] = r->rid;
	p->differs |= n > 0;
	for (i = 0; i < n && p->batch != NULL && p->status == MAD_STATUS_OK; i++)
		p->status = write_del(p->batch, t, gone[i]);
}

/* LIDs under which an operator has imported native ports of the request that have others now. */
static unsigned int
list_strays(const struct owned_plan *p, uint16_t lids[OWNED_PORTS])
{
	struct form f = first_record(p);
	const struct sa_record_type *t;
	const struct store_record *r;
	struct store_cursor c;
	uint8_t rec[SA_RECORD_MAX];
	unsigned int n = 0;
	char name[OWNED_NAME_MAX];
	uint64_t guid;
	bool native;

	while ((t = owned_next_record(p, &f, rec, &native)) != NULL && n < OWNED_PORTS) {
		if (!native || t->table != SA_TABLE_NODE)
			continue;
		guid = get_be64(rec + NODE_OFF_PORT_GUID);
		for (r = first_node_of_port(p, guid, &c); r != NULL && n < OWNED_PORTS;
			r = next_node_of_port(&c, guid))
			if (!owner_of(r, name) && r->rid != sa_rid(t, rec))
				lids[n++] = (uint16_t)(r->rid >> 16);
	}
	return n;
}

static void
plan_removals(struct owned_plan *p)
{
	uint16_t lids[OWNED_PORTS];
	const struct store_record *r;
	struct store_cursor c;
	unsigned int i, k, n = list_strays(p, lids);

	store_seek(&c, owned_view(p), SA_TABLE_NODE, 0);
	while ((r = store_next(&c, NULL)) != NULL && n < OWNED_PORTS)
		if (is_owners(p, r))
			lids[n++] = (uint16_t)(r->rid >> 16);
	for (i = 0; i < n; i++)
		for (k = OWNED_TABLES; k-- > 0;) /* the NodeRecord, which has the owner, last */
			remove_others(p, sa_record_type(owned_types[k]), lids[i], lids, n);
}

static void
put_record(struct owned_plan *p, const struct sa_record_type *t, const uint8_t *rec)
{
	const struct store_record *r = store_get(owned_view(p), t->table, sa_rid(t, rec));
	uint8_t tail[1 + OWNED_NAME_MAX] = { OWNED_FORM };
	size_t len = t->table == SA_TABLE_NODE ? 1 + strlen(p->owner) : 0;

	memcpy(tail + 1, p->owner, strlen(p->owner));
	if (r != NULL && r->len == t->len + len && memcmp(r->bytes, rec, t->len) == 0 &&
		memcmp(r->bytes + t->len, tail, len) == 0)
		return;
	p->differs = true;
	if (p->batch != NULL)
		p->status = write_put(p->batch, t, sa_rid(t, rec), rec, len > 0 ? tail : NULL, len);
}

static void
plan_puts(struct owned_plan *p)
{
	struct form f = first_record(p);
	const struct sa_record_type *t;
	uint8_t rec[SA_RECORD_MAX];
	bool native;

	while (p->status == MAD_STATUS_OK && (t = owned_next_record(p, &f, rec, &native)) != NULL)
		if (give_lids(p, t, rec, native))
			put_record(p, t, rec);
}

static void
plan_owned(struct owned_plan *p)
{
	struct form f = { .in = p->bytes, .len = p->len };

	form_text(&f, p->owner, sizeof(p->owner));
	p->records = f.at;
	p->next_lid = OWNED_LID_LAST;
	p->status = f.bad ? SA_STATUS_REQ_INVALID : MAD_STATUS_OK;
	if (p->status == MAD_STATUS_OK)
		plan_lids(p, false);
	if (p->status == MAD_STATUS_OK)
		plan_removals(p);
	if (p->status == MAD_STATUS_OK && p->batch != NULL)
		plan_lids(p, true);
	plan_puts(p);
}

bool
owned_differs(const struct store_version *v, const uint8_t *bytes, size_t len, uint64_t *taken)
{
	struct owned_plan p = { .seen = v, .bytes = bytes, .len = len };

	plan_owned(&p);
	*taken = p.taken;
	return p.differs;
}

uint16_t
write_owned(struct write_batch *b, struct sa_write *w)
{
	struct owned_plan p = { .batch = b, .bytes = w->forwarded, .len = w->data_len };

	plan_owned(&p);
	return p.status;
}
