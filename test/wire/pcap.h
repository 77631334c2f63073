/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_WIRE_PCAP_H
#define TEST_WIRE_PCAP_H

/* A reader of the classic pcap format in either byte order, sufficient for our own captures. */

#include <stdint.h>
#include <stdio.h>

#define PCAP_LINK_ETHERNET 1

struct pcap {
	FILE *file;
	int swapped;
	uint32_t link_type;
	uint8_t data[65536];
	uint32_t len; /* of the packet in data */
};

/* @retval -1 not a pcap file that can be read */
int pcap_open(struct pcap *p, const char *path);
/* @retval 1 a packet is in data, 0 end of file, -1 broken file */
int pcap_next(struct pcap *p);
void pcap_close(struct pcap *p);

#endif
