#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Traps on the wire against tshark's dissection: test_notice_tshark.py NOTICETOOL

noticetool prints the packets of traps 144, 256 and 257, from the LRH on. What they must say, field by
field, is written here from the sheet (smp-sma 1, 2, 5); tshark must find the same, and nothing
malformed. They are given to it as captures of an InfiniBand link (ERF records of type 21).
"""

import os
import struct
import subprocess
import sys
import tempfile

LINKTYPE_ERF, ERF_INFINIBAND = 197, 21
N = "infiniband.notice."
T = "infiniband.trap."

# of every Trap: smp-sma 1, 2 and 5
SMP = {
    "infiniband.lrh.vl": 15, "infiniband.lrh.sl": 0, "infiniband.lrh.lnh": 2,
    "infiniband.lrh.slid": 0x1234, "infiniband.lrh.dlid": 0x0567, "infiniband.lrh.pktlen": 72,
    "infiniband.bth.opcode": 0x64, "infiniband.bth.destqp": 0, "infiniband.bth.p_key": 0xFFFF,
    "infiniband.deth.q_key": 0, "infiniband.deth.srcqp": 0,
    "infiniband.mad.baseversion": 1, "infiniband.mad.mgmtclass": 0x01,
    "infiniband.mad.classversion": 1, "infiniband.mad.method": 0x05, "infiniband.mad.status": 0,
    "infiniband.mad.attributeid": 0x0002, "infiniband.mad.attributemodifier": 0,
    "infiniband.smplid.mkey": 0,
    N + "isgeneric": 1, N + "producertypevendorid": 1, N + "issuerlid": 0x1234,
    N + "noticetoggle": 0, N + "noticecount": 0,
}
EXPECTED = (
    {N + "type": 4, N + "trapnumberdeviceid": 144, T + "lidaddr": 0x1234,
     T + "otherlocalchanges": 1, T + "capabilitymask": 0xA1B2C3D4,
     T + "nodedescriptionchange": 1, T + "linkwidthenabledchange": 0,
     T + "linkspeecenabledchange": 1},
    {N + "type": 2, N + "trapnumberdeviceid": 256, T + "lidaddr": 0x1234, T + "drslid": 0xFFFE,
     T + "method": 0x02, T + "attributeid": 0x0015, T + "attributemodifier": 0x01020304,
     T + "mkey": 0x8899AABBCCDDEEFF, T + "drnotice": 1, T + "drpathtruncated": 0,
     T + "drhopcount": 3, T + "drnoticereturnpath": bytes((0, 0x11, 0x22, 0x33)) + bytes(26)},
    {N + "type": 2, N + "trapnumberdeviceid": 257, T + "lidaddr1": 0x0A0B, T + "lidaddr2": 0x0C0D,
     T + "key": 0x8001, T + "sl": 0xD, T + "qp1": 0x123456, T + "qp2": 0xABCDEF,
     T + "gidaddr1": "fe80::1", T + "gidaddr2": "fe80::2"},
)


def write_pcap(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_ERF))
        for p in packets:
            record = struct.pack(">QBBHHH", 0, ERF_INFINIBAND, 0x04, 16 + len(p), 0, len(p)) + p
            f.write(struct.pack("<IIII", 0, 0, len(record), len(record)) + record)


def dissect(path, fields):
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=/t",
               "-E", "occurrence=f"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"tshark: exit {done.returncode}: {done.stderr}")
    return [dict(zip(fields, line.split("\t"))) for line in done.stdout.splitlines()]


def value(text, like):
    if text == "":
        return None
    if isinstance(like, bytes):
        return bytes.fromhex(text.replace(":", ""))
    if isinstance(like, str):
        return text
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0)


def compare(number, want, shown):
    wrong = ["malformed"] if shown["_ws.malformed"] else []
    for field, right in want.items():
        got = value(shown[field], right)
        if got != right:
            wrong.append(f"{field}: tshark {got}, the sheet {right}")
    return [f"packet {number}: {w}" for w in wrong]


def main():
    done = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True)
    packets = [bytes.fromhex(line) for line in done.stdout.split()]
    fields = list(SMP) + sorted(set().union(*EXPECTED)) + ["_ws.malformed"]
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "traps.pcap")
        write_pcap(path, packets)
        shown = dissect(path, fields)
    wrong = []
    if not len(packets) == len(shown) == len(EXPECTED):
        wrong.append(f"{len(packets)} packets, {len(shown)} shown, {len(EXPECTED)} expected")
    for n, (want, found) in enumerate(zip(EXPECTED, shown), 1):
        wrong += compare(n, SMP | want, found)
    for line in wrong:
        print(line)
    print(f"{len(packets)} packets compared, {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


main()
