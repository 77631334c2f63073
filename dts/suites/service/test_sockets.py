# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Who may use the control socket and the monitoring socket of the service: a member of their group, and no stranger."""

import itertools
import json
import re

import pytest

TEST_SECONDS = 600  # the first test waits for the packages and the container

CONTROL, MONITOR = '/run/polca/polca.sock', '/run/polca/monitor.sock'
PORTS = [{'name': 'port0', 'back_to_back': 'port1', 'addresses': ['192.0.2.1/24']},
         {'name': 'port1', 'back_to_back': 'port0', 'addresses': ['192.0.2.2/24']}]
WATCHED = {'control': {'group': 'fabric', 'monitor': MONITOR, 'monitor_group': 'watchers'}, 'ports': PORTS}
GROUP = {'control': {'group': 'fabric', 'monitor': MONITOR}, 'ports': PORTS}
# Calls with parameters that the control socket takes
CHANGES = {
    'log_level_set': {'component': 'polca.*', 'level': 'debug'}, 'pd_create': {}, 'cq_create': {},
    'mr_register': {'pd': 1, 'length': 4096}, 'qp_create': {'pd': 1, 'send_cq': 1}, 'mr_fill': {'key': 1, 'byte': 1},
    'cm_listen': {'kind': 'sink', 'port': 7400}, 'cm_connect': {'dgid': '192.0.2.2', 'port': 7174, 'service': 'rping'},
    'config_reload': {}, 'live_ping': {'dgid': '192.0.2.2'}}
STATE = ('log level get', 'pd list', 'cq list', 'mr list', 'qp list', 'cm services', 'cm list')

# calls each method, and prints name and error of one a line
CALLS = """
import json, socket, sys
path, calls = sys.argv[1], json.loads(sys.argv[2])
s = socket.socket(socket.AF_UNIX)
s.connect(path)
f = s.makefile('rw')
for method, params in calls.items():
    f.write(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}) + '\\n')
    f.flush()
    print(json.dumps([method, json.loads(f.readline())]))
"""


@pytest.fixture(scope='module')
def users(host):
    host('dpkg -i /packages/polca_*.deb /packages/polca-tools_*.deb')
    host('groupadd fabric; groupadd watchers; usermod -a -G fabric,watchers polca')
    host('useradd -G fabric member; useradd -G watchers watcher; useradd stranger')
    yield
    host('systemctl stop polca; rm -rf /etc/systemd/system/polca.service.d /calls.py; dpkg --purge polca polca-tools')
    host('userdel member; userdel watcher; userdel stranger; groupdel fabric; groupdel watchers')


@pytest.fixture
def grouped(host, users):
    host.start(json.dumps(GROUP))
    return host


def ctl(host, user, socket, words):
    """polca-ctl as this user, with a socket or its default one; its status and what it prints."""
    r = host.run('runuser -u %s -- polca-ctl %s %s' % (user, '-s ' + socket if socket else '', words))
    return r.returncode, r.stdout


def test_a_member_of_the_group_uses_the_control_socket(grouped):
    assert grouped('stat -c %U:%G:%a ' + CONTROL).strip() == 'polca:fabric:660'
    assert grouped('stat -c %U:%G:%a /run/polca').strip() == 'polca:polca:711'
    status, before = ctl(grouped, 'member', CONTROL, '--json pd list')
    assert status == 0 and before == grouped('polca-ctl --json pd list')
    assert ctl(grouped, 'member', None, 'pd create')[0] == 0  # finds the service's socket by itself
    assert grouped('polca-ctl --json pd list') != before


@pytest.mark.parametrize('socket', [CONTROL, MONITOR, None])
def test_a_stranger_is_told_the_group_and_what_to_type(grouped, socket):
    status, text = ctl(grouped, 'stranger', socket, 'version get')
    assert status == 3 and ('cannot connect to %s: Permission denied' % socket if socket else CONTROL) in text, text
    assert 'not running' not in text, text
    assert 'it belongs to polca, and members of the group fabric may use it' in text, text
    grouped(re.search(r'type sudo (usermod [^,]+),', text).group(1))
    try:
        assert ctl(grouped, 'stranger', socket, 'version get')[0] == 0
    finally:
        grouped('gpasswd -d stranger fabric')


def test_a_group_that_only_watches(host, users):
    host.start(json.dumps(WATCHED))
    assert host('stat -c %U:%G:%a ' + MONITOR).strip() == 'polca:watchers:660'
    assert ctl(host, 'watcher', MONITOR, 'port list')[0] == 0
    assert ctl(host, 'watcher', MONITOR, 'pd create')[0] != 0
    for user, socket, group in (('watcher', CONTROL, 'fabric'), ('stranger', MONITOR, 'watchers')):
        status, text = ctl(host, user, socket, 'port list')
        assert status == 3 and 'members of the group %s may use it' % group in text, text
    # neither what DPDK keeps there
    assert host('stat -c %a /run/polca/dpdk').strip() == '700'
    assert host.run('runuser -u stranger -- ls /run/polca').returncode != 0


def test_without_a_group_the_monitoring_socket_is_closed_too(host, users):
    host.start(json.dumps({'control': {'monitor': MONITOR}, 'ports': PORTS}))
    assert ctl(host, 'root', MONITOR, 'port list')[0] == 0
    assert ctl(host, 'stranger', MONITOR, 'port list')[0] == 3


def test_without_a_group_nobody_else_is_admitted(host, users):
    """Also no member of the group of polca's own user, to whom the directory is open: nobody is told to join it."""
    host.start(json.dumps({'ports': PORTS}))
    host('usermod -a -G polca member')
    try:
        for user, socket in itertools.product(('member', 'stranger'), (CONTROL, None)):
            status, text = ctl(host, user, socket, 'version get')
            assert status == 3, text
            assert 'it belongs to polca, and polca serves only its own user, root, and members of control.group' in text
            assert 'usermod' not in text
    finally:
        host('gpasswd -d member polca')


def test_the_group_watches_on_the_monitoring_socket(grouped):
    for words in ('version get', 'port list', 'qp list', 'worker list', 'stats get', 'stats metrics', 'events'):
        status, text = ctl(grouped, 'member', MONITOR, words)
        assert status == 0, text


def test_nothing_is_changed_by_the_monitoring_socket(grouped):
    def state():
        return [grouped('polca-ctl --json ' + words) for words in STATE]

    def call(socket, calls):
        text = grouped("runuser -u member -- python3 /calls.py %s '%s'" % (socket, json.dumps(calls)))
        return dict(json.loads(line) for line in text.splitlines())

    grouped.write('/calls.py', CALLS)
    before = state()
    replies = call(MONITOR, CHANGES)
    assert set(replies) == set(CHANGES)
    for method, reply in replies.items():
        assert reply['error']['data']['errno'] == 'EPERM', reply
        assert reply['error']['message'].startswith(method + ': the monitoring socket has only'), reply
    assert state() == before
    # calls like these have an effect where they may
    first = ('log_level_set', 'pd_create', 'cm_listen')
    replies = call(CONTROL, {method: CHANGES[method] for method in first})
    assert all('result' in reply for reply in replies.values()), replies
    after = state()
    assert [after[i] != before[i] for i in (0, 1, 5)] == [True] * 3
