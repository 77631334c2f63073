/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_IMPORT_H
#define SA_IMPORT_H

/**
 * @file
 * Import records from files: the output of ibnetdiscover, and our own JSON. Not for workers: only
 * set-up code runs it. Security: a file is never trusted; the first error ends the import and tells
 * the line, what was found and what was expected.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "sa/sa.h"

/** Receives the records. */
struct sa_import_sink {
	void *arg;
	/** @retval negative errno: end the import */
	int (*take)(void *arg, const struct sa_change *change);
};

/**
 * Import the whole output of ibnetdiscover. It must have LIDs, so an SM must have configured the
 * fabric.
 *
 * A node gives a NodeRecord for each endport (for a switch: its port 0), with a PortInfoRecord and
 * block 0 of GUIDInfo (the port GUID); a switch also gives its SwitchInfoRecord. Every cabled port
 * gives its PortInfoRecord and the LinkRecord to the other end. Values that the text does not have
 * are 0 for unknown: MTUs, VLs without ibnetdiscover --full, P_Keys, capabilities except the
 * extended speed of a link that has one, speeds of port 0 of switches, and all that only SMs and
 * agents know.
 *
 * The output of dump_fts (dump_fts -M), the switches' forwarding tables, may follow it, or come in
 * a file of its own.
 *
 * @retval negative errno  err tells why
 */
int sa_import_ibnetdiscover(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err);

/**
 * Set the MTU that the operator states: PortInfoRecords whose MTU the file did not give get it,
 * others keep theirs.
 *
 * @param mtu  MTU code
 */
void sa_import_mtu(struct sa_change *c, uint8_t mtu);

/** Import records in binary form: @p text is an array of struct sa_change of @p len bytes. */
int sa_import_changes(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err);

/**
 * Import our own JSON, as an export writes it: {"records": [{"record": "NodeRecord", ...}, ...]}.
 * Of PathRecords, which `sa table` gets from a subnet manager's SA, only the SLs are stored.
 */
int sa_import_json(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err);

#endif
