/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Communication IDs: {generation, slot, worker} under a keyed permutation, so that an attacker
 * without the key can neither predict an ID nor choose a worker. And cm_owner(): the worker of a
 * message.
 */

#include "base/siphash.h"
#include "cm/private.h"

#define GENERATION_BITS_MIN 6
#define ROUNDS              4

/* fields that cm_owner() reads, in a message that nobody has checked yet (cm.md 2) */
#define OFF_ATTRIBUTE MAD_OFF_ATTRIBUTE
#define OFF_REMOTE_ID (MAD_HEADER_LEN + 4)
#define OFF_LOCAL_ID  MAD_HEADER_LEN
#define OFF_REQ_GUID  (MAD_HEADER_LEN + 16)
#define OFF_REQ_QPN   (MAD_HEADER_LEN + 32)
#define OFF_REJ_ARI   (MAD_HEADER_LEN + 12)

/* --- the permutation: four Feistel rounds over 16-bit halves --- */

static uint32_t
round_of(uint64_t key, unsigned int round, uint32_t half)
{
	uint64_t word = (uint64_t)round << 32 | half;

	return (uint32_t)siphash_words(key, &word, 1) & 0xFFFF;
}

uint32_t
cm_scramble(uint64_t key, uint32_t plain)
{
	uint32_t left = plain >> 16, right = plain & 0xFFFF, next;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		next = left ^ round_of(key, i, right);
		left = right;
		right = next;
	}
	return left << 16 | right;
}

uint32_t
cm_unscramble(uint64_t key, uint32_t id)
{
	uint32_t left = id >> 16, right = id & 0xFFFF, before;
	unsigned int i;

	for (i = ROUNDS; i-- > 0;) {
		before = right ^ round_of(key, i, left);
		right = left;
		left = before;
	}
	return left << 16 | right;
}

/* --- the parts of an ID --- */

static unsigned int
bits_for(uint32_t n)
{
	return n <= 1 ? 0 : 32 - (unsigned int)__builtin_clz(n - 1);
}

void
cm_id_format(struct cm_id_format *f, unsigned int workers, uint32_t max_connections)
{
	unsigned int room = 32 - GENERATION_BITS_MIN;

	f->worker_bits = bits_for(workers);
	f->slot_bits = RTE_MIN(bits_for(max_connections), room - f->worker_bits);
}

cm_id
cm_id_make(struct cm_conn *c)
{
	const struct cm *cm = c->cm;
	uint32_t plain;
	cm_id id;

	do {
		plain = ++c->generation << (cm->ids.worker_bits + cm->ids.slot_bits) |
			c->index << cm->ids.worker_bits | cm->config.id;
		id = cm_scramble(cm->config.hash_key, plain);
	} while (id == 0);
	return id;
}

unsigned int
cm_worker_of(uint64_t hash_key, unsigned int workers, cm_id id)
{
	unsigned int bits = bits_for(workers);

	RTE_ASSERT(workers > 0);
	/* an ID that is not ours may give a worker that does not exist: any worker may reject it */
	return (cm_unscramble(hash_key, id) & ((1u << bits) - 1)) % workers;
}

/* --- which worker --- */

static unsigned int
hash_worker(uint64_t key, unsigned int workers, uint64_t a, uint64_t b)
{
	uint64_t word[2] = { a, b };

	return (unsigned int)((siphash_words(key, word, 2) >> 32) * workers >> 32);
}

unsigned int
cm_owner(uint64_t hash_key, unsigned int workers, const uint8_t *mad)
{
	uint16_t attribute = get_be16(mad + OFF_ATTRIBUTE);
	uint32_t remote_id = get_be32(mad + OFF_REMOTE_ID);

	RTE_ASSERT(workers > 0);
	if (workers == 1)
		return 0;
	if (attribute == cm_msg_layouts[CM_REQ].attribute)
		return hash_worker(hash_key, workers, get_be64(mad + OFF_REQ_GUID),
			get_be32(mad + OFF_REQ_QPN) >> 8);
	/*
	 * no ID of ours in these: SIDR_REQ (its RequestID), REJ of a peer that never got our answer
	 */
	if (attribute == cm_msg_layouts[CM_SIDR_REQ].attribute)
		return hash_worker(hash_key, workers, 0, get_be32(mad + OFF_LOCAL_ID));
	if (attribute == cm_msg_layouts[CM_REJ].attribute && remote_id == 0)
		return hash_worker(hash_key, workers, get_be64(mad + OFF_REJ_ARI),
			get_be32(mad + OFF_LOCAL_ID));
	return cm_worker_of(hash_key, workers, remote_id);
}
