/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What librdmacm asks about an ID: addresses, route, and the attributes for its queue pair.
 */

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "engine/rdmacm_private.h"
#include "wire/bytes.h"

#define DEVICE_PORT 1 /* each port of polca is a device of one port */
#define NO_INDEX    UINT32_MAX
/* 655 ms, as cm_init_qp_rtr_attr() of Linux: few RNR retries must outlast a slow program */
#define MIN_RNR_TIMER   0
#define OPTION_VALUE(c) ((const uint8_t *)(c)->body + sizeof(struct rdma_ucm_set_option))

static const struct port_attr *
id_port(const struct rdmacm_id *id)
{
	return id->port < 0 ? NULL
			    : link_port_attr(id->program->engine->link, (unsigned int)id->port);
}

static uint64_t
id_node_guid(const struct port_attr *port)
{
	return htobe64(port_eui64(port->mac));
}

static bool
id_has_path(const struct rdmacm_id *id)
{
	return id->state >= RDMACM_ADDR_RESOLVED && id->state != RDMACM_LISTEN && id->path.present;
}

static int
query_reply(struct rdmacm_call *c, const void *response, size_t size, size_t least)
{
	if (c->out < least)
		return error_set(c->err, ENOSPC, "query: room for %u bytes, needed: %zu", c->out,
			least);
	memcpy(c->reply->bytes, response, size);
	c->reply->length = (uint32_t)size;
	return 0;
}

/* --- addresses and route --- */

static void
query_fill_route(const struct cm_path *path, struct ib_user_path_rec *to)
{
	memcpy(to->dgid, &path->av.dgid, sizeof(to->dgid));
	memcpy(to->sgid, &path->av.sgid, sizeof(to->sgid));
	to->flow_label = htobe32(path->av.flow_label);
	to->hop_limit = path->av.hop_limit;
	to->traffic_class = path->av.traffic_class;
	to->reversible = 1;
	to->numb_path = 1;
	to->pkey = htobe16(path->pkey);
	to->sl = path->av.sl;
	to->mtu_selector = to->rate_selector = to->packet_life_time_selector = 2; /* exactly */
	to->mtu = port_mtu_code(path->mtu);
	to->packet_life_time = path->packet_life;
}

int
rdmacm_query_route(struct rdmacm_call *c)
{
	const struct port_attr *port = id_port(c->id);
	struct rdma_ucm_query_route_resp resp = { .ibdev_index = NO_INDEX };

	rdmacm_address_write(&c->id->src, &resp.src_addr);
	rdmacm_address_write(&c->id->dst, &resp.dst_addr);
	if (port != NULL) {
		resp.node_guid = id_node_guid(port);
		resp.port_num = DEVICE_PORT;
		memcpy(resp.ib_route[0].sgid, &port->gid[c->id->sgid_index].gid,
			sizeof(resp.ib_route[0].sgid));
		resp.ib_route[0].pkey = htobe16(port->pkey[0]);
	}
	if (id_has_path(c->id)) {
		query_fill_route(&c->id->path, &resp.ib_route[0]);
		resp.num_paths = c->id->state >= RDMACM_ROUTE_RESOLVED;
	}
	return query_reply(c, &resp, sizeof(resp),
		offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
}

/* A struct sockaddr_ib's GID: at its offset 8. The family is 27. */
static uint16_t
query_write_gid(const union gid *gid, void *sockaddr)
{
	const uint16_t family = 27;

	memcpy(sockaddr, &family, sizeof(family));
	memcpy((uint8_t *)sockaddr + 8, gid, sizeof(*gid));
	return 48;
}

static int
query_addresses(struct rdmacm_call *c, bool gids)
{
	const struct port_attr *port = id_port(c->id);
	struct rdma_ucm_query_addr_resp resp = { .ibdev_index = NO_INDEX };

	if (port != NULL) {
		resp.node_guid = id_node_guid(port);
		resp.port_num = DEVICE_PORT;
		resp.pkey = htobe16(port->pkey[0]);
	}
	if (!gids) {
		resp.src_size = rdmacm_address_write(&c->id->src, &resp.src_addr);
		resp.dst_size = rdmacm_address_write(&c->id->dst, &resp.dst_addr);
	} else if (port != NULL) {
		resp.src_size = query_write_gid(&port->gid[c->id->sgid_index].gid, &resp.src_addr);
		resp.dst_size = query_write_gid(&c->id->dst.gid, &resp.dst_addr);
	}
	return query_reply(c, &resp, sizeof(resp),
		offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

/* The 64 bytes of a PathRecord, as on the wire (sa.md). */
static void
query_pack_path(const struct cm_path *path, struct ib_path_rec_data *to)
{
	uint8_t *rec = (uint8_t *)to->path_rec;

	to->flags = 0x21; /* primary, bidirectional, as the kernel's */
	memcpy(rec + 8, &path->av.dgid, sizeof(path->av.dgid));
	memcpy(rec + 24, &path->av.sgid, sizeof(path->av.sgid));
	put_be32(rec + 44, path->av.flow_label << 8 | path->av.hop_limit);
	rec[48] = path->av.traffic_class;
	rec[49] = 0x81; /* reversible, one path */
	put_be16(rec + 50, path->pkey);
	put_be16(rec + 52, path->av.sl);
	rec[54] = 0x80 | port_mtu_code(path->mtu); /* exactly */
	rec[55] = 0x80 | path->rate;
	rec[56] = 0x80 | path->packet_life;
}

static int
query_path(struct rdmacm_call *c)
{
	struct rdma_ucm_query_path_resp head = { .num_paths = 0 };
	struct ib_path_rec_data path;
	uint8_t resp[sizeof(head) + sizeof(path)];

	memset(&path, 0, sizeof(path));
	if (id_has_path(c->id) && c->id->state >= RDMACM_ROUTE_RESOLVED) {
		head.num_paths = 1;
		query_pack_path(&c->id->path, &path);
	}
	memcpy(resp, &head, sizeof(head));
	memcpy(resp + sizeof(head), &path, sizeof(path));
	return query_reply(c, resp, sizeof(head) + head.num_paths * sizeof(path), sizeof(head));
}

int
rdmacm_query(struct rdmacm_call *c)
{
	const struct rdma_ucm_query *cmd = c->body;

	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addresses(c, false);
	case RDMA_USER_CM_QUERY_GID:
		return query_addresses(c, true);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(c);
	default:
		return error_set(c->err, ENOSYS, "query: option %u is not there", cmd->option);
	}
}

/* --- the attributes of the queue pair --- */

/* What the peer has said, for the states from RTR on. @return false: nothing yet */
static bool
attr_peer(const struct rdmacm_id *id, struct cm_info *info)
{
	if (id->conn == NULL || id->conn->peer.id == 0)
		return false;
	*info = id->conn->peer;
	return true;
}

static int
attr_init(const struct rdmacm_id *id, struct ib_uverbs_qp_attr *a)
{
	const struct rdmacm_conn *conn = id->conn;

	a->qp_attr_mask = QP_ATTR_STATE | QP_ATTRS_INIT;
	a->port_num = DEVICE_PORT;
	a->pkey_index = id->path.present ? id->path.pkey_index : 0;
	/* before there is a connection, the kernel allows the peer nothing */
	if (conn != NULL)
		a->qp_access_flags =
			conn->responder_resources > 0 ? MEM_ACCESS_REMOTE : MEM_ACCESS_REMOTE_WRITE;
	return 0;
}

static int
attr_rtr(const struct rdmacm_id *id, struct ib_uverbs_qp_attr *a, struct error *err)
{
	struct cm_info info;

	if (!attr_peer(id, &info))
		return error_set(err, EINVAL, "init_qp_attr: the peer has not answered yet");
	a->qp_attr_mask = QP_ATTR_STATE | QP_ATTRS_RTR;
	a->path_mtu = port_mtu_code(info.path.mtu);
	a->dest_qp_num = info.remote_qpn;
	a->rq_psn = info.rq_psn;
	a->max_dest_rd_atomic = info.responder_resources;
	a->min_rnr_timer = MIN_RNR_TIMER;
	a->ah_attr.port_num = DEVICE_PORT;
	a->ah_attr.is_global = 1;
	a->ah_attr.sl = info.path.av.sl;
	memcpy(a->ah_attr.grh.dgid, &info.path.av.dgid, sizeof(a->ah_attr.grh.dgid));
	a->ah_attr.grh.sgid_index = (uint8_t)info.path.sgid_index;
	a->ah_attr.grh.flow_label = info.path.av.flow_label;
	a->ah_attr.grh.hop_limit = info.path.av.hop_limit;
	a->ah_attr.grh.traffic_class = id->tos != 0 ? id->tos : info.path.av.traffic_class;
	return 0;
}

static int
attr_rts(const struct rdmacm_id *id, struct ib_uverbs_qp_attr *a, struct error *err)
{
	struct cm_info info;

	if (!attr_peer(id, &info))
		return error_set(err, EINVAL, "init_qp_attr: the peer has not answered yet");
	a->qp_attr_mask = QP_ATTR_STATE | QP_ATTRS_RTS;
	a->sq_psn = info.sq_psn;
	a->timeout = id->ack_timeout != 0 ? id->ack_timeout : info.ack_timeout;
	a->retry_cnt = info.retry_count;
	a->rnr_retry = info.rnr_retry_count;
	a->max_rd_atomic = info.initiator_depth;
	return 0;
}

int
rdmacm_init_qp_attr(struct rdmacm_call *c)
{
	const struct rdma_ucm_init_qp_attr *cmd = c->body;
	struct ib_uverbs_qp_attr a;
	int rc;

	memset(&a, 0, sizeof(a));
	a.qp_state = cmd->qp_state;
	if (c->id->port < 0)
		return error_set(c->err, EINVAL, "init_qp_attr: the ID has no device yet");
	if (cmd->qp_state == QPS_INIT)
		rc = attr_init(c->id, &a);
	else if (cmd->qp_state == QPS_RTR)
		rc = attr_rtr(c->id, &a, c->err);
	else if (cmd->qp_state == QPS_RTS)
		rc = attr_rts(c->id, &a, c->err);
	else
		rc = error_set(c->err, EINVAL,
			"init_qp_attr: qp_state: got %u, allowed: INIT, RTR, RTS", cmd->qp_state);
	return rc != 0 ? rc : query_reply(c, &a, sizeof(a), sizeof(a));
}

/* --- options --- */

static bool
option_flag(const struct rdmacm_call *c)
{
	int value;

	memcpy(&value, OPTION_VALUE(c), sizeof(value));
	return value != 0;
}

static int
option_of_id(struct rdmacm_call *c, const struct rdma_ucm_set_option *cmd)
{
	struct rdmacm_id *id = c->id;

	if (cmd->optname == RDMA_OPTION_ID_TOS && cmd->optlen == sizeof(uint8_t))
		id->tos = *OPTION_VALUE(c);
	else if (cmd->optname == RDMA_OPTION_ID_REUSEADDR && cmd->optlen == sizeof(int))
		id->reuse = option_flag(c);
	else if (cmd->optname == RDMA_OPTION_ID_AFONLY && cmd->optlen == sizeof(int))
		id->ipv6_only = option_flag(c);
	else if (cmd->optname == RDMA_OPTION_ID_ACK_TIMEOUT && cmd->optlen == sizeof(uint8_t) &&
		*OPTION_VALUE(c) < 32)
		id->ack_timeout = *OPTION_VALUE(c);
	else
		return error_set(c->err, EINVAL, "set_option: got option %u of %u bytes",
			cmd->optname, cmd->optlen);
	return 0;
}

int
rdmacm_set_option(struct rdmacm_call *c)
{
	const struct rdma_ucm_set_option *cmd = c->body;

	if (cmd->optlen != c->size - sizeof(*cmd))
		return error_set(c->err, EINVAL, "set_option: %u bytes of value, optlen %u",
			(unsigned int)(c->size - sizeof(*cmd)), cmd->optlen);
	if (cmd->level != RDMA_OPTION_ID) /* routes of RoCE need no PathRecord */
		return error_set(c->err, ENOSYS, "set_option: level %u is not there", cmd->level);
	return option_of_id(c, cmd);
}
