/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Scenario `fleet`: clients ask for changes at all appliances while these, etcd and the network
 * fail. At the end all works again, and what was acknowledged must be there.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet_sim.h"
#include "sa/tables.h"

#define SETTLE_S  120 /* after the last fault and change, everything is equal by then */
#define SCALE_S   20 /* are counted, with ten changes a second; or a lease, three looks of each */
#define LOOK_APPS 8 /* with more, the checks have pauses */
#define LOOK_MS   50

unsigned int fleet_appliances = 3;

/* --- while it runs --- */

/* No two appliances lead at a time, as far as they may rely on it without asking etcd. */
static void
check_leaders(struct fleet_script *fs)
{
	unsigned int i, alone = 0;

	for (i = 0; i < fs->apps; i++) {
		struct fleet_node *n = fs->app[i].node;
		uint64_t lead = n != NULL ? fleet_lead(n->fleet) : 0;

		if (n == NULL)
			continue;
		alone += fleet_leads_alone(n->fleet);
		if (lead != n->lead && lead != 0) {
			fs->count.takeovers++;
			sim_trace(fs->sim, "a%u leads: %llu", i, (unsigned long long)lead);
		}
		n->lead = lead;
	}
	if (alone > 1)
		sim_fail(fs->sim, "%u appliances are sure that they lead", alone);
}

/* A large fleet is looked at now and then only. */
static bool
may_look(struct fleet_script *fs)
{
	if (fs->apps > LOOK_APPS && fs->sim->now < fs->look_at)
		return false;
	fs->look_at = fs->sim->now + LOOK_MS * SIM_MS;
	check_leaders(fs);
	return true;
}

static bool
changes_done(struct sim *s)
{
	(void)s;
	return may_look(fleet_script_now) && fleet_clients_done(fleet_script_now);
}

/* --- equal --- */

static bool
is_quiet(struct fleet_script *fs)
{
	const struct model_event *change =
		etcd_model_at(fs->net.model, "/p/c/change", fs->net.model->revision);
	uint64_t changed = change != NULL ? change->revision : 0;
	const struct etcd_model *m = fs->net.model;
	bool led = false;
	unsigned int i;
	size_t k;

	for (i = 0; i < fs->apps; i++) {
		const struct fleet_node *n = fs->app[i].node;

		if (n == NULL || fs->app[i].stopping || n->fleet->published != changed ||
			n->fleet->position.changed != changed ||
			fs->app[i].disk.position.changed != changed || !fleet_connected(n->fleet) ||
			n->num_told > 0 || n->import != NULL || fleet_importer_works(n))
			return false;
		led |= fleet_leads(n->fleet);
	}
	for (k = etcd_model_key(m, "/p/e/"); k < m->keys && m->key[k].key[3] == 'e'; k++)
		if (m->event[m->key[k].last].value != NULL)
			return false;
	for (k = etcd_model_key(m, "/p/q/"); k < m->keys && m->key[k].key[3] == 'q'; k++)
		if (m->event[m->key[k].last].value != NULL)
			return false;
	return led && etcd_model_at(m, "/p/c/part", m->revision) == NULL;
}

static bool
all_quiet(struct sim *s)
{
	(void)s;
	return may_look(fleet_script_now) && is_quiet(fleet_script_now);
}

static bool
same_record(const struct model_event *e, uint8_t table, uint32_t rid, const void *bytes, size_t len)
{
	char digits[12];

	snprintf(digits, sizeof(digits), "%02x%08x", table, rid);
	return strcmp(e->key + strlen("/p/r/"), digits) == 0 && e->len == len &&
		memcmp(e->value, bytes, len) == 0;
}

/* etcd's records in order, one by one. */
static const struct model_event *
next_etcd_record(const struct etcd_model *m, size_t *k)
{
	const struct model_event *e;

	for (; *k < m->keys && strncmp(m->key[*k].key, "/p/r/", 5) == 0; ++*k) {
		e = &m->event[m->key[*k].last];
		if (e->value == NULL)
			continue;
		++*k;
		return e;
	}
	return NULL;
}

static bool
store_is_equal(const struct etcd_model *m, const struct store_version *v)
{
	size_t k = etcd_model_key(m, "/p/r/");
	const struct store_record *r;
	const struct model_event *e;
	struct store_cursor c;
	unsigned int table;

	for (table = 0; table < sa_num_tables; table++) {
		store_seek(&c, v, table, 0);
		while ((r = store_next(&c, NULL)) != NULL) {
			e = next_etcd_record(m, &k);
			if (e == NULL || !same_record(e, r->table, r->rid, r->bytes, r->len))
				return false;
		}
	}
	return next_etcd_record(m, &k) == NULL;
}

static bool
disk_is_equal(const struct etcd_model *m, const struct fleet_disk *d)
{
	size_t k = etcd_model_key(m, "/p/r/"), i;
	const struct model_event *e;

	for (i = 0; i < d->n; i++) {
		const struct disk_record *r = &d->record[i];

		e = next_etcd_record(m, &k);
		if (e == NULL || !same_record(e, r->table, r->rid, r->bytes, r->len))
			return false;
	}
	return next_etcd_record(m, &k) == NULL;
}

static void
check_equal(struct fleet_script *fs)
{
	unsigned int i;

	for (i = 0; i < fs->apps; i++) {
		if (!store_is_equal(fs->net.model, fleet_node_view(fs->app[i].node)))
			sim_fail(fs->sim, "a%u answers from other records than etcd has", i);
		if (!disk_is_equal(fs->net.model, &fs->app[i].disk))
			sim_fail(fs->sim, "the copy of a%u is not equal to etcd", i);
	}
}

/* --- own ports --- */

/* The records are read now and then only. */
static bool
owned_right(struct sim *s)
{
	struct fleet_script *fs = fleet_script_now;

	if (s->now < fs->look_at)
		return false;
	fs->look_at = s->now + LOOK_MS * SIM_MS;
	return fleet_owned_right(fs, fs->why, sizeof(fs->why));
}

static void
wait_for_owned(struct fleet_script *fs, uint64_t seconds)
{
	struct sim *s = fs->sim;

	if (!s->failed && !sim_run(s, s->now + seconds * SIM_SECOND, owned_right) && !s->failed)
		sim_fail(s, "%s", fs->why);
}

static bool
never(struct sim *s)
{
	(void)s;
	return false;
}

/* An appliance dies for ever: its ports go with its lease, those of others stay. */
static void
lose_one_app(struct fleet_script *fs)
{
	unsigned int app = sim_below(fs->sim, fs->apps);

	/* one whose lease has ended, and who has just come back, may lose its ports once more */
	sim_run(fs->sim, fs->sim->now + fs->lease_s * SIM_SECOND, never);
	wait_for_owned(fs, 4 * fs->lease_s);
	fs->calm = true;
	fs->app[app].gone = true;
	fleet_node_kill(fs, app);
	wait_for_owned(fs, 4 * fs->lease_s);
}

/* All die, and the leases end: nothing is left of what was staged. */
static void
check_orphans(struct fleet_script *fs)
{
	const struct etcd_model *m = fs->net.model;
	struct sim *s = fs->sim;
	unsigned int i;
	size_t k;

	for (i = 0; i < fs->apps; i++) {
		fs->app[i].gone = true;
		fleet_node_kill(fs, i);
	}
	sim_run(s, s->now + 3 * fs->lease_s * SIM_SECOND, never);
	for (k = etcd_model_key(m, "/p/s/"); k < m->keys && m->key[k].key[3] == 's'; k++)
		if (m->event[m->key[k].last].value != NULL)
			sim_fail(s, "the lease has ended, and etcd still has %s", m->key[k].key);
}

/* --- a script --- */

static struct fleet_script *
fleet_begin(struct sim *s, unsigned int apps)
{
	struct fleet_script *fs = calloc(1, sizeof(*fs));

	if (fs == NULL)
		abort();
	s->nodes = 0; /* the nodes of sim.h are not used */
	fs->sim = s;
	fs->apps = apps;
	fs->app = calloc(apps, sizeof(fs->app[0]));
	if (fs->app == NULL)
		abort();
	fs->lease_s = FLEET_LEASE_S;
	fs->max_txn_ops = sim_chance(s, 5000) ? 128 : 20;
	fleet_net_init(fs);
	rte_log_set_level((uint32_t)fleet_logtype, s->verbose ? RTE_LOG_DEBUG : RTE_LOG_EMERG);
	rte_log_set_level((uint32_t)engine_logtype, s->verbose ? RTE_LOG_DEBUG : RTE_LOG_EMERG);
	return fs;
}

static void
fleet_trace_counts(struct fleet_script *fs)
{
	const struct fleet_counts *c = &fs->count;

#define N(name) (unsigned long long)c->name
	sim_trace(fs->sim, "etcd: %llu transactions, %llu ranges, %llu of leases, %llu revisions",
		N(txns), N(ranges), N(leases), (unsigned long long)fs->net.model->revision);
	sim_trace(fs->sim, "watches: %llu starts, %llu messages, %llu events, %llu bytes",
		N(watch_starts), N(watch_messages), N(watch_events), N(watch_bytes));
	sim_trace(fs->sim,
		"lost answers %llu, elections %llu, compactions %llu, in parts %llu, kills %llu",
		N(lost_answers), N(elections), N(compactions), N(compacted_parts), N(kills));
	sim_trace(fs->sim, "takeovers %llu, Reports %llu, repeated %llu, asked again %llu",
		N(takeovers), N(reports), N(repeated), N(retried));
#undef N
}

static void
fleet_end(struct fleet_script *fs)
{
	unsigned int i;

	fleet_trace_counts(fs);
	for (i = 0; i < fs->apps; i++)
		fleet_node_kill(fs, i);
	fleet_net_fini(fs);
	fiber_free_all();
	fleet_clients_free(fs);
	for (i = 0; i < fs->apps; i++)
		fleet_disk_free(&fs->app[i].disk);
	free(fs->app);
	free(fs);
	fleet_script_now = NULL;
}

static void
fleet_play(struct sim *s, enum etcd_plant plant)
{
	struct fleet_script *fs = fleet_begin(s, fleet_appliances);
	unsigned int i;

	fs->net.model->plant = plant;
	fs->planned = 40 + sim_below(s, 120);
	fs->step = (50 + sim_below(s, 500)) * SIM_MS;
	for (i = 0; i < fs->apps; i++)
		fleet_node_start(fs, i);
	fleet_owned_start(fs);
	fleet_clients_start(fs);
	fleet_faults_start(fs);
	if (!sim_run(s, s->now + 600 * SIM_SECOND, changes_done) && !s->failed)
		sim_fail(s, "clients wait for ever");
	fleet_faults_end(fs);
	wait_for_owned(fs, SETTLE_S);
	if (!s->failed && !sim_run(s, s->now + SETTLE_S * SIM_SECOND, all_quiet) && !s->failed)
		sim_fail(s, "the fleet does not come to rest");
	if (!s->failed)
		check_equal(fs);
	if (!s->failed)
		fleet_clients_check(fs);
	if (!s->failed && fs->apps > 1)
		lose_one_app(fs);
	if (!s->failed)
		check_orphans(fs);
	fleet_end(fs);
}

void
fleet_scenario(struct sim *s)
{
	fleet_play(s, PLANT_NONE);
}

void
fleet_scenario_no_fence(struct sim *s)
{
	fleet_play(s, PLANT_NO_FENCE);
}

void
fleet_scenario_not_durable(struct sim *s)
{
	fleet_play(s, PLANT_NOT_DURABLE);
}

void
fleet_scenario_twice(struct sim *s)
{
	fleet_play(s, PLANT_TWICE);
}

void
fleet_scenario_import_twice(struct sim *s)
{
	fleet_play(s, PLANT_IMPORT_TWICE);
}

void
fleet_scenario_half(struct sim *s)
{
	fleet_play(s, PLANT_HALF);
}

void
fleet_scenario_stage_stays(struct sim *s)
{
	fleet_play(s, PLANT_STAGE_STAYS);
}

void
fleet_scenario_member_stays(struct sim *s)
{
	fleet_play(s, PLANT_MEMBER_STAYS);
}

void
fleet_scenario_member_hidden(struct sim *s)
{
	fleet_play(s, PLANT_MEMBER_HIDDEN);
}

void
fleet_scenario_wrong_key(struct sim *s)
{
	fleet_play(s, PLANT_WRONG_KEY);
}

void
fleet_scenario_notice_lost(struct sim *s)
{
	fleet_play(s, PLANT_NOTICE_LOST);
}

void
fleet_scenario_notice_goes(struct sim *s)
{
	fleet_play(s, PLANT_NOTICE_GOES);
}

void
fleet_scenario_watch_gap(struct sim *s)
{
	fleet_play(s, PLANT_WATCH_GAP);
}

void
fleet_scenario_early_answer(struct sim *s)
{
	fleet_play(s, PLANT_EARLY_ANSWER);
}

void
fleet_scenario_two_leads(struct sim *s)
{
	fleet_play(s, PLANT_FAST_CLOCK);
}

void
fleet_scenario_copy_gap(struct sim *s)
{
	fleet_play(s, PLANT_COPY_GAP);
}

/* --- scale: what a change costs, by counts --- */

static void
print_scale(const struct fleet_script *fs, const struct fleet_counts *from, uint64_t ns)
{
	const struct fleet_counts *c = &fs->count;
	double seconds = (double)ns / SIM_SECOND, changes = fs->ops;

	printf("%u appliances, lease %u s, %u changes in %.0f s of virtual time\n", fs->apps,
		fs->lease_s, fs->ops, seconds);
	printf("  a second:  %.1f transactions, %.1f ranges, %.1f requests for leases\n",
		(c->txns - from->txns) / seconds, (c->ranges - from->ranges) / seconds,
		(c->leases - from->leases) / seconds);
	printf("  a change:  %.2f transactions, %.1f messages of watches, %.1f events, %.0f bytes\n",
		(c->txns - from->txns) / changes,
		(c->watch_messages - from->watch_messages) / changes,
		(c->watch_events - from->watch_events) / changes,
		(c->watch_bytes - from->watch_bytes) / changes);
}

void
fleet_scenario_scale(struct sim *s)
{
	struct fleet_script *fs = fleet_begin(s, fleet_appliances);
	struct fleet_counts from;
	uint64_t begun;
	unsigned int i, seconds;

	fs->lease_s = fs->apps >= 1000 ? 60 : 5;
	seconds = RTE_MAX(SCALE_S, fs->lease_s);
	fs->max_txn_ops = fs->net.model->max_ops = 128;
	fs->net.weather.late_watch = 0;
	for (i = 0; i < fs->apps; i++)
		fleet_node_start(fs, i);
	if (!sim_run(s, s->now + SETTLE_S * SIM_SECOND, all_quiet))
		sim_fail(s, "the fleet does not come to rest");
	from = fs->count;
	begun = s->now;
	fs->only_sets = true;
	fs->planned = 10 * seconds;
	fs->step = SIM_SECOND / 10;
	fleet_clients_start(fs);
	if (!s->failed && !sim_run(s, s->now + 600 * SIM_SECOND, changes_done))
		sim_fail(s, "clients wait for ever");
	sim_run(s, begun + seconds * SIM_SECOND, NULL);
	print_scale(fs, &from, s->now - begun);
	fleet_end(fs);
}
