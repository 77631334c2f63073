/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_BENCH_LINK_H
#define BENCH_BENCH_LINK_H

/**
 * @file
 * The links that join two endpoints; bench_link.c has a row for each.
 */

#include "link/link.h"
#include "options.h"

enum bench_role { REQUESTER, RESPONDER, ROLES };

struct bench_link {
	const char *name;
	const char *help;
	/** Keys that may follow the name; ends with NULL. */
	const char *const *keys;
	/** Check the values of the keys; may be NULL. */
	int (*check)(const struct bench_options *o, struct error *err);
	bool remote; /**< the second endpoint is in another process */
	/**
	 * Create the names of the devices, as link_port_config takes them: of both endpoints, or,
	 * for a remote link, of @p role only.
	 */
	int (*create)(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
		struct error *err);
};

extern const struct bench_link bench_links[];
extern const unsigned int bench_link_count;

/** Return the row of o->link and check its keys. NULL: err lists the links */
const struct bench_link *link_find(const struct bench_options *o, struct error *err);
/**
 * Value of a key of o->link: "socket" of "memif,socket=/tmp/x". @retval false  the key was not
 * given
 */
bool link_value(const struct bench_options *o, const char *key, char *value, size_t size);

/* link_device.c */
int link_device_create(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
	struct error *err);
/** Set @p a to the address given by --address, if any. */
int link_device_address(const struct bench_options *o, struct link_addr *a, struct error *err);

/* link_memory.c, link_memif.c */
int link_memory_create(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
	struct error *err);
/** Create two ports joined by rings, which are named after @p name. */
int link_memory_pair(const char *name, char device[ROLES][256], struct error *err);

#endif
