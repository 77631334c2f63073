/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Statistics and counters of the workers. Each value has one writer, the worker; the control thread
 * reads it with relaxed loads.
 */

#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "engine/worker.h"

uint64_t
heartbeat_age_us(const struct engine *e, const struct worker *w)
{
	uint64_t beat = relaxed(&w->stats.heartbeat), now = rte_get_tsc_cycles();

	/* the clocks of two CPUs may differ by a few cycles */
	return beat == 0 || beat > now ? 0 : (now - beat) / RTE_MAX(e->hz / 1000000, 1u);
}

static double
handoff_percent(const struct worker *w)
{
	uint64_t received = 0;
	unsigned int port;

	for (port = 0; port < link_num_ports(w->engine->link); port++)
		received += relaxed(&w->counters[port]->rx_packets);
	return received == 0
		? 0
		: RTE_MIN(100.0 * (double)relaxed(&w->stats.handoff_out) / (double)received, 100.0);
}

void
engine_worker_info(const struct engine *e, unsigned int worker, struct worker_info *info)
{
	const struct worker_stats *s;
	const struct worker *w;
	uint64_t life;
	rte_cpuset_t cpus;
	int cpu;

	memset(info, 0, sizeof(*info));
	if (worker >= e->num_workers)
		return;
	w = e->worker[worker];
	s = &w->stats;
	info->lcore = w->lcore;
	info->numa_node = (int)rte_lcore_to_socket_id(w->lcore);
	info->memory_node = link_memory_node(w);
	info->cpu = -1;
	cpus = rte_lcore_cpuset(w->lcore);
	for (cpu = 0; cpu < CPU_SETSIZE && info->cpu < 0; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			info->cpu = cpu;
	info->polls = relaxed(&s->polls);
	info->busy_polls = relaxed(&s->busy_polls);
	info->busy_us = relaxed(&s->busy_cycles) / (e->hz / 1000000);
	life = relaxed(&s->heartbeat) - relaxed(&s->started);
	if (life > 0 && (int64_t)life > 0)
		info->busy_share = RTE_MIN((double)relaxed(&s->busy_cycles) / (double)life, 1.0);
	info->longest_gap_us = (double)relaxed(&s->longest_gap) * 1e6 / (double)e->hz;
	info->heartbeat_age_us = heartbeat_age_us(e, w);
	info->stalled = e->running && info->heartbeat_age_us > e->config.stall_ms * 1000ull;
	info->sleeps = relaxed(&s->sleeps);
	info->handoff_out = relaxed(&s->handoff_out);
	info->handoff_in = relaxed(&s->handoff_in);
	info->handoff_full = relaxed(&s->handoff_full);
	info->handoff_again = relaxed(&s->handoff_again);
	info->handoff_percent = handoff_percent(w);
	info->rehomed_out = relaxed(&s->rehomed_out);
	info->rehomed_in = relaxed(&s->rehomed_in);
	info->handoff_depth = handoff_depth(w);
	info->commands = rte_ring_count(w->commands);
	info->qps = rc_worker_qps(w->rc);
}

void
add_counters(void *sum, const void *from, size_t size)
{
	const uint64_t *f = from;
	uint64_t *s = sum;
	size_t i;

	for (i = 0; i < size / sizeof(uint64_t); i++)
		s[i] += relaxed(&f[i]);
}

void
engine_port_counters(const struct engine *e, unsigned int port, int worker,
	struct link_counters *sum)
{
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	if (port >= link_num_ports(e->link))
		return;
	for (i = 0; i < e->num_workers; i++)
		if (worker < 0 || (unsigned int)worker == i)
			add_counters(sum, e->worker[i]->counters[port], sizeof(*sum));
	if (worker < 0)
		add_counters(&sum->drops, &e->drops[port], sizeof(sum->drops));
}

void
engine_rc_counters(const struct engine *e, int port, int worker, struct rc_counters *sum)
{
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < e->num_workers; i++)
		if (worker < 0 || (unsigned int)worker == i)
			rc_worker_counters(e->worker[i]->rc, port, sum);
}

void
engine_mad_counters(const struct engine *e, int worker, struct mad_counters *sum)
{
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < e->num_workers; i++)
		if (worker < 0 || (unsigned int)worker == i)
			add_counters(sum, mad_worker_counters(e->worker[i]->mad), sizeof(*sum));
}

void
engine_sa_counters(const struct engine *e, int worker, struct sa_counters *sum)
{
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < e->num_workers; i++)
		if (e->worker[i]->sa != NULL && (worker < 0 || (unsigned int)worker == i))
			add_counters(sum, sa_worker_counters(e->worker[i]->sa), sizeof(*sum));
}
