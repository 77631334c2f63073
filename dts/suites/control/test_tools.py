# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""polca-ctl as an operator uses it, and the same counters on DPDK's telemetry socket."""

import json
import os
import subprocess

import pytest

from polca import CTL_PROGRAM
from polcapair import A, B

COMPLETION = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                          '../../../config/polca-ctl.bash')


def js(polca, *args):
    return json.loads(polca.ctl('--json', *args).stdout)


def test_a_first_session_by_hand(polca):
    """Two queue pairs made, connected and used by nothing but polca-ctl; the bytes arrive."""
    pd = js(polca, 'pd', 'create')['pd']
    cq = js(polca, 'cq', 'create', '--depth', 64)['cq']
    access = 'LOCAL_WRITE,REMOTE_WRITE,REMOTE_READ,REMOTE_ATOMIC'
    src, dst = (js(polca, 'mr', 'register', '--pd', pd, '--length', 8192, '--access', access)
                for _ in range(2))
    a, b = (js(polca, 'qp', 'create', '--pd', pd, '--send-cq', cq) for _ in range(2))
    for q, peer, ip, port in ((a, b, B, 0), (b, a, A, 1)):
        r = js(polca, 'qp', 'connect', q['qp_num'], ip, '--dest-qp-num', peer['qp_num'],
               '--rq-psn', peer['sq_psn'], '--port', port, '--path-mtu', 1024)
        assert r['qp_state'] == 'RTS'
    polca.ctl('mr', 'fill', src['key'], '--seed', 7)
    polca.ctl('post', 'send', a['qp_num'], '--opcode', 'RDMA_WRITE', '--wr-id', 5, '--sg-list',
              'key=%d,length=8192' % src['key'], '--remote-addr', dst['va'], '--rkey', dst['rkey'])
    wc, = js(polca, 'cq', 'poll', cq, '--timeout-ms', 20000)['wc']
    assert (wc['wr_id'], wc['status'], wc['opcode']) == (5, 'SUCCESS', 'RDMA_WRITE')
    sums = [js(polca, 'mr', 'checksum', r['key'])['crc32'] for r in (src, dst)]
    assert sums[0] == sums[1]
    shown = js(polca, 'qp', 'show', a['qp_num'])
    assert shown['counters']['sent_pkts'] >= 8
    for args in (('qp', 'destroy', a['qp_num']), ('qp', 'destroy', b['qp_num']),
                 ('mr', 'deregister', src['key']), ('mr', 'deregister', dst['key']),
                 ('cq', 'destroy', cq), ('pd', 'destroy', pd)):
        polca.ctl(*args)


@pytest.mark.parametrize('words', [('port', 'list'), ('worker', 'list'), ('stats', 'get'),
                                   ('qp', 'list'), ('mr', 'list'), ('cq', 'list'),
                                   ('neighbour', 'list'), ('version', 'get'), ('rpc', 'list')])
def test_tables_for_people_and_json_for_programs(polca, words):
    table = polca.ctl(*words).stdout
    assert table.strip() and '{' not in table.splitlines()[0]
    assert isinstance(js(polca, *words), dict)


# commands whose words are not their method's: they read and write files
# commands with words of their own in place of some parameters
OWN_WORDS = {'sa_import': ['file', '--format', '--replace'], 'sa_export': ['file'],
             'cm_connect': ['dest', '--service', '--count', '--private-data', '--pd']}


def test_every_command_has_help(polca):
    for m in polca.rpc('rpc_list')['methods']:
        text = polca.ctl(*m['name'].split('_'), '--help').stdout
        if m['name'] in OWN_WORDS:
            assert all(word in text for word in OWN_WORDS[m['name']]), m['name']
            continue
        assert all('--' + p['name'].replace('_', '-') in text or p['name'] in text
                   for p in m['params']), m['name']


@pytest.mark.parametrize('words,status', [
    (('qp', 'show', '5'), 1), (('bogus',), 2), (('qp', 'bogus'), 2), (('qp', 'show'), 2),
    (('qp', 'show', '5', '--bogus', '1'), 2), (('cq', 'create', '--depth', 'many'), 2)])
def test_exit_codes(polca, words, status):
    r = polca.ctl(*words, check=False)
    assert r.returncode == status and r.stderr.strip()


def test_nobody_listens(sockets):
    r = subprocess.run([CTL_PROGRAM, '-s', sockets + '/nobody', 'port', 'list'],
                       stderr=subprocess.PIPE, text=True)
    assert r.returncode == 3 and 'nobody' in r.stderr


def complete(*words):
    """What bash offers for the last of these words."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              'COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; '
              'f=$(complete -p polca-ctl | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
              '$f polca-ctl "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"')
    env = dict(os.environ, PATH=os.path.dirname(CTL_PROGRAM) + ':' + os.environ['PATH'])
    r = subprocess.run(['bash', '-c', script, 'bash', COMPLETION] + list(words), env=env,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    return [w.strip() for w in r.stdout.split('\n') if w.strip()]


def test_bash_completion():
    assert 'qp' in complete('polca-ctl', 'q')
    assert {'create', 'connect', 'list'} <= set(complete('polca-ctl', 'qp', ''))
    assert '--dest-qp-num' in complete('polca-ctl', 'qp', 'connect', '--d')


def test_telemetry_shows_the_same_counters(polca, traffic):
    traffic.move('write', 5000, seed=3)
    ports, one, rc = polca.telemetry('/polca/ports', '/polca/port,0', '/polca/rc')
    assert ports['/polca/ports'] == ['port0', 'port1']
    row = polca.rpc('stats_get', port=0)['ports'][0]
    told = one['/polca/port']
    for name in ('rx_packets', 'tx_packets'):
        assert told[name] == row[name]
    mine = polca.rpc('stats_get')['rc']
    for name in ('sent_pkts', 'rcvd_pkts', 'rx_write_requests'):
        assert rc['/polca/rc'][name] == mine[name]


@pytest.mark.parametrize('command', ['/polca/port,99', '/polca/port,x', '/polca/port,-1',
                                     '/polca/port', '/polca/worker,1000',
                                     '/polca/port,' + '9' * 50])
def test_hostile_telemetry(polca, command):
    answer, = polca.telemetry(command)
    assert isinstance(answer, dict)
