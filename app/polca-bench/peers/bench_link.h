/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_BENCH_LINK_H
#define BENCH_BENCH_LINK_H

/**
 * @file
 * What joins the two ends: a row each.
 */

#include "link/link.h"
#include "options.h"

enum bench_role { REQUESTER, RESPONDER, ROLES };

struct bench_link {
	const char *name;
	const char *help;
	/** Keys that may follow the name, NULL ends them. */
	const char *const *keys;
	/** Their values, as far as they can be looked at; or NULL. */
	int (*check)(const struct bench_options *o, struct error *err);
	bool remote; /**< one end here, one in another process */
	/**
	 * Names of devices as link_port_config has them: of both ends, or, of a remote link, of
	 * @p role only.
	 */
	int (*create)(const struct bench_options *o, enum bench_role role,
		char device[ROLES][256], struct error *err);
};

extern const struct bench_link bench_links[];
extern const unsigned int bench_link_count;

/** The row of o->link; its keys are checked. NULL: err says what there is */
const struct bench_link *link_find(const struct bench_options *o, struct error *err);
/** Value of a key of o->link: "socket" of "memif,socket=/tmp/x". @retval false  not given */
bool link_value(const struct bench_options *o, const char *key, char *value, size_t size);

/* link_device.c */
int link_device_create(const struct bench_options *o, enum bench_role role,
	char device[ROLES][256], struct error *err);
/** What the user wants as its address, if anything; else @p a stays. */
int link_device_address(const struct bench_options *o, struct link_addr *a, struct error *err);

/* link_memory.c, link_memif.c */
int link_memory_create(const struct bench_options *o, enum bench_role role,
	char device[ROLES][256], struct error *err);
/** Two ports, the rings between them named after @p name. */
int link_memory_pair(const char *name, char device[ROLES][256], struct error *err);

#endif
