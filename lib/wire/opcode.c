/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* rc-transport 2 and 3: the opcode table and the two code tables of the AETH. */

#include <rte_debug.h>

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

/* clang-format off */
#define US(n) ((n) * UINT64_C(1000))
/* clang-format on */

const uint64_t rnr_timer_ns[32] = { US(655360), US(10), US(20), US(30), US(40), US(60), US(80),
	US(120), US(160), US(240), US(320), US(480), US(640), US(960), US(1280), US(1920), US(2560),
	US(3840), US(5120), US(7680), US(10240), US(15360), US(20480), US(30720), US(40960),
	US(61440), US(81920), US(122880), US(163840), US(245760), US(327680), US(491520) };

const uint16_t credit_values[31] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
	384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768 };

uint8_t
credit_encode(uint32_t posted)
{
	uint32_t log2, code;

	if (posted < 4)
		return posted;
	if (posted >= 32768)
		return 30;
	/* from 4 on: 2^n has the code 2n, 1.5 * 2^n the code 2n + 1 */
	log2 = 31 - __builtin_clz(posted);
	code = 2 * log2 + (posted >> (log2 - 1) & 1);
	RTE_ASSERT(code < 30 && credit_values[code] <= posted && credit_values[code + 1] > posted);
	return code;
}
