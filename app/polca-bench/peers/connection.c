/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "command.h"
#include "peers/connection.h"
#include "peers/host_port.h"

#define CONNECT_MS 10000
#define GOODBYE_MS 500
#define READS      16

static int
parse_where(struct connector *c, const char *where, uint16_t standard, struct error *err)
{
	struct host_port w;

	if (!host_port_parse(where, standard, &w) || !gid_parse(w.host, &c->ah.dgid))
		return error_set(err, EINVAL,
			"%s: got \"%.64s\", allowed: ADDRESS, ADDRESS:PORT, [ADDRESS]:PORT, as 10.0.0.2:%u",
			c->option, where, standard);
	c->connect.service_id = cm_service_id(CM_PS_TCP, w.port);
	return 0;
}

int
connector_init(struct connector *c, struct endpoint *end, const struct bench_options *o,
	const char *option, const char *where, uint16_t port, uint32_t most, struct error *err)
{
	*c = (struct connector){
		.end = end,
		.option = option,
		.ah = { .port = end->port },
		.connect = { .ah = &c->ah, .rdma = true, .path_mtu = (uint16_t)o->mtu,
			/* twice that, and the other side's delay: the Local ACK Timeout */
			.packet_life = (uint8_t)(o->timeout > 1 ? o->timeout - 1 : 1),
			.timeout_ms = CONNECT_MS,
			.param = { .responder_resources = READS, .initiator_depth = READS,
				.access = MEM_ACCESS_REMOTE, .retry_count = 7,
				.rnr_retry_count = 7, .min_rnr_timer = 1, }, },
	};
	endpoint_qp_attr(end, o, &c->connect.param.qp);
	c->connect.param.qp.send_cq = c->connect.param.qp.recv_cq = end->cq[0];
	end->connection = calloc(most, sizeof(*end->connection));
	if (end->connection == NULL)
		return error_set(err, ENOMEM, "no memory for %u connections", most);
	return parse_where(c, where, port, err);
}

void
connection_turn(struct endpoint *end)
{
	engine_turn(end->engine, 0, rte_get_tsc_cycles());
	engine_cm_watch(end->engine);
}

static int
connector_wait(struct connector *c, uint32_t attempt, struct engine_cm_outcome *out,
	struct error *err)
{
	struct engine *e = c->end->engine;
	int ret;

	do {
		connection_turn(c->end);
		report_progress("connection %u", c->end->connections + 1);
		ret = engine_cm_outcome(e, attempt, out, err);
	} while (ret == 0 && !out->done && bench_stop == 0);
	if (ret == 0 && !out->established)
		ret = error_set(err, ECONNREFUSED, "%s: %s", c->option,
			out->done ? out->why.text : "interrupted");
	engine_cm_forget(e, attempt);
	return ret;
}

int
connector_open(struct connector *c, struct engine_cm_outcome *out, struct error *err)
{
	uint32_t attempt;
	int ret = engine_cm_connect(c->end->engine, &c->connect, &attempt, err);

	*out = (struct engine_cm_outcome){ .done = false };
	if (ret == 0)
		ret = connector_wait(c, attempt, out, err);
	if (ret == 0)
		c->end->connection[c->end->connections++] = out->info.id;
	return ret;
}

static bool
connection_gone(struct endpoint *end, cm_id id)
{
	struct cm_info info;

	return engine_cm_get(end->engine, id, &info, NULL) != 0 || info.state == CM_STATE_TIMEWAIT;
}

void
connections_close(struct endpoint *end)
{
	uint64_t until = rte_get_tsc_cycles() + GOODBYE_MS * (rte_get_tsc_hz() / 1000);
	uint32_t i;

	for (i = 0; i < end->connections; i++)
		engine_cm_disconnect(end->engine, end->connection[i], NULL);
	for (i = 0; i < end->connections && rte_get_tsc_cycles() < until;) {
		connection_turn(end);
		i += connection_gone(end, end->connection[i]);
	}
}
