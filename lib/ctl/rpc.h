/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_RPC_H
#define CTL_RPC_H

/**
 * @file
 * Methods as rows, and a call from its line of text to its reply. Knows nothing of sockets.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "ctl/ctl.h"
#include "ctl/limit_lines.h"
#include "table/table.h"

#define RPC_DEPTH_MAX 16 /* brackets open at once in a request; our deepest needs 6 */

enum rpc_code { /* JSON-RPC 2.0 */
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	/* a handler's -errno stands as it is, with its name in data.errno */
};

struct rpc_call;
struct rpc_state;

/**
 * Carry a call out, or a slice of it.
 *
 * @return 0: call->reply is the answer; a negative errno: call->err says why; RPC_AGAIN: there is
 *         more to do, call again at once; RPC_WAIT: nothing to do yet, call again when the engine
 *         wakes the control thread (engine_await()), and at call->until at the latest
 */
typedef int (*rpc_handler)(struct rpc_call *call);
#define RPC_AGAIN 1
#define RPC_WAIT  2

/**
 * The next row of a list.
 *
 * @param cursor  where to go on; moved behind the row
 * @param row  zeroed structure of the list's item
 * @return 1: there is one; 0: there are none left; a negative errno: call->err says why
 */
typedef int (*rpc_next)(struct rpc_call *call, uint64_t *cursor, void *row);

/** A verb whose only argument is the number of an object. */
typedef int rpc_verb(struct engine *e, uint32_t number, struct error *err);

/** One row of the method table. Tables end with a row without name. */
struct rpc_method {
	const char *name; /**< noun_verb */
	rpc_handler handler;
	const struct table_row *params;
	size_t args_size; /**< of the structure that params decode into */
	const char *help; /**< one sentence, then more where needed */
	const char *example; /**< as polca-ctl would be called */
	/** The client closed before it read the reply: undo what was done. NULL: nothing to undo */
	void (*abandon)(struct rpc_call *call);
	/** Of the structure that the handler fills; NULL: the result is an empty object. */
	const struct table_row *results;
	size_t result_size;
	rpc_next next; /**< of a method that lists objects page by page */
	rpc_verb *verb; /**< of a method that is one of the engine's verbs for one object */
	bool reads; /**< it changes nothing: the monitoring socket has it */
};

/** The result of a method: its rows, and the structure that they describe. */
#define RESULTS(rows, S) .results = rows, .result_size = sizeof(S)

struct rpc_call {
	struct engine *e;
	struct rpc_state *state;
	const struct rpc_method *method;
	void *args;
	void *reply; /**< zeroed structure of the method's results, for the handler to fill */
	json_t *data; /**< members to add to an error's data, or NULL */
	struct error err;
	int fd; /**< the regular file that the client sent; -1: none */
	uint64_t start; /**< milliseconds, when the call came */
	uint64_t now;
	uint64_t until; /**< the handler's own when it waits: it must be called by then */
	uint64_t progress; /**< the handler's own, between slices */
	struct arena arena;
	bool monitoring; /**< it came by the monitoring socket: it may change nothing, see no key */
	uint64_t *next_event; /**< number of the first event that this reader has not read yet */

	/* rpc.c's own */
	json_t *request;
	json_t *id; /**< NULL: a notification, no reply */
	bool done;
	json_t *result; /**< .reply as JSON */
	int code; /**< 0: result stands */
	char text[1024];
};

/** What methods remember from one call to another. */
struct rpc_state {
	struct engine *engine;
	json_t *start_psn; /**< QPN as text -> start PSN chosen at qp_create */
	struct event_log *events;
	uint64_t next_event; /**< of calls that come by no connection */
	config_reload_fn reload; /**< NULL: there is no configuration */
	void *reload_arg;
	struct limit_lines limit_lines; /**< ctl_log_limit() */
};

int rpc_state_init(struct rpc_state *s, struct engine *e);
void rpc_state_fini(struct rpc_state *s);

/** Method tables by area, in the order of help and documents; the list ends with NULL. */
struct rpc_area {
	const char *title;
	const struct rpc_method *methods;
};
extern const struct rpc_area rpc_areas[];
const struct rpc_method *rpc_find(const char *name);

/**
 * Read one line.
 *
 * @param fd  a descriptor that came with it, or -1; a call that has a parameter of form_file takes
 *            it and leaves -1
 * @return a call, done already if it was refused; NULL: no memory
 */
struct rpc_call *rpc_open(struct rpc_state *s, const char *line, size_t len, int *fd, uint64_t now);
/**
 * The call came by the monitoring socket: refuse it if its method changes anything, and leave
 * secret rows out of its result.
 */
void rpc_only_read(struct rpc_call *call);
/** A call that is refused before its line could be read. */
struct rpc_call *rpc_refuse(enum rpc_code code, const char *text);
/** @return 0: done; RPC_AGAIN or RPC_WAIT */
int rpc_step(struct rpc_call *call, uint64_t now);
/**
 * The reply's line, newline included, to be freed by the caller.
 *
 * @param max  longer replies become an error
 * @return NULL: a notification has no reply
 */
char *rpc_reply(const struct rpc_call *call, size_t max, size_t *len);
void rpc_close(struct rpc_call *call);
/** True if the call succeeded, has a reply, and its method can undo it. */
bool rpc_can_undo(const struct rpc_call *call);
/** Undo such a call because its client closed before it read the reply. rpc_close() must follow. */
void rpc_undo(struct rpc_call *call);

/** Rows of a method's result. */
const struct table_row *rpc_results(const struct rpc_method *m);
/** JSON schema of a method's result. */
json_t *rpc_result_schema(const struct rpc_method *m);
/** The method table as rpc_list returns it. @param name  one method, or NULL for all */
json_t *rpc_describe(const char *name, bool schema);

#endif
