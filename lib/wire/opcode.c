/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* rc-transport 2 and 3: the opcode table and the credit code of the AETH. */

#include "wire/opcode.h"

#include "wire/wire.h"

/* bytes of the extension headers in a set of HDR_ bits (rc-transport 1) */
/* clang-format off */
#define LEN(h)                                                                                     \
	(((h) & HDR_DETH ? 8 : 0) + ((h) & HDR_FETH ? 4 : 0) + ((h) & HDR_RETH ? 16 : 0) +         \
		((h) & HDR_ATOMICETH ? 28 : 0) + ((h) & HDR_AETH ? 4 : 0) +                        \
		((h) & HDR_ATOMICACK ? 8 : 0) + ((h) & HDR_IMM ? 4 : 0) + ((h) & HDR_IETH ? 4 : 0))

#define ROW(op, name, flags, hdrs, rule)                                                           \
	[op] = { name, OP_VALID | (flags), hdrs, BTH_LEN + LEN(hdrs), PAYLOAD_##rule }
/* clang-format on */

/*
 * A reserved opcode of the RC class: it must parse, since the responder NAKs it (rc-transport 6).
 */
#define RESERVED(op) [op] = { "RC reserved " #op, 0, 0, BTH_LEN, PAYLOAD_ANY }

#define SEND_REQ  (OP_SEND | OP_REQUEST)
#define WRITE_REQ (OP_WRITE | OP_REQUEST)
#define READ_RESP (OP_READ | OP_RESPONSE)

/* Sends and Writes are the same for RC and UC */
/* clang-format off */
#define STREAM(class, name)                                                                        \
	ROW((class) | RC_SEND_FIRST, name "SEND First", SEND_REQ | OP_FIRST | OP_RQ_WQE, 0, PMTU), \
		ROW((class) | RC_SEND_MIDDLE, name "SEND Middle", SEND_REQ | OP_MIDDLE, 0, PMTU),  \
		ROW((class) | RC_SEND_LAST, name "SEND Last", SEND_REQ | OP_LAST, 0, SOME),        \
		ROW((class) | RC_SEND_LAST_IMM, name "SEND Last Imm", SEND_REQ | OP_LAST, HDR_IMM, \
			SOME),                                                                     \
		ROW((class) | RC_SEND_ONLY, name "SEND Only", SEND_REQ | OP_ONLY | OP_RQ_WQE, 0,   \
			ANY),                                                                      \
		ROW((class) | RC_SEND_ONLY_IMM, name "SEND Only Imm",                              \
			SEND_REQ | OP_ONLY | OP_RQ_WQE, HDR_IMM, ANY),                             \
		ROW((class) | RC_WRITE_FIRST, name "WRITE First", WRITE_REQ | OP_FIRST, HDR_RETH,  \
			PMTU),                                                                     \
		ROW((class) | RC_WRITE_MIDDLE, name "WRITE Middle", WRITE_REQ | OP_MIDDLE, 0,      \
			PMTU),                                                                     \
		ROW((class) | RC_WRITE_LAST, name "WRITE Last", WRITE_REQ | OP_LAST, 0, SOME),     \
		ROW((class) | RC_WRITE_LAST_IMM, name "WRITE Last Imm",                            \
			WRITE_REQ | OP_LAST | OP_RQ_WQE, HDR_IMM, SOME),                           \
		ROW((class) | RC_WRITE_ONLY, name "WRITE Only", WRITE_REQ | OP_ONLY, HDR_RETH,     \
			ANY),                                                                      \
		ROW((class) | RC_WRITE_ONLY_IMM, name "WRITE Only Imm",                            \
			WRITE_REQ | OP_ONLY | OP_RQ_WQE, HDR_RETH | HDR_IMM, ANY)
/* clang-format on */

const struct opcode_info opcodes[256] = {
	STREAM(OPCODE_RC, ""),
	ROW(RC_READ_REQUEST, "READ Request", OP_READ | OP_REQUEST | OP_ONLY, HDR_RETH, NONE),
	ROW(RC_READ_RESP_FIRST, "READ Response First", READ_RESP | OP_FIRST, HDR_AETH, PMTU),
	ROW(RC_READ_RESP_MIDDLE, "READ Response Middle", READ_RESP | OP_MIDDLE, 0, PMTU),
	ROW(RC_READ_RESP_LAST, "READ Response Last", READ_RESP | OP_LAST, HDR_AETH, SOME),
	ROW(RC_READ_RESP_ONLY, "READ Response Only", READ_RESP | OP_ONLY, HDR_AETH, ANY),
	ROW(RC_ACK, "Acknowledge", OP_RESPONSE | OP_ONLY, HDR_AETH, NONE),
	ROW(RC_ATOMIC_ACK, "ATOMIC Acknowledge", OP_ATOMIC | OP_RESPONSE | OP_ONLY,
		HDR_AETH | HDR_ATOMICACK, NONE),
	ROW(RC_CMP_SWAP, "CmpSwap", OP_ATOMIC | OP_REQUEST | OP_ONLY, HDR_ATOMICETH, NONE),
	ROW(RC_FETCH_ADD, "FetchAdd", OP_ATOMIC | OP_REQUEST | OP_ONLY, HDR_ATOMICETH, NONE),
	RESERVED(0x15),
	ROW(RC_SEND_LAST_INV, "SEND Last Inv", SEND_REQ | OP_LAST | OP_INVALIDATE, HDR_IETH, SOME),
	ROW(RC_SEND_ONLY_INV, "SEND Only Inv", SEND_REQ | OP_ONLY | OP_RQ_WQE | OP_INVALIDATE,
		HDR_IETH, ANY),
	RESERVED(0x18),
	RESERVED(0x19),
	RESERVED(0x1A),
	RESERVED(0x1B),
	/* IBA 1.5: no OP_REQUEST, since our QPs do not execute these (NAK 0x61) */
	ROW(RC_FLUSH, "FLUSH", OP_ONLY, HDR_FETH | HDR_RETH, NONE),
	ROW(RC_ATOMIC_WRITE, "ATOMIC WRITE", OP_ONLY, HDR_RETH, SOME),
	RESERVED(0x1E),
	RESERVED(0x1F),

	STREAM(OPCODE_UC, "UC "),

	ROW(UD_SEND_ONLY, "UD SEND Only", SEND_REQ | OP_ONLY | OP_RQ_WQE, HDR_DETH, ANY),
	ROW(UD_SEND_ONLY_IMM, "UD SEND Only Imm", SEND_REQ | OP_ONLY | OP_RQ_WQE,
		HDR_DETH | HDR_IMM, ANY),

	/* 16 reserved bytes follow the BTH; they are ignored */
	ROW(OPCODE_CNP, "CNP", OP_ONLY, 0, ANY),
};

uint8_t
credit_encode(uint32_t posted)
{
	uint32_t log2, code;

	if (posted < 2)
		return posted;
	log2 = 31 - __builtin_clz(posted); /* the inverse of aeth_scale() */
	code = RTE_MIN(2 * log2 + (posted >> (log2 - 1) & 1), (uint32_t)CREDIT_CODE_MAX);
	RTE_ASSERT(aeth_scale(code) <= posted);
	RTE_ASSERT(code == CREDIT_CODE_MAX || aeth_scale(code + 1) > posted);
	return code;
}
