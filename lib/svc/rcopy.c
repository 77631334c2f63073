/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "rcopy": librdmacm's rcopy, either side, over rsockets. As server it receives files and
 * counts them. With mr_key it keeps the last file in that region and writes nowhere else: it
 * ignores paths. As client it sends a file of length bytes: 0, 1, ... 255, 0, ...
 */

#include <errno.h>
#include <string.h>

#include "svc/rcopy.h"

#define HALF (128u << 10) /* of a receive buffer */

/* --- both sides --- */

static void
rcopy_data(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	if (svc_conn_active(c))
		rcopy_answered(c, bytes, length);
	else
		rcopy_serve(c, bytes, length);
}

static void
rcopy_pump(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	const struct rcopy *t = svc_state(svc_conn_service(c));
	uint32_t n;

	/* an answer or the client's request; after a WRITE request the file */
	while (r->out_length != 0) {
		n = rsocket_say(c, r->out, r->out_length);
		if (n == 0)
			return;
		r->out_length -= n;
		memmove(r->out, r->out + n, r->out_length);
	}
	while (r->to_send != 0) {
		n = rsocket_send(c, &t->pattern, (r->size - r->to_send) & 0xFF, r->to_send);
		if (n == 0)
			return;
		r->to_send -= n;
	}
	if (r->stage == RCOPY_OVER)
		rsocket_leave(c);
}

static void
rcopy_ended(struct svc_conn *c, const struct cm_info *info)
{
	(void)info;
	if (!svc_conn_active(c))
		rcopy_release(c);
}

/* --- service --- */

static void
rcopy_adjust(struct svc_config *config)
{
	if (config->active && config->length == 0)
		config->length = 1 << 20;
}

/* Look up the region of mr_key each time: its owner may deregister it. */
static int
rcopy_find_region(struct svc *s, struct mem_mr_info *file, struct error *err)
{
	uint32_t key = svc_config(s)->mr_key;

	if (mem_mr_query(svc_env(s)->mem, key, file) != 0)
		return error_set(err, EINVAL, "mr_key: there is no memory region 0x%08x", key);
	if ((file->access & MEM_ACCESS_LOCAL_WRITE) == 0)
		return error_set(err, EINVAL, "mr_key: 0x%08x has no access LOCAL_WRITE", key);
	return 0;
}

static int
open_memory(struct svc *s, struct rcopy *t, struct error *err)
{
	const struct svc_config *config = svc_config(s);

	if (config->active)
		return rsocket_pattern(s, &t->pattern, err);
	return config->mr_key != 0 ? rcopy_find_region(s, &t->file, err) : 0;
}

static int
rcopy_open(struct svc *s, struct error *err)
{
	struct rcopy *t = svc_make_state(s, sizeof(*t), err);
	int ret;

	if (t == NULL)
		return -ENOMEM;
	t->rs.begin = rcopy_begin;
	t->rs.data = rcopy_data;
	t->rs.pump = rcopy_pump;
	ret = rsocket_open(s, HALF, err);
	return ret != 0 ? ret : open_memory(s, t, err);
}

const struct svc_ops svc_rcopy = {
	.name = "rcopy",
	.help = "librdmacm's rcopy, over rsockets: takes files, sends one",
	.client = true,
	.server = true,
	.defaults = { .max_connections = 16 },
	.conn_size = sizeof(struct rcopy_conn),
	.adjust = rcopy_adjust,
	.open = rcopy_open,
	.close = rsocket_close,
	.shape = rsocket_shape,
	.request = rsocket_request,
	.prepare = rsocket_prepare,
	.established = rsocket_established,
	.completion = rsocket_completion,
	.ended = rcopy_ended,
};
