/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <unistd.h>

#include <event2/event.h>

#include "client_node.h"
#include "client_socket.h"

struct verbs_server program_server;

const struct ring_request program_hello = {
	.code = RING_HELLO,
	.hello = { .magic = RING_MAGIC, .major = RING_MAJOR, .features = RING_FEATURES },
};

void
program_server_start(struct engine *e)
{
	program_server = (struct verbs_server){ .engine = e, .config = verbs_config_default };
	program_server.config.limits = program_limits;
	LIST_INIT(&program_server.sessions);
	LIST_INIT(&program_server.closing);
}

void
program_server_stop(void)
{
	assert_true(program_server_is_free());
	verbs_closing_forget(&program_server);
}

int
program_dial_as(uid_t uid)
{
	const struct ucred peer = { getpid(), uid, getgid() };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
				 ends),
		0);
	verbs_session_create(&program_server, ends[1], &peer);
	return ends[0];
}

int
program_dial(void)
{
	return program_dial_as(getuid());
}

void
program_server_run(void)
{
	event_base_loop(engine_event_base(program_server.engine), EVLOOP_NONBLOCK);
}

bool
program_server_is_free(void)
{
	program_server_run();
	return LIST_EMPTY(&program_server.sessions);
}

void
program_say(int fd, const void *request, size_t size, const int *fds, unsigned int num_fds)
{
	assert_int_equal(passing_send(fd, request, size, fds, num_fds, 0), (ssize_t)size);
}

int
program_hear(int fd, struct ring_reply *reply, int *fds, unsigned int *num_fds)
{
	program_server_run();
	return passing_receive(fd, reply, sizeof(*reply), fds, num_fds, MSG_DONTWAIT) > 0
		? reply->error
		: -1;
}

int
program_ask(int fd, const void *request, size_t size, struct ring_reply *reply)
{
	int fds[PASSING_MAX], rc;
	unsigned int num_fds;

	program_say(fd, request, size, NULL, 0);
	rc = program_hear(fd, reply, fds, &num_fds);
	while (num_fds > 0)
		close(fds[--num_fds]);
	return rc;
}

int
program_greet_with(int fd, const struct ring_request *hello, int mirror)
{
	int fds[PASSING_MAX];
	struct ring_reply reply;
	unsigned int num_fds, i;

	program_say(fd, hello, REQUEST_WITH(hello), &mirror, mirror >= 0);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), 0);
	assert_int_equal(num_fds, RING_HELLO_FDS);
	for (i = 0; i < num_fds; i++)
		if (i != 1)
			close(fds[i]);
	return fds[1];
}

int
program_greet(int fd, int mirror)
{
	return program_greet_with(fd, &program_hello, mirror);
}
