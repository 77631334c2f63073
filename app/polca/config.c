/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * From JSON text to struct config, by the table.
 */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rte_ether.h>

#include "base/log_level.h"
#include "base/pci_address.h"
#include "config.h"

struct decoder {
	struct config_errors *errs;
	char path[CONFIG_PATH_MAX]; /* of the value looked at: ports[1].addresses[0] */
};

static int decode(struct decoder *d, const struct key *k, const json_t *v, void *field);

uint64_t
config_number(const void *field, size_t size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)field;
	case 2:
		return *(const uint16_t *)field;
	case 4:
		return *(const uint32_t *)field;
	default:
		return *(const uint64_t *)field;
	}
}

static void
store_number(void *field, size_t size, uint64_t v)
{
	switch (size) {
	case 1:
		*(uint8_t *)field = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)field = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)field = (uint32_t)v;
		break;
	default:
		*(uint64_t *)field = v;
	}
}

/* --- saying no: where, what was got, what is allowed --- */

static void
brief(const json_t *v, char *buf, size_t size)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

	snprintf(buf, size, "%s", text != NULL ? text : "?");
	if (text != NULL && strlen(text) >= size)
		strcpy(buf + size - 4, "...");
	free(text);
}

static int __attribute__((format(printf, 3, 4)))
refuse(struct decoder *d, const json_t *got, const char *fmt, ...)
{
	char value[48], allowed[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(allowed, sizeof(allowed), fmt, ap);
	va_end(ap);
	brief(got, value, sizeof(value));
	return config_error(d->errs, "%s: got %s, expected %s",
			d->path[0] != '\0' ? d->path : "configuration", value, allowed);
}

static size_t
path_push(struct decoder *d, const char *name)
{
	size_t len = strlen(d->path);

	snprintf(d->path + len, sizeof(d->path) - len, "%s%s", len > 0 ? "." : "", name);
	return len;
}

static size_t
path_push_index(struct decoder *d, size_t i)
{
	size_t len = strlen(d->path);

	snprintf(d->path + len, sizeof(d->path) - len, "[%zu]", i);
	return len;
}

/* Of a list that was cut short its last whole word, and that there are more. */
static void
mend_cut(char *list, size_t len, size_t size)
{
	char *last;

	if (len < size)
		return;
	list[size - sizeof(", ...")] = '\0';
	last = strrchr(list, ',');
	if (last != NULL)
		strcpy(last, ", ...");
}

static void
names_of(const struct key *fields, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (; fields->name != NULL && len < size; fields++)
		len += (size_t)snprintf(
				buf + len, size - len, "%s%s", len > 0 ? ", " : "", fields->name);
	mend_cut(buf, len, size);
}

static void
words_of(const struct key_word *words, char *buf, size_t size)
{
	size_t len = 0;

	for (; words->name != NULL && len < size; words++)
		len += (size_t)snprintf(buf + len, size - len, "%s\"%s\"", len > 0 ? ", " : "",
				words->name);
}

/* --- single values --- */

static int
decode_uint(struct decoder *d, const struct key *k, const json_t *v, void *field)
{
	bool pow2 = k->flags & KEY_POWER_OF_TWO;
	uint64_t n = (uint64_t)json_integer_value(v);

	if (!json_is_integer(v) || json_integer_value(v) < 0 || n < k->min || n > k->max ||
			(pow2 && (n & (n - 1)) != 0))
		return refuse(d, v, "%s from %" PRIu64 " to %" PRIu64,
				pow2 ? "a power of two" : "an integer", k->min, k->max);
	store_number(field, k->size, n);
	return 0;
}

static int
decode_hex(struct decoder *d, const struct key *k, const json_t *v, void *field)
{
	const char *text = json_string_value(v);
	unsigned long long n = 0;
	bool ok = json_is_integer(v) && json_integer_value(v) >= 0;
	char *end;

	if (ok)
		n = (unsigned long long)json_integer_value(v);
	if (text != NULL && strncasecmp(text, "0x", 2) == 0 && isxdigit((unsigned char)text[2])) {
		errno = 0;
		n = strtoull(text, &end, 16);
		ok = errno == 0 && *end == '\0';
	}
	if (!ok || n < k->min || n > k->max)
		return refuse(d, v, "\"0x%" PRIx64 "\" to \"0x%" PRIx64 "\"", k->min, k->max);
	store_number(field, k->size, n);
	return 0;
}

static int
decode_text(struct decoder *d, const struct key *k, const json_t *v, char *field)
{
	if (!json_is_string(v) || json_string_length(v) >= k->size)
		return refuse(d, v, "a text of at most %zu bytes", k->size - 1);
	memcpy(field, json_string_value(v), json_string_length(v) + 1);
	return 0;
}

static int
decode_enum(struct decoder *d, const struct key *k, const json_t *v, uint32_t *field)
{
	const char *text = json_string_value(v);
	const struct key_word *w;
	char words[160];

	for (w = k->words; text != NULL && w->name != NULL; w++)
		if (strcasecmp(w->name, text) == 0) {
			*field = w->value;
			return 0;
		}
	words_of(k->words, words, sizeof(words));
	return refuse(d, v, "one of %s", words);
}

static int
decode_mac(struct decoder *d, const json_t *v, uint8_t *field)
{
	const char *text = json_string_value(v);
	struct rte_ether_addr mac;

	if (text == NULL || rte_ether_unformat_addr(text, &mac) != 0 ||
			!rte_is_valid_assigned_ether_addr(&mac))
		return refuse(d, v, "a unicast MAC address such as \"02:00:00:00:00:01\"");
	memcpy(field, mac.addr_bytes, sizeof(mac.addr_bytes));
	return 0;
}

static int
decode_address(struct decoder *d, const json_t *v, union gid *field)
{
	const char *text = json_string_value(v);

	if (text == NULL || !gid_parse(text, field) || gid_is_zero(field))
		return refuse(d, v, "an address such as \"10.0.0.254\" or \"fe80::1\"");
	return 0;
}

static int
decode_prefix(struct decoder *d, const json_t *v, struct link_addr *field)
{
	const char *text = json_string_value(v), *slash = text != NULL ? strchr(text, '/') : NULL;
	char address[GID_STRLEN];
	unsigned long len;
	char *end;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(address) || slash[1] < '0' ||
			slash[1] > '9')
		goto refused;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	len = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || !gid_parse(address, &field->gid) || gid_is_zero(&field->gid) ||
			len > (gid_is_ipv4(&field->gid) ? 32u : 128u))
		goto refused;
	field->prefix_len = (uint8_t)len;
	return 0;
refused:
	return refuse(d, v, "ADDRESS/PREFIX such as \"10.0.0.1/24\"");
}

/* --- objects and lists --- */

static const struct key *
find(const struct key *fields, const char *name)
{
	for (; fields->name != NULL; fields++)
		if (strcmp(fields->name, name) == 0)
			return fields;
	return NULL;
}

static int
check_names(struct decoder *d, const struct key *k, const json_t *v)
{
	char names[160];
	const char *name;
	json_t *value;
	size_t len;
	int ret = 0;

	json_object_foreach ((json_t *)v, name, value) {
		if (find(k->fields, name) != NULL)
			continue;
		names_of(k->fields, names, sizeof(names));
		len = path_push(d, name);
		ret = config_error(d->errs, "%s: unknown key, allowed are %s", d->path, names);
		d->path[len] = '\0';
	}
	return ret;
}

/* Objects and lists are decoded to their end despite errors, so that all errors are reported. */
static int
decode_object(struct decoder *d, const struct key *k, const json_t *v, void *base)
{
	const struct key *f;
	size_t len;
	int ret;

	if (k->flags & KEY_SHORTHAND && !json_is_object(v))
		return decode(d, &k->fields[0], v, (char *)base + k->fields[0].offset);
	if (!json_is_object(v))
		return refuse(d, v, "an object");
	if (k->flags & KEY_NOTED)
		*(bool *)((char *)base - k->offset + k->num_offset) = true;
	ret = check_names(d, k, v);
	for (f = k->fields; f->name != NULL; f++) {
		const json_t *value = json_object_get(v, f->name);

		len = path_push(d, f->name);
		if (value != NULL)
			ret |= decode(d, f, value, (char *)base + f->offset);
		else if (f->flags & KEY_REQUIRED)
			ret |= config_error(d->errs, "%s: missing", d->path);
		d->path[len] = '\0';
	}
	return ret;
}

static int
decode_list(struct decoder *d, const struct key *k, const json_t *v, void *base)
{
	size_t i, len, n = json_array_size(v);
	char *items = base;
	int ret = 0;

	if (!json_is_array(v) || n < k->min || n > k->max)
		return refuse(d, v, "a list of %" PRIu64 " to %" PRIu64, k->min, k->max);
	for (i = 0; i < n; i++) {
		if (k->init != NULL)
			memcpy(items + i * k->stride, k->init, k->stride);
		len = path_push_index(d, i);
		ret |= decode(d, &k->fields[0], json_array_get(v, i), items + i * k->stride);
		d->path[len] = '\0';
	}
	*(unsigned int *)((char *)base - k->offset + k->num_offset) = (unsigned int)n;
	return ret;
}

static int
decode(struct decoder *d, const struct key *k, const json_t *v, void *field)
{
	switch (k->type) {
	case KEY_BOOL:
		if (!json_is_boolean(v))
			return refuse(d, v, "true or false");
		*(bool *)field = json_is_true(v);
		return 0;
	case KEY_UINT:
		return decode_uint(d, k, v, field);
	case KEY_HEX:
		return decode_hex(d, k, v, field);
	case KEY_TEXT:
		return decode_text(d, k, v, field);
	case KEY_ENUM:
		return decode_enum(d, k, v, field);
	case KEY_MAC:
		return decode_mac(d, v, field);
	case KEY_ADDRESS:
		return decode_address(d, v, field);
	case KEY_PREFIX:
		return decode_prefix(d, v, field);
	case KEY_OBJECT:
		return decode_object(d, k, v, field);
	case KEY_LIST:
		return decode_list(d, k, v, field);
	}
	return -EINVAL;
}

/*
 * The engine's view of the ports. PCI devices are the EAL's to probe, with their arguments; virtual
 * ones are plugged by lib/link, which also clears away the sockets that an earlier run left.
 */
static void
fill_ib(struct config_port *p, struct sma_port_config *sma)
{
	unsigned int i;

	p->link.ib = p->encapsulation == CONFIG_IB;
	*sma = p->sma;
	sma->guid = p->link.guid;
	for (i = 0; i < p->link.num_pkeys; i++)
		sma->pkeys[i] = p->link.pkeys[i];
	sma->num_pkeys = p->link.num_pkeys;
	for (sma->vl_cap = 1; 1u << (sma->vl_cap - 1) < p->vls; sma->vl_cap++)
		;
	sma->is_sm = p->has_sm;
	sma->sm_state = (uint8_t)p->sm_state;
}

static void
fill_links(struct config *c)
{
	struct link_config *link = &c->engine.link;
	unsigned int i;

	link->num_ports = c->num_ports;
	for (i = 0; i < c->num_ports; i++) {
		struct config_port *p = &c->port[i];

		memcpy(p->link.device, p->device, sizeof(p->link.device));
		if (pci_address_parse(p->device, NULL))
			p->link.device[strcspn(p->device, ",")] = '\0';
		fill_ib(p, &c->engine.sma.port[i]);
		link->port[i] = p->link;
	}
}

static void
fill_services(struct config *c)
{
	struct engine_config *e = &c->engine;
	unsigned int i;

	e->num_services = c->num_services;
	for (i = 0; i < c->num_services; i++) {
		const struct config_service *s = &c->service[i];

		e->service[i] = s->svc;
		e->service[i].service_mask = UINT64_MAX;
		if (s->port != 0)
			e->service[i].service_id = cm_service_id(s->port_space, s->port);
	}
}

/*
 * Read the file up to its end, or to the first NUL byte, which is then the last of what is read: the
 * parser refuses it, as JSON has no NUL. NULL: errno says why.
 */
static char *
read_text(const char *path, size_t *len)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t n;
	FILE *f;

	f = fopen(path, "r");
	if (f == NULL)
		return NULL;
	errno = 0;
	n = getdelim(&text, &size, '\0', f);
	if (n < 0 && errno != 0) {
		free(text);
		text = NULL;
	}
	*len = n > 0 ? (size_t)n : 0;
	fclose(f);
	return text;
}

static json_t *
parse(const char *text, size_t len, struct config_errors *errs)
{
	json_error_t je;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);

	if (root == NULL)
		config_error_at(errs, je.line, je.column, je.text);
	return root;
}

/* Log components of drivers are checked when the EAL runs: keep the line of each for the error message. */
static void
note_lines(struct config *c, const struct config_errors *errs)
{
	char path[32];
	unsigned int i;

	c->file = errs->file;
	for (i = 0; i < c->num_log; i++) {
		snprintf(path, sizeof(path), "log[%u].component", i);
		c->log[i].line = config_line_of(errs->json, path);
	}
}

static void
decode_all(struct config *c, const char *text, size_t len, struct config_errors *errs)
{
	struct decoder d = { .errs = errs };
	json_t *root = parse(text, len, errs);

	if (root == NULL)
		return;
	errs->json = text;
	decode(&d, &config_root, root, c);
	json_decref(root);
	fill_links(c);
	fill_services(c);
	config_check(c, errs);
	note_lines(c, errs);
	errs->json = NULL;
}

int
config_load(struct config *c, const char *path, const char *text, struct config_errors *errs)
{
	char *read = NULL;
	size_t len;

	config_init(c);
	errs->num = errs->values = 0;
	errs->file = path != NULL ? path : "configuration";
	if (path == NULL) {
		decode_all(c, text, strlen(text), errs);
	} else {
		read = read_text(path, &len);
		if (read == NULL)
			config_error_at(errs, 0, 0, strerror(errno));
		else
			decode_all(c, read, len, errs);
	}
	free(read);
	return errs->num == 0 ? 0 : -EINVAL;
}

int
config_apply_log(const struct config *c, struct error *err)
{
	struct error why = { "" };
	unsigned int i;

	for (i = 0; i < c->num_log; i++)
		if (log_level_set(c->log[i].component, c->log[i].level, &why) != 0)
			return error_set(err, EINVAL, "%.100s:%u: log[%u].component: %s", c->file,
					c->log[i].line, i, why.text);
	return 0;
}
