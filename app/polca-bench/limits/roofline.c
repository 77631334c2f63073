/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "limits/limit.h"
#include "limits/roofline.h"
#include "median.h"

#define SKELETON_SECONDS 0.09
#define LIMIT_SECONDS    0.012
#define SLICE_MS         3
#define PAUSE_US         100

struct round {
	double ours[ROLES], skeleton[ROLES]; /* ns per message */
	double limit[LIMITS]; /* ns per packet */
};

struct roofline {
	const struct bench_options *o;
	bool skeleton; /* the skeleton supports these messages */
	struct skeleton_endpoint end[ROLES];
	struct limits limits;
	struct round round[ROOFLINE_ROUNDS];
	unsigned int rounds;
};

/* --- medians --- */

static double
roofline_median(const struct roofline *rl, double (*value)(const struct round *r, unsigned int i),
	unsigned int i)
{
	double v[ROOFLINE_ROUNDS];
	unsigned int k;

	for (k = 0; k < rl->rounds; k++)
		v[k] = value(&rl->round[k], i);
	return median(v, rl->rounds);
}

static double
ours_ns(const struct round *r, unsigned int role)
{
	return r->ours[role];
}

static double
skeleton_ns(const struct round *r, unsigned int role)
{
	return r->skeleton[role];
}

static double
skeleton_ratio(const struct round *r, unsigned int role)
{
	return r->skeleton[role] / r->ours[role];
}

static double
limit_ns(const struct round *r, unsigned int i)
{
	return r->limit[i];
}

/* --- rounds --- */

/* Run for a few milliseconds. @retval false  interrupted */
static bool
skeleton_slice(struct roofline *rl, double ns[ROLES])
{
	uint64_t hz = rte_get_tsc_hz(), now = rte_rdtsc(), start = now, last;
	uint64_t done = rl->end[REQUESTER].messages;
	bool clean = true;
	unsigned int i;

	for (i = 0; i < ROLES; i++)
		rl->end[i].busy = 0;
	do {
		last = now;
		skeleton_request(&rl->end[REQUESTER]);
		skeleton_respond(&rl->end[RESPONDER]);
		now = rte_rdtsc();
		clean &= now - last < PAUSE_US * (hz / 1000000);
	} while (now - start < SLICE_MS * (hz / 1000));
	done = rl->end[REQUESTER].messages - done;
	for (i = 0; i < ROLES; i++)
		ns[i] = (double)rl->end[i].busy * 1e9 / (double)hz / (double)done;
	return clean && done > 0;
}

static void
run_skeleton(struct roofline *rl, struct round *r)
{
	double v[ROLES][64], ns[ROLES];
	uint64_t end = rte_rdtsc() + (uint64_t)(SKELETON_SECONDS * (double)rte_get_tsc_hz());
	unsigned int i, n = 0;

	skeleton_slice(rl, ns); /* warm the caches */
	do {
		if (!skeleton_slice(rl, ns) && rte_rdtsc() < end)
			continue;
		for (i = 0; i < ROLES; i++)
			v[i][n] = ns[i];
		n++;
	} while (rte_rdtsc() < end && n < RTE_DIM(v[0]));
	for (i = 0; i < ROLES; i++)
		r->skeleton[i] = median(v[i], n);
}

/* Let packets under way arrive, so that the rings are empty for the limits. */
static void
drain_skeleton(struct roofline *rl)
{
	uint32_t window = rl->end[REQUESTER].config.window;
	unsigned int i;

	rl->end[REQUESTER].config.window = 0;
	for (i = 0; i < 256; i++) {
		skeleton_respond(&rl->end[RESPONDER]);
		skeleton_request(&rl->end[REQUESTER]);
	}
	rl->end[REQUESTER].config.window = window;
}

void
roofline_round(struct roofline *rl, const struct slice *traffic)
{
	struct round *r = &rl->round[rl->rounds];
	unsigned int i;

	if (rl->rounds == ROOFLINE_ROUNDS)
		return;
	for (i = 0; i < ROLES; i++) {
		r->ours[i] = traffic->ns[i];
		r->skeleton[i] = NAN;
	}
	if (rl->skeleton)
		run_skeleton(rl, r);
	drain_skeleton(rl);
	for (i = 0; i < LIMITS; i++)
		r->limit[i] = limit_measure(&rl->limits, i, LIMIT_SECONDS);
	rl->rounds++;
}

int
roofline_create(struct roofline **made, const struct bench_options *o, struct error *err)
{
	struct roofline *rl = calloc(1, sizeof(*rl));
	struct skeleton_config config = {
		.write = o->verb != BENCH_SEND,
		.size = o->size,
		.mtu = o->mtu,
		.qps = RTE_MIN(o->qps, (uint32_t)SKELETON_QPS),
		.window = SKELETON_WINDOW,
		.ack_every = o->ack_per_packet ? 1 : SKELETON_ACK_EVERY,
		.footprint = o->footprint,
		.icrc = o->icrc,
	};
	int ret;

	*made = rl;
	if (rl == NULL)
		return error_set(err, ENOMEM, "no memory for the skeleton");
	rl->o = o;
	rl->skeleton = o->size % 4 == 0 &&
		(o->verb == BENCH_WRITE || (o->verb == BENCH_SEND && o->size <= o->mtu));
	ret = limits_create(&rl->limits, rl->end, "skeleton", &config, err);
	if (ret == 0 && rl->skeleton)
		skeleton_start(&rl->end[REQUESTER]);
	return ret;
}

void
roofline_destroy(struct roofline *rl)
{
	if (rl == NULL)
		return;
	limits_destroy(&rl->limits);
	free(rl);
}

/* --- results --- */

/* Report the cost of a message for each role, and the skeleton's cost for comparison. */
static void
report_roles(const struct roofline *rl, struct report *r)
{
	static const char *const roles[ROLES] = { "requester", "responder" };
	static const struct report_column columns[] = {
		{ "role", "role", 12, 0 },
		{ "polca_ns", "polca[ns]", 11, 1 },
		{ "skeleton_ns", "skeleton[ns]", 13, 1 },
		{ "ratio", "skeleton/polca", 14, 2 },
	};
	unsigned int i;

	if (!isfinite(roofline_median(rl, skeleton_ratio, REQUESTER)))
		return; /* a message takes longer than a slice */
	report_table(r, "roofline", columns, RTE_DIM(columns));
	for (i = 0; i < ROLES; i++) {
		double v[] = { roofline_median(rl, ours_ns, i), roofline_median(rl, skeleton_ns, i),
			roofline_median(rl, skeleton_ratio, i) };

		report_named_row(r, roles[i], v);
	}
}

void
roofline_report(const struct roofline *rl, struct report *r)
{
	uint64_t bad = rl->end[0].bad + rl->end[1].bad + rl->limits.lent.out - rl->limits.lent.back;
	unsigned int i;

	if (rl->rounds == 0)
		return;
	if (rl->skeleton)
		report_roles(rl, r);
	for (i = 0; i < LIMITS; i++)
		report_note(r, "roofline: %s: %.1f ns per packet of %u byte%s", limit_names[i],
			roofline_median(rl, limit_ns, i), rl->limits.payload,
			plural(rl->limits.payload));
	report_note(r, "roofline: medians of %u round%s, interleaved", rl->rounds,
		plural(rl->rounds));
	if (bad > 0)
		report_note(r,
			"roofline: the skeleton saw %lu bad packet%s: its results are invalid", bad,
			plural(bad));
}
