/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A program that uses librdmacm, without the socket: it sends the commands of rdma_user_cm.h, and
 * connects its own queue pair to a listener of its own. Port 0 is the active side.
 */

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <rdma/rdma_user_cm.h>

#include "client_node.h"
#include "engine/clients_private.h"
#include "engine/connections.h"
#include "engine/rdmacm.h"
#include "engine/verbs_private.h"

#define CM_PORT 7471
#define UID     7 /* by which the library knows an ID */

enum { LISTENING, ACTIVE, OTHER, CHANNELS };

/* events, as in librdmacm's own header */
enum {
	ADDR_RESOLVED = 0,
	ADDR_ERROR = 1,
	ROUTE_RESOLVED = 2,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE = 5,
	REJECTED = 8,
	ESTABLISHED = 9,
	DISCONNECTED = 10,
};

static const struct rdmacm_limits cm_client_limits = { .max_channels = CHANNELS, .max_ids = 8 };

static struct engine *e;
static struct program device[2]; /* on port 0 and on port 1 */
static struct rdmacm_program *cm;
static int channel_fd[CHANNELS];
static struct error err; /* of the last call */

static void
ucm_open(void)
{
	uint32_t slot, i;

	assert_ok(engine_rdmacm_open(e, &cm_client_limits, getuid(), getpid(), &cm, &err));
	for (i = 0; i < CHANNELS; i++) {
		assert_ok(engine_rdmacm_channel_open(cm, &slot, &channel_fd[i], &err));
		assert_int_equal(slot, i);
	}
}

static int
cm_client_setup(void **state)
{
	uint32_t i;

	(void)state;
	node_config();
	e = node_start();
	for (i = 0; i < 2; i++) {
		program_open(e, &device[i], i);
		program_make_objects(&device[i]);
		engine_client_set_owner(device[i].client, (uint32_t)getpid(), getuid());
	}
	ucm_open();
	return 0;
}

static int
cm_client_teardown(void **state)
{
	(void)state;
	engine_rdmacm_close(cm);
	program_close(&device[0]);
	program_close(&device[1]);
	node_stop(e, 0);
	return 0;
}

/* --- commands --- */

static struct ring_cm_reply reply;

/* @param from  MIGRATE_ID: the channel that the ID leaves */
static int
ucm_command_from(uint32_t channel, uint32_t from, uint32_t code, const void *body, uint16_t size)
{
	struct rdma_ucm_cmd_hdr header = { .cmd = code, .in = size, .out = RING_CM_BYTES };
	struct ring_cm_command command = {
		.channel = channel,
		.from = from,
		.length = (uint32_t)sizeof(header) + size,
	};

	memcpy(command.bytes, &header, sizeof(header));
	memcpy(command.bytes + sizeof(header), body, size);
	memset(&reply, 0, sizeof(reply));
	return engine_rdmacm_command(cm, &command, &reply, &err);
}

#define UCM_COMMAND(channel, CODE, ...)                                                            \
	ucm_command_from(channel, RING_NONE, RDMA_USER_CM_CMD_##CODE, &(__VA_ARGS__),              \
		sizeof(__VA_ARGS__))

static uint32_t
ucm_create_id(uint32_t channel)
{
	struct rdma_ucm_create_id create = { .uid = UID, .ps = RDMA_PS_TCP };
	uint32_t id;

	assert_ok(UCM_COMMAND(channel, CREATE_ID, create));
	memcpy(&id, reply.bytes, sizeof(id));
	return id;
}

static int
ucm_destroy_id(uint32_t channel, uint32_t id)
{
	return UCM_COMMAND(channel, DESTROY_ID, (struct rdma_ucm_destroy_id){ .id = id });
}

static int
ucm_migrate_id(uint32_t to, uint32_t from, uint32_t id)
{
	struct rdma_ucm_migrate_id migrate = { .id = id };

	return ucm_command_from(to, from, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate, sizeof(migrate));
}

static int
ucm_query(uint32_t channel, uint32_t id)
{
	return UCM_COMMAND(channel, QUERY,
		(struct rdma_ucm_query){ .id = id, .option = RDMA_USER_CM_QUERY_ADDR });
}

/* The address of port 1. */
static struct sockaddr_in6
ucm_address(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(CM_PORT) };
	struct sockaddr_in6 any_family = { 0 };

	in.sin_addr.s_addr = htonl(0xc0000202); /* 192.0.2.2 */
	memcpy(&any_family, &in, sizeof(in));
	return any_family;
}

static bool
ucm_has_event(uint32_t channel)
{
	struct rdma_ucm_get_event get = { 0 };

	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	return UCM_COMMAND(channel, GET_EVENT, get) == 0;
}

static struct rdma_ucm_event_resp
ucm_event(uint32_t channel)
{
	struct rdma_ucm_event_resp event;

	eventually(ucm_has_event(channel));
	memcpy(&event, reply.bytes, sizeof(event));
	return event;
}

/* An address that nobody has chooses no source for the next one. */
static void
test_failed_resolution_leaves_the_source_open(void **state)
{
	uint32_t id = ucm_create_id(ACTIVE);
	struct sockaddr_in6 nobody = ucm_address();
	struct rdma_ucm_query_addr_resp address;
	struct sockaddr_in src;

	(void)state;
	((struct sockaddr_in *)(void *)&nobody)->sin_addr.s_addr = htonl(0xc000024d);
	assert_ok(UCM_COMMAND(ACTIVE, RESOLVE_IP,
		(struct rdma_ucm_resolve_ip){ .id = id, .timeout_ms = 1, .dst_addr = nobody }));
	assert_int_equal(ucm_event(ACTIVE).event, ADDR_ERROR);
	assert_ok(ucm_query(ACTIVE, id));
	memcpy(&address, reply.bytes, sizeof(address));
	memcpy(&src, &address.src_addr, sizeof(src));
	assert_int_equal(src.sin_addr.s_addr, 0);
	assert_ok(UCM_COMMAND(ACTIVE, RESOLVE_IP,
		(struct rdma_ucm_resolve_ip){ .id = id,
			.timeout_ms = 60000,
			.dst_addr = ucm_address() }));
	assert_int_equal(ucm_event(ACTIVE).event, ADDR_RESOLVED);
	assert_ok(ucm_destroy_id(ACTIVE, id));
}

/* A next hop that was given up is not resolved. */
static void
test_next_hop_that_was_given_up(void **state)
{
	struct cm_path path = { .neighbour = UINT32_MAX / 2 };

	(void)state;
	assert_int_equal(conn_path_hop(e, &path, &err), -EAGAIN);
	path.neighbour = PATH_NO_NEIGHBOUR;
	assert_ok(conn_path_hop(e, &path, &err));
}

/* All processes of another PID namespace have the number 0. */
static void
test_process_that_cannot_be_seen_has_no_queue_pair(void **state)
{
	uint32_t qpn = device[0].qp.number;

	(void)state;
	assert_true(clients_own_qp(e, getuid(), getpid(), qpn));
	engine_client_set_owner(device[0].client, 0, getuid());
	assert_false(clients_own_qp(e, getuid(), 0, qpn));
	engine_client_set_owner(device[0].client, (uint32_t)getpid(), getuid());
}

/* --- a request that waits --- */

static bool
ucm_readable(uint32_t channel)
{
	struct pollfd fd = { .fd = channel_fd[channel], .events = POLLIN };

	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	return poll(&fd, 1, 0) == 1;
}

static uint32_t
ucm_listen(void)
{
	uint32_t id = ucm_create_id(LISTENING);

	assert_ok(UCM_COMMAND(LISTENING, BIND_IP,
		(struct rdma_ucm_bind_ip){ .id = id, .addr = ucm_address() }));
	assert_ok(
		UCM_COMMAND(LISTENING, LISTEN, (struct rdma_ucm_listen){ .id = id, .backlog = 4 }));
	return id;
}

/* The queue pair is in no connection: that of the last one is in TIMEWAIT. */
static void
ucm_make_queue_pair(struct program *p)
{
	struct ring_qp_create qp = {
		.caps = { 1, 1, 1, 1, 0 },
		.pd = p->pd,
		.send_cq = p->cq.slot,
		.recv_cq = p->cq.slot,
		.srq = RING_NONE,
	};

	assert_ok(engine_client_qp_destroy(p->client, p->qp.slot, &err));
	assert_ok(engine_client_qp_create(p->client, &qp, &p->qp, &err));
}

/* @return the active side's ID */
static uint32_t
ucm_connect(void)
{
	uint32_t id = ucm_create_id(ACTIVE);
	struct rdma_ucm_connect connect = {
		.id = id,
		.conn_param = { .qp_num = device[0].qp.number, .valid = 1 },
	};

	assert_ok(UCM_COMMAND(ACTIVE, RESOLVE_IP,
		(struct rdma_ucm_resolve_ip){ .id = id,
			.timeout_ms = 60000,
			.dst_addr = ucm_address() }));
	assert_int_equal(ucm_event(ACTIVE).event, ADDR_RESOLVED);
	assert_ok(UCM_COMMAND(ACTIVE, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){ .id = id }));
	assert_int_equal(ucm_event(ACTIVE).event, ROUTE_RESOLVED);
	assert_ok(UCM_COMMAND(ACTIVE, CONNECT, connect));
	return id;
}

static int
ucm_accept(uint32_t channel, uint32_t id, uint32_t qpn)
{
	return UCM_COMMAND(channel, ACCEPT,
		(struct rdma_ucm_accept){
			.id = id,
			.uid = UID,
			.conn_param = { .qp_num = qpn, .valid = qpn != 0 },
		});
}

/* A listener with a request, which the program has not fetched. @return the listener's ID */
static uint32_t
ucm_request(void)
{
	uint32_t id = ucm_listen();

	ucm_connect();
	eventually(ucm_readable(LISTENING));
	return id;
}

/*
 * The new ID of a request exists for the program from the event CONNECT_REQUEST on, as the
 * kernel's. Another channel could take it away from its event before.
 */
static void
test_id_of_an_unfetched_request(void **state)
{
	struct rdma_ucm_event_resp event;
	uint32_t listening = ucm_request(), id;

	(void)state;
	for (id = 0; id < cm_client_limits.max_ids; id++) {
		if (id == listening)
			continue;
		assert_int_not_equal(ucm_query(LISTENING, id), 0);
		assert_int_not_equal(ucm_migrate_id(OTHER, LISTENING, id), 0);
		assert_int_not_equal(ucm_destroy_id(LISTENING, id), 0);
		assert_int_not_equal(ucm_destroy_id(OTHER, id), 0);
	}
	event = ucm_event(LISTENING);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_ok(ucm_query(LISTENING, event.id));
	assert_ok(ucm_migrate_id(OTHER, LISTENING, event.id));
	assert_ok(ucm_destroy_id(LISTENING, listening));
	assert_ok(ucm_query(OTHER, event.id));
	assert_ok(ucm_destroy_id(OTHER, event.id));
}

/* A listener that ends takes the IDs of its requests along. */
static void
test_listener_ends_before_its_request_is_fetched(void **state)
{
	uint32_t listening = ucm_request();
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_ok(ucm_destroy_id(LISTENING, listening));
	assert_false(ucm_has_event(LISTENING));
	event = ucm_event(ACTIVE);
	assert_int_equal(event.event, REJECTED);
	assert_int_equal(event.status, 28);
}

/* --- connections --- */

/* Connect, up to this step. @return the passive side's ID */
static uint32_t
ucm_establish(unsigned int steps, uint32_t *active)
{
	struct rdma_ucm_event_resp event;

	*active = ucm_connect();
	if (steps == 0)
		return RING_NONE;
	do { /* the last program's request may come late */
		event = ucm_event(LISTENING);
		assert_int_equal(event.event, CONNECT_REQUEST);
	} while (event.param.conn.qp_num != device[0].qp.number);
	if (steps == 1)
		return event.id;
	assert_ok(ucm_accept(LISTENING, event.id, device[1].qp.number));
	if (steps == 2)
		return event.id;
	assert_int_equal(ucm_event(ACTIVE).event, CONNECT_RESPONSE);
	assert_ok(ucm_accept(ACTIVE, *active, 0));
	if (steps == 3)
		return event.id;
	assert_int_equal(ucm_event(LISTENING).event, ESTABLISHED);
	return event.id;
}

static void
test_connection_from_its_request_to_its_end(void **state)
{
	uint32_t active, passive;

	(void)state;
	ucm_listen();
	passive = ucm_establish(4, &active);
	assert_ok(UCM_COMMAND(ACTIVE, DISCONNECT, (struct rdma_ucm_disconnect){ .id = active }));
	assert_int_equal(ucm_event(LISTENING).event, DISCONNECTED);
	assert_int_equal(ucm_event(ACTIVE).event, DISCONNECTED);
	assert_ok(ucm_destroy_id(LISTENING, passive));
	assert_ok(ucm_destroy_id(ACTIVE, active));
}

/* Workers go on with connections whose program has gone. The next one has the same port number. */
static void
test_program_ends_at_each_step(void **state)
{
	unsigned int round;
	uint32_t active;

	(void)state;
	for (round = 0; round < 20; round++) {
		ucm_listen();
		ucm_establish(round % 5, &active);
		engine_rdmacm_close(cm);
		ucm_make_queue_pair(&device[0]);
		ucm_make_queue_pair(&device[1]);
		ucm_open();
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, cm_client_setup, cm_client_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_failed_resolution_leaves_the_source_open),
		CASE(test_next_hop_that_was_given_up),
		CASE(test_process_that_cannot_be_seen_has_no_queue_pair),
		CASE(test_id_of_an_unfetched_request),
		CASE(test_listener_ends_before_its_request_is_fetched),
		CASE(test_connection_from_its_request_to_its_end),
		CASE(test_program_ends_at_each_step),
	};

	return cmocka_run_group_tests_name("engine: clients of librdmacm", tests, eal_setup,
		eal_teardown);
}
