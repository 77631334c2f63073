/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The server's records, generated from their numbers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/agents.h"

#define LEAF_PORTS  200
#define SPINES      25
#define SPINE_LINKS 2 /* from each leaf to each spine */
#define NODE_CA     1
#define NODE_SWITCH 2
#define PORT_ACTIVE 4
#define LINK_UP     5
#define MTU_4096    5
#define WIDTH_4X    2
#define SPEED_10G   4

struct batch {
	struct bench_server *s;
	struct sa_change *change;
	size_t n, room;
};

static void
batch_begin(struct batch *b, struct bench_server *s)
{
	*b = (struct batch){ .s = s, .room = 4096 };
	b->change = calloc(b->room, sizeof(*b->change));
	if (b->change == NULL)
		bench_die("no memory for records");
}

static void
flush(struct batch *b)
{
	if (b->n != 0)
		server_load(b->s, b->change, b->n);
	b->n = 0;
}

static void
batch_commit(struct batch *b)
{
	flush(b);
	free(b->change);
}

static uint8_t *
batch_next(struct batch *b, uint16_t attribute)
{
	struct sa_change *c;

	if (b->n == b->room)
		flush(b);
	c = &b->change[b->n++];
	*c = (struct sa_change){ .type = sa_record_type(attribute) };
	return c->rec;
}

static void
put_node_record(struct batch *b, uint16_t lid, uint8_t type, uint64_t guid, uint8_t ports)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	uint8_t *rec = batch_next(b, SA_NODE);
	char name[64];

	sa_put_named(t, "lid", rec, lid);
	sa_put_named(t, "base_version", rec, 1);
	sa_put_named(t, "class_version", rec, 1);
	sa_put_named(t, "node_type", rec, type);
	sa_put_named(t, "num_ports", rec, ports);
	sa_put_named(t, "node_guid", rec, guid);
	sa_put_named(t, "port_guid", rec, guid);
	sa_put_named(t, "partition_cap", rec, 32);
	snprintf(name, sizeof(name), "node %u", lid);
	memcpy(rec + 44, name, strlen(name));
}

static void
port(struct batch *b, uint16_t lid, uint8_t num)
{
	const struct sa_record_type *t = sa_record_type(SA_PORT_INFO);
	uint8_t *rec = batch_next(b, SA_PORT_INFO);

	sa_put_named(t, "lid", rec, lid);
	sa_put_named(t, "port_num", rec, num);
	sa_put_named(t, "gid_prefix", rec, BENCH_PREFIX);
	sa_put_named(t, "base_lid", rec, lid);
	sa_put_named(t, "port_state", rec, PORT_ACTIVE);
	sa_put_named(t, "port_phys_state", rec, LINK_UP);
	sa_put_named(t, "neighbor_mtu", rec, MTU_4096);
	sa_put_named(t, "mtu_cap", rec, MTU_4096);
	sa_put_named(t, "link_width_active", rec, WIDTH_4X);
	sa_put_named(t, "link_speed_active", rec, SPEED_10G);
}

static void
one_way(struct batch *b, uint16_t from, uint8_t from_port, uint16_t to, uint8_t to_port)
{
	const struct sa_record_type *t = sa_record_type(SA_LINK);
	uint8_t *rec = batch_next(b, SA_LINK);

	sa_put_named(t, "from_lid", rec, from);
	sa_put_named(t, "from_port", rec, from_port);
	sa_put_named(t, "to_lid", rec, to);
	sa_put_named(t, "to_port", rec, to_port);
}

static void
cable(struct batch *b, uint16_t x, uint8_t x_port, uint16_t y, uint8_t y_port)
{
	one_way(b, x, x_port, y, y_port);
	one_way(b, y, y_port, x, x_port);
}

static void
partition(struct batch *b, uint16_t lid)
{
	const struct sa_record_type *t = sa_record_type(SA_PKEY_TABLE);
	uint8_t *rec = batch_next(b, SA_PKEY_TABLE);

	sa_put_named(t, "lid", rec, lid);
	memset(rec + 8, 0xFF, 2); /* the first P_Key: full member of the default partition */
}

static void
adapter(struct batch *b, uint16_t lid)
{
	put_node_record(b, lid, NODE_CA, BENCH_GUID(lid), 1);
	port(b, lid, 1);
	partition(b, lid);
}

static void
switch_with(struct batch *b, uint16_t lid, uint8_t ports)
{
	const struct sa_record_type *t = sa_record_type(SA_SWITCH_INFO);
	unsigned int i;

	put_node_record(b, lid, NODE_SWITCH, BENCH_GUID(lid), ports);
	sa_put_named(t, "lid", batch_next(b, SA_SWITCH_INFO), lid);
	for (i = 0; i <= ports; i++)
		port(b, lid, (uint8_t)i);
}

void
load_nodes(struct bench_server *s, uint32_t n)
{
	struct batch b;
	uint32_t i;

	batch_begin(&b, s);
	for (i = 0; i < n; i++)
		put_node_record(&b, (uint16_t)(i + 1), NODE_CA, BENCH_GUID(i + 1), 1);
	batch_commit(&b);
}

void
load_fabric(struct bench_server *s, uint32_t n)
{
	uint32_t leaves = (n + LEAF_PORTS - 1) / LEAF_PORTS, i, j, k;
	uint16_t leaf = (uint16_t)(n + 1), spine = (uint16_t)(leaf + leaves);
	struct batch b;

	batch_begin(&b, s);
	for (i = 0; i < leaves; i++)
		switch_with(&b, (uint16_t)(leaf + i), LEAF_PORTS + SPINES * SPINE_LINKS);
	for (i = 0; i < SPINES; i++)
		switch_with(&b, (uint16_t)(spine + i), (uint8_t)(leaves * SPINE_LINKS));
	for (i = 0; i < n; i++) {
		adapter(&b, (uint16_t)(i + 1));
		cable(&b, (uint16_t)(i + 1), 1, (uint16_t)(leaf + i / LEAF_PORTS),
			(uint8_t)(i % LEAF_PORTS + 1));
	}
	for (i = 0; i < leaves; i++)
		for (j = 0; j < SPINES; j++)
			for (k = 0; k < SPINE_LINKS; k++)
				cable(&b, (uint16_t)(leaf + i),
					(uint8_t)(LEAF_PORTS + j * SPINE_LINKS + k + 1),
					(uint16_t)(spine + j), (uint8_t)(i * SPINE_LINKS + k + 1));
	batch_commit(&b);
}
