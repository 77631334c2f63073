#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""CM messages against tshark's dissection: test_message_tshark.py CMTOOL

cmtool prints each message once, then the REQ with either RDMA-CM header. What tshark must show is
written here (cm.md 2, 7). Where it shows less, the bytes are compared with what the sheet says:
tshark 4.0 names MRA, LAP, APR and SIDR but does not look into them, and it misreads bytes 88 to 91
and 132 to 135 of a REQ (cm.md 8).
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mad"))
from test_tshark import MAD, UD, dissect, write_pcap  # noqa: E402

INFO = "a0a1a2a3a4a5a6a7a8" + 62 * "00" + "ee"
LINK, DOC = "fe80000000000000020203fffe040506", "20010db8000000000000000000000007"


def private(length):
    return bytes(range(1, length + 1)).hex()


REQ = {
    "req": 0xA1A2A3A4, "req.serviceid.prefix": "0000000001", "req.serviceid.protocol": 6,
    "req.serviceid.dport": 0x1234, "req.localcaguid": 0x9102030405060788,
    "req.localqkey": 0x80112233, "req.localqpn": 0xC1C2C3, "req.responderres": 0x84,
    "req.localeecn": 0xD1D2D3, "req.initdepth": 0x95, "req.remoteeecn": 0xE1E2E3,
    "req.remoteresptout": 20, "req.transpsvctype": 2, "req.e2eflowctrl": 1,
    "req.startpsn": 0xF1F2F3, "req.localresptout": 19, "req.retrcount": 6, "req.pkey": 0x8001,
    "req.pppmtu": 4, "req.rdcexist": 0, "req.rnrretrcount": 7, "req.maxcmretr": 13, "req.srq": 1,
    "req.ext_transport": 1, "req.prim_locallid": 0x0102, "req.prim_remotelid": 0x0304,
    "req.prim_localgid_ipv4": "10.0.0.1", "req.prim_remotegid_ipv4": "10.0.0.2",
    "req.prim_tfcclass": 0x5C, "req.prim_hoplim": 64, "req.prim_sl": 9,
    "req.prim_subnetlocal": 1, "req.prim_localacktout": 18, "req.alt_locallid": 0x0506,
    "req.alt_remotelid": 0x0708, "req.alt_localgid": LINK, "req.alt_remotegid": DOC,
    "req.alt_tfcclass": 0x6D, "req.alt_hoplim": 63, "req.alt_sl": 6, "req.alt_subnetlocal": 0,
    "req.alt_localacktout": 17,
}
REP = {
    "rep": 0x11121314, "rep.remotecommid": 0x21222324, "rep.localqkey": 0x31323334,
    "rep.localqpn": 0x414243, "rep.localeecn": 0x515253, "rep.startpsn": 0x616263,
    "rep.respres": 0x10, "rep.initdepth": 0x20, "rep.tgtackdelay": 15, "rep.failoveracc": 1,
    "rep.e2eflowctrl": 0, "rep.rnrretrcount": 5, "rep.srq": 1,
    "rep.localcaguid": 0x7172737475767778, "rep.private": private(196),
}
REJ = {
    "rej.localcommid": 0x41424344, "rej.remotecommid": 0x51525354, "rej.msgrej": 1,
    "rej.rejinfolen": 8, "rej.reason": 28, "rej.ari": INFO, "rej.private": private(148),
}
RTU = {"rtu.localcommid": 0x61626364, "rtu.remotecommid": 0x71727374, "rtu.private": private(224)}
DREQ = {"dreq.localcommid": 0x81828384, "dreq.remotecommid": 0x91929394,
        "req.remoteqpneecn": 0xA1A2A3, "dreq.private": private(220)}
DREP = {"drsp.localcommid": 0xB1B2B3B4, "drsp.remotecommid": 0xC1C2C3C4,
        "drsp.private": private(224)}
IPV4 = {"req.ip_cm.majv": 0, "req.ip_cm.minv": 0, "req.ip_cm.ipv": 4, "req.ip_cm.sport": 0xBEEF,
        "req.ip_cm.sip4": "10.0.0.1", "req.ip_cm.dip4": "10.0.0.2",
        "req.ip_cm.private": "5a" + 55 * "00"}
IPV6 = {"req.ip_cm.majv": 0, "req.ip_cm.minv": 0, "req.ip_cm.ipv": 6, "req.ip_cm.sport": 0x8001,
        "req.ip_cm.sip6": "fe80::202:3ff:fe04:506", "req.ip_cm.dip6": "2001:db8::7",
        "req.ip_cm.private": "5a" + 55 * "00"}

# bytes behind the MAD header: (offset, what the sheet has there)
REQ_BYTES = [(0, "a1a2a3a400b1b2b3"), (88, "abcde003"), (132, "12345025")]
MRA_BYTES = [(0, "2122232431323334" + "40c0" + private(222))]
LAP_BYTES = [(0, "1a2a3a4a5a6a7a8a" + "00000000" + "818283a0" + "00000000"), (20, "0a0b0c0d"),
             (24, DOC), (40, LINK), (56, "9abcd07e3e125880"), (64, private(168))]
APR_BYTES = [(0, "1b2b3b4b5b6b7b8b" + "0a050000"), (12, INFO), (84, private(148))]
SIDR_REQ_BYTES = [(0, "d1d2d3d480020000" + "0000000001111c06"), (16, private(216))]
SIDR_REP_BYTES = [(0, "e1e2e3e404480000" + "f1f2f300"), (12, "0000000001111c07" + "01234567"),
                  (24, INFO), (96, private(136))]

# title, fields that tshark must show, bytes
EXPECTED = (
    ("ConnectRequest", REQ, REQ_BYTES),
    ("MsgRcptAck", {}, MRA_BYTES),
    ("ConnectReject", REJ, []),
    ("ConnectReply", REP, []),
    ("ReadyToUse", RTU, []),
    ("DisconnectRequest", DREQ, []),
    ("DisconnectReply", DREP, []),
    ("ServiceIDResReq", {}, SIDR_REQ_BYTES),
    ("ServiceIDResReqResp", {}, SIDR_REP_BYTES),
    ("LoadAlternatePath", {}, LAP_BYTES),
    ("AlternatePathResponse", {}, APR_BYTES),
    ("ConnectRequest", REQ | IPV4, REQ_BYTES),
    ("ConnectRequest", REQ | IPV6, REQ_BYTES),
)
CM_FIELDS = sorted({name for _, fields, _ in EXPECTED for name in fields})
ALL = (UD | MAD | {name: "infiniband.cm." + name for name in CM_FIELDS}
       | {"title": "_ws.col.Info", "malformed": "_ws.malformed"})


def frame_of(mad):
    """RoCEv2 over IPv4; what is around the MAD is not lib/cm's"""
    bth = struct.pack(">BBHII", 0x64, 0, 0xFFFF, 1, 0)
    datagram = bth + struct.pack(">II", 0x80010000, 1) + mad + bytes(4)
    udp = struct.pack(">HHHH", 0xD872, 4791, 8 + len(datagram), 0) + datagram
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0,
                     bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    return bytes(12) + b"\x08\x00" + ip + udp


def header_of(number):
    """What the common header says (cm.md 1); cmtool's TIDs count along."""
    message = number if number < 11 else 0
    return {"opcode": 0x64, "dest_qpn": 1, "base": 1, "class": 7, "version": 2, "method": 3,
            "status": 0, "specific": 0, "tid": 0x1112131415161710 + message,
            "attribute": 0x10 + message, "modifier": 0}


def compare(number, mad, shown):
    title, fields, parts = EXPECTED[number]
    wrong = []
    if shown["malformed"]:
        wrong.append("malformed")
    if shown["title"] != "CM: " + title:
        wrong.append(f"tshark calls it {shown['title']}")
    for field, value in (header_of(number) | fields).items():
        got = shown[field]
        if isinstance(value, int) and got:
            got = int(got, 0)
        if got != value:
            wrong.append(f"{field}: tshark {got}, the sheet {value}")
    for at, text in parts:
        want = bytes.fromhex(text)
        got = mad[24 + at:24 + at + len(want)]
        if got != want:
            wrong.append(f"bytes from {at}: {got.hex()}, the sheet {text}")
    return [f"message {number} {title}: {w}" for w in wrong]


def main():
    done = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True)
    mads = [bytes.fromhex(line) for line in done.stdout.split()]
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "cm.pcap")
        write_pcap(path, [frame_of(mad) for mad in mads])
        shown = dissect(path, ALL)
    wrong = []
    if not len(mads) == len(shown) == len(EXPECTED):
        wrong.append(f"{len(mads)} messages, {len(shown)} shown, {len(EXPECTED)} expected")
    for number, (mad, fields) in enumerate(zip(mads, shown)):
        wrong += compare(number, mad, fields)
    for line in wrong:
        print(line)
    print(f"{len(mads)} messages compared, {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
