/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The memory that a client and its worker share: a sealed memfd, so that nobody can shorten it. It
 * is sparse: pages that are not used take no memory. Rings get whole pages of its storage,
 * which are zeroed when they are used again.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/clients_private.h"

#define SEGMENT_PAGE 4096u

static uint64_t
segment_pages(uint64_t bytes)
{
	return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE;
}

/* The parts in front of the storage begin at page boundaries. */
static void
segment_lay_out(struct client_segment *s, uint32_t queues, uint32_t cqs, uint64_t storage)
{
	struct ring_geometry *g = &s->geometry;
	uint64_t page = segment_pages(sizeof(struct ring_segment));

	g->num_queues = queues;
	g->num_cqs = cqs;
	g->doorbells = page * SEGMENT_PAGE;
	page += segment_pages((uint64_t)queues * sizeof(uint32_t));
	g->queues = page * SEGMENT_PAGE;
	page += segment_pages((uint64_t)queues * sizeof(struct ring_queue));
	g->cqs = page * SEGMENT_PAGE;
	page += segment_pages((uint64_t)cqs * sizeof(struct ring_cq));
	s->storage = page * SEGMENT_PAGE;
	s->num_pages = (uint32_t)segment_pages(storage);
	g->bytes = s->storage + (uint64_t)s->num_pages * SEGMENT_PAGE;
}

static int
segment_fail(struct client_segment *s, struct error *err)
{
	int rc = error_set(err, errno, "no memory to share with the program: %s", strerror(errno));

	client_segment_destroy(s);
	return rc;
}

int
client_segment_create(struct client_segment *s, uint32_t queues, uint32_t cqs, uint64_t storage,
	struct error *err)
{
	void *map;

	memset(s, 0, sizeof(*s));
	segment_lay_out(s, queues, cqs, storage);
	s->fd = memfd_create("polca-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)s->geometry.bytes) != 0 ||
		fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return segment_fail(s, err);
	map = mmap(NULL, s->geometry.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		s->fd, 0);
	if (map == MAP_FAILED)
		return segment_fail(s, err);
	s->base = map;
	s->pages = calloc((s->num_pages + 63) / 64, sizeof(uint64_t));
	s->stale = calloc((s->num_pages + 63) / 64, sizeof(uint64_t));
	return s->pages != NULL && s->stale != NULL ? 0 : segment_fail(s, err);
}

void
client_segment_destroy(struct client_segment *s)
{
	if (s->base != NULL)
		munmap(s->base, s->geometry.bytes);
	if (s->fd >= 0)
		close(s->fd);
	free(s->pages);
	free(s->stale);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

static bool
segment_page_used(const struct client_segment *s, uint32_t page)
{
	return (s->pages[page / 64] >> (page % 64) & 1) != 0;
}

static void
segment_mark(struct client_segment *s, uint32_t first, uint32_t num)
{
	for (uint32_t i = first; i < first + num; i++)
		s->pages[i / 64] ^= UINT64_C(1) << (i % 64);
}

/* The first run of free pages that is long enough. */
static bool
segment_find(const struct client_segment *s, uint64_t num, uint32_t *first)
{
	uint32_t page, run = 0;

	for (page = 0; page < s->num_pages; page++) {
		run = segment_page_used(s, page) ? 0 : run + 1;
		if (run < num)
			continue;
		*first = page + 1 - run;
		return true;
	}
	return false;
}

/* Pages that had another use become zeros again; fresh ones are zeros that take no memory. */
static void
segment_clear(struct client_segment *s, uint32_t first, uint32_t num)
{
	for (uint32_t i = first; i < first + num; i++) {
		if ((s->stale[i / 64] >> (i % 64) & 1) != 0)
			memset(s->base + s->storage + (uint64_t)i * SEGMENT_PAGE, 0, SEGMENT_PAGE);
		s->stale[i / 64] |= UINT64_C(1) << (i % 64);
	}
}

int
client_segment_alloc(struct client_segment *s, uint64_t bytes, uint64_t *offset, struct error *err)
{
	uint64_t num = segment_pages(bytes);
	uint32_t first = 0;

	if (num == 0 || !segment_find(s, num, &first))
		return error_set_limit(err, ENOMEM,
			"rings: no room for %" PRIu64 " bytes more, allowed: %" PRIu64 " in all "
			"(verbs.ring_mb)",
			bytes, (uint64_t)s->num_pages * SEGMENT_PAGE);
	segment_mark(s, first, (uint32_t)num);
	*offset = s->storage + (uint64_t)first * SEGMENT_PAGE;
	segment_clear(s, first, (uint32_t)num);
	return 0;
}

void
client_segment_free(struct client_segment *s, uint64_t offset, uint64_t bytes)
{
	uint32_t num = (uint32_t)segment_pages(bytes);

	if (offset == 0)
		return;
	segment_mark(s, (uint32_t)((offset - s->storage) / SEGMENT_PAGE), num);
}
