/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* polca-ctl: from words to parameters, by the real method table. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "args.h"
#include "commands.h"
#include "methods.h"
#include "units.h"

static json_t *methods;
static char why[2048];

/* Split a line at blanks and parse it. */
static json_t *
parse(const char *line)
{
	static char copy[1024];
	char *words[64], *w;
	json_t *m;
	int used, num = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (w = strtok(copy, " "); w != NULL; w = strtok(NULL, " "))
		words[num++] = w;
	m = methods_match(methods, words, num, &used);
	assert_non_null(m);
	return args_params(m, words + used, num - used, why, sizeof(why));
}

static void
line_gives(const char *line, const char *params)
{
	json_t *got = parse(line), *want = json_loads(params, 0, NULL);
	char *text;

	if (got == NULL)
		print_error("%s: %s\n", line, why);
	assert_non_null(got);
	assert_non_null(want);
	if (!json_equal(got, want)) {
		text = json_dumps(got, 0);
		print_error("%s gives %s\n", line, text);
		free(text);
	}
	assert_true(json_equal(got, want));
	json_decref(got);
	json_decref(want);
}

static void
refuses(const char *line, const char *words)
{
	json_t *got = parse(line);

	assert_null(got);
	if (strstr(why, words) == NULL)
		print_error("%s\n", why);
	assert_non_null(strstr(why, words));
}

static void
test_nouns_and_verbs_name_methods(void **state)
{
	(void)state;
	line_gives("pd create", "{}");
	line_gives("pd_create", "{}");
	line_gives("log level get", "{}");
	line_gives("log_level get", "{}");
	line_gives("log-level get", "{}");
	line_gives("events --max 3", "{\"max\": 3}");
}

static void
test_numbers(void **state)
{
	(void)state;
	line_gives("mr register --pd 1 --length 4096", "{\"pd\": 1, \"length\": 4096}");
	line_gives("mr register --pd 0x10 --length=4K", "{\"pd\": 16, \"length\": 4096}");
	line_gives("mr register --pd 1 --length 3M", "{\"pd\": 1, \"length\": 3145728}");
	line_gives("mr register --pd 1 --length 2g", "{\"pd\": 1, \"length\": 2147483648}");
	line_gives("mr register --pd 010", "{\"pd\": 10}"); /* no octal surprise */
	line_gives("mr register --pd 1 --va 0x7fffffffffffffff",
		"{\"pd\": 1, \"va\": 9223372036854775807}");
	line_gives("mr register --pd 1 --va 0x8000000000000000",
		"{\"pd\": 1, \"va\": \"0x8000000000000000\"}");
	line_gives("mr register --pd 1 --va 18446744073709551615",
		"{\"pd\": 1, \"va\": \"0xffffffffffffffff\"}");
	refuses("mr register --pd one", "wanted a number");
	refuses("mr register --pd 1+", "wanted a number");
	refuses("mr register --pd +1", "wanted a number");
	refuses("mr register --pd 1++1", "wanted a number");
	refuses("mr register 1 --va 0xffffffffffffffff+1", "wanted a number");
	refuses("mr register --pd -1", "wanted a number");
	refuses("mr register --pd 1x", "wanted a number");
	refuses("mr register --pd 1KB", "K, M or G behind a number stand for 2^10, 2^20 and 2^30");
	refuses("mr register --pd 18446744073709551616", "wanted a number");
	refuses("mr register --pd 0xffffffffffffffffK", "wanted a number");
}

/* An address and an offset may be added on the command line. */
static void
test_sums(void **state)
{
	(void)state;
	line_gives("post send 5 --opcode RDMA_WRITE --remote-addr 0x7f0000000000+1024 --rkey 1",
		"{\"qp_num\": 5, \"wr\": [{\"opcode\": \"RDMA_WRITE\", \"rkey\": 1,"
		" \"remote_addr\": 139637976728576}]}");
	line_gives("post send 5 --opcode READ --sg-list key=1,addr=4096+0x10+1K,length=4K",
		"{\"qp_num\": 5, \"wr\": [{\"opcode\": \"READ\", \"sg_list\":"
		" [{\"key\": 1, \"addr\": 5136, \"length\": 4096}]}]}");
	line_gives("mr register 1 --va 0x7fffffffffffffff+1",
		"{\"pd\": 1, \"va\": \"0x8000000000000000\"}");
}

/* ping, live ping and qp connect take the same forms of an address. */
static void
test_addresses(void **state)
{
	(void)state;
	line_gives("live ping 10.0.0.2", "{\"dgid\": \"10.0.0.2\"}");
	line_gives("live ping fe80::2 --count 2", "{\"dgid\": \"fe80::2\", \"count\": 2}");
	line_gives("live ping lid:0x5", "{\"dlid\": 5}");
	line_gives("live ping 5", "{\"dlid\": 5}");
	line_gives("live ping --dlid 5", "{\"dlid\": 5}");
	line_gives("qp connect 17 5 18 1",
		"{\"qp_num\": 17, \"dlid\": 5, \"dest_qp_num\": 18, \"rq_psn\": 1}");
	line_gives("sa table node --to lid:5", "{\"record\": \"node\", \"dlid\": 5}");
	refuses("live ping nobody",
		"got \"nobody\", allowed: an IPv4 or IPv6 address (a GID), or a LID as lid:5 or 5");
	refuses("live ping lid:0xc000", "up to 0xbfff");
	refuses("live ping", "--dgid is missing");
}

static void
test_flags_and_switches(void **state)
{
	(void)state;
	line_gives("mr register 1 --access LOCAL_WRITE,REMOTE_READ --hugepages",
		"{\"pd\": 1, \"access\": [\"LOCAL_WRITE\", \"REMOTE_READ\"], \"hugepages\": true}");
	line_gives("qp create 1 2 --no-sq-sig-all --flow-control=no --migreq=true",
		"{\"pd\": 1, \"send_cq\": 2, \"sq_sig_all\": false, \"flow_control\": false,"
		" \"migreq\": true}");
	refuses("qp create 1 2 --migreq=maybe", "wanted true or false");
	refuses("qp create 1 2 --no-worker", "no option");
}

static void
test_first_values_are_the_required_parameters(void **state)
{
	(void)state;
	line_gives("qp connect 17 10.0.0.2 18 4711 --port 1",
		"{\"qp_num\": 17, \"dgid\": \"10.0.0.2\", \"dest_qp_num\": 18, \"rq_psn\": 4711,"
		" \"port\": 1}");
	line_gives("qp connect --dgid 10.0.0.2 17 18 --rq-psn 1",
		"{\"qp_num\": 17, \"dgid\": \"10.0.0.2\", \"dest_qp_num\": 18, \"rq_psn\": 1}");
	refuses("qp connect 17 10.0.0.2 18", "--rq-psn is missing");
	/* of a native InfiniBand port a LID in the address' place, or an option of its own */
	line_gives("qp connect 17 lid:0x10 18 4711",
		"{\"qp_num\": 17, \"dlid\": 16, \"dest_qp_num\": 18, \"rq_psn\": 4711}");
	line_gives("qp connect 17 18 4711 --dlid 2",
		"{\"qp_num\": 17, \"dlid\": 2, \"dest_qp_num\": 18, \"rq_psn\": 4711}");
	line_gives("qp connect 17 18 4711 --dgid fe80::2 --dlid 2",
		"{\"qp_num\": 17, \"dgid\": \"fe80::2\", \"dlid\": 2, \"dest_qp_num\": 18,"
		" \"rq_psn\": 4711}");
	refuses("qp connect 17 lid: 18 4711", "dgid: got \"lid:\", allowed: an IPv4");
	refuses("qp connect 17 --dest-qp-num 18 --rq-psn 4711", "--dgid is missing");
	line_gives("qp connect 10.0.0.2 18 4711 --qp-num 17",
		"{\"qp_num\": 17, \"dgid\": \"10.0.0.2\", \"dest_qp_num\": 18, \"rq_psn\": 4711}");
	refuses("qp show 17 18", "\"18\" is one value too many: \"qp show\" takes qp_num,");
	refuses("pd create 5", "\"pd create\" takes no value");
	refuses("pd create --pd 5", "no option of \"pd create\"; see polca-ctl pd create --help");
	refuses("qp show --qp-num", "wants a value: integer 0..16777215");
}

static void
test_fields_of_objects_are_options_too(void **state)
{
	(void)state;
	line_gives(
		"post send 17 --opcode RDMA_WRITE --sg-list key=0x10,length=4K --sg-list lkey=1,addr=0x1000,length=1"
		" --remote-addr 0x2000 --rkey 7 --send-flags FENCE,SIGNALED",
		"{\"qp_num\": 17, \"wr\": [{\"opcode\": \"RDMA_WRITE\", \"sg_list\": [{\"key\": 16,"
		" \"length\": 4096}, {\"lkey\": 1, \"addr\": 4096, \"length\": 1}],"
		" \"remote_addr\": 8192, \"rkey\": 7, \"send_flags\": [\"FENCE\", \"SIGNALED\"]}]}");
	line_gives(
		"post send 17 --wr opcode=SEND,wr_id=1 --wr opcode=SEND --wr-id 2 --inline-data 00ff",
		"{\"qp_num\": 17, \"wr\": [{\"opcode\": \"SEND\", \"wr_id\": 1},"
		" {\"opcode\": \"SEND\", \"wr_id\": 2, \"inline_data\": \"00ff\"}]}");
	line_gives(
		"post send 17 --opcode BIND_MW --bind-mw mw_key=1,mr_key=2,access=REMOTE_READ+REMOTE_WRITE",
		"{\"qp_num\": 17, \"wr\": [{\"opcode\": \"BIND_MW\", \"bind_mw\": {\"mw_key\": 1,"
		" \"mr_key\": 2, \"access\": [\"REMOTE_READ\", \"REMOTE_WRITE\"]}}]}");
	line_gives("post recv 17 --wr [{\"wr_id\":5},{\"wr_id\":6}] --wr {\"wr_id\":7}",
		"{\"qp_num\": 17, \"wr\": [{\"wr_id\": 5}, {\"wr_id\": 6}, {\"wr_id\": 7}]}");
	line_gives("qp modify 17 --dgid 10.0.0.9 --sl 3",
		"{\"qp_num\": 17, \"ah_attr\": {\"dgid\": \"10.0.0.9\", \"sl\": 3}}");
	/* of the address and of the alternate one */
	line_gives(
		"qp modify 17 --alt-dgid 10.0.1.9 --alt-port 1 --alt_timeout 15 --path-mig-state REARM",
		"{\"qp_num\": 17, \"alt_ah_attr\": {\"dgid\": \"10.0.1.9\", \"port\": 1},"
		" \"alt_timeout\": 15, \"path_mig_state\": \"REARM\"}");
	line_gives("qp modify 17 --dgid 10.0.0.9 --alt-ah-attr dgid=10.0.1.9,sl=2",
		"{\"qp_num\": 17, \"ah_attr\": {\"dgid\": \"10.0.0.9\"},"
		" \"alt_ah_attr\": {\"dgid\": \"10.0.1.9\", \"sl\": 2}}");
	refuses("qp modify 17 --alt-qp-state RTS", "is no option");
	/* its own parameter comes before the one inside ah_attr */
	line_gives("qp modify 17 --port 1", "{\"qp_num\": 17, \"port\": 1}");
	/* length is a field of sg_list and of bind_mw */
	refuses("post send 17 --opcode SEND --length 5", "could mean several fields");
	refuses("post send 17 --opcode SEND --sg-list key=1,size=5", "got \"size=5\"");
	refuses("post send 17 --opcode SEND --sg-list 5", "wanted FIELD=VALUE");
	refuses("post send 17 --wr {\"opcode\"", "no JSON");
}

static void
test_values_carry_the_units_of_their_names(void **state)
{
	static const struct {
		const char *name;
		const char *value;
		const char *want;
	} cases[] = {
		{ "length", "1048576", "1 MiB" },
		{ "length", "1000", "1000 B" },
		{ "rx_bytes", "1063440", "1.01 MiB" },
		{ "rx_bytes", "0", "0 B" },
		{ "busy_share", "0.256", "25.6 %" },
		{ "longest_gap_us", "621981.4", "622 ms" },
		{ "heartbeat_age_us", "204", "204 us" },
		{ "age_ms", "12000", "12.0 s" },
		{ "age_ms", "0", "0" },
		{ "key", "26", "0x0000001a" },
		{ "speed_mbps", "25000", "25 Gb/s" },
		{ "speed_mbps", "2500", "2500 Mb/s" },
		{ "mtu", "1500", "1500 B" },
		{ "timeout", "14", "14 (67 ms)" }, /* 4.096 us * 2^14 */
		{ "timeout", "0", "0 (never)" },
		{ "min_rnr_timer", "0", "0 (655.36 ms)" },
		{ "min_rnr_timer", "12", "12 (0.64 ms)" },
		{ "min_rnr_timer", "31", "31 (491.52 ms)" },
		{ "wr_id", "7", "7" },
		{ "vlan", "null", "-" },
		{ "stalled", "true", "yes" },
		{ "access", "[\"A\",\"B\"]", "A, B" },
		{ "pkeys", "[65535,32767]", "0xffff, 0x7fff" },
		{ "gids", "[{\"index\":0,\"gid\":\"10.0.0.1\"}]", "10.0.0.1" },
	};
	char cell[128];
	json_t *v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		v = json_loads(cases[i].value, JSON_DECODE_ANY, NULL);
		units_print(cases[i].name, v, cell, sizeof(cell));
		assert_string_equal(cell, cases[i].want);
		json_decref(v);
	}
}

/* The label of a value that carries its unit does not name one. */
static void
test_labels_name_no_unit(void **state)
{
	static const char *const cases[][2] = { { "speed_mbps", "speed" }, { "age_ms", "age" },
		{ "longest_gap_us", "longest_gap" }, { "elapsed_us", "elapsed" },
		{ "handoff_percent", "handoff_percent" }, { "rx_bytes", "rx_bytes" },
		{ "status", "status" }, { "lkey", "lkey" } };
	char label[32];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(units_label(cases[i][0], label, sizeof(label)), cases[i][1]);
}

static int
load(void **state)
{
	(void)state;
	methods = methods_load(NULL, 0);
	commands_add(methods);
	return methods == NULL;
}

static int
unload(void **state)
{
	(void)state;
	json_decref(methods);
	return 0;
}

/* as ping has them: values with or without a blank, flags together */
static void
test_options_of_one_letter(void **state)
{
	(void)state;
	line_gives("ping 5 -c 3 -W 0.5", "{\"dest\": \"5\", \"count\": 3, \"timeout\": \"0.5\"}");
	line_gives("ping -c3 -s 1K 5", "{\"dest\": \"5\", \"count\": 3, \"size\": 1024}");
	line_gives("ping 5 -qfc 3",
		"{\"dest\": \"5\", \"count\": 3, \"quiet\": true, \"flood\": true}");
	refuses("ping 5 -c", "-c, --count wants a value: integer from 1");
	refuses("ping 5 -q3", "-q takes no value");
	refuses("ping 5 -z 3", "-z is no option of \"ping\"");
	refuses("cq create -d 5", "-d is no option of \"cq create\"");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nouns_and_verbs_name_methods),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_flags_and_switches),
		cmocka_unit_test(test_first_values_are_the_required_parameters),
		cmocka_unit_test(test_fields_of_objects_are_options_too),
		cmocka_unit_test(test_options_of_one_letter),
		cmocka_unit_test(test_values_carry_the_units_of_their_names),
		cmocka_unit_test(test_labels_name_no_unit),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
