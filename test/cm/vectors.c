/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>

#include "../wire/hex.h"
#include "vectors.h"

#define ONES4  "ffffffff"
#define ONES8  ONES4 ONES4
#define ONES16 ONES8 ONES8
#define ONES72 ONES16 ONES16 ONES16 ONES16 ONES8
#define ZERO8  "0000000000000000"
#define ZERO62 ZERO8 ZERO8 ZERO8 ZERO8 ZERO8 ZERO8 ZERO8 "000000000000"

/* 72 bytes of information: ten of them are not zero */
#define INFO                                                                                       \
	{                                                                                          \
		0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, [71] = 0xEE                  \
	}
#define INFO_HEX "a0a1a2a3a4a5a6a7a8" ZERO62 "ee"

#define GID_V4(last)                                                                               \
	{                                                                                          \
		.raw = { [10] = 0xFF, 0xFF, 10, 0, 0, last }                                       \
	}
#define GID_V4_HEX(last) "00000000000000000000ffff0a0000" last
/* clang-format off */
#define GID_LINK      \
	{ .raw = { 0xFE, 0x80, [8] = 0x02, 0x02, 0x03, 0xFF, 0xFE, 0x04, 0x05, 0x06 } }
/* clang-format on */
#define GID_LINK_HEX "fe80000000000000020203fffe040506"
#define GID_DOC                                                                                    \
	{                                                                                          \
		.raw = { 0x20, 0x01, 0x0D, 0xB8, [15] = 0x07 }                                     \
	}
#define GID_DOC_HEX "20010db8000000000000000000000007"

const struct cm_vector cm_vectors[CM_MESSAGES] = {
	[CM_REQ] = {
		.msg = {
			.type = CM_REQ, .tid = 0x1112131415161710, .local_id = 0xA1A2A3A4,
			.req = {
				.vendor_id = 0xB1B2B3, .service_id = 0x0000000001061234,
				.ca_guid = 0x9102030405060788, .qkey = 0x80112233, .qpn = 0xC1C2C3,
				.responder_resources = 0x84, .local_eecn = 0xD1D2D3,
				.initiator_depth = 0x95, .remote_eecn = 0xE1E2E3,
				.remote_response_timeout = 20, .transport = 2, .flow_control = true,
				.psn = 0xF1F2F3, .local_response_timeout = 19, .retry_count = 6,
				.pkey = 0x8001, .mtu = 4, .rdc_exists = false, .rnr_retry_count = 7,
				.max_cm_retries = 13, .srq = true, .ext_transport = 1,
				.primary = {
					.local_lid = 0x0102, .remote_lid = 0x0304,
					.local_gid = GID_V4(1), .remote_gid = GID_V4(2),
					.flow_label = 0xABCDE, .rate = 3, .traffic_class = 0x5C,
					.hop_limit = 64, .sl = 9, .subnet_local = true,
					.ack_timeout = 18,
				},
				.alternate = {
					.local_lid = 0x0506, .remote_lid = 0x0708,
					.local_gid = GID_LINK, .remote_gid = GID_DOC,
					.flow_label = 0x12345, .rate = 0x25, .traffic_class = 0x6D,
					.hop_limit = 63, .sl = 6, .subnet_local = false,
					.ack_timeout = 17,
				},
			},
		},
		.hex = "a1a2a3a4 00 b1b2b3 0000000001061234 9102030405060788 00000000 80112233"
			" c1c2c3 84 d1d2d3 95 e1e2e3 a5 f1f2f3 9e 8001 47 d9 0102 0304" GID_V4_HEX("01") GID_V4_HEX("02") "abcde003 5c 40 98 90 0506 0708" GID_LINK_HEX GID_DOC_HEX "12345025 6d 3f 60 88",
		.ones = "ffffffff 00 ffffff" ONES16 "00000000 ffffffff"
			ONES4 ONES4 ONES4 ONES4 "ffff ff ff ffff ffff" ONES16 ONES16 "fffff03f ff ff f8 f8 ffff ffff" ONES16 ONES16 "fffff03f ff ff f8 f8",
	},
	[CM_MRA] = {
		.msg = {
			.type = CM_MRA, .tid = 0x1112131415161711, .local_id = 0x21222324,
			.remote_id = 0x31323334, .mra = { .answers = 1, .service_timeout = 24 },
		},
		.hex = "21222324 31323334 40 c0",
		.ones = ONES8 "c0 f8",
	},
	[CM_REJ] = {
		.msg = {
			.type = CM_REJ, .tid = 0x1112131415161712, .local_id = 0x41424344,
			.remote_id = 0x51525354,
			.rej = { .answers = 1, .ari_len = 8, .reason = 28, .ari = INFO },
		},
		.hex = "41424344 51525354 40 10 001c" INFO_HEX,
		.ones = ONES8 "c0 90 ffff" ONES72,
	},
	[CM_REP] = {
		.msg = {
			.type = CM_REP, .tid = 0x1112131415161713, .local_id = 0x11121314,
			.remote_id = 0x21222324,
			.rep = {
				.qkey = 0x31323334, .qpn = 0x414243, .local_eecn = 0x515253,
				.psn = 0x616263,
				.responder_resources = 0x10, .initiator_depth = 0x20,
				.target_ack_delay = 15, .failover = 1, .flow_control = false,
				.rnr_retry_count = 5, .srq = true, .ca_guid = 0x7172737475767778,
			},
		},
		.hex = "11121314 21222324 31323334 414243 00 515253 00 616263 00 10 20 7a b0 7172737475767778",
		.ones = ONES8 "ffffffff ffffff 00 ffffff 00 ffffff 00 ff ff ff f0" ONES8,
	},
	[CM_RTU] = {
		.msg = {
			.type = CM_RTU, .tid = 0x1112131415161714, .local_id = 0x61626364,
			.remote_id = 0x71727374,
		},
		.hex = "61626364 71727374",
		.ones = ONES8,
	},
	[CM_DREQ] = {
		.msg = {
			.type = CM_DREQ, .tid = 0x1112131415161715, .local_id = 0x81828384,
			.remote_id = 0x91929394, .dreq = { .qpn = 0xA1A2A3 },
		},
		.hex = "81828384 91929394 a1a2a3 00",
		.ones = ONES8 "ffffff 00",
	},
	[CM_DREP] = {
		.msg = {
			.type = CM_DREP, .tid = 0x1112131415161716, .local_id = 0xB1B2B3B4,
			.remote_id = 0xC1C2C3C4,
		},
		.hex = "b1b2b3b4 c1c2c3c4",
		.ones = ONES8,
	},
	[CM_SIDR_REQ] = {
		.msg = {
			.type = CM_SIDR_REQ, .tid = 0x1112131415161717,
			.sidr_req = {
				.request_id = 0xD1D2D3D4, .pkey = 0x8002,
				.service_id = 0x0000000001111C06,
			},
		},
		.hex = "d1d2d3d4 8002 0000 0000000001111c06",
		.ones = "ffffffff ffff 0000" ONES8,
	},
	[CM_SIDR_REP] = {
		.msg = {
			.type = CM_SIDR_REP, .tid = 0x1112131415161718,
			.sidr_rep = {
				.request_id = 0xE1E2E3E4, .status = 4, .info_len = 72,
				.qpn = 0xF1F2F3,
				.service_id = 0x0000000001111C07, .qkey = 0x01234567, .info = INFO,
			},
		},
		.hex = "e1e2e3e4 04 48 0000 f1f2f3 00 0000000001111c07 01234567" INFO_HEX,
		.ones = "ffffffff ff 48 0000 ffffff 00" ONES8 "ffffffff" ONES72,
	},
	[CM_LAP] = {
		.msg = {
			.type = CM_LAP, .tid = 0x1112131415161719, .local_id = 0x1A2A3A4A,
			.remote_id = 0x5A6A7A8A,
			.lap = {
				.qpn = 0x818283, .remote_response_timeout = 20,
				.alternate = {
					.local_lid = 0x0A0B, .remote_lid = 0x0C0D,
					.local_gid = GID_DOC, .remote_gid = GID_LINK,
					.flow_label = 0x9ABCD, .rate = 0x12, .traffic_class = 0x7E,
					.hop_limit = 62, .sl = 5, .subnet_local = true,
					.ack_timeout = 16,
				},
			},
		},
		.hex = "1a2a3a4a 5a6a7a8a 00000000 818283 a0 00000000 0a0b 0c0d" GID_DOC_HEX GID_LINK_HEX "9abcd0 7e 3e 12 58 80",
		.ones = ONES8 "00000000 ffffff f8 00000000 ffff ffff" ONES16 ONES16 "fffff0 ff ff 3f f8 f8",
	},
	[CM_APR] = {
		.msg = {
			.type = CM_APR, .tid = 0x111213141516171A, .local_id = 0x1B2B3B4B,
			.remote_id = 0x5B6B7B8B,
			.apr = { .info_len = 10, .status = 5, .info = INFO },
		},
		.hex = "1b2b3b4b 5b6b7b8b 0a 05 0000" INFO_HEX,
		.ones = ONES8 "48 ff 0000" ONES72,
	},
};

const struct cm_rdma_vector cm_rdma_v4 = {
	.rdma = { .present = true, .src_port = 0xBEEF, .src = GID_V4(1), .dst = GID_V4(2) },
	.hex = "00 40 beef 000000000000000000000000 0a000001 000000000000000000000000 0a000002",
};
const struct cm_rdma_vector cm_rdma_v6 = {
	.rdma = { .present = true, .src_port = 0x8001, .src = GID_LINK, .dst = GID_DOC },
	.hex = "00 60 8001" GID_LINK_HEX GID_DOC_HEX,
};

unsigned int
cm_vector_mad(const struct cm_vector *v, uint8_t mad[MAD_LEN])
{
	/* cm.md 1 */
	unsigned int at = (unsigned int)hex_bytes("01 07 02 03 0000 0000", mad, MAD_LEN);

	for (int shift = 56; shift >= 0; shift -= 8)
		mad[at++] = (uint8_t)(v->msg.tid >> shift);
	mad[at++] = 0;
	mad[at++] = 0x10 + (uint8_t)(v - cm_vectors); /* attributes 0x10 to 0x1A, as in codes.h */
	at += (unsigned int)hex_bytes("0000 00000000", mad + at, 6);
	at += (unsigned int)hex_bytes(v->hex, mad + at, MAD_LEN - at);
	for (unsigned int i = at; i < MAD_LEN; i++)
		mad[i] = (uint8_t)(i - at + 1);
	return at;
}
