/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ibv_modify_qp: the allowed state transitions, and the attributes each requires and allows
 * (rc-transport 11).
 */

#include "base/line.h"
#include "rc/check.h"
#include "rc/failure.h"

struct transition {
	bool allowed;
	uint32_t required;
	uint32_t optional;
};

#define STATE_PAIR(from, to) [QPS_##from][QPS_##to]
#define A(name)              QP_ATTR_##name
/* What may change while the QP is connected */
#define CONNECTED (A(ALT_PATH) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | A(PATH_MIG_STATE))

/* find_transition() adds "any -> RESET" and "any but RESET -> ERR". */
static const struct transition rc_transitions[QPS_COUNT][QPS_COUNT] = {
	STATE_PAIR(RESET, INIT) = { true, QP_ATTRS_INIT, 0 },
	STATE_PAIR(INIT, INIT) = { true, 0, QP_ATTRS_INIT },
	STATE_PAIR(INIT, RTR) = { true, QP_ATTRS_RTR,
		A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) },
	STATE_PAIR(RTR, RTS) = { true, QP_ATTRS_RTS, A(CUR_STATE) | CONNECTED },
	STATE_PAIR(RTS, RTS) = { true, 0, A(CUR_STATE) | CONNECTED },
	STATE_PAIR(RTS, SQD) = { true, 0, A(EN_SQD_ASYNC_NOTIFY) },
	STATE_PAIR(SQD, RTS) = { true, 0, A(CUR_STATE) | CONNECTED },
	STATE_PAIR(SQD, SQD) = { true, 0,
		A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) |
			A(MAX_DEST_RD_ATOMIC) | A(PKEY_INDEX) | CONNECTED },
};

static const char *const attr_names[] = { "STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY",
	"ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT", "RETRY_CNT",
	"RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN",
	"MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP", "DEST_QPN" };

/* --- error texts --- */

static void
add_name(struct line *l, const char *name)
{
	line_put(l, "%s%s", l->used != 0 ? ", " : "", name);
}

static void
add_names(struct line *l, uint32_t mask)
{
	unsigned int i;

	for (i = 0; i < 32; i++) {
		if (mask & (1u << i))
			add_name(l, i < RTE_DIM(attr_names) ? attr_names[i] : "unknown bit");
	}
}

static const struct transition *
find_transition(enum qp_state from, enum qp_state to)
{
	static const struct transition always = { true, 0, 0 };

	if (to == QPS_RESET || (to == QPS_ERR && from != QPS_RESET))
		return &always;
	return &rc_transitions[from][to];
}

static int
not_allowed(enum qp_state from, enum qp_state to, struct error *err)
{
	char names[64] = "";
	struct line l = { names, sizeof(names), 0 };
	unsigned int s;

	for (s = 0; s < QPS_COUNT; s++) {
		if (find_transition(from, s)->allowed)
			add_name(&l, qp_state_name(s));
	}
	return error_set(err, EINVAL, "modify %s to %s: not allowed; from %s: %s",
		qp_state_name(from), qp_state_name(to), qp_state_name(from), names);
}

static int
check_mask(enum qp_state from, enum qp_state to, uint32_t mask, struct error *err)
{
	const struct transition *t = find_transition(from, to);
	uint32_t wrong = t->required & ~mask;
	const char *how = "missing";
	char names[160];
	struct line l = { names, sizeof(names), 0 };

	if (!t->allowed)
		return not_allowed(from, to, err);
	if (wrong == 0) {
		wrong = mask & ~(t->required | t->optional | QP_ATTR_STATE);
		how = "does not take";
	}
	if (wrong == 0)
		return 0;
	add_names(&l, wrong);
	return error_set(err, EINVAL, "modify %s to %s: %s %s", qp_state_name(from),
		qp_state_name(to), how, names);
}

/* --- ranges --- */

/* Attributes that are one number: X(bit, field, min, max), where l are the device's limits */
#define RC_NUMBERS(X)                                                                              \
	X(TIMEOUT, timeout, 0, 31)                                                                 \
	X(RETRY_CNT, retry_cnt, 0, 7)                                                              \
	X(RNR_RETRY, rnr_retry, 0, 7)                                                              \
	X(MIN_RNR_TIMER, min_rnr_timer, 0, 31)                                                     \
	X(RQ_PSN, rq_psn, 0, PSN_MASK)                                                             \
	X(SQ_PSN, sq_psn, 0, PSN_MASK)                                                             \
	X(DEST_QPN, dest_qp_num, 1, 0xFFFFFE)                                                      \
	X(MAX_QP_RD_ATOMIC, max_rd_atomic, 0, l->max_rd_atomic)                                    \
	X(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 0, l->max_rd_atomic)

static int
check_av(const struct av *av, const char *of, struct error *err)
{
	const struct rc_range ranges[] = {
		{ true, "sl", av->sl, 0, 15 },
		{ true, "flow_label", av->flow_label, 0, 0xFFFFF },
		{ true, "encap", av->encap, ENCAP_ROCEV2_IPV4, ENCAP_IB },
	};
	int rc = rc_check_ranges(ranges, RTE_DIM(ranges), of, err);

	if (rc != 0)
		return rc;
	if (av->encap != ENCAP_IB || av->grh) {
		if (gid_is_zero(&av->dgid))
			return error_set(err, EINVAL, "%sdgid: missing", of);
		if (gid_is_zero(&av->sgid))
			return error_set(err, EINVAL, "%ssgid: missing", of);
	}
	if (av->encap == ENCAP_IB && av->dlid == 0)
		return error_set(err, EINVAL, "%sdlid: got 0, allowed: 1 to 65535", of);
	return 0;
}

#define RANGE_OF(bit, field, min, max) { mask & A(bit), #field, a->field, min, max },

static int
check_attrs(const struct rc_qp *qp, const struct qp_attr *a, uint32_t mask, struct error *err)
{
	const struct rc_limits *l = &qp->worker->dev->limits;
	const struct rc_range ranges[] = {
		{ mask & A(ALT_PATH), "alt_timeout", a->alt.timeout, 0, 31 }, RC_NUMBERS(RANGE_OF)
	};
	const uint32_t access = MEM_ACCESS_REMOTE | MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_MW_BIND;
	int rc = rc_check_ranges(ranges, RTE_DIM(ranges), "", err);

	if (rc != 0)
		return rc;
	if ((mask & A(PATH_MTU)) &&
		(!rte_is_power_of_2(a->path_mtu) || a->path_mtu < 256 || a->path_mtu > MTU_MAX))
		return error_set(err, EINVAL,
			"path_mtu: got %u, allowed: 256, 512, 1024, 2048, 4096", a->path_mtu);
	if ((mask & A(PKEY_INDEX)) && (a->pkey & 0x7FFF) == 0)
		return error_set(err, EINVAL, "pkey_index: entry %u holds no valid P_Key",
			a->pkey_index);
	if ((mask & A(ACCESS_FLAGS)) && (a->qp_access_flags & ~access) != 0)
		return error_set(err, EINVAL, "qp_access_flags: got 0x%x, allowed: bits of 0x%x",
			a->qp_access_flags, access);
	if ((mask & A(ALT_PATH)) && (a->alt.pkey & 0x7FFF) == 0)
		return error_set(err, EINVAL, "alt_pkey_index: entry %u holds no valid P_Key",
			a->alt.pkey_index);
	if (mask & A(AV))
		rc = check_av(&a->av, "", err);
	if (rc == 0 && (mask & A(ALT_PATH)))
		rc = check_av(&a->alt.av, "alt_", err);
	return rc;
}

/* --- effects --- */

#define TAKE(bit, field)                                                                           \
	do {                                                                                       \
		if (mask & A(bit))                                                                 \
			qp->attr.field = a->field;                                                 \
	} while (0)

#define TAKE_NUMBER(bit, field, min, max) TAKE(bit, field);

static void
take_attrs(struct rc_qp *qp, const struct qp_attr *a, uint32_t mask)
{
	TAKE(ACCESS_FLAGS, qp_access_flags);
	TAKE(PKEY_INDEX, pkey_index);
	TAKE(PKEY_INDEX, pkey);
	TAKE(PORT, port);
	TAKE(AV, av);
	TAKE(AV, neighbour);
	TAKE(AV, sgid_index);
	TAKE(AV, src_path_bits);
	TAKE(PATH_MTU, path_mtu);
	RC_NUMBERS(TAKE_NUMBER)
	TAKE(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	TAKE(ALT_PATH, alt);

	qp->access = qp->attr.qp_access_flags;
	qp->pkey = qp->attr.pkey;
	qp->dest_qpn = qp->attr.dest_qp_num;
	qp->pmtu = qp->attr.path_mtu;
	if (qp->pmtu != 0)
		qp->pmtu_shift = __builtin_ctz(qp->pmtu);
	qp->attr.av.port = qp->attr.port;
	if ((mask & A(AV)) || ((mask & A(PORT)) && qp->state == QPS_SQD))
		rc_qp_path(qp);
}

/* To RESET: drop all work without completions. */
static void
qp_enter_reset(struct rc_qp *qp)
{
	qp->state = QPS_RESET;
	qp->work = 0;
	qp->comm_est = false;
	rc_requester_reset(qp);
	rc_responder_reset(qp);
	rc_rp_release(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->failure, 0, sizeof(qp->failure));
	rc_migration_reset(qp);
}

/* Take the attributes, and go to any other state. */
static int
qp_enter_state(struct rc_qp *qp, enum qp_state to, const struct qp_attr *attr, uint32_t mask,
	struct error *err)
{
	enum qp_state from = qp->state;

	take_attrs(qp, attr, mask);
	if ((from == QPS_INIT && to == QPS_RTR && rc_responder_create(qp) != 0) ||
		(from == QPS_SQD && rc_responder_resize(qp) != 0))
		return error_set(err, ENOMEM, "no memory for %u saved Reads and Atomics",
			qp->attr.max_dest_rd_atomic);
	qp->state = to;
	if (from == QPS_INIT && to == QPS_RTR) {
		rc_migration_start(qp);
		qp->resp.epsn = qp->attr.rq_psn;
	} else if (from == QPS_RTR && to == QPS_RTS) {
		/* EVENT_COMM_EST is raised in RTR only, unless comm_est_in_rts (rc-transport 11) */
		qp->comm_est = qp->comm_est || !qp->init.comm_est_in_rts;
		rc_requester_start(qp);
	} else if (from == QPS_RTS && to == QPS_SQD) {
		/* the notification must be requested for each drain */
		if (!(mask & A(EN_SQD_ASYNC_NOTIFY)))
			qp->attr.en_sqd_async_notify = false;
		rc_requester_drain(qp);
	} else if (from == QPS_SQD) {
		rc_requester_resume(qp);
	}
	rc_migration_modify(qp, attr, mask);
	return 0;
}

int
rc_qp_modify(struct rc_worker *w, uint32_t qpn, const struct qp_attr *attr, uint32_t mask,
	struct error *err)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);
	enum qp_state from, to;
	int rc;

	if (qp == NULL)
		return rc_no_qp(qpn, err);
	RTE_ASSERT(!(mask & A(PORT)) || attr->port < RC_PORTS_MAX);
	RTE_ASSERT(!(mask & A(ALT_PATH)) || attr->alt.port < RC_PORTS_MAX);
	from = qp->state;
	to = (mask & QP_ATTR_STATE) ? attr->qp_state : from;
	if (to >= QPS_COUNT)
		return error_set(err, EINVAL, "qp_state: got %d, allowed: 0 to %d", to,
			QPS_COUNT - 1);
	rc = check_mask(from, to, mask, err);
	if (rc != 0)
		return rc;
	if ((mask & QP_ATTR_CUR_STATE) && attr->cur_qp_state != from)
		return error_set(err, EINVAL, "cur_qp_state: got %s, but the queue pair is in %s",
			attr->cur_qp_state < QPS_COUNT ? qp_state_name(attr->cur_qp_state) : "?",
			qp_state_name(from));
	rc = check_attrs(qp, attr, mask, err);
	if (rc == 0)
		rc = rc_migration_check(qp, attr, mask, err);
	if (rc != 0)
		return rc;
	if (from == QPS_SQD && to == QPS_SQD && !rc_requester_drained(qp))
		return error_set(err, EBUSY, "modify SQD to SQD: the send queue is still draining");

	if (to == QPS_RESET) {
		qp_enter_reset(qp);
	} else if (to == QPS_ERR) {
		if (from != QPS_ERR)
			qp->failure = (struct qp_failure){ .verdict = VERDICT_COUNT,
				.reason = QP_FAILURE_MODIFIED };
		rc_qp_error(qp);
	} else {
		rc = qp_enter_state(qp, to, attr, mask, err);
	}
	rc_qp_changed(qp);
	if (qp->trace != NULL && rc == 0)
		rc_trace_modified(qp, from);
	rc_qp_check(qp);
	return rc;
}
