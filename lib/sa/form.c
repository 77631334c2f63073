/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Fields as bytes. */

#include <string.h>

#include "sa/form.h"
#include "wire/bytes.h"

void
form_bytes(struct form *f, void *bytes, size_t n)
{
	f->bad |= n > f->len - f->at;
	if (f->bad)
		return;
	if (f->out != NULL)
		memcpy(f->out + f->at, bytes, n);
	else
		memcpy(bytes, f->in + f->at, n);
	f->at += n;
}

uint64_t
form_number(struct form *f, uint64_t value, size_t n, uint64_t most)
{
	uint8_t bytes[8];

	put_be64(bytes, value);
	form_bytes(f, bytes + 8 - n, n);
	value = get_be64(bytes) & (UINT64_MAX >> (64 - 8 * n));
	f->bad |= value > most;
	return f->bad ? 0 : value;
}

void
form_text(struct form *f, char *text, size_t size)
{
	size_t len = form_number(f, f->out != NULL ? strlen(text) : 0, 1, size - 1);

	form_bytes(f, text, len);
	text[f->bad ? 0 : len] = '\0';
	f->bad |= len == 0;
}

void
form_peer(struct form *f, struct mad_peer *peer)
{
	struct av *av = &peer->av;

	CHOICE(f, av->encap, ENCAP_IB);
	NUMBER(f, av->port);
	form_bytes(f, av->sgid.raw, sizeof(av->sgid.raw));
	form_bytes(f, av->dgid.raw, sizeof(av->dgid.raw));
	form_bytes(f, av->smac, sizeof(av->smac));
	form_bytes(f, av->dmac, sizeof(av->dmac));
	NUMBER(f, av->vlan);
	NUMBER(f, av->sl);
	NUMBER(f, av->traffic_class);
	NUMBER(f, av->hop_limit);
	NUMBER(f, av->flow_label);
	NUMBER(f, av->slid);
	NUMBER(f, av->dlid);
	NUMBER(f, av->vl);
	FLAG(f, av->grh);
	NUMBER(f, av->ethertype);
	NUMBER(f, peer->qpn);
	NUMBER(f, peer->qkey);
	NUMBER(f, peer->pkey);
}
