/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Complete a packet: the headers before its BTH, and the ICRC (rc-transport 1, 9). */

#include "base/common_case.h"
#include "base/copy.h"
#include "wire/crc32_fold.h"
#include "wire/crc32_kernels.h"
#include "wire/icrc_masks.h"
#include "wire/layout.h"
#include "wire/wire.h"

/* Total length (IPv4 header through ICRC) and ID as one word, in network byte order. */
static inline uint32_t
ipv4_total_id(uint32_t l3_len, uint16_t ip_id)
{
	return htobe32(l3_len << 16 | ip_id);
}

/*
 * Copy the path's template before the BTH and fill in IPv4 length, ID and checksum. The caller
 * writes the UDP length. The checksum is computed over words in network byte order: a one's
 * complement sum is independent of byte order.
 */
static __rte_always_inline void
put_ipv4_header(const struct path *p, uint8_t *bth, uint32_t total_id)
{
	const uint8_t *header = p->header, *last = header + p->header_len - 16;
	uint8_t *frame = bth - p->header_len, *l3 = frame + p->l3_off;
	uint16_t fixed, checksum;
	uint32_t sum;

	/* before all stores, since these might change the path for all that the compiler knows */
	memcpy(&fixed, header + p->l3_off + IPV4_CHECKSUM, sizeof(fixed));
	memcpy(frame, header, 16); /* the header has 42 bytes, or 46 with a VLAN tag */
	memcpy(frame + 16, header + 16, 16);
	memcpy(bth - 16, last, 16);
	memcpy(l3 + IPV4_TOTAL, &total_id, sizeof(total_id));
	sum = fixed + (total_id & 0xFFFF) + (total_id >> 16);
	sum += sum << 16 | sum >> 16; /* add both halves; the upper half gets the carry */
	checksum = ~(sum >> 16);
	memcpy(l3 + IPV4_CHECKSUM, &checksum, sizeof(checksum));
}

static void __rte_noinline
put_other_header(const struct path *p, uint8_t *bth, uint32_t bth_len)
{
	uint8_t *frame = bth - p->header_len, *l3 = frame + p->l3_off;
	uint32_t l3_len = bth - l3 + bth_len + ICRC_LEN;

	memcpy(frame, p->header, p->header_len);
	switch (p->av.encap) {
	case ENCAP_ROCEV2_IPV4:
		break;
	case ENCAP_ROCEV2_IPV6:
		put_be16(l3 + IPV6_PAYLEN, l3_len - IPV6_LEN);
		put_be16(l3 + IPV6_LEN + UDP_LENGTH, l3_len - IPV6_LEN);
		break;
	case ENCAP_ROCEV1:
		put_be16(l3 + IPV6_PAYLEN, l3_len - GRH_LEN);
		break;
	case ENCAP_IB:
		put_be16(l3 + LRH_PKTLEN, l3_len / 4);
		if (p->av.grh)
			put_be16(l3 + LRH_LEN + IPV6_PAYLEN, l3_len - LRH_LEN - GRH_LEN);
		break;
	}
}

static inline void
path_put_ipv4_header(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id)
{
	uint32_t l3_len = IPV4_LEN + UDP_LEN + bth_len + ICRC_LEN;

	put_ipv4_header(p, bth, ipv4_total_id(l3_len, ip_id));
	put_be16(bth - UDP_LEN + UDP_LENGTH, l3_len - IPV4_LEN);
}

static inline void
path_put_header(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id)
{
	if (likely(p->av.encap == ENCAP_ROCEV2_IPV4))
		path_put_ipv4_header(p, bth, bth_len, ip_id);
	else
		put_other_header(p, bth, bth_len);
}

/* @return the packet's length */
static __rte_always_inline uint32_t
put_icrc(const struct path *p, uint8_t *bth, uint32_t bth_len, uint32_t icrc)
{
	put_le32(bth + bth_len, icrc);
	return p->header_len + bth_len + ICRC_LEN;
}

uint32_t
path_finish(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id)
{
	uint8_t *l3 = bth - p->header_len + p->l3_off;
	uint32_t icrc_len = bth - l3 + bth_len;
	uint32_t l3_len = icrc_len + ICRC_LEN;

	RTE_ASSERT(bth_len >= BTH_LEN);
	path_put_header(p, bth, bth_len, ip_id);
	put_le32(l3 + icrc_len, wire_icrc(p->av.encap, l3, icrc_len));
	if (unlikely(p->av.encap == ENCAP_IB))
		put_le16(l3 + l3_len, wire_vcrc(l3, l3_len));
	return p->header_len + bth_len + p->trailer_len;
}

/*
 * What crc_kernel.packet() keeps of a packet's head, from 16 bytes before layer 3 on: nothing
 * before layer 3, where the mask has ones (icrc_masks.h). The head begins there so that it has a
 * whole number of blocks.
 */
#define IN_FRONT      16
#define ONES_IN_FRONT 4

static const uint8_t keep[] = { [IN_FRONT... IN_FRONT + BLOCK - 1] = 0xFF };

uint32_t
path_finish_copy(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	uint32_t bth_len = headers + wire_padded(len);
	uint32_t head = ONES_IN_FRONT + p->header_len - p->l3_off + headers;
	uint32_t blocks = (head + BLOCK - 1) / BLOCK;
	uint32_t skip = IN_FRONT - ONES_IN_FRONT - (blocks * BLOCK - head);
	enum encap encap = p->av.encap;
	uint8_t *at = bth + headers;

	RTE_ASSERT(headers >= BTH_LEN && headers <= BTH_LEN + PATH_EXT_MAX && headers % 4 == 0);
	RTE_ASSERT(from != NULL || len == 0);
	if (unlikely(encap == ENCAP_IB)) {
		put_payload(at, from, len);
		return path_finish(p, bth, bth_len, ip_id);
	}
	path_put_header(p, bth, bth_len, ip_id);
	return put_icrc(p, bth, bth_len,
		crc_kernel->packet(at - blocks * BLOCK, keep + skip,
			icrc_mask(encap) - IN_FRONT + skip, blocks, from, len));
}

/*
 * The ICRC's field stays, as zeros, so that lengths are the same; only its computation is left out.
 * Four bytes after the payload are cleared whatever the padding: the rest is in the ICRC's field.
 * `common`, a constant: IPv4, and a payload that copy_short() copies.
 */
static __rte_always_inline uint32_t
finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from, uint32_t len,
	uint16_t ip_id, bool common)
{
	uint32_t bth_len = headers + wire_padded(len);

	if (common) {
		path_put_ipv4_header(p, bth, bth_len, ip_id);
		copy_short(bth + headers, from, len);
	} else {
		path_put_header(p, bth, bth_len, ip_id);
		copy_payload(bth + headers, from, len);
	}
	put_le32(bth + headers + len, 0);
	return put_icrc(p, bth, bth_len, 0);
}

static uint32_t __rte_noinline
finish_bare_any(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	if (p->av.encap == ENCAP_IB)
		return path_finish_copy(p, bth, headers, from, len, ip_id);
	return finish_bare(p, bth, headers, from, len, ip_id, false);
}

uint32_t
path_finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	RTE_ASSERT(headers >= BTH_LEN && headers % 4 == 0);
	RTE_ASSERT(from != NULL || len == 0);
	if (likely(COMMON_CASE(p->av.encap == ENCAP_ROCEV2_IPV4)) && likely(copy_is_short(len)))
		return finish_bare(p, bth, headers, from, len, ip_id, true);
	return finish_bare_any(p, bth, headers, from, len, ip_id);
}

/* --- the common packets --- */

/*
 * Fast completion of the common packets over IPv4: a BTH with a payload, an Ack, an Atomic
 * Acknowledge. For the ICRC the head of such a packet has three blocks (above). In the
 * first two only length and ID vary, since the checksum counts as ones, so path_init() computes
 * their CRC once. The third block, with the BTH, goes from a register into both packet and CRC:
 * loading it back as a whole would stall after it was written in small pieces.
 */

#define ACK_LEN    (BTH_LEN + 4)
#define ATOMIC_LEN (ACK_LEN + 8)

uint32_t
path_finish_send_portable(const struct path *p, uint8_t *bth, const uint8_t *words,
	uint32_t headers, const void *from, uint32_t len, uint16_t ip_id)
{
	memcpy(bth, words, headers);
	return path_finish_copy(p, bth, headers, from, len, ip_id);
}

#ifdef __x86_64__

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
	__m128i x = fold_load(blocks) | fold_load(ones);

	x = fold_masked(x, blocks + BLOCK, ones + BLOCK);
	fold_store(state, move(x, K(FOLD_128)));
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

	return fold_load(state) ^ more ^ third;
}

static TARGET_PCLMUL __rte_always_inline __m128i
load_bth(const uint8_t words[BTH_LEN])
{
	return _mm_insert_epi32(_mm_loadu_si64(words), get_le32(words + 8), 2);
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
		htobe16(l3_len - IPV4_LEN), 0);

	put_ipv4_header(p, bth, total_id);
	fold_store(bth + BTH_LEN - BLOCK, third);
	return head_after(p->icrc_state, (uint64_t)total_id << 16, third | ones);
}

/* A BTH, four more bytes and no payload, such as an Ack */
static TARGET_PCLMUL __rte_always_inline uint32_t
finish_ack(const struct path *p, uint8_t *bth, const uint8_t *words, uint16_t ip_id)
{
	const __m128i ones = fold_load(IPV4_MASK + 2 * BLOCK - ACK_FRONT);
	__m128i third = _mm_insert_epi32(load_bth(words), get_le32(words + BTH_LEN), 3);
	uint32_t total_id = ipv4_total_id(ACK_L3_LEN, ip_id);
	__m128i x = head_after(p->icrc_ack, total_id >> 16, third | ones);

	put_ipv4_header(p, bth, total_id);
	put_be16(bth - UDP_LEN + UDP_LENGTH, ACK_L3_LEN - IPV4_LEN);
	fold_store(bth, third);
	return put_icrc(p, bth, ACK_LEN, ~reduce(x));
}

/* The head of a Send and twelve bytes; these and the last four bytes of the head form one block. */
static TARGET_PCLMUL __rte_always_inline uint32_t
finish_atomic(const struct path *p, uint8_t *bth, const uint8_t *words, uint16_t ip_id)
{
	__m128i tail = _mm_loadu_si64(words + ACK_LEN);
	__m128i x = head_of_send(p, bth, words, ATOMIC_LEN, ip_id);

	tail = _mm_insert_epi32(_mm_slli_si128(tail, 4), get_le32(words + BTH_LEN), 0);
	fold_store(bth + BTH_LEN, tail);
	x = fold(_mm_slli_si128(x, 4), K(FOLD_128), _mm_alignr_epi8(tail, x, 12));
	return put_icrc(p, bth, ATOMIC_LEN, ~reduce(x));
}

/* Packets with extension headers, but no Acks */
static TARGET_PCLMUL uint32_t __rte_noinline
finish_extended(const struct path *p, uint8_t *bth, const uint8_t *words, uint32_t headers,
	const void *from, uint32_t len, uint16_t ip_id)
{
	if (len == 0 && headers == ATOMIC_LEN)
		return finish_atomic(p, bth, words, ip_id);
	copy_short(bth, words, headers);
	return path_finish_copy(p, bth, headers, from, len, ip_id);
}

/* @param copy  copies the payload and continues the CRC x, such as copy_pclmul() */
static TARGET_PCLMUL __rte_always_inline uint32_t
finish_send(const struct path *p, uint8_t *bth, const uint8_t *words, uint32_t headers,
	const void *from, uint32_t len, uint16_t ip_id,
	uint32_t (*copy)(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len))
{
	uint32_t bth_len = BTH_LEN + wire_padded(len);
	__m128i x;

	if (unlikely(!COMMON_CASE(p->av.encap == ENCAP_ROCEV2_IPV4)))
		return path_finish_send_portable(p, bth, words, headers, from, len, ip_id);
	if (headers == BTH_LEN) {
		x = head_of_send(p, bth, words, bth_len, ip_id);
		return put_icrc(p, bth, bth_len, copy(x, bth + BTH_LEN, from, len));
	}
	if (headers == ACK_LEN && len == 0)
		return finish_ack(p, bth, words, ip_id);
	return finish_extended(p, bth, words, headers, from, len, ip_id);
}

TARGET_PCLMUL uint32_t
path_finish_send_pclmul(const struct path *p, uint8_t *bth, const uint8_t *words, uint32_t headers,
	const void *from, uint32_t len, uint16_t ip_id)
{
	return finish_send(p, bth, words, headers, from, len, ip_id, copy_pclmul);
}

TARGET_VPCLMUL uint32_t
path_finish_send_vpclmul(const struct path *p, uint8_t *bth, const uint8_t *words, uint32_t headers,
	const void *from, uint32_t len, uint16_t ip_id)
{
	return finish_send(p, bth, words, headers, from, len, ip_id, copy_vpclmul);
}

#else

void
path_init_states(struct path *p)
{
	(void)p;
}

#endif
