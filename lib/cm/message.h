/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_MESSAGE_H
#define CM_MESSAGE_H

/**
 * @file
 * Encoding of CM messages (cm.md 1, 2, 7): a struct of host-order fields for each message, and one
 * layout table per message that decoding, encoding, printing and tests read. Pure functions: any
 * lcore, no state.
 *
 * "Local" and "remote" are as the sender of the message sees them, as in the standard.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "cm/codes.h"
#include "mad/layout.h"
#include "wire/packet.h"

#define CM_INFO_LEN 72 /* ARI of a REJ, additional information of an APR and a SIDR_REP, bytes */

/* room for private data, bytes; cm.h has the other messages */
#define CM_MRA_PRIVATE      222
#define CM_DREP_PRIVATE     224
#define CM_LAP_PRIVATE      168
#define CM_APR_PRIVATE      148
#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136

/* TransportService of a REQ */
enum cm_transport {
	CM_TRANSPORT_RC,
	CM_TRANSPORT_UC,
	CM_TRANSPORT_RD,
	CM_TRANSPORT_EXTENDED,
};
/* which message an MRA or REJ answers */
enum cm_answered {
	CM_ANSWERS_REQ,
	CM_ANSWERS_REP,
	CM_ANSWERS_OTHER, /* REJ */
	CM_ANSWERS_LAP = CM_ANSWERS_OTHER, /* MRA */
};

/** A path as REQ and LAP carry it. GIDs are in network order. */
struct cm_msg_path {
	uint16_t local_lid;
	uint16_t remote_lid;
	union gid local_gid;
	union gid remote_gid;
	uint32_t flow_label; /**< 20 bits */
	uint8_t rate; /**< 6 bits, PathRecord's code; 0: the port's */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl; /**< 4 bits */
	bool subnet_local;
	uint8_t ack_timeout; /**< 5 bits, a code: cm_ack_timeout() (timing.h) */
};

struct cm_req {
	uint32_t vendor_id; /**< 24 bits; with ECE only, else 0 */
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey; /**< RD only */
	uint32_t qpn;
	uint8_t responder_resources; /**< Reads and Atomics that the sender can answer at once */
	uint8_t initiator_depth; /**< Reads and Atomics that the sender wants outstanding */
	uint32_t local_eecn;
	uint32_t remote_eecn;
	uint8_t remote_response_timeout; /**< code; RemoteCMResponseTimeout */
	uint8_t transport; /**< enum cm_transport */
	bool flow_control; /**< end to end */
	uint32_t psn; /**< where the receiver's sending starts (cm.md 4) */
	uint8_t local_response_timeout; /**< code; LocalCMResponseTimeout */
	uint8_t retry_count;
	uint16_t pkey;
	uint8_t mtu; /**< code, 1..5: 256..4096 */
	bool rdc_exists;
	uint8_t rnr_retry_count;
	uint8_t max_cm_retries;
	bool srq;
	uint8_t ext_transport; /**< 1: XRC */
	struct cm_msg_path primary;
	struct cm_msg_path alternate; /**< all zero: none; cm_msg_path_present() */
};

struct cm_rep {
	uint32_t qkey;
	uint32_t qpn;
	uint32_t local_eecn;
	uint32_t psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /**< code */
	uint8_t failover; /**< FailoverAccepted, 2 bits: 0 accepted, 1 not supported, 2 rejected */
	bool flow_control;
	uint8_t rnr_retry_count;
	bool srq;
	uint64_t ca_guid;
};

struct cm_mra {
	uint8_t answers; /**< enum cm_answered */
	uint8_t service_timeout; /**< code */
};

struct cm_rej {
	uint8_t answers; /**< enum cm_answered */
	uint8_t ari_len; /**< at most CM_INFO_LEN */
	uint16_t reason; /**< enum cm_reason (codes.h) */
	uint8_t ari[CM_INFO_LEN];
};

struct cm_dreq {
	uint32_t qpn; /**< of the receiver of the DREQ */
};

struct cm_lap {
	uint32_t qpn; /**< of the receiver of the LAP */
	uint8_t remote_response_timeout; /**< code */
	struct cm_msg_path alternate;
};

struct cm_apr {
	uint8_t info_len; /**< at most CM_INFO_LEN */
	uint8_t status; /**< enum cm_apr_status (codes.h) */
	uint8_t info[CM_INFO_LEN];
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /**< enum cm_sidr_status (codes.h) */
	uint8_t info_len; /**< at most CM_INFO_LEN */
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[CM_INFO_LEN];
};

/** A message; RTU and DREP have no fields but the IDs. */
struct cm_msg {
	enum cm_message type;
	uint64_t tid;
	uint32_t local_id; /**< the sender's; SIDR messages have none */
	uint32_t remote_id; /**< the receiver's; REQ and SIDR messages have none */
	union {
		struct cm_req req;
		struct cm_rep rep;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_dreq dreq;
		struct cm_lap lap;
		struct cm_apr apr;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
	};
	/** Decoded: points to the whole area, in the MAD. To encode: NULL or private_len bytes. */
	const uint8_t *private_data;
	uint8_t private_len; /**< at most cm_msg_layouts[type].private_len */
};

/** One field: its place on the wire and in struct cm_msg. */
struct cm_msg_field {
	const char *name; /**< as the member's: "qpn" for LocalQPN */
	uint16_t offset; /**< in bits, counted from the end of the MAD header as in the sheet */
	uint16_t width; /**< bits; a field of 128 or more is copied as bytes */
	uint16_t member; /**< offset in struct cm_msg */
	uint8_t size; /**< bytes of the member */
};

struct cm_msg_layout {
	uint16_t attribute;
	uint8_t private_offset; /**< from the end of the MAD header */
	uint8_t private_len; /**< room for private data */
	const struct cm_msg_field *fields;
	unsigned int num_fields;
};
extern const struct cm_msg_layout cm_msg_layouts[CM_MESSAGES];

/**
 * Decode a message. Only header and attribute are checked; the state machine checks the values (a
 * reserved transport, path MTU 0). Information lengths are cut to CM_INFO_LEN.
 *
 * @param m  private_data points into @p mad
 * @retval -EPROTONOSUPPORT  base version, class or class version
 * @retval -EOPNOTSUPP       method is not Send
 * @retval -EBADMSG          attribute is not one of the eleven messages
 */
int cm_msg_decode(const uint8_t mad[MAD_LEN], struct cm_msg *m);
/** Encode a message, all MAD_LEN bytes. A value too large for its field loses its top bits. */
void cm_msg_encode(const struct cm_msg *m, uint8_t mad[MAD_LEN]);

/** False if all LIDs and GIDs are zero: "no alternate path" (cm.md 2). */
bool cm_msg_path_present(const struct cm_msg_path *path);

/* --- RDMA-CM's header in front of the private data of a REQ or SIDR_REQ (cm.md 7) --- */

#define CM_RDMA_LEN 36

/** Port space (CM_PS_...) of an RDMA-CM service ID; 0: not RDMA-CM, private data have no header. */
uint16_t cm_port_space(uint64_t service_id);
/** @param data  CM_RDMA_LEN bytes. @retval -EINVAL  CMA version not 0, IP version not 4 or 6 */
int cm_rdma_decode(const uint8_t *data, struct cm_rdma *rdma);
/** The IP version is 4 if both addresses are IPv4. @param data  room for CM_RDMA_LEN bytes */
void cm_rdma_encode(const struct cm_rdma *rdma, uint8_t *data);

#endif
