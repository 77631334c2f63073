/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_RSOCKET_PRIVATE_H
#define SVC_RSOCKET_PRIVATE_H

/**
 * @file
 * Shared by rsocket.c and rsocket_send.c.
 */

#include "svc/rsocket.h"
#include "svc/rsocket_wire.h"

#define CREDITS      384 /* as librdmacm */
#define CONTROLS     4 /* messages without credit that each side may have outstanding */
#define SENDS        64
#define LIST_ENTRIES 2
#define AT_BUFFER    64 /* offset of the receive buffer in a place's buffer, after the list */

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

/* Grant the peer a free half of the buffer or new credits, if due. */
void rsocket_grant(struct svc_conn *c);
/* Send the disconnect message, once, if it is wanted and a control message may be sent. */
void rsocket_goodbye(struct svc_conn *c);

#endif
