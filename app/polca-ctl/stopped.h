/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_STOPPED_H
#define POLCA_CTL_STOPPED_H

/**
 * @file
 * Commands that clean up after SIGINT, SIGTERM or SIGHUP.
 */

#include <signal.h>

extern volatile sig_atomic_t stopped; /**< 1: one of them arrived after stopped_catch() */

void stopped_catch(void);
/** Set a signal's handler. An ignored SIGHUP stays ignored, because nohup started the program. */
void stopped_set_handler(int sig, void (*handler)(int));

#endif
