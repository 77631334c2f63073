/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_IMPORT_H
#define SA_IMPORT_H

/**
 * @file
 * Records from files: the topology text of ibnetdiscover, and the project's own JSON. Set-up paths:
 * nothing here runs on a worker. What a file says is never trusted; the first thing that is wrong
 * ends the import with the line, what was found there and what was expected.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "sa/sa.h"

/** Who takes the records. */
struct sa_import_sink {
	void *arg;
	/** @retval negative errno: end the import */
	int (*take)(void *arg, const struct sa_change *change);
};

/**
 * The text of ibnetdiscover, fed in pieces of any size. It must have LIDs: an SM has been through
 * the fabric.
 *
 * A node gives a NodeRecord for each endport (a switch: its port 0), with a PortInfoRecord and block
 * 0 of GUIDInfo (the port GUID); a switch gives its SwitchInfoRecord too; every cabled port its
 * PortInfoRecord and the LinkRecord from it to the other end. What the text does not say is 0, not
 * known: MTUs, VLs without ibnetdiscover --full, P_Keys, capabilities but for the extended speed of a
 * link that has one, speeds of port 0 of switches, and all that only SMs and agents know.
 *
 * Behind it, or in a file of its own, may stand the text of dump_fts (dump_fts -M): forwarding
 * tables of the switches.
 */
struct sa_ibnet;

/** What has been read so far. */
struct sa_ibnet_counts {
	uint32_t lines;
	uint32_t cas;
	uint32_t switches;
	uint32_t routers;
	uint32_t endports; /**< ports with a LID of their own */
	uint32_t links;    /**< both ways of a cable count */
	uint32_t tables;   /**< forwarding tables */
	uint32_t records;
};

struct sa_ibnet *sa_ibnet_create(const struct allocator *alloc, const struct sa_import_sink *sink);
/** @retval negative errno: the import has ended, err says why; feed no more */
int sa_ibnet_feed(struct sa_ibnet *in, const void *text, size_t len, struct error *err);
/** There is no more: is it complete? */
int sa_ibnet_end(struct sa_ibnet *in, struct error *err);
const struct sa_ibnet_counts *sa_ibnet_counts(const struct sa_ibnet *in);
void sa_ibnet_destroy(struct sa_ibnet *in);

/** The same at once. */
int sa_import_ibnetdiscover(
		const char *text, size_t len, const struct sa_import_sink *sink, struct error *err);

/**
 * MTU that the operator vouches for where a file did not say it: PortInfoRecords whose MTUs are not
 * known get it, others stay.
 *
 * @param mtu  a code
 */
void sa_import_mtu(struct sa_change *c, uint8_t mtu);

/** Records as they are: @p text is an array of struct sa_change, @p len its bytes. */
int sa_import_changes(
		const char *text, size_t len, const struct sa_import_sink *sink, struct error *err);

/**
 * The project's JSON, as an export writes it: {"records": [{"record": "NodeRecord", ...}, ...]}.
 * PathRecords, as sa table has them of a subnet manager's SA, are not stored, but their SLs are.
 */
int sa_import_json(
		const char *text, size_t len, const struct sa_import_sink *sink, struct error *err);

#endif
