/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "pcap.h"

#define MAGIC      0xA1B2C3D4u
#define MAGIC_SWAP 0xD4C3B2A1u
#define MAGIC_NANO 0xA1B23C4Du

static uint32_t
fix(const struct pcap *p, uint32_t v)
{
	return p->swapped ? __builtin_bswap32(v) : v;
}

int
pcap_open(struct pcap *p, const char *path)
{
	uint32_t header[6];

	p->len = 0;
	p->file = fopen(path, "rb");
	if (p->file == NULL)
		return -1;
	if (fread(header, sizeof(header), 1, p->file) != 1)
		goto fail;
	p->swapped = header[0] == MAGIC_SWAP;
	if (!p->swapped && header[0] != MAGIC && header[0] != MAGIC_NANO)
		goto fail;
	p->link_type = fix(p, header[5]);
	return 0;
fail:
	fclose(p->file);
	return -1;
}

int
pcap_next(struct pcap *p)
{
	uint32_t record[4];
	size_t n = fread(record, 1, sizeof(record), p->file);

	if (n == 0)
		return 0;
	if (n != sizeof(record))
		return -1;
	p->len = fix(p, record[2]);
	if (p->len > sizeof(p->data) || fread(p->data, 1, p->len, p->file) != p->len)
		return -1;
	return 1;
}

void
pcap_close(struct pcap *p)
{
	fclose(p->file);
}
