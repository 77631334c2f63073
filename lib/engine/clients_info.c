/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What an operator sees of clients. The worker writes what it has posted and completed; all else
 * is the control thread's.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/clients_info.h"
#include "engine/clients_private.h"

/* A program may have any bytes in its name: what is not printable becomes a question mark. */
static void
client_read_command(struct verbs_client *c)
{
	char path[40];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/comm", c->owner.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, c->owner.command, sizeof(c->owner.command) - 1);
	close(fd);
	c->owner.command[n > 0 ? n : 0] = '\0';
	c->owner.command[strcspn(c->owner.command, "\n")] = '\0';
	for (char *p = c->owner.command; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

void
engine_client_set_owner(struct verbs_client *c, uint32_t pid, uint32_t uid)
{
	c->owner.pid = pid;
	c->owner.uid = uid;
	client_read_command(c);
}

void
engine_client_refused(struct engine *e, struct verbs_client *c)
{
	e->clients_ended.refused++;
	if (c != NULL)
		c->refused++;
}

static uint64_t
client_posted(const struct verbs_client *c)
{
	return __atomic_load_n(&c->posted, __ATOMIC_RELAXED);
}

static uint64_t
client_completed(const struct verbs_client *c)
{
	return __atomic_load_n(&c->completed, __ATOMIC_RELAXED);
}

void
client_count_end(const struct verbs_client *c)
{
	c->engine->clients_ended.posted += client_posted(c);
	c->engine->clients_ended.completed += client_completed(c);
}

void
engine_clients_counters(const struct engine *e, struct clients_counters *counters)
{
	const struct verbs_client *c;

	*counters = e->clients_ended;
	for (c = e->verbs_clients; c != NULL; c = c->next_client) {
		counters->posted += client_posted(c);
		counters->completed += client_completed(c);
	}
}

/* --- one client --- */

static uint32_t
client_contexts(const struct verbs_client *of)
{
	const struct verbs_client *c;
	uint32_t n = 0;

	for (c = of->engine->verbs_clients; c != NULL; c = c->next_client)
		n += c->owner.pid == of->owner.pid;
	return n;
}

static void
client_fill_info(const struct verbs_client *c, struct engine_client_info *info)
{
	*info = (struct engine_client_info){
		.id = c->id,
		.pid = c->owner.pid,
		.uid = c->owner.uid,
		.port = c->port,
		.worker = c->worker,
		.contexts = client_contexts(c),
		.use = c->use,
		.posted = client_posted(c),
		.completed = client_completed(c),
		.refused = c->refused,
	};
	memcpy(info->command, c->owner.command, sizeof(info->command));
}

bool
engine_client_next(const struct engine *e, uint64_t *cursor, struct engine_client_info *info)
{
	const struct verbs_client *c, *next = NULL;

	for (c = e->verbs_clients; c != NULL; c = c->next_client)
		if (c->id > *cursor && (next == NULL || c->id < next->id))
			next = c;
	if (next == NULL)
		return false;
	client_fill_info(next, info);
	*cursor = next->id;
	return true;
}

/* --- a user --- */

static uint32_t
count_clients_of_user(const struct verbs_client *of)
{
	const struct verbs_client *c;
	uint32_t n = 0;

	for (c = of->engine->verbs_clients; c != NULL; c = c->next_client)
		n += c->owner.uid == of->owner.uid;
	return n;
}

bool
engine_client_user_next(const struct engine *e, uint64_t *cursor, struct engine_client_user *user)
{
	const struct verbs_client *c, *next = NULL;
	const struct verbs_user_limits *l;

	for (c = e->verbs_clients; c != NULL; c = c->next_client)
		if (c->owner.uid >= *cursor && (next == NULL || c->owner.uid < next->owner.uid))
			next = c;
	if (next == NULL)
		return false;
	l = &next->limits.user;
	*user = (struct engine_client_user){
		.uid = next->owner.uid,
		.clients = count_clients_of_user(next),
		.limits = {
			.qps = l->max_qp,
			.cqs = l->max_cq,
			.srqs = l->max_srq,
			.pds = l->max_pd,
			.regions = l->max_mr,
			.windows = l->max_mw,
			.bytes = l->max_mr_bytes,
			.requests = l->max_wr,
		},
	};
	client_use_of_user(next, &user->use);
	*cursor = UINT64_C(1) + next->owner.uid;
	return true;
}
