/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' protection domains, memory regions and windows.
 */

#include <errno.h>
#include <inttypes.h>

#include "engine/clients_private.h"

int
client_pd_at(const struct verbs_client *c, uint32_t slot, uint32_t *pd, struct error *err)
{
	if (slot >= c->limits.max_pd || c->pd[slot] == CLIENT_FREE)
		return error_set(err, EINVAL, "pd: there is none in slot %u", slot);
	*pd = c->pd[slot];
	return 0;
}

int
engine_client_pd_alloc(struct verbs_client *c, uint32_t *slot, struct error *err)
{
	uint32_t i = 0, pd;
	int rc = client_allow(c, CLIENT_LIMIT_PD, 1, err);

	if (rc == 0)
		rc = mem_pd_alloc(c->engine->mem, &pd, err);
	if (rc != 0)
		return rc;
	while (c->pd[i] != CLIENT_FREE)
		i++;
	c->use.pds++;
	c->engine->client_pds[pd] = true;
	c->pd[i] = pd;
	*slot = i;
	return 0;
}

static int
client_pd_release(struct verbs_client *c, uint32_t slot, struct error *err)
{
	uint32_t pd = c->pd[slot];
	int rc = mem_pd_free(c->engine->mem, pd, err);

	if (rc != 0)
		return rc;
	c->engine->client_pds[pd] = false;
	c->pd[slot] = CLIENT_FREE;
	c->use.pds--;
	return 0;
}

int
engine_client_pd_free(struct verbs_client *c, uint32_t slot, struct error *err)
{
	uint32_t pd;
	int rc = client_pd_at(c, slot, &pd, err);

	return rc != 0 ? rc : client_pd_release(c, slot, err);
}

void
client_pds_destroy(struct verbs_client *c)
{
	uint32_t i;

	for (i = 0; i < c->limits.max_pd; i++)
		if (c->pd[i] != CLIENT_FREE)
			client_pd_release(c, i, NULL);
}

/* --- regions --- */

static int
client_mr_register(struct verbs_client *c, const struct ring_mr *mr, enum mem_backing backing,
	int fd, struct ring_mr_reply *reply, struct error *err)
{
	struct mem_mr_attr attr = {
		.access = mr->access & ~(uint32_t)MEM_ACCESS_ZERO_BASED,
		.length = mr->length,
		.va = mr->iova,
		.backing = backing,
		.fd = fd,
		.mirror_inode = c->mirror.st_ino,
		.offset = mr->addr,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	uint32_t slot = 0;
	int rc = client_pd_at(c, mr->pd, &attr.pd, err);

	if (rc == 0)
		rc = client_allow_mr(c, mr->length, &attr.max_bytes, err);
	if (rc == 0)
		rc = mem_mr_register(c->engine->mem, &attr, &info, err);
	if (rc != 0)
		return rc;
	while (c->mr[slot].key != 0)
		slot++;
	c->mr[slot] = (struct client_mr){ info.key, info.map_bytes };
	c->use.regions++;
	c->use.bytes += info.map_bytes;
	reply->slot = slot;
	reply->key = info.key;
	return 0;
}

int
engine_client_mr_register(struct verbs_client *c, const struct ring_mr *mr,
	struct ring_mr_reply *reply, struct error *err)
{
	return client_mr_register(c, mr, MEM_MIRROR, c->mirror_fd, reply, err);
}

int
engine_client_mr_share(struct verbs_client *c, const struct ring_mr *mr, int fd,
	struct ring_mr_reply *reply, struct error *err)
{
	return client_mr_register(c, mr, MEM_SHARED, fd, reply, err);
}

/* @return -EAGAIN until no worker can access the region any more */
static int
client_mr_release(struct verbs_client *c, uint32_t slot, struct error *err)
{
	int rc = mem_mr_deregister(c->engine->mem, c->mr[slot].key, err);

	if (rc != 0)
		return rc;
	c->use.regions--;
	c->use.bytes -= c->mr[slot].bytes;
	c->mr[slot].key = 0;
	return 0;
}

int
engine_client_mr_deregister(struct verbs_client *c, uint32_t slot, struct error *err)
{
	unsigned int us = 10;
	int rc;

	if (slot >= c->limits.max_mr || c->mr[slot].key == 0)
		return error_set(err, EINVAL, "mr: there is none in slot %u", slot);
	while ((rc = client_mr_release(c, slot, err)) == -EAGAIN)
		grace_pause(&us);
	return rc;
}

/* All grace periods at the same time: the first call for each region begins its own. */
void
client_mrs_destroy(struct verbs_client *c)
{
	unsigned int us = 10;
	uint32_t i;

	for (i = 0; i < c->limits.max_mr; i++)
		if (c->mr[i].key != 0)
			client_mr_release(c, i, NULL);
	for (i = 0; i < c->limits.max_mr; i++)
		while (c->mr[i].key != 0 && client_mr_release(c, i, NULL) == -EAGAIN)
			grace_pause(&us);
}

/* --- windows --- */

int
engine_client_mw_alloc(struct verbs_client *c, const struct ring_mw *mw,
	struct ring_mr_reply *reply, struct error *err)
{
	uint32_t slot = 0, pd;
	int rc = client_pd_at(c, mw->pd, &pd, err);

	if (rc != 0)
		return rc;
	if (mw->type != MEM_MW_TYPE_1 && mw->type != MEM_MW_TYPE_2)
		return error_set(err, EINVAL, "type: got %u, must be 1 or 2", mw->type);
	rc = client_allow(c, CLIENT_LIMIT_MW, 1, err);
	if (rc == 0)
		rc = mem_mw_alloc(c->engine->mem, pd,
			mw->type == MEM_MW_TYPE_1 ? MEM_MW_TYPE_1_CHOSEN : MEM_MW_TYPE_2,
			&reply->key, err);
	if (rc != 0)
		return rc;
	while (c->mw[slot] != 0)
		slot++;
	c->use.windows++;
	c->mw[slot] = reply->key;
	reply->slot = slot;
	return 0;
}

/* The worker may bind the window meanwhile, which changes its key. */
static void
client_mw_release(struct verbs_client *c, uint32_t slot)
{
	struct mem *mem = c->engine->mem;
	unsigned int us = 10;

	while (mem_mw_free(mem, mem_mw_present_key(mem, c->mw[slot]), NULL) != 0)
		grace_pause(&us);
	c->mw[slot] = 0;
	c->use.windows--;
}

int
engine_client_mw_free(struct verbs_client *c, uint32_t slot, struct error *err)
{
	if (slot >= c->limits.max_mw || c->mw[slot] == 0)
		return error_set(err, EINVAL, "mw: there is none in slot %u", slot);
	client_mw_release(c, slot);
	return 0;
}

void
client_mws_destroy(struct verbs_client *c)
{
	uint32_t i;

	for (i = 0; i < c->limits.max_mw; i++)
		if (c->mw[i] != 0)
			client_mw_release(c, i);
}
