/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_fixture.h"
#include "../wire/build.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define HASH_KEY 7

struct bench b;

void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* --- users --- */

struct user *
user_new(void)
{
	for (unsigned int i = 0; i < USERS; i++) {
		if (!b.users[i].taken) {
			b.users[i] = (struct user){ .taken = true };
			return &b.users[i];
		}
	}
	return NULL;
}

void
fill_param(struct cm_conn_param *p)
{
	*p = (struct cm_conn_param){
		.qp = { .qp_type = QPT_RC, .pd = b.pd, .send_cq = b.cq, .recv_cq = b.cq,
			.srq = RC_NO_SRQ,
			.cap = { .max_send_wr = 4, .max_recv_wr = 4,
				.max_send_sge = 1, .max_recv_sge = 1 }, },
		.access = MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ,
		.responder_resources = b.mood & 7,
		.initiator_depth = b.mood >> 3 & 7,
		.retry_count = 7,
		.rnr_retry_count = b.mood & 7,
		.private_len = b.mood & 31,
	};
}

static uint16_t
fuzz_on_request(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	(void)listener;
	(void)req;
	fill_param(param);
	if ((b.mood & 0xF0) == MOOD_REFUSE)
		return CM_REJ_CONSUMER;
	*user = user_new();
	if (*user == NULL)
		return CM_REJ_NO_RESOURCES;
	return (b.mood & 0xF0) == MOOD_LATER ? CM_LATER : 0;
}

static int
on_prepare(void *user, cm_id id, uint32_t qpn)
{
	struct user *u = user;

	check(u->taken && !u->prepared && !u->ended, "prepare() out of turn");
	check(id != 0 && rc_owner(b.dev, qpn) == 0, "prepare() without ID or QP");
	u->prepared = true;
	return (b.mood & 0xF0) == MOOD_UNPREPARED ? -12 : 0;
}

static void
on_established(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct user *u = user;

	(void)private_data;
	check(u->taken && u->prepared && !u->established && !u->ended, "established() out of turn");
	check(info->state == CM_STATE_ESTABLISHED || info->state == CM_STATE_REP_RCVD,
		"established() in a wrong state");
	check(len <= CM_PRIVATE_MAX, "established(): private data too long");
	u->established = true;
	if ((b.mood & 0xF0) == MOOD_DISCONNECT)
		cm_disconnect(b.cm, info->id, NULL, 0, b.now);
}

static void
on_ended(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct user *u = user;

	(void)private_data;
	check(u->taken && !u->ended, "ended() out of turn");
	check(info->end < CM_END_COUNT && len <= CM_PRIVATE_MAX, "ended(): odd values");
	u->ended = true;
}

static void
on_released(void *user)
{
	struct user *u = user;

	check(u->taken, "released() out of turn");
	u->taken = false;
}

const struct cm_user user_ops = {
	.name = "fuzz",
	.request = fuzz_on_request,
	.prepare = on_prepare,
	.established = on_established,
	.ended = on_ended,
	.released = on_released,
};

/* --- the wire --- */

static uint8_t *
cm_fixture_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	(void)sink;
	(void)path;
	check(len <= 20 + MAD_LEN, "a packet too long");
	return b.stall ? NULL : b.packet + PATH_HEADER_MAX;
}

static void
cm_fixture_sink_commit(struct tx_sink *sink)
{
	const uint8_t *mad = b.packet + PATH_HEADER_MAX + 20;
	struct cm_msg m;
	int rc;

	(void)sink;
	if (b.packet[PATH_HEADER_MAX] != UD_SEND_ONLY || mad[MAD_OFF_METHOD] != MAD_SEND)
		return;
	rc = cm_msg_decode(mad, &m);
	/* a REQ of another class version is rejected in that version (reason 31) */
	if (rc == -EPROTONOSUPPORT &&
		mad[MAD_OFF_ATTRIBUTE + 1] == cm_msg_layouts[CM_REJ].attribute &&
		get_be16(mad + MAD_HEADER_LEN + 10) == CM_REJ_INVALID_CLASS_VERSION)
		return;
	check(rc == 0, "sent what is no CM message");
	memcpy(b.sent[b.num_sent++ % SENT], mad, MAD_LEN);
}

struct av
av_from(uint8_t from, uint8_t to)
{
	return (struct av){
		.encap = ENCAP_ROCEV2_IPV4,
		.vlan = PATH_NO_VLAN,
		.hop_limit = 64,
		.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = from },
		.dgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = to },
		.smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
	};
}

void
deliver(uint8_t from, const uint8_t *mad)
{
	const struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = MAD_QKEY,
	};
	uint8_t frame[PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX] = { 0 };
	struct av av = av_from(from, 1);
	struct packet pkt = { 0 };
	enum verdict why;
	struct path path;
	uint32_t at, len;

	path_init(&path, &av, 1, 1);
	at = path.header_len + wire_build(frame + path.header_len, &h);
	memcpy(frame + at, mad, MAD_LEN);
	len = path_finish(&path, frame + path.header_len, at + MAD_LEN - path.header_len, 0);
	check(wire_parse(ENCAP_ROCEV2_IPV4, frame + 14, len - 14, &pkt, &why), "own frame");
	pkt.rx_time = b.now;
	pkt.smac = frame + 6;
	check(cm_owner(HASH_KEY, 4, mad) < 4, "no owner");
	mad_receive(b.mad, &pkt, b.now);
}

/* --- the fixture --- */

static const struct port_attr *
the_port(void *arg, uint16_t port)
{
	(void)arg;
	return port == 0 ? &b.port : NULL;
}

static void
on_event(void *arg, const struct event *ev)
{
	(void)arg;
	cm_qp_event(b.cm, ev);
}

static void
start_rc(void)
{
	struct mem_config mc = {
		.max_pd = 2,
		.max_mr = 2,
		.max_mw = 2,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = 1000 * MS,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = { .tx = &b.sink, .event = on_event };

	dc.limits.max_qp = 64;
	b.mem = dc.mem = mem_create(&mc);
	b.dev = rc_dev_create(&dc);
	b.wheel = wc.wheel = timer_wheel_create(&allocator_malloc, 1 << 20, 0);
	b.rc = rc_worker_create(b.dev, &wc);
	check(mem_pd_alloc(b.mem, &b.pd, NULL) == 0 && rc_cq_create(b.dev, 1024, &b.cq, NULL) == 0,
		"set-up");
}

void
start(void)
{
	struct mad_worker_config mw = {
		.workers = 1,
		.hash_key = HASH_KEY,
		.hz = 1000 * MS,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &b.sink,
		.port = the_port,
		.limits = mad_limits_default,
	};
	struct cm_config cc = {
		.workers = 1,
		.hz = 1000 * MS,
		.hash_key = HASH_KEY,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.ca_guid = 0x0200000000000001,
		.port = the_port,
		.limits = cm_limits_default,
	};
	struct av av = av_from(1, 2);

	memset(&b, 0, sizeof(b));
	b.sink = (struct tx_sink){ cm_fixture_sink_reserve, cm_fixture_sink_commit,
		tx_send_in_parts };
	b.port = (struct port_attr){
		.mtu = 1500,
		.active_mtu = 1024,
		.vlan = PATH_NO_VLAN,
		.up = true,
		.state = PORT_STATE_ACTIVE,
		.num_gids = 1,
		.num_pkeys = 1,
		.pkey = { 0xFFFF },
	};
	b.port.gid[0] = (struct port_gid){ .gid = av.sgid, .type = GID_ROCEV2, .prefix_len = 24 };
	memcpy(b.port.mac, av.smac, 6);
	start_rc();
	mw.wheel = cc.wheel = b.wheel;
	mw.limits.max_sessions = mw.limits.max_sessions_per_peer = 8;
	mw.limits.max_bytes = mw.limits.max_bytes_per_peer = 64u << 10;
	b.mad = cc.mad = mad_worker_create(&mw);
	cc.rc = b.rc;
	cc.limits.max_connections = CONNS;
	cc.limits.max_connections_per_peer = 16;
	cc.limits.max_half_open = 12;
	cc.limits.max_half_open_per_peer = 8;
	cc.limits.send_mra = true;
	b.cm = cm_create(&cc);
	check(b.cm != NULL && cm_listen(b.cm, SERVICE, UINT64_MAX, &user_ops, NULL) == 0 &&
			cm_listen(b.cm, PLAIN, ~0xFull, &user_ops, NULL) == 0 &&
			cm_listen_ud(b.cm, PLAIN, ~0xFull, 0x77, 0x01234567) == 0,
		"set-up");
}

void
run(void)
{
	struct wc wc[16];

	timer_wheel_run(b.wheel, b.now);
	cm_run(b.cm, b.now, 64);
	mad_run(b.mad, b.now, 64);
	rc_run(b.rc, b.now, 64);
	timer_wheel_sent(b.wheel, b.now);
	while (rc_cq_poll(b.dev, b.cq, wc, 16) > 0)
		;
}

void
pass(uint64_t until)
{
	while (b.now < until) {
		uint64_t next = timer_wheel_next(b.wheel);

		b.now = next > b.now && next < until ? next : next <= b.now ? b.now + MS : until;
		run();
	}
}

void
finish(void)
{
	uint32_t cursor = 0, qpn;
	struct cm_info info;

	b.stall = false;
	pass(b.now + 1000ull * 24 * 3600 * MS);
	while (cm_next(b.cm, &cursor, b.now, &info))
		cm_disconnect(b.cm, info.id, NULL, 0, b.now);
	pass(b.now + 1000ull * 24 * 3600 * MS);
	cursor = 0;
	check(!cm_next(b.cm, &cursor, b.now, &info), "a connection is stuck");
	check(!cm_pending(b.cm), "work is left");
	cursor = 0;
	check(!rc_qp_next(b.rc, &cursor, &qpn), "a QP is left");
	for (unsigned int i = 0; i < USERS; i++)
		check(!b.users[i].taken, "a user was not released");
	cm_destroy(b.cm);
	mad_worker_destroy(b.mad);
	rc_worker_destroy(b.rc);
	rc_dev_destroy(b.dev);
	timer_wheel_destroy(b.wheel);
	mem_destroy(b.mem);
}
