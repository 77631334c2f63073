/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Management requests from the control plane (engine_mad_ask()) with the liveness class as example:
 * one packet and many, over RoCE and native IB.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "smp.h"

static int
start_roce(void **state)
{
	node_config();
	*state = node_start();
	return 0;
}

static int
managers_start_ib(void **state)
{
	node_config_ib(true);
	*state = node_start();
	return 0;
}

static int
managers_stop(void **state)
{
	if (*state != NULL)
		node_stop(*state, 0);
	return 0;
}

/* Port 0 towards port 1. */
static struct engine_ah
towards(struct engine *e)
{
	const struct port_attr *peer = link_port_attr(engine_link(e), 1);
	struct engine_ah ah = { .dlid = peer->lid };

	if (!peer->ib)
		ah.dgid = peer->gid[0].gid;
	return ah;
}

static struct live_reply
ping(struct engine *e, const struct live_request *req)
{
	struct engine_ah ah = towards(e);
	struct engine_mad_ask ask = { .ah = &ah, .qpn = 1, .data_offset = LIVE_OFF_TYPE };
	uint8_t *body = malloc(8 + req->len);
	struct engine_mad_answer a;
	struct live_reply reply;
	struct error err = { "" };
	uint32_t id;

	assert_non_null(body);
	ask.many = live_build(req, ask.mad, body) || req->mode == LIVE_MODE_SYSSTAT_CPU;
	if (ask.many && req->mode == LIVE_MODE_ECHO) {
		ask.data = body;
		ask.len = 8 + req->len;
	}
	ask.max_answer = 1 << 20;
	assert_ok(engine_mad_ask(e, &ask, &id, &err));
	free(body); /* the call has copied it */
	do {
		pause_ms(1);
		assert_ok(engine_mad_look(e, id, &a, &err));
	} while (!a.done);
	if (a.end != MAD_END_OK)
		fail_msg("%s, status %s, RMPP %s", mad_end_name(a.end), mad_status_name(a.status),
			rmpp_status_name(a.rmpp_status));
	assert_true(a.has_mad);
	assert_true(a.elapsed_ns > 0);
	if (ask.many)
		live_check(req, a.mad, a.data, a.len, &reply);
	else
		live_check(req, a.mad, a.mad + LIVE_OFF_TYPE, MAD_LEN - LIVE_OFF_TYPE, &reply);
	engine_mad_forget(e, id);
	if (reply.error != NULL)
		fail_msg("%s", reply.error);
	return reply;
}

/* liveness 2: one packet */
static void
test_liveness_request_of_one_packet(void **state)
{
	struct engine *e = *state;
	uint8_t data[LIVE_AREA];
	struct live_request req = {
		.mode = LIVE_MODE_ECHO,
		.identifier = 1,
		.data = data,
		.len = sizeof(data),
	};
	struct live_counters c;

	fill(data, sizeof(data), 3);
	for (req.sequence = 0; req.sequence < 8; req.sequence++)
		assert_int_equal(ping(e, &req).len, LIVE_AREA);
	/* workers take turns; each has its agent */
	engine_live_counters(e, -1, &c);
	assert_int_equal(c.echo, 8);
}

/* liveness 2: requests and answers of many packets */
static void
test_echo_of_many_packets(void **state)
{
	struct engine *e = *state;
	uint8_t *data = malloc(50000);
	struct live_request req = {
		.mode = LIVE_MODE_ECHO,
		.identifier = 1,
		.data = data,
		.len = 50000,
	};
	struct live_counters c;

	assert_non_null(data);
	fill(data, req.len, 3);
	assert_int_equal(ping(e, &req).len, 50000);
	free(data);
	engine_live_counters(e, -1, &c);
	assert_true(c.echo_bytes >= 50000);
}

/* An answer longer than the memory for it is an error. */
static void
test_answer_too_long(void **state)
{
	struct engine *e = *state;
	uint8_t data[4000], body[8 + sizeof(data)];
	struct live_request req = { .mode = LIVE_MODE_ECHO, .data = data, .len = sizeof(data) };
	struct engine_ah ah = towards(e);
	struct engine_mad_ask ask = {
		.ah = &ah,
		.qpn = 1,
		.many = true,
		.data_offset = LIVE_OFF_TYPE,
		.data = body,
		.len = sizeof(body),
	};
	struct engine_mad_answer a;

	fill(data, sizeof(data), 3);
	assert_true(live_build(&req, ask.mad, body));
	ask.max_answer = sizeof(body) - 1;
	a = mad_ask(e, &ask);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_REFUSED));
	assert_int_equal(a.error, -ENOBUFS);
	assert_true(a.len < sizeof(body));
	ask.max_answer = sizeof(body);
	a = mad_ask(e, &ask);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	assert_int_equal(a.len, sizeof(body));
}

/* liveness 2: the clock is set before the first request arrives. */
static void
test_timestamp_is_standard(void **state)
{
	struct engine *e = *state;
	struct live_request req = { .mode = LIVE_MODE_TIMESTAMP, .originate = 4711 };
	struct live_reply r;
	struct timespec ts;
	uint32_t ms, far;

	pause_ms(50);
	r = ping(e, &req);
	assert_int_equal(r.originate, 4711);
	clock_gettime(CLOCK_REALTIME, &ts);
	ms = (uint32_t)(ts.tv_sec % 86400) * 1000 + (uint32_t)(ts.tv_nsec / 1000000);
	far = (ms + LIVE_MS_PER_DAY - r.receive) % LIVE_MS_PER_DAY;
	assert_true(far < 30000 || far > LIVE_MS_PER_DAY - 1000);
	assert_true(r.transmit - r.receive < 30000);
}

/* liveness 2 and 3: the answer identifies port and host. */
static void
test_identity(void **state)
{
	struct engine *e = *state;
	const struct port_attr *peer = link_port_attr(engine_link(e), 1);
	struct live_reply r = ping(e, &(struct live_request){ .mode = LIVE_MODE_LIDGUID });
	char host[128] = "";

	assert_int_equal(r.lid, peer->lid);
	if (peer->ib)
		assert_true(r.guid == peer->guid);
	gethostname(host, sizeof(host) - 1);
	r = ping(e, &(struct live_request){ .mode = LIVE_MODE_IBPING });
	assert_memory_equal(r.text, host, strlen(host));
}

/* Bad requests are refused with a reason. */
static void
test_bad_requests_are_refused(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = towards(e);
	struct engine_mad_ask ask = { .ah = &ah, .qpn = 1 };
	struct error err = { "" };
	uint32_t id;

#define REFUSED(change, says)                                                                      \
	do {                                                                                       \
		ah = towards(e);                                                                   \
		ask = (struct engine_mad_ask){ .ah = &ah, .qpn = 1 };                              \
		change;                                                                            \
		assert_int_equal(engine_mad_ask(e, &ask, &id, &err), -EINVAL);                     \
		assert_string_equal(err.text, says);                                               \
	} while (0)
	REFUSED(ah.port = 7, "port: got 7, there are 2 ports from 0 on");
	REFUSED(ask.qpn = 2, "qpn: got 2, managers have 0 and 1");
	REFUSED(ask.pkey_index = 5, "pkey_index: got 5, which holds no P_Key of port0");
	REFUSED(ah.dlid = 0,
		"dlid: missing: port0 is a native InfiniBand port, where a "
		"GID alone leads nowhere: give the peer's LID");
	REFUSED(ah.dlid = 0xFFFF, "dlid: got 0xffff, which is for SMPs");
	REFUSED(ah.dlid = 0xFFFE, "dlid: got 0xfffe, a multicast LID, expected 0x0001 to 0xbfff");
	REFUSED(ah.dlid = 0xC000, "dlid: got 0xc000, a multicast LID, expected 0x0001 to 0xbfff");
	REFUSED(ah.sl = 16, "sl: got 16, expected 0 to 15");
	REFUSED(ah.src_path_bits = 1, "src_path_bits: got 1, port0 has 2^0 LIDs");
	REFUSED((ask.qpn = 0, ah.dlid = 0xC000), "dlid: got 0xc000, expected 0x0001 to 0xbfff");
#undef REFUSED
}

/* The number of requests is limited; one that is forgotten makes room for another. */
static void
test_number_of_requests_is_limited(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = { .dlid = 0x99 };
	struct engine_mad_ask ask = { .ah = &ah, .qpn = 1, .timeout_ms = 100000 };
	struct engine_mad_answer a;
	uint32_t id[ENGINE_MAD_ASKS], one_more;
	struct error err = { "" };
	unsigned int i;

	smp_head(ask.mad, LIVE_CLASS_IBPING, MAD_GET, 0, 0);
	for (i = 0; i < ENGINE_MAD_ASKS; i++)
		assert_ok(engine_mad_ask(e, &ask, &id[i], &err));
	assert_int_equal(engine_mad_ask(e, &ask, &one_more, &err), -ENOSPC);
	assert_string_equal(err.text, "there are 64 requests under way already: wait");
	assert_ok(engine_mad_look(e, id[5], &a, &err));
	assert_false(a.done);
	engine_mad_forget(e, id[5]);
	assert_ok(engine_mad_ask(e, &ask, &one_more, &err));
	assert_int_equal(engine_mad_look(e, id[5], &a, &err), -ENOENT);
	assert_ok(engine_mad_look(e, one_more, &a, &err));
	/* the others end with the engine */
}

/* A Send has no answer: it is done when it has left. */
static void
test_send_needs_no_answer(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = towards(e);
	struct engine_mad_ask ask = { .ah = &ah, .qpn = 1, .no_answer = true };
	struct engine_mad_answer a;

	smp_head(ask.mad, LIVE_CLASS_IBPING, MAD_SEND, 0, 0);
	a = mad_ask(e, &ask);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	assert_false(a.has_mad);
}

/* --- performance management --- */

#define PORT_COUNTERS     0x0012
#define PORT_COUNTERS_EXT 0x001D

/* Ask port 1 for the counters of a port number. */
static struct engine_mad_answer
ask_counters(struct engine *e, uint16_t attribute, uint8_t port)
{
	struct engine_ah ah = towards(e);
	struct engine_mad_ask ask = { .ah = &ah, .qpn = 1 };

	smp_head(ask.mad, 0x04, MAD_GET, attribute, 0);
	ask.mad[64 + 1] = port;
	return mad_ask(e, &ask);
}

static void
expect_between(uint64_t value, uint64_t low, uint64_t high)
{
	assert_true(value >= low);
	assert_true(value <= high);
}

/* pma.md 3: packets of a port, and octets / 4 without the framing. */
static void
test_performance_counters(void **state)
{
	struct engine *e = *state;
	struct link_counters before, after;
	struct live_request echo = { .mode = LIVE_MODE_ECHO };
	struct engine_mad_answer a;
	const uint8_t *data = a.mad + 64;

	ping(e, &echo);
	engine_port_counters(e, 1, -1, &before);
	a = ask_counters(e, PORT_COUNTERS, 2);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	engine_port_counters(e, 1, -1, &after);
	assert_int_equal(data[1], 2);
	expect_between(get_be32(data + 32), before.tx_packets, after.tx_packets);
	expect_between(get_be32(data + 36), before.rx_packets, after.rx_packets);
	assert_true(get_be32(data + 36) >= 1);
	/* a MAD has 256 bytes, and its headers have fewer than 100 */
	expect_between(4ull * get_be32(data + 28), 256 * before.rx_packets, 356 * after.rx_packets);
	assert_int_equal(get_be16(data + 8), 0); /* errors */
	assert_int_equal(get_be16(data + 14), 0); /* discards */
	assert_int_equal(data[7], 0); /* the link has not gone down */
	a = ask_counters(e, PORT_COUNTERS_EXT, 2);
	engine_port_counters(e, 1, -1, &after);
	expect_between(get_be64(data + 24), before.tx_packets, after.tx_packets);
	expect_between(get_be64(data + 32), before.rx_packets + 1, after.rx_packets);
	expect_between(get_be64(data + 48), before.rx_packets + 1, after.rx_packets); /* unicast */
	assert_int_equal(get_be64(data + 64), 0); /* multicast */
	a = ask_counters(e, PORT_COUNTERS, 3); /* only ports 1 and 2 exist */
	assert_int_equal(a.status, 0x001C);
}

#define ROCE(t)                                                                                    \
	{                                                                                          \
#t " over RoCE", t, start_roce, managers_stop, NULL                                \
	}
#define IB(t)                                                                                      \
	{                                                                                          \
#t " over IB", t, managers_start_ib, managers_stop, NULL                           \
	}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_liveness_request_of_one_packet),
		IB(test_liveness_request_of_one_packet),
		ROCE(test_echo_of_many_packets),
		IB(test_echo_of_many_packets),
		IB(test_answer_too_long),
		ROCE(test_timestamp_is_standard),
		ROCE(test_identity),
		IB(test_identity),
		IB(test_bad_requests_are_refused),
		IB(test_number_of_requests_is_limited),
		IB(test_send_needs_no_answer),
		ROCE(test_send_needs_no_answer),
		ROCE(test_performance_counters),
		IB(test_performance_counters),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
