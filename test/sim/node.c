/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "sa_sim.h"

#define GUARD 64

static void *
node_alloc(void *arg, size_t size, size_t align)
{
	struct sim_node *n = arg;
	void *mem = allocator_malloc.alloc(allocator_malloc.arg, size, align);

	n->allocated += mem != NULL;
	return mem;
}

static void
node_free(void *arg, void *mem)
{
	struct sim_node *n = arg;

	n->allocated -= mem != NULL;
	allocator_malloc.free(allocator_malloc.arg, mem);
}

static void
node_random(void *arg, void *buf, size_t len)
{
	struct sim_node *n = arg;
	uint8_t *p = buf;

	while (len-- > 0)
		*p++ = (uint8_t)sim_rand(n->sim);
}

/* Random part of QPNs: different after each restart, or the same (same_qpns). */
static void
node_rc_random(void *arg, void *buf, size_t len)
{
	struct sim_node *n = arg;
	uint8_t *p = buf;

	if (n->same_qpns == 0) {
		node_random(arg, buf, len);
		return;
	}
	for (; len > 0; len--) {
		n->same_qpns = n->same_qpns * 6364136223846793005u + 1442695040888963407u;
		*p++ = (uint8_t)(n->same_qpns >> 33);
	}
}

/* a grace period's token is the time it ends */
static uint64_t
node_grace_start(void *arg)
{
	struct sim_node *n = arg;

	return n->sim->now + n->grace_delay;
}

static bool
node_grace_done(void *arg, uint64_t token)
{
	struct sim_node *n = arg;

	return n->sim->now >= token;
}

static uint8_t *
node_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct sim_sink *tx = (struct sim_sink *)sink;

	if (sim_chance(tx->node->sim, tx->node->sink_empty))
		return NULL;
	tx->path = path;
	tx->len = len;
	return tx->frame + PATH_HEADER_MAX;
}

static void
node_sink_commit(struct tx_sink *sink)
{
	struct sim_sink *tx = (struct sim_sink *)sink;
	uint8_t *bth = tx->frame + PATH_HEADER_MAX;
	uint32_t len = path_finish(tx->path, bth, tx->len, 0x1234);

	sim_network_send(tx->node, bth - tx->path->header_len, len);
}

/* As the engine's sink: headers, payload and ICRC are written at once. */
static bool
node_sink_send(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	struct sim_sink *tx = (struct sim_sink *)sink;
	uint8_t *bth = node_sink_reserve(sink, path, headers_len + len + wire_pad(len));

	if (bth == NULL)
		return false;
	len = path_finish_send(path, bth, headers->bytes, headers_len, from, len, 0x1234);
	sim_network_send(tx->node, bth - path->header_len, len);
	return true;
}

static void
node_event(void *arg, const struct event *ev)
{
	struct sim_node *n = arg;
	unsigned int slot = ev->type < 32 ? ev->type : 32 + (ev->type & 31);

	sim_trace(n->sim, "node %u event %s element 0x%x", n->id, event_type_name(ev->type),
		ev->element);
	n->event_count[slot]++;
	n->last_event_element[slot] = ev->element;
	coverage_event(n->sim->coverage, ev->type);
	if (n->sim->guest != NULL && n->sim->guest->event != NULL)
		n->sim->guest->event(n, ev);
}

void
sim_node_init(struct sim *s, unsigned int id, const struct rc_limits *limits)
{
	struct sim_node *n = &s->node[id];
	struct mem_config mc = { .max_pd = 8, .max_mr = 256, .max_mw = 64 };
	struct rc_dev_config dc = { .limits = *limits, .hz = SIM_SECOND };
	struct rc_worker_config wc = { .id = 0, .event = node_event, .event_arg = n };
	uint8_t ip[4] = { 192, 0, 2, (uint8_t)(1 + id) };

	n->sim = s;
	n->id = id;
	n->alloc = (struct allocator){ node_alloc, node_free, n };
	n->rng = (struct rng){ node_random, n };
	n->rc_rng = (struct rng){ node_rc_random, n };
	n->grace_delay = sim_below(s, 50000);
	n->burst = 1 + sim_below(s, 64);
	n->net.delay = 1000 + sim_below(s, 5000);
	n->net.jitter = 20000;
	memset(n->gid.raw, 0, 10);
	memset(n->gid.raw + 10, 0xFF, 2);
	memcpy(n->gid.raw + 12, ip, 4);

	rx_template_make(&n->rx_template, (uint8_t[6]){ 2, [5] = (uint8_t)id }, ip);
	n->gid6 = (union gid){ .raw = { 0xFE, 0x80, [15] = (uint8_t)(1 + id) } };

	dc.workers = s->two_workers ? 2 : 1;
	mc.alloc = &n->alloc;
	mc.rng = &n->rng;
	mc.grace = (struct mem_grace){ node_grace_start, node_grace_done, n };
	n->mem = mem_create(&mc);
	dc.alloc = &n->alloc;
	dc.rng = &n->rc_rng;
	dc.mem = n->mem;
	n->dev = rc_dev_create(&dc);
	n->wheel = timer_wheel_create(&n->alloc, 1024, s->now);
	n->tx = (struct sim_sink){ .sink = { node_sink_reserve, node_sink_commit, node_sink_send },
		.node = n };
	wc.wheel = n->wheel;
	wc.tx = &n->tx.sink;
	n->worker = rc_worker_create(n->dev, &wc);
	if (s->two_workers) {
		n->other_wheel = timer_wheel_create(&n->alloc, 1024, s->now);
		wc.wheel = n->other_wheel;
		wc.id = 1;
		n->other = rc_worker_create(n->dev, &wc);
	}
	if (s->record) {
		rc_trace_switch_all(n->worker, true);
		if (n->other != NULL)
			rc_trace_switch_all(n->other, true);
	}

	n->arena = malloc(SIM_ARENA);
	n->model = malloc(SIM_ARENA);
	if (n->mem == NULL || n->dev == NULL || n->wheel == NULL || n->worker == NULL ||
		n->arena == NULL || n->model == NULL || mem_pd_alloc(n->mem, &n->pd, NULL) < 0)
		abort();
	n->arena_used = 0;
}

void
sim_node_fini(struct sim_node *n)
{
	struct sim *s = n->sim;

	rc_worker_destroy(n->worker);
	rc_worker_destroy(n->other);
	n->worker = n->other = NULL;
	rc_dev_destroy(n->dev);
	timer_wheel_destroy(n->wheel);
	timer_wheel_destroy(n->other_wheel);
	mem_destroy(n->mem);
	if (n->allocated != 0)
		sim_fail(s, "node %u leaks %llu blocks", n->id, (unsigned long long)n->allocated);
	free(n->arena);
	free(n->model);
}

/* As a port: try the template first. */
static bool
node_parse(struct sim_node *n, const uint8_t *frame, uint32_t len, struct packet *pkt,
	enum verdict *why)
{
	if (!rx_template_parse(&n->rx_template, frame, len, pkt))
		return sim_parse(frame, len, pkt, why);
	n->sim->coverage->by_template++;
	return true;
}

void
sim_node_receive(struct sim_node *n, const uint8_t *frame, uint32_t len)
{
	struct packet pkt = { 0 };
	enum verdict v;

	if (n->down || (n->sa != NULL && n->sa->down))
		return;
	n->received++;
	if (node_parse(n, frame, len, &pkt, &v)) {
		pkt.rx_time = n->sim->now;
		if (n->sim->guest != NULL && n->sim->guest->arrived != NULL)
			n->sim->guest->arrived(n, frame, &pkt);
		if (n->sa != NULL && pkt.dest_qpn == 1) {
			if (sa_hostile_takes(n->sim->sa, &pkt)) {
				n->received--;
				return;
			}
			v = sa_side_receive(n->sa, &pkt);
		} else if (n->sim->guest != NULL && pkt.dest_qpn <= 1)
			v = n->sim->guest->receive(n, &pkt);
		else if (pkt.opcode == OPCODE_CNP)
			v = wire_crc_ok(&pkt, &v) ? VERDICT_CNP : v;
		else
			v = rc_receive(n->worker, &pkt, n->sim->now);
	}
	if (v >= VERDICT_COUNT)
		sim_fail(n->sim, "node %u: verdict %d", n->id, v);
	n->verdicts[v]++;
	coverage_verdict(n->sim->coverage, v);
	if (verdict_infos[v].kind == VERDICT_DROPPED)
		sim_trace(n->sim, "node %u drops: %s", n->id, verdict_infos[v].name);
}

uint32_t
sim_arena(struct sim_node *n, uint32_t len)
{
	uint32_t offset = (n->arena_used + GUARD + 63) & ~63u;

	if (offset + len + GUARD > SIM_ARENA)
		abort();
	/* a different pattern for each area, so that stray writes are found */
	for (uint32_t i = n->arena_used; i < offset + len + GUARD; i++)
		n->arena[i] = n->model[i] = (uint8_t)(i * 131 + n->id * 17 + 7);
	n->arena_used = offset + len;
	return offset;
}

uint32_t
sim_register(struct sim_node *n, uint32_t offset, uint32_t len, uint32_t access)
{
	struct mem_mr_attr attr = {
		.pd = n->pd,
		.access = access,
		.length = len,
		.va = SIM_VA + offset,
		.backing = MEM_EXTERNAL,
		.base = n->arena + offset,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct error err = { 0 };

	if (mem_mr_register(n->mem, &attr, &info, &err) < 0) {
		sim_fail(n->sim, "mr_register: %s", err.text);
		return 0;
	}
	return info.key;
}
