#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Seed corpora for the fuzz targets: make_corpus.py DIR

Writes DIR/packet, DIR/qp, DIR/rpc, DIR/config and DIR/import from the captures, docs/rpc.md and config/.
"""
import hashlib
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def frames(path):
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def save(folder, blob):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(blob).hexdigest()[:16]).write_bytes(blob)


def record(bth):
    """fuzz_qp's {length, flags, bytes}: aimed at the QP, in sequence."""
    length = len(bth) & ~3
    return bytes([length // 8, length % 8, 0]) + bth[:length]


def main():
    out = pathlib.Path(sys.argv[1])
    for pcap in sorted((ROOT / "test/data/captures").glob("*.pcap")):
        stream = b""
        for frame in frames(pcap):
            kind = struct.unpack(">H", frame[12:14])[0]
            if kind not in (0x0800, 0x86DD):
                continue
            l3 = frame[14:]
            save(out / "packet", bytes([0 if kind == 0x0800 else 1]) + l3)
            start = (20 if kind == 0x0800 else 40) + 8
            bth = bytearray(l3[start:-4])
            if len(bth) >= 12 and bth[0] < 0x20 and len(stream) < 4000 and len(bth) < 1100:
                bth[11] = 0
                stream += record(bytes(bth))
        if stream:
            save(out / "qp", stream)
    for line in re.findall(r'^\{.*"jsonrpc".*\}$', (ROOT / "docs/rpc.md").read_text(), re.M):
        save(out / "rpc", line.encode())
    save(out / "rpc", b'{"jsonrpc": "2.0", "id": 1, "method": "rpc_list"}')
    for example in (ROOT / "config").glob("*.json"):
        save(out / "config", example.read_bytes())
    # fuzz_import's first byte: 3 mod 4 is JSON, others are the size of the pieces
    nodes = (ROOT / "config/fabric-example.ibnetdiscover").read_text().split("\n\n")
    for some in (nodes[1:2], nodes[:1] + nodes[-2:], nodes[20:30]):
        save(out / "import", b"\x00" + "\n\n".join(some).encode())
    save(out / "import", b'\x05caguid=0x1\nCa\t1 "H-1"\t# "a"\n[1](2) \t"R-3"[1] (4) \t\t# lid 1 lmc 0 "b" lid 4 1xQDR s=4 w=1 v=2\n'
         b'\nrtguid=0x3\nRt\t1 "R-3"\t# "b"\n[1](4) \t"H-1"[1] (2) \t\t# lid 4 lmc 2 "a" lid 1 1xQDR s=4 w=1 v=2\n')
    save(out / "import", b'\x03{"records": [{"record": "LinkRecord", "rid": "0x1", "from_lid": 2}, '
         b'{"record": "service", "rid": "0x9", "service_name": "a\\\\x00b", "service_data8": "1,0x2"}]}')


if __name__ == "__main__":
    main()
