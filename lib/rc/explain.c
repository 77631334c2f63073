/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Why a queue pair failed, in words: the one table from enum qp_failure_reason to an explanation.
 * The rules cite docs/spec/rc-transport.md by section, and the row of docs/conformance.md.
 */

#include <inttypes.h>

#include "base/line.h"
#include "rc/rc.h"
#include "wire/wire.h"

#define RESPONDER(text) "rc-transport 6, " text
#define REQUESTER(text) "rc-transport 8, " text

const struct qp_failure_info qp_failure_infos[QP_FAILURE_REASONS] = {
	[QP_FAILURE_NONE] = { "none", QP_SIDE_NEITHER,
		"nothing has failed since the queue pair left RESET", "nothing",
		"rc-transport 11: states of a queue pair",
		"if it does not get on: qp trace, after trace start qp" },
	[QP_FAILURE_MODIFIED] = { "modified", QP_SIDE_NEITHER,
		"its consumer moved it to ERR: a qp modify, its connection or its service",
		"nothing: any state but RESET may go to ERR",
		"rc-transport 11, any but RESET -> ERR; conformance T11.4",
		"events: the end of its connection gives the reason; only RESET leads out of ERR" },
	[QP_FAILURE_SEQUENCE] = { "opcode_sequence", QP_SIDE_RESPONDER,
		"its opcode does not follow the packet before it",
		"an Only or a First outside of a message; within one a Middle or a Last of the same operation",
		RESPONDER("row 2: opcode out of sequence, NAK 0x61; conformance T6.2"),
		"the peer's driver: it mixes two messages, or left one unfinished" },
	[QP_FAILURE_OPCODE] = { "opcode", QP_SIDE_RESPONDER,
		"its opcode is reserved, or no request that this queue pair executes",
		"a Send, RDMA Write, RDMA Read or Atomic",
		RESPONDER("row 3: opcode reserved or unsupported, NAK 0x61; conformance T6.3"),
		"which extension the peer uses (Flush and Atomic Write are not supported)" },
	[QP_FAILURE_NOT_ENABLED] = { "not_enabled", QP_SIDE_RESPONDER,
		"the queue pair does not allow this operation",
		"an operation that qp_access_flags of the queue pair allow",
		RESPONDER("row 3: RDMA or Atomic not enabled, NAK 0x61; conformance T6.4"),
		"qp show: qp_access_flags; allow remote_write, remote_read or remote_atomic at qp connect" },
	[QP_FAILURE_NO_ROOM] = { "too_many_reads", QP_SIDE_RESPONDER,
		"more Reads and Atomics are outstanding than were agreed",
		"at most max_dest_rd_atomic of them at a time",
		RESPONDER(
			"row 4b: Read or Atomic beyond max_dest_rd_atomic, NAK 0x61; conformance T6.6"),
		"qp show: max_dest_rd_atomic; the peer's max_rd_atomic must not be larger" },
	[QP_FAILURE_LENGTH] = { "length", QP_SIDE_RESPONDER,
		"its payload does not have the length that its opcode requires",
		"First and Middle: exactly the path MTU, no padding; Last: 1 byte to the MTU; Only: up to the MTU",
		RESPONDER("row 5: lengths, NAK 0x61; conformance T6.7"),
		"qp show: path_mtu must be the same at both ends" },
	[QP_FAILURE_DMALEN] = { "dma_length", QP_SIDE_RESPONDER,
		"the length in its RETH is above 2^31, or is not the sum of the payloads",
		"a DMA length of at most 2^31 bytes, which the payloads of the Write add up to",
		RESPONDER("rows 5 and 5b: DMALen, NAK 0x61; conformance T6.9, T6.10"),
		"the peer's driver: it sends more or less than it announced" },
	[QP_FAILURE_SEND_TOO_LONG] = { "send_too_long", QP_SIDE_RESPONDER,
		"the Send is longer than the receive request at its turn",
		"a Send that fits the scatter list of the oldest receive request",
		RESPONDER("row 5: Send longer than the scatter list, NAK 0x61; conformance T6.8"),
		"the lengths given to post recv, and that both ends agree on message sizes" },
	[QP_FAILURE_ALIGNMENT] = { "alignment", QP_SIDE_RESPONDER,
		"the address of the Atomic is not a multiple of 8",
		"an address that is a multiple of 8",
		RESPONDER("row 6: Atomic VA not aligned, NAK 0x61; conformance T6.11"),
		"the peer's remote_addr" },
	[QP_FAILURE_RKEY] = { "remote_key", QP_SIDE_RESPONDER,
		"its R_Key is not valid, of another protection domain, or does not give the right",
		"the R_Key of a region or window of the queue pair's domain with the right to read, write or use Atomics",
		RESPONDER("row 7: R_Key and rights, NAK 0x62; conformance T6.12, T6.16"),
		"mr list: the key and access of the region; was it deregistered or its window invalidated?" },
	[QP_FAILURE_RANGE] = { "range", QP_SIDE_RESPONDER,
		"the bytes it names are not all inside the region",
		"an address and a length inside the region or window of the R_Key",
		RESPONDER("row 7: range, NAK 0x62; conformance T6.12"),
		"mr list: va and length of the region; the peer's remote_addr and length" },
	[QP_FAILURE_SCATTER] = { "receive_memory", QP_SIDE_RESPONDER,
		"the memory of our receive request cannot be written",
		"an L_Key of a valid region of the receive queue's domain, with local_write",
		RESPONDER("row 8: local fault, NAK 0x63; conformance T6.14"),
		"lkey, addr and length given to post recv; was the region deregistered since?" },
	[QP_FAILURE_READ_MEMORY] = { "read_memory", QP_SIDE_RESPONDER,
		"the region of a Read went away before all its responses were sent",
		"a region that stays until the Read is answered",
		"seed 001 and rc-cases: region deregistered during a Read, NAK 0x62 in place of the response; conformance T6.15, C.14",
		"who deregistered the region, or invalidated the window, while the peer was reading" },
	[QP_FAILURE_NAK_INVALID] = { "nak_invalid_request", QP_SIDE_REQUESTER,
		"the peer answered with NAK 0x61, invalid request", "an ACK or a response",
		REQUESTER("NAK 0x61: no retry, REM_INV_REQ_ERR; conformance T8.7"),
		"the peer's queue pair: allowed operations, max_dest_rd_atomic, length of its receive requests, path MTU" },
	[QP_FAILURE_NAK_ACCESS] = { "nak_remote_access", QP_SIDE_REQUESTER,
		"the peer answered with NAK 0x62, remote access error", "an ACK or a response",
		REQUESTER("NAK 0x62: no retry, REM_ACCESS_ERR; conformance T8.7"),
		"rkey, remote_addr and length of the work request, and the rights of the peer's region" },
	[QP_FAILURE_NAK_OPERATION] = { "nak_remote_operation", QP_SIDE_REQUESTER,
		"the peer answered with NAK 0x63, remote operational error", "an ACK or a response",
		REQUESTER("NAK 0x63: no retry, REM_OP_ERR; conformance T8.7"),
		"the peer's receive requests: their memory cannot be written" },
	[QP_FAILURE_RETRIES] = { "retries", QP_SIDE_REQUESTER,
		"no answer came that ends this request, in spite of all retries; to a Read or Atomic, an answer to a later packet is none (implied NAK)",
		"an ACK, NAK or response within the Local ACK Timeout; to a Read or Atomic its own response, before any answer to a later packet",
		REQUESTER(
			"timeout, NAK 0x60 and implied NAK: retry_cnt used up, RETRY_EXC_ERR; conformance T8.3, T8.8, C.3"),
		"which of its counters rose: local_ack_timeout_err, the peer is silent: does it run, is its queue pair in RTS (ping); rcvd_seq_err, requests are lost; implied_nak_seq_err, responses are lost: losses on the way (port list, stats get); timeout and retry_cnt" },
	[QP_FAILURE_RNR_RETRIES] = { "rnr_retries", QP_SIDE_REQUESTER,
		"the peer answered each try with an RNR NAK: it has no receive request posted",
		"a receive request at the peer within rnr_retry tries",
		REQUESTER("RNR NAK: rnr_retry used up, RNR_RETRY_EXC_ERR; conformance T8.5"),
		"post recv at the peer; rnr_retry 7 tries without end" },
	[QP_FAILURE_BAD_RESPONSE] = { "bad_response", QP_SIDE_REQUESTER,
		"the response has a wrong length, or is not of the kind of the request",
		"Read responses of the path MTU that add up to the Read's length, or an Atomic Acknowledge",
		REQUESTER(
			"Read data too long or short, or wrong AETH: BAD_RESP_ERR; conformance T8.9"),
		"qp show: path_mtu must be the same at both ends; the peer's driver" },
	[QP_FAILURE_LKEY] = { "local_key", QP_SIDE_REQUESTER,
		"an L_Key of the work request does not allow the access",
		"L_Keys of valid regions of the domain; local_write where a Read or Atomic puts its data",
		REQUESTER("scatter fails locally: LOC_PROT_ERR; conformance T8.10, T8.15"),
		"lkey, addr and length given to post send; was the region deregistered since?" },
	[QP_FAILURE_RD_ATOMIC] = { "no_reads_allowed", QP_SIDE_REQUESTER,
		"a Read or Atomic was posted, but max_rd_atomic of the queue pair is 0",
		"a queue pair whose max_rd_atomic is at least 1",
		"rc-transport 11: MAX_QP_RD_ATOMIC; LOC_QP_OP_ERR",
		"qp connect with max_rd_atomic, and the peer's max_dest_rd_atomic" },
	[QP_FAILURE_BIND] = { "bind", QP_SIDE_REQUESTER,
		"a window could not be bound, or a key not be invalidated",
		"a window and a region of the same domain, the right mw_bind, and a range inside the region",
		"IBA: memory windows, MW_BIND_ERR; conformance M.4, M.5",
		"the keys, access and range given to post send; mr list, mw list" },
	[QP_FAILURE_CQ_OVERRUN] = { "cq_overrun", QP_SIDE_NEITHER,
		"a completion found its completion queue full",
		"a completion queue that is polled, and has room for all work requests posted",
		"rc-transport 11: a full CQ raises CQ_ERR, its queue pairs go to ERR; conformance T11.8",
		"cq list: depth, pending; poll it, or make it as deep as all queues that use it" },
};

const char *
qp_failure_received(const struct qp_failure *f, char buf[QP_EXPLAIN_MAX])
{
	const struct qp_failure_info *info = &qp_failure_infos[f->reason];
	struct line l = { buf, QP_EXPLAIN_MAX, 0 };

	RTE_ASSERT(f->reason < QP_FAILURE_REASONS);
	if (info->side == QP_SIDE_RESPONDER)
		line_put(&l, "%s with PSN %" PRIu32 ", %" PRIu32 " bytes of payload: ",
			opcodes[f->opcode].name != NULL ? opcodes[f->opcode].name : "a packet",
			f->psn, f->length);
	else if (info->side == QP_SIDE_REQUESTER)
		line_put(&l, "our %s, PSN %" PRIu32 ": ", wr_opcode_name(f->opcode), f->psn);
	line_put(&l, "%s", info->happened);
	return buf;
}

const char *
qp_failure_expected(const struct qp_failure *f, char buf[QP_EXPLAIN_MAX])
{
	const struct qp_failure_info *info = &qp_failure_infos[f->reason];
	struct line l = { buf, QP_EXPLAIN_MAX, 0 };

	RTE_ASSERT(f->reason < QP_FAILURE_REASONS);
	if (info->side != QP_SIDE_NEITHER)
		line_put(&l, "PSN %" PRIu32 "; ", f->expected);
	line_put(&l, "%s", info->expected);
	return buf;
}
