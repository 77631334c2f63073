/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

/**
 * @file
 * The command line: one table of options (options_table.c), read by the parser, the help and the
 * report.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "table/table.h"

enum bench_verb { BENCH_SEND, BENCH_WRITE, BENCH_READ, BENCH_ATOMIC, BENCH_SKELETON };
enum bench_mode { BENCH_BW, BENCH_RATE, BENCH_LAT };

/** What the command line says; 0 of a number: it does not say, see options_complete(). */
struct bench_options {
	enum bench_verb verb;
	enum bench_mode mode;
	uint32_t size; /**< bytes of a message */
	bool all_sizes; /**< 2, 4, 8, ... .size */
	uint32_t qps;
	uint32_t depth; /**< work requests that stand in a send queue */
	uint32_t rx_depth; /**< and in a receive queue */
	uint32_t mtu; /**< PMTU */
	uint32_t footprint; /**< bytes of memory that the messages go through */
	uint32_t signal_every; /**< of so many requests one is signaled */
	uint32_t inline_size; /**< messages up to it are posted inline */
	uint32_t atomic; /**< 0: fetch-add, 1: cmp-swap */
	bool bidirectional;
	bool ack_per_packet;
	bool icrc; /**< made and checked */
	bool record; /**< the flight recorder is on */
	bool check; /**< bytes are compared */
	bool roofline; /**< measure what bounds it, in turn with it */
	uint32_t timeout; /**< Local ACK Timeout */
	uint32_t rnr_timer; /**< what a receiver asks for that has no receive */
	uint32_t loss; /**< of so many packets one is lost; 0: none */
	uint32_t beside; /**< bytes that another queue pair reads at a time; 0: none does */
	double seconds;
	uint64_t iterations; /**< just so many messages, 0: for .seconds */
	const char *link; /**< NAME[,KEY=VALUE...], see link.h */
	const char *peer; /**< where the other process is told of ours: HOST:PORT or a path */
	const char *address; /**< ADDRESS/LENGTH of a device's port */
	const char *connect; /**< HOST:PORT of the service that is the other end */
	const char *perftest; /**< HOST:PORT of the perftest server that is */
	const char *verbs; /**< DEVICE[,DEVICE] of libibverbs, measured too */
	bool rdma_cm; /**< it is spoken to, and connected to, by the connection manager */
	uint32_t lcores; /**< of the two roles */
	uint32_t workers;
	uint32_t handoff; /**< percent of QPs whose packets arrive at another worker */
	bool rehome;
	bool hugepages;
	const char *plot; /**< the picture's file; NULL: none */
	const char *crc; /**< which kernel; NULL: the best one */
	bool json;
	uint32_t rounds; /**< each measures everything once */
	const char *only; /**< cases whose name has it; NULL: all */
	bool brief; /**< only to see that it works */
	bool version, help; /**< are asked for */
};

/** Groups of options, by what a command takes. */
#define TAKES_COMMON  0x01u /**< every command */
#define TAKES_TRAFFIC 0x02u /**< messages between queue pairs */
#define TAKES_ATOMIC  0x04u
#define TAKES_LINK    0x08u
#define TAKES_TIME    0x10u /**< how long, how many */
#define TAKES_HELP    0x20u /**< no command: the program itself */
#define TAKES_ROUNDS  0x40u /**< cases measured by turns */
#define TAKES_CASE    0x80u
#define TAKES_LEAST   0x100u /**< the least work, without queue pairs of ours */

/**
 * One option. A flag (TABLE_BOOL) sets its field to the opposite of .row.def. Only numbers, seconds
 * and words are decoded by lib/table: texts stay where they are in argv.
 */
struct option_row {
	struct table_row row;
	char letter; /**< 0: none */
	const char *argument; /**< in the help; NULL: takes none */
	unsigned int groups; /**< who takes it */
};

extern const struct option_row option_rows[];
extern const unsigned int option_count;
extern const struct bench_options bench_options_default;

#define WORDS_MAX 4

/** A command line taken apart. */
struct parsed {
	const char *word[WORDS_MAX]; /**< command, mode */
	unsigned int words;
	uint64_t given; /**< bit: row of option_rows */
};

/** @retval -EINVAL err says what was got and what is allowed */
int options_parse(struct bench_options *o, struct parsed *p, int argc, char **argv,
	struct error *err);
/** Are all the options given such that @p command takes (TAKES_ bits)? */
int options_allowed(const struct parsed *p, const char *command, unsigned int takes,
	struct error *err);
/** What was not said: by verb and mode. Then what does not go together. options_check.c */
int options_complete(struct bench_options *o, struct error *err);
/** Do queue pairs come with connections of the connection manager? */
bool options_connects(const struct bench_options *o);
/** Is .peer not where to ask, but what to know, or "-" for what standard input tells? */
bool options_given(const struct bench_options *o);
/**
 * Is .link a device of this host: "net_af_packet0,iface=eth1", or a PCI address? options_check.c
 */
bool options_device(const struct bench_options *o);
bool options_pci(const struct bench_options *o);
/** A text of the help, in its column; @p at characters of the line are there already. */
void options_explain(int at, const char *text);
/** The options that @p takes covers, as the help has them. */
void options_help(unsigned int takes);

#endif
