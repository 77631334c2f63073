/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_SUBNET_H
#define ENGINE_SUBNET_H

/**
 * @file
 * Private to lib/engine: what subnet management means for it. The agent of the native IB ports
 * lives on worker 0; what it decides reaches link and rc of all workers, what those notice reaches
 * the agent.
 */

#include "engine/worker.h"

/* --- subnet.c: the agent, on worker 0; the others have none --- */
/** NodeInfo's; the CA GUID of connections too. */
uint64_t node_guid(const struct engine *e);
int subnet_create(struct worker *w, struct error *err);
/** After its mad_worker is gone. */
void subnet_destroy(struct worker *w);
/** When all workers are made: the ports become what the configuration says. */
void subnet_start(struct engine *e);
/** Links, totals of violations and errors, violations that were noticed. */
void subnet_tick(struct worker *w, uint64_t now);
/** The control thread, now and then: what workers had better not ask the device for. */
void subnet_watch(struct engine *e);

/* --- sm_smps.c: what comes in for the subnet manager behind a port --- */
int sm_smps_create(struct worker *w, struct error *err);
void sm_smps_destroy(struct worker *w);
/** struct sma_config.to_sm; arg: worker 0 */
void sm_smp_put(void *worker, uint16_t port, uint16_t slid, const uint8_t mad[MAD_LEN]);
/** The control thread's part. */
void sm_inbox_destroy(struct engine *e);

/* --- bad_keys.c: P_Key and Q_Key violations on any worker, told to worker 0 --- */
int bad_keys_create(struct worker *w, struct error *err);
void bad_keys_destroy(struct worker *w);
/** struct rc_worker_config.violation and struct mad_worker_config.violation; arg: the worker */
void bad_key_rc(void *worker, const struct packet *pkt, uint32_t src_qpn);
void bad_key_mad(void *worker, const struct packet *pkt, bool qkey);
/** Worker 0: give the agent what all workers have noticed. */
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
