/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * DPDK's drivers are plug-ins, each in a package of its own: net_af_xdp0 wants librte_net_af_xdp.so
 * of Debian's librte-net-af-xdp23.
 */

#include <ctype.h>
#include <glob.h>

#include "base/nearest.h"
#include "link/device_cause.h"
#include "link/private.h"

/* part of the names of Debian's packages */
#define ABI_MAJOR (RTE_VER_YEAR + (RTE_VER_MONTH >= 11))

const struct device_host device_host = { "/sys", RTE_EAL_PMD_PATH, "/dev" };

/* Debian puts a dash between two numbers: librte-net-tap23, but librte-net-mlx5-23. */
void
driver_package(const char *driver, char *package, size_t size)
{
	size_t len = strlen(driver);
	char *p;

	snprintf(package, size, "librte-%s%s%u", driver,
		len > 0 && isdigit((unsigned char)driver[len - 1]) ? "-" : "", ABI_MAJOR);
	for (p = package; *p != '\0'; p++)
		if (*p == '_')
			*p = '-';
}

/* Also true if it is not known, because this DPDK has its drivers in another directory. */
bool
driver_is_installed(const struct device_host *host, const char *driver)
{
	char pattern[256];
	glob_t found = { 0 };
	bool none;

	snprintf(pattern, sizeof(pattern), "%s/librte_%s.so*", host->drivers, driver);
	none = access(host->drivers, F_OK) == 0 && glob(pattern, 0, NULL, &found) == GLOB_NOMATCH;
	globfree(&found);
	return !none;
}

/* Find the installed driver whose name, with or without "net_", is most similar. */
static bool
nearest_driver(const struct device_host *host, const char *typed, char *driver, size_t size)
{
	struct nearest n = nearest_to(typed);
	char pattern[256], *name;
	glob_t found = { 0 };
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/librte_net_*.so*", host->drivers);
	if (glob(pattern, 0, NULL, &found) != 0)
		return false;
	for (i = 0; i < found.gl_pathc; i++) {
		name = strrchr(found.gl_pathv[i], '/') + strlen("/librte_");
		*strstr(name, ".so") = '\0';
		nearest_try(&n, name);
		nearest_try(&n, name + strlen("net_"));
	}
	if (n.word != NULL)
		snprintf(driver, size, "%s%s", strncmp(n.word, "net_", 4) == 0 ? "" : "net_",
			n.word);
	globfree(&found);
	return n.word != NULL;
}

static int
say_missing(const struct device_host *host, const char *driver, bool known, struct error *err)
{
	char package[64], other[48];

	driver_package(driver, package, sizeof(package));
	if (known)
		return error_set(err, ENODEV, "DPDK's driver %s is missing: apt-get install %s",
			driver, package);
	if (nearest_driver(host, driver, other, sizeof(other)))
		return error_set(err, ENODEV,
			"DPDK has no driver %s: did you mean %s? If not, a package may be missing: %s",
			driver, other, package);
	return error_set(err, ENODEV,
		"DPDK has no driver %s: a typing error, or a package is missing: apt-get install %s",
		driver, package);
}

int
device_cause_driver(const struct device_host *host, const char *device, bool known,
	struct error *err)
{
	char name[64], other[48];
	size_t len;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	if (if_nametoindex(name) != 0)
		return error_set(err, ENODEV,
			"that is an interface of the kernel: give net_af_packet0,iface=%s, or "
			"the PCI address of its card",
			name);
	for (len = strlen(name); len > 0 && isdigit((unsigned char)name[len - 1]); len--)
		name[len - 1] = '\0';
	if (strcmp(name, "net_virtio_user") == 0)
		/* it is part of this plug-in */
		len = (size_t)snprintf(name, sizeof(name), "net_virtio");
	if (strncmp(name, "net_", 4) == 0 &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len)
		return driver_is_installed(host, name) ? 0 : say_missing(host, name, known, err);
	if (len > 0 && nearest_driver(host, name, other, sizeof(other)))
		return error_set(err, ENODEV, "DPDK has no driver %s: did you mean %s0?", name,
			other);
	return error_set(err, ENODEV,
		"neither a PCI address, such as 0000:3b:00.0, nor a vdev, such as "
		"net_af_packet0,iface=eth0");
}
