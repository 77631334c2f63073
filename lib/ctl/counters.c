/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stddef.h>

#include "ctl/counters.h"

static const struct {
	const char *name;
	size_t offset;
} port_counters[] = {
	{ "rx_packets", offsetof(struct link_counters, rx_packets) },
	{ "rx_bytes", offsetof(struct link_counters, rx_bytes) },
	{ "tx_packets", offsetof(struct link_counters, tx_packets) },
	{ "tx_bytes", offsetof(struct link_counters, tx_bytes) },
	{ "tx_no_mbuf", offsetof(struct link_counters, tx_no_mbuf) },
	{ "tx_full", offsetof(struct link_counters, tx_full) },
	{ "tx_unresolved", offsetof(struct link_counters, tx_unresolved) },
	{ "tx_port_state", offsetof(struct link_counters, tx_port_state) },
	{ "tx_flooded", offsetof(struct link_counters, tx_flooded) },
	{ "lid_moved", offsetof(struct link_counters, lid_moved) },
	{ "port_unreachable", offsetof(struct link_counters, port_unreachable) },
};

void
counters_port(const struct link_counters *c, counter_fn fn, void *arg)
{
	unsigned int i;

	for (i = 0; i < sizeof(port_counters) / sizeof(port_counters[0]); i++)
		fn(arg, port_counters[i].name,
			*(const uint64_t *)((const char *)c + port_counters[i].offset));
}

void
counters_verdicts(const struct link_counters *c, int kind, counter_fn fn, void *arg)
{
	unsigned int v;

	for (v = 0; v < VERDICT_COUNT; v++)
		if (kind < 0 || (int)verdict_infos[v].kind == kind)
			fn(arg, verdict_infos[v].name, c->verdict[v]);
}

void
counters_rc(const struct rc_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	unsigned int i;

	for (i = 0; i < RC_COUNTER_COUNT; i++)
		fn(arg, rc_counter_infos[i].name, value[i]);
}

void
counters_mad(const struct mad_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	unsigned int i;

	for (i = 0; i < MAD_COUNTER_COUNT; i++)
		fn(arg, mad_counter_infos[i].name, value[i]);
}

void
counters_sa(const struct sa_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	unsigned int i;

	for (i = 0; i < SA_COUNTER_COUNT; i++)
		fn(arg, sa_counter_infos[i].name, value[i]);
}

void
counters_sma(const struct sma_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	unsigned int i;

	for (i = 0; i < SMA_COUNTER_COUNT; i++)
		fn(arg, sma_counter_infos[i].name, value[i]);
}

void
counters_live(const struct live_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	unsigned int i;

	for (i = 0; i < LIVE_COUNTER_COUNT; i++)
		fn(arg, live_counter_infos[i].name, value[i]);
}
