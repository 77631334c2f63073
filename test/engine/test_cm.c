/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections between the two ports of an engine by the communication manager: a service on one
 * side, verbs or a service on the other; RoCE and native IB; on one worker (argument 1) and on two.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "engine/rdmacm.h"
#include "engine/verbs_cm.h"
#include "node.h"
#include "wire/bytes.h"

#define PORT     7471
#define MEM_SIZE 65536
/* 4.096 us * 2^n. The machine may stall for 200 ms, and TIMEWAIT must not last for seconds. */
#define PACKET_LIFE 10
#define RESPONSE    18

static uint64_t
service_id(void)
{
	return cm_service_id(CM_PS_TCP, PORT);
}

static struct engine_config *
engine_cm_config(bool ib)
{
	struct engine_config *c = ib ? node_config_ib(true) : node_config();

	c->cm = cm_limits_default;
	c->cm.max_connections = 1024;
	c->cm.packet_life = PACKET_LIFE;
	c->cm.response_timeout = RESPONSE;
	return c;
}

static int
cm_start(void **state)
{
	engine_cm_config(false);
	*state = node_start();
	return 0;
}

static void
run_ib(void **state)
{
	*state = node_start();
	ports_up(*state);
}

static int
cm_start_ib(void **state)
{
	engine_cm_config(true);
	run_ib(state);
	return 0;
}

static int
cm_stop(void **state)
{
	node_stop(*state, 0);
	return 0;
}

/* --- services --- */

static uint32_t
listen_kind(struct engine *e, const char *kind)
{
	struct svc_config c = { .service_id = service_id() };
	struct error err = { "" };
	uint32_t id;

	strcpy(c.kind, kind);
	c.length = strcmp(kind, "memory") == 0 ? MEM_SIZE : 0;
	c.max_connections = c.max_connections_per_peer = 512;
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	return id;
}

static bool
service_get(struct engine *e, uint32_t id, struct engine_service_info *info)
{
	uint64_t cursor = 0;

	while (engine_service_next(e, &cursor, info))
		if (info->id == id)
			return true;
	return false;
}

static unsigned int
cm_num_services(struct engine *e)
{
	struct engine_service_info info;
	unsigned int n = 0;
	uint64_t cursor = 0;

	engine_cm_watch(e);
	while (engine_service_next(e, &cursor, &info))
		n++;
	return n;
}

static unsigned int
cm_num_qps(struct engine *e)
{
	struct rc_qp_info info;
	uint64_t cursor = 0;
	unsigned int n = 0;

	while (engine_qp_next(e, &cursor, &info))
		n++;
	return n;
}

static unsigned int
qps_of_workers(struct engine *e)
{
	struct worker_info w;
	unsigned int i, n = 0;

	for (i = 0; i < node_workers; i++) {
		engine_worker_info(e, i, &w);
		n += w.qps;
	}
	return n;
}

static unsigned int
num_connections(struct engine *e, bool active)
{
	struct cm_info info;
	uint64_t cursor = 0;
	unsigned int n = 0;

	while (engine_cm_next(e, &cursor, &info))
		n += info.active == active;
	return n;
}

/* --- a client that uses verbs --- */

struct client {
	struct end end; /* the CM made the QP end.qpn */
	struct cm_info info;
	/* access granted by the service "memory" */
	uint32_t rkey;
	uint64_t va;
	uint64_t length;
};

static void
cm_client_create(struct engine *e, struct client *c)
{
	struct error err = { "" };

	memset(c, 0, sizeof(*c));
	end_create(e, &c->end, 0);
	assert_ok(engine_qp_destroy(e, c->end.qpn, &err));
	c->end.qpn = 0;
}

/* All connections have ended. Their QPs are destroyed when TIMEWAIT is over. */
static void
cm_client_destroy(struct engine *e, struct client *c)
{
	eventually(cm_num_qps(e) == 0);
	c->end.qpn = 0;
	end_destroy(e, &c->end);
}

static struct engine_ah
to_port1(struct engine *e)
{
	return (struct engine_ah){ .dgid = link_port_attr(engine_link(e), 1)->gid[0].gid };
}

static struct engine_cm_connect
engine_cm_request(const struct client *c, const struct engine_ah *ah, int worker)
{
	return (struct engine_cm_connect){
		.ah = ah,
		.service_id = service_id(),
		.rdma = true,
		.worker = worker,
		.param = {
			.qp = {
				.qp_type = QPT_RC,
				.pd = c->end.pd,
				.send_cq = c->end.cq,
				.recv_cq = c->end.cq,
				.srq = RC_NO_SRQ,
				.cap = { 16, 16, 1, 1, 0 },
			},
			.responder_resources = 4,
			.initiator_depth = 4,
			.retry_count = 7,
			.rnr_retry_count = 7,
			.min_rnr_timer = 12,
		},
	};
}

static struct engine_cm_outcome
wait_outcome(struct engine *e, uint32_t attempt)
{
	struct engine_cm_outcome o = { .done = false };
	struct error err = { "" };
	int ms;

	for (ms = 0; ms < 60000 && !o.done; ms++) {
		if (ms > 0)
			pause_ms(1);
		assert_ok(engine_cm_outcome(e, attempt, &o, &err));
	}
	assert_true(o.done);
	engine_cm_forget(e, attempt);
	assert_int_equal(engine_cm_outcome(e, attempt, &(struct engine_cm_outcome){ 0 }, NULL),
		-ENOENT);
	return o;
}

static struct engine_cm_outcome
try_connect(struct engine *e, const struct engine_cm_connect *c)
{
	struct error err = { "" };
	uint32_t attempt;

	assert_ok(engine_cm_connect(e, c, &attempt, &err));
	return wait_outcome(e, attempt);
}

static void
client_connect(struct engine *e, struct client *c, const struct engine_cm_connect *request)
{
	struct engine_cm_outcome o = try_connect(e, request);

	if (!o.established)
		fail_msg("%s", o.why.text);
	c->info = o.info;
	c->end.qpn = o.info.qpn;
	if (o.private_len >= 24 && o.private_data[0] == 1) {
		c->rkey = get_be32(o.private_data + 4);
		c->va = get_be64(o.private_data + 8);
		c->length = get_be64(o.private_data + 16);
	}
}

/* Write to the granted memory and read it back, with the granted R_Key. */
static void
cm_use_memory(struct engine *e, struct client *c, uint32_t seed)
{
	struct end there = { .mr = { .key = c->rkey, .va = c->va } };

	assert_int_equal(c->length, MEM_SIZE);
	fill(c->end.mr.base, 20000, seed);
	assert_int_equal(post(e, &c->end, WR_RDMA_WRITE, &there, 0, 1000, 20000, 1), 1);
	expect_wc(e, &c->end, 1);
	assert_int_equal(post(e, &c->end, WR_RDMA_READ, &there, 100000, 1000, 20000, 2), 1);
	expect_wc(e, &c->end, 1);
	assert_memory_equal(c->end.mr.base, c->end.mr.base + 100000, 20000);
}

static void
client_disconnect(struct engine *e, struct client *c)
{
	struct error err = { "" };

	assert_ok(engine_cm_disconnect(e, c->info.id, &err));
}

static bool
is_state(struct engine *e, cm_id id, uint8_t state)
{
	struct cm_info info;

	return engine_cm_get(e, id, &info, NULL) == 0 && info.state == state;
}

static uint64_t
engine_cm_sent(struct engine *e, enum cm_message m)
{
	struct cm_counters n;

	engine_cm_counters(e, -1, &n);
	return n.sent[m];
}

/* --- connect, transfer, disconnect --- */

static void
test_connections_to_a_memory_service(void **state)
{
	struct event ev = { 0 };
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r;
	struct engine_service_info s;
	struct error err = { "" };
	struct cm_counters n;
	struct rc_qp_info qp;
	struct client c;
	uint32_t id;
	int worker, ret;

	id = listen_kind(e, "memory");
	cm_client_create(e, &c);
	for (worker = 0; worker < (int)node_workers; worker++) {
		r = engine_cm_request(&c, &ah, worker);
		client_connect(e, &c, &r);
		assert_int_equal(c.info.state, CM_STATE_ESTABLISHED);
		assert_true(c.info.active);
		assert_int_equal(c.info.service_id, service_id());
		assert_string_equal(engine_cm_service_name(e, c.info.id), "");
		assert_ok(engine_qp_query(e, c.info.qpn, &qp, &err));
		assert_int_equal(qp.worker, worker);
		assert_int_equal(qp.attr.qp_state, QPS_RTS);
		/* cm.md 4: max(15, 10 + 1); MTU of the ports */
		assert_int_equal(qp.attr.timeout, 15);
		assert_int_equal(qp.attr.path_mtu, link_port_attr(engine_link(e), 0)->active_mtu);
		/* the service has the connection when the RTU has arrived */
		eventually(service_get(e, id, &s) && s.connections == 1);
		assert_int_equal(qps_of_workers(e), 2);
		cm_use_memory(e, &c, (uint32_t)worker);
		client_disconnect(e, &c);
		/* once TIMEWAIT is over there is no QP any more */
		ret = engine_qp_query(e, c.info.qpn, &qp, &err);
		assert_true(ret == -ENOENT || (ret == 0 && qp.attr.qp_state == QPS_ERR));
		eventually(cm_num_qps(e) == 0);
		c.end.qpn = 0;
		assert_int_equal(engine_cm_disconnect(e, c.info.id, &err), -ENOENT);
	}
	/* clients see no events, such as COMM_EST, of these QPs, but those of the connections */
	while (engine_events(e, &ev, 1, NULL) == 1)
		assert_in_range(ev.type, EVENT_CONNECTION_MADE, EVENT_CONNECTION_ENDED);
	assert_int_equal(ev.type, EVENT_CONNECTION_ENDED);
	engine_cm_counters(e, -1, &n);
	assert_int_equal(n.received[CM_REQ], node_workers);
	assert_int_equal(n.received[CM_REP], node_workers);
	assert_int_equal(n.received[CM_RTU], node_workers);
	assert_int_equal(n.received[CM_DREQ], node_workers);
	assert_int_equal(n.received[CM_DREP], node_workers);
	assert_int_equal(n.connections, 2 * node_workers); /* both sides are counted */
	cm_client_destroy(e, &c);
	assert_ok(engine_cm_unlisten(e, id, false, &err));
	assert_int_equal(cm_num_services(e), 0);
	assert_int_equal(engine_cm_unlisten(e, id, false, &err), -ENOENT);
}

/* TIMEWAIT lasts for seconds, so that a test on a busy machine sees it. */
static int
start_with_long_timewait(void **state)
{
	struct engine_config *c = engine_cm_config(false);

	c->cm.packet_life = 18;
	*state = node_start();
	return 0;
}

/* The peer may end the connection, too; our side notices at once. */
static void
test_peer_disconnects(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r;
	struct error err = { "" };
	struct rc_qp_info qp;
	struct cm_info info;
	uint64_t cursor = 0;
	struct client c;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	client_connect(e, &c, &r);
	do
		assert_true(engine_cm_next(e, &cursor, &info));
	while (info.active);
	assert_string_equal(engine_cm_service_name(e, info.id), "memory");
	assert_int_equal(info.remote_id, c.info.id);
	assert_int_equal(info.remote_qpn, c.info.qpn);
	assert_ok(engine_cm_disconnect(e, info.id, &err));
	eventually(is_state(e, c.info.id, CM_STATE_TIMEWAIT));
	assert_ok(engine_cm_get(e, c.info.id, &info, &err));
	assert_int_equal(info.end, CM_END_DISCONNECTED);
	assert_int_equal(engine_cm_disconnect(e, c.info.id, &err), -EALREADY);
	assert_ok(engine_qp_query(e, c.info.qpn, &qp, &err));
	assert_int_equal(qp.attr.qp_state, QPS_ERR);
	assert_ok(engine_qp_query(e, c.info.remote_qpn, &qp, &err));
	assert_int_equal(qp.attr.qp_state, QPS_ERR);
	cm_client_destroy(e, &c);
}

/* With a service on both sides, the client disconnects when it is done, and stays listed. */
static void
test_echo_service_on_both_sides(void **state)
{
	struct svc_config echo = {
		.kind = "echo",
		.name = "there and back",
		.count = 1000,
		.size = 3000,
		.verify = true,
	};
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r = {
		.ah = &ah,
		.service_id = service_id(),
		.rdma = true,
		.service = &echo,
		.worker = -1,
	};
	struct engine_service_info s = { .id = 0 };
	struct engine_cm_outcome o;
	uint64_t cursor = 0;
	uint32_t id;

	id = listen_kind(e, "echo");
	o = try_connect(e, &r);
	if (!o.established)
		fail_msg("%s", o.why.text);
	while (engine_service_next(e, &cursor, &s) && !s.client)
		;
	assert_true(s.client);
	assert_string_equal(s.config.name, "there and back");
	assert_int_equal(s.connection, o.info.id);
	id = s.id;
	eventually(service_get(e, id, &s) && s.counters.exchanges == 1000);
	assert_int_equal(s.counters.mismatches, 0);
	eventually(cm_num_qps(e) == 0);
	assert_int_equal(cm_num_services(e), 2);
	assert_int_equal(engine_cm_unlisten(e, id, false, NULL), 0);
	eventually(cm_num_services(e) == 1);
}

/* --- no connection --- */

static void
test_nobody_listens(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct client c;

	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	o = try_connect(e, &r);
	assert_false(o.established);
	assert_int_equal(o.info.end, CM_END_REJECTED);
	assert_int_equal(o.info.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_string_equal(o.why.text, "the peer rejected it: invalid service ID (reason 8)");
	assert_false(o.timed_out);
	assert_int_equal(o.error, 0);
	cm_client_destroy(e, &c);
	assert_int_equal(cm_num_qps(e), 0);
}

/* If a client service cannot connect, it is removed. */
static void
test_nobody_listens_to_a_service(void **state)
{
	struct svc_config echo = { .kind = "echo", .count = 1 };
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r = {
		.ah = &ah,
		.service_id = service_id(),
		.rdma = true,
		.service = &echo,
		.worker = -1,
	};
	struct engine_cm_outcome o;

	o = try_connect(e, &r);
	assert_int_equal(o.info.reason, CM_REJ_INVALID_SERVICE_ID);
	eventually(cm_num_services(e) == 0);
	assert_int_equal(cm_num_qps(e), 0);
}

/* A path to a MAC that no host has. */
static struct engine_ah
to_nobody(void)
{
	struct engine_ah ah = { .has_dmac = true, .dmac = { 2, 0, 0, 0, 0, 0x99 } };

	assert_true(gid_parse("192.0.2.99", &ah.dgid));
	return ah;
}

static void
test_peer_that_does_not_answer(void **state)
{
	struct engine_ah ah = to_nobody();
	struct engine *e = *state;
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct client c;

	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	o = try_connect(e, &r); /* two REQs, 1 ms apart */
	assert_false(o.established);
	assert_false(o.timed_out);
	assert_int_equal(o.info.end, CM_END_TIMEOUT);
	assert_string_equal(o.why.text, "the peer does not answer");
	assert_int_equal(engine_cm_sent(e, CM_REQ), 3);
	cm_client_destroy(e, &c);
}

static int
start_impatient(void **state)
{
	struct engine_config *c = engine_cm_config(false);

	c->cm.response_timeout = 8;
	c->cm.packet_life = 8;
	c->cm.max_retries = 2;
	*state = node_start();
	return 0;
}

static void
test_attempt_ends_when_its_time_is_over(void **state)
{
	struct engine_ah ah = to_nobody();
	struct engine *e = *state;
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct client c;

	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	r.timeout_ms = 20;
	o = try_connect(e, &r);
	assert_true(o.timed_out);
	assert_false(o.established);
	assert_int_equal(o.info.end, CM_END_CANCELLED);
	assert_true(o.elapsed_us >= 20000);
	assert_string_equal(o.why.text, "not established within 20 ms");
	cm_client_destroy(e, &c);
}

/* Start with a third port, which never receives anything. */
static int
start_with_a_hole_here(void **state, struct engine_config *c)
{
	struct link_port_config *p = &c->link.port[c->link.num_ports++];

	*p = c->link.port[0];
	strcpy(p->name, "hole");
	strcpy(p->device, "net_null0");
	p->back_to_back[0] = '\0';
	p->num_addr = 1;
	assert_true(gid_parse("198.51.100.1", &p->addr[0].gid));
	*state = node_start();
	return 0;
}

static int
start_with_a_hole(void **state)
{
	return start_with_a_hole_here(state, engine_cm_config(false));
}

static void
test_no_next_hop(void **state)
{
	struct engine_ah ah = { .port = 2 };
	struct engine *e = *state;
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct client c;

	assert_true(gid_parse("198.51.100.77", &ah.dgid));
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	o = try_connect(e, &r);
	assert_int_equal(o.error, -EHOSTUNREACH);
	assert_int_equal(o.info.id, 0);
	assert_string_equal(o.why.text,
		"next hop 198.51.100.77 does not answer ARP: is it up, on this "
		"link, and the address right?");
	assert_int_equal(engine_cm_sent(e, CM_REQ), 0);
	cm_client_destroy(e, &c);
}

/* --- neighbours that nobody uses --- */

static int
start_forgetful(void **state)
{
	struct engine_config *c = engine_cm_config(false);

	c->neighbours_kept = 0;
	return start_with_a_hole_here(state, c);
}

static bool
neighbour_is_known(struct engine *e, unsigned int port, const union gid *gid)
{
	struct link_neighbour_info info;
	uint32_t cursor = 0;

	while (link_neighbour_next(engine_link(e), &cursor, &info))
		if (info.port == port && gid_equal(&info.gid, gid))
			return true;
	return false;
}

/* Of a connection, of queue pairs, of an attempt to connect: all keep their next hops. */
static void
test_unused_neighbours_are_forgotten(void **state)
{
	struct engine_ah nowhere = { .port = 2 }, there;
	struct engine *e = *state;
	struct link *l = engine_link(e);
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct error err = { "" };
	struct client c, d;
	uint64_t end = rte_get_tsc_cycles() + 60 * rte_get_tsc_hz();
	union gid unused;
	uint32_t index, attempt;
	struct pair p;

	there = to_port1(e);
	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &there, -1);
	client_connect(e, &c, &r);
	pair_create(e, &p, 0, 1);
	assert_true(gid_parse("198.51.100.79", &unused));
	assert_ok(link_neighbour(l, 2, &link_port_attr(l, 2)->gid[0].gid, &unused, &index, &err));
	assert_true(gid_parse("198.51.100.77", &nowhere.dgid));
	cm_client_create(e, &d);
	r = engine_cm_request(&d, &nowhere, -1);
	r.timeout_ms = 600000;
	assert_ok(engine_cm_connect(e, &r, &attempt, &err));
	while (neighbour_is_known(e, 2, &unused) && rte_get_tsc_cycles() < end)
		engine_watch(e);
	assert_false(neighbour_is_known(e, 2, &unused));
	assert_ok(engine_cm_outcome(e, attempt, &o, &err));
	assert_true(o.done || neighbour_is_known(e, 2, &nowhere.dgid));
	assert_true(neighbour_is_known(e, 0, &there.dgid));
	assert_true(neighbour_is_known(e, 1, &link_port_attr(l, 0)->gid[0].gid));
	cm_use_memory(e, &c, 7);
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 64, 1), 1);
	expect_wc(e, &p.a, 1);
	assert_int_equal(post(e, &p.b, WR_RDMA_WRITE, &p.a, 0, 0, 64, 1), 1);
	expect_wc(e, &p.b, 1);
	client_disconnect(e, &c);
	pair_destroy(e, &p);
	cm_client_destroy(e, &c);
	cm_client_destroy(e, &d);
}

/* A command of one of librdmacm's programs, whose only channel has the slot 0. */
static void
rdmacm_send(struct rdmacm_program *p, uint32_t number, const void *body, uint16_t size)
{
	struct rdma_ucm_cmd_hdr header = { .cmd = number, .in = size, .out = RING_CM_BYTES };
	struct ring_cm_command command = { .length = sizeof(header) + size };
	struct ring_cm_reply reply;
	struct error err = { "" };

	memcpy(command.bytes, &header, sizeof(header));
	memcpy(command.bytes + sizeof(header), body, size);
	assert_ok(engine_rdmacm_command(p, &command, &reply, &err));
}

/* An ID that waits for its next hop, or has resolved it, keeps it until the program has gone. */
static void
test_next_hop_of_an_id_is_not_forgotten(void **state)
{
	static const struct rdmacm_limits limits = { .max_channels = 1, .max_ids = 1 };
	struct rdma_ucm_create_id create = { .uid = 1, .ps = RDMA_PS_TCP };
	struct rdma_ucm_resolve_ip resolve = { .timeout_ms = 600000 };
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct engine *e = *state;
	struct link *l = engine_link(e);
	struct rdmacm_program *p;
	struct error err = { "" };
	union gid unused, next;
	uint32_t index, slot;
	int fd;

	assert_true(gid_parse("198.51.100.79", &unused));
	assert_true(gid_parse("198.51.100.77", &next));
	assert_ok(engine_rdmacm_open(e, &limits, 0, 1, &p, &err));
	assert_ok(engine_rdmacm_channel_open(p, &slot, &fd, &err));
	rdmacm_send(p, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create));
	memcpy(&to.sin_addr, next.raw + 12, sizeof(to.sin_addr));
	memcpy(&resolve.dst_addr, &to, sizeof(to));
	rdmacm_send(p, RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof(resolve));
	assert_true(neighbour_is_known(e, 2, &next));
	assert_ok(link_neighbour(l, 2, &link_port_attr(l, 2)->gid[0].gid, &unused, &index, &err));
	eventually((engine_watch(e), !neighbour_is_known(e, 2, &unused)));
	assert_true(neighbour_is_known(e, 2, &next));
	engine_rdmacm_close(p);
	eventually((engine_watch(e), !neighbour_is_known(e, 2, &next)));
}

static int
start_ageing(void **state)
{
	struct engine_config *c = engine_cm_config(false);

	c->neighbours_idle_s = 1;
	return start_with_a_hole_here(state, c);
}

/* There is room enough, but nobody has used it for long. */
static void
test_idle_neighbours_age_out(void **state)
{
	struct engine *e = *state;
	struct link *l = engine_link(e);
	struct link_neighbour_counts counts;
	struct error err = { "" };
	union gid gid;
	uint32_t index;
	struct pair p;

	pair_create(e, &p, 0, 1);
	assert_true(gid_parse("198.51.100.79", &gid));
	assert_ok(link_neighbour(l, 2, &link_port_attr(l, 2)->gid[0].gid, &gid, &index, &err));
	eventually((engine_watch(e), !neighbour_is_known(e, 2, &gid)));
	assert_true(neighbour_is_known(e, 0, &link_port_attr(l, 1)->gid[0].gid));
	link_neighbour_counts(l, &counts);
	assert_int_equal(counts.forgotten, 1);
	pair_destroy(e, &p);
}

static void
cm_refused(struct engine *e, const struct engine_cm_connect *r, int error, const char *words)
{
	struct error err = { "" };
	uint32_t attempt;

	assert_int_equal(engine_cm_connect(e, r, &attempt, &err), error);
	assert_string_equal(err.text, words);
}

static void
test_parameters(void **state)
{
	struct svc_config svc = { .kind = "nothing" };
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r;
	struct error err = { "" };
	struct client c;
	uint32_t id;
	int i;

	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, 7);
	cm_refused(e, &r, -EINVAL,
		node_workers == 2 ? "worker: got 7, there are 0..1"
				  : "worker: got 7, there are 0..0");
	r = engine_cm_request(&c, &ah, -1);
	r.pkey_index = 3;
	cm_refused(e, &r, -EINVAL, "pkey_index: got 3, which holds no P_Key of port0");
	r.pkey_index = 0;
	r.path_mtu = 1000;
	cm_refused(e, &r, -EINVAL, "path_mtu: got 1000, expected 256, 512, 1024, 2048 or 4096");
	r.path_mtu = 0;
	r.packet_life = 32;
	cm_refused(e, &r, -EINVAL, "packet_life: got 32, expected 0 to 31");
	r.packet_life = 0;
	ah.port = 2;
	cm_refused(e, &r, -EINVAL, "port: got 2, there are 2 ports from 0 on");
	ah.port = 0;
	r.service = &svc;
	assert_int_equal(engine_cm_connect(e, &r, &id, &err), -EINVAL);
	assert_int_equal(strncmp(err.text, "kind: got \"nothing\", allowed: memory", 36), 0);
	assert_int_equal(engine_cm_listen(e, &svc, &id, &err), -EINVAL);
	assert_int_equal(cm_num_services(e), 0);
	/* a second service with the ID is refused, the first one goes on */
	listen_kind(e, "memory");
	strcpy(svc.kind, "sink");
	svc.service_id = service_id();
	assert_int_equal(engine_cm_listen(e, &svc, &id, &err), -EEXIST);
	assert_string_equal(err.text,
		"service_id: 0x0000000001061d2f is taken by service 1 (memory): end that with "
		"polca-ctl cm unlisten 1, or use another ID");
	eventually(cm_num_services(e) == 1); /* the workers leave the second one first */
	r = engine_cm_request(&c, &ah, -1);
	for (i = 0; i < 16; i++) { /* attempts on both workers */
		client_connect(e, &c, &r);
		cm_use_memory(e, &c, 1);
		client_disconnect(e, &c);
	}
	cm_client_destroy(e, &c);
}

/* --- the end of connections --- */

static void
test_unlisten_while_connected(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_service_info s;
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct error err = { "" };
	struct client c, late;
	uint32_t id;

	id = listen_kind(e, "memory");
	cm_client_create(e, &c);
	cm_client_create(e, &late);
	r = engine_cm_request(&c, &ah, -1);
	client_connect(e, &c, &r);
	/* before the RTU comes, the service has no connection that it could keep */
	eventually(service_get(e, id, &s) && s.connections == 1);
	assert_ok(engine_cm_unlisten(e, id, false, &err));
	assert_true(service_get(e, id, &s));
	assert_false(s.listening);
	cm_use_memory(e, &c, 4);
	r = engine_cm_request(&late, &ah, -1);
	o = try_connect(e, &r);
	assert_int_equal(o.info.reason, CM_REJ_INVALID_SERVICE_ID);
	/* another service may have the ID; it has connections of its own */
	id = listen_kind(e, "memory");
	client_connect(e, &late, &r);
	assert_int_equal(cm_num_services(e), 2);
	assert_ok(engine_cm_unlisten(e, id, true, &err));
	eventually(is_state(e, late.info.id, CM_STATE_TIMEWAIT));
	eventually(cm_num_services(e) == 1);
	cm_use_memory(e, &c, 5);
	client_disconnect(e, &c);
	eventually(cm_num_services(e) == 0);
	cm_client_destroy(e, &c);
	cm_client_destroy(e, &late);
	assert_int_equal(cm_num_qps(e), 0);
}

static void
test_qp_of_a_connection_is_refused_to_callers(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r;
	struct error err = { "" };
	struct client c;
	char text[256];

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	client_connect(e, &c, &r);
	assert_int_equal(engine_qp_destroy(e, c.info.qpn, &err), -EBUSY);
	snprintf(text, sizeof(text),
		"qp: 0x%06x belongs to connection 0x%08x, which destroys it: disconnect that one",
		c.info.qpn, c.info.id);
	assert_string_equal(err.text, text);
	cm_use_memory(e, &c, 2);
	/* a QP error ends the connection; here the R_Key is wrong */
	c.rkey ^= 0xFF;
	post(e, &c.end, WR_RDMA_WRITE, &(struct end){ .mr = { .key = c.rkey, .va = c.va } }, 0, 0,
		64, 9);
	cm_client_destroy(e, &c);
}

/* If nobody asks for the outcome of an attempt, the connection is made and listed. */
static void
test_forgotten_attempt(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r;
	struct error err = { "" };
	struct cm_info info = { .id = 0 };
	uint64_t cursor = 0;
	uint32_t attempt;
	struct client c;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	assert_ok(engine_cm_connect(e, &r, &attempt, &err));
	engine_cm_forget(e, attempt);
	while (engine_cm_next(e, &cursor, &info) && !info.active)
		;
	assert_true(info.active);
	eventually(is_state(e, info.id, CM_STATE_ESTABLISHED));
	/* another attempt uses the entry and gets its own outcome */
	client_connect(e, &c, &r);
	assert_int_not_equal(c.info.id, info.id);
	assert_ok(engine_cm_disconnect(e, info.id, &err));
	client_disconnect(e, &c);
	cm_client_destroy(e, &c);
}

/*
 * LAP and APR: both sides load the alternate path from port 0 to port 0. A path from port 1 is
 * refused, as it does not lead to the sender of the LAP.
 */
static void
test_alternate_path(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e),
			 other = {
				 .port = 0,
				 .dgid = link_port_attr(engine_link(e), 0)->gid[0].gid,
			 };
	struct engine_cm_connect r;
	struct error err = { "" };
	struct rc_qp_info qp;
	struct cm_info info;
	struct client c;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	client_connect(e, &c, &r);
	assert_ok(engine_cm_load_alternate(e, c.info.id, &other, &err));
	eventually(engine_cm_get(e, c.info.id, &info, &err) == 0 && info.alternate.present);
	assert_ok(engine_qp_query(e, c.info.qpn, &qp, &err));
	assert_true(qp.alt_loaded);
	assert_int_equal(qp.attr.alt.av.port, 0);
	assert_ok(engine_qp_query(e, c.info.remote_qpn, &qp, &err));
	assert_int_equal(qp.attr.alt.av.port, 0);
	cm_use_memory(e, &c, 6);
	assert_int_equal(engine_cm_load_alternate(e, c.info.id ^ 1, &other, &err), -ENOENT);
	other.port = 5;
	assert_int_equal(engine_cm_load_alternate(e, c.info.id, &other, &err), -EINVAL);
	client_disconnect(e, &c);
	cm_client_destroy(e, &c);
}

#define MANY 64

/* design.md: the hash of remote CA GUID and QPN chooses the worker of a connection. */
static void
test_both_workers_have_connections(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	unsigned int i, passive[2] = { 0, 0 };
	struct engine_cm_connect r;
	struct error err = { "" };
	struct rc_qp_info qp;
	struct cm_info info;
	uint64_t cursor = 0;
	struct client c;
	uint32_t id;

	id = listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	for (i = 0; i < MANY; i++) {
		client_connect(e, &c, &r);
		cm_use_memory(e, &c, i);
	}
	while (engine_cm_next(e, &cursor, &info)) {
		if (info.active)
			continue;
		assert_ok(engine_qp_query(e, info.qpn, &qp, &err));
		passive[qp.worker]++;
	}
	assert_int_equal(passive[0] + passive[1], MANY);
	assert_in_range(passive[0], MANY / 8, MANY - MANY / 8);
	assert_int_equal(num_connections(e, true), MANY);
	assert_ok(engine_cm_unlisten(e, id, true, &err));
	eventually(cm_num_qps(e) == 0);
	assert_int_equal(num_connections(e, true) + num_connections(e, false), 0);
	c.end.qpn = 0;
	cm_client_destroy(e, &c);
}

static void
test_500_in_a_row(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = to_port1(e);
	struct engine_cm_connect r;
	struct cm_counters n;
	struct client c;
	unsigned int i;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	for (i = 0; i < 500; i++) {
		client_connect(e, &c, &r);
		client_disconnect(e, &c);
	}
	eventually(cm_num_qps(e) == 0);
	assert_int_equal(num_connections(e, true) + num_connections(e, false), 0);
	engine_cm_counters(e, -1, &n);
	assert_int_equal(n.connections, 1000);
	assert_int_equal(n.disconnects, 1000);
	c.end.qpn = 0;
	cm_client_destroy(e, &c);
}

/* engine_stop() disconnects with DREQ, so both sides know. */
static void
test_stop_disconnects(void **state)
{
	struct engine *e;
	struct engine_ah ah;
	struct engine_cm_connect r;
	struct cm_info info;
	uint64_t cursor = 0;
	struct client c;
	unsigned int i;

	(void)state;
	engine_cm_config(false);
	e = node_start();
	ah = to_port1(e);
	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	for (i = 0; i < 10; i++)
		client_connect(e, &c, &r);
	assert_int_equal(engine_cm_sent(e, CM_DREQ), 0);
	engine_stop(e, 20000);
	assert_in_range(engine_cm_sent(e, CM_DREQ), 10, 20);
	while (engine_cm_next(e, &cursor, &info))
		assert_int_equal(info.state, CM_STATE_TIMEWAIT);
	engine_destroy(e);
}

static size_t
memory_in_use(void)
{
	struct rte_malloc_socket_stats s;

	assert_int_equal(rte_malloc_get_socket_stats(0, &s), 0);
	return s.heap_allocsz_bytes;
}

/* engine_destroy() without stop sends nothing, and frees connections, attempts and services. */
static void
test_destroy_without_stop_leaks_nothing(void **state)
{
	struct svc_config echo = { .kind = "echo", .size = 100 };
	struct engine_ah ah, nobody = to_nobody();
	struct engine_cm_connect r;
	struct error err = { "" };
	size_t before = 0;
	struct client c;
	uint32_t attempt;
	int round;

	(void)state;
	for (round = 0; round < 3; round++) {
		struct engine *e;

		strcpy(engine_cm_config(false)->service[0].kind, "sink");
		engine_cm_config(false)->num_services = 0;
		e = node_start();
		ah = to_port1(e);
		listen_kind(e, "echo");
		cm_client_create(e, &c);
		r = engine_cm_request(&c, &ah, -1);
		client_connect(e, &c, &r);
		client_connect(e, &c, &r);
		r.ah = &nobody; /* an attempt in progress */
		assert_ok(engine_cm_connect(e, &r, &attempt, &err));
		r.ah = &ah;
		r.service = &echo; /* endless traffic */
		assert_true(try_connect(e, &r).established);
		engine_destroy(e);
		if (round > 0)
			assert_int_equal(memory_in_use(), before);
		before = memory_in_use();
	}
}

/* Services of the configuration listen when the engine starts. */
static void
test_services_from_the_start(void **state)
{
	struct engine_config *cfg;
	struct engine_cm_connect r;
	struct engine_ah ah;
	struct engine *e;
	struct error err = { "" };
	struct client c;

	(void)state;
	cfg = engine_cm_config(false);
	cfg->num_services = 1;
	cfg->service[0] = (struct svc_config){
		.kind = "memory",
		.length = MEM_SIZE,
		.service_id = service_id(),
	};
	e = node_start();
	ah = to_port1(e);
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	client_connect(e, &c, &r);
	cm_use_memory(e, &c, 3);
	node_stop(e, 0);
	cfg = engine_cm_config(false);
	cfg->num_services = 2;
	cfg->service[0] = (struct svc_config){ .kind = "memory", .service_id = 1 };
	cfg->service[1] = (struct svc_config){ .kind = "sink", .service_id = 1 };
	assert_null(engine_create(cfg, &err));
	assert_string_equal(err.text,
		"services[1]: service_id: 0x0000000000000001 is taken by service 1 (memory): end that with "
		"polca-ctl cm unlisten 1, or use another ID");
}

/* --- native IB --- */

static struct cm_info
connect_ib(struct engine *e, struct client *c, const struct engine_ah *ah)
{
	struct engine_cm_connect r = engine_cm_request(c, ah, -1);

	r.path_mtu = 0;
	client_connect(e, c, &r);
	cm_use_memory(e, c, 7);
	client_disconnect(e, c);
	return c->info;
}

/* @return number of our requests to the SA on QP1 */
static uint64_t
packets(struct engine *e)
{
	struct mad_counters n;

	engine_mad_counters(e, -1, &n);
	return n.calls;
}

static void
test_path_is_requested_from_the_sa(void **state)
{
	struct engine *e = *state;
	const struct port_attr *p0 = link_port_attr(engine_link(e), 0);
	const struct port_attr *p1 = link_port_attr(engine_link(e), 1);
	struct engine_ah by_gid = { .port = 0, .dgid = p1->gid[0].gid };
	struct engine_ah by_lid = { .port = 0, .dlid = 2 };
	struct engine_ah back = { .port = 1, .dgid = p0->gid[0].gid };
	struct cm_info info;
	struct client c;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	/* port 1's LID is MasterSMLID: requests go over the wire, the first for ClassPortInfo */
	info = connect_ib(e, &c, &by_gid);
	assert_true(gid_equal(&info.rdma.dst, &by_gid.dgid));
	assert_int_equal(info.path.av.dlid, 2);
	assert_int_equal(info.path.av.slid, 1);
	assert_false(info.path.av.grh);
	assert_int_equal(info.path.mtu, p0->active_mtu);
	assert_int_equal(packets(e), 2);
	info = connect_ib(e, &c, &by_lid);
	assert_int_equal(info.path.av.dlid, 2);
	assert_true(gid_equal(&info.path.av.dgid, &p1->gid[0].gid));
	/* the path to our own port is asked for by loopback */
	info = connect_ib(e, &c, &back);
	assert_int_equal(info.path.av.dlid, 1);
	assert_int_equal(packets(e), 4);
	cm_client_destroy(e, &c);
}

/* What the caller chooses is part of the request, and the path has it. */
static void
test_chosen_path_values_are_requested(void **state)
{
	struct engine *e = *state;
	const struct port_attr *p1 = link_port_attr(engine_link(e), 1);
	struct engine_ah chosen = {
		.port = 0,
		.dgid = p1->gid[0].gid,
		.traffic_class = 0x48,
		.flow_label = 0x12345,
	};
	struct engine_cm_connect r;
	struct engine_cm_outcome o;
	struct cm_info info;
	struct client c;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	info = connect_ib(e, &c, &chosen);
	assert_int_equal(info.path.av.traffic_class, 0x48);
	assert_int_equal(info.path.av.flow_label, 0x12345);
	/* the SA does not know that the fabric carries this SL */
	chosen.sl = 5;
	r = engine_cm_request(&c, &chosen, -1);
	r.path_mtu = 0;
	o = try_connect(e, &r);
	assert_int_equal(o.error, -ENOENT);
	cm_client_destroy(e, &c);
}

static void
test_known_path_needs_no_request(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = {
		.port = 0,
		.dlid = 2,
		.dgid = link_port_attr(engine_link(e), 1)->gid[0].gid,
	};
	struct engine_cm_connect r;
	struct client c;

	listen_kind(e, "memory");
	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	r.path_mtu = 1024;
	r.packet_life = 9;
	r.src_port = 4791;
	assert_true(gid_parse("10.0.0.1", &r.src_addr));
	assert_true(gid_parse("10.0.0.2", &r.dst_addr));
	client_connect(e, &c, &r);
	assert_int_equal(c.info.rdma.src_port, 4791);
	assert_true(gid_equal(&c.info.rdma.src, &r.src_addr));
	assert_true(gid_equal(&c.info.rdma.dst, &r.dst_addr));
	cm_use_memory(e, &c, 8);
	assert_int_equal(packets(e), 0); /* no request was sent */
	assert_int_equal(c.info.path.mtu, 1024);
	assert_int_equal(c.info.path.packet_life, 9);
	client_disconnect(e, &c);
	cm_client_destroy(e, &c);
}

/* If no SA answers, the path has the given LID, the port's MTU and cm.packet_life. */
static void
test_lid_without_sa(void **state)
{
	static const uint16_t managers[] = { 0, 3 }; /* no SM, and a LID that no port has */
	struct engine_ah by_lid = { .port = 0, .dlid = 2 };
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct engine_config *cfg;
	struct client c;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		cfg = engine_cm_config(true);
		cfg->sa.enabled = false;
		cfg->sma.port[0].sm_lid = managers[i];
		cfg->sma.port[1].sm_lid = managers[i];
		run_ib(state);
		listen_kind(*state, "memory");
		cm_client_create(*state, &c);
		r = engine_cm_request(&c, &by_lid, -1);
		r.timeout_ms = 4000;
		client_connect(*state, &c, &r);
		assert_int_equal(c.info.path.av.dlid, 2);
		assert_int_equal(c.info.path.packet_life, PACKET_LIFE);
		assert_int_equal(c.info.path.mtu,
			link_port_attr(engine_link(*state), 0)->active_mtu);
		assert_int_equal(packets(*state) > 0, managers[i] != 0); /* was asked */
		cm_use_memory(*state, &c, 9);
		client_disconnect(*state, &c);
		/* a GID without LID gives no path */
		r.ah = &(struct engine_ah){ .dgid = { .raw = { 0xFE, 0x80, [15] = 9 } } };
		if (managers[i] != 0) {
			o = try_connect(*state, &r);
			assert_int_equal(o.error, -ETIMEDOUT);
		}
		cm_client_destroy(*state, &c);
		node_stop(*state, 0);
	}
}

static void
test_no_path(void **state)
{
	struct engine_ah ah = { .port = 0 };
	struct engine *e = *state;
	struct engine_cm_outcome o;
	struct engine_cm_connect r;
	struct client c;

	cm_client_create(e, &c);
	r = engine_cm_request(&c, &ah, -1);
	cm_refused(e, &r, -EINVAL, "peer: port0 is an InfiniBand port: its LID or GID");
	assert_true(gid_parse("fe80::1234", &ah.dgid));
	o = try_connect(e, &r);
	assert_int_equal(o.error, -ENOENT);
	assert_int_equal(strncmp(o.why.text, "the SA knows no path to the peer (", 34), 0);
	assert_int_equal(o.info.id, 0);
	cm_client_destroy(e, &c);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest one[] = {
		cmocka_unit_test_setup_teardown(test_connections_to_a_memory_service, cm_start,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_echo_service_on_both_sides, cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_unlisten_while_connected,
			start_with_long_timewait, cm_stop),
		cmocka_unit_test_setup_teardown(test_path_is_requested_from_the_sa, cm_start_ib,
			cm_stop),
	};
	const struct CMUnitTest two[] = {
		cmocka_unit_test_setup_teardown(test_connections_to_a_memory_service, cm_start,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_peer_disconnects, start_with_long_timewait,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_echo_service_on_both_sides, cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_nobody_listens, cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_nobody_listens_to_a_service, cm_start,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_peer_that_does_not_answer, start_impatient,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_attempt_ends_when_its_time_is_over, cm_start,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_no_next_hop, start_with_a_hole, cm_stop),
		cmocka_unit_test_setup_teardown(test_unused_neighbours_are_forgotten,
			start_forgetful, cm_stop),
		cmocka_unit_test_setup_teardown(test_next_hop_of_an_id_is_not_forgotten,
			start_forgetful, cm_stop),
		cmocka_unit_test_setup_teardown(test_idle_neighbours_age_out, start_ageing,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_parameters, cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_unlisten_while_connected,
			start_with_long_timewait, cm_stop),
		cmocka_unit_test_setup_teardown(test_qp_of_a_connection_is_refused_to_callers,
			cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_forgotten_attempt, cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_alternate_path, cm_start, cm_stop),
		cmocka_unit_test_setup_teardown(test_both_workers_have_connections, cm_start,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_500_in_a_row, cm_start, cm_stop),
		cmocka_unit_test(test_stop_disconnects),
		cmocka_unit_test(test_destroy_without_stop_leaks_nothing),
		cmocka_unit_test(test_services_from_the_start),
		cmocka_unit_test_setup_teardown(test_path_is_requested_from_the_sa, cm_start_ib,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_chosen_path_values_are_requested, cm_start_ib,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_known_path_needs_no_request, cm_start_ib,
			cm_stop),
		cmocka_unit_test_setup_teardown(test_no_path, cm_start_ib, cm_stop),
		cmocka_unit_test(test_lid_without_sa),
	};

	if (argc > 1)
		node_workers = (unsigned int)atoi(argv[1]);
	return node_workers == 1 ? cmocka_run_group_tests(one, eal_setup, eal_teardown)
				 : cmocka_run_group_tests(two, eal_setup, eal_teardown);
}
