/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_RSOCKET_WIRE_H
#define SVC_RSOCKET_WIRE_H

/**
 * @file
 * Encoding of the rsockets protocol, version 1. Pure functions.
 */

#include <stdbool.h>
#include <stdint.h>

#define RSOCKET_CONN_DATA 40 /**< bytes of the private data of REQ and REP */
#define RSOCKET_ENTRY     16

/* immediate data: the operation in the upper 3 bits, its argument in the others */
#define RSOCKET_SHIFT      29
#define RSOCKET_REST       0x1FFFFFFFu
#define RSOCKET_DATA       0u /**< argument: length */
#define RSOCKET_CREDITS    4u /**< argument: number of the last data message granted, 16 bits */
#define RSOCKET_CONTROL    7u
#define RSOCKET_DISCONNECT 0u /**< argument of a control message; 1 is keep-alive, 2 is shutdown */

/** Memory that the other side may write. */
struct rsocket_entry {
	uint64_t va;
	uint32_t key;
	uint32_t length; /**< bytes; for a list: entries */
};

/** @param net  big-endian, else little-endian, as the list's owner announced */
struct rsocket_entry rsocket_get_entry(const uint8_t *at, bool net);
void rsocket_put_entry(uint8_t *at, struct rsocket_entry e, bool net);

/** Private data. */
struct rsocket_conn_data {
	bool net; /**< its list is big-endian */
	uint16_t credits; /**< data messages it accepts before it grants more */
	struct rsocket_entry list;
	struct rsocket_entry buffer; /**< the first half of its receive buffer */
};
/** @retval false  not of this version, or without a list */
bool rsocket_get_conn_data(const uint8_t *in, uint8_t len, struct rsocket_conn_data *d);
void rsocket_put_conn_data(uint8_t out[RSOCKET_CONN_DATA], const struct rsocket_conn_data *d);

#endif
