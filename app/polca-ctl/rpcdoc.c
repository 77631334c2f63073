/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * polca-rpcdoc: writes the method table as docs/rpc.md, and as the C text that polca-ctl uses when
 * no server answers. It runs at build time.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ctl/json_record.h"
#include "ctl/rpc.h"
#include "ctl/smp_attribute.h"

static const char intro[] =
	"# The control socket\n"
	"\n"
	"This page is generated from the method table by `polca-rpcdoc --markdown`; a test fails when the two differ.\n"
	"\n"
	"`polca` listens on a Unix stream socket: `/run/polca/polca.sock` for root, `$XDG_RUNTIME_DIR/polca.sock` for\n"
	"others (`/tmp/polca-UID/polca.sock` where that is not set), or the path given in its configuration. The socket's mode is 0600, and only\n"
	"root and the server's own user are served, unless `control.group` and `control.mode` of the configuration admit others.\n"
	"On the second socket `control.monitor`, for monitoring, only methods that `rpc_list` marks with `reads` are carried out; the\n"
	"others fail with EPERM.\n"
	"\n"
	"The protocol is [JSON-RPC 2.0](https://www.jsonrpc.org/specification), one object per line:\n"
	"\n"
	"```\n"
	"--> {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"cq_create\", \"params\": {\"depth\": 1024}}\n"
	"<-- {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"cq\":0}}\n"
	"--> {\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"cq_create\", \"params\": {\"depth\": 0}}\n"
	"<-- {\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"depth: got 0, allowed: integer 1..16777216\",\n"
	"     \"data\":{\"parameter\":\"depth\",\"got\":\"0\",\"allowed\":\"integer 1..16777216\"}}}\n"
	"```\n"
	"\n"
	"(The last reply is one line.)\n"
	"\n"
	"* Parameters are passed by name. Unknown ones are errors.\n"
	"* Requests of one connection are answered in order. A method that waits (`timeout_ms`) holds back the later requests of\n"
	"  its own connection only.\n"
	"* A request without `id` is a notification: it is executed and not answered. Batch arrays are rejected.\n"
	"* Integers may be given as text `\"0x...\"`. In replies, numbers up to 2^63 - 1 are integers, greater ones `\"0x...\"` text.\n"
	"* Lists come in pages: while `cursor` is not null, pass it to get the rows that follow.\n"
	"* The server opens no file that a client names. A parameter that is a file is the file's name, for messages; the client opens\n"
	"  the file and sends the descriptor with the first byte of the request's line, as ancillary data (`sendmsg` with `SCM_RIGHTS`;\n"
	"  Python: `socket.send_fds(sock, [line], [fd])`). It must be a regular file. One descriptor may be under way: wait for the\n"
	"  reply before you send the next. What no request asks for is closed.\n"
	"* Names are taken from libibverbs (`ibv_qp_attr`, `ibv_send_wr`, `ibv_wc`); ports and workers are counted from 0.\n"
	"* Bounds: a request of 1 MiB and 16 open brackets, a reply of 4 MiB, 256 connections. A line that does not end within 30 s, or a\n"
	"  client that reads nothing for 10 s while replies wait for it, ends the connection.\n"
	"\n"
	"| Error code | Meaning |\n"
	"|---|---|\n"
	"| -32700 | the line is not JSON |\n"
	"| -32600 | not a request, or larger than allowed |\n"
	"| -32601 | no such method |\n"
	"| -32602 | wrong parameters: `data.parameter`, `data.got` and `data.allowed` name the parameter, its value and the allowed values |\n"
	"| -32603 | out of memory, or a reply larger than allowed |\n"
	"| -errno | the method failed: `data.errno` names the number (`EBUSY`, `ENOENT`, `ENOMEM`, ...), `message` says why |\n"
	"\n"
	"`polca-ctl` calls every method as `polca-ctl noun verb`; see `polca-ctl --help`. The counters are also on DPDK's\n"
	"telemetry socket, under `/polca/ports`, `/polca/port,N`, `/polca/sma,N`, `/polca/rc`, `/polca/sa`, `/polca/live`, `/polca/cm` and\n"
	"`/polca/worker,N` (`dpdk-telemetry.py`).\n";

/* Print the text of a table cell. */
static void
print_table_cell(FILE *f, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '|')
			putc('\\', f);
		putc(*text, f);
	}
}

static void
print_parameters(FILE *f, const json_t *params, const char *prefix)
{
	const char *def;
	char name[128];
	json_t *p;
	size_t i;

	json_array_foreach(params, i, p) {
		snprintf(name, sizeof(name), "%s%s", prefix,
			json_string_value(json_object_get(p, "name")));
		def = json_string_value(json_object_get(p, "default"));
		if (json_is_true(json_object_get(p, "required")))
			def = "required";
		fprintf(f, "| `%s` | ", name);
		print_table_cell(f, json_string_value(json_object_get(p, "allowed")));
		fprintf(f, " | ");
		print_table_cell(f, def != NULL ? def : "");
		fprintf(f, " | ");
		print_table_cell(f, json_string_value(json_object_get(p, "help")));
		fprintf(f, " |\n");
		snprintf(name + strlen(name), sizeof(name) - strlen(name), ".");
		print_parameters(f, json_object_get(p, "fields"), name);
	}
}

/* Print rows of a result, those of lists and objects indented below them. */
static void
print_markdown_members(FILE *f, const json_t *rows, int depth)
{
	const char *help;
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		help = json_string_value(json_object_get(row, "help"));
		fprintf(f, "%*s* `%s` (%s)%s%s\n", 2 * depth, "",
			json_string_value(json_object_get(row, "name")),
			json_string_value(json_object_get(row, "type")),
			help[0] != '\0' ? ": " : "", help);
		print_markdown_members(f, json_object_get(row, "fields"), depth + 1);
	}
}

static void
print_markdown(FILE *f)
{
	json_t *m, *params, *methods = rpc_describe(NULL, true);
	const char *area, *last = "";
	size_t i;

	fputs(intro, f);
	json_array_foreach(methods, i, m) {
		area = json_string_value(json_object_get(m, "area"));
		if (strcmp(area, last) != 0)
			fprintf(f, "\n## %s\n", area);
		last = area;
		fprintf(f, "\n### %s\n\n%s\n\n", json_string_value(json_object_get(m, "name")),
			json_string_value(json_object_get(m, "help")));
		params = json_object_get(m, "params");
		if (json_array_size(params) > 0) {
			fprintf(f,
				"| Parameter | Allowed | Default | Meaning |\n|---|---|---|---|\n");
			print_parameters(f, params, "");
			fprintf(f, "\n");
		}
		fprintf(f,
			json_array_size(json_object_get(m, "results")) > 0
				? "Result:\n\n"
				: "Result: an empty object.\n");
		print_markdown_members(f, json_object_get(m, "results"), 0);
		fprintf(f, "\n");
		fprintf(f, "```\n%s\n```\n", json_string_value(json_object_get(m, "example")));
	}
	json_decref(methods);
}

/* Print JSON as the inside of a C string literal. */
static void
c_string(FILE *f, const json_t *value)
{
	char *c, *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);

	for (c = text; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			putc('\\', f);
		putc(*c, f);
	}
	free(text);
}

/* Print the records of subnet administration and their fields, for completion. */
static void
c_records(FILE *f)
{
	json_t *fields;
	unsigned int i;

	fprintf(f, "const char records_built_in[] =\n\"{\"\n");
	for (i = 0; i < sa_num_record_types; i++) {
		fprintf(f, "\"%s\\\"%s\\\":", i == 0 ? "" : ",", sa_record_types[i].alias);
		fields = json_field_names(&sa_record_types[i]);
		c_string(f, fields);
		json_decref(fields);
		fprintf(f, "\"\n");
	}
	fprintf(f, "\"}\";\n");
}

/* Print an attribute's name, "portinfo", or the name that smpquery uses. */
static void
c_attribute(FILE *f, const struct smp_attribute *t)
{
	const char *c;

	for (c = t->alias != NULL ? t->alias : t->name; *c != '\0'; c++)
		putc(tolower((unsigned char)*c), f);
}

/* Print the attributes of subnet management and their fields, for completion. */
static void
c_attributes(FILE *f)
{
	const struct smp_attribute *t;
	json_t *fields;

	fprintf(f, "const char attributes_built_in[] =\n\"{\"\n");
	for (t = smp_attributes; t->name != NULL; t++) {
		fprintf(f, "\"%s\\\"", t == smp_attributes ? "" : ",");
		c_attribute(f, t);
		fprintf(f, "\\\":");
		fields = smp_field_names(t);
		c_string(f, fields);
		json_decref(fields);
		fprintf(f, "\"\n");
	}
	fprintf(f, "\"}\";\n");
}

static void
c_text(FILE *f)
{
	json_t *m, *methods = rpc_describe(NULL, false);
	size_t i;

	fprintf(f,
		"/* made by polca-rpcdoc */\n#include \"methods.h\"\nconst char methods_built_in[] =\n\"[\"\n");
	json_array_foreach(methods, i, m) {
		fprintf(f, "\"%s", i == 0 ? "" : ",");
		c_string(f, m);
		fprintf(f, "\"\n");
	}
	fprintf(f, "\"]\";\n");
	json_decref(methods);
	c_records(f);
	c_attributes(f);
}

/* Compare the file with what print_markdown() would write. @return 0: equal */
static int
check_markdown(const char *path)
{
	char *want = NULL, *got;
	size_t want_len, got_len;
	FILE *f = open_memstream(&want, &want_len);
	int same;

	print_markdown(f);
	fclose(f);
	f = fopen(path, "r");
	if (f == NULL) {
		perror(path);
		return 1;
	}
	got = malloc(want_len + 1);
	got_len = fread(got, 1, want_len + 1, f);
	fclose(f);
	same = got_len == want_len && memcmp(got, want, want_len) == 0;
	if (!same)
		fprintf(stderr,
			"%s is not what the method table says; run: build/app/polca-ctl/polca-rpcdoc --markdown > docs/rpc.md\n",
			path);
	free(got);
	free(want);
	return same ? 0 : 1;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--markdown") == 0) {
		print_markdown(stdout);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--c") == 0) {
		c_text(stdout);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--check") == 0)
		return check_markdown(argv[2]);
	fprintf(stderr, "usage: polca-rpcdoc --markdown | --c | --check FILE\n");
	return 2;
}
