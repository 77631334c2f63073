# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two appliances in two namespaces: a table of a million records, with one per cent loss in each
direction. They are PortInfoRecords, because there are only 49151 unicast LIDs for NodeRecords.

CI's table has enough records for more than 65,536 segments, so that segment numbers exceed 16
bits; tables of a million are simulated there (scenario sa_million)."""

import os
import time

import pytest

from net import Namespace
from polca import Polca, port
from scale import scaled

TEST_SECONDS = 900
RECORDS, FILES = scaled(200000, 1000000), 10
LOSS = 1  # percent
A, B = '10.80.0.1', '10.80.0.2'
PORTS = 255  # per LID
M = (1 << 64) - 1


def mixed(i):
    """A number that differs from those of its neighbours."""
    z = (i + 1) * 0x9e3779b97f4a7c15 & M
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & M
    return z ^ z >> 27


def lid(i):
    return 1 + i // PORTS


def write_file(path, first, n):
    with open(path, 'w') as f:
        f.write('{"records": [\n')
        for i in range(first, first + n):
            f.write('%s{"record": "PortInfoRecord", "lid": %d, "port_num": %d, "m_key": "0x%x", '
                    '"capability_mask": %d}\n' %
                    ('' if i == first else ',', lid(i), i % PORTS, mixed(i), i))
        f.write(']}\n')


class Bench:
    def __init__(self, sockets, kept):
        self.a, self.b, self.mid = Namespace(), Namespace(), Namespace()
        self.a.veth_to('pol0', self.mid, 'mid0', mac_a='02:00:00:00:80:01')
        self.b.veth_to('pol1', self.mid, 'mid1', mac_a='02:00:00:00:80:02')
        self.mid.bridge('bridge0', 'mid0', 'mid1')
        device = 'net_af_packet0,iface=%s,framecnt=4096'
        self.server = Polca(sockets, [port('port0', device % 'pol0', A + '/24')], ns=self.a,
                            name='server', sa=dict(sm_key=5, old_mb=1024),
                            mad=dict(v1_early_resend=True))
        self.client = Polca(sockets, [port('port0', device % 'pol1', B + '/24')], ns=self.b,
                            name='client', sa=dict(enabled=False, query_mb=512),
                            mad=dict(v1_early_resend=True))
        self.kept = kept

    def load(self):
        path = os.path.join(self.kept, 'ports.json')
        t0 = time.monotonic()
        for k in range(FILES):
            n = RECORDS // FILES
            write_file(path, k * n, n)
            with open(path) as f:
                assert self.server.rpc('sa_import', file=f, replace=k == 0)['records'] == n
        os.unlink(path)
        print('%d records generated and imported in %.1f s' % (RECORDS, time.monotonic() - t0))

    def close(self):
        for p in (self.server, self.client):
            p.kill()
        for ns in (self.a, self.b, self.mid):
            ns.close()


@pytest.fixture(scope='module')
def bench(sockets, kept):
    b = Bench(sockets, kept)
    try:
        b.server.start(), b.client.start()
        b.server.rpc.timeout = 300
        b.client.rpc.timeout = 300
        b.load()
        for m in ('mid0', 'mid1'):
            b.mid.lose(m, LOSS)
        yield b
        b.client.stop(), b.server.stop()
    finally:
        b.close()


def transfer(bench, version):
    rpc = bench.client.rpc
    q = rpc('sa_query', to=A, record='port', class_version=version, sm_key=5,
            resp_time=14)['query']
    end = time.monotonic() + 600
    while True:
        r = rpc('sa_result', query=q, max=0, timeout_ms=2000)
        if r['state'] == 'done':
            return q, r
        assert time.monotonic() < end, r


@pytest.mark.parametrize('version', [1, 2])
def test_a_million_records(bench, kept, version):
    lost = sum(bench.mid.lost(m) for m in ('mid0', 'mid1'))
    q, r = transfer(bench, version)
    lost = sum(bench.mid.lost(m) for m in ('mid0', 'mid1')) - lost
    assert r['status'] == 'OK' and r['received'] == RECORDS, r
    line = 'class version %d: %d records in %.2f s, %d segments (%.0f a second), %d packets lost' % (
        version, r['received'], r['elapsed_us'] / 1e6, r['segments'] or r['segment'],
        (r['segments'] or r['segment']) / (r['elapsed_us'] / 1e6), lost)
    print(line)
    with open(os.path.join(kept, 'times'), 'a') as f:
        f.write(line + '\n')
    assert lost > RECORDS / 3 / 100 * LOSS / 2
    # count and checksum: every record once, in order, with its own values
    count = total = 0
    cursor = 0
    while cursor is not None:
        page = bench.client.rpc('sa_result', query=q, cursor=cursor, max=1000)
        for row in page['records']:
            assert (int(row['lid'], 0), row['port_num']) == (lid(count), count % PORTS), row
            total += int(row['m_key'], 16) ^ int(str(row['capability_mask']), 0)
            count += 1
        cursor = page['cursor']
    bench.client.rpc('sa_cancel', query=q)
    assert count == RECORDS
    assert total == sum(mixed(i) ^ i for i in range(RECORDS))
    stats = bench.server.rpc('sa_stats')
    assert stats['mad']['segments_resent'] > 0 and stats['mad']['sessions_failed'] == 0
