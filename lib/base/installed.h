/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_INSTALLED_H
#define BASE_INSTALLED_H

/**
 * @file
 * Paths of installed files, which messages tell the operator to use.
 */

#include <stddef.h>

/** The path of setup-host.sh: the installed one, or else where the source tree has it. */
const char *setup_host_script(void);
/** The same, with the path where it would be installed. */
const char *setup_host_script_at(const char *installed);

/**
 * What to type so that the systemd service of this process has a drop-in such as "af_packet.conf".
 *
 * @return buf: " (...)", to append; empty if no systemd service runs this process
 */
const char *drop_in_advice(const char *drop_in, char *buf, size_t size);

#endif
