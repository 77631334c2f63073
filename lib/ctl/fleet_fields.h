/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_FLEET_FIELDS_H
#define CTL_FLEET_FIELDS_H

/**
 * @file
 * The plain fields of struct fleet_status: one list for fleet_status and for the metrics.
 *
 * FIELD(field, type in the reply, metric behind "polca_fleet_", what it means)
 */

#define FLEET_FIELDS(FIELD)                                                                        \
	FIELD(leads, TABLE_BOOL, "leads", "this appliance does, and takes changes")                \
	FIELD(connected, TABLE_BOOL, "connected", "etcd answered the last request")                \
	FIELD(full, TABLE_BOOL, "etcd_full", "etcd has no room, and takes no change")              \
	FIELD(watching, TABLE_BOOL, "watching", "changes of others arrive")                        \
	FIELD(copy_ok, TABLE_BOOL, "copy_ok", "the copy on disk follows them")                     \
	FIELD(revision, TABLE_UINT, "revision", "of the last change that queries see")             \
	FIELD(latest, TABLE_UINT, "latest_revision",                                               \
		"of the last change in etcd, at the last look")                                    \
	FIELD(silent_ms, TABLE_UINT, "silent_ms",                                                  \
		"since etcd's last answer to a look, or the start")                                \
	FIELD(leader_changes, TABLE_UINT, "leader_changes_total",                                  \
		"times that an appliance took the lead, since the start")                          \
	FIELD(disconnects, TABLE_UINT, "disconnects_total", "times that etcd went away")           \
	FIELD(watch_starts, TABLE_UINT, "watch_starts_total", "times that the watch began")        \
	FIELD(loads, TABLE_UINT, "loads_total", "times that the whole database was read")          \
	FIELD(changes, TABLE_UINT, "changes_total",                                                \
		"transactions of this appliance that etcd took")                                   \
	FIELD(changes_failed, TABLE_UINT, "changes_failed_total",                                  \
		"transactions of this appliance that etcd did not take")

#endif
