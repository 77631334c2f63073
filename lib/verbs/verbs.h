/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

/**
 * @file
 * The verbs socket: programs of this host open polca's ports as verbs devices (docs/verbs.md).
 * Each port is one device, polca0, polca1, ..., with port number 1.
 *
 * Beside the socket lies a directory of the same name with .sys appended: the tree that libibverbs
 * reads in the place of /sys. It names the devices, their GIDs and the socket.
 *
 * Runs on the control thread, in the engine's event loop. A client that is slow or dead costs
 * nobody anything: a request is answered at once or the connection is closed.
 */

#include <sys/types.h>

#include "engine/clients.h"
#include "engine/rdmacm.h"

struct verbs_server;

struct verbs_config {
	bool enabled;
	char socket[108];
	char group[33]; /**< whose members may use the socket; empty: our own user only */
	char mode[8]; /**< octal; empty: 0660 with a group, else 0600 */
	uint32_t max_clients;
	uint32_t max_user_clients; /**< of one user */
	uint32_t mr_mb; /**< of a client's regions */
	uint32_t user_mr_mb; /**< of all regions of a user */
	uint32_t ring_mb; /**< of the entries of a client's rings */
	struct rdmacm_limits cm; /**< of a program that uses librdmacm */
	struct verbs_client_limits limits; /**< its bytes are filled in from those above */
};

extern const struct verbs_config verbs_config_default;

/** Suffix of the tree's directory */
#define VERBS_TREE ".sys"

/** Write the tree, and listen. @param group  (gid_t)-1: our own */
struct verbs_server *verbs_create(struct engine *e, const struct verbs_config *config, gid_t group,
	mode_t mode, struct error *err);
/** Close all connections, which destroys the clients' objects, and remove socket and tree. */
void verbs_destroy(struct verbs_server *s);

/** Give the tree to a user, as whom this process goes on to keep it up to date. */
void verbs_tree_give(const struct verbs_server *s, uid_t uid);

#endif
