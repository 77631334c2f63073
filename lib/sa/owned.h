/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_OWNED_H
#define SA_OWNED_H

/**
 * @file
 * Ports that belong to an appliance of a fleet. It asks the leader to store their records, by a
 * change of kind WRITE_OWNED (sa/write.h), and the leader removes them when the appliance has gone.
 * All functions are for the store's thread.
 *
 * All appliances number their RoCE ports from 1, so the leader gives each port a LID: the highest
 * one without records, up to OWNED_LID_LAST. It knows a port again by its GUID. The name of the
 * owner is the tail of the port's NodeRecord. A port whose NodeRecord has no owner (an operator has
 * imported it) or another one is left alone.
 *
 * Native InfiniBand ports have their LIDs from subnet management, and what their agent says is
 * stored also if an operator has imported the port. Another owner's port or LID is left alone.
 */

#include "sa/sa.h"
#include "store/store.h"

#define OWNED_NAME_MAX 64 /**< bytes of an owner's name, the NUL included */
#define OWNED_PORTS    64 /**< most ports of one appliance */
#define OWNED_LID_LAST 0xBFFF
#define OWNED_LEN_MAX  (60u << 10) /**< bytes of a request */

/**
 * Write a request: all records of an appliance's ports. Without records, those that are stored are
 * removed.
 *
 * @param records  the first @p roce with LIDs from 1 to OWNED_PORTS, the others with their own LIDs
 * @param bytes  OWNED_LEN_MAX bytes
 * @return length; 0: there are too many records
 */
size_t owned_put(const char *owner, const struct sa_change *records, size_t n, size_t roce,
	uint8_t *bytes);

/**
 * Compare a request with what is stored.
 *
 * @param taken  set to the GUID of a port that is stored as somebody else's; 0: there is none
 * @return true: executing the request would change records
 */
bool owned_differs(const struct store_version *v, const uint8_t *bytes, size_t len,
	uint64_t *taken);

/** The owner of a NodeRecord's port. @return false: it has none */
bool owner_of(const struct store_record *r, char name[OWNED_NAME_MAX]);

#endif
