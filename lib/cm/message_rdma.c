/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* RDMA-CM (cm.md 7): its service IDs and the header it puts before private data. */

#include <errno.h>
#include <string.h>

#include "cm/message.h"
#include "wire/bytes.h"

/* the header */
#define OFF_VERSION    0
#define OFF_IP_VERSION 1 /* top 4 bits */
#define OFF_SRC_PORT   2
#define OFF_SRC        4
#define OFF_DST        20
#define IPV4_IN_ADDR   12 /* offset of an IPv4 address in its 16-byte field */

#define CMA_VERSION 0

uint16_t
cm_port_space(uint64_t service_id)
{
	switch (service_id >> 16) {
	case CM_PS_IPOIB:
	case CM_PS_TCP:
	case CM_PS_UDP:
	case CM_PS_IB:
		return (uint16_t)(service_id >> 16);
	}
	return 0;
}

static union gid
rdma_address(const uint8_t *p, bool v4)
{
	union gid gid;

	if (v4)
		return gid_from_ipv4(p + IPV4_IN_ADDR);
	memcpy(&gid, p, sizeof(gid));
	return gid;
}

int
cm_rdma_decode(const uint8_t *data, struct cm_rdma *rdma)
{
	unsigned int ip = data[OFF_IP_VERSION] >> 4;

	if (data[OFF_VERSION] != CMA_VERSION || (ip != 4 && ip != 6))
		return -EINVAL;
	rdma->present = true;
	rdma->src_port = get_be16(data + OFF_SRC_PORT);
	rdma->src = rdma_address(data + OFF_SRC, ip == 4);
	rdma->dst = rdma_address(data + OFF_DST, ip == 4);
	return 0;
}

void
cm_rdma_encode(const struct cm_rdma *rdma, uint8_t *data)
{
	bool v4 = gid_is_ipv4(&rdma->src) && gid_is_ipv4(&rdma->dst);
	unsigned int skip = v4 ? IPV4_IN_ADDR : 0;

	memset(data, 0, CM_RDMA_LEN);
	data[OFF_VERSION] = CMA_VERSION;
	data[OFF_IP_VERSION] = (v4 ? 4 : 6) << 4;
	put_be16(data + OFF_SRC_PORT, rdma->src_port);
	memcpy(data + OFF_SRC + skip, rdma->src.raw + skip, sizeof(rdma->src) - skip);
	memcpy(data + OFF_DST + skip, rdma->dst.raw + skip, sizeof(rdma->dst) - skip);
}
