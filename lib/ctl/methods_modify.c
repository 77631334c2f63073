/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ibv_modify_qp, and qp_connect, which makes its three calls in one.
 */

#include <errno.h>

#include "ctl/methods.h"

#define DEFAULT_ACCESS (MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_ATOMIC)

#define NEXT_HOP_WAIT_MS 500
#define WARN_RNR_TIMER   "min_rnr_timer 0 means 655.36 ms, the longest of all; 12 (0.64 ms) is usual"

struct modify_reply {
	uint32_t qp_state;
	uint32_t sq_psn;
	uint16_t path_mtu;
	uint16_t sgid_index;
	struct table_list warnings; /* of const char * */
};

#define CHANGED(field, t, ...) ROW(struct modify_reply, field, t, __VA_ARGS__)

static const struct table_row qp_modify_results[] = {
	CHANGED(qp_state, TABLE_ENUM, "the state it is in now", .words = words_qp_state),
	WARNINGS_ROW(struct modify_reply),
	ROW_END,
};

static const struct table_row qp_connect_results[] = {
	CHANGED(qp_state, TABLE_ENUM, "RTS", .words = words_qp_state),
	CHANGED(sq_psn, TABLE_UINT, "start PSN used"),
	CHANGED(path_mtu, TABLE_UINT, "bytes, as used"),
	CHANGED(sgid_index, TABLE_UINT, "own address used"),
	WARNINGS_ROW(struct modify_reply),
	ROW_END,
};

/* Legal, and hardly ever meant. */
static void
warn_rnr_timer(struct rpc_call *call, uint8_t min_rnr_timer)
{
	struct modify_reply *reply = call->reply;

	if (min_rnr_timer == 0)
		add_warning(call, &reply->warnings, WARN_RNR_TIMER);
}

/*
 * The reply waits until the next hop's MAC is known: a packet sent before is lost, and costs its
 * sender a Local ACK Timeout. The queue pair is as asked for already; a peer that is not there yet
 * earns a warning.
 */
static int
wait_next_hop(struct rpc_call *call, uint32_t qpn)
{
	struct modify_reply *reply = call->reply;
	struct link_neighbour_info hop;
	struct rc_qp_info info;
	char addr[GID_STRLEN];
	uint32_t cursor;

	if (engine_qp_query(call->e, qpn, &info, NULL) != 0)
		return 0;
	cursor = info.attr.neighbour;
	if (cursor == PATH_NO_NEIGHBOUR ||
		!link_neighbour_next(engine_link(call->e), &cursor, &hop) || hop.resolved)
		return 0;
	if (!waited(call, NEXT_HOP_WAIT_MS)) {
		call->progress = 1;
		return RPC_WAIT;
	}
	add_warning(call, &reply->warnings,
		"next hop %s does not answer %s yet: is it up, on this link, and the address right?",
		gid_print(&hop.gid, addr), gid_is_ipv4(&hop.gid) ? "ARP" : "neighbour discovery");
	return 0;
}

/* clang-format off */
#define ATTR_NAMED(S, text, field, t, mask, ...)                                                   \
	{ .name = text, .type = t, .bit = mask, .offset = offsetof(S, attr.field),                 \
		.size = sizeof(((S *)0)->attr.field), __VA_ARGS__ }
/* clang-format on */
#define ATTR(S, field, t, mask, ...) ATTR_NAMED(S, #field, field, t, mask, __VA_ARGS__)

/* What both methods say of the same attribute. */
#define HELP_PATH_MTU     "payload bytes of a packet: 256, 512, 1024, 2048 or 4096"
#define HELP_TIMEOUT      "Local ACK Timeout: 4.096 us * 2^timeout; 0: never"
#define HELP_RETRY        "retries before RETRY_EXC_ERR"
#define HELP_RNR_RETRY    "retries after RNR NAKs before RNR_RETRY_EXC_ERR; 7: without end"
#define HELP_MIN_RNR      "code of the wait that our RNR NAKs ask for; 12: 0.64 ms, 0: 655.36 ms"
#define HELP_RD_ATOMIC    "Reads and Atomics under way as requester"
#define HELP_DEST_RD      "Reads and Atomics under way as responder"
#define HELP_DEST_QP      "the peer's queue pair number"
#define HELP_RQ_PSN       "the peer's start PSN"
#define HELP_SQ_PSN       "our start PSN"
#define HELP_PKEY_INDEX   "index in the port's P_Key table"
#define HELP_PORT         "local port, counted from 0"
#define HELP_ACCESS       "what the peer may do, where the region allows it too"
#define RD_ATOMIC_DEFAULT 16

/* --- qp_modify --- */

struct qp_modify_args {
	uint32_t mask;
	uint32_t qp_num;
	struct ah_args ah_attr;
	struct ah_args alt_ah_attr;
	struct qp_attr attr;
};

static const struct table_row params_ah[] = { AH_ROWS(0),
	AH_ROW(0, port, TABLE_UINT, HELP_PORT, .max = LINK_PORTS_MAX - 1, .bit = AH_PORT,
		.def_text = "the queue pair's"),
	ROW_END };

#define ALT_AH (1u << 31) /* in .mask, beyond the verbs' own bits */

#define M(field, t, mask, ...) ATTR(struct qp_modify_args, field, t, QP_ATTR_##mask, __VA_ARGS__)
#define ALT(field, t, ...)                                                                         \
	ATTR_NAMED(struct qp_modify_args, "alt_" #field, alt.field, t, QP_ATTR_ALT_PATH,           \
		__VA_ARGS__)

static const struct table_row qp_modify_params[] = {
	ROW(struct qp_modify_args, qp_num, TABLE_UINT, "the queue pair", .flags = TABLE_REQUIRED,
		.max = 0xffffff),
	M(qp_state, TABLE_ENUM, STATE, "state to go to", .words = words_qp_state),
	M(cur_qp_state, TABLE_ENUM, CUR_STATE, "state it is believed to be in",
		.words = words_qp_state),
	M(pkey_index, TABLE_UINT, PKEY_INDEX, HELP_PKEY_INDEX),
	M(port, TABLE_UINT, PORT, HELP_PORT, .max = LINK_PORTS_MAX - 1),
	M(qp_access_flags, TABLE_FLAGS, ACCESS_FLAGS, HELP_ACCESS, .words = words_remote_access),
	ROW(struct qp_modify_args, ah_attr, TABLE_OBJECT, "where its packets go", .bit = QP_ATTR_AV,
		.fields = params_ah),
	M(path_mtu, TABLE_UINT, PATH_MTU, HELP_PATH_MTU, .min = 256, .max = 4096),
	M(dest_qp_num, TABLE_UINT, DEST_QPN, HELP_DEST_QP, .max = 0xffffff),
	M(rq_psn, TABLE_UINT, RQ_PSN, HELP_RQ_PSN, .max = 0xffffff),
	M(sq_psn, TABLE_UINT, SQ_PSN, HELP_SQ_PSN, .max = 0xffffff),
	M(timeout, TABLE_UINT, TIMEOUT, HELP_TIMEOUT, .max = 31),
	M(retry_cnt, TABLE_UINT, RETRY_CNT, HELP_RETRY, .max = 7),
	M(rnr_retry, TABLE_UINT, RNR_RETRY, HELP_RNR_RETRY, .max = 7),
	M(min_rnr_timer, TABLE_UINT, MIN_RNR_TIMER, HELP_MIN_RNR, .max = 31),
	M(max_rd_atomic, TABLE_UINT, MAX_QP_RD_ATOMIC, HELP_RD_ATOMIC),
	M(max_dest_rd_atomic, TABLE_UINT, MAX_DEST_RD_ATOMIC, HELP_DEST_RD),
	M(en_sqd_async_notify, TABLE_BOOL, EN_SQD_ASYNC_NOTIFY,
		"to SQD: raise the event SQ_DRAINED"),
	ROW(struct qp_modify_args, alt_ah_attr, TABLE_OBJECT,
		"alternate path: where its packets go after a migration",
		.bit = QP_ATTR_ALT_PATH | ALT_AH, .fields = params_ah),
	ALT(pkey_index, TABLE_UINT, "with alt_ah_attr: index in that port's P_Key table",
		.def_text = "0"),
	ALT(timeout, TABLE_UINT, "with alt_ah_attr: Local ACK Timeout there", .max = 31, .def = 14),
	M(path_mig_state, TABLE_ENUM, PATH_MIG_STATE,
		"REARM: use the alternate path when retries run out or the peer does; MIGRATED: now",
		.words = words_mig_state),
	ROW_END,
};

/*
 * The local port that packets to this address leave by: the one that the address names, else the
 * one that this qp_modify sets, else the QP's.
 */
static int
port_of_ah(struct rpc_call *call, const struct qp_modify_args *a, const struct ah_args *ah,
	uint16_t *port)
{
	struct rc_qp_info info;
	int rc;

	if ((ah->present & AH_PORT) != 0) {
		*port = ah->port;
		return 0;
	}
	if ((a->mask & QP_ATTR_PORT) != 0) {
		*port = a->attr.port;
		return 0;
	}
	rc = engine_qp_query(call->e, a->qp_num, &info, &call->err);
	*port = rc == 0 ? info.attr.port : 0;
	return rc;
}

static int
modify_ah(struct rpc_call *call, const struct qp_modify_args *a, const struct ah_args *args,
	struct engine_ah *ah)
{
	uint16_t port;
	int rc = port_of_ah(call, a, args, &port);

	return rc != 0 ? rc : make_ah(call, args, port, ah);
}

static void
set_state(struct rpc_call *call, uint32_t qpn)
{
	struct modify_reply *reply = call->reply;
	struct rc_qp_info info;

	if (engine_qp_query(call->e, qpn, &info, NULL) == 0)
		reply->qp_state = info.attr.qp_state;
}

static int
qp_modify(struct rpc_call *call)
{
	const struct qp_modify_args *a = call->args;
	struct qp_attr attr = a->attr;
	bool av = a->mask & QP_ATTR_AV, alt = a->mask & QP_ATTR_ALT_PATH;
	uint32_t mask = a->mask & ~ALT_AH;
	struct engine_ah ah, alt_ah;
	int rc = 0;

	if (call->progress != 0)
		return wait_next_hop(call, a->qp_num);
	if (a->mask == 0)
		return error_set(&call->err, EINVAL, "nothing to modify: name an attribute");
	if (alt && (a->mask & ALT_AH) == 0)
		return error_set(&call->err, EINVAL,
			"alt_ah_attr: missing; alt_pkey_index and alt_timeout go with it");
	if (av)
		rc = modify_ah(call, a, &a->ah_attr, &ah);
	if (rc == 0 && alt)
		rc = modify_ah(call, a, &a->alt_ah_attr, &alt_ah);
	if (rc == 0)
		rc = engine_qp_modify_paths(call->e, a->qp_num, &attr, av ? &ah : NULL,
			alt ? &alt_ah : NULL, mask, &call->err);
	if (rc != 0)
		return rc;
	set_state(call, a->qp_num);
	if ((a->mask & QP_ATTR_MIN_RNR_TIMER) != 0)
		warn_rnr_timer(call, attr.min_rnr_timer);
	return av ? wait_next_hop(call, a->qp_num) : 0;
}

/* --- qp_connect --- */

struct qp_connect_args {
	struct ah_args ah; /* first: its bits and ours share a word */
	uint32_t qp_num;
	struct qp_attr attr;
};
#define CONNECT_SQ_PSN   (AH_LAST << 1)
#define CONNECT_PATH_MTU (AH_LAST << 2)

#define C(field, t, mask, ...) ATTR(struct qp_connect_args, field, t, mask, __VA_ARGS__)

static const struct table_row qp_connect_params[] = {
	ROW(struct qp_connect_args, qp_num, TABLE_UINT, "our queue pair, in state RESET",
		.flags = TABLE_REQUIRED, .max = 0xffffff),
	AH_ROWS(0),
	C(dest_qp_num, TABLE_UINT, 0, HELP_DEST_QP, .flags = TABLE_REQUIRED, .max = 0xffffff),
	C(rq_psn, TABLE_UINT, 0, HELP_RQ_PSN, .flags = TABLE_REQUIRED, .max = 0xffffff),
	C(sq_psn, TABLE_UINT, CONNECT_SQ_PSN, HELP_SQ_PSN, .max = 0xffffff,
		.def_text = "the one that qp_create chose"),
	C(port, TABLE_UINT, 0, HELP_PORT, .max = LINK_PORTS_MAX - 1),
	C(pkey_index, TABLE_UINT, 0, HELP_PKEY_INDEX),
	C(qp_access_flags, TABLE_FLAGS, 0, HELP_ACCESS, .def = DEFAULT_ACCESS,
		.words = words_remote_access),
	C(path_mtu, TABLE_UINT, CONNECT_PATH_MTU, HELP_PATH_MTU, .min = 256, .max = 4096,
		.def_text = "the port's active_mtu"),
	C(timeout, TABLE_UINT, 0, HELP_TIMEOUT, .max = 31, .def = 14),
	C(retry_cnt, TABLE_UINT, 0, HELP_RETRY, .max = 7, .def = 7),
	C(rnr_retry, TABLE_UINT, 0, HELP_RNR_RETRY, .max = 7, .def = 7),
	C(min_rnr_timer, TABLE_UINT, 0, HELP_MIN_RNR, .max = 31, .def = 12),
	C(max_rd_atomic, TABLE_UINT, 0, HELP_RD_ATOMIC, .def = RD_ATOMIC_DEFAULT),
	C(max_dest_rd_atomic, TABLE_UINT, 0, HELP_DEST_RD, .def = RD_ATOMIC_DEFAULT),
	ROW_END,
};

/* What each step of RESET -> INIT -> RTR -> RTS takes (rc-transport 11). */
static const struct connect_step {
	enum qp_state to;
	uint32_t mask;
} connect_steps[] = {
	{ QPS_INIT, QP_ATTRS_INIT },
	{ QPS_RTR, QP_ATTRS_RTR },
	{ QPS_RTS, QP_ATTRS_RTS },
};

static int
run_steps(struct rpc_call *call, uint32_t qpn, const struct qp_attr *attr,
	const struct engine_ah *ah)
{
	const struct connect_step *s;
	struct qp_attr step;
	unsigned int i;
	int rc = 0;

	for (i = 0; i < sizeof(connect_steps) / sizeof(connect_steps[0]) && rc == 0; i++) {
		s = &connect_steps[i];
		step = *attr;
		step.qp_state = s->to;
		rc = engine_qp_modify(call->e, qpn, &step, (s->mask & QP_ATTR_AV) != 0 ? ah : NULL,
			s->mask | QP_ATTR_STATE, &call->err);
	}
	if (rc != 0) { /* as it was before: the caller may mend its parameters and try again */
		step = (struct qp_attr){ .qp_state = QPS_RESET };
		engine_qp_modify(call->e, qpn, &step, NULL, QP_ATTR_STATE, NULL);
	}
	return rc;
}

static int
qp_connect(struct rpc_call *call)
{
	const struct qp_connect_args *a = call->args;
	struct modify_reply *reply = call->reply;
	struct qp_attr attr = a->attr;
	struct rc_qp_info info;
	struct engine_ah ah;
	int rc;

	if (call->progress != 0)
		return wait_next_hop(call, a->qp_num);
	rc = engine_qp_query(call->e, a->qp_num, &info, &call->err);
	if (rc != 0)
		return rc;
	if (info.attr.qp_state != QPS_RESET)
		return error_set(&call->err, EINVAL,
			"qp_num: 0x%06x is in state %s, and qp_connect starts from RESET; qp_modify it to RESET first",
			a->qp_num, qp_state_name(info.attr.qp_state));
	rc = make_ah(call, &a->ah, attr.port, &ah);
	if (rc != 0)
		return rc;
	if ((a->ah.present & CONNECT_SQ_PSN) == 0)
		attr.sq_psn = start_psn_of(call, a->qp_num);
	if ((a->ah.present & CONNECT_PATH_MTU) == 0)
		attr.path_mtu = link_port_attr(engine_link(call->e), attr.port)->active_mtu;
	rc = run_steps(call, a->qp_num, &attr, &ah);
	if (rc != 0)
		return rc;
	set_state(call, a->qp_num);
	reply->sq_psn = attr.sq_psn;
	reply->path_mtu = attr.path_mtu;
	reply->sgid_index = ah.sgid_index;
	warn_rnr_timer(call, attr.min_rnr_timer);
	return wait_next_hop(call, a->qp_num);
}

const struct rpc_method methods_modify[] = {
	{ "qp_connect", qp_connect, qp_connect_params, sizeof(struct qp_connect_args),
		"Take a queue pair from RESET to RTS in one go. If a step fails the queue pair is back in RESET. The reply waits up to half a second for the next hop's MAC address.",
		"polca-ctl qp connect 17 10.0.0.2 --dest-qp-num 18 --rq-psn 4711",
		RESULTS(qp_connect_results, struct modify_reply) },
	{ "qp_modify", qp_modify, qp_modify_params, sizeof(struct qp_modify_args),
		"Change a queue pair's state and attributes, as ibv_modify_qp: exactly the attributes given are set, and each transition needs and allows what the verbs say.",
		"polca-ctl qp modify 17 --qp-state INIT --pkey-index 0 --port 0 --qp-access-flags REMOTE_WRITE,REMOTE_READ",
		RESULTS(qp_modify_results, struct modify_reply) },
	{ NULL },
};
