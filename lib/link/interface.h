/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_INTERFACE_H
#define LINK_INTERFACE_H

/* Private to lib/link: the kernel's interface behind a device (struct interface_state). */

#include "link/private.h"

/* interface.c: ioctl() for an interface. @return 0, or -errno */
int interface_ioctl(const char *name, unsigned long request, struct ifreq *req);
/* Set the MTU of an interface, or with set 0 read it. @return the MTU, or -errno */
int interface_mtu(const char *name, int set);
/* Save the interface's state, before the device changes it. */
void interface_note(struct link_port *p);
/* After the device has started: log the changes and write them to the file. */
void interface_tell(struct link_port *p);
/* Before interface_tell(), of a port that has started: it may be told to receive multicast. */
void interface_may_change(struct link_port *p);
/* At the end. */
void interface_restore(struct link_port *p);
/* True if the device's interface is up and has a carrier, or if the device has no interface. */
bool interface_is_running(const struct link_port *p);
/*
 * interface_file.c: open and lock the interface's file; .file is -1 if a living process has locked
 * it
 */
void interface_file_open(struct interface_state *s);
/* @return true if a killed process left its saved state in the file */
bool interface_file_read(const struct interface_state *now, struct interface_state *was);
void interface_file_write(struct interface_state *s);
void interface_file_remove(struct interface_state *s);

#endif
