/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The other end is a Polca service (docs/services.md): queue pairs are connected by the connection
 * manager, as any RDMA program's are.
 */

#include <errno.h>

#include "connection.h"
#include "wire/bytes.h"

#define PORT 7471 /* of librdmacm's programs */

/* docs/services.md, "What memory grants" */
#define GRANT_LENGTH  24
#define GRANT_VERSION 1
#define GRANT_READ    0x01
#define GRANT_WRITE   0x02
#define GRANT_ATOMIC  0x04

/* What this connection may reach, the same as the ones before. */
static int
take_grant(struct peer *p, const struct engine_cm_outcome *out, uint32_t nth, uint64_t *length,
	const struct bench_options *o, struct error *err)
{
	static const uint8_t needed[] = { [BENCH_WRITE] = GRANT_WRITE, [BENCH_READ] = GRANT_READ,
		[BENCH_ATOMIC] = GRANT_ATOMIC };
	const uint8_t *grant = out->private_data;

	if (o->verb == BENCH_SEND)
		return 0;
	if (out->private_len < GRANT_LENGTH || grant[0] != GRANT_VERSION)
		return error_set(err, EPROTO, "%s: is no service of kind memory: it grants nothing",
				o->connect);
	if ((grant[1] & needed[o->verb]) == 0)
		return error_set(err, EACCES, "%s: its memory does not allow that (access)",
				o->connect);
	if (nth > 0 && p->key != get_be32(grant + 4))
		return error_set(err, ENOTSUP, "%s: memory per_connection: leave out -q", o->connect);
	p->key = get_be32(grant + 4);
	p->va = get_be64(grant + 8);
	*length = get_be64(grant + 16);
	if (*length < memory_bytes(o))
		return error_set(err, ENOSPC, "%s: its memory has %lu bytes, these messages go through "
				"%lu: less with -s and -F", o->connect, *length, memory_bytes(o));
	return 0;
}

int
service_connect(struct end *end, struct peer *p, const struct bench_options *o, uint64_t *grant,
	struct error *err)
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
