/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of private.h claim about a connection, asserted. */

#include <rte_debug.h>

#include "cm/private.h"

#ifdef RTE_ENABLE_ASSERT

static void
check_conn_keys(const struct cm_conn *c)
{
	unsigned int key;

	for (key = 0; key < CM_KEYS; key++)
		if (c->keyed & 1u << key)
			RTE_ASSERT(cm_find(c->cm, key, key == CM_KEY_QPN ? 0 : c->remote_ca_guid,
					   key == CM_KEY_QPN                  ? c->qpn
						   : key == CM_KEY_REMOTE_QPN ? c->remote_qpn
									      : c->remote_id,
					   NULL) != NULL);
}

void
cm_conn_check(const struct cm_conn *c)
{
	const struct cm *cm = c->cm;
	bool over = c->state == CM_STATE_TIMEWAIT;

	RTE_ASSERT(cm->used <= cm->slots && cm->everyone.count <= cm->used);
	if (c->id == 0) { /* in the pool */
		RTE_ASSERT(c->state == CM_STATE_IDLE && c->peer == NULL && c->keyed == 0);
		RTE_ASSERT(c->work == 0 && !c->half_open && !c->probing);
		RTE_ASSERT(!timer_armed(&c->timer));
		return;
	}
	RTE_ASSERT(cm_conn_of(cm, c->id) == c);
	RTE_ASSERT(c->peer != NULL && c->peer->connections > 0);
	/* the pool of half-open connections has only those that are not established yet */
	RTE_ASSERT(!c->half_open || (!over && c->state != CM_STATE_ESTABLISHED && !c->active));
	RTE_ASSERT(c->bytes == 0 || c->half_open);
	/* the end is told once, before TIMEWAIT begins; then nothing but release is left to do */
	RTE_ASSERT(!over || (c->told && !c->probing && !c->lap_waiting));
	RTE_ASSERT(!over || (c->work & ~CM_WORK_RELEASE) == 0);
	RTE_ASSERT(!over || timer_armed(&c->timer) || (c->work & CM_WORK_RELEASE) != 0);
	RTE_ASSERT(!c->lap_waiting || c->state == CM_STATE_ESTABLISHED);
	check_conn_keys(c);
}

#endif
