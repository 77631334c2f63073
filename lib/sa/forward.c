/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The form of a change that one appliance passes to another one. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fnv.h"
#include "sa/form.h"
#include "sa/forward.h"
#include "sa/server.h"
#include "sa/staged.h"
#include "wire/bytes.h"

static void
form_port(struct form *f, struct port_view *p)
{
	unsigned int i;

	NUMBER(f, p->guid);
	NUMBER(f, p->lid);
	NUMBER(f, p->link_lid);
	NUMBER(f, p->lmc);
	NUMBER(f, p->port);
	NUMBER(f, p->node_type);
	NUMBER(f, p->mtu);
	NUMBER(f, p->rate);
	NUMBER(f, p->num_pkeys);
	f->bad |= p->num_pkeys > PORT_VIEW_PKEYS && p->num_pkeys != PORT_VIEW_MANY;
	for (i = 0; i < PORT_VIEW_PKEYS; i++)
		NUMBER(f, p->pkey[i]);
}

static void
form_requester(struct form *f, struct requester *who)
{
	CHOICE(f, who->sight, SA_SEES_KEYS);
	FLAG(f, who->trusted);
	FLAG(f, who->manager);
	FLAG(f, who->stranger);
	form_bytes(f, who->gid.raw, sizeof(who->gid.raw));
	NUMBER(f, who->lid);
	form_port(f, &who->port);
}

/* What the client has asked for, without the records of a Config and their length. */
static void
form_wish(struct form *f, struct sa_write *w, uint16_t *attribute)
{
	CHOICE(f, w->kind, WRITE_CONFIG_STAGED);
	CHOICE(f, w->version, SA_V2);
	NUMBER(f, *attribute);
	NUMBER(f, w->mask);
	NUMBER(f, w->rid);
	CHOICE(f, w->edit, SA_EDIT_UNKNOWN);
	form_bytes(f, w->rec, sizeof(w->rec));
}

static void
form_rest(struct form *f, struct sa_write *w)
{
	w->data_len = form_number(f, w->data_len, 4, FORWARD_CONFIG_MAX);
	form_requester(f, &w->who);
	form_peer(f, &w->peer);
}

/* --- requests --- */

static void
put_id(const struct sa_write *w, uint64_t sum, char *id)
{
	const uint8_t *address = w->who.lid != 0 ? w->who.gid.raw : w->peer.av.dgid.raw;
	uint8_t key[FORWARD_ID_LEN / 2];
	size_t i;

	memcpy(key, address, 16);
	put_be16(key + 16, w->who.lid);
	put_be32(key + 18, w->peer.qpn);
	key[22] = w->reply[MAD_OFF_CLASS_VERSION];
	key[23] = w->reply[MAD_OFF_METHOD];
	memcpy(key + 24, w->reply + MAD_OFF_ATTRIBUTE, 2);
	memcpy(key + 26, w->reply + MAD_OFF_TID, 8);
	put_be64(key + 34, sum);
	for (i = 0; i < sizeof(key); i++)
		snprintf(id + 2 * i, 3, "%02x", key[i]);
}

/* Another appliance stages the same records in other places. */
static uint64_t
add_staged(uint64_t sum, const struct staged_head *staged)
{
	uint8_t same[16];

	put_be64(same, staged->len);
	put_be64(same + 8, staged->sum);
	return fnv_add(sum, same, sizeof(same));
}

size_t
forward_put_request(const struct sa_write *w, const struct staged_head *staged, uint8_t *bytes,
	char id[FORWARD_ID_LEN + 1])
{
	struct form f = { .out = bytes, .len = FORWARD_REQUEST_MAX, .at = 1 };
	uint16_t attribute = w->type->attribute;
	struct sa_write copy = *w;
	uint8_t head[STAGED_HEAD_MAX];
	uint64_t sum;

	copy.staged = NULL; /* the request has its own data */
	if (staged != NULL) {
		copy.kind = WRITE_CONFIG_STAGED;
		copy.data_len = (uint32_t)staged_put_head(staged, head);
		copy.forwarded = head;
	}
	bytes[0] = FORWARD_VERSION;
	form_wish(&f, &copy, &attribute);
	sum = fnv_add(FNV_START, bytes, f.at);
	form_rest(&f, &copy);
	if (f.bad || copy.data_len > f.len - f.at)
		return 0;
	config_read_wire(&copy, 0, bytes + f.at, copy.data_len);
	sum = staged != NULL ? add_staged(sum, staged) : fnv_add(sum, bytes + f.at, copy.data_len);
	put_id(w, sum, id);
	return f.at + copy.data_len;
}

/* True if the record type is one that this kind of change has. */
static bool
kind_has_type(const struct sa_write *w)
{
	switch (w->kind) {
	case WRITE_SERVICE_SET:
	case WRITE_SERVICE_DELETE:
		return w->type->attribute == SA_SERVICE;
	case WRITE_MC_JOIN:
	case WRITE_MC_LEAVE:
		return w->type->attribute == SA_MCMEMBER;
	case WRITE_SUBSCRIBE:
		return w->type->attribute == SA_INFORM_INFO;
	case WRITE_RID_DELETE:
		return w->type->attribute == SA_SERVICE || w->type->attribute == SA_MCMEMBER;
	case WRITE_NOTICE:
		return w->type->attribute == SA_NOTICE;
	case WRITE_OWNED:
	case WRITE_IMPORT:
		return w->type->attribute == SA_NODE;
	case WRITE_CONFIG:
	case WRITE_CONFIG_STAGED:
	default:
		return w->type->stored && w->edit != SA_EDIT_NONE && w->edit != SA_EDIT_UNKNOWN;
	}
}

/* True if the kind has such data as the request has. */
static bool
kind_has_data(const struct sa_write *w)
{
	struct staged_head head;

	switch (w->kind) {
	case WRITE_CONFIG:
		return w->data_len % sa_wire_len(w->type, SA_V1) == 0;
	case WRITE_OWNED:
		return true;
	case WRITE_IMPORT:
	case WRITE_CONFIG_STAGED:
		return staged_get_head(&head, w->forwarded, w->data_len) == 0;
	default:
		return w->data_len == 0;
	}
}

static int
check_form(const uint8_t *bytes, size_t len)
{
	if (len == 0)
		return -EBADMSG;
	return bytes[0] == FORWARD_VERSION ? 0 : -EPROTONOSUPPORT;
}

int
forward_get_request(struct sa_write *w, const uint8_t *bytes, size_t len)
{
	struct form f = { .in = bytes, .len = len, .at = 1 };
	int rc = check_form(bytes, len);
	uint16_t attribute = 0;

	memset(w, 0, sizeof(*w));
	if (rc != 0)
		return rc;
	form_wish(&f, w, &attribute);
	form_rest(&f, w);
	if (f.bad || w->data_len != len - f.at)
		return -EBADMSG;
	w->type = sa_record_type(attribute);
	w->forwarded = bytes + f.at;
	if (w->type == NULL || !kind_has_type(w) || (w->version != SA_V1 && w->version != SA_V2) ||
		!kind_has_data(w))
		return -EBADMSG;
	w->peer.neighbour = PATH_NO_NEIGHBOUR;
	return 0;
}

/* --- answers --- */

static void
form_answer(struct form *f, struct sa_write *w)
{
	NUMBER(f, w->status);
	NUMBER(f, w->rid);
	FLAG(f, w->share_full);
	if (w->status == MAD_STATUS_OK)
		form_bytes(f, w->rec, w->type->len);
	else if (w->kind == WRITE_IMPORT && (f->out != NULL || f->at < f->len))
		form_bytes(f, w->rec, STAGED_TEXT_MAX); /* why */
}

size_t
forward_put_answer(const struct sa_write *w, uint8_t *bytes)
{
	struct form f = { .out = bytes, .len = FORWARD_ANSWER_MAX, .at = 1 };
	struct sa_write copy = *w;

	bytes[0] = FORWARD_VERSION;
	form_answer(&f, &copy);
	return f.at;
}

int
forward_get_answer(struct sa_write *w, const uint8_t *bytes, size_t len)
{
	struct form f = { .in = bytes, .len = len, .at = 1 };
	int rc = check_form(bytes, len);
	struct sa_write got = *w;

	if (rc != 0)
		return rc;
	form_answer(&f, &got);
	if (f.bad || f.at != len)
		return -EBADMSG;
	*w = got;
	return 0;
}

/* --- kept events --- */

static void
form_event(struct form *f, struct sa_event *e)
{
	FLAG(f, e->is_trap);
	if (e->is_trap) {
		form_bytes(f, e->notice, sizeof(e->notice));
		return;
	}
	NUMBER(f, e->trap);
	NUMBER(f, e->pkey);
	form_bytes(f, e->gid.raw, sizeof(e->gid.raw));
}

size_t
forward_put_events(const struct sa_event *events, unsigned int n, uint8_t *bytes)
{
	struct form f = { .out = bytes, .len = FORWARD_EVENTS_MAX, .at = 1 };
	struct sa_event copy;
	unsigned int i;

	bytes[0] = FORWARD_VERSION;
	form_number(&f, n, 2, WRITE_EVENTS);
	for (i = 0; i < n; i++) {
		copy = events[i];
		form_event(&f, &copy);
	}
	return f.at;
}

int
forward_get_events(struct sa_event *events, const uint8_t *bytes, size_t len)
{
	struct form f = { .in = bytes, .len = len, .at = 1 };
	int rc = check_form(bytes, len);
	unsigned int i, n;

	if (rc != 0)
		return rc;
	n = (unsigned int)form_number(&f, 0, 2, WRITE_EVENTS);
	for (i = 0; i < n; i++) {
		memset(&events[i], 0, sizeof(events[i]));
		form_event(&f, &events[i]);
	}
	return f.bad || f.at != len ? -EBADMSG : (int)n;
}
