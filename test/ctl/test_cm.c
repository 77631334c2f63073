/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Services and connections, from the request to the verbs and back. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"

#define assert_says(text, what)                                                                    \
	do {                                                                                       \
		if (strstr(text, what) == NULL)                                                    \
			print_error("said: %s\nwant: %s\n", text, what);                           \
		assert_non_null(strstr(text, what));                                               \
	} while (0)

static int
cm_setup(void **state)
{
	struct desk *d;
	int rc = desk_setup(state);

	d = *state;
	d->e->port[1].ib = true;
	d->e->port[1].gid[0].type = GID_IB;
	d->e->cm.connections = 3;
	return rc;
}

static const struct svc_config *
service(const struct desk *d, unsigned int i)
{
	assert_true(i < d->e->cm.services);
	return &d->e->cm.service[i].config;
}

/* --- services --- */

/* cm.md 7: 0x0000000001 06 PPPP */
static void
test_a_port_is_one_of_the_tcp_space_unless_told(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	r = call(d, "cm_listen", "'kind': 'rping', 'port': 7471");
	assert_int_equal(num(r, "service"), 1);
	assert_string_equal(str(r, "name"), "rping");
	assert_string_equal(str(r, "service_id"), "0x0000000001061d2f");
	assert_string_equal(str(r, "port_space"), "TCP");
	assert_int_equal(num(r, "port"), 7471);
	assert_true(service(d, 0)->service_id == 0x0000000001061d2f);
	assert_true(service(d, 0)->service_mask == 0xffffffffffffffff);
	call(d, "cm_listen", "'kind': 'rping', 'port': 7471, 'port_space': 'IB'");
	assert_true(service(d, 1)->service_id == 0x00000000013f1d2f);
	r = call(d, "cm_listen",
		"'kind': 'memory', 'service_id': '0x8000000000001234', 'service_mask': '0xffffffffffff0000'");
	assert_true(service(d, 2)->service_id == 0x8000000000001234);
	assert_true(service(d, 2)->service_mask == 0xffffffffffff0000);
	assert_null(json_object_get(r, "port"));
}

static void
test_a_service_gets_its_parameters(void **state)
{
	struct desk *d = *state;
	const struct svc_config *c;

	call(d, "cm_listen",
		"'kind': 'memory', 'name': 'store', 'port': 1, 'length': 4096, 'size': 5, 'depth': 6, 'access': ['REMOTE_READ'], 'mr': 77, 'per_connection': true, 'max_connections': 8, 'max_connections_per_peer': 7, 'count': 9");
	c = service(d, 0);
	assert_string_equal(c->kind, "memory");
	assert_string_equal(c->name, "store");
	assert_int_equal(c->length, 4096);
	assert_int_equal(c->size, 5);
	assert_int_equal(c->depth, 6);
	assert_int_equal(c->access, MEM_ACCESS_REMOTE_READ);
	assert_int_equal(c->mr_key, 77);
	assert_true(c->per_connection);
	assert_int_equal(c->max_connections, 8);
	assert_int_equal(c->max_connections_per_peer, 7);
	assert_int_equal(c->count, 9);
	assert_false(c->active);
	/* what is not said is the kind's */
	call(d, "cm_listen",
		"'kind': 'memory', 'tcp_port': 18515, 'tcp_address': '127.0.0.1', 'tcp_any_gid': true");
	c = service(d, 1);
	assert_int_equal(c->tcp_port, 18515);
	assert_string_equal(c->tcp_address, "127.0.0.1");
	assert_true(c->tcp_any_gid);
	assert_int_equal(c->length | c->size | c->depth | c->access | c->max_connections, 0);
}

static void
test_an_unknown_kind_names_those_there_are(void **state)
{
	struct desk *d = *state;
	const json_t *e;

	e = call_fails(d, "cm_listen", "'kind': 'ping', 'port': 1");
	assert_string_equal(str(e, "message"),
		"kind: got \"ping\", which is none, allowed: memory, rping; did you mean rping?");
	assert_int_equal(json_array_size(json_object_get(json_object_get(e, "data"), "kinds")), 2);
	assert_says(fails(d, "cm_listen", "'kind': 'hammer', 'port': 1"),
		"kind: got \"hammer\", which only connects, allowed: memory, rping");
	assert_says(fails(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'service': 'memory'"),
		"service: got \"memory\", which only waits to be connected, allowed: rping, hammer");
	assert_int_equal(d->e->cm.services, 0);
}

static void
test_where_to_listen_is_said_once(void **state)
{
	struct desk *d = *state;

	assert_says(fails(d, "cm_listen", "'kind': 'rping'"),
		"port, service_id: got none of them: where to listen");
	assert_says(fails(d, "cm_listen", "'kind': 'rping', 'port': 1, 'service_id': 2"),
		"port, service_id: got both of them");
	assert_says(fails(d, "cm_listen", "'kind': 'rping', 'port': 0"),
		"allowed: integer 1..65535");
	assert_says(fails(d, "cm_listen", "'kind': 'rping', 'port': 1, 'port_space': 'SCTP'"),
		"allowed: one of TCP, UDP, IB, IPOIB");
}

static void
test_names_of_services_differ(void **state)
{
	struct desk *d = *state;

	call(d, "cm_listen", "'kind': 'rping', 'port': 1");
	assert_string_equal(str(call(d, "cm_listen", "'kind': 'rping', 'port': 2"), "name"),
		"rping-2");
	assert_string_equal(str(call(d, "cm_listen", "'kind': 'rping', 'port': 3"), "name"),
		"rping-3");
	assert_says(fails(d, "cm_listen", "'kind': 'memory', 'port': 4, 'name': 'rping-2'"),
		"name: service 2 is called \"rping-2\" already");
	assert_says(fails(d, "cm_listen", "'kind': 'memory', 'port': 4, 'name': '12'"),
		"name: got \"12\", which would be taken for a number");
}

static void
test_a_service_is_ended_by_number_or_name(void **state)
{
	struct desk *d = *state;

	call(d, "cm_listen", "'kind': 'rping', 'port': 1");
	call(d, "cm_listen", "'kind': 'rping', 'port': 2");
	call(d, "cm_unlisten", "'service': 'rping-2'");
	assert_true(d->e->cm.service[0].listening);
	assert_false(d->e->cm.service[1].listening);
	assert_false(d->e->cm.disconnect);
	call(d, "cm_unlisten", "'service': 1, 'disconnect': true");
	assert_false(d->e->cm.service[0].listening);
	assert_true(d->e->cm.disconnect);
	assert_says(fails(d, "cm_unlisten", "'service': 'ping'"),
		"there is no service \"ping\"; service_list shows them");
	assert_says(fails(d, "cm_unlisten", "'service': 3"), "there is no service \"3\"");
	assert_says(fails(d, "cm_unlisten", "'service': -1"),
		"allowed: number, or text of 1 to 31 bytes");
}

static void
test_services_are_listed_with_their_counters(void **state)
{
	struct desk *d = *state;
	const json_t *r, *s;

	call(d, "cm_listen", "'kind': 'rping', 'port': 7471");
	call(d, "cm_listen", "'kind': 'memory', 'tcp_port': 18515");
	call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'service': 'rping', 'count': 10");
	r = call(d, "service_list", "'max': 2");
	assert_int_equal(json_array_size(json_object_get(r, "services")), 2);
	s = row(r, "services", 0);
	assert_int_equal(num(s, "service"), 1);
	assert_string_equal(str(s, "state"), "LISTENING");
	assert_int_equal(num(s, "port"), 7471);
	assert_int_equal(num(s, "messages_in"), 5);
	assert_int_equal(num(s, "exchanges"), 0);
	assert_true(json_is_null(json_object_get(s, "connection")));
	s = row(r, "services", 1);
	assert_int_equal(num(s, "tcp_port"), 18515);
	assert_true(json_is_null(json_object_get(s, "service_id")));
	r = call(d, "service_list", "'cursor': %lld", (long long)num(r, "cursor"));
	s = row(r, "services", 0);
	assert_string_equal(str(s, "state"), "ENDED");
	assert_int_equal(num(s, "connection"), 1);
	assert_int_equal(num(s, "exchanges"), 10);
	assert_true(json_is_null(json_object_get(r, "cursor")));
	r = call(d, "service_kinds", "%s", "");
	assert_string_equal(str(row(r, "kinds", 0), "kind"), "memory");
	assert_true(json_is_false(json_object_get(row(r, "kinds", 0), "connects")));
	assert_int_equal(num(row(r, "kinds", 1), "size"), 64);
	assert_true(json_is_null(json_object_get(row(r, "kinds", 1), "length")));
}

static const char *
client_state(struct desk *d)
{
	return str(row(call(d, "service_list", "%s", ""), "services", 0), "state");
}

/* The queue pair rests in TIMEWAIT when the connection has ended already. */
static void
test_a_client_has_ended_from_timewait_on(void **state)
{
	struct desk *d = *state;
	struct engine_service_info *s = &d->e->cm.service[0];

	call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'service': 'rping', 'count': 10");
	s->connections = 1;
	assert_string_equal(client_state(d), "CONNECTED"); /* it is being made */
	s->counters.established = 1;
	s->counters.connections = 1;
	assert_string_equal(client_state(d), "CONNECTED");
	s->counters.connections = 0;
	assert_string_equal(client_state(d), "ENDED");
	s->connections = 0;
	assert_string_equal(client_state(d), "ENDED");
}

/* --- connecting --- */

static void
test_a_connection_driven_by_a_service(void **state)
{
	struct desk *d = *state;
	const struct fake_cm *cm = &d->e->cm;
	const json_t *r;

	r = call(d, "cm_connect",
		"'dgid': '10.0.0.9', 'port': 7471, 'service': 'rping', 'count': 10, 'verify': true, 'size': 100, 'path': '/tmp/a file'");
	assert_true(cm->asked.service_id == 0x0000000001061d2f);
	assert_true(cm->asked.rdma);
	assert_int_equal(cm->ah.port, 0);
	assert_int_equal(cm->ah.sgid_index, 1);
	assert_string_equal(cm->driver.kind, "rping");
	assert_int_equal(cm->driver.count, 10);
	assert_int_equal(cm->driver.size, 100);
	assert_true(cm->driver.verify);
	assert_string_equal(cm->driver.path, "/tmp/a file");
	assert_true(cm->driver.active);
	assert_int_equal(cm->asked.timeout_ms, 20000);
	assert_int_equal(cm->asked.worker, -1);
	assert_true(cm->asked.param.qp.srq == RC_NO_SRQ);
	assert_int_equal(cm->forgotten, 0x50);
	assert_int_equal(num(r, "connection"), 1);
	assert_string_equal(str(r, "service"), "rping");
	assert_int_equal(num(r, "qp_num"), 0x100);
	assert_int_equal(num(r, "remote_qpn"), 0x200);
	assert_int_equal(num(r, "responder_resources"), 4);
	assert_int_equal(num(r, "initiator_depth"), 7);
	assert_int_equal(num(r, "path_mtu"), 1024);
	assert_string_equal(str(r, "private_data"), "dead00");
	assert_int_equal(num(r, "elapsed_us"), 1500);
}

static void
test_a_connection_of_the_callers_own(void **state)
{
	struct desk *d = *state;
	const struct cm_conn_param *p = &d->e->cm.asked.param;

	call(d, "cm_connect",
		"'dgid': '10.0.0.9', 'service_id': '0x1234567890', 'pd': 1, 'send_cq': 2, 'recv_cq': 3, 'max_send_wr': 5, 'srq': 6, 'qp_access_flags': ['REMOTE_READ'], 'private_data': '0102ff', 'responder_resources': 3, 'initiator_depth': 4, 'retry_count': 5, 'rnr_retry_count': 6, 'min_rnr_timer': 14, 'path_mtu': 512, 'packet_life': 14, 'pkey_index': 1, 'timeout_ms': 700, 'worker': 1, 'src_port': 99");
	assert_false(d->e->cm.driven);
	assert_true(d->e->cm.asked.service_id == 0x1234567890);
	assert_false(d->e->cm.asked.rdma);
	assert_int_equal(p->qp.qp_type, QPT_RC);
	assert_int_equal(p->qp.pd, 1);
	assert_int_equal(p->qp.send_cq, 2);
	assert_int_equal(p->qp.recv_cq, 3);
	assert_int_equal(p->qp.srq, 6);
	assert_int_equal(p->qp.cap.max_send_wr, 5);
	assert_int_equal(p->qp.cap.max_recv_wr, 128);
	assert_true(p->qp.flow_control);
	assert_int_equal(p->access, MEM_ACCESS_REMOTE_READ);
	assert_int_equal(p->private_len, 3);
	assert_memory_equal(p->private_data, "\x01\x02\xff", 3);
	assert_int_equal(p->responder_resources, 3);
	assert_int_equal(p->initiator_depth, 4);
	assert_int_equal(p->retry_count, 5);
	assert_int_equal(p->rnr_retry_count, 6);
	assert_int_equal(p->min_rnr_timer, 14);
	assert_int_equal(d->e->cm.asked.path_mtu, 512);
	assert_int_equal(d->e->cm.asked.packet_life, 14);
	assert_int_equal(d->e->cm.asked.pkey_index, 1);
	assert_int_equal(d->e->cm.asked.timeout_ms, 700);
	assert_int_equal(d->e->cm.asked.worker, 1);
	assert_int_equal(d->e->cm.asked.src_port, 99);
	call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 5, 'pd': 1, 'send_cq': 2");
	assert_int_equal(p->qp.recv_cq, 2);
}

/* cm.md 2, 7: 92 bytes, 56 of them behind RDMA-CM's header */
static void
test_private_data_has_the_room_that_the_header_leaves(void **state)
{
	struct desk *d = *state;
	char hex[2 * 93 + 1];

	memset(hex, 'a', sizeof(hex));
	hex[2 * 92] = '\0';
	call(d, "cm_connect",
		"'dgid': '10.0.0.9', 'service_id': 5, 'pd': 1, 'send_cq': 2, 'private_data': '%s'",
		hex);
	assert_int_equal(d->e->cm.asked.param.private_len, 92);
	hex[2 * 57] = '\0';
	assert_says(
		str(call_fails(d, "cm_connect",
			    "'dgid': '10.0.0.9', 'port': 5, 'pd': 1, 'send_cq': 2, 'private_data': '%s'",
			    hex),
			"message"),
		"private_data: got 57 bytes, allowed: 56 behind RDMA-CM's header");
	hex[2 * 56] = '\0';
	call(d, "cm_connect",
		"'dgid': '10.0.0.9', 'port': 5, 'pd': 1, 'send_cq': 2, 'private_data': '%s'", hex);
	assert_int_equal(d->e->cm.asked.param.private_len, 56);
	call(d, "cm_connect",
		"'dgid': '10.0.0.9', 'port': 5, 'rdma_cm': false, 'service': 'rping'");
	assert_false(d->e->cm.asked.rdma);
}

static void
test_what_connect_needs_is_said(void **state)
{
	struct desk *d = *state;

	assert_says(fails(d, "cm_connect", "'port': 1, 'service': 'rping'"),
		"dgid: missing, local port 0 is a RoCE port: give the peer's address");
	assert_says(fails(d, "cm_connect", "'dlid': 5, 'port': 1, 'service': 'rping'"),
		"dlid: got 5, but local port 0 is a RoCE port: give dgid");
	assert_says(fails(d, "cm_connect", "'dgid': '10.0.0.9', 'service': 'rping'"),
		"port, service_id: got none of them: what to connect to there");
	assert_says(fails(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'pd': 1"),
		"service: missing, allowed: a kind of service, or pd and send_cq");
	assert_says(fails(d, "cm_connect",
			    "'dgid': '10.0.0.9', 'port': 1, 'pd': 1, 'service': 'rping'"),
		"pd, send_cq, recv_cq: a service has its own");
	assert_says(
		fails(d, "cm_connect",
			"'dgid': '10.0.0.9', 'port': 1, 'private_data': '00', 'service': 'rping'"),
		"private_data: a service has its own");
	assert_says(fails(d, "cm_connect",
			    "'dgid': '10.0.0.9', 'port': 1, 'local_port': 2, 'service': 'rping'"),
		"local_port: got 2, there are 2, counted from 0");
	assert_says(fails(d, "cm_connect",
			    "'dgid': '10.0.0.9', 'port': 1, 'worker': 2, 'service': 'rping'"),
		"worker: got 2, there are 2");
	call(d, "cm_connect", "'dlid': 5, 'local_port': 1, 'port': 1, 'service': 'rping'");
	assert_int_equal(d->e->cm.ah.dlid, 5);
	assert_int_equal(d->e->cm.ah.port, 1);
	d->e->cm.connect_error = -ENOENT;
	assert_says(fails(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'pd': 1, 'send_cq': 9"),
		"no completion queue 9");
}

static void
test_connect_is_held_until_it_stands(void **state)
{
	struct desk *d = *state;

	d->e->cm.polls = 50;
	call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'service': 'rping'");
	assert_int_equal(d->e->cm.looks, 0);
	assert_true(d->now > 40);
}

/* cm.md 3: reason 8 */
static void
test_a_rejection_is_told_in_words_and_data(void **state)
{
	struct desk *d = *state;
	const json_t *e, *data;

	e = call_fails(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 9000, 'service': 'rping'");
	data = json_object_get(e, "data");
	assert_string_equal(str(e, "message"),
		"rejected: invalid service ID (8): nobody listens there");
	assert_int_equal(num(e, "code"), -ECONNREFUSED);
	assert_string_equal(str(data, "errno"), "ECONNREFUSED");
	assert_int_equal(num(data, "reason"), 8);
	assert_string_equal(str(data, "reason_name"), "invalid service ID");
	assert_string_equal(str(data, "private_data"), "dead00");
	assert_int_equal(d->e->cm.forgotten, 0x50);
	/* one that has no more to say than its name */
	d->e->cm.scripted = true;
	d->e->cm.outcome.info.reason = 13;
	assert_string_equal(fails(d, "cm_connect",
				    "'dgid': '10.0.0.9', 'port': 1, 'service': 'rping'"),
		"rejected: primary LID rejected (13)");
	/* our own REJ, of a REP */
	d->e->cm.outcome.info.end = CM_END_REFUSED;
	d->e->cm.outcome.info.reason = 10;
	assert_string_equal(fails(d, "cm_connect",
				    "'dgid': '10.0.0.9', 'port': 1, 'service': 'rping'"),
		"we rejected the peer's answer: stale connection (10)");
}

static void
test_other_ends_say_what_they_are(void **state)
{
	static const char params[] = "'dgid': '10.0.0.9', 'port': 1, 'service': 'rping'";
	struct desk *d = *state;
	struct engine_cm_outcome *o = &d->e->cm.outcome;
	const json_t *e;

	e = call_fails(d, "cm_connect",
		"'dgid': '10.0.0.9', 'port': 9100, 'service': 'rping', 'timeout_ms': 300");
	assert_string_equal(str(e, "message"),
		"no answer within 300 ms: is a communication manager there, and the address right?");
	assert_int_equal(num(e, "code"), -ETIMEDOUT);
	d->e->cm.scripted = true;
	*o = (struct engine_cm_outcome){ .done = true, .error = -EHOSTUNREACH };
	strcpy(o->why.text, "next hop 10.0.0.9 does not answer ARP");
	e = call_fails(d, "cm_connect", "%s", params);
	assert_string_equal(str(e, "message"), "next hop 10.0.0.9 does not answer ARP");
	assert_int_equal(num(e, "code"), -EHOSTUNREACH);
	*o = (struct engine_cm_outcome){ .done = true, .info.end = CM_END_TIMEOUT };
	e = call_fails(d, "cm_connect", "%s", params);
	assert_string_equal(str(e, "message"), "TIMEOUT: no answer, retries included");
	assert_int_equal(num(e, "code"), -ETIMEDOUT);
	*o = (struct engine_cm_outcome){ .done = true, .info.end = CM_END_QP_ERROR };
	e = call_fails(d, "cm_connect", "%s", params);
	assert_string_equal(str(e, "message"), "QP_ERROR: it ended before it stood");
	assert_int_equal(num(e, "code"), -ECONNABORTED);
}

/* --- connections --- */

/* docs/services.md, "What memory grants" */
static void
test_the_grant_of_a_memory_service_is_decoded(void **state)
{
	static const uint8_t grant[] = { 1, 0x0b, 0, 0, 0x1a, 0x2b, 0x3c, 0x4d, 0, 0, 0, 1, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0x10, 0, 0 };
	struct desk *d = *state;
	struct engine_cm_outcome *o = &d->e->cm.outcome;
	const json_t *r, *m;

	d->e->cm.scripted = true;
	*o = (struct engine_cm_outcome){ .done = true, .established = true, .private_len = 196 };
	memcpy(o->private_data, grant, sizeof(grant));
	r = call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'pd': 1, 'send_cq': 1");
	m = json_object_get(r, "memory");
	assert_non_null(m);
	assert_int_equal(num(m, "rkey"), 0x1a2b3c4d);
	assert_true(num(m, "va") == 0x100000000);
	assert_int_equal(num(m, "length"), 0x100000);
	assert_int_equal(json_array_size(json_object_get(m, "access")), 2);
	assert_true(json_is_true(json_object_get(m, "per_connection")));
	/* what other programs put there is none: text behind it, unknown flags, nothing granted */
	o->private_data[100] = 'x';
	r = call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'pd': 1, 'send_cq': 1");
	assert_null(json_object_get(r, "memory"));
	o->private_data[100] = 0;
	o->private_data[1] = 0x10;
	r = call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'pd': 1, 'send_cq': 1");
	assert_null(json_object_get(r, "memory"));
	o->private_data[1] = 1;
	o->private_data[21] = 0;
	r = call(d, "cm_connect", "'dgid': '10.0.0.9', 'port': 1, 'pd': 1, 'send_cq': 1");
	assert_null(json_object_get(r, "memory"));
}

/* The client's socket closes while its cm_connect is held: nobody would know of the connection. */
static void
test_a_connect_that_nobody_waits_for_is_given_up(void **state)
{
	static const char line[] =
		"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"cm_connect\", \"params\": "
		"{\"dgid\": \"10.0.0.2\", \"port\": 7471, \"service\": \"rping\"}}";
	struct desk *d = *state;
	struct rpc_call *c;

	d->e->cm.polls = 50;
	c = rpc_open(&d->state, line, strlen(line), &(int){ -1 }, d->now);
	assert_int_not_equal(rpc_step(c, d->now), 0);
	assert_int_equal(d->e->cm.disconnected, 0);
	rpc_close(c);
	assert_int_equal(d->e->cm.disconnected, 1);
	assert_int_equal(d->e->cm.forgotten, 0x50);
	/* one that was answered stays */
	d->e->cm.disconnected = 0;
	d->e->cm.polls = 0;
	call(d, "cm_connect", "'dgid': '10.0.0.2', 'port': 7471, 'service': 'rping'");
	assert_int_equal(d->e->cm.disconnected, 0);
}

static void
test_connections_are_listed_in_pages(void **state)
{
	struct desk *d = *state;
	const json_t *r = call(d, "cm_list", "'max': 2"), *c = row(r, "connections", 0);

	assert_int_equal(json_array_size(json_object_get(r, "connections")), 2);
	assert_int_equal(num(c, "connection"), 1);
	assert_string_equal(str(c, "state"), "ESTABLISHED");
	assert_string_equal(str(c, "side"), "ACTIVE");
	assert_string_equal(str(c, "service"), "rping");
	assert_string_equal(str(c, "peer"), "10.0.0.9");
	assert_string_equal(str(c, "service_id"), "0x0000001234567890");
	assert_null(json_object_get(c, "port"));
	assert_int_equal(num(c, "age_us"), 2500000);
	assert_null(json_object_get(c, "end"));
	c = row(r, "connections", 1);
	assert_string_equal(str(c, "side"), "PASSIVE");
	assert_string_equal(str(c, "peer"), "10.0.0.7");
	assert_int_equal(num(c, "port"), 7471);
	assert_true(json_is_null(json_object_get(c, "service")));
	r = call(d, "cm_list", "'cursor': %lld", (long long)num(r, "cursor"));
	c = row(r, "connections", 0);
	assert_string_equal(str(c, "state"), "TIMEWAIT");
	assert_string_equal(str(c, "end"), "REFUSED");
	assert_int_equal(num(c, "reason"), 10);
	assert_string_equal(str(c, "reason_name"), "stale connection");
	assert_string_equal(str(c, "peer"), "lid:5");
	assert_true(json_is_null(json_object_get(r, "cursor")));
}

static void
test_one_connection_is_shown_with_its_paths(void **state)
{
	struct desk *d = *state;
	const json_t *r, *path, *rdma;

	r = call(d, "cm_show", "'connection': 2");
	path = json_object_get(r, "path");
	rdma = json_object_get(r, "rdma_cm");
	assert_int_equal(num(r, "remote_id"), 0xabc);
	assert_string_equal(str(r, "remote_ca_guid"), "0x0002c90300000005");
	assert_int_equal(num(r, "responder_resources"), 4);
	assert_int_equal(num(r, "initiator_depth"), 7);
	assert_int_equal(num(path, "path_mtu"), 1024);
	assert_int_equal(num(path, "packet_life"), 18);
	assert_string_equal(str(path, "pkey"), "0xffff");
	assert_string_equal(str(path, "dgid"), "10.0.0.9");
	assert_int_equal(num(rdma, "src_port"), 40000);
	assert_string_equal(str(rdma, "src"), "10.0.0.7");
	assert_null(json_object_get(r, "alternate"));
	d->e->cm.alternate_of = 2;
	assert_non_null(json_object_get(call(d, "cm_show", "'connection': 2"), "alternate"));
	assert_says(fails(d, "cm_show", "'connection': 4"), "there is no connection 0x00000004");
}

static void
test_disconnect_names_the_connection(void **state)
{
	struct desk *d = *state;

	call(d, "cm_disconnect", "'connection': 3");
	assert_int_equal(d->e->cm.disconnected, 3);
	assert_says(fails(d, "cm_disconnect", "'connection': 4"),
		"there is no connection 0x00000004");
}

static void
test_an_alternate_path_leaves_by_the_connections_port_unless_told(void **state)
{
	struct desk *d = *state;
	const struct engine_ah *ah = &d->e->cm.alternate;

	d->e->qp[0].used = true; /* the connection's */
	d->e->qp[0].attr.port = 1;
	call(d, "cm_load_alternate", "'connection': 1, 'dgid': '10.0.1.9', 'traffic_class': 8");
	assert_int_equal(d->e->cm.alternate_of, 1);
	assert_int_equal(ah->port, 1);
	assert_int_equal(ah->traffic_class, 8);
	call(d, "cm_load_alternate", "'connection': 2, 'dgid': '10.0.0.9', 'local_port': 0");
	assert_int_equal(ah->port, 0);
	assert_true(json_is_true(
		json_object_get(call(d, "cm_load_alternate", "'connection': 2, 'dgid': '10.0.0.9'"),
			"agreed")));
	assert_says(fails(d, "cm_load_alternate", "'connection': 1"),
		"dlid: missing, local port 1 is a native InfiniBand port");
	assert_says(fails(d, "cm_load_alternate", "'connection': 4, 'dgid': '10.0.0.9'"),
		"there is no connection 0x00000004");
}

static void
test_a_peer_that_does_not_agree_is_waited_for_a_second(void **state)
{
	struct desk *d = *state;
	uint64_t start = d->now;
	const json_t *r;

	d->e->qp[0].used = true;
	d->e->cm.disagrees = true;
	r = call(d, "cm_load_alternate", "'connection': 1, 'dgid': '10.0.0.9', 'local_port': 0");
	assert_true(json_is_false(json_object_get(r, "agreed")));
	assert_int_equal(json_array_size(json_object_get(r, "warnings")), 1);
	assert_int_equal(d->now - start, 1000);
}

/* --- counters --- */

static void
test_counters_go_by_message_and_reason(void **state)
{
	struct desk *d = *state;
	const json_t *cm = json_object_get(call(d, "stats_get", "%s", ""), "cm");

	assert_int_equal(num(cm, "connections"), 6);
	assert_int_equal(num(cm, "received_sidr_req"), 8);
	assert_int_equal(num(cm, "received_req"), 0);
	assert_int_equal(num(cm, "sent_rep"), 9);
	assert_int_equal(num(cm, "rej_sent_invalid_service_id"), 2);
	assert_int_equal(num(cm, "rej_received_unknown"), 1);
	assert_null(json_object_get(cm, "rej_sent_no_qp"));
	cm = json_object_get(call(d, "stats_get", "'worker': 1, 'nonzero': true"), "cm");
	assert_int_equal(num(cm, "connections"), 3);
	assert_null(json_object_get(cm, "received_req"));
}

static bool
described(const json_t *list, const char *name)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		if (strcmp(str(v, "name"), name) == 0)
			return str(v, "help")[0] != '\0';
	}
	return false;
}

static void
test_each_counter_is_described(void **state)
{
	struct desk *d = *state;
	json_t *cm = json_incref(json_object_get(call(d, "stats_get", "%s", ""), "cm")), *v;
	const json_t *r = call(d, "stats_describe", "%s", "");
	const char *name;

	json_object_foreach(cm, name, v) {
		if (!described(json_object_get(r, "cm"), name))
			print_error("%s\n", name);
		assert_true(described(json_object_get(r, "cm"), name));
	}
	assert_true(described(json_object_get(r, "services"), "exchanges"));
	json_decref(cm);
}

#define t(test) cmocka_unit_test_setup_teardown(test, cm_setup, desk_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		t(test_a_port_is_one_of_the_tcp_space_unless_told),
		t(test_a_service_gets_its_parameters),
		t(test_an_unknown_kind_names_those_there_are),
		t(test_where_to_listen_is_said_once),
		t(test_names_of_services_differ),
		t(test_a_service_is_ended_by_number_or_name),
		t(test_services_are_listed_with_their_counters),
		t(test_a_client_has_ended_from_timewait_on),
		t(test_a_connection_driven_by_a_service),
		t(test_a_connection_of_the_callers_own),
		t(test_private_data_has_the_room_that_the_header_leaves),
		t(test_what_connect_needs_is_said),
		t(test_connect_is_held_until_it_stands),
		t(test_the_grant_of_a_memory_service_is_decoded),
		t(test_a_connect_that_nobody_waits_for_is_given_up),
		t(test_a_rejection_is_told_in_words_and_data),
		t(test_other_ends_say_what_they_are),
		t(test_connections_are_listed_in_pages),
		t(test_one_connection_is_shown_with_its_paths),
		t(test_disconnect_names_the_connection),
		t(test_an_alternate_path_leaves_by_the_connections_port_unless_told),
		t(test_a_peer_that_does_not_agree_is_waited_for_a_second),
		t(test_counters_go_by_message_and_reason),
		t(test_each_counter_is_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
