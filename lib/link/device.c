/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Find the ethdev for a port's device string: one that EAL knows already (PCI, --vdev), or a vdev
 * with arguments, which is attached here and removed at the end.
 */

#include <sys/un.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_pci.h>

#include "base/pci_address.h"
#include "link/device.h"
#include "link/device_cause.h"
#include "link/interface.h"
#include "link/private.h"

/*
 * Ask whether a process listens on a socket file. @return 0 or EPROTOTYPE: one does; ECONNREFUSED:
 * none does; other: there is no such file, or it is not a socket, and the driver decides
 */
static int
socket_refusal(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, eno;

	if (strlen(path) >= sizeof(addr.sun_path) || lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return ENOTSOCK;
	memcpy(addr.sun_path, path, strlen(path));
	/*
	 * Use a socket type on which neither driver listens (vhost: stream, memif: seqpacket): a
	 * live socket then returns EPROTOTYPE, and its owner does not notice.
	 */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	eno = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : errno;
	close(fd);
	return eno;
}

/* PMDs that listen on a socket file fail when an earlier run left one behind. */
static int
clear_socket(const struct link_port *p, struct error *err)
{
	char path[256];
	bool server;
	int eno;

	if (!device_socket(p->args, path, sizeof(path), &server) || !server)
		return 0;
	eno = socket_refusal(path);
	if (eno == 0 || eno == EPROTOTYPE) /* the driver would fail, and remove the file */
		return port_error(p, err, EADDRINUSE, "another program listens on %s", path);
	if (eno == ECONNREFUSED) {
		LINK_LOG(NOTICE, "%s: no process listens on this socket, removing it", path);
		unlink(path);
	}
	return 0;
}

/*
 * The buffers of some drivers hold frames of 2 KiB by default: add arguments for larger buffers if
 * the MTU needs them. af_packet needs slots of a power of two, one per block.
 */
static void
device_fit_mtu(struct link_port *p)
{
	uint32_t slot = rte_align32pow2(p->cfg.mtu + AF_PACKET_SLOT_HEADER);
	uint32_t buffer = p->cfg.mtu + MEMIF_FRAME_HEADER;
	size_t n = strlen(p->args), size = sizeof(p->args) - n;

	if (strncmp(p->args, "net_af_packet", 13) == 0 && slot > BUFFER_DEFAULT &&
		strstr(p->args, "framesz=") == NULL)
		snprintf(p->args + n, size, ",framesz=%u,blocksz=%u", slot, RTE_MAX(slot, 4096u));
	if (device_is_memif(p) && buffer > BUFFER_DEFAULT && strstr(p->args, "bsize=") == NULL)
		snprintf(p->args + n, size, ",bsize=%u", buffer);
}

static int
device_plug(struct link_port *p, struct error *err)
{
	char name[RTE_DEV_NAME_MAX_LEN];
	int rc, before;

	snprintf(p->args, sizeof(p->args), "%s", p->cfg.device);
	device_fit_mtu(p);
	rc = clear_socket(p, err);
	if (rc != 0)
		return rc;
	/* hide memif's warnings about secondary processes, which cannot exist here */
	before = memif_log_lower(RTE_LOG_ERR);
	rc = rte_dev_probe(p->args);
	memif_log_restore(before);
	if (rc != 0)
		return device_error(p->cfg.name, p->cfg.device, rc, err);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p->cfg.device, ","), p->cfg.device);
	if (rte_eth_dev_get_port_by_name(name, &p->ethdev) != 0)
		return port_error(p, err, ENODEV, "device %.96s is not a network device",
			p->cfg.device);
	p->hotplugged = true;
	return 0;
}

/*
 * A device of EAL's --vdev: vhost opens its socket only later, when it is configured; memif has
 * already opened it.
 */
static int
device_use(struct link_port *p, struct error *err)
{
	const struct rte_device *dev = device_info(p).device;
	const struct rte_devargs *devargs = dev != NULL ? rte_dev_devargs(dev) : NULL;

	if (devargs == NULL || devargs->args == NULL)
		return 0;
	snprintf(p->args, sizeof(p->args), "%s,%s", rte_dev_name(dev), devargs->args);
	return device_is_memif(p) ? 0 : clear_socket(p, err);
}

/* The device may be EAL's already, from its arguments. */
static int
device_find(struct link_port *p, struct error *err)
{
	char name[sizeof(p->cfg.device)];
	struct rte_pci_addr addr;

	snprintf(name, sizeof(name), "%s", p->cfg.device);
	if (pci_address_parse(name, &addr)) /* 01:00.0 is short for 0000:01:00.0 */
		rte_pci_device_name(&addr, name, sizeof(name));
	if (rte_eth_dev_get_port_by_name(name, &p->ethdev) == 0)
		return device_use(p, err);
	return device_plug(p, err);
}

int
device_attach(struct link_port *p, struct error *err)
{
	int rc;

	if (p->cfg.device[0] == '\0')
		return port_error(p, err, EINVAL,
			"device is missing: a PCI address or a vdev, or "
			"back_to_back with the name of another port");
	if (device_is_memif(p) && !p->cfg.trusted)
		return port_error(p, err, EPERM,
			"trusted: a memif peer can crash this process. Set \"trusted\": true if "
			"you trust it, or else use net_vhost, which checks what its peer writes");
	rc = device_find(p, err);
	if (rc == 0 && device_is_memif(p))
		memif_watch(p);
	return rc;
}

void
device_detach(struct link_port *p)
{
	struct rte_device *dev;

	if (p->ethdev == RTE_MAX_ETHPORTS)
		return;
	dev = device_info(p).device;
	if (p->opened)
		device_close(p);
	interface_restore(p);
	if (p->hotplugged && dev != NULL)
		rte_dev_remove(dev);
}
