/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "base/eal_host.h"

#include "bench.h"

#define RING_DEPTH 256

int
bench_eal(void **state)
{
	const char *args[] = { "test", "--no-huge", "--no-shconf", "--no-pci", "-m", "256", "-l",
		"0", "--no-telemetry", "--log-level=lib.eal:error" };

	(void)state;
	return rte_eal_init(RTE_DIM(args), (char **)args) < 0;
}

int
bench_eal_cleanup(void **state)
{
	(void)state;
	return eal_cleanup();
}

void
bench_config(struct bench *b)
{
	struct link_port_config *p = &b->cfg.port[0];

	memset(b, 0, sizeof(*b));
	b->now = BENCH_HZ;
	b->out_depth = RING_DEPTH;
	b->cfg.num_ports = 1;
	b->cfg.workers = 1;
	b->cfg.hz = BENCH_HZ;
	strcpy(p->name, "port0");
	strcpy(p->device, "net_ring_wire");
	p->vlan = PATH_NO_VLAN;
	memcpy(p->mac, "\x02\0\0\0\0\x02", 6);
	assert_true(gid_parse("10.0.0.2", &p->addr[0].gid));
	p->addr[0].prefix_len = 24;
	assert_true(gid_parse("fe80::2", &p->addr[1].gid));
	p->addr[1].prefix_len = 64;
	p->num_addr = 2;
	p->rx_desc = 64;
	p->tx_desc = 64;
}

void
bench_open(struct bench *b)
{
	struct error err = { 0 };
	char name[32];
	unsigned int i;

	b->mp = rte_pktmbuf_pool_create("outside", 1024, 0, sizeof(struct packet),
		RTE_PKTMBUF_HEADROOM + 2048, SOCKET_ID_ANY);
	assert_non_null(b->mp);
	for (i = 0; i < BENCH_QUEUES; i++) {
		snprintf(name, sizeof(name), "in%u", i);
		b->in[i] = rte_ring_create(name, RING_DEPTH, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "out%u", i);
		b->out[i] = rte_ring_create(name, b->out_depth, SOCKET_ID_ANY, RING_F_EXACT_SZ);
		assert_non_null(b->in[i]);
		assert_non_null(b->out[i]);
	}
	assert_true(rte_eth_from_rings("wire", b->in, BENCH_QUEUES, b->out, BENCH_QUEUES,
			    SOCKET_ID_ANY) >= 0);
	b->link = link_open(&b->cfg, &err);
	assert_string_equal(err.text, "");
	assert_non_null(b->link);
	for (i = 0; i < b->cfg.workers; i++) {
		b->worker[i] = link_worker_create(b->link, i, &err);
		assert_non_null(b->worker[i]);
	}
}

static void
count_lost(struct rte_mempool *mp, void *arg)
{
	if (strncmp(mp->name, "polca_mbuf_", 11) == 0)
		*(unsigned int *)arg += rte_mempool_in_use_count(mp);
}

void
bench_close(struct bench *b)
{
	unsigned int i, lost = 0;

	bench_free(b);
	for (i = 0; i < 1000; i++) { /* send what other workers handed over */
		link_tx_flush(b->worker[0], b->now);
		bench_discard(b);
	}
	for (i = 0; i < b->cfg.workers; i++)
		link_worker_destroy(b->worker[i]);
	rte_mempool_walk(count_lost, &lost);
	assert_int_equal(lost, 0);
	link_close(b->link);
	rte_eal_hotplug_remove("vdev", "net_ring_wire");
	for (i = 0; i < BENCH_QUEUES; i++) {
		assert_int_equal(rte_ring_count(b->in[i]), 0);
		rte_ring_free(b->in[i]);
		rte_ring_free(b->out[i]);
	}
	assert_int_equal(rte_mempool_in_use_count(b->mp), 0);
	rte_mempool_free(b->mp);
}

int
bench_setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	bench_config(b);
	bench_open(b);
	*state = b;
	return 0;
}

int
bench_teardown(void **state)
{
	bench_close(*state);
	free(*state);
	return 0;
}

const char *
hex_compact(const char *hex)
{
	static char text[2 * FRAME_MAX + 1];
	char *to = text;

	for (; *hex != '\0'; hex++)
		if (*hex != ' ')
			*to++ = tolower(*hex);
	*to = '\0';
	return text;
}

struct rte_mbuf *
bench_mbuf(struct bench *b, const char *hex)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(b->mp);

	assert_non_null(m);
	m->data_len = hex_bytes(hex, rte_pktmbuf_mtod(m, uint8_t *), 2048);
	m->pkt_len = m->data_len;
	return m;
}

void
bench_inject_mbuf(struct bench *b, unsigned int queue, struct rte_mbuf *m)
{
	assert_int_equal(rte_ring_enqueue(b->in[queue], m), 0);
}

void
bench_inject(struct bench *b, const char *hex)
{
	bench_inject_mbuf(b, 0, bench_mbuf(b, hex));
}

unsigned int
bench_poll(struct bench *b, unsigned int worker)
{
	bench_free(b);
	b->num_pkts = link_rx(b->worker[worker], b->now, b->pkts);
	link_tx_flush(b->worker[worker], b->now);
	return b->num_pkts;
}

void
bench_free(struct bench *b)
{
	link_free(b->pkts, b->num_pkts);
	b->num_pkts = 0;
}

const char *
bench_sent_on(struct bench *b, unsigned int queue)
{
	static char text[2 * FRAME_MAX + 1];
	struct rte_mbuf *m;
	uint32_t i;

	text[0] = '\0';
	if (rte_ring_dequeue(b->out[queue], (void **)&m) != 0)
		return text;
	assert_int_equal(m->nb_segs, 1); /* linear by construction */
	assert_int_equal(m->data_len, m->pkt_len);
	for (i = 0; i < m->data_len; i++)
		sprintf(text + 2 * i, "%02x", rte_pktmbuf_mtod(m, uint8_t *)[i]);
	rte_pktmbuf_free(m);
	return text;
}

const char *
bench_sent(struct bench *b)
{
	return bench_sent_on(b, 0);
}

void
bench_discard(struct bench *b)
{
	struct rte_mbuf *m;
	unsigned int i;

	for (i = 0; i < BENCH_QUEUES; i++)
		while (rte_ring_dequeue(b->out[i], (void **)&m) == 0)
			rte_pktmbuf_free(m);
}

void
bench_expect(struct bench *b, const char *hex)
{
	assert_string_equal(bench_sent(b), hex_compact(hex));
}

void
bench_verdict(struct bench *b, const char *hex, enum verdict v)
{
	struct link_counters before = *link_worker_counters(b->worker[0], 0);
	const struct link_counters *after = link_worker_counters(b->worker[0], 0);
	unsigned int i;

	bench_inject(b, hex);
	assert_int_equal(bench_poll(b, 0), v == VERDICT_COUNT ? 1 : 0);
	for (i = 0; i < VERDICT_COUNT; i++)
		if (after->verdict[i] != before.verdict[i] + (i == v))
			fail_msg("%s: verdict %s", hex, verdict_infos[i].name);
	assert_int_equal(after->rx_packets, before.rx_packets + 1);
}
