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
#include "ctl/rpc.h"
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
cli_serve(int ready)
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
	e->port[1].ib = true;
	e->mad.attribute[17] = 9; /* PortInfo's LID */
	e->mad.lost_lid = 7;
	e->mad.is_ca = true;
	e->sma.traps = 2;
	e->cm.connections = 3;
	while (!stopped)
		ctl_run_once(c, 100);
	ctl_destroy(c);
	fake_engine_destroy(e);
	_exit(0);
}

static int
cli_start(void **state)
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
		cli_serve(fd[1]);
	close(fd[1]);
	return read(fd[0], &c, 1) == 1 ? close(fd[0]) : -1;
}

static int
cli_finish(void **state)
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
cli_run(const char *line)
{
	char command[2048];

	snprintf(command, sizeof(command), "{ %s %s; } 2>&1", program, line);
	return shell(command);
}

static void
cli_gives(const char *line, int status, const char *words)
{
	int got = cli_run(line);

	if (got != status || strstr(out, words) == NULL)
		print_error("%s: status %d\n%s\n", line, got, out);
	assert_int_equal(got, status);
	assert_non_null(strstr(out, words));
}

static void
test_tables_align(void **state)
{
	(void)state;
	assert_int_equal(cli_run("cq create --depth 4096"), 0);
	assert_string_equal(out, "cq  1\n");
	assert_int_equal(cli_run("cq create --depth 16"), 0);
	assert_int_equal(cli_run("cq list"), 0);
	assert_string_equal(out,
		"cq  depth  pending  users  overrun  service\n"
		" 1   4096        0      0  no             -\n"
		" 2     16        0      0  no             -\n");
	assert_int_equal(cli_run("cq destroy 2"), 0);
	assert_string_equal(out, "ok\n");
}

/* A table that is too wide has the names in two lines; wider yet, each row its own block. */
static void
test_a_wide_table_parts_its_names(void **state)
{
	(void)state;
	setenv("COLUMNS", "146", 1);
	assert_int_equal(cli_run("sa sessions"), 0);
	assert_non_null(strstr(out,
		"                       qp                       mgmt    class                                                                    retries  \n"
		"worker  peer          num  tid                 class  version  method    attribute  role       state  segment  segments  window     left    age\n"
		"     1  fe80::9  0x000001  0x000000000000abc0      3        2  GetTable  node       requester  RECV         5         9      16        7  2.5 s\n"));
	setenv("COLUMNS", "80", 1);
	assert_int_equal(cli_run("sa sessions"), 0);
	unsetenv("COLUMNS");
	assert_non_null(
		strstr(out, "class_version  2\nmethod         GetTable\nattribute      node\n"));
}

/* A number looks the same in a table and in an error, and may be given in either notation. */
static void
test_ids_look_the_same_everywhere(void **state)
{
	char line[64], id[16];
	const char *at;

	(void)state;
	assert_int_equal(cli_run("qp create 1 1"), 0);
	at = strstr(out, "0x");
	assert_non_null(at);
	snprintf(id, sizeof(id), "%.8s", at);
	snprintf(line, sizeof(line), "qp show %s", id);
	cli_gives(line, 0, id);
	snprintf(line, sizeof(line), "qp show %ld", strtol(id, NULL, 16));
	cli_gives(line, 0, id);
	snprintf(line, sizeof(line), "qp destroy %s", id);
	cli_gives(line, 0, "ok");
	cli_gives(line, 1, id); /* the error names it as the table did */
	cli_gives("mr checksum 77", 1, "0x0000004d");
	cli_gives("cm disconnect 9", 1, "0x00000009");
	cli_gives("cm list", 0, "0x00000002");
	cli_gives("cm show 0x2", 0, "0x00000002");
	cli_gives("cm unlisten 0x77", 1, "there is no service \"0x77\"");
}

static void
test_json_is_the_result_itself(void **state)
{
	(void)state;
	assert_int_equal(cli_run("--json cq poll 1"), 0);
	assert_string_equal(out, "{\n  \"wc\": []\n}\n");
	assert_int_equal(cli_run("cq poll 1 --json"), 0);
	assert_string_equal(out, "{\n  \"wc\": []\n}\n");
}

static void
test_exit_status_tells_what_failed(void **state)
{
	(void)state;
	cli_gives("version get", 0, "version  " POLCA_VERSION);
	cli_gives("cq destroy 7", 1,
		"polca-ctl: cq destroy: cq: there is no completion queue 7 (ENOENT)");
	cli_gives("cq create --depth 0", 1, "depth: got 0, allowed: integer 1..16777216");
	cli_gives("cq create --depth 0", 1, "see polca-ctl cq create --help");
	cli_gives("cq create --size 5", 2, "--size is no option of \"cq create\"");
	cli_gives("qp crate", 2, "there is no command \"qp crate\"");
	cli_gives("qp crate", 2, "qp create");
	cli_gives("qp", 2, "qp create");
	cli_gives("coffee make", 2, "there is no command \"coffee\"; see polca-ctl --help");
	cli_gives("", 2, "Usage:");
	cli_gives("--socket", 2, "wants a value");
	cli_gives("--socket=/nowhere/s version get", 3, "/nowhere/s");
	cli_gives("--wait=0.05 version get", 0, "version");
	cli_gives("-s /nowhere/s version get", 3, "polca is not running");
	cli_gives("-s /nowhere/s cq create --size 5", 2, "no option");
	cli_gives("--wait 0.05 cq poll 1 --timeout-ms 100", 0, "wc  -"); /* waits in addition */
}

static void
test_a_server_that_does_not_answer_is_no_reply(void **state)
{
	(void)state;
	kill(server, SIGSTOP);
	cli_gives("--wait 0.1 version get", 3, "no reply");
	kill(server, SIGCONT);
	cli_gives("version get", 0, "version");
}

/*
 * A server that answers each request twice: late, to one that was given up before, and then to it.
 */
static void
serve_late(int fd)
{
	static const char late[] =
		"{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{\"version\":\"late\"}}\n";
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
	assert_int_equal(cli_run(line), 0);
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
		assert_int_equal(cli_run("qp create 1 1"), 0);
	assert_int_equal(cli_run("qp list --max 5 --json"), 0);
	assert_null(strstr(out, "\"cursor\": null"));
	assert_int_equal(cli_run("qp list --json"), 0);
	for (c = out; (c = strstr(c, "\"qp_num\"")) != NULL; c++)
		rows++;
	assert_int_equal(rows, 12);
}

static void
test_warnings_are_not_in_the_way(void **state)
{
	(void)state;
	cli_gives("qp connect 0x100 10.0.0.2 17 1 --min-rnr-timer 0 2>/dev/null", 0, "RTS");
	assert_null(strstr(out, "warning"));
	cli_gives("qp modify 0x100 --min-rnr-timer 0 2>&1 >/dev/null", 0,
		"warning: min_rnr_timer 0");
	cli_gives("events", 0, "QP_ACCESS_ERR");
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
		cli_gives(line, 0, "A first session");
		cli_gives(line, 0, "Exit status: 0 done; 1 ");
		snprintf(line, sizeof(line), "%sqp connect --help", servers[i]);
		cli_gives(line, 0, "Usage: polca-ctl qp connect qp_num dgid dest_qp_num rq_psn");
		cli_gives(line, 0, "Example:\n  polca-ctl qp connect 17 10.0.0.2");
		snprintf(line, sizeof(line), "%sqp --help", servers[i]);
		cli_gives(line, 0, "qp show");
	}
}

static void
test_help_is_a_word_too(void **state)
{
	(void)state;
	cli_gives("help", 0, "A first session");
	cli_gives("help qp", 0, "qp show");
	cli_gives("help qp connect", 0,
		"Usage: polca-ctl qp connect qp_num dgid dest_qp_num rq_psn");
	cli_gives("-s /nowhere/s help log level", 0, "log level set");
	cli_gives("help coffee", 2, "there is no command \"coffee\"");
	cli_gives("qp", 2, "\"qp\" needs a verb\nCommands:\n  qp create");
	assert_null(strstr(out, "there is no command"));
	cli_gives("help help", 0, "Usage: polca-ctl help [NOUN [VERB]]");
	cli_gives("-s /nowhere/s help help", 0, "polca-ctl help qp connect");
}

static void
test_typing_errors_are_answered_with_what_was_meant(void **state)
{
	(void)state;
	cli_gives("prot list", 2,
		"there is no command \"prot\"; did you mean \"port\"? See polca-ctl --help");
	cli_gives("qp crate", 2, "there is no command \"qp crate\"; did you mean \"qp create\"?\n");
	cli_gives("list qp", 2, "did you mean \"qp list\"?");
	cli_gives("log level gte", 2, "did you mean \"log level get\"?");
	cli_gives("halp", 2, "did you mean \"help\"?");
	cli_gives("cq create --dept 5", 2,
		"--dept is no option of \"cq create\"; did you mean --depth?");
	cli_gives("post send 5 --opcode SEND --sglist key=1", 2, "did you mean --sg-list?");
	cli_gives("post send 5 --opcode RDMA_WRIT", 1, "; did you mean RDMA_WRITE?");
	cli_gives("mr register 1 --length 1 --access REMOTE_RAED", 1,
		"; did you mean REMOTE_READ?");
	cli_gives("cm listen rpign --port 1", 1, "; did you mean rping?");
	cli_gives("sa get node lids=3", 1, "; did you mean lid?");
	cli_gives("coffee make", 2, "there is no command \"coffee\"; see polca-ctl --help");
	cli_gives("cq create --coffee 5", 2, "--coffee is no option of \"cq create\"; see");
	cli_gives("--jsn", 2,
		"there is no option \"--jsn\" before the command; did you mean --json?");
	cli_gives("--jsn port list", 2, "did you mean --json?");
	cli_gives("port --jsn list", 2, "did you mean --json?");
	cli_gives("port list --jsn", 2,
		"--jsn is no option of \"port list\"; did you mean --json?");
	cli_gives("-x", 2, "allowed: --socket, --json, --wait, --help, --version; see");
	cli_gives("port list extra", 2,
		"\"extra\" is one value too many: \"port list\" takes no value, and options begin with --; see polca-ctl port list --help");
	cli_gives("qp show 17 18", 2,
		"\"18\" is one value too many: \"qp show\" takes qp_num, and");
	cli_gives("mr register 1 length 4096", 2,
		"\"length\" is one value too many; did you mean --length?");
	cli_gives("post send 5 --opcode SEND --sg-list len=5", 2,
		"--sg-list: got \"len=5\", wanted FIELD=VALUE:");
	cli_gives("post send 5 --opcode SEND --sg-list len=5", 2, "did you mean \"length\"?");
	cli_gives("post send 5 --opcode SEND --sg-list key=1,legnth=5", 2,
		"did you mean \"length\"?");
}

/* An error names a parameter as the user has to write it, whoever finds it. */
static void
test_errors_name_options_as_they_are_written(void **state)
{
	(void)state;
	cli_gives("mr register 1", 1,
		"polca-ctl: mr register: --length: missing, allowed: 1 or more (EINVAL)");
	cli_gives("mr register one", 2, "polca-ctl: pd: got \"one\", wanted a number");
	cli_gives("mr register --pd one", 2, "polca-ctl: --pd: got \"one\", wanted a number");
	cli_gives("mr register 1 --length=x", 2, "polca-ctl: --length: got \"x\"");
	cli_gives("cq create --depth 0", 1, "polca-ctl: cq create: --depth: got 0, allowed");
	cli_gives("ping 10.0.0.2 -c x", 2, "polca-ctl: -c: got \"x\"");
	cli_gives("post send 5 --wr-id 1", 1, "post send: --opcode: missing, allowed: one of");
	cli_gives("post send 5 --opcode SEND --sg-list key=x", 2,
		"polca-ctl: --sg-list key: got \"x\"");
	cli_gives("post send 5 --opcode SEND --sg-list key=1,length=0x100000000", 1,
		"post send: --sg-list length: got 4294967296");
	cli_gives("post send 5 --wr opcode=SEND --wr wr_id=1", 1,
		"post send: wr[1].opcode: missing");
	cli_gives("qp modify 17 --alt-ah-attr sl=99", 1, "qp modify: --alt-sl: got 99");
	cli_gives("cm connect 10.0.0.2 7471", 1, "cm connect: --service: missing");
	cli_gives("ping :: -c 1", 1, "ping: dest: missing, local port 0 is a RoCE port");
	cli_gives("live ping ::", 1, "live ping: dgid: missing, local port 0 is a RoCE port");
	cli_gives("cm connect 10.0.0.2 --service rping", 1,
		"cm connect: port, --service-id: got none of them");
	cli_gives("sa get link lid=3", 1,
		"sa get: lid: LinkRecord has no such field; it has from_lid");
	cli_gives("sa get lnk", 1, "sa get: record: got \"lnk\", allowed: node");
	cli_gives("smp get portinfo", 1, "smp get: --dlid, --path: got none of them");
}

/* What is wrong with the socket is told, and what to do about it. */
static void
test_a_socket_that_does_not_answer_is_explained(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char line[160], other[96];

	(void)state;
	cli_gives("-s /nowhere/s port list", 3,
		"/nowhere/s: No such file or directory\n  polca is not running (there is no such socket): start it, or give --socket PATH");
	cli_gives("-s /dev/null port list", 3, "it is no socket");
	cli_gives("-s /tmp port list", 3, "it is no socket");
	cli_gives("-s \"\" port list", 3, "the path is empty");
	/* one that is left by a server that was killed */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/polca.sock", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	snprintf(line, sizeof(line), "-s %s port list", addr.sun_path);
	cli_gives(line, 3,
		"polca is not running (the socket is left from a polca that has ended): start it, or give --socket PATH");
	/* in the place of this user's polca it is no better */
	setenv("XDG_RUNTIME_DIR", dir, 1);
	cli_gives("-s /nowhere/s port list", 3, "polca is not running (there is no such socket)");
	/* until somebody listens there */
	assert_int_equal(listen(fd, 8), 0);
	snprintf(other, sizeof(other),
		"there is no such socket, but polca listens at %s: try --socket %s", addr.sun_path,
		addr.sun_path);
	cli_gives("-s /nowhere/s port list", 3, other);
	unsetenv("XDG_RUNTIME_DIR");
	close(fd);
	unlink(addr.sun_path);
	cli_gives("--wait x port list", 2, "--wait: got \"x\", allowed: seconds");
}

/* The same members for every port, and the same table on every terminal. */
static void
test_port_list_keeps_one_shape(void **state)
{
	static const char *const widths[] = { "60", "160", "1000" };
	json_t *json, *ports, *v;
	const char *name;
	char first[32];
	int i;

	(void)state;
	assert_int_equal(cli_run("port list --json"), 0);
	json = json_loads(out, 0, NULL);
	ports = json_object_get(json, "ports");
	assert_int_equal(json_array_size(ports), 2); /* one of Ethernet, one of InfiniBand */
	assert_int_equal(json_object_size(json_array_get(ports, 0)),
		json_object_size(json_array_get(ports, 1)));
	json_object_foreach(json_array_get(ports, 1), name, v)
		assert_non_null(json_object_get(json_array_get(ports, 0), name));
	json_decref(json);
	for (i = 0; i < 3; i++) {
		setenv("COLUMNS", widths[i], 1);
		assert_int_equal(cli_run("port list"), 0);
		snprintf(first, sizeof(first), "%.16s", out);
		assert_string_equal(first, "port           0");
		assert_non_null(strstr(out, "\nlid            -"));
	}
	unsetenv("COLUMNS");
}

/*
 * Complete these words as bash does: COMP_WORDS, COMP_CWORD, then the function; the blank at the
 * end is one more, empty, word. Afterwards `out` has the candidates, with a blank before and after
 * each.
 */
static void
complete_words(const char *words)
{
	char command[1024];
	const char *w;
	int n = 1;

	for (w = words; *w != '\0'; w++)
		n += *w == ' ';
	snprintf(command, sizeof(command),
		"bash -c 'source %s; COMP_WORDS=(%s %s%s); COMP_CWORD=%d; _polca_ctl 2>/dev/null; echo \" ${COMPREPLY[*]} \"'",
		completion, program, words, words[0] == '\0' || w[-1] == ' ' ? "\"\"" : "", n);
	assert_int_equal(shell(command), 0);
	out[strcspn(out, "\n")] = '\0';
}

/* The candidates are exactly these. */
static void
completes(const char *words, const char *want)
{
	char padded[1024];

	complete_words(words);
	snprintf(padded, sizeof(padded), " %s ", want);
	assert_string_equal(out, padded);
}

/* @p want, with a blank before and after it, is among the candidates. */
static void
offers(const char *words, const char *want)
{
	complete_words(words);
	if (strstr(out, want) == NULL)
		print_error("%s: %s\n", words, out);
	assert_non_null(strstr(out, want));
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
	completes("smp get por", "portinfo");
	completes("smp set portinfo base", "base_lid=");
	completes("pin", "ping");
	completes("ping 10.0.0.2 --mode sysstat_p", "sysstat_ping");
	completes("sa import ", ""); /* files: bash knows them */
}

/* The exit status tells the shell what may follow a candidate. */
static void
test_completion_says_whether_more_may_follow(void **state)
{
	(void)state;
	cli_gives("--complete 2 polca-ctl qp sho", 0, "show\n");
	cli_gives("--complete 4 polca-ctl sa get link fr", 11, "from_lid=\n");
	cli_gives("--complete 5 polca-ctl post send 5 --sg-list ke", 11, "key=\n");
	cli_gives("--complete 5 polca-ctl post send 5 --bind-mw access=REMOTE_A", 11,
		"access=REMOTE_ATOMIC\n");
	cli_gives("--complete 4 polca-ctl mr register --access LOCAL_WRITE,REMOTE_A", 11,
		"LOCAL_WRITE,REMOTE_ATOMIC\n");
	cli_gives("--complete 4 polca-ctl post send 5 --opcode=RDMA_R", 0, "--opcode=RDMA_READ\n");
	cli_gives("--complete 2 polca-ctl sa import", 0, "import\n");
	cli_gives("--complete 3 polca-ctl sa import x", 10, "");
	cli_gives("--complete 2 polca-ctl -s /", 10, "");
	cli_gives("--complete 1 polca-ctl --socket=/", 10, "");
	cli_gives("--complete 4 polca-ctl ping 10.0.0.2 -s 1", 0, ""); /* a size */
}

/* Numbers and names as the server has them now. */
static void
test_bash_completes_values_from_the_server(void **state)
{
	char key[32], line[128];
	json_t *json;

	(void)state;
	assert_int_equal(cli_run("pd create --json"), 0);
	json = json_loads(out, 0, NULL);
	snprintf(line, sizeof(line), "mr register %d --length 4K --json",
		(int)json_integer_value(json_object_get(json, "pd")));
	snprintf(key, sizeof(key), " %d ", (int)json_integer_value(json_object_get(json, "pd")));
	json_decref(json);
	offers("pd destroy ", key);
	offers("qp create --pd ", key);
	assert_int_equal(cli_run(line), 0);
	json = json_loads(out, 0, NULL);
	snprintf(key, sizeof(key), "0x%08x ",
		(unsigned int)json_integer_value(json_object_get(json, "key")));
	json_decref(json);
	offers("mr read 0", key);
	offers("post send 5 --opcode SEND --sg-list key = ", key);
	offers("post send 5 --opcode SEND --rkey ", key);
	assert_int_equal(cli_run("cq create"), 0);
	assert_int_equal(cli_run("qp create 1 1"), 0);
	offers("qp show ", " 0x000100 ");
	offers("qp show 2", " 256 "); /* in the notation that was begun */
	offers("post send ", " 0x000100 ");
	offers("qp rehome 256 --worker ", " 0 1 ");
	offers("qp connect 256 ", " 10.0.0.1 ");
	offers("qp connect 256 10.0.0.1 ", " 0x000100 ");
	offers("qp connect --dgid 10.0.0.1 256 ", " 0x000100 ");
	offers("lid list --port ", " 0 1 ");
	offers("cm listen rp", " rping ");
	offers("cm connect 10.0.0.2 1 --service ha", " hammer ");
	assert_int_equal(cli_run("cm listen rping --port 7471 --name mine"), 0);
	offers("cm unlisten m", " mine ");
	offers("cm connect 10.0.0.2 74", " 7471 ");
	assert_int_equal(cli_run("cm unlisten mine"), 0);
	offers("cm disconnect ", " 0x00000002 ");
	offers("cm listen me", " memory ");
	completes("cm connect 10.0.0.2 1 --service me", ""); /* which does not connect */
	completes("cm listen ha", ""); /* hammer only connects */
	offers("help q", " qp ");
	offers("help log level ", " get set ");
	offers("--js", " --json ");
	/* parts of a word that bash parts at = and : */
	completes("post send 5 --opcode = RDMA_R", "RDMA_READ");
	completes("post send 5 --sg-list = ke", "key=");
	completes("post send 5 --sg-list key = 1,len", "1,length=");
	/* no server, a wrong one: nothing, and no error */
	completes("-s /nowhere/s mr read 0x", "");
	completes("-s /dev/null pd destroy 1", "");
}

/* --- subnet administration: commands of several calls --- */

static void
test_sa_records_print_as_blocks_lines_or_json(void **state)
{
	json_t *json, *records;

	(void)state;
	cli_gives("sa table node lid=1 node_type=ca", 0,
		"NodeRecord\n    lid ....................... 1\n");
	cli_gives("sa table node", 0, "\nNodeRecord\n    lid ....................... 2\n");
	cli_gives("sa get node --fields lid=1 --oneline", 0, "NodeRecord lid=1 ");
	cli_gives("sa table node --oneline --class-version 1", 0,
		"NodeRecord rid=0x00020000 lid=2 ");
	cli_gives("sa bulk --oneline", 0, "node_desc=\"a node\"\n");
	assert_int_equal(cli_run("sa table node --json"), 0);
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
	cli_gives("sa get service", 4, "polca-ctl: sa get: NO_RECORDS: no record matches (0x0300)");
	cli_gives("sa get service --json", 4, "\"status\":");
	cli_gives("sa get link lid=3", 1, "lid: LinkRecord has no such field; it has from_lid");
	cli_gives("sa get lnk", 1, "record: got \"lnk\", allowed: node, port,");
	cli_gives("sa get node lid=1 lid=2", 2, "lid is given twice");
	cli_gives("sa table", 2, "--record is missing");
	cli_gives("sa table node x", 2,
		"\"x\" is one value too many: \"sa table\" takes record FIELD=VALUE...,");
	cli_gives("sa table node lid", 2, "\"lid\" is one value too many");
	cli_gives("sa config steal node lid=1", 2,
		"action: got \"steal\", allowed: add, edit, delete");
	cli_gives("sa config add node", 2, "give FIELD=VALUE words, or --file");
	cli_gives("sa config add node lid=1", 0, "1 record added\n");
	cli_gives("sa config add node --file /nowhere/f", 2, "/nowhere/f");
	cli_gives("sa import /nowhere/f", 2, "/nowhere/f: No such file");
}

/* The server keeps records for minutes, and a transfer goes on, unless it is told. */
static void
test_an_sa_query_that_is_interrupted_is_cancelled(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command),
		"timeout --foreground --preserve-status -s INT 0.2 %s sa table vlarb 2>&1",
		program);
	assert_int_equal(shell(command), 128 + SIGINT);
	assert_string_equal(out, "");
	cli_gives("sa result 33", 1, "there is no query 33");
}

static void
test_an_sa_query_that_takes_long_says_so(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command),
		"timeout --foreground --preserve-status -s INT 2.8 %s sa table vlarb 2>&1",
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
	cli_gives(line, 0, "2 records\n");
	snprintf(line, sizeof(line), "%s/out.json", dir);
	json = json_load_file(line, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(json, "records")), 2);
	json_decref(json);
	cli_gives("sa export -", 0,
		"{\"records\": [\n{\"record\":\"NodeRecord\",\"rid\":\"0x00010000\"");
	snprintf(line, sizeof(line), "sa import %s/out.json --replace", dir);
	cli_gives(line, 0, "42 records in 0.002 s");
	cli_gives("sa import - < /dev/null", 0, "42 records");
	snprintf(line, sizeof(line), "cat %s/out.json | %s sa import /dev/stdin", dir, program);
	assert_int_equal(shell(line), 0); /* a pipe */
	cli_gives("sa import /dev/zero", 2,
		"sa import: /dev/zero is a device, allowed: a regular file, a pipe, or - for standard "
		"input, with records as sa export writes them, or with the output of ibnetdiscover\n");
	cli_gives("sa import /", 2, "sa import: / is a directory, allowed: a regular file, a pipe");
	cli_gives("sa import /", 2, "with the output of ibnetdiscover; name one in it\n");
	cli_gives("sa import - < /", 2, "polca-ctl: -: Is a directory");
	cli_gives("pd create", 0, "");
	snprintf(line, sizeof(line), "mr register --pd 1 --file %s/out.json", dir);
	cli_gives(line, 0, "hugepages");
	cli_gives("mr register --pd 1 --file /nowhere/f", 2, "/nowhere/f: No such file");
	cli_gives("mr register --pd 1 --file /", 2,
		"mr register: / is a directory, allowed: a regular file; name one in it\n");
	snprintf(line, sizeof(line), "mkfifo %s/fifo", dir);
	assert_int_equal(shell(line), 0);
	snprintf(line, sizeof(line), "mr register --pd 1 --file %s/fifo", dir);
	cli_gives(line, 2, "fifo is a pipe, allowed: a regular file\n");
	snprintf(line, sizeof(line), "%s/fifo", dir);
	unlink(line);
	snprintf(line, sizeof(line), "sa config add node --file %s/out.json", dir);
	cli_gives(line, 0, "2 records added\n");
	snprintf(line, sizeof(line), "%s/out.json", dir);
	unlink(line);
}

static void
test_sa_commands_have_help_and_completion(void **state)
{
	(void)state;
	cli_gives("sa table --help", 0, "Usage: polca-ctl sa table record [FIELD=VALUE...]");
	cli_gives("sa import --help", 0, "(default: what the file looks");
	cli_gives("mr register --help", 0,
		"K, M or G behind a number stand for 2^10, 2^20 and 2^30");
	cli_gives("--help", 0,
		"4 (sa, smp, cm connect) the peer refused or did not answer. For ping and live ping, 1 means no answer; for live watch, 1 means that not all endports are up.");
	cli_gives("sa table --help", 0, "--class-version");
	cli_gives("sa config --help", 0, "Usage: polca-ctl sa config action record");
	cli_gives("sa", 2, "sa export");
	cli_gives("--complete 2 polca-ctl sa t", 0, "table\n");
	cli_gives("--complete 4 polca-ctl sa table node --cl", 0, "--class-version\n");
}

/* --- subnet management --- */

static void
test_smp_get_prints_a_component_a_line(void **state)
{
	(void)state;
	cli_gives("smp get portinfo --path 0,2", 0,
		"PortInfo\n    m_key ..................... 0x0\n");
	cli_gives("smp get PortInfo --dlid 3 --port 1", 0, "    base_lid .................. 9\n");
	cli_gives("smp get 0xff10 --path 0,2", 0,
		"0xff10\n    00  00000000000000000000000000000000000900");
	cli_gives("smp get portinfo --path 0,2 --json", 0, "\"mad_status\": \"0x0000\"");
	cli_gives("smp set portinfo --path 0,2 base_lid=300 sm_sl=2", 0,
		"    sm_sl ..................... 2\n");
	cli_gives("smp get portinfo --path 0,2", 0, "    base_lid .................. 300\n");
	cli_gives("smp set portinfo --path 0,2 base_lid=9 sm_sl=0", 0, "PortInfo");
}

static void
test_smp_errors_say_what_is_allowed(void **state)
{
	(void)state;
	cli_gives("smp get", 2, "--attribute is missing");
	cli_gives("smp get portinfo", 1, "--dlid, --path: got none of them, allowed: one");
	cli_gives("smp get portinfo --dlid 7 --port 1", 1, "LID 7: no answer; is somebody there");
	cli_gives("smp get switchinfo --path 0,2", 4,
		"polca-ctl: smp get: BAD_METHOD_ATTRIBUTE: it does not have this attribute, or does not do this with it (0x000c)");
	cli_gives("smp set portinfo --path 0,2 lid=3", 1,
		"smp set: lid: PortInfo has no such field; it has m_key");
}

static void
test_traps_and_lids_are_tables(void **state)
{
	(void)state;
	cli_gives("trap list", 0, "trap  port  number  type  state  sent  raised    age  tid\n");
	cli_gives("trap send --port 1 --number 144", 0, "trap  7\n");
	cli_gives("trap repress 7", 0, "ok\n");
	cli_gives("lid set 5 --mac 02:00:00:00:00:05 --port 1", 0, "ok\n");
	cli_gives("lid list --port 1", 0,
		"lid  mac                origin\n  5  02:00:00:00:00:05  FIXED\n");
}

/* --- ping --- */

static void
test_ping_tells_each_answer_and_what_it_comes_to(void **state)
{
	(void)state;
	cli_gives("ping 10.0.0.2 -c 2 -i 0.01", 0,
		"PING 10.0.0.2: echo, 56 bytes of data\n"
		"64 bytes from 10.0.0.2: seq=1 time=41.2 us\n"
		"64 bytes from 10.0.0.2: seq=2 time=41.2 us\n"
		"\n--- 10.0.0.2 liveness statistics ---\n"
		"2 packets transmitted, 2 received, 0% packet loss, time ");
	assert_non_null(strstr(out, "ms\nrtt min/avg/max/mdev = 41.2/41.2/41.2/0.0 us\n"));
	cli_gives("ping lid:5 -c1 -s 208 --port 1", 0, "216 bytes from lid:5: seq=1 time=");
	cli_gives("ping 5 -qc 2 -i0 --port 1", 0,
		"PING 5: echo, 56 bytes of data\n\n--- 5 liveness");
	cli_gives("ping fe80::9 -c 1 --mode ibping", 0, "time=41.2 us: host.example\n");
	cli_gives("ping fe80::9 -c 1 --mode lidguid", 0, "lid=5 guid=0x0002c90300000005\n");
}

static void
test_ping_without_any_answer_exits_with_1(void **state)
{
	(void)state;
	cli_gives("ping lid:7 -c 2 -i 0 --port 1", 1,
		"no answer from lid:7: seq=1\nno answer from lid:7: seq=2\n");
	assert_non_null(strstr(out, "2 packets transmitted, 0 received, 100% packet loss"));
	assert_null(strstr(out, "rtt"));
}

static void
test_ping_f_goes_on_as_fast_as_it_can(void **state)
{
	(void)state;
	cli_gives("ping 10.0.0.2 -f -c 2500", 0, "data\n\n--- 10.0.0.2");
	assert_non_null(strstr(out, "2500 packets transmitted, 2500 received, 0% packet loss"));
	cli_gives("ping lid:7 -f -c 5 --port 1", 1, "data\n.....\n--- lid:7");
}

static void
test_ping_says_what_its_options_may_be(void **state)
{
	(void)state;
	cli_gives("ping", 2, "--dest is missing");
	cli_gives("ping nobody", 2,
		"dest: got \"nobody\", allowed: an IPv4 or IPv6 address (a GID), or a LID as lid:5 or 5");
	cli_gives("ping lid:0", 2, "dest: got \"lid:0\"");
	cli_gives("ping lid:0xc000", 2, "up to 0xbfff");
	cli_gives("ping 10.0.0.2 -c 0", 2, "--count: got 0, allowed: 1 and more");
	cli_gives("ping 10.0.0.2 -c", 2, "-c, --count wants a value");
	cli_gives("ping 10.0.0.2 -W 61", 2, "--timeout: got \"61\", allowed: 0.001 to 60 seconds");
	cli_gives("ping 10.0.0.2 -i x", 2, "--interval: got \"x\", allowed: 0 to 3600 seconds");
	cli_gives("ping 10.0.0.2 -x", 2, "-x is no option of \"ping\"; see polca-ctl ping --help");
	cli_gives("ping 10.0.0.2 -c 1 -s 2M", 1,
		"--size: got 2097152, allowed: integer 0..1048576");
	cli_gives("ping 10.0.0.2 -c 1 --port 2", 1, "--port: got 2, there are 2");
	cli_gives("-s /nowhere/s ping 10.0.0.2", 3, "polca is not running");
	cli_gives("ping --help", 0, "-c, --count");
}

/* --- live watch --- */

static void
test_watch_tells_changes_and_figures(void **state)
{
	(void)state;
	cli_gives("live watch lid:5 7 --port 1 -c 4 -i 0.01 --mode echo", 1,
		" lid:5 up: answered in 41.2 us\n");
	assert_non_null(strstr(out, " 7 suspect: no answer, 1 in a row\n"));
	assert_non_null(strstr(out, " 7 down: no answer, 3 in a row; suspect for "));
	assert_non_null(strstr(out, "lid:5    up "));
	cli_gives("live watch lid:5 --port 1 -c 2 -i 0.01 -r 0.001 --json", 0,
		"\"event\":\"state\",\"endport\":\"lid:5\",\"state\":\"up\",\"was\":\"new\"");
	assert_non_null(strstr(out, "\"event\":\"report\",\"endports\":[{\"endport\":\"lid:5\""));
	cli_gives("live watch lid:5 --port 1 -w 0.05", 0, "lid:5    up ");
}

static void
test_watch_takes_endports_from_a_file(void **state)
{
	char command[512];

	(void)state;
	snprintf(command, sizeof(command),
		"printf '%%s\\n' '# nodes' 'lid:5 node5' '' ' 6' | %s live watch --port 1 --file - 9 -c 1",
		program);
	assert_int_equal(shell(command), 0);
	assert_non_null(strstr(out, " 9 up"));
	assert_non_null(strstr(out, " lid:5 up"));
	assert_non_null(strstr(out, " 6 up"));
}

static void
test_watch_says_what_its_options_may_be(void **state)
{
	(void)state;
	cli_gives("live watch", 2, "endport is missing: name endports, or a --file of them");
	cli_gives("live watch 10.0.0.2 nobody", 2, "endport: got \"nobody\", allowed: an IPv4");
	cli_gives("live watch --file /nowhere/f", 2, "--file: /nowhere/f: No such file");
	cli_gives("live watch 10.0.0.2 -i 0", 2,
		"--interval: got \"0\", allowed: 0.001 to 3600 seconds");
	cli_gives("live watch 10.0.0.2 -r x", 2, "--report: got \"x\"");
	cli_gives("live watch 10.0.0.2 -c 0", 2, "--count: allowed: 1 and more");
	cli_gives("live watch 10.0.0.2 --misses 0", 2, "--misses: allowed: 1 and more");
	cli_gives("live watch 10.0.0.2 --mode x -c 1", 1, "--mode: got \"x\"");
	cli_gives("live watch 10.0.0.2 -c 1 --port 2", 1, "--port: got 2, there are 2");
	cli_gives("-s /nowhere/s live watch 10.0.0.2", 3, "polca is not running");
	cli_gives("live watch --help", 0, "Usage: polca-ctl live watch [endport...]");
	completes("live watch 10.0.0.2 --mode times", "timestamp");
}

static void
test_ping_sums_up_when_it_is_interrupted(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command),
		"timeout --foreground --preserve-status -s INT 0.5 %s ping 10.0.0.2 -i 60 2>&1",
		program);
	assert_int_equal(shell(command), 0);
	assert_non_null(strstr(out, "1 packets transmitted, 1 received, 0% packet loss"));
	/* also where an answer is waited for */
	snprintf(command, sizeof(command),
		"timeout --foreground --preserve-status -s INT 0.5 %s ping lid:8 -W 60 --port 1 2>&1",
		program);
	assert_int_equal(shell(command), 1);
	assert_non_null(strstr(out, "1 packets transmitted, 0 received, 100% packet loss"));
}

static void
test_ping_ends_at_its_deadline(void **state)
{
	(void)state;
	cli_gives("ping 10.0.0.2 -w 0.3 -i 60", 0, "1 packets transmitted, 1 received");
}

static void
test_ping_as_json_is_one_object(void **state)
{
	json_t *json;

	(void)state;
	assert_int_equal(cli_run("ping 10.0.0.2 -c 3 -i 0 --json"), 0);
	json = json_loads(out, 0, NULL);
	assert_non_null(json);
	assert_int_equal(json_array_size(json_object_get(json, "replies")), 3);
	assert_int_equal(json_integer_value(json_object_get(json, "received")), 3);
	assert_true(
		json_real_value(json_object_get(json_object_get(json, "rtt_us"), "min")) == 41.25);
	json_decref(json);
}

static void
test_live_ping_exits_as_ping_does(void **state)
{
	(void)state;
	cli_gives("live ping 10.0.0.2", 0, "received  1");
	cli_gives("live ping lid:7 --port 1 --timeout-ms 10 --count 2", 1, "received  0");
	cli_gives("live ping lid:7 --port 1 --timeout-ms 10 --json", 1, "\"received\": 0");
	cli_gives("live ping nobody", 2, "allowed: an IPv4");
	/* each of them may take its timeout */
	cli_gives("--wait 0.5 live ping lid:7 --port 1 --count 4 --timeout-ms 300", 1,
		"received  0");
}

/* --- connections --- */

static void
test_services_are_a_table_of_what_is_not_0(void **state)
{
	(void)state;
	cli_gives("cm services", 0, "none; polca-ctl cm listen --help says how to have one\n");
	cli_gives("cm listen rping --port 7471", 0, "service     1\nname        rping\n");
	cli_gives("cm listen memory --service-id 0x1234 --name store --length 64K", 0,
		"name        store\n");
	assert_int_equal(cli_run("cm services"), 0);
	assert_string_equal(out,
		"service  name   kind    state      port  connections  established  messages_in  bytes_in  service_id\n"
		"      1  rping  rping   LISTENING  7471            0            0            5     5 MiB  \n"
		"      2  store  memory  LISTENING                  0            0            5     5 MiB  0x0000000000001234\n");
	cli_gives("service list", 0, "violations");
	cli_gives("cm services --json", 0, "\"violations\": 0");
	cli_gives("cm listen pong --port 1", 1,
		"kind: got \"pong\", which is none, allowed: memory, rping");
	cli_gives("cm unlisten store", 0, "ok\n");
	cli_gives("cm unlisten 1 --disconnect", 0, "ok\n");
	cli_gives("cm unlisten nobody", 1, "there is no service \"nobody\"");
}

static void
test_connect_waits_for_the_exchanges_it_was_asked_for(void **state)
{
	(void)state;
	cli_gives("cm connect 10.0.0.2 7471 --service rping --count 10", 0,
		"connection           0x00000001\n"
		"service              rping\n"
		"qp_num               0x000100\n"
		"remote_qpn           0x000200\n"
		"path_mtu             1024 B\n"
		"responder_resources  4\n"
		"initiator_depth      7\n"
		"private_data         dead\n"
		"elapsed              1.5 ms\n"
		"\nrping: 10 of 10 exchanges, 0 mismatches, 0 errors; 0 messages and 0 bytes out, 5 and 5242880 in\n");
	cli_gives("cm connect 10.0.0.2 7471 --service rping --count 10 --detach", 0, "1.5 ms\n");
	assert_null(strstr(out, "exchanges"));
	cli_gives("cm connect 10.0.0.2 --service-id 0x1234 --service rping --json --detach", 0,
		"\"qp_num\": 256");
	assert_null(strstr(out, "counters"));
	/* the caller drives it */
	cli_gives("cm connect 10.0.0.2 7471 --pd 1 --send-cq 1", 0, "qp_num");
	assert_null(strstr(out, "exchanges"));
	cli_gives("cm connect lid:5 7471 --service rping --local-port 1 --count 2 --json", 0,
		"\"counters\": {");
}

static void
test_connect_says_who_does_not_want_it(void **state)
{
	(void)state;
	cli_gives("cm connect 10.0.0.2 9000 --service rping", 4,
		"polca-ctl: cm connect: rejected: invalid service ID (8): nobody listens there (ECONNREFUSED)\n  private data: dead\n");
	cli_gives("cm connect 10.0.0.2 9100 --service rping --timeout-ms 50", 4,
		"no answer within 50 ms: is a communication manager there, and the address right? (ETIMEDOUT)");
	cli_gives("cm connect nobody 7471", 2,
		"cm connect: dest: got \"nobody\", allowed: an IPv4");
	cli_gives("cm connect", 2, "--dest is missing");
	cli_gives("cm connect 10.0.0.2 1 2", 2,
		"\"2\" is one value too many: \"cm connect\" takes dest port,");
	cli_gives("cm connect --help", 0,
		"Usage: polca-ctl cm connect dest [port] [--PARAMETER VALUE...]");
	cli_gives("-s /nowhere/s cm connect 10.0.0.2 7471", 3, "polca is not running");
}

static void
test_who_interrupts_connect_ends_the_connection(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command),
		"timeout --foreground --preserve-status -s INT 0.5 %s cm connect 10.0.0.2 8000 --service rping --count 5 2>&1",
		program);
	assert_int_equal(shell(command), 4);
	assert_non_null(strstr(out, "\nrping: 3 of 5 exchanges,"));
}

/* The state letter of a process: 'S' sleeps in a system call, 'T' is stopped. */
static char
process_state(pid_t pid)
{
	char name[64], line[256], *end;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	f = fopen(name, "r");
	if (f == NULL)
		return 0;
	end = fgets(line, sizeof(line), f) != NULL ? strrchr(line, ')') : NULL;
	fclose(f);
	return end != NULL && end[1] == ' ' ? end[2] : 0;
}

static void
wait_for_state(pid_t pid, char want)
{
	int i;

	for (i = 0; i < 20000 && process_state(pid) != want; i++)
		usleep(1000);
	if (i == 20000)
		_exit(1);
}

/* Answer while the client is stopped in poll(): it wakes up with both a signal and a reply. */
static void
reply_with_a_signal(int c, const char *reply, size_t len)
{
	struct ucred client;
	socklen_t size = sizeof(client);

	if (getsockopt(c, SOL_SOCKET, SO_PEERCRED, &client, &size) != 0)
		_exit(1);
	wait_for_state(client.pid, 'S');
	kill(client.pid, SIGSTOP);
	wait_for_state(client.pid, 'T');
	if (write(c, reply, len) != (ssize_t)len)
		_exit(1);
	kill(client.pid, SIGINT);
	kill(client.pid, SIGCONT);
}

/* What is special about a server for one client. */
struct one_client {
	/* the reply to cm_connect comes together with SIGINT, and the client disconnects */
	bool signal;
	unsigned int services; /* already there when the client connects */
	int looks; /* after so many calls of service_wait there is no service; -1: never */
};

static void
serve_one(int fd, struct one_client how)
{
	struct rpc_state state;
	struct engine *e = fake_engine_create();
	FILE *in;
	char line[4096], *reply;
	size_t len;
	int c = accept(fd, NULL, NULL);
	struct rpc_call *call;
	uint64_t now;

	in = fdopen(dup(c), "r");
	if (in == NULL || rpc_state_init(&state, e) != 0)
		_exit(1);
	e->cm.connections = 3;
	for (; e->cm.services < how.services; e->cm.services++)
		e->cm.service[e->cm.services].id = e->cm.services + 1;
	while (fgets(line, sizeof(line), in) != NULL) {
		if (strstr(line, "\"service_wait\"") != NULL && how.looks-- == 0)
			e->cm.services = 0;
		call = rpc_open(&state, line, strlen(line), &(int){ -1 }, 0);
		for (now = 0; rpc_step(call, now) != 0; now += 1000)
			;
		reply = rpc_reply(call, 1 << 20, &len);
		if (how.signal && strstr(line, "\"cm_connect\"") != NULL)
			reply_with_a_signal(c, reply, len);
		else if (write(c, reply, len) != (ssize_t)len)
			_exit(1);
		free(reply);
		rpc_close(call);
	}
	_exit(how.signal && e->cm.disconnected != 2); /* the connection of port 8000 */
}

/* Run a command with a server of its own. */
static void
gives_alone(struct one_client how, const char *command, int exit_status, const char *words)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), status;
	char line[160];
	pid_t pid;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/one", dir);
	unlink(addr.sun_path); /* of a test that failed */
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid = fork();
	if (pid == 0)
		serve_one(fd, how);
	snprintf(line, sizeof(line), "-s %s %s", addr.sun_path, command);
	cli_gives(line, exit_status, words);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(fd);
	unlink(addr.sun_path);
}

static void
test_a_reply_that_comes_with_a_signal_is_read(void **state)
{
	(void)state;
	gives_alone((struct one_client){ .signal = true, .looks = -1 },
		"cm connect 10.0.0.2 8000 --service rping", 0,
		"\nrping: 3 exchanges, 0 mismatches, 0 errors;");
	assert_null(strstr(out, "given up"));
}

static void
test_connect_finds_its_service_among_a_thousand_others(void **state)
{
	(void)state;
	gives_alone((struct one_client){ .services = 1001, .looks = -1 },
		"cm connect 10.0.0.2 7471 --service rping --count 10", 0,
		"\nrping: 10 of 10 exchanges,");
	gives_alone((struct one_client){ .services = 1001, .looks = -1 }, "cm services | tail -n 1",
		0, "   1001 ");
}

/* No success without having seen the end: the last counters are printed, if there are any. */
static void
test_connect_fails_if_it_does_not_see_the_end(void **state)
{
	(void)state;
	gives_alone((struct one_client){ .looks = 2 },
		"cm connect 10.0.0.2 8000 --service rping --count 2", 4,
		"\nrping: 3 of 2 exchanges,");
	assert_non_null(strstr(out,
		"the end of connection 0x00000002 was not seen: the counters are the last known; see polca-ctl cm list\n"));
	gives_alone((struct one_client){ .looks = 0 },
		"cm connect 10.0.0.2 8000 --service rping --json", 4,
		"was not seen: there are no counters of its service");
}

/* Without --count nothing but a signal or the peer ends it: it must not go on unseen. */
static void
test_connect_without_count_stays_until_a_signal(void **state)
{
	static const char *const signals[] = { "INT", "TERM", "HUP" };
	char command[256];
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		cli_gives("cm connect 10.0.0.2 8000 --service rping --detach", 0, "1.5 ms\n");
		cli_gives("service list --json", 0, "\"CONNECTED\"");
		cli_gives("cm disconnect 2", 0, "ok\n");
		snprintf(command, sizeof(command),
			"timeout --foreground --preserve-status -s %s 0.5 %s cm connect 10.0.0.2 8000 --service rping 2>&1",
			signals[i], program);
		assert_int_equal(shell(command), 0);
		assert_non_null(strstr(out, "Ctrl-C disconnects"));
		assert_non_null(strstr(out, "\nrping: 3 exchanges, 0 mismatches, 0 errors;"));
		assert_int_equal(cli_run("service list --json"), 0);
		assert_null(strstr(out, "\"CONNECTED\""));
	}
	cli_gives("cm connect --help", 0, "Ctrl-C");
}

static void
test_connections_are_a_table(void **state)
{
	(void)state;
	setenv("COLUMNS", "200", 1);
	cli_gives("cm list", 0,
		"\n0x00000002  ESTABLISHED  PASSIVE  -        10.0.0.7  0x0000000001061d2f");
	unsetenv("COLUMNS");
	cli_gives("cm show 2", 0, "rdma_cm:\n  src       10.0.0.7\n  src_port  40000\n");
	cli_gives("cm disconnect 2", 0, "ok\n");
	cli_gives("cm disconnect 9", 1, "there is no connection 0x00000009");
	cli_gives("cm alternate 1 10.0.0.9 --local-port 0", 0, "agreed  yes\n");
	cli_gives("cm alternate 1 x", 2, "cm alternate: dest: got \"x\"");
	cli_gives("cm", 2, "cm connect");
	completes("cm ",
		"listen unlisten services connect list show disconnect alternate load trace --help");
}

/* The signals of a line of /proc/PID/status: "SigCgt" those caught, "SigIgn" those ignored. */
static unsigned long long
signals_of(pid_t pid, const char *line)
{
	char name[64], text[128];
	unsigned long long set = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	f = fopen(name, "r");
	assert_non_null(f);
	while (fgets(text, sizeof(text), f) != NULL)
		if (strncmp(text, line, strlen(line)) == 0)
			sscanf(text + strlen(line) + 1, "%llx", &set);
	fclose(f);
	return set;
}

/* Start a command as nohup does, in a process of its own without a shell. */
static pid_t
start_without_hangup(const char *line)
{
	char copy[256], *words[16], *w;
	pid_t pid = fork();
	int num = 1;

	if (pid != 0)
		return pid;
	snprintf(copy, sizeof(copy), "%s", line);
	words[0] = (char *)(uintptr_t)program;
	for (w = strtok(copy, " "); w != NULL && num < 15; w = strtok(NULL, " "))
		words[num++] = w;
	words[num] = NULL;
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	if (freopen("/dev/null", "w", stdout) != NULL && freopen("/dev/null", "w", stderr) != NULL)
		execv(program, words);
	_exit(127);
}

/* nohup starts a program with SIGHUP ignored: what catches signals must leave that one alone. */
static void
test_nohup_keeps_a_command_running(void **state)
{
	static const char *const commands[] = { "ping 10.0.0.2 -i 60",
		"cm connect 10.0.0.2 8000 --service rping", "sa table vlarb" };
	static const unsigned long long hup = 1u << (SIGHUP - 1), interrupt = 1u << (SIGINT - 1);
	int status, tries;
	size_t i;
	pid_t pid;

	(void)state;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		pid = start_without_hangup(commands[i]);
		for (tries = 0; tries < 20000 && (signals_of(pid, "SigCgt") & interrupt) == 0;
			tries++)
			usleep(1000);
		if (tries == 20000)
			print_error("%s does not catch SIGINT\n", commands[i]);
		assert_true(tries < 20000);
		/* SIGHUP is the first to be caught */
		assert_true((signals_of(pid, "SigIgn") & hup) != 0);
		kill(pid, SIGHUP);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		kill(pid, SIGINT);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_false(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_align),
		cmocka_unit_test(test_a_wide_table_parts_its_names),
		cmocka_unit_test(test_ids_look_the_same_everywhere),
		cmocka_unit_test(test_json_is_the_result_itself),
		cmocka_unit_test(test_exit_status_tells_what_failed),
		cmocka_unit_test(test_a_server_that_does_not_answer_is_no_reply),
		cmocka_unit_test(test_a_late_reply_is_not_taken_for_another),
		cmocka_unit_test(test_lists_are_followed_to_their_end),
		cmocka_unit_test(test_warnings_are_not_in_the_way),
		cmocka_unit_test(test_help_teaches_with_and_without_a_server),
		cmocka_unit_test(test_help_is_a_word_too),
		cmocka_unit_test(test_typing_errors_are_answered_with_what_was_meant),
		cmocka_unit_test(test_errors_name_options_as_they_are_written),
		cmocka_unit_test(test_a_socket_that_does_not_answer_is_explained),
		cmocka_unit_test(test_port_list_keeps_one_shape),
		cmocka_unit_test(test_bash_completes_from_the_method_table),
		cmocka_unit_test(test_completion_says_whether_more_may_follow),
		cmocka_unit_test(test_sa_records_print_as_blocks_lines_or_json),
		cmocka_unit_test(test_sa_status_is_told_by_name_and_exit_status),
		cmocka_unit_test(test_an_sa_query_that_is_interrupted_is_cancelled),
		cmocka_unit_test(test_an_sa_query_that_takes_long_says_so),
		cmocka_unit_test(test_sa_export_is_what_an_import_reads),
		cmocka_unit_test(test_sa_commands_have_help_and_completion),
		cmocka_unit_test(test_smp_get_prints_a_component_a_line),
		cmocka_unit_test(test_smp_errors_say_what_is_allowed),
		cmocka_unit_test(test_traps_and_lids_are_tables),
		cmocka_unit_test(test_ping_tells_each_answer_and_what_it_comes_to),
		cmocka_unit_test(test_ping_without_any_answer_exits_with_1),
		cmocka_unit_test(test_ping_f_goes_on_as_fast_as_it_can),
		cmocka_unit_test(test_ping_says_what_its_options_may_be),
		cmocka_unit_test(test_watch_tells_changes_and_figures),
		cmocka_unit_test(test_watch_takes_endports_from_a_file),
		cmocka_unit_test(test_watch_says_what_its_options_may_be),
		cmocka_unit_test(test_ping_sums_up_when_it_is_interrupted),
		cmocka_unit_test(test_ping_ends_at_its_deadline),
		cmocka_unit_test(test_ping_as_json_is_one_object),
		cmocka_unit_test(test_live_ping_exits_as_ping_does),
		cmocka_unit_test(test_services_are_a_table_of_what_is_not_0),
		cmocka_unit_test(test_connect_waits_for_the_exchanges_it_was_asked_for),
		cmocka_unit_test(test_connect_says_who_does_not_want_it),
		cmocka_unit_test(test_who_interrupts_connect_ends_the_connection),
		cmocka_unit_test(test_a_reply_that_comes_with_a_signal_is_read),
		cmocka_unit_test(test_connect_finds_its_service_among_a_thousand_others),
		cmocka_unit_test(test_connect_fails_if_it_does_not_see_the_end),
		cmocka_unit_test(test_connect_without_count_stays_until_a_signal),
		cmocka_unit_test(test_connections_are_a_table),
		cmocka_unit_test(test_nohup_keeps_a_command_running),
		cmocka_unit_test(test_bash_completes_values_from_the_server),
	};

	if (argc != 3)
		return 2;
	program = argv[1];
	completion = argv[2];
	return cmocka_run_group_tests(tests, cli_start, cli_finish);
}
