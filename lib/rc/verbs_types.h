/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_VERBS_TYPES_H
#define RC_VERBS_TYPES_H

/**
 * @file Types and constants of the verbs, named and numbered as in libibverbs (rc-transport 11).
 * None points to private memory of lib/rc.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/trace.h"
#include "wire/path.h"

#define RC_MSG_MAX    (1u << 31) /* bytes in a message (IBA) */
#define RC_INLINE_MAX 512
#define RC_SGE_MAX    32

enum qp_type {
	QPT_RC = 2, /* ibv_qp_type */
};

enum qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR, QPS_COUNT };

/* ibv_qp_attr_mask */
#define QP_ATTR_STATE               (1u << 0)
#define QP_ATTR_CUR_STATE           (1u << 1)
#define QP_ATTR_EN_SQD_ASYNC_NOTIFY (1u << 2)
#define QP_ATTR_ACCESS_FLAGS        (1u << 3)
#define QP_ATTR_PKEY_INDEX          (1u << 4)
#define QP_ATTR_PORT                (1u << 5)
#define QP_ATTR_QKEY                (1u << 6)
#define QP_ATTR_AV                  (1u << 7)
#define QP_ATTR_PATH_MTU            (1u << 8)
#define QP_ATTR_TIMEOUT             (1u << 9)
#define QP_ATTR_RETRY_CNT           (1u << 10)
#define QP_ATTR_RNR_RETRY           (1u << 11)
#define QP_ATTR_RQ_PSN              (1u << 12)
#define QP_ATTR_MAX_QP_RD_ATOMIC    (1u << 13)
#define QP_ATTR_ALT_PATH            (1u << 14)
#define QP_ATTR_MIN_RNR_TIMER       (1u << 15)
#define QP_ATTR_SQ_PSN              (1u << 16)
#define QP_ATTR_MAX_DEST_RD_ATOMIC  (1u << 17)
#define QP_ATTR_PATH_MIG_STATE      (1u << 18)
#define QP_ATTR_CAP                 (1u << 19)
#define QP_ATTR_DEST_QPN            (1u << 20)

/** Attributes required for INIT, RTR and RTS, besides the state (rc-transport 11) */
#define QP_ATTRS_INIT (QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS)
#define QP_ATTRS_RTR                                                                               \
	(QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |                       \
		QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER)
#define QP_ATTRS_RTS                                                                               \
	(QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |                \
		QP_ATTR_MAX_QP_RD_ATOMIC)

enum mig_state { /* ibv_mig_state */
	MIG_MIGRATED,
	MIG_REARM,
	MIG_ARMED,
	MIG_COUNT
};

/** An alternate path: as the fields of struct qp_attr. */
struct qp_alt_path {
	struct av av;
	uint32_t neighbour;
	uint16_t pkey_index;
	uint16_t pkey;
	uint16_t port;
	uint16_t sgid_index;
	uint8_t src_path_bits;
	uint8_t timeout;
};

struct qp_attr {
	enum qp_state qp_state;
	enum qp_state cur_qp_state;
	bool en_sqd_async_notify;
	uint32_t qp_access_flags; /**< MEM_ACCESS_REMOTE_ */
	uint16_t pkey_index;
	uint16_t pkey; /**< the entry's value, resolved by the caller when PKEY_INDEX is set */
	uint16_t port; /**< local port index */
	struct av av; /**< resolved by the caller: sgid, smac, encap, dmac or zero */
	uint32_t neighbour; /**< next hop's index, or PATH_NO_NEIGHBOUR (path.h) */
	/** native IB: av.sgid is kept equal to this GID entry; RoCE: for queries only */
	uint16_t sgid_index;
	uint8_t src_path_bits; /**< native IB: av.slid is the port's LID with these low bits */
	uint16_t path_mtu; /**< bytes: 256..4096 */
	uint8_t timeout; /**< Local ACK Timeout, 0..31 */
	uint8_t retry_cnt; /**< 0..7; 7 is a count like the others */
	uint8_t rnr_retry; /**< 0..7; 7: retry without limit */
	uint8_t min_rnr_timer; /**< 0..31; 0 is 655.36 ms */
	uint8_t max_rd_atomic; /**< outstanding Reads and Atomics as requester */
	uint8_t max_dest_rd_atomic; /**< and as responder */
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	struct qp_alt_path alt; /**< ALT_PATH; all zero if no alternate path is loaded */
	enum mig_state path_mig_state; /**< a modify cannot set ARMED (migrate.c) */
};

struct qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

#define RC_NO_SRQ UINT32_MAX

/** BTH M of an RC QP until its first modify to REARM (rc-transport 1). */
enum migreq {
	MIGREQ_OF_LINK, /**< 1 on native IB, 0 on RoCE */
	MIGREQ_0,
	MIGREQ_1,
};

struct qp_init_attr {
	enum qp_type qp_type;
	uint32_t pd;
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq; /**< or RC_NO_SRQ */
	struct qp_cap cap;
	bool sq_sig_all;
	/** ack_coalescing off: one ACK per request packet (seed 002's base case) */
	bool ack_per_packet;
	bool flow_control; /**< advertise end-to-end credits; false: credit code 31 */
	enum migreq migreq;
	/** EVENT_COMM_EST also if the first request comes in RTS (cm.md 6) */
	bool comm_est_in_rts;
	bool pinned; /**< must stay on its worker, where its creator runs (rc_qp_export()) */
};

enum wr_opcode {
	WR_RDMA_WRITE = 0,
	WR_RDMA_WRITE_WITH_IMM = 1,
	WR_SEND = 2,
	WR_SEND_WITH_IMM = 3,
	WR_RDMA_READ = 4,
	WR_ATOMIC_CMP_AND_SWP = 5,
	WR_ATOMIC_FETCH_AND_ADD = 6,
	WR_LOCAL_INV = 7,
	WR_BIND_MW = 8,
	WR_SEND_WITH_INV = 9,
};

#define SEND_FENCE     0x1
#define SEND_SIGNALED  0x2
#define SEND_SOLICITED 0x4
#define SEND_INLINE    0x8

struct sge {
	uint64_t addr; /**< in the region's address space (mem_mr_attr.va) */
	uint32_t length;
	uint32_t lkey;
};

struct send_wr {
	uint64_t wr_id;
	enum wr_opcode opcode;
	uint32_t send_flags;
	uint32_t num_sge;
	const struct sge *sg_list; /**< copied by the call */
	const uint8_t *inline_data; /**< SEND_INLINE: the bytes themselves, copied by the call */
	uint32_t inline_len;
	uint32_t imm_data; /**< in host byte order */
	uint32_t invalidate_rkey; /**< SEND_WITH_INV, LOCAL_INV */
	uint64_t remote_addr; /**< RDMA and Atomics */
	uint32_t rkey;
	uint64_t compare_add;
	uint64_t swap;
	struct {
		uint32_t mw_key; /**< current key */
		uint32_t new_key; /**< type 2: key after the bind */
		uint32_t mr_key;
		uint32_t access;
		uint64_t addr;
		uint64_t length;
	} bind_mw;
};

struct recv_wr {
	uint64_t wr_id;
	uint32_t num_sge;
	const struct sge *sg_list; /**< copied by the call */
};

enum wc_status {
	WC_SUCCESS = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_PROT_ERR = 4,
	WC_WR_FLUSH_ERR = 5,
	WC_MW_BIND_ERR = 6,
	WC_BAD_RESP_ERR = 7,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR = 11,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
	WC_STATUS_COUNT = 24
};

enum wc_opcode {
	WC_SEND = 0,
	WC_RDMA_WRITE = 1,
	WC_RDMA_READ = 2,
	WC_COMP_SWAP = 3,
	WC_FETCH_ADD = 4,
	WC_BIND_MW = 5,
	WC_LOCAL_INV = 6,
	WC_RECV = 0x80,
	WC_RECV_RDMA_WITH_IMM = 0x81,
};

#define WC_WITH_IMM 0x2 /* ibv_wc_flags */
#define WC_WITH_INV 0x8

struct wc {
	uint64_t wr_id;
	uint32_t status; /**< enum wc_status */
	uint32_t opcode; /**< enum wc_opcode; meaningless unless SUCCESS (as ibv_poll_cq) */
	uint32_t byte_len;
	uint32_t imm_data; /**< or the invalidated R_Key */
	uint32_t qp_num;
	uint32_t wc_flags;
	uint32_t mw_key; /**< BIND_MW of a type 1 window: its new key */
};

enum event_type { /* ibv_event_type */
	EVENT_CQ_ERR = 0,
	EVENT_QP_FATAL = 1,
	EVENT_QP_REQ_ERR = 2,
	EVENT_QP_ACCESS_ERR = 3,
	EVENT_COMM_EST = 4,
	EVENT_SQ_DRAINED = 5,
	EVENT_PATH_MIG = 6,
	EVENT_PATH_MIG_ERR = 7,
	EVENT_PORT_ACTIVE = 9,
	EVENT_PORT_ERR = 10,
	EVENT_LID_CHANGE = 11,
	EVENT_PKEY_CHANGE = 12,
	EVENT_SM_CHANGE = 13,
	EVENT_SRQ_LIMIT_REACHED = 15,
	EVENT_QP_LAST_WQE_REACHED = 16,
	EVENT_CLIENT_REREGISTER = 17,
	EVENT_GID_CHANGE = 18,
	/* Polca's own events, not in ibv_event_type */
	EVENT_CQ_COMPLETION = 0x100, /**< an armed CQ got a completion (ibv_req_notify_cq) */
	EVENT_WORKER_STALL = 0x101,
	/** A message found no receive WQE and gets an RNR NAK; raised once until the next post. */
	EVENT_RQ_EMPTY = 0x102,
	/**
	 * An SMP for the subnet manager behind a port has arrived; the element is the port number.
	 */
	EVENT_SM_SMP = 0x103,
	/** A QP has gone to ERR for the reason in .failure, not because a consumer moved it. */
	EVENT_QP_ERROR = 0x104,
	/** A neighbour, .gid, has another MAC address now, .mac. The element is the port number. */
	EVENT_NEIGHBOUR_MOVED = 0x105,
	EVENT_NEIGHBOUR_LOST = 0x106, /**< it does not answer any more */
	EVENT_ADDRESS_CONFLICT = 0x107, /**< .mac uses our address .gid, too */
	/** Connections, .connection; the element is our QPN, if there is one. */
	EVENT_CONNECTION_MADE = 0x108,
	EVENT_CONNECTION_REFUSED = 0x109, /**< our REJ of a REQ */
	EVENT_CONNECTION_ENDED = 0x10A, /**< or it was not made: .end says why */
	/** A peer, .gid, has used wrong keys too often: no new connections. Element: a port. */
	EVENT_PEER_PAUSED = 0x10B,
	/** A fleet; no element. This appliance leads, or does so no more. */
	EVENT_FLEET_LEADS = 0x10C,
	EVENT_FLEET_FOLLOWS = 0x10D,
	EVENT_FLEET_CONNECTED = 0x10E, /**< etcd answers */
	EVENT_FLEET_AWAY = 0x10F, /**< it does not: changes are refused */
	EVENT_FLEET_FULL = 0x110, /**< etcd has no room: changes are refused */
	EVENT_FLEET_ROOM = 0x111, /**< it has room again */
	EVENT_FLEET_REFUSED = 0x112, /**< etcd refuses this appliance: so are changes */
};

struct connection_change {
	union gid peer; /**< zero: the peer is dlid */
	uint64_t service_id;
	uint32_t peer_qpn;
	uint16_t dlid;
	uint16_t port;
	uint16_t reason; /**< of a REJ */
	uint8_t end; /**< enum cm_end */
	uint32_t unreported; /**< changes of strangers before it that raised no event */
};

/** Why a QP went to ERR; qp_failure_infos[] says it in words. */
enum qp_failure_reason {
	QP_FAILURE_NONE, /**< it has not failed since its last RESET */
	QP_FAILURE_MODIFIED, /**< its consumer moved it to ERR */
	/* as responder: it refused a request (rc-transport 6) */
	QP_FAILURE_SEQUENCE,
	QP_FAILURE_OPCODE,
	QP_FAILURE_NOT_ENABLED,
	QP_FAILURE_NO_ROOM,
	QP_FAILURE_LENGTH,
	QP_FAILURE_DMALEN,
	QP_FAILURE_SEND_TOO_LONG,
	QP_FAILURE_ALIGNMENT,
	QP_FAILURE_RKEY,
	QP_FAILURE_RANGE,
	QP_FAILURE_SCATTER,
	QP_FAILURE_READ_MEMORY,
	/* as requester: a work request failed (rc-transport 8) */
	QP_FAILURE_NAK_INVALID,
	QP_FAILURE_NAK_ACCESS,
	QP_FAILURE_NAK_OPERATION,
	QP_FAILURE_RETRIES,
	QP_FAILURE_RNR_RETRIES,
	QP_FAILURE_BAD_RESPONSE,
	QP_FAILURE_LKEY,
	QP_FAILURE_RD_ATOMIC,
	QP_FAILURE_BIND,
	/* either */
	QP_FAILURE_CQ_OVERRUN,
	QP_FAILURE_REASONS
};

/** Which half of the QP a reason is about. */
enum qp_failure_side { QP_SIDE_NEITHER, QP_SIDE_RESPONDER, QP_SIDE_REQUESTER };

/** The explanation of a reason: explain.c. */
struct qp_failure_info {
	const char *name; /**< a word for programs */
	uint8_t side; /**< enum qp_failure_side */
	const char *happened; /**< a sentence: what was received, or what was not */
	const char *expected; /**< what the rule wants in its place */
	const char *rule; /**< which rule, and where it stands */
	const char *check; /**< what to look at next */
};
extern const struct qp_failure_info qp_failure_infos[QP_FAILURE_REASONS];

/** Why a QP went to ERR, and who its peer is. */
struct qp_failure {
	union gid peer; /**< zero: the peer is dlid */
	uint32_t peer_qpn;
	uint32_t psn; /**< of the request that failed, or of the oldest without an answer */
	uint16_t dlid;
	uint16_t port;
	uint8_t status; /**< enum wc_status of a failed work request; 0: none failed */
	uint8_t syndrome; /**< AETH syndrome of the NAK sent or received; 0: none */
	uint8_t verdict; /**< enum verdict of the packet; VERDICT_COUNT: no packet is the cause */
	uint8_t reason; /**< enum qp_failure_reason */
	/** responder: enum opcode of the packet; requester: enum wr_opcode of the request */
	uint8_t opcode;
	uint32_t expected; /**< PSN that was expected: ePSN, or the oldest without an answer */
	uint32_t length; /**< responder: bytes of payload */
	/** engine_event_trace() has the last steps by this number; 0: they were not recorded */
	uint32_t trace;
};

struct event {
	enum event_type type;
	uint32_t element; /**< QPN, CQ, SRQ or port number, as the type says */
	uint64_t time; /**< engine_events(): nanoseconds since 1970 */
	/** QP_ERROR: the last steps of a recorded QP, while lib/rc calls event(); else NULL */
	const struct trace *steps;
	union {
		struct qp_failure failure;
		struct connection_change connection;
		struct {
			union gid gid;
			uint8_t mac[6];
			bool removed; /**< GID_CHANGE: the port has .gid no more */
		};
	};
};

#define QP_FAILURE_MAX 128
/** Say in words why a QP failed. @return buf */
const char *qp_failure_print(const struct qp_failure *f, char buf[QP_FAILURE_MAX]);
#define QP_EXPLAIN_MAX 256
/** Name the packet or work request with its PSN, and what was wrong with it. @return buf */
const char *qp_failure_received(const struct qp_failure *f, char buf[QP_EXPLAIN_MAX]);
/** Name the PSN that was expected, and what else. @return buf */
const char *qp_failure_expected(const struct qp_failure *f, char buf[QP_EXPLAIN_MAX]);

const char *qp_state_name(enum qp_state s); /* "RTS" */
const char *wc_status_name(uint32_t status); /* "RETRY_EXC_ERR" */
const char *wc_opcode_name(uint32_t opcode);
const char *wr_opcode_name(uint32_t opcode);
const char *mig_state_name(enum mig_state s); /* "REARM" */
const char *event_type_name(enum event_type t); /* "QP_ACCESS_ERR" */

#endif
