/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What both class versions share: change tokens, refusals, ClassPortInfo, changes to submit. */

#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "wire/bytes.h"

uint64_t
sa_token(const struct sa *sa, const struct store_version *v, unsigned int table, bool trusted)
{
	static const uint8_t sight[] = { SA_TABLE_NODE, SA_TABLE_PORT_INFO, SA_TABLE_GUID_INFO,
		SA_TABLE_PKEY };
	uint64_t last = store_table_changed(v, table);
	unsigned int i;

	for (i = 0; !trusted && i < sizeof(sight); i++)
		if (store_table_changed(v, sight[i]) > last)
			last = store_table_changed(v, sight[i]);
	return sa->epoch + last;
}

uint64_t
sa_token_all(const struct sa *sa, const struct store_version *v)
{
	return sa->epoch + store_version_number(v);
}

bool
sa_token_covers(const struct sa *sa, uint64_t key, uint64_t token)
{
	return key >> SA_EPOCH_SHIFT == sa->epoch >> SA_EPOCH_SHIFT && token <= key;
}

enum mad_outcome
sa_refuse(struct sa_worker *w, uint8_t *reply, uint16_t status)
{
	struct sa_counters *c = &w->counters;

	/* version 1 has the SA's own codes only up to 5 (A8) */
	if (reply[MAD_OFF_CLASS_VERSION] == SA_V1 && status > SA_STATUS_INVALID_GID)
		status = SA_STATUS_REQ_INVALID;
	put_be16(reply + MAD_OFF_STATUS, status);
	switch (status) {
	case MAD_STATUS_OK:
		break;
	case SA_STATUS_NO_RECORDS:
		c->no_records++;
		break;
	case SA_STATUS_TOO_MANY:
		c->too_many++;
		break;
	case SA_STATUS_DENIED:
		c->denied++;
		break;
	case MAD_STATUS_BUSY:
	case SA_STATUS_NO_RESOURCES:
		c->no_resources++;
		break;
	default:
		c->invalid++;
		break;
	}
	return MAD_ANSWER;
}

void
sa_class_port_info(const struct sa_worker *w, enum sa_version v, uint8_t *data)
{
	data[CPI_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	data[CPI_OFF_CLASS_VERSION] = v;
	/*
	 * bit "all optional records" stays 0: there are no ServiceAssociationRecords (as in opensm)
	 */
	put_be16(data + CPI_OFF_CAPABILITY,
		CPI_CAP_UD_MULTICAST | (v == SA_V2 ? CPI_CAP_MULTI_PATH : 0));
	data[CPI_OFF_RESP_TIME] = w->config->resp_time;
}

bool
sa_is_master_sm(const struct sa_worker *w, const struct requester *who)
{
	return w->config->master_sm_lid != 0 && who->lid == w->config->master_sm_lid;
}

bool
sa_is_limited(const struct requester *who)
{
	return who->stranger && !who->manager;
}

uint32_t
sa_share_of_strangers(uint32_t places)
{
	return places > 1 ? places - (places + 7) / 8 : places;
}

enum mad_outcome
sa_submit(struct sa_worker *w, struct mad_request *req, const struct requester *who,
	const struct sa_write *what)
{
	struct sa_write *write = w->writes_free;

	if (sa_is_limited(who) &&
		w->writes_of_strangers >= sa_share_of_strangers(w->config->max_writes)) {
		w->counters.strangers_busy++;
		limit_peer_note(&w->limited.strangers_busy, who->gid.raw);
		return sa_refuse(w, req->reply, MAD_STATUS_BUSY);
	}
	if (write == NULL)
		return sa_refuse(w, req->reply, SA_STATUS_NO_RESOURCES);
	w->writes_free = write->next_free;
	*write = *what;
	write->w = w;
	write->handle = req->handle;
	write->who = *who;
	write->peer = *req->peer;
	memcpy(write->reply, req->reply, MAD_LEN);
	write->body = req->body;
	if (!w->submit(w->submit_arg, write)) {
		write->next_free = w->writes_free;
		w->writes_free = write;
		return sa_refuse(w, req->reply, MAD_STATUS_BUSY);
	}
	req->take_body = req->body != NULL;
	w->writes_of_strangers += sa_is_limited(who);
	w->counters.writes++;
	return MAD_LATER;
}

/* A change of this appliance's own: nobody waits for its answer. */
static void
trap_was_passed_on(struct sa_worker *w, struct sa_write *write)
{
	if (write->status != MAD_STATUS_OK)
		sa_events_lost(w->sa, 1);
	write->next_free = w->writes_free;
	w->writes_free = write;
}

void
sa_write_done(struct sa_worker *w, struct sa_write *write, uint64_t now)
{
	const struct sa_record_type *t = write->type;
	uint8_t *data = write->reply + (write->version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA);

	RTE_ASSERT(write->w == w);
	if (write->kind == WRITE_NOTICE) {
		trap_was_passed_on(w, write);
		return;
	}
	if (write->body != NULL)
		mad_body_free(w->mad, write->body);
	if (write->status != MAD_STATUS_OK) {
		w->counters.write_conflicts++;
		w->counters.share_full += write->share_full;
		if (write->share_full)
			limit_peer_note(&w->limited.share_full, write->who.gid.raw);
		sa_refuse(w, write->reply, write->status);
	} else if (write->kind == WRITE_SUBSCRIBE) {
		memcpy(data, write->rec, t->len);
	} else if (write->kind != WRITE_CONFIG) {
		sa_encode(t, write->version, write->rec, write->rid, data);
	}
	mad_answer(w->mad, write->handle, write->reply, now);
	w->writes_of_strangers -= sa_is_limited(&write->who);
	write->next_free = w->writes_free;
	w->writes_free = write;
}

unsigned int
sa_write_worker(const struct sa_write *write)
{
	return write->w->id;
}
