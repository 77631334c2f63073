/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Names of the enum values in verbs_types.h, as in libibverbs without prefix.
 */

#include <stdio.h>

#include <rte_common.h>

#include "base/verdict.h"
#include "rc/verbs_types.h"
#include "wire/opcode.h"

static const char *
name_pick(const char *const *names, unsigned int count, unsigned int i)
{
	return i < count && names[i] != NULL ? names[i] : "unknown";
}

#define NAME_OF(names, i) name_pick(names, RTE_DIM(names), i)

const char *
qp_state_name(enum qp_state s)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	_Static_assert(RTE_DIM(names) == QPS_COUNT, "one name per state");
	return NAME_OF(names, s);
}

const char *
mig_state_name(enum mig_state s)
{
	static const char *const names[] = { "MIGRATED", "REARM", "ARMED" };

	_Static_assert(RTE_DIM(names) == MIG_COUNT, "one name per state");
	return NAME_OF(names, s);
}

const char *
wc_status_name(uint32_t status)
{
	static const char *const names[] = { "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR",
		"LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR",
		"LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR",
		"RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR",
		"REM_ABORT_ERR", "INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR",
		"RESP_TIMEOUT_ERR", "GENERAL_ERR", "TM_ERR", "TM_RNDV_INCOMPLETE" };

	_Static_assert(RTE_DIM(names) == WC_STATUS_COUNT, "one name per status");
	return NAME_OF(names, status);
}

const char *
wc_opcode_name(uint32_t opcode)
{
	static const char *const names[] = { "SEND", "RDMA_WRITE", "RDMA_READ", "COMP_SWAP",
		"FETCH_ADD", "BIND_MW", "LOCAL_INV", [WC_RECV] = "RECV", "RECV_RDMA_WITH_IMM" };

	return NAME_OF(names, opcode);
}

const char *
wr_opcode_name(uint32_t opcode)
{
	static const char *const names[] = { "RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND",
		"SEND_WITH_IMM", "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD",
		"LOCAL_INV", "BIND_MW", "SEND_WITH_INV" };

	_Static_assert(RTE_DIM(names) == WR_SEND_WITH_INV + 1, "one name per opcode");
	return NAME_OF(names, opcode);
}

const char *
event_type_name(enum event_type t)
{
	static const char *const names[] = { "CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR",
		"COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR", NULL, "PORT_ACTIVE",
		"PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", NULL, "SRQ_LIMIT_REACHED",
		"QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", [EVENT_GID_CHANGE] = "GID_CHANGE",
		[EVENT_CQ_COMPLETION] = "CQ_COMPLETION", "WORKER_STALL", "RQ_EMPTY", "SM_SMP",
		"QP_ERROR", "NEIGHBOUR_MOVED", "NEIGHBOUR_LOST", "ADDRESS_CONFLICT",
		"CONNECTION_MADE", "CONNECTION_REFUSED", "CONNECTION_ENDED", "PEER_PAUSED",
		"FLEET_LEADS", "FLEET_FOLLOWS", "FLEET_CONNECTED", "FLEET_AWAY", "FLEET_FULL",
		"FLEET_ROOM", "FLEET_REFUSED" };

	_Static_assert(RTE_DIM(names) == EVENT_FLEET_REFUSED + 1, "one name per event");
	return NAME_OF(names, t);
}

static const char *
syndrome_name(uint8_t syndrome)
{
	static const char *const names[] = { "PSN sequence error", "invalid request",
		"remote access error", "remote operational error" };

	return NAME_OF(names, syndrome - AETH_NAK_PSN_SEQUENCE);
}

const char *
qp_failure_print(const struct qp_failure *f, char buf[QP_FAILURE_MAX])
{
	if (f->reason == QP_FAILURE_CQ_OVERRUN)
		snprintf(buf, QP_FAILURE_MAX, "its completion queue has overrun");
	else if (f->syndrome != 0)
		snprintf(buf, QP_FAILURE_MAX, "%s NAK 0x%02x (%s)",
			f->verdict == VERDICT_NAK_SENT ? "it refused a request: sent"
						       : "the peer refused its request: received",
			f->syndrome, syndrome_name(f->syndrome));
	else if (f->status == WC_RETRY_EXC_ERR)
		snprintf(buf, QP_FAILURE_MAX, "the peer did not answer, in spite of all retries");
	else if (f->status == WC_RNR_RETRY_EXC_ERR)
		snprintf(buf, QP_FAILURE_MAX,
			"the peer had no receive posted, in spite of all retries");
	else
		snprintf(buf, QP_FAILURE_MAX, "a work request failed: %s",
			wc_status_name(f->status));
	return buf;
}
