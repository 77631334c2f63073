#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Every component where tshark finds it: test_record_tshark.py RECORDTOOL

recordtool's records become class version 2 MADs on RoCEv2, one record each; what tshark's dissection says of a
component must be what our description table says.

It prints what tshark 4.0 does not dissect; there opensm's ib_types.h is the oracle (test_record_opensm.c).
"""
import ipaddress
import pathlib
import struct
import subprocess
import sys
import tempfile

GET_RESP = 0x81

# record -> our name: tshark's field behind "infiniband."
FIELDS = {
    "NodeRecord": {
        "lid": "sa.lid", "base_version": "nodeinfo.baseversion", "class_version": "nodeinfo.classversion",
        "node_type": "nodeinfo.nodetype", "num_ports": "nodeinfo.numports", "sys_guid": "nodeinfo.systemimageguid",
        "node_guid": "nodeinfo.nodeguid", "port_guid": "nodeinfo.portguid", "partition_cap": "nodeinfo.partitioncap",
        "device_id": "nodeinfo.deviceid", "revision": "nodeinfo.revision", "port_num": "nodeinfo.localportnum",
        "vendor_id": "nodeinfo.vendorid"},
    "PortInfoRecord": {
        "lid": "sa.endportlid", "port_num": "sa.portnum", "m_key": "portinfo.m_key", "gid_prefix": "portinfo.guid",
        "base_lid": "portinfo.lid", "sm_lid": "portinfo.mastersmlid", "capability_mask": "portinfo.capabilitymask",
        "diag_code": "portinfo.diagcode", "m_key_lease_period": "portinfo.m_keyleaseperiod",
        "local_port_num": "portinfo.localportnum", "link_width_enabled": "portinfo.linkwidthenabled",
        "link_width_supported": "portinfo.linkwidthsupported", "link_width_active": "portinfo.linkwidthactive",
        "link_speed_supported": "portinfo.linkspeedsupported", "port_state": "portinfo.portstate",
        "port_phys_state": "portinfo.portphysicalstate", "link_down_default": "portinfo.linkdowndefaultstate",
        "m_key_protect_bits": "portinfo.m_keyprotectbits", "lmc": "portinfo.lmc",
        "link_speed_active": "portinfo.linkspeedactive", "link_speed_enabled": "portinfo.linkspeedenabled",
        "neighbor_mtu": "portinfo.neighbormtu", "sm_sl": "portinfo.mastersmsl", "vl_cap": "portinfo.vlcap",
        "init_type": "portinfo.inittype", "vl_high_limit": "portinfo.vlhighlimit",
        "vl_arb_high_cap": "portinfo.vlarbitrationhighcap", "vl_arb_low_cap": "portinfo.vlarbitrationlowcap",
        "init_type_reply": "portinfo.inittypereply", "mtu_cap": "portinfo.mtucap",
        "vl_stall_count": "portinfo.vlstallcount", "hoq_life": "portinfo.hoqlife",
        "oper_vls": "portinfo.operationalvls", "part_enforce_in": "portinfo.partitionenforcementinbound",
        "part_enforce_out": "portinfo.partitionenforcementoutbound", "filter_raw_in": "portinfo.filterrawinbound",
        "filter_raw_out": "portinfo.filterrawoutbound", "m_key_violations": "portinfo.m_keyviolations",
        "p_key_violations": "portinfo.p_keyviolations", "q_key_violations": "portinfo.q_keyviolations",
        "guid_cap": "portinfo.guidcap", "client_reregister": "portinfo.clientreregister",
        "subnet_timeout": "portinfo.subnettimeout", "resp_time_value": "portinfo.resptimevalue",
        "local_phy_errors": "portinfo.localphyerrors", "overrun_errors": "portinfo.overrunerrors",
        "max_credit_hint": "portinfo.maxcredithint", "link_round_trip_latency": "portinfo.linkroundtriplatency"},
    "SMInfoRecord": {
        "lid": "sa.lid", "guid": "sminfo.guid", "sm_key": "sminfo.sm_key", "act_count": "sminfo.actcount",
        "priority": "sminfo.priority", "sm_state": "sminfo.smstate"},
    "LinkRecord": {
        "from_lid": "linkrecord.fromlid", "from_port": "linkrecord.fromport", "to_port": "linkrecord.toport",
        "to_lid": "linkrecord.tolid"},
    "GUIDInfoRecord": {"lid": "sa.lid", "block_num": "sa.blocknum_eightbit"},
    "P_KeyTableRecord": {"lid": "sa.lid", "block_num": "sa.blocknum_sixteenbit", "port_num": "sa.portnum"},
    "SLtoVLMappingTableRecord": {"lid": "sa.lid", "in_port": "sa.inputportnum", "out_port": "sa.outputportnum"},
    "VLArbitrationTableRecord": {"lid": "sa.lid", "port_num": "sa.outputportnum", "block_num": "sa.blocknum_eightbit"},
    "SwitchInfoRecord": {
        "lid": "sa.lid", "lin_cap": "switchinfo.linearfdbcap", "rand_cap": "switchinfo.randomfdbcap",
        "mcast_cap": "switchinfo.multicastfdbcap", "lin_top": "switchinfo.linearfdbtop",
        "def_port": "switchinfo.defaultport", "def_mcast_pri_port": "switchinfo.defaultmulticastprimaryport",
        "def_mcast_not_port": "switchinfo.defaultmulticastnotprimaryport",
        "life_time_value": "switchinfo.lifetimevalue", "port_state_change": "switchinfo.portstatechange",
        "optimized_sltovl": "switchinfo.optimizedsltovlmappingprogramming",
        "lids_per_port": "switchinfo.lidsperport", "part_enforce_cap": "switchinfo.partitionenforcementcap",
        "inbound_enforce": "switchinfo.inboundenforcementcap",
        "outbound_enforce": "switchinfo.outboundenforcementcap",
        "filter_raw_in_cap": "switchinfo.filterrawinboundcap",
        "filter_raw_out_cap": "switchinfo.filterrawoutboundcap", "enhanced_port0": "switchinfo.enhancedportzero"},
    "LinearForwardingTableRecord": {"lid": "sa.lid", "block_num": "sa.blocknum_sixteenbit"},
    "RandomForwardingTableRecord": {"lid": "sa.lid", "block_num": "sa.blocknum_sixteenbit"},
    "MulticastForwardingTableRecord": {"lid": "sa.lid", "position": "sa.position",
                                       "block_num": "sa.blocknum_ninebit"},
    "PathSLRecord": {},  # ours
    "ServiceRecord": {
        "service_id": "linkrecord.serviceid", "service_gid": "linkrecord.servicegid",
        "service_pkey": "linkrecord.servicep_key", "service_lease": "linkrecord.servicelease",
        "service_key": "linkrecord.servicekey", "service_name": "linkrecord.servicename"},
    "PathRecord": {
        "dgid": "pathrecord.dgid", "sgid": "pathrecord.sgid", "dlid": "pathrecord.dlid", "slid": "pathrecord.slid",
        "raw_traffic": "pathrecord.rawtraffic", "flow_label": "pathrecord.flowlabel",
        "hop_limit": "pathrecord.hoplimit", "tclass": "pathrecord.tclass", "reversible": "pathrecord.reversible",
        "numb_path": "pathrecord.numbpath", "pkey": "pathrecord.p_key", "sl": "pathrecord.sl",
        "mtu_selector": "pathrecord.mtuselector", "mtu": "pathrecord.mtu", "rate_selector": "pathrecord.rateselector",
        "rate": "pathrecord.rate", "packet_life_selector": "pathrecord.packetlifetimeselector",
        "packet_life": "pathrecord.packetlifetime", "preference": "pathrecord.preference"},
    "MultiPathRecord": {
        "raw_traffic": "multipathrecord.rawtraffic", "flow_label": "multipathrecord.flowlabel",
        "hop_limit": "multipathrecord.hoplimit", "tclass": "multipathrecord.tclass",
        "reversible": "multipathrecord.reversible", "numb_path": "multipathrecord.numbpath",
        "pkey": "multipathrecord.p_key", "sl": "multipathrecord.sl", "mtu_selector": "multipathrecord.mtuselector",
        "mtu": "multipathrecord.mtu", "rate_selector": "multipathrecord.rateselector",
        "rate": "multipathrecord.rate", "packet_life_selector": "multipathrecord.packetlifetimeselector",
        "packet_life": "multipathrecord.packetlifetime", "independence": "multipathrecord.independenceselector",
        "sgid_count": "multipathrecord.sgidcount", "dgid_count": "multipathrecord.dgidcount"},
    "MCMemberRecord": {
        "mgid": "mcmemberrecord.mgid", "port_gid": "mcmemberrecord.portgid", "qkey": "mcmemberrecord.q_key",
        "mlid": "mcmemberrecord.mlid", "mtu_selector": "mcmemberrecord.mtuselector", "mtu": "mcmemberrecord.mtu",
        "tclass": "mcmemberrecord.tclass", "pkey": "mcmemberrecord.p_key",
        "rate_selector": "mcmemberrecord.rateselector", "rate": "mcmemberrecord.rate",
        "packet_life_selector": "mcmemberrecord.packetlifetimeselector",
        "packet_life": "mcmemberrecord.packetlifetime", "sl": "mcmemberrecord.sl",
        "flow_label": "mcmemberrecord.flowlabel", "hop_limit": "mcmemberrecord.hoplimit",
        "scope": "mcmemberrecord.scope", "join_state": "mcmemberrecord.joinstate",
        "proxy_join": "mcmemberrecord.proxyjoin"},
    "InformInfo": {
        "gid": "informinfo.gid", "lid_range_begin": "informinfo.lidrangebegin",
        "lid_range_end": "informinfo.lidrangeend", "is_generic": "informinfo.isgeneric",
        "subscribe": "informinfo.subscribe", "type": "informinfo.type", "trap_num": "informinfo.trapnumberdeviceid",
        "qpn": "informinfo.qpn", "resp_time_value": "informinfo.resptimevalue",
        "producer_type": "informinfo.producertypevendorid"},
    "ClassPortInfo": {
        "base_version": "classportinfo.baseversion", "class_version": "classportinfo.classversion",
        "capability_mask": "classportinfo.capabilitymask", "capability_mask2": "classportinfo.capabilitymask2",
        "resp_time_value": "classportinfo.resptimevalue", "redirect_gid": "classportinfo.redirectgid",
        "redirect_tc": "classportinfo.redirecttc", "redirect_sl": "classportinfo.redirectsl",
        "redirect_fl": "classportinfo.redirectfl", "redirect_lid": "classportinfo.redirectlid",
        "redirect_pkey": "classportinfo.redirectpkey", "redirect_qp": "classportinfo.redirectqp",
        "redirect_qkey": "classportinfo.redirectqkey", "trap_gid": "classportinfo.trapgid",
        "trap_tc": "classportinfo.traptc", "trap_sl": "classportinfo.trapsl", "trap_fl": "classportinfo.trapfl",
        "trap_lid": "classportinfo.traplid", "trap_pkey": "classportinfo.trappkey",
        "trap_qp": "classportinfo.trapqp", "trap_qkey": "classportinfo.trapqkey"},
    "Notice": {
        "is_generic": "notice.isgeneric", "type": "notice.type", "producer_type": "notice.producertypevendorid",
        "trap_num": "notice.trapnumberdeviceid", "issuer_lid": "notice.issuerlid", "toggle": "notice.noticetoggle",
        "count": "notice.noticecount"},
}
FIELDS["InformInfoRecord"] = FIELDS["InformInfo"] | {
    "subscriber_gid": "informinforecord.subscribergid", "enum": "informinforecord.enum"}

# lists: ours -> what tshark shows of each element, from its top bits on: (field, width)
LISTS = {
    ("P_KeyTableRecord", "pkeys"): [("p_keytable.membershiptype", 1), ("p_keytable.p_keybase", 15)],
    ("SLtoVLMappingTableRecord", "vls"): [("sltovlmappingtable.sltovlhighbits", 4),
                                          ("sltovlmappingtable.sltovllowbits", 4)],
    ("VLArbitrationTableRecord", "entries"): [(None, 4), ("vlarbitrationtable.vl", 4),
                                              ("vlarbitrationtable.weight", 8)],
}

ALL = sorted({part for parts in LISTS.values() for part, _ in parts if part} |
             {f for fields in FIELDS.values() for f in fields.values()})


def frame(attribute, wire):
    mad = struct.pack(">BBBBHHQHHI", 1, 3, 2, GET_RESP, 0, 0, 0x1234, attribute, 0, 0)
    mad += bytes(12) + bytes(8) + struct.pack(">HHQ", 0, 0, 0) + wire
    mad = mad.ljust(256, b"\0")
    bth = struct.pack(">BBHII", 0x64, 0, 0xFFFF, 1, 0) + struct.pack(">II", 0x80010000, 1)
    udp = bth + mad + bytes(4)
    udp = struct.pack(">HHHH", 49152, 4791, 8 + len(udp), 0) + udp
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes([10, 0, 0, 1]),
                     bytes([10, 0, 0, 2]))
    return bytes.fromhex("020000000002020000000001" "0800") + ip + udp


def dissect(frames, folder):
    pcap = pathlib.Path(folder) / "records.pcap"
    blob = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for f in frames:
        blob += struct.pack("<IIII", 0, 0, len(f), len(f)) + f
    pcap.write_bytes(blob)
    columns = ["infiniband." + f for f in ALL] + ["_ws.malformed"]
    args = ["tshark", "-n", "-r", str(pcap), "-T", "fields", "-E", "separator=|", "-E", "aggregator=;"]
    for c in columns:
        args += ["-e", c]
    out = subprocess.run(args, capture_output=True, text=True, check=True).stdout
    return [dict(zip(columns, line.split("|"))) for line in out.splitlines()]


def number(text):
    """tshark's value, whatever it looks like."""
    if text in ("True", "False"):
        return int(text == "True")
    if ":" in text:
        return int(ipaddress.IPv6Address(text))
    return int(text, 0)


def compare_list(value, length, parts, row):
    """Elements of a list, each in parts; value is the number that all of it makes."""
    size = sum(width for _, width in parts)
    bad, low = [], size
    for part, width in parts:
        low -= width
        if part is None:
            continue
        ours = [value >> (length - size * (i + 1) + low) & (1 << width) - 1 for i in range(length // size)]
        theirs = [number(t) for t in row["infiniband." + part].split(";") if t]
        if ours != theirs:
            bad.append(f"{part}: ours {ours}, tshark's {theirs}")
    return bad


def main():
    records = []
    for line in subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines():
        word = line.split()
        if word[0] == "record":
            records.append((word[1], int(word[2], 0), bytes.fromhex(word[3]), {}))
        else:
            records[-1][3][word[0]] = word[1]
    with tempfile.TemporaryDirectory() as folder:
        rows = dissect([frame(r[1], r[2]) for r in records], folder)
    assert len(rows) == len(records), "tshark lost frames"

    bad, compared, left = [], 0, {}
    for (name, _, _, values), row in zip(records, rows):
        for field, value in values.items():
            if (name, field) in LISTS:
                length = 64 if value.startswith("0x") else 4 * len(value)
                ours = int(value, 0) if value.startswith("0x") else int(value, 16)
                bad += compare_list(ours, length, LISTS[name, field], row)
                compared += 1
                continue
            theirs = FIELDS[name].get(field)
            if theirs is None:
                left.setdefault(name, {})[field] = True
                continue
            got = row["infiniband." + theirs].split(";")[0]
            ours = int(value, 0) if value.startswith("0x") else int(value, 16)
            compared += 1
            if got == "":
                bad.append(f"{name}.{field}: tshark has no {theirs}")
            elif (number(got) if value.startswith("0x") or ":" in got else int(got, 16)) != ours:
                bad.append(f"{name}.{field}: ours {value}, tshark's {theirs} {got}")
    for name, fields in left.items():
        print(f"not known to tshark: {name}: {', '.join(fields)}")
    for line in sorted(set(bad)):
        print(line)
    print(f"{compared} components compared, {len(bad)} differ")
    sys.exit(1 if bad or compared == 0 else 0)


if __name__ == "__main__":
    main()
