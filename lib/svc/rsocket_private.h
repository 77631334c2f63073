/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_RSOCKET_PRIVATE_H
#define SVC_RSOCKET_PRIVATE_H

/**
 * @file
 * What rsocket.c and rsocket_send.c share.
 */

#include "svc/rsocket.h"
#include "svc/rsocket_wire.h"

#define CREDITS      384 /* as the library */
#define CONTROLS     4 /* messages without credit that either side may have under way */
#define SENDS        64
#define LIST_ENTRIES 2
#define AT_BUFFER    64 /* of a place: the list, then the receive buffer */

enum wr_kind {
	WR_DATA,
	WR_CONTROL,
	WR_GOODBYE,
};

static inline struct rsocket_service *
rsocket_service_of(struct svc_conn *c)
{
	return svc_state(svc_conn_service(c));
}

/* A half that is free, or messages enough. */
void rsocket_grant(struct svc_conn *c);
/* The last word, once, if it may be said now. */
void rsocket_goodbye(struct svc_conn *c);

#endif
