/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Objects of a heap that several threads use are registered and released while their neighbours
 * are allocated, grown, written and freed. Runs with the C library's allocator, and with others by
 * LD_PRELOAD: then its argument is the library that must be there.
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mirror.h"
#include "mirror_file.h"

#define THREADS 3
#define OBJECTS 64
#define ROUNDS  400

static const char *allocator;

struct object {
	uint8_t *bytes;
	size_t size;
	uint8_t value;
};

struct user {
	pthread_t thread;
	unsigned int seed;
	bool *stop;
	unsigned int wrong;
	unsigned long turns;
};

static size_t
random_object_size(unsigned int *seed)
{
	static const size_t largest[] = { 64, 1000, 5000, 70000, 300000 };

	return 1 + (size_t)rand_r(seed) % largest[rand_r(seed) % 5];
}

static bool
object_is_intact(const struct object *o)
{
	size_t i;

	for (i = 0; i < o->size; i++)
		if (o->bytes[i] != o->value)
			return false;
	return true;
}

static bool
object_is_zero(const uint8_t *p, size_t size)
{
	while (size > 0 && p[size - 1] == 0)
		size--;
	return size == 0;
}

/* Replace an object, whose bytes must be as they were written, by another or a larger one. */
static bool
object_replace(struct object *o, unsigned int *seed)
{
	bool right = object_is_intact(o);
	size_t size = random_object_size(seed);

	if (rand_r(seed) % 3 == 0 && o->bytes != NULL) {
		o->bytes = realloc(o->bytes, size);
	} else {
		free(o->bytes);
		o->bytes = calloc(1, size);
		right = right && o->bytes != NULL && object_is_zero(o->bytes, size);
	}
	if (o->bytes == NULL)
		return false;
	o->size = size;
	o->value = (uint8_t)rand_r(seed);
	memset(o->bytes, o->value, size);
	return right;
}

static void *
use_heap(void *arg)
{
	struct object object[OBJECTS] = { { NULL, 0, 0 } };
	struct user *u = arg;
	unsigned int i;

	while (!__atomic_load_n(u->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < OBJECTS; i++)
			u->wrong += !object_replace(&object[i], &u->seed);
		__atomic_fetch_add(&u->turns, 1, __ATOMIC_RELAXED);
	}
	for (i = 0; i < OBJECTS; i++)
		free(object[i].bytes);
	return NULL;
}

static void
register_objects(void)
{
	struct object object[8] = { { NULL, 0, 0 } };
	unsigned int seed = 1, round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < 8; i++) {
			assert_true(object_replace(&object[i], &seed));
			assert_int_equal(mirror_hold(file, (uintptr_t)object[i].bytes,
						 object[i].size),
				0);
			assert_true(has_page(object[i].bytes));
		}
		for (i = 0; i < 8; i++) {
			assert_true(object_is_intact(&object[i]));
			memset(object[i].bytes, ++object[i].value, object[i].size);
			mirror_release(file, (uintptr_t)object[i].bytes, object[i].size);
			assert_true(object_is_intact(&object[i]));
		}
	}
	for (i = 0; i < 8; i++)
		free(object[i].bytes);
}

static void
test_objects_and_their_neighbours(void **state)
{
	struct user user[THREADS];
	bool stop = false;
	unsigned int i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		user[i] = (struct user){ .seed = i + 2, .stop = &stop };
		assert_int_equal(pthread_create(&user[i].thread, NULL, use_heap, &user[i]), 0);
	}
	register_objects();
	for (i = 0; i < THREADS; i++)
		while (__atomic_load_n(&user[i].turns, __ATOMIC_RELAXED) == 0)
			usleep(100);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++) {
		pthread_join(user[i].thread, NULL);
		assert_int_equal(user[i].wrong, 0);
	}
}

/* The dynamic linker only warns of a library that it does not find. */
static void
test_allocator_is_there(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = allocator == NULL;
	char line[512];

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		if (!found && strstr(line, allocator) != NULL)
			found = true;
	fclose(maps);
	assert_true(found);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocator_is_there),
		cmocka_unit_test(test_objects_and_their_neighbours),
	};

	allocator = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests_name("mirror, objects of a heap", tests, mirror_setup,
		mirror_teardown);
}
