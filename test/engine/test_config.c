/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The configuration: accepted values, the resulting settings, and the text of every kind of error.
 */

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_log.h>

#include "config.h"
#include "config_reload.h"
#include "eal.h"

#define PORTS                                                                                      \
	"\"ports\": [{\"name\": \"a\", \"back_to_back\": \"b\"}, "                                 \
	"{\"name\": \"b\", \"back_to_back\": \"a\"}]"
#define ONE(rest) "{\"ports\": [{\"name\": \"a\", \"device\": \"net_null0\"" rest "}]}"

static struct config config;

static struct config_errors errs;

/* Write all errors into buf. */
static void
config_printed(char *buf, size_t size)
{
	FILE *f = fmemopen(buf, size, "w");

	config_errors_print(&errs, f);
	fclose(f);
}

/* The configuration, one line of text, is refused with this one error. */
static void
config_refused(const char *text, const char *words)
{
	char all[1024] = "", expected[1024];

	assert_int_not_equal(config_load(&config, NULL, text, &errs), 0);
	config_printed(all, sizeof(all));
	snprintf(expected, sizeof(expected), "polca: configuration:1: %s\n", words);
	assert_string_equal(all, expected);
}

static void
config_taken(const char *text)
{
	char all[4096] = "";

	if (config_load(&config, NULL, text, &errs) != 0) {
		config_printed(all, sizeof(all));
		fail_msg("%s", all);
	}
}

/* The file is refused with these lines, where "FILE" stands for its name. */
static void
file_refused(const char *text, const char *words)
{
	char path[] = "/tmp/polca-test-config-XXXXXX", all[4096] = "", expected[4096];
	size_t n = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	assert_int_not_equal(config_load(&config, path, NULL, &errs), 0);
	unlink(path);
	config_printed(all, sizeof(all));
	for (; *words != '\0'; words++)
		if (strncmp(words, "FILE", 4) == 0) {
			n += (size_t)sprintf(expected + n, "%s", path);
			words += 3;
		} else {
			expected[n++] = *words;
		}
	expected[n] = '\0';
	assert_string_equal(all, expected);
}

static void
test_syntax_error_names_line_and_column(void **state)
{
	(void)state;
	mallopt(M_PERTURB, 'x'); /* memory is not zero by chance */
	file_refused("{\n  \"ports\": [,]\n}\n", "polca: FILE:2:13: unexpected token near ','\n");
	file_refused("",
		"polca: FILE:1:1: the file is empty, allowed: a JSON object such as {\"ports\": [...]}; examples are in config/\n");
	mallopt(M_PERTURB, 0);
}

static void
test_passwords_in_endpoints_are_not_repeated(void **state)
{
	static const char *const urls[] = { "http://user:s3cret@10.0.0.1:2379",
		"user:s3cret@10.0.0.1", "https://s3cret@[::1]:2379" };
	char text[512], all[1024] = "";
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text),
			"{\"sa\": {\"enabled\": true, \"path\": \"/x\"}, \"fleet\": {\"endpoints\": [\"%s\"]}, " PORTS
			"}",
			urls[i]);
		config_init(&config);
		assert_int_not_equal(config_load(&config, NULL, text, &errs), 0);
		config_printed(all, sizeof(all));
		assert_non_null(strstr(all, "fleet.endpoints[0]: has a user before an"));
		assert_null(strstr(all, "s3cret"));
	}
}

#define ETCD "\"endpoints\": [\"http://10.0.0.1:2379\"]"
#define SA   "\"sa\": {\"enabled\": true, \"path\": \"/x\"}, "

/* What a fleet needs, and what its keys need of each other. */
static void
test_errors_of_a_fleet_name_the_key(void **state)
{
	static const struct {
		const char *before, *fleet, *error;
	} cases[] = {
		{ "\"sa\": {\"enabled\": false, \"path\": \"/x\"}, ", ETCD,
			"fleet: needs sa.enabled" },
		{ "", ETCD, "fleet: needs sa.path" },
		{ SA, "\"name\": \"a\"", "fleet.endpoints: none given" },
		{ SA, "\"user\": \"a\", \"password_file\": \"/p\"", "fleet.endpoints: none given" },
		{ SA, ETCD ", \"name\": \"a/b\"", "fleet.name: got \"a/b\"" },
		{ SA, ETCD ", \"prefix\": \"/p/\"", "fleet.prefix: got \"/p/\"" },
		{ SA, ETCD ", \"prefix\": \"\"", "fleet.prefix: got \"\"" },
		{ SA, ETCD ", \"user\": \"a\"", "user and password_file need each other" },
		{ SA, ETCD ", \"password_file\": \"/p\"",
			"user and password_file need each other" },
		{ SA, ETCD ", \"cert_file\": \"/c\"", "cert_file and key_file need each other" },
		{ SA, "\"endpoints\": [\"10.0.0.1:2379\"]",
			"got \"10.0.0.1:2379\", expected http" },
		{ SA, "\"endpoints\": [\"http://10.0.0.1:2379/\"]", "no slash at the end" },
	};
	char text[512], all[1024];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "{%s\"fleet\": {%s}, " PORTS "}", cases[i].before,
			cases[i].fleet);
		all[0] = '\0';
		config_init(&config);
		assert_int_not_equal(config_load(&config, NULL, text, &errs), 0);
		config_printed(all, sizeof(all));
		if (strstr(all, cases[i].error) == NULL)
			fail_msg("%s: %s", text, all);
	}
}

static void
test_missing_file_is_named(void **state)
{
	char all[256] = "";

	(void)state;
	assert_int_not_equal(config_load(&config, "/nonexistent/polca.json", NULL, &errs), 0);
	config_printed(all, sizeof(all));
	assert_string_equal(all, "polca: /nonexistent/polca.json: No such file or directory\n");
}

static void
test_duplicate_key_is_a_syntax_error(void **state)
{
	(void)state;
	file_refused("{\"ports\": [],\n\"ports\": []}",
		"polca: FILE:2:7: duplicate object key near '\"ports\"'\n");
}

/* Wrong values and combinations are all reported with their lines, in the order of the file. */
static void
test_all_errors_are_reported_at_once(void **state)
{
	(void)state;
	file_refused("{\n"
		     "  \"workers\": { \"count\": \"two\",\n"
		     "    \"idle\":\n"
		     "      \"sleep\" },\n"
		     "  \"color\": \"}] red \\\" ,\",\n"
		     "  \"ports\": [\n"
		     "    { \"name\": \"a\", \"device\": \"net_null0\",\n"
		     "      \"addresses\": [ \"10.0.0.1/24\",\n"
		     "        \"10.0.0.1/16\" ] },\n"
		     "    { \"device\": \"net_null1\", \"vlan\": 4095,\n"
		     "      \"ib\": { \"lids\": [ {}, { \"lid\": 2,\n"
		     "        \"mac\": 7 } ] } },\n"
		     "    {\n"
		     "      \"name\": \"c\" }\n"
		     "  ],\n"
		     "  \"congestion\": { \"min_rate\": 20,\n"
		     "     \"max_rate\": 10 }\n"
		     "}\n",
		"polca: FILE:2: workers.count: got \"two\", allowed: integer 0..128\n"
		"polca: FILE:3: workers.idle: got \"sleep\", allowed: one of poll, backoff\n"
		"polca: FILE:5: color: unknown name, allowed: $schema, control, verbs, metrics, security, "
		"eal, workers, limits, congestion, mad, sa, fleet, sma, live, cm, services, ports, log\n"
		"polca: FILE:9: ports[0].addresses[1]: got \"10.0.0.1\", which "
		"ports[0].addresses[0] has already\n"
		"polca: FILE:10: ports[1].name: missing, allowed: text of at most 31 bytes\n"
		"polca: FILE:10: ports[1].vlan: got 4095, allowed: integer 1..4094\n"
		"polca: FILE:11: ports[1].ib.lids[0].mac: missing, allowed: a unicast MAC address "
		"such as \"02:00:00:00:00:01\"\n"
		"polca: FILE:12: ports[1].ib.lids[1].mac: got 7, allowed: a unicast MAC address "
		"such as \"02:00:00:00:00:01\"\n"
		"polca: FILE:13: ports[2]: got neither device nor back_to_back, allowed: one of them\n"
		"polca: FILE:16: congestion.min_rate: got 20, above max_rate, which is 10\n");
}

/* If a port's name is wrong, its peer does not report in addition that the port is missing. */
static void
test_consequences_of_an_error_are_not_reported(void **state)
{
	(void)state;
	config_refused("{\"ports\": [{\"name\": \"a\", \"back_to_back\": \"b\"}, "
		       "{\"name\": 7, \"back_to_back\": \"a\"}]}",
		"ports[1].name: got 7, allowed: text of at most 31 bytes");
}

static void
test_very_many_errors_are_counted(void **state)
{
	static char text[4096], all[65536];
	const char *end = "polca: configuration: and 50 more errors\n";
	size_t n;
	int i;

	(void)state;
	n = (size_t)sprintf(text, "{");
	for (i = 0; i < 150; i++)
		n += (size_t)sprintf(text + n, "\"k%d\": 0, ", i);
	sprintf(text + n, PORTS "}");
	assert_int_not_equal(config_load(&config, NULL, text, &errs), 0);
	config_printed(all, sizeof(all));
	assert_string_equal(all + strlen(all) - strlen(end), end);
}

/* The lines of errors beyond the list are not computed, as that reads the whole text each time. */
static void
test_errors_beyond_the_list_need_no_line(void **state)
{
	(void)state;
	memset(&errs, 0, sizeof(errs)); /* the text is NULL: reading it would crash */
	errs.num = CONFIG_ERRORS_MAX;
	assert_int_equal(config_error(&errs, "a: got %d", 1), -EINVAL);
	assert_int_equal(config_error(&errs, "b: got %d", 2), -EINVAL);
	assert_int_equal(errs.num, CONFIG_ERRORS_MAX + 2);
}

static void
test_line_of_a_path(void **state)
{
	const char *json = "\n{ \"a\": [1,\n [2, {\n \"b.c\": 3,\n \"b\": {\"c\":\n4}}]],\n"
			   "\"ab\":\n5, \"e\"\n:\n{ \"f\": 6 } }";

	(void)state;
	assert_int_equal(config_line_of(json, "configuration: is wrong"), 2);
	assert_int_equal(config_line_of(json, "a"), 2);
	assert_int_equal(config_line_of(json, "a[0]"), 2);
	assert_int_equal(config_line_of(json, "a[1]"), 3);
	assert_int_equal(config_line_of(json, "a[1][1].b: x"), 5);
	assert_int_equal(config_line_of(json, "a[1][1].b.c"), 4); /* the first of two equal keys */
	assert_int_equal(config_line_of(json, "a[1][1].d"),
		3); /* missing: the line of its object */
	assert_int_equal(config_line_of(json, "a[9]"), 2);
	assert_int_equal(config_line_of(json, "ab: x"), 7);
	assert_int_equal(config_line_of(json, "e: x"), 8);
	assert_int_equal(config_line_of(json, "e.f: x"), 10);
}

static void
test_unknown_key_names_those_allowed(void **state)
{
	char all[1024] = "";

	(void)state;
	config_refused("{\"control\": {\"sock\": \"x\"}, " PORTS "}",
		"control.sock: unknown name, allowed: socket, group, mode, monitor, monitor_group; did you mean socket?");
	config_refused("{\"workers\": {\"n\": 1}, " PORTS "}",
		"workers.n: unknown name, allowed: count, idle, idle_spin_us, idle_sleep_us, "
		"handoff_ring, rehome, stall_ms, icrc_unchecked");
	/* of many names all are listed, and the nearest one is proposed */
	assert_int_not_equal(config_load(&config, NULL, "{\"sa\": {\"pth\": 1}, " PORTS "}", &errs),
		0);
	config_printed(all, sizeof(all));
	assert_non_null(strstr(all, "sa.pth: unknown name, allowed: enabled, path,"));
	assert_non_null(strstr(all, "query_mb; did you mean path?\n"));
}

static void
test_missing_key_is_named(void **state)
{
	(void)state;
	config_refused("{}",
		"ports: missing, allowed: list of 1..32 objects, of name, device, back_to_back, "
		"addresses, leader_addresses, mtu, vlan, rocev1, mac, pkeys, rx_desc, tx_desc, mbufs, promiscuous, "
		"trusted, encapsulation, ib");
	config_refused("{\"ports\": [{\"device\": \"net_null0\"}]}",
		"ports[0].name: missing, allowed: text of at most 31 bytes");
}

static void
test_wrong_type_error_has_value_and_allowed_types(void **state)
{
	(void)state;
	config_refused("[]",
		"configuration: got a list of 0, allowed: object of $schema, control, verbs, metrics, security, "
		"eal, workers, limits, congestion, mad, sa, fleet, sma, live, cm, services, ports, log");
	config_refused("{\"ports\": {}}",
		"ports: got an object, allowed: list of 1..32 objects, of name, device, "
		"back_to_back, addresses, leader_addresses, mtu, vlan, rocev1, mac, pkeys, rx_desc, tx_desc, mbufs, "
		"promiscuous, trusted, encapsulation, ib");
	config_refused("{\"eal\": {\"hugepages\": 1}, " PORTS "}",
		"eal.hugepages: got 1, allowed: true or false");
	config_refused("{\"control\": {\"socket\": 7}, " PORTS "}",
		"control.socket: got 7, allowed: text of at most 107 bytes");
	config_refused("{\"control\": {\"mode\": \"0670\"}, " PORTS "}",
		"control.mode: got \"0670\", allowed: octal, 0600 and what of 0066 others may do");
	config_refused("{\"control\": {\"mode\": \"rw\"}, " PORTS "}",
		"control.mode: got \"rw\", allowed: octal, 0600 and what of 0066 others may do");
	config_refused("{\"control\": {\"group\": \"no such group\"}, " PORTS "}",
		"control.group: got \"no such group\", allowed: a group of this host");
	config_refused("{\"control\": {\"monitor_group\": \"no such group\"}, " PORTS "}",
		"control.monitor_group: got \"no such group\", allowed: a group of this host");
	config_refused("{\"workers\": {\"idle\": \"sleep\"}, " PORTS "}",
		"workers.idle: got \"sleep\", allowed: one of poll, backoff");
	config_refused("{\"workers\": {\"idle\": null}, " PORTS "}",
		"workers.idle: got null, allowed: one of poll, backoff");
}

static void
test_number_out_of_range(void **state)
{
	(void)state;
	config_refused("{\"workers\": {\"count\": 129}, " PORTS "}",
		"workers.count: got 129, allowed: integer 0..128");
	config_refused("{\"workers\": {\"count\": -1}, " PORTS "}",
		"workers.count: got -1, allowed: integer 0..128");
	config_refused("{\"workers\": {\"count\": 1.5}, " PORTS "}",
		"workers.count: got 1.5, allowed: integer 0..128");
	config_refused("{\"limits\": {\"max_qp\": 1000}, " PORTS "}",
		"limits.max_qp: got 1000, allowed: power of two 32..8388608");
	config_refused("{\"ports\": []}",
		"ports: got a list of 0, allowed: list of 1..32 objects, of name, device, "
		"back_to_back, addresses, leader_addresses, mtu, vlan, rocev1, mac, pkeys, rx_desc, tx_desc, mbufs, "
		"promiscuous, trusted, encapsulation, ib");
	config_refused(ONE(", \"vlan\": 4095"),
		"ports[0].vlan: got 4095, allowed: integer 1..4094");
}

/* Metrics have no password, so hosts on the network must not read them. */
static void
test_metrics_on_loopback_only(void **state)
{
	static const char *const refused[] = { "0.0.0.0:9464", "192.0.2.1:9464", "[::]:9464",
		"[2001:db8::1]:9464", "127.0.0.1", "127.0.0.1:0", "localhost:9464", "9464" };
	char text[256], want[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(refused); i++) {
		snprintf(text, sizeof(text), "{\"metrics\": {\"listen\": \"%s\"}, " PORTS "}",
			refused[i]);
		snprintf(want, sizeof(want),
			"metrics.listen: got \"%s\", allowed: a loopback address and port "
			"(127.0.0.1:9464, [::1]:9464), or a Unix socket's path",
			refused[i]);
		config_refused(text, want);
	}
	config_taken("{\"metrics\": {\"listen\": \"127.0.0.1:9464\"}, " PORTS "}");
	config_taken("{\"metrics\": {\"listen\": \"[::1]:9464\"}, " PORTS "}");
	config_taken("{\"metrics\": {\"listen\": \"/run/polca/metrics.sock\"}, " PORTS "}");
}

static void
test_address_names_its_place(void **state)
{
	(void)state;
	config_refused(
		"{\"ports\": [{\"name\": \"a\", \"device\": \"net_null0\"}, "
		"{\"name\": \"b\", \"device\": \"net_null1\", \"addresses\": [\"10.0.0\"]}]}",
		"ports[1].addresses[0]: got \"10.0.0\", allowed: ADDRESS/PREFIX such as \"10.0.0.1/24\"");
	config_refused(ONE(", \"addresses\": [{\"address\": \"10.0.0.1/33\"}]"),
		"ports[0].addresses[0].address: got \"10.0.0.1/33\", allowed: ADDRESS/PREFIX such "
		"as \"10.0.0.1/24\"");
	config_refused(ONE(", \"addresses\": [{\"address\": \"10.0.0.1/24\", \"gateway\": \"x\"}]"),
		"ports[0].addresses[0].gateway: got \"x\", allowed: an address such as "
		"\"10.0.0.254\" or \"fe80::1\"");
	config_refused(ONE(", \"mac\": \"01:00:00:00:00:01\""),
		"ports[0].mac: got \"01:00:00:00:00:01\", allowed: a unicast MAC address such as "
		"\"02:00:00:00:00:01\"");
}

static void
test_addresses_must_agree(void **state)
{
	(void)state;
	config_refused(
		ONE(", \"addresses\": [{\"address\": \"10.0.0.1/24\", \"gateway\": \"10.0.1.1\"}]"),
		"ports[0].addresses[0].gateway: got \"10.0.1.1\", allowed: one within 10.0.0.1/24");
	config_refused(
		ONE(", \"addresses\": [{\"address\": \"10.0.0.1/24\", \"gateway\": \"fe80::1\"}]"),
		"ports[0].addresses[0].gateway: got \"fe80::1\", allowed: one of 10.0.0.1's family");
	config_refused(ONE(", \"addresses\": [\"10.0.0.1/24\", \"10.0.0.1/16\"]"),
		"ports[0].addresses[1]: got \"10.0.0.1\", which ports[0].addresses[0] has already");
}

static void
test_ports_must_agree(void **state)
{
	(void)state;
	config_refused("{\"ports\": [{\"name\": \"a\"}]}",
		"ports[0]: got neither device nor back_to_back, allowed: one of them");
	config_refused(ONE(", \"back_to_back\": \"a\""),
		"ports[0]: got both device and back_to_back, allowed: one of them");
	config_refused("{\"ports\": [{\"name\": \"a\", \"back_to_back\": \"b\"}]}",
		"ports[0].back_to_back: got \"b\", allowed: the name of another port");
	config_refused("{\"ports\": [{\"name\": \"a\", \"back_to_back\": \"b\"}, "
		       "{\"name\": \"b\", \"device\": \"net_null0\"}]}",
		"ports[0].back_to_back: got \"b\", but ports[1].back_to_back is \"\", allowed: \"a\"");
	config_refused("{\"ports\": [{\"name\": \"a\", \"device\": \"net_null0\"}, "
		       "{\"name\": \"a\", \"device\": \"net_null1\"}]}",
		"ports[1].name: got \"a\", which ports[0] has already");
	config_refused(
		"{\"ports\": [{\"name\": \"a\", \"back_to_back\": \"b\", \"encapsulation\": \"ib\"}, "
		"{\"name\": \"b\", \"back_to_back\": \"a\"}]}",
		"ports[0].encapsulation: differs from that of ports[1], its other end: "
		"expected the same, or they would not understand each other");
	config_refused("{\"eal\": {\"multi_process\": true}, " PORTS "}",
		"eal.multi_process: got true, but eal.hugepages is false: only hugepages can be shared");
}

struct changes {
	char text[2048];
};

static void
note_change(void *arg, const struct config_change *c)
{
	struct changes *all = arg;
	size_t len = strlen(all->text);

	snprintf(all->text + len, sizeof(all->text) - len, "%s: %s -> %s%s\n", c->path, c->was,
		c->now, c->restart ? ", restart" : "");
}

/* Each value that differs: what a reload takes over, what not, and no key in the text. */
static void
test_differences_of_two_configurations(void **state)
{
	static struct config was;
	struct changes all = { "" };

	(void)state;
	config_taken(
		"{\"log\": [{\"component\": \"polca.link\", \"level\": \"info\"}], " PORTS "}");
	was = config;
	assert_int_equal(config_diff(&was, &config, note_change, &all), 0);
	assert_string_equal(all.text, "");
	config_taken("{\"workers\": {\"stall_ms\": 77, \"count\": 2}, \"sa\": {\"sm_key\": 99}, "
		     "\"services\": [{\"kind\": \"rping\", \"port\": 7174}], " PORTS "}");
	assert_int_equal(config_diff(&was, &config, note_change, &all), 0);
	assert_non_null(strstr(all.text, "workers.count: 0 -> 2, restart\n"));
	assert_non_null(strstr(all.text, "workers.stall_ms: 1000 -> 77\n"));
	assert_non_null(strstr(all.text, "sa.sm_key: (not shown) -> (not shown), restart\n"));
	assert_non_null(strstr(all.text, "services[0]: none -> {\"kind\":\"rping\""));
	assert_non_null(strstr(all.text, "log[0]: {\"component\":\"polca.link\""));
}

static void
expect_difference(const char *was_ports, const char *now_ports, const char *text)
{
	static struct config was;
	struct changes all = { "" };

	config_taken(was_ports);
	was = config;
	config_taken(now_ports);
	assert_int_equal(config_diff(&was, &config, note_change, &all), 0);
	assert_string_equal(all.text, text);
}

/* Not even within a port that one of both has alone. */
static void
test_differences_show_no_keys(void **state)
{
#define KEYED                                                                                      \
	"{\"name\": \"k\", \"device\": \"net_null1\", \"encapsulation\": \"ib\", "                 \
	"\"ib\": {\"m_key\": \"0x5ec2e7\", \"lid\": 3}}"
#define UNKEYED "{\"name\": \"k\", \"device\": \"net_null1\", \"encapsulation\": \"ib\"}"
#define OTHER   "{\"name\": \"o\", \"device\": \"net_null0\"}"
	static const char *const pairs[][2] = {
		{ "{\"ports\": [" UNKEYED "]}", "{\"ports\": [" KEYED "]}" },
		{ "{\"ports\": [" OTHER "]}", "{\"ports\": [" OTHER ", " KEYED "]}" },
	};
	struct changes all;
	struct config *two;
	unsigned int i;

	(void)state;
	two = test_calloc(2, sizeof(*two));
	for (i = 0; i < RTE_DIM(pairs); i++) {
		config_taken(pairs[i][0]);
		two[0] = config;
		config_taken(pairs[i][1]);
		two[1] = config;
		all.text[0] = '\0';
		assert_int_equal(config_diff(&two[0], &two[1], note_change, &all), 0);
		assert_int_equal(config_diff(&two[1], &two[0], note_change, &all), 0);
		assert_null(strstr(all.text, "5ec2e7"));
		assert_non_null(strstr(all.text, "\"m_key\":\"(not shown)\""));
		assert_non_null(strstr(all.text, "\"lid\":3"));
	}
	test_free(two);
}

/* A reload adds addresses at the end of a port's list; all else about them needs a restart. */
/* A key with a typing error is most of a key, and others read the log. */
static void
test_errors_show_no_keys(void **state)
{
	(void)state;
	config_refused("{\"sa\": {\"sm_key\": \"0x5ec2e7l\"}, " PORTS "}",
		"sa.sm_key: got a value that is not shown, allowed: integer 0..9223372036854775807");
	config_refused("{\"ports\": [{\"name\": \"k\", \"device\": \"net_null1\", "
		       "\"encapsulation\": \"ib\", \"ib\": {\"m_key\": 12.5}}]}",
		"ports[0].ib.m_key: got a value that is not shown, allowed: \"0x0\"..\"0xffffffffffffffff\"");
}

static void
test_differences_of_addresses(void **state)
{
#define WITH_ADDRESSES(name, more, list)                                                           \
	"{\"ports\": [{\"name\": \"" name "\", \"device\": \"net_null0\"" more                     \
	", \"addresses\": [" list "]}]}"
	(void)state;
	expect_difference(WITH_ADDRESSES("p", "", "\"10.0.0.1/24\""),
		WITH_ADDRESSES("p", "", "\"10.0.0.1/24\", \"10.0.0.2/24\""),
		"ports[0].addresses[1]: none -> \"10.0.0.2/24\"\n");
	expect_difference(WITH_ADDRESSES("p", "", ""), WITH_ADDRESSES("p", "", "\"10.0.0.2/24\""),
		"ports[0].addresses[0]: none -> \"10.0.0.2/24\"\n");
	expect_difference(WITH_ADDRESSES("p", "", "\"10.0.0.1/24\""),
		WITH_ADDRESSES("p", "", "\"10.0.0.1/16\", \"10.0.0.2/24\""),
		"ports[0].addresses[0]: \"10.0.0.1/24\" -> \"10.0.0.1/16\", restart\n"
		"ports[0].addresses[1]: none -> \"10.0.0.2/24\", restart\n");
	expect_difference(WITH_ADDRESSES("p", "", "\"10.0.0.1/24\", \"10.0.0.2/24\""),
		WITH_ADDRESSES("p", "", "\"10.0.0.1/24\""),
		"ports[0].addresses[1]: \"10.0.0.2/24\" -> none, restart\n");
	expect_difference(WITH_ADDRESSES("p", "", "\"10.0.0.1/24\""),
		WITH_ADDRESSES("q", "", "\"10.0.0.1/24\", \"10.0.0.2/24\""),
		"ports[0].name: \"p\" -> \"q\", restart\n"
		"ports[0].addresses[1]: none -> \"10.0.0.2/24\", restart\n");
	/* RoCEv1's GIDs would get other indexes */
	expect_difference(WITH_ADDRESSES("p", ", \"rocev1\": true", "\"10.0.0.1/24\""),
		WITH_ADDRESSES("p", ", \"rocev1\": true", "\"10.0.0.1/24\", \"10.0.0.2/24\""),
		"ports[0].addresses[1]: none -> \"10.0.0.2/24\", restart\n");
}

static void
test_values_arrive(void **state)
{
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	const struct link_port_config *p;

	(void)state;
	config_taken(
		"{\"control\": {\"socket\": \"/run/x\"}, \"eal\": {\"hugepages\": true, "
		"\"args\": [\"--a\", \"--b\"]}, \"workers\": {\"count\": 3, \"idle\": \"poll\"}, "
		"\"limits\": {\"max_rd_atomic\": 7}, \"ports\": [{\"name\": \"p\", "
		"\"device\": \"net_af_packet0,iface=eth1\", \"addresses\": [\"10.0.0.1/24\", "
		"{\"address\": \"2001:db8::1/64\", \"gateway\": \"fe80::9\"}], \"vlan\": 5, "
		"\"mac\": \"02:00:00:00:00:09\", \"pkeys\": [65535, 1]}], "
		"\"log\": [{\"component\": \"polca.*\", \"level\": \"debug\"}]}");
	p = &config.engine.link.port[0];
	assert_string_equal(config.socket, "/run/x");
	assert_true(config.hugepages);
	assert_int_equal(config.num_args, 2);
	assert_string_equal(config.arg[1].text, "--b");
	assert_int_equal(config.workers, 3);
	assert_int_equal(config.engine.idle, IDLE_POLL);
	assert_int_equal(config.engine.limits.max_rd_atomic, 7);
	assert_int_equal(config.engine.link.num_ports, 1);
	assert_string_equal(config.port[0].device, "net_af_packet0,iface=eth1");
	assert_string_equal(p->device, "net_af_packet0,iface=eth1");
	assert_int_equal(p->num_addr, 2);
	assert_int_equal(p->addr[0].prefix_len, 24);
	assert_int_equal(p->addr[0].gid.raw[12], 10);
	assert_int_equal(p->addr[1].gateway.raw[15], 9);
	assert_int_equal(p->vlan, 5);
	assert_memory_equal(p->mac, mac, 6);
	assert_int_equal(p->num_pkeys, 2);
	assert_int_equal(p->pkeys[1], 1);
	assert_int_equal(config.num_log, 1);
	assert_int_equal(config.log[0].level, RTE_LOG_DEBUG);
}

static void
test_keys_of_subnet_administration_arrive(void **state)
{
	(void)state;
	config_taken(
		"{\"sa\": {\"path\": \"/var/x\", \"trust\": \"all\", \"sm_key\": 77, \"query_mb\": 3}, "
		"\"mad\": {\"max_sessions\": 64, \"v1_flags_lsb\": true, \"v1_early_resend\": true}, " PORTS
		"}");
	assert_true(config.engine.sa.enabled);
	assert_string_equal(config.engine.sa.path, "/var/x");
	assert_int_equal(config.engine.sa.server.trust, SA_TRUST_ALL);
	assert_int_equal(config.engine.sa.server.sm_key, 77);
	assert_int_equal(config.engine.sa.query_mb, 3);
	assert_int_equal(config.engine.mad.max_sessions, 64);
	assert_true(config.engine.mad.v1_flags_lsb);
	assert_true(config.engine.mad.v1_early_resend);
	assert_int_equal(config.engine.mad.retries, mad_limits_default.retries);
	config_taken("{\"sa\": {\"enabled\": false}, " PORTS "}");
	assert_false(config.engine.sa.enabled);
	assert_string_equal(config.engine.sa.path, "");
	assert_int_equal(config.engine.sa.server.trust, SA_TRUST_KEY);
}

static void
test_missing_keys_have_their_default(void **state)
{
	(void)state;
	config_taken("{" PORTS "}");
	assert_int_equal(config.engine.limits.max_qp, rc_limits_default.max_qp);
	assert_int_equal(config.engine.handoff_ring, engine_config_default.handoff_ring);
	assert_int_equal(config.engine.link.port[0].vlan, PATH_NO_VLAN);
	assert_string_equal(config.engine.link.port[0].back_to_back, "b");
}

/* The output of --print-config is a configuration with the same settings. */
static void
test_printed_configuration_reads_back(void **state)
{
	char *first, *second;
	size_t len;
	FILE *f;

	(void)state;
	config_taken("{\"ports\": [{\"name\": \"a\", \"device\": \"net_null0\", "
		     "\"addresses\": [\"10.0.0.1/24\", {\"address\": \"2001:db8::1/64\", "
		     "\"gateway\": \"2001:db8::2\"}], \"pkeys\": [65535], \"rx_desc\": 512}, "
		     "{\"name\": \"b\", \"device\": \"net_null1\", \"encapsulation\": \"ib\", "
		     "\"ib\": {\"lid\": 3, \"m_key\": \"0xffffffffffffffff\", \"sm\": {}}}]}");
	f = open_memstream(&first, &len);
	assert_int_equal(config_print(&config, f), 0);
	fclose(f);
	config_taken(first);
	f = open_memstream(&second, &len);
	assert_int_equal(config_print(&config, f), 0);
	fclose(f);
	assert_string_equal(first, second);
	assert_non_null(strstr(first, "\"10.0.0.1/24\""));
	assert_non_null(strstr(first, "\"rx_desc\": 512"));
	assert_non_null(strstr(first, "\"0xffffffffffffffff\""));
	assert_non_null(strstr(first, "\"sm\""));
	free(first);
	free(second);
}

static void
test_both_names_of_log_levels(void **state)
{
	(void)state;
#define LOG(level) "{\"log\": [{\"component\": \"lib.eal\", \"level\": \"" level "\"}], " PORTS "}"
	config_taken(LOG("critical"));
	assert_int_equal(config.log[0].level, RTE_LOG_CRIT);
	config_taken(LOG("crit"));
	assert_int_equal(config.log[0].level, RTE_LOG_CRIT);
	config_taken(LOG("err"));
	assert_int_equal(config.log[0].level, RTE_LOG_ERR);
	config_taken(LOG("warn"));
	assert_int_equal(config.log[0].level, RTE_LOG_WARNING);
	config_taken(LOG("WARNING"));
	assert_int_equal(config.log[0].level, RTE_LOG_WARNING);
	config_refused(LOG("loud"),
		"log[0].level: got \"loud\", allowed: one of emergency, emerg, alert, critical, "
		"crit, error, err, warning, warn, notice, info, debug");
}

/* Polca's log components are known before the EAL runs; those of drivers are not. */
static void
test_log_component_of_polca_is_checked_at_once(void **state)
{
	static const char words[] = "log[0].component: got \"polca.lnik\", allowed polca.";

	(void)state;
#define COMPONENT(name) "{\"log\": [{\"component\": \"" name "\", \"level\": \"info\"}], " PORTS "}"
	config_taken(COMPONENT("polca.link"));
	config_taken(COMPONENT("polca.*"));
	config_taken(COMPONENT("pmd.net.nosuch"));
	assert_int_not_equal(config_load(&config, NULL, COMPONENT("polca.lnik"), &errs), 0);
	assert_int_equal(errs.num, 1);
	assert_memory_equal(errs.error[0].text, words, sizeof(words) - 1);
}

static void
test_pci_address_without_function_is_completed(void **state)
{
	(void)state;
	config_refused("{\"ports\": [{\"name\": \"a\", \"device\": \"3b:00\"}]}",
		"ports[0].device: got \"3b:00\", allowed: a PCI address with its function, such as "
		"\"0000:3b:00.0\"");
	config_taken("{\"ports\": [{\"name\": \"a\", \"device\": \"3b:00.0\"}]}");
}

static void
test_unknown_log_component_names_its_line(void **state)
{
	static const char words[] =
		"configuration:3: log[1].component: got \"lib.eel\", allowed lib.";
	struct error err = { "" };

	(void)state;
	config_taken("{\"log\": [{\"component\": \"lib.*\", \"level\": \"notice\"},\n"
		     "{\"level\": \"notice\",\n\"component\": \"lib.eel\"}], " PORTS "}");
	assert_int_equal(config_apply_log(&config, &err), -EINVAL);
	assert_memory_equal(err.text, words, sizeof(words) - 1);
}

static const char *
arg_of(const struct eal_args *a, const char *prefix)
{
	int i;

	for (i = 0; i < a->argc; i++)
		if (strncmp(a->argv[i], prefix, strlen(prefix)) == 0)
			return a->argv[i];
	return NULL;
}

static void
test_eal_arguments_of_an_ordinary_user(void **state)
{
	struct eal_args a;

	(void)state;
	config_taken("{" PORTS "}");
	assert_int_equal(eal_args(&config, " --x  --y=1 ", &a, NULL), 0);
	assert_non_null(arg_of(&a, "--no-huge"));
	assert_non_null(arg_of(&a, "--no-shconf"));
	assert_non_null(arg_of(&a, "--no-pci"));
	assert_non_null(arg_of(&a, "-m"));
	assert_null(arg_of(&a, "-a"));
	assert_null(arg_of(&a, "--vdev"));
	assert_string_equal(a.argv[a.argc - 2], "--x");
	assert_string_equal(a.argv[a.argc - 1], "--y=1");
	eal_args_free(&a);
}

static void
test_eal_arguments_for_devices(void **state)
{
	struct eal_args a;

	(void)state;
	config_taken("{\"eal\": {\"hugepages\": true, \"lcores\": \"0@0,1@1\"}, \"ports\": ["
		     "{\"name\": \"a\", \"device\": \"0000:3b:00.0,mprq_en=1\"}, "
		     "{\"name\": \"b\", \"device\": \"net_af_xdp0,iface=eth1\"}]}");
	assert_int_equal(eal_args(&config, NULL, &a, NULL), 0);
	assert_string_equal(arg_of(&a, "-a"), "-a0000:3b:00.0,mprq_en=1");
	assert_string_equal(config.engine.link.port[0].device, "0000:3b:00.0");
	assert_string_equal(config.engine.link.port[1].device, "net_af_xdp0,iface=eth1");
	assert_null(arg_of(&a, "--vdev"));
	assert_string_equal(arg_of(&a, "--lcores"), "--lcores=0@0,1@1");
	assert_null(arg_of(&a, "--no-pci"));
	assert_null(arg_of(&a, "--no-huge"));
	assert_non_null(arg_of(&a, "--in-memory"));
	assert_null(arg_of(&a, "-m"));
	eal_args_free(&a);
}

static unsigned int
config_count_of(const struct eal_args *a, const char *prefix)
{
	unsigned int n = 0;
	int i;

	for (i = 0; i < a->argc; i++)
		n += strncmp(a->argv[i], prefix, strlen(prefix)) == 0;
	return n;
}

/* DPDK 25.11 refuses an option that is given twice. */
static void
test_eal_argument_given_again_replaces_the_earlier_one(void **state)
{
	struct eal_args a;

	(void)state;
	config_taken(
		"{\"eal\": {\"args\": [\"--file-prefix=first\", \"-m\", \"500\"]}, " PORTS "}");
	assert_int_equal(eal_args(&config, "--file-prefix second --main-lcore=2 -l 2,3", &a, NULL),
		0);
	assert_int_equal(config_count_of(&a, "--file-prefix"), 1);
	assert_string_equal(arg_of(&a, "--file-prefix"), "--file-prefix=second");
	assert_int_equal(config_count_of(&a, "-m"), 1);
	assert_string_equal(arg_of(&a, "-m"), "-m500");
	assert_int_equal(config_count_of(&a, "--main-lcore"), 1);
	assert_null(arg_of(&a, "--lcores"));
	assert_string_equal(arg_of(&a, "-l"), "-l2,3");
	assert_null(a.argv[a.argc]);
	eal_args_free(&a);

	assert_int_equal(eal_args(&config, "--lcores=0@1 --socket-mem=64", &a, NULL), 0);
	assert_int_equal(config_count_of(&a, "--lcores"), 1);
	assert_string_equal(arg_of(&a, "--lcores"), "--lcores=0@1");
	assert_null(arg_of(&a, "-m"));
	assert_string_equal(eal_arg_value(&a, "-m"), "64");
	assert_string_equal(eal_arg_value(&a, "--file-prefix"), "first");
	assert_null(eal_arg_value(&a, "--huge-dir"));
	eal_args_free(&a);
}

static void
test_eal_arguments_that_may_repeat_add_up(void **state)
{
	struct eal_args a;

	(void)state;
	config_taken("{\"eal\": {\"args\": [\"--vdev=net_null0\"]}, " PORTS "}");
	assert_int_equal(eal_args(&config,
				 "--vdev net_null1 --vdev=net_null2 -a 01:00.0 --allow=01:00.1 "
				 "--log-level=lib.eal:debug -d one.so -d two.so",
				 &a, NULL),
		0);
	assert_int_equal(config_count_of(&a, "--vdev=net_null"), 3);
	assert_int_equal(config_count_of(&a, "--log-level="), 3);
	assert_int_equal(config_count_of(&a, "-d"), 2);
	assert_string_equal(arg_of(&a, "-a"), "-a01:00.0");
	assert_string_equal(arg_of(&a, "--allow"), "--allow=01:00.1");
	assert_null(arg_of(&a, "--no-pci")); /* it would disable the PCI bus */
	eal_args_free(&a);
}

static void
test_eal_arguments_are_options(void **state)
{
	struct error err = { "" };
	struct eal_args a;

	(void)state;
	config_taken("{" PORTS "}");
	assert_int_equal(eal_args(&config, "net_null0", &a, &err), -EINVAL);
	assert_string_equal(err.text,
		"eal: got \"net_null0\", allowed: an option of DPDK's EAL, such as --file-prefix=NAME");
	assert_int_equal(eal_args(&config, "-m100 200", &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "got \"200\""));
}

#define IB(ib) ONE(", \"encapsulation\": \"ib\", \"ib\": {" ib "}")

static void
test_native_ib_port_arrives(void **state)
{
	const struct link_port_config *link = &config.engine.link.port[0];
	const struct sma_port_config *sma = &config.engine.sma.port[0];

	(void)state;
	config_taken(
		ONE(", \"encapsulation\": \"ib\", \"pkeys\": [65535, 32769], \"ib\": {"
		    "\"guid\": \"0x0002c90300001234\", \"gid_prefix\": \"0xFEC0000000000001\", "
		    "\"lid\": 8, \"lmc\": 3, \"sm_lid\": 1, \"sm_sl\": 2, \"active\": true, "
		    "\"m_key\": \"0xfedcba9876543210\", \"m_key_protect\": 2, \"m_key_lease\": 60, "
		    "\"vls\": 4, \"ethertype\": \"0x88b6\", \"peer_mac\": \"02:00:00:00:00:01\", "
		    "\"lids\": [{\"lid\": 1, \"mac\": \"02:00:00:00:00:02\"}], "
		    "\"sm\": {\"priority\": 7, \"state\": \"standby\"}}"));
	assert_true(link->ib);
	assert_true(link->guid == UINT64_C(0x0002c90300001234) && sma->guid == link->guid);
	assert_int_equal(link->ethertype, 0x88B6);
	assert_int_equal(link->peer_mac[5], 1);
	assert_int_equal(link->num_lids, 1);
	assert_int_equal(link->lids[0].lid, 1);
	assert_int_equal(link->lids[0].mac[5], 2);
	assert_true(sma->gid_prefix == UINT64_C(0xFEC0000000000001));
	assert_int_equal(sma->num_pkeys, 2);
	assert_int_equal(sma->pkeys[1], 0x8001);
	assert_int_equal(sma->lid, 8);
	assert_int_equal(sma->lmc, 3);
	assert_int_equal(sma->sm_lid, 1);
	assert_int_equal(sma->sm_sl, 2);
	assert_true(sma->active && sma->is_sm);
	assert_true(sma->m_key == UINT64_C(0xfedcba9876543210));
	assert_int_equal(sma->m_key_protect, 2);
	assert_int_equal(sma->m_key_lease, 60);
	assert_int_equal(sma->vl_cap, 3); /* VL0 to VL3 (smp-sma 3) */
	assert_int_equal(sma->sm_priority, 7);
	assert_int_equal(sma->sm_state, 2);
}

static void
test_native_ib_port_by_default(void **state)
{
	const struct sma_port_config *sma = &config.engine.sma.port[0];

	(void)state;
	config_taken(ONE(", \"encapsulation\": \"ib\""));
	assert_true(config.engine.link.port[0].ib);
	assert_int_equal(sma->lid, 0);
	assert_false(sma->active || sma->is_sm);
	assert_int_equal(sma->vl_cap, 4);
	config_taken("{" PORTS "}");
	assert_false(config.engine.link.port[0].ib);
	assert_int_equal(config.engine.sma.vl15_buffer, 64);
	assert_int_equal(config.engine.sma.limits.trap_retries, 10);
	assert_int_equal(config.engine.live.rate, 10000);
}

static void
test_native_ib_port_is_checked(void **state)
{
	(void)state;
	config_refused(ONE(", \"encapsulation\": \"rocev2\""),
		"ports[0].encapsulation: got \"rocev2\", allowed: one of roce, ib; did you mean roce?");
	config_refused(ONE(", \"ib\": {\"lid\": 1}"),
		"ports[0].ib: given, but ports[0].encapsulation is \"roce\", allowed: \"ib\"");
	config_refused(ONE(", \"encapsulation\": \"ib\", \"addresses\": [\"10.0.0.1/24\"]"),
		"ports[0].addresses: given, but a native InfiniBand port (encapsulation "
		"\"ib\") has LIDs and no IP addresses");
	config_refused(ONE(", \"encapsulation\": \"ib\", \"rocev1\": true"),
		"ports[0].rocev1: got true, allowed: false with encapsulation \"ib\"");
	config_refused(IB("\"lid\": 49152"),
		"ports[0].ib.lid: got 49152, allowed: integer 0..49151");
	config_refused(IB("\"lid\": 6, \"lmc\": 2"),
		"ports[0].ib.lid: got 6, allowed: a multiple of 4 with lmc 2");
	config_refused(IB("\"active\": true"),
		"ports[0].ib.active: got true, but ports[0].ib.lid is missing: nobody could "
		"reach the port");
	config_refused(IB("\"m_key\": \"12\""),
		"ports[0].ib.m_key: got a value that is not shown, allowed: \"0x0\"..\"0xffffffffffffffff\"");
	config_refused(IB("\"m_key\": \"0x1ffffffffffffffff\""),
		"ports[0].ib.m_key: got a value that is not shown, allowed: \"0x0\"..\"0xffffffffffffffff\"");
	config_refused(IB("\"guid\": \"0x0\""),
		"ports[0].ib.guid: got \"0x0\", allowed: \"0x1\"..\"0xffffffffffffffff\"");
	config_refused(IB("\"vls\": 3"), "ports[0].ib.vls: got 3, allowed: power of two 1..8");
	config_refused(IB("\"lids\": [{\"lid\": 1}]"),
		"ports[0].ib.lids[0].mac: missing, allowed: a unicast MAC address such as "
		"\"02:00:00:00:00:01\"");
	config_refused(IB("\"lids\": [{\"lid\": 7, \"mac\": \"02:00:00:00:00:02\"}, "
			  "{\"lid\": 5, \"mac\": \"02:00:00:00:00:03\"}, "
			  "{\"lid\": 7, \"mac\": \"02:00:00:00:00:04\"}]"),
		"ports[0].ib.lids[2].lid: got 7, which ports[0].ib.lids[0] has already");
	config_refused(IB("\"sm\": {\"state\": \"slave\"}"),
		"ports[0].ib.sm.state: got \"slave\", allowed: one of not_active, discovering, "
		"standby, master");
	config_refused(IB("\"sm\": {\"state\": \"master\"}"),
		"ports[0].ib.sm.state: got \"master\", but no subnet manager serves the "
		"port when it starts");
}

#define SERVICES(list) "{\"services\": [" list "], " PORTS "}"

static void
test_services_arrive(void **state)
{
	const struct svc_config *s = config.engine.service;

	(void)state;
	config_taken(SERVICES(
		"{\"kind\": \"memory\", \"port\": 4000, \"length\": 65536, "
		"\"per_connection\": true, \"name\": \"grant\"}, "
		"{\"kind\": \"rping\", \"service_id\": \"0x1000000000001234\", \"max_connections\": 7}"));
	assert_int_equal(config.engine.num_services, 2);
	assert_true(s[0].service_id == UINT64_C(0x1060FA0)); /* cm 7: TCP, 4000 */
	assert_true(s[0].service_mask == UINT64_MAX);
	assert_true(s[0].length == 65536 && s[0].per_connection);
	assert_string_equal(s[0].name, "grant");
	assert_true(s[1].service_id == UINT64_C(0x1000000000001234));
	assert_int_equal(s[1].max_connections, 7);
	assert_int_equal(config.engine.cm.max_retries, 15);
}

static void
test_partitions(void **state)
{
	const struct sa_config *sa = &config.engine.sa.server;

	(void)state;
	config_taken("{" PORTS ", \"sa\": {\"partitions\": [{\"pkey\": \"0x7fff\", \"sl\": 3}, "
		     "{\"pkey\": 32769, \"sl\": 15}]}}");
	assert_int_equal(sa->num_partitions, 2);
	assert_int_equal(sa->partition[0].pkey, 0x7FFF);
	assert_int_equal(sa->partition[0].sl, 3);
	assert_int_equal(sa->partition[1].pkey, 0x8001);
	assert_int_equal(sa->partition[1].sl, 15);
	config_refused("{" PORTS ", \"sa\": {\"partitions\": [{\"pkey\": \"0x8000\", \"sl\": 3}]}}",
		"sa.partitions[0].pkey: got 0x8000, which is no P_Key");
	config_refused("{" PORTS ", \"sa\": {\"partitions\": [{\"pkey\": \"0x8001\", \"sl\": 3}, "
		       "{\"pkey\": 1, \"sl\": 4}]}}",
		"sa.partitions[1]: the partition of P_Key 0x0001 has an SL already, in sa.partitions[0]");
	config_refused("{" PORTS ", \"sa\": {\"partitions\": [{\"pkey\": 1}]}}",
		"sa.partitions[0].sl: missing, allowed: integer 0..15");
}

static void
test_services_are_checked(void **state)
{
	(void)state;
	config_refused(SERVICES("{\"kind\": \"web\", \"port\": 1}"),
		"services[0].kind: got \"web\", allowed: memory, echo, sink, rping, ucmatose, rstream, rcopy, perftest");
	config_refused(SERVICES("{\"port\": 1}"),
		"services[0].kind: missing, allowed: one of memory, echo, sink, rping, ucmatose, rstream, rcopy, perftest");
	config_refused(SERVICES("{\"kind\": \"echo\"}"),
		"services[0]: got neither port nor service_id, allowed: one of them");
	config_refused(SERVICES("{\"kind\": \"echo\", \"port\": 1, \"service_id\": \"0x1\"}"),
		"services[0]: got both port and service_id, allowed: one of them");
	config_refused(
		SERVICES(
			"{\"kind\": \"echo\", \"port\": 1}, {\"kind\": \"sink\", \"service_id\": \"0x1060001\"}"),
		"services[1]: listens on service ID 0x0000000001060001, as services[0] does already");
	config_refused(SERVICES("{\"kind\": \"echo\", \"port\": 0}"),
		"services[0].port: got 0, allowed: integer 1..65535");
	config_refused(SERVICES("{\"kind\": \"echo\", \"port\": 1, \"local_port\": 2}"),
		"services[0].local_port: got 2, there are 2 ports, counted from 0");
}

/* All errors of a service are told at once, and none that only follows from another. */
static void
test_all_errors_of_a_service_are_told(void **state)
{
	static struct config_errors errs;
	static struct config c;

	(void)state;
	assert_int_equal(config_load(&c, NULL, SERVICES("{\"port\": 70000, \"local_port\": 9}, 7"),
				 &errs),
		-EINVAL);
	assert_int_equal(errs.num, 4);
	assert_string_equal(errs.error[0].text,
		"services[0].kind: missing, allowed: one of memory, echo, sink, rping, ucmatose, rstream, rcopy, perftest");
	assert_string_equal(errs.error[1].text,
		"services[0].port: got 70000, allowed: integer 1..65535");
	assert_non_null(strstr(errs.error[2].text, "services[1]: got 7, allowed: "));
	assert_string_equal(errs.error[3].text,
		"services[0].local_port: got 9, there are 2 ports, counted from 0");
}

static void
test_an_empty_configuration_is_told_as_such(void **state)
{
	static struct config_errors errs;
	static struct config c;

	(void)state;
	assert_int_equal(config_load(&c, NULL, " \n\t\n", &errs), -EINVAL);
	assert_int_equal(errs.num, 1);
	assert_int_equal(errs.error[0].line, 1);
	assert_non_null(strstr(errs.error[0].text, "the file is empty, allowed: a JSON object"));
}

static void
test_congestion(void **state)
{
	const struct rc_congestion *c = &config.engine.limits.congestion;

	(void)state;
	config_taken("{" PORTS "}");
	assert_false(c->dcqcn);
	assert_int_equal(c->g, 256);
	assert_int_equal(c->max_rate, 25000);
	config_taken(
		"{\"congestion\": {\"dcqcn\": true, \"max_rate\": 100000, \"rate_ai\": 5}, " PORTS
		"}");
	assert_true(c->dcqcn);
	assert_int_equal(c->max_rate, 100000);
	assert_int_equal(c->rate_ai, 5);
	assert_int_equal(c->alpha_timer, 55);
	config_refused("{\"congestion\": {\"min_rate\": 20, \"max_rate\": 10}, " PORTS "}",
		"congestion.min_rate: got 20, above max_rate, which is 10");
	config_refused("{\"congestion\": {\"g\": 0}, " PORTS "}",
		"congestion.g: got 0, allowed: integer 1..65536");
}

/* The service's user must still read the file after the advice was followed. */
static void
test_exposed_keys_are_closed_to_all_but_the_user(void **state)
{
	char path[] = "/tmp/polca-test-keys-XXXXXX", text[256], expected[256];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	config_taken("{\"security\": {\"user\": \"root\"}, \"sa\": {\"sm_key\": \"0x1234\"}, " PORTS
		     "}");
	assert_true(config_exposes_keys(&config, path, text, sizeof(text)));
	snprintf(expected, sizeof(expected),
		"%s has sa.sm_key, and every user of this host may read it: chgrp root %s; chmod 640 %s",
		path, path, path);
	assert_string_equal(text, expected);
	assert_int_equal(chmod(path, 0640), 0);
	assert_false(config_exposes_keys(&config, path, text, sizeof(text)));
	unlink(path);
}

/* config_reload() answers with one text. */
static void
test_errors_are_joined_and_cut_between_words(void **state)
{
	char text[400];

	(void)state;
	assert_int_not_equal(
		config_load(&config, NULL,
			"{\n\"workers\": {\"count\": -1},\n\"congestion\": {\"g\": 0}, " PORTS "}",
			&errs),
		0);
	config_errors_join(&errs, text, sizeof(text));
	assert_string_equal(text,
		"configuration:2: workers.count: got -1, allowed: integer 0..128; line 3: "
		"congestion.g: got 0, allowed: integer 1..65536");
	config_errors_join(&errs, text, 130);
	assert_string_equal(text,
		"configuration:2: workers.count: got -1, allowed: integer 0..128; and 1 more error");
	config_errors_join(&errs, text, 75);
	assert_string_equal(text, "configuration:2: workers.count: got ...; and 1 more error");
}

static void
test_sockets_differ(void **state)
{
	struct error err = { "" };

	(void)state;
	config_taken(
		"{\"control\": {\"monitor\": \"/x/m\"}, \"metrics\": {\"listen\": \"/x/t\"}, " PORTS
		"}");
	strcpy(config.socket, "/x/s");
	assert_int_equal(config_check_sockets(&config, &err), 0);
	strcpy(config.socket, "/x/m");
	assert_int_not_equal(config_check_sockets(&config, &err), 0);
	assert_string_equal(err.text,
		"control.monitor: got \"/x/m\", which is control.socket already: name another path");
	strcpy(config.socket, "/x/t");
	assert_int_not_equal(config_check_sockets(&config, &err), 0);
	assert_string_equal(err.text,
		"metrics.listen: got \"/x/t\", which is control.socket already: name another path");
}

/* --print-config refuses what could not start. */
static void
test_what_the_host_lacks_is_refused(void **state)
{
	char text[128];
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	(void)state;
	config_refused("{\"security\": {\"user\": \"no-such-user\"}, " PORTS "}",
		"security.user: got \"no-such-user\", allowed: a user of this host");
	snprintf(text, sizeof(text),
		"eal.lcores: got \"0,7777\", but this host has %ld CPU%s, counted from 0", cpus,
		cpus == 1 ? "" : "s");
	config_refused("{\"eal\": {\"lcores\": \"0,7777\"}, " PORTS "}", text);
	config_taken("{\"eal\": {\"lcores\": \"(5,7777)@0,77@0\"}, " PORTS "}");
	assert_int_not_equal(config_load(&config, NULL,
				     "{\"eal\": {\"memory_mb\": 1048576}, " PORTS "}", &errs),
		0);
	assert_non_null(
		strstr(errs.error[0].text, "eal.memory_mb: got 1048576, but this host has "));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_congestion),
		cmocka_unit_test(test_what_the_host_lacks_is_refused),
		cmocka_unit_test(test_sockets_differ),
		cmocka_unit_test(test_errors_are_joined_and_cut_between_words),
		cmocka_unit_test(test_exposed_keys_are_closed_to_all_but_the_user),
		cmocka_unit_test(test_syntax_error_names_line_and_column),
		cmocka_unit_test(test_passwords_in_endpoints_are_not_repeated),
		cmocka_unit_test(test_errors_of_a_fleet_name_the_key),
		cmocka_unit_test(test_missing_file_is_named),
		cmocka_unit_test(test_duplicate_key_is_a_syntax_error),
		cmocka_unit_test(test_all_errors_are_reported_at_once),
		cmocka_unit_test(test_consequences_of_an_error_are_not_reported),
		cmocka_unit_test(test_very_many_errors_are_counted),
		cmocka_unit_test(test_errors_beyond_the_list_need_no_line),
		cmocka_unit_test(test_line_of_a_path),
		cmocka_unit_test(test_unknown_key_names_those_allowed),
		cmocka_unit_test(test_missing_key_is_named),
		cmocka_unit_test(test_wrong_type_error_has_value_and_allowed_types),
		cmocka_unit_test(test_number_out_of_range),
		cmocka_unit_test(test_address_names_its_place),
		cmocka_unit_test(test_metrics_on_loopback_only),
		cmocka_unit_test(test_addresses_must_agree),
		cmocka_unit_test(test_ports_must_agree),
		cmocka_unit_test(test_differences_of_two_configurations),
		cmocka_unit_test(test_differences_show_no_keys),
		cmocka_unit_test(test_errors_show_no_keys),
		cmocka_unit_test(test_differences_of_addresses),
		cmocka_unit_test(test_values_arrive),
		cmocka_unit_test(test_keys_of_subnet_administration_arrive),
		cmocka_unit_test(test_native_ib_port_arrives),
		cmocka_unit_test(test_native_ib_port_by_default),
		cmocka_unit_test(test_native_ib_port_is_checked),
		cmocka_unit_test(test_services_arrive),
		cmocka_unit_test(test_partitions),
		cmocka_unit_test(test_services_are_checked),
		cmocka_unit_test(test_all_errors_of_a_service_are_told),
		cmocka_unit_test(test_an_empty_configuration_is_told_as_such),
		cmocka_unit_test(test_missing_keys_have_their_default),
		cmocka_unit_test(test_printed_configuration_reads_back),
		cmocka_unit_test(test_both_names_of_log_levels),
		cmocka_unit_test(test_log_component_of_polca_is_checked_at_once),
		cmocka_unit_test(test_pci_address_without_function_is_completed),
		cmocka_unit_test(test_unknown_log_component_names_its_line),
		cmocka_unit_test(test_eal_arguments_of_an_ordinary_user),
		cmocka_unit_test(test_eal_arguments_for_devices),
		cmocka_unit_test(test_eal_argument_given_again_replaces_the_earlier_one),
		cmocka_unit_test(test_eal_arguments_that_may_repeat_add_up),
		cmocka_unit_test(test_eal_arguments_are_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
