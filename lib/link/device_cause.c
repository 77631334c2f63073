/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <sys/un.h>

#include "base/capability.h"
#include "base/installed.h"
#include "base/pci_address.h"
#include "base/plural.h"
#include "link/device.h"
#include "link/device_cause.h"
#include "link/device_value.h"
#include "link/interface.h"
#include "link/private.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

/*
 * Check one possible cause; if it applies, describe it. @return a negative errno value; 0: not the
 * cause
 */
typedef int cause_fn(const char *device, struct error *err);

static int
no_interface(const char *device, struct error *err)
{
	char name[64];

	if (device_value(device, "iface", name, sizeof(name)) < 0)
		return error_set(err, EINVAL, "iface=NAME is missing, such as %.*s,iface=eth0",
			(int)strcspn(device, ","), device);
	if (if_nametoindex(name) != 0)
		return 0;
	return error_set(err, ENODEV,
		"there is no interface \"%s\": ip -brief link lists those there are", name);
}

static int
no_packet_socket(__rte_unused const char *device, struct error *err)
{
	char advice[256];

	if (capabilities_effective(CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN)))
		return 0;
	return error_set(err, EPERM,
		"this user may not open packet sockets: run it as root, or with the "
		"capabilities CAP_NET_RAW and CAP_NET_ADMIN%s",
		drop_in_advice("af_packet.conf", advice, sizeof(advice)));
}

/*
 * The driver always joins the fanout group "process ID xor interface index". If two processes with
 * neighbouring IDs use neighbouring interfaces, their groups may have the same number, and the
 * kernel rejects the second one.
 */
static int
fanout_group_taken(const char *device, struct error *err)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	const uint32_t type =
		PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER;
	uint32_t group, arg;
	char name[64];
	int fd, rc;

	if (device_value(device, "iface", name, sizeof(name)) < 0)
		return 0;
	addr.sll_ifindex = (int)if_nametoindex(name);
	group = (uint32_t)(getpid() ^ addr.sll_ifindex) & 0xffff;
	arg = group | type << 16;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (fd < 0)
		return 0;
	rc = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (rc == 0)
		rc = setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)) == 0 ? 0 : errno;
	close(fd);
	if (rc != EINVAL)
		return 0;
	return error_set(err, EBUSY,
		"another process has the packet fanout group %u, which follows from "
		"our process ID: start it again",
		group);
}

static int
no_xdp_socket(__rte_unused const char *device, struct error *err)
{
	char advice[256];
	int fd;

	/* libxdp looks up its program and maps by number, for which CAP_BPF is not enough */
	if (!capabilities_effective(CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN) |
		    CAPABILITY(CAP_SYS_ADMIN)))
		return error_set(err, EPERM,
			"this user may not load AF_XDP programs: run it as root, or "
			"with the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN%s",
			drop_in_advice("af_xdp.conf", advice, sizeof(advice)));
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	return error_set(err, EAFNOSUPPORT,
		"this kernel gives no AF_XDP sockets (%m): take net_af_packet0");
}

/* Number of the interface's receive queues; 1 if the kernel's driver does not report it. */
static unsigned int
count_queues(const char *name)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq req = { .ifr_data = (char *)&channels };

	if (interface_ioctl(name, SIOCETHTOOL, &req) != 0)
		return 1;
	return RTE_MAX(channels.combined_count + channels.rx_count, 1u);
}

static int
no_xdp_queue(const char *device, struct error *err)
{
	unsigned int first = device_number(device, "start_queue", 0), have;
	unsigned int count = device_number(device, "queue_count", 1);
	char name[64] = "";

	device_value(device, "iface", name, sizeof(name));
	have = count_queues(name);
	if (first + count <= have)
		return 0;
	return error_set(err, EINVAL,
		"start_queue=%u, queue_count=%u: %s has %u queue%s, from 0 on; ethtool -l "
		"%s shows them",
		first, count, name, have, plural(have), name);
}

static int
xdp_refused(__rte_unused const char *device, struct error *err)
{
	const char *words = xdp_log_kernel();

	if (words == NULL)
		return 0;
	if (words[0] == '\0')
		return error_set(err, EBUSY,
			"another program may have the queue. What libbpf says: "
			"\"log\": [{\"component\": \"polca.link\", \"level\": \"debug\"}]");
	return error_set(err, EINVAL, "the kernel says: %.80s%s", words,
		strcasestr(words, "peer mtu") == NULL
			? ""
			: ". Type at the other end: ip link set NAME mtu 1500");
}

static int
no_tun(__rte_unused const char *device, struct error *err)
{
	if (access("/dev/net/tun", F_OK) != 0)
		return error_set(err, ENOENT, "there is no /dev/net/tun: modprobe tun");
	if (access("/dev/net/tun", R_OK | W_OK) == 0 &&
		capabilities_effective(CAPABILITY(CAP_NET_ADMIN)))
		return 0;
	return error_set(err, EPERM,
		"this user may not make interfaces by /dev/net/tun: run it as root, or "
		"with the capability CAP_NET_ADMIN");
}

/*
 * Check the path of memif's or vhost's socket. Only the end that makes the socket must write its
 * directory.
 */
static int
no_socket(const char *device, struct error *err)
{
	const char *dir;
	char path[256];
	struct stat st;
	bool make, exists;

	if (!device_socket(device, path, sizeof(path), &make))
		return 0;
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return error_set(err, ENAMETOOLONG,
			"the path of its socket has %zu bytes, allowed up to %zu", strlen(path),
			sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	exists = stat(path, &st) == 0;
	if (exists && !S_ISSOCK(st.st_mode))
		return error_set(err, ENOTSOCK, "%.108s is no socket: name another path", path);
	if (exists && access(path, R_OK | W_OK) != 0)
		return error_set(err, EACCES, "this user may not use the socket %.108s: %m", path);
	dir = dirname(path);
	if (access(dir, F_OK) != 0)
		return error_set(err, ENOENT,
			"there is no directory %.80s for its socket: mkdir %.80s", dir, dir);
	if (access(dir, make ? W_OK | X_OK : X_OK) != 0)
		return error_set(err, EACCES,
			"this user may not use the directory %.100s of its socket: %m", dir);
	return 0;
}

static int
no_vhost_socket(const char *device, struct error *err)
{
	char path[2];

	if (device_value(device, "iface", path, sizeof(path)) >= 0)
		return 0;
	return error_set(err, EINVAL, "iface=PATH, its socket, is missing");
}

static int
no_vhost_user(const char *device, struct error *err)
{
	char path[256];

	if (device_value(device, "path", path, sizeof(path)) < 0)
		return error_set(err, EINVAL,
			"path= is missing: the socket of vhost, or /dev/vhost-net");
	if (access(path, R_OK | W_OK) == 0)
		return 0;
	return error_set(err, errno, "path %.108s: %m", path);
}

/* The last row is for any other driver. */
static const struct driver_causes {
	const char *driver; /* how the names of its devices begin */
	cause_fn *ask[5]; /* up to NULL */
} drivers[] = {
	{ "net_af_packet", { no_interface, no_packet_socket, fanout_group_taken } },
	{ "net_af_xdp", { no_interface, no_xdp_socket, no_xdp_queue, xdp_refused } },
	{ "net_tap", { no_tun } },
	{ "net_memif", { no_socket } },
	{ "net_vhost", { no_vhost_socket, no_socket } },
	{ "net_virtio_user", { no_vhost_user } },
	{ "" },
};

int
device_cause(const struct device_host *host, const char *device, int rc, struct error *err)
{
	const struct driver_causes *driver = drivers;
	cause_fn *const *ask;
	int found = 0;

	if (pci_address_parse(device, NULL))
		return device_cause_pci(host, device, err);
	while (strncmp(device, driver->driver, strlen(driver->driver)) != 0)
		driver++;
	if (rc == -EFAULT) /* no bus of EAL knows the name */
		found = device_cause_driver(host, device, driver->driver[0] != '\0', err);
	for (ask = driver->ask; found == 0 && *ask != NULL; ask++)
		found = (*ask)(device, err);
	return found;
}

int
device_explain(const char *port, const char *device, int rc, struct error *err)
{
	struct error cause;
	int found = device_cause(&device_host, device, rc, &cause);

	if (found == 0)
		return 0;
	return error_set(err, -found, "%s: device %.64s: %s", port, device, cause.text);
}

int
device_error(const char *port, const char *device, int rc, struct error *err)
{
	int found = rc != -ENOMEM ? device_explain(port, device, rc, err) : 0;
	char how[256];

	if (found != 0)
		return found;
	if (rc == -ENOMEM)
		snprintf(how, sizeof(how),
			"reserve more hugepages on its NUMA node: %s --node NODE --hugepages MIB "
			"(--status shows its node and how many there are)",
			setup_host_script());
	else
		snprintf(how, sizeof(how),
			"give a PCI address bound to vfio-pci (%s ADDRESS), or a vdev such as "
			"net_af_packet0,iface=eth0",
			setup_host_script());
	return error_set(err, rc == -1 ? ENODEV : -rc, "%s: device %.64s cannot be opened (%s): %s",
		port, device, device_strerror(rc), how);
}
