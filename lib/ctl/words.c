/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "ctl/methods.h"

/* Names as libibverbs has them, without their IBV_ prefixes. */

const struct table_word words_access[] = {
	{ "LOCAL_WRITE", MEM_ACCESS_LOCAL_WRITE },
	{ "REMOTE_WRITE", MEM_ACCESS_REMOTE_WRITE },
	{ "REMOTE_READ", MEM_ACCESS_REMOTE_READ },
	{ "REMOTE_ATOMIC", MEM_ACCESS_REMOTE_ATOMIC },
	{ "MW_BIND", MEM_ACCESS_MW_BIND },
	{ "ZERO_BASED", MEM_ACCESS_ZERO_BASED },
	{ NULL, 0 },
};

const struct table_word words_remote_access[] = {
	{ "REMOTE_WRITE", MEM_ACCESS_REMOTE_WRITE },
	{ "REMOTE_READ", MEM_ACCESS_REMOTE_READ },
	{ "REMOTE_ATOMIC", MEM_ACCESS_REMOTE_ATOMIC },
	{ NULL, 0 },
};

const struct table_word words_qp_type[] = {
	{ "RC", QPT_RC },
	{ NULL, 0 },
};

const struct table_word words_qp_state[] = {
	{ "RESET", QPS_RESET },
	{ "INIT", QPS_INIT },
	{ "RTR", QPS_RTR },
	{ "RTS", QPS_RTS },
	{ "SQD", QPS_SQD },
	{ "SQE", QPS_SQE },
	{ "ERR", QPS_ERR },
	{ NULL, 0 },
};

const struct table_word words_mig_state[] = {
	{ "MIGRATED", MIG_MIGRATED },
	{ "REARM", MIG_REARM },
	{ "ARMED", MIG_ARMED },
	{ NULL, 0 },
};

const struct table_word words_wr_opcode[] = {
	{ "SEND", WR_SEND },
	{ "SEND_WITH_IMM", WR_SEND_WITH_IMM },
	{ "SEND_WITH_INV", WR_SEND_WITH_INV },
	{ "RDMA_WRITE", WR_RDMA_WRITE },
	{ "RDMA_WRITE_WITH_IMM", WR_RDMA_WRITE_WITH_IMM },
	{ "RDMA_READ", WR_RDMA_READ },
	{ "ATOMIC_CMP_AND_SWP", WR_ATOMIC_CMP_AND_SWP },
	{ "ATOMIC_FETCH_AND_ADD", WR_ATOMIC_FETCH_AND_ADD },
	{ "LOCAL_INV", WR_LOCAL_INV },
	{ "BIND_MW", WR_BIND_MW },
	{ NULL, 0 },
};

const struct table_word words_send_flags[] = {
	{ "FENCE", SEND_FENCE },
	{ "SIGNALED", SEND_SIGNALED },
	{ "SOLICITED", SEND_SOLICITED },
	{ "INLINE", SEND_INLINE },
	{ NULL, 0 },
};

const struct table_word words_wc_flags[] = {
	{ "WITH_IMM", WC_WITH_IMM },
	{ "WITH_INV", WC_WITH_INV },
	{ NULL, 0 },
};

const struct table_word words_mw_type[] = {
	{ "TYPE_1", MEM_MW_TYPE_1 },
	{ "TYPE_2", MEM_MW_TYPE_2 },
	{ NULL, 0 },
};

const struct table_word words_gid_type[] = {
	{ "RoCEv1", GID_ROCEV1 },
	{ "RoCEv2", GID_ROCEV2 },
	{ "IB", GID_IB },
	{ NULL, 0 },
};
