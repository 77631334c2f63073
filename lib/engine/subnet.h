/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_SUBNET_H
#define ENGINE_SUBNET_H

/**
 * @file
 * Private to lib/engine: subnet management of the native IB ports. Their agent (SMA) runs on worker
 * 0. Its decisions change lib/link and lib/rc on all workers; violations and errors that the
 * workers count are reported to it.
 */

#include "engine/worker.h"

/* --- subnet.c: the agent, on worker 0 only --- */
/** The node GUID of NodeInfo; connections use it as CA GUID. */
uint64_t node_guid(const struct engine *e);
int subnet_create(struct worker *w, struct error *err);
/** Call after mad_worker_destroy(). */
void subnet_destroy(struct worker *w);
/** After all workers were created: apply the configured state of the ports. */
void subnet_start(struct engine *e);
/** Every tick: tell the agent link states, error totals and key violations. */
void subnet_tick(struct worker *w, uint64_t now);
/** Control thread, now and then: read device statistics, which may be too slow for a worker. */
void subnet_watch(struct engine *e);

/* --- sm_smps.c: SMPs for the subnet manager behind a port --- */
int sm_smps_create(struct worker *w, struct error *err);
void sm_smps_destroy(struct worker *w);
/** Callback sma_config.to_sm. @param worker  worker 0 */
void sm_smp_put(void *worker, uint16_t port, uint16_t slid, const uint8_t mad[MAD_LEN]);
/** Control thread. */
void sm_inbox_destroy(struct engine *e);

/* --- bad_keys.c: P_Key and Q_Key violations on any worker, reported to worker 0 --- */
int bad_keys_create(struct worker *w, struct error *err);
void bad_keys_destroy(struct worker *w);
/** Callbacks rc_worker_config.violation and mad_worker_config.violation. */
void bad_key_rc(void *worker, const struct packet *pkt, uint32_t src_qpn);
void bad_key_mad(void *worker, const struct packet *pkt, bool qkey);
/** Worker 0: report the violations of all workers to the agent. */
void bad_keys_take(struct worker *w, uint64_t now);

/* --- own_ports.c, own_ports_follow.c: blocks of GUIDInfo and of the P_Key table --- */
#define GUIDS_IN_BLOCK 8
#define PKEYS_IN_BLOCK 32

/* --- port_speed.c --- */
struct port_speed {
	uint32_t mbps;
	uint8_t width;
	uint8_t speed;
	uint8_t speed_ext;
};
const struct port_speed *port_speed(const struct link *l, unsigned int port);

#endif
