/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queue pairs: each is owned by one worker, and only that worker accesses it.
 */

#include <errno.h>

#include "engine/verbs_private.h"

struct qp_args {
	uint32_t qpn;
	const struct qp_init_attr *init;
	const struct qp_attr *attr;
	uint32_t mask;
	/* port attributes with which .attr was resolved, or NULL */
	const struct port_attr *port;
	const struct port_attr *alt_port;
	struct rc_qp_info *info;
	struct error *err;
};

static int
qp_call_owner(struct engine *e, worker_fn fn, struct qp_args *a)
{
	return call_qp_owner(e, a->qpn, fn, a, a->err);
}

static int
qp_create_here(struct worker *w, void *arg)
{
	struct qp_args *a = arg;

	return rc_qp_create(w->rc, a->init, &a->qpn, a->err);
}

/* QPs with an SRQ are on the SRQ's worker (design.md, "Who owns what"). */
int
qp_worker_for(struct engine *e, int asked, const struct qp_init_attr *attr, struct error *err)
{
	int owner;

	if (attr->srq == RC_NO_SRQ)
		return choose_worker(e, asked, err);
	owner = srq_worker(e, attr->srq, err);
	if (owner >= 0 && asked >= 0 && asked != owner)
		return error_set(err, EINVAL,
			"worker: got %d, but shared receive queue %u lives on worker %d, "
			"and its queue pairs with it",
			asked, attr->srq, owner);
	return owner;
}

/*
 * Moving a QP does not allocate, so reserve completion rings on all workers now. Without memory the
 * QP cannot move to that worker.
 */
static void
qp_reserve_everywhere(struct engine *e, unsigned int worker, const struct qp_init_attr *attr)
{
	unsigned int i;

	if (!e->config.rehome || attr->pinned || attr->srq != RC_NO_SRQ)
		return;
	for (i = 0; i < e->num_workers; i++)
		if (i != worker)
			reserve_completions(e, attr, i, NULL);
}

int
engine_qp_create(struct engine *e, int worker, const struct qp_init_attr *attr, uint32_t *qpn,
	struct error *err)
{
	struct qp_args a = { .init = attr, .err = err };
	int ret = callers_new_qp(e, attr, err);

	if (ret != 0)
		return ret;
	worker = qp_worker_for(e, worker, attr, err);
	if (worker < 0)
		return worker;
	ret = engine_call(e, (unsigned int)worker, qp_create_here, &a);
	if (ret != 0)
		return ret;
	*qpn = a.qpn;
	qp_reserve_everywhere(e, (unsigned int)worker, attr);
	ENGINE_LOG(DEBUG, "QP 0x%x is made on worker %d", a.qpn, worker);
	return 0;
}

static int
qp_query_here(struct worker *w, void *arg)
{
	struct qp_args *a = arg;

	return rc_qp_query(w->rc, a->qpn, a->info);
}

int
engine_qp_query(struct engine *e, uint32_t qpn, struct rc_qp_info *info, struct error *err)
{
	struct qp_args a = { .qpn = qpn, .info = info, .err = err };

	return qp_call_owner(e, qp_query_here, &a);
}

/* The port of a modify: the one the attributes name, else the QP's. */
static int
qp_port_of(struct engine *e, const struct qp_attr *attr, uint32_t mask,
	const struct rc_qp_info *now, const struct port_attr **port, struct error *err)
{
	uint16_t index = mask & QP_ATTR_PORT ? attr->port : now->attr.port;

	*port = known_port(e, index, err);
	return *port != NULL ? 0 : -EINVAL;
}

static int
resolve_pkey(const struct port_attr *port, const char *of, uint16_t index, uint16_t *pkey,
	struct error *err)
{
	if (index >= port->num_pkeys)
		return error_set(err, EINVAL, "%spkey_index: got %u, %s has %u P_Keys from 0 on",
			of, index, port->name, port->num_pkeys);
	*pkey = port->pkey[index];
	return 0;
}

static int
check_mtu(const struct port_attr *port, const struct qp_attr *attr, struct error *err)
{
	if (attr->path_mtu <= port->active_mtu)
		return 0;
	return error_set(err, EINVAL,
		"path_mtu: got %u, but %s with an MTU of %u carries no more than %u",
		attr->path_mtu, port->name, port->mtu, port->active_mtu);
}

static int
resolve_av(struct engine *e, const struct port_attr *port, const struct engine_ah *ah,
	struct qp_attr *attr, struct error *err)
{
	if (ah == NULL)
		return error_set(err, EINVAL, "ah_attr: missing");
	if (ah->port != port->index)
		return error_set(err, EINVAL,
			"ah_attr.port: got %u, but the queue pair is on port %u", ah->port,
			port->index);
	attr->sgid_index = ah->sgid_index;
	attr->src_path_bits = ah->src_path_bits;
	return ah_resolve(e, ah, &attr->av, &attr->neighbour, err);
}

/* The alternate path has the MTU of the primary path (IBA 17.2.8), and may use another port. */
static int
resolve_alt(struct engine *e, const struct engine_ah *ah, uint16_t path_mtu, struct qp_attr *attr,
	const struct port_attr **seen, struct error *err)
{
	const struct port_attr *port;
	int ret;

	if (ah == NULL)
		return error_set(err, EINVAL, "alt_ah_attr: missing");
	if (ah->port >= link_num_ports(e->link))
		return error_set(err, EINVAL,
			"alt_ah_attr.port: got %u, there are %u ports from 0 on", ah->port,
			link_num_ports(e->link));
	port = link_port_attr(e->link, ah->port);
	*seen = port;
	if (path_mtu > port->active_mtu)
		return error_set(err, EINVAL,
			"alt_ah_attr.port: %s carries no more than %u, and path_mtu is %u",
			port->name, port->active_mtu, path_mtu);
	ret = resolve_pkey(port, "alt_", attr->alt.pkey_index, &attr->alt.pkey, err);
	if (ret != 0)
		return ret;
	attr->alt.port = ah->port;
	attr->alt.sgid_index = ah->sgid_index;
	attr->alt.src_path_bits = ah->src_path_bits;
	return ah_resolve(e, ah, &attr->alt.av, &attr->alt.neighbour, err);
}

/* Look up everything that the worker cannot look up itself. */
static int
qp_resolve_attr(struct engine *e, struct qp_attr *attr, const struct engine_ah *ah, uint32_t mask,
	const struct rc_qp_info *now, const struct port_attr **seen, struct error *err)
{
	const struct port_attr *port = NULL;
	int ret;

	if ((mask & (QP_ATTR_PORT | QP_ATTR_PKEY_INDEX | QP_ATTR_PATH_MTU | QP_ATTR_AV)) == 0)
		return 0;
	ret = qp_port_of(e, attr, mask, now, &port, err);
	*seen = port;
	if (ret == 0 && mask & QP_ATTR_PKEY_INDEX)
		ret = resolve_pkey(port, "", attr->pkey_index, &attr->pkey, err);
	if (ret == 0 && mask & QP_ATTR_PATH_MTU)
		ret = check_mtu(port, attr, err);
	if (ret == 0 && mask & QP_ATTR_AV)
		ret = resolve_av(e, port, ah, attr, err);
	return ret;
}

/* Subnet management may have changed the port since the attributes were resolved. */
static void
qp_check_port_changed(struct worker *w, const struct port_attr *seen)
{
	const struct port_attr *now;

	if (seen == NULL)
		return;
	now = link_port_attr(w->engine->link, seen->index);
	if (unlikely(now != seen))
		rc_path_changed(w->rc, now->index, now);
}

static int
qp_modify_here(struct worker *w, void *arg)
{
	struct qp_args *a = arg;
	int ret = rc_qp_modify(w->rc, a->qpn, a->attr, a->mask, a->err);

	if (ret != 0)
		return ret;
	qp_check_port_changed(w, a->port);
	qp_check_port_changed(w, a->alt_port);
	return 0;
}

int
qp_modify_any(struct engine *e, uint32_t qpn, struct qp_attr *attr, const struct engine_ah *ah,
	const struct engine_ah *alt_ah, uint32_t mask, struct error *err)
{
	struct qp_args a = { .qpn = qpn, .attr = attr, .mask = mask, .err = err };
	struct rc_qp_info now;
	int ret;

	ret = engine_qp_query(e, qpn, &now, err);
	if (ret == 0)
		ret = qp_resolve_attr(e, attr, ah, mask, &now, &a.port, err);
	if (ret == 0 && mask & QP_ATTR_ALT_PATH)
		ret = resolve_alt(e, alt_ah,
			mask & QP_ATTR_PATH_MTU ? attr->path_mtu : now.attr.path_mtu, attr,
			&a.alt_port, err);
	if (ret == 0)
		ret = qp_call_owner(e, qp_modify_here, &a);
	if (ret == 0 && mask & QP_ATTR_STATE)
		ENGINE_LOG(DEBUG, "QP 0x%x goes from %s to %s", qpn,
			qp_state_name(now.attr.qp_state), qp_state_name(attr->qp_state));
	return ret;
}

int
engine_qp_modify_paths(struct engine *e, uint32_t qpn, struct qp_attr *attr,
	const struct engine_ah *ah, const struct engine_ah *alt_ah, uint32_t mask,
	struct error *err)
{
	struct rc_qp_info now;
	int ret = engine_qp_query(e, qpn, &now, err);

	if (ret == 0)
		ret = callers_qp(e, &now, err);
	return ret != 0 ? ret : qp_modify_any(e, qpn, attr, ah, alt_ah, mask, err);
}

int
engine_qp_fail(struct engine *e, uint32_t qpn)
{
	struct qp_attr attr = { .qp_state = QPS_ERR };
	struct qp_args a = { .qpn = qpn, .attr = &attr, .mask = QP_ATTR_STATE };

	return qp_call_owner(e, qp_modify_here, &a);
}

static int
qp_destroy_here(struct worker *w, void *arg)
{
	struct qp_args *a = arg;
	cm_id id = cm_of_qp(w->cm, a->qpn);
	int ret;

	if (id != 0)
		return error_set(a->err, EBUSY,
			"qp: 0x%06x belongs to connection 0x%08x, which destroys it: disconnect that one",
			a->qpn, id);
	ret = callers_qp_here(w, a->qpn, a->err);
	return ret != 0 ? ret : rc_qp_destroy(w->rc, a->qpn, a->err);
}

int
engine_qp_destroy(struct engine *e, uint32_t qpn, struct error *err)
{
	struct qp_args a = { .qpn = qpn, .err = err };
	int ret = qp_call_owner(e, qp_destroy_here, &a);

	if (ret == 0)
		ENGINE_LOG(DEBUG, "QP 0x%x is destroyed", qpn);
	return ret;
}

/*
 * Walks the QP directory, not the workers: a QP that moves meanwhile is still found exactly once.
 */
bool
engine_qp_next(struct engine *e, uint64_t *cursor, struct rc_qp_info *info)
{
	uint32_t place = (uint32_t)RTE_MIN(*cursor, UINT64_C(0xffffffff)), qpn;
	bool found = false;

	while (!found && rc_dev_qp_next(e->dev, &place, &qpn)) /* skip a QP destroyed meanwhile */
		found = engine_qp_query(e, qpn, info, NULL) == 0;
	*cursor = place;
	return found;
}
