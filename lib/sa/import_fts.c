/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Import the output of dump_fts (dump_lfts, dump_mfts), which follows ibnetdiscover's or is a file
 * of its own:
 *
 *   Unicast lids [0x0-0x4] of switch Lid 2 guid 0x0002c90200200000 (leaf01):
 *     Lid  Out   Destination
 *          Port     Info
 *   0x0001 001 : (Channel Adapter portguid 0x0002c90300100001: 'host001')
 *   0x0002 000 : (Switch portguid 0x0002c90200200000: 'leaf01')
 *   2 valid lids dumped
 *   Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x0002c90200200000 (leaf01):
 *               0
 *        Ports: 0 1 2 3 4
 *    MLid
 *   0xc000        x x
 *   1 valid mlids dumped
 *
 * In a unicast table the LID with port 0 is the switch's own. A multicast table tells only the
 * switch's GUID, so its LID must be known from before.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import_private.h"
#include "sa/layout.h"
#include "wire/bytes.h"

#define MASK_COLUMN   12 /* column of port 0 in a multicast line; a port takes 2 columns */
#define PORTS_IN_MASK 16
#define MLIDS         32 /* MLIDs in a block */
#define LINEAR_BLOCKS (LID_UNICAST_END / LFT_PORTS)

enum {
	NO_TABLE,
	UNICAST,
	MULTICAST,
};

static int
fts_refuse(struct sa_ibnet *in, const char *expected, struct error *err)
{
	return error_set(err, EINVAL, "line %u: got \"%.48s%s\", expected %s", in->line_num,
		in->line, in->len > 48 ? "..." : "", expected);
}

/* Begin a record of the table's switch. @param block  the 16 bits after the LID */
static void
fts_begin_record(struct sa_ibnet *in, uint16_t attribute, uint16_t block)
{
	memset(&in->change, 0, sizeof(in->change));
	in->change.type = sa_record_type(attribute);
	put_be16(in->change.rec, in->fts.lid);
	put_be16(in->change.rec + 2, block);
}

static uint16_t
lid_of_switch(const struct sa_ibnet *in, uint64_t guid)
{
	for (unsigned int lid = 1; lid <= SA_IBNET_LIDS; lid++)
		if (in->switches[lid] == guid)
			return (uint16_t)lid;
	return 0;
}

/* "... of switch Lid 2 guid 0x0002c90200200000 (leaf01):" */
static int
fts_begin_table(struct sa_ibnet *in, uint8_t kind, struct error *err)
{
	static const char guid[] = " guid 0x";
	const char *at = strstr(in->line, guid);

	if (in->fts.kind != NO_TABLE)
		return fts_refuse(in, "\"N valid lids dumped\" before the next table", err);
	if (at == NULL || strstr(in->line, " of switch ") == NULL)
		return fts_refuse(in, "... of switch ... guid 0x... and the switch's name", err);
	in->fts.kind = kind;
	in->fts.guid = strtoull(at + strlen(guid), NULL, 16);
	in->fts.rows = 0;
	in->fts.columns = false;
	if (kind == UNICAST)
		memset(in->fts.port, LFT_NO_PORT, sizeof(in->fts.port));
	else
		memset(in->fts.mask, 0, sizeof(in->fts.mask));
	in->fts.lid = lid_of_switch(in, in->fts.guid);
	if (kind == MULTICAST && in->fts.lid == 0)
		return fts_refuse(in,
			"the switch, or its unicast table, before its multicast table", err);
	return 0;
}

/* "0x0001 001 : (...)" */
static int
take_unicast(struct sa_ibnet *in, unsigned long lid, const char *rest, struct error *err)
{
	char *end;
	unsigned long port = strtoul(rest, &end, 10);

	if (end == rest || port > LFT_NO_PORT || lid > SA_IBNET_LIDS)
		return fts_refuse(in, "a LID up to 0xbfff and a port up to 255", err);
	in->fts.port[lid] = (uint8_t)port;
	in->fts.rows++;
	if (port != 0 || lid == 0 || in->fts.lid != 0)
		return 0;
	in->fts.lid = (uint16_t)lid;
	in->switches[lid] = in->fts.guid;
	return 0;
}

/* "0xc000        x x" */
static int
take_multicast(struct sa_ibnet *in, unsigned long mlid, struct error *err)
{
	unsigned int port, column, block = (unsigned int)(mlid - LID_UNICAST_END);

	if (!in->fts.columns)
		return fts_refuse(in, "\"Ports:\" and their columns: dump_fts without -n", err);
	if (mlid < LID_UNICAST_END || block >= SA_FTS_MLIDS)
		return fts_refuse(in, "an MLID from 0xc000 to 0xffff", err);
	for (column = MASK_COLUMN; column < in->len; column += 2) {
		port = (column - MASK_COLUMN) / 2;
		if (in->line[column] == 'x' && port <= SA_IBNET_PORTS)
			in->fts.mask[port / PORTS_IN_MASK][block] |= 1u << port % PORTS_IN_MASK;
	}
	in->fts.rows++;
	return 0;
}

static bool
leads_nowhere(const uint8_t *ports)
{
	unsigned int i;

	for (i = 0; i < LFT_PORTS && ports[i] == LFT_NO_PORT; i++)
		;
	return i == LFT_PORTS;
}

/* Emit the blocks that have a port. Always emit block 0: it shows that the table exists. */
static int
end_unicast(struct sa_ibnet *in, struct error *err)
{
	int rc = 0;

	if (in->fts.lid == 0)
		return fts_refuse(in, "the switch's own LID, with port 000, in its table", err);
	for (unsigned int i = 0; i < LINEAR_BLOCKS && rc == 0; i++) {
		const uint8_t *ports = in->fts.port + i * LFT_PORTS;

		if (i > 0 && leads_nowhere(ports))
			continue;
		fts_begin_record(in, SA_LFT, (uint16_t)i);
		memcpy(in->change.rec + LFT_OFF_PORTS, ports, LFT_PORTS);
		rc = sa_ibnet_emit(in, err);
	}
	return rc;
}

static int
emit_masks(struct sa_ibnet *in, unsigned int position, unsigned int block, struct error *err)
{
	const uint16_t *mask = in->fts.mask[position] + block * MLIDS;
	unsigned int i, any = 0;

	for (i = 0; i < MLIDS; i++)
		any |= mask[i];
	if (any == 0)
		return 0;
	fts_begin_record(in, SA_MFT, (uint16_t)(position << 12 | block));
	for (i = 0; i < MLIDS; i++)
		put_be16(in->change.rec + MFT_OFF_MASKS + 2 * i, mask[i]);
	return sa_ibnet_emit(in, err);
}

static int
end_multicast(struct sa_ibnet *in, struct error *err)
{
	int rc = 0;

	for (unsigned int p = 0; p < SA_FTS_POSITIONS; p++)
		for (unsigned int b = 0; b < SA_FTS_MLIDS / MLIDS && rc == 0; b++)
			rc = emit_masks(in, p, b, err);
	return rc;
}

/* "2 valid lids dumped"; without "valid" if dump_fts listed unused LIDs, too. */
static int
fts_end_table(struct sa_ibnet *in, unsigned long rows, struct error *err)
{
	bool unicast = in->fts.kind == UNICAST;
	int rc;

	if (rows != in->fts.rows)
		return error_set(err, EINVAL, "line %u: got %u lines in the table, expected %lu",
			in->line_num, in->fts.rows, rows);
	rc = unicast ? end_unicast(in, err) : end_multicast(in, err);
	in->fts.kind = NO_TABLE;
	in->tables++;
	return rc;
}

bool
sa_fts_begins(const struct sa_ibnet *in)
{
	return in->fts.kind != NO_TABLE || strncmp(in->line, "Unicast lids ", 13) == 0 ||
		strncmp(in->line, "Multicast mlids ", 16) == 0;
}

int
sa_fts_line(struct sa_ibnet *in, struct error *err)
{
	const char *line = in->line;
	unsigned long number;
	char *end;

	if (line[0] == 'U')
		return fts_begin_table(in, UNICAST, err);
	if (line[0] == 'M')
		return fts_begin_table(in, MULTICAST, err);
	if (line[0] == ' ' || line[0] == '\0') { /* a column heading */
		in->fts.columns |= strstr(line, "Ports:") != NULL;
		return 0;
	}
	number = strtoul(line, &end, 0);
	if (end != line && strstr(end, "lids dumped") != NULL)
		return fts_end_table(in, number, err);
	if (strncmp(line, "0x", 2) != 0 || *end != ' ')
		return fts_refuse(in, "a LID and its port, or \"N valid lids dumped\"", err);
	return in->fts.kind == UNICAST ? take_unicast(in, number, end, err)
				       : take_multicast(in, number, err);
}

int
sa_fts_end(struct sa_ibnet *in, struct error *err)
{
	if (in->fts.kind != NO_TABLE)
		return error_set(err, EINVAL,
			"line %u: the table of switch 0x%016" PRIx64
			" has no end: is the file complete?",
			in->line_num, in->fts.guid);
	return 0;
}
