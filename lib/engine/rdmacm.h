/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_RDMACM_H
#define ENGINE_RDMACM_H

/**
 * @file
 * librdmacm's device for programs on the verbs socket: its event channels, and the commands that it
 * writes to them (rdma/rdma_user_cm.h), which do what the kernel's do. The queue pairs are the
 * program's own: librdmacm moves them through their states.
 *
 * Called by lib/verbs on the control thread. Channels and IDs are named by slots of the program's
 * own tables. All functions return 0, or a negative errno with an explanation in @p err.
 */

#include <sys/types.h>

#include "engine/engine.h"
#include "ring/protocol.h"

struct rdmacm_program;

struct rdmacm_limits {
	uint32_t max_channels;
	uint32_t max_ids;
};

/**
 * @param uid  with @p pid: of the program. Only queue pairs of devices that it has opened itself
 *  are connected (engine_client_set_owner()).
 */
int engine_rdmacm_open(struct engine *e, const struct rdmacm_limits *limits, uid_t uid, pid_t pid,
	struct rdmacm_program **program, struct error *err);
/** Destroy all of its IDs: peers of its connections get a DREQ, or a REJ. */
void engine_rdmacm_close(struct rdmacm_program *program);

/** @param fd  to be passed to the program; it stays the channel's */
int engine_rdmacm_channel_open(struct rdmacm_program *program, uint32_t *slot, int *fd,
	struct error *err);
/** Destroys the channel's IDs, too. */
int engine_rdmacm_channel_close(struct rdmacm_program *program, uint32_t slot, struct error *err);

/** @retval -EAGAIN GET_EVENT, and there is no event: wait until the channel is readable */
int engine_rdmacm_command(struct rdmacm_program *program, const struct ring_cm_command *command,
	struct ring_cm_reply *reply, struct error *err);

#endif
