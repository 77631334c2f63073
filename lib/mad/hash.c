/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The session key of a packet, and the worker that owns it. The hash is keyed: without the secret
 * nobody can aim packets at one bucket or one worker.
 */

#include <rte_common.h>

#include "base/siphash.h"
#include "mad/core.h"

/* Leaves out the method: it only distinguishes sessions with the same TID. */
uint64_t
mad_hash(uint64_t secret, const struct mad_key *k)
{
	uint64_t word[4] = {
		k->addr.word[0],
		k->addr.word[1],
		k->tid,
		(uint64_t)k->qpn << 40 ^ (uint64_t)k->port << 24 ^ (uint64_t)k->mgmt_class << 16 ^
			(uint64_t)k->class_version << 8 ^ k->requester,
	};

	return siphash_words(secret, word, RTE_DIM(word));
}

/*
 * Without GRH a peer is identified by its LID. Behind a router many peers share a LID: use the GID.
 */
static void
key_addr(struct mad_key *key, const union gid *gid, bool local, uint16_t lid)
{
	if (local)
		put_be16(key->addr.raw + 14, lid);
	else
		key->addr = *gid;
}

static void
key_mad(struct mad_key *key, const uint8_t *mad)
{
	key->tid = get_be64(mad + MAD_OFF_TID);
	key->mgmt_class = mad[MAD_OFF_CLASS];
	key->class_version = mad[MAD_OFF_CLASS_VERSION];
}

/* GetTraceTable is answered by GetTableResp, and the requester's ACKs are GetTable (B7). */
static uint8_t
key_method(const uint8_t *mad)
{
	if (mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ADM && mad[MAD_OFF_CLASS_VERSION] == 2 &&
		mad[MAD_OFF_METHOD] == SA2_GET_TRACE)
		return SA_GET_TABLE;
	return mad[MAD_OFF_METHOD];
}

void
mad_key_of(struct mad_key *key, const struct packet *pkt)
{
	const uint8_t *mad = pkt->payload;

	memset(key, 0, sizeof(*key));
	key_addr(key, &pkt->sgid, pkt->encap == ENCAP_IB && !pkt->has_grh, pkt->slid);
	key->qpn = pkt->src_qpn;
	key->port = pkt->port;
	key_mad(key, mad);
	key->requester = mad[MAD_OFF_METHOD] >> 7;
	if (!key->requester)
		key->method = key_method(mad);
}

void
mad_key_call(struct mad_key *key, const struct mad_peer *to, const uint8_t *mad)
{
	memset(key, 0, sizeof(*key));
	key_addr(key, &to->av.dgid, to->av.encap == ENCAP_IB && !to->av.grh, to->av.dlid);
	key->qpn = to->qpn;
	key->port = to->av.port;
	key_mad(key, mad);
	key->requester = 1;
}

unsigned int
mad_call_worker(uint64_t hash_key, unsigned int workers, const struct mad_peer *to,
	const uint8_t *mad)
{
	struct mad_key key;

	mad_key_call(&key, to, mad);
	return mad_hash_worker(mad_hash(hash_key, &key), workers);
}

/* The performance management agent keeps one state for all requesters, so one worker owns it. */
static bool
is_for_pma(const uint8_t *mad)
{
	return mad[MAD_OFF_CLASS] == MAD_CLASS_PERFORMANCE &&
		(mad[MAD_OFF_METHOD] & MAD_RESPONSE) == 0;
}

/*
 * Reports of subnet administration keep their TID when another appliance of a fleet sends them
 * again, so it cannot be chosen for the worker that sends: that is always worker 0.
 */
bool
mad_is_report(const uint8_t *mad)
{
	return mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ADM &&
		(mad[MAD_OFF_METHOD] & ~MAD_RESPONSE) == MAD_REPORT;
}

unsigned int
mad_owner(uint64_t hash_key, unsigned int workers, const struct packet *pkt)
{
	struct mad_key key;

	RTE_ASSERT(workers > 0);
	/* worker 0 owns QP0, and counts packets that are no MADs */
	if (workers == 1 || pkt->dest_qpn == QPN_SMI || pkt->payload_len != MAD_LEN ||
		is_for_pma(pkt->payload) || mad_is_report(pkt->payload))
		return 0;
	mad_key_of(&key, pkt);
	return mad_hash_worker(mad_hash(hash_key, &key), workers);
}
