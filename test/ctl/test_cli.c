/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * polca-ctl as a user runs it, against a server of the fake engine in a child process.
 * argv[1]: the program; argv[2]: its completion for bash.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "ctl/ctl.h"
#include "fake_engine.h"

static const char *program, *completion;
static char dir[] = "/tmp/test_cli_XXXXXX";
static char path[64];
static char out[1 << 18]; /* what the last command wrote, errors included */
static pid_t server;

static volatile sig_atomic_t stopped;

static void
stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void
serve(int ready)
{
	struct sigaction sa = { .sa_handler = stop };
	struct engine *e = fake_engine_create();
	struct error err = { "" };
	struct ctl *c = ctl_create(e, path, &err);

	if (c == NULL || write(ready, "r", 1) != 1)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigaction(SIGTERM, &sa, NULL);
	fake_event(e, EVENT_QP_ACCESS_ERR, 0x105);
	e->sa.num = e->sa.exported = 2;
	e->sa.sessions = 20;
	while (!stopped)
		ctl_run_once(c, 100);
	ctl_destroy(c);
	fake_engine_destroy(e);
	_exit(0);
}

static int
start(void **state)
{
	int fd[2];
	char c;

	(void)state;
	if (mkdtemp(dir) == NULL || pipe(fd) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	setenv("POLCA_SOCKET", path, 1);
	server = fork();
	if (server == 0)
		serve(fd[1]);
	close(fd[1]);
	return read(fd[0], &c, 1) == 1 ? close(fd[0]) : -1;
}

static int
finish(void **state)
{
	int status;

	(void)state;
	kill(server, SIGTERM);
	waitpid(server, &status, 0);
	rmdir(dir);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* @return exit status */
static int
shell(const char *command)
{
	FILE *f = popen(command, "r");
	size_t len;
	int status;

	assert_non_null(f);
	len = fread(out, 1, sizeof(out) - 1, f);
	out[len] = '\0';
	status = pclose(f);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
run(const char *line)
{
	char command[2048];

	snprintf(command, sizeof(command), "{ %s %s; } 2>&1", program, line);
	return shell(command);
}

static void
gives(const char *line, int status, const char *words)
{
	int got = run(line);

	if (got != status || strstr(out, words) == NULL)
		print_error("%s: status %d\n%s\n", line, got, out);
	assert_int_equal(got, status);
	assert_non_null(strstr(out, words));
}

static void
test_tables_align(void **state)
{
	(void)state;
	assert_int_equal(run("cq create --depth 4096"), 0);
	assert_string_equal(out, "cq  1\n");
	assert_int_equal(run("cq create --depth 16"), 0);
	assert_int_equal(run("cq list"), 0);
	assert_string_equal(out,
		"cq  depth  pending  users  overrun\n"
		" 1   4096        0      0  no\n"
		" 2     16        0      0  no\n");
	assert_int_equal(run("cq destroy 2"), 0);
	assert_string_equal(out, "ok\n");
}

/* A table that is too wide has the names in two lines; wider yet, each row its own block. */
static void
test_a_wide_table_parts_its_names(void **state)
{
	(void)state;
	setenv("COLUMNS", "140", 1);
	assert_int_equal(run("sa sessions"), 0);
	assert_non_null(strstr(out,
		"                  qp                       mgmt    class                                                                    retries    age\n"
		"worker  peer     num  tid                 class  version  method    attribute  role       state  segment  segments  window     left     ms\n"
		"     1  fe80::9    1  0x000000000000abc0      3        2  GetTable  node       requester  RECV         5         9      16        7  2.5 s\n"));
	setenv("COLUMNS", "80", 1);
	assert_int_equal(run("sa sessions"), 0);
	unsetenv("COLUMNS");
	assert_non_null(strstr(out, "class_version  2\nmethod         GetTable\nattribute      node\n"));
}

static void
test_json_is_the_result_itself(void **state)
{
	(void)state;
	assert_int_equal(run("--json cq poll 1"), 0);
	assert_string_equal(out, "{\n  \"wc\": []\n}\n");
	assert_int_equal(run("cq poll 1 --json"), 0);
	assert_string_equal(out, "{\n  \"wc\": []\n}\n");
}

static void
test_exit_status_tells_what_failed(void **state)
{
	(void)state;
	gives("version get", 0, "version  " POLCA_VERSION);
	gives("cq destroy 7", 1, "polca-ctl: cq destroy: cq: there is no completion queue 7 (ENOENT)");
	gives("cq create --depth 0", 1, "depth: got 0, allowed: integer 1..16777216");
	gives("cq create --depth 0", 1, "see polca-ctl cq create --help");
	gives("cq create --size 5", 2, "--size is no option of \"cq create\"");
	gives("qp crate", 2, "there is no command \"qp crate\"");
	gives("qp crate", 2, "qp create");
	gives("qp", 2, "qp create");
	gives("coffee make", 2, "there is no command \"coffee\"; see polca-ctl --help");
	gives("", 2, "Usage:");
	gives("--socket", 2, "wants a value");
	gives("-s /nowhere/s version get", 3, "is polca running?");
	gives("-s /nowhere/s cq create --size 5", 2, "no option");
	gives("--wait 0.05 cq poll 1 --timeout-ms 100", 0, "wc  -"); /* waits in addition */
}

static void
test_a_server_that_does_not_answer_is_no_reply(void **state)
{
	(void)state;
	kill(server, SIGSTOP);
	gives("--wait 0.1 version get", 3, "no reply");
	kill(server, SIGCONT);
	gives("version get", 0, "version");
}

/* A server that answers each request twice: late, to one that was given up before, and then to it. */
static void
serve_late(int fd)
{
	static const char late[] = "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{\"version\":\"late\"}}\n";
	char line[256];
	int c = accept(fd, NULL, NULL), id;

	for (id = 1; id <= 2; id++) {
		if (read(c, line, sizeof(line)) <= 0 ||
				write(c, late, sizeof(late) - 1) != sizeof(late) - 1)
			_exit(1);
		dprintf(c, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"version\":\"%d\"}}\n", id,
			id);
	}
	_exit(0);
}

static void
test_a_late_reply_is_not_taken_for_another(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), status;
	char line[128];
	pid_t pid;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/late", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid = fork();
	if (pid == 0)
		serve_late(fd);
	snprintf(line, sizeof(line), "-s %s version get", addr.sun_path);
	assert_int_equal(run(line), 0);
	assert_string_equal(out, "version  2\n"); /* the first was rpc_list */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
	unlink(addr.sun_path);
}

static void
test_lists_are_followed_to_their_end(void **state)
{
	unsigned int i, rows = 0;
	const char *c;

	(void)state;
	for (i = 0; i < 12; i++)
		assert_int_equal(run("qp create 1 1"), 0);
	assert_int_equal(run("qp list --max 5 --json"), 0);
	assert_null(strstr(out, "\"cursor\": null"));
	assert_int_equal(run("qp list --json"), 0);
	for (c = out; (c = strstr(c, "\"qp_num\"")) != NULL; c++)
		rows++;
	assert_int_equal(rows, 12);
}

static void
test_warnings_are_not_in_the_way(void **state)
{
	(void)state;
	gives("qp connect 0x100 10.0.0.2 17 1 --min-rnr-timer 0 2>/dev/null", 0, "RTS");
	assert_null(strstr(out, "warning"));
	gives("qp modify 0x100 --min-rnr-timer 0 2>&1 >/dev/null", 0, "warning: min_rnr_timer 0");
	gives("events", 0, "QP_ACCESS_ERR");
}

static void
test_help_teaches_with_and_without_a_server(void **state)
{
	static const char *const servers[] = { "", "-s /nowhere/s " };
	char line[128];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "%s--help", servers[i]);
		gives(line, 0, "A first session");
		gives(line, 0, "Exit status: 0 done; 1 ");
		snprintf(line, sizeof(line), "%sqp connect --help", servers[i]);
		gives(line, 0, "Usage: polca-ctl qp connect qp_num dgid dest_qp_num rq_psn");
		gives(line, 0, "Example:\n  polca-ctl qp connect 17 10.0.0.2");
		snprintf(line, sizeof(line), "%sqp --help", servers[i]);
		gives(line, 0, "qp show");
	}
}

static void
completes(const char *words, const char *want)
{
	char command[1024];
	const char *w;
	int n = 1;

	for (w = words; *w != '\0'; w++)
		n += *w == ' ';
	/*
	 * as bash does it: COMP_WORDS, COMP_CWORD, then the function; the blank at the end is one
	 * more, empty, word
	 */
	snprintf(command, sizeof(command),
		"bash -c 'source %s; COMP_WORDS=(%s %s%s); COMP_CWORD=%d; _polca_ctl 2>/dev/null; echo ${COMPREPLY[*]}'",
		completion, program, words, words[0] == '\0' || w[-1] == ' ' ? "\"\"" : "", n);
	assert_int_equal(shell(command), 0);
	out[strcspn(out, "\n")] = '\0';
	assert_string_equal(out, want);
}

static void
test_bash_completes_from_the_method_table(void **state)
{
	(void)state;
	completes("q", "qp");
	completes("qp c", "create connect");
	completes("log ", "level --help");
	completes("log level ", "get set --help");
	completes("qp create --max-s", "--max-send-wr --max-send-sge");
	completes("post send 5 --opcode RDMA_R", "RDMA_READ");
	completes("post send 5 --remote", "--remote-addr");
	completes("mr register --access LOCAL_WRITE,REMOTE_A", "LOCAL_WRITE,REMOTE_ATOMIC");
	completes("coffee ", "--help");
	completes("sa table pk", "pkey");
	completes("sa get link fr", "from_lid= from_port=");
	completes("sa get --port 1 link --oneline from_lid = 7 to_l", "to_lid=");
	completes("sa config ", "add edit delete");
	completes("sa config add swi", "switch");
	completes("sa config add switch lid= lin", "lin_cap= lin_top=");
	completes("sa table node --class-v", "--class-version");
	completes("-s /nowhere/s sa --json table pk", "pkey");
	completes("sa import ", ""); /* files: bash knows them */
}

/* --- subnet administration: commands of several calls --- */

static void
test_sa_records_print_as_blocks_lines_or_json(void **state)
{
	json_t *json, *records;

	(void)state;
	gives("sa table node lid=1 node_type=ca", 0,
		"NodeRecord\n    lid ....................... 1\n");
	gives("sa table node", 0, "\nNodeRecord\n    lid ....................... 2\n");
	gives("sa get node --fields lid=1 --oneline", 0, "NodeRecord lid=1 ");
	gives("sa table node --oneline --class-version 1", 0, "NodeRecord rid=0x00020000 lid=2 ");
	gives("sa bulk --oneline", 0, "node_desc=\"a node\"\n");
	assert_int_equal(run("sa table node --json"), 0);
	json = json_loads(out, 0, NULL);
	assert_non_null(json);
	records = json_object_get(json, "records");
	assert_int_equal(json_array_size(records), 2);
	assert_string_equal(json_string_value(json_object_get(json, "status")), "OK");
	json_decref(json);
}

static void
test_sa_status_is_told_by_name_and_exit_status(void **state)
{
	(void)state;
	gives("sa get service", 4, "polca-ctl: sa get: NO_RECORDS: no record matches (0x0300)");
	gives("sa get service --json", 4, "\"status\":");
	gives("sa get link lid=3", 1, "fields.lid: LinkRecord has no such field; it has from_lid");
	gives("sa get lnk", 1, "record: got \"lnk\", allowed: node, port,");
	gives("sa get node lid=1 lid=2", 2, "lid is given twice");
	gives("sa table", 2, "--record is missing");
	gives("sa table node x", 2, "what is it?");
	gives("sa table node lid", 2, "what is it?");
	gives("sa config steal node lid=1", 2, "is one of add, edit, delete");
	gives("sa config add node", 2, "give FIELD=VALUE words, or --file");
	gives("sa config add node lid=1", 0, "1 record added\n");
	gives("sa config add node --file /nowhere/f", 2, "/nowhere/f");
	gives("sa import /nowhere/f", 2, "/nowhere/f: No such file");
}

/* The server keeps records for minutes, and a transfer goes on, unless it is told. */
static void
test_an_sa_query_that_is_interrupted_is_cancelled(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "timeout --preserve-status -s INT 0.2 %s sa table vlarb 2>&1",
		program);
	assert_int_equal(shell(command), 128 + SIGINT);
	assert_string_equal(out, "");
	gives("sa result 33", 1, "there is no query 33");
}

static void
test_an_sa_query_that_takes_long_says_so(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "timeout --preserve-status -s INT 2.8 %s sa table vlarb 2>&1",
		program);
	assert_int_equal(shell(command), 128 + SIGINT);
	assert_string_equal(out, "no answer yet, 2 s\n");
}

static void
test_sa_export_is_what_an_import_reads(void **state)
{
	char line[160];
	json_t *json;

	(void)state;
	snprintf(line, sizeof(line), "sa export %s/out.json", dir);
	gives(line, 0, "2 records\n");
	snprintf(line, sizeof(line), "%s/out.json", dir);
	json = json_load_file(line, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(json, "records")), 2);
	json_decref(json);
	gives("sa export -", 0, "{\"records\": [\n{\"record\":\"NodeRecord\",\"rid\":\"0x00010000\"");
	snprintf(line, sizeof(line), "sa import %s/out.json --replace", dir);
	gives(line, 0, "42 records in 0.002 s");
	gives("--json sa import - < /dev/null", 1, "text");
	snprintf(line, sizeof(line), "sa config add node --file %s/out.json", dir);
	gives(line, 0, "2 records added\n");
	snprintf(line, sizeof(line), "%s/out.json", dir);
	unlink(line);
}

static void
test_sa_commands_have_help_and_completion(void **state)
{
	(void)state;
	gives("sa table --help", 0, "Usage: polca-ctl sa table record [FIELD=VALUE...]");
	gives("sa import --help", 0, "(default: what the file looks");
	gives("--help", 0, "4 of sa commands: the SA asked says no, or nothing.");
	gives("sa table --help", 0, "--class-version");
	gives("sa config --help", 0, "Usage: polca-ctl sa config action record");
	gives("sa", 2, "sa export");
	gives("--complete 2 polca-ctl sa t", 0, "table\n");
	gives("--complete 4 polca-ctl sa table node --cl", 0, "--class-version\n");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_align),
		cmocka_unit_test(test_a_wide_table_parts_its_names),
		cmocka_unit_test(test_json_is_the_result_itself),
		cmocka_unit_test(test_exit_status_tells_what_failed),
		cmocka_unit_test(test_a_server_that_does_not_answer_is_no_reply),
		cmocka_unit_test(test_a_late_reply_is_not_taken_for_another),
		cmocka_unit_test(test_lists_are_followed_to_their_end),
		cmocka_unit_test(test_warnings_are_not_in_the_way),
		cmocka_unit_test(test_help_teaches_with_and_without_a_server),
		cmocka_unit_test(test_bash_completes_from_the_method_table),
		cmocka_unit_test(test_sa_records_print_as_blocks_lines_or_json),
		cmocka_unit_test(test_sa_status_is_told_by_name_and_exit_status),
		cmocka_unit_test(test_an_sa_query_that_is_interrupted_is_cancelled),
		cmocka_unit_test(test_an_sa_query_that_takes_long_says_so),
		cmocka_unit_test(test_sa_export_is_what_an_import_reads),
		cmocka_unit_test(test_sa_commands_have_help_and_completion),
	};

	if (argc != 3)
		return 2;
	program = argv[1];
	completion = argv[2];
	return cmocka_run_group_tests(tests, start, finish);
}
