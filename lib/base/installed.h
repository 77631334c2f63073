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

/** MiB of hugepages that setup-host.sh reserves on each node unless it is told how many. */
#define SETUP_HOST_MIB 1024

/** The path of setup-host.sh: the installed one, or else where the source tree has it. */
const char *setup_host_script(void);
/** The directory of example configurations, likewise. */
const char *example_directory(void);
/** @return @p installed if there is such a file, else @p in_tree */
const char *installed_or(const char *installed, const char *in_tree);

/**
 * What to type so that the systemd service of this process has a drop-in such as "af_packet.conf".
 *
 * @return buf: " (...)", to append; empty if no systemd service runs this process
 */
const char *drop_in_advice(const char *drop_in, char *buf, size_t size);

#endif
