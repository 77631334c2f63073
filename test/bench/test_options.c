/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* polca-bench's command line: accepted options, and the texts of errors. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../app/polca-bench/options.h"

static struct bench_options o;
static struct parsed p;
static struct error err;

static int
bench_options_parse(const char *line)
{
	static char text[512];
	char *argv[32], *save = NULL;
	int argc = 0;

	strcpy(text, line);
	argv[argc++] = text + sizeof(text) - 1;
	for (argv[argc] = strtok_r(text, " ", &save); argv[argc] != NULL;
		argv[argc] = strtok_r(NULL, " ", &save))
		argc++;
	err.text[0] = '\0';
	return options_parse(&o, &p, argc, argv, &err);
}

static void
options_refused(const char *line, const char *why)
{
	assert_true(bench_options_parse(line) < 0);
	assert_string_equal(err.text, why);
}

static void
test_the_ways_to_write_an_option(void **state)
{
	static const char *const lines[] = { "send -s 4096", "send -s4096", "send --size 4096",
		"send --size=4096", "--size 4096 -- send", "-s 4K send", "send -s 0x1000",
		"send -bs4k" };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(bench_options_parse(lines[i]), 0);
		assert_int_equal(o.size, 4096);
		assert_int_equal(p.words, 1);
		assert_string_equal(p.word[0], "send");
	}
	assert_true(o.bidirectional);
}

static void
test_flags_and_defaults(void **state)
{
	(void)state;
	assert_int_equal(bench_options_parse("write lat"), 0);
	assert_string_equal(p.word[1], "lat");
	assert_true(o.icrc && o.hugepages && o.rehome && !o.json && !o.check);
	assert_string_equal(o.link, "memory");
	assert_int_equal(bench_options_parse("send --no-icrc --no-huge --json --no-rehome"), 0);
	assert_false(o.icrc || o.hugepages || o.rehome);
	assert_true(o.json);
}

static void
test_what_is_wrong_is_said(void **state)
{
	(void)state;
	options_refused("send -s 0", "-s, --size: got 0, allowed: integer 1..1073741824");
	options_refused("send -s 2G", "-s, --size: got 2147483648, allowed: integer 1..1073741824");
	options_refused("send -q many",
		"-q, --qp: got \"many\", allowed: integer 1..1000000; K, M or G behind a number stand for "
		"2^10, 2^20 and 2^30: 4K is 4096");
	options_refused("send -D 0",
		"-D, --duration: got 0, allowed: number above 0, at most 1000000");
	options_refused("send -D nan",
		"-D, --duration: got \"nan\", allowed: number above 0, at most 1000000");
	options_refused("send -D inf",
		"-D, --duration: got \"inf\", allowed: number above 0, at most 1000000");
	options_refused("send -n 0xffffffffffffffff",
		"-n, --iters: got \"0xffffffffffffffff\", allowed: integer 1..9223372036854775807");
	options_refused("atomic -A add",
		"-A, --atomic_type: got \"add\", allowed: one of fetch-add, cmp-swap");
	options_refused("send -z", "there is no option -z");
	options_refused("send --sise 5", "there is no option --sise; did you mean --size?");
	options_refused("send --sise=5", "there is no option --sise; did you mean --size?");
	options_refused("send -bz", "there is no option -z");
	options_refused("send --json -zb", "there is no option -z");
	options_refused("send --r", "there is no option --r");
	options_refused("send --coffee", "there is no option --coffee");
	options_refused("send --json=yes", "--json: takes no value, got \"yes\"");
	options_refused("send -D",
		"-D, --duration: wants SECONDS: time to measure each size (default 1)");
	options_refused("a b c d e", "\"e\": too many words");
	options_refused("send --crc=",
		"--crc: wants NAME: CRC kernel: portable, pclmul, vpclmul (default: "
		"the last one that the CPU has)");
}

static void
test_an_option_of_another_command(void **state)
{
	(void)state;
	assert_int_equal(bench_options_parse("server -s 64"), 0);
	assert_true(options_allowed(&p, "server", TAKES_COMMON | TAKES_LINK, &err) < 0);
	assert_string_equal(err.text, "-s, --size: is no option of server");
	assert_int_equal(options_allowed(&p, "send", TAKES_TRAFFIC, &err), 0);
}

static int
bench_options_complete(enum bench_verb verb, enum bench_mode mode, const char *line)
{
	assert_int_equal(bench_options_parse(line), 0);
	o.verb = verb;
	o.mode = mode;
	return options_complete(&o, &err);
}

/* perftest's defaults, where it has one */
static void
test_what_is_not_said(void **state)
{
	(void)state;
	assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_BW, "send"), 0);
	assert_int_equal(o.size, 65536);
	assert_int_equal(o.qps, 1);
	assert_int_equal(o.depth, 128);
	assert_int_equal(o.rx_depth, 256);
	assert_int_equal(o.mtu, 4096);
	assert_int_equal(bench_options_complete(BENCH_WRITE, BENCH_LAT, "write"), 0);
	assert_int_equal(o.size, 2);
	assert_int_equal(o.depth, 1);
	assert_int_equal(bench_options_complete(BENCH_READ, BENCH_BW, "read"), 0);
	assert_int_equal(o.depth, 16);
	assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_BW, "send -a"), 0);
	assert_int_equal(o.size, 8 << 20);
	assert_int_equal(o.timeout, 18);
	assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_BW, "send --loss 4096"), 0);
	assert_int_equal(o.timeout, 14);
	assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_BW, "send --loss 4096 -u 20"), 0);
	assert_int_equal(o.timeout, 20);
	assert_int_equal(bench_options_complete(BENCH_ATOMIC, BENCH_BW, "atomic"), 0);
	assert_int_equal(o.size, 8);
	assert_true(o.seconds == 1);
	assert_int_equal(o.iterations, 0);
}

/* perftest's servers count: 1000 messages on each queue pair, 5000 of ib_write_bw. */
static void
test_how_often_with_a_server_that_counts(void **state)
{
	(void)state;
	assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_BW, "send --perftest h -q 3"), 0);
	assert_int_equal(o.iterations, 3000);
	assert_int_equal(bench_options_complete(BENCH_WRITE, BENCH_BW, "write --perftest h"), 0);
	assert_int_equal(o.iterations, 5000);
	assert_int_equal(bench_options_complete(BENCH_WRITE, BENCH_LAT, "write --perftest h"), 0);
	assert_int_equal(o.iterations, 1000);
	assert_int_equal(bench_options_complete(BENCH_READ, BENCH_BW, "read --perftest h -D 2"), 0);
	assert_int_equal(o.iterations, 0);
	assert_int_equal(bench_options_complete(BENCH_READ, BENCH_BW,
				 "read -n 7 --link net_x --peer gid=1,qpn=2"),
		0);
	assert_true(options_given(&o));
	assert_int_equal(bench_options_complete(BENCH_READ, BENCH_BW,
				 "read -n 7 --link net_x --peer /tmp/a=b"),
		0);
	assert_false(options_given(&o));
	assert_int_equal(o.iterations, 7);
}

static void
does_not_go(enum bench_verb verb, enum bench_mode mode, const char *line, const char *why)
{
	assert_true(bench_options_complete(verb, mode, line) < 0);
	assert_string_equal(err.text, why);
}

static void
test_what_does_not_go_together(void **state)
{
	(void)state;
	does_not_go(BENCH_ATOMIC, BENCH_BW, "atomic -s 16",
		"atomic: an operand has 8 bytes: leave out -s and -a");
	does_not_go(BENCH_SEND, BENCH_BW, "send -m 1000",
		"-m, --mtu: got 1000, allowed: 256, 512, 1024, 2048, 4096");
	does_not_go(BENCH_SEND, BENCH_BW, "send -t 8 -Q 16",
		"-Q, --cq-mod: got 16, allowed: up to -t (8): the queue would fill without a completion");
	does_not_go(BENCH_SEND, BENCH_BW, "send -n 5 -D 5",
		"-n, --iters and -D, --duration exclude each other");
	does_not_go(BENCH_READ, BENCH_BW, "read -I 64",
		"-I, --inline_size: only of send and write: a Read or an Atomic carries no data of ours");
	does_not_go(BENCH_ATOMIC, BENCH_BW, "atomic -b --check",
		"--check: of atomic one way only: leave out -b");
	does_not_go(BENCH_READ, BENCH_BW, "read -Q 2 --check",
		"--check: what a Read brought is compared when it is told to be done: leave out -Q");
	does_not_go(BENCH_SEND, BENCH_BW, "send -w 2 -q 2 --link memif",
		"--lcores and -w, --workers: with --link memory only; else each end has one lcore");
	does_not_go(BENCH_SEND, BENCH_BW, "send --lcores 2 --link net_x --peer 10.0.0.2:5",
		"--lcores and -w, --workers: with --link memory only; else each end has one lcore");
	does_not_go(BENCH_SEND, BENCH_BW, "send --handoff 50",
		"--handoff: got 50 without -w, --workers 2 or more");
	does_not_go(BENCH_SEND, BENCH_BW, "send -w 2 --lcores 2 -q 2",
		"--lcores and -w, --workers exclude each other: each worker is an lcore with both ends");
	does_not_go(BENCH_SEND, BENCH_BW, "send -w 2",
		"-w, --workers: got 2 for 1 queue pair: more with -q");
	does_not_go(BENCH_SEND, BENCH_LAT, "send -q 2",
		"lat: one message at a time on one queue pair: leave out -q, -t and -Q");
	does_not_go(BENCH_SEND, BENCH_LAT, "send -b",
		"lat: a ping-pong goes both ways: leave out -b");
	does_not_go(BENCH_SEND, BENCH_LAT, "send --loss 100",
		"--loss: for one size in memory: leave out lat, -a, --roofline and --link");
	does_not_go(BENCH_WRITE, BENCH_BW, "write -a --loss 100",
		"--loss: for one size in memory: leave out lat, -a, --roofline and --link");
	does_not_go(BENCH_WRITE, BENCH_BW, "write --loss 100 --link memif",
		"--loss: for one size in memory: leave out lat, -a, --roofline and --link");
	does_not_go(BENCH_READ, BENCH_LAT, "read --verbs polca0",
		"--verbs: of send, send lat, write, read and atomic");
	does_not_go(BENCH_SEND, BENCH_BW, "send --verbs polca0 -n 5",
		"--verbs: leave out -n, --link, --loss, --beside, --roofline and --no-icrc");
	does_not_go(BENCH_SEND, BENCH_BW, "send --verbs polca0 -Q 3",
		"--verbs: -t, --tx-depth: got 128, allowed: multiples of -Q (3)");
	does_not_go(BENCH_SEND, BENCH_BW, "send --beside 1M",
		"--beside: for send lat and one size in memory: leave out -a and --link");
	does_not_go(BENCH_READ, BENCH_LAT, "read --beside 1M",
		"--beside: for send lat and one size in memory: leave out -a and --link");
	does_not_go(BENCH_WRITE, BENCH_BW, "write --no-rehome",
		"--no-rehome: wants -w, --workers 2 or more");
	does_not_go(BENCH_SEND, BENCH_BW, "send --plot x.svg",
		"--plot: draws figures over message sizes: wants -a, --all (with -s for the largest size)");
	does_not_go(BENCH_SEND, BENCH_BW, "send --peer /tmp/x",
		"--peer: got \"/tmp/x\", but with --link memory there is no second process: "
		"--link memif or DEVICE");
	does_not_go(BENCH_SEND, BENCH_BW, "send -R", "-R, --rdma_cm: wants --perftest");
	does_not_go(BENCH_SEND, BENCH_BW, "send --perftest h -a",
		"--perftest: leave out -a, -b, -w, --lcores, --check and --connect");
	does_not_go(BENCH_SEND, BENCH_BW, "send --perftest h -q 2 -n 7",
		"-n, --iters: got 7, allowed: multiples of -q times -Q (2) with --perftest");
	does_not_go(BENCH_SEND, BENCH_BW, "send --perftest h --link net_x --peer -",
		"--perftest: leave out --peer");
	does_not_go(BENCH_SEND, BENCH_BW, "send --link net_x --peer - -q 2",
		"--peer gid=...: is one queue pair: leave out -q");
	does_not_go(BENCH_WRITE, BENCH_LAT, "write --link net_x --peer -",
		"--peer gid=...: nobody answers a Write there: read lat or send lat");
	does_not_go(BENCH_WRITE, BENCH_LAT, "write --check",
		"write lat: the last byte is the signal, --check compares Sends and Reads");
}

/* A device's frames have 1500 bytes, mostly: no PMTU of 4096 by default. */
static void
test_a_device_is_known_by_its_name(void **state)
{
	static const struct {
		const char *line;
		bool device, pci;
		uint32_t mtu;
	} lines[] = {
		{ "send", false, false, 4096 },
		{ "send --link memif,socket=/tmp/a:b --peer /tmp/c", false, false, 4096 },
		{ "send --link net_af_packet0,iface=eth1", true, false, 1024 },
		{ "send --link net_tap0,mac=02:00:00:00:00:01", true, false, 1024 },
		{ "send --link eth_af_packet0,iface=eth0:1", false, false, 4096 },
		{ "send --link 0000:3b:00.0", true, true, 1024 },
		{ "send --link 3b:00.0 -m 2048", true, true, 2048 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_BW, lines[i].line), 0);
		assert_int_equal(options_device(&o), lines[i].device);
		assert_int_equal(options_pci(&o), lines[i].pci);
		assert_int_equal(o.mtu, lines[i].mtu);
	}
}

static void
test_what_a_service_does_not_do(void **state)
{
	(void)state;
	does_not_go(BENCH_SEND, BENCH_BW, "send --connect 10.0.0.1 -b",
		"--connect: leave out -b, -w, --peer and --lcores");
	does_not_go(BENCH_WRITE, BENCH_LAT, "write --connect 10.0.0.1",
		"--connect: nobody answers a Write there: read lat or send lat");
	does_not_go(BENCH_WRITE, BENCH_BW, "write --connect 10.0.0.1 --check",
		"--check: with --connect only of send lat, whose messages come back");
	assert_int_equal(bench_options_complete(BENCH_SEND, BENCH_LAT,
				 "send --connect 10.0.0.1 --check"),
		0);
}

/* A row each is found by its name and by its letter, and by no other's. */
static void
test_no_name_or_letter_twice(void **state)
{
	unsigned int i, k;

	(void)state;
	assert_true(option_count <= 64); /* bits of .given */
	for (i = 0; i < option_count; i++) {
		for (k = 0; k < i; k++) {
			assert_string_not_equal(option_rows[i].row.name, option_rows[k].row.name);
			if (option_rows[i].letter != 0)
				assert_int_not_equal(option_rows[i].letter, option_rows[k].letter);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_ways_to_write_an_option),
		cmocka_unit_test(test_flags_and_defaults),
		cmocka_unit_test(test_what_is_wrong_is_said),
		cmocka_unit_test(test_an_option_of_another_command),
		cmocka_unit_test(test_what_is_not_said),
		cmocka_unit_test(test_how_often_with_a_server_that_counts),
		cmocka_unit_test(test_what_does_not_go_together),
		cmocka_unit_test(test_a_device_is_known_by_its_name),
		cmocka_unit_test(test_what_a_service_does_not_do),
		cmocka_unit_test(test_no_name_or_letter_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
