/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the configuration says of a port.
 */

#include "config_keys.h"

static const struct key address_keys[] = {
	{ .name = "address",
			.type = KEY_PREFIX,
			.flags = KEY_REQUIRED,
			.size = sizeof(struct link_addr),
			.help = "The address with its prefix length." },
	{ .name = "gateway",
			.type = KEY_ADDRESS,
			FIELD(struct link_addr, gateway),
			.help = "Next hop for what is outside the prefix." },
	END,
};

static const struct key address_item[] = {
	{ .name = "address", .type = KEY_OBJECT, .flags = KEY_SHORTHAND, .fields = address_keys },
};

static const struct key pkey_item[] = {
	{ .name = "P_Key", .type = KEY_UINT, .size = sizeof(uint16_t), .min = 1, .max = 0xFFFF },
};

static const struct key lid_keys[] = {
	UINT(struct link_lid, lid, "lid", 1, PORT_LID_MULTICAST - 1, "The LID."),
	{ .name = "mac",
			.type = KEY_MAC,
			.flags = KEY_REQUIRED,
			FIELD(struct link_lid, mac),
			.help = "Where its packets go." },
	END,
};

static const struct key lid_item[] = {
	{ .name = "lid", .type = KEY_OBJECT, .fields = lid_keys },
};

static const struct key_word encapsulation_words[] = {
	{ "roce", CONFIG_ROCE },
	{ "ib", CONFIG_IB },
	{ NULL, 0 },
};

static const struct key_word sm_state_words[] = {
	{ "not_active", SMA_SM_NOT_ACTIVE },
	{ "discovering", SMA_SM_DISCOVERING },
	{ "standby", SMA_SM_STANDBY },
	{ "master", SMA_SM_MASTER },
	{ NULL, 0 },
};

static const struct key sm_keys[] = {
	UINT(struct config_port, sma.sm_priority, "priority", 0, 15, "The higher becomes master."),
	{ .name = "state",
			.type = KEY_ENUM,
			FIELD(struct config_port, sm_state),
			.words = sm_state_words,
			.help = "SMState at start, when nobody can be master yet." },
	END,
};

#define IB(f, low, high, text) UINT(struct config_port, sma.f, #f, low, high, text)

static const struct key ib_keys[] = {
	HEX(struct config_port, link.guid, "guid", 1, UINT64_MAX,
			"PortGUID. Default: the EUI-64 of the port's MAC address."),
	HEX(struct config_port, sma.gid_prefix, "gid_prefix", 1, UINT64_MAX,
			"Subnet prefix of its GIDs. Default: 0xfe80000000000000."),
	IB(lid, 0, PORT_LID_MULTICAST - 1, "LID until a subnet manager gives one. 0: none."),
	IB(lmc, 0, 7, "The port has 2^lmc LIDs from there on."),
	IB(sm_lid, 0, PORT_LID_MULTICAST - 1, "LID of the subnet manager. 0: none."),
	IB(sm_sl, 0, 15, "Service level to it."),
	BOOL(struct config_port, sma.active, "active",
			"Come up Active, without a subnet manager. Default: wait for one in state "
			"Initialize."),
	HEX(struct config_port, sma.m_key, "m_key", 0, UINT64_MAX, "M_Key. 0: none."),
	IB(m_key_protect, 0, 3, "M_KeyProtectBits."),
	IB(m_key_lease, 0, 65535, "M_KeyLeasePeriod, seconds. 0: for ever."),
	{ .name = "vls",
			.type = KEY_UINT,
			.flags = KEY_POWER_OF_TWO,
			FIELD(struct config_port, vls),
			.min = 1,
			.max = 8,
			.help = "Data virtual lanes." },
	HEX(struct config_port, link.ethertype, "ethertype", 0x0600, 0xFFFF,
			"EtherType of the frames. Default: 0x88b5."),
	{ .name = "peer_mac",
			.type = KEY_MAC,
			FIELD(struct config_port, link.peer_mac),
			.help = "The other end of the link, where directed-route SMPs go. Default: "
				"whoever was heard last." },
	LIST(struct config_port, link.lids, link.num_lids, "lids", LINK_LIDS_MAX, lid_item, NULL,
			"Fixed routes from LID to MAC address; the others are learned."),
	{ .name = "sm",
			.type = KEY_OBJECT,
			.flags = KEY_NOTED,
			.num_offset = offsetof(struct config_port, has_sm),
			.fields = sm_keys,
			.help = "A subnet manager stands behind this port: serve SMInfo." },
	END,
};

#define PORT(f) struct config_port, link.f

static const struct key port_keys[] = {
	{ .name = "name",
			.type = KEY_TEXT,
			.flags = KEY_REQUIRED,
			FIELD(struct config_port, link.name),
			.help = "Ours, such as \"port0\"." },
	TEXT(struct config_port, device, "device",
			"A PCI address (\"0000:3b:00.0\"), or a virtual device with its arguments "
			"as for DPDK's "
			"--vdev (\"net_af_packet0,iface=eth1\")."),
	TEXT(struct config_port, link.back_to_back, "back_to_back",
			"Instead of a device: the name of another port in this process to be "
			"joined with."),
	LIST(struct config_port, link.addr, link.num_addr, "addresses", LINK_ADDRS_MAX,
			address_item, NULL,
			"IPv4 and IPv6 addresses: texts ADDRESS/PREFIX, or objects with a gateway "
			"too."),
	{ .name = "mtu",
			.type = KEY_UINT,
			FIELD(struct config_port, link.mtu),
			.min = 336,
			.max = 9978,
			.help = "Bytes of an IP packet: a path MTU of 4096 needs 4176, 1024 needs "
				"1104. Default: "
				"the device's." },
	UINT(struct config_port, link.vlan, "vlan", 1, 4094, "VLAN id. Default: untagged."),
	BOOL(struct config_port, link.rocev1, "rocev1",
			"Speak RoCEv1 too: each GID gets a v1 twin."),
	{ .name = "mac",
			.type = KEY_MAC,
			FIELD(struct config_port, link.mac),
			.help = "Default: the device's." },
	LIST(struct config_port, link.pkeys, link.num_pkeys, "pkeys", 16, pkey_item, NULL,
			"P_Key table. Default: 65535 alone."),
	UINT(struct config_port, link.rx_desc, "rx_desc", 64, 32768,
			"Receive descriptors in a queue. Default: the driver's choice."),
	UINT(struct config_port, link.tx_desc, "tx_desc", 64, 32768,
			"Transmit descriptors in a queue. Default: the driver's choice."),
	UINT(struct config_port, link.mbufs, "mbufs", 512, 1 << 22,
			"Packet buffers. Default: from queues, descriptors and workers."),
	BOOL(struct config_port, link.promiscuous, "promiscuous",
			"Take in frames for other MAC addresses, to count them."),
	{ .name = "encapsulation",
			.type = KEY_ENUM,
			FIELD(struct config_port, encapsulation),
			.words = encapsulation_words,
			.help = "roce: RoCEv2 over the port's IP addresses; ib: native InfiniBand "
				"packets in Ethernet frames, managed by a subnet manager." },
	{ .name = "ib",
			.type = KEY_OBJECT,
			.flags = KEY_NOTED,
			.num_offset = offsetof(struct config_port, has_ib),
			.fields = ib_keys,
			.help = "A native InfiniBand port before a subnet manager has spoken to "
				"it." },
	END,
};

const struct config_port config_port_init = { .link = { .vlan = PATH_NO_VLAN }, .vls = 8 };

const struct key config_port_item[] = {
	{ .name = "port", .type = KEY_OBJECT, .fields = port_keys },
};
