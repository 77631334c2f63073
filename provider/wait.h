/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_PROVIDER_WAIT_H
#define POLCA_PROVIDER_WAIT_H

#include <stdbool.h>

/**
 * Wait until the other end of a pipe or socket is closed; signals do not shorten the time.
 *
 * @retval false it is open after @p wait_ms milliseconds
 */
bool wait_for_close(int fd, int wait_ms);

#endif
