/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * An appliance's disk, in place of LMDB (store/lmdb_copy.h). A commit takes time; who is killed
 * meanwhile finds it done or not done, never half done.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet_sim.h"

#define COMMIT_NS (SIM_MS / 2)

static struct fleet_disk *
disk_of(const struct store_backend *backend)
{
	struct fleet_node *n = backend->arg;

	return &n->app->disk;
}

static size_t
disk_find(const struct fleet_disk *d, uint8_t table, uint32_t rid, bool *found)
{
	size_t low = 0, high = d->n, middle;

	while (low < high) {
		const struct disk_record *r;

		middle = (low + high) / 2;
		r = &d->record[middle];
		if (r->table < table || (r->table == table && r->rid < rid))
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < d->n && d->record[low].table == table && d->record[low].rid == rid;
	return low;
}

static void
disk_empty(struct fleet_disk *d)
{
	while (d->n > 0)
		free(d->record[--d->n].bytes);
}

void
fleet_disk_free(struct fleet_disk *d)
{
	disk_empty(d);
	free(d->record);
}

static void
disk_write(struct fleet_disk *d, const struct store_op *op)
{
	struct disk_record *r;
	bool found;
	size_t i = disk_find(d, op->table, op->rid, &found);

	if (found) {
		free(d->record[i].bytes);
		d->n--;
		memmove(&d->record[i], &d->record[i + 1], (d->n - i) * sizeof(*r));
	}
	if (op->bytes == NULL)
		return;
	if (d->n == d->room) {
		d->room = d->room != 0 ? 2 * d->room : 64;
		d->record = reallocarray(d->record, d->room, sizeof(*r));
		if (d->record == NULL)
			abort();
	}
	memmove(&d->record[i + 1], &d->record[i], (d->n - i) * sizeof(*r));
	d->n++;
	r = &d->record[i];
	*r = (struct disk_record){ op->table, op->rid, op->len, malloc(op->len + 1u) };
	memcpy(r->bytes, op->bytes, op->len);
}

/* PLANT_COPY_GAP: a write of this record is lost, the others of its transaction are not. */
static bool
write_is_lost(const struct fleet_script *fs, bool replace)
{
	return fs->net.model->plant == PLANT_COPY_GAP && !replace && sim_chance(fs->sim, 50);
}

int
lmdb_copy_write(const struct store_backend *backend, bool replace, const struct store_op *ops,
	size_t n, const struct copy_position *position, struct error *err)
{
	struct fleet_node *node = backend->arg;
	struct sim *s = node->script->sim;
	struct fleet_disk *d = disk_of(backend);
	size_t i;

	if (node->dead)
		return error_set(err, EIO, "killed");
	fiber_wait(s->now + sim_wait(s, COMMIT_NS));
	if (node->dead && sim_chance(s, 5000))
		return error_set(err, EIO, "killed");
	if (replace)
		disk_empty(d);
	for (i = 0; i < n; i++)
		if (!write_is_lost(node->script, replace))
			disk_write(d, &ops[i]);
	d->position = *position;
	return node->dead ? error_set(err, EIO, "killed") : 0;
}

int
lmdb_copy_position(const struct store_backend *backend, struct copy_position *position,
	struct error *err)
{
	*position = disk_of(backend)->position;
	return position->cluster != 0 ? 0 : error_set(err, ENOENT, "the copy is empty");
}

uint64_t
lmdb_copy_instance(const struct store_backend *backend)
{
	return disk_of(backend)->instance;
}

bool
lmdb_copy_moved(const struct store_backend *backend)
{
	(void)backend; /* nobody copies a disk here */
	return false;
}

bool
lmdb_copy_settled(const struct store_backend *backend)
{
	(void)backend;
	return true;
}

static int
copy_disk_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to,
	struct error *err)
{
	struct fleet_node *n = arg;
	const struct fleet_disk *d = &n->app->disk;
	size_t i;
	int rc = 0;

	for (i = 0; i < d->n && rc == 0; i++) {
		const struct disk_record *r = &d->record[i];

		rc = each(to, &(struct store_op){ r->table, r->rid, r->bytes, r->len });
	}
	return rc == 0 ? 0 : error_set(err, -rc, "the copy is not read");
}

int
lmdb_copy_open(const char *path, uint64_t map_bytes, const char *prefix,
	struct store_backend *backend, struct error *err)
{
	struct fleet_node *n = fleet_opening;

	(void)path, (void)map_bytes, (void)prefix, (void)err;
	if (n->app->disk.instance == 0)
		n->app->disk.instance = sim_rand(n->script->sim) | 1;
	*backend = (struct store_backend){ .arg = n, .load = copy_disk_load };
	return 0;
}
