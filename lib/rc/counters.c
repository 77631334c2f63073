/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "rc/rc.h"

/* Name and help of each field of struct rc_counters, in its order */
/* clang-format off */
#define COUNTERS(X)                                                                                \
	X(sent_pkts, "packets sent")                                                               \
	X(rcvd_pkts, "packets received that passed the checks before the queue pair")              \
	X(sent_bytes, "payload bytes sent")                                                        \
	X(rcvd_bytes, "payload bytes of executed requests and used responses")                     \
	X(ack_deferred, "ACKs saved by coalescing")                                                \
	X(rx_send_requests, "Sends executed")                                                      \
	X(rx_write_requests, "Writes executed")                                                    \
	X(rx_read_requests, "Read requests executed")                                              \
	X(duplicate_request, "request packets received again")                                     \
	X(out_of_sequence, "request packets ahead of the expected PSN")                            \
	X(rcvd_rnr_err, "RNR NAKs received")                                                       \
	X(send_rnr_err, "RNR NAKs sent")                                                           \
	X(rcvd_seq_err, "PSN sequence NAKs received")                                              \
	X(send_seq_err, "PSN sequence NAKs sent")                                                  \
	X(retry_exceeded_err, "work requests failed because the transport retries ran out")        \
	X(rnr_nak_retry_err, "work requests failed because the RNR retries ran out")               \
	X(local_ack_timeout_err, "times the transport timer expired")                              \
	X(implied_nak_seq_err, "responses that skipped a Read or an Atomic")                       \
	X(retransmitted_pkts, "request packets sent again")                                        \
	X(completer_retry_err, "times sending went back to an earlier PSN")                        \
	X(resp_remote_access_errors, "requests refused for their R_Key, range or rights")          \
	X(resp_invalid_requests, "requests refused as invalid")                                    \
	X(resp_local_length_error, "Sends longer than the buffers posted for them")                \
	X(req_remote_access_errors, "work requests the peer refused for key, range or rights")     \
	X(req_remote_invalid_request, "work requests the peer refused as invalid")                 \
	X(req_remote_operation_errors, "work requests the peer failed to execute")                 \
	X(rx_atomic_requests, "Atomics executed")                                                  \
	X(req_cqe_flush_error, "send completions flushed in error")                                \
	X(req_cqe_error, "send completions with another error")                                    \
	X(resp_cqe_flush_error, "receive completions flushed in error")                            \
	X(resp_cqe_error, "receive completions with another error")                                \
	X(cq_overrun, "queue pairs in error because their completion queue has overrun")           \
	X(tx_stall, "times the transmit sink had no packet")                                       \
	X(credit_stall, "times a Send waited for end-to-end credits")                              \
	X(np_ecn_marked_roce_packets, "packets received with ECN CE (congestion experienced)")     \
	X(np_cnp_sent, "congestion notification packets sent for them")                            \
	X(path_migrations, "times a queue pair went over to its alternate path")                   \
	X(rp_cnp_handled, "congestion notification packets that reduced a queue pair's rate")      \
	X(rp_cnp_ignored, "congestion notification packets too soon after another")                \
	X(rp_rate_limited, "times a queue pair waited for its rate")
/* clang-format on */

const struct rc_counter_info rc_counter_infos[] = {
#define X(name, help) { #name, help },
	COUNTERS(X)
#undef X
};

_Static_assert(sizeof(rc_counter_infos) / sizeof(rc_counter_infos[0]) == RC_COUNTER_COUNT,
	"one row per counter");

/* assert that rows and fields have the same order */
enum {
#define X(name, help) AT_##name,
	COUNTERS(X)
#undef X
};
#define X(name, help)                                                                              \
	_Static_assert(offsetof(struct rc_counters, name) == AT_##name * sizeof(uint64_t), #name);
COUNTERS(X)
#undef X
