/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Protection of objects of services, and of programs on the verbs socket, from clients of the
 * control socket: protection domains and CQs, and the regions, windows and QPs that belong to
 * them. A client could otherwise take an owner's completions, or keep its objects in use when the
 * owner ends.
 */

#include <errno.h>

#include "engine/connections.h"
#include "engine/verbs_private.h"

static const char *
service_name_of(const struct svc *s)
{
	return s != NULL ? svc_config(s)->name : "";
}

const char *
engine_pd_service(const struct engine *e, uint32_t pd)
{
	return service_name_of(service_owning(e, svc_has_pd, pd));
}

const char *
engine_cq_service(const struct engine *e, uint32_t cqn)
{
	return service_name_of(service_owning(e, svc_has_cq, cqn));
}

static bool
client_has_pd(const struct engine *e, uint32_t pd)
{
	return pd < e->config.max_pd && e->client_pds[pd];
}

static bool
client_has_cq(const struct engine *e, uint32_t cqn)
{
	return cqn < e->config.limits.max_cq && e->client_cqs[cqn] != NULL;
}

int
callers_pd(const struct engine *e, uint32_t pd, struct error *err)
{
	const struct svc *s = service_owning(e, svc_has_pd, pd);

	if (client_has_pd(e, pd))
		return error_set(err, EPERM, "pd: %u belongs to a program on the verbs socket", pd);
	return s == NULL
		? 0
		: error_set(err, EPERM, "pd: %u belongs to service \"%s\"", pd, service_name_of(s));
}

int
callers_cq(const struct engine *e, const char *what, uint32_t cqn, struct error *err)
{
	const struct svc *s = service_owning(e, svc_has_cq, cqn);

	if (client_has_cq(e, cqn))
		return error_set(err, EPERM, "%s: %u belongs to a program on the verbs socket",
			what, cqn);
	return s == NULL ? 0
			 : error_set(err, EPERM, "%s: %u belongs to service \"%s\"", what, cqn,
				   service_name_of(s));
}

/* A key without object is not an error here: the verb reports it. */
static int
callers_key(const struct engine *e, const char *what, uint32_t key, uint32_t pd, struct error *err)
{
	const struct svc *s = service_owning(e, svc_has_pd, pd);

	if (client_has_pd(e, pd))
		return error_set(err, EPERM, "%s: 0x%08x belongs to a program on the verbs socket",
			what, key);
	return s == NULL ? 0
			 : error_set(err, EPERM, "%s: 0x%08x belongs to service \"%s\"", what, key,
				   service_name_of(s));
}

int
callers_mr(const struct engine *e, const char *what, uint32_t key, struct error *err)
{
	struct mem_mr_info info;

	return mem_mr_query(e->mem, key, &info) != 0 ? 0 : callers_key(e, what, key, info.pd, err);
}

int
callers_mw(const struct engine *e, uint32_t key, struct error *err)
{
	struct mem_mw_info info;

	return mem_mw_query(e->mem, key, &info) != 0 ? 0 : callers_key(e, "key", key, info.pd, err);
}

int
callers_new_qp(const struct engine *e, const struct qp_init_attr *init, struct error *err)
{
	int ret = callers_pd(e, init->pd, err);

	if (ret == 0)
		ret = callers_cq(e, "send_cq", init->send_cq, err);
	return ret != 0 ? ret : callers_cq(e, "recv_cq", init->recv_cq, err);
}

int
callers_qp(const struct engine *e, const struct rc_qp_info *info, struct error *err)
{
	const struct svc *s = service_owning(e, svc_has_cq, info->init.send_cq);

	if (client_has_cq(e, info->init.send_cq))
		return error_set(err, EPERM, "qp: 0x%06x belongs to a program on the verbs socket",
			info->qpn);
	return s == NULL ? 0
			 : error_set(err, EPERM, "qp: 0x%06x belongs to service \"%s\"", info->qpn,
				   service_name_of(s));
}

int
callers_qp_here(const struct worker *w, uint32_t qpn, struct error *err)
{
	struct rc_qp_info info;

	return rc_qp_query(w->rc, qpn, &info) != 0 ? 0 : callers_qp(w->engine, &info, err);
}
