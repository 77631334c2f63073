/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <arpa/inet.h>
#include <errno.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/installed.h"
#include "base/pci_address.h"
#include "base/plural.h"
#include "link/device_cause.h"
#include "link/device_value.h"
#include "link/private.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

/*
 * Check one possible cause; if it applies, describe it in text. @return an errno value; 0: not the
 * cause
 */
typedef int cause_fn(const char *device, char *text, size_t size);

static bool
has_capability(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &header, data) != 0)
		return true; /* not known */
	return (data[capability / 32].effective & (1u << (capability % 32))) != 0;
}

static int
no_interface(const char *device, char *text, size_t size)
{
	char name[64];

	if (!device_value(device, "iface", name, sizeof(name), NULL)) {
		snprintf(text, size, "iface=NAME is missing, such as %.*s,iface=eth0",
			(int)strcspn(device, ","), device);
		return EINVAL;
	}
	if (if_nametoindex(name) != 0)
		return 0;
	snprintf(text, size, "there is no interface \"%s\": ip -brief link lists those there are",
		name);
	return ENODEV;
}

static int
no_packet_socket(const char *device, char *text, size_t size)
{
	char advice[256];

	RTE_SET_USED(device);
	if (has_capability(CAP_NET_RAW) && has_capability(CAP_NET_ADMIN))
		return 0;
	snprintf(text, size,
		"this user may not open packet sockets: run it as root, or with the "
		"capabilities CAP_NET_RAW and CAP_NET_ADMIN%s",
		drop_in_advice("af_packet.conf", advice, sizeof(advice)));
	return EPERM;
}

/*
 * The driver always joins the fanout group "process ID xor interface index". If two processes with
 * neighbouring IDs use neighbouring interfaces, their groups may have the same number, and the
 * kernel rejects the second one.
 */
static int
fanout_group_taken(const char *device, char *text, size_t size)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	const uint32_t type =
		PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER;
	uint32_t group, arg;
	char name[64];
	int fd, rc;

	if (!device_value(device, "iface", name, sizeof(name), NULL))
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
	snprintf(text, size,
		"another process has the packet fanout group %u, which follows from "
		"our process ID: start it again",
		group);
	return EBUSY;
}

static int
no_xdp_socket(const char *device, char *text, size_t size)
{
	char advice[256];
	int fd;

	RTE_SET_USED(device);
	/* libxdp looks up its program and maps by number, for which CAP_BPF is not enough */
	if (!has_capability(CAP_NET_RAW) || !has_capability(CAP_NET_ADMIN) ||
		!has_capability(CAP_SYS_ADMIN)) {
		snprintf(text, size,
			"this user may not load AF_XDP programs: run it as root, or "
			"with the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN%s",
			drop_in_advice("af_xdp.conf", advice, sizeof(advice)));
		return EPERM;
	}
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(text, size, "this kernel gives no AF_XDP sockets (%m): take net_af_packet0");
	return EAFNOSUPPORT;
}

/* Number of the interface's receive queues; 1 if the kernel's driver does not report it. */
static unsigned int
count_queues(const char *name)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq req = { .ifr_data = (char *)&channels };
	unsigned int n = 0;
	int fd;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 1;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%.15s", name);
	if (ioctl(fd, SIOCETHTOOL, &req) == 0)
		n = channels.combined_count + channels.rx_count;
	close(fd);
	return RTE_MAX(n, 1u);
}

static int
no_xdp_queue(const char *device, char *text, size_t size)
{
	char name[64] = "", first[12] = "0", count[12] = "1";
	unsigned int have, end;

	device_value(device, "iface", name, sizeof(name), NULL);
	device_value(device, "start_queue", first, sizeof(first), NULL);
	device_value(device, "queue_count", count, sizeof(count), NULL);
	have = count_queues(name);
	end = (unsigned int)atoi(first) + (unsigned int)atoi(count);
	if (end <= have)
		return 0;
	snprintf(text, size,
		"start_queue=%.11s, queue_count=%.11s: %s has %u queue%s, from 0 on; ethtool -l "
		"%s shows them",
		first, count, name, have, plural(have), name);
	return EINVAL;
}

static int
xdp_refused(const char *device, char *text, size_t size)
{
	const char *words = xdp_log_kernel();

	RTE_SET_USED(device);
	if (words == NULL)
		return 0;
	if (words[0] == '\0') {
		snprintf(text, size,
			"another program may have the queue. What libbpf says: "
			"\"log\": [{\"component\": \"polca.link\", \"level\": \"debug\"}]");
		return EBUSY;
	}
	snprintf(text, size, "the kernel says: %.80s%s", words,
		strcasestr(words, "peer mtu") == NULL
			? ""
			: ". Type at the other end: ip link set NAME mtu 1500");
	return EINVAL;
}

static int
no_tun(const char *device, char *text, size_t size)
{
	RTE_SET_USED(device);
	if (access("/dev/net/tun", F_OK) != 0) {
		snprintf(text, size, "there is no /dev/net/tun: modprobe tun");
		return ENOENT;
	}
	if (access("/dev/net/tun", R_OK | W_OK) == 0 && has_capability(CAP_NET_ADMIN))
		return 0;
	snprintf(text, size,
		"this user may not make interfaces by /dev/net/tun: run it as root, or "
		"with the capability CAP_NET_ADMIN");
	return EPERM;
}

/*
 * Check the path of memif's or vhost's socket. Only the end that makes the socket must write its
 * directory.
 */
static int
no_socket_path(const char *path, bool make, char *text, size_t size)
{
	char copy[256];
	const char *dir;
	struct stat st;
	int eno = EACCES;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(text, size, "the path of its socket has %zu bytes, allowed up to %zu",
			strlen(path), sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return ENAMETOOLONG;
	}
	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (access(dir, F_OK) != 0) {
		snprintf(text, size, "there is no directory %.80s for its socket: mkdir %.80s", dir,
			dir);
		eno = ENOENT;
	} else if (access(dir, make ? W_OK | X_OK : X_OK) != 0) {
		snprintf(text, size, "this user may not use the directory %.100s of its socket: %s",
			dir, strerror(errno));
	} else if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		snprintf(text, size, "%.108s is no socket: name another path", path);
		eno = ENOTSOCK;
	} else if (stat(path, &st) == 0 && access(path, R_OK | W_OK) != 0) {
		snprintf(text, size, "this user may not use the socket %.108s: %s", path,
			strerror(errno));
	} else {
		return 0;
	}
	return eno;
}

static int
no_memif_socket(const char *device, char *text, size_t size)
{
	char path[256] = "/run/memif.sock", role[16] = "client", abstract[8];
	bool make;

	if (!device_value(device, "socket-abstract", abstract, sizeof(abstract), NULL) ||
		strcmp(abstract, "no") != 0)
		return 0;
	device_value(device, "socket", path, sizeof(path), NULL);
	device_value(device, "role", role, sizeof(role), NULL);
	make = strcmp(role, "client") != 0 && strcmp(role, "slave") != 0;
	return no_socket_path(path, make, text, size);
}

static int
no_vhost_socket(const char *device, char *text, size_t size)
{
	char path[256], client[8] = "0";

	device_value(device, "client", client, sizeof(client), NULL);
	if (device_value(device, "iface", path, sizeof(path), NULL))
		return no_socket_path(path, strcmp(client, "1") != 0, text, size);
	snprintf(text, size, "iface=PATH, its socket, is missing");
	return EINVAL;
}

static int
no_vhost_user(const char *device, char *text, size_t size)
{
	char path[256];
	int eno;

	if (!device_value(device, "path", path, sizeof(path), NULL)) {
		snprintf(text, size, "path= is missing: the socket of vhost, or /dev/vhost-net");
		return EINVAL;
	}
	if (access(path, R_OK | W_OK) == 0)
		return 0;
	eno = errno;
	snprintf(text, size, "path %.108s: %s", path, strerror(eno));
	return eno;
}

static const struct {
	const char *driver; /* how the names of its devices begin */
	cause_fn *ask[4];
} drivers[] = {
	{ "net_af_packet", { no_interface, no_packet_socket, fanout_group_taken } },
	{ "net_af_xdp", { no_interface, no_xdp_socket, no_xdp_queue, xdp_refused } },
	{ "net_tap", { no_tun } },
	{ "net_memif", { no_memif_socket } },
	{ "net_vhost", { no_vhost_socket } },
	{ "net_virtio_user", { no_vhost_user } },
};

static int
find_driver(const char *device)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(drivers); i++)
		if (strncmp(device, drivers[i].driver, strlen(drivers[i].driver)) == 0)
			return (int)i;
	return -1;
}

int
device_cause(const struct device_host *host, const char *device, int rc, char *text, size_t size)
{
	int driver = find_driver(device), eno = 0;
	unsigned int k;

	if (pci_address_parse(device, NULL))
		return device_cause_pci(host, device, text, size);
	if (rc == -EFAULT && device_cause_driver(host, device, driver >= 0, text, size))
		return ENODEV; /* -EFAULT: no bus of EAL knows the name */
	if (driver < 0)
		return 0;
	for (k = 0; eno == 0 && k < RTE_DIM(drivers[0].ask) && drivers[driver].ask[k] != NULL; k++)
		eno = drivers[driver].ask[k](device, text, size);
	return eno;
}

int
device_error(const char *port, const char *device, int rc, struct error *err)
{
	char text[512], how[256];
	int eno = rc != -ENOMEM ? device_cause(&device_host, device, rc, text, sizeof(text)) : 0;

	if (eno != 0)
		return error_set(err, eno, "%s: device %.64s: %s", port, device, text);
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
