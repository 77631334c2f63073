/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Macros of system headers, which cppcheck does not read, in words that it understands. */
#define json_array_foreach(array, i, v) \
	for (i = 0; i < json_array_size(array) && (v = json_array_get(array, i)) != 0; i++)
#define json_object_foreach(object, key, v) \
	for (key = json_object_iter_key(json_object_iter(object)); \
		key != 0 && (v = json_object_get(object, key)) != 0; \
		key = json_object_iter_key(json_object_iter_next(object, v)))
#define LIST_HEAD(name, type) struct name { struct type *lh_first; }
#define LIST_ENTRY(type) struct { struct type *le_next; struct type **le_prev; }
#define LIST_FOREACH(v, head, field) for (v = (head)->lh_first; v != 0; v = v->field.le_next)
#define STAILQ_HEAD(name, type) struct name { struct type *stqh_first; struct type **stqh_last; }
#define STAILQ_ENTRY(type) struct { struct type *stqe_next; }
#define STAILQ_FOREACH(v, head, field) for (v = (head)->stqh_first; v != 0; v = v->field.stqe_next)
#define TAILQ_HEAD(name, type) struct name { struct type *tqh_first; struct type **tqh_last; }
#define TAILQ_ENTRY(type) struct { struct type *tqe_next; struct type **tqe_prev; }
#define TAILQ_FOREACH(v, head, field) for (v = (head)->tqh_first; v != 0; v = v->field.tqe_next)
