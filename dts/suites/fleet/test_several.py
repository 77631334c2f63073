# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A client that knows several SAs of one fleet has its answer although some are dead or silent."""

import json
import signal

from fleet import ADDRESSES, ASKER, until

QUERIES = 20


def set_service(asker, number, *to, check=True):
    return asker.ctl('sa', 'set', 'service', 'service_id=%d' % number, 'service_gid=::ffff:' + ASKER,
                     'service_pkey=0xffff', 'service_lease=600', 'service_name=s%d' % number, *to,
                     check=check)


def services(asker, *to):
    """The numbers of all services, as the SAs answer."""
    r = asker.ctl('sa', 'table', 'service', '--json', *to)
    return {int(str(row['service_id']), 0) for row in json.loads(r.stdout)['records']}


def to(*order):
    first, *others = (ADDRESSES[i] for i in order)
    return ['--to', first, '--or', ','.join(others)]


def test_dead_and_silent_appliances_are_passed_over(fleet, asker):
    a = fleet.nodes['a']
    set_service(asker, 1, *to(0, 1, 2))
    for p in fleet.alive():
        until('the record', lambda: p.ctl('sa', 'table', 'service').stdout)
    assert services(asker, *to(0, 1, 2)) == services(asker, *to(2, 1, 0)) == {1}
    # silent: another one is asked after --hedge-ms, and the first may go on answering later
    a.proc.send_signal(signal.SIGSTOP)
    try:
        for _ in range(QUERIES):
            assert services(asker, *to(0, 1, 2), '--hedge-ms', '20') == {1}
    finally:
        a.proc.send_signal(signal.SIGCONT)
    assert services(asker, '--to', ADDRESSES[0]) == {1}
    # dead: questions and changes go on
    a.kill()
    assert services(asker, *to(0, 1, 2)) == {1}
    until('a change at those who are left',
          lambda: set_service(asker, 2, *to(0, 1, 2), '--timeout-ms', '500', check=False).returncode == 0)
    assert services(asker, *to(0, 2)) == {1, 2}
    until('no transfer is left', lambda: not asker.rpc('sa_sessions')['sessions'])
    for name in 'bc':
        fleet.nodes[name].kill()
    r = asker.ctl('sa', 'get', 'service', 'service_id=1', *to(0, 1, 2), '--timeout-ms', '500', check=False)
    assert r.returncode != 0 and 'none of 3 SAs has answered' in r.stderr, r
    assert 'the first: ' in r.stderr and all(x in r.stderr for x in ADDRESSES[1:]), r


def test_an_answer_of_the_first_counts(asker):
    """What it says about the question itself is the answer: nobody else is asked. Wrong options are
    refused."""
    r = asker.ctl('sa', 'get', 'service', 'service_id=99', *to(0, 1, 2), '--hedge-ms', '60000', check=False)
    assert r.returncode != 0 and 'NO_RECORDS' in r.stderr and 'none of' not in r.stderr, r
    for more, text in (
            (['--or', '10.81.0.2,somewhere'], 'got "somewhere", allowed: addresses, lid:N or N'),
            (['--or', ','.join(['10.81.0.2'] * 16)], 'allowed: 15'),
            (['--or', '10.81.0.2', '--hedge-ms', '0'], 'allowed: 1 to 60000')):
        r = asker.ctl('sa', 'table', 'service', '--to', ADDRESSES[0], *more, check=False)
        assert r.returncode == 2 and text in r.stderr, r
