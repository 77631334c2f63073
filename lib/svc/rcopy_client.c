/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The client of rcopy: opens a file, sends it, closes it, and waits for the answer each time. */

#include <stdio.h>
#include <string.h>

#include "svc/rcopy.h"

#define MODE         0100644 /* a file, rw-r--r-- */
#define PATH_DEFAULT "polca.rcopy"

static void
rcopy_client_ask(struct svc_conn *c, uint8_t command, uint32_t data, uint32_t more)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	r->asked = command;
	r->in_length = 0;
	rcopy_put_head(r,
		&(struct rcopy_head){
			.command = command,
			.length = (uint16_t)(RCOPY_HEAD + more),
			.data = data,
		});
	r->out_length += more;
}

/* A path is followed by one to eight zeros, up to a multiple of eight bytes. */
void
rcopy_begin(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	const char *path = svc_config(svc_conn_service(c))->path;

	if (path[0] == '\0')
		path = PATH_DEFAULT;
	memset(r->out, 0, sizeof(r->out));
	snprintf((char *)r->out + RCOPY_HEAD, sizeof(r->out) - RCOPY_HEAD, "%s", path);
	rcopy_client_ask(c, RCOPY_OPEN, MODE, ((uint32_t)strlen(path) + 8) & ~7u);
}

static void
ask_write(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	r->size = svc_config(svc_conn_service(c))->length;
	r->to_send = r->size;
	rcopy_put64(r->out + RCOPY_HEAD, r->size, r->r.net);
	rcopy_client_ask(c, RCOPY_WRITE, 0, sizeof(uint64_t));
}

static void
rcopy_client_refused(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);

	svc_count(svc_conn_counters(c), mismatches, 1);
	r->to_send = 0;
	r->stage = RCOPY_OVER;
}

static void
answer_done(struct svc_conn *c)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	struct rcopy_head h = rcopy_get_head(r->in, r->r.net);

	if (h.version != 0 || h.length != RCOPY_HEAD || h.command != (r->asked | RCOPY_RESPONSE)) {
		r->stage = RCOPY_OVER;
		svc_violation(c);
	} else if (h.data != 0) {
		rcopy_client_refused(c);
	} else if (r->asked == RCOPY_OPEN) {
		ask_write(c);
	} else if (r->asked == RCOPY_WRITE) {
		svc_count(svc_conn_counters(c), exchanges, 1);
		rcopy_client_ask(c, RCOPY_CLOSE, 0, 0);
	} else {
		r->stage = RCOPY_OVER;
	}
}

void
rcopy_answered(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rcopy_conn *r = svc_conn_priv(c);
	uint32_t n;

	for (; length != 0 && r->stage != RCOPY_OVER; bytes += n, length -= n) {
		n = rcopy_gather(r, RCOPY_HEAD, bytes, length);
		if (r->in_length == RCOPY_HEAD)
			answer_done(c);
	}
}
