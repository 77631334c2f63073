# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs that use librdmacm: no table of the kernel tells whether their servers listen. And a client in
Python, which sends the commands of rdma/rdma_user_cm.h as it likes."""

import os
import re
import select
import socket
import struct
import time

import time_limit

# what the programs say when nobody listens yet: REJ 8, its errno, or perftest's or fio's word for the event;
# riostream may poll for the connection, and then says only that it has none
REFUSED = re.compile(r'error:? 8\b|refused|event bl blka 8\b|is RDMA_CM_EVENT_REJECTED|'
                     r'rpoll: Transport endpoint is not connected', re.I)
# librspreload then tries the kernel's TCP, which has no such address here; iperf goes on, and succeeds with nothing
PRELOAD_REFUSED = 'connect failed: Network is unreachable'
# What perftest's client says when the server, which has talked to it, does not yet listen for the test's own
# connection. This server would take the next client's first connection for it, and wait for ever.
HALFWAY = 'Failed to connect RDMA CM events'
PRELOAD = '/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so'


class HalfwayError(Exception):
    """The server must be started again, too."""


def until_listening(programs, client, server, timeout=90, preload=None):
    """Run the client, again as long as the server, a job, does not listen. Returns its output."""
    end = time_limit.end(timeout)
    while True:
        job = programs.spawn(*client, preload=preload)
        try:
            status = job.proc.wait(time_limit.limit(timeout))
        finally:
            job.kill()
        if HALFWAY in job.output():
            raise HalfwayError(job.output())
        again = REFUSED.search(job.output()) if status else PRELOAD_REFUSED in job.output()
        if not again or time.monotonic() > end:
            return job.end(1)
        assert server.proc.poll() is None, 'ended with %s:\n%s' % (server.proc.returncode, server.output())
        time.sleep(0.1)


def pair_until_listening(programs, server, client, client_programs=None, timeout=90, preload=None):
    """Run both command lines; the client again as long as the server does not listen. Returns both outputs."""
    end = time_limit.end(timeout)
    while True:
        serving = programs.spawn(*server, preload=preload)
        try:
            text = until_listening(client_programs or programs, client, serving, timeout, preload)
            return serving.end(timeout), text
        except HalfwayError:
            if time.monotonic() > end:
                raise
        finally:
            serving.kill()


# name: (number, bytes of its structure, where the ID is in it)
COMMANDS = {
    'CREATE_ID': (0, 24, None), 'DESTROY_ID': (1, 16, 8), 'BIND_IP': (2, 40, 36), 'RESOLVE_IP': (3, 64, 56),
    'RESOLVE_ROUTE': (4, 8, 0), 'QUERY_ROUTE': (5, 16, 8), 'CONNECT': (6, 288, 272), 'LISTEN': (7, 8, 0),
    'ACCEPT': (8, 296, 280), 'REJECT': (9, 264, 0), 'DISCONNECT': (10, 4, 0), 'INIT_QP_ATTR': (11, 16, 8),
    'GET_EVENT': (12, 8, None), 'SET_OPTION': (14, 24, 8), 'NOTIFY': (15, 8, 0), 'MIGRATE_ID': (18, 16, 8),
    'QUERY': (19, 16, 8), 'BIND': (20, 136, 0), 'RESOLVE_ADDR': (21, 272, 0)}
BYTES = 640  # of a command, at most
ADDR_RESOLVED, ADDR_ERROR, ROUTE_RESOLVED, CONNECT_REQUEST, CONNECT_RESPONSE = 0, 1, 2, 4, 5
UNREACHABLE, REJECTED, ESTABLISHED, DISCONNECTED = 7, 8, 9, 10


def sockaddr(address, port=0):
    if address is None:
        return bytes(28)
    return struct.pack('<H', socket.AF_INET) + struct.pack('!H', port) + socket.inet_aton(address) + bytes(20)


class CmError(OSError):
    pass


class Connection:
    """To the verbs socket: one request, one reply."""

    def __init__(self, path, code, features=0):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(20)
        self.sock.connect(path)
        self.hello, self.kept = self.ask(code, struct.pack('<QIIQII', 0x61636c6f70000001, 1, 1, features, 0, 0))

    def send(self, code, body=b''):
        """@return (error, bytes of the reply, descriptors)"""
        self.sock.send(struct.pack('<II', code, 0) + body)
        reply, fds, _, _ = socket.recv_fds(self.sock, 4096, 8)
        if not reply:
            raise ConnectionResetError
        return struct.unpack_from('<i', reply)[0], reply[8:], fds

    def ask(self, code, body=b''):
        error, reply, fds = self.send(code, body)
        if error != 0:
            raise CmError(error, reply.split(b'\0')[0].decode())
        return reply, fds

    def close(self):
        """As when the program dies."""
        self.sock.close()
        while self.kept:
            os.close(self.kept.pop())


class Device(Connection):
    """polca0, opened by this process."""

    def __init__(self, path, features=0):
        super().__init__(path, 0, features)

    def queue_pair(self):
        """@return its number"""
        self.ask(2)
        self.ask(8, struct.pack('<QII', 0, 16, 0xffffffff))
        reply, _ = self.ask(13, struct.pack('<Q11I', 0, 4, 4, 1, 1, 0, 0, 0, 0, 0xffffffff, 0, 0) + bytes(4))
        return struct.unpack_from('<I', reply, 20)[0]


class CmClient(Connection):
    """One program's use of librdmacm."""

    def __init__(self, path):
        self.channels = {}  # slot: descriptor
        super().__init__(path, 17)

    def channel(self):
        reply, fds = self.ask(18)
        slot = struct.unpack_from('<I', reply)[0]
        self.channels[slot] = fds[0]
        return slot

    def close_channel(self, slot):
        self.ask(19, struct.pack('<II', slot, 0))
        os.close(self.channels.pop(slot))

    def raw(self, channel, command, source=0xffffffff):
        body = struct.pack('<IIII', channel, source, len(command), 0) + command[:BYTES].ljust(BYTES, b'\0')
        reply, _ = self.ask(20, body)
        length = struct.unpack_from('<I', reply)[0]
        return reply[8:8 + length]

    def command(self, channel, name, fields=b'', id=None, source=0xffffffff, more=b''):
        """fields: the structure's first bytes; id is put into its place."""
        number, size, place = COMMANDS[name]
        body = bytearray(fields.ljust(size, b'\0'))
        if id is not None:
            struct.pack_into('<I', body, place, id)
        return self.raw(channel, struct.pack('<IHH', number, len(body), 512) + bytes(body) + more, source)

    def create(self, channel, uid=1, ps=0x0106):
        return struct.unpack('<I', self.command(channel, 'CREATE_ID', struct.pack('<QQH', uid, 0, ps)))[0]

    def destroy(self, channel, id):
        """@return how many of its events were fetched"""
        return struct.unpack('<I', self.command(channel, 'DESTROY_ID', id=id))[0]

    def bind(self, channel, id, address, port=0):
        self.command(channel, 'BIND_IP', bytes(8) + sockaddr(address, port), id=id)

    def listen(self, channel, id, backlog=0):
        self.command(channel, 'LISTEN', struct.pack('<II', 0, backlog), id=id)

    def resolve(self, channel, id, address, port=0, source=None, timeout_ms=2000):
        self.command(channel, 'RESOLVE_IP', sockaddr(source) + sockaddr(address, port) +
                     struct.pack('<II', 0, timeout_ms), id=id)

    def route(self, channel, id, address, port=0):
        """Resolve address and route."""
        self.resolve(channel, id, address, port)
        assert self.event(channel)[1:] == (ADDR_RESOLVED, 0)
        self.command(channel, 'RESOLVE_ROUTE', id=id)
        assert self.event(channel)[1:] == (ROUTE_RESOLVED, 0)

    def connect(self, channel, id, qpn, private=b'', length=None):
        length = len(private) if length is None else length
        param = struct.pack('<II', qpn, 0) + private.ljust(256, b'\0') + bytes([length, 0, 1, 1, 0, 7, 7, 1])
        self.command(channel, 'CONNECT', param, id=id)

    def readable(self, channel, timeout=0):
        return bool(select.select([self.channels[channel]], [], [], timeout)[0])

    def event(self, channel, timeout=20):
        """Wait for one. @return (ID, event, status)"""
        assert self.readable(channel, time_limit.limit(timeout)), 'no event'
        return struct.unpack_from('<IIi', self.command(channel, 'GET_EVENT'), 8)

    def close(self):
        super().close()
        while self.channels:
            os.close(self.channels.popitem()[1])
