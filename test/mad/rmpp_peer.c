/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "../wire/build.h"
#include "mad/session.h"
#include "rmpp_peer.h"

#define FIRST_NOW (1000 * MS)
#define STEP      (10 * US) /* at least, while time passes */

/* --- the sink --- */

static uint8_t *
rmpp_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct rmpp_peer *p = (struct rmpp_peer *)sink;

	(void)path;
	assert_int_equal(len, sizeof(p->packet));
	if (p->room == 0)
		return NULL;
	memset(p->packet, 0xEE, sizeof(p->packet));
	return p->packet;
}

static const char *
peer_method_name(uint8_t method)
{
	switch (method) {
	case 0x12:
		return "GetTable";
	case 0x14:
		return "GetMulti";
	case 0x92:
		return "GetTableResp";
	case 0x94:
		return "GetMultiResp";
	case 0x81:
		return "GetResp";
	}
	return "?";
}

static void
peer_describe(struct sent *t)
{
	const uint8_t *m = t->mad;
	uint32_t segment = get_be32(m + 28), length = get_be32(m + 32);
	uint16_t status = get_be16(m + 4);

	if (!(m[26] & 1)) {
		if (status != 0)
			snprintf(t->text, sizeof(t->text), "%s %04X", peer_method_name(m[3]),
				status);
		else
			snprintf(t->text, sizeof(t->text), "%s", peer_method_name(m[3]));
		return;
	}
	assert_int_equal(m[24], 1);
	switch (m[25]) {
	case 1:
		assert_int_equal(m[27], 0);
		snprintf(t->text, sizeof(t->text), "DATA %u%s%s", segment,
			m[26] & 2 ? " First" : "", m[26] & 4 ? " Last" : "");
		return;
	case 2:
		assert_int_equal(m[26] & 7, 1);
		assert_int_equal(m[27], 0);
		snprintf(t->text, sizeof(t->text), "ACK %u %u", segment, length);
		return;
	case 3:
	case 4:
		assert_int_equal(m[26] & 7, 1);
		assert_int_equal(segment, 0);
		assert_int_equal(length, 0);
		snprintf(t->text, sizeof(t->text), "%s %u", m[25] == 3 ? "STOP" : "ABORT", m[27]);
		return;
	}
	fail_msg("RMPPType %u sent", m[25]);
}

static void
rmpp_sink_commit(struct tx_sink *sink)
{
	struct rmpp_peer *p = (struct rmpp_peer *)sink;
	struct sent *t = &p->sent[p->sent_count++];

	assert_true(p->sent_count <= PEER_SENT);
	p->room--;
	memcpy(t->mad, p->packet + 20, MAD_LEN);
	assert_int_equal(t->mad[0], 1);
	assert_int_equal(t->mad[1], 3);
	assert_int_equal(t->mad[2], 2);
	peer_describe(t);
}

/* --- agent and taker --- */

static int
peer_source_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	struct rmpp_peer *p = arg;
	uint32_t i;

	assert_true(offset + len <= p->length);
	if (p->gone_after != 0 && offset + len > p->gone_after)
		return -ESTALE;
	for (i = 0; i < len; i++)
		buf[i] = pattern_at(offset + i);
	return 0;
}

static void
peer_source_release(void *arg)
{
	struct rmpp_peer *p = arg;

	p->releases++;
}

struct mad_source
rmpp_peer_source(struct rmpp_peer *p)
{
	return (struct mad_source){ p, p->length, peer_source_read, peer_source_release };
}

static enum mad_outcome
peer_request(void *arg, struct mad_request *req)
{
	struct rmpp_peer *p = arg;

	p->requests++;
	p->handle = req->handle;
	p->body_length = 0;
	if (req->body != NULL) {
		p->body_length = mad_body_length(req->body);
		assert_true(p->body_length <= sizeof(p->body));
		mad_body_read(req->body, 0, p->body, p->body_length);
	}
	if (p->outcome == MAD_STREAM)
		req->source = rmpp_peer_source(p);
	put_be16(req->reply + 4, p->status);
	return p->outcome;
}

static const struct mad_method methods[] = {
	{ 0x01, 0 },
	{ 0x12, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ 0x14, MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE },
	{ 0, 0 },
};

static int
peer_take(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct rmpp_peer *p = arg;

	assert_int_equal(offset, p->taken);
	assert_true(offset + len <= sizeof(p->data));
	if (p->refuse != 0)
		return p->refuse;
	memcpy(p->data + offset, data, len);
	p->taken += len;
	return 0;
}

static void
peer_done(void *arg, const struct mad_result *result)
{
	struct rmpp_peer *p = arg;

	p->done++;
	p->result = *result;
	if (result->mad != NULL)
		memcpy(p->result_mad, result->mad, MAD_LEN);
}

/* --- set-up --- */

static const struct port_attr *
peer_port_of(void *arg, uint16_t port)
{
	struct rmpp_peer *p = arg;

	return port == 0 ? &p->port : NULL;
}

static void
fill_predictable(void *arg, void *buf, size_t len)
{
	static uint8_t next;

	(void)arg;
	memset(buf, ++next, len);
}

static const struct rng predictable = { fill_predictable, NULL };

static struct av
peer_av_of(const char *from, const char *to)
{
	struct av av = {
		.encap = ENCAP_ROCEV2_IPV4,
		.smac = { 2, 0, 0, 0, 0, 1 },
		.dmac = { 2, 0, 0, 0, 0, 2 },
		.vlan = PATH_NO_VLAN,
	};

	assert_true(gid_parse(from, &av.sgid));
	assert_true(gid_parse(to, &av.dgid));
	return av;
}

static void
peer_make_port(struct rmpp_peer *p)
{
	p->port.up = true;
	p->port.active_mtu = 1024;
	p->port.vlan = PATH_NO_VLAN;
	p->port.subnet_timeout = 8; /* 1.05 ms */
	p->port.num_gids = 1;
	p->port.gid[0].type = GID_ROCEV2;
	assert_true(gid_parse("10.0.0.2", &p->port.gid[0].gid));
	p->port.pkey[0] = 0xFFFF;
	p->port.num_pkeys = 1;
}

struct rmpp_peer *
rmpp_peer_create(const struct mad_limits *limits)
{
	struct rmpp_peer *p = calloc(1, sizeof(*p));
	struct mad_worker_config config = {
		.workers = 1,
		.hash_key = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &predictable,
		.port = peer_port_of,
		.port_arg = p,
		.limits = *limits,
	};
	const struct mad_agent agent = { 3, 2, "sa", MAD_RMPP, 56, methods, peer_request, p };
	struct av av = peer_av_of("10.0.0.1", "10.0.0.2");

	assert_non_null(p);
	p->sink.reserve = rmpp_sink_reserve;
	p->sink.commit = rmpp_sink_commit;
	p->room = UINT32_MAX;
	p->now = FIRST_NOW;
	p->tid = TID;
	p->outcome = MAD_STREAM;
	peer_make_port(p);
	path_init(&p->path, &av, PEER_QPN, 1);
	p->wheel = timer_wheel_create(&allocator_malloc, 4096, p->now);
	config.wheel = p->wheel;
	config.tx = &p->sink;
	p->w = mad_worker_create(&config);
	assert_non_null(p->w);
	assert_int_equal(mad_agent_add(p->w, &agent), 0);
	return p;
}

void
rmpp_peer_destroy(struct rmpp_peer *p)
{
	mad_worker_destroy(p->w);
	timer_wheel_destroy(p->wheel);
	free(p);
}

int
rmpp_peer_setup(void **state)
{
	*state = rmpp_peer_create(&mad_limits_default);
	return 0;
}

int
rmpp_peer_teardown(void **state)
{
	rmpp_peer_destroy(*state);
	return 0;
}

/* --- the peer sends --- */

void
make_mad(const struct rmpp_peer *p, uint8_t mad[MAD_LEN], uint8_t method)
{
	memset(mad, 0, MAD_LEN);
	mad[0] = 1;
	mad[1] = 3;
	mad[2] = 2;
	mad[3] = method;
	put_be64(mad + 8, p->tid);
	put_be16(mad + 16, 0x0011); /* NodeRecord */
}

void
make_rmpp(const struct rmpp_peer *p, uint8_t mad[MAD_LEN], uint8_t method, uint8_t type,
	uint8_t flags, uint8_t status, uint32_t segment, uint32_t length)
{
	make_mad(p, mad, method);
	mad[24] = 1;
	mad[25] = type;
	mad[26] = 0xF8 | 1 | flags;
	mad[27] = status;
	put_be32(mad + 28, segment);
	put_be32(mad + 32, length);
}

enum verdict
in_mad(struct rmpp_peer *p, const uint8_t mad[MAD_LEN])
{
	const struct wire_headers h = {
		.opcode = 0x64,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = 0x80010000,
		.src_qpn = PEER_QPN,
	};
	uint8_t frame[PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX];
	uint8_t *bth = frame + p->path.header_len;
	struct packet pkt = { 0 };
	enum verdict why;
	uint32_t len;

	wire_build(bth, &h);
	memcpy(bth + 20, mad, MAD_LEN);
	len = path_finish(&p->path, bth, 20 + MAD_LEN, 0);
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, frame + p->path.l3_off, len - p->path.l3_off,
		&pkt, &why));
	pkt.smac = frame + 6;
	pkt.rx_time = p->now;
	why = mad_receive(p->w, &pkt, p->now);
	run(p);
	return why;
}

enum verdict
in_rmpp(struct rmpp_peer *p, uint8_t method, uint8_t type, uint8_t flags, uint8_t status,
	uint32_t segment, uint32_t length)
{
	uint8_t mad[MAD_LEN];

	make_rmpp(p, mad, method, type, flags, status, segment, length);
	return in_mad(p, mad);
}

enum verdict
in_get_table(struct rmpp_peer *p)
{
	uint8_t mad[MAD_LEN];

	make_mad(p, mad, 0x12);
	return in_mad(p, mad);
}

enum verdict
in_ack(struct rmpp_peer *p, uint8_t method, uint32_t segment, uint32_t window_end)
{
	return in_rmpp(p, method, 2, 0, 0, segment, window_end);
}

enum verdict
in_data(struct rmpp_peer *p, uint8_t method, uint32_t n, uint32_t total, uint32_t tail)
{
	uint32_t length = n == total ? 20 + tail
		: n == 1             ? 20 * total + 200 * (total - 1) + tail
				     : 0;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	make_rmpp(p, mad, method, 1, (n == 1 ? 2 : 0) | (n == total ? 4 : 0), 0, n, length);
	for (i = 0; i < (n == total ? tail : 200); i++)
		mad[56 + i] = pattern_at((uint64_t)(n - 1) * 200 + i);
	return in_mad(p, mad);
}

void
rmpp_peer_prove(struct rmpp_peer *p)
{
	p->tid++;
	p->length = 100;
	assert_int_equal(in_get_table(p), VERDICT_DATAGRAM);
	expect_tx(p, "DATA 1 First Last");
	assert_int_equal(in_ack(p, 0x12, 1, 2), VERDICT_DATAGRAM);
	p->tid--;
	p->w->srtt = 0; /* a trip in no time is none */
	p->sent_count = p->seen = 0;
	p->base = *mad_worker_counters(p->w);
	p->requests = p->releases = 0;
}

/* --- we send --- */

static int
peer_call(struct rmpp_peer *p, uint8_t method, const struct mad_source *source, mad_handle *h)
{
	struct mad_call c = {
		.to = { .av = peer_av_of("10.0.0.2", "10.0.0.1"),
				.qpn = PEER_QPN,
				.qkey = 0x80010000,
				.pkey = 0xFFFF,
				.neighbour = PATH_NO_NEIGHBOUR, },
		.protocol = MAD_RMPP,
		.data_offset = 56,
		.flags = MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE,
		.resp_time = 8,
		.taker = { p, peer_take, peer_done },
	};
	uint8_t mad[MAD_LEN];
	int rc;

	make_mad(p, mad, method);
	c.mad = mad;
	if (source != NULL) {
		c.source = *source;
		c.flags |= MAD_METHOD_MULTI_REQUEST;
	}
	p->taken = 0;
	p->done = 0;
	rc = mad_call(p->w, &c, p->now, h);
	run(p);
	if (rc == 0 && p->sent_count > p->seen) /* the peer answers with our TID */
		p->tid = get_be64(p->sent[p->sent_count - 1].mad + 8);
	return rc;
}

int
call_table(struct rmpp_peer *p, mad_handle *h)
{
	mad_handle unused;

	return peer_call(p, 0x12, NULL, h != NULL ? h : &unused);
}

int
call_multi(struct rmpp_peer *p, uint64_t length)
{
	struct mad_source source;
	mad_handle h;

	p->length = length;
	source = rmpp_peer_source(p);
	return peer_call(p, 0x14, &source, &h);
}

/* --- time --- */

void
run(struct rmpp_peer *p)
{
	while (p->room > 0 && mad_run(p->w, p->now, 64) > 0)
		;
	timer_wheel_sent(p->wheel, p->now);
}

void
pass(struct rmpp_peer *p, uint64_t ns)
{
	uint64_t end = p->now + ns, next;

	for (;;) {
		next = RTE_MAX(timer_wheel_next(p->wheel), p->now + STEP);
		p->now = RTE_MIN(next, end);
		timer_wheel_run(p->wheel, p->now);
		run(p);
		if (p->now >= end)
			return;
	}
}

/* --- what was sent --- */

static void
expect_next(struct rmpp_peer *p, const char *text)
{
	if (p->seen == p->sent_count)
		fail_msg("expected %s, nothing was sent", text);
	if (strcmp(p->sent[p->seen].text, text) != 0)
		fail_msg("expected %s, sent %s", text, p->sent[p->seen].text);
	p->seen++;
}

void
expect_sent(struct rmpp_peer *p, const char *first, ...)
{
	const char *text;
	va_list args;

	p->looked = p->seen;
	va_start(args, first);
	for (text = first; text != NULL; text = va_arg(args, const char *))
		expect_next(p, text);
	va_end(args);
	if (p->seen != p->sent_count)
		fail_msg("not expected: %s", p->sent[p->seen].text);
}

void
expect_run(struct rmpp_peer *p, uint32_t first, uint32_t last)
{
	char text[40];

	p->looked = p->seen;
	for (; first <= last; first++) {
		snprintf(text, sizeof(text), "DATA %u", first);
		expect_next(p, text);
	}
}

void
forget_sent(struct rmpp_peer *p)
{
	p->seen = p->sent_count;
}

const uint8_t *
sent_mad(const struct rmpp_peer *p, unsigned int i)
{
	assert_true(p->looked + i < p->sent_count);
	return p->sent[p->looked + i].mad;
}

struct mad_session_info
session_of(const struct rmpp_peer *p)
{
	struct mad_session_info info;
	uint32_t cursor = 0;

	assert_true(mad_session_next(p->w, &cursor, p->now, &info));
	return info;
}

void
expect_idle(struct rmpp_peer *p)
{
	const struct mad_counters *c = mad_worker_counters(p->w);
	struct mad_session_info info;
	uint32_t cursor = 0;

	while (mad_session_next(p->w, &cursor, p->now, &info))
		assert_string_equal(info.state, "LINGER");
	assert_int_equal(c->sessions_opened, c->sessions_completed + c->sessions_failed);
	assert_false(mad_pending(p->w));
}
