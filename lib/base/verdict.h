/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_VERDICT_H
#define BASE_VERDICT_H

/**
 * @file
 * The result of a received packet. Every packet gets exactly one verdict, every verdict has one
 * counter, and the counters of a worker sum to the packets it received (design.md rule 8).
 *
 * This table is the only list: names in stats_get, on the telemetry socket and in the documents
 * come from it. Names follow the usage of rdma-tool, mlx5 and rxe where they have one.
 */

enum verdict_kind {
	VERDICT_SERVED, /**< the packet had its effect, or was answered as the standard says */
	VERDICT_DROPPED, /**< silently dropped, for the reason named */
};

/* X(NAME, name, kind, help) */
/* clang-format off */
#define VERDICTS(X)                                                                                \
	/* served */                                                                               \
	X(REQUEST, request, SERVED, "new request packet executed")                                 \
	X(RESPONSE, response, SERVED, "response that advanced the requester")                      \
	X(DUPLICATE_REQUEST, duplicate_request, SERVED, "request already executed: answered again, or its answer is on its way") \
	X(NAK_SENT, nak_sent, SERVED, "request answered with a NAK")                               \
	X(RNR_NAK_SENT, rnr_nak_sent, SERVED, "request answered with an RNR NAK")                  \
	X(DATAGRAM, datagram, SERVED, "UD packet delivered")                                       \
	X(CNP, cnp, SERVED, "congestion notification packet counted")                              \
	X(ARP, arp, SERVED, "ARP packet")                                                          \
	X(ND, nd, SERVED, "IPv6 neighbour discovery packet")                                       \
	X(ICMP, icmp, SERVED, "ICMP or ICMPv6 packet")                                             \
	/* lib/link: before the transport header */                                                \
	X(RUNT, runt, DROPPED, "frame shorter than its headers")                                   \
	X(NOT_OUR_MAC, not_our_mac, DROPPED, "destination MAC is not ours")                        \
	X(NOT_OUR_VLAN, not_our_vlan, DROPPED, "VLAN is not the port's")                           \
	X(NOT_OUR_IP, not_our_ip, DROPPED, "destination address is not one of the port's")         \
	X(ETHERTYPE, ethertype, DROPPED, "EtherType that this port does not speak")                \
	X(IP_HEADER, ip_header, DROPPED, "malformed IPv4 or IPv6 header")                          \
	X(SOURCE, source, DROPPED, "source is no address of a host: zero, loopback, multicast or broadcast") \
	X(IP_CHECKSUM, ip_checksum, DROPPED, "IPv4 header checksum wrong")                         \
	X(IP_FRAGMENT, ip_fragment, DROPPED, "IP fragment")                                        \
	X(IP_PROTOCOL, ip_protocol, DROPPED, "IP protocol that this port does not speak")          \
	X(UDP_PORT, udp_port, DROPPED, "UDP port is not 4791")                                     \
	X(UDP_LENGTH, udp_length, DROPPED, "UDP length does not fit the IP length")                \
	X(NOT_OUR_LID, not_our_lid, DROPPED, "destination LID is not one of the port's")           \
	X(PORT_STATE, port_state, DROPPED, "data packet on a port that is neither armed nor active, any on a disabled one") \
	X(NO_MBUF, no_mbuf, DROPPED, "no buffer to linearise a chained frame or to answer")        \
	/* lib/wire: the transport packet itself (rc-transport 5) */                               \
	X(LENGTH, length, DROPPED, "shorter than the opcode's headers, padding and ICRC")          \
	X(GRH, grh, DROPPED, "malformed LRH or GRH")                                               \
	X(OPCODE, opcode, DROPPED, "unknown opcode")                                               \
	X(TVER, tver, DROPPED, "transport version is not 0")                                       \
	X(ICRC, icrc, DROPPED, "ICRC wrong")                                                       \
	X(VCRC, vcrc, DROPPED, "VCRC wrong")                                                       \
	/* before the queue pair (rc-transport 5) */                                               \
	X(QPN_UNKNOWN, qpn_unknown, DROPPED, "no queue pair of this number")                       \
	X(QP_TYPE, qp_type, DROPPED, "opcode class does not fit the queue pair's type")            \
	X(QP_STATE, qp_state, DROPPED, "queue pair is not in a state that receives this")          \
	X(ADDRESS, address, DROPPED, "source or destination is not the queue pair's address")      \
	X(PKEY, pkey_violation, DROPPED, "P_Key does not match")                                   \
	X(QKEY, qkey_violation, DROPPED, "Q_Key does not match")                                   \
	X(MULTICAST, multicast, DROPPED, "multicast to a queue pair that is not attached")         \
	X(HANDOFF_FULL, handoff_full, DROPPED, "hand-off ring to the owning worker is full")       \
	/* lib/rc: responder (rc-transport 6 and 7) */                                             \
	X(OUT_OF_SEQUENCE, out_of_sequence, DROPPED, "PSN ahead of ePSN, sequence NAK outstanding") \
	X(RNR_WAIT, rnr_wait, DROPPED, "PSN ahead of ePSN after an RNR NAK")                       \
	X(DUPLICATE_READ, duplicate_read, DROPPED, "duplicate Read that is not part of a saved one") \
	X(DUPLICATE_ATOMIC, duplicate_atomic, DROPPED, "duplicate Atomic without a saved result")  \
	/* lib/rc: requester (rc-transport 8, rc-cases) */                                         \
	X(GHOST_RESPONSE, ghost_response, DROPPED, "response to a PSN that was never sent")        \
	X(DUPLICATE_RESPONSE, duplicate_response, DROPPED, "response to a PSN already retired")    \
	X(STALE_NAK, stale_nak, DROPPED, "NAK repeated in a round of retries, or in an RNR wait")  \
	X(READ_OUT_OF_ORDER, read_out_of_order, DROPPED, "Read response other than the next one: one before it is missing") \
	X(IMPLIED_NAK, implied_nak_seq_err, DROPPED, "ACK, NAK or response to a later request, while a Read or Atomic has no response") \
	X(ACK_PAYLOAD, ack_payload, DROPPED, "Acknowledge or Atomic Acknowledge with a payload")   \
	X(SYNDROME, syndrome, DROPPED, "reserved AETH syndrome")                                   \
	/* lib/mad: datagrams for QP1 (sa-multipacket) */                                          \
	X(MAD_LENGTH, mad_length, DROPPED, "datagram for QP1 is not 256 bytes long")               \
	X(MAD_VERSION, mad_version, DROPPED, "MAD base version is not 1")                          \
	X(MAD_UNMATCHED, mad_unmatched, DROPPED, "response or control packet of no transaction")   \
	X(NOT_ALLOWED, not_allowed, DROPPED, "source is not in the allow list of the SA")             \
	X(MAD_DISCARDED, mad_discarded, DROPPED, "segment out of order or repeated, or old Ack")   \
	X(MAD_REFUSED, mad_refused, DROPPED, "no session or memory for a request")                 \
	X(RATE_LIMITED, rate_limited, DROPPED, "request beyond its source's rate")                 \
	/* subnet management packets (smp-sma 6) */                                                \
	X(VL15_DROPPED, vl15_dropped, DROPPED, "the VL15 buffer of the port was full")             \
	X(SMP, smp_invalid, DROPPED, "no SMP: VL, GRH, QP, class or port type is wrong")           \
	X(SMP_ROUTE, smp_route, DROPPED, "directed route that does not end at this port")          \
	X(SMP_NO_SM, smp_no_sm, DROPPED, "SMP for a subnet manager, and none runs here")           \
	X(MKEY, mkey_violation, DROPPED, "M_Key does not match")
/* clang-format on */

enum verdict {
#define X(NAME, name, kind, help) VERDICT_##NAME,
	VERDICTS(X)
#undef X
		VERDICT_COUNT
};

struct verdict_info {
	const char *name;
	const char *help;
	enum verdict_kind kind;
};

/** One row per verdict, in the order of enum verdict. */
extern const struct verdict_info verdict_infos[VERDICT_COUNT];

#endif
