/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The command timers: when packets are retransmitted, compared with when they should be, by
 * timestamps of the packets that both ports send. RNR: from the receiver's NAK; Local ACK Timeout:
 * from the packet, which is dropped on arrival. One lcore runs both endpoints.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/plural.h"
#include "median.h"
#include "traffic/benchmark.h"
#include "wire/layout.h"
#include "wire/opcode.h"
#include "wire/wire.h"

#define SAMPLES_MAX 100000
#define LOST        5 /* transmissions of a packet that are dropped, fewer than the retry count */
#define PATIENCE_MS 10000
#define SIZE        64
#define PAUSE_US    50 /* no iteration takes that long */

enum timer_kind { RNR, ACK };

static const struct timed {
	enum timer_kind kind;
	uint32_t code;
} timed[] = { { RNR, 1 }, { RNR, 12 }, { RNR, 18 }, { ACK, 8 }, { ACK, 12 }, { ACK, 14 } };

static const struct report_column columns[] = {
	{ "code", "#code", 6, 0 },
	{ "time_us", "time[usec]", 12, 2 },
	{ "samples", "samples", 8, 0 },
	{ "error_min_us", "error min[usec]", 16, 2 },
	{ "error_median_us", "median[usec]", 13, 2 },
	{ "error_p99_us", "99%[usec]", 12, 2 },
	{ "error_max_us", "max[usec]", 12, 2 },
	{ "early", "early", 6, 0 },
	{ "late", "late", 6, 0 },
	{ "disturbed", "disturbed", 9, 0 },
};

/* The packets of one opcode that a port sends: their number, and the time of the last one. */
struct tap {
	uint8_t opcode;
	uint64_t count;
	uint64_t time; /* TSC */
};

struct bed {
	struct benchmark *s;
	struct tap tap[ROLES];
	uint64_t lose; /* packets still to drop on arrival at the responder */
	double sample[SAMPLES_MAX]; /* TSC cycles after the exact time */
	unsigned int samples;
	uint64_t last_turn; /* TSC */
	uint64_t resumed; /* when the thread last continued after an interruption */
	uint64_t disturbed; /* samples during which the thread was interrupted at the exact time */
};

/* --- packets --- */

/*
 * The opcode of a RoCEv2 packet over IPv4. @return 0 for others (that is SEND First, which is not
 * used here)
 */
static uint8_t
opcode_of(const struct rte_mbuf *m)
{
	const uint8_t *eth = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len < ETH_LEN + IPV4_LEN + UDP_LEN + BTH_LEN ||
		eth[ETH_LEN - 2] != RTE_ETHER_TYPE_IPV4 >> 8 ||
		eth[ETH_LEN - 1] != (RTE_ETHER_TYPE_IPV4 & 0xFF))
		return 0;
	return eth[ETH_LEN + IPV4_LEN + UDP_LEN];
}

static uint16_t
timers_on_send(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	struct tap *t = arg;
	uint16_t i;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	for (i = 0; i < n; i++) {
		if (opcode_of(pkts[i]) != t->opcode)
			continue;
		t->count++;
		t->time = rte_rdtsc();
	}
	return n;
}

static uint16_t
timers_on_receive(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max,
	void *arg)
{
	struct bed *b = arg;
	uint16_t i, left = 0;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(max);
	for (i = 0; i < n; i++) {
		if (b->lose > 0 && opcode_of(pkts[i]) == RC_WRITE_ONLY) {
			b->lose--;
			rte_pktmbuf_free(pkts[i]);
		} else {
			pkts[left++] = pkts[i];
		}
	}
	return left;
}

static int
timers_tap_ports(struct bed *b, struct error *err)
{
	uint16_t port[ROLES];
	unsigned int i;

	for (i = 0; i < ROLES; i++) {
		port[i] = link_ethdev(engine_link(b->s->end[i].engine), 0);
		if (rte_eth_add_tx_callback(port[i], 0, timers_on_send, &b->tap[i]) == NULL)
			return error_set(err, ENOTSUP, "no filter before a transmit queue");
	}
	if (rte_eth_add_rx_callback(port[RESPONDER], 0, timers_on_receive, b) == NULL)
		return error_set(err, ENOTSUP, "no filter before a receive queue");
	return 0;
}

/* --- turns --- */

static void
timers_iteration(struct bed *b)
{
	uint64_t now = rte_rdtsc();
	unsigned int i;

	if (now - b->last_turn > PAUSE_US * (rte_get_tsc_hz() / 1000000))
		b->resumed = now;
	b->last_turn = now;
	for (i = 0; i < ROLES; i++)
		engine_turn(b->s->end[i].engine, 0, rte_rdtsc());
}

/* Wait until an endpoint has sent this many packets. */
static int
wait_sent(struct bed *b, enum bench_role role, uint64_t count, uint64_t *when, struct error *err)
{
	const struct tap *t = &b->tap[role];
	uint64_t end = rte_rdtsc() + PATIENCE_MS * (rte_get_tsc_hz() / 1000);

	while (t->count < count) {
		timers_iteration(b);
		if (rte_rdtsc() > end)
			return error_set(err, ETIMEDOUT, "nothing was retransmitted for %d ms",
				PATIENCE_MS);
	}
	*when = t->time;
	return 0;
}

static int
wait_done(struct bed *b, const struct endpoint *end, struct error *err)
{
	uint64_t until = rte_rdtsc() + PATIENCE_MS * (rte_get_tsc_hz() / 1000);
	struct wc wc;

	while (rte_rdtsc() < until) {
		timers_iteration(b);
		if (engine_cq_poll(end->engine, end->cq[0], &wc, 1, NULL) != 1)
			continue;
		return wc.status == WC_SUCCESS
			? 0
			: error_set(err, EIO, "a request failed: %s", wc_status_name(wc.status));
	}
	return error_set(err, ETIMEDOUT, "a request was not answered");
}

static int
timers_post(const struct endpoint *end, const struct peer *peer, enum wr_opcode opcode,
	struct error *err)
{
	struct sge sge = { end->mr.va, SIZE, end->mr.key };
	struct send_wr wr = {
		.opcode = opcode,
		.num_sge = 1,
		.sg_list = &sge,
		.send_flags = SEND_SIGNALED,
		.remote_addr = peer->va,
		.rkey = peer->key,
	};

	return rc_post_send(end->rc[0], end->qpn[0], &wr, err);
}

/* --- samples --- */

static void
timers_add_sample(struct bed *b, uint64_t from, uint64_t to, double cycles)
{
	if ((double)b->resumed > (double)from + cycles)
		b->disturbed++;
	else if (b->samples < SAMPLES_MAX)
		b->sample[b->samples++] = (double)(to - from) - cycles;
}

static bool
timers_enough(const struct bed *b, uint64_t start)
{
	const struct bench_options *o = &b->s->o;

	report_progress("%u sample%s", (unsigned int)b->samples, plural(b->samples));
	if (bench_stop != 0 || b->samples == SAMPLES_MAX)
		return true;
	if (o->iterations > 0)
		return b->samples >= o->iterations;
	return (double)(rte_rdtsc() - start) >= o->seconds * (double)rte_get_tsc_hz();
}

/* Send to a queue without receives, retry after RNR, and at the end post a receive. */
static int
sample_rnr(struct bed *b, const struct endpoint end[ROLES], const struct peer peer[ROLES],
	double cycles, struct error *err)
{
	const struct endpoint *to = &end[RESPONDER];
	struct sge sge = { to->mr.va, SIZE, to->mr.key };
	struct recv_wr wr = { .num_sge = 1, .sg_list = &sge };
	uint64_t start = rte_rdtsc(), nak = 0, when = 0, naks = 0;
	int ret;

	b->tap[REQUESTER] = (struct tap){ .opcode = RC_SEND_ONLY };
	b->tap[RESPONDER] = (struct tap){ .opcode = RC_ACK };
	ret = timers_post(&end[REQUESTER], &peer[REQUESTER], WR_SEND, err);
	while (ret == 0 && !timers_enough(b, start)) {
		ret = wait_sent(b, RESPONDER, ++naks, &nak, err);
		if (ret == 0)
			ret = wait_sent(b, REQUESTER, naks + 1, &when, err);
		if (ret == 0)
			timers_add_sample(b, nak, when, cycles);
	}
	if (ret == 0)
		ret = rc_post_recv(to->rc[0], to->qpn[0], &wr, err);
	return ret == 0 ? wait_done(b, &end[REQUESTER], err) : ret;
}

/* Drop each packet a few times. */
static int
sample_ack(struct bed *b, const struct endpoint end[ROLES], const struct peer peer[ROLES],
	double cycles, struct error *err)
{
	uint64_t start = rte_rdtsc(), before = 0, when = 0;
	unsigned int i;
	int ret = 0;

	b->tap[RESPONDER] = (struct tap){ .opcode = RC_ACK };
	while (ret == 0 && !timers_enough(b, start)) {
		b->tap[REQUESTER] = (struct tap){ .opcode = RC_WRITE_ONLY };
		b->lose = LOST;
		ret = timers_post(&end[REQUESTER], &peer[REQUESTER], WR_RDMA_WRITE, err);
		for (i = 0; i <= LOST && ret == 0; i++) {
			ret = wait_sent(b, REQUESTER, i + 1, &when, err);
			if (ret == 0 && i > 0)
				timers_add_sample(b, before, when, cycles);
			before = when;
		}
		if (ret == 0)
			ret = wait_done(b, &end[REQUESTER], err);
	}
	return ret;
}

/*
 * Early: before the exact time. Late: after four times that time. Interrupted samples do not count.
 */
static void
timers_report(struct bed *b, const struct timed *t, double cycles)
{
	double us = 1e6 / (double)rte_get_tsc_hz(), early = 0, late = 0;
	unsigned int i, n = b->samples;

	for (i = 0; i < n; i++) {
		early += b->sample[i] < 0;
		late += t->kind == ACK && b->sample[i] > 3 * cycles;
	}
	double row[] = { t->code, us * cycles, n, us * quantile(b->sample, n, 0),
		us * median(b->sample, n), us * quantile(b->sample, n, 0.99),
		us * quantile(b->sample, n, 1), early, late, (double)b->disturbed };

	report_row(b->s->report, row);
}

static int
timers_measure(struct bed *b, const struct timed *t, struct error *err)
{
	double ns = t->kind == RNR ? (double)rnr_timer_ns(t->code) : 4096.0 * (1u << t->code);
	double cycles = ns * (double)rte_get_tsc_hz() / 1e9;
	struct bench_options o = b->s->o;
	struct endpoint end[ROLES] = { { .shared = true }, { .shared = true } };
	struct peer peer[ROLES];
	unsigned int i;
	int ret = 0;

	*(t->kind == RNR ? &o.rnr_timer : &o.timeout) = t->code;
	for (i = 0; i < ROLES && ret == 0; i++) {
		ret = endpoint_add(&end[i], &b->s->end[i], &o, err);
		endpoint_describe(&end[i], &peer[!i]);
	}
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = endpoint_connect(&end[i], &peer[i], &o, err);
	b->samples = 0;
	b->disturbed = 0;
	if (ret == 0)
		ret = (t->kind == RNR ? sample_rnr : sample_ack)(b, end, peer, cycles, err);
	if (ret == 0)
		timers_report(b, t, cycles);
	for (i = 0; i < ROLES; i++)
		endpoint_destroy(&end[i]);
	return ret;
}

static int
timers_run_all(struct bed *b, struct error *err)
{
	static const char *const names[] = { [RNR] = "rnr", [ACK] = "ack" };
	struct benchmark *s = b->s;
	unsigned int i;
	int ret;

	ret = benchmark_create(s, err);
	if (ret != 0)
		return ret;
	for (i = 0; i < ROLES; i++)
		endpoint_describe(&s->end[!i], &s->peer[i]);
	ret = benchmark_connect(s, err);
	if (ret == 0)
		ret = timers_tap_ports(b, err);
	if (ret != 0)
		return ret;
	benchmark_report_environment(s);
	for (i = 0; i < RTE_DIM(timed) && ret == 0 && bench_stop == 0; i++) {
		if (i == 0 || timed[i].kind != timed[i - 1].kind) {
			report_note(s->report, "%s:",
				timed[i].kind == RNR
					? "RNR NAK to the packet's retransmission"
					: "Local ACK Timeout, from one transmission to the next");
			report_table(s->report, names[timed[i].kind], columns, RTE_DIM(columns));
		}
		ret = timers_measure(b, &timed[i], err);
	}
	return ret;
}

int
timers_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	struct benchmark *s = calloc(1, sizeof(*s));
	struct bed *b = calloc(1, sizeof(*b));
	struct eal_wish wish = { .workers = 0 };
	int ret = 0;

	RTE_SET_USED(c);
	if (s == NULL || b == NULL)
		ret = error_set(err, ENOMEM, "no memory");
	if (ret == 0) {
		b->s = s;
		s->o = *o;
		s->o.size = SIZE;
		s->report = r;
		s->link = link_find(o, err);
		benchmark_wish(&s->o, s->link, REQUESTER, &wish);
		ret = bench_eal_start(&s->o, &wish, err);
	}
	if (ret == 0)
		ret = timers_run_all(b, err);
	if (s != NULL)
		benchmark_destroy(s);
	free(s);
	free(b);
	return ret;
}
