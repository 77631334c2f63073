/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_ENGINE_TSAN_DPDK_H
#define TEST_ENGINE_TSAN_DPDK_H

/*
 * Packet buffers go from one lcore to another through DPDK's ring driver and its mempool, in
 * libraries that ThreadSanitizer does not see. Here both show it their order. In other builds these
 * functions do nothing.
 */

/** After the EAL has started: pools get free buffers from a ring that is compiled here. */
void tsan_use_mbuf_pools(void);
/** After the ports are open: each burst releases what it sends and acquires what it receives. */
void tsan_watch_ports(void);

#endif
