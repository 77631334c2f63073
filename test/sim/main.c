/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/common_case.h"

#include "coverage.h"
#include "fleet_sim.h"
#include "script.h"

struct options {
	uint64_t seeds;
	uint64_t first;
	const char *scenario;
	bool one; /* --seed: only this seed, with all details */
	unsigned int jobs;
	bool both_ways;
	bool verbose;
	bool record;
};

static void
usage(FILE *out)
{
	fprintf(out,
		"usage: polca-sim [--seeds N] [--seed S] [--scenario NAME] [--jobs N] [--both-ways] [--record]\n"
		"                 [--appliances N] [--verbose]\n"
		"\n"
		"Run the transport, subnet administration and connections on a virtual clock under seeded scripts\n"
		"and check every completion, every byte and every record against a model. The same seed gives the same\n"
		"trace.\n"
		"\n"
		"  --seeds N         run seeds 1..N (default 200); fails if together they miss anything the code can do\n"
		"  --seed S          run this seed only and print its trace\n"
		"  --scenario NAME   this scenario instead of the one the seed picks\n"
		"  --jobs N          processes (default: one per CPU)\n"
		"  --record          with --seed: record the steps of queue pairs from the start, for a failed assertion\n"
		"  --both-ways       run each seed again without the common cases: its trace must be the same\n"
		"                    (needs a build with -Dchecks=true)\n"
		"  --appliances N    of the scenarios fleet... (default 3)\n"
		"  --verbose         what was reached, and how often\n"
		"\n"
		"scenarios:\n");
	for (unsigned int i = 0; i < num_scenarios; i++)
		fprintf(out, "  %-16s  %s\n", scenarios[i].name, scenarios[i].what);
}

static const struct scenario *
main_pick(uint64_t seed, const char *name)
{
	unsigned int sum = 0, k;

	for (unsigned int i = 0; i < num_scenarios; i++) {
		if (name != NULL && strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
		sum += scenarios[i].weight;
	}
	if (name != NULL)
		return NULL;
	k = (unsigned int)(seed % sum);
	for (unsigned int i = 0;; i++) {
		if (k < scenarios[i].weight)
			return &scenarios[i];
		k -= scenarios[i].weight;
	}
}

/*
 * Run a failed seed again, now with recording, which the first run is without because recorded QPs
 * leave the common cases: it prints the last steps of every QP.
 */
static void
run_recorded(uint64_t seed, const struct scenario *sc)
{
	struct coverage scratch = { 0 };
	struct sim *s = sim_create(seed, &scratch, false);

	printf("    the last steps of its queue pairs:\n");
	s->record = true;
	sc->run(s);
	script_end(s);
	if (!s->failed)
		printf("    none: with recording the seed passes\n");
	sim_destroy(s);
}

/* @return true if the seed passes */
static bool
run_seed(uint64_t seed, const char *name, struct coverage *coverage, bool verbose, bool record,
	uint64_t *trace)
{
	const struct scenario *sc = main_pick(seed, name);
	struct sim *s = sim_create(seed, coverage, verbose);
	bool ok;

	s->record = record;
	sc->run(s);
	script_end(s);
	ok = !s->failed;
	*trace = s->trace;
	if (!ok)
		printf("seed %llu (%s): %s\n    replay: polca-sim --seed %llu --scenario %s\n",
			(unsigned long long)seed, sc->name, s->why, (unsigned long long)seed,
			sc->name);
	sim_destroy(s);
	if (!ok && !record)
		run_recorded(seed, sc);
	return ok;
}

/* @return true if the seed's second run has this trace too */
static bool
same_again(const struct options *o, uint64_t seed, bool record, uint64_t trace, const char *differ)
{
	struct coverage scratch = { 0 };
	uint64_t again;

	run_seed(seed, o->scenario, &scratch, false, record, &again);
	if (again == trace)
		return true;
	printf("seed %llu (%s): %s differ\n", (unsigned long long)seed,
		main_pick(seed, o->scenario)->name, differ);
	return false;
}

#ifdef RTE_ENABLE_ASSERT
#define HAS_SWITCH true

static bool
same_without_common_cases(const struct options *o, uint64_t seed, uint64_t trace)
{
	bool was = general_case, same;

	general_case = !was;
	same = same_again(o, seed, false, trace, "the runs with and without common cases");
	general_case = was;
	return same;
}
#else
#define HAS_SWITCH                                false
#define same_without_common_cases(o, seed, trace) true
#endif

/* Job number `job` runs every o->jobs-th seed, and writes its coverage into a pipe. */
static int
run_job(const struct options *o, unsigned int job, int out)
{
	struct coverage c = { 0 };
	uint64_t bad = 0;

	for (uint64_t i = job; i < o->seeds; i += o->jobs) {
		uint64_t seed = o->first + i, trace;

		bad += !run_seed(seed, o->scenario, &c, false, false, &trace);
		/* the same seed gives the same trace, and recording of steps changes nothing */
		if (i % 64 == 0)
			bad += !same_again(o, seed, true, trace, "two runs");
		if (o->both_ways)
			bad += !same_without_common_cases(o, seed, trace);
	}
	fflush(stdout);
	if (write(out, &c, sizeof(c)) != sizeof(c) || write(out, &bad, sizeof(bad)) != sizeof(bad))
		return 1;
	return 0;
}

static bool
read_all(int fd, void *buf, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = read(fd, (char *)buf + got, len - got);

		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

/* Report coverage; a scenario run by name must reach only its own part. */
static unsigned int
main_report(const struct options *o, const struct coverage *sum)
{
	if (o->scenario == NULL)
		return coverage_report(sum, o->verbose);
	if (strcmp(o->scenario, "cm") == 0)
		return coverage_report_cm(sum, o->verbose);
	if (strcmp(o->scenario, "rehome") == 0)
		return coverage_report_rehome(sum, o->verbose);
	return coverage_report_light(sum, o->verbose);
}

static int
run_all(const struct options *o)
{
	struct coverage sum = { 0 };
	uint64_t bad = 0;
	int fds[64];
	pid_t pids[64];

	for (unsigned int j = 0; j < o->jobs; j++) {
		int p[2];

		if (pipe(p) < 0)
			return 1;
		fflush(stdout);
		pids[j] = fork();
		if (pids[j] < 0)
			return 1;
		if (pids[j] == 0) {
			close(p[0]);
			/* not _exit(): a coverage build writes its counters */
			exit(run_job(o, j, p[1]));
		}
		close(p[1]);
		fds[j] = p[0];
	}
	for (unsigned int j = 0; j < o->jobs; j++) {
		struct coverage c;
		uint64_t b;
		int status;

		if (read_all(fds[j], &c, sizeof(c)) && read_all(fds[j], &b, sizeof(b))) {
			coverage_add(&sum, &c);
			bad += b;
		} else {
			printf("job %u died; run with --jobs 1 or under a debugger\n", j);
			bad++;
		}
		waitpid(pids[j], &status, 0);
	}
	bad += main_report(o, &sum);
	printf("%llu seeds, %s\n", (unsigned long long)o->seeds, bad ? "FAILED" : "all hold");
	return bad != 0;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "scenario", required_argument, NULL, 'c' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "record", no_argument, NULL, 'r' },
		{ "both-ways", no_argument, NULL, 'b' },
		{ "appliances", required_argument, NULL, 'a' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct options o = { .seeds = 200, .first = 1, .jobs = cpus > 0 ? (unsigned int)cpus : 1 };
	struct coverage c = { 0 };
	uint64_t trace;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (opt) {
		case 'n':
			o.seeds = strtoull(optarg, NULL, 0);
			break;
		case 's':
			o.first = strtoull(optarg, NULL, 0);
			o.one = true;
			break;
		case 'c':
			o.scenario = optarg;
			break;
		case 'j':
			o.jobs = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'a':
			fleet_appliances = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'r':
			o.record = true;
			break;
		case 'b':
			o.both_ways = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc || o.jobs < 1 || o.jobs > 64 || fleet_appliances < 1 ||
		fleet_appliances > FLEET_APPS_MAX || main_pick(o.first, o.scenario) == NULL) {
		usage(stderr);
		return 2;
	}
	if (o.both_ways && !HAS_SWITCH) {
		fprintf(stderr,
			"--both-ways: this build cannot turn the common cases off; "
			"configure it with -Dchecks=true\n");
		return 2;
	}
	if (o.one)
		return !run_seed(o.first, o.scenario, &c, true, o.record, &trace) ||
			(o.both_ways && !same_without_common_cases(&o, o.first, trace));
	return run_all(&o);
}
