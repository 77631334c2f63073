/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_MAD_HARNESS_H
#define TEST_MAD_HARNESS_H

/*
 * Two managers, a and b, on a wire in memory under a virtual clock (nanoseconds). Every frame
 * passes path_finish() and wire_parse() with its ICRC. b sends requests, and a's agent answers as
 * the test sets. With .scripted the test plays b: say() passes a datagram of b's to a, expect_tx()
 * checks what a sent.
 *
 * Time advances only by pass() and harness_run(). The wire loses packets only by lose() or by the
 * rates of harness_wire.
 *
 * Packets sent are described in words:
 *   "92 First 1 of 400"   method, flag, segment, PayloadLength      "92 2"    a middle segment
 *   "92 Last 3 of 16"     "92 First Last 1 of 16"
 *   "12 Ack 64 window 64" "12 Resend 5"  "92 KeepAlive"
 *   "92 single of 0"      "92 single status 0x0100"
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../wire/build.h"
#include "mad/mad.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define HARNESS_FRAMES   2048
#define HARNESS_HASH_KEY 0x0123456789ABCDEF
#define US               1000ull
#define MS               1000000ull
/* A5 with SubnetTimeout 8 and RespTimeValue 10 */
#define FLIGHT           (4096ull << 8) /* 1.05 ms */
#define PROCESS          (4096ull << 10) /* 4.19 ms */
#define RESPONSE_TIMEOUT (2 * FLIGHT + PROCESS)
#define SEGMENT_TIMEOUT  (FLIGHT + PROCESS)

struct harness;

struct frame {
	uint64_t arrives;
	uint32_t len;
	uint8_t bytes[PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX + 64];
};

struct manager {
	struct tx_sink sink; /* first: the sink is the manager */
	struct harness *h;
	struct manager *peer;
	struct mad_worker *w;
	struct timer_wheel *wheel;
	struct port_attr attr;
	const struct path *path; /* of the packet reserved */
	uint32_t reserved;
	unsigned int room; /* packets that the sink still accepts */
	struct frame *frames; /* a ring */
	uint64_t sent, seen, delivered;
	uint64_t lose[64]; /* indices of our frames to lose, from 0 */
	unsigned int num_lose;
	uint64_t verdicts[VERDICT_COUNT];
	struct mad_counters base; /* what counters_of() leaves out */
};

struct harness_config {
	struct mad_limits limits; /* harness_limits by default */
	bool scripted;
	bool bare; /* no agents: the test adds its own */
	bool ib;
	uint8_t subnet_timeout; /* 0: 8 */
	unsigned int workers; /* 0: 1 */
	unsigned int id;
};
extern const struct mad_limits harness_limits; /* RespTimeValue 10, small pools */

/* Rates of loss and other faults in parts of a thousand, in both directions. */
struct harness_wire {
	uint32_t loss, duplicate, reorder, corrupt;
	uint64_t latency; /* ns, one way */
	uint64_t rng;
};

struct harness {
	struct harness_config config;
	struct harness_wire wire;
	struct manager a, b;
	uint64_t now;

	/* a's agent: what it does, and what it has seen */
	enum mad_outcome outcome;
	uint16_t status; /* of MAD_ANSWER */
	uint64_t table_bytes; /* of MAD_STREAM: bytes of pattern() */
	uint64_t stale_at; /* the source fails from this byte on, if not 0 */
	uint64_t late_at; /* data from this byte on is not ready, if not 0 */
	unsigned int requests;
	mad_handle handle;
	uint8_t request[MAD_LEN];
	uint8_t *body; /* copied out */
	uint64_t body_len;
	unsigned int sources, released;
	uint16_t admits; /* status for the first packet of a long request without SM_Key */

	uint64_t tid; /* TransactionID of the test's datagrams; 0x77 */
	struct packet bad_key; /* the last one a dropped for its P_Key [0] or Q_Key [1] */
	unsigned int bad_keys[2];

	/* the taker of b's call */
	uint64_t taken; /* bytes received, all as in the pattern */
	int take_error; /* result of data() from .take_error_at on */
	uint64_t take_error_at;
	unsigned int done;
	struct mad_result result;
	uint8_t result_mad[MAD_LEN];
};

struct harness *harness_create(const struct harness_config *config); /* NULL: defaults */
void harness_destroy(struct harness *h);
int harness_setup(void **state); /* a and b */
int scripted_setup(void **state); /* a and a script */
int proven_setup(void **state); /* the same, and harness_prove() */
/*
 * b acknowledges an answer of a, so a sends it whole windows from now on. Call it before the test
 * proper: a's counters and the harness's start again.
 */
void harness_prove(struct harness *h);
int harness_teardown(void **state);

static inline uint8_t
pattern(uint64_t i)
{
	return (uint8_t)(i * 7 + (i >> 8));
}
struct mad_source pattern_source(struct harness *h, uint64_t length);

/* --- time and the wire --- */
void transmit(struct manager *m); /* m sends all that is due */
void deliver(struct manager *m); /* the other manager receives what m sent */
void exchange(struct harness *h); /* both, until nothing is left to send */
void pass(struct harness *h, uint64_t ns); /* advance time: timers fire, due packets are sent */
/* Run with the wire's latency until nothing is left or the time is over. @return nothing is left */
bool harness_run(struct harness *h, uint64_t ns);
/* lose the nth packet that m sends from now on, from 0 */
void lose(struct manager *m, uint64_t nth);

/* All packets that m has sent since the last expectation, in this order. */
void expect_sent(struct manager *m, const char *first, ...);
#define expect_tx(m, ...) expect_sent(m, __VA_ARGS__, NULL)
#define expect_silence(m) expect_sent(m, NULL)
/* The next packets are middle segments first..last. */
void expect_segments(struct manager *m, uint8_t method, uint32_t first, uint32_t last);
/* The next packet as bytes; fails if there is none. */
const uint8_t *next_sent(struct manager *m);
void next_packet(struct manager *m, struct packet *pkt); /* the next packet with its headers */
void skip_sent(struct manager *m); /* ignore what was sent so far */

/* --- b, played by the test --- */
/* b sends a datagram with these MAD bytes. */
enum verdict say(struct harness *h, const uint8_t *mad);
/* The same with headers and length chosen by the test. */
enum verdict say_frame(struct harness *h, const struct wire_headers *headers, const uint8_t *mad,
	uint32_t len, bool break_icrc);
/* The same from the address av. */
enum verdict say_by(struct harness *h, const struct av *av, const struct wire_headers *headers,
	const uint8_t *mad);
struct av harness_av(const struct manager *from); /* to the other */
/* b sends a whole packet from its LRH or IP header on, without CRCs. */
enum verdict say_bytes(struct harness *h, const uint8_t *l3, uint32_t len);
/* From another address: 10.0.x.y of who, and another QP. */
enum verdict say_from(struct harness *h, const uint8_t *mad, uint16_t who, uint32_t qpn);
/* A class version 1 MAD, attribute NodeRecord, TID h->tid. @return mad */
uint8_t *v1_mad(const struct harness *h, uint8_t *mad, uint8_t method, uint8_t flags,
	uint32_t segment, uint32_t length, uint16_t window);
#define say_v1(h, ...) say(h, v1_mad(h, (uint8_t[MAD_LEN]){ 0 }, __VA_ARGS__))

/* --- asking --- */
/* A call from m to the other; version 1; data go to the harness's taker. */
void call_init(struct manager *m, struct mad_call *c, uint8_t *mad, uint8_t method, uint8_t flags);

struct mad_counters counters_of(const struct manager *m);
unsigned int sessions_of(const struct manager *m);
const char *state_of(const struct manager *m); /* state of m's only session, or "none" */
/* Checks that no session and no chunk is left and every source is released. */
void expect_clean(struct harness *h);

#endif
