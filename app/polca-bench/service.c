/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The other end is a Polca service (docs/services.md): queue pairs are connected by the connection
 * manager, as any RDMA program's are.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/number.h"
#include "bench.h"
#include "cm/codes.h"
#include "command.h"
#include "engine/verbs_cm.h"
#include "wire/bytes.h"

#define PORT       7471 /* of librdmacm's programs */
#define CONNECT_MS 10000
#define GOODBYE_MS 500
#define READS      16

/* docs/services.md, "What memory grants" */
#define GRANT_LENGTH  24
#define GRANT_VERSION 1
#define GRANT_READ    0x01
#define GRANT_WRITE   0x02
#define GRANT_ATOMIC  0x04

static int
parse_where(const char *where, struct engine_cm_connect *c, struct engine_ah *ah,
	struct error *err)
{
	const char *colon = strrchr(where, ':');
	char host[GID_STRLEN + 2];
	uint64_t port = PORT;

	if (gid_parse(where, &ah->dgid))
		colon = NULL; /* of an IPv6 address without a port */
	snprintf(host, sizeof(host), "%.*s", (int)(colon != NULL ? (size_t)(colon - where)
			: strlen(where)), where);
	if (!gid_parse(host, &ah->dgid) || (colon != NULL &&
			(!number_parse(colon + 1, &port) || port == 0 || port > UINT16_MAX)))
		return error_set(err, EINVAL, "--connect: got \"%.64s\", allowed ADDRESS or "
				"ADDRESS:PORT, as 10.0.0.2:%u", where, PORT);
	c->service_id = cm_service_id(CM_PS_TCP, (uint16_t)port);
	return 0;
}

static void
turn(struct end *end)
{
	engine_turn(end->engine, 0, rte_get_tsc_cycles());
	engine_cm_watch(end->engine);
}

static int
wait_for(struct end *end, uint32_t attempt, struct engine_cm_outcome *out, struct error *err)
{
	int ret;

	do {
		turn(end);
		ret = engine_cm_outcome(end->engine, attempt, out, err);
	} while (ret == 0 && !out->done && bench_stop == 0);
	if (ret == 0 && !out->established)
		ret = error_set(err, ECONNREFUSED, "--connect: %s", out->done ? out->why.text
				: "interrupted");
	engine_cm_forget(end->engine, attempt);
	return ret;
}

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
	struct engine_ah ah = { .port = end->port };
	struct engine_cm_connect c = { .ah = &ah, .rdma = true, .path_mtu = (uint16_t)o->mtu,
		.timeout_ms = CONNECT_MS,
		.param = { .responder_resources = READS, .initiator_depth = READS, .retry_count = 7,
			.rnr_retry_count = 7, .min_rnr_timer = 1 } };
	struct engine_cm_outcome out;
	uint32_t attempt;
	int ret = parse_where(o->connect, &c, &ah, err);

	*grant = 0;
	end_qp_attr(end, o, &c.param.qp);
	c.param.qp.send_cq = c.param.qp.recv_cq = end->cq[0];
	end->connection = calloc(o->qps, sizeof(*end->connection));
	if (end->connection == NULL)
		return error_set(err, ENOMEM, "no memory for %u connections", o->qps);
	while (ret == 0 && end->qps < o->qps) {
		ret = engine_cm_connect(end->engine, &c, &attempt, err);
		if (ret == 0)
			ret = wait_for(end, attempt, &out, err);
		if (ret != 0)
			return ret;
		end->qpn[end->qps] = out.info.qpn;
		end->connection[end->qps] = out.info.id;
		ret = take_grant(p, &out, end->qps++, grant, o, err);
	}
	return ret;
}

static bool
gone(struct end *end, cm_id id)
{
	struct cm_info info;

	return engine_cm_get(end->engine, id, &info, NULL) != 0 ||
			info.state == CM_STATE_TIMEWAIT;
}

void
service_disconnect(struct end *end)
{
	uint64_t until = rte_get_tsc_cycles() + GOODBYE_MS * (rte_get_tsc_hz() / 1000);
	uint32_t i;

	if (end->connection == NULL)
		return;
	for (i = 0; i < end->qps; i++)
		engine_cm_disconnect(end->engine, end->connection[i], NULL);
	for (i = 0; i < end->qps && rte_get_tsc_cycles() < until; ) {
		turn(end);
		i += gone(end, end->connection[i]);
	}
}
