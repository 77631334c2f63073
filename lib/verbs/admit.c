/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* How many clients there may be, of all users and of one. */

#include <stdio.h>

#include "verbs/private.h"

/* The clients of one kind; those that have not said which it will be count as devices. */
static void
verbs_count(const struct verbs_server *s, uid_t uid, bool cm, uint32_t *all, uint32_t *of_user)
{
	const struct verbs_session *session;

	*all = *of_user = 0;
	LIST_FOREACH(session, &s->sessions, link) {
		if ((session->cm != NULL) != cm)
			continue;
		*all += 1;
		*of_user += session->uid == uid;
	}
}

/* Log that there are @p most clients already, as @p key allows. */
static void
verbs_log_clients(struct verbs_server *s, int fd, const char *whose, uint32_t most, const char *key)
{
	char text[96];

	snprintf(text, sizeof(text), "all %u clients of %s are there already (%s)", most, whose,
		key);
	verbs_log_limit(s, fd, "a connection", text);
}

bool
verbs_has_room(struct verbs_server *s, int fd, uid_t uid, bool cm)
{
	uint32_t all, of_user;

	verbs_count(s, uid, cm, &all, &of_user);
	if (all >= s->config.max_clients) {
		verbs_log_clients(s, fd, "the socket", s->config.max_clients, "verbs.max_clients");
		return false;
	}
	if (of_user >= s->config.max_user_clients) {
		verbs_log_clients(s, fd, "the user", s->config.max_user_clients,
			"verbs.max_user_clients");
		return false;
	}
	return true;
}
