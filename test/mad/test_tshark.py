#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Class version 2 on the wire against tshark's dissection: test_tshark.py MADTOOL

madtool prints the frames of some transactions. What they must say, field by field, is written here
from the sheet (sa-multipacket B1, B4 to B7); tshark must find the same, and nothing malformed.

tshark 4.0 splits byte 26 in the middle, the standard 5/3 (B1): the byte is compared as a whole.
"""

import os
import struct
import subprocess
import sys
import tempfile

MAD_OFF = 14 + 20 + 8 + 12 + 8  # Ethernet, IPv4, UDP, BTH, DETH
DATA, ACK, STOP, ABORT = 1, 2, 3, 4
ACTIVE, FIRST, LAST = 1, 2, 4
NO_RESPTIME = 0x1F << 3

MAD = {
    "base": "infiniband.mad.baseversion", "class": "infiniband.mad.mgmtclass",
    "version": "infiniband.mad.classversion", "method": "infiniband.mad.method",
    "status": "infiniband.mad.status", "specific": "infiniband.mad.classspecific",
    "tid": "infiniband.mad.transactionid", "attribute": "infiniband.mad.attributeid",
    "modifier": "infiniband.mad.attributemodifier",
}
RMPP = {
    "rmpp_version": "infiniband.rmpp.rmppversion", "rmpp_type": "infiniband.rmpp.rmpptype",
    "resp_time": "infiniband.rmpp.rresptime", "flags": "infiniband.rmpp.rmppflags",
    "rmpp_status": "infiniband.rmpp.rmppstatus", "segment": "infiniband.rmpp.segmentnumber",
    "length": "infiniband.rmpp.payloadlength", "window": "infiniband.rmpp.newwindowlast",
}
SA = {
    "sm_key": "infiniband.sa.smkey", "offset": "infiniband.sa.attributeoffset",
    "mask": "infiniband.sa.componentmask",
}
UD = {
    "opcode": "infiniband.bth.opcode", "dest_qpn": "infiniband.bth.destqp",
    "qkey": "infiniband.deth.q_key", "src_qpn": "infiniband.deth.srcqp",
}
ALL = UD | MAD | RMPP | SA | {"data": "infiniband.rmpp.transferreddata",
                              "malformed": "_ws.malformed"}


def pattern(at, length):
    return bytes((i * 7 + (i >> 8)) & 0xFF for i in range(at, at + length))


def data(method, n, total, length):
    """Segment n of total, length bytes of records in all (B4)."""
    share = min(200, length - 200 * (n - 1))
    paylen = 20 + share if n == total else 20 * total + length if n == 1 else 0
    flags = (FIRST if n == 1 else 0) | (LAST if n == total else 0)
    return method, DATA, flags, 0, n, paylen, pattern(200 * (n - 1), share)


def ack(method, n, window_end):
    return method, ACK, 0, 0, n, window_end, b""


def stream(method, total, length):
    return [data(method, n, total, length) for n in range(1, total + 1)]


REQUEST = (0x12, 0, 0, 0, 0, 0, b"")
# per transaction, the responder's packets, then the requester's
EXPECTED = (
    # no record
    stream(0x92, 1, 0) + [REQUEST, ack(0x12, 1, 17)]
    # a single segment
    + stream(0x92, 1, 112) + [REQUEST, ack(0x12, 1, 17)]
    # 20 NodeRecords: 2240 bytes in 12 segments
    + stream(0x92, 12, 2240) + [REQUEST, ack(0x12, 1, 17), ack(0x12, 12, 28)]
    # double-sided: 450 bytes each way
    + [ack(0x94, 1, 17), ack(0x94, 3, 19)] + stream(0x94, 3, 450)
    + stream(0x14, 3, 450) + [ack(0x14, 1, 17), ack(0x14, 3, 19)]
    # the same, and no reply: ready for it eight times, then too many retries
    + [ack(0x94, 1, 17)]
    + stream(0x14, 1, 50) + [ack(0x14, 0, 1)] * 8 + [(0x14, ABORT, 0, 126, 0, 0, b"")]
    # the sender's data are gone beyond byte 1000
    + stream(0x92, 12, 2240)[:5] + [(0x92, STOP, 0, 1, 0, 0, b"")]
    + [REQUEST, ack(0x12, 1, 17)]
    # the receiver's taker refuses the fourth segment
    + stream(0x92, 12, 2240) + [REQUEST, ack(0x12, 1, 17), (0x12, ABORT, 0, 127, 0, 0, b"")]
)


def want_of(packet, mad):
    """field -> what tshark must show; None: absent"""
    method, kind, flags, status, segment, length, payload = packet
    request = kind == 0
    want = {
        "opcode": 0x64, "dest_qpn": 1, "qkey": 0x80010000, "src_qpn": 1,
        "base": 1, "class": 3, "version": 2, "method": method, "status": 0, "specific": 0,
        "tid": int.from_bytes(mad[8:16], "big"), "attribute": 0x11, "modifier": 0x01020304,
        "rmpp_type": kind,
    }
    if not request:
        byte26 = NO_RESPTIME | ACTIVE | flags
        want |= {"rmpp_version": 1, "resp_time": byte26 >> 4, "flags": byte26 & 15,
                 "rmpp_status": status}
    if kind in (DATA, ACK):
        want |= {"segment": segment, "length" if kind == DATA else "window": length}
    # the header of a packet's own sender: responses have no SM_Key, mask and offset here
    if kind in (0, DATA):
        ours = request or method == 0x14
        want |= {"sm_key": 0x1122334455667788 if ours else 0, "offset": 14 if ours else 0,
                 "mask": 0x0123456789ABCDEF if ours else 0}
    return want, payload


def write_pcap(path, frames, link_type=1):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type))
        for frame in frames:
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def dissect(path, wanted):
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=/t",
               "-E", "occurrence=f"]
    for field in wanted.values():
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"tshark: exit {done.returncode}: {done.stderr}")
    return [dict(zip(wanted, line.split("\t"))) for line in done.stdout.splitlines()]


def compare(number, packet, frame, shown):
    mad = frame[MAD_OFF:MAD_OFF + 256]
    want, payload = want_of(packet, mad)
    wrong = []
    if shown["malformed"]:
        wrong.append("malformed")
    for field, value in want.items():
        got = int(shown[field], 0) if shown[field] else None
        if got != value:
            wrong.append(f"{field}: tshark {got}, the sheet {value}")
    if packet[1] == DATA and not bytes.fromhex(shown["data"]).startswith(
            mad[36:56] + payload):
        wrong.append("data")
    if mad[56:56 + len(payload)] != payload or any(mad[56 + len(payload):]):
        wrong.append("payload or padding")
    return [f"packet {number} {packet[:6]}: {w}" for w in wrong]


def main():
    done = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True)
    frames = [bytes.fromhex(line) for line in done.stdout.split()]
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "mads.pcap")
        write_pcap(path, frames)
        shown = dissect(path, ALL)
    wrong = []
    if not len(frames) == len(shown) == len(EXPECTED):
        wrong.append(f"{len(frames)} frames, {len(shown)} shown, {len(EXPECTED)} expected")
    for n, (packet, frame, fields) in enumerate(zip(EXPECTED, frames, shown), 1):
        wrong += compare(n, packet, frame, fields)
    for line in wrong:
        print(line)
    print(f"{len(frames)} packets compared, {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
