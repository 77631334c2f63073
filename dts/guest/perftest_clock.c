/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A clock for perftest's calibration, preloaded into its programs.
 *
 * perftest measures the TSC cycles per microsecond: 200 times it waits for gettimeofday() to
 * advance, and reads the TSC before and after. It reports nothing ("Can't produce a report") if the
 * two correlate badly. This happens on an emulated CPU if the host deschedules it between the
 * readings of the two clocks.
 *
 * get_cpu_mhz() calls gettimeofday() for this only, and then opens /proc/cpuinfo. In between, both
 * clocks are one counter here: gettimeofday() advances it, and RDTSC traps and reads it, at the
 * rate that /proc/cpuinfo names. perftest's own measurements use the real TSC.
 *
 * Only the very first reading, before the first gettimeofday(), is of the real TSC. 5 ms between
 * the two make the calibration fail, and the dynamic linker and an emulator that translates each
 * instruction for the first time take that long. So the programs are linked completely at their
 * start (LD_BIND_NOW), and the constructor makes a calibration's calls once.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <ucontext.h>

#define STEP_US 5 /* simulated duration of a gettimeofday() call */

typedef FILE *(*fopen_fn)(const char *path, const char *mode);

static double cycles_per_us;
static uint64_t base_cycles, elapsed_us;
static int calibrating;

/* The C library's fopen(). Other libraries' constructors call fopen() before our own would run. */
static fopen_fn
next_fopen(void)
{
	static fopen_fn found;

	if (found == NULL)
		found = (fopen_fn)dlsym(RTLD_NEXT, "fopen");
	return found;
}

static uint64_t
read_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static void
emulate_rdtsc(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t cycles = base_cycles + (uint64_t)((double)elapsed_us * cycles_per_us);
	const uint8_t *code = (const uint8_t *)regs[REG_RIP];

	(void)info;
	if (calibrating && memcmp(code, "\x0f\x31", 2) == 0) {
		regs[REG_RIP] += 2;
	} else if (calibrating &&
		memcmp(code, "\x0f\x01\xf9", 3) == 0) { /* RDTSCP, of the vDSO's clocks */
		regs[REG_RCX] = 0;
		regs[REG_RIP] += 3;
	} else {
		signal(number, SIG_DFL); /* a real fault: let it happen again */
		return;
	}
	regs[REG_RAX] = (greg_t)(cycles & UINT32_MAX);
	regs[REG_RDX] = (greg_t)(cycles >> 32);
}

static double
nominal_mhz(void)
{
	FILE *f = next_fopen()("/proc/cpuinfo", "r");
	char line[256];
	double mhz = 0;

	while (f != NULL && mhz == 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "cpu MHz : %lf", &mhz) != 1)
			mhz = 0;
	if (f != NULL)
		fclose(f);
	return mhz;
}

static void
begin_calibration(void)
{
	struct sigaction action = { .sa_sigaction = emulate_rdtsc, .sa_flags = SA_SIGINFO };

	base_cycles = read_tsc();
	elapsed_us = 0;
	calibrating = 1;
	if (cycles_per_us == 0)
		cycles_per_us = nominal_mhz();
	if (sigaction(SIGSEGV, &action, NULL) != 0 || prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
		abort();
}

static void
end_calibration(void)
{
	calibrating = 0;
	if (prctl(PR_SET_TSC, PR_TSC_ENABLE) != 0)
		abort();
	signal(SIGSEGV, SIG_DFL);
}

int
gettimeofday(struct timeval *tv, void *zone)
{
	(void)zone;
	if (!calibrating)
		begin_calibration();
	elapsed_us += STEP_US;
	tv->tv_sec = (time_t)(elapsed_us / 1000000);
	tv->tv_usec = (suseconds_t)(elapsed_us % 1000000);
	return 0;
}

FILE *
fopen(const char *path, const char *mode)
{
	if (calibrating && strcmp(path, "/proc/cpuinfo") == 0)
		end_calibration();
	return next_fopen()(path, mode);
}

__attribute__((constructor)) static void
rehearse(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	read_tsc();
	end_calibration();
}
