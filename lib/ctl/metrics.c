/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/counters.h"
#include "ctl/fleet_fields.h"
#include "ctl/methods.h"
#include "ctl/metrics.h"
#include "engine/verbs_mad.h"
#include "engine/verbs_sa.h"

#define NAME_MAX_LEN   128
#define LABELS_MAX_LEN 256

/*
 * Prometheus wants all samples of a name together, and counters come port by port: they are
 * collected by name, in an object NAME: [head, sample, ...].
 */
struct metrics {
	json_t *families;
	const char *prefix;
	const char *labels; /* of the samples to come: port="0" */
};

/* A name that ends in _total is a counter, others are gauges. */
static bool
metric_is_counter(const char *name)
{
	size_t len = strlen(name);

	return len > 6 && strcmp(name + len - 6, "_total") == 0;
}

static void
metric_add(struct metrics *m, const char *name, const char *help, const char *labels, double value)
{
	json_t *family = json_object_get(m->families, name);
	char number[32];

	/* as Prometheus computes in doubles, counters are exact up to 2^53 */
	snprintf(number, sizeof(number), "%.17g", value);
	if (family == NULL) {
		family = json_array();
		json_object_set_new(m->families, name, family);
		json_array_append_new(family,
			json_sprintf("# HELP %s %s\n# TYPE %s %s\n", name, help, name,
				metric_is_counter(name) ? "counter" : "gauge"));
	}
	json_array_append_new(family,
		json_sprintf("%s%s%s%s %s\n", name, labels[0] != '\0' ? "{" : "", labels,
			labels[0] != '\0' ? "}" : "", number));
}

/* rx_packets of prefix polca_port_: polca_port_receive_packets_total */
static void
counter_metric(void *arg, const char *name, const char *help, uint64_t value)
{
	struct metrics *m = arg;
	char full[NAME_MAX_LEN];
	const char *way = strncmp(name, "rx_", 3) == 0 ? "receive_"
		: strncmp(name, "tx_", 3) == 0         ? "transmit_"
						       : "";

	snprintf(full, sizeof(full), "%s%s%s_total", m->prefix, way,
		way[0] != '\0' ? name + 3 : name);
	metric_add(m, full, help, m->labels, (double)value);
}

static void
verdict_metric(void *arg, const char *name, const char *help, uint64_t value)
{
	struct metrics *m = arg;
	char labels[LABELS_MAX_LEN];

	(void)help;
	snprintf(labels, sizeof(labels), "%s,verdict=\"%s\"", m->labels, name);
	metric_add(m, m->prefix,
		"packets received, by what became of them; stats describe explains the verdicts",
		labels, (double)value);
}

/* --- ports --- */

/* node_exporter's name for a counter of ours */
struct node_row {
	const char *name;
	size_t offset;
	const char *help;
};
#define OF_RC(field)   offsetof(struct rc_counters, field)
#define OF_LINK(field) offsetof(struct link_counters, field)

static const struct node_row node_link[] = {
	{ "port_data_received_bytes_total", OF_LINK(rx_bytes), "bytes received" },
	{ "port_data_transmitted_bytes_total", OF_LINK(tx_bytes), "bytes sent" },
	{ "port_packets_received_total", OF_LINK(rx_packets), "packets received" },
	{ "port_packets_transmitted_total", OF_LINK(tx_packets), "packets sent" },
	{ "rx_icrc_encapsulated_errors_total", OF_LINK(verdict[VERDICT_ICRC]),
		"packets with a wrong ICRC" },
	{ NULL, 0, NULL },
};

static const struct node_row node_rc[] = {
	{ "duplicate_requests_packets_total", OF_RC(duplicate_request),
		"request packets received again" },
	{ "out_of_sequence_packets_received_total", OF_RC(out_of_sequence),
		"request packets ahead of the expected PSN" },
	{ "packet_sequence_errors_total", OF_RC(rcvd_seq_err), "PSN sequence NAKs received" },
	{ "rnr_nak_retry_packets_received_total", OF_RC(rcvd_rnr_err), "RNR NAKs received" },
	{ "out_of_buffer_drops_total", OF_RC(send_rnr_err),
		"Sends answered by an RNR NAK: no receive was posted" },
	{ "local_ack_timeout_errors_total", OF_RC(local_ack_timeout_err),
		"times the transport timer expired" },
	{ "req_remote_access_errors_total", OF_RC(req_remote_access_errors),
		"work requests that the peer refused for key, range or rights" },
	{ "req_remote_invalid_request_errors_total", OF_RC(req_remote_invalid_request),
		"work requests that the peer refused as invalid" },
	{ "resp_local_length_errors_total", OF_RC(resp_local_length_error),
		"Sends longer than the buffers posted for them" },
	{ "resp_remote_access_errors_total", OF_RC(resp_remote_access_errors),
		"requests refused for their R_Key, range or rights" },
	{ "rx_atomic_requests_total", OF_RC(rx_atomic_requests), "Atomics executed" },
	{ "rx_read_requests_total", OF_RC(rx_read_requests), "Read requests executed" },
	{ "rx_write_requests_total", OF_RC(rx_write_requests), "Writes executed" },
	{ "implied_nak_seq_errors_total", OF_RC(implied_nak_seq_err),
		"ACKs, NAKs and responses past a missing response to a Read or Atomic" },
	{ "req_cqes_errors_total", OF_RC(req_cqe_error), "send completions in error" },
	{ "req_cqes_flush_errors_total", OF_RC(req_cqe_flush_error), "send completions flushed" },
	{ "resp_cqes_errors_total", OF_RC(resp_cqe_error), "receive completions in error" },
	{ "resp_cqes_flush_errors_total", OF_RC(resp_cqe_flush_error),
		"receive completions flushed" },
	{ "np_cnp_packets_sent_total", OF_RC(np_cnp_sent), "congestion notifications sent" },
	{ "np_ecn_marked_roce_packets_received_total", OF_RC(np_ecn_marked_roce_packets),
		"packets received with ECN CE" },
	{ "rp_cnp_packets_handled_total", OF_RC(rp_cnp_handled),
		"congestion notifications that reduced a rate" },
	{ "rp_cnp_ignored_packets_received_total", OF_RC(rp_cnp_ignored),
		"congestion notifications without effect" },
	{ NULL, 0, NULL },
};

#define OF_PMA(counter) offsetof(struct pma_totals, value[PMA_##counter])

static const struct node_row node_pma[] = {
	{ "link_downed_total", OF_PMA(LINK_DOWNED), "times the link went down" },
	{ "port_errors_received_total", OF_PMA(RCV_ERRORS),
		"packets received damaged or malformed, or without a buffer" },
	{ "port_discards_transmitted_total", OF_PMA(XMIT_DISCARDS),
		"packets not sent: queue full, next hop unknown, or port not active" },
	{ "port_transmit_wait_total", OF_PMA(XMIT_WAIT),
		"ticks of 4 ns that packets waited for a full queue" },
	{ "unicast_packets_received_total", OF_PMA(UNICAST_RCV), "unicast packets received" },
	{ "unicast_packets_transmitted_total", OF_PMA(UNICAST_XMIT), "unicast packets sent" },
	{ "multicast_packets_received_total", OF_PMA(MULTICAST_RCV), "multicast packets received" },
	{ "multicast_packets_transmitted_total", OF_PMA(MULTICAST_XMIT),
		"multicast packets sent: none" },
	{ NULL, 0, NULL },
};

/* What only native InfiniBand has. */
static const struct node_row node_pma_ib[] = {
	{ "excessive_buffer_overrun_errors_total", OF_PMA(EXCESSIVE_OVERRUN),
		"times that received packets found no buffer again and again" },
	{ "local_link_integrity_errors_total", OF_PMA(LOCAL_INTEGRITY),
		"times that errors of the link exceeded LocalPhyErrors" },
	{ "vl15_dropped_total", OF_PMA(VL15_DROPPED),
		"SMPs dropped: the VL15 buffer of the port was full" },
	{ NULL, 0, NULL },
};

static void
node_metric(struct metrics *m, const char *name, const char *help, unsigned int port, double value)
{
	char full[NAME_MAX_LEN], labels[LABELS_MAX_LEN];

	snprintf(full, sizeof(full), "node_infiniband_%s", name);
	snprintf(labels, sizeof(labels), "device=\"polca\",port=\"%u\"", port + 1);
	metric_add(m, full, help, labels, value);
}

static void
node_counters(struct metrics *m, const struct node_row *row, const void *counters,
	unsigned int port)
{
	for (; row->name != NULL; row++)
		node_metric(m, row->name, row->help, port,
			(double)*(const uint64_t *)((const char *)counters + row->offset));
}

#define PHYSICAL_POLLING 2 /* PortInfo.PortPhysicalState */
#define PHYSICAL_LINK_UP 5

static void
port_state_metrics(struct metrics *m, struct engine *e, unsigned int port)
{
	const struct port_attr *attr = link_port_attr(engine_link(e), port);
	struct link_state state;
	char labels[LABELS_MAX_LEN];
	double rate;

	link_state(engine_link(e), port, &state);
	rate = (double)state.speed_mbps * 1e6 / 8;
	snprintf(labels, sizeof(labels), "%s,name=\"%s\",driver=\"%s\",link_layer=\"%s\"",
		m->labels, attr->name, state.driver, attr->ib ? "InfiniBand" : "Ethernet");
	metric_add(m, "polca_port_info", "a port; always 1", labels, 1);
	metric_add(m, "polca_port_up", "1: the link is up", m->labels, state.up);
	metric_add(m, "polca_port_rate_bytes_per_second", "speed of the link", m->labels, rate);
	node_metric(m, "state_id", "1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE", port,
		port_state(attr, &state));
	node_metric(m, "physical_state_id", "2 polling, 5 link up", port,
		state.up ? PHYSICAL_LINK_UP : PHYSICAL_POLLING);
	node_metric(m, "rate_bytes_per_second", "speed of the link", port, rate);
}

static void
port_metrics(struct metrics *m, struct engine *e, unsigned int port)
{
	struct link_counters link;
	struct pma_totals pma;
	struct rc_counters rc;
	char labels[32];

	snprintf(labels, sizeof(labels), "port=\"%u\"", port);
	m->labels = labels;
	port_state_metrics(m, e, port);
	engine_port_counters(e, port, -1, &link);
	engine_rc_counters(e, (int)port, -1, &rc);
	m->prefix = "polca_port_";
	counters_port(&link, counter_metric, m);
	m->prefix = "polca_port_served_packets_total";
	counters_verdicts(&link, VERDICT_SERVED, verdict_metric, m);
	m->prefix = "polca_port_dropped_packets_total";
	counters_verdicts(&link, VERDICT_DROPPED, verdict_metric, m);
	m->prefix = "polca_rc_";
	counters_rc(&rc, counter_metric, m);
	node_counters(m, node_link, &link, port);
	/* of the device and of the hand-off to other workers: congestion here */
	node_metric(m, "port_discards_received_total",
		"packets received and dropped: a receive queue or hand-off ring was full, or no buffer",
		port,
		(double)(link.drops.rx_missed + link.drops.rx_nombuf +
			link.verdict[VERDICT_HANDOFF_FULL] + link.verdict[VERDICT_NO_MBUF]));
	engine_pma_totals(e, port, &pma);
	node_counters(m, node_pma, &pma, port);
	if (link_port_attr(engine_link(e), port)->ib)
		node_counters(m, node_pma_ib, &pma, port);
	node_counters(m, node_rc, &rc, port);
	m->prefix = "polca_sma_";
	if (engine_sma_managed(e, port))
		counters_read(e, COUNTERS_SMA, (int)port, -1, counter_metric, m);
}

/* --- workers --- */

#define WORKER(text, field, t, ...)                                                                \
	ROW_NAMED(struct worker_info, "polca_worker_" text, field, t, __VA_ARGS__)

static const struct table_row worker_metric_rows[] = {
	WORKER("stalled", stalled, TABLE_BOOL, "1: has not polled for workers.stall_ms"),
	WORKER("heartbeat_age_seconds", heartbeat_age_us, TABLE_UINT, "time since it polled last",
		.unit = "us"),
	WORKER("longest_gap_seconds", longest_gap_us, TABLE_REAL,
		"longest time between two polls since start", .unit = "us"),
	WORKER("busy_ratio", busy_share, TABLE_REAL, "share of the time since start"),
	WORKER("queue_pairs", qps, TABLE_UINT, "queue pairs that live there"),
	WORKER("waiting_commands", commands, TABLE_UINT, "commands that wait for it"),
	WORKER("handoff_depth", handoff_depth, TABLE_UINT,
		"packets that wait in hand-off rings to it"),
	WORKER("polls_total", polls, TABLE_UINT, "turns of its loop"),
	WORKER("busy_polls_total", busy_polls, TABLE_UINT, "turns that found work"),
	WORKER("sleeps_total", sleeps, TABLE_UINT, "times it slept"),
	WORKER("handoff_out_total", handoff_out, TABLE_UINT, "packets handed to others"),
	WORKER("handoff_in_total", handoff_in, TABLE_UINT, "packets taken from others"),
	WORKER("handoff_full_total", handoff_full, TABLE_UINT,
		"packets dropped: the other worker's ring was full"),
	WORKER("handoff_again_total", handoff_again, TABLE_UINT,
		"packets taken and handed on: the queue pair had moved"),
	WORKER("rehomed_out_total", rehomed_out, TABLE_UINT, "queue pairs moved away"),
	WORKER("rehomed_in_total", rehomed_in, TABLE_UINT, "queue pairs moved here"),
	ROW_END,
};

static void
worker_metrics(struct metrics *m, const struct engine *e, unsigned int worker)
{
	struct worker_info info;
	const struct table_row *row;
	char labels[32];
	json_t *v;

	snprintf(labels, sizeof(labels), "worker=\"%u\"", worker);
	engine_worker_info(e, worker, &info);
	for (row = worker_metric_rows; row->name != NULL; row++) {
		v = table_encode_value(row, &info);
		metric_add(m, row->name, row->help, labels,
			(json_is_true(v) ? 1 : json_number_value(v)) *
				(row->unit != NULL ? 1e-6 : 1));
		json_decref(v);
	}
}

/* --- queue pairs --- */

static void
qp_metrics(struct metrics *m, struct engine *e)
{
	char number[32], labels[LABELS_MAX_LEN], gid[TABLE_FORM_MAX];
	struct rc_qp_info info;
	unsigned int n;
	uint64_t cursor = 0;

	m->prefix = "polca_qp_";
	for (n = 0; n < METRICS_QPS_MAX && engine_qp_next(e, &cursor, &info); n++) {
		snprintf(number, sizeof(number), "qp_num=\"0x%06x\"", info.qpn);
		m->labels = number;
		snprintf(labels, sizeof(labels),
			"%s,state=\"%s\",port=\"%u\",peer=\"%s\",peer_qp_num=\"0x%06x\"", number,
			qp_state_name(info.attr.qp_state), info.attr.port,
			form_gid.print(&info.attr.av.dgid, gid), info.attr.dest_qp_num);
		metric_add(m, "polca_qp_info", "a queue pair and its peer; always 1", labels, 1);
		counters_rc(&info.counters, counter_metric, m);
	}
}

/* --- neighbours --- */

static void
neighbour_metrics(struct metrics *m, struct engine *e)
{
	struct link_neighbour_counts n;

	link_neighbour_counts(engine_link(e), &n);
	metric_add(m, "polca_neighbours", "next hops in the table, of all ports", "", n.present);
	metric_add(m, "polca_neighbours_forgotten_total", "next hops removed: nobody used them", "",
		(double)n.forgotten);
	metric_add(m, "polca_neighbours_refused_total",
		"next hops refused: the table, or a stranger's share of it, was full", "",
		(double)n.refused);
}

/* --- programs on the verbs socket --- */

static void
client_metrics(struct metrics *m, const struct engine *e)
{
	struct engine_client_use sum = { 0 };
	struct engine_client_info info;
	unsigned int clients = 0;
	uint64_t cursor = 0;

	for (; engine_client_next(e, &cursor, &info); clients++) {
		sum.qps += info.use.qps;
		sum.cqs += info.use.cqs;
		sum.srqs += info.use.srqs;
		sum.pds += info.use.pds;
		sum.regions += info.use.regions;
		sum.windows += info.use.windows;
		sum.bytes += info.use.bytes;
	}
	metric_add(m, "polca_clients", "devices that programs have open", "", clients);
	metric_add(m, "polca_clients_queue_pairs", "queue pairs of programs", "", sum.qps);
	metric_add(m, "polca_clients_completion_queues", "completion queues of programs", "",
		sum.cqs);
	metric_add(m, "polca_clients_shared_receive_queues", "shared receive queues of programs",
		"", sum.srqs);
	metric_add(m, "polca_clients_protection_domains", "protection domains of programs", "",
		sum.pds);
	metric_add(m, "polca_clients_windows", "memory windows of programs", "", sum.windows);
	metric_add(m, "polca_clients_regions", "memory regions of programs", "", sum.regions);
	metric_add(m, "polca_clients_region_bytes", "bytes of programs' memory regions", "",
		(double)sum.bytes);
}

/* --- the fleet --- */

static void
fleet_etcd_metrics(struct metrics *m, const struct fleet_etcd_member *etcd)
{
	char labels[FLEET_TEXT_MAX + 16];

	snprintf(labels, sizeof(labels), "endpoint=\"%s\"", etcd->url);
	metric_add(m, "polca_fleet_etcd_answers", "a member of etcd has answered", labels,
		etcd->answers);
	metric_add(m, "polca_fleet_etcd_db_bytes",
		"of its database's file, which etcd's quota bounds", labels,
		(double)etcd->db_bytes);
	metric_add(m, "polca_fleet_etcd_db_used_bytes",
		"of its database's file: what a defragmentation leaves", labels,
		(double)etcd->db_used);
	metric_add(m, "polca_fleet_etcd_alarm", "it has raised an alarm", labels,
		etcd->alarms[0] != '\0');
}

static void
fleet_metrics(struct metrics *m, struct engine *e)
{
	struct fleet_status s;
	unsigned int i;

	if (!engine_fleet_status(e, &s))
		return;
	metric_add(m, "polca_fleet_members", "appliances of the fleet", "", s.num_members);
#define FLEET_METRIC(field, t, metric, help)                                                       \
	metric_add(m, "polca_fleet_" metric, help, "", (double)s.field);
	FLEET_FIELDS(FLEET_METRIC)
#undef FLEET_METRIC
	for (i = 0; i < s.num_etcd; i++)
		fleet_etcd_metrics(m, &s.etcd[i]);
}

/* --- all of it --- */

static void
add_all(struct metrics *m, struct engine *e)
{
	static const struct {
		const char *prefix;
		enum counter_set set;
	} sums[] = {
		{ "polca_cm_", COUNTERS_CM },
		{ "polca_live_", COUNTERS_LIVE },
		{ "polca_mad_", COUNTERS_MAD },
		{ "polca_sa_", COUNTERS_SA },
		{ "polca_clients_", COUNTERS_CLIENTS },
	};
	unsigned int i;

	metric_add(m, "polca_build_info", "the program's version; always 1",
		"version=\"" POLCA_VERSION "\"", 1);
	metric_add(m, "node_infiniband_info", "the device; always 1",
		"device=\"polca\",board_id=\"\",firmware_version=\"" POLCA_VERSION
		"\",hca_type=\"Polca\"",
		1);
	metric_add(m, "polca_workers", "workers", "", engine_workers(e));
	neighbour_metrics(m, e);
	client_metrics(m, e);
	fleet_metrics(m, e);
	for (i = 0; i < link_num_ports(engine_link(e)); i++)
		port_metrics(m, e, i);
	for (i = 0; i < engine_workers(e); i++)
		worker_metrics(m, e, i);
	m->labels = "";
	for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		m->prefix = sums[i].prefix;
		counters_read(e, sums[i].set, -1, -1, counter_metric, m);
	}
}

char *
metrics_text(struct engine *e, bool qps)
{
	struct metrics m = { .families = json_object(), .labels = "" };
	const char *name;
	char *text = NULL;
	json_t *family, *sample;
	size_t i, size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL || m.families == NULL)
		goto out;
	add_all(&m, e);
	if (qps)
		qp_metrics(&m, e);
	json_object_foreach(m.families, name, family) {
		json_array_foreach(family, i, sample) {
			fputs(json_string_value(sample), f);
		}
	}
out:
	json_decref(m.families);
	if (f != NULL && fclose(f) != 0) {
		free(text);
		text = NULL;
	}
	return text;
}
