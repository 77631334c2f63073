/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections of librdmacm's programs, as their worker sees them: it notes what comes, and executes
 * what the program wants.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rte_cycles.h>

#include "engine/rdmacm_private.h"

struct rdmacm_conn *
rdmacm_conn_new(struct rdmacm *r)
{
	struct rdmacm_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return NULL;
	conn->rdmacm = r;
	r->num_conns++;
	return conn;
}

void
rdmacm_conn_free(struct rdmacm_conn *conn)
{
	if (conn == NULL)
		return;
	conn->rdmacm->num_conns--;
	free(conn);
}

void
rdmacm_listener_refill(struct rdmacm_listener *l)
{
	uint32_t i, full = 0;

	for (i = 0; i < l->backlog; i++)
		full += __atomic_load_n(&l->spare[i], __ATOMIC_RELAXED) != NULL;
	for (i = 0; i < l->backlog && full + l->waiting < l->backlog; i++) {
		if (__atomic_load_n(&l->spare[i], __ATOMIC_RELAXED) != NULL)
			continue;
		__atomic_store_n(&l->spare[i], rdmacm_conn_new(l->id->program->engine->rdmacm),
			__ATOMIC_RELEASE);
		full++;
	}
}

/* --- notes of a worker --- */

/*
 * The note publishes what was written before. Only the first one since the last look is listed:
 * from then on the connection is the control thread's, which may free it.
 */
void
rdmacm_note(struct rdmacm_conn *conn, uint32_t note)
{
	struct rdmacm *r = conn->rdmacm;
	struct rdmacm_conn *head;

	if (__atomic_fetch_or(&conn->notes, note, __ATOMIC_ACQ_REL) != 0)
		return;
	head = __atomic_load_n(&r->noted, __ATOMIC_RELAXED);
	do
		conn->next = head;
	while (!__atomic_compare_exchange_n(&r->noted, &head, conn, true, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED));
	if (head == NULL)
		eventfd_write(r->wakeup_fd, 1);
}

static void
message_take(struct rdmacm_message *m, const struct cm_info *info, const uint8_t *private_data,
	uint8_t len)
{
	m->info = *info;
	m->private_len = private_data != NULL ? RTE_MIN(len, CM_PRIVATE_MAX) : 0;
	if (m->private_len > 0)
		memcpy(m->private_data, private_data, m->private_len);
}

static void
rdmacm_responded(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct rdmacm_conn *conn = user;

	message_take(&conn->answer, info, private_data, len);
	rdmacm_note(conn, RDMACM_RESPONDED);
}

/* The active side knows already: it has sent the RTU. */
void
rdmacm_established(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct rdmacm_conn *conn = user;

	if (!info->active)
		message_take(&conn->answer, info, private_data, len);
	rdmacm_note(conn, RDMACM_ESTABLISHED);
}

void
rdmacm_ended(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct rdmacm_conn *conn = user;

	message_take(&conn->end, info, private_data, len);
	rdmacm_note(conn, RDMACM_ENDED);
}

void
rdmacm_released(void *user)
{
	rdmacm_note(user, RDMACM_RELEASED);
}

const struct cm_user rdmacm_active_user = {
	.name = "librdmacm",
	.responded = rdmacm_responded,
	.established = rdmacm_established,
	.ended = rdmacm_ended,
	.released = rdmacm_released,
};

/* --- calls of the worker --- */

int
rdmacm_conn_call(struct rdmacm_conn *conn, worker_fn fn, struct rdmacm_conn_call *call)
{
	call->conn = conn;
	return engine_call(conn->rdmacm->engine, conn->worker, fn, call);
}

int
rdmacm_connect_here(struct worker *w, void *arg)
{
	const struct rdmacm_conn_call *a = arg;

	return cm_connect(w->cm, a->connect, rte_get_tsc_cycles(), &a->conn->cm_id, a->err);
}

int
rdmacm_accept_here(struct worker *w, void *arg)
{
	const struct rdmacm_conn_call *a = arg;

	return cm_accept(w->cm, a->conn->cm_id, a->param, rte_get_tsc_cycles());
}

int
rdmacm_ready_here(struct worker *w, void *arg)
{
	const struct rdmacm_conn_call *a = arg;

	return cm_ready(w->cm, a->conn->cm_id, rte_get_tsc_cycles());
}

int
rdmacm_heard_here(struct worker *w, void *arg)
{
	const struct rdmacm_conn_call *a = arg;

	return cm_heard(w->cm, a->conn->cm_id, rte_get_tsc_cycles());
}

int
rdmacm_refuse_here(struct worker *w, void *arg)
{
	const struct rdmacm_conn_call *a = arg;

	return cm_refuse(w->cm, a->conn->cm_id, a->reason, a->private_data, a->private_len,
		rte_get_tsc_cycles());
}

int
rdmacm_disconnect_here(struct worker *w, void *arg)
{
	const struct rdmacm_conn_call *a = arg;

	return cm_disconnect(w->cm, a->conn->cm_id, a->private_data, a->private_len,
		rte_get_tsc_cycles());
}

void
rdmacm_refuse(struct rdmacm_conn *conn, uint16_t reason)
{
	struct rdmacm_conn_call call = { .reason = reason };

	rdmacm_conn_call(conn, rdmacm_refuse_here, &call);
}

void
rdmacm_abandon(struct rdmacm_conn *conn)
{
	struct rdmacm_conn_call call = { .private_data = NULL };

	conn->id->conn = NULL;
	conn->id = NULL;
	if (!conn->ended)
		rdmacm_conn_call(conn, rdmacm_disconnect_here, &call);
}
