/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <rte_ethdev.h>

#include "engine/clients_info.h"
#include "engine/verbs_pd.h"
#include "fake_engine.h"

#define QPN_BASE 0x100

static void
fake_wakeup(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)arg;
}

struct engine *
fake_engine_create(void)
{
	struct mem_config config = {
		.max_pd = 16,
		.max_mr = 64,
		.max_mw = 16,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct engine *e = calloc(1, sizeof(*e));
	unsigned int p;

	e->base = event_base_new();
	e->wakeup = evtimer_new(e->base, fake_wakeup, NULL);
	e->mem = mem_create(&config);
	for (p = 0; p < 2; p++) {
		strcpy(e->port[p].name, p == 0 ? "port0" : "port1");
		e->port[p].index = (uint16_t)p;
		e->port[p].mtu = 1500;
		e->port[p].active_mtu = 1024;
		e->port[p].vlan = PATH_NO_VLAN;
		e->port[p].up = true;
		e->port[p].num_pkeys = 1;
		e->port[p].pkey[0] = 0xffff;
		e->port[p].num_gids = 3;
		gid_parse("fe80::1", &e->port[p].gid[0].gid);
		gid_parse(p == 0 ? "10.0.0.1" : "10.0.1.1", &e->port[p].gid[1].gid);
		gid_parse("10.0.2.1", &e->port[p].gid[2].gid);
		e->port[p].gid[0].type = e->port[p].gid[1].type = e->port[p].gid[2].type =
			GID_ROCEV2;
		e->port[p].gid[0].prefix_len = 64;
		e->port[p].gid[1].prefix_len = e->port[p].gid[2].prefix_len = 24;
	}
	return e;
}

void
fake_engine_destroy(struct engine *e)
{
	event_free(e->wakeup);
	event_base_free(e->base);
	mem_destroy(e->mem);
	free(e);
}

struct event_base *
engine_event_base(const struct engine *e)
{
	return e->base;
}

bool
engine_await(struct engine *e)
{
	bool was = e->awaited;

	e->awaited = true;
	return !was;
}

void
fake_wake(struct engine *e)
{
	if (e->awaited)
		event_active(e->wakeup, EV_TIMEOUT, 0);
	e->awaited = false;
}

void
fake_complete(struct engine *e, uint32_t cqn, const struct wc *wc)
{
	e->cq[cqn].wc[e->cq[cqn].tail++ % 1024] = *wc;
	fake_wake(e);
}

void
fake_event(struct engine *e, enum event_type type, uint32_t element)
{
	e->event[e->event_tail++ % FAKE_EVENTS] = (struct event){ type, element };
	fake_wake(e);
}

/* --- memory: the real thing --- */

int
engine_pd_alloc(struct engine *e, uint32_t *pd, struct error *err)
{
	return mem_pd_alloc(e->mem, pd, err);
}

int
engine_pd_free(struct engine *e, uint32_t pd, struct error *err)
{
	return mem_pd_free(e->mem, pd, err);
}

bool
engine_pd_next(const struct engine *e, uint64_t *cursor, struct mem_pd_info *info)
{
	return mem_pd_next(e->mem, cursor, info);
}

int
engine_mr_register(struct engine *e, const struct mem_mr_attr *attr, unsigned int local_port,
	struct mem_mr_info *info, struct error *err)
{
	e->mr_local_port = local_port;
	return mem_mr_register(e->mem, attr, info, err);
}

int
engine_mr_deregister(struct engine *e, uint32_t key, struct error *err)
{
	return mem_mr_deregister(e->mem, key, err);
}

static int
host_address(struct engine *e, uint32_t key, uint64_t offset, uint64_t len, uint8_t **base,
	struct error *err)
{
	struct mem_mr_info info;

	if (mem_mr_query(e->mem, key, &info) != 0)
		return error_set(err, ENOENT, "key: no memory region 0x%08x", key);
	if (offset > info.length || len > info.length - offset)
		return error_set(err, EINVAL, "offset: beyond the region");
	*base = info.base + offset;
	return 0;
}

int
engine_mr_read(struct engine *e, uint32_t key, uint64_t offset, void *buf, uint64_t len,
	struct error *err)
{
	uint8_t *base = NULL;
	int rc = host_address(e, key, offset, len, &base, err);

	if (rc == 0)
		memcpy(buf, base, len);
	return rc;
}

int
engine_mr_write(struct engine *e, uint32_t key, uint64_t offset, const void *buf, uint64_t len,
	struct error *err)
{
	uint8_t *base = NULL;
	int rc = host_address(e, key, offset, len, &base, err);

	if (rc == 0)
		memcpy(base, buf, len);
	return rc;
}

/* 3 is a service's */
const char *
engine_pd_service(const struct engine *e, uint32_t pd)
{
	(void)e;
	return pd == 3 ? "mine" : "";
}

bool
engine_mr_next(struct engine *e, uint64_t *cursor, struct mem_mr_info *info)
{
	return mem_mr_next(e->mem, cursor, info);
}

int
engine_mw_alloc(struct engine *e, uint32_t pd, enum mem_mw_type type, uint32_t *key,
	struct error *err)
{
	return mem_mw_alloc(e->mem, pd, type, key, err);
}

int
engine_mw_free(struct engine *e, uint32_t key, struct error *err)
{
	return mem_mw_free(e->mem, key, err);
}

bool
engine_mw_next(struct engine *e, uint64_t *cursor, struct mem_mw_info *info)
{
	return mem_mw_next(e->mem, cursor, info);
}

/* --- completion queues: number = slot --- */

static struct fake_cq *
find_cq(struct engine *e, uint32_t cqn)
{
	return cqn < FAKE_CQS && e->cq[cqn].used ? &e->cq[cqn] : NULL;
}

int
engine_cq_create(struct engine *e, uint32_t depth, uint32_t *cqn, struct error *err)
{
	for (*cqn = 1; *cqn < FAKE_CQS; ++*cqn)
		if (!e->cq[*cqn].used) {
			e->cq[*cqn].used = true;
			e->cq[*cqn].depth = depth;
			return 0;
		}
	return error_set(err, ENOSPC, "no more completion queues");
}

int
engine_cq_destroy(struct engine *e, uint32_t cqn, struct error *err)
{
	if (find_cq(e, cqn) == NULL)
		return error_set(err, ENOENT, "cq: there is no completion queue %u", cqn);
	memset(&e->cq[cqn], 0, sizeof(e->cq[cqn]));
	return 0;
}

int
engine_cq_poll(struct engine *e, uint32_t cqn, struct wc *wc, unsigned int n, struct error *err)
{
	struct fake_cq *cq = find_cq(e, cqn);
	unsigned int i;

	if (cq == NULL)
		return error_set(err, ENOENT, "cq: there is no completion queue %u", cqn);
	for (i = 0; i < n && cq->head != cq->tail; i++)
		wc[i] = cq->wc[cq->head++ % 1024];
	return (int)i;
}

int
engine_cq_await(struct engine *e, uint32_t cqn, struct error *err)
{
	return find_cq(e, cqn) != NULL
		? 0
		: error_set(err, ENOENT, "cq: there is no completion queue %u", cqn);
}

int
engine_cq_arm(struct engine *e, uint32_t cqn, bool solicited_only, struct error *err)
{
	if (find_cq(e, cqn) == NULL)
		return error_set(err, ENOENT, "cq: there is no completion queue %u", cqn);
	e->cq[cqn].armed = true;
	e->cq[cqn].solicited_only = solicited_only;
	return 0;
}

/* the last one is a service's */
const char *
engine_cq_service(const struct engine *e, uint32_t cqn)
{
	(void)e;
	return cqn == FAKE_CQS - 1 ? "mine" : "";
}

bool
engine_cq_next(struct engine *e, uint64_t *cursor, struct rc_cq_info *info)
{
	for (; *cursor < FAKE_CQS; ++*cursor)
		if (e->cq[*cursor].used) {
			*info = (struct rc_cq_info){
				.cqn = *cursor,
				.depth = e->cq[*cursor].depth,
			};
			++*cursor;
			return true;
		}
	return false;
}

/* --- shared receive queues: one, number 5 --- */

int
engine_srq_create(struct engine *e, int worker, uint32_t pd, uint32_t max_wr, uint32_t max_sge,
	uint32_t *srqn, struct error *err)
{
	(void)e, (void)worker, (void)pd, (void)max_wr, (void)max_sge, (void)err;
	*srqn = 5;
	return 0;
}

int
engine_srq_modify(struct engine *e, uint32_t srqn, uint32_t limit, struct error *err)
{
	(void)srqn, (void)err;
	e->srq_limit = limit;
	return 0;
}

int
engine_srq_destroy(struct engine *e, uint32_t srqn, struct error *err)
{
	(void)e, (void)srqn;
	return error_set(err, EBUSY, "srq: queue pairs use it");
}

int
engine_srq_post(struct engine *e, uint32_t srqn, const struct recv_wr *wr, unsigned int n,
	struct error *err)
{
	(void)e, (void)srqn, (void)wr, (void)err;
	return (int)n;
}

bool
engine_srq_next(struct engine *e, uint64_t *cursor, struct rc_srq_info *info)
{
	if ((*cursor)++ != 0)
		return false;
	*info = (struct rc_srq_info){
		.srqn = 5,
		.max_wr = 16,
		.max_sge = 1,
		.limit = e->srq_limit,
	};
	return true;
}

/* --- programs on the verbs socket: two, of which one has two devices --- */

static struct engine_client_info fake_clients[] = {
	{ .id = 1,
		.pid = 700,
		.command = "pingpong",
		.contexts = 1,
		.use = { .qps = 1, .cqs = 2, .regions = 3, .bytes = 4096, .requests = 48 },
		.posted = 5,
		.completed = 4 },
	{ .id = 4,
		.pid = 701,
		.uid = 4000000000u,
		.port = 1,
		.worker = 1,
		.contexts = 2,
		.use.srqs = 1,
		.refused = 7 },
	{ .id = 5, .pid = 701, .uid = 4000000000u, .contexts = 2 },
};

bool
engine_client_next(const struct engine *e, uint64_t *cursor, struct engine_client_info *info)
{
	unsigned int i;

	(void)e;
	for (i = 0; i < 3 && fake_clients[i].id <= *cursor; i++)
		;
	if (i == 3)
		return false;
	*info = fake_clients[i];
	*cursor = info->id;
	return true;
}

int
engine_client_rehome(struct engine *e, uint64_t id, unsigned int worker, struct error *err)
{
	unsigned int i;

	(void)e;
	for (i = 0; i < 3 && fake_clients[i].id != id; i++)
		;
	if (i == 3)
		return error_set(err, ENOENT, "client: there is none with the number %u",
			(unsigned int)id);
	fake_clients[i].worker = worker;
	return 0;
}

/* The two users of these programs. */
bool
engine_client_user_next(const struct engine *e, uint64_t *cursor, struct engine_client_user *user)
{
	unsigned int i = *cursor == 0 ? 0 : 1;

	(void)e;
	if (*cursor > fake_clients[1].uid)
		return false;
	*user = (struct engine_client_user){
		.uid = fake_clients[i].uid,
		.clients = i + 1,
		.use = fake_clients[i].use,
		.limits = {
			.qps = 10,
			.cqs = 20,
			.srqs = 21,
			.pds = 22,
			.regions = 30,
			.windows = 31,
			.bytes = 8192,
			.requests = 100,
		},
	};
	*cursor = UINT64_C(1) + user->uid;
	return true;
}

void
engine_clients_counters(const struct engine *e, struct clients_counters *counters)
{
	(void)e;
	*counters = (struct clients_counters){ 5, 50, 40, 7 };
}

/* --- queue pairs: number = 0x100 + slot --- */

static struct fake_qp *
find_qp(struct engine *e, uint32_t qpn, struct error *err)
{
	if (qpn >= QPN_BASE && qpn < QPN_BASE + FAKE_QPS && e->qp[qpn - QPN_BASE].used)
		return &e->qp[qpn - QPN_BASE];
	error_set(err, ENOENT, "qp: no queue pair 0x%06x", qpn);
	return NULL;
}

int
engine_qp_create(struct engine *e, int worker, const struct qp_init_attr *attr, uint32_t *qpn,
	struct error *err)
{
	unsigned int i;

	(void)worker;
	for (i = 0; i < FAKE_QPS; i++)
		if (!e->qp[i].used) {
			memset(&e->qp[i], 0, sizeof(e->qp[i]));
			e->qp[i].used = true;
			e->qp[i].init = *attr;
			*qpn = QPN_BASE + i;
			return 0;
		}
	return error_set(err, ENOSPC, "no more queue pairs");
}

int
engine_qp_modify_paths(struct engine *e, uint32_t qpn, struct qp_attr *attr,
	const struct engine_ah *ah, const struct engine_ah *alt_ah, uint32_t mask,
	struct error *err)
{
	struct fake_qp *qp = find_qp(e, qpn, err);

	if (qp == NULL)
		return -ENOENT;
	if (e->modify_fails && (mask & QP_ATTR_SQ_PSN) != 0)
		return error_set(err, EINVAL, "max_rd_atomic: got 16, allowed: 0 to 4");
	qp->masks[qp->modified++ % 8] = mask;
	qp->attr = *attr;
	if (ah != NULL) {
		qp->ah = *ah;
		qp->attr.av.dgid = ah->dgid;
	}
	if (alt_ah != NULL) {
		qp->alt_ah = *alt_ah;
		qp->attr.alt.av.dgid = alt_ah->dgid;
		qp->attr.alt.port = alt_ah->port;
	}
	return 0;
}

static void
fill_info(const struct fake_qp *qp, uint32_t qpn, struct rc_qp_info *info)
{
	memset(info, 0, sizeof(*info));
	info->qpn = qpn;
	info->worker = qp->worker;
	info->init = qp->init;
	info->attr = qp->attr;
	info->alt_loaded = !gid_is_zero(&qp->attr.alt.av.dgid);
	info->counters.sent_pkts = 7;
	info->failure = qp->failure;
}

int
engine_qp_query(struct engine *e, uint32_t qpn, struct rc_qp_info *info, struct error *err)
{
	struct fake_qp *qp = find_qp(e, qpn, err);

	if (qp == NULL)
		return -ENOENT;
	fill_info(qp, qpn, info);
	return 0;
}

int
engine_qp_destroy(struct engine *e, uint32_t qpn, struct error *err)
{
	struct fake_qp *qp = find_qp(e, qpn, err);

	if (qp == NULL)
		return -ENOENT;
	qp->used = false;
	return 0;
}

int
engine_qp_rehome(struct engine *e, uint32_t qpn, unsigned int worker, struct error *err)
{
	struct fake_qp *qp = find_qp(e, qpn, err);

	if (qp == NULL)
		return -ENOENT;
	if (worker > 1)
		return error_set(err, EINVAL, "worker: got %u, there are 0..1", worker);
	qp->worker = worker;
	return 0;
}

bool
engine_qp_next(struct engine *e, uint64_t *cursor, struct rc_qp_info *info)
{
	for (; *cursor < FAKE_QPS; ++*cursor)
		if (e->qp[*cursor].used) {
			fill_info(&e->qp[*cursor], QPN_BASE + (uint32_t)*cursor, info);
			++*cursor;
			return true;
		}
	return false;
}

/*
 * --- posting: as the engine, a full queue stops it, and says why only when nothing was posted ---
 */

int
engine_post_send(struct engine *e, uint32_t qpn, const struct send_wr *wr, unsigned int n,
	struct error *err)
{
	struct fake_qp *qp = find_qp(e, qpn, err);
	struct wc wc = { .qp_num = qpn };
	unsigned int i, at;

	if (qp == NULL)
		return -ENOENT;
	for (i = 0; i < n && qp->num_sent < FAKE_WRS; i++) {
		at = qp->num_sent++;
		qp->sent[at] = wr[i];
		if (wr[i].num_sge > 0)
			qp->sge[at] = wr[i].sg_list[0];
		memcpy(qp->inline_data[at],
			wr[i].inline_data != NULL ? wr[i].inline_data : (const uint8_t *)"",
			wr[i].inline_len);
		wc.wr_id = wr[i].wr_id;
		wc.byte_len = qp->sge[at].length;
		fake_complete(e, qp->init.send_cq, &wc);
	}
	if (i == 0)
		return error_set(err, ENOMEM, "send queue full");
	return (int)i;
}

int
engine_post_recv(struct engine *e, uint32_t qpn, const struct recv_wr *wr, unsigned int n,
	struct error *err)
{
	struct fake_qp *qp = find_qp(e, qpn, err);
	unsigned int i;

	if (qp == NULL)
		return -ENOENT;
	for (i = 0; i < n && qp->num_recv < FAKE_WRS; i++)
		qp->recv[qp->num_recv++] = wr[i];
	if (i == 0)
		return error_set(err, ENOMEM, "receive queue full");
	return (int)i;
}

/* --- the flight recorder: one trace for all --- */

int
engine_trace_switch(struct engine *e, enum engine_traced kind, uint32_t number, bool on,
	struct error *err)
{
	if (kind == ENGINE_TRACED_QP && find_qp(e, number, err) == NULL)
		return -ENOENT;
	e->recorded = on;
	return 0;
}

unsigned int
engine_trace_switch_all(struct engine *e, enum engine_traced kind, bool on)
{
	(void)kind;
	e->recorded = on;
	return 2;
}

int
engine_trace_get(struct engine *e, enum engine_traced kind, uint32_t number,
	struct engine_trace *trace, struct error *err)
{
	(void)kind;
	if (!e->recorded)
		return error_set(err, ENODATA, "0x%x is not recorded: start it with trace_start",
			number);
	*trace = e->trace;
	return 0;
}

int
engine_session_trace(struct engine *e, uint64_t tid, struct engine_trace *trace, struct error *err)
{
	return engine_trace_get(e, ENGINE_TRACED_SESSION, (uint32_t)tid, trace, err);
}

bool
engine_event_trace(const struct engine *e, uint32_t number, struct engine_trace *trace)
{
	*trace = e->trace;
	return number != 0;
}

/* --- the rest --- */

unsigned int
engine_events(struct engine *e, struct event *ev, unsigned int n, uint64_t *lost)
{
	unsigned int i;

	for (i = 0; i < n && e->event_head != e->event_tail; i++)
		ev[i] = e->event[e->event_head++ % FAKE_EVENTS];
	*lost = e->lost;
	return i;
}

uint32_t
engine_event_text(const struct engine *e, const struct event *ev, char *buf, size_t size)
{
	(void)e;
	snprintf(buf, size, "%s of 0x%x", event_type_name(ev->type), ev->element);
	return 0;
}

unsigned int
engine_workers(const struct engine *e)
{
	(void)e;
	return 2;
}

struct link *
engine_link(struct engine *e)
{
	return (struct link *)e;
}

void
engine_worker_info(const struct engine *e, unsigned int worker, struct worker_info *info)
{
	(void)e;
	memset(info, 0, sizeof(*info));
	info->lcore = worker + 1;
	info->busy_share = 0.25;
	info->polls = 1000;
	info->handoff_percent = 12.5;
	info->rehomed_out = 3;
	info->rehomed_in = 4;
}

void
engine_port_counters(const struct engine *e, unsigned int port, int worker,
	struct link_counters *sum)
{
	(void)e;
	memset(sum, 0, sizeof(*sum));
	sum->rx_packets = 10 * (port + 1);
	sum->verdict[VERDICT_REQUEST] = sum->rx_packets - 1;
	sum->verdict[VERDICT_ICRC] = 1;
	sum->drops.rx_missed = 5;
	if (worker >= 0)
		sum->tx_packets = (uint64_t)worker;
}

void
engine_pma_totals(const struct engine *e, unsigned int port, struct pma_totals *t)
{
	(void)e;
	memset(t, 0, sizeof(*t));
	t->value[PMA_LINK_DOWNED] = port + 1;
}

void
engine_rc_counters(const struct engine *e, int port, int worker, struct rc_counters *sum)
{
	(void)e, (void)worker;
	memset(sum, 0, sizeof(*sum));
	sum->rcvd_pkts = port >= 0 ? 14 : 28;
}

uint16_t
link_ethdev(const struct link *l, unsigned int port)
{
	(void)l, (void)port;
	return UINT16_MAX;
}

unsigned int
link_num_ports(const struct link *l)
{
	(void)l;
	return 2;
}

const struct port_attr *
link_port_attr(const struct link *l, unsigned int port)
{
	return &((const struct engine *)l)->port[port];
}

int
link_neighbour(struct link *l, unsigned int port, const union gid *sgid, const union gid *dgid,
	uint32_t *index, struct error *err)
{
	(void)l, (void)port, (void)sgid, (void)dgid, (void)err;
	*index = 0;
	return 0;
}

bool
link_neighbour_next(const struct link *l, uint32_t *cursor, struct link_neighbour_info *info)
{
	if ((*cursor)++ != 0)
		return false;
	memset(info, 0, sizeof(*info));
	gid_parse("10.0.0.2", &info->gid);
	info->resolved = !((const struct engine *)l)->hop_silent;
	return true;
}

void
link_neighbour_counts(const struct link *l, struct link_neighbour_counts *counts)
{
	(void)l;
	*counts = (struct link_neighbour_counts){ .present = 1 };
}

void
link_state(const struct link *l, unsigned int port, struct link_state *state)
{
	(void)l, (void)port;
	memset(state, 0, sizeof(*state));
	state->up = true;
	state->rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV6;
	strcpy(state->driver, "net_ring");
}
