/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_DEST_H
#define POLCA_CTL_DEST_H

/** @file The address of a peer, as every command takes it. */

#include <stdbool.h>

#include <jansson.h>

#define DEST_ALLOWED "an IPv4 or IPv6 address (a GID), or a LID as lid:5 or 5, up to 0xbfff"

/**
 * Set @p lid_name of @p params from "lid:5", "lid:0x5", "0x5" and "5", and @p gid_name from addresses.
 *
 * @retval false  it is none of them
 */
bool dest_parse(const char *text, json_t *params, const char *gid_name, const char *lid_name);

#endif
