/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stddef.h>
#include <string.h>

#include "store/tree.h"

/* a node with fewer entries is joined with a neighbour when both fit in one */
#define TREE_MIN (TREE_FAN / 4)

static inline bool
less(uint64_t hi, uint32_t lo, struct tree_key k)
{
	return hi != k.hi ? hi < k.hi : lo < k.lo;
}

static inline bool
equal(const struct tree_node *n, unsigned int i, struct tree_key k)
{
	return n->hi[i] == k.hi && n->lo[i] == k.lo;
}

/* Number of entries of the node with a smaller key. */
static inline unsigned int
lower_bound(const struct tree_node *n, struct tree_key k)
{
	unsigned int base = 0, len = n->n;

	while (len > 0) {
		unsigned int half = len / 2;
		bool right = less(n->hi[base + half], n->lo[base + half], k);

		base = right ? base + half + 1 : base;
		len = right ? len - half - 1 : half;
	}
	return base;
}

/* Index of the child that contains the key or would contain it. */
static inline unsigned int
child_of(const struct tree_node *n, struct tree_key k)
{
	unsigned int i = lower_bound(n, k);

	if (i < n->n && equal(n, i, k))
		return i;
	return i > 0 ? i - 1 : 0;
}

static uint64_t
entries(const struct tree_node *n)
{
	uint64_t sum = 0;
	unsigned int i;

	if (n->leaf)
		return n->n;
	for (i = 0; i < n->n; i++)
		sum += n->count[i];
	return sum;
}

/* --- reading --- */

const struct store_record *
tree_get(const struct tree *t, struct tree_key key)
{
	const struct tree_node *n = t->root;
	unsigned int i;

	if (n == NULL)
		return NULL;
	while (!n->leaf)
		n = n->child[child_of(n, key)];
	i = lower_bound(n, key);
	return i < n->n && equal(n, i, key) ? n->record[i] : NULL;
}

uint64_t
tree_rank(const struct tree *t, struct tree_key key)
{
	const struct tree_node *n = t->root;
	uint64_t rank = 0;
	unsigned int i, c;

	if (n == NULL)
		return 0;
	while (!n->leaf) {
		c = child_of(n, key);
		for (i = 0; i < c; i++)
			rank += n->count[i];
		n = n->child[c];
	}
	return rank + lower_bound(n, key);
}

const struct tree_node *
tree_select(const struct tree *t, uint64_t ordinal, uint32_t *at)
{
	const struct tree_node *n = t->root;
	unsigned int i;

	if (ordinal >= t->count)
		return NULL;
	while (!n->leaf) {
		for (i = 0; ordinal >= n->count[i]; i++)
			ordinal -= n->count[i];
		n = n->child[i];
	}
	*at = (uint32_t)ordinal;
	return n;
}

/* --- changing --- */

static struct tree_node *
tree_make_node(struct tree_writer *w, bool leaf)
{
	struct tree_node *n = w->make(w, leaf);

	n->step = w->step;
	n->born = w->version;
	n->leaf = leaf;
	n->n = 0;
	return n;
}

/* The node itself if this step made it, else a copy. */
static struct tree_node *
writable(struct tree_writer *w, struct tree_node *n)
{
	struct tree_node *copy;

	if (n->step == w->step)
		return n;
	copy = w->make(w, n->leaf);
	memcpy(copy, n, tree_node_size(n->leaf));
	copy->step = w->step;
	copy->born = w->version;
	w->retire(w, n);
	return copy;
}

/* Make room for an entry at i. */
static void
open_gap(struct tree_node *n, unsigned int i)
{
	size_t tail = n->n - i;

	memmove(&n->hi[i + 1], &n->hi[i], tail * sizeof(n->hi[0]));
	memmove(&n->lo[i + 1], &n->lo[i], tail * sizeof(n->lo[0]));
	memmove(&n->child[i + 1], &n->child[i], tail * sizeof(n->child[0]));
	if (!n->leaf)
		memmove(&n->count[i + 1], &n->count[i], tail * sizeof(n->count[0]));
	n->n++;
}

static void
close_gap(struct tree_node *n, unsigned int i)
{
	size_t tail = n->n - i - 1;

	memmove(&n->hi[i], &n->hi[i + 1], tail * sizeof(n->hi[0]));
	memmove(&n->lo[i], &n->lo[i + 1], tail * sizeof(n->lo[0]));
	memmove(&n->child[i], &n->child[i + 1], tail * sizeof(n->child[0]));
	if (!n->leaf)
		memmove(&n->count[i], &n->count[i + 1], tail * sizeof(n->count[0]));
	n->n--;
}

/* Append entries [from, from + k) of one node to another. */
static void
tree_node_append(struct tree_node *to, const struct tree_node *n, unsigned int from, unsigned int k)
{
	memcpy(&to->hi[to->n], &n->hi[from], k * sizeof(n->hi[0]));
	memcpy(&to->lo[to->n], &n->lo[from], k * sizeof(n->lo[0]));
	memcpy(&to->child[to->n], &n->child[from], k * sizeof(n->child[0]));
	if (!n->leaf)
		memcpy(&to->count[to->n], &n->count[from], k * sizeof(n->count[0]));
	to->n = (uint16_t)(to->n + k);
}

static void
set_child(struct tree_node *n, unsigned int i, struct tree_node *child)
{
	n->hi[i] = child->hi[0];
	n->lo[i] = child->lo[0];
	n->child[i] = child;
	n->count[i] = entries(child);
}

/*
 * Split a full node before an entry is put at i. If i is at the end (records put in order), the
 * left half stays full.
 *
 * @return the right half
 */
static struct tree_node *
tree_split_node(struct tree_writer *w, struct tree_node *n, unsigned int i)
{
	struct tree_node *right = tree_make_node(w, n->leaf);
	unsigned int keep = i == TREE_FAN ? TREE_FAN - 2 : TREE_FAN / 2;

	tree_node_append(right, n, keep, n->n - keep);
	n->n = (uint16_t)keep;
	return right;
}

/* Put an entry (child NULL: a record) at i. @return a new right neighbour, or NULL */
static struct tree_node *
insert_at(struct tree_writer *w, struct tree_node *n, unsigned int i, struct tree_key key,
	const struct store_record *rec, struct tree_node *child)
{
	struct tree_node *right = NULL, *to = n;

	if (n->n == TREE_FAN) {
		right = tree_split_node(w, n, i);
		if (i > n->n) {
			i -= n->n;
			to = right;
		}
	}
	open_gap(to, i);
	if (child != NULL) {
		set_child(to, i, child);
	} else {
		to->hi[i] = key.hi;
		to->lo[i] = key.lo;
		to->record[i] = rec;
	}
	return right;
}

/* @return the node or its copy; *right: a new neighbour of it */
static struct tree_node *
tree_put_at(struct tree_writer *w, struct tree_node *n, struct tree_key key,
	const struct store_record *rec, struct tree_node **right)
{
	struct tree_node *child, *child_right = NULL;
	unsigned int i;

	*right = NULL;
	n = writable(w, n);
	if (n->leaf) {
		i = lower_bound(n, key);
		if (i < n->n && equal(n, i, key))
			n->record[i] = rec;
		else
			*right = insert_at(w, n, i, key, rec, NULL);
		return n;
	}
	i = child_of(n, key);
	child = tree_put_at(w, n->child[i], key, rec, &child_right);
	set_child(n, i, child);
	if (child_right != NULL)
		*right = insert_at(w, n, i + 1, key, NULL, child_right);
	return n;
}

void
tree_put(struct tree *t, struct tree_writer *w, struct tree_key key, const struct store_record *rec)
{
	struct tree_node *right, *root;

	if (t->root == NULL) {
		t->root = tree_make_node(w, true);
		t->depth = 1;
	}
	t->root = tree_put_at(w, t->root, key, rec, &right);
	if (right != NULL) {
		root = tree_make_node(w, false);
		root->n = 2;
		set_child(root, 0, t->root);
		set_child(root, 1, right);
		t->root = root;
		t->depth++;
	}
	t->count = entries(t->root);
}

/* Child i has become small: join it with a neighbour when both fit in one node. */
static void
tree_join_nodes(struct tree_writer *w, struct tree_node *n, unsigned int i)
{
	unsigned int l = i > 0 ? i - 1 : 0;
	struct tree_node *left, *right;

	if (n->n < 2 || n->child[l]->n + n->child[l + 1]->n > TREE_FAN)
		return;
	right = n->child[l + 1];
	left = writable(w, n->child[l]);
	tree_node_append(left, right, 0, right->n);
	w->retire(w, right);
	close_gap(n, l + 1);
	set_child(n, l, left);
}

/* The key is there. @return the node or its copy; NULL: nothing is left of it */
static struct tree_node *
del(struct tree_writer *w, struct tree_node *n, struct tree_key key)
{
	struct tree_node *child;
	unsigned int i;

	n = writable(w, n);
	i = n->leaf ? lower_bound(n, key) : child_of(n, key);
	child = n->leaf ? NULL : del(w, n->child[i], key);
	if (child == NULL) {
		close_gap(n, i);
		if (n->n > 0)
			return n;
		w->retire(w, n);
		return NULL;
	}
	set_child(n, i, child);
	if (child->n < TREE_MIN)
		tree_join_nodes(w, n, i);
	return n;
}

bool
tree_del(struct tree *t, struct tree_writer *w, struct tree_key key)
{
	struct tree_node *root;

	if (tree_get(t, key) == NULL)
		return false;
	t->root = del(w, t->root, key);
	while (t->root != NULL && !t->root->leaf && t->root->n == 1) {
		root = t->root;
		t->root = root->child[0];
		t->depth--;
		w->retire(w, root);
	}
	if (t->root == NULL)
		t->depth = 0;
	t->count = t->root != NULL ? entries(t->root) : 0;
	return true;
}
