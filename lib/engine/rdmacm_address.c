/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Addresses that librdmacm's programs bind. The port numbers are Polca's own, one space for each
 * rdma_port_space, with the rules of the kernel's cma.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "engine/rdmacm_private.h"

#define PORT_PRIVILEGED 1024
/* the kernel's default ip_local_port_range */
#define PORT_FIRST 32768
#define PORT_LAST  60999

/* --- struct sockaddr --- */

static const union gid any_ipv4 = { .raw = { [10] = 0xff, [11] = 0xff } };

bool
rdmacm_address_is_any(const struct rdmacm_address *a)
{
	return gid_is_zero(&a->gid) || gid_equal(&a->gid, &any_ipv4);
}

bool
rdmacm_address_equal(const struct rdmacm_address *a, const struct rdmacm_address *b)
{
	return gid_equal(&a->gid, &b->gid);
}

int
rdmacm_address_read(const void *sockaddr, size_t size, struct rdmacm_address *a, struct error *err)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_UNSPEC };
	struct sockaddr_in in;

	memset(a, 0, sizeof(*a));
	memcpy(&in6, sockaddr, RTE_MIN(size, sizeof(in6)));
	memcpy(&in, &in6, sizeof(in));
	a->family = in6.sin6_family;
	if (a->family == AF_INET && size >= sizeof(in)) {
		a->port = ntohs(in.sin_port);
		a->gid = gid_from_ipv4((const uint8_t *)&in.sin_addr);
		return 0;
	}
	if (a->family == AF_INET6 && size >= sizeof(in6)) {
		a->port = ntohs(in6.sin6_port);
		a->scope = in6.sin6_scope_id;
		memcpy(&a->gid, &in6.sin6_addr, sizeof(a->gid));
		return 0;
	}
	return error_set(err, EAFNOSUPPORT, "address: family %u, allowed: AF_INET, AF_INET6",
		a->family);
}

uint16_t
rdmacm_address_write(const struct rdmacm_address *a, void *sockaddr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (a->family == AF_INET) {
		in.sin_port = htons(a->port);
		memcpy(&in.sin_addr, a->gid.raw + 12, sizeof(in.sin_addr));
		memcpy(sockaddr, &in, sizeof(in));
		return sizeof(in);
	}
	if (a->family != AF_INET6)
		return 0;
	in6.sin6_port = htons(a->port);
	in6.sin6_scope_id = a->scope;
	memcpy(&in6.sin6_addr, &a->gid, sizeof(a->gid));
	memcpy(sockaddr, &in6, sizeof(in6));
	return sizeof(in6);
}

/* --- port numbers --- */

/* True if both may have the same port number: the rules of the kernel's cma_check_port(). */
static bool
port_is_shared(const struct rdmacm_id *id, const struct rdmacm_id *other)
{
	if (id->reuse && other->reuse && other->state != RDMACM_LISTEN)
		return true;
	if (id->src.family != other->src.family && (id->ipv6_only || other->ipv6_only))
		return true;
	return !rdmacm_address_is_any(&id->src) && !rdmacm_address_is_any(&other->src) &&
		!rdmacm_address_equal(&id->src, &other->src);
}

static bool
port_is_free(const struct rdmacm *r, const struct rdmacm_id *id, uint16_t port)
{
	const struct rdmacm_id *other;

	LIST_FOREACH(other, &r->bound[port % RDMACM_BUCKETS], bound_link)
		if (other != id && other->ps == id->ps && other->src.port == port &&
			!port_is_shared(id, other))
			return false;
	return true;
}

/* The kernel's rdma_listen(): it shares its port number no more, and must have it alone by then. */
int
rdmacm_port_own(struct rdmacm_id *id, struct error *err)
{
	bool reuse = id->reuse;

	id->reuse = false;
	if (port_is_free(id->program->engine->rdmacm, id, id->src.port))
		return 0;
	id->reuse = reuse;
	return error_set(err, EADDRINUSE, "port: %u is another ID's, too (REUSEADDR)",
		id->src.port);
}

static int
port_choose(const struct rdmacm *r, struct rdmacm_id *id, struct error *err)
{
	uint32_t num = PORT_LAST - PORT_FIRST + 1, first = rng_u32(&rng_kernel) % num, i;

	for (i = 0; i < num; i++) {
		id->src.port = (uint16_t)(PORT_FIRST + (first + i) % num);
		if (port_is_free(r, id, id->src.port))
			return 0;
	}
	return error_set(err, EADDRNOTAVAIL, "port: all from %d to %d are in use", PORT_FIRST,
		PORT_LAST);
}

static int
port_take(struct rdmacm_id *id, struct error *err)
{
	struct rdmacm *r = id->program->engine->rdmacm;
	int rc = 0;

	if (id->src.port == 0)
		rc = port_choose(r, id, err);
	else if (id->src.port < PORT_PRIVILEGED && id->program->uid != 0)
		rc = error_set(err, EACCES, "port: %u is for root, as all below %d", id->src.port,
			PORT_PRIVILEGED);
	else if (!port_is_free(r, id, id->src.port))
		rc = error_set(err, EADDRINUSE, "port: %u is in use", id->src.port);
	if (rc != 0)
		return rc;
	LIST_INSERT_HEAD(&r->bound[id->src.port % RDMACM_BUCKETS], id, bound_link);
	id->bound = true;
	return 0;
}

void
rdmacm_unbind(struct rdmacm_id *id)
{
	if (id->bound)
		LIST_REMOVE(id, bound_link);
	id->bound = false;
}

/* --- bind --- */

static bool
address_is_loopback(const struct rdmacm_address *a)
{
	static const union gid loopback = { .raw = { [15] = 1 } };

	return a->family == AF_INET ? a->gid.raw[12] == 127 : gid_equal(&a->gid, &loopback);
}

/* The RoCEv2 port that has this address. @return false: none */
static bool
bind_to_port(struct rdmacm_id *id, const union gid *gid)
{
	const struct link *l = id->program->engine->link;
	unsigned int i;
	int index;

	for (i = 0; i < link_num_ports(l); i++) {
		index = port_gid_find(link_port_attr(l, i), gid, GID_ROCEV2);
		if (index < 0)
			continue;
		id->port = (int)i;
		id->sgid_index = (uint16_t)index;
		return true;
	}
	return false;
}

int
rdmacm_bind(struct rdmacm_id *id, const struct rdmacm_address *a, struct error *err)
{
	char text[GID_STRLEN];
	int rc;

	if (id->state != RDMACM_IDLE)
		return error_set(err, EINVAL, "bind: the ID has an address already");
	id->src = *a;
	if (!rdmacm_address_is_any(a) && !bind_to_port(id, &a->gid))
		rc = error_set(err, address_is_loopback(a) ? ENODEV : EADDRNOTAVAIL,
			"address: %s is no port's", gid_print(&a->gid, text));
	else
		rc = port_take(id, err);
	if (rc == 0) {
		id->state = RDMACM_BOUND;
		return 0;
	}
	id->port = -1;
	memset(&id->src, 0, sizeof(id->src));
	return rc;
}

static int
rdmacm_bind_sockaddr(struct rdmacm_call *c, const void *sockaddr, size_t size)
{
	struct rdmacm_address a;
	int rc = rdmacm_address_read(sockaddr, size, &a, c->err);

	return rc != 0 ? rc : rdmacm_bind(c->id, &a, c->err);
}

int
rdmacm_bind_ip(struct rdmacm_call *c)
{
	const struct rdma_ucm_bind_ip *cmd = c->body;

	return rdmacm_bind_sockaddr(c, &cmd->addr, sizeof(cmd->addr));
}

int
rdmacm_bind_any(struct rdmacm_call *c)
{
	const struct rdma_ucm_bind *cmd = c->body;

	if (cmd->reserved != 0 || cmd->addr_size == 0 || cmd->addr_size > sizeof(cmd->addr))
		return error_set(c->err, EINVAL, "bind: addr_size: got %u", cmd->addr_size);
	return rdmacm_bind_sockaddr(c, &cmd->addr, cmd->addr_size);
}
