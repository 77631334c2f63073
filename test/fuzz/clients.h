/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_FUZZ_CLIENTS_H
#define TEST_FUZZ_CLIENTS_H

/*
 * For targets that are programs on the verbs socket: an engine whose one worker runs when the
 * target says so, in time of its own.
 */

#include <stdio.h>
#include <stdlib.h>

#include "../engine/client_node.h"

struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

/** 0 behind the end. */
static inline uint8_t
fuzz_next_byte(struct fuzz_bytes *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static inline uint32_t
fuzz_word(struct fuzz_bytes *in)
{
	uint32_t word = fuzz_next_byte(in);

	for (unsigned int i = 1; i < 4; i++)
		word |= (uint32_t)fuzz_next_byte(in) << (8 * i);
	return word;
}

/** Change up to @p len bytes of @p to: zeros leave them as they are. */
static inline void
fuzz_change(struct fuzz_bytes *in, void *to, size_t len)
{
	uint8_t *bytes = (uint8_t *)to;

	for (size_t i = 0; i < len && in->left > 0; i++)
		bytes[i] ^= fuzz_next_byte(in);
}

/** Called once. */
struct engine *clients_engine(void);
/** So many turns of the worker, and what the control thread does meanwhile. */
void clients_turns(struct engine *e, unsigned int n);
/** The worker's time becomes the processor's, by which the control thread sets timers. */
void clients_catch_up(void);
/** Between turns: no grace period waits for the worker. */
void clients_rest(struct engine *e);

#define fuzz_expect(condition)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
