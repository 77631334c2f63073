/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Services: the control thread creates a service and adds it to every worker. A service that no
 * longer listens is removed with its last connection. A service for a connection of ours stays for
 * LINGER_S after that connection's end, so that its statistics can be read.
 */

#include <errno.h>

#include <rte_cycles.h>

#include "engine/connections.h"
#include "engine/perftest.h"
#include "engine/placement.h"
#include "engine/service_table.h"
#include "engine/verbs_private.h"

#define LINGER_S 60
/* long enough for a grace period; if it is not, services_watch() tries again */
#define REMOVE_TRIES 8

struct place_args {
	unsigned int place;
	struct svc *svc;
	bool listen;
	struct error *err;
};

/* --- on each worker --- */

static int
remove_here(struct worker *w, void *arg)
{
	unsigned int place = ((const struct place_args *)arg)->place;
	struct svc_worker *s = service_here(w, place);

	if (s == NULL)
		return 0;
	svc_worker_unlisten(s);
	svc_worker_destroy(s);
	w->svc[place] = NULL;
	while (w->num_svc > 0 && w->svc[w->num_svc - 1] == NULL)
		w->num_svc--;
	return 0;
}

static int
add_here(struct worker *w, void *arg)
{
	const struct place_args *a = arg;
	struct svc_worker *s = svc_worker_create(a->svc, w->cm, w->rc, w->id, a->err);
	int ret;

	if (s == NULL)
		return -ENOMEM;
	w->svc[a->place] = s;
	w->num_svc = RTE_MAX(w->num_svc, a->place + 1);
	ret = a->listen ? svc_worker_listen(s) : 0;
	if (ret == 0)
		return 0;
	remove_here(w, arg);
	if (ret == -EEXIST) /* id_taken() says by whom */
		return ret;
	return error_set(a->err, -ret,
		"worker %u has no room for another listener (cm.max_listeners)", w->id);
}

static int
unlisten_here(struct worker *w, void *arg)
{
	struct svc_worker *s = service_here(w, ((const struct place_args *)arg)->place);

	if (s != NULL)
		svc_worker_unlisten(s);
	return 0;
}

static int
service_disconnect_here(struct worker *w, void *arg)
{
	struct svc_worker *s = service_here(w, ((const struct place_args *)arg)->place);

	if (s != NULL)
		svc_worker_disconnect(s, rte_get_tsc_cycles());
	return 0;
}

static int
connections_here(struct worker *w, void *arg)
{
	struct svc_worker *s = service_here(w, ((const struct place_args *)arg)->place);

	return s != NULL ? (int)svc_worker_connections(s) : 0;
}

static int
who_has_here(struct worker *w, void *arg)
{
	const cm_id *id = arg;
	unsigned int i;

	for (i = 0; i < w->num_svc; i++)
		if (w->svc[i] != NULL && svc_worker_has(w->svc[i], *id))
			return (int)i;
	return -ENOENT;
}

/* --- the table --- */

static uint32_t
on_all_workers(struct engine *e, struct service *s, worker_fn fn)
{
	struct place_args a = { .place = (unsigned int)(s - e->services) };
	uint32_t sum = 0;
	unsigned int i;

	for (i = 0; i < e->num_workers; i++)
		sum += (uint32_t)engine_call(e, i, fn, &a);
	return sum;
}

/*
 * Remove a service without connections. Workers may use its memory until a grace period has passed;
 * this thread tries a limited number of times, because it must not wait without bound.
 *
 * @retval -EAGAIN  still in use: try again later
 */
static int
remove_service(struct engine *e, struct service *s, unsigned int tries)
{
	unsigned int us = 10;

	/* clients without a queue pair yet must not find another service here */
	perftest_unlisten(e, (unsigned int)(s - e->services), true);
	if (!s->removing)
		on_all_workers(e, s, remove_here);
	s->removing = true;
	while (svc_destroy(s->svc) == -EAGAIN) {
		if (--tries == 0)
			return -EAGAIN;
		grace_pause(&us);
	}
	*s = (struct service){ 0 };
	return 0;
}

static struct service *
service_find(struct engine *e, uint32_t id)
{
	struct service *s = e->services;

	for (; id != 0 && s < e->services + ENGINE_SERVICE_PLACES; s++)
		if (s->id == id)
			return s;
	return NULL;
}

/* A free place, or the place of the client service that ended first. */
static struct service *
service_place(struct engine *e, struct error *err)
{
	struct service *s, *oldest = NULL;

	for (s = e->services; s < e->services + ENGINE_SERVICE_PLACES; s++) {
		if (s->id == 0)
			return s;
		if (s->over != 0 && !s->removing && (oldest == NULL || s->over < oldest->over))
			oldest = s;
	}
	if (oldest != NULL && remove_service(e, oldest, REMOVE_TRIES) == 0)
		return oldest;
	error_set_limit(err, ENOSPC, "there are %u services already", ENGINE_SERVICE_PLACES);
	return NULL;
}

/* Another service listens at the configured ID: say which, and how to free it. */
static int
id_taken(struct engine *e, const struct svc_config *config, struct error *err)
{
	const struct svc_config *c;
	const struct service *s;

	for (s = e->services; s < e->services + e->num_services; s++) {
		c = s->listening ? svc_config(s->svc) : NULL;
		if (c == NULL || c->service_mask != config->service_mask ||
			((c->service_id ^ config->service_id) & c->service_mask) != 0)
			continue;
		return error_set(err, EEXIST,
			"service_id: 0x%016" PRIx64 " is taken by service %u (%s): end that with "
			"polca-ctl cm unlisten %u, or use another ID",
			config->service_id, s->id, c->name[0] != '\0' ? c->name : c->kind, s->id);
	}
	return error_set(err, EEXIST, "service_id: 0x%016" PRIx64 " is taken", config->service_id);
}

/* Add a service to the workers first to end - 1, or on error to none. */
static int
service_add(struct engine *e, const struct svc_config *config, unsigned int first, unsigned int end,
	struct service **added, struct error *err)
{
	struct svc_env env = {
		.alloc = e->alloc,
		.rng = &rng_kernel,
		.mem = e->mem,
		.dev = e->dev,
		.workers = e->num_workers,
		.hz = e->hz,
		.max_cqe = e->config.limits.max_cqe,
		.max_qp_wr = e->config.limits.max_qp_wr,
		.numa_node = placement_port_node(e, config->local_port),
	};
	struct service *s = service_place(e, err);
	/* without a service ID, clients find it by its tcp_port */
	struct place_args a = { .listen = !config->active && config->service_id != 0, .err = err };
	unsigned int i;
	int ret = 0;

	if (s == NULL)
		return -ENOSPC;
	a.svc = svc_create(&env, config, err);
	if (a.svc == NULL)
		return -EINVAL;
	a.place = (unsigned int)(s - e->services);
	e->num_services = RTE_MAX(e->num_services, a.place + 1);
	*s = (struct service){
		.svc = a.svc,
		.listening = !config->active,
		.client = config->active,
	};
	for (i = first; i < end && ret == 0; i++)
		ret = engine_call(e, i, add_here, &a);
	s->id = ++e->last_service;
	*added = s;
	/* a worker on which it listened already may have accepted a connection */
	if (ret != 0)
		engine_cm_unlisten(e, s->id, true, NULL);
	return ret == -EEXIST ? id_taken(e, config, err) : ret;
}

/* --- services that listen --- */

int
engine_cm_listen(struct engine *e, const struct svc_config *config, uint32_t *id, struct error *err)
{
	struct svc_config c = *config;
	struct service *s;
	int ret;

	if (e->draining)
		return error_set(err, ESHUTDOWN, "the appliance is stopping");
	ret = callers_mr(e, "mr_key", c.mr_key, err);
	if (ret != 0)
		return ret;
	c.active = false;
	if (c.service_mask == 0)
		c.service_mask = UINT64_MAX;
	ret = service_add(e, &c, 0, e->num_workers, &s, err);
	if (ret != 0)
		return ret;
	ret = perftest_listen(e, (unsigned int)(s - e->services), &c, err);
	if (ret != 0) {
		engine_cm_unlisten(e, s->id, true, NULL);
		return ret;
	}
	*id = s->id;
	ENGINE_LOG(INFO, "service %u, %s, listens at service ID 0x%" PRIx64, s->id, c.kind,
		c.service_id);
	return 0;
}

int
engine_cm_unlisten(struct engine *e, uint32_t id, bool disconnect, struct error *err)
{
	struct service *s = service_find(e, id);

	if (s == NULL)
		return error_set(err, ENOENT, "there is no service %u (any more)", id);
	on_all_workers(e, s, unlisten_here);
	perftest_unlisten(e, (unsigned int)(s - e->services), disconnect);
	if (s->listening)
		ENGINE_LOG(INFO, "service %u listens no more", id);
	s->listening = false;
	s->ending = true;
	if (disconnect)
		on_all_workers(e, s, service_disconnect_here);
	services_watch(e, rte_get_tsc_cycles());
	return 0;
}

static void
service_fill_info(struct engine *e, struct service *s, struct engine_service_info *info)
{
	*info = (struct engine_service_info){
		.id = s->id,
		.config = *svc_config(s->svc),
		.listening = s->listening,
		.client = s->client,
		.connection = s->connection,
		.connections = on_all_workers(e, s, connections_here),
	};
	svc_counters_add(s->svc, -1, &info->counters);
}

bool
engine_service_next(struct engine *e, uint64_t *cursor, struct engine_service_info *info)
{
	struct service *s;

	while (*cursor < ENGINE_SERVICE_PLACES) {
		s = &e->services[(*cursor)++];
		if (s->id == 0)
			continue;
		service_fill_info(e, s, info);
		return true;
	}
	return false;
}

const char *
engine_cm_service_name(struct engine *e, cm_id id)
{
	unsigned int worker = cm_worker_of(e->cm_hash_key, e->num_workers, id);
	int n = engine_call(e, worker, who_has_here, &id);

	return n >= 0 ? svc_config(e->services[n].svc)->name : "";
}

/* --- services for connections that we open --- */

int
service_client(struct engine *e, const struct svc_config *config, unsigned int worker,
	unsigned int *place, struct error *err)
{
	struct svc_config c = *config;
	struct service *s;
	int ret;

	c.active = true;
	ret = service_add(e, &c, worker, worker + 1, &s, err);
	if (ret != 0)
		return ret;
	s->awaited = true;
	*place = (unsigned int)(s - e->services);
	return 0;
}

void
service_connected(struct engine *e, unsigned int place, cm_id id)
{
	struct service *s = &e->services[place];

	s->awaited = false;
	s->connection = id;
	s->ending |= id == 0;
}

/* --- the end of a service --- */

static void
service_watch(struct engine *e, struct service *s, uint64_t now)
{
	if (s->removing) {
		remove_service(e, s, 1);
		return;
	}
	if (s->listening || s->awaited || on_all_workers(e, s, connections_here) > 0)
		return;
	if (s->over == 0)
		s->over = now;
	if (!s->client || s->ending || (now > s->over && now - s->over > LINGER_S * e->hz))
		remove_service(e, s, REMOVE_TRIES);
}

void
services_watch(struct engine *e, uint64_t now)
{
	struct service *s = e->services;

	for (; s != NULL && s < e->services + ENGINE_SERVICE_PLACES; s++)
		if (s->id != 0)
			service_watch(e, s, now);
	if (e->perftest != NULL)
		perftest_watch(e, now);
}

void
services_unlisten(struct engine *e)
{
	struct service *s = e->services;

	for (; s < e->services + ENGINE_SERVICE_PLACES; s++) {
		if (!s->listening)
			continue;
		perftest_unlisten(e, (unsigned int)(s - e->services), true);
		on_all_workers(e, s, unlisten_here);
		s->listening = false;
	}
}

static int
listen_from_the_start(struct engine *e, struct error *err)
{
	struct error why = { "" };
	unsigned int i;
	uint32_t id;
	int ret;

	for (i = 0; i < e->config.num_services; i++) {
		ret = engine_cm_listen(e, &e->config.service[i], &id, &why);
		if (ret != 0)
			return error_set(err, -ret, "services[%u]: %.230s", i, why.text);
	}
	return 0;
}

int
services_create(struct engine *e, struct error *err)
{
	int ret;

	e->services =
		mem_zalloc(&allocator_malloc, ENGINE_SERVICE_PLACES * sizeof(struct service), 64);
	if (e->services == NULL)
		return error_set(err, ENOMEM, "no memory for the table of services");
	ret = wakeup_create(e, err);
	if (ret == 0)
		ret = perftest_create(e, err);
	return ret != 0 ? ret : listen_from_the_start(e, err);
}

void
services_destroy(struct engine *e)
{
	struct service *s = e->services;

	if (s == NULL)
		return;
	for (; s < e->services + ENGINE_SERVICE_PLACES; s++)
		if (s->svc != NULL && remove_service(e, s, REMOVE_TRIES) != 0)
			ENGINE_LOG(WARNING, "service %u: something of it is still in use", s->id);
	mem_free(&allocator_malloc, e->services);
	e->services = NULL;
	e->num_services = 0;
}
