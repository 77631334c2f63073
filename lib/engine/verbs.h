/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_H
#define ENGINE_VERBS_H

/**
 * @file
 * The verbs of the control plane, for the control socket and benchmarks. All run on the
 * control thread and reach the owning worker by a command. Objects are named by number. All return
 * 0, or a negative errno with an explanation in @p err; -EPERM for an object that a service owns.
 */

#include "engine/engine.h"
#include "engine/verbs_sa.h"

/**
 * The destination of packets as a user gives it (ibv_ah_attr); the engine resolves it to a struct
 * av.
 */
struct engine_ah {
	uint16_t port;
	uint16_t sgid_index;
	union gid dgid;
	uint8_t traffic_class; /**< DSCP and ECN */
	uint32_t flow_label;
	uint8_t hop_limit; /**< 0: 64 */
	uint8_t sl; /**< VLAN PCP */
	uint16_t dlid; /**< native IB */
	uint8_t src_path_bits; /**< native IB: selects the source LID among the port's 2^LMC LIDs */
	bool has_dmac; /**< use .dmac instead of neighbour resolution */
	uint8_t dmac[6];
	const union gid *user; /**< a program's, whose new next hops are bounded; NULL: nobody's */
};

int engine_pd_alloc(struct engine *e, uint32_t *pd, struct error *err);
int engine_pd_free(struct engine *e, uint32_t pd, struct error *err);
/** Name of the service that owns the domain, and its regions and windows; "": a client's own. */
const char *engine_pd_service(const struct engine *e, uint32_t pd);

/**
 * MEM_EXTERNAL with .path set: register the memzone of that name. Fresh memory without .numa_node
 * is on the NUMA node of the local port's card.
 */
int engine_mr_register(struct engine *e, const struct mem_mr_attr *attr, unsigned int local_port,
	struct mem_mr_info *info, struct error *err);
/** Returns when no worker can access the region any more. */
int engine_mr_deregister(struct engine *e, uint32_t key, struct error *err);
/** Copy bytes of a region; for the control socket. */
int engine_mr_read(struct engine *e, uint32_t key, uint64_t offset, void *buf, uint64_t len,
	struct error *err);
int engine_mr_write(struct engine *e, uint32_t key, uint64_t offset, const void *buf, uint64_t len,
	struct error *err);
bool engine_mr_next(struct engine *e, uint64_t *cursor, struct mem_mr_info *info);

int engine_mw_alloc(struct engine *e, uint32_t pd, enum mem_mw_type type, uint32_t *key,
	struct error *err);
int engine_mw_free(struct engine *e, uint32_t key, struct error *err);
bool engine_mw_next(struct engine *e, uint64_t *cursor, struct mem_mw_info *info);

int engine_cq_create(struct engine *e, uint32_t depth, uint32_t *cqn, struct error *err);
/** Name of the service that owns the CQ; "": a client's own. */
const char *engine_cq_service(const struct engine *e, uint32_t cqn);
int engine_cq_destroy(struct engine *e, uint32_t cqn, struct error *err);
/** @return completions stored or a negative errno */
int engine_cq_poll(struct engine *e, uint32_t cqn, struct wc *wc, unsigned int n,
	struct error *err);
int engine_cq_arm(struct engine *e, uint32_t cqn, bool solicited_only, struct error *err);
/** The next completion ends the wait of engine_await(). Poll after this call. */
int engine_cq_await(struct engine *e, uint32_t cqn, struct error *err);
bool engine_cq_next(struct engine *e, uint64_t *cursor, struct rc_cq_info *info);

/** @param worker  -1: the least loaded */
int engine_srq_create(struct engine *e, int worker, uint32_t pd, uint32_t max_wr, uint32_t max_sge,
	uint32_t *srqn, struct error *err);
int engine_srq_modify(struct engine *e, uint32_t srqn, uint32_t limit, struct error *err);
int engine_srq_destroy(struct engine *e, uint32_t srqn, struct error *err);
/**
 * @return work requests posted: all, or those before the first error, which err describes; a
 * negative errno if none was posted
 */
int engine_srq_post(struct engine *e, uint32_t srqn, const struct recv_wr *wr, unsigned int n,
	struct error *err);
/** Walk over all workers: *cursor 0 starts. */
bool engine_srq_next(struct engine *e, uint64_t *cursor, struct rc_srq_info *info);

/** @param worker  -1: the SRQ's worker, or the least loaded */
int engine_qp_create(struct engine *e, int worker, const struct qp_init_attr *attr, uint32_t *qpn,
	struct error *err);
/**
 * @param ah  required when mask has QP_ATTR_AV; attr->av is filled from it
 * @param alt_ah  required when mask has QP_ATTR_ALT_PATH; attr->alt.av and alt.port are filled from
 *  it; the caller sets attr->alt.pkey_index and alt.timeout
 */
int engine_qp_modify_paths(struct engine *e, uint32_t qpn, struct qp_attr *attr,
	const struct engine_ah *ah, const struct engine_ah *alt_ah, uint32_t mask,
	struct error *err);

/** The same without an alternate path. */
static inline int
engine_qp_modify(struct engine *e, uint32_t qpn, struct qp_attr *attr, const struct engine_ah *ah,
	uint32_t mask, struct error *err)
{
	return engine_qp_modify_paths(e, qpn, attr, ah, NULL, mask, err);
}
int engine_qp_query(struct engine *e, uint32_t qpn, struct rc_qp_info *info, struct error *err);
/**
 * Move a QP to another worker; returns when it has moved.
 *
 * @retval -EBUSY   it belongs to a connection, or is moving already
 * @retval -EINVAL  it has an SRQ, or there is no such worker
 * @retval -EAGAIN  try again: completions from before earlier moves wait to be polled, or too many
 *   QPs move
 */
int engine_qp_rehome(struct engine *e, uint32_t qpn, unsigned int worker, struct error *err);
/** Move a queue pair to ERR, whoever owns it. @retval -ENOENT it is gone */
int engine_qp_fail(struct engine *e, uint32_t qpn);
int engine_qp_destroy(struct engine *e, uint32_t qpn, struct error *err);
/**
 * Walk all QPs in slot order: *cursor 0 starts. A QP that exists during the whole walk is found
 * exactly once, even if it moves to another worker. @retval false  the end
 */
bool engine_qp_next(struct engine *e, uint64_t *cursor, struct rc_qp_info *info);

/** @return work requests posted, as engine_srq_post() */
int engine_post_send(struct engine *e, uint32_t qpn, const struct send_wr *wr, unsigned int n,
	struct error *err);
int engine_post_recv(struct engine *e, uint32_t qpn, const struct recv_wr *wr, unsigned int n,
	struct error *err);

/**
 * Take asynchronous events, oldest first.
 *
 * Each one is logged when it is taken.
 *
 * @param lost  total of events that found a queue full
 * @return number of events stored
 */
unsigned int engine_events(struct engine *e, struct event *ev, unsigned int n, uint64_t *lost);

#define EVENT_TEXT_MAX 384
/** Say in one line what happened. @return the level at which it is logged: RTE_LOG_NOTICE */
uint32_t engine_event_text(const struct engine *e, const struct event *ev, char *buf, size_t size);

#endif
