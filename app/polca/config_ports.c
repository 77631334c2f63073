/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the configuration says of a port.
 */

#include "config_keys.h"

static const struct table_row address_keys[] = {
	{
		.name = "address",
		.type = TABLE_FORM,
		.flags = TABLE_REQUIRED,
		.size = sizeof(struct link_addr),
		.form = &config_form_prefix,
		.help = "The address with its prefix length.",
	},
	FORM(struct link_addr, gateway, "gateway", config_form_address,
		"Next hop for what is outside the prefix."),
	ROW_END,
};

static const struct table_row lid_keys[] = {
	UINT(struct link_lid, lid, "lid", 1, PORT_LID_MULTICAST - 1, "The LID."),
	ROW_NAMED(struct link_lid, "mac", mac, TABLE_FORM, "Where its packets go.",
		.flags = TABLE_REQUIRED, .form = &config_form_mac),
	ROW_END,
};

static const struct table_word encapsulation_words[] = {
	{ "roce", CONFIG_ROCE },
	{ "ib", CONFIG_IB },
	{ NULL, 0 },
};

static const struct table_word sm_state_words[] = {
	{ "not_active", SMA_SM_NOT_ACTIVE },
	{ "discovering", SMA_SM_DISCOVERING },
	{ "standby", SMA_SM_STANDBY },
	{ "master", SMA_SM_MASTER },
	{ NULL, 0 },
};

static const struct table_row sm_keys[] = {
	UINT(struct config_port, sma.sm_priority, "priority", 0, 15, "The higher becomes master."),
	ENUM(struct config_port, sm_state, "state", sm_state_words,
		"SMState at start, when nobody can be master yet."),
	ROW_END,
};

#define IB(f, low, high, text) UINT(struct config_port, sma.f, #f, low, high, text)

static const struct table_row ib_keys[] = {
	HEX(struct config_port, link.guid, "guid", 1, UINT64_MAX,
		"PortGUID. Default: the EUI-64 of the port's MAC address."),
	HEX(struct config_port, sma.gid_prefix, "gid_prefix", 1, UINT64_MAX,
		"Subnet prefix of its GIDs. Default: 0xfe80000000000000."),
	IB(lid, 0, PORT_LID_MULTICAST - 1, "LID until a subnet manager gives one. 0: none."),
	IB(lmc, 0, 7, "The port has 2^lmc LIDs from there on."),
	IB(sm_lid, 0, PORT_LID_MULTICAST - 1, "LID of the subnet manager. 0: none."),
	IB(sm_sl, 0, 15, "Service level to it."),
	BOOL(struct config_port, sma.active, "active",
		"Come up Active, without a subnet manager. Default: wait for one in state Initialize."),
	ROW_NAMED(struct config_port, "m_key", sma.m_key, TABLE_UINT, "M_Key. 0: none.",
		.flags = TABLE_SECRET, .digits = 1, .max = UINT64_MAX),
	IB(m_key_protect, 0, 3, "M_KeyProtectBits."),
	IB(m_key_lease, 0, 65535, "M_KeyLeasePeriod, seconds. 0: for ever."),
	POWER2(struct config_port, vls, "vls", 1, 8, "Data virtual lanes."),
	HEX(struct config_port, link.ethertype, "ethertype", 0x0600, 0xFFFF,
		"EtherType of the frames. Default: 0x88b5."),
	FORM(struct config_port, link.peer_mac, "peer_mac", config_form_mac,
		"The other end of the link, where directed-route SMPs go. Default: "
		"whoever was heard last."),
	LIST(struct config_port, link.lids, link.num_lids, "lids", 0, LINK_LIDS_MAX, 0, lid_keys,
		NULL, "Fixed routes from LID to MAC address; the others are learned."),
	NOTED(struct config_port, has_sm, "sm", sm_keys,
		"A subnet manager stands behind this port: serve SMInfo."),
	ROW_END,
};

const struct table_row config_port_keys[] = {
	ROW_NAMED(struct config_port, "name", link.name, TABLE_CHARS, "Ours, such as \"port0\".",
		.flags = TABLE_REQUIRED),
	TEXT(struct config_port, device, "device",
		"A PCI address (\"0000:3b:00.0\"), or a virtual device with its arguments as for DPDK's "
		"--vdev (\"net_af_packet0,iface=eth1\")."),
	TEXT(struct config_port, link.back_to_back, "back_to_back",
		"Instead of a device: the name of another port in this process to be joined with."),
	LIST(struct config_port, link.addr, link.num_addr, "addresses", 0, LINK_ADDRS_MAX,
		TABLE_ONE_ALONE | TABLE_RELOAD_MORE, address_keys, NULL,
		"IPv4 and IPv6 addresses: texts ADDRESS/PREFIX, or objects with a gateway too."),
	LIST(struct config_port, link.leader_addr, link.num_leader_addr, "leader_addresses", 0,
		LINK_LEADER_ADDRS_MAX, TABLE_ONE_ALONE, address_keys, NULL,
		"More of them, which the port has while this appliance leads its fleet: clients reach "
		"the leader there."),
	UINT(struct config_port, link.mtu, "mtu", 336, 9978,
		"Bytes of an IP packet: a path MTU of 4096 needs 4176, 1024 needs 1104. Default: "
		"the device's."),
	UINT(struct config_port, link.vlan, "vlan", 1, 4094, "VLAN id. Default: untagged."),
	BOOL(struct config_port, link.rocev1, "rocev1",
		"Speak RoCEv1 too: each GID gets a v1 twin."),
	FORM(struct config_port, link.mac, "mac", config_form_mac, "Default: the device's."),
	LIST(struct config_port, link.pkeys, link.num_pkeys, "pkeys", 0, 16, TABLE_VALUES,
		config_pkey_value, NULL, "P_Key table. Default: 65535 alone."),
	UINT(struct config_port, link.rx_desc, "rx_desc", 64, 32768,
		"Receive descriptors in a queue. Default: the driver's choice; 64 of a pair that is "
		"back to back."),
	UINT(struct config_port, link.tx_desc, "tx_desc", 64, 32768,
		"Transmit descriptors in a queue. Default: the driver's choice."),
	UINT(struct config_port, link.mbufs, "mbufs", 512, 1 << 22,
		"Packet buffers. Default: from queues, descriptors and workers."),
	BOOL(struct config_port, link.promiscuous, "promiscuous",
		"Take in frames for other MAC addresses, to count them."),
	BOOL(struct config_port, link.trusted, "trusted",
		"Required for net_memif: its peer shares memory with this process and may crash "
		"it. For a peer that is not trusted, use net_vhost."),
	ENUM(struct config_port, encapsulation, "encapsulation", encapsulation_words,
		"roce: RoCEv2 over the port's IP addresses; ib: native InfiniBand "
		"packets in Ethernet frames, managed by a subnet manager."),
	NOTED(struct config_port, has_ib, "ib", ib_keys,
		"A native InfiniBand port before a subnet manager has spoken to it."),
	ROW_END,
};

const struct config_port config_port_init = { .link = { .vlan = PATH_NO_VLAN }, .vls = 8 };
