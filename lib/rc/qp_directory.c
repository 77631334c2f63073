/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The device: limits, tables, and the QP directory, which maps QPNs to slots (qp_directory.h).
 */

#include "rc/qp_directory.h"

#define QPN_BITS 24

const struct rc_limits rc_limits_default = {
	/* three workers share it: 10,000 connections and 8,192 half-open ones each */
	.max_qp = 65536,
	.max_cq = 1024,
	.max_srq = 64,
	.max_qp_wr = 16384,
	.max_srq_wr = 16384,
	.max_sge = 16,
	.max_inline = 256,
	.max_cqe = 65536,
	.max_rd_atomic = 16,
	.min_ack_timeout = 0,
	.window = 1024,
	.ack_interval = 64,
	.quarantine = 256,
	/* the DCQCN paper's values where it gives any (congestion 5) */
	.congestion = {
		.g = 256,
		.alpha_timer = 55,
		.increase_timer = 55,
		.byte_counter = 10000000,
		.fast_recovery = 5,
		.rate_ai = 40,
		.rate_hai = 400,
		.min_rate = 10,
		.max_rate = 25000,
		.cut_interval = 4,
	},
};

static bool
limits_ok(const struct rc_limits *l)
{
	return rte_is_power_of_2(l->max_qp) && l->max_qp <= 1u << 23 && l->max_cq != 0 &&
		l->max_qp_wr != 0 && l->max_qp_wr <= 1u << 24 && l->max_cqe != 0 &&
		l->max_cqe <= 1u << 24 && l->max_sge != 0 && l->max_sge <= RC_SGE_MAX &&
		l->max_inline <= RC_INLINE_MAX && l->window != 0 && l->window <= PSN_WINDOW &&
		l->min_ack_timeout <= 31 && l->ack_interval != 0 && rc_rp_params_ok(&l->congestion);
}

/* Workers read these fields at any time, each for itself: none of them depends on another. */
#define RELOAD(f) __atomic_store_n(&to->f, from->f, __ATOMIC_RELAXED)

void
rc_limits_reload(struct rc_limits *to, const struct rc_limits *from)
{
	RELOAD(max_qp_wr);
	RELOAD(max_srq_wr);
	RELOAD(max_sge);
	RELOAD(max_inline);
	RELOAD(max_cqe);
	RELOAD(min_ack_timeout);
	RELOAD(window);
	RELOAD(ack_interval);
	RELOAD(quarantine);
}

void
rc_dev_reload_limits(struct rc_dev *dev, const struct rc_limits *limits)
{
	rc_limits_reload(&dev->limits, limits);
}

/* The device and its tables are one allocation: their size, and below their order. */
static size_t
tables_bytes(const struct rc_limits *l)
{
	size_t of_qp = sizeof(struct rc_qp *) + 2 * sizeof(uint32_t) + sizeof(uint8_t);
	size_t of_srq = sizeof(struct rc_srq *) + sizeof(uint8_t);

	return l->max_qp * of_qp + l->max_cq * sizeof(struct rc_cq *) + l->max_srq * of_srq;
}

static void
place_tables(struct rc_dev *dev)
{
	const struct rc_limits *l = &dev->limits;

	dev->qps = (struct rc_qp **)(dev + 1);
	dev->cqs = (struct rc_cq **)(dev->qps + l->max_qp);
	dev->srqs = (struct rc_srq **)(dev->cqs + l->max_cq);
	dev->qpns = (uint32_t *)(dev->srqs + l->max_srq);
	dev->slot_links = dev->qpns + l->max_qp;
	dev->owners = (uint8_t *)(dev->slot_links + l->max_qp);
	dev->srq_owners = dev->owners + l->max_qp;
	memset(dev->owners, RC_NO_OWNER, l->max_qp + l->max_srq);
}

struct rc_dev *
rc_dev_create(const struct rc_dev_config *config)
{
	const struct allocator *a = config->alloc;
	const struct rc_limits *l = &config->limits;
	struct rc_dev *dev;

	RTE_ASSERT(a != NULL && a->alloc != NULL);
	if (!limits_ok(l) || config->workers == 0 || config->workers > RC_WORKERS_MAX ||
		config->hz == 0)
		return NULL;
	dev = mem_zalloc(a, sizeof(*dev) + tables_bytes(l), CACHE_LINE);
	if (dev == NULL)
		return NULL;
	dev->limits = *l;
	dev->workers = config->workers;
	dev->hz = config->hz;
	dev->alloc = a;
	dev->rng = config->rng;
	dev->mem = config->mem;
	dev->rp_times = rc_rp_times(dev);
	dev->slot_bits = __builtin_ctz(l->max_qp);
	dev->slot_mask = l->max_qp - 1;
	place_tables(dev);
	return dev;
}

void
rc_dev_destroy(struct rc_dev *dev)
{
	uint32_t i;

	if (dev == NULL)
		return;
	for (i = 0; i < dev->workers; i++)
		rc_worker_destroy(dev->worker[i]);
	for (i = 0; i < dev->workers; i++)
		slab_destroy(dev->slabs[i]);
	for (i = 0; i < dev->limits.max_cq; i++)
		rc_cq_destroy(dev, i, NULL);
	mem_free(dev->alloc, dev);
}

int
rc_owner(const struct rc_dev *dev, uint32_t qpn)
{
	uint8_t owner = rc_slot_owner(dev, rc_slot(dev, qpn));

	return owner == RC_NO_OWNER ? -1 : owner;
}

/* --- slots --- */

struct rc_slots *
rc_slots_create(struct rc_dev *dev, unsigned int worker)
{
	/* the slots whose rc_slot_home() is the worker */
	uint32_t slot, size = (dev->limits.max_qp + dev->workers - 1 - worker) / dev->workers;
	struct rc_slots *s;

	s = mem_zalloc(dev->alloc, sizeof(*s) + 2 * (size_t)size * sizeof(*s->free), CACHE_LINE);
	if (s == NULL)
		return NULL;
	s->size = size;
	s->returned = RC_NO_SLOT;
	s->free = (uint32_t *)(s + 1);
	s->resting = s->free + size;
	for (slot = worker; slot < dev->limits.max_qp; slot += dev->workers)
		s->free[s->free_count++] = slot;
	return s;
}

static uint32_t
take_rested(struct rc_slots *s)
{
	uint32_t slot = s->resting[s->resting_head];

	s->resting_head = (s->resting_head + 1) % s->size;
	s->resting_count--;
	return slot;
}

static void
slot_rest(const struct rc_dev *dev, struct rc_slots *s, uint32_t slot)
{
	s->resting[(s->resting_head + s->resting_count) % s->size] = slot;
	s->resting_count++;
	/* more than one after the limit was lowered */
	while (s->resting_count > dev->limits.quarantine)
		s->free[s->free_count++] = take_rested(s);
}

void
rc_slot_send_home(struct rc_dev *dev, struct rc_slots *s, uint32_t slot)
{
	uint32_t head = __atomic_load_n(&s->returned, __ATOMIC_RELAXED);

	do
		dev->slot_links[slot] = head;
	while (!__atomic_compare_exchange_n(&s->returned, &head, slot, true, __ATOMIC_RELEASE,
		__ATOMIC_RELAXED));
}

uint32_t
rc_slots_returned(struct rc_slots *s)
{
	return __atomic_exchange_n(&s->returned, RC_NO_SLOT, __ATOMIC_ACQUIRE);
}

/* Take back this worker's slots whose QPs were destroyed on other workers. */
static void
slots_take_back(const struct rc_dev *dev, struct rc_slots *s)
{
	uint32_t slot, next;

	for (slot = rc_slots_returned(s); slot != RC_NO_SLOT; slot = next) {
		next = dev->slot_links[slot];
		slot_rest(dev, s, slot);
	}
}

/*
 * Choose the QPN for the slot's next QP. A slot's generation starts at random and then counts up,
 * so a QPN repeats only after all generations were used. QP0, QP1, the fixed numbers and the
 * multicast QPN are skipped.
 */
static uint32_t
next_qpn(struct rc_dev *dev, uint32_t slot)
{
	uint32_t generations = 1u << (QPN_BITS - dev->slot_bits), last = dev->qpns[slot], gen, qpn;

	gen = last != 0 ? last >> dev->slot_bits : rng_u32(dev->rng);
	do {
		gen = (gen + 1) & (generations - 1);
		qpn = gen << dev->slot_bits | slot;
	} while (qpn < RC_QPN_MIN || qpn == QPN_MULTICAST);
	__atomic_store_n(&dev->qpns[slot], qpn, __ATOMIC_RELAXED); /* rc_dev_qp_next() */
	return qpn;
}

int
rc_slot_take(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;
	struct rc_dev *dev = w->dev;
	struct rc_slots *s = w->slots;
	uint32_t slot, i;

	slots_take_back(dev, s);
	if (s->free_count != 0) {
		i = rng_u32(dev->rng) % s->free_count;
		slot = s->free[i];
		s->free[i] = s->free[--s->free_count];
	} else if (s->resting_count != 0) {
		slot = take_rested(s);
	} else {
		return -ENOSPC;
	}
	__atomic_fetch_add(&s->used, 1, __ATOMIC_RELAXED);
	qp->qpn = next_qpn(dev, slot);
	dev->qps[slot] = qp;
	__atomic_store_n(&dev->owners[slot], w->id, __ATOMIC_RELEASE);
	return 0;
}

void
rc_slot_release(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;
	struct rc_dev *dev = w->dev;
	uint32_t slot = rc_slot(dev, qp->qpn);
	struct rc_worker *home = dev->worker[rc_slot_home(dev, slot)];

	__atomic_store_n(&dev->owners[slot], RC_NO_OWNER, __ATOMIC_RELAXED);
	dev->qps[slot] = NULL;
	if (home == NULL)
		return; /* the device is being destroyed */
	if (home == w)
		slot_rest(dev, w->slots, slot);
	else
		rc_slot_send_home(dev, home->slots, slot);
	/* after the slot is home: pairs with rc_worker_full() */
	__atomic_fetch_sub(&home->slots->used, 1, __ATOMIC_RELEASE);
}
