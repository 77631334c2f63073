/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_debug.h>
#include <rte_pause.h>

#include "base/slab.h"

#define LINE      64
#define CHUNK_MAX (8u << 20)
/*
 * a size is 1 to STEPS steps; the step grows with the octave, so rounding up wastes an eighth at
 * most
 */
#define STEPS   16
#define OCTAVES 10 /* steps of 1, 2, 4 ... 512 cache lines; a larger object has its own chunk */

struct slab_chunk {
	LIST_ENTRY(slab_chunk) link; /* in slab_class.open while it has room */
	struct slab *slab;
	struct slab_class *class; /* NULL: one large object */
	void *freed; /* list of freed objects, linked through their first words */
	uint32_t used;
	uint32_t fresh; /* objects never used, still zero */
	uint32_t capacity;
} __attribute__((aligned(LINE)));

struct slab_class {
	LIST_HEAD(, slab_chunk) open;
	size_t capacity; /* objects in all its chunks */
};

struct slab {
	const struct allocator *alloc;
	bool locked;
	struct slab_class classes[OCTAVES][STEPS + 1];
};

static void
lock(struct slab *s)
{
	while (__atomic_test_and_set(&s->locked, __ATOMIC_ACQUIRE))
		rte_pause();
}

static void
unlock(struct slab *s)
{
	__atomic_clear(&s->locked, __ATOMIC_RELEASE);
}

struct slab *
slab_create(const struct allocator *alloc)
{
	struct slab *s = mem_zalloc(alloc, sizeof(*s), LINE);

	if (s != NULL)
		s->alloc = alloc;
	return s;
}

void
slab_destroy(struct slab *s)
{
	if (s != NULL)
		mem_free(s->alloc, s);
}

/* --- sizes --- */

/* The size class of an object; .bytes includes the pointer to its chunk, in the last word */
struct slab_place {
	unsigned int octave, steps;
	size_t bytes;
};

static struct slab_place
slab_place_of(size_t size)
{
	size_t lines = (size + sizeof(struct slab_chunk *) + LINE - 1) / LINE;
	struct slab_place p = { .octave = 0 };

	while (p.octave < OCTAVES - 1 && lines > (size_t)STEPS << p.octave)
		p.octave++;
	lines = (lines + (1u << p.octave) - 1) >> p.octave;
	p.steps = lines <= STEPS ? (unsigned int)lines : 0; /* 0: too large for a class */
	p.bytes = (lines << p.octave | 1) * LINE;
	return p;
}

static struct slab_chunk **
slab_chunk_of(void *mem, const struct slab_place *p)
{
	return (struct slab_chunk **)((uint8_t *)mem + p->bytes) - 1;
}

/* --- chunks --- */

static struct slab_chunk *
slab_chunk_create(struct slab *s, struct slab_class *class, const struct slab_place *p)
{
	size_t n = 1;
	struct slab_chunk *c;

	if (class != NULL) { /* double the class's capacity, up to a chunk of CHUNK_MAX bytes */
		n = (CHUNK_MAX - sizeof(*c)) / p->bytes;
		if (class->capacity < n)
			n = class->capacity > 0 ? class->capacity : 1;
	}
	c = mem_zalloc(s->alloc, sizeof(*c) + n * p->bytes, LINE);
	if (c == NULL)
		return NULL;
	c->slab = s;
	c->class = class;
	c->capacity = c->fresh = (uint32_t)n;
	if (class != NULL) {
		class->capacity += n;
		LIST_INSERT_HEAD(&class->open, c, link);
	}
	return c;
}

static void *
slab_chunk_take(struct slab_chunk *c, const struct slab_place *p)
{
	void *mem = c->freed;

	c->used++;
	if (mem != NULL) {
		c->freed = *(void **)mem;
		memset(mem, 0, p->bytes);
	} else {
		mem = (uint8_t *)(c + 1) + --c->fresh * p->bytes;
	}
	*slab_chunk_of(mem, p) = c;
	if (c->class != NULL && c->used == c->capacity)
		LIST_REMOVE(c, link);
	return mem;
}

static void
slab_chunk_put(struct slab_chunk *c, void *mem)
{
	struct slab_class *class = c->class;

	if (class != NULL && c->used == c->capacity)
		LIST_INSERT_HEAD(&class->open, c, link);
	*(void **)mem = c->freed;
	c->freed = mem;
	if (--c->used > 0)
		return;
	if (class != NULL) {
		LIST_REMOVE(c, link);
		class->capacity -= c->capacity;
	}
	mem_free(c->slab->alloc, c);
}

/* --- objects --- */

void *
slab_alloc(struct slab *s, size_t size)
{
	struct slab_place p = slab_place_of(size);
	struct slab_class *class = p.steps > 0 ? &s->classes[p.octave][p.steps] : NULL;
	struct slab_chunk *c = NULL;
	void *mem = NULL;

	lock(s);
	if (class != NULL)
		c = LIST_FIRST(&class->open);
	if (c == NULL)
		c = slab_chunk_create(s, class, &p);
	if (c != NULL)
		mem = slab_chunk_take(c, &p);
	unlock(s);
	return mem;
}

void
slab_free(void *mem, size_t size)
{
	struct slab_place p = slab_place_of(size);
	struct slab_chunk *c;
	struct slab *s;

	if (mem == NULL)
		return;
	c = *slab_chunk_of(mem, &p);
	s = c->slab;
	/* of the size that slab_alloc() was called with */
	RTE_ASSERT(c->class == (p.steps > 0 ? &s->classes[p.octave][p.steps] : NULL));
	RTE_ASSERT(c->used > 0 && c->used <= c->capacity);
	lock(s);
	slab_chunk_put(c, mem);
	unlock(s);
}
