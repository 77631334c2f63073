/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* GIDs as IP addresses: an IPv4 address a.b.c.d is ::ffff:a.b.c.d (rc-transport 10). */

#include <arpa/inet.h>
#include <string.h>

#include "port/port.h"
#include "wire/bytes.h"

static const uint8_t ipv4_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool
gid_is_ipv4(const union gid *gid)
{
	return memcmp(gid->raw, ipv4_mapped, sizeof(ipv4_mapped)) == 0;
}

bool
gid_is_link_local(const union gid *gid)
{
	if (gid_is_ipv4(gid)) /* 169.254.0.0/16, RFC 3927 */
		return gid->raw[12] == 169 && gid->raw[13] == 254;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80; /* fe80::/10 */
}

bool
gid_is_multicast(const union gid *gid)
{
	return gid_is_ipv4(gid) ? (gid->raw[12] & 0xF0) == 0xE0 : gid->raw[0] == 0xFF;
}

bool
gid_is_host(const union gid *gid)
{
	static const union gid loopback6 = { .raw = { [15] = 1 } };
	uint8_t net = gid->raw[12];

	if (gid_is_ipv4(gid))
		return net != 0 && net != 127 && net < 0xE0;
	return !gid_is_zero(gid) && !gid_equal(gid, &loopback6) && !gid_is_multicast(gid);
}

bool
gid_is_broadcast(const union gid *gid, const union gid *member, uint8_t prefix_len)
{
	uint32_t hosts;

	/* RFC 3021: a /31 has none */
	if (prefix_len > 30 || !gid_is_ipv4(gid))
		return false;
	hosts = UINT32_MAX >> prefix_len;
	return (get_be32(gid->raw + 12) & hosts) == hosts &&
		gid_same_subnet(gid, member, prefix_len);
}

bool
gid_is_zero(const union gid *gid)
{
	return gid->word[0] == 0 && gid->word[1] == 0;
}

union gid
gid_from_ipv4(const uint8_t addr[4])
{
	union gid gid;

	memcpy(gid.raw, ipv4_mapped, sizeof(ipv4_mapped));
	memcpy(gid.raw + sizeof(ipv4_mapped), addr, 4);
	return gid;
}

bool
gid_parse(const char *text, union gid *gid)
{
	uint8_t addr[4];

	if (text == NULL)
		return false;
	if (inet_pton(AF_INET, text, addr) == 1) {
		*gid = gid_from_ipv4(addr);
		return true;
	}
	return inet_pton(AF_INET6, text, gid->raw) == 1;
}

const char *
gid_print(const union gid *gid, char buf[GID_STRLEN])
{
	if (gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid->raw + sizeof(ipv4_mapped), buf, GID_STRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, buf, GID_STRLEN);
	return buf;
}

bool
gid_same_subnet(const union gid *a, const union gid *b, uint8_t prefix_len)
{
	bool ipv4 = gid_is_ipv4(a);
	unsigned int bits = prefix_len, bytes;

	if (gid_is_ipv4(b) != ipv4)
		return false;
	if (ipv4)
		bits += 8 * sizeof(ipv4_mapped);
	if (bits > 128)
		bits = 128;
	bytes = bits / 8;
	if (memcmp(a->raw, b->raw, bytes) != 0)
		return false;
	bits %= 8;
	return bits == 0 || ((a->raw[bytes] ^ b->raw[bytes]) >> (8 - bits)) == 0;
}

union gid
gid_prefix(const union gid *gid)
{
	union gid prefix = *gid;

	if (gid_is_ipv4(gid))
		prefix.raw[15] = 0;
	else
		prefix.word[1] = 0;
	return prefix;
}
