/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_FLOW_H
#define SIM_FLOW_H

/**
 * @file
 * A connection of two QPs and the work in each direction, with the reference model: the effect of
 * each work request on memory, its order and its completion.
 */

#include "sim.h"

#define FLOW_OPS_MAX   256
#define FLOW_RECVS_MAX 96
#define FLOW_SGES      4
#define FLOW_WORDS     8
#ifndef FLOW_MSG_MAX /* the fuzz target takes less */
#define FLOW_MSG_MAX (24u << 10)
#endif
#define FLOW_POOL (60 * FLOW_MSG_MAX) /* bytes of receive buffers */

/** What is wrong with a work request, on purpose. */
enum op_fault {
	FAULT_NONE,
	FAULT_RKEY, /* no such key: 0x62 */
	FAULT_RANGE, /* one byte past the region: 0x62 */
	FAULT_RIGHTS, /* region without the right: 0x62 */
	FAULT_UNALIGNED, /* atomic on an odd address: 0x61 */
	FAULT_LKEY, /* invalid local key: local protection error */
	FAULT_LANDING, /* Read into a region without local write: local protection error */
	FAULT_TOO_LONG, /* Send longer than the receive buffers: 0x61, local length error there */
	FAULT_RECV_LKEY, /* receive WQE with a bad local key: 0x63 */
	FAULT_INVALIDATE, /* Send with Invalidate of a key that is no window of the QP: 0x62 */
	FAULT_BIND, /* bind that the region does not allow */
	FAULT_COUNT
};

struct flow_op {
	enum wr_opcode opcode;
	enum op_fault fault;
	uint32_t length;
	uint32_t sge_offset[FLOW_SGES]; /* local arena ranges */
	uint32_t sge_len[FLOW_SGES];
	uint32_t num_sge;
	uint32_t remote; /* arena offset at the target */
	uint32_t imm;
	uint32_t word;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t flags;
	bool signaled;
	bool done;
	uint32_t status;
};

struct flow_recv {
	uint32_t sge_offset[FLOW_SGES];
	uint32_t sge_len[FLOW_SGES];
	uint32_t num_sge;
	bool bad_lkey;
	bool dirty; /* ended in error: its buffer may have any contents */
};

/** The work of one direction: from node[from] to the other node. */
struct flow {
	struct conn *conn;
	struct sim_node *from;
	struct sim_node *to;
	uint32_t qpn; /* at .from */
	uint32_t send_cq;
	uint32_t recv_cq; /* at .to */

	struct flow_op op[FLOW_OPS_MAX];
	unsigned int ops; /* planned */
	unsigned int posted;
	unsigned int completed; /* in order; unsignaled ones complete with the next signaled one */

	struct flow_recv recv[FLOW_RECVS_MAX];
	unsigned int recvs; /* posted */
	unsigned int recvs_planned;
	unsigned int received; /* completions taken */
	unsigned int next_recv_op; /* op that the next receive completion belongs to */
	bool recv_failed;

	/* the script may end the connection anywhere: the last ops may have been executed or not */
	bool ambiguous;
	/* the requester detects the fault: ops sent after it may have been executed */
	bool tail_ran;
	bool may_fail; /* the flow may end with an error of .allowed */
	uint32_t allowed; /* bit per wc_status */
	bool failed;
	bool lenient; /* packets are forged: completions and writable areas are not checked */
	bool gone; /* the QP is destroyed: no more completions are due */

	/* areas, arena offsets and keys */
	uint32_t src, src_key;
	uint32_t land, land_used, land_key, land_ro_key;
	uint32_t hot, hot_key, hot_ro_key; /* for overlapping Writes */
	uint32_t once, once_used, once_key; /* each byte written at most once, may be read back */
	uint32_t konst, konst_key; /* read only */
	uint32_t words, words_key; /* for Atomics */
	uint32_t pool, pool_used, pool_key; /* receive buffers at .to */
};

struct conn_options {
	uint16_t pmtu;
	uint32_t psn[SIM_NODES]; /* start PSN of each node's SQ */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool ack_per_packet;
	bool flow_control;
	uint32_t sq_depth;
	uint32_t rq_depth;
	uint32_t cq_depth;
	uint32_t access; /* qp_access_flags */
	uint32_t srq[SIM_NODES]; /* or RC_NO_SRQ */
	enum encap encap;
	bool stay_init; /* leave both QPs in INIT: the script connects them itself */
};

struct conn {
	struct sim *sim;
	struct conn_options opt;
	uint32_t qpn[SIM_NODES];
	uint32_t send_cq[SIM_NODES];
	uint32_t recv_cq[SIM_NODES];
	struct flow flow[SIM_NODES]; /* [0]: from node 0 */
	bool destroyed[SIM_NODES];
};

/** Random valid options. */
struct conn_options conn_options_random(struct sim *s);
struct conn *conn_create(struct sim *s, const struct conn_options *opt);
/** RTR and RTS of one end, or of both. */
void conn_to_rtr(struct conn *c, unsigned int node);
void conn_to_rts(struct conn *c, unsigned int node);
/** Modify the QP and record its transition for coverage. @return result of rc_qp_modify() */
int conn_modify(struct conn *c, unsigned int node, const struct qp_attr *attr, uint32_t mask);
enum qp_state conn_state(struct conn *c, unsigned int node);
void conn_destroy_qp(struct conn *c, unsigned int node);
void conn_destroy(struct conn *c);

/** Plan random operations of the given kinds. */
void flow_plan(struct flow *f, unsigned int ops, uint32_t kinds);
#define KIND(op) (1u << (op))
/* clang-format off */
#define KINDS_ALL (KIND(WR_RDMA_WRITE) | KIND(WR_RDMA_WRITE_WITH_IMM) | KIND(WR_SEND) | \
		KIND(WR_SEND_WITH_IMM) | KIND(WR_RDMA_READ) | KIND(WR_ATOMIC_CMP_AND_SWP) | \
		KIND(WR_ATOMIC_FETCH_AND_ADD))
/* clang-format on */
/** Replace op @p index by one with this fault. The flow must end there with the sheet's status. */
void flow_fault(struct flow *f, unsigned int index, enum op_fault fault);
/** Post up to @p sends requests, or as many as fit. */
void flow_post(struct flow *f, unsigned int sends);
void flow_post_recv(struct flow *f, unsigned int recvs);
/** Take completions of both ends and check them against the model. */
void flow_poll(struct flow *f);
bool flow_done(const struct flow *f);
/**
 * After the end: apply all ops to the model. Ranges of ops that may or may not have been executed
 * are copied from memory.
 */
void flow_settle(struct flow *f);
/** Compare memory and model byte by byte, with the guard bytes. */
void sim_check_memory(struct sim *s);

#endif
