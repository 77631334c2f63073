/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_STOPPED_H
#define POLCA_CTL_STOPPED_H

/**
 * @file
 * Commands that SIGINT, SIGTERM and SIGHUP end in good order.
 */

#include <signal.h>

extern volatile sig_atomic_t stopped; /**< 1: one of them has come, since stopped_catch() */

void stopped_catch(void);
/** Set a signal's handler. A SIGHUP that is ignored stays ignored: nohup started the program. */
void stopped_set_handler(int sig, void (*handler)(int));

#endif
