# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A file system in user space whose daemon stops answering: what waits for it waits until close()."""

import ctypes
import errno
import os
import struct
import threading

LOOKUP, GETATTR, OPEN, FLUSH, INIT = 1, 3, 14, 25, 26
ROOT, FILE = 1, 2
SIZE = 1 << 20
ANSWERED = (INIT, LOOKUP, GETATTR, OPEN)
libc = ctypes.CDLL(None, use_errno=True)


def attr(node):
    mode = 0o40755 if node == ROOT else 0o100666
    return struct.pack('<6Q10I', node, SIZE, SIZE // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class StuckFuse:
    """One file, `path`. Attributes are valid for no time, so each fstat() asks the daemon."""

    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(directory, 'file')
        self.stuck = False
        self.asked = []  # operations that were not answered
        os.makedirs(directory, exist_ok=True)
        self.fd = os.open('/dev/fuse', os.O_RDWR)
        options = b'fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other' % self.fd
        if libc.mount(b'polca-test', directory.encode(), b'fuse', 0, options) != 0:
            error = ctypes.get_errno()
            os.close(self.fd)
            raise OSError(error, os.strerror(error))
        # whoever waits, also if the test does, goes on in the end
        self.watchdog = threading.Timer(120, self.close)
        self.watchdog.daemon = True
        self.watchdog.start()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:  # unmounted
                return
            _, op, unique, node = struct.unpack_from('<IIQQ', request)
            if self.stuck or op not in ANSWERED:
                self.asked.append(op)
                if not self.stuck:
                    self.answer(unique, b'', -errno.ENOSYS)
            else:
                self.answer(unique, self.reply(op, node))

    def reply(self, op, node):
        if op == INIT:
            return struct.pack('<IIIIHHIIHH8I', 7, 31, 4096, 0, 8, 6, 4096, 1, 0, 0, *[0] * 8)[:64]
        if op == LOOKUP:
            return struct.pack('<QQQQII', FILE, 1, 60, 0, 0, 0) + attr(FILE)
        if op == GETATTR:
            return struct.pack('<QII', 0, 0, 0) + attr(node)
        return struct.pack('<QII', 1, 0, 0)

    def answer(self, unique, body, error=0):
        os.write(self.fd, struct.pack('<IiQ', 16 + len(body), error, unique) + body)

    def open(self):
        return os.open(self.path, os.O_RDWR)

    def close(self):
        """Abort the connection: whoever waits gets an error."""
        if self.fd < 0:
            return
        self.watchdog.cancel()
        libc.umount2(self.directory.encode(), 1 | 2)  # MNT_FORCE | MNT_DETACH
        os.close(self.fd)
        self.fd = -1
