/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A service: list of kinds, parameters, creation and destruction; runs on the control thread. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_debug.h>

#include "svc/kinds.h"
#include "svc/private.h"

const struct svc_ops *const svc_kinds[] = { &svc_memory, &svc_echo, &svc_sink, &svc_rping,
	&svc_ucmatose, &svc_rstream, &svc_rcopy, &svc_perftest, NULL };

const struct svc_ops *
svc_kind(const char *name)
{
	unsigned int i;

	for (i = 0; svc_kinds[i] != NULL; i++) {
		if (strcmp(svc_kinds[i]->name, name) == 0)
			return svc_kinds[i];
	}
	return NULL;
}

static int
unknown_kind(const char *name, struct error *err)
{
	char known[128] = "";
	size_t at = 0;
	unsigned int i;

	for (i = 0; svc_kinds[i] != NULL && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i != 0 ? ", " : "",
			svc_kinds[i]->name);
	return error_set(err, EINVAL, "kind: got \"%.*s\", allowed: %s", SVC_NAME_MAX, name, known);
}

/* --- parameters --- */

#define DEFAULT(field)                                                                             \
	do {                                                                                       \
		if (c->field == 0)                                                                 \
			c->field = ops->defaults.field;                                            \
	} while (0)

static void
set_defaults(struct svc_config *c, const struct svc_ops *ops)
{
	if (c->name[0] == '\0')
		snprintf(c->name, sizeof(c->name), "%s", ops->name);
	if (c->active && c->max_connections == 0)
		c->max_connections = 1;
	if (ops->adjust != NULL)
		ops->adjust(c);
	DEFAULT(length);
	DEFAULT(size);
	DEFAULT(depth);
	DEFAULT(access);
	DEFAULT(max_connections);
	DEFAULT(count);
}

static int
svc_check_config(struct svc *s, struct error *err)
{
	const struct svc_config *c = &s->config;

	if (c->active && !s->ops->client)
		return error_set(err, EINVAL, "kind: %s does not connect, it only listens",
			s->ops->name);
	if (!c->active && !s->ops->server)
		return error_set(err, EINVAL, "kind: %s does not listen, it only connects",
			s->ops->name);
	if (c->max_connections == 0 || c->max_connections > SVC_PLACES_MAX)
		return error_set(err, EINVAL, "max_connections: got %u, allowed: 1 to %u",
			c->max_connections, SVC_PLACES_MAX);
	if (c->max_connections_per_peer > c->max_connections)
		return error_set(err, EINVAL,
			"max_connections_per_peer: got %u, allowed: 0 to max_connections, %u",
			c->max_connections_per_peer, c->max_connections);
	if (c->size > RC_MSG_MAX)
		return error_set(err, EINVAL, "size: got %u, allowed: 0 to %u", c->size,
			RC_MSG_MAX);
	if (c->depth > s->env.max_qp_wr)
		return error_set(err, EINVAL, "depth: got %u, allowed: 1 to %u", c->depth,
			s->env.max_qp_wr);
	if ((c->access & ~(uint32_t)MEM_ACCESS_REMOTE) != 0)
		return error_set(err, EINVAL, "access: got 0x%x, allowed: bits of 0x%x", c->access,
			MEM_ACCESS_REMOTE);
	return 0;
}

/* --- creation --- */

static int
svc_make_queues(struct svc *s, struct error *err)
{
	uint64_t each = (uint64_t)s->sends + s->recvs, depth = each * s->config.max_connections;
	int ret;

	if (s->sends > s->env.max_qp_wr || s->recvs > s->env.max_qp_wr)
		return error_set(err, EINVAL,
			"depth: queues of %u and %u work requests, a queue pair has at most %u",
			s->sends, s->recvs, s->env.max_qp_wr);
	if (each > s->env.max_cqe)
		return error_set(err, EINVAL,
			"depth: %llu work requests a connection, a completion queue has at most %u",
			(unsigned long long)each, s->env.max_cqe);
	s->cq_depth = depth < s->env.max_cqe ? (uint32_t)depth : s->env.max_cqe;
	for (; s->num_cqs < s->env.workers; s->num_cqs++) {
		ret = rc_cq_create_top(s->env.dev, s->cq_depth, &s->cqs[s->num_cqs], err);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int
svc_make_places(struct svc *s, struct error *err)
{
	uint32_t i, n = s->config.max_connections;

	s->priv_size = (s->ops->conn_size + SVC_CACHE_LINE - 1) & ~(size_t)(SVC_CACHE_LINE - 1);
	s->conns = mem_zalloc(s->env.alloc, n * sizeof(s->conns[0]), SVC_CACHE_LINE);
	s->privs = mem_zalloc(s->env.alloc, n * s->priv_size + 1, SVC_CACHE_LINE);
	s->counters =
		mem_zalloc(s->env.alloc, s->env.workers * sizeof(s->counters[0]), SVC_CACHE_LINE);
	s->cqs = mem_zalloc(s->env.alloc, s->env.workers * sizeof(s->cqs[0]), SVC_CACHE_LINE);
	if (s->conns == NULL || s->privs == NULL || s->counters == NULL || s->cqs == NULL ||
		svc_places_create(&s->places, &s->env, n, s->config.max_connections_per_peer) != 0)
		return error_set(err, ENOMEM, "no memory for %u connections", n);
	for (i = 0; i < n; i++) {
		s->conns[i].svc = s;
		s->conns[i].place = i;
	}
	return 0;
}

static void
svc_free_all(struct svc *s)
{
	const struct allocator *alloc = s->env.alloc;

	mem_free(alloc, s->state);
	svc_places_destroy(&s->places, alloc);
	mem_free(alloc, s->cqs);
	mem_free(alloc, s->counters);
	mem_free(alloc, s->privs);
	mem_free(alloc, s->conns);
	mem_free(alloc, s);
}

struct svc *
svc_create(const struct svc_env *env, const struct svc_config *config, struct error *err)
{
	const struct svc_ops *ops = svc_kind(config->kind);
	struct svc *s;

	if (ops == NULL) {
		unknown_kind(config->kind, err);
		return NULL;
	}
	s = mem_zalloc(env->alloc, sizeof(*s), SVC_CACHE_LINE);
	if (s == NULL) {
		error_set(err, ENOMEM, "no memory for a service");
		return NULL;
	}
	RTE_ASSERT(env->workers > 0 && env->max_cqe > 0 && env->max_qp_wr > 0);
	s->env = *env;
	s->config = *config;
	s->ops = ops;
	s->sends = 1;
	s->recvs = 1;
	set_defaults(&s->config, ops);
	if (svc_check_config(s, err) != 0 || svc_make_places(s, err) != 0) {
		svc_free_all(s);
		return NULL;
	}
	if (ops->open(s, err) == 0 && svc_pd_need(s, err) == 0 && svc_make_queues(s, err) == 0)
		return s;
	/* no worker uses its memory, but freeing it may wait for a grace period */
	while (svc_destroy(s) == -EAGAIN)
		;
	return NULL;
}

int
svc_destroy(struct svc *s)
{
	int ret;

	/* svc_worker_destroy() was called on all workers, so all places are free */
	RTE_ASSERT(s->places.left == s->config.max_connections);
	if (!s->closed && s->ops->close != NULL) {
		ret = s->ops->close(s);
		if (ret == -EAGAIN)
			return ret;
	}
	s->closed = true;
	while (s->num_cqs != 0) {
		ret = rc_cq_destroy(s->env.dev, s->cqs[s->num_cqs - 1], NULL);
		if (ret == -EBUSY)
			return -EAGAIN;
		s->num_cqs--;
	}
	ret = svc_regions_drop(s);
	if (ret != 0)
		return ret;
	svc_free_all(s);
	return 0;
}

/* --- queries --- */

const struct svc_config *
svc_config(const struct svc *s)
{
	return &s->config;
}

bool
svc_has_pd(const struct svc *s, uint32_t pd)
{
	return s->has_pd && !s->pd_adopted && s->pd == pd;
}

bool
svc_has_cq(const struct svc *s, uint32_t cqn)
{
	unsigned int i;

	for (i = 0; i < s->num_cqs; i++)
		if (s->cqs[i] == cqn)
			return true;
	return false;
}

const struct svc_env *
svc_env(const struct svc *s)
{
	return &s->env;
}

uint32_t
svc_pd(const struct svc *s)
{
	RTE_ASSERT(s->has_pd);
	return s->pd;
}

void *
svc_state(const struct svc *s)
{
	return s->state;
}

void *
svc_make_state(struct svc *s, size_t size, struct error *err)
{
	RTE_ASSERT(s->state == NULL && s->num_cqs == 0);
	s->state = mem_zalloc(s->env.alloc, size, SVC_CACHE_LINE);
	if (s->state == NULL)
		error_set(err, ENOMEM, "no memory for a service");
	return s->state;
}

void
svc_place_early(struct svc *s)
{
	RTE_ASSERT(s->num_cqs == 0);
	s->early = true;
}

void
svc_queues(struct svc *s, uint32_t sends, uint32_t recvs)
{
	RTE_ASSERT(s->num_cqs == 0);
	s->sends = sends;
	s->recvs = recvs;
}

static void
svc_counters_sum(const struct svc_counters *from, struct svc_counters *sum)
{
#define X(name, help) sum->name += __atomic_load_n(&from->name, __ATOMIC_RELAXED);
	SVC_COUNTERS(X)
#undef X
}

void
svc_counters_add(const struct svc *s, int worker, struct svc_counters *sum)
{
	unsigned int i;

	RTE_ASSERT(worker < (int)s->env.workers);
	for (i = 0; i < s->env.workers; i++) {
		if (worker < 0 || (unsigned int)worker == i)
			svc_counters_sum(&s->counters[i].c, sum);
	}
}
