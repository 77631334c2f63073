/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Anti-flood: anyone can send requests, so each source has a token bucket (liveness 2). The table
 * has a fixed size. Sources with the same hash share a bucket; the hash is keyed, so that nobody
 * can choose whose bucket to share.
 */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "base/siphash.h"
#include "live/private.h"

int
live_source_init(struct live *l)
{
	const struct live_limits *limits = &l->config.limits;
	uint32_t n = rte_align32pow2(RTE_MAX(limits->sources, 1u)), i;
	uint64_t interval;

	if (limits->rate == 0)
		return 0;
	l->sources = mem_zalloc(l->config.alloc, n * sizeof(*l->sources), 64);
	if (l->sources == NULL)
		return -ENOMEM;
	interval = RTE_MAX(l->config.hz / limits->rate, 1u);
	for (i = 0; i < n; i++)
		token_bucket_init(&l->sources[i], interval, limits->burst);
	l->source_mask = n - 1;
	l->source_key = rng_u64(l->config.rng);
	return 0;
}

bool
live_source_take(struct live *l, const struct mad_request *req)
{
	const struct av *av = &req->peer->av;
	uint64_t word[3] = { av->dgid.word[0], av->dgid.word[1], av->port };

	if (l->sources == NULL)
		return true;
	if (!av->grh) { /* without GRH the LID identifies the source */
		word[0] = 0;
		word[1] = av->dlid;
	}
	return token_bucket_take(
		&l->sources[siphash_words(l->source_key, word, RTE_DIM(word)) & l->source_mask],
		req->now);
}
