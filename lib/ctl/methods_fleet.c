/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The fleet that this appliance belongs to. */

#include <errno.h>
#include <string.h>

#include "ctl/fleet_fields.h"
#include "ctl/methods.h"

#define MEMBER(field, t, ...) ROW(struct fleet_member, field, t, __VA_ARGS__)

static const struct table_row fleet_member_rows[] = {
	MEMBER(name, TABLE_CHARS),
	MEMBER(leader, TABLE_BOOL, "it makes the changes"),
	MEMBER(self, TABLE_BOOL, "it is this appliance"),
	MEMBER(revision, TABLE_UINT, "of its copy's last change, as it last reported"),
	MEMBER(lag, TABLE_UINT, "etcd's revisions from there to the last change; 0: it has all"),
	ROW_END,
};

#define ETCD(field, t, ...) ROW(struct fleet_etcd_member, field, t, __VA_ARGS__)

static const struct table_row fleet_etcd_rows[] = {
	ETCD(url, TABLE_CHARS, "its endpoint in the configuration"),
	ETCD(name, TABLE_CHARS, "its member ID"),
	ETCD(answers, TABLE_BOOL, "at the last look"),
	ETCD(leader, TABLE_BOOL, "of etcd's members"),
	ETCD(version, TABLE_CHARS),
	ETCD(db_bytes, TABLE_UINT, "of its database's file, which etcd's quota bounds"),
	ETCD(db_used, TABLE_UINT, "of these: what a defragmentation leaves"),
	ETCD(alarms, TABLE_CHARS, "that it has raised, such as NOSPACE: it has no room"),
	ROW_END,
};

struct fleet_reply {
	uint32_t present;
	bool enabled;
	struct fleet_status s;
	struct table_list members;
	struct table_list etcd;
};
#define FLEET_ENABLED 0x1

#define FLEET(name, field, t, ...)                                                                 \
	ROW_NAMED(struct fleet_reply, name, s.field, t, __VA_ARGS__, .bit = FLEET_ENABLED)

static const struct table_row fleet_status_results[] = {
	ROW(struct fleet_reply, enabled, TABLE_BOOL,
		"whether this appliance belongs to a fleet; if not, there is nothing else"),
	FLEET("name", name, TABLE_CHARS, "of this appliance"),
	FLEET("leader", leader, TABLE_CHARS, "empty: nobody leads"),
	ROW_NAMED(struct fleet_reply, "cluster", s.cluster, TABLE_UINT, "etcd's cluster ID",
		.digits = 16, .bit = FLEET_ENABLED),
	FLEET("etcd_state", state_name, TABLE_STRING,
		"answers; full (it has no room); away; refuses (a certificate, a password or rights of this appliance); not asked (what is wrong is here); left alone (this appliance takes no part); not followed (what it sends cannot be used)"),
	FLEET("reason", reason, TABLE_CHARS, "of the state, if etcd does not serve this appliance"),
#define FLEET_ROW(field, t, metric, help) FLEET(#field, field, t, help),
	FLEET_FIELDS(FLEET_ROW)
#undef FLEET_ROW
		ROW_LIST(struct fleet_reply, members, struct fleet_member, fleet_member_rows,
			.bit = FLEET_ENABLED, .help = "the appliances whose leases live"),
	ROW_LIST(struct fleet_reply, etcd, struct fleet_etcd_member, fleet_etcd_rows,
		.bit = FLEET_ENABLED, .help = "etcd's members, one looked at after the other"),
	ROW_END,
};

static int
fleet_status_get(struct rpc_call *call)
{
	struct fleet_reply *reply = call->reply;
	struct fleet_etcd_member *etcd;
	struct fleet_member *member;
	unsigned int i;

	reply->enabled = engine_fleet_status(call->e, &reply->s);
	reply->present = reply->enabled ? FLEET_ENABLED : 0;
	for (i = 0; i < reply->s.num_members; i++) {
		member = ADD(call, &reply->members, struct fleet_member);
		if (member == NULL)
			return -ENOMEM;
		*member = reply->s.member[i];
	}
	for (i = 0; i < reply->s.num_etcd; i++) {
		etcd = ADD(call, &reply->etcd, struct fleet_etcd_member);
		if (etcd == NULL)
			return -ENOMEM;
		*etcd = reply->s.etcd[i];
	}
	return 0;
}

static int
fleet_accept(struct rpc_call *call)
{
	return engine_fleet_accept(call->e, &call->err);
}

const struct rpc_method methods_fleet[] = {
	{ "fleet_status", fleet_status_get, params_none, 0,
		"The fleet that shares the SA's database: who leads, how far each appliance is, etcd.",
		"polca-ctl fleet status", RESULTS(fleet_status_results, struct fleet_reply),
		.reads = true },
	{ "fleet_accept", fleet_accept, params_none, 0,
		"Let an etcd without records replace this appliance's copy, which fleet_status and the log say was refused.",
		"polca-ctl fleet accept" },
	{ NULL },
};
