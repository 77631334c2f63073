/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

/**
 * @file
 * Endport liveness (liveness.md): the servers of class 0x34 (echo, timestamp, LID/GUID), 0x32
 * (ibping) and 0x33 (ibsysstat) on every port; and the client's encoding and checking of requests,
 * which are sent by lib/mad's calls.
 *
 * lib/engine makes the servers; lib/ctl and polca-bench use the client.
 *
 * One struct live per worker: call these functions only on that worker, except live_counters(),
 * live_build() and live_check(), which any thread may call. No function reads a clock, allocates
 * after creation, logs or calls EAL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "mad/mad.h"

#define LIVE_CLASS_IBPING  0x32
#define LIVE_CLASS_SYSSTAT 0x33
#define LIVE_CLASS         0x34
#define LIVE_CLASS_VERSION 1
#define LIVE_OUI           0x001405 /* OpenIB */

/* offsets in a MAD of class 0x34 */
#define LIVE_OFF_TYPE       40
#define LIVE_OFF_IDENTIFIER 44
#define LIVE_OFF_SEQUENCE   46
#define LIVE_OFF_DATA       48
#define LIVE_AREA           208 /* data bytes in one packet */
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

#define LIVE_HOST_MAX 216 /* host name with its NUL */
#define LIVE_CPUS_MAX 256

/** A CPU as ibsysstat shows it, from /proc/cpuinfo. */
struct live_cpu {
	char model[64];
	char mhz[16];
};

struct live_limits {
	bool ibping; /**< serve class 0x32 */
	bool sysstat; /**< serve class 0x33, which tells any peer about this host */
	/**
	 * requests per second from one source on this worker, 0: no limit. A source's requests
	 * spread over the workers by TID, so its total may be higher
	 */
	uint32_t rate;
	uint32_t burst;
	uint32_t sources; /**< size of the table of sources; rounded up to a power of two */
	uint32_t max_echo; /**< most bytes in a multi-packet echo */
};
extern const struct live_limits live_limits_default;

struct live_config {
	struct mad_worker *mad;
	const struct allocator *alloc;
	const struct rng *rng; /**< keys the table of sources */
	uint64_t hz;
	struct live_limits limits;
	char host[LIVE_HOST_MAX]; /**< "host.domain", the answer to ibping */
	/** Return a port's attributes (for LID/GUID), or NULL. */
	const struct port_attr *(*port)(void *arg, uint16_t port);
	void *port_arg;
	const struct live_cpu *cpu; /**< read by live_create() only */
	unsigned int num_cpus;
};

struct live;

/**
 * Register the agents; they cannot be removed. NULL: no memory, or a class has an agent; the
 * mad_worker must then not be used.
 */
struct live *live_create(const struct live_config *config);
/** Call after its mad_worker is destroyed. */
void live_destroy(struct live *l);
/**
 * Tell the time of day, at least fifteen times a second (liveness 2): @p ms milliseconds after
 * midnight UTC at @p now. Time stamps are extrapolated from there; before the first call they are
 * not standard.
 */
void live_set_clock(struct live *l, uint64_t now, uint32_t ms);
/** Time stamp of @p now, which may be before the last live_set_clock(). */
uint32_t live_stamp(const struct live *l, uint64_t now);

/* X(name, help): one writer, relaxed readers */
/* clang-format off */
#define LIVE_COUNTERS(X)                                                                           \
	X(echo, "echo requests answered")                                                          \
	X(echo_bytes, "data bytes of those requests")                                              \
	X(timestamp, "timestamp requests answered")                                                \
	X(lidguid, "LID/GUID requests answered")                                                   \
	X(ibping, "requests of ibping answered")                                                   \
	X(sysstat, "requests of ibsysstat answered")                                               \
	X(other_oui, "requests of another vendor, not answered")                                   \
	X(unknown_type, "answered 0x000C: no such type or attribute")                            \
	X(refused, "answered 0x0001 or 0x001C: no room for the answer, or the echo is too long")   \
	X(rate_limited, "requests dropped because their source sent too many")
/* clang-format on */

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

/* --- client: requests and answers --- */

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
	uint32_t len; /**< ECHO; more than LIVE_AREA: multi-packet */
	uint32_t originate; /**< TIMESTAMP: live_stamp() */
};
/**
 * Build the request's MAD without the TID. The data of a multi-packet request, from LIVE_OFF_TYPE
 * on, goes to @p body (8 + len bytes). @retval true  the request is multi-packet
 */
bool live_build(const struct live_request *req, uint8_t mad[MAD_LEN], uint8_t *body);

struct live_reply {
	const char *error; /**< why the answer is wrong, or NULL */
	uint32_t len; /**< ECHO: bytes received */
	uint32_t originate, receive, transmit; /**< TIMESTAMP */
	uint16_t lid; /**< LIDGUID */
	uint64_t guid;
	char text[2048]; /**< IBPING, SYSSTAT: the peer's text, lines separated by \n */
};
/**
 * Check that the answer belongs to the request and repeats it byte for byte.
 *
 * @param mad   first packet of the answer
 * @param data  all data from LIVE_OFF_TYPE on, @p len bytes
 */
void live_check(const struct live_request *req, const uint8_t *mad, const uint8_t *data,
	uint64_t len, struct live_reply *reply);

/** Time stamps are milliseconds since midnight UTC; from 2^31 on they are not standard. */
#define LIVE_STAMP_NONSTANDARD 0x80000000u
#define LIVE_MS_PER_DAY        86400000u

#endif
