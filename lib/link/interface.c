/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The kernel's interface behind a device (af_packet, af_xdp, tap's remote). For us, drivers change
 * its MTU, MAC address and promiscuous mode, and the kernel keeps the changes when we exit. So the
 * old state is saved, also in a file, and restored at the end, except values that somebody else has
 * changed since. If a process is killed, the next one on the interface restores its changes.
 */

#include <net/if_arp.h>
#include <sys/ioctl.h>

#include "link/device.h"
#include "link/interface.h"
#include "link/private.h"

#define SHARED_FLAGS (IFF_PROMISC | IFF_ALLMULTI)

#define LINK_FOREACH_INTERFACE(s, p)                                                               \
	for ((s) = (p)->interface; (s) < (p)->interface + RTE_DIM((p)->interface); (s)++)

int
interface_ioctl(const char *name, unsigned long request, struct ifreq *req)
{
	int fd, rc;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(req->ifr_name, sizeof(req->ifr_name), "%s", name);
	rc = ioctl(fd, request, req) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

int
interface_mtu(const char *name, int set)
{
	struct ifreq req = { .ifr_mtu = set };
	int rc;

	rc = interface_ioctl(name, set != 0 ? SIOCSIFMTU : SIOCGIFMTU, &req);
	return rc == 0 ? req.ifr_mtu : rc;
}

bool
interface_is_running(const struct link_port *p)
{
	struct ifreq req = { 0 };
	char name[IF_NAMESIZE];

	if (p->interface[0].name[0] == '\0')
		return true;
	/* find it by its index, because it may have been renamed */
	return if_indextoname(p->interface[0].index, name) != NULL &&
		interface_ioctl(name, SIOCGIFFLAGS, &req) == 0 &&
		(req.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static bool
interface_read(const char *name, struct interface_state *s)
{
	struct ifreq req = { 0 };

	if (name[0] == '\0' || interface_ioctl(name, SIOCGIFFLAGS, &req) != 0)
		return false;
	s->index = if_nametoindex(name);
	s->flags = req.ifr_flags;
	if (interface_ioctl(name, SIOCGIFHWADDR, &req) != 0)
		return false;
	s->hwaddr = req.ifr_hwaddr;
	s->mtu = interface_mtu(name, 0);
	if (s->mtu <= 0)
		return false;
	snprintf(s->name, sizeof(s->name), "%s", name);
	return true;
}

/* What we must restore: values that differ from the saved state and are the ones that we set. */
struct changes {
	bool mtu;
	bool mac;
	unsigned short flags; /* flags that are on, and were off before the device started */
};

static bool
interface_find_changes(const struct interface_state *was, struct changes *c)
{
	struct interface_state now;

	if (was->name[0] == '\0' || was->temporary || !interface_read(was->name, &now))
		return false;
	c->mtu = now.mtu != was->mtu && now.mtu == was->set_mtu;
	c->mac = now.hwaddr.sa_family == ARPHRD_ETHER &&
		memcmp(now.hwaddr.sa_data, was->hwaddr.sa_data, MAC_LEN) != 0 &&
		memcmp(now.hwaddr.sa_data, was->set_mac, MAC_LEN) == 0;
	c->flags = now.flags & ~was->flags & was->set_flags; /* others are not ours */
	return c->mtu || c->mac || c->flags != 0;
}

void
interface_may_change(struct link_port *p)
{
	struct interface_state *was, now;

	LINK_FOREACH_INTERFACE(was, p)
		if (interface_read(was->name, &now))
			was->set_flags |= SHARED_FLAGS & ~now.flags;
}

void
interface_tell(struct link_port *p)
{
	struct interface_state *was;
	char mac[RTE_ETHER_ADDR_FMT_SIZE], mtu[24];
	struct changes c;
	bool changed;

	LINK_FOREACH_INTERFACE(was, p) {
		c.flags = 0;
		changed = interface_find_changes(was, &c);
		was->set_flags = c.flags;
		if (!changed) {
			interface_file_remove(was);
			continue;
		}
		interface_file_write(was);
		rte_ether_format_addr(mac, sizeof(mac), (const void *)was->hwaddr.sa_data);
		snprintf(mtu, sizeof(mtu), " mtu %d", was->mtu);
		PORT_LOG(p, NOTICE,
			"%s is changed while Polca runs, and restored at the end; by hand: ip link "
			"set %s%s%s%s%s%s",
			was->name, was->name, c.mtu ? mtu : "", c.mac ? " address " : "",
			c.mac ? mac : "", c.flags & IFF_PROMISC ? " promisc off" : "",
			c.flags & IFF_ALLMULTI ? " allmulticast off" : "");
	}
}

/* Others may have set flags since the changes were found: only ours are cleared. */
static int
interface_clear_flags(const char *name, unsigned short flags)
{
	struct ifreq req = { 0 };
	int rc = interface_ioctl(name, SIOCGIFFLAGS, &req);

	if (rc != 0)
		return rc;
	req.ifr_flags = (short)(req.ifr_flags & ~flags);
	return interface_ioctl(name, SIOCSIFFLAGS, &req);
}

static void
check_restored(const struct link_port *p, const struct interface_state *was, const char *what,
	int rc)
{
	if (rc < 0)
		PORT_LOG(p, WARNING, "the %s of %s could not be restored: %s", what, was->name,
			rte_strerror(-rc));
}

/*
 * Each value separately: with some drivers the MAC address cannot change while the interface is up.
 */
static bool
interface_restore_one(const struct link_port *p, const struct interface_state *was)
{
	struct ifreq mac = { .ifr_hwaddr = was->hwaddr };
	struct changes c;

	if (!interface_find_changes(was, &c))
		return false;
	if (c.mtu)
		check_restored(p, was, "MTU", interface_mtu(was->name, was->mtu));
	if (c.mac)
		check_restored(p, was, "MAC address",
			interface_ioctl(was->name, SIOCSIFHWADDR, &mac));
	if (c.flags != 0)
		check_restored(p, was, "promiscuous mode",
			interface_clear_flags(was->name, c.flags));
	return true;
}

void
interface_restore(struct link_port *p)
{
	struct interface_state *was;

	LINK_FOREACH_INTERFACE(was, p) {
		if (was->name[0] == '\0')
			continue;
		interface_restore_one(p, was);
		interface_file_remove(was);
		was->name[0] = '\0';
	}
}

/*
 * True if it is the same interface, with its old or our MAC address, and not a new one with its
 * index.
 */
static bool
interface_is_same(const struct interface_state *now, const struct interface_state *was)
{
	return memcmp(now->hwaddr.sa_data, was->hwaddr.sa_data, MAC_LEN) == 0 ||
		memcmp(now->hwaddr.sa_data, was->set_mac, MAC_LEN) == 0;
}

static void
restore_for_killed(const struct link_port *p, struct interface_state *now)
{
	struct interface_state was;

	if (!interface_file_read(now, &was) || !interface_is_same(now, &was) ||
		!interface_restore_one(p, &was))
		return;
	PORT_LOG(p, NOTICE, "%s was still as a killed process had changed it, and is restored",
		now->name);
	interface_read(was.name, now);
}

static void
interface_note_one(const struct link_port *p, const char *name, bool temporary,
	struct interface_state *s)
{
	memset(s, 0, sizeof(*s));
	s->file = -1;
	s->temporary = temporary;
	if (!interface_read(name, s) || temporary)
		return;
	interface_file_open(s);
	restore_for_killed(p, s);
	s->set_mtu = p->cfg.mtu;
	memcpy(s->set_mac, p->cfg.mac, MAC_LEN);
	s->set_flags = SHARED_FLAGS;
	interface_file_write(s);
}

void
interface_note(struct link_port *p)
{
	struct rte_eth_dev_info info = device_info(p);
	char name[IF_NAMESIZE] = "";

	if_indextoname(info.if_index, name); /* none has index 0 */
	interface_note_one(p, name,
		info.driver_name != NULL && strcmp(info.driver_name, "net_tap") == 0,
		&p->interface[0]);
	name[0] = '\0';
	arg_value(p->args, "remote", name, sizeof(name));
	interface_note_one(p, name, false, &p->interface[1]);
}
