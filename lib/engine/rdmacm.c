/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * librdmacm's programs, event channels and IDs, and which command does what.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "engine/rdmacm_private.h"

/* --- the engine --- */

static void
rdmacm_wake(evutil_socket_t fd, short events, void *arg)
{
	eventfd_t count;

	RTE_SET_USED(events);
	eventfd_read(fd, &count);
	rdmacm_run(arg);
}

static void
rdmacm_tick(evutil_socket_t fd, short events, void *arg)
{
	RTE_SET_USED(fd);
	RTE_SET_USED(events);
	rdmacm_resolve_watch(arg);
}

int
rdmacm_create(struct engine *e, struct error *err)
{
	struct rdmacm *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return error_set(err, ENOMEM, "no memory for librdmacm's programs");
	e->rdmacm = r;
	r->engine = e;
	r->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wakeup_fd < 0)
		return error_set(err, errno, "no eventfd: no descriptor");
	r->wakeup = event_new(e->base, r->wakeup_fd, EV_READ | EV_PERSIST, rdmacm_wake, r);
	r->timer = evtimer_new(e->base, rdmacm_tick, r);
	if (r->wakeup == NULL || r->timer == NULL || event_add(r->wakeup, NULL) != 0)
		return error_set(err, ENOMEM, "no event loop: no memory");
	return 0;
}

void
rdmacm_quiet(struct engine *e)
{
	struct rdmacm *r = e->rdmacm;

	if (r == NULL)
		return;
	if (r->wakeup != NULL)
		event_free(r->wakeup);
	if (r->timer != NULL)
		event_free(r->timer);
	r->wakeup = r->timer = NULL;
}

void
rdmacm_destroy(struct engine *e)
{
	struct rdmacm *r = e->rdmacm;

	if (r == NULL)
		return;
	/* lib/verbs has closed all programs; the CM has released their connections */
	rdmacm_run(r);
	if (r->wakeup_fd >= 0)
		close(r->wakeup_fd);
	free(r);
	e->rdmacm = NULL;
}

/* --- programs and channels --- */

int
engine_rdmacm_open(struct engine *e, const struct rdmacm_limits *limits, uid_t uid, pid_t pid,
	struct rdmacm_program **program, struct error *err)
{
	struct rdmacm_program *p;

	if (e->draining)
		return error_set(err, ESHUTDOWN, "shutting down: no new programs");
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return error_set(err, ENOMEM, "no memory for a program");
	p->channel = calloc(limits->max_channels, sizeof(p->channel[0]));
	p->id = calloc(limits->max_ids, sizeof(p->id[0]));
	if (p->channel == NULL || p->id == NULL) {
		free(p->channel);
		free(p->id);
		free(p);
		return error_set(err, ENOMEM, "no memory for a program's tables");
	}
	p->engine = e;
	p->limits = *limits;
	p->uid = uid;
	p->pid = pid;
	LIST_INSERT_HEAD(&e->rdmacm->programs, p, link);
	*program = p;
	return 0;
}

static void
rdmacm_id_destroy(struct rdmacm_id *id)
{
	struct rdmacm_id *child;

	if (id->listener != NULL)
		rdmacm_unlisten(id->listener);
	/* the program has not seen the new IDs of requests that it did not fetch */
	while ((child = rdmacm_events_drop(id)) != NULL)
		rdmacm_id_destroy(child);
	rdmacm_unbind(id);
	if (id->state == RDMACM_ADDR_QUERY)
		LIST_REMOVE(id, waiting_link);
	if (id->conn != NULL)
		rdmacm_abandon(id->conn);
	rdmacm_id_free(id);
}

static void
rdmacm_channel_destroy(struct rdmacm_channel *ch)
{
	struct rdmacm_program *p = ch->program;
	uint32_t i;

	for (i = 0; i < p->limits.max_ids; i++)
		if (p->id[i] != NULL && p->id[i]->channel == ch)
			rdmacm_id_destroy(p->id[i]);
	rdmacm_events_close(ch);
	p->channel[ch->slot] = NULL;
	free(ch);
}

void
engine_rdmacm_close(struct rdmacm_program *p)
{
	uint32_t i;

	for (i = 0; i < p->limits.max_channels; i++)
		if (p->channel[i] != NULL)
			rdmacm_channel_destroy(p->channel[i]);
	LIST_REMOVE(p, link);
	free(p->channel);
	free(p->id);
	free(p);
}

int
engine_rdmacm_channel_open(struct rdmacm_program *p, uint32_t *slot, int *fd, struct error *err)
{
	struct rdmacm_channel *ch;
	uint32_t i;
	int rc;

	for (i = 0; i < p->limits.max_channels && p->channel[i] != NULL; i++)
		;
	if (i == p->limits.max_channels)
		return error_set_limit(err, EMFILE,
			"channel: all %u are in use (verbs.max_cm_channels)", i);
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return error_set(err, ENOMEM, "no memory for an event channel");
	ch->program = p;
	ch->slot = i;
	rc = rdmacm_events_open(ch, err);
	if (rc != 0) {
		free(ch);
		return rc;
	}
	p->channel[i] = ch;
	*slot = i;
	*fd = ch->end[1];
	return 0;
}

static struct rdmacm_channel *
rdmacm_channel_at(const struct rdmacm_program *p, uint32_t slot)
{
	return slot < p->limits.max_channels ? p->channel[slot] : NULL;
}

int
engine_rdmacm_channel_close(struct rdmacm_program *p, uint32_t slot, struct error *err)
{
	struct rdmacm_channel *ch = rdmacm_channel_at(p, slot);

	if (ch == NULL)
		return error_set(err, EBADF, "channel: there is no channel %u", slot);
	rdmacm_channel_destroy(ch);
	return 0;
}

/* --- commands about IDs themselves --- */

static int
rdmacm_respond(struct rdmacm_call *c, const void *response, uint32_t size)
{
	memcpy(c->reply->bytes, response, size);
	c->reply->length = size;
	return 0;
}

static int
rdmacm_create_id(struct rdmacm_call *c)
{
	const struct rdma_ucm_create_id *cmd = c->body;
	struct rdma_ucm_create_id_resp resp;
	struct rdmacm_id *id;

	if (cmd->ps != RDMA_PS_TCP && cmd->ps != RDMA_PS_IB)
		return error_set(c->err, EPROTONOSUPPORT,
			"ps: got 0x%x, allowed: RDMA_PS_TCP, RDMA_PS_IB (no UD)", cmd->ps);
	if (cmd->uid == 0)
		return error_set(c->err, EINVAL, "uid: 0 is no ID of the library");
	id = rdmacm_id_new(c->program, c->channel, c->err);
	if (id == NULL)
		return -ENOMEM;
	id->uid = cmd->uid;
	id->ps = cmd->ps;
	resp.id = id->number;
	return rdmacm_respond(c, &resp, sizeof(resp));
}

static int
rdmacm_destroy_id(struct rdmacm_call *c)
{
	struct rdma_ucm_destroy_id_resp resp = { .events_reported = c->id->events_fetched };

	rdmacm_id_destroy(c->id);
	return rdmacm_respond(c, &resp, sizeof(resp));
}

static int
rdmacm_migrate_id(struct rdmacm_call *c)
{
	struct rdma_ucm_migrate_resp resp = { .events_reported = c->id->events_fetched };

	rdmacm_events_move(c->id, c->channel);
	c->id->channel = c->channel;
	return rdmacm_respond(c, &resp, sizeof(resp));
}

/* --- the table of commands --- */

#define NO_ID SIZE_MAX
#define COMMAND(NAME, type, run)                                                                   \
	[RDMA_USER_CM_CMD_##NAME] = { #NAME, sizeof(struct rdma_ucm_##type),                       \
		offsetof(struct rdma_ucm_##type, id), run }

static const struct {
	const char *name;
	size_t size; /* least, of the structure: later kernels append to some of them */
	size_t id; /* where the ID's number is */
	int (*run)(struct rdmacm_call *c);
} rdmacm_commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { "CREATE_ID", sizeof(struct rdma_ucm_create_id), NO_ID,
		rdmacm_create_id },
	[RDMA_USER_CM_CMD_GET_EVENT] = { "GET_EVENT", sizeof(struct rdma_ucm_get_event), NO_ID,
		rdmacm_get_event },
	COMMAND(DESTROY_ID, destroy_id, rdmacm_destroy_id),
	COMMAND(BIND_IP, bind_ip, rdmacm_bind_ip),
	COMMAND(BIND, bind, rdmacm_bind_any),
	COMMAND(RESOLVE_IP, resolve_ip, rdmacm_resolve_ip),
	COMMAND(RESOLVE_ADDR, resolve_addr, rdmacm_resolve_addr),
	COMMAND(RESOLVE_ROUTE, resolve_route, rdmacm_resolve_route),
	COMMAND(QUERY_ROUTE, query, rdmacm_query_route),
	COMMAND(QUERY, query, rdmacm_query),
	[RDMA_USER_CM_CMD_CONNECT] = { "CONNECT", offsetof(struct rdma_ucm_connect, ece),
		offsetof(struct rdma_ucm_connect, id), rdmacm_connect },
	COMMAND(LISTEN, listen, rdmacm_listen),
	[RDMA_USER_CM_CMD_ACCEPT] = { "ACCEPT", offsetof(struct rdma_ucm_accept, ece),
		offsetof(struct rdma_ucm_accept, id), rdmacm_accept },
	COMMAND(REJECT, reject, rdmacm_reject),
	COMMAND(DISCONNECT, disconnect, rdmacm_disconnect),
	COMMAND(INIT_QP_ATTR, init_qp_attr, rdmacm_init_qp_attr),
	COMMAND(SET_OPTION, set_option, rdmacm_set_option),
	COMMAND(NOTIFY, notify, rdmacm_notify),
	COMMAND(MIGRATE_ID, migrate_id, rdmacm_migrate_id),
};

static int
rdmacm_find_id(struct rdmacm_call *c, const char *name, uint32_t number)
{
	const struct rdmacm_program *p = c->program;
	const struct rdmacm_channel *ch = c->from != NULL ? c->from : c->channel;

	if (number >= p->limits.max_ids || p->id[number] == NULL || p->id[number]->request != NULL)
		return error_set(c->err, ENOENT, "%s: there is no ID %u", name, number);
	if (p->id[number]->channel != ch)
		return error_set(c->err, EINVAL, "%s: ID %u is another channel's", name, number);
	c->id = p->id[number];
	return 0;
}

int
engine_rdmacm_command(struct rdmacm_program *p, const struct ring_cm_command *command,
	struct ring_cm_reply *reply, struct error *err)
{
	struct rdmacm_call c = { .program = p, .reply = reply, .err = err };
	struct rdma_ucm_cmd_hdr header;
	uint32_t number;
	int rc;

	/* the command follows what the program may know already */
	rdmacm_run(p->engine->rdmacm);
	c.channel = rdmacm_channel_at(p, command->channel);
	if (c.channel == NULL)
		return error_set(err, EBADF, "channel: there is no channel %u", command->channel);
	if (command->length < sizeof(header) || command->length > sizeof(command->bytes))
		return error_set(err, EINVAL, "command: got %u bytes", command->length);
	memcpy(&header, command->bytes, sizeof(header));
	if (header.cmd >= RTE_DIM(rdmacm_commands) || rdmacm_commands[header.cmd].run == NULL)
		return error_set(err, ENOSYS, "command %u is not there", header.cmd);
	c.size = command->length - sizeof(header);
	c.body = command->bytes + sizeof(header);
	c.out = header.out;
	if (header.in > c.size || header.in < rdmacm_commands[header.cmd].size)
		return error_set(err, EINVAL, "%s: got %u bytes, expected %zu",
			rdmacm_commands[header.cmd].name, header.in,
			rdmacm_commands[header.cmd].size);
	if (header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
		c.from = rdmacm_channel_at(p, command->from);
		if (c.from == NULL)
			return error_set(err, EINVAL, "MIGRATE_ID: fd is no event channel");
	}
	if (rdmacm_commands[header.cmd].id != NO_ID) {
		memcpy(&number, (const uint8_t *)c.body + rdmacm_commands[header.cmd].id,
			sizeof(number));
		rc = rdmacm_find_id(&c, rdmacm_commands[header.cmd].name, number);
		if (rc != 0)
			return rc;
	}
	return rdmacm_commands[header.cmd].run(&c);
}
