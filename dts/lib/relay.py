# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""TCP ports of this host that are forwarded to a namespace, where the appliance listens, and
vice versa."""

import contextlib
import socket
import threading


class Relay:
    """with Relay(ns, 18515) as r: connections to r.port reach 127.0.0.1:18515 in ns."""

    def __init__(self, ns, port):
        self.ns, self.target = ns, port
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exc):
        # close() alone does not wake accept()
        for s in [self.listener] + self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def _far(self):
        return self.ns.call(socket.create_connection, ('127.0.0.1', self.target), 10)

    def _serve(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = self._far()
            except OSError:
                near.close()  # like a port without a listener
                continue
            far.settimeout(None)
            self.sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    @staticmethod
    def _pump(a, b):
        try:
            while True:
                d = a.recv(1 << 16)
                if not d:
                    b.shutdown(socket.SHUT_WR)
                    return
                b.sendall(d)
        except OSError:
            for s in a, b:  # one side was reset: the other must see an end, too
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)


class Reach(Relay):
    """The other direction: 127.0.0.1:r.port in the namespace, or another address and port there, reaches that
    port of this host."""

    def __init__(self, ns, port, at=('127.0.0.1', 0)):
        self.ns, self.target = ns, port
        self.listener = ns.call(socket.create_server, at)
        self.port = self.listener.getsockname()[1]
        self.sockets = []

    def _far(self):
        return socket.create_connection(('127.0.0.1', self.target), 10)
