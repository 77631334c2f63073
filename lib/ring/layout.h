/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RING_LAYOUT_H
#define RING_LAYOUT_H

/**
 * @file
 * Memory that a program and a worker of polca share: the segment of a client.
 *
 * A client is one opened device of a program. Its segment is a memfd that polca makes, seals
 * against resizing and passes over the verbs socket (protocol.h, which also tells the offsets):
 *
 *     struct ring_segment    the worker's "asleep" word
 *     doorbells              one ring; an entry names a queue by its slot (doorbell.h)
 *     struct ring_queue      one for each slot: a queue pair, or a shared receive queue
 *     struct ring_cq         one for each completion queue
 *     storage                the entries of all rings (queue.h)
 *
 * Each side keeps offsets, sizes and its own indices in private memory. It reads from here only the
 * other side's indices, and entries. All of them are hostile to the worker: an index is masked, a
 * count is bounded by the ring's size, and an entry is copied once before it is checked.
 *
 * lib/ring has no dependency, not even the C library: the provider, the engine and tests include
 * it. Values of opcodes, flags and states are those of libibverbs, which lib/rc has, too.
 */

#include <stdint.h>

#define RING_LINE    64 /* bytes that processors move at a time */
#define RING_ALIGNED __attribute__((aligned(RING_LINE)))

struct ring_segment {
	/** 1: the worker sleeps, or is about to; who rings then writes to the wake pipe */
	uint32_t asleep RING_ALIGNED;
};

/** Indices of a send and a receive queue; of a shared receive queue, only the latter. */
struct ring_queue {
	/* written by the client; the worker clears .rung */
	uint32_t send_head RING_ALIGNED;
	uint32_t receive_head;
	uint32_t rung; /**< 1: the worker looks at the queue without a doorbell, or after one */
	/* written by the worker */
	uint32_t send_tail RING_ALIGNED;
	uint32_t receive_tail;
};

#define RING_ARMED_SOLICITED 1 /* event on solicited completions and errors only */
#define RING_ARMED_ANY       2 /* event on any completion */

/** Indices of a completion queue. */
struct ring_cq {
	uint32_t head RING_ALIGNED; /**< written by the worker */
	uint32_t tail RING_ALIGNED; /**< written by the client */
	uint32_t armed; /**< RING_ARMED_, set by the client, cleared by the worker; 0: not armed */
};

struct ring_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/** Header of an entry of a send queue. Inline data or scatter/gather entries follow it. */
struct ring_send {
	uint64_t wr_id;
	uint8_t opcode; /**< ibv_wr_opcode */
	uint8_t flags; /**< ibv_send_flags */
	uint8_t num_sge; /**< 0 for inline data */
	uint8_t reserved;
	uint32_t imm; /**< immediate in host order; R_Key to invalidate; R_Key after a bind */
	uint32_t inline_len;
	uint32_t rkey; /**< bind: of the window */
	uint64_t remote_addr; /**< bind: its first byte */
	uint64_t compare_add; /**< bind: its length */
	uint64_t swap; /**< bind: the region's key, and above it the access flags */
};
_Static_assert(sizeof(struct ring_send) == RING_LINE - sizeof(struct ring_sge),
	"a request with one sge is one line");

/** Header of an entry of a receive queue. Scatter/gather entries follow it. */
struct ring_receive {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
};

/** An entry of a completion queue. */
struct ring_completion {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /**< in host order, or the invalidated R_Key */
	uint32_t qp_num;
	uint32_t mw_key; /**< a type 1 window's key after its bind */
	uint32_t src_qp;
	uint8_t status; /**< ibv_wc_status */
	uint8_t opcode; /**< ibv_wc_opcode */
	uint8_t flags; /**< ibv_wc_flags */
	uint8_t reserved;
};
_Static_assert(sizeof(struct ring_completion) == 32, "two completions are one line");

/** Bytes of an entry of a send queue with room for so many sges or inline bytes. */
static inline uint32_t
ring_send_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t room = max_sge * (uint32_t)sizeof(struct ring_sge);

	if (room < max_inline)
		room = max_inline;
	return ((uint32_t)sizeof(struct ring_send) + room + RING_LINE - 1) & ~(RING_LINE - 1u);
}

/** Bytes of an entry of a receive queue. */
static inline uint32_t
ring_receive_stride(uint32_t max_sge)
{
	return (uint32_t)sizeof(struct ring_receive) + max_sge * (uint32_t)sizeof(struct ring_sge);
}

/** Entries of a ring that holds @p n: a power of two. */
static inline uint32_t
ring_entries(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

#endif
