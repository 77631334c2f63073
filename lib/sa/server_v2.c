/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests of class version 2 (sa-multipacket B7 to B9).
 */

#include <string.h>

#include "sa/server.h"
#include "wire/bytes.h"

static enum mad_outcome
v2_query(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_record_type *t, bool get)
{
	uint8_t tmpl[SA_RECORD_MAX];
	struct query_spec spec = {
		.type = t,
		.version = SA_V2,
		.get = get,
		.tmpl = tmpl,
		.mask = get_be64(req->mad + SA2_OFF_MASK),
		.last_rid = SA_RID_ALL_LAST,
	};

	if (t == NULL || (!t->stored && t->attribute != SA_PATH))
		return sa_refuse(w, req->reply, MAD_STATUS_BAD_METHOD_ATTR);
	memcpy(tmpl, req->mad + SA2_OFF_DATA, t->len);
	return query_start(w, req, &spec, who);
}

static enum mad_outcome
v2_get(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_record_type *t)
{
	w->counters.get++;
	if (t != NULL && t->attribute == SA_CLASS_PORT_INFO) {
		sa_class_port_info(w, SA_V2, req->reply + SA2_OFF_DATA);
		return MAD_ANSWER;
	}
	return v2_query(w, req, who, t, true);
}

static enum mad_outcome
v2_get_table(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_record_type *t)
{
	w->counters.get_table++;
	return v2_query(w, req, who, t, false);
}

/* Records that can be set and deleted one at a time. */
static const struct {
	uint16_t attribute;
	uint8_t method;
	uint8_t kind;
} changes[] = {
	{ SA_SERVICE, MAD_SET, WRITE_SERVICE_SET },
	{ SA_SERVICE, SA2_DELETE, WRITE_SERVICE_DELETE },
	{ SA_MCMEMBER, MAD_SET, WRITE_MC_JOIN },
	{ SA_MCMEMBER, SA2_DELETE, WRITE_MC_LEAVE },
	{ SA_INFORM_INFO, MAD_SET, WRITE_SUBSCRIBE },
};

static enum mad_outcome
v2_change(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_record_type *t)
{
	struct sa_write write = {
		.version = SA_V2,
		.type = t,
		.mask = get_be64(req->mad + SA2_OFF_MASK),
	};
	unsigned int i;

	w->counters.set++;
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (t == NULL || changes[i].attribute != t->attribute ||
			changes[i].method != req->mad[MAD_OFF_METHOD])
			continue;
		write.kind = changes[i].kind;
		memcpy(write.rec, req->mad + SA2_OFF_DATA, t->len);
		return sa_submit(w, req, who, &write);
	}
	return sa_refuse(w, req->reply, MAD_STATUS_BAD_METHOD_ATTR);
}

static enum mad_outcome
v2_get_multi(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_record_type *t)
{
	struct query_spec spec = {
		.type = sa_record_type(SA_PATH),
		.version = SA_V2,
		.multi = true,
		.body = req->body,
		.tmpl = req->mad + SA2_OFF_DATA,
		.mask = get_be64(req->mad + SA2_OFF_MASK),
	};

	w->counters.get_table++;
	if (t == NULL || t->attribute != SA_MULTI_PATH)
		return sa_refuse(w, req->reply, MAD_STATUS_BAD_METHOD_ATTR);
	return query_start(w, req, &spec, who);
}

/* An optional method without any supported attribute: GetTraceTable (B9). */
static enum mad_outcome
v2_not_served(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_record_type *t)
{
	(void)who;
	(void)t;
	return sa_refuse(w, req->reply, MAD_STATUS_BAD_METHOD_ATTR);
}

static const struct {
	uint8_t method;
	enum mad_outcome (*handle)(struct sa_worker *w, struct mad_request *req,
		const struct requester *who, const struct sa_record_type *t);
} methods[] = {
	{ MAD_GET, v2_get },
	{ SA_GET_TABLE, v2_get_table },
	{ MAD_SET, v2_change },
	{ SA2_DELETE, v2_change },
	{ SA2_GET_TRACE, v2_not_served },
	{ SA2_GET_MULTI, v2_get_multi },
};

enum mad_outcome
sa_request_v2(void *arg, struct mad_request *req)
{
	struct sa_worker *w = arg;
	struct requester who;
	unsigned int i;

	fabric_sync(w->fabric);
	if (!sa_requester(w->config, w->fabric, req->peer, get_be64(req->mad + SA2_OFF_SM_KEY),
		    &who))
		return sa_refuse(w, req->reply, SA_STATUS_DENIED);
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].method == req->mad[MAD_OFF_METHOD])
			return methods[i].handle(w, req, &who,
				sa_record_type(get_be16(req->mad + MAD_OFF_ATTRIBUTE)));
	return sa_refuse(w, req->reply, MAD_STATUS_BAD_METHOD);
}
