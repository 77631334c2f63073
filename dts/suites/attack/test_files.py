# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Who may change a registered file cannot stop the appliance by shortening it, nor who imports what is
no file by letting it wait or read without end."""

import json
import os

import pytest

from bystanders import GROWTH_KIB, memory_kib
from conn import wait_until
from hca import Hca, Region
from pattern import pattern
from polca import Polca, RpcError
from polcapair import A, B, back_to_back, PolcaPair

SIZE = 1 << 20


@pytest.fixture
def appliance(sockets):
    with Polca(sockets, back_to_back(), name='files', sa={}) as p:
        yield p


@pytest.mark.parametrize('op', ['read', 'write'])
def test_file_cut_short_ends_its_own_queue_pairs_only(appliance, tmp_path, op):
    path = tmp_path / 'shared'
    path.write_bytes(pattern(1, SIZE))
    other = PolcaPair(Hca(appliance, 0), A, Hca(appliance, 1), B)
    pair = PolcaPair(Hca(appliance, 0), A, Hca(appliance, 1), B)
    row = json.loads(appliance.ctl(
        '--json', 'mr', 'register', '--pd', pair.b.pd, '--file', str(path), '--access',
        'LOCAL_WRITE,REMOTE_READ,REMOTE_WRITE').stdout)
    region = Region(pair.b, row)
    remote = dict(remote_addr=region.va, rkey=region.key)

    def move(wr_id, length):
        pair.qa.post_send(op, wr_id=wr_id, sg=[(pair.ma, 0, length)], **remote)
        return pair.qa.poll()[0].status
    pair.ma.write(0, bytes(4096))
    assert move(1, 4096) == 0
    os.truncate(path, 0)
    move(2, SIZE)  # its result is of no use, whatever the status
    wait_until(lambda: pair.qb.state() == 'ERR')
    assert (('QP_FATAL', pair.qb.qpn) in pair.b.events())
    assert next(r for r in appliance.rpc('mr_list')['regions'] if r['key'] == row['key'])['lost']
    assert 'memory region 0x%08x: its file was shortened' % region.key in appliance.tail()
    other.all_operations(sizes=(5003,))
    appliance.rpc('qp_destroy', qp_num=pair.qb.qpn)
    pair.qb.live = False
    appliance.rpc('mr_deregister', key=region.key)
    assert path.stat().st_size == 0


@pytest.mark.parametrize('what', ['a pipe', 'a device'])
def test_only_regular_files_are_imported(appliance, tmp_path, what):
    path, memory = '/dev/zero', memory_kib(appliance)
    pair = PolcaPair(Hca(appliance, 0), A, Hca(appliance, 1), B)
    pair.all_operations(sizes=(5003,))
    if what == 'a pipe':
        path = str(tmp_path / 'fifo')
        os.mkfifo(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 'rb') as f:
        with pytest.raises(RpcError, match='file: got ' + what):
            appliance.rpc('sa_import', file=f)
    pair.all_operations(sizes=(5003,))
    assert memory_kib(appliance) - memory < GROWTH_KIB


def test_imports_are_logged(appliance):
    """Done, or failed with the reason."""
    appliance.rpc('sa_import', text='{"records": []}')
    assert 'engine: SA: 0 records were imported' in appliance.tail().splitlines()
    with pytest.raises(RpcError) as e:
        appliance.rpc('sa_import', text='{"records": [7]}')
    line, = [line for line in appliance.tail().splitlines() if line.startswith('engine: SA: an import failed')]
    assert line == 'engine: SA: an import failed, nothing has changed: ' + e.value.message
