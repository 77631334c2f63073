/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "memory": grants access to a region in the private data of our REP, or of our REQ if we
 * connect (grant.c).
 *
 * All connections share the region, or each has a part of its own (per_connection). A part has the
 * R_Key of a type 2 memory window bound to the connection's QP: the key works on no other QP and is
 * invalid afterwards. A part is zeroed before the next connection gets it.
 */

#include <errno.h>
#include <string.h>

#include "svc/grant.h"
#include "svc/kinds.h"

#define CLEAN_SLICE (64 << 10)

struct memory {
	struct svc_region all; /* not per_connection */
	struct svc_windows windows; /* per_connection */
};

struct memory_conn {
	uint64_t cleaned; /* bytes, after the end */
};

static void
memory_adjust(struct svc_config *c)
{
	if (c->per_connection && c->max_connections == 0)
		c->max_connections = 16;
}

static uint32_t
local_access(uint32_t access)
{
	return (access & (MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_ATOMIC)) != 0
		? MEM_ACCESS_LOCAL_WRITE
		: 0;
}

static int
memory_close(struct svc *s)
{
	struct memory *m = svc_state(s);

	return m != NULL ? svc_windows_free(s, &m->windows) : 0;
}

static int
open_region(struct svc *s, struct memory *m, struct error *err)
{
	const struct svc_config *c = svc_config(s);
	uint32_t local = local_access(c->access);
	int ret;

	if (c->mr_key != 0)
		return svc_adopt_region(s, c->mr_key, &m->all, err);
	if (!c->per_connection)
		return svc_region(s, c->length, c->access | local, &m->all, err);
	svc_place_early(s);
	ret = svc_buffers(s, c->length, local | MEM_ACCESS_MW_BIND, err);
	return ret != 0 ? ret : svc_windows_make(s, &m->windows, MEM_MW_TYPE_2, err);
}

static int
memory_open(struct svc *s, struct error *err)
{
	const struct svc_config *c = svc_config(s);
	struct memory *m;

	if (c->mr_key != 0 && c->per_connection)
		return error_set(err, EINVAL, "per_connection: not with mr_key");
	m = svc_make_state(s, sizeof(*m), err);
	return m == NULL ? -ENOMEM : open_region(s, m, err);
}

static void
memory_shape(struct svc_conn *c, struct cm_conn_param *param)
{
	struct svc *s = svc_conn_service(c);
	const struct svc_config *config = svc_config(s);
	struct memory *m = svc_state(s);
	struct svc_region r = m->all;
	struct svc_grant grant;

	if (config->per_connection) {
		r = svc_conn_buffer(c);
		r.rkey = svc_window_key(&m->windows, c);
		r.length = config->length;
	}
	param->access = config->access;
	grant = (struct svc_grant){ config->access, config->per_connection, r.rkey, r.va,
		r.length };
	svc_grant_put(param->private_data, &grant);
	param->private_len = SVC_GRANT_LEN;
}

static int
memory_prepare(struct svc_conn *c)
{
	struct svc *s = svc_conn_service(c);
	const struct svc_config *config = svc_config(s);
	struct memory *m = svc_state(s);

	if (!config->per_connection)
		return 0;
	return svc_window_bind(&m->windows, c, 0, config->length, config->access);
}

/* Zero the place's part, so that the next connection does not see this one's data. */
static bool
memory_clean(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct memory_conn *mc = svc_conn_priv(c);
	uint64_t left = config->length - mc->cleaned;

	if (!config->per_connection)
		return true;
	if (left > CLEAN_SLICE)
		left = CLEAN_SLICE;
	memset(svc_conn_buffer(c).bytes + mc->cleaned, 0, left);
	mc->cleaned += left;
	return mc->cleaned == config->length;
}

const struct svc_ops svc_memory = {
	.name = "memory",
	.help = "a region for RDMA and Atomics, granted in the REP's private data",
	.client = true,
	.server = true,
	.defaults = { .length = 1 << 20, .access = MEM_ACCESS_REMOTE, .max_connections = 4096 },
	.conn_size = sizeof(struct memory_conn),
	.adjust = memory_adjust,
	.open = memory_open,
	.close = memory_close,
	.shape = memory_shape,
	.prepare = memory_prepare,
	.clean = memory_clean,
};
