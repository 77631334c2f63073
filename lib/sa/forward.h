/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_FORWARD_H
#define SA_FORWARD_H

/**
 * @file
 * A change that one appliance of a fleet passes to another one: the request and its answer as
 * bytes. The first byte is the version of the form; an appliance that does not know it refuses the
 * bytes. Numbers are big endian.
 */

#include <stddef.h>
#include <stdint.h>

#include "sa/staged.h"
#include "sa/write.h"

#define FORWARD_VERSION     1
#define FORWARD_CONFIG_MAX  (64u << 10) /**< bytes of a Config's records; more are staged */
#define FORWARD_REQUEST_MAX (1024 + FORWARD_CONFIG_MAX)
#define FORWARD_ANSWER_MAX  (16 + SA_RECORD_MAX)
#define FORWARD_ID_LEN      84 /**< characters, without the NUL */

/**
 * Write a request, and the identity of its SA transaction in hexadecimal: requester, its QP, class
 * version, method, attribute and TID, and a sum of what it asks for. Whichever appliance a client
 * repeats a request to, the identity is the same; a client that uses a TID for another request
 * gets another one.
 *
 * @param staged  of a Config that is larger than FORWARD_CONFIG_MAX: its parts, whose length and
 *   sum stand for the records in the identity; else NULL
 * @param bytes  FORWARD_REQUEST_MAX bytes
 * @return length; 0: its Config is too large
 */
size_t forward_put_request(const struct sa_write *w, const struct staged_head *staged,
	uint8_t *bytes, char id[FORWARD_ID_LEN + 1]);
/**
 * Read a request. The records of a Config stay where they are.
 *
 * @retval -EPROTONOSUPPORT  it has a form that this program does not know
 * @retval -EBADMSG  it is no request
 */
int forward_get_request(struct sa_write *w, const uint8_t *bytes, size_t len);
/** Write the answer of an executed change. @param bytes  FORWARD_ANSWER_MAX bytes */
size_t forward_put_answer(const struct sa_write *w, uint8_t *bytes);
/** Read the answer into the change that it answers. Errors as forward_get_request(). */
int forward_get_answer(struct sa_write *w, const uint8_t *bytes, size_t len);

/* --- kept events --- */

#define FORWARD_EVENTS_MAX (4 + WRITE_EVENTS * (1 + SA_TRAP_LEN)) /**< bytes */

/** Write events, @p n up to WRITE_EVENTS. @param bytes  FORWARD_EVENTS_MAX bytes. @return length */
size_t forward_put_events(const struct sa_event *events, unsigned int n, uint8_t *bytes);
/**
 * Read events into WRITE_EVENTS of them. @return their number, or an error as
 * forward_get_request()
 */
int forward_get_events(struct sa_event *events, const uint8_t *bytes, size_t len);

#endif
