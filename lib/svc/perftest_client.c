/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "svc/perftest_client.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define CYCLE_BUFFER 4096
#define CACHE_LINE   64

/*
 * The script, one letter per step: v version, c cycle buffer, l cache line, m MTU, z a QP with QPN
 * 0 because it does not exist yet, a all QPs in turn, o the first QP, r a report, d done (TCP
 * only), C both sides connect, M traffic.
 */
static const char greeting[] = "vclmzCza", greeting_stream[] = "vclmaC";

static const struct {
	const char *name;
	const char *script; /* after the greeting */
} programs[] = {
	[PERFTEST_SEND_BW] = { "ib_send_bw", "oaoMod" },
	[PERFTEST_SEND_LAT] = { "ib_send_lat", "oaoMod" },
	[PERFTEST_WRITE_BW] = { "ib_write_bw", "aoMorod" },
	[PERFTEST_WRITE_LAT] = { "ib_write_lat", "oaoM" },
	[PERFTEST_READ_BW] = { "ib_read_bw", "aoMorod" },
	[PERFTEST_READ_LAT] = { "ib_read_lat", "oaoMod" },
	[PERFTEST_ATOMIC_BW] = { "ib_atomic_bw", "aoMorod" },
	[PERFTEST_ATOMIC_LAT] = { "ib_atomic_lat", "oaoMod" },
};

const char *
perftest_program_name(enum perftest_program program)
{
	return programs[program].name;
}

void
perftest_client_begin(struct perftest_client *c, enum perftest_program program)
{
	size_t len = (size_t)snprintf(c->script, sizeof(c->script), "%s%s",
		c->stream ? greeting_stream : greeting, programs[program].script);

	if (!c->stream && c->script[len - 1] == 'd')
		c->script[len - 1] = '\0';
	c->at = 0;
	c->nth = 0;
}

enum perftest_client_step
perftest_client_step(const struct perftest_client *c)
{
	switch (c->script[c->at]) {
	case '\0':
		return PERFTEST_CLIENT_OVER;
	case 'C':
		return PERFTEST_CLIENT_CONNECT;
	case 'M':
		return PERFTEST_CLIENT_MEASURE;
	default:
		return PERFTEST_CLIENT_SAY;
	}
}

/* --- messages to the server --- */

static size_t
say_dest(const struct perftest_client *c, const struct perftest_dest *d, uint8_t *message)
{
	if (c->stream)
		return perftest_text_write(d, message);
	perftest_bytes_write(d, message);
	return PERFTEST_BYTES;
}

static size_t
say_number(const struct perftest_client *c, uint8_t *message)
{
	const struct perftest_report *r = &c->report;
	const double doubles[] = { r->peak, r->average, r->rate };
	uint64_t number = c->nth == 0 ? r->size : r->iterations;

	if (c->nth >= 2)
		memcpy(&number, &doubles[c->nth - 2], sizeof(number));
	put_be64(message, number);
	return PERFTEST_NUMBER;
}

static size_t
say_word(uint32_t word, uint8_t *message)
{
	put_be32(message, word);
	return PERFTEST_WORD;
}

size_t
perftest_client_say(const struct perftest_client *c, uint8_t *message)
{
	static const struct perftest_dest none = { .has_gid = true };

	switch (c->script[c->at]) {
	case 'v':
		return perftest_version_write(message);
	case 'c':
		return say_word(CYCLE_BUFFER, message);
	case 'l':
		return say_word(CACHE_LINE, message);
	case 'm':
		message[0] = perftest_mtu_digit(c->mtu);
		message[1] = '\0';
		return PERFTEST_MTU_LEN;
	case 'z':
		return say_dest(c, &none, message);
	case 'r':
		return say_number(c, message);
	case 'd':
		memcpy(message, PERFTEST_DONE_TEXT, sizeof(PERFTEST_DONE_TEXT));
		return sizeof(PERFTEST_DONE_TEXT);
	default:
		return say_dest(c, &c->ours[c->nth], message);
	}
}

/* --- answers of the server --- */

static const char *
hear_version(struct perftest_client *c, const uint8_t *answer, size_t len)
{
	if (!perftest_is_version(answer, len))
		return "is no perftest";
	memcpy(c->version, answer, len);
	return perftest_is_old(answer) ? "is too old a perftest" : NULL;
}

static const char *
hear_mtu(struct perftest_client *c, const uint8_t *answer)
{
	uint16_t theirs = perftest_mtu_bytes(answer[0]);

	if (theirs == 0)
		return "names no path MTU";
	if (theirs < c->mtu)
		c->mtu = theirs;
	return NULL;
}

static const char *
hear_dest(struct perftest_client *c, const uint8_t *answer, size_t len)
{
	struct perftest_dest *d = &c->theirs[c->nth];

	if (!c->stream)
		perftest_bytes_read(answer, d);
	else if (!perftest_text_read(answer, len, d) || d->qpn == 0 || d->qpn == QPN_MULTICAST)
		return "does not describe a queue pair";
	return NULL;
}

/* Repeat the step for the next QP, or go to the next step. */
static void
step_on(struct perftest_client *c)
{
	char said = c->script[c->at];
	uint32_t times = said == 'a' ? c->num_qps : said == 'r' ? PERFTEST_NUMBERS : 1;

	if (++c->nth < times)
		return;
	c->nth = 0;
	c->at++;
}

const char *
perftest_client_hear(struct perftest_client *c, const uint8_t *answer, size_t len)
{
	uint8_t said[PERFTEST_MESSAGE_MAX];
	const char *wrong = NULL;

	if (len != perftest_client_say(c, said))
		return "answers with something else";
	switch (c->script[c->at]) {
	case 'v':
		wrong = hear_version(c, answer, len);
		break;
	case 'c':
		c->cycle_buffer = get_be32(answer) > CYCLE_BUFFER ? get_be32(answer) : CYCLE_BUFFER;
		break;
	case 'm':
		wrong = hear_mtu(c, answer);
		break;
	case 'a':
	case 'o':
		wrong = hear_dest(c, answer, len);
		break;
	default: /* the other answers are not checked */
		break;
	}
	if (wrong == NULL)
		step_on(c);
	return wrong;
}

void
perftest_client_done(struct perftest_client *c)
{
	c->at++;
}
