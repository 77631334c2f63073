/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Find the parameter that an option names, and the option that names the parameter in an error. */

#include <string.h>

#include "args_private.h"

static bool
option_begins(const char *name, const char *option, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (name[i] != (option[i] == '-' ? '_' : option[i]))
			return false;
	return true;
}

bool
args_same_name(const char *name, const char *option, size_t len)
{
	return option_begins(name, option, len) && name[len] == '\0';
}

const char *
args_prefix(const json_t *object)
{
	return strncmp(method_text(object, "name"), "alt_", 4) == 0 ? "alt_" : "";
}

/*
 * Find the parameters of this name at exactly this depth, and set path to the first. @return how
 * many there are
 */
static int
find_at_depth(const json_t *table, const char *option, size_t len, int depth, int at,
	struct args_path *path)
{
	struct args_path deeper;
	size_t i, skip;
	json_t *p;
	int n, found = 0;

	json_array_foreach(table, i, p) {
		deeper = *path;
		deeper.step[at] = p;
		skip = strlen(args_prefix(p));
		if (depth == 0)
			n = args_same_name(method_text(p, "name"), option, len);
		else if (len < skip || !option_begins(args_prefix(p), option, skip))
			n = 0;
		else
			n = find_at_depth(json_object_get(p, "fields"), option + skip, len - skip,
				depth - 1, at + 1, &deeper);
		if (n > 0 && found == 0) {
			if (depth == 0)
				deeper.depth = at + 1;
			*path = deeper;
		}
		found += n;
	}
	return found;
}

struct args_path
args_find(const json_t *method, const char *option)
{
	size_t len = strcspn(option, "=");
	struct args_path path = { .depth = 0 };
	int depth, found;

	for (depth = 0; depth < ARGS_DEPTH; depth++) {
		found = find_at_depth(json_object_get(method, "params"), option, len, depth, 0,
			&path);
		path.ambiguous = found > 1;
		if (found > 0)
			break;
	}
	return path;
}

/* --- names in errors --- */

/*
 * @param path  set to what follows this step. @return the step's parameter; NULL: no such
 * parameter, or not the first item of a list
 */
static const json_t *
label_step(const json_t *table, const char **path)
{
	size_t i, len = strcspn(*path, ".[");
	json_t *p;

	json_array_foreach(table, i, p) {
		if (strlen(method_text(p, "name")) != len ||
			strncmp(method_text(p, "name"), *path, len) != 0)
			continue;
		*path += len;
		if (strncmp(*path, "[0]", 3) == 0)
			*path += 3;
		if (**path == '[')
			return NULL;
		*path += **path == '.';
		return p;
	}
	return NULL;
}

/*
 * A field is "--opcode" if that name is unambiguous, else it follows its object's option:
 * "--sg-list length".
 */
static const char *
label_field(const json_t *method, const json_t *object, const json_t *field, char *buf, size_t size)
{
	char name[64];
	struct args_path path;

	snprintf(name, sizeof(name), "%s%s", args_prefix(object), method_text(field, "name"));
	path = args_find(method, name);
	if (path.depth > 0 && !path.ambiguous && path.step[path.depth - 1] == field)
		return option_of(name, buf, size);
	option_of(method_text(object, "name"), buf, size);
	snprintf(buf + strlen(buf), size - strlen(buf), " %s", method_text(field, "name"));
	return buf;
}

const char *
args_label(const json_t *method, const char *path, char *buf, size_t size)
{
	const json_t *params = json_object_get(method, "params");
	const char *rest = path, *dest = "dest";
	const json_t *object = NULL, *p = label_step(params, &rest);

	/* ping and cm commands take the address as dest */
	if (p == NULL && strcmp(path, "dgid") == 0 && label_step(params, &dest) != NULL)
		path = "dest";
	while (p != NULL && *rest != '\0') {
		if (strcmp(method_text(p, "type"), "map") == 0)
			break; /* its words are NAME=VALUE */
		object = p;
		p = label_step(json_object_get(p, "fields"), &rest);
	}
	if (p == NULL)
		snprintf(buf, size, "%s", path);
	else if (*rest != '\0')
		snprintf(buf, size, "%s", rest);
	else if (object != NULL)
		label_field(method, object, p, buf, size);
	else if (args_takes_word(p))
		snprintf(buf, size, "%s", path);
	else
		option_of(method_text(p, "name"), buf, size);
	return buf;
}

const json_t *
args_map_param(const json_t *method)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (strcmp(method_text(p, "type"), "map") == 0)
			return p;
	}
	return NULL;
}

bool
args_takes_word(const json_t *p)
{
	return json_is_true(json_object_get(p, "required")) ||
		json_is_true(json_object_get(p, "plain"));
}

bool
args_takes_words(const json_t *p)
{
	return strcmp(method_text(p, "type"), "words") == 0;
}
