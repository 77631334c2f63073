/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The server of rcopy: a client may send the next request only after the answer to the last. */

#include <errno.h>
#include <string.h>

#include "mem/access.h"
#include "svc/rcopy.h"

#define WRITE_LENGTH 24

static struct rcopy *
service_of(struct svc_conn *c)
{
	return svc_state(svc_conn_service(c));
}

/* --- the file kept in the region of mr_key: one connection writes at a time --- */

static bool
may_write(struct svc_conn *c)
{
	struct rcopy *t = service_of(c);
	uint32_t nobody = 0;

	return t->file.length == 0 ||
		__atomic_compare_exchange_n(&t->writer, &nobody, svc_conn_place(c) + 1, false,
			__ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void
rcopy_release(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	uint32_t own = svc_conn_place(c) + 1;

	r->open = false;
	__atomic_compare_exchange_n(&service_of(c)->writer, &own, 0, false, __ATOMIC_RELEASE,
		__ATOMIC_RELAXED);
}

static void
rcopy_server_store(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	const struct mem_mr_info *file = &service_of(c)->file;
	uint32_t hint = 0;
	uint8_t *host;

	if (file->length != 0 && r->status == 0) {
		if (mem_access_hint(svc_env(svc_conn_service(c))->mem, &hint, file->key, file->pd,
			    svc_conn_qpn(c), file->va + r->at, length, MEM_ACCESS_LOCAL_WRITE,
			    &host) == MEM_OK)
			memcpy(host, bytes, length);
		else
			r->status = EIO; /* the region is gone */
	}
	r->at += length;
}

/* --- answers --- */

static void
rcopy_server_answer(struct svc_conn *c, uint8_t command, uint32_t status)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	r->stage = RCOPY_AT_HEAD;
	r->in_length = 0;
	if (r->out_length != 0) { /* the client did not wait for the last answer */
		svc_violation(c);
		return;
	}
	rcopy_put_head(r,
		&(struct rcopy_head){
			.command = command | RCOPY_RESPONSE,
			.length = RCOPY_HEAD,
			.data = status,
			.id = r->id,
		});
}

/* Answer with an error and stop: like librdmacm's rcopy, we serve no request after a failed one. */
static void
rcopy_server_refuse(struct svc_conn *c, uint8_t command, uint32_t status)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	rcopy_server_answer(c, command, status);
	r->stage = RCOPY_OVER;
}

static void
path_done(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	if (r->open || !may_write(c)) {
		rcopy_server_refuse(c, RCOPY_OPEN, EBUSY);
		return;
	}
	r->open = true;
	rcopy_server_answer(c, RCOPY_OPEN, 0);
}

/* A file that is not kept was still received completely, so that its sender reads the answer. */
static void
file_done(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	if (r->status == 0)
		svc_count(svc_conn_counters(c), exchanges, 1);
	rcopy_server_answer(c, RCOPY_WRITE, r->status);
}

/* --- requests --- */

static void
stage(struct svc_conn *c, enum rcopy_stage next, uint64_t bytes, void (*done)(struct svc_conn *))
{
	struct rcopy_conn *r = svc_conn_priv(c);

	r->stage = (uint8_t)next;
	r->left = bytes;
	r->in_length = 0;
	if (bytes == 0)
		done(c);
}

static void
head_done(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	struct rcopy_head h = rcopy_get_head(r->in, r->r.net);

	r->id = h.id;
	if (h.version != 0 || h.length < RCOPY_HEAD) {
		r->stage = RCOPY_OVER;
		svc_violation(c);
	} else if (h.command == RCOPY_OPEN) {
		stage(c, RCOPY_AT_PATH, h.length - RCOPY_HEAD, path_done);
	} else if (h.command == RCOPY_WRITE && r->open && h.length == WRITE_LENGTH) {
		stage(c, RCOPY_AT_SIZE, sizeof(uint64_t), NULL);
	} else if (h.command == RCOPY_CLOSE) {
		rcopy_release(c);
		rcopy_server_answer(c, RCOPY_CLOSE, 0);
	} else {
		rcopy_server_refuse(c, h.command, EINVAL);
	}
}

static uint32_t
take_head(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	uint32_t n = rcopy_gather(r, RCOPY_HEAD, bytes, length);

	if (r->in_length == RCOPY_HEAD)
		head_done(c);
	return n;
}

static uint32_t
take_size(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	uint64_t kept = service_of(c)->file.length;
	uint32_t n = rcopy_gather(r, sizeof(uint64_t), bytes, length);

	if (r->in_length == sizeof(uint64_t)) {
		r->size = rcopy_get64(r->in, r->r.net);
		r->at = 0;
		r->status = kept != 0 && r->size > kept ? ENOSPC : 0;
		stage(c, RCOPY_AT_FILE, r->size, file_done);
	}
	return n;
}

static uint32_t
take_rest(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	uint32_t n = r->left < length ? (uint32_t)r->left : length;
	bool file = r->stage == RCOPY_AT_FILE;

	if (file)
		rcopy_server_store(c, bytes, n);
	r->left -= n;
	if (r->left == 0)
		(file ? file_done : path_done)(c);
	return n;
}

void
rcopy_serve(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	static uint32_t (*const take[])(struct svc_conn *, const uint8_t *, uint32_t) = {
		[RCOPY_AT_HEAD] = take_head,
		[RCOPY_AT_PATH] = take_rest,
		[RCOPY_AT_SIZE] = take_size,
		[RCOPY_AT_FILE] = take_rest,
	};
	struct rcopy_conn *r = svc_conn_priv(c);
	uint32_t n;

	for (; length != 0 && r->stage != RCOPY_OVER; bytes += n, length -= n)
		n = take[r->stage](c, bytes, length);
}
