/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Alternate paths and Automatic Path Migration: seed 001 (on exhaustion), IBA 17.2.8.
 *
 *   MIGRATED  The QP sends M 1. Modify to REARM, with an alternate path loaded: REARM.
 *   REARM     The QP sends M 0. A packet with M 0 on the primary path: ARMED.
 *   ARMED     The QP sends M 0. Retries exhausted, modify to MIGRATED, or a packet with M 1 on the
 *             alternate path: the alternate path becomes the QP's path, EVENT_PATH_MIG, MIGRATED.
 *             A packet with M 1 on any other path is dropped, EVENT_PATH_MIG_ERR.
 *
 * A migration reloads the retry counter and takes the alternate path's timeout. Packets in flight
 * are sent again when the timer expires, or at once if exhausted retries caused the migration.
 *
 * Choices, where the rules leave some or peers differ:
 * - a QP that never was in REARM sends M as configured, else 1 on native IB and 0 on RoCE
 *   (rc-transport 1), and accepts either M. Only REARM and ARMED give a received M a meaning, so a
 *   peer that always sends M 0 arms the QP although it cannot migrate itself;
 * - RoCE has alternate paths too (Linux has them on native IB only);
 * - a migration uses up the alternate path, and REARM without one is refused;
 * - REARM while ARMED needs a new alternate path, which must be armed anew; a modify to the present
 *   state, MIGRATED or REARM, changes nothing;
 * - EVENT_PATH_MIG_ERR is raised once per REARM, so that late or forged packets cannot flood the
 *   consumer with events;
 * - a wrong P_Key on the alternate path counts as P_Key violation and raises no EVENT_PATH_MIG_ERR.
 */

#include "rc/qp_directory.h"

static void
forget_alternate(struct rc_qp *qp)
{
	qp->alt_loaded = false;
	memset(&qp->attr.alt, 0, sizeof(qp->attr.alt));
}

void
rc_migration_reset(struct rc_qp *qp)
{
	qp->mig_state = MIG_MIGRATED;
	qp->migreq = false; /* rc_migration_start() sets it before the first packet */
	qp->mig_err = false;
	forget_alternate(qp);
}

void
rc_migration_start(struct rc_qp *qp)
{
	enum migreq m = qp->init.migreq;

	qp->migreq = m == MIGREQ_1 || (m == MIGREQ_OF_LINK && qp->attr.av.encap == ENCAP_IB);
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
		qp->attr.alt.av.port = qp->attr.alt.port;
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

	a->av = a->alt.av;
	a->neighbour = a->alt.neighbour;
	a->port = a->alt.port;
	a->pkey_index = a->alt.pkey_index;
	a->pkey = a->alt.pkey;
	a->sgid_index = a->alt.sgid_index;
	a->src_path_bits = a->alt.src_path_bits;
	a->timeout = a->alt.timeout;
	forget_alternate(qp);

	qp->pkey = a->pkey;
	qp->mig_state = MIG_MIGRATED;
	qp->migreq = true;
	rc_qp_path(qp);
	rc_qp_changed(qp);
	rc_requester_migrated(qp);
	rc_rp_release(qp);
	rc_count(qp, path_migrations);
	rc_qp_event(qp, EVENT_PATH_MIG);
}

void
rc_migration_refused(struct rc_qp *qp)
{
	if (qp->mig_err)
		return;
	qp->mig_err = true;
	rc_qp_event(qp, EVENT_PATH_MIG_ERR);
}
