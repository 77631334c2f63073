/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>
#include <rte_common.h>
#include <rte_log.h>

#include "base/log_level.h"

static const char *const format_names[] = {
	[LOG_PLAIN] = "plain",
	[LOG_TIME] = "time",
	[LOG_JOURNAL] = "journal",
	[LOG_JSON] = "json",
};

#define LOG_LINE_MAX 65536 /* a longer message becomes several lines */

static enum log_format format;

/* systemd sets JOURNAL_STREAM to the device and inode of the journal's socket (systemd.exec(5)). */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[48];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
		return false;
	snprintf(own, sizeof(own), "%lu:%lu", (unsigned long)st.st_dev, (unsigned long)st.st_ino);
	return strcmp(stream, own) == 0;
}

int
log_choose(const char *name, struct error *err)
{
	unsigned int i;

	if (name == NULL) {
		format = stderr_is_journal()    ? LOG_JOURNAL
			: isatty(STDERR_FILENO) ? LOG_TIME
						: LOG_PLAIN;
		return 0;
	}
	for (i = 0; i < RTE_DIM(format_names); i++) {
		if (strcmp(name, format_names[i]) != 0)
			continue;
		format = (enum log_format)i;
		return 0;
	}
	return error_set(err, EINVAL,
		"--log-format: got \"%.32s\", allowed plain, time, journal, json", name);
}

static const char *
log_level_name(uint32_t level)
{
	static const char *const names[] = { "none", "emergency", "alert", "critical", "error",
		"warning", "notice", "info", "debug" };

	return names[RTE_MIN(level, RTE_LOG_DEBUG)];
}

static void
log_print_json(const struct timespec *now, uint32_t level, const char *component, const char *text,
	size_t len)
{
	char date[32], when[48];
	struct tm tm;
	json_t *line;
	char *bytes;

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now->tv_sec, &tm));
	snprintf(when, sizeof(when), "%s.%03ldZ", date, now->tv_nsec / 1000000);
	line = json_pack("{s:s, s:s, s:s, s:s%}", "time", when, "level", log_level_name(level),
		"component", component, "text", text, len);
	bytes = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
	if (bytes != NULL)
		fprintf(stderr, "%s\n", bytes);
	else /* bytes that are no UTF-8: better so than not at all */
		fprintf(stderr, "%.*s\n", (int)len, text);
	free(bytes);
	json_decref(line);
}

static void
log_print_line(uint32_t level, const char *component, const char *text, size_t len)
{
	struct timespec now;
	char when[16];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	switch (format) {
	case LOG_PLAIN:
		fprintf(stderr, "%.*s\n", (int)len, text);
		break;
	case LOG_TIME:
		strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now.tv_sec, &tm));
		fprintf(stderr, "%s.%03ld %.*s\n", when, now.tv_nsec / 1000000, (int)len, text);
		break;
	case LOG_JOURNAL: /* syslog's numbers are one less than DPDK's */
		fprintf(stderr, "<%u>%.*s\n", level > 0 ? level - 1 : 0, (int)len, text);
		break;
	case LOG_JSON:
		log_print_json(&now, level, component, text, len);
		break;
	}
}

static void
log_print_lines(uint32_t level, const char *component, const char *text, size_t size)
{
	const char *end = text + size, *stop;

	for (; text < end; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (stop == NULL)
			stop = end;
		if (stop > text)
			log_print_line(level, component, text, (size_t)(stop - text));
	}
}

/* --- lines held back --- */

static bool holding;

static void
log_print_held(uint32_t level, const char *component, const char *text, size_t size)
{
	fprintf(stderr, "%c%u%c%s%c%.*s", LOG_HELD, level, LOG_HELD_END, component, LOG_HELD_END,
		(int)size, text);
}

bool
log_held_line(char *line, struct log_held *held)
{
	char *end, *component, *text;

	*held = (struct log_held){ .text = line };
	if (line[0] != LOG_HELD)
		return false;
	held->level = (uint32_t)strtoul(line + 1, &end, 10);
	component = *end == LOG_HELD_END ? end + 1 : NULL;
	text = component != NULL ? strchr(component, LOG_HELD_END) : NULL;
	if (text == NULL)
		return false;
	*text = '\0';
	held->component = component;
	held->text = text + 1;
	return true;
}

void
log_say_held(const struct log_held *held)
{
	log_print_lines(held->level, held->component, held->text, strlen(held->text));
}

/* --- DPDK's log --- */

/*
 * Called within a thread's call of vfprintf(), which holds the stream's lock, so that level and
 * component of the current message are those of the text.
 */
static ssize_t
log_write(void *cookie, const char *text, size_t size)
{
	uint32_t level = (uint32_t)rte_log_cur_msg_loglevel();
	char component[64] = "";

	RTE_SET_USED(cookie);
	if (format == LOG_JSON || holding)
		log_component_name((uint32_t)rte_log_cur_msg_logtype(), component,
			sizeof(component));
	if (holding)
		log_print_held(level, component, text, size);
	else
		log_print_lines(level, component, text, size);
	return (ssize_t)size;
}

/*
 * DPDK prints a message to the stream and then flushes it, in two calls. A line is written by the
 * first of them, because the stream is flushed at each newline: with a flush of its own another
 * thread would write the line with the level of its own message.
 */
static void
log_open(void)
{
	static char buffer[LOG_LINE_MAX];
	cookie_io_functions_t io = { .write = log_write };
	static FILE *stream;

	if (stream == NULL) {
		stream = fopencookie(NULL, "w", io);
		if (stream != NULL)
			setvbuf(stream, buffer, _IOLBF, sizeof(buffer));
	}
	/* with stderr DPDK would log without formats, but still only once */
	rte_openlog_stream(stream != NULL ? stream : stderr);
}

void
log_hold(void)
{
	holding = true;
	log_open();
}

void
log_take_over(void)
{
	holding = false;
	log_open();
}

void
log_say(uint32_t level, const char *lines)
{
	log_print_lines(level, "polca.app", lines, strlen(lines));
}
