#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""lib/wire against tshark's dissection: diff_tshark.py WIRETOOL CAPTURE_DIR LUA [SEED]

What we build: every opcode on every encapsulation, random fields. tshark must find the same numbers
and nothing malformed. Native IB goes to tshark as ERF records (link type 197, type 21), and in Ethernet
frames as we send them, which LUA (config/infiniband-ethertype.lua) makes known to it.
What we parse: every packet of the captures, field by field.
"""

import glob
import ipaddress
import os
import random
import struct
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../dts/lib"))

import tshark  # noqa: E402
from wirelib import CARRIERS, Checker, OPCODES, WireTool, random_packet  # noqa: E402

ROUNDS = 6
LINK_ETHERNET = 1
LINK_ERF = 197
ERF_TYPE_IB = 21
ETH_LEN = 14
ETH_MIN = 60

# our field -> tshark's, for what stands in every packet
BTH = {
    "opcode": "infiniband.bth.opcode", "solicited": "infiniband.bth.se",
    "migreq": "infiniband.bth.m", "pad": "infiniband.bth.padcnt", "tver": "infiniband.bth.tver",
    "pkey": "infiniband.bth.p_key", "dest_qpn": "infiniband.bth.destqp",
    "ackreq": "infiniband.bth.a", "psn": "infiniband.bth.psn",
}
EXTENSIONS = {
    "va": "infiniband.reth.va", "rkey": "infiniband.reth.r_key",
    "dmalen": "infiniband.reth.dmalen", "swap_add": "infiniband.atomiceth.swapdt",
    "compare": "infiniband.atomiceth.cmpdt", "syndrome": "infiniband.aeth.syndrome",
    "msn": "infiniband.aeth.msn", "atomic_orig": "infiniband.atomicacketh.origremdt",
    "imm": "infiniband.immdt", "ieth": "infiniband.ieth", "qkey": "infiniband.deth.q_key",
    "src_qpn": "infiniband.deth.srcqp",
}
GRH = {
    "ipver": "infiniband.grh.ipver", "traffic_class": "infiniband.grh.tclass",
    "flow_label": "infiniband.grh.flowlabel", "paylen": "infiniband.grh.paylen",
    "nxthdr": "infiniband.grh.nxthdr", "hop_limit": "infiniband.grh.hoplmt",
    "sgid": "infiniband.grh.sgid", "dgid": "infiniband.grh.dgid",
}
LRH = {
    "vl": "infiniband.lrh.vl", "lver": "infiniband.lrh.lver", "sl": "infiniband.lrh.sl",
    "lnh": "infiniband.lrh.lnh", "dlid": "infiniband.lrh.dlid",
    "pktlen": "infiniband.lrh.pktlen", "slid": "infiniband.lrh.slid",
}
IP = {
    "ip_src": "ip.src", "ip_dst": "ip.dst", "ip_tos": "ip.dsfield", "ip_ttl": "ip.ttl",
    "ip_id": "ip.id", "ip_len": "ip.len", "ip_checksum": "ip.checksum.status",
    "ip6_src": "ipv6.src", "ip6_dst": "ipv6.dst", "ip6_tclass": "ipv6.tclass",
    "ip6_flow": "ipv6.flow", "ip6_hlim": "ipv6.hlim", "ip6_plen": "ipv6.plen",
    "udp_dport": "udp.dstport", "udp_length": "udp.length",
}
CRC = {"icrc": "infiniband.invariant.crc", "vcrc": "infiniband.variant.crc"}
# tshark's guesses at what a payload of random bytes might be
GUESSES = ["eth_over_ib", "fc_infiniband", "iser_infiniband", "lnet_ib", "mellanox_eoib",
           "nvme_rdma", "rpcrdma_infiniband", "sdp_infiniband", "smb_direct_infiniband",
           "smcr_infiniband"]
MARKS = {"malformed": "_ws.malformed", "payload": "data.data"}
ALL = BTH | EXTENSIONS | GRH | LRH | IP | CRC | MARKS


MAD = {
    "base": "infiniband.mad.baseversion", "class": "infiniband.mad.mgmtclass",
    "class_version": "infiniband.mad.classversion", "method": "infiniband.mad.method",
    "tid": "infiniband.mad.transactionid", "attribute": "infiniband.mad.attributeid",
    "modifier": "infiniband.mad.attributemodifier", "hops": "infiniband.smpdirected.hopcount",
}


def write_pcap(path, link_type, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type))
        for frame in frames:
            if link_type == LINK_ERF:
                ib = frame[ETH_LEN:]
                frame = struct.pack("<Q", 0) + struct.pack(">BBHHH", ERF_TYPE_IB, 4, 16 + len(ib),
                                                           0, len(ib)) + ib
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def dissect(path, *options, fields=None, lua=None):
    fields = fields or ALL
    options += ("-T", "fields", "-E", "separator=/t", "-E", "occurrence=a",
                "-o", "ip.check_checksum:TRUE")
    for guess in GUESSES:
        options += ("--disable-heuristic", guess)
    for field in fields.values():
        options += ("-e", field)
    shown = tshark.run(path, *options, lua=lua)
    return [dict(zip(fields, line.split("\t"))) for line in shown.splitlines()]


def number(text):
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0) if text else None


def as_int(value):
    return int(value, 16) if isinstance(value, str) else int(value)


def ipv6_number(text):
    return int(ipaddress.IPv6Address(text)) if text else None


def want_of(p, frame):
    """field -> number that tshark must show; what is not listed must be absent"""
    payload = len(p["payload"]) // 2
    want = {f: int(p[f]) for f in BTH if f in p}
    want |= {"pad": -payload % 4, "tver": 0}
    for field in EXTENSIONS:
        if field in p:
            want[field] = as_int(p[field])
    if p["opcode"] in (0x16, 0x17):
        want["ieth"] = want.pop("rkey")
    l3 = len(frame) - ETH_LEN
    want["icrc"] = int.from_bytes(frame[-4:], "big")
    if p["encap"] == "rocev2-ipv4":
        want |= {"ip_src": int(p["sgid"][24:], 16), "ip_dst": int(p["dgid"][24:], 16),
                 "ip_tos": p["traffic_class"], "ip_ttl": p["hop_limit"], "ip_id": p["ip_id"],
                 "ip_len": l3, "ip_checksum": 1, "udp_dport": 4791, "udp_length": l3 - 20}
    elif p["encap"] == "rocev2-ipv6":
        want |= {"ip6_src": int(p["sgid"], 16), "ip6_dst": int(p["dgid"], 16),
                 "ip6_tclass": p["traffic_class"], "ip6_flow": p["flow_label"],
                 "ip6_hlim": p["hop_limit"], "ip6_plen": l3 - 40, "udp_dport": 4791,
                 "udp_length": l3 - 40}
    if p["encap"] in ("rocev1", "ib-global"):
        want |= {"ipver": 6, "traffic_class": p["traffic_class"], "flow_label": p["flow_label"],
                 "nxthdr": 0x1B, "hop_limit": p["hop_limit"], "sgid": int(p["sgid"], 16),
                 "dgid": int(p["dgid"], 16), "paylen": l3 - 40}
    if p["encap"].startswith("ib"):
        want |= {"vl": 0, "lver": 0, "sl": p["sl"], "dlid": p["dlid"], "slid": p["slid"],
                 "lnh": 3 if p["encap"] == "ib-global" else 2, "pktlen": (l3 - 2) // 4,
                 "icrc": int.from_bytes(frame[-6:-2], "big"),
                 "vcrc": int.from_bytes(frame[-2:], "big")}
        if p["encap"] == "ib-global":
            want["paylen"] = l3 - 2 - 48
    if p["opcode"] == 0x81:
        # tshark dissects no further than a CNP's BTH
        want = {f: v for f, v in want.items() if f not in CRC}
    return want


def compare(p, frame, shown, check):
    what = f"{p['encap']} 0x{p['opcode']:02x}"
    want = want_of(p, frame)
    check.equal(f"{what} malformed", shown.pop("malformed"), "")
    payload = bytes.fromhex(p["payload"]) if p["opcode"] != 0x81 else b""
    check.equal(f"{what} payload", shown.pop("payload"),
                (payload + bytes(-len(payload) % 4)).hex())
    for field, text in shown.items():
        if field in ("sgid", "dgid", "ip6_src", "ip6_dst"):
            got = ipv6_number(text)
        elif field in ("ip_src", "ip_dst"):
            got = int(bytes(int(b) for b in text.split(".")).hex(), 16) if text else None
        elif field in ("imm", "ieth"):
            # bytes, shown once per place that names the field
            got = {int(t, 16) for t in text.split(",")} if text else {None}
            got = got.pop() if len(got) == 1 else text
        else:
            got = number(text)
        check.equal(f"{what} {field}", got, want.get(field))


def compare_built(tool, lua, rng, check):
    for carrier in CARRIERS:
        packets = [random_packet(rng, opcode, carrier) for opcode in OPCODES
                   for _ in range(ROUNDS)]
        frames = tool.build(packets)
        if not carrier.startswith("ib"):
            views = [show(LINK_ETHERNET, frames)]
        else:
            views = [show(LINK_ERF, frames), show(LINK_ETHERNET, padded(frames), lua=lua)]
        for shown in views:
            check.equal(f"{carrier} packets", len(shown), len(packets))
            for p, frame, fields in zip(packets, frames, shown):
                compare(p, frame, fields, check)


def show(link_type, frames, *options, **how):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "built.pcap")
        write_pcap(path, link_type, frames)
        return dissect(path, *options, **how)


def padded(frames):
    return [frame.ljust(ETH_MIN, b"\0") for frame in frames]


def compare_smp(tool, lua, check):
    """A Get(NodeInfo) by a directed route of two hops, down to its MAD."""
    mad = struct.pack(">BBBBHBBQHHI", 1, 0x81, 1, 1, 0, 1, 2, 0x1122334455667788, 0x11, 0, 7)
    frame, = tool.build([{
        "encap": "ib-local", "opcode": 0x64, "pkey": 0xFFFF, "dest_qpn": 0, "qkey": 0,
        "src_qpn": 0, "psn": 0, "slid": 0xFFFF, "dlid": 0xFFFF, "sl": 0,
        "smac": "020000000001", "dmac": "020000000002", "payload": mad.ljust(256, b"\0").hex(),
    }])
    want = {"protocols": "eth:ethertype:polca_ib:infiniband", "malformed": "", "vl": 15,
            "dlid": 0xFFFF, "slid": 0xFFFF, "pktlen": 72, "opcode": 0x64, "dest_qpn": 0,
            "qkey": 0, "src_qpn": 0, "base": 1, "class": 0x81, "class_version": 1, "method": 1,
            "tid": 0x1122334455667788, "attribute": 0x11, "modifier": 7, "hops": 2,
            "icrc": int.from_bytes(frame[-6:-2], "big"), "vcrc": int.from_bytes(frame[-2:], "big")}
    names = {"protocols": "frame.protocols"} | ALL | MAD
    names = {name: names[name] for name in want}
    # our EtherType, and one that the script was told; only then another's frame is not decoded
    other = frame[:12] + b"\x88\xb6" + frame[14:]
    told = ("-X", "lua_script1:0x88b6")
    for options, carried in (((), frame), (told, other)):
        shown, = show(LINK_ETHERNET, [carried], *options, fields=names, lua=lua)
        for name, value in want.items():
            text = shown[name].split(",")[0]
            check.equal(f"SMP {name}", number(text) if isinstance(value, int) else text, value)
    shown, = show(LINK_ETHERNET, [frame], *told, fields=names, lua=lua)
    check.equal("SMP behind another EtherType", shown["protocols"], "eth:ethertype:data")


def read_pcap(path):
    with open(path, "rb") as f:
        data = f.read()
    at = 24
    while at < len(data):
        length, = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def compare_captured(tool, directory, check):
    """tshark says which frames are transport packets and what they carry; we must agree."""
    frames = [f for path in sorted(glob.glob(os.path.join(directory, "*.pcap")))
              for f in read_pcap(path)]
    shown = show(LINK_ETHERNET, frames)
    check.equal("captured frames", len(shown), len(frames))
    packets = 0
    for i, (ours, theirs) in enumerate(zip(tool.parse(frames), shown), 1):
        check.equal(f"captured {i} is transport", "refused" not in ours, theirs["opcode"] != "")
        if "refused" in ours or not theirs["opcode"]:
            continue
        packets += 1
        for field in [f for f in BTH if f in ours] + [f for f in EXTENSIONS if f in ours]:
            name = "ieth" if field == "rkey" and ours["opcode"] in (0x16, 0x17) else field
            text = theirs[name].split(",")[0]
            got = int(text, 16) if name in ("imm", "ieth") else number(text)
            check.equal(f"captured {i} {field}", as_int(ours[field]), got)
    check.equal("captured packets", packets, 1046)


def main():
    tool = WireTool(sys.argv[1])
    lua = sys.argv[3]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    check = Checker()
    print("seed", seed)
    compare_built(tool, lua, random.Random(seed), check)
    compare_smp(tool, lua, check)
    compare_captured(tool, sys.argv[2], check)
    check.finish(least=90000)


main()
