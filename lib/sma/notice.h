/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_NOTICE_H
#define SMA_NOTICE_H

/*
 * Private to lib/sma: the Notice attribute (smp-sma 5), offsets from its first byte, all fields
 * big-endian.
 */

#include "sma/sma.h"

#define NOTICE_OFF_TYPE       0 /* IsGeneric 1, Type 7 */
#define NOTICE_OFF_PRODUCER   1 /* 24 bits */
#define NOTICE_OFF_NUMBER     4
#define NOTICE_OFF_ISSUER_LID 6
#define NOTICE_OFF_TOGGLE     8 /* 1, Count 15 */
#define NOTICE_OFF_DETAILS    10

#define NOTICE_GENERIC     0x80
#define NOTICE_TYPE_MASK   0x7F
#define NOTICE_PRODUCER_CA 1

enum sma_notice_type {
	NOTICE_FATAL,
	NOTICE_URGENT,
	NOTICE_SECURITY,
	NOTICE_SUBNET_MANAGEMENT,
	NOTICE_INFORMATIONAL,
};

enum sma_trap_number {
	TRAP_LINK_INTEGRITY = 129,
	TRAP_BUFFER_OVERRUN = 130,
	TRAP_FLOW_CONTROL = 131,
	TRAP_LOCAL_CHANGE = 144,
	TRAP_SYSTEM_IMAGE = 145,
	TRAP_BAD_M_KEY = 256,
	TRAP_BAD_P_KEY = 257,
	TRAP_BAD_Q_KEY = 258,
};

/* 129 to 131, 144, 145, 256: LID of the port */
#define NOTICE_OFF_LID 12
/* 129 to 131 */
#define NOTICE_OFF_PORT 14
/* 144 */
#define NOTICE_OFF_OTHER_CHANGES 15
#define NOTICE_OFF_CAP_MASK      16
#define NOTICE_OFF_CHANGE_FLAGS  20
#define NOTICE_OFF_CAP_MASK2     22
/* 145 */
#define NOTICE_OFF_IMAGE_GUID 16
/* 256 */
#define NOTICE_OFF_DR_SLID     14
#define NOTICE_OFF_METHOD      16
#define NOTICE_OFF_ATTRIBUTE   18
#define NOTICE_OFF_MODIFIER    20
#define NOTICE_OFF_M_KEY       24
#define NOTICE_OFF_DR          33 /* DRNotice 1, Truncated 1, HopCount 6 */
#define NOTICE_OFF_RETURN_PATH 34
#define NOTICE_RETURN_PATH_LEN 30
#define NOTICE_DR              0x80
#define NOTICE_DR_TRUNCATED    0x40
#define NOTICE_HOP_COUNT       0x3F
/* 257, 258 */
#define NOTICE_OFF_LID1   12
#define NOTICE_OFF_LID2   14
#define NOTICE_OFF_KEY    16
#define NOTICE_OFF_SL_QP1 20
#define NOTICE_OFF_QP2    24
#define NOTICE_OFF_GID1   28
#define NOTICE_OFF_GID2   44

#endif
