/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Protection domain and memory of a service; runs on the control thread. */

#include <errno.h>

#include <rte_debug.h>

#include "svc/private.h"

int
svc_pd_need(struct svc *s, struct error *err)
{
	int ret;

	if (s->has_pd)
		return 0;
	ret = mem_pd_alloc_top(s->env.mem, &s->pd, err);
	s->has_pd = ret == 0;
	return ret;
}

static struct svc_region
svc_region_of_mr(const struct mem_mr_info *info)
{
	return (struct svc_region){
		.lkey = info->key,
		.rkey = info->key,
		.va = info->va,
		.length = info->length,
		.bytes = info->base,
	};
}

int
svc_region(struct svc *s, uint64_t length, uint32_t access, struct svc_region *r, struct error *err)
{
	struct mem_mr_attr attr = {
		.access = access,
		.length = length,
		.va = SVC_VA,
		.backing = MEM_ANONYMOUS,
		.hugepages = s->env.hugepages,
		.numa_node = s->env.numa_node,
	};
	struct mem_mr_info info;
	int ret;

	if (s->num_keys == SVC_REGIONS_MAX)
		return error_set_limit(err, ENOSPC, "%s: all %u regions of a service are in use",
			s->ops->name, SVC_REGIONS_MAX);
	ret = svc_pd_need(s, err);
	if (ret != 0)
		return ret;
	attr.pd = s->pd;
	ret = mem_mr_register(s->env.mem, &attr, &info, err);
	if (ret != 0)
		return ret;
	s->keys[s->num_keys++] = info.key;
	*r = svc_region_of_mr(&info);
	return 0;
}

int
svc_adopt_region(struct svc *s, uint32_t key, struct svc_region *r, struct error *err)
{
	struct mem_mr_info info;
	int ret;

	if (s->has_pd)
		return error_set(err, EINVAL, "mr_key: the service has a protection domain");
	ret = mem_mr_query(s->env.mem, key, &info);
	if (ret != 0)
		return error_set(err, -ret, "mr_key: there is no memory region 0x%08x", key);
	ret = mem_pd_hold(s->env.mem, info.pd);
	if (ret != 0)
		return error_set(err, -ret, "mr_key: there is no protection domain %u", info.pd);
	s->pd = info.pd;
	s->has_pd = true;
	s->pd_adopted = true;
	*r = svc_region_of_mr(&info);
	return 0;
}

int
svc_buffers(struct svc *s, uint64_t length, uint32_t access, struct error *err)
{
	uint64_t all;
	int ret;

	RTE_ASSERT(s->buffer_length == 0 && length > 0);
	length = (length + SVC_CACHE_LINE - 1) & ~(uint64_t)(SVC_CACHE_LINE - 1);
	if (__builtin_mul_overflow(length, (uint64_t)s->config.max_connections, &all) ||
		all > UINT64_MAX - SVC_VA)
		return error_set(err, ENOMEM,
			"%u connections with buffers of %llu bytes each: too much",
			s->config.max_connections, (unsigned long long)length);
	ret = svc_region(s, all, access, &s->buffers, err);
	if (ret == 0)
		s->buffer_length = length;
	return ret;
}

struct svc_region
svc_conn_buffer(const struct svc_conn *c)
{
	struct svc_region r = c->svc->buffers;
	uint64_t at = (uint64_t)c->place * c->svc->buffer_length;

	RTE_ASSERT(at + c->svc->buffer_length <= r.length && c->svc->buffer_length > 0);
	r.va += at;
	r.bytes += at;
	r.length = c->svc->buffer_length;
	return r;
}

int
svc_regions_drop(struct svc *s)
{
	int ret;

	while (s->num_keys != 0) {
		ret = mem_mr_deregister(s->env.mem, s->keys[s->num_keys - 1], NULL);
		if (ret == -EAGAIN || ret == -EBUSY)
			return -EAGAIN;
		s->num_keys--;
	}
	if (s->has_pd && s->pd_adopted) {
		mem_pd_release(s->env.mem, s->pd);
	} else if (s->has_pd) {
		ret = mem_pd_free(s->env.mem, s->pd, NULL);
		if (ret == -EBUSY)
			return -EAGAIN;
	}
	s->has_pd = false;
	return 0;
}
