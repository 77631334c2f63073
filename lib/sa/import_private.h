/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_IMPORT_PRIVATE_H
#define SA_IMPORT_PRIVATE_H

/*
 * Private to the import: import_ibnet.c reads ibnetdiscover's lines, import_emit.c makes records of
 * them; import_fts.c does both for dump_fts.
 */

#include <stdbool.h>

#include "sa/import.h"

#define SA_IBNET_LINE  1023 /* most bytes in a line */
#define SA_IBNET_PORTS 254
#define SA_IBNET_LIDS  0xBFFF /* the last unicast LID */

enum sa_ibnet_type {
	SA_IBNET_CA = 1, /* NodeInfo's codes */
	SA_IBNET_SWITCH = 2,
	SA_IBNET_ROUTER = 3,
};

struct sa_ibnet_node {
	uint64_t vendor_id;
	uint64_t device_id;
	uint64_t sys_guid;
	uint64_t guid;
	uint64_t port_guid; /* of a switch's port 0 */
	const char *desc;
	size_t desc_len;
	uint8_t type;
	uint8_t num_ports;
	bool enhanced; /* this, lmc and lid: port 0 of a switch */
	uint8_t lmc;
	uint16_t lid;
};

/* A port, as its line describes it. */
struct sa_ibnet_port {
	uint64_t guid; /* 0: not an endport */
	uint16_t lid; /* an endport's own LID, else the switch's */
	uint8_t lmc;
	uint8_t num; /* 0: management port of a switch */
	uint8_t width; /* PortInfo's codes */
	uint8_t speed;
	uint8_t speed_ext;
	uint8_t vls;
	uint8_t to_port;
	uint16_t to_lid;
};

#define SA_FTS_POSITIONS 16
#define SA_FTS_MLIDS     0x4000

/* The forwarding table being read. */
struct sa_fts {
	uint8_t kind; /* 0: no table is being read */
	bool columns; /* multicast: the column heading has been read */
	uint16_t lid; /* the switch's, 0: not known yet */
	uint64_t guid;
	uint32_t rows;
	uint8_t port[SA_IBNET_LIDS + 1];
	uint16_t mask[SA_FTS_POSITIONS][SA_FTS_MLIDS];
};

struct sa_ibnet {
	struct sa_import_sink sink;
	uint32_t line_num; /* of .line, from 1 */
	uint32_t endports; /* ports with their own LID */
	uint32_t tables; /* forwarding tables */
	bool in_node; /* a node's heading has been read */
	struct sa_ibnet_node node;
	bool ports[SA_IBNET_PORTS + 1]; /* ports of the node that were seen */
	char desc[64];
	const char *rest; /* of a node's line, after the description */
	size_t len; /* bytes in .line */
	char line[SA_IBNET_LINE + 1];
	uint32_t owner[SA_IBNET_LIDS + 1]; /* by LID: line of its port; 0: none */
	/* by LID: first line with it at a cable's other end */
	uint32_t referred[SA_IBNET_LIDS + 1];
	uint64_t switches[SA_IBNET_LIDS + 1]; /* GUID of the switch with this base LID; 0: none */
	struct sa_fts fts;
	struct sa_change change;
};

/* Pass the record in in->change to the sink. */
int sa_ibnet_emit(struct sa_ibnet *in, struct error *err);
/* Emit NodeRecord, PortInfoRecord and GUIDInfoRecord of a port with its own LID. */
int sa_ibnet_emit_endport(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err);
int sa_ibnet_emit_port(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err);
int sa_ibnet_emit_switch(struct sa_ibnet *in, struct error *err);
int sa_ibnet_emit_link(struct sa_ibnet *in, const struct sa_ibnet_port *p, struct error *err);

/* True if the line belongs to dump_fts's output: read it with sa_fts_line(). */
bool sa_fts_begins(const struct sa_ibnet *in);
int sa_fts_line(struct sa_ibnet *in, struct error *err);
int sa_fts_end(struct sa_ibnet *in, struct error *err);

#endif
