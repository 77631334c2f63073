/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests of class version 1 (sa-multipacket A6 to A8): select records by RID, range or template,
 * change them by EditModifier.
 */

#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "wire/bytes.h"

struct request {
	struct sa_worker *w;
	struct mad_request *req;
	const struct sa_record_type *type; /* NULL: unknown attribute */
	struct requester who;
	uint32_t rid; /* AttributeModifier */
	uint32_t end_rid;
	enum sa_edit edit;
	uint64_t sa_key;
	uint64_t mask; /* in version 2's numbering */
	uint8_t tmpl[SA_RECORD_MAX];
};

static enum mad_outcome
v1_refuse_request(struct request *r, uint16_t status)
{
	return sa_refuse(r->w, r->req->reply, status);
}

static bool
has_table(const struct sa_record_type *t)
{
	return t != NULL && (t->stored || t->attribute == SA_PATH);
}

static enum mad_outcome
v1_query(struct request *r, const struct query_spec *how)
{
	struct query_spec spec = *how;

	spec.type = r->type;
	spec.version = SA_V1;
	spec.tmpl = r->tmpl;
	return query_start(r->w, r->req, &spec, &r->who);
}

/*
 * A6 puts the port into the RID only for switches; for a CA or router it is 0. We store the port
 * number in either case, so that a record is the same in both class versions, and accept port 0
 * here.
 */
static uint32_t
stored_rid(const struct request *r)
{
	const struct store_version *v = fabric_version(r->w->fabric);
	const struct store_record *node;

	if (r->type->rid_port == 0 || (r->rid & 0xFF00) != 0 ||
		store_get(v, r->type->table, r->rid) != NULL)
		return r->rid;
	node = store_get(v, SA_TABLE_NODE, r->rid & 0xFFFF0000);
	if (node == NULL || node->bytes[NODE_OFF_TYPE] == NODE_TYPE_SWITCH)
		return r->rid;
	return r->rid | (uint32_t)node->bytes[NODE_OFF_PORT] << 8;
}

static enum mad_outcome
v1_get(struct request *r)
{
	struct query_spec spec = { .get = true, .mask = r->mask, .last_rid = SA_RID_ALL_LAST };

	r->w->counters.get++;
	if (r->type != NULL && r->type->attribute == SA_CLASS_PORT_INFO) {
		sa_class_port_info(r->w, SA_V1, r->req->reply + SA1_OFF_DATA);
		return MAD_ANSWER;
	}
	if (!has_table(r->type))
		return v1_refuse_request(r, MAD_STATUS_BAD_METHOD_ATTR);
	if (r->edit != SA_EDIT_NONE || r->rid == 0)
		return v1_refuse_request(r, MAD_STATUS_INVALID_FIELD);
	if (r->rid != SA_RID_TEMPLATE) {
		if (!r->type->stored) /* computed paths have no RIDs */
			return v1_refuse_request(r, SA_STATUS_REQ_INVALID);
		spec.mask = 0;
		spec.first_rid = spec.last_rid = stored_rid(r);
	}
	return v1_query(r, &spec);
}

/*
 * "Changes since": a removed record leaves nothing to send. So a table that has changed since the
 * token was given is sent completely, with its new token, and one that has not is sent empty, with
 * the old token.
 */
static bool
is_unchanged(const struct request *r)
{
	const struct store_version *v = fabric_version(r->w->fabric);

	return r->sa_key != 0 && r->type->stored &&
		sa_token_covers(r->w->sa, r->sa_key,
			sa_token(r->w->sa, v, r->type->table, r->who.trusted));
}

static enum mad_outcome
v1_get_table(struct request *r)
{
	struct query_spec spec = { .last_rid = SA_RID_ALL_LAST };

	r->w->counters.get_table++;
	if (!has_table(r->type))
		return v1_refuse_request(r, MAD_STATUS_BAD_METHOD_ATTR);
	if (r->edit != SA_EDIT_NONE)
		return v1_refuse_request(r, MAD_STATUS_INVALID_FIELD);
	if (r->rid == SA_RID_TEMPLATE) {
		spec.mask = r->mask;
		return v1_query(r, &spec);
	}
	if (r->rid > r->end_rid)
		return v1_refuse_request(r, MAD_STATUS_INVALID_FIELD);
	if (r->rid == SA_RID_ALL_FIRST && r->end_rid == SA_RID_ALL_LAST) {
		spec.nothing = is_unchanged(r);
		spec.token = r->sa_key;
		return v1_query(r, &spec);
	}
	if (!r->type->stored)
		return v1_refuse_request(r, SA_STATUS_REQ_INVALID);
	spec.first_rid = r->rid;
	spec.last_rid = r->end_rid;
	return v1_query(r, &spec);
}

static enum mad_outcome
v1_get_bulk(struct request *r)
{
	const struct store_version *v = fabric_version(r->w->fabric);
	struct query_spec spec = { .bulk = true };
	unsigned int table;

	r->w->counters.get_bulk++;
	if (!r->who.trusted && !sa_is_master_sm(r->w, &r->who))
		return v1_refuse_request(r, SA_STATUS_DENIED);
	for (table = 0; table < SA_TABLES; table++)
		if (r->sa_key == 0 ||
			!sa_token_covers(r->w->sa, r->sa_key, sa_token(r->w->sa, v, table, true)))
			spec.bulk_tables |= 1u << table;
	return v1_query(r, &spec);
}

/* Set cannot edit (A6). It can add records that are identified without a RID. */
static enum mad_outcome
v1_set_record(struct request *r)
{
	struct sa_write write = {
		.version = SA_V1,
		.type = r->type,
		.mask = r->mask,
		.rid = r->rid,
	};

	r->w->counters.set++;
	if (r->type == NULL ||
		(r->type->attribute != SA_SERVICE && r->type->attribute != SA_MCMEMBER))
		return v1_refuse_request(r, MAD_STATUS_BAD_METHOD_ATTR);
	if (r->edit == SA_EDIT_DELETE) {
		write.kind = WRITE_RID_DELETE;
		return sa_submit(r->w, r->req, &r->who, &write);
	}
	if (r->edit != SA_EDIT_ADD || r->rid != 0)
		return v1_refuse_request(r, MAD_STATUS_INVALID_FIELD);
	write.kind = r->type->attribute == SA_SERVICE ? WRITE_SERVICE_SET : WRITE_MC_JOIN;
	/* mask 0: all components are given */
	if (write.mask == 0)
		write.mask = sa_mask_known(r->type);
	memcpy(write.rec, r->tmpl, r->type->len);
	return sa_submit(r->w, r->req, &r->who, &write);
}

static enum mad_outcome
v1_inform(struct request *r)
{
	struct sa_write write = { .version = SA_V1, .type = r->type, .kind = WRITE_SUBSCRIBE };

	r->w->counters.set++;
	if (r->type == NULL || r->type->attribute != SA_INFORM_INFO)
		return v1_refuse_request(r, MAD_STATUS_BAD_METHOD_ATTR);
	memcpy(write.rec, r->tmpl, r->type->len);
	return sa_submit(r->w, r->req, &r->who, &write);
}

static bool
may_config(const struct sa_worker *w, const struct requester *who)
{
	return who->manager || sa_is_master_sm(w, who);
}

uint16_t
sa_admit_v1(void *arg, const struct mad_peer *peer, const uint8_t *mad, bool *trusted)
{
	struct sa_worker *w = arg;
	struct requester who;

	fabric_sync(w->fabric);
	*trusted = sa_requester(w->config, w->fabric, peer, get_be64(mad + SA1_OFF_SM_KEY), &who) &&
		may_config(w, &who);
	if (*trusted)
		return MAD_STATUS_OK;
	w->counters.denied++;
	return SA_STATUS_REQ_INVALID; /* version 1 has no code for a denied request (A8) */
}

static enum mad_outcome
v1_config(struct request *r)
{
	struct sa_write write = {
		.version = SA_V1,
		.type = r->type,
		.kind = WRITE_CONFIG,
		.edit = r->edit,
	};
	const struct mad_request *req = r->req;
	uint64_t len;

	r->w->counters.config++;
	if (!may_config(r->w, &r->who))
		return v1_refuse_request(r, SA_STATUS_DENIED);
	if (r->type == NULL || !r->type->stored)
		return v1_refuse_request(r, MAD_STATUS_BAD_METHOD_ATTR);
	if (r->edit == SA_EDIT_NONE || r->edit == SA_EDIT_UNKNOWN)
		return v1_refuse_request(r, MAD_STATUS_INVALID_FIELD);
	len = req->body != NULL ? mad_body_length(req->body)
				: get_be32(req->mad + SA1_OFF_PAYLOAD_LEN);
	if ((req->body == NULL && len > SA1_AREA) || len > UINT32_MAX ||
		len % sa_wire_len(r->type, SA_V1) != 0)
		return v1_refuse_request(r, MAD_STATUS_INVALID_FIELD);
	write.data_len = len;
	if (req->body == NULL)
		memcpy(write.data, req->mad + SA1_OFF_DATA, SA1_AREA);
	return sa_submit(r->w, r->req, &r->who, &write);
}

static const struct {
	uint8_t method;
	enum mad_outcome (*handle)(struct request *r);
} methods[] = {
	{ MAD_GET, v1_get },
	{ SA_GET_TABLE, v1_get_table },
	{ SA1_GET_BULK, v1_get_bulk },
	{ MAD_SET, v1_set_record },
	{ SA1_INFORM, v1_inform },
	{ SA1_CONFIG, v1_config },
};

static enum sa_edit
edit_of(const struct sa_config *c, uint8_t code)
{
	unsigned int i;

	if (code == 0)
		return SA_EDIT_NONE;
	for (i = 0; i < sizeof(c->edit_codes); i++)
		if (c->edit_codes[i] == code)
			return SA_EDIT_ADD + i;
	return SA_EDIT_UNKNOWN;
}

/* A template has no RID part (A6). */
static void
read_template(struct request *r)
{
	const struct sa_record_type *t = r->type;

	memset(r->tmpl, 0, sizeof(r->tmpl));
	r->mask = 0;
	if (t == NULL)
		return;
	memcpy(r->tmpl + t->rid_len, r->req->mad + SA1_OFF_DATA, t->len - t->rid_len);
	r->mask = sa_mask_v2(t, get_be64(r->req->mad + SA1_OFF_MASK), SA_V1);
}

enum mad_outcome
sa_request_v1(void *arg, struct mad_request *req)
{
	struct sa_worker *w = arg;
	const uint8_t *mad = req->mad;
	struct request r;
	unsigned int i;

	fabric_sync(w->fabric);
	r.w = w;
	r.req = req;
	r.type = sa_record_type(get_be16(mad + MAD_OFF_ATTRIBUTE));
	r.rid = get_be32(mad + MAD_OFF_MODIFIER);
	r.end_rid = get_be32(mad + SA1_OFF_END_RID);
	r.edit = edit_of(w->config, mad[SA1_OFF_EDIT]);
	r.sa_key = get_be64(mad + SA1_OFF_SA_KEY);
	if (!sa_requester(w->config, w->fabric, req->peer, get_be64(mad + SA1_OFF_SM_KEY), &r.who))
		return v1_refuse_request(&r, SA_STATUS_DENIED);
	read_template(&r);
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].method == mad[MAD_OFF_METHOD])
			return methods[i].handle(&r);
	return v1_refuse_request(&r, MAD_STATUS_BAD_METHOD);
}
