/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RING_PROTOCOL_H
#define RING_PROTOCOL_H

/**
 * @file
 * The verbs socket: a SEQPACKET Unix socket on which a client makes, changes and destroys its
 * objects. Data never passes here.
 *
 * A client sends one request in a message and reads one reply; the first request is HELLO. Objects
 * are named by slots of the client's own tables, chosen by polca: nobody can name what is
 * another's. When the socket ends, all of the client's objects are destroyed.
 *
 * With HELLO a program may pass the mirror of another device that it has opened: the new one then
 * shares it, since a page can be in one file only. Who holds that descriptor may.
 *
 * A connection whose first request is CM_OPEN stands for a program's use of librdmacm instead of a
 * device. It has event channels, and passes the commands that librdmacm writes to the kernel's
 * device, as they are (rdma/rdma_user_cm.h).
 *
 * With MR_REGISTER a program may pass a file in memory that it has mapped shared, open for reading
 * and writing: then the region's address is the offset in it. A program that has mapped such a
 * file, and has neither its path nor a descriptor, asks by MR_REGISTER_RANGE: polca opens the file
 * at the address in the program that sends the request, if polca has the capabilities for it.
 *
 * HELLO has a magic number, major and minor version, and feature bits. Another major version is
 * refused. A minor version adds requests and uses reserved fields; each side uses only what the
 * other's features name, whatever its minor version. A request of a feature that HELLO has not
 * named is no request.
 */

#include <stdint.h>

#define RING_MAGIC 0x61636c6f70000001u
#define RING_MAJOR 1
#define RING_MINOR 4

/** What can be asked for beyond the first version. HELLO: each side says what it knows. */
#define RING_FEATURE_WINDOWS   UINT64_C(1) /**< RING_MW_ALLOC, RING_MW_FREE */
#define RING_FEATURE_SHARED    UINT64_C(2) /**< RING_MR_REGISTER with a file */
#define RING_FEATURE_RANGES    UINT64_C(4) /**< RING_MR_REGISTER_RANGE */
#define RING_FEATURE_SRQ_QUERY UINT64_C(8) /**< RING_SRQ_QUERY */
#define RING_FEATURES                                                                              \
	(RING_FEATURE_WINDOWS | RING_FEATURE_SHARED | RING_FEATURE_RANGES | RING_FEATURE_SRQ_QUERY)

/** Slot of no object. */
#define RING_NONE     UINT32_MAX
#define RING_GIDS_MAX 64

enum ring_request_code {
	RING_HELLO,
	RING_QUERY_PORT,
	RING_PD_ALLOC,
	RING_PD_FREE,
	RING_MR_REGISTER,
	RING_MR_DEREGISTER,
	RING_CHANNEL_CREATE,
	RING_CHANNEL_DESTROY,
	RING_CQ_CREATE,
	RING_CQ_DESTROY,
	RING_SRQ_CREATE,
	RING_SRQ_MODIFY,
	RING_SRQ_DESTROY,
	RING_QP_CREATE,
	RING_QP_MODIFY,
	RING_QP_QUERY,
	RING_QP_DESTROY,
	RING_CM_OPEN, /* with struct ring_hello; from minor version 1 on */
	RING_CM_CHANNEL_OPEN,
	RING_CM_CHANNEL_CLOSE,
	RING_CM_COMMAND,
	RING_MW_ALLOC, /* from minor version 2 on; as many windows as regions */
	RING_MW_FREE,
	RING_MR_REGISTER_RANGE, /* with struct ring_mr; from minor version 3 on */
	RING_SRQ_QUERY, /* from minor version 4 on */
	RING_REQUESTS
};

struct ring_hello {
	uint64_t magic;
	uint32_t major;
	uint32_t minor;
	uint64_t features; /**< that the client knows */
	uint32_t port; /**< of polca: a device has one port */
	uint32_t reserved;
};

/** Where parts of the segment are. */
struct ring_geometry {
	uint64_t bytes;
	uint64_t doorbells;
	uint64_t queues;
	uint64_t cqs;
	uint32_t num_queues; /**< slots; also places of the doorbell ring: a power of two */
	uint32_t num_cqs;
};

struct ring_limits {
	uint64_t max_mr_size;
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_rd_atomic;
	uint32_t max_channels;
};

/**
 * Descriptors that come with it, in this order: segment, mirror, wake pipe, and both ends of the
 * event pipe, which the program reads. The writing end is for the provider, which says when polca
 * is gone; its flags are not those of polca's own.
 */
#define RING_HELLO_FDS 5
/** With a completion channel: both ends of its pipe, likewise. */
#define RING_CHANNEL_FDS 2
struct ring_hello_reply {
	uint32_t major;
	uint32_t minor;
	uint64_t features; /**< of those that the client knows, what polca serves */
	struct ring_geometry geometry;
	struct ring_limits limits;
	uint64_t node_guid;
	char version[32]; /**< of polca, for people */
	uint32_t max_mw; /**< 0: an older polca, which allows as many windows as regions */
	uint32_t reserved;
};

struct ring_port_reply {
	uint32_t state; /**< ibv_port_state */
	uint32_t max_mtu; /**< ibv_mtu */
	uint32_t active_mtu;
	uint32_t num_gids;
	uint32_t num_pkeys;
	uint32_t speed_mbps;
	uint16_t pkey[16];
};

struct ring_slot {
	uint32_t slot;
	uint32_t reserved;
};

struct ring_mr {
	/** of the client, and offset in the mirror; or in the passed file; RANGE: of the client */
	uint64_t addr;
	uint64_t length;
	uint64_t iova; /**< address that work requests and peers use for the first byte */
	uint32_t pd;
	uint32_t access; /**< ibv_access_flags */
};

/** A window or, of a region, lkey and rkey. */
struct ring_mr_reply {
	uint32_t slot;
	uint32_t key;
};

struct ring_mw {
	uint32_t pd;
	uint32_t type; /**< ibv_mw_type */
};

struct ring_cq_create {
	uint64_t cookie; /**< what a completion event says */
	uint32_t cqe;
	uint32_t channel; /**< or RING_NONE */
};

struct ring_cq_reply {
	uint64_t entries; /**< offset */
	uint32_t slot;
	uint32_t num; /**< entries: a power of two */
};

struct ring_caps {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct ring_qp_create {
	uint64_t cookie; /**< what an asynchronous event says */
	struct ring_caps caps;
	uint32_t pd;
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq; /**< or RING_NONE */
	uint32_t sq_sig_all;
	uint32_t reserved;
};

struct ring_queue_reply {
	uint64_t send_entries; /**< offset */
	uint64_t receive_entries;
	uint32_t slot;
	uint32_t number; /**< QPN */
	uint32_t send_num; /**< entries: powers of two, or 0 */
	uint32_t receive_num;
	uint32_t send_stride;
	uint32_t receive_stride;
	struct ring_caps caps; /**< as they are, at least those asked for */
	uint32_t reserved;
};

struct ring_srq_create {
	uint64_t cookie;
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t reserved; /**< an older provider's limit, which ibv_create_srq() does not set */
};

struct ring_srq_modify {
	uint32_t slot;
	uint32_t limit;
};

struct ring_srq_reply {
	uint32_t limit; /**< 0: not armed, or not any more */
	uint32_t reserved;
};

struct ring_path {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t dlid;
	uint16_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t src_path_bits;
	uint32_t reserved;
};

/** Attributes of a queue pair, as ibv_qp_attr has them. */
struct ring_qp_attr {
	uint32_t slot;
	uint32_t mask; /**< ibv_qp_attr_mask */
	uint32_t qp_state;
	uint32_t cur_qp_state;
	uint32_t path_mtu; /**< ibv_mtu */
	uint32_t path_mig_state;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	uint32_t qp_access_flags;
	struct ring_path path;
	struct ring_path alt_path;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_timeout;
	uint8_t en_sqd_async_notify;
};

#define RING_CM_BYTES 640

/** A command of librdmacm, and in the reply what it wants to be written to its response. */
struct ring_cm_command {
	uint32_t channel; /**< on which it was written */
	uint32_t from; /**< MIGRATE_ID: the channel that its descriptor stands for */
	uint32_t length; /**< of the command; the value of an option follows it */
	uint32_t reserved;
	uint8_t bytes[RING_CM_BYTES];
};

struct ring_cm_reply {
	uint32_t length;
	uint32_t reserved;
	uint8_t bytes[RING_CM_BYTES];
};

/** A request has the size of its member. */
struct ring_request {
	uint32_t code; /**< enum ring_request_code */
	uint32_t reserved;
	union {
		struct ring_hello hello;
		struct ring_slot slot;
		struct ring_mr mr;
		struct ring_mw mw;
		struct ring_cq_create cq;
		struct ring_srq_create srq;
		struct ring_srq_modify srq_modify;
		struct ring_qp_create qp;
		struct ring_qp_attr attr;
		struct ring_cm_command cm;
	};
};

struct ring_reply {
	int32_t error; /**< errno value, 0: done */
	uint32_t reserved;
	union {
		char text[256]; /**< with .error: why, for people */
		struct ring_hello_reply hello;
		struct ring_port_reply port;
		struct ring_slot slot;
		struct ring_mr_reply mr;
		struct ring_cq_reply cq;
		struct ring_queue_reply queue;
		struct ring_srq_reply srq;
		struct ring_qp_attr attr;
		struct ring_cm_reply cm;
	};
};

/** What a completion channel's pipe carries; as struct ib_uverbs_comp_event_desc. */
struct ring_completion_event {
	uint64_t cookie;
};

/** What the event pipe carries; as struct ib_uverbs_async_event_desc. */
struct ring_async_event {
	uint64_t cookie; /**< of the queue pair, CQ or SRQ; a port's number; 0 */
	uint32_t type; /**< ibv_event_type */
	uint32_t reserved;
};

#endif
