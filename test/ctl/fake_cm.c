/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fake_engine.h"

/* --- kinds of services --- */

static const struct svc_ops memory = {
	.name = "memory",
	.help = "grants a region",
	.server = true,
	.defaults = { .length = 1 << 20 },
};
static const struct svc_ops rping = {
	.name = "rping",
	.help = "rping's exchange",
	.server = true,
	.client = true,
	.defaults = { .size = 64, .max_connections = 16 },
};
static const struct svc_ops hammer = { .name = "hammer", .help = "only connects", .client = true };

const struct svc_ops *const svc_kinds[] = { &memory, &rping, &hammer, NULL };

const struct svc_ops *
svc_kind(const char *name)
{
	unsigned int i;

	for (i = 0; svc_kinds[i] != NULL; i++)
		if (strcmp(svc_kinds[i]->name, name) == 0)
			return svc_kinds[i];
	return NULL;
}

/* --- services --- */

static struct engine_service_info *
add_service(struct fake_cm *cm, const struct svc_config *config)
{
	struct engine_service_info *s;

	if (cm->services == FAKE_SERVICES)
		return NULL;
	s = &cm->service[cm->services++];
	memset(s, 0, sizeof(*s));
	s->id = cm->services;
	s->config = *config;
	s->counters.messages_in = 5;
	s->counters.bytes_in = 5 << 20;
	return s;
}

int
engine_cm_listen(struct engine *e, const struct svc_config *config, uint32_t *id, struct error *err)
{
	struct engine_service_info *s = add_service(&e->cm, config);

	if (s == NULL)
		return error_set(err, ENOSPC, "there are %d services already", FAKE_SERVICES);
	s->listening = true;
	*id = s->id;
	return 0;
}

int
engine_cm_unlisten(struct engine *e, uint32_t id, bool disconnect, struct error *err)
{
	(void)err;
	e->cm.service[id - 1].listening = false;
	e->cm.disconnect = disconnect;
	return 0;
}

bool
engine_service_next(struct engine *e, uint64_t *cursor, struct engine_service_info *info)
{
	if (*cursor >= e->cm.services)
		return false;
	*info = e->cm.service[(*cursor)++];
	return true;
}

/* --- connections --- */

/*
 * Those that there are: of IDs 1, 2, ...; the second one is a passive one of rdma_cm, the third has
 * ended.
 */
static void
fake_cm_fill(const struct fake_cm *cm, cm_id id, struct cm_info *info)
{
	*info = (struct cm_info){
		.id = id,
		.remote_id = 0xabc,
		.tid = 0x1122,
		.active = id != 2,
		.state = CM_STATE_ESTABLISHED,
		.qpn = 0x100,
		.remote_qpn = 0x200,
		.remote_ca_guid = 0x0002c90300000005,
		.responder_resources = 4,
		.initiator_depth = 7,
		.age = 2500000,
		.service_id = 0x1234567890,
		.path = { .mtu = 1024, .pkey = 0xffff, .packet_life = 18 },
	};
	gid_parse("10.0.0.9", &info->path.av.dgid);
	if (id == 2) {
		info->service_id = cm_service_id(CM_PS_TCP, 7471);
		info->rdma.present = true;
		info->rdma.src_port = 40000;
		gid_parse("10.0.0.7", &info->rdma.src);
		gid_parse("10.0.0.1", &info->rdma.dst);
	}
	if (id == 3) {
		info->state = CM_STATE_TIMEWAIT;
		info->end = CM_END_REFUSED;
		info->reason = CM_REJ_STALE;
		info->path.av = (struct av){ .dlid = 5 };
	}
	info->alternate.present = id == cm->alternate_of && !cm->disagrees;
	info->alternate.av.dgid = cm->alternate.dgid;
	info->alternate.sgid_index = cm->alternate.sgid_index;
}

int
engine_cm_connect(struct engine *e, const struct engine_cm_connect *c, uint32_t *attempt,
	struct error *err)
{
	struct fake_cm *cm = &e->cm;
	struct engine_cm_outcome *o = &cm->outcome;
	/* on port 8000 exchanges never end */
	bool endless = (c->service_id & 0xffff) == 8000;
	unsigned int i;

	if (cm->connect_error != 0)
		return error_set(err, -cm->connect_error, "no completion queue 9");
	cm->asked = *c;
	cm->ah = *c->ah;
	cm->asked.ah = NULL;
	cm->asked.service = NULL;
	cm->driven = c->service != NULL;
	if (cm->driven) {
		for (i = 0; i < cm->services; i++)
			cm->service[i].connection = 0; /* IDs come again, unlike the engine's */
		cm->driver = *c->service;
		add_service(cm, c->service)->client = true;
		cm->service[cm->services - 1].connection = endless ? 2 : 1;
		cm->service[cm->services - 1].connections = endless;
		cm->service[cm->services - 1].counters.exchanges = endless ? 3 : c->service->count;
	}
	if (cm->scripted)
		goto out;
	*o = (struct engine_cm_outcome){
		.done = true,
		.established = true,
		.elapsed_us = 1500,
		.private_data = { 0xde, 0xad, 0 },
		.private_len = 3,
	};
	fake_cm_fill(cm, endless ? 2 : 1, &o->info);
	/* nobody listens on ports from 9000 on; from 9100 nobody answers */
	if (c->rdma && (c->service_id & 0xffff) >= 9000) {
		o->established = false;
		o->timed_out = (c->service_id & 0xffff) >= 9100;
		o->info.end = o->timed_out ? CM_END_CANCELLED : CM_END_REJECTED;
		o->info.reason = CM_REJ_INVALID_SERVICE_ID;
		o->private_len = o->timed_out ? 0 : 3;
	}
out:
	cm->looks = cm->polls;
	cm->forgotten = 0;
	*attempt = 0x50;
	return 0;
}

int
engine_cm_outcome(struct engine *e, uint32_t attempt, struct engine_cm_outcome *o,
	struct error *err)
{
	if (attempt != 0x50 || e->cm.forgotten != 0)
		return error_set(err, ENOENT, "there is no attempt %u (any more)", attempt);
	*o = e->cm.outcome;
	if (e->cm.looks > 0) {
		e->cm.looks--;
		o->done = false;
		fake_wake(e);
	}
	return 0;
}

void
engine_cm_forget(struct engine *e, uint32_t attempt)
{
	e->cm.forgotten = attempt;
}

int
engine_cm_get(struct engine *e, cm_id id, struct cm_info *info, struct error *err)
{
	if (id == 0 || id > e->cm.connections)
		return error_set(err, ENOENT, "there is no connection 0x%08x (any more)", id);
	fake_cm_fill(&e->cm, id, info);
	return 0;
}

bool
engine_cm_next(struct engine *e, uint64_t *cursor, struct cm_info *info)
{
	if (*cursor >= e->cm.connections)
		return false;
	fake_cm_fill(&e->cm, (cm_id)++ * cursor, info);
	return true;
}

const char *
engine_cm_service_name(struct engine *e, cm_id id)
{
	(void)e;
	return id == 1 ? "rping" : "";
}

int
engine_cm_disconnect(struct engine *e, cm_id id, struct error *err)
{
	unsigned int i;

	if (id == 0 || id > e->cm.connections)
		return error_set(err, ENOENT, "there is no connection 0x%08x (any more)", id);
	for (i = 0; i < e->cm.services; i++)
		if (e->cm.service[i].connection == id)
			e->cm.service[i].connections = 0;
	e->cm.disconnected = id;
	return 0;
}

int
engine_cm_load_alternate(struct engine *e, cm_id id, const struct engine_ah *ah, struct error *err)
{
	(void)err;
	e->cm.alternate_of = id;
	e->cm.alternate = *ah;
	return 0;
}

void
engine_cm_counters(const struct engine *e, int worker, struct cm_counters *sum)
{
	(void)e;
	memset(sum, 0, sizeof(*sum));
	sum->connections = worker < 0 ? 6 : 3;
	sum->received[CM_SIDR_REQ] = 8;
	sum->sent[CM_REP] = 9;
	sum->rej_sent[CM_REJ_INVALID_SERVICE_ID] = 2;
	sum->rej_received[0] = 1;
}
