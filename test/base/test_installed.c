/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/installed.h"

static void
test_what_is_installed_is_named(void **state)
{
	(void)state;
	assert_string_equal(installed_or("/proc/self/stat", "config/stat"), "/proc/self/stat");
	assert_string_equal(installed_or("/nonexistent/setup-host.sh", "config/setup-host.sh"),
		"config/setup-host.sh");
}

static void
test_only_a_service_is_told_of_its_drop_in(void **state)
{
	char text[256];

	(void)state;
	unsetenv("INVOCATION_ID");
	assert_string_equal(drop_in_advice("uio.conf", text, sizeof(text)), "");
	setenv("INVOCATION_ID", "0123", 1);
	assert_non_null(strstr(drop_in_advice("uio.conf", text, sizeof(text)),
		"/polca/systemd/uio.conf to /etc/systemd/system/polca.service.d/, and type systemctl "
		"daemon-reload"));
	unsetenv("INVOCATION_ID");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_installed_is_named),
		cmocka_unit_test(test_only_a_service_is_told_of_its_drop_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
