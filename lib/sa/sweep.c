/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Breadth-first search from our own port. A NodeInfo finds a node, or another port of a known
 * channel adapter; each switch port that is up leads further. Attributes are kept, and records are
 * made at the end, when all LIDs are known.
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/sweep.h"
#include "wire/bytes.h"

/* attributes (smp-sma 3) */
#define NODE_DESCRIPTION 0x0010
#define NODE_INFO        0x0011
#define SWITCH_INFO      0x0012
#define GUID_INFO        0x0014
#define PORT_INFO        0x0015
#define P_KEY_TABLE      0x0016
#define SLTOVL           0x0017
#define LINEAR           0x0019
#define RANDOM           0x001A
#define MULTICAST        0x001B

/* offsets in the attributes */
#define NODE_KIND        2
#define NODE_NUM_PORTS   3
#define NODE_GUID        12
#define NODE_P_KEYS      28
#define NODE_LOCAL_PORT  36
#define NODE_INFO_LEN    40
#define PORT_LID         16
#define PORT_STATE       32 /* low 4 bits */
#define PORT_GUID_CAP    50
#define SWITCH_LINEAR    0
#define SWITCH_RANDOM    2
#define SWITCH_MULTICAST 4
#define SWITCH_TOP       6
#define SWITCH_MTOP      18
#define SWITCH_INFO_LEN  20

#define P_KEYS_IN_BLOCK 32
#define GUIDS_IN_BLOCK  8
#define MLIDS_IN_BLOCK  32
#define PORTS_IN_MASK   16
#define STATE_DOWN      1
#define PORTS_MAX       254
#define NOBODY          UINT32_MAX
#define NODES_MAX       LID_UNICAST_END

struct peer {
	uint32_t node; /* node at the other end of the cable, or NOBODY */
	uint8_t port;
	bool up;
};

struct node {
	uint64_t guid;
	struct peer *peer; /* by port number, num_ports + 1 entries */
	uint16_t lid;
	uint8_t type;
	uint8_t num_ports;
	uint8_t port; /* the endport; 0 for a switch */
	uint8_t entry; /* port by which the directed route enters */
	uint16_t ports_left; /* PortInfos not answered yet */
	bool tables_missing; /* a block was not answered: an incomplete table would mislead */
	uint8_t hops;
	uint8_t path[SWEEP_HOPS_MAX + 1];
	uint8_t info[NODE_INFO_LEN];
	uint8_t description[SWEEP_DATA];
};

struct kept {
	uint32_t node;
	uint32_t modifier;
	uint16_t attribute;
	uint8_t data[SWEEP_DATA];
};

struct wish {
	uint32_t node;
	uint32_t modifier;
	uint16_t attribute;
	uint8_t via;
};

struct sweep {
	const struct allocator *alloc;
	int error;
	struct sweep_counts counts;
	struct node *node;
	uint32_t nodes_room;
	struct kept *kept;
	size_t num_kept;
	size_t kept_room;
	struct wish *wish;
	size_t first_wish;
	size_t num_wishes;
	size_t wishes_room;
	struct sa_change change;
};

/* Make room for one more entry. @return false: no memory, the sweep has failed */
static bool
sweep_grow(struct sweep *s, void **list, size_t size, size_t used, size_t *room)
{
	size_t more = *room * 2 + 64;
	void *bigger;

	if (used < *room)
		return true;
	bigger = mem_zalloc(s->alloc, more * size, 0);
	if (bigger == NULL) {
		s->error = -ENOMEM;
		return false;
	}
	if (used > 0)
		memcpy(bigger, *list, used * size);
	mem_free(s->alloc, *list);
	*list = bigger;
	*room = more;
	return true;
}

static void
sweep_want(struct sweep *s, uint32_t node, uint16_t attribute, uint32_t modifier, uint8_t via)
{
	void *list = s->wish;

	if (!sweep_grow(s, &list, sizeof(*s->wish), s->num_wishes, &s->wishes_room))
		return;
	s->wish = list;
	s->wish[s->num_wishes++] = (struct wish){ node, modifier, attribute, via };
}

struct sweep *
sweep_create(const struct allocator *alloc)
{
	struct sweep *s = mem_zalloc(alloc, sizeof(*s), 0);

	if (s == NULL)
		return NULL;
	s->alloc = alloc;
	sweep_want(s, NOBODY, NODE_INFO, 0, 0);
	return s;
}

void
sweep_destroy(struct sweep *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->counts.nodes; i++)
		mem_free(s->alloc, s->node[i].peer);
	mem_free(s->alloc, s->node);
	mem_free(s->alloc, s->kept);
	mem_free(s->alloc, s->wish);
	mem_free(s->alloc, s);
}

int
sweep_error(const struct sweep *s)
{
	return s->error;
}

void
sweep_counts(const struct sweep *s, struct sweep_counts *c)
{
	*c = s->counts;
}

bool
sweep_next(struct sweep *s, struct sweep_request *r)
{
	const struct node *n;
	const struct wish *w;

	if (s->error != 0 || s->first_wish == s->num_wishes)
		return false;
	w = &s->wish[s->first_wish++];
	*r = (struct sweep_request){
		.attribute = w->attribute,
		.modifier = w->modifier,
		.node = w->node,
		.via = w->via,
	};
	if (s->first_wish == s->num_wishes)
		s->first_wish = s->num_wishes = 0;
	s->counts.asked++;
	if (r->node == NOBODY)
		return true; /* our own port: no hops */
	n = &s->node[r->node];
	memcpy(r->port, n->path, sizeof(r->port));
	r->hops = n->hops;
	if (r->via != 0)
		r->port[++r->hops] = r->via;
	return true;
}

/* --- answers, and the requests they lead to --- */

static void
sweep_keep(struct sweep *s, const struct sweep_request *r, const uint8_t *data)
{
	void *list = s->kept;
	struct kept *k;

	if (!sweep_grow(s, &list, sizeof(*s->kept), s->num_kept, &s->kept_room))
		return;
	s->kept = list;
	k = &s->kept[s->num_kept++];
	*k = (struct kept){ r->node, r->modifier, r->attribute, { 0 } };
	memcpy(k->data, data, SWEEP_DATA);
}

static uint32_t
sweep_find_node(const struct sweep *s, uint64_t guid, uint8_t port)
{
	uint32_t i;

	for (i = 0; i < s->counts.nodes; i++)
		if (s->node[i].guid == guid && s->node[i].port == port)
			return i;
	return NOBODY;
}

static uint32_t
sweep_add_node(struct sweep *s, const struct sweep_request *r, const uint8_t *info)
{
	size_t room = s->nodes_room;
	void *list = s->node;
	struct node *n;
	unsigned int i;

	if (s->counts.nodes == NODES_MAX ||
		!sweep_grow(s, &list, sizeof(*s->node), s->counts.nodes, &room))
		return NOBODY;
	s->node = list;
	s->nodes_room = room;
	n = &s->node[s->counts.nodes];
	memset(n, 0, sizeof(*n));
	n->guid = get_be64(info + NODE_GUID);
	n->type = info[NODE_KIND];
	n->num_ports = info[NODE_NUM_PORTS];
	n->entry = info[NODE_LOCAL_PORT];
	n->port = n->type == NODE_TYPE_SWITCH ? 0 : n->entry;
	n->hops = r->hops;
	memcpy(n->path, r->port, sizeof(n->path));
	memcpy(n->info, info, NODE_INFO_LEN);
	n->peer = mem_zalloc(s->alloc, (n->num_ports + 1u) * sizeof(*n->peer), 0);
	if (n->peer == NULL) {
		s->error = -ENOMEM;
		return NOBODY;
	}
	for (i = 0; i <= n->num_ports; i++)
		n->peer[i].node = NOBODY;
	return s->counts.nodes++;
}

/* Request all attributes of a new node. */
static void
sweep_want_node(struct sweep *s, uint32_t node)
{
	struct node *n = &s->node[node];
	unsigned int i, blocks = get_be16(n->info + NODE_P_KEYS);

	blocks = (blocks + P_KEYS_IN_BLOCK - 1) / P_KEYS_IN_BLOCK;
	sweep_want(s, node, NODE_DESCRIPTION, 0, 0);
	sweep_want(s, node, PORT_INFO, n->port, 0);
	n->ports_left = 1;
	for (i = 0; i < blocks; i++)
		sweep_want(s, node, P_KEY_TABLE, i, 0);
	if (n->type != NODE_TYPE_SWITCH)
		return;
	s->counts.switches++;
	sweep_want(s, node, SWITCH_INFO, 0, 0);
	for (i = 1; i <= n->num_ports; i++)
		sweep_want(s, node, PORT_INFO, i, 0);
	n->ports_left += n->num_ports;
}

static void
connect_ports(struct sweep *s, uint32_t a, uint8_t a_port, uint32_t b, uint8_t b_port)
{
	struct peer *from = &s->node[a].peer[a_port], *to = &s->node[b].peer[b_port];

	s->counts.links += (from->node == NOBODY) + (to->node == NOBODY);
	from->node = b;
	from->port = b_port;
	to->node = a;
	to->port = a_port;
}

static void
sweep_take_node(struct sweep *s, const struct sweep_request *r, const uint8_t *info)
{
	uint8_t port = info[NODE_LOCAL_PORT];
	uint32_t node;

	if (port > info[NODE_NUM_PORTS] || info[NODE_NUM_PORTS] > PORTS_MAX)
		return;
	node = sweep_find_node(s, get_be64(info + NODE_GUID),
		info[NODE_KIND] == NODE_TYPE_SWITCH ? 0 : port);
	if (node == NOBODY) {
		node = sweep_add_node(s, r, info);
		if (node == NOBODY)
			return;
		sweep_want_node(s, node);
	}
	if (r->node != NOBODY && port <= s->node[node].num_ports)
		connect_ports(s, r->node, r->via, node, port);
}

static void
want_blocks(struct sweep *s, uint32_t node, uint16_t attribute, unsigned int blocks)
{
	unsigned int i;

	for (i = 0; i < blocks; i++)
		sweep_want(s, node, attribute, i, 0);
}

static unsigned int
multicast_blocks(const uint8_t *info)
{
	unsigned int top = get_be16(info + SWITCH_MTOP);

	if (top == 0) /* switches before IBA 1.2.1, or nobody has set it */
		return get_be16(info + SWITCH_MULTICAST) / MLIDS_IN_BLOCK;
	return top >= LID_UNICAST_END && top < LID_MULTICAST_END
		? (top - LID_UNICAST_END) / MLIDS_IN_BLOCK + 1
		: 0;
}

static void
sweep_take_switch(struct sweep *s, uint32_t node, const uint8_t *info)
{
	unsigned int top = get_be16(info + SWITCH_TOP), i, position;
	unsigned int positions = s->node[node].num_ports / PORTS_IN_MASK + 1;

	if (get_be16(info + SWITCH_LINEAR) != 0)
		want_blocks(s, node, LINEAR, top < LID_UNICAST_END ? top / LFT_PORTS + 1 : 0);
	else
		want_blocks(s, node, RANDOM, get_be16(info + SWITCH_RANDOM) / RFT_ENTRIES);
	for (i = 0; i < multicast_blocks(info); i++)
		for (position = 0; position < positions; position++)
			sweep_want(s, node, MULTICAST, (uint32_t)position << 28 | i, 0);
}

/* A switch has a SLtoVL table for each pair of input and output port. */
static void
want_sltovl(struct sweep *s, uint32_t node)
{
	const struct node *n = &s->node[node];
	unsigned int in, out;

	if (n->type != NODE_TYPE_SWITCH) {
		sweep_want(s, node, SLTOVL, 0, 0);
		return;
	}
	for (out = 1; out <= n->num_ports; out++)
		for (in = 0; in <= n->num_ports && n->peer[out].up; in++)
			if (in == 0 || n->peer[in].up)
				sweep_want(s, node, SLTOVL, in << 8 | out, 0);
}

static void
sweep_take_port(struct sweep *s, uint32_t node, uint8_t port, const uint8_t *info)
{
	struct node *n = &s->node[node];
	bool external = n->type != NODE_TYPE_SWITCH || port != 0;

	n->peer[port].up = external && (info[PORT_STATE] & 0xF) != STATE_DOWN;
	if (port == n->port) {
		n->lid = get_be16(info + PORT_LID);
		want_blocks(s, node, GUID_INFO,
			(info[PORT_GUID_CAP] + GUIDS_IN_BLOCK - 1) / GUIDS_IN_BLOCK);
	}
	/* only switches forward; our own port (0 hops) is where the search begins */
	if (n->peer[port].up && n->hops < SWEEP_HOPS_MAX &&
		(n->hops == 0 || (n->type == NODE_TYPE_SWITCH && port != n->entry)))
		sweep_want(s, node, NODE_INFO, 0, port);
}

/* A PortInfo was answered or failed. After the node's last one request its SLtoVL tables. */
static void
end_port(struct sweep *s, uint32_t node)
{
	if (--s->node[node].ports_left == 0)
		want_sltovl(s, node);
}

void
sweep_answer(struct sweep *s, const struct sweep_request *r, const uint8_t *data)
{
	if (data == NULL) {
		s->counts.unanswered++;
		if (r->attribute == LINEAR || r->attribute == RANDOM || r->attribute == SWITCH_INFO)
			s->node[r->node].tables_missing = true;
	} else {
		switch (r->attribute) {
		case NODE_INFO:
			sweep_take_node(s, r, data);
			return;
		case NODE_DESCRIPTION:
			memcpy(s->node[r->node].description, data, SWEEP_DATA);
			return;
		case SWITCH_INFO:
			sweep_take_switch(s, r->node, data);
			break;
		case PORT_INFO:
			sweep_take_port(s, r->node, r->modifier, data);
			break;
		default:
			break;
		}
		sweep_keep(s, r, data);
	}
	if (r->attribute == PORT_INFO)
		end_port(s, r->node);
}

/* --- records --- */

static int
sweep_emit(struct sweep *s, const struct sa_import_sink *sink, uint16_t attribute, uint16_t lid,
	uint16_t rid, unsigned int at, const uint8_t *data, unsigned int len)
{
	memset(&s->change, 0, sizeof(s->change));
	s->change.type = sa_record_type(attribute);
	put_be16(s->change.rec, lid);
	put_be16(s->change.rec + 2, rid);
	memcpy(s->change.rec + at, data, len);
	return sink->take(sink->arg, &s->change);
}

static bool
is_zero(const uint8_t *data)
{
	static const uint8_t zero[SWEEP_DATA];

	return memcmp(data, zero, SWEEP_DATA) == 0;
}

static int
emit_pkeys(struct sweep *s, const struct sa_import_sink *sink, const struct node *n,
	const struct kept *k)
{
	uint8_t rec[4 + SWEEP_DATA] = { n->port };

	memcpy(rec + 4, k->data, SWEEP_DATA);
	return sweep_emit(s, sink, SA_PKEY_TABLE, n->lid, k->modifier, PKEY_OFF_PORT, rec,
		sizeof(rec));
}

static int
emit_kept(struct sweep *s, const struct sa_import_sink *sink, const struct kept *k)
{
	const struct node *n = &s->node[k->node];
	uint16_t out = n->type == NODE_TYPE_SWITCH ? k->modifier : n->port;

	if (n->lid == 0)
		return 0;
	switch (k->attribute) {
	case PORT_INFO:
		return sweep_emit(s, sink, SA_PORT_INFO, n->lid, k->modifier << 8, 4, k->data,
			SWEEP_DATA);
	case SWITCH_INFO:
		return sweep_emit(s, sink, SA_SWITCH_INFO, n->lid, 0, 4, k->data, SWITCH_INFO_LEN);
	case GUID_INFO:
		return sweep_emit(s, sink, SA_GUID_INFO, n->lid, k->modifier << 8, 8, k->data,
			SWEEP_DATA);
	case P_KEY_TABLE:
		return is_zero(k->data) ? 0 : emit_pkeys(s, sink, n, k);
	case SLTOVL:
		return sweep_emit(s, sink, SA_SLTOVL, n->lid, out, 8, k->data, 8);
	case LINEAR:
	case RANDOM:
		return n->tables_missing
			? 0
			: sweep_emit(s, sink, k->attribute == LINEAR ? SA_LFT : SA_RFT, n->lid,
				  k->modifier, 8, k->data, SWEEP_DATA);
	case MULTICAST:
		return is_zero(k->data) ? 0
					: sweep_emit(s, sink, SA_MFT, n->lid,
						  k->modifier >> 28 << 12 | (k->modifier & 0x1FF),
						  8, k->data, SWEEP_DATA);
	default:
		return 0;
	}
}

/* The node's record, and the links from its ports. */
static int
sweep_emit_node(struct sweep *s, const struct sa_import_sink *sink, const struct node *n)
{
	uint8_t rec[NODE_INFO_LEN + SWEEP_DATA];
	unsigned int port;
	int rc;

	memcpy(rec, n->info, NODE_INFO_LEN);
	memcpy(rec + NODE_INFO_LEN, n->description, SWEEP_DATA);
	rc = sweep_emit(s, sink, SA_NODE, n->lid, 0, 4, rec, sizeof(rec));
	for (port = 1; port <= n->num_ports && rc == 0; port++) {
		const struct peer *p = &n->peer[port];
		uint8_t to[2];

		if (p->node == NOBODY || s->node[p->node].lid == 0)
			continue;
		put_be16(to, s->node[p->node].lid);
		rc = sweep_emit(s, sink, SA_LINK, n->lid, port << 8 | p->port, LINK_OFF_TO_LID, to,
			2);
	}
	return rc;
}

int
sweep_records(struct sweep *s, const struct sa_import_sink *sink)
{
	uint32_t i;
	size_t k;
	int rc = 0;

	s->counts.without_lid = 0;
	for (i = 0; i < s->counts.nodes && rc == 0; i++) {
		if (s->node[i].lid != 0)
			rc = sweep_emit_node(s, sink, &s->node[i]);
		else
			s->counts.without_lid++;
	}
	for (k = 0; k < s->num_kept && rc == 0; k++)
		rc = emit_kept(s, sink, &s->kept[k]);
	return rc;
}
