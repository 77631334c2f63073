# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A congested switch: joins two interfaces of a namespace, and marks packets on request."""

import socket
import threading

from roce import SO_RCVBUFFORCE

ECN, ECT0, CE = 3, 2, 3
ETH, TOS, CHECKSUM = 14, 15, 24  # offsets in an IPv4 frame without VLAN tag


def marked(frame):
    """The IPv4 frame with ECN CE, and its header's checksum (RFC 1624: one word has changed)."""
    out = bytearray(frame)
    out[TOS] |= CE
    old = int.from_bytes(frame[CHECKSUM:CHECKSUM + 2], 'big')
    new = (old ^ 0xffff) + (out[TOS] - frame[TOS])
    new = (new & 0xffff) + (new >> 16)
    out[CHECKSUM:CHECKSUM + 2] = (new ^ 0xffff).to_bytes(2, 'big')
    return bytes(out)


class Marker:
    """.marking: set ECN CE on ECN-capable packets. .marked, .incapable: the numbers of packets
    marked, and of those that were not ECN-capable. Packets other than IPv4 pass unchanged."""

    def __init__(self, ns, *ifnames):
        self.marking, self.marked, self.incapable = False, 0, 0
        self._stop = False
        self.socks = [ns.call(self._open, name) for name in ifnames]
        self.threads = [threading.Thread(target=self._run, args=(a, b), daemon=True)
                        for a, b in (self.socks, self.socks[::-1])]
        for t in self.threads:
            t.start()

    @staticmethod
    def _open(name):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        s.bind((name, 0))
        s.settimeout(0.2)
        return s

    def _run(self, source, sink):
        while not self._stop:
            try:
                frame, where = source.recvfrom(1 << 16)
            except socket.timeout:
                continue
            if where[2] != socket.PACKET_OUTGOING:
                sink.send(self._pass(frame))

    def _pass(self, frame):
        if not self.marking or frame[12:14] != b'\x08\x00':
            return frame
        if frame[TOS] & ECN != ECT0:
            self.incapable += 1
            return frame
        self.marked += 1
        return marked(frame)

    def close(self):
        self._stop = True
        for t in self.threads:
            t.join()
        for s in self.socks:
            s.close()
