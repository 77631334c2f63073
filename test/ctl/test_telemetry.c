/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* DPDK's telemetry socket, asked as dpdk-telemetry.py does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "ask.h"
#include "ctl/ctl.h"

static char root[] = "/tmp/polca-test-telemetry-XXXXXX";
static char told[1 << 16];
static json_t *reply;
static int sock;

/* @return what is said of a command: an object, a list, or null; it lives until the next call */
static json_t *
tell(const char *command)
{
	char name[64];
	ssize_t n;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(command, ","), command);
	assert_int_equal(send(sock, command, strlen(command), 0), strlen(command));
	n = recv(sock, told, sizeof(told) - 1, 0);
	assert_true(n > 0);
	told[n] = '\0';
	json_decref(reply);
	reply = json_loads(told, 0, NULL);
	if (reply == NULL || json_object_get(reply, name) == NULL)
		fail_msg("%s: %s", command, told);
	return json_object_get(reply, name);
}

static void
test_all_commands_are_listed(void **state)
{
	static const char *const names[] = { "/polca/clients", "/polca/cm", "/polca/live",
		"/polca/port", "/polca/ports", "/polca/rc", "/polca/sa", "/polca/sma",
		"/polca/worker" };
	json_t *list = tell("/");
	unsigned int i, found = 0;
	json_t *name;
	size_t at;

	(void)state;
	json_array_foreach(list, at, name)
		for (i = 0; i < RTE_DIM(names); i++)
			found += strcmp(json_string_value(name), names[i]) == 0;
	assert_int_equal(found, RTE_DIM(names));
}

static void
test_ports_by_name(void **state)
{
	json_t *list = tell("/polca/ports");

	(void)state;
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_array_get(list, 1)), "port1");
}

static void
test_counters_of_a_port(void **state)
{
	json_t *port = tell("/polca/port,1");

	(void)state;
	assert_int_equal(num(port, "rx_packets"), 20);
	assert_int_equal(num(port, "request"), 19); /* verdicts, too */
	assert_int_equal(num(port, "icrc"), 1);
	assert_int_equal(num(tell("/polca/port"), "rx_packets"), 10); /* port 0 */
	assert_int_equal(num(tell("/polca/sma,1"), "smp_get"), 12);
	assert_int_equal(num(tell("/polca/sma,0"), "smp_get"), 0);
}

static void
test_sums_and_workers(void **state)
{
	(void)state;
	assert_int_equal(num(tell("/polca/rc"), "rcvd_pkts"), 28);
	assert_int_equal(num(tell("/polca/clients"), "refused"), 7);
	assert_int_equal(num(tell("/polca/sa"), "sessions_opened"), 20);
	assert_int_equal(num(tell("/polca/sa,1"), "sessions_opened"), 10);
	assert_int_equal(num(tell("/polca/sa"), "get_table"), 4);
	assert_int_equal(num(tell("/polca/live"), "echo"), 30);
	assert_int_equal(num(tell("/polca/live,0"), "echo"), 15);
	assert_int_equal(num(tell("/polca/cm"), "connections"), 6);
	assert_int_equal(num(tell("/polca/cm,1"), "connections"), 3);
}

/* Shares are told in thousandths: telemetry knows no fractions. */
static void
test_state_of_a_worker(void **state)
{
	json_t *worker = tell("/polca/worker,1");

	(void)state;
	assert_int_equal(num(worker, "lcore"), 2);
	assert_int_equal(num(worker, "busy_permille"), 250);
	assert_int_equal(num(worker, "handoff_permille"), 125);
	assert_int_equal(num(worker, "polls"), 1000);
	assert_int_equal(num(worker, "rehomed_in"), 4);
	assert_int_equal(num(worker, "stalled"), 0);
	assert_int_equal(num(tell("/polca/worker"), "lcore"), 1);
}

static void
test_wrong_numbers_are_answered_with_null(void **state)
{
	static const char *const wrong[] = { "/polca/port,2", "/polca/port,x", "/polca/port,-1",
		"/polca/port,1x", "/polca/sma,2", "/polca/rc,2", "/polca/sa,2", "/polca/live,2",
		"/polca/cm,2", "/polca/worker,2" };
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(wrong); i++)
		assert_true(json_is_null(tell(wrong[i])));
}

/* As at the end of the program: the engine goes, the EAL's thread still listens. */
static void
test_without_an_engine_nothing_is_told(void **state)
{
	struct desk *d = *state;

	ctl_telemetry(NULL);
	assert_true(json_is_null(tell("/polca/ports")));
	ctl_telemetry(d->e);
	assert_int_equal(json_array_size(tell("/polca/ports")), 2);
}

/* The EAL removes it when the program exits. */
static const char *
telemetry_socket_path(void)
{
	static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(path, sizeof(path), "%s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
	return path;
}

static int
telemetry_setup(void **state)
{
	const char *args[] = { "test", "--no-huge", "--no-shconf", "--no-pci", "-m", "16", "-l",
		"0", "--log-level=lib.eal:error" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 30 };
	struct desk *d;

	if (mkdtemp(root) == NULL || setenv("RUNTIME_DIRECTORY", root, 1) != 0 ||
		desk_setup(state) != 0)
		return -1;
	d = *state;
	d->e->port[1].ib = true;
	ctl_telemetry(d->e);
	if (rte_eal_init(RTE_DIM(args), (char **)args) < 0)
		return -1;
	strcpy(addr.sun_path, telemetry_socket_path());
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0)
		return -1;
	return recv(sock, told, sizeof(told), 0) > 0 ? 0 : -1; /* who is there */
}

static int
telemetry_teardown(void **state)
{
	char path[256];

	close(sock);
	json_decref(reply);
	ctl_telemetry(NULL);
	unlink(telemetry_socket_path());
	snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(path);
	snprintf(path, sizeof(path), "%s/dpdk", root);
	rmdir(path);
	desk_teardown(state);
	return rmdir(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_commands_are_listed),
		cmocka_unit_test(test_ports_by_name),
		cmocka_unit_test(test_counters_of_a_port),
		cmocka_unit_test(test_sums_and_workers),
		cmocka_unit_test(test_state_of_a_worker),
		cmocka_unit_test(test_wrong_numbers_are_answered_with_null),
		cmocka_unit_test(test_without_an_engine_nothing_is_told),
	};

	return cmocka_run_group_tests_name("ctl: telemetry", tests, telemetry_setup,
		telemetry_teardown);
}
