/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_KINDS_H
#define SVC_KINDS_H

/**
 * @file
 * The kinds of services, each defined in its own file and listed in svc.c, and functions they
 * share.
 */

#include "svc/svc.h"

extern const struct svc_ops svc_memory;
extern const struct svc_ops svc_echo;
extern const struct svc_ops svc_sink;
extern const struct svc_ops svc_rcopy;
extern const struct svc_ops svc_rping;
extern const struct svc_ops svc_rstream;
extern const struct svc_ops svc_ucmatose;
extern const struct svc_ops svc_perftest;

/**
 * Control thread: check that a parameter is within its bounds: "size: got 7, allowed: 32 to 65535"
 */
int svc_check(const char *what, uint64_t got, uint64_t min, uint64_t max, struct error *err);

/** In prepare(): post receives of size bytes, wr_id 0 on, from the start of the place's buffer. */
int svc_recv_ring(struct svc_conn *c, uint32_t count);

/** Fill or check the contents of a client's n-th message. */
void svc_fill(uint8_t *bytes, uint32_t length, uint64_t message);
bool svc_filled(const uint8_t *bytes, uint32_t length, uint64_t message);

/**
 * R_Keys of connections for their parts of svc_buffers(), whose access is MEM_ACCESS_MW_BIND.
 * Created in open(), freed in close(); only the connection that has a place uses its key.
 */
struct svc_windows {
	uint32_t *keys; /**< by place */
	uint32_t count;
};
int svc_windows_make(struct svc *s, struct svc_windows *w, enum mem_mw_type type,
	struct error *err);
/** @retval -EAGAIN */
int svc_windows_free(struct svc *s, struct svc_windows *w);
/** The key that svc_window_bind() will give the connection; type 2. */
uint32_t svc_window_key(const struct svc_windows *w, const struct svc_conn *c);
/**
 * Bind the connection's window to @p length bytes at @p offset of its buffer; call it in prepare().
 * Then w->keys[place] is the key.
 */
int svc_window_bind(struct svc_windows *w, const struct svc_conn *c, uint64_t offset,
	uint64_t length, uint32_t access);

#endif
