/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The skeleton's ports, memory and queues, and the packet functions of both roles. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_ethdev.h>

#include "limits/skeleton.h"
#include "wire/crc32.h"
#include "wire/icrc_masks.h"
#include "wire/packet.h"

#define ROCE_PORT 4791
#define POOL_SIZE 1023 /* a small pool stays in the cache */
#define DESC      1024
#define ROOM      (RTE_PKTMBUF_HEADROOM + 192) /* room for headers besides the payload */
#define SPARE     (UINT64_C(4) << 20)
#define HUGE_PAGE (UINT64_C(2) << 20)

/* --- packets --- */

/* The ICRC covers whole blocks from eight bytes before the IP header (wire/icrc_masks.h). */
#define FRONT 8
#define HEAD  (FRONT + 20 + 8 + 12)
#define BLOCK 16

static const uint8_t keep[BLOCK] = { [FRONT] = 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };

uint32_t
skeleton_finish(const struct skeleton_endpoint *s, struct skeleton_headers *h, uint32_t extension,
	const void *payload, uint32_t length)
{
	uint32_t ip_length = sizeof(*h) - sizeof(h->ether) + extension + length + sizeof(uint32_t);
	uint8_t *at = (uint8_t *)(h + 1) + extension;
	uint32_t crc = 0;

	h->ip.total_length = rte_cpu_to_be_16((uint16_t)ip_length);
	h->udp.dgram_len = rte_cpu_to_be_16((uint16_t)(ip_length - sizeof(h->ip)));
	h->ip.hdr_checksum = 0;
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
	if (s->config.icrc)
		crc = crc_kernel->packet((uint8_t *)&h->ip - FRONT, keep,
			icrc_mask(ENCAP_ROCEV2_IPV4) - FRONT, (HEAD + extension) / BLOCK, payload,
			length);
	else if (length > 0)
		memcpy(at, payload, length);
	memcpy(at + length, &crc, sizeof(crc));
	return sizeof(h->ether) + ip_length;
}

bool
skeleton_icrc_ok(const struct skeleton_headers *h, uint32_t ip_length)
{
	uint32_t length = ip_length - sizeof(uint32_t), crc;

	memcpy(&crc, (const uint8_t *)&h->ip + length, sizeof(crc));
	return crc == crc_kernel->icrc(ENCAP_ROCEV2_IPV4, (const uint8_t *)&h->ip, length);
}

/* --- queues --- */

void
skeleton_post(struct skeleton_endpoint *s, struct skeleton_qp *qp)
{
	struct skeleton_wqe *w = skeleton_wqe(qp, qp->head++);

	*w = (struct skeleton_wqe){
		.wr_id = qp->head,
		.addr = s->offset,
		.remote_addr = s->offset,
		.length = s->config.size,
		.lkey = 1,
		.rkey = SKELETON_WRITE_KEY,
	};
	s->offset += RTE_ALIGN_CEIL(s->config.size, RTE_CACHE_LINE_SIZE);
	if (s->offset + s->config.size > s->config.footprint)
		s->offset = 0;
}

void
skeleton_start(struct skeleton_endpoint *s)
{
	uint32_t i, k, n = s->config.size > 8192 ? 64 : 256;

	for (i = 0; i < s->config.qps; i++)
		for (k = 0; k < n; k++)
			skeleton_post(s, &s->qp[i]);
}

static void
skeleton_fill_header(struct skeleton_headers *h, enum bench_role role)
{
	*h = (struct skeleton_headers){ .flags = 0x40, .pkey = RTE_BE16(0xFFFF) };
	h->ether.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	h->ip.version_ihl = RTE_IPV4_VHL_DEF;
	h->ip.time_to_live = 64;
	h->ip.next_proto_id = IPPROTO_UDP;
	h->ip.src_addr = RTE_BE32(RTE_IPV4(10, 0, 0, 1) + role);
	h->ip.dst_addr = RTE_BE32(RTE_IPV4(10, 0, 0, 2) - role);
	h->udp.src_port = RTE_BE16(0xC000);
	h->udp.dst_port = RTE_BE16(ROCE_PORT);
}

static int
make_queues(struct skeleton_endpoint *s)
{
	uint32_t i;

	s->qp = aligned_alloc(RTE_CACHE_LINE_SIZE, SKELETON_QPS * sizeof(*s->qp));
	if (s->qp == NULL)
		return -ENOMEM;
	memset(s->qp, 0, SKELETON_QPS * sizeof(*s->qp));
	for (i = 0; i < SKELETON_QPS; i++) {
		s->qp[i].wqe = calloc(SKELETON_QUEUE, sizeof(*s->qp[i].wqe));
		s->qp[i].cqe = calloc(SKELETON_CQ, sizeof(*s->qp[i].cqe));
		if (s->qp[i].wqe == NULL || s->qp[i].cqe == NULL)
			return -ENOMEM;
		skeleton_fill_header(&s->qp[i].header, s->role);
	}
	return 0;
}

/* Receives are posted once; their ring is reused forever. */
static void
post_receives(struct skeleton_endpoint *s)
{
	uint32_t i, k;

	for (i = 0; i < SKELETON_QPS; i++) {
		for (k = 0; k < SKELETON_QUEUE; k++)
			skeleton_post(s, &s->qp[i]);
		s->qp[i].head = 0;
	}
}

static int
skeleton_make_memory(struct skeleton_endpoint *s)
{
	uint64_t length = RTE_ALIGN_CEIL(s->config.footprint + SPARE, HUGE_PAGE);
	uint64_t i;

	s->memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED)
		return -ENOMEM;
	madvise(s->memory, length, MADV_HUGEPAGE);
	for (i = 0; i < length; i++)
		s->memory[i] = (uint8_t)(i * 2654435761u >> 11);
	s->mr[1] = s->mr[SKELETON_WRITE_KEY] = (struct skeleton_mr){ s->memory, length };
	return 0;
}

static int
skeleton_make_port(struct skeleton_endpoint *s, const char *device, struct error *err)
{
	struct rte_eth_conf conf = { 0 };
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "skeleton_%u", s->role);
	s->pool = rte_pktmbuf_pool_create(name, POOL_SIZE, 64, 0,
		(uint16_t)RTE_MAX(ROOM + s->config.mtu, 2176u), SOCKET_ID_ANY);
	if (s->pool == NULL)
		return error_set(err, rte_errno, "no packet buffers for the skeleton");
	ret = rte_eth_dev_get_port_by_name(device, &s->ethdev);
	if (ret == 0)
		ret = rte_eth_dev_configure(s->ethdev, 1, 1, &conf);
	if (ret == 0)
		ret = rte_eth_rx_queue_setup(s->ethdev, 0, DESC, SOCKET_ID_ANY, NULL, s->pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(s->ethdev, 0, DESC, SOCKET_ID_ANY, NULL);
	if (ret == 0)
		ret = rte_eth_dev_start(s->ethdev);
	return ret == 0 ? 0
			: error_set(err, -ret, "%s: the skeleton's port does not start: %s", device,
				  rte_strerror(-ret));
}

int
skeleton_create(struct skeleton_endpoint *s, const struct skeleton_config *config,
	enum bench_role role, const char *device, struct error *err)
{
	*s = (struct skeleton_endpoint){ .config = *config, .role = role };
	if (skeleton_make_memory(s) != 0 || make_queues(s) != 0)
		return error_set(err, ENOMEM, "no memory for the skeleton");
	if (role == RESPONDER)
		post_receives(s);
	return skeleton_make_port(s, device, err);
}

void
skeleton_destroy(struct skeleton_endpoint *s)
{
	uint32_t i;

	for (i = 0; s->qp != NULL && i < SKELETON_QPS; i++) {
		free(s->qp[i].wqe);
		free(s->qp[i].cqe);
	}
	free(s->qp);
	if (s->memory != NULL && s->memory != MAP_FAILED)
		munmap(s->memory, s->mr[1].length);
}
