/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_pci.h>

#include "base/pci_address.h"

static void
test_address_with_and_without_domain_and_arguments(void **state)
{
	struct rte_pci_addr a;

	(void)state;
	assert_true(pci_address_parse("0001:3b:01.2", &a));
	assert_int_equal(a.domain, 1);
	assert_int_equal(a.bus, 0x3b);
	assert_int_equal(a.devid, 1);
	assert_int_equal(a.function, 2);
	assert_true(pci_address_parse("3b:00.0,mprq_en=1", &a));
	assert_int_equal(a.domain, 0);
	assert_true(pci_address_parse("3b:00.0", NULL));
}

/* A virtual device with a colon in an argument is not a PCI address. */
static void
test_other_devices(void **state)
{
	(void)state;
	assert_false(pci_address_parse("eth_af_packet0,iface=eth0:1", NULL));
	assert_false(pci_address_parse("net_memif0,socket=/run/a:b", NULL));
	assert_false(pci_address_parse("eth0", NULL));
	assert_false(pci_address_parse("", NULL));
	assert_false(pci_address_parse("3b:00", NULL));
	assert_false(pci_address_parse("3b:00.0.1", NULL));
	assert_false(pci_address_parse(" 3b:00.0", NULL));
	assert_false(pci_address_parse("02:00:00:00:00:01", NULL));
}

static void
test_address_without_function(void **state)
{
	char full[PCI_PRI_STR_SIZE];

	(void)state;
	assert_true(pci_address_complete("3b:00", full, sizeof(full)));
	assert_string_equal(full, "0000:3b:00.0");
	assert_true(pci_address_complete("0001:3b:1f,mprq_en=1", full, sizeof(full)));
	assert_string_equal(full, "0001:3b:1f.0");
	assert_false(pci_address_complete("3b:00.0", full, sizeof(full)));
	assert_false(pci_address_complete("3b", full, sizeof(full)));
	assert_false(pci_address_complete("eth0", full, sizeof(full)));
	assert_false(pci_address_complete("02:00:00:00:00:01", full, sizeof(full)));
}

/* A name longer than any address is not cut to one. */
static void
test_name_that_is_too_long(void **state)
{
	char full[PCI_PRI_STR_SIZE];

	(void)state;
	assert_false(pci_address_parse("00000000000000000000000003b:00.0", NULL));
	assert_false(pci_address_complete("00000000000000000000000003b:00.0", full, sizeof(full)));
}

static void
test_address_without_function_needs_room(void **state)
{
	char full[PCI_PRI_STR_SIZE] = "before";

	(void)state;
	assert_false(pci_address_complete("3b:00", full, sizeof(full) - 1));
	assert_string_equal(full, "before");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_with_and_without_domain_and_arguments),
		cmocka_unit_test(test_other_devices),
		cmocka_unit_test(test_address_without_function),
		cmocka_unit_test(test_name_that_is_too_long),
		cmocka_unit_test(test_address_without_function_needs_room),
	};

	return cmocka_run_group_tests_name("base: PCI address", tests, NULL, NULL);
}
