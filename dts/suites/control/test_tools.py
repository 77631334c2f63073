# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""polca-ctl as an operator uses it, and the same counters on DPDK's telemetry socket."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

import pytest

from conn import wait_until
from polca import CTL_PROGRAM
from polcapair import A, B
from terminal import PROMPT, Terminal

COMPLETION = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                          '../../../config/completion/polca-ctl.bash')


def js(polca, *args):
    return json.loads(polca.ctl('--json', *args).stdout)


BIND = 'import socket; socket.socket(socket.AF_UNIX).bind("/run/polca/polca.sock")'


@pytest.mark.parametrize('made', [
    'mkdir -m 0750 /run/polca',
    "mkdir -m 0755 /run/polca; python3 -c '%s'; chmod 600 /run/polca/polca.sock" % BIND])
def test_a_user_who_is_not_admitted_is_not_told_that_polca_does_not_run(made):
    """Without -s: the service's directory, or its socket, is closed to this user."""
    program = tempfile.mkdtemp(dir='/tmp')
    shutil.copy(CTL_PROGRAM, program)
    os.chmod(program, 0o755)
    try:
        r = subprocess.run(['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o mode=755 none /run; %s; exec setpriv '
                            '--reuid 65534 --regid 65534 --clear-groups env -i %s/polca-ctl version get' % (
                                made, program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        shutil.rmtree(program)
    assert r.returncode == 3 and 'not running' not in r.stderr, r
    assert "The service's socket is /run/polca/polca.sock, and closed to you: it belongs to root" in r.stderr, r


def test_a_first_session_by_hand(polca):
    """Two queue pairs created, connected and used with polca-ctl only; the bytes arrive."""
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


# commands whose options differ from their method's parameters: they read and write files, or
# replace some parameters
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
    """The candidates that bash offers for the last of these words."""
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


@pytest.fixture
def terminal(polca):
    """bash with an alias of polca-ctl and its completion, set up as in README."""
    t = Terminal({'POLCA_SOCKET': polca.socket})
    try:
        t.run('alias pc=' + CTL_PROGRAM)
        t.run('. ' + COMPLETION)
        yield t
    finally:
        t.close()


def test_completion_through_an_alias(terminal):
    assert terminal.complete('pc neigh') == 'pc neighbour '
    assert terminal.complete('pc neighbour l') == 'pc neighbour list '
    assert terminal.complete('pc qp connect --dest-qp') == 'pc qp connect --dest-qp-num '
    assert terminal.complete('pc post send 5 --opcode RDMA_R') == 'pc post send 5 --opcode RDMA_READ '
    assert terminal.complete('pc post send 5 --opcode=RDMA_R') == 'pc post send 5 --opcode=RDMA_READ '
    assert {'port', 'qp', 'cm', 'help'} <= set(terminal.candidates('pc '))
    assert terminal.complete('pc log level g') == 'pc log level get '
    # an alias made later, with an option of its own
    terminal.run("alias later='%s --json'" % CTL_PROGRAM)
    terminal.run('complete -F _polca_ctl later')
    assert terminal.complete('later neigh') == 'later neighbour '


def test_completion_of_values_that_there_are(terminal, polca):
    pd = js(polca, 'pd', 'create')['pd']
    mr = js(polca, 'mr', 'register', pd, '--length', 4096)
    cq = js(polca, 'cq', 'create')['cq']
    qp = js(polca, 'qp', 'create', pd, cq)['qp_num']
    try:
        assert '0x%06x' % qp in terminal.candidates('pc qp show 0x')
        assert terminal.complete('pc qp show 0x%06x' % qp) == 'pc qp show 0x%06x ' % qp
        assert terminal.complete('pc qp show %d' % qp) == 'pc qp show %d ' % qp
        key = '0x%08x' % mr['key']
        assert terminal.complete('pc mr read ' + key[:-1]) in (
            'pc mr read %s ' % key, 'pc mr read ' + key[:-1])  # keys may differ in the last digit only
        line = 'pc post send 5 --opcode SEND --sg-list key=' + key
        assert terminal.complete(line).rstrip() == line
        assert str(pd) in terminal.candidates('pc pd destroy ') or \
            terminal.complete('pc pd destroy ') == 'pc pd destroy %d ' % pd
        assert {A, B} <= set(terminal.candidates('pc ping '))
        assert 'rping' in terminal.candidates('pc cm listen r')
    finally:
        for words in (('qp', 'destroy', qp), ('cq', 'destroy', cq),
                      ('mr', 'deregister', mr['key']), ('pd', 'destroy', pd)):
            polca.ctl(*words)


def test_completion_leaves_out_the_blank_where_more_may_follow(terminal):
    line = 'pc post send 5 --opcode SEND --sg-list '
    assert terminal.complete(line + 'ke') == line + 'key='
    assert terminal.complete(line + 'key=1,len') == line + 'key=1,length='
    assert terminal.complete('pc sa get node li') == 'pc sa get node lid='
    line = 'pc post send 5 --opcode BIND_MW --bind-mw access='
    assert terminal.complete(line + 'REMOTE_A') == line + 'REMOTE_ATOMIC'
    assert terminal.complete('pc qp modify 5 --path-mig-state REA') == \
        'pc qp modify 5 --path-mig-state REARM '


def test_completion_of_services(terminal):
    """The kinds that support this side."""
    assert terminal.complete('pc cm listen perf') == 'pc cm listen perftest '
    assert terminal.complete('pc cm listen --kind perf') == 'pc cm listen --kind perftest '
    line = 'pc cm connect %s 1 --service ' % B
    assert terminal.complete(line + 'rpi') == line + 'rping '
    assert terminal.complete(line + 'perf') == line + 'perf'  # perftest cannot connect


@pytest.mark.parametrize('line', ['sa import ', 'sa config add node --file ', '-s ', '--socket=',
                                  'port list --socket '])
def test_completion_of_a_directory_ends_with_a_slash(terminal, tmp_path, line):
    os.mkdir(str(tmp_path / 'directory'))
    (tmp_path / 'plain').touch()
    terminal.run('cd %s' % tmp_path)
    assert terminal.complete('pc %sdir' % line) == 'pc %sdirectory/' % line
    assert terminal.complete('pc %spl' % line) == 'pc %splain ' % line


def test_completion_without_a_server_is_silent(terminal):
    terminal.run('export POLCA_SOCKET=/nowhere/s; cd /')
    assert terminal.candidates('pc mr read --key ') == []  # and no file names
    assert 'etc/' in terminal.candidates('pc sa import ')
    assert terminal.complete('pc pd destroy 1') == 'pc pd destroy 1'
    assert terminal.complete('pc qp sho') == 'pc qp show '


def standing(polca):
    """Connections that have not ended."""
    return [c for c in polca.rpc('cm_list')['connections'] if 'end' not in c]


@pytest.fixture
def rping(polca):
    name = polca.rpc('cm_listen', kind='rping', port=7174)['name']
    yield
    polca.rpc('cm_unlisten', service=name, disconnect=True)
    wait_until(lambda: not standing(polca))


def test_ctrl_c_ends_a_client_without_count(terminal, polca, rping):
    """cm connect without --count waits, and leaves no connection when it is interrupted."""
    terminal.type('pc cm connect %s 7174 --service rping --verify\n' % B)
    terminal.expect('Ctrl-C disconnects')
    wait_until(lambda: len(standing(polca)) == 2)
    assert PROMPT not in terminal.text.split('\n', 1)[1]
    terminal.type('\x03')
    found = terminal.expect(r'rping: (\d+) exchanges, 0 mismatches, 0 errors')
    assert int(found.group(1)) > 0
    terminal.expect(re.escape(PROMPT) + '$')
    wait_until(lambda: not standing(polca))
    assert terminal.run('echo status $?').strip() == 'status 0'


def resting(polca):
    """Connections that have ended, whose queue pairs are in TIMEWAIT."""
    return [c for c in polca.rpc('cm_list')['connections'] if c['state'] == 'TIMEWAIT']


# a TIMEWAIT of 9 s
LONG_REST = ['--packet-life', '20']


def test_connect_is_done_when_the_connection_has_ended(polca, rping):
    """The command returns while the connection is still in TIMEWAIT."""
    out = polca.ctl('cm', 'connect', B, '7174', '--service', 'rping', '--count', 5, *LONG_REST).stdout
    assert 'rping: 5 of 5 exchanges, 0 mismatches, 0 errors' in out
    assert resting(polca) and not standing(polca)


def test_ctrl_c_is_answered_when_the_connection_has_ended(terminal, polca, rping):
    terminal.type('pc cm connect %s 7174 --service rping %s\n' % (B, ' '.join(LONG_REST)))
    terminal.expect('Ctrl-C disconnects')
    wait_until(lambda: len(standing(polca)) == 2)
    before = len(resting(polca))
    terminal.type('\x03')
    terminal.expect(r'rping: (\d+) exchanges, 0 mismatches, 0 errors')
    terminal.expect(re.escape(PROMPT) + '$')
    assert len(resting(polca)) > before


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_client_too(polca, rping, sig):
    p = subprocess.Popen([CTL_PROGRAM, '-s', polca.socket, 'cm', 'connect', B, '7174', '--service',
                          'rping'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         # this suite may have been started with nohup
                         preexec_fn=lambda: signal.signal(sig, signal.SIG_DFL))
    wait_until(lambda: len(standing(polca)) == 2)
    p.send_signal(sig)
    out = p.communicate(timeout=20)[0]
    assert p.returncode == 0 and 'exchanges, 0 mismatches' in out, out
    wait_until(lambda: not standing(polca))


def test_a_killed_client_leaves_no_attempt(polca):
    """If the command dies before the connection is established, the connection is given up."""
    p = subprocess.Popen([CTL_PROGRAM, '-s', polca.socket, 'cm', 'connect', '192.0.2.77', '7199',
                          '--service', 'rping', '--dmac', '02:00:00:00:00:77', '--timeout-ms',
                          '60000'], stderr=subprocess.DEVNULL)
    wait_until(lambda: standing(polca))
    p.kill()
    p.wait()
    wait_until(lambda: not standing(polca), 10)


def test_a_detached_client_goes_on(polca, rping):
    c = js(polca, 'cm', 'connect', B, 7174, '--service', 'rping', '--detach')
    assert 'counters' not in c and len(standing(polca)) == 2
    polca.ctl('cm', 'disconnect', c['connection'])
    wait_until(lambda: not standing(polca))


@pytest.mark.parametrize('per_connection', [False, True])
def test_the_grant_of_memory_is_decoded(polca, per_connection):
    name = polca.rpc('cm_listen', kind='memory', port=4791, length=65536,
                     per_connection=per_connection)['name']
    pd, cq = polca.rpc('pd_create')['pd'], polca.rpc('cq_create', depth=512)['cq']
    try:
        c = js(polca, 'cm', 'connect', B, 4791, '--pd', pd, '--send-cq', cq)
        grant = bytes.fromhex(c['private_data'])
        m = c['memory']
        assert (m['rkey'], m['va'], m['length']) == struct.unpack('>IQQ', grant[4:24])
        assert m['length'] == 65536 and m['per_connection'] is per_connection
        assert m['access'] == ['REMOTE_WRITE', 'REMOTE_READ', 'REMOTE_ATOMIC']
        polca.ctl('cm', 'disconnect', c['connection'])
        out = polca.ctl('cm', 'connect', B, 4791, '--pd', pd, '--send-cq', cq).stdout
        assert re.search(r'memory:\n  rkey +0x[0-9a-f]{8}\n  va +0x[0-9a-f]+\n  length +64 KiB',
                         out), out
        polca.ctl('cm', 'disconnect', re.search(r'connection +(0x[0-9a-f]{8})', out).group(1))
    finally:
        polca.rpc('cm_unlisten', service=name, disconnect=True)
        wait_until(lambda: not polca.rpc('cm_list')['connections'], 120)
        polca.rpc('cq_destroy', cq=cq)
        polca.rpc('pd_destroy', pd=pd)


def test_ping_and_live_ping_take_the_same_addresses(polca):
    for dest in (B, '::ffff:' + B):
        assert polca.ctl('ping', dest, '-c', 1).returncode == 0
        assert js(polca, 'live', 'ping', dest)['received'] == 1
    nobody = ['192.0.2.77', '--dmac', '02:00:00:00:00:77', '--timeout-ms', '100']
    assert polca.ctl('live', 'ping', *nobody, check=False).returncode == 1
    for dest in ('nobody', 'lid:0xc000'):
        said = [polca.ctl(*words, dest, check=False) for words in (('ping',), ('live', 'ping'))]
        assert [r.returncode for r in said] == [2, 2]
        assert all('allowed: an IPv4 or IPv6 address' in r.stderr for r in said)


def test_a_sum_is_an_address(polca):
    """README's first session writes VA+1024."""
    pd, cq = js(polca, 'pd', 'create')['pd'], js(polca, 'cq', 'create')['cq']
    mr = js(polca, 'mr', 'register', pd, '--length', '1M', '--access', 'LOCAL_WRITE,REMOTE_WRITE')
    a, b = (js(polca, 'qp', 'create', pd, cq) for _ in range(2))
    polca.ctl('qp', 'connect', a['qp_num'], B, '0x%x' % b['qp_num'], b['sq_psn'], '--port', 0)
    polca.ctl('qp', 'connect', b['qp_num'], A, '0x%x' % a['qp_num'], a['sq_psn'], '--port', 1)
    polca.ctl('mr', 'write', mr['key'], '--data', '68656c6c6f')
    polca.ctl('post', 'send', a['qp_num'], '--opcode', 'RDMA_WRITE', '--sg-list',
              'key=0x%08x,length=5' % mr['key'], '--remote-addr', '0x%x+1024' % mr['va'], '--rkey',
              '0x%08x' % mr['key'])
    wc, = js(polca, 'cq', 'poll', cq, '--timeout-ms', 20000)['wc']
    assert wc['status'] == 'SUCCESS'
    assert js(polca, 'mr', 'read', mr['key'], '--offset', '1K', '--length', 5)['data'] == '68656c6c6f'
    for words in (('qp', 'destroy', a['qp_num']), ('qp', 'destroy', b['qp_num']),
                  ('mr', 'deregister', mr['key']), ('cq', 'destroy', cq), ('pd', 'destroy', pd)):
        polca.ctl(*words)


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
