/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * An R_Key for each connection: one memory window per place, bound to the place's part of
 * svc_buffers(). The key of type 2 works on the connection's QP only and becomes invalid with it;
 * that of type 1 works on all QPs of the service until the place's next connection. The next
 * connection gets a different key in both cases.
 */

#include <errno.h>

#include <rte_debug.h>

#include "svc/kinds.h"

int
svc_windows_make(struct svc *s, struct svc_windows *w, enum mem_mw_type type, struct error *err)
{
	uint32_t n = svc_config(s)->max_connections;
	int ret;

	w->keys = mem_zalloc(svc_env(s)->alloc, n * sizeof(w->keys[0]), 64);
	if (w->keys == NULL)
		return error_set(err, ENOMEM, "no memory for %u windows", n);
	for (; w->count < n; w->count++) {
		ret = mem_mw_alloc(svc_env(s)->mem, svc_pd(s), type, &w->keys[w->count], err);
		if (ret != 0)
			return ret;
	}
	return 0;
}

int
svc_windows_free(struct svc *s, struct svc_windows *w)
{
	for (; w->count != 0; w->count--) {
		if (mem_mw_free(svc_env(s)->mem, w->keys[w->count - 1], NULL) == -EAGAIN)
			return -EAGAIN;
	}
	mem_free(svc_env(s)->alloc, w->keys);
	w->keys = NULL;
	return 0;
}

/* The consumer chooses the low byte of a type 2 window's key: use another one each time. */
uint32_t
svc_window_key(const struct svc_windows *w, const struct svc_conn *c)
{
	uint32_t key = w->keys[svc_conn_place(c)];

	RTE_ASSERT(svc_conn_place(c) < w->count);
	return (key & ~0xFFu) | ((key + 1) & 0xFF);
}

int
svc_window_bind(struct svc_windows *w, const struct svc_conn *c, uint64_t offset, uint64_t length,
	uint32_t access)
{
	struct svc *s = svc_conn_service(c);
	struct svc_region r = svc_conn_buffer(c);
	uint32_t *key = &w->keys[svc_conn_place(c)];
	struct mem_bind bind = {
		.mw_key = *key,
		.new_key = svc_window_key(w, c),
		.mr_key = r.lkey,
		.pd = svc_pd(s),
		.qpn = svc_conn_qpn(c),
		.access = access,
		.va = r.va + offset,
		.length = length,
	};
	uint64_t token;

	RTE_ASSERT(offset <= r.length && length <= r.length - offset);
	return mem_mw_bind(svc_env(s)->mem, &bind, key, &token);
}
