/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

/**
 * @file
 * The opcode table: one row has all properties of an opcode (rc-transport 2). Parser, sequence
 * check, printing and tests read it.
 */

#include <stdint.h>

/* service classes, top three bits */
#define OPCODE_RC 0x00
#define OPCODE_UC 0x20
#define OPCODE_UD 0x60
/* clang-format off */
#define OPCODE_CLASS(op) ((op) & 0xE0)
/* clang-format on */

enum opcode {
	RC_SEND_FIRST = 0x00,
	RC_SEND_MIDDLE = 0x01,
	RC_SEND_LAST = 0x02,
	RC_SEND_LAST_IMM = 0x03,
	RC_SEND_ONLY = 0x04,
	RC_SEND_ONLY_IMM = 0x05,
	RC_WRITE_FIRST = 0x06,
	RC_WRITE_MIDDLE = 0x07,
	RC_WRITE_LAST = 0x08,
	RC_WRITE_LAST_IMM = 0x09,
	RC_WRITE_ONLY = 0x0A,
	RC_WRITE_ONLY_IMM = 0x0B,
	RC_READ_REQUEST = 0x0C,
	RC_READ_RESP_FIRST = 0x0D,
	RC_READ_RESP_MIDDLE = 0x0E,
	RC_READ_RESP_LAST = 0x0F,
	RC_READ_RESP_ONLY = 0x10,
	RC_ACK = 0x11,
	RC_ATOMIC_ACK = 0x12,
	RC_CMP_SWAP = 0x13,
	RC_FETCH_ADD = 0x14,
	RC_SEND_LAST_INV = 0x16,
	RC_SEND_ONLY_INV = 0x17,
	RC_FLUSH = 0x1C, /* IBA 1.5: named in the table, not supported by our QPs */
	RC_ATOMIC_WRITE = 0x1D,
	UD_SEND_ONLY = 0x64,
	UD_SEND_ONLY_IMM = 0x65,
	OPCODE_CNP = 0x81,
};

/* opcode_info.flags: position in the message, operation, effects */
#define OP_FIRST      0x0001
#define OP_MIDDLE     0x0002
#define OP_LAST       0x0004
#define OP_ONLY       (OP_FIRST | OP_LAST)
#define OP_SEND       0x0008
#define OP_WRITE      0x0010
#define OP_READ       0x0020
#define OP_ATOMIC     0x0040
#define OP_REQUEST    0x0080
#define OP_RESPONSE   0x0100
#define OP_RQ_WQE     0x0200 /* takes a receive WQE: starts a Send, or has a Write's immediate */
#define OP_INVALIDATE 0x0400
#define OP_VALID      0x8000 /* a defined opcode */

/* opcode_info.headers: extension headers */
#define HDR_DETH      0x01
#define HDR_RETH      0x02
#define HDR_ATOMICETH 0x04
#define HDR_AETH      0x08
#define HDR_ATOMICACK 0x10
#define HDR_IMM       0x20
#define HDR_IETH      0x40
#define HDR_FETH      0x80 /* before the RETH; its bits are ignored */

enum payload_rule {
	PAYLOAD_NONE, /* 0 */
	PAYLOAD_PMTU, /* exactly the path MTU */
	PAYLOAD_SOME, /* 1..PMTU */
	PAYLOAD_ANY, /* 0..PMTU */
};

struct opcode_info {
	const char *name; /**< "SEND First" */
	uint16_t flags; /**< OP_ */
	uint8_t headers; /**< HDR_ */
	uint8_t header_len; /**< bytes of BTH plus extension headers */
	uint8_t payload; /**< enum payload_rule */
};

extern const struct opcode_info opcodes[256];

/* AETH syndrome (rc-transport 3) */
#define AETH_ACK     0x00
#define AETH_RNR_NAK 0x20
#define AETH_NAK     0x60
/* clang-format off */
#define AETH_KIND(s)       ((s) & 0xE0)
#define AETH_VALUE(s)      ((s) & 0x1F)
/* clang-format on */
#define AETH_NAK_PSN_SEQUENCE    0x60
#define AETH_NAK_INVALID_REQUEST 0x61
#define AETH_NAK_REMOTE_ACCESS   0x62
#define AETH_NAK_REMOTE_OP       0x63
#define AETH_NO_CREDITS          31 /* "no credit information" */

/**
 * 0, 1, 2, 3, 4, 6, 8, 12, ...: from 2 on, 2n is the code of 2^n, and 2n + 1 that of 1.5 * 2^n.
 * Credits have this scale, code 0 to CREDIT_CODE_MAX, and RNR timers in units of 0.01 ms.
 */
static inline uint32_t
aeth_scale(uint32_t code)
{
	return code < 2 ? code : (2 | (code & 1)) << (code / 2 - 1);
}

#define CREDIT_CODE_MAX 30

/** RNR timer code, 0..31, to nanoseconds (IBA table 17-6). */
static inline uint64_t
rnr_timer_ns(uint32_t code)
{
	return aeth_scale(code == 0 ? 32 : code) * UINT64_C(10000);
}

/** Largest code whose value does not exceed the posted receive WQEs. */
uint8_t credit_encode(uint32_t posted);

#endif
