/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_TIMING_H
#define CM_TIMING_H

/**
 * @file
 * Times of the communication manager (cm.md 4, 5). A code v of 5 bits stands for 4.096 us * 2^v;
 * the state machine counts in milliseconds, as Linux does.
 */

#include <stdint.h>

#define CM_TIME_CODE_MAX 31

/** Milliseconds, rounded as Linux does: 1 << max(v - 8, 0). Codes beyond 31 count as 31. */
uint32_t cm_ms(uint8_t code);

/**
 * LocalAckTimeout: the round trip time plus the ack delay of the responding CA. A REQ is sent with
 * the sender's own delay; the active side computes it again with the TargetAckDelay of the REP.
 *
 * @param packet_life  PacketLifeTime of the path, a code
 * @param ack_delay    CA ack delay, a code
 * @return a code
 */
uint8_t cm_ack_timeout(uint8_t packet_life, uint8_t ack_delay);

/* Retry intervals, ms. */
/**
 * REQ: twice the packet life time plus the response timeout. @param remote_response_timeout  of the
 * REQ
 */
uint32_t cm_req_interval_ms(uint8_t packet_life, uint8_t remote_response_timeout);
/** REP. @param local_response_timeout  of the REQ */
uint32_t cm_rep_interval_ms(uint8_t local_response_timeout);
/** After a received MRA: the peer's service timeout plus the ack timeout of the QP. */
uint32_t cm_mra_interval_ms(uint8_t service_timeout, uint8_t ack_timeout);
/** How long TIMEWAIT lasts. @param ack_timeout  of the QP */
uint32_t cm_timewait_ms(uint8_t ack_timeout);

#endif
