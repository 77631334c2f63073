/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_DEST_H
#define POLCA_CTL_DEST_H

/**
 * @file
 * The address of a peer, in the form that every command accepts.
 */

#include <stdbool.h>

#include <jansson.h>

#define DEST_ALLOWED "an IPv4 or IPv6 address (a GID), or a LID as lid:5 or 5, up to 0xbfff"

/**
 * Parse "lid:5", "lid:0x5", "0x5" or "5" into the parameter @p lid_name, and an IP address into @p
 * gid_name.
 *
 * @retval false  the text is neither
 */
bool dest_parse(const char *text, json_t *params, const char *gid_name, const char *lid_name);

#endif
