/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Start the EAL with the resources a run needs. DPDK's messages are hidden; failures are reported
 * in one sentence of ours.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "base/eal_host.h"
#include "command.h"

#define MIB         (UINT64_C(1) << 20)
#define EAL_ARGS    16
#define HUGE_SPARE  8 /* pages that the EAL's heap may lose at its ends */
#define LCORES_TEXT 512

static uint64_t eal_bytes;
static bool eal_huge;
static char eal_lcores[LCORES_TEXT];
static char dpdk_words[512];

bool
bench_eal_huge(void)
{
	return eal_huge;
}

uint64_t
bench_eal_bytes(void)
{
	return eal_bytes;
}

static uint64_t
free_huge_bytes(uint64_t page)
{
	char path[96];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%lukB/free_hugepages",
		page >> 10);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n > HUGE_SPARE ? (n - HUGE_SPARE) * page : 0;
}

static unsigned int
allowed_cpus(unsigned int *cpu)
{
	unsigned int i, n = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_ZERO(&set);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n == 0)
		cpu[n++] = 0;
	return n;
}

/*
 * Without workers, the main lcore 0 does everything, and lcore 1 exists only because the engine
 * asks for one. Otherwise lcore 0 shares the first CPU and sleeps, and each worker gets a CPU of
 * its own while there are any.
 */
static void
bench_eal_lcore_option(const struct eal_wish *wish, char *text, size_t size)
{
	unsigned int cpu[CPU_SETSIZE], n = allowed_cpus(cpu), i;
	unsigned int engines = RTE_MAX(wish->workers, 1u);
	size_t len, said;

	len = (size_t)snprintf(text, size, "--lcores=0@%u", cpu[wish->first_cpu % n]);
	said = (size_t)snprintf(eal_lcores, sizeof(eal_lcores), "%u on CPU", engines);
	for (i = 0; i < engines && len < size && said < sizeof(eal_lcores); i++) {
		unsigned int on = cpu[(wish->first_cpu + i) % n];

		len += (size_t)snprintf(text + len, size - len, ",%u@%u", i + 1, on);
		said += (size_t)snprintf(eal_lcores + said, sizeof(eal_lcores) - said, " %u", on);
	}
}

const char *
bench_eal_lcores(void)
{
	return eal_lcores;
}

/* Keep DPDK's error messages while there is room: the first ones name the cause. */
static ssize_t
keep_log_line(void *cookie, const char *text, size_t len)
{
	size_t at = strlen(dpdk_words);

	RTE_SET_USED(cookie);
	snprintf(dpdk_words + at, sizeof(dpdk_words) - at, "%.*s", (int)len, text);
	return (ssize_t)len;
}

static void
listen_to_dpdk(void)
{
	const cookie_io_functions_t io = { .write = keep_log_line };
	FILE *log = fopencookie(NULL, "w", io);

	if (log == NULL)
		return;
	setvbuf(log, NULL, _IOLBF, 0);
	rte_openlog_stream(log);
}

const char *
bench_eal_log(void)
{
	return dpdk_words;
}

/* Hide stderr: the EAL writes some messages there at any log level. */
static int
silent_init(int argc, char **argv)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	int ret;

	if (nowhere >= 0 && kept >= 0)
		dup2(nowhere, STDERR_FILENO);
	ret = rte_eal_init(argc, argv);
	if (nowhere >= 0 && kept >= 0)
		dup2(kept, STDERR_FILENO);
	if (nowhere >= 0)
		close(nowhere);
	if (kept >= 0)
		close(kept);
	return ret;
}

static int
bench_eal_failed(const struct bench_options *o, uint64_t bytes, struct error *err)
{
	if (eal_explain_host(err) != 0)
		return -ENOENT;
	if (eal_huge)
		return error_set(err, ENOMEM,
			"DPDK does not start with %lu MiB of hugepages (%s): give --no-huge, or free some",
			bytes / MIB, rte_strerror(rte_errno));
	return error_set(err, ENOMEM,
		"DPDK does not start with %lu MiB of memory (%s): ask for "
		"fewer queue pairs (now %u) or less depth (now %u)",
		bytes / MIB, rte_strerror(rte_errno), o->qps, o->depth);
}

/* Fail now: otherwise the kernel would hand out pages until its OOM killer ends a process. */
static int
check_fits(const struct bench_options *o, uint64_t bytes, struct error *err)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	if (bytes <= all)
		return 0;
	return error_set(err, ENOMEM,
		"%lu MiB of memory are needed, this machine has %lu: ask for "
		"fewer queue pairs (now %u) or less depth (now %u)",
		bytes / MIB, all / MIB, o->qps, o->depth);
}

int
bench_eal_start(const struct bench_options *o, const struct eal_wish *wish, struct error *err)
{
	/* static: the EAL keeps pointers to its arguments */
	static char fixed[][32] = { "polca-bench", "--no-telemetry", "--no-shconf",
		"--log-level=error" };
	static char cores[LCORES_TEXT], memory[32], prefix[48], pci[64] = "--no-pci";
	static char in_memory[] = "--in-memory", plain[] = "--no-huge";
	static char single_file[] = "--single-file-segments";
	char *argv[EAL_ARGS];
	int argc = 0;
	unsigned int i;

	eal_huge = o->hugepages && free_huge_bytes(2 * MIB) >= wish->bytes;
	if (wish->share_memory && !eal_huge)
		return error_set(err, ENOMEM,
			"%s needs %lu MiB of free hugepages; there are %lu: "
			"sysctl vm.nr_hugepages=N, N pages of 2 MiB",
			o->link, wish->bytes / MIB, free_huge_bytes(2 * MIB) / MIB);
	if (!eal_huge && check_fits(o, wish->bytes, err) != 0)
		return -ENOMEM;
	eal_bytes = RTE_ALIGN_CEIL(wish->bytes, 2 * MIB);
	bench_eal_lcore_option(wish, cores, sizeof(cores));
	snprintf(memory, sizeof(memory), "-m%lu", eal_bytes / MIB);
	snprintf(prefix, sizeof(prefix), "--file-prefix=polca-bench-%d", getpid());
	for (i = 0; i < RTE_DIM(fixed); i++)
		argv[argc++] = fixed[i];
	if (options_pci(o))
		snprintf(pci, sizeof(pci), "--allow=%.48s", o->link);
	argv[argc++] = pci;
	argv[argc++] = cores;
	argv[argc++] = memory;
	argv[argc++] = prefix;
	argv[argc++] = eal_huge ? in_memory : plain;
	if (wish->share_memory)
		argv[argc++] = single_file;
	listen_to_dpdk();
	runtime_dir_remove_at_exit();
	if (silent_init(argc, argv) < 0)
		return bench_eal_failed(o, wish->bytes, err);
	dpdk_words[0] = '\0';
	runtime_dir_remove_stale("polca-bench");
	return 0;
}
