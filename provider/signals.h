/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/**
 * @file
 * Signals that system calls of the provider send to the thread that made them, and which are not
 * the program's.
 */

#ifndef POLCA_PROVIDER_SIGNALS_H
#define POLCA_PROVIDER_SIGNALS_H

/** Take it back, from the calling thread, which blocks it. Nothing happens if there is none. */
void signal_take_back(int number);

#endif
