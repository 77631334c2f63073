/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The cost of many queue pairs: creating a million and moving them to RTS through the library, and
 * Sends of 64 bytes on 1, 10,000 and 100,000 QPs in turn, so that no QP's memory stays in a cache.
 * One core runs both ends, over a link in memory, with ICRCs made and checked.
 *
 * Many QPs are compared with one: either each Send has its own ACK, or runs of 16 share one (with
 * one QP, all Sends of a burst). As many QPs as a burst has packets stay in the caches; they show
 * the cost that is not due to memory.
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "bench.h"
#include "rc/qp_directory.h"
#include "rc/rc.h"

#define DEPTH      16
#define ONE_DEPTH  64 /* of a QP that is used alone: a burst fits */
#define MESSAGE    64
#define QUEUE      1024 /* frames */
#define WHEEL_TICK 32768
#define CQ_DEPTH   4096
#define ARENA_QP   6144 /* bytes per QP: more than one needs */
#define HUGEPAGE   (2u << 20)

static uint64_t hz;

struct side {
	struct port_attr port;
	struct frames out;
	struct timer_wheel *wheel;
	struct mem *mem;
	struct rc_dev *dev;
	struct rc_worker *w;
	uint32_t pd, cq, key;
	uint8_t *bytes; /* a message for each QP */
	uint32_t *qpn;
	uint32_t n;
};

/* --- set-up --- */

static uint32_t
power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static void
register_bytes(struct side *s, uint32_t messages)
{
	struct mem_mr_attr attr = {
		.pd = s->pd,
		.access = MEM_ACCESS_LOCAL_WRITE,
		.length = (uint64_t)messages * MESSAGE,
		.va = UINT64_MAX,
		.backing = MEM_EXTERNAL,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct error err;

	s->bytes = aligned_alloc(4096, RTE_ALIGN_CEIL(attr.length, 4096));
	if (s->bytes == NULL)
		bench_die("no memory for messages");
	memset(s->bytes, 1, attr.length);
	attr.base = s->bytes;
	if (mem_mr_register(s->mem, &attr, &info, &err) != 0)
		bench_die(err.text);
	s->key = info.key;
}

static void
qp_bench_create(struct side *s, uint32_t ip, uint32_t qps, const struct allocator *alloc)
{
	struct mem_config mc = {
		.max_pd = 1,
		.max_mr = 1,
		.max_mw = 1,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = hz,
		.alloc = alloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = { .tx = &s->out.sink };

	*s = (struct side){ .pd = 0 };
	bench_port(&s->port, ip, 18);
	frames_init(&s->out, QUEUE);
	s->wheel = timer_wheel_create(&allocator_malloc, WHEEL_TICK, rte_rdtsc());
	s->mem = mem_create(&mc);
	dc.mem = s->mem;
	dc.limits.max_qp = power_of_two(qps);
	s->dev = rc_dev_create(&dc);
	wc.wheel = s->wheel;
	s->w = s->dev != NULL ? rc_worker_create(s->dev, &wc) : NULL;
	s->qpn = calloc(qps, sizeof(*s->qpn));
	if (s->w == NULL || s->qpn == NULL || mem_pd_alloc(s->mem, &s->pd, NULL) != 0 ||
		rc_cq_create(s->dev, CQ_DEPTH, &s->cq, NULL) != 0)
		bench_die("no memory for queue pairs");
}

static void
qp_bench_destroy(struct side *s)
{
	rc_worker_destroy(s->w);
	rc_dev_destroy(s->dev);
	mem_destroy(s->mem);
	timer_wheel_destroy(s->wheel);
	frames_free(&s->out);
	free(s->bytes);
	free(s->qpn);
}

static void
qp_bench_create_qp(struct side *s, uint32_t depth, bool ack_per_packet)
{
	const struct qp_init_attr attr = { .qp_type = QPT_RC, .pd = s->pd, .send_cq = s->cq,
		.recv_cq = s->cq, .srq = RC_NO_SRQ, .ack_per_packet = ack_per_packet,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			.max_recv_sge = 1, }, };
	struct error err;

	if (rc_qp_create(s->w, &attr, &s->qpn[s->n], &err) != 0)
		bench_die(err.text);
	s->n++;
}

static void
qp_bench_modify(struct side *s, uint32_t i, const struct side *to, uint32_t dest)
{
	struct qp_attr attr = { .pkey = 0xFFFF, .path_mtu = 1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.rq_psn = 100, .sq_psn = 100, .dest_qp_num = dest,
		.neighbour = PATH_NO_NEIGHBOUR,
		.av = { .encap = ENCAP_ROCEV2_IPV4, .vlan = PATH_NO_VLAN,
			.sgid = s->port.gid[0].gid, .dgid = to->port.gid[0].gid, }, };
	static const struct {
		enum qp_state state;
		uint32_t mask;
	} steps[] = {
		{ QPS_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS },
		{ QPS_RTR,
			QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
				QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER },
		{ QPS_RTS,
			QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
				QP_ATTR_MAX_QP_RD_ATOMIC },
	};
	struct error err;
	unsigned int k;

	memcpy(attr.av.smac, s->port.mac, 6);
	memcpy(attr.av.dmac, to->port.mac, 6);
	for (k = 0; k < RTE_DIM(steps); k++) {
		attr.qp_state = steps[k].state;
		if (rc_qp_modify(s->w, s->qpn[i], &attr, steps[k].mask | QP_ATTR_STATE, &err) != 0)
			bench_die(err.text);
	}
}

/* --- creating and destroying many QPs --- */

/* Preallocated hugepages, as the engine has; all objects are freed at once. */
struct packet_arena {
	uint8_t *bytes;
	size_t size, used;
	void *mapped;
};

static void *
qp_bench_arena_alloc(void *arg, size_t size, size_t align)
{
	struct packet_arena *a = arg;
	uint8_t *mem;

	a->used = RTE_ALIGN_CEIL(a->used, align > 0 ? align : 1);
	if (size > a->size - a->used)
		return NULL;
	mem = a->bytes + a->used;
	a->used += size;
	return memset(mem, 0, size);
}

static void
qp_bench_arena_free(void *arg, void *mem)
{
	(void)arg;
	(void)mem;
}

static void
arena_init(struct packet_arena *a, size_t size)
{
	size = RTE_ALIGN_CEIL(size, HUGEPAGE);
	*a = (struct packet_arena){
		.size = size,
		.mapped = mmap(NULL, size + HUGEPAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};
	if (a->mapped == MAP_FAILED)
		bench_die("no memory for queue pairs");
	a->bytes = RTE_PTR_ALIGN_CEIL(a->mapped, HUGEPAGE);
	madvise(a->bytes, size, MADV_HUGEPAGE); /* a hint: without hugepages it works, too */
	memset(a->bytes, 0, size);
}

static void
arena_fini(struct packet_arena *a)
{
	munmap(a->mapped, a->size + HUGEPAGE);
}

static double
qp_bench_seconds(uint64_t since)
{
	return (double)(rte_rdtsc() - since) / (double)hz;
}

struct many {
	double made[BENCH_RUNS_MAX], gone[BENCH_RUNS_MAX]; /* per second */
	size_t bytes;
};

static void
make_many(struct many *m, unsigned int run, uint32_t count, const struct allocator *alloc)
{
	uint64_t start;
	struct side s;
	uint32_t i;

	qp_bench_create(&s, 1, count, alloc);
	start = rte_rdtsc();
	for (i = 0; i < count; i++) {
		qp_bench_create_qp(&s, DEPTH, false);
		qp_bench_modify(&s, i, &s, i % 0xFFFFF0 + RC_QPN_MIN);
	}
	m->made[run] = count / qp_bench_seconds(start);
	start = rte_rdtsc();
	rc_worker_destroy(s.w);
	s.w = NULL;
	m->gone[run] = count / qp_bench_seconds(start);
	qp_bench_destroy(&s);
}

static void
print_many(struct many *m, unsigned int runs, const char *memory)
{
	qsort(m->made, runs, sizeof(double), bench_by_value);
	qsort(m->gone, runs, sizeof(double), bench_by_value);
	printf("  %-28s %8.0f a second to RTS, destroyed %8.0f a second\n", memory,
		bench_quantile(m->made, runs, 0.5), bench_quantile(m->gone, runs, 0.5));
}

static void
many(uint32_t count, unsigned int runs)
{
	struct many at_hand, fresh;
	struct packet_arena arena;
	const struct allocator alloc = { qp_bench_arena_alloc, qp_bench_arena_free, &arena };
	unsigned int r;

	make_many(&fresh, 0, count, &allocator_malloc);
	malloc_trim(0);
	arena_init(&arena, (size_t)count * ARENA_QP + (64u << 20));
	for (r = 0; r < runs; r++) {
		arena.used = 0;
		make_many(&at_hand, r, count, &alloc);
	}
	printf("%u QPs, SQ and RQ of %u, one CQ: %zu bytes each with all tables, %.2f GiB\n", count,
		DEPTH, arena.used / count, (double)arena.used / (1 << 30));
	arena_fini(&arena);
	print_many(&at_hand, runs, "from memory at hand:");
	print_many(&fresh, 1, "pages yet to be had (once):");
}

/* --- Sends on many QPs --- */

#define ONE_ACKS 0 /* index of the QP with an ACK for each Send */
#define ONE_RUNS 1
#define FIRST    2 /* index of the first of many QPs */
#define AHEAD    4 /* number of QPs prefetched before a Send is posted */

struct work {
	const char *name;
	uint32_t first, active;
	unsigned int run; /* Sends posted on a QP before the next QP has its turn */
	unsigned int like; /* index of the QP it is compared with */
	uint32_t at; /* index of the QP whose turn it is */
};

static void
repost(struct side *s, uint32_t i)
{
	struct sge sge = { (uintptr_t)s->bytes + (uint64_t)i * MESSAGE, MESSAGE, s->key };
	struct recv_wr wr = { .wr_id = i, .num_sge = 1, .sg_list = &sge };
	struct error err;

	if (rc_post_recv(s->w, s->qpn[i], &wr, &err) != 0)
		bench_die(err.text);
}

static void
qp_bench_post(struct side *s, uint32_t i, bool signaled)
{
	struct sge sge = { (uintptr_t)s->bytes + (uint64_t)i * MESSAGE, MESSAGE, s->key };
	struct send_wr wr = {
		.wr_id = i,
		.opcode = WR_SEND,
		.num_sge = 1,
		.sg_list = &sge,
		.send_flags = signaled ? SEND_SIGNALED : 0,
	};
	struct error err;

	if (rc_post_send(s->w, s->qpn[i], &wr, &err) != 0)
		bench_die(err.text);
}

/* Parse, sort and execute a burst, as the engine does. */
static unsigned int
take_in(struct side *s, struct frames *in, uint64_t now)
{
	struct packet room[BENCH_BURST], *pkts[BENCH_BURST];
	unsigned int i, n;

	for (n = 0; n < BENCH_BURST && frames_front(in, &room[n], now) != NULL; n++) {
		pkts[n] = &room[n];
		frames_pop(in);
	}
	for (i = 0; i < n; i++)
		rc_prefetch_place(s->w, pkts[i]->dest_qpn);
	for (i = 0; i < n; i++)
		if (rc_owner(s->dev, pkts[i]->dest_qpn) != 0)
			bench_die("a packet for nobody");
	for (i = 0; i < n; i++) {
		rc_look_ahead(s->w, pkts, n, i);
		rc_receive(s->w, pkts[i], now);
	}
	return n;
}

/* @return number of completions */
static unsigned int
qp_bench_poll(struct side *s, bool receiver)
{
	struct wc wc[BENCH_BURST];
	int i, n = rc_cq_poll(s->dev, s->cq, wc, BENCH_BURST);

	for (i = 0; i < n; i++) {
		if (wc[i].status != WC_SUCCESS)
			bench_die(wc_status_name(wc[i].status));
		if (receiver)
			repost(s, (uint32_t)wc[i].wr_id);
	}
	return n > 0 ? (unsigned int)n : 0;
}

static unsigned int
qp_bench_serve(struct side *s, struct frames *in, bool receiver)
{
	uint64_t now = rte_rdtsc();
	unsigned int n;

	take_in(s, in, now);
	n = qp_bench_poll(s, receiver);
	timer_wheel_run(s->wheel, now);
	rc_run(s->w, now, BENCH_BURST);
	return n;
}

/* Prefetch what rc_post_send() and the following rc_run() use of the QP. */
static void
qp_bench_prefetch(const struct side *s, uint32_t i)
{
	const struct rc_qp *qp = rc_qp_there(s->w, s->qpn[i]);

	if (likely(qp != NULL))
		rc_prefetch_turn(qp);
}

/* Prefetch the places of the QP's next n WQEs. */
static void
qp_bench_prefetch_send(const struct side *s, uint32_t i, unsigned int n)
{
	const struct rc_qp *qp = rc_qp_there(s->w, s->qpn[i]);
	unsigned int k;

	for (k = 0; likely(qp != NULL) && k < n; k++)
		rte_prefetch0(rc_sq_at(&qp->req, qp->req.head + k));
}

/* Choose the QP of the next visit, and prefetch its memory and message. */
static uint32_t
next_visit(struct side *s, struct work *work)
{
	uint32_t i = work->first + work->at, later = work->at + BENCH_BURST;

	if (later < work->active)
		rc_prefetch_place(s->w, s->qpn[work->first + later]);
	work->at = work->at + 1 == work->active ? 0 : work->at + 1;
	qp_bench_prefetch(s, i);
	rte_prefetch0(s->bytes + (uint64_t)i * MESSAGE);
	return i;
}

/* @param visits  QPs of this burst; replaced by those of the next one */
static void
post_burst(struct side *s, struct work *work, uint32_t *visits, unsigned int n)
{
	unsigned int i, k;

	for (i = 0; i < n && i < AHEAD; i++)
		qp_bench_prefetch_send(s, visits[i], work->run);
	for (i = 0; i < n; i++) {
		if (i + AHEAD < n)
			qp_bench_prefetch_send(s, visits[i + AHEAD], work->run);
		for (k = 0; k < work->run; k++)
			qp_bench_post(s, visits[i], true);
		visits[i] = next_visit(s, work);
	}
}

/* CPU time of this process, so that other processes do not count. */
static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* @return Sends per second, with the work of requester and responder */
static double
send_rate(struct side *a, struct side *b, struct work *work, uint32_t messages)
{
	uint32_t sent = 0, done = 0, visits[BENCH_BURST];
	unsigned int i, n = BENCH_BURST / work->run;
	double start = cpu_seconds();

	for (i = 0; i < n; i++)
		visits[i] = next_visit(a, work);
	while (sent < messages) {
		post_burst(a, work, visits, n);
		sent += BENCH_BURST;
		while (done < sent) {
			done += qp_bench_serve(a, &b->out, false);
			qp_bench_serve(b, &a->out, true);
		}
	}
	return sent / (cpu_seconds() - start);
}

static void
connect(struct side *a, struct side *b, uint32_t qps)
{
	uint32_t i;
	unsigned int k;

	for (i = 0; i < qps; i++) {
		qp_bench_create_qp(a, i < FIRST ? ONE_DEPTH : DEPTH, i == ONE_ACKS);
		qp_bench_create_qp(b, i < FIRST ? ONE_DEPTH : DEPTH, i == ONE_ACKS);
	}
	register_bytes(a, qps);
	register_bytes(b, qps);
	for (i = 0; i < qps; i++) {
		qp_bench_modify(a, i, b, b->qpn[i]);
		qp_bench_modify(b, i, a, a->qpn[i]);
		for (k = 0; k < (i < FIRST ? ONE_DEPTH : DEPTH); k++)
			repost(b, i);
	}
}

static void
work_many(uint32_t most, uint32_t messages, unsigned int runs)
{
	struct work works[] = {
		{ "1 QP, an ACK each", ONE_ACKS, 1, 1, 0, 0 },
		{ "32 QPs, one Send a visit", FIRST, BENCH_BURST, 1, 0, 0 },
		{ "10,000 QPs, one Send a visit", FIRST, RTE_MIN(10000u, most), 1, 0, 0 },
		{ "100,000 QPs, one Send a visit", FIRST, RTE_MIN(100000u, most), 1, 0, 0 },
		{ "1 QP, an ACK for 32", ONE_RUNS, 1, DEPTH, 4, 0 },
		{ "2 QPs, 16 Sends a visit", FIRST, BENCH_BURST / DEPTH, DEPTH, 4, 0 },
		{ "10,000 QPs, 16 Sends a visit", FIRST, RTE_MIN(10000u, most), DEPTH, 4, 0 },
		{ "100,000 QPs, 16 Sends a visit", FIRST, RTE_MIN(100000u, most), DEPTH, 4, 0 },
	};
	double rate[RTE_DIM(works)][BENCH_RUNS_MAX], ratio[RTE_DIM(works)][BENCH_RUNS_MAX];
	struct packet_arena memory;
	const struct allocator alloc = { qp_bench_arena_alloc, qp_bench_arena_free, &memory };
	struct side a, b;
	unsigned int i, r;

	arena_init(&memory, (size_t)2 * most * ARENA_QP + (64u << 20));
	qp_bench_create(&a, 1, most + FIRST, &alloc);
	qp_bench_create(&b, 2, most + FIRST, &alloc);
	connect(&a, &b, most + FIRST);
	for (i = 0; i < RTE_DIM(works); i++) /* touch all memory before the first measurement */
		send_rate(&a, &b, &works[i], works[i].active * works[i].run);
	for (r = 0; r < runs; r++)
		for (i = 0; i < RTE_DIM(works); i++) {
			rate[i][r] = send_rate(&a, &b, &works[i], messages);
			ratio[i][r] = rate[i][r] / rate[works[i].like][r];
		}
	for (i = 0; i < RTE_DIM(works); i++) {
		qsort(rate[i], runs, sizeof(double), bench_by_value);
		qsort(ratio[i], runs, sizeof(double), bench_by_value);
		printf("%-30s %6.2f M Sends/s, both roles  %5.1f %% (%.1f to %.1f)\n",
			works[i].name, bench_quantile(rate[i], runs, 0.5) / 1e6,
			100 * bench_quantile(ratio[i], runs, 0.5), 100 * ratio[i][0],
			100 * ratio[i][runs - 1]);
	}
	qp_bench_destroy(&a);
	qp_bench_destroy(&b);
	arena_fini(&memory);
}

int
main(int argc, char **argv)
{
	const char *only = NULL;
	bool brief = false;
	unsigned int runs = bench_options(argc, argv, &brief, &only);

	hz = bench_hz();
	bench_print_machine(runs);
	if (only == NULL || strcmp(only, "make") == 0)
		many(brief ? 20000 : 1000000, RTE_MIN(runs, 3u));
	if (only == NULL || strcmp(only, "send") == 0)
		work_many(brief ? 10000 : 100000, brief ? 20000 : 300000, runs);
	return 0;
}
