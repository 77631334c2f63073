/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The picture from top to bottom: title, facts, legend, panels, sizes, last line. */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "plot.h"

#define WIDTH        900
#define LEFT         84 /* left margin of the panels, for the value labels */
#define RIGHT        24
#define PANEL_WIDTH  (WIDTH - LEFT - RIGHT)
#define PANEL_HEIGHT 260
#define PANEL_GAP    28
#define LINE         18 /* height of a line of facts */
#define DECADES_ALL  6 /* most decades with lines between them */
#define LABELS_ALL   2 /* most decades with labels at 2 and 5 */

/* Colour, dashes and width of each series. The last one is of the highest rate possible. */
static const struct {
	const char *colour, *dashes;
	double width;
} strokes[PLOT_SERIES] = {
	{ "#0b57a4", "none", 2.4 },
	{ "#2a9d8f", "none", 1.6 },
	{ "#c2410c", "7 4", 2.0 },
};

/** The scale of a panel's value axis. */
struct scale {
	double low, high; /**< decimal logarithms of the axis' ends */
	double top; /**< y of the panel's upper edge */
};

static void
svg_put_text(FILE *f, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		default:
			fputc(*text, f);
		}
	}
}

static void
put_line(FILE *f, double x, double y, int size, const char *more, const char *text)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\"%s>", x, y, size, more);
	svg_put_text(f, text);
	fputs("</text>\n", f);
}

/* "512", "2K", "8M", as option -s takes it. */
static const char *
size_name(uint32_t bytes, char *buf, size_t len)
{
	static const char suffix[] = { '\0', 'K', 'M', 'G' };
	unsigned int i = 0;

	for (; bytes >= 1024 && bytes % 1024 == 0; bytes /= 1024)
		i++;
	snprintf(buf, len, "%u%.1s", bytes, suffix + i);
	return buf;
}

static const char *
value_name(enum plot_unit unit, double v, char *buf, size_t len)
{
	static const char *const count[] = { "", " k", " M", " G", " T" };
	static const char *const time[] = { " ns", " us", " ms", " s" };
	unsigned int i = 0;

	if (unit == PLOT_TIME)
		v *= 1000;
	for (; unit != PLOT_NUMBER && v >= 999.5 && i < (unit == PLOT_TIME ? 3 : 4); i++)
		v /= 1000;
	snprintf(buf, len, "%.3g%s", v,
		unit == PLOT_NUMBER         ? ""
			: unit == PLOT_TIME ? time[i]
					    : count[i]);
	return buf;
}

static double
x_of(const struct plot *p, unsigned int point)
{
	double first = log2(p->size[0]), last = log2(p->size[p->points - 1]);

	if (p->points < 2)
		return LEFT + PANEL_WIDTH / 2.0;
	return LEFT + 12 + (PANEL_WIDTH - 24) * (log2(p->size[point]) - first) / (last - first);
}

static double
y_of(const struct scale *s, double log)
{
	return s->top + PANEL_HEIGHT * (s->high - log) / (s->high - s->low);
}

static bool
has_value_at(const struct plot *p, const struct plot_panel *panel, unsigned int series,
	unsigned int point)
{
	double v = panel->value[series][point];

	return p->series[series] != NULL && isfinite(v) && v > 0;
}

/* The next 1, 2 or 5 times a power of ten, downwards or upwards. */
static double
nice_end(double v, bool up)
{
	static const double step[] = { 1, 2, 5, 10 };
	double decade = pow(10, floor(log10(v)));
	unsigned int i;

	if (up) {
		for (i = 0; i < 3 && step[i] * decade < v * 0.999; i++)
			;
	} else {
		for (i = 3; i > 0 && step[i] * decade > v * 1.001; i--)
			;
	}
	return log10(step[i] * decade);
}

static void
find_scale(const struct plot *p, const struct plot_panel *panel, struct scale *s)
{
	double low = INFINITY, high = 0;
	unsigned int i, k;

	for (i = 0; i < PLOT_SERIES; i++) {
		for (k = 0; k < p->points; k++) {
			if (!has_value_at(p, panel, i, k))
				continue;
			low = fmin(low, panel->value[i][k]);
			high = fmax(high, panel->value[i][k]);
		}
	}
	if (high == 0)
		low = high = 1;
	s->low = nice_end(low * 0.9, false);
	s->high = nice_end(high * 1.1, true);
}

/* Draw a horizontal line, and its label if the line has one. */
static void
put_value_line(FILE *f, const struct plot_panel *panel, const struct scale *s, double v,
	bool strong, bool label)
{
	double y = y_of(s, log10(v));
	char name[32];

	if (y < s->top - 0.5 || y > s->top + PANEL_HEIGHT + 0.5)
		return;
	fprintf(f, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT, y,
		LEFT + PANEL_WIDTH, y, strong ? "#cbd2d9" : "#eef1f4");
	if (label)
		put_line(f, LEFT - 8, y + 4, 12, " text-anchor=\"end\" fill=\"#52606d\"",
			value_name(panel->unit, v, name, sizeof(name)));
}

static void
put_axes(const struct plot *p, const struct plot_panel *panel, const struct scale *s, FILE *f)
{
	double decades = s->high - s->low, decade;
	unsigned int i;
	int exponent;

	fprintf(f,
		"<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"#ffffff\" "
		"stroke=\"#9aa5b1\"/>\n",
		LEFT, s->top, PANEL_WIDTH, PANEL_HEIGHT);
	for (i = 0; i < p->points; i++)
		fprintf(f,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#eef1f4\"/>\n",
			x_of(p, i), s->top, x_of(p, i), s->top + PANEL_HEIGHT);
	for (exponent = (int)floor(s->low); exponent <= (int)ceil(s->high); exponent++) {
		decade = pow(10, exponent);
		for (i = 2; i < 10 && decades <= DECADES_ALL; i++)
			put_value_line(f, panel, s, i * decade, false,
				decades <= LABELS_ALL && (i == 2 || i == 5));
		put_value_line(f, panel, s, decade, true, true);
	}
	fprintf(f,
		"<text transform=\"translate(22,%.1f) rotate(-90)\" font-size=\"13\" "
		"text-anchor=\"middle\" fill=\"#1f2933\">",
		s->top + PANEL_HEIGHT / 2.0);
	svg_put_text(f, panel->label);
	fputs("</text>\n", f);
}

/* Draw a series. Each point has a tooltip with its values. */
static void
put_series(const struct plot *p, const struct plot_panel *panel, const struct scale *s,
	unsigned int series, FILE *f)
{
	const char *colour = strokes[series].colour;
	char size[16];
	unsigned int i;

	fprintf(f,
		"<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" "
		"stroke-linejoin=\"round\" stroke-dasharray=\"%s\" points=\"",
		colour, strokes[series].width, strokes[series].dashes);
	for (i = 0; i < p->points; i++)
		if (has_value_at(p, panel, series, i))
			fprintf(f, "%.1f,%.1f ", x_of(p, i),
				y_of(s, log10(panel->value[series][i])));
	fputs("\"/>\n", f);
	for (i = 0; i < p->points; i++) {
		if (!has_value_at(p, panel, series, i))
			continue;
		fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>",
			x_of(p, i), y_of(s, log10(panel->value[series][i])),
			series == PLOT_SERIES - 1 ? 2 : 3, colour);
		svg_put_text(f, p->series[series]);
		fprintf(f, ", %s: %.6g ", size_name(p->size[i], size, sizeof(size)),
			panel->value[series][i]);
		svg_put_text(f, panel->figure_unit);
		fputs("</title></circle>\n", f);
	}
}

static void
put_sizes(const struct plot *p, double top, FILE *f)
{
	unsigned int i, every = p->points > 20 ? 2 : 1;
	char name[16];

	for (i = 0; i < p->points; i += every)
		put_line(f, x_of(p, i), top + 18, 12, " text-anchor=\"middle\" fill=\"#52606d\"",
			size_name(p->size[i], name, sizeof(name)));
	put_line(f, LEFT + PANEL_WIDTH / 2.0, top + 40, 13,
		" text-anchor=\"middle\" fill=\"#1f2933\"", "message size in bytes");
}

static void
put_legend(const struct plot *p, double y, FILE *f)
{
	double x = LEFT;
	unsigned int i;

	for (i = 0; i < PLOT_SERIES; i++) {
		if (p->series[i] == NULL)
			continue;
		fprintf(f,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
			"stroke-width=\"%.1f\" stroke-dasharray=\"%s\"/>\n",
			x, y - 4, x + 30, y - 4, strokes[i].colour, strokes[i].width,
			strokes[i].dashes);
		put_line(f, x + 37, y, 13, " fill=\"#1f2933\"", p->series[i]);
		x += 37 + 7.2 * (double)strlen(p->series[i]) + 26;
	}
}

int
plot_write(const struct plot *p, FILE *f)
{
	double top = 40, height;
	unsigned int i, k;
	struct scale s;

	for (i = 0; i < PLOT_FACTS; i++)
		top += p->fact[i] != NULL ? LINE : 0;
	height =
		top + 42 + p->panels * (PANEL_HEIGHT + PANEL_GAP) + 24 + (p->foot != NULL ? 26 : 0);
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		"height=\"%.0f\" viewBox=\"0 0 %d %.0f\" font-family=\"Helvetica, Arial, "
		"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fbfcfd\"/>\n",
		WIDTH, height, WIDTH, height);
	put_line(f, LEFT, 32, 19, " font-weight=\"bold\" fill=\"#1f2933\"", p->title);
	for (i = 0, top = 34; i < PLOT_FACTS; i++)
		if (p->fact[i] != NULL)
			put_line(f, LEFT, top += LINE, 12, " fill=\"#616e7c\"", p->fact[i]);
	put_legend(p, top += 30, f);
	for (i = 0, top += 16; i < p->panels; i++, top += PANEL_HEIGHT + PANEL_GAP) {
		s.top = top;
		find_scale(p, &p->panel[i], &s);
		put_axes(p, &p->panel[i], &s, f);
		for (k = PLOT_SERIES; k-- > 0;)
			if (p->series[k] != NULL)
				put_series(p, &p->panel[i], &s, k, f);
	}
	put_sizes(p, top - PANEL_GAP, f);
	if (p->foot != NULL)
		put_line(f, LEFT, height - 12, 11, " fill=\"#616e7c\"", p->foot);
	fputs("</svg>\n", f);
	return fflush(f) != 0 || ferror(f) != 0 ? -EIO : 0;
}
