/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

const struct mad_limits pair_limits = {
	.max_sessions = 2048,
	.max_sessions_per_peer = 2048,
	.max_bytes = 16 << 20,
	.max_bytes_per_peer = 16 << 20,
	.v1_window = 64,
	.rmpp_window = 16,
	.rmpp_send_max = 64,
	.retries = 7,
	.resp_time = 10,
	.rmpp_total_ms = 40000,
	.keepalive_total_ms = 1000,
};

/* --- set-up --- */

static const struct port_attr *
live_get_port(void *arg, uint16_t port)
{
	const struct harness *h = arg;

	return port == 0 ? &h->a.attr : NULL;
}

/* who meets whom in the table of sources is the same in each run */
static void
live_fixed_fill(void *arg, void *buf, size_t len)
{
	(void)arg;
	memset(buf, 0x5A, len);
}

static const struct rng fixed_rng = { .fill = live_fixed_fill };

struct pair *
pair_create(const struct pair_config *config)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct harness_config hc = config != NULL ? config->harness : (struct harness_config){ 0 };
	struct live_config lc = {
		.alloc = &allocator_malloc,
		.rng = &fixed_rng,
		.hz = 1000000000,
		.limits = live_limits_default,
		.host = "host.domain",
		.port = live_get_port,
	};

	assert_non_null(p);
	hc.bare = true;
	if (hc.limits.max_sessions == 0)
		hc.limits = pair_limits;
	p->h = harness_create(&hc);
	lc.mad = p->h->a.w;
	lc.port_arg = p->h;
	if (config != NULL) {
		if (config->limits.sources != 0)
			lc.limits = config->limits;
		lc.cpu = config->cpu;
		lc.num_cpus = config->num_cpus;
	}
	p->live = live_create(&lc);
	assert_non_null(p->live);
	return p;
}

void
pair_destroy(struct pair *p)
{
	harness_destroy(p->h);
	live_destroy(p->live);
	free(p->data);
	free(p);
}

int
pair_setup(void **state)
{
	*state = pair_create(NULL);
	return 0;
}

int
pair_scripted_setup(void **state)
{
	*state = pair_create(&(struct pair_config){ .harness.scripted = true });
	return 0;
}

int
pair_teardown(void **state)
{
	pair_destroy(*state);
	return 0;
}

/* --- bytes --- */

size_t
hex(uint8_t *out, const char *text)
{
	unsigned int byte;
	size_t n = 0;

	while (*text != '\0') {
		if (isspace((unsigned char)*text)) {
			text++;
			continue;
		}
		assert_int_equal(sscanf(text, "%2x", &byte), 1);
		out[n++] = (uint8_t)byte;
		text += 2;
	}
	return n;
}

uint8_t *
live_mad(uint8_t *mad, uint8_t method, uint8_t type)
{
	memset(mad, 0, MAD_LEN);
	hex(mad,
		"01340101 00000000 0000000000000006 00000000 00000000 "
		"000000000000000000000000 00 001405 00000000 1234 0001");
	mad[3] = method;
	mad[40] = type;
	return mad;
}

void
expect_answer(struct pair *p, const uint8_t *request, const uint8_t *answer)
{
	assert_int_equal(say(p->h, request), VERDICT_DATAGRAM);
	assert_memory_equal(next_sent(&p->h->a), answer, MAD_LEN);
	expect_silence(&p->h->a);
}

void
expect_status(struct pair *p, const uint8_t *request, uint8_t method, uint16_t status)
{
	uint8_t want[MAD_LEN] = { 0 };
	const uint8_t *got;

	assert_int_equal(say(p->h, request), VERDICT_DATAGRAM);
	got = next_sent(&p->h->a);
	memcpy(want, request, 24);
	want[3] = method;
	put_be16(want + 4, status);
	assert_memory_equal(got, want, 36);
	assert_memory_equal(got + 40, want + 40, MAD_LEN - 40);
	expect_silence(&p->h->a);
}

void
expect_no_answer(struct pair *p, const uint8_t *request, enum verdict verdict)
{
	assert_string_equal(verdict_infos[say(p->h, request)].name, verdict_infos[verdict].name);
	expect_silence(&p->h->a);
}

/* --- asking --- */

static int
many_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	memcpy(buf, (const uint8_t *)arg + offset, len);
	return 0;
}

static int
live_take(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct pair *p = arg;

	assert_int_equal(offset, p->len);
	p->data = realloc(p->data, p->len + len);
	assert_non_null(p->data);
	memcpy(p->data + p->len, data, len);
	p->len += len;
	return 0;
}

static void
live_taken(void *arg, const struct mad_result *result)
{
	struct pair *p = arg;

	p->done++;
	p->result = *result;
	if (result->mad == NULL)
		return;
	memcpy(p->mad, result->mad, MAD_LEN);
	if (p->len == 0)
		live_take(p, 0, result->mad + VENDOR_OFF_DATA, VENDOR_AREA);
}

void
ask_for(struct pair *p, const uint8_t *mad, const uint8_t *many, uint64_t len, uint8_t flags)
{
	struct mad_call call = {
		.to = { .av = harness_av(&p->h->b), .qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF,
			.neighbour = PATH_NO_NEIGHBOUR, },
		.protocol = MAD_RMPP,
		.data_offset = VENDOR_OFF_DATA,
		.flags = flags,
		.mad = mad,
		.resp_time = 10,
		.taker = { .arg = p, .data = live_take, .done = live_taken },
	};
	unsigned int i;

	if (many != NULL)
		call.source = (struct mad_source){
			.arg = (void *)(uintptr_t)many,
			.length = len,
			.read = many_read,
		};
	p->len = 0;
	p->done = 0;
	assert_int_equal(mad_call(p->h->b.w, &call, p->h->now, NULL), 0);
	for (i = 0; p->done == 0 && i < 10000; i++)
		harness_run(p->h, 10 * MS);
	assert_int_equal(p->done, 1);
}

void
ask(struct pair *p, const struct live_request *req, struct live_reply *reply)
{
	uint8_t *body = malloc(8 + (size_t)req->len), mad[MAD_LEN];
	bool many;

	assert_non_null(body);
	many = live_build(req, mad, body);
	ask_for(p, mad, many ? body : NULL, 8 + (uint64_t)req->len,
		many ? MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE
			: req->mode == LIVE_MODE_SYSSTAT_CPU ? MAD_METHOD_MULTI_RESPONSE
							     : 0);
	free(body);
	memset(reply, 0, sizeof(*reply));
	reply->error = mad_end_name(p->result.end);
	if (p->result.end == MAD_END_OK)
		live_check(req, p->mad, p->data, p->len, reply);
}
