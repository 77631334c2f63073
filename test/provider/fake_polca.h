/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef FAKE_POLCA_H
#define FAKE_POLCA_H

/**
 * @file
 * A polca without a data path, for tests of the provider: a process that answers on a socket as
 * polca does, with the features that the test wants, and that says what it was asked.
 */

#include <stdatomic.h>
#include <sys/types.h>

#include "ring/protocol.h"

/** What it does when the program has closed its device. */
enum fake_end {
	FAKE_HANGS_UP,
	FAKE_WRITES, /**< first into the last region, as a peer does whose request is under way */
	FAKE_HANGS, /**< nothing */
};

#define FAKE_WRITTEN 0x5a
#define FAKE_VERSION "fake 0.1"

/** Shared by both processes. */
struct fake_seen {
	atomic_uint requests[RING_REQUESTS];
	atomic_uint descriptors; /**< that came with requests */
	atomic_bool ended; /**< the end of the connection was read */
};

struct fake_polca {
	uint32_t minor; /**< that it tells; before fake_polca_start() */
	char socket[64];
	pid_t pid;
	struct fake_seen *seen;
};

/** Start it; then the socket listens. */
void fake_polca_start(struct fake_polca *f, uint64_t features, enum fake_end end);
/** End it. */
void fake_polca_stop(struct fake_polca *f);

#endif
