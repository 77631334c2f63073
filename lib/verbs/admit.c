/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* How many clients there may be, of all users and of one. */

#include <errno.h>

#include "verbs/private.h"

/* The clients of one kind; those that have not said which it will be count as devices. */
static void
verbs_count(const struct verbs_server *s, uid_t uid, bool cm, uint32_t *all, uint32_t *of_user)
{
	const struct verbs_closing *closing;
	const struct verbs_session *session;

	*all = *of_user = 0;
	if (!cm)
		LIST_FOREACH(closing, &s->closing, link) {
			*all += closing->session == NULL;
			*of_user += closing->session == NULL && closing->uid == uid;
		}
	LIST_FOREACH(session, &s->sessions, link) {
		if ((session->cm != NULL) != cm)
			continue;
		*all += 1;
		*of_user += session->uid == uid;
	}
}

bool
verbs_has_room(struct verbs_server *s, int fd, uid_t uid, bool cm, struct error *err)
{
	uint32_t all, of_user;

	verbs_closing_reap(s);
	verbs_count(s, uid, cm, &all, &of_user);
	if (all >= s->config.max_clients)
		error_set(err, ENOMEM,
			"all %u clients of the socket are there already (verbs.max_clients)",
			s->config.max_clients);
	else if (of_user >= s->config.max_user_clients)
		error_set(err, ENOMEM,
			"all %u clients of the user are there already (verbs.max_user_clients)",
			s->config.max_user_clients);
	else
		return true;
	verbs_log_limit(s, NULL, fd, "a connection", err->text);
	return false;
}
