/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <string.h>

#include "trap_fixture.h"

/* --- the sink --- */

static uint8_t *
trap_fixture_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct bench *b = (struct bench *)sink;

	if (b->room == 0)
		return NULL;
	assert_true(b->num_sent < BENCH_SENT_MAX);
	b->path = path;
	b->reserved = len;
	return b->sent[b->num_sent].frame + path->header_len;
}

static void
trap_fixture_sink_commit(struct tx_sink *sink)
{
	struct bench *b = (struct bench *)sink;
	struct sent *s = &b->sent[b->num_sent++];
	enum verdict why;

	s->len = path_finish(b->path, s->frame + b->path->header_len, b->reserved, 0);
	assert_true(wire_parse(ENCAP_IB, s->frame + 14, s->len - 14, &s->pkt, &why));
	assert_true(wire_crc_ok(&s->pkt, &why));
	assert_int_equal(s->pkt.payload_len, MAD_LEN);
	memcpy(s->mad, s->pkt.payload, MAD_LEN);
	s->at = b->now;
	b->room--;
}

/* --- the fixture --- */

static const struct port_attr *
trap_fixture_port_of(void *arg, uint16_t port)
{
	struct bench *b = arg;

	(void)port;
	return &b->attr;
}

void
bench_port_info(struct sma_port *p, unsigned int offset, uint16_t value)
{
	put_be16(p->info + offset, value);
}

void
bench_port_state(struct sma_port *p, uint8_t state)
{
	p->info[PORT_STATE] = (p->info[PORT_STATE] & 0xF0) | state;
}

static void
trap_fixture_make_mad(struct bench *b)
{
	struct mad_worker_config mc = {
		.workers = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.wheel = b->wheel,
		.tx = &b->sink,
		.port = trap_fixture_port_of,
		.port_arg = b,
		.limits = mad_limits_default,
	};

	mc.limits.max_sessions = BENCH_SESSIONS;
	mc.limits.max_bytes = mc.limits.max_bytes_per_peer = 1 << 16;
	b->mad = mad_worker_create(&mc);
	assert_non_null(b->mad);
}

static void
trap_fixture_make_port(struct bench *b, unsigned int i)
{
	struct sma_port *p = &b->sma->port[i];

	p->sma = b->sma;
	p->index = (uint16_t)i;
	p->link_up = true;
	bench_port_info(p, LID, (uint16_t)(5 + i));
	bench_port_info(p, MASTER_SM_LID, 7);
	bench_port_state(p, ACTIVE);
	p->info[SUBNET_TIMEOUT] = 10;
	b->sma->port_of[i] = p;
	sma_trap_init(p);
}

int
bench_setup(void **state)
{
	static const struct sma_limits limits = {
		.trap_interval_ms = 1000,
		.trap_retries = 3,
		.trap_rate = 100,
		.trap_burst = SMA_TRAPS_MAX + 1,
	};
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->sink = (struct tx_sink){ trap_fixture_sink_reserve, trap_fixture_sink_commit };
	b->room = BENCH_SENT_MAX;
	b->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	assert_non_null(b->wheel);
	b->attr = (struct port_attr){
		.ib = true,
		.up = true,
		.vlan = PATH_NO_VLAN,
		.lid = 5,
		.state = PORT_STATE_ACTIVE,
		.mac = { 2, 0, 0, 0, 0, 5 },
	};
	trap_fixture_make_mad(b);
	b->sma = calloc(1, sizeof(*b->sma) + 2 * sizeof(b->sma->port[0]));
	assert_non_null(b->sma);
	b->sma->config = (struct sma_config){
		.mad = b->mad,
		.wheel = b->wheel,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.system_image_guid = UINT64_C(0x0011223344556677),
	};
	b->sma->config.limits = limits;
	b->sma->num_ports = 2;
	b->p = &b->sma->port[0];
	trap_fixture_make_port(b, 0);
	trap_fixture_make_port(b, 1);
	*state = b;
	return 0;
}

int
bench_teardown(void **state)
{
	struct bench *b = *state;
	uint64_t used, total;

	unsigned int i;

	sma_trap_fini(&b->sma->port[0]);
	sma_trap_fini(&b->sma->port[1]);
	for (i = 0; i < 2 * SMA_TRAPS_MAX; i++)
		assert_false(timer_armed(&b->sma->port[i % 2].trap[i / 2].timer));
	mad_worker_memory(b->mad, &used, &total);
	assert_int_equal(used, 0);
	free(b->sma);
	mad_worker_destroy(b->mad);
	timer_wheel_destroy(b->wheel);
	free(b);
	return 0;
}

void
bench_limits(struct bench *b, const struct sma_limits *l)
{
	b->sma->config.limits = *l;
	sma_trap_init(b->p);
	sma_trap_init(&b->sma->port[1]);
}

static void
trap_fixture_turn(struct bench *b)
{
	timer_wheel_run(b->wheel, b->now);
	while (mad_run(b->mad, b->now, 64) != 0)
		;
	timer_wheel_sent(b->wheel, b->now);
}

void
bench_pass(struct bench *b, uint64_t ns)
{
	uint64_t end = b->now + ns;

	trap_fixture_turn(b);
	while (b->now < end) {
		uint64_t next = timer_wheel_next(b->wheel);

		if (next <= b->now)
			next = b->now + 1;
		b->now = next < end ? next : end;
		trap_fixture_turn(b);
	}
}

const struct sent *
bench_next(struct bench *b)
{
	if (b->seen == b->num_sent)
		fail_msg("nothing was sent");
	return &b->sent[b->seen++];
}

void
bench_expect_silence(struct bench *b)
{
	assert_int_equal(b->num_sent - b->seen, 0);
}

struct sma_trap *
bench_raise(struct bench *b, uint16_t cause)
{
	uint8_t notice[SMA_DATA_LEN];

	sma_notice_link(b->p, 129, notice);
	put_be16(notice + 62, cause);
	return sma_trap_raise(b->p, notice, b->now);
}

void
bench_repress(struct bench *b, const uint8_t *notice)
{
	uint8_t mad[MAD_LEN] = { 1, 1, 1, 0x07, [17] = 2 };

	memcpy(mad + 64, notice, SMA_DATA_LEN);
	sma_trap_repressed(b->p, mad, b->now);
}
