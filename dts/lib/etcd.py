# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Real etcd processes in a network namespace, each of which can be killed and started again."""

import base64
import collections
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import time_limit

PROGRAM = shutil.which('etcd') or '/usr/bin/etcd'
CLIENT_PORT, PEER_PORT = 23790, 23890
NO_TOKEN = 400, 401, 403  # without a token, with one that is not known, the same with TLS


# where a member of etcd runs: a namespace, and an address that the others reach
Place = collections.namedtuple('Place', 'ns address')


def b64(text):
    """Keys and values in the gateway's JSON."""
    return base64.b64encode(text.encode()).decode()


def range_of(prefix):
    """The members of a request that say: all keys that begin with this."""
    return {'key': b64(prefix), 'range_end': b64(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


class Etcd:
    """directory has the data and the logs. The members are on the loopback of the namespace ns, or each
    in one of the places."""

    def __init__(self, directory, ns=None, members=1, tls=None, options=(), places=None):
        self.dir, self.tls = directory, tls
        self.places = places or [Place(ns, '127.0.0.1')] * members
        self.options = list(options)
        self.user = self.token = None  # name and password, if etcd wants them, and what it gave for them
        self.names = ['e%d' % i for i in range(len(self.places))]
        self.procs = [None] * len(self.places)
        os.makedirs(directory, exist_ok=True)

    def client(self, i):
        """Address and port for clients."""
        return self.places[i].address, CLIENT_PORT + i

    def url(self, i):
        return '%s://%s:%d' % (('https' if self.tls else 'http',) + self.client(i))

    def urls(self):
        return [self.url(i) for i in range(len(self.names))]

    def _peer(self, i):
        return 'http://%s:%d' % (self.places[i].address, PEER_PORT + i)

    def data(self, i):
        return os.path.join(self.dir, self.names[i])

    def launch(self, i):
        assert self.procs[i] is None
        argv = [PROGRAM, '--name', self.names[i], '--data-dir', self.data(i),
                '--listen-client-urls', self.url(i), '--advertise-client-urls', self.url(i),
                '--listen-peer-urls', self._peer(i), '--initial-advertise-peer-urls', self._peer(i),
                '--initial-cluster', ','.join('%s=%s' % (n, self._peer(k))
                                              for k, n in enumerate(self.names))]
        if self.tls:
            argv += ['--cert-file', self.tls['cert'], '--key-file', self.tls['key'],
                     '--trusted-ca-file', self.tls['ca'], '--client-cert-auth']
        log = open(self.data(i) + '.log', 'a')
        self.procs[i] = self.places[i].ns.popen(argv + self.options, stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=log)
        log.close()

    def start(self):
        for i in range(len(self.names)):
            self.launch(i)
        self.wait()
        return self

    def wait(self, timeout=60, member=None):
        """Until a linearizable read succeeds at one of them, or at this member."""
        end = time_limit.end(timeout)
        while True:
            try:
                return self.call('/v3/kv/range', {'key': 'eA=='}, member)
            except OSError:
                assert time.monotonic() < end, 'no etcd'
                time.sleep(0.05)

    def alive(self):
        return [i for i, p in enumerate(self.procs) if p is not None]

    def kill(self, i):
        self.procs[i].kill()
        self.procs[i].wait()
        self.procs[i] = None

    def close(self):
        for i in self.alive():
            self.kill(i)

    def call(self, path, body, member=None):
        """One request to the gateway; JSON in and out. A member that has restarted does not know the token."""
        i = self.alive()[0] if member is None else member
        try:
            return self._call(i, path, body, self.token)
        except urllib.error.HTTPError as e:
            if self.user is None or e.code not in NO_TOKEN:
                raise
        self.token = self._call(i, '/v3/auth/authenticate', self.user, None)['token']
        return self._call(i, path, body, self.token)

    def _call(self, i, path, body, token):
        return self.places[i].ns.call(self._request, self.url(i) + path, json.dumps(body).encode(), token)

    def _request(self, url, body, token):
        tls = None
        if self.tls:
            tls = ssl.create_default_context(cafile=self.tls['ca'])
            key, cert = self.tls['client']
            tls.load_cert_chain(cert, key)
        headers = {'Authorization': token} if token else {}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5,
                                    context=tls) as reply:
            return json.loads(reply.readline())

    def key(self, key):
        """A key that is there, as etcd describes it."""
        return self.call('/v3/kv/range', {'key': b64(key)})['kvs'][0]

    def keys(self, prefix, **more):
        """{key: revision of its last change} of all that begin with the prefix."""
        r = self.call('/v3/kv/range', dict(range_of(prefix), keys_only=True, **more))
        return {base64.b64decode(k['key']).decode(): int(k['mod_revision']) for k in r.get('kvs', [])}

    def count(self, prefix):
        """Number of keys that begin with the prefix."""
        return int(self.call('/v3/kv/range', dict(range_of(prefix), count_only=True)).get('count', 0))

    def revision(self):
        return int(self.call('/v3/kv/range', {'key': 'eA=='})['header']['revision'])

    def compact(self):
        revision = self.revision()
        self.call('/v3/kv/compaction', {'revision': str(revision), 'physical': True})
        return revision

    def leader(self):
        """The index of the member that leads etcd."""
        for i in self.alive():
            try:
                s = self.call('/v3/maintenance/status', {}, i)
            except OSError:
                continue
            if s.get('leader') == s['header']['member_id']:
                return i
        return None
