/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "svc/perftest_text.h"
#include "wire/bytes.h"

#define GID_AT         50 /* offset of the GID, or in a text without GID of the SRQ number */
#define GID_INDEX_NONE UINT32_MAX

/* Fields of a text up to the address: offset and number of digits. */
enum { LID, OUT_READS, QPN, PSN, RKEY, VA, FIELDS };
static const struct {
	uint8_t at;
	uint8_t digits;
} fields[FIELDS] = {
	[LID] = { 0, 4 },
	[OUT_READS] = { 5, 4 },
	[QPN] = { 10, 6 },
	[PSN] = { 17, 6 },
	[RKEY] = { 24, 8 },
	[VA] = { 33, 16 },
};

/* Offsets of the fields in the form of bytes. */
enum {
	BYTES_LID = 0,
	BYTES_OUT_READS = 4,
	BYTES_QPN = 8,
	BYTES_PSN = 12,
	BYTES_RKEY = 16,
	BYTES_VA = 24,
	BYTES_GID = 32,
	BYTES_GID_INDEX = 52,
};

static int
text_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool
text_number(const uint8_t *text, unsigned int digits, uint64_t *value)
{
	*value = 0;
	while (digits-- > 0) {
		int d = text_digit(*text++);

		if (d < 0)
			return false;
		*value = *value << 4 | (unsigned int)d;
	}
	return true;
}

static uint8_t
reads(uint64_t out_reads)
{
	return out_reads > UINT8_MAX ? UINT8_MAX : (uint8_t)out_reads;
}

int
perftest_text_length(const uint8_t *text, size_t len)
{
	if (len > 0 && text_digit(text[0]) < 0)
		return -1;
	if (len <= GID_AT + 2)
		return 0;
	return text[GID_AT + 2] == ':' ? PERFTEST_TEXT : PERFTEST_TEXT_LID;
}

static bool
read_gid(const uint8_t *text, union gid *gid)
{
	uint64_t byte;
	unsigned int i;

	for (i = 0; i < sizeof(gid->raw); i++, text += 3) {
		if (!text_number(text, 2, &byte) || text[2] != ':')
			return false;
		gid->raw[i] = (uint8_t)byte;
	}
	return true;
}

bool
perftest_text_read(const uint8_t *text, size_t len, struct perftest_dest *d)
{
	uint64_t v[FIELDS];
	unsigned int i;

	for (i = 0; i < FIELDS; i++) {
		if (!text_number(text + fields[i].at, fields[i].digits, &v[i]) ||
			text[fields[i].at + fields[i].digits] != ':')
			return false;
	}
	*d = (struct perftest_dest){
		.lid = (uint16_t)v[LID],
		.out_reads = reads(v[OUT_READS]),
		.qpn = (uint32_t)v[QPN],
		.psn = (uint32_t)v[PSN],
		.rkey = (uint32_t)v[RKEY],
		.va = v[VA],
		.has_gid = len == PERFTEST_TEXT,
	};
	return !d->has_gid || read_gid(text + GID_AT, &d->gid);
}

size_t
perftest_text_write(const struct perftest_dest *d, uint8_t *text)
{
	char out[PERFTEST_TEXT + 1];
	int at = snprintf(out, sizeof(out), "%04x:%04x:%06x:%06x:%08x:%016llx:", d->lid,
		d->out_reads, d->qpn, d->psn, d->rkey, (unsigned long long)d->va);
	unsigned int i;

	for (i = 0; d->has_gid && i < sizeof(d->gid.raw); i++)
		at += snprintf(out + at, sizeof(out) - (size_t)at, "%02x:", d->gid.raw[i]);
	at += snprintf(out + at, sizeof(out) - (size_t)at, d->has_gid ? "%08x:" : "%08x", 0);
	memcpy(text, out, (size_t)at + 1);
	return (size_t)at + 1;
}

void
perftest_bytes_read(const uint8_t *bytes, struct perftest_dest *d)
{
	*d = (struct perftest_dest){
		.lid = (uint16_t)get_be32(bytes + BYTES_LID),
		.out_reads = reads(get_be32(bytes + BYTES_OUT_READS)),
		.qpn = get_be32(bytes + BYTES_QPN),
		.psn = get_be32(bytes + BYTES_PSN),
		.rkey = get_be32(bytes + BYTES_RKEY),
		.va = get_be64(bytes + BYTES_VA),
		.has_gid = get_be32(bytes + BYTES_GID_INDEX) != GID_INDEX_NONE,
	};
	memcpy(d->gid.raw, bytes + BYTES_GID, sizeof(d->gid.raw));
}

void
perftest_bytes_write(const struct perftest_dest *d, uint8_t *bytes)
{
	memset(bytes, 0, PERFTEST_BYTES);
	put_be32(bytes + BYTES_LID, d->lid);
	put_be32(bytes + BYTES_OUT_READS, d->out_reads);
	put_be32(bytes + BYTES_QPN, d->qpn);
	put_be32(bytes + BYTES_PSN, d->psn);
	put_be32(bytes + BYTES_RKEY, d->rkey);
	put_be64(bytes + BYTES_VA, d->va);
	memcpy(bytes + BYTES_GID, d->gid.raw, sizeof(d->gid.raw));
	put_be32(bytes + BYTES_GID_INDEX, d->has_gid ? 0 : GID_INDEX_NONE);
}
