/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <rte_pci.h>

#include "base/pci_address.h"

#define ADDRESS_MAX 32

/* Copy NAME, the part before the arguments. @return false: it is longer than any address */
static bool
device_name(const char *device, char name[ADDRESS_MAX])
{
	int len = (int)strcspn(device, ",");

	return snprintf(name, ADDRESS_MAX, "%.*s", len, device) < ADDRESS_MAX;
}

bool
pci_address_parse(const char *device, struct rte_pci_addr *addr)
{
	struct rte_pci_addr unused;
	char name[ADDRESS_MAX];

	/* rte_pci_addr_parse() accepts blanks and signs before a number */
	return device_name(device, name) && isxdigit((unsigned char)name[0]) &&
		rte_pci_addr_parse(name, addr != NULL ? addr : &unused) == 0;
}

bool
pci_address_complete(const char *device, char *full, size_t size)
{
	char name[ADDRESS_MAX], text[ADDRESS_MAX + sizeof(".0")];
	struct rte_pci_addr addr;

	if (!device_name(device, name) || strchr(name, '.') != NULL)
		return false;
	snprintf(text, sizeof(text), "%s.0", name);
	if (!pci_address_parse(text, &addr) || size < PCI_PRI_STR_SIZE)
		return false;
	rte_pci_device_name(&addr, full, size);
	return true;
}
