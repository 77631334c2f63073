/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Two looks at the server's counters, and what they grew by in a second. The server may end and
 * start again meanwhile: top says so, and connects again.
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "connection.h"
#include "methods.h"
#include "ping.h"
#include "screen.h"
#include "stopped.h"
#include "top.h"

#define QPS_MAX   20000 /* queue pairs looked at; the rest is left out, and the display says so */
#define REPLY_MS  2000
#define FIRST_MS  200 /* between the first look and the second, which has the first rates */
#define TOP_ERROR 400
#define KEYS      "q quit   s sort by   / filter queue pairs   Esc no filter"

struct look {
	json_t *ports, *stats, *workers, *sa;
	json_t *qps; /* by number */
	uint64_t us;
};

struct top {
	const struct options *o;
	struct connection *c; /* NULL: the server is gone */
	struct look now, was;
	unsigned int sort;
	char filter[32];
	bool typing; /* keys go into .filter */
	char why[TOP_ERROR]; /* the last look failed; empty: it did not */
};

/* What rows of queue pairs are sorted by, and how the option names it. */
static const struct {
	const char *name;
	const char *member;
	bool rate;
} sorts[] = {
	{ "tx", "sent_pkts", true },
	{ "rx", "rcvd_pkts", true },
	{ "retransmitted", "retransmitted_pkts", true },
	{ "posted", "sq_posted", false },
	{ "qp", "qp_num", false },
};
#define SORTS (sizeof(sorts) / sizeof(sorts[0]))

/* --- looking --- */

static void
look_free(struct look *l)
{
	json_decref(l->ports);
	json_decref(l->stats);
	json_decref(l->workers);
	json_decref(l->sa);
	json_decref(l->qps);
	memset(l, 0, sizeof(*l));
}

static int
top_ask(struct top *t, const char *method, json_t *params, json_t **result)
{
	json_t *error = NULL;
	int rc = connection_call(t->c, method, params, REPLY_MS, result, &error);

	if (rc < 0)
		snprintf(t->why, sizeof(t->why), "no reply from polca: %s", strerror(errno));
	else if (rc > 0)
		snprintf(t->why, sizeof(t->why), "%s: %s", method, method_text(error, "message"));
	json_decref(error);
	return rc;
}

static int
ask_qps(struct top *t, struct look *l)
{
	json_t *params = json_pack("{s:i}", "max", 1000), *page = NULL, *qp, *cursor;
	char key[16];
	size_t i;
	int rc;

	l->qps = json_object();
	do {
		json_decref(page);
		rc = top_ask(t, "qp_list", params, &page);
		json_array_foreach(json_object_get(page, "qps"), i, qp) {
			snprintf(key, sizeof(key), "%06llx",
				(unsigned long long)json_integer_value(
					json_object_get(qp, "qp_num")));
			json_object_set(l->qps, key, qp);
		}
		cursor = json_object_get(page, "cursor");
		json_object_set(params, "cursor", cursor);
	} while (rc == 0 && json_is_integer(cursor) && json_object_size(l->qps) < QPS_MAX);
	json_decref(page);
	json_decref(params);
	return rc;
}

static int
top_look(struct top *t)
{
	struct look l = { .us = clock_us() };
	int rc;

	if (t->c == NULL)
		t->c = connection_open(t->o->socket);
	if (t->c == NULL) {
		snprintf(t->why, sizeof(t->why), "polca does not run at %s: %s", t->o->socket,
			strerror(errno));
		return -1;
	}
	connection_interruptible(t->c, &stopped);
	rc = top_ask(t, "port_list", NULL, &l.ports);
	if (rc == 0)
		rc = top_ask(t, "stats_get", NULL, &l.stats);
	if (rc == 0)
		rc = top_ask(t, "worker_list", NULL, &l.workers);
	if (rc == 0)
		rc = top_ask(t, "sa_stats", NULL, &l.sa);
	if (rc == 0)
		rc = ask_qps(t, &l);
	if (rc != 0) {
		look_free(&l);
		look_free(&t->was); /* a server that starts again counts from 0 */
		look_free(&t->now);
		connection_close(t->c);
		t->c = NULL;
		return rc;
	}
	t->why[0] = '\0';
	look_free(&t->was);
	t->was = t->now;
	t->now = l;
	return 0;
}

/* --- figures --- */

static double
member_number(const json_t *obj, const char *name)
{
	return json_number_value(json_object_get(obj, name));
}

/* Growth of a member per second; 0 while there is no look before. */
static double
rate_of(const struct top *t, const json_t *now, const json_t *was, const char *name)
{
	double grown = member_number(now, name) - member_number(was, name);

	if (was == NULL || t->was.us == 0 || grown < 0)
		return 0;
	return grown * 1e6 / (double)(t->now.us - t->was.us);
}

/* "950", "12.3k", "4.5M"; at most 6 characters */
static const char *
brief_number(double v, char buf[16])
{
	static const char units[] = " kMGTP";
	unsigned int u = 0;

	for (; v >= 9999.5 && u + 1 < sizeof(units) - 1; u++)
		v /= 1000;
	if (u == 0)
		snprintf(buf, 16, "%.0f", v);
	else
		snprintf(buf, 16, "%.1f%c", v, units[u]);
	return buf;
}

static void
print_number(FILE *f, double v)
{
	char text[16];

	fprintf(f, " %8s", brief_number(v, text));
}

/* The row of a list with this number. */
static const json_t *
same_row(const json_t *list, const char *key, const json_t *row)
{
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, r) {
		if (json_equal(json_object_get(r, key), json_object_get(row, key)))
			return r;
	}
	return NULL;
}

static double
sum_of_rates(const struct top *t, const json_t *now, const json_t *was)
{
	const char *name;
	double sum = 0;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)now, name, v) {
		sum += rate_of(t, now, was, name);
	}
	return sum;
}

static void
print_ports(const struct top *t, FILE *f, unsigned int max)
{
	static const char *const rates[] = { "rx_packets", "rx_bytes", "tx_packets", "tx_bytes" };
	const json_t *list = json_object_get(t->now.stats, "ports"), *p, *was;
	size_t i, k;

	fprintf(f, "%-14s %-8s %8s %8s %8s %8s %8s %8s\n", "PORT", "STATE", "RX pkt/s", "RX B/s",
		"TX pkt/s", "TX B/s", "DROP/s", "NIC/s");
	json_array_foreach((json_t *)(uintptr_t)list, i, p) {
		if (i == max)
			break;
		was = same_row(json_object_get(t->was.stats, "ports"), "port", p);
		fprintf(f, "%-14.14s %-8.8s", method_text(p, "name"),
			method_text(same_row(json_object_get(t->now.ports, "ports"), "port", p),
				"state"));
		for (k = 0; k < 4; k++)
			print_number(f, rate_of(t, p, was, rates[k]));
		print_number(f,
			sum_of_rates(t, json_object_get(p, "dropped"),
				json_object_get(was, "dropped")));
		print_number(f,
			rate_of(t, p, was, "rx_missed") + rate_of(t, p, was, "rx_errors") +
				rate_of(t, p, was, "rx_nombuf"));
		fputc('\n', f);
	}
}

static void
print_workers(const struct top *t, FILE *f, unsigned int max)
{
	static const char *const rates[] = { "polls", "sleeps", "handoff_out" };
	const json_t *list = json_object_get(t->now.workers, "workers"), *w, *was;
	size_t i, k;

	fprintf(f, "WORKER LCORE   BUSY %8s %8s %8s %8s\n", "QPs", "POLLS/s", "SLEEPS/s",
		"HANDED/s");
	json_array_foreach((json_t *)(uintptr_t)list, i, w) {
		if (i == max)
			break;
		was = same_row(json_object_get(t->was.workers, "workers"), "worker", w);
		fprintf(f, "%6.0f %5.0f %4.0f %%", member_number(w, "worker"),
			member_number(w, "lcore"), rate_of(t, w, was, "busy_us") / 1e4);
		print_number(f, member_number(w, "qps"));
		for (k = 0; k < 3; k++)
			print_number(f, rate_of(t, w, was, rates[k]));
		fprintf(f, "%s\n", json_is_true(json_object_get(w, "stalled")) ? "   STALLED" : "");
	}
}

/* --- the busiest --- */

struct ranked {
	const char *name;
	const json_t *row;
	double rate, total;
};

static int
ranked_compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* One line of the counters that grow most, with what they are now: "icrc 3/s (412)". */
static void
print_busiest(const struct top *t, FILE *f, const char *title, const json_t *now, const json_t *was)
{
	struct ranked *list = calloc(json_object_size(now) + 1, sizeof(*list));
	char rate[16], total[16];
	const char *name;
	size_t n = 0, i;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)now, name, v) {
		if (list != NULL && json_number_value(v) > 0)
			list[n++] = (struct ranked){ name, v, rate_of(t, now, was, name),
				json_number_value(v) };
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), ranked_compare);
	fprintf(f, "%s", title);
	for (i = 0; i < n && i < 4; i++)
		fprintf(f, "  %s %s/s (%s)", list[i].name, brief_number(list[i].rate, rate),
			brief_number(list[i].total, total));
	fprintf(f, "%s\n", n == 0 ? "  none" : "");
	free(list);
}

/* Sum the counters of all ports. */
static json_t *
sum_of_ports(const json_t *stats, const char *member)
{
	json_t *sum = json_object(), *p, *v;
	const char *name;
	size_t i;

	json_array_foreach(json_object_get(stats, "ports"), i, p) {
		json_object_foreach(json_object_get(p, member), name, v) {
			json_object_set_new(sum, name,
				json_real(json_number_value(v) + member_number(sum, name)));
		}
	}
	return sum;
}

static void
print_drops(const struct top *t, FILE *f)
{
	json_t *now = sum_of_ports(t->now.stats, "dropped");
	json_t *was = sum_of_ports(t->was.stats, "dropped");

	print_busiest(t, f, "DROPS ", now, t->was.us != 0 ? was : NULL);
	json_decref(now);
	json_decref(was);
}

static void
print_sa(const struct top *t, FILE *f)
{
	char title[64];
	double memory = member_number(t->now.sa, "memory_total");

	snprintf(title, sizeof(title), "SA     sessions %.0f, memory %.0f %%",
		member_number(t->now.sa, "sessions"),
		memory > 0 ? 100 * member_number(t->now.sa, "memory_used") / memory : 0);
	print_busiest(t, f, title, json_object_get(t->now.sa, "sa"),
		json_object_get(t->was.sa, "sa"));
}

/* True if the number, the state or the peer of a queue pair contains the filter's text. */
static bool
qp_matches(const struct top *t, const char *number, const json_t *qp)
{
	return t->filter[0] == '\0' || strcasestr(number, t->filter) != NULL ||
		strcasestr(method_text(qp, "qp_state"), t->filter) != NULL ||
		strcasestr(method_text(qp, "dgid"), t->filter) != NULL;
}

static void
print_qp(const struct top *t, FILE *f, const struct ranked *r)
{
	const json_t *was = json_object_get(t->was.qps, r->name);

	fprintf(f, "0x%s %-5.5s %4.0f %3.0f %-20.20s", r->name, method_text(r->row, "qp_state"),
		member_number(r->row, "port"), member_number(r->row, "worker"),
		method_text(r->row, "dgid"));
	print_number(f, rate_of(t, r->row, was, "sent_pkts"));
	print_number(f, rate_of(t, r->row, was, "rcvd_pkts"));
	print_number(f, rate_of(t, r->row, was, "retransmitted_pkts"));
	print_number(f, member_number(r->row, "sq_posted"));
	fputc('\n', f);
}

static void
print_qps(const struct top *t, FILE *f, unsigned int max)
{
	struct ranked *list = calloc(json_object_size(t->now.qps) + 1, sizeof(*list));
	const char *name, *by = sorts[t->sort].member;
	size_t n = 0, i;
	json_t *qp;

	fprintf(f, "%-8s %-5s PORT WRK %-20s %8s %8s %8s %8s\n", "QP", "STATE", "PEER", "TX/s",
		"RX/s", "RETRAN/s", "POSTED");
	if (list == NULL)
		return;
	json_object_foreach(t->now.qps, name, qp) {
		if (qp_matches(t, name, qp))
			list[n++] = (struct ranked){ name, qp,
				sorts[t->sort].rate
					? rate_of(t, qp, json_object_get(t->was.qps, name), by)
					: member_number(qp, by),
				member_number(qp, by) };
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), ranked_compare);
	for (i = 0; i < n && i < max; i++)
		print_qp(t, f, &list[i]);
	free(list);
}

/* --- the display --- */

/* Ports and workers get a third of the rows each at most, queue pairs what is left. */
static void
top_draw(const struct top *t)
{
	unsigned int columns, rows, third;
	char *text = NULL, clock[16], footer[128];
	time_t now = time(NULL);
	struct tm tm;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return;
	screen_size(&columns, &rows);
	third = rows > 16 ? (rows - 8) / 4 : 2;
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	fprintf(f, "polca-ctl top  %s  queue pairs %zu%s by %s%s%s\n", clock,
		json_object_size(t->now.qps),
		json_object_size(t->now.qps) >= QPS_MAX ? " or more" : "", sorts[t->sort].name,
		t->filter[0] != '\0' ? ", with " : "", t->filter);
	if (t->why[0] != '\0') {
		fprintf(f, "\n%s\ntop goes on when it runs again\n", t->why);
	} else {
		print_ports(t, f, third);
		print_workers(t, f, third);
		print_drops(t, f);
		print_sa(t, f);
		print_qps(t, f, rows);
	}
	fclose(f);
	if (t->typing)
		snprintf(footer, sizeof(footer), "show queue pairs with: %s_", t->filter);
	screen_show(text, t->typing ? footer : KEYS);
	free(text);
}

/* @return false: quit */
static bool
top_take_key(struct top *t, int key)
{
	size_t len = strlen(t->filter);

	if (key == 27) {
		t->filter[0] = '\0';
		t->typing = false;
	} else if (t->typing && (key == '\n' || key == '\r')) {
		t->typing = false;
	} else if (t->typing && (key == 127 || key == '\b')) {
		t->filter[len - (len > 0)] = '\0';
	} else if (t->typing && isprint(key) && len + 1 < sizeof(t->filter)) {
		t->filter[len] = (char)key;
		t->filter[len + 1] = '\0';
	} else if (!t->typing && key == 's') {
		t->sort = (t->sort + 1) % SORTS;
	} else if (!t->typing && key == '/') {
		t->typing = true;
	}
	return key >= 0 && (t->typing || key != 'q');
}

static void
top_loop(struct top *t, uint64_t delay_us)
{
	uint64_t now, next = 0;
	bool first;

	while (stopped == 0) {
		now = clock_us();
		if (now >= next) {
			first = t->now.us == 0;
			top_look(t);
			next = clock_us() + (first && t->now.us != 0 ? FIRST_MS * 1000 : delay_us);
			now = clock_us();
		}
		top_draw(t);
		if (!top_take_key(t, screen_key(next > now ? (int)((next - now) / 1000) + 1 : 0)))
			return;
	}
}

int
top_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *delay = method_text(params, "delay"), *sort = method_text(params, "sort");
	struct top t = { .o = o };
	double ms = 1000;

	(void)c; /* top has its own, which it opens again when the server starts again */
	(void)command;
	if (delay[0] != '\0' && !ping_seconds(delay, 0.1, 3600, &ms))
		return usage_error("top: --delay: got \"%s\", allowed: 0.1 to 3600 seconds", delay);
	while (sort[0] != '\0' && strcmp(sorts[t.sort].name, sort) != 0)
		if (++t.sort == SORTS)
			return usage_error(
				"top: --sort: got \"%s\", allowed: tx, rx, retransmitted, posted, qp",
				sort);
	snprintf(t.filter, sizeof(t.filter), "%s", method_text(params, "filter"));
	if (!screen_open())
		return usage_error("%s: this is no terminal: use stats get --rate 1", "top");
	stopped_catch();
	top_loop(&t, (uint64_t)(ms * 1000));
	screen_close();
	look_free(&t.now);
	look_free(&t.was);
	connection_close(t.c);
	return EXIT_DONE;
}
