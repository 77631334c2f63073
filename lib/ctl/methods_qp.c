/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

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
	QP_INIT_ROW(QP, pd, TABLE_UINT, .flags = TABLE_REQUIRED, .help = "protection domain"),
	QP_INIT_ROW(QP, send_cq, TABLE_UINT, .flags = TABLE_REQUIRED,
		.help = "completion queue of the send queue"),
	QP_INIT_ROW(QP, recv_cq, TABLE_UINT, .bit = QP_RECV_CQ, .def_text = "the same as send_cq",
		.help = "completion queue of the receive queue"),
	QP_INIT_ROW(QP, qp_type, TABLE_ENUM, .flags = TABLE_DEFAULT, .def = QPT_RC, .words = words_qp_type,
		.help = "reliable connected"),
	QP_QUEUE_ROWS(QP),
	ROW(struct qp_create_args, ack_coalescing, TABLE_BOOL, .flags = TABLE_DEFAULT, .def = 1,
		.help = "one ACK may answer several request packets; false: each gets its own"),
	QP_INIT_ROW(QP, flow_control, TABLE_BOOL, .flags = TABLE_DEFAULT, .def = 1,
		.help = "tell the peer how many receive requests are posted (end-to-end credits)"),
	ROW(struct qp_create_args, migreq, TABLE_BOOL, .bit = QP_MIGREQ,
		.def_text = "true on native InfiniBand, false on RoCE",
		.help = "send with the BTH's MigReq bit set, until a path migration is asked for"),
	ROW(struct qp_create_args, worker, TABLE_UINT, .flags = TABLE_DEFAULT,
		.max = RC_WORKERS_MAX - 1, .def = UINT64_MAX,
		.def_text = "the SRQ's, or the least loaded", .help = "worker that owns it"),
	ROW_END,
};

static int
qp_create(struct rpc_call *call)
{
	const struct qp_create_args *a = call->args;
	struct qp_init_attr init = a->init;
	struct rc_qp_info info;
	uint32_t qpn;
	int rc;

	init.ack_per_packet = !a->ack_coalescing;
	if (a->present & QP_MIGREQ)
		init.migreq = a->migreq ? MIGREQ_1 : MIGREQ_0;
	if ((a->present & QP_RECV_CQ) == 0)
		init.recv_cq = init.send_cq;
	rc = engine_qp_create(call->e, a->worker, &init, &qpn, &call->err);
	if (rc != 0)
		return rc;
	set_int(call->result, "qp_num", qpn);
	set_int(call->result, "sq_psn", start_psn_choose(call, qpn));
	if (engine_qp_query(call->e, qpn, &info, NULL) == 0)
		set_int(call->result, "worker", info.worker);
	return 0;
}

#define QP_NUM_ROW                                                                                 \
	{ "qp_num", TABLE_UINT, TABLE_REQUIRED, offsetof(struct number_args, number),              \
		sizeof(uint32_t), .max = 0xffffff, .help = "the queue pair" }

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
	ROW(struct qp_rehome_args, qp_num, TABLE_UINT, .flags = TABLE_REQUIRED, .max = 0xffffff,
		.help = "the queue pair"),
	ROW(struct qp_rehome_args, worker, TABLE_UINT, .flags = TABLE_REQUIRED,
		.max = RC_WORKERS_MAX - 1, .help = "worker that is to own it"),
	ROW_END,
};

static int
qp_rehome(struct rpc_call *call)
{
	const struct qp_rehome_args *a = call->args;

	return engine_qp_rehome(call->e, a->qp_num, a->worker, &call->err);
}

static void
set_rate_limit(json_t *row, const struct rc_qp_info *info)
{
	if (info->rate_limit != 0)
		set_int(row, "rate_limit", info->rate_limit);
}

/* What a row of qp_list says. */
static json_t *
qp_row(const struct rc_qp_info *info)
{
	json_t *row = json_object();

	set_int(row, "qp_num", info->qpn);
	set(row, "qp_type", json_word(words_qp_type, info->init.qp_type));
	set(row, "qp_state", json_word(words_qp_state, info->attr.qp_state));
	set_int(row, "worker", info->worker);
	set_int(row, "port", info->attr.port);
	set(row, "dgid", json_gid(&info->attr.av.dgid));
	set_int(row, "dest_qp_num", info->attr.dest_qp_num);
	set_int(row, "sq_posted", info->sq_posted);
	set_int(row, "rq_posted", info->rq_posted);
	set_int(row, "sent_pkts", info->counters.sent_pkts);
	set_int(row, "rcvd_pkts", info->counters.rcvd_pkts);
	set_int(row, "retransmitted_pkts", info->counters.retransmitted_pkts);
	set_rate_limit(row, info);
	return row;
}

static int
qp_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint64_t cursor = a->cursor;
	json_t *rows = json_array();
	struct rc_qp_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_qp_next(call->e, &cursor, &info)) {
			set_page(call, "qps", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, qp_row(&info));
	}
	set_page(call, "qps", rows, true, cursor);
	return 0;
}

static void
set_init(json_t *row, const struct qp_init_attr *init)
{
	set(row, "qp_type", json_word(words_qp_type, init->qp_type));
	set_int(row, "pd", init->pd);
	set_int(row, "send_cq", init->send_cq);
	set_int(row, "recv_cq", init->recv_cq);
	set(row, "srq", init->srq == RC_NO_SRQ ? json_null() : json_integer(init->srq));
	set_int(row, "max_send_wr", init->cap.max_send_wr);
	set_int(row, "max_recv_wr", init->cap.max_recv_wr);
	set_int(row, "max_send_sge", init->cap.max_send_sge);
	set_int(row, "max_recv_sge", init->cap.max_recv_sge);
	set_int(row, "max_inline_data", init->cap.max_inline_data);
	set(row, "sq_sig_all", json_boolean(init->sq_sig_all));
	set(row, "ack_coalescing", json_boolean(!init->ack_per_packet));
	set(row, "flow_control", json_boolean(init->flow_control));
	set(row, "migreq", init->migreq == MIGREQ_OF_LINK ? json_null()
		: json_boolean(init->migreq == MIGREQ_1));
}

static void
set_attr(json_t *row, const struct qp_attr *attr)
{
	set_int(row, "port", attr->port);
	set_int(row, "pkey_index", attr->pkey_index);
	set(row, "qp_access_flags", json_flags(words_access, attr->qp_access_flags));
	set_int(row, "dest_qp_num", attr->dest_qp_num);
	set_int(row, "path_mtu", attr->path_mtu);
	set_int(row, "sq_psn", attr->sq_psn);
	set_int(row, "rq_psn", attr->rq_psn);
	set_int(row, "timeout", attr->timeout);
	set_int(row, "retry_cnt", attr->retry_cnt);
	set_int(row, "rnr_retry", attr->rnr_retry);
	set_int(row, "min_rnr_timer", attr->min_rnr_timer);
	set_int(row, "max_rd_atomic", attr->max_rd_atomic);
	set_int(row, "max_dest_rd_atomic", attr->max_dest_rd_atomic);
	set(row, "ah_attr", json_ah(&attr->av));
	set(row, "path_mig_state", json_word(words_mig_state, attr->path_mig_state));
}

static void
set_alternate(json_t *row, const struct qp_attr *attr)
{
	json_t *ah = json_ah(&attr->alt_av);

	set_int(ah, "port", attr->alt_port);
	set(row, "alt_ah_attr", ah);
	set_int(row, "alt_pkey_index", attr->alt_pkey_index);
	set_int(row, "alt_timeout", attr->alt_timeout);
}

static int
qp_show(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	json_t *row = call->result;
	struct rc_qp_info info;
	int rc = engine_qp_query(call->e, a->number, &info, &call->err);

	if (rc != 0)
		return rc;
	set_int(row, "qp_num", info.qpn);
	set(row, "qp_state", json_word(words_qp_state, info.attr.qp_state));
	set_int(row, "worker", info.worker);
	set_init(row, &info.init);
	set_attr(row, &info.attr);
	if (info.alt_loaded)
		set_alternate(row, &info.attr);
	if (info.attr.qp_state < QPS_RTS) /* until then the send queue has no PSN of its own */
		set_int(row, "sq_psn", start_psn_of(call, info.qpn));
	set_int(row, "udp_sport", info.udp_sport);
	set_int(row, "sq_posted", info.sq_posted);
	set_int(row, "rq_posted", info.rq_posted);
	set_int(row, "sq_unacked", info.sq_unacked);
	set_int(row, "retry_left", info.retry_left);
	set_int(row, "rnr_left", info.rnr_left);
	set_rate_limit(row, &info);
	set(row, "counters", json_rc_counters(&info.counters, false));
	return 0;
}

const struct rpc_method methods_qp[] = {
	{ "qp_create", qp_create, qp_create_params, sizeof(struct qp_create_args),
		"Make a queue pair, in state RESET. Its start PSN is drawn at random, so that both ends can tell each other before they connect.",
		"qp_num: its number\n"
		"sq_psn: the start PSN that qp_connect will use: the peer's rq_psn\n"
		"worker: the worker that owns it",
		"polca-ctl qp create --pd 1 --send-cq 1" },
	{ "qp_list", qp_list, params_page, sizeof(struct page_args), "List queue pairs.",
		"qps: list of qp_num, qp_type, qp_state, worker, port, dgid, dest_qp_num, sq_posted, rq_posted (work requests not completed), sent_pkts, rcvd_pkts, retransmitted_pkts, rate_limit (as qp_show)" PAGE_RESULT,
		"polca-ctl qp list" },
	{ "qp_show", qp_show, qp_params, sizeof(struct number_args),
		"Everything about one queue pair.",
		"(attributes): as qp_create, qp_modify and ibv_query_qp name them; sq_psn is the next to be sent, rq_psn the next expected\n"
		"alt_ah_attr, alt_pkey_index, alt_timeout: when an alternate path is loaded\n"
		"udp_sport: UDP source port of its packets\n"
		"sq_posted, rq_posted: work requests not completed\n"
		"sq_unacked: request packets in flight\n"
		"retry_left, rnr_left: retries left before the error\n"
		"rate_limit: kbit/s it is slowed down to, while it reacts to congestion (configuration: congestion)\n"
		"counters: as stats_get",
		"polca-ctl qp show 17" },
	{ "qp_destroy", qp_destroy, qp_params, sizeof(struct number_args),
		"Destroy a queue pair, in any state. Work requests not completed vanish without completion.",
		"", "polca-ctl qp destroy 17" },
	{ "qp_rehome", qp_rehome, qp_rehome_params, sizeof(struct qp_rehome_args),
		"Move a queue pair to another worker, in any state and in mid-traffic; its number stays. Refused for one with a shared receive queue, and for those of connections and services, whose worker is fixed. With workers.rehome queue pairs move by themselves to where their packets arrive.",
		"", "polca-ctl qp rehome 17 --worker 1" },
	{ NULL },
};
