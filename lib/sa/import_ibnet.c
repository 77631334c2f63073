/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Import the output of ibnetdiscover, line by line:
 *
 *   vendid=0x2c9                       IDs of the node that follows
 *   caguid=0x2c90300100000
 *   Ca  1 "H-0002c90300100000"  # "host001"
 *   [1](2c90300100001)  "S-0002c90200200000"[1]  # lid 1 lmc 0 "leaf01" lid 2 4xEDR
 *
 *   switchguid=0x2c90200200000(2c90200200000)
 *   Switch  36 "S-0002c90200200000"  # "leaf01" base port 0 lid 2 lmc 0
 *   [1]  "H-0002c90300100000"[1](2c90300100001)  # "host001" lid 1 4xEDR
 *
 * Comments, empty lines and the chassis headings of --grouping are skipped. A node's name may
 * contain anything, even quotes: text after a name is found from the line's last quote.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import_private.h"

#define GOT                "line %u: got \"%.48s%s\", expected "
#define GOT_ARGS(in, text) (in)->line_num, text, strlen(text) > 48 ? "..." : ""

static int
ibnet_refuse(struct sa_ibnet *in, const char *expected, struct error *err)
{
	return error_set(err, EINVAL, GOT "%s", GOT_ARGS(in, in->line), expected);
}

/* --- parts of a line: each function advances *at, or returns false --- */

static bool
ibnet_take(const char **at, const char *literal)
{
	size_t len = strlen(literal);

	if (strncmp(*at, literal, len) != 0)
		return false;
	*at += len;
	return true;
}

static void
ibnet_skip_blanks(const char **at)
{
	*at += strspn(*at, " \t");
}

static bool
ibnet_take_number(const char **at, unsigned int base, uint64_t max, uint64_t *value)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t v = 0;
	const char *p = *at;

	for (;; p++) {
		char c = *p >= 'A' && *p <= 'F' ? (char)(*p | 0x20) : *p;
		const char *d = c != '\0' ? strchr(digits, c) : NULL;
		uint64_t n;

		if (d == NULL || d >= digits + base)
			break;
		n = (uint64_t)(d - digits);
		if (n > max || v > (max - n) / base)
			return false;
		v = v * base + n;
	}
	if (p == *at)
		return false;
	*at = p;
	*value = v;
	return true;
}

/* " lid 5" */
static bool
ibnet_take_lid(const char **at, const char *before, uint16_t *lid)
{
	uint64_t v;

	if (!ibnet_take(at, before) || !ibnet_take_number(at, 10, UINT16_MAX, &v))
		return false;
	*lid = (uint16_t)v;
	return true;
}

/* [12] */
static bool
ibnet_take_port(const char **at, uint8_t *port)
{
	uint64_t v;

	if (!ibnet_take(at, "[") || !ibnet_take_number(at, 10, SA_IBNET_PORTS, &v) || v == 0 ||
		!ibnet_take(at, "]"))
		return false;
	*port = (uint8_t)v;
	/* --grouping adds the port number printed on the chassis */
	if (ibnet_take(at, "[ext "))
		return ibnet_take_number(at, 10, 255, &v) && ibnet_take(at, "]");
	return true;
}

/* "H-0002c90300100000" */
static bool
take_node_name(const char **at, char *kind, uint64_t *guid)
{
	const char *p = *at;

	if (p[0] != '"' || p[1] == '\0' || strchr("SHR", p[1]) == NULL || p[2] != '-')
		return false;
	*kind = p[1];
	p += 3;
	if (!ibnet_take_number(&p, 16, UINT64_MAX, guid) || !ibnet_take(&p, "\""))
		return false;
	*at = p;
	return true;
}

/* (2c90300100001) */
static bool
ibnet_take_guid(const char **at, uint64_t *guid)
{
	return ibnet_take(at, "(") && ibnet_take_number(at, 16, UINT64_MAX, guid) &&
		ibnet_take(at, ")");
}

/* 4xEDR, and with --full s=4 w=2 v=4 */
static bool
ibnet_take_speed(const char **at, struct sa_ibnet_port *p)
{
	static const struct {
		const char *name;
		uint8_t code;
	} widths[] = { { "1x", 1 }, { "4x", 2 }, { "8x", 4 }, { "12x", 8 }, { "2x", 16 },
		{ "??", 0 } };
	static const struct {
		const char *name;
		uint8_t speed;
		uint8_t ext;
	} speeds[] = { { "SDR", 1, 0 }, { "DDR", 2, 0 }, { "QDR", 4, 0 }, { "FDR10", 4, 0 },
		{ "FDR", 4, 1 }, { "EDR", 4, 2 }, { "HDR", 4, 4 }, { "NDR", 4, 8 },
		{ "???", 0, 0 } };
	uint64_t vls;
	size_t i;

	for (i = 0; i < sizeof(widths) / sizeof(widths[0]) && !ibnet_take(at, widths[i].name);)
		i++;
	if (i == sizeof(widths) / sizeof(widths[0]))
		return false;
	p->width = widths[i].code;
	for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]) && !ibnet_take(at, speeds[i].name);)
		i++;
	if (i == sizeof(speeds) / sizeof(speeds[0]))
		return false;
	p->speed = speeds[i].speed;
	p->speed_ext = speeds[i].ext;
	p->vls = 0;
	*at = strstr(*at, " v=") != NULL ? strstr(*at, " v=") + 3 : *at + strlen(*at);
	if (**at != '\0' && ibnet_take_number(at, 10, 5, &vls) && vls != 0)
		p->vls = (uint8_t)vls;
	return true;
}

/* The text between the quote at *at and the line's last quote. */
static bool
ibnet_take_quoted(const char **at, const char **text, size_t *len)
{
	const char *last = strrchr(*at, '"');

	if (**at != '"' || last == *at)
		return false;
	*text = *at + 1;
	*len = (size_t)(last - *text);
	*at = last + 1;
	return true;
}

/* --- LIDs: each belongs to one port, and each cable's other end must have one --- */

static int
own_lids(struct sa_ibnet *in, uint16_t lid, uint8_t lmc, struct error *err)
{
	unsigned int last = lid + (1u << lmc) - 1;

	if (lid == 0)
		return ibnet_refuse(in, "a LID other than 0: has a subnet manager been run?", err);
	if (last > SA_IBNET_LIDS)
		return ibnet_refuse(in, "LIDs up to 49151", err);
	for (unsigned int l = lid; l <= last; l++) {
		if (in->owner[l] != 0)
			return error_set(err, EINVAL, GOT "a LID of its own: line %u has %u too",
				GOT_ARGS(in, in->line), in->owner[l], l);
		in->owner[l] = in->line_num;
	}
	return 0;
}

static int
refer_lid(struct sa_ibnet *in, uint16_t lid, struct error *err)
{
	if (lid == 0 || lid > SA_IBNET_LIDS)
		return ibnet_refuse(in, "the other end's LID from 1 to 49151", err);
	if (in->referred[lid] == 0)
		in->referred[lid] = in->line_num;
	return 0;
}

/* --- lines --- */

/* vendid=0x2c9 */
static int
read_id(struct sa_ibnet *in, struct error *err)
{
	static const struct {
		const char *name;
		uint64_t max;
		size_t at;
	} ids[] = {
		{ "vendid=0x", 0xFFFFFF, offsetof(struct sa_ibnet_node, vendor_id) },
		{ "devid=0x", 0xFFFF, offsetof(struct sa_ibnet_node, device_id) },
		{ "sysimgguid=0x", UINT64_MAX, offsetof(struct sa_ibnet_node, sys_guid) },
		{ "switchguid=0x", UINT64_MAX, offsetof(struct sa_ibnet_node, guid) },
		{ "caguid=0x", UINT64_MAX, offsetof(struct sa_ibnet_node, guid) },
		{ "rtguid=0x", UINT64_MAX, offsetof(struct sa_ibnet_node, guid) },
	};
	const char *at = in->line;
	uint64_t value;

	if (in->in_node)
		memset(&in->node, 0, sizeof(in->node));
	in->in_node = false;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!ibnet_take(&at, ids[i].name))
			continue;
		if (!ibnet_take_number(&at, 16, ids[i].max, &value))
			return ibnet_refuse(in, "a hexadecimal number that fits", err);
		memcpy((uint8_t *)&in->node + ids[i].at, &value, sizeof(value));
		if (at[0] == '(' && !ibnet_take_guid(&at, &in->node.port_guid))
			return ibnet_refuse(in, "the port GUID in hexadecimal in (...)", err);
		return 0;
	}
	return ibnet_refuse(in,
		"a node (Switch, Ca, Rt), an ID of one (vendid=0x...), a port ([1]...) or # and a comment",
		err);
}

/* After the number of ports: "S-0002c90200200000"  # "leaf01" */
static int
ibnet_read_node(struct sa_ibnet *in, const char *at, uint8_t type, char kind, struct error *err)
{
	struct sa_ibnet_node *n = &in->node;
	uint64_t ports, guid;
	char said;

	if (in->in_node)
		return ibnet_refuse(in, "vendid= and the node's other IDs before it", err);
	ibnet_skip_blanks(&at);
	if (!ibnet_take_number(&at, 10, SA_IBNET_PORTS, &ports) || ports == 0)
		return ibnet_refuse(in, "a number of ports from 1 to 254", err);
	ibnet_skip_blanks(&at);
	if (!take_node_name(&at, &said, &guid) || said != kind)
		return ibnet_refuse(in,
			"a node's name like \"H-0002c90300100000\", S- for switches", err);
	if (n->guid != guid || guid == 0)
		return ibnet_refuse(in, "the GUID of the lines above the node", err);
	ibnet_skip_blanks(&at);
	if (!ibnet_take(&at, "# ") || !ibnet_take_quoted(&at, &n->desc, &n->desc_len))
		return ibnet_refuse(in, "the node's description as # \"...\"", err);
	if (n->desc_len > 64)
		n->desc_len = 64;
	memcpy(in->desc, n->desc, n->desc_len);
	n->desc = in->desc;
	n->type = type;
	n->num_ports = (uint8_t)ports;
	memset(in->ports, 0, sizeof(in->ports));
	in->in_node = true;
	in->rest = at;
	return 0;
}

/* ... base port 0 lid 2 lmc 0 */
static int
read_switch(struct sa_ibnet *in, const char *at, struct error *err)
{
	struct sa_ibnet_node *n = &in->node;
	/* the switch's management port: the text has only its LIDs */
	struct sa_ibnet_port p = { 0 };
	uint64_t lmc;
	int rc = ibnet_read_node(in, at, SA_IBNET_SWITCH, 'S', err);

	if (rc != 0)
		return rc;
	at = in->rest;
	n->enhanced = ibnet_take(&at, " enhanced");
	if ((!n->enhanced && !ibnet_take(&at, " base")) ||
		!ibnet_take_lid(&at, " port 0 lid ", &n->lid) || !ibnet_take(&at, " lmc ") ||
		!ibnet_take_number(&at, 10, 7, &lmc))
		return ibnet_refuse(in, "base or enhanced port 0 lid N lmc N after the description",
			err);
	n->lmc = (uint8_t)lmc;
	rc = own_lids(in, n->lid, n->lmc, err);
	if (rc != 0)
		return rc;
	if (n->port_guid == 0)
		n->port_guid = n->guid;
	in->switches[n->lid] = n->guid;
	in->endports++;
	p.lid = n->lid;
	p.lmc = n->lmc;
	p.guid = n->port_guid;
	rc = sa_ibnet_emit_endport(in, &p, err);
	if (rc == 0)
		rc = sa_ibnet_emit_switch(in, err);
	return rc;
}

static int
read_ca(struct sa_ibnet *in, const char *at, struct error *err)
{
	return ibnet_read_node(in, at, SA_IBNET_CA, 'H', err);
}

static int
read_router(struct sa_ibnet *in, const char *at, struct error *err)
{
	return ibnet_read_node(in, at, SA_IBNET_ROUTER, 'R', err);
}

/* After the blank: "S-0002c90200200000"[1](2c90300100001)  # */
static bool
take_other_end(const char **at, struct sa_ibnet_port *p)
{
	uint64_t guid;
	char kind;

	ibnet_skip_blanks(at);
	if (!take_node_name(at, &kind, &guid) || !ibnet_take_port(at, &p->to_port))
		return false;
	ibnet_skip_blanks(at);
	if (**at == '(' && !ibnet_take_guid(at, &guid))
		return false;
	ibnet_skip_blanks(at);
	return ibnet_take(at, "# ");
}

/* "leaf01" lid 2 4xEDR */
static bool
take_other_lid(const char **at, struct sa_ibnet_port *p)
{
	const char *name;
	size_t len;

	if (!ibnet_take_quoted(at, &name, &len) || !ibnet_take_lid(at, " lid ", &p->to_lid) ||
		!ibnet_take(at, " "))
		return false;
	return ibnet_take_speed(at, p);
}

/* (2c90300100001)  "S-..."[1]  # lid 1 lmc 0 "leaf01" lid 2 4xEDR */
static int
read_endport(struct sa_ibnet *in, const char *at, struct sa_ibnet_port *p, struct error *err)
{
	uint64_t lmc;
	int rc;

	if (!ibnet_take_guid(&at, &p->guid) || p->guid == 0)
		return ibnet_refuse(in, "the port GUID in (...) after the port's number", err);
	if (!take_other_end(&at, p))
		return ibnet_refuse(in, "the other end like \"S-0002c90200200000\"[1] # ...", err);
	if (!ibnet_take_lid(&at, "lid ", &p->lid) || !ibnet_take(&at, " lmc ") ||
		!ibnet_take_number(&at, 10, 7, &lmc) || !ibnet_take(&at, " ") ||
		!take_other_lid(&at, p))
		return ibnet_refuse(in,
			"# lid N lmc N \"name\" lid N 4xEDR (or other width and speed)", err);
	p->lmc = (uint8_t)lmc;
	rc = own_lids(in, p->lid, p->lmc, err);
	if (rc != 0)
		return rc;
	in->endports++;
	return sa_ibnet_emit_endport(in, p, err);
}

/* "H-..."[1](2c90300100001)  # "host001" lid 1 4xEDR */
static int
read_switch_port(struct sa_ibnet *in, const char *at, struct sa_ibnet_port *p, struct error *err)
{
	if (!take_other_end(&at, p))
		return ibnet_refuse(in, "the other end like \"H-0002c90300100000\"[1](...) # ...",
			err);
	if (!take_other_lid(&at, p))
		return ibnet_refuse(in, "# \"name\" lid N 4xEDR (or other width and speed)", err);
	p->lid = in->node.lid;
	return sa_ibnet_emit_port(in, p, err);
}

static int
ibnet_read_port(struct sa_ibnet *in, struct error *err)
{
	struct sa_ibnet_port p = { 0 };
	const char *at = in->line;
	int rc;

	if (!in->in_node)
		return ibnet_refuse(in, "a node before its ports", err);
	if (!ibnet_take_port(&at, &p.num) || p.num > in->node.num_ports)
		return ibnet_refuse(in, "the number of a port that the node has, in [...]", err);
	if (in->ports[p.num])
		return ibnet_refuse(in, "each port once", err);
	in->ports[p.num] = true;
	if (in->node.type == SA_IBNET_SWITCH)
		rc = read_switch_port(in, at, &p, err);
	else
		rc = read_endport(in, at, &p, err);
	if (rc == 0)
		rc = refer_lid(in, p.to_lid, err);
	if (rc != 0)
		return rc;
	return sa_ibnet_emit_link(in, &p, err);
}

static const struct {
	const char *begin;
	int (*read)(struct sa_ibnet *in, const char *rest, struct error *err);
} headings[] = {
	{ "Switch\t", read_switch },
	{ "Ca\t", read_ca },
	{ "Rt\t", read_router },
	/* --grouping */
	{ "Chassis ", NULL },
	{ "Non-Chassis Nodes", NULL },
	{ "Hostname: ", NULL },
};

static int
ibnet_read_line(struct sa_ibnet *in, struct error *err)
{
	const char *at = in->line;

	if (in->len > 0 && in->line[in->len - 1] == '\r')
		in->line[--in->len] = '\0';
	if (sa_fts_begins(in))
		return sa_fts_line(in, err);
	ibnet_skip_blanks(&at);
	if (at[0] == '\0' || at[0] == '#')
		return 0;
	if (at[0] == '[')
		return ibnet_read_port(in, err);
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
		at = in->line;
		if (ibnet_take(&at, headings[i].begin))
			return headings[i].read != NULL ? headings[i].read(in, at, err) : 0;
	}
	return read_id(in, err);
}

static int
ibnet_read_text(struct sa_ibnet *in, const char *text, size_t len, struct error *err)
{
	const char *end = text + len, *nl;
	int rc;

	for (; text < end; text = nl + 1) {
		nl = memchr(text, '\n', (size_t)(end - text));
		if (nl == NULL)
			nl = end;
		in->line_num++;
		in->len = (size_t)(nl - text);
		if (in->len > SA_IBNET_LINE)
			return error_set(err, EINVAL, "line %u: expected at most %u bytes",
				in->line_num, SA_IBNET_LINE);
		memcpy(in->line, text, in->len);
		in->line[in->len] = '\0';
		rc = strlen(in->line) == in->len ? ibnet_read_line(in, err)
						 : ibnet_refuse(in, "text, no NUL byte", err);
		if (rc != 0)
			return rc;
	}
	return sa_fts_end(in, err);
}

/* Nothing is missing at the end of the text. */
static int
ibnet_check_complete(const struct sa_ibnet *in, struct error *err)
{
	if (in->endports == 0 && in->tables == 0)
		return error_set(err, EINVAL,
			"%u lines without a node: expected the output of ibnetdiscover or dump_fts",
			in->line_num);
	for (unsigned int l = 1; l <= SA_IBNET_LIDS; l++)
		if (in->referred[l] != 0 && in->owner[l] == 0)
			return error_set(err, EINVAL,
				"line %u: its cable ends at LID %u, which no node has: is the file complete?",
				in->referred[l], l);
	return 0;
}

int
sa_import_ibnetdiscover(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err)
{
	struct sa_ibnet *in = calloc(1, sizeof(*in));
	int rc;

	if (in == NULL)
		return error_set(err, ENOMEM, "no memory for an import");
	in->sink = *sink;
	rc = ibnet_read_text(in, text, len, err);
	if (rc == 0)
		rc = ibnet_check_complete(in, err);
	free(in);
	return rc;
}
