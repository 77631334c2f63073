/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory regions: the control thread registers and deregisters them. Workers look them up
 * (access.c).
 */

#include "base/plural.h"
#include "mem/table.h"

#define MR_ACCESS                                                                                  \
	(MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE | MEM_ACCESS_MW_BIND | MEM_ACCESS_ZERO_BASED)

static int
mr_check_access(uint32_t access, struct error *err)
{
	if ((access & ~(uint32_t)MR_ACCESS) != 0)
		return error_set(err, EINVAL, "access: unknown bits 0x%x",
			access & ~(uint32_t)MR_ACCESS);
	if (access_needs_local_write(access) && (access & MEM_ACCESS_LOCAL_WRITE) == 0)
		return error_set(err, EINVAL,
			"access: remote_write and remote_atomic need local_write");
	return 0;
}

/* Choose the virtual address of byte 0. */
static int
mr_choose_va(const struct mem_mr_attr *attr, const uint8_t *base, uint64_t *va, struct error *err)
{
	*va = attr->va;
	if ((attr->access & MEM_ACCESS_ZERO_BASED) != 0) {
		if (attr->va != 0 && attr->va != UINT64_MAX)
			return error_set(err, EINVAL, "va: got 0x%" PRIx64 ", zero_based means 0",
				attr->va);
		*va = 0;
	} else if (attr->va == UINT64_MAX) {
		*va = (uintptr_t)base;
	}
	if (attr->length - 1 > UINT64_MAX - *va)
		return error_set(err, EINVAL,
			"va: 0x%" PRIx64 " and length %" PRIu64 " run past 2^64", *va,
			attr->length);
	if (access_misaligned(attr->access, *va, base))
		return error_set(err, EINVAL,
			"va: 0x%" PRIx64
			" is aligned unlike the memory, remote_atomic needs it to agree modulo 8",
			*va);
	return 0;
}

static void
mr_publish(struct mem *mem, uint32_t index, const struct mem_mr_info *mr)
{
	const struct mem_view view = {
		.va = mr->va,
		.length = mr->length,
		.base = mr->base,
		.pd = mr->pd,
		.qpn = MEM_QPN_ANY,
		.rights = mr->access | MEM_RIGHT_LOCAL_READ,
		.mr_key = mr->key,
	};

	record_publish(&mem->records.record[index], mr->key, &view);
}

int
mem_mr_register(struct mem *mem, const struct mem_mr_attr *attr, struct mem_mr_info *info,
	struct error *err)
{
	struct backing backing;
	struct mem_mr *mr;
	uint32_t index;
	uint64_t va;
	int rc;

	if (attr->length == 0)
		return error_set(err, EINVAL, "length: must be greater than 0");
	rc = mr_check_access(attr->access, err);
	if (rc != 0)
		return rc;
	if (mem_pd_hold(mem, attr->pd) != 0)
		return error_set(err, ENOENT, "pd: no protection domain %u", attr->pd);
	rc = backing_open(&backing, attr, err);
	if (rc != 0)
		goto release_pd;
	rc = mr_choose_va(attr, backing.base, &va, err);
	if (rc != 0)
		goto close_backing;
	if (!index_get(&mem->free_mr, &index)) {
		rc = error_set_limit(err, ENOMEM,
			"mr: all %u memory regions are in use (limits.max_mr)", mem->max_mr);
		goto close_backing;
	}
	mr = &mem->mrs[index];
	mr->state = MR_LIVE;
	mr->backing = backing;
	mr->info = (struct mem_mr_info){
		.key = key_issue(&mem->keys, index, &mr->serial),
		.pd = attr->pd,
		.access = attr->access,
		.va = va,
		.length = attr->length,
		.map_bytes = backing.map_len,
		.base = backing.base,
		.hugepages = backing.hugepages,
		.numa_node = backing.numa_node,
	};
	RTE_ASSERT(key_index(&mem->keys, mr->info.key) == index);
	RELEASE_SET(mr->windows, 0);
	mr_publish(mem, index, &mr->info);
	if (info != NULL)
		*info = mr->info;
	return 0;

close_backing:
	backing_close(&backing);
release_pd:
	mem_pd_release(mem, attr->pd);
	return rc;
}

static struct mem_mr *
mr_find(const struct mem *mem, uint32_t key)
{
	uint32_t index = key_index(&mem->keys, key);

	if (index >= mem->max_mr || mem->mrs[index].state == MR_FREE ||
		mem->mrs[index].info.key != key)
		return NULL;
	return &mem->mrs[index];
}

int
mem_mr_deregister(struct mem *mem, uint32_t key, struct error *err)
{
	struct mem_mr *mr = mr_find(mem, key);
	uint32_t windows;

	if (mr == NULL)
		return error_set(err, ENOENT, "mr: no memory region 0x%08x", key);
	if (mr->state == MR_LIVE) {
		/* check and set in one step, so that no worker binds a window in between */
		windows = count_close(&mr->windows);
		if (windows != 0)
			return error_set(err, EBUSY,
				"mr: region 0x%08x has %u bound memory window%s", key, windows,
				plural(windows));
		record_retract(&mem->records.record[mr - mem->mrs]);
		mr->state = MR_DYING;
		mr->token = mem_grace_start(mem);
	}
	if (!mem_grace_done(mem, mr->token))
		return -EAGAIN;
	backing_close(&mr->backing);
	mr->state = MR_FREE;
	mem_pd_release(mem, mr->info.pd);
	index_put(&mem->free_mr, (uint32_t)(mr - mem->mrs));
	return 0;
}

int
mem_mr_query(const struct mem *mem, uint32_t key, struct mem_mr_info *info)
{
	const struct mem_mr *mr = mr_find(mem, key);

	if (mr == NULL || mr->state != MR_LIVE)
		return -ENOENT;
	*info = mr->info;
	return 0;
}

bool
mem_mr_lost(struct mem *mem, struct mem_mr_info *info)
{
	uint32_t count = lost_count();

	for (uint32_t i = 0; i < mem->max_mr && count != mem->lost_seen; i++) {
		struct mem_mr *mr = &mem->mrs[i];

		if (mr->state != MR_LIVE || mr->info.lost || !lost_found(mr->backing.watched))
			continue;
		mr->info.lost = true;
		*info = mr->info;
		return true;
	}
	mem->lost_seen = count;
	return false;
}

void
mem_mr_close_lost(struct mem *mem, uint32_t key)
{
	const struct mem_mr *mr = mr_find(mem, key);

	RTE_ASSERT(mr != NULL && mr->info.lost);
	record_retract(&mem->records.record[mr - mem->mrs]);
}

bool
mem_mr_next(const struct mem *mem, uint64_t *cursor, struct mem_mr_info *info)
{
	while (*cursor < mem->max_mr) {
		const struct mem_mr *mr = &mem->mrs[(*cursor)++];

		if (mr->state == MR_LIVE) {
			*info = mr->info;
			return true;
		}
	}
	return false;
}
