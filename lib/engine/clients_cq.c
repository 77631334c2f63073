/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' completion queues and completion channels.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/clients_private.h"

/* --- channels --- */

/* The program closes a channel without telling: its pipe has no reader any more. */
static void
client_channels_reclaim(struct verbs_client *c)
{
	uint32_t i;

	for (i = 0; i < c->limits.max_channels; i++) {
		struct client_channel *channel = &c->channel[i];
		struct pollfd fd = { .fd = channel->fd };

		if (channel->fd < 0 || channel->users > 0 || poll(&fd, 1, 0) <= 0 ||
			(fd.revents & POLLERR) == 0)
			continue;
		close(channel->fd);
		channel->fd = -1;
	}
}

int
engine_client_channel_create(struct verbs_client *c, uint32_t *slot, int fds[RING_CHANNEL_FDS],
	struct error *err)
{
	int ends[CLIENT_PIPE_ENDS], rc;
	uint32_t i;

	client_channels_reclaim(c);
	for (i = 0; i < c->limits.max_channels && c->channel[i].fd >= 0; i++)
		;
	if (i == c->limits.max_channels)
		return error_set_limit(err, EMFILE,
			"channel: all %u are in use (verbs.max_channels)", c->limits.max_channels);
	rc = client_pipe(ends, err);
	if (rc != 0)
		return rc;
	c->channel[i] = (struct client_channel){ .fd = ends[CLIENT_PIPE_POLCA] };
	fds[0] = ends[CLIENT_PIPE_READ];
	fds[1] = ends[CLIENT_PIPE_PROGRAM];
	*slot = i;
	return 0;
}

static struct client_channel *
client_channel_at(const struct verbs_client *c, uint32_t slot, struct error *err)
{
	if (slot < c->limits.max_channels && c->channel[slot].fd >= 0)
		return &c->channel[slot];
	error_set(err, EINVAL, "channel: there is none in slot %u", slot);
	return NULL;
}

int
engine_client_channel_destroy(struct verbs_client *c, uint32_t slot, struct error *err)
{
	struct client_channel *channel = client_channel_at(c, slot, err);

	if (channel == NULL)
		return -EINVAL;
	if (channel->users > 0)
		return error_set(err, EBUSY, "channel: %u completion queues use it",
			channel->users);
	close(channel->fd);
	channel->fd = -1;
	return 0;
}

/* --- completion queues --- */

struct client_cq *
client_cq_at(const struct verbs_client *c, const char *what, uint32_t slot, struct error *err)
{
	if (slot < c->limits.max_cq && c->cq[slot] != NULL)
		return c->cq[slot];
	error_set(err, EINVAL, "%s: there is none in slot %u", what, slot);
	return NULL;
}

static int
client_cq_make(struct verbs_client *c, struct client_cq *cq, uint32_t slot,
	const struct ring_cq_create *req, struct error *err)
{
	uint32_t num = ring_entries(req->cqe);
	int rc;

	cq->shared =
		(struct ring_cq *)client_segment_at(&c->segment, c->segment.geometry.cqs) + slot;
	*cq->shared = (struct ring_cq){ 0 };
	rc = client_segment_alloc(&c->segment, (uint64_t)num * sizeof(struct ring_completion),
		&cq->offset, err);
	if (rc != 0)
		return rc;
	ring_end_init(&cq->ring, client_segment_at(&c->segment, cq->offset), num,
		sizeof(struct ring_completion), &cq->shared->head, &cq->shared->tail);
	rc = rc_cq_create(c->engine->dev, req->cqe, &cq->cqn, err);
	if (rc != 0)
		client_segment_free(&c->segment, cq->offset,
			(uint64_t)num * sizeof(struct ring_completion));
	return rc;
}

int
engine_client_cq_create(struct verbs_client *c, const struct ring_cq_create *req,
	struct ring_cq_reply *reply, struct error *err)
{
	uint32_t max_cqe = c->engine->config.limits.max_cqe, slot;
	struct client_channel *channel = NULL;
	struct client_cq *cq;
	int rc;

	if (req->cqe == 0 || req->cqe > max_cqe)
		return error_set(err, EINVAL, "cqe: got %u, allowed: 1 to %u", req->cqe, max_cqe);
	if (req->channel != RING_NONE) {
		channel = client_channel_at(c, req->channel, err);
		if (channel == NULL)
			return -EINVAL;
	}
	rc = client_allow(c, CLIENT_LIMIT_CQ, 1, err);
	if (rc != 0)
		return rc;
	for (slot = 0; c->cq[slot] != NULL; slot++)
		;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return error_set(err, ENOMEM, "no memory for a completion queue");
	*cq = (struct client_cq){
		.client = c,
		.event_fd = channel != NULL ? channel->fd : -1,
		.cookie = req->cookie,
		.channel = req->channel,
	};
	rc = client_cq_make(c, cq, slot, req, err);
	if (rc != 0) {
		free(cq);
		return rc;
	}
	if (channel != NULL)
		channel->users++;
	c->cq[slot] = cq;
	c->use.cqs++;
	c->engine->client_cqs[cq->cqn] = cq;
	rc_cq_follow(c->engine->dev, cq->cqn);
	*reply = (struct ring_cq_reply){ cq->offset, slot, cq->ring.mask + 1 };
	return 0;
}

static int
client_cq_unlist_here(struct worker *w, void *arg)
{
	struct client_cq *cq = arg;

	if (!cq->listed)
		return 0;
	TAILQ_REMOVE(&cq->client->due, cq, due_link);
	cq->listed = false;
	if (TAILQ_EMPTY(&cq->client->due))
		TAILQ_REMOVE(&w->clients.completing, cq->client, completing_link);
	return 0;
}

static int
client_cq_release(struct verbs_client *c, uint32_t slot, struct error *err)
{
	struct client_cq *cq = c->cq[slot];
	struct rc_cq_info info;
	int rc;

	if (rc_cq_query(c->engine->dev, cq->cqn, &info) == 0 && info.users > 0)
		return error_set(err, EBUSY, "cq: queue pairs use the one in slot %u", slot);
	/* without queue pairs it gets no completion any more; the worker then forgets it */
	engine_call(c->engine, c->worker, client_cq_unlist_here, cq);
	rc = rc_cq_destroy(c->engine->dev, cq->cqn, err);
	if (rc != 0)
		return rc;
	c->engine->client_cqs[cq->cqn] = NULL;
	c->cq[slot] = NULL;
	c->use.cqs--;
	if (cq->channel != RING_NONE)
		c->channel[cq->channel].users--;
	client_segment_free(&c->segment, cq->offset,
		(uint64_t)(cq->ring.mask + 1) * sizeof(struct ring_completion));
	free(cq);
	return 0;
}

int
engine_client_cq_destroy(struct verbs_client *c, uint32_t slot, struct error *err)
{
	if (client_cq_at(c, "cq", slot, err) == NULL)
		return -EINVAL;
	return client_cq_release(c, slot, err);
}

void
client_cqs_destroy(struct verbs_client *c)
{
	uint32_t i;

	for (i = 0; i < c->limits.max_cq; i++)
		if (c->cq[i] != NULL)
			client_cq_release(c, i, NULL);
}
