/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What breaks in a fleet, in an order that the seed gives. */

#include <string.h>

#include "fleet_sim.h"

#define BETWEEN_MS 1500 /* two faults, on average */
#define LASTS_MS   3000 /* a fault, on average */
#define STRIKE_MS  3 /* after a part of a large change, on average */
#define KEEP       40 /* revisions before the present one that a compaction may leave */

static void
cut_app(struct fleet_script *fs, unsigned int app, unsigned int but, bool cut)
{
	unsigned int i;

	for (i = 0; i < FLEET_ETCD; i++)
		fs->app[app].cut[i] = cut && i != but;
}

/* --- the ends of faults --- */

static void
app_joins(struct sim *s, void *arg)
{
	struct fleet_app *a = arg;
	unsigned int i;

	(void)s;
	for (i = 0; i < FLEET_ETCD; i++)
		a->cut[i] = false;
}

static void
app_starts(struct sim *s, void *arg)
{
	struct fleet_script *fs = fleet_script_now;
	struct fleet_app *a = arg;

	if (a->gone)
		return;
	if (a->stopping)
		sim_at(s, s->now + 100 * SIM_MS, app_starts, a);
	else if (a->node == NULL)
		fleet_node_start(fs, (unsigned int)(a - fs->app));
}

static void
member_heals(struct sim *s, void *arg)
{
	struct fleet_script *fs = fleet_script_now;
	struct fleet_member_state *m = arg;

	(void)s;
	if (m->down || m->cut)
		fleet_net_member(fs, (unsigned int)(m - fs->net.member), false, false);
}

static void
weather_clears(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;

	(void)s;
	fs->net.weather = (struct fleet_weather){ .delay = SIM_MS / 2 };
}

/* --- faults --- */

static void
fault_app(struct fleet_script *fs, uint64_t end)
{
	unsigned int app = sim_below(fs->sim, fs->apps);
	struct fleet_app *a = &fs->app[app];

	if (sim_chance(fs->sim, 7000)) {
		fs->count.kills += a->node != NULL;
		fleet_node_kill(fs, app);
	} else {
		fs->count.stops++;
		fleet_node_stop(fs, app);
	}
	sim_at(fs->sim, end, app_starts, a);
}

static void
fault_cut(struct fleet_script *fs, uint64_t end)
{
	unsigned int app = sim_below(fs->sim, fs->apps), but = FLEET_ETCD;

	if (sim_chance(fs->sim, 4000)) /* with a member of etcd, which is cut off, too */
		but = sim_below(fs->sim, FLEET_ETCD);
	sim_trace(fs->sim, "a%u is cut off", app);
	fs->count.cuts++;
	cut_app(fs, app, but, true);
	sim_at(fs->sim, end, app_joins, &fs->app[app]);
	if (but == FLEET_ETCD || sim_chance(fs->sim, 3000))
		return;
	fleet_net_member(fs, but, fs->net.member[but].down, true);
	sim_at(fs->sim, end, member_heals, &fs->net.member[but]);
}

static void
fault_member(struct fleet_script *fs, uint64_t end)
{
	unsigned int member = sim_below(fs->sim, FLEET_ETCD);

	fleet_net_member(fs, member, true, fs->net.member[member].cut);
	sim_at(fs->sim, end, member_heals, &fs->net.member[member]);
}

static void
fault_weather(struct fleet_script *fs, uint64_t end)
{
	struct sim *s = fs->sim;
	struct fleet_weather *w = &fs->net.weather;

	sim_trace(s, "the weather is bad");
	if (sim_chance(s, 5000))
		w->delay = sim_wait(s, 60 * SIM_MS);
	if (sim_chance(s, 5000))
		w->lose_answer = sim_below(s, 4000);
	if (sim_chance(s, 5000))
		w->lose_request = sim_below(s, 2000);
	if (sim_chance(s, 5000))
		w->late_watch = sim_below(s, 5000);
	if (sim_chance(s, 5000))
		w->late_request = sim_below(s, 3000);
	sim_at(s, end, weather_clears, fs);
}

/* Some appliances die in the middle of a large change, and etcd compacts what was before. */
static void
strike_large_change(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;
	unsigned int i;

	if (fs->over)
		return;
	for (i = 0; i < fs->apps; i++) {
		if (fs->app[i].node == NULL ||
			!sim_chance(s, fleet_leads(fs->app[i].node->fleet) ? 8000 : 4000))
			continue;
		fs->count.kills++;
		fleet_node_kill(fs, i);
		sim_at(s, s->now + sim_wait(s, LASTS_MS * SIM_MS), app_starts, &fs->app[i]);
	}
	fleet_net_compact(fs, sim_below(s, 3));
}

void
fleet_faults_wrote(struct fleet_script *fs, const struct model_event *e)
{
	if (!fs->strike || strcmp(e->key, "/p/c/part") != 0 || e->value == NULL)
		return;
	fs->strike = false;
	sim_at(fs->sim, fs->sim->now + sim_wait(fs->sim, STRIKE_MS * SIM_MS), strike_large_change,
		fs);
}

static void
fault_compact(struct fleet_script *fs)
{
	if (sim_chance(fs->sim, 5000))
		fs->strike = true;
	else
		fleet_net_compact(fs, sim_below(fs->sim, KEEP));
}

static void
fault_now(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;
	uint64_t end = s->now + sim_wait(s, LASTS_MS * SIM_MS);
	uint32_t dice = sim_below(s, 100);

	if (fs->over)
		return;
	if (dice < 25)
		fault_app(fs, end);
	else if (dice < 45)
		fault_cut(fs, end);
	else if (dice < 60)
		fault_member(fs, end);
	else if (dice < 70)
		fleet_net_lose_leader(fs);
	else if (dice < 82)
		fault_compact(fs);
	else
		fault_weather(fs, end);
	sim_at(s, s->now + sim_wait(s, BETWEEN_MS * SIM_MS), fault_now, fs);
}

void
fleet_faults_start(struct fleet_script *fs)
{
	sim_at(fs->sim, fs->sim->now + 2 * SIM_SECOND, fault_now, fs);
}

void
fleet_faults_end(struct fleet_script *fs)
{
	unsigned int i;

	fs->over = true;
	fs->strike = false;
	weather_clears(fs->sim, fs);
	for (i = 0; i < FLEET_ETCD; i++)
		member_heals(fs->sim, &fs->net.member[i]);
	for (i = 0; i < fs->apps; i++) {
		app_joins(fs->sim, &fs->app[i]);
		app_starts(fs->sim, &fs->app[i]);
	}
}
