/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_CM_ARGS_H
#define CTL_CM_ARGS_H

/**
 * @file
 * What the methods of connections and of services share: parameters of both, and how service IDs
 * are said.
 */

#include "ctl/methods.h"
#include "engine/verbs_cm.h"

/* --- a service ID, itself or as a port of rdma_cm --- */

struct service_id_args {
	uint64_t service_id; /**< 0: not given */
	uint32_t port_space;
	uint16_t port; /**< 0: not given */
};

extern const struct table_word words_port_space[];

/* clang-format off */
#define SERVICE_ID_ROW(at, field, t, ...)                                                          \
	{ .name = #field, .type = t, .offset = (at) + offsetof(struct service_id_args, field),     \
		.size = sizeof(((struct service_id_args *)0)->field), __VA_ARGS__ }
#define SERVICE_ID_ROWS(at)                                                                        \
	SERVICE_ID_ROW(at, port, TABLE_UINT,                                                       \
		"port, as rdma_cm programs have them; with port_space it gives the service ID",    \
		.min = 1),                                                                         \
	SERVICE_ID_ROW(at, port_space, TABLE_ENUM, "with port: its port space", .def = CM_PS_TCP,  \
		.words = words_port_space),                                                        \
	SERVICE_ID_ROW(at, service_id, TABLE_UINT, "service ID, instead of port", .min = 1)
/* clang-format on */

/**
 * The service ID that is meant.
 *
 * @param id  0: none was given
 * @retval -EINVAL  two were; call->err says so
 */
int service_id_of(struct rpc_call *call, const struct service_id_args *a, uint64_t *id);
bool service_id_is_rdma(uint64_t id);

/** A service ID in a result, and where it is one of rdma_cm's its port and port_space. */
struct service_id_info {
	uint32_t present;
	uint32_t port_space;
	uint64_t service_id;
	uint16_t port;
};
#define SERVICE_ID_GIVEN 0x1
#define SERVICE_ID_RDMA  0x2
/* clang-format off */
#define SERVICE_ID_RESULT_ROWS(more)                                                               \
	ROW(struct service_id_info, service_id, TABLE_UINT, .flags = more, .digits = 16,           \
		.bit = SERVICE_ID_GIVEN),                                                          \
	ROW(struct service_id_info, port_space, TABLE_ENUM,                                        \
		"where the service ID is one of rdma_cm's", .flags = more,                         \
		.words = words_port_space, .bit = SERVICE_ID_RDMA),                                \
	ROW(struct service_id_info, port, TABLE_UINT, .flags = more, .bit = SERVICE_ID_RDMA)
/* clang-format on */
extern const struct table_row rows_service_id[];
struct service_id_info service_id_info(uint64_t id);

/* --- parameters of a service, of either side --- */

struct service_args {
	uint64_t length;
	uint64_t count;
	uint32_t size;
	uint32_t depth;
	uint32_t access;
	uint32_t mr;
	uint32_t max_connections;
	uint32_t max_connections_per_peer;
	uint16_t tcp_port;
	const char *tcp_address;
	bool tcp_any_gid;
	uint16_t local_port;
	bool per_connection;
	bool verify;
	const char *path;
};

/* clang-format off */
#define SERVICE_ROW(at, field, t, ...)                                                             \
	{ .name = #field, .type = t, .offset = (at) + offsetof(struct service_args, field),        \
		.size = sizeof(((struct service_args *)0)->field), __VA_ARGS__ }
/* clang-format on */
#define KINDS_OWN .def_text = "the kind's"
/* clang-format off */
#define SERVICE_ROWS(at)                                                                           \
	SERVICE_ROW(at, length, TABLE_UINT, "bytes of the service's memory", KINDS_OWN),           \
	SERVICE_ROW(at, size, TABLE_UINT, "bytes of a message", KINDS_OWN),                        \
	SERVICE_ROW(at, depth, TABLE_UINT, "number of receives kept posted, or of sends in flight", \
		KINDS_OWN),                                                                        \
	SERVICE_ROW(at, access, TABLE_FLAGS, "kind memory: what peers may do with its memory",     \
		.words = words_remote_access, .def_text = "the kind's")
/* clang-format on */

/**
 * A kind of service by name, and its parameters.
 *
 * @param what  the parameter that named it, for words
 * @retval -EINVAL  there is none, or it cannot take this side: call->err and data say which can
 */
int service_config_of(struct rpc_call *call, const char *what, const char *kind,
	const struct service_args *a, bool active, struct svc_config *config);

/* --- connections --- */

/** DISCONNECTED, REJECTED, ... */
const char *cm_end_word(enum cm_end end);
/** What a REJ reason means to who asked, and what to do; "": no more than its name says. */
const char *cm_reason_text(uint16_t reason);
/** Where the peer is: its address, or "lid:5". NULL: no memory */
const char *cm_peer_text(struct rpc_call *call, const struct cm_info *info);

#endif
