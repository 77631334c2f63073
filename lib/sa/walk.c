/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Follow forwarding tables hop by hop. Like in opensm, both ends of each link limit MTU and rate.
 */

#include <errno.h>

#include "sa/layout.h"
#include "sa/select.h"
#include "sa/tables.h"
#include "sa/walk.h"
#include "wire/bytes.h"

#define ALL_SLS UINT16_MAX

/* Position of the packet: at a node, about to leave by a port. */
struct place {
	uint16_t lid; /* base LID of the endport or of the switch */
	uint8_t in_port; /* port it arrived by; 0: it starts here */
	uint8_t out_port;
};

bool
walk_possible(const struct store_version *v)
{
	return store_count(v, SA_TABLE_LFT) > 0 || store_count(v, SA_TABLE_RFT) > 0;
}

int
walk_path_sl(const struct store_version *v, uint16_t slid, uint16_t dlid)
{
	const struct store_record *r =
		store_get(v, SA_TABLE_PATH_SL, RID_LID(slid) | dlid / LFT_PORTS);
	uint8_t sl = r != NULL ? r->bytes[PATH_SL_OFF_SLS + dlid % LFT_PORTS] : PATH_SL_UNKNOWN;

	return sl <= 15 ? sl : -1;
}

static bool
has_records(const struct store_version *v, unsigned int table, uint16_t lid)
{
	struct store_cursor c;

	return sa_first_of_lid(v, table, lid, &c) != NULL;
}

/* In a random forwarding table: the port of the entry with the LID, else the default port. */
static uint8_t
walk_random_port(const struct store_version *v, uint16_t sw, uint16_t dlid)
{
	struct store_cursor c;
	const struct store_record *r = sa_first_of_lid(v, SA_TABLE_RFT, sw, &c);
	unsigned int i;

	for (; r != NULL && r->rid >> 16 == sw; r = store_next(&c, NULL))
		for (i = 0; i < RFT_ENTRIES; i++) {
			const uint8_t *e = r->bytes + RFT_OFF_ENTRIES + 4 * i;
			uint16_t base = get_be16(e), how = get_be16(e + 2);

			if ((how & RFT_VALID) != 0 && dlid >= base &&
				dlid - base < 1 << (how >> 12 & 7))
				return how & 0xFF;
		}
	r = store_get(v, SA_TABLE_SWITCH_INFO, RID_LID(sw));
	return r != NULL ? r->bytes[SWITCH_OFF_DEF_PORT] : LFT_NO_PORT;
}

/* The output port; LFT_NO_PORT: none. @retval -ENODATA  no table of the switch is stored */
static int
walk_forward(const struct store_version *v, uint16_t sw, uint16_t dlid)
{
	const struct store_record *block =
		store_get(v, SA_TABLE_LFT, RID_LID(sw) | dlid / LFT_PORTS);

	if (block != NULL)
		return block->bytes[LFT_OFF_PORTS + dlid % LFT_PORTS];
	if (has_records(v, SA_TABLE_LFT, sw))
		return LFT_NO_PORT;
	return has_records(v, SA_TABLE_RFT, sw) ? walk_random_port(v, sw, dlid) : -ENODATA;
}

/* Apply the port's limits. @return false: the port is down */
static bool
walk_pass_port(const struct store_version *v, uint16_t lid, uint8_t port, struct walk *w)
{
	const struct store_record *r =
		store_get(v, SA_TABLE_PORT_INFO, RID_LID(lid) | (uint32_t)port << 8);

	if (r == NULL)
		return true; /* no PortInfo: assume that it is up */
	if ((r->bytes[PORT_OFF_STATE] & 0xF) == PORT_STATE_DOWN)
		return false;
	w->mtu = mtu_min(w->mtu, port_info_mtu(r->bytes));
	w->rate = rate_min(w->rate, port_info_rate(r->bytes));
	return true;
}

/* Remove SLs that are mapped to VL 15: the switch drops them. */
static void
pass_sltovl(const struct store_version *v, const struct place *at, struct walk *w)
{
	const struct store_record *r = store_get(v, SA_TABLE_SLTOVL,
		RID_LID(at->lid) | (uint32_t)at->in_port << 8 | at->out_port);
	unsigned int sl;

	if (r == NULL) {
		w->sls_known = false;
		return;
	}
	for (sl = 0; sl < 16; sl++) {
		uint8_t two = r->bytes[SLTOVL_OFF_VLS + sl / 2];

		if ((sl % 2 == 0 ? two >> 4 : two & 0xF) == VL_DROP)
			w->sls &= ~(1u << sl);
	}
}

/* Leave by a port and cross its link. @return false: the link is down or unknown */
static bool
cross_link(const struct store_version *v, struct place *at, struct walk *w)
{
	const struct store_record *link;

	pass_sltovl(v, at, w);
	link = store_get(v, SA_TABLE_LINK, RID_LID(at->lid) | (uint32_t)at->out_port << 8);
	if (link == NULL || !walk_pass_port(v, at->lid, at->out_port, w))
		return false;
	at->lid = get_be16(link->bytes + LINK_OFF_TO_LID);
	at->in_port = link->bytes[LINK_OFF_TO_PORT];
	return walk_pass_port(v, at->lid, at->in_port, w);
}

static bool
is_switch(const struct store_version *v, uint16_t lid)
{
	return store_get(v, SA_TABLE_SWITCH_INFO, RID_LID(lid)) != NULL;
}

/* Forward the packet in a switch. @retval 1  it is addressed to the switch itself */
static int
walk_pass_switch(const struct store_version *v, struct place *at, uint16_t dlid,
	const struct port_view *to, struct walk *w)
{
	int out = walk_forward(v, at->lid, dlid);

	if (out < 0)
		return out;
	if (out == 0) /* the switch's own port 0 */
		return at->lid == to->lid ? 1 : -ENETUNREACH;
	at->out_port = out;
	w->hops++;
	return cross_link(v, at, w) ? 0 : -ENETUNREACH;
}

int
walk_route(const struct store_version *v, const struct port_view *from, const struct port_view *to,
	uint16_t dlid, struct walk *w)
{
	struct place at = { .lid = from->lid, .out_port = from->port };
	int rc = 0;

	*w = (struct walk){
		.mtu = mtu_min(from->mtu, to->mtu),
		.rate = rate_min(from->rate, to->rate),
		.sls = ALL_SLS,
		.sls_known = true,
	};
	if (from->node_type != NODE_TYPE_SWITCH && !cross_link(v, &at, w))
		return -ENETUNREACH;
	while (rc == 0) {
		if (at.lid == to->lid && to->node_type != NODE_TYPE_SWITCH)
			return 0;
		if (!is_switch(v, at.lid) || w->hops == WALK_HOPS_MAX)
			return -ENETUNREACH;
		rc = walk_pass_switch(v, &at, dlid, to, w);
	}
	return rc < 0 ? rc : 0;
}
