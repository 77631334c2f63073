/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Liveness: one agent per worker. The name and the CPUs of this host are read once; the time of day
 * is set at each tick (liveness 2: at least fifteen times a second).
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/live_agent.h"

#define NO_DOMAIN "(none)"

/* --- this host --- */

/* "key<blanks>: value" of /proc/cpuinfo; the value, or NULL. */
static const char *
live_agent_value_of(const char *line, const char *key)
{
	const char *colon;

	if (strncmp(line, key, strlen(key)) != 0)
		return NULL;
	colon = strchr(line, ':');
	return colon != NULL ? colon + 1 + strspn(colon + 1, " \t") : NULL;
}

static void
live_agent_copy_value(char *to, size_t size, const char *value)
{
	if (value != NULL)
		snprintf(to, size, "%.*s", (int)strcspn(value, "\n"), value);
}

static void
live_agent_read_cpus(struct engine *e, FILE *f)
{
	struct live_cpu *cpu = NULL;
	char line[1024];

	while (fgets(line, sizeof(line), f) != NULL) {
		if (live_agent_value_of(line, "processor") != NULL) {
			if (e->num_cpus == LIVE_CPUS_MAX)
				return;
			cpu = &e->cpu[e->num_cpus++];
		}
		if (cpu == NULL)
			continue;
		live_agent_copy_value(cpu->model, sizeof(cpu->model),
			live_agent_value_of(line, "model name"));
		live_agent_copy_value(cpu->mhz, sizeof(cpu->mhz),
			live_agent_value_of(line, "cpu MHz"));
	}
}

int
live_agent_host_create(struct engine *e, struct error *err)
{
	FILE *f;

	e->cpu = mem_zalloc(&allocator_malloc, LIVE_CPUS_MAX * sizeof(*e->cpu), 0);
	if (e->cpu == NULL)
		return error_set(err, ENOMEM, "no memory for what ibsysstat tells of this host");
	f = fopen("/proc/cpuinfo", "r");
	if (f == NULL)
		return 0; /* the agents report no CPUs */
	live_agent_read_cpus(e, f);
	fclose(f);
	return 0;
}

void
live_agent_host_destroy(struct engine *e)
{
	mem_free(&allocator_malloc, e->cpu);
	e->cpu = NULL;
}

/* "host.domain", as ibping's server reports it (liveness 3). */
static void
live_agent_host_name(char *name, size_t size)
{
	char host[LIVE_HOST_MAX / 2] = "", domain[LIVE_HOST_MAX / 2 - 1] = "";

	gethostname(host, sizeof(host) - 1);
	if (getdomainname(domain, sizeof(domain) - 1) != 0 || strcmp(domain, NO_DOMAIN) == 0)
		domain[0] = '\0';
	snprintf(name, size, "%s%s%s", host, domain[0] != '\0' ? "." : "", domain);
}

/* --- the agent --- */

int
live_agent_create(struct worker *w, struct error *err)
{
	const struct engine *e = w->engine;
	struct live_config config = {
		.mad = w->mad,
		.alloc = e->alloc,
		.rng = &rng_kernel,
		.hz = e->hz,
		.limits = e->config.live,
		.port = worker_port,
		.port_arg = w,
		.cpu = e->cpu,
		.num_cpus = e->num_cpus,
	};

	live_agent_host_name(config.host, sizeof(config.host));
	w->live = live_create(&config);
	return w->live != NULL
		? 0
		: error_set(err, ENOMEM,
			  "no memory for %u sources of liveness requests on worker %u: lower live.sources",
			  config.limits.sources, w->id);
}

void
live_agent_destroy(struct worker *w)
{
	if (w->live != NULL)
		live_destroy(w->live);
	w->live = NULL;
}

void
live_agent_tick(struct worker *w, uint64_t now)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	live_set_clock(w->live, now,
		(uint32_t)(ts.tv_sec % 86400) * 1000 + (uint32_t)(ts.tv_nsec / 1000000));
}
