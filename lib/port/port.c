/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <rte_debug.h>

#include "port/port.h"
#include "wire/bytes.h"

int
port_pkey_find(const struct port_attr *port, uint16_t pkey)
{
	unsigned int i;

	RTE_ASSERT(port->num_pkeys <= PORT_PKEYS_MAX);
	for (i = 0; i < port->num_pkeys; i++) {
		if (port_pkey_match(port->pkey[i], pkey))
			return (int)i;
	}
	return -1;
}

int
port_gid_find(const struct port_attr *port, const union gid *gid, enum gid_type type)
{
	unsigned int i;

	RTE_ASSERT(port->num_gids <= PORT_GIDS_MAX && type <= GID_IB);
	if (gid_is_zero(gid))
		return -1;
	for (i = 0; i < port->num_gids; i++) {
		if (port->gid[i].type == type && gid_equal(&port->gid[i].gid, gid))
			return (int)i;
	}
	return -1;
}

bool
port_source_is_host(const struct port_attr *port, const union gid *source)
{
	unsigned int i;

	if (!gid_is_host(source))
		return false;
	for (i = 0; i < port->num_gids; i++)
		if (gid_is_broadcast(source, &port->gid[i].gid, port->gid[i].prefix_len))
			return false;
	return true;
}

uint16_t
port_mtu_to_pmtu(uint16_t mtu)
{
	/*
		 * Keep 80 bytes for headers as rxe does (rc-transport 10): both ends must compute
		 * the same path MTU.
	 */
	const unsigned int headers = 80;
	unsigned int pmtu;

	for (pmtu = 4096; pmtu >= 256; pmtu /= 2) {
		if (mtu >= pmtu + headers)
			return (uint16_t)pmtu;
	}
	return 0;
}

uint8_t
port_mtu_code(uint16_t mtu)
{
	uint8_t code = 0;

	while (code < 5 && mtu >= 256u << code)
		code++;
	RTE_ASSERT(port_mtu_bytes(code) <= mtu);
	return code;
}

uint16_t
port_mtu_bytes(uint8_t code)
{
	return code >= 1 && code <= 5 ? (uint16_t)(128u << code) : 0;
}

uint64_t
port_eui64(const uint8_t mac[6])
{
	const uint8_t b[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };

	return get_be64(b);
}

void
port_violations_add(struct port_violations *sum, const struct port_violations *one)
{
	sum->pkey += __atomic_load_n(&one->pkey, __ATOMIC_RELAXED);
	sum->qkey += __atomic_load_n(&one->qkey, __ATOMIC_RELAXED);
}
