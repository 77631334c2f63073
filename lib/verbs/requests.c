/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The requests of the verbs socket: one row each, with the sizes of request and reply. A message of
 * another size is no request.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verbs/private.h"

#define REQUEST_HEADER offsetof(struct ring_request, hello)
#define REPLY_HEADER   offsetof(struct ring_reply, text)

typedef int (*verbs_request_fn)(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err);

static int
verbs_check_version(const struct ring_request *req, struct error *err)
{
	if (req->hello.magic == RING_MAGIC && req->hello.major == RING_MAJOR)
		return 0;
	return error_set(err, EPROTONOSUPPORT,
		"hello: got version %u.%u, this polca speaks %d.%d: use its own provider",
		req->hello.major, req->hello.minor, RING_MAJOR, RING_MINOR);
}

/* The features of HELLO decide what both sides use, whatever minor version each of them has. */
static int
verbs_refuse_feature(uint32_t code, uint64_t feature, struct error *err)
{
	return error_set(err, EPROTO, "request %u: needs feature 0x%" PRIx64 ", not named in HELLO",
		code, feature);
}

static int
request_hello(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	struct ring_hello_reply *reply = &answer->reply.hello;
	struct verbs_server *s = session->server;
	int rc;

	rc = verbs_check_version(req, err);
	if (rc != 0)
		return rc;
	rc = engine_client_create(s->engine, req->hello.port, &s->config.limits,
		session->num_passed > 0 ? session->passed[0] : -1, &session->client, err);
	if (rc != 0)
		return rc;
	engine_client_set_owner(session->client, (uint32_t)session->pid, session->uid);
	reply->major = RING_MAJOR;
	reply->minor = RING_MINOR;
	session->features = reply->features = req->hello.features & RING_FEATURES;
	verbs_range_prepare(session);
	reply->node_guid = verbs_node_guid(s->engine, req->hello.port);
	snprintf(reply->version, sizeof(reply->version), "%s", POLCA_VERSION);
	engine_client_hello(session->client, reply, answer->fds);
	answer->num_fds = RING_HELLO_FDS;
	return 0;
}

static int
request_query_port(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)req;
	(void)err;
	engine_client_port(session->client, &answer->reply.port);
	return 0;
}

static int
request_pd_alloc(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)req;
	return engine_client_pd_alloc(session->client, &answer->reply.slot.slot, err);
}

static int
request_pd_free(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_pd_free(session->client, req->slot.slot, err);
}

static int
request_mr_register(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	if (session->num_passed > 0 && (session->features & RING_FEATURE_SHARED) == 0)
		return verbs_refuse_feature(req->code, RING_FEATURE_SHARED, err);
	if (session->num_passed > 0)
		return engine_client_mr_share(session->client, &req->mr, session->passed[0],
			&answer->reply.mr, err);
	return engine_client_mr_register(session->client, &req->mr, &answer->reply.mr, err);
}

/* The answer comes later, by verbs_request_finish(). */
static int
request_mr_register_range(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return verbs_range_begin(session, &req->mr, err);
}

static int
request_mr_deregister(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_mr_deregister(session->client, req->slot.slot, err);
}

static int
request_mw_alloc(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_client_mw_alloc(session->client, &req->mw, &answer->reply.mr, err);
}

static int
request_mw_free(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_mw_free(session->client, req->slot.slot, err);
}

static int
request_channel_create(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	int rc = engine_client_channel_create(session->client, &answer->reply.slot.slot,
		answer->fds, err);

	(void)req;
	answer->num_fds = answer->close_fds = rc == 0 ? RING_CHANNEL_FDS : 0;
	return rc;
}

static int
request_channel_destroy(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_channel_destroy(session->client, req->slot.slot, err);
}

static int
request_cq_create(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_client_cq_create(session->client, &req->cq, &answer->reply.cq, err);
}

static int
request_cq_destroy(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_cq_destroy(session->client, req->slot.slot, err);
}

static int
request_srq_create(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_client_srq_create(session->client, &req->srq, &answer->reply.queue, err);
}

static int
request_srq_modify(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_srq_modify(session->client, &req->srq_modify, err);
}

static int
request_srq_query(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_client_srq_query(session->client, req->slot.slot, &answer->reply.srq, err);
}

static int
request_srq_destroy(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_srq_destroy(session->client, req->slot.slot, err);
}

static int
request_qp_create(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_client_qp_create(session->client, &req->qp, &answer->reply.queue, err);
}

static int
request_qp_modify(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_qp_modify(session->client, &req->attr, err);
}

static int
request_qp_query(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_client_qp_query(session->client, req->slot.slot, &answer->reply.attr, err);
}

static int
request_qp_destroy(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_client_qp_destroy(session->client, req->slot.slot, err);
}

static int
request_cm_open(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	struct verbs_server *s = session->server;
	int rc = verbs_check_version(req, err);

	(void)answer;
	if (rc != 0)
		return rc;
	if (!verbs_has_room(s, session->fd, session->uid, true, err))
		return -ENOMEM;
	return engine_rdmacm_open(s->engine, &s->config.cm, session->uid, session->pid,
		&session->cm, err);
}

static int
request_cm_channel_open(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	int rc = engine_rdmacm_channel_open(session->cm, &answer->reply.slot.slot, &answer->fds[0],
		err);

	(void)req;
	answer->num_fds = rc == 0;
	return rc;
}

static int
request_cm_channel_close(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	(void)answer;
	return engine_rdmacm_channel_close(session->cm, req->slot.slot, err);
}

static int
request_cm_command(struct verbs_session *session, const struct ring_request *req,
	struct verbs_answer *answer, struct error *err)
{
	return engine_rdmacm_command(session->cm, &req->cm, &answer->reply.cm, err);
}

#define IN(member)  sizeof(((struct ring_request *)0)->member)
#define OUT(member) sizeof(((struct ring_reply *)0)->member)

static const struct {
	const char *name;
	size_t in, out; /* bytes after the headers */
	verbs_request_fn run;
	uint64_t feature; /* of HELLO; 0: of the first version */
} verbs_requests[RING_REQUESTS] = {
	[RING_HELLO] = { "hello", IN(hello), OUT(hello), request_hello },
	[RING_QUERY_PORT] = { "query_port", 0, OUT(port), request_query_port },
	[RING_PD_ALLOC] = { "pd_alloc", 0, OUT(slot), request_pd_alloc },
	[RING_PD_FREE] = { "pd_free", IN(slot), 0, request_pd_free },
	[RING_MR_REGISTER] = { "mr_register", IN(mr), OUT(mr), request_mr_register },
	[RING_MR_DEREGISTER] = { "mr_deregister", IN(slot), 0, request_mr_deregister },
	[RING_CHANNEL_CREATE] = { "channel_create", 0, OUT(slot), request_channel_create },
	[RING_CHANNEL_DESTROY] = { "channel_destroy", IN(slot), 0, request_channel_destroy },
	[RING_CQ_CREATE] = { "cq_create", IN(cq), OUT(cq), request_cq_create },
	[RING_CQ_DESTROY] = { "cq_destroy", IN(slot), 0, request_cq_destroy },
	[RING_SRQ_CREATE] = { "srq_create", IN(srq), OUT(queue), request_srq_create },
	[RING_SRQ_MODIFY] = { "srq_modify", IN(srq_modify), 0, request_srq_modify },
	[RING_SRQ_DESTROY] = { "srq_destroy", IN(slot), 0, request_srq_destroy },
	[RING_QP_CREATE] = { "qp_create", IN(qp), OUT(queue), request_qp_create },
	[RING_QP_MODIFY] = { "qp_modify", IN(attr), 0, request_qp_modify },
	[RING_QP_QUERY] = { "qp_query", IN(slot), OUT(attr), request_qp_query },
	[RING_QP_DESTROY] = { "qp_destroy", IN(slot), 0, request_qp_destroy },
	[RING_CM_OPEN] = { "cm_open", IN(hello), 0, request_cm_open },
	[RING_CM_CHANNEL_OPEN] = { "cm_channel_open", 0, OUT(slot), request_cm_channel_open },
	[RING_CM_CHANNEL_CLOSE] = { "cm_channel_close", IN(slot), 0, request_cm_channel_close },
	[RING_CM_COMMAND] = { "cm_command", IN(cm), OUT(cm), request_cm_command },
	[RING_MW_ALLOC] = { "mw_alloc", IN(mw), OUT(mr), request_mw_alloc, RING_FEATURE_WINDOWS },
	[RING_MW_FREE] = { "mw_free", IN(slot), 0, request_mw_free, RING_FEATURE_WINDOWS },
	[RING_MR_REGISTER_RANGE] = { "mr_register_range", IN(mr), OUT(mr),
		request_mr_register_range, RING_FEATURE_RANGES },
	[RING_SRQ_QUERY] = { "srq_query", IN(slot), OUT(srq), request_srq_query,
		RING_FEATURE_SRQ_QUERY },
};

/* What a connection is, and so which requests it may send. */
enum session_kind { SESSION_NEW, SESSION_DEVICE, SESSION_CM };

static enum session_kind
session_kind(const struct verbs_session *session)
{
	if (session->client != NULL)
		return SESSION_DEVICE;
	return session->cm != NULL ? SESSION_CM : SESSION_NEW;
}

static enum session_kind
verbs_request_kind(uint32_t code)
{
	if (code == RING_HELLO || code == RING_CM_OPEN)
		return SESSION_NEW;
	return code > RING_CM_OPEN && code <= RING_CM_COMMAND ? SESSION_CM : SESSION_DEVICE;
}

static int
verbs_request_run(struct verbs_session *session, const struct ring_request *req, size_t size,
	struct verbs_answer *answer, struct error *err)
{
	if (size < REQUEST_HEADER || req->code >= RING_REQUESTS)
		return error_set(err, EPROTO, "no request of %zu bytes", size);
	if (size != REQUEST_HEADER + verbs_requests[req->code].in)
		return error_set(err, EPROTO, "request %u: got %zu bytes, expected %zu", req->code,
			size, REQUEST_HEADER + verbs_requests[req->code].in);
	if (verbs_request_kind(req->code) != session_kind(session))
		return error_set(err, EPROTO,
			"request %u: the first, and only the first, is HELLO or CM_OPEN; the others "
			"are of the same kind",
			req->code);
	if ((verbs_requests[req->code].feature & ~session->features) != 0)
		return verbs_refuse_feature(req->code, verbs_requests[req->code].feature, err);
	return verbs_requests[req->code].run(session, req, answer, err);
}

static bool
verbs_answer_error(struct verbs_session *session, uint32_t code, struct verbs_answer *answer,
	int rc, const struct error *err)
{
	if (err->limit)
		verbs_log_limit(session->server, session->client, session->fd,
			verbs_requests[code].name, err->text);
	memset(&answer->reply, 0, sizeof(answer->reply));
	answer->num_fds = answer->close_fds = 0;
	answer->reply.error = -rc;
	snprintf(answer->reply.text, sizeof(answer->reply.text), "%.255s", err->text);
	answer->size = REPLY_HEADER + sizeof(answer->reply.text);
	return rc != -EPROTO && session_kind(session) != SESSION_NEW;
}

bool
verbs_request(struct verbs_session *session, const struct ring_request *req, size_t size,
	struct verbs_answer *answer)
{
	struct error err = { "" };
	int rc = verbs_request_run(session, req, size, answer, &err);

	if (rc != 0)
		return verbs_answer_error(session, req->code, answer, rc, &err);
	if (session->range == NULL)
		answer->size = REPLY_HEADER + verbs_requests[req->code].out;
	return true;
}

bool
verbs_request_finish(struct verbs_session *session, struct verbs_answer *answer)
{
	struct error err = { "" };
	int rc = verbs_range_take(session, &answer->reply.mr, &err);

	if (rc != 0)
		return verbs_answer_error(session, RING_MR_REGISTER_RANGE, answer, rc, &err) &&
			rc != -ETIMEDOUT;
	answer->size = REPLY_HEADER + verbs_requests[RING_MR_REGISTER_RANGE].out;
	return true;
}
