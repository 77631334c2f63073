/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Events and their lines in the log: the text, the level, and that there is one line for each. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "cm/codes.h"
#include "engine/worker.h"
#include "node.h"

#define PEER_GID                                                                                   \
	{                                                                                          \
		.raw = { [10] = 0xff, 0xff, 10, 0, 0, 9 }                                          \
	}
#define PEER_MAC                                                                                   \
	{                                                                                          \
		2, 0, 0, 0, 0, 9                                                                   \
	}

/* Of port1, with a peer's QP 0x22; the members given are added, or take the place of these. */
#define CONNECTION(...)                                                                            \
	{                                                                                          \
		.peer = PEER_GID, .service_id = 0x1061c06, .peer_qpn = 0x22, .port = 1,            \
		##__VA_ARGS__                                                                      \
	}

static const struct event_case {
	struct event event;
	uint32_t level;
	const char *line;
} cases[] = {
	{ { .type = EVENT_NEIGHBOUR_MOVED, .element = 0, .gid = PEER_GID, .mac = PEER_MAC },
		RTE_LOG_NOTICE,
		"engine: port0: 10.0.0.9 is a neighbour that has moved to 02:00:00:00:00:09\n" },
	{ { .type = EVENT_NEIGHBOUR_LOST, .element = 1, .gid = PEER_GID }, RTE_LOG_NOTICE,
		"engine: port1: 10.0.0.9 is a neighbour that does not answer any more\n" },
	{ { .type = EVENT_ADDRESS_CONFLICT, .element = 0, .gid = PEER_GID, .mac = PEER_MAC },
		RTE_LOG_WARNING,
		"engine: port0: 10.0.0.9 is our address, but also used by 02:00:00:00:00:09\n" },
	{ { .type = EVENT_PEER_PAUSED, .element = 0, .gid = PEER_GID }, RTE_LOG_WARNING,
		"engine: port0: 10.0.0.9 has used wrong keys 7 times within a minute: no new connections for 60 s\n" },
	{ { .type = EVENT_CQ_ERR, .element = 3 }, RTE_LOG_ERR,
		"engine: CQ 3 has overrun: its queue pairs go to ERR\n" },
	{ { .type = EVENT_PATH_MIG, .element = 0x11 }, RTE_LOG_NOTICE,
		"engine: QP 0x11 uses its alternate path now\n" },
	{ { .type = EVENT_PATH_MIG_ERR, .element = 0x11 }, RTE_LOG_WARNING,
		"engine: QP 0x11: its peer tried a path that is not the alternate one\n" },
	{ { .type = EVENT_LID_CHANGE, .element = 1 }, RTE_LOG_NOTICE,
		"engine: port1: LID_CHANGE, by subnet management\n" },
	{ { .type = EVENT_GID_CHANGE, .element = 1, .gid = PEER_GID }, RTE_LOG_NOTICE,
		"engine: port1 has the address 10.0.0.9, too\n" },
	{ { .type = EVENT_CONNECTION_MADE, .element = 0x11, .connection = CONNECTION() },
		RTE_LOG_INFO,
		"engine: connection of QP 0x11 on port1 with 10.0.0.9 QP 0x22, service ID 0x1061c06 is made\n" },
	{ { .type = EVENT_CONNECTION_REFUSED,
		  .element = 0x11,
		  .connection = CONNECTION(.reason = CM_REJ_NO_RESOURCES, .unreported = 2) },
		RTE_LOG_NOTICE,
		"engine: connection of QP 0x11 on port1 with 10.0.0.9 QP 0x22, service ID 0x1061c06 is refused: no resources; 2 others were not reported\n" },
	{ { .type = EVENT_CONNECTION_ENDED,
		  .element = 0x11,
		  .connection =
			  CONNECTION(.end = CM_END_REJECTED, .reason = CM_REJ_STALE, .dlid = 7) },
		RTE_LOG_INFO,
		"engine: connection of QP 0x11 on port1 with lid:7 QP 0x22, service ID 0x1061c06 has ended: the peer has rejected it: stale connection\n" },
	/* another line tells of these: lib/link's, QP_ERROR's, the heartbeat's */
	{ { .type = EVENT_PORT_ERR, .element = 0 }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_QP_ACCESS_ERR, .element = 0x11 }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_QP_FATAL, .element = 0x11 }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_WORKER_STALL, .element = 0 }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_CQ_COMPLETION, .element = 3 }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_FLEET_LEADS }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_FLEET_AWAY }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_FLEET_FULL }, RTE_LOG_DEBUG, "" },
	{ { .type = EVENT_FLEET_REFUSED }, RTE_LOG_DEBUG, "" },
};

static int
event_lines_start(void **state)
{
	struct engine_config *c = node_config();

	c->key_errors = 7;
	c->key_error_pause_s = 60;
	*state = node_create();
	return 0;
}

static int
event_lines_end(void **state)
{
	node_stop(*state, 0);
	return 0;
}

/* Take one event that was raised. The caller frees the lines of the log. */
static char *
take_event(struct engine *e, struct event *ev)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	rte_openlog_stream(f);
	assert_int_equal(engine_events(e, ev, 1, NULL), 1);
	rte_openlog_stream(NULL);
	fclose(f);
	return text;
}

static void
test_lines_of_events(void **state)
{
	struct engine *e = *state;
	char text[EVENT_TEXT_MAX], *lines;
	struct event ev;
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		events_put_control(e, &cases[i].event);
		lines = take_event(e, &ev);
		if (strcmp(lines, cases[i].line) != 0)
			fail_msg("logged:\n%sexpected:\n%s", lines, cases[i].line);
		assert_int_equal(engine_event_text(e, &ev, text, sizeof(text)), cases[i].level);
		assert_true(ev.time > UINT64_C(1600000000) * 1000000000);
		free(lines);
	}
}

/* Beyond the rate lines are counted, and the next one says how many there were. */
static void
test_lines_left_out_are_counted(void **state)
{
	struct engine *e = *state;
	unsigned int i, logged = 0;
	struct event ev;
	char *lines, expected[80];

	for (i = 0; i < 150; i++) {
		events_put_control(e, &cases[0].event);
		lines = take_event(e, &ev);
		logged += lines[0] != '\0';
		free(lines);
	}
	assert_in_range(logged, 100, 120); /* a hundred at once, and 20 a second */
	pause_ms(100);
	events_put_control(e, &cases[0].event);
	lines = take_event(e, &ev);
	snprintf(expected, sizeof(expected), "engine: %u lines were not logged:", 150 - logged);
	assert_non_null(strstr(lines, expected));
	free(lines);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines_of_events, event_lines_start,
			event_lines_end),
		cmocka_unit_test_setup_teardown(test_lines_left_out_are_counted, event_lines_start,
			event_lines_end),
	};

	return cmocka_run_group_tests_name("events in the log", tests, eal_setup, eal_teardown);
}
