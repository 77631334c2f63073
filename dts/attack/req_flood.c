/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * req_flood INTERFACE RATE COUNT < FRAME: send COUNT REQs, RATE a second. FRAME is one REQ over
 * RoCEv2 and IPv4, a whole Ethernet frame; in each copy the source address, communication ID, CA
 * GUID and queue pair are random, the GID and all checksums follow.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define ETH   14
#define IP    (ETH + 0)
#define UDP   (IP + 20)
#define BTH   (UDP + 8)
#define MAD   (BTH + 12 + 8)
#define REQ   (MAD + 24)
#define LEN   (MAD + 256 + 4)
#define GID   (REQ + 56)
#define BATCH 32

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

static void
put_req_icrc(uint8_t *frame)
{
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	uint8_t masked[LEN];
	uint32_t crc;

	memcpy(masked, frame, LEN);
	masked[IP + 1] = 0xFF; /* TOS */
	masked[IP + 8] = 0xFF; /* TTL */
	memset(masked + IP + 10, 0xFF, 2);
	memset(masked + UDP + 6, 0xFF, 2);
	masked[BTH + 4] = 0xFF;
	crc = ~crc32(crc32(UINT32_MAX, ones, 8), masked + IP, LEN - 4 - IP);
	memcpy(frame + LEN - 4, &crc, 4); /* little-endian machines only */
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
forge_req(uint8_t *frame)
{
	uint64_t guid = random_number(), other = random_number();
	uint32_t host = (uint32_t)(other >> 32), qpn = (uint32_t)other % 0xFFFF00 + 16;

	frame[IP + 12] = (uint8_t)(20 + host % 150); /* a host's, in other subnets than Polca's */
	frame[IP + 13] = (uint8_t)(host >> 8);
	frame[IP + 14] = (uint8_t)(host >> 16);
	frame[IP + 15] = (uint8_t)(1 + (host >> 24) % 254);
	memcpy(frame + GID + 12, frame + IP + 12, 4);
	memcpy(frame + MAD + 8, &guid, 8);
	memcpy(frame + REQ, &guid, 4);
	memcpy(frame + REQ + 16, &guid, 8);
	frame[REQ + 32] = (uint8_t)(qpn >> 16);
	frame[REQ + 33] = (uint8_t)(qpn >> 8);
	frame[REQ + 34] = (uint8_t)qpn;
	put_ip_checksum(frame + IP);
	put_req_icrc(frame);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
	static uint8_t frames[BATCH][LEN], frame[LEN];
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	struct mmsghdr msgs[BATCH] = { 0 };
	struct iovec iov[BATCH];
	double begin, due;
	long rate, count, sent = 0;
	int fd, i, n;

	if (argc != 4 || fread(frame, 1, LEN, stdin) != LEN)
		return 2;
	rate = atol(argv[2]);
	count = atol(argv[3]);
	for (i = 0; i < 256; i++) {
		table[i] = (uint32_t)i;
		for (n = 0; n < 8; n++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320 : 0);
	}
	for (i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ frames[i], LEN };
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		perror(argv[1]);
		return 1;
	}
	for (begin = seconds(); sent < count; sent += n) {
		for (i = 0; i < BATCH; i++) {
			memcpy(frames[i], frame, LEN);
			forge_req(frames[i]);
		}
		n = sendmmsg(fd, msgs, BATCH, 0);
		if (n < 0) {
			perror("sendmmsg");
			return 1;
		}
		due = begin + (double)sent / (double)rate - seconds();
		if (due > 0)
			nanosleep(&(struct timespec){ (long)due, (long)((due - (long)due) * 1e9) },
				NULL);
	}
	printf("%ld in %.3f s\n", sent, seconds() - begin);
	return 0;
}
