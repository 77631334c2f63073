/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * How many requests of one packet a worker answers: receive, check, answer, send. The requests are
 * built beforehand and repeated; what happens to the answers is not timed.
 */

#include <string.h>

#include <rte_cycles.h>

#include "agents/agents.h"
#include "wire/put.h"

void
answer_add(struct frames *requests, const struct mad_peer *to, const uint8_t *mad)
{
	struct path path;
	uint8_t *p;

	path_init(&path, &to->av, to->qpn, to->qpn);
	p = tx_reserve(&requests->sink, &path, 20 + MAD_LEN);
	if (p == NULL)
		bench_die("no room for a request");
	p = put_ud(p, to->pkey, to->qpn, to->qkey, to->qpn);
	memcpy(p, mad, MAD_LEN);
	tx_commit(&requests->sink);
}

double
answer_rate(struct frames *requests, struct frames *out, struct mad_worker *w,
	enum verdict (*receive)(struct mad_worker *w, const struct packet *pkt, uint64_t now),
	uint64_t count)
{
	uint64_t answered = 0, busy = 0, start;
	struct packet pkt;
	unsigned int n;

	while (answered < count) {
		if (requests->head == requests->tail)
			requests->head = 0;
		out->head = out->tail;
		start = rte_rdtsc();
		for (n = 0; n < BENCH_BURST && frames_front(requests, &pkt, 0) != NULL; n++) {
			receive(w, &pkt, start);
			frames_pop(requests);
		}
		mad_run(w, start, BENCH_SEND_BUDGET);
		busy += rte_rdtsc() - start;
		if (out->tail - out->head != n)
			bench_die("a request was not answered");
		answered += n;
	}
	return (double)answered * (double)bench_hz() / (double)busy;
}

const uint8_t *
answer_last(const struct frames *out)
{
	const struct frame *f = &out->frame[(out->tail - 1) & (out->size - 1)];

	return f->bytes + PATH_HEADER_MAX + 20;
}
