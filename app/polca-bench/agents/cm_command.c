/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The command cm: connects and disconnects per second, with few and with many other connections. */

#include <rte_common.h>

#include "agents/agents.h"
#include "agents/rates.h"

#define CONNECTS       20000
#define CONNECTS_BRIEF 2000
#define STANDING       10000
#define STANDING_BRIEF 500

static void
cm_measure(struct cm_pair *p, const struct bench_options *o, struct report *r,
	const char *active_name, const char *passive_name)
{
	double active[RATES_ROUNDS_MAX], passive[RATES_ROUNDS_MAX];
	double n = o->brief ? CONNECTS_BRIEF : CONNECTS, hz = (double)bench_hz();
	struct cm_cost cost;
	unsigned int i;

	for (i = 0; i < rates_rounds(o) && bench_stop == 0; i++) {
		report_live(r, " %s: round %u of %u", active_name, i + 1, rates_rounds(o));
		cost = cm_pair_connect(p, (uint64_t)n);
		active[i] = n * hz / (double)cost.active;
		passive[i] = n * hz / (double)cost.passive;
	}
	cm_pair_settle(p);
	rates_row(r, active_name, active, i);
	rates_row(r, passive_name, passive, i);
}

int
bench_cm_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	unsigned int standing = o->brief ? STANDING_BRIEF : STANDING;
	struct cm_pair *p;
	int ret = rates_begin(o, r, err);

	RTE_SET_USED(c);
	if (ret != 0)
		return ret;
	p = cm_pair_create();
	report_note(r,
		"connects and disconnects; the time of each side is measured separately, so a rate is "
		"that of a core that runs one side");
	cm_pair_connect(p, CONNECTS_BRIEF); /* warm the memory and the tables */
	rates_table(r, "cm");
	cm_measure(p, o, r, "connecting side", "listening side");
	cm_pair_stand(p, standing);
	cm_pair_settle(p);
	report_note(r, "%u connections stand", standing);
	cm_measure(p, o, r, "connecting side, with many others",
		"listening side, with many others");
	cm_pair_destroy(p);
	return 0;
}
