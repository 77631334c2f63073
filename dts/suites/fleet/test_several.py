# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A client that knows several SAs of one fleet has its answer although some are dead or silent."""

import json
import signal

from fleet import ADDRESSES, ASKER, caught_up, status, until

TEST_SECONDS = 120
QUERIES = 20


def set_service(asker, number, *to, check=True):
    return asker.ctl('sa', 'set', 'service', 'service_id=%d' % number, 'service_gid=::ffff:' + ASKER,
                     'service_pkey=0xffff', 'service_lease=600', 'service_name=s%d' % number, *to,
                     check=check)


def delete_service(asker, number, *to):
    asker.ctl('sa', 'delete', 'service', 'service_id=%d' % number, 'service_gid=::ffff:' + ASKER,
              'service_pkey=0xffff', *to)


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
    # silent: another one is asked after --hedge-ms, and the first may go on answering later. Without
    # that, a query would end with its timeout, and the test with its time
    a.proc.send_signal(signal.SIGSTOP)
    try:
        for _ in range(QUERIES):
            assert services(asker, *to(0, 1, 2), '--hedge-ms', '20', '--timeout-ms', '60000') == {1}
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
    r = set_service(asker, 98, *to(0, 1), '--worker', '0', check=False)
    assert r.returncode == 2 and 'sa set: --worker: not allowed with --or' in r.stderr, r
    asker.ctl('sa', 'table', 'node', *to(0, 1), '--worker', '0')  # a question has no such TID


def set_while_silent(fleet, asker, number, silent, version, timeout_ms):
    """Set a service at an appliance that is stopped and then at others, and delete it before the first one
    goes on and has the request."""
    first, *others = [silent] + [i for i in range(3) if i != silent]
    p = fleet.nodes['abc'[first]]
    services(asker, '--to', ADDRESSES[first], '--class-version', version)  # so that only the Set waits
    before = p.rpc('sa_stats')['sa']['set']
    p.proc.send_signal(signal.SIGSTOP)
    try:
        set_service(asker, number, *to(first, *others), '--class-version', version, '--timeout-ms', timeout_ms)
        assert services(asker, '--to', ADDRESSES[others[0]]) == {number}
        delete_service(asker, number, *to(*others))
    finally:
        p.proc.send_signal(signal.SIGCONT)
    until('the request has reached it', lambda: p.rpc('sa_stats')['sa']['set'] > before)
    until('the request is answered',
          lambda: all(s['state'] == 'LINGER' for s in p.rpc('sa_sessions')['sessions']))


def test_stopped_appliance_does_not_make_a_change_again(fleet, asker):
    """A change keeps its TID when it is repeated at another SA: the one that was passed over finds that the fleet
    has made it, whether it led or not."""
    number = 0
    for led, timeout_ms in ((False, 1500), (True, 5000)):
        for version in (1, 2):
            number += 1
            fleet.leader()
            silent = next(i for i in range(3) if status(fleet.nodes['abc'[i]])['leads'] == led)
            set_while_silent(fleet, asker, number, silent, version, timeout_ms)
            for i, name in enumerate('abc'):
                until('%s has caught up' % name, lambda: caught_up(fleet.nodes[name]))
                r = asker.ctl('sa', 'table', 'service', '--to', ADDRESSES[i], check=False)
                assert 'no records' in r.stdout + r.stderr or 'NO_RECORDS' in r.stderr, (led, version, name, r)
