/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CONFIG_RELOAD_H
#define POLCA_CONFIG_RELOAD_H

/**
 * @file
 * Reload: read the file again, and take over what can change while polca runs. The rows of the
 * configuration say what can (TABLE_RELOAD, TABLE_RELOAD_MORE); everything else needs a restart and
 * is named.
 */

#include "config.h"
#include "ctl/ctl.h"

/**
 * True if all that a port's list of addresses has changed by is more of them at its end, which a
 * reload can add: to a port of RoCEv2 alone.
 */
bool config_adds_addresses(const struct config *was, const struct config *now, unsigned int port);

/** Call @p fn for each value that differs. @retval -ENOMEM  some may be missing */
int config_diff(const struct config *was, const struct config *now, config_change_fn fn, void *arg);

struct config_reload {
	const char *file; /**< NULL: the built-in configuration, which never changes */
	struct config *running; /**< what is in effect; a reload changes it */
	struct engine *e;
	bool own_socket; /**< the command line names the control socket, not the file */
};

/**
 * Compare the file with what is in effect, and with services that have ended and log levels that
 * were set since. A reload is logged: each change, or why there is none.
 *
 * @param reload  struct config_reload
 * @param apply  take over what can change, all of it or nothing
 * @param fn  called for each value that differs, before anything is applied; may be NULL
 * @return 0; negative: nothing has changed, err says why
 */
int config_reload(void *reload, bool apply, config_change_fn fn, void *arg, struct error *err);

/** Remember the levels of all log components: values that a later configuration leaves out. */
int config_note_log_levels(void);

#endif
