/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Notification point of RoCEv2 congestion management: a packet with ECN CE is answered by a CNP
 * (rc-transport 10).
 */

#include "rc/qp_directory.h"

/* Least time between two CNPs of a QP (choice; NICs use 4 to 50 us). */
#define CNP_INTERVAL_NS 50000
#define CNP_PAYLOAD     16 /* zero bytes (rc-transport 2) */

void
rc_congestion(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;
	struct wire_headers h = { .opcode = OPCODE_CNP }; /* wire_build sets BECN */

	rc_count(qp, np_ecn_marked_roce_packets, 1);
	/* if the sink is full the next packet with ECN CE tries again */
	if (w->now < qp->next_cnp || !rc_send_bare(qp, h, CNP_PAYLOAD))
		return;
	qp->next_cnp = w->now + rc_ns_to_time(w->dev, CNP_INTERVAL_NS);
	rc_count(qp, np_cnp_sent, 1);
}
