/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The commands as rows of the method table: which method each calls, and which parameters it takes
 * from that method or adds.
 */

#include <stdio.h>
#include <string.h>

#include "cm.h"
#include "commands.h"
#include "config.h"
#include "events.h"
#include "methods.h"
#include "ping.h"
#include "sa.h"
#include "smp.h"
#include "stats.h"
#include "table.h"
#include "top.h"
#include "watch.h"

#define DEST_HELP                                                                                  \
	"the peer's address, or on a native InfiniBand port its LID as lid:N or N (also as --dlid; an address and a LID together select a GRH)"
#define TARGET "to or hedge_ms port class_version "
#define KEYS   "sm_key timeout_ms resp_time pkey_index sgid_index dlid dmac worker tid "
#define PATH   "sgid_index traffic_class flow_label hop_limit sl dlid dmac "
#define QUEUES                                                                                     \
	"pd send_cq recv_cq srq max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data sq_sig_all qp_access_flags "
#define CHOICE "record fields " TARGET "component_mask rid "

static const struct command {
	const char *name;
	const char *method;
	/* of sa_query; NULL: the command calls another method, or takes the op from the words */
	const char *op;
	/*
	 * names, of owns[] below or else the method's, in the order of the help; "size/s" also has
	 * the short option -s
	 */
	const char *params;
	const char *required; /* "port?": optional, but may be given without its option */
	const char *help;
	const char *example;
} commands[] = {
	{ "sa_get", "sa_query", "get", CHOICE KEYS "oneline", "record",
		"Get the one record that matches the given fields; more than one is an error.",
		"polca-ctl sa get node lid=2" },
	{ "sa_table", "sa_query", "table", CHOICE "end_rid sa_key " KEYS "oneline", "record",
		"Get all records that match the given fields, or every record if none are given.",
		"polca-ctl sa table path sgid=fe80::1 dgid=fe80::2" },
	{ "sa_bulk", "sa_query", "bulk", TARGET "sa_key " KEYS "oneline", "",
		"Get the whole database, or what has changed since sa_key.",
		"polca-ctl sa bulk --to fe80::2 --oneline" },
	{ "sa_set", "sa_query", "set", CHOICE KEYS "oneline", "record",
		"Add or update a record: offer a service, join a multicast group, subscribe to notices.",
		"polca-ctl sa set service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff service_lease=60 service_name=mine" },
	{ "sa_delete", "sa_query", "delete", CHOICE KEYS "oneline", "record",
		"Remove a record: withdraw a service, leave a multicast group (in class version 1 by --rid).",
		"polca-ctl sa delete service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff" },
	{ "sa_config", "sa_query", NULL, "action record fields records " TARGET KEYS "file",
		"action record",
		"Add, edit or delete records, all of them or none (class version 1): one given as FIELD=VALUE words, or all those of a file.",
		"polca-ctl sa config add link from_lid=1 from_port=1 to_lid=2 to_port=1" },
	{ "sa_import", "sa_import", NULL, "file format mtu replace sweep follow every", "file?",
		"Put the records of a file, or with --sweep of the live subnet (sa sweep has more options), into the database; if one is wrong, none is taken.",
		"polca-ctl sa import fabric.json --replace" },
	{ "sa_export", "sa_export", NULL, "file", "file",
		"Write all records of the database to a file (- is standard output), as sa import reads them.",
		"polca-ctl sa export fabric.json" },
	{ "ping", "live_ping", NULL,
		"dest count/c interval/i size/s flood/f deadline/w timeout/W quiet/q mode port pattern pkey_index sgid_index traffic_class flow_label hop_limit sl dlid dmac",
		"dest", "Send liveness requests to a port, and measure the round-trip times.",
		"polca-ctl ping 10.0.0.2 -c 3" },
	{ "live_watch", "live_ping", NULL,
		"endport file interval/i timeout/W misses report/r count/c deadline/w mode port pkey_index sgid_index traffic_class flow_label hop_limit sl",
		"endport?",
		"Send liveness requests to endports, print each change of an endport's state, and at the end, or every --report seconds, a table of states and round-trip times. An endport is up while it answers, suspect after one missed request, and down after --misses missed requests in a row. Round trips are those of the last 1,000 answers; residence_max is the longest time that a request spent inside the endport.",
		"polca-ctl live watch 10.0.0.2 10.0.0.3 --interval 0.2" },
	{ "stats_get", "stats_get", NULL, "port worker qp_num per_worker nonzero xstats rate", "",
		"Counters since start, or with --rate what they grow by in a second. Every packet received ends in exactly one of served or dropped, so these sum to rx_packets.",
		"polca-ctl stats get --nonzero" },
	{ "events", "events", NULL, "follow max since timeout_ms", "",
		"Asynchronous events, oldest first. Every reader gets them all; what it has missed is counted. With --follow one line each, as they come, until Ctrl-C; with --json each line is an object.",
		"polca-ctl events --follow" },
	{ "top", "stats_get", NULL, "delay/d sort filter", "",
		"Show ports, workers, drops, the SA and the busiest queue pairs on the whole screen, with rates. Keys: q quits, s sorts by the next of tx, rx, retransmitted, posted and qp, / filters queue pairs by number, state or peer, Esc shows all.",
		"polca-ctl top --delay 2" },
	{ "trace_start", "trace_start", NULL, "object number", "object number?",
		"Record the last 64 steps of a queue pair or connection, or without a number of all, or of management sessions: packets, timers and changes of state. A recorded queue pair is a little slower, others are not.",
		"polca-ctl trace start qp 17" },
	{ "trace_stop", "trace_stop", NULL, "object number", "object number?",
		"Stop recording, and forget the steps.", "polca-ctl trace stop qp" },
	{ "cm_services", "service_list", NULL, "", "",
		"List services and where they listen, with all counters that are not 0.",
		"polca-ctl cm services" },
	{ "cm_connect", "cm_connect", NULL,
		"dest port port_space service_id service count detach size length depth access verify path rdma_cm src_port " QUEUES
		"private_data responder_resources initiator_depth retry_count rnr_retry_count min_rnr_timer path_mtu packet_life pkey_index local_port " PATH
		"worker timeout_ms",
		"dest port?",
		"Connect to a service of a peer, and print what was agreed, or why there is no connection. With --service a client of that kind uses the connection: after --count exchanges, or at Ctrl-C, it disconnects and prints its counters. Without --service give --pd and --send-cq: the queue pair is yours, for post send, post recv and cq poll, until cm disconnect.",
		"polca-ctl cm connect 10.0.0.2 7471 --service rping --count 10" },
	{ "cm_alternate", "cm_load_alternate", NULL, "connection dest local_port " PATH,
		"connection dest",
		"Propose an alternate path to the peer; the event PATH_MIG reports when it comes into use.",
		"polca-ctl cm alternate 4711 10.0.1.2 --local-port 1" },
};

/* Parameters that the method does not have: the command itself uses them. */
static const struct own {
	const char *name;
	const char *command; /* the only command with this row; NULL: all */
	const char *type;
	const char *allowed;
	const char *def;
	const char *help;
} owns[] = {
	{ "file", "live_watch", "string", "path, or - for standard input", NULL,
		"more endports, the first word of each line; # begins a comment" },
	{ "file", NULL, "string", "path, or - for standard input or output", NULL,
		"the file to read or write" },
	{ "action", NULL, "enum", "one of add, edit, delete", NULL, "what to do with the records" },
	{ "follow", "events", "boolean", "true or false", NULL,
		"keep running, and print each event when it comes" },
	{ "sweep", NULL, "boolean", "true or false", NULL,
		"instead of a file: read the records from the nodes of the live subnet" },
	{ "follow", NULL, "boolean", "true or false", NULL,
		"with --sweep: keep running, and sweep again every --every seconds, and at once when a trap to the SM behind our port, or a Set by an SM, reports a change" },
	{ "every", NULL, "integer", "0 to 86400", "60",
		"with --follow: seconds between two sweeps if no change is reported, as in a subnet whose SM is elsewhere; 0: sweep only after a reported change" },
	{ "or", NULL, "string", "addresses, lid:N or N, with commas between them", NULL,
		"more SAs of the same database, as those of a fleet: the next one is asked if one has failed, is busy, or (questions, not changes) has not answered in --hedge-ms; a change keeps its TransactionID, so that a fleet makes it once" },
	{ "hedge_ms", NULL, "integer", "1 to 60000", "200",
		"with --or: milliseconds until the next one is asked, too" },
	{ "oneline", NULL, "boolean", "true or false", NULL, "print each record on one line" },
	{ "dest", "ping", "string", "IPv4 or IPv6 address, lid:N or N", NULL,
		"the port to ask: an address, or on a native InfiniBand port a LID" },
	{ "dest", NULL, "string", "IPv4 or IPv6 address, lid:N or N", NULL,
		"the peer: an address (on a native InfiniBand port a GID), or there its LID" },
	{ "endport", NULL, "words", "IPv4 or IPv6 address, lid:N or N", NULL,
		"the endports to watch: addresses, or on a native InfiniBand port LIDs" },
	{ "interval", "live_watch", "seconds", "0.001 to 3600", "1",
		"time between two requests to the same endport" },
	{ "misses", NULL, "integer", "integer from 1", "3",
		"an endport is down after this many requests in a row without a good answer" },
	{ "report", NULL, "seconds", "0.001 to 1000000", "at the end only",
		"time between two reports of all endports' states and round trips" },
	{ "mode", "live_watch", "enum", "one of timestamp, echo, lidguid, ibping, sysstat_ping",
		"timestamp",
		"which request to send: timestamp also measures residence times; ibping and sysstat_ping need those servers on the peer" },
	{ "count", "live_watch", "integer", "integer from 1", "until it is interrupted",
		"stop after this many requests to each endport" },
	{ "count", "ping", "integer", "integer from 1", "until it is interrupted",
		"stop after this many requests" },
	{ "interval", NULL, "seconds", "0 to 3600, fractions allowed", "1",
		"time between two requests" },
	{ "flood", NULL, "boolean", "true or false", NULL,
		"send the next request as soon as the last is answered; print a dot for each lost request" },
	{ "deadline", NULL, "seconds", "0.001 to 1000000", "none",
		"stop after this time, even if requests are left" },
	{ "timeout", NULL, "seconds", "0.001 to 60", "1", "how long to wait for each answer" },
	{ "rate", NULL, "seconds", "0.1 to 3600", "counters since start",
		"count for so many seconds, and print each counter's growth per second" },
	{ "delay", NULL, "seconds", "0.1 to 3600", "1", "time between two looks" },
	{ "sort", NULL, "enum", "one of tx, rx, retransmitted, posted, qp", "tx",
		"what queue pairs are sorted by" },
	{ "filter", NULL, "string", "text", NULL,
		"show only queue pairs with this text in number, state or peer" },
	{ "detach", NULL, "boolean", "true or false", NULL,
		"with --service: return as soon as the connection is established, and leave the connection to polca; cm disconnect ends it" },
	{ "quiet", NULL, "boolean", "true or false", NULL, "print only the statistics at the end" },
};

/* Turn "one of add, edit" into ["add", "edit"]. */
static json_t *
enum_words_of(const char *allowed)
{
	const char *word = allowed + strlen("one of ");
	json_t *words = json_array();
	size_t len;

	for (; *word != '\0'; word += len + strspn(word + len, ", ")) {
		len = strcspn(word, ",");
		json_array_append_new(words, json_stringn(word, len));
	}
	return words;
}

static json_t *
own_param(const char *command, const char *name, size_t len)
{
	const struct own *own;
	json_t *p;

	for (own = owns; own < owns + sizeof(owns) / sizeof(owns[0]); own++) {
		if (strlen(own->name) != len || strncmp(own->name, name, len) != 0 ||
			(own->command != NULL && strcmp(own->command, command) != 0))
			continue;
		p = json_object();
		json_object_set_new(p, "name", json_string(own->name));
		json_object_set_new(p, "type", json_string(own->type));
		if (own->def != NULL)
			json_object_set_new(p, "default", json_string(own->def));
		json_object_set_new(p, "allowed", json_string(own->allowed));
		json_object_set_new(p, "help", json_string(own->help));
		if (strcmp(own->type, "enum") == 0)
			json_object_set_new(p, "words", enum_words_of(own->allowed));
		return p;
	}
	return NULL;
}

/* A copy of the method's row. */
static json_t *
method_param(const json_t *method, const char *name, size_t len)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (strlen(method_text(p, "name")) != len ||
			strncmp(method_text(p, "name"), name, len) != 0)
			continue;
		p = json_copy(p);
		if (strcmp(method_text(p, "name"), "format") == 0) /* run_import() detects it */
			json_object_set_new(p, "default", json_string("what the file looks like"));
		return p;
	}
	return NULL;
}

static bool
listed(const char *list, const char *name, size_t len)
{
	size_t n;

	for (; *list != '\0'; list += n + (list[n] != '\0')) {
		n = strcspn(list, " ");
		if (n == len && strncmp(list, name, len) == 0)
			return true;
	}
	return false;
}

static json_t *
params_of(const json_t *method, const struct command *c)
{
	json_t *p, *params = json_array();
	const char *name;
	char optional[64];
	size_t len, word;

	for (name = c->params; *name != '\0'; name += word + (name[word] != '\0')) {
		word = strcspn(name, " ");
		len = strcspn(name, " /");
		p = own_param(c->name, name, len);
		if (p == NULL)
			p = method_param(method, name, len);
		if (p == NULL)
			continue; /* an older server does not know it */
		json_object_set_new(p, "required", json_boolean(listed(c->required, name, len)));
		snprintf(optional, sizeof(optional), "%.*s?", (int)len, name);
		if (listed(c->required, optional, len + 1))
			json_object_set_new(p, "plain", json_true());
		if (word > len)
			json_object_set_new(p, "short", json_stringn(name + len + 1, 1));
		json_array_append_new(params, p);
	}
	return params;
}

static void
add_command(json_t *methods, const struct command *c)
{
	json_t *row, *method = methods_find(methods, c->method);
	size_t i;

	if (method == NULL)
		return; /* an older server does not know it */
	row = json_object();
	json_object_set_new(row, "command", json_string(c->method));
	if (c->op != NULL)
		json_object_set_new(row, "op", json_string(c->op));
	json_object_set(row, "area", json_object_get(method, "area"));
	json_object_set_new(row, "name", json_string(c->name));
	json_object_set_new(row, "help", json_string(c->help));
	json_object_set_new(row, "params", params_of(method, c));
	json_object_set_new(row, "result", json_string(""));
	json_object_set_new(row, "example", json_string(c->example));
	/* replace the method of the same name, else insert the command before its method */
	for (i = 0; json_array_get(methods, i) != method; i++)
		;
	if (strcmp(c->name, c->method) == 0)
		json_array_set_new(methods, i, row);
	else
		json_array_insert_new(methods, i, row);
}

/*
 * Let an address parameter accept a LID, which is then sent as dlid. With @required, the parameter
 * needs no option.
 */
static void
accept_lid(json_t *methods, const char *name, const char *param, bool required, const char *help)
{
	json_t *p, *method = methods_find(methods, name);
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (strcmp(method_text(p, "name"), param) != 0)
			continue;
		json_object_set_new(p, "required", json_boolean(required));
		json_object_set_new(p, "instead", json_string("dlid"));
		json_object_set_new(p, "help", json_string(help));
	}
}

void
commands_add(json_t *methods)
{
	size_t i;

	accept_lid(methods, "qp_connect", "dgid", true, DEST_HELP);
	accept_lid(methods, "live_ping", "dgid", true, DEST_HELP);
	accept_lid(methods, "sa_query", "to", false,
		"address of the SA to ask, or its LID as lid:N or N");
	accept_lid(methods, "cm_load_alternate", "dgid", true, DEST_HELP);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		add_command(methods, &commands[i]);
}

static int
live_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	bool watch = strcmp(method_text(command, "name"), "live_watch") == 0;

	return (watch ? watch_run : live_ping_run)(o, c, command, params);
}

/* A method that takes its second parameter without its option, too. */
static int
trace_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *name = method_text(command, "command");
	json_t *result = NULL;
	int rc = ask_server(o, c, strcmp(name, "trace_start") == 0 ? "trace start" : "trace stop",
		name, params, 0, &result);

	if (rc == 0 && o->json)
		print_json(result);
	else if (rc == 0)
		table_print(stdout, result);
	json_decref(result);
	return rc;
}

/* The function that runs a command, by the first word of its name. */
static const struct {
	const char *noun;
	int (*run)(const struct options *o, struct connection *c, const json_t *command,
		json_t *params);
} runs[] = {
	{ "cm", cm_command_run },
	{ "config", config_run },
	{ "events", events_run },
	{ "live", live_run },
	{ "ping", ping_command_run },
	{ "sa", sa_command_run },
	{ "smp", smp_run },
	{ "stats", stats_command_run },
	{ "top", top_run },
	{ "trace", trace_run },
};

int
commands_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *name = method_text(command, "name");
	size_t i, len = strcspn(name, "_");

	for (i = 0; strlen(runs[i].noun) != len || strncmp(runs[i].noun, name, len) != 0; i++)
		;
	return runs[i].run(o, c, command, params);
}

/*
 * Methods with their own function: they compute the exit status, or wait longer, from the
 * parameters.
 */
static const char *const own_methods[] = { "config_diff", "config_reload", "live_ping", "smp_get",
	"smp_set", "stats_metrics" };

bool
commands_own(const json_t *method)
{
	const char *name = method_text(method, "name");
	size_t i;

	for (i = 0; i < sizeof(own_methods) / sizeof(own_methods[0]); i++)
		if (strcmp(name, own_methods[i]) == 0)
			return true;
	return json_object_get(method, "command") != NULL;
}
