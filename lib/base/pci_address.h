/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_PCI_ADDRESS_H
#define BASE_PCI_ADDRESS_H

/**
 * @file
 * PCI addresses in device arguments, "NAME[,KEY=value,...]".
 */

#include <stdbool.h>
#include <stddef.h>

struct rte_pci_addr;

/**
 * Parse the address of a device: 0000:3b:00.0, or 3b:00.0 in domain 0. The KEY=value arguments
 * are ignored.
 *
 * @param addr  set to the address; may be NULL
 * @return false: NAME is not a PCI address
 */
bool pci_address_parse(const char *device, struct rte_pci_addr *addr);

/**
 * Complete an address without its function, such as 3b:00 or 0000:3b:00, which DPDK does not
 * understand.
 *
 * @param full  set to the address of function 0, such as 0000:3b:00.0
 * @return false: NAME is not such an address
 */
bool pci_address_complete(const char *device, char *full, size_t size);

#endif
