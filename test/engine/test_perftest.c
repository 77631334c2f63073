/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The test acts as a perftest client: it exchanges messages over TCP with an engine's service and
 * uses the QP that the service makes. The service is on port 0, the client's QP on port 1. The
 * engine reads the sockets on a thread of its own; the test is also its control thread.
 */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_cycles.h>

#include "engine/perftest.h"
#include "engine/verbs_cm.h"
#include "node.h"
#include "wire/opcode.h"

#define QPS_MAX 128

static uint16_t tcp_port;

/* @return a TCP port that is not in use */
static uint16_t
free_port(void)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	close(fd);
	return ntohs(addr.sin6_port);
}

static uint32_t
listen_on(struct engine *e, uint16_t port)
{
	struct svc_config c = {
		.kind = "perftest",
		.tcp_port = port,
		.tcp_any_gid = true,
		.max_connections = QPS_MAX,
	};
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_cm_listen(e, &c, &id, &err));
	return id;
}

static uint32_t service;

static int
perftest_start(void **state)
{
	node_config();
	*state = node_start();
	tcp_port = free_port();
	service = listen_on(*state, tcp_port);
	return 0;
}

static int
perftest_start_ib(void **state)
{
	node_config_ib(true);
	*state = node_start();
	ports_up(*state);
	tcp_port = free_port();
	service = listen_on(*state, tcp_port);
	return 0;
}

static int
perftest_stop(void **state)
{
	node_stop(*state, 0);
	return 0;
}

/*
 * Let the exchange's thread, and this one for its questions, handle what has come. A call of that
 * thread returns in a later turn of its event loop than the one before.
 */
static void
perftest_settle(struct engine *e)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		perftest_unlisten(e, ENGINE_SERVICE_PLACES - 1,
			false); /* a place without a service */
		event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	}
}

/* --- a client's socket --- */

/* Connect from 127.0.x.y, where @p from is 0xXXYY. */
static int
perftest_dial_from(uint16_t from)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(tcp_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_in source = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xFFFFu) | from),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&source, sizeof(source)), 0);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int
perftest_dial(void)
{
	return perftest_dial_from(1);
}

/*
 * Read up to len bytes while the engine runs. @return number of bytes until the end of the stream
 */
static size_t
engine_perftest_hear(struct engine *e, int fd, void *buf, size_t len)
{
	size_t got = 0;
	ssize_t n;
	int ms;

	for (ms = 0; ms < 30000 && got < len; ms++) {
		event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
		n = recv(fd, (char *)buf + got, len - got, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			break;
		if (n > 0)
			got += (size_t)n;
		else
			pause_ms(1);
	}
	assert_true(ms < 30000);
	return got;
}

static void
perftest_say(struct engine *e, int fd, const void *message, size_t len, void *answer,
	size_t answer_len)
{
	assert_int_equal(send(fd, message, len, MSG_NOSIGNAL), len);
	assert_int_equal(engine_perftest_hear(e, fd, answer, answer_len), answer_len);
}

static void
expect_end(struct engine *e, int fd)
{
	uint8_t byte;

	assert_int_equal(engine_perftest_hear(e, fd, &byte, 1), 0);
	close(fd);
}

/* Exchange version, cycle buffer, cache line and a path MTU of 1024. @return the socket */
static int
perftest_greet_from(struct engine *e, uint16_t from)
{
	static const uint8_t version[16] = "6.06", cycle[4] = { 0, 0, 0x10, 0 },
			     line[4] = { [3] = 64 };
	uint8_t answer[16];
	int fd = perftest_dial_from(from);

	assert_true(fd >= 0);
	perftest_say(e, fd, version, 16, answer, 16);
	assert_memory_equal(answer, version, 16);
	perftest_say(e, fd, cycle, 4, answer, 4);
	perftest_say(e, fd, line, 4, answer, 4);
	perftest_say(e, fd, "3", 2, answer, 2);
	assert_memory_equal(answer, "5", 2); /* our path MTU, 4096 */
	return fd;
}

static int
perftest_greet(struct engine *e)
{
	return perftest_greet_from(e, 1);
}

/* A description of our QP, with the PSNs that end_connect() uses. */
static struct perftest_dest
dest_of(const struct engine *e, uint32_t qpn)
{
	const struct port_attr *port =
		link_port_attr(engine_link((struct engine *)(uintptr_t)e), 1);
	struct perftest_dest d = {
		.lid = port->lid,
		.out_reads = 4,
		.qpn = qpn,
		.psn = 0xFFFFF0,
		.has_gid = !port->ib,
		.gid = port->gid[0].gid,
	};

	return d;
}

static struct perftest_dest
perftest_tell(struct engine *e, int fd, const struct perftest_dest *theirs)
{
	uint8_t text[PERFTEST_TEXT], answer[PERFTEST_TEXT];
	struct perftest_dest ours;
	size_t len = perftest_text_write(theirs, text);

	perftest_say(e, fd, text, len, answer, len);
	assert_true(perftest_text_read(answer, len, &ours));
	return ours;
}

static void
perftest_expect_refused(struct engine *e, const struct perftest_dest *theirs)
{
	uint8_t text[PERFTEST_TEXT];
	int fd = perftest_greet(e);
	size_t len = perftest_text_write(theirs, text);

	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
	expect_end(e, fd);
}

/* Count QPs in the workers' tables, as verbs list only those of callers. */
static unsigned int
perftest_num_qps(struct engine *e)
{
	struct worker_info w;
	unsigned int i, n = 0;

	for (i = 0; i < engine_workers(e); i++) {
		engine_worker_info(e, i, &w);
		n += w.qps;
	}
	return n;
}

/* --- a client and its queue pair --- */

static void
perftest_use_memory(struct engine *e, struct end *end, const struct perftest_dest *ours)
{
	struct end there = { .qpn = ours->qpn, .mr = { .key = ours->rkey, .va = ours->va } };

	end_connect(e, end, 1, &there);
	fill(end->mr.base, 30000, 7);
	assert_int_equal(post(e, end, WR_RDMA_WRITE, &there, 0, 0, 30000, 1), 1);
	expect_wc(e, end, 1);
	assert_int_equal(post(e, end, WR_RDMA_READ, &there, 100000, 0, 30000, 2), 1);
	expect_wc(e, end, 1);
	assert_memory_equal(end->mr.base, end->mr.base + 100000, 30000);
}

/* A complete run of ib_write_bw: QP, memory, report, end. */
static void
test_client_gets_a_queue_pair(void **state)
{
	/* 65536 bytes; our report is all zero */
	static const uint8_t number[8] = { [5] = 1 }, zero[8];
	struct perftest_dest theirs, ours, again;
	struct engine *e = *state;
	uint8_t answer[8];
	struct end end;
	unsigned int i;
	int fd;

	end_create(e, &end, -1);
	fd = perftest_greet(e);
	theirs = dest_of(e, end.qpn);
	ours = perftest_tell(e, fd, &theirs);
	assert_int_equal(perftest_num_qps(e), 2);
	assert_int_equal(ours.lid, link_port_attr(engine_link(e), 0)->lid);
	assert_int_equal(ours.out_reads, 4); /* limited by the client */
	if (!link_port_attr(engine_link(e), 0)->ib)
		assert_memory_equal(ours.gid.raw, link_port_attr(engine_link(e), 0)->gid[0].gid.raw,
			16);
	perftest_use_memory(e, &end, &ours);
	/* a client describes its QP before and after each test: it gets the same QP */
	again = perftest_tell(e, fd, &theirs);
	assert_int_equal(again.qpn, ours.qpn);
	assert_int_equal(again.psn, ours.psn);
	assert_int_equal(perftest_num_qps(e), 2);
	for (i = 0; i < 5; i++) {
		perftest_say(e, fd, number, 8, answer, 8);
		assert_memory_equal(answer, zero, 8);
	}
	perftest_say(e, fd, "done", 5, answer, 5);
	assert_memory_equal(answer, "done", 5);
	expect_end(e, fd);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 1);
	end_destroy(e, &end);
}

/* With -q a client has several QPs; they are spread over the workers. */
static void
test_queue_pairs_of_a_client(void **state)
{
	struct perftest_dest theirs, first, second;
	struct engine *e = *state;
	struct worker_info w;
	unsigned int i;
	int fd = perftest_greet(e);

	theirs = dest_of(e, 0x100);
	first = perftest_tell(e, fd, &theirs);
	theirs.qpn = 0x101;
	second = perftest_tell(e, fd, &theirs);
	assert_int_not_equal(first.qpn, second.qpn);
	for (i = 0; i < 2; i++) {
		engine_worker_info(e, i, &w);
		assert_int_equal(w.qps, 1);
	}
	/* they are destroyed when the socket is closed */
	close(fd);
	eventually(
		(event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK), perftest_num_qps(e) == 0));
}

static void
test_at_most_64_queue_pairs_per_client(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0);
	uint8_t text[PERFTEST_TEXT];
	int fd = perftest_greet(e);

	for (theirs.qpn = 1; theirs.qpn <= 64; theirs.qpn++)
		perftest_tell(e, fd, &theirs);
	assert_int_equal(perftest_num_qps(e), 64);
	assert_int_equal(send(fd, text, perftest_text_write(&theirs, text), MSG_NOSIGNAL),
		PERFTEST_TEXT);
	expect_end(e, fd);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 0);
}

/* Refused: no port with such an address, a native IB port, no neighbour. */
static void
test_unreachable_client_is_refused(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);

	theirs.lid = 5;
	perftest_expect_refused(e, &theirs);
	theirs.lid = 0;
	theirs.has_gid = false;
	perftest_expect_refused(e, &theirs);
	theirs.has_gid = true;
	assert_true(gid_parse("10.77.0.9", &theirs.gid));
	perftest_expect_refused(e, &theirs);
	assert_int_equal(perftest_num_qps(e), 0);
}

/* A third port, behind which nobody answers. */
static int
perftest_start_with_a_hole(void **state)
{
	struct engine_config *c = node_config();
	struct link_port_config *p = &c->link.port[c->link.num_ports++];

	*p = c->link.port[0];
	strcpy(p->name, "hole");
	strcpy(p->device, "net_null0");
	p->back_to_back[0] = '\0';
	p->num_addr = 1;
	assert_true(gid_parse("198.51.100.1", &p->addr[0].gid));
	*state = node_start();
	tcp_port = free_port();
	service = listen_on(*state, tcp_port);
	return 0;
}

/* @return number of next hops behind the third port */
static unsigned int
perftest_hole_neighbours(struct engine *e)
{
	struct link_neighbour_info info;
	unsigned int n = 0;
	uint32_t cursor = 0;

	engine_watch(e);
	while (link_neighbour_next(engine_link(e), &cursor, &info))
		n += info.port == 2;
	return n;
}

static void
perftest_hang_up(struct engine *e, int fd)
{
	unsigned int qps = perftest_num_qps(e);

	close(fd);
	eventually((event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK),
		perftest_num_qps(e) < qps));
}

/* One client names address after address that nobody answers for. */
static void
test_client_that_names_nobody_is_refused(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	unsigned int i;
	int fd, other;

	assert_true(gid_parse("198.51.100.2", &theirs.gid));
	fd = perftest_greet(e);
	perftest_tell(e, fd, &theirs);
	for (i = 1; i < 16; i++) {
		theirs.gid.raw[15]++;
		other = perftest_greet(e);
		perftest_tell(e, other, &theirs);
		perftest_hang_up(e, other);
	}
	theirs.gid.raw[15]++;
	perftest_expect_refused(e, &theirs);
	/* only the first has a queue pair that uses it */
	eventually(perftest_hole_neighbours(e) == 1);
	other = perftest_greet(e);
	perftest_tell(e, other, &theirs);
	perftest_hang_up(e, other);
	perftest_hang_up(e, fd);
}

/* --- the thread --- */

enum { STRANGERS = 2000 };

/* Read, while the control thread does nothing. @param want  bytes until the end of the stream */
static void
hear_only(int fd, void *buf, size_t len, size_t want)
{
	const struct timeval patience = { .tv_sec = 30 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(recv(fd, buf, len, MSG_WAITALL), want);
}

/* The control thread, which is this one, does nothing: strangers are turned away, others served. */
static void
test_strangers_do_not_need_the_control_thread(void **state)
{
	static const uint8_t version[16] = "6.06", cycle[4] = { 0, 0, 0x10, 0 };
	uint8_t answer[16];
	unsigned int i;
	int fd;

	(void)state;
	for (i = 0; i < STRANGERS; i++) {
		fd = perftest_dial_from((uint16_t)(2 + i % 200));
		assert_true(fd >= 0);
		assert_int_equal(send(fd, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
		hear_only(fd, answer, 1, 0);
		close(fd);
	}
	fd = perftest_dial();
	assert_int_equal(send(fd, version, 16, MSG_NOSIGNAL), 16);
	hear_only(fd, answer, 16, 16);
	assert_memory_equal(answer, version, 16);
	assert_int_equal(send(fd, cycle, 4, MSG_NOSIGNAL), 4);
	hear_only(fd, answer, 4, 4);
	close(fd);
}

/* A client that waits for its queue pair, or has gone, keeps no other one waiting. */
static void
test_question_keeps_nobody_waiting(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	uint8_t text[PERFTEST_TEXT], answer[PERFTEST_TEXT];
	static const uint8_t version[16] = "6.06";
	size_t len = perftest_text_write(&theirs, text);
	int asks = perftest_greet(e), gone = perftest_greet(e), other = perftest_dial();

	assert_int_equal(send(asks, text, len, MSG_NOSIGNAL), len);
	assert_int_equal(send(gone, text, len, MSG_NOSIGNAL), len);
	close(gone);
	assert_int_equal(send(other, version, 16, MSG_NOSIGNAL), 16);
	hear_only(other, answer, 16, 16);
	assert_int_equal(perftest_num_qps(e), 0);
	assert_int_equal(engine_perftest_hear(e, asks, answer, len), len);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 1);
	close(other);
	perftest_hang_up(e, asks);
}

/* On the exchange's thread, whose event loop keeps the time. */
static int
perftest_set_patience(struct perftest_sockets *t, void *patience)
{
	t->patience = *(const struct timeval *)patience;
	return 0;
}

/* @return number of sessions that wait for an answer and watch their time */
static int
perftest_clocks(struct perftest_sockets *t, void *arg)
{
	unsigned int i;
	int n = 0;

	(void)arg;
	for (i = 0; i < PERFTEST_PLACES; i++)
		n += t->session[i].used && evtimer_pending(t->session[i].late, NULL);
	return n;
}

/*
 * The control thread, which is this one, does nothing: a client that waits for its queue pair is
 * closed in time, by no deadline that the control thread watches. It gets no queue pair later.
 */
static void
test_unanswered_question_ends_a_session(void **state)
{
	struct timeval soon = { .tv_usec = 1000 }, usual = { .tv_sec = PERFTEST_ANSWER_S };
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	uint8_t text[PERFTEST_TEXT], answer[PERFTEST_TEXT];
	size_t len = perftest_text_write(&theirs, text);
	int late = perftest_greet(e), again;

	perftest_call(e->perftest, perftest_set_patience, &soon);
	assert_int_equal(send(late, text, len, MSG_NOSIGNAL), len);
	hear_only(late, answer, 1, 0);
	close(late);
	perftest_call(e->perftest, perftest_set_patience, &usual);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 0);
	/* an answer in time stops the clock */
	again = perftest_greet(e);
	assert_int_equal(send(again, text, len, MSG_NOSIGNAL), len);
	eventually(perftest_call(e->perftest, perftest_clocks, NULL) == 1);
	assert_int_equal(engine_perftest_hear(e, again, answer, len), len);
	assert_int_equal(perftest_call(e->perftest, perftest_clocks, NULL), 0);
	assert_int_equal(perftest_num_qps(e), 1);
	perftest_hang_up(e, again);
}

/* The service ends while two questions wait: no queue pair of it is opened later. */
static void
test_unlisten_with_questions(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	struct error err = { "" };
	uint8_t text[PERFTEST_TEXT];
	size_t len = perftest_text_write(&theirs, text);
	int first = perftest_greet(e), second = perftest_greet(e);

	perftest_tell(e, first, &theirs);
	assert_int_equal(send(first, text, len, MSG_NOSIGNAL), len);
	assert_int_equal(send(second, text, len, MSG_NOSIGNAL), len);
	assert_ok(engine_cm_unlisten(e, service, true, &err));
	assert_int_equal(perftest_num_qps(e), 0);
	expect_end(e, first);
	expect_end(e, second);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 0);
}

/* Read a file of a thread in /proc. @return false: there is no such thread any more */
static bool
read_of_thread(const char *tid, const char *file, char *text, size_t size)
{
	char path[300];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, file);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
	return true;
}

/* The thread that reads strangers' bytes may do nothing to the host, and gets no signal. */
static void
test_thread_has_no_capabilities(void **state)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int found = 0;
	struct dirent *d;
	char text[8192];

	(void)state;
	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL) {
		if (!read_of_thread(d->d_name, "comm", text, sizeof(text)) ||
			strcmp(text, "polca-perftest\n") != 0)
			continue;
		found++;
		assert_true(read_of_thread(d->d_name, "status", text, sizeof(text)));
		assert_non_null(strstr(text, "\nCapInh:\t0000000000000000\n"));
		assert_non_null(strstr(text, "\nCapPrm:\t0000000000000000\n"));
		assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
		assert_non_null(strstr(text, "\nSigBlk:\tfffffff"));
	}
	closedir(dir);
	assert_int_equal(found, 1);
}

/* --- sockets --- */

static void
test_malformed_message_ends_a_session(void **state)
{
	static const uint8_t old[16] = "5.69";
	struct engine *e = *state;
	int fd = perftest_dial();

	assert_int_equal(send(fd, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
	expect_end(e, fd);
	fd = perftest_dial();
	assert_int_equal(send(fd, old, 16, MSG_NOSIGNAL), 16);
	expect_end(e, fd);
	fd = perftest_greet(e);
	assert_int_equal(send(fd, "dome", 5, MSG_NOSIGNAL), 5);
	expect_end(e, fd);
}

/* A client has 10 s to announce a queue pair; then it may take its time. */
static void
test_silent_client_is_closed(void **state)
{
	static const uint8_t version[16] = "6.06";
	struct engine *e = *state;
	uint64_t now = rte_get_tsc_cycles();
	int silent = perftest_dial(), slow = perftest_dial(), greeted, announced;
	struct perftest_dest theirs = dest_of(e, 0x100);
	uint8_t answer[16];

	perftest_say(e, slow, version, 16, answer, 16);
	greeted = perftest_greet(e);
	announced = perftest_greet(e);
	perftest_tell(e, announced, &theirs);
	perftest_watch(e, now + 9 * e->hz);
	perftest_settle(e);
	assert_int_equal(recv(silent, answer, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	perftest_watch(e, rte_get_tsc_cycles() + 10 * e->hz + 1);
	expect_end(e, silent);
	expect_end(e, slow);
	expect_end(e, greeted);
	theirs.qpn++;
	perftest_tell(e, announced, &theirs);
	close(announced);
}

/* True if the connection is open and nothing came. */
static bool
perftest_is_open(int fd)
{
	uint8_t byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

/* A client with a queue pair goes on while packets come to it, but not for ever without them. */
static void
test_quiet_client_is_closed(void **state)
{
	struct engine *e = *state;
	uint64_t begun = rte_get_tsc_cycles(), now, second = e->hz;
	struct perftest_dest theirs, ours;
	struct end end;
	int fd, quiet;

	end_create(e, &end, -1);
	fd = perftest_greet(e);
	theirs = dest_of(e, end.qpn);
	ours = perftest_tell(e, fd, &theirs);
	quiet = perftest_greet(e);
	theirs.qpn++;
	perftest_tell(e, quiet, &theirs);
	perftest_use_memory(e, &end, &ours);
	perftest_watch(e, begun + 59 * second);
	perftest_settle(e);
	assert_true(perftest_is_open(quiet));
	now = rte_get_tsc_cycles() + 60 * second;
	perftest_watch(e, now);
	expect_end(e, quiet);
	assert_true(perftest_is_open(fd));
	/* no packet since then */
	perftest_watch(e, now + 59 * second);
	perftest_settle(e);
	assert_true(perftest_is_open(fd));
	perftest_watch(e, now + 60 * second);
	expect_end(e, fd);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 1);
	end_destroy(e, &end);
}

/* What the engine logs until end_log(). */
static struct {
	FILE *file;
	char *text;
	size_t size;
} told;

static void
begin_log(void)
{
	told.file = open_memstream(&told.text, &told.size);
	assert_non_null(told.file);
	rte_openlog_stream(told.file);
}

static void
end_log(void)
{
	rte_openlog_stream(NULL);
	fclose(told.file);
}

/* How many lines have this text. */
static unsigned int
told_lines(const char *text)
{
	const char *at = told.text;
	unsigned int n = 0;

	for (; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

/* Whoever proved an address by TCP gets packets sent there, and to no other. */
static void
test_gid_of_another_is_refused(void **state)
{
	struct engine *e = *state;
	struct svc_config c = { .kind = "perftest", .max_connections = QPS_MAX };
	struct perftest_dest theirs = dest_of(e, 0x100);
	struct error err = { "" };
	uint32_t id;

	c.tcp_port = tcp_port = free_port();
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	perftest_expect_refused(e, &theirs);
	assert_int_equal(perftest_num_qps(e), 0);
}

/* TCP proves no LID: a client that names one could have packets sent to any port of the subnet. */
static void
test_lid_of_anybody_is_refused(void **state)
{
	struct engine *e = *state;
	struct svc_config c = { .kind = "perftest", .max_connections = QPS_MAX };
	struct perftest_dest theirs = dest_of(e, 0x100);
	struct error err = { "" };
	uint32_t id;

	assert_int_not_equal(theirs.lid, 0);
	c.tcp_port = tcp_port = free_port();
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	begin_log();
	perftest_expect_refused(e, &theirs);
	end_log();
	assert_int_equal(told_lines("its LID 2: TCP proves no LID (tcp_any_gid admits any)"), 1);
	free(told.text);
	assert_int_equal(perftest_num_qps(e), 0);
}

/* The engine notes that this address has guessed a key; once is too often. */
static void
guess_a_key(struct engine *e, const union gid *addr)
{
	const struct event ev = {
		.type = EVENT_QP_ERROR,
		.failure = { .peer = *addr, .verdict = VERDICT_NAK_SENT,
			.syndrome = AETH_NAK_REMOTE_ACCESS, },
	};

	e->config.key_errors = 1;
	e->config.key_error_pause_s = 60;
	key_guessers_count(e, &ev);
}

/* Who guesses keys gets no new queue pair by TCP either: by its QP's address, or by TCP's. */
static void
test_paused_address_gets_no_queue_pair(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	union gid tcp;
	int fd = perftest_greet(e);

	perftest_tell(e, fd, &theirs);
	guess_a_key(e, &theirs.gid);
	begin_log();
	perftest_expect_refused(e, &theirs);
	end_log();
	assert_int_equal(told_lines("it has used wrong keys too often: try again later"), 1);
	free(told.text);
	assert_true(gid_parse("127.0.0.2", &tcp));
	guess_a_key(e, &tcp);
	theirs.gid = link_port_attr(engine_link(e), 1)->gid[1].gid;
	assert_false(gid_is_zero(&theirs.gid));
	perftest_hang_up(e, fd);
	fd = perftest_greet(e);
	perftest_tell(e, fd, &theirs); /* from 127.0.0.1 */
	perftest_hang_up(e, fd);
	assert_true(gid_parse("127.0.0.1", &tcp));
	guess_a_key(e, &tcp);
	perftest_expect_refused(e, &theirs);
}

/* The client's port is in one partition, ours in two, of which the default is the first. */
static int
perftest_start_in_a_partition(void **state)
{
	struct engine_config *c = node_config();

	c->link.port[0].pkeys[0] = 0xFFFF;
	c->link.port[0].pkeys[1] = 0x8001;
	c->link.port[0].num_pkeys = 2;
	c->link.port[1].pkeys[0] = 0x8001;
	c->link.port[1].num_pkeys = 1;
	*state = node_start();
	return 0;
}

/* TCP has no partition: the queue pair is in one that the allow list names, or there is none. */
static void
test_queue_pair_is_in_an_allowed_partition(void **state)
{
	struct svc_config c = {
		.kind = "perftest",
		.max_connections = QPS_MAX,
		.tcp_any_gid = true,
		.allow = { .pkey = { 0x8001 }, .num_pkeys = 1 },
	};
	struct engine *e = *state;
	struct error err = { "" };
	struct perftest_dest theirs, ours;
	struct end end;
	uint32_t id;
	int fd;

	end_create(e, &end, -1);
	theirs = dest_of(e, end.qpn);
	c.tcp_port = tcp_port = free_port();
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	fd = perftest_greet(e);
	ours = perftest_tell(e, fd, &theirs);
	perftest_use_memory(e, &end, &ours);
	perftest_hang_up(e, fd);
	end_destroy(e, &end);
	c.allow.pkey[0] = 0x8002;
	c.tcp_port = tcp_port = free_port();
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	perftest_expect_refused(e, &theirs);
	assert_int_equal(perftest_num_qps(e), 0);
}

static void
test_address_to_listen_on(void **state)
{
	struct engine *e = *state;
	struct svc_config c = { .kind = "perftest", .max_connections = 1 };
	struct error err = { "" };
	uint32_t id;
	int fd;

	c.tcp_port = tcp_port = free_port();
	strcpy(c.tcp_address, "127.0.0.9");
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	assert_int_equal(perftest_dial(), -1); /* to 127.0.0.1 */
	strcpy(c.tcp_address, "127.0.0.1");
	assert_ok(engine_cm_listen(e, &c, &id, &err));
	fd = perftest_dial();
	assert_true(fd >= 0);
	close(fd);
	strcpy(c.tcp_address, "localhost");
	assert_int_equal(engine_cm_listen(e, &c, &id, &err), -EINVAL);
	assert_string_equal(err.text,
		"tcp_address: got \"localhost\", allowed: an IPv4 or IPv6 address of this host");
}

static void
test_at_most_64_sessions(void **state)
{
	static const uint8_t version[16] = "6.06";
	struct engine *e = *state;
	uint8_t answer[16];
	struct perftest_dest theirs = dest_of(e, 0x100);
	int fd[64], one_more;
	unsigned int i;

	/* an address has 16 of them */
	for (i = 0; i < 64; i++) {
		if (i > 0 && i % 16 == 0) {
			one_more = perftest_dial_from((uint8_t)(i / 16));
			expect_end(e, one_more);
		}
		fd[i] = perftest_dial_from((uint8_t)(1 + i / 16));
		perftest_say(e, fd[i], version, 16, answer, 16);
	}
	/* of the 64, none has announced a queue pair: the oldest gives way */
	one_more = perftest_greet_from(e, 99);
	expect_end(e, fd[0]);
	perftest_tell(e, one_more, &theirs);
	/* and then the oldest of an address that has 16, not of the one that has 15 */
	fd[0] = perftest_dial_from(98);
	perftest_say(e, fd[0], version, 16, answer, 16);
	expect_end(e, fd[16]);
	/* one with a queue pair stays */
	for (i = 0; i < 64; i++)
		if (i != 16)
			close(fd[i]);
	assert_int_equal(perftest_num_qps(e), 1);
	perftest_hang_up(e, one_more);
}

/* Fill all sessions with clients that have a queue pair, so many of each address. */
static void
fill_sessions(struct engine *e, int fd[64], unsigned int of_each)
{
	struct perftest_dest theirs = dest_of(e, 0);
	unsigned int i;

	for (i = 0; i < 64; i++) {
		fd[i] = perftest_greet_from(e, (uint16_t)(1 + i / of_each));
		theirs.qpn = i + 1;
		perftest_tell(e, fd[i], &theirs);
	}
}

/* A client with a queue pair gives way, too, if its address has more than that of the new one. */
static void
test_busy_sessions_of_one_address_give_way(void **state)
{
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	int fd[64], more[12], refused;
	unsigned int i;

	fill_sessions(e, fd, 16);
	/* each of the five addresses gets a fifth, and no more */
	for (i = 0; i < 12; i++) {
		more[i] = perftest_greet_from(e, 99);
		perftest_tell(e, more[i], &theirs);
	}
	expect_end(e, fd[0]);
	expect_end(e, fd[16]);
	refused = perftest_dial_from(99);
	expect_end(e, refused);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 64);
	for (i = 0; i < 12; i++)
		close(more[i]);
	for (i = 0; i < 64; i++)
		if (i != 0 && i != 16)
			close(fd[i]);
	eventually(
		(event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK), perftest_num_qps(e) == 0));
}

/* Who has a prefix has all of its addresses: one session of each is no more than one's share. */
static void
test_busy_sessions_of_one_prefix_give_way(void **state)
{
	struct engine *e = *state;
	int fd[64], other, refused;
	unsigned int i;

	fill_sessions(e, fd, 1);
	refused = perftest_dial_from(99); /* of the same /24, where each has one */
	expect_end(e, refused);
	other = perftest_greet_from(e, 0x0101);
	expect_end(e, fd[0]);
	perftest_settle(e);
	assert_int_equal(perftest_num_qps(e), 63);
	close(other);
	for (i = 1; i < 64; i++)
		close(fd[i]);
	eventually(
		(event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK), perftest_num_qps(e) == 0));
}

/* A line each, with the client's address: accepted, and ended, and why. */
static void
test_connections_are_logged(void **state)
{
	struct engine *e = *state;
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	char peer[64];
	int fd, bad;

	begin_log();
	fd = perftest_greet(e);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	snprintf(peer, sizeof(peer), "perftest: the TCP connection from 127.0.0.1:%u ",
		ntohs(own.sin_port));
	bad = perftest_dial();
	assert_int_equal(send(bad, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
	expect_end(e, bad);
	close(fd);
	perftest_settle(e);
	end_log();
	assert_int_equal(told_lines(peer), 2);
	assert_int_equal(told_lines("is accepted\n"), 2);
	assert_int_equal(told_lines("has ended: closed by the client\n"), 1);
	assert_int_equal(told_lines("has ended: it sent what cannot be answered\n"), 1);
	free(told.text);
}

/* A client that connects again and again cannot fill the log: the lines left out are counted. */
static void
test_lines_left_out_are_counted(void **state)
{
	struct engine *e = *state;
	unsigned int i, logged, left_out = 0;
	const char *at;

	begin_log();
	for (i = 0; i < 200; i++) {
		close(perftest_dial());
		perftest_settle(e);
	}
	/* the next line after a pause says how many there were */
	pause_ms(100);
	close(perftest_dial());
	perftest_settle(e);
	end_log();
	logged = told_lines("perftest: the TCP connection");
	at = strstr(told.text, " lines were not logged");
	assert_non_null(at);
	for (at = told.text; (at = strstr(at, "engine: ")) != NULL; at++)
		if (strspn(at + 8, "0123456789") > 0)
			left_out += (unsigned int)strtoul(at + 8, NULL, 10);
	assert_in_range(logged, 100, 300);
	assert_int_equal(logged + left_out, 2 * 201);
	free(told.text);
}

/* Nor can clients whose queue pairs are refused. */
static void
test_refusals_are_logged_rarely(void **state)
{
	enum { CLIENTS = 200 };
	struct engine *e = *state;
	struct perftest_dest theirs = dest_of(e, 0x100);
	unsigned int i;

	theirs.lid = 5;
	begin_log();
	for (i = 0; i < CLIENTS; i++)
		perftest_expect_refused(e, &theirs);
	end_log();
	assert_in_range(told_lines("perftest: no queue pair for a client: "), 1, CLIENTS - 1);
	free(told.text);
}

static void
test_tcp_port_in_use_is_an_error(void **state)
{
	struct svc_config c = { .kind = "perftest", .tcp_port = tcp_port };
	struct engine *e = *state;
	struct error err = { "" };
	char want[80];
	uint32_t id;

	assert_int_equal(engine_cm_listen(e, &c, &id, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "tcp_port: cannot listen on %u: Address already in use",
		tcp_port);
	assert_string_equal(err.text, want);
	strcpy(c.kind, "memory");
	assert_int_equal(engine_cm_listen(e, &c, &id, &err), -EINVAL);
	assert_string_equal(err.text, "tcp_port: memory does not use TCP");
}

/* After unlisten no client can connect; present clients end with the service, or later. */
static void
test_unlisten_closes_the_port(void **state)
{
	struct engine *e = *state;
	struct error err = { "" };
	int fd = perftest_greet(e);
	struct perftest_dest theirs = dest_of(e, 0x100);

	perftest_tell(e, fd, &theirs);
	assert_ok(engine_cm_unlisten(e, service, false, &err));
	assert_int_equal(perftest_dial(), -1);
	theirs.psn++;
	perftest_tell(e, fd, &theirs); /* the client goes on */
	close(fd);
	eventually(
		(event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK), perftest_num_qps(e) == 0));
	eventually((engine_cm_watch(e), engine_cm_unlisten(e, service, true, &err) == -ENOENT));
	service = listen_on(e, tcp_port);
	fd = perftest_greet(e);
	perftest_tell(e, fd, &theirs);
	assert_ok(engine_cm_unlisten(e, service, true, &err));
	expect_end(e, fd);
	eventually(perftest_num_qps(e) == 0);
}

#define T(f)    cmocka_unit_test_setup_teardown(f, perftest_start, perftest_stop)
#define T_IB(f) cmocka_unit_test_setup_teardown(f, perftest_start_ib, perftest_stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_client_gets_a_queue_pair),
		T_IB(test_client_gets_a_queue_pair),
		T(test_queue_pairs_of_a_client),
		T(test_at_most_64_queue_pairs_per_client),
		T(test_unreachable_client_is_refused),
		cmocka_unit_test_setup_teardown(test_client_that_names_nobody_is_refused,
			perftest_start_with_a_hole, perftest_stop),
		T(test_strangers_do_not_need_the_control_thread),
		T(test_question_keeps_nobody_waiting),
		T(test_unanswered_question_ends_a_session),
		T(test_unlisten_with_questions),
		T(test_thread_has_no_capabilities),
		T(test_malformed_message_ends_a_session),
		T(test_silent_client_is_closed),
		T(test_gid_of_another_is_refused),
		T_IB(test_lid_of_anybody_is_refused),
		T(test_paused_address_gets_no_queue_pair),
		cmocka_unit_test_setup_teardown(test_queue_pair_is_in_an_allowed_partition,
			perftest_start_in_a_partition, perftest_stop),
		T(test_address_to_listen_on),
		T(test_at_most_64_sessions),
		T(test_busy_sessions_of_one_address_give_way),
		T(test_busy_sessions_of_one_prefix_give_way),
		T(test_quiet_client_is_closed),
		T(test_connections_are_logged),
		T(test_lines_left_out_are_counted),
		T(test_refusals_are_logged_rarely),
		T(test_tcp_port_in_use_is_an_error),
		T(test_unlisten_closes_the_port),
	};

	return cmocka_run_group_tests_name("engine: perftest", tests, eal_setup, eal_teardown);
}
