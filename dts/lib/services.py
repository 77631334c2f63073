# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Services and connections of a running appliance, created through its control socket."""

from conn import wait_until
from lab import GUEST_IP
from rpc import RpcError


def paged(polca, method, key):
    rows, cursor = [], 0
    while cursor is not None:
        page = polca.rpc(method, cursor=cursor)
        rows, cursor = rows + page[key], page['cursor']
    return rows


def connections(polca):
    """All connections: dicts by connection ID."""
    return {r['connection']: r for r in paged(polca, 'cm_list', 'connections')}


def services(polca):
    """All services: listeners, and those that drive our own connections."""
    return paged(polca, 'service_list', 'services')


def driver(polca, connection):
    """The service that drives one of our connections."""
    return next(r for r in services(polca) if r.get('connection') == connection)


def done(polca, connection, timeout=60):
    """Wait until it has ended; returns its row."""
    def over():
        row = driver(polca, connection)
        return row if row['state'] == 'ENDED' else None
    return wait_until(over, timeout=timeout, step=0.05)


def connect(polca, port, service, address=GUEST_IP, **more):
    """Connect to a program of the guest."""
    return polca.rpc('cm_connect', dgid=address, port=port, service=service, **more)


def established(polca):
    return [r for r in connections(polca).values() if r['state'] == 'ESTABLISHED']


class Service:
    """A listening service."""

    def __init__(self, polca, row):
        self.polca, self.id, self.name = polca, row['service'], row['name']

    def show(self):
        """Its row of service_list; None if it has ended."""
        return next((r for r in services(self.polca) if r['service'] == self.id), None)

    def wait(self, timeout=30, **counters):
        """Wait until its counters have these values."""
        def there():
            row = self.show()
            return all(row[k] == v for k, v in counters.items())
        try:
            wait_until(there, timeout=timeout, step=0.05)
        except AssertionError:
            raise AssertionError('expected %r of %r' % (counters, self.show())) from None


class Services:
    """with Services(polca) as s: s.listen('echo', 7)"""

    def __init__(self, polca):
        self.polca, self.made = polca, []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if not self.polca.alive():
            return
        for s in self.made:
            try:
                self.polca.rpc('cm_unlisten', service=s.name, disconnect=True)
            except RpcError as e:
                if e.data is None or e.data.get('errno') != 'ENOENT':
                    raise

    def listen(self, kind, port, **config):
        s = Service(self.polca, self.polca.rpc('cm_listen', kind=kind, port=port, **config))
        self.made.append(s)
        return s
