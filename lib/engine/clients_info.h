/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CLIENTS_INFO_H
#define ENGINE_CLIENTS_INFO_H

/**
 * @file
 * What an operator sees of the clients of the verbs socket. Called on the control thread.
 */

#include "engine/engine.h"

/** What a client has, or all clients of a user. */
struct engine_client_use {
	uint32_t qps;
	uint32_t cqs;
	uint32_t srqs;
	uint32_t pds;
	uint32_t regions;
	uint32_t windows;
	uint64_t bytes; /**< of the regions */
	uint64_t requests; /**< that the queues have room for */
};

/** A client: one device that a program has open. */
struct engine_client_info {
	uint64_t id; /**< of all clients since start, from 1 */
	uint32_t pid;
	uint32_t uid;
	char command[16]; /**< empty: not to be read */
	uint32_t port;
	uint32_t worker;
	uint32_t contexts; /**< devices that this process has open, this one included */
	struct engine_client_use use;
	uint64_t posted; /**< work requests */
	uint64_t completed; /**< completions */
	uint64_t refused; /**< requests refused by a limit */
};

/** A user with clients. */
struct engine_client_user {
	uint32_t uid;
	uint32_t clients;
	struct engine_client_use use;
	struct engine_client_use limits;
};

/** Counters of all clients since start, also of those that have ended. */
struct clients_counters {
	uint64_t opened;
	uint64_t posted;
	uint64_t completed;
	uint64_t refused;
};
#define CLIENTS_COUNTER_COUNT (sizeof(struct clients_counters) / sizeof(uint64_t))

/** @param cursor  id of the client before; 0: none. @return false: there is none more */
bool engine_client_next(const struct engine *e, uint64_t *cursor, struct engine_client_info *info);
/** @param cursor  uid of the user before, plus 1; 0: none. @return false: there is none more */
bool engine_client_user_next(const struct engine *e, uint64_t *cursor,
	struct engine_client_user *user);
/**
 * Move the client with all its objects to another worker, under traffic as well.
 *
 * @param id  engine_client_info.id
 * @retval -EAGAIN  completions from before earlier moves wait to be polled
 * @retval -EBUSY   other queue pairs are moving: try again
 * @retval -EINVAL  no such worker
 * @retval -EMFILE, -ENFILE  no descriptor for the first client of that worker
 * @retval -ENOENT  no such client
 * @retval -ENOMEM  no memory for the move, or for a CQ's completions on that worker
 * @retval -ENOSPC  the kernel watches no more pipes for this user (fs.epoll.max_user_watches)
 */
int engine_client_rehome(struct engine *e, uint64_t id, unsigned int worker, struct error *err);
void engine_clients_counters(const struct engine *e, struct clients_counters *counters);

#endif
