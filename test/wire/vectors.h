/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_WIRE_VECTORS_H
#define TEST_WIRE_VECTORS_H

/* The test vectors of docs/spec/rc-transport.md, section 9. */

/* IBA's own example: LRH, BTH, RETH, 14 bytes, two of padding */
#define VECTOR_LOCAL                                                                               \
	"7012375C000E17D2 0A2024870087B1B3000DEC2A 01710A1C015D400238F27A050000000E"               \
	"BB884D85FD5CFBA4728BC0690ED40000"
#define VECTOR_LOCAL_ICRC "9625B75A"
#define VECTOR_LOCAL_VCRC "45FA"

/* IBA's example with a GRH whose NxtHdr is 0: good for CRCs, but the parser drops it */
#define VECTOR_GLOBAL                                                                              \
	"7013375C001817D2 6000000000320010 00000000000001250000000000000026"                       \
	"00000000000001170000000000000096 0A2024870087B1B3000DEC2A"                                \
	"01710A1C015D400238F27A050000000E BB884D85FD5CFBA4728BC0690ED40000"
#define VECTOR_GLOBAL_ICRC "1493EC46"
#define VECTOR_GLOBAL_VCRC "7C44"

/* CNP of a ConnectX-4 Lx */
#define VECTOR_CNP                                                                                 \
	"e41d2dab2bc27cfe90643b320800 45c2003c718c4000401191610a0011010a001201 000012b700280000"   \
	"8100ffff4000011800000000 00000000000000000000000000000000 82FD002A"

#define VECTOR_V4_ACK                                                                              \
	"020000000002020000000001 0800 4500003000004000401126bb0a0000010a000002"                   \
	"c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085"
#define VECTOR_V4_WRITE                                                                            \
	"020000000002020000000001 0800 4500004000004000401126ab0a0000010a000002"                   \
	"c12312b7002c0000 0a20ffff0000012380000010 00000000000010000000cafe00000002 68690000"      \
	"62d62c86"
#define VECTOR_V6_ACK                                                                              \
	"020000000002020000000001 86dd 60000000001c1140 fe800000000000000000000000000001"          \
	"fe800000000000000000000000000002 c12312b7001c0000 1100ffff0000045600000012 1f000007"      \
	"9a185e68"
#define VECTOR_V1_ACK                                                                              \
	"020000000002020000000001 8915 6000000000141b40 fe800000000000000000000000000001"          \
	"fe800000000000000000000000000002 1100ffff0000045600000012 1f000007 4bee0997"

#endif
