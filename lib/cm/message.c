/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Encode and decode CM messages by their layout tables. */

#include <errno.h>
#include <string.h>

#include "base/field.h"
#include "cm/message.h"
#include "wire/bits.h"
#include "wire/bytes.h"

#define BYTES_WIDTH 128 /* bits; a field this wide or wider is copied as bytes */

static void
decode_fields(const struct cm_msg_layout *l, const uint8_t *data, struct cm_msg *m)
{
	for (const struct cm_msg_field *f = l->fields; f < l->fields + l->num_fields; f++) {
		uint8_t *member = (uint8_t *)m + f->member;

		if (f->width >= BYTES_WIDTH)
			memcpy(member, data + f->offset / 8, f->size);
		else
			field_store(member, f->size, get_bits(data, f->offset, f->width));
	}
}

static void
encode_fields(const struct cm_msg_layout *l, const struct cm_msg *m, uint8_t *data)
{
	for (const struct cm_msg_field *f = l->fields; f < l->fields + l->num_fields; f++) {
		const uint8_t *member = (const uint8_t *)m + f->member;

		if (f->width >= BYTES_WIDTH)
			memcpy(data + f->offset / 8, member, f->size);
		else
			put_bits(data, f->offset, f->width, field_load(member, f->size));
	}
}

/* The information length fields can hold more than CM_INFO_LEN. */
static void
cut_info_len(struct cm_msg *m)
{
	uint8_t *len = m->type == CM_REJ ? &m->rej.ari_len
		: m->type == CM_APR      ? &m->apr.info_len
		: m->type == CM_SIDR_REP ? &m->sidr_rep.info_len
					 : NULL;

	if (len != NULL && *len > CM_INFO_LEN)
		*len = CM_INFO_LEN;
}

static int
message_of(uint16_t attribute)
{
	for (int i = 0; i < CM_MESSAGES; i++)
		if (cm_msg_layouts[i].attribute == attribute)
			return i;
	return -EBADMSG;
}

int
cm_msg_decode(const uint8_t mad[MAD_LEN], struct cm_msg *m)
{
	const uint8_t *data = mad + MAD_HEADER_LEN;
	const struct cm_msg_layout *l;
	int type;

	if (mad[MAD_OFF_BASE_VERSION] != MAD_BASE_VERSION || mad[MAD_OFF_CLASS] != CM_CLASS ||
		mad[MAD_OFF_CLASS_VERSION] != CM_CLASS_VERSION)
		return -EPROTONOSUPPORT;
	if (mad[MAD_OFF_METHOD] != MAD_SEND)
		return -EOPNOTSUPP;
	type = message_of(get_be16(mad + MAD_OFF_ATTRIBUTE));
	if (type < 0)
		return type;
	l = &cm_msg_layouts[type];
	memset(m, 0, sizeof(*m));
	m->type = (enum cm_message)type;
	m->tid = get_be64(mad + MAD_OFF_TID);
	decode_fields(l, data, m);
	cut_info_len(m);
	m->private_data = data + l->private_offset;
	m->private_len = l->private_len;
	return 0;
}

void
cm_msg_encode(const struct cm_msg *m, uint8_t mad[MAD_LEN])
{
	const struct cm_msg_layout *l = &cm_msg_layouts[m->type];
	uint8_t *data = mad + MAD_HEADER_LEN;

	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = CM_CLASS;
	mad[MAD_OFF_CLASS_VERSION] = CM_CLASS_VERSION;
	mad[MAD_OFF_METHOD] = MAD_SEND;
	put_be64(mad + MAD_OFF_TID, m->tid);
	put_be16(mad + MAD_OFF_ATTRIBUTE, l->attribute);
	encode_fields(l, m, data);
	if (m->private_data != NULL)
		memcpy(data + l->private_offset, m->private_data,
			m->private_len < l->private_len ? m->private_len : l->private_len);
}

/* cm.md 2: without an alternate path, bytes 96 to 139 of a REQ are zero. */
bool
cm_msg_path_present(const struct cm_msg_path *path)
{
	return path->local_lid != 0 || path->remote_lid != 0 || !gid_is_zero(&path->local_gid) ||
		!gid_is_zero(&path->remote_gid);
}
