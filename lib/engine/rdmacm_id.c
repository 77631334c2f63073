/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* IDs of librdmacm's programs: where they begin and end. */

#include <errno.h>
#include <stdlib.h>

#include "engine/rdmacm_private.h"

struct rdmacm_id *
rdmacm_id_new(struct rdmacm_program *p, struct rdmacm_channel *ch, struct error *err)
{
	uint32_t n, i = p->next_id;
	struct rdmacm_id *id;

	for (n = 0; n < p->limits.max_ids && p->id[i] != NULL; n++)
		i = (i + 1) % p->limits.max_ids;
	if (n == p->limits.max_ids) {
		error_set_limit(err, ENOMEM, "id: all %u are in use (verbs.max_cm_ids)",
			p->limits.max_ids);
		return NULL;
	}
	id = calloc(1, sizeof(*id));
	if (id == NULL) {
		error_set(err, ENOMEM, "no memory for an ID");
		return NULL;
	}
	id->program = p;
	id->channel = ch;
	id->number = i;
	id->port = -1;
	p->id[i] = id;
	p->next_id = (i + 1) % p->limits.max_ids;
	return id;
}

void
rdmacm_id_free(struct rdmacm_id *id)
{
	id->program->id[id->number] = NULL;
	free(id);
}
