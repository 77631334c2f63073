/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The JSON messages between client and server of a run. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "peers/remote.h"

#define PROTOCOL 2

/* The options of the client that the server must follow. */
/* clang-format off */
#define FIELD(name) { #name, offsetof(struct bench_options, name), \
	sizeof(((struct bench_options *)0)->name) }
/* clang-format on */
static const struct {
	const char *name;
	size_t offset, size;
} fields[] = { FIELD(verb), FIELD(mode), FIELD(size), FIELD(all_sizes), FIELD(qps), FIELD(depth),
	FIELD(rx_depth), FIELD(mtu), FIELD(footprint), FIELD(signal_every), FIELD(inline_size),
	FIELD(atomic), FIELD(bidirectional), FIELD(ack_per_packet), FIELD(icrc), FIELD(check) };

json_t *
message_options(const struct bench_options *o)
{
	json_t *m = json_pack("{s:s, s:i}", "type", "options", "protocol", PROTOCOL);
	const char *field;
	uint32_t v;
	unsigned int i;

	for (i = 0; i < RTE_DIM(fields); i++) {
		field = (const char *)o + fields[i].offset;
		if (fields[i].size == sizeof(bool))
			v = *(const bool *)field;
		else
			memcpy(&v, field, sizeof(v));
		json_object_set_new(m, fields[i].name, json_integer(v));
	}
	return m;
}

int
message_take_options(const json_t *message, struct bench_options *o, struct error *err)
{
	const json_t *value;
	char *field;
	uint32_t v;
	unsigned int i;

	if (json_integer_value(json_object_get(message, "protocol")) != PROTOCOL)
		return error_set(err, EPROTO, "the other process is of another version");
	for (i = 0; i < RTE_DIM(fields); i++) {
		value = json_object_get(message, fields[i].name);
		if (!json_is_integer(value))
			return error_set(err, EPROTO, "the other process does not send %s",
				fields[i].name);
		field = (char *)o + fields[i].offset;
		v = (uint32_t)json_integer_value(value);
		if (fields[i].size == sizeof(bool))
			*(bool *)field = v != 0;
		else
			memcpy(field, &v, sizeof(v));
	}
	return options_complete(o, err);
}

json_t *
message_end(const char *type, struct endpoint *end)
{
	json_t *m, *list = json_array();
	char gid[2 * sizeof(union gid) + 1];
	struct peer p;
	uint32_t i;

	endpoint_describe(end, &p);
	for (i = 0; i < sizeof(p.gid); i++)
		snprintf(gid + 2 * i, 3, "%02x", p.gid.raw[i]);
	for (i = 0; i < end->qps; i++)
		json_array_append_new(list, json_integer(end->qpn[i]));
	m = json_pack("{s:s, s:s, s:i, s:I, s:I, s:o}", "type", type, "gid", gid, "psn", (int)p.psn,
		"va", (json_int_t)p.va, "key", (json_int_t)p.key, "qpn", list);
	return m;
}

static bool
take_gid(const char *text, union gid *gid)
{
	unsigned int i, byte;

	for (i = 0; i < sizeof(*gid); i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		gid->raw[i] = (uint8_t)byte;
	}
	return true;
}

int
message_take_end(const json_t *message, uint32_t qps, struct peer *p, struct error *err)
{
	const char *gid = NULL;
	json_int_t va, key;
	json_t *list;
	uint32_t i;
	int psn;

	if (json_unpack((json_t *)(uintptr_t)message, "{s:s, s:i, s:I, s:I, s:o}", "gid", &gid,
		    "psn", &psn, "va", &va, "key", &key, "qpn", &list) != 0 ||
		strlen(gid) != 2 * sizeof(union gid) || !take_gid(gid, &p->gid) ||
		json_array_size(list) != qps)
		return error_set(err, EPROTO, "the other process describes its end incorrectly");
	p->psn = (uint32_t)psn;
	p->va = (uint64_t)va;
	p->key = (uint32_t)key;
	p->qpn = calloc(qps, sizeof(*p->qpn));
	if (p->qpn == NULL)
		return error_set(err, ENOMEM, "no memory for %u queue pairs", qps);
	for (i = 0; i < qps; i++)
		p->qpn[i] = (uint32_t)json_integer_value(json_array_get(list, i));
	return 0;
}

void
remote_address(const struct bench_options *o, char *where, size_t size)
{
	if (o->peer != NULL)
		snprintf(where, size, "%s", o->peer);
	else
		link_memif_address(o, where, size);
}
