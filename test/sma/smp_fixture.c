/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>

#include "smp_fixture.h"
#include "wire/opcode.h"

/* --- the sink --- */

static uint8_t *
smp_fixture_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct bench *b = (struct bench *)sink;

	b->path = path;
	b->reserved = len;
	return b->frame + path->header_len;
}

static void
smp_fixture_sink_commit(struct tx_sink *sink)
{
	struct bench *b = (struct bench *)sink;
	struct packet pkt;
	enum verdict why;
	uint32_t len;

	len = path_finish(b->path, b->frame + b->path->header_len, b->reserved, 0);
	assert_true(wire_parse(ENCAP_IB, b->frame + 14, len - 14, &pkt, &why));
	assert_true(wire_crc_ok(&pkt, &why));
	assert_int_equal(pkt.payload_len, MAD_LEN);
	if (pkt.payload[3] == 0x05) {
		b->traps++;
		memcpy(b->trap_mad, pkt.payload, MAD_LEN);
		return;
	}
	assert_false(b->answered); /* one answer to a request */
	b->answered = true;
	b->reply = pkt;
	memcpy(b->reply_mad, pkt.payload, MAD_LEN);
}

/* --- the fixture --- */

static const struct port_attr *
smp_fixture_port_of(void *arg, uint16_t port)
{
	struct bench *b = arg;

	return port < 3 ? &b->attr[port] : NULL;
}

static void
smp_fixture_apply(void *arg, uint16_t port, const struct port_settings *s)
{
	struct bench *b = arg;

	assert_true(port < BENCH_PORTS);
	b->applied[port]++;
	b->before[port] = b->settings[port];
	b->settings[port] = *s;
	b->attr[port].lid = s->lid;
	b->attr[port].lmc = s->lmc;
	b->attr[port].state = s->state;
}

static void
smp_fixture_event(void *arg, const struct event *ev)
{
	struct bench *b = arg;

	assert_true(b->num_events < BENCH_EVENTS);
	b->event[b->num_events++] = *ev;
}

static void
to_sm(void *arg, uint16_t port, uint16_t slid, const uint8_t mad[MAD_LEN])
{
	struct bench *b = arg;

	b->to_sm++;
	b->sm_port = port;
	b->sm_slid = slid;
	memcpy(b->sm_mad, mad, MAD_LEN);
}

static void
smp_fixture_make_mad(struct bench *b)
{
	struct mad_worker_config mc = {
		.workers = 1,
		.hz = SECOND,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.wheel = b->wheel,
		.tx = &b->sink,
		.port = smp_fixture_port_of,
		.port_arg = b,
		.limits = mad_limits_default,
		.icrc_unchecked = true,
	};

	mc.limits.max_sessions = 64;
	mc.limits.max_bytes = mc.limits.max_bytes_per_peer = 1 << 16;
	b->mad = mad_worker_create(&mc);
	assert_non_null(b->mad);
}

static void
make_sma(struct bench *b, void (*change)(struct sma_config *c, struct sma_port_config *port))
{
	struct sma_port_config port[BENCH_PORTS] = {
		{
			.port = 0,
			.guid = PORT1_GUID,
			.lid = 5,
			.sm_lid = 7,
			.sm_sl = 2,
			.mtu = 2048,
			.vl_cap = 4,
			.width = 0x3,
			.speed = 0x7,
			.speed_ext = 0x3,
			.is_sm = true,
			.sm_priority = 5,
			.sm_state = 2,
		},
		{
			.port = 1,
			.guid = PORT2_GUID,
			.lid = 6,
			.sm_lid = 7,
			.mtu = 4096,
			.vl_cap = 1,
			.width = 0x2,
			.speed = 0x1,
		},
	};
	struct sma_config c = {
		.mad = b->mad,
		.wheel = b->wheel,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.hz = SECOND,
		.node_desc = "polca test node",
		.node_guid = 0x0002C90300000100ull,
		.system_image_guid = 0x0002C903000001FFull,
		.vendor_id = 0x001405,
		.device_id = 0xBEEF,
		.revision = 0x000000A1,
		.num_ports = 3,
		.resp_time = 16,
		.port = port,
		.num_managed = BENCH_PORTS,
		.limits = sma_limits_default,
		.apply = smp_fixture_apply,
		.event = smp_fixture_event,
		.to_sm = to_sm,
		.arg = b,
	};

	if (change != NULL)
		change(&c, port);
	b->sma = sma_create(&c);
	assert_non_null(b->sma);
}

struct bench *
bench_create(void (*change)(struct sma_config *c, struct sma_port_config *port))
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->sink = (struct tx_sink){ smp_fixture_sink_reserve, smp_fixture_sink_commit };
	b->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	assert_non_null(b->wheel);
	for (uint16_t i = 0; i < 3; i++)
		b->attr[i] = (struct port_attr){
			.index = i,
			.ib = i < 2,
			.up = true,
			.vlan = PATH_NO_VLAN,
			.mac = { 2, 0, 0, 0, 0, (uint8_t)(i + 1) },
		};
	b->mgmt_class = 0x01;
	b->data = b->reply_mad + 64;
	smp_fixture_make_mad(b);
	make_sma(b, change);
	/* one link before the start, one after it */
	sma_link(b->sma, 1, true, b->now);
	assert_int_equal(b->applied[1], 0);
	sma_start(b->sma, b->now);
	sma_link(b->sma, 0, true, b->now);
	return b;
}

int
bench_setup(void **state)
{
	*state = bench_create(NULL);
	return 0;
}

int
bench_teardown(void **state)
{
	struct bench *b = *state;

	sma_destroy(b->sma);
	mad_worker_destroy(b->mad);
	/* nothing is left armed */
	assert_int_equal(timer_wheel_run(b->wheel, b->now + 100000 * SECOND), 0);
	timer_wheel_destroy(b->wheel);
	free(b);
	return 0;
}

static void
smp_fixture_turn(struct bench *b)
{
	timer_wheel_run(b->wheel, b->now);
	while (mad_run(b->mad, b->now, 64) != 0)
		;
	timer_wheel_sent(b->wheel, b->now);
}

void
bench_pass(struct bench *b, uint64_t ns)
{
	uint64_t end = b->now + ns, next;

	smp_fixture_turn(b);
	while (b->now < end) {
		next = timer_wheel_next(b->wheel);
		if (next <= b->now)
			next = b->now + 1;
		b->now = next < end ? next : end;
		smp_fixture_turn(b);
	}
}

/* --- requests --- */

uint8_t *
make(struct bench *b, uint8_t method, uint16_t attribute, uint32_t modifier, const uint8_t *data)
{
	uint8_t *mad = b->mad_sent;

	memset(mad, 0, MAD_LEN);
	mad[0] = 1;
	mad[1] = b->mgmt_class;
	mad[2] = 1;
	mad[3] = method;
	put_be64(mad + 8, 0x1122334455667788ull);
	put_be16(mad + 16, attribute);
	put_be32(mad + 20, modifier);
	put_be64(mad + 24, b->m_key);
	if (data != NULL)
		memcpy(mad + 64, data, 64);
	if (b->mgmt_class == 0x81)
		memset(mad + 32, 0xFF, 4); /* DrSLID, DrDLID; hop count 0 */
	return mad;
}

int
send_made(struct bench *b)
{
	static const uint8_t smac[6] = { 2, 0, 0, 0, 0, 9 };
	struct packet pkt = {
		.op = &opcodes[0x64],
		.opcode = 0x64,
		.payload = b->mad_sent,
		.payload_len = MAD_LEN,
		.pkey = 0xFFFF,
		.encap = ENCAP_IB,
		.vl = 15,
		.port = b->port,
		.smac = smac,
		.slid = 7,
		.dlid = b->attr[b->port].lid,
	};

	if (b->mgmt_class == 0x81)
		pkt.slid = pkt.dlid = 0xFFFF;
	b->answered = false;
	b->verdict = mad_receive_smp(b->mad, &pkt, b->now);
	smp_fixture_turn(b);
	return b->answered ? get_be16(b->reply_mad + 4) & 0x7FFF : SILENT;
}

int
ask(struct bench *b, uint8_t method, uint16_t attribute, uint32_t modifier, const uint8_t *data)
{
	make(b, method, attribute, modifier, data);
	return send_made(b);
}

int
get(struct bench *b, uint16_t attribute, uint32_t modifier)
{
	return ask(b, GET, attribute, modifier, NULL);
}

int
set(struct bench *b, uint16_t attribute, uint32_t modifier, const uint8_t *data)
{
	return ask(b, SET, attribute, modifier, data);
}

/* --- PortInfo --- */

void
port_info(struct bench *b, uint8_t *info)
{
	assert_int_equal(get(b, 0x0015, 0), 0);
	memcpy(info, b->data, 64);
	info[PORT_STATE] &= 0xF0;
	info[PHYS_STATE] &= 0x0F;
	memset(info + 44, 0xFF, 6);
}

int
set_byte(struct bench *b, unsigned int offset, uint8_t value)
{
	uint8_t info[64];

	port_info(b, info);
	info[offset] = value;
	return set(b, 0x0015, 0, info);
}

int
set_16(struct bench *b, unsigned int offset, uint16_t value)
{
	uint8_t info[64];

	port_info(b, info);
	put_be16(info + offset, value);
	return set(b, 0x0015, 0, info);
}

int
smp_set_state(struct bench *b, uint8_t state, uint8_t phys)
{
	uint8_t info[64];

	port_info(b, info);
	info[PORT_STATE] |= state;
	info[PHYS_STATE] |= phys << 4;
	return set(b, 0x0015, 0, info);
}

uint8_t
state_of(struct bench *b)
{
	assert_int_equal(get(b, 0x0015, 0), 0);
	return b->data[PORT_STATE] & 0xF;
}

uint8_t
phys_of(struct bench *b)
{
	assert_int_equal(get(b, 0x0015, 0), 0);
	return b->data[PHYS_STATE] >> 4;
}

/* --- events --- */

void
expect_event(struct bench *b, enum event_type type, uint32_t element)
{
	const struct event *ev = &b->event[b->seen_events];

	if (b->seen_events == b->num_events)
		fail_msg("no event, expected %s", event_type_name(type));
	assert_string_equal(event_type_name(ev->type), event_type_name(type));
	assert_int_equal(ev->element, element);
	b->seen_events++;
}

void
expect_no_event(struct bench *b)
{
	if (b->seen_events != b->num_events)
		fail_msg("event %s", event_type_name(b->event[b->seen_events].type));
}

/* --- bits --- */

uint64_t
bits_of(const uint8_t *bytes, unsigned int first, unsigned int n)
{
	uint64_t v = 0;

	for (unsigned int i = first; i < first + n; i++)
		v = v << 1 | (bytes[i / 8] >> (7 - i % 8) & 1);
	return v;
}

void
bits_to(uint8_t *bytes, unsigned int first, unsigned int n, uint64_t value)
{
	for (unsigned int i = first + n; i-- > first; value >>= 1) {
		uint8_t bit = 0x80 >> i % 8;

		bytes[i / 8] = (value & 1) ? bytes[i / 8] | bit : bytes[i / 8] & ~bit;
	}
}
