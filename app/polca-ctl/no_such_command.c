/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Error message for an unknown command: the most similar command, or the commands of its group. */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/nearest.h"
#include "help.h"
#include "methods.h"
#include "report.h"

/* Find the command most similar to the first unknown word: for "qp crate" a verb of "qp". */
static bool
similar_command(const struct options *o, const json_t *methods, int known, char *buf, size_t size)
{
	struct nearest n = nearest_to(o->words[known]);
	char noun[128] = "", word[128];
	size_t i, len;
	json_t *m;
	int w;

	for (w = 0; w < known; w++)
		snprintf(noun + strlen(noun), sizeof(noun) - strlen(noun), "%s_", o->words[w]);
	json_array_foreach(methods, i, m) {
		len = strlen(noun);
		if (strncmp(method_text(m, "name"), noun, len) != 0)
			continue;
		snprintf(word, sizeof(word), "%s", method_text(m, "name") + len);
		word[strcspn(word, "_")] = '\0';
		nearest_try(&n, word);
		if (n.word == word) {
			snprintf(buf, size, "%s%s", noun, word);
			n.word = buf;
		}
	}
	if (known == 0)
		nearest_try(&n, "help");
	if (n.word != NULL && n.word != buf)
		snprintf(buf, size, "%s", n.word);
	return n.word != NULL;
}

/* Recognize verb and noun in the wrong order: "list qp" for "qp list". */
static bool
swapped_command(const struct options *o, const json_t *methods, char *buf, size_t size)
{
	if (o->num < 2)
		return false;
	snprintf(buf, size, "%s_%s", o->words[1], o->words[0]);
	return methods_find(methods, buf) != NULL;
}

/* Report an unknown option before the command; only the global options are allowed there. */
static int
no_such_global_option(const char *word)
{
	struct nearest n = nearest_to(word);
	size_t i;

	fprintf(stderr, "polca-ctl: there is no option \"%s\" before the command", word);
	for (i = 0; args_globals[i] != NULL; i++)
		nearest_try(&n, args_globals[i]);
	if (n.word != NULL) {
		fprintf(stderr, "; did you mean %s? See polca-ctl --help\n", n.word);
		return EXIT_USAGE;
	}
	fprintf(stderr, ", allowed:");
	for (i = 0; args_globals[i] != NULL; i++)
		fprintf(stderr, "%s %s", i > 0 ? "," : "", args_globals[i]);
	fprintf(stderr, "; see polca-ctl --help\n");
	return EXIT_USAGE;
}

int
no_such_command(const struct options *o, const json_t *methods)
{
	int known = methods_prefix(methods, o->words, o->num), i;
	char similar[256], words[256];

	if (known == o->num) {
		fprintf(stderr, "polca-ctl: \"%s\" needs a verb\n", o->words[known - 1]);
		help_group(methods, o->words, known);
		return EXIT_USAGE;
	}
	if (o->words[known][0] == '-')
		return no_such_global_option(o->words[known]);
	fprintf(stderr, "polca-ctl: there is no command \"");
	for (i = 0; i < o->num && i <= known; i++)
		fprintf(stderr, "%s%s", i > 0 ? " " : "", o->words[i]);
	fputc('"', stderr);
	if (swapped_command(o, methods, similar, sizeof(similar)) ||
		similar_command(o, methods, known, similar, sizeof(similar)))
		fprintf(stderr, "; did you mean \"%s\"?%s\n",
			method_words(similar, words, sizeof(words)),
			known > 0 ? "" : " See polca-ctl --help");
	else
		fprintf(stderr, "%s\n", known > 0 ? "" : "; see polca-ctl --help");
	if (known > 0)
		help_group(methods, o->words, known);
	return EXIT_USAGE;
}
