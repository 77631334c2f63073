/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The server on a worker: agents, pools, and what both class versions share.
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "wire/bytes.h"

#define EPOCH_SHIFT 40 /* bits for version numbers in a change token */

const struct sa_config sa_config_default = {
	.trust = SA_TRUST_KEY,
	.sm_key = SA_SM_KEY_WELL_KNOWN,
	.gid_prefix = UINT64_C(0xFE80000000000000),
	.resp_time = 16,
	.packet_life = 18,
	.max_results = 1 << 20,
	.max_result_bytes = 16 << 20,
	.max_writes = 1024,
	.edit_codes = { 1, 2, 3 },
	.notice_retries = 3,
	.notice_interval_ms = 500,
	.notices_max = 64,
	.max_queries = 256,
	.max_transfers = 16384 + 256, /* mad.max_sessions and max_queries: these give way first */
	.path_ports = 16384,
	.path_switches = 2048,
	.path_links = 65536,
	.path_routes = 1024,
};

/* sa-multipacket A2 */
static const struct mad_method methods_v1[] = {
	{ MAD_GET, MAD_METHOD_LATER },
	{ MAD_SET, MAD_METHOD_SESSION },
	{ SA1_INFORM, MAD_METHOD_SESSION },
	{ SA_GET_TABLE, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA1_GET_BULK, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA1_CONFIG, MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST },
	{ 0, 0 },
};

/* sa-multipacket B7 */
static const struct mad_method methods_v2[] = {
	{ MAD_GET, MAD_METHOD_LATER },
	{ MAD_SET, MAD_METHOD_SESSION },
	{ SA_GET_TABLE, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA2_GET_TRACE, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA2_GET_MULTI,
		MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE },
	{ SA2_DELETE, MAD_METHOD_SESSION },
	{ 0, 0 },
};

static const struct mad_agent agents[] = {
	{ MAD_CLASS_SUBN_ADM, 1, "SA version 1", MAD_SA1, SA1_OFF_DATA, methods_v1, sa_request_v1,
		.admit = sa_admit_v1 },
	{ MAD_CLASS_SUBN_ADM, 2, "SA version 2", MAD_RMPP, SA2_OFF_DATA, methods_v2, sa_request_v2,
		NULL },
};

/* 0 is the code of queries (A6) */
static bool
edit_codes_ok(const uint8_t codes[3])
{
	return codes[0] != 0 && codes[1] != 0 && codes[2] != 0 && codes[0] != codes[1] &&
		codes[1] != codes[2] && codes[0] != codes[2];
}

int
sa_partition_sl(const struct sa_config *config, uint16_t pkey)
{
	unsigned int i;

	for (i = 0; i < config->num_partitions; i++)
		if (((config->partition[i].pkey ^ pkey) & ~PKEY_FULL) == 0)
			return config->partition[i].sl;
	return -1;
}

struct sa *
sa_create(const struct sa_config *config, struct error *err)
{
	struct sa *sa;

	if (config->path_ports == 0 || (config->path_ports & (config->path_ports - 1)) != 0) {
		error_set(err, EINVAL, "path_ports: got %u, allowed: a power of two",
			config->path_ports);
		return NULL;
	}
	if (config->resp_time > 31 || config->packet_life > 63) {
		error_set(err, EINVAL,
			"resp_time, packet_life: got %u and %u, allowed: up to 31 and 63",
			config->resp_time, config->packet_life);
		return NULL;
	}
	if (!edit_codes_ok(config->edit_codes)) {
		error_set(err, EINVAL,
			"EditModifier: got %u, %u, %u, allowed: three different numbers, not 0",
			config->edit_codes[0], config->edit_codes[1], config->edit_codes[2]);
		return NULL;
	}
	sa = mem_zalloc(config->alloc, sizeof(*sa), 64);
	if (sa == NULL) {
		error_set(err, ENOMEM, "no memory for the SA");
		return NULL;
	}
	sa->config = *config;
	sa->epoch = (rng_u64(config->rng) | 1) << EPOCH_SHIFT;
	return sa;
}

void
sa_destroy(struct sa *sa)
{
	if (sa != NULL)
		mem_free(sa->config.alloc, sa);
}

static int
sa_add_agents(struct sa_worker *w)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < sizeof(agents) / sizeof(agents[0]) && rc == 0; i++) {
		struct mad_agent agent = agents[i];

		agent.arg = w;
		agent.allow = &w->sa->config.allow;
		rc = mad_agent_add(w->mad, &agent);
	}
	return rc;
}

static bool
sa_make_pools(struct sa_worker *w)
{
	const struct sa_config *c = w->config;
	uint32_t i;

	TAILQ_INIT(&w->queries_free);
	TAILQ_INIT(&w->queries_running);
	w->fabric = fabric_create(c, w->reader);
	w->results = result_pool_create(c->alloc, c->max_transfers, c->max_result_bytes);
	w->give_way = give_way_create(c->alloc, c->max_queries, c->max_result_bytes / CHUNK_BYTES);
	w->queries = mem_zalloc(c->alloc, ((size_t)c->max_queries + 1) * sizeof(*w->queries), 64);
	w->writes = mem_zalloc(c->alloc, ((size_t)c->max_writes + 1) * sizeof(*w->writes), 64);
	w->notices = sa_notices_create(w);
	if (w->fabric == NULL || w->results == NULL || w->give_way == NULL || w->queries == NULL ||
		w->writes == NULL || w->notices == NULL)
		return false;
	for (i = 0; i < c->max_queries; i++)
		TAILQ_INSERT_TAIL(&w->queries_free, &w->queries[i], link);
	for (i = 0; i < c->max_writes; i++) {
		w->writes[i].next_free = w->writes_free;
		w->writes_free = &w->writes[i];
	}
	return true;
}

struct sa_worker *
sa_worker_create(struct sa *sa, const struct sa_worker_config *config)
{
	struct sa_worker *w = mem_zalloc(sa->config.alloc, sizeof(*w), 64);

	if (w == NULL)
		return NULL;
	w->sa = sa;
	w->config = &sa->config;
	w->id = config->id;
	w->mad = config->mad;
	w->reader = config->reader;
	w->submit = config->submit;
	w->submit_arg = config->submit_arg;
	if (!sa_make_pools(w) || sa_add_agents(w) != 0) {
		sa_worker_destroy(w);
		return NULL;
	}
	fabric_sync(w->fabric);
	return w;
}

void
sa_worker_destroy(struct sa_worker *w)
{
	const struct allocator *alloc;

	if (w == NULL)
		return;
	alloc = w->config->alloc;
	sa_notices_destroy(w);
	queries_drop(w);
	mem_free(alloc, w->writes);
	mem_free(alloc, w->queries);
	result_pool_destroy(w->results);
	give_way_destroy(w->give_way);
	fabric_destroy(w->fabric);
	mem_free(alloc, w);
}

unsigned int
sa_run(struct sa_worker *w, uint64_t now, unsigned int budget)
{
	unsigned int done = 0;

	fabric_sync(w->fabric);
	w->counters.routes_walked = fabric_counts(w->fabric)->walked;
	w->counters.routes_searched = fabric_counts(w->fabric)->searched;
	if (w->id == 0)
		w->counters.events_lost = sa_events_lost_count(w->sa);
	if (!TAILQ_EMPTY(&w->queries_running))
		done = queries_run(w, now, budget);
	else
		fabric_pause(w->fabric);
	if (done < budget && sa_notices_pending(w))
		done += sa_notices_run(w, now, budget - done);
	return done;
}

bool
sa_pending(const struct sa_worker *w)
{
	return !TAILQ_EMPTY(&w->queries_running) || sa_notices_pending(w);
}

const struct sa_counters *
sa_worker_counters(const struct sa_worker *w)
{
	return &w->counters;
}

struct sa_limited *
sa_worker_limited(struct sa_worker *w)
{
	return &w->limited;
}

/* --- what both class versions share --- */

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
	return key >> EPOCH_SHIFT == sa->epoch >> EPOCH_SHIFT && token <= key;
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

void
sa_write_done(struct sa_worker *w, struct sa_write *write, uint64_t now)
{
	const struct sa_record_type *t = write->type;
	uint8_t *data = write->reply + (write->version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA);

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
