/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Make records from a node or port of ibnetdiscover's output. Values that it does not give stay 0,
 * which means unknown in all of these components.
 */

#include <string.h>

#include "import_private.h"

#define CAP_EXT_SPEEDS (1u << 14)

static struct sa_change *
emit_begin(struct sa_ibnet *in, uint16_t attribute)
{
	memset(&in->change, 0, sizeof(in->change));
	in->change.type = sa_record_type(attribute);
	return &in->change;
}

static void
emit_put(struct sa_change *c, const char *name, uint64_t value)
{
	sa_put_named(c->type, name, c->rec, value);
}

int
sa_ibnet_emit(struct sa_ibnet *in, struct error *err)
{
	int rc = in->sink.take(in->sink.arg, &in->change);

	if (rc != 0)
		return error_set(err, -rc, "line %u: its records could not be stored: %s",
			in->line_num, strerror(-rc));
	return 0;
}

static int
emit_ibnet_node(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err)
{
	const struct sa_ibnet_node *n = &in->node;
	struct sa_change *c = emit_begin(in, SA_NODE);

	emit_put(c, "lid", p->lid);
	emit_put(c, "base_version", 1);
	emit_put(c, "class_version", 1);
	emit_put(c, "node_type", n->type);
	emit_put(c, "num_ports", n->num_ports);
	emit_put(c, "sys_guid", n->sys_guid);
	emit_put(c, "node_guid", n->guid);
	emit_put(c, "port_guid", p->guid);
	emit_put(c, "device_id", n->device_id);
	emit_put(c, "port_num", p->num);
	emit_put(c, "vendor_id", n->vendor_id);
	memcpy(c->rec + sa_field_named(c->type, "node_desc")->offset / 8, n->desc, n->desc_len);
	return sa_ibnet_emit(in, err);
}

static int
emit_ibnet_guid(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err)
{
	struct sa_change *c = emit_begin(in, SA_GUID_INFO);

	emit_put(c, "lid", p->lid);
	emit_put(c, "guid0", p->guid);
	return sa_ibnet_emit(in, err);
}

int
sa_ibnet_emit_port(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err)
{
	struct sa_change *c = emit_begin(in, SA_PORT_INFO);

	emit_put(c, "lid", p->lid);
	emit_put(c, "port_num", p->num);
	emit_put(c, "capability_mask", p->speed_ext != 0 ? CAP_EXT_SPEEDS : 0);
	emit_put(c, "local_port_num", p->num);
	emit_put(c, "link_width_active", p->width);
	emit_put(c, "link_speed_active", p->speed);
	emit_put(c, "link_speed_ext_active", p->speed_ext);
	/* it has a LID and the text shows its link, so it is up: an SM configured it */
	emit_put(c, "port_state", 4);
	emit_put(c, "port_phys_state", 5);
	emit_put(c, "vl_cap", p->vls);
	if (p->guid != 0) {
		emit_put(c, "base_lid", p->lid);
		emit_put(c, "lmc", p->lmc);
	}
	return sa_ibnet_emit(in, err);
}

int
sa_import_changes(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err)
{
	struct sa_change c;
	size_t at;
	int rc;

	for (at = 0; at + sizeof(c) <= len; at += sizeof(c)) {
		memcpy(&c, text + at, sizeof(c));
		rc = sink->take(sink->arg, &c);
		if (rc != 0)
			return error_set(err, -rc, "the records could not be stored: %s",
				strerror(-rc));
	}
	return 0;
}

void
sa_import_mtu(struct sa_change *c, uint8_t mtu)
{
	if (c->type->attribute != SA_PORT_INFO || c->remove ||
		sa_get_named(c->type, "neighbor_mtu", c->rec) != 0 ||
		sa_get_named(c->type, "mtu_cap", c->rec) != 0)
		return;
	emit_put(c, "neighbor_mtu", mtu);
	emit_put(c, "mtu_cap", mtu);
}

int
sa_ibnet_emit_endport(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err)
{
	static int (*const records[])(struct sa_ibnet *, const struct sa_ibnet_port *,
		struct error *) = { emit_ibnet_node, sa_ibnet_emit_port, emit_ibnet_guid };
	int rc = 0;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]) && rc == 0; i++)
		rc = records[i](in, p, err);
	return rc;
}

int
sa_ibnet_emit_switch(struct sa_ibnet *in, struct error *err)
{
	struct sa_change *c = emit_begin(in, SA_SWITCH_INFO);

	emit_put(c, "lid", in->node.lid);
	emit_put(c, "enhanced_port0", in->node.enhanced);
	return sa_ibnet_emit(in, err);
}

int
sa_ibnet_emit_link(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err)
{
	struct sa_change *c = emit_begin(in, SA_LINK);

	emit_put(c, "from_lid", p->lid);
	emit_put(c, "from_port", p->num);
	emit_put(c, "to_port", p->to_port);
	emit_put(c, "to_lid", p->to_lid);
	return sa_ibnet_emit(in, err);
}
