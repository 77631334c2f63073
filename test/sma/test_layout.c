/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Compare field positions with lib/sa's tables of the same attributes as records, and with
 * opensm's ib_types.h (Debian: libopensm-dev).
 */

/* opensm has words of its own for work requests */
#define WR_SEND       OSM_WR_SEND
#define WR_RDMA_WRITE OSM_WR_RDMA_WRITE
#define WR_RDMA_READ  OSM_WR_RDMA_READ
#include <iba/ib_types.h>
#undef WR_SEND
#undef WR_RDMA_WRITE
#undef WR_RDMA_READ

#include "sa/record.h"
#include "sma/port_info.h"
#include "smp_fixture.h"

#define RID_LEN 4 /* of a PortInfoRecord: LID, port, options */

/* --- lib/sa --- */

/* Every field of ours is in the record, after its RID part, and the other way round. */
static void
test_port_info_is_the_records(void **state)
{
	const struct sa_record_type *t = sa_record_type(SA_PORT_INFO);
	unsigned int found = 0;

	(void)state;
	for (unsigned int i = 0; i < PI_COUNT; i++) {
		const struct sma_port_info_field *f = &sma_port_info_fields[i];
		const struct sa_field *r = sa_field_named(t, f->name);

		if (i == PI_MCAST_PKEY_TRAP) { /* reserved in the record */
			assert_null(r);
			continue;
		}
		if (r == NULL)
			fail_msg("the record has no %s", f->name);
		if (r->offset - RID_LEN * 8 != f->offset || r->bits != f->bits)
			fail_msg("%s: %u+%u, in the record %u+%u", f->name, f->offset, f->bits,
				r->offset - RID_LEN * 8, r->bits);
		found++;
	}
	for (unsigned int i = 0; i < t->num_fields; i++)
		if (t->fields[i].kind != SA_RESERVED && t->fields[i].offset >= RID_LEN * 8)
			found--;
	assert_int_equal(found, 0);
}

/* An attribute of ours, read as a record. */
static uint64_t
record_says(uint16_t attribute, const char *name, const uint8_t *data)
{
	const struct sa_record_type *t = sa_record_type(attribute);
	uint8_t rec[SA_RECORD_MAX] = { 0 };

	memcpy(rec + t->rid_len, data, 64);
	return sa_get_named(t, name, rec);
}

static void
test_node_info_read_as_a_record(void **state)
{
	struct bench *b = *state;

	assert_int_equal(get(b, 0x0011, 0), 0);
	assert_int_equal(record_says(SA_NODE, "base_version", b->data), 1);
	assert_int_equal(record_says(SA_NODE, "class_version", b->data), 1);
	assert_int_equal(record_says(SA_NODE, "node_type", b->data), 1);
	assert_int_equal(record_says(SA_NODE, "num_ports", b->data), 3);
	assert_true(record_says(SA_NODE, "sys_guid", b->data) == 0x0002C903000001FFull);
	assert_true(record_says(SA_NODE, "node_guid", b->data) == 0x0002C90300000100ull);
	assert_true(record_says(SA_NODE, "port_guid", b->data) == PORT1_GUID);
	assert_int_equal(record_says(SA_NODE, "partition_cap", b->data), 64);
	assert_int_equal(record_says(SA_NODE, "device_id", b->data), 0xBEEF);
	assert_int_equal(record_says(SA_NODE, "revision", b->data), 0xA1);
	assert_int_equal(record_says(SA_NODE, "port_num", b->data), 1);
	assert_int_equal(record_says(SA_NODE, "vendor_id", b->data), 0x1405);
}

static void
test_sm_info_read_as_a_record(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sma_sm_alive(b->sma, 0, b->now), 0);
	assert_int_equal(get(b, 0x0020, 0), 0);
	assert_true(record_says(SA_SM_INFO, "guid", b->data) == PORT1_GUID);
	assert_int_equal(record_says(SA_SM_INFO, "act_count", b->data), 1);
	assert_int_equal(record_says(SA_SM_INFO, "priority", b->data), 5);
	assert_int_equal(record_says(SA_SM_INFO, "sm_state", b->data), 2);
}

/* --- opensm --- */

static ib_port_info_t
osm_port_info(struct bench *b)
{
	ib_port_info_t info;

	assert_int_equal(get(b, 0x0015, 0), 0);
	memcpy(&info, b->data, sizeof(info));
	return info;
}

static void
test_port_info_as_opensm_sees_it(void **state)
{
	struct bench *b = *state;
	ib_port_info_t p = osm_port_info(b);
	uint32_t caps = cl_ntoh32(p.capability_mask);

	assert_int_equal(cl_ntoh16(p.base_lid), 5);
	assert_int_equal(cl_ntoh16(p.master_sm_base_lid), 7);
	assert_int_equal(ib_port_info_get_master_smsl(&p), 2);
	assert_int_equal(ib_port_info_get_port_state(&p), IB_LINK_INIT);
	assert_int_equal(ib_port_info_get_port_phys_state(&p), IB_PORT_PHYS_STATE_LINKUP);
	assert_int_equal(ib_port_info_get_link_down_def_state(&p), 2);
	assert_int_equal(ib_port_info_get_mtu_cap(&p), IB_MTU_LEN_2048);
	assert_int_equal(ib_port_info_get_neighbor_mtu(&p), IB_MTU_LEN_2048);
	assert_int_equal(ib_port_info_get_vl_cap(&p), 4);
	assert_int_equal(ib_port_info_get_op_vls(&p), 4);
	assert_int_equal(p.link_width_active, IB_LINK_WIDTH_ACTIVE_4X);
	assert_int_equal(ib_port_info_get_link_speed_active(&p), IB_LINK_SPEED_ACTIVE_10);
	assert_int_equal(ib_port_info_get_link_speed_ext_active(&p), IB_LINK_SPEED_EXT_ACTIVE_25);
	assert_int_equal(ib_port_info_get_timeout(&p), 18);
	assert_int_equal(ib_port_info_get_resp_time_value(&p), 16);
	assert_int_equal(caps,
		cl_ntoh32(IB_PORT_CAP_IS_SM | IB_PORT_CAP_HAS_NOTICE | IB_PORT_CAP_HAS_TRAP |
			IB_PORT_CAP_HAS_AUTO_MIG | IB_PORT_CAP_HAS_COM_MGT |
			IB_PORT_CAP_HAS_SL_MAP | IB_PORT_CAP_HAS_LED_INFO |
			IB_PORT_CAP_HAS_SYS_IMG_GUID | IB_PORT_CAP_HAS_EXT_SPEEDS |
			IB_PORT_CAP_HAS_VEND_CLS | IB_PORT_CAP_HAS_DR_NTC |
			IB_PORT_CAP_HAS_CAP_NTC | IB_PORT_CAP_HAS_CLIENT_REREG |
			IB_PORT_CAP_HAS_OTHER_LOCAL_CHANGES_NTC));
}

/* A Set as opensm makes it: its accessors write, ours read. */
static void
test_port_info_as_opensm_sets_it(void **state)
{
	struct bench *b = *state;
	ib_port_info_t p = osm_port_info(b);
	const struct port_settings *s = &b->settings[0];

	p.base_lid = cl_hton16(0x21);
	p.master_sm_base_lid = cl_hton16(0x22);
	p.subnet_prefix = cl_hton64(0xFE80000000000055ull);
	ib_port_info_set_master_smsl(&p, 4);
	ib_port_info_set_lmc(&p, 3);
	ib_port_info_set_neighbor_mtu(&p, IB_MTU_LEN_512);
	ib_port_info_set_timeout(&p, 12);
	ib_port_info_set_client_rereg(&p, 1);
	ib_port_info_set_port_state(&p, IB_LINK_ARMED);
	ib_port_info_set_port_phys_state(0, &p);
	ib_port_info_set_link_down_def_state(&p, 1);
	ib_port_info_set_op_vls(&p, 2);
	ib_port_info_set_mpb(&p, 1);
	p.m_key = cl_hton64(0x4711);
	/* opensm names its knowledge of extended speeds in the modifier */
	assert_int_equal(set(b, 0x0015, 0x80000001, (const uint8_t *)&p), 0);
	b->m_key = 0x4711;
	assert_int_equal(s->lid, 0x21);
	assert_int_equal(s->lmc, 3);
	assert_int_equal(s->sm_lid, 0x22);
	assert_int_equal(s->sm_sl, 4);
	assert_int_equal(s->mtu, 512);
	assert_int_equal(s->subnet_timeout, 12);
	assert_true(s->gid_prefix == 0xFE80000000000055ull);
	assert_int_equal(s->state, IB_LINK_ARMED);
	p = osm_port_info(b);
	assert_int_equal(ib_port_info_get_op_vls(&p), 2);
	assert_int_equal(ib_port_info_get_mpb(&p), 1);
	assert_int_equal(ib_port_info_get_link_down_def_state(&p), 1);
	assert_true(cl_ntoh64(p.m_key) == 0x4711);
}

static void
test_tables_as_opensm_sees_them(void **state)
{
	struct bench *b = *state;
	const ib_slvl_table_t *slvl = (const void *)b->data;
	const ib_vl_arb_table_t *arb = (const void *)b->data;
	ib_node_info_t node;
	ib_guid_info_t guids;

	assert_int_equal(get(b, 0x0011, 0), 0);
	memcpy(&node, b->data, sizeof(node));
	assert_int_equal(ib_node_info_get_local_port_num(&node), 1);
	assert_int_equal(cl_ntoh32(ib_node_info_get_vendor_id(&node)), 0x1405);
	assert_int_equal(cl_ntoh16(node.partition_cap), 64);
	assert_int_equal(node.node_type, IB_NODE_TYPE_CA);
	assert_true(cl_ntoh64(node.sys_guid) == 0x0002C903000001FFull);
	assert_true(cl_ntoh64(node.port_guid) == PORT1_GUID);
	assert_int_equal(get(b, 0x0017, 0), 0);
	for (uint8_t sl = 0; sl < 16; sl++)
		assert_int_equal(ib_slvl_table_get(slvl, sl), sl % 8);
	assert_int_equal(get(b, 0x0018, 0x10000), 0);
	for (unsigned int i = 0; i < 8; i++) {
		assert_int_equal(arb->vl_entry[i].vl, i);
		assert_int_equal(arb->vl_entry[i].weight, 1);
	}
	assert_int_equal(get(b, 0x0014, 0), 0);
	memcpy(&guids, b->data, sizeof(guids));
	assert_true(cl_ntoh64(guids.guid[0]) == PORT1_GUID);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_info_is_the_records),
		T(test_node_info_read_as_a_record),
		T(test_sm_info_read_as_a_record),
		T(test_port_info_as_opensm_sees_it),
		T(test_port_info_as_opensm_sets_it),
		T(test_tables_as_opensm_sees_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
