/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The messages of rcopy (rcopy.h), for either side. */

#include <string.h>

#include "svc/rcopy.h"
#include "wire/bytes.h"

uint64_t
rcopy_get64(const uint8_t *at, bool net)
{
	return net ? get_be64(at) : __builtin_bswap64(get_be64(at));
}

void
rcopy_put64(uint8_t *at, uint64_t value, bool net)
{
	put_be64(at, net ? value : __builtin_bswap64(value));
}

struct rcopy_head
rcopy_get_head(const uint8_t *at, bool net)
{
	uint16_t length = get_be16(at + 2);
	uint32_t data = get_be32(at + 4);

	return (struct rcopy_head){
		.version = at[0],
		.command = at[1],
		.length = net ? length : __builtin_bswap16(length),
		.data = net ? data : __builtin_bswap32(data),
		.id = rcopy_get64(at + 8, net),
	};
}

void
rcopy_put_head(struct rcopy_conn *r, const struct rcopy_head *h)
{
	bool net = r->r.net;

	r->out[0] = h->version;
	r->out[1] = h->command;
	put_be16(r->out + 2, net ? h->length : __builtin_bswap16(h->length));
	put_be32(r->out + 4, net ? h->data : __builtin_bswap32(h->data));
	rcopy_put64(r->out + 8, h->id, net);
	r->out_length = RCOPY_HEAD;
}

uint32_t
rcopy_gather(struct rcopy_conn *r, uint32_t want, const uint8_t *bytes, uint32_t length)
{
	uint32_t n = want - r->in_length;

	if (n > length)
		n = length;
	memcpy(r->in + r->in_length, bytes, n);
	r->in_length += n;
	return n;
}
