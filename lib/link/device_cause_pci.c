/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Check a PCI device in sysfs: does it exist, which driver is bound to it, may we open it? */

#include <fcntl.h>
#include <limits.h>

#include <rte_pci.h>

#include "base/installed.h"
#include "base/pci_address.h"
#include "link/device_cause.h"
#include "link/private.h"

/* DPDK drivers that work while the kernel's driver stays bound to the device. */
static const struct {
	const char *kernel, *driver;
} beside_the_kernel[] = {
	{ "mlx5_core", "net_mlx5" },
	{ "mlx4_core", "net_mlx4" },
	{ "mana", "net_mana" },
};

/*
 * The last component of a symbolic link's target: the name of a driver, the number of an IOMMU
 * group.
 */
static bool
link_of(const char *dir, const char *name, char *value, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return (size_t)snprintf(value, size, "%s", basename(target)) < size;
}

/* The container of VFIO: opening it is the only check that also sees a service's DeviceAllow. */
static int
vfio_container_cause(const struct device_host *host, struct error *err)
{
	char path[PATH_MAX], advice[256];
	int fd;

	snprintf(path, sizeof(path), "%s/vfio/vfio", host->dev);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == ENOENT)
		return error_set(err, ENOENT, "there is no %s: modprobe vfio-pci", path);
	if (errno == EACCES || errno == EPERM)
		return error_set(err, EACCES,
			"this user may not open %s: run it as root, chmod a+rw this file, or give its "
			"service the drop-in vfio.conf%s",
			path, drop_in_advice("vfio.conf", advice, sizeof(advice)));
	return error_set(err, errno, "%s cannot be opened: %m: modprobe vfio-pci", path);
}

static int
vfio_cause(const struct device_host *host, const char *dir, const char *name, struct error *err)
{
	char group[32], path[PATH_MAX];
	int rc = vfio_container_cause(host, err);

	if (rc != 0)
		return rc;
	if (!link_of(dir, "iommu_group", group, sizeof(group)))
		return error_set(err, ENODEV,
			"there is no IOMMU for vfio-pci: boot with intel_iommu=on or "
			"amd_iommu=on, or %s --driver uio_pci_generic %s",
			setup_host_script(), name);
	snprintf(path, sizeof(path), "%s/vfio/%s", host->dev, group);
	if (access(path, R_OK | W_OK) == 0)
		return 0;
	return error_set(err, EACCES,
		"this user may not use %s: run it as root, or chown this file and raise ulimit -l",
		path);
}

static int
bifurcated_cause(const struct device_host *host, const char *kernel, const char *driver,
	struct error *err)
{
	char package[64];

	if (driver_is_installed(host, driver))
		return error_set(err, ENODEV,
			"it rightly stays with its kernel driver %s, and DPDK's driver %s is "
			"installed: the lines above say what that one lacks",
			kernel, driver);
	driver_package(driver, package, sizeof(package));
	return error_set(err, ENODEV,
		"it stays with its kernel driver %s, but DPDK's driver for it is "
		"missing: apt-get install %s",
		kernel, package);
}

int
device_cause_pci(const struct device_host *host, const char *device, struct error *err)
{
	char dir[PATH_MAX], name[PCI_PRI_STR_SIZE], driver[64], advice[256];
	struct rte_pci_addr addr;
	unsigned int i;

	if (!pci_address_parse(device, &addr))
		return 0;
	rte_pci_device_name(&addr, name, sizeof(name));
	snprintf(dir, sizeof(dir), "%s/bus/pci/devices/%s", host->sys, name);
	if (access(dir, F_OK) != 0)
		return error_set(err, ENODEV,
			"there is no such PCI device: %s --status lists the network cards",
			setup_host_script());
	if (!link_of(dir, "driver", driver, sizeof(driver)))
		return error_set(err, ENODEV,
			"no kernel driver gives access to it: %s %s binds it to vfio-pci",
			setup_host_script(), name);
	if (strcmp(driver, "vfio-pci") == 0)
		return vfio_cause(host, dir, name, err);
	if (strcmp(driver, "uio_pci_generic") == 0 || strcmp(driver, "igb_uio") == 0) {
		if (geteuid() == 0)
			return 0;
		return error_set(err, EPERM, "%s needs root%s", driver,
			drop_in_advice("uio.conf", advice, sizeof(advice)));
	}
	for (i = 0; i < RTE_DIM(beside_the_kernel); i++)
		if (strcmp(driver, beside_the_kernel[i].kernel) == 0)
			return bifurcated_cause(host, driver, beside_the_kernel[i].driver, err);
	return error_set(err, EBUSY, "the kernel's driver %s has it: %s %s binds it to vfio-pci",
		driver, setup_host_script(), name);
}
