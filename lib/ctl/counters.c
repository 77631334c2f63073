/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>

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

void
counters_svc(const struct svc_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	unsigned int i;

	for (i = 0; i < SVC_COUNTER_COUNT; i++)
		fn(arg, svc_counter_infos[i].name, value[i]);
}

/* --- connections: counters by message and by reason --- */

#define CM_NAME_MAX 64

static const struct cm_array {
	const char *prefix;
	size_t offset;
	unsigned int count;
	const char *(*name)(unsigned int i);
	bool nonzero; /* too many to show those that are 0 */
	const char *help;
} cm_arrays[] = {
	{ "received", offsetof(struct cm_counters, received), CM_MESSAGES, cm_message_name, false,
		"messages received: " },
	{ "sent", offsetof(struct cm_counters, sent), CM_MESSAGES, cm_message_name, false,
		"messages sent: " },
	{ "rej_received", offsetof(struct cm_counters, rej_received), CM_REASONS, cm_reason_name,
		true, "REJ received: " },
	{ "rej_sent", offsetof(struct cm_counters, rej_sent), CM_REASONS, cm_reason_name, true,
		"REJ sent: " },
};
#define CM_ARRAYS (sizeof(cm_arrays) / sizeof(cm_arrays[0]))

/* "rej_sent_invalid_service_id"; of a number without name its digits, of [0] "unknown" */
static const char *
cm_counter_name(const struct cm_array *a, unsigned int i, char buf[CM_NAME_MAX])
{
	const char *name = a->name(i);
	char *c;

	if (name[0] != '?')
		snprintf(buf, CM_NAME_MAX, "%s_%s", a->prefix, name);
	else if (i == 0)
		snprintf(buf, CM_NAME_MAX, "%s_unknown", a->prefix);
	else
		snprintf(buf, CM_NAME_MAX, "%s_%u", a->prefix, i);
	for (c = buf; *c != '\0'; c++)
		*c = *c == ' ' ? '_' : (char)tolower((unsigned char)*c);
	return buf;
}

void
counters_cm(const struct cm_counters *c, counter_fn fn, void *arg)
{
	const uint64_t *value = (const uint64_t *)c;
	const struct cm_array *a;
	char name[CM_NAME_MAX];
	unsigned int i;

	for (i = 0; i < CM_COUNTER_COUNT; i++)
		fn(arg, cm_counter_infos[i].name, value[i]);
	for (a = cm_arrays; a < cm_arrays + CM_ARRAYS; a++) {
		value = (const uint64_t *)((const char *)c + a->offset);
		for (i = 0; i < a->count; i++)
			if (!a->nonzero || value[i] != 0)
				fn(arg, cm_counter_name(a, i, name), value[i]);
	}
}

void
counters_cm_help(void (*fn)(void *arg, const char *name, const char *help), void *arg)
{
	const struct cm_array *a;
	char name[CM_NAME_MAX], help[128];
	unsigned int i;

	for (i = 0; i < CM_COUNTER_COUNT; i++)
		fn(arg, cm_counter_infos[i].name, cm_counter_infos[i].help);
	for (a = cm_arrays; a < cm_arrays + CM_ARRAYS; a++)
		for (i = 0; i < a->count; i++) {
			snprintf(help, sizeof(help), "%s%s%s", a->help, a->name(i),
				a->nonzero ? "; shown when it is not 0" : "");
			fn(arg, cm_counter_name(a, i, name), help);
		}
}
