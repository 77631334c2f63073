/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reading and writing the bytes of a region from the control socket. Long work is cut into slices,
 * so that a gigabyte to fill keeps no other client waiting.
 */

#include <errno.h>
#include <inttypes.h>
#include <zlib.h>

#include "ctl/methods.h"

#define READ_MAX  (256 << 10) /* a reply carries twice as many characters */
#define WRITE_MAX (512 << 10) /* a request carries no more */
#define SLICE     (1 << 20)
#define CHUNK     (32 << 10) /* on the stack */

struct bytes_args {
	uint32_t present;
	uint32_t key;
	uint64_t offset;
	uint64_t length;
	uint64_t seed;
	struct table_bytes data;
};
#define BYTES_LENGTH 0x1

#define ROW_KEY                                                                                    \
	ROW(struct bytes_args, key, TABLE_UINT, "key of the region", .flags = TABLE_REQUIRED)
#define ROW_OFFSET                                                                                 \
	ROW(struct bytes_args, offset, TABLE_UINT, "first byte, counted from the region's first")
#define ROW_LENGTH(limit)                                                                          \
	ROW(struct bytes_args, length, TABLE_UINT, "bytes", .max = limit, .bit = BYTES_LENGTH,     \
		.def_text = "the rest of the region")

static const struct table_row mr_read_params[] = {
	ROW_KEY,
	ROW_OFFSET,
	ROW(struct bytes_args, length, TABLE_UINT, "bytes", .flags = TABLE_REQUIRED,
		.max = READ_MAX),
	ROW_END,
};

static const struct table_row mr_write_params[] = {
	ROW_KEY,
	ROW_OFFSET,
	ROW(struct bytes_args, data, TABLE_BYTES, "the bytes", .flags = TABLE_REQUIRED,
		.max = WRITE_MAX),
	ROW_END,
};

static const struct table_row mr_fill_params[] = {
	ROW_KEY,
	ROW_OFFSET,
	ROW_LENGTH(UINT64_MAX),
	ROW(struct bytes_args, seed, TABLE_UINT, "start of the SplitMix64 sequence"),
	ROW_END,
};

static const struct table_row mr_checksum_params[] = { ROW_KEY, ROW_OFFSET, ROW_LENGTH(UINT64_MAX),
	ROW_END };

static const struct table_row mr_read_results[] = {
	{
		.name = "data",
		.type = TABLE_BYTES,
		.size = sizeof(struct table_bytes),
		.help = "the bytes as hex text",
	},
	ROW_END,
};

struct bytes_reply {
	uint64_t length;
	uint32_t crc32;
};

static const struct table_row mr_write_results[] = {
	ROW(struct bytes_reply, length, TABLE_UINT, "bytes written"),
	ROW_END,
};

static const struct table_row mr_checksum_results[] = {
	ROW(struct bytes_reply, length, TABLE_UINT, "bytes it covers"),
	ROW(struct bytes_reply, crc32, TABLE_UINT, "the checksum"),
	ROW_END,
};

static int
mr_read(struct rpc_call *call)
{
	const struct bytes_args *a = call->args;
	struct table_bytes *reply = call->reply;
	uint8_t *buf = arena_alloc(&call->arena, a->length + 1);

	if (buf == NULL)
		return -ENOMEM;
	*reply = (struct table_bytes){ buf, a->length };
	return engine_mr_read(call->e, a->key, a->offset, buf, a->length, &call->err);
}

static int
mr_write(struct rpc_call *call)
{
	const struct bytes_args *a = call->args;
	struct bytes_reply *reply = call->reply;

	reply->length = a->data.len;
	return engine_mr_write(call->e, a->key, a->offset, a->data.data, a->data.len, &call->err);
}

/* On the first slice: the length when none was given. */
static int
settle_length(struct rpc_call *call)
{
	struct bytes_args *a = call->args;
	struct mem_mr_info info;
	int rc;

	if ((a->present & BYTES_LENGTH) != 0)
		return 0;
	rc = find_region(call, a->key, &info);
	if (rc != 0)
		return rc;
	if (a->offset > info.length)
		return error_set(&call->err, EINVAL,
			"offset: got %" PRIu64 ", but the region has %" PRIu64 " bytes", a->offset,
			info.length);
	a->length = info.length - a->offset;
	a->present |= BYTES_LENGTH;
	return 0;
}

/* Word k of the SplitMix64 sequence that starts at seed. */
static uint64_t
splitmix64(uint64_t seed, uint64_t k)
{
	uint64_t z = seed + (k + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Bytes from word k on, each word little-endian. */
static void
pattern_bytes(uint64_t seed, uint64_t k, uint8_t *buf, size_t len)
{
	uint64_t word;
	size_t i, b;

	for (i = 0; i < len; i += 8) {
		word = splitmix64(seed, k++);
		for (b = 0; b < 8 && i + b < len; b++)
			buf[i + b] = (uint8_t)(word >> (8 * b));
	}
}

/* What is to be done with n bytes from call->progress on, for all of them: a slice a call. */
static int
in_pieces(struct rpc_call *call, int (*piece)(struct rpc_call *call, uint8_t *buf, size_t n))
{
	const struct bytes_args *a = call->args;
	struct bytes_reply *reply = call->reply;
	uint8_t buf[CHUNK];
	uint64_t left, stop;
	size_t n;
	int rc = settle_length(call);

	if (rc != 0)
		return rc;
	stop = call->progress + SLICE;
	do {
		left = a->length - call->progress;
		n = left < CHUNK ? (size_t)left : CHUNK;
		rc = piece(call, buf, n);
		if (rc != 0)
			return rc;
		call->progress += n;
	} while (call->progress < a->length && call->progress < stop);
	if (call->progress < a->length)
		return RPC_AGAIN;
	reply->length = a->length;
	return 0;
}

static int
fill_piece(struct rpc_call *call, uint8_t *buf, size_t n)
{
	const struct bytes_args *a = call->args;

	pattern_bytes(a->seed, call->progress / 8, buf, n);
	return engine_mr_write(call->e, a->key, a->offset + call->progress, buf, n, &call->err);
}

static int
mr_fill(struct rpc_call *call)
{
	return in_pieces(call, fill_piece);
}

static int
checksum_piece(struct rpc_call *call, uint8_t *buf, size_t n)
{
	const struct bytes_args *a = call->args;
	struct bytes_reply *reply = call->reply;
	int rc = engine_mr_read(call->e, a->key, a->offset + call->progress, buf, n, &call->err);

	if (rc == 0)
		reply->crc32 = (uint32_t)crc32(reply->crc32, buf, (uInt)n);
	return rc;
}

static int
mr_checksum(struct rpc_call *call)
{
	return in_pieces(call, checksum_piece);
}

const struct rpc_method methods_bytes[] = {
	{ "mr_read", mr_read, mr_read_params, sizeof(struct bytes_args), "Read bytes of a region.",
		"polca-ctl mr read 0x1a2b3c4d --length 64",
		RESULTS(mr_read_results, struct table_bytes) },
	{ "mr_write", mr_write, mr_write_params, sizeof(struct bytes_args),
		"Write bytes into a region.", "polca-ctl mr write 0x1a2b3c4d --data 68656c6c6f",
		RESULTS(mr_write_results, struct bytes_reply) },
	{ "mr_fill", mr_fill, mr_fill_params, sizeof(struct bytes_args),
		"Fill a region with the SplitMix64 sequence that starts at seed, 64-bit words in little-endian order, the last one cut short.",
		"polca-ctl mr fill 0x1a2b3c4d --seed 7",
		RESULTS(mr_write_results, struct bytes_reply) },
	{ "mr_checksum", mr_checksum, mr_checksum_params, sizeof(struct bytes_args),
		"CRC-32 (as zlib, gzip and Ethernet have it) over bytes of a region.",
		"polca-ctl mr checksum 0x1a2b3c4d",
		RESULTS(mr_checksum_results, struct bytes_reply) },
	{ NULL },
};
