#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""lib/wire against Scapy's contrib.roce, in both directions: diff_scapy.py WIRETOOL [SEED]

Scapy makes random packets, we parse them and their ICRC must hold; we make random packets, Scapy
dissects them and rebuilds the same bytes. Scapy's own ICRC serves IPv4; for IPv6 and RoCEv1 a few
lines here compute it from rc-transport 9 with zlib.
"""

import random
import struct
import sys
import zlib

from scapy.all import (BitField, Ether, IntField, IP, IPv6, LongField, Packet, Raw, UDP,
                       XByteField, raw)
from scapy.contrib.roce import AETH, BTH, GRH

from wirelib import Checker, OPCODES, WireTool, carried_fields, random_packet

ROUNDS = 25
ETHERTYPE_ROCEV1 = 0x8915


class RETH(Packet):
    fields_desc = [LongField("va", 0), IntField("rkey", 0), IntField("dmalen", 0)]


class AtomicETH(Packet):
    fields_desc = [LongField("va", 0), IntField("rkey", 0), LongField("swap_add", 0),
                   LongField("compare", 0)]


class AtomicAckETH(Packet):
    fields_desc = [LongField("atomic_orig", 0)]


class DETH(Packet):
    fields_desc = [IntField("qkey", 0), XByteField("reserved", 0), BitField("src_qpn", 0, 24)]


class ImmDt(Packet):
    fields_desc = [IntField("imm", 0)]


class IETH(Packet):
    fields_desc = [IntField("rkey", 0)]


LAYERS = {"reth": RETH, "atomiceth": AtomicETH, "atomicack": AtomicAckETH, "aeth": AETH,
          "deth": DETH, "imm": ImmDt, "ieth": IETH}
BTH_NAMES = {"opcode": "opcode", "solicited": "solicited", "migreq": "migreq", "pkey": "pkey",
             "dest_qpn": "dqpn", "ackreq": "ackreq", "psn": "psn"}


def number(value):
    return int(value, 16) if isinstance(value, str) else int(value)


def transport(p):
    """BTH, extension headers, payload and padding as Scapy layers."""
    payload = bytes.fromhex(p["payload"])
    pad = -len(payload) % 4
    layers = BTH(padcount=pad, **{theirs: int(p[ours]) for ours, theirs in BTH_NAMES.items()})
    for h in OPCODES[p["opcode"]][0]:
        cls = LAYERS[h]
        layers /= cls(**{f.name: number(p[f.name]) for f in cls.fields_desc if f.name in p})
    if payload or pad:
        layers /= Raw(payload + bytes(pad))
    return layers


def mac(text):
    return ":".join(text[i:i + 2] for i in range(0, 12, 2))


def ipv4(gid):
    return ".".join(str(b) for b in bytes.fromhex(gid)[12:])


def ipv6(gid):
    return ":".join(gid[i:i + 4] for i in range(0, 32, 4))


def masked_icrc(l3, bth_off, udp):
    """rc-transport 9, rows RoCEv1 and RoCEv2/IPv6; l3 without the ICRC"""
    m = bytearray(l3)
    m[0] |= 0x0F
    m[1:4] = b"\xff\xff\xff"
    m[7] = 0xFF
    if udp:
        m[46:48] = b"\xff\xff"
    m[bth_off + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m)))


def scapy_frame(p):
    ether = Ether(src=mac(p["smac"]), dst=mac(p["dmac"]))
    if p["encap"] == "rocev2-ipv4":
        ip = IP(src=ipv4(p["sgid"]), dst=ipv4(p["dgid"]), tos=p["traffic_class"],
                ttl=p["hop_limit"], id=p["ip_id"], flags="DF")
        return raw(ether / ip / UDP(sport=p["udp_sport"], dport=4791) / transport(p))
    body = raw(BTH_without_icrc(p))
    if p["encap"] == "rocev2-ipv6":
        ip = IPv6(src=ipv6(p["sgid"]), dst=ipv6(p["dgid"]), tc=p["traffic_class"],
                  fl=p["flow_label"], hlim=p["hop_limit"])
        udp = UDP(sport=p["udp_sport"], dport=4791, len=8 + len(body) + 4, chksum=0)
        frame = raw(ether / ip / udp / Raw(body + bytes(4)))
        return frame[:-4] + masked_icrc(frame[14:-4], 48, True)
    grh = GRH(tclass=p["traffic_class"], flowlabel=p["flow_label"], paylen=len(body) + 4,
              nexthdr=0x1B, hoplmt=p["hop_limit"], sgid=int(p["sgid"], 16),
              dgid=int(p["dgid"], 16))
    ether.type = ETHERTYPE_ROCEV1
    frame = raw(ether) + raw(grh) + body
    return frame + masked_icrc(frame[14:], 40, False)


def BTH_without_icrc(p):
    layers = transport(p)
    layers.icrc = 0
    return raw(layers)[:-4]


def scapy_to_us(tool, rng, check):
    packets = []
    for opcode in OPCODES:
        for carrier in "rocev2-ipv4", "rocev2-ipv6", "rocev1":
            for _ in range(ROUNDS):
                p = random_packet(rng, opcode, carrier)
                p["udp_sport"] = rng.getrandbits(16) if carrier != "rocev1" else 0
                packets.append(p)
    frames = [scapy_frame(p) for p in packets]
    for p, got in zip(packets, tool.parse(frames)):
        want = carried_fields(p) | {"crc": "ok", "udp_sport": p["udp_sport"],
                                    "pad": -len(p["payload"]) // 2 % 4}
        for field, value in want.items():
            check.equal(f"scapy {p['encap']} 0x{p['opcode']:02x} {field}", got.get(field), value)
    # a damaged payload byte must not pass
    damaged = []
    for f in frames[::7]:
        f = bytearray(f)
        f[-5] ^= 1 << rng.randrange(8)
        damaged.append(bytes(f))
    for got in tool.parse(damaged):
        check.equal("damaged", got.get("crc"), "icrc")


def us_to_scapy(tool, rng, check):
    packets = [random_packet(rng, opcode, carrier) for opcode in OPCODES
               for carrier in ("rocev2-ipv4", "rocev2-ipv6", "rocev1") for _ in range(ROUNDS)]
    for p, frame in zip(packets, tool.build(packets)):
        what = f"ours {p['encap']} 0x{p['opcode']:02x}"
        eth = Ether(frame)
        check.equal(f"{what} layers", BTH in eth, True)
        if BTH not in eth:
            continue
        bth = eth[BTH]
        check.equal(f"{what} source", eth.src, mac(p["smac"]))
        check.equal(f"{what} destination", eth.dst, mac(p["dmac"]))
        for ours, theirs in BTH_NAMES.items():
            check.equal(f"{what} {ours}", getattr(bth, theirs), int(p[ours]))
        for field, value in (("version", 0), ("fecn", 0), ("resv6", 0), ("resv7", 0),
                             ("becn", int(p["opcode"] == 0x81)),
                             ("padcount", -len(p["payload"]) // 2 % 4)):
            check.equal(f"{what} {field}", getattr(bth, field), value)
        rest = raw(bth.payload)
        for h in OPCODES[p["opcode"]][0]:
            layer = LAYERS[h](rest)
            for f in layer.fields_desc:
                if f.name in p:
                    check.equal(f"{what} {h}.{f.name}", getattr(layer, f.name), number(p[f.name]))
            rest = rest[len(layer) - len(layer.payload):]
        payload = bytes.fromhex(p["payload"])
        check.equal(f"{what} payload", rest, payload + bytes(-len(payload) % 4))
        if p["encap"] == "rocev2-ipv4":
            ip = eth[IP]
            for field, value in (("src", ipv4(p["sgid"])), ("dst", ipv4(p["dgid"])),
                                 ("tos", p["traffic_class"]), ("ttl", p["hop_limit"]),
                                 ("id", p["ip_id"]), ("flags", "DF"), ("len", len(frame) - 14)):
                check.equal(f"{what} ip.{field}", getattr(ip, field), value)
            # let Scapy compute what we computed: header checksum and ICRC
            ip.chksum = None
            bth.icrc = None
            check.equal(f"{what} rebuilt", raw(eth), frame)
        elif p["encap"] == "rocev2-ipv6":
            ip = eth[IPv6]
            for field, value in (("tc", p["traffic_class"]), ("hlim", p["hop_limit"]),
                                 ("fl", p["flow_label"]), ("plen", len(frame) - 54), ("nh", 17)):
                check.equal(f"{what} ip.{field}", getattr(ip, field), value)
            check.equal(f"{what} icrc", frame[-4:], masked_icrc(frame[14:-4], 48, True))
        else:
            grh = eth[GRH]
            for field, value in (("ipver", 6), ("tclass", p["traffic_class"]),
                                 ("flowlabel", p["flow_label"]), ("paylen", len(frame) - 54),
                                 ("nexthdr", 0x1B), ("hoplmt", p["hop_limit"]),
                                 ("sgid", int(p["sgid"], 16)), ("dgid", int(p["dgid"], 16))):
                check.equal(f"{what} grh.{field}", getattr(grh, field), value)
            check.equal(f"{what} icrc", frame[-4:], masked_icrc(frame[14:-4], 40, False))
        if UDP in eth:
            check.equal(f"{what} udp.dport", eth[UDP].dport, 4791)
            check.equal(f"{what} udp.len", eth[UDP].len, len(raw(eth[UDP])))


def main():
    tool = WireTool(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    check = Checker()
    print("seed", seed)
    scapy_to_us(tool, rng, check)
    us_to_scapy(tool, rng, check)
    check.finish(least=30000)


main()
