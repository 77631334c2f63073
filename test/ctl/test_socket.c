/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The socket and its clients, good and bad. Server and clients share one thread: each turn() lets
 * the server do what it can, so that nothing here depends on who runs when.
 */

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_log.h>

#include "../passing.h"
#include "ctl/ctl.h"
#include "ctl/rpc.h"
#include "fake_engine.h"

#define PING  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cq_list\"}\n"
#define PONG  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"cqs\":[],\"cursor\":null}}\n"
#define TURNS 20000 /* a wait gives up after so many turns of a millisecond at most */

struct house {
	struct engine *e;
	struct ctl *ctl;
	char dir[32];
	char path[64];
	char reply[1 << 20];
};

static int
open_house(void **state, const struct ctl_limits *limits)
{
	struct house *h = calloc(1, sizeof(*h));
	struct error err = { "" };

	strcpy(h->dir, "/tmp/test_ctl_XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->path, sizeof(h->path), "%s/run/s", h->dir);
	h->e = fake_engine_create();
	h->ctl = ctl_create_limited(h->e, h->path, limits, &err);
	if (h->ctl == NULL)
		print_error("%s\n", err.text);
	assert_non_null(h->ctl);
	*state = h;
	return 0;
}

static int
socket_setup(void **state)
{
	return open_house(state, &ctl_limits_default);
}

/* patience in milliseconds, and little room */
static int
setup_strict(void **state)
{
	static const struct ctl_limits strict = {
		.max_clients = 4,
		.evict_ms = 60000,
		.max_request = 4096,
		.max_reply = 65536,
		.out_high = 16384,
		.half_request_ms = 50,
		.stall_ms = 50,
	};

	return open_house(state, &strict);
}

static int
socket_teardown(void **state)
{
	struct house *h = *state;
	char dir[64];

	ctl_destroy(h->ctl);
	assert_int_equal(access(h->path, F_OK), -1); /* the socket goes with the server */
	fake_engine_destroy(h->e);
	snprintf(dir, sizeof(dir), "%s/run", h->dir);
	rmdir(dir);
	assert_int_equal(rmdir(h->dir), 0);
	free(h);
	return 0;
}

static void
turn(struct house *h)
{
	assert_int_equal(ctl_run_once(h->ctl, 1), 0);
}

static int
socket_dial(const struct house *h)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, h->path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Send all, letting the server read meanwhile. */
static void
say_n(struct house *h, int fd, const char *text, size_t len)
{
	ssize_t n;
	int turns;

	for (turns = 0; len > 0 && turns < TURNS; turns++) {
		n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else {
			turn(h);
		}
	}
	assert_int_equal(len, 0);
}

static void
socket_say(struct house *h, int fd, const char *text)
{
	say_n(h, fd, text, strlen(text));
}

/* One line of a reply; NULL: the server has closed the connection. */
static const char *
hear(struct house *h, int fd)
{
	size_t len = 0;
	ssize_t n;
	int turns;

	for (turns = 0; turns < TURNS; turns++) {
		n = recv(fd, h->reply + len, 1, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return NULL;
		if (n < 0) {
			turn(h);
			continue;
		}
		turns = 0;
		if (h->reply[len++] == '\n') {
			h->reply[len] = '\0';
			return h->reply;
		}
	}
	fail_msg("no reply, and the connection is open");
	return NULL;
}

static void
assert_says(struct house *h, int fd, const char *code, const char *words)
{
	const char *reply = hear(h, fd);

	assert_non_null(reply);
	if (strstr(reply, code) == NULL || strstr(reply, words) == NULL)
		print_error("%s", reply);
	assert_non_null(strstr(reply, code));
	assert_non_null(strstr(reply, words));
}

/* The server serves others as ever. */
static void
assert_alive(struct house *h)
{
	int fd = socket_dial(h);

	assert_true(fd >= 0);
	socket_say(h, fd, PING);
	assert_string_equal(hear(h, fd), PONG);
	close(fd);
	turn(h);
}

static void
test_requests_are_answered_in_order(void **state)
{
	struct house *h = *state;
	int i, fd = socket_dial(h);
	char line[128], want[64];

	for (i = 0; i < 300; i++) {
		snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"version_get\"}\r\n", i);
		socket_say(h, fd, line);
	}
	for (i = 0; i < 300; i++) {
		snprintf(want, sizeof(want), "\"id\":%d,", i);
		assert_says(h, fd, want, "\"version\"");
	}
	close(fd);
}

static void
test_a_request_may_come_byte_by_byte(void **state)
{
	struct house *h = *state;
	const char *c;
	int fd = socket_dial(h);

	for (c = "\n \n" PING; *c != '\0'; c++) {
		say_n(h, fd, c, 1);
		turn(h);
	}
	assert_string_equal(hear(h, fd), PONG);
	close(fd);
}

/* the search for a line's end begins anew with each line */
static void
test_a_short_request_may_follow_the_rest_of_a_long_one(void **state)
{
	struct house *h = *state;
	char line[1024];
	int fd = socket_dial(h);

	memset(line, ' ', sizeof(line));
	say_n(h, fd, line, sizeof(line));
	turn(h);
	socket_say(h, fd, PING PING);
	assert_string_equal(hear(h, fd), PONG);
	assert_string_equal(hear(h, fd), PONG);
	close(fd);
}

/* 63 turns of requests, and 40 waits of a millisecond: seconds only if a turn sleeps over them */
static void
test_no_turn_sleeps_while_there_is_work(void **state)
{
	static const char wait[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"cq_poll\","
				   "\"params\":{\"cq\":1,\"timeout_ms\":1}}\n";
	struct house *h = *state;
	int i, fd = socket_dial(h);
	struct error err;
	time_t start;
	uint32_t cq;

	assert_int_equal(engine_cq_create(h->e, 16, &cq, &err), 0);
	start = time(NULL);
	for (i = 0; i < 1000; i++)
		say_n(h, fd, "{}\n", 3);
	for (i = 0; i < 40; i++)
		socket_say(h, fd, wait);
	shutdown(fd, SHUT_WR);
	for (i = 0; i < 1000; i++) {
		while (recv(fd, h->reply, sizeof(h->reply), MSG_DONTWAIT) > 0)
			;
		if (recv(fd, h->reply, 1, MSG_DONTWAIT) == 0)
			break;
		assert_int_equal(ctl_run_once(h->ctl, 60000), 0);
	}
	assert_in_range(i, 1, 999);
	assert_in_range(time(NULL) - start, 0, 10);
	close(fd);
}

/* Let the server wait up to a minute at a time. @return turns until there is a reply */
static int
turns_until_reply(struct house *h, int fd)
{
	int turns = 0;

	while (recv(fd, h->reply, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && turns++ < TURNS)
		assert_int_equal(ctl_run_once(h->ctl, 60000), 0);
	return turns;
}

/* The calls end by time or by what they wait for; nobody looks in between. */
static void
test_a_call_that_waits_sleeps(void **state)
{
	static const char wait[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"cq_poll\","
				   "\"params\":{\"cq\":1,\"timeout_ms\":%u}}\n",
			  events[] = "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"events\","
				     "\"params\":{\"timeout_ms\":60000}}\n";
	struct house *h = *state;
	const struct wc wc = { .wr_id = 5 };
	int i, fd = socket_dial(h);
	struct error err;
	char line[128];
	uint32_t cq;

	assert_int_equal(engine_cq_create(h->e, 16, &cq, &err), 0);
	snprintf(line, sizeof(line), wait, 300u);
	socket_say(h, fd, line);
	assert_in_range(turns_until_reply(h, fd), 1, 10);
	assert_says(h, fd, "\"id\":7", "\"wc\":[]");
	snprintf(line, sizeof(line), wait, 60000u);
	socket_say(h, fd, line);
	for (i = 0; i < 3; i++)
		assert_int_equal(ctl_run_once(h->ctl, 0), 0);
	fake_complete(h->e, cq, &wc);
	assert_in_range(turns_until_reply(h, fd), 1, 2);
	assert_says(h, fd, "\"id\":7", "\"wr_id\":5");
	socket_say(h, fd, events);
	for (i = 0; i < 3; i++)
		assert_int_equal(ctl_run_once(h->ctl, 0), 0);
	fake_event(h->e, EVENT_COMM_EST, 1);
	assert_in_range(turns_until_reply(h, fd), 1, 2);
	assert_says(h, fd, "\"id\":8", "COMM_EST");
	close(fd);
}

static void
test_a_last_line_without_newline_is_answered(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);

	say_n(h, fd, PING, strlen(PING) - 1);
	turn(h);
	shutdown(fd, SHUT_WR);
	assert_string_equal(hear(h, fd), PONG);
	assert_null(hear(h, fd));
	close(fd);
}

static void
test_a_notification_is_carried_out_though_its_sender_is_gone(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);

	socket_say(h, fd, "{\"jsonrpc\":\"2.0\",\"method\":\"cq_create\"}\n");
	close(fd);
	turn(h);
	turn(h);
	assert_true(h->e->cq[1].used);
}

static void
test_half_a_request_is_refused_at_its_end(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);

	socket_say(h, fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"met");
	shutdown(fd, SHUT_WR);
	assert_says(h, fd, "-32700", "column");
	assert_null(hear(h, fd));
	close(fd);
	assert_alive(h);
}

static void
test_half_a_request_times_out(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);

	socket_say(h, fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"met");
	assert_says(h, fd, "-32600", "did not end in time");
	assert_null(hear(h, fd));
	close(fd);
	assert_alive(h);
}

/* Send text with descriptors. */
static void
say_with(int fd, const char *text, const int *fds, unsigned int num)
{
	assert_int_equal(passing_send(fd, text, strlen(text), fds, num, 0), strlen(text));
}

/* How many descriptors of ours, client and server both, are of this file. */
static unsigned int
descriptors_of(int file)
{
	struct stat want, st;
	unsigned int num = 0;
	int fd;

	assert_int_equal(fstat(file, &want), 0);
	for (fd = 0; fd < 256; fd++)
		if (fstat(fd, &st) == 0 && st.st_dev == want.st_dev && st.st_ino == want.st_ino)
			num++;
	return num;
}

#define IMPORT                                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sa_import\",\"params\":{\"file\":\"f\"}}\n"

static void
test_a_file_comes_as_a_descriptor(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h), file = memfd_create("f", MFD_CLOEXEC);
	const char *c;

	assert_int_equal(write(file, "{}", 2), 2);
	/* behind another request, with the first byte of its own, which comes in pieces */
	socket_say(h, fd, PING);
	say_with(fd, "{", &file, 1);
	for (c = &IMPORT[1]; *c != '\0'; c++)
		say_n(h, fd, c, 1);
	assert_string_equal(hear(h, fd), PONG);
	assert_says(h, fd, "\"result\"", "\"records\":42");
	assert_string_equal(h->e->sa.import_text, "{}");
	assert_int_equal(descriptors_of(file), 1);
	socket_say(h, fd, IMPORT);
	assert_says(h, fd, "-32602", "file: got no descriptor");
	close(file);
	close(fd);
}

static void
test_descriptors_nobody_asked_for_are_closed(void **state)
{
	struct house *h = *state;
	int i, fd = socket_dial(h), file = memfd_create("f", MFD_CLOEXEC);
	int many[8] = { file, file, file, file, file, file, file, file };

	for (i = 0; i < 100; i++) {
		say_with(fd, PING, &file, 1);
		assert_string_equal(hear(h, fd), PONG);
	}
	turn(h);
	assert_int_equal(descriptors_of(file), 1);
	/* not with the next request either */
	say_with(fd, PING, &file, 1);
	assert_string_equal(hear(h, fd), PONG);
	socket_say(h, fd, IMPORT);
	assert_says(h, fd, "-32602", "file: got no descriptor");
	/* of a client that leaves within a line */
	say_with(fd, "{", &file, 1);
	turn(h);
	assert_int_equal(descriptors_of(file), 2);
	close(fd);
	turn(h);
	turn(h);
	assert_int_equal(descriptors_of(file), 1);
	/* more than one, at once or one by one */
	fd = socket_dial(h);
	say_with(fd, IMPORT, many, 8);
	assert_says(h, fd, "-32600", "send one descriptor");
	assert_null(hear(h, fd));
	close(fd);
	fd = socket_dial(h);
	say_with(fd, "{", &file, 1);
	turn(h);
	say_with(fd, "}", &file, 1);
	assert_says(h, fd, "-32600", "send one descriptor");
	assert_null(hear(h, fd));
	close(fd);
	assert_int_equal(descriptors_of(file), 1);
	close(file);
	assert_alive(h);
}

static void
test_an_idle_client_does_not_time_out(void **state)
{
	struct house *h = *state;
	int i, fd = socket_dial(h);

	socket_say(h, fd, PING);
	assert_string_equal(hear(h, fd), PONG);
	for (i = 0; i < 20; i++)
		assert_int_equal(ctl_run_once(h->ctl, 10), 0);
	socket_say(h, fd, PING);
	assert_string_equal(hear(h, fd), PONG);
	close(fd);
}

static void
test_rubbish_is_answered_and_the_connection_stays(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);
	char noise[256];
	size_t i;

	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i == '\n' ? 'x' : i);
	say_n(h, fd, noise, sizeof(noise));
	socket_say(h, fd, "\n[[[[[[[[[[[[[[[[[[[[[[[[[\n{}\n" PING);
	assert_says(h, fd, "-32700", "column");
	assert_says(h, fd, "-32600", "brackets");
	assert_says(h, fd, "-32600", "jsonrpc");
	assert_string_equal(hear(h, fd), PONG);
	close(fd);
}

static void
test_a_request_too_long_is_refused_and_closed(void **state)
{
	struct house *h = *state;
	static char line[2 << 20];
	int fd = socket_dial(h);

	/* without an end: refused once the bound is passed */
	memset(line, ' ', sizeof(line));
	send(fd, line, 8192, MSG_DONTWAIT);
	assert_says(h, fd, "-32600", "too long");
	assert_null(hear(h, fd));
	close(fd);
	/* exactly at the bound it is served */
	fd = socket_dial(h);
	memcpy(line, PING, strlen(PING) - 1);
	line[4096] = '\n';
	say_n(h, fd, line, 4097);
	assert_string_equal(hear(h, fd), PONG);
	line[4096] = ' ';
	line[4097] = '\n';
	say_n(h, fd, line, 4098);
	assert_says(h, fd, "-32600", "too long");
	close(fd);
	assert_alive(h);
}

/* the longest request that the default bound allows */
static void
test_a_megabyte_of_request_is_served(void **state)
{
	struct house *h = *state;
	size_t len = 1 << 20;
	char *line = malloc(len + 2);
	int fd = socket_dial(h);

	memset(line, ' ', len);
	memcpy(line, PING, strlen(PING) - 1);
	line[len] = '\n';
	say_n(h, fd, line, len + 1);
	assert_string_equal(hear(h, fd), PONG);
	free(line);
	close(fd);
}

/* deeper than a parser that recurses would survive, were it asked */
static void
test_a_megabyte_of_brackets_is_refused(void **state)
{
	struct house *h = *state;
	size_t len = (1 << 20) - 1;
	char *line = malloc(len + 1);
	int fd = socket_dial(h);

	memset(line, '[', len);
	line[len] = '\n';
	say_n(h, fd, line, len + 1);
	assert_says(h, fd, "-32600", "brackets");
	free(line);
	close(fd);
}

static void
test_a_client_that_never_reads_is_closed(void **state)
{
	struct house *h = *state;
	static const char ask_all[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stats_describe\"}\n";
	int turns, small = 4096, fd = socket_dial(h);
	ssize_t n = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	/* until its own requests find no room any more, or the server hangs up */
	for (turns = 0; turns < TURNS && n >= 0; turns++) {
		n = send(fd, ask_all, sizeof(ask_all) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		turn(h);
	}
	assert_alive(h);
	while (send(fd, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ||
		(errno == EAGAIN && turns < TURNS)) {
		turn(h);
		turns++;
	}
	assert_int_equal(errno, EPIPE);
	close(fd);
	assert_alive(h);
}

/* bounded room for what it asks, and for what it is told */
static void
test_a_client_that_does_not_read_is_not_served_on(void **state)
{
	static const char big[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"rpc_list\"}\n";
	static const char mark[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"cq_create\"}\n";
	static char pad[65536];
	struct house *h = *state;
	size_t sent = 0;
	int i, idle, fd = socket_dial(h);
	ssize_t n;

	/*
	 * in one piece: all of it is read in one turn, and what is not answered waits in our buffer
	 */
	for (i = 0; i < 300; i++)
		strcat(pad, big);
	strcat(pad, mark);
	socket_say(h, fd, pad);
	for (i = 0; i < 100; i++)
		turn(h);
	assert_false(h->e->cq[1].used); /* the mark stands behind 10 MB of replies */
	memset(pad, '\n', sizeof(pad));
	for (idle = 0; idle < 20 && sent < 16 << 20; idle++) {
		n = send(fd, pad, sizeof(pad), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			sent += (size_t)n;
			idle = 0;
		}
		turn(h);
	}
	assert_in_range(sent, 1, 4 << 20);
	close(fd);
	turn(h);
	assert_alive(h);
}

/* its replies wait in bounded room: what it sends beyond that stays unread in its own socket */
static void
test_a_client_that_reads_late_gets_every_reply(void **state)
{
	struct house *h = *state;
	int i, fd = socket_dial(h);
	char line[128], want[32];

	for (i = 0; i < 40; i++) {
		snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"rpc_list\"}\n", i);
		socket_say(h, fd, line);
		turn(h);
	}
	for (i = 0; i < 40; i++) {
		snprintf(want, sizeof(want), "\"id\":%d,", i);
		assert_says(h, fd, want, "\"methods\"");
	}
	close(fd);
}

static void
test_one_who_waits_keeps_nobody_waiting(void **state)
{
	struct house *h = *state;
	static const char wait_long[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"cq_poll\","
					"\"params\":{\"cq\":1,\"timeout_ms\":60000}}\n";
	struct wc wc = { .wr_id = 5 };
	int i, waiter = socket_dial(h), other = socket_dial(h);
	struct error err;
	uint32_t cq;

	assert_int_equal(engine_cq_create(h->e, 16, &cq, &err), 0);
	socket_say(h, waiter, wait_long);
	socket_say(h, waiter,
		"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"cq_arm\",\"params\":{\"cq\":1}}\n");
	for (i = 0; i < 50; i++) {
		socket_say(h, other, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version_get\"}\n");
		assert_says(h, other, "\"id\":1", "version");
	}
	assert_int_equal(recv(waiter, h->reply, 1, MSG_DONTWAIT), -1);
	assert_false(h->e->cq[1].armed); /* its next request waits its turn */
	fake_complete(h->e, 1, &wc);
	assert_says(h, waiter, "\"id\":7", "\"wr_id\":5");
	assert_says(h, waiter, "\"id\":8", "result");
	close(waiter);
	close(other);
}

/* nobody would see the completion that it took */
static void
test_a_wait_ends_with_its_connection(void **state)
{
	struct house *h = *state;
	static const char wait_long[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"cq_poll\","
					"\"params\":{\"cq\":1,\"timeout_ms\":60000}}\n";
	struct wc wc = { .wr_id = 5 };
	int i, fd = socket_dial(h);
	struct error err;
	uint32_t cq;

	assert_int_equal(engine_cq_create(h->e, 16, &cq, &err), 0);
	socket_say(h, fd, wait_long);
	for (i = 0; i < 5; i++)
		turn(h);
	close(fd);
	for (i = 0; i < 5; i++)
		turn(h);
	fake_complete(h->e, 1, &wc);
	for (i = 0; i < 5; i++)
		turn(h);
	assert_int_equal(h->e->cq[1].tail - h->e->cq[1].head, 1);
}

#define CONNECT                                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cm_connect\",\"params\":{\"dgid\":\"10.0.0.2\"," \
	"\"port\":7471,\"service\":\"rping\"}}\n"

/* Let the server answer, without reading it. */
static void
wait_for_reply(struct house *h, int fd)
{
	int turns;

	for (turns = 0; turns < TURNS && recv(fd, h->reply, 1, MSG_PEEK | MSG_DONTWAIT) != 1;
		turns++)
		turn(h);
	assert_true(turns < TURNS);
}

/* Until the server has noticed that its only client closed: the next one sees nothing of it. */
static void
socket_hang_up(struct house *h, int fd)
{
	close(fd);
	assert_alive(h);
	turn(h);
}

/* Whoever has not read the connection's number cannot end the connection. */
static void
test_a_connection_whose_reply_is_unread_is_ended(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);

	h->e->cm.connections = 3;
	socket_say(h, fd, CONNECT);
	wait_for_reply(h, fd);
	assert_int_equal(h->e->cm.disconnected, 0);
	socket_hang_up(h, fd);
	assert_int_equal(h->e->cm.disconnected, 1);
	/* the first half of a reply is no reply */
	h->e->cm.disconnected = 0;
	fd = socket_dial(h);
	socket_say(h, fd, CONNECT);
	wait_for_reply(h, fd);
	assert_int_equal(recv(fd, h->reply, 60, MSG_DONTWAIT), 60);
	socket_hang_up(h, fd);
	assert_int_equal(h->e->cm.disconnected, 1);
	/* closed before the server could write it: its own write fails */
	h->e->cm.disconnected = 0;
	fd = socket_dial(h);
	socket_say(h, fd, CONNECT);
	socket_hang_up(h, fd);
	assert_int_equal(h->e->cm.disconnected, 1);
}

static void
test_a_connection_whose_reply_was_read_stays(void **state)
{
	struct house *h = *state;
	int fd = socket_dial(h);

	h->e->cm.connections = 3;
	socket_say(h, fd, CONNECT);
	assert_says(h, fd, "\"id\":1", "\"connection\":1");
	socket_hang_up(h, fd);
	assert_int_equal(h->e->cm.disconnected, 0);
	/* another reply is unread, which may not undo the connection */
	fd = socket_dial(h);
	socket_say(h, fd, CONNECT);
	assert_says(h, fd, "\"id\":1", "\"connection\":1");
	socket_say(h, fd, PING);
	wait_for_reply(h, fd);
	socket_hang_up(h, fd);
	assert_int_equal(h->e->cm.disconnected, 0);
	/* a failed one made no connection, and a notification asks for no reply */
	fd = socket_dial(h);
	h->e->cm.connect_error = -ENOENT;
	socket_say(h, fd, CONNECT);
	wait_for_reply(h, fd);
	socket_hang_up(h, fd);
	h->e->cm.connect_error = 0;
	fd = socket_dial(h);
	socket_say(h, fd,
		"{\"jsonrpc\":\"2.0\",\"method\":\"cm_connect\",\"params\":"
		"{\"dgid\":\"10.0.0.2\",\"port\":7471,\"service\":\"rping\"}}\n");
	socket_hang_up(h, fd);
	assert_int_equal(h->e->cm.disconnected, 0);
}

static void
test_long_work_keeps_nobody_waiting(void **state)
{
	struct house *h = *state;
	struct mem_mr_attr attr = { .length = 256 << 20, .va = UINT64_MAX, .numa_node = -1 };
	struct mem_mr_info info;
	struct error err;
	char line[128];
	int i, worker = socket_dial(h), other = socket_dial(h);

	assert_int_equal(engine_pd_alloc(h->e, &attr.pd, &err), 0);
	assert_int_equal(engine_mr_register(h->e, &attr, 0, &info, &err), 0);
	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mr_checksum\",\"params\":{\"key\":%u}}\n",
		info.key);
	socket_say(h, worker, line);
	turn(h);
	for (i = 0; i < 10; i++) {
		socket_say(h, other, PING);
		assert_string_equal(hear(h, other), PONG);
	}
	assert_int_equal(recv(worker, h->reply, 1, MSG_DONTWAIT), -1); /* not yet done */
	assert_says(h, worker, "\"length\":268435456", "crc32");
	close(worker);
	close(other);
}

/* What is logged between log_start() and log_stop(). */
struct log_text {
	char *text;
	size_t size;
	FILE *file;
};

static void
log_start(struct log_text *log)
{
	log->text = NULL;
	log->file = open_memstream(&log->text, &log->size);
	assert_non_null(log->file);
	rte_openlog_stream(log->file);
}

static void
log_stop(struct log_text *log)
{
	rte_openlog_stream(NULL);
	fclose(log->file);
}

/* Twenty lines at once; the next one, a second later, says how many there would have been. */
static void
test_lines_about_clients_are_limited(void **state)
{
	struct house *h = *state;
	struct log_text log;
	int i, fd[5];

	for (i = 0; i < 4; i++)
		fd[i] = socket_dial(h);
	turn(h);
	log_start(&log);
	for (i = 0; i < 26; i++) {
		if (i == 25)
			usleep(1100 * 1000); /* a token of the bucket takes a second */
		fd[4] = socket_dial(h);
		assert_says(h, fd[4], "-32600", "too many clients");
		close(fd[4]);
	}
	log_stop(&log);
	assert_non_null(strstr(log.text, " such lines were not logged\n"));
	free(log.text);
	for (i = 0; i < 4; i++)
		close(fd[i]);
}

static void
test_too_many_clients_are_told(void **state)
{
	struct house *h = *state;
	struct log_text log;
	char line[192];
	int i, fd[5];

	for (i = 0; i < 4; i++)
		fd[i] = socket_dial(h);
	turn(h);
	log_start(&log);
	fd[4] = socket_dial(h);
	assert_says(h, fd[4], "-32600", "too many clients");
	assert_null(hear(h, fd[4]));
	log_stop(&log);
	snprintf(line, sizeof(line),
		"ctl: limit reached: a connection by user %s (%u), process %d: there are as many clients as the sockets take\n",
		getpwuid(getuid())->pw_name, (unsigned int)getuid(), (int)getpid());
	assert_string_equal(log.text, line);
	free(log.text);
	for (i = 0; i < 4; i++) {
		socket_say(h, fd[i], PING);
		assert_string_equal(hear(h, fd[i]), PONG);
		close(fd[i]);
	}
	close(fd[4]);
	turn(h);
	assert_alive(h);
}

static int
setup_evicting(void **state)
{
	struct ctl_limits limits = ctl_limits_default;

	limits.max_clients = 2;
	limits.evict_ms = 0;
	return open_house(state, &limits);
}

static void
test_the_one_idle_for_longest_makes_room(void **state)
{
	struct house *h = *state;
	int old = socket_dial(h), busy, new;

	turn(h);
	usleep(2000);
	busy = socket_dial(h);
	socket_say(h, busy, PING);
	assert_string_equal(hear(h, busy), PONG);
	usleep(2000);
	new = socket_dial(h);
	socket_say(h, new, PING);
	assert_string_equal(hear(h, new), PONG);
	assert_null(hear(h, old));
	socket_say(h, busy, PING);
	assert_string_equal(hear(h, busy), PONG);
	close(old);
	close(busy);
	close(new);
}

static void
test_ten_thousand_connects_disturb_nobody(void **state)
{
	struct house *h = *state;
	int i, fd, held[200], n = 0, good = socket_dial(h);

	socket_say(h, good, PING);
	assert_string_equal(hear(h, good), PONG);
	for (i = 0; i < 10000; i++) {
		fd = socket_dial(h);
		assert_true(fd >= 0);
		if (n < 200)
			held[n++] = fd;
		else
			close(fd);
		if (i % 50 == 0)
			turn(h);
	}
	socket_say(h, good, PING);
	assert_string_equal(hear(h, good), PONG);
	while (n > 0)
		close(held[--n]);
	for (i = 0; i < 10; i++)
		turn(h);
	assert_alive(h);
	close(good);
}

static void
test_running_out_of_descriptors_is_survived(void **state)
{
	struct house *h = *state;
	struct rlimit old, few;
	int i, fd[64], n = 0, good = socket_dial(h);

	turn(h);
	getrlimit(RLIMIT_NOFILE, &old);
	for (i = 0; i < 8; i++)
		fd[n++] = socket_dial(h); /* in the queue, not yet accepted */
	few = old;
	few.rlim_cur = (rlim_t)fd[n - 1] + 3;
	setrlimit(RLIMIT_NOFILE, &few);
	for (i = 0; i < 10; i++)
		turn(h);
	socket_say(h, good, PING);
	assert_string_equal(hear(h, good), PONG);
	setrlimit(RLIMIT_NOFILE, &old);
	/* those that found no descriptor are closed: they are not left to wait */
	assert_int_equal(recv(fd[n - 1], h->reply, 1, MSG_DONTWAIT), 0);
	while (n > 0)
		close(fd[--n]);
	turn(h);
	assert_alive(h);
	close(good);
}

static void
test_the_socket_is_its_owners_alone(void **state)
{
	struct house *h = *state;
	struct stat st;

	assert_int_equal(stat(h->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

/*
 * @return what another user's connection is told, by exit status: 0 refused, 1 served, 2 could not
 * connect
 */
static int
dial_as_nobody(const struct house *h)
{
	struct timeval tv = { 5, 0 };
	char buf[256] = "";
	int fd;

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 3;
	fd = socket_dial(h);
	if (fd < 0)
		return 2;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (send(fd, PING, strlen(PING), MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return 4;
	if (recv(fd, buf, sizeof(buf) - 1, 0) <= 0)
		return 5;
	return strstr(buf, "only root and the server's own user") != NULL ? 0 : 1;
}

static void
test_another_user_is_refused(void **state)
{
	struct house *h = *state;
	int i, status;
	pid_t pid;

	if (geteuid() != 0) /* only root can become another user; as root CI proves it */
		return;
	/* even if somebody opens the socket's mode and directory to all */
	assert_int_equal(chmod(h->path, 0666), 0);
	assert_int_equal(chmod(h->dir, 0755), 0);
	pid = fork();
	if (pid == 0)
		_exit(dial_as_nobody(h));
	for (i = 0; i < TURNS && waitpid(pid, &status, WNOHANG) == 0; i++)
		turn(h);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Open the monitoring socket. @return a connection to it */
static int
monitor_dial(struct house *h)
{
	struct error err = { "" };
	char control[108], path[160];
	int fd;

	snprintf(path, sizeof(path), "%s.monitor", h->path);
	assert_int_equal(ctl_monitor(h->ctl, path, (gid_t)-1, &err), 0);
	strcpy(control, h->path);
	strcpy(h->path, path);
	fd = socket_dial(h);
	strcpy(h->path, control);
	return fd;
}

/* of all methods only those that change nothing are carried out; parameters do not matter */
static void
test_the_monitoring_socket_only_reads(void **state)
{
	static const char reads[] =
		" client_list client_users cm_list cm_show cq_list lid_list pd_list mr_list mw_list port_list neighbour_list"
		" worker_list qp_list qp_show sa_sessions sa_stats version_get rpc_list"
		" log_level_get events service_list service_wait service_kinds srq_list stats_get stats_describe stats_metrics trap_list"
		" config_diff fleet_status sa_query sa_result sa_cancel qp_trace qp_explain cm_trace sa_trace ";
	struct house *h = *state;
	const struct rpc_method *m;
	const struct rpc_area *a;
	char text[160], name[64];
	const char *line;
	bool refused;
	int fd;

	fd = monitor_dial(h);
	for (a = rpc_areas; a->title != NULL; a++)
		for (m = a->methods; m->name != NULL; m++) {
			snprintf(text, sizeof(text),
				"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}\n", m->name);
			socket_say(h, fd, text);
			line = hear(h, fd);
			refused = strstr(line, "the monitoring socket has only") != NULL;
			snprintf(name, sizeof(name), " %s ", m->name);
			if (refused == (strstr(reads, name) != NULL))
				fail_msg("%s: %s", m->name, line);
		}
	close(fd);
	assert_alive(h);
}

/* Say a line on a socket. @return the reply */
static const char *
ask_on(struct house *h, int fd, const char *method, const char *params)
{
	char text[256];

	snprintf(text, sizeof(text),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}\n", method,
		params);
	socket_say(h, fd, text);
	return hear(h, fd);
}

/* The SA is asked as a stranger asks, without a key; results of the control socket are not seen. */
static void
test_the_monitoring_socket_is_a_stranger_to_the_sa(void **state)
{
	static const char *const refused[] = {
		"\"op\":\"set\",\"record\":\"service\"",
		"\"op\":\"delete\",\"record\":\"service\"",
		"\"op\":\"config_add\",\"record\":\"node\",\"records\":[{}]",
		"\"record\":\"node\",\"sm_key\":1",
		"\"record\":\"node\",\"to\":\"10.0.0.2\"",
		"\"record\":\"node\",\"dlid\":2",
	};
	struct house *h = *state;
	struct fake_sa *sa = &h->e->sa;
	char text[160];
	const char *line;
	int all, fd;
	size_t i;

	sa->num = 1;
	all = socket_dial(h);
	fd = monitor_dial(h);
	ask_on(h, all, "sa_query", "\"record\":\"node\"");
	assert_int_equal(sa->asked.sm_key, engine_sa_key(h->e));
	snprintf(text, sizeof(text), "\"query\":%u", sa->id);
	assert_non_null(strstr(ask_on(h, fd, "sa_result", text), "ENOENT"));
	assert_non_null(strstr(ask_on(h, fd, "sa_cancel", text), "ENOENT"));
	assert_non_null(strstr(ask_on(h, all, "sa_result", text), "\"records\""));
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		line = ask_on(h, fd, "sa_query", refused[i]);
		if (strstr(line, "EPERM") == NULL)
			fail_msg("%s: %s", refused[i], line);
	}
	assert_int_equal(sa->asked.sm_key, engine_sa_key(h->e));
	assert_non_null(strstr(ask_on(h, fd, "sa_query", "\"record\":\"node\""), "\"query\""));
	assert_int_equal(sa->asked.sm_key, 0);
	snprintf(text, sizeof(text), "\"query\":%u", sa->id);
	assert_non_null(strstr(ask_on(h, fd, "sa_result", text), "\"records\""));
	assert_null(strstr(ask_on(h, fd, "sa_cancel", text), "error"));
	close(fd);
	close(all);
	assert_alive(h);
}

/* A region, a window, a queue pair, a trap to send and one that has come in. */
static void
make_keys(struct engine *e)
{
	struct mem_mr_attr attr = { .length = 4096 };
	struct engine_sm_smp *smp = &e->sma.smp;
	struct mem_mr_info info;
	struct error err;
	const struct qp_init_attr qp = { .qp_type = QPT_RC };
	uint32_t key, qpn;

	assert_int_equal(engine_pd_alloc(e, &attr.pd, &err), 0);
	assert_int_equal(engine_mr_register(e, &attr, 0, &info, &err), 0);
	assert_int_equal(engine_mw_alloc(e, attr.pd, MEM_MW_TYPE_2, &key, &err), 0);
	assert_int_equal(engine_qp_create(e, 0, &qp, &qpn, &err), 0);
	assert_int_equal(qpn, 256);
	e->sma.traps = 1;
	*smp = (struct engine_sm_smp){ .number = 9 };
	memcpy(smp->mad, "\1\1\1\5\0\0\0\0\0\0\0\0\0\0\xA\xBC\0\2", 18);
	fake_event(e, EVENT_SM_SMP, 9);
}

/* Keys of regions and windows, PSNs, and contents of SMPs and traps are for the control socket. */
static void
test_the_monitoring_socket_shows_no_keys(void **state)
{
	static const struct {
		const char *method, *params, *shown, *hidden;
	} lists[] = {
		{ "mr_list", "", "\"length\"", "\"key\"" },
		{ "mw_list", "", "\"bound\"", "key\"" },
		{ "trap_list", "\"notice\":true", "\"raised\"", "\"notice\"" },
		{ "events", "\"since\":1", "SM_SMP", "\"data\"" },
		{ "qp_show", "\"qp_num\":256", "\"qp_state\"", "\"sq_psn\"" },
		{ "qp_show", "\"qp_num\":256", "\"qp_state\"", "\"rq_psn\"" },
	};
	struct house *h = *state;
	const char *line;
	int all, fd;
	size_t i;

	make_keys(h->e);
	all = socket_dial(h);
	fd = monitor_dial(h);
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		line = ask_on(h, all, lists[i].method, lists[i].params);
		if (strstr(line, lists[i].hidden) == NULL)
			fail_msg("control socket: %s", line);
		line = ask_on(h, fd, lists[i].method, lists[i].params);
		if (strstr(line, lists[i].shown) == NULL || strstr(line, lists[i].hidden) != NULL)
			fail_msg("monitoring socket: %s", line);
	}
	close(fd);
	close(all);
	assert_alive(h);
}

static void
test_mode_and_group_admit_others(void **state)
{
	struct house *h = *state;
	struct error err = { "" };
	struct stat st;
	int i, status;
	pid_t pid;

	if (geteuid() != 0) /* only root can become another user */
		return;
	assert_int_equal(ctl_admit(h->ctl, 65534, 0660, &err), 0);
	assert_int_equal(stat(h->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(st.st_gid, 65534);
	assert_int_equal(chmod(h->dir, 0755), 0);
	pid = fork();
	if (pid == 0)
		_exit(dial_as_nobody(h));
	for (i = 0; i < TURNS && waitpid(pid, &status, WNOHANG) == 0; i++)
		turn(h);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1); /* answered, not refused */
}

static void
test_a_socket_in_use_is_not_taken(void **state)
{
	struct house *h = *state;
	struct error err = { "" };
	char text[256];

	assert_null(ctl_create(h->e, h->path, &err));
	/* it is this process that listens there; test_polca.py has another one */
	snprintf(text, sizeof(text),
		"control.socket: polca listens on %s already, for another purpose; name another socket",
		h->path);
	assert_string_equal(err.text, text);
	assert_int_equal(ctl_monitor(h->ctl, h->path, (gid_t)-1, &err), -EADDRINUSE);
	assert_int_equal(strncmp(err.text, "control.monitor: ", strlen("control.monitor: ")), 0);
	assert_alive(h);
}

static void
test_a_stale_socket_is_replaced_and_a_file_is_not(void **state)
{
	struct house *h = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct error err = { "" };
	struct ctl *c;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stale", h->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd); /* the file stays, as after a crash */
	c = ctl_create(h->e, addr.sun_path, &err);
	assert_non_null(c);
	ctl_destroy(c);

	fd = open(addr.sun_path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_null(ctl_create(h->e, addr.sun_path, &err));
	assert_non_null(strstr(err.text, "is no socket"));
	assert_int_equal(unlink(addr.sun_path), 0);
}

static void
test_paths_that_cannot_be_are_explained(void **state)
{
	struct house *h = *state;
	struct error err = { "" };
	char path[200];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[108] = '\0';
	assert_null(ctl_create(h->e, path, &err));
	assert_non_null(strstr(err.text, "108 bytes, allowed: 1..107"));
	assert_null(ctl_create(h->e, "/nowhere/at/all/s", &err));
	assert_non_null(strstr(err.text, "cannot make the directory"));
}

int
main(void)
{
#define T(name)      cmocka_unit_test_setup_teardown(name, socket_setup, socket_teardown)
#define STRICT(name) cmocka_unit_test_setup_teardown(name, setup_strict, socket_teardown)
	const struct CMUnitTest tests[] = {
		T(test_requests_are_answered_in_order),
		T(test_a_request_may_come_byte_by_byte),
		T(test_a_short_request_may_follow_the_rest_of_a_long_one),
		T(test_no_turn_sleeps_while_there_is_work),
		T(test_a_call_that_waits_sleeps),
		T(test_a_last_line_without_newline_is_answered),
		T(test_a_notification_is_carried_out_though_its_sender_is_gone),
		T(test_half_a_request_is_refused_at_its_end),
		STRICT(test_half_a_request_times_out),
		T(test_a_file_comes_as_a_descriptor),
		T(test_descriptors_nobody_asked_for_are_closed),
		STRICT(test_an_idle_client_does_not_time_out),
		T(test_rubbish_is_answered_and_the_connection_stays),
		STRICT(test_a_request_too_long_is_refused_and_closed),
		T(test_a_megabyte_of_request_is_served),
		T(test_a_megabyte_of_brackets_is_refused),
		STRICT(test_a_client_that_never_reads_is_closed),
		T(test_a_client_that_does_not_read_is_not_served_on),
		T(test_a_client_that_reads_late_gets_every_reply),
		T(test_one_who_waits_keeps_nobody_waiting),
		T(test_a_wait_ends_with_its_connection),
		T(test_a_connection_whose_reply_is_unread_is_ended),
		T(test_a_connection_whose_reply_was_read_stays),
		T(test_long_work_keeps_nobody_waiting),
		STRICT(test_too_many_clients_are_told),
		STRICT(test_lines_about_clients_are_limited),
		cmocka_unit_test_setup_teardown(test_the_one_idle_for_longest_makes_room,
			setup_evicting, socket_teardown),
		T(test_ten_thousand_connects_disturb_nobody),
		T(test_running_out_of_descriptors_is_survived),
		T(test_the_socket_is_its_owners_alone),
		T(test_another_user_is_refused),
		T(test_mode_and_group_admit_others),
		T(test_the_monitoring_socket_only_reads),
		T(test_the_monitoring_socket_is_a_stranger_to_the_sa),
		T(test_the_monitoring_socket_shows_no_keys),
		T(test_a_socket_in_use_is_not_taken),
		T(test_a_stale_socket_is_replaced_and_a_file_is_not),
		T(test_paths_that_cannot_be_are_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
