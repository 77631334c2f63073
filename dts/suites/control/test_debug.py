# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The level debug of each log component says something useful, and only that level does."""

import os
import re
import subprocess

import pytest

from conn import wait_until
from polcapair import A
import verbs


def make_qp(polca):
    pd, cq = polca.rpc('pd_create')['pd'], polca.rpc('cq_create')['cq']
    qp = polca.rpc('qp_create', pd=pd, send_cq=cq)['qp_num']
    polca.rpc('qp_modify', qp_num=qp, qp_state='RESET')
    polca.rpc('qp_destroy', qp_num=qp)
    return qp


def open_device(polca):
    env = dict(os.environ, POLCA_VERBS_SOCKET=os.path.join(os.path.dirname(polca.socket), 'verbs.sock'))
    subprocess.run([verbs.RUN, 'ibv_devinfo', '-d', 'polca0'], env=env, check=True, timeout=60)


# What to do, and the lines that tell of it; {} is what that returned.
LINES = {
    'polca.app': (lambda polca: polca.ctl('config', 'reload'), [r'polca: reload: reading .*\.json$']),
    'polca.ctl': (lambda polca: polca.rpc.request('pd_destroy', {'pd': 0xffffff}),
                  [r'ctl: pd_destroy by user root \(0\), process \d+: (ENOENT|EINVAL)$']),
    'polca.engine': (make_qp, [r'engine: QP 0x{:x} is made on worker \d+$',
                               r'engine: QP 0x{:x} goes from RESET to RESET$', r'engine: QP 0x{:x} is destroyed$']),
    # its own address, to which nothing was sent before
    'polca.link': (lambda polca: polca.ctl('ping', A, '-c', '1', check=False),
                   [r'link: port0: %s is a new neighbour, for packets to %s$' % (A, A)]),
    'polca.verbs': (open_device, [r'verbs: process \d+ has closed its device$']),
}


def components(polca):
    return [c['component'] for c in polca.rpc('log_level_get')['components'] if c['component'].startswith('polca.')]


def test_each_component_is_tested(polca):
    # polca.fleet speaks of etcd: suites/fleet
    assert sorted(components(polca)) == sorted([*LINES, 'polca.fleet'])


@pytest.mark.parametrize('component', LINES)
def test_debug_says_something(polca, component):
    run, lines = LINES[component]
    with open(polca.log) as f:
        before = len(f.read())

    def found(pattern, done):
        with open(polca.log) as f:
            return re.findall(pattern.format(done), f.read()[before:], re.M)

    polca.rpc('log_level_set', component=component, level='debug')
    try:
        done = run(polca)
        wait_until(lambda: all(found(pattern, done) for pattern in lines))
        assert not found('(sm_|m_)?key', done)
    finally:
        polca.rpc('log_level_set', component=component, level='info')
    with open(polca.log) as f:
        before = len(f.read())
    done = run(polca)
    assert not any(found(pattern, done) for pattern in lines)
