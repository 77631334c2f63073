# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A client of perftest's TCP port that announces whatever addresses it likes."""

import itertools
import socket
import struct

PATIENCE = 10  # seconds for an answer


def description(ip, qpn):
    """Of a queue pair, as perftest's clients write it (lib/svc/perftest_text.h)."""
    gid = bytes(10) + b'\xff\xff' + socket.inet_aton(ip)
    return b'0000:0001:%06x:000000:00000000:%016x:%s:00000000:\0' % (
        qpn, 0, b':'.join(b'%02x' % c for c in gid))


class Client:
    """perftest's client at 127.x.y.z, before its queue pairs."""

    def __init__(self, wire, port, n):
        source = socket.inet_ntoa(struct.pack('!I', 0x7f000002 + n))
        self.sock = wire.ns.call(socket.create_connection, ('127.0.0.1', port), PATIENCE, (source, 0))
        self.qpns = itertools.count(0x100)
        for message in b'6.06' + bytes(12), b'\0\0\x10\0', b'\0\0\0\x40', b'3\0':
            self.say(message)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def say(self, message):
        self.sock.sendall(message)
        answer = self.sock.recv(len(message), socket.MSG_WAITALL)
        if len(answer) < len(message):
            raise ConnectionError('ended')

    def name(self, ip):
        """Announce a queue pair there. Return False if it is refused."""
        try:
            self.say(description(ip, next(self.qpns)))
        except ConnectionError:
            return False
        return True
