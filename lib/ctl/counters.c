/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>

#include "ctl/counters.h"
#include "engine/verbs_cm.h"
#include "engine/verbs_mad.h"

static uint64_t
counter_at(const void *counters, size_t offset)
{
	return counters != NULL ? *(const uint64_t *)((const char *)counters + offset) : 0;
}

#define PORT_COUNTER(field) offsetof(struct link_counters, field)

static const struct {
	const char *name;
	size_t offset;
	const char *help;
} port_counters[] = {
	{ "rx_packets", PORT_COUNTER(rx_packets), "packets received" },
	{ "rx_bytes", PORT_COUNTER(rx_bytes), "bytes received, with the Ethernet header" },
	{ "tx_packets", PORT_COUNTER(tx_packets), "packets sent" },
	{ "tx_bytes", PORT_COUNTER(tx_bytes), "bytes sent, with the Ethernet header" },
	{ "tx_no_mbuf", PORT_COUNTER(tx_no_mbuf), "packets not sent: no buffer" },
	{ "tx_full", PORT_COUNTER(tx_full), "packets not sent: the queue stayed full" },
	{ "tx_unresolved", PORT_COUNTER(tx_unresolved),
		"packets not sent: the next hop's MAC is not known yet" },
	{ "tx_port_state", PORT_COUNTER(tx_port_state),
		"native InfiniBand: packets not sent: the port is not Active, or the SL has no VL" },
	{ "tx_flooded", PORT_COUNTER(tx_flooded),
		"native InfiniBand: packets broadcast, because no route to the LID is known" },
	{ "lid_moved", PORT_COUNTER(lid_moved),
		"native InfiniBand: times a LID was heard from another MAC" },
	{ "port_unreachable", PORT_COUNTER(port_unreachable),
		"ICMP port unreachable for RoCE packets: a kernel holds the peer's address, or ours" },
	{ "neighbour_moved", PORT_COUNTER(neighbour_moved),
		"neighbours that moved to another MAC, the old one being silent" },
	{ "neighbour_kept", PORT_COUNTER(neighbour_kept),
		"claims to a neighbour's address refused, because its MAC answered" },
	{ "rx_missed", PORT_COUNTER(drops.rx_missed),
		"packets the device dropped: its receive queue was full" },
	{ "rx_errors", PORT_COUNTER(drops.rx_errors), "damaged packets the device dropped" },
	{ "rx_nombuf", PORT_COUNTER(drops.rx_nombuf), "times the device had no buffer to receive" },
};

void
counters_port(const struct link_counters *c, counter_fn fn, void *arg)
{
	unsigned int i;

	for (i = 0; i < sizeof(port_counters) / sizeof(port_counters[0]); i++)
		fn(arg, port_counters[i].name, port_counters[i].help,
			counter_at(c, port_counters[i].offset));
}

void
counters_verdicts(const struct link_counters *c, int kind, counter_fn fn, void *arg)
{
	unsigned int v;

	for (v = 0; v < VERDICT_COUNT; v++)
		if (kind < 0 || (int)verdict_infos[v].kind == kind)
			fn(arg, verdict_infos[v].name, verdict_infos[v].help,
				counter_at(c, PORT_COUNTER(verdict[v])));
}

/* of struct clients_counters */
static const struct {
	const char *name;
	const char *help;
} clients_counter_infos[CLIENTS_COUNTER_COUNT] = {
	{ "opened", "devices that programs have opened" },
	{ "posted", "work requests taken from programs" },
	{ "completed", "completions given to programs" },
	{ "refused", "connections and requests of programs that a limit refused" },
};

/* A structure of counters with a table of their names and helps, in the same order */
#define COUNTERS(kind, count)                                                                      \
	void counters_##kind(const struct kind##_counters *c, counter_fn fn, void *arg)            \
	{                                                                                          \
		unsigned int i;                                                                    \
                                                                                                   \
		for (i = 0; i < (count); i++)                                                      \
			fn(arg, kind##_counter_infos[i].name, kind##_counter_infos[i].help,        \
				counter_at(c, i * sizeof(uint64_t)));                              \
	}

COUNTERS(rc, RC_COUNTER_COUNT)
COUNTERS(mad, MAD_COUNTER_COUNT)
COUNTERS(sa, SA_COUNTER_COUNT)
COUNTERS(sma, SMA_COUNTER_COUNT)
COUNTERS(live, LIVE_COUNTER_COUNT)
COUNTERS(svc, SVC_COUNTER_COUNT)
COUNTERS(clients, CLIENTS_COUNTER_COUNT)

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
	const struct cm_array *a;
	char name[CM_NAME_MAX], help[128];
	unsigned int i;
	uint64_t value;

	for (i = 0; i < CM_COUNTER_COUNT; i++)
		fn(arg, cm_counter_infos[i].name, cm_counter_infos[i].help,
			counter_at(c, i * sizeof(uint64_t)));
	for (a = cm_arrays; a < cm_arrays + CM_ARRAYS; a++)
		for (i = 0; i < a->count; i++) {
			value = counter_at(c, a->offset + i * sizeof(uint64_t));
			if (c != NULL && a->nonzero && value == 0)
				continue;
			snprintf(help, sizeof(help), "%s%s%s", a->help, a->name(i),
				a->nonzero ? "; shown when it is not 0" : "");
			fn(arg, cm_counter_name(a, i, name), help, value);
		}
}

/* --- those of an engine --- */

void
counters_read(struct engine *e, enum counter_set set, int port, int worker, counter_fn fn,
	void *arg)
{
	struct link_counters link = { 0 };
	struct live_counters live = { 0 };
	struct mad_counters mad = { 0 };
	struct sma_counters sma = { 0 };
	struct rc_counters rc = { 0 };
	struct sa_counters sa = { 0 };
	struct cm_counters cm = { 0 };
	struct clients_counters clients;

	switch (set) {
	case COUNTERS_PORT:
	case COUNTERS_SERVED:
	case COUNTERS_DROPPED:
		engine_port_counters(e, (unsigned int)port, worker, &link);
		if (set == COUNTERS_PORT)
			counters_port(&link, fn, arg);
		else
			counters_verdicts(&link,
				set == COUNTERS_SERVED ? VERDICT_SERVED : VERDICT_DROPPED, fn, arg);
		break;
	case COUNTERS_RC:
		engine_rc_counters(e, port, worker, &rc);
		counters_rc(&rc, fn, arg);
		break;
	case COUNTERS_MAD:
		engine_mad_counters(e, worker, &mad);
		counters_mad(&mad, fn, arg);
		break;
	case COUNTERS_SA:
		engine_sa_counters(e, worker, &sa);
		counters_sa(&sa, fn, arg);
		break;
	case COUNTERS_SMA:
		engine_sma_counters(e, (unsigned int)port, &sma);
		counters_sma(&sma, fn, arg);
		break;
	case COUNTERS_LIVE:
		engine_live_counters(e, worker, &live);
		counters_live(&live, fn, arg);
		break;
	case COUNTERS_CM:
		engine_cm_counters(e, worker, &cm);
		counters_cm(&cm, fn, arg);
		break;
	case COUNTERS_CLIENTS:
		engine_clients_counters(e, &clients);
		counters_clients(&clients, fn, arg);
		break;
	}
}
