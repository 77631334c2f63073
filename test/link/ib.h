/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_LINK_IB_H
#define TEST_LINK_IB_H

/*
 * The bench's port as a native InfiniBand port, and the frames of its segment. We are
 * 02:00:00:00:00:02; A and B are others.
 */

#include "bench.h"
#include "wire/wire.h"

#define US  "020000000002 "
#define A   "02000000000a "
#define B   "02000000000b "
#define ALL "ffffffffffff "

#define MS (BENCH_HZ / 1000)

/* Configuration of such a port; as bench_setup(), but native InfiniBand, active, LID 0x10. */
void ib_config(struct bench *b);
int ib_setup(void **state);
/* Settings as after ib_setup(): LIDs 0x10 and, with the LMC, above; one GID, one P_Key, MTU 2048 */
struct port_settings ib_settings(uint8_t state, uint16_t lid, uint8_t lmc);
void ib_set(struct bench *b, uint8_t state, uint16_t lid, uint8_t lmc);

/* A UD packet of 8 bytes of payload, "dmac smac" in front; text lives until the next call. */
const char *ib_frame(const char *macs, uint8_t vl, uint16_t dlid, uint16_t slid, uint32_t qpn);
#define DATA(macs, dlid, slid) ib_frame(macs, 0, dlid, slid, 1)
#define SMP(macs, dlid, slid)  ib_frame(macs, 15, dlid, slid, 0)

/* A path of our port to a LID; qpn 0: SMPs. */
struct path ib_path(uint16_t dlid, uint32_t qpn);
/* One UD packet of 8 bytes goes out on this path. */
void ib_send(struct bench *b, const struct path *path);
/* It left, to this MAC and LID. */
void ib_expect(struct bench *b, const char *dmac, uint16_t dlid);

#endif
