/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ping.h"

/* --- statistics --- */

void
ping_stats_reply(struct ping_stats *s, double us)
{
	if (s->received == 0 || us < s->min)
		s->min = us;
	if (s->received == 0 || us > s->max)
		s->max = us;
	s->sum += us;
	s->squares += us * us;
	s->received++;
}

double
ping_stats_loss(const struct ping_stats *s)
{
	return s->sent == 0 ? 0 : 100.0 * (double)(s->sent - s->received) / (double)s->sent;
}

double
ping_stats_avg(const struct ping_stats *s)
{
	return s->received == 0 ? 0 : s->sum / (double)s->received;
}

double
ping_stats_mdev(const struct ping_stats *s)
{
	double avg = ping_stats_avg(s), square;

	if (s->received == 0)
		return 0;
	square = s->squares / (double)s->received - avg * avg;
	return square > 0 ? sqrt(square) : 0; /* rounding may make it a little less than 0 */
}

void
ping_stats_print(FILE *f, const struct ping_stats *s, const char *dest, uint64_t ms)
{
	fprintf(f, "\n--- %s liveness statistics ---\n", dest);
	fprintf(f, "%llu packets transmitted, %llu received, %g%% packet loss, time %llums\n",
		(unsigned long long)s->sent, (unsigned long long)s->received, ping_stats_loss(s),
		(unsigned long long)ms);
	if (s->received > 0)
		fprintf(f, "rtt min/avg/max/mdev = %.1f/%.1f/%.1f/%.1f us\n", s->min,
			ping_stats_avg(s), s->max, ping_stats_mdev(s));
}

/* --- parsing --- */

bool
ping_seconds(const char *text, double min, double max, double *ms)
{
	char *end;
	double s = strtod(text, &end);

	if (!isdigit((unsigned char)text[text[0] == '.']) || *end != '\0' ||
		!(s >= min && s <= max))
		return false;
	*ms = s * 1000;
	return true;
}
