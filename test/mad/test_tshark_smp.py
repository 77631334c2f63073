#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""SMPs on a native IB port against tshark's dissection: test_tshark_smp.py MADTOOL

Request and reply of a directed route of one hop, of the same with an unknown class version, and of
a LID-routed Get: what they must say is written here from the sheet (smp-sma 1 and 2).

tshark 4.0 shows the D bit as the top bit of the status; its own field for D is always 0.
"""

import os
import struct
import subprocess
import sys
import tempfile

from test_tshark import MAD, UD, dissect, write_pcap

LINKTYPE_ERF = 197  # how tshark wants packets that begin with an LRH
ERF_INFINIBAND = 21
ETHERNET = 14
LRH = {
    "vl": "infiniband.lrh.vl", "sl": "infiniband.lrh.sl", "lnh": "infiniband.lrh.lnh",
    "dlid": "infiniband.lrh.dlid", "slid": "infiniband.lrh.slid",
    "pktlen": "infiniband.lrh.pktlen", "pkey": "infiniband.bth.p_key",
}
ROUTE = {
    "route_status": "infiniband.smpdirected.smpstatus",
    "pointer": "infiniband.smpdirected.hoppointer", "count": "infiniband.smpdirected.hopcount",
    "drslid": "infiniband.smpdirected.drslid", "drdlid": "infiniband.smpdirected.drdlid",
}
M_KEY = "infiniband.smplid.mkey"
PATHS = {"there": "infiniband.smpdirected.initialpath", "back": "infiniband.smpdirected.returnpath"}
ALL = LRH | UD | MAD | ROUTE | PATHS | {"mkey": M_KEY, "malformed": "_ws.malformed"}

PACKET = {"vl": 15, "sl": 0, "lnh": 2, "pktlen": 72, "pkey": 0xFFFF, "opcode": 0x64, "dest_qpn": 0,
          "qkey": 0, "src_qpn": 0, "base": 1, "attribute": 0x11, "modifier": 0}


def routed(version, method, pointer, status=0):
    back = int(method == 0x81)
    return PACKET | {
        "dlid": 0xFFFF, "slid": 0xFFFF, "class": 0x81, "version": version, "method": method,
        "route_status": back << 15 | status, "pointer": pointer, "count": 1, "drslid": 0xFFFF,
        "drdlid": 0xFFFF, "there": bytes([0, 1] + [0] * 62), "back": bytes([0, back] + [0] * 62),
    }


def by_lid(slid, dlid, method):
    return PACKET | {"dlid": dlid, "slid": slid, "class": 1, "version": 1, "method": method,
                     "status": 0, "specific": 0, "mkey": 0x1122334455667788}


EXPECTED = (
    routed(1, 0x01, 1), routed(1, 0x81, 1),
    routed(2, 0x01, 1), routed(2, 0x81, 1, 0x0004),
    by_lid(2, 1, 0x01), by_lid(1, 2, 0x81),
)


def erf(packet):
    size = 16 + len(packet)
    return struct.pack(">QBBHHH", 0, ERF_INFINIBAND, 4, size, 0, len(packet)) + packet


def read(text, like):
    if text == "":
        return None
    return bytes.fromhex(text.replace(":", "")) if isinstance(like, bytes) else int(text, 0)


def compare(number, want, shown):
    wrong = ["malformed"] if shown["malformed"] else []
    for field, value in want.items():
        got = read(shown[field], value)
        if got != value:
            wrong.append(f"{field}: tshark {got}, the sheet {value}")
    return [f"packet {number}: {w}" for w in wrong]


def main():
    done = subprocess.run([sys.argv[1], "smp"], capture_output=True, text=True, check=True)
    frames = [erf(bytes.fromhex(line)[ETHERNET:]) for line in done.stdout.split()]
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "smps.pcap")
        write_pcap(path, frames, LINKTYPE_ERF)
        shown = dissect(path, ALL)
    wrong = []
    if not len(frames) == len(shown) == len(EXPECTED):
        wrong.append(f"{len(frames)} frames, {len(shown)} shown, {len(EXPECTED)} expected")
    for n, (want, fields) in enumerate(zip(EXPECTED, shown), 1):
        wrong += compare(n, want, fields)
    for line in wrong:
        print(line)
    print(f"{len(frames)} packets compared, {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
