# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What the differential tests share: random packets, the rules of the opcode table, and wiretool.

The tables here are written from the sheet (rc-transport 1 and 2), not from lib/wire.
"""

import json
import subprocess

CARRIERS = ["rocev2-ipv4", "rocev2-ipv6", "rocev1", "ib-local", "ib-global"]

# opcode -> (extension headers in order, payload: "none", "pmtu", "some", "any")
STREAM = {
    0x00: ([], "pmtu"), 0x01: ([], "pmtu"), 0x02: ([], "some"), 0x03: (["imm"], "some"),
    0x04: ([], "any"), 0x05: (["imm"], "any"), 0x06: (["reth"], "pmtu"), 0x07: ([], "pmtu"),
    0x08: ([], "some"), 0x09: (["imm"], "some"), 0x0A: (["reth"], "any"),
    0x0B: (["reth", "imm"], "any"),
}
OPCODES = {
    **STREAM,
    0x0C: (["reth"], "none"), 0x0D: (["aeth"], "pmtu"), 0x0E: ([], "pmtu"),
    0x0F: (["aeth"], "some"), 0x10: (["aeth"], "any"), 0x11: (["aeth"], "none"),
    0x12: (["aeth", "atomicack"], "none"), 0x13: (["atomiceth"], "none"),
    0x14: (["atomiceth"], "none"), 0x16: (["ieth"], "some"), 0x17: (["ieth"], "any"),
    **{0x20 + op: row for op, row in STREAM.items()},
    0x64: (["deth"], "any"), 0x65: (["deth", "imm"], "any"),
    0x81: ([], "cnp"),
}

# header -> (field, bytes) in order; "-" is a reserved byte
HEADERS = {
    "deth": [("qkey", 4), ("-", 1), ("src_qpn", 3)],
    "reth": [("va", 8), ("rkey", 4), ("dmalen", 4)],
    "atomiceth": [("va", 8), ("rkey", 4), ("swap_add", 8), ("compare", 8)],
    "aeth": [("syndrome", 1), ("msn", 3)],
    "atomicack": [("atomic_orig", 8)],
    "imm": [("imm", 4)],
    "ieth": [("rkey", 4)],
}


def header_fields(opcode):
    return [f for h in OPCODES[opcode][0] for f in HEADERS[h]]


def random_packet(rng, opcode, carrier, pmtu=256):
    """A request to `wiretool build`: every field it sends is random."""
    rule = OPCODES[opcode][1]
    length = {"none": 0, "pmtu": pmtu, "some": rng.randint(1, pmtu),
              "any": rng.randint(0, pmtu), "cnp": 16}[rule]
    p = {
        "encap": carrier, "opcode": opcode, "solicited": rng.random() < .5,
        "migreq": rng.random() < .5, "ackreq": rng.random() < .5, "pkey": rng.getrandbits(16),
        "dest_qpn": rng.randint(2, 0xFFFFFE), "psn": rng.getrandbits(24),
        "traffic_class": rng.getrandbits(8), "hop_limit": rng.randint(1, 255),
        "flow_label": rng.getrandbits(20), "ip_id": rng.getrandbits(16),
        "lqpn": rng.getrandbits(24), "sl": rng.getrandbits(4) if carrier.startswith("ib") else 0,
        "slid": rng.randint(1, 0xBFFF), "dlid": rng.randint(1, 0xBFFF),
        "smac": "02%010x" % rng.getrandbits(40), "dmac": "02%010x" % rng.getrandbits(40),
        "payload": "00" * 16 if rule == "cnp" else rng.randbytes(length).hex(),
    }
    for gid in "sgid", "dgid":
        if carrier == "rocev2-ipv4":
            p[gid] = "00" * 10 + "ffff" + "0a" + rng.randbytes(3).hex()
        else:
            p[gid] = "fe80" + "00" * 6 + rng.randbytes(8).hex()
    for field, size in header_fields(opcode):
        if field == "-":
            continue
        value = rng.getrandbits(8 * size)
        if field == "syndrome":
            value = rng.choice([rng.randint(0, 31), 0x20 + rng.randint(0, 31),
                                0x60, 0x61, 0x62, 0x63])
        p[field] = "%016x" % value if size == 8 else value
    return p


def carried_fields(p):
    """The fields of a request that stand in the packet, as `wiretool parse` prints them."""
    names = ["encap", "opcode", "solicited", "migreq", "ackreq", "pkey", "dest_qpn", "psn",
             "payload"]
    names += [f for f, _ in header_fields(p["opcode"]) if f != "-"]
    if p["encap"] != "ib-local":
        names += ["sgid", "dgid", "traffic_class", "hop_limit"]
        if p["encap"] != "rocev2-ipv4":
            names += ["flow_label"]
    if p["encap"].startswith("ib"):
        names += ["slid", "dlid", "sl"]
    return {n: p[n] for n in names}


class WireTool:
    def __init__(self, path):
        self.path = path

    def run(self, mode, lines):
        done = subprocess.run([self.path, mode], input="".join(line + "\n" for line in lines),
                              capture_output=True, text=True, check=False)
        out = done.stdout.splitlines()
        if done.returncode != 0 or done.stderr or len(out) != len(lines):
            raise SystemExit(f"wiretool {mode}: exit {done.returncode}, {len(out)} answers to "
                             f"{len(lines)} lines: {done.stderr}")
        return out

    def parse(self, frames):
        return [json.loads(line) for line in self.run("parse", [f.hex() for f in frames])]

    def build(self, packets):
        return [bytes.fromhex(line) for line in self.run("build", [json.dumps(p) for p in packets])]


class Checker:
    """Counts comparisons; a test that compared nothing fails."""

    def __init__(self):
        self.compared = 0
        self.failures = []

    def equal(self, what, got, want):
        self.compared += 1
        if got != want:
            self.failures.append(f"{what}: got {got!r}, want {want!r}")

    def finish(self, least):
        for line in self.failures[:20]:
            print("FAIL", line[:300])
        print(f"{self.compared} comparisons, {len(self.failures)} differences")
        if self.failures or self.compared < least:
            raise SystemExit(1)
