# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The TCP exchange of ibv_rc_pingpong, on behalf of an adapter without TCP.

Each side sends LID:QPN:PSN:GID in hex text; the client sends first and ends with "done".
"""

import ipaddress
import socket

import time_limit

MESSAGE = len('0000:000000:000000:' + 32 * '0') + 1


def encode(qpn, psn, gid):
    return ('0000:%06x:%06x:%s' % (qpn, psn, ipaddress.IPv6Address(gid).packed.hex())).encode() + \
        b'\0'


def decode(message):
    lid, qpn, psn, gid = message.rstrip(b'\0').decode().split(':')
    return int(qpn, 16), int(psn, 16), str(ipaddress.IPv6Address(bytes.fromhex(gid)))


def _recv(s, n):
    d = b''
    while len(d) < n:
        more = s.recv(n - len(d))
        if not more:
            raise ConnectionError('pingpong: the peer closed after %d of %d octets' % (len(d), n))
        d += more
    return d


class Server:
    """Polca's side if ibv_rc_pingpong is the client."""

    def __init__(self, timeout=60):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.listener.settimeout(time_limit.limit(timeout))
        self.port = self.listener.getsockname()[1]

    def exchange(self, connect):
        """connect(qpn, psn, gid) connects our QP and returns our own qpn, psn, gid."""
        s, _ = self.listener.accept()
        with s:
            s.settimeout(time_limit.limit(60))
            theirs = decode(_recv(s, MESSAGE))
            s.sendall(encode(*connect(*theirs)))
            _recv(s, 5)  # "done"
        return theirs

    def close(self):
        self.listener.close()


class Client:
    """Polca's side if ibv_rc_pingpong is the server, at a TCP port of this host."""

    def __init__(self, port, timeout=60):
        self.sock = socket.create_connection(('127.0.0.1', port),
                                             timeout=time_limit.limit(timeout))

    def exchange(self, qpn, psn, gid):
        self.sock.sendall(encode(qpn, psn, gid))
        return decode(_recv(self.sock, MESSAGE))

    def done(self):
        self.sock.sendall(b'done\0')
        self.sock.close()
