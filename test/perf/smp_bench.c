/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Measure how fast one worker answers SMPs on QP0 of a native InfiniBand port: LRH, ICRC and VCRC
 * of both packets, lib/mad's checks and the subnet management agent.
 *
 *	smp_bench [--runs N] [--short]
 *
 * Runs of the cases are interleaved; medians are printed. --short only checks that it works.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "bench.h"
#include "sma/sma.h"
#include "wire/bytes.h"

#define REQUESTS   256
#define WHEEL_TICK 32768
#define LID        5
#define SM_LID     7

static unsigned int runs;
static bool brief;

/* --- the port and its agent --- */

struct adapter {
	struct mad_worker *mad;
	struct timer_wheel *wheel;
	struct sma *sma;
	struct port_attr port;
	struct frames out;
};

static const struct port_attr *
perf_smp_port_of(void *arg, uint16_t port)
{
	return port == 0 ? arg : NULL;
}

static void
perf_smp_apply(void *arg, uint16_t port, const struct port_settings *s)
{
	struct adapter *a = arg;

	(void)port;
	a->port.lid = s->lid;
	a->port.sm_lid = s->sm_lid;
	a->port.state = s->state;
}

static void
perf_smp_event(void *arg, const struct event *ev)
{
	(void)arg;
	(void)ev;
}

static void
create_sma(struct adapter *a)
{
	const struct sma_port_config port = {
		.guid = 0x0002C90300000101,
		.lid = LID,
		.sm_lid = SM_LID,
		.active = true,
		.mtu = 4096,
		.vl_cap = 1,
		.width = 0x2,
		.speed = 0x1,
	};
	const struct sma_config c = {
		.mad = a->mad,
		.wheel = a->wheel,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.hz = bench_hz(),
		.node_desc = "bench",
		.node_guid = 0x0002C90300000100,
		.system_image_guid = 0x0002C90300000100,
		.num_ports = 1,
		.resp_time = 16,
		.port = &port,
		.num_managed = 1,
		.limits = sma_limits_default,
		.apply = perf_smp_apply,
		.event = perf_smp_event,
		.arg = a,
	};

	a->sma = sma_create(&c);
	if (a->sma == NULL)
		bench_die("no memory for the agent");
	sma_start(a->sma, rte_rdtsc());
	sma_link(a->sma, 0, true, rte_rdtsc());
}

static void
smp_bench_create(struct adapter *a)
{
	const struct bench_config config = { .sessions = 256 };
	struct mad_worker_config mad = {
		.workers = 1,
		.hash_key = 0x1234567,
		.hz = bench_hz(),
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &a->out.sink,
		.port = perf_smp_port_of,
		.port_arg = &a->port,
	};

	memset(a, 0, sizeof(*a));
	agents_limits(&mad.limits, &config);
	mad.limits.max_bytes = mad.limits.max_bytes_per_peer = 1 << 20;
	bench_port(&a->port, 1, 18);
	a->port.ib = true;
	frames_init(&a->out, 4096);
	a->out.encap = ENCAP_IB;
	a->wheel = timer_wheel_create(&allocator_malloc, WHEEL_TICK, rte_rdtsc());
	mad.wheel = a->wheel;
	a->mad = mad_worker_create(&mad);
	if (a->mad == NULL)
		bench_die("no memory for the sessions");
	create_sma(a);
}

static void
smp_bench_destroy(struct adapter *a)
{
	sma_destroy(a->sma);
	mad_worker_destroy(a->mad);
	timer_wheel_destroy(a->wheel);
	frames_free(&a->out);
}

/* --- requests --- */

static const struct {
	const char *name;
	uint16_t attribute;
	bool directed; /* one hop from the SM */
} cases[] = {
	{ "Get(NodeInfo)", SMA_NODE_INFO, false },
	{ "Get(PortInfo)", SMA_PORT_INFO, false },
	{ "Get(NodeInfo), directed", SMA_NODE_INFO, true },
	{ "Get(PortInfo), directed", SMA_PORT_INFO, true },
};

static void
put_smp(uint8_t *mad, uint16_t attribute, bool directed, uint32_t tid)
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = directed ? MAD_CLASS_SUBN_ROUTED : MAD_CLASS_SUBN_LID;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = MAD_GET;
	put_be64(mad + MAD_OFF_TID, tid);
	put_be16(mad + MAD_OFF_ATTRIBUTE, attribute);
	put_be32(mad + MAD_OFF_MODIFIER, attribute == SMA_PORT_INFO ? 1 : 0);
	if (!directed)
		return;
	mad[SMP_OFF_HOP_POINTER] = 1;
	mad[SMP_OFF_HOP_COUNT] = 1;
	mad[SMP_OFF_INITIAL_PATH + 1] = 1;
	put_be16(mad + SMP_OFF_DR_SLID, PORT_LID_PERMISSIVE);
	put_be16(mad + SMP_OFF_DR_DLID, PORT_LID_PERMISSIVE);
}

static void
add_requests(struct frames *requests, uint16_t attribute, bool directed)
{
	const struct mad_peer to = {
		.av = { .encap = ENCAP_IB, .vlan = PATH_NO_VLAN,
			.slid = directed ? PORT_LID_PERMISSIVE : SM_LID,
			.dlid = directed ? PORT_LID_PERMISSIVE : LID,
			.smac = { 2, 0, 0, 0, 0, 2 }, .dmac = { 2, 0, 0, 0, 0, 1 }, },
		.pkey = 0xFFFF, .neighbour = PATH_NO_NEIGHBOUR,
	};
	uint8_t mad[MAD_LEN];
	uint32_t i;

	for (i = 0; i < REQUESTS; i++) {
		put_smp(mad, attribute, directed, i + 1);
		answer_add(requests, &to, mad);
	}
}

static void
smp_bench_check(const uint8_t *mad, uint16_t attribute, bool directed)
{
	uint16_t status = get_be16(mad + MAD_OFF_STATUS);

	if (mad[MAD_OFF_METHOD] != MAD_GET_RESP || status != (directed ? SMP_RETURNING : 0) ||
		get_be16(mad + MAD_OFF_ATTRIBUTE) != attribute)
		bench_die("not an answer");
}

static double
measure(uint16_t attribute, bool directed)
{
	struct frames requests;
	struct adapter a;
	double rate;

	smp_bench_create(&a);
	frames_init(&requests, REQUESTS);
	requests.encap = ENCAP_IB;
	add_requests(&requests, attribute, directed);
	rate = answer_rate(&requests, &a.out, a.mad, mad_receive_smp, brief ? 10000 : 1000000);
	smp_bench_check(answer_last(&a.out), attribute, directed);
	frames_free(&requests);
	smp_bench_destroy(&a);
	return rate;
}

int
main(int argc, char **argv)
{
	double rate[RTE_DIM(cases)][BENCH_RUNS_MAX];
	unsigned int i, r;

	runs = bench_options(argc, argv, &brief, NULL);
	bench_print_machine(runs);
	for (r = 0; r < runs; r++)
		for (i = 0; i < RTE_DIM(cases); i++)
			rate[i][r] = measure(cases[i].attribute, cases[i].directed);
	printf("%-24s %12s %12s %12s\n", "answers/s of one core", "median", "lowest", "highest");
	for (i = 0; i < RTE_DIM(cases); i++) {
		qsort(rate[i], runs, sizeof(double), bench_by_value);
		printf("%-24s %12.0f %12.0f %12.0f\n", cases[i].name,
			bench_quantile(rate[i], runs, 0.5), rate[i][0], rate[i][runs - 1]);
	}
	return 0;
}
