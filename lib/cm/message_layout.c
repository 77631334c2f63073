/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The layouts of the CM messages (cm.md 2): one row per field, in wire order. Bits without a row
 * are reserved: ignored when received, sent as zero.
 */

#include <stddef.h>

#include "cm/message.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* member: of struct cm_msg; byte: the first byte; skip: bits of it to skip; width: in bits */
/* clang-format off */
#define G(name, member, byte, skip, width)                                                         \
	{ name, (byte)*8 + (skip), width, offsetof(struct cm_msg, member),                         \
		sizeof(((struct cm_msg *)0)->member) }
/* clang-format on */
#define F(part, member, byte, width)          G(#member, part.member, byte, 0, width)
#define BITS(part, member, byte, skip, width) G(#member, part.member, byte, skip, width)

#define LOCAL_ID  G("local_id", local_id, 0, 0, 32)
#define REMOTE_ID G("remote_id", remote_id, 4, 0, 32)

/* a path in a REQ; its first byte is a parameter */
/* clang-format off */
#define REQ_PATH(path, byte)                                                                       \
	F(req, path.local_lid, (byte), 16), F(req, path.remote_lid, (byte) + 2, 16),               \
	F(req, path.local_gid, (byte) + 4, 128), F(req, path.remote_gid, (byte) + 20, 128),        \
	F(req, path.flow_label, (byte) + 36, 20), BITS(req, path.rate, (byte) + 39, 2, 6),         \
	F(req, path.traffic_class, (byte) + 40, 8), F(req, path.hop_limit, (byte) + 41, 8),        \
	F(req, path.sl, (byte) + 42, 4), BITS(req, path.subnet_local, (byte) + 42, 4, 1),          \
	F(req, path.ack_timeout, (byte) + 43, 5)
/* clang-format on */

static const struct cm_msg_field req_fields[] = {
	LOCAL_ID,
	F(req, vendor_id, 5, 24),
	F(req, service_id, 8, 64),
	F(req, ca_guid, 16, 64),
	F(req, qkey, 28, 32),
	F(req, qpn, 32, 24),
	F(req, responder_resources, 35, 8),
	F(req, local_eecn, 36, 24),
	F(req, initiator_depth, 39, 8),
	F(req, remote_eecn, 40, 24),
	F(req, remote_response_timeout, 43, 5),
	BITS(req, transport, 43, 5, 2),
	BITS(req, flow_control, 43, 7, 1),
	F(req, psn, 44, 24),
	F(req, local_response_timeout, 47, 5),
	BITS(req, retry_count, 47, 5, 3),
	F(req, pkey, 48, 16),
	F(req, mtu, 50, 4),
	BITS(req, rdc_exists, 50, 4, 1),
	BITS(req, rnr_retry_count, 50, 5, 3),
	F(req, max_cm_retries, 51, 4),
	BITS(req, srq, 51, 4, 1),
	BITS(req, ext_transport, 51, 5, 3),
	REQ_PATH(primary, 52),
	REQ_PATH(alternate, 96),
};

static const struct cm_msg_field rep_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(rep, qkey, 8, 32),
	F(rep, qpn, 12, 24),
	F(rep, local_eecn, 16, 24),
	F(rep, psn, 20, 24),
	F(rep, responder_resources, 24, 8),
	F(rep, initiator_depth, 25, 8),
	F(rep, target_ack_delay, 26, 5),
	BITS(rep, failover, 26, 5, 2),
	BITS(rep, flow_control, 26, 7, 1),
	F(rep, rnr_retry_count, 27, 3),
	BITS(rep, srq, 27, 3, 1),
	F(rep, ca_guid, 28, 64),
};

/* RTU and DREP have no other fields */
static const struct cm_msg_field id_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
};

static const struct cm_msg_field mra_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(mra, answers, 8, 2),
	F(mra, service_timeout, 9, 5),
};

static const struct cm_msg_field rej_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(rej, answers, 8, 2),
	F(rej, ari_len, 9, 7),
	F(rej, reason, 10, 16),
	F(rej, ari, 12, 576),
};

static const struct cm_msg_field dreq_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(dreq, qpn, 8, 24),
};

static const struct cm_msg_field lap_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(lap, qpn, 12, 24),
	F(lap, remote_response_timeout, 15, 5),
	F(lap, alternate.local_lid, 20, 16),
	F(lap, alternate.remote_lid, 22, 16),
	F(lap, alternate.local_gid, 24, 128),
	F(lap, alternate.remote_gid, 40, 128),
	F(lap, alternate.flow_label, 56, 20),
	F(lap, alternate.traffic_class, 59, 8),
	F(lap, alternate.hop_limit, 60, 8),
	BITS(lap, alternate.rate, 61, 2, 6),
	F(lap, alternate.sl, 62, 4),
	BITS(lap, alternate.subnet_local, 62, 4, 1),
	F(lap, alternate.ack_timeout, 63, 5),
};

static const struct cm_msg_field apr_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(apr, info_len, 8, 8),
	F(apr, status, 9, 8),
	F(apr, info, 12, 576),
};

static const struct cm_msg_field sidr_req_fields[] = {
	F(sidr_req, request_id, 0, 32),
	F(sidr_req, pkey, 4, 16),
	F(sidr_req, service_id, 8, 64),
};

static const struct cm_msg_field sidr_rep_fields[] = {
	F(sidr_rep, request_id, 0, 32),
	F(sidr_rep, status, 4, 8),
	F(sidr_rep, info_len, 5, 8),
	F(sidr_rep, qpn, 8, 24),
	F(sidr_rep, service_id, 12, 64),
	F(sidr_rep, qkey, 20, 32),
	F(sidr_rep, info, 24, 576),
};

enum {
#define X(NAME, id, name) ATTRIBUTE_##NAME = id,
	CM_MESSAGE_LIST(X)
#undef X
};
/* private_offset: where the private data begin; NAME gives their length and the attribute ID */
/* clang-format off */
#define LAYOUT(NAME, private_offset, fields)                                                       \
	[CM_##NAME] = { ATTRIBUTE_##NAME, private_offset, CM_##NAME##_PRIVATE, fields,             \
		ARRAY_LEN(fields) }
/* clang-format on */
const struct cm_msg_layout cm_msg_layouts[CM_MESSAGES] = {
	LAYOUT(REQ, 140, req_fields),
	LAYOUT(MRA, 10, mra_fields),
	LAYOUT(REJ, 84, rej_fields),
	LAYOUT(REP, 36, rep_fields),
	LAYOUT(RTU, 8, id_fields),
	LAYOUT(DREQ, 12, dreq_fields),
	LAYOUT(DREP, 8, id_fields),
	LAYOUT(SIDR_REQ, 16, sidr_req_fields),
	LAYOUT(SIDR_REP, 96, sidr_rep_fields),
	LAYOUT(LAP, 64, lap_fields),
	LAYOUT(APR, 84, apr_fields),
};
