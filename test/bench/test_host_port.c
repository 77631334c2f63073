/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* HOST, HOST:PORT and [ADDRESS]:PORT in options that name another program. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../app/polca-bench/peers/host_port.h"

static struct host_port w;

static void
splits(const char *text, uint16_t standard, const char *host, uint16_t port)
{
	assert_true(host_port_parse(text, standard, &w));
	assert_string_equal(w.host, host);
	assert_int_equal(w.port, port);
}

static void
test_given_port_and_standard_port(void **state)
{
	(void)state;
	splits("host", 18515, "host", 18515);
	splits("host:7", 18515, "host", 7);
	splits("10.0.0.2", 18515, "10.0.0.2", 18515);
	splits("10.0.0.2:65535", 18515, "10.0.0.2", 65535);
	splits(":7000", 0, "", 7000);
}

static void
test_an_ipv6_address_with_and_without_port(void **state)
{
	(void)state;
	splits("fd00::2", 18515, "fd00::2", 18515);
	splits("[fd00::2]", 18515, "fd00::2", 18515);
	splits("[fd00::2]:7", 18515, "fd00::2", 7);
	splits("[fd00::2]:7", 0, "fd00::2", 7);
	/* a port is required: it is the last number */
	splits("::1:7000", 0, "::1", 7000);
}

static void
test_bad_addresses_are_refused(void **state)
{
	static const char *const none[] = { "host:", "host:x", "host:0", "host:65536", "host:-1",
		"host:7 ", "[fd00::2]x:", "[fd00::2]:0" };
	char long_host[300];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(host_port_parse(none[i], 18515, &w));
	assert_false(host_port_parse("host", 0, &w));
	assert_false(host_port_parse("[fd00::2]", 0, &w));
	memset(long_host, 'x', sizeof(long_host));
	long_host[256] = '\0';
	assert_false(host_port_parse(long_host, 18515, &w));
	long_host[255] = '\0';
	assert_true(host_port_parse(long_host, 18515, &w));
}

static void
test_errors_name_the_option_and_what_is_allowed(void **state)
{
	char text[HOST_PORT_TEXT];
	struct error err;

	(void)state;
	assert_null(host_port_resolve("--perftest", "10.0.0.2:99999", 18515, false, &w, &err));
	assert_string_equal(err.text,
		"--perftest: got \"10.0.0.2:99999\", "
		"allowed: HOST, HOST:PORT, [ADDRESS]:PORT, ports 1 to 65535");
	assert_null(host_port_resolve("--perftest", "", 18515, false, &w, &err));
	assert_null(host_port_resolve("--peer", "host:x", 0, false, &w, &err));
	assert_string_equal(err.text,
		"--peer: got \"host:x\", allowed: HOST:PORT, [ADDRESS]:PORT, ports 1 to 65535");
	splits("[fd00::2]:7", 18515, "fd00::2", 7);
	assert_string_equal(host_port_print(&w, text), "[fd00::2]:7");
	splits("10.0.0.2", 18515, "10.0.0.2", 18515);
	assert_string_equal(host_port_print(&w, text), "10.0.0.2:18515");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_port_and_standard_port),
		cmocka_unit_test(test_an_ipv6_address_with_and_without_port),
		cmocka_unit_test(test_bad_addresses_are_refused),
		cmocka_unit_test(test_errors_name_the_option_and_what_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
