/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_STORE_FORWARD_PRIVATE_H
#define ENGINE_STORE_FORWARD_PRIVATE_H

/* Private to store_forward.c and store_forward_serve.c; the store's thread. */

#include <rte_common.h>

#include "engine/store_fleet.h"
#include "engine/store_forward.h"
#include "sa/forward.h"
#include "sa/sa.h"
#include "sa/staged.h"
#include "store/fleet.h"

_Static_assert(FORWARD_ID_LEN < FLEET_ID_MAX, "room for an ID");

/* A change that waits for its answer. */
struct forwarded {
	TAILQ_ENTRY(forwarded) next;
	char id[FLEET_ID_MAX];
	struct sa_write *write;
	uint64_t ask_at; /* TSC */
	uint64_t end;
	uint64_t withdraw_at; /* while etcd is full: not to be withdrawn before */
	bool executed; /* its time is over, and it could not be taken back */
	unsigned int asked; /* times that its request may have been put into etcd */
	struct staged_head staged; /* of a large Config; else without parts */
	uint32_t parts_put; /* before its request is put */
	uint64_t lease; /* of its parts; 0: it has none, or they are to be staged again */
	bool stages; /* fleet_stage_end() is to be called */
	size_t len;
	uint8_t request[];
};

struct store_forward {
	struct store_fleet side;
	void (*hand_back)(void *arg, struct sa_write *write);
	void *arg;
	TAILQ_HEAD(, forwarded) waiting;
	unsigned int num_waiting;
	/* the leader's work for others */
	uint64_t serve_at;
	uint64_t full_wait_ms; /* after the last transaction without room; 0: etcd had room */
	unsigned int serve_max; /* requests in the next transaction */
	struct sa_write serving[FLEET_REQUEST_BATCH];
	/* the transaction in progress */
	struct sa_write *write[FLEET_REQUEST_BATCH];
	struct fleet_message message[FLEET_REQUEST_BATCH];
	unsigned int num;
	struct staged_head staged; /* of its request that names parts, which is alone in it */
	uint8_t answer[FLEET_REQUEST_BATCH][FORWARD_ANSWER_MAX];
	uint8_t request[FORWARD_REQUEST_MAX];
	uint8_t part[STAGED_PART_MAX];
};

static inline uint64_t
forward_after_ms(const struct store_forward *sf, uint64_t ms)
{
	return sf->side.cycles() + sf->side.hz / 1000 * ms;
}

/* etcd limits the operations of a transaction; each request takes up to three. */
static inline unsigned int
forward_batch_max(const struct store_forward *sf)
{
	unsigned int most = (unsigned int)store_max_ops(sf->side.store) / 3;

	return RTE_MIN(RTE_MAX(most, 1u), (unsigned int)FLEET_REQUEST_BATCH);
}

/* True if trying again does not help. */
static inline bool
forward_is_final(int rc)
{
	return rc == -E2BIG || rc == -ENOSPC || rc == -ENOMEM;
}

/* --- store_forward_serve.c --- */

/** Take a change into the next transaction; at most forward_batch_max(). */
void forward_transaction_add(struct store_forward *sf, struct sa_write *write, const char *id,
	uint64_t created);
/** Execute what was taken. @return 0, or -errno: none of it was executed */
int forward_transaction_execute(struct store_forward *sf, uint64_t lease_now);
/** The leader: execute requests of other appliances' clients. @return true if there was work */
bool forward_serve_others(struct store_forward *sf, uint64_t lease_now);

#endif
