/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_LINK_IB_H
#define TEST_LINK_IB_H

/*
 * bench.h with a native InfiniBand port, and frames of its segment. We are 02:00:00:00:00:02; A and
 * B are other stations.
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
/* Settings as after ib_setup(), with this state, LID and LMC: one GID, one P_Key, MTU 2048. */
struct port_settings ib_settings(uint8_t state, uint16_t lid, uint8_t lmc);
void ib_set(struct bench *b, uint8_t state, uint16_t lid, uint8_t lmc);

/*
 * A UD packet with 8 bytes of payload. @param macs "dmac smac". The next call overwrites the text.
 */
const char *ib_frame(const char *macs, uint8_t vl, uint16_t dlid, uint16_t slid, uint32_t qpn);
#define DATA(macs, dlid, slid) ib_frame(macs, 0, dlid, slid, 1)
#define SMP(macs, dlid, slid)  ib_frame(macs, 15, dlid, slid, 0)

/* A path of our port to a LID; with qpn 0 for SMPs. */
struct path ib_path(uint16_t dlid, uint32_t qpn);
/* Send one UD packet of 8 bytes on this path. */
void ib_send(struct bench *b, const struct path *path);
/* Expect that it was sent to this MAC and LID. */
void ib_expect(struct bench *b, const char *dmac, uint16_t dlid);

#endif
