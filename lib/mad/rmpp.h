/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_RMPP_H
#define MAD_RMPP_H

/**
 * @file
 * Private to rmpp_*.c: RMPP version 1 (sa-multipacket B). rmpp.c has the life of a session and
 * packets without one, rmpp_send.c the sender's state machine (B5), rmpp_receive.c the receiver's
 * (B6), rmpp_end.c the end of either, rmpp_packet.c the packet format.
 */

#include "mad/session.h"

#define RMPP_WORK_CLOSE   (MAD_WORK_PROTOCOL << 0) /* send ABORT or STOP, then end */
#define RMPP_WORK_ACK     (MAD_WORK_PROTOCOL << 1) /* acknowledge the peer's stream */
#define RMPP_WORK_READY   (MAD_WORK_PROTOCOL << 2) /* send ACK 0: ready for the reply (B5) */
#define RMPP_WORK_SINGLE  (MAD_WORK_PROTOCOL << 3) /* send s->mad unchanged */
#define RMPP_WORK_MISSING (MAD_WORK_PROTOCOL << 4) /* send segment acked + 1 again */
#define RMPP_WORK_DRAW    (MAD_WORK_PROTOCOL << 5) /* send segment acked again to draw an ACK */
#define RMPP_WORK_TAIL    (MAD_WORK_PROTOCOL << 6) /* send the last segment sent again */

#define RMPP_ACK_TIMER_MS 2000 /* B5 */
#define RMPP_LINGER_MS    10000 /* B6 */
/* the overall timer is extended after this many segments, so that a long table can end */
#define RMPP_OVERALL_SEGMENTS 1024
#define RMPP_HOLD_SLOT        256
#define RMPP_WINDOW_MAX       ((uint32_t)RMPP_HOLD_CHUNKS * MAD_CHUNK / RMPP_HOLD_SLOT)

/* --- rmpp_packet.c --- */

struct rmpp_header {
	uint8_t type;
	uint8_t flags; /* RMPP_FIRST, RMPP_LAST; rmpp_put_header() adds Active */
	uint8_t status;
	uint32_t segment;
	uint32_t length; /* or NewWindowLast */
};

/* Bytes of the class header, which every PayloadLength includes (B4). */
static inline uint32_t
rmpp_class_header(const struct mad_session *s)
{
	return s->data_offset - RMPP_HEADER_LEN;
}

static inline uint32_t
rmpp_area(const struct mad_session *s)
{
	return MAD_LEN - s->data_offset;
}

static inline bool
rmpp_active(const uint8_t *mad)
{
	return mad[RMPP_OFF_FLAGS] & RMPP_ACTIVE;
}

void rmpp_put_header(uint8_t *mad, const struct rmpp_header *h);
/* Build a control packet without data, with the common and class header of s->mad. */
void rmpp_put_control(const struct mad_session *s, uint8_t *mad, const struct rmpp_header *h);
/* PayloadLength of segment n (B4). */
uint32_t rmpp_payload_length(const struct mad_session *s, uint32_t n);
/* Check a packet without regard to its session (B3, B5, B6). @return status of the ABORT, or 0 */
uint8_t rmpp_fault(const uint8_t *mad);
/* Answer a packet that has no session with ABORT or STOP. */
enum verdict rmpp_answer(const struct mad_rx *rx, uint8_t type, uint8_t status);

/* --- rmpp_end.c --- */

/* Give back the segments that came early. */
void rmpp_drop_held(struct mad_session *s);
/* Send an ABORT or STOP, then end with `end` and `error`. */
void rmpp_close(struct mad_session *s, uint8_t type, uint8_t status, enum mad_end end, int error);
/* The peer broke the protocol: send an ABORT and end. */
enum verdict rmpp_reject(struct mad_session *s, uint8_t status);
void rmpp_finish(struct mad_session *s, enum mad_end end, uint8_t rmpp_status, int error);
/* Set the timer to whatever is due first. */
void rmpp_arm(struct mad_session *s);

/* --- rmpp_send.c --- */

void rmpp_start_sending(struct mad_session *s);
enum verdict rmpp_receive_ack(struct mad_session *s, const struct mad_rx *rx);
/* Send one packet of the stream. @return 1, or 0: the sink is full; *gone: the session has ended */
unsigned int rmpp_send_segment(struct mad_session *s, bool *gone);
/* The ACK timer or the probe timer expired. */
void rmpp_sender_expired(struct mad_session *s);
/* The receiver seems to miss segment acked + 1: send it again. */
void rmpp_missing(struct mad_session *s);

static inline bool
rmpp_sending(const struct mad_session *s)
{
	return s->state == MAD_STATE_BURST || s->state == MAD_STATE_WAIT;
}

/* --- rmpp_receive.c --- */

void rmpp_start_receiving(struct mad_session *s);
enum verdict rmpp_receive_data(struct mad_session *s, const struct mad_rx *rx);
void rmpp_put_ack(struct mad_session *s, uint8_t *mad);

#endif
