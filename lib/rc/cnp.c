/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Notification point of RoCEv2 congestion management: a packet with ECN CE is answered by a CNP
 * (rc-transport 10).
 */

#include "rc/qp_directory.h"
#include "wire/put.h"

/* Least time between two CNPs of a QP (choice; NICs use 4 to 50 us). */
#define CNP_INTERVAL_NS 50000

void
rc_congestion(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;
	static const uint8_t payload[16]; /* zero bytes (rc-transport 2) */
	struct tx_headers h;

	rc_count(qp, np_ecn_marked_roce_packets);
	if (w->now < qp->next_cnp)
		return;
	put_bth_of(h.bytes, qp->bth, OPCODE_CNP, 0, 0, false);
	h.bytes[BTH_RESV8A] = BTH_BECN; /* a CNP is the congestion notification (BECN) */
	/* if the sink is full the next packet with ECN CE tries again */
	if (!rc_send_bare(qp, &h, payload, sizeof(payload)))
		return;
	qp->next_cnp = w->now + rc_ns_to_time(w->dev, CNP_INTERVAL_NS);
	rc_count(qp, np_cnp_sent);
}
