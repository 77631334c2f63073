/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Create and destroy a worker's MAD state, and report on it.
 */

#include <rte_common.h>

#include "mad/core.h"

#define WINDOW_MAX  0x8000
#define RETRIES_MAX 7 /* A5: at most seven, of either kind */

const struct mad_limits mad_limits_default = {
	.max_sessions = 16384,
	.max_sessions_per_peer = 1024,
	.max_bytes = 32 << 20,
	.max_bytes_per_peer = 8 << 20,
	.v1_window = SA1_WINDOW_DEFAULT,
	.rmpp_window = 16,
	.rmpp_send_max = 64,
	.retries = RETRIES_MAX,
	.resp_time = 14, /* 67 ms */
	.rmpp_total_ms = 40000,
	.keepalive_total_ms = 60000,
};

static uint32_t
clamp(uint32_t v, uint32_t low, uint32_t high)
{
	return RTE_MIN(RTE_MAX(v, low), high);
}

static void
make_sane(struct mad_limits *l)
{
	l->max_sessions = clamp(l->max_sessions, 1, UINT32_MAX / 2);
	l->max_sessions_per_peer = clamp(l->max_sessions_per_peer, 1, l->max_sessions);
	l->v1_window = clamp(l->v1_window, SA1_WINDOW_DEFAULT, WINDOW_MAX);
	l->rmpp_window = clamp(l->rmpp_window, 1, WINDOW_MAX);
	l->rmpp_send_max = clamp(l->rmpp_send_max, 1, UINT16_MAX);
	l->retries = clamp(l->retries, 0, RETRIES_MAX);
	l->resp_time = clamp(l->resp_time, 0, 31);
}

static bool
create_replies(struct mad_worker *w)
{
	const size_t size = MAD_REPLIES * sizeof(struct mad_waiting_reply);

	w->replies.wait = mem_zalloc(w->config.alloc, size, 64);
	w->smp_replies.wait = mem_zalloc(w->config.alloc, size, 64);
	return w->replies.wait != NULL && w->smp_replies.wait != NULL;
}

static void
destroy_replies(struct mad_worker *w)
{
	mem_free(w->config.alloc, w->replies.wait);
	mem_free(w->config.alloc, w->smp_replies.wait);
}

struct mad_worker *
mad_worker_create(const struct mad_worker_config *config)
{
	struct mad_worker *w = mem_zalloc(config->alloc, sizeof(*w), 64);

	RTE_ASSERT(config->id < config->workers && config->hz > 0);
	RTE_ASSERT(config->wheel != NULL && config->tx != NULL && config->port != NULL);
	if (w == NULL)
		return NULL;
	w->config = *config;
	w->limits = config->limits;
	make_sane(&w->limits);
	mad_time_init(w);
	w->tx = config->tx;
	w->smp_tx = config->smp_tx != NULL ? config->smp_tx : config->tx;
	TAILQ_INIT(&w->run_queue);
	if (!create_replies(w) || mad_table_create(w) != 0 || mad_pool_create(w) != 0) {
		mad_pool_destroy(w);
		mad_trace_free(w);
		mad_table_destroy(w);
		destroy_replies(w);
		mem_free(config->alloc, w);
		return NULL;
	}
	return w;
}

void
mad_worker_destroy(struct mad_worker *w)
{
	static const struct mad_result cancelled = { .end = MAD_END_CANCELLED };
	struct mad_session *s;
	uint32_t i;

	if (w == NULL)
		return;
	for (i = 0; (s = mad_table_next(w, i)) != NULL; i = s->index + 1)
		mad_session_end(s, &cancelled);
	mad_pool_destroy(w);
	mad_trace_free(w);
	mad_table_destroy(w);
	destroy_replies(w);
	mem_free(w->config.alloc, w);
}

/* --- status --- */

const struct mad_counters *
mad_worker_counters(const struct mad_worker *w)
{
	return &w->counters;
}

struct mad_limited *
mad_worker_limited(struct mad_worker *w)
{
	return &w->limited;
}

uint8_t
mad_resp_time(const struct mad_worker *w)
{
	return w->limits.resp_time;
}

const struct port_attr *
mad_port(const struct mad_worker *w, uint16_t port)
{
	return w->config.port(w->config.port_arg, port);
}

const struct port_violations *
mad_worker_violations(const struct mad_worker *w, uint16_t port)
{
	return port < MAD_PORTS_MAX ? &w->violations[port] : NULL;
}

uint64_t
mad_worker_aborts(const struct mad_worker *w, unsigned int received, uint8_t rmpp_status)
{
	RTE_ASSERT(received <= 1);
	return __atomic_load_n(&w->aborts[received != 0][rmpp_status], __ATOMIC_RELAXED);
}

void
mad_worker_memory(const struct mad_worker *w, uint64_t *used, uint64_t *total)
{
	mad_pool_memory(w, used, total);
	*used += (uint64_t)mad_table_used(w) * sizeof(struct mad_session);
	*total += mad_table_memory(w) + sizeof(*w) + 2 * MAD_REPLIES * sizeof(*w->replies.wait);
}

static const char *const state_names[MAD_STATE_COUNT] = {
#define X(name) #name,
	MAD_STATES(X)
#undef X
};

const char *
mad_state_name(unsigned int state)
{
	return state < MAD_STATE_COUNT ? state_names[state] : "?";
}

/* The session's position as sender or receiver, whichever it is. */
static void
progress_info(const struct mad_session *s, struct mad_session_info *info)
{
	if (s->tx.total != 0 && s->rx.expected <= 1) {
		info->segment = s->tx.acked;
		info->segments = s->tx.total;
		info->window = s->tx.window;
		return;
	}
	info->segment = s->rx.expected != 0 ? s->rx.expected - 1 : 0;
	info->segments = s->rx.last;
	info->window = s->rx.window;
}

static void
session_info(const struct mad_session *s, uint64_t now, struct mad_session_info *info)
{
	*info = (struct mad_session_info){
		.handle = mad_session_handle(s),
		.gid = s->path.av.dgid,
		.lid = s->path.av.dlid,
		.qpn = s->qpn,
		.neighbour = s->path.neighbour,
		.tid = s->key.tid,
		.mgmt_class = s->key.mgmt_class,
		.class_version = s->key.class_version,
		.method = s->method,
		.attribute = get_be16(s->mad + MAD_OFF_ATTRIBUTE),
		.requester = s->key.requester,
		.state = mad_state_name(s->state),
		.retries_left = s->retries_left,
		.age = now - s->opened,
	};
	progress_info(s, info);
}

bool
mad_session_get(const struct mad_worker *w, mad_handle h, uint64_t now,
	struct mad_session_info *info)
{
	const struct mad_session *s = mad_session_of(w, h);

	if (s != NULL)
		session_info(s, now, info);
	return s != NULL;
}

bool
mad_session_next(const struct mad_worker *w, uint32_t *cursor, uint64_t now,
	struct mad_session_info *info)
{
	const struct mad_session *s = mad_table_next(w, *cursor);

	if (s == NULL)
		return false;
	*cursor = s->index + 1;
	session_info(s, now, info);
	return true;
}
