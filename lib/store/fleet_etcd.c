/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* etcd's own members, for people: all at the first look, and then one at each. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_private.h"

#define STATUS_MS 300

static struct fleet_etcd_member *
etcd_member(struct fleet_status *s, const char *url)
{
	unsigned int i;

	for (i = 0; i < s->num_etcd; i++)
		if (strcmp(s->etcd[i].url, url) == 0)
			return &s->etcd[i];
	strcpy(s->etcd[i].url, url); /* both are FLEET_TEXT_MAX long */
	s->num_etcd++;
	return &s->etcd[i];
}

/*
 * The alarms that a member has raised. Its status has those of all members, each as text:
 * "memberID:1 alarm:NOSPACE ".
 *
 * @param alarms  set
 * @return true if any member has no room, which all obey
 */
static bool
read_alarms(const json_t *reply, uint64_t id, char alarms[FLEET_ALARMS_MAX])
{
	const char *text, *member, *alarm;
	bool full = false;
	json_t *error;
	size_t i, len;

	alarms[0] = '\0';
	json_array_foreach(json_object_get(reply, "errors"), i, error) {
		text = json_string_value(error);
		alarm = text != NULL ? strstr(text, "alarm:") : NULL;
		if (alarm == NULL)
			continue;
		alarm += strlen("alarm:");
		len = strcspn(alarm, " ");
		full |= len == strlen("NOSPACE") && strncmp(alarm, "NOSPACE", len) == 0;
		member = strstr(text, "memberID:");
		if (member == NULL || strtoull(member + strlen("memberID:"), NULL, 10) == id)
			snprintf(alarms + strlen(alarms), FLEET_ALARMS_MAX - strlen(alarms),
				"%s%.*s", alarms[0] != '\0' ? ", " : "", (int)len, alarm);
	}
	return full;
}

static void
note_alarms(struct fleet_etcd_member *m, const char *alarms)
{
	if (strcmp(m->alarms, alarms) == 0)
		return;
	strcpy(m->alarms, alarms);
	if (alarms[0] != '\0')
		FLEET_LOG(WARNING, "etcd at %s has raised an alarm: %s", m->url, alarms);
	else
		FLEET_LOG(NOTICE, "etcd at %s has no alarm any more", m->url);
}

static void
look_at_etcd_member(struct fleet *f, unsigned int endpoint)
{
	uint64_t id = 0, leader = 0, bytes = 0, used = 0;
	char alarms[FLEET_ALARMS_MAX];
	struct fleet_etcd_member *m;
	json_t *reply = NULL;
	bool full = false;
	int rc;

	rc = etcd_call_at(f->session, endpoint, "/v3/maintenance/status", json_object(), STATUS_MS,
		&reply, NULL);
	if (rc == 0)
		rc = etcd_json_u64(json_object_get(reply, "header"), "member_id", &id);
	if (rc == 0)
		rc = etcd_json_u64(reply, "leader", &leader);
	if (rc == 0)
		rc = etcd_json_u64(reply, "dbSize", &bytes);
	if (rc == 0)
		rc = etcd_json_u64(reply, "dbSizeInUse", &used);
	if (rc == 0)
		full = read_alarms(reply, id, alarms);
	pthread_mutex_lock(&f->lock);
	m = etcd_member(&f->status, f->config.endpoint[endpoint].url);
	m->answers = rc == 0;
	m->leader = rc == 0 && id != 0 && id == leader;
	snprintf(m->name, sizeof(m->name), "%016" PRIx64, id);
	if (rc == 0 && json_string_value(json_object_get(reply, "version")) != NULL)
		snprintf(m->version, sizeof(m->version), "%s",
			json_string_value(json_object_get(reply, "version")));
	if (rc == 0) {
		m->db_bytes = bytes;
		m->db_used = used;
		note_alarms(m, alarms);
	} else {
		m->alarms[0] = '\0'; /* it may be gone for good, and its alarm with it */
	}
	pthread_mutex_unlock(&f->lock);
	json_decref(reply);
	/* a member without a leader, cut off from the others, does not know the alarms of now */
	if (rc == 0 && leader != 0)
		fleet_note_full(f, full);
}

void
fleet_look_at_etcd(struct fleet *f)
{
	do
		look_at_etcd_member(f, f->looks++ % f->config.num_endpoints);
	while (f->looks < f->config.num_endpoints);
}
