/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_CTL_H
#define CTL_CTL_H

/**
 * @file
 * The control socket: JSON-RPC 2.0, one object a line, over a Unix stream socket; and the same
 * counters under /polca/ on DPDK's telemetry socket.
 *
 * One thread, which is no worker, creates it and runs it. A client that is slow, dead or hostile
 * costs that thread bounded memory and bounded time, and costs the other clients nothing.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "engine/engine.h"

struct ctl;

/** A value of the configuration file that differs from what is in effect. */
struct config_change {
	const char *path; /**< "services[1].depth" */
	const char *was, *now; /**< as JSON */
	bool restart; /**< it takes effect with a restart only */
};
typedef void (*config_change_fn)(void *arg, const struct config_change *c);
/**
 * Compare the file with what is in effect, and with @p apply take over what can change, all of it
 * or nothing. @p fn is called for each difference.
 */
typedef int (*config_reload_fn)(void *arg, bool apply, config_change_fn fn, void *fn_arg,
	struct error *err);

/** What a client may cost. */
struct ctl_limits {
	/** more are told so and closed, unless one has been idle for evict_ms */
	unsigned int max_clients;
	unsigned int evict_ms;
	size_t max_request; /**< bytes in a line */
	size_t max_reply; /**< a longer reply becomes an error that says so */
	/** bytes waiting to be read by a client: its requests rest until it reads */
	size_t out_high;
	unsigned int half_request_ms; /**< from the first byte of a line to its end */
	unsigned int stall_ms; /**< a client that reads nothing for so long is closed */
};

extern const struct ctl_limits ctl_limits_default;

/**
 * Listen on @p socket_path (mode 0600; callers of another user but root are refused, see
 * ctl_admit()). A socket that nobody listens on is replaced; the directory is made when only it is
 * missing.
 */
struct ctl *ctl_create(struct engine *e, const char *socket_path, struct error *err);
/** The same with limits of one's own. */
struct ctl *ctl_create_limited(struct engine *e, const char *socket_path,
	const struct ctl_limits *limits, struct error *err);

/**
 * Run the event loop until it has handled an event of any kind, for up to @p timeout_ms (-1: for
 * ever), and serve the clients.
 *
 * @return 0, or a negative errno when the socket itself is broken
 */
int ctl_run_once(struct ctl *c, int timeout_ms);

/** The methods config_diff and config_reload call @p fn. */
void ctl_reload(struct ctl *c, config_reload_fn fn, void *arg);

/**
 * Admit others to the control socket, whose mode is 0600 at first.
 *
 * @param group  (gid_t)-1: ours
 */
int ctl_admit(struct ctl *c, gid_t group, mode_t mode, struct error *err);
/**
 * Listen on one socket more, on which no method changes anything.
 *
 * @param group  its mode is 0660; (gid_t)-1: ours, 0600
 */
int ctl_monitor(struct ctl *c, const char *socket_path, gid_t group, struct error *err);

/** Close all connections and remove the sockets. */
void ctl_destroy(struct ctl *c);

/**
 * Show counters of @p e under /polca/ on DPDK's telemetry socket; NULL: stop. Registers its
 * commands once.
 */
void ctl_telemetry(struct engine *e);

#endif
