/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Private data of REQ and REP, 40 bytes, big-endian:
 *
 *    0  version 1    1  flags: 0x01 lists are big-endian, else little-endian; 0x02 always
 *    2  credits (16): data messages that may come until more are granted
 *    7  entries of a table of mapped memory, ours 0
 *    8  where the list is: address, R_Key, entries      24  the first half of the receive buffer
 */

#include <string.h>

#include "svc/rsocket_wire.h"
#include "wire/bytes.h"

#define VERSION    1
#define FLAG_NET   0x01
#define FLAG_IOMAP 0x02

static void
swap(struct rsocket_entry *e)
{
	e->va = __builtin_bswap64(e->va);
	e->key = __builtin_bswap32(e->key);
	e->length = __builtin_bswap32(e->length);
}

struct rsocket_entry
rsocket_get_entry(const uint8_t *at, bool net)
{
	struct rsocket_entry e = { get_be64(at), get_be32(at + 8), get_be32(at + 12) };

	if (!net)
		swap(&e);
	return e;
}

void
rsocket_put_entry(uint8_t *at, struct rsocket_entry e, bool net)
{
	if (!net)
		swap(&e);
	put_be64(at, e.va);
	put_be32(at + 8, e.key);
	put_be32(at + 12, e.length);
}

bool
rsocket_get_conn_data(const uint8_t *in, uint8_t len, struct rsocket_conn_data *d)
{
	if (len < RSOCKET_CONN_DATA || in[0] != VERSION)
		return false;
	d->net = in[1] & FLAG_NET;
	d->credits = get_be16(in + 2);
	d->list = rsocket_get_entry(in + 8, true);
	d->buffer = rsocket_get_entry(in + 24, true);
	return d->list.length != 0;
}

void
rsocket_put_conn_data(uint8_t out[RSOCKET_CONN_DATA], const struct rsocket_conn_data *d)
{
	memset(out, 0, RSOCKET_CONN_DATA);
	out[0] = VERSION;
	out[1] = (d->net ? FLAG_NET : 0) | FLAG_IOMAP;
	put_be16(out + 2, d->credits);
	rsocket_put_entry(out + 8, d->list, true);
	rsocket_put_entry(out + 24, d->buffer, true);
}
