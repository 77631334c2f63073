/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_DEVICE_CAUSE_H
#define LINK_DEVICE_CAUSE_H

/**
 * @file
 * Why this host cannot give Polca a device. DPDK returns a number; here the host is looked at, after
 * the failure, so that what works is never refused.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/**
 * Name what is missing, and what to type.
 *
 * @param device  as in ports[].device: a PCI address or a vdev, with its arguments
 * @param rc      what DPDK returned
 * @param sys     "/sys", or another tree in tests
 * @return false: nothing was found, text is unchanged
 */
bool device_cause(const char *device, int rc, const char *sys, char *text, size_t size);

/**
 * A device could not be opened or started: say so, with its cause and what to type.
 *
 * @return a negative errno value
 */
int device_error(const char *port, const char *device, int rc, struct error *err);

/* device_cause_pci.c: the part of device_cause() for a PCI address, 0000:3b:00.0 or 3b:00.0. */
bool device_is_pci(const char *device);
bool device_cause_pci(const char *device, const char *sys, char *text, size_t size);

#endif
