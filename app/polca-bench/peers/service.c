/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The other endpoint is a Polca service (docs/services.md), connected through the connection
 * manager as any RDMA program does.
 */

#include <errno.h>

#include "peers/connection.h"
#include "svc/grant.h"

#define PORT 7471 /* the port of librdmacm's example programs */

/* Take the memory grant from a connection's private data. All connections must have the same. */
static int
take_grant(struct peer *p, const struct engine_cm_outcome *out, uint32_t nth, uint64_t *length,
	const struct bench_options *o, struct error *err)
{
	static const uint32_t needed[] = {
		[BENCH_WRITE] = MEM_ACCESS_REMOTE_WRITE,
		[BENCH_READ] = MEM_ACCESS_REMOTE_READ,
		[BENCH_ATOMIC] = MEM_ACCESS_REMOTE_ATOMIC,
	};
	struct svc_grant grant;

	if (o->verb == BENCH_SEND)
		return 0;
	if (!svc_grant_get(out->private_data, out->private_len, &grant))
		return error_set(err, EPROTO,
			"%s: it grants no memory: is it a service of kind memory?", o->connect);
	if ((grant.access & needed[o->verb]) == 0)
		return error_set(err, EACCES, "%s: its memory does not allow this access",
			o->connect);
	if (nth > 0 && p->key != grant.rkey)
		return error_set(err, ENOTSUP, "%s: it has memory per connection: leave out -q",
			o->connect);
	p->key = grant.rkey;
	p->va = grant.va;
	*length = grant.length;
	if (*length < memory_bytes(o))
		return error_set(err, ENOSPC,
			"%s: its memory has %lu bytes, these messages need %lu: reduce -s or -F",
			o->connect, *length, memory_bytes(o));
	return 0;
}

int
service_connect(struct endpoint *end, struct peer *p, const struct bench_options *o,
	uint64_t *grant, struct error *err)
{
	struct engine_cm_outcome out;
	struct connector c;
	int ret = connector_init(&c, end, o, "--connect", o->connect, PORT, o->qps, err);

	*grant = 0;
	while (ret == 0 && end->qps < o->qps) {
		ret = connector_open(&c, &out, err);
		if (ret != 0)
			return ret;
		end->qpn[end->qps] = out.info.qpn;
		ret = take_grant(p, &out, end->qps++, grant, o, err);
	}
	return ret;
}
