/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CTL_ASK_H
#define TEST_CTL_ASK_H

/**
 * @file
 * One request in, one reply out, without a socket. Replies are checked as text: what a client sees.
 */

#include <jansson.h>

#include "ctl/rpc.h"
#include "fake_engine.h"

struct desk {
	struct engine *e;
	struct rpc_state state;
	uint64_t now;
	int fd; /* goes with the next request; -1: none */
	bool monitoring; /* requests come by the monitoring socket */
	char *reply; /* of the last request; NULL: none */
	json_t *json; /* the same, parsed */
};

int desk_setup(void **state);
int desk_teardown(void **state);

/** Send a line; waits end after a second of the desk's time. @return the reply, or NULL for none */
const char *ask(struct desk *d, const char *line);
/**
 * Call a method with parameters written with ' for ", as printf has it. @return its result; fails
 * if there is none
 */
json_t *call(struct desk *d, const char *method, const char *params, ...)
	__attribute__((format(printf, 3, 4)));
/** The same, of a call that must fail. @return its error */
json_t *call_fails(struct desk *d, const char *method, const char *params, ...)
	__attribute__((format(printf, 3, 4)));
/** Call a method that must fail, with parameters as above. @return the error's message */
const char *fails(struct desk *d, const char *method, const char *params);
/** Element @p i of the list @p list of a result: must be there. */
const json_t *row(const json_t *result, const char *list, size_t i);
/** Member of an object: must be there. */
json_int_t num(const json_t *obj, const char *key);
const char *str(const json_t *obj, const char *key);

#endif
