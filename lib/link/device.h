/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_DEVICE_H
#define LINK_DEVICE_H

/* Private to lib/link: ethdevs, from their names and arguments to their end. */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct link_port;

/* device.c: find or attach an ethdev; remove socket files that an earlier run left behind */
int device_attach(struct link_port *p, struct error *err);
void device_detach(struct link_port *p);

/* device_close.c; not on EAL's interrupt thread */
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
bool device_is_memif(const struct link_port *p);
/* Print a device's name and arguments, which EAL keeps for each device: "name,key=value,..." */
bool device_args(const struct link_port *p, char *args, size_t size);
/* Read an argument from such a text. @retval false  there is none, or it is empty or too long */
bool arg_value(const char *args, const char *key, char *value, size_t size);
/* The same for an argument of the device. */
bool device_arg(const struct link_port *p, const char *key, char *value, size_t size);
unsigned int device_number(const struct link_port *p, const char *key, unsigned int otherwise);

/* xdp_log.c: before a net_af_xdp device starts; what the kernel has said since then; NULL: not
 * begun
 */
void xdp_log_begin(void);
const char *xdp_log_kernel(void);

#endif
