/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Fuzz the RPC server with lines of a control-socket client; the engine has no lcores. */

#include <stdlib.h>
#include <string.h>

#include "ctl/rpc.h"
#include "fake_engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
one_line(struct rpc_state *state, const char *line, size_t len, uint64_t now)
{
	struct rpc_call *call = rpc_open(state, line, len, &(int){ -1 }, now);
	size_t reply_len;
	char *reply;

	if (call == NULL)
		return;
	for (int i = 0; i < 100 && rpc_step(call, now) != 0; i++)
		now += 1000;
	reply = rpc_reply(call, 1 << 20, &reply_len);
	if (reply != NULL && (reply_len == 0 || reply[reply_len - 1] != '\n'))
		abort(); /* a reply must be one line */
	free(reply);
	rpc_close(call);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine *e = fake_engine_create();
	struct rpc_state state;
	const char *at = (const char *)data, *end = at + size;
	uint64_t now = 1000;

	if (e == NULL || rpc_state_init(&state, e) < 0)
		abort();
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = nl != NULL ? (size_t)(nl - at) : (size_t)(end - at);
		char *line = malloc(len + 1); /* exactly as long, so that ASan finds reads beyond */

		if (line == NULL)
			break;
		memcpy(line, at, len);
		line[len] = '\0';
		one_line(&state, line, len, now += 10);
		free(line);
		at += len + 1;
	}
	rpc_state_fini(&state);
	fake_engine_destroy(e);
	return 0;
}
