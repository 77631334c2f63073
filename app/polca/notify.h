/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_NOTIFY_H
#define POLCA_NOTIFY_H

/**
 * @file
 * Messages to the service manager, as systemd's sd_notify(3) defines them: one datagram to the
 * socket that the environment variable NOTIFY_SOCKET names. systemd declares this protocol stable,
 * so Polca needs no library for it.
 */

#include <stdint.h>

#include <rte_common.h>

/**
 * Send one message, as "READY=1\nSTATUS=2 ports". Does nothing without NOTIFY_SOCKET. A message
 * that cannot be sent is lost: the service manager then acts as if Polca were silent.
 */
void notify(const char *fmt, ...) __rte_format_printf(1, 2);

/**
 * How often the service manager wants to hear "WATCHDOG=1".
 *
 * @return half of WATCHDOG_USEC in milliseconds, as sd_watchdog_enabled(3) advises; 0: never, the
 *   variable is missing or meant for another process (WATCHDOG_PID)
 */
uint64_t notify_watchdog_ms(void);

#endif
