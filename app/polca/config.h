/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CONFIG_H
#define POLCA_CONFIG_H

/**
 * @file
 * The configuration: what a JSON file says, in one struct. One table (config_table.c,
 * config_agents.c, config_ports.c) describes every key; decoding, error messages, the JSON schema
 * and the printed configuration all read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "engine/engine.h"
#include "table/table.h"
#include "verbs/verbs.h"

#define CONFIG_ARGS_MAX 32
#define CONFIG_LOG_MAX  32

enum config_encapsulation {
	CONFIG_ROCE,
	CONFIG_IB,
};

/* What happens to a system call that is not in the list (system_calls.c). */
enum config_seccomp {
	CONFIG_SECCOMP_ENFORCE,
	CONFIG_SECCOMP_LOG,
	CONFIG_SECCOMP_OFF,
};

struct config_port {
	struct link_port_config link; /* .device: of a PCI device without its arguments */
	char device[256];
	uint32_t encapsulation; /* enum config_encapsulation */
	/* native InfiniBand */
	bool has_ib;
	bool has_sm;
	uint32_t vls; /* virtual lanes */
	uint32_t sm_state;
	/* .guid, .pkeys, .vl_cap and .sm_state are filled in from here */
	struct sma_port_config sma;
};

struct config_service {
	struct svc_config svc; /* .service_id and .service_mask are filled in from here */
	uint16_t port;
	uint32_t port_space;
};

struct config_log {
	char component[64];
	uint32_t level; /* RTE_LOG_ */
	unsigned int line; /* in the file */
};

struct config_arg {
	char text[256];
};

struct config {
	const char *file; /* name of the file; "configuration" if it was read from text */
	char schema[256]; /* "$schema", for editors */
	char socket[108]; /* empty: the user's default */
	char group[33]; /* empty: none */
	char mode[8]; /* empty: see config_mode() */
	char monitor[108]; /* empty: none */
	char monitor_group[33]; /* empty: group */
	char metrics[108]; /* where GET /metrics is served; empty: nowhere */
	char user[33]; /* to become when started as root; empty: polca, else nobody */
	uint32_t seccomp; /* enum config_seccomp */
	struct verbs_config verbs; /* .socket empty: beside the control socket */
	bool socket_directory_made; /* by this process */
	char lcores[512]; /* empty: made from .workers */
	char file_prefix[64];
	bool hugepages;
	bool multi_process;
	uint32_t memory_mb;
	struct config_arg arg[CONFIG_ARGS_MAX];
	unsigned int num_args;
	uint32_t workers; /* 0: as many as are useful */
	struct engine_config engine; /* .link is filled in by config_load() */
	struct config_port port[LINK_PORTS_MAX];
	unsigned int num_ports;
	struct config_service service[ENGINE_SERVICES_MAX];
	unsigned int num_services;
	struct config_log log[CONFIG_LOG_MAX];
	unsigned int num_log;
};

/* The keys of the whole configuration, over struct config. */
extern const struct table_row config_rows[];
/* Values of keys that are not there. */
void config_init(struct config *c);

#define CONFIG_ERRORS_MAX 100

/* One error, such as "ports[0].vlan: got 4095, allowed: ...". Line and column 0: not known */
struct config_error {
	int line;
	int column;
	char text[sizeof(((struct table_error *)0)->text)];
};

/* All errors of one configuration. */
struct config_errors {
	const char *file; /* printed in front of the line number */
	const char *json; /* the text, once it is known to be JSON */
	struct config_error error[CONFIG_ERRORS_MAX];
	unsigned int num; /* found; only the first CONFIG_ERRORS_MAX are kept */
	int unreadable; /* errno value: the file could not be read */
	unsigned int values; /* of these, errors of single values; those of config_check() follow */
};

/* Load a file, or text if path is NULL. errs: all errors found */
int config_load(struct config *c, const char *path, const char *text, struct config_errors *errs);
/* Check how values go together: names, pairs, addresses. Values that are wrong are left out. */
void config_check(const struct config *c, struct config_errors *errs);
/** Its part for "fleet". */
void config_check_fleet(const struct config *c, struct config_errors *errs);

/* Check that the sockets differ, once the control socket is chosen: it may be the default one. */
int config_check_sockets(const struct config *c, struct error *err);

/* --- config_errors.c --- */

/*
 * Add an error. Its text begins with a JSON path and a colon, which give its line. @return -EINVAL
 */
int config_error(struct config_errors *errs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void config_error_at(struct config_errors *errs, int line, int column, const char *text);
/*
 * True if the value of this JSON path, or one inside it, is wrong: do not report what follows from
 * it.
 */
bool config_errors_below(const struct config_errors *errs, const char *path);
/* Print each error in a line "polca: FILE:LINE: PATH: ...", in the order of the file. */
void config_errors_print(const struct config_errors *errs, FILE *f);
/*
 * The same errors as one text, "FILE:LINE: ...; LINE: ...": as many as fit, each complete or cut
 * with "...", and how many more there are.
 */
void config_errors_join(const struct config_errors *errs, char *buf, size_t size);
/* @return the line of a JSON path in valid JSON text, or of the nearest object or list around it */
unsigned int config_line_of(const char *text, const char *path);

/* Name of the user that polca becomes, or stays: security.user, by default polca. */
const char *config_user(const struct config *c);

/*
 * Security: true if the file has a key that only the operator may know, and every user of the host
 * may read it. text: what to say.
 */
bool config_exposes_keys(const struct config *c, const char *path, char *text, size_t size);

/*
 * Set the log's levels, once the EAL runs and all components are known. err: "FILE:LINE: log[0]..."
 * of the first that names none.
 */
int config_apply_log(const struct config *c, struct error *err);

/* Mode of a socket: as configured, or by default 0660 with a group, else 0600. */
mode_t config_mode(const char *mode, const char *group);

/* Both write indented JSON with a final newline. */
int config_print(const struct config *c, FILE *f);
int config_print_schema(FILE *f);

#endif
