/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The commands as rows beside the methods: what each asks for, and which parameters of the method
 * under it are its own.
 */

#include <stdio.h>
#include <string.h>

#include "cm.h"
#include "commands.h"
#include "methods.h"
#include "ping.h"
#include "sa.h"
#include "smp.h"
#include "watch.h"

#define DEST_HELP                                                                                  \
	"the peer's address, or on a native InfiniBand port its LID as lid:N or N (--dlid does as well; with both there is a GRH)"
#define TARGET    "to port class_version "
#define KEYS      "sm_key timeout_ms resp_time pkey_index sgid_index dlid dmac worker "
#define PATH      "sgid_index traffic_class flow_label hop_limit sl dlid dmac "
#define QUEUES                                                                                     \
	"pd send_cq recv_cq srq max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data sq_sig_all qp_access_flags "
#define CHOICE    "record fields " TARGET "component_mask rid "

static const struct command {
	const char *name;
	const char *method;
	const char *op; /* of sa_query; NULL: another method, or the words say */
	const char *params; /* our own and the method's, in this order; "size/s" has -s too */
	const char *required; /* "port?": it needs no option, but may be missing */
	const char *help;
	const char *example;
} commands[] = {
	{ "sa_get", "sa_query", "get", CHOICE KEYS "oneline", "record",
		"Get the one record that has the fields given; several are an error.",
		"polca-ctl sa get node lid=2" },
	{ "sa_table", "sa_query", "table", CHOICE "end_rid sa_key " KEYS "oneline", "record",
		"Get all records that have the fields given, every one where none is.",
		"polca-ctl sa table path sgid=fe80::1 dgid=fe80::2" },
	{ "sa_bulk", "sa_query", "bulk", TARGET "sa_key " KEYS "oneline", "",
		"Get the whole database, or what has changed since sa_key.",
		"polca-ctl sa bulk --to fe80::2 --oneline" },
	{ "sa_set", "sa_query", "set", CHOICE KEYS "oneline", "record",
		"Put a record: offer a service, join a multicast group, subscribe to notices.",
		"polca-ctl sa set service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff service_lease=60 service_name=mine" },
	{ "sa_delete", "sa_query", "delete", CHOICE KEYS "oneline", "record",
		"Take a record away: withdraw a service, leave a multicast group (in class version 1 by --rid).",
		"polca-ctl sa delete service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff" },
	{ "sa_config", "sa_query", NULL, "action record fields records " TARGET KEYS "file",
		"action record",
		"Add, edit or delete many records at once, all of them or none (class version 1): one as FIELD=VALUE words, or those of a file.",
		"polca-ctl sa config add link from_lid=1 from_port=1 to_lid=2 to_port=1" },
	{ "sa_import", "sa_import", NULL, "file format mtu replace sweep follow", "file?",
		"Put the records of a file, or with --sweep of the live subnet (sa sweep has more options), into the database, all of them or, if one is wrong, none.",
		"polca-ctl sa import fabric.json --replace" },
	{ "sa_export", "sa_export", NULL, "file", "file",
		"Write all records of the database to a file (- is standard output), as sa import reads them.",
		"polca-ctl sa export fabric.json" },
	{ "ping", "live_ping", NULL,
		"dest count/c interval/i size/s flood/f deadline/w timeout/W quiet/q mode port pattern pkey_index sgid_index traffic_class flow_label hop_limit sl dlid dmac",
		"dest", "Ask again and again whether a port is alive, and how long its answers take.",
		"polca-ctl ping 10.0.0.2 -c 3" },
	{ "live_watch", "live_ping", NULL,
		"endport file interval/i timeout/W misses report/r count/c deadline/w mode port pkey_index sgid_index traffic_class flow_label hop_limit sl",
		"endport?",
		"Ask endports again and again, tell when one changes its state, and in the end, or every --report seconds, how long answers took. An endport is up while it answers, suspect when it misses a request, and down after --misses in a row. Round trips are figures of the last 1,000 answers; residence_max is how long a request was at the endport itself.",
		"polca-ctl live watch 10.0.0.2 10.0.0.3 --interval 0.2" },
	{ "cm_services", "service_list", NULL, "", "",
		"List services and where they listen, with those counters that are not 0.",
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
		"Propose an alternate path to the peer; the event PATH_MIG tells when it is used.",
		"polca-ctl cm alternate 4711 10.0.1.2 --local-port 1" },
};

/* Parameters that commands themselves know. */
static const struct own {
	const char *name;
	const char *command; /* the only one that has it so; NULL: all */
	const char *type;
	const char *allowed;
	const char *def;
	const char *help;
} owns[] = {
	{ "file", "live_watch", "string", "path, or - for standard input", NULL,
		"more endports, the first word of each line; # begins a comment" },
	{ "file", NULL, "string", "path, or - for standard input or output", NULL, "the file" },
	{ "action", NULL, "enum", "one of add, edit, delete", NULL, "what is done with the records" },
	{ "sweep", NULL, "boolean", "true or false", NULL,
		"no file: ask the nodes of the live subnet themselves" },
	{ "follow", NULL, "boolean", "true or false", NULL,
		"with --sweep: go on, and sweep again whenever a trap to the SM behind our port, or an SM's Set, tells of a change" },
	{ "oneline", NULL, "boolean", "true or false", NULL, "a line for each record" },
	{ "dest", "ping", "string", "IPv4 or IPv6 address, lid:N or N", NULL,
		"whom to ask: an address, or on a native InfiniBand port a LID" },
	{ "dest", NULL, "string", "IPv4 or IPv6 address, lid:N or N", NULL,
		"the peer: an address (on a native InfiniBand port a GID), or there its LID" },
	{ "endport", NULL, "words", "IPv4 or IPv6 address, lid:N or N", NULL,
		"whom to watch: addresses, or on a native InfiniBand port LIDs" },
	{ "interval", "live_watch", "seconds", "0.001 to 3600", "1", "ask each endport so often" },
	{ "misses", NULL, "integer", "integer from 1", "3",
		"so many requests in a row without a good answer make an endport down" },
	{ "report", NULL, "seconds", "0.001 to 1000000", "at the end only",
		"print all endports' states and times so often" },
	{ "mode", "live_watch", "enum", "one of timestamp, echo, lidguid, ibping, sysstat_ping", "timestamp",
		"what to ask: timestamp tells residence times as well; ibping and sysstat_ping are for hosts with those servers" },
	{ "count", "live_watch", "integer", "integer from 1", "until it is interrupted",
		"stop when each endport has been asked so often" },
	{ "count", "ping", "integer", "integer from 1", "until it is interrupted",
		"stop after so many requests" },
	{ "interval", NULL, "seconds", "0 to 3600, 0.2 as well", "1", "wait so long between requests" },
	{ "flood", NULL, "boolean", "true or false", NULL,
		"as fast as answers come; a dot stands for each request that was lost" },
	{ "deadline", NULL, "seconds", "0.001 to 1000000", "none", "stop after so long, whatever is left" },
	{ "timeout", NULL, "seconds", "0.001 to 60", "1", "wait so long for each answer" },
	{ "detach", NULL, "boolean", "true or false", NULL,
		"with --service: return as soon as the connection is established, and let polca go on with it; cm disconnect ends it" },
	{ "quiet", NULL, "boolean", "true or false", NULL, "only what it comes to" },
};

/* ["add", "edit"] of "one of add, edit" */
static json_t *
words_of(const char *allowed)
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
			json_object_set_new(p, "words", words_of(own->allowed));
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

	json_array_foreach(json_object_get(method, "params"), i, p)
	{
		if (strlen(method_text(p, "name")) != len ||
				strncmp(method_text(p, "name"), name, len) != 0)
			continue;
		p = json_copy(p);
		if (strcmp(method_text(p, "name"), "format") == 0) /* sa.c looks into the file */
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
			continue; /* an older server */
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
		return; /* an older server */
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
	/* in the method's place, or before it */
	for (i = 0; json_array_get(methods, i) != method; i++)
		;
	if (strcmp(c->name, c->method) == 0)
		json_array_set_new(methods, i, row);
	else
		json_array_insert_new(methods, i, row);
}

/*
 * An address parameter that takes a LID too, which goes to another parameter. One that is required
 * may stand without its option.
 */
static void
take_lid(json_t *methods, const char *name, const char *param, bool required, const char *help)
{
	json_t *p, *method = methods_find(methods, name);
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p)
	{
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

	take_lid(methods, "qp_connect", "dgid", true, DEST_HELP);
	take_lid(methods, "live_ping", "dgid", true, DEST_HELP);
	take_lid(methods, "sa_query", "to", false, "address of the SA to ask, or its LID as lid:N or N");
	take_lid(methods, "cm_load_alternate", "dgid", true, DEST_HELP);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		add_command(methods, &commands[i]);
}

static int
live_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	bool watch = strcmp(method_text(command, "name"), "live_watch") == 0;

	return (watch ? watch_run : live_ping_run)(o, c, command, params);
}

/* Who carries out which, by the first word of the name. */
static const struct {
	const char *noun;
	int (*run)(const struct options *o, struct connection *c, const json_t *command,
		json_t *params);
} runs[] = {
	{ "cm", cm_run },
	{ "live", live_run },
	{ "ping", ping_run },
	{ "sa", sa_run },
	{ "smp", smp_run },
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

/* Methods whose result decides the exit status, or how long they may take. */
static const char *const own_methods[] = { "live_ping", "smp_get", "smp_set" };

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
