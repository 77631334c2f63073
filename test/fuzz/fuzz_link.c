/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the link with frames: Ethernet, VLAN, ARP, ND, ICMP, RoCE. Input: records {pause, flags,
 * length, bytes}; the bytes change a frame to the port. Each frame has one verdict and causes at
 * most one other, of at most three times its size; the bytes around a frame are not touched
 * (lib/link/guard.h).
 */

#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "../link/bench.h"
#include "wire/bytes.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_LEN      4
#define RECORD_IPV6     0x01 /* the frame below is one of IPv6, else of IPv4 */
#define RECORD_ARP      0x02
#define RECORD_STRIPPED 0x04 /* the device has taken the VLAN tag */
#define RECORD_CHAINED  0x08 /* in two segments */
#define RECORD_ASK      0x10 /* Polca resolves a neighbour before */
#define RECORD_SUM      0x20 /* set IPv4's header checksum and ICMP's */

#define ARP_FRAME                                                                                  \
	"ffffffffffff 020000000001 0806 0001080006040001"                                          \
	"020000000001 0a000001 000000000000 0a000002"

static struct bench plain;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (bench_eal(NULL) != 0)
		abort();
	bench_config(&plain);
	bench_open(&plain);
	return 0;
}

static uint16_t
checksum(const uint8_t *p, uint32_t len)
{
	return (uint16_t)~rte_raw_cksum(p, len);
}

static void
set_checksums(uint8_t *frame, uint32_t len)
{
	uint8_t *ip = frame + 14, *icmp;
	uint32_t header = (ip[0] & 0xFu) * 4, total = get_be16(ip + 2);
	uint16_t sum;

	if (len < 34 || header < 20 || total < header + 8 || 14 + total > len)
		return;
	memset(ip + 10, 0, 2);
	sum = checksum(ip, header);
	memcpy(ip + 10, &sum, 2);
	if (ip[9] != 1)
		return;
	icmp = ip + header;
	memset(icmp + 2, 0, 2);
	sum = checksum(icmp, total - header);
	memcpy(icmp + 2, &sum, 2);
}

static struct rte_mbuf *
make_frame(struct bench *b, uint8_t flags, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = bench_mbuf(b,
		flags & RECORD_ARP                   ? ARP_FRAME
			: (flags & RECORD_IPV6) != 0 ? ROCEV2_IPV6_ACK
						     : ROCEV2_ACK);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_mbuf *rest;
	uint32_t i;

	for (i = 0; i < len; i++) /* zeros leave the frame as it is */
		frame[i] = i < m->data_len ? frame[i] ^ data[i] : data[i];
	m->data_len = m->pkt_len = RTE_MAX(len, (uint32_t)m->data_len);
	if (len > 0 && len < 14)
		m->data_len = m->pkt_len = len;
	if (flags & RECORD_SUM)
		set_checksums(frame, m->data_len);
	if (flags & RECORD_STRIPPED) {
		m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		m->vlan_tci = len > 0 ? data[0] : 0;
	}
	if (flags & RECORD_CHAINED && m->data_len > 20) {
		rest = rte_pktmbuf_alloc(b->mp);
		memcpy(rte_pktmbuf_append(rest, m->data_len - 20), frame + 20, m->data_len - 20);
		m->data_len = m->pkt_len = 20;
		rte_pktmbuf_chain(m, rest);
	}
	return m;
}

static void
resolve(struct bench *b, uint8_t host)
{
	struct error err = { "" };
	union gid s, d;
	uint32_t index;

	if (!gid_parse("10.0.0.2", &s) || !gid_parse("10.0.0.0", &d))
		abort();
	d.raw[15] = host;
	link_neighbour(b->link, 0, &s, &d, &index, &err);
}

/* @return number of frames sent, and their bytes */
static unsigned int
collect(struct bench *b, uint32_t *bytes)
{
	struct rte_mbuf *m;
	unsigned int n = 0;

	for (*bytes = 0; rte_ring_dequeue(b->out[0], (void **)&m) == 0; n++) {
		*bytes += m->pkt_len;
		rte_pktmbuf_free(m);
	}
	return n;
}

static void
one_frame(struct bench *b, struct rte_mbuf *m)
{
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	uint64_t seen = c->rx_packets, sum = 0;
	uint32_t len = m->pkt_len, bytes;
	unsigned int i, got, frames;

	for (i = 0; i < VERDICT_COUNT; i++)
		sum += c->verdict[i];
	bench_inject_mbuf(b, 0, m);
	got = bench_poll(b, 0);
	for (i = 0; i < VERDICT_COUNT; i++)
		sum -= c->verdict[i];
	frames = collect(b, &bytes);
	if (c->rx_packets != seen + 1 || (uint64_t)got - sum != 1 || frames > 1 ||
		bytes > 3 * len + 42)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bench *b = &plain;
	uint32_t len, bytes;

	while (size >= RECORD_LEN) {
		len = RTE_MIN((uint32_t)get_be16(data + 2) % 1600, (uint32_t)size - RECORD_LEN);
		b->now += data[0] * UINT64_C(1000);
		link_tick(b->worker[0], b->now);
		link_tx_flush(b->worker[0], b->now);
		collect(b, &bytes);
		if (data[1] & RECORD_ASK) {
			resolve(b, data[0]);
			bench_poll(b, 0);
			collect(b, &bytes);
		}
		one_frame(b, make_frame(b, data[1], data + RECORD_LEN, len));
		data += RECORD_LEN + len;
		size -= RECORD_LEN + len;
	}
	bench_free(b);
	return 0;
}
