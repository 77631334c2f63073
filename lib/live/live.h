/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

/**
 * @file
 * Endport liveness (liveness.md): the server of class 0x34 (echo, timestamp, LID/GUID), of 0x32
 * (ibping) and of 0x33 (ibsysstat) on every port; and the bytes of a client's requests, which travel
 * by lib/mad's calls.
 *
 * One struct live per worker, used there only; counters and the functions of the client apart, which
 * anyone may call. Nothing reads a clock, allocates after creation, logs or calls EAL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "mad/mad.h"

#define LIVE_CLASS_IBPING    0x32
#define LIVE_CLASS_SYSSTAT   0x33
#define LIVE_CLASS           0x34
#define LIVE_CLASS_VERSION   1
#define LIVE_OUI             0x001405 /* OpenIB */

/* of class 0x34, MAD offsets */
#define LIVE_OFF_TYPE       40
#define LIVE_OFF_IDENTIFIER 44
#define LIVE_OFF_SEQUENCE   46
#define LIVE_OFF_DATA       48
#define LIVE_AREA           208 /* data of one packet */
#define LIVE_OFF_ORIGINATE  48
#define LIVE_OFF_RECEIVE    52
#define LIVE_OFF_TRANSMIT   56
#define LIVE_OFF_LID        48
#define LIVE_OFF_GUID       50 /* not aligned */

enum live_type {
	LIVE_ECHO_REQUEST = 1,
	LIVE_ECHO_RESPONSE,
	LIVE_TIMESTAMP_REQUEST,
	LIVE_TIMESTAMP_RESPONSE,
	LIVE_LIDGUID_REQUEST,
	LIVE_LIDGUID_RESPONSE,
};

/* ibsysstat's attributes */
#define SYSSTAT_PING 0x10
#define SYSSTAT_HOST 0x11
#define SYSSTAT_CPU  0x12

#define LIVE_HOST_MAX 216 /* of the host name, its NUL included */
#define LIVE_CPUS_MAX 256

/** What /proc/cpuinfo says of a CPU, as ibsysstat shows it. */
struct live_cpu {
	char model[64];
	char mhz[16];
};

struct live_limits {
	bool ibping; /**< serve class 0x32 */
	bool sysstat; /**< serve class 0x33: tells strangers about this host */
	/** requests a second of one source on this worker, 0: no limit; a source's TIDs spread */
	uint32_t rate;
	uint32_t burst;
	uint32_t sources; /**< that are told apart, a power of two */
	uint32_t max_echo; /**< bytes of a many-packet echo */
};
extern const struct live_limits live_limits_default;

struct live_config {
	struct mad_worker *mad;
	const struct allocator *alloc;
	const struct rng *rng; /**< keys the table of sources */
	uint64_t hz;
	struct live_limits limits;
	char host[LIVE_HOST_MAX]; /**< "host.domain", as ibping names it */
	/** For LID/GUID: attributes of a port, or NULL. */
	const struct port_attr *(*port)(void *arg, uint16_t port);
	void *port_arg;
	const struct live_cpu *cpu; /**< lives as long as the agent */
	unsigned int num_cpus;
};

struct live;

/**
 * Registers the agents, which cannot be taken back. NULL: no memory, or the classes are taken; the
 * worker is then of no use.
 */
struct live *live_create(const struct live_config *config);
/** After its mad_worker is gone. */
void live_destroy(struct live *l);
/**
 * What time it is, ten times a second or more often: at @p now it was @p ms milliseconds after midnight
 * UTC; before and after that @p now goes on by itself. Before the first call stamps are not standard.
 */
void live_set_clock(struct live *l, uint64_t now, uint32_t ms);
/** A stamp for @p now, which may lie before the last live_set_clock(). On the agent's worker. */
uint32_t live_stamp(const struct live *l, uint64_t now);

/* X(name, help): single writer, relaxed readers */
#define LIVE_COUNTERS(X)                                                                           \
	X(echo, "echo requests answered")                                                          \
	X(echo_bytes, "bytes of their data")                                                       \
	X(timestamp, "timestamp requests answered")                                                \
	X(lidguid, "LID/GUID requests answered")                                                   \
	X(ibping, "requests of ibping answered")                                                   \
	X(sysstat, "requests of ibsysstat answered")                                               \
	X(other_oui, "requests of another vendor, not answered")                                   \
	X(unknown_type, "answered 0x000C: no such type or attribute")                            \
	X(refused, "answered 0x0001 or 0x001C: no room for their answer, or too long an echo")         \
	X(rate_limited, "requests dropped: their source sent too many")

struct live_counters {
#define X(name, help) uint64_t name;
	LIVE_COUNTERS(X)
#undef X
};
struct live_counter_info {
	const char *name;
	const char *help;
};
#define LIVE_COUNTER_COUNT (sizeof(struct live_counters) / sizeof(uint64_t))
extern const struct live_counter_info live_counter_infos[LIVE_COUNTER_COUNT];
const struct live_counters *live_counters(const struct live *l);

/* --- the client's bytes --- */

enum live_mode {
	LIVE_MODE_ECHO,
	LIVE_MODE_TIMESTAMP,
	LIVE_MODE_LIDGUID,
	LIVE_MODE_IBPING,
	LIVE_MODE_SYSSTAT_PING,
	LIVE_MODE_SYSSTAT_HOST,
	LIVE_MODE_SYSSTAT_CPU,
};

struct live_request {
	enum live_mode mode;
	uint16_t identifier;
	uint16_t sequence;
	const uint8_t *data; /**< ECHO */
	uint32_t len; /**< more than LIVE_AREA: many packets */
	uint32_t originate; /**< TIMESTAMP: live_stamp() */
};
/**
 * The request's MAD, all of it but the TID; and, of one of many packets, its data from LIVE_OFF_TYPE on
 * into @p body (8 + len bytes). @retval true  it has many packets
 */
bool live_build(const struct live_request *req, uint8_t mad[MAD_LEN], uint8_t *body);

struct live_reply {
	const char *error; /**< what is wrong with it, or NULL */
	uint32_t len; /**< ECHO: bytes that came back */
	uint32_t originate, receive, transmit; /**< TIMESTAMP */
	uint16_t lid; /**< LIDGUID */
	uint64_t guid;
	char text[2048]; /**< IBPING, SYSSTAT: what the other end says of itself, lines joined by \n */
};
/**
 * Is this the answer to that request, byte for byte?
 *
 * @param mad   first packet of the answer
 * @param data  all data from LIVE_OFF_TYPE on, @p len bytes
 */
void live_check(const struct live_request *req, const uint8_t *mad, const uint8_t *data,
	uint64_t len, struct live_reply *reply);

/** Milliseconds since midnight UTC as a stamp; 2^31 and more mark a stamp that is not standard. */
#define LIVE_STAMP_NONSTANDARD 0x80000000u
#define LIVE_MS_PER_DAY        86400000u

#endif
