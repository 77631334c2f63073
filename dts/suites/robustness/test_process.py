# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Starting, stopping, being killed and started again."""

import json
import os
import signal
import subprocess
import time

import pytest

from conn import Conn, wait_until
from hca import Hca
from polca import Polca, port, PROGRAM, refused
from polcapair import A, B, back_to_back, PolcaPair
from roce import Op

PAIR = back_to_back()


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_with_status_0(bench, sig):
    with bench() as w:
        w.start()
        c = Conn(w.hca(), w)
        c.post_buffer(64, n=8)
        for i in range(8):  # some answered, some not
            c.qp.post_send('write', wr_id=i, sg=[(c.mr, 0, 3000)], remote_addr=0, rkey=1)
        c.peer.ack(c.requests(3)[-1].psn, 1)
        w.polca._drop_rpc()
        w.polca.proc.send_signal(sig)
        assert w.polca.proc.wait(30) == 0, w.polca.tail()
        assert not os.path.exists(w.polca.socket)
        w.polca.proc = None


def test_killed_and_started_again(bench):
    """The stale socket is replaced; the old process's packets are dropped; new traffic works."""
    with bench() as w:
        w.start()
        c = Conn(w.hca(), w)
        psn = c.next()
        c.peer.write_only(psn, c.va, c.key, b'x')
        c.peer.expect_ack(psn)
        for i in range(12):
            c.qp.post_send('write', wr_id=i, sg=[(c.mr, 0, 3000)], remote_addr=0, rkey=1)
        w.polca.kill()
        assert os.path.exists(w.polca.socket) and refused(w.polca.socket)
        w.start()
        h = w.hca()
        assert h.rpc('qp_list')['qps'] == []
        c.peer.drain()
        c.peer.write_only(c.next(), c.va, c.key, b'y')
        wait_until(lambda: h.verdicts()['qpn_unknown'] == 1)
        c.peer.expect_nothing()
        c = Conn(h, w)
        psn = c.next()
        c.peer.write_only(psn, c.va, c.key, b'z')
        c.peer.expect_ack(psn)
        w.polca.stop()


def test_killed_ten_times(sockets):
    """Nothing accumulates that would prevent a start: sockets, memory, runtime files."""
    p = Polca(sockets, PAIR, name='again')
    try:
        for _ in range(10):
            p.start()
            p.kill()
        p.start()
        PolcaPair(Hca(p, 0), A, Hca(p, 1), B).all_operations(sizes=(100,))
        p.stop()
    finally:
        p.kill()


def test_killed_beside_a_living_peer_over_memif(sockets):
    """The client reconnects to a server that kept running; then both restart, over the socket
    file that the killed server left behind."""
    path = os.path.join(sockets, 'mi')
    device = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=' + path
    a = Polca(sockets, [port('port0', device % 'server', '10.77.0.1/24')], name='mia')
    b = Polca(sockets, [port('port0', device % 'client', '10.77.0.2/24')], name='mib')

    def traffic():
        wait_until(lambda: all(p.rpc('port_list')['ports'][0]['state'] == 'ACTIVE'
                               for p in (a, b)), timeout=30)
        PolcaPair(Hca(a), '10.77.0.1', Hca(b), '10.77.0.2').all_operations(sizes=(5000,))
    try:
        a.start(), b.start()
        traffic()
        b.kill()
        b.start()
        traffic()
        a.kill(), b.kill()
        assert os.path.exists(path)
        a.start(), b.start()
        traffic()
        b.stop(), a.stop()
    finally:
        a.kill(), b.kill()


def test_a_memif_client_finds_a_server_that_comes_back(sockets):
    device = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=' + os.path.join(sockets, 'mb')
    a = Polca(sockets, [port('port0', device % 'server', '10.77.0.1/24')], name='mca', workers=2)
    b = Polca(sockets, [port('port0', device % 'client', '10.77.0.2/24')], name='mcb', workers=2)

    def state():
        return b.rpc('port_list')['ports'][0]['state']
    try:
        a.start(), b.start()
        for way in (a.kill, a.stop):
            wait_until(lambda: state() == 'ACTIVE', timeout=30)
            PolcaPair(Hca(a), '10.77.0.1', Hca(b), '10.77.0.2').all_operations(sizes=(5000,))
            way()
            wait_until(lambda: state() == 'DOWN', timeout=30)
            time.sleep(2.5)  # attempts without a server
            a.start()
        wait_until(lambda: state() == 'ACTIVE', timeout=30)
        PolcaPair(Hca(a), '10.77.0.1', Hca(b), '10.77.0.2').all_operations(sizes=(5000,))
        assert 'not ready port' not in b.tail() and 'connect' not in b.tail(), b.tail()
        b.stop(), a.stop()
    finally:
        a.kill(), b.kill()


def test_both_ends_of_a_memif_leave_again_and_again(sockets):
    """The driver's own thread may still handle the peer or its socket; this does not collide
    with the end of the process."""
    device = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=' + os.path.join(sockets, 'me')
    a = Polca(sockets, [port('port0', device % 'server', '10.77.0.1/24')], name='mea')
    b = Polca(sockets, [port('port0', device % 'client', '10.77.0.2/24')], name='meb')
    try:
        for i in range(12):
            a.start(), b.start()
            for p in ((a, b), (b, a))[i % 2]:
                p.stop()
    finally:
        a.kill(), b.kill()


def test_the_peer_is_killed(bench):
    """Requests end with RETRY_EXC_ERR, not before the time given by the attributes."""
    with bench() as w:
        w.start()
        c = Conn(w.hca(), w, timeout=14, retry_cnt=3)
        c.station.mute = True
        t0 = time.monotonic()
        c.qp.post_send('write', wr_id=5, sg=[(c.mr, 0, 8)], remote_addr=0, rkey=1)
        wc, = c.qp.poll(timeout=30)
        assert (wc.wr_id, wc.status) == (5, 12)
        assert time.monotonic() - t0 >= 4 * 4.096e-6 * 2**14
        w.polca.stop()


# ---- configurations that cannot work

def start_fails(sockets, text, *words):
    path = os.path.join(sockets, 'bad.json')
    with open(path, 'w') as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    r = subprocess.run([PROGRAM, '-c', path, '-s', os.path.join(sockets, 'bad.sock')],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert r.returncode == 1, r
    for word in words:
        assert word in r.stdout, r.stdout
    assert not os.path.exists(os.path.join(sockets, 'bad.sock'))


GOOD = {'ports': PAIR}


@pytest.mark.parametrize('text,words', [
    ('', ['bad.json:1']), ('{\n "ports": [\n}', ['bad.json:3']), ('{}', ['ports']),
    ({'ports': []}, ['ports']), (dict(GOOD, color='red'), ['color']),
    (dict(GOOD, workers={'count': 'two'}), ['workers.count', 'two']),
    (dict(GOOD, workers={'count': 1000}), ['workers.count', '1000']),
    (dict(GOOD, limits={'max_qp': 1000}), ['limits.max_qp', '1000']),
    ({'ports': [PAIR[0]]}, ['port1']),
    ({'ports': [PAIR[0], dict(PAIR[1], name='port0')]}, ['ports[0].back_to_back']),
    ({'ports': [dict(PAIR[0], addresses=['10.0.0.300/24']), PAIR[1]]}, ['10.0.0.300']),
    ({'ports': [dict(PAIR[0], mtu=100), PAIR[1]]}, ['mtu', '100']),
    ({'ports': [{'name': 'port0', 'device': 'net_af_packet0,iface=nonexistent0',
                 'addresses': ['10.0.0.1/24']}]}, ['port0']),
    ({'ports': [{'name': 'port0', 'device': '0000:ff:1f.7', 'addresses': ['10.0.0.1/24']}]},
     ['0000:ff:1f.7']),
    ({'ports': [{'name': 'port0', 'device': 'net_no_such0', 'addresses': ['10.0.0.1/24']}]},
     ['net_no_such0'])])
def test_a_bad_configuration_says_what_is_wrong(sockets, text, words):
    start_fails(sockets, text, *words)


def test_all_errors_of_a_configuration_are_told_with_their_lines(sockets):
    """All at once, each on its own line, without output of DPDK between them; also with
    --print-config."""
    path = os.path.join(sockets, 'lines.json')
    with open(path, 'w') as f:
        f.write('{ "workers": { "count": "two" },\n'
                '  "ports": [\n'
                '    { "name": "port0", "device": "net_null0",\n'
                '      "vlan": 5000 },\n'
                '    { "name": "port1" }\n'
                '  ],\n'
                '  "colour": "red" }\n')
    for words in ([], ['--print-config']):
        r = subprocess.run([PROGRAM, '-c', path] + words, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=60)
        assert r.returncode == 1 and r.stdout == ''
        assert r.stderr == (
            'polca: {0}:1: workers.count: got "two", allowed: integer 0..128\n'
            'polca: {0}:4: ports[0].vlan: got 5000, allowed: integer 1..4094\n'
            'polca: {0}:5: ports[1]: got neither device nor back_to_back, allowed: one of them\n'
            'polca: {0}:7: colour: unknown name, allowed: $schema, control, verbs, metrics, security, eal, workers, '
            'limits, congestion, mad, sa, fleet, sma, live, cm, services, ports, log\n').format(path)


def test_a_log_level_for_no_component(sockets):
    start_fails(sockets, dict(GOOD, log=[{'component': 'polca.lnk', 'level': 'crit'}]),
                'bad.json:1: log[0].component: got "polca.lnk", allowed ', 'polca.link')


def test_more_workers_than_cpus(sockets):
    """Warnings say what happens and what to do, and everything works."""
    cpu = min(os.sched_getaffinity(0))
    p = Polca(sockets, PAIR, name='crowd', workers=2, eal={'lcores': '(0-2)@%d' % cpu})
    with p:
        assert ('2 workers run on 1 CPU: those that share one wait for each other, some milliseconds '
                'at a time, and packets are lost meanwhile. Set workers.count to 1, or ') in p.tail()


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGINT])
def test_a_memif_client_that_waits_ends_on_a_signal(sockets, sig):
    """One line says whom it waits for; a signal ends it with status 0."""
    path = os.path.join(sockets, 'nobody')
    p = Polca(sockets, [port('port0', 'net_memif0,role=client,id=0,socket-abstract=no,socket=' + path,
                             '10.77.0.2/24')], name='waits%d' % sig)
    try:
        p.launch()
        wait_until(lambda: 'waiting for the memif server' in p.tail(), timeout=30)
        p.proc.send_signal(sig)
        assert p.proc.wait(30) == 0
        assert p.tail() == ('polca: port0: waiting for the memif server at %s: start it, or stop this '
                            'one with Ctrl-C (gives up after 5 s)\n'
                            'polca: stopping (signal %d)\n' % (path, sig))
    finally:
        p.kill()


def test_a_memif_client_without_server_says_so(sockets):
    path = os.path.join(sockets, 'nobody')
    p = Polca(sockets, [port('port0', 'net_memif0,role=client,id=0,socket-abstract=no,socket=' + path,
                             '10.77.0.2/24')], name='alone')
    try:
        p.launch()
        assert p.proc.wait(60) == 1
        waiting, failed = p.tail().splitlines()
        assert 'waiting for the memif server at ' + path in waiting
        assert failed == ('polca: port0: no memif server listens at %s: start it first (role=server), '
                          'or give its socket' % path)
    finally:
        p.kill()


def test_no_such_configuration_file(sockets):
    r = subprocess.run([PROGRAM, '-c', sockets + '/nowhere.json'], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=60)
    assert r.returncode == 1 and 'nowhere.json' in r.stdout


@pytest.mark.parametrize('argv', [['--no-such-option'], ['extra'], ['-c']])
def test_wrong_usage(argv):
    r = subprocess.run([PROGRAM] + argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=60)
    assert r.returncode == 2


def test_nothing_of_a_run_is_left_in_the_kernel(bench):
    """No interface, no process, no socket file after SIGTERM of a tap port."""
    with bench('net_tap0,iface=pt0', ('pt0', 'pt0')) as w:
        w.start()
        c = Conn(w.hca(), w)
        psn = c.next()
        c.peer.tx(Op.WRITE_ONLY, psn, reth=(0, 0, 0), ackreq=1)
        c.peer.expect_ack(psn)
        w.polca.stop()
        assert 'pt0' not in w.ns.exec(['ip', '-br', 'link'])
