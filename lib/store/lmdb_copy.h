/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_LMDB_COPY_H
#define STORE_LMDB_COPY_H

/**
 * @file
 * Private to lib/store: LMDB as the copy of a fleet's database. The copy's position in etcd is part
 * of the same LMDB transaction as the records, so they never disagree.
 */

#include "store/store.h"

/** How far a copy is. All zero: it is empty. */
struct copy_position {
	uint64_t cluster; /* ID of etcd's cluster */
	uint64_t revision; /* all changes up to here are in the copy */
	uint64_t changed; /* revision of the last change of a record */
	uint64_t nonce; /* that this change carried */
};

#define COPY_PREFIX_MAX 256

/**
 * store_lmdb_open() for a copy. @p backend's load and close serve as they are.
 *
 * @param prefix  of the keys in etcd; a copy of others is refused
 */
int lmdb_copy_open(const char *path, uint64_t map_bytes, const char *prefix,
	struct store_backend *backend, struct error *err);
/**
 * A random number that the copy got when it was made, and anew where its directory was copied to:
 * it tells appliances of one name apart.
 */
uint64_t lmdb_copy_instance(const struct store_backend *backend);
/** True if it got a new one, because it was elsewhere before or the machine has started anew. */
bool lmdb_copy_moved(const struct store_backend *backend);
/** False if the lock file could not be written: the next start takes the copy for a moved one. */
bool lmdb_copy_settled(const struct store_backend *backend);
/** @retval -ENOENT  the copy is empty */
int lmdb_copy_position(const struct store_backend *backend, struct copy_position *position,
	struct error *err);
/** Write changes and the new position durably. @param replace  remove all other records */
int lmdb_copy_write(const struct store_backend *backend, bool replace, const struct store_op *ops,
	size_t n, const struct copy_position *position, struct error *err);

#endif
