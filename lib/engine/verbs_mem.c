/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Protection domains, regions and windows: tables that all workers read and only the control thread
 * changes. The control thread, never a worker, waits until no worker uses a removed entry.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_memzone.h>

#include "engine/verbs_pd.h"
#include "engine/placement.h"
#include "engine/verbs_private.h"

void
grace_pause(unsigned int *us)
{
	struct timespec ts = { 0, (long)*us * 1000 };

	nanosleep(&ts, NULL);
	if (*us < 1000)
		*us *= 2;
}

int
engine_pd_alloc(struct engine *e, uint32_t *pd, struct error *err)
{
	return mem_pd_alloc(e->mem, pd, err);
}

int
engine_pd_free(struct engine *e, uint32_t pd, struct error *err)
{
	int ret = callers_pd(e, pd, err);

	return ret != 0 ? ret : mem_pd_free(e->mem, pd, err);
}

bool
engine_pd_next(const struct engine *e, uint64_t *cursor, struct mem_pd_info *info)
{
	return mem_pd_next(e->mem, cursor, info);
}

/*
 * Use a named memzone: memory that also belongs to another part of this process, or to a DPDK
 * secondary process.
 */
static int
from_memzone(struct mem_mr_attr *attr, struct error *err)
{
	const struct rte_memzone *mz = rte_memzone_lookup(attr->memzone);

	if (mz == NULL)
		return error_set(err, ENOENT, "memzone: there is none of the name \"%s\"",
			attr->memzone);
	if (attr->offset > mz->len || attr->length > mz->len - attr->offset)
		return error_set(err, EINVAL,
			"length: %" PRIu64 " bytes from %" PRIu64
			" on do not fit memzone \"%s\" of %zu bytes",
			attr->length, attr->offset, attr->memzone, mz->len);
	attr->base = (uint8_t *)mz->addr + attr->offset;
	return 0;
}

int
engine_mr_register(struct engine *e, const struct mem_mr_attr *attr, unsigned int local_port,
	struct mem_mr_info *info, struct error *err)
{
	struct mem_mr_attr a = *attr;
	int ret = callers_pd(e, a.pd, err);

	if (ret != 0)
		return ret;
	if (a.numa_node == -1)
		a.numa_node = placement_port_node(e, local_port);
	if (a.backing == MEM_EXTERNAL && a.memzone != NULL) {
		ret = from_memzone(&a, err);
		if (ret != 0)
			return ret;
	}
	return mem_mr_register(e->mem, &a, info, err);
}

int
engine_mr_deregister(struct engine *e, uint32_t key, struct error *err)
{
	unsigned int us = 10;
	int ret = callers_mr(e, "key", key, err);

	if (ret != 0)
		return ret;
	while ((ret = mem_mr_deregister(e->mem, key, err)) == -EAGAIN)
		grace_pause(&us);
	return ret;
}

static int
mr_check_range(struct engine *e, uint32_t key, uint64_t offset, uint64_t len, uint8_t **base,
	struct error *err)
{
	struct mem_mr_info info;
	int ret = callers_mr(e, "key", key, err);

	if (ret != 0)
		return ret;
	if (mem_mr_query(e->mem, key, &info) != 0)
		return error_set(err, ENOENT, "key: no memory region 0x%08x", key);
	if (offset > info.length || len > info.length - offset)
		return error_set(err, EINVAL,
			"offset: %" PRIu64 " bytes from %" PRIu64
			" on reach beyond the region's %" PRIu64,
			len, offset, info.length);
	*base = info.base + offset;
	return 0;
}

int
engine_mr_read(struct engine *e, uint32_t key, uint64_t offset, void *buf, uint64_t len,
	struct error *err)
{
	uint8_t *base = NULL;
	int ret = mr_check_range(e, key, offset, len, &base, err);

	if (ret == 0)
		memcpy(buf, base, len);
	return ret;
}

int
engine_mr_write(struct engine *e, uint32_t key, uint64_t offset, const void *buf, uint64_t len,
	struct error *err)
{
	uint8_t *base = NULL;
	int ret = mr_check_range(e, key, offset, len, &base, err);

	if (ret == 0)
		memcpy(base, buf, len);
	return ret;
}

bool
engine_mr_next(struct engine *e, uint64_t *cursor, struct mem_mr_info *info)
{
	return mem_mr_next(e->mem, cursor, info);
}

int
engine_mw_alloc(struct engine *e, uint32_t pd, enum mem_mw_type type, uint32_t *key,
	struct error *err)
{
	int ret = callers_pd(e, pd, err);

	return ret != 0 ? ret : mem_mw_alloc(e->mem, pd, type, key, err);
}

int
engine_mw_free(struct engine *e, uint32_t key, struct error *err)
{
	unsigned int us = 10;
	int ret = callers_mw(e, key, err);

	if (ret != 0)
		return ret;
	while ((ret = mem_mw_free(e->mem, key, err)) == -EAGAIN)
		grace_pause(&us);
	return ret;
}

bool
engine_mw_next(struct engine *e, uint64_t *cursor, struct mem_mw_info *info)
{
	return mem_mw_next(e->mem, cursor, info);
}
