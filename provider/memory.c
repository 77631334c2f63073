/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory regions: the pages move into the mirror, then polca maps them. Memory that the program
 * shares already stays where it is. Memory windows.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mirror.h"
#include "provider.h"
#include "share.h"

#define ACCESS_FLAGS                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
/* They change nothing here: the kind of pages behind a region, and the order of writes on a bus. */
#define ACCESS_HINTS (IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

static void
region_unlist(struct polca_mr *mr)
{
	*mr->link = mr->next;
	if (mr->next != NULL)
		mr->next->link = mr->link;
	mr->link = NULL;
}

static void
region_list(struct polca_context *c, struct polca_mr *mr)
{
	pthread_mutex_lock(&c->regions_lock);
	if (c->memory_returned) {
		mirror_release(c->mirror_fd, mr->addr, mr->length);
	} else {
		mr->next = c->regions;
		mr->link = &c->regions;
		if (mr->next != NULL)
			mr->next->link = &mr->next;
		c->regions = mr;
	}
	pthread_mutex_unlock(&c->regions_lock);
}

static void
region_return(struct polca_context *c, struct polca_mr *mr)
{
	if (mr->link == NULL)
		return;
	region_unlist(mr);
	mirror_release(c->mirror_fd, mr->addr, mr->length);
}

void
regions_return(struct polca_context *c)
{
	pthread_mutex_lock(&c->regions_lock);
	c->memory_returned = true;
	while (c->regions != NULL)
		region_return(c, c->regions);
	pthread_mutex_unlock(&c->regions_lock);
}

static void
region_accept(struct polca_mr *mr, const struct ring_mr_reply *reply)
{
	mr->slot = reply->slot;
	mr->verbs.ibv_mr.handle = reply->slot;
	mr->verbs.ibv_mr.lkey = mr->verbs.ibv_mr.rkey = reply->key;
}

/* The program cannot open the file: perhaps polca can, by the address. */
static int
region_share_range(struct polca_context *c, struct ring_request *req, struct ring_reply *reply)
{
	if (c->hello.features & RING_FEATURE_RANGES)
		return polca_call(c, RING_MR_REGISTER_RANGE, req, sizeof(req->mr), reply, NULL);
	snprintf(reply->text, sizeof(reply->text),
		"the program cannot open its file for writing, and this polca (%s) does not: keep a "
		"descriptor of it open, as memfd_create() gives",
		c->hello.version);
	return EFAULT;
}

/* @return errno value; ENOENT: the memory is not shared */
static int
region_share(struct polca_context *c, struct polca_mr *mr, const struct ring_mr *ask)
{
	struct ring_request req = { .mr = *ask };
	struct ring_reply reply;
	uint64_t offset;
	int rc, fd;

	fd = share_open(c->mirror_fd, mr->addr, mr->length, &offset);
	if (fd < 0 && fd != -EACCES)
		return -fd;
	if (fd >= 0) {
		req.mr.addr = offset;
		rc = polca_call_passing(c, RING_MR_REGISTER, &req, sizeof(req.mr), fd, &reply);
		close(fd);
	} else {
		rc = region_share_range(c, &req, &reply);
	}
	if (rc != 0) {
		fprintf(stderr, "polca: shared memory from %#lx on cannot be registered: %.*s\n",
			(unsigned long)mr->addr, (int)sizeof(reply.text), reply.text);
		return rc;
	}
	mr->shared = true;
	region_accept(mr, &reply.mr);
	return 0;
}

/* @param hold  what it returns is returned */
static int
region_register(struct polca_context *c, struct polca_mr *mr, const struct ring_mr *ask,
	int (*hold)(int mirror_fd, uintptr_t addr, size_t length))
{
	struct ring_request req = { .mr = *ask };
	struct ring_reply reply;
	int rc = hold(c->mirror_fd, mr->addr, mr->length);

	if (rc != 0)
		return rc;
	rc = POLCA_CALL(c, RING_MR_REGISTER, &req, mr, &reply);
	if (rc != 0) {
		mirror_release(c->mirror_fd, mr->addr, mr->length);
		return rc;
	}
	region_list(c, mr);
	region_accept(mr, &reply.mr);
	return 0;
}

/* Memory that is shared in parts only is refused by the mirror, by name. @return errno value */
static int
region_make(struct polca_context *c, struct polca_mr *mr, const struct ring_mr *ask)
{
	int rc;

	if ((c->hello.features & RING_FEATURE_SHARED) == 0)
		return region_register(c, mr, ask, mirror_hold);
	rc = region_register(c, mr, ask, mirror_hold_unless_shared);
	if (rc != MIRROR_SHARED)
		return rc;
	rc = region_share(c, mr, ask);
	return rc == ENOENT ? region_register(c, mr, ask, mirror_hold) : rc;
}

struct ibv_mr *
polca_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	const struct ring_mr ask = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
		.pd = ((struct polca_pd *)pd)->slot,
		.access = (uint32_t)access & ACCESS_FLAGS,
	};
	struct polca_mr *mr;
	int rc;

	if ((access & ~(ACCESS_FLAGS | ACCESS_HINTS)) != 0) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	mr->addr = (uintptr_t)addr;
	mr->length = length;
	rc = region_make(context_of(pd->context), mr, &ask);
	if (rc != 0) {
		free(mr);
		errno = rc;
		return NULL;
	}
	mr->verbs.access = access;
	return &mr->verbs.ibv_mr;
}

int
polca_dereg_mr(struct verbs_mr *verbs)
{
	struct polca_mr *mr = (struct polca_mr *)verbs;
	struct polca_context *c = context_of(verbs->ibv_mr.context);
	int rc = polca_call_destroy(c, RING_MR_DEREGISTER, mr->slot);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&c->regions_lock);
	region_return(c, mr);
	pthread_mutex_unlock(&c->regions_lock);
	free(mr);
	return 0;
}

/* --- windows --- */

struct ibv_mw *
polca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ring_request req = { .mw = { ((struct polca_pd *)pd)->slot, (uint32_t)type } };
	struct polca_mw *mw;
	struct ring_reply reply;
	int rc;

	if ((context_of(pd->context)->hello.features & RING_FEATURE_WINDOWS) == 0) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL)
		return NULL;
	rc = POLCA_CALL(context_of(pd->context), RING_MW_ALLOC, &req, mw, &reply);
	if (rc != 0) {
		free(mw);
		errno = rc;
		return NULL;
	}
	mw->ibv = (struct ibv_mw){
		.context = pd->context,
		.pd = pd,
		.rkey = reply.mr.key,
		.handle = reply.mr.slot,
		.type = type,
	};
	return &mw->ibv;
}

int
polca_dealloc_mw(struct ibv_mw *mw)
{
	int rc = polca_call_destroy(context_of(mw->context), RING_MW_FREE, mw->handle);

	if (rc == 0)
		free((struct polca_mw *)mw);
	return rc;
}
