/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_CODES_H
#define CM_CODES_H

/**
 * @file
 * Numbers and names of the communication manager: messages, REJ reasons, states (cm.md 1, 3, 6).
 */

/* X(NAME, attribute ID, name) */
/* clang-format off */
#define CM_MESSAGE_LIST(X)                                                                         \
	X(REQ, 0x0010, "REQ")                                                                      \
	X(MRA, 0x0011, "MRA")                                                                      \
	X(REJ, 0x0012, "REJ")                                                                      \
	X(REP, 0x0013, "REP")                                                                      \
	X(RTU, 0x0014, "RTU")                                                                      \
	X(DREQ, 0x0015, "DREQ")                                                                    \
	X(DREP, 0x0016, "DREP")                                                                    \
	X(SIDR_REQ, 0x0017, "SIDR_REQ")                                                            \
	X(SIDR_REP, 0x0018, "SIDR_REP")                                                            \
	X(LAP, 0x0019, "LAP")                                                                      \
	X(APR, 0x001A, "APR")
/* clang-format on */

enum cm_message {
#define X(NAME, id, name) CM_##NAME,
	CM_MESSAGE_LIST(X)
#undef X
		CM_MESSAGES
};

/* X(NAME, number, name) */
/* clang-format off */
#define CM_REASON_LIST(X)                                                                          \
	X(NO_QP, 1, "no QP")                                                                       \
	X(NO_EEC, 2, "no EE context")                                                              \
	X(NO_RESOURCES, 3, "no resources")                                                         \
	X(TIMEOUT, 4, "timeout")                                                                   \
	X(UNSUPPORTED, 5, "unsupported request")                                                   \
	X(INVALID_ID, 6, "invalid communication ID")                                               \
	X(INVALID_INSTANCE, 7, "invalid communication instance")                                   \
	X(INVALID_SERVICE_ID, 8, "invalid service ID")                                             \
	X(INVALID_TRANSPORT, 9, "invalid transport type")                                          \
	X(STALE, 10, "stale connection")                                                           \
	X(NO_RDC, 11, "RDC does not exist")                                                        \
	X(INVALID_GID, 12, "primary GID rejected")                                                 \
	X(INVALID_LID, 13, "primary LID rejected")                                                 \
	X(INVALID_SL, 14, "primary SL rejected")                                                   \
	X(INVALID_TRAFFIC_CLASS, 15, "primary traffic class rejected")                             \
	X(INVALID_HOP_LIMIT, 16, "primary hop limit rejected")                                     \
	X(INVALID_RATE, 17, "primary packet rate rejected")                                        \
	X(INVALID_ALT_GID, 18, "alternate GID rejected")                                           \
	X(INVALID_ALT_LID, 19, "alternate LID rejected")                                           \
	X(INVALID_ALT_SL, 20, "alternate SL rejected")                                             \
	X(INVALID_ALT_TRAFFIC_CLASS, 21, "alternate traffic class rejected")                       \
	X(INVALID_ALT_HOP_LIMIT, 22, "alternate hop limit rejected")                               \
	X(INVALID_ALT_RATE, 23, "alternate packet rate rejected")                                  \
	X(PORT_CM_REDIRECT, 24, "port and CM redirection")                                         \
	X(PORT_REDIRECT, 25, "port redirection")                                                   \
	X(INVALID_MTU, 26, "path MTU rejected")                                                    \
	X(FEW_RESPONDER_RESOURCES, 27, "insufficient responder resources")                         \
	X(CONSUMER, 28, "consumer rejected")                                                       \
	X(RNR_RETRY_COUNT, 29, "RNR retry count rejected")                                         \
	X(DUPLICATE_ID, 30, "duplicate local communication ID")                                    \
	X(INVALID_CLASS_VERSION, 31, "unsupported class version")                                  \
	X(INVALID_FLOW_LABEL, 32, "primary flow label rejected")                                   \
	X(INVALID_ALT_FLOW_LABEL, 33, "alternate flow label rejected")                             \
	X(VENDOR_OPTION, 35, "vendor option not supported")
/* clang-format on */

enum cm_reason {
#define X(NAME, number, name) CM_REJ_##NAME = number,
	CM_REASON_LIST(X)
#undef X
		CM_REASONS = 36 /* length of arrays by reason; element 0 counts unknown reasons */
};

/* The states of cm.md 6 */
/* clang-format off */
#define CM_STATE_LIST(X)                                                                           \
	X(IDLE)                                                                                    \
	X(REQ_SENT) /* active */                                                                   \
	X(MRA_REQ_RCVD)                                                                            \
	X(REP_RCVD)                                                                                \
	X(REQ_RCVD) /* passive */                                                                  \
	X(MRA_REQ_SENT)                                                                            \
	X(REP_SENT)                                                                                \
	X(MRA_REP_RCVD)                                                                            \
	X(ESTABLISHED) /* either */                                                                \
	X(DREQ_SENT)                                                                               \
	X(DREQ_RCVD)                                                                               \
	X(TIMEWAIT)
/* clang-format on */

enum cm_state {
#define X(name) CM_STATE_##name,
	CM_STATE_LIST(X)
#undef X
		CM_STATES
};

/* APR status, SIDR status (cm.md 3) */
enum cm_apr_status {
	CM_APR_OK,
	CM_APR_INVALID_ID,
	CM_APR_UNSUPPORTED,
	CM_APR_REJECTED,
	CM_APR_REDIRECT,
	CM_APR_IS_CURRENT,
	CM_APR_INVALID_QPN,
	CM_APR_INVALID_LID,
	CM_APR_INVALID_GID,
	CM_APR_INVALID_FLOW_LABEL,
	CM_APR_INVALID_TRAFFIC_CLASS,
	CM_APR_INVALID_HOP_LIMIT,
	CM_APR_INVALID_RATE,
	CM_APR_INVALID_SL,
};

enum cm_sidr_status {
	CM_SIDR_OK,
	CM_SIDR_UNSUPPORTED,
	CM_SIDR_REJECTED,
	CM_SIDR_NO_QP,
	CM_SIDR_REDIRECT,
	CM_SIDR_BAD_VERSION,
};

/** Names such as "REQ", "invalid service ID", "REP_SENT"; "?" for an unknown number. */
const char *cm_message_name(unsigned int message);
const char *cm_reason_name(unsigned int reason);
const char *cm_state_name(unsigned int state);

#endif
