/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* polca-bench: measures how fast Polca is, and what limits it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_version.h>

#include "agents/rates.h"
#include "base/nearest.h"
#include "command.h"
#include "peers/bench_link.h"
#include "peers/remote.h"
#include "wire/crc32.h"

enum { STATUS_DONE, STATUS_FAILED, STATUS_USAGE };

#define TRAFFIC (TAKES_COMMON | TAKES_TRAFFIC | TAKES_LINK | TAKES_TIME)

static const char *const traffic_modes[] = { "bw", "rate", "lat", NULL };
static const char modes_help[] =
	"Modes: bw (bandwidth, the default), rate (message rate), lat (latency)\n";

static const char *const skeleton_modes[] = { "both", "requester", "responder", NULL };

static const struct command commands[] = {
	{ "send", "Sends", traffic_modes, TRAFFIC, BENCH_SEND, traffic_run },
	{ "write", "RDMA Writes", traffic_modes, TRAFFIC, BENCH_WRITE, traffic_run },
	{ "read", "RDMA Reads", traffic_modes, TRAFFIC, BENCH_READ, traffic_run },
	{ "atomic", "Fetch-and-adds or compare-and-swaps of 8 bytes", traffic_modes,
		TRAFFIC | TAKES_ATOMIC, BENCH_ATOMIC, traffic_run },
	{ "server", "the responder of one run of a command above, for another process", NULL,
		TAKES_COMMON | TAKES_LINK, BENCH_SEND, server_run },
	{ "sa", "subnet administration in memory: segments, tables, path queries a second", NULL,
		TAKES_COMMON | TAKES_ROUNDS | TAKES_CASE, BENCH_SEND, bench_sa_run },
	{ "ping", "liveness in memory: echoes a second, the time of an echo", NULL,
		TAKES_COMMON | TAKES_ROUNDS, BENCH_SEND, bench_ping_run },
	{ "cm", "connections in memory: connects and disconnects a second", NULL,
		TAKES_COMMON | TAKES_ROUNDS, BENCH_SEND, bench_cm_run },
	{ "skeleton",
		"the least possible work for Sends (Writes, if longer than -m), to compare with",
		skeleton_modes, TAKES_COMMON | TAKES_LEAST, BENCH_SKELETON, skeleton_run_command },
	{ "timers", "when packets are retransmitted, compared with RNR and Local ACK Timeout", NULL,
		TAKES_COMMON | TAKES_TIME, BENCH_SEND, timers_run },
};

volatile sig_atomic_t bench_stop;

static void
bench_on_signal(int sig)
{
	bench_stop = sig;
}

/*
 * A second SIGINT or SIGTERM ends the program at once. A second SIGHUP does not: when the terminal
 * is closed, both the kernel and the shell send one. An ignored SIGHUP (nohup) stays ignored.
 */
static void
bench_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = bench_on_signal }, inherited;

	if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sa.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void
links_help(void)
{
	unsigned int i;

	printf("\nLinks:\n");
	for (i = 0; i < bench_link_count; i++)
		options_explain(printf("  %s", bench_links[i].name), bench_links[i].help);
}

static void
bench_help(void)
{
	unsigned int i;

	printf("polca-bench %s: measures Polca on this machine, with perftest's figures\n\n"
	       "usage: polca-bench COMMAND [MODE] [OPTION...]\n"
	       "       polca-bench COMMAND --help\n\nCommands:\n",
		POLCA_VERSION);
	for (i = 0; i < RTE_DIM(commands); i++)
		options_explain(printf("  %s", commands[i].name), commands[i].help);
	printf("\n%s\nOptions of all commands:\n", modes_help);
	options_help(TAKES_COMMON | TAKES_HELP);
	links_help();
	printf("\nTo begin with: polca-bench send -s 64; polca-bench write -a; polca-bench send lat\n"
	       "Exit codes: 0 done, also after Ctrl-C (SIGINT, SIGTERM, SIGHUP), 1 failed, 2 wrong usage.\n");
}

static void
command_help(const struct command *c)
{
	unsigned int i;

	printf("polca-bench %s: %s\n\nusage: polca-bench %s", c->name, c->help, c->name);
	for (i = 0; c->modes != NULL && c->modes[i] != NULL; i++)
		printf("%s%s", i == 0 ? " [" : "|", c->modes[i]);
	printf("%s [OPTION...]\n\n", i > 0 ? "]" : "");
	if (c->modes == traffic_modes)
		printf("%s\n", modes_help);
	options_help(c->takes);
	if ((c->takes & (TAKES_LINK | TAKES_LEAST)) != 0)
		links_help();
}

static const struct command *
find_command(const char *name, struct error *err)
{
	struct nearest near = nearest_to(name);
	char allowed[160] = "";
	unsigned int i;

	for (i = 0; i < RTE_DIM(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s",
			i > 0 ? ", " : "", commands[i].name);
		nearest_try(&near, commands[i].name);
	}
	error_set(err, EINVAL, "command: got \"%.32s\", allowed: %s%s%s%s", name, allowed,
		near.word != NULL ? "; did you mean " : "", near.word != NULL ? near.word : "",
		near.word != NULL ? "?" : "");
	return NULL;
}

static int
find_mode(const struct command *c, const struct parsed *p, struct bench_options *o,
	struct error *err)
{
	uint32_t i;

	if (p->words < 2)
		return 0;
	if (p->words > 2 || c->modes == NULL)
		return error_set(err, EINVAL, "%s: \"%s\" is one word too many", c->name,
			p->word[c->modes == NULL ? 1 : 2]);
	for (i = 0; c->modes[i] != NULL; i++) {
		if (strcmp(c->modes[i], p->word[1]) == 0) {
			o->mode = i;
			return 0;
		}
	}
	return error_set(err, EINVAL, "%s: got \"%s\", allowed: %s, %s, %s", c->name, p->word[1],
		c->modes[0], c->modes[1], c->modes[2]);
}

static int
bench_usage(const struct error *err)
{
	fprintf(stderr, "polca-bench: %s\nTry 'polca-bench --help'.\n", err->text);
	return STATUS_USAGE;
}

static int
bench_run_command(const struct command *c, const struct bench_options *o)
{
	struct error err = { "" };
	struct report *r;
	int ret;

	if (o->crc != NULL && crc32_use(o->crc) != 0) {
		error_set(&err, EINVAL,
			"--crc: got \"%.32s\", allowed: portable, pclmul, vpclmul, if this CPU has it",
			o->crc);
		return bench_usage(&err);
	}
	r = report_create(c->name, o->json);
	report_options(r, o, c->takes);
	bench_catch_signals();
	ret = c->run(c, o, r, &err);
	if (report_end(r) != 0 && ret == 0)
		ret = error_set(&err, EIO, "the report could not be written");
	if (ret == 0)
		return STATUS_DONE;
	fprintf(stderr, "polca-bench: %s\n", err.text);
	if (strstr(err.text, "the log says why") != NULL)
		fprintf(stderr, "%s", bench_eal_log());
	return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

int
main(int argc, char **argv)
{
	const struct command *c = NULL;
	struct error err = { "" };
	struct bench_options o;
	struct parsed p;

	if (options_parse(&o, &p, argc, argv, &err) != 0)
		return bench_usage(&err);
	if (o.version) {
		printf("polca-bench %s, %s\n", POLCA_VERSION, rte_version());
		return STATUS_DONE;
	}
	if (p.words > 0)
		c = find_command(p.word[0], &err);
	if (p.words > 0 && c == NULL)
		return bench_usage(&err);
	if (o.help) {
		c != NULL ? command_help(c) : bench_help();
		return STATUS_DONE;
	}
	if (c == NULL) {
		error_set(&err, EINVAL, "a command is missing");
		return bench_usage(&err);
	}
	o.verb = c->verb;
	if (find_mode(c, &p, &o, &err) != 0 || options_allowed(&p, c->name, c->takes, &err) != 0 ||
		options_complete(&o, &err) != 0)
		return bench_usage(&err);
	return bench_run_command(c, &o);
}
