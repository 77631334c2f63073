/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/**
 * @file
 * "Did you mean": find the known word that is most similar to what was typed.
 */

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define NEAREST_MAX 48 /* a longer word matches nothing */

struct nearest {
	const char *typed;
	const char *word; /**< most similar so far, or NULL */
	unsigned int distance; /**< of .word, or the largest allowed */
};

/* Ignore case, and treat "-", "_" and a blank as the same character. */
static inline char
nearest_fold(char c)
{
	return c == '-' || c == ' ' ? '_' : (char)tolower((unsigned char)c);
}

/**
 * Edit distance: the number of characters to insert, delete, replace or swap with their neighbour.
 * (Optimal string alignment: three rows of the table are enough.)
 *
 * @return UINT_MAX if a word is longer than NEAREST_MAX
 */
static inline unsigned int
nearest_distance(const char *a, const char *b)
{
	unsigned int row[3][NEAREST_MAX + 1], *two = row[0], *one = row[1], *now = row[2], *free;
	size_t i, j, la = strlen(a), lb = strlen(b);
	unsigned int best;
	bool same;

	if (la > NEAREST_MAX || lb > NEAREST_MAX)
		return UINT_MAX;
	for (j = 0; j <= lb; j++)
		one[j] = (unsigned int)j;
	for (i = 1; i <= la; i++) {
		now[0] = (unsigned int)i;
		for (j = 1; j <= lb; j++) {
			same = nearest_fold(a[i - 1]) == nearest_fold(b[j - 1]);
			best = one[j - 1] + !same;
			if (one[j] + 1 < best)
				best = one[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && two[j - 2] + 1 < best &&
				nearest_fold(a[i - 1]) == nearest_fold(b[j - 2]) &&
				nearest_fold(a[i - 2]) == nearest_fold(b[j - 1]))
				best = two[j - 2] + 1;
			now[j] = best;
		}
		free = two;
		two = one;
		one = now;
		now = free;
	}
	return one[lb];
}

/** Begin a search. A third of the characters may be wrong, at least one. */
static inline struct nearest
nearest_to(const char *typed)
{
	size_t len = strlen(typed);

	return (struct nearest){ typed, NULL, len < 6 ? 1 : (unsigned int)len / 3 };
}

/**
 * True if the typed word is an abbreviation of the other: "len" of "length". It must have three
 * letters: shorter ones abbreviate too many words.
 */
static inline bool
nearest_abbreviates(const char *typed, const char *word)
{
	size_t i, dashes = strspn(typed, "-");

	for (i = 0; typed[i] != '\0'; i++)
		if (nearest_fold(typed[i]) != nearest_fold(word[i]))
			return false;
	return i >= dashes + 3;
}

static inline void
nearest_try(struct nearest *n, const char *word)
{
	unsigned int d = nearest_distance(n->typed, word);

	if (d > 1 && nearest_abbreviates(n->typed, word))
		d = 1; /* counts like a word with one error */

	if (d > n->distance || (n->word != NULL && d == n->distance))
		return;
	n->word = word;
	n->distance = d;
}

#endif
