/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Alternate paths and Automatic Path Migration: seed 001 (on exhaustion), IBA 17.2.8.
 *
 *   MIGRATED  M 1 is sent. Asked to, with an alternate path loaded: REARM.
 *   REARM     M 0 is sent. A packet with M 0 came by the path in use: ARMED.
 *   ARMED     M 0 is sent. Retries out, asked to, or a packet with M 1 came by the alternate path:
 *             that path is the QP's from now on, EVENT_PATH_MIG, MIGRATED. A packet with M 1 by any
 *             other path is dropped, EVENT_PATH_MIG_ERR.
 *
 * A migration reloads the retry counter and takes the alternate path's timeout; what is in flight
 * is not sent again before the timer says so, unless it was the retries that ran out.
 *
 * Choices, where the rules leave some or peers differ:
 * - a QP that was never asked to REARM sends M as configured, else 1 on native IB and 0 on RoCE
 *   (rc-transport 1), and whatever M its peer sends is good. Only that the QP is in REARM gives a
 *   received M a meaning, so a peer that always sends 0 arms us though it cannot follow;
 * - RoCE too (Linux has alternate paths on native IB alone);
 * - a migration uses the alternate path up, and REARM without one is refused;
 * - REARM while ARMED only together with a new alternate path, which must be armed anew; asked for
 *   the state it is in already, MIGRATED or REARM, a QP stays as it is;
 * - EVENT_PATH_MIG_ERR once for each time the QP was asked to arm, so that no stream of late or
 *   forged packets becomes a stream of events;
 * - a wrong P_Key on the alternate path is a P_Key violation and no EVENT_PATH_MIG_ERR.
 */

#include <errno.h>
#include <string.h>

#include "rc/dev.h"

static void
forget_alternate(struct rc_qp *qp)
{
	struct qp_attr *a = &qp->attr;

	qp->alt_loaded = false;
	memset(&a->alt_av, 0, sizeof(a->alt_av));
	a->alt_neighbour = 0;
	a->alt_pkey_index = 0;
	a->alt_pkey = 0;
	a->alt_port = 0;
	a->alt_sgid_index = 0;
	a->alt_src_path_bits = 0;
	a->alt_timeout = 0;
}

void
rc_migration_reset(struct rc_qp *qp)
{
	qp->mig_state = MIG_MIGRATED;
	qp->migreq = false; /* nothing is sent before rc_migration_start() */
	qp->mig_err = false;
	forget_alternate(qp);
}

void
rc_migration_start(struct rc_qp *qp)
{
	enum migreq m = qp->init.migreq;

	qp->migreq = m == MIGREQ_1 ||
		(m == MIGREQ_OF_LINK && qp->attr.av.encap == ENCAP_IB);
}

int
rc_migration_check(const struct rc_qp *qp, const struct qp_attr *attr, uint32_t mask,
	struct error *err)
{
	bool loads = mask & QP_ATTR_ALT_PATH;

	if ((mask & QP_ATTR_PATH_MIG_STATE) == 0)
		return 0;
	switch (attr->path_mig_state) {
	case MIG_REARM:
		if (!qp->alt_loaded && !loads)
			return error_set(err, EINVAL,
				"path_mig_state: REARM needs an alternate path, and none is loaded");
		if (qp->mig_state == MIG_ARMED && !loads)
			return error_set(err, EINVAL,
				"path_mig_state: got REARM, but the alternate path is ARMED already");
		return 0;
	case MIG_MIGRATED:
		if (qp->mig_state == MIG_REARM)
			return error_set(err, EINVAL,
				"path_mig_state: got MIGRATED, but the queue pair is in REARM: its peer is not armed yet");
		return 0;
	default:
		return error_set(err, EINVAL, "path_mig_state: got %s, allowed: MIGRATED, REARM",
			mig_state_name(attr->path_mig_state));
	}
}

void
rc_migration_modify(struct rc_qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	if (mask & QP_ATTR_ALT_PATH) {
		qp->alt_loaded = true;
		qp->attr.alt_av.port = qp->attr.alt_port;
	}
	if ((mask & QP_ATTR_PATH_MIG_STATE) == 0)
		return;
	if (attr->path_mig_state == MIG_REARM) {
		qp->mig_state = MIG_REARM;
		qp->migreq = false;
		qp->mig_err = false;
	} else if (qp->mig_state == MIG_ARMED) {
		rc_migrate(qp);
	}
}

void
rc_migrate(struct rc_qp *qp)
{
	struct qp_attr *a = &qp->attr;

	a->av = a->alt_av;
	a->neighbour = a->alt_neighbour;
	a->port = a->alt_port;
	a->pkey_index = a->alt_pkey_index;
	a->pkey = a->alt_pkey;
	a->sgid_index = a->alt_sgid_index;
	a->src_path_bits = a->alt_src_path_bits;
	a->timeout = a->alt_timeout;
	forget_alternate(qp);

	qp->pkey = a->pkey;
	qp->mig_state = MIG_MIGRATED;
	qp->migreq = true;
	rc_qp_path(qp);
	rc_qp_known(qp);
	rc_requester_migrated(qp);
	rc_rp_release(qp);
	rc_count(qp, path_migrations, 1);
	rc_event(qp->worker, EVENT_PATH_MIG, qp->qpn);
}

void
rc_migration_refused(struct rc_qp *qp)
{
	if (qp->mig_err)
		return;
	qp->mig_err = true;
	rc_event(qp->worker, EVENT_PATH_MIG_ERR, qp->qpn);
}
