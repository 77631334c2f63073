/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The server on a worker: agents and pools. */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"

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

struct sa *
sa_create(const struct sa_config *config, struct error *err)
{
	struct sa *sa;

	RTE_ASSERT(config->store != NULL && config->hz > 0 && config->workers > 0);
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
	sa->epoch = (rng_u64(config->rng) | 1) << SA_EPOCH_SHIFT;
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

	RTE_ASSERT(config->id < sa->config.workers);
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
	RTE_ASSERT(done <= budget);
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
