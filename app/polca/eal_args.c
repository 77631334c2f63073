/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Build the EAL's command line. Lcore 0, the lowest and so the EAL's main lcore, is the control
 * thread and may run on any CPU of this process. Each worker is bound to one CPU; if there are more
 * workers than CPUs, they share them in turn.
 *
 * The defaults come first, then eal.args of the configuration, then --eal. A repeated option
 * replaces the earlier one, since DPDK 25.11 rejects repetitions; options that the EAL accepts
 * several times add up.
 */

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/pci_address.h"
#include "eal.h"
#include "numa_cards.h"

#define PLAIN_MB_BASE   192 /* MiB, without hugepages */
#define PLAIN_MB_PORT   64
#define PLAIN_MB_WORKER 64

/*
 * Options with a short form, with synonyms, or that may be given several times. All others replace
 * only themselves.
 */
static const struct {
	char letter; /* 0: none */
	const char *name; /* DPDK 25.11 has a long name for each letter */
	/* a later option replaces earlier ones of the same role; NULL: they add up */
	const char *role;
} options[] = {
	{ 'a', "allow", NULL },
	{ 'b', "block", NULL },
	{ 'd', "driver-path", NULL },
	{ 0, "vdev", NULL },
	{ 0, "log-level", NULL },
	{ 0, "trace", NULL },
	{ 'l', "lcores", "lcores" },
	{ 'c', "coremask", "lcores" },
	{ 'm', "memory-size", "memory" },
	{ 0, "socket-mem", "memory" },
	{ 0, "numa-mem", "memory" },
	{ 0, "socket-limit", "memory limit" },
	{ 0, "numa-limit", "memory limit" },
	{ 'n', "memory-channels", "memory channels" },
	{ 'r', "memory-ranks", "memory ranks" },
	{ 's', "service-coremask", "service lcores" },
	{ 'S', "service-corelist", "service lcores" },
	{ 'R', "remap-lcore-ids", "remapped lcores" },
	{ 0, "telemetry", "telemetry" },
	{ 0, "no-telemetry", "telemetry" },
};

static bool
is_long_option(const char *word)
{
	return strncmp(word, "--", 2) == 0;
}

/* The row of an option, with or without a value: --lcores=0, -l0; -1: none. */
static int
find_option(const char *word)
{
	size_t len = strcspn(word, "="), i;

	for (i = 0; i < RTE_DIM(options); i++)
		if (is_long_option(word) ? strlen(options[i].name) == len - 2 &&
					strncmp(options[i].name, word + 2, len - 2) == 0
					 : options[i].letter != 0 && options[i].letter == word[1])
			return (int)i;
	return -1;
}

static bool
same_role(const char *a, const char *b)
{
	int i = find_option(a), j = find_option(b);
	size_t len = strcspn(a, "=");

	if (i >= 0 && j >= 0)
		return options[i].role != NULL && options[j].role != NULL &&
			strcmp(options[i].role, options[j].role) == 0;
	if (i >= 0 || j >= 0 || is_long_option(a) != is_long_option(b))
		return false;
	if (!is_long_option(a))
		return a[1] == b[1];
	return strcspn(b, "=") == len && strncmp(a, b, len) == 0;
}

static bool
has_value(const char *option)
{
	return is_long_option(option) ? strchr(option, '=') != NULL : strlen(option) > 2;
}

static void
remove_role(struct eal_args *a, const char *option)
{
	int i, kept = 1;

	for (i = 1; i < a->argc; i++) {
		if (same_role(a->argv[i], option))
			free(a->argv[i]);
		else
			a->argv[kept++] = a->argv[i];
	}
	a->argc = kept;
	a->argv[kept] = NULL;
}

static int __attribute__((format(printf, 2, 3)))
eal_arg_add(struct eal_args *a, const char *fmt, ...)
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

/*
 * Add a word of the user: an option, which replaces an earlier one, or the value of the option
 * before.
 */
static int
add_word(struct eal_args *a, const char *word, struct error *err)
{
	char *option = a->argv[a->argc - 1];
	int ret;

	if (word[0] == '-') {
		remove_role(a, word);
		if (find_option(word) == find_option("--allow")) { /* so the PCI bus is needed */
			remove_role(a, "--no-pci");
			remove_role(a, "--iova-mode");
		}
		a->last_is_users = true;
		return eal_arg_add(a, "%s", word);
	}
	if (!a->last_is_users || has_value(option))
		return error_set(err, EINVAL,
			"eal: got \"%.64s\", allowed: an option of DPDK's EAL, such as --file-prefix=NAME",
			word);
	a->argv[--a->argc] = NULL;
	ret = eal_arg_add(a, is_long_option(option) ? "%s=%s" : "%s%s", option, word);
	free(option);
	return ret;
}

static unsigned int
eal_worker_count(const struct config *c, unsigned int cpus)
{
	if (c->workers > 0)
		return c->workers;
	return RTE_MAX(1u, RTE_MIN(c->num_ports, cpus));
}

/* "0@(0,1),1@0,2@1" for two workers on CPUs 0 and 1. CPUs near the network cards come first. */
static int
add_lcores(struct eal_args *a, const struct config *c)
{
	unsigned int cpu[CPU_SETSIZE], n = 0, i, workers;
	size_t size, len = 0;
	cpu_set_t set;
	char *text;
	int ret;

	if (c->lcores[0] != '\0')
		return eal_arg_add(a, "--lcores=%s", c->lcores);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	workers = eal_worker_count(c, n);
	size = 16 * (n + workers + 1);
	text = malloc(size);
	if (text == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%u", i == 0 ? "0@(" : ",",
			cpu[i]);
	len += (size_t)snprintf(text + len, size - len, ")");
	numa_order_cpus(c, "/sys", cpu, n);
	for (i = 0; i < workers; i++)
		len += (size_t)snprintf(text + len, size - len, ",%u@%u", i + 1, cpu[i % n]);
	ret = eal_arg_add(a, "--lcores=%s", text);
	free(text);
	return ret;
}

static int
add_memory(struct eal_args *a, const struct config *c)
{
	unsigned int mb = c->memory_mb;
	int ret = 0;

	/*
	 * without files, nothing is left behind by kill -9; without hugepages, the EAL rejects
	 * --in-memory
	 */
	if (c->hugepages && !c->multi_process)
		ret |= eal_arg_add(a, "--in-memory");
	if (!c->hugepages) {
		ret |= eal_arg_add(a, "--no-huge");
		ret |= eal_arg_add(a, "--no-shconf");
		if (mb == 0)
			mb = PLAIN_MB_BASE + PLAIN_MB_PORT * c->num_ports +
				PLAIN_MB_WORKER * eal_worker_count(c, CPU_SETSIZE);
	}
	if (mb > 0)
		ret |= eal_arg_add(a, "-m%u", mb);
	return ret;
}

static int
add_devices(struct eal_args *a, const struct config *c)
{
	unsigned int i, pci = 0;
	int ret = 0;

	for (i = 0; i < c->num_ports; i++) {
		if (!pci_address_parse(c->port[i].device, NULL))
			continue;
		ret |= eal_arg_add(a, "-a%s", c->port[i].device);
		pci++;
	}
	if (pci > 0)
		return ret;
	ret |= eal_arg_add(a, "--no-pci");
	/* no card needs physical addresses, which only root can ask the kernel for */
	if (c->hugepages)
		ret |= eal_arg_add(a, "--iova-mode=va");
	return ret;
}

static int
add_extra(struct eal_args *a, const char *extra, struct error *err)
{
	char *word;
	int ret = 0;
	size_t n;

	while (ret == 0 && extra != NULL && *(extra += strspn(extra, " \t")) != '\0') {
		n = strcspn(extra, " \t");
		word = strndup(extra, n);
		ret = word != NULL ? add_word(a, word, err) : -ENOMEM;
		free(word);
		extra += n;
	}
	return ret;
}

static int
add_defaults(struct eal_args *a, const struct config *c)
{
	int ret;

	ret = eal_arg_add(a, "polca");
	ret |= eal_arg_add(a, "--log-level=lib.eal:notice");
	ret |= eal_arg_add(a, "--log-level=lib.telemetry:error");
	ret |= eal_arg_add(a, "--file-prefix=%s", c->file_prefix);
	ret |= add_lcores(a, c);
	ret |= add_memory(a, c);
	ret |= add_devices(a, c);
	return ret == 0 ? 0 : -ENOMEM;
}

int
eal_args(const struct config *c, const char *extra, struct eal_args *a, struct error *err)
{
	unsigned int i;
	int ret;

	memset(a, 0, sizeof(*a));
	ret = add_defaults(a, c);
	for (i = 0; i < c->num_args && ret == 0; i++)
		ret = add_word(a, c->arg[i].text, err);
	if (ret == 0)
		ret = add_extra(a, extra, err);
	if (ret == 0)
		return 0;
	eal_args_free(a);
	if (ret == -EINVAL)
		return ret;
	return error_set(err, -ret, "eal: no memory, or more than %zu arguments", RTE_DIM(a->argv));
}

const char *
eal_arg_value(const struct eal_args *a, const char *option)
{
	const char *arg;
	int i;

	for (i = a->argc - 1; i > 0; i--) {
		arg = a->argv[i];
		if (same_role(arg, option) && has_value(arg))
			return is_long_option(arg) ? strchr(arg, '=') + 1 : arg + 2;
	}
	return NULL;
}

void
eal_args_free(struct eal_args *a)
{
	while (a->argc > 0)
		free(a->argv[--a->argc]);
}
