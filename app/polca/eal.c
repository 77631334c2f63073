/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The EAL's command line. Main lcore 0 is the control thread and floats over the CPUs this process
 * may use; each worker is bound to one CPU, in turn, so that any number of CPUs will do.
 */

#define ALLOW_EXPERIMENTAL_API /* handles of interrupts, stable in the next DPDK */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_log.h>

#include "eal.h"
#include "numa.h"

#define PLAIN_MB_BASE   192 /* without hugepages */
#define PLAIN_MB_PORT   64
#define PLAIN_MB_WORKER 64

#define LOOK_US         100

static int __attribute__((format(printf, 2, 3))) add(struct eal_args *a, const char *fmt, ...)
{
	va_list ap;
	int ret;

	if (a->argc + 1 >= (int)RTE_DIM(a->argv))
		return -E2BIG;
	va_start(ap, fmt);
	ret = vasprintf(&a->argv[a->argc], fmt, ap);
	va_end(ap);
	if (ret < 0)
		return -ENOMEM;
	a->argv[++a->argc] = NULL;
	return 0;
}

static unsigned int
worker_count(const struct config *c, unsigned int cpus)
{
	if (c->workers > 0)
		return c->workers;
	return RTE_MAX(1u, RTE_MIN(c->num_ports, cpus));
}

/* "0@(0,1),1@0,2@1": for two workers on CPUs 0 and 1; first those beside the network cards */
static int
add_lcores(struct eal_args *a, const struct config *c)
{
	unsigned int cpu[CPU_SETSIZE], n = 0, i, workers;
	size_t size, len = 0;
	cpu_set_t set;
	char *text;
	int ret;

	if (c->lcores[0] != '\0')
		return add(a, "--lcores=%s", c->lcores);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	workers = worker_count(c, n);
	size = 16 * (n + workers + 1);
	text = malloc(size);
	if (text == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(
				text + len, size - len, "%s%u", i == 0 ? "0@(" : ",", cpu[i]);
	len += (size_t)snprintf(text + len, size - len, ")");
	numa_order_cpus(c, "/sys", cpu, n);
	for (i = 0; i < workers; i++)
		len += (size_t)snprintf(text + len, size - len, ",%u@%u", i + 1, cpu[i % n]);
	ret = add(a, "--lcores=%s", text);
	free(text);
	return ret;
}

static int
add_memory(struct eal_args *a, const struct config *c)
{
	unsigned int mb = c->memory_mb;
	int ret = 0;

	/* no files: nothing is left behind by kill -9. Without hugepages --in-memory is refused */
	if (c->hugepages && !c->multi_process)
		ret |= add(a, "--in-memory");
	if (!c->hugepages) {
		ret |= add(a, "--no-huge");
		ret |= add(a, "--no-shconf");
		if (mb == 0)
			mb = PLAIN_MB_BASE + PLAIN_MB_PORT * c->num_ports +
			     PLAIN_MB_WORKER * worker_count(c, CPU_SETSIZE);
	}
	if (mb > 0)
		ret |= add(a, "-m%u", mb);
	return ret;
}

static int
add_devices(struct eal_args *a, const struct config *c)
{
	unsigned int i, pci = 0;
	int ret = 0;

	for (i = 0; i < c->num_ports; i++) {
		if (!config_is_pci(c->port[i].device))
			continue;
		ret |= add(a, "-a%s", c->port[i].device);
		pci++;
	}
	if (pci == 0)
		ret |= add(a, "--no-pci");
	return ret;
}

static int
add_extra(struct eal_args *a, const char *extra)
{
	int ret = 0;
	size_t n;

	while (extra != NULL && *(extra += strspn(extra, " \t")) != '\0') {
		n = strcspn(extra, " \t");
		ret |= add(a, "%.*s", (int)n, extra);
		extra += n;
	}
	return ret;
}

int
eal_args(const struct config *c, const char *extra, struct eal_args *a, struct error *err)
{
	unsigned int i;
	int ret;

	memset(a, 0, sizeof(*a));
	ret = add(a, "polca");
	ret |= add(a, "--log-level=lib.eal:notice");
	ret |= add(a, "--log-level=lib.telemetry:error");
	ret |= add(a, "--file-prefix=%s", c->file_prefix);
	ret |= add(a, "--main-lcore=0");
	ret |= add_lcores(a, c);
	ret |= add_memory(a, c);
	ret |= add_devices(a, c);
	for (i = 0; i < c->num_args; i++)
		ret |= add(a, "%s", c->arg[i].text);
	ret |= add_extra(a, extra);
	if (ret == 0)
		return 0;
	eal_args_free(a);
	return error_set(
			err, E2BIG, "eal: no memory, or more than %zu arguments", RTE_DIM(a->argv));
}

void
eal_args_free(struct eal_args *a)
{
	while (a->argc > 0)
		free(a->argv[--a->argc]);
}

/* Free hugepages of all sizes and nodes, or -1: there is no telling. */
static long
free_hugepages(void)
{
	static const char *const files[] = {
		"/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
		"/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages",
	};
	long total = -1, n;
	unsigned int i;
	FILE *f;

	for (i = 0; i < RTE_DIM(files); i++) {
		f = fopen(files[i], "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%ld", &n) == 1)
			total = RTE_MAX(total, 0) + n;
		fclose(f);
	}
	return total;
}

static bool
wants_pci(const struct config *c)
{
	unsigned int i;

	for (i = 0; i < c->num_ports; i++)
		if (config_is_pci(c->port[i].device))
			return true;
	return false;
}

/* What to do about it: the likeliest reasons first. */
static int
explain(const struct config *c, struct error *err)
{
	const char *why = rte_strerror(rte_errno);

	if (c->hugepages && free_hugepages() <= 0)
		return error_set(err, ENOMEM,
				"the EAL did not start (%s): there are no free hugepages. Reserve "
				"some with config/setup-host.sh, or set eal.hugepages to false",
				why);
	if (geteuid() != 0 && (c->hugepages || wants_pci(c)))
		return error_set(err, EPERM,
				"the EAL did not start (%s): hugepages and PCI devices need root, "
				"or access to "
				"/dev/hugepages and /dev/vfio and a larger memlock limit (ulimit "
				"-l)",
				why);
	if (wants_pci(c) && access("/dev/vfio/vfio", F_OK) != 0)
		return error_set(err, ENODEV,
				"the EAL did not start (%s): there is no /dev/vfio/vfio. Give the "
				"device to vfio-pci: config/setup-host.sh ADDRESS",
				why);
	return error_set(err, EIO,
			"the EAL did not start (%s): its own words stand above. Check eal.*, each "
			"ports[].device "
			"and --eal",
			why);
}

static void
say_warning(void *arg, const char *text)
{
	RTE_SET_USED(arg);
	fprintf(stderr, "polca: %s\n", text);
}

int
eal_start(const struct config *c, const char *extra, struct error *err)
{
	/* the EAL keeps pointers to its arguments and reorders the list it is given: a copy of it */
	static struct eal_args a;
	char *argv[RTE_DIM(a.argv)];
	int ret, i;

	ret = eal_args(c, extra, &a, err);
	if (ret != 0)
		return ret;
	numa_check_hugepages(c, "/sys", say_warning, NULL);
	memcpy(argv, a.argv, sizeof(argv));
	if (rte_eal_init(a.argc, argv) < 0)
		return explain(c, err);
	for (i = 0; i < (int)c->num_log; i++)
		rte_log_set_level_pattern(c->log[i].component, c->log[i].level);
	return 0;
}

static void
stay(void *arg)
{
	uint32_t *there = arg;

	__atomic_store_n(there, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/*
 * EAL's interrupt thread goes on to the end of the process, and goes through all its sources when
 * one leaves, as the alarms' does in rte_eal_cleanup(). memif leaves its listening socket's there
 * (DPDK 22.11), in memory that is unmapped then. So the thread ends in a callback before.
 */
static void
hold_interrupts(void)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	static uint32_t there;

	if (h != NULL && rte_intr_type_set(h, RTE_INTR_HANDLE_EXT) == 0 &&
			rte_intr_fd_set(h, eventfd(1, EFD_CLOEXEC)) == 0 &&
			rte_intr_callback_register(h, stay, &there) == 0)
		while (__atomic_load_n(&there, __ATOMIC_ACQUIRE) == 0)
			rte_delay_us_sleep(LOOK_US);
	rte_intr_instance_free(h); /* EAL has a copy */
}

void
eal_end(void)
{
	hold_interrupts();
	rte_eal_cleanup();
}
