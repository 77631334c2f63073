/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_V1_H
#define MAD_V1_H

/**
 * @file
 * Private to v1.c and v1_*.c: multi-packet transactions of SA class version 1 (seed 000,
 * sa-multipacket A).
 */

#include "mad/core.h"

/* bits of s->work besides MAD_WORK_DATA, _REQUEST and _ANSWER */
#define V1_WORK_ACK       0x10
#define V1_WORK_RESEND    0x20
#define V1_WORK_KEEPALIVE 0x40
#define V1_WORK_LAST      0x80 /* send the last segment sent again */
#define V1_WORK_RELEASED  0x100 /* send a status: the segment asked for is gone */

#define V1_CONTROL (SA1_RESEND | SA1_ACK | SA1_KEEPALIVE)

/* The protocol's fields of a packet. */
struct v1_packet {
	const uint8_t *mad;
	uint8_t flags; /* SA1_*, in the default order */
	uint16_t status;
	uint16_t window;
	uint32_t segment;
	uint32_t length; /* PayloadLength */
};

/* v1_common.c */
/* FragmentFlag, to and from the wire */
uint8_t v1_flags(const struct mad_worker *w, uint8_t flags);
uint32_t v1_segments(const struct mad_session *s); /* number of segments of s->source */
bool v1_executes(const struct mad_session *s); /* the request changes state: execute it only once */
uint16_t v1_window(uint16_t window); /* 0 means the default, 64 (A5) */
/* Send a control packet: header of s->mad with this method, flag and segment. */
bool v1_send_control(struct mad_session *s, uint8_t method, uint8_t flag, uint32_t segment,
	uint16_t window);
/* End the session without telling the peer: there is no abort packet (A5). */
void v1_fail(struct mad_session *s, enum mad_end end, int error);
/* Build an answer without data and with this status. */
void v1_status(const struct mad_session *s, uint16_t status, uint8_t mad[MAD_LEN]);
/* Send the other side this status, then end. */
void v1_close(struct mad_session *s, uint16_t status);
/* A KeepAlive restarts the timer with the SegmentTimeout, or ends a session prolonged too long. */
enum verdict v1_keepalive(struct mad_session *s);
/* Note that the session made progress. */
void v1_progress(struct mad_session *s);

/* v1_send.c: the sender of A5 */
void v1_start_sending(struct mad_session *s, uint16_t window);
unsigned int v1_burst(struct mad_session *s, unsigned int budget);
bool v1_send_last(struct mad_session *s);
bool v1_send_released(struct mad_session *s);
enum verdict v1_sender_control(struct mad_session *s, const struct v1_packet *p);
void v1_sender_expire(struct mad_session *s);

/* v1_receive.c: the receiver of A5 */
void v1_start_receiving(struct mad_session *s, uint16_t window);
enum verdict v1_segment(struct mad_session *s, const struct v1_packet *p);
bool v1_send_ack(struct mad_session *s);
bool v1_send_resend(struct mad_session *s);
void v1_receiver_expire(struct mad_session *s);
/* True if the status answers a Resend request that our Ack has overtaken: ignore it. */
bool v1_overtaken(struct mad_session *s, const struct v1_packet *p);

#endif
