/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which session, and so which worker, a packet belongs to. SipHash-1-3 over the key: who does not
 * know the secret can aim at no bucket and no worker.
 */

#include <rte_common.h>

#include "mad/core.h"

#define ROTL(x, n) ((x) << (n) | (x) >> (64 - (n)))

static inline void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = ROTL(v[1], 13) ^ v[0];
	v[0] = ROTL(v[0], 32);
	v[2] += v[3];
	v[3] = ROTL(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = ROTL(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = ROTL(v[1], 17) ^ v[2];
	v[2] = ROTL(v[2], 32);
}

/* The method is left out: it only tells sessions of one TID apart. */
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
	uint64_t v[4] = {
		secret ^ UINT64_C(0x736f6d6570736575),
		~secret ^ UINT64_C(0x646f72616e646f6d),
		secret ^ UINT64_C(0x6c7967656e657261),
		~secret ^ UINT64_C(0x7465646279746573),
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(word); i++) {
		v[3] ^= word[i];
		sip_round(v);
		v[0] ^= word[i];
	}
	v[2] ^= 0xFF;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void
key_lid(struct mad_key *key, uint16_t lid)
{
	key->addr.word[0] = 0;
	key->addr.word[1] = 0;
	put_be16(key->addr.raw + 14, lid);
}

static void
key_mad(struct mad_key *key, const uint8_t *mad)
{
	key->tid = get_be64(mad + MAD_OFF_TID);
	key->mgmt_class = mad[MAD_OFF_CLASS];
	key->class_version = mad[MAD_OFF_CLASS_VERSION];
}

/* B7: GetTraceTable is answered by GetTableResp, and that is what its Acks look like. */
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
	key->addr = pkt->sgid;
	if (pkt->encap == ENCAP_IB)
		key_lid(key, pkt->slid);
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
	key->addr = to->av.dgid;
	if (to->av.encap == ENCAP_IB)
		key_lid(key, to->av.dlid);
	key->qpn = to->qpn;
	key->port = to->av.port;
	key_mad(key, mad);
	key->requester = 1;
}

unsigned int
mad_owner(uint64_t hash_key, unsigned int workers, const struct packet *pkt)
{
	struct mad_key key;

	if (workers == 1 || pkt->payload_len != MAD_LEN)
		return 0; /* whoever counts it */
	mad_key_of(&key, pkt);
	return mad_hash_worker(mad_hash(hash_key, &key), workers);
}
