/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_MEM_H
#define MEM_MEM_H

/**
 * @file
 * Protection domains, memory regions and windows, and their keys.
 *
 * One table per device, shared by all workers. The control thread (one, or serialised by the
 * caller) creates and destroys; workers look up on the fast path without locks or atomics beyond a
 * load. A type 2 window once bound belongs to its QP's worker. What other workers may still read is
 * freed after a grace period (RCU; the caller provides the mechanism as struct mem_grace, so
 * lib/mem needs no EAL).
 *
 * A key's upper 24 bits are the table index through a keyed permutation with a generation. Its low
 * 8 bits are keyed, too, for regions, and the consumer's for type 2 windows (design.md rule 6).
 * lkey and rkey of a region are equal.
 *
 * lib/engine, lib/svc and polca-bench create objects; lib/rc and lib/svc check accesses and bind
 * windows. mem_zalloc() and mem_free() are base/env.h's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"

struct mem;

/* access flags, as ibv_access_flags (rc-transport 11) */
#define MEM_ACCESS_LOCAL_WRITE   0x01
#define MEM_ACCESS_REMOTE_WRITE  0x02
#define MEM_ACCESS_REMOTE_READ   0x04
#define MEM_ACCESS_REMOTE_ATOMIC 0x08
#define MEM_ACCESS_MW_BIND       0x10
#define MEM_ACCESS_ZERO_BASED    0x20
#define MEM_ACCESS_REMOTE                                                                          \
	(MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_ATOMIC)

/** Grace periods (RCU). All NULL: single-threaded use, every grace period is over at once. */
struct mem_grace {
	uint64_t (*start)(void *arg); /**< begin a grace period, return its token; any lcore */
	bool (*done)(void *arg, uint64_t token); /**< true if it is over; never waits */
	void *arg;
};

struct mem_config {
	uint32_t max_pd; /**< table sizes; all allocated at creation */
	uint32_t max_mr;
	uint32_t max_mw;
	const struct allocator *alloc;
	const struct rng *rng;
	struct mem_grace grace;
};

struct mem *mem_create(const struct mem_config *config);
void mem_destroy(struct mem *mem);

/* --- protection domains: control thread --- */
int mem_pd_alloc(struct mem *mem, uint32_t *pd, struct error *err);
/**
 * As mem_pd_alloc(), with the highest free number: for services, so that clients get the low
 * numbers.
 */
int mem_pd_alloc_top(struct mem *mem, uint32_t *pd, struct error *err);
/** @retval -EBUSY regions, windows, or references (mem_pd_hold) remain */
int mem_pd_free(struct mem *mem, uint32_t pd, struct error *err);
/** Count a reference: QPs and SRQs hold their domain. @retval -ENOENT no such domain */
int mem_pd_hold(struct mem *mem, uint32_t pd);
void mem_pd_release(struct mem *mem, uint32_t pd);

struct mem_pd_info {
	uint32_t pd;
	uint32_t users; /**< regions, windows, QPs and SRQs in it */
};

/** Walk the domains: *cursor 0 starts. @retval false at the end */
bool mem_pd_next(const struct mem *mem, uint64_t *cursor, struct mem_pd_info *info);

/* --- memory regions: control thread --- */

/** Where a region's bytes come from. */
enum mem_backing {
	/** anonymous pages: hugepages if asked for and available, else ordinary pages */
	MEM_ANONYMOUS,
	MEM_FILE, /**< mmap of a regular file, shared */
	/** the caller's bytes at .base (a named memzone, a static buffer); not freed here */
	MEM_EXTERNAL,
	MEM_MIRROR, /**< memory of another program, by its mirror file (mirror.h) */
	/**
	 * memory that another program has mapped already: it passes a descriptor of the file in
	 * memory (tmpfs, memfd, hugetlbfs), open for writing, which proves that it may write there
	 */
	MEM_SHARED,
};

struct mem_mr_attr {
	uint32_t pd;
	uint32_t access; /**< MEM_ACCESS_; remote write or atomic need local write (ibv_reg_mr) */
	uint64_t length; /**< bytes, > 0 */
	/**
	 * address remote peers use for byte 0; 0 with ZERO_BASED, else UINT64_MAX: the host address
	 */
	uint64_t va;
	enum mem_backing backing;
	int fd; /**< MEM_FILE, MEM_MIRROR, MEM_SHARED: its descriptor, which stays the caller's */
	const char
		*memzone; /**< MEM_EXTERNAL: name of the memzone at .base; mem does not read it */
	uint64_t mirror_inode; /**< MEM_MIRROR: of .fd, which polca has made */
	uint64_t offset; /**< MEM_FILE: page aligned; MEM_SHARED; MEM_MIRROR: address of byte 0 */
	void *base; /**< MEM_EXTERNAL */
	bool hugepages; /**< MEM_ANONYMOUS */
	int numa_node; /**< preferred node of fresh memory; -1: any */
	/** Whole pages may have so many bytes (verbs.mr_mb); 0: any. Not for MEM_EXTERNAL */
	uint64_t max_bytes;
};

struct mem_mr_info {
	uint32_t key; /**< lkey and rkey */
	uint32_t pd;
	uint32_t access;
	uint64_t va;
	uint64_t length;
	uint64_t map_bytes; /**< of the whole pages that it maps; 0: MEM_EXTERNAL */
	uint8_t *base; /**< host address of byte 0 */
	bool hugepages; /**< true if hugepages were obtained, asked for or not */
	int numa_node; /**< node that holds byte 0; -1: the kernel does not report it */
	bool lost; /**< its file was shortened: no access is allowed any more */
};

/**
 * Map the memory, make a key, and let workers use it.
 *
 * @param info      NULL: the caller needs nothing of it
 * @retval -EINVAL  an attribute is wrong
 * @retval -ENOENT  no such protection domain
 * @retval -ENOMEM  no memory, or all regions are in use
 */
int mem_mr_register(struct mem *mem, const struct mem_mr_attr *attr, struct mem_mr_info *info,
	struct error *err);
/**
 * Deregister: from the first call on every lookup fails; the memory is released after the grace
 * period. The call never blocks: the control thread repeats it while it returns -EAGAIN.
 *
 * @retval -EAGAIN  grace period still running, call again
 * @retval -EBUSY   windows are bound to it
 * @retval -ENOENT  no such key
 */
int mem_mr_deregister(struct mem *mem, uint32_t key, struct error *err);
int mem_mr_query(const struct mem *mem, uint32_t key, struct mem_mr_info *info);
/**
 * A region whose file was shortened since the last call. Accesses to lost bytes go to empty pages
 * until mem_mr_close_lost().
 *
 * @retval false  there is none
 */
bool mem_mr_lost(struct mem *mem, struct mem_mr_info *info);
/**
 * Close a region that mem_mr_lost() has returned: from now on every lookup of its key fails. Its
 * queue pairs must be in ERR before, or they would fail by themselves with an access error, which
 * says nothing of the file.
 */
void mem_mr_close_lost(struct mem *mem, uint32_t key);
/** Walk regions: *cursor 0 starts; @retval false at the end. */
bool mem_mr_next(const struct mem *mem, uint64_t *cursor, struct mem_mr_info *info);

/* --- memory windows --- */
enum mem_mw_type {
	MEM_MW_TYPE_1 = 1, /**< valid for every QP of its PD */
	MEM_MW_TYPE_2 = 2, /**< bound to one QP; its consumer owns the low 8 bits of the key */
	/**
	 * type 1 of another process: ibv_bind_mw() returns the key before the bind is executed, so
	 * its provider owns the low 8 bits
	 */
	MEM_MW_TYPE_1_CHOSEN = 3,
};

/** Control thread. @param key  the unbound window's key */
int mem_mw_alloc(struct mem *mem, uint32_t pd, enum mem_mw_type type, uint32_t *key,
	struct error *err);
/** Control thread; -EAGAIN as for mem_mr_deregister(). */
int mem_mw_free(struct mem *mem, uint32_t key, struct error *err);
/**
 * The present key of a window, of which @p key was one: for windows that others bind. The caller
 * knows that the window has not been freed, and its type is not MEM_MW_TYPE_1.
 */
uint32_t mem_mw_present_key(const struct mem *mem, uint32_t key);

struct mem_mw_info {
	uint32_t key;
	uint32_t pd;
	enum mem_mw_type type;
	bool bound;
	uint32_t mr_key;
	uint32_t qpn; /**< type 2: the QP it is bound to */
	uint32_t access;
	uint64_t va;
	uint64_t length;
};
int mem_mw_query(const struct mem *mem, uint32_t key, struct mem_mw_info *info);
bool mem_mw_next(const struct mem *mem, uint64_t *cursor, struct mem_mw_info *info);

struct mem_bind {
	uint32_t mw_key; /**< current key of the window */
	/** type 2 and 1 CHOSEN: key after the bind (same upper 24 bits); type 1: ignored */
	uint32_t new_key;
	uint32_t mr_key;
	uint32_t pd; /**< of the QP whose WQE binds */
	uint32_t qpn;
	uint32_t access; /**< MEM_ACCESS_REMOTE_*, ZERO_BASED */
	uint64_t va;
	uint64_t length; /**< 0: unbind */
};

/**
 * Bind a window, on the worker of the QP that binds (IBA: region must allow MW_BIND, remote write
 * needs the region's local write, domains equal, range inside the region).
 *
 * @param key    the key after the bind (type 1: a new one)
 * @param token  non-zero: the bind's completion must wait until mem_grace_done(token), because
 *               other workers may still use the previous binding
 * @retval -EINVAL, -EACCES, -ENOENT  the bind fails with a memory window bind error, nothing
 *   changed
 */
int mem_mw_bind(struct mem *mem, const struct mem_bind *bind, uint32_t *key, uint64_t *token);

/**
 * Invalidate a key, local (pd and qpn of the posting QP) or remote (Send with Invalidate): type 2
 * windows bound to that QP only. Runs on the QP's worker.
 *
 * @retval -EACCES  not a type 2 window bound to this QP in this domain
 */
int mem_invalidate(struct mem *mem, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t *token);

/** The QP's worker destroys the QP: unbind its type 2 windows. */
void mem_qp_gone(struct mem *mem, uint32_t qpn);

bool mem_grace_done(const struct mem *mem, uint64_t token);

/** Of an access (access.h). */
enum mem_verdict {
	MEM_OK,
	MEM_BAD_KEY, /**< no such key, another domain, or another QP's window */
	MEM_BAD_RIGHTS, /**< access not allowed */
	MEM_BAD_RANGE, /**< outside the region or window, or wrapping 2^64 */
};

#endif
