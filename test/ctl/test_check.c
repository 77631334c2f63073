/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Wrong calls, and damage to a client of the control socket, end a build with checks. */

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../checked.h"
#include "ask.h"
#include "ctl/client.h"
#include "ctl/event_log.h"

#define LINE "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cq_list\"}"

static struct rpc_call *
open_call(struct desk *d)
{
	struct rpc_call *c = rpc_open(&d->state, LINE, strlen(LINE), &d->fd, 0);

	assert_non_null(c);
	return c;
}

static void
reply_to(void *call, void *arg)
{
	size_t len;

	(void)arg;
	free(rpc_reply(call, 1 << 20, &len));
}

static void
undo(void *call, void *arg)
{
	(void)arg;
	rpc_undo(call);
}

static void
test_a_call_that_is_not_done_has_no_reply(void **state)
{
	struct rpc_call *c = open_call(*state);

	assert_int_equal(ends_process(reply_to, c, NULL), CHECKED);
	assert_int_equal(rpc_step(c, 0), 0);
	assert_false(ends_process(reply_to, c, NULL));
	rpc_close(c);
}

/* Other builds would call what such a method does not have. */
static void
test_a_call_that_only_reads_is_not_undone(void **state)
{
	struct rpc_call *c = open_call(*state);

	assert_int_equal(rpc_step(c, 0), 0);
	assert_false(rpc_can_undo(c));
	if (CHECKED)
		assert_true(ends_process(undo, c, NULL));
	rpc_close(c);
}

static void
read_event(void *log, void *seq)
{
	event_log_at(log, *(uint64_t *)seq);
}

static void
test_an_event_that_is_not_there_is_not_read(void **state)
{
	struct event_log *log = event_log_create();
	uint64_t before, end;

	(void)state;
	assert_non_null(log);
	end = event_log_end(log);
	before = event_log_first(log) - 1;
	assert_int_equal(ends_process(read_event, log, &end), CHECKED);
	assert_int_equal(ends_process(read_event, log, &before), CHECKED);
	event_log_destroy(log);
}

/* --- a client --- */

struct visit {
	struct desk *desk;
	struct client *client;
};

static void
run_client(void *v, void *arg)
{
	struct visit *visit = v;

	(void)arg;
	client_run(visit->client, &visit->desk->state, 1);
}

static void
scan_beyond_the_input(void *v, void *arg)
{
	((struct visit *)v)->client->scanned = 1;
	run_client(v, arg);
}

static void
keep_a_call_that_is_not_undone(void *v, void *call)
{
	((struct visit *)v)->client->answered = call;
	run_client(v, NULL);
}

static void
give_the_monitor_a_file(void *v, void *arg)
{
	struct client *client = ((struct visit *)v)->client;

	evbuffer_add(client->in, "{", 1); /* it stays as long as its line may go on */
	client->passed_fd = client->fd;
	client->read_only = true;
	run_client(v, arg);
}

static void
test_damage_to_a_client_is_found(void **state)
{
	struct visit v = { .desk = *state };
	struct event_base *base = event_base_new();
	struct rpc_call *reads = open_call(*state);
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	v.client = client_create(pair[0], base, &ctl_limits_default, 0);
	assert_non_null(v.client);
	assert_int_equal(rpc_step(reads, 0), 0);
	assert_false(ends_process(run_client, &v, NULL));
	assert_int_equal(ends_process(scan_beyond_the_input, &v, NULL), CHECKED);
	assert_int_equal(ends_process(keep_a_call_that_is_not_undone, &v, reads), CHECKED);
	assert_int_equal(ends_process(give_the_monitor_a_file, &v, NULL), CHECKED);
	rpc_close(reads);
	client_destroy(v.client);
	close(pair[1]);
	event_base_free(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_call_that_is_not_done_has_no_reply,
			desk_setup, desk_teardown),
		cmocka_unit_test_setup_teardown(test_a_call_that_only_reads_is_not_undone,
			desk_setup, desk_teardown),
		cmocka_unit_test(test_an_event_that_is_not_there_is_not_read),
		cmocka_unit_test_setup_teardown(test_damage_to_a_client_is_found, desk_setup,
			desk_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
