/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Measure packet I/O, copy, CRC and ring transfer, each alone. */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "limits/limit.h"
#include "peers/bench_link.h"
#include "wire/crc32.h"

#define RING_SIZE 1024
#define COVERED   (LIMIT_HEADERS - 14 - 4 + 8) /* bytes of headers that the ICRC covers */
#define LARGE     1024 /* a large payload in bytes */
#define PAUSE_US  100 /* a longer burst was interrupted */

const char *const limit_names[LIMITS] = {
	[LIMIT_PACKET_IO] = "packet io with buffers alone",
	[LIMIT_COPY] = "copy of the payload alone",
	[LIMIT_CRC] = "CRC of the packet alone",
	[LIMIT_RING] = "ring transfer alone",
	[LIMIT_COPIED_CRC] = "packet io, payload copied with its CRC",
	[LIMIT_REFERRED_CRC] = "packet io, payload by reference, and its CRC",
	[LIMIT_COPIED] = "packet io, payload copied",
	[LIMIT_REFERRED] = "packet io, payload by reference",
};

void
limits_set_payload(struct limits *l, uint32_t payload)
{
	l->payload = payload;
	l->frame = payload + LIMIT_HEADERS;
}

int
limits_create(struct limits *l, struct skeleton_endpoint end[ROLES], const char *name,
	const struct skeleton_config *config, struct error *err)
{
	char device[ROLES][256];
	unsigned int i;
	int ret;

	*l = (struct limits){ .end = end };
	ret = link_memory_pair(name, device, err);
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = skeleton_create(&end[i], config, i, device[i], err);
	if (ret != 0)
		return ret;
	limits_set_payload(l, RTE_MIN(end->config.size, end->config.mtu));
	l->ring =
		rte_ring_create("limits", RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	return l->ring != NULL ? 0 : error_set(err, ENOMEM, "no memory for a ring");
}

void
limits_destroy(struct limits *l)
{
	unsigned int i;

	rte_ring_free(l->ring);
	for (i = 0; l->end != NULL && i < ROLES; i++)
		skeleton_destroy(&l->end[i]);
}

/* Allocate buffers, send them from one port, receive them at the other, free them. */
static void
packet_io_burst(struct limits *l)
{
	struct rte_mbuf *m[SKELETON_BURST];
	unsigned int i, n;

	if (rte_pktmbuf_alloc_bulk(l->end[REQUESTER].pool, m, SKELETON_BURST) != 0)
		return;
	for (i = 0; i < SKELETON_BURST; i++)
		m[i]->data_len = m[i]->pkt_len = l->frame;
	n = rte_eth_tx_burst(l->end[REQUESTER].ethdev, 0, m, SKELETON_BURST);
	if (n < SKELETON_BURST)
		rte_pktmbuf_free_bulk(m + n, SKELETON_BURST - n);
	n = rte_eth_rx_burst(l->end[RESPONDER].ethdev, 0, m, SKELETON_BURST);
	rte_pktmbuf_free_bulk(m, n);
}

uint64_t
limit_next_offset(struct limits *l)
{
	struct skeleton_endpoint *s = &l->end[REQUESTER];
	uint64_t at = s->offset;

	s->offset += RTE_ALIGN_CEIL(l->payload, RTE_CACHE_LINE_SIZE);
	if (s->offset + l->payload > s->config.footprint)
		s->offset = 0;
	return at;
}

static void
copy_burst(struct limits *l)
{
	unsigned int i;

	for (i = 0; i < SKELETON_BURST; i++) {
		uint64_t at = limit_next_offset(l);

		memcpy(l->end[RESPONDER].mr[1].base + at, l->end[REQUESTER].mr[1].base + at,
			l->payload);
	}
}

static void
crc_burst(struct limits *l)
{
	volatile uint32_t result;
	unsigned int i;

	for (i = 0; i < SKELETON_BURST; i++)
		result = crc_kernel->update(0, l->end[REQUESTER].mr[1].base + limit_next_offset(l),
			l->payload + COVERED);
	(void)result;
}

static void
ring_burst(struct limits *l)
{
	void *object[SKELETON_BURST] = { l };

	rte_ring_sp_enqueue_burst(l->ring, object, SKELETON_BURST, NULL);
	rte_ring_sc_dequeue_burst(l->ring, object, SKELETON_BURST, NULL);
}

static void
copied_crc_burst(struct limits *l)
{
	limit_payload(l, false, true);
}

static void
referred_crc_burst(struct limits *l)
{
	limit_payload(l, true, true);
}

static void
copied_burst(struct limits *l)
{
	limit_payload(l, false, false);
}

static void
referred_burst(struct limits *l)
{
	limit_payload(l, true, false);
}

static void (*const bursts[LIMITS])(struct limits *l) = {
	[LIMIT_PACKET_IO] = packet_io_burst,
	[LIMIT_COPY] = copy_burst,
	[LIMIT_CRC] = crc_burst,
	[LIMIT_RING] = ring_burst,
	[LIMIT_COPIED_CRC] = copied_crc_burst,
	[LIMIT_REFERRED_CRC] = referred_crc_burst,
	[LIMIT_COPIED] = copied_burst,
	[LIMIT_REFERRED] = referred_burst,
};

double
limit_measure(struct limits *l, unsigned int limit, double seconds)
{
	uint64_t hz = rte_get_tsc_hz(), pause = PAUSE_US * (hz / 1000000);
	uint64_t start = rte_rdtsc(), last = start, now = start, packets = 0, used = 0;
	/*
	 * large packets from memory take a microsecond each: a smaller batch, so that it does not
	 * look like an interruption
	 */
	unsigned int i, n = l->payload > LARGE ? 1 : 8;

	while ((double)(now - start) < seconds * (double)hz) {
		for (i = 0; i < n; i++)
			bursts[limit](l);
		now = rte_rdtsc();
		if (now - last < pause) {
			used += now - last;
			packets += (uint64_t)n * SKELETON_BURST;
		}
		last = now;
	}
	return packets > 0 ? (double)used * 1e9 / (double)hz / (double)packets : 0;
}
