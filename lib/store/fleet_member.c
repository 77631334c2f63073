/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* This appliance as a member of the fleet: its lease, and the key m/NAME that has the lease. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

/*
 * Write how far we are, on a condition.
 *
 * @param done  set to whether the condition held
 */
static int
report_if(struct fleet *f, json_t *condition, bool *done, struct error *err)
{
	uint64_t revision = f->position.changed;
	json_t *reply;
	char text[48];
	int rc;

	snprintf(text, sizeof(text), "%" PRIu64 " %016" PRIx64, revision, f->instance);
	rc = etcd_call(f->session, "/v3/kv/txn",
		json_pack("{s:[o], s:[o]}", "compare", condition, "success",
			etcd_put(f->key.self, text, strlen(text), f->lease)),
		FLEET_REQUEST_MS, &reply, err);
	*done = rc == 0 && json_is_true(json_object_get(reply, "succeeded"));
	json_decref(reply);
	if (*done)
		f->reported = revision;
	return rc;
}

/*
 * If it comes late, from the process that we were before, it must not give the key its old lease
 * again, with which the key would end.
 */
int
fleet_report(struct fleet *f, struct error *err)
{
	bool done;
	int rc = report_if(f, etcd_compare(f->key.self, "LEASE", "lease", f->lease), &done, err);

	if (rc == 0 && !done)
		f->named = false; /* our key has gone: the next look takes the name again */
	return rc;
}

/* Whose member's key this is: the instance behind the revision. 0: an older program wrote it */
static uint64_t
instance_of(const struct etcd_kv *kv)
{
	const char *space = strchr((const char *)kv->value, ' ');

	return space != NULL ? strtoull(space + 1, NULL, 16) : 0;
}

/*
 * Take our name with a new lease. The key may still have the lease of the process that we were
 * before; another appliance's keeps us out, or each would take the lead from the other.
 */
static int
take_name(struct fleet *f, struct error *err)
{
	uint64_t as_of = 0, owner = 0;
	struct etcd_header h;
	struct etcd_kvs kvs;
	bool done;
	int rc;

	rc = etcd_range(f->session, f->key.self, NULL, 0, 1, FLEET_REQUEST_MS, &h, &kvs, NULL, err);
	if (rc != 0)
		return rc;
	if (kvs.n > 0) {
		as_of = kvs.at[0].mod_revision;
		owner = instance_of(&kvs.at[0]);
	}
	etcd_kvs_free(&kvs);
	if (owner != 0 && owner != f->instance)
		return error_set(err, EEXIST,
			"another appliance has the name \"%s\": give each a fleet.name of its own. (If it was this one, before its directory or its machine was changed: the old lease ends within %" PRIu32
			" s.)",
			f->config.name, f->config.lease_s);
	rc = report_if(f, etcd_compare(f->key.self, "MOD", "mod_revision", as_of), &done, err);
	if (rc == 0 && !done)
		rc = error_set(err, EAGAIN, "another appliance has taken the name %s meanwhile",
			f->config.name);
	f->named = rc == 0;
	return rc;
}

static void
lease_ended(struct fleet *f)
{
	f->lease = 0;
	f->named = false;
	__atomic_store_n(&f->request_lease, 0, __ATOMIC_RELEASE);
	fleet_step_down(f, "its lease has ended");
}

int
fleet_keep_lease(struct fleet *f, struct error *err)
{
	uint64_t sent = etcd_now_ms();
	int rc;

	if (f->lease != 0) {
		rc = etcd_lease_keep(f->session, f->lease, FLEET_REQUEST_MS, err);
		if (rc == -ENOENT)
			lease_ended(f);
		else if (rc != 0)
			return rc;
	}
	if (f->lease == 0) {
		rc = etcd_lease_grant(f->session, f->config.lease_s, FLEET_REQUEST_MS, &f->lease,
			err);
		if (rc != 0)
			return rc;
	}
	if (!f->named) {
		rc = take_name(f, err);
		if (rc != 0)
			return rc;
	}
	__atomic_store_n(&f->request_lease, f->lease, __ATOMIC_RELEASE);
	__atomic_store_n(&f->lease_end, sent + f->config.lease_s * 1000, __ATOMIC_RELEASE);
	return 0;
}

int
fleet_stay_alive(struct fleet *f, struct error *err)
{
	int rc;

	if (__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		return error_set(err, ECANCELED, "the appliance stops");
	if (etcd_now_ms() + f->config.lease_s * 667 < f->lease_end)
		return 0;
	rc = fleet_keep_lease(f, err);
	return rc == -ENOSPC ? 0 : rc; /* an etcd without room is read as well */
}
