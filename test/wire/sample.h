/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_WIRE_SAMPLE_H
#define TEST_WIRE_SAMPLE_H

/* Make a frame of any opcode and encapsulation. Every field has a value of its own. */

#include <stdint.h>

#include "build.h"
#include "wire/wire.h"

/* an encapsulation and header combination; a row of sample_carriers[] */
struct sample_carrier {
	const char *name;
	enum encap encap;
	bool grh; /* native IB */
};

#define SAMPLE_CARRIERS 5
extern const struct sample_carrier sample_carriers[SAMPLE_CARRIERS];

struct sample {
	struct av av;
	struct path path;
	struct wire_headers h;
	uint32_t payload_len;
	uint32_t frame_len;
	uint8_t *frame;
	uint8_t *l3;
	uint32_t l3_len;
	uint8_t buf[PATH_HEADER_MAX + BTH_LEN + 64 + MTU_MAX + PATH_TRAILER_MAX];
};

/* A payload length that the opcode's row allows. */
uint32_t sample_payload_len(uint8_t opcode);
/* Fill av and h, but build nothing. */
void sample_init(struct sample *s, const struct sample_carrier *carrier, uint8_t opcode,
	uint32_t payload_len);
/* Build the frame from av, h and payload_len. */
void sample_build(struct sample *s);
void sample_make(struct sample *s, const struct sample_carrier *carrier, uint8_t opcode,
	uint32_t payload_len);
/* After lengths were edited by hand: make the IPv4 header checksum right again. */
void sample_fix_ipv4(uint8_t *ip);

#endif
