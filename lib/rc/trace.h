/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_TRACE_H
#define RC_TRACE_H

/**
 * @file
 * Private to lib/rc: recording of a QP's steps (base/trace.h, rc_qp_trace_switch()).
 *
 * A QP that is not recorded pays nothing: recording takes it out of the common cases, which look at
 * qp.known and qp.apart anyway. The general functions behind them call the functions below:
 *
 *   received packet   packet_known() is false, so receive_unknown() records the packet;
 *                     rc_receive() adds the verdict (RC_RECORDS in rc_worker.errors)
 *   sent packet       a transmit sink that records is in place of the worker's for the step
 *   timer, modify, failure: not on the path of packets, they look at qp.trace
 */

#include "base/verdict.h"
#include "rc/verbs_types.h"
#include "wire/packet.h"
#include "wire/tx.h"

struct rc_qp;
struct rc_worker;

/** Sends what a recorded QP sends in a step, and records it. */
struct rc_trace_sink {
	struct tx_sink sink; /* first: trace.c casts it */
	struct tx_sink *to; /* the worker's own; NULL: no step is recorded now */
	struct rc_qp *qp;
	struct trace_step *received; /* the packet that the step handles, or NULL */
	const uint8_t *bth; /* of the packet that was reserved */
	uint32_t len;
};

/** For rc_trace_sink.sink */
extern const struct tx_sink rc_recording_sink;
/** A step of a recorded QP begins: what it sends is recorded until rc_trace_end(). */
void rc_trace_begin(struct rc_qp *qp);
void rc_trace_end(struct rc_worker *w);
/** As rc_trace_begin(), for a packet; rc_trace_verdict() ends the step. */
void rc_trace_received(struct rc_qp *qp, const struct packet *pkt);
void rc_trace_verdict(struct rc_worker *w, enum verdict v);
/** The QP's timer expired: the RNR wait is over, or no answer came in time. */
void rc_trace_timer(struct rc_qp *qp);
/** A consumer's modify. */
void rc_trace_modified(struct rc_qp *qp, enum qp_state from);
/** The QP fails for the reason in qp.failure. */
void rc_trace_failed(struct rc_qp *qp);
/** A new QP: record it if all QPs are to be recorded. */
void rc_trace_create(struct rc_qp *qp);
/** Stop recording, and free the steps. */
void rc_trace_free(struct rc_qp *qp);
/** Print the QP's steps, a line each, or that they were not recorded. */
void rc_trace_print(FILE *f, const struct rc_qp *qp);

#endif
