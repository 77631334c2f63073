/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The record tables: one row per component, in wire order. Layouts: sa-multipacket B10, smp-sma 3
 * and 5; mask bits: B11. A component in reserved space has a row if it has a mask bit.
 */

#include "record_private.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* name; first byte; width in bits; mask bit; kind, [words,] help */
#define F(name, byte, bits, mask, kind, help)  BITS(name, byte, 0, bits, mask, kind, help)
#define W(name, byte, bits, mask, words, help) WORD(name, byte, 0, bits, mask, words, help)
/* the same for a component within a byte: skip its first bits */
/* clang-format off */
#define BITS(name, byte, skip, bits, mask, kind, help)                                             \
	{ name, (byte)*8 + (skip), bits, mask, kind, 0, 0, false, NULL, help }
#define WORD(name, byte, skip, bits, mask, words, help)                                            \
	{ name, (byte)*8 + (skip), bits, mask, SA_WORD, 0, 0, false, words, help }
#define FLAGS(name, byte, skip, bits, mask, words, help)                                           \
	{ name, (byte)*8 + (skip), bits, mask, SA_FLAGS_WORD, 0, 0, false, words, help }
/* components that version 1 does not have */
#define BITS2(name, byte, skip, bits, mask, kind, help)                                            \
	{ name, (byte)*8 + (skip), bits, mask, kind, 0, 0, true, NULL, help }
#define FLAGS2(name, byte, skip, bits, mask, words, help)                                          \
	{ name, (byte)*8 + (skip), bits, mask, SA_FLAGS_WORD, 0, 0, true, words, help }
/* count numbers; components: 1 or count */
#define LIST(name, byte, bits, mask, kind, count, components, help)                                \
	{ name, (byte)*8, bits, mask, kind, count, components, false, NULL, help }
/* clang-format on */
#define RESERVED(byte, bits, mask) F("reserved", byte, bits, mask, SA_RESERVED, "")
#define RESERVED_BITS(byte, skip, bits, mask)                                                      \
	BITS("reserved", byte, skip, bits, mask, SA_RESERVED, "")
#define RESERVED2(byte, skip, bits, mask) BITS2("reserved", byte, skip, bits, mask, SA_RESERVED, "")

static const struct sa_field node_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of a port of the node"),
	RESERVED(2, 16, 1),
	F("base_version", 4, 8, 2, SA_DEC, "base version of its MADs"),
	F("class_version", 5, 8, 3, SA_DEC, "class version of its SMPs"),
	W("node_type", 6, 8, 4, sa_words_node_type, "what the node is"),
	F("num_ports", 7, 8, 5, SA_DEC, "ports of the node"),
	F("sys_guid", 8, 64, 6, SA_GUID, "system image GUID"),
	F("node_guid", 16, 64, 7, SA_GUID, "GUID of the node"),
	F("port_guid", 24, 64, 8, SA_GUID, "GUID of the port"),
	F("partition_cap", 32, 16, 9, SA_DEC, "entries of the P_Key table"),
	F("device_id", 34, 16, 10, SA_HEX, "device ID"),
	F("revision", 36, 32, 11, SA_HEX, "device revision"),
	F("port_num", 40, 8, 12, SA_DEC, "number of the port"),
	F("vendor_id", 41, 24, 13, SA_HEX, "vendor ID"),
	F("node_desc", 44, 512, 14, SA_TEXT, "description of the node"),
};

static const struct sa_field port_info_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the port (switch: of port 0)"),
	F("port_num", 2, 8, 1, SA_DEC, "number of the port"),
	F("options", 3, 8, 2, SA_HEX, "which form of PortInfo"),
	F("m_key", 4, 64, 3, SA_HEX, "management key"),
	F("gid_prefix", 12, 64, 4, SA_HEX, "subnet prefix"),
	F("base_lid", 20, 16, 5, SA_LID, "base LID"),
	F("sm_lid", 22, 16, 6, SA_LID, "LID of the master SM"),
	F("capability_mask", 24, 32, 7, SA_HEX, "what the port can do"),
	F("diag_code", 28, 16, 8, SA_HEX, "diagnostic code"),
	F("m_key_lease_period", 30, 16, 9, SA_DEC, "lease of the M_Key, seconds"),
	F("local_port_num", 32, 8, 10, SA_DEC, "port that the query came in by"),
	FLAGS("link_width_enabled", 33, 0, 8, 11, sa_words_width, "widths allowed"),
	FLAGS("link_width_supported", 34, 0, 8, 12, sa_words_width, "widths possible"),
	FLAGS("link_width_active", 35, 0, 8, 13, sa_words_width, "width in use"),
	FLAGS("link_speed_supported", 36, 0, 4, 14, sa_words_speed, "speeds possible"),
	WORD("port_state", 36, 4, 4, 15, sa_words_port_state, "logical state"),
	W("port_phys_state", 37, 4, 16, sa_words_phys_state, "physical state"),
	WORD("link_down_default", 37, 4, 4, 17, sa_words_phys_state, "state after link down"),
	F("m_key_protect_bits", 38, 2, 18, SA_DEC, "what the M_Key protects"),
	RESERVED_BITS(38, 2, 3, 19),
	BITS("lmc", 38, 5, 3, 20, SA_DEC, "2^lmc LIDs from the base LID on"),
	FLAGS("link_speed_active", 39, 0, 4, 21, sa_words_speed, "speed in use"),
	FLAGS("link_speed_enabled", 39, 4, 4, 22, sa_words_speed, "speeds allowed"),
	W("neighbor_mtu", 40, 4, 23, sa_words_mtu, "MTU in use"),
	BITS("sm_sl", 40, 4, 4, 24, SA_DEC, "SL to the master SM"),
	W("vl_cap", 41, 4, 25, sa_words_vls, "virtual lanes possible"),
	BITS("init_type", 41, 4, 4, 26, SA_HEX, "initialization asked for"),
	F("vl_high_limit", 42, 8, 27, SA_DEC, "limit of high priority"),
	F("vl_arb_high_cap", 43, 8, 28, SA_DEC, "entries for high priority"),
	F("vl_arb_low_cap", 44, 8, 29, SA_DEC, "entries for low priority"),
	F("init_type_reply", 45, 4, 30, SA_HEX, "initialization done"),
	WORD("mtu_cap", 45, 4, 4, 31, sa_words_mtu, "largest MTU"),
	F("vl_stall_count", 46, 3, 32, SA_DEC, "drops until a lane stalls"),
	BITS("hoq_life", 46, 3, 5, 33, SA_DEC, "head of queue lifetime, a code"),
	W("oper_vls", 47, 4, 34, sa_words_vls, "virtual lanes in use"),
	BITS("part_enforce_in", 47, 4, 1, 35, SA_DEC, "P_Keys checked inbound"),
	BITS("part_enforce_out", 47, 5, 1, 36, SA_DEC, "P_Keys checked outbound"),
	BITS("filter_raw_in", 47, 6, 1, 37, SA_DEC, "raw packets filtered inbound"),
	BITS("filter_raw_out", 47, 7, 1, 38, SA_DEC, "raw packets filtered outbound"),
	F("m_key_violations", 48, 16, 39, SA_DEC, "SMPs with a bad M_Key"),
	F("p_key_violations", 50, 16, 40, SA_DEC, "packets with a bad P_Key"),
	F("q_key_violations", 52, 16, 41, SA_DEC, "packets with a bad Q_Key"),
	F("guid_cap", 54, 8, 42, SA_DEC, "entries of GUIDInfo"),
	BITS2("client_reregister", 55, 0, 1, 43, SA_DEC, "subscribe and join again"),
	RESERVED_BITS(55, 1, 2, 44),
	BITS("subnet_timeout", 55, 3, 5, 45, SA_DEC, "4.096 us * 2^n: flight time in the subnet"),
	RESERVED(56, 3, 46),
	BITS("resp_time_value", 56, 3, 5, 47, SA_DEC, "4.096 us * 2^n: time to answer"),
	F("local_phy_errors", 57, 4, 48, SA_DEC, "threshold of local link errors"),
	BITS("overrun_errors", 57, 4, 4, 49, SA_DEC, "threshold of buffer overruns"),
	BITS2("max_credit_hint", 58, 0, 16, 50, SA_DEC, "credits wanted"),
	RESERVED2(60, 0, 8, 51),
	BITS2("link_round_trip_latency", 61, 0, 24, 52, SA_DEC, "in 4 ns"),
	BITS2("capability_mask2", 64, 0, 16, 53, SA_HEX, "what else the port can do"),
	FLAGS2("link_speed_ext_active", 66, 0, 4, 54, sa_words_speed_ext, "extended speed in use"),
	FLAGS2("link_speed_ext_supported", 66, 4, 4, 55, sa_words_speed_ext,
		"extended speeds possible"),
	RESERVED2(67, 0, 3, 56),
	FLAGS2("link_speed_ext_enabled", 67, 3, 5, 57, sa_words_speed_ext,
		"extended speeds allowed"),
};

static const struct sa_field sm_info_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the SM"),
	RESERVED(2, 16, 1),
	F("guid", 4, 64, 2, SA_GUID, "port GUID of the SM"),
	F("sm_key", 12, 64, 3, SA_HEX, "its SM_Key"),
	F("act_count", 20, 32, 4, SA_DEC, "counts on while it lives"),
	F("priority", 24, 4, 5, SA_DEC, "the higher becomes master"),
	WORD("sm_state", 24, 4, 4, 6, sa_words_sm_state, "what it does"),
};

static const struct sa_field switch_info_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the switch's port 0"),
	RESERVED(2, 16, 1),
	F("lin_cap", 4, 16, 2, SA_DEC, "entries of the linear forwarding table"),
	F("rand_cap", 6, 16, 3, SA_DEC, "entries of the random forwarding table"),
	F("mcast_cap", 8, 16, 4, SA_DEC, "entries of the multicast forwarding table"),
	F("lin_top", 10, 16, 5, SA_DEC, "last LID in use of the linear table"),
	F("def_port", 12, 8, 6, SA_DEC, "where unknown LIDs go"),
	F("def_mcast_pri_port", 13, 8, 7, SA_DEC, "where unknown multicast goes"),
	F("def_mcast_not_port", 14, 8, 8, SA_DEC, "and where from that port"),
	F("life_time_value", 15, 5, 9, SA_DEC, "4.096 us * 2^n: longest stay in the switch"),
	BITS("port_state_change", 15, 5, 1, 10, SA_DEC, "a port changed its state"),
	BITS("optimized_sltovl", 15, 6, 2, 11, SA_DEC, "optimized SL to VL programming"),
	F("lids_per_port", 16, 16, 12, SA_DEC, "LID/LMC combinations of a port"),
	F("part_enforce_cap", 18, 16, 13, SA_DEC, "P_Keys it can enforce on a port"),
	F("inbound_enforce", 20, 1, 14, SA_DEC, "can check P_Keys inbound"),
	BITS("outbound_enforce", 20, 1, 1, 15, SA_DEC, "can check P_Keys outbound"),
	BITS("filter_raw_in_cap", 20, 2, 1, 16, SA_DEC, "can filter raw packets inbound"),
	BITS("filter_raw_out_cap", 20, 3, 1, 17, SA_DEC, "can filter raw packets outbound"),
	BITS("enhanced_port0", 20, 4, 1, 18, SA_DEC, "port 0 is an endport like others"),
	F("mcast_top", 22, 16, -1, SA_LID, "last MLID in use"),
};

static const struct sa_field link_fields[] = {
	F("from_lid", 0, 16, 0, SA_LID, "LID at one end"),
	F("from_port", 2, 8, 1, SA_DEC, "port at one end"),
	F("to_port", 3, 8, 2, SA_DEC, "port at the other end"),
	F("to_lid", 4, 16, 3, SA_LID, "LID at the other end"),
};

static const struct sa_field guid_info_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the port"),
	F("block_num", 2, 8, 1, SA_DEC, "which block of 8 GUIDs"),
	RESERVED(3, 8, 2),
	RESERVED(4, 32, 3),
	F("guid0", 8, 64, 4, SA_GUID, "GUID; of block 0 the port's"),
	F("guid1", 16, 64, 5, SA_GUID, "GUID"),
	F("guid2", 24, 64, 6, SA_GUID, "GUID"),
	F("guid3", 32, 64, 7, SA_GUID, "GUID"),
	F("guid4", 40, 64, 8, SA_GUID, "GUID"),
	F("guid5", 48, 64, 9, SA_GUID, "GUID"),
	F("guid6", 56, 64, 10, SA_GUID, "GUID"),
	F("guid7", 64, 64, 11, SA_GUID, "GUID"),
};

static const struct sa_field pkey_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the port"),
	F("block_num", 2, 16, 1, SA_DEC, "which block of 32 P_Keys"),
	F("port_num", 4, 8, 2, SA_DEC, "number of the port"),
	RESERVED(5, 24, 3),
	LIST("pkeys", 8, 512, 4, SA_HEX_LIST, 32, 1, "P_Keys; 0x8000: full member"),
};

static const struct sa_field sltovl_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the port"),
	F("in_port", 2, 8, 1, SA_DEC, "input port of a switch"),
	F("out_port", 3, 8, 2, SA_DEC, "output port of a switch"),
	RESERVED(4, 32, 3),
	LIST("vls", 8, 64, 4, SA_DEC_LIST, 16, 16, "VL of each SL from 0 to 15"),
};

static const struct sa_field vlarb_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the port"),
	F("port_num", 2, 8, 1, SA_DEC, "output port"),
	F("block_num", 3, 8, 2, SA_DEC, "1, 2: low priority; 3, 4: high priority"),
	RESERVED(4, 32, 3),
	LIST("entries", 8, 512, 4, SA_HEX_LIST, 32, 1, "VL in the upper byte, weight in the lower"),
};

static const struct sa_field lft_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the switch"),
	F("block_num", 2, 16, 1, SA_DEC, "which block of 64 LIDs"),
	RESERVED(4, 32, 2),
	LIST("ports", 8, 512, 3, SA_DEC_LIST, 64, 1,
		"port that each LID of the block leaves by; 255: none"),
};

static const struct sa_field rft_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the switch"),
	F("block_num", 2, 16, 1, SA_DEC, "which block of 16 entries"),
	RESERVED(4, 32, 2),
	LIST("entries", 8, 512, 3, SA_HEX_LIST, 16, 1,
		"LID in the upper 16 bits, 0x8000: valid, LMC in the next 3, port in the lowest 8"),
};

static const struct sa_field mft_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID of the switch"),
	F("position", 2, 4, 1, SA_DEC, "which 16 ports: 0 to 15, 16 to 31, ..."),
	RESERVED_BITS(2, 4, 3, 2),
	BITS("block_num", 2, 7, 9, 3, SA_DEC, "which block of 32 MLIDs"),
	RESERVED(4, 32, 4),
	LIST("masks", 8, 512, 5, SA_HEX_LIST, 32, 1, "ports of each MLID of the block, a bit each"),
};

/* Our own record: the standard has none for the SLs that a routing engine has given to paths. */
static const struct sa_field path_sl_fields[] = {
	F("lid", 0, 16, 0, SA_LID, "LID that packets come from"),
	F("block_num", 2, 16, 1, SA_DEC, "which block of 64 LIDs that they go to"),
	RESERVED(4, 32, 2),
	LIST("sls", 8, 512, 3, SA_DEC_LIST, 64, 1, "SL to each LID of the block; 255: not known"),
};

static const struct sa_field service_fields[] = {
	F("service_id", 0, 64, 0, SA_HEX, "ID of the service"),
	F("service_gid", 8, 128, 1, SA_GID, "GID of the port that offers it"),
	F("service_pkey", 24, 16, 2, SA_HEX, "P_Key to reach it with"),
	RESERVED(26, 16, 3),
	W("service_lease", 28, 32, 4, sa_words_lease, "seconds left"),
	F("service_key", 32, 128, 5, SA_BYTES, "key of the service's owner"),
	F("service_name", 48, 512, 6, SA_TEXT, "name of the service"),
	LIST("service_data8", 112, 128, 7, SA_HEX_LIST, 16, 16, "the service's own"),
	LIST("service_data16", 128, 128, 23, SA_HEX_LIST, 8, 8, "the service's own"),
	LIST("service_data32", 144, 128, 31, SA_HEX_LIST, 4, 4, "the service's own"),
	LIST("service_data64", 160, 128, 35, SA_HEX_LIST, 2, 2, "the service's own"),
};

static const struct sa_field path_fields[] = {
	{ "service_id", 0, 64, 0, SA_HEX, 0, 2, false, NULL, "service that the path is for" },
	F("dgid", 8, 128, 2, SA_GID, "destination GID"),
	F("sgid", 24, 128, 3, SA_GID, "source GID"),
	F("dlid", 40, 16, 4, SA_LID, "destination LID"),
	F("slid", 42, 16, 5, SA_LID, "source LID"),
	F("raw_traffic", 44, 1, 6, SA_DEC, "for raw packets"),
	RESERVED_BITS(44, 1, 3, 7),
	BITS("flow_label", 44, 4, 20, 8, SA_HEX, "flow label of the GRH"),
	F("hop_limit", 47, 8, 9, SA_DEC, "hop limit of the GRH"),
	F("tclass", 48, 8, 10, SA_HEX, "traffic class of the GRH"),
	F("reversible", 49, 1, 11, SA_DEC, "good for the way back"),
	BITS("numb_path", 49, 1, 7, 12, SA_DEC, "paths wanted"),
	F("pkey", 50, 16, 13, SA_HEX, "partition key"),
	F("qos_class", 52, 12, 14, SA_DEC, "QoS class"),
	BITS("sl", 52, 12, 4, 15, SA_DEC, "service level"),
	W("mtu_selector", 54, 2, 16, sa_words_selector, "how mtu is meant"),
	WORD("mtu", 54, 2, 6, 17, sa_words_mtu, "path MTU"),
	W("rate_selector", 55, 2, 18, sa_words_selector, "how rate is meant"),
	WORD("rate", 55, 2, 6, 19, sa_words_rate, "Gb/s"),
	W("packet_life_selector", 56, 2, 20, sa_words_selector, "how packet_life is meant"),
	BITS("packet_life", 56, 2, 6, 21, SA_DEC, "4.096 us * 2^n: longest stay in the fabric"),
	F("preference", 57, 8, 22, SA_DEC, "0 is best"),
};

/*
 * The request. The GIDs, as many as the counts tell, follow it. Independence has 2 bits in tshark
 * and in opensm's mask bits, but a byte in opensm's structure.
 */
static const struct sa_field multi_path_fields[] = {
	F("raw_traffic", 0, 1, 0, SA_DEC, "for raw packets"),
	RESERVED_BITS(0, 1, 3, 1),
	BITS("flow_label", 0, 4, 20, 2, SA_HEX, "flow label of the GRH"),
	F("hop_limit", 3, 8, 3, SA_DEC, "hop limit of the GRH"),
	F("tclass", 4, 8, 4, SA_HEX, "traffic class of the GRH"),
	F("reversible", 5, 1, 5, SA_DEC, "good for the way back"),
	BITS("numb_path", 5, 1, 7, 6, SA_DEC, "paths wanted, of all pairs together"),
	F("pkey", 6, 16, 7, SA_HEX, "partition key"),
	F("qos_class", 8, 12, 8, SA_DEC, "QoS class"),
	BITS("sl", 8, 12, 4, 9, SA_DEC, "service level"),
	W("mtu_selector", 10, 2, 10, sa_words_selector, "how mtu is meant"),
	WORD("mtu", 10, 2, 6, 11, sa_words_mtu, "path MTU"),
	W("rate_selector", 11, 2, 12, sa_words_selector, "how rate is meant"),
	WORD("rate", 11, 2, 6, 13, sa_words_rate, "Gb/s"),
	W("packet_life_selector", 12, 2, 14, sa_words_selector, "how packet_life is meant"),
	BITS("packet_life", 12, 2, 6, 15, SA_DEC, "4.096 us * 2^n: longest stay in the fabric"),
	F("service_id_msb", 13, 8, 16, SA_HEX, "service that the paths are for: its first byte"),
	F("independence", 14, 2, 17, SA_DEC, "1: paths with as little in common as can be"),
	RESERVED_BITS(14, 2, 6, 18),
	F("sgid_count", 15, 8, 19, SA_DEC, "source GIDs"),
	F("dgid_count", 16, 8, 20, SA_DEC, "destination GIDs"),
	F("service_id_lsb", 17, 56, 21, SA_HEX, "service that the paths are for: the rest"),
};

static const struct sa_field mcmember_fields[] = {
	F("mgid", 0, 128, 0, SA_GID, "GID of the group"),
	F("port_gid", 16, 128, 1, SA_GID, "GID of the member"),
	F("qkey", 32, 32, 2, SA_HEX, "Q_Key of the group"),
	F("mlid", 36, 16, 3, SA_LID, "LID of the group"),
	W("mtu_selector", 38, 2, 4, sa_words_selector, "how mtu is meant"),
	WORD("mtu", 38, 2, 6, 5, sa_words_mtu, "MTU of the group"),
	F("tclass", 39, 8, 6, SA_HEX, "traffic class of the GRH"),
	F("pkey", 40, 16, 7, SA_HEX, "partition key"),
	W("rate_selector", 42, 2, 8, sa_words_selector, "how rate is meant"),
	WORD("rate", 42, 2, 6, 9, sa_words_rate, "Gb/s"),
	W("packet_life_selector", 43, 2, 10, sa_words_selector, "how packet_life is meant"),
	BITS("packet_life", 43, 2, 6, 11, SA_DEC, "4.096 us * 2^n: longest stay in the fabric"),
	F("sl", 44, 4, 12, SA_DEC, "service level"),
	BITS("flow_label", 44, 4, 20, 13, SA_HEX, "flow label of the GRH"),
	F("hop_limit", 47, 8, 14, SA_DEC, "hop limit of the GRH"),
	W("scope", 48, 4, 15, sa_words_scope, "how far the group reaches"),
	FLAGS("join_state", 48, 4, 4, 16, sa_words_join, "how the port is a member"),
	F("proxy_join", 49, 1, 17, SA_DEC, "joined by somebody else"),
};

/* at: byte where InformInfo begins; bit: of its first component */
/* clang-format off */
#define INFORM_FIELDS(at, bit)                                                                     \
	F("gid", (at), 128, (bit), SA_GID, "GID that notices are about; 0: lid_range"),            \
	F("lid_range_begin", (at) + 16, 16, (bit) + 1, SA_LID, "0xffff: all"),                     \
	F("lid_range_end", (at) + 18, 16, (bit) + 2, SA_LID, "last LID of the range"),             \
	RESERVED((at) + 20, 16, (bit) + 3),                                                        \
	F("is_generic", (at) + 22, 8, (bit) + 4, SA_DEC, "1: generic, 0: vendor's"),               \
	F("subscribe", (at) + 23, 8, (bit) + 5, SA_DEC, "1: subscribe, 0: unsubscribe"),           \
	W("type", (at) + 24, 16, (bit) + 6, sa_words_inform_type, "type of the notices"),          \
	W("trap_num", (at) + 26, 16, (bit) + 7, sa_words_trap, "trap number or device ID"),        \
	F("qpn", (at) + 28, 24, (bit) + 8, SA_HEX, "QP that reports go to"),                       \
	RESERVED((at) + 31, 3, (bit) + 9),                                                         \
	BITS("resp_time_value", (at) + 31, 3, 5, (bit) + 10, SA_DEC, "4.096 us * 2^n: time to answer"), \
	RESERVED((at) + 32, 8, (bit) + 11),                                                        \
	W("producer_type", (at) + 33, 24, (bit) + 12, sa_words_producer,                           \
		"who sends the notices, or vendor ID")
/* clang-format on */

static const struct sa_field inform_info_fields[] = { INFORM_FIELDS(0, 0) };

static const struct sa_field inform_record_fields[] = {
	F("subscriber_gid", 0, 128, 0, SA_GID, "GID of the subscriber"),
	F("enum", 16, 16, 1, SA_DEC, "number among its subscriptions"),
	RESERVED(18, 48, 2),
	INFORM_FIELDS(24, 3),
};

static const struct sa_field class_port_info_fields[] = {
	F("base_version", 0, 8, -1, SA_DEC, "base version"),
	F("class_version", 1, 8, -1, SA_DEC, "class version"),
	F("capability_mask", 2, 16, -1, SA_HEX, "what the class can do"),
	F("capability_mask2", 4, 27, -1, SA_HEX, "what else it can do"),
	BITS("resp_time_value", 4, 27, 5, -1, SA_DEC, "4.096 us * 2^n: time to answer"),
	F("redirect_gid", 8, 128, -1, SA_GID, "ask there: GID"),
	F("redirect_tc", 24, 8, -1, SA_HEX, "ask there: traffic class"),
	BITS("redirect_sl", 24, 8, 4, -1, SA_DEC, "ask there: service level"),
	BITS("redirect_fl", 24, 12, 20, -1, SA_HEX, "ask there: flow label"),
	F("redirect_lid", 28, 16, -1, SA_LID, "ask there: LID"),
	F("redirect_pkey", 30, 16, -1, SA_HEX, "ask there: P_Key"),
	F("redirect_qp", 33, 24, -1, SA_HEX, "ask there: QP"),
	F("redirect_qkey", 36, 32, -1, SA_HEX, "ask there: Q_Key"),
	F("trap_gid", 40, 128, -1, SA_GID, "traps go to: GID"),
	F("trap_tc", 56, 8, -1, SA_HEX, "traps go to: traffic class"),
	BITS("trap_sl", 56, 8, 4, -1, SA_DEC, "traps go to: service level"),
	BITS("trap_fl", 56, 12, 20, -1, SA_HEX, "traps go to: flow label"),
	F("trap_lid", 60, 16, -1, SA_LID, "traps go to: LID"),
	F("trap_pkey", 62, 16, -1, SA_HEX, "traps go to: P_Key"),
	F("trap_hl", 64, 8, -1, SA_DEC, "traps go to: hop limit"),
	F("trap_qp", 65, 24, -1, SA_HEX, "traps go to: QP"),
	F("trap_qkey", 68, 32, -1, SA_HEX, "traps go to: Q_Key"),
};

static const struct sa_field notice_fields[] = {
	F("is_generic", 0, 1, -1, SA_DEC, "1: generic, 0: vendor's"),
	WORD("type", 0, 1, 7, -1, sa_words_notice_type, "how grave"),
	W("producer_type", 1, 24, -1, sa_words_producer, "who sends it, or vendor ID"),
	F("trap_num", 4, 16, -1, SA_DEC, "trap number or device ID"),
	F("issuer_lid", 6, 16, -1, SA_LID, "LID of the issuer"),
	F("toggle", 8, 1, -1, SA_DEC, "changes with every notice"),
	BITS("count", 8, 1, 15, -1, SA_DEC, "notices in the queue"),
	F("data_details", 10, 432, -1, SA_BYTES, "as trap_num says"),
	F("issuer_gid", 64, 128, -1, SA_GID, "GID of the issuer"),
};

#define STORED(number)          .stored = true, .table = (number)
#define FIELDS(list)            .fields = (list), .num_fields = ARRAY_LEN(list)
#define RID(length, components) .rid_len = (length), .rid_components = (components)

/*
 * Service, MCMember, InformInfo and Path records have no LID that identifies them: in version 1 the
 * whole record follows a RID that the server assigns (A7).
 */
const struct sa_record_type sa_record_types[] = {
	{ SA_NODE, 108, 112, RID(4, 2), STORED(SA_TABLE_NODE), .name = "NodeRecord",
		.alias = "node", FIELDS(node_fields), .help = "nodes, by a port's LID" },
	{ SA_PORT_INFO, 68, 72, RID(4, 3), .rid_port = 2, STORED(SA_TABLE_PORT_INFO),
		.name = "PortInfoRecord", .alias = "port", FIELDS(port_info_fields),
		.help = "ports and their state" },
	{ SA_SM_INFO, 25, 32, RID(4, 2), STORED(SA_TABLE_SM_INFO), .name = "SMInfoRecord",
		.alias = "sm", FIELDS(sm_info_fields), .help = "subnet managers" },
	{ SA_LINK, 6, 8, RID(3, 2), .rid_port = 2, STORED(SA_TABLE_LINK), .name = "LinkRecord",
		.alias = "link", FIELDS(link_fields), .help = "links, one record each way" },
	{ SA_GUID_INFO, 72, 72, RID(8, 4), .rid_enum = 2, STORED(SA_TABLE_GUID_INFO),
		.name = "GUIDInfoRecord", .alias = "guid", FIELDS(guid_info_fields),
		.help = "GUIDs of ports, in blocks of 8" },
	{ SA_PKEY_TABLE, 72, 72, RID(8, 4), .rid_port = 4, .rid_enum = 3, STORED(SA_TABLE_PKEY),
		.name = "P_KeyTableRecord", .alias = "pkey", FIELDS(pkey_fields),
		.help = "P_Keys of ports, in blocks of 32" },
	{ SA_SLTOVL, 16, 16, RID(8, 4), .rid_port = 2, .rid_enum = 3, STORED(SA_TABLE_SLTOVL),
		.name = "SLtoVLMappingTableRecord", .alias = "sltovl", FIELDS(sltovl_fields),
		.help = "virtual lane of each service level" },
	{ SA_VLARB, 72, 72, RID(8, 4), .rid_port = 2, .rid_enum = 3, STORED(SA_TABLE_VLARB),
		.name = "VLArbitrationTableRecord", .alias = "vlarb", FIELDS(vlarb_fields),
		.help = "arbitration of virtual lanes" },
	{ SA_SWITCH_INFO, 24, 24, RID(4, 2), STORED(SA_TABLE_SWITCH_INFO),
		.name = "SwitchInfoRecord", .alias = "switch", FIELDS(switch_info_fields),
		.help = "switches" },
	{ SA_LFT, 72, 72, RID(8, 3), .rid_form = SA_RID_BLOCK, STORED(SA_TABLE_LFT),
		.name = "LinearForwardingTableRecord", .alias = "lft", FIELDS(lft_fields),
		.help = "forwarding tables of switches, in blocks of 64 LIDs" },
	{ SA_RFT, 72, 72, RID(8, 3), .rid_form = SA_RID_BLOCK, STORED(SA_TABLE_RFT),
		.name = "RandomForwardingTableRecord", .alias = "rft", FIELDS(rft_fields),
		.help = "forwarding tables of switches that have no linear one" },
	{ SA_MFT, 72, 72, RID(8, 5), .rid_form = SA_RID_MULTICAST, STORED(SA_TABLE_MFT),
		.name = "MulticastForwardingTableRecord", .alias = "mft", FIELDS(mft_fields),
		.help = "multicast forwarding tables of switches" },
	{ SA_PATH_SL, 72, 72, RID(8, 3), .rid_form = SA_RID_BLOCK, STORED(SA_TABLE_PATH_SL),
		.name = "PathSLRecord", .alias = "pathsl", FIELDS(path_sl_fields),
		.help = "service levels that the subnet manager gave paths" },
	{ SA_SERVICE, 176, 176, STORED(SA_TABLE_SERVICE), .name = "ServiceRecord",
		.alias = "service", FIELDS(service_fields), .help = "services that ports offer" },
	{ SA_MCMEMBER, 52, 56, STORED(SA_TABLE_MCMEMBER), .name = "MCMemberRecord",
		.alias = "mcmember", FIELDS(mcmember_fields),
		.help = "members of multicast groups" },
	{ SA_INFORM_INFO_RECORD, 60, 64, STORED(SA_TABLE_INFORM), .name = "InformInfoRecord",
		.alias = "inform", FIELDS(inform_record_fields),
		.help = "subscriptions to notices" },
	{ SA_PATH, 64, 64, .name = "PathRecord", .alias = "path", FIELDS(path_fields),
		.help = "paths between ports, computed" },
	{ SA_MULTI_PATH, 24, 24, .name = "MultiPathRecord", .alias = "multipath",
		FIELDS(multi_path_fields), .help = "what paths between many ports are to be like" },
	{ SA_INFORM_INFO, 36, 40, .name = "InformInfo", .alias = "informinfo",
		FIELDS(inform_info_fields), .help = "a subscription to be made or ended" },
	{ SA_CLASS_PORT_INFO, 72, 72, .name = "ClassPortInfo", .alias = "class",
		FIELDS(class_port_info_fields), .help = "what this SA can do" },
	{ SA_NOTICE, 80, 80, .name = "Notice", .alias = "notice", FIELDS(notice_fields),
		.help = "what happened in the subnet" },
};

const unsigned int sa_num_record_types = ARRAY_LEN(sa_record_types);
