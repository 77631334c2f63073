/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A request with a wrong R_Key, or beyond its region, ends its queue pair, so who guesses R_Keys
 * needs a new connection for each guess. The control thread counts such ends by the peer's address.
 * An address with too many of them within a minute gets no new connection for a while.
 */

#include <rte_cycles.h>

#include "engine/worker.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

#define WINDOW_NS (UINT64_C(60) * NS_PER_S)

/* The address that the connection manager knows a peer by: a LID is ::lid. */
static union gid
guesser_address(const struct qp_failure *f)
{
	union gid addr = f->peer;

	if (f->dlid != 0) {
		addr = (union gid){ .word = { 0, 0 } };
		put_be16(addr.raw + 14, f->dlid);
	}
	return addr;
}

/* The entry of an address. A new one takes the place of that whose minute began first. */
static struct key_guesser *
guesser_entry(struct engine *e, const union gid *addr, uint64_t now)
{
	struct key_guesser *g = e->key_guessers, *oldest = g, *end = g + KEY_GUESSERS;

	for (; g < end; g++) {
		if (g->errors > 0 && gid_equal(&g->addr, addr))
			break;
		if (g->since < oldest->since)
			oldest = g;
	}
	if (g == end) {
		g = oldest;
		*g = (struct key_guesser){ .addr = *addr, .since = now };
	}
	if (now - g->since > WINDOW_NS) {
		g->since = now;
		g->errors = 0;
	}
	return g;
}

struct pause_request {
	union gid addr;
	uint64_t until; /* TSC */
};

static int
pause_on_worker(struct worker *w, void *arg)
{
	const struct pause_request *r = arg;

	cm_pause_peer(w->cm, &r->addr, r->until);
	return 0;
}

void
key_guessers_count(struct engine *e, const struct event *ev)
{
	const struct qp_failure *f = &ev->failure;
	struct pause_request r;
	struct event told = { .type = EVENT_PEER_PAUSED };
	struct key_guesser *g;
	unsigned int i;

	if (ev->type != EVENT_QP_ERROR || e->config.key_errors == 0 ||
		f->verdict != VERDICT_NAK_SENT || f->syndrome != AETH_NAK_REMOTE_ACCESS)
		return;
	r.addr = guesser_address(f);
	g = guesser_entry(e, &r.addr, ev->time);
	if (++g->errors < e->config.key_errors)
		return;
	g->errors = 0;
	r.until = rte_get_tsc_cycles() + e->config.key_error_pause_s * e->hz;
	for (i = 0; i < e->num_workers; i++)
		engine_call(e, i, pause_on_worker, &r);
	told.element = f->port;
	told.gid = r.addr;
	events_put_control(e, &told);
}
