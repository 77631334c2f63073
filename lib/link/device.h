/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_DEVICE_H
#define LINK_DEVICE_H

/* Private to lib/link: ethdevs, from their names and arguments to their end. */

#include "link/private.h"

/* device.c: find or attach an ethdev; remove socket files that an earlier run left behind */
int device_attach(struct link_port *p, struct error *err);
void device_detach(struct link_port *p);

/* device_close.c; not on EAL's interrupt thread. A device that has not started is left alone. */
void device_stop(struct link_port *p);
void device_close(struct link_port *p);

/*
 * Bytes of a frame's slot in af_packet's ring that the kernel uses (TPACKET2_HDRLEN, VLAN tag,
 * alignment)
 */
#define AF_PACKET_SLOT_HEADER 128
/* Bytes of a memif buffer that do not count as MTU: Ethernet header, VLAN tag, FCS */
#define MEMIF_FRAME_HEADER 22
/* Default buffer size of both drivers */
#define BUFFER_DEFAULT 2048
/* device_args.c */
/* As rte_strerror(), but -1, which drivers return for any failure, refers to the log. */
const char *device_strerror(int rc);
/* True for a memif client, which connects to its server's socket only when it starts. */
bool device_is_client(const struct link_port *p);
/* True for one that connects again when it has lost its server. */
bool device_reconnects(const struct link_port *p);
bool device_is_memif(const struct link_port *p);
/* What EAL knows of the device; zeros if it knows nothing. */
struct rte_eth_dev_info device_info(const struct link_port *p);
/*
 * Read an argument from a text as link_port.args. @retval false  there is none, or it is empty or
 * too long
 */
bool arg_value(const char *args, const char *key, char *value, size_t size);
/*
 * The file of the socket by which a memif or vhost device finds the other end: the path, and
 * whether this end creates it. @retval false  there is no such file: an abstract socket of memif
 * has a path alone
 */
bool device_socket(const char *args, char *path, size_t size, bool *server);
unsigned int device_number(const char *args, const char *key, unsigned int otherwise);

/* xdp_log.c: before a net_af_xdp device starts; what the kernel has said since then; NULL: not
 * begun
 */
void xdp_log_begin(void);
const char *xdp_log_kernel(void);

/* --- memif alone --- */
/* reconnect.c: memif logs no more than this level, or less if it did so. @return what it was */
int memif_log_lower(int level);
void memif_log_restore(int before);
/* Start a memif client; wait some seconds for its server. */
int memif_client_start(const struct link *l, struct link_port *p, struct error *err);
/* Run fn on EAL's interrupt thread, and wait for it. */
void interrupts_run(void (*fn)(void *arg), void *arg);
/*
 * memif.c: from now on, munmap() on that thread waits until all readers of rcu have been quiescent;
 * with NULL it no longer waits. Only one link of a process may use this.
 */
void memif_guard(struct rte_rcu_qsbr *rcu);
/* Name the port, whose device was found, if its peer crashes the process. */
void memif_watch(const struct link_port *p);

#endif
