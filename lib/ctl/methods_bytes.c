/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reading and writing the bytes of a region from the control socket. Long work is cut into slices,
 * so that a gigabyte to fill keeps no other client waiting.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
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
	ROW(struct bytes_args, key, TABLE_UINT, .flags = TABLE_REQUIRED, .help = "key of the region")
#define ROW_OFFSET                                                                                 \
	ROW(struct bytes_args, offset, TABLE_UINT, .flags = TABLE_DEFAULT,                           \
		.help = "first byte, counted from the region's first")
#define ROW_LENGTH(limit)                                                                          \
	ROW(struct bytes_args, length, TABLE_UINT, .max = limit, .bit = BYTES_LENGTH,                \
		.def_text = "the rest of the region", .help = "bytes")

static const struct table_row mr_read_params[] = {
	ROW_KEY,
	ROW_OFFSET,
	{ "length", TABLE_UINT, TABLE_REQUIRED, offsetof(struct bytes_args, length),
		sizeof(uint64_t), .max = READ_MAX, .help = "bytes" },
	ROW_END,
};

static const struct table_row mr_write_params[] = {
	ROW_KEY,
	ROW_OFFSET,
	ROW(struct bytes_args, data, TABLE_BYTES, .flags = TABLE_REQUIRED, .max = WRITE_MAX,
		.help = "the bytes"),
	ROW_END,
};

static const struct table_row mr_fill_params[] = {
	ROW_KEY,
	ROW_OFFSET,
	ROW_LENGTH(UINT64_MAX),
	ROW(struct bytes_args, seed, TABLE_UINT, .flags = TABLE_DEFAULT,
		.help = "start of the SplitMix64 sequence"),
	ROW_END,
};

static const struct table_row mr_checksum_params[] = { ROW_KEY, ROW_OFFSET, ROW_LENGTH(UINT64_MAX),
	ROW_END };

static int
mr_read(struct rpc_call *call)
{
	const struct bytes_args *a = call->args;
	uint8_t *buf = arena_alloc(&call->arena, a->length + 1);
	int rc;

	if (buf == NULL)
		return -ENOMEM;
	rc = engine_mr_read(call->e, a->key, a->offset, buf, a->length, &call->err);
	if (rc == 0)
		set(call->result, "data", json_hex(buf, a->length));
	return rc;
}

static int
mr_write(struct rpc_call *call)
{
	const struct bytes_args *a = call->args;
	int rc = engine_mr_write(call->e, a->key, a->offset, a->data.data, a->data.len,
		&call->err);

	if (rc == 0)
		set_int(call->result, "length", a->data.len);
	return rc;
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
pattern(uint64_t seed, uint64_t k, uint8_t *buf, size_t len)
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
	set_int(call->result, "length", a->length);
	return 0;
}

static int
fill_piece(struct rpc_call *call, uint8_t *buf, size_t n)
{
	const struct bytes_args *a = call->args;

	pattern(a->seed, call->progress / 8, buf, n);
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
	int rc = engine_mr_read(call->e, a->key, a->offset + call->progress, buf, n, &call->err);

	if (rc == 0)
		call->acc = crc32(call->acc, buf, (uInt)n);
	return rc;
}

static int
mr_checksum(struct rpc_call *call)
{
	int rc = in_pieces(call, checksum_piece);

	if (rc == 0)
		set_int(call->result, "crc32", call->acc);
	return rc;
}

const struct rpc_method methods_bytes[] = {
	{ "mr_read", mr_read, mr_read_params, sizeof(struct bytes_args),
		"Read bytes of a region.", "data: the bytes as hex text",
		"polca-ctl mr read 0x1a2b3c4d --length 64" },
	{ "mr_write", mr_write, mr_write_params, sizeof(struct bytes_args),
		"Write bytes into a region.", "length: bytes written",
		"polca-ctl mr write 0x1a2b3c4d --data 68656c6c6f" },
	{ "mr_fill", mr_fill, mr_fill_params, sizeof(struct bytes_args),
		"Fill a region with the SplitMix64 sequence that starts at seed, 64-bit words in little-endian order, the last one cut short.",
		"length: bytes written", "polca-ctl mr fill 0x1a2b3c4d --seed 7" },
	{ "mr_checksum", mr_checksum, mr_checksum_params, sizeof(struct bytes_args),
		"CRC-32 (as zlib, gzip and Ethernet have it) over bytes of a region.",
		"crc32: the checksum\nlength: bytes it covers", "polca-ctl mr checksum 0x1a2b3c4d" },
	{ NULL },
};
