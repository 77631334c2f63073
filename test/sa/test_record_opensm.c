/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Compare layouts and mask bits with opensm's ib_types.h: its structures and accessors and our
 * tables read the same records of random bytes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <iba/ib_types.h>

#include "sa/record.h"

#define ROUNDS 500

union any {
	uint8_t bytes[SA_RECORD_MAX];
	ib_node_record_t node;
	ib_portinfo_record_t port;
	ib_sminfo_record_t sm;
	ib_link_record_t link;
	ib_guidinfo_record_t guid;
	ib_pkey_table_record_t pkey;
	ib_slvl_table_record_t slvl;
	ib_vl_arb_table_record_t vlarb;
	ib_lft_record_t lft;
	ib_mft_record_t mft;
	ib_switch_info_record_t sw;
	ib_service_record_t service;
	ib_path_rec_t path;
	ib_multipath_rec_t multi;
	ib_member_rec_t member;
	ib_inform_info_t inform;
	ib_inform_info_record_t subscription;
	ib_class_port_info_t cpi;
	ib_mad_notice_attr_t notice;
};

static union any r;
static unsigned int compared;

static const struct sa_field *
sa_record_opensm_field(uint16_t attribute, const char *name)
{
	const struct sa_field *f = sa_field_named(sa_record_type(attribute), name);

	if (f == NULL)
		fail_msg("attribute 0x%x has no %s", attribute, name);
	return f;
}

static void
sa_record_opensm_same(uint16_t attribute, const char *name, uint64_t theirs)
{
	uint64_t ours = sa_get(sa_record_opensm_field(attribute, name), r.bytes);

	if (ours != theirs)
		fail_msg("%s: 0x%llx, opensm has 0x%llx", name, (unsigned long long)ours,
			(unsigned long long)theirs);
	compared++;
}

static void
same_bytes(uint16_t attribute, const char *name, const void *theirs, size_t len)
{
	const struct sa_field *f = sa_record_opensm_field(attribute, name);

	assert_int_equal(f->bits, len * 8);
	assert_int_equal(f->offset, ((const uint8_t *)theirs - r.bytes) * 8);
	compared++;
}

#define N16 cl_ntoh16
#define N32 cl_ntoh32
#define N64 cl_ntoh64

static void
sa_record_opensm_node(void)
{
	const ib_node_info_t *n = &r.node.node_info;

	sa_record_opensm_same(SA_NODE, "lid", N16(r.node.lid));
	sa_record_opensm_same(SA_NODE, "base_version", n->base_version);
	sa_record_opensm_same(SA_NODE, "class_version", n->class_version);
	sa_record_opensm_same(SA_NODE, "node_type", n->node_type);
	sa_record_opensm_same(SA_NODE, "num_ports", n->num_ports);
	sa_record_opensm_same(SA_NODE, "sys_guid", N64(n->sys_guid));
	sa_record_opensm_same(SA_NODE, "node_guid", N64(n->node_guid));
	sa_record_opensm_same(SA_NODE, "port_guid", N64(n->port_guid));
	sa_record_opensm_same(SA_NODE, "partition_cap", N16(n->partition_cap));
	sa_record_opensm_same(SA_NODE, "device_id", N16(n->device_id));
	sa_record_opensm_same(SA_NODE, "revision", N32(n->revision));
	sa_record_opensm_same(SA_NODE, "port_num", ib_node_info_get_local_port_num(n));
	sa_record_opensm_same(SA_NODE, "vendor_id", N32(ib_node_info_get_vendor_id(n)));
	same_bytes(SA_NODE, "node_desc", &r.node.node_desc, 64);
}

static void
sa_record_opensm_port_info(void)
{
	ib_port_info_t aligned;
	const ib_port_info_t *p = memcpy(&aligned, &r.port.port_info, sizeof(aligned));

	sa_record_opensm_same(SA_PORT_INFO, "lid", N16(r.port.lid));
	sa_record_opensm_same(SA_PORT_INFO, "port_num", r.port.port_num);
	sa_record_opensm_same(SA_PORT_INFO, "options", r.port.options);
	sa_record_opensm_same(SA_PORT_INFO, "m_key", N64(p->m_key));
	sa_record_opensm_same(SA_PORT_INFO, "gid_prefix", N64(p->subnet_prefix));
	sa_record_opensm_same(SA_PORT_INFO, "base_lid", N16(p->base_lid));
	sa_record_opensm_same(SA_PORT_INFO, "sm_lid", N16(p->master_sm_base_lid));
	sa_record_opensm_same(SA_PORT_INFO, "capability_mask", N32(p->capability_mask));
	sa_record_opensm_same(SA_PORT_INFO, "diag_code", N16(p->diag_code));
	sa_record_opensm_same(SA_PORT_INFO, "m_key_lease_period", N16(p->m_key_lease_period));
	sa_record_opensm_same(SA_PORT_INFO, "local_port_num", p->local_port_num);
	sa_record_opensm_same(SA_PORT_INFO, "link_width_enabled", p->link_width_enabled);
	sa_record_opensm_same(SA_PORT_INFO, "link_width_supported", p->link_width_supported);
	sa_record_opensm_same(SA_PORT_INFO, "link_width_active", p->link_width_active);
	sa_record_opensm_same(SA_PORT_INFO, "link_speed_supported",
		ib_port_info_get_link_speed_sup(p));
	sa_record_opensm_same(SA_PORT_INFO, "port_state", ib_port_info_get_port_state(p));
	sa_record_opensm_same(SA_PORT_INFO, "port_phys_state", ib_port_info_get_port_phys_state(p));
	sa_record_opensm_same(SA_PORT_INFO, "link_down_default",
		ib_port_info_get_link_down_def_state(p));
	sa_record_opensm_same(SA_PORT_INFO, "m_key_protect_bits", ib_port_info_get_mpb(p));
	sa_record_opensm_same(SA_PORT_INFO, "lmc", ib_port_info_get_lmc(p));
	sa_record_opensm_same(SA_PORT_INFO, "link_speed_active",
		ib_port_info_get_link_speed_active(p));
	sa_record_opensm_same(SA_PORT_INFO, "link_speed_enabled",
		ib_port_info_get_link_speed_enabled(p));
	sa_record_opensm_same(SA_PORT_INFO, "neighbor_mtu", ib_port_info_get_neighbor_mtu(p));
	sa_record_opensm_same(SA_PORT_INFO, "sm_sl", ib_port_info_get_master_smsl(p));
	sa_record_opensm_same(SA_PORT_INFO, "vl_cap", ib_port_info_get_vl_cap(p));
	sa_record_opensm_same(SA_PORT_INFO, "init_type", ib_port_info_get_init_type(p));
	sa_record_opensm_same(SA_PORT_INFO, "vl_high_limit", p->vl_high_limit);
	sa_record_opensm_same(SA_PORT_INFO, "vl_arb_high_cap", p->vl_arb_high_cap);
	sa_record_opensm_same(SA_PORT_INFO, "vl_arb_low_cap", p->vl_arb_low_cap);
	sa_record_opensm_same(SA_PORT_INFO, "mtu_cap", ib_port_info_get_mtu_cap(p));
	sa_record_opensm_same(SA_PORT_INFO, "vl_stall_count", ib_port_info_get_vl_stall_count(p));
	sa_record_opensm_same(SA_PORT_INFO, "hoq_life", ib_port_info_get_hoq_lifetime(p));
	sa_record_opensm_same(SA_PORT_INFO, "oper_vls", ib_port_info_get_op_vls(p));
	sa_record_opensm_same(SA_PORT_INFO, "m_key_violations", N16(p->m_key_violations));
	sa_record_opensm_same(SA_PORT_INFO, "p_key_violations", N16(p->p_key_violations));
	sa_record_opensm_same(SA_PORT_INFO, "q_key_violations", N16(p->q_key_violations));
	sa_record_opensm_same(SA_PORT_INFO, "guid_cap", p->guid_cap);
	sa_record_opensm_same(SA_PORT_INFO, "client_reregister", ib_port_info_get_client_rereg(p));
	sa_record_opensm_same(SA_PORT_INFO, "subnet_timeout", ib_port_info_get_timeout(p));
	sa_record_opensm_same(SA_PORT_INFO, "resp_time_value", ib_port_info_get_resp_time_value(p));
	sa_record_opensm_same(SA_PORT_INFO, "local_phy_errors",
		ib_port_info_get_local_phy_err_thd(p));
	sa_record_opensm_same(SA_PORT_INFO, "overrun_errors", ib_port_info_get_overrun_err_thd(p));
	sa_record_opensm_same(SA_PORT_INFO, "max_credit_hint", N16(p->max_credit_hint));
	sa_record_opensm_same(SA_PORT_INFO, "link_round_trip_latency",
		N32(p->link_rt_latency) & 0xFFFFFF);
	sa_record_opensm_same(SA_PORT_INFO, "capability_mask2", N16(p->capability_mask2));
	sa_record_opensm_same(SA_PORT_INFO, "link_speed_ext_active",
		ib_port_info_get_link_speed_ext_active(p));
	sa_record_opensm_same(SA_PORT_INFO, "link_speed_ext_supported",
		ib_port_info_get_link_speed_ext_sup(p));
	sa_record_opensm_same(SA_PORT_INFO, "link_speed_ext_enabled",
		ib_port_info_get_link_speed_ext_enabled(p));
}

static void
tables(void)
{
	const ib_switch_info_t *s = &r.sw.switch_info;
	char guid[] = "guid0";

	sa_record_opensm_same(SA_SM_INFO, "lid", N16(r.sm.lid));
	sa_record_opensm_same(SA_SM_INFO, "guid", N64(r.sm.sm_info.guid));
	sa_record_opensm_same(SA_SM_INFO, "sm_key", N64(r.sm.sm_info.sm_key));
	sa_record_opensm_same(SA_SM_INFO, "act_count", N32(r.sm.sm_info.act_count));
	sa_record_opensm_same(SA_SM_INFO, "priority", ib_sminfo_get_priority(&r.sm.sm_info));
	sa_record_opensm_same(SA_SM_INFO, "sm_state", ib_sminfo_get_state(&r.sm.sm_info));

	sa_record_opensm_same(SA_LINK, "from_lid", N16(r.link.from_lid));
	sa_record_opensm_same(SA_LINK, "from_port", r.link.from_port_num);
	sa_record_opensm_same(SA_LINK, "to_port", r.link.to_port_num);
	sa_record_opensm_same(SA_LINK, "to_lid", N16(r.link.to_lid));

	sa_record_opensm_same(SA_GUID_INFO, "lid", N16(r.guid.lid));
	sa_record_opensm_same(SA_GUID_INFO, "block_num", r.guid.block_num);
	for (unsigned int i = 0; i < 8; i++) {
		guid[4] = (char)('0' + i);
		sa_record_opensm_same(SA_GUID_INFO, guid, N64(r.guid.guid_info.guid[i]));
	}

	sa_record_opensm_same(SA_PKEY_TABLE, "lid", N16(r.pkey.lid));
	sa_record_opensm_same(SA_PKEY_TABLE, "block_num", N16(r.pkey.block_num));
	sa_record_opensm_same(SA_PKEY_TABLE, "port_num", r.pkey.port_num);
	same_bytes(SA_PKEY_TABLE, "pkeys", &r.pkey.pkey_tbl, 64);

	sa_record_opensm_same(SA_SLTOVL, "lid", N16(r.slvl.lid));
	sa_record_opensm_same(SA_SLTOVL, "in_port", r.slvl.in_port_num);
	sa_record_opensm_same(SA_SLTOVL, "out_port", r.slvl.out_port_num);
	same_bytes(SA_SLTOVL, "vls", &r.slvl.slvl_tbl, 8);
	for (unsigned int i = 0; i < 16; i++) {
		struct sa_field f = *sa_record_opensm_field(SA_SLTOVL, "vls");

		f.bits = 4;
		f.offset += i * 4;
		assert_int_equal(sa_get(&f, r.bytes),
			ib_slvl_table_get(&r.slvl.slvl_tbl, (uint8_t)i));
	}

	sa_record_opensm_same(SA_VLARB, "lid", N16(r.vlarb.lid));
	sa_record_opensm_same(SA_VLARB, "port_num", r.vlarb.port_num);
	sa_record_opensm_same(SA_VLARB, "block_num", r.vlarb.block_num);
	same_bytes(SA_VLARB, "entries", &r.vlarb.vl_arb_tbl, 64);

	sa_record_opensm_same(SA_LFT, "lid", N16(r.lft.lid));
	sa_record_opensm_same(SA_LFT, "block_num", N16(r.lft.block_num));
	same_bytes(SA_LFT, "ports", r.lft.lft, 64);

	sa_record_opensm_same(SA_MFT, "lid", N16(r.mft.lid));
	sa_record_opensm_same(SA_MFT, "position", N16(r.mft.position_block_num) >> 12);
	sa_record_opensm_same(SA_MFT, "block_num",
		N16(r.mft.position_block_num) & IB_MCAST_BLOCK_ID_MASK_HO);
	same_bytes(SA_MFT, "masks", r.mft.mft, 64);

	sa_record_opensm_same(SA_SWITCH_INFO, "lid", N16(r.sw.lid));
	sa_record_opensm_same(SA_SWITCH_INFO, "lin_cap", N16(s->lin_cap));
	sa_record_opensm_same(SA_SWITCH_INFO, "rand_cap", N16(s->rand_cap));
	sa_record_opensm_same(SA_SWITCH_INFO, "mcast_cap", N16(s->mcast_cap));
	sa_record_opensm_same(SA_SWITCH_INFO, "lin_top", N16(s->lin_top));
	sa_record_opensm_same(SA_SWITCH_INFO, "def_port", s->def_port);
	sa_record_opensm_same(SA_SWITCH_INFO, "def_mcast_pri_port", s->def_mcast_pri_port);
	sa_record_opensm_same(SA_SWITCH_INFO, "def_mcast_not_port", s->def_mcast_not_port);
	sa_record_opensm_same(SA_SWITCH_INFO, "life_time_value", s->life_state >> 3);
	sa_record_opensm_same(SA_SWITCH_INFO, "port_state_change",
		ib_switch_info_get_state_change(s) != 0);
	/* opensm asks for its low bit only */
	assert_int_equal(sa_get(sa_record_opensm_field(SA_SWITCH_INFO, "optimized_sltovl"),
				 r.bytes) &
			1,
		ib_switch_info_get_opt_sl2vlmapping(s));
	sa_record_opensm_same(SA_SWITCH_INFO, "lids_per_port", N16(s->lids_per_port));
	sa_record_opensm_same(SA_SWITCH_INFO, "part_enforce_cap", N16(s->enforce_cap));
	sa_record_opensm_same(SA_SWITCH_INFO, "enhanced_port0",
		ib_switch_info_is_enhanced_port0(s));
	sa_record_opensm_same(SA_SWITCH_INFO, "mcast_top", N16(s->mcast_top));
}

static void
sa_record_opensm_service(void)
{
	sa_record_opensm_same(SA_SERVICE, "service_id", N64(r.service.service_id));
	same_bytes(SA_SERVICE, "service_gid", &r.service.service_gid, 16);
	sa_record_opensm_same(SA_SERVICE, "service_pkey", N16(r.service.service_pkey));
	sa_record_opensm_same(SA_SERVICE, "service_lease", N32(r.service.service_lease));
	same_bytes(SA_SERVICE, "service_key", r.service.service_key, 16);
	same_bytes(SA_SERVICE, "service_name", r.service.service_name, 64);
	same_bytes(SA_SERVICE, "service_data8", r.service.service_data8, 16);
	same_bytes(SA_SERVICE, "service_data16", r.service.service_data16, 16);
	same_bytes(SA_SERVICE, "service_data32", r.service.service_data32, 16);
	same_bytes(SA_SERVICE, "service_data64", r.service.service_data64, 16);
}

static void
sa_record_opensm_path(void)
{
	const ib_path_rec_t *p = &r.path;

	sa_record_opensm_same(SA_PATH, "service_id", N64(p->service_id));
	same_bytes(SA_PATH, "dgid", &p->dgid, 16);
	same_bytes(SA_PATH, "sgid", &p->sgid, 16);
	sa_record_opensm_same(SA_PATH, "dlid", N16(p->dlid));
	sa_record_opensm_same(SA_PATH, "slid", N16(p->slid));
	sa_record_opensm_same(SA_PATH, "raw_traffic", N32(p->hop_flow_raw) >> 31);
	sa_record_opensm_same(SA_PATH, "flow_label", ib_path_rec_flow_lbl(p));
	sa_record_opensm_same(SA_PATH, "hop_limit", ib_path_rec_hop_limit(p));
	sa_record_opensm_same(SA_PATH, "tclass", p->tclass);
	sa_record_opensm_same(SA_PATH, "reversible", p->num_path >> 7);
	sa_record_opensm_same(SA_PATH, "numb_path", ib_path_rec_num_path(p));
	sa_record_opensm_same(SA_PATH, "pkey", N16(p->pkey));
	sa_record_opensm_same(SA_PATH, "qos_class", ib_path_rec_qos_class(p));
	sa_record_opensm_same(SA_PATH, "sl", ib_path_rec_sl(p));
	sa_record_opensm_same(SA_PATH, "mtu_selector", ib_path_rec_mtu_sel(p));
	sa_record_opensm_same(SA_PATH, "mtu", ib_path_rec_mtu(p));
	sa_record_opensm_same(SA_PATH, "rate_selector", ib_path_rec_rate_sel(p));
	sa_record_opensm_same(SA_PATH, "rate", ib_path_rec_rate(p));
	sa_record_opensm_same(SA_PATH, "packet_life_selector", ib_path_rec_pkt_life_sel(p));
	sa_record_opensm_same(SA_PATH, "packet_life", ib_path_rec_pkt_life(p));
	sa_record_opensm_same(SA_PATH, "preference", p->preference);
}

static void
multi_path(void)
{
	const ib_multipath_rec_t *m = &r.multi;

	sa_record_opensm_same(SA_MULTI_PATH, "raw_traffic", N32(m->hop_flow_raw) >> 31);
	sa_record_opensm_same(SA_MULTI_PATH, "flow_label", N32(m->hop_flow_raw) >> 8 & 0xFFFFF);
	sa_record_opensm_same(SA_MULTI_PATH, "hop_limit", N32(m->hop_flow_raw) & 0xFF);
	sa_record_opensm_same(SA_MULTI_PATH, "tclass", m->tclass);
	sa_record_opensm_same(SA_MULTI_PATH, "reversible", m->num_path >> 7);
	sa_record_opensm_same(SA_MULTI_PATH, "numb_path", ib_multipath_rec_num_path(m));
	sa_record_opensm_same(SA_MULTI_PATH, "pkey", N16(m->pkey));
	sa_record_opensm_same(SA_MULTI_PATH, "qos_class", ib_multipath_rec_qos_class(m));
	sa_record_opensm_same(SA_MULTI_PATH, "sl", ib_multipath_rec_sl(m));
	sa_record_opensm_same(SA_MULTI_PATH, "mtu_selector", ib_multipath_rec_mtu_sel(m));
	sa_record_opensm_same(SA_MULTI_PATH, "mtu", ib_multipath_rec_mtu(m));
	sa_record_opensm_same(SA_MULTI_PATH, "rate_selector", ib_multipath_rec_rate_sel(m));
	sa_record_opensm_same(SA_MULTI_PATH, "rate", ib_multipath_rec_rate(m));
	sa_record_opensm_same(SA_MULTI_PATH, "packet_life_selector",
		ib_multipath_rec_pkt_life_sel(m));
	sa_record_opensm_same(SA_MULTI_PATH, "packet_life", ib_multipath_rec_pkt_life(m));
	same_bytes(SA_MULTI_PATH, "service_id_msb", &m->service_id_8msb, 1);
	sa_record_opensm_same(SA_MULTI_PATH, "independence", m->independence >> 6);
	same_bytes(SA_MULTI_PATH, "sgid_count", &m->sgid_count, 1);
	same_bytes(SA_MULTI_PATH, "dgid_count", &m->dgid_count, 1);
	same_bytes(SA_MULTI_PATH, "service_id_lsb", m->service_id_56lsb, 7);
}

static void
sa_record_opensm_member(void)
{
	const ib_member_rec_t *m = &r.member;
	uint8_t sl, hop, scope, state;
	uint32_t flow;

	ib_member_get_sl_flow_hop(m->sl_flow_hop, &sl, &flow, &hop);
	ib_member_get_scope_state(m->scope_state, &scope, &state);
	same_bytes(SA_MCMEMBER, "mgid", &m->mgid, 16);
	same_bytes(SA_MCMEMBER, "port_gid", &m->port_gid, 16);
	sa_record_opensm_same(SA_MCMEMBER, "qkey", N32(m->qkey));
	sa_record_opensm_same(SA_MCMEMBER, "mlid", N16(m->mlid));
	sa_record_opensm_same(SA_MCMEMBER, "mtu_selector", m->mtu >> 6);
	sa_record_opensm_same(SA_MCMEMBER, "mtu", m->mtu & 0x3F);
	sa_record_opensm_same(SA_MCMEMBER, "tclass", m->tclass);
	sa_record_opensm_same(SA_MCMEMBER, "pkey", N16(m->pkey));
	sa_record_opensm_same(SA_MCMEMBER, "rate_selector", m->rate >> 6);
	sa_record_opensm_same(SA_MCMEMBER, "rate", m->rate & 0x3F);
	sa_record_opensm_same(SA_MCMEMBER, "packet_life_selector", m->pkt_life >> 6);
	sa_record_opensm_same(SA_MCMEMBER, "packet_life", m->pkt_life & 0x3F);
	sa_record_opensm_same(SA_MCMEMBER, "sl", sl);
	sa_record_opensm_same(SA_MCMEMBER, "flow_label", flow);
	sa_record_opensm_same(SA_MCMEMBER, "hop_limit", hop);
	sa_record_opensm_same(SA_MCMEMBER, "scope", scope);
	sa_record_opensm_same(SA_MCMEMBER, "join_state", state);
}

static void
inform(uint16_t attribute, const ib_inform_info_t *i)
{
	ib_net32_t qpn;
	uint8_t resp_time;

	ib_inform_info_get_qpn_resp_time(i->g_or_v.generic.qpn_resp_time_val, &qpn, &resp_time);
	same_bytes(attribute, "gid", &i->gid, 16);
	sa_record_opensm_same(attribute, "lid_range_begin", N16(i->lid_range_begin));
	sa_record_opensm_same(attribute, "lid_range_end", N16(i->lid_range_end));
	sa_record_opensm_same(attribute, "is_generic", i->is_generic);
	sa_record_opensm_same(attribute, "subscribe", i->subscribe);
	sa_record_opensm_same(attribute, "type", N16(i->trap_type));
	sa_record_opensm_same(attribute, "trap_num", N16(i->g_or_v.generic.trap_num));
	sa_record_opensm_same(attribute, "qpn", N32(qpn));
	sa_record_opensm_same(attribute, "resp_time_value", resp_time);
	sa_record_opensm_same(attribute, "producer_type", N32(ib_inform_info_get_prod_type(i)));
}

static void
rest(void)
{
	const ib_class_port_info_t *c = &r.cpi;
	const ib_mad_notice_attr_t *n = &r.notice;

	inform(SA_INFORM_INFO, &r.inform);
	inform(SA_INFORM_INFO_RECORD, &r.subscription.inform_info);
	same_bytes(SA_INFORM_INFO_RECORD, "subscriber_gid", &r.subscription.subscriber_gid, 16);
	sa_record_opensm_same(SA_INFORM_INFO_RECORD, "enum", N16(r.subscription.subscriber_enum));

	sa_record_opensm_same(SA_CLASS_PORT_INFO, "base_version", c->base_ver);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "class_version", c->class_ver);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "capability_mask", N16(c->cap_mask));
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "capability_mask2",
		ib_class_cap_mask2((ib_class_port_info_t *)(uintptr_t)c));
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "resp_time_value",
		ib_class_resp_time_val((ib_class_port_info_t *)(uintptr_t)c));
	same_bytes(SA_CLASS_PORT_INFO, "redirect_gid", &c->redir_gid, 16);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_tc", N32(c->redir_tc_sl_fl) >> 24);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_sl",
		N32(c->redir_tc_sl_fl) >> 20 & 0xF);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_fl", N32(c->redir_tc_sl_fl) & 0xFFFFF);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_lid", N16(c->redir_lid));
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_pkey", N16(c->redir_pkey));
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_qp", N32(c->redir_qp) & 0xFFFFFF);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "redirect_qkey", N32(c->redir_qkey));
	same_bytes(SA_CLASS_PORT_INFO, "trap_gid", &c->trap_gid, 16);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "trap_lid", N16(c->trap_lid));
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "trap_pkey", N16(c->trap_pkey));
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "trap_hl", N32(c->trap_hop_qp) >> 24);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "trap_qp", N32(c->trap_hop_qp) & 0xFFFFFF);
	sa_record_opensm_same(SA_CLASS_PORT_INFO, "trap_qkey", N32(c->trap_qkey));

	sa_record_opensm_same(SA_NOTICE, "is_generic", ib_notice_is_generic(n) != 0);
	sa_record_opensm_same(SA_NOTICE, "type", ib_notice_get_type(n));
	sa_record_opensm_same(SA_NOTICE, "producer_type", N32(ib_notice_get_prod_type(n)));
	sa_record_opensm_same(SA_NOTICE, "trap_num", N16(n->g_or_v.generic.trap_num));
	sa_record_opensm_same(SA_NOTICE, "issuer_lid", N16(n->issuer_lid));
	sa_record_opensm_same(SA_NOTICE, "toggle", N16(n->toggle_count) >> 15);
	sa_record_opensm_same(SA_NOTICE, "count", N16(n->toggle_count) & 0x7FFF);
	same_bytes(SA_NOTICE, "data_details", &n->data_details, 54);
	same_bytes(SA_NOTICE, "issuer_gid", &n->issuer_gid, 16);
}

/* sa-multipacket B10, smp-sma 3 and 5 */
static void
test_components_stand_where_opensm_has_them(void **state)
{
	(void)state;
	srand(1);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < sizeof(r.bytes); i++)
			r.bytes[i] = (uint8_t)(rand() >> 7);
		sa_record_opensm_node();
		sa_record_opensm_port_info();
		tables();
		sa_record_opensm_service();
		sa_record_opensm_path();
		multi_path();
		sa_record_opensm_member();
		rest();
	}
	assert_int_equal(compared, ROUNDS * 233);
}

/* lengths and strides: B10 */
static void
test_records_are_as_long_as_opensm_has_them(void **state)
{
	static const struct {
		uint16_t attribute;
		size_t padded;
	} lens[] = {
		{ SA_NODE, sizeof(ib_node_record_t) },
		{ SA_PORT_INFO, sizeof(ib_portinfo_record_t) },
		{ SA_SM_INFO, sizeof(ib_sminfo_record_t) },
		{ SA_LINK, sizeof(ib_link_record_t) },
		{ SA_GUID_INFO, sizeof(ib_guidinfo_record_t) },
		{ SA_PKEY_TABLE, sizeof(ib_pkey_table_record_t) },
		{ SA_SLTOVL, sizeof(ib_slvl_table_record_t) },
		{ SA_VLARB, sizeof(ib_vl_arb_table_record_t) },
		{ SA_LFT, sizeof(ib_lft_record_t) },
		{ SA_MFT, sizeof(ib_mft_record_t) },
		{ SA_SWITCH_INFO, sizeof(ib_switch_info_record_t) },
		{ SA_SERVICE, sizeof(ib_service_record_t) },
		{ SA_PATH, sizeof(ib_path_rec_t) },
		{ SA_MCMEMBER, sizeof(ib_member_rec_t) },
		{ SA_INFORM_INFO_RECORD, sizeof(ib_inform_info_record_t) },
		{ SA_CLASS_PORT_INFO, sizeof(ib_class_port_info_t) },
		{ SA_NOTICE, sizeof(ib_mad_notice_attr_t) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		assert_int_equal(sa_record_type(lens[i].attribute)->stride, lens[i].padded);
}

/* clang-format off */
#define BIT(attribute, name, constant)                                                             \
	{                                                                                          \
		attribute, name, constant                                                          \
	}
/* clang-format on */

/* B11 */
static void
test_mask_bits_are_opensms(void **state)
{
	static const struct {
		uint16_t attribute;
		const char *name;
		uint64_t mask;
	} bits[] = {
#include "opensm_masks.h"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		const struct sa_record_type *t = sa_record_type(bits[i].attribute);
		const struct sa_field *f = sa_record_opensm_field(bits[i].attribute, bits[i].name);
		uint64_t theirs = N64(bits[i].mask);

		if (sa_mask(t, f, SA_V2) != theirs)
			fail_msg("%s %s: 0x%llx, opensm has 0x%llx", t->name, f->name,
				(unsigned long long)sa_mask(t, f, SA_V2),
				(unsigned long long)theirs);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_components_stand_where_opensm_has_them),
		cmocka_unit_test(test_records_are_as_long_as_opensm_has_them),
		cmocka_unit_test(test_mask_bits_are_opensms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
