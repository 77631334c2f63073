/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_PCI_ADDRESS_H
#define BASE_PCI_ADDRESS_H

/**
 * @file
 * Does a device's text, "NAME[,KEY=value,...]", name a PCI device?
 */

#include <stdbool.h>
#include <stddef.h>

struct rte_pci_addr;

/**
 * Parse the address of a device: 0000:3b:00.0, or 3b:00.0 in domain 0. Arguments do not count.
 *
 * @param addr  gets it; may be NULL
 * @return false: the name is no PCI address
 */
bool pci_address_parse(const char *device, struct rte_pci_addr *addr);

/**
 * Complete an address without its function, such as 3b:00 or 0000:3b:00, which DPDK does not understand.
 *
 * @param full  gets the address of function 0, such as 0000:3b:00.0
 * @return false: the name is no such address
 */
bool pci_address_complete(const char *device, char *full, size_t size);

#endif
