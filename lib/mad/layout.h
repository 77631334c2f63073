/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_LAYOUT_H
#define MAD_LAYOUT_H

/**
 * @file
 * Layout of a management datagram (sa-multipacket A1, B1): offsets from its first byte, all fields
 * big-endian, and the values of the fields.
 */

#define MAD_LEN          256
#define MAD_QKEY         0x80010000u /* the Q_Key of QP1 */
#define MAD_BASE_VERSION 1

/* common header */
#define MAD_OFF_BASE_VERSION   0
#define MAD_OFF_CLASS          1
#define MAD_OFF_CLASS_VERSION  2
#define MAD_OFF_METHOD         3
#define MAD_OFF_STATUS         4
#define MAD_OFF_CLASS_SPECIFIC 6
#define MAD_OFF_TID            8
#define MAD_OFF_ATTRIBUTE      16
#define MAD_OFF_MODIFIER       20
#define MAD_HEADER_LEN         24

#define MAD_CLASS_SUBN_LID    0x01 /* SMPs, LID routed */
#define MAD_CLASS_SUBN_ADM    0x03
#define MAD_CLASS_PERFORMANCE 0x04
#define MAD_CLASS_SUBN_ROUTED 0x81 /* SMPs, directed route */

#define MAD_RESPONSE     0x80 /* the R bit of the method */
#define MAD_GET          0x01
#define MAD_SET          0x02
#define MAD_GET_RESP     0x81
#define MAD_SEND         0x03
#define MAD_TRAP         0x05
#define MAD_REPORT       0x06
#define MAD_REPORT_RESP  0x86
#define MAD_TRAP_REPRESS 0x07

/* common status (B2) */
#define MAD_STATUS_OK              0x0000
#define MAD_STATUS_BUSY            0x0001
#define MAD_STATUS_BAD_VERSION     0x0004
#define MAD_STATUS_BAD_METHOD      0x0008
#define MAD_STATUS_BAD_METHOD_ATTR 0x000C
#define MAD_STATUS_INVALID_FIELD   0x001C

/* SMPs (smp-sma 2); the top bit of a directed-route status is D: the SMP returns */
#define SMP_OFF_M_KEY        24
#define SMP_OFF_DATA         64
#define SMP_DATA_LEN         64
#define SMP_OFF_HOP_POINTER  6
#define SMP_OFF_HOP_COUNT    7
#define SMP_OFF_DR_SLID      32
#define SMP_OFF_DR_DLID      34
#define SMP_OFF_INITIAL_PATH 128
#define SMP_OFF_RETURN_PATH  192
#define SMP_PATH_LEN         64 /* byte 0 unused: up to 63 hops */
#define SMP_RETURNING        0x8000

/* vendor classes with an OUI and optional RMPP (liveness 1) */
#define VENDOR_CLASS_FIRST 0x30
#define VENDOR_CLASS_LAST  0x4F
#define VENDOR_OFF_OUI     37
#define VENDOR_OFF_DATA    40
#define VENDOR_AREA        216

/* class version 1 of the SA (A1) */
#define SA1_OFF_SA_KEY      24
#define SA1_OFF_SM_KEY      32
#define SA1_OFF_SEGMENT     40
#define SA1_OFF_PAYLOAD_LEN 44
#define SA1_OFF_FRAGMENT    48
#define SA1_OFF_EDIT        49
#define SA1_OFF_WINDOW      50
#define SA1_OFF_END_RID     52
#define SA1_OFF_MASK        56
#define SA1_OFF_DATA        64
#define SA1_AREA            192

/* FragmentFlag in its default reading, bit 0 = the most significant (A3) */
#define SA1_FIRST     0x80
#define SA1_LAST      0x20
#define SA1_RESEND    0x10
#define SA1_ACK       0x04
#define SA1_KEEPALIVE 0x01
#define SA1_FLAGS     0xB5

#define SA1_WINDOW_DEFAULT 64

/* RMPP (B1) */
#define RMPP_OFF_VERSION 24
#define RMPP_OFF_TYPE    25
#define RMPP_OFF_FLAGS   26 /* [7:3] RRespTime, [2:0] flags */
#define RMPP_OFF_STATUS  27
#define RMPP_OFF_SEGMENT 28
#define RMPP_OFF_LENGTH  32 /* DATA: PayloadLength; ACK: NewWindowLast */
#define RMPP_HEADER_LEN  36
#define RMPP_AREA        220

#define RMPP_VERSION 1
#define RMPP_DATA    1
#define RMPP_ACK     2
#define RMPP_STOP    3
#define RMPP_ABORT   4

#define RMPP_ACTIVE         0x01
#define RMPP_FIRST          0x02
#define RMPP_LAST           0x04
#define RMPP_RRESPTIME_NONE 0x1F

/* RMPP status (B3) */
#define RMPP_STATUS_RESX        1
#define RMPP_STATUS_T2L         118
#define RMPP_STATUS_BAD_LEN     119
#define RMPP_STATUS_BAD_FIRST   120
#define RMPP_STATUS_BAD_TYPE    121
#define RMPP_STATUS_W2S         122
#define RMPP_STATUS_S2B         123
#define RMPP_STATUS_BAD_STATUS  124
#define RMPP_STATUS_BAD_VERSION 125
#define RMPP_STATUS_RETRIES     126
#define RMPP_STATUS_UNSPECIFIED 127

/* class version 2 of the SA (B1) */
#define SA2_OFF_SM_KEY      36
#define SA2_OFF_ATTR_OFFSET 44 /* record stride in 8-byte units */
#define SA2_OFF_MASK        48
#define SA2_OFF_DATA        56
#define SA2_HEADER_LEN      20 /* class header, included in every PayloadLength (B4) */
#define SA2_AREA            200

/* methods of the SA (A2, B7): the class version decides what 0x13 and 0x14 mean */
#define SA1_INFORM    0x10
#define SA_GET_TABLE  0x12
#define SA1_GET_BULK  0x13
#define SA1_CONFIG    0x14
#define SA2_GET_TRACE 0x13
#define SA2_GET_MULTI 0x14
#define SA2_DELETE    0x15

/* SA status, [15:8] of the status (A8, B8) */
#define SA_STATUS_NO_RESOURCES 0x0100
#define SA_STATUS_REQ_INVALID  0x0200
#define SA_STATUS_NO_RECORDS   0x0300
#define SA_STATUS_TOO_MANY     0x0400
#define SA_STATUS_INVALID_GID  0x0500
#define SA_STATUS_INSUFFICIENT 0x0600
#define SA_STATUS_DENIED       0x0700

#endif
