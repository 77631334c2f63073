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
 * A node gives a NodeRecord for each endport (a switch: its port 0), with a PortInfoRecord, block 0
 * of GUIDInfo (the port GUID) and of the P_Key table (0xffff); a switch gives its SwitchInfoRecord
 * too; every cabled port its PortInfoRecord and the LinkRecord from it to the other end. What the
 * text does not say is filled in: MTU 4096 from FDR on, else 2048; one virtual lane unless the text
 * (ibnetdiscover --full) knows more; link down default polling; times of 2^18; 4xQDR on port 0 of
 * switches.
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

/** The project's JSON, as an export writes it: {"records": [{"record": "NodeRecord", ...}, ...]} */
int sa_import_json(
		const char *text, size_t len, const struct sa_import_sink *sink, struct error *err);

#endif
