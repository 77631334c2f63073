# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A stranger on the verbs socket, which sends what it likes."""

import os
import socket
import struct

PAGE = 4096
ALL_RIGHTS = 7  # local and remote write, remote read
MAGIC = 0x61636c6f70000001
# name: (code, bytes of its body)
REQUESTS = {
    'hello': (0, 32), 'query_port': (1, 0), 'pd_alloc': (2, 0), 'pd_free': (3, 8), 'mr_register': (4, 32),
    'mr_deregister': (5, 8), 'channel_create': (6, 0), 'channel_destroy': (7, 8), 'cq_create': (8, 16),
    'cq_destroy': (9, 8), 'srq_create': (10, 24), 'srq_modify': (11, 8), 'srq_destroy': (12, 8),
    'qp_create': (13, 56), 'qp_modify': (14, 116), 'qp_query': (15, 8), 'qp_destroy': (16, 8),
    'mw_alloc': (21, 8), 'mw_free': (22, 8), 'mr_register_range': (23, 32)}


class Stranger:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(20)
        self.sock.connect(path)
        self.kept = []

    def ask(self, message, fds=(), keep=False):
        """@return (error, body), or None if the connection was closed. keep: the descriptors that come"""
        try:
            if fds:
                socket.send_fds(self.sock, [message], fds)
            else:
                self.sock.send(message)
        except BrokenPipeError:
            pass  # it may have answered before it closed
        except ConnectionResetError:
            return None
        try:
            reply, passed, _, _ = self.receive()
        except (ConnectionResetError, BrokenPipeError):
            return None
        if keep:
            self.kept += passed
        else:
            for fd in passed:
                os.close(fd)
        return (struct.unpack_from('<i', reply)[0], reply[8:]) if reply else None

    def receive(self):
        try:
            return socket.recv_fds(self.sock, 4096, 8)
        except ConnectionResetError:  # what came before follows
            return socket.recv_fds(self.sock, 4096, 8)

    def request(self, name, body=b'', **kw):
        code, size = REQUESTS[name]
        return self.ask(struct.pack('<II', code, 0) + body.ljust(size, b'\0'), **kw)

    def hello(self, magic=MAGIC, major=1, port=0, features=7, **kw):
        return self.request('hello', struct.pack('<QIIQII', magic, major, 0, features, port, 0), **kw)

    def close(self):
        self.sock.close()
        while self.kept:
            os.close(self.kept.pop())


def register(s, pd, fd, offset, length):
    return s.request('mr_register', struct.pack('<QQQII', offset, length, 0x10000, pd, ALL_RIGHTS), fds=[fd])


def register_range(s, pd, address, length):
    return s.request('mr_register_range', struct.pack('<QQQII', address, length, 0x10000, pd, ALL_RIGHTS))
