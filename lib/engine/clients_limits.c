/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Limits of a client, and of all clients of its user. Lists of clients are short, so what a user
 * has is added up when it is asked for: nobody has to give anything back.
 */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "engine/clients_private.h"

void
client_use_of_user(const struct verbs_client *of, struct engine_client_use *use)
{
	const struct verbs_client *c;

	*use = (struct engine_client_use){ 0 };
	for (c = of->engine->verbs_clients; c != NULL; c = c->next_client) {
		if (c->owner.uid != of->owner.uid)
			continue;
		use->qps += c->use.qps;
		use->cqs += c->use.cqs;
		use->srqs += c->use.srqs;
		use->pds += c->use.pds;
		use->regions += c->use.regions;
		use->windows += c->use.windows;
		use->bytes += c->use.bytes;
		use->requests += c->use.requests;
	}
}

/* A number in one of the structures of uses and limits. */
struct client_number {
	size_t offset;
	size_t size; /* 4 or 8 */
};
#define NUMBER(type, field)                                                                        \
	{                                                                                          \
		offsetof(struct type, field), sizeof(((struct type *)0)->field)                    \
	}

/* What is limited, its keys of the configuration, and where its use and its two limits are. */
static const struct client_limit_row {
	const char *what;
	const char *key;
	const char *user_key;
	struct client_number use;
	struct client_number max;
	struct client_number user_max;
	bool objects; /* they come one at a time */
} client_limit_rows[CLIENT_LIMITS] = {
#define ROW_OF(kind, what, use, max, key, user_key, objects)                                       \
	[CLIENT_LIMIT_##kind] = { what, key, user_key, NUMBER(engine_client_use, use),             \
		NUMBER(verbs_client_limits, max), NUMBER(verbs_user_limits, max), objects }
	ROW_OF(QP, "qp", qps, max_qp, "max_qp", "max_user_qp", true),
	ROW_OF(CQ, "cq", cqs, max_cq, "max_cq", "max_user_cq", true),
	ROW_OF(SRQ, "srq", srqs, max_srq, "max_srq", "max_user_srq", true),
	ROW_OF(PD, "pd", pds, max_pd, "max_pd", "max_user_pd", true),
	ROW_OF(MR, "mr", regions, max_mr, "max_mr", "max_user_mr", true),
	ROW_OF(MW, "mw", windows, max_mw, "max_mw", "max_user_mw", true),
	ROW_OF(REQUESTS, "max_wr", requests, max_wr, "max_wr", "max_user_wr", false),
	ROW_OF(BYTES, "length", bytes, max_mr_bytes, "mr_mb", "user_mr_mb", false),
#undef ROW_OF
};

static uint64_t
client_number_of(const void *structure, struct client_number n)
{
	const uint8_t *p = (const uint8_t *)structure + n.offset;

	return n.size == sizeof(uint64_t) ? *(const uint64_t *)(const void *)p
					  : *(const uint32_t *)(const void *)p;
}

/* @param whose  "" or " of the user" */
static int
client_allow_more(const struct client_limit_row *r, uint64_t more, uint64_t have, uint64_t max,
	const char *whose, const char *key, struct error *err)
{
	if (have <= max && more <= max - have)
		return 0;
	if (r->objects)
		return error_set_limit(err, ENOMEM, "%s: all %" PRIu64 "%s are in use (verbs.%s)",
			r->what, max, whose, key);
	return error_set_limit(err, ENOMEM,
		"%s: got %" PRIu64 ", allowed: %" PRIu64 " more%s (verbs.%s)", r->what, more,
		max > have ? max - have : 0, whose, key);
}

int
client_allow(const struct verbs_client *c, enum client_limit what, uint64_t more, struct error *err)
{
	const struct client_limit_row *r = &client_limit_rows[what];
	struct engine_client_use user;
	int rc = client_allow_more(r, more, client_number_of(&c->use, r->use),
		client_number_of(&c->limits, r->max), "", r->key, err);

	if (rc != 0)
		return rc;
	client_use_of_user(c, &user);
	return client_allow_more(r, more, client_number_of(&user, r->use),
		client_number_of(&c->limits.user, r->user_max), " of the user", r->user_key, err);
}

int
client_allow_mr(const struct verbs_client *c, uint64_t bytes, uint64_t *max_bytes,
	struct error *err)
{
	const struct verbs_client_limits *l = &c->limits;
	struct engine_client_use user;
	int rc = client_allow(c, CLIENT_LIMIT_MR, 1, err);

	if (rc == 0)
		rc = client_allow(c, CLIENT_LIMIT_BYTES, bytes, err);
	if (rc != 0)
		return rc;
	client_use_of_user(c, &user);
	*max_bytes = RTE_MIN(l->max_mr_bytes - c->use.bytes, l->user.max_mr_bytes - user.bytes);
	return 0;
}
