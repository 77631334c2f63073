/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PORT_ALLOW_LIST_H
#define PORT_ALLOW_LIST_H

/**
 * @file
 * Who may connect to a service (lib/svc), ask the SA (checked by lib/mad) or use the TCP port of
 * perftest's clients (lib/engine): address prefixes and partitions. One function decides for all.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

#define ALLOW_PEERS_MAX 32
#define ALLOW_PKEYS_MAX 16

struct allow_list {
	struct allow_prefix {
		union gid gid;
		uint8_t prefix_len; /**< in the address's own family: 24, 64, ... */
	} peer[ALLOW_PEERS_MAX];
	unsigned int num_peers; /**< 0: any address */
	uint16_t pkey[ALLOW_PKEYS_MAX]; /**< full and limited members alike */
	unsigned int num_pkeys; /**< 0: any partition */
};

/**
 * True if a peer is in the list: its address in one of the prefixes, and its partition among the
 * P_Keys. Any lcore.
 *
 * @param peer  NULL: it has no address, as on native IB without GRH; then it is in no prefix
 */
bool allow_list_admits(const struct allow_list *a, const union gid *peer, uint16_t pkey);
/** The same for a peer whose partition is not known, as over TCP. */
bool allow_list_admits_address(const struct allow_list *a, const union gid *peer);

#endif
