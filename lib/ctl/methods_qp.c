/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "ctl/methods.h"

struct qp_create_args {
	uint32_t present;
	int worker;
	struct qp_init_attr init;
	bool ack_coalescing;
	bool migreq;
};
#define QP_RECV_CQ 0x1
#define QP_MIGREQ  0x2

#define QP offsetof(struct qp_create_args, init)

static const struct table_row qp_create_params[] = {
	QP_INIT_ROW(QP, pd, TABLE_UINT, "protection domain", .flags = TABLE_REQUIRED),
	QP_INIT_ROW(QP, send_cq, TABLE_UINT, "completion queue of the send queue",
		.flags = TABLE_REQUIRED),
	QP_INIT_ROW(QP, recv_cq, TABLE_UINT, "completion queue of the receive queue",
		.bit = QP_RECV_CQ, .def_text = "the same as send_cq"),
	QP_INIT_ROW(QP, qp_type, TABLE_ENUM, "reliable connected", .def = QPT_RC,
		.words = words_qp_type),
	QP_QUEUE_ROWS(QP),
	ROW(struct qp_create_args, ack_coalescing, TABLE_BOOL,
		"one ACK may answer several request packets; false: each gets its own", .def = 1),
	QP_INIT_ROW(QP, flow_control, TABLE_BOOL,
		"tell the peer how many receive requests are posted (end-to-end credits)",
		.def = 1),
	ROW(struct qp_create_args, migreq, TABLE_BOOL,
		"send with the BTH's MigReq bit set, until a path migration is asked for",
		.bit = QP_MIGREQ, .def_text = "true on native InfiniBand, false on RoCE"),
	ROW(struct qp_create_args, worker, TABLE_UINT, "worker that owns it",
		.max = RC_WORKERS_MAX - 1, .def = UINT64_MAX,
		.def_text = "the SRQ's, or the least loaded"),
	ROW_END,
};

struct qp_create_reply {
	uint32_t qp_num;
	uint32_t sq_psn;
	unsigned int worker;
};

static const struct table_row qp_create_results[] = {
	ROW(struct qp_create_reply, qp_num, TABLE_UINT, "its number"),
	ROW(struct qp_create_reply, sq_psn, TABLE_UINT,
		"the start PSN that qp_connect will use: the peer's rq_psn"),
	ROW(struct qp_create_reply, worker, TABLE_UINT, "the worker that owns it"),
	ROW_END,
};

static int
qp_create(struct rpc_call *call)
{
	const struct qp_create_args *a = call->args;
	struct qp_create_reply *reply = call->reply;
	struct qp_init_attr init = a->init;
	struct rc_qp_info info;
	int rc;

	init.ack_per_packet = !a->ack_coalescing;
	if (a->present & QP_MIGREQ)
		init.migreq = a->migreq ? MIGREQ_1 : MIGREQ_0;
	if ((a->present & QP_RECV_CQ) == 0)
		init.recv_cq = init.send_cq;
	rc = engine_qp_create(call->e, a->worker, &init, &reply->qp_num, &call->err);
	if (rc != 0)
		return rc;
	reply->sq_psn = start_psn_choose(call, reply->qp_num);
	if (engine_qp_query(call->e, reply->qp_num, &info, NULL) == 0)
		reply->worker = info.worker;
	return 0;
}

#define QP_NUM_ROW NUMBER_ROW("qp_num", "the queue pair", .flags = TABLE_REQUIRED, .max = 0xffffff)

static const struct table_row qp_params[] = { QP_NUM_ROW, ROW_END };

static int
qp_destroy(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	int rc = engine_qp_destroy(call->e, a->number, &call->err);

	if (rc == 0)
		start_psn_forget(call, a->number);
	return rc;
}

struct qp_rehome_args {
	uint32_t qp_num;
	uint32_t worker;
};

static const struct table_row qp_rehome_params[] = {
	ROW(struct qp_rehome_args, qp_num, TABLE_UINT, "the queue pair", .flags = TABLE_REQUIRED,
		.max = 0xffffff),
	ROW(struct qp_rehome_args, worker, TABLE_UINT, "worker that is to own it",
		.flags = TABLE_REQUIRED, .max = RC_WORKERS_MAX - 1),
	ROW_END,
};

static int
qp_rehome(struct rpc_call *call)
{
	const struct qp_rehome_args *a = call->args;

	return engine_qp_rehome(call->e, a->qp_num, a->worker, &call->err);
}

#define INFO(name, field, t, ...) ROW_NAMED(struct rc_qp_info, name, field, t, __VA_ARGS__)
#define NUM(name, field, ...)     INFO(name, field, TABLE_UINT, __VA_ARGS__)
#define RATE_LIMIT_ROW                                                                                    \
	NUM("rate_limit", rate_limit,                                                                     \
		"kbit/s it is slowed down to, while it reacts to congestion (configuration: congestion)", \
		.min = 1)

static const struct table_row qp_rows[] = {
	NUM("qp_num", qpn),
	INFO("qp_type", init.qp_type, TABLE_ENUM, .words = words_qp_type),
	INFO("qp_state", attr.qp_state, TABLE_ENUM, .words = words_qp_state),
	NUM("worker", worker),
	NUM("port", attr.port),
	INFO("dgid", attr.av.dgid, TABLE_GID),
	NUM("dest_qp_num", attr.dest_qp_num),
	NUM("sq_posted", sq_posted, "work requests not completed"),
	NUM("rq_posted", rq_posted, "receive requests not completed"),
	NUM("sent_pkts", counters.sent_pkts),
	NUM("rcvd_pkts", counters.rcvd_pkts),
	NUM("retransmitted_pkts", counters.retransmitted_pkts),
	RATE_LIMIT_ROW,
	ROW_END,
};

static const struct table_row qp_list_results[] = {
	PAGE_ROWS("qps", struct rc_qp_info, qp_rows),
	ROW_END,
};

static int
next_qp(struct rpc_call *call, uint64_t *cursor, void *row)
{
	return engine_qp_next(call->e, cursor, row);
}

/* --- qp_show: attributes as qp_create, qp_modify and ibv_query_qp name them --- */

#define CREATED(field, t, ...) INFO(#field, init.field, t, __VA_ARGS__)
#define CAP(field)             NUM(#field, init.cap.field)
#define ATTR(field, t, ...)    INFO(#field, attr.field, t, __VA_ARGS__)

static const struct table_row shown_info[] = {
	NUM("qp_num", qpn),
	ATTR(qp_state, TABLE_ENUM, .words = words_qp_state),
	NUM("worker", worker),
	CREATED(qp_type, TABLE_ENUM, .words = words_qp_type),
	CREATED(pd, TABLE_UINT),
	CREATED(send_cq, TABLE_UINT),
	CREATED(recv_cq, TABLE_UINT),
	CREATED(srq, TABLE_UINT, .flags = TABLE_NULL, .max = RC_NO_SRQ - 1),
	CAP(max_send_wr),
	CAP(max_recv_wr),
	CAP(max_send_sge),
	CAP(max_recv_sge),
	CAP(max_inline_data),
	CREATED(sq_sig_all, TABLE_BOOL),
	CREATED(flow_control, TABLE_BOOL),
	ATTR(port, TABLE_UINT),
	ATTR(pkey_index, TABLE_UINT),
	ATTR(qp_access_flags, TABLE_FLAGS, .words = words_access),
	ATTR(dest_qp_num, TABLE_UINT),
	ATTR(path_mtu, TABLE_UINT),
	/* who knows them can forge packets that the QP takes: docs/security.md */
	ATTR(sq_psn, TABLE_UINT, "the next to be sent", .flags = TABLE_SECRET),
	ATTR(rq_psn, TABLE_UINT, "the next expected", .flags = TABLE_SECRET),
	ATTR(timeout, TABLE_UINT),
	ATTR(retry_cnt, TABLE_UINT),
	ATTR(rnr_retry, TABLE_UINT),
	ATTR(min_rnr_timer, TABLE_UINT),
	ATTR(max_rd_atomic, TABLE_UINT),
	ATTR(max_dest_rd_atomic, TABLE_UINT),
	INFO("ah_attr", attr.av, TABLE_OBJECT, .fields = rows_ah),
	ATTR(path_mig_state, TABLE_ENUM, .words = words_mig_state),
	NUM("udp_sport", udp_sport, "UDP source port of its packets"),
	NUM("sq_posted", sq_posted, "work requests not completed"),
	NUM("rq_posted", rq_posted, "receive requests not completed"),
	NUM("sq_unacked", sq_unacked, "request packets in flight"),
	NUM("retry_left", retry_left, "retries left before the error"),
	NUM("rnr_left", rnr_left, "retries after RNR NAKs left before the error"),
	RATE_LIMIT_ROW,
	INFO("recorded", traced, TABLE_BOOL, "its last steps are recorded (trace_start)"),
	ROW_END,
};

struct qp_show_reply {
	uint32_t present;
	bool ack_coalescing;
	bool migreq;
	struct rc_qp_info info;
	json_t *counters;
};
#define QP_MIGREQ_SET 0x1
#define QP_ALTERNATE  0x2

static const struct table_row alternate_ah[] = {
	ROW_INCLUDE(struct qp_attr, alt.av, rows_ah),
	ROW_NAMED(struct qp_attr, "port", alt.port, TABLE_UINT),
	ROW_END,
};

#define SHOWN(name, field, t, ...) ROW_NAMED(struct qp_show_reply, name, field, t, __VA_ARGS__)

static const struct table_row qp_show_results[] = {
	ROW_INCLUDE(struct qp_show_reply, info, shown_info),
	SHOWN("ack_coalescing", ack_coalescing, TABLE_BOOL),
	SHOWN("migreq", migreq, TABLE_BOOL, "null: as the kind of link has it", .flags = TABLE_NULL,
		.bit = QP_MIGREQ_SET),
	SHOWN("alt_ah_attr", info.attr, TABLE_OBJECT,
		"this and what follows: when an alternate path is loaded", .fields = alternate_ah,
		.bit = QP_ALTERNATE),
	SHOWN("alt_pkey_index", info.attr.alt.pkey_index, TABLE_UINT, .bit = QP_ALTERNATE),
	SHOWN("alt_timeout", info.attr.alt.timeout, TABLE_UINT, .bit = QP_ALTERNATE),
	SHOWN("counters", counters, TABLE_COUNTS, "as stats_get"),
	ROW_END,
};

static int
qp_show(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	struct qp_show_reply *reply = call->reply;
	struct rc_qp_info *info = &reply->info;
	int rc = engine_qp_query(call->e, a->number, info, &call->err);

	if (rc != 0)
		return rc;
	reply->ack_coalescing = !info->init.ack_per_packet;
	reply->migreq = info->init.migreq == MIGREQ_1;
	reply->present = (info->init.migreq != MIGREQ_OF_LINK ? QP_MIGREQ_SET : 0) |
		(info->alt_loaded ? QP_ALTERNATE : 0);
	if (info->attr.qp_state < QPS_RTS) /* until then the send queue has no PSN of its own */
		info->attr.sq_psn = start_psn_of(call, info->qpn);
	reply->counters = json_rc_counters(call, &info->counters, false);
	return 0;
}

const struct rpc_method methods_qp[] = {
	{ "qp_create", qp_create, qp_create_params, sizeof(struct qp_create_args),
		"Make a queue pair, in state RESET. Its start PSN is drawn at random, so that both ends can tell each other before they connect.",
		"polca-ctl qp create --pd 1 --send-cq 1",
		RESULTS(qp_create_results, struct qp_create_reply) },
	{ "qp_list", page_list, params_page, sizeof(struct page_args), "List queue pairs.",
		"polca-ctl qp list", PAGES(qp_list_results, next_qp) },
	{ "qp_show", qp_show, qp_params, sizeof(struct number_args),
		"Everything about one queue pair.", "polca-ctl qp show 17",
		RESULTS(qp_show_results, struct qp_show_reply), .reads = true },
	{ "qp_destroy", qp_destroy, qp_params, sizeof(struct number_args),
		"Destroy a queue pair, in any state. Work requests not completed vanish without completion.",
		"polca-ctl qp destroy 17" },
	{ "qp_rehome", qp_rehome, qp_rehome_params, sizeof(struct qp_rehome_args),
		"Move a queue pair to another worker, in any state and in mid-traffic; its number stays. Refused for one with a shared receive queue, and for those of connections and services, whose worker is fixed. With workers.rehome queue pairs move by themselves to where their packets arrive.",
		"polca-ctl qp rehome 17 --worker 1" },
	{ NULL },
};
