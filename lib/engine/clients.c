/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients: create, attach to a worker, destroy.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/close_apart.h"
#include "engine/clients_private.h"
#include "engine/clients_worker.h"
#include "mem/mirror.h"

/* --- the engine --- */

int
clients_create(struct engine *e, struct error *err)
{
	e->client_pds = mem_zalloc(e->alloc, e->config.max_pd * sizeof(e->client_pds[0]), 0);
	e->client_cqs = mem_zalloc(e->alloc, e->config.limits.max_cq * sizeof(e->client_cqs[0]), 0);
	if (e->client_pds != NULL && e->client_cqs != NULL)
		return 0;
	return error_set(err, ENOMEM, "no memory for clients: raise eal.memory_mb");
}

void
clients_destroy(struct engine *e)
{
	unsigned int i;

	mem_free(e->alloc, e->client_pds);
	mem_free(e->alloc, e->client_cqs);
	for (i = 0; i < e->num_workers; i++)
		if (e->worker[i] != NULL) {
			client_wake_close(e->worker[i]);
			client_turns_free(e->worker[i]);
		}
}

/* --- a client --- */

struct client_attach {
	struct verbs_client *client;
	struct client_look *looks; /* memory; out: what is to be freed */
	uint32_t num_looks;
};

static int
client_attach_here(struct worker *w, void *arg)
{
	struct client_attach *a = arg;

	a->looks = client_turns_join(w, a->client, a->looks, a->num_looks);
	return 0;
}

static int
client_attach(struct verbs_client *c, struct error *err)
{
	struct client_attach a = { .client = c };
	int rc;

	rc = client_turns_reserve(c->engine->worker[c->worker], &a.looks, &a.num_looks);
	if (rc != 0)
		return error_set(err, ENOMEM, "no memory for a client of worker %u", c->worker);
	rc = engine_call(c->engine, c->worker, client_attach_here, &a);
	free(a.looks);
	return rc;
}

static int
client_detach_here(struct worker *w, void *client)
{
	client_turns_leave(w, client);
	return 0;
}

static int
client_make_tables(struct verbs_client *c)
{
	const struct verbs_client_limits *l = &c->limits;
	uint32_t queues = c->segment.geometry.num_queues, i;

	c->queue = calloc(queues, sizeof(c->queue[0]));
	c->pd = malloc(l->max_pd * sizeof(c->pd[0]));
	c->mr = calloc(l->max_mr, sizeof(c->mr[0]));
	c->mw = calloc(l->max_mw, sizeof(c->mw[0]));
	c->cq = calloc(l->max_cq, sizeof(c->cq[0]));
	c->channel = calloc(l->max_channels, sizeof(c->channel[0]));
	if (c->queue == NULL || c->pd == NULL || c->mr == NULL || c->mw == NULL || c->cq == NULL ||
		c->channel == NULL)
		return -ENOMEM;
	for (i = 0; i < l->max_pd; i++)
		c->pd[i] = CLIENT_FREE;
	for (i = 0; i < l->max_channels; i++)
		c->channel[i].fd = -1;
	return 0;
}

static void
client_free_memory(struct verbs_client *c)
{
	uint32_t i;

	for (i = 0; c->channel != NULL && i < c->limits.max_channels; i++)
		if (c->channel[i].fd >= 0)
			close(c->channel[i].fd);
	for (i = 0; i < CLIENT_PIPE_ENDS; i++)
		if (c->event_pipe[i] >= 0)
			close(c->event_pipe[i]);
	for (i = 0; i < RTE_DIM(c->wake); i++)
		if (c->wake[i] >= 0)
			close(c->wake[i]);
	if (c->mirror_fd >= 0)
		close(c->mirror_fd);
	client_segment_destroy(&c->segment);
	free(c->queue);
	free(c->pd);
	free(c->mr);
	free(c->mw);
	free(c->cq);
	free(c->channel);
	free(c);
}

/*
 * Our own descriptor of a mirror that the program has passed back: only files that polca made, and
 * has sealed, are mirrors.
 */
static int
client_find_mirror(const struct engine *e, int passed, struct error *err)
{
	const struct verbs_client *c;
	struct stat st;
	int fd;

	/* not asked what it is: that would wait for a file system that the program serves */
	if (!fd_in_memory(passed))
		return error_set(err, EINVAL, "mirror: the file that was passed is no device's");
	if (fstat(passed, &st) != 0)
		return error_set(err, errno, "mirror: %s", strerror(errno));
	for (c = e->verbs_clients; c != NULL; c = c->next_client) {
		if (c->mirror.st_ino != st.st_ino || c->mirror.st_dev != st.st_dev)
			continue;
		fd = fcntl(c->mirror_fd, F_DUPFD_CLOEXEC, 0);
		return fd >= 0 ? fd : error_set(err, errno, "mirror: %s", strerror(errno));
	}
	return error_set(err, EINVAL, "mirror: the file that was passed is no device's");
}

/* The worker that choose_worker() names gets the client, with all QPs that it will make. */
static int
client_set_up(struct verbs_client *c, int mirror, struct error *err)
{
	const struct ring_geometry *g = &c->segment.geometry;
	int rc;

	rc = client_segment_create(&c->segment, ring_entries(c->limits.max_qp + c->limits.max_srq),
		c->limits.max_cq, c->limits.ring_bytes, err);
	if (rc != 0)
		return rc;
	if (client_make_tables(c) != 0)
		return error_set(err, ENOMEM, "no memory for a client's tables");
	c->mirror_fd =
		mirror < 0 ? mem_mirror_create(err) : client_find_mirror(c->engine, mirror, err);
	if (c->mirror_fd < 0)
		return c->mirror_fd;
	if (fstat(c->mirror_fd, &c->mirror) != 0)
		return error_set(err, errno, "mirror: %s", strerror(errno));
	rc = client_pipe(c->event_pipe, err);
	if (rc != 0)
		return rc;
	c->shared = client_segment_at(&c->segment, 0);
	c->shared_queues = client_segment_at(&c->segment, g->queues);
	c->doorbells = (struct ring_doorbells){
		.entries = client_segment_at(&c->segment, g->doorbells),
		.mask = g->num_queues - 1,
	};
	c->worker = (unsigned int)choose_worker(c->engine, -1, err);
	rc = client_wake_join(c->engine->worker[c->worker], c, err);
	return rc != 0 ? rc : client_attach(c, err);
}

int
engine_client_create(struct engine *e, unsigned int port, const struct verbs_client_limits *limits,
	int mirror, struct verbs_client **client, struct error *err)
{
	struct verbs_client *c;
	unsigned int i;
	int rc;

	if (e->draining)
		return error_set(err, ESHUTDOWN, "shutting down: no new clients");
	if (known_port(e, port, err) == NULL)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return error_set(err, ENOMEM, "no memory for a client");
	c->engine = e;
	c->port = (uint16_t)port;
	c->limits = *limits;
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->due);
	rc_share_init(&c->share);
	c->segment.fd = c->mirror_fd = c->wake[0] = c->wake[1] = -1;
	for (i = 0; i < CLIENT_PIPE_ENDS; i++)
		c->event_pipe[i] = -1;
	rc = client_set_up(c, mirror, err);
	if (rc != 0) {
		client_free_memory(c);
		return rc;
	}
	c->id = ++e->last_client_id;
	e->clients_ended.opened++;
	c->next_client = e->verbs_clients;
	e->verbs_clients = c;
	*client = c;
	return 0;
}

bool
clients_own_qp(const struct engine *e, uid_t uid, pid_t pid, uint32_t qpn)
{
	const struct verbs_client *c;
	uint32_t slot;

	/* 0 is every process of a PID namespace that is not below ours */
	for (c = pid != 0 ? e->verbs_clients : NULL; c != NULL; c = c->next_client) {
		if (c->owner.uid != uid || c->owner.pid != (uint32_t)pid)
			continue;
		for (slot = 0; slot < c->segment.geometry.num_queues; slot++)
			if (c->queue[slot] != NULL && !c->queue[slot]->is_srq &&
				c->queue[slot]->number == qpn)
				return true;
	}
	return false;
}

static void
client_unlist(struct verbs_client *c)
{
	struct verbs_client **p = &c->engine->verbs_clients;

	while (*p != c)
		p = &(*p)->next_client;
	*p = c->next_client;
}

void
engine_client_destroy(struct verbs_client *c)
{
	client_unlist(c);
	client_wake_leave(c->engine->worker[c->worker], c);
	engine_call(c->engine, c->worker, client_detach_here, c);
	client_queues_destroy(c);
	client_cqs_destroy(c);
	client_mws_destroy(c);
	client_mrs_destroy(c);
	client_pds_destroy(c);
	client_count_end(c);
	client_free_memory(c);
}

/* --- what it is told --- */

void
engine_client_hello(const struct verbs_client *c, struct ring_hello_reply *reply,
	int fds[RING_HELLO_FDS])
{
	const struct engine_config *config = &c->engine->config;
	const struct verbs_user_limits *user = &c->limits.user;
	const struct rc_limits *l = &config->limits;

	reply->geometry = c->segment.geometry;
	reply->limits = (struct ring_limits){
		.max_mr_size = RTE_MIN(c->limits.max_mr_bytes, user->max_mr_bytes),
		.max_qp = RTE_MIN(RTE_MIN(c->limits.max_qp, user->max_qp), l->max_qp),
		.max_qp_wr = l->max_qp_wr,
		.max_sge = l->max_sge,
		.max_inline = l->max_inline,
		.max_cq = RTE_MIN(RTE_MIN(c->limits.max_cq, user->max_cq), l->max_cq),
		.max_cqe = l->max_cqe,
		.max_mr = RTE_MIN(RTE_MIN(c->limits.max_mr, user->max_mr), config->max_mr),
		.max_pd = RTE_MIN(RTE_MIN(c->limits.max_pd, user->max_pd), config->max_pd),
		.max_srq = RTE_MIN(RTE_MIN(c->limits.max_srq, user->max_srq), l->max_srq),
		.max_srq_wr = l->max_srq_wr,
		.max_rd_atomic = l->max_rd_atomic,
		.max_channels = c->limits.max_channels,
	};
	reply->max_mw = RTE_MIN(RTE_MIN(c->limits.max_mw, user->max_mw), config->max_mw);
	fds[0] = c->segment.fd;
	fds[1] = c->mirror_fd;
	fds[2] = c->wake[1];
	fds[3] = c->event_pipe[CLIENT_PIPE_READ];
	fds[4] = c->event_pipe[CLIENT_PIPE_PROGRAM];
}

void
engine_client_port(const struct verbs_client *c, struct ring_port_reply *reply)
{
	const struct port_attr *port = link_port_attr(c->engine->link, c->port);
	struct link_state state;
	unsigned int i;

	link_state(c->engine->link, c->port, &state);
	memset(reply, 0, sizeof(*reply));
	reply->state = port->state;
	reply->max_mtu = reply->active_mtu = port_mtu_code(port->active_mtu);
	reply->num_gids = port->num_gids;
	reply->num_pkeys = RTE_MIN(port->num_pkeys, (unsigned int)RTE_DIM(reply->pkey));
	reply->speed_mbps = state.speed_mbps;
	for (i = 0; i < reply->num_pkeys; i++)
		reply->pkey[i] = port->pkey[i];
}
