/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_KERNEL_H
#define LINK_KERNEL_H

/* Private to lib/link: what the kernel has on an interface that a port uses. */

#include "link/private.h"

struct ifaddrs;

/* What there is to see; a test brings its own. */
struct kernel_view {
	const char *sys; /* "/sys" */
	const char *vlans; /* "/proc/net/vlan/config" */
	const char *interface; /* the kernel's, behind the port; "": none */
	const struct ifaddrs *addresses; /* all of this host */
	void (*warn)(const char *text);
};

/* Warn of what gets in the way of RoCE. */
void kernel_check(const struct link_port *p, const struct kernel_view *v);

#endif
