# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Started as root, polca becomes another user and keeps only what its links need. What the other
suites do with all kinds of links, they do with these privileges, too."""

import grp
import json
import os
import re
import subprocess
import tempfile

import pytest

import net
from net import Namespace
from polca import PROGRAM, Polca, account, port

CONFIG = os.path.join(os.path.dirname(PROGRAM), '..', '..', '..', 'config')
PAIR = [dict(name='port0', back_to_back='port1', addresses=['10.77.0.1/24']),
        dict(name='port1', back_to_back='port0', addresses=['10.77.0.2/24'])]
NUMBERS = {'CAP_DAC_OVERRIDE': 1, 'CAP_NET_ADMIN': 12, 'CAP_NET_RAW': 13, 'CAP_SYS_ADMIN': 21}


def status(pid, thread=None):
    """/proc/PID/status, of a thread if that is given: name to value."""
    path = '/proc/%d/status' % pid if thread is None else '/proc/%d/task/%s/status' % (pid, thread)
    with open(path) as f:
        return dict(re.findall(r'(\w+):\s*(.*)', f.read()))


def capabilities(pid, which='CapPrm'):
    bits = int(status(pid)[which], 16)
    assert bits & ~sum(1 << n for n in NUMBERS.values()) == 0, bits
    return {name for name, n in NUMBERS.items() if bits >> n & 1}


def drop_in(kind):
    """What the drop-in of the systemd unit gives to this kind of link."""
    with open(os.path.join(CONFIG, 'systemd', kind + '.conf')) as f:
        return set(re.search(r'AmbientCapabilities=(.*)', f.read()).group(1).split())


def test_every_thread_is_an_ordinary_user(sockets):
    with Polca(sockets, PAIR, name='threads', workers=2) as p:
        threads = os.listdir('/proc/%d/task' % p.proc.pid)
        assert len(threads) >= 4
        for t in threads:
            s = status(p.proc.pid, t)
            assert s['Uid'].split() == [str(account().pw_uid)] * 4
            assert s['Gid'].split() == [str(account().pw_gid)] * 4
            assert int(s['CapPrm'], 16) == int(s['CapEff'], 16) == int(s['CapInh'], 16) == 0
            assert s['NoNewPrivs'] == '1' and s['Seccomp'] == '2'
        assert 'runs as user %d, capabilities: none' % account().pw_uid in p.tail()


@pytest.mark.parametrize('kind', ['af_packet', 'af_xdp'])
def test_capabilities_are_those_of_the_drop_in(sockets, kind):
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a='02:00:00:00:77:01', mac_b='02:00:00:00:77:02')
        p = Polca(sockets, [port('port0', 'net_%s0,iface=pv0' % kind, '10.77.0.1/24')], ns=ns,
                  name='caps-' + kind)
        with p:
            pid = p.proc.pid
            assert capabilities(pid) == capabilities(pid, 'CapEff') == drop_in(kind)


def sets_of_threads(pid):
    """What capabilities the threads have: (name, set of the status) to bits, without empty ones."""
    found = {}
    for t in os.listdir('/proc/%d/task' % pid):
        s = status(pid, t)
        for which in ('CapPrm', 'CapEff', 'CapInh', 'CapAmb'):
            if int(s[which], 16) != 0:
                found[s['Name'], t == str(pid), which] = int(s[which], 16)
    return found


@pytest.mark.parametrize('needed', [False, True])
def test_no_thread_keeps_what_the_service_was_given(sockets, needed):
    """As systemd starts it with the drop-in af_packet.conf: capabilities are each thread's own, and only the first
    keeps some, if a link needs them."""
    given = ','.join(['-all'] + [c.replace('CAP_', '+').lower() for c in sorted(drop_in('af_packet'))])
    user = account()
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a='02:00:00:00:77:01', mac_b='02:00:00:00:77:02')
        ports = [port('port0', 'net_af_packet0,iface=pv0', '10.77.0.1/24')] if needed else PAIR
        p = Polca(sockets, ports, ns=ns, name='given-%d' % needed, workers=2, sa={'enabled': True})
        p.prefix = ['setpriv', '--reuid=%d' % user.pw_uid, '--regid=%d' % user.pw_gid, '--clear-groups',
                    '--no-new-privs', '--inh-caps=' + given, '--ambient-caps=' + given,
                    '--bounding-set=' + given]
        with p:
            pid, found = p.proc.pid, sets_of_threads(p.proc.pid)
            assert {'polca-store'} < {status(pid, t)['Name'] for t in os.listdir('/proc/%d/task' % pid)}
            assert all(first for _, first, _ in found), found
            assert {which for _, _, which in found} == ({'CapPrm', 'CapEff'} if needed else set()), found
            assert capabilities(pid) == (drop_in('af_packet') if needed else set())


def test_nothing_is_left_behind(sockets):
    """Files that polca made as root are removed by the user that it became."""
    where = os.path.join(sockets, 'new')
    p = Polca(sockets, PAIR, name='tidy', control={'socket': os.path.join(where, 'polca.sock')})
    p.socket = os.path.join(where, 'polca.sock')
    with p:
        assert os.stat(where).st_uid == account().pw_uid
    assert os.listdir(where) == []


def test_memif_client_may_open_a_socket_of_root_again(sockets):
    """The server's socket is root's: the client keeps the capability to open it, and only that."""
    device = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=' + os.path.join(sockets, 'mp')
    with Polca(sockets, [port('port0', device % 'server', '10.77.0.1/24')], name='pa') as a:
        assert capabilities(a.proc.pid) == set()
        with Polca(sockets, [port('port0', device % 'client', '10.77.0.2/24')], name='pb') as b:
            assert capabilities(b.proc.pid) == {'CAP_DAC_OVERRIDE'}
        os.chmod(os.path.join(sockets, 'mp'), 0o777)
        with Polca(sockets, [port('port0', device % 'client', '10.77.0.2/24')], name='pb') as b:
            assert capabilities(b.proc.pid) == set()


def test_a_named_user(sockets):
    with Polca(sockets, PAIR, name='named', security={'user': 'daemon'}) as p:
        assert status(p.proc.pid)['Uid'].split()[0] == '1'


def test_root_by_request(sockets):
    with Polca(sockets, PAIR, name='stays', security={'user': 'root', 'seccomp': 'off'}) as p:
        s = status(p.proc.pid)
        assert (s['Uid'].split()[0], s['NoNewPrivs'], s['Seccomp']) == ('0', '1', '0')
        assert 'runs as user 0, capabilities: as before' in p.tail()


def test_no_such_user(sockets):
    text = Polca(sockets, PAIR, name='nobody-there', security={'user': 'polca-none'}).fails()
    assert 'security.user: got "polca-none", allowed: a user of this host' in text


def test_another_user_without_root(sockets):
    path = os.path.join(sockets, 'no-root.json')
    with open(path, 'w') as f:
        json.dump({'ports': PAIR, 'security': {'user': 'daemon'}}, f)
    r = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', PROGRAM,
                        '-c', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=60)
    assert r.returncode == 1
    assert 'security.user: only root can become daemon; start polca as root or as daemon' in r.stdout


@pytest.fixture
def roots():
    """A directory of root: this root opens no file of others."""
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d:
        yield d


@pytest.mark.parametrize('member', [False, True])
def test_root_without_chown_and_a_group_for_the_socket(roots, member):
    """Root as of the drop-in uio.conf: it must be in control.group."""
    with open(os.path.join(CONFIG, 'systemd/uio.conf')) as f:
        names = re.search(r'^CapabilityBoundingSet=(.*)', f.read(), re.M).group(1)
    bounding = ','.join(['-all', *names.split()]).replace('CAP_', '+').lower()
    path, socket = os.path.join(roots, 'polca.json'), os.path.join(roots, 'polca.sock')
    with open(path, 'w') as f:
        json.dump({'ports': PAIR, 'control': {'socket': socket, 'group': 'daemon'},
                   'eal': {'file_prefix': 'grouped-%d' % os.getpid()}}, f)
    groups = '--groups=%d' % grp.getgrnam('daemon').gr_gid if member else '--clear-groups'
    p = subprocess.Popen(['setpriv', '--bounding-set=' + bounding, groups, PROGRAM, '-c', path], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=net.die_with_parent)
    try:
        if member:
            for line in p.stdout:
                if 'polca: ready' in line:
                    break
            assert os.stat(socket).st_gid == grp.getgrnam('daemon').gr_gid
            p.terminate()
        said = p.communicate(timeout=60)[0]
    finally:
        p.kill()
    assert p.returncode == (0 if member else 1), said
    assert member or 'SupplementaryGroups=daemon in a drop-in of the service' in said
