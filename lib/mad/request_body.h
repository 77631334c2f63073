/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_REQUEST_BODY_H
#define MAD_REQUEST_BODY_H

/*
 * Private to request_body.c, which fills bodies, and body_pool.c, which has their memory.
 */

#include "mad/core.h"

struct mad_pool {
	uint8_t *memory;
	uint8_t *free; /* list through the first word */
	uint64_t chunks;
	uint64_t used; /* atomic: mad_worker_memory() reads it on another thread */
	/* by chunks of bodies that may give way: */
	struct share_rank strangers;
	struct share_rank prefixes;
	uint32_t gives_way; /* all of them */
};

struct mad_body {
	uint64_t length;
	uint64_t bytes; /* of its chunks, including this one */
	struct mad_peer_entry *peer;
	uint64_t gives_way; /* 1: counted in mad_pool.strangers */
	uint8_t *slot[];
};

#define SLOTS      ((MAD_CHUNK - sizeof(struct mad_body)) / sizeof(uint8_t *))
#define DIRECT     256
#define INDIRECT   (MAD_CHUNK / sizeof(uint8_t *)) /* chunks behind an indirect slot */
#define CHUNKS_MAX (DIRECT + (SLOTS - DIRECT) * INDIRECT)

/* Count the body of a half-open session in the ranks of its address, or so many chunks more. */
void mad_body_rank_add(struct mad_session *s);
void mad_body_rank_change(struct mad_session *s, int chunks);

#endif
