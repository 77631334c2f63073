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
#include <sys/types.h>

#include "base/error.h"

struct listener {
	int fd;
	int spare_fd; /* given up to accept, and close, one connection when descriptors run out */
	mode_t mode; /* of the socket */
	char path[108];
};

/**
 * @param key   the key of the configuration that errors begin with
 * @param type  SOCK_STREAM or SOCK_SEQPACKET
 */
int listener_open(struct listener *l, const char *key, const char *path, int type,
	struct error *err);
void listener_close(struct listener *l);
/** @return a non-blocking connected socket, or -EAGAIN: no more now */
int listener_accept(struct listener *l);
/**
 * Admit more than our own user: change the socket's group and mode. The directory is not ours to
 * change; the service's admits everybody to sockets whose mode does.
 *
 * @param group  (gid_t)-1: ours
 */
int listener_admit(struct listener *l, gid_t group, mode_t mode, struct error *err);
/**
 * Is the other end root, or the same user as we, or does the socket's mode admit others? Then the
 * kernel has compared group and mode.
 */
bool peer_allowed(const struct listener *l, int fd);

#endif
