/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_PRIVILEGES_H
#define POLCA_PRIVILEGES_H

/**
 * @file
 * What the process may still do once its devices and sockets are open. Started as root, it becomes
 * another user. It keeps only the capabilities that its links need to be opened again and to have
 * their interface restored, and only the system calls of a list.
 */

#include "config.h"

/**
 * Security: neither this process nor a child ever gains a privilege by execve(); and what it has
 * for rare moments only is effective in no thread. Call it first.
 */
void privileges_never_gain(void);

/**
 * Check security.user before anything is opened.
 *
 * @retval -ENOENT  there is no such user
 * @retval -EPERM   not started as root, and by another user than this
 */
int privileges_check(const struct config *c, struct error *err);

/**
 * Give up what is not needed any longer. Call it on the control thread, after the sockets are open
 * and before the workers start. Files that polca made itself go to the new user.
 *
 * @param verbs     NULL: there is no verbs socket
 * @retval -EPERM, -ENOMEM  @p err has the reason; the process must end
 */
int privileges_drop(const struct config *c, struct engine *e, const struct verbs_server *verbs,
	struct error *err);

/** What a kind of port needs while Polca runs. */
struct link_needs {
	const char *driver; /**< how the driver's name begins */
	uint64_t capabilities; /**< 1 << CAP_ */
	int family; /**< of a socket; 0: none */
	bool loads_bpf;
};

/* --- privileges_threads.c --- */

/**
 * All other threads give up all capabilities.
 *
 * @retval -EPERM  one does not within two seconds
 */
int privileges_drop_others(struct error *err);

/* --- system_calls.c --- */

/**
 * Allow only the system calls of the list, to all threads. Others fail with EPERM (enforce) or are
 * made (log); the kernel's audit log names them in both cases.
 *
 * @param mode    enum config_seccomp
 * @param needs   one for each port; NULL: nothing of its own
 */
int system_calls_restrict(uint32_t mode, const struct link_needs *const *needs, unsigned int ports,
	struct error *err);

#endif
