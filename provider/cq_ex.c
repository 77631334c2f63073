/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Extended completion queues: ibv_start_poll() takes the lock and the oldest completion,
 * ibv_next_poll() the next one, ibv_end_poll() gives the places back to the worker.
 */

#include <arpa/inet.h>
#include <errno.h>

#include "provider.h"

static inline struct polca_cq *
cq_of(struct ibv_cq_ex *ibv)
{
	return (struct polca_cq *)(void *)ibv;
}

/* What polca's end left outstanding, flushed. @return errno value */
static int
cq_ex_take_flushed(struct polca_cq *cq)
{
	struct ibv_wc wc;

	if (retire_flushed(cq, 1, &wc) == 0)
		return EIO; /* or a program that waits for something else would poll for ever */
	cq->current = (struct ring_completion){
		.wr_id = wc.wr_id,
		.qp_num = wc.qp_num,
		.status = (uint8_t)wc.status,
		.opcode = (uint8_t)wc.opcode,
	};
	return 0;
}

/* The caller holds the lock. @return errno value; ENOENT: none */
static int
cq_ex_take(struct polca_cq *cq)
{
	/* before the look at the ring, which a polca that is dead fills no more */
	bool dead = polca_is_dead(context_of(cq->ibv.context));
	int rc = 0;

	if (ring_ready(&cq->ring) > 0) {
		cq->current = *(const struct ring_completion *)ring_oldest(&cq->ring);
		retire(cq, &cq->current);
		__atomic_store_n(&cq->ring.index, cq->ring.index + 1, __ATOMIC_RELAXED);
	} else {
		rc = dead ? cq_ex_take_flushed(cq) : ENOENT;
	}
	if (rc == 0) {
		cq->ibv_ex.wr_id = cq->current.wr_id;
		cq->ibv_ex.status = (enum ibv_wc_status)cq->current.status;
	}
	return rc;
}

static int
cq_ex_start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	struct polca_cq *cq = cq_of(ibv);
	int rc;

	if (attr->comp_mask != 0)
		return EINVAL;
	if (__atomic_load_n(cq->ring.others, __ATOMIC_RELAXED) ==
			__atomic_load_n(&cq->ring.index, __ATOMIC_RELAXED) &&
		!polca_is_dead(context_of(ibv->context)))
		return ENOENT;
	pthread_spin_lock(&cq->lock);
	rc = cq_ex_take(cq);
	if (rc != 0) /* the program does not call ibv_end_poll() */
		pthread_spin_unlock(&cq->lock);
	return rc;
}

static int
cq_ex_next_poll(struct ibv_cq_ex *ibv)
{
	return cq_ex_take(cq_of(ibv));
}

static void
cq_ex_end_poll(struct ibv_cq_ex *ibv)
{
	struct polca_cq *cq = cq_of(ibv);

	ring_publish(&cq->ring);
	pthread_spin_unlock(&cq->lock);
}

/* --- the completion that was taken last --- */

static enum ibv_wc_opcode
cq_ex_read_opcode(struct ibv_cq_ex *ibv)
{
	return (enum ibv_wc_opcode)cq_of(ibv)->current.opcode;
}

static uint32_t
cq_ex_read_byte_len(struct ibv_cq_ex *ibv)
{
	return cq_of(ibv)->current.byte_len;
}

/* Also the invalidated R_Key, which is in host order. */
static __be32
cq_ex_read_imm_data(struct ibv_cq_ex *ibv)
{
	const struct ring_completion *c = &cq_of(ibv)->current;

	return c->flags & IBV_WC_WITH_INV ? c->imm : htonl(c->imm);
}

static uint32_t
cq_ex_read_qp_num(struct ibv_cq_ex *ibv)
{
	return cq_of(ibv)->current.qp_num;
}

static uint32_t
cq_ex_read_src_qp(struct ibv_cq_ex *ibv)
{
	return cq_of(ibv)->current.src_qp;
}

static unsigned int
cq_ex_read_wc_flags(struct ibv_cq_ex *ibv)
{
	return cq_of(ibv)->current.flags;
}

/* RoCE has no LIDs and no SL, and polca no errors of a vendor. */
static uint32_t
cq_ex_read_none_32(struct ibv_cq_ex *ibv)
{
	(void)ibv;
	return 0;
}

static uint8_t
cq_ex_read_none_8(struct ibv_cq_ex *ibv)
{
	(void)ibv;
	return 0;
}

struct ibv_cq_ex *
polca_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct ibv_cq_ex *ibv;

	/* a CQ of a single thread has a lock, too, which it finds free */
	if ((attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS) != 0 ||
		(attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ||
		(flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->cqe > INT32_MAX) {
		errno = EINVAL;
		return NULL;
	}
	ibv = (struct ibv_cq_ex *)(void *)polca_create_cq(context, (int)attr->cqe, attr->channel,
		(int)attr->comp_vector);
	if (ibv == NULL)
		return NULL;
	ibv->start_poll = cq_ex_start_poll;
	ibv->next_poll = cq_ex_next_poll;
	ibv->end_poll = cq_ex_end_poll;
	ibv->read_opcode = cq_ex_read_opcode;
	ibv->read_vendor_err = cq_ex_read_none_32;
	ibv->read_byte_len = cq_ex_read_byte_len;
	ibv->read_imm_data = cq_ex_read_imm_data;
	ibv->read_qp_num = cq_ex_read_qp_num;
	ibv->read_src_qp = cq_ex_read_src_qp;
	ibv->read_wc_flags = cq_ex_read_wc_flags;
	ibv->read_slid = cq_ex_read_none_32;
	ibv->read_sl = cq_ex_read_none_8;
	ibv->read_dlid_path_bits = cq_ex_read_none_8;
	return ibv;
}
