/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Explain why the EAL did not start, and what to do: the most likely causes first. */

#include <errno.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "base/installed.h"
#include "base/pci_address.h"
#include "eal.h"

/*
 * MiB of 2 MiB and 1 GiB hugepages: all of them (file "nr_hugepages"), or the unused ones
 * ("free_hugepages").
 */
static uint64_t
hugepages_mib(const char *file)
{
	static const unsigned int size_kb[] = { 2048, 1048576 };
	uint64_t total = 0, pages;
	char path[96];
	unsigned int i;
	FILE *f;

	for (i = 0; i < RTE_DIM(size_kb); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%ukB/%s",
			size_kb[i], file);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%" SCNu64, &pages) == 1)
			total += pages * size_kb[i] / 1024;
		fclose(f);
	}
	return total;
}

static bool
hugetlbfs_mounted(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const struct mntent *m;
	bool found = false;

	if (mounts == NULL)
		return false;
	while (!found && (m = getmntent(mounts)) != NULL)
		found = strcmp(m->mnt_type, "hugetlbfs") == 0;
	endmntent(mounts);
	return found;
}

static bool
wants_pci(const struct config *c)
{
	unsigned int i;

	for (i = 0; i < c->num_ports; i++)
		if (pci_address_parse(c->port[i].device, NULL))
			return true;
	return false;
}

/* @return 0: hugepages are not the cause */
static int
explain_hugepages(const struct eal_args *a, const char *why, struct error *err)
{
	const char *memory = eal_arg_value(a, "-m");
	uint64_t wanted = memory != NULL ? strtoull(memory, NULL, 10) : 0;
	uint64_t all = hugepages_mib("nr_hugepages"), free = hugepages_mib("free_hugepages");

	if (all == 0)
		return error_set(err, ENOMEM,
			"DPDK does not start (%s): there are no hugepages. Reserve some with "
			"%s --hugepages %" PRIu64 ", or set eal.hugepages to false",
			why, setup_host_script(), wanted > 0 ? wanted : SETUP_HOST_MIB);
	if (free == 0 || free < wanted)
		return error_set(err, ENOMEM,
			"DPDK does not start (%s): %" PRIu64
			" MiB of hugepages are needed, %" PRIu64 " MiB of %" PRIu64
			" MiB are free. Reserve more: %s --hugepages %" PRIu64,
			why, RTE_MAX(wanted, 2u), free, all, setup_host_script(),
			all - free + RTE_MAX(wanted, 2u));
	return 0;
}

int
eal_explain(const struct config *c, const struct eal_args *a, struct error *err)
{
	const char *why = rte_strerror(rte_errno);

	if (c->hugepages && explain_hugepages(a, why, err) != 0)
		return -ENOMEM;
	if (geteuid() != 0 && (c->hugepages || wants_pci(c)))
		return error_set(err, EPERM,
			"DPDK does not start (%s): hugepages and PCI devices need root, or "
			"access to /dev/hugepages and /dev/vfio and a larger memlock limit (ulimit -l)",
			why);
	if (c->multi_process && !hugetlbfs_mounted())
		return error_set(err, ENOENT,
			"DPDK does not start (%s): eal.multi_process needs a mounted "
			"hugetlbfs: mount -t hugetlbfs none /dev/hugepages",
			why);
	if (wants_pci(c) && access("/dev/vfio/vfio", F_OK) != 0 && errno == ENOENT)
		return error_set(err, ENODEV,
			"DPDK does not start (%s): there is no /dev/vfio/vfio. Give the "
			"device to vfio-pci: %s ADDRESS",
			why, setup_host_script());
	return error_set(err, EIO,
		"DPDK does not start (%s): see its messages above. Check eal.*, each "
		"ports[].device and --eal",
		why);
}
