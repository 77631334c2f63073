/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * req_flood INTERFACE RATE COUNT < FRAME: send COUNT REQs, RATE a second; after a stall it goes on
 * without making up for it. FRAME is one REQ over RoCEv2, a whole Ethernet frame. In each copy the
 * communication ID, CA GUID and queue pair are random, and so is the source address: over IPv4 all
 * of it, over IPv6 the half after the /64 of FRAME. The GID and all checksums follow. At the end,
 * which SIGTERM can bring early, the program prints how many it has sent in how many seconds.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define IP         14
#define UDP_LEN    8
#define BTH_LEN    12
#define DETH_LEN   8
#define MAD_LEN    256
#define ICRC_LEN   4
#define IPV4_LEN   20
#define IPV6_LEN   40
#define MAX_LEN    (IP + IPV6_LEN + UDP_LEN + BTH_LEN + DETH_LEN + MAD_LEN + ICRC_LEN)
#define REQ_OFFSET 24 /* in the MAD */
#define GID_OFFSET 56 /* in the REQ: the requester's */
#define BATCH      32
#define STALL      0.02 /* seconds behind its time after which the flood is not made up for */

static size_t udp, frame_len; /* where UDP begins; of the whole frame */
static volatile sig_atomic_t terminated;

static uint32_t table[256];
static uint64_t seed = 0x9E3779B97F4A7C15;

static uint64_t
random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint32_t
crc32(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len-- > 0)
		crc = table[(crc ^ *p++) & 0xFF] ^ crc >> 8;
	return crc;
}

static int
frame_is_ipv6(const uint8_t *frame)
{
	return frame[IP] >> 4 == 6;
}

static void
put_req_icrc(uint8_t *frame)
{
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	size_t end = frame_len - ICRC_LEN;
	uint8_t masked[MAX_LEN];
	uint32_t crc;

	memcpy(masked, frame, frame_len);
	if (frame_is_ipv6(frame)) {
		masked[IP] |= 0x0F; /* traffic class and flow label */
		memset(masked + IP + 1, 0xFF, 3);
		masked[IP + 7] = 0xFF; /* hop limit */
	} else {
		masked[IP + 1] = 0xFF; /* TOS */
		masked[IP + 8] = 0xFF; /* TTL */
		memset(masked + IP + 10, 0xFF, 2);
	}
	memset(masked + udp + 6, 0xFF, 2);
	masked[udp + UDP_LEN + 4] = 0xFF;
	crc = ~crc32(crc32(UINT32_MAX, ones, 8), masked + IP, end - IP);
	memcpy(frame + end, &crc, ICRC_LEN); /* little-endian machines only */
}

static void
put_ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	memset(ip + 10, 0, 2);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = ~((sum & 0xFFFF) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void
forge_source(uint8_t *frame, uint8_t *gid)
{
	uint64_t host = random_number();
	uint8_t *ip = frame + IP;

	if (frame_is_ipv6(frame)) {
		memcpy(ip + 16, &host, 8);
		memcpy(gid + 8, &host, 8);
		return;
	}
	ip[12] = (uint8_t)(20 + host % 150); /* a host's, in other subnets than Polca's */
	ip[13] = (uint8_t)(host >> 8);
	ip[14] = (uint8_t)(host >> 16);
	ip[15] = (uint8_t)(1 + (host >> 24) % 254);
	memcpy(gid + 12, ip + 12, 4);
	put_ip_checksum(ip);
}

static void
forge_req(uint8_t *frame)
{
	uint8_t *mad = frame + udp + UDP_LEN + BTH_LEN + DETH_LEN, *req = mad + REQ_OFFSET;
	uint64_t guid = random_number();
	uint32_t qpn = (uint32_t)random_number() % 0xFFFF00 + 16;

	memcpy(mad + 8, &guid, 8);
	memcpy(req, &guid, 4);
	memcpy(req + 16, &guid, 8);
	req[32] = (uint8_t)(qpn >> 16);
	req[33] = (uint8_t)(qpn >> 8);
	req[34] = (uint8_t)qpn;
	forge_source(frame, req + GID_OFFSET);
	put_req_icrc(frame);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
terminate(int number)
{
	(void)number;
	terminated = 1;
}

/* Sleep until `sent` REQs are due. @return when the first one was due, later after a stall */
static double
wait_for_turn(double begin, long sent, long rate)
{
	double due = begin + (double)sent / (double)rate - seconds();

	if (due < -STALL)
		return begin - due - STALL;
	if (due > 0)
		nanosleep(&(struct timespec){ (long)due, (long)((due - (long)due) * 1e9) }, NULL);
	return begin;
}

int
main(int argc, char **argv)
{
	static uint8_t frames[BATCH][MAX_LEN], frame[MAX_LEN];
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	struct mmsghdr msgs[BATCH] = { 0 };
	struct iovec iov[BATCH];
	double begin, first_due;
	long rate, count, sent = 0;
	int fd, i, n;

	signal(SIGTERM, terminate);
	frame_len = fread(frame, 1, sizeof(frame), stdin);
	udp = IP + (frame_is_ipv6(frame) ? IPV6_LEN : IPV4_LEN);
	if (argc != 4 || frame_len != udp + MAX_LEN - IP - IPV6_LEN)
		return 2;
	rate = atol(argv[2]);
	count = atol(argv[3]);
	for (i = 0; i < 256; i++) {
		table[i] = (uint32_t)i;
		for (n = 0; n < 8; n++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320 : 0);
	}
	for (i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ frames[i], frame_len };
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		perror(argv[1]);
		return 1;
	}
	for (begin = first_due = seconds(); sent < count && !terminated; sent += n) {
		for (i = 0; i < BATCH; i++) {
			memcpy(frames[i], frame, frame_len);
			forge_req(frames[i]);
		}
		n = sendmmsg(fd, msgs, BATCH, 0);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0) {
			perror("sendmmsg");
			return 1;
		}
		first_due = wait_for_turn(first_due, sent, rate);
	}
	printf("%ld in %.3f s\n", sent, seconds() - begin);
	return 0;
}
