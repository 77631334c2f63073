/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory windows. The control thread allocates and frees them, workers bind and invalidate them.
 * An lcore claims a window's state word before it changes the window. If another lcore holds the
 * claim, two consumers use one window at the same time: the later operation fails, nothing waits.
 */

#include "mem/table.h"

/*
 * The state of the window with this key, and its index in mws; MW_FREE: there is none. The key may
 * change until the window is claimed.
 */
static uint32_t
mw_find(const struct mem *mem, uint32_t key, uint32_t *i)
{
	*i = key_index(&mem->keys, key) - mem->max_mr; /* a region's wraps */
	if (*i >= mem->max_mw || RELAXED_GET(mem->mws[*i].key) != key)
		return MW_FREE;
	return ACQUIRE_GET(mem->mw_states[*i]);
}

static bool
mw_exists(uint32_t state)
{
	return state != MW_FREE && state != MW_DYING;
}

/* @retval false  another lcore has claimed it, or has changed it */
static bool
mw_claim(struct mem *mem, uint32_t i, uint32_t key, uint32_t state)
{
	if (state == MW_CLAIMED ||
		!__atomic_compare_exchange_n(&mem->mw_states[i], &state, MW_CLAIMED, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	if (mem->mws[i].key == key)
		return true;
	RELEASE_SET(mem->mw_states[i], state); /* its key changed before the claim */
	return false;
}

static struct mem_record *
mw_record(struct mem *mem, uint32_t i)
{
	return &mem->records.record[mem->max_mr + i];
}

static bool
mw_is_bound(uint32_t state)
{
	return state == MW_BOUND_TYPE_1 || (state & MW_BOUND_QP) != 0;
}

/* The number of windows bound to the region with this key */
static uint32_t *
mr_windows(struct mem *mem, uint32_t key)
{
	return &mem->mrs[key_index(&mem->keys, key)].windows;
}

/* Unbind a claimed window from its region; `state` is its state before the claim. */
static void
mw_unbind(struct mem *mem, uint32_t i, uint32_t state)
{
	struct mem_record *r = mw_record(mem, i);

	record_retract(r);
	count_down(mr_windows(mem, r->view.mr_key));
	if ((state & MW_BOUND_QP) != 0)
		__atomic_fetch_sub(qp_bucket(mem, state & 0xffffff), 1, __ATOMIC_RELAXED);
}

int
mem_mw_alloc(struct mem *mem, uint32_t pd, enum mem_mw_type type, uint32_t *key, struct error *err)
{
	struct mem_mw *mw;
	uint32_t i;

	RTE_ASSERT(key != NULL);
	if (type < MEM_MW_TYPE_1 || type > MEM_MW_TYPE_1_CHOSEN)
		return error_set(err, EINVAL, "type: got %d, must be 1 or 2", (int)type);
	if (mem_pd_hold(mem, pd) != 0)
		return error_set(err, ENOENT, "pd: no protection domain %u", pd);
	if (!index_get(&mem->free_mw, &i)) {
		mem_pd_release(mem, pd);
		return error_set_limit(err, ENOMEM,
			"mw: all %u memory windows are in use (limits.max_mw)", mem->max_mw);
	}
	mw = &mem->mws[i];
	mw->type = type;
	mw->pd = pd;
	*key = key_issue(&mem->keys, mem->max_mr + i, &mw->serial);
	RTE_ASSERT(key_index(&mem->keys, *key) == mem->max_mr + i);
	RELAXED_SET(mw->key, *key);
	RELEASE_SET(mem->mw_states[i], MW_UNBOUND);
	return 0;
}

int
mem_mw_free(struct mem *mem, uint32_t key, struct error *err)
{
	uint32_t i, state = mw_find(mem, key, &i);
	struct mem_mw *mw;

	if (state == MW_FREE)
		return error_set(err, ENOENT, "mw: no memory window 0x%08x", key);
	mw = &mem->mws[i];
	if (state != MW_DYING) {
		if (!mw_claim(mem, i, key, state))
			return -EAGAIN; /* a worker is binding or invalidating it */
		mw->token = 0;
		if (mw_is_bound(state)) {
			mw_unbind(mem, i, state);
			mw->token = mem_grace_start(mem);
		}
		RELEASE_SET(mem->mw_states[i], MW_DYING);
	}
	if (!mem_grace_done(mem, mw->token))
		return -EAGAIN;
	RELEASE_SET(mem->mw_states[i], MW_FREE);
	mem_pd_release(mem, mw->pd);
	index_put(&mem->free_mw, i);
	return 0;
}

uint32_t
mem_mw_present_key(const struct mem *mem, uint32_t key)
{
	uint32_t i = key_index(&mem->keys, key) - mem->max_mr;

	RTE_ASSERT(i < mem->max_mw && mem->mws[i].type != MEM_MW_TYPE_1);
	RTE_ASSERT(ACQUIRE_GET(mem->mw_states[i]) != MW_FREE);
	return RELAXED_GET(mem->mws[i].key);
}

/*
 * Check a bind against its region (IBA C10-72 to C10-75) and fill in the window's view. On success
 * the region counts one more window.
 */
static int
mw_check_region(struct mem *mem, const struct mem_bind *b, uint32_t qpn, struct mem_view *window)
{
	uint32_t index = key_index(&mem->keys, b->mr_key);
	struct mem_view mr;
	uint64_t offset;

	if (index >= mem->max_mr || !record_read(&mem->records.record[index], b->mr_key, &mr))
		return -ENOENT;
	if (mr.pd != b->pd || (mr.rights & MEM_ACCESS_MW_BIND) == 0)
		return -EACCES;
	if (access_needs_local_write(b->access) && (mr.rights & MEM_ACCESS_LOCAL_WRITE) == 0)
		return -EACCES;
	/* as verbs and rxe: no window on a zero-based region */
	if ((mr.rights & MEM_ACCESS_ZERO_BASED) != 0)
		return -EINVAL;
	offset = b->va - mr.va;
	if (offset > mr.length || b->length > mr.length - offset)
		return -EINVAL;

	*window = (struct mem_view){
		.va = (b->access & MEM_ACCESS_ZERO_BASED) != 0 ? 0 : b->va,
		.length = b->length,
		.base = mr.base + offset,
		.pd = b->pd,
		.qpn = qpn,
		.rights = b->access,
		.mr_key = b->mr_key,
	};
	if (access_misaligned(b->access, window->va, window->base))
		return -EINVAL;
	/* The record was valid just now, so the index is not reused before a grace period. */
	return count_up(mr_windows(mem, b->mr_key)) ? 0 : -ENOENT;
}

/* Check a bind against its window; mw_check_region() follows. */
static int
mw_check_window(const struct mem_mw *mw, uint32_t state, const struct mem_bind *b)
{
	if (mw->pd != b->pd)
		return -EACCES;
	if ((b->access & ~(uint32_t)(MEM_ACCESS_REMOTE | MEM_ACCESS_ZERO_BASED)) != 0)
		return -EINVAL;
	if (mw->type != MEM_MW_TYPE_1 && b->new_key >> 8 != b->mw_key >> 8)
		return -EINVAL;
	if (mw->type == MEM_MW_TYPE_1_CHOSEN && b->new_key == b->mw_key)
		return -EINVAL;
	if (mw->type != MEM_MW_TYPE_2) /* o10-36.2.2 */
		return (b->access & MEM_ACCESS_ZERO_BASED) != 0 ? -EINVAL : 0;
	/* o10-37.2.30: invalidate first; o10-37.2.40: only an invalidate unbinds */
	return state != MW_UNBOUND || b->length == 0 || b->qpn >= MW_BOUND_QP ? -EINVAL : 0;
}

/* Give a claimed window its new key and binding. @return its new state */
static uint32_t
mw_apply(struct mem *mem, uint32_t i, const struct mem_bind *b, const struct mem_view *window)
{
	struct mem_mw *mw = &mem->mws[i];
	uint32_t key = mw->type != MEM_MW_TYPE_1
		? b->new_key
		: key_issue(&mem->keys, mem->max_mr + i, &mw->serial);

	RELAXED_SET(mw->key, key);
	if (b->length == 0)
		return MW_UNBOUND;
	record_publish(mw_record(mem, i), key, window);
	if (mw->type != MEM_MW_TYPE_2)
		return MW_BOUND_TYPE_1;
	__atomic_fetch_add(qp_bucket(mem, b->qpn), 1, __ATOMIC_RELAXED);
	return MW_BOUND_QP | b->qpn;
}

int
mem_mw_bind(struct mem *mem, const struct mem_bind *b, uint32_t *key, uint64_t *token)
{
	uint32_t i, state, old = mw_find(mem, b->mw_key, &i);
	struct mem_view window = { 0 };
	struct mem_mw *mw;
	int rc;

	RTE_ASSERT(key != NULL && token != NULL && b->qpn < MW_BOUND_QP);
	*token = 0;
	if (!mw_exists(old))
		return -ENOENT;
	if (!mw_claim(mem, i, b->mw_key, old))
		return -EINVAL;
	mw = &mem->mws[i];
	rc = mw_check_window(mw, old, b);
	if (rc == 0 && b->length != 0)
		rc = mw_check_region(mem, b, mw->type == MEM_MW_TYPE_2 ? b->qpn : MEM_QPN_ANY,
			&window);
	if (rc != 0) {
		RELEASE_SET(mem->mw_states[i], old);
		return rc;
	}
	if (mw_is_bound(old))
		mw_unbind(mem, i, old);
	state = mw_apply(mem, i, b, &window);
	*key = mw->key;
	RELEASE_SET(mem->mw_states[i], state);
	/* Type 1: other workers may still access memory through the old binding. */
	if (mw_is_bound(old))
		*token = mem_grace_start(mem);
	return 0;
}

int
mem_invalidate(struct mem *mem, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t *token)
{
	uint32_t i, state = MW_BOUND_QP | qpn;

	/*
	 * Only the QP's worker accesses memory through this window, so no grace period is needed.
	 */
	*token = 0;
	if (qpn >= MW_BOUND_QP || mw_find(mem, key, &i) != state || !mw_claim(mem, i, key, state))
		return -EACCES;
	if (mem->mws[i].pd != pd) {
		RELEASE_SET(mem->mw_states[i], state);
		return -EACCES;
	}
	mw_unbind(mem, i, state);
	RELEASE_SET(mem->mw_states[i], MW_UNBOUND);
	return 0;
}

void
mem_qp_gone(struct mem *mem, uint32_t qpn)
{
	uint32_t i, state = MW_BOUND_QP | qpn;
	uint64_t none;

	if (qpn >= MW_BOUND_QP || RELAXED_GET(*qp_bucket(mem, qpn)) == 0)
		return;
	for (i = 0; i < mem->max_mw; i++)
		if (RELAXED_GET(mem->mw_states[i]) == state)
			mem_invalidate(mem, RELAXED_GET(mem->mws[i].key), mem->mws[i].pd, qpn,
				&none);
}

static void
mw_fill_info(const struct mem *mem, uint32_t i, struct mem_mw_info *info)
{
	const struct mem_mw *mw = &mem->mws[i];
	struct mem_view v;

	*info = (struct mem_mw_info){
		.key = RELAXED_GET(mw->key),
		.pd = mw->pd,
		.type = mw->type == MEM_MW_TYPE_2 ? MEM_MW_TYPE_2 : MEM_MW_TYPE_1,
	};
	if (!record_read(&mem->records.record[mem->max_mr + i], info->key, &v))
		return;
	info->bound = true;
	info->mr_key = v.mr_key;
	info->qpn = v.qpn == MEM_QPN_ANY ? 0 : v.qpn;
	info->access = v.rights;
	info->va = v.va;
	info->length = v.length;
}

int
mem_mw_query(const struct mem *mem, uint32_t key, struct mem_mw_info *info)
{
	uint32_t i;

	if (!mw_exists(mw_find(mem, key, &i)))
		return -ENOENT;
	mw_fill_info(mem, i, info);
	return 0;
}

bool
mem_mw_next(const struct mem *mem, uint64_t *cursor, struct mem_mw_info *info)
{
	while (*cursor < mem->max_mw) {
		uint32_t i = (uint32_t)(*cursor)++;

		if (mw_exists(ACQUIRE_GET(mem->mw_states[i]))) {
			mw_fill_info(mem, i, info);
			return true;
		}
	}
	return false;
}
