/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_QP_DIRECTORY_H
#define RC_QP_DIRECTORY_H

/**
 * @file
 * Private to lib/rc: the device and its QP directory.
 *
 * A QPN is a slot number (low bits) and a generation (high bits). Each QP created in a slot gets a
 * new generation, so packets for its predecessor find no QP. Each worker has a fixed share of the
 * slots and creates QPs there without a lock. A QP that moved may be destroyed by another worker,
 * which then returns the slot to its home worker. Other lcores read only the owner byte of a slot;
 * only the owner may touch the QP.
 */

#include "rc/cq.h"
#include "rc/dcqcn.h"

#define RC_NO_OWNER 0xFF
#define RC_NO_SLOT  UINT32_MAX

struct rc_srq;

/** A worker's share of QP slots. */
struct rc_slots {
	uint32_t *free; /**< free slots; rc_slot_take() picks one at random */
	uint32_t free_count;
	uint32_t *resting; /**< ring: slots of destroyed QPs in quarantine, oldest first */
	uint32_t resting_head;
	uint32_t resting_count;
	uint32_t size;
	uint32_t used; /**< slots with a QP, wherever it is, or not home yet; atomic */
	/** newest slot returned by another worker (rc_slot_send_home()); RC_NO_SLOT: none */
	uint32_t returned;
};

struct rc_dev {
	struct rc_limits limits;
	unsigned int workers;
	uint64_t hz;
	struct rc_rp_times rp_times;
	const struct allocator *alloc;
	const struct rng *rng;
	struct mem *mem;
	unsigned int slot_bits;
	uint32_t slot_mask;
	uint8_t *owners; /**< by slot: worker, or RC_NO_OWNER */
	struct rc_qp **qps; /**< by slot; only the owner reads it */
	uint32_t *qpns; /**< by slot: QPN of the present or last QP */
	uint32_t *slot_links; /**< by slot: next slot in the list rc_slots.returned */
	struct rc_cq **cqs; /**< by CQ number, limits.max_cq */
	uint32_t cq_next; /**< where the search for a free CQ number starts */
	struct rc_srq **srqs; /**< by SRQ number; only the owner reads it (srq.c) */
	uint8_t *srq_owners; /**< by SRQ number: worker, or RC_NO_OWNER */
	struct rc_worker *worker[RC_WORKERS_MAX];
	/** by the worker that created the QP, not by its owner */
	struct slab *slabs[RC_WORKERS_MAX];
};

static inline uint32_t
rc_slot(const struct rc_dev *dev, uint32_t qpn)
{
	return qpn & dev->slot_mask;
}

/** Worker that owns a slot, or RC_NO_OWNER; any lcore. */
static inline uint8_t
rc_slot_owner(const struct rc_dev *dev, uint32_t slot)
{
	/* pairs with rc_qp_export() */
	return __atomic_load_n(&dev->owners[slot], __ATOMIC_ACQUIRE);
}

/**
 * The QP in qpn's slot if this worker owns it, else NULL. The caller must compare qp->qpn: the
 * generation may differ.
 */
static inline struct rc_qp *
rc_qp_there(const struct rc_worker *w, uint32_t qpn)
{
	const struct rc_dev *dev = w->dev;
	uint32_t slot = rc_slot(dev, qpn);

	return likely(rc_slot_owner(dev, slot) == w->id) ? dev->qps[slot] : NULL;
}

/** This worker's QP of that number, or NULL. */
static inline struct rc_qp *
rc_qp_at(const struct rc_worker *w, uint32_t qpn)
{
	struct rc_qp *qp = rc_qp_there(w, qpn);

	return likely(qp != NULL && qp->qpn == qpn) ? qp : NULL;
}

/** The CQ of that number, or NULL. A caller that cannot destroy it knows that it stays. */
static inline struct rc_cq *
rc_cq_at(const struct rc_dev *dev, uint32_t cqn)
{
	if (cqn >= dev->limits.max_cq)
		return NULL;
	return __atomic_load_n(&dev->cqs[cqn], __ATOMIC_ACQUIRE);
}

/** Error text: there is no such QP here. @return -ENOENT */
static inline int
rc_no_qp(uint32_t qpn, struct error *err)
{
	return error_set(err, ENOENT, "qp: there is no queue pair 0x%06x on this worker", qpn);
}

/** Error text: there is no such CQ. @param what  names it to the caller @return -ENOENT */
static inline int
rc_no_cq(const char *what, uint32_t cqn, struct error *err)
{
	return error_set(err, ENOENT, "%s: there is no completion queue %u", what, cqn);
}

/** Worker whose share the slot belongs to. */
static inline unsigned int
rc_slot_home(const struct rc_dev *dev, uint32_t slot)
{
	return slot % dev->workers;
}

/** Convert to time units, rounded up, so that no wait is too short. */
static inline uint64_t
rc_ns_to_time(const struct rc_dev *dev, uint64_t ns)
{
	return (uint64_t)(((unsigned __int128)ns * dev->hz + 999999999) / 1000000000);
}

/* qp_directory.c */
/** One allocation: mem_free() ends it. @return NULL: no memory */
struct rc_slots *rc_slots_create(struct rc_dev *dev, unsigned int worker);
/** Give a QP a slot of its worker's share and a QPN. @retval -ENOSPC no slot is free */
int rc_slot_take(struct rc_qp *qp);
void rc_slot_release(struct rc_qp *qp);
/** Any worker: return a slot to @p s, its home worker's share. */
void rc_slot_send_home(struct rc_dev *dev, struct rc_slots *s, uint32_t slot);
/**
 * Home worker: take the returned slots, linked by dev->slot_links. @return the first, or RC_NO_SLOT
 */
uint32_t rc_slots_returned(struct rc_slots *s);

#endif
