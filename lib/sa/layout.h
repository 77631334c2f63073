/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_LAYOUT_H
#define SA_LAYOUT_H

/**
 * @file
 * Byte offsets of the components that the server computes with (sa-multipacket B10), and their mask
 * bits (B11). The record tables describe all components; a test compares the two.
 */

#include <stdint.h>

#define SA_BIT(n) (UINT64_C(1) << (n))

#define LID_UNICAST_END   0xC000 /* the first MLID; unicast LIDs are lower */
#define LID_MULTICAST_END 0xFFFF

/* tables keyed by LID: RID = LID | port | enumeration (A6) */
#define RID_LID(lid)      ((uint32_t)(lid) << 16)
#define RID_LID_LAST(lid) ((uint32_t)(lid) << 16 | 0xFFFF)
#define LID_MASK          SA_BIT(0)

#define NODE_TYPE_CA       1
#define NODE_TYPE_SWITCH   2
#define NODE_TYPE_ROUTER   3
#define NODE_OFF_LID       0
#define NODE_OFF_TYPE      6
#define NODE_OFF_NODE_GUID 16
#define NODE_OFF_PORT_GUID 24
#define NODE_OFF_PORT      40

#define PORT_OFF_PORT      2
#define PORT_OFF_M_KEY     4
#define PORT_OFF_WIDTH     35
#define PORT_OFF_STATE     36 /* low 4 bits */
#define PORT_OFF_LMC       38 /* low 3 bits */
#define PORT_OFF_SPEED     39 /* high 4 bits */
#define PORT_OFF_MTU       40 /* high 4 bits */
#define PORT_OFF_MTU_CAP   45 /* low 4 bits */
#define PORT_OFF_SPEED_EXT 66 /* high 4 bits */

#define SWITCH_OFF_DEF_PORT 12

#define SLTOVL_OFF_VLS 8
#define VL_DROP        15 /* packets on an SL mapped to this VL are dropped */

/* forwarding tables and PathSL: RID = LID | block */
#define LFT_OFF_PORTS   8
#define LFT_PORTS       64
#define LFT_NO_PORT     0xFF
#define MFT_OFF_MASKS   8
#define RFT_OFF_ENTRIES 8
#define RFT_ENTRIES     16
#define RFT_VALID       0x8000
#define PATH_SL_OFF_SLS 8
#define PATH_SL_UNKNOWN 0xFF

#define SMINFO_OFF_SM_KEY 12

#define LINK_OFF_FROM_LID  0
#define LINK_OFF_FROM_PORT 2
#define LINK_OFF_TO_PORT   3
#define LINK_OFF_TO_LID    4

#define GUIDINFO_OFF_GUIDS 8
#define GUIDINFO_GUIDS     8
#define GUIDINFO_BIT_GUID  4

#define PKEY_OFF_PORT 4
#define PKEY_OFF_KEYS 8
#define PKEY_KEYS     32

#define SERVICE_OFF_ID    0
#define SERVICE_OFF_GID   8
#define SERVICE_OFF_PKEY  24
#define SERVICE_OFF_LEASE 28
#define SERVICE_OFF_KEY   32
#define SERVICE_KEY_LEN   16
#define SERVICE_BIT_ID    0
#define SERVICE_BIT_GID   1
#define SERVICE_BIT_PKEY  2
#define SERVICE_BIT_LEASE 4
#define SERVICE_FOREVER   0xFFFFFFFFu
#define SERVICE_LEN       176

#define MC_OFF_MGID        0
#define MC_OFF_PORT_GID    16
#define MC_OFF_QKEY        32
#define MC_OFF_MLID        36
#define MC_OFF_MTU         38 /* selector 2 bits, value 6 bits; rate and life alike */
#define MC_OFF_TCLASS      39
#define MC_OFF_PKEY        40
#define MC_OFF_RATE        42
#define MC_OFF_LIFE        43
#define MC_OFF_SL_FLOW_HOP 44
#define MC_OFF_SCOPE_STATE 48
#define MC_OFF_PROXY       49
#define MC_BIT_MGID        0
#define MC_BIT_PORT_GID    1
#define MC_BIT_QKEY        2
#define MC_BIT_MLID        3
#define MC_BIT_MTU_SEL     4
#define MC_BIT_TCLASS      6
#define MC_BIT_PKEY        7
#define MC_BIT_RATE_SEL    8
#define MC_BIT_LIFE_SEL    10
#define MC_BIT_SL          12
#define MC_BIT_FLOW        13
#define MC_BIT_HOP         14
#define MC_BIT_SCOPE       15
#define MC_BIT_STATE       16
#define MC_FULL_MEMBER     0x1
#define MC_LEN             52

#define INFORM_OFF_GID     0
#define INFORM_OFF_ENUM    16
#define INFORM_OFF_INFO    24 /* InformInfo */
#define INFORM_BIT_GID     0
#define INFO_LEN           36
#define INFO_OFF_GID       0
#define INFO_OFF_LID_BEGIN 16
#define INFO_OFF_LID_END   18
#define INFO_OFF_GENERIC   22
#define INFO_OFF_SUBSCRIBE 23
#define INFO_OFF_TYPE      24
#define INFO_OFF_TRAP      26
#define INFO_OFF_QPN       28 /* QPN 24, rsvd 3, RespTime 5 */
#define INFO_OFF_PRODUCER  33 /* 24 bits */

#define PR_OFF_DGID       8
#define PR_OFF_SGID       24
#define PR_OFF_DLID       40
#define PR_OFF_SLID       42
#define PR_OFF_FLOW_HOP   44 /* RawTraffic 1, rsvd 3, FlowLabel 20, HopLimit 8 */
#define PR_OFF_TCLASS     48
#define PR_OFF_NUMB_PATH  49 /* Reversible 1, NumbPath 7 */
#define PR_OFF_PKEY       50
#define PR_OFF_SL         52 /* QoSClass 12, SL 4 */
#define PR_OFF_MTU        54
#define PR_OFF_RATE       55
#define PR_OFF_LIFE       56
#define PR_OFF_PREFERENCE 57
#define PR_LEN            64
#define PR_BIT_DGID       2
#define PR_BIT_SGID       3
#define PR_BIT_DLID       4
#define PR_BIT_SLID       5
#define PR_BIT_RAW        6
#define PR_BIT_FLOW       8
#define PR_BIT_HOP        9
#define PR_BIT_TCLASS     10
#define PR_BIT_REVERSIBLE 11
#define PR_BIT_NUMB_PATH  12
#define PR_BIT_PKEY       13
#define PR_BIT_QOS_CLASS  14
#define PR_BIT_SL         15
#define PR_BIT_MTU_SEL    16
#define PR_BIT_MTU        17
#define PR_BIT_RATE_SEL   18
#define PR_BIT_RATE       19
#define PR_BIT_LIFE_SEL   20
#define PR_BIT_LIFE       21

/* MultiPathRecord: like PathRecord from RawTraffic to PacketLifeTime, then */
#define MPR_LEN            24 /* followed by GIDs */
#define MPR_OFF_SGID_COUNT 15
#define MPR_OFF_DGID_COUNT 16
#define MPR_BIT_SGID_COUNT 19
#define MPR_BIT_DGID_COUNT 20
#define MPR_PATH_BITS      0xFFFF /* shifted left by PR_BIT_RAW they are PathRecord's bits */

/* ClassPortInfo */
#define CPI_OFF_BASE_VERSION  0
#define CPI_OFF_CLASS_VERSION 1
#define CPI_OFF_CAPABILITY    2
#define CPI_OFF_RESP_TIME     7 /* low 5 bits of CapMask2 | RespTimeValue */
#define CPI_RESP_TIME_MASK    0x1F
#define CPI_CAP_UD_MULTICAST  0x0200
#define CPI_CAP_MULTI_PATH    0x0400

/* Notice, as a Report of the SA carries it */
#define NOTICE_OFF_TYPE          0 /* IsGeneric 1, Type 7 */
#define NOTICE_OFF_PRODUCER      1 /* 24 bits */
#define NOTICE_OFF_TRAP          4
#define NOTICE_OFF_ISSUER_LID    6
#define NOTICE_OFF_DETAILS       10
#define NOTICE_OFF_GID           16 /* of traps 64 to 67 */
#define NOTICE_OFF_ISSUER_GID    64
#define NOTICE_SECURITY          2
#define NOTICE_SUBNET_MANAGEMENT 3
#define NOTICE_CLASS_MANAGER     4
#define TRAP_IN_SERVICE          64
#define TRAP_OUT_OF_SERVICE      65
#define TRAP_GROUP_CREATED       66
#define TRAP_GROUP_DELETED       67

#endif
