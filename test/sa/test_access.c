/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Access rights: trust by SM_Key, visibility by partition, keys removed. P_Keys of the fabric:
 * bench.h.
 */

#include <limits.h>

#include "bench.h"

#include "sa/tables.h"
#include "sa/write.h"

static uint16_t
sa_access_table(struct bench *b, uint16_t attribute, uint64_t from)
{
	return ask(b,
		&(struct ask){
			.version = 2,
			.method = SA_GET_TABLE,
			.attribute = attribute,
			.from = from,
			.untrusted = true,
		});
}

static bool
has_lid(struct bench *b, uint16_t attribute, uint16_t lid)
{
	unsigned int i;

	for (i = 0; i < records(b, attribute, 2); i++)
		if (get_be16(record_of(b, attribute, 2, i)) == lid)
			return true;
	return false;
}

static void
test_wrong_sm_key_is_denied(void **state)
{
	struct bench *b = *state;
	struct ask a = {
		.version = 2,
		.method = SA_GET_TABLE,
		.attribute = SA_NODE,
		.sm_key = SM_KEY + 1,
	};

	assert_int_equal(ask(b, &a), 0x0700);
	assert_int_equal(sa_worker_counters(b->w)->denied, 1);
	a.version = 1; /* class version 1 has no such status */
	assert_int_equal(ask(b, &a), 0x0200);
	a.sm_key = SM_KEY;
	a.end_rid = 0xFFFFFFFF;
	assert_int_equal(ask(b, &a), 0);
}

static void
trust_all(struct sa_config *config)
{
	config->trust = SA_TRUST_ALL;
}

static void
no_key(struct sa_config *config)
{
	config->sm_key = 0;
}

static void
well_known(struct sa_config *config)
{
	config->sm_key = 1;
	config->own_key = 0x4F574E;
}

static uint16_t
config_a_node(struct bench *b, uint64_t sm_key, uint32_t rid)
{
	uint8_t wire[108] = { 0 };

	put_be32(wire, rid);
	return ask(b,
		&(struct ask){
			.version = 1,
			.method = SA1_CONFIG,
			.attribute = SA_NODE,
			.edit = SA_EDIT_ADD,
			.data = wire,
			.data_len = sizeof(wire),
			.payload_len = sizeof(wire),
			.sm_key = sm_key,
			.from = GUID_C,
		});
}

/*
 * The public SM_Key 1 of opensm and saquery shows everything, but changes only the requester's own
 */
static void
test_the_sm_key_that_everybody_knows_is_for_reading(void **state)
{
	struct bench *b = bench_create(well_known);
	uint8_t service[176] = { [7] = 9 };
	struct ask a = {
		.version = 2,
		.method = SA_GET_TABLE,
		.attribute = SA_NODE,
		.from = GUID_C,
		.sm_key = 1,
	};
	struct ask set = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_SERVICE,
		.mask = 3,
		.data = service,
		.data_len = 176,
		.from = GUID_C,
		.sm_key = 1,
	};

	(void)state;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 2), 6); /* with D, which C itself does not see */
	assert_int_equal(ask(b, &(struct ask){ .version = 1, .method = SA1_GET_BULK, .sm_key = 1 }),
		0);
	a.sm_key = 2; /* any other is denied */
	assert_int_equal(ask(b, &a), 0x0700);
	assert_int_equal(config_a_node(b, 1, 0x00300000), 0x0200);
	set_gid(service + 8, GUID_A);
	assert_int_equal(ask(b, &set), 0x0700);
	set_gid(service + 8, GUID_C); /* its own */
	assert_int_equal(ask(b, &set), 0);
	/* the appliance itself has a secret key */
	assert_int_equal(config_a_node(b, 0x4F574E, 0x00300000), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 7);
	bench_destroy(b);
	/* an SM_Key configured by the operator also allows changes */
	b = bench_create(NULL);
	assert_int_equal(config_a_node(b, SM_KEY, 0x00300000), 0);
	bench_destroy(b);
}

static void
test_trust_is_configured(void **state)
{
	struct bench *b = bench_create(trust_all);

	(void)state;
	assert_int_equal(sa_access_table(b, SA_NODE, GUID_C), 0);
	assert_int_equal(records(b, SA_NODE, 2), 6);
	bench_destroy(b);
	/* SM_Key 0 gives no rights, even if none is configured */
	b = bench_create(no_key);
	assert_int_equal(sa_access_table(b, SA_NODE, GUID_C), 0);
	assert_int_equal(records(b, SA_NODE, 2), 5);
	bench_destroy(b);
}

static void
test_untrusted_sees_ports_that_share_a_partition(void **state)
{
	struct bench *b = *state;

	/* C is a limited member of the default partition, so it does not see D, limited as well */
	assert_int_equal(sa_access_table(b, SA_NODE, GUID_C), 0);
	assert_int_equal(records(b, SA_NODE, 2), 5);
	assert_true(has_lid(b, SA_NODE, 8));
	assert_false(has_lid(b, SA_NODE, 12));
	/* D shares FFFF with the full members, and 8001 with A */
	assert_int_equal(sa_access_table(b, SA_PORT_INFO, GUID_D), 0);
	assert_true(has_lid(b, SA_PORT_INFO, 12));
	assert_true(has_lid(b, SA_PORT_INFO, 4));
	assert_false(has_lid(b, SA_PORT_INFO, 8));
	/* a link is visible to those who see both ends */
	assert_int_equal(sa_access_table(b, SA_LINK, GUID_C), 0);
	assert_int_equal(records(b, SA_LINK, 2), 8);
	assert_int_equal(sa_access_table(b, SA_LINK, GUID_B), 0);
	assert_int_equal(records(b, SA_LINK, 2), 10);
	/* a requester that is no port counts as a full member of the default partition */
	assert_int_equal(sa_access_table(b, SA_NODE, 0), 0);
	assert_int_equal(records(b, SA_NODE, 2), 6);
}

static void
test_requester_is_found_by_lid_on_native_ib(void **state)
{
	struct bench *b = *state;
	struct ask a = {
		.version = 2,
		.method = SA_GET_TABLE,
		.attribute = SA_NODE,
		.untrusted = true,
		.slid = 9,
	}; /* C's second LID */

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 2), 5);
}

static void
test_keys_are_for_the_trusted(void **state)
{
	struct bench *b = *state;
	struct sa_change c = change_of(SA_SERVICE), sm = change_of(SA_SM_INFO);
	struct ask a = { .version = 2, .method = MAD_GET, .attribute = SA_SERVICE, .from = GUID_A };

	set_gid(c.rec + 8, GUID_A);
	put_be32(c.rec + 28, SERVICE_FOREVER);
	c.rec[32] = 0x55;
	bench_put(b, &c);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + 32], 0x55);
	a.untrusted = true;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + 32], 0);
	assert_int_equal(sa_access_table(b, SA_PORT_INFO, GUID_A), 0);
	assert_int_equal(get_be64(b->data + 4), 0); /* M_Key */
	a = (struct ask){ .version = 2, .method = SA_GET_TABLE, .attribute = SA_PORT_INFO };
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be64(b->data + 4), 0x4D4B4559);
	set_field(&sm, "lid", 4);
	set_field(&sm, "sm_key", 99);
	bench_put(b, &sm);
	assert_int_equal(sa_access_table(b, SA_SM_INFO, GUID_A), 0);
	assert_int_equal(get_be64(b->data + 12), 0);
}

static void
well_known_key(struct sa_config *config)
{
	config->sm_key = SA_SM_KEY_WELL_KNOWN;
}

static void
expect_m_key(struct bench *b, struct ask a, uint64_t m_key, unsigned int found)
{
	uint8_t tmpl[64] = { 0 };

	a.version = 2;
	a.method = SA_GET_TABLE;
	a.attribute = SA_PORT_INFO;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be64(b->data + 4), m_key);
	/* a template with the key: what is not shown does not match either */
	put_be64(tmpl + 4, 0x4D4B4559);
	a.data = tmpl;
	a.data_len = sizeof(tmpl);
	a.mask = SA_BIT(3);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_PORT_INFO, 2), found);
}

/* Everybody knows SM_Key 1: its holders see all ports, and no keys. */
static void
test_well_known_sm_key_shows_no_keys(void **state)
{
	struct bench *b = bench_create(well_known_key);

	(void)state;
	expect_m_key(b, (struct ask){ .sm_key = SA_SM_KEY_WELL_KNOWN }, 0, 0);
	bench_destroy(b);
}

static void
test_keys_are_not_found_by_guessing(void **state)
{
	struct bench *b = *state;

	expect_m_key(b, (struct ask){ .from = GUID_A, .untrusted = true }, 0, 0);
	expect_m_key(b, (struct ask){ .from = GUID_A }, 0x4D4B4559, 12);
}

static void
put_service(struct bench *b, uint64_t id, uint64_t gid, uint16_t pkey)
{
	struct sa_change c = change_of(SA_SERVICE);

	put_be64(c.rec, id);
	set_gid(c.rec + 8, gid);
	put_be16(c.rec + 24, pkey);
	put_be32(c.rec + 28, SERVICE_FOREVER);
	bench_put(b, &c);
}

static void
test_services_are_seen_in_their_partition(void **state)
{
	struct bench *b = *state;

	put_service(b, 1, GUID_D, 0x8001);
	put_service(b, 2, GUID_C, 0x8002);
	put_service(b, 3, GUID_D, 0); /* every partition of D */
	assert_int_equal(sa_access_table(b, SA_SERVICE, GUID_A), 0);
	assert_int_equal(records(b, SA_SERVICE, 2), 2);
	assert_int_equal(sa_access_table(b, SA_SERVICE, GUID_C), 0);
	assert_int_equal(records(b, SA_SERVICE, 2), 1);
	assert_int_equal(get_be64(b->data), 2);
	assert_int_equal(sa_access_table(b, SA_SERVICE, GUID_B), 0);
	assert_int_equal(records(b, SA_SERVICE, 2), 1);
	assert_int_equal(get_be64(b->data), 3);
}

static void
put_member(struct bench *b, uint8_t mgid, uint64_t port, uint16_t pkey)
{
	struct sa_change c = change_of(SA_MCMEMBER);

	c.rec[0] = 0xFF;
	c.rec[15] = mgid;
	set_gid(c.rec + 16, port);
	put_be16(c.rec + 36, 0xC000 + mgid);
	put_be16(c.rec + 40, pkey);
	c.rec[48] = 0x21;
	bench_put(b, &c);
}

static void
test_of_a_group_others_members_are_not_shown(void **state)
{
	struct bench *b = *state;

	put_member(b, 1, GUID_A, 0xFFFF);
	put_member(b, 1, GUID_B, 0xFFFF);
	put_member(b, 1, GUID_C, 0xFFFF);
	put_member(b, 2, GUID_C, 0x8002);
	put_member(b, 3, GUID_A, 0x8001);
	put_member(b, 3, GUID_D, 0x8001);
	/* B: its own membership of group 1 as it is; no other group is in its partition */
	assert_int_equal(sa_access_table(b, SA_MCMEMBER, GUID_B), 0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 1);
	assert_int_equal(get_be64(b->data + 24), GUID_B);
	assert_int_equal(b->data[48], 0x21);
	/* D: group 1 without its members, and its own membership of group 3 */
	assert_int_equal(sa_access_table(b, SA_MCMEMBER, GUID_D), 0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 2);
	assert_int_equal(b->data[15], 1);
	assert_int_equal(get_be16(b->data + 36), 0xC001);
	assert_int_equal(get_be64(b->data + 24), 0);
	assert_int_equal(b->data[48], 0x20);
	assert_int_equal(get_be64(b->data + 56 + 24), GUID_D);
	/* trusted requesters see everything */
	assert_int_equal(ask(b,
				 &(struct ask){
					 .version = 2,
					 .method = SA_GET_TABLE,
					 .attribute = SA_MCMEMBER,
				 }),
		0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 6);
}

/* Members cannot be found by asking for one port after the other, either. */
static void
test_others_members_cannot_be_asked_for(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = {
		.version = 2,
		.method = SA_GET_TABLE,
		.attribute = SA_MCMEMBER,
		.mask = SA_BIT(MC_BIT_PORT_GID),
		.data = rec,
		.data_len = 52,
		.from = GUID_B,
		.untrusted = true,
	};

	put_member(b, 1, GUID_A, 0xFFFF);
	put_member(b, 1, GUID_C, 0xFFFF);
	set_gid(rec + 16, GUID_A);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 0);
	a.from = GUID_A;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 1);
	a.mask = SA_BIT(MC_BIT_MLID); /* the group itself is visible */
	a.from = GUID_B;
	put_be16(rec + 36, 0xC001);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 1);
}

static void
test_subscriptions_are_seen_by_their_owner(void **state)
{
	uint8_t info[36] = { 0 };
	struct bench *b = *state;
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_INFORM_INFO,
		.data = info,
		.data_len = 36,
		.from = GUID_A,
		.untrusted = true,
	};

	memset(info + 16, 0xFF, 2);
	info[22] = info[23] = 1;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(sa_access_table(b, SA_INFORM_INFO_RECORD, GUID_A), 0);
	assert_int_equal(records(b, SA_INFORM_INFO_RECORD, 2), 1);
	assert_int_equal(get_be64(b->data + 8), GUID_A);
	assert_int_equal(sa_access_table(b, SA_INFORM_INFO_RECORD, GUID_B), 0);
	assert_int_equal(records(b, SA_INFORM_INFO_RECORD, 2), 0);
}

/* --- identity on native IB: the LID identifies a requester, a GRH is not trusted --- */

/* Subscribe to all traps from this LID. @return the status */
static uint16_t
subscription(struct bench *b, uint16_t slid, uint64_t grh, const uint8_t *sgid, bool begin)
{
	uint8_t info[36] = { 0 };

	memset(info + 16, 0xFF, 2);
	info[22] = 1;
	info[23] = begin;
	return ask(b,
		&(struct ask){
			.version = 2,
			.method = MAD_SET,
			.attribute = SA_INFORM_INFO,
			.data = info,
			.data_len = 36,
			.slid = slid,
			.from = grh,
			.sgid = sgid,
			.untrusted = true,
		});
}

/* Register a service without a GID, ID 7. @return the status */
static uint16_t
sa_access_service(struct bench *b, uint8_t method, uint16_t slid, uint64_t grh)
{
	uint8_t rec[176] = { [7] = 7 };

	return ask(b,
		&(struct ask){
			.version = 2,
			.method = method,
			.attribute = SA_SERVICE,
			.mask = 1,
			.data = rec,
			.data_len = 176,
			.slid = slid,
			.from = grh,
			.untrusted = true,
		});
}

/* Ports without a record and without a GRH: each LID is a requester of its own */
static void
test_unknown_ports_are_told_apart_by_lid(void **state)
{
	struct bench *b = *state;
	const uint8_t *gid;

	assert_int_equal(subscription(b, 40, 0, NULL, true), 0);
	assert_int_equal(subscription(b, 41, 0, NULL, true), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 2);
	assert_int_equal(subscription(b, 42, 0, NULL, false), 0x0200); /* none of its own */
	assert_int_equal(subscription(b, 41, 0, NULL, false), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
	assert_int_equal(sa_access_service(b, MAD_SET, 40, 0), 0);
	gid = b->reply + SA2_OFF_DATA + SERVICE_OFF_GID;
	assert_memory_equal(gid, "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\0\x28", 16);
	assert_int_equal(sa_access_service(b, MAD_SET, 41, 0), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 42, 0), 0x0300);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 40, 0), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	/* and each sees only its own */
	assert_int_equal(ask(b,
				 &(struct ask){
					 .version = 2,
					 .method = SA_GET_TABLE,
					 .attribute = SA_INFORM_INFO_RECORD,
					 .slid = 41,
					 .untrusted = true,
				 }),
		0);
	assert_int_equal(records(b, SA_INFORM_INFO_RECORD, 2), 0);
}

/* Security: a GRH with another port's GID, or with a LID's identity, changes nothing */
static void
test_grh_does_not_make_another(void **state)
{
	uint8_t named[16] = { [8] = 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 40 };
	struct bench *b = *state;

	assert_int_equal(subscription(b, 4, 0, NULL, true), 0); /* A */
	assert_int_equal(sa_access_service(b, MAD_SET, 4, GUID_A), 0);
	assert_int_equal(subscription(b, 40, 0, NULL, true), 0);
	assert_int_equal(subscription(b, 5, GUID_A, NULL, false), 0x0200); /* B */
	assert_int_equal(subscription(b, 41, GUID_A, NULL, false), 0x0200);
	assert_int_equal(subscription(b, 41, 0, named, false), 0x0200);
	assert_int_equal(subscription(b, 5, 0, named, false), 0x0200);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 5, GUID_A), 0x0300);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 41, GUID_A), 0x0300);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 2);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	/* but the port's own alias, or a GID that no known port has, is accepted */
	assert_int_equal(subscription(b, 4, GUID_A1, NULL, true), 0);
	assert_int_equal(subscription(b, 41, 0x77, NULL, true), 0);
	assert_int_equal(subscription(b, 41, 0x77, NULL, false), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 3);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 4, 0), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 0);
}

/* Requesters behind a router do not have the router's identity */
static void
test_requester_behind_a_router(void **state)
{
	static const uint8_t far[2][16] = { { 0xFE, 0xC0, [7] = 2, [15] = 1 },
		{ 0xFE, 0xC0, [7] = 2, [15] = 2 } };
	struct bench *b = *state;

	put_port(b, 20, 0x20, NODE_TYPE_ROUTER, 0);
	assert_int_equal(subscription(b, 20, 0, far[0], true), 0);
	assert_int_equal(subscription(b, 20, 0, far[1], true), 0);
	assert_int_equal(subscription(b, 20, 0, NULL, false), 0x0200); /* the router */
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 2);
	assert_int_equal(subscription(b, 20, 0, far[1], false), 0);
	/* a port that is no router has no such GID */
	assert_int_equal(subscription(b, 4, 0, far[0], false), 0x0200);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
}

/* The operator has imported the port of LID 40, with its LMC */
static void
import_lid_40(struct bench *b, uint8_t lmc)
{
	put_port(b, 40, 0x40, NODE_TYPE_CA, 0);
	put_port_info(b, 40, 1, lmc, 4, 0, 0);
}

/* The stored service of ID 7 of PREFIX:@p guid, and when its lease ends; NULL: none */
static const struct store_record *
stored_service(struct bench *b, uint64_t guid)
{
	const struct store_version *v = store_current(b->reader);
	const struct store_record *r;
	struct store_cursor c;

	store_seek(&c, v, SA_TABLE_SERVICE, 0);
	while ((r = store_next(&c, NULL)) != NULL)
		if (get_be64(r->bytes + SERVICE_OFF_GID) == PREFIX &&
			get_be64(r->bytes + SERVICE_OFF_GID + 8) == guid)
			return r;
	return NULL;
}

/* When an unknown LID becomes known, its subscriptions and services become the port's */
static void
test_records_of_a_lid_become_its_ports(void **state)
{
	uint8_t rec[SERVICE_LEN] = { [7] = 7, [31] = 60 };
	struct ask lease = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_SERVICE,
		.mask = 1 | 1 << 4,
		.data = rec,
		.data_len = SERVICE_LEN,
		.slid = 40,
		.untrusted = true,
	};
	struct bench *b = *state;

	b->seconds = 1000;
	assert_int_equal(subscription(b, 40, 0, NULL, true), 0);
	assert_int_equal(subscription(b, 42, 0, NULL, true), 0);
	assert_int_equal(ask(b, &lease), 0);
	assert_int_equal(sa_access_service(b, MAD_SET, 42, 0), 0);
	b->seconds = 1030;
	import_lid_40(b, 0);
	/* the port sees its service and replaces it; the lease continues */
	assert_int_equal(ask(b,
				 &(struct ask){
					 .version = 2,
					 .method = SA_GET_TABLE,
					 .attribute = SA_INFORM_INFO_RECORD,
					 .slid = 40,
					 .untrusted = true,
				 }),
		0);
	assert_int_equal(records(b, SA_INFORM_INFO_RECORD, 2), 1);
	assert_int_equal(get_be64(b->data + 8), 0x40);
	assert_non_null(stored_service(b, 0x40));
	assert_int_equal(service_lease_end(stored_service(b, 0x40)), 1060);
	assert_int_equal(subscription(b, 40, 0, NULL, true), 0);
	assert_int_equal(sa_access_service(b, MAD_SET, 40, 0), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 2);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	/* and deletes it; another LID's service stays */
	assert_int_equal(subscription(b, 40, 0, NULL, false), 0);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 40, 0), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	assert_int_equal(subscription(b, 42, 0, NULL, false), 0);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 42, 0), 0);
}

/* The store runs out of memory at any point: the port comes with its records or not at all. */
static void
test_port_comes_with_its_records_or_not_at_all(void **state)
{
	struct sa_change port[2] = { change_of(SA_NODE), change_of(SA_PORT_INFO) };
	struct bench *b = *state;
	struct error err;
	unsigned int n;

	assert_int_equal(subscription(b, 40, 0, NULL, true), 0);
	assert_int_equal(sa_access_service(b, MAD_SET, 40, 0), 0);
	set_field(&port[0], "lid", 40);
	set_field(&port[0], "node_type", NODE_TYPE_CA);
	set_field(&port[0], "port_guid", 0x40);
	set_field(&port[0], "port_num", 1);
	set_field(&port[1], "lid", 40);
	set_field(&port[1], "port_num", 1);
	set_field(&port[1], "base_lid", 40);
	for (n = 0;; n++) {
		int rc;

		b->store_memory.left = n;
		rc = sa_change(b->sa, port, 2, &err);
		b->store_memory.left = UINT_MAX;
		if (rc == 0)
			break;
		assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
		assert_null(stored_service(b, 0x40));
		assert_true(n < 1000);
	}
	assert_true(n > 10);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 7);
	assert_non_null(stored_service(b, 0x40));
	/* by its LID it finds the subscription, too */
	assert_int_equal(subscription(b, 40, 0, NULL, false), 0);
}

/* Reports still go to the QP that subscribed */
static void
test_subscription_of_a_lid_is_told_as_its_ports(void **state)
{
	struct bench *b = *state;

	assert_int_equal(subscription(b, 40, 0, NULL, true), 0);
	import_lid_40(b, 0);
	sa_trap(b->w, (const uint8_t[64]){ 0x80, 0, 0, 0, 0, 0, 0, 4 });
	bench_run(b);
	assert_int_equal(b->num_calls, 1);
	assert_int_equal(b->calls[0].call.to.av.dlid, 40);
}

/* Several LIDs of one port (LMC): of equal records only one is kept */
static void
test_records_of_all_path_bits_become_their_ports(void **state)
{
	struct bench *b = *state;
	uint16_t lid;

	for (lid = 40; lid <= 42; lid++) {
		assert_int_equal(subscription(b, lid, 0, NULL, true), 0);
		assert_int_equal(sa_access_service(b, MAD_SET, lid, 0), 0);
	}
	/* by a GRH, too, it has said who it is before anybody knew */
	assert_int_equal(subscription(b, 41, 0x40, NULL, true), 0);
	assert_int_equal(sa_access_service(b, MAD_SET, 41, 0x40), 0);
	import_lid_40(b, 1);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 2); /* with LID 42's */
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	assert_int_equal(subscription(b, 41, 0, NULL, false), 0);
	assert_int_equal(sa_access_service(b, SA2_DELETE, 40, 0), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
}

static uint16_t
bulk_or_config(struct bench *b, uint8_t method, uint16_t slid, bool untrusted)
{
	return ask(b,
		&(struct ask){
			.version = 1,
			.method = method,
			.attribute = SA_NODE,
			.edit = method == SA1_CONFIG ? SA_EDIT_ADD : 0,
			.slid = slid,
			.untrusted = untrusted,
		});
}

static void
sm_at_5(struct sa_config *config)
{
	config->master_sm_lid = 5;
}

static void
test_config_and_bulk_are_for_the_master_sm_and_the_trusted(void **state)
{
	struct bench *b = bench_create(sm_at_5);

	(void)state;
	assert_int_equal(bulk_or_config(b, SA1_CONFIG, 4, true), 0x0200);
	assert_int_equal(bulk_or_config(b, SA1_GET_BULK, 4, true), 0x0200);
	assert_int_equal(bulk_or_config(b, SA1_CONFIG, 5, true), 0);
	assert_int_equal(bulk_or_config(b, SA1_GET_BULK, 5, true), 0);
	assert_int_equal(bulk_or_config(b, SA1_CONFIG, 4, false), 0);
	assert_int_equal(bulk_or_config(b, SA1_CONFIG, 0, true), 0x0200);
	assert_int_equal(sa_worker_counters(b->w)->config, 4);
	bench_destroy(b);
}

/* Nothing of a Config is stored for a requester that may not send it. */
static void
test_config_is_admitted_by_its_first_packet(void **state)
{
	struct bench *b = bench_create(sm_at_5);
	struct ask a = { .version = 1, .method = SA1_CONFIG, .slid = 4, .untrusted = true };
	bool trusted;

	(void)state;
	assert_int_equal(bench_admit(b, &a, &trusted), SA_STATUS_REQ_INVALID);
	assert_false(trusted);
	a.slid = 5; /* the master SM's */
	assert_int_equal(bench_admit(b, &a, &trusted), 0);
	assert_true(trusted);
	a.slid = 4;
	a.untrusted = false; /* with the operator's SM_Key */
	assert_int_equal(bench_admit(b, &a, &trusted), 0);
	assert_true(trusted);
	a.sm_key = SM_KEY + 1;
	assert_int_equal(bench_admit(b, &a, &trusted), SA_STATUS_REQ_INVALID);
	assert_false(trusted);
	assert_int_equal(sa_worker_counters(b->w)->denied, 2);
	bench_destroy(b);
}

/* The server's offsets are those of the record tables. */
static void
test_offsets_agree_with_the_tables(void **state)
{
	static const struct {
		uint16_t attribute;
		uint8_t bit;
		uint16_t offset;
	} rows[] = { { SA_NODE, 4, NODE_OFF_TYPE }, { SA_NODE, 7, NODE_OFF_NODE_GUID },
		{ SA_NODE, 8, NODE_OFF_PORT_GUID }, { SA_NODE, 12, NODE_OFF_PORT },
		{ SA_PORT_INFO, 1, PORT_OFF_PORT }, { SA_PORT_INFO, 3, PORT_OFF_M_KEY },
		{ SA_PORT_INFO, 13, PORT_OFF_WIDTH }, { SA_PORT_INFO, 15, PORT_OFF_STATE },
		{ SA_PORT_INFO, 20, PORT_OFF_LMC }, { SA_PORT_INFO, 21, PORT_OFF_SPEED },
		{ SA_PORT_INFO, 23, PORT_OFF_MTU }, { SA_PORT_INFO, 31, PORT_OFF_MTU_CAP },
		{ SA_PORT_INFO, 54, PORT_OFF_SPEED_EXT }, { SA_SM_INFO, 3, SMINFO_OFF_SM_KEY },
		{ SA_LINK, 1, LINK_OFF_FROM_PORT }, { SA_LINK, 2, LINK_OFF_TO_PORT },
		{ SA_LINK, 3, LINK_OFF_TO_LID }, { SA_GUID_INFO, 4, GUIDINFO_OFF_GUIDS },
		{ SA_PKEY_TABLE, 2, PKEY_OFF_PORT }, { SA_SERVICE, 1, SERVICE_OFF_GID },
		{ SA_SERVICE, 2, SERVICE_OFF_PKEY }, { SA_SERVICE, 4, SERVICE_OFF_LEASE },
		{ SA_SERVICE, 5, SERVICE_OFF_KEY }, { SA_MCMEMBER, 1, MC_OFF_PORT_GID },
		{ SA_MCMEMBER, 2, MC_OFF_QKEY }, { SA_MCMEMBER, 3, MC_OFF_MLID },
		{ SA_MCMEMBER, 4, MC_OFF_MTU }, { SA_MCMEMBER, 6, MC_OFF_TCLASS },
		{ SA_MCMEMBER, 7, MC_OFF_PKEY }, { SA_MCMEMBER, 8, MC_OFF_RATE },
		{ SA_MCMEMBER, 10, MC_OFF_LIFE }, { SA_MCMEMBER, 12, MC_OFF_SL_FLOW_HOP },
		{ SA_MCMEMBER, 15, MC_OFF_SCOPE_STATE }, { SA_MCMEMBER, 17, MC_OFF_PROXY },
		{ SA_INFORM_INFO_RECORD, 1, INFORM_OFF_ENUM },
		{ SA_INFORM_INFO_RECORD, 3, INFORM_OFF_INFO + INFO_OFF_GID },
		{ SA_INFORM_INFO_RECORD, 4, INFORM_OFF_INFO + INFO_OFF_LID_BEGIN },
		{ SA_INFORM_INFO_RECORD, 7, INFORM_OFF_INFO + INFO_OFF_GENERIC },
		{ SA_INFORM_INFO_RECORD, 8, INFORM_OFF_INFO + INFO_OFF_SUBSCRIBE },
		{ SA_INFORM_INFO_RECORD, 9, INFORM_OFF_INFO + INFO_OFF_TYPE },
		{ SA_INFORM_INFO_RECORD, 10, INFORM_OFF_INFO + INFO_OFF_TRAP },
		{ SA_INFORM_INFO_RECORD, 11, INFORM_OFF_INFO + INFO_OFF_QPN },
		{ SA_INFORM_INFO_RECORD, 15, INFORM_OFF_INFO + INFO_OFF_PRODUCER },
		{ SA_PATH, 2, PR_OFF_DGID }, { SA_PATH, 3, PR_OFF_SGID },
		{ SA_PATH, 4, PR_OFF_DLID }, { SA_PATH, 5, PR_OFF_SLID },
		{ SA_PATH, 6, PR_OFF_FLOW_HOP }, { SA_PATH, 10, PR_OFF_TCLASS },
		{ SA_PATH, 11, PR_OFF_NUMB_PATH }, { SA_PATH, 13, PR_OFF_PKEY },
		{ SA_PATH, 14, PR_OFF_SL }, { SA_PATH, 16, PR_OFF_MTU },
		{ SA_PATH, 18, PR_OFF_RATE }, { SA_PATH, 20, PR_OFF_LIFE } };
	unsigned int i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct sa_record_type *t = sa_record_type(rows[i].attribute);

		for (k = 0; k < t->num_fields && t->fields[k].mask_bit != rows[i].bit; k++)
			;
		assert_true(k < t->num_fields);
		assert_int_equal(t->fields[k].offset / 8, rows[i].offset);
	}
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_wrong_sm_key_is_denied),
		cmocka_unit_test(test_the_sm_key_that_everybody_knows_is_for_reading),
		cmocka_unit_test(test_trust_is_configured),
		T(test_untrusted_sees_ports_that_share_a_partition),
		T(test_requester_is_found_by_lid_on_native_ib),
		T(test_keys_are_for_the_trusted),
		T(test_keys_are_not_found_by_guessing),
		cmocka_unit_test(test_well_known_sm_key_shows_no_keys),
		T(test_services_are_seen_in_their_partition),
		T(test_of_a_group_others_members_are_not_shown),
		T(test_others_members_cannot_be_asked_for),
		T(test_subscriptions_are_seen_by_their_owner),
		T(test_unknown_ports_are_told_apart_by_lid),
		T(test_records_of_a_lid_become_its_ports),
		T(test_port_comes_with_its_records_or_not_at_all),
		T(test_subscription_of_a_lid_is_told_as_its_ports),
		T(test_records_of_all_path_bits_become_their_ports),
		T(test_grh_does_not_make_another),
		T(test_requester_behind_a_router),
		cmocka_unit_test(test_config_and_bulk_are_for_the_master_sm_and_the_trusted),
		cmocka_unit_test(test_config_is_admitted_by_its_first_packet),
		cmocka_unit_test(test_offsets_agree_with_the_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
