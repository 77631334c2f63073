/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_DEVICE_CAUSE_H
#define LINK_DEVICE_CAUSE_H

/**
 * @file Why a device could not be opened. DPDK returns only a number, so these functions examine
 * the host. They run only after a failure, so that they never reject a device that works.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/** The directories to examine. Tests use directories of their own. */
struct device_host {
	const char *sys; /**< /sys */
	const char *drivers; /**< directory of DPDK's plug-ins */
	const char *dev; /**< /dev */
};

/** This host. */
extern const struct device_host device_host;

/**
 * Describe what is missing, and what to type.
 *
 * @param device  as in ports[].device: a PCI address or a vdev, with its arguments
 * @param rc      what DPDK returned
 * @return a negative errno value; 0: nothing was found, err is unchanged
 */
int device_cause(const struct device_host *host, const char *device, int rc, struct error *err);

/** device_cause() on this host, for the port's error. */
int device_explain(const char *port, const char *device, int rc, struct error *err);

/**
 * Fill in the error of a device that could not be opened or started: the cause, and what to type.
 *
 * @return a negative errno value
 */
int device_error(const char *port, const char *device, int rc, struct error *err);

/* device_cause_pci.c: the part of device_cause() for a PCI address, 0000:3b:00.0 or 3b:00.0. */
int device_cause_pci(const struct device_host *host, const char *device, struct error *err);

/*
 * device_driver.c: the part for a name that no bus knows. known: such a driver exists, so the name
 * is no typing error.
 */
int device_cause_driver(const struct device_host *host, const char *device, bool known,
	struct error *err);
bool driver_is_installed(const struct device_host *host, const char *driver);
/* Debian's name of the package with a driver. */
void driver_package(const char *driver, char *package, size_t size);

#endif
