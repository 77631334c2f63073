# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The other end is a running appliance's service, connected by the connection manager, or
another polca-bench on a network device. The tests check that the messages arrived."""

import json
import re

import pytest

from conn import wait_until
from net import Namespace
from polca import Polca, port
from services import Services, established

MESSAGES = 2000
OWN, THERE = '10.78.0.1', '10.78.0.2'
SHORT = ('-n', str(MESSAGES), '--no-huge', '--json')
LINK = ('--link', 'net_af_packet0,iface=b0', '--address', OWN + '/24')


@pytest.fixture(scope='module')
def wire():
    with Namespace() as ns:
        ns.veth('b0', 'b1')
        yield ns


@pytest.fixture(scope='module')
def polca(wire, sockets):
    with Polca(sockets, [port('port0', 'net_af_packet0,iface=b1', THERE + '/24')], ns=wire) as p:
        yield p


@pytest.fixture
def listen(polca):
    with Services(polca) as s:
        yield s.listen
    assert polca.alive(), polca.tail()


def measured(bench, wire, number, *words):
    b = bench(*words, *SHORT, *LINK, '--connect', '%s:%d' % (THERE, number), ns=wire)
    assert b.ends() == 0, b.text
    report = json.loads(b.text)
    table, = report['tables']
    assert all(row['iterations'] >= MESSAGES for row in table['rows']), report
    return report


def refused(bench, wire, number, *words):
    b = bench(*words, *SHORT, *LINK, '--connect', '%s:%d' % (THERE, number), ns=wire)
    assert b.ends() == 1, b.text
    return b.text


def pattern(i):
    """The bytes that polca-bench sends from offset i of its memory."""
    return (i * 2654435761 >> 11) & 0xFF


def test_writes_are_in_the_services_memory(polca, hca, wire, bench, listen):
    region = hca.mr(262144)
    service = listen('memory', 4791, mr=region.key)
    report = measured(bench, wire, 4791, 'write', '-s', '64', '-q', '2')
    assert 'net_af_packet' in report['environment']['port']
    assert report['environment']['service'] == THERE + ':4791, memory'
    assert region.read(0, 4096) == bytes(pattern(i) for i in range(4096))
    assert service.show()['established'] == 2
    wait_until(lambda: not established(polca))


def test_sends_arrive_at_the_sink(polca, wire, bench, listen):
    service = listen('sink', 7000, size=4096, depth=64)
    report = measured(bench, wire, 7000, 'send', 'rate', '-s', '100', '-q', '3', '-t', '16')
    sent, = (row['iterations'] for row in report['tables'][0]['rows'])
    row = service.show()
    assert row['established'] == 3
    assert row['messages_in'] >= sent
    assert row['bytes_in'] == 100 * row['messages_in']


def test_echo_comes_back_as_it_was_sent(wire, bench, listen):
    service = listen('echo', 7471)
    measured(bench, wire, 7471, 'send', 'lat', '-s', '1000', '--check')
    row = service.show()
    assert row['messages_in'] == row['messages_out'] >= MESSAGES


@pytest.mark.parametrize('words', [('read', '-s', '4096'), ('read', 'lat'), ('atomic', '-q', '4'),
                                   ('atomic', 'lat'), ('write', '-a', '-s', '4096')], ids=' '.join)
def test_memory(wire, bench, listen, words):
    listen('memory', 4791)
    measured(bench, wire, 4791, *words)


def test_nobody_listens(wire, bench, polca):
    assert 'invalid service ID' in refused(bench, wire, 17000, 'write')


def test_no_memory_there(wire, bench, listen):
    listen('echo', 7471)
    assert 'it grants no memory: is it a service of kind memory?' in refused(bench, wire, 7471, 'write')


def test_memory_that_may_not_be_written(wire, bench, listen):
    listen('memory', 4791, access=['remote_read'])
    assert 'does not allow this access' in refused(bench, wire, 4791, 'write')


def test_memory_too_small(wire, bench, listen):
    listen('memory', 4791, length=4096)
    assert re.search(r'has 4096 bytes, .* reduce -s or -F', refused(bench, wire, 4791, 'write'))


def test_an_appliance_that_dies(polca, wire, bench):
    Services(polca).listen('memory', 4791)
    b = bench('write', '-D', '100', '--no-huge', *LINK, '--connect', THERE + ':4791', ns=wire)
    wait_until(lambda: established(polca))
    polca.kill()
    assert b.ends() == 1, b.text
    assert 'work requests failed, the first with RETRY_EXC_ERR' in b.text
    polca.start()


def test_two_processes_on_devices(bench, sockets):
    where = ('--peer', sockets + '/two')
    # in one namespace, net_af_packet's fan-out groups may collide: they are named by PID and
    # interface
    with Namespace() as here, Namespace() as there:
        here.veth_to('b0', there, 'b1')
        server = bench('server', '--link', 'net_af_packet0,iface=b1', *where, '--no-huge', ns=there)
        server.says('waiting at')
        client = bench('write', '-s', '9000', '--check', '--link', 'net_af_packet0,iface=b0', *where,
                       *SHORT, ns=here)
        assert client.ends() == 0, client.text
        assert server.ends() == 0, server.text
    assert json.loads(client.text)['tables'][0]['rows'][0]['responder_ns'] > 0
