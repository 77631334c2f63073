/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of private.h claim about a connection, asserted. */

#include <inttypes.h>

#include "base/check.h"
#include "cm/private.h"

#ifdef RTE_ENABLE_ASSERT

static void
print_message_step(FILE *f, const struct trace_step *s)
{
	char what[CM_STEP_TEXT_MAX];

	fprintf(f, "%-8s  %s  %s", cm_step_name(s->event), cm_step_what(s, what),
		cm_state_name(s->outcome));
}

static void
say_conn(FILE *f, const struct cm_conn *c)
{
	fprintf(f, "connection 0x%08" PRIx32 " in %s:\n", c->id, cm_state_name(c->state));
	trace_print(f, c->trace, c->cm->config.hz, print_message_step);
}

/* Of connection c. */
#define CHECK(what) CHECK_OF(what, say_conn, c)

static void
check_conn_keys(const struct cm_conn *c)
{
	unsigned int key;

	for (key = 0; key < CM_KEYS; key++)
		if (c->keyed & 1u << key)
			CHECK(cm_find(c->cm, key, key == CM_KEY_QPN ? 0 : c->remote_ca_guid,
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

	CHECK(cm->used <= cm->slots && cm->everyone.count <= cm->used);
	if (c->id == 0) { /* in the pool */
		CHECK(c->state == CM_STATE_IDLE && c->peer == NULL && c->keyed == 0);
		CHECK(c->work == 0 && !c->half_open && !c->probing);
		CHECK(!timer_armed(&c->timer));
		return;
	}
	CHECK(cm_conn_of(cm, c->id) == c);
	CHECK(c->peer != NULL && c->peer->connections > 0);
	/* the pool of half-open connections has only those that are not established yet */
	CHECK(!c->half_open || (!over && c->state != CM_STATE_ESTABLISHED && !c->active));
	CHECK(c->bytes == 0 || c->half_open);
	/* the end is told once, before TIMEWAIT begins; then nothing but release is left to do */
	CHECK(!over || (c->told && !c->probing && !c->lap_waiting));
	CHECK(!over || (c->work & ~CM_WORK_RELEASE) == 0);
	CHECK(!over || timer_armed(&c->timer) || (c->work & CM_WORK_RELEASE) != 0);
	/* only established connections are probed, and so many at a time (probe.c) */
	CHECK(c->probing == timer_armed(&c->probe_timer));
	CHECK(!c->probing || (c->state == CM_STATE_ESTABLISHED && c->peer->probes > 0));
	CHECK(!c->lap_waiting || c->state == CM_STATE_ESTABLISHED);
	check_conn_keys(c);
}

#endif
