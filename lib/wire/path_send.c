/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fast completion of the common packets over IPv4: a BTH with a payload, an Ack, an Atomic
 * Acknowledge. For the ICRC the head of such a packet has three blocks (path_finish.c). In the
 * first two only length and ID vary, since the checksum counts as ones, so path_init() computes
 * their CRC once. The third block, with the BTH, goes from a register into both packet and CRC:
 * loading it back as a whole would stall after it was written in small pieces.
 */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/common_case.h"
#include "wire/bytes.h"
#include "wire/crc32_copy.h"
#include "wire/crc32_kernels.h"
#include "wire/icrc_masks.h"
#include "wire/layout.h"
#include "wire/path_ipv4.h"
#include "wire/wire.h"

#define ACK_LEN    (BTH_LEN + 4)
#define ATOMIC_LEN (ACK_LEN + 8)

uint32_t
path_finish_send_portable(const struct path *p, uint8_t *bth, const uint8_t *words,
	const void *from, uint32_t len, uint16_t ip_id)
{
	memcpy(bth, words, BTH_LEN);
	return path_finish_copy(p, bth, BTH_LEN, from, len, ip_id);
}

uint32_t
path_finish_ack_portable(const struct path *p, uint8_t *bth, const uint8_t *words, uint16_t ip_id)
{
	memcpy(bth, words, ACK_LEN);
	return path_finish_copy(p, bth, ACK_LEN, NULL, 0, ip_id);
}

uint32_t
path_finish_atomic_portable(const struct path *p, uint8_t *bth, const uint8_t *words,
	uint16_t ip_id)
{
	memcpy(bth, words, ATOMIC_LEN);
	return path_finish_copy(p, bth, ATOMIC_LEN, NULL, 0, ip_id);
}

#ifdef WIRE_CRC32_PCLMUL

#define ACK_L3_LEN (IPV4_LEN + UDP_LEN + ACK_LEN + ICRC_LEN)

/*
 * Bytes before layer 3 in the first block (icrc_masks.h). They are chosen so that the third block
 * ends with the BTH and begins with the UDP length (Send), or begins with the BTH and ends with the
 * AETH (Ack).
 */
#define SEND_FRONT 8
#define ACK_FRONT  4

#define IPV4_MASK (icrc_masks[ENCAP_ROCEV2_IPV4] + ICRC_FRONT)

/* Write the CRC of two blocks, moved ahead so that it can be added to the third block. */
static TARGET_PCLMUL void
put_state(const uint8_t blocks[2 * BLOCK], const uint8_t *ones, uint8_t state[BLOCK])
{
	__m128i x = _mm_or_si128(fold_load(blocks), fold_load(ones));

	x = fold(x, K(FOLD_128), _mm_or_si128(fold_load(blocks + BLOCK), fold_load(ones + BLOCK)));
	_mm_storeu_si128((__m128i *)(void *)state, move(x, K(FOLD_128)));
}

/* The fields that vary are zero in the template; head_after() adds them. */
void
path_init_states(struct path *p)
{
	const uint8_t *l3 = p->header + p->l3_off;
	uint8_t blocks[2 * BLOCK] = { 0 };

	if (!crc32_pclmul_supported())
		return;
	memcpy(blocks + SEND_FRONT, l3, sizeof(blocks) - SEND_FRONT);
	put_state(blocks, IPV4_MASK - SEND_FRONT, p->icrc_state);
	memset(blocks, 0, sizeof(blocks));
	memcpy(blocks + ACK_FRONT, l3, sizeof(blocks) - ACK_FRONT);
	put_be16(blocks + ACK_FRONT + IPV4_TOTAL, ACK_L3_LEN);
	put_be16(blocks + ACK_FRONT + IPV4_LEN + UDP_LENGTH, ACK_L3_LEN - IPV4_LEN);
	put_state(blocks, IPV4_MASK - ACK_FRONT, p->icrc_ack);
}

/*
 * Add the fields that vary, which are all in the high half of the first block, and the third block.
 */
static TARGET_PCLMUL __rte_always_inline __m128i
head_after(const uint8_t state[BLOCK], uint64_t vary, __m128i third)
{
	__m128i more = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)vary), K(FOLD_256), 0x10);

	return _mm_xor_si128(_mm_xor_si128(fold_load(state), more), third);
}

static TARGET_PCLMUL __rte_always_inline __m128i
load_bth(const uint8_t words[BTH_LEN])
{
	int32_t last;

	memcpy(&last, words + 8, sizeof(last));
	return _mm_insert_epi32(_mm_loadl_epi64((const __m128i *)(const void *)words), last, 2);
}

static TARGET_PCLMUL __rte_always_inline void
store_block(uint8_t *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)(void *)p, v);
}

/*
 * Write a packet's headers and BTH. @param bth_len  bytes from BTH to ICRC. @return the head's CRC
 */
static TARGET_PCLMUL __rte_always_inline __m128i
head_of_send(const struct path *p, uint8_t *bth, const uint8_t words[BTH_LEN], uint32_t bth_len,
	uint16_t ip_id)
{
	const __m128i ones = fold_load(IPV4_MASK + 2 * BLOCK - SEND_FRONT);
	uint32_t l3_len = IPV4_LEN + UDP_LEN + bth_len + ICRC_LEN;
	uint32_t total_id = ipv4_total_id(l3_len, ip_id);
	__m128i third = _mm_insert_epi16(_mm_slli_si128(load_bth(words), BLOCK - BTH_LEN),
		be16(l3_len - IPV4_LEN), 0);

	put_ipv4_header(p, bth, total_id);
	store_block(bth + BTH_LEN - BLOCK, third);
	return head_after(p->icrc_state, (uint64_t)total_id << 16, _mm_or_si128(third, ones));
}

/* @return the packet's length */
static __rte_always_inline uint32_t
put_icrc(const struct path *p, uint8_t *bth, uint32_t bth_len, uint32_t icrc)
{
	put_le32(bth + bth_len, icrc);
	return p->header_len + bth_len + ICRC_LEN;
}

/* @param copy  copies the payload and continues the CRC x, such as copy_pclmul() */
static TARGET_PCLMUL __rte_always_inline uint32_t
finish_send(const struct path *p, uint8_t *bth, const uint8_t *words, const void *from,
	uint32_t len, uint16_t ip_id,
	uint32_t (*copy)(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len))
{
	uint32_t bth_len = PADDED(BTH_LEN + len);
	__m128i x;

	if (unlikely(!COMMON_CASE(p->av.encap == ENCAP_ROCEV2_IPV4)))
		return path_finish_send_portable(p, bth, words, from, len, ip_id);
	x = head_of_send(p, bth, words, bth_len, ip_id);
	return put_icrc(p, bth, bth_len, copy(x, bth + BTH_LEN, from, len));
}

TARGET_PCLMUL uint32_t
path_finish_send_pclmul(const struct path *p, uint8_t *bth, const uint8_t *words, const void *from,
	uint32_t len, uint16_t ip_id)
{
	return finish_send(p, bth, words, from, len, ip_id, copy_pclmul);
}

TARGET_PCLMUL uint32_t
path_finish_ack_pclmul(const struct path *p, uint8_t *bth, const uint8_t *words, uint16_t ip_id)
{
	const __m128i ones = fold_load(IPV4_MASK + 2 * BLOCK - ACK_FRONT);
	uint32_t total_id = ipv4_total_id(ACK_L3_LEN, ip_id);
	int32_t last;
	__m128i third, x;

	if (unlikely(!COMMON_CASE(p->av.encap == ENCAP_ROCEV2_IPV4)))
		return path_finish_ack_portable(p, bth, words, ip_id);
	memcpy(&last, words + BTH_LEN, sizeof(last));
	third = _mm_insert_epi32(load_bth(words), last, 3);
	put_ipv4_header(p, bth, total_id);
	put_be16(bth - UDP_LEN + UDP_LENGTH, ACK_L3_LEN - IPV4_LEN);
	store_block(bth, third);
	x = head_after(p->icrc_ack, total_id >> 16, _mm_or_si128(third, ones));
	return put_icrc(p, bth, ACK_LEN, ~reduce(x));
}

/* The head of a Send and twelve bytes; these and the last four bytes of the head form one block. */
TARGET_PCLMUL uint32_t
path_finish_atomic_pclmul(const struct path *p, uint8_t *bth, const uint8_t *words, uint16_t ip_id)
{
	int32_t aeth;
	__m128i x, tail;

	if (unlikely(!COMMON_CASE(p->av.encap == ENCAP_ROCEV2_IPV4)))
		return path_finish_atomic_portable(p, bth, words, ip_id);
	memcpy(&aeth, words + BTH_LEN, sizeof(aeth));
	tail = _mm_loadl_epi64((const __m128i *)(const void *)(words + ACK_LEN));
	tail = _mm_insert_epi32(_mm_slli_si128(tail, 4), aeth, 0);
	x = head_of_send(p, bth, words, ATOMIC_LEN, ip_id);
	store_block(bth + BTH_LEN, tail);
	x = fold(_mm_slli_si128(x, 4), K(FOLD_128), _mm_alignr_epi8(tail, x, 12));
	return put_icrc(p, bth, ATOMIC_LEN, ~reduce(x));
}

#else

void
path_init_states(struct path *p)
{
	(void)p;
}

#endif

#ifdef WIRE_CRC32_VPCLMUL

TARGET_VPCLMUL uint32_t
path_finish_send_vpclmul(const struct path *p, uint8_t *bth, const uint8_t *words, const void *from,
	uint32_t len, uint16_t ip_id)
{
	return finish_send(p, bth, words, from, len, ip_id, copy_vpclmul);
}

#endif
