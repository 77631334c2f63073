/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_LISTENER_H
#define CTL_LISTENER_H

/**
 * @file
 * The Unix socket that clients connect to.
 */

#include <stdbool.h>

#include "base/error.h"

struct listener {
	int fd;
	int spare_fd; /* given up to accept, and close, one connection when descriptors run out */
	char path[108];
};

int listener_open(struct listener *l, const char *path, struct error *err);
void listener_close(struct listener *l);
/** @return a non-blocking connected socket, or -EAGAIN: no more now */
int listener_accept(struct listener *l);
/** Is the other end root, or the same user as we? */
bool peer_allowed(int fd);

#endif
