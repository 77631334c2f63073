/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Verbs on the subnet management agents of our own ports. They run as commands on worker 0, except
 * those that only read counters, which any thread may do.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/verbs_mad.h"
#include "engine/verbs_private.h"

struct sma_args {
	uint16_t port;
	uint16_t trap; /* its number */
	const uint8_t *notice;
	uint32_t *cursor;
	uint32_t *id;
	struct sma_trap_info *info;
	unsigned int n;
	struct error *err;
};

bool
engine_sma_managed(const struct engine *e, unsigned int port)
{
	return port < link_num_ports(e->link) && e->config.link.port[port].ib;
}

static int
sma_check_port(const struct engine *e, unsigned int port, struct error *err)
{
	const struct port_attr *attr = known_port(e, port, err);

	if (attr == NULL)
		return -EINVAL;
	if (!engine_sma_managed(e, port))
		return error_set(err, EINVAL,
			"port: %s is no native InfiniBand port: it has no subnet management agent",
			attr->name);
	return 0;
}

static int
trap_list_here(struct worker *w, void *arg)
{
	struct sma_args *a = arg;
	uint64_t now = rte_get_tsc_cycles();
	unsigned int i = 0;

	while (i < a->n && sma_trap_next(w->sma, a->cursor, now, &a->info[i]))
		i++;
	return (int)i;
}

unsigned int
engine_trap_list(struct engine *e, uint32_t *cursor, struct sma_trap_info *info, unsigned int n)
{
	struct sma_args a = { .cursor = cursor, .info = info, .n = n };
	unsigned int got, i;

	got = e->worker[0]->sma != NULL ? (unsigned int)engine_call(e, 0, trap_list_here, &a) : 0;
	for (i = 0; i < got; i++)
		info[i].age /= RTE_MAX(e->hz / 1000000, 1u);
	return got;
}

static int
trap_send_here(struct worker *w, void *arg)
{
	const struct sma_args *a = arg;

	return sma_trap_send(w->sma, a->port, a->trap, a->notice, rte_get_tsc_cycles(), a->id,
		a->err);
}

int
engine_trap_send(struct engine *e, unsigned int port, uint16_t number, const uint8_t *notice,
	uint32_t *id, struct error *err)
{
	struct sma_args a = {
		.port = (uint16_t)port,
		.trap = number,
		.notice = notice,
		.id = id,
		.err = err,
	};
	int ret = sma_check_port(e, port, err);

	return ret != 0 ? ret : engine_call(e, 0, trap_send_here, &a);
}

static int
trap_repress_here(struct worker *w, void *arg)
{
	const struct sma_args *a = arg;

	return sma_trap_repress(w->sma, *a->id, rte_get_tsc_cycles());
}

int
engine_trap_repress(struct engine *e, uint32_t id, struct error *err)
{
	struct sma_args a = { .id = &id };
	int ret = -ENOENT;

	if (e->worker[0]->sma != NULL)
		ret = engine_call(e, 0, trap_repress_here, &a);
	return ret == 0 ? 0
			: error_set(err, -ret, "trap: there is no trap %u that is repeated", id);
}

void
engine_sma_counters(const struct engine *e, unsigned int port, struct sma_counters *c)
{
	const struct sma *s = e->worker[0]->sma;
	const struct sma_counters *from = NULL;

	memset(c, 0, sizeof(*c));
	if (s != NULL && port < link_num_ports(e->link))
		from = sma_counters(s, (uint16_t)port);
	if (from != NULL)
		add_counters(c, from, sizeof(*c));
}

void
engine_live_counters(const struct engine *e, int worker, struct live_counters *sum)
{
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < e->num_workers; i++)
		if (worker < 0 || (unsigned int)worker == i)
			add_counters(sum, live_counters(e->worker[i]->live), sizeof(*sum));
}
