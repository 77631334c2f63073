/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA's client. A query becomes one MAD and, for a Config, a stream of records. The bytes of an
 * answer become records again, wherever segments split them (sa-multipacket A6, B1, B4, B7).
 */

#include <errno.h>
#include <string.h>

#include <rte_debug.h>

#include "sa/client.h"
#include "sa/client_private.h"
#include "sa/layout.h"

#define SLOTS_MAX         4096
#define RESP_TIME_UNKNOWN 18 /* opensm's value; used if the SA has no ClassPortInfo */
#define MULTI_COUNTS      (SA_BIT(MPR_BIT_SGID_COUNT) | SA_BIT(MPR_BIT_DGID_COUNT))

/* Each operation on the wire; method 0: the class version does not have the operation. */
static const struct op_info {
	uint8_t method[3]; /* by class version */
	uint8_t edit; /* version 1: value of EditModifier */
	uint8_t flags;
} ops[] = {
	[SA_OP_GET] = { { 0, MAD_GET, MAD_GET }, SA_EDIT_NONE, 0 },
	[SA_OP_TABLE] = { { 0, SA_GET_TABLE, SA_GET_TABLE }, SA_EDIT_NONE,
		MAD_METHOD_MULTI_RESPONSE },
	[SA_OP_BULK] = { { 0, SA1_GET_BULK, 0 }, SA_EDIT_NONE, MAD_METHOD_MULTI_RESPONSE },
	[SA_OP_SET] = { { 0, MAD_SET, MAD_SET }, SA_EDIT_ADD, 0 },
	[SA_OP_DELETE] = { { 0, MAD_SET, SA2_DELETE }, SA_EDIT_DELETE, 0 },
	[SA_OP_CONFIG_ADD] = { { 0, SA1_CONFIG, 0 }, SA_EDIT_ADD, MAD_METHOD_MULTI_REQUEST },
	[SA_OP_CONFIG_DELETE] = { { 0, SA1_CONFIG, 0 }, SA_EDIT_DELETE, MAD_METHOD_MULTI_REQUEST },
	[SA_OP_MULTI] = { { 0, 0, SA2_GET_MULTI }, SA_EDIT_NONE,
		MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE },
	[SA_OP_CONFIG_EDIT] = { { 0, SA1_CONFIG, 0 }, SA_EDIT_EDIT, MAD_METHOD_MULTI_REQUEST },
};

struct sa_client *
sa_client_create(struct mad_worker *mad, const struct allocator *alloc, unsigned int max)
{
	struct sa_client *c;
	unsigned int i;

	if (max == 0 || max > SLOTS_MAX)
		return NULL;
	c = mem_zalloc(alloc, sizeof(*c), _Alignof(struct sa_client));
	if (c == NULL)
		return NULL;
	c->mad = mad;
	c->alloc = alloc;
	c->known = &c->own;
	sa_client_edit_codes(c, (const uint8_t[]){ 1, 2, 3 });
	c->slots = mem_zalloc(alloc, max * sizeof(c->slots[0]), _Alignof(struct client_query));
	if (c->slots == NULL) {
		mem_free(alloc, c);
		return NULL;
	}
	for (i = 0; i < max; i++) {
		c->slots[i].client = c;
		c->slots[i].next = c->free;
		c->free = &c->slots[i];
	}
	return c;
}

void
sa_client_destroy(struct sa_client *c)
{
	if (c == NULL)
		return;
	mem_free(c->alloc, c->slots);
	mem_free(c->alloc, c);
}

void
sa_client_share(struct sa_client *c, struct sa_known *known)
{
	c->known = known;
}

void
sa_client_edit_codes(struct sa_client *c, const uint8_t codes[3])
{
	memcpy(c->edit_code + SA_EDIT_ADD, codes, 3);
}

/* --- the request --- */

static bool
client_is_config(enum sa_op op)
{
	return op == SA_OP_CONFIG_ADD || op == SA_OP_CONFIG_DELETE || op == SA_OP_CONFIG_EDIT;
}

/* A7: version 1 masks count the components without the RID part, which cannot be selected. */
static int
mask_v1(const struct sa_query *q, uint64_t *mask, struct error *err)
{
	const struct sa_record_type *t = q->type;
	const struct sa_field *f;
	uint64_t two, one;

	*mask = 0;
	for (f = t->fields; f < t->fields + t->num_fields; f++) {
		two = sa_mask(t, f, SA_V2);
		if ((q->mask & two) == 0)
			continue;
		one = sa_mask(t, f, SA_V1);
		if (one == 0)
			return error_set(err, EINVAL,
				"%s: cannot be selected in class version 1, where it is part of the record identifier: give rid, or ask in class version 2",
				f->name);
		*mask |= one;
	}
	return 0;
}

/* AttributeModifier and EndRID (A6). */
static void
put_range(uint8_t *mad, const struct sa_query *q)
{
	uint32_t rid = SA_RID_TEMPLATE, end = 0;

	switch (q->op) {
	case SA_OP_GET:
	case SA_OP_TABLE:
		if (q->by_rid) {
			rid = q->rid;
			end = q->op == SA_OP_TABLE ? q->end_rid : 0;
		} else if (q->op == SA_OP_TABLE && q->mask == 0) {
			rid = SA_RID_ALL_FIRST;
			end = SA_RID_ALL_LAST;
		}
		break;
	case SA_OP_DELETE:
		rid = q->rid;
		break;
	default:
		rid = 0;
	}
	put_be32(mad + MAD_OFF_MODIFIER, rid);
	put_be32(mad + SA1_OFF_END_RID, end);
}

static int
build_v1(const struct sa_client *c, uint8_t *mad, const struct sa_query *q, struct error *err)
{
	uint64_t mask = 0;
	int ret;

	put_be64(mad + SA1_OFF_SA_KEY, q->sa_key);
	put_be64(mad + SA1_OFF_SM_KEY, q->sm_key);
	mad[SA1_OFF_EDIT] = c->edit_code[ops[q->op].edit];
	put_range(mad, q);
	if (q->op == SA_OP_TABLE || q->op == SA_OP_BULK)
		put_be16(mad + SA1_OFF_WINDOW, SA1_WINDOW_DEFAULT);
	if (q->op == SA_OP_BULK || client_is_config(q->op) || (q->by_rid && q->op != SA_OP_SET))
		return 0;
	if (q->op == SA_OP_GET || q->op == SA_OP_TABLE) {
		ret = mask_v1(q, &mask, err);
		if (ret != 0)
			return ret;
		put_be64(mad + SA1_OFF_MASK, mask);
	}
	/* without RID: neither a template nor a record to add has one */
	memcpy(mad + SA1_OFF_DATA, q->tmpl + q->type->rid_len, q->type->len - q->type->rid_len);
	return 0;
}

static int
build_v2(uint8_t *mad, const struct sa_query *q)
{
	put_be64(mad + SA2_OFF_SM_KEY, q->sm_key);
	put_be64(mad + SA2_OFF_MASK, q->op == SA_OP_MULTI ? q->mask | MULTI_COUNTS : q->mask);
	sa_encode(q->type, SA_V2, q->tmpl, 0, mad + SA2_OFF_DATA);
	return 0;
}

static int
client_build(const struct sa_client *c, uint8_t *mad, const struct sa_query *q, struct error *err)
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	mad[MAD_OFF_CLASS_VERSION] = (uint8_t)q->version;
	mad[MAD_OFF_METHOD] = ops[q->op].method[q->version];
	/* version 1 has a separate method for subscriptions (A2) */
	if (q->version == SA_V1 && q->op == SA_OP_SET && q->type->attribute == SA_INFORM_INFO)
		mad[MAD_OFF_METHOD] = SA1_INFORM;
	if (q->op != SA_OP_BULK)
		put_be16(mad + MAD_OFF_ATTRIBUTE, q->type->attribute);
	put_be64(mad + MAD_OFF_TID, q->tid);
	return q->version == SA_V1 ? build_v1(c, mad, q, err) : build_v2(mad, q);
}

static int
client_check(const struct sa_query *q, struct error *err)
{
	if (q->version != SA_V1 && q->version != SA_V2)
		return error_set(err, EINVAL, "class_version: got %d, expected 1 or 2",
			(int)q->version);
	if (ops[q->op].method[q->version] == 0)
		return error_set(err, EINVAL, "class_version: got %d, but %s of class version %d",
			(int)q->version,
			q->op == SA_OP_MULTI ? "GetMulti is" : "GetBulk and Config are",
			q->op == SA_OP_MULTI ? 2 : 1);
	if (q->op != SA_OP_BULK && q->type == NULL)
		return error_set(err, EINVAL, "record: missing");
	if (q->op == SA_OP_MULTI && q->type->attribute != SA_MULTI_PATH)
		return error_set(err, EINVAL,
			"record: got %s, but GetMulti asks by MultiPathRecord", q->type->name);
	if (q->op == SA_OP_MULTI &&
		(q->tmpl[MPR_OFF_SGID_COUNT] == 0 || q->tmpl[MPR_OFF_DGID_COUNT] == 0))
		return error_set(err, EINVAL,
			"gids: GetMulti needs a source and a destination at least");
	if (q->by_rid && q->version == SA_V2)
		return error_set(err, EINVAL,
			"rid: class version 2 has no record identifiers: give fields");
	if (q->by_rid && q->op == SA_OP_GET && (q->rid == 0 || q->rid == SA_RID_TEMPLATE))
		return error_set(err, EINVAL, "rid: got 0x%08x, expected one record's", q->rid);
	if (q->version == SA_V1 && q->op == SA_OP_DELETE && (!q->by_rid || q->rid == 0))
		return error_set(err, EINVAL,
			"rid: missing: class version 1 deletes by record identifier");
	if (client_is_config(q->op) && q->num_records == 0)
		return error_set(err, EINVAL, "records: a Config needs one at least");
	return 0;
}

/* --- the answer --- */

static void
client_give_back(struct client_query *s)
{
	s->next = s->client->free;
	s->client->free = s;
}

static int
client_take_record(struct client_query *s, const uint8_t *wire)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	uint32_t rid = 0;

	sa_decode(s->type, s->version, wire, rec, &rid);
	return s->taker.record(s->taker.arg, s->type, rid, rec);
}

/*
 * GetBulk: the header tells what records follow. A table that we do not know, or whose records have
 * another length, cannot be decoded.
 */
static int
client_take_header(struct client_query *s, const uint8_t *wire)
{
	const struct sa_record_type *t = sa_record_type(get_be16(wire + SA_BULK_ATTRIBUTE));

	s->left = get_be32(wire + SA_BULK_COUNT);
	if (s->left == 0)
		return 0; /* an empty table: another header follows */
	if (t == NULL || sa_wire_len(t, SA_V1) != get_be16(wire + SA_BULK_RECORD_LEN))
		return -EPROTO;
	s->type = t;
	s->wire_len = sa_wire_len(t, SA_V1);
	return 0;
}

static int
client_take_bulk(struct client_query *s, const uint8_t *wire)
{
	int ret;

	if (s->left == 0)
		return client_take_header(s, wire);
	ret = client_take_record(s, wire);
	if (--s->left == 0)
		s->wire_len = SA_BULK_HEADER;
	return ret;
}

/* Decode the stream. Records follow each other without gaps; segments may split a record. */
static int
client_take_stream(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct client_query *s = arg;
	const uint8_t *wire;
	uint32_t n;
	int ret = 0;

	(void)offset; /* data arrives in order, each byte once */
	while (len > 0 && ret == 0) {
		n = s->wire_len - s->held;
		wire = data;
		if (s->held > 0 || len < n) {
			n = n < len ? n : len;
			memcpy(s->part + s->held, data, n);
			wire = s->part;
		}
		data += n;
		len -= n;
		s->held += n;
		if (s->held < s->wire_len)
			break;
		s->held = 0;
		ret = s->op == SA_OP_BULK ? client_take_bulk(s, wire) : client_take_record(s, wire);
	}
	return ret;
}

/* A Get or Set is answered by one packet with one record, a Delete in version 1 by one without. */
static int
client_take_single(struct client_query *s, const uint8_t *mad)
{
	if (s->op == SA_OP_DELETE && s->version == SA_V1)
		return 0;
	return client_take_record(s, mad + (s->version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA));
}

static bool
foreign_stride(const struct client_query *s, const struct mad_result *r)
{
	uint32_t stride;

	if (s->version != SA_V2 || (s->op != SA_OP_TABLE && s->op != SA_OP_MULTI) ||
		r->bytes == 0 || r->mad == NULL)
		return false;
	stride = 8u * get_be16(r->mad + SA2_OFF_ATTR_OFFSET);
	return stride != 0 && stride != s->wire_len;
}

static void
client_spoil(struct mad_result *r, enum mad_end end, int error)
{
	r->end = end;
	r->error = error;
}

static void
client_answered(void *arg, const struct mad_result *result)
{
	struct client_query *s = arg;
	struct sa_taker taker = s->taker;
	struct mad_result r = *result;
	uint64_t sa_key = 0;
	int ret = 0;

	if (r.end == MAD_END_TIMEOUT)
		client_forget(s); /* the SA may have been replaced, or have become slower */
	if (r.mad != NULL && s->version == SA_V1)
		sa_key = get_be64(r.mad + SA1_OFF_SA_KEY);
	if (r.end == MAD_END_OK && (ops[s->op].flags & MAD_METHOD_MULTI_RESPONSE) != 0) {
		/* a partial record, or records with another stride: not a table that we can read */
		if (s->held != 0 || s->left != 0 || foreign_stride(s, &r))
			client_spoil(&r, MAD_END_PROTOCOL, -EPROTO);
	} else if (r.end == MAD_END_OK && !client_is_config(s->op) && r.mad != NULL) {
		ret = client_take_single(s, r.mad);
		if (ret != 0)
			client_spoil(&r, MAD_END_REFUSED, ret);
	}
	client_give_back(s);
	taker.done(taker.arg, &r, sa_key);
}

static void
client_fill(struct client_query *s, const struct sa_query *q, const struct sa_taker *taker)
{
	s->op = q->op;
	s->version = q->version;
	/* MultiPathRecord asks, PathRecords answer */
	s->type = q->op == SA_OP_MULTI ? sa_record_type(SA_PATH) : q->type;
	s->taker = *taker;
	s->records = q->records;
	s->rids = q->rids;
	s->wire_len = q->op == SA_OP_BULK ? SA_BULK_HEADER : sa_wire_len(s->type, q->version);
	s->held = 0;
	s->left = 0;
}

static void
client_fill_call(struct client_query *s, const struct sa_query *q)
{
	s->call = (struct mad_call){
		.to = q->to,
		.protocol = q->version == SA_V1 ? MAD_SA1 : MAD_RMPP,
		.data_offset = q->version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA,
		.mad = s->mad,
		.keep_tid = q->keep_tid,
		.flags = MAD_METHOD_SESSION | ops[q->op].flags,
		.resp_time = q->resp_time,
		.taker = { .arg = s, .done = client_answered },
	};
	if (s->call.flags & MAD_METHOD_MULTI_RESPONSE)
		s->call.taker.data = client_take_stream;
	if (s->call.flags & MAD_METHOD_MULTI_REQUEST)
		client_source(s, q, &s->call.source);
}

/* --- get the SA's ClassPortInfo before the first query --- */

static void
class_answered(void *arg, const struct mad_result *result)
{
	struct client_query *s = arg;
	struct mad_result failed = { .end = MAD_END_REFUSED };
	mad_handle h = 0;

	s->call.resp_time = RESP_TIME_UNKNOWN;
	if (result->end == MAD_END_OK)
		s->call.resp_time =
			result->mad[s->call.data_offset + CPI_OFF_RESP_TIME] & CPI_RESP_TIME_MASK;
	else if (result->end != MAD_END_STATUS) {
		client_answered(s, result);
		return;
	}
	client_learn(s, s->call.resp_time);
	failed.error = mad_call(s->client->mad, &s->call, s->asked + result->elapsed, &h);
	if (failed.error != 0)
		client_answered(s, &failed);
	else if (s->taker.moved != NULL)
		s->taker.moved(s->taker.arg, h);
}

static int
ask_class(struct client_query *s, uint64_t now, mad_handle *h)
{
	unsigned int key = s->version == SA_V1 ? SA1_OFF_SM_KEY : SA2_OFF_SM_KEY;
	uint8_t mad[MAD_LEN] = { 0 };
	struct mad_call call = {
		.to = s->call.to,
		.protocol = s->call.protocol,
		.data_offset = s->call.data_offset,
		.flags = MAD_METHOD_SESSION,
		.mad = mad,
		.resp_time = RESP_TIME_UNKNOWN,
		.taker = { .arg = s, .done = class_answered },
	};

	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	mad[MAD_OFF_CLASS_VERSION] = (uint8_t)s->version;
	mad[MAD_OFF_METHOD] = MAD_GET;
	put_be16(mad + MAD_OFF_ATTRIBUTE, SA_CLASS_PORT_INFO);
	memcpy(mad + key, s->mad + key, sizeof(uint64_t));
	return mad_call(s->client->mad, &call, now, h);
}

static int
client_query_start(struct client_query *s, uint64_t now, mad_handle *h)
{
	int known;

	if (s->call.resp_time == SA_RESP_TIME_ASK) {
		known = client_known(s);
		if (known < 0)
			return ask_class(s, now, h);
		s->call.resp_time = (uint8_t)known;
	}
	return mad_call(s->client->mad, &s->call, now, h);
}

int
sa_ask(struct sa_client *c, const struct sa_query *q, const struct sa_taker *taker, uint64_t now,
	mad_handle *h, struct error *err)
{
	struct client_query *s = c->free;
	uint8_t mad[MAD_LEN];
	int ret;

	RTE_ASSERT(taker->record != NULL && taker->done != NULL);
	ret = client_check(q, err);
	if (ret == 0)
		ret = client_build(c, mad, q, err);
	if (ret != 0)
		return ret;
	if (s == NULL)
		return error_set(err, ENOSPC, "too many SA queries in progress");
	c->free = s->next;
	client_fill(s, q, taker);
	memcpy(s->mad, mad, MAD_LEN);
	client_fill_call(s, q);
	s->asked = now;
	ret = client_query_start(s, now, h);
	if (ret == 0)
		return 0;
	client_give_back(s);
	if (ret == -EEXIST)
		return error_set(err, EEXIST, SA_TID_IN_USE);
	return error_set(err, -ret, "no MAD session is free for another query");
}
