/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "ucmatose": the exchange of librdmacm's program (-C count, -S size). The server sends count
 * messages as soon as it is connected, expects as many, and disconnects; the client receives first,
 * then sends. The contents do not matter. The program allows no RNR retries, so all receives are
 * posted before the connection is established.
 */

#include "svc/kinds.h"

#define COUNT_MAX 4096

struct ucmatose_conn {
	bool sending;
	uint64_t sent; /* completed */
	uint64_t received;
};

static int
ucmatose_open(struct svc *s, struct error *err)
{
	const struct svc_config *c = svc_config(s);
	uint32_t count = (uint32_t)c->count;
	int ret;

	ret = svc_check("count", c->count, 1, COUNT_MAX, err);
	if (ret != 0)
		return ret;
	svc_queues(s, count, count);
	/* one buffer to send from and one that all messages are received into, as in ucmatose */
	return svc_buffers(s, 2 * (uint64_t)c->size, MEM_ACCESS_LOCAL_WRITE, err);
}

static int
ucmatose_prepare(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct svc_region r = svc_conn_buffer(c);
	uint64_t i;
	int ret = 0;

	svc_fill(r.bytes, config->size, 0);
	for (i = 0; i < config->count && ret == 0; i++)
		ret = svc_recv(c, (uint32_t)i, &r, config->size, config->size);
	return ret;
}

static void
ucmatose_send_all(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct ucmatose_conn *u = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	uint64_t i;

	if (u->sending)
		return;
	u->sending = true;
	for (i = 0; i < config->count; i++)
		svc_send(c, (uint32_t)i, &r, 0, config->size);
}

static void
ucmatose_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len)
{
	(void)private_data;
	(void)len;
	if (!svc_conn_active(c))
		ucmatose_send_all(c);
}

static void
ucmatose_completion(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct ucmatose_conn *u = svc_conn_priv(c);

	if (wc->opcode == WC_RECV)
		u->received++;
	else
		u->sent++;
	if (svc_conn_active(c) && u->received == config->count)
		ucmatose_send_all(c);
	if (u->received < config->count || u->sent < config->count)
		return;
	svc_count(svc_conn_counters(c), exchanges, 1);
	/* the server disconnects, the client waits for it */
	if (!svc_conn_active(c))
		svc_disconnect(c);
}

const struct svc_ops svc_ucmatose = {
	.name = "ucmatose",
	.help = "count messages from server to client, then as many back, then the server disconnects",
	.client = true,
	.server = true,
	.defaults = { .size = 100, .count = 10, .max_connections = 256 },
	.conn_size = sizeof(struct ucmatose_conn),
	.open = ucmatose_open,
	.prepare = ucmatose_prepare,
	.established = ucmatose_established,
	.completion = ucmatose_completion,
};
