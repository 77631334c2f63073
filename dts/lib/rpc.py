# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A client of the control socket: JSON-RPC 2.0, one object per line."""

import json
import socket
import time

import schema
import time_limit


class RpcError(Exception):
    def __init__(self, method, error):
        self.method, self.error = method, error
        self.code, self.message = error.get('code'), error.get('message', '')
        self.data = error.get('data')
        super().__init__('%s: %s' % (method, error))


class Client:
    schemas = None  # method -> schema of its result: the same for every server of this build

    def __init__(self, path, timeout=30):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX)
        self.timeout = timeout
        self.sock.connect(path)  # waits for room in the server's queue; with a time limit it would not
        self.sock.settimeout(time_limit.limit(timeout))
        self.buf = b''
        self.next_id = 1

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def send_raw(self, data):
        self.sock.sendall(data)

    def recv_line(self, timeout=None):
        """The next line without its end; b'' if the connection was closed."""
        end = None if timeout is None else time.monotonic() + timeout
        while b'\n' not in self.buf:
            if end is not None:
                self.sock.settimeout(max(0.001, end - time.monotonic()))
            try:
                d = self.sock.recv(1 << 16)
            except ConnectionResetError:
                d = b''
            if not d:
                return b''
            self.buf += d
        line, self.buf = self.buf.split(b'\n', 1)
        return line

    def request(self, method, params=None):
        """Send a request and return the whole response object. An open file among the parameters is passed
        as a descriptor beside the request."""
        ident = self.next_id
        self.next_id += 1
        obj = {'jsonrpc': '2.0', 'id': ident, 'method': method}
        files = [v for v in (params or {}).values() if hasattr(v, 'fileno')]
        if params is not None:
            obj['params'] = {k: str(v.name) if v in files else v for k, v in params.items()}
        self.sock.settimeout(time_limit.limit(self.timeout))
        line = json.dumps(obj).encode() + b'\n'
        sent = socket.send_fds(self.sock, [line], [f.fileno() for f in files]) if files else 0
        self.send_raw(line[sent:])
        line = self.recv_line()
        if not line:
            raise ConnectionError('%s: the control socket was closed' % method)
        answer = json.loads(line)
        assert answer.get('jsonrpc') == '2.0' and answer.get('id') == ident, answer
        return answer

    def __call__(self, method, **params):
        answer = self.request(method, params)
        if 'error' in answer:
            raise RpcError(method, answer['error'])
        self.check(method, answer['result'])
        return answer['result']

    def check(self, method, result):
        """Every result is what its method's schema promises."""
        if Client.schemas is None:
            methods = self.request('rpc_list', {'schema': True})['result']['methods']
            Client.schemas = {m['name']: m['result_schema'] for m in methods}
        why = schema.fault(Client.schemas[method], result)
        assert why is None, '%s: %s' % (method, why)
