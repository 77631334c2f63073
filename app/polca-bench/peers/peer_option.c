/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * --peer gid=...,qpn=...,psn=... or --peer -: the other endpoint is any program. Print our queue
 * pair's numbers for it, and take its numbers from the option or from standard input.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "peers/connection.h"
#include "peers/remote.h"

#define LINE_MAX_BYTES 512

struct given_peer {
	union gid gid;
	uint64_t qpn, psn, va, rkey, length;
	unsigned int given; /* bits: index in keys[] */
};

enum { GID, QPN, PSN, VA, RKEY, LENGTH, KEYS };
static const struct {
	const char *name;
	size_t field;
	uint64_t max;
} keys[KEYS] = {
	[GID] = { "gid", 0, 0 },
	[QPN] = { "qpn", offsetof(struct given_peer, qpn), 0xFFFFFF },
	[PSN] = { "psn", offsetof(struct given_peer, psn), 0xFFFFFF },
	[VA] = { "va", offsetof(struct given_peer, va), UINT64_MAX },
	[RKEY] = { "rkey", offsetof(struct given_peer, rkey), UINT32_MAX },
	[LENGTH] = { "length", offsetof(struct given_peer, length), UINT64_MAX },
};

static bool
given_take_value(struct given_peer *g, unsigned int key, const char *value)
{
	uint64_t v;

	if (key == GID)
		return gid_parse(value, &g->gid);
	if (!number_parse(value, &v) || v > keys[key].max)
		return false;
	*(uint64_t *)(void *)((char *)g + keys[key].field) = v;
	return true;
}

/* The index of the key in a word such as "qpn=0x11". KEYS: unknown */
static unsigned int
given_key_of(const char *word)
{
	unsigned int i;
	size_t len;

	for (i = 0; i < KEYS; i++) {
		len = strlen(keys[i].name);
		if (strncmp(word, keys[i].name, len) == 0 && word[len] == '=')
			break;
	}
	return i;
}

static int
given_parse(const char *text, struct given_peer *g, struct error *err)
{
	char line[LINE_MAX_BYTES], *word, *save = NULL;
	unsigned int key;

	*g = (struct given_peer){ .given = 0 };
	snprintf(line, sizeof(line), "%s", text);
	for (word = strtok_r(line, ", \t\r\n", &save); word != NULL;
		word = strtok_r(NULL, ", \t\r\n", &save)) {
		key = given_key_of(word);
		if (key == KEYS || !given_take_value(g, key, strchr(word, '=') + 1))
			return error_set(err, EINVAL,
				"--peer: got \"%.64s\", allowed: gid=ADDRESS, "
				"qpn=N and psn=N up to 0xffffff, va=N, rkey=N, length=N",
				word);
		g->given |= 1u << key;
	}
	return 0;
}

static int
given_check(const struct given_peer *g, const struct bench_options *o, struct error *err)
{
	unsigned int needed = 1u << GID | 1u << QPN | 1u << PSN, i;

	if (o->verb != BENCH_SEND)
		needed |= 1u << VA | 1u << RKEY;
	for (i = 0; i < KEYS; i++)
		if ((needed >> i & 1) != 0 && (g->given >> i & 1) == 0)
			return error_set(err, EINVAL, "--peer: %s=... is missing", keys[i].name);
	if (g->length != 0 && g->length < o->size)
		return error_set(err, EINVAL,
			"--peer: length=%lu is less than a message's %u bytes (-s)", g->length,
			o->size);
	return 0;
}

static void
given_print_ours(struct benchmark *s)
{
	FILE *out = s->o.json ? stderr : stdout;
	struct endpoint *end = &s->end[REQUESTER];
	char gid[GID_STRLEN];
	struct peer us;

	endpoint_describe(end, &us);
	fprintf(out, "gid=%s,qpn=0x%06x,psn=0x%06x,va=0x%lx,rkey=0x%08x,length=%lu\n",
		gid_print(&us.gid, gid), us.qpn[0], us.psn, us.va, us.key, end->mr.length);
	fflush(out);
}

/*
 * Read a line of standard input. The engine keeps running, so that it answers ARP requests of the
 * peer.
 */
static int
read_stdin_line(struct benchmark *s, char *line, size_t size, struct error *err)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < size - 1 && (len == 0 || line[len - 1] != '\n')) {
		connection_turn(&s->end[REQUESTER]);
		if (bench_stop != 0)
			return error_set(err, EINTR, "interrupted");
		if (poll(&p, 1, 0) > 0) {
			n = read(STDIN_FILENO, line + len, 1);
			len += n > 0 ? (size_t)n : 0;
		}
	}
	line[len] = '\0';
	return 0;
}

static int
given_exchange(struct benchmark *s, struct given_peer *g, struct error *err)
{
	bool asked = strcmp(s->o.peer, "-") == 0;
	char line[LINE_MAX_BYTES];
	int ret;

	given_print_ours(s);
	if (!asked && isatty(STDIN_FILENO))
		fprintf(stderr, "Give this line to the other side, then press Enter\n");
	ret = read_stdin_line(s, line, sizeof(line), err);
	if (ret == 0 && asked)
		ret = given_parse(line, g, err);
	return ret == 0 ? given_check(g, &s->o, err) : ret;
}

static int
connect_given_peer(struct benchmark *s, const struct given_peer *g, struct error *err)
{
	struct peer *p = &s->peer[REQUESTER];

	p->gid = g->gid;
	p->psn = (uint32_t)g->psn;
	p->va = g->va;
	p->key = (uint32_t)g->rkey;
	p->length = g->length != 0 ? g->length : s->o.size;
	p->qpn = malloc(sizeof(*p->qpn));
	if (p->qpn == NULL)
		return error_set(err, ENOMEM, "no memory");
	p->qpn[0] = (uint32_t)g->qpn;
	return benchmark_connect(s, err);
}

static int
given_look(struct run *run, uint64_t now)
{
	benchmark_look(run->arg, now);
	return 0;
}

static int
given_measure(struct benchmark *s, struct error *err)
{
	int ret;

	benchmark_report_environment(s);
	benchmark_report_head(s);
	s->run.look = given_look;
	s->run.arg = s;
	ret = benchmark_prepare(s, s->o.size, err);
	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret == 0)
		benchmark_report_row(s, NULL);
	return ret;
}

int
peer_option_run(struct benchmark *s, struct error *err)
{
	struct eal_wish wish = { .workers = 0 };
	struct given_peer g;
	int ret = 0;

	/* report a wrong option before anything is started */
	if (strcmp(s->o.peer, "-") != 0) {
		ret = given_parse(s->o.peer, &g, err);
		if (ret == 0)
			ret = given_check(&g, &s->o, err);
	}
	benchmark_wish(&s->o, s->link, REQUESTER, &wish);
	if (ret == 0)
		ret = bench_eal_start(&s->o, &wish, err);
	if (ret == 0)
		ret = benchmark_create(s, err);
	if (ret == 0)
		ret = given_exchange(s, &g, err);
	if (ret == 0)
		ret = connect_given_peer(s, &g, err);
	if (ret == 0)
		ret = given_measure(s, err);
	free(s->peer[REQUESTER].qpn);
	return ret;
}
